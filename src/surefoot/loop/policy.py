"""The contract between a policy and its user.

A policy decides where to measure next. It *is* its configuration, its seed and its ordered events; everything else is
derived from these and at most cached. This module keeps the events, enforces the declared abilities, writes the journal
and rebuilds policies. A subclass says how to choose a point and what to answer:

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

Policies only maximize. Points are in the domain's own units. All options are keyword-only.
"""

from __future__ import annotations

import inspect
import os
import types
from abc import ABC, ABCMeta, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Self, TypedDict, overload

import numpy as np
from numpy.typing import NDArray

from surefoot.domain import Box, Candidates, Domain, Space
from surefoot.loop.errors import Exhausted, NoData, NotSupported, PendingQuery
from surefoot.loop.journal import SCHEMA, Journal, check_schema, dumps, loads
from surefoot.loop.state import check_domain, pack, unpack
from surefoot.loop.streams import fresh_seed, stream
from surefoot.loop.types import Advice, Observation, Outcome, Query, Recommendation

__all__ = ["Options", "Policy", "Proposal", "load"]

Array = NDArray[np.float64]
Point = Sequence[float] | Array | Mapping[str, Any]
_OMITTED = object()


class Options(TypedDict, total=False):
    """Keyword arguments that every policy takes.

    ``seed`` names all random draws (None: drawn once and stored); ``repeats=False`` never asks for a measured point
    again; ``journal`` is a path, or a :class:`Journal`, in which every event is durable before the call returns.

    >>> options: Options = {"seed": 3, "repeats": False}
    """

    seed: int | None
    repeats: bool
    journal: str | os.PathLike[str] | Journal | None


@dataclass(frozen=True)
class Proposal:
    """What a subclass returns for an ask: a raw point, or the index of a candidate, and what to remember about it.

    >>> Proposal(index=3).x is None
    True
    """

    x: Array | None = None
    index: int | None = None
    fidelity: int | None = None
    cost: float | None = None
    note: Mapping[str, Any] = field(default_factory=dict)


class _Meta(ABCMeta):
    """Keeps the arguments a policy was made with, and opens its journal once it is complete."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        bound = inspect.signature(cls).bind(*args, **kwargs)
        bound.apply_defaults()
        policy = super().__call__(*args, **kwargs)
        policy._arguments = {key: value for key, value in bound.arguments.items() if key not in ("seed", "journal")}
        policy._open_journal()
        return policy


class Policy(ABC, metaclass=_Meta):
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
    """

    domains: ClassVar[tuple[type[Domain], ...]] = (Box, Candidates, Space)
    parallel: ClassVar[bool] = True
    context: ClassVar[tuple[str, ...]] = ()
    steps: ClassVar[bool] = False
    fidelities: ClassVar[bool] = False
    registry: ClassVar[dict[str, type[Policy]]] = {}
    __signature__: ClassVar[inspect.Signature]
    _arguments: dict[str, Any]

    def __init_subclass__(cls) -> None:
        cls.__signature__ = _full_signature(cls)
        if not cls.__name__.startswith("_"):
            Policy.registry[cls.__name__] = cls

    def __init__(
        self,
        domain: Domain,
        *,
        seed: int | None = None,
        repeats: bool = True,
        journal: str | os.PathLike[str] | Journal | None = None,
    ) -> None:
        check_domain(domain, self.domains, type(self).__name__)
        if seed is not None and (not isinstance(seed, (int, np.integer)) or isinstance(seed, bool) or seed < 0):
            raise ValueError(f"seed must be a non-negative integer or None, got {seed!r}")
        self.domain = domain
        self.repeats = repeats
        self.journal = journal if journal is None or isinstance(journal, Journal) else Journal(journal)
        self._seed = None if seed is None else int(seed)
        self._events: list[dict[str, Any]] = []
        self._queries: list[Query] = []
        self._pending: dict[int, Query] = {}
        self._told: dict[int, Outcome] = {}
        self._reports: dict[int, dict[int, float | None]] = {}
        self._observations: list[Observation] = []

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

    def _cache(self) -> dict[str, Any]:
        """Return what is dear to recompute, JSON-able."""
        return {}

    def _restore(self, cache: dict[str, Any]) -> None:
        """Take back what :meth:`_cache` gave."""

    # -- asking ------------------------------------------------------------------------------------------------------

    @overload
    def ask(self, n: None = None, **context: Any) -> Query: ...
    @overload
    def ask(self, n: int, **context: Any) -> list[Query]: ...
    def ask(self, n: int | None = None, **context: Any) -> Query | list[Query]:
        """Return the next query, or a list of ``n`` queries chosen one after the other.

        Raises
        ------
        PendingQuery
            A sequential policy still waits for its last query.
        Exhausted
            Every admissible point is pending (or measured, with ``repeats=False``).
        """
        unknown = [name for name in context if name not in self.context]
        if unknown:
            known = f"takes {', '.join(self.context)}" if self.context else "takes no context"
            raise NotSupported(f"{type(self).__name__}.ask() {known}, not {unknown[0]!r}")
        if n is not None and (not isinstance(n, (int, np.integer)) or isinstance(n, bool) or n < 1):
            raise ValueError(f"ask(n) needs a positive whole number, got {n!r}")
        count = 1 if n is None else int(n)
        if not self.parallel and (self._pending or count > 1):
            waiting = (
                f"tell or cancel query {next(iter(self._pending))} first" if self._pending else "ask for one at a time"
            )
            raise PendingQuery(f"{type(self).__name__} chooses one point at a time; {waiting}")
        queries: list[Query] = []
        try:
            for _ in range(count):
                query = self._query(self._choose(len(self._queries), context), context)
                self._queries.append(query)
                self._pending[query.id] = query
                queries.append(query)
            self._commit(*(_asked(query) for query in queries))
        except BaseException:
            for query in queries:
                del self._pending[query.id]
            del self._queries[len(self._queries) - len(queries) :]
            raise
        return queries[0] if n is None else queries

    def _query(self, proposal: Proposal, context: Mapping[str, Any]) -> Query:
        if proposal.x is None:
            if proposal.index is None or not isinstance(self.domain, Candidates):
                raise TypeError("a proposal needs a point, or the index of a candidate")
            x = self.domain.points[proposal.index]
        else:
            x = self.domain.validate(proposal.x)
        index = proposal.index
        if index is None and isinstance(self.domain, Candidates):
            index = self.domain.index_of(x)
        time = context.get("time")
        return Query(
            id=len(self._queries),
            x=x,
            index=index,
            params=self.domain.params(x),
            fidelity=proposal.fidelity,
            time=None if time is None else float(time),
            cost=proposal.cost,
            note=types.MappingProxyType(dict(proposal.note)),
        )

    # -- telling -----------------------------------------------------------------------------------------------------

    def tell(self, query: Query | int | Point, value: Any = _OMITTED) -> None:
        """Tell the outcome of a query, of a query id, or of any point of the domain (warm start).

        ``value`` is a number, an :class:`Outcome`, or None / NaN / ``FAILED`` for a failed run; it may be omitted after
        reports. The same outcome again changes nothing; another one for the same query is a ``ValueError``.
        """
        if isinstance(query, (Query, int, np.integer)):
            known = self._find(query)
            outcome = self._final(known) if value is _OMITTED else _outcome(value)
            if known.id in self._told:
                if self._told[known.id] != outcome:
                    raise ValueError(f"query {known.id} was already told {self._told[known.id]}, not {outcome}")
                return
            self._commit({"event": "told", "id": known.id, **_outcome_dict(outcome)})
            self._apply_told(known.id, known.x, known.index, outcome)
            return
        x = self.domain.validate(query)
        if value is _OMITTED:
            raise ValueError("a point that was not asked for needs a value")
        outcome = _outcome(value)
        self._commit({"event": "told", "x": x.tolist(), **_outcome_dict(outcome)})
        self._apply_told(None, x, None, outcome)

    def _apply_told(self, id: int | None, x: Array, index: int | None, outcome: Outcome) -> None:
        if index is None and isinstance(self.domain, Candidates):
            index = self.domain.index_of(x)
        if id is not None:
            self._told[id] = outcome
            self._pending.pop(id, None)
        self._observations.append(Observation(id, x, outcome, index))

    def _find(self, query: Query | int | np.integer[Any]) -> Query:
        id = query.id if isinstance(query, Query) else int(query)
        if not 0 <= id < len(self._queries):
            raise ValueError(f"query {id} was not asked by this policy (it has asked {len(self._queries)})")
        known = self._queries[id]
        if isinstance(query, Query) and not np.array_equal(known.x, query.x):
            raise ValueError(f"query {id} of this policy is at {known.x.tolist()}, not at {query.x.tolist()}")
        return known

    def _final(self, query: Query) -> Outcome:
        """The outcome of a reported run: its last value."""
        reports = self._reports.get(query.id)
        if not reports:
            raise ValueError(f"query {query.id} needs a value: nothing was reported for it")
        return Outcome(reports[max(reports)])

    def cancel(self, query: Query | int) -> None:
        """Forget a pending query whose worker is gone; nothing is learnt from it."""
        known = self._find(query)
        if known.id in self._told:
            raise ValueError(f"query {known.id} was already told; it cannot be cancelled")
        if known.id in self._pending:
            self._commit({"event": "cancelled", "id": known.id})
            del self._pending[known.id]

    def report(self, query: Query | int, step: int, value: float | None) -> Advice:
        """Report an intermediate value of a run and get advice; durable like a tell."""
        if not self.steps:
            raise NotSupported(f"{type(self).__name__} does not follow runs step by step; tell the final value")
        known = self._find(query)
        if not isinstance(step, (int, np.integer)) or isinstance(step, bool) or step < 0:
            raise ValueError(f"step must be a whole number from 0 on, got {step!r}")
        number = _outcome(value).value
        reports = self._reports.get(known.id, {})
        if step in reports:
            if reports[int(step)] != number:
                raise ValueError(f"step {step} of query {known.id} was already reported as {reports[int(step)]}")
            return self._advise(known, int(step), number)
        if known.id not in self._pending:
            raise ValueError(f"query {known.id} is closed; nothing more can be reported")
        if reports and step < max(reports):
            raise ValueError(f"step {step} of query {known.id} comes after step {max(reports)}")
        self._commit({"event": "reported", "id": known.id, "step": int(step), "value": number})
        self._reports.setdefault(known.id, {})[int(step)] = number
        return self._advise(known, int(step), number)

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
        return self._recommend()

    def _best_measured(self) -> Recommendation:
        """The point with the highest mean of its measured values."""
        X, y, _ = self.data()
        _, inverse = np.unique(X, axis=0, return_inverse=True)
        means = np.bincount(inverse.ravel(), weights=y) / np.bincount(inverse.ravel())
        # Unique rows are sorted; the first *measured* of the best wins, whatever its coordinates.
        first = int(np.flatnonzero(means[inverse.ravel()] == means.max())[0])
        return self._recommendation(X[first], mean=float(means.max()), rule="best measured value")

    def _recommendation(self, x: Array, **fields: Any) -> Recommendation:
        index = self.domain.index_of(x) if isinstance(self.domain, Candidates) else None
        return Recommendation(x=x, index=index, params=self.domain.params(x), **fields)

    # -- looking -----------------------------------------------------------------------------------------------------

    @property
    def seed(self) -> int:
        """The seed of all random draws."""
        if self._seed is None:
            self._seed = fresh_seed()
        return self._seed

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
        return list(self._observations)

    @property
    def events(self) -> list[dict[str, Any]]:
        """The ordered events this policy consists of."""
        return [dict(event) for event in self._events]

    def data(self) -> tuple[Array, Array, Array]:
        """Return points (n, d), values (n,) and noises (n,; NaN where not given) of successful measurements."""
        good = [o for o in self._observations if not o.failed]
        X = np.array([o.x for o in good]).reshape(len(good), self.domain.dimension)
        noise = [np.nan if o.outcome.noise is None else o.outcome.noise for o in good]
        return X, np.array([o.value for o in good], dtype=np.float64), np.array(noise, dtype=np.float64)

    def stream(self, purpose: str, step: int = 0) -> np.random.Generator:
        """Return the generator of one purpose at one step (see :mod:`surefoot.loop.streams`)."""
        return stream(self.seed, purpose, step)

    def _blocked(self) -> list[tuple[Array, int | None]]:
        """Points, with their candidate index, that must not be asked now.

        These are pending ones, failed ones, and with ``repeats=False`` measured ones. Failed points are let in again
        when nothing else would be left of a finite domain.
        """
        hard = [(query.x, query.index) for query in self._pending.values()]
        if not self.repeats:
            hard += [(o.x, o.index) for o in self._observations if not o.failed]
        failed = [(o.x, o.index) for o in self._observations if o.failed]
        size = self.domain.size
        if size is not None:
            taken = {x.tobytes() if index is None else index for x, index in hard}
            if len(taken) >= size:
                raise Exhausted(f"all {size} points are pending{'' if self.repeats else ' or measured'}")
            if len(taken | {x.tobytes() if index is None else index for x, index in failed}) >= size:
                failed = []
        return hard + failed

    def _excluded_points(self) -> Array:
        """The blocked points, shape (k, d)."""
        return np.array([x for x, _ in self._blocked()], dtype=np.float64).reshape(-1, self.domain.dimension)

    def _excluded_rows(self) -> NDArray[np.bool_]:
        """The blocked candidates as a mask, shape (size,)."""
        mask = np.zeros(self.domain.size or 0, dtype=bool)
        mask[[index for _, index in self._blocked() if index is not None]] = True
        return mask

    # -- state -------------------------------------------------------------------------------------------------------

    def config(self) -> dict[str, Any]:
        """Return the constructor's arguments as strict JSON."""
        return {key: pack(value) for key, value in self._arguments.items()}

    def state(self) -> dict[str, Any]:
        """Return the whole policy as strict JSON: configuration, seed, events, cache."""
        return {
            "schema": SCHEMA,
            "policy": type(self).__name__,
            "config": self.config(),
            "seed": self.seed,
            "events": self.events,
            "cache": self._cache(),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any], **again: Any) -> Self:
        """Rebuild a policy from :meth:`state`; code and large arrays are passed again by name.

        >>> from surefoot.policy.search import RandomSearch
        >>> policy = RandomSearch(Box([(0.0, 1.0)]), seed=1)
        >>> Policy.from_state(policy.state()).ask() == policy.ask()
        True
        """
        check_schema(state, "state")
        kind = cls.registry.get(state["policy"]) or _builtin(state["policy"])
        if kind is None or not issubclass(kind, cls):
            raise ValueError(f"{state['policy']!r} is not a registered {cls.__name__}; import its module first")
        journal = again.pop("journal", None)
        unknown = [name for name in again if name not in state["config"]]
        if unknown:
            raise ValueError(f"{state['policy']} has no option {unknown[0]!r}")
        config = {name: _unpack_option(name, value, again.get(name)) for name, value in state["config"].items()}
        policy: Self = kind(**config, seed=state["seed"])
        policy._replay(state["events"])
        policy._restore(dict(state.get("cache", {})))
        if journal is not None:
            policy.journal = journal if isinstance(journal, Journal) else Journal(journal)
            found = policy.journal.open(policy._header())
            if found != policy._events[: len(found)]:
                policy.journal.close()
                raise ValueError(f"{policy.journal.path} holds other events than this policy")
            policy.journal.append(*policy._events[len(found) :])
        return policy

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write :meth:`state` to a file, atomically."""
        target = Path(path)
        partial = target.with_name(target.name + ".partial")
        partial.write_text(dumps(self.state()))
        partial.replace(target)

    def _header(self) -> dict[str, Any]:
        return {"policy": type(self).__name__, "config": self.config(), "seed": self.seed}

    def _open_journal(self) -> None:
        if self.journal is None:
            return
        if self._seed is None:
            found, _ = self.journal.read()
            self._seed = None if found is None else found.get("seed")
        self._replay(self.journal.open(self._header()))

    def _commit(self, *events: dict[str, Any]) -> None:
        """Make events durable, then remember them."""
        text = [dumps(event) for event in events]  # refuses what is not strict JSON before anything changes
        if self.journal is not None:
            self.journal.append(*events)
        self._events.extend(loads(line) for line in text)

    def _replay(self, events: Sequence[Mapping[str, Any]]) -> None:
        """Rebuild from events that were committed before; they are not written again."""
        for event in events:
            kind, id = event.get("event"), event.get("id")
            if kind == "asked":
                query = _query_from(event, self.domain)
                self._queries.append(query)
                self._pending[query.id] = query
            elif kind == "told":
                outcome = Outcome(event["value"], event.get("noise"), event.get("cost"), event.get("time"))
                if id is None:
                    self._apply_told(None, self.domain.validate(event["x"]), None, outcome)
                else:
                    self._apply_told(id, self._queries[id].x, self._queries[id].index, outcome)
            elif kind == "reported":
                self._reports.setdefault(event["id"], {})[event["step"]] = event["value"]
            elif kind == "cancelled":
                self._pending.pop(event["id"], None)
            else:
                raise ValueError(f"unknown event {kind!r}")
            self._events.append(dict(event))

    def close(self) -> None:
        """Release the journal, if there is one."""
        if self.journal is not None:
            self.journal.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        told = sum(not o.failed for o in self._observations)
        return f"{type(self).__name__}({self.domain!r}, asked={len(self._queries)}, measured={told})"


def _full_signature(cls: type) -> inspect.Signature:
    """The constructor's signature with ``**options`` replaced by the options of the class above."""
    found: dict[str, inspect.Parameter] = {}
    for base in cls.__mro__:
        if "__init__" in vars(base):
            _, *own = inspect.signature(vars(base)["__init__"]).parameters.values()
            for parameter in own:
                if parameter.kind is not parameter.VAR_KEYWORD:
                    found.setdefault(parameter.name, parameter)
            if all(parameter.kind is not parameter.VAR_KEYWORD for parameter in own):
                break
    return inspect.Signature(sorted(found.values(), key=lambda parameter: parameter.kind))


def load(path: str | os.PathLike[str], **again: Any) -> Policy:
    """Rebuild a policy from a file written by ``save`` or from a journal; a journal is continued.

    >>> import tempfile, os
    >>> from surefoot.policy.search import RandomSearch
    >>> path = os.path.join(tempfile.mkdtemp(), "run.json")
    >>> RandomSearch(Box([(0.0, 1.0)]), seed=1).save(path)
    >>> load(path)
    RandomSearch(Box([(0.0, 1.0)]), asked=0, measured=0)
    """
    text = Path(path).read_text()
    first, *_ = text.split("\n", 1)
    head: Any = loads(first) if first.strip() else None
    check_schema(head, "file")
    if "events" in head:
        return Policy.from_state(head, **again)
    journal = Journal(path, direction=head["direction"])
    _, events = journal.read()
    return Policy.from_state({**head, "events": events, "cache": {}}, journal=journal, **again)


def _unpack_option(name: str, stored: Any, given: Any) -> Any:
    try:
        return unpack(stored, given)
    except ValueError as error:
        advice = "" if given is not None else f" (pass it again: {name}=...)"
        raise ValueError(f"option {name!r}: {error}{advice}") from None


def _builtin(name: str) -> type[Policy] | None:
    """Look a shipped policy up by name, so that its module need not be imported first."""
    import surefoot

    kind = getattr(surefoot, name, None) if name in surefoot.__all__ else None
    return kind if isinstance(kind, type) and issubclass(kind, Policy) else None


def _outcome(value: Any) -> Outcome:
    if isinstance(value, Outcome):
        return value
    if value is None:
        return Outcome(None)
    array = np.asarray(value)
    if array.size != 1 or array.dtype.kind not in "fiub":
        raise TypeError(f"a value must be a number, an Outcome, or None for a failed run; got {value!r}")
    return Outcome(float(array.reshape(())))


def _outcome_dict(outcome: Outcome) -> dict[str, Any]:
    optional = {"noise": outcome.noise, "cost": outcome.cost, "time": outcome.time}
    return {"value": outcome.value, **{key: value for key, value in optional.items() if value is not None}}


def _asked(query: Query) -> dict[str, Any]:
    optional = {"index": query.index, "fidelity": query.fidelity, "time": query.time, "cost": query.cost}
    event = {"event": "asked", "id": query.id, "x": query.x.tolist()}
    event.update({key: value for key, value in optional.items() if value is not None})
    return {**event, "note": dict(query.note)} if query.note else event


def _query_from(event: Mapping[str, Any], domain: Domain) -> Query:
    index = event.get("index")
    x = domain.validate(event["x"]) if index is None else domain.points[index]  # type: ignore[attr-defined]
    return Query(
        id=event["id"],
        x=x,
        index=index,
        params=domain.params(x),
        fidelity=event.get("fidelity"),
        time=event.get("time"),
        cost=event.get("cost"),
        note=types.MappingProxyType(dict(event.get("note", {}))),
    )
