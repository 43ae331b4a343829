"""The whole loop in one call.

>>> from surefoot import Box, optimize
>>> result = optimize(lambda x: (x[0] - 0.3) ** 2, Box([(0.0, 1.0)]), 12, direction="minimize", seed=0)
>>> abs(result.x[0] - 0.3) < 0.05
np.True_

Several workers measure at once (:mod:`surefoot.loop.workers`): processes of this machine, or any executor.

>>> result = optimize(lambda x: -((x[0] - 0.3) ** 2), Box([(0.0, 1.0)]), 12, workers=2, seed=0)
>>> len(result.policy.history), result.policy.events[-1]["by"].partition(":")[0] != ""
(12, True)

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

import concurrent.futures
import contextlib
import inspect
import itertools
import math
import os
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from surefoot.arguments import near, one_of, positive, whole
from surefoot.domain import Domain
from surefoot.errors import BudgetSpent, Exhausted, Interrupted, NoData, NotSupported, SurefootError
from surefoot.loop.direction import DIRECTIONS
from surefoot.loop.events import as_outcome, stops_of
from surefoot.loop.policy import Policy
from surefoot.loop.registry import policy_spelled
from surefoot.loop.types import FAILED, LevelSet, Outcome, Query, Recommendation
from surefoot.loop.workers import Crew, Hired, News, Processes
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
    ended: str = "the budget is spent"
    """Why no further point was measured."""

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
    policy: str | type[Policy] | Callable[..., Policy] | None = None,
    direction: str = "maximize",
    seed: int | None = None,
    journal: str | os.PathLike[str] | None = None,
    workers: int | None = None,
    executor: concurrent.futures.Executor | None = None,
    timeout: float | None = None,
    trial_timeout: float | None = None,
    stop: float | Callable[[Policy], bool] | None = None,
    catch: type[Exception] | tuple[type[Exception], ...] = (),
    callback: Callable[[Policy, Query], None] | None = None,
    on_error: Callable[[BaseException], None] | None = None,
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
        left to measure. ``Result.ended`` says why.
    policy : policy class or its name, optional
        Which policy, such as ``"stable-opt"``; ``ExpectedImprovement`` by default. ``options`` go to its constructor.
    direction : {"maximize", "minimize"}
        Which way is better; the policy is made with it.
    seed : int, optional
        Seed of all random draws of the policy.
    journal : path, optional
        Where to keep every event; an existing journal of the same run is continued, unfinished queries first. A
        generator runs again from its first epoch; epochs on record are not reported twice.
    workers : int, optional
        How many measurements are under way at a time, each in a process of its own. One whose process dies is made
        again once, and is then a failed run. The journal says which process measured what.
    executor : concurrent.futures.Executor, optional
        Measures in the place of processes: threads, or the executor of Dask, MPI or Ray; ``workers`` says how many
        measurements are submitted at a time. It is not shut down.
    timeout : float, optional
        Seconds after which no further measurement begins; those under way are finished.
    trial_timeout : float, optional
        With workers: seconds after which a measurement is a failed run, and its process is ended.
    stop : float or callable, optional
        A number: end when the expected improvement of three trials in a row, in the units of the objective, is smaller.
        Or a function of the policy that says whether to end: ``lambda policy: policy.certificate < 0.1``.
    catch : exception or tuple of exceptions
        Exceptions of the objective that count as a failed run; others propagate, and a journal stays resumable.
    callback : callable, optional
        Called with the policy and the query after each measurement.
    on_error : callable, optional
        Called with an exception of the objective in a worker, before anything follows from it.

    Ctrl-C raises :class:`~surefoot.Interrupted`, whose ``result`` is what was found until then.

    >>> from surefoot import Float, Space, optimize
    >>> space = Space(lr=Float(1e-4, 1.0, log=True))
    >>> result = optimize(lambda params: -abs(params["lr"] - 0.01), space, 10, seed=0)
    >>> sorted(result.params)
    ['lr']
    """
    whole(budget, "budget", 1)
    made = policy_spelled(policy) if isinstance(policy, str) else ExpectedImprovement if policy is None else policy
    for what, name in ((objective, "the objective"), (made, "policy"), (callback, "callback")):
        if what is not None and not callable(what):
            kind = "a class such as GPUCB, or its name" if what is made else "a function"
            raise TypeError(f"{name} must be {kind}, got {what!r}")
    _check_options(made, options)
    if executor is not None and workers is None:
        raise ValueError("executor= needs workers=, how many measurements it is given at a time")
    if workers is None and trial_timeout is not None:
        raise ValueError("trial_timeout= needs workers=: a measurement in this process cannot be ended")
    if stop is not None and not callable(stop):
        positive(stop, "stop")
    limits = _Limits(budget, None if timeout is None else time.monotonic() + positive(timeout, "timeout"), stop)
    caught = (catch,) if isinstance(catch, type) else tuple(catch)
    if one_of(direction, "direction", DIRECTIONS) == "minimize":
        options["direction"] = direction
    chooser = made(domain, seed=seed, journal=journal, **options)
    try:
        if chooser.direction != direction:
            raise ValueError(f"optimize would {direction}, and the policy it was given would {chooser.direction}")
        try:
            if workers is None:
                _alone(chooser, objective, limits, caught, callback)
            else:
                whole(workers, "workers", 1)
                limit = None if trial_timeout is None else positive(trial_timeout, "trial_timeout")
                crew: Processes | Hired = (
                    Processes(objective, workers, limit, chooser.close)
                    if executor is None
                    else Hired(executor, objective, workers, limit)
                )
                with crew:
                    _Foreman(chooser, crew, limits, caught, callback, on_error).work()
        except KeyboardInterrupt as error:
            raise _interrupted(chooser, direction) from error
        answer = chooser.recommend()
    finally:
        chooser.close()
    return Result(answer, chooser, direction, limits.ended)


def _check_options(policy: Callable[..., Policy], options: dict[str, Any]) -> None:
    """Refuse a keyword that neither this function nor the policy knows, with the name that is meant."""
    known = inspect.signature(policy).parameters
    if any(p.kind is p.VAR_KEYWORD for p in known.values()):
        return
    for name in options:
        if name not in known:
            own = [*inspect.signature(optimize).parameters, *known]
            who = getattr(policy, "__name__", str(policy))
            raise TypeError(f"optimize() with {who} takes no {name!r}{near(name, own)}")


def _interrupted(policy: Policy, direction: str) -> Interrupted:
    """What Ctrl-C becomes: an exception that says, and holds, what was found."""
    count = len(policy.history)
    error = Interrupted(f"interrupted after {count} trial{'' if count == 1 else 's'}")
    with contextlib.suppress(NoData):
        error.result = Result(policy.recommend(), policy, direction, "interrupted")
    return error


class _Limits:
    """What ends a run: the budget, the time, an accuracy, a small expected improvement."""

    def __init__(self, budget: int, deadline: float | None, stop: float | Callable[[Policy], bool] | None) -> None:
        self.budget, self.deadline, self.stop = budget, deadline, stop
        self.ended = "the budget is spent"
        self._small = 0  # expected improvements below the limit, one after the other

    def reached(self, policy: Policy, under_way: int = 0) -> bool:
        """Whether nothing more is to be begun."""
        if len(policy.history) + under_way >= self.budget:
            return True
        if _accurate(policy):
            self.ended = "the accuracy is reached"
        elif self.deadline is not None and time.monotonic() >= self.deadline:
            self.ended = "the time is over"
        elif callable(self.stop) and policy.history and self.stop(policy):
            self.ended = "the rule to stop holds"
        else:
            return False
        return True

    def worthless(self, policy: Policy, query: Query) -> bool:
        """Whether a query that was just asked promises too little, as those before it; it is cancelled then."""
        if self.stop is None or callable(self.stop) or query.note.get("initial"):
            return False
        self._small = self._small + 1 if _improvement(policy, query) < self.stop else 0
        if self._small < _PATIENCE:
            return False
        policy.cancel(query)
        self.ended = f"the expected improvement is below {self.stop:g}"
        return True


_PATIENCE = 3
"""How many expected improvements in a row must be small: one may be so by an unlucky fit."""


def _improvement(policy: Policy, query: Query) -> float:
    """The expected improvement of a query over the recommendation, in the units of the objective."""
    try:
        best, there = policy.recommend(), policy.predict(query.x)
    except NoData:
        return math.inf
    if not isinstance(best, Recommendation) or best.mean is None:
        raise NotSupported(
            f"stop= as a number needs a policy that recommends a value; {type(policy).__name__} does not"
        )
    gain = there.mean - best.mean if policy.direction == "maximize" else best.mean - there.mean
    std = (there.upper - there.lower) / (2.0 * float(ndtri(0.5 + 0.5 * policy.confidence)))
    if std <= 0.0:
        return max(float(gain), 0.0)
    z = gain / std
    return float(std * (z * ndtr(z) + math.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)))


def _alone(
    chooser: Policy,
    objective: Callable[[Any], Any],
    limits: _Limits,
    caught: tuple[type[Exception], ...],
    callback: Callable[[Policy, Query], None] | None,
) -> None:
    """Measure one point after the other, in this process."""
    while not limits.reached(chooser):
        try:
            waiting = chooser.pending
            query = waiting[0] if waiting else chooser.ask()
        except (BudgetSpent, Exhausted):
            if not chooser.history:
                raise
            limits.ended = "nothing is left to measure"
            return  # what was measured is the answer
        if not waiting and limits.worthless(chooser, query):
            return
        _measure(chooser, query, objective, caught)
        if callback is not None:
            callback(chooser, query)


class _Foreman:
    """Keeps a crew busy: asks while somebody is free, tells what comes, and loses nothing."""

    def __init__(
        self,
        policy: Policy,
        crew: Crew,
        limits: _Limits,
        caught: tuple[type[Exception], ...],
        callback: Callable[[Policy, Query], None] | None,
        on_error: Callable[[BaseException], None] | None,
    ) -> None:
        self.policy, self.crew, self.limits, self.caught, self.callback = policy, crew, limits, caught, callback
        self.on_error = on_error
        alone = not policy.parallel or policy.domain.travels
        self.size = 1 if alone else crew.size
        self.left = policy.pending  # of an earlier run: they are made again, first
        self.under_way: dict[int, Query] = {}
        self.lost: dict[int, int] = {}  # how often the worker of a query was lost
        self.last: dict[int, Outcome] = {}  # the latest epoch
        self._epochs: dict[int, int] = {}
        self.failure: BaseException | None = None

    def work(self) -> None:
        """Measure until a limit is reached; an error that is not caught is raised when all others have come back."""
        while True:
            while len(self.under_way) < self.size and (query := self._next()) is not None:
                self._start(query)
            if not self.under_way:
                break
            for message in self.crew.messages(None):
                self._hear(message)
        if self.failure is not None:
            raise self.failure

    def _next(self) -> Query | None:
        """The next query to measure; None where nobody should begin now."""
        if self.failure is not None or self.limits.reached(self.policy, len(self.under_way)):
            return None
        if self.left:
            return self.left.pop(0)
        try:
            query = self.policy.ask()
        except (BudgetSpent, Exhausted):
            if not self.policy.history and not self.under_way:
                raise
            if not self.under_way:
                self.limits.ended = "nothing is left to measure"
            return None
        return None if self.limits.worthless(self.policy, query) else query

    def _start(self, query: Query) -> None:
        if _at_its_end(self.policy, query):
            self._tell(query, None, None)
            return
        self.under_way[query.id] = query
        self.crew.start(query.id, query.x if query.params is None else dict(query.params), stops_of(query.x))

    def _hear(self, message: News) -> None:
        query = self.under_way[message.id]
        if message.kind == "epoch":
            self.crew.answer(query.id, self._goes_on(query, message.content))
            return
        if message.kind == "lost" and not self.lost.get(query.id):
            self.lost[query.id] = 1
            self._epochs.pop(query.id, None)
            del self.under_way[query.id]
            if self.failure is None:
                self._start(query)
            return
        del self.under_way[query.id]
        if message.kind not in ("value", "end") and self.on_error is not None and self.failure is None:
            content = message.content
            self.on_error(content if isinstance(content, BaseException) else SurefootError(str(content)))
        if message.kind == "broken" or (message.kind == "error" and not isinstance(message.content, self.caught)):
            self.failure = self.failure or message.content  # the query stays pending
            return
        outcome = message.content if message.kind == "value" else None
        if message.kind == "end":
            outcome = self.last.get(query.id, FAILED)
        self._tell(query, FAILED if outcome is None else outcome, message.by)

    def _goes_on(self, query: Query, outcome: Outcome) -> bool:
        """Report an epoch, and say whether the run goes on."""
        epoch = self._epochs.get(query.id, 0) + 1
        self._epochs[query.id] = epoch
        self.last[query.id] = outcome
        known = max(self.policy.reports().get(query.id, {0: None}))
        stops = self.policy.steps and epoch > known and self.policy.report(query, epoch, outcome.value).stop
        return not stops and epoch != _longest(self.policy)

    def _tell(self, query: Query, outcome: Outcome | None, by: str | None) -> None:
        if outcome is None or (not outcome.failed and self.policy.reports().get(query.id)):
            self.policy.tell(query, by=by)  # the last value on record
        else:
            self.policy.tell(query, outcome, by=by)
        if self.callback is not None:
            self.callback(self.policy, query)


def _accurate(policy: Policy) -> bool:
    """Whether a policy that was given an accuracy has reached it."""
    return bool(policy.accuracy and policy.history and policy.finished)


def _at_its_end(policy: Policy, query: Query) -> bool:
    """Whether an interrupted run was at its end, and is not made again.

    The last report once more changes nothing and brings its advice back.
    """
    seen = policy.reports().get(query.id, {})
    last = max(seen, default=0)
    return bool(seen) and (last == _longest(policy) or policy.report(query, last, seen[last]).stop)


def _measure(
    policy: Policy,
    query: Query,
    objective: Callable[[Any], Any],
    catch: tuple[type[Exception], ...],
) -> None:
    """Run the objective once and tell the policy what it gave."""
    if _at_its_end(policy, query):
        policy.tell(query)
        return
    try:
        result = objective(query.x if query.params is None else dict(query.params))
        outcome = None if isinstance(result, Generator) else as_outcome(result, stops_of(query.x))
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
