"""kill -9 at random moments under load: what clients saw can have happened in some order, and all of it is kept."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import histories
import pytest
from histories import INFINITY, Operation, explained, linearizable
from running import Server

from surefoot import Box, Client

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

from serve_load import killer

ASK, TELL, LOOK = "ask", "tell", "look"


def told(*pairs):
    return [{"event": "told", "id": id, "value": value} for id, value in pairs]


def asked(*ids):
    return [{"event": "asked", "id": id} for id in ids]


SEEN_BEFORE = [
    Operation(0, ASK, 0, 1, None, 0),
    Operation(0, TELL, 2, 3, (0, 1.0)),
    Operation(1, LOOK, 4, 5, None, (1, 0)),
]


class TestChecker:
    """It accepts what can have happened, and nothing else."""

    def test_operations_at_the_same_time_may_take_effect_in_any_order(self):
        history = [Operation(0, ASK, 0, 10, None, 1), Operation(1, ASK, 0, 10, None, 0)]
        assert linearizable(history)
        assert explained(history, asked(0, 1)) is None

    @pytest.mark.parametrize(
        ("history", "events", "said"),
        [
            ([Operation(0, ASK, 0, 1, None, 1), Operation(1, ASK, 2, 3, None, 0)], asked(0, 1), "called later"),
            ([Operation(0, ASK, 0, 1, None, 0), Operation(1, ASK, 0, 1, None, 0)], asked(0), "given out twice"),
            (
                [
                    Operation(0, ASK, 0, 1, None, 0),
                    Operation(0, TELL, 2, 3, (0, 1.0)),
                    Operation(1, LOOK, 4, 5, None, (1, 0)),
                ],
                [*asked(0), *told((0, 1.0))],
                "called later",
            ),
            (
                [
                    Operation(0, ASK, 0, 1, None, 0),
                    Operation(0, TELL, 2, 3, (0, 1.0)),
                    Operation(1, LOOK, 4, 5, None, (1, 0)),
                ],
                asked(0),
                "was lost",
            ),
            ([Operation(0, LOOK, 0, 1, None, (1, 1))], asked(0), "nobody can have seen"),
        ],
    )
    def test_what_cannot_have_happened_is_refused(self, history, events, said):
        assert not linearizable(history)
        assert said in explained(history, events)

    def test_what_never_returned_may_have_happened_or_not(self):
        history = [Operation(0, ASK, 0, INFINITY), Operation(1, ASK, 1, 2, None, 1)]
        assert linearizable(history)
        assert linearizable([history[0]])
        assert not linearizable(history[1:])

    def test_doubled_events_are_noticed(self):
        assert "twice" in explained([], [*asked(0), *told((0, 1.0), (0, 1.0))])
        assert "numbered" in explained([], asked(1, 0))

    def test_both_ways_agree_on_random_histories(self):
        """A sequential run, spread out in time, is accepted by both; with two answers exchanged it is mostly not."""
        rejected = 0
        for seed in range(60):
            chance, history, events, asks, tells = random.Random(seed), [], [], 0, 0
            for at in range(7):
                start, end = at - chance.random() * 1.5, at + chance.random() * 1.5
                kind = chance.choice([ASK, TELL, LOOK])
                if kind == TELL and tells < asks:
                    history.append(Operation(at, TELL, start, end, (tells, float(at))))
                    events += told((tells, float(at)))
                    tells += 1
                elif kind == LOOK:
                    history.append(Operation(at, LOOK, start, end, None, (asks, tells)))
                else:
                    history.append(Operation(at, ASK, start, end, None, asks))
                    events += asked(asks)
                    asks += 1
            assert linearizable(history)
            assert explained(history, events) is None
            twisted = [*history[::-1]]
            twisted = [
                Operation(a.worker, a.kind, b.called, b.returned, a.given, a.answer)
                for a, b in zip(history, twisted, strict=True)
            ]
            if explained(twisted, events) is None:
                assert linearizable(twisted)
            rejected += not linearizable(twisted)
        assert rejected > 40


def run(server: Server, *, workers: int, pairs: int, kills: int, seed: int) -> list[Operation]:
    token = server.token(tenant=f"killed {seed}")
    with Client(server.url, token=token, retries=60) as client:
        id = client.create("killed", Box([(0.0, 1.0)]), policy="SobolSearch", seed=seed).id
        disturb = killer(server, times=kills, seed=seed)
        history = histories.recorded(server.url, token, id, workers=workers, pairs=pairs, disturb=disturb)
        study = client.study(id)
        events = study.trace()
        info = study.info()
    assert (info["told"], info["pending"]) == (workers * pairs, 0)
    assert explained(history, events) is None
    for worker in range(workers):  # nothing told is reordered
        mine = [event["value"] for event in events if event["event"] == "told" and int(event["value"]) == worker]
        assert mine == [worker + i / 1e6 for i in range(pairs)]
    return history


def test_a_server_that_is_killed_under_load_loses_and_doubles_nothing(tmp_path):
    with Server(f"sqlite:///{tmp_path / 'killed.db'}", tmp_path, "--log-level", "warning") as server:
        history = run(server, workers=6, pairs=25, kills=2, seed=1)
    assert len(history) >= 6 * 50


@pytest.mark.slow
@pytest.mark.parametrize("database", ["sqlite", "postgres"])
def test_many_kills_under_much_load(database, tmp_path, request):
    url = f"sqlite:///{tmp_path / 'killed.db'}"
    if database == "postgres":
        url = request.getfixturevalue("postgres").database("killed")
    with Server(url, tmp_path, "--log-level", "warning") as server:
        run(server, workers=50, pairs=200, kills=20, seed=2)
        for seed in range(10):  # short enough for the search
            history = run(server, workers=3, pairs=3, kills=1, seed=100 + seed)
            assert linearizable(history)
