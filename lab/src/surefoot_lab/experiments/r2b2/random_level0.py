"""The five seatings with random play as level 0."""

from __future__ import annotations

from collections.abc import Mapping

from surefoot.games.strategies import RandomStrategy
from surefoot_lab import Budget, Data, Equal, Metric, Replicate, Trace, experiment
from surefoot_lab.experiments.r2b2._games import KINDS, five, five_claims, named, tournament

R = Metric("regret")

claims = [
    *five_claims(R),
    Equal(
        "0 against 0: mean regret does not fall over time",
        [(R[named("0v0", kind)], R[named("0v0", kind)].part(0.25)) for kind in KINDS],
        margin=0.02,
        note="the last quarter's mean regret within 0.02 of the first quarter's",
    ),
]


@experiment(
    "r2b2/random-level0",
    source="Dai 2021 (thesis), appendix E.6.1.1, Fig. E.3",
    data=Data("published", ("r2b2_games",)),
    unit="game",
    quick=Budget(10, published=10, side=100, horizon=150, starts=1, configurations=("P",)),
    full=Budget(50, minutes=45, published=10, side=100, horizon=150, starts=5, configurations=("P", "Q")),
)
def run(replicate: Replicate) -> Mapping[str, Trace]:
    """Levels 0v0, 1v0, 1v0 Lite, 2v1 and 3v2 with random play as level 0."""
    return tournament(replicate, lambda configuration: RandomStrategy(), five())
