"""The database of the service: SQLite in a file, or PostgreSQL.

A write is one transaction, durable when the call returns. On SQLite there is one writer at a time (write-ahead log,
readers go on meanwhile); on PostgreSQL several servers may write, and a study's version says who was first.

>>> store = Store("sqlite://")
>>> store.migrate()
>>> store.studies("somebody")
[]
"""

from __future__ import annotations

import contextlib
import logging
import secrets
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

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

from surefoot.errors import MissingExtra
from surefoot.loop.journal import dumps, loads
from surefoot.serve.failures import Conflict, NotFound, Unavailable
from surefoot.serve.tables import answers, events, studies, tokens

__all__ = ["Moved", "Store", "new_id", "now"]


_BRIEF = [column for column in studies.c if column.name != "domain"]


log = logging.getLogger("surefoot.serve")


class Moved(Exception):
    """Somebody else was faster: appended to the study since it was read, or used the key of the same request.

    >>> raise Moved
    Traceback (most recent call last):
    ...
    surefoot.serve.store.Moved
    """


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
        self._writing = threading.RLock() if self.local else contextlib.nullcontext()
        # A database in memory is one connection, which one thread uses at a time.
        self._reading = self._writing if isinstance(self.engine.pool, StaticPool) else contextlib.nullcontext()

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
        """A connection to read from."""
        with self._trouble(), self._reading, self.engine.connect() as connection:
            if self.local:
                connection = connection.execution_options(reading=True)
            yield connection

    @contextlib.contextmanager
    def writing(self) -> Iterator[Connection]:
        """One transaction, durable at the end of the block; undone by an exception."""
        # Threads of this process wait here in turn: SQLite's own waiting is by sleeping and trying again.
        with self._trouble(), self._writing, self.engine.begin() as connection:
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

        Its domain, which may be a long list of points, is left out of a row that is not ``whole``.
        """
        what = (studies.c.id == id) & (studies.c.tenant == tenant) & (studies.c.kind == kind)
        row = None
        if id.isalnum() and id.isascii():
            with self.reading() as connection:
                columns = studies.c if whole else _BRIEF
                row = connection.execute(sa.select(*columns).where(what)).mappings().first()
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

    def update(self, id: str, **values: Any) -> None:
        """Change columns of a study that no event decides."""
        with self.writing() as connection:
            connection.execute(sa.update(studies).where(studies.c.id == id).values(**values))

    def delete(self, tenant: str, id: str, kind: str = "study") -> None:
        """Remove a study and all that belongs to it."""
        self.study(tenant, id, kind)
        with self.writing() as connection:
            connection.execute(sa.delete(answers).where(answers.c.scope == id))
            connection.execute(sa.delete(studies).where(studies.c.id == id))  # the rest follows it

    # -- events ------------------------------------------------------------------------------------------------------

    def events(self, id: str, *, after: int = 0, limit: int | None = None) -> list[dict[str, Any]]:
        """Return the events of a study from number ``after`` on."""
        what = sa.select(events.c.event).where(events.c.study == id, events.c.sequence >= after)
        with self.reading() as connection:
            lines = connection.execute(what.order_by(events.c.sequence).limit(limit)).scalars().all()
        return [loads(line) for line in lines]

    def append(
        self,
        id: str,
        version: int,
        new: Sequence[Mapping[str, Any]],
        *,
        counts: Mapping[str, int],
        best: float | None = None,
        answer: Mapping[str, str] | None = None,
    ) -> None:
        """Append events after number ``version`` − 1; raises :class:`Moved`, and writes nothing, if there are more.

        ``counts`` are added to the columns of the study; ``answer`` is remembered in the same transaction.
        """
        changes: dict[str, Any] = {name: studies.c[name] + change for name, change in counts.items() if change}
        if best is not None:
            changes["best"] = best
        mine = (studies.c.id == id) & (studies.c.version == version) & (studies.c.state == "open")
        with self.writing() as connection:
            done = connection.execute(
                sa.update(studies).where(mine).values(version=version + len(new), updated=now(), **changes)
            )
            if done.rowcount != 1:
                raise Moved
            rows = [{"study": id, "sequence": version + i, "event": dumps(line)} for i, line in enumerate(new)]
            if rows:
                connection.execute(sa.insert(events), rows)
            if answer is not None:
                connection.execute(sa.insert(answers).values(**answer))

    def answered(self, scope: str, key: str, request: str) -> Any:
        """Return what was answered to the request with this key, None if it is new."""
        what = sa.select(answers.c.request, answers.c.answer).where(answers.c.scope == scope, answers.c.key == key)
        with self.reading() as connection:
            found = connection.execute(what).first()
        if found is None:
            return None
        if found.request != request:
            raise Conflict("this key was used for another request")
        return loads(found.answer)

    # -- tokens ------------------------------------------------------------------------------------------------------

    def add_token(self, row: Mapping[str, Any]) -> None:
        """Insert a token."""
        with self.writing() as connection:
            connection.execute(sa.insert(tokens).values(**row))

    def token(self, id: str) -> dict[str, Any] | None:
        """Return the row of a token, whoever's it is."""
        with self.reading() as connection:
            row = connection.execute(sa.select(tokens).where(tokens.c.id == id)).mappings().first()
        return None if row is None else dict(row)

    def tokens(self, tenant: str | None = None) -> list[dict[str, Any]]:
        """Return the tokens of one tenant, or of all, without their digests."""
        columns = [column for column in tokens.c if column.name != "digest"]
        what = sa.select(*columns).order_by(tokens.c.tenant, tokens.c.id)
        with self.reading() as connection:
            found = connection.execute(what if tenant is None else what.where(tokens.c.tenant == tenant))
            return [dict(row) for row in found.mappings().all()]

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
            waits = {"connect_timeout": 10}
            return sa.create_engine(
                address, pool_size=pool, max_overflow=pool, pool_timeout=30, pool_pre_ping=True, connect_args=waits
            )
        shared: dict[str, Any] = {"connect_args": {"timeout": 30, "check_same_thread": False}}
        if address.database in (None, "", ":memory:"):
            shared["poolclass"] = StaticPool
        else:
            shared.update(pool_size=pool, max_overflow=2 * pool)
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
    for line in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON", "busy_timeout = 30000"):
        cursor.execute(f"PRAGMA {line}")
    cursor.close()


def _begin(connection: Connection) -> None:
    """Take SQLite's write lock at once: a reader that becomes a writer in mid-transaction could not wait for it."""
    reading = connection.get_execution_options().get("reading")
    connection.exec_driver_sql("BEGIN DEFERRED" if reading else "BEGIN IMMEDIATE")
