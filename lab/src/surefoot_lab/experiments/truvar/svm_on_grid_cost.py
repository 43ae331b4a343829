"""The same table with its run times: how many seconds until the error is 0.245?

Costs are known to the two methods that use them. A run ends when it gets there or when its seconds are spent; a run
that never gets there counts with all of them.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from surefoot.loop.policy import Policy
from surefoot.policy.improvement import ExpectedImprovement
from surefoot.policy.levels.truvar import TruVaR
from surefoot.policy.ucb.gp_ucb import GPUCB
from surefoot_lab import Budget, Data, Equal, Metric, Order, Replicate, Trace, experiment
from surefoot_lab.baselines.improvement_per_cost import ImprovementPerCost
from surefoot_lab.experiments.truvar._levels import TRUVAR
from surefoot_lab.experiments.truvar._svm import INITIAL, belief, domain, table, tune

BLIND, PER_COST, EI, UCB = "TruVaR, ignoring cost", "EI per cost", "EI", "GP-UCB"
GOAL = 0.245

seconds = Metric("seconds_to_goal")

claims = [
    Order(
        "run time to reach error 0.245: TruVaR with cost below EI and below TruVaR without cost",
        [seconds[TRUVAR] < seconds[EI], seconds[TRUVAR] < seconds[BLIND]],
        marks=("card",),
    ),
    Equal(
        "TruVaR with cost equals EI per cost within 20 % of run time",
        (seconds[TRUVAR], seconds[PER_COST]),
        relative=0.2,
        marks=("card",),
    ),
]


@experiment(
    "truvar/svm-on-grid-cost",
    source="companion of truvar/svm-on-grid; Snoek, Larochelle, Adams 2012 (the table)",
    data=Data("published", "svm_grid"),
    unit="run on the published table",
    quick=Budget(5, horizon=60, seconds=30000.0),
    full=Budget(100, minutes=100, horizon=120, seconds=60000.0),
)
def run(replicate: Replicate) -> Mapping[str, Trace]:
    """A support vector machine tuned over a table, seconds of training until the error is low."""
    where, seed, limit = domain(), replicate.integer, replicate["seconds"]
    error, time = table()["validation_error"], table()["run_time_s"]
    starts = replicate.rng("initial").choice(np.flatnonzero(error > GOAL), INITIAL, replace=False)
    common = {"gp": belief(where), "initial": 0, "repeats": False, "seed": seed}
    policies: dict[str, Policy] = {
        TRUVAR: TruVaR(where, cost=time, monotone=False, **common),
        BLIND: TruVaR(where, monotone=False, **common),
        PER_COST: ImprovementPerCost(where, cost=time, **common),
        EI: ExpectedImprovement(where, **common),
        UCB: GPUCB(where, **common),
    }
    traces = {}
    for name, policy in policies.items():
        rows = tune(policy, starts, replicate["horizon"], seconds=limit, goal=GOAL)
        reached = error[rows].min() <= GOAL
        traces[name] = Trace(
            seconds_to_goal=min(float(time[rows].sum()), limit) if reached else limit,
            reached=reached,
            runs=len(rows),
        )
    return traces
