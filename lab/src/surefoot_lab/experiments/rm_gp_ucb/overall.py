"""All experiments of the family together: does RM-GP-UCB beat GP-UCB everywhere, and most of all early?

Reads the stored results of the other experiments in the same folder; nothing is run again. Units are the problems:
each target of the network, the support vector machine, diabetes, cart-pole.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import numpy as np

from surefoot.errors import MissingData
from surefoot_lab import Budget, Metric, Order, Replicate, Trace, across, experiment
from surefoot_lab.experiments.rm_gp_ucb._methods import DISCORDANT, RANKED, RM, UCB
from surefoot_lab.experiments.rm_gp_ucb._surrogate import TARGETS
from surefoot_lab.readings import Reading, Replicates

# unit: experiment it is stored in, and what its methods' names begin with
UNITS = {
    "svm": ("rm-gp-ucb/svm", ""),
    "diabetes": ("rm-gp-ucb/diabetes", ""),
    "cartpole": ("rm-gp-ucb/cartpole", ""),
    **{target: ("rm-gp-ucb/cnn-surrogate", f"{target}: ") for target in TARGETS},
}
METHODS = (RM, UCB, RANKED, DISCORDANT)

end, quarter = Metric("end"), Metric("quarter")


def on(unit: str, method: str) -> str:
    """One method on one problem."""
    return f"{unit}: {method}"


def lead(metric: Metric) -> Reading:
    """By which share RM-GP-UCB is below GP-UCB, on average: one number per problem."""

    def values(replicates: Replicates) -> np.ndarray:
        found = []
        for unit in UNITS:
            own, other = (metric[on(unit, name)].values(replicates) for name in (RM, UCB))
            both = np.isfinite(own) & np.isfinite(other)
            mean = other[both].mean() if both.any() else np.nan
            found.append((mean - own[both].mean()) / mean if both.any() and mean > 0 else np.nan)
        return np.array(found)

    return across(values, f"lead, {metric.name}")


claims = [
    Order(
        "RM-GP-UCB beats GP-UCB in every real experiment",
        [end[on(unit, RM)] < end[on(unit, UCB)] for unit in UNITS],
        marks=("contradicted",),
        note="one of nine subjects in the document's own Fig. D.4 is an exception",
    ),
    Order(
        "the advantage is larger at a quarter of the budget than at its end in most experiments",
        lead(quarter) > lead(end),
        note="relative to GP-UCB's regret; paired over the problems",
    ),
    Order(
        "TAF fails to beat GP-UCB on MNIST and CIFAR-10, RGPE on MNIST",
        [
            end[on("MNIST", UCB)] <= end[on("MNIST", DISCORDANT)],
            end[on("CIFAR-10", UCB)] <= end[on("CIFAR-10", DISCORDANT)],
            end[on("MNIST", UCB)] <= end[on("MNIST", RANKED)],
        ],
        marks=("needs-original",),
        note="on fitted processes; the activity recognition data are not to be had",
    ),
]


@cache
def _stored(out: str, id: str) -> dict[int, dict[str, Trace]]:
    return Replicate(0, out=out).stored(id)


@experiment(
    "rm-gp-ucb/overall",
    source="Dai 2021 (thesis), section 7.6.3",
    data="published",
    unit="run on the same problem",
    quick=Budget(10),
    full=Budget(250),
)
def run(replicate: Replicate) -> Mapping[str, Trace]:
    """RM-GP-UCB beside GP-UCB over all problems, from stored results."""
    traces: dict[str, Trace] = {}
    missing: MissingData | None = None
    for unit, (id, prefix) in UNITS.items():
        try:
            found = _stored(replicate.out, id).get(replicate.index, {})
        except MissingData as error:
            missing = error
            continue
        for method in METHODS:
            if prefix + method in found:
                regret = np.atleast_1d(found[prefix + method]["simple_regret"])
                at = int(np.ceil(regret.size / 4)) - 1
                traces[on(unit, method)] = Trace(quarter=regret[at], end=regret[-1])
    if not traces and missing is not None:
        raise missing
    return traces
