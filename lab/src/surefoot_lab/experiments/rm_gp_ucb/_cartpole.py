"""Balancing a pole from one beginning, given controllers tried from others.

The target begins somewhere in the inner half of the track, moving. Three tasks begin near it, the others anywhere.
Beginnings and search box are unpublished; each repetition draws its own. (From an upright pole at rest one random
controller in twelve never falls, and nothing is left to tell methods apart.) A measurement is the mean of 10 episodes;
the regret of a controller is judged on 100 other episodes.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot.policy.transfer.tasks import Task
from surefoot_lab.cartpole import CartPole
from surefoot_lab.experiments.rm_gp_ucb._methods import history
from surefoot_lab.problems import Problem
from surefoot_lab.registry import Replicate

Array = NDArray[np.float64]

SIMILAR = 3  # tasks that begin near the target; they come first
NEAR = np.array([0.1, 0.1, 0.02, 0.1])
ANYWHERE = np.array([2.0, 2.0, 0.18, 2.0])
EPISODES = 10


@dataclass(frozen=True)
class Balancing(Problem):
    """A cart-pole task as a problem whose measurements are means over random episodes."""

    task: CartPole = field(default_factory=CartPole)

    def measure(self, x: ArrayLike, rng: np.random.Generator) -> float:
        return self.task.score(x, rng, EPISODES)


def balancing(task: CartPole, rng: np.random.Generator) -> Balancing:
    """The task as a problem; a controller that never falls has no regret."""
    judged = task.beginnings(100, rng)
    return Balancing("cart-pole", task.domain, lambda X: task.scores(X, judged), 1.0, np.empty((0, 8)), task=task)


def tasks(count: int, length: int, replicate: Replicate) -> tuple[Balancing, list[Task]]:
    """The target, and what GP-UCB measured in ``count`` other tasks: the similar ones first."""
    target, *others = [
        balancing(task, replicate.rng("judged", i)) for i, task in enumerate(beginnings(count, replicate))
    ]
    seeds = replicate.rng("histories").integers(2**53, size=count)
    # Some more design points than usual: in eight dimensions a run learns little from five.
    found = [history(problem, length, seed=int(seed), initial=20) for problem, seed in zip(others, seeds, strict=True)]
    return target, [Task(task.X, task.y, name=f"task {i}") for i, task in enumerate(found)]


def beginnings(count: int, replicate: Replicate) -> list[CartPole]:
    """The target's task, then ``count`` others: the similar ones first."""
    rng = replicate.rng("beginnings")
    target = rng.uniform(-0.5 * ANYWHERE, 0.5 * ANYWHERE)
    near = target + rng.uniform(-NEAR, NEAR, (SIMILAR, 4))
    far = rng.uniform(-ANYWHERE, ANYWHERE, (count - SIMILAR, 4))
    return [CartPole(tuple(start)) for start in [target, *near, *far]]
