"""Outsourced runs: a release goes up in parts, row numbers come back, and nothing is measured twice."""

from __future__ import annotations

import base64
import hashlib

import httpx
import numpy as np
import pytest

from surefoot import Client
from surefoot.errors import BudgetSpent
from surefoot.private.guarantee import Guarantee
from surefoot.private.messages import Answer, Close, Release
from surefoot.private.modeler import Modeler
from surefoot.serve import Conflict, remote_run

ROWS = np.random.default_rng(0).random((40, 2))


def release(asks: int = 6, rows=ROWS) -> Release:
    return Release("loans", rows, noise=0.1, asks=asks, guarantee=Guarantee(mechanism="GaussianRelease"))


def value_of(index: int) -> float:
    return -float(((ROWS[index] - 0.4) ** 2).sum())


@pytest.fixture
def client(server):
    with Client(server.url, token=server.token(tenant="owner")) as made:
        yield made


@pytest.fixture
def send(server):
    with httpx.Client(
        base_url=f"{server.url}/api/v1", headers={"Authorization": f"Bearer {server.token(tenant='owner')}"}
    ) as made:
        yield made


def test_the_service_is_the_modeler(client, monkeypatch):
    monkeypatch.setattr(remote_run, "_PART", 100)  # several parts, none of them whole rows
    run = client.outsource("loans", release(), seed=0)
    home = Modeler(release(), seed=0)
    assert run.info()["rows"] == 40
    for _ in range(6):
        ask = run.ask()
        assert ask == home.ask() == run.ask()  # the same until it is answered
        answer = Answer(ask.run, ask.step, value_of(ask.index))
        run.tell(answer)
        run.tell(answer)  # again: nothing changes
        home.tell(answer)
        with pytest.raises(Conflict, match="already answered"):
            run.tell(Answer(ask.run, ask.step, 17.0))
    with pytest.raises(BudgetSpent):
        run.ask()
    again = client.outsourced(run.id)
    assert again.close() == home.close() == again.close()
    info = run.info()
    assert (info["state"], info["answered"], info["events"]) == ("closed", 6, 12)
    with pytest.raises(Conflict, match="closed"):
        run.ask()


def test_failed_measurements_and_an_early_close(client):
    run = client.outsource("loans", release(), policy="RandomSearch", seed=0)
    ask = run.ask()
    run.tell(Answer(ask.run, ask.step, None))
    assert run.close() == Close("loans", None)


def test_answers_that_do_not_fit_are_refused_and_change_nothing(client):
    run = client.outsource("loans", release(), policy="RandomSearch", seed=0)
    ask = run.ask()
    before = run.info()["events"]
    with pytest.raises(Conflict, match="this answer is for another run"):
        run.tell(Answer("other", ask.step, 1.0))
    with pytest.raises(ValueError, match="query 5 was not asked"):
        run.tell(Answer(ask.run, 5, 1.0))
    assert run.info()["events"] == before
    assert run.ask() == ask


def test_a_run_goes_on_until_no_ask_is_left(client):
    run = client.outsource("loans", release(asks=3), policy="RandomSearch", seed=0)
    asked = []

    def answer(ask):
        asked.append(ask.index)
        return Answer(ask.run, ask.step, value_of(ask.index))

    assert run.run(answer) == Close("loans", max(asked, key=value_of))
    assert len(asked) == 3
    assert run.info()["state"] == "closed"


def test_what_crosses_is_only_the_release(client, send):
    run = client.outsource("loans", release(), seed=0)
    ask = send.post(f"/outsourced/{run.id}/ask").json()
    assert set(ask) == {"schema", "message", "run", "step", "index"}
    assert send.post(f"/outsourced/{run.id}/answer", json={"step": ask["step"], "value": 1.0}).status_code == 200
    assert set(send.post(f"/outsourced/{run.id}/close").json()) == {"schema", "message", "run", "index"}
    listed = send.get("/outsourced").json()["runs"]
    assert run.id in [row["id"] for row in listed]
    assert run.id not in [row["id"] for row in send.get("/studies").json()["studies"]]
    assert send.get(f"/studies/{run.id}").status_code == 404
    assert send.delete(f"/outsourced/{run.id}").status_code == 204
    assert send.get(f"/outsourced/{run.id}").status_code == 404


class TestUploads:
    def begin(self, send, **changes):
        body = {"name": "loans", "asks": 6, **changes}
        return f"/outsourced/{send.post('/outsourced', json=body).json()['id']}"

    def test_a_release_must_be_whole(self, send):
        run = self.begin(send)
        wire = release().to_wire()
        content = base64.b64decode(wire.pop("rows"))
        start = {"release": wire, "sha256": hashlib.sha256(content).hexdigest()}
        assert send.post(f"{run}/ask").status_code == 409  # nothing is there yet
        assert send.post(f"{run}/start", json=start).status_code == 422
        halves = [base64.b64encode(part).decode() for part in (content[:320], content[320:])]
        assert send.put(f"{run}/chunks/0", json={"rows": halves[0]}).json() == {"part": 0, "numbers": 40}
        missing = send.post(f"{run}/start", json=start)
        assert (missing.status_code, "SHA-256" in missing.json()["detail"]) == (422, True)
        send.put(f"{run}/chunks/2", json={"rows": halves[1]})
        assert "without gaps" in send.post(f"{run}/start", json=start).json()["detail"]
        run = self.begin(send)
        for k, half in enumerate(halves * 2):  # sent twice, kept once
            send.put(f"{run}/chunks/{k % 2}", json={"rows": half})
        assert [send.post(f"{run}/start", json=start).status_code for _ in range(2)] == [200, 200]
        assert send.put(f"{run}/chunks/0", json={"rows": halves[0]}).status_code == 409
        other = {**start, "sha256": "0" * 64}
        assert send.post(f"{run}/start", json=other).status_code == 409

    @pytest.mark.parametrize("rows", ["not base64!", "AAAA", base64.b64encode(np.array([np.nan]).tobytes()).decode()])
    def test_rows_that_are_none(self, send, rows):
        assert send.put(f"{self.begin(send)}/chunks/0", json={"rows": rows}).status_code == 422

    def test_the_number_of_asks_is_the_same_on_both_sides(self, send):
        run = self.begin(send, asks=7)
        wire = release().to_wire()
        content = base64.b64decode(rows := wire.pop("rows"))
        send.put(f"{run}/chunks/0", json={"rows": rows})
        answer = send.post(f"{run}/start", json={"release": wire, "sha256": hashlib.sha256(content).hexdigest()})
        assert (answer.status_code, "asks" in answer.json()["detail"]) == (422, True)
        assert send.get(run).json()["state"] == "new"

    def test_a_release_has_a_largest_size(self, tmp_path):
        from surefoot.serve import Store
        from surefoot.serve.outsourced import Releases
        from surefoot.serve.schemas import Chunk, NewRun

        store = Store(f"sqlite:///{tmp_path / 'service.db'}")
        store.migrate()
        runs = Releases(store, largest=3)
        id = runs.create("a", NewRun(name="x", asks=1))["id"]
        two = Chunk(rows=base64.b64encode(np.ones(2).tobytes()).decode())
        runs.put("a", id, 0, two)
        with pytest.raises(ValueError, match="at most 3 numbers"):
            runs.put("a", id, 1, two)
        assert runs.described("a", id)["numbers"] == 2
        store.close()
