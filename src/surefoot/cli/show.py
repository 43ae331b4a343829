"""``surefoot show``: any journal or saved state as tables and pictures of characters, and as a page.

The file is only read, never locked: a run can be looked at while another process writes it. A run whose policy cannot
be rebuilt here (it is not installed, or part of its configuration is code) is shown from its events alone.
"""

from __future__ import annotations

import json
import os
import textwrap
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np
from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from surefoot.cli.options import DIRECTION, PATH, offer
from surefoot.cli.terminal import along, chart, say, sparkline
from surefoot.errors import SurefootError
from surefoot.loop.journal import Journal, check_schema, loads
from surefoot.loop.policy import Policy
from surefoot.loop.types import LevelSet, Recommendation
from surefoot.report import Run, best_so_far
from surefoot.report import page as write_page
from surefoot.report.edge import beyond, inside
from surefoot.report.run import direction_of
from surefoot.report.view import RunView, coordinates, number, short, window

__all__ = ["Reading", "answer", "curve_of", "read", "saved_state", "show", "shown", "standing", "table_of"]

_TICK = 12  # characters of a learning curve in a table
_PLAIN: dict[str, Any] = {"box": box.SIMPLE_HEAD, "title_justify": "left", "title_style": "bold", "show_edge": False}


class Reading(NamedTuple):
    """What :func:`read` found: a policy, the direction of its values, the name of its class, and a note.

    The note is empty, or says why another policy stands in for the one of the file.

    >>> from surefoot import Box, RandomSearch
    >>> Reading(RandomSearch(Box.unit(1), seed=0), "maximize", "RandomSearch").note
    ''
    """

    policy: Policy
    direction: str
    name: str
    note: str = ""


def read(path: str | os.PathLike[str], *, direction: str | None = None) -> Reading:
    """Rebuild the policy of a journal or a saved state without writing or locking anything.

    Parameters
    ----------
    path : path
        A journal, or a file written by ``policy.save``.
    direction : {"maximize", "minimize"}, optional
        Which way is better; by default that of the policy. With the other one all values change their sign: for a state
        that an older release saved of a minimized run.

    >>> import tempfile, os
    >>> from surefoot import Box, RandomSearch
    >>> path = os.path.join(tempfile.mkdtemp(), "run.jsonl")
    >>> with RandomSearch(Box([(0.0, 1.0)]), seed=1, journal=path) as policy:
    ...     policy.tell(policy.ask(), 0.5)
    ...     read(path).policy  # while the journal is open
    RandomSearch(Box([(0.0, 1.0)]), asked=1, measured=1)
    """
    state = saved_state(path)
    note = ""
    try:
        policy = Policy.from_state(state)
    except (ValueError, SurefootError) as error:
        if "domain" not in state.get("config", {}):
            raise
        known = {name: state["config"][name] for name in ("domain", "direction") if state["config"].get(name)}
        bare = {**state, "policy": "RandomSearch", "config": known, "cache": {}}
        policy, note = Policy.from_state(bare), f"shown from its events alone: {error}"
    return Reading(policy, direction_of(policy, direction), state["policy"], note)


def saved_state(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return what a journal or a saved state holds, as ``policy.state()`` would; a journal's direction beside it.

    >>> saved_state("nowhere.jsonl")
    Traceback (most recent call last):
    ...
    ValueError: there is no journal or saved state at nowhere.jsonl
    """
    file = Path(path)
    if not file.is_file():
        raise ValueError(f"there is no journal or saved state at {file}")
    first, newline, _ = file.read_bytes().partition(b"\n")
    try:
        head = loads(first.decode())
        check_schema(head, "file")
    except ValueError as error:
        if not newline:  # a header cut short
            raise ValueError(f"{file} holds no run (yet)") from None
        reason = str(error) if "newer" in str(error) else "it does not start like one"
        raise ValueError(f"{file} is neither a journal nor a saved state: {reason}") from None
    if "events" in head:
        return dict(head)
    _, events = Journal(file).read()
    return {**head, "events": events, "cache": {}}


@click.argument("path", type=PATH, metavar="JOURNAL", help="A journal, or a state written by policy.save().")
@click.option("--page", type=PATH, metavar="FILE.html", help="Write the page of the run here.")
@click.option("--top", type=click.IntRange(1), metavar="K", help="How many of the best trials to list.")
@click.option(
    "--direction", type=DIRECTION, metavar="WAY", help="maximize or minimize.", show_default="that of the run"
)
def show(
    path: str | os.PathLike[str],
    *,
    page: str | os.PathLike[str] | None = None,
    top: int = 10,
    direction: str | None = None,
    console: Console | None = None,
) -> Policy:
    """Print how a run stands, write its page if asked, and return the policy; its arguments are the options.

    With a direction that is not the policy's all values change their sign.

    >>> import io, os, tempfile
    >>> from surefoot import Box, RandomSearch
    >>> path = os.path.join(tempfile.mkdtemp(), "run.json")
    >>> RandomSearch(Box([(0.0, 1.0)]), seed=1).save(path)
    >>> screen = Console(file=io.StringIO(), width=60)
    >>> policy = show(path, console=screen)
    >>> "no trial has given a value" in screen.file.getvalue()
    True
    """
    if top < 1:
        raise ValueError(f"top must be at least 1, got {top!r}")
    screen = console or Console()
    policy, direction, name, note = read(path, direction=direction)
    view = RunView(policy, direction)
    say(screen, Text(str(path), style="bold"))
    say(screen, f"{name}, {direction}, seed {policy.seed}\n{standing(view.rows)}")
    if note:
        say(screen, Text(note, style="yellow"))
    measured = [row for row in view.rows if row.value is not None]
    if measured:
        say(screen, "\nBest so far")
        say(screen, "\n".join(_trace(view, screen)))
        screen.print("", _axes(view, screen), sep="\n")
        best = [measured[i] for i in np.argsort(-view.quality, kind="stable")[:top]]
        screen.print("", table_of(best, screen, title="Best trials", digits=view.digits()), sep="\n")
    under_way = [row for row in view.rows if row.status == "pending"]
    if under_way:
        screen.print("", table_of(under_way, screen, title="Pending"), sep="\n")
    screen.print()
    for line in answer(view):
        say(screen, line)
    if page is not None:
        say(screen, f"page: {write_page(policy, page, title=Path(path).name, direction=direction)}")
    return policy


def standing(rows: Sequence[Run]) -> str:
    """Return how many trials there are and how they stand, in a few words.

    >>> standing([Run(0, np.zeros(1), {}, 1.0, "measured"), Run(1, np.zeros(1), {}, None, "pending")])
    '2 trials: 1 measured, 1 pending'
    """
    counts = Counter(row.status for row in rows)
    words = [f"{counts[word]} {word}" for word in ("measured", "failed", "cancelled", "pending") if counts[word]]
    stopped = sum(row.stopped is not None for row in rows)
    words += [f"{stopped} stopped early"] if stopped else []
    return f"{len(rows)} trial{'' if len(rows) == 1 else 's'}{': ' if words else ''}{', '.join(words)}"


def table_of(rows: Sequence[Run], screen: Console, *, title: str, label: str = "value", digits: int = 4) -> Table:
    """Return runs as a table that fits the screen.

    Parameters that do not fit side by side share a column, and learning curves that do not fit are left out.

    >>> import io
    >>> rows = [Run(3, np.array([0.5]), {"rate": 0.5}, 0.91, "measured")]
    >>> screen = Console(file=io.StringIO(), width=60)
    >>> screen.print(table_of(rows, screen, title="Best trials"))
    >>> "0.91" in screen.file.getvalue()
    True
    """
    names = list(dict.fromkeys(name for row in rows for name in row.params))
    before: dict[str, list[str]] = {"trial": ["told" if row.id is None else str(row.id) for row in rows]}
    if any(row.value is not None for row in rows):
        before[label] = ["" if row.value is None else number(row.value, digits) for row in rows]
    if any(row.curve for row in rows):
        before["epochs"] = [f"{max(row.curve, default='')}{' stopped' if row.stopped else ''}" for row in rows]
        before["curve"] = [curve_of(row.curve.values(), screen) for row in rows]
    texts = [{name: shown(value) for name, value in row.params.items()} for row in rows]
    beside = {name: [params.get(name, "") for params in texts] for name in names}
    below = {"parameters": ["\n".join(f"{name} {value}" for name, value in params.items()) for params in texts]}
    bare = {name: cells for name, cells in before.items() if name != "curve"}
    unlimited = screen.options.update(max_width=10_000)
    for table in (_table(title, before, beside), _table(title, before, below)):
        if Measurement.get(screen, unlimited, table).maximum <= screen.width:
            return table
    return _table(title, bare, below)


def _table(title: str, before: Mapping[str, Sequence[str]], after: Mapping[str, Sequence[str]]) -> Table:
    table = Table(title=Text(title), **_PLAIN)
    for name in before:
        table.add_column(Text(name), justify="left" if name == "curve" else "right", no_wrap=True)
    for name in after:
        table.add_column(Text(name))
    for cells in zip(*before.values(), *after.values(), strict=True):
        table.add_row(*map(Text, cells))
    return table


def curve_of(values: Iterable[float | None], screen: Console) -> str:
    """Return the learning curve of a run as a few characters.

    >>> curve_of([0.1, None, 0.9], Console())
    '▁ █'
    """
    series = [np.nan if value is None else value for value in values]
    return sparkline(series, _TICK, ascii=screen.options.ascii_only)


def _trace(view: RunView, screen: Console) -> list[str]:
    rows = [row for row in view.rows if row.status in ("measured", "failed")]
    best = best_so_far(rows, direction=view.direction)
    low, high = window(best[~np.isnan(best)], view.direction)  # what is far worse is left blank, and told
    shown = np.where(inside(best, low, high), best, np.nan)
    lines = chart(shown, width=min(screen.width, 100), ascii=screen.options.ascii_only)
    return [*lines, *textwrap.wrap(beyond(best, low, high, "the chart"), screen.width)]


def _axes(view: RunView, screen: Console) -> Table:
    """What was tried on each axis, and the best value found along it."""
    wide = screen.width >= 60
    best = max((row for row in view.rows if row.value is not None), key=lambda row: view.sign * (row.value or 0.0))
    table = Table(title="Parameters", **_PLAIN)
    for name in ["name", "tried", "best", "best value along it"] if wide else ["name", "best", "along it"]:
        table.add_column(name)
    for axis in coordinates(view.policy.domain):
        column = view.X[:, axis.index]
        if axis.labels:
            tried, bins = f"{len(np.unique(column))} of {len(axis.labels)} values", min(len(axis.labels), _TICK)
        else:
            tried, bins = f"{number(float(column.min()))} to {number(float(column.max()))}", _TICK
        picture = along(axis.unit(column), view.quality, bins, ascii=screen.options.ascii_only)
        middle = [Text(tried)] if wide else []
        table.add_row(Text(axis.name), *middle, Text(shown(best.params[axis.name])), Text(picture))
    return table


def answer(view: RunView) -> list[Text]:
    """Return the recommendation as lines, the second ready to be copied: JSON of the parameters, or of the point.

    >>> from surefoot import Float, RandomSearch, Space
    >>> policy = RandomSearch(Space(rate=Float(0.0, 1.0)), seed=0)
    >>> policy.tell({"rate": 0.25}, 3.0)
    >>> for line in answer(RunView(policy)):
    ...     print(line)
    Recommended
    {"rate": 0.25}
    expect 3 (best measured value)
    """
    best, digits = view.answer, view.digits()
    if best is None:
        return [Text("no recommendation: no trial has given a value", style="yellow")]
    if isinstance(best, LevelSet):
        found = json.dumps({**best.counts(), "threshold": best.threshold})
        return [Text("Level set", style="bold"), Text(found, style="green"), Text(f"by {best.rule}")]
    if not isinstance(best, Recommendation):  # a policy with another question has another kind of answer
        return [Text("Answer", style="bold"), Text(str(best))]
    point = json.dumps(best.x.tolist() if best.params is None else best.params, ensure_ascii=False)
    expected = "" if best.mean is None else f"expect {number(best.mean, digits)}"
    if best.lower is not None and best.upper is not None:
        expected += f", between {number(best.lower, digits)} and {number(best.upper, digits)}"
        if best.confidence is not None:
            expected += f" without noise, {100 * best.confidence:g} % sure"
    rule = f"({best.rule})" if best.rule else ""
    return [Text("Recommended", style="bold"), Text(point, style="green"), Text(f"{expected} {rule}".strip())]


def shown(value: Any) -> str:
    """Return the value of a parameter in few characters.

    >>> shown(0.123456), shown(12), shown("a rather long text, more than fits")
    ('0.1235', '12', 'a rather long text, mor…')
    """
    return number(value) if isinstance(value, float) else short(str(value), 24)


command = offer(
    show,
    """Look at a run: tables and pictures of any journal, also while it is being written.

    \b
    Examples:
      surefoot show run.jsonl
      surefoot show run.jsonl --top 3 \\
        --page run.html
    """,
)
