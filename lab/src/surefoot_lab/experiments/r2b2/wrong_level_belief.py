"""What a wrong belief about the level costs: the other player stays at level 0, player 1 reasons further."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from surefoot_lab import Budget, Data, Metric, Order, Replicate, Trace, experiment
from surefoot_lab.experiments.r2b2._games import KINDS, Seating, named, tournament, weights

R = Metric("regret")


def _below(*pairs: tuple[str, str]) -> list[Any]:
    return [R[named(low, kind)] < R[named(high, kind)] for kind in KINDS for low, high in pairs]


claims = [
    Order("level 1 is below levels 2 and 3 against level 0", _below(("1v0", "2v0"), ("1v0", "3v0"))),
    Order(
        "levels 2 and 3 are below level 0 against level 0", _below(("2v0", "0v0"), ("3v0", "0v0")), marks=("doubtful",)
    ),
]


@experiment(
    "r2b2/wrong-level-belief",
    source="Dai 2021 (thesis), appendix E.6.1.1, Fig. E.2",
    data=Data("published", ("r2b2_games",)),
    unit="game",
    quick=Budget(10, published=10, side=100, horizon=150, starts=1, configurations=("P",)),
    full=Budget(50, minutes=40, published=10, side=100, horizon=150, starts=5, configurations=("P",)),
)
def run(replicate: Replicate) -> Mapping[str, Trace]:
    """Levels 0 to 3 of player 1 against a second player at level 0."""
    return tournament(replicate, weights, {name: Seating.read(name) for name in ("0v0", "1v0", "2v0", "3v0")})
