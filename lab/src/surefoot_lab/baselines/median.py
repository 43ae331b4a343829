"""The median rule: stop a run that is worse than most were at the same epoch.

Question: when to give a run up, knowing nothing about curves but those of completed runs?

Rule: at epoch n, stop if the best score of the run so far is below the median over completed runs of their average
score up to epoch n (Golovin et al. 2017, section 3.2). GP-UCB chooses the configurations and is told the last score of
every run, stopped or not, as tuners that pair a sampler with such a rule do.

Guarantee: none; a slow starter that would have won is stopped. Cost of a report: O(runs).
"""

from __future__ import annotations

from typing import Unpack

import numpy as np

from surefoot.arguments import whole
from surefoot.domain import Domain
from surefoot.loop.types import Advice, Query
from surefoot.loop.widths import Width
from surefoot.policy.base import ModelOptions
from surefoot.policy.epochs.runs import Runs
from surefoot.policy.ucb.gp_ucb import GPUCB

__all__ = ["MedianRule"]


class MedianRule(Runs, GPUCB):
    """GP-UCB whose runs are stopped when they are below the median of the completed ones.

    Parameters
    ----------
    domain : Box, Candidates or Space
        Where configurations may lie.
    epochs : int
        N, the length of a complete run.
    startup : int
        Completed runs before the first may be stopped.
    warmup : int
        Epochs that every run gets.
    **options
        ``width``, ``gp``, ``initial``, ``confidence``, ``seed``, ``repeats``, ``journal``.

    >>> from surefoot import Box
    >>> policy = MedianRule(Box([(0.0, 1.0)]), epochs=5, startup=2, warmup=1, seed=0)
    >>> for level in (0.8, 0.9):
    ...     query = policy.ask()
    ...     for epoch in range(1, 6):
    ...         _ = policy.report(query, epoch, level)
    ...     policy.tell(query)
    >>> query = policy.ask()
    >>> policy.report(query, 1, 0.1).stop, policy.report(query, 2, 0.2).stop
    (False, True)
    """

    def __init__(
        self,
        domain: Domain,
        *,
        epochs: int,
        startup: int = 5,
        warmup: int = 5,
        width: Width | None = None,
        **options: Unpack[ModelOptions],
    ) -> None:
        super().__init__(domain, epochs=epochs, width=width, **options)
        for name, value in (("startup", startup), ("warmup", warmup)):
            whole(value, name)
        self.startup, self.warmup = int(startup), int(warmup)

    def _advise(self, query: Query, step: int, value: float | None) -> Advice:
        if value is None or step >= self.epochs:
            return super()._advise(query, step, value)
        closed = [o.id for o in self._closed_before(query.id, step) if o.id is not None]
        whole = [id for id in closed if len(self._scores(id)) == self.epochs]
        if step <= self.warmup or len(whole) < max(1, self.startup):
            return Advice(False, "too early to compare")
        median = float(np.median([self._scores(id)[:step].mean() for id in whole]))
        best = float(self._scores(query, step).max())
        worse, shown = best < median, (self._facing(best), self._facing(median))
        side = "below" if self.direction == "maximize" else "above"
        if worse:
            return Advice(True, f"{shown[0]:.6g} is {side} the median {shown[1]:.6g}", None, float(self.epochs - step))
        return Advice(False, f"{shown[0]:.6g} is not {side} the median {shown[1]:.6g}")
