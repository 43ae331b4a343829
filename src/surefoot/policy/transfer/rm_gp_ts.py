"""RM-GP-TS: Thompson sampling that follows earlier tasks for a while. Later work than RM-GP-UCB, by the same authors.

Question: that of :mod:`surefoot.policy.transfer.rm_gp_ucb`.

Rule: weights ω and influence ν are learned as there. With probability 1 − ν_t a function is drawn from the target's
posterior, otherwise one fᵢ from the posterior of every task, and x_t is the maximum of the former, or of Σᵢ ωᵢ fᵢ. The
draws of the tasks are random Fourier features with exact weight posteriors; tasks of one kernel share the features, so
that their sum is a single function, as cheap to search as one.

Reference: Dai, Chen, Yu, Low & Jaillet 2022, "On provably robust meta-Bayesian optimization", section on RM-GP-TS.
Guarantee: no regret in the limit, as ν_t → 0; the authors call it less robust than RM-GP-UCB in theory and practice,
and competitive when tasks are similar.

Authors' options: 120 features; here ``features``, 1024 by default. Difference: ν₁ = 1. The released code starts from
ν = 0, which is only ever multiplied, so that it never asks the tasks.

Cost of one ask that follows the tasks: O(M N F min(N, F)), F features, and one search.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from surefoot.belief.fourier import FourierFeatures, WeightPosterior
from surefoot.belief.gp import GP
from surefoot.belief.posterior import EXACT, Posterior
from surefoot.domain import Candidates
from surefoot.loop.policy import Proposal
from surefoot.policy.thompson import ThompsonSampling
from surefoot.policy.transfer.rm_gp_ucb import NOTHING, RobustTransfer
from surefoot.policy.transfer.tasks import Task

__all__ = ["RMGPTS"]

Array = NDArray[np.float64]


class RMGPTS(RobustTransfer, ThompsonSampling):
    """Thompson sampling that follows the draws of earlier tasks with probability ν_t; see the module's page.

    Parameters
    ----------
    domain : Box, Candidates or Space
        Where points may lie.
    tasks : sequence of Task
        What was measured before, in the units of this objective.
    **options
        Those of :class:`~surefoot.policy.transfer.rm_gp_ucb.RMGPUCB` but ``task_width``; ``features``, those of a draw.

    >>> from surefoot import Candidates
    >>> x = np.linspace(0.0, 1.0, 21)[:, None]
    >>> policy = RMGPTS(Candidates(x), tasks=[Task(x, -((x[:, 0] - 0.3) ** 2))], features=128, seed=0)
    >>> abs(policy.ask().x[0] - 0.3) < 0.11
    np.True_
    """

    def _check_drawable(self) -> None:
        # Draws of the tasks are always Fourier features, whatever the domain.
        exact, self._exact = self._exact, False
        super()._check_drawable()
        self._exact = exact

    def _rule(self, step: int, context: Mapping[str, Any]) -> Proposal:
        nu, weights, note = self._learn()
        if not self.stream("branch", step).random() < nu:
            return replace(super()._rule(step, context), note=note)
        draw = self._draw(weights, step)
        if isinstance(self.domain, Candidates):
            return replace(self._best_candidate(draw(self.domain.points), step), note=note)
        with self._hallucinated() as belief:
            return replace(self._best_near_tasks(draw, cast(Posterior, belief), step, weights), note=note)

    def _draw(self, weights: Array, step: int) -> _TaskDraw:
        """One function Σᵢ ωᵢ fᵢ."""
        rng, dimension = self.stream("task draws", step), self.domain.encoded_dimension
        one = self.gp.every is None or self.share_hyperparameters
        parts: list[tuple[FourierFeatures, Array]] = []
        for i in np.flatnonzero(weights > NOTHING):
            gp, task = cast(GP, self._gps()[i]), cast(Task, self.tasks[i])
            new = not (one and parts)  # tasks of one kernel share the features, and the sum is a single function
            features = FourierFeatures(gp.kernel, dimension, self.features, rng) if new else parts[0][0]
            E = self.domain.encode(cast(Array, self._points[i]))
            given = np.full(len(E), np.nan) if task.noise is None else task.noise
            noise = np.maximum(np.where(np.isnan(given), gp.noise, given), EXACT * features.variance)
            drawn = weights[i] * WeightPosterior(features(E), self._values(task) - gp.mean, noise).draw(1, rng)[0]
            if new:
                parts.append((features, drawn))
            else:
                parts[0] = (features, parts[0][1] + drawn)
        # A constant that differs between tasks shifts the sum everywhere alike.
        return _TaskDraw(parts)


class _TaskDraw:
    """A sum of functions of Fourier features, up to a constant."""

    def __init__(self, parts: list[tuple[FourierFeatures, Array]]) -> None:
        self.parts = parts

    def __call__(self, E: Array) -> Array:
        total: Array = np.sum([features(E) @ weights for features, weights in self.parts], axis=0)
        return total

    def gradient(self, E: Array) -> tuple[Array, Array]:
        value, slope = np.zeros(len(E)), np.zeros_like(E)
        for features, weights in self.parts:
            phi, pull = features.pull_input(E)
            value += phi @ weights
            slope += pull(weights)
        return value, slope
