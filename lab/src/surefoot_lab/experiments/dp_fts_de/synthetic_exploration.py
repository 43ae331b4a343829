"""Distributed exploration without privacy: does each part of the domain need its own explorers?"""

from __future__ import annotations

from collections.abc import Mapping

from surefoot_lab import Budget, Metric, Order, Replicate, Trace, Trend, experiment, falls
from surefoot_lab.experiments.dp_fts_de._synthetic import FTS, POOLED, RANDOM, SOURCE, TS, explored, played

S = Metric("simple_regret")


def named(regions: int) -> str:
    """What FTS-DE with so many sub-regions is called."""
    return f"FTS-DE, P = {regions}"


claims = [
    Order("mean simple regret at 10: FTS below TS", S[FTS].at(10) < S[TS].at(10), marks=("reproduced",)),
    Order(
        "FTS-DE (P = 2) below FTS, considerably",
        S[named(2)].at(10) < S[FTS].at(10),
        marks=("doubtful",),
        note="in the card the same direction, within noise",
    ),
    Trend("larger P is better", falls(*[S[named(P)].at(10) for P in (2, 3, 4)]), marks=("doubtful",)),
    Order(
        "FTS below the control that follows random functions",
        S[FTS].at(10) < S[RANDOM].at(10),
        marks=("reproduced", "card"),
    ),
]


@experiment(
    "dp-fts-de/synthetic-exploration",
    source=SOURCE + "Fig. 1a (6.3a)",
    unit="drawn function",
    quick=Budget(6, size=1000, agents=100, horizon=20, regions=(2, 3, 4)),
    full=Budget(50, minutes=60, size=1000, agents=200, horizon=40, regions=(2, 3, 4)),
)
def run(replicate: Replicate) -> Mapping[str, Trace]:
    """TS, FTS with a coordinator, FTS-DE with 2 to 4 sub-regions, the control, and all data pooled."""
    methods = {TS: {}, RANDOM: {}, POOLED: {}, FTS: explored(1)}
    return played(replicate, methods | {named(P): explored(P) for P in replicate["regions"]})
