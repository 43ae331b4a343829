"""Two players on a grid: does it pay to reason one level higher? GP-MW is level 0."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from surefoot_lab import Budget, Data, Metric, Number, Order, Replicate, Trace, Trend, experiment, falls
from surefoot_lab.experiments.r2b2._games import KINDS, five, named, tournament, weights

R, second = Metric("regret"), Metric("regret_2")

TABLE = {
    "common": (0.443, 0.430, 0.288, 0.113, 0.068),
    "general": (0.461, 0.458, 0.378, 0.165, 0.146),
    "constant": (0.485, 0.483, 0.454, 0.292, 0.209),
}  # 0v0, Lite, 1v0, 2v1, 3v2 at T = 150
ORDER = ("0v0", "1v0 Lite", "1v0", "2v1", "3v2")


def _below(*pairs: tuple[str, str]) -> list[Any]:
    return [R[named(low, kind)] < R[named(high, kind)] for kind in KINDS for low, high in pairs]


claims = [
    Order("level 1 against 0 is below 0 against 0 in all three games", _below(("1v0", "0v0")), marks=("reproduced",)),
    Order(
        "2 against 1, and 3 against 2, are below 0 against 0 in all three",
        _below(("2v1", "0v0"), ("3v2", "0v0")),
        marks=("reproduced",),
    ),
    Order("the expectation is below one draw (Lite) in all three", _below(("1v0", "1v0 Lite")), marks=("reproduced",)),
    Order(
        "Lite is below 0 against 0 in all three",
        _below(("1v0 Lite", "0v0")),
        marks=("not-reproduced",),
        note="an independent check found it within noise, reversed in two of nine configurations",
    ),
    Order(
        "2 against 1, and 3 against 2, are below 1 against 0 in all three",
        _below(("2v1", "1v0"), ("3v2", "1v0")),
        marks=("reproduced",),
    ),
    Order(
        "constant-sum: 3 against 2 is below 2 against 1",
        R[named("3v2", "constant")] < R[named("2v1", "constant")],
        marks=("reproduced",),
    ),
    Order(
        "a wrong belief about the level helps the mistaken second player in common-payoff games and hurts in "
        "constant-sum games",
        [
            test
            for name in ("2v1", "3v2")
            for test in (
                second[named(name, "common")] < second[named("0v0", "common")],
                second[named(name, "constant")] > second[named("0v0", "constant")],
            )
        ],
        marks=("reproduced",),
    ),
    Trend(
        "0 against 0: mean regret falls over time in common-payoff and general-sum games",
        [
            falls(*[R[named("0v0", kind)].part(share) for share in (0.25, 0.5, 0.75, 1.0)])
            for kind in ("common", "general")
        ],
    ),
    Number(
        "mean regret of player 1 at T = 150, configuration P, η = 0.1",
        {
            R[named(name, kind)].at(150): (number, 0.036)
            for kind, numbers in TABLE.items()
            for name, number in zip(ORDER, numbers, strict=True)
        },
        marks=("card",),
        note="from an independent check of ten games; 0.036 is the largest of its standard errors",
    ),
]


@experiment(
    "r2b2/synthetic",
    source="Dai 2021 (thesis), section 8.4.1, Fig. 8.2a-c; Dai et al. 2020",
    data=Data("published", ("r2b2_games",)),
    unit="game",
    quick=Budget(10, published=10, side=100, horizon=80, starts=1, configurations=("P",)),
    full=Budget(50, minutes=60, published=10, side=100, horizon=150, starts=5, configurations=("P", "Q")),
)
def run(replicate: Replicate) -> Mapping[str, Trace]:
    """Levels 0v0, 1v0, 1v0 Lite, 2v1 and 3v2 in common-payoff, general-sum and constant-sum games."""
    return tournament(replicate, weights, five())
