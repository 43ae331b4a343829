"""Tuning a support vector machine on one data set given its tuning on 49 others: a table, no training needed.

The table has no noise, so that no method measures a configuration twice.
"""

from __future__ import annotations

from collections.abc import Mapping

from surefoot.loop.policy import Policy
from surefoot_lab import Budget, Data, Equal, Exact, Metric, Order, Replicate, Trace, Unit, compare, experiment
from surefoot_lab.baselines.pem import PEMBO
from surefoot_lab.experiments.rm_gp_ucb._methods import (
    DISCORDANT,
    POOLED,
    RANDOM,
    RANKED,
    RM,
    SCALED,
    UCB,
    belief,
    methods,
)
from surefoot_lab.experiments.rm_gp_ucb._svm import case, table

PEM = "PEM-BO"
INITIAL = 3  # random configurations told at first

S, least = Metric("simple_regret"), Metric("least_weight")
# After t measurements beside the initial ones, the latest query knew t − 1 + INITIAL points of the target.
FOURTH, TENTH = 4 - INITIAL + 1, 10 - INITIAL + 1

claims = [
    Equal("RM-GP-UCB equals RGPE at the end", (S[RM], S[RANKED]), margin=0.003),
    Order("RM-GP-UCB below GP-UCB", S[RM] < S[UCB]),
    Order("RM-GP-UCB below TAF", [S[RM] < S[DISCORDANT], S[RM] < S[SCALED]], note="both distances"),
    Order("RM-GP-UCB below PEM-BO", S[RM] < S[PEM]),
    Exact(
        "50 tasks of 288 configurations with 6 hyper-parameters",
        {Metric(name)["table"]: number for name, number in (("tasks", 50), ("rows", 288), ("columns", 6))},
        marks=("reproduced",),
    ),
    Exact(
        "TAF with the scaled L2 distance filters nothing, with discordant pairs it does",
        [
            least[SCALED].reduced(lambda s: s[FOURTH - 1 :].min(), "from the 4th point") >= 0.5,
            least[SCALED].reduced(lambda s: s[TENTH - 1 :].min(), "from the 10th point") >= 0.71,
            least[DISCORDANT].reduced(lambda s: s[FOURTH - 1 :].min(), "from the 4th point") < 0.5,
        ],
        marks=("card",),
    ),
]


def _watch(policy: Policy) -> Mapping[str, float]:
    found = policy.weights
    return {} if found is None else {"least_weight": float(found.min()), "largest_weight": float(found.max())}


@experiment(
    "rm-gp-ucb/svm",
    source="Dai 2021 (thesis), Fig. 7.2d; Wistuba, Schilling, Schmidt-Thieme 2018",
    data=Data("published", "svm_meta"),
    unit=Unit("data set", lambda index, settings: index % settings["targets"]),
    quick=Budget(10, targets=5, horizon=15),
    full=Budget(250, minutes=110, targets=50, horizon=30),
)
def run(replicate: Replicate) -> Mapping[str, Trace]:
    """A support vector machine tuned with the help of 49 other data sets."""
    problem, tasks = case(replicate.index % replicate["targets"], replicate)
    policies = methods(tasks, [UCB, RM, POOLED, RANKED, DISCORDANT, SCALED, RANDOM], repeats=False)
    policies[PEM] = lambda d, seed: PEMBO(d, tasks=tasks, gp=belief(d), repeats=False, seed=seed)
    traces = compare(policies, problem, replicate["horizon"], replicate, initial=INITIAL, watch=_watch)
    if replicate.index == 0:
        (rows, columns), accuracy = table()["hyperparameters"].shape, table()["accuracy"]
        traces["table"] = Trace(tasks=len(accuracy), rows=rows, columns=columns)
    return traces
