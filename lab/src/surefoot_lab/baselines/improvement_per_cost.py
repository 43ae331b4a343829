"""Expected improvement per unit of cost: the usual answer to unequal costs, with nothing to prove about it.

Snoek, Larochelle & Adams 2012, section 3.2, divide the expected improvement by the expected run time. Here costs are
known, one per candidate.
"""

from __future__ import annotations

from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot.arguments import not_negative
from surefoot.domain import Candidates
from surefoot.loop.types import Proposal
from surefoot.policy.base import ModelOptions, ModelPolicy
from surefoot.policy.improvement import Improvement, LogImprovement
from surefoot.policy.view import View

__all__ = ["ImprovementPerCost"]


class _PerCost(Improvement):
    """Maximize log EI − log cost."""

    def __init__(self, margin: float, cost: NDArray[np.float64]) -> None:
        super().__init__(LogImprovement, margin)
        self.cost = cost

    def propose(self, view: View) -> Proposal:
        with view.hallucinated() as belief:
            score = self.acquisition(view, belief)
            return view.highest(lambda at: score.value(*belief.predict(at)) - np.log(self.cost[at]), belief)


class ImprovementPerCost(ModelPolicy):
    """Measure the candidate of largest expected improvement per unit of cost.

    Parameters
    ----------
    domain : Candidates
        Where points may lie.
    cost : array of shape (n,)
        Positive costs of the candidates.
    margin : float
        How much better than the best estimate a value must be to count.
    **options
        ``gp``, ``initial``, ``confidence``, ``seed``, ``repeats``, ``journal``.

    >>> from surefoot import GP
    >>> policy = ImprovementPerCost(Candidates([0.0, 50.0]), cost=[10.0, 1.0], gp=GP(), seed=0)
    >>> policy.ask().index  # equally unknown: the cheap one
    1
    """

    domains = (Candidates,)

    def __init__(
        self, domain: Candidates, *, cost: ArrayLike, margin: float = 0.0, **options: Unpack[ModelOptions]
    ) -> None:
        super().__init__(domain, **options)
        given = np.array(cost, dtype=np.float64)
        if given.shape != (domain.size,) or not (np.isfinite(given) & (given > 0)).all():
            raise ValueError(f"cost must be {domain.size} positive finite numbers, got {cost!r}")
        self.cost, self.margin = given, not_negative(margin, "margin")
        self.rule = _PerCost(self.margin, given)
