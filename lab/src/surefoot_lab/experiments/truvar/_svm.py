"""Tuning a structured support vector machine: 1,400 configurations with validation error and run time, as a table."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from surefoot.belief.gp import GP
from surefoot.domain import Candidates
from surefoot.errors import Exhausted
from surefoot.loop.policy import Policy
from surefoot_lab import datasets

Array = NDArray[np.float64]
Rows = NDArray[np.intp]

INITIAL = 3  # random configurations told at first; a fit needs some
EVERY = 3  # measurements between fits


@cache
def table() -> dict[str, Array]:
    """The columns of the table."""
    return {name: np.asarray(column, dtype=np.float64) for name, column in datasets.load("svm_grid").items()}


def domain() -> Candidates:
    """The configurations: log C, α and log ε, each scaled to the unit interval."""
    columns = np.stack([np.log(table()["C"]), table()["alpha"], np.log(table()["epsilon"])], axis=1)
    low, high = columns.min(axis=0), columns.max(axis=0)
    return Candidates((columns - low) / (high - low))


def belief(where: Candidates) -> GP:
    """Matérn-5/2 with one length-scale per coordinate, fitted again after every third measurement."""
    return GP.automatic(where).refit(every=EVERY)


def tune(policy: Policy, starts: Rows, rounds: int, *, seconds: float = np.inf, goal: float = -np.inf) -> Rows:
    """Drive a policy over the table and return the visited rows, initial ones included.

    It ends after so many rounds, when the run times add up to ``seconds``, or when an error is at most ``goal``.
    """
    error, time = table()["validation_error"], table()["run_time_s"]
    where = policy.domain
    if not isinstance(where, Candidates):
        raise TypeError(f"the table has candidates, not {where!r}")
    rows = [int(row) for row in starts]
    for row in rows:
        policy.tell(where.points[row], -float(error[row]))
    while len(rows) < rounds and time[rows].sum() < seconds and error[rows].min() > goal:
        try:
            query = policy.ask()
        except Exhausted:
            break
        row = where.index_of(query.x) if query.index is None else query.index
        policy.tell(query, -float(error[row]))
        rows.append(row)
    return np.array(rows, dtype=np.intp)
