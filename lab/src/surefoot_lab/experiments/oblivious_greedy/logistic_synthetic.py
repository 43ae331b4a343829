"""Choosing variables of a classifier some of which go missing: two classes divided by a hyperplane."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from surefoot.select import LogisticSupport
from surefoot_lab import Budget, Order, Replicate, Trace, Trend, experiment, falls, highest
from surefoot_lab.experiments.oblivious_greedy._removal import GREEDY, OBLIVIOUS, OG, left, removed
from surefoot_lab.regression import classification

NAMES = (OG, GREEDY, OBLIVIOUS)
POINTS = ((5, 40), (15, 40))

claims = [
    Order(
        "objective after removal: OBLIVIOUS-GREEDY above both",
        [test for point in POINTS for test in highest(left(OG, *point), [left(n, *point) for n in NAMES[1:]])],
    ),
    Order(
        "test accuracy after removal: OBLIVIOUS-GREEDY above both",
        [
            test
            for point in POINTS
            for test in highest(
                left(OG, *point, metric="accuracy"), [left(n, *point, metric="accuracy") for n in NAMES[1:]]
            )
        ],
    ),
    Trend(
        "GREEDY's value falls faster with τ than OBLIVIOUS-GREEDY's",
        falls(*[left(GREEDY, *point) - left(OG, *point) for point in POINTS]),
    ),
]


@experiment(
    "oblivious-greedy/logistic-synthetic",
    source="Bogunovic, Zhao and Cevher 2018; Bogunovic 2019 (thesis), Fig. 7.3",
    unit="drawn classification",
    quick=Budget(2, settings=POINTS, rows=600, test_rows=1800, columns=200, refit=10, restarts=2),
    full=Budget(
        10,
        minutes=110,
        settings=tuple((tau, k) for tau in (5, 10, 15, 20, 30) for k in (40, 60, 80)),
        rows=600,
        test_rows=1800,
        columns=200,
        refit=20,
        restarts=10,
    ),
    priority=2,
)
def run(replicate: Replicate) -> Mapping[str, Trace]:
    """Variables of a logistic regression that survive the loss of some of them."""
    shape = {name: replicate[name] for name in ("rows", "test_rows", "columns")}
    data = classification(replicate.rng("data"), **shape, nonzero=replicate["columns"] // 2)
    f = LogisticSupport(data.X, data.y, refit=replicate["refit"])

    def tested(kept: Sequence[int]) -> dict[str, float]:
        """The share of test rows that the classifier on what is left gets right."""
        weights = f.coefficients(kept)[:, 0]
        return {"accuracy": float(np.mean((data.test_X[:, kept] @ weights > 0.0) == data.test_y))}

    return removed(f, NAMES, replicate["settings"], replicate, tested, restarts=replicate["restarts"])
