"""Nothing but misleading tasks: is it worse than having none?"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from surefoot_lab import Budget, Metric, Order, Replicate, Trace, Trend, across, compare, experiment, falls
from surefoot_lab.experiments.rm_gp_ucb._synthetic import alone, draw, learning
from surefoot_lab.readings import Reading, Replicates

GAPS = (8.0, 8.0, 8.0, 8.0)
SENSITIVITIES = (0.3, 0.7, 1.5)
UCB = "GP-UCB"


def named(sensitivity: float) -> str:
    """The method with one ε."""
    return f"ε = {sensitivity:g}"


def standard_error(reading: Reading) -> Reading:
    """The standard error of a reading, the same number in every repetition."""

    def values(replicates: Replicates) -> np.ndarray:
        found = reading.values(replicates)
        error = found.std(ddof=1) / np.sqrt(found.size) if found.size > 1 else np.nan
        return np.full(found.shape, error)

    return across(values, f"se({reading.label})")


S = Metric("simple_regret")
AT_END = S[UCB].at(40)

claims = [
    Order(
        "at t = 40 within one standard error of GP-UCB, not worse",
        [S[named(e)].at(40) <= AT_END + standard_error(AT_END) for e in SENSITIVITIES],
        marks=("reproduced",),
        note="judged one-sided: a smaller regret does not contradict it",
    ),
    Trend("a larger ε is slightly better at t = 20", falls(*[S[named(e)].at(20) for e in SENSITIVITIES])),
]


@experiment(
    "rm-gp-ucb/synthetic-dissimilar",
    source="Dai 2021 (thesis), Fig. 7.1d",
    unit="drawn function",
    quick=Budget(100, horizon=40),
    full=Budget(2000, minutes=30, horizon=40),
)
def run(replicate: Replicate) -> Mapping[str, Trace]:
    """RM-GP-UCB with four misleading tasks beside GP-UCB."""
    problem, tasks = draw(replicate, GAPS)
    policies = {UCB: alone()}
    policies |= {named(e): learning(tasks, decay=0.99, sensitivity=e) for e in SENSITIVITIES}
    return compare(policies, problem, replicate["horizon"], replicate)
