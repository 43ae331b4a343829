"""Tuning again after the data have grown: what was learned on smaller training sets is the past."""

from __future__ import annotations

from collections.abc import Mapping

from surefoot_lab import Budget, Data, Equal, Metric, Order, Replicate, Trace, compare, derived, experiment
from surefoot_lab.experiments.rm_gp_ucb._diabetes import SIZES, problem, tasks
from surefoot_lab.experiments.rm_gp_ucb._methods import (
    DISCORDANT,
    ONE,
    POOLED,
    RANKED,
    RM,
    SCALED,
    UCB,
    methods,
    weights,
)

INITIAL = 5
NAMES = (UCB, RM, POOLED, RANKED, DISCORDANT, SCALED, ONE)

S = Metric("simple_regret")  # the maximum is 1, so that this is the validation error


def _best(traces: Mapping[str, Trace]) -> float:
    return min(float(traces[name]["simple_regret"][-1]) for name in (UCB, RM, RANKED, DISCORDANT, SCALED, ONE))


claims = [
    Order("RM-GP-UCB below GP-UCB", S[RM] < S[UCB]),
    Order("RM-GP-UCB below RGPE", S[RM] < S[RANKED]),
    Order("MTBO and TAF at or below RM-GP-UCB", [S[ONE] <= S[RM], S[DISCORDANT] <= S[RM], S[SCALED] <= S[RM]]),
    Equal(
        "RM-GP-UCB within 0.01 of the best method",
        (S[RM], derived(_best, "best method of the repetition")),
        margin=0.01,
        note="the best of each repetition, which is harder to come near than the best on average",
    ),
]


@experiment(
    "rm-gp-ucb/diabetes",
    source="Dai 2021 (thesis), Fig. 7.3b",
    data=Data("published", "pima_diabetes"),
    unit="run on the published data",
    quick=Budget(3, horizon=12),
    full=Budget(30, minutes=110, horizon=30),
)
def run(replicate: Replicate) -> Mapping[str, Trace]:
    """A logistic regression tuned again on more patients, given its tuning on fewer."""
    target = problem(SIZES[-1], replicate.root)
    policies = methods(tasks(replicate.root), NAMES)
    return compare(policies, target, replicate["horizon"], replicate, initial=INITIAL, watch=weights)
