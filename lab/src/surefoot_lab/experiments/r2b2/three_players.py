"""Three players with payoffs of their own: what the first one gains by reasoning."""

from __future__ import annotations

from collections.abc import Mapping

from surefoot_lab import Budget, Metric, Order, Replicate, Trace, experiment
from surefoot_lab.experiments.r2b2._games import Payoff, Seating, match, weights

R = Metric("regret")
SEATINGS = ("000", "100", "100 Lite", "210", "211")

claims = [
    Order("level 1 against two of level 0 is below level 0", R["100"] < R["000"]),
    Order("one draw (Lite) is below level 0", R["100 Lite"] < R["000"], marks=("doubtful",)),
    Order(
        "level 2 is below level 0, with one and with two of the others at level 1",
        [R[name] < R["000"] for name in ("210", "211")],
    ),
]


@experiment(
    "r2b2/three-players",
    source="Dai 2021 (thesis), appendix E.6.1.2, Fig. E.5a",
    unit="game",
    quick=Budget(3, side=20, horizon=50, starts=1),
    full=Budget(20, minutes=110, side=40, horizon=150, starts=3),
)
def run(replicate: Replicate) -> Mapping[str, Trace]:
    """Profiles 000, 100, 100 Lite, 210 and 211 with three independent payoffs."""
    rng = replicate.rng("payoffs")
    payoffs = [Payoff.drawn(replicate["side"], 3, rng) for _ in range(3)]
    return {name: match(payoffs, Seating.read(name), weights("P"), "P", replicate) for name in SEATINGS}
