"""GP-UCB: measure where the upper confidence bound is highest.

Question: where is the maximum of an expensive, noisy function?

Rule: x_t = argmax μ_{t−1}(x) + β_t^(1/2) σ_{t−1}(x). With several points under way, ``ask(n)`` is GP-BUCB: pending
points are hallucinated at their mean, so the standard deviation knows about them (Desautels et al. 2014).

Reference: Srinivas, Krause, Kakade & Seeger 2010, Algorithm 1. Lines are those of Algorithm 2, the same, in Bogunovic's
thesis (2019).

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

from surefoot.belief.protocol import Belief
from surefoot.domain import Box, Candidates, Domain, Paths, Space
from surefoot.loop.widths import Width, given_or, usual
from surefoot.policy.acquisition import UpperBound
from surefoot.policy.base import ModelOptions, ModelPolicy
from surefoot.policy.moves import MoveBelief
from surefoot.policy.rule import Pointwise
from surefoot.policy.view import View

__all__ = ["GPUCB", "UpperBound", "UpperConfidence"]


class UpperConfidence(Pointwise):
    """GP-UCB, line 2: x_t = argmax μ_{t−1}(x) + β_t^(1/2) σ_{t−1}(x)."""

    def __init__(self, width: Width) -> None:
        self.width = width

    def acquisition(self, view: View, belief: Belief, ahead: int = 0) -> UpperBound:
        return UpperBound(view.deviations(self.width, belief, ahead))

    def level(self, moves: MoveBelief, belief: Belief) -> float:
        return belief.gp.mean


class GPUCB(ModelPolicy):
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

    >>> from surefoot import Box
    >>> policy = GPUCB(Box([(0.0, 1.0)]), seed=0)
    >>> for _ in range(8):
    ...     query = policy.ask()
    ...     policy.tell(query, -(query.x[0] - 0.3) ** 2)
    >>> abs(policy.recommend().x[0] - 0.3) < 0.05
    np.True_
    """

    width: Width

    domains = (Box, Candidates, Space, Paths)
    doubts = True
    treats = True

    def __init__(self, domain: Domain, *, width: Width | None = None, **options: Unpack[ModelOptions]) -> None:
        super().__init__(domain, **options)
        self.width = given_or(width, usual(domain.size, self.confidence))
        self.rule = UpperConfidence(self.width)
