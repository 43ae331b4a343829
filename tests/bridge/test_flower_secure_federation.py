"""A real federation of SuperNodes whose server sees masked vectors; one is killed in the middle of a sum."""

from __future__ import annotations

import json
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("flwr", reason="needs Flower: make test-flower")

from flower_deployment import NAME, Deployment, until

from surefoot import GP, SE, Box
from surefoot.federated import Agent, SharedFeatures
from surefoot.federated.secure import SumPlan
from surefoot.loop.journal import Journal

AGENTS = 5
PYPROJECT = """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "secure-federation"
version = "0.1.0"
license = "MIT"

[tool.hatch.build.targets.wheel]
packages = ["secure_federation"]

[tool.flwr.app]
publisher = "surefoot"

[tool.flwr.app.components]
serverapp = "secure_federation.server_app:app"
clientapp = "secure_federation.client_app:app"

[tool.flwr.app.config]
rounds = 1
deadline = 60.0
state = "server"
"""
AGREEMENT = f"""
from surefoot import GP, SE, Box
from surefoot.federated import Agent, SharedFeatures
from surefoot.federated.secure import Identity, SumPlan

AGENTS = {AGENTS}
FEATURES = SharedFeatures(1, 12, lengthscale=0.2, noise=0.01, seed=5)
IDENTITIES = [Identity(bytes([n + 1]) * 32) for n in range(AGENTS)]  # of a test: everybody else keeps his to himself
ROSTER = [identity.public for identity in IDENTITIES]


def plan(rounds):
    return SumPlan(FEATURES, agents=AGENTS, rounds=rounds)


def agent_of(number, journal, config):
    gp = GP(SE(lengthscale=0.3), noise=1e-3)
    return Agent(Box.unit(1), FEATURES, agent=number, initial=2, gp=gp, seed=number, journal=journal)
"""
CLIENT = """
from secure_federation.agreement import IDENTITIES, ROSTER, agent_of, plan
from surefoot.bridge.flower import secure_client_app


def objective(query, context):
    return float(-((query.x[0] - 0.1 * context.node_config["agent"]) ** 2))


app = secure_client_app(
    agent_of, objective, plan=plan(1), roster=ROSTER, identity=lambda context: IDENTITIES[context.node_config["agent"]]
)
"""
SERVER = """
import json
import os

from flwr.serverapp import ServerApp
from secure_federation.agreement import ROSTER, plan
from surefoot.bridge.flower import SecureServer

app = ServerApp()


class Recording:
    def __init__(self, grid, path):
        self.grid, self.path = grid, path

    def __getattr__(self, name):
        return getattr(self.grid, name)

    def pull_messages(self, names):
        messages = list(self.grid.pull_messages(names))
        with open(self.path, "a") as file:
            for message in messages:
                records = {} if message.has_error() else {k: dict(v) for k, v in message.content.config_records.items()}
                others = [] if message.has_error() else sorted(set(message.content) - set(records))
                file.write(json.dumps({"error": message.has_error(), "records": records, "others": others}) + "\\n")
        return messages


@app.main()
def main(grid, context):
    config = context.run_config
    server = SecureServer(plan(config["rounds"]), ROSTER, deadline=config["deadline"])
    server(Recording(grid, os.path.join(config["state"] + "-transcript.jsonl")), context)
"""


@pytest.mark.slow
def test_a_real_federation_of_which_one_is_killed(tmp_path):
    app = tmp_path / "app"
    package = app / "secure_federation"
    package.mkdir(parents=True)
    (app / "pyproject.toml").write_text(PYPROJECT)
    for name, text in {
        "__init__": '"""A test."""',
        "agreement": AGREEMENT,
        "client_app": CLIENT,
        "server_app": SERVER,
    }.items():
        (package / f"{name}.py").write_text(text)
    deployment, server = Deployment(tmp_path / "deployment"), tmp_path / "server"
    try:
        deployment.start_superlink()
        for number in range(AGENTS):
            deployment.register(f"node-{number}")
            deployment.start_node(f"node-{number}", f'agent={number} state="{tmp_path / f"party-{number}"}"')

        def online():
            answer = deployment.flwr("supernode", "list", NAME, "--format", "json")
            nodes = json.loads(answer[answer.index("{") :])["nodes"]
            return sum(node["status"] == "online" for node in nodes) == AGENTS

        until(online, 600, "nodes are there")
        run = deployment.run(app, rounds=1, deadline=150.0, state=str(server))
        # One is killed when it has shared its secrets, before it sends its vector.
        secrets = tmp_path / "party-2" / "secure-2.json"
        until(lambda: secrets.exists() and "share" in json.loads(secrets.read_text())["said"], 900, "node 2 shares")
        deployment.kill("node-2")
        end = time.monotonic() + 1200
        while not (status := deployment.status(run)).startswith("finished"):
            assert time.monotonic() < end, status
            time.sleep(1.0)
        assert status == "finished:completed", deployment.log("superlink")[-3000:]
    finally:
        deployment.close()

    (release,) = [e["broadcast"] for e in Journal(server / "sums.jsonl").read()[1] if e["event"] == "released"]
    plan = SumPlan(SharedFeatures(1, 12, lengthscale=0.2, noise=0.01, seed=5), agents=AGENTS)
    lines = [json.loads(line) for line in Path(f"{server}-transcript.jsonl").read_text().splitlines()]
    assert not any(line["others"] for line in lines)
    said = [json.loads(line["records"]["secure"]["json"]) for line in lines if not line["error"]]
    masked = sorted(one["party"] for one in said if isinstance(one, dict) and one["kind"] == "masked")
    assert set(masked) >= set(range(AGENTS)) - {2}
    steps, crossed = {}, json.dumps(said)
    for number in range(AGENTS):
        gp = GP(SE(lengthscale=0.3), noise=1e-3)
        journal = tmp_path / f"party-{number}" / f"agent-{number}.jsonl"
        with Agent(Box.unit(1), plan.features, agent=number, initial=2, gp=gp, seed=number, journal=journal) as agent:
            steps[number] = plan.contribution(number, agent.message(0).vector, 0)
            words = plan.ring(0).lower(steps[number]).astype("<u8").view(np.uint8).reshape(-1, 8)[:, :4].tobytes().hex()
            assert words[:32] not in crossed
    total = np.sum([steps[n] for n in masked], axis=0)
    assert np.array_equal(release["vectors"], plan.broadcast(0, total).vectors)
