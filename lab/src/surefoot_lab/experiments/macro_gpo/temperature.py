"""A robot looks for warm places in the corridors of a laboratory: four drives of five places, planned ahead.

The graph is the published one. The temperatures are not published: a field drawn with the published hyper-parameters
stands for them, another one for every 35 starts. Published: 35 starts on one field, N = 300, 1,500 iterations.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from surefoot.loop.streams import stream
from surefoot_lab import Budget, Data, Exact, Metric, Number, Order, Replicate, Trace, Unit, experiment
from surefoot_lab.experiments.macro_gpo._graphs import compared
from surefoot_lab.experiments.macro_gpo._methods import DB, LIKELY, SOURCE, H, O, S, cells, longer_is_better, printed
from surefoot_lab.roads import corridor, published_graph
from surefoot_lab.routes import Route

STARTS = 35  # on one field
DATA = Data("substitute", "intel_lab", instead_of="the temperatures of one slot")
OUTPUT = printed(
    (0.6371, 0.6137, 0.5450, 0.4874, 0.5708, 0.1377, 0.2067, 0.3801, 0.2549),
    (0.0797, 0.0829, 0.0951, 0.1017, 0.0908, 0.0734, 0.0758, 0.1044, 0.0833),
)
REGRET = printed(
    (0.4069, 0.4285, 0.5613, 0.6734, 0.5911, 0.6700, 0.6670, 0.6868, 0.5168),
    (0.0723, 0.0678, 0.0834, 0.0934, 0.0886, 0.0758, 0.0762, 0.1116, 0.0733),
)
FACTS = {"places": 145.0, "edges": 364.0, "degree": 6.0, "most_paths": 114.0, "fewest_paths": 1.0, "mean_paths": 27.06}

claims = [
    Exact(
        "145 places, 182 edges (both ways), degree at most 6; paths of five: 27.06 on average, 1 to 114",
        {Metric(k)["laboratory"]: v for k, v in FACTS.items()},
        tolerance=0.005,
        marks=("reproduced",),
    ),
    Number("average output, Table XII", cells(O, OUTPUT), marks=("needs-original",)),
    Number("simple regret, Table XII", cells(S, REGRET), marks=("needs-original",)),
    Order("output: H = 4 above DB-GP-UCB (published +0.194 σ)", O[H[4]] > O[DB]),
    Order("simple regret: H = 4 below DB-GP-UCB (published −0.345 σ)", S[H[4]] < S[DB]),
    Order("output: H = 4 above the most likely plan (published +0.086 σ)", O[H[4]] > O[LIKELY], marks=("doubtful",)),
    Order("simple regret: H = 4 below the most likely plan (published −0.239 σ)", S[H[4]] < S[LIKELY]),
    *longer_is_better(),
]


def laboratory(replicate: Replicate, **options: Any) -> Route:
    """The route of one repetition: one field for every 35 starts."""
    field = stream(replicate.root, "field", replicate.index // STARTS)
    return corridor(replicate.rng("route"), field=field, **options)


@experiment(
    "macro-gpo/temperature",
    source=SOURCE + "Table XII, Fig. 10a-b; thesis Table B.6",
    data=DATA,
    unit=Unit("drawn field", lambda index, settings: index // STARTS),
    quick=Budget(20, samples=100, iterations=200, deepest=20),
    full=Budget(10 * STARTS, minutes=110, samples=300, iterations=1500, deepest=300),
    priority=2,
)
def run(replicate: Replicate) -> Mapping[str, Trace]:
    """A robot that plans its drives."""
    traces = compared(laboratory(replicate), replicate)
    if replicate.index == 0:
        traces["laboratory"] = Trace(**published_graph("corridor"))
    return traces
