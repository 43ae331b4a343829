"""A request that is sent again before the first was answered: both get the same answer, and it is done once."""

from __future__ import annotations

import base64
import hashlib
import threading

import numpy as np
import pytest

from surefoot.private.messages import Release
from surefoot.serve import outsourced
from surefoot.serve.failures import Conflict
from surefoot.serve.live import Live
from surefoot.serve.outsourced import KIND, Releases
from surefoot.serve.schemas import Chunk, NewRun, Start
from surefoot.serve.store import Store

BOX = {"domain": "Box", "bounds": [[0.0, 1.0]]}


@pytest.fixture(params=["sqlite", "postgres"])
def store(request, tmp_path):
    if request.param == "sqlite":
        made = Store(f"sqlite:///{tmp_path / 'service.db'}")
    else:
        made = Store(request.getfixturevalue("postgres").database(f"at_once_{tmp_path.name.rstrip('_').lower()}"[:60]))
    made.migrate()
    yield made
    made.close()


def together(work, count: int = 4) -> list:
    """What each of several threads got that passed the first look at the database before any of them wrote."""
    found: list = []

    def one() -> None:
        try:
            found.append(work())
        except Exception as error:  # compared below
            found.append(error)

    threads = [threading.Thread(target=one) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


@pytest.fixture
def held(monkeypatch):
    """Makes a method of the store wait until so many callers have come through it."""

    def hold(method: str, count: int = 4) -> None:
        real, barrier, calls = getattr(Store, method), threading.Barrier(count), []

        def slow(self, *given, **named):
            answer = real(self, *given, **named)
            calls.append(1)
            if len(calls) <= count:
                barrier.wait(timeout=30)
            return answer

        monkeypatch.setattr(Store, method, slow)

    return hold


def test_a_study_is_begun_once(store, held):
    live = Live(store, cached=4)
    held("answered")
    made = together(lambda: live.create("physics", name="beam", policy="SobolSearch", domain=BOX, key="k"))
    assert len(set(made)) == 1
    assert [row["id"] for row in store.studies("physics")] == made[:1]
    with pytest.raises(Conflict, match="another request"):
        live.create("physics", name="other", policy="SobolSearch", domain=BOX, key="k")


def test_an_outsourced_run_is_begun_started_and_closed_once(store, held):
    runs = Releases(store, largest=1000)
    held("answered")
    made = together(lambda: runs.create("owner", NewRun(name="loans", policy="RandomSearch", asks=2, key="k"))["id"])
    assert len(set(made)) == 1
    id, wire = made[0], Release("loans", np.eye(3), asks=2).to_wire()
    content = base64.b64decode(rows := wire.pop("rows"))
    held("study")
    parts = together(lambda: runs.put("owner", id, 0, Chunk(rows=rows)))
    assert parts == [{"part": 0, "numbers": 9}] * 4
    body = Start(release=wire, sha256=hashlib.sha256(content).hexdigest())
    held("study")
    started = together(lambda: begun(runs, id, body))
    assert [one["state"] for one in started] == ["open"] * 4
    with pytest.raises(Conflict, match="another release"):
        runs.check("owner", id, Start(release=wire, sha256="0" * 64))

    live = Live(store, cached=1)

    def close() -> dict:
        message = live.use("owner", id, outsourced.close, kind=KIND, build=runs.build)
        if message is not None:
            runs.closed(id, message["index"])
        return runs.closing("owner", id)

    closed = [close(), close()]
    assert closed[0] == closed[1]
    assert closed[0]["index"] is None


def begun(runs: Releases, id: str, body: Start) -> dict:
    return (
        runs.check("owner", id, body) or runs.open("owner", id, body, seed="0") or runs.check("owner", id, body) or {}
    )
