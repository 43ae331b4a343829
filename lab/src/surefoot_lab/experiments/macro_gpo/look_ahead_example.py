"""Two vehicles start alike: one looks four moves of two cells ahead, with a single sample, the other only one.

Where they part after a common beginning, who ends higher? The published picture shows one field, which is not
published; here the pattern is looked for in many. Both know the start and a buoy in the corner.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from surefoot_lab import Budget, Metric, Replicate, Share, Trace, derived, experiment
from surefoot_lab.experiments.macro_gpo._methods import DB, SOURCE, H, planner, race
from surefoot_lab.routes import plankton

COMMON = 5  # stages that the pattern has in common
REACHED, MISSED = 0.05, 0.5  # what counts as the global maximum, and as a local one, in units of the signal

common, S = Metric("common")["pair"], Metric("simple_regret")


def _won(traces: Mapping[str, Trace]) -> float:
    """Whether looking ahead ended with the smaller regret; not counted where they never part, start apart or tie."""
    stages, ahead, myopic = (float(np.atleast_1d(traces[m][k])[-1]) for m, k in _READ)
    if not 0 < stages < traces["pair"]["stages"] or ahead == myopic:
        return np.nan
    return float(ahead < myopic)


def _pattern(traces: Mapping[str, Trace]) -> float:
    stages, ahead, myopic = (float(np.atleast_1d(traces[m][k])[-1]) for m, k in _READ)
    return float(COMMON <= stages < traces["pair"]["stages"] and ahead <= REACHED and myopic >= MISSED)


_READ = (("pair", "common"), (H[4], "simple_regret"), (DB, "simple_regret"))

claims = [
    Share(
        "where they part after a common beginning, H = 4 ends with the smaller simple regret more often",
        derived(_won, "H = 4 ahead") > 0.5,
        marks=("card",),
    ),
    Share(
        "some field shows the published pattern",
        derived(_pattern, "pattern") > 0.0,
        note=f"{COMMON} common stages, then simple regret at most {REACHED:g} against at least {MISSED:g}",
    ),
]


@experiment(
    "macro-gpo/look-ahead-example",
    source=SOURCE + "Fig. 1; thesis Fig. 4.12",
    unit="drawn field",
    quick=Budget(50),
    full=Budget(1000, minutes=20),
    priority=2,
)
def run(replicate: Replicate) -> Mapping[str, Trace]:
    """Two vehicles that part after a common beginning."""
    route = plankton(replicate.rng("field"), length=2)
    methods = {H[4]: planner(route, 4, samples=1), DB: planner(route, 1)}
    traces = race(route, methods, replicate.integer, prior=[0], stops=True)
    ahead, myopic = (traces[name].metrics.pop("stops").reshape(route.stages, -1) for name in (H[4], DB))
    same = (ahead == myopic).all(axis=1)
    shared = route.stages if same.all() else int(same.argmin())
    traces["pair"] = Trace(common=shared, stages=route.stages)
    return traces
