"""Smooth functions on the unit square, and how far a report is from their maximum.

A function is the posterior mean through 200 values of a squared exponential process (length-scale 0.1) at uniform
points. Policies choose among the points of a grid; what they would report, the highest posterior mean of the grid, is
refined by climbing the posterior mean, and so is the true maximum: on a coarse grid all methods would soon agree.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from surefoot.belief.gp import GP
from surefoot.belief.grid import GridPosterior
from surefoot.belief.kernels import SE
from surefoot.belief.posterior import Posterior
from surefoot.domain import Candidates
from surefoot.domain.climb import climb
from surefoot.loop.policy import Policy
from surefoot_lab.problems import grid
from surefoot_lab.registry import Replicate

Array = NDArray[np.float64]

KERNEL, NOISE, VALUES = SE(lengthscale=0.1), 1e-6, 200


def peak(surface: Posterior, starts: Array) -> Array:
    """The highest point of a posterior mean that climbs in the unit square from the starts (m, 2) reach."""

    def hill(T: Array, rows: NDArray[np.intp]) -> tuple[Array, Array]:
        mean, _, slope, _ = surface.gradient(T)
        return mean, slope

    ends, heights = climb(hill, starts, iterations=25)
    return ends[int(heights.argmax())]


@dataclass(frozen=True)
class Landscape:
    """One function: its posterior, its values on the grid, and its maximum over the square."""

    surface: Posterior
    points: Array
    values: Array
    maximum: float

    @classmethod
    def draw(cls, replicate: Replicate, side: int) -> Landscape:
        """The function of one repetition."""
        rng = replicate.rng("function")
        X = rng.random((VALUES, 2))
        y = GP(KERNEL).condition().sample(X, 1, rng)[0]
        surface, points = GP(KERNEL, noise=0.0).condition(X, y), grid([(0.0, 1.0)] * 2, side)
        values = surface.mean(points)
        top = peak(surface, points[np.argsort(-values)[:12]])
        return cls(surface, points, values, float(surface.mean(top[None])[0]))


def race(
    policy: Policy,
    land: Landscape,
    start: int,
    rounds: int,
    errors: np.random.Generator,
    watch: Callable[[], float] | None = None,
) -> tuple[Array, Array]:
    """Regret of the refined report after each round, shape (rounds,), and what ``watch`` saw."""
    gp = GP(KERNEL, noise=NOISE)
    belief, exact = GridPosterior(gp, land.points, capacity=rounds + 1), gp.condition()
    regret, seen = np.empty(rounds), np.full(rounds, np.nan)
    for t in range(-1, rounds):
        query = None if t < 0 else policy.ask()
        index = start if query is None else query.index
        if index is None:
            raise TypeError("this comparison is made on candidates")
        value = float(land.values[index] + np.sqrt(NOISE) * errors.standard_normal())
        policy.tell(land.points[index] if query is None else query, value)
        belief.append(index, value)
        exact.append(land.points[index], value)
        if t >= 0:
            reported = peak(exact, land.points[[int(belief.mean.argmax())]])
            regret[t] = max(land.maximum - float(land.surface.mean(reported[None])[0]), 0.0)
            seen[t] = np.nan if watch is None else watch()
    return regret, seen


def candidates(land: Landscape) -> Candidates:
    """The grid as a domain."""
    return Candidates(land.points)
