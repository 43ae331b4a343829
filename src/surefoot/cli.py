"""The ``surefoot`` command.

Errors a user can do something about (a wrong value, missing data, a missing extra) are one line on standard error and
exit status 2; anything else is a bug and shows its traceback, as does every error with ``surefoot --debug``. Modules
are imported by the command that needs them, so that ``surefoot --help`` answers at once.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from surefoot import __version__

__all__ = ["app", "main"]

app = typer.Typer(
    name="surefoot",
    help="Bayesian optimization on rough ground: where to measure next.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def _surefoot(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of every error.")] = False,
) -> None:
    """Bayesian optimization on rough ground: where to measure next."""


@app.command()
def demo(
    trials: Annotated[int, typer.Option(help="How many networks to try.")] = 40,
    seed: Annotated[int, typer.Option(help="Names all random draws; the same seed asks the same.")] = 0,
    out: Annotated[Path, typer.Option(help="Folder of the page and the journal.")] = Path("surefoot-demo"),
) -> None:
    """Tune a real model on the digits data and write a page with pictures (about half a minute)."""
    from surefoot.lab.demo import demo as run

    run(trials=trials, seed=seed, out=out)


@app.command()
def reproduce(
    ids: Annotated[
        list[str] | None, typer.Argument(metavar="[ID]...", help="Experiments, or families of them.")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Every experiment whose data are here.")] = False,
    show: Annotated[bool, typer.Option("--list", help="List the experiments.")] = False,
    full: Annotated[bool, typer.Option("--full/--quick", help="The published budget, or a small one.")] = False,
    minutes: Annotated[float | None, typer.Option(help="Time limit of each experiment.")] = None,
    workers: Annotated[int | None, typer.Option(help="Processes; by default one per core.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Add repetitions to stored results.")] = False,
    out: Annotated[Path, typer.Option(help="Folder of the results.")] = Path("results"),
) -> None:
    """Run experiments and judge the claims made about them; without ids, list them.

    Writes results.json, a table and pictures per experiment. The exit status is 0 when the run completed, whatever the
    verdicts.
    """
    from surefoot.lab.command import reproduce as run

    run(
        ids or [],
        all=every,
        list=show,
        full=full,
        minutes=minutes,
        workers=workers,
        resume=resume,
        out=out,
    )


@app.command()
def version() -> None:
    """Print the version."""
    typer.echo(f"surefoot {__version__}")


def main() -> None:
    """Run the command line; the entry point of the ``surefoot`` script.

    >>> import sys
    >>> sys.argv = ["surefoot", "version"]
    >>> try:
    ...     main()
    ... except SystemExit as end:
    ...     print("status", end.code)
    surefoot 0...
    status 0
    """
    from surefoot.loop.errors import SurefootError

    try:
        app()
    except (SurefootError, ValueError, TypeError, OSError) as error:
        if "--debug" in sys.argv[1:]:
            raise
        typer.echo(f"surefoot: {' '.join(str(error).split()) or type(error).__name__}", err=True)
        raise SystemExit(2) from None
