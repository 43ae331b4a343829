"""Rules: how the next point is chosen, given a view of what is known.

Most rules maximize an acquisition. Such a :class:`Pointwise` rule also chooses among the moves of a vehicle: stop by
stop, as it would choose a batch.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from surefoot.belief.protocol import Belief
from surefoot.loop.types import Proposal
from surefoot.policy.acquisition import Acquisition
from surefoot.policy.moves import MoveBelief, best_move
from surefoot.policy.view import View

__all__ = ["Pointwise", "Rule"]

Array = NDArray[np.float64]


class Rule(Protocol):
    """How the next point is chosen."""

    def propose(self, view: View, /) -> Proposal:
        """Return what to measure next."""


class Pointwise(ABC):
    """A rule that maximizes an acquisition."""

    @abstractmethod
    def acquisition(self, view: View, belief: Belief, ahead: int = 0) -> Acquisition:
        """Return the score to maximize, ``ahead`` points after the next one."""

    def propose(self, view: View) -> Proposal:
        """Return the point, or the move, that scores highest given the points under way."""
        with view.hallucinated() as belief:
            if view.domain.travels:
                return best_move(view, belief, self)
            return view.best(belief, self.acquisition(view, belief))

    def score_moves(self, view: View, moves: MoveBelief, belief: Belief) -> Array:
        """Return one score for each move (A,), or one for each of its stops given those before (A, k)."""
        columns = [
            self.acquisition(view, belief, stop).value(mean, std)
            for stop, (mean, std) in enumerate(zip(moves.mean.T, moves.prefix_std.T, strict=True))
        ]
        return np.column_stack(columns)

    def level(self, moves: MoveBelief, belief: Belief) -> float | Array:
        """Return what the scores of all moves contain, one number or one for each stop; nothing by default."""
        return 0.0
