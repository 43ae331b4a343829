"""Studies at work: policies in memory, rebuilt from the events in the database whenever these are ahead.

A policy writes through :class:`TableJournal`: its events are in the database before it remembers them itself. When
another server was faster, nothing was written; the policy reads what is new and the work is done again.

>>> from surefoot.serve.store import Store
>>> store = Store("sqlite://")
>>> store.migrate()
>>> live = Live(store, cached=10)
>>> id = live.create("physics", name="beam", policy="SobolSearch", domain={"domain": "Box", "bounds": [[0, 1]]})
>>> live.use("physics", id, lambda study: study.policy.ask().id)
0
>>> [event["event"] for event in store.events(id)]
['asked']
"""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import random
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

import surefoot
from surefoot.domain import Domain, Space, domain_from_dict
from surefoot.errors import SurefootError
from surefoot.loop.journal import Journal, dumps, loads
from surefoot.loop.policy import Policy
from surefoot.loop.record import Record
from surefoot.loop.state import unpack
from surefoot.serve.failures import Conflict, Unavailable
from surefoot.serve.store import Moved, Store, new_id, now

__all__ = [
    "Live",
    "LiveStudy",
    "TableJournal",
    "digest",
    "domain_of",
    "options_of",
    "policy_named",
    "scratch",
    "understood",
]

T = TypeVar("T")
_TRIES = 40
_KEPT = 4


def policy_named(name: str) -> type[Policy]:
    """Return a shipped or registered policy by its name; nothing is ever imported by name.

    >>> policy_named("GPUCB").__name__
    'GPUCB'
    >>> policy_named("os:system")
    Traceback (most recent call last):
    ...
    ValueError: there is no policy 'os:system'; there are ...
    """
    kind: Any = Record.registry.get(name) or (getattr(surefoot, name) if name in surefoot.__all__ else None)
    if inspect.isclass(kind) and issubclass(kind, Policy) and not inspect.isabstract(kind):
        return kind
    shipped = [getattr(surefoot, known) for known in surefoot.__all__]
    known = [k.__name__ for k in shipped if inspect.isclass(k) and issubclass(k, Policy) and not inspect.isabstract(k)]
    raise ValueError(f"there is no policy {name[:100]!r}; there are {', '.join(known)}")


def domain_of(data: Mapping[str, Any]) -> Domain:
    """Return the domain of a description: ``to_dict()`` of any domain, or the parameters of a space alone.

    >>> domain_of({"parameters": {"depth": {"type": "int", "low": 1, "high": 9}}})
    Space(depth=Int(1, 9))
    """
    return domain_from_dict(data) if "domain" in data else Space.from_dict(data)


def options_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a study's policy.

    >>> options_of({"options": '{"seed": 3}'})
    Traceback (most recent call last):
    ...
    ValueError: 'seed' is not an option of a study's policy
    """
    options: dict[str, Any] = unpack(loads(row["options"]))
    for name in ("seed", "journal", "domain", "path"):
        if name in options:
            raise ValueError(f"{name!r} is not an option of a study's policy")
    return options


@contextlib.contextmanager
def understood(policy: str) -> Iterator[None]:
    """Whatever a policy says about options it cannot be made of is the sender's to mend.

    >>> with understood("GPUCB"):
    ...     {}["kernel"]
    Traceback (most recent call last):
    ...
    ValueError: GPUCB cannot be made of this (KeyError: 'kernel')
    """
    try:
        yield
    except (SurefootError, ValueError, TypeError):
        raise
    except (LookupError, AttributeError, ArithmeticError, AssertionError, RecursionError) as error:
        raise ValueError(f"{policy} cannot be made of this ({type(error).__name__}: {error})") from None


def digest(request: Any) -> str:
    """Return a hash of a request, by which one that is repeated is known.

    >>> digest({"n": 1}) == digest({"n": 2})
    False
    """
    return hashlib.sha256(dumps(request).encode()).hexdigest()


class TableJournal(Journal):
    """A journal whose lines are rows of the table of events.

    >>> issubclass(TableJournal, Journal)
    True
    """

    def __init__(self, store: Store, id: str, policy: Policy, direction: str, version: int = 0) -> None:
        super().__init__(id, direction=direction)
        self.store, self.id, self.policy, self.version = store, id, policy, version
        self.best: float | None = None
        self.answer: Callable[[list[dict[str, Any]]], Mapping[str, str]] | None = None
        self._together: list[dict[str, Any]] | None = None
        self._counts: dict[str, int] = {}

    def append(self, *events: dict[str, Any]) -> None:
        """Write events in one transaction, or keep them for the end of :meth:`together`."""
        for event in events:
            self._count(event)
        if self._together is not None:
            self._together.extend(events)
            return
        self._write(list(events))

    @contextlib.contextmanager
    def together(self) -> Iterator[None]:
        """All events of the block are written in one transaction at its end, or none.

        The policy is ahead of the database within the block: whoever gets an exception out of it builds it anew.
        """
        self._together = []
        try:
            yield
            events, self._together = self._together, None
            if events or self.answer is not None:
                self._write(events)
        finally:
            self._together = None

    def _write(self, events: list[dict[str, Any]]) -> None:
        counts, self._counts = self._counts, {}
        best = self._best(events)
        answer = None if self.answer is None else self.answer(events)
        self.store.append(
            self.id, self.version, events, counts=counts, best=best if best != self.best else None, answer=answer
        )
        self.best, self.version = best, self.version + len(events)

    def _count(self, event: Mapping[str, Any]) -> None:
        change = {"asked": {"pending": 1}, "cancelled": {"pending": -1}}.get(event["event"], {})
        if event["event"] == "told":
            waiting = event.get("id") in {query.id for query in self.policy.pending}
            change = {"failed" if event["value"] is None else "told": 1, "pending": -1 if waiting else 0}
        for name, by in change.items():
            self._counts[name] = self._counts.get(name, 0) + by

    def _best(self, events: list[dict[str, Any]]) -> float | None:
        values = [e["value"] for e in events if e["event"] == "told" and e["value"] is not None]
        return max([*values, *([] if self.best is None else [self.best])], default=None)

    def close(self) -> None:
        """There is nothing to close."""


class LiveStudy:
    """One study in memory: its row as it was last read, and its policy, once something needs it.

    >>> LiveStudy("0" * 32).row
    {}
    """

    def __init__(self, id: str) -> None:
        self.id = id
        self.lock = threading.Lock()
        self.row: dict[str, Any] = {}
        self._kept: dict[Any, Any] = {}
        self._kept_at = -1
        self.made: Any = None  # the policy, or what has one
        self._policy: Policy | None = None
        self.journal: TableJournal | None = None

    @property
    def direction(self) -> str:
        """Which way is better."""
        return str(self.row["direction"])

    @property
    def policy(self) -> Policy:
        """The policy, abreast of the events."""
        if self._policy is None:
            raise RuntimeError("a study is used within Live.use()")
        return self._policy

    @property
    def writer(self) -> TableJournal:
        """Where the policy's events go."""
        if self.journal is None:
            raise RuntimeError("a study is used within Live.use()")
        return self.journal

    def once(self, what: Any, make: Callable[[], T]) -> T:
        """Return what was worked out of the policy before, if there was no event since; else work it out."""
        if self._kept_at != self.writer.version:
            self._kept, self._kept_at = {}, self.writer.version
        if what not in self._kept:
            if len(self._kept) >= _KEPT:  # whoever looks at it in many ways does not fill the memory
                self._kept.clear()
            self._kept[what] = make()
        kept: T = self._kept[what]
        return kept

    def forget(self) -> None:
        """Drop the policy: it is rebuilt when it is needed again."""
        self.made, self._policy, self.journal = None, None, None

    def catch_up(self, store: Store, build: Callable[[Mapping[str, Any]], Any]) -> None:
        """Rebuild the policy, or let it read the events it has not seen."""
        if self._policy is None or self.journal is None:
            self.made = build(self.row)
            policy: Policy = self.made if isinstance(self.made, Policy) else self.made.policy
            self.journal = TableJournal(store, self.id, policy, self.direction)
            policy.journal = self.journal
            self._policy = policy
        if self.journal.version != self.row["version"]:
            new = store.events(self.id, after=self.journal.version)
            try:
                self._policy._replay(new)
            except BaseException:
                self.forget()
                raise
            self.journal.best = self.journal._best(new)
            self.journal.version += len(new)

    def close_to(self, what: str) -> None:
        """Refuse what a closed study does not do."""
        if self.row["state"] != "open":
            raise Conflict(f"this study is {self.row['state']}; {what} is not possible")


class Live:
    """All studies of a server: at most ``cached`` policies in memory, one user of a study at a time.

    >>> from surefoot.serve.store import Store
    >>> Live(Store("sqlite://"), cached=2).size
    0
    """

    def __init__(self, store: Store, *, cached: int) -> None:
        self.store = store
        self.cached = cached
        self._studies: OrderedDict[str, LiveStudy] = OrderedDict()
        self._guard = threading.Lock()

    @property
    def size(self) -> int:
        """Policies in memory."""
        return len(self._studies)

    def create(
        self,
        tenant: str,
        *,
        name: str,
        policy: str,
        domain: Mapping[str, Any],
        options: Mapping[str, Any] | None = None,
        direction: str = "maximize",
        seed: int | None = None,
        key: str | None = None,
    ) -> str:
        """Check everything by building the policy once, then store the study and return its id."""
        request = digest([name, policy, domain, options, direction, seed])
        if key is not None and (known := self.store.answered(f"create:{tenant}", key, request)) is not None:
            return str(known["id"])
        row = {
            "id": new_id(),
            "kind": "study",
            "tenant": tenant,
            "name": name,
            "policy": policy,
            "direction": direction,
            "domain": dumps(domain),
            "options": dumps(options or {}),
            "seed": "" if seed is None else str(seed),
            "state": "open",
            "created": now(),
        }
        with understood(policy):
            row["seed"] = str(self.build(row).seed)
        more = []
        if key is not None:
            from surefoot.serve.tables import answers

            answer = dumps({"id": row["id"]})
            more = [(answers, {"scope": f"create:{tenant}", "key": key, "request": request, "answer": answer})]
        try:
            self.store.create(row, more=more)
        except Moved:  # the same request, sent again before the first was done
            return self.create(
                tenant,
                name=name,
                policy=policy,
                domain=domain,
                options=options,
                direction=direction,
                seed=seed,
                key=key,
            )
        return str(row["id"])

    @staticmethod
    def build(row: Mapping[str, Any]) -> Policy:
        """Make the policy of a study, before its first event."""
        kind, options = policy_named(row["policy"]), options_of(row)
        seed = int(row["seed"]) if row["seed"] else None
        return kind(domain_of(loads(row["domain"])), **options, seed=seed)

    def use(
        self,
        tenant: str,
        id: str,
        act: Callable[[LiveStudy], T],
        *,
        kind: str = "study",
        build: Callable[[Mapping[str, Any]], Any] | None = None,
    ) -> T:
        """Do something with a study whose policy knows every event; again, if somebody else wrote meanwhile."""
        row = self.store.study(tenant, id, kind, whole=False)  # before anything is kept of an id that may be made up
        study = self._get(id)
        with study.lock:
            for attempt in range(_TRIES):
                study.row = row if study.journal is not None else self.store.study(tenant, id, kind)
                study.catch_up(self.store, build or self.build)
                try:
                    return act(study)
                except Moved:
                    if attempt > 2:
                        time.sleep(random.uniform(0.0, 0.02 * min(attempt, 10)))
                    row = self.store.study(tenant, id, kind, whole=False)
        raise Unavailable("too many servers write to this study at once; try again in a moment")

    def drop(self, id: str) -> None:
        """Forget a study, as one that was deleted."""
        with self._guard:
            self._studies.pop(id, None)

    def _get(self, id: str) -> LiveStudy:
        with self._guard:
            study = self._studies.setdefault(id, LiveStudy(id))
            self._studies.move_to_end(id)
            idle = [other for other, kept in self._studies.items() if other != id and not kept.lock.locked()]
            for other in idle[: max(len(self._studies) - self.cached, 0)]:
                del self._studies[other]
            return study


def scratch(policy: str = "SobolSearch", **options: Any) -> LiveStudy:
    """Return a study on the unit interval, in memory, for trying things out.

    >>> scratch().policy.ask().id
    0
    """
    store = Store("sqlite://")
    store.migrate()
    live = Live(store, cached=1)
    box = {"domain": "Box", "bounds": [[0.0, 1.0]]}
    id = live.create("scratch", name="scratch", policy=policy, domain=box, options=options, seed=0)
    return live.use("scratch", id, lambda study: study)
