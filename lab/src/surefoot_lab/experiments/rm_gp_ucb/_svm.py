"""Tuning a support vector machine: 288 configurations on 50 data sets, as a table."""

from __future__ import annotations

from functools import cache
from typing import Any

from surefoot.policy.transfer.tasks import Task
from surefoot_lab import datasets
from surefoot_lab.problems import Problem, tabulated
from surefoot_lab.registry import Replicate

LENGTH = 50  # measured in each task


@cache
def table() -> dict[str, Any]:
    """The stored table."""
    return datasets.load("svm_meta")


def case(target: int, replicate: Replicate) -> tuple[Problem, list[Task]]:
    """One data set as the target, and 50 random configurations of each other one as tasks."""
    points, accuracy, names = (table()[key] for key in ("hyperparameters", "accuracy", "names"))
    tasks = []
    for i, values in enumerate(accuracy):
        rows = replicate.rng("task", i).choice(len(points), LENGTH, replace=False)
        if i != target:
            tasks.append(Task(points[rows], values[rows], name=str(names[i])))
    return tabulated(str(names[target]), points, accuracy[target]), tasks
