"""Many tasks with many measurements: does it still help, and does the time grow with the number of tasks only?"""

from __future__ import annotations

from collections.abc import Mapping

from surefoot_lab import Budget, Metric, Order, Replicate, Trace, Trend, compare, experiment, falls, lowest
from surefoot_lab.experiments.rm_gp_ucb._cartpole import tasks
from surefoot_lab.experiments.rm_gp_ucb._methods import DISCORDANT, POOLED, RANKED, RM, UCB, ask_seconds, methods

INITIAL, ASKS = 5, 10
PARTS = ("a third of the tasks", "two thirds of the tasks", "all tasks")

S = Metric("simple_regret")

claims = [
    Order("RM-GP-UCB best", lowest(S[RM], [S[name] for name in (UCB, RANKED, DISCORDANT)])),
    Trend(
        "time per iteration grows at most linearly in the number of tasks",
        falls(*[Metric("seconds_per_task")[part] for part in PARTS]),
        note="judged by the time per task, which must fall; 20, 40 and 60 tasks in the full run",
    ),
]


@experiment(
    "rm-gp-ucb/cartpole-large",
    source="Dai 2021 (thesis), Fig. D.7",
    unit="drawn beginning",
    quick=Budget(2, horizon=10, tasks=20, length=50),
    full=Budget(10, minutes=110, horizon=20, tasks=60, length=130),
    priority=2,
)
def run(replicate: Replicate) -> Mapping[str, Trace]:
    """A controller for a cart-pole with thousands of earlier measurements."""
    target, others = tasks(replicate["tasks"], replicate["length"], replicate)
    names = (UCB, RM, POOLED, RANKED, DISCORDANT)
    traces = compare(methods(others, names), target, replicate["horizon"], replicate, initial=INITIAL)
    points = target.domain.sample(INITIAL + ASKS, replicate.rng("values"))
    values = target(points)
    for i, part in enumerate(PARTS, start=1):
        few = others[: i * len(others) // len(PARTS)]
        policy = methods(few, (RM,))[RM](target.domain, replicate.integer)
        seconds = ask_seconds(policy, points[:INITIAL], values)[1:].mean()  # the first one also fits the tasks
        traces[part] = Trace(seconds=seconds, seconds_per_task=seconds / len(few))
    return traces
