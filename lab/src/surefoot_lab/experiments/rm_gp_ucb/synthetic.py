"""Do learned weights find the helpful tasks? Two tasks close to the target and two far from it."""

from __future__ import annotations

from collections.abc import Mapping

from surefoot.loop.policy import Policy
from surefoot.policy.transfer.rm_gp_ucb import RMGPUCB
from surefoot_lab import Budget, Metric, Number, Order, Replicate, Trace, ascending, compare, experiment
from surefoot_lab.experiments.rm_gp_ucb._synthetic import alone, draw, learning

UCB, UNIFORM, LEARNED = "GP-UCB", "uniform weights", "learned weights"
THEORY = " (theory)"

S, far = Metric("simple_regret"), Metric("far_weight")

claims = [
    Order(
        "learned weights below uniform ones below GP-UCB at t = 3 and t = 5",
        [test for t in (3, 5) for test in ascending(S[LEARNED].at(t), S[UNIFORM].at(t), S[UCB].at(t))],
        marks=("reproduced",),
        note="with the practical schedule",
    ),
    Number(
        "the two far tasks have less than 0.05 of the weight at t = 10",
        {far[LEARNED].at(10): 0.025},
        tolerance=0.025,
        marks=("reproduced",),
        note="0.025 ± 0.025 stands for a number between 0 and 0.05",
    ),
    Number(
        "mean regret at t = 5, practical schedule",
        {S[UCB].at(5): 0.57, S[UNIFORM].at(5): 0.42, S[LEARNED].at(5): 0.16},
        tolerance=0.1,
        marks=("reproduced", "card"),
    ),
    Order(
        "the lead of learned weights over GP-UCB is larger at t = 3 than at t = 20",
        (S[UCB].at(3) - S[LEARNED].at(3)) > (S[UCB].at(20) - S[LEARNED].at(20)),
        marks=("reproduced",),
    ),
]


def _watch(policy: Policy) -> Mapping[str, float]:
    if not isinstance(policy, RMGPUCB):
        return {}
    return {"far_weight": float(policy.weights[2:].sum()), "nu": policy.nu}


@experiment(
    "rm-gp-ucb/synthetic",
    source="Dai 2021 (thesis), section 7.6.1, Fig. 7.1a-b; Dai et al. 2022",
    unit="drawn function",
    quick=Budget(150, horizon=20),
    full=Budget(2000, minutes=30, horizon=40),
)
def run(replicate: Replicate) -> Mapping[str, Trace]:
    """RM-GP-UCB with uniform and with learned weights, two of four tasks helpful."""
    problem, tasks = draw(replicate)
    policies = {
        UCB: alone(),
        UNIFORM: learning(tasks, learning_rate=0.0),
        LEARNED: learning(tasks),
        UCB + THEORY: alone("theory"),
        UNIFORM + THEORY: learning(tasks, learning_rate=0.0, schedule="theory"),
        LEARNED + THEORY: learning(tasks, schedule="theory"),
    }
    return compare(policies, problem, replicate["horizon"], replicate, watch=_watch)
