"""A database that falls back under a running server: it is noticed, and the study goes on from what is there."""

from __future__ import annotations

import contextlib
import sqlite3

import pytest
import sqlalchemy as sa
from running import Server

import surefoot
from surefoot import Box, Client
from surefoot.loop.journal import dumps
from surefoot.serve.live import Live
from surefoot.serve.migrate import migrate
from surefoot.serve.store import Mark, Moved, Store, chain
from surefoot.serve.tables import answers, events, studies

BOX = {"domain": "Box", "bounds": [[0.0, 1.0]]}


@pytest.fixture(params=["sqlite", "postgres"])
def store(request, tmp_path):
    if request.param == "sqlite":
        made = Store(f"sqlite:///{tmp_path / 'service.db'}")
    else:
        made = Store(request.getfixturevalue("postgres").database(f"back_{tmp_path.name.rstrip('_').lower()}"[:60]))
    made.migrate()
    yield made
    made.close()


def pair(live: Live, id: str, value: float) -> None:
    query = live.use("a", id, lambda study: study.policy.ask())
    live.use("a", id, lambda study: study.policy.tell(query, value))


def kept(store: Store, id: str) -> dict:
    """Everything the database holds of a study."""
    with store.reading() as connection:
        return {
            "row": dict(connection.execute(sa.select(studies).where(studies.c.id == id)).mappings().one()),
            "answers": [
                dict(r) for r in connection.execute(sa.select(answers).where(answers.c.scope == id)).mappings()
            ],
        }


def lost(store: Store, id: str, before: dict) -> None:
    """As a fail-over does that lost transactions: the study is as it was before, in one step."""
    row = before["row"]
    with store.writing() as connection:
        connection.execute(sa.delete(events).where(events.c.study == id, events.c.sequence >= row["version"]))
        connection.execute(sa.update(studies).where(studies.c.id == id).values(**row))
        connection.execute(sa.delete(answers).where(answers.c.scope == id))
        if before["answers"]:
            connection.execute(sa.insert(answers), before["answers"])


def agrees(store: Store, live: Live, id: str) -> None:
    """What the server remembers is what is stored, and a server that starts now can go on with it."""
    for server in (live, Live(store, cached=4)):
        values = server.use("a", id, lambda study: [o.value for o in study.policy.history])
        assert values == [event["value"] for event in store.events(id) if event["event"] == "told"]
    row = store.study("a", id)
    assert row["hash"] == chain("", store.lines(id))
    assert row["version"] == len(store.events(id))


def test_an_ask_from_ghost_memory_is_not_accepted_when_versions_meet_again(store):
    # Finding 3 of the review of 0.1.0: only the number of the last event was compared.
    one, other = Live(store, cached=4), Live(store, cached=4)
    id = one.create("a", name="x", policy="GPUCB", domain=BOX, seed=0)
    for value in (1.0, 2.0):
        pair(one, id, value)
    before = kept(store, id)
    for value in (3.0, 4.0, 5.0):
        pair(one, id, value)
    lost(store, id, before)
    for value in (-3.0, -4.0, -5.0):
        pair(other, id, value)
    assert store.study("a", id)["version"] == 10  # as many as one server remembers, but others
    asked = one.use("a", id, lambda study: study.policy.ask())
    home = surefoot.GPUCB(Box([(0.0, 1.0)]), seed=0)
    home.replay(store.events(id)[:-1])
    assert asked == home.ask()
    agrees(store, one, id)


@pytest.mark.parametrize("further", [0, 1])
def test_a_study_that_fell_back_is_made_anew(store, further):
    # Finding 3 of the review of 0.1.0
    one, other = Live(store, cached=4), Live(store, cached=4)
    id = one.create("a", name="x", policy="SobolSearch", domain=BOX, seed=0)
    pair(one, id, 1.0)
    before = kept(store, id)
    for value in (2.0, 3.0):
        pair(one, id, value)
    lost(store, id, before)
    for i in range(further):
        pair(other, id, -float(i))
    with pytest.raises(ValueError, match="query 2 was not asked"):
        one.use("a", id, lambda study: study.policy.tell(2, 9.0))
    pair(one, id, 7.0)
    agrees(store, one, id)


def test_a_write_must_have_seen_the_very_events(store):
    # Finding 3 of the review of 0.1.0
    live = Live(store, cached=4)
    id = live.create("a", name="x", policy="SobolSearch", domain=BOX, seed=0)
    pair(live, id, 1.0)
    there = store.study("a", id)
    line = dumps({"event": "told", "x": [0.5], "value": 0.0})
    for mark in (Mark(2, "0" * 64), Mark(2, ""), Mark(1, there["hash"])):
        with pytest.raises(Moved):
            store.append(id, mark, [line], hash="1" * 64, counts={"told": 1})
    assert store.study("a", id) == there
    assert len(store.events(id)) == 2


def test_a_database_of_the_first_release_gets_its_hashes_as_it_is_used(tmp_path):
    path = tmp_path / "old.db"
    store = Store(f"sqlite:///{path}")
    migrate(store.engine, "0001")
    home = surefoot.SobolSearch(Box([(0.0, 1.0)]), seed=0)
    for i in range(3):
        home.tell(home.ask(), float(i))
    with contextlib.closing(sqlite3.connect(path)) as old, old:
        names = ["id", "kind", "tenant", "name", "policy", "direction", "domain", "options", "seed", "state"]
        names += ["created", "updated", "version"]
        values = ["0f", "study", "a", "x", "SobolSearch", "maximize", dumps(BOX), "{}", "0", "open", "then", "then", 6]
        old.execute(
            f"INSERT INTO studies ({','.join(names)}, told, failed, pending, stopped) "
            f"VALUES ({','.join('?' * len(names))}, 3, 0, 0, 0)",
            values,
        )
        old.executemany("INSERT INTO events VALUES ('0f', ?, ?)", [(i, dumps(e)) for i, e in enumerate(home.events)])
    store.migrate()
    assert (store.study("a", "0f")["hash"], store.study("a", "0f")["release"]) == ("", "0.1.0")
    live = Live(store, cached=2)
    assert live.use("a", "0f", lambda study: study.policy.ask()) == home.ask()
    agrees(store, live, "0f")
    store.close()


class TestUnderARunningServer:
    """Finding 3 of the review of 0.1.0."""

    def test_a_restored_backup_of_sqlite(self, tmp_path):
        path = tmp_path / "service.db"
        with Server(f"sqlite:///{path}", tmp_path) as server:
            self.scenario(server, self.copied(path, tmp_path / "backup.db"), self.copied(tmp_path / "backup.db", path))

    def test_transactions_that_a_fail_over_of_postgres_lost(self, postgres_server):
        before: dict = {}
        store = postgres_server.store
        self.scenario(
            postgres_server,
            lambda id: before.update(kept(store, id)),
            lambda id: lost(store, id, before),
        )

    @staticmethod
    def copied(source, target):
        def copy(_id: str) -> None:
            with (
                contextlib.closing(sqlite3.connect(source)) as there,
                contextlib.closing(sqlite3.connect(target)) as here,
            ):
                there.backup(here)

        return copy

    @staticmethod
    def scenario(server: Server, backup, restore) -> None:
        with Client(server.url, token=server.token(tenant="back")) as client:
            study = client.create("x", Box([(0.0, 1.0)]), policy="GPUCB", seed=0)
            for value in (1.0, 3.0):
                study.tell(study.ask(), value)
            backup(study.id)
            for value in (2.0, 5.0):
                study.tell(study.ask(), value)
            restore(study.id)
            assert study.info()["told"] == 2
            with pytest.raises(ValueError, match="query 3 was not asked"):
                study.tell(3, 8.0)
            home = surefoot.GPUCB(Box([(0.0, 1.0)]), seed=0)
            for value in (1.0, 3.0):
                home.tell(home.ask(), value)
            for value in (0.5, 0.25, 0.75):
                query = study.ask()
                assert query == home.ask()
                study.tell(query, value)
                home.tell(query, value)
            assert study.recommend() == home.recommend()
        server.kill()
        server.start()
        with Client(server.url, token=server.token(tenant="back")) as client:
            assert client.study(study.id).ask() == home.ask()
