"""The experiments on games, at a fraction of their quick budgets, on fresh payoffs."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from surefoot import SE
from surefoot.errors import MissingExtra
from surefoot_lab import Budget, Replicate, datasets, find, names
from surefoot_lab.experiments.r2b2 import _games
from surefoot_lab.registry import Data
from surefoot_lab.results import Results
from surefoot_lab.runner import run

TWO = {"published": 0, "side": 6, "horizon": 8, "starts": 1}
SMALL = {
    "synthetic": {**TWO, "horizon": 150},  # where the table is
    "wrong-level0-belief": TWO,
    "wrong-level-belief": TWO,
    "random-level0": TWO,
    "exp3-level0": TWO,
    "three-players": {"side": 4, "horizon": 6},
    "adversary-two-agents": {"side": 4, "horizon": 6},
}


def one(id, index=0, **settings):
    made = find(f"r2b2/{id}")
    return made, dict(made.run(Replicate(index, settings={**made.quick.settings, **settings})))


def test_every_one_is_registered():
    assert {f"r2b2/{id}" for id in (*SMALL, "predator-prey")} <= set(names())


@pytest.mark.parametrize("id", [pytest.param(id, marks=pytest.mark.slow) if id == "synthetic" else id for id in SMALL])
def test_every_claim_reads_something(id):
    made, traces = one(id, **SMALL[id])
    results = Results.fresh(made, "quick")
    results.replicates = {0: traces}
    for claim in results.judge():
        assert "no data" not in claim["note"], claim["name"]


@pytest.mark.parametrize("id", ["wrong-level0-belief", "exp3-level0", "adversary-two-agents"])
def test_a_repetition_is_a_function_of_its_number(id):
    first, second, other = (one(id, index, **SMALL[id])[1] for index in (3, 3, 4))
    plain = [{k: t.to_json() for k, t in traces.items()} for traces in (first, second, other)]
    assert plain[0] == plain[1] != plain[2]


def test_the_agents_and_the_adversary_share_one(tmp_path):
    made = replace(find("r2b2/adversary-two-agents"), quick=Budget(2, side=5, horizon=10, starts=1))
    data = run(made, out=tmp_path, workers=0)
    assert data["failures"] == []
    assert data["claims"][4]["verdict"] == "holds"


def test_draws_have_the_kernels_covariance():
    draws = np.array([_games.smooth_draw(4, 2, np.random.default_rng(i)).ravel() for i in range(4000)])
    axis = np.linspace(0.0, 1.0, 4)
    points = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    np.testing.assert_allclose(draws.T @ draws / 4000, SE(lengthscale=0.1)(points), atol=0.09)


def test_the_prior_of_a_scaled_draw_is_found_again():
    errors = []
    for seed in range(6):
        payoff = _games.Payoff.drawn(100, 2, np.random.default_rng(seed))
        assert payoff.table.min() == 0.0
        assert payoff.table.max() == pytest.approx(1.0)
        mean, std = _games.scaled_prior(payoff.table)
        errors.append((mean - payoff.mean, std / payoff.std - 1.0))
    assert np.abs(errors).max() < 0.15
    assert np.abs(np.mean(errors, axis=0)).max() < 0.06


def test_kinds_of_games():
    both = [_games.Payoff.drawn(5, 2, np.random.default_rng(seed)) for seed in range(2)]
    common, general, constant = (_games.of_kind(kind, both) for kind in _games.KINDS)
    assert common[1] is both[0]
    assert general == both
    np.testing.assert_allclose(constant[0].table + constant[1].table, 1.0)
    assert constant[1].mean == pytest.approx(1.0 - both[0].mean)
    assert both[0].prior("Q").noise == 1.0
    assert both[0].prior("P").kernel.variance == pytest.approx(both[0].std ** 2)


@pytest.mark.parametrize(
    ("name", "levels", "profiles"),
    [
        ("3v2", (3, 2), (None, None)),
        ("210", (2, 1, 0), ([None, 1, 0], None, None)),
        ("121", (1, 2, 1), (None, [1, None, 1], None)),
        ("021", (0, 2, 1), (None, [0, None, 1], None)),
    ],
)
def test_seatings(name, levels, profiles):
    seating = _games.Seating.read(name)
    assert (seating.levels, seating.profiles, seating.lite) == (levels, profiles, False)
    assert _games.Seating.read("1v0 Lite").lite


def test_configurations_have_names_of_their_own():
    _, traces = one("random-level0", **TWO, configurations=("P", "Q"))
    assert "1v0, common" in traces
    assert "1v0, common (Q)" in traces
    assert len(traces) == 30


HERE = Path(os.environ.get("SUREFOOT_DATA", "nowhere"), "r2b2_games").exists()


@pytest.mark.skipif(not HERE, reason="the published games are not here")
def test_published_games():
    payoff = datasets.load("r2b2_games")["payoff"]
    assert payoff.shape == (10, 2, 100, 100)
    found = [_games.Payoff.published(game, seat) for game in range(3) for seat in range(2)]
    assert all(0.12 < one.std < 0.26 for one in found)  # 1/R for ranges between 4 and 8
    assert all(0.2 < one.mean < 0.8 for one in found)


@pytest.mark.slow
def test_level_2_is_better_off(tmp_path):
    """Eight fresh games on a coarse grid: level 2 against level 1 has less regret than 0 against 0."""
    settings = {"published": 0, "side": 20, "horizon": 40, "starts": 1, "configurations": ("P",)}
    made = replace(find("r2b2/synthetic"), data=Data(), quick=Budget(6, **settings))
    data = run(made, out=tmp_path, workers=0)
    assert data["failures"] == []
    verdicts = {claim["code"]: claim["verdict"] for claim in data["claims"]}
    assert verdicts["C2"] != "fails"
    assert verdicts["C1"] != "fails"


def test_predator_prey():
    pytest.importorskip("mpe2", reason="mpe2 is not installed")
    made, traces = one("predator-prey", horizon=1, samples=4)
    results = Results.fresh(made, "quick")
    results.replicates = {0: traces}
    assert all("no data" not in claim["note"] for claim in results.judge())


def test_predator_prey_says_what_is_missing():
    import importlib.util

    if importlib.util.find_spec("mpe2") is not None:
        pytest.skip("mpe2 is installed")
    with pytest.raises(MissingExtra, match=r"surefoot\[pettingzoo\]"):
        one("predator-prey")
