"""Rounds of a federation over Flower's messages: who is asked, what comes back, what survives."""

from __future__ import annotations

import json
import time
import warnings

import numpy as np
import pytest

pytest.importorskip("flwr", reason="needs Flower: make test-flower")

from flower_nodes import LocalGrid, Node
from flwr.app import Array, ArrayRecord, ConfigRecord, Context, RecordDict
from flwr.app import Message as FlowerMessage

from surefoot import GP, SE, Box, Int, Space
from surefoot.bridge.flower import FederationClient, FederationServer, client_app, server_app
from surefoot.bridge.flower.records import (
    message_from_records,
    message_to_records,
    request_from_records,
    request_to_records,
)
from surefoot.errors import SurefootError
from surefoot.federated import Agent, Broadcast, Coordinator, Message, SharedFeatures
from surefoot.loop.journal import SCHEMA, Journal
from surefoot.private import Ledger

FEATURES = SharedFeatures(1, 32, lengthscale=0.2, noise=0.01, seed=5)
OTHERS = SharedFeatures(1, 32, lengthscale=0.2, noise=0.01, seed=6)
ROUNDS = 4


def make_coordinator(folder, config):
    with warnings.catch_warnings(action="ignore"):  # so few agents drown in the noise: not the matter here
        return Coordinator(
            FEATURES,
            agents=6,
            regions=2,
            noise_multiplier=1.0,
            sampling=0.5,
            rounds=config.get("rounds", ROUNDS),
            ledger=Ledger(epsilon=50.0, delta=1e-2, path=folder / "ledger.jsonl"),
            journal=folder / "broadcasts.jsonl",
            vectors=folder / "vectors.jsonl",
        )


def make_agent(number, journal, config, features=FEATURES):
    gp = GP(SE(lengthscale=0.3), noise=1e-3)
    return Agent(
        Box.unit(1),
        features,
        agent=number,
        regions=2,
        region=number % 2,
        initial=2,
        gp=gp,
        seed=number,
        journal=journal,
    )


def objective(query, context):
    return float(-((query.x[0] - 0.1 * context.node_config["agent"]) ** 2))


APP = client_app(make_agent, objective)


@pytest.fixture
def place(tmp_path):
    """Make a grid of agents, and run it."""

    def make(numbers=range(3), app=APP, **forged):
        nodes = {100 + n: Node(app, n, tmp_path / "nodes", {}, forge=forged.get(f"n{n}")) for n in numbers}
        return LocalGrid(nodes)

    make.folder = tmp_path
    make.context = Context(1, 0, {}, RecordDict(), {"state": str(tmp_path / "server")})
    make.run = lambda grid, **options: FederationServer(
        make_coordinator, **{"deadline": 0.05, "patience": 60.0, "poll": 0.005, **options}
    )(grid, make.context)
    return make


def ledger(folder):
    return [line["note"]["round"] for line in Journal(folder / "server" / "ledger.jsonl").read()[1]]


def events(folder, number):
    return Journal(folder / "nodes" / f"agent-{number}.jsonl").read()[1]


def counts(folder, number):
    kinds = [event["event"] for event in events(folder, number)]
    return {kind: kinds.count(kind) for kind in ("asked", "told", "sent", "received")}


def vectors(folder):
    lines = Journal(folder / "server" / "vectors.jsonl").read()[1]
    return sorted((line["agent"], line["round"]) for line in lines)


def test_a_whole_run(place):
    grid = place()
    place.run(grid)
    assert ledger(place.folder) == [0, 1, 2, 3]  # one charge for each release, none after the last query
    for number in range(3):
        # Two initial points, one for each of four rounds; the last message is drawn but not sent.
        assert counts(place.folder, number) == {"asked": 6, "told": 6, "sent": 5, "received": 4}
    assert vectors(place.folder) == [(number, round) for number in range(3) for round in range(4)]
    assert all((place.folder / name).stat().st_mode & 0o077 == 0 for name in ("server", "nodes"))
    roster = json.loads((place.folder / "server" / "roster.json").read_text())
    assert roster == {"0": "100", "1": "101", "2": "102"}


def test_the_server_app(place):
    server_app(make_coordinator, deadline=0.05, poll=0.005)(place(), place.context)
    assert ledger(place.folder) == [0, 1, 2, 3]


def test_only_messages_cross_and_they_hold_no_measurement(place):
    grid = place()
    place.run(grid)
    raw = set()
    for number in range(3):
        with make_agent(number, place.folder / "nodes" / f"agent-{number}.jsonl", {}) as agent:
            raw |= {float(value) for array in agent.data()[:2] for value in array.ravel()}
    assert len(raw) >= 3 * 6  # who follows the broadcast measures where others do
    crossed = set()
    for answer in grid.arrived:
        assert not answer.has_error()
        records = answer.content
        if set(records) == {"word"}:
            assert dict(records["word"]) == {"word": "done"}
            continue
        assert set(records) == {"message", "message.arrays"}
        assert set(records["message"]) == {"schema", "kind", "agent", "round", "features"}
        assert set(records["message.arrays"]) == {"vector"}
        vector = records["message.arrays"]["vector"].numpy()
        assert vector.shape == (32,)
        crossed |= set(vector.tolist())
    assert len(crossed) == 3 * 4 * 32
    assert not raw & crossed


def test_a_request_that_comes_twice_gets_the_same_answer(place):
    grid = place([1])
    node = grid.nodes[101]

    def request(round):
        message = FlowerMessage(
            request_to_records(round, FEATURES.hash, None), 101, "query.surefoot", group_id=str(round)
        )
        message.metadata.__dict__["_message_id"] = "m"
        return node.answer(message).content

    first, again = message_from_records(request(0)), message_from_records(request(0))
    assert first == again
    assert counts(place.folder, 1)["told"] == 2
    second = message_from_records(request(1))
    assert second != first
    assert message_from_records(request(0)) == first  # an old one too
    assert counts(place.folder, 1)["told"] == 3


def test_a_killed_server_continues(place):
    class Killed(BaseException):
        pass

    def kill(round):
        if round == 2:
            raise Killed

    grid = place()
    grid.before = kill
    with pytest.raises(Killed):
        place.run(grid)
    assert ledger(place.folder) == [0, 1]
    again = place()
    place.run(again)
    assert ledger(place.folder) == [0, 1, 2, 3]
    assert min(round for round, _ in again.asked) == 2
    assert all(counts(place.folder, number)["told"] == 6 for number in range(3))


def test_a_killed_client_measures_what_it_asked_and_no_more(place):
    calls = []

    class Killed(BaseException):
        pass

    def fragile(query, context):
        calls.append(query.id)
        if len(calls) in (2, 4):
            raise Killed
        return objective(query, context)

    grid = place([0], client_app(make_agent, fragile))
    for _ in range(2):
        with pytest.raises(Killed):
            place.run(grid)
    place.run(grid)
    assert counts(place.folder, 0) == {"asked": 6, "told": 6, "sent": 5, "received": 4}
    assert ledger(place.folder) == [0, 1, 2, 3]


def test_stragglers_are_late_and_leavers_are_missed(place):
    grid = place(range(4))
    grid.nodes[101].hold = 2
    leaver, joiner = grid.nodes[102], grid.nodes[103]
    joiner.present = False

    def change(round):
        leaver.present = round < 2
        joiner.present = round >= 2

    grid.before = change
    place.run(grid)
    assert ledger(place.folder) == [0, 1, 2, 3]
    sent = {number: [round for agent, round in vectors(place.folder) if agent == number] for number in range(4)}
    # The straggler's answer to round 0 came in round 2; meanwhile it was not asked. Leaver and joiner change in the
    # round after they were looked for.
    assert sent == {0: [0, 1, 2, 3], 1: [0, 3], 2: [0, 1, 2], 3: [3]}
    assert counts(place.folder, 3) == {"asked": 3, "told": 3, "sent": 2, "received": 2}  # its initial points first


def test_lost_requests_are_asked_again_after_a_while(place):
    grid = place(range(2))
    grid.nodes[101].lost = True

    def find(round):
        grid.nodes[101].lost = round < 2
        if round == 2:
            time.sleep(0.2)  # now the lost request is given up

    grid.before = find
    place.run(grid, deadline=0.05, patience=0.15)
    assert [round for agent, round in vectors(place.folder) if agent == 1][-1] == 3


def test_a_round_without_news_is_not_released(place):
    tries = []

    def mute(content, round):
        tries.append(round)
        return content if len(tries) > 3 else RecordDict({"word": ConfigRecord({"word": "failed"})})

    grid = place([0], n0=mute)
    place.run(grid)
    assert tries[:4] == [0, 0, 0, 0]
    assert ledger(place.folder) == [0, 1, 2, 3]


def test_one_agent_that_answers_again_is_not_two(place):
    tries = []

    def mute(content, round):
        tries.append(round)
        return content if len(tries) > 2 else RecordDict({"word": ConfigRecord({"word": "failed"})})

    grid = place([0, 1], n1=mute)
    place.run(grid, minimum=2)
    assert [round for round, node in grid.asked if node == 100][:4] == [0, 0, 0, 1]
    assert vectors(place.folder) == [(number, round) for number in range(2) for round in range(4)]


def test_late_answers_complete_a_round(place):
    grid = place([0, 1])
    first = grid.nodes[101]
    first.hold = 99  # nothing comes
    looks = []

    def watch(names):
        looks.append(names)
        if len(looks) == 40:
            first.hold = 0
            grid.waiting = {name: (0, answer) for name, (_, answer) in grid.waiting.items()}
        return LocalGrid.pull_messages(grid, names)

    grid.pull_messages = watch
    place.run(grid, minimum=2, deadline=0.02)
    assert [round for round, node in grid.asked if node == 101] == [0, 1, 2, 3, 4]
    assert vectors(place.folder) == [(number, round) for number in range(2) for round in range(4)]


def test_the_end_waits_for_nobody(place):
    grid = place([0, 1])

    def leave(round):
        grid.nodes[100].present = grid.nodes[101].present = round < 3

    grid.before = leave
    place.run(grid, minimum=2)
    assert ledger(place.folder) == [0, 1, 2, 3]
    assert max(round for round, _ in grid.asked) == 3


def forged(**changes):
    def forge(content, round):
        vector = content["message.arrays"]["vector"].numpy()
        plain = dict(content["message"])
        if "vector" in changes:
            vector = changes["vector"](vector)
        plain |= {key: value for key, value in changes.items() if key not in ("vector", "extra")}
        records = {"message": ConfigRecord(plain), "message.arrays": ArrayRecord({"vector": Array(vector)})}
        return RecordDict(records | changes.get("extra", {}))

    return lambda content, round: forge(content, round) if "message" in content else content


POISON = {
    "nan": forged(vector=lambda v: np.where(np.arange(len(v)) == 3, np.nan, v)),
    "infinite": forged(vector=lambda v: v * np.inf),
    "huge": forged(vector=lambda v: v * 1e9),
    "long": forged(vector=lambda v: np.append(v, 0.0)),
    "empty": forged(vector=lambda v: v[:0]),
    "matrix": forged(vector=lambda v: v[None]),
    "text": forged(vector=lambda v: v.astype("U8")),
    "complex": forged(vector=lambda v: v + 1j),
    "hash": forged(features=OTHERS.hash),
    "no hash": forged(features="cafe"),
    "another agent": forged(agent=0),
    "no such agent": forged(agent=6),
    "another round": forged(round=77),
    "newer schema": forged(schema=SCHEMA + 1),
    "stowaway": forged(extra={"raw": ArrayRecord({"y": Array(np.ones(3))})}),
    "unknown field": forged(y=0.25),
    "a vector twice": lambda content, round: (
        RecordDict(
            {
                "message": ConfigRecord({**content["message"], "vector": [0.5] * 32}),
                "message.arrays": content["message.arrays"],
            }
        )
        if "message" in content
        else content
    ),
    "no array": lambda content, round: RecordDict({"message": content["message"]}) if "message" in content else content,
    "swapped": lambda content, round: (
        RecordDict({"message": content["message.arrays"], "message.arrays": content["message"]})
        if "message" in content
        else content
    ),
    "another word": lambda content, round: (
        RecordDict({"word": ConfigRecord({"word": "y = 0.25"})}) if "message" in content else content
    ),
    "no word": lambda content, round: (
        RecordDict({"word": ArrayRecord({"word": Array(np.ones(2))})}) if "message" in content else content
    ),
    "nothing": lambda content, round: RecordDict({}) if "message" in content else content,
}


@pytest.mark.parametrize("kind", POISON)
def test_poison_is_refused_and_the_round_unharmed(place, kind, caplog):
    grid = place(range(3), n2=POISON[kind])
    with caplog.at_level("WARNING", logger="surefoot.bridge.flower"):
        place.run(grid)
    refusals = [record.getMessage() for record in caplog.records if "refused" in record.getMessage()]
    assert len(refusals) == ROUNDS
    assert all("node 102" in refusal for refusal in refusals)
    assert vectors(place.folder) == [(number, round) for number in range(2) for round in range(ROUNDS)]
    assert ledger(place.folder) == [0, 1, 2, 3]
    assert all(counts(place.folder, number)["told"] == 6 for number in range(2))


def test_one_node_has_one_place(place):
    def greedy(content, round):
        return forged(agent=3 + round)(content, round) if round < 3 else content

    place.run(place(range(3), n2=greedy))
    roster = json.loads((place.folder / "server" / "roster.json").read_text())
    assert roster == {"0": "100", "1": "101", "3": "102"}
    assert [pair for pair in vectors(place.folder) if pair[0] >= 2] == [(3, 0)]


def test_places_can_be_given_before_the_run(place):
    (place.folder / "server").mkdir()
    (place.folder / "server" / "roster.json").write_text('{"0": "100", "2": "999"}')
    place.run(place(range(3)))
    assert {agent for agent, _ in vectors(place.folder)} == {0, 1}


def test_one_run_at_a_time(place):
    coordinator = make_coordinator(place.folder / "server", {})
    with pytest.raises(SurefootError, match="another process"):
        place.run(place())
    coordinator.close()
    coordinator.ledger.close()
    place.run(place())
    assert ledger(place.folder) == [0, 1, 2, 3]


def test_a_node_with_other_features_says_so_and_measures_nothing(place):
    def other(number, journal, config):
        return make_agent(number, journal, config, OTHERS if number == 1 else FEATURES)

    grid = place(range(3), client_app(other, objective))
    place.run(grid)
    assert vectors(place.folder) == [(number, round) for number in (0, 2) for round in range(ROUNDS)]
    assert counts(place.folder, 1)["asked"] == 0
    words = [dict(answer.content["word"])["word"] for answer in grid.arrived if "word" in answer.content]
    assert words.count("features") == ROUNDS + 1


def test_what_an_exception_says_stays_on_the_node(place):
    def leaky(query, context):
        raise RuntimeError(f"the secret value at {query.x[0]} is 0.123456")

    def broken(number, journal, config):
        if number == 1:
            raise KeyError("secret path")
        return make_agent(number, journal, config)

    grid = place(range(2), client_app(broken, leaky))
    place.run(grid)
    assert {event["value"] for event in events(place.folder, 0) if event["event"] == "told"} == {None}
    assert all(not answer.has_error() for answer in grid.arrived)
    words = {dict(answer.content["word"])["word"] for answer in grid.arrived if "word" in answer.content}
    assert words == {"failed", "done"}
    assert "secret" not in repr([list(answer.content.values()) for answer in grid.arrived])


def test_the_budget_stops_releases_and_the_run_goes_on(place):
    def poor(folder, config):
        with warnings.catch_warnings(action="ignore"):
            return Coordinator(
                FEATURES,
                agents=6,
                noise_multiplier=1.0,
                rounds=ROUNDS,
                ledger=Ledger(epsilon=4.0, delta=1e-2, path=folder / "ledger.jsonl"),
                journal=folder / "broadcasts.jsonl",
            )

    def plain(number, journal, config):
        return Agent(
            Box.unit(1), FEATURES, agent=number, initial=2, gp=GP(SE(0.3), noise=1e-3), seed=1, journal=journal
        )

    grid = place(range(2), client_app(plain, objective))
    FederationServer(poor, deadline=0.05, poll=0.005)(grid, place.context)
    spent = len(ledger(place.folder))
    assert 0 < spent < ROUNDS
    silences = [line["silence"] for line in Journal(place.folder / "server" / "broadcasts.jsonl").read()[1]]
    assert silences == [None] * spent + ["budget"] * (ROUNDS - spent)
    assert all(counts(place.folder, number)["told"] == 6 for number in range(2))


def test_records_round_trip_exactly():
    rng = np.random.default_rng(0)
    message = Message(3, 7, FEATURES.hash, rng.standard_normal(32))
    assert message_from_records(message_to_records(message)) == message
    full = Broadcast(2, FEATURES.hash, (2,), vectors=rng.standard_normal((2, 32)), coin=True)
    for broadcast in (full, Broadcast(2, FEATURES.hash, (2,), silence="coin", coin=False), None):
        records = request_to_records(3, FEATURES.hash, broadcast, last=True)
        assert request_from_records(records) == (3, FEATURES.hash, broadcast, True)


@pytest.mark.parametrize(
    "changes", [{"round": "3"}, {"round": 0.5}, {"more": 1}, {"last": None}, {"features": None}, {"round": None}]
)
def test_a_request_with_other_fields_is_refused_and_measures_nothing(changes, place, caplog):
    records = request_to_records(0, FEATURES.hash, None)
    fields = {**records["request"], **changes}
    records["request"] = ConfigRecord({key: value for key, value in fields.items() if value is not None})
    with pytest.raises(ValueError, match="a request has a round, a hash of the features and whether it is the last"):
        request_from_records(records)
    message = FlowerMessage(records, 101, "query.surefoot", group_id="0")
    message.metadata.__dict__["_message_id"] = "m"
    assert message_from_records(place([1]).nodes[101].answer(message).content) == "failed"
    assert not (place.folder / "nodes").exists()


def test_an_agent_with_no_point_left_sends_what_it_knows(place):
    def small(number, journal, config):
        return Agent(
            Space(depth=Int(1, 4)),
            FEATURES,
            agent=number,
            regions=2,
            region=number % 2,
            initial=2,
            gp=GP(SE(lengthscale=0.3), noise=1e-3),
            repeats=False,
            seed=number,
            journal=journal,
        )

    place.run(place(app=client_app(small, objective)))
    assert ledger(place.folder) == [0, 1, 2, 3]
    for number in range(3):  # four points in all, and a message in every round all the same
        assert counts(place.folder, number) == {"asked": 4, "told": 4, "sent": 5, "received": 4}
    assert vectors(place.folder) == [(number, round) for number in range(3) for round in range(4)]


def test_bad_input(place):
    with pytest.raises(ValueError, match="minimum"):
        FederationServer(make_coordinator, minimum=0)
    with pytest.raises(ValueError, match="patience"):
        FederationServer(make_coordinator, patience=float("nan"))
    with pytest.raises(ValueError, match="state"):
        FederationServer(make_coordinator)(place(), Context(1, 0, {}, RecordDict(), {}))
    endless = FederationServer(lambda folder, config: Coordinator(FEATURES, agents=2))
    with pytest.raises(ValueError, match="rounds"):
        endless(place(), place.context)
    client = FederationClient(make_agent, objective)
    for config, words in (({}, "agent=K"), ({"agent": -1}, "-1"), ({"agent": True}, "True")):
        with pytest.raises(ValueError, match=words):
            client.number(Context(1, 0, config, RecordDict(), {}))
    with pytest.raises(ValueError, match="state"):
        client.journal(Context(1, 0, {"agent": 1}, RecordDict(), {}))
