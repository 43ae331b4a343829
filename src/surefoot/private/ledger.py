"""The ledger of privacy: what was released, what it has cost, and a budget that is never exceeded.

A release is charged *before* it is made. ``charge`` returns when the line is on disk; a release that fails or crashes
afterwards stays charged, since nobody can say what became known of it.

>>> ledger = Ledger(epsilon=2.0, delta=1e-5)
>>> for step in range(3):
...     ledger.charge(GaussianEvent(4.0), step=step)
>>> round(ledger.spent(), 3)
1.698
>>> ledger.charge(GaussianEvent(4.0), step=3)
>>> ledger.charge(GaussianEvent(4.0), step=4)
Traceback (most recent call last):
...
surefoot.errors.BudgetSpent: this release would bring epsilon to 2.258, above the budget of 2; 4 releases cost ...

With a path the ledger is a file of JSON lines, and every line carries a hash of itself and the line before: a changed,
removed or inserted line is noticed when the file is opened. Lines cut off at the *end* leave a shorter, valid chain:
keep ``ledger.head``, or a copy of the file, where the writer of the ledger cannot reach it. The file holds noise
multipliers and the notes, no data.

A charge that cannot be written, on a full disk for one, is refused and closes the ledger: nothing may be released, and
the file holds what it held. A file that was deleted or replaced meanwhile is refused too, and the process that charged
it makes no new one in its place: that would be a fresh budget.
"""

from __future__ import annotations

import hashlib
import math
import os
import threading
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn, Self

from surefoot.errors import BudgetSpent, SurefootError
from surefoot.loop.durable import uninterrupted
from surefoot.loop.journal import Journal, dumps
from surefoot.moved import renamed
from surefoot.private import accounting
from surefoot.private.accounting import Event, GaussianEvent, StatedEvent

__all__ = ["Charge", "Ledger"]
__getattr__ = renamed(__name__, {"Entry": "Charge"})

_KINDS: dict[str, type[GaussianEvent] | type[StatedEvent]] = {"gaussian": GaussianEvent, "stated": StatedEvent}
Scalar = str | int | float | bool | None
_charged: set[str] = set()  # files that this process has charged


@dataclass(frozen=True)
class Charge:
    """One line of a ledger.

    Attributes
    ----------
    event : GaussianEvent or StatedEvent
        What was released.
    note : dict
        What the caller wanted to remember.

    >>> Charge(GaussianEvent(1.0), {"step": 3}).note
    {'step': 3}
    """

    event: Event
    note: dict[str, Scalar] = field(default_factory=dict)


class Ledger:
    """A budget (ε, δ) and all releases charged to it; several mechanisms and receivers may share one.

    Parameters
    ----------
    epsilon, delta : float
        The budget. Receivers may pool what they got, so all releases compose, whoever got them.
    path : path, optional
        The file; without one the ledger lives as long as the object.
    method : {"pld", "rdp", "moments"}
        How releases compose, see :mod:`surefoot.private.accounting`.

    An existing file continues where it ended; its budget must be the one given. One process writes at a time.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "ledger.jsonl"
    >>> with Ledger(epsilon=1.0, delta=1e-5, path=path) as ledger:
    ...     ledger.charge(GaussianEvent(5.0), receiver="modeler 1")
    >>> again = Ledger(epsilon=1.0, delta=1e-5, path=path)
    >>> again.entries[0].note, again.would_exceed(GaussianEvent(5.0))
    ({'receiver': 'modeler 1'}, True)
    >>> again.close()
    """

    def __init__(
        self, *, epsilon: float, delta: float, path: str | os.PathLike[str] | None = None, method: str = "pld"
    ) -> None:
        if not 0.0 < epsilon < math.inf:
            raise ValueError(f"epsilon must be positive and finite, got {epsilon}")
        if not 0.0 < delta < 1.0:
            raise ValueError(f"delta must lie strictly between 0 and 1, got {delta}")
        if method not in accounting.METHODS:
            raise ValueError(f"method must be one of {', '.join(accounting.METHODS)}, got {method!r}")
        self.epsilon, self.delta, self.method = float(epsilon), float(delta), method
        self.path = None if path is None else Path(path)
        self._place = "" if path is None else os.path.abspath(path)
        self._entries: list[Charge] = []
        self._spent = 0.0
        self._writing = threading.Lock()
        self._closed = False
        self._process = os.getpid()
        header = {"ledger": "privacy", "epsilon": self.epsilon, "delta": self.delta, "composition": method}
        self._head = _hash("", header)
        self._journal: Journal | None = None
        if self.path is not None:
            journal = Journal(self.path)
            found, charges = journal.read()
            self._check_budget(found, header)
            if not charges and self._place in _charged:
                raise SurefootError(
                    f"{self.path} was deleted after it was charged; a new one would spend the budget again. Put it back"
                )
            lines = journal.open({**header, "hash": self._head})
            self._journal = journal
            try:
                self._replay(lines)
            except BaseException:
                self.close()
                raise

    def _check_budget(self, found: dict[str, Any] | None, header: dict[str, Any]) -> None:
        if found is None:
            return
        if found.get("ledger") != "privacy":
            raise ValueError(f"{self.path} is not a privacy ledger")
        kept = {name: found.get(name) for name in header}
        if found.get("hash") != _hash("", kept):
            raise ValueError(f"{self.path}: line 1, the budget, was changed after it was written")
        if kept != header:
            raise ValueError(
                f"{self.path} has the budget epsilon = {kept['epsilon']}, delta = {kept['delta']}, composed by "
                f"{kept['composition']!r}; a budget cannot be changed, open the ledger with the same one"
            )

    def _replay(self, lines: list[dict[str, Any]]) -> None:
        for number, line in enumerate(lines, start=2):
            body = {name: value for name, value in line.items() if name != "hash"} if isinstance(line, dict) else {}
            head = _hash(self._head, body)
            if not body or line.get("hash") != head:
                raise ValueError(
                    f"{self.path}: line {number} was changed, or one before it removed; the chain is broken"
                )
            kind = _KINDS[body["kind"]]
            self._entries.append(Charge(kind(**body["event"]), body["note"]))
            self._head = head
        self._spent = self._composed()

    def _composed(self, *more: Event) -> float:
        events = [*(entry.event for entry in self._entries), *more]
        return accounting.epsilon(events, self.delta, method=self.method)

    @property
    def entries(self) -> tuple[Charge, ...]:
        """All releases charged so far, in order."""
        return tuple(self._entries)

    @property
    def head(self) -> str:
        """The hash of the last line; whoever knows it can tell whether lines were cut off the end."""
        return self._head

    def spent(self) -> float:
        """Return ε of everything charged so far, at the budget's δ."""
        return self._spent

    def remaining(self) -> float:
        """Return what is left of ε. Releases compose by less than their sum, so more than this may still fit."""
        return max(0.0, self.epsilon - self._spent)

    def would_exceed(self, *events: Event) -> bool:
        """Return whether charging this, or all of these together, would exceed the budget."""
        return self._composed(*events) > self.epsilon

    def charge(self, event: Event, **note: Scalar) -> None:
        """Write down a release that is about to be made.

        Raises ``BudgetSpent``, and changes nothing, where it would exceed the budget.

        Parameters
        ----------
        event : GaussianEvent or StatedEvent
            What will be released.
        **note : str, int, float, bool or None
            Anything to remember; it is stored in the clear, so no data.
        """
        if not isinstance(event, GaussianEvent | StatedEvent):
            raise TypeError(f"expected a GaussianEvent or a StatedEvent, got {event!r}")
        _check_note(note)
        with self._writing:
            if self._closed:
                raise SurefootError("this ledger is closed")
            if os.getpid() != self._process:  # a forked copy, which knows nothing of what the other one charges
                raise SurefootError("this ledger was opened by another process: copies would spend one budget twice")
            after = max(self._spent, self._composed(event))  # a finer grid of the accountant gives nothing back
            if not after <= self.epsilon:
                raise BudgetSpent(
                    f"this release would bring epsilon to {after:.4g}, above the budget of {self.epsilon:g}; "
                    f"{len(self._entries)} releases cost {self._spent:.4g} so far (delta = {self.delta:g})"
                )
            kind = "gaussian" if isinstance(event, GaussianEvent) else "stated"
            body = {"kind": kind, "event": _plain(event), "note": note}
            head = _hash(self._head, body)
            with uninterrupted():
                if self._journal is not None:
                    try:
                        self._journal.append({**body, "hash": head})
                    except BaseException:
                        self._close()  # whether it is charged, only reading the file again tells
                        raise
                    _charged.add(self._place)
                self._entries.append(Charge(event, note))
                self._head, self._spent = head, after

    def close(self) -> None:
        """Stop writing and let others write; spent and entries can still be read."""
        with self._writing:
            self._close()

    def _close(self) -> None:
        self._closed = True
        if self._journal is not None:
            self._journal.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return (
            f"Ledger(epsilon={self.epsilon:g}, delta={self.delta:g}, entries={len(self._entries)}, "
            f"spent={self._spent:.4g})"
        )

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("a ledger cannot be copied or pickled: two copies would spend one budget twice")


def _plain(event: Event) -> dict[str, float | int]:
    """The fields of an event as plain numbers."""
    return {name: int(value) if name == "count" else float(value) for name, value in asdict(event).items()}


def _check_note(note: dict[str, Any]) -> None:
    for name, value in note.items():
        if value is not None and type(value) not in (str, int, float, bool):
            raise TypeError(f"a note holds strings, numbers, truth values or None; {name} is a {type(value).__name__}")
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError(f"a note holds finite numbers only, {name} is {value}")


def _hash(before: str, body: dict[str, Any]) -> str:
    """SHA-256 of the hash of the line before and of this line."""
    return hashlib.sha256(f"{before}\n{dumps(body)}".encode()).hexdigest()
