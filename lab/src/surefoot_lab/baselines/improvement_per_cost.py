"""Expected improvement per unit of cost: the usual answer to unequal costs, with nothing to prove about it.

Snoek, Larochelle & Adams 2012, section 3.2, divide the expected improvement by the expected run time. Here costs are
known, one per candidate.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike

from surefoot.domain import Candidates
from surefoot.loop.policy import Proposal
from surefoot.policy.legacy import ModelOptions
from surefoot.policy.legacy_improvement import LegacyExpected

__all__ = ["ImprovementPerCost"]


class ImprovementPerCost(LegacyExpected):
    """Measure the candidate of largest expected improvement per unit of cost.

    Parameters
    ----------
    domain : Candidates
        Where points may lie.
    cost : array of shape (n,)
        Positive costs of the candidates.
    **options
        ``gp``, ``initial``, ``confidence``, ``seed``, ``repeats``, ``journal``.

    >>> from surefoot import GP
    >>> policy = ImprovementPerCost(Candidates([0.0, 50.0]), cost=[10.0, 1.0], gp=GP(), seed=0)
    >>> policy.ask().index  # equally unknown: the cheap one
    1
    """

    domains = (Candidates,)

    def __init__(self, domain: Candidates, *, cost: ArrayLike, **options: Unpack[ModelOptions]) -> None:
        super().__init__(domain, **options)
        given = np.array(cost, dtype=np.float64)
        if given.shape != (domain.size,) or not (np.isfinite(given) & (given > 0)).all():
            raise ValueError(f"cost must be {domain.size} positive finite numbers, got {cost!r}")
        self.cost = given

    def _rule(self, step: int, context: Mapping[str, Any]) -> Proposal:
        with self._hallucinated() as belief:
            logarithm = self._acquisition(belief, step).value(*self._everywhere(belief))
            return self._best_candidate(logarithm - np.log(self.cost), step)
