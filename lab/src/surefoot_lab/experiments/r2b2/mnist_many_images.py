"""Attacker against defender on many images of MNIST."""

from __future__ import annotations

from collections.abc import Mapping

from surefoot_lab import Budget, Metric, Number, Order, Replicate, Trace, experiment
from surefoot_lab.experiments.r2b2._images import SEATINGS, all_seatings, duel_on, named
from surefoot_lab.registry import Data

score, wins = Metric("score"), Metric("successes")
at = {name: named(name, "random") for name in SEATINGS}

claims = [
    Number(
        "successes of 150 rounds, in the order of Table 8.1",
        {wins[at[name]]: value for name, value in zip(SEATINGS, (20.4, 23.0, 21.3, 9.7, 11.0, 12.4, 7.9), strict=True)},
        repetitions=30,
        marks=("doubtful", "needs-original"),
        note="the text gives them in the order of a legend that it does not print",
    ),
    Order("2v1 is above 0v1 and below 0v0", [score[at["2v1"]] > score[at["0v1"]], score[at["2v1"]] < score[at["0v0"]]]),
    Order(
        "the defender gains one level up: 0v1 below 0v0, 1v2 below 1v0",
        [score[at["0v1"]] < score[at["0v0"]], score[at["1v2"]] < score[at["1v0"]]],
    ),
    Order("1v0 is above 0v0", score[at["1v0"]] > score[at["0v0"]], marks="doubtful"),
]


@experiment(
    "r2b2/mnist-many-images",
    source="Dai 2021 (thesis), appendix E.6.2.1, Fig. E.6",
    data=Data("published", "mnist"),
    unit="image",
    quick=Budget(4, horizon=30, samples=100, architecture="small"),
    full=Budget(60, minutes=60, horizon=150, samples=500, architecture="published"),
    priority=2,
)
def run(replicate: Replicate) -> Mapping[str, Trace]:
    """Attacker and defender on a new image in every repetition."""
    return all_seatings(duel_on(replicate.index, replicate["architecture"]), replicate, ("random",))
