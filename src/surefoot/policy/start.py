"""Before the rule takes over: design points, or random moves, while too little is known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from surefoot.domain import Domain
from surefoot.loop.trials import Trials
from surefoot.loop.types import Proposal
from surefoot.policy.view import View

__all__ = ["InitialDesign", "MoveStart", "SobolStart", "enough"]

Array = NDArray[np.float64]


class InitialDesign(Protocol):
    """What is measured before the rule takes over."""

    def propose(self, view: View, /) -> Proposal | None:
        """Return what to measure first; None: the rule takes over."""


def enough(trials: Trials, initial: int) -> bool:
    """Tell whether the rule may take over: so many points are measured or under way, and not all of them failed.

    >>> from surefoot import Box, RandomSearch
    >>> enough(RandomSearch(Box([(0.0, 1.0)])).trials, 1)
    False
    """
    nothing = initial > 0 and all(o.failed for o in trials.observations)
    return len(trials.observations) + len(trials.pending) >= initial and not nothing


class SobolStart:
    """Design points while there are too few measurements, or none that succeeded.

    Parameters
    ----------
    initial : int
        How many measurements the rule waits for; points told unasked count.
    lead : callable, optional
        Returns points (k, d) to measure before the design.

    >>> SobolStart(3).initial
    3
    """

    def __init__(self, initial: int, lead: Callable[[], Array] | None = None) -> None:
        self.initial, self.lead = initial, lead
        self._design: Array | None = None
        self._of: Domain | None = None  # where the design lies

    def propose(self, view: View) -> Proposal | None:
        """Return the next point of the design that is free."""
        trials, domain, step = view.trials, view.domain, view.step
        if enough(trials, self.initial):
            return None
        # As much of the design as is needed now: a longer one begins in the same way.
        wanted = min(max(self.initial, 16), max(1024, 2 << step.bit_length()))
        if self._design is None or len(self._design) < wanted or self._of is not domain:
            self._design = domain.design(wanted, view.stream("initial", 0))
            if self.lead is not None:
                self._design = np.vstack([self.lead(), self._design])
            self._of = domain
        blocked = {x.tobytes() for x, _ in view.blocked(sparing=True)}
        later = domain.sample(64, view.stream("initial", step + 1))
        for x in [*self._design[step:], *later]:
            if x.tobytes() not in blocked:
                return Proposal(x, note={"initial": True})
        return None  # a tiny domain, nearly all of it taken: the rule finds what is left


class MoveStart:
    """The start of a journey, if it is to be measured; then random moves while too little is known.

    Parameters
    ----------
    initial : int
        How many stops the rule waits for.

    >>> MoveStart(3).initial
    3
    """

    def __init__(self, initial: int) -> None:
        self.initial = initial

    def propose(self, view: View) -> Proposal | None:
        """Return the start, or a random move."""
        journey = view.trials.journey
        if not journey.begun:
            return Proposal(stops=[journey.place], note={"start": True, "initial": True})
        moves = journey.options()
        values = [value for o in view.trials.observations for _, value in o.stops()]
        if len(values) < self.initial or (self.initial > 0 and all(value is None for value in values)):
            rank = int(view.stream("initial", view.step).integers(len(moves)))
            return Proposal(stops=moves[rank], note={"initial": True})
        return None
