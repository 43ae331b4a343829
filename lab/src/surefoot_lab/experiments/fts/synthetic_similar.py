"""Others that are nearly the target: does one message from each help, and how long should it be?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from surefoot.federated import Decay
from surefoot_lab import Budget, Equal, Metric, Order, Replicate, Trace, Trend, experiment, falls
from surefoot_lab.experiments.fts._synthetic import RANDOM, SOURCE, TS, Target
from surefoot_lab.readings import Reading, Replicates, across

COUNTS = (25, 50, 100, 200)
OBSERVATIONS = (40, 100)
MIDDLE = (10, 20)

S = Metric("simple_regret")


def named(count: int, observations: int) -> str:
    """What FTS with M features and so many measurements is called."""
    return f"FTS, M = {count}, t_n = {observations}"


def _ahead(observations: int) -> list[Any]:
    name = named(100, observations)
    return [S[name].at(t) < S[TS].at(t) for t in MIDDLE]


def _spread(step: int) -> Reading:
    """How far one M's mean regret is above another's, at most; the jackknife makes one number for each repetition."""

    def values(replicates: Replicates) -> np.ndarray:
        table = np.stack([S[named(count, 40)].at(step).values(replicates) for count in COUNTS], axis=1)
        table = table[np.isfinite(table).all(axis=1)]
        n = len(table)
        whole = np.ptp(table.mean(axis=0)) if n else np.nan
        if n < 2:
            return np.full(n, whole)
        left = np.array([np.ptp(np.delete(table, i, axis=0).mean(axis=0)) for i in range(n)])
        return n * whole - (n - 1) * left

    return across(values, f"spread over M at {step}")


claims = [
    Order("t_n = 40: FTS below TS at 10 and 20", _ahead(40), note="with M = 100, the value that is named"),
    Order("t_n = 100: FTS below TS at 10 and 20", _ahead(100)),
    Equal(
        "t_n = 40: M has no effect: the spread of mean regret over M is below 0.01",
        [(_spread(t), 0.0) for t in MIDDLE],
        margin=0.01,
    ),
    Trend("t_n = 100: regret falls with M", [falls(*[S[named(M, 100)].at(t) for M in COUNTS]) for t in MIDDLE]),
    Order("M = 100: t_n = 100 better than 40", [S[named(100, 100)].at(t) < S[named(100, 40)].at(t) for t in MIDDLE]),
    Order(
        "FTS below the control that follows random functions as often",
        [S[named(100, n)].at(t) < S[RANDOM].at(t) for n in OBSERVATIONS for t in MIDDLE],
        marks=("card",),
    ),
]


@experiment(
    "fts/synthetic-similar",
    source=SOURCE + "Fig. 1a-b (5.1a-b)",
    unit="drawn function",
    quick=Budget(10, size=1000, starts=2, horizon=40),
    full=Budget(200, minutes=30, size=1000, starts=2, horizon=40),
)
def run(replicate: Replicate) -> Mapping[str, Trace]:
    """50 parties with nearly the same objective send one draw each."""
    target, pace = Target(replicate, 0.02), Decay(0.5)
    traces = {TS: target.alone(), RANDOM: target.misled(100, pace)}
    return traces | {named(M, n): target.helped(M, n, pace) for M in COUNTS for n in OBSERVATIONS}
