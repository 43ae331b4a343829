"""What a wrong belief about level 0 costs: the other player uses GP-MW, player 1 believes it plays at random."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from surefoot.games.strategies import RandomStrategy
from surefoot_lab import Budget, Data, Equal, Metric, Order, Replicate, Trace, experiment
from surefoot_lab.experiments.r2b2._games import KINDS, Seating, named, tournament, weights

RIGHT, WRONG, NONE = "1v0", "1v0 believing in random play", "0v0"
R = Metric("regret")

claims = [
    Equal(
        "the wrong belief costs at most 0.03 of mean regret in each game",
        [(R[named(WRONG, kind)], R[named(RIGHT, kind)]) for kind in KINDS],
        margin=0.03,
    ),
    Order(
        "level 1 with the wrong belief is below 0 against 0",
        [R[named(WRONG, kind)] < R[named(NONE, kind)] for kind in KINDS],
    ),
]


@experiment(
    "r2b2/wrong-level0-belief",
    source="Dai 2021 (thesis), appendix E.6.1.1, Fig. E.1",
    data=Data("published", ("r2b2_games",)),
    unit="game",
    quick=Budget(10, published=10, side=100, horizon=150, starts=1, configurations=("P",)),
    full=Budget(50, minutes=30, published=10, side=100, horizon=150, starts=5, configurations=("P",)),
)
def run(replicate: Replicate) -> Mapping[str, Trace]:
    """Level 1 with the right and with a uniform belief about level 0."""
    believed = {0: [weights("P"), RandomStrategy()]}
    seatings = {
        NONE: Seating.read("0v0"),
        RIGHT: Seating.read("1v0"),
        WRONG: replace(Seating.read("1v0"), strategies=believed),
    }
    return tournament(replicate, weights, seatings)
