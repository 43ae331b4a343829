"""``surefoot suggest``: from a table of past measurements to the next points, without a line of Python."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from surefoot.cli.options import PATH, offer
from surefoot.cli.tables import batch_table, fixed_from, guessed_space, past_from, print_batch, write_table
from surefoot.cli.target import options_from, policy_named, space_from
from surefoot.cli.terminal import say
from surefoot.domain import Domain
from surefoot.loop.policy import Policy
from surefoot.report import page as write_page

__all__ = ["suggest"]


@click.argument(
    "tables", type=PATH, nargs=-1, required=True, metavar="PAST.csv...", help="Past measurements, in one or more files."
)
@click.option(
    "--space", type=PATH, metavar="FILE.toml", help="The parameters; by default the columns and their ranges."
)
@click.option("--target", metavar="COLUMN", help="The column of results; needed where several could be it.")
@click.option("-n", "--number", type=click.IntRange(1), metavar="N", help="How many points to suggest.")
@click.option("--minimize", is_flag=True, help="Less is better; by default more is.")
@click.option("--fix", "fixed", multiple=True, metavar="NAME=VALUE", help="Keep a parameter at a value; repeatable.")
@click.option("--out", type=PATH, metavar="NEXT.csv", help="Write the points as a table with room for the results.")
@click.option("--page", type=PATH, metavar="FILE.html", help="Write a page with pictures.")
@click.option("--skip-outside", is_flag=True, help="Pass over rows outside the space instead of stopping.")
@click.option("--policy", metavar="NAME", help="Which policy.")
@click.option("--option", "options", multiple=True, metavar="KEY=VALUE", help="An option of the policy; repeatable.")
@click.option("--seed", type=click.IntRange(0), metavar="N", help="Seed of all random draws.")
@click.option("--quiet", "-q", is_flag=True, help="Print only the points, as JSON.")
def suggest(
    tables: Sequence[str | os.PathLike[str]],
    *,
    space: str | os.PathLike[str] | None = None,
    target: str | None = None,
    number: int = 1,
    minimize: bool = False,
    fixed: Sequence[str] = (),
    out: str | os.PathLike[str] | None = None,
    page: str | os.PathLike[str] | None = None,
    skip_outside: bool = False,
    policy: str = "ExpectedImprovement",
    options: Sequence[str] = (),
    seed: int = 0,
    quiet: bool = False,
    console: Console | None = None,
) -> list[dict[str, Any]]:
    """Print the points to measure next, given tables of past measurements, and return them as rows.

    >>> import io, tempfile
    >>> file = Path(tempfile.mkdtemp()) / "past.csv"
    >>> _ = file.write_text("heat,yield\\n30,0.5\\n50,0.9\\n70,0.7\\n90,0.2\\n")
    >>> rows = suggest([file], console=Console(file=io.StringIO()))
    >>> 40 < rows[0]["heat"] < 70, rows[0]["lower"] < rows[0]["predicted"] < rows[0]["upper"]
    (True, True)
    """
    screen, past = console or Console(), past_from(tables)
    domain: Domain
    notes: list[str] = []
    if space is None:
        domain, target, notes = guessed_space(past, target)
        notes = [
            *notes,
            f"parameters: {', '.join(domain.names)}",
            "the ranges are those of the table; surefoot space writes them into a file to be widened",
        ]
    else:
        domain = space_from(space)
    if past.rows:
        target = past.result(domain, target)
    if skip_outside:
        past, left_out = past.inside(domain)
        notes += [f"outside the space, passed over: {'; '.join(left_out)}"] if left_out else []
    chosen = policy_named(policy)
    made = chosen(domain, seed=seed, direction="minimize" if minimize else "maximize", **options_from(options, chosen))
    _tell(made, past.rows, past.labels, target)
    queries = made.ask(number, **({"fixed": fixed_from(fixed)} if fixed else {}))
    rows = batch_table(made, queries, target=target or "value")
    if out is not None:
        write_table(rows, out)
    if page is not None:
        write_page(made, page, title=", ".join(Path(path).name for path in tables), direction=made.direction)
    if quiet:
        say(screen, json.dumps(rows, ensure_ascii=False))
        return rows
    for note in notes:
        say(screen, note)
    say(screen, f"{_counts(made)}; {made.direction} {target or 'value'}\n")
    print_batch(rows, screen, target or "value")
    if any(not o.failed for o in made.history):
        best = made.recommend()
        point = best.params or best.x.tolist()
        say(screen, f"\nbest so far, by estimate: {json.dumps(point, ensure_ascii=False)}")
    for what, path in (("points", out), ("page", page)):
        if path is not None:
            say(screen, f"{what}: {path}")
    return rows


def _tell(policy: Policy, rows: Sequence[dict[str, str]], labels: Sequence[str], target: str | None) -> None:
    try:
        policy.tell_table(rows, target=target, labels=labels)
    except ValueError as error:
        advice = "; widen the space, or add --skip-outside" if "is outside [" in str(error) else ""
        raise ValueError(f"{error}{advice}") from None


def _counts(policy: Policy) -> str:
    failed = sum(o.failed for o in policy.history)
    words = [f"{len(policy.history) - failed} measured"]
    words += [f"{failed} failed"] if failed else []
    waiting = sum(bool(query.note.get("given")) for query in policy.pending)
    words += [f"{waiting} not measured yet"] if waiting else []
    return ", ".join(words)


command = offer(
    suggest,
    """Suggest the next points to measure, from a table of past measurements.

    The table has a column for each parameter and one of results; other columns are ignored. An empty result is one
    that is still to come, "failed" is a failed run, and equal rows are repeated measurements. The same table gives the
    same points.

    \b
    Examples:
      surefoot suggest past.csv
      surefoot suggest past.csv \\
        --space space.toml \\
        --target yield -n 4 --out next.csv
      surefoot suggest past.csv next.csv \\
        --target loss --minimize \\
        --fix solvent=water
    """,
)
