"""``surefoot ask``: the next points of a study that a journal keeps."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from surefoot.cli.options import PATH, offer
from surefoot.cli.options import direction as direction_option
from surefoot.cli.tables import batch_table, fixed_from, print_batch, write_table
from surefoot.cli.target import options_from, policy_named, space_from
from surefoot.cli.terminal import say
from surefoot.loop.policy import Policy
from surefoot.loop.record import load

__all__ = ["ask", "opened"]


def opened(
    journal: str | os.PathLike[str],
    space: str | os.PathLike[str] | None,
    *,
    direction: str | None = None,
    policy: str | None = None,
    options: Sequence[str] = (),
    seed: int | None = None,
) -> Policy:
    """Return the policy of a journal, which is begun with a space where it is not there yet.

    >>> opened("absent.jsonl", None)
    Traceback (most recent call last):
    ...
    ValueError: there is no journal absent.jsonl; to begin one, say --space FILE.toml
    """
    file = Path(journal)
    if file.exists() and file.stat().st_size:
        given = {"--policy": policy, "--seed": seed, "--option": options or None, "--direction": direction}
        if clash := [name for name, value in given.items() if value is not None]:
            raise ValueError(f"{file} was begun already, and {clash[0]} cannot change it")
        wanted = None if space is None else space_from(space)
        found = load(file)
        if wanted is not None and wanted != found.domain:
            found.close()
            raise ValueError(f"{file} has another space than {space}; leave out --space to go on with it")
        return found
    if space is None:
        raise ValueError(f"there is no journal {file}; to begin one, say --space FILE.toml")
    chosen = policy_named(policy or "ExpectedImprovement")
    settings = options_from(options, chosen)
    return chosen(space_from(space), seed=seed, direction=direction or "maximize", journal=file, **settings)


@click.argument("journal", type=PATH, metavar="JOURNAL", help="The study; it is begun where it is not there yet.")
@click.option("-n", "--number", type=click.IntRange(1), metavar="N", help="How many points to ask for.")
@click.option("--space", type=PATH, metavar="FILE.toml", help="The parameters, to begin a study.")
@direction_option
@click.option("--fix", "fixed", multiple=True, metavar="NAME=VALUE", help="Keep a parameter at a value; repeatable.")
@click.option("--out", type=PATH, metavar="NEXT.csv", help="Write the points as a table with room for the results.")
@click.option("--policy", metavar="NAME", help="Which policy, to begin a study; ExpectedImprovement by default.")
@click.option("--option", "options", multiple=True, metavar="KEY=VALUE", help="An option of the policy; repeatable.")
@click.option("--seed", type=click.IntRange(0), metavar="N", help="Seed of all random draws, to begin a study.")
@click.option("--quiet", "-q", is_flag=True, help="Print only the points, as JSON.")
def ask(
    journal: str | os.PathLike[str],
    *,
    number: int = 1,
    space: str | os.PathLike[str] | None = None,
    direction: str | None = None,
    fixed: Sequence[str] = (),
    out: str | os.PathLike[str] | None = None,
    policy: str | None = None,
    options: Sequence[str] = (),
    seed: int | None = None,
    quiet: bool = False,
    console: Console | None = None,
) -> list[dict[str, Any]]:
    """Ask a study for points, which are pending in its journal from now on, and return them as rows.

    >>> import io, tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "space.toml").write_text('heat = {type = "float", low = 20.0, high = 90.0}')
    >>> rows = ask(folder / "a.jsonl", number=2, space=folder / "space.toml", console=Console(file=io.StringIO()))
    >>> [row["trial"] for row in rows]
    [0, 1]
    """
    screen = console or Console()
    with opened(journal, space, direction=direction, policy=policy, options=options, seed=seed) as study:
        queries = study.ask(number, **({"fixed": fixed_from(fixed)} if fixed else {}))
        rows = batch_table(study, queries, numbered=True)
    if out is not None:
        write_table(rows, out)
    if quiet:
        say(screen, json.dumps(rows, ensure_ascii=False))
        return rows
    print_batch(rows, screen, "value")
    if out is not None:
        say(screen, f"points: {out}; fill in the column value, then: surefoot tell {journal} {out}")
    return rows


command = offer(
    ask,
    """Ask a study for the next points; a journal keeps them and what comes of them.

    \b
    Examples:
      surefoot ask run.jsonl \\
        --space space.toml
      surefoot ask run.jsonl -n 4 \\
        --out next.csv
      surefoot ask run.jsonl \\
        --fix solvent=water
    """,
)
