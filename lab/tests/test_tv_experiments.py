"""The experiments on drifting functions, at a fraction of their budgets and on made-up sensors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from surefoot.loop.widths import LogTime
from surefoot.policy.drift import fading
from surefoot_lab import Budget, Replicate, find
from surefoot_lab.experiments.tv_gp_ucb import _drifting, _sensors, temperature, traffic
from surefoot_lab.results import Results
from surefoot_lab.runner import run

FAMILY = "tv-gp-ucb/"
SMALL = {
    "matched": {"side": 6, "horizon": 200, "kernels": ("SE", "Matern")},
    "mismatch": {"side": 6, "horizon": 12},
    "block-length": {"side": 6, "horizon": 12},
    "long-horizon": {"side": 5, "horizon": 800},
    "estimating-epsilon": {"times": 20, "places": 10},
    "temperature": {"treatments": ("sensor", "global")},
    "traffic": {},
}


@pytest.fixture(autouse=True)
def data(tmp_path, monkeypatch):
    """Sensors of the right form and of no meaning: slow waves with noise."""
    rng = np.random.default_rng(0)

    def waves(steps, sensors, level, size):
        t, phase = np.arange(steps)[:, None], rng.uniform(0, 6, sensors)
        return level + size * np.sin(t / 20 + phase) + 0.1 * size * rng.standard_normal((steps, sensors))

    for name in ("intel_lab", "metr_la"):
        (tmp_path / name).mkdir()
    room = waves(240, 12, 22.0, 3.0)
    np.savez(
        tmp_path / "intel_lab" / "intel_lab.npz",
        temperature_train=room[:144].T,
        temperature_test=room[144:].T,
    )
    (tmp_path / "intel_lab" / "mote_locations.csv.gz").write_bytes(b"")
    monkeypatch.setattr("surefoot_lab.datasets._read", _read)
    speed = waves(2016, 15, 55.0, 8.0)
    speed[:, 0] += 12.0  # the best sensor hardly changes
    speed[5 * 288 + 100 : 5 * 288 + 105] -= 20.0  # a sudden drop in a test window
    np.savez(tmp_path / "metr_la" / "metr_la_week.npz", speed=speed)
    monkeypatch.setenv("SUREFOOT_DATA", str(tmp_path))
    monkeypatch.setattr(temperature, "BLOCKS", (5, 12))
    monkeypatch.setattr(fading, "RELEARN", 200)
    for cached in (temperature._trained, traffic._trained):
        cached.cache_clear()
    yield
    for cached in (temperature._trained, traffic._trained):
        cached.cache_clear()


def _read(path):
    return dict(np.load(path)) if path.suffix == ".npz" else {}


def one(id, index=0, **settings):
    made = find(FAMILY + id)
    return made, dict(made.run(Replicate(index, settings={**made.quick.settings, **settings})))


@pytest.mark.parametrize("id", SMALL)
def test_every_claim_reads_something(id):
    """A claim whose methods or metrics are misspelt would be undecided for ever."""
    settings = dict(SMALL[id])
    if id == "block-length":
        settings["horizon"] = 20
    made, traces = one(id, **settings)
    results = Results.fresh(made, "quick")
    results.replicates = {0: traces}
    for claim in results.judge():
        assert "no data" not in claim["note"], claim["name"]


@pytest.mark.parametrize("id", ["mismatch", "estimating-epsilon", "temperature", "traffic"])
def test_a_repetition_is_a_function_of_its_number(id):
    first, second = (one(id, 3, **SMALL[id])[1] for _ in range(2))
    assert {k: t.to_json() for k, t in first.items()} == {k: t.to_json() for k, t in second.items()}


def test_matched_shows_what_it_should(tmp_path):
    made = replace(find(FAMILY + "matched"), quick=Budget(4, side=10, horizon=80, kernels=("SE",)))
    data = run(made, out=tmp_path, workers=0)
    assert data["failures"] == []
    verdicts = {claim["code"]: claim["verdict"] for claim in data["claims"]}
    assert "fails" not in (verdicts["C1"], verdicts["C3"], verdicts["C5"])


def test_the_last_block_is_gp_ucb():
    _, traces = one("block-length", side=6, horizon=30)
    assert traces["N = 200"].to_json() == traces["GP-UCB"].to_json()
    assert traces["N = 5"].to_json() != traces["GP-UCB"].to_json()


def test_assuming_no_drift_is_gp_ucb_with_the_same_seed():
    replicate = Replicate(1, settings={})
    values = _drifting.functions("SE", 6, 30, 0.01, replicate)
    makers = {"tracking": _drifting.tracking("SE", 0.0), "static": _drifting.static("SE")}
    traces = _drifting.compare_tracking(makers, values, replicate)
    assert traces["tracking"].to_json() == traces["static"].to_json()


@pytest.mark.parametrize("kernel", ["SE", "Matern"])
def test_innovations_have_the_kernels_covariance(kernel):
    side = 4
    draws = np.concatenate([_drifting.innovations(kernel, side, 500, Replicate(i)) for i in range(8)])
    K = _drifting.KERNELS[kernel](_drifting.candidates(side).points)
    np.testing.assert_allclose(draws.T @ draws / len(draws), K, atol=0.09)


def test_intervals_cover(tmp_path):
    made = replace(find(FAMILY + "estimating-epsilon"), quick=Budget(12, times=40, places=10))
    data = run(made, out=tmp_path, workers=0)
    share, agreement = data["claims"]
    assert share["verdict"] != "fails"
    assert share["estimate"][0] > 0.85
    assert agreement["verdict"] == "holds"


def test_sensors_have_the_covariance_and_the_mean_of_their_training_days():
    rng = np.random.default_rng(0)
    days = [10.0 + rng.standard_normal((50, 4)) @ rng.standard_normal((4, 4)) for _ in range(2)]
    for treatment in ("sensor", "global"):
        sensors = _sensors.Sensors.trained(days, 0.5, LogTime(), treatment)
        all_ = np.concatenate(days)
        around = all_ - (all_.mean(axis=0) if treatment == "sensor" else all_.mean())
        np.testing.assert_allclose(sensors.gp.kernel(sensors.domain.points), around.T @ around / 100, atol=1e-6)
    # A sensor that is always better is found through its shift alone, before anything is measured.
    days = [day + np.array([0.0, 0.0, 40.0, 0.0]) for day in days]
    sensors = _sensors.Sensors.trained(days, 0.5, LogTime(0.8, 4.0))
    assert sensors.tracking(0).ask().index == sensors.static(0).ask().index == sensors.resetting(5, 0).ask().index == 2


def test_drops_are_found():
    values = np.full((6, 2), 50.0)
    values[:, 0] = [60.0, 60.0, 40.0, 40.0, 60.0, 60.0]
    assert traffic._drops(values).tolist() == [2]
