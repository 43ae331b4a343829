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
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from rich.console import Console

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


def curate(
    data: str | os.PathLike[str],
    *,
    objective: str,
    server: str,
    token: str,
    epsilon: float,
    delta: float,
    bounds: Sequence[str],
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

    Parameters
    ----------
    data : path
        The private table, a CSV file with a header.
    objective : str
        ``MODULE:FUNCTION`` or ``FILE.py:FUNCTION``; takes a row as a dict and returns a number, None where it failed.
    server, token : str
        The service; anything but this machine must be spoken to over HTTPS.
    epsilon, delta : float
        Guarantee of the release.
    bounds : sequence of str
        Public limits, see :func:`~surefoot.cli.records.bounds_from`; columns without any stay here.
    radius, neighbor : float
        What bounds are scaled to, and the protected change of one row after scaling (infinite: any).
    asks : int, optional
        How many rows are measured at most; by default 30, or all of them where there are fewer.
    direction : {"maximize", "minimize"}
        Which way is better; the service does not learn it.
    policy : str
        Which policy the service runs.
    values, values_epsilon : pair of float and float, optional
        Public limits of measured values and the ε of noise on them, at the same δ; without them values are answered in
        the clear.
    budget : float, optional
        The ε of the ledger, over all releases of this table; by default what this release takes.
    ca : path, optional
        Certificates to trust, instead of the system's.
    ledger, state : path, optional
        By default beside the table.
    name : str, optional
        What the service calls the run; by default a random word.
    look : bool
        Print what the release would be good for, before it is made.
    dry_run : bool
        Stop there: nothing is charged, released or sent.
    yes : bool
        Release even where the bounds clip more than 5 % of a column, which is refused otherwise, before anything is
        charged: it is mostly a mistyped bound, and a release cannot be taken back.
    stop_on_error : bool
        Stop when the objective raises, the ask unanswered, instead of answering that the measurement failed.
    quiet : bool
        Print only the outcome, as JSON.
    console : rich.console.Console, optional
        Where to print.

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
            keys = words.partition("(its ")[2].partition(" differ)")[0].split(", ")
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
