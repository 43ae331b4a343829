"""One adversary and two agents who share what the adversary does not get."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from surefoot_lab import Budget, Exact, Metric, Order, Replicate, Trace, experiment
from surefoot_lab.experiments.r2b2._games import Payoff, Seating, match, weights

R, rest = Metric("regret"), Metric("rest")
SEATINGS = ("000", "100", "010", "210", "011", "211", "021", "121")  # adversary, agent 1, agent 2

claims = [
    Order(
        "the adversary gains by being above both agents",
        [R["100"] < R["000"], R["210"] < R["010"], R["211"] < R["011"]],
    ),
    Order(
        "the agents gain when one of them is above the adversary",
        [R[name] > R["000"] for name in ("010", "021", "011", "121")],
        marks=("doubtful",),
        note="profiles reconstructed from the text",
    ),
    Order("both agents above the adversary is better for them than one", R["011"] > R["010"]),
    Order("with agents at levels 2 and 1, level 1 is better for the adversary than level 0", R["121"] < R["021"]),
    Exact(
        "the agents' mean regret is 1 minus the adversary's",
        {rest[name]: 0.0 for name in SEATINGS},
        tolerance=1e-9,
        marks=("reproduced",),
    ),
]


@experiment(
    "r2b2/adversary-two-agents",
    source="Dai 2021 (thesis), appendix E.6.1.2, Fig. E.5b",
    unit="game",
    quick=Budget(3, side=20, horizon=50, starts=1),
    full=Budget(20, minutes=115, side=40, horizon=150, starts=3),
)
def run(replicate: Replicate) -> Mapping[str, Trace]:
    """Eight profiles of one adversary and two agents."""
    payoff = Payoff.drawn(replicate["side"], 3, replicate.rng("payoffs"))
    payoffs = [payoff, payoff.mirrored(), payoff.mirrored()]
    traces = {}
    for name in SEATINGS:
        trace = match(payoffs, Seating.read(name), weights("P"), "P", replicate)
        gap = np.abs(trace["regret"] + [trace["regret_2"], trace["regret_3"]] - 1.0).max()
        traces[name] = Trace(**trace.metrics, rest=gap)
    return traces
