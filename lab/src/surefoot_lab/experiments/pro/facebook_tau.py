"""Whom to inform in a network of 4,039 people, fifty of them, when more and more may refuse."""

from __future__ import annotations

from collections.abc import Mapping

from surefoot.select import osu_sizes, pro_sizes
from surefoot_lab import Budget, Data, Exact, Metric, Order, Replicate, Trace, Unit, experiment
from surefoot_lab.experiments.pro._sweep import EXACT, GREEDY, OSU, PRO, above, graph_of, over_tau
from surefoot_lab.graphs import facebook

K = 50

claims = [
    Order("after removal: PRO > GREEDY for τ ≥ 3", above(PRO, GREEDY, (3, 5, 7, 10)), marks="reproduced"),
    Order(
        "after removal: PRO > OSU where both are feasible, although its robust part is smaller",
        [*above(PRO, OSU, (3, 5, 7)), *above(EXACT, OSU, (3, 5, 7))],
        marks="doubtful",
        note="the part that Algorithm 1 builds is larger than OSU's at τ = 3 and 5; only the compact one is smaller",
    ),
    Exact(
        "at k = 50 OSU is feasible to τ = 7, compact PRO to 13, exact PRO to 8",
        {Metric("feasible")[OSU]: 7.0, Metric("feasible")[PRO]: 13.0, Metric("feasible")[EXACT]: 8.0},
        marks="reproduced",
    ),
]


def feasible(k: int) -> dict[str, int]:
    """Up to which number of deletions each method's robust part fits into k elements."""
    sizes = {
        OSU: lambda tau: osu_sizes(k, tau),
        PRO: lambda tau: pro_sizes(tau, structure="compact"),
        EXACT: pro_sizes,
    }
    return {name: next((tau - 1 for tau in range(1, k) if sum(of(tau)) > k), k - 1) for name, of in sizes.items()}


@experiment(
    "pro/facebook-tau",
    source="Bogunovic 2019 (thesis), Fig. 6.2b",
    data=Data("published", ("ego_facebook",)),
    unit=Unit.single("network"),
    quick=Budget(4, taus=(2, 3, 5, 7, 10), seconds=3.0),
    full=Budget(20, minutes=100, taus=tuple(range(1, 14)), seconds=20.0),
)
def run(replicate: Replicate) -> Mapping[str, Trace]:
    """Dominating set of ego-Facebook, 50 nodes, growing numbers of deletions."""
    f = graph_of(facebook(), replicate).objective()
    traces = over_tau(f, K, replicate["taus"], replicate["seconds"])
    for name, tau in feasible(K).items():
        traces[name].metrics |= Trace(feasible=tau).metrics
    return traces
