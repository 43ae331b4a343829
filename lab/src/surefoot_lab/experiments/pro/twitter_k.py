"""Voters on Wikipedia in place of a Twitter network: growing budgets, seven deletions."""

from __future__ import annotations

from collections.abc import Mapping

from surefoot_lab import Budget, Data, Order, Replicate, Trace, Unit, experiment
from surefoot_lab.experiments.pro._sweep import GREEDY, OSU, PRO, above, graph_of, over_k, raw
from surefoot_lab.graphs import wiki_vote

TAU = 7
KS = (50, 100)

claims = [
    Order(
        "raw value: GREEDY > PRO > OSU",
        [test for k in KS for test in (raw(GREEDY, k) > raw(PRO, k), raw(PRO, k) > raw(OSU, k))],
        marks="reproduced",
    ),
    Order(
        "after removal: PRO > OSU and PRO > GREEDY",
        [*above(PRO, OSU, KS), *above(PRO, GREEDY, KS)],
        marks="reproduced",
    ),
]


@experiment(
    "pro/twitter-k",
    source="Bogunovic 2019 (thesis), Fig. 6.2c",
    data=Data("substitute", ("wiki_vote",), instead_of="ego-Twitter"),
    unit=Unit.single("network"),
    quick=Budget(4, ks=KS, seconds=4.0),
    full=Budget(20, minutes=60, ks=tuple(range(50, 151, 10)), seconds=20.0),
)
def run(replicate: Replicate) -> Mapping[str, Trace]:
    """Dominating set of a directed network, seven deletions, growing budgets."""
    f = graph_of(wiki_vote(), replicate).objective()
    return over_k(f, replicate["ks"], TAU, replicate["seconds"])
