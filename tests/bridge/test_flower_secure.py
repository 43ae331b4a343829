"""Secure sums over Flower's messages: exact, whoever leaves, and nothing but masked numbers in what the server gets."""

from __future__ import annotations

import json

import numpy as np
import pytest

pytest.importorskip("flwr", reason="needs Flower: make test-flower")

from flower_nodes import LocalGrid, Node
from flwr.app import Context, RecordDict

from surefoot import GP, SE, Box
from surefoot.bridge.flower import SecureServer, secure_client_app
from surefoot.bridge.flower.secure import from_records, to_records
from surefoot.federated import Agent, SharedFeatures
from surefoot.federated.secure import Identity, SumPlan
from surefoot.loop.journal import Journal
from surefoot.private import Ledger

FEATURES = SharedFeatures(1, 12, lengthscale=0.2, noise=0.01, seed=5)
IDENTITIES = [Identity(bytes([n]) * 32) for n in range(1, 11)]
ROSTER = [identity.public for identity in IDENTITIES]


def agent_of(number, journal, config):
    gp = GP(SE(lengthscale=0.3), noise=1e-3)
    return Agent(Box.unit(1), FEATURES, agent=number, initial=2, gp=gp, seed=number, journal=journal)


def objective(query, context):
    return float(-((query.x[0] - 0.1 * context.node_config["agent"]) ** 2))


class Leaving(LocalGrid):
    """Nodes that are gone from one phase of one round on, until the next round."""

    def __init__(self, nodes, leaves):
        super().__init__(nodes)
        self.leaves = leaves

    def push_messages(self, messages):
        messages = list(messages)
        for message in messages:
            round, phase, _ = from_records(message.content)
            message.metadata.group_id = str(round)
            node = self.nodes[message.metadata.dst_node_id]
            node.lost = any(r == round and p <= phase < 5 and message.metadata.dst_node_id in gone
                            for (r, p), gone in self.leaves.items())  # fmt: skip
        return super().push_messages(messages)


@pytest.fixture
def place(tmp_path):
    def run(plan, agents=10, leaves=None, forged=None, ledger=None, deadline=0.05):
        app = secure_client_app(
            agent_of, objective, plan=plan, roster=ROSTER[:agents],
            identity=lambda context: IDENTITIES[context.node_config["agent"]],
        )  # fmt: skip
        nodes = {100 + n: Node(app, n, tmp_path / "nodes", {}, forge=(forged or {}).get(n)) for n in range(agents)}
        grid = Leaving(nodes, leaves or {})
        server = SecureServer(plan, ROSTER[:agents], deadline=deadline, poll=0.005, ledger=ledger)
        server(grid, Context(1, 0, {}, RecordDict(), {"state": str(tmp_path / "server")}))
        return grid

    run.folder = tmp_path
    return run


def released(folder):
    events = Journal(folder / "server" / "sums.jsonl").read()[1]
    told = [event["broadcast"] for event in events if event["event"] == "released"]
    return {one["round"]: np.array(one["vectors"]) for one in told if one["silence"] is None}


def steps_of(plan, folder, number, round):
    with agent_of(number, folder / "nodes" / f"agent-{number}.jsonl", {}) as agent:
        return plan.contribution(number, agent.message(round).vector, round)


def test_ten_nodes_of_which_three_leave_at_each_phase(place):
    """One round for each phase; the sum is that of who sent, to the bit, and the next round has everybody again."""
    plan = SumPlan(FEATURES, agents=10, rounds=5)
    leaves = {(phase, phase): {101, 104, 108} for phase in range(5)}
    grid = place(plan, leaves=leaves)
    made = released(place.folder)
    assert sorted(made) == [0, 1, 2, 3, 4]
    for round in range(5):
        left = {1, 4, 8} if round <= 2 else set()
        sent = [n for n in range(10) if n not in left]
        total = np.sum([steps_of(plan, place.folder, n, round) for n in sent], axis=0)
        assert (made[round] == plan.broadcast(round, total).vectors).all()
    # What the server got: of each party keys, sealed shares, masked numbers, a signature, shares; never a vector.
    crossed = ""
    for answer in grid.arrived:
        _, phase, content = from_records(answer.content)
        assert set(answer.content) == {"secure"}
        crossed += json.dumps(content)
        if phase < 5:
            assert content["kind"] == ("keys", "shares", "masked", "confirmation", "opened")[phase]
    for number in range(10):
        with agent_of(number, place.folder / "nodes" / f"agent-{number}.jsonl", {}) as agent:
            X, y, _ = agent.data()
            assert not any(repr(float(value)) in crossed for value in (*X.ravel(), *y) if len(repr(float(value))) > 8)
            for round in range(5):
                ring = plan.ring(round)
                steps = plan.contribution(number, agent.message(round).vector, round)
                words = ring.lower(steps).astype("<u8").view(np.uint8).reshape(-1, 8)[:, :4].tobytes().hex()
                assert words[:32] not in crossed


def test_with_four_gone_the_round_is_lost_and_the_next_one_is_not(place):
    plan = SumPlan(FEATURES, agents=10, rounds=2)
    place(plan, leaves={(0, 3): {101, 102, 104, 108}})
    assert sorted(released(place.folder)) == [1]
    events = Journal(place.folder / "server" / "sums.jsonl").read()[1]
    assert [e["round"] for e in events if e["event"] == "begun"] == [0, 1]


def test_sums_with_noise_are_charged_and_end_with_the_budget(place):
    plan = SumPlan(FEATURES, agents=4, threshold=3, rounds=5, noise_multiplier=5.0)

    def ledger(folder):
        return Ledger(epsilon=1.5, delta=1e-5, method="rdp", path=folder / "ledger.jsonl")

    place(plan, agents=4, ledger=ledger)
    charges = Journal(place.folder / "server" / "ledger.jsonl").read()[1]
    assert [line["note"]["round"] for line in charges] == sorted(released(place.folder)) == [0, 1, 2]
    for number in range(4):  # and everybody went on alone
        kinds = [event["event"] for event in Journal(place.folder / "nodes" / f"agent-{number}.jsonl").read()[1]]
        assert kinds.count("told") == 2 + 5
    with pytest.raises(ValueError, match="give a ledger"):
        SecureServer(plan, ROSTER[:4])


def test_a_server_that_forgot_its_rounds_gets_no_second_sum(place, caplog):
    plan = SumPlan(FEATURES, agents=4, rounds=1)
    place(plan, agents=4)
    (place.folder / "server" / "sums.jsonl").unlink()
    for secrets in (place.folder / "nodes").glob("secure-*"):
        secrets.unlink()
    place(plan, agents=4)
    assert released(place.folder) == {}
    assert "0 parties showed keys" in caplog.text


def test_a_node_that_lies_is_left_out(place, caplog):
    def forge(content, round):
        _, phase, said = from_records(content)
        if phase == 0 and isinstance(said, dict):
            said["mask"] = "11" * 32
        return to_records(round, phase, said)

    def another(content, round):
        content["extra"] = content["secure"]
        return content

    plan = SumPlan(FEATURES, agents=5, threshold=3, rounds=1)
    place(plan, agents=5, forged={1: forge, 3: another})
    total = np.sum([steps_of(plan, place.folder, n, 0) for n in (0, 2, 4)], axis=0)
    assert (released(place.folder)[0] == plan.broadcast(0, total).vectors).all()
    assert "not signed" in caplog.text
    assert "not of a secure sum" in caplog.text


def test_a_nodes_secrets_are_its_own_and_gone_at_the_end(place):
    plan = SumPlan(FEATURES, agents=4, rounds=1)
    grid = place(plan, agents=4, leaves={(1, 0): {100}})
    assert sorted(path.name for path in (place.folder / "nodes").glob("secure-*")) == []
    assert len(grid.arrived) == 4 * 6
    grid = place(SumPlan(FEATURES, agents=4, rounds=2), agents=4, leaves={(1, 3): {100, 101, 102, 103}})
    assert released(place.folder).keys() == {0}


@pytest.mark.parametrize("phase", [-1, 6])
def test_records_that_are_none(phase):
    with pytest.raises(ValueError, match="phases 0 to 5"):
        from_records(to_records(0, phase, None))
    with pytest.raises(ValueError, match="round, a phase"):
        from_records(to_records(-1, 0, None))
