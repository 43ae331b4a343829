"""Trials: what was asked and what came of it, as rules and beliefs read it.

A policy writes its trials, from its events; everything else only reads them. Values are as the rule sees them: higher
is better.

>>> from surefoot import Box, RandomSearch
>>> policy = RandomSearch(Box([(0.0, 1.0)]), seed=0)
>>> policy.tell(policy.ask(), 2.0)
>>> policy.trials.data()[1], len(policy.trials.pending)
(array([2.]), 0)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from surefoot.domain import Domain, Paths
from surefoot.errors import Exhausted, NotSupported
from surefoot.loop.direction import turned
from surefoot.loop.journey import Journey
from surefoot.loop.types import Observation, Outcome, Proposal, Query

__all__ = ["Trials"]

Array = NDArray[np.float64]
T = TypeVar("T")
Place = tuple[Array, int | None]


@dataclass
class Trials:
    """The trials of a policy, in the order of its events.

    Attributes
    ----------
    domain : Domain
        Where points lie.
    events : list
        What the policy consists of.
    queries : list of Query
        All that were asked.
    pending : mapping of id to Query
        Those neither told nor cancelled.
    told : mapping of id to Outcome
        What came of the others.
    reports : mapping of id to mapping of step to value
        Values on the way.
    observations : list of Observation
        All measurements in the order they were told, failed ones and unasked ones included.
    repeats : bool
        Whether a measured point may be asked again.
    direction : str
        Which way is better in the values that users see.
    held : callable, optional
        Returns the failed runs that are still held against their points; None: all of them are.
    """

    domain: Domain
    events: list[dict[str, Any]] = field(default_factory=list)
    queries: list[Query] = field(default_factory=list)
    pending: dict[int, Query] = field(default_factory=dict)
    told: dict[int, Outcome] = field(default_factory=dict)
    reports: dict[int, dict[int, float | None]] = field(default_factory=dict)
    observations: list[Observation] = field(default_factory=list)
    repeats: bool = True
    direction: str = "maximize"
    held: Callable[[], list[Observation]] | None = None

    def __post_init__(self) -> None:
        self._read = 0  # observations that the lists below hold
        self._failed: list[Observation] = []
        self._rows: list[int | None] = []  # of the candidates of successful measurements
        self._ends = [0]  # values of the first 0, 1, 2, ... successful measurements
        self._values: list[tuple[Array, float, float]] = []  # a point, its value, its noise
        self._data: tuple[Array, Array, Array] | None = None

    def _collect(self) -> None:
        """Take in what was told since the last call."""
        if self._read == len(self.observations):
            return
        for o in self.observations[self._read :]:
            if o.failed:
                self._failed.append(o)
                continue
            noise = np.nan if o.outcome.noise is None else o.outcome.noise
            self._values += [(x, y, noise) for x, y in o.stops() if y is not None]
            self._rows.append(o.index)
            self._ends.append(len(self._values))
        self._read, self._data = len(self.observations), None

    def facing(self, value: T) -> T:
        """Return what a rule sees of something told, or a user of something found: the way is the same."""
        faced: T = turned(value) if self.direction == "minimize" else value
        return faced

    @property
    def successes(self) -> int:
        """How many measurements did not fail."""
        self._collect()
        return len(self._ends) - 1

    def span(self, successes: int) -> int:
        """Return how many values the first successful measurements brought."""
        self._collect()
        return self._ends[min(successes, len(self._ends) - 1)]

    @property
    def failures(self) -> list[Observation]:
        """The failed runs that are still held against their points."""
        if self.held is not None:
            return self.held()
        self._collect()
        return list(self._failed)

    @property
    def unknown(self) -> list[Place]:
        """Points, with their candidate row, that were asked for and whose value is not known: pending or failed."""
        if self.domain.travels:
            stops = [x for query in self.pending.values() for x in query.x]
            stops += [x for o in self.observations for x, value in o.stops() if value is None]
            return [(x, None) for x in stops]
        return [(q.x, q.index) for q in self.pending.values()] + [(o.x, o.index) for o in self.failures]

    @property
    def rows(self) -> NDArray[np.intp]:
        """The candidates that were measured successfully, one entry for each measurement."""
        self._collect()
        return np.array(self._rows, dtype=np.intp)

    @property
    def journey(self) -> Journey:
        """Where the vehicle stands on ``Paths``."""
        if not self.domain.travels:
            raise NotSupported(f"there is no journey on a {type(self.domain).__name__}, only on Paths")
        return Journey.of(cast(Paths, self.domain), self.queries, self.told)

    def query_of(self, proposal: Proposal, context: Mapping[str, Any]) -> Query:
        """Return the next query, made of a proposal; it is not among :attr:`queries` yet."""
        domain, note, cost = self.domain, proposal.note, proposal.cost
        if proposal.stops is not None and domain.travels:
            stops = np.asarray(proposal.stops, dtype=np.intp)
            x = domain.enumerate()[stops]
            note = {"stops": stops.tolist(), **note}
            if cost is None and "start" not in note:
                journey = self.journey
                cost = journey.domain.price(journey.place, stops)
        elif proposal.x is not None:
            x = domain.validate(proposal.x)
        elif proposal.index is not None and domain.listed:
            x = domain.enumerate()[proposal.index]
        else:
            raise TypeError("a proposal needs a point, or the index of a candidate")
        time = context.get("time")
        return Query(
            id=len(self.queries),
            x=x,
            index=domain.row_of(x) if proposal.index is None and domain.listed else proposal.index,
            params=domain.params(x),
            fidelity=proposal.fidelity,
            time=None if time is None else float(time),
            cost=cost,
            note=note,
        )

    def find(self, query: Query | int | np.integer[Any]) -> Query:
        """Return the query with a number, or the one that another object stands for; a ValueError if there is none."""
        id = query.id if isinstance(query, Query) else int(query)
        if not 0 <= id < len(self.queries):
            raise ValueError(f"query {id} was not asked by this policy (it has asked {len(self.queries)})")
        known = self.queries[id]
        if isinstance(query, Query) and not np.array_equal(known.x, query.x):
            raise ValueError(f"query {id} of this policy is at {known.x.tolist()}, not at {query.x.tolist()}")
        return known

    def check_report(self, id: int, step: int) -> None:
        """Refuse a new report of a run that is closed, or of a step before the last one."""
        if id not in self.pending:
            raise ValueError(f"query {id} is closed; nothing more can be reported")
        reports = self.reports.get(id)
        if reports and step < max(reports):
            raise ValueError(f"step {step} of query {id} comes after step {max(reports)}")

    def waiting_at(self, x: Array) -> Query | None:
        """Return the oldest pending query at exactly this point."""
        return next((query for query in self.pending.values() if np.array_equal(query.x, x)), None)

    def last(self, query: Query) -> Outcome:
        """Return the outcome of a reported run: its last value."""
        reports = self.reports.get(query.id)
        if not reports:
            raise ValueError(f"query {query.id} needs a value: nothing was reported for it")
        return Outcome(reports[max(reports)])

    def best(self) -> tuple[Array, float]:
        """Return the point with the highest mean of its measured values, and that mean."""
        X, y, _ = self.data()
        _, inverse = np.unique(X, axis=0, return_inverse=True)
        means = np.bincount(inverse.ravel(), weights=y) / np.bincount(inverse.ravel())
        # Unique rows are sorted; the first *measured* of the best wins, whatever its coordinates.
        first = int(np.flatnonzero(means[inverse.ravel()] == means.max())[0])
        return X[first], float(means.max())

    def blocked(self, spared: Callable[[], bool], *, sparing: bool = False) -> list[Place]:
        """Return the points, with their candidate row, that must not be asked now.

        These are failed ones, with ``repeats=False`` measured ones, and pending ones where the policy spares these; or
        where the choice in hand does (``sparing``: it knows nothing of them), as long as another point is left. Failed
        points are let in again when nothing else would be left of a finite domain.
        """
        pending = [(query.x, query.index) for query in self.pending.values()]
        measured = [] if self.repeats else [(o.x, o.index) for o in self.observations if not o.failed]
        hard = (pending if pending and (sparing or spared()) else []) + measured
        failed = [(o.x, o.index) for o in self.failures]
        size = self.domain.size
        if size is not None:
            if self.domain.count(hard) >= size:
                if spared() or not self.repeats:
                    raise Exhausted(f"all {size} points are pending{'' if self.repeats else ' or measured'}")
                hard = measured
            if self.domain.count(hard + failed) >= size:
                failed = []
        return hard + failed

    def data(self) -> tuple[Array, Array, Array]:
        """Return points (n, d), values (n,) and noises (n,; NaN where not given) of successful measurements.

        Each measured stop of a move is one of them. The arrays are read-only.
        """
        self._collect()
        if self._data is None:
            X = np.array([x for x, _, _ in self._values]).reshape(len(self._values), self.domain.dimension)
            y, noise = (np.array([value[i] for value in self._values], dtype=np.float64) for i in (1, 2))
            for array in (X, y, noise):
                array.setflags(write=False)
            self._data = X, y, noise
        return self._data
