"""Every successful answer has exactly the fields that the OpenAPI document lists, of the listed types."""

from __future__ import annotations

import base64
import hashlib

import numpy as np
import pytest
from pydantic import TypeAdapter
from starlette.routing import Match

from surefoot import Box, Candidates, Choice, Dives, Float, Int, Paths, Space
from surefoot.private.messages import Release
from surefoot.serve import outsourced_routes, study_routes, token_routes, tokens
from surefoot.serve.app import create_app
from surefoot.serve.store import Store

testclient = pytest.importorskip("fastapi.testclient")

ROUTES = [*study_routes.router.routes, *outsourced_routes.router.routes, *token_routes.router.routes]
SPACE = Space(rate=Float(1e-4, 1e-1, log=True), depth=Int(1, 9), kind=Choice(["a", "b"]))
FIELD = np.stack(np.meshgrid(np.arange(5.0), np.arange(5.0), indexing="ij"), axis=-1).reshape(-1, 2)


class Sender:
    """Sends requests to the application in this process, and checks each answer against the class of its route."""

    def __init__(self, folder) -> None:
        store = Store(f"sqlite:///{folder / 'answers.db'}")
        store.migrate()
        token = tokens.create(store, "physics", "test", "admin")["token"]
        self.http = testclient.TestClient(create_app(store), headers={"Authorization": f"Bearer {token}"})
        self.seen: set[str] = set()

    def __call__(self, method: str, path: str, body=None, status: int = 200):
        scope = {"type": "http", "method": method, "path": path.partition("?")[0], "headers": []}
        route = next(route for route in ROUTES if route.matches(scope)[0] is Match.FULL)
        self.seen.add(f"{method} {route.path}")
        answer = self.http.request(method, f"/api/v1{path}", json=body)
        assert answer.status_code == status, answer.text
        if status == 204:
            return None
        TypeAdapter(route.response_model).validate_json(answer.content, strict=True)
        return answer.json()


@pytest.fixture(scope="module")
def send(tmp_path_factory):
    return Sender(tmp_path_factory.mktemp("answers"))


def begin(send, domain, policy: str, **more) -> str:
    body = {"name": policy, "policy": policy, "domain": domain.to_dict(), "seed": 0, **more}
    return f"/studies/{send('POST', '/studies', body, 201)['id']}"


def test_studies_of_several_kinds(send):
    mixed = begin(send, SPACE, "GPUCB", direction="minimize")
    for query in send("POST", f"{mixed}/ask", {"n": 4})["queries"]:
        send("POST", f"{mixed}/tell", {"query": query["id"], "value": query["params"]["rate"]})
    send("POST", f"{mixed}/tell-many", {"tells": [{"params": {"rate": 0.01, "depth": 2, "kind": "a"}, "value": None}]})
    waiting = send("POST", f"{mixed}/ask", {"lease": 60.0, "worker": "bench 2"})["queries"][0]["id"]
    assert send("POST", f"{mixed}/renew", {"queries": [waiting, 0]}) == {"held": [waiting]}
    assert send("GET", f"{mixed}/leases")["leases"][0]["worker"] == "bench 2"
    send("GET", f"{mixed}/view")
    send("POST", f"{mixed}/cancel", {"query": waiting})
    assert send("GET", f"{mixed}/recommend")["kind"] == "point"
    assert "header" not in send("GET", f"{mixed}/trace")
    assert send("GET", f"{mixed}/trace?raw=true")["header"]["direction"] == "minimize"
    assert send("POST", f"{mixed}/close")["state"] == "closed"

    steps = begin(send, Box([(0.0, 1.0)]), "BOBOS", options={"epochs": 6})
    query = send("POST", f"{steps}/ask")["queries"][0]["id"]
    assert not send("POST", f"{steps}/report", {"query": query, "step": 1, "value": 0.5})["stop"]
    send("GET", f"{steps}/view")

    level = begin(send, Candidates(np.linspace(0.0, 1.0, 9)), "GPLSE", options={"threshold": 0.5})
    for _ in range(4):
        query = send("POST", f"{level}/ask")["queries"][0]
        send("POST", f"{level}/tell", {"query": query["id"], "value": query["x"][0]})
    assert send("GET", f"{level}/recommend")["kind"] == "level set"
    send("GET", f"{level}/view")

    way = begin(send, Paths(FIELD, Dives((5, 5), 2), start=12, budget=8), "MacroGPO", options={"horizon": 1})
    query = send("POST", f"{way}/ask")["queries"][0]
    assert np.shape(query["x"]) == (2, 2)
    send("POST", f"{way}/tell", {"query": query["id"], "value": [1.0, None]})

    assert len(send("GET", "/studies?limit=2")["studies"]) == 2
    send("GET", mixed)
    send("DELETE", mixed, status=204)


def test_outsourced_runs(send):
    rows = np.random.default_rng(0).random((6, 2))
    wire = Release("loans", rows, asks=2).to_wire()
    content = base64.b64decode(wire.pop("rows"))
    run = f"/outsourced/{send('POST', '/outsourced', {'name': 'loans', 'asks': 2, 'seed': 0}, 201)['id']}"
    send("PUT", f"{run}/chunks/0", {"rows": base64.b64encode(content).decode()})
    send("POST", f"{run}/start", {"release": wire, "sha256": hashlib.sha256(content).hexdigest()})
    send("POST", f"{run}/answer", {"step": send("POST", f"{run}/ask")["step"], "value": 1.0})
    assert send("POST", f"{run}/close") == send("POST", f"{run}/close")
    assert send("GET", run)["state"] == "closed"
    send("GET", "/outsourced")
    send("DELETE", run, status=204)


def test_tokens(send):
    made = send("POST", "/tokens", {"name": "reader", "scope": "read"}, 201)
    assert made["token"].startswith("sf_")
    assert "token" not in send("GET", "/tokens")["tokens"][0]
    send("DELETE", f"/tokens/{made['id']}", status=204)


def test_no_route_was_left_out(send):
    if len(send.seen) < 20:
        pytest.skip("needs the tests before it")
    assert send.seen == {f"{method} {route.path}" for route in ROUTES for method in route.methods}
