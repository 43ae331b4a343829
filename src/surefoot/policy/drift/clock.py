"""A clock for policies on functions that change: every query and every measurement has a time.

``ask(time=t)`` gives the time. Without one, an ask takes place one unit after the latest time that was heard of, and so
does a measurement that was not asked for and says nothing of its time; a measurement that was asked for takes place
when its query was asked for, unless its :class:`~surefoot.loop.types.Outcome` says when. Time never runs backwards: an
ask or an unasked measurement before the latest time is an error, and so is an outcome before its query. Queries under
way may come back in any order.

The latest measurements are kept in a list that a subclass trims, so that the work per event does not grow with a run.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Unpack, cast

import numpy as np
from numpy.typing import NDArray

from surefoot.belief.posterior import Posterior
from surefoot.domain import Box, Candidates, Domain, Space
from surefoot.errors import NotSupported
from surefoot.loop.policy import Proposal
from surefoot.loop.types import Observation, Outcome, Query
from surefoot.loop.widths import Width
from surefoot.policy.legacy import ModelOptions
from surefoot.policy.legacy_ucb import LegacyGPUCB

__all__ = ["Measurement", "Tracking"]

Array = NDArray[np.float64]


class Measurement(NamedTuple):
    """A successful measurement; ``number`` counts them in the order in which they were told.

    >>> Measurement(3.5, 0, np.zeros(1), None, 1.0, math.nan).place
    (3.5, 0)
    """

    time: float
    number: int
    x: Array
    row: int | None
    value: float
    noise: float

    @property
    def place(self) -> tuple[float, int]:
        """Where it stands in the order of time."""
        return self.time, self.number


class Tracking(LegacyGPUCB):
    """GP-UCB with a clock; the base of policies that ask for the time.

    >>> from surefoot import Candidates
    >>> policy = Tracking(Candidates([0.0, 1.0]), seed=0)
    >>> policy.ask().time, policy.ask(time=2.5).time, policy.time
    (1.0, 2.5, 2.5)
    """

    domains: ClassVar[tuple[type[Domain], ...]] = (Box, Candidates, Space)
    context = ("time",)

    def __init__(self, domain: Domain, *, width: Width | None = None, **options: Unpack[ModelOptions]) -> None:
        super().__init__(domain, width=width, **options)
        if self.gp.samples or self.gp.members:
            raise NotSupported(f"{type(self).__name__} believes in one set of hyper-parameters: use GP(samples=0)")
        self._log: list[Measurement] = []  # in the order in which they were told; the oldest ones are let go
        self._gone = 0  # measurements that were let go of
        self._count = 0
        self._heard: float | None = None  # the latest time of a measurement
        self._began: float | None = None
        self._now = 0.0  # the time that is spoken of
        self._lost: deque[tuple[float, Observation]] = deque()  # failed runs

    # -- the clock ---------------------------------------------------------------------------------------------------

    @property
    def time(self) -> float | None:
        """The latest time that was asked for or measured at; None before the first."""
        asked = self._queries[-1].time if self._queries else None
        return max((t for t in (asked, self._heard) if t is not None), default=None)

    def _clock(self, context: Mapping[str, Any]) -> float:
        """The time of an ask: as given, or one unit after the latest."""
        given, latest = context.get("time"), self.time
        if given is None:
            return 1.0 if latest is None else latest + 1.0
        if isinstance(given, bool) or not isinstance(given, (int, float, np.integer, np.floating)):
            raise TypeError(f"time must be a number, got {given!r}")
        if not math.isfinite(given):
            raise ValueError(f"time must be finite, got {given!r}")
        if latest is not None and given < latest:
            raise ValueError(f"time runs backwards: asked for time {given} after time {latest}")
        return float(given)

    def _choose(self, step: int, context: Mapping[str, Any]) -> Proposal:
        self._now = self._clock(context)
        return super()._choose(step, context)

    def _query(self, proposal: Proposal, context: Mapping[str, Any]) -> Query:
        return super()._query(proposal, {**context, "time": self._clock(context)})

    def _check_outcome(self, query: Query | None, outcome: Outcome) -> None:
        since = self.time if query is None else query.time
        if outcome.time is not None and since is not None and outcome.time < since:
            what = "the latest is" if query is None else "its query was asked for"
            raise ValueError(f"time runs backwards: measured at time {outcome.time}, but {what} {since}")

    def _apply_told(self, id: int | None, x: Array, index: int | None, outcome: Outcome) -> None:
        time = outcome.time
        if time is None:
            time = self._clock({}) if id is None else cast(float, self._queries[id].time)
        super()._apply_told(id, x, index, outcome)
        made = self._observations[-1]
        self._heard = time if self._heard is None else max(time, self._heard)
        self._began = time if self._began is None else min(time, self._began)
        if outcome.value is None:
            self._lost.append((time, made))
            return
        noise = math.nan if outcome.noise is None else outcome.noise
        self._remember(Measurement(time, self._count, made.x, made.index, outcome.value, noise))

    def _remember(self, made: Measurement) -> None:
        self._log.append(made)
        self._count += 1

    def _successes(self) -> int:
        return self._count

    def _between(self, first: int, last: int) -> list[Measurement]:
        """Measurements first, ..., last − 1 in the order in which they were told."""
        return self._log[max(first - self._gone, 0) : max(last - self._gone, 0)]

    def _let_go(self, first: int) -> None:
        """Forget measurements before number ``first``; now and then, so that each costs O(1)."""
        if first - self._gone > max(64, len(self._log) // 2):
            del self._log[: first - self._gone]
            self._gone = first

    def _arrays(self, rows: Sequence[Measurement], *, times: bool = False) -> tuple[Array, Array, Array]:
        """Encoded points (n, e), with their times in one more column if wanted, values (n,) and noises (n,)."""
        X = self.domain.encode(np.array([m.x for m in rows]).reshape(len(rows), self.domain.dimension))
        if times:
            X = np.column_stack([X, np.array([m.time for m in rows])])
        return X, np.array([m.value for m in rows]), np.array([m.noise for m in rows])

    def _failures(self) -> list[Observation]:
        return [observation for _, observation in self._lost]

    def _best_of(self, rows: Sequence[Measurement], belief: Posterior, count: int) -> Array | None:
        """The points of highest mean among some measurements, shape (count, d)."""
        if not rows:
            return None
        X = np.array([m.x for m in rows])
        return cast(Array, X[np.argsort(-belief.mean(self.domain.encode(X)), kind="stable")[:count]])
