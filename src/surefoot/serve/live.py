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
import random
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from surefoot.loop.journal import Journal, dumps, loads
from surefoot.loop.policy import Policy
from surefoot.serve.failures import Conflict, Unavailable
from surefoot.serve.rows import built, of_negated, option_errors, rebuilding, stored_options
from surefoot.serve.store import Mark, Moved, Store, chain, new_id, now
from surefoot.serve.wire import oriented

__all__ = [
    "Live",
    "LiveStudy",
    "TableJournal",
    "digest",
    "scratch",
]

T = TypeVar("T")
_TRIES = 40
_KEPT = 4


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
        self.lease: dict[str, Any] | None = None  # of the queries that are being asked for
        self.expiring: tuple[int, int] | None = None  # a query, and the beat at which its lease ran out
        self._leased: set[int] = set()
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

    def events_in(self, lines: Sequence[str]) -> list[dict[str, Any]]:
        """Return the events of these rows as they were told."""
        return [self._told(event) for event in loads(f"[{','.join(lines)}]")]  # one text is read sooner than many

    def seen(self, lines: Sequence[str], events: list[dict[str, Any]], stored: str) -> None:
        """Note events that were read."""
        self.best = self._best(events)
        self._leases(events)
        self.version, self.hash, self.stored = self.version + len(lines), chain(self.hash, lines), stored

    def _write(self, events: list[dict[str, Any]]) -> None:
        counts, self._counts = self._counts, {}
        events = [self._dated(event) for event in events]
        best, lines = self._best(events), [dumps(self._told(event)) for event in events]
        before, leases = set(self._leased), self._leases(events)
        answered = [] if self.answer is None else [self.answer(events)]
        hash, new = chain(self.hash, lines), best if best != self.best else None
        more = {"leases": leases} if leases else {}
        try:
            self.store.append(self.id, self.mark, lines, hash=hash, counts=counts, best=new, answered=answered, **more)
        except BaseException:
            self._leased = before
            raise
        self.best, self.version, self.hash, self.stored = best, self.version + len(lines), hash, hash

    def _count(self, event: Mapping[str, Any]) -> None:
        change = {"asked": {"pending": 1}, "cancelled": {"pending": -1}}.get(event["event"], {})
        if event["event"] == "told":
            waiting = event.get("id") in self.policy.trials.pending
            change = {"failed" if event["value"] is None else "told": 1, "pending": -1 if waiting else 0}
        for name, by in change.items():
            self._counts[name] = self._counts.get(name, 0) + by

    def _dated(self, event: dict[str, Any]) -> dict[str, Any]:
        """An event as it is on record: whoever reads it learns which queries have a lease, and which have expired."""
        if self.lease is not None and event["event"] == "asked":
            return {**event, "lease": self.lease["seconds"]}
        return {**event, "event": "expired"} if self.expiring is not None else event

    def _leases(self, events: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
        """What events change of the leases of their queries."""
        changes: dict[str, list[Any]] = {}
        for event in events:
            id = event.get("id")
            if event["event"] == "asked" and "lease" in event:
                self._leased.add(event["id"])
                changes.setdefault("given", []).append({"query": id, **(self.lease or {})})
            elif id in self._leased and event["event"] in ("told", "cancelled", "expired"):
                self._leased.discard(event["id"])
                kind = "expired" if event["event"] == "expired" and self.expiring is not None else "ended"
                changes.setdefault(kind, []).append(self.expiring if kind == "expired" else id)
        return changes

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
        events = self.writer.events_in(lines)
        try:
            self.policy.replay(events)
        except BaseException:
            self.forget()
            raise
        self.writer.seen(lines, events, self.row["hash"])

    def require_open(self, what: str) -> None:
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
        with option_errors(row["policy"]):
            row["seed"] = str(built(row).seed)
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
                        study.rebuild(self.store, rebuilding(build or built))
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
