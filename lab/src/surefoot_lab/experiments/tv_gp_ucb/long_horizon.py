"""Long runs: GP-UCB gets worse and worse, the others do not."""

from __future__ import annotations

from collections.abc import Mapping

from surefoot_lab import Budget, Metric, Order, Replicate, Trace, Trend, experiment, rises
from surefoot_lab.baselines.drift import SlidingWindowGPUCB
from surefoot_lab.experiments.tv_gp_ucb._drifting import (
    UCB,
    WIDTH,
    belief,
    compare_tracking,
    functions,
    resetting,
    static,
    tracking,
)

RATE = 0.01
TV, LEARNED, R38, R120, WINDOW = "TV-GP-UCB", "TV-GP-UCB, learned rate", "R, N = 38", "R, N = 120", "window of 100"
QUARTERS = (1 / 8, 1 / 4, 1 / 2, 1.0)

A = Metric("average_regret")

claims = [
    Order(
        "at T = 200 GP-UCB beats R-GP-UCB with the published block length",
        A[UCB].at(200) < A[R38].at(200),
        marks=("reproduced", "card"),
    ),
    Trend(
        "GP-UCB's average regret grows with T, and away from TV-GP-UCB's and R-GP-UCB's",
        [
            rises(*[A[UCB].part(q) for q in QUARTERS]),
            *[rises(*[A[UCB].part(q) - A[other].part(q) for q in QUARTERS]) for other in (TV, R38)],
        ],
        marks=("reproduced", "card"),
        note="after an eighth, a quarter, half and all of the run: T = 100, 200, 400, 800 in the full budget",
    ),
    Order("at T = 800 R-GP-UCB, N = 38, beats GP-UCB", A[R38].at(800) < A[UCB].at(800), marks=("reproduced", "card")),
    Order("N = 120 beats N = 38", A[R120] < A[R38], marks=("reproduced", "card")),
]


@experiment(
    "tv-gp-ucb/long-horizon",
    source="companion of Bogunovic 2019 (thesis), section 5.4.1",
    unit="drawn function",
    quick=Budget(4, side=50, horizon=400),
    full=Budget(50, minutes=60, side=50, horizon=800),
)
def run(replicate: Replicate) -> Mapping[str, Trace]:
    """TV-GP-UCB, R-GP-UCB, a sliding window and GP-UCB over 800 rounds, rate 0.01."""
    values = functions("SE", replicate["side"], replicate["horizon"], RATE, replicate)
    makers = {
        TV: tracking("SE", RATE),
        LEARNED: tracking("SE", None),
        R38: resetting("SE", 38),
        R120: resetting("SE", 120),
        WINDOW: lambda d, seed: SlidingWindowGPUCB(d, window=100, gp=belief("SE"), width=WIDTH, seed=seed),
        UCB: static("SE"),
    }
    return compare_tracking(makers, values, replicate)
