"""How many sub-regions, when noise grows with them?"""

from __future__ import annotations

from collections.abc import Mapping

from surefoot_lab import Budget, Metric, Order, Replicate, Trace, experiment
from surefoot_lab.experiments.dp_fts_de._synthetic import SOURCE, played, private

REGIONS = (1, 2, 3, 5, 8)
BETWEEN = 2  # the authors' choice, taken before looking

S = Metric("simple_regret")


def named(regions: int) -> str:
    """What DP-FTS-DE with so many sub-regions is called."""
    return f"P = {regions}"


claims = [
    Order(
        "an intermediate P (2) beats P = 1",
        S[named(BETWEEN)].at(10) < S[named(1)].at(10),
        marks=("doubtful",),
    ),
    Order("an intermediate P (2) beats the largest (8)", S[named(BETWEEN)].at(10) < S[named(8)].at(10)),
]


@experiment(
    "dp-fts-de/synthetic-regions",
    source=SOURCE + "Fig. C.3",
    unit="drawn function",
    quick=Budget(6, size=1000, agents=100, horizon=20, regions=(1, 2, 8)),
    full=Budget(50, minutes=80, size=1000, agents=200, horizon=40, regions=REGIONS),
)
def run(replicate: Replicate) -> Mapping[str, Trace]:
    """DP-FTS-DE with 1 to 8 sub-regions at q = 0.25, z = 1, S = 11."""
    return played(replicate, {named(P): private(P) for P in replicate["regions"]})
