"""``surefoot curate``: the side of whoever holds the data, from the table to the row to use.

A table is read, the columns with public bounds are released once through a private mechanism, a service says which row
to measure next, and the objective measures it here. What leaves this process is the release, row numbers in a secret
order and the answers (:mod:`surefoot.private.messages`): no raw row, no name of a column, a file or a function.

Three files are kept beside the table, as private as the table itself: what was charged (the ledger), the release with
every answer (the state), and where the run is (the state with ``.run``). A command that was killed, at any moment, goes
on when it is given again: the same rows are released, at no further charge, and nothing is measured twice.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import click
from rich.console import Console

from surefoot.cli.options import PATH, again, direction, offer
from surefoot.cli.records import Records, bounds_from, read
from surefoot.cli.target import find, policy_named
from surefoot.errors import BudgetSpent, SurefootError
from surefoot.loop.journal import dumps, loads, write_atomically
from surefoot.private.curator import Curator
from surefoot.private.ledger import Ledger
from surefoot.private.mechanisms import GaussianRelease
from surefoot.private.messages import Ask
from surefoot.private.outputs import OutputRelease
from surefoot.private.utility import preflight
from surefoot.report.view import number
from surefoot.serve.client import Client
from surefoot.serve.failures import Conflict, NotFound
from surefoot.serve.remote_run import RemoteRun

__all__ = ["Curated", "curate"]

CLIPPED = 0.05  # share of a column beyond its bounds from which the command stops
_AT_HOME = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True)
class Curated:
    """What came out of a run.

    Attributes
    ----------
    line : int or None
        Line of the table's file with the row to use; None where nothing could be measured.
    value : float or None
        What was measured there, if it was in this process.
    answered, failed : int
        Asks that were answered, and those of them, in this process, whose measurement failed.

    >>> Curated(17, 0.5, 30, 0).line
    17
    """

    line: int | None
    value: float | None
    answered: int
    failed: int


@click.argument("data", type=PATH, metavar="DATA.csv", help="The private table, with a header.")
@click.option(
    "--objective", metavar="FUNCTION", help="Measures one row, a dict by column; MODULE:NAME, or FILE.py:NAME."
)
@click.option("--server", metavar="URL", help="The service.")
@click.option("--epsilon", type=float, metavar="E", help="Privacy of the release.")
@click.option("--delta", type=float, metavar="D", help="And its δ.")
@click.option(
    "--token",
    metavar="TEXT",
    envvar="SUREFOOT_TOKEN",
    show_envvar=True,
    help="A token of the service; best as variable.",
)
@click.option(
    "--bounds",
    multiple=True,
    metavar="LIMITS",
    help="Public limits, COLUMN=LOW:HIGH or a TOML file; repeatable. Columns without limits stay here.",
)
@click.option("--radius", type=float, metavar="R", help="What limits are scaled to.")
@click.option("--neighbor", type=float, metavar="R", help="Protected change of a row, after scaling; inf: any change.")
@click.option(
    "--asks",
    type=click.IntRange(1),
    metavar="N",
    help="How many rows to measure at most; by default 30, or all if fewer.",
)
@direction
@click.option("--policy", metavar="NAME", help="Which policy the service runs.")
@click.option(
    "--values",
    type=(float, float),
    metavar="LOW HIGH",
    help="Public limits of measured values, to put noise on them.",
)
@click.option(
    "--values-epsilon",
    type=float,
    metavar="E",
    help="Privacy of measured values; without it they are in the clear.",
)
@click.option("--budget", type=float, metavar="E", help="Limit of the ledger over all releases of this table.")
@click.option("--ledger", type=PATH, metavar="FILE", help="What was charged; by default beside the table.")
@click.option("--state", type=PATH, metavar="FILE", help="The run, to go on with; by default beside the table.")
@click.option("--ca", type=PATH, metavar="FILE", help="Certificates to trust.")
@click.option("--name", metavar="TEXT", help="What the service calls the run.")
@click.option(
    "--no-preflight",
    "look",
    flag_value=False,
    show_default=False,
    help="Do not print what the release would be good for.",
)
@click.option("--dry-run", is_flag=True, help="Stop after that; nothing is released.")
@click.option("--yes", "-y", is_flag=True, help="Release even where limits clip more than 5 % of a column.")
@click.option("--stop-on-error", is_flag=True, help="Stop when the objective raises, instead of answering: failed.")
@click.option("--quiet", "-q", is_flag=True, help="Print only the outcome, as JSON.")
def curate(
    data: str | os.PathLike[str],
    *,
    objective: str,
    server: str,
    token: str,
    epsilon: float,
    delta: float,
    bounds: Sequence[str] = (),
    radius: float = 25.0,
    neighbor: float = 1.0,
    asks: int | None = None,
    direction: Literal["maximize", "minimize"] = "maximize",
    policy: str = "GPUCB",
    values: Sequence[float] | None = None,
    values_epsilon: float | None = None,
    budget: float | None = None,
    ca: str | os.PathLike[str] | None = None,
    ledger: str | os.PathLike[str] | None = None,
    state: str | os.PathLike[str] | None = None,
    name: str | None = None,
    look: bool = True,
    dry_run: bool = False,
    yes: bool = False,
    stop_on_error: bool = False,
    quiet: bool = False,
    console: Console | None = None,
) -> Curated | None:
    """Release a table, measure the rows that a service asks for, and return the one to use.

    Its arguments are the options; ``look`` is whether to print what the release would be good for, before it is made.

    >>> import io, tempfile
    >>> file, screen = Path(tempfile.mkdtemp()) / "people.csv", Console(file=io.StringIO(), width=100)
    >>> _ = file.write_text("name,age\\n" + "".join(f"person {i},{20 + i}\\n" for i in range(30)))
    >>> curate(
    ...     file,
    ...     objective="math:fsum",
    ...     server="https://bo.example",
    ...     token="sf_...",
    ...     epsilon=3.0,
    ...     delta=1e-5,
    ...     bounds=["age=18:90"],
    ...     asks=5,
    ...     dry_run=True,
    ...     console=screen,
    ... )
    >>> screen.file.getvalue().splitlines()[1]
    '30 rows of 1 features, 0.0 % clipped, smallest singular value ...'
    """
    say = _printer(console or Console(), quiet)
    limits = bounds_from(bounds)
    records = read(data, list(limits))
    measure = _Measure(find(objective), records, stop_on_error)
    _check_address(server)
    if ":" in policy:
        raise ValueError(f"the service runs policies that it knows by name, got {policy!r}")
    chosen = policy_named(policy).__name__
    if ca is not None and not Path(ca).is_file():
        raise ValueError(f"there is no file {ca}")
    mechanism = GaussianRelease(
        epsilon=epsilon, delta=delta, bounds=list(limits.values()), radius=radius, neighbor=neighbor
    )
    asks = min(30, len(records.rows)) if asks is None else asks
    if asks > len(records.rows):
        raise ValueError(f"{asks} asks need as many rows; there are {len(records.rows)}")
    outputs = _outputs(values, values_epsilon, delta)
    holding: dict[str, Any] = {"asks": asks, "outputs": outputs, "direction": direction}
    shares = Curator(
        records.values, None, mechanism, **holding
    ).clipped()  # bad input is refused before any file is made
    charges, kept = Path(ledger or f"{data}.ledger.jsonl"), Path(state or f"{data}.curator.jsonl")
    if not kept.exists() and (found := _beyond(records.columns, limits, shares)):
        if not (yes or dry_run):
            raise ValueError(f"{found}; nothing was released or charged. {_MISTYPED}")
        say(f"for your eyes only\n{found}\n")
    if dry_run or (look and not kept.exists()):
        looked = preflight(
            records.values, mechanism, lengthscale=radius / 3.0, asks=min(asks, 20, len(records.rows)), runs=4, rows=300
        )
        say(f"for your eyes only\n{looked}\n")
    if dry_run:
        return None
    total = budget if budget is not None else epsilon + (0.0 if outputs is None else outputs.epsilon)
    with Client(server, token=token, verify=True if ca is None else str(ca)) as client:
        if not kept.exists():
            client.health()  # is it there, and is it to be trusted? Nothing is charged before
        with (
            _in_words(charges, kept),
            Ledger(epsilon=total, delta=delta + (0.0 if outputs is None else outputs.delta), path=charges) as charged,
            Curator(records.values, None, mechanism, **holding, ledger=charged, path=kept) as curator,
        ):
            if curator.state != "closed":
                begun = curator.state != "new"
                release = curator.release()
                say(_statement(records, curator, charged, begun))
                remote = _remote(client, Path(f"{kept}.run"), curator, release, chosen, name)
                curator.close(_answered(remote, curator, measure, say))
            line = None if curator.chosen is None else records.lines[curator.chosen]
            result = Curated(line, measure.seen.get(curator.chosen), curator.answered, measure.failed)
    _finish(result, records, say, console or Console(), quiet)
    return result


_MISTYPED = (
    "Correct --bounds COLUMN=LOW:HIGH by what is publicly known of the column, not by its values; or give --yes to "
    "release it as it is"
)
# What of a state's header belongs to which options.
_OPTIONS = {
    "asks": "--asks",
    "data": "the table",
    "direction": "--direction",
    "mechanism": "--bounds, --epsilon, --delta, --radius or --neighbor",
    "outputs": "--values or --values-epsilon",
}


def _beyond(columns: Sequence[str], limits: Mapping[str, tuple[float, float]], shares: Any) -> str:
    """Which columns lie beyond their bounds for a large part; empty where none does."""
    parts = []
    for name, share in zip(columns, shares, strict=True):
        if share > CLIPPED:
            low, high = limits[name]
            parts.append(f"{100.0 * share:.1f} % of column {name} lie outside --bounds {name}={low:g}:{high:g}")
    return ", ".join(parts) + (" and would be clipped" if parts else "")


@contextlib.contextmanager
def _in_words(charges: Path, kept: Path) -> Iterator[None]:
    """Say what the options of the command can do where the parts it is made of speak of their own."""
    try:
        yield
    except BudgetSpent as error:
        raise BudgetSpent(
            f"{error}. Nothing was released. --budget is set by the first command for a table and holds for good; the "
            f"release that was made goes on with its own --state"
        ) from None
    except ValueError as error:
        words = str(error)
        if "belongs to another run" in words:
            keys = dict.fromkeys(re.findall(r"[(,] ?(\w+)[\w.\[\]]* was ", words))
            given = ", ".join(_OPTIONS.get(key, key) for key in keys)
            raise ValueError(
                f"{kept} holds a release that was made and paid for with other settings: {given}. Give the same to go "
                "on with it; another release needs another --state, and a --budget, set at the first, that allows both"
            ) from None
        if "a budget cannot be changed" in words:
            budget = words.partition("epsilon = ")[2].partition(",")[0]
            raise ValueError(
                f"{charges} was begun with another budget, and a budget cannot be changed: give --budget {budget}, and "
                "the same --delta"
            ) from None
        raise


class _Measure:
    """The objective, with what it measured."""

    def __init__(self, function: Callable[[dict[str, Any]], Any], records: Records, stop: bool) -> None:
        if not callable(function):
            raise ValueError(f"the objective must be a function of a row, got {type(function).__name__}")
        self.function, self.records, self.stop = function, records, stop
        self.seen: dict[int | None, float] = {}
        self.failed = 0

    def __call__(self, record: int) -> float | None:
        """Measure one record; None where that failed."""
        try:
            result = self.function(dict(self.records.rows[record]))
            value = math.nan if result is None else float(result)
            if math.isinf(value):
                raise ValueError("the objective returned an infinite value")
        except Exception as error:
            if self.stop:
                raise SurefootError(f"the objective raised {type(error).__name__}: {error}") from error
            value = math.nan
        if math.isnan(value):
            self.failed += 1
            return None
        self.seen[record] = value
        return value


def _answered(remote: RemoteRun, curator: Curator, measure: _Measure, say: Callable[[str], None]) -> Any:
    """Answer asks until there are no more, and return the closing message."""
    while True:
        try:
            ask: Ask = remote.ask()
        except (BudgetSpent, Conflict):  # no ask is left, or the run was closed before this process knew
            return remote.close()
        record = curator.accept(ask)
        waiting = any(pending.step == ask.step for pending, _ in curator.pending)
        value = measure(record) if waiting else None  # an answer that was lost is sent again, not measured again
        remote.tell(curator.settle(ask, value))
        shown = "answered before" if not waiting else "failed" if value is None else number(value)
        say(f"{ask.step + 1:>{len(str(curator.asks))}}/{curator.asks}  line {measure.records.lines[record]}  {shown}")


def _remote(client: Client, place: Path, curator: Curator, release: Any, policy: str, name: str | None) -> RemoteRun:
    """The run at the service: the one that was begun, or a new one."""
    if place.exists():
        kept = loads(place.read_text(encoding="utf-8"))
        if (kept.get("server"), kept.get("run")) != (client.url, curator.run):
            raise ValueError(f"{place} names another run or service ({kept.get('server')}); use another --state")
        try:
            return client.outsourced(kept["id"])
        except NotFound:
            raise ValueError(
                f"{client.url} does not know this run any more; remove {place} to send the same release again, which "
                "costs nothing"
            ) from None
    # The seed is that of the run's public name: a release that is sent again is asked about as before, and what was
    # measured for it still answers.
    seed = int.from_bytes(hashlib.sha256(curator.run.encode()).digest()[:8])
    remote = client.outsource(curator.run if name is None else name, release, policy=policy, seed=seed)
    write_atomically(place, dumps({"schema": 1, "server": client.url, "id": remote.id, "run": curator.run}))
    return remote


def _statement(records: Records, curator: Curator, ledger: Ledger, begun: bool) -> str:
    """What is protected, in the words and units of the table's owner."""
    guarantee = curator.guarantee
    changes = ", ".join(
        f"{name} {'any' if math.isinf(change) else number(change)}"
        for name, change in zip(records.columns, guarantee.features, strict=True)
    )
    stays = len(records.rows[0]) - len(records.columns)
    lines = [
        f"{'going on with' if begun else 'releasing'} {len(records.rows)} rows of {len(records.columns)} columns"
        + (f"; {stays} columns stay here" if stays else ""),
        str(guarantee),
        f"one protected change, if only that column changes: {changes}",
        f"budget: {ledger.spent():.4g} of {ledger.epsilon:g} spent",
    ]
    return "\n".join(lines) + "\n"


def _finish(result: Curated, records: Records, say: Callable[[str], None], console: Console, quiet: bool) -> None:
    if quiet:
        facts: Mapping[str, Any] = {"line": result.line, "value": result.value, "answered": result.answered}
        console.print(dumps(facts), markup=False, highlight=False, soft_wrap=True)
        return
    if result.line is None:
        say("\nnothing could be measured, so there is no row to use")
        return
    row = records.rows[records.lines.index(result.line)]
    known = "" if result.value is None else f", measured {number(result.value)}"
    say(f"\nuse line {result.line}{known}: {dumps(row)}")


def _outputs(values: Sequence[float] | None, epsilon: float | None, delta: float) -> OutputRelease | None:
    if (values is None) != (epsilon is None):
        raise ValueError("noise on measured values needs both their public limits and an epsilon of its own")
    return None if values is None or epsilon is None else OutputRelease(bounds=values, epsilon=epsilon, delta=delta)


def _check_address(server: str) -> None:
    parts = urlsplit(server)
    if parts.scheme == "http" and parts.hostname not in _AT_HOME:
        raise ValueError(f"{server} is not encrypted: answers and the token would be read on the way; use https://")


def _printer(console: Console, quiet: bool) -> Callable[[str], None]:
    def say(text: str) -> None:
        if not quiet:
            console.print(text, markup=False, highlight=False, soft_wrap=True)

    return say


def _interrupted(given: Mapping[str, Any]) -> str:
    return f"interrupted; go on with\n{again()}"


command = offer(
    curate,
    """Find the best row of a private table with an optimizer that runs elsewhere.

    Columns with public limits are released once, with noise that gives (epsilon, delta)-differential privacy; the
    service asks for rows by number, and the objective measures them here. No row, no name of a column, a file or a
    function leaves this machine. Measured values do, in the clear unless --values-epsilon is given. The same command
    again goes on where it was stopped.

    Where limits would clip more than 5 % of a column, which is mostly a mistyped limit, it stops before anything is
    charged, unless --yes is given. That share is for you alone: like all that is printed here it depends on the data,
    and no guarantee covers it or what you do because of it.

    \b
    Examples:
      surefoot curate patients.csv \\
        --objective tests.py:measure \\
        --server https://bo.example \\
        --epsilon 3 --delta 1e-5 \\
        --bounds age=18:90 \\
        --bounds bmi=15:45
      surefoot curate loans.csv \\
        --objective desk:roi \\
        --server https://bo.example \\
        --epsilon 2 --delta 1e-6 \\
        --bounds limits.toml --dry-run
    """,
    interrupted=_interrupted,
)
