"""``surefoot demo`` and ``surefoot version``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from surefoot import __version__
from surefoot.cli.app import app

__all__: list[str] = []


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
    from surefoot.cli.demo import demo as run

    run(trials=trials, seed=seed, out=out)


@app.command()
def version() -> None:
    """Print the version."""
    typer.echo(f"surefoot {__version__}")
