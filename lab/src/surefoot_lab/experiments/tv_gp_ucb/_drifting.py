"""Drifting functions on a grid, and policies that follow them.

f_t on an equispaced grid of [0, 1]², drawn from the drift model with unit variance and length-scale 0.2; measurements
with noise variance 0.01; β_t = 0.8 log 4t. Innovations and noise are drawn once per repetition and shared by all
methods and all rates.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot.belief.drift import drifted
from surefoot.belief.gp import GP
from surefoot.belief.kernels import SE, Kernel, Matern
from surefoot.belief.posterior import factorize
from surefoot.domain import Candidates
from surefoot.loop.policy import Policy
from surefoot.loop.widths import LogTime
from surefoot.policy.drift.r_gp_ucb import RGPUCB
from surefoot.policy.drift.tv_gp_ucb import TVGPUCB
from surefoot.policy.ucb.gp_ucb import GPUCB
from surefoot_lab import Replicate, Trace
from surefoot_lab.baselines.drift import genie
from surefoot_lab.problems import grid

Array = NDArray[np.float64]
Make = Callable[[Candidates, int], Policy]

KERNELS: dict[str, Kernel] = {"SE": SE(0.2), "Matern": Matern(2.5, 0.2)}
NOISE = 0.01
WIDTH = LogTime(0.8, 4.0)
UCB, GENIE, RANDOM = "GP-UCB", "genie", "random"


@lru_cache(maxsize=4)
def _factor(kernel: str, side: int) -> Array:
    points = grid([(0.0, 1.0)] * 2, side)
    return factorize(KERNELS[kernel](points), np.zeros(len(points)))[0]


@lru_cache(maxsize=2)
def candidates(side: int) -> Candidates:
    """The grid, made once: its rows are looked up by hash."""
    return Candidates(grid([(0.0, 1.0)] * 2, side))


def innovations(kernel: str, side: int, steps: int, replicate: Replicate) -> Array:
    """Independent draws g_1, ..., g_T on the grid, shape (T, side²)."""
    normal = replicate.rng("innovations").standard_normal((steps, side * side))
    if kernel == "SE":  # a product over the axes: S Z Sᵀ with the root of one axis
        line = np.linspace(0.0, 1.0, side)[:, None]
        levels, vectors = np.linalg.eigh(KERNELS["SE"](line))
        root = (vectors * np.sqrt(np.maximum(levels, 0.0))) @ vectors.T
        return (root @ normal.reshape(steps, side, side) @ root.T).reshape(steps, -1)
    return normal @ _factor(kernel, side).T


def functions(kernel: str, side: int, steps: int, rate: float, replicate: Replicate) -> Array:
    """f_1, ..., f_T on the grid, shape (T, side²)."""
    return drifted(innovations(kernel, side, steps, replicate), rate)


def follow(policy: Policy, values: Array, noise: Array) -> NDArray[np.intp]:
    """Let a policy play against drifting values (T, M), one measurement per step; return its choices (T,)."""
    chosen = np.empty(len(values), dtype=np.intp)
    for t, (row, error) in enumerate(zip(values, noise, strict=True)):
        query = policy.ask()
        index: Any = query.index  # every point is a candidate
        chosen[t] = index
        policy.tell(query, float(row[index] + error))
    return chosen


def traced(values: Array, chosen: NDArray[np.intp]) -> Trace:
    """Regret against the moving maximum: of each step, and its running average R_t/t."""
    regret = values.max(axis=1) - values[np.arange(len(values)), chosen]
    return Trace(regret=regret, average_regret=np.cumsum(regret) / np.arange(1, len(regret) + 1))


def belief(kernel: str) -> GP:
    """The true prior of the function at any one time."""
    return GP(KERNELS[kernel], noise=NOISE)


def tracking(kernel: str, rate: float | None) -> Make:
    """TV-GP-UCB with an assumed rate; None: learned."""
    return lambda d, seed: TVGPUCB(d, forgetting=rate, gp=belief(kernel), width=WIDTH, seed=seed)


def resetting(kernel: str, block: float) -> Make:
    """R-GP-UCB with a block length."""
    return lambda d, seed: RGPUCB(d, block=block, gp=belief(kernel), width=WIDTH, seed=seed)


def static(kernel: str) -> Make:
    """GP-UCB, which believes that nothing moves."""
    return lambda d, seed: GPUCB(d, gp=belief(kernel), width=WIDTH, seed=seed)


def compare_tracking(
    makers: Mapping[str, Make], values: Array, replicate: Replicate, *, references: bool = False
) -> dict[str, Trace]:
    """Every method on the same functions with the same noise; with the genie and a random choice on request."""
    domain = candidates(round(values.shape[1] ** 0.5))
    noise = np.sqrt(NOISE) * replicate.rng("noise").standard_normal(len(values))
    made = {n: traced(values, follow(make(domain, replicate.integer), values, noise)) for n, make in makers.items()}
    if references:
        made[GENIE] = traced(values, genie(values))
        made[RANDOM] = traced(values, replicate.rng("random").integers(values.shape[1], size=len(values)))
    return made
