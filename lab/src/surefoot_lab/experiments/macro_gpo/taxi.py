"""A taxi looks for passengers along the roads of a city: four cruises of five regions, planned ahead.

Published: 35 first regions, N = 300, 1,500 iterations of the anytime planner. Differences between the planners are
below the published standard errors; the same first regions and moves for all methods make the comparison sharper.
"""

from __future__ import annotations

from collections.abc import Mapping

from surefoot_lab import Budget, Data, Equal, Exact, Metric, Number, Order, Replicate, Trace, Trend, experiment
from surefoot_lab.claims import falls, rises
from surefoot_lab.experiments.macro_gpo._graphs import compared
from surefoot_lab.experiments.macro_gpo._methods import BUCB, DB, LIKELY, PE, SOURCE, H, O, S, cells, printed
from surefoot_lab.roads import published_graph, taxi

SIGMA = 0.8652  # signal standard deviation
OUTPUT = printed(
    (0.2700, 0.2574, 0.2357, 0.2108, 0.2267, 0.0770, 0.0884, 0.0007, -0.0077),
    (0.1014, 0.1019, 0.1109, 0.1081, 0.1134, 0.0808, 0.0819, 0.0945, 0.0957),
)
REGRET = printed(
    (1.5423, 1.5843, 1.7396, 1.7050, 1.7314, 1.5203, 1.5177, 1.7945, 1.7320),
    (0.1047, 0.0994, 0.1179, 0.1212, 0.1158, 0.1247, 0.1262, 0.1515, 0.1149),
)
FACTS = {
    "places": 2506.0,
    "most_paths": 1193.0,
    "mean_paths": 177.5,
    "without_paths": 7.0,
    "mean": 0.7402,
    "maximum": 4.04305,
}
TOLERANCE = {"mean_paths": 0.05, "mean": 5e-5, "maximum": 5e-6}

claims = [
    Exact(
        "2,506 regions, at most 8 ways out of each, paths of five: 177.5 on average, at most 1,193, none from 7; "
        "data mean 0.7402, maximum 4.04305",
        [abs(Metric(k)["city"] - v).named(f"|{k} − {v:g}|") <= TOLERANCE.get(k, 0.0) for k, v in FACTS.items()]
        + [Metric("degree")["city"] <= 8.0],
        marks=("reproduced",),
    ),
    Number("average output, Table IX", cells(O, OUTPUT)),
    Number("simple regret, Table IX", cells(S, REGRET)),
    Order("output: H = 4 above DB-GP-UCB (published +0.069 σ)", O[H[4]] > O[DB], marks=("doubtful",)),
    Order("simple regret: H = 4 below DB-GP-UCB (published −0.188 σ)", S[H[4]] < S[DB], marks=("doubtful",)),
    Order("output: H = 4 above the most likely plan (published +0.05 σ)", O[H[4]] > O[LIKELY], marks=("doubtful",)),
    Order(
        "simple regret: H = 4 below the most likely plan (published −0.219 σ)",
        S[H[4]] < S[LIKELY],
        marks=("doubtful",),
    ),
    Trend("output rises over H = 1, 2, 3, 4", rises(*(O[name] for name in H.values())), marks=("doubtful",)),
    Trend(
        "simple regret falls over H = 1, 2, 3, 4",
        falls(*(S[name] for name in H.values())),
        marks=("contradicted",),
        note="Table IX itself goes up from 1.7050 (H = 1) to 1.7396 (H = 2)",
    ),
    Equal(
        "GP-BUCB and GP-UCB-PE match H = 4 in simple regret",
        [(S[BUCB], S[H[4]]), (S[PE], S[H[4]])],
        margin=0.1 * SIGMA,
    ),
    Order(
        "and have less output by at least 0.1",
        [O[BUCB] + 0.1 < O[H[4]], O[PE] + 0.1 < O[H[4]]],
        note="the second half of the claim before",
    ),
]


@experiment(
    "macro-gpo/taxi",
    source=SOURCE + "Table IX, Fig. 7a-b; thesis Table B.3",
    data=Data("published", "taxi"),
    unit="start in the published field",
    quick=Budget(6, samples=100, iterations=200, deepest=20),
    full=Budget(140, minutes=110, samples=300, iterations=1500, deepest=500),
)
def run(replicate: Replicate) -> Mapping[str, Trace]:
    """A taxi that plans its cruises."""
    traces = compared(taxi(replicate.rng("route")), replicate)
    if replicate.index == 0:
        traces["city"] = Trace(**published_graph("taxi"))
    return traces
