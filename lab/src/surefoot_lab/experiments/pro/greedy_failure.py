"""Three sets on which greedy selection loses everything, and a printed table that is not submodular."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

import numpy as np

from surefoot.select import Coverage, exhaustive, lazy_greedy, pro
from surefoot_lab import Budget, Exact, Metric, Replicate, Trace, experiment

N, EPSILON = 10.0, 0.25

claims = [
    Exact(
        "k = 2, τ = 1: GREEDY keeps ε, the optimum {s1, s3} keeps N − 1",
        {Metric("left")["GREEDY"]: EPSILON, Metric("left")["optimum"]: N - 1.0, Metric("left")["PRO"]: N - 1.0},
        marks="reproduced",
    ),
    Exact(
        "the printed table is a submodular function for every ε in [0, N − 1)",
        Metric("violation")["printed table"] <= 0.0,
        marks="contradicted",
        note="only from ε = 1 on: s2 adds 1 to s3, and is worth ε alone; `from` is the smallest ε that will do",
    ),
]


def printed(epsilon: float) -> dict[frozenset[int], float]:
    """The table as printed, which leaves the set of all three out."""
    pairs = {(0, 1): N + epsilon, (0, 2): N, (1, 2): N}
    table = {frozenset[int](): 0.0, frozenset({0}): N, frozenset({1}): epsilon, frozenset({2}): N - 1.0}
    return table | {frozenset(pair): value for pair, value in pairs.items()}


def violation(table: Mapping[frozenset[int], float]) -> float:
    """By how much a gain grows when the set grows, at most; submodular functions have none above 0."""
    return max(
        (table[B | {v}] - table[B]) - (table[A | {v}] - table[A])
        for B in table
        for A in table
        if A <= B
        for v in set(range(3)) - B
        if B | {v} in table
    )


@experiment(
    "pro/greedy-failure",
    source="Bogunovic 2019 (thesis), Table 2.2",
    unit="example",
    quick=Budget(1),
    full=Budget(1),
    limit=1,
)
def run(replicate: Replicate) -> Mapping[str, Trace]:
    """Greedy selection fails on three sets."""
    # s1 covers a region of weight N, s3 all of it but 1, s2 something else of weight ε.
    f = Coverage([[1, 1, 0], [0, 0, 1], [1, 0, 0]], weights=[N - 1.0, 1.0, EPSILON])
    sets = {"GREEDY": lazy_greedy(f, 2).order, "PRO": pro(f, 2, 1).order}
    traces = {name: Trace(left=exhaustive(f, order, 1).value) for name, order in sets.items()}
    traces["optimum"] = Trace(left=max(exhaustive(f, pair, 1).value for pair in combinations(range(3), 2)))
    grid = np.arange(0.0, N - 1.0, 0.05)
    worst = np.array([violation(printed(epsilon)) for epsilon in grid])
    smallest = grid[np.flatnonzero(worst > 1e-12).max() + 1]
    traces["printed table"] = Trace(violation=worst.max(), **{"from": smallest})
    return traces
