"""How far variance reduction is from submodular: a published proposition, and what holds in its place."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from surefoot.belief.kernels import Matern
from surefoot.select import VarianceReduction, exact_ratios
from surefoot_lab import Budget, Exact, Metric, Replicate, Trace, experiment
from surefoot_lab.readings import Series

THREE, ONES, MATERN = "three points", "identical points", "Matérn"
KERNELS = (THREE, ONES, MATERN)

PARTS = ("curvature", "inverse_curvature", "submodularity", "supermodularity", "superadditivity", "bipartite")


def _read(name: str, kernel: str) -> Series:
    return Metric(name)[kernel]


claims = [
    Exact(
        "curvature and inverse curvature are at most k_max/(σ² + k_max)",
        [_read(part, kernel) <= _read("claimed", kernel) for kernel in KERNELS for part in PARTS[:2]],
        marks="contradicted",
        note="the three-point kernel has inverse curvature 1; ten identical points have superadditivity 0.182, not 0.5",
    ),
    Exact(
        "F({1} | {2}) = 0.0383592 at z = 0.5, σ² = 0.3",
        {_read("gain", THREE): 0.0383592},
        marks=("reproduced", "card"),
    ),
    Exact(
        "submodularity ≥ σ²/(σ² + k_max); supermodularity, superadditivity and bipartite ratio ≥ σ²/(σ² + λ_max)",
        [
            test
            for kernel in KERNELS
            for test in (
                _read("submodularity", kernel) >= _read("by_variance", kernel),
                *[_read(part, kernel) >= _read("by_eigenvalue", kernel) for part in PARTS[3:]],
            )
        ],
        marks=("reproduced", "card"),
    ),
]


def measured(K: NDArray[np.float64], noise: float, targets: list[int], **more: float) -> Trace:
    """All ratios of one instance, by enumeration, and the bounds they are compared with."""
    found = exact_ratios(VarianceReduction(K, noise=noise, targets=targets))
    largest, top = float(np.diag(K).max()), float(np.linalg.eigvalsh(K)[-1])
    return Trace(
        **{part: getattr(found, part).value for part in PARTS},
        claimed=largest / (noise + largest),
        by_variance=noise / (noise + largest),
        by_eigenvalue=noise / (noise + top),
        **more,
    )


@experiment(
    "oblivious-greedy/ratios",
    source="companion of Bogunovic 2019 (thesis), Proposition 7.4.2",
    unit="drawn instance",
    quick=Budget(20, n=8),
    full=Budget(1000, minutes=15, n=8),
)
def run(replicate: Replicate) -> Mapping[str, Trace]:
    """Ratios of variance reduction, by enumeration of all sets."""
    z, noise = 0.5, 0.3
    side = np.sqrt(1.0 - z**2)
    three = np.array([[1.0, side, 0.0], [side, 1.0, z**2], [0.0, z**2, 1.0]])
    f = VarianceReduction(three, noise=noise, targets=[2])
    gain = f.value([0, 1]) - f.value([1])
    rng, n = replicate.rng("points"), replicate["n"]
    X = rng.standard_normal((n, 2))
    K = Matern(1.5, lengthscale=1.0)(X, X)
    return {
        THREE: measured(three, noise, [2], gain=gain),
        ONES: measured(np.ones((10, 10)), 1.0, [0]) if replicate.index == 0 else Trace(),
        MATERN: measured((K + K.T) / 2.0, 1.0, rng.choice(n, 3, replace=False).tolist()),
    }
