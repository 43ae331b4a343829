"""How fast should weights be learned? The learning rate over four orders of magnitude."""

from __future__ import annotations

from collections.abc import Mapping

from surefoot.loop.policy import Policy
from surefoot.policy.transfer.rm_gp_ucb import RMGPUCB
from surefoot_lab import Budget, Metric, Order, Replicate, Trace, compare, experiment
from surefoot_lab.experiments.rm_gp_ucb._synthetic import draw, learning

RATES = (0.01, 0.1, 1.0, 10.0, 100.0)


def named(rate: float) -> str:
    """The method with one learning rate, in units of N^(−3/2)."""
    return f"η N^1.5 = {rate:g}"


S = Metric("simple_regret")
SLOW, USUAL, FAST = named(0.01), named(1.0), named(100.0)

claims = [
    Order("0.01 is worse than 1 at t = 5", S[USUAL].at(5) < S[SLOW].at(5)),
    Order("100 is slightly worse than 1", S[USUAL].at(5) < S[FAST].at(5), marks=("doubtful",)),
    Order(
        "0.01 keeps the two far tasks above 0.2 at t = 10; 100 puts more than 0.9 on one task at t = 5",
        [Metric("far_weight")[SLOW].at(10) > 0.2, Metric("largest_weight")[FAST].at(5) > 0.9],
        note="two numbers stated as bounds, hence judged as orders",
    ),
]


def _watch(policy: Policy) -> Mapping[str, float]:
    if not isinstance(policy, RMGPUCB):
        return {}
    return {"far_weight": float(policy.weights[2:].sum()), "largest_weight": float(policy.weights.max())}


@experiment(
    "rm-gp-ucb/synthetic-eta",
    source="Dai 2021 (thesis), Figs 7.1c and D.2",
    unit="drawn function",
    quick=Budget(100, horizon=15),
    full=Budget(2000, minutes=30, horizon=40),
)
def run(replicate: Replicate) -> Mapping[str, Trace]:
    """RM-GP-UCB with five learning rates."""
    problem, tasks = draw(replicate)
    policies = {named(rate): learning(tasks, learning_rate=rate) for rate in RATES}
    return compare(policies, problem, replicate["horizon"], replicate, watch=_watch)
