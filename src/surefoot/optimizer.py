"""The whole loop in one call.

>>> from surefoot import Box, optimize
>>> result = optimize(lambda x: (x[0] - 0.3) ** 2, Box([(0.0, 1.0)]), 12, direction="minimize", seed=0)
>>> abs(result.x[0] - 0.3) < 0.05
np.True_

An objective that takes many epochs may be a generator that yields its value after each of them. A policy that follows
runs (``steps``) then hears of every epoch and may end a run early; any other is told the last value.

>>> def train(x):
...     for epoch in range(1, 6):
...         yield 1.0 - (x[0] - 0.3) ** 2 - 0.5**epoch
>>> result = optimize(train, Box([(0.0, 1.0)]), 8, seed=0)
>>> result.policy.history[0].value < 1.0
True
"""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot.arguments import one_of, whole
from surefoot.domain import Domain
from surefoot.errors import BudgetSpent, Exhausted, NotSupported
from surefoot.loop.direction import DIRECTIONS
from surefoot.loop.events import as_outcome
from surefoot.loop.policy import Policy
from surefoot.loop.types import FAILED, LevelSet, Outcome, Query, Recommendation
from surefoot.policy.improvement import ExpectedImprovement

__all__ = ["Result", "optimize"]


@dataclass(frozen=True)
class Result:
    """What :func:`optimize` returns: the recommendation, and the policy for a closer look.

    >>> from surefoot import Box, optimize
    >>> optimize(lambda x: x[0], Box([(0.0, 1.0)]), 3, seed=0).recommendation.rule
    'highest posterior mean among measured points'
    """

    recommendation: Recommendation | LevelSet
    policy: Policy
    direction: str

    @property
    def x(self) -> NDArray[np.float64]:
        """The recommended point."""
        return self._point().x

    @property
    def params(self) -> dict[str, Any] | None:
        """The recommended parameters, on a ``Space``."""
        return self._point().params

    @property
    def value(self) -> float | None:
        """The value to expect there."""
        return self._point().mean

    def _point(self) -> Recommendation:
        if isinstance(self.recommendation, Recommendation):
            return self.recommendation
        raise NotSupported("the answer is a level set, not a point: look at result.recommendation")

    @property
    def epochs(self) -> int | None:
        """How many epochs were reported, all runs together; None where no run was followed epoch by epoch."""
        reports = self.policy.reports()
        return sum(max(steps) for steps in reports.values()) if reports else None

    @property
    def saved(self) -> int | None:
        """How many epochs were saved by ending runs early; None where the policy does not count them."""
        return self.policy.epochs_saved


def optimize(
    objective: Callable[[Any], Any],
    domain: Domain,
    budget: int,
    *,
    policy: type[Policy] | Callable[..., Policy] | None = None,
    direction: str = "maximize",
    seed: int | None = None,
    journal: str | os.PathLike[str] | None = None,
    catch: type[Exception] | tuple[type[Exception], ...] = (),
    callback: Callable[[Policy, Query], None] | None = None,
    **options: Any,
) -> Result:
    """Measure an objective ``budget`` times, each time where a policy says, and return the best estimated point.

    Parameters
    ----------
    objective : callable
        Takes a point (d,), or the dict of parameters on a ``Space``; returns a number, an ``Outcome``, or None / NaN
        for a failed run. Or a generator that yields one of these per epoch: it is closed when the policy ends the run,
        and the last value counts. On ``Paths`` it takes the stops of a move (k, d) and returns k values.
    domain : Box, Candidates, Space or Paths
        Where points may lie.
    budget : int
        Number of measurements (on ``Paths``: of moves), those already in the journal included. There are fewer when a
        policy reaches the ``accuracy`` it was given (its ``finished`` says under which belief), or when nothing is
        left to measure.
    policy : policy class, optional
        Which policy; ``ExpectedImprovement`` by default. ``options`` go to its constructor.
    direction : {"maximize", "minimize"}
        Which way is better; the policy is made with it.
    seed : int, optional
        Names all random draws of the policy.
    journal : path, optional
        Where to keep every event; an existing journal of the same run is continued, unfinished queries first. A
        generator runs again from its first epoch; epochs on record are not reported twice.
    catch : exception or tuple of exceptions
        Exceptions of the objective that count as a failed run; others propagate, and a journal stays resumable.
    callback : callable, optional
        Called with the policy and the query after each measurement.

    >>> from surefoot import Float, Space, optimize
    >>> space = Space(lr=Float(1e-4, 1.0, log=True))
    >>> result = optimize(lambda params: -abs(params["lr"] - 0.01), space, 10, seed=0)
    >>> sorted(result.params)
    ['lr']
    """
    whole(budget, "budget", 1)
    policy = ExpectedImprovement if policy is None else policy
    for what, name in ((objective, "the objective"), (policy, "policy"), (callback, "callback")):
        if what is not None and not callable(what):
            kind = "a class such as GPUCB" if what is policy else "a function"
            raise TypeError(f"{name} must be {kind}, got {what!r}")
    caught = (catch,) if isinstance(catch, type) else tuple(catch)
    if one_of(direction, "direction", DIRECTIONS) == "minimize":
        options["direction"] = direction
    chooser = policy(domain, seed=seed, journal=journal, **options)
    try:
        if chooser.direction != direction:
            raise ValueError(f"optimize would {direction}, and the policy it was given would {chooser.direction}")
        while len(chooser.history) < budget and not _accurate(chooser):
            try:
                query = chooser.pending[0] if chooser.pending else chooser.ask()
            except (BudgetSpent, Exhausted):
                if not chooser.history:
                    raise
                break  # what was measured is the answer
            _measure(chooser, query, objective, caught)
            if callback is not None:
                callback(chooser, query)
        answer = chooser.recommend()
    finally:
        chooser.close()
    return Result(answer, chooser, direction)


def _accurate(policy: Policy) -> bool:
    """Whether a policy that was given an accuracy has reached it."""
    return bool(policy.accuracy and policy.history and policy.finished)


def _measure(
    policy: Policy,
    query: Query,
    objective: Callable[[Any], Any],
    catch: tuple[type[Exception], ...],
) -> None:
    """Run the objective once and tell the policy what it gave."""
    seen = policy.reports().get(query.id, {})
    # An interrupted run that was at its end is not made again. The last report once more changes nothing and brings
    # its advice back.
    if seen and (max(seen) == _longest(policy) or policy.report(query, max(seen), seen[max(seen)]).stop):
        policy.tell(query)
        return
    try:
        result = objective(query.x if query.params is None else dict(query.params))
        stops = len(query.x) if query.x.ndim == 2 else None
        outcome = None if isinstance(result, Generator) else as_outcome(result, stops)
    except catch:
        outcome = FAILED
    if outcome is None:
        try:
            outcome = _follow(policy, query, result, catch)
        finally:
            with contextlib.suppress(*catch):
                result.close()
    if not outcome.failed and policy.reports().get(query.id):
        policy.tell(query)  # the last value on record, also where a run that was made again has given another
    else:
        policy.tell(query, outcome)


def _follow(
    policy: Policy,
    query: Query,
    run: Generator[Any, Any, Any],
    catch: tuple[type[Exception], ...],
) -> Outcome:
    """Take a run through its epochs and return its last value; FAILED where it raised, or yielded nothing."""
    known = max(policy.reports().get(query.id, {0: None}))
    outcome = FAILED
    for epoch in itertools.count(1):
        try:
            outcome = as_outcome(next(run))
        except StopIteration:
            break
        except catch:
            return FAILED
        if policy.steps and epoch > known and policy.report(query, epoch, outcome.value).stop:
            break
        if epoch == _longest(policy):
            break
    return outcome


def _longest(policy: Policy) -> int | None:
    """The number of epochs of a whole run, for policies that were told it."""
    return policy.epochs if policy.steps else None
