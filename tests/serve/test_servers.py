"""How servers behave: several on one database, killed and started again, busy, bounded in memory."""

from __future__ import annotations

import asyncio
import sys
import threading

import httpx
import numpy as np
import pytest
import sqlalchemy as sa
from running import Server

import surefoot
from surefoot import Box, Client
from surefoot.errors import MissingExtra
from surefoot.loop.journal import dumps
from surefoot.loop.policy import Policy, Proposal
from surefoot.serve import Settings, Store, create_app, live, tokens
from surefoot.serve import store as database
from surefoot.serve.failures import Unavailable
from surefoot.serve.limits import Buckets
from surefoot.serve.live import Live, LiveStudy, scratch
from surefoot.serve.store import Mark, Moved
from surefoot.serve.tables import events, metadata, studies

BOX = {"domain": "Box", "bounds": [[0.0, 1.0]]}


@pytest.fixture
def store(tmp_path):
    made = Store(f"sqlite:///{tmp_path / 'service.db'}")
    made.migrate()
    yield made
    made.close()


class TestSeveralServers:
    @pytest.mark.slow
    def test_two_on_one_postgres_share_a_study(self, postgres_server, tmp_path_factory):
        server = postgres_server
        with Server(server.database, tmp_path_factory.mktemp("second")) as second:
            token = server.token()
            one, two = Client(server.url, token=token), Client(second.url, token=token)
            first = one.create("shared", Box([(0.0, 1.0)]), policy="GPUCB", seed=0)
            other = two.study(first.id)
            home = surefoot.GPUCB(Box([(0.0, 1.0)]), seed=0)
            for i in range(6):
                asks, tells = (first, other) if i % 2 else (other, first)
                query = asks.ask()
                assert query == home.ask()  # whichever server answers, it knows every event
                tells.tell(query, float(query.x[0]))
                home.tell(query, float(query.x[0]))
            sobol = one.create("busy", Box([(0.0, 1.0)]), policy="SobolSearch", seed=0)
            threads = [
                threading.Thread(target=pairs, args=(Client(url, token=token).study(sobol.id), 10))
                for url in (server.url, second.url) * 2
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            events = sobol.trace()
            assert sorted(event["id"] for event in events if event["event"] == "asked") == list(range(40))
            assert sorted(event["id"] for event in events if event["event"] == "told") == list(range(40))

    def test_whoever_comes_second_writes_nothing(self, store):
        live, other = Live(store, cached=4), Live(store, cached=4)
        id = live.create("a", name="x", policy="SobolSearch", domain=BOX, seed=0)
        version = live.use("a", id, lambda study: (study.policy.ask(), study.writer.version)[1])
        assert version == 1
        other.use("a", id, lambda study: study.policy.tell(0, 1.0))
        with pytest.raises(Moved):
            store.append(id, Mark(1, ""), [dumps({"event": "cancelled", "id": 0})], hash="", counts={"pending": -1})
        assert store.study("a", id)["pending"] == 0
        tries = []

        def act(study):
            tries.append(study.writer.version)
            if len(tries) == 1:  # somebody else is faster
                other.use("a", id, lambda theirs: theirs.policy.ask())
            return study.policy.ask().id

        assert live.use("a", id, act) == 2
        assert tries == [2, 3]
        assert [event.get("id") for event in store.events(id)] == [0, 0, 1, 2]

    def test_whoever_always_comes_second_is_asked_to_try_again(self, store, monkeypatch):
        monkeypatch.setattr(live, "_TRIES", 5)
        mine, other = Live(store, cached=4), Live(store, cached=4)
        id = mine.create("a", name="x", policy="SobolSearch", domain=BOX, seed=0)

        def act(study):
            other.use("a", id, lambda theirs: theirs.policy.ask())
            return study.policy.ask()

        with pytest.raises(Unavailable, match="too many servers write to this study at once"):
            mine.use("a", id, act)
        assert [event["id"] for event in store.events(id)] == [0, 1, 2, 3, 4]  # all of them the other's
        assert mine.use("a", id, lambda study: study.policy.ask().id) == 5

    def test_many_start_at_once_and_migrate_once(self, postgres):
        url = postgres.database("starting")
        stores = [Store(url) for _ in range(4)]
        threads = [threading.Thread(target=store.migrate) for store in stores]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        with stores[0].engine.connect() as connection:
            assert len(connection.execute(sa.text("SELECT version_num FROM alembic_version")).all()) == 1
        for store in stores:
            store.close()


def pairs(study, count: int) -> None:
    for _ in range(count):
        study.tell(study.ask(), 1.0)


class TestRestarts:
    def test_a_killed_server_goes_on_where_it_was(self, tmp_path):
        server = Server(f"sqlite:///{tmp_path / 'service.db'}", tmp_path).start()
        try:
            client = Client(server.url, token=server.token(), retries=20)
            study = client.create("killed", Box([(0.0, 1.0)]), policy="GPUCB", seed=0)
            home = surefoot.GPUCB(Box([(0.0, 1.0)]), seed=0)
            for i in range(6):
                query = study.ask()
                assert query == home.ask()
                if i == 3:
                    server.kill()
                    starting = threading.Thread(target=server.start)
                    starting.start()  # the client waits for it
                study.tell(query, float(query.x[0]))
                home.tell(query, float(query.x[0]))
            starting.join()
            assert study.recommend() == home.recommend()
        finally:
            server.stop()

    def test_postgres_that_is_away_is_said_so_and_comes_back(self, postgres, postgres_server):
        server = postgres_server
        token = server.token()
        patient, hasty = Client(server.url, token=token, retries=20), Client(server.url, token=token, retries=0)
        study = patient.create("away", Box([(0.0, 1.0)]), policy="SobolSearch", seed=0)
        query = study.ask()
        postgres.stop()
        with pytest.raises(surefoot.SurefootError, match=r"the (database|connection)"):
            hasty.study(study.id)
        assert httpx.get(f"{server.url}/api/v1/health").status_code == 503
        starting = threading.Thread(target=postgres.start)
        starting.start()
        study.tell(query, 1.0)
        starting.join()
        assert study.info()["told"] == 1

    def test_migrations_make_the_tables_that_the_code_describes(self, store):
        from alembic.autogenerate import compare_metadata
        from alembic.migration import MigrationContext

        with store.engine.connect() as connection:
            assert compare_metadata(MigrationContext.configure(connection), metadata) == []


class Waits(Policy):
    """Asks for the middle, when it is allowed to."""

    domains = (Box,)
    allowed = threading.Event()
    begun = threading.Event()

    def _choose(self, step, context):
        Waits.begun.set()
        assert Waits.allowed.wait(30)
        return Proposal(np.array([0.5]))

    def _recommend(self):
        return self._best_measured()


class TestBusy:
    def test_a_long_ask_holds_up_nobody_else(self, store):
        """While one study computes, others ask and tell, and requests for the same study wait without a thread."""
        app = create_app(store, Settings(threads=2, rate=0.0))
        token = tokens.create(store, "a", "t", "write")["token"]
        headers = {"Authorization": f"Bearer {token}"}

        async def scenario():
            transport = httpx.ASGITransport(app=app)
            async with httpx.AsyncClient(transport=transport, base_url="http://here/api/v1", headers=headers) as http:
                ids = []
                for policy in ("Waits", "SobolSearch"):
                    made = await http.post("/studies", json={"name": policy, "policy": policy, "domain": BOX})
                    ids.append(made.json()["id"])
                slow = [asyncio.create_task(http.post(f"/studies/{ids[0]}/ask", json={})) for _ in range(50)]
                while not Waits.begun.is_set():
                    await asyncio.sleep(0.01)
                quick = await asyncio.wait_for(http.post(f"/studies/{ids[1]}/ask", json={}), 10)
                assert quick.status_code == 200
                assert (await asyncio.wait_for(http.get("/health"), 10)).status_code == 200
                assert not any(task.done() for task in slow)
                Waits.allowed.set()
                answers = await asyncio.gather(*slow)
                assert sorted(a.json()["queries"][0]["id"] for a in answers) == list(range(50))

        asyncio.run(scenario())

    def test_few_policies_are_kept_and_all_are_right(self, store):
        live = Live(store, cached=2)
        ids = [live.create("a", name=str(i), policy="GPUCB", domain=BOX, seed=i) for i in range(4)]
        homes = [surefoot.GPUCB(Box([(0.0, 1.0)]), seed=i) for i in range(4)]
        for _ in range(3):
            for id, home in zip(ids, homes, strict=True):
                query = live.use("a", id, lambda study: study.policy.ask())
                assert query == home.ask()
                live.use("a", id, lambda study, q=query: study.policy.tell(q, float(q.x[0])))
                home.tell(query, float(query.x[0]))
                assert live.size <= 2

    def test_a_token_may_not_call_too_often(self, store):
        made = [tokens.create(store, "a", "t", "read")["token"] for _ in range(2)]
        transport = httpx.ASGITransport(app=create_app(store, Settings(rate=2.0, patience=1.5)))

        async def scenario():
            async with httpx.AsyncClient(transport=transport, base_url="http://here/api/v1") as http:
                first = [await http.get("/studies", headers={"Authorization": f"Bearer {made[0]}"}) for _ in range(5)]
                assert [answer.status_code for answer in first] == [200] * 3 + [429] * 2
                assert int(first[-1].headers["Retry-After"]) >= 1
                assert first[-1].json()["detail"] == "too many requests with this token"
                other = await http.get("/studies", headers={"Authorization": f"Bearer {made[1]}"})
                assert other.status_code == 200

        asyncio.run(scenario())


def test_a_database_that_may_only_be_read_changes_nothing_and_the_log_says_why(tmp_path, caplog):
    made = Store(f"sqlite:///{tmp_path / 'service.db'}")
    made.migrate()
    id = Live(made, cached=1).create("physics", name="beam", policy="SobolSearch", domain=BOX)
    made.close()
    store = Store(f"sqlite:///file:{tmp_path / 'service.db'}?mode=ro&uri=true")
    live = Live(store, cached=1)
    for _ in range(2):
        with pytest.raises(Unavailable, match="does not answer") as refused:
            live.use("physics", id, lambda study: study.policy.ask())
        assert "readonly" not in str(refused.value)  # that is the operator's business
    assert live.use("physics", id, lambda study: len(study.policy.queries)) == 0
    assert {record.fields["reason"] for record in caplog.records} == {"attempt to write a readonly database"}
    store.close()


def test_a_study_looked_at_in_many_ways_keeps_a_few():
    study, made = scratch(), []
    for way in [*range(20), 19]:
        study.once(("view", way), lambda way=way: made.append(way))
    assert made == list(range(20))
    assert len(study._kept) <= 4


def test_events_that_do_not_fit_are_said_so_and_half_of_them_is_not_kept(store):
    server = Live(store, cached=4)
    id = server.create("a", name="x", policy="SobolSearch", domain=BOX, seed=0)
    query = server.use("a", id, lambda study: study.policy.ask())
    good = {"event": "told", "x": [0.5], "value": 1.0}
    lines = [dumps(good), dumps({"event": "told", "id": 7, "value": 1.0})]
    store.append(id, Mark(1, store.study("a", id)["hash"]), lines, hash="", counts={"told": 2})
    for _ in range(2):
        with pytest.raises(ValueError, match="event 2 does not fit this policy"):
            server.use("a", id, lambda study: study.policy.ask())
    with store.writing() as connection:  # the operator repairs it
        connection.execute(sa.delete(events).where(events.c.study == id, events.c.sequence == 2))
        connection.execute(sa.update(studies).where(studies.c.id == id).values(version=2, told=1))
    found = server.use("a", id, lambda study: (study.policy.queries, [o.value for o in study.policy.history]))
    assert found == ([query], [1.0])


def test_a_study_that_nobody_uses_has_neither_a_policy_nor_a_journal():
    study = LiveStudy("0f")
    for look in (lambda: study.policy, lambda: study.writer):
        with pytest.raises(RuntimeError, match=r"a study is used within Live\.use\(\)"):
            look()


def test_a_database_without_a_free_connection_is_busy(tmp_path, monkeypatch):
    monkeypatch.setattr(database, "_BUSY", 0.01)
    store = Store(f"sqlite:///{tmp_path / 'service.db'}", pool=1)
    store.migrate()
    held = [store.engine.connect() for _ in range(3)]
    for use in (store.ping, store.migrate, lambda: store.study("a", "0")):
        with pytest.raises(Unavailable, match="the database is busy; try again in a moment"):
            use()
    for connection in held:
        connection.close()
    store.ping()
    store.close()


def test_a_connection_that_was_lost_is_said_so_and_made_again(tmp_path):
    store = Store(f"sqlite:///{tmp_path / 'service.db'}", pool=1)
    store.migrate()
    lost = pytest.raises(Unavailable, match="the connection to the database was lost")
    with lost, store.reading() as connection:
        connection.connection.driver_connection.close()
        connection.execute(sa.text("SELECT 1"))
    store.ping()
    store.close()


def test_without_the_driver_of_postgres_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingExtra, match=r"psycopg is not installed: pip install 'surefoot\[postgres\]'"):
        Store("postgresql://me:secret@127.0.0.1:9/none")
    with pytest.raises(MissingExtra, match="is not installed"):
        Store("sqlite+nonsense://")


@pytest.mark.parametrize("rate", [-1.0, float("nan"), float("inf")])
def test_a_rate_is_a_number_of_requests(rate):
    with pytest.raises(ValueError, match="rate must be a number of requests per second, 0 for no limit"):
        Settings(rate=rate)


def test_tokens_that_have_not_called_for_long_are_forgotten():
    buckets = Buckets(rate=10.0, burst=1.0)
    for number in range(10_001):
        buckets.take(str(number), at=0.0)
    assert buckets.take("0", at=0.05) == pytest.approx(0.05)
    assert buckets.take("new", at=9.0) == 0.0
    assert len(buckets._levels) == 1
