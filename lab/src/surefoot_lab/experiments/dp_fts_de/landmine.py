"""29 landmine fields in private: does a broadcast with single-digit privacy loss help, and is it what they know?"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from surefoot_lab import (
    Budget,
    Data,
    Metric,
    Number,
    Order,
    Replicate,
    Share,
    Trace,
    Trend,
    Unit,
    experiment,
    falls,
    rises,
)
from surefoot_lab.experiments.dp_fts_de._landmine import (
    AT_Q,
    AT_Z,
    EXPLORED,
    FTS,
    LOCAL,
    NOISE,
    RANDOM,
    SOURCE,
    TS,
    named,
    options,
    played,
    private,
)
from surefoot_lab.readings import Reading, Replicates, across

READ_OFF = {TS: 0.2375, FTS: 0.2346, EXPLORED: 0.2314} | {
    named(q, z): value
    for (q, z), value in zip(
        (*AT_Q, *AT_Z), (0.2319, 0.2327, 0.2332, 0.2358, 0.2373, 0.2376, 0.2374, 0.2336, 0.2349), strict=True
    )
}

S = Metric("simple_regret")


def _below() -> Reading:
    """For each private setting, whether its mean 1 − AUC is below that of TS."""

    def values(replicates: Replicates) -> np.ndarray:
        gaps = [S[named(*s)].values(replicates) - S[TS].values(replicates) for s in (*AT_Q, *AT_Z)]
        return np.array([float(gap[np.isfinite(gap)].mean() < 0.0) for gap in gaps if np.isfinite(gap).any()])

    return across(values, "settings below TS")


claims = [
    Share("more than half of the nine private settings below TS", _below() > 0.5, marks=("doubtful",)),
    Trend("1 − AUC falls as the loss grows (five z at q = 0.35)", rises(*[S[named(*s)] for s in AT_Q])),
    Trend(
        "1 − AUC falls as q grows at z = 1",
        falls(*[S[named(*s)] for s in (*AT_Z, AT_Q[0])]),
        marks=("doubtful",),
        note="the values read off are not monotone: 0.2336 at q = 0.2, 0.2349 at 0.25",
    ),
    Order("FTS-DE below FTS", S[EXPLORED] < S[FTS]),
    Order("FTS below TS", S[FTS] < S[TS]),
    Number(
        "values read off the authors' plot (± 0.0005)",
        {S[name].at(60): value for name, value in READ_OFF.items()},
        repetitions=10,
        tolerance=0.0005,
    ),
    Order(
        "DP-FTS-DE (q = 0.35, z = 1) below a broadcast of noise alone",
        S[named(*AT_Q[0])] < S[NOISE],
        marks=("doubtful", "card"),
        note="the noise has a standard deviation of 9 against signals of order 1 in the first rounds",
    ),
]


@experiment(
    "dp-fts-de/landmine",
    source=SOURCE + "Fig. 3a-b (6.5a-b)",
    data=Data("published", "landmine"),
    unit=Unit.single("set of landmine fields"),
    quick=Budget(2, horizon=5, settings=((0.35, 1.0),), controls=(FTS, EXPLORED)),
    full=Budget(10, minutes=120, horizon=60, settings=(*AT_Q, *AT_Z), controls=(FTS, EXPLORED, LOCAL, RANDOM)),
)
def run(replicate: Replicate) -> Mapping[str, Trace]:
    """TS, FTS, FTS-DE and DP-FTS-DE on 29 landmine fields, and controls: noise alone, random queries, and
    Thompson sampling that starts where FTS-DE does."""
    methods = {name: options(name) for name in (TS, *replicate["controls"])}
    methods[NOISE] = {**private(*AT_Q[0]), "send": False}
    return played(replicate, methods | {named(q, z): private(q, z) for q, z in replicate["settings"]})
