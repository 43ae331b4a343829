"""Attackers by plain Bayesian optimization, which do not know of a defender, with and without one.

GP-UCB and Thompson sampling choose the attacker's action from their own actions and scores alone. The defender is at
level 1, Lite: it asks itself once what the attacker would do, and answers that. Without a defender the attacker's image
is classified as it is; the image is one on which random actions then succeed in about one round of five.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from surefoot.games import PolicyStrategy, RandomStrategy, play
from surefoot.loop.policy import Policy
from surefoot.policy.thompson import ThompsonSampling
from surefoot.policy.ucb.gp_ucb import GPUCB
from surefoot_lab import Budget, Metric, Number, Order, Replicate, Trace, Unit, experiment
from surefoot_lab.adversarial_game import ImageGame
from surefoot_lab.experiments.r2b2._images import INITIAL, ordinary, seat, trace_of
from surefoot_lab.registry import Data

RULES: dict[str, type[Policy]] = {"GP-UCB": GPUCB, "Thompson": ThompsonSampling}

score, wins = Metric("score"), Metric("successes")

claims = [
    Number(
        "successes of 150 rounds: 70.1 and 67.0 without, 0.8 and 0.7 with the defender",
        {
            wins["GP-UCB, alone"]: 70.1,
            wins["Thompson, alone"]: 67.0,
            wins["GP-UCB, defended"]: 0.8,
            wins["Thompson, defended"]: 0.7,
        },
        repetitions=10,
        marks=("doubtful", "needs-original"),
        note="which attacker is which, and on which images, is not stated",
    ),
    Order("the defender lowers the score of both", [score[f"{r}, defended"] < score[f"{r}, alone"] for r in RULES]),
]


@experiment(
    "r2b2/bo-attackers",
    source="Dai 2021 (thesis), appendix E.6.2.2, Fig. E.10",
    data=Data("published", "mnist"),
    unit=Unit.single("image"),
    quick=Budget(2, horizon=25, architecture="small"),
    full=Budget(10, minutes=60, horizon=150, architecture="published"),
    priority=2,
)
def run(replicate: Replicate) -> Mapping[str, Trace]:
    """Bayesian optimization as an attacker, with and without a defender."""
    duel, traces = ordinary(replicate["architecture"], defended=False), {}
    for name, rule in RULES.items():
        traces[f"{name}, alone"] = alone(duel, rule, replicate)
        strategies = [PolicyStrategy(rule(duel.actions, seed=0)), RandomStrategy()]
        players = [
            seat(duel, 0, 0, strategies, replicate),
            seat(duel, 1, 1, strategies, replicate, lite=True),
        ]
        match = play(duel.game, players, replicate["horizon"], initial=INITIAL, seed=replicate.integer)
        traces[f"{name}, defended"] = trace_of(duel, match)
    return traces


def alone(duel: ImageGame, rule: type[Policy], replicate: Replicate) -> Trace:
    """The attacker's images classified as they are, after as many random ones as a match begins with."""
    policy = rule(duel.actions, seed=replicate.integer)
    rng = replicate.rng("initial")
    for _ in range(INITIAL):
        action = duel.actions.sample(1, rng)
        policy.tell(action[0], float(duel.scores(action, None)[0][0]))
    scores, won = [], []
    for _ in range(replicate["horizon"]):
        query = policy.ask()
        value, success = duel.scores(query.x[None], None)
        policy.tell(query, float(value[0]))
        scores.append(float(value[0]))
        won.append(bool(success[0]))
    rounds = np.arange(1, len(scores) + 1)
    return Trace(score=np.cumsum(scores) / rounds, successes=float(sum(won)), wins=np.cumsum(won))
