"""The two parts of distributed exploration, one at a time."""

from __future__ import annotations

from collections.abc import Mapping

from surefoot_lab import Budget, Metric, Order, Replicate, Trace, experiment
from surefoot_lab.experiments.dp_fts_de._synthetic import EQUAL, FTS, SOURCE, explored, played

BOTH, UNWEIGHTED, ANYWHERE = "FTS-DE, P = 2", "equal weights", "starts anywhere"

S = Metric("simple_regret")

claims = [
    Order("FTS-DE below equal weights", S[BOTH].at(10) < S[UNWEIGHTED].at(10)),
    Order("FTS-DE below initial points over the whole domain", S[BOTH].at(10) < S[ANYWHERE].at(10)),
]


@experiment(
    "dp-fts-de/synthetic-exploration-parts",
    source=SOURCE + "Fig. C.2",
    unit="drawn function",
    quick=Budget(6, size=1000, agents=100, horizon=20),
    full=Budget(50, minutes=50, size=1000, agents=200, horizon=40),
)
def run(replicate: Replicate) -> Mapping[str, Trace]:
    """FTS-DE, without regional weights, without regional starts, and without both."""
    methods = {
        FTS: explored(1),
        BOTH: explored(2),
        UNWEIGHTED: explored(2, weighting=EQUAL),
        ANYWHERE: {**explored(2), "local": False},
    }
    return played(replicate, methods)
