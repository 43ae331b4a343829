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
from surefoot.testing.driven import Driven

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


def _of_schema_1(stored: Any) -> Any:
    """A state as schema 1 had it: no directions in configurations, no times in events."""
    if isinstance(stored, list):
        return [_of_schema_1(item) for item in stored]
    if not isinstance(stored, dict):
        return stored
    kept = {key: value for key, value in stored.items() if key not in ("direction", "at")}
    return {key: 1 if key == "schema" else _of_schema_1(value) for key, value in kept.items()}


class Resuming(Driven):
    """What is saved, journaled or rebuilt goes on as if nothing had happened."""

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

    def test_journal_alone_rebuilds_the_policy(self, kind: str, tmp_path: Path) -> None:
        path = tmp_path / "run.jsonl"
        expected = self.whole_run(kind)
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

    def test_no_decision_reads_when_an_event_was_written(self, kind: str) -> None:
        policy = self.make(kind)
        for _ in range(4):
            self.step(policy)
        state = json.loads(json.dumps(policy.state()))
        assert all(event["at"] > 1e9 for event in state["events"])
        for number, event in enumerate(state["events"]):
            event["at"] = 7.0 - number
        twin = Policy.from_state(state)
        assert twin.events == state["events"]
        assert self.ask(twin) == self.ask(policy)

    def test_what_schema_1_wrote_goes_on(self, kind: str, tmp_path: Path) -> None:
        """A state without directions and times; a journal of a run that minimized, its values of the other sign."""
        policy = self.make(kind)
        self.continue_run(policy, 4)
        state = _of_schema_1(policy.state())
        expected = self.ask(Policy.from_state(state))
        if not self.negatable(policy):
            return
        path = tmp_path / "run.jsonl"
        header = {"schema": 1, "direction": "minimize", **{key: state[key] for key in ("policy", "config", "seed")}}
        path.write_text("".join(json.dumps(line) + "\n" for line in [header, *state["events"]]))
        seen = [None if o.failed else o.value for o in policy.history]
        for _ in range(2):
            with load(path) as resumed:
                assert resumed.direction == "minimize"
                assert [None if o.failed else -(o.value or 0.0) for o in resumed.history] == seen
                query = self.ask(resumed)
                value = self.value(resumed.domain, query.x)
                resumed.tell(query, [-one for one in value] if isinstance(value, list) else -value)
                events = resumed.events
            assert query == self.ask(policy)
            assert query == expected or len(policy.queries) == 6
            policy.tell(query.id, value)
            seen.append(policy.history[-1].value)
            lines = [json.loads(line) for line in path.read_text().splitlines()]
            assert lines[0] == header  # the file goes on as it began
            assert lines[-1]["value"] == policy.history[-1].value
            with load(path) as again:
                assert again.events == events

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
