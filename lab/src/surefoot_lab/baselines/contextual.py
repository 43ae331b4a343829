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

from surefoot.belief.pinned import with_column
from surefoot.domain import Candidates, Domain
from surefoot.loop.clock import Clock
from surefoot.loop.types import Recommendation
from surefoot.loop.widths import Width, given_or, usual
from surefoot.policy.base import ModelOptions, ModelPolicy
from surefoot.policy.drift.memory import TimedRows, check_one_belief
from surefoot.policy.surrogate import Surrogate
from surefoot.policy.ucb.gp_ucb import UpperConfidence

__all__ = ["ContextualGPUCB"]

Array = NDArray[np.float64]


class ContextRows(TimedRows):
    """All measurements with their times; the belief is asked about now.

    >>> from surefoot import GPUCB
    >>> ContextRows(Clock(GPUCB(Candidates([0.5]), seed=0).trials)).encode(np.array([[0.5]]))
    array([[0.5, 0. ]])
    """

    listed = False  # a time may lie between those of the measurements
    stamped = True

    def encode(self, X: Array) -> Array:
        return with_column(self.domain.encode(X), self.clock.now)


class ContextualGPUCB(ModelPolicy):
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
    context = ("time",)

    def __init__(self, domain: Domain, *, width: Width | None = None, **options: Unpack[ModelOptions]) -> None:
        super().__init__(domain, **options)
        check_one_belief(self.gp, type(self).__name__)
        if options.get("gp") is None:
            raise ValueError("ContextualGPUCB needs gp=, a process over the coordinates of a point and the time")
        self.width = given_or(width, usual(domain.size, self.confidence))
        self.clock = Clock(self.trials)
        self.surrogate = Surrogate(self.trials, self.gp, self.stream, rows=ContextRows(self.clock))
        self.rule = UpperConfidence(self.width)

    def _recommend(self) -> Recommendation:
        return self._most_promising(self.surrogate.rows.places(), "highest posterior mean now among measured points")
