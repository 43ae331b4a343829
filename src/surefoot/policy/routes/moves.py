"""The old base of rules that score moves."""

from __future__ import annotations

from typing import ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from surefoot.belief.posterior import Posterior
from surefoot.domain import Box, Candidates, Domain, Paths, Space
from surefoot.loop.policy import Proposal
from surefoot.policy.legacy import Acquisition, ModelPolicy
from surefoot.policy.moves import MoveBelief, best_moves

__all__ = ["MoveRule"]

Array = NDArray[np.float64]
Indices = NDArray[np.intp]


class MoveRule(ModelPolicy):
    """Base of the rules for points that also score the moves of a vehicle.

    Unless a subclass says otherwise, its acquisition is a greedy rule: stop by stop, given the stops before.

    >>> from surefoot import GP, GPUCB, SE, Dives, Paths
    >>> line = Paths(np.arange(9.0)[:, None], Dives((9,), 2), start=4, budget=4)
    >>> policy = GPUCB(line, gp=GP(SE(2.0), noise=1e-4), seed=0)
    >>> policy.tell([3.0], 1.0)  # unasked: it pulls the vehicle to the left
    >>> policy.tell([5.0], -1.0)
    >>> query = policy.ask()
    >>> query.note["stops"]
    [3, 2]
    >>> policy.tell(query, [1.0, 0.5])
    """

    domains: ClassVar[tuple[type[Domain], ...]] = (Box, Candidates, Space, Paths)

    def _move(self, moves: Indices, step: int) -> Proposal:
        with self._hallucinated() as belief:  # stops that were missed
            posterior = cast(Posterior, belief)
            known = MoveBelief.of(posterior, self._seen(cast(Paths, self.domain).points), moves)
            scores, level = self._score_moves(known, posterior, step), self._level(known, posterior)
            best = np.flatnonzero(best_moves(scores, level))
        rank = 0 if best.size == 1 else int(self.stream("ties", step).integers(best.size))
        return Proposal(stops=moves[best[rank]])

    def _level(self, moves: MoveBelief, belief: Posterior) -> float | Array:
        """Return what all scores contain, one number or one for each stop (k,); nothing by default."""
        return 0.0

    def _score_moves(self, moves: MoveBelief, belief: Posterior, step: int) -> Array:
        """Return one score for each move (A,), or one for each of its stops given those before (A, k)."""
        columns = [
            self._at_stop(belief, step, stop).value(mean, std)
            for stop, (mean, std) in enumerate(zip(moves.mean.T, moves.prefix_std.T, strict=True))
        ]
        return np.column_stack(columns)

    def _at_stop(self, belief: Posterior, step: int, stop: int) -> Acquisition:
        """Return the acquisition of stop number ``stop`` of the next move; by default the same for all stops."""
        return self._acquisition(belief, step)
