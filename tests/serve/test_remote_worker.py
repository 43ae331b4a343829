"""Workers on any machine: they share a study, outlive servers, and give back what they cannot finish."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time

import pytest
from running import Server, environment

from surefoot import Box, Client, Float, Space
from surefoot.errors import BudgetSpent, NotSupported
from surefoot.loop.types import FAILED, Advice, Outcome, Query
from surefoot.serve.failures import Conflict, ServiceError
from surefoot.serve.remote_worker import work

MODULE = """
import os, time

def measure(x):
    time.sleep(0.02)
    return float(x[0])

def slow(x):
    with open(os.environ["BEGUN"], "a") as file:
        file.write("begun ")
    time.sleep(float(os.environ["SLOW"]))
    return 1.0

def broken(x):
    raise ZeroDivisionError("no")
"""


class Worker:
    """``surefoot worker`` in a process of its own."""

    def __init__(
        self, server: Server, folder, study: str, function: str, *options: str, tenant: str, **more: str
    ) -> None:
        (folder / "bench.py").write_text(MODULE)
        code = "from surefoot.cli import main; main()"
        words = [sys.executable, "-c", code, "worker", server.url, study, f"bench.py:{function}", *options]
        given = {**environment(), "SUREFOOT_TOKEN": server.token(tenant=tenant), **more}
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        self.process = subprocess.Popen(words, cwd=folder, env=given, **pipes)

    def end(self) -> tuple[int, str, str]:
        out, err = self.process.communicate(timeout=240)
        return self.process.returncode, out, err


def waiting(what, seconds: float = 120.0) -> None:
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.fixture
def client(sqlite_server):
    with Client(sqlite_server.url, token=sqlite_server.token(tenant="workers")) as made:
        yield made


def test_three_workers_finish_what_a_fourth_began_through_restarts(tmp_path):
    server = Server(f"sqlite:///{tmp_path / 'service.db'}", tmp_path, "--log-level", "warning").start()
    workers = []
    try:
        token = server.token(tenant="w")
        with Client(server.url, token=token, retries=60) as client:
            study = client.create("x", Box([(0.0, 1.0)]), policy="SobolSearch", seed=0)
            most = ("--most", "24", "--lease", "4")
            slow = {"BEGUN": str(tmp_path / "begun"), "SLOW": "600"}
            fourth = Worker(server, tmp_path, study.id, "slow", *most, tenant="w", **slow)
            waiting((tmp_path / "begun").exists)
            fourth.process.kill()  # with a point in its hands
            fourth.end()
            workers = [Worker(server, tmp_path, study.id, "measure", *most, tenant="w") for _ in range(3)]
            for _ in range(2):
                before = study.info()["told"]
                waiting(lambda: study.info()["told"] > min(before + 2, 22))  # noqa: B023 - called at once
                server.kill()
                server.start()
            ends = [worker.end() for worker in workers]
            assert [status for status, _, _ in ends] == [0, 0, 0], ends
            info, events = study.info(), study.trace()
    finally:
        for worker in workers:
            worker.process.kill()
        server.stop()
    assert (info["told"], info["pending"], info["failed"]) == (24, 0, 0)
    assert [event["id"] for event in events if event["event"] == "expired"][:1] == [0]
    lines = [line.split("\t") for _, out, _ in ends for line in out.splitlines()]
    told = {event["id"]: event["value"] for event in events if event["event"] == "told"}
    assert {int(id): float(value) for id, value, _ in lines} == told  # each by one worker, nothing lost or doubled
    assert len(lines) == 24


@pytest.mark.parametrize(("name", "grace"), [("SIGTERM", None), ("SIGINT", None), ("SIGTERM", "0.2")])
def test_a_worker_that_is_told_to_stop_finishes_its_trial_or_gives_it_up(sqlite_server, client, tmp_path, name, grace):
    study = client.create("x", Box([(0.0, 1.0)]), policy="SobolSearch", seed=0)
    more = {"BEGUN": str(tmp_path / "begun"), "SLOW": "1.0" if grace is None else "600"}
    options = () if grace is None else ("--grace", grace)
    worker = Worker(sqlite_server, tmp_path, study.id, "slow", *options, tenant="workers", **more)
    waiting((tmp_path / "begun").exists)
    worker.process.send_signal(getattr(signal, name))
    status, out, err = worker.end()
    assert "stopping after this trial" in err
    if grace is None:
        assert (status, len(out.splitlines())) == (0, 1)
        assert "1 trials, 0 failed: told to stop" in err
    else:
        assert (status, out) == (130, "")
    info = study.info()
    assert (info["told"], info["pending"]) == ((1, 0) if grace is None else (0, 0))


def test_a_function_that_is_broken_ends_the_worker(sqlite_server, client, tmp_path):
    study = client.create("x", Box([(0.0, 1.0)]), policy="SobolSearch", seed=0)
    status, out, err = Worker(sqlite_server, tmp_path, study.id, "broken", tenant="workers").end()
    assert status != 0
    assert "ZeroDivisionError" in err
    assert [line.split("\t")[1] for line in out.splitlines()] == ["failed"] * 3
    assert study.info()["failed"] == 3


class Study:
    """A study that answers as it is told to."""

    def __init__(self, *asks, params=None, steps=True, pending=()) -> None:
        self.asks, self.params, self.steps = list(asks), params, steps
        self.pending, self.told, self.renewed, self.cancelled = list(pending), [], [], []

    def ask(self, n=None, **context):
        self.context = context
        answer = self.asks.pop(0)
        if isinstance(answer, Exception):
            raise answer
        import numpy as np

        return Query(answer, np.array([0.5]), params=self.params)

    def tell(self, query, value):
        self.told.append((query.id, value))

    def report(self, query, step, value):
        if not self.steps:
            raise NotSupported("no steps")
        return Advice(stop=step == 2, reason="")

    def renew(self, *queries):
        self.renewed += [query.id for query in queries]
        raise ServiceError("away")  # the next beat may reach it

    def cancel(self, query):
        self.cancelled.append(query.id)

    def info(self):
        return {"pending": self.pending.pop(0) if self.pending else 0, "state": "closed"}


def test_a_worker_waits_for_what_may_come_back_and_ends_when_there_is_no_more():
    spent = BudgetSpent("this study has its 2 trials")
    study = Study(0, spent, 1, spent, pending=[1, 0])
    done = work(study, lambda x: x[0], lease=0.1, name="me", most=2, time=3.0)
    assert (done.trials, done.failed, done.why) == (2, 0, "this study has its 2 trials")
    assert study.context == {"lease": 0.1, "worker": "me", "most": 2, "time": 3.0}


def test_a_closed_study_is_the_end():
    done = work(Study(0, Conflict("this study is closed; asking is not possible")), lambda x: 1.0)
    assert done.trials == 1
    assert "closed" in done.why


@pytest.mark.parametrize(("steps", "told"), [(True, 2.0), (False, Outcome(3.0))])
def test_a_generator_reports_its_steps_and_ends_early(steps, told):
    study = Study(4, params={"a": 1}, steps=steps)

    def run(params):
        assert params == {"a": 1}
        yield from (1.0, 2.0, 3.0)

    assert work(study, run, trials=1).trials == 1
    assert study.told == [(4, told)]


def test_it_says_that_it_is_alive_and_gives_up_what_it_must():
    study = Study(7)

    def interrupted(_):
        time.sleep(0.3)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        work(study, interrupted, lease=0.15)
    assert study.renewed.count(7) >= 2
    assert study.cancelled == [7]
    assert study.told == []


def test_failures_in_a_row_end_it_and_others_do_not():
    values = iter([ValueError("a"), 1.0, ValueError("b"), ValueError("c"), ValueError("d")])

    def run(_):
        value = next(values)
        if isinstance(value, Exception):
            raise value
        return value

    study, seen = Study(*range(9)), []
    with pytest.raises(ValueError, match="d"):
        work(study, run, told=lambda query, outcome: seen.append(outcome.failed))
    assert seen == [True, False, True, True, True]
    assert [value for _, value in study.told] == [FAILED, Outcome(1.0), FAILED, FAILED, FAILED]


def test_another_outcome_of_somebody_else_is_no_trouble():
    study = Study(0)

    def conflict(*_):
        raise Conflict("query 0 was already told another outcome")

    study.tell = conflict
    assert work(study, lambda x: 1.0, trials=1).trials == 1


def test_it_stops_when_it_is_told_to():
    stop = threading.Event()
    stop.set()
    assert work(Study(), lambda x: 1.0, stop=stop).why == "told to stop"


def test_a_space_is_measured_by_its_parameters(client):
    study = client.create("x", Space(rate=Float(0.1, 1.0)), policy="RandomSearch", seed=0)
    assert work(study, lambda params: params["rate"], most=3, lease=30.0, name=f"test {os.getpid()}").trials == 3
    assert study.info()["told"] == 3
    assert study.leases() == []
