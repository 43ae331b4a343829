"""Voters on Wikipedia in place of a Twitter network: a hundred nodes, growing numbers of deletions."""

from __future__ import annotations

from collections.abc import Mapping

from surefoot_lab import Budget, Data, Exact, Metric, Order, Replicate, Trace, Unit, experiment
from surefoot_lab.experiments.pro._sweep import GREEDY, OSU, PRO, above, graph_of, over_tau
from surefoot_lab.experiments.pro.facebook_tau import feasible
from surefoot_lab.graphs import wiki_vote

K = 100
TAUS = (2, 6, 10)

claims = [
    Order("after removal: PRO > OSU where both are feasible", above(PRO, OSU, TAUS), marks="reproduced"),
    Order("after removal: PRO > GREEDY", above(PRO, GREEDY, TAUS), marks="reproduced"),
    Exact(
        "PRO runs at τ where OSU cannot (k < τ²)",
        [Metric("feasible")[PRO] > Metric("feasible")[OSU]],
        marks="reproduced",
    ),
]


@experiment(
    "pro/twitter-tau",
    source="Bogunovic 2019 (thesis), Fig. 6.2d",
    data=Data("substitute", ("wiki_vote",), instead_of="ego-Twitter"),
    unit=Unit.single("network"),
    quick=Budget(4, taus=TAUS, seconds=3.0),
    full=Budget(20, minutes=80, taus=tuple(range(1, 16)), seconds=20.0),
)
def run(replicate: Replicate) -> Mapping[str, Trace]:
    """Dominating set of a directed network, 100 nodes, growing numbers of deletions."""
    f = graph_of(wiki_vote(), replicate).objective()
    traces = over_tau(f, K, replicate["taus"], replicate["seconds"])
    for name, tau in feasible(K).items():
        traces[name].metrics |= Trace(feasible=tau).metrics
    return traces
