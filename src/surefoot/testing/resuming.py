"""The promises about state: a policy is its configuration, its seed and its events, in this process or a new one."""

from __future__ import annotations

import importlib
import json
import multiprocessing
import sys
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

from surefoot.errors import SurefootError
from surefoot.loop.policy import Policy
from surefoot.loop.record import load
from surefoot.testing.driven import Driven, every_domain

__all__ = ["Resuming"]

# New processes are forked from one that has imported the library and nothing else: what is resumed is the saved state.
_NEW: Any = multiprocessing.get_context(
    "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
)
_NEW.set_forkserver_preload(["pytest", "surefoot.testing.contract", "surefoot.policy.ucb.gp_ucb"])


def _resume(
    answer: Connection, paths: list[str], modules: list[str], suite: str, length: int, files: list[str]
) -> None:
    """Load every saved state in a new process, continue it, and send its queries back."""
    sys.path[:0] = paths
    home = [importlib.import_module(name) for name in modules][-1]
    contract = getattr(home, suite)()
    for file in files:
        policy = load(file)
        answer.send(contract.continue_run(policy, length - len(policy.queries)))


class Resuming(Driven):
    """What is saved, journaled or rebuilt goes on as if nothing had happened.

    >>> from surefoot.testing import PolicyContract
    >>> issubclass(PolicyContract, Resuming)
    True
    """

    @every_domain
    def test_state_is_strict_json_and_complete(self, kind: str) -> None:
        policy = self.make(kind)
        for _ in range(4):
            self.step(policy)
        policy.tell(self.ask(policy), None)
        text = json.dumps(policy.state(), allow_nan=False)
        twin = Policy.from_state(json.loads(text))
        assert twin.state() == policy.state()
        assert twin.history == policy.history
        assert twin.recommend() == policy.recommend()
        with pytest.raises(ValueError, match="newer"):
            Policy.from_state({**policy.state(), "schema": 99})

    def test_saved_after_any_step_and_resumed_in_a_new_process(self, tmp_path: Path) -> None:
        """One new process continues every saved state; its queries are those of the uninterrupted run, bit for bit."""
        files, expected = [], []
        for kind in self.kinds():
            policy, asked = self.make(kind), []
            for number in range(self.length):
                files.append(tmp_path / f"{kind}-{number}.json")
                policy.save(files[-1])
                asked += self.continue_run(policy, 1)
            expected += [asked[number:] for number in range(self.length)]
        modules = [type(policy).__module__, type(self).__module__]
        answer, there = _NEW.Pipe(duplex=False)
        arguments = (there, sys.path, modules, type(self).__qualname__, self.length, [str(file) for file in files])
        process = _NEW.Process(target=_resume, args=arguments)
        process.start()
        there.close()
        for path, queries in zip(files, expected, strict=True):
            assert answer.recv() == json.loads(json.dumps(queries)), f"resumed from {path.stem}"
        process.join()
        assert process.exitcode == 0

    @every_domain
    def test_journal_alone_rebuilds_the_policy(self, kind: str, tmp_path: Path) -> None:
        path = tmp_path / "run.jsonl"
        whole = self.make(kind)
        expected = self.continue_run(whole, self.length)
        policy = self.make(kind, journal=path)
        start = self.continue_run(policy, 4)
        with pytest.raises(SurefootError, match="written by another"):
            load(path)
        policy.close()
        with path.open("ab") as file:
            file.write(b'{"event":"told","id":3,"va')  # a crash in mid-line
        with load(path) as resumed:
            assert resumed.events == policy.events
            assert start + self.continue_run(resumed, self.length - 4) == expected

    @every_domain
    def test_resuming_with_pending_queries(self, kind: str) -> None:
        policy = self.make(kind)
        for _ in range(3):
            self.step(policy)
        self.ask(policy)
        twin = Policy.from_state(policy.state())
        assert twin.pending == policy.pending
        if not self.alone(policy):
            assert self.ask(twin) == self.ask(policy)
        told = self.alike(policy.queries[3], 0.5)
        twin.tell(3, told)
        policy.tell(3, told)
        assert self.ask(twin) == self.ask(policy)
