"""A function on [0, 1] drawn from a Gaussian process, and tasks that differ from it by known gaps.

f has a squared exponential kernel of length-scale 0.05 and variance 1, on a grid of 400 points. Task i was measured at
20 of them, chosen uniformly: its values are f plus an error that is uniform in [−dᵢ, dᵢ], independent for each point,
plus noise of variance 0.01. All methods know the kernel and the noise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from surefoot.belief.gp import GP
from surefoot.belief.kernels import SE
from surefoot.domain import Domain
from surefoot.loop.policy import Policy
from surefoot.loop.widths import Finite, Logarithmic
from surefoot.policy.transfer.rm_gp_ucb import RMGPUCB
from surefoot.policy.transfer.tasks import Task
from surefoot.policy.ucb.gp_ucb import GPUCB
from surefoot_lab.problems import Problem, grid
from surefoot_lab.registry import Replicate
from surefoot_lab.samples import gp_sample_grid

KERNEL, NOISE, CONFIDENCE = SE(lengthscale=0.05), 0.01, 0.9
GAPS = (0.05, 0.05, 4.0, 4.0)
LENGTH = 20
POINTS = grid([(0.0, 1.0)], 400)

Make = Callable[[Domain, int], Policy]


def draw(replicate: Replicate, gaps: Sequence[float] = GAPS) -> tuple[Problem, list[Task]]:
    """The function, and the measurements of its tasks."""
    problem = gp_sample_grid(KERNEL, POINTS, replicate.rng("function"), noise=NOISE)
    tasks = []
    for i, gap in enumerate(gaps):
        rng = replicate.rng("task", i)
        X = POINTS[rng.integers(len(POINTS), size=LENGTH)]
        y = problem(X) + rng.uniform(-gap, gap, LENGTH) + np.sqrt(NOISE) * rng.standard_normal(LENGTH)
        tasks.append(Task(X, y, name=f"gap {gap:g}"))
    return problem, tasks


def learning(tasks: Sequence[Task], **options: Any) -> Make:
    """RM-GP-UCB with the right prior and in the units of f."""
    gp = GP(KERNEL, noise=NOISE)
    return lambda d, seed: RMGPUCB(d, tasks=tasks, gp=gp, scaling=None, confidence=CONFIDENCE, seed=seed, **options)


def alone(schedule: str = "practical") -> Make:
    """GP-UCB with the same prior and the same width."""
    # β_t = 2 log(|X| t² π²/2δ) of the theorem is the usual one with a third of δ.
    width = Logarithmic(0.2) if schedule == "practical" else Finite(1.0 - (1.0 - CONFIDENCE) / 3.0)
    return lambda d, seed: GPUCB(d, gp=GP(KERNEL, noise=NOISE), width=width, seed=seed)
