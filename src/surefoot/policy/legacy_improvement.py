"""The old bases of improvement rules."""

from __future__ import annotations

from typing import Unpack

from surefoot.arguments import not_negative
from surefoot.belief.grid import GridPosterior
from surefoot.belief.posterior import Posterior
from surefoot.domain import Domain
from surefoot.policy.improvement import LogImprovement
from surefoot.policy.legacy import Acquisition, ModelOptions
from surefoot.policy.routes.moves import MoveRule

__all__ = ["LegacyExpected", "LegacyImprovement"]


class LegacyImprovement(MoveRule):
    """Base of the rules that want to improve on the best estimate: the margin and the target.

    >>> issubclass(LegacyExpected, LegacyImprovement)
    True
    """

    def __init__(self, domain: Domain, *, margin: float = 0.0, **options: Unpack[ModelOptions]) -> None:
        super().__init__(domain, **options)
        self.margin = not_negative(margin, "margin")

    def _target(self, belief: Posterior | GridPosterior) -> tuple[float, float]:
        """The value to beat, and the smallest standard deviation worth telling from zero."""
        count = len(self._data()[1])  # measured points come first; hallucinated ones are no values to beat
        if not count:
            best = belief.gp.mean
        elif isinstance(belief, GridPosterior):
            best = float(belief.mean[self._rows()].max())
        else:
            best = float(belief.mean(belief.X[:count]).max())
        return best + self.margin, 1e-10 * self._prior_std(belief.gp)


class LegacyExpected(LegacyImprovement):
    """Measure where the expected improvement over the best estimate is largest.

    Parameters
    ----------
    domain : Box, Candidates, Space or Paths
        Where points may lie. On ``Paths`` moves are chosen stop by stop.
    margin : float
        How much better than the best estimate a value must be to count, in the objective's units.
    **options
        ``gp``, ``initial``, ``confidence``, ``seed``, ``repeats``, ``journal``.

    """

    def _acquisition(self, belief: Posterior | GridPosterior, step: int) -> Acquisition:
        return LogImprovement(*self._target(belief))
