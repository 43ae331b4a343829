"""What more samples buy four dives ahead, and what they cost: N = 5, 25 and 50."""

from __future__ import annotations

from collections.abc import Mapping

from surefoot_lab import Budget, Exact, Metric, Order, Replicate, Trace, Trend, experiment, falls, rises
from surefoot_lab.experiments.macro_gpo._methods import (
    BUCB,
    LIKELY,
    SOURCE,
    O,
    S,
    baselines,
    planner,
    race,
)
from surefoot_lab.experiments.macro_gpo.plankton import LIPSCHITZ
from surefoot_lab.routes import plankton

SIZES = (5, 25, 50)


def name(samples: int) -> str:
    """What a planner with so many samples is called."""
    return f"N = {samples}"


BEST, slowest = name(50), Metric("slowest")

claims = [
    Order("output: N = 50 above GP-BUCB (published +0.26)", O[BEST] > O[BUCB]),
    Order("simple regret: N = 50 below GP-BUCB (published −0.21)", S[BEST] < S[BUCB]),
    Order("output: N = 50 above the most likely plan (published +0.083)", O[BEST] > O[LIKELY], marks=("doubtful",)),
    Order("simple regret: N = 50 below the most likely plan (published −0.233)", S[BEST] < S[LIKELY]),
    Trend(
        "output rises and simple regret falls over N = 5, 25, 50",
        [rises(*(O[name(n)] for n in SIZES)), falls(*(S[name(n)] for n in SIZES))],
        marks=("doubtful",),
    ),
    Exact(
        "at most 60 s for the longest choice at N = 50",
        slowest[BEST] <= 60.0,
        marks=("card",),
        note="published: 2,085 s more than GP-BUCB per stage, on other hardware; not a target",
    ),
]


@experiment(
    "macro-gpo/plankton-runtime",
    source=SOURCE + "Fig. 6; thesis Fig. 4.13",
    unit="drawn field",
    quick=Budget(10),
    full=Budget(200, minutes=60),
    priority=2,
)
def run(replicate: Replicate) -> Mapping[str, Trace]:
    """Four dives ahead with few and with many samples."""
    route = plankton(replicate.rng("field"))
    methods = {name(n): planner(route, 4, samples=n) for n in SIZES} | baselines(route, LIPSCHITZ)
    traces = race(route, methods, replicate.integer)
    for trace in traces.values():
        trace.metrics["slowest"] = trace["seconds"].max()
    return traces
