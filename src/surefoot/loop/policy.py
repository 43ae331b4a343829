"""The contract between a policy and its user.

A policy decides where to measure next. It *is* its configuration, its seed and its ordered events; everything else is
derived from these and at most cached (:mod:`surefoot.loop.record` keeps and rebuilds them). This module enforces the
declared abilities and the rules of asking and telling. A subclass says how to choose a point and what to answer:

>>> class Middle(Policy):
...     "Always the middle of a box."
...     domains = (Box,)
...     def _choose(self, step, context):
...         return Proposal(self.domain.bounds.mean(axis=1))
...     def _recommend(self):
...         return self._best_measured()
>>> policy = Middle(Box([(0.0, 2.0)]), seed=0)
>>> query = policy.ask()
>>> policy.tell(query, 3.5)
>>> policy.recommend().mean
3.5

Rules only maximize. With ``direction="minimize"`` they see −f, and users f: what a policy is told, options that hold
values, and its answer are turned here, and nowhere else (:mod:`surefoot.loop.direction`). Points are in the domain's
own units. All options are keyword-only.
"""

from __future__ import annotations

import os
import warnings
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from surefoot.arguments import one_of, whole
from surefoot.domain import Box, Candidates, Domain, Space
from surefoot.errors import NoData, NotSupported
from surefoot.loop import table
from surefoot.loop.clock import Clock
from surefoot.loop.direction import DIRECTIONS, turned
from surefoot.loop.durable import uninterrupted
from surefoot.loop.events import as_outcome, asked, outcome_fields, outcome_from, query_from, stops_of
from surefoot.loop.journal import Journal
from surefoot.loop.journey import Journey
from surefoot.loop.options import Options, asked_for, check_domain, held, keeps
from surefoot.loop.record import Record
from surefoot.loop.trials import Place, Trials
from surefoot.loop.types import Advice, Observation, Outcome, Proposal, Query, Recommendation

if TYPE_CHECKING:
    from surefoot.belief import Posterior

__all__ = ["Options", "Policy", "Proposal"]

Array = NDArray[np.float64]
Point = Sequence[float] | Array | Mapping[str, Any]
T = TypeVar("T")
OMITTED = object()
"""Stands for a value that :meth:`Policy.tell` was not given; None is a failed run."""


class Policy(Record):
    """Base of all policies: ``ask``, ``tell``, ``cancel``, ``report``, ``recommend``, ``state``.

    Class attributes declare what a policy can do; this class enforces them and the contract suite reads them.

    Attributes
    ----------
    domains : tuple of types
        Where points may lie.
    parallel : bool
        Whether ``ask`` may be called again before ``tell``.
    context : tuple of str
        Names that ``ask`` takes, such as ``time``.
    steps : bool
        Whether runs may be reported step by step.
    fidelities : bool
        Whether queries choose a fidelity.
    valued : tuple of str
        Options of this class that hold values of the objective, such as a threshold; the classes above have their own.
        The constructor of a policy that minimizes gets them as they are of −f.
    weighs_costs : bool
        Whether the choice among the moves of ``Paths`` weighs what they cost.
    ignores_pending : bool
        Whether the choice knows nothing of points under way, so that these are always left out.
    accuracy : float or None
        How exact the answer shall be; with one, ``finished`` says when it is.
    epochs : int or None
        The number of steps of a whole run, for policies with ``steps`` that were told it.
    tasks : tuple
        Earlier tasks that the policy learns from.
    confidence : float
        The probability with which the bounds of its answers hold.
    forecasts : bool
        Whether ``recommend`` and ``posterior`` take a ``time``, from the latest one on.
    clock : Clock or None
        When things took place, for policies that ask for the time; made by their constructors.

    >>> from surefoot import RandomSearch
    >>> RandomSearch.parallel, RandomSearch.steps
    (True, False)
    """

    domains: ClassVar[tuple[type[Domain], ...]] = (Box, Candidates, Space)
    parallel: ClassVar[bool] = True
    context: ClassVar[tuple[str, ...]] = ()
    steps: ClassVar[bool] = False
    fidelities: ClassVar[bool] = False
    valued: ClassVar[tuple[str, ...]] = ()
    weighs_costs: ClassVar[bool] = False
    ignores_pending: ClassVar[bool] = False
    accuracy: float | None = None
    epochs: int | None = None
    tasks: tuple[Any, ...] = ()
    confidence: float = 0.95
    forecasts: ClassVar[bool] = False
    clock: Clock | None = None

    def __init__(
        self,
        domain: Domain,
        *,
        direction: str = "maximize",
        seed: int | None = None,
        repeats: bool = True,
        journal: str | os.PathLike[str] | Journal | None = None,
    ) -> None:
        super().__init__(seed=seed, journal=journal)
        check_domain(domain, self.domains, type(self).__name__)
        if domain.travels and not repeats:
            raise NotSupported("on Paths a vehicle may have to pass a place again: repeats=False cannot be promised")
        if not isinstance(repeats, (bool, np.bool_)):
            raise TypeError(f"repeats must be True or False, got {repeats!r}")
        if domain.uneven and not self.weighs_costs:
            warnings.warn(
                f"{type(self).__name__} does not weigh what moves cost: query.cost says it, the route does not depend "
                "on it (MacroGPO(toll=...) weighs it; Paths(cost=0.0) says that none is meant)",
                stacklevel=3,
            )
        self.domain = domain
        self.direction = one_of(direction, "direction", DIRECTIONS)
        self.repeats = bool(repeats)
        self.trials = Trials(domain, self._events, repeats=self.repeats, direction=self.direction)
        self._queries, self._pending, self._told = self.trials.queries, self.trials.pending, self.trials.told
        self._reports, self._observations = self.trials.reports, self.trials.observations

    # -- the direction -----------------------------------------------------------------------------------------------

    @classmethod
    def negated_options(cls, options: Mapping[str, Any]) -> dict[str, Any]:
        valued = {name for base in cls.__mro__ for name in vars(base).get("valued", ())}
        turns = {name for name, value in options.items() if name in valued or isinstance(value, Policy)}
        return {name: turned(value) if name in turns else value for name, value in options.items()}

    @classmethod
    def _as_seen(cls, arguments: Mapping[str, Any]) -> dict[str, Any]:
        return cls.negated_options(arguments) if arguments.get("direction") == "minimize" else {}

    def negated(self) -> Self:
        """Return a fresh policy that does with −f what this one does with f: the other way, its options turned.

        >>> from surefoot import GPLSE
        >>> GPLSE(Box([(0.0, 1.0)]), threshold=0.5, seed=0).negated().config()["threshold"]
        -0.5
        """
        other = DIRECTIONS[self.direction == "maximize"]
        return self.fresh(**{**self.negated_options(self._arguments), "direction": other})

    def _facing(self, value: T) -> T:
        """What the rule sees of something told, or the user of something found: the way is the same."""
        return self.trials.facing(value)

    def header(self) -> dict[str, Any]:
        return {"direction": self.direction, **super().header()}

    def _first_header(self, found: Mapping[str, Any]) -> dict[str, Any]:
        return {"config": self.negated().config()} if self.direction == "minimize" else {}

    # -- what a subclass gives ---------------------------------------------------------------------------------------

    @abstractmethod
    def _choose(self, step: int, context: Mapping[str, Any]) -> Proposal:
        """Choose the point of query number ``step``."""

    @abstractmethod
    def _recommend(self) -> Recommendation:
        """Answer the policy's own question; called only when something was measured."""

    def _advise(self, query: Query, step: int, value: float | None) -> Advice:
        """Judge a run in progress; only policies with ``steps`` override this."""
        return Advice(stop=False, reason="this policy never stops a run")

    def _check_outcome(self, query: Query | None, outcome: Outcome) -> None:
        """Refuse an outcome before anything changes; ``query`` is None for a point that was not asked for."""
        if self.clock is not None:
            self.clock.check(query, outcome)

    def _check_report(self, step: int) -> None:
        """Refuse the number of a step before anything changes."""

    # -- asking ------------------------------------------------------------------------------------------------------

    @overload
    def ask(self, n: None = None, **context: Any) -> Query: ...
    @overload
    def ask(self, n: int, **context: Any) -> list[Query]: ...
    def ask(self, n: int | None = None, **context: Any) -> Query | list[Query]:
        """Return the next query, or a list of ``n`` queries chosen one after the other.

        ``fixed`` names parameters of a ``Space`` that keep a value this time: ``ask(fixed={"solvent": "water"})``.

        Raises
        ------
        PendingQuery
            A sequential policy still waits for its last query.
        Exhausted
            Every admissible point is pending and spared (or measured, with ``repeats=False``).
        """
        fixed = context.pop("fixed", None)
        count = asked_for(self, n, context)
        if fixed is not None:
            context["fixed"] = held(self.domain, fixed)
        self._begin(count)
        before, written = len(self._queries), len(self._events)
        try:
            for _ in range(count):
                given = context if self.clock is None else self.clock.dated(context)
                query = self.trials.query_of(self._choose(len(self._queries), given), given)
                keeps(self, query, fixed)
                self._queries.append(query)
                self._pending[query.id] = query
            queries = self._queries[before:]
            with uninterrupted():
                self._commit(*(asked(query) for query in queries))
        except BaseException:
            if len(self._events) == written:  # Ctrl-C may come when all is done: then they are pending
                for query in self._queries[before:]:
                    self._pending.pop(query.id, None)
                del self._queries[before:]
            raise
        return queries[0] if n is None else queries

    def _begin(self, count: int) -> None:
        """Prepare for the choice of ``count`` queries; for policies that choose these together."""

    expect = table.expect

    # -- telling -----------------------------------------------------------------------------------------------------

    def tell(self, query: Query | int | Point, value: Any = OMITTED, *, by: str | None = None) -> None:
        """Tell the outcome of a query, of a query id, or of any point of the domain (warm start).

        A whole table, as a data frame or a list of dicts, may stand alone (:meth:`tell_table`).

        A point that is pending closes its query, the oldest one where several wait there.

        ``value`` is a number, an :class:`Outcome`, or None / NaN / ``FAILED`` for a failed run; it may be omitted after
        reports. A move (on ``Paths``) is told one value for each stop, None or NaN for a missed one. The same outcome
        again changes nothing; another one for the same query is a ``ValueError``. ``by`` says who measured.
        """
        if isinstance(query, (Query, int, np.integer)):
            known = self._find(query)
            if value is OMITTED:
                value = self._facing(self.trials.last(known))
            outcome = as_outcome(value, stops_of(known.x))
            if known.id in self._told:
                before = self._facing(self._told[known.id])
                if before != outcome:
                    raise ValueError(f"query {known.id} was already told {before}, not {outcome}")
                return
            self._check_outcome(known, outcome)
            with uninterrupted():
                self._commit({"event": "told", "id": known.id, **outcome_fields(outcome, by)})
                self._apply_told(known.id, known.x, known.index, self._facing(outcome))
            return
        if value is OMITTED and table.is_table(query):
            self.tell_table(query)
            return
        x = self.domain.validate(query)
        if (waiting := self.trials.waiting_at(x)) is not None:
            self.tell(waiting, value, by=by)
            return
        if value is OMITTED:
            raise ValueError("a point that was not asked for needs a value")
        outcome = as_outcome(value, stops_of(x))
        self._check_outcome(None, outcome)
        with uninterrupted():
            self._commit({"event": "told", "x": x.tolist(), **outcome_fields(outcome, by)})
            self._apply_told(None, x, None, self._facing(outcome))

    def _apply_told(self, id: int | None, x: Array, index: int | None, outcome: Outcome) -> None:
        if index is None and self.domain.listed:
            index = self.domain.row_of(x)
        if id is not None:
            self._told[id] = outcome
            self._pending.pop(id, None)
        self._observations.append(Observation(id, x, outcome, index))
        if self.clock is not None:
            self.clock.hear(self._observations[-1])

    def _find(self, query: Query | int | np.integer[Any]) -> Query:
        return self.trials.find(query)

    def cancel(self, query: Query | int) -> None:
        """Forget a pending query whose worker is gone; nothing is learnt from it."""
        known = self._find(query)
        if known.id in self._told:
            raise ValueError(f"query {known.id} was already told; it cannot be cancelled")
        if known.id in self._pending:
            with uninterrupted():
                self._commit({"event": "cancelled", "id": known.id})
                del self._pending[known.id]

    def report(self, query: Query | int, step: int, value: float | None) -> Advice:
        """Report an intermediate value of a run and get advice; durable like a tell."""
        if not self.steps:
            raise NotSupported(f"{type(self).__name__} does not follow runs step by step; tell the final value")
        known = self._find(query)
        step = whole(step, "step")
        self._check_report(step)
        told = as_outcome(value).value
        number = self._facing(told)
        reports = self._reports.get(known.id, {})
        if step in reports:
            if reports[int(step)] != number:
                before = self._facing(reports[int(step)])
                raise ValueError(f"step {step} of query {known.id} was already reported as {before}")
            return self._advise(known, int(step), number)
        self.trials.check_report(known.id, step)
        with uninterrupted():
            self._commit({"event": "reported", "id": known.id, "step": int(step), "value": told})
            self._reports.setdefault(known.id, {})[int(step)] = number
        return self._advise(known, int(step), number)

    tell_table = table.tell_table
    to_rows = table.to_rows
    to_frame = table.to_frame

    # -- answering ---------------------------------------------------------------------------------------------------

    def recommend(self) -> Recommendation:
        """Return the answer to this policy's own question, and the rule that chose it.

        Raises
        ------
        NoData
            Nothing was measured successfully yet.
        """
        if all(observation.failed for observation in self._observations):
            raise NoData(f"{type(self).__name__} has no successful measurement yet")
        return self._facing(self._recommend())

    def _best_measured(self) -> Recommendation:
        """The point with the highest mean of its measured values."""
        x, mean = self.trials.best()
        return self._recommendation(x, mean=mean, rule="best measured value")

    def _recommendation(self, x: Array, **fields: Any) -> Recommendation:
        return Recommendation(x=x, index=self.domain.row_of(x), params=self.domain.params(x), **fields)

    # -- what only some policies can say: a value for the others ------------------------------------------------------

    @property
    def finished(self) -> bool:
        """Whether the question is answered, so that no further measurement is needed."""
        return False

    @property
    def stopped(self) -> dict[int, str]:
        """Why runs were advised to stop, by query id."""
        return {}

    @property
    def epochs_used(self) -> int | None:
        """How many epochs all runs took so far; None for a policy that does not count them."""
        return None

    @property
    def epochs_saved(self) -> int | None:
        """How many epochs stopped runs did not need; None for a policy that does not count them."""
        return None

    @property
    def weights(self) -> Array | None:
        """How much each earlier task counts; None for a policy that does not weigh them."""
        return None

    @property
    def weight_history(self) -> Array | None:
        """The weights behind every query that the rule chose, shape (queries, tasks)."""
        return None

    @property
    def nu(self) -> float | None:
        """The influence ν of all earlier tasks together, between 0 and 1; None where it is not estimated."""
        return None

    def posterior(self) -> Posterior | None:
        """Return the belief over :meth:`inputs` given all measurements; None for a policy without one."""
        return None

    def predict(self, points: Any) -> Any:
        """Return what a policy with a model predicts at a point, or a list of that for rows or a table of points."""
        raise NotSupported(f"{type(self).__name__} has no model to predict with")

    def score(self, points: Any) -> Array:
        """Return how much a policy with a model would like to measure each row of a table now, shape (n,)."""
        raise NotSupported(f"{type(self).__name__} has no model to score points with")

    def importance(self) -> Any:
        """Return how much each parameter matters under the model of a policy that has one."""
        raise NotSupported(f"{type(self).__name__} has no model to tell what matters")

    def inputs(self, points: Array) -> Array:
        """Return what the belief sees of points (n, d): their encoding, for runs of many epochs with the last one."""
        return self.domain.encode(points)

    # -- looking -----------------------------------------------------------------------------------------------------

    @property
    def time(self) -> float | None:
        """The latest time that was asked for or measured at; None before the first, and without a clock."""
        return None if self.clock is None else self.clock.latest

    @property
    def pending(self) -> list[Query]:
        """Queries that were asked and neither told nor cancelled."""
        return list(self._pending.values())

    @property
    def queries(self) -> list[Query]:
        """All queries asked so far."""
        return list(self._queries)

    @property
    def history(self) -> list[Observation]:
        """All measurements in the order they were told, failed runs included."""
        return [self._facing(observation) for observation in self._observations]

    def reports(self) -> dict[int, dict[int, float | None]]:
        """Return what was reported of each run, by query id and then by step; empty for policies without ``steps``."""
        return {id: {n: self._facing(v) for n, v in values.items()} for id, values in self._reports.items()}

    @property
    def journey(self) -> Journey:
        """Where the vehicle stands, and what it may still do, on ``Paths``."""
        return self.trials.journey

    def data(self) -> tuple[Array, Array, Array]:
        """Return points (n, d), values (n,) and noises (n,; NaN where not given) of successful measurements.

        Each measured stop of a move is one of them.
        """
        X, y, noise = self.trials.data()
        return X.copy(), -y if self.direction == "minimize" else y.copy(), noise.copy()

    @property
    def spares_pending(self) -> bool:
        """Whether a point that is pending is not asked for a second time while another is left.

        It is where measurements are exact, so that a second one tells nothing, and with ``repeats=False``. A policy
        without a belief knows of no noise.

        >>> from surefoot import RandomSearch
        >>> RandomSearch(Box([(0.0, 1.0)])).spares_pending
        True
        """
        return True

    def _blocked(self, *, sparing: bool = False) -> list[Place]:
        """Points, with their candidate index, that must not be asked now; see :meth:`Trials.blocked`."""
        return self.trials.blocked(lambda: self.spares_pending, sparing=sparing or self.ignores_pending)

    def _apply(self, event: Mapping[str, Any]) -> None:
        kind, id = event.get("event"), event.get("id")
        if kind == "asked":
            query = query_from(event, self.domain)
            if query.id != len(self._queries):
                raise ValueError(f"query {query.id} comes after {len(self._queries)} others")
            self._queries.append(query)
            self._pending[query.id] = query
        elif kind == "told":
            outcome = outcome_from(event)
            if id is None:
                self._apply_told(None, self.domain.validate(event["x"]), None, self._facing(outcome))
            else:
                self._apply_told(id, self._queries[id].x, self._queries[id].index, self._facing(outcome))
        elif kind == "reported":
            self._reports.setdefault(event["id"], {})[event["step"]] = self._facing(event["value"])
        elif kind in ("cancelled", "expired"):  # by somebody, or because the time of a lease was over
            self._pending.pop(event["id"], None)
        else:
            raise ValueError(f"unknown event {kind!r}")

    def __repr__(self) -> str:
        told = sum(not o.failed for o in self._observations)
        return f"{type(self).__name__}({self.domain!r}, asked={len(self._queries)}, measured={told})"
