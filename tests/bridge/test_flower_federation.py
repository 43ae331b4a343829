"""A real federation on loopback: TLS, node keys, separate processes that are killed, join late and lie."""

from __future__ import annotations

import json
import math
import os
import shutil
import signal
import struct
import subprocess
import sys
import time
import warnings
from pathlib import Path

import pytest

pytest.importorskip("flwr", reason="needs Flower: make test-flower")

from flower_deployment import NAME, Deployment, until
from flwr.serverapp import NeighboringRelation, PrivacyConfig, SamplingMethod

import surefoot
from surefoot.bridge.flower import SurefootAccountant
from surefoot.federated import Coordinator, SharedFeatures
from surefoot.loop.journal import Journal
from surefoot.private import Ledger

EXAMPLE = Path(__file__).parents[2] / "examples" / "flower_federation"

# The example's apps, but every message that reaches the server is written down, and a node may be told to lie.
SERVER = """
import json
import os

from flwr.serverapp import ServerApp
from ridge_federation.agreement import make_coordinator

from surefoot.bridge.flower import FederationServer

app = ServerApp()


class Recording:
    def __init__(self, grid, path):
        self.grid, self.path = grid, path

    def __getattr__(self, name):
        return getattr(self.grid, name)

    def pull_messages(self, names):
        messages = list(self.grid.pull_messages(names))
        with open(self.path, "a") as file:
            file.writelines(json.dumps(describe(message)) + "\\n" for message in messages)
        return messages


def describe(message):
    if message.has_error():
        return {"error": message.error.reason}
    content = message.content
    arrays = {key: {name: a.numpy().tolist() for name, a in r.items()} for key, r in content.array_records.items()}
    plain = {key: dict(record) for key, record in content.config_records.items()}
    metrics = {key: dict(record) for key, record in content.metric_records.items()}
    return {"error": None, "records": sorted(content), "arrays": arrays, "plain": plain, "metrics": metrics}


@app.main()
def main(grid, context):
    config = context.run_config
    server = FederationServer(make_coordinator, deadline=config["deadline"], minimum=config["minimum"])
    server(Recording(grid, os.path.join(config["state"], "transcript.jsonl")), context)
"""
LIAR = """

def lie(message, context, call_next):
    reply = call_next(message, context)
    if context.node_config.get("lies-in") == int(message.metadata.group_id):
        from flwr.app import Array

        record = reply.content.array_records["message.arrays"]
        record["vector"] = Array(record["vector"].numpy() * np.nan)
    return reply


app = client_app(make_agent, objective, mods=[lie])
"""


@pytest.fixture
def deployment(tmp_path):
    made = Deployment(tmp_path / "deployment")
    yield made
    made.close()


@pytest.fixture
def app(tmp_path):
    folder = tmp_path / "app"
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "ridge_federation" / "server_app.py").write_text(SERVER)
    client = folder / "ridge_federation" / "client_app.py"
    client.write_text(client.read_text() + LIAR)
    return folder


def released(folder: Path) -> list[int]:
    lines = Journal(folder / "broadcasts.jsonl").read()[1] if (folder / "broadcasts.jsonl").exists() else []
    return [line["round"] for line in lines]


def finished(deployment: Deployment, run: int, seconds: float) -> str:
    end = time.monotonic() + seconds
    while not (status := deployment.status(run)).startswith("finished"):
        if time.monotonic() > end:
            raise TimeoutError(f"{status}:\n{deployment.log('superlink')[-3000:]}")
        time.sleep(1.0)
    return status


def online(deployment: Deployment) -> int:
    answer = deployment.flwr("supernode", "list", NAME, "--format", "json")
    return sum(node["status"] == "online" for node in json.loads(answer[answer.index("{") :])["nodes"])


def patient() -> float:
    """Seconds in which even a busy machine answers: a node starts a process for every request."""
    start = time.monotonic()
    subprocess.run([sys.executable, "-c", "import surefoot.bridge.flower"], check=True)
    return max(20.0, 15.0 * (time.monotonic() - start))


def plan(rounds: int) -> list:
    """What the public constants of the example say each release costs."""
    features = SharedFeatures(2, 100, lengthscale=0.2, noise=0.01, seed=2026)
    with warnings.catch_warnings(action="ignore"):
        return Coordinator(features, agents=6, regions=2, rounds=rounds, noise_multiplier=1.0, sampling=0.5).plan()


@pytest.mark.slow
def test_a_federation_survives_and_shows_nothing(deployment, app, tmp_path):
    server, rounds, deadline = tmp_path / "server", 5, patient()
    settings = {"rounds": rounds, "deadline": deadline, "minimum": 2, "state": str(server), "epsilon": 200.0}

    def start(number: int, extra: str = "") -> None:
        folder = tmp_path / f"party-{number}"
        deployment.start_node(f"node-{number}", f'agent={number} state="{folder}" {extra}'.strip())

    deployment.start_superlink()
    names = {number: deployment.register(f"node-{number}") for number in range(6)}
    for number in range(5):
        start(number, "lies-in=1" if number == 2 else "")
    deployment.start_node("stranger", f'agent=5 state="{tmp_path / "stranger"}"')
    until(lambda: online(deployment) == 5, 60, "five nodes are there")

    # An unregistered node is refused: it ends by itself and never was a node.
    stranger = deployment.processes["stranger"]
    until(lambda: stranger.poll() is not None, 30, "the stranger gives up")
    assert stranger.returncode != 0
    assert "Failed to activate SuperNode" in deployment.log("stranger")

    first = deployment.run(app, **settings)
    until(lambda: 1 in released(server), 60 + 4 * deadline, "two rounds")
    deployment.kill("node-3")
    deployment.kill("node-4")
    start(5)  # late, on a place the public roster has
    until(lambda: 2 in released(server), 60 + 4 * deadline, "the round with the killed nodes")

    # kill -9 the coordinator, then the SuperLink; both come back and go on from what is on disk.
    (coordinator,) = until(deployment.serverapps, 10, "the server app")[:1]
    os.kill(coordinator, signal.SIGKILL)
    deployment.kill("superlink")
    before = released(server)
    assert before == list(range(len(before)))
    assert len(before) < rounds
    deployment.start_superlink()
    second = deployment.run(app, **settings)
    assert second != first
    assert finished(deployment, second, 120 + 8 * deadline) == "finished:completed"

    # The ledger: one charge for each release, of the size the public weights say, and all of them add up.
    assert released(server) == list(range(rounds))
    with Ledger(epsilon=200.0, delta=0.01, path=server / "ledger.jsonl") as ledger:
        assert [entry.note["round"] for entry in ledger.entries] == list(range(rounds))
        charged = [entry.event for entry in ledger.entries]
        assert charged == plan(rounds)
        assert charged[0].noise_multiplier == pytest.approx(math.sqrt(2.0), rel=1e-5)  # P = 2, each agent in one
        config = PrivacyConfig(0.01, 6, NeighboringRelation.ADD_OR_REMOVE_ONE, SamplingMethod.POISSON)
        accountant = SurefootAccountant(config)
        accountant.replay(charged)
        assert accountant.num_releases == rounds
        assert accountant.get_privacy_spent().epsilon == pytest.approx(ledger.spent(), rel=1e-9)

    # Who was heard: the killed until they were killed, the late one later, the liar not when it lied. After the restart
    # a node may still be busy with the killed run and come late, but it comes.
    lines = Journal(server / "vectors.jsonl").read()[1]
    heard = {number: [line["round"] for line in lines if line["agent"] == number] for number in range(6)}
    assert heard[0][:3] == heard[1][:3] == [0, 1, 2]
    assert heard[2][:2] == [0, 2]
    assert all(max(heard[number]) >= 3 for number in (0, 1, 2))
    for number in (3, 4):
        assert heard[number][:2] == [0, 1]
        assert rounds - 1 not in heard[number]
    assert heard[5]
    assert min(heard[5]) >= 2
    roster = json.loads((server / "roster.json").read_text())
    assert roster == {str(number): str(names[number]) for number in range(6)}

    # Each party did its queries once, whoever asked twice: three initial ones, then one for each message.
    raw: dict[int, set[float]] = {}
    for number in range(6):
        with surefoot.load(tmp_path / f"party-{number}" / f"agent-{number}.jsonl") as agent:
            X, y, _ = agent.data()
            raw[number] = {float(value) for value in (*X.ravel(), *y)}
            messages = [event["round"] for event in agent.events if event["event"] == "sent"]
            assert len(messages) == len(set(messages))
            if number not in (3, 4):  # the killed may have measured without an answer
                assert len(y) == 3 + len(messages) - 1

    # Nothing but vectors crossed: every record of every message, field by field.
    answers = [json.loads(line) for line in (server / "transcript.jsonl").read_text().splitlines()]
    crossed: set[float] = set()
    sent = 0
    for answer in answers:
        if answer["error"] is not None:  # Flower's own words about nodes that are gone
            assert not any(str(value) in answer["error"] for values in raw.values() for value in values)
            continue
        assert answer["metrics"] == {}
        if answer["records"] == ["word"]:
            assert answer["plain"] == {"word": {"word": "done"}}
            continue
        sent += 1
        assert answer["records"] == ["message", "message.arrays"]
        assert set(answer["plain"]["message"]) == {"schema", "kind", "agent", "round", "features"}
        assert list(answer["arrays"]["message.arrays"]) == ["vector"]
        vector = answer["arrays"]["message.arrays"]["vector"]
        assert len(vector) == 100
        crossed |= set(vector)
    assert sent >= 2 * rounds
    # Corners of the domain are public; everything else that was measured has many digits.
    everything = {value for values in raw.values() for value in values if len(repr(value)) > 8}
    assert len(everything) > 40
    assert not crossed & everything
    # Nor is a value in what the server or the SuperLink kept.
    kept = [*server.iterdir(), *deployment.folder.glob("superlink*")]
    for path in kept:
        content = path.read_bytes()
        for value in everything:
            assert struct.pack("<d", value) not in content, path
            assert repr(value).encode() not in content, path


@pytest.mark.slow
def test_the_same_app_in_flowers_simulation():
    command = [sys.executable, str(EXAMPLE.parents[1] / "benchmarks" / "flower_simulation.py")]
    done = subprocess.run(
        [*command, "--agents", "4", "--rounds", "2"], capture_output=True, text=True, timeout=300, check=True
    )
    *_, row = done.stdout.strip().splitlines()
    agents, rounds, *_ = row.strip("|").split("|")
    assert (int(agents), int(rounds)) == (4, 2)
