"""What the tests of the service share: one server on SQLite, one on PostgreSQL, started once."""

from __future__ import annotations

import pytest
from running import Postgres, Server


@pytest.fixture(scope="session")
def postgres():
    """A PostgreSQL cluster of our own."""
    if (why := Postgres.unavailable()) is not None:
        pytest.skip(why)
    pytest.importorskip("psycopg")
    cluster = Postgres()
    yield cluster
    cluster.remove()


@pytest.fixture(scope="session")
def sqlite_server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sqlite")
    with Server(f"sqlite:///{folder / 'service.db'}", folder) as server:
        yield server


@pytest.fixture(scope="session")
def postgres_server(postgres, tmp_path_factory):
    with Server(postgres.database("service"), tmp_path_factory.mktemp("postgres")) as server:
        yield server


@pytest.fixture(scope="session", params=["sqlite", "postgres"])
def server(request):
    """The service on each of the two databases."""
    return request.getfixturevalue(f"{request.param}_server")
