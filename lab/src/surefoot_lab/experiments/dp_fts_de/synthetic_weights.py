"""Weights that become equal, or stay with a sub-region's own agents for good."""

from __future__ import annotations

from collections.abc import Mapping

from surefoot_lab import Budget, Equal, Metric, Order, Replicate, Trace, experiment
from surefoot_lab.experiments.dp_fts_de._synthetic import FIXED, SOURCE, TS, played, private

ADAPTIVE, STAYING = "adaptive weights", "fixed weights"

S = Metric("simple_regret")

claims = [
    Equal("equal at 5", (S[ADAPTIVE].at(5), S[STAYING].at(5))),
    Order("adaptive below fixed at 40", S[ADAPTIVE].at(40) < S[STAYING].at(40)),
    Order("fixed below TS at 20", S[STAYING].at(20) < S[TS].at(20)),
]


@experiment(
    "dp-fts-de/synthetic-weights",
    source=SOURCE + "Fig. C.6a",
    unit="drawn function",
    quick=Budget(6, size=1000, agents=100, horizon=40),
    full=Budget(50, minutes=60, size=1000, agents=200, horizon=40),
)
def run(replicate: Replicate) -> Mapping[str, Trace]:
    """DP-FTS-DE (P = 2, q = 0.25, z = 1, S = 11) with both kinds of weights, and TS."""
    return played(replicate, {TS: {}, ADAPTIVE: private(), STAYING: private(weighting=FIXED)})
