"""Privacy against utility: more agents sampled, more noise."""

from __future__ import annotations

from collections.abc import Mapping

from surefoot_lab import Budget, Metric, Order, Replicate, Trace, Trend, experiment, falls, rises
from surefoot_lab.experiments.dp_fts_de._synthetic import NOISE, RANDOM, SOURCE, TS, played, private

SETTINGS = ((0.15, 1.0), (0.25, 1.0), (0.5, 1.0), (0.25, 1.2), (0.25, 1.5))

S = Metric("simple_regret")


def named(q: float, z: float) -> str:
    """What DP-FTS-DE at a privacy loss is called."""
    return f"q = {q:g}, z = {z:g}"


MIDDLE = named(0.25, 1.0)

claims = [
    Trend(
        "regret at 40 falls with q",
        falls(*[S[named(q, 1.0)].at(40) for q in (0.15, 0.25, 0.5)]),
        marks=("reproduced",),
    ),
    Trend("regret at 10 rises with z", rises(*[S[named(0.25, z)].at(10) for z in (1.0, 1.2, 1.5)])),
    Order(
        "DP-FTS-DE (q = 0.25, z = 1) below a broadcast of noise alone at 10",
        S[MIDDLE].at(10) < S[NOISE].at(10),
        marks=("card",),
    ),
    Order("DP-FTS-DE (q = 0.25, z = 1) below TS at 10", S[MIDDLE].at(10) < S[TS].at(10), marks=("reproduced",)),
]


@experiment(
    "dp-fts-de/synthetic-tradeoff",
    source=SOURCE + "Fig. 2a-b (6.4a-b)",
    unit="drawn function",
    quick=Budget(6, size=1000, agents=100, horizon=40),
    full=Budget(50, minutes=90, size=1000, agents=200, horizon=40),
)
def run(replicate: Replicate) -> Mapping[str, Trace]:
    """DP-FTS-DE at five privacy losses, noise alone, random functions, and TS."""
    methods = {TS: {}, RANDOM: {}, NOISE: {**private(), "send": False}}
    return played(replicate, methods | {named(q, z): private(q=q, z=z) for q, z in SETTINGS})
