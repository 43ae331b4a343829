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

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot.domain import Domain
from surefoot.loop.journey import Journey
from surefoot.loop.types import Observation, Outcome, Query

__all__ = ["Trials"]

Array = NDArray[np.float64]
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

    >>> Trials(None).data()
    Traceback (most recent call last):
    ...
    AttributeError: 'NoneType' object has no attribute 'dimension'
    """

    domain: Domain
    events: list[dict[str, Any]] = field(default_factory=list)
    queries: list[Query] = field(default_factory=list)
    pending: dict[int, Query] = field(default_factory=dict)
    told: dict[int, Outcome] = field(default_factory=dict)
    reports: dict[int, dict[int, float | None]] = field(default_factory=dict)
    observations: list[Observation] = field(default_factory=list)

    @property
    def successes(self) -> int:
        """How many measurements did not fail."""
        return sum(not o.failed for o in self.observations)

    @property
    def failures(self) -> list[Observation]:
        """The failed ones."""
        return [o for o in self.observations if o.failed]

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
        return np.array([o.index for o in self.observations if not o.failed], dtype=np.intp)

    @property
    def journey(self) -> Journey:
        """Where the vehicle stands on ``Paths``."""
        return Journey.of(self.domain, self.queries, self.told)

    def data(self) -> tuple[Array, Array, Array]:
        """Return points (n, d), values (n,) and noises (n,; NaN where not given) of successful measurements.

        Each measured stop of a move is one of them.
        """
        noises = [np.nan if o.outcome.noise is None else o.outcome.noise for o in self.observations]
        told = zip(self.observations, noises, strict=True)
        good = [(x, y, noise) for o, noise in told if not o.failed for x, y in o.stops() if y is not None]
        X = np.array([x for x, _, _ in good]).reshape(len(good), self.domain.dimension)
        return X, np.array([y for _, y, _ in good], dtype=np.float64), np.array([v for *_, v in good], dtype=np.float64)
