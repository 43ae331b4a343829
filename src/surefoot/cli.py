"""The ``surefoot`` command.

Errors a user can do something about (a wrong value, missing data, a missing extra) are one line on standard error and
exit status 2; anything else is a bug and shows its traceback, as does every error with ``surefoot --debug``. An
interrupted command exits with status 130. Modules are imported by the command that needs them, so that
``surefoot --help`` answers at once.
"""

from __future__ import annotations

import io
import shlex
import shutil
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from surefoot import __version__

__all__ = ["app", "main"]

app = typer.Typer(
    name="surefoot",
    help="Bayesian optimization on rough ground: where to measure next.",
    epilog="surefoot COMMAND --help explains a command, with examples.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # panels cut the texts short on a narrow terminal; plain help wraps them
    context_settings={"help_option_names": ["-h", "--help"]},
)


class Direction(StrEnum):
    """Which way is better."""

    maximize = "maximize"
    minimize = "minimize"


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"surefoot {__version__}")
        raise typer.Exit


@app.callback()
def _surefoot(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of every error.")] = False,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Bayesian optimization on rough ground: where to measure next."""


@app.command()
def tune(
    target: Annotated[
        str,
        typer.Argument(
            metavar="MODULE:FUNCTION",
            help="The objective: a dotted module or the path of a Python file, and a function in it.",
        ),
    ],
    space: Annotated[
        Path, typer.Option(metavar="FILE.toml", help="The parameters: a TOML file with a table for each.")
    ],
    trials: Annotated[
        int, typer.Option(min=1, metavar="N", help="How many trials, those already in the journal included.")
    ],
    journal: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Keep every trial here as it happens; without it only the page is kept."),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue the journal where it stopped.")] = False,
    direction: Annotated[Direction, typer.Option(metavar="WAY", help="maximize or minimize.")] = Direction.maximize,
    policy: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Which policy, or MODULE:CLASS of your own. By default ExpectedImprovement; BOBOS with --epochs, "
            "RMGPUCB with --transfer, RMBOBOS with both.",
        ),
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="An option of the policy, its value written as in TOML; repeatable."),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="Names all random draws; the same seed asks the same.")
    ] = None,
    epochs: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Length of a whole run, for an objective that yields once per epoch."),
    ] = None,
    transfer: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="JOURNAL", help="Learn from this earlier study, or from a folder of their journals; repeatable."
        ),
    ] = None,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder of the page.")] = Path("surefoot-tune"),
    page: Annotated[bool, typer.Option("--page/--no-page", help="Whether to write the page.")] = True,
    stop_on_error: Annotated[
        bool,
        typer.Option("--stop-on-error", help="Stop when the objective raises, instead of counting a failed trial."),
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print only the recommended parameters, as JSON.")
    ] = False,
) -> None:
    """Find good parameters of a Python function.

    The function takes the dict of its parameters and returns a number, or yields one after each epoch. It may return
    None for a run that failed; an exception counts as one too.

    \b
    Examples:
      surefoot tune objective.py:train \\
        --space space.toml --trials 40
      surefoot tune package.module:loss \\
        --space space.toml --trials 100 \\
        --direction minimize \\
        --journal run.jsonl
      surefoot tune objective.py:epochs \\
        --space space.toml --trials 30 \\
        --epochs 50
      surefoot tune objective.py:epochs \\
        --space space.toml --trials 30 \\
        --epochs 50 --transfer run.jsonl

    \b
    space.toml:
      [learning_rate]
      type = "float"
      low = 1e-4
      high = 0.1
      log = true
      [layers]
      type = "int"
      low = 1
      high = 4
      [activation]
      type = "choice"
      values = ["relu", "tanh"]
    """
    from surefoot.lab.tune import tune as run

    try:
        run(
            target,
            space=space,
            trials=trials,
            journal=journal,
            resume=resume,
            direction=direction.value,
            policy=policy,
            options=option or [],
            seed=seed,
            epochs=epochs,
            transfer=transfer or [],
            out=out if page else None,
            stop_on_error=stop_on_error,
            quiet=quiet,
        )
    except KeyboardInterrupt:
        words = shlex.join(["surefoot", *sys.argv[1:], *([] if resume else ["--resume"])])
        kept = f"interrupted; go on with\n{words}" if journal else "interrupted; without --journal nothing was kept"
        typer.echo(kept, err=True)
        raise typer.Exit(130) from None


@app.command(short_help="Look at a journal.")
def show(
    journal: Annotated[Path, typer.Argument(help="A journal, or a state written by policy.save().")],
    page: Annotated[Path | None, typer.Option(metavar="FILE.html", help="Write the page of the run here.")] = None,
    top: Annotated[int, typer.Option(min=1, metavar="K", help="How many of the best runs to list.")] = 10,
    direction: Annotated[
        Direction | None,
        typer.Option(metavar="WAY", help="maximize or minimize.", show_default="what the journal says"),
    ] = None,
) -> None:
    """Look at a run: tables and pictures of any journal, also while it is being written.

    \b
    Examples:
      surefoot show run.jsonl
      surefoot show run.jsonl --top 3 \\
        --page run.html
    """
    from surefoot.lab.show import show as run

    run(journal, page=page, top=top, direction=None if direction is None else direction.value)


@app.command(short_help="Choose rows that serve although some are lost.")
def select(
    file: Annotated[Path, typer.Argument(metavar="FILE.csv", help="A table with a header.")],
    k: Annotated[int, typer.Option("--k", metavar="N", help="How many rows to choose.")],
    tau: Annotated[int, typer.Option("--tau", metavar="N", help="How many of them may be lost.")] = 0,
    objective: Annotated[
        str,
        typer.Option(metavar="NAME", help="What a choice is worth; see above."),
    ] = "facility",
    method: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="How to choose; auto takes the best of several.",
        ),
    ] = "auto",
    ignore: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN", help="A column that does not count; repeatable.")
    ] = None,
    weights: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="A column that says how much each row matters.")
    ] = None,
    target: Annotated[str | None, typer.Option(metavar="COLUMN", help="The column to explain, for regression.")] = None,
    seconds: Annotated[
        float, typer.Option(min=0.1, metavar="S", help="Time limit of the search for the worst deletion.")
    ] = 10.0,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Draws the sample of a large table.")] = 0,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder of what is written.")] = Path("surefoot-select"),
    picture: Annotated[bool, typer.Option("--picture/--no-picture", help="Whether to draw a picture.")] = True,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print only the chosen lines, as JSON.")] = False,
) -> None:
    """Choose a few rows that stand for all, and still do when some of them are lost.

    Objectives: facility (near some chosen row), cosine (alike in direction), coverage (columns with an entry), variance
    (of a Gaussian process), and regression, which chooses columns that explain a target. Methods: auto, greedy, pro,
    pro_exact, osu, oblivious_greedy, oblivious. Writes the chosen rows, a file with all that is known about them, and a
    picture.

    \b
    Examples:
      surefoot select points.csv \\
        --k 20 --tau 3
      surefoot select skills.csv \\
        --k 10 --tau 2 \\
        --objective coverage \\
        --ignore name
      surefoot select houses.csv \\
        --k 8 --tau 2 \\
        --objective regression \\
        --target price
    """
    from surefoot.lab.select import select as run

    run(
        file,
        k=k,
        tau=tau,
        objective=objective,
        method=method,
        ignore=ignore or [],
        weights=weights,
        target=target,
        seconds=seconds,
        seed=seed,
        out=out,
        picture=picture,
        quiet=quiet,
    )


@app.command(short_help="Tune a real model and write a page.")
def demo(
    trials: Annotated[int, typer.Option(help="How many networks to try.")] = 40,
    seed: Annotated[int, typer.Option(help="Names all random draws; the same seed asks the same.")] = 0,
    out: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Folder of the page, the journal and earlier studies.")
    ] = Path("surefoot-demo"),
) -> None:
    """Tune a neural network on handwritten digits, epoch by epoch, and write a page with pictures (about a minute).

    Networks that will not beat the best one are abandoned half-way, and what earlier studies in the folder have found
    is used. The first time these are made too. An interrupted demo goes on when it is started again.

    \b
    Example:
      surefoot demo --trials 20
    """
    from surefoot.lab.demo import demo as run

    run(trials=trials, seed=seed, out=out)


@app.command(short_help="Measure how long an ask takes.")
def bench(
    quick: Annotated[bool, typer.Option("--quick", help="A small grid: a few seconds instead of minutes.")] = False,
    json: Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write all timings here.")] = None,
) -> None:
    """Measure how long an ask takes, and how much memory, from 20 to 1000 measurements in 2 to 20 dimensions.

    \b
    Examples:
      surefoot bench --quick
      OMP_NUM_THREADS=1 surefoot bench \\
        --json bench.json
    """
    from surefoot.lab.bench import bench as run

    run(quick=quick, json_file=json)


@app.command(short_help="Run experiments and judge their claims.")
def reproduce(
    ids: Annotated[list[str] | None, typer.Argument(metavar="ID", help="Experiments, or families of them.")] = None,
    every: Annotated[bool, typer.Option("--all", help="Every experiment whose data are here.")] = False,
    listing: Annotated[bool, typer.Option("--list", help="List the experiments.")] = False,
    full: Annotated[bool, typer.Option("--full/--quick", help="The published budget, or a small one.")] = False,
    minutes: Annotated[float | None, typer.Option(metavar="M", help="Time limit of each experiment.")] = None,
    workers: Annotated[int | None, typer.Option(metavar="N", help="Processes; by default one per core.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Add repetitions to stored results.")] = False,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder of the results.")] = Path("results"),
) -> None:
    """Run experiments and judge the claims made about them; without ids, list them.

    Writes results.json, a table and pictures per experiment. The exit status is 0 when the run completed, whatever the
    verdicts.

    \b
    Examples:
      surefoot reproduce --list
      surefoot reproduce gp-ucb
      surefoot reproduce \\
        gp-ucb/regret-bound --full
    """
    from surefoot.lab.command import reproduce as run

    run(
        ids or [],
        all=every,
        list=listing,
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

    for stream in (sys.stdout, sys.stderr):  # a terminal that cannot show a character shows a question mark
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        app(terminal_width=max(min(shutil.get_terminal_size().columns, 100) - 2, 20))  # of the help texts
    except (SurefootError, ValueError, TypeError, OSError) as error:
        if "--debug" in sys.argv[1:]:
            raise
        typer.echo(f"surefoot: {' '.join(str(error).split()) or type(error).__name__}", err=True)
        raise SystemExit(2) from None
