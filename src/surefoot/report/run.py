"""The runs of a policy as rows: what tables, pictures and the page are made of.

>>> from surefoot import Box, RandomSearch
>>> policy = RandomSearch(Box([(0.0, 1.0)]), seed=0)
>>> policy.tell([0.5], 2.0)
>>> policy.tell([0.6], None)
>>> [(run.status, run.value) for run in runs(policy)]
[('measured', 2.0), ('failed', None)]
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot.loop.policy import Policy

__all__ = ["Run", "best_so_far", "direction_of", "runs"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Run:
    """One run: where it was made, what it gave, and how it stands.

    Parameters
    ----------
    id : int, optional
        Number of the query; None for a point that was told unasked.
    x : array, shape (d,)
        The point.
    params : dict
        The same point by name, on every domain.
    value : float, optional
        The measured value in the user's direction.
    status : str
        ``measured``, ``failed``, ``pending`` or ``cancelled``.
    index : int, optional
        Row of the candidate.
    initial : bool
        Whether it belongs to the initial design.
    curve : mapping of int to float
        What was reported of it by step, in the user's direction; None for a step that gave no value.
    stopped : str, optional
        Why the policy had it stopped; None for a run that was not.

    >>> Run(0, np.array([0.5]), {"x0": 0.5}, 1.0, "measured").initial
    False
    """

    id: int | None
    x: Array
    params: dict[str, Any]
    value: float | None
    status: str
    index: int | None = None
    initial: bool = False
    curve: Mapping[int, float | None] = field(default_factory=dict)
    stopped: str | None = None


def direction_of(policy: Policy, direction: str | None = None) -> str:
    """Return the direction to show values in: the given one, else that of the policy.

    >>> from surefoot import Box, RandomSearch
    >>> direction_of(RandomSearch(Box.unit(1), seed=0))
    'maximize'
    """
    if direction is None:
        return policy.direction
    if direction not in ("maximize", "minimize"):
        raise ValueError(f"direction must be 'maximize' or 'minimize', got {direction!r}")
    return direction


def runs(policy: Policy, *, direction: str | None = None) -> list[Run]:
    """Return all runs of a policy: those told, in their order, then cancelled ones, then pending ones.

    Each stop of a move, on ``Paths``, is a run of its own.

    Parameters
    ----------
    policy : Policy
        Any policy.
    direction : {"maximize", "minimize"}, optional
        By default that of the policy. With the other one values change their sign: for a policy that was told −f.

    >>> from surefoot import Box, RandomSearch
    >>> policy = RandomSearch(Box([(0.0, 1.0)]), seed=0)
    >>> query = policy.ask()
    >>> runs(policy)[0].status
    'pending'
    """
    sign = 1.0 if direction_of(policy, direction) == policy.direction else -1.0
    queries, pending = policy.queries, {query.id for query in policy.pending}
    initial = {query.id for query in queries if query.note.get("initial")}
    curves, stopped = policy.reports(), policy.stopped

    def run(id: int | None, x: Array, index: int | None, status: str, value: float | None = None) -> Run:
        curve = {} if id is None else _signed(curves.get(id, {}).items(), sign)
        why = None if id is None else stopped.get(id)
        value = None if value is None else sign * value
        return Run(id, x, _named(policy, x), value, status, index, id in initial, curve, why)

    rows = [
        run(o.id, x, o.index, "failed" if value is None else "measured", value)
        for o in policy.history
        for x, value in o.stops()
    ]
    told = {row.id for row in rows}
    for status in ("cancelled", "pending"):
        rows += [
            run(q.id, x, q.index, status)
            for q in queries
            for x in np.atleast_2d(q.x)
            if q.id not in told and (q.id in pending) == (status == "pending")
        ]
    return rows


def best_so_far(rows: Sequence[Run], *, direction: str = "maximize") -> Array:
    """Return the best value after each row, NaN before the first success; shape (len(rows),).

    >>> rows = [Run(i, np.zeros(1), {}, v, "measured") for i, v in enumerate([None, 2.0, 1.0, 3.0])]
    >>> best_so_far(rows)
    array([nan,  2.,  2.,  3.])
    """
    values = np.array([np.nan if row.value is None else row.value for row in rows], dtype=np.float64)
    better = np.fmin if direction == "minimize" else np.fmax
    return np.asarray(better.accumulate(values)) if len(values) else values


def _signed(curve: Iterable[tuple[int, float | None]], sign: float) -> dict[int, float | None]:
    return {step: None if value is None else sign * value for step, value in curve}


def _named(policy: Policy, x: Array) -> dict[str, Any]:
    params = policy.domain.params(x)
    return dict(zip(policy.domain.names, x.tolist(), strict=True)) if params is None else params
