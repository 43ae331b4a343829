"""What does a wrong rate cost? TV-GP-UCB that assumes rates from 0 to 0.3 where the truth is 0.01."""

from __future__ import annotations

from collections.abc import Mapping

from surefoot_lab import Budget, Metric, Order, Replicate, Trace, experiment, lowest
from surefoot_lab.experiments.tv_gp_ucb._drifting import compare_tracking, functions, tracking

TRUE = 0.01
ASSUMED = (0.0, 3e-4, 1e-3, 3e-3, 0.01, 0.03, 0.1, 0.3)

A = Metric("average_regret")


def name(rate: float) -> str:
    """The name of the policy that assumes a rate."""
    return f"assumed {rate:g}"


_truth = A[name(TRUE)]
claims = [
    Order(
        "assuming no drift (GP-UCB) is the worst of the range",
        [test for e in ASSUMED[1:] for test in lowest(A[name(e)], [A[name(0.0)]])],
        marks=("reproduced",),
    ),
    Order(
        "a slight under-estimate, 0.003, costs at most 5 %",
        A[name(3e-3)] < 1.05 * _truth,
        marks=("reproduced",),
    ),
    Order("a strong under-estimate, 0.0003, costs", A[name(3e-4)] > _truth, marks=("reproduced",)),
    Order(
        "an over-estimate, 0.03, costs less than the strong under-estimate",
        (A[name(0.03)] - _truth) < (A[name(3e-4)] - _truth),
        marks=("reproduced",),
    ),
]


@experiment(
    "tv-gp-ucb/mismatch",
    source="Bogunovic 2019 (thesis), Fig. 5.2c",
    unit="drawn function",
    quick=Budget(8, side=50, horizon=200),
    full=Budget(200, minutes=60, side=50, horizon=200),
)
def run(replicate: Replicate) -> Mapping[str, Trace]:
    """TV-GP-UCB with assumed forgetting rates from 0 to 0.3, true rate 0.01."""
    values = functions("SE", replicate["side"], replicate["horizon"], TRUE, replicate)
    return compare_tracking({name(e): tracking("SE", e) for e in ASSUMED}, values, replicate)
