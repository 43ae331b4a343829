"""How fast random Fourier features approach the kernel.

The largest covariance error over a set of points falls like M^(−1/2) in the number of features M (Rahimi and Recht
2007, Claim 1, up to a logarithm). Pairs of cosine and sine have no error on the diagonal, and for the squared
exponential a smaller mean squared error than cosines with random phases (Sutherland and Schneider 2015, section 3).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from surefoot.belief.fourier import FourierFeatures
from surefoot.belief.kernels import SE, Matern
from surefoot_lab import Budget, Exact, Metric, Number, Order, Replicate, Trace, Trend, experiment, falls, slope

COUNTS = (32, 64, 128, 256, 512, 1024)
KERNELS = {"SE": SE(0.3), "Matern 3/2": Matern(1.5, 0.3)}
E = Metric("log_error")
PAIRS, PHASES = "cos_sin", "cos_phase"


def _name(kernel: str, kind: str, count: int) -> str:
    return f"{kernel}, {kind}, {count}"


_CURVES = {
    f"{kernel}, {kind}": [E[_name(kernel, kind, count)] for count in COUNTS]
    for kernel in KERNELS
    for kind in (PAIRS, PHASES)
}

claims = [
    Number(
        "log error falls with slope −1/2 in log M",
        {slope(curve, np.log(COUNTS)).named(f"slope, {name}"): -0.5 for name, curve in _CURVES.items()},
        tolerance=0.05,
    ),
    Trend("the error falls with the number of features", [falls(*curve) for curve in _CURVES.values()]),
    Exact(
        "pairs of cosine and sine have no error on the diagonal",
        {Metric("diagonal")[_name(kernel, PAIRS, count)]: 0.0 for kernel in KERNELS for count in COUNTS},
        tolerance=1e-12,
    ),
    Order(
        "for the squared exponential, pairs have a smaller mean squared error than phases",
        [Metric("squared")[_name("SE", PAIRS, m)] < Metric("squared")[_name("SE", PHASES, m)] for m in (64, 256, 1024)],
    ),
]


@experiment(
    "fourier/convergence",
    source="Rahimi and Recht 2007, Claim 1; Sutherland and Schneider 2015, section 3",
    unit="draw of features",
    quick=Budget(400, points=60),
    full=Budget(2000, minutes=20, points=200),
)
def run(replicate: Replicate) -> Mapping[str, Trace]:
    """Random Fourier features approach the kernel at the rate M^(−1/2)."""
    X = replicate.rng("points").random((replicate["points"], 2))
    traces = {}
    for label, kernel in KERNELS.items():
        K = kernel(X)
        for kind in (PAIRS, PHASES):
            for count in COUNTS:
                features = FourierFeatures(kernel, 2, count, replicate.rng(f"{label} {kind}", count), kind=kind)(X)
                error = features @ features.T - K
                traces[_name(label, kind, count)] = Trace(
                    log_error=np.log(np.abs(error).max()),
                    squared=np.mean(error**2),
                    diagonal=np.abs(error.diagonal()).max(),
                )
    return traces
