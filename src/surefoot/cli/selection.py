"""``surefoot select``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from surefoot.cli.app import app

__all__: list[str] = []


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
    from surefoot.cli.select import select as run

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
