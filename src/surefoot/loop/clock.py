"""A clock for policies on functions that change: every query and every measurement has a time.

``ask(time=t)`` gives the time. Without one, an ask takes place one unit after the latest time that was heard of, and so
does a measurement that was not asked for and says nothing of its time; a measurement that was asked for takes place
when its query was asked for, unless its :class:`~surefoot.loop.types.Outcome` says when. Time never runs backwards: an
ask or an unasked measurement before the latest time is an error, and so is an outcome before its query. Queries under
way may come back in any order.

A policy has a clock if its constructor makes one; rules and beliefs read the time from it.

>>> from surefoot import Box, RandomSearch
>>> class Dated(RandomSearch):
...     "Random search that writes down when."
...     context = ("time",)
...     def __init__(self, domain, **options):
...         super().__init__(domain, **options)
...         self.clock = Clock(self.trials)
>>> policy = Dated(Box([(0.0, 1.0)]), seed=0)
>>> policy.ask().time, policy.ask(time=2.5).time, policy.time
(1.0, 2.5, 2.5)
"""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Mapping
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from surefoot.loop.trials import Trials
from surefoot.loop.types import Observation, Outcome, Query

__all__ = ["Clock", "Measurement"]

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


class Clock:
    """What time it is, and when things took place.

    Parameters
    ----------
    trials : Trials
        What was asked and told.

    Attributes
    ----------
    now : float
        The time that is spoken of: that of the ask in hand, or of the answer.
    heard : float or None
        The latest time of a measurement, failed ones included; None before the first.
    measured : list of Measurement
        The successful ones, in the order in which they were told.
    in_time : list of Measurement
        The same, in the order of time.
    failed : list of (time, Observation)
        The failed runs, in the order in which they were told.

    >>> from surefoot import TVGPUCB, Box
    >>> TVGPUCB(Box([(0.0, 1.0)]), seed=0).clock.at(3)
    3.0
    """

    def __init__(self, trials: Trials) -> None:
        self.trials = trials
        self.now = 0.0
        self.heard: float | None = None
        self.measured: list[Measurement] = []
        self.in_time: list[Measurement] = []
        self.failed: list[tuple[float, Observation]] = []
        self._first = math.inf  # the earliest time of a measurement

    @property
    def latest(self) -> float | None:
        """The latest time that was asked for or measured at; None before the first."""
        asked = self.trials.queries[-1].time if self.trials.queries else None
        return max((t for t in (asked, self.heard) if t is not None), default=None)

    @property
    def began(self) -> float:
        """The first time that was asked for or measured at; infinite before the first."""
        queries = self.trials.queries
        return min(self._first, cast(float, queries[0].time) if queries else math.inf)

    def at(self, given: Any = None) -> float:
        """Return the time of an ask: as given, or one unit after the latest."""
        latest = self.latest
        if given is None:
            return 1.0 if latest is None else latest + 1.0
        if isinstance(given, bool) or not isinstance(given, (int, float, np.integer, np.floating)):
            raise TypeError(f"time must be a number, got {given!r}")
        if not math.isfinite(given):
            raise ValueError(f"time must be finite, got {given!r}")
        if latest is not None and given < latest:
            raise ValueError(f"time runs backwards: asked for time {given} after time {latest}")
        return float(given)

    def dated(self, context: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return what an ask was given, with its time; from now on that is the one spoken of."""
        self.now = self.at(context.get("time"))
        return {**context, "time": self.now}

    def speak_of(self, given: float | None = None) -> None:
        """Speak of a time that is not over, by default the latest; of 0 before the first."""
        latest = self.latest
        self.now = 0.0 if given is None and latest is None else self.at(latest if given is None else given)

    def check(self, query: Query | None, outcome: Outcome) -> None:
        """Refuse an outcome before its query, or an unasked one before the latest time."""
        since = self.latest if query is None else query.time
        if outcome.time is not None and since is not None and outcome.time < since:
            what = "the latest is" if query is None else "its query was asked for"
            raise ValueError(f"time runs backwards: measured at time {outcome.time}, but {what} {since}")

    def hear(self, made: Observation) -> None:
        """Write down when a measurement was made."""
        outcome, time = made.outcome, made.outcome.time
        if time is None:
            time = self.at() if made.id is None else cast(float, self.trials.queries[made.id].time)
        self.heard = time if self.heard is None else max(time, self.heard)
        self._first = min(time, self._first)
        if outcome.value is None:
            self.failed.append((time, made))
            return
        noise = math.nan if outcome.noise is None else outcome.noise
        found = Measurement(time, len(self.measured), made.x, made.index, outcome.value, noise)
        self.measured.append(found)
        insort(self.in_time, found, key=lambda m: m.place)

    def between(self, first: int, last: int) -> list[Measurement]:
        """Return measurements first, ..., last − 1 in the order in which they were told."""
        return self.measured[max(first, 0) : max(last, 0)]
