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
from surefoot.loop.widths import Width, given_or, usual
from surefoot.policy.base import ModelOptions, ModelPolicy
from surefoot.policy.epochs.runs import RunPolicy, Runs
from surefoot.policy.ucb.gp_ucb import UpperConfidence

__all__ = ["BelowMedian", "MedianRule"]


class BelowMedian:
    """Stop a run that is below the median of the completed ones at the same epoch.

    Parameters
    ----------
    runs : Runs
        What is known of the runs.
    startup, warmup : int
        Completed runs, and epochs, before any may be stopped.
    """

    def __init__(self, runs: Runs, startup: int, warmup: int) -> None:
        self.runs, self.startup, self.warmup = runs, startup, warmup

    def advise(self, query: Query, step: int, value: float | None) -> Advice:
        """Compare the best score so far with the median average score."""
        runs = self.runs
        if value is None or step >= runs.epochs:
            return runs.advise(query, step, value)
        closed = [o.id for o in runs.closed_before(query.id, step) if o.id is not None]
        complete = [id for id in closed if len(runs.scores(id)) == runs.epochs]
        if step <= self.warmup or len(complete) < max(1, self.startup):
            return Advice(False, "too early to compare")
        median = float(np.median([runs.scores(id)[:step].mean() for id in complete]))
        best = float(runs.scores(query, step).max())
        if best < median:
            return Advice(True, f"{best:.6g} is below the median {median:.6g}", None, float(runs.epochs - step))
        return Advice(False, f"{best:.6g} is not below the median {median:.6g}")


class MedianRule(RunPolicy, ModelPolicy):
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
        super().__init__(domain, epochs=epochs, **options)
        self.startup, self.warmup = whole(startup, "startup"), whole(warmup, "warmup")
        self.width = given_or(width, usual(domain.size, self.confidence))
        self.rule = UpperConfidence(self.width)
        self.adviser = BelowMedian(self.runs, self.startup, self.warmup)
