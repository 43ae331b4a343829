"""``surefoot space``: a first description of the parameters, read off a table of past measurements."""

from __future__ import annotations

import os
from pathlib import Path

import click
from rich.console import Console

from surefoot.cli.options import PATH, offer
from surefoot.cli.tables import guessed_space, past_from, space_text
from surefoot.cli.terminal import say
from surefoot.domain import Space
from surefoot.loop.durable import write_atomically

__all__ = ["space"]


@click.argument("table", type=PATH, metavar="PAST.csv", help="A table with a column for each parameter.")
@click.option("--target", metavar="COLUMN", help="The column of results, which is no parameter.")
@click.option("--out", type=PATH, metavar="FILE.toml", help="Where to write it; by default it is printed.")
def space(
    table: str | os.PathLike[str],
    *,
    target: str | None = None,
    out: str | os.PathLike[str] | None = None,
    console: Console | None = None,
) -> Space:
    """Write a first space for the columns of a table, and return it; its arguments are the options.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "past.csv"
    >>> _ = file.write_text("heat,yield\\n30,0.61\\n55,0.70\\n")
    >>> _ = space(file)
    # The ranges are those of past.csv. Widen them to what you could set.
    # yield: taken as the result
    ...
    """
    screen = console or Console()
    found, _, notes = guessed_space(past_from([table]), target)
    first = f"The ranges are those of {Path(table).name}. Widen them to what you could set."
    text = space_text(found.parameters, [first, *notes])
    if out is None:
        say(screen, text.rstrip("\n"))
        return found
    write_atomically(Path(out), text)
    for note in notes:
        say(screen, note)
    say(screen, f"{len(found.parameters)} parameter{'s' * (len(found.parameters) > 1)}: {out}. {first}")
    return found


command = offer(
    space,
    """Write a first space.toml for a table of past measurements.

    Numbers become ranges, words become choices. Columns that never change, that count the rows or that differ in
    every row are left out; each is named.

    \b
    Examples:
      surefoot space past.csv
      surefoot space past.csv \\
        --target yield --out space.toml
    """,
)
