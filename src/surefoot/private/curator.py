"""The curator: the party that holds the data, releases a private copy once, and measures what it is asked to.

>>> import numpy as np
>>> from surefoot.private import Ask, GaussianRelease, Ledger
>>> table = np.random.default_rng(0).random((50, 2))
>>> curator = Curator(
...     table,
...     lambda row: float(row.sum()),
...     GaussianRelease(epsilon=3.0, delta=1e-5, bounds=[(0.0, 1.0)] * 2),
...     asks=10,
...     ledger=Ledger(epsilon=4.0, delta=1e-5),
... )
>>> release = curator.release()
>>> release.rows.shape, curator.state
((50, 2), 'released')
>>> answer = curator.answer(Ask(release.run, step=0, index=7))
>>> curator.answer(Ask(release.run, step=0, index=7)) == answer  # asked again: the stored answer, no second measurement
True

Only the four messages of :mod:`surefoot.private.messages` cross. Rows are released in a secret random order, which the
curator keeps. The ledger is charged *before* anything is drawn; what crashes in between stays charged. With ``path=``
the release, every ask and every answer are on disk before they cross, so that a curator that was killed goes on where
it was: it releases the same rows and gives the same answers. That file is private: it holds the order of the rows.

No attribute or method returns a private row, a projection or a singular value, and no message of an error holds a
value.
"""

from __future__ import annotations

import base64
import hashlib
import math
import os
import secrets
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, NoReturn, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot.errors import BudgetSpent, SurefootError
from surefoot.experimental import experimental
from surefoot.loop.durable import uninterrupted
from surefoot.loop.journal import Journal
from surefoot.private.accounting import GaussianEvent, epsilon
from surefoot.private.guarantee import Guarantee
from surefoot.private.ledger import Ledger
from surefoot.private.mechanisms import Mechanism
from surefoot.private.messages import Answer, Ask, Close, Release, read
from surefoot.private.outputs import OutputRelease
from surefoot.private.scaling import table

__all__ = ["Curator"]

Array = NDArray[np.float64]
Objective = Callable[[Array], float | None] | Sequence[float] | Array
IN_THE_CLEAR = "measured values are answered in the clear: the transcript of a run is not differentially private"


@experimental
class Curator:
    """Holds private rows, releases them once through a mechanism, and answers asks.

    Parameters
    ----------
    data : array of shape (n, d)
        The private rows, in their own units.
    objective : callable, array of shape (n,) or None
        ``objective(row)`` measures one record; or the known value of each record; None: values are brought by
        :meth:`settle`. NaN or None is a failed measurement.
    mechanism : Mechanism
        What is released.
    asks : int
        How many asks are answered.
    outputs : OutputRelease, optional
        Noise on the answers; None: values are answered in the clear, which no guarantee covers.
    repeats : bool
        Whether a row may be asked for again.
    direction : {"maximize", "minimize"}
        What the owner wants; values cross with the sign under which larger is better.
    ledger : Ledger, optional
        The budget, shared by all releases and modelers of these data. Charged before the release.
    path : path, optional
        The curator's private file.
    run : str, optional
        Name of the run; a random one by default.

    >>> from surefoot.private import PublishedProjection
    >>> Curator([[1.0], [2.0]], None, PublishedProjection(epsilon=1.0, delta=0.1, dimension=1), asks=1)
    Curator(state='new', 0 of 1 asks answered)
    """

    def __init__(
        self,
        data: ArrayLike,
        objective: Objective | None,
        mechanism: Mechanism,
        *,
        asks: int,
        outputs: OutputRelease | None = None,
        repeats: bool = False,
        direction: Literal["maximize", "minimize"] = "maximize",
        ledger: Ledger | None = None,
        path: str | os.PathLike[str] | None = None,
        run: str | None = None,
    ) -> None:
        self.__rows = table(data)
        if not isinstance(mechanism, Mechanism):
            raise TypeError(f"mechanism must be a Mechanism, got {type(mechanism).__name__}")
        for name, given, kind in (("outputs", outputs, OutputRelease), ("ledger", ledger, Ledger)):
            if given is not None and not isinstance(given, kind):
                raise TypeError(f"{name} must be a {kind.__name__} or None, got {type(given).__name__}")
        if not isinstance(asks, (int, np.integer)) or isinstance(asks, bool) or asks < 1:
            raise ValueError(f"asks must be a positive whole number, got {asks!r}")
        if not repeats and asks > len(self.__rows):
            raise ValueError(f"{asks} asks need as many rows unless repeats=True; there are {len(self.__rows)}")
        if direction not in ("maximize", "minimize"):
            raise ValueError(f"direction must be 'maximize' or 'minimize', got {direction!r}")
        self.mechanism, self.outputs, self.ledger = mechanism, outputs, ledger
        self.asks, self.repeats, self.direction = int(asks), bool(repeats), direction
        self.__objective = _objective(objective, len(self.__rows))
        self.__order: NDArray[np.intp] | None = None
        self.__release: Release | None = None
        self.__answers: dict[int, float | None] = {}
        self.__asked: dict[int, int] = {}
        self.__closed: Close | None = None
        self.__lock = threading.RLock()
        self.__measuring: dict[int, threading.Lock] = {}
        self.__journal = None if path is None else Journal(path, direction=direction)
        self.run = run if run is not None else secrets.token_hex(8)
        self.__open(run)

    # -- looking -----------------------------------------------------------------------------------------------------

    @property
    def state(self) -> str:
        """``"new"``, ``"released"``, ``"serving"`` or ``"closed"``."""
        if self.__closed is not None:
            return "closed"
        if self.__release is None:
            return "new"
        return "serving" if self.__asked else "released"

    @property
    def guarantee(self) -> Guarantee:
        """What a run protects: the release, the answers, or both."""
        n, d = self.__rows.shape
        found = self.mechanism.guarantee(n, d)
        if self.outputs is None:
            return replace(found, assumptions=(*found.assumptions, IN_THE_CLEAR))
        text = f"values are within [{self.outputs.lower:g}, {self.outputs.upper:g}] or clipped; failures are not hidden"
        event = self.mechanism.event(n, d)
        if found.epsilon is None or found.delta is None or event is None:
            return replace(found, assumptions=(*found.assumptions, text))
        # Basic composition of what the sampler certifies; exact accounting beside it.
        delta = found.delta + self.outputs.delta
        return replace(
            found,
            epsilon=found.epsilon + self.outputs.epsilon,
            delta=delta,
            protects=f"{found.protects}, with the measured value of that row",
            analytic=epsilon([event, self.outputs.event(asks=self.asks, repeats=self.repeats)], delta),
            assumptions=(*found.assumptions, text),
        )

    @property
    def pending(self) -> list[tuple[Ask, int]]:
        """Asks without an answer yet, each with the number of the record in the owner's own table."""
        open_ = [step for step in self.__asked if step not in self.__answers]
        return [(Ask(self.run, step, self.__asked[step]), self._record(self.__asked[step])) for step in open_]

    @property
    def answered(self) -> int:
        """How many asks were answered."""
        return len(self.__answers)

    def clipped(self) -> Array:
        """Return the share of rows that the public bounds or the radius change in each column, shape (d,).

        For the owner's eyes, before anything is released: a large share is mostly a mistyped bound. It depends on the
        data, no guarantee covers it, and bounds that are chosen after it are not public any more; correct them by what
        is known of the column.

        >>> from surefoot.private import GaussianRelease
        >>> mechanism = GaussianRelease(epsilon=3.0, delta=1e-5, bounds=[(18.0, 60.0)])
        >>> Curator([[30.0], [50.0], [70.0], [85.0]], None, mechanism, asks=2).clipped()
        array([0.5])
        """
        return self.mechanism.preprocessing.clipped(self.__rows)

    @property
    def chosen(self) -> int | None:
        """Number of the record, in the owner's own table, that the modeler named when it closed the run."""
        return None if self.__closed is None or self.__closed.index is None else self._record(self.__closed.index)

    # -- the protocol ------------------------------------------------------------------------------------------------

    def release(self) -> Release:
        """Charge the ledger and return the release; the same one however often it is called.

        Raises
        ------
        BudgetSpent
            The ledger does not allow it. Nothing was drawn.
        """
        with self.__lock:
            if self.__release is None:
                self._charge()
                n = len(self.__rows)
                rows = self.mechanism.transform(self.__rows)
                order = self.mechanism._noise.permutation(n)
                event = {"event": "released", "rows": _packed(rows[order]), "order": order.tolist()}
                self.__write({**event, "width": rows.shape[1]})
            return cast(Release, self.__release)

    def accept(self, ask: Ask) -> int:
        """Register an ask durably and return the number of its record in the owner's own table.

        For measurements that take time: bring the value with :meth:`settle`. The same ask may come again.
        """
        with self.__lock:
            self._check(ask)
            if ask.step not in self.__asked:
                self.__write({"event": "asked", "step": ask.step, "index": ask.index})
            return self._record(ask.index)

    def settle(self, ask: Ask, value: float | None) -> Answer:
        """Answer an accepted ask with its measured value, in the owner's sign; None or NaN for a failed measurement.

        An ask that was answered keeps its answer: nothing is measured or drawn twice.
        """
        with self.__lock:
            if ask.step not in self.__answers:
                self._check(ask)
                crossing = self._crossing(value)
                self.accept(ask)
                self.__write({"event": "answered", "step": ask.step, "value": crossing})
            return self._stored(ask)

    def answer(self, ask: Ask) -> Answer:
        """Measure the row of an ask and return the answer; the stored one if it was answered before.

        An exception of the objective passes through and leaves the ask open.
        """
        with self.__lock:
            if ask.step in self.__answers:
                return self._stored(ask)
            record = self.accept(ask)
            alone = self.__measuring.setdefault(ask.step, threading.Lock())
        if self.__objective is None:
            raise SurefootError("this curator has no objective: measure the record and bring its value with settle()")
        with alone:  # the same ask from two threads: the second waits for the answer of the first
            if ask.step in self.__answers:
                return self._stored(ask)
            return self.settle(ask, self.__objective(self.__rows[record].copy(), record))

    def close(self, message: Close) -> None:
        """End the run: the modeler names the row to use, and nothing further is answered."""
        with self.__lock:
            if message.run != self.run:
                raise ValueError(f"this is run {self.run!r}, the message is for another")
            if self.__release is None:
                raise SurefootError("nothing was released yet")
            if message.index is not None and message.index >= len(self.__rows):
                raise ValueError(f"index must be below {len(self.__rows)}, got {message.index}")
            if self.__closed is not None and self.__closed != message:
                raise ValueError("this run was closed with another message")
            if self.__closed is None:
                self.__write({"event": "closed", "index": message.index})

    def handle(self, wire: Mapping[str, Any]) -> dict[str, Any] | None:
        """Take an ask or a close in its wire form, and return the wire form of the answer, if there is one.

        What goes back is refused if noise was simulated.
        """
        message = read(wire)
        if isinstance(message, Ask):
            if self.simulated:
                raise SurefootError("this run is simulated: its answers do not cross to another party")
            return self.answer(message).to_wire()
        if isinstance(message, Close):
            self.close(message)
            return None
        raise ValueError(f"a curator takes an ask or a close, got a message {type(message).__name__.lower()!r}")

    @property
    def simulated(self) -> bool:
        """Whether any noise of this run is reproducible."""
        return self.mechanism.simulated or (self.outputs is not None and self.outputs.simulated)

    def stop(self) -> None:
        """Let go of the file, so that another process may go on."""
        if self.__journal is not None:
            self.__journal.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"Curator(state={self.state!r}, {self.answered} of {self.asks} asks answered)"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("a curator holds private data and cannot be copied or stored; use path=")

    # -- inside ------------------------------------------------------------------------------------------------------

    def _charge(self) -> None:
        """Charge the whole run: the release, and the answers if they are noised."""
        if self.ledger is None:
            return
        if self.simulated:
            raise SurefootError("simulated noise protects nothing: a ledger is for real releases")
        n, d = self.__rows.shape
        event = self.mechanism.event(n, d)
        if event is None:
            raise SurefootError(
                f"{self.mechanism.name} has no guarantee that a ledger could account for: leave ledger out"
            )
        note = {"run": self.run, "mechanism": self.mechanism.name}
        if self.outputs is None:
            self.ledger.charge(event, what="rows", **note)
            return
        values = self.outputs.event(asks=self.asks, repeats=self.repeats)
        if isinstance(event, GaussianEvent):
            # Gaussian mechanisms compose to a Gaussian mechanism: one entry, charged as a whole or not at all.
            both = math.hypot(1.0 / event.noise_multiplier, math.sqrt(values.count) / values.noise_multiplier)
            self.ledger.charge(GaussianEvent(1.0 / both), what="rows and answers", **note)
            return
        if self.ledger.would_exceed(event, values):  # before the first of the two entries is written
            raise BudgetSpent(
                f"rows and answers together would exceed the budget of {self.ledger.epsilon:g}; nothing was charged"
            )
        self.ledger.charge(event, what="rows", **note)
        self.ledger.charge(values, what="answers", **note)

    def _check_charged(self) -> None:
        """Refuse a ledger that does not know of the release: a fresh one would spend the budget again."""
        if self.ledger is None or self.__release is None:
            return
        if not any(entry.note.get("run") == self.run for entry in self.ledger.entries):
            raise SurefootError(
                f"run {self.run!r} was released, and this ledger has no charge for it: it is another one, or it was "
                "deleted or replaced by an older copy; put the ledger of the run back"
            )

    def _check(self, ask: Ask) -> None:
        if ask.run != self.run:
            raise ValueError(f"this is run {self.run!r}, the ask is for another")
        if self.__release is None:
            raise SurefootError("nothing was released yet")
        if ask.index >= len(self.__rows):
            raise ValueError(f"index must be below {len(self.__rows)}, got {ask.index}")
        if ask.step in self.__asked:
            if self.__asked[ask.step] != ask.index:
                raise ValueError(f"step {ask.step} was asked for another row")
            return
        if self.__closed is not None:
            raise SurefootError("this run is closed")
        if ask.step >= self.asks or len(self.__asked) >= self.asks:
            raise BudgetSpent(f"{self.asks} asks are answered in this run, numbered from 0; got step {ask.step}")
        used = {index for step, index in self.__asked.items() if self.__answers.get(step, 0.0) is not None}
        if not self.repeats and ask.index in used:
            raise ValueError(f"row {ask.index} was asked for before, and this run answers each row once")

    def _stored(self, ask: Ask) -> Answer:
        self._check(ask)
        return Answer(self.run, ask.step, self.__answers[ask.step])

    def _crossing(self, value: float | None) -> float | None:
        """What crosses instead of a measured value."""
        value = _number(value)
        if value is None or math.isnan(value):
            return None
        if math.isinf(value):
            raise ValueError("a measured value must be finite, or NaN for a failed measurement")
        if self.outputs is not None:
            value = self.outputs.answer(value, self.outputs.scale(asks=self.asks, repeats=self.repeats))
        return -float(value) if self.direction == "minimize" else float(value)

    def _record(self, index: int) -> int:
        if self.__order is None:
            raise SurefootError("nothing was released yet")
        return int(self.__order[index])

    def __open(self, run: str | None) -> None:
        """Become the writer of the file, and take over what is in it."""
        if self.__journal is None:
            return
        found, _ = self.__journal.read()
        if found is not None and run is None:
            self.run = str(found.get("run"))
        digest = hashlib.sha256(self.__rows.tobytes()).hexdigest()
        header = {
            "curator": self.mechanism.name,
            "run": self.run,
            "data": digest,
            "mechanism": self.mechanism.public(),
            "outputs": None if self.outputs is None else self.outputs.public(),
            "asks": self.asks,
            "repeats": self.repeats,
            "simulated": self.simulated,
        }
        events = self.__journal.open(header)
        try:
            if os.name == "posix":
                self.__journal.path.chmod(0o600)
            for event in events:
                self.__apply(event)
            self._check_charged()
        except BaseException:
            self.stop()  # others may write it
            raise

    def __write(self, event: dict[str, Any]) -> None:
        with uninterrupted():
            if self.__journal is not None:
                self.__journal.append(event)
            self.__apply(event)

    def __apply(self, event: Mapping[str, Any]) -> None:
        kind = event["event"]
        if kind == "released":
            n, d = self.__rows.shape
            self.__order = np.array(event["order"], dtype=np.intp)
            spread = 0.0 if self.outputs is None else self.outputs.scale(asks=self.asks, repeats=self.repeats)
            self.__release = Release(
                run=self.run,
                rows=np.frombuffer(base64.b64decode(event["rows"]), dtype="<f8").reshape(n, event["width"]),
                noise=self.mechanism.spread(d),
                asks=self.asks,
                repeats=self.repeats,
                output_noise=spread**2,
                parameters={**self.mechanism.public(), "outputs": self.outputs and self.outputs.public()},
                guarantee=self.guarantee,
                simulated=self.simulated,
            )
        elif kind == "asked":
            self.__asked[int(event["step"])] = int(event["index"])
        elif kind == "answered":
            self.__answers[int(event["step"])] = event["value"]
        elif kind == "closed":
            self.__closed = Close(self.run, event["index"])
        else:
            raise ValueError(f"unknown event {kind!r} in a curator's file")


def _number(value: Any) -> float | None:
    """A measured value as a number; the message of a refusal does not show it."""
    try:
        return None if value is None else float(value)
    except (TypeError, ValueError, OverflowError):
        raise TypeError(f"a measured value must be a number or None, got a {type(value).__name__}") from None


def _packed(rows: Array) -> str:
    return base64.b64encode(rows.astype("<f8").tobytes()).decode("ascii")


def _objective(objective: Objective | None, n: int) -> Callable[[Array, int], float | None] | None:
    """The objective as a function of a row and its number."""
    if objective is None:
        return None
    if callable(objective):
        measure = objective
        return lambda row, record: _number(measure(row))
    try:
        values = np.array(objective, dtype=np.float64)
    except (TypeError, ValueError):  # NumPy's message would show a value
        raise TypeError("known values must be numbers, one for each row; NaN for a failed measurement") from None
    if values.shape != (n,):
        raise ValueError(f"known values must be one for each of the {n} rows, got shape {values.shape}")
    return lambda row, record: float(values[record])
