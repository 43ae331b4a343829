"""A made-up network with ten hubs: the collapse of greedy selection, with exact adversaries."""

from __future__ import annotations

from collections.abc import Mapping

from surefoot_lab import Budget, Order, Replicate, Trace, ascending, experiment
from surefoot_lab.experiments.pro._sweep import GREEDY, METHODS, OSU, PRO, left, over_k
from surefoot_lab.graphs import hub_graph

SETTINGS = ((50, 5), (60, 7))

claims = [
    Order(
        f"k = {k}, τ = {tau}: PRO > OSU > GREEDY after exact removal",
        ascending(*[left(name, k) for name in (GREEDY, OSU, PRO)]),
        marks=("reproduced", "card"),
    )
    for k, tau in SETTINGS
]


@experiment(
    "pro/hub-graph",
    source="companion of Bogunovic 2019 (thesis), Fig. 6.2a-b",
    unit="drawn graph",
    quick=Budget(6, settings=SETTINGS, seconds=3.0),
    full=Budget(20, minutes=60, settings=SETTINGS, seconds=60.0),
)
def run(replicate: Replicate) -> Mapping[str, Trace]:
    """Dominating set of a clustered network with hubs."""
    f = hub_graph(replicate.rng("graph")).objective()
    made: dict[str, Trace] = {name: Trace() for name in METHODS}
    for k, tau in replicate["settings"]:
        for name, trace in over_k(f, [k], tau, replicate["seconds"]).items():
            made[name].metrics |= {metric: v for metric, v in trace.metrics.items() if metric.endswith(f"_{k}")}
    return made
