"""The package of ``examples/plugin``, installed in a place of its own: its policy and command are found like ours."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from surefoot.cli import app

ROOT = Path(__file__).resolve().parents[1]
PLUGIN = ROOT / "examples" / "plugin"
LOOP = """
import sys, surefoot
assert surefoot.policy_names().count("OneFifth") == 1 and "surefoot_one_fifth" not in sys.modules
policy = surefoot.policy_named("OneFifth")(surefoot.Box([(0.0, 1.0)]), reach=0.5, seed=0)
for _ in range(5):
    query = policy.ask()
    policy.tell(query, -((query.x[0] - 0.3) ** 2))
policy.save("state.json")
print(policy.ask().x)
"""
ELSEWHERE = """
import sys, surefoot
assert "surefoot_one_fifth" not in sys.modules
policy = surefoot.load("state.json")
print(policy.queries[-1].x if policy.pending else policy.ask().x)
"""
SERVED = """
from fastapi.testclient import TestClient
from surefoot.serve import Settings, Store, create_app, tokens

if __name__ == "__main__":  # worker processes read this file too
    store = Store("sqlite:///studies.db")
    store.migrate()
    secret = tokens.create(store, "physics", "test", "write")["token"]
    with TestClient(create_app(store, Settings(rate=0.0))) as client:
        client.headers["Authorization"] = f"Bearer {secret}"
        domain = {"domain": "Box", "bounds": [[0.0, 1.0]]}
        study = {"name": "x", "policy": "OneFifth", "domain": domain, "options": {"reach": 0.5}, "seed": 0}
        id = client.post("/api/v1/studies", json=study).json()["id"]
        answer = client.post(f"/api/v1/studies/{id}/ask", json={})
        print(answer.status_code, answer.json())
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Run a program in a folder where the package is installed."""
    if importlib.util.find_spec("hatchling") is None:
        pytest.skip("hatchling is not installed")
    folder = tmp_path_factory.mktemp("plugin")
    place = folder / "site"
    plain = {key: value for key, value in os.environ.items() if not key.startswith(("PYTEST_", "COV_"))}
    path = os.pathsep.join([str(place), *filter(None, [os.environ.get("PYTHONPATH")])])

    def run(*words: str) -> str:
        environment = {**plain, "PYTHONPATH": path, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
        done = subprocess.run(
            [sys.executable, *words], cwd=folder, env=environment, capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    offline = ("--quiet", "--no-index", "--no-deps", "--no-build-isolation")
    run("-m", "pip", "install", *offline, "--target", str(place), str(PLUGIN))
    return run


def test_its_policy_is_driven_saved_and_loaded_where_nothing_imports_it(run):
    assert run("-c", LOOP) == run("-c", ELSEWHERE)


def test_its_own_tests_pass_the_contract_suite(run):
    said = run("-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(PLUGIN), str(PLUGIN / "tests"))
    assert "passed" in said
    assert "failed" not in said


@pytest.mark.skipif(importlib.util.find_spec("fastapi") is None, reason="the service is not installed")
def test_the_service_and_its_workers_find_it(run, tmp_path):
    program = tmp_path / "served.py"
    program.write_text(SERVED)
    assert run(str(program)).startswith("200 ")


@pytest.mark.skipif(not hasattr(app, "add_command"), reason="the command line does not take a click.Command yet")
def test_the_command_tunes_with_it_and_has_its_command(run):
    tune = ROOT / "examples" / "tune"
    words = ["--space", str(tune / "space.toml"), "--policy", "one-fifth", "--option", "reach=0.5", "--trials", "4"]
    surefoot = ("-c", "from surefoot.cli import main; main()")
    said = run(*surefoot, "tune", f"{tune / 'objective.py'}:accuracy", *words, "--seed", "0", "--journal", "run.jsonl")
    assert "Recommended" in said
    assert "csv" in run(*surefoot, "--help")
    assert len(run(*surefoot, "csv", "run.jsonl").splitlines()) == 4
