"""Can the rate be learned? Maximum likelihood on simulated panels, its interval, and three forms of one likelihood."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from surefoot.belief.drift import DriftingGrid, simulate_drift
from surefoot.belief.forgetting import Panel, drifting, estimate_forgetting
from surefoot.belief.gp import GP
from surefoot.belief.kernels import SE
from surefoot.belief.posterior import factorize
from surefoot_lab import Budget, Exact, Metric, Replicate, Share, Trace, across, experiment
from surefoot_lab.readings import Replicates

RATES = (0.001, 0.01, 0.03, 0.1)
KERNEL, NOISE = SE(0.2), 0.01
PART = (12, 10)  # times and places of the part on which the direct form is affordable

Array = NDArray[np.float64]


def name(rate: float) -> str:
    """The name of the panels with a rate."""
    return f"eps = {rate:g}"


def _pooled(replicates: Replicates) -> Array:
    return np.array([traces[name(e)]["covered"] for traces in replicates for e in RATES], dtype=np.float64)


_covered = across(_pooled, "covered, all rates")
_apart = [Metric(form)[name(e)] for e in RATES for form in ("kalman_apart", "direct_apart")]

claims = [
    Share(
        "95 % intervals cover the true rate in 90-99 % of the panels",
        [_covered >= 0.90, _covered <= 0.99],
        marks=("card",),
        note="panels of all four rates together; the share of each rate is in the table of means",
    ),
    Exact(
        "eigen-decomposition, Kalman filter and direct form agree to 1e-8",
        dict.fromkeys(_apart, 0.0),
        tolerance=1e-8,
        marks=("card",),
        note="relative to the log-likelihood",
    ),
]


@lru_cache(maxsize=4)
def _places(count: int) -> tuple[Array, Array, Array]:
    """Places in the unit square, their covariance and its factor."""
    X = np.random.default_rng(0).random((count, 2))
    K = KERNEL(X)
    return X, K, factorize(K, np.zeros(count))[0]


def _apart_by(values: Array, rate: float) -> tuple[float, float]:
    """Relative differences of the Kalman and of the direct log-likelihood to that of the eigen-decomposition."""
    T, S = PART
    X, K, _ = _places(values.shape[1])
    part, gp = values[:T, :S], GP(KERNEL, noise=NOISE)
    eigen = Panel(part, K[:S, :S], NOISE).log_likelihood(rate)
    grid = DriftingGrid(gp, X[:S], rate)
    for t, row in enumerate(part):
        for i, value in enumerate(row):
            grid.append(i, value, time=float(t))
    stamped = np.column_stack([np.tile(X[:S], (len(part), 1)), np.repeat(np.arange(len(part)), S)])
    direct = drifting(gp, rate, 2).log_likelihood(stamped, part.ravel())
    return abs(grid.log_likelihood - eigen) / abs(eigen), abs(direct - eigen) / abs(eigen)


@experiment(
    "tv-gp-ucb/estimating-epsilon",
    source="companion; Bogunovic 2019 (thesis), appendix 5.B",
    unit="drawn panel",
    quick=Budget(10, times=100, places=20),
    full=Budget(200, minutes=20, times=100, places=20),
)
def run(replicate: Replicate) -> Mapping[str, Trace]:
    """The maximum-likelihood forgetting rate of simulated panels and its 95 % interval."""
    _, K, factor = _places(replicate["places"])
    traces = {}
    for rate in RATES:
        rng = replicate.rng(f"panel {rate}")
        values = simulate_drift(factor, replicate["times"], rate, rng)
        values += np.sqrt(NOISE) * rng.standard_normal(values.shape)
        found = estimate_forgetting(Panel(values, K, NOISE).log_likelihood)
        kalman, direct = _apart_by(values, rate)
        traces[name(rate)] = Trace(
            estimate=found.forgetting,
            lower=found.lower,
            upper=found.upper,
            covered=found.covers(rate),
            kalman_apart=kalman,
            direct_apart=direct,
        )
    return traces
