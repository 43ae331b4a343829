"""The five seatings with EXP3 on five random features as level 0."""

from __future__ import annotations

from collections.abc import Mapping

from surefoot.games.exp3 import EXP3
from surefoot_lab import Budget, Data, Metric, Replicate, Trace, Trend, experiment, falls
from surefoot_lab.experiments.r2b2._games import five, five_claims, named, tournament

R = Metric("regret")
SETTINGS = {"published": 10, "side": 100, "configurations": ("P",), "frequencies": "text"}

claims = [
    *five_claims(R),
    Trend(
        "0 against 0: mean regret falls over time in common-payoff and general-sum games",
        [
            falls(*[R[named("0v0", kind)].part(share) for share in (0.25, 0.5, 0.75, 1.0)])
            for kind in ("common", "general")
        ],
        marks=("doubtful",),
        note="EXP3 of a player who reasons is followed as if it were played, and is biased",
    ),
]


@experiment(
    "r2b2/exp3-level0",
    source="Dai 2021 (thesis), appendix E.6.1.1, Fig. E.4",
    data=Data("published", ("r2b2_games",)),
    unit="game",
    quick=Budget(10, horizon=150, starts=1, **SETTINGS),
    full=Budget(50, minutes=45, horizon=150, starts=5, **SETTINGS),
)
def run(replicate: Replicate) -> Mapping[str, Trace]:
    """Levels 0v0, 1v0, 1v0 Lite, 2v1 and 3v2 with EXP3 as level 0."""
    strategy = EXP3(frequencies=replicate["frequencies"], seed=replicate.integer)
    return tournament(replicate, lambda configuration: strategy, five())
