"""The parsimonious attack and a level-1 attacker against the same random defender, on MNIST instead of CIFAR-10."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from surefoot_lab import Budget, Metric, Number, Order, Replicate, Trace, Unit, experiment
from surefoot_lab.experiments.r2b2._images import RADIUS, contest, ordinary, trace_of
from surefoot_lab.experiments.r2b2._parsimonious import rounds_of
from surefoot_lab.registry import Data

score, wins = Metric("score"), Metric("successes")

claims = [
    Number(
        "successes of 150 rounds: parsimonious 27.6, level 1 113.1",
        {wins["parsimonious"]: 27.6, wins["level 1"]: 113.1},
        repetitions=10,
        marks="needs-original",
    ),
    Order("level 1 wins more rounds than the parsimonious attack", wins["level 1"] > wins["parsimonious"]),
]


@experiment(
    "r2b2/parsimonious-attacker",
    source="Dai 2021 (thesis), section 8.4.2.2",
    data=Data("substitute", "mnist", instead_of="CIFAR-10"),
    unit=Unit.single("image"),
    quick=Budget(3, horizon=40, samples=100, architecture="small"),
    full=Budget(30, minutes=30, horizon=150, samples=500, architecture="published"),
    priority=3,
)
def run(replicate: Replicate) -> Mapping[str, Trace]:
    """Two attackers against the same random defender."""
    duel, horizon = ordinary(replicate["architecture"]), replicate["horizon"]
    match = contest(duel, "1v0", "random", replicate, samples=replicate["samples"])
    played = np.array([done.actions[1] for done in match.rounds])  # the defender's actions, the same for both
    found = np.array(list(rounds_of(duel, RADIUS, horizon, replicate.integer, played, until_success=False)))
    rounds = np.arange(1, len(found) + 1)
    return {
        "level 1": trace_of(duel, match),
        "parsimonious": Trace(
            score=np.cumsum(found[:, 0]) / rounds, successes=found[:, 1].sum(), wins=np.cumsum(found[:, 1])
        ),
    }
