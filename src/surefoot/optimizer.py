"""The whole loop in one call.

>>> from surefoot import Box, optimize
>>> result = optimize(lambda x: (x[0] - 0.3) ** 2, Box([(0.0, 1.0)]), 12, direction="minimize", seed=0)
>>> abs(result.x[0] - 0.3) < 0.05
np.True_
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot.domain import Domain
from surefoot.loop.events import as_outcome
from surefoot.loop.journal import Journal
from surefoot.loop.policy import Policy
from surefoot.loop.types import FAILED, Outcome, Query, Recommendation
from surefoot.policy.improvement import ExpectedImprovement

__all__ = ["Result", "optimize"]


@dataclass(frozen=True)
class Result:
    """What :func:`optimize` returns: the recommendation in the user's direction, and the policy for a closer look.

    >>> from surefoot import Box, optimize
    >>> optimize(lambda x: x[0], Box([(0.0, 1.0)]), 3, seed=0).recommendation.rule
    'highest posterior mean among measured points'
    """

    recommendation: Recommendation
    policy: Policy
    direction: str

    @property
    def x(self) -> NDArray[np.float64]:
        """The recommended point."""
        return self.recommendation.x

    @property
    def params(self) -> dict[str, Any] | None:
        """The recommended parameters, on a ``Space``."""
        return self.recommendation.params

    @property
    def value(self) -> float | None:
        """The value to expect there."""
        return self.recommendation.mean


def optimize(
    objective: Callable[[Any], Any],
    domain: Domain,
    budget: int,
    *,
    policy: type[Policy] | Callable[..., Policy] | None = None,
    direction: str = "maximize",
    seed: int | None = None,
    journal: str | os.PathLike[str] | None = None,
    catch: tuple[type[Exception], ...] = (),
    callback: Callable[[Policy, Query], None] | None = None,
    **options: Any,
) -> Result:
    """Measure an objective ``budget`` times, each time where a policy says, and return the best estimated point.

    Parameters
    ----------
    objective : callable
        Takes a point (d,), or the dict of parameters on a ``Space``; returns a number, an ``Outcome``, or None / NaN
        for a failed run.
    domain : Box, Candidates or Space
        Where points may lie.
    budget : int
        Number of measurements, those already in the journal included.
    policy : policy class, optional
        Which policy; ``ExpectedImprovement`` by default. ``options`` go to its constructor.
    direction : {"maximize", "minimize"}
        Which way is better.
    seed : int, optional
        Names all random draws of the policy.
    journal : path, optional
        Where to keep every event; an existing journal of the same run is continued, unfinished queries first.
    catch : tuple of exceptions
        Exceptions of the objective that count as a failed run; others propagate, and a journal stays resumable.
    callback : callable, optional
        Called with the policy and the query after each measurement.

    >>> from surefoot import Float, Space, optimize
    >>> space = Space(lr=Float(1e-4, 1.0, log=True))
    >>> result = optimize(lambda params: -abs(params["lr"] - 0.01), space, 10, seed=0)
    >>> sorted(result.params)
    ['lr']
    """
    if not isinstance(budget, (int, np.integer)) or isinstance(budget, bool) or budget < 1:
        raise ValueError(f"budget must be a positive whole number, got {budget!r}")
    if policy is None:
        policy = ExpectedImprovement
    if direction not in ("maximize", "minimize"):
        raise ValueError(f"direction must be 'maximize' or 'minimize', got {direction!r}")
    log = None if journal is None else Journal(journal, direction=direction)
    chooser = policy(domain, seed=seed, journal=log, **options)
    try:
        while len(chooser.history) < budget:
            query = chooser.pending[0] if chooser.pending else chooser.ask()
            try:
                value = objective(query.x if query.params is None else query.params)
            except catch:
                value = FAILED
            chooser.tell(query, _oriented(value, direction))
            if callback is not None:
                callback(chooser, query)
        answer = chooser.recommend()
    finally:
        chooser.close()
    return Result(answer if direction == "maximize" else answer.negated(), chooser, direction)


def _oriented(value: Any, direction: str) -> Outcome:
    outcome = as_outcome(value)
    if direction == "maximize" or outcome.value is None:
        return outcome
    return replace(outcome, value=-outcome.value)
