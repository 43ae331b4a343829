"""An underwater vehicle looks for plankton: five dives of four cells, planned one to four dives ahead.

Published: 250 fields, N = 100 samples per node. Here all nodes of a stage share their samples, which makes four dives
ahead cheap, and more fields affordable.
"""

from __future__ import annotations

from collections.abc import Mapping

from surefoot_lab import Budget, Number, Order, Replicate, Trace, experiment
from surefoot_lab.experiments.macro_gpo._methods import (
    BATCHES,
    DB,
    LIKELY,
    SOURCE,
    H,
    O,
    S,
    baselines,
    cells,
    longer_is_better,
    planner,
    printed,
    race,
)
from surefoot_lab.routes import plankton

LIPSCHITZ = 5.0  # per km, of local penalization: 10 in the coordinates of the released code
OUTPUT = printed(
    (0.6310, 0.5809, 0.5446, 0.5379, 0.5719, 0.3635, 0.3396, 0.2595, 0.3868),
    (0.0458, 0.0486, 0.0464, 0.0462, 0.0467, 0.0467, 0.0486, 0.0444, 0.0444),
)
REGRET = printed(
    (1.2500, 1.3303, 1.3651, 1.4612, 1.3984, 1.4079, 1.3717, 1.5104, 1.3666),
    (0.0541, 0.0542, 0.0550, 0.0572, 0.0537, 0.0568, 0.0573, 0.0544, 0.0547),
)

claims = [
    Number("average output, Table VII", cells(O, OUTPUT)),
    Number("simple regret, Table VII", cells(S, REGRET)),
    Order("output: H = 4 above DB-GP-UCB (published +0.093)", O[H[4]] > O[DB]),
    Order("simple regret: H = 4 below DB-GP-UCB (published −0.211)", S[H[4]] < S[DB]),
    Order(
        "output: H = 4 above the most likely plan (published +0.059)",
        O[H[4]] > O[LIKELY],
        marks=("doubtful",),
        note="less than one unpaired standard error",
    ),
    Order("simple regret: H = 4 below the most likely plan (published −0.148)", S[H[4]] < S[LIKELY]),
    *longer_is_better(),
    Order("each batch method has less output than DB-GP-UCB", [O[name] < O[DB] for name in BATCHES]),
]


@experiment(
    "macro-gpo/plankton",
    source=SOURCE + "Table VII, Fig. 5a-b; thesis Table B.1",
    unit="drawn field",
    quick=Budget(25, samples=100, deepest=50),
    full=Budget(1000, minutes=110, samples=100, deepest=100),
)
def run(replicate: Replicate) -> Mapping[str, Trace]:
    """Plankton found by dives that are planned ahead."""
    route = plankton(replicate.rng("field"))
    samples = {2: replicate["samples"], 3: replicate["samples"], 4: replicate["deepest"]}
    methods = {H[h]: planner(route, h, samples=n) for h, n in samples.items()} | baselines(route, LIPSCHITZ)
    return race(route, methods, replicate.integer)
