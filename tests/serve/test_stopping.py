"""A server that is told to stop: what is under way comes to its end, or is to come again; nobody loses anything."""

from __future__ import annotations

import signal
import threading
import time

import httpx
import numpy as np
import pytest
from running import Server

from surefoot import Box, Client

BOX = Box([(0.0, 1.0)] * 4)


@pytest.fixture(params=["sqlite", "postgres"])
def database(request, tmp_path):
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'service.db'}"
    return request.getfixturevalue("postgres").database(f"stopping_{request.node.name.partition('[')[0][-40:]}")


class Slow:
    """An ask that takes some seconds of computing, in a thread; ``answers`` are all that the client saw on its way."""

    def __init__(self, server: Server, n: int) -> None:
        self.server, self.n = server, n
        self.client = Client(server.url, token=server.token(), retries=30)
        self.study = self.client.create("slow", BOX, policy="GPUCB", initial=0, seed=0)
        rng = np.random.default_rng(0)
        self.study.tell_many((x, float(np.sin(x).sum())) for x in rng.uniform(size=(60, 4)))
        self.answers: list[httpx.Response] = []
        self.client._transport._http.event_hooks = {"response": [self.answers.append]}
        self.queries: list[object] = []
        self.thread = threading.Thread(target=self._ask)

    def _ask(self) -> None:
        self.queries = self.study.ask(self.n)

    def begin(self) -> None:
        """Return when the service is at work on it."""
        self.thread.start()
        headers = {"Authorization": f"Bearer {self.server.token(scope='operator')}"}
        while True:
            text = httpx.get(f"{self.server.url}/api/v1/metrics", headers=headers, timeout=30.0).text
            if float(text.partition("\nsurefoot_requests_running ")[2].split()[0]) >= 2:
                return
            assert self.thread.is_alive()
            time.sleep(0.01)


# Finding 7 of the review of 0.1.0
def test_an_ask_that_the_stop_cuts_off_is_answered_by_the_server_that_comes_next(database, tmp_path):
    server = Server(database, tmp_path, "--grace", "0.2").start()
    try:
        slow = Slow(server, 60)
        slow.begin()
        server.process.send_signal(signal.SIGTERM)
        server.process.wait(timeout=60)
        server.start()
        slow.thread.join(timeout=120)
        assert [query.id for query in slow.queries] == list(range(60))
        cut = slow.answers[0]
        assert cut.status_code == 503
        assert int(cut.headers["Retry-After"]) >= 1
        assert cut.headers["Content-Type"] == "application/json"
        assert {answer.status_code for answer in slow.answers} == {200, 503}
        asked = [event["id"] for event in slow.study.trace() if event["event"] == "asked"]
        assert asked == list(range(60))  # once
    finally:
        server.stop()


# Finding 7 of the review of 0.1.0
@pytest.mark.parametrize("database", ["sqlite", pytest.param("postgres", marks=pytest.mark.slow)], indirect=True)
def test_an_ask_within_the_grace_is_answered_and_new_requests_are_told_to_come_again(database, tmp_path):
    server = Server(database, tmp_path, "--grace", "60").start()
    try:
        slow = Slow(server, 60)
        url, headers = f"{server.url}/api/v1", {"Authorization": f"Bearer {server.token()}"}
        with httpx.Client(base_url=url, headers=headers, timeout=30.0) as other:
            assert other.get("/studies").status_code == 200
            slow.begin()
            server.process.send_signal(signal.SIGTERM)
            while (health := other.get("/health")).status_code == 200:
                time.sleep(0.01)
            refused = [health, other.get("/studies"), other.post("/studies", content=b"x" * 100_000)]
        slow.thread.join(timeout=120)
        server.process.wait(timeout=60)
        assert [answer.status_code for answer in slow.answers] == [200]
        assert len(slow.queries) == 60
        for answer in refused:
            assert answer.status_code == 503
            assert int(answer.headers["Retry-After"]) >= 1
            assert answer.json() == {
                "error": "Unavailable",
                "detail": "this server is stopping; try again in a moment",
            }
    finally:
        server.stop()


def test_a_server_without_work_stops_at_once_and_by_the_signal(tmp_path):
    server = Server(f"sqlite:///{tmp_path / 'service.db'}", tmp_path, "--grace", "600").start()
    with httpx.Client(base_url=server.url) as idle:
        assert idle.get("/api/v1/health").status_code == 200  # its connection is kept alive, and is no work
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(timeout=60) == -signal.SIGTERM
