"""Who may do what, and what hostile requests get: the right status, nothing stored, nothing given away."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import logging
import socket
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import httpx
import numpy as np
import pytest
import sqlalchemy as sa

import surefoot
from surefoot import Box, Client
from surefoot.errors import MissingExtra
from surefoot.serve import Conflict, NotFound, ServiceError, Settings, Store, Unauthorized, create_app, pages, tokens
from surefoot.serve.logs import JsonLines
from surefoot.serve.tables import events, studies
from surefoot.serve.tables import tokens as token_table

STUDY = {"name": "beam", "policy": "SobolSearch", "domain": {"domain": "Box", "bounds": [[0.0, 1.0]]}, "seed": 0}
HOSTILE = [
    "'; DROP TABLE studies; --",
    '" OR 1=1 --',
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "../../../etc/passwd",
    "%s%n{0}{__class__}",
    "Ünïcödé 测量 🧪",
]
HALF = {"type": "http.request", "body": b'{"name": ', "more_body": True}


@pytest.fixture
def send(server):
    with httpx.Client(
        timeout=60.0,
        base_url=f"{server.url}/api/v1",
        headers={"Authorization": f"Bearer {server.token(tenant='secure')}"},
    ) as made:
        yield made


def stored(server) -> tuple[int, int, int]:
    """How many tokens, studies and events there are."""
    with server.store.reading() as connection:
        return tuple(
            connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()
            for table in (token_table, studies, events)
        )


def harmless(answer: httpx.Response) -> None:
    """An error says what is wrong, and nothing of how the service is made."""
    body = answer.json()
    assert set(body) == {"error", "detail"}
    for secret in ("Traceback", "sqlalchemy", "psycopg", "site-packages", ".py", "SELECT", "INSERT"):
        assert secret not in answer.text
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


ROUTES = [
    ("GET", "/studies"),
    ("POST", "/studies"),
    ("GET", "/studies/ID"),
    ("DELETE", "/studies/ID"),
    ("POST", "/studies/ID/ask"),
    ("POST", "/studies/ID/tell"),
    ("POST", "/studies/ID/tell-many"),
    ("POST", "/studies/ID/report"),
    ("POST", "/studies/ID/cancel"),
    ("POST", "/studies/ID/renew"),
    ("GET", "/studies/ID/leases"),
    ("POST", "/studies/ID/close"),
    ("GET", "/studies/ID/recommend"),
    ("GET", "/studies/ID/trace"),
    ("GET", "/studies/ID/view"),
    ("GET", "/tokens"),
    ("POST", "/tokens"),
    ("DELETE", "/tokens/ID"),
    ("GET", "/outsourced"),
    ("POST", "/outsourced"),
    ("GET", "/outsourced/ID"),
    ("DELETE", "/outsourced/ID"),
    ("PUT", "/outsourced/ID/chunks/0"),
    ("POST", "/outsourced/ID/start"),
    ("POST", "/outsourced/ID/ask"),
    ("POST", "/outsourced/ID/answer"),
    ("POST", "/outsourced/ID/close"),
    ("GET", "/metrics"),
]
BODIES = {
    "tell": {"query": 0, "value": 1.0},
    "tell-many": {"tells": [{"query": 0, "value": 1.0}]},
    "report": {"query": 0, "step": 1, "value": 1.0},
    "cancel": {"query": 0},
    "renew": {"queries": [0]},
    "chunks/0": {"rows": "AAAAAAAA8D8="},
    "start": {"release": {}, "sha256": "0" * 64},
    "answer": {"step": 0, "value": 1.0},
}


def body_of(method: str, path: str):
    if method in ("GET", "DELETE"):
        return None
    return next((body for end, body in BODIES.items() if path.endswith(end)), {})


class Singular(surefoot.SobolSearch):
    """Has trouble with numbers; a policy of this program, which the service runs here."""

    def _choose(self, step, context):
        raise np.linalg.LinAlgError("Singular matrix")


class TestTokens:
    def test_every_route_is_listed_here(self, server):
        paths = httpx.get(f"{server.url}/openapi.json").json()["paths"]
        known = {(method.upper(), path) for path, methods in paths.items() for method in methods}
        assert {
            (
                method,
                "/api/v1" + path.replace("ID", "{run}" if "outs" in path else "{id}").replace("chunks/0", "chunks/{k}"),
            )
            for method, path in ROUTES
        } | {("GET", "/api/v1/health"), ("GET", "/api/v1/ready")} == known

    @pytest.mark.parametrize(
        "header", [None, "Bearer", "Bearer sf_0000000000000000_" + "A" * 43, "Basic dXNlcjpwYXNz", "Bearer \xff\xfe"]
    )
    def test_nothing_without_a_token(self, server, header):
        headers = {} if header is None else {"Authorization": header.encode("latin-1")}
        before = stored(server)
        with httpx.Client(timeout=60.0, base_url=f"{server.url}/api/v1", headers=headers) as send:
            for method, path in ROUTES:
                answer = send.request(method, path.replace("ID", "0" * 32), json=body_of(method, path))
                assert answer.status_code == 401, path
                assert answer.headers["WWW-Authenticate"] == "Bearer"
                harmless(answer)
        assert stored(server) == before

    def test_a_stranger_finds_nothing(self, server, send):
        stranger = httpx.Client(
            timeout=60.0,
            base_url=f"{server.url}/api/v1",
            headers={"Authorization": f"Bearer {server.token(tenant='stranger')}"},
        )
        ids = {
            "studies": send.post("/studies", json=STUDY).json()["id"],
            "outsourced": send.post("/outsourced", json={"name": "x", "asks": 3}).json()["id"],
            "tokens": send.post("/tokens", json={"name": "x", "scope": "read"}).json()["id"],
        }
        send.post(f"/studies/{ids['studies']}/ask", json={})
        before = stored(server)
        for method, path in ROUTES:
            if "ID" in path:
                id, body = ids[path.split("/")[1]], body_of(method, path)
                answer = stranger.request(method, path.replace("ID", id), json=body)
                none = stranger.request(method, path.replace("ID", "0" * 32), json=body)
                assert answer.status_code == 404, path
                assert answer.json() == none.json()  # somebody else's looks like nobody's
                harmless(answer)
        assert stored(server) == before
        assert send.get("/tokens").json()["tokens"][-1]["revoked"] is None

    def test_scopes(self, server):
        with Client(server.url, token=server.token(tenant="scopes", scope="write")) as writer:
            id = writer.create("beam", Box([(0.0, 1.0)]), policy="SobolSearch").id
        for scope, may in (("read", 200), ("write", 200)):
            headers = {"Authorization": f"Bearer {server.token(tenant='scopes', scope=scope)}"}
            assert httpx.get(f"{server.url}/api/v1/studies/{id}", headers=headers).status_code == may
            asked = httpx.post(f"{server.url}/api/v1/studies/{id}/ask", headers=headers, json={})
            assert asked.status_code == (403 if scope == "read" else 200)
            made = httpx.post(f"{server.url}/api/v1/tokens", headers=headers, json={"name": "x", "scope": "admin"})
            assert made.status_code == 403
            assert httpx.get(f"{server.url}/api/v1/metrics", headers=headers).status_code == 403
            harmless(made)

    def test_a_revoked_token_is_worthless_at_once(self, server, send):
        made = send.post("/tokens", json={"name": "the cluster", "scope": "write"}).json()
        assert set(made) == {"id", "tenant", "name", "scope", "created", "expires", "revoked", "token"}
        client = Client(server.url, token=made["token"])
        client.create("beam", Box([(0.0, 1.0)]), policy="SobolSearch")
        assert send.delete(f"/tokens/{made['id']}").status_code == 204
        with pytest.raises(Unauthorized, match="not valid"):
            client.studies()
        listed = {row["id"]: row for row in send.get("/tokens").json()["tokens"]}
        assert listed[made["id"]]["revoked"] is not None
        assert "token" not in listed[made["id"]]
        assert send.delete("/tokens/0000").status_code == 404

    def test_secrets_are_not_kept(self, tmp_path):
        store = Store(f"sqlite:///{tmp_path / 'service.db'}")
        store.migrate()
        made = tokens.create(store, "a", "n", "admin")
        secret = made["token"].split("_", 2)[2]
        store.close()
        content = b"".join(path.read_bytes() for path in tmp_path.iterdir())
        assert made["id"].encode() in content
        assert secret.encode() not in content


class TestHostileRequests:
    @pytest.mark.parametrize("name", HOSTILE)
    def test_names_are_only_text(self, server, send, name):
        made = send.post("/studies", json={**STUDY, "name": name})
        assert made.status_code == 201
        assert made.headers["Content-Type"] == "application/json"
        assert send.get(f"/studies/{made.json()['id']}").json()["name"] == name
        assert stored(server)[1] >= 1  # the table is still there

    @pytest.mark.parametrize(
        "path",
        [
            "/studies/..%2f..%2fetc%2fpasswd",
            "/studies/%00",
            "/studies/' OR '1'='1",
            "/studies/%F0%9F%A7%AA",
            "/tokens/%00",
        ],
    )
    def test_ids_that_are_none(self, send, path):
        answer = send.request("DELETE", path)
        assert answer.status_code == 404
        harmless(answer)

    @pytest.mark.parametrize(
        "path",
        [
            "/assets/../../app.py",
            "/assets/..%2f..%2fapp.py",
            "/assets/%2e%2e/%2e%2e/store.py",
            "/assets//etc/passwd",
            "/../../etc/passwd",
            "/static/index.html",
            "/assets/%00",
        ],
    )
    def test_files_outside_are_out_of_reach(self, sqlite_server, path):
        connection = http.client.HTTPConnection("127.0.0.1", sqlite_server.port)  # sends the path as it is
        connection.request("GET", path)
        answer = connection.getresponse()
        assert answer.status in (400, 404)
        assert b"import" not in answer.read()
        connection.close()

    @pytest.mark.parametrize(
        ("body", "said"),
        [
            (b'{"query": 0, "value": NaN}', "NaN is not JSON"),
            (b'{"query": 0, "value": Infinity}', "Infinity is not JSON"),
            (b'{"query": 0, "value": -Infinity}', "-Infinity is not JSON"),
            (b'{"query": 0, "value": 1e400}', "a number is too large"),
            (b'{"query": 0, "value": ' + b"9" * 5000 + b"}", "a number is too large"),
            (b'{"query": 0, "value": "1.0"}', "value"),
            (b'{"query": 0, "value": true}', "value"),
            (b'{"query": 0.5, "value": 1.0}', "query"),
            (b'{"query": -1, "value": 1.0}', "query"),
            (b'{"query": 0, "value": 1.0, "more": 1}', "more"),
            (b'{"query": 0, "x": [0.5], "value": 1.0}', "exactly one of"),
            (b'{"query": 0, "value": 1.0, "noise": -1.0}', "noise"),
            (b'{"query": 0, "value": 1.0', "not JSON"),
            (b"\xff\xfe", "UTF-8"),
            (b'{"params": {"a": "\\ud800"}, "value": 1.0}', "UTF-8"),
            (b'{"params": {"a": "\\u0000"}, "value": 1.0}', "null character"),
            (b"[" * 2000 + b"]" * 2000, "nested too deeply"),
            (b"[" * 60 + b"]" * 60, "nested too deeply"),
            (b"", "body"),
            (b"null", "body"),
        ],
    )
    def test_bodies_that_are_not_understood(self, server, send, body, said):
        id = send.post("/studies", json=STUDY).json()["id"]
        send.post(f"/studies/{id}/ask", json={})
        before = stored(server)
        answer = send.post(f"/studies/{id}/tell", content=body, headers={"Content-Type": "application/json"})
        assert answer.status_code == 422
        assert said in answer.json()["detail"]
        harmless(answer)
        assert stored(server) == before

    @pytest.mark.parametrize(
        "change",
        [
            {"policy": "os:system"},
            {"policy": "Policy"},
            {"policy": "Client"},
            {"policy": "__class__"},
            {"domain": {"domain": "Box"}},
            {"domain": {"domain": "Box", "bounds": "x"}},
            {"domain": {"domain": "Candidates", "sha256": "0" * 64, "shape": [1, 1]}},
            {"domain": {"domain": "Candidates", "points": [[1.0], [1.0, 2.0]]}},
            {"domain": {"domain": "os"}},
            {"domain": None},
            {"space": {"a": {"type": "float"}}},
            {"options": {"no_such_option": 1}},
            {"options": {"journal": "/tmp/x.jsonl"}},
            {"options": {"seed": 3}},
            {"options": {"gp": {"$type": "os", "value": {}}}, "policy": "GPUCB"},
            {"options": {"gp": {"$type": "GP", "value": {}}}, "policy": "GPUCB"},
            {"options": {"gp": {"$code": "print"}}, "policy": "GPUCB"},
            {"options": {"gp": {"$type": "Policy", "value": {"policy": "GPUCB"}}}, "policy": "GPUCB"},
            {"direction": "sideways"},
            {"seed": -1},
            {"name": ""},
            {"name": "x" * 201},
            {"name": "line\nbreak"},
        ],
    )
    def test_studies_that_cannot_be(self, server, send, change):
        before = stored(server)
        answer = send.post("/studies", json={**STUDY, **change})
        assert answer.status_code == 422, answer.text
        assert set(answer.json()) == {"error", "detail"}
        assert stored(server) == before

    def test_too_large_is_refused_before_it_is_read(self, server):
        """Neither a declared length nor an endless stream is read to its end."""
        token = server.token()
        before = stored(server)
        head = f"POST /api/v1/studies HTTP/1.1\r\nHost: here\r\nAuthorization: Bearer {token}\r\n"
        for rest, send_all in (
            ("Content-Length: 999999999999\r\n\r\n", False),
            ("Transfer-Encoding: chunked\r\n\r\n", True),
        ):
            with socket.create_connection(("127.0.0.1", server.port), timeout=20) as connection:
                connection.sendall((head + rest).encode())
                if send_all:
                    piece = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
                    for _ in range(4 * 1024 * 1024 // 0x10000 + 2):
                        connection.sendall(piece)
                assert connection.recv(64).startswith(b"HTTP/1.1 413")
        assert stored(server) == before

    @pytest.mark.parametrize(
        ("arriving", "status", "said"),
        [
            ([], 408, "the request was not here after"),
            ([HALF], 408, "the request was not here after"),
            ([HALF, {"type": "http.disconnect"}], 422, "this is not JSON"),
        ],
        ids=["nothing", "half", "hung up"],
    )
    def test_a_body_that_does_not_arrive(self, tmp_path, arriving, status, said):
        store = Store(f"sqlite:///{tmp_path / 'service.db'}")
        store.migrate()
        token = tokens.create(store, "a", "n", "admin")["token"]
        scope = {"type": "http", "method": "POST", "path": "/api/v1/studies", "query_string": b""}
        scope["headers"] = [(b"authorization", f"Bearer {token}".encode()), (b"content-type", b"application/json")]
        messages, sent = iter(arriving), []

        async def receive():
            if (message := next(messages, None)) is None:
                await asyncio.Event().wait()
            return message

        async def send(message):
            sent.append(message)

        asyncio.run(create_app(store, Settings(body_seconds=0.05))(scope, receive, send))
        assert sent[0]["status"] == status
        assert said in json.loads(sent[1]["body"])["detail"]
        assert ((b"connection", b"close") in sent[0]["headers"]) == (status == 408)
        assert store.studies("a") == []
        store.close()

    def test_trouble_with_numbers_is_a_bug_and_not_the_caller_s(self, tmp_path, caplog):
        store = Store(f"sqlite:///{tmp_path / 'service.db'}")
        store.migrate()
        headers = {"Authorization": f"Bearer {tokens.create(store, 'a', 'n', 'write')['token']}"}

        async def scenario():
            transport = httpx.ASGITransport(app=create_app(store))
            async with httpx.AsyncClient(transport=transport, base_url="http://here/api/v1", headers=headers) as http:
                id = (await http.post("/studies", json={**STUDY, "policy": "Singular"})).json()["id"]
                return id, await http.post(f"/studies/{id}/ask", json={})

        with caplog.at_level("INFO", logger="surefoot.serve"):
            id, answer = asyncio.run(scenario())
        assert (answer.status_code, answer.json()["error"]) == (500, "Bug")  # a ValueError by inheritance only
        harmless(answer)
        bug = next(record for record in caplog.records if record.message == "bug")
        assert bug.fields["exception"] == "LinAlgError"
        assert store.study("a", id)["version"] == 0
        store.close()

    def test_a_bug_tells_nobody_anything(self, tmp_path, caplog):
        store = Store(f"sqlite:///{tmp_path / 'service.db'}")
        store.migrate()
        app = create_app(store)
        headers = {"Authorization": f"Bearer {tokens.create(store, 'a', 'n', 'admin')['token']}"}

        def fails(*_given, **_options):
            raise KeyError("the patient's name")

        store.studies = fails

        async def scenario():
            async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://here") as http:
                return await http.get("/api/v1/studies", headers=headers)

        with caplog.at_level("INFO", logger="surefoot.serve"):
            answer = asyncio.run(scenario())
        assert answer.status_code == 500
        harmless(answer)
        bug = next(record for record in caplog.records if record.message == "bug")
        assert bug.fields["exception"] == "KeyError"
        assert answer.headers["X-Request-Id"] == bug.fields["request"]
        assert "patient" not in answer.text + caplog.text + str(bug.fields)


class TestWhatTheOperatorSees:
    def test_logs_are_json_lines_without_data(self, sqlite_server):
        with Client(sqlite_server.url, token=sqlite_server.token(tenant="logs")) as client:
            study = client.create("a secret study", Box([(0.0, 1.0)]), policy="SobolSearch", seed=0)
            study.tell([0.123456], 987.654321)
            with pytest.raises(ValueError):
                study.tell([5.5555], 1.0)
        text = sqlite_server.log.read_text()
        lines = [json.loads(line) for line in text.splitlines()]
        assert any(line.get("route") == "/studies/{id}/tell" and line["status"] == 422 for line in lines)
        for value in ("0.123456", "987.654321", "5.5555", "a secret study", study.id):
            assert value not in text

    def test_an_exception_is_logged_without_what_it_quotes(self):
        try:
            raise ValueError("the patient's name")
        except ValueError:
            record = logging.LogRecord("surefoot", logging.ERROR, "", 0, "failed", (), sys.exc_info())
        line = JsonLines().format(record)
        assert json.loads(line)["exception"] == "ValueError"
        assert "test_an_exception_is_logged" in json.loads(line)["places"][-1]
        assert "patient" not in line

    def test_an_installation_without_the_page_says_where_the_service_is(self, monkeypatch, tmp_path):
        monkeypatch.setattr(pages, "FOLDER", tmp_path)

        async def scenario():
            transport = httpx.ASGITransport(app=create_app(Store("sqlite://")))
            async with httpx.AsyncClient(transport=transport, base_url="http://here") as http:
                return await http.get("/")

        answer = asyncio.run(scenario())
        assert answer.status_code == 404
        assert "the API is at /api/v1" in answer.text

    def test_metrics(self, sqlite_server):
        headers = {"Authorization": f"Bearer {sqlite_server.token(scope='operator')}"}
        httpx.get(f"{sqlite_server.url}/api/v1/health")
        text = httpx.get(f"{sqlite_server.url}/api/v1/metrics", headers=headers).text
        assert 'surefoot_requests_total{method="GET",route="/health",status="200"}' in text
        assert 'surefoot_request_seconds_bucket{method="GET",route="/health",le="+Inf"}' in text

    def test_pages_are_only_their_own(self, sqlite_server):
        page = httpx.get(sqlite_server.url)
        policy = page.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self'" in policy
        assert "unsafe" not in policy
        assert page.status_code in (200, 404)
        api = httpx.get(f"{sqlite_server.url}/api/v1/health")
        assert api.headers["Content-Security-Policy"] == "default-src 'none'; frame-ancestors 'none'"
        assert api.headers["Cache-Control"] == "no-store"
        assert httpx.get(f"{sqlite_server.url}/docs").status_code == 404
        assert "server" not in api.headers

    def test_errors_of_the_client(self, sqlite_server):
        with pytest.raises(NotFound):
            Client(sqlite_server.url, token=sqlite_server.token()).study("f" * 32)
        with pytest.raises(ValueError, match="is not the id of a study"):
            Client(sqlite_server.url, token="x").study("../tokens")
        with pytest.raises(surefoot.SurefootError, match="cannot be reached"):
            Client("http://127.0.0.1:9", token="x", retries=0).health()
        for retries in (-1, 1.5, "2"):
            with pytest.raises(ValueError, match="retries must be a whole number from 0 on"):
                Client(sqlite_server.url, token="x", retries=retries)

    @pytest.mark.parametrize(
        ("status", "kind"),
        [
            (401, Unauthorized),
            (403, Unauthorized),
            (404, NotFound),
            (409, Conflict),
            (500, ServiceError),
            (502, ServiceError),
        ],
    )
    @pytest.mark.parametrize("page", [b"<html>Something in between</html>", b"[1]", b'{"error": "Nonsense"}', b""])
    def test_what_somebody_else_answers_is_an_error_with_its_status(self, status, kind, page):
        said = pytest.raises(ServiceError, match=f"the service answered with status {status}")
        with answering(status, page) as url, Client(url, token="x", retries=0) as client, said as refused:
            client.health()
        assert type(refused.value) is kind
        assert refused.value.status == status

    def test_without_httpx_the_client_says_what_to_install(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "httpx", None)
        with pytest.raises(MissingExtra, match=r"needs httpx: pip install 'surefoot\[serve\]'"):
            Client("http://127.0.0.1:9", token="x")


@contextlib.contextmanager
def answering(status: int, page: bytes):
    """The address of something that is not the service, and answers every request alike."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(status)
            self.send_header("Content-Length", str(len(page)))
            self.end_headers()
            self.wfile.write(page)

        def log_message(self, *_given):
            pass

    with HTTPServer(("127.0.0.1", 0), Page) as other:
        thread = threading.Thread(target=other.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{other.server_port}"
        finally:
            other.shutdown()
            thread.join()
