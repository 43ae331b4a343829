"""What anybody can do to the service who has no token, or who has one and sends nonsense: nothing others notice."""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
import socket
import ssl
import subprocess
import threading

import httpx
import pytest
from fastapi.exceptions import RequestValidationError
from pydantic import TypeAdapter
from running import Server

from surefoot import Client
from surefoot.serve import Settings, Store, bodies, create_app, tokens
from surefoot.serve.listener import Door, Guest
from surefoot.serve.listener import Server as Listening
from surefoot.serve.schemas import TellMany

BOX = {"domain": "Box", "bounds": [[0.0, 1.0]]}
LARGE = 4 * 1024 * 1024
BOMBS = {
    "lists": b"[" + b"[]," * (LARGE // 3 - 2) + b"[]]",
    "floats": b"[" + b"0.5," * (LARGE // 4 - 2) + b"1]",
    "deep": b"[" * (LARGE // 2) + b"]" * (LARGE // 2),
    "names": b"{" + b'"a":1,' * (LARGE // 6 - 2) + b'"a":1}',
    "digits": b'{"query":' + b"9" * (LARGE - 50) + b"}",
    "text": b'{"query":"' + b"\\u0041" * (LARGE // 6 - 20) + b'"}',
}


def whole(connection: socket.socket) -> bytes:
    """What arrives until the other side hangs up."""
    parts = []
    with contextlib.suppress(ConnectionResetError):
        while part := connection.recv(65536):
            parts.append(part)
    return b"".join(parts)


def head(token: str = "", more: str = "") -> bytes:
    who = f"Authorization: Bearer {token}\r\n" if token else ""
    return f"POST /api/v1/studies HTTP/1.1\r\nHost: here\r\n{who}{more}\r\n".encode()


def healthy(server: Server, times: int = 5) -> None:
    for _ in range(times):
        assert httpx.get(f"{server.url}/api/v1/health", timeout=30.0, verify=False).status_code == 200


class TestBodies:
    # Finding 4 of the review of 0.1.0
    @pytest.mark.parametrize("token", ["", "sf_0000000000000000_" + "A" * 43])
    @pytest.mark.parametrize("more", [f"Content-Length: {LARGE}\r\n", "Transfer-Encoding: chunked\r\n"])
    def test_whoever_has_no_token_is_answered_before_a_body_is_there(self, server, token, more):
        with socket.create_connection(("127.0.0.1", server.port), timeout=20) as connection:
            connection.sendall(head(token, more))
            answer = whole(connection)  # not a byte of the body was sent
        assert answer.startswith(b"HTTP/1.1 401")
        assert b"connection: close" in answer.lower()
        assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"] == "Unauthorized"

    # Finding 4 of the review of 0.1.0
    @pytest.mark.parametrize("bomb", BOMBS)
    def test_a_body_without_a_token_is_not_parsed_and_the_answer_arrives(self, sqlite_server, bomb):
        with socket.create_connection(("127.0.0.1", sqlite_server.port), timeout=20) as connection:
            connection.sendall(head(more=f"Content-Length: {len(BOMBS[bomb])}\r\n") + BOMBS[bomb])
            answer = whole(connection)
        assert answer.startswith(b"HTTP/1.1 401")
        assert b"a token is needed" in answer

    # Finding 4 of the review of 0.1.0
    @pytest.mark.parametrize("bomb", BOMBS)
    def test_long_bodies_are_never_parsed_on_the_event_loop(self, tmp_path, monkeypatch, bomb):
        """Not by the service, nor by what it is made of."""
        store = Store(f"sqlite:///{tmp_path / 'service.db'}")
        store.migrate()
        headers = {"Authorization": f"Bearer {tokens.create(store, 'a', 'n', 'write')['token']}"}
        headers["Content-Type"] = "application/json"
        here, seen, loads = threading.get_ident(), [], json.loads

        def watched(text, **options):
            if len(text) > 10_000:
                seen.append(threading.get_ident())
            return loads(text, **options)

        monkeypatch.setattr(json, "loads", watched)

        async def scenario():
            transport = httpx.ASGITransport(app=create_app(store))
            async with httpx.AsyncClient(transport=transport, base_url="http://here", headers=headers) as http:
                return await http.post("/api/v1/studies", content=BOMBS[bomb])

        answer = asyncio.run(scenario())
        assert answer.status_code in (413, 422)
        assert set(answer.json()) == {"error", "detail"}
        assert here not in seen
        assert seen or b"at most 262144 values" in answer.content
        store.close()

    def test_what_is_wrong_with_ten_thousand_tells_is_said_of_a_few(self):
        body = json.dumps({"tells": [{"query": -1, "value": "x"}] * 10_000}).encode()
        with pytest.raises(RequestValidationError) as refused:
            bodies._checked(body, 10**6, TypeAdapter(TellMany))
        assert len(refused.value.errors()) == 10
        assert refused.value.errors()[0]["loc"][:3] == ("body", "tells", 0)

    def test_a_tenant_sends_few_large_bodies_at_once(self, sqlite_server):
        """Whoever is slow to send them fills no memory; small ones, and other tenants, are not held up."""
        length = "Content-Length: 1000000\r\nContent-Type: application/json\r\n"
        mine, other = sqlite_server.token(tenant="large"), sqlite_server.token(tenant="other large")
        with contextlib.ExitStack() as stack:
            slow = [stack.enter_context(socket.create_connection(("127.0.0.1", sqlite_server.port))) for _ in range(4)]
            for one in slow:
                one.sendall(head(mine, length) + b"{")
            answers = {}
            for token in (mine, other):
                headers = {"Authorization": f"Bearer {token}"}
                url = f"{sqlite_server.url}/api/v1/studies"
                for size in (10, 1_000_000):
                    answers[token, size] = httpx.post(url, headers=headers, json={"name": "x" * size}, timeout=30.0)
        assert answers[mine, 1_000_000].status_code == 429
        assert answers[mine, 1_000_000].headers["Retry-After"] == "1"
        assert {answers[key].status_code for key in answers if key != (mine, 1_000_000)} == {422}

    def test_what_needs_no_token_takes_no_body(self, sqlite_server):
        for path in ("/", "/api/v1/health", "/api/v1/openapi.json", "/openapi.json"):
            assert httpx.get(f"{sqlite_server.url}{path}").status_code == 200
            answer = httpx.request("GET", f"{sqlite_server.url}{path}", content=b"x" * 100_000)
            assert answer.status_code == 413
            assert answer.json()["detail"] == "this request takes no body"

    def test_who_guesses_tokens_waits_and_nobody_else_does(self, tmp_path, monkeypatch):
        store = Store(f"sqlite:///{tmp_path / 'service.db'}")
        store.migrate()
        good = tokens.create(store, "a", "n", "read")["token"]
        waited, sleep = [], asyncio.sleep

        async def scenario():
            async def counted(seconds, *given):
                waited.append(seconds)
                await sleep(0)

            monkeypatch.setattr("surefoot.serve.guard.asyncio.sleep", counted)
            transport = httpx.ASGITransport(app=create_app(store))
            async with httpx.AsyncClient(transport=transport, base_url="http://here/api/v1") as http:
                for _ in range(230):
                    answer = await http.get("/studies", headers={"Authorization": f"Bearer {good[:-1]}"})
                    assert answer.status_code == 401
                assert max(waited[:200]) == 0.0
                assert min(waited[-5:]) > 0.0
                waited.clear()
                answer = await http.get("/studies", headers={"Authorization": f"Bearer {good}"})
                assert (answer.status_code, waited) == (200, [])

        asyncio.run(scenario())
        store.close()


class TestConnections:
    # Finding 4 of the review of 0.1.0
    @pytest.mark.parametrize("database", ["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
    def test_half_open_connections_and_half_sent_heads_keep_nobody_out(self, database, tmp_path, request):
        """Four hundred on which nothing arrives, a thousand with half a head, where 256 descriptors are allowed."""
        url = f"sqlite:///{tmp_path / 'service.db'}"
        if database == "postgres":
            url = request.getfixturevalue("postgres").database("strangers")
        with Server(url, tmp_path, descriptors=256) as server, contextlib.ExitStack() as stack:
            half = head(more="X-Slow: ")[:-2]
            for number in range(1400):
                one = stack.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=20))
                if number >= 400:
                    with contextlib.suppress(OSError):  # it was sent away already
                        one.sendall(half)
                if number % 200 == 199:
                    healthy(server, 1)
            healthy(server)
            token = server.token()
            listed = httpx.get(f"{server.url}/api/v1/studies", headers={"Authorization": f"Bearer {token}"})
            assert listed.status_code == 200
            assert "no descriptors are left" not in server.log.read_text()

    # Finding 4 of the review of 0.1.0
    def test_a_handshake_that_is_never_finished_keeps_nobody_out(self, tmp_path):
        openssl = shutil.which("openssl")
        if openssl is None:
            pytest.skip("openssl, to make a certificate, is not installed")
        made = [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "key.pem", "-out", "cert.pem"]
        subprocess.run([*made, "-days", "2", "-subj", "/CN=localhost"], cwd=tmp_path, check=True, capture_output=True)
        files = ("--certfile", str(tmp_path / "cert.pem"), "--keyfile", str(tmp_path / "key.pem"))
        database = f"sqlite:///{tmp_path / 'service.db'}"
        with Server(database, tmp_path, *files, descriptors=256) as server, contextlib.ExitStack() as stack:
            for _ in range(400):
                stack.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=20))
            healthy(server)
            trusting = ssl.create_default_context(cafile=str(tmp_path / "cert.pem"))
            trusting.check_hostname = False
            with trusting.wrap_socket(stack.enter_context(socket.create_connection(("127.0.0.1", server.port)))) as one:
                one.sendall(b"GET /api/v1/health HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n")
                assert one.recv(64).startswith(b"HTTP/1.1 200")

    # Finding 4 of the review of 0.1.0
    def test_heads_and_bodies_have_a_time_limit(self, tmp_path):
        """Also a head that arrives byte by byte, on a connection that was answered before."""
        settings = "head_seconds=1.0, body_seconds=1.0"
        with Server(f"sqlite:///{tmp_path / 'service.db'}", tmp_path, settings=settings) as server:
            token = server.token()
            address = ("127.0.0.1", server.port)
            for sent in (b"", b"GET /api/v1/health HT", head(token)[:-2]):
                with socket.create_connection(address, timeout=30) as one:
                    one.sendall(sent)
                    assert whole(one) == b""
            with socket.create_connection(address, timeout=30) as one:
                one.sendall(b"GET /api/v1/health HTTP/1.1\r\nHost: here\r\n\r\nGET /api/v1/hea")
                assert whole(one).count(b"HTTP/1.1") == 1
            with socket.create_connection(address, timeout=30) as one, contextlib.suppress(OSError):
                one.sendall(head(token)[:-2])
                for _ in range(1000):  # until it is refused
                    one.sendall(b"X: y\r\n")
                    one.settimeout(0.05)
                    with contextlib.suppress(TimeoutError):
                        assert one.recv(10) == b""
                        break
                else:
                    raise AssertionError("a head may take for ever")
            with socket.create_connection(address, timeout=30) as one:
                one.sendall(head(token, "Content-Length: 100\r\n") + b"{")
                assert whole(one).startswith(b"HTTP/1.1 408")
            healthy(server)

    def test_who_does_not_read_the_answer_is_sent_away(self, tmp_path, monkeypatch):
        """One who asks for much and takes none of it."""
        monkeypatch.setattr("surefoot.serve.listener._STUCK", 0.2)

        async def scenario():
            store = Store(f"sqlite:///{tmp_path / 'service.db'}")
            store.migrate()
            server = Listening(create_app(store), Settings(), host="127.0.0.1", port=0)
            running = asyncio.create_task(server._serve())
            while not server.started:
                await asyncio.sleep(0.01)
            port = server.servers[0].sockets[0].getsockname()[1]
            with socket.socket() as one:
                one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                one.setblocking(False)
                await asyncio.get_running_loop().sock_connect(one, ("127.0.0.1", port))
                pages = b"GET /openapi.json HTTP/1.1\r\nHost: here\r\n\r\n" * 300
                await asyncio.get_running_loop().sock_sendall(one, pages)
                while not server.door.size:
                    await asyncio.sleep(0.01)
                while server.door.size:
                    await asyncio.sleep(0.05)
            server.should_exit = True
            await running
            store.close()

        asyncio.run(asyncio.wait_for(scenario(), 60))

    def test_answers_do_not_wait_for_acknowledgements(self, tmp_path):
        """A connection that is kept alive would take 40 ms for each answer."""

        async def scenario():
            store = Store(f"sqlite:///{tmp_path / 'service.db'}")
            store.migrate()
            server = Listening(create_app(store), Settings(), host="127.0.0.1", port=0)
            running = asyncio.create_task(server._serve())
            while not server.started:
                await asyncio.sleep(0.01)
            port = server.servers[0].sockets[0].getsockname()[1]
            async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=30.0) as http:
                assert (await http.get("/api/v1/health")).status_code == 200
                (one,) = server.server_state.connections
                assert one.transport.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            server.should_exit = True
            await running
            store.close()

        asyncio.run(asyncio.wait_for(scenario(), 60))

    def test_one_address_has_a_part_of_the_connections(self):
        door = Door(10, 2)
        first, second, third, other = (Guest(address) for address in ("10.0.0.1",) * 3 + ("10.0.0.2",))
        gone = []
        for guest in (first, second, third):
            guest.leave = lambda guest=guest: gone.append(guest)
        assert door.enter(first)
        assert door.enter(second)
        door.busy(first)
        assert door.enter(third)  # in place of the second, which waited
        assert gone == [second]
        door.busy(third)
        assert not door.enter(Guest("10.0.0.1"))  # both are at work
        assert door.enter(other)
        door.idle(first)
        assert door.enter(Guest("10.0.0.1"))
        assert gone == [second, first]
        assert door.size == 3
        assert Guest("2001:db8::1").address == Guest("2001:db8::ffff").address != Guest("2001:db8:1::1").address

    def test_where_all_are_at_work_the_next_is_told_to_come_again(self, tmp_path):
        settings = "connections=2, body_seconds=20.0"
        with Server(f"sqlite:///{tmp_path / 'service.db'}", tmp_path, settings=settings) as server:
            token = server.token()
            address = ("127.0.0.1", server.port)
            with contextlib.ExitStack() as stack:
                for _ in range(2):
                    one = stack.enter_context(socket.create_connection(address, timeout=30))
                    one.sendall(head(token, "Content-Length: 100\r\nExpect: 100-continue\r\n"))
                    assert one.recv(100).startswith(b"HTTP/1.1 100")  # it is at work
                with socket.create_connection(address, timeout=30) as late:
                    answer = whole(late)
            assert answer.startswith(b"HTTP/1.1 503")
            assert b"Retry-After: 2" in answer
            headers, _, body = answer.partition(b"\r\n\r\n")
            assert json.loads(body)["error"] == "Unavailable"
            assert f"Content-Length: {len(body)}".encode() in headers
            with Client(server.url, token=token) as client:  # as soon as the two are gone
                assert client.health()["status"] == "ok"
