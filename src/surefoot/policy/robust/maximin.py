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

from typing import ClassVar, Unpack

from surefoot.domain import Domain
from surefoot.domain.perturbation import Perturbation
from surefoot.loop.widths import Width
from surefoot.policy.base import ModelOptions
from surefoot.policy.robust.stable_opt import UPPER, Report, StableOpt

__all__ = ["MaxiMinGPUCB"]


class MaxiMinGPUCB(StableOpt):
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
    >>> import numpy as np
    >>> policy = MaxiMinGPUCB(Candidates(np.linspace(0.0, 1.0, 11)), perturbation=Ball(0.1), seed=0)
    >>> query = policy.ask()
    """

    side: ClassVar[float] = UPPER

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
