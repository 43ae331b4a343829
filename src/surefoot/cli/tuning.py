"""``surefoot tune`` and ``surefoot show``."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from surefoot.cli.app import Direction, app

__all__: list[str] = []


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
    from surefoot.cli.tune import tune as run

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
        typer.Option(metavar="WAY", help="maximize or minimize.", show_default="that of the run"),
    ] = None,
) -> None:
    """Look at a run: tables and pictures of any journal, also while it is being written.

    \b
    Examples:
      surefoot show run.jsonl
      surefoot show run.jsonl --top 3 \\
        --page run.html
    """
    from surefoot.cli.show import show as run

    run(journal, page=page, top=top, direction=None if direction is None else direction.value)
