"""``surefoot tell``: results for a study that a journal keeps, one or a table of them."""

from __future__ import annotations

import os

import click
from rich.console import Console

from surefoot.cli.ask import opened
from surefoot.cli.options import PATH, offer
from surefoot.cli.options import direction as direction_option
from surefoot.cli.tables import past_from
from surefoot.cli.terminal import say
from surefoot.loop.types import FAILED

__all__ = ["tell"]


@click.argument("journal", type=PATH, metavar="JOURNAL", help="The study; it is begun where it is not there yet.")
@click.argument("table", type=PATH, required=False, metavar="[TABLE.csv]", help="Results, one row each.")
@click.option("--target", metavar="COLUMN", help="The column of results; by default value, or the only other one.")
@click.option("--trial", type=click.IntRange(0), metavar="ID", help="Tell one result: of this trial.")
@click.option("--value", type=float, metavar="NUMBER", help="What the trial gave.")
@click.option("--failed", is_flag=True, help="The trial failed.")
@click.option("--space", type=PATH, metavar="FILE.toml", help="The parameters, to begin a study.")
@direction_option
@click.option("--quiet", "-q", is_flag=True, help="Print nothing.")
def tell(
    journal: str | os.PathLike[str],
    table: str | os.PathLike[str] | None = None,
    *,
    target: str | None = None,
    trial: int | None = None,
    value: float | None = None,
    failed: bool = False,
    space: str | os.PathLike[str] | None = None,
    direction: str | None = None,
    quiet: bool = False,
    console: Console | None = None,
) -> int:
    """Tell a study what was measured, and return how many results were new; its arguments are the options.

    A table may hold what was told before: only what is new is told.

    >>> import io, tempfile
    >>> from pathlib import Path
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "space.toml").write_text('heat = {type = "float", low = 20.0, high = 90.0}')
    >>> _ = (folder / "past.csv").write_text("heat,yield\\n30,0.5\\n50,0.9\\n")
    >>> screen = Console(file=io.StringIO())
    >>> tell(folder / "a.jsonl", folder / "past.csv", space=folder / "space.toml", console=screen)
    2
    >>> tell(folder / "a.jsonl", folder / "past.csv", console=screen)
    0
    """
    one = trial is not None
    if one == (table is not None):
        raise ValueError("say what was measured: a table, or --trial ID with --value NUMBER or --failed")
    if one and (value is None) != failed:
        raise ValueError("a trial needs either --value NUMBER or --failed")
    if not one and (value is not None or failed):
        raise ValueError("--value and --failed go with --trial ID")
    past = None if table is None else past_from([table])
    with opened(journal, space, direction=direction) as study:
        if past is None:
            count = len(study.history)
            study.tell(trial or 0, FAILED if failed else value)
            told = len(study.history) - count
        else:
            column = target if target is not None or "value" in past.columns else past.result(study.domain, None)
            told = study.tell_table(past.rows, target=column, labels=past.labels, grown=True)
        known, waiting = len(study.history), len(study.pending)
    if not quiet:
        say(console or Console(), f"{told} new, {known} in all, {waiting} pending")
    return told


command = offer(
    tell,
    """Tell a study what was measured.

    A table may hold what was told before; only what is new is told. An empty result is one that is still to come.

    \b
    Examples:
      surefoot tell run.jsonl next.csv
      surefoot tell run.jsonl past.csv \\
        --space space.toml --target yield
      surefoot tell run.jsonl --trial 3 \\
        --value 0.5
      surefoot tell run.jsonl --trial 4 \\
        --failed
    """,
)
