"""Studies at work: policies in memory, rebuilt from the events in the database whenever these are ahead.

A policy writes through :class:`TableJournal`: its events are in the database before it remembers them itself. When
another server was faster, nothing was written; the policy reads what is new and the work is done again. When the
database no longer holds the events that the policy remembers (a backup was restored, a fail-over lost transactions),
the policy is made anew from those that are there.

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
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import surefoot
from surefoot.domain import Domain, Space, domain_from_dict
from surefoot.errors import SurefootError
from surefoot.loop.journal import Journal, dumps, loads
from surefoot.loop.policy import Policy
from surefoot.loop.record import Record
from surefoot.loop.state import unpack
from surefoot.serve.failures import Conflict, ServiceError, Unavailable
from surefoot.serve.store import Mark, Moved, Store, chain, new_id, now
from surefoot.serve.wire import oriented

__all__ = [
    "Live",
    "LiveStudy",
    "TableJournal",
    "digest",
    "domain_of",
    "of_negated",
    "of_the_program",
    "options_of",
    "policy_named",
    "rebuilding",
    "scratch",
    "stored_options",
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


def of_the_program(name: str) -> bool:
    """Whether a policy was registered by the program that the service runs in: no other process knows it.

    >>> of_the_program("GPUCB")
    False
    """
    kind = Record.registry.get(name)
    return kind is not None and not kind.__module__.startswith("surefoot.")


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
    stored: dict[str, Any] = loads(row["options"])
    for name in ("seed", "journal", "domain", "path"):
        if name in stored:  # before anything is made of them
            raise ValueError(f"{name!r} is not an option of a study's policy")
    options = {name: unpack(value) for name, value in stored.items()}
    if of_negated(row):
        options = {**policy_named(row["policy"])._negated(options), "direction": "minimize"}
    return options


def stored_options(options: Mapping[str, Any] | None, direction: str) -> str:
    """Return the options of a new study as its row keeps them: the direction is one, where it is not the usual.

    >>> stored_options({"threshold": 2.0}, "minimize")
    '{"threshold":2.0,"direction":"minimize"}'
    """
    if "direction" in (options or {}):
        raise ValueError("'direction' stands beside the options of a study, not among them")
    return dumps({**(options or {}), **({} if direction == "maximize" else {"direction": direction})})


def of_negated(row: Mapping[str, Any]) -> bool:
    """Whether the values among the options and the events of a study are those of −f, as before schema 2.

    >>> of_negated({"direction": "minimize", "options": "{}"})
    True
    """
    return row.get("direction") == "minimize" and "direction" not in loads(row["options"])


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
    """A journal whose lines are rows of the table of events."""

    def __init__(self, store: Store, row: Mapping[str, Any], policy: Policy) -> None:
        super().__init__(row["id"], direction=policy.direction)
        self.store, self.id, self.policy = store, row["id"], policy
        self._turns = of_negated(row)
        self.version, self.hash = 0, ""  # of the events that the policy knows
        self.stored = ""  # the hash in the database: of 0.1 there is none, of events that somebody repaired another one
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

    @property
    def mark(self) -> Mark:
        """Where the study must stand in the database for the policy to be abreast of it."""
        return Mark(self.version, self.stored)

    def seen(self, lines: Sequence[str], events: list[dict[str, Any]], stored: str) -> None:
        """Note events that were read."""
        self.best = self._best(events)
        self.version, self.hash, self.stored = self.version + len(lines), chain(self.hash, lines), stored

    def _write(self, events: list[dict[str, Any]]) -> None:
        counts, self._counts = self._counts, {}
        best, lines = self._best(events), [dumps(self._told(event)) for event in events]
        answer = None if self.answer is None else self.answer(events)
        hash, new = chain(self.hash, lines), best if best != self.best else None
        self.store.append(self.id, self.mark, lines, hash=hash, counts=counts, best=new, answer=answer)
        self.best, self.version, self.hash, self.stored = best, self.version + len(lines), hash, hash

    def _count(self, event: Mapping[str, Any]) -> None:
        change = {"asked": {"pending": 1}, "cancelled": {"pending": -1}}.get(event["event"], {})
        if event["event"] == "told":
            waiting = event.get("id") in {query.id for query in self.policy.pending}
            change = {"failed" if event["value"] is None else "told": 1, "pending": -1 if waiting else 0}
        for name, by in change.items():
            self._counts[name] = self._counts.get(name, 0) + by

    def _best(self, events: list[dict[str, Any]]) -> float | None:
        values = [e["value"] for e in events if e["event"] == "told" and e["value"] is not None]
        values = [oriented(value, str(self.direction)) for value in values]
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
        self._kept_at = Mark(-1, "")
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
        if self._kept_at != (at := Mark(self.writer.version, self.writer.hash)):
            self._kept, self._kept_at = {}, at
        if what not in self._kept:
            if len(self._kept) >= _KEPT:  # whoever looks at it in many ways does not fill the memory
                self._kept.clear()
            self._kept[what] = make()
        kept: T = self._kept[what]
        return kept

    def forget(self) -> None:
        """Drop the policy: it is rebuilt when it is needed again."""
        self.made, self._policy, self.journal = None, None, None

    def follow(self, store: Store) -> bool:
        """Let the policy read the events it has not seen; False where it must be made anew.

        The row says where the study stands. What the policy remembers must be how it came there: a study that fell
        back, or went another way since, has another hash.
        """
        journal = self.journal
        if journal is None:
            return False
        if journal.mark == (self.row["version"], self.row["hash"]):
            return True
        if self.row["version"] > journal.version:
            lines = store.lines(self.id, after=journal.version, until=self.row["version"])
            if chain(journal.hash, lines) == self.row["hash"]:
                self._read(lines)
                return True
        self.forget()
        return False

    def rebuild(self, store: Store, build: Callable[[Mapping[str, Any]], Any]) -> None:
        """Make the policy anew from the events in the database; ``row`` is whole."""
        lines = store.lines(self.id, until=self.row["version"])
        if len(lines) != self.row["version"]:
            raise Moved
        self.made = build(self.row)
        self._policy = self.made if isinstance(self.made, Policy) else self.made.policy
        self._policy.journal = self.journal = TableJournal(store, self.row, self._policy)
        self._kept_at = Mark(-1, "")
        self._read(lines)

    def _read(self, lines: Sequence[str]) -> None:
        events = [self.writer._told(loads(line)) for line in lines]
        try:
            self.policy._replay(events)
        except BaseException:
            self.forget()
            raise
        self.writer.seen(lines, events, self.row["hash"])

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

    def create(self, tenant: str, *, key: str | None = None, **fields: Any) -> str:
        """Check everything by building the policy once, then store the study and return its id."""
        if key is not None and (known := self.known(tenant, key, fields)) is not None:
            return known
        row = self.row(tenant, **fields)
        with understood(row["policy"]):
            row["seed"] = str(self.build(row).seed)
        return self.enter(row, key, fields)

    @staticmethod
    def row(
        tenant: str,
        *,
        name: str,
        policy: str,
        domain: Mapping[str, Any],
        options: Mapping[str, Any] | None = None,
        direction: str = "maximize",
        seed: int | None = None,
    ) -> dict[str, Any]:
        """Return the row of a new study, of which nothing was checked yet.

        >>> Live.row("physics", name="beam", policy="SobolSearch", domain={})["state"]
        'open'
        """
        return {
            "id": new_id(),
            "kind": "study",
            "tenant": tenant,
            "name": name,
            "policy": policy,
            "direction": direction,
            "domain": dumps(domain),
            "options": stored_options(options, direction),
            "seed": "" if seed is None else str(seed),
            "state": "open",
            "created": now(),
        }

    def known(self, tenant: str, key: str, fields: Mapping[str, Any]) -> str | None:
        """Return the id of the study that was made for the same request before."""
        found = self.store.answered(f"create:{tenant}", key, _creation(fields))
        return None if found is None else str(found["id"])

    def enter(self, row: Mapping[str, Any], key: str | None, fields: Mapping[str, Any]) -> str:
        """Store a study that was checked, and return its id."""
        more = []
        if key is not None:
            from surefoot.serve.tables import answers

            scope, answer = f"create:{row['tenant']}", dumps({"id": row["id"]})
            more = [(answers, {"scope": scope, "key": key, "request": _creation(fields), "answer": answer})]
        try:
            self.store.create(row, more=more)
        except Moved:  # the same request, sent again before the first was done
            if key is not None and (known := self.known(row["tenant"], key, fields)) is not None:
                return known
            raise
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
                study.row = row
                try:
                    if not study.follow(self.store):
                        study.row = self.store.study(tenant, id, kind)
                        study.rebuild(self.store, rebuilding(build or self.build))
                    return act(study)
                except Moved:
                    if attempt > 2:
                        time.sleep(random.uniform(0.0, 0.02 * min(attempt, 10)))
                    row = self.store.study(tenant, id, kind, whole=False)
        raise Unavailable("too many servers write to this study at once; try again in a moment")

    def find(self, id: str) -> LiveStudy | None:
        """Return a study that is in memory."""
        return self._studies.get(id)

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


def rebuilding(build: Callable[[Mapping[str, Any]], T]) -> Callable[[Mapping[str, Any]], T]:
    """Say of a study that this release cannot make again which release made it.

    >>> rebuilding(Live.build)({"policy": "OldUCB", "release": "0.1.0", "options": "{}"})
    Traceback (most recent call last):
    ...
    surefoot.serve.failures.Conflict: this study was begun with surefoot 0.1.0, and surefoot ... cannot ...
    """

    def again(row: Mapping[str, Any]) -> T:
        try:
            with understood(row["policy"]):
                return build(row)
        except ServiceError:
            raise
        except (SurefootError, ValueError, TypeError) as error:
            who = f"begun with surefoot {row['release']}, and surefoot {surefoot.__version__}"
            raise Conflict(f"this study was {who} cannot go on with it (policy {row['policy']}): {error}") from None

    return again


def _creation(fields: Mapping[str, Any]) -> str:
    """By what the request that makes a study is known."""
    whole = {"options": None, "direction": "maximize", "seed": None, **fields}
    return digest([whole[name] for name in ("name", "policy", "domain", "options", "direction", "seed")])


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
