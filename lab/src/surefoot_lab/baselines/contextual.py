"""Contextual GP-UCB with the time as context: one Gaussian process over points and times.

Question: where is the maximum now, if any kernel may say how points and times belong together?

Rule: x_t = argmax μ_{t−1}(x, t) + β_t^(1/2) σ_{t−1}(x, t) (Krause & Ong 2011). With the kernel of a point times
(1 − ε)^{|t−s|/2} it is TV-GP-UCB, choice by choice, without its economies: all measurements are kept, and a fresh
prediction at every candidate costs O(n²) each.
"""

from __future__ import annotations

from typing import Unpack

import numpy as np
from numpy.typing import NDArray

from surefoot.belief.gp import GP
from surefoot.domain import Candidates, Domain
from surefoot.loop.types import Recommendation
from surefoot.loop.widths import Width
from surefoot.policy.drift.clock import Tracking
from surefoot.policy.legacy import ModelOptions

__all__ = ["ContextualGPUCB"]

Array = NDArray[np.float64]


class ContextualGPUCB(Tracking):
    """GP-UCB over points and times, at the time that is asked for.

    Parameters
    ----------
    domain : Candidates
        Where points may lie.
    width : width, optional
        As in :class:`~surefoot.policy.ucb.gp_ucb.GPUCB`.
    **options
        ``gp``, here required: a process over the coordinates of a point and, after them, the time. And ``initial``,
        ``confidence``, ``seed``, ``repeats``, ``journal``.

    >>> from surefoot import GP, SE, Candidates, Matern
    >>> season = SE(0.3).on([0]) * Matern(1.5, 20.0).on([1])
    >>> policy = ContextualGPUCB(Candidates([0.0, 0.5, 1.0]), gp=GP(season, noise=0.01), seed=0)
    >>> for day in (1, 2, 3):
    ...     query = policy.ask(time=day)
    ...     policy.tell(query, 1.0 - query.x[0])
    >>> policy.recommend().x
    array([0.])
    """

    domains = (Candidates,)

    def __init__(self, domain: Domain, *, width: Width | None = None, **options: Unpack[ModelOptions]) -> None:
        super().__init__(domain, width=width, **options)
        if options.get("gp") is None:
            raise ValueError("ContextualGPUCB needs gp=, a process over the coordinates of a point and the time")

    def _over_all_candidates(self, gp: GP) -> bool:
        return False

    def _seen(self, X: Array) -> Array:
        E = self.domain.encode(X)
        return np.column_stack([E, np.full(len(E), self._now)])

    def _encoded(self) -> tuple[Array, Array, Array | None]:
        X, y, noise = self._arrays(self._log, times=True)
        return X, y, None if np.isnan(noise).all() else noise

    def _recommend(self) -> Recommendation:
        self._now = self.time or 0.0
        return self._most_promising(
            np.array([m.x for m in self._log]), "highest posterior mean now among measured points"
        )
