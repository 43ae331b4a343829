"""How long should a block of R-GP-UCB be? From 5 rounds to the whole run."""

from __future__ import annotations

from collections.abc import Mapping

from surefoot_lab import Budget, Equal, Exact, Metric, Order, Replicate, Trace, Trend, experiment, rises
from surefoot_lab.experiments.tv_gp_ucb._drifting import UCB, compare_tracking, functions, resetting, static

RATE = 0.01
BLOCKS = (5, 10, 20, 38, 75, 120, 200)

A = Metric("average_regret")


def name(block: int) -> str:
    """The name of the policy with a block length."""
    return f"N = {block}"


claims = [
    Order("N = 5 and N = 10 are worse than N = 75", [A[name(n)] > A[name(75)] for n in (5, 10)], marks=("reproduced",)),
    Equal(
        "the mean is flat for N = 75, 120, 200",
        [(A[name(75)], A[name(120)]), (A[name(120)], A[name(200)]), (A[name(75)], A[name(200)])],
        margin=0.1,
        marks=("reproduced",),
    ),
    Trend(
        "the standard deviation over trials rises from N = 75 to 200",
        rises(*[A[name(n)] for n in (75, 120, 200)]),
        statistic="std",
        marks=("reproduced",),
    ),
    Exact("N = T is GP-UCB", {A[name(200)] - A[UCB]: 0.0}),
]


@experiment(
    "tv-gp-ucb/block-length",
    source="Bogunovic 2019 (thesis), Fig. 5.2d",
    unit="drawn function",
    quick=Budget(8, side=50, horizon=200),
    full=Budget(200, minutes=60, side=50, horizon=200),
)
def run(replicate: Replicate) -> Mapping[str, Trace]:
    """R-GP-UCB with blocks of 5 to 200 rounds, rate 0.01."""
    values = functions("SE", replicate["side"], replicate["horizon"], RATE, replicate)
    makers = {name(n): resetting("SE", n) for n in BLOCKS}
    return compare_tracking({**makers, UCB: static("SE")}, values, replicate)
