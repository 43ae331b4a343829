"""The database of the service: SQLite in a file, or PostgreSQL.

A write is one transaction, durable when the call returns. On SQLite there is one writer at a time (write-ahead log,
readers go on meanwhile); on PostgreSQL several servers may write, and a study's :class:`Mark` says who was first, and
whether the database still holds what a server remembers. Nobody waits for a lock longer than some seconds.

>>> store = Store("sqlite://")
>>> store.migrate()
>>> store.studies("somebody")
[]
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import secrets
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy import Connection, Engine, event
from sqlalchemy.engine import make_url
from sqlalchemy.exc import (
    ArgumentError,
    DBAPIError,
    IntegrityError,
    InterfaceError,
    NoSuchModuleError,
    OperationalError,
)
from sqlalchemy.exc import TimeoutError as NoConnection
from sqlalchemy.pool import StaticPool

import surefoot
from surefoot.errors import MissingExtra
from surefoot.loop.journal import loads
from surefoot.serve.failures import Conflict, NotFound, Unavailable
from surefoot.serve.leased import write_leases
from surefoot.serve.tables import answers, events, studies, tokens

__all__ = ["Mark", "Moved", "Store", "answer_to", "chain", "new_id", "now"]


_BRIEF = [column for column in studies.c if column.name not in ("domain", "options")]
_GIVEN = sa.bindparam  # statements of every request are put together once
_MINE = (studies.c.id == _GIVEN("id")) & (studies.c.tenant == _GIVEN("of")) & (studies.c.kind == _GIVEN("sort"))
_STUDY = {True: sa.select(*studies.c).where(_MINE), False: sa.select(*_BRIEF).where(_MINE)}
_LINES = sa.select(events.c.event).where(events.c.study == _GIVEN("id"), events.c.sequence >= _GIVEN("after"))
_LINES = _LINES.where(events.c.sequence < _GIVEN("until")).order_by(events.c.sequence)
_ANSWER = sa.select(answers.c.key, answers.c.request, answers.c.answer)
_ANSWER = _ANSWER.where(answers.c.scope == _GIVEN("of"), answers.c.key.in_(_GIVEN("names", expanding=True)))
_TOKEN = sa.select(tokens).where(tokens.c.id.in_(_GIVEN("names", expanding=True)))
_APPEND = (
    sa.update(studies)
    .where(studies.c.id == _GIVEN("of"), studies.c.state == "open")
    .where(studies.c.version == _GIVEN("was"), studies.c.hash == _GIVEN("known"))
    .values(version=_GIVEN("next"), hash=_GIVEN("new"), updated=_GIVEN("moment"))
    .values(best=sa.func.coalesce(_GIVEN("better", type_=studies.c.best.type), studies.c.best))
    .values({name: studies.c[name] + _GIVEN(f"more_{name}") for name in ("told", "failed", "pending", "bytes")})
)
_EVENTS, _ANSWERS = sa.insert(events), sa.insert(answers)
_BUSY = 5.0  # seconds that a write waits for others: less than any request may take

log = logging.getLogger("surefoot.serve")


class Moved(Exception):
    """Somebody else was faster: appended to the study since it was read, or used the key of the same request.

    >>> raise Moved
    Traceback (most recent call last):
    ...
    surefoot.serve.store.Moved
    """


class Mark(NamedTuple):
    """Where a study stands: the number of its events, and the hash stored with them.

    >>> Mark(0, "").version
    0
    """

    version: int
    hash: str


def chain(hash: str, lines: Sequence[str]) -> str:
    """Return the hash over all events, given that over those before these: each covers the ones before it.

    >>> chain(chain("", ["a"]), ["b"]) == chain("", ["a", "b"]) != chain("", ["b", "a"])
    True
    """
    for line in lines:
        hash = hashlib.sha256(f"{hash}\n{line}".encode()).hexdigest()
    return hash


def answer_to(request: str, known: Sequence[str] | None) -> Any:
    """Return what was answered to a request, given what is kept under its key; None if that is nothing.

    >>> answer_to("1f", ("1f", '{"ids":[0]}'))
    {'ids': [0]}
    """
    if known is None:
        return None
    if known[0] != request:
        raise Conflict("this key was used for another request")
    return loads(known[1])


def now() -> str:
    """Return this moment, in UTC.

    >>> now().endswith("+00:00")
    True
    """
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def new_id() -> str:
    """Return a new id: 12 digits of time, so that ids are in order, and 80 random bits.

    >>> first, second = new_id(), new_id()
    >>> len(first), first[:8] <= second[:8]
    (32, True)
    """
    return f"{time.time_ns() // 1_000_000:012x}{secrets.token_hex(10)}"


class Store:
    """The database: what is read and written, and nothing about policies.

    Parameters
    ----------
    url : str
        As SQLAlchemy writes it: ``sqlite:///surefoot.db``, ``postgresql+psycopg://user@host/name``; ``sqlite://``
        lives in memory, for trying things out.
    pool : int
        Connections kept open.

    >>> Store("nonsense")
    Traceback (most recent call last):
    ...
    ValueError: 'nonsense' is not the URL of a database, such as sqlite:///surefoot.db
    """

    def __init__(self, url: str, *, pool: int = 16) -> None:
        self.engine = _engine(url, pool)
        self.kind = self.engine.dialect.name
        self.local = self.kind == "sqlite"
        self._open = threading.local()  # the connection that each thread reads from, if any
        self._writing = threading.RLock() if self.local else None
        # A database in memory is one connection, which one thread uses at a time.
        self._reading = self._writing if isinstance(self.engine.pool, StaticPool) else None

    def migrate(self) -> None:
        """Make or update the tables; where the database cannot be used, the error says why."""
        from surefoot.serve.migrate import migrate

        try:
            migrate(self.engine)
        except NoConnection:
            raise Unavailable("the database is busy; try again in a moment") from None
        except DBAPIError as error:
            raise Unavailable(f"the database {self.engine.url!r} cannot be used: {error.orig}") from None

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()

    @contextlib.contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection to read from: the same one within a block that reads several times."""
        if (known := getattr(self._open, "connection", None)) is not None:
            yield known
            return
        with self._trouble(), _alone(self._reading), self.engine.connect() as connection:
            if self.local:
                connection = connection.execution_options(reading=True)
            self._open.connection = connection
            try:
                yield connection
            finally:
                self._open.connection = None

    @contextlib.contextmanager
    def writing(self) -> Iterator[Connection]:
        """One transaction, durable at the end of the block; undone by an exception."""
        # Threads of this process wait here in turn: SQLite's own waiting is by sleeping and trying again.
        with self._trouble(), _alone(self._writing), self.engine.begin() as connection:
            yield connection

    @contextlib.contextmanager
    def _trouble(self) -> Iterator[None]:
        """Tell a database that is away, or busy, from a mistake of ours."""
        try:
            yield
        except NoConnection:
            raise Unavailable("the database is busy; try again in a moment") from None
        except (OperationalError, InterfaceError) as error:
            # The reason is the operator's: it may hold addresses, and is nobody else's business.
            log.warning("database", extra={"fields": {"reason": str(error.orig)}})
            raise Unavailable(f"the database does not answer ({type(error.orig).__name__})") from None
        except DBAPIError as error:
            if error.connection_invalidated:
                raise Unavailable("the connection to the database was lost") from None
            raise

    # -- studies -----------------------------------------------------------------------------------------------------

    def create(self, row: Mapping[str, Any], *, more: Sequence[tuple[sa.Table, Mapping[str, Any]]] = ()) -> None:
        """Insert a new study, and rows of other tables with it; :class:`Moved` where one of them is there already."""
        fresh = {
            "version": 0,
            "hash": "",
            "release": surefoot.__version__,
            "bytes": len(row["domain"]) + len(row["options"]),
            "told": 0,
            "failed": 0,
            "pending": 0,
            "stopped": 0,
            "best": None,
            "updated": row["created"],
        }
        try:
            with self.writing() as connection:
                connection.execute(sa.insert(studies).values(**{**fresh, **row}))
                for table, values in more:
                    connection.execute(sa.insert(table).values(**values))
        except IntegrityError:  # ids are random: it is the key of a request that was sent twice at once
            raise Moved from None

    def study(self, tenant: str, id: str, kind: str = "study", *, whole: bool = True) -> dict[str, Any]:
        """Return the row of a study, or raise :class:`NotFound`, for a stranger's study as for none.

        Its domain and options, which may be long lists of points, are left out of a row that is not ``whole``.
        """
        row = None
        if id.isalnum() and id.isascii():
            with self.reading() as connection:
                row = connection.execute(_STUDY[whole], {"id": id, "of": tenant, "sort": kind}).mappings().first()
        if row is None:
            raise NotFound("there is no such study" if kind == "study" else "there is no such outsourced run")
        return dict(row)

    def studies(
        self, tenant: str, *, kind: str = "study", limit: int = 100, after: str | None = None
    ) -> list[dict[str, Any]]:
        """Return studies, the newest first, those made before the study ``after``."""
        what = sa.select(*_BRIEF).where(studies.c.tenant == tenant, studies.c.kind == kind)
        if after is not None:
            what = what.where(studies.c.id < after)
        with self.reading() as connection:
            found = connection.execute(what.order_by(studies.c.id.desc()).limit(limit)).mappings().all()
        return [dict(row) for row in found]

    def taken(self, tenant: str) -> tuple[int, int]:
        """Return how many studies a tenant has, and how many bytes they take."""
        what = sa.select(sa.func.count(), sa.func.coalesce(sa.func.sum(studies.c.bytes), 0))
        with self.reading() as connection:
            count, size = connection.execute(what.where(studies.c.tenant == tenant)).one()
        return int(count), int(size)

    def update(self, id: str, **values: Any) -> None:
        """Change columns of a study that no event decides."""
        with self.writing() as connection:
            connection.execute(sa.update(studies).where(studies.c.id == id).values(**values))

    def delete(self, tenant: str, id: str, kind: str = "study") -> None:
        """Remove a study and all that belongs to it."""
        self.study(tenant, id, kind)
        with self.writing() as connection:
            connection.execute(sa.delete(answers).where(answers.c.scope == id))
            begun = answers.c.scope.in_([f"create:{tenant}", f"outsource:{tenant}"])  # its key may begin another
            connection.execute(sa.delete(answers).where(begun, answers.c.answer == f'{{"id":"{id}"}}'))
            connection.execute(sa.delete(studies).where(studies.c.id == id))  # the rest follows it

    # -- events ------------------------------------------------------------------------------------------------------

    def lines(self, id: str, *, after: int = 0, until: int | None = None) -> list[str]:
        """Return the events of a study from number ``after`` on, before number ``until``, as they are stored."""
        given = {"id": id, "after": after, "until": 2**31 - 1 if until is None else min(until, 2**31 - 1)}
        with self.reading() as connection:
            return list(connection.execute(_LINES, given).scalars().all())

    def events(self, id: str, *, after: int = 0, limit: int | None = None) -> list[dict[str, Any]]:
        """Return the events of a study from number ``after`` on."""
        return [loads(line) for line in self.lines(id, after=after, until=None if limit is None else after + limit)]

    def append(
        self,
        id: str,
        mark: Mark,
        lines: Sequence[str],
        *,
        hash: str,
        counts: Mapping[str, int],
        best: float | None = None,
        answered: Sequence[Mapping[str, str]] = (),
        columns: Mapping[str, Any] | None = None,
        leases: Mapping[str, Sequence[Any]] | None = None,
    ) -> None:
        """Append events to a study that stands at ``mark``; raises :class:`Moved`, and writes nothing, if it does not.

        ``hash`` is that over all events, the new ones included; ``counts`` are added to the columns of the study.
        What was ``answered`` to requests with a key is remembered in the same transaction, and ``columns`` of the study
        that no event decides are changed; so are ``leases`` (:mod:`surefoot.serve.leased`).
        """
        size = sum(map(len, lines)) + sum(len(one["answer"]) for one in answered)
        changes = {"of": id, "was": mark.version, "known": mark.hash, "next": mark.version + len(lines), "new": hash}
        changes |= {f"more_{name}": counts.get(name, 0) for name in ("told", "failed", "pending")}
        changes |= {"more_bytes": size, "better": best, "moment": now()}
        rows = [{"study": id, "sequence": mark.version + i, "event": line} for i, line in enumerate(lines)]
        try:
            with self.writing() as connection:
                if connection.execute(_APPEND, changes).rowcount != 1:
                    raise Moved
                if rows:
                    connection.execute(_EVENTS, rows)
                if answered:
                    connection.execute(_ANSWERS, [dict(one) for one in answered])
                if leases:
                    write_leases(connection, id, now(), leases)
                if columns:
                    connection.execute(sa.update(studies).where(studies.c.id == id).values(**columns))
        except IntegrityError:  # what is to be written is there already: look again
            raise Moved from None

    def answered(self, scope: str, key: str, request: str) -> Any:
        """Return what was answered to the request with this key, None if it is new."""
        return answer_to(request, self.answers(scope, [key]).get(key))

    def answers(self, scope: str, keys: Sequence[str]) -> dict[str, tuple[str, str]]:
        """Return the requests that came with these keys and what was answered, of those that came before."""
        if not keys:
            return {}
        with self.reading() as connection:
            found = connection.execute(_ANSWER, {"of": scope, "names": list(keys)}).all()
        return {one.key: (one.request, one.answer) for one in found}

    # -- tokens ------------------------------------------------------------------------------------------------------

    def add_token(self, row: Mapping[str, Any]) -> None:
        """Insert a token."""
        with self.writing() as connection:
            connection.execute(sa.insert(tokens).values(**row))

    def token(self, id: str) -> dict[str, Any] | None:
        """Return the row of a token, whoever's it is."""
        return self.tokens_named([id]).get(id)

    def tokens_named(self, ids: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Return the rows of tokens by their ids; those that do not exist have none."""
        with self.reading() as connection:
            return {row["id"]: dict(row) for row in connection.execute(_TOKEN, {"names": ids}).mappings()}

    def tokens(self, tenant: str | None = None) -> list[dict[str, Any]]:
        """Return the tokens of one tenant, or of all, without their digests."""
        columns = [column for column in tokens.c if column.name not in ("digest", "previous")]
        what = sa.select(*columns).order_by(tokens.c.tenant, tokens.c.id)
        with self.reading() as connection:
            found = connection.execute(what if tenant is None else what.where(tokens.c.tenant == tenant))
            return [dict(row) for row in found.mappings().all()]

    def change_token(self, id: str, **values: Any) -> None:
        """Change columns of a token."""
        with self.writing() as connection:
            connection.execute(sa.update(tokens).where(tokens.c.id == id).values(**values))

    def revoke(self, id: str, tenant: str | None = None) -> None:
        """Make a token worthless; it stays in the list."""
        what = tokens.c.id == id if tenant is None else (tokens.c.id == id) & (tokens.c.tenant == tenant)
        moment = sa.func.coalesce(tokens.c.revoked, now())
        with self.writing() as connection:
            if connection.execute(sa.update(tokens).where(what).values(revoked=moment)).rowcount != 1:
                raise NotFound("there is no such token")

    def ping(self) -> None:
        """Ask the database for a sign of life."""
        with self.reading() as connection:
            connection.execute(sa.text("SELECT 1"))


@contextlib.contextmanager
def _alone(lock: Any) -> Iterator[None]:
    """Hold a lock that some databases do not need; give up after a while."""
    if lock is None:
        yield
        return
    if not lock.acquire(timeout=_BUSY):
        raise Unavailable("the database is busy; try again in a moment")
    try:
        yield
    finally:
        lock.release()


def _engine(url: str, pool: int) -> Engine:
    """An engine with the habits this service needs."""
    try:
        address = make_url(url)
    except ArgumentError:
        raise ValueError(f"{url!r} is not the URL of a database, such as sqlite:///surefoot.db") from None
    if address.get_backend_name() not in ("sqlite", "postgresql"):
        raise ValueError(f"the service works on SQLite and PostgreSQL, not on {address.get_backend_name()}")
    if address.get_backend_name() == "postgresql" and address.drivername == "postgresql":
        address = address.set(drivername="postgresql+psycopg")
    try:
        if address.get_backend_name() == "postgresql":
            waits: dict[str, Any] = {"connect_timeout": 10}
            if "options" not in address.query:
                waits["options"] = f"-c lock_timeout={1000 * _BUSY:.0f}"
            return sa.create_engine(
                address, pool_size=pool, max_overflow=pool, pool_timeout=_BUSY, pool_pre_ping=True, connect_args=waits
            )
        shared: dict[str, Any] = {"connect_args": {"timeout": _BUSY, "check_same_thread": False}}
        if address.database in (None, "", ":memory:"):
            shared["poolclass"] = StaticPool
        else:
            shared.update(pool_size=pool, max_overflow=2 * pool, pool_timeout=_BUSY)
        engine = sa.create_engine(address, **shared)
    except (ModuleNotFoundError, NoSuchModuleError) as error:
        raise MissingExtra(
            f"{address.drivername} is not installed: pip install 'surefoot[postgres]' ({error})"
        ) from None
    event.listen(engine, "connect", _prepare)
    event.listen(engine, "begin", _begin)
    return engine


def _prepare(connection: Any, _record: Any) -> None:
    """A new SQLite connection: we begin transactions ourselves; a commit is on disk when it returns."""
    connection.isolation_level = None
    cursor = connection.cursor()
    for line in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON", f"busy_timeout = {1000 * _BUSY:.0f}"):
        cursor.execute(f"PRAGMA {line}")
    cursor.close()


def _begin(connection: Connection) -> None:
    """Take SQLite's write lock at once: a reader that becomes a writer in mid-transaction could not wait for it."""
    reading = connection.get_execution_options().get("reading")
    connection.exec_driver_sql("BEGIN DEFERRED" if reading else "BEGIN IMMEDIATE")
