"""MaxiMin-GP-UCB: optimism about the worst case, without its adversary. A baseline for StableOpt.

Question: that of :mod:`surefoot.policy.robust.stable_opt`.

Rule: x_t = argmax over x of min over δ in Δ(x) of ucb(x + δ) is measured and reported. Where a choice is not a point
that can be measured (a group, a design beside unknown parameters), its member of lowest **ucb** is measured; StableOpt
measures that of lowest lcb, and that is the whole difference.

Reference: Bogunovic, Scarlett, Jegelka & Cevher 2018, section 5. Guarantee: none; a choice whose neighbors were never
measured keeps looking good, because its own measurement says little about them. ``certificate``, ``accuracy`` and
``finished`` are StableOpt's, about the point that is reported.

Authors' options, cost of one ask: those of StableOpt.
"""

from __future__ import annotations

from typing import Unpack

import numpy as np
from numpy.typing import NDArray

from surefoot.belief.posterior import Posterior
from surefoot.domain import Domain
from surefoot.domain.perturbation import Perturbation
from surefoot.domain.ranking import argmax
from surefoot.domain.sets import Region, Sets
from surefoot.loop.widths import Width
from surefoot.policy.legacy import ModelOptions
from surefoot.policy.robust.stable_opt import Report, WorstCasePolicy

__all__ = ["MaxiMinGPUCB"]

Array = NDArray[np.float64]
Rows = NDArray[np.intp]


class MaxiMinGPUCB(WorstCasePolicy):
    """Measure and report the choice whose worst case has the highest upper bound; see the module's page.

    Parameters
    ----------
    domain : Box, Candidates or Space
        Where designs may lie.
    perturbation : Perturbation
        What an adversary does to the chosen design.
    report : {"last", "current", "own_time"}
        Which of the choices is recommended; the authors' is the last.
    **options
        Those of :class:`~surefoot.policy.robust.stable_opt.StableOpt`.

    >>> from surefoot import Ball, Candidates
    >>> policy = MaxiMinGPUCB(Candidates(np.linspace(0.0, 1.0, 11)), perturbation=Ball(0.1), seed=0)
    >>> query = policy.ask()
    """

    def __init__(
        self,
        domain: Domain,
        *,
        perturbation: Perturbation,
        report: Report = "last",
        accuracy: float | None = None,
        width: Width | None = None,
        **options: Unpack[ModelOptions],
    ) -> None:
        super().__init__(domain, perturbation=perturbation, report=report, accuracy=accuracy, width=width, **options)

    def _shut(self, sets: Sets, blocked: NDArray[np.bool_]) -> NDArray[np.bool_]:
        return blocked if sets.itself(0) is not None else super()._shut(sets, blocked)

    def _sampled(self, sets: Sets, center: int, free: Rows, lower: Array, upper: Array, step: int) -> int:
        itself = sets.itself(center)
        if itself is not None:
            return itself
        return int(free[argmax(-upper[free], rng=self.stream("adversary", step))])

    def _preferred(self, region: Region, posterior: Posterior, width: float, center: Array) -> Array:
        if self._same_domain(region):
            return region.centers.encode(center[None])
        return self._lowest_points(region, self._bound(posterior, width), center)
