"""GP-UCB: measure where the upper confidence bound is highest.

Question: where is the maximum of an expensive, noisy function?

Rule: x_t = argmax μ_{t−1}(x) + β_t^(1/2) σ_{t−1}(x). With several points under way, ``ask(n)`` is GP-BUCB: pending
points are hallucinated at their mean, so the standard deviation knows about them (Desautels et al. 2014).

Reference: Srinivas, Krause, Kakade & Seeger 2010, Algorithm 1.

Guarantee: on a finite domain, with the true prior and the width ``Finite(1 − δ)``, with probability at least 1 − δ for
all T: R_T ≤ √(C₁ T β_T γ_T), C₁ = 8/log(1 + σ⁻²) for k(x, x) ≤ 1.

Authors' options: β_t of the theorem scaled down by 5 in their experiments. Differences: bounds are never loosened or
intersected; the width is a separate object, by default the theorem's on finite domains and two standard deviations on
boxes and mixed spaces, where the theorem's constants are unknown.

Cost of one ask: O(n M) on M candidates (incremental); on a box one fit plus about 50 batched gradient evaluations,
O(n²) each.
"""

from __future__ import annotations

from typing import Unpack

import numpy as np
from numpy.typing import NDArray

from surefoot.belief.grid import GridPosterior
from surefoot.belief.posterior import Posterior
from surefoot.domain import Domain
from surefoot.loop.widths import Width, given_or, usual
from surefoot.policy.legacy import Acquisition, ModelOptions
from surefoot.policy.moves import MoveBelief
from surefoot.policy.routes.moves import MoveRule
from surefoot.policy.ucb.gp_ucb import UpperBound

__all__ = ["LegacyGPUCB"]

Array = NDArray[np.float64]


class LegacyGPUCB(MoveRule):
    """Measure where the upper confidence bound is highest.

    Parameters
    ----------
    domain : Box, Candidates, Space or Paths
        Where points may lie. On ``Paths`` moves are chosen stop by stop, which is GP-BUCB.
    width : width, optional
        Standard deviations above the mean, per round; see :mod:`surefoot.widths`. None: ``Finite(confidence)`` on
        finite domains, ``Constant(2.0)`` elsewhere.
    **options
        ``gp``, ``initial``, ``confidence``, ``seed``, ``repeats``, ``journal``.

    """

    def __init__(self, domain: Domain, *, width: Width | None = None, **options: Unpack[ModelOptions]) -> None:
        super().__init__(domain, **options)
        self.width = given_or(width, usual(domain.size, self.confidence))

    def _acquisition(self, belief: Posterior | GridPosterior, step: int) -> Acquisition:
        return UpperBound(self._deviations(self.width, self._round(), belief))

    def _level(self, moves: MoveBelief, belief: Posterior) -> float | Array:
        return belief.gp.mean

    def _at_stop(self, belief: Posterior, step: int, stop: int) -> Acquisition:
        return UpperBound(self._deviations(self.width, self.journey.spent + stop + 1, belief))
