import json
import os
import signal
import subprocess
import sys

import pytest

from surefoot import GPUCB, Box, Journal, RandomSearch, SurefootError, load
from surefoot.loop.events import timeless
from surefoot.loop.journal import SCHEMA

WRITER = """
import sys
from surefoot import Box, GPUCB
policy = GPUCB(Box([(0.0, 1.0)]), seed=3, journal=sys.argv[1])
while True:
    query = policy.ask()
    policy.tell(query, -float(query.x[0] - 0.3) ** 2)
    print(query.id, flush=True)
"""


def read_lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_every_event_is_on_disk_when_the_call_returns(tmp_path):
    path = tmp_path / "run.jsonl"
    policy = RandomSearch(Box([(0.0, 1.0)]), seed=1, journal=path)
    query = policy.ask()
    assert [e.get("event") for e in read_lines(path)] == [None, "asked"]
    policy.tell(query, 0.1)
    policy.tell([0.5], None)
    other = policy.ask()
    policy.cancel(other)
    header, *events = read_lines(path)
    assert header["schema"] == SCHEMA
    assert header["policy"] == "RandomSearch"
    assert header["direction"] == "maximize"
    assert events == policy.events
    assert timeless(events)[2] == {"event": "told", "x": [0.5], "value": None}


@pytest.mark.parametrize("after", [1, 7])
def test_kill_9_loses_no_acknowledged_tell(tmp_path, after):
    path = tmp_path / "run.jsonl"
    process = subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True)
    acknowledged = [int(process.stdout.readline()) for _ in range(after)]
    os.kill(process.pid, signal.SIGKILL)
    rest, _ = process.communicate()
    acknowledged += [int(line) for line in rest.splitlines()]
    with load(path) as policy:
        told = [o.id for o in policy.history]
        assert told[: len(acknowledged)] == acknowledged
        # What follows is what an uninterrupted run would have asked.
        twin = GPUCB(Box([(0.0, 1.0)]), seed=3)
        for query in policy.queries:
            assert twin.ask().x == query.x
            if query.id in told:
                twin.tell(query.id, -(float(query.x[0] - 0.3) ** 2))
        assert policy.ask() == twin.ask()


def test_a_torn_last_line_is_ignored_and_removed(tmp_path):
    path = tmp_path / "run.jsonl"
    with RandomSearch(Box([(0.0, 1.0)]), seed=1, journal=path) as policy:
        policy.tell(policy.ask(), 1.0)
    whole = path.read_bytes()
    for cut in range(1, 30):
        path.write_bytes(whole[:-cut])
        _, events = Journal(path).read()
        assert events == policy.events[:1]
    with load(path) as resumed:
        resumed.tell(0, 2.0)
    assert [e.get("value") for e in read_lines(path)[1:]] == [None, 2.0]


def test_damage_in_the_middle_is_an_error_that_names_the_line(tmp_path):
    path = tmp_path / "run.jsonl"
    with RandomSearch(Box([(0.0, 1.0)]), seed=1, journal=path) as policy:
        policy.tell(policy.ask(), 1.0)
    lines = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join([lines[0], b"{damaged", *lines[2:]]))
    with pytest.raises(ValueError, match="line 2 is damaged"):
        load(path)


def test_two_writers_are_refused(tmp_path):
    path = tmp_path / "run.jsonl"
    first = RandomSearch(Box([(0.0, 1.0)]), seed=1, journal=path)
    with pytest.raises(SurefootError, match="being written"):
        RandomSearch(Box([(0.0, 1.0)]), seed=1, journal=path)
    first.close()
    with pytest.raises(SurefootError, match="not open"):
        first.ask()
    assert not first.pending, "an ask that was not written did not happen"
    RandomSearch(Box([(0.0, 1.0)]), seed=1, journal=path).close()


def test_a_journal_belongs_to_one_run(tmp_path):
    path = tmp_path / "run.jsonl"
    RandomSearch(Box([(0.0, 1.0)]), seed=1, journal=path).close()
    with pytest.raises(ValueError, match="seed was 1 and is 2"):
        RandomSearch(Box([(0.0, 1.0)]), seed=2, journal=path)
    with pytest.raises(ValueError, match=r"domain.bounds was"):
        RandomSearch(Box([(0.0, 2.0)]), seed=1, journal=path)
    RandomSearch(Box([(0.0, 1.0)]), journal=path).close()  # no seed given: the journal's own
    with load(path) as policy:
        assert policy.seed == 1


def test_not_a_journal(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text('{"hello": 1}\n')
    with pytest.raises(ValueError, match="not a surefoot"):
        load(path)
    path.write_text('{"schema": 99}\n')
    with pytest.raises(ValueError, match="upgrade"):
        load(path)
    for content in (b"", b"hello\nworld", b"\xff\xfe\x00", b'{"schema":1,"direc', b"[1]"):
        path.write_bytes(content)
        with pytest.raises(ValueError, match="not a surefoot"):
            load(path)


@pytest.mark.parametrize("content", ["a note without an end of line", "{}", None])
def test_a_file_that_is_something_else_stays_as_it_is(tmp_path, content):
    path = tmp_path / "run.json"
    if content is None:
        RandomSearch(Box([(0.0, 1.0)]), seed=1).save(path)
    else:
        path.write_text(content)
    before = path.read_bytes()
    with pytest.raises(ValueError, match="is not a journal"):
        RandomSearch(Box([(0.0, 1.0)]), seed=1, journal=path)
    assert path.read_bytes() == before


def test_a_header_that_was_cut_short_is_written_again(tmp_path):
    path = tmp_path / "run.jsonl"
    RandomSearch(Box([(0.0, 1.0)]), seed=1, journal=path).close()
    whole = path.read_bytes()
    for cut in range(len(whole)):
        path.write_bytes(whole[:cut])
        RandomSearch(Box([(0.0, 1.0)]), seed=1, journal=path).close()
        assert path.read_bytes() == whole


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("5", "line 3 is damaged"),
        ("", "line 3 is damaged"),
        ('{"event":"told","id":9,"value":1.0}', "event 1 does not fit"),
        ('{"event":"told"}', "event 1 does not fit"),
        ('{"event":"asked","id":7,"x":[0.5]}', "query 7 comes after 1 others"),
        ('{"event":"asked","id":1,"x":[5.0]}', r"outside \[0.0, 1.0\]"),
        ('{"event":"danced"}', "unknown event 'danced'"),
    ],
)
def test_a_line_that_does_not_fit_is_named_and_the_lock_is_let_go(tmp_path, line, message):
    path = tmp_path / "run.jsonl"
    with RandomSearch(Box([(0.0, 1.0)]), seed=1, journal=path) as policy:
        policy.ask()
    whole = path.read_text()
    path.write_text(f"{whole}{line}\n")
    with pytest.raises(ValueError, match=message) as caught:  # kept, and with it the policy that failed
        RandomSearch(Box([(0.0, 1.0)]), seed=1, journal=path)
    with pytest.raises(ValueError, match=message):
        load(path)
    path.write_text(whole)
    with load(path) as again:
        assert len(again.pending) == 1
    del caught
