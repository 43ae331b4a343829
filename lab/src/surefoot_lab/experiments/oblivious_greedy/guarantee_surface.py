"""The guarantee of Oblivious-Greedy: its limit over the ratios, and its finite forms by brute force."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from surefoot.belief.kernels import Matern
from surefoot.select import (
    Coverage,
    Ratios,
    SetFunction,
    VarianceReduction,
    exact_ratios,
    oblivious_greedy,
    oblivious_greedy_guarantee,
)
from surefoot_lab import Budget, Exact, Metric, Replicate, Trace, experiment

limit, finite = Metric("limit"), Metric("finite")
CORNERS = {"γ = θ = 1": (1.0, 1.0), "γ = θ = 0.5": (0.5, 0.5)}
ONE, HALF = CORNERS

claims = [
    Exact(
        "θ(1 − e^−γ)/(2 − e^−γ) is 0.3873 at (1, 1) and 0.1412 at (0.5, 0.5)",
        {limit[ONE]: 0.3873, limit[HALF]: 0.1412, finite[ONE]: 0.3873, finite[HALF]: 0.1412},
        tolerance=1e-4,
        marks="reproduced",
        note="`finite` is the finite factor (7.31) at k = 10¹² and τ = 1",
    ),
    Exact(
        "the finite bounds (7.31) and (7.39) hold on all instances, by brute force",
        [Metric("slack")["(7.31)"] >= 0.0, Metric("slack")["(7.39)"] >= 0.0],
        marks=("reproduced", "card"),
        note="the least of what is kept less the factor times the best k − τ elements that survive",
    ),
    Exact(
        "Corollary 7.3.1 has 1 + (β − 1)ν̌(1 − ν) in the denominator",
        {Metric("difference")["Corollary 7.3.1"]: 0.0},
        marks="contradicted",
        note="its proof gives ν in place of 1 − ν; the difference of the two factors at ν = ν̌ = 0.9, β = 3",
    ),
]


def surface(gamma: float, theta: float) -> float:
    """The limit of the guarantee for τ = o(k/β) and β ≥ log k."""
    return theta * -math.expm1(-gamma) / (2.0 - math.exp(-gamma))


def values(f: SetFunction) -> NDArray[np.float64]:
    """The values of all 2ⁿ sets, by bit mask."""
    members = (np.arange(2**f.n)[:, None] >> np.arange(f.n)) & 1
    return np.array([f.value(np.flatnonzero(row)) for row in members])


def slacks(f: SetFunction, k: int, tau: int, size: int) -> tuple[float, float]:
    """What Oblivious-Greedy keeps less what each bound promises, relative to the best."""
    found, table = exact_ratios(f), values(f)
    masks, counts = np.arange(2**f.n), np.array([mask.bit_count() for mask in range(2**f.n)])
    chosen = sum(1 << v for v in oblivious_greedy(f, k, tau, beta=size / tau).order)
    kept = (masks & ~chosen == 0) & (counts == k - tau)
    worst = int(masks[kept][np.argmin(table[kept])])
    gone = chosen & ~worst
    best = float(table[(masks & gone == 0) & (counts == k - tau)].max())
    return tuple((float(table[worst]) - factor * best) / best for factor in factors(found, k, tau, size / tau))  # type: ignore[return-value]


def factors(found: Ratios, k: int, tau: int, beta: float) -> tuple[float, float]:
    """The two finite factors, (7.31) with the inverse curvature and (7.39) with the subadditivity ratio."""
    common = {
        "gamma": found.submodularity.value,
        "theta": found.bipartite.value,
        "superadditivity": found.superadditivity.value,
    }
    theorem = oblivious_greedy_guarantee(
        k, tau, beta, **common, inverse_curvature=found.inverse_curvature.value, subadditivity=0.0
    )
    corollary = oblivious_greedy_guarantee(k, tau, beta, **common, subadditivity=found.subadditivity.value)
    return theorem, corollary


def corollary(weight: float, nu: float, *, printed: bool) -> float:
    """The factor P′ of Corollary 7.3.1 with weight (β − 1)ν̌, as printed or as proved."""
    return weight * nu / (1.0 + weight * ((1.0 - nu) if printed else nu))


def instances(rng: np.random.Generator, count: int, n: int) -> list[SetFunction]:
    """Random variance reductions and coverages."""
    made: list[SetFunction] = []
    for i in range(count):
        if i % 2:
            made.append(Coverage(sparse.random_array((n, 30), density=0.15, rng=rng), weights=rng.random(30)))
        else:
            K = Matern(1.5, lengthscale=1.0)(X := rng.standard_normal((n, 2)), X)
            made.append(VarianceReduction((K + K.T) / 2.0, noise=rng.uniform(0.1, 2.0), targets=[0, 1, 2]))
    return made


@experiment(
    "oblivious-greedy/guarantee-surface",
    source="Bogunovic, Zhao and Cevher 2018, Theorem 1; Bogunovic 2019 (thesis), Fig. 7.1, (7.31) and (7.39)",
    unit="drawn instance",
    quick=Budget(4, instances=2, n=8),
    full=Budget(50, minutes=10, instances=4, n=10),
)
def run(replicate: Replicate) -> Mapping[str, Trace]:
    """The guarantee of Oblivious-Greedy over the ratios of the set function."""
    rng = replicate.rng("instances")
    found = []
    for f in instances(rng, replicate["instances"], replicate["n"]):
        tau = int(rng.integers(1, 3))
        size = int(rng.integers(tau + 1, 2 * tau + 2))
        k = int(rng.integers(size + 1, f.n + 1))
        found.append(slacks(f, k, tau, size))
    theorem, second = np.min(found, axis=0)
    traces = {"(7.31)": Trace(slack=theorem), "(7.39)": Trace(slack=second)}
    for name, (gamma, theta) in CORNERS.items():
        large = oblivious_greedy_guarantee(
            10**12, 1, 1e6, gamma=gamma, theta=theta, superadditivity=1.0, inverse_curvature=0.0
        )
        traces[name] = Trace(limit=surface(gamma, theta), finite=large)
    forms = [corollary(2.0 * 0.9, 0.9, printed=printed) for printed in (True, False)]
    traces["Corollary 7.3.1"] = Trace(difference=forms[0] - forms[1])
    grid = np.linspace(0.05, 1.0, 20)
    for theta in (0.25, 0.5, 0.75, 1.0):  # a cut through the surface for each θ
        traces[f"θ = {theta:g}"] = Trace(surface=[surface(gamma, theta) for gamma in grid])
    return traces
