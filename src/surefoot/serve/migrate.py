"""Bring a database to the tables this release expects.

Migrations are Alembic's and lie in the folder ``migrations`` beside this file. Several servers may start at once on one
database: the first migrates, the others wait for it.

>>> from surefoot.serve.store import Store
>>> store = Store("sqlite://")
>>> migrate(store.engine)
>>> migrate(store.engine)  # nothing left to do
"""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.util.exc import CommandError
from sqlalchemy import Connection, Engine, text

from surefoot.errors import SurefootError

__all__ = ["migrate"]

_LOCK = 0x5F00_7001  # any number that others on the same PostgreSQL will not choose


def migrate(engine: Engine, revision: str = "head") -> None:
    """Apply the migrations that are missing.

    >>> from surefoot.serve.store import Store
    >>> migrate(Store("sqlite://").engine, "9999")
    Traceback (most recent call last):
    ...
    surefoot.errors.SurefootError: the database cannot be migrated: Can't locate revision ...; was it made by ...
    """
    with engine.begin() as connection:  # SQLite: the write lock from the start
        if connection.dialect.name == "postgresql":
            connection.execute(text("SET LOCAL lock_timeout = 0"))  # another server may be at it, however long it takes
            connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
        _upgrade(connection, revision)


def _upgrade(connection: Connection, revision: str) -> None:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).with_name("migrations")).replace("%", "%%"))
    config.attributes["connection"] = connection
    try:
        command.upgrade(config, revision)
    except CommandError as error:
        # A revision this release does not know was made by a newer one.
        newer = "; was it made by a newer release?" if "locate revision" in str(error) else ""
        raise SurefootError(f"the database cannot be migrated: {error}{newer}") from None
