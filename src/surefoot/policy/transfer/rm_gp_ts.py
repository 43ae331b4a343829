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

from collections.abc import Sequence
from dataclasses import replace
from typing import Unpack, cast

import numpy as np
from numpy.typing import NDArray

from surefoot.belief.fourier import FourierFeatures, WeightPosterior
from surefoot.belief.gp import GP
from surefoot.belief.posterior import EXACT
from surefoot.domain import Domain
from surefoot.loop.types import Proposal
from surefoot.policy.thompson import PosteriorDraw, check_drawable, jointly
from surefoot.policy.transfer.base import near_tasks
from surefoot.policy.transfer.learning import Learning
from surefoot.policy.transfer.models import TaskModels
from surefoot.policy.transfer.rm_gp_ucb import NOTHING, RobustOptions, RobustTransfer
from surefoot.policy.transfer.tasks import Task
from surefoot.policy.view import View

__all__ = ["RMGPTS", "FollowTasks"]

Array = NDArray[np.float64]


class FollowTasks:
    """With probability 1 − ν_t: x_t = argmax f, f ~ the target's posterior; else x_t = argmax Σᵢ ωᵢ fᵢ.

    Parameters
    ----------
    tasks : TaskModels
        The earlier tasks.
    learning : Learning
        ω and ν.
    own : PosteriorDraw
        Thompson sampling of the target.

    >>> from surefoot import Box
    >>> policy = RMGPTS(Box([(0.0, 1.0)]), tasks=[Task([0.1, 0.5], [1.0, 2.0])], features=128, seed=0)
    >>> policy.rule.draw(np.ones(1), np.random.default_rng(0))(np.zeros((3, 1))).shape
    (3,)
    """

    def __init__(self, tasks: TaskModels, learning: Learning, own: PosteriorDraw) -> None:
        self.tasks, self.learning, self.own = tasks, learning, own

    def propose(self, view: View) -> Proposal:
        """Learn from the last measurement, choose between target and tasks, and maximize a draw."""
        nu, weights, note = self.learning.learn(view)  # ω and ν, as in RM-GP-UCB
        if not view.stream("branch", view.step).random() < nu:
            return replace(self.own.propose(view), note=note)  # with probability 1 − ν_t
        draw = self.draw(weights, view.stream("task draws", view.step))
        if view.domain.listed:
            values = draw(view.domain.enumerate())
            return Proposal(index=view.search(lambda at: values[at]).row, note=note)
        with view.hallucinated() as belief:
            return replace(near_tasks(view, self.tasks, draw, belief, weights), note=note)

    def draw(self, weights: Array, rng: np.random.Generator) -> _TaskDraw:
        """Draw one function Σᵢ ωᵢ fᵢ."""
        tasks, dimension = self.tasks, self.tasks.domain.encoded_dimension
        one = tasks.gp.every is None or tasks.share_hyperparameters
        parts: list[tuple[FourierFeatures, Array]] = []
        for i in np.flatnonzero(weights > NOTHING):
            gp, task = cast(GP, tasks.gps()[i]), cast(Task, tasks.tasks[i])
            new = not (one and parts)  # tasks of one kernel share the features, and the sum is a single function
            features = FourierFeatures(gp.kernel, dimension, self.own.features, rng) if new else parts[0][0]
            E = tasks.inputs(int(i))
            given = np.full(len(E), np.nan) if task.noise is None else task.noise
            noise = np.maximum(np.where(np.isnan(given), gp.noise, given), EXACT * features.variance)
            drawn = weights[i] * WeightPosterior(features(E), tasks.values(task) - gp.mean, noise).draw(1, rng)[0]
            if new:
                parts.append((features, drawn))
            else:
                parts[0] = (features, parts[0][1] + drawn)
        # A constant that differs between tasks shifts the sum everywhere alike.
        return _TaskDraw(parts)


class RMGPTS(RobustTransfer):
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

    def __init__(
        self, domain: Domain, *, tasks: Sequence[Task], features: int = 1024, **options: Unpack[RobustOptions]
    ) -> None:
        super().__init__(domain, tasks=tasks, **options)
        own = PosteriorDraw(features)
        self.features = own.features
        check_drawable(self.gp, domain.encoded_dimension)  # draws of the tasks are Fourier features on every domain
        self.surrogate.rows.listed = jointly(domain)
        self.rule = FollowTasks(self.models, self.learning, own)


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
