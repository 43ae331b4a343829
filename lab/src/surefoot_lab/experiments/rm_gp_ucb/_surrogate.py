"""Tuning a convolutional network, replayed: a Gaussian process fitted to published measurements is the target.

The published meta-data hold 50 measured configurations of three hyper-parameters on each of four image data sets. One
of them in turn is the target: a process is fitted to the log-odds of its accuracies, which keeps what it expects
between 0 and 1, and is measured with the noise it found. The measurements of the other three are the tasks. A
SUBSTITUTE for training the network.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from surefoot.belief.gp import GP
from surefoot.domain import Box
from surefoot.domain.search import maximize
from surefoot.policy.acquisition import BeliefScore
from surefoot.policy.transfer.tasks import Task
from surefoot.policy.ucb.gp_ucb import UpperBound
from surefoot_lab import datasets
from surefoot_lab.problems import Problem

Array = NDArray[np.float64]

TARGETS = ("CIFAR-10", "CIFAR-100", "SVHN", "MNIST")


@cache
def tasks() -> dict[str, Task]:
    """The published measurements by data set: points in the unit cube, accuracies as fractions."""
    data = datasets.load("cnn_meta_tasks")
    found = zip(data["task"], data["X"], data["validation_accuracy"], strict=True)
    return {str(name): Task(X, y, name=str(name)) for name, X, y in found}


@cache
def problem(target: str) -> Problem:
    """The accuracy that a process fitted to one data set's measurements expects, with its noise."""
    cube, task = Box.unit(3), tasks()[target]
    odds = logit(np.clip(task.y, 1e-3, 1.0 - 1e-3))
    X = np.asarray(task.X)
    posterior = GP.automatic(cube).fit(X, odds, rng=np.random.default_rng(0)).condition(X, odds)

    def f(X: Array) -> Array:
        return expit(posterior.mean(X))

    x, best = maximize(BeliefScore(posterior, UpperBound(0.0)), cube, rng=np.random.default_rng(1), raw=4096, starts=32)
    spread = posterior.gp.noise

    def noise(X: Array) -> Array:  # that of the log-odds, seen at the accuracy
        return spread * (f(X) * (1.0 - f(X))) ** 2

    return Problem(f"{target} (fitted)", cube, f, float(expit(best)), x[None], noise)
