"""View: what a rule sees when it chooses a point, and how it says which one is best.

A rule takes a view and returns a proposal. It never asks which kind of domain or belief it has: a belief names points
as its domain does, and a domain searches itself for the best one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from surefoot.arguments import not_negative
from surefoot.belief.gp import GP
from surefoot.belief.protocol import EVERY, Belief
from surefoot.domain import Domain
from surefoot.domain.base import Found
from surefoot.loop.trials import Place, Trials
from surefoot.loop.types import Proposal
from surefoot.loop.widths import Width
from surefoot.policy.acquisition import Acquisition, BeliefScore
from surefoot.policy.surrogate import Stream, Surrogate

__all__ = ["View"]

Array = NDArray[np.float64]


class Blocked(Protocol):
    """Which points must not be chosen now, with their rows; ``sparing``: nor those that are pending."""

    def __call__(self, *, sparing: bool = False) -> Sequence[Place]: ...


@dataclass(frozen=True)
class View:
    """What a rule sees.

    Attributes
    ----------
    trials : Trials
        What was asked and told.
    surrogate : Surrogate
        The surrogate of the objective.
    step : int
        Number of the query to choose; keys the streams.
    stream : callable
        ``stream(purpose, step)``, the policy's keyed randomness.
    blocked : callable
        Returns the points that must not be chosen now, with their rows.
    context : mapping
        What the ask was given, such as ``time``.
    left : int
        How many queries of this ask are still to be chosen, this one included.
    """

    trials: Trials
    surrogate: Surrogate
    step: int
    stream: Stream
    blocked: Blocked = field(default=lambda *, sparing=False: ())
    context: Mapping[str, Any] = field(default_factory=dict)
    left: int = 1

    @property
    def domain(self) -> Domain:
        """Where points may be chosen: the domain of the trials, or the part of it that an ask was limited to."""
        part: Domain | None = self.context.get("fixed")
        return self.trials.domain if part is None else part

    @property
    def round(self) -> int:
        """The number t ≥ 1 of the next measurement, pending ones counted; on ``Paths`` of the next stop."""
        if self.domain.travels:
            return self.trials.journey.spent + 1
        return len(self.trials.observations) + len(self.trials.pending) + 1

    @property
    def spares_pending(self) -> bool:
        """Whether a point that is pending is not asked for a second time while another is left."""
        return not self.trials.repeats or self.surrogate.exact

    def believe(self) -> Belief:
        """Return the belief given all measurements."""
        return self.surrogate.believe()

    def hallucinated(self, noises: Sequence[float | None] | None = None) -> AbstractContextManager[Belief]:
        """Return the belief as if pending and failed points had been measured at their mean, until the block ends."""
        return self.surrogate.hallucinated(noises)

    def deviations(self, width: Width, belief: Belief, ahead: int = 0) -> float:
        """Return how many standard deviations a width reaches, ``ahead`` points after the next one."""
        count = self.round + ahead
        value = width(count, size=self.domain.size, dimension=self.domain.dimension, gain=belief.information_gain)
        return not_negative(value, f"the width in round {count}")

    def prior_std(self, gp: GP) -> float:
        """Return the standard deviation of the prior, at a corner of the domain."""
        std: float = float(gp.kernel.diag(self.domain.lower[None])[0]) ** 0.5
        return std

    @property
    def measured(self) -> Any:
        """The points of all successful measurements that are not forgotten, as a belief names them."""
        rows = self.surrogate.rows
        return self.domain.address(rows.places(), rows.candidates() if self.domain.listed else None)

    def spread(self, count: int, rng: np.random.Generator) -> Any:
        """Return points that stand for the domain: all candidates, or a design and what was measured or is pending."""
        if self.domain.listed:
            return EVERY
        parts = [self.domain.encode(self.domain.design(count, rng)), self.measured]
        parts += [self.domain.encode(x[None]) for x, _ in self.trials.unknown]
        return np.concatenate(parts)

    def hints(self, *, imagined: bool = False) -> Array | None:
        """Return where bounds dip, encoded: at what was measured, or is hallucinated; None where points are listed."""
        if self.domain.listed:
            return None
        X = [self.surrogate.rows.places(), *(x[None] for x, _ in (self.trials.unknown if imagined else ()))]
        E = self.domain.encode(np.concatenate(X))
        return E if len(E) else None

    def incumbents(self, belief: Belief, count: int = 3) -> Array | None:
        """Return the measured points of highest posterior mean: good places to start a search."""
        X = self.surrogate.rows.places()
        if not len(X):
            return None
        return X[np.argsort(-belief.expected(self.domain.address(X)), kind="stable")[:count]]

    def best(self, belief: Belief, acquisition: Acquisition, *, purpose: str | None = None) -> Proposal:
        """Return the point where an acquisition is highest."""
        return self.highest(BeliefScore(belief, acquisition), belief, purpose=purpose)

    def highest(self, score: Any, belief: Belief, *, purpose: str | None = None) -> Proposal:
        """Return the point where a score is highest; the search starts near the best points of a belief."""
        found = self.search(score, seeds=None if self.domain.listed else self.incumbents(belief), purpose=purpose)
        return Proposal(found.x) if found.row is None else Proposal(index=found.row)

    def search(self, score: Any, *, seeds: Array | None = None, purpose: str | None = None) -> Found:
        """Return where the domain finds a score highest, blocked points left out; ``purpose`` names the stream."""
        rng = self.stream(purpose or ("ties" if self.domain.listed else "maximize"), self.step)
        return self.domain.maximize(score, rng=rng, seeds=seeds, exclude=self.domain.excluding(self.blocked()))

    def named(self, proposal: Proposal) -> Any:
        """Return the proposed point as a belief names it."""
        if proposal.index is not None:
            return np.array([proposal.index])
        return self.domain.address(np.asarray(proposal.x, dtype=np.float64)[None])

    def everywhere(self, belief: Belief) -> tuple[Array, Array]:
        """Return mean and standard deviation at all candidates."""
        return belief.predict(EVERY)
