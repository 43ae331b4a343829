"""``surefoot federate``: what is planned, simulated, printed and written, and how it fails."""

from __future__ import annotations

import importlib.util
import io
import json
import sys
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

from surefoot import cli
from surefoot.cli import federate as room
from surefoot.errors import MissingData, MissingExtra
from surefoot.federated import Weighting
from surefoot.federated.plan import FederationPlan, solve
from surefoot.private.accounting import noise_multiplier
from surefoot_lab import landmine


def command(*words, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["surefoot", "federate", *words])
    with pytest.raises(SystemExit) as end:
        cli.main()
    return int(end.value.code or 0)


def quietly(function, **options):
    screen = Console(file=io.StringIO(), width=120)
    return function(console=screen, **options), screen.file.getvalue()


# -- planning --------------------------------------------------------------------------------------------------------


def test_the_plan_has_every_published_loss_and_the_tighter_ones():
    made = FederationPlan(
        agents=29, rounds=60, regions=4, count=100, sampling=0.35, weighting=Weighting(hold=10, fall=30)
    )
    assert made.loss("moments", sensitivity="published") == pytest.approx(15.17, abs=0.005)
    assert made.loss("moments") == pytest.approx(9.12, abs=0.005)
    facts = made.to_dict()
    for losses in facts["epsilon"].values():
        assert losses["exact"] <= losses["published"]
    assert facts["epsilon"]["pld"]["exact"] <= facts["epsilon"]["rdp"]["exact"] <= facts["epsilon"]["moments"]["exact"]
    assert facts["signal_to_noise"]["first"] == pytest.approx(1 / 9.0, rel=0.02)  # the card's 9.0
    assert json.loads(json.dumps(facts, allow_nan=False)) == facts


@pytest.mark.parametrize("regions", [1, 3])
@pytest.mark.slow
def test_solving_for_z_meets_the_loss_and_not_more(regions):
    made = solve(FederationPlan(agents=300, rounds=12, regions=regions, sampling=0.3, delta=1e-4), 3.0)
    assert made.loss() <= 3.0 < replace(made, multiplier=0.99 * made.multiplier).loss()
    if regions == 1:
        assert made.multiplier == pytest.approx(noise_multiplier(3.0, 1e-4, sampling=0.3, count=12), rel=2e-3)


def test_what_a_plan_prints(monkeypatch, capsys):
    assert (
        command("--plan", "--agents", "200", "--rounds", "40", "--q", "0.25", "--z", "1", monkeypatch=monkeypatch) == 0
    )
    printed = capsys.readouterr().out
    for text in ("9.91", "7.05", "exact sensitivity", "signal over noise: 2.3", "δ = 0.00294", "not towards the"):
        assert text in printed
    assert "close to a random one" not in printed
    assert (
        command("--plan", "--agents", "30", "--rounds", "5", "--delta", "1e-4", "--quiet", monkeypatch=monkeypatch) == 0
    )
    assert json.loads(capsys.readouterr().out)["delta"] == 1e-4


def test_a_plan_with_little_signal_says_so():
    _, printed = quietly(room.plan, agents=10, rounds=2, multiplier=2.0)
    assert "close to a random one" in printed


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--plan", "--q", "0"], "sampling is a probability above 0, got 0.0"),
        (["--plan", "--q", "1.5"], "got 1.5"),
        (["--plan", "--z", "-1"], "z must be positive and finite, got -1.0"),
        (["--plan", "--z", "1", "--epsilon", "3"], "--z or --epsilon, not both"),
        (["--plan", "--epsilon", "-3"], "epsilon must be positive and finite, got -3.0"),
        (["--plan", "--delta", "1"], "delta must lie strictly between 0 and 1, got 1.0"),
        (["--plan", "--regions", "0"], "got 0"),
        (["--plan", "--features", "1"], "count must be a whole number from 2 on, got 1"),
        (["--plan", "--clip", "0"], "clip must be positive, got 0.0"),
        (["--plan", "--agents", "0"], "agents must be a whole number from 1 on, got 0"),
        (["--plan", "--agents", "1"], "one agent has no default delta: give one"),
        (["--plan", "--rounds", "0"], "rounds must be a whole number from 1 on, got 0"),
        (["--data", "mnist"], "data is one of auto, landmine, synthetic, not 'mnist'"),
        (["--data", "synthetic", "--runs", "0"], "runs must be at least 1, got 0"),
        (["--flower", "nowhere"], "there is no Flower app at nowhere"),
    ],
)
def test_bad_input_is_one_line_and_status_2(words, text, monkeypatch, capsys):
    assert command(*words, monkeypatch=monkeypatch) == 2
    error = capsys.readouterr().err
    assert text in error
    assert error.count("\n") == 1


# -- simulating ------------------------------------------------------------------------------------------------------


def test_a_synthetic_federation_is_printed_written_and_repeatable(tmp_path, monkeypatch, capsys):
    words = ["--data", "synthetic", "--agents", "12", "--rounds", "4", "--runs", "2", "--out", str(tmp_path)]
    pytest.importorskip("matplotlib")
    assert command(*words, monkeypatch=monkeypatch) == 0
    printed = capsys.readouterr().out
    assert "12 agents, 4 rounds, synthetic data, 2 runs" in printed
    assert "is not private" in printed
    facts = json.loads((tmp_path / "federation.json").read_text())
    assert facts["simulated"] is True
    assert {name: np.shape(runs) for name, runs in facts["curves"].items()} == dict.fromkeys(
        ("TS", "FTS-DE", "DP-FTS-DE", "noise only"), (2, 5)
    )
    assert (tmp_path / "federation.png").stat().st_size > 10_000
    assert command(*words, "--quiet", "--no-picture", monkeypatch=monkeypatch) == 0
    assert json.loads(capsys.readouterr().out) == facts


def test_landmine_fields_where_they_are(tmp_path, monkeypatch):
    monkeypatch.setattr(room, "_data", lambda name: "landmine")
    monkeypatch.setattr(landmine, "values", lambda field, X: 0.8 - ((np.asarray(X) - 0.1 * field) ** 2).sum(axis=1))
    made, printed = quietly(room.federate, agents=4, rounds=2, out=tmp_path, picture=False)
    assert (made.data, made.plan.regions, made.plan.count) == ("landmine", 4, 100)
    assert "1 − AUC" in printed
    for runs in made.curves.values():
        assert (np.diff(runs, axis=1) <= 0).all()
    with pytest.raises(ValueError, match="29 landmine fields, got 30 agents"):
        room.federate(agents=30)


def test_without_landmine_data_auto_is_synthetic_and_asking_for_them_fails(tmp_path, monkeypatch):
    monkeypatch.setenv("SUREFOOT_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert room._data("auto") == "synthetic"
    with pytest.raises(MissingData, match=r"landmine\.npz"):
        room.federate(data="landmine")


def test_without_matplotlib_there_is_no_picture(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    _, printed = quietly(room.federate, data="synthetic", agents=2, rounds=1, out=tmp_path)
    assert "no picture: " in printed
    assert [file.name for file in tmp_path.iterdir()] == ["federation.json"]


# -- Flower ----------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(importlib.util.find_spec("flwr") is not None, reason="Flower is installed")
def test_without_flower_it_says_what_to_install(tmp_path):
    (tmp_path / "pyproject.toml").write_text("")
    with pytest.raises(MissingExtra, match=r"surefoot\[flower\]"):
        room.start_flower(tmp_path)


def test_flower_runs_the_app(tmp_path, monkeypatch):
    """The command that is started is Flower's own, with the app and the connection, and its status is ours."""
    program = tmp_path / "flwr"
    program.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/words\nexit 3\n')
    program.chmod(0o755)
    (tmp_path / "pyproject.toml").write_text("")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    assert room.start_flower(tmp_path, "loopback") == 3
    assert (tmp_path / "words").read_text().split() == ["run", str(tmp_path), "loopback", "--stream"]


def test_without_the_command_of_flower_it_says_what_to_install(tmp_path, monkeypatch):
    (tmp_path / "pyproject.toml").write_text("")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingExtra, match=r"flwr was not found: pip install 'surefoot\[flower\]'"):
        room.start_flower(tmp_path)
