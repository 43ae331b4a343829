"""Diagnosing diabetes while the data grow: tuning a logistic regression on ever larger training sets.

Pima diabetes has 768 patients with 8 features. 77 are held out for validation; training sets of the first 138, 276,
414, 552 and 691 others are five tasks, of which the last is the target. A task is a function of three hyper-parameters
of stochastic gradient descent: batch size, L2 penalty, learning rate. It returns the validation accuracy.

Unpublished, chosen here: features are scaled to [0, 1] on the training set, training takes 100 epochs from zero weights
with one fixed order of batches, and the ranges are searched linearly.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from surefoot.domain import Float, Int, Space
from surefoot.loop.streams import as_integer
from surefoot.policy.transfer.tasks import Task
from surefoot_lab import datasets
from surefoot_lab.experiments.rm_gp_ucb._methods import history
from surefoot_lab.problems import Problem

Array = NDArray[np.float64]

SIZES = (138, 276, 414, 552, 691)
VALIDATION = 77
EPOCHS = 100
LENGTH = 50  # measurements in each task


def space() -> Space:
    """The three hyper-parameters."""
    return Space(batch=Int(20, 60), penalty=Float(1e-6, 0.01), rate=Float(0.01, 0.1))


@cache
def _patients(root: int) -> tuple[Array, Array]:
    table = datasets.load("pima_diabetes")
    outcome = table.pop("Outcome")
    order = np.random.default_rng(root).permutation(len(outcome))
    return np.stack(list(table.values()), axis=1)[order], outcome[order]


def accuracy(point: Array, size: int, root: int) -> float:
    """Validation accuracy of one configuration (batch, penalty, rate) trained on the first ``size`` patients."""
    X, y = _patients(root)
    held, truth = X[:VALIDATION], y[:VALIDATION]
    X, y = X[VALIDATION : VALIDATION + size], y[VALIDATION : VALIDATION + size]
    low, span = X.min(axis=0), np.ptp(X, axis=0)
    X, held = (np.column_stack([(part - low) / span, np.ones(len(part))]) for part in (X, held))
    batch, penalty, rate = int(point[0]), point[1], point[2]
    weights, rng = np.zeros(X.shape[1]), np.random.default_rng((root, size))
    for _ in range(EPOCHS):
        order = rng.permutation(size)
        for start in range(0, size, batch):
            rows = order[start : start + batch]
            inputs = X[rows]
            error = 1.0 / (1.0 + np.exp(-(inputs @ weights))) - y[rows]
            weights = weights - rate * (inputs.T @ error / len(rows) + penalty * weights)
    return float(((held @ weights > 0) == truth).mean())


@cache
def tasks(root: int) -> tuple[Task, ...]:
    """What GP-UCB measured on the four smaller training sets, once for all repetitions."""
    seeds = {size: as_integer(np.random.SeedSequence((root, size))) for size in SIZES[:-1]}
    return tuple(history(problem(size, root), LENGTH, seed=seed) for size, seed in seeds.items())


def problem(size: int, root: int) -> Problem:
    """The task of one training set; the regret is the validation error."""

    def f(X: Array) -> Array:
        return np.array([accuracy(x, size, root) for x in X])

    return Problem(f"{size} patients", space(), f, 1.0, np.empty((0, 3)))
