"""Finding a controller that balances a pole, given controllers tried from other beginnings."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from surefoot.loop.policy import Policy
from surefoot_lab import Budget, Metric, Order, Replicate, Trace, compare, experiment, highest, lowest
from surefoot_lab.experiments.rm_gp_ucb._cartpole import SIMILAR, tasks
from surefoot_lab.experiments.rm_gp_ucb._methods import DISCORDANT, POOLED, RANKED, RM, SCALED, UCB, methods

INITIAL = 5
NAMES = (UCB, RM, POOLED, RANKED, DISCORDANT, SCALED)

S, near = Metric("simple_regret"), Metric("near_share")

claims = [
    Order(
        "best return at iteration 10: RM-GP-UCB above GP-UCB, RGPE and TAF",
        lowest(S[RM].at(10), [S[name].at(10) for name in (UCB, RANKED, DISCORDANT, SCALED)]),
        note="the return is 1 less the regret",
    ),
    Order(
        "total weight of the 3 similar tasks at iteration 10: RM-GP-UCB above RGPE and TAF, and above 0.3",
        [
            *highest(near[RM].at(10), [near[name].at(10) for name in (RANKED, DISCORDANT, SCALED)]),
            near[RM].at(10) > 0.3,
        ],
        note="as a share of the weight of all ten tasks: three of ten are 0.3 when all weigh the same",
    ),
]


def _watch(policy: Policy) -> Mapping[str, float]:
    """The share of the similar tasks in the weight of all tasks; of none where no task has any."""
    found = policy.weights
    if found is None:
        return {}
    total = float(np.sum(found))
    return {"near_share": float(np.sum(found[:SIMILAR])) / total if total else 0.0}


@experiment(
    "rm-gp-ucb/cartpole",
    source="Dai 2021 (thesis), Fig. 7.3c-d",
    unit="drawn beginning",
    quick=Budget(6, horizon=12, tasks=10, length=50),
    full=Budget(30, minutes=110, horizon=30, tasks=10, length=50),
)
def run(replicate: Replicate) -> Mapping[str, Trace]:
    """A controller for a cart-pole, three of ten earlier tasks similar."""
    target, others = tasks(replicate["tasks"], replicate["length"], replicate)
    return compare(methods(others, NAMES), target, replicate["horizon"], replicate, initial=INITIAL, watch=_watch)
