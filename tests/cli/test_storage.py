"""Earlier studies as tasks, and the tuning of a function that learns from them."""

from __future__ import annotations

import io
import json
import sys

import numpy as np
import pytest
from rich.console import Console

from surefoot import BOBOS, RMGPUCB, Box, Float, Int, RandomSearch, Space, Task, optimize
from surefoot.cli import app
from surefoot.cli.storage import as_begun, earlier_studies, trust
from surefoot.cli.tune import tune

SPACE = Space(rate=Float(1e-4, 1.0, log=True), depth=Int(1, 6))
TOML = """
rate = {type = "float", low = 1e-4, high = 1.0, log = true}
depth = {type = "int", low = 1, high = 6}
"""
OBJECTIVE = """
import math

def loss(params):
    return (math.log10(params["rate"]) + 1) ** 2 + 0.1 * abs(params["depth"] - 3)

def train(params):
    for epoch in range(1, 13):
        yield (1 - 0.3 * loss(params)) * (1 - 0.6**epoch)
"""


def loss(params, shift=0.0):
    return (np.log10(params["rate"]) + 1.0 + shift) ** 2 + 0.1 * abs(params["depth"] - 3)


def train(params, shift=0.0):
    for epoch in range(1, 13):
        yield (1.0 - 0.3 * loss(params, shift)) * (1.0 - 0.6**epoch)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "space.toml").write_text(TOML)
    (tmp_path / "objective.py").write_text(OBJECTIVE)
    (tmp_path / "studies").mkdir()
    for name, shift in (("alike", 0.1), ("unlike", -3.0)):
        optimize(lambda p, s=shift: loss(p, s), SPACE, 9, policy=RandomSearch, direction="minimize", seed=3,
                 journal=tmp_path / "studies" / f"{name}.jsonl")  # fmt: skip
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield tmp_path
    sys.modules.pop("objective", None)


def run(function="loss", **options):
    screen = Console(file=io.StringIO(), width=100)
    settings = {"space": "space.toml", "trials": 5, "seed": 1, "out": None, "transfer": ["studies"], **options}
    result = tune(f"objective.py:{function}", console=screen, **settings)
    return result, screen.file.getvalue()


# -- reading ---------------------------------------------------------------------------------------------------------


def test_a_folder_gives_what_serves_and_says_what_does_not(folder):
    with RandomSearch(Box.unit(3), seed=0, direction="minimize", journal="studies/boxes.jsonl") as policy:
        policy.tell([0.5, 0.5, 0.5], 1.0)
    with RandomSearch(SPACE, seed=0, journal="studies/upwards.jsonl") as policy:
        policy.tell({"rate": 0.1, "depth": 2}, 1.0)
    (folder / "studies" / "torn.jsonl").write_text('{"schema": 1, "pol')
    (folder / "studies" / "notes.txt").write_text("not a journal")
    found = earlier_studies(["studies", "studies/alike.jsonl"], SPACE, direction="minimize")
    assert [(task.name, len(task)) for task in found.tasks] == [("alike", 9), ("unlike", 9)]
    assert [reason.split(":")[0].split(" ")[0] for reason in found.skipped] == [
        "studies/boxes.jsonl",
        "studies/torn.jsonl",
        "studies/upwards.jsonl",
    ]
    for name, words in [
        ("boxes", "expected an array of shape"),
        ("upwards", "wanted to maximize, this one to minimize"),
        ("torn", "no run"),
    ]:
        with pytest.raises(ValueError, match=words):
            earlier_studies([f"studies/{name}.jsonl"], SPACE, direction="minimize")
    own = earlier_studies(["studies"], SPACE, direction="minimize", besides=folder / "studies" / "alike.jsonl")
    assert [task.name for task in own.tasks] == ["unlike"]


def test_runs_outside_the_new_ranges_are_left_out(folder):
    narrow = Space(rate=Float(1e-2, 1.0, log=True), depth=Int(1, 6))
    (before, _), (after, _) = (earlier_studies(["studies"], s, direction="minimize").tasks for s in (SPACE, narrow))
    kept = [row["rate"] >= 1e-2 for row in before.X]
    assert 0 < sum(kept) < len(kept)
    assert np.array_equal(after.y, before.y[kept])


# -- tuning ----------------------------------------------------------------------------------------------------------


def test_tuning_learns_from_a_folder_in_the_right_direction(folder):
    result, text = run(direction="minimize")
    policy = result.policy
    assert type(policy) is RMGPUCB
    assert "learning from alike, 9 trials" in text
    best = min(earlier_studies(["studies"], SPACE, direction="minimize").tasks[0].y)
    assert result.value < best + 0.5
    assert policy.weights[0] > 0.8
    assert f"weights of earlier studies: {trust(policy)}" in text
    assert trust(policy).startswith("alike 0.")


def test_epochs_and_earlier_studies_together(folder):
    optimize(train, SPACE, 6, policy=BOBOS, seed=0, journal="old.jsonl", epochs=12)
    result, text = run("train", epochs=12, trials=9, transfer=["old.jsonl"])
    assert type(result.policy).__name__ == "RMBOBOS"
    assert result.policy.tasks[0].epochs is not None
    assert result.epochs + result.saved == 9 * 12
    assert "learning from old, 6 trials" in text
    assert "/12 epochs" in text
    assert result.policy.history[0].value > 0.9  # the first one already


def test_a_resumed_run_keeps_the_tasks_it_was_begun_with(folder):
    """Its own journal may lie in the folder, and studies may be added there meanwhile."""
    whole, _ = run(direction="minimize", trials=5)
    run(direction="minimize", trials=3, journal="studies/now.jsonl")
    optimize(loss, SPACE, 4, policy=RandomSearch, direction="minimize", seed=8, journal="studies/new.jsonl")
    resumed, text = run(direction="minimize", trials=5, journal="studies/now.jsonl", resume=True)
    assert [q.x.tolist() for q in resumed.policy.queries] == [q.x.tolist() for q in whole.policy.queries]
    assert "learning from new" not in text


def test_what_does_not_serve_is_said_on_the_screen(folder):
    with RandomSearch(SPACE, seed=0, journal="studies/upwards.jsonl") as policy:
        policy.tell({"rate": 0.1, "depth": 2}, 1.0)
    _, text = run(direction="minimize", trials=1)
    assert "learning from alike, 9 trials" in text
    assert "not learning from studies/upwards.jsonl" in text
    _, text = run(direction="minimize", trials=1, quiet=True)
    assert "learning from" not in text


def test_tasks_stored_by_their_hash_are_found_again(tmp_path):
    X = np.random.default_rng(0).random((6000, 1))
    big, path = Task(X, X[:, 0], name="big"), tmp_path / "run.jsonl"
    with RMGPUCB(Box([(0.0, 1.0)]), tasks=[big], max_points=10, seed=0, journal=path):
        pass
    assert as_begun(path, [Task([0.1], [1.0], "other"), Task(X, X[:, 0], "another name")]) == [big]
    with pytest.raises(ValueError, match="6000 measurements of 'big', which are not among"):
        as_begun(path, [])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"policy": "gp-ucb"}, "GPUCB knows no earlier studies"),
        ({"policy": "rgpe", "transfer": []}, "RGPE needs --transfer JOURNAL"),
        ({"transfer": ["nowhere"]}, "no journal, saved state or folder nowhere"),
        ({"transfer": ["empty"]}, "no earlier study to learn from in empty"),
        ({"direction": "maximize"}, r"no earlier study to learn from in studies \(.*wanted to minimize"),
        ({"transfer": ["space.toml"]}, "space.toml is neither a journal nor a saved state"),
    ],
)
def test_what_cannot_be_is_said(options, words, folder):
    (folder / "empty").mkdir()
    with pytest.raises(ValueError, match=words):
        run(**{"direction": "minimize", **options})


def test_the_command_takes_journals_and_folders(folder):
    from click.testing import CliRunner

    words = "tune objective.py:loss --space space.toml --trials 2 --direction minimize --no-page -q --seed 1"
    done = CliRunner().invoke(app, [*words.split(), "--transfer", "studies/alike.jsonl", "--transfer", "studies"])
    assert done.exit_code == 0, done.output
    assert sorted(json.loads(done.output)) == ["depth", "rate"]
