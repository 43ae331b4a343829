"""What privacy costs by ε, on functions drawn from a Gaussian process.

The projection is not private (see po-gp-ucb/reconstruction): ε is the number that the authors' threshold is computed
from. Beside it stands rows with Gaussian noise, for which ε is a guarantee, and the projection as the authors' released
code computes it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from surefoot.private.projection import PublishedProjection, omega, singular_values, threshold_epsilon
from surefoot_lab import Budget, Exact, Metric, Number, Order, Replicate, Trace, ascending, experiment
from surefoot_lab.experiments.po_gp_ucb._outsourced import UCB
from surefoot_lab.experiments.po_gp_ucb._sweeps import CODE
from surefoot_lab.experiments.po_gp_ucb._synthetic import DELTA, HORIZON, race

R = 10
EXPONENTS = (1.5, 1.1, 0.9, 0.0)
GRID, FIXED = "100 x 100 grid", "fixed projection"


def label(exponent: float) -> str:
    """What ε = e^x is called."""
    return f"ε = e^{exponent:.1f}"


S, sigma, threshold = Metric("simple_regret"), Metric("smallest")[GRID], Metric("omega")
excess = {e: (S[label(e)] - S[UCB]).named(f"excess at e^{e:.1f}") for e in EXPONENTS}

claims = [
    Exact(
        "both singular values of the centered grid are 1030.88; ω is 976.1 at e^1.1 (no lift), 1192.2 at e^0.9 and "
        "2932.3 at e^0.0 (lift)",
        [
            abs(sigma - 1030.88) <= 0.01,
            abs(Metric("largest")[GRID] - 1030.88) <= 0.01,
            *(abs(threshold[label(e)] - w) <= 0.05 for e, w in ((1.1, 976.1), (0.9, 1192.2), (0.0, 2932.3))),
            threshold[label(1.1)] < sigma,
            threshold[label(0.9)] > sigma,
        ],
        marks=("reproduced",),
    ),
    Exact(
        "for a fixed projection matrix the release is the same for every ε ≥ ε*",
        {Metric("difference")[FIXED]: 0.0},
        note="lowered[fixed projection] is the difference just below ε*",
    ),
    Number("excess over GP-UCB at e^1.1 is 0.011 σ_y", {excess[1.1]: 0.011}, repetitions=50, marks=("reproduced",)),
    Number("excess over GP-UCB at e^0.9 is 0.069 σ_y", {excess[0.9]: 0.069}, repetitions=50, marks=("reproduced",)),
    Number("excess over GP-UCB at e^0.0 is 0.099 σ_y", {excess[0.0]: 0.099}, repetitions=50, marks=("reproduced",)),
    Order(
        "smaller ε is worse, and every ε worse than GP-UCB",
        ascending(S[UCB], S[label(1.1)], S[label(0.9)], S[label(0.0)]),
        marks=("reproduced",),
    ),
]


@experiment(
    "po-gp-ucb/synthetic-epsilon",
    source="Kharkovskii, Dai, Low 2020, section 4, Fig. 2a; Kharkovskii 2020 (thesis), Fig. 3.2",
    unit="drawn function",
    quick=Budget(50, side=100, horizon=HORIZON),
    full=Budget(1000, minutes=30, side=100, horizon=HORIZON),
)
def run(replicate: Replicate) -> Mapping[str, Trace]:
    """Regret by ε on draws of a Gaussian process, published projection and Gaussian release."""
    drawn = race(replicate)
    traces = drawn.baselines()
    for exponent in EXPONENTS:
        epsilon = math.exp(exponent)
        traces[label(exponent)] = drawn.projection(R, epsilon)
        traces[label(exponent)].metrics["omega"] = np.asarray(omega(R, epsilon, DELTA))
        traces[f"Gaussian, {label(exponent)}"] = drawn.gaussian(epsilon)
        traces[CODE + label(exponent)] = drawn.projection(R, epsilon, code=True)
    if replicate.index == 0:
        values = singular_values(drawn.table.rows)
        traces[GRID] = Trace(smallest=values[-1], largest=values[0])
    least, M = threshold_epsilon(R, DELTA, drawn.table.smallest) * (1.0 + 1e-12), drawn.normals[:, :R]
    released = [
        PublishedProjection(epsilon=least * times, delta=DELTA, dimension=R).project(drawn.table.rows, M)
        for times in (1.0, 3.0, 1000.0, 0.999)
    ]
    traces[FIXED] = Trace(
        difference=max(np.abs(other - released[0]).max() for other in released[1:3]),
        lowered=np.abs(released[3] - released[0]).max(),
    )
    return traces
