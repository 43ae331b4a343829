"""Requests that wait together are written together: in order, each for itself, answered when they are on disk."""

from __future__ import annotations

import asyncio
from collections import OrderedDict

import pytest

from surefoot.errors import SurefootError
from surefoot.serve import Settings, Store, tokens
from surefoot.serve.failures import Conflict, NotFound, TooLarge, Unavailable
from surefoot.serve.live import Live
from surefoot.serve.schemas import AskRequest, Report, Tell, TellMany
from surefoot.serve.service import Service
from surefoot.serve.tokens import Caller
from surefoot.serve.worker import Desk

BOX = {"domain": "Box", "bounds": [[0.0, 1.0]]}
ME = Caller("1", "a", "write")


@pytest.fixture(params=["sqlite", "postgres"])
def store(request, tmp_path):
    if request.param == "sqlite":
        made = Store(f"sqlite:///{tmp_path / 'service.db'}")
    else:
        made = Store(request.getfixturevalue("postgres").database(f"queues_{tmp_path.name.rstrip('_').lower()}"[:60]))
    made.migrate()
    yield made
    made.close()


class Near:
    """A worker in this process; it can be told what it must not be given."""

    def __init__(self, poison: str = "") -> None:
        self.desk, self.held, self.poison, self.batches = Desk(cached=9), OrderedDict(), poison, []

    def exchange(self, request):
        self.batches.append([job["act"] for job in request["jobs"]])
        if self.poison and any(self.poison in str(job["body"]) for job in request["jobs"]):
            raise Unavailable("this took longer than 1 seconds and was ended; nothing changed", after=30)
        return self.desk.work(request)

    def hold(self, id, version):
        self.held[id] = version

    async def run(self, _tenant, _id, job, *, short):
        await asyncio.sleep(0)  # others come meanwhile
        return job(self)


def served(store: Store, policy: str = "SobolSearch", poison: str = "", **settings) -> tuple[Service, str, Near]:
    service = Service(store, Settings(**settings))
    service.queues.pool = near = Near(poison)
    id = Live(store, cached=1).create("a", name="x", policy=policy, domain=BOX, seed=0)
    service.queues.learn(id, policy)
    return service, id, near


def together(service: Service, id: str, *requests) -> list:
    """What requests gave that came at once: an answer, or an error."""

    async def scenario():
        light = ("tell", "tell-many", "cancel")
        jobs = [service.use(ME, id, act, body, light=act in light) for act, body in requests]
        return await asyncio.gather(*jobs, return_exceptions=True)

    return asyncio.run(scenario())


def test_what_waits_together_is_one_transaction_in_the_order_it_came(store, monkeypatch):
    service, id, near = served(store)
    appended = []
    real = Store.append
    monkeypatch.setattr(Store, "append", lambda self, *a, **k: (appended.append(len(a[2])), real(self, *a, **k))[1])
    asks = together(service, id, *[("ask", AskRequest(key=str(i))) for i in range(40)])
    assert [one[0]["id"] for one in asks] == list(range(40))
    tells = together(service, id, *[("tell", Tell(query=i, value=float(i))) for i in range(40)])
    assert [one["version"] for one in tells] == list(range(41, 81))
    assert [event["id"] for event in store.events(id)] == [*range(40), *range(40)]
    assert len(appended) < 10  # on a slow machine a moment of work is less than forty of them
    assert sum(appended) == 80
    assert store.study("a", id)["told"] == 40
    assert sum(map(len, near.batches)) >= 80


def test_the_same_request_twice_in_a_batch_is_done_once(store):
    service, id, _ = served(store)
    first, again, other = together(
        service, id, ("ask", AskRequest(key="k")), ("ask", AskRequest(key="k")), ("ask", AskRequest(n=2, key="k"))
    )
    assert first == again
    assert isinstance(other, Conflict)
    told = [("tell", Tell(x=[0.5], value=1.0, key="t"))] * 3
    together(service, id, *told)
    together(service, id, *told)
    assert [event["event"] for event in store.events(id)] == ["asked", "told"]


def test_one_that_is_refused_does_not_fail_the_others(store):
    service, id, _ = served(store)
    many = TellMany(tells=[Tell(x=[0.5], value=1.0), Tell(query=99, value=1.0)])
    found = together(
        service,
        id,
        ("ask", AskRequest()),
        ("tell", Tell(query=7, value=1.0)),
        ("report", Report(query=0, step=1, value=0.5)),
        ("tell-many", many),
        ("tell", Tell(query=0, value=2.0)),
        ("tell", Tell(query=0, value=3.0)),
    )
    assert [type(one).__name__ for one in found] == [
        "list",
        "ValueError",
        "NotSupported",
        "ValueError",
        "dict",
        "Conflict",
    ]
    assert [(event["event"], event.get("value")) for event in store.events(id)] == [("asked", None), ("told", 2.0)]


def test_one_that_takes_too_much_does_not_fail_the_others(store):
    service, id, near = served(store, poison="poison")
    found = together(service, id, *[("ask", AskRequest(key="poison" if i == 2 else str(i))) for i in range(5)])
    assert [isinstance(one, Unavailable) for one in found] == [False, False, True, False, False]
    assert [event["id"] for event in store.events(id)] == [0, 1, 2, 3]
    assert near.batches[0] == ["ask"] * 5
    assert all(len(batch) == 1 for batch in near.batches[1:])


def test_what_is_left_after_a_moment_waits_for_the_next_batch(store, monkeypatch):
    monkeypatch.setattr("surefoot.serve.worker._MOMENT", 0.0)
    service, id, near = served(store)
    found = together(service, id, *[("ask", AskRequest()) for _ in range(4)])
    assert [one[0]["id"] for one in found] == [0, 1, 2, 3]
    assert [len(batch) for batch in near.batches if batch] == [4, 3, 2, 1]


def test_asks_of_a_model_are_written_one_by_one_and_tells_together(store):
    service, id, near = served(store, "GPUCB")
    found = together(service, id, *[("ask", AskRequest()) for _ in range(3)])
    assert [one[0]["id"] for one in found] == [0, 1, 2]
    assert all(batch == ["ask"] for batch in near.batches)
    mixed = [("tell", Tell(query=0, value=1.0)), ("tell", Tell(query=1, value=2.0)), ("ask", AskRequest())]
    near.batches.clear()
    together(service, id, *mixed)
    assert near.batches[0] == ["tell"] * 2  # an ask needs another worker
    assert near.batches[-1] == ["ask"]


def test_a_batch_that_cannot_be_written_leaves_nothing_behind(store, monkeypatch):
    service, id, _ = served(store)
    real = service.queues._written

    def fail(*_):
        raise Unavailable("the database does not answer")

    monkeypatch.setattr(service.queues, "_written", fail)
    requests = [("ask", AskRequest(key="a")), ("ask", AskRequest(key="b"))]
    assert all(isinstance(one, Unavailable) for one in together(service, id, *requests))
    assert store.events(id) == []
    monkeypatch.setattr(service.queues, "_written", real)
    assert [one[0]["id"] for one in together(service, id, *requests)] == [0, 1]


def test_a_crash_between_commit_and_answer_is_answered_from_what_is_stored(store, monkeypatch):
    service, id, _ = served(store)
    real = service.queues._written

    def crash(*given):
        real(*given)
        raise Unavailable("the connection to the database was lost")

    monkeypatch.setattr(service.queues, "_written", crash)
    requests = [("ask", AskRequest(key="a")), ("ask", AskRequest(n=2, key="b"))]
    together(service, id, *requests)
    for fresh in (service, served(store)[0]):  # the same server, and one that starts now
        monkeypatch.setattr(fresh.queues, "_written", real)
        found = together(fresh, id, *requests)
        assert [[query["id"] for query in one] for one in found] == [[0], [1, 2]]
    assert [event["id"] for event in store.events(id)] == [0, 1, 2]


def test_whoever_came_second_does_the_whole_batch_again(store):
    service, id, near = served(store)
    other = Live(store, cached=1)
    real = near.desk.work

    def late(request):
        done = real(request)
        if len(near.batches) == 1:
            other.use("a", id, lambda study: study.policy.ask())  # another server is faster
        return done

    near.desk.work = late
    found = together(service, id, ("ask", AskRequest()), ("ask", AskRequest()))
    assert [one[0]["id"] for one in found] == [1, 2]
    assert [event["id"] for event in store.events(id)] == [0, 1, 2]


def test_nobody_waits_for_ever_and_who_has_gone_is_not_served(store):
    service, id, near = served(store, wait=0.05)

    async def scenario():
        release = asyncio.Event()
        real = near.run

        async def slow(*given, **named):
            await release.wait()
            return await real(*given, **named)

        near.run = slow
        first = asyncio.create_task(service.use(ME, id, "ask", AskRequest()))
        await asyncio.sleep(0)
        second = asyncio.create_task(service.use(ME, id, "ask", AskRequest()))
        gone = asyncio.create_task(service.use(ME, id, "ask", AskRequest()))
        await asyncio.sleep(0.01)
        gone.cancel()
        with pytest.raises(Unavailable, match="the service is busy"):
            await second
        release.set()
        assert (await first)[0]["id"] == 0
        await asyncio.sleep(0)

    asyncio.run(scenario())
    assert len(store.events(id)) == 1
    assert service.queues.size == 0


def test_a_tenant_without_room_may_still_look(store):
    service, id, _ = served(store)
    together(service, id, ("tell", Tell(x=[0.5], value=1.0)))
    full = Service(store, Settings(bytes=1))
    full.queues.pool = Near()
    told, looked = together(full, id, ("tell", Tell(x=[0.5], value=1.0)), ("recommend", None))
    assert isinstance(told, TooLarge)
    assert looked["mean"] == 1.0


def test_a_study_that_is_gone_is_gone_for_all_who_wait(store):
    service, id, _ = served(store)
    store.delete("a", id)
    found = together(service, id, ("ask", AskRequest()), ("tell", Tell(x=[0.5], value=1.0)))
    assert [type(one) for one in found] == [NotFound, NotFound]


class TestCallers:
    def test_tokens_are_read_together_and_after_the_request_came(self, store):
        one, two = (tokens.create(store, tenant, "t", "write")["token"] for tenant in "ab")
        service, reads = Service(store, Settings()), []
        real = store.tokens_named

        def read(ids):
            reads.append(ids)
            return real(ids)

        store.tokens_named = read

        async def scenario():
            ask = service.callers.caller
            first = asyncio.create_task(ask(one))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            rest = await asyncio.gather(*[ask(token) for token in (one, two) * 10], return_exceptions=True)
            assert (await first).tenant == "a"
            assert [caller.tenant for caller in rest] == ["a", "b"] * 10
            store.revoke(tokens.id_of(one))
            for wrong in (one, two[:-1] + ("x" if two[-1] != "x" else "y"), "sf_0", ""):
                with pytest.raises(SurefootError, match="this token is not valid"):
                    await ask(wrong)

        asyncio.run(scenario())
        assert len(reads) <= 4  # of 21 callers and two more

    def test_a_database_that_is_away_is_said_to_all(self, store):
        service = Service(store, Settings())

        def read(_):
            raise Unavailable("the database does not answer")

        store.tokens_named = read
        token = f"sf_{'0' * 16}_{'x' * 43}"

        async def scenario():
            return await asyncio.gather(*[service.callers.caller(token) for _ in range(3)], return_exceptions=True)

        assert all(isinstance(one, Unavailable) for one in asyncio.run(scenario()))
