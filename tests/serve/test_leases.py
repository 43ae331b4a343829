"""Leases: an abandoned query goes back by itself, whatever the clock does, and a late outcome is still an outcome."""

from __future__ import annotations

import asyncio
import time

import pytest
from test_queues import Near, together

from surefoot.errors import BudgetSpent
from surefoot.serve import Settings, Store
from surefoot.serve.failures import Conflict, Unavailable
from surefoot.serve.leased import Renewed
from surefoot.serve.leases import Lease, LeaseWatch, watching
from surefoot.serve.live import Live, digest
from surefoot.serve.schemas import AskRequest, Cancel, Expire, Tell
from surefoot.serve.service import Service

BOX = {"domain": "Box", "bounds": [[0.0, 1.0]]}


@pytest.fixture(params=["sqlite", "postgres"])
def store(request, tmp_path):
    if request.param == "sqlite":
        made = Store(f"sqlite:///{tmp_path / 'service.db'}")
    else:
        made = Store(request.getfixturevalue("postgres").database(f"leases_{tmp_path.name.rstrip('_').lower()}"[:60]))
    made.migrate()
    yield made
    made.close()


def served(store: Store, **settings) -> tuple[Service, str]:
    service = Service(store, Settings(**settings))
    service.queues.pool = Near()
    return service, Live(store, cached=1).create("a", name="x", policy="SobolSearch", domain=BOX, seed=0)


def kinds(store: Store, id: str) -> list[tuple[str, int]]:
    return [(event["event"], event["id"]) for event in store.events(id)]


def passed(service: Service, watch: LeaseWatch, *moments: float) -> list:
    """What expired while the clock of the watcher said this."""

    async def scenario():
        found = []
        for moment in moments:
            over = watch.expired(service.leases.all(), moment)
            found += await asyncio.gather(*map(service.expire, over), return_exceptions=True)
        return found

    return asyncio.run(scenario())


def test_an_abandoned_query_goes_back_and_others_stay(store):
    service, id = served(store)
    leased = AskRequest(n=2, lease=3.0, worker="bench 2", key="k")
    (first,) = together(service, id, ("ask", leased))
    (again,) = together(service, id, ("ask", leased))
    assert first == again  # two workers with one lease, if the key is one
    together(service, id, ("ask", AskRequest()), ("tell", Tell(query=0, value=1.0)))
    assert [(one["query"], one["worker"], one["seconds"]) for one in service.leases.of("a", id)] == [
        (1, "bench 2", 3.0)
    ]
    assert store.study("a", id)["pending"] == 2
    assert passed(service, LeaseWatch(), 0.0, 1.0, 2.0, 3.0) == [None]
    assert kinds(store, id) == [("asked", 0), ("asked", 1), ("asked", 2), ("told", 0), ("expired", 1)]
    assert service.leases.all() == []
    assert store.study("a", id)["pending"] == 1
    fresh = Live(store, cached=1).use("a", id, lambda study: [query.id for query in study.policy.pending])
    assert fresh == [2]


def test_a_clock_that_jumps_expires_nothing_early_and_nothing_never():
    watch, lease = LeaseWatch(every=1.0), Lease("0f", "a", 0, seconds=10.0, beat=0)
    moments = [0.0, 1.0, 1e9, 1e9 + 1.0, -1e9, -1e9 + 1.0, 0.0]  # a jump counts as two seconds at most
    assert not any(watch.expired([lease], moment) for moment in moments)
    moment, looks = 0.0, 0
    while not watch.expired([lease], moment):
        moment, looks = moment + 1.0, looks + 1
    assert 1 <= looks <= 10


def test_the_time_of_day_decides_nothing(store, monkeypatch):
    service, id = served(store)
    for jump in (1e9, -1e9):
        (query,) = together(service, id, ("ask", AskRequest(lease=5.0)))
        watch = LeaseWatch()
        passed(service, watch, 0.0, 1.0)
        real = time.time
        monkeypatch.setattr(time, "time", lambda real=real, jump=jump: real() + jump)
        assert passed(service, watch, 2.0, 3.0) == []
        assert len(service.leases.all()) == 1
        assert passed(service, watch, 4.0, 5.0) == [None]
        assert kinds(store, id)[-1] == ("expired", query[0]["id"])
        monkeypatch.setattr(time, "time", real)


def test_a_sign_of_life_renews(store):
    service, id = served(store)
    together(service, id, ("ask", AskRequest(n=2, lease=2.0)))
    watch = LeaseWatch()
    for moment in range(10):
        assert service.leases.renew("a", id, [0, 7]) == [0]
        passed(service, watch, float(moment))
    assert kinds(store, id)[-1] == ("expired", 1)
    assert [lease.query for lease in service.leases.all()] == [0]
    assert service.leases.renew("a", id, [0, 1]) == [0]


def test_a_server_that_starts_or_stood_still_gives_the_whole_time_again(store):
    service, id = served(store)
    together(service, id, ("ask", AskRequest(lease=3.0)))
    passed(service, LeaseWatch(), 0.0, 1.0, 2.0)
    assert passed(service, watch := LeaseWatch(), 100.0, 101.0, 102.0) == []
    assert passed(service, watch, 5000.0) == [None]


def test_who_renews_at_the_last_moment_keeps_the_query(store):
    service, id = served(store)
    together(service, id, ("ask", AskRequest(n=2, lease=1.0)))
    seen = service.leases.all()
    service.leases.renew("a", id, [0])

    async def scenario():
        return await asyncio.gather(*map(service.expire, seen), return_exceptions=True)

    renewed, gone = asyncio.run(scenario())
    assert isinstance(renewed, Renewed)
    assert gone is None
    assert kinds(store, id) == [("asked", 0), ("asked", 1), ("expired", 1)]
    together(service, id, ("tell", Tell(query=0, value=1.0)))
    assert store.study("a", id)["pending"] == 0


def test_a_worker_that_returns_after_its_lease_is_heard(store):
    service, id = served(store)
    together(service, id, ("ask", AskRequest(lease=1.0)))
    passed(service, LeaseWatch(), 0.0, 1.0)
    assert service.leases.renew("a", id, [0]) == []
    together(service, id, ("ask", AskRequest(lease=9.0)))  # somebody else goes on
    late = Tell(query=0, value=1.0)
    found = together(service, id, ("tell", late), ("tell", late), ("tell", Tell(query=0, value=2.0)))
    assert found[0] == found[1] == {"version": 4}
    assert isinstance(found[2], Conflict)
    row = store.study("a", id)
    assert (row["told"], row["pending"]) == (1, 1)
    assert [lease.query for lease in service.leases.all()] == [1]


def test_told_cancelled_closed_and_deleted_queries_have_no_lease(store):
    service, id = served(store)
    together(service, id, ("ask", AskRequest(n=4, lease=1.0)))
    together(service, id, ("tell", Tell(query=0, value=None)), ("cancel", Cancel(query=1)))
    assert [lease.query for lease in service.leases.all()] == [2, 3]
    together(service, id, ("tell", Tell(query=2, value=1.0)))
    store.update(id, state="closed")
    assert service.leases.all() == []
    assert [one["query"] for one in service.leases.of("a", id)] == [3]
    (refused,) = passed(service, LeaseWatch(), 0.0) or together(service, id, ("expire", Expire(query=3, beat=0)))
    assert isinstance(refused, Conflict)
    store.delete("a", id)
    with pytest.raises(Exception, match="there is no such study"):
        service.leases.of("a", id)


def test_a_tenant_without_room_gets_its_points_back(store):
    service, id = served(store)
    together(service, id, ("ask", AskRequest(lease=1.0)))
    full = Service(store, Settings(bytes=1))
    full.queues.pool = Near()
    assert passed(full, LeaseWatch(), 0.0, 1.0) == [None]


def test_a_study_has_so_many_trials_and_no_more(store):
    service, id = served(store)
    asks = together(service, id, *[("ask", AskRequest(most=3)) for _ in range(5)])
    assert [isinstance(one, BudgetSpent) for one in asks] == [False] * 3 + [True] * 2
    assert "some are still pending" in str(asks[-1])
    together(service, id, ("tell", Tell(query=0, value=1.0)), ("cancel", Cancel(query=1)))
    (more,) = together(service, id, ("ask", AskRequest(most=3)))
    assert more[0]["id"] == 3


def test_a_request_from_before_leases_is_known_again():
    """The digest of an ask without what is new is that of 0.1: a repeated request is not taken for another one."""
    from surefoot.serve import studies

    old = digest(["Ask", {"n": 2, "time": None, "at": None}])
    assert studies._request(AskRequest(n=2, key="k")) == old
    assert studies._request(AskRequest(n=2, key="k", lease=3.0)) != old


def test_the_watcher_goes_on_when_the_database_is_away(store):
    service, id = served(store)
    together(service, id, ("ask", AskRequest(lease=0.05)))
    calls = []

    async def look():
        calls.append(1)
        if len(calls) == 1:
            raise Unavailable("the database does not answer")
        return service.leases.all()

    async def scenario():
        task = asyncio.create_task(watching(look, service.expire, LeaseWatch(every=0.05)))
        for _ in range(200):
            await asyncio.sleep(0.05)
            if not service.leases.all():
                break
        task.cancel()

    asyncio.run(scenario())
    assert kinds(store, id) == [("asked", 0), ("expired", 0)]


def test_a_server_lets_leases_expire(server):
    from surefoot import Box, Client

    with Client(server.url, token=server.token(tenant="leases")) as client:
        study = client.create("leased", Box([(0.0, 1.0)]), policy="SobolSearch", seed=0)
        query = study.ask(lease=0.5, worker="bench 2")
        assert [(one["query"], one["worker"]) for one in study.leases()] == [(0, "bench 2")]
        deadline = time.monotonic() + 60.0
        while study.info()["pending"] and time.monotonic() < deadline:
            time.sleep(0.1)
        assert study.trace()[-1]["event"] == "expired"
        assert study.renew(query) == []
        study.tell(query, 1.0)
        assert study.info()["told"] == 1
