"""Drift that is known: TV-GP-UCB with the true rate, R-GP-UCB with the published block length, GP-UCB.

Beside them a genie that plays the maximum of the previous function, the floor of the lower bound, and a random choice.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from surefoot.policy.drift.r_gp_ucb import block_length
from surefoot_lab import Budget, Metric, Number, Order, Replicate, Trace, experiment
from surefoot_lab.experiments.tv_gp_ucb._drifting import (
    GENIE,
    KERNELS,
    RANDOM,
    UCB,
    compare_tracking,
    functions,
    resetting,
    static,
    tracking,
)

RATES = (0.001, 0.01, 0.03)
TV, R = "TV-GP-UCB", "R-GP-UCB"
SPAN = 5  # rounds before and after a reset

A, after, before = Metric("average_regret"), Metric("after_reset"), Metric("before_reset")


def name(method: str, kernel: str, rate: float) -> str:
    """The name of a method on one kernel at one rate."""
    return f"{method}, {kernel}, eps = {rate}"


def _cells(method: str, numbers: tuple[float, float, float], error: float) -> dict[Any, Any]:
    return {A[name(method, "SE", e)].at(200): (n, error) for e, n in zip(RATES, numbers, strict=True)}


claims = [
    Order(
        "SE: TV-GP-UCB below R-GP-UCB at T = 200, three rates",
        [A[name(TV, "SE", e)] < A[name(R, "SE", e)] for e in RATES],
        marks=("reproduced",),
    ),
    Order(
        "Matern-5/2: TV-GP-UCB below R-GP-UCB, three rates",
        [A[name(TV, "Matern", e)] < A[name(R, "Matern", e)] for e in RATES],
    ),
    Order(
        "R-GP-UCB is worse in the 5 rounds after a reset than in the 5 before; TV-GP-UCB has no such step",
        [
            test
            for e in RATES
            for method in [name(R, "SE", e)]
            for other in [name(TV, "SE", e)]
            for test in (
                after[method] > before[method],
                (after[method] - before[method]) > (after[other] - before[other]),
            )
        ],
        note="no step of TV-GP-UCB: a smaller one at the same rounds",
    ),
    Number(
        "SE: R_T/T at T = 200",
        {
            **_cells(TV, (0.185, 0.343, 0.556), 0.02),
            **_cells(R, (0.385, 0.732, 0.971), 0.02),
            **_cells(UCB, (0.258, 0.557, 0.973), 0.025),
            **_cells(GENIE, (0.001, 0.011, 0.032), 0.001),
        },
        marks=("reproduced", "card"),
    ),
    Order(
        "the genie is below every policy",
        [A[name(GENIE, "SE", e)] < A[name(m, "SE", e)] for e in RATES for m in (TV, R, UCB, RANDOM)],
    ),
]


@experiment(
    "tv-gp-ucb/matched",
    source="Bogunovic 2019 (thesis), section 5.4.1, Fig. 5.2a-b; Bogunovic, Scarlett, Cevher 2016",
    unit="drawn function",
    quick=Budget(8, side=50, horizon=200, kernels=("SE",)),
    full=Budget(200, minutes=90, side=50, horizon=200, kernels=("SE", "Matern")),
)
def run(replicate: Replicate) -> Mapping[str, Trace]:
    """TV-GP-UCB, R-GP-UCB and GP-UCB on drifting functions with known rates."""
    traces: dict[str, Trace] = {}
    side, horizon = replicate["side"], replicate["horizon"]
    for kernel in replicate["kernels"]:
        for rate in RATES:
            values = functions(kernel, side, horizon, rate, replicate)
            block = int(block_length(rate, KERNELS[kernel], 2, horizon))
            makers = {TV: tracking(kernel, rate), R: resetting(kernel, block), UCB: static(kernel)}
            for method, trace in compare_tracking(makers, values, replicate, references=True).items():
                traces[name(method, kernel, rate)] = _with_steps(trace, block)
    return traces


def _with_steps(trace: Trace, block: int) -> Trace:
    """Add the mean regret just after and just before the resets."""
    regret = trace["regret"]
    starts = [s for s in range(block, len(regret), block) if s >= SPAN and s + SPAN <= len(regret)]
    later, earlier = ([regret[s + shift : s + shift + SPAN].mean() for s in starts] for shift in (0, -SPAN))
    known = {"after_reset": np.mean(later), "before_reset": np.mean(earlier)} if starts else {}
    return Trace(**trace.metrics, **known)
