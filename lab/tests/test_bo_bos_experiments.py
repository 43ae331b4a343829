"""Experiments of the family bo-bos on real curves, and the problems behind them: trained networks and regressions."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest

from surefoot import BOBOS, Float, Space
from surefoot.errors import MissingData
from surefoot_lab import Budget, Replicate, Trace, find
from surefoot_lab.curves import CurveProblem, drive
from surefoot_lab.datasets import locate
from surefoot_lab.experiments.bo_bos import lr_mnist, lr_mnist_stopped_curves
from surefoot_lab.experiments.bo_bos._stops import plain, published, wrong_stops
from surefoot_lab.networks import LOGISTIC, NETWORK, Training, digits, fashion_mnist, logistic_mnist
from surefoot_lab.results import Results
from surefoot_lab.runner import run

GOOD = {"learning_rate": 0.3, "momentum": 0.5, "weight_decay": 1e-3, "hidden": 32, "batch": 32}


def have(name):
    try:
        locate(name)
    except MissingData:
        return False
    return True


needs_lcbench = pytest.mark.skipif(not have("lcbench"), reason="the data set lcbench is not on this machine")
needs_mnist = pytest.mark.skipif(not have("mnist"), reason="the data set mnist is not on this machine")
needs_fashion = pytest.mark.skipif(not have("fashion_mnist"), reason="the data set fashion_mnist is not here")


@pytest.fixture
def own_images(tmp_path, monkeypatch):
    """Stored images that a linear classifier can tell apart: class k has a bright row 2k + 4, and noise."""
    rng = np.random.default_rng(0)
    y = np.arange(1200, dtype=np.uint8) % 10
    X = rng.integers(0, 120, (1200, 28, 28), dtype=np.uint8)
    X[np.arange(1200), 2 * y + 4] += 100
    for name in ("mnist", "fashion_mnist"):
        (tmp_path / name).mkdir()
        arrays = {"X_train": X[:1000], "y_train": y[:1000], "X_test": X[1000:], "y_test": y[1000:]}
        np.savez(tmp_path / name / f"{name}_subset.npz", **arrays)
    monkeypatch.setenv("SUREFOOT_DATA", str(tmp_path))


# -- networks


def test_a_run_is_a_function_of_parameters_and_seed():
    x = NETWORK.point(GOOD)
    first, again, other = (digits(seed, epochs=6).curve(x) for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    assert first[-1] > 0.9
    assert np.array_equal(digits(1, epochs=3).curve(x), first[:3])  # a shorter run is a prefix


def test_networks_differ_with_every_parameter():
    base = digits(epochs=4).curve(NETWORK.point(GOOD))
    other = {"learning_rate": 0.01, "momentum": 0.0, "weight_decay": 1.0, "hidden": 8, "batch": 256}
    for name, value in other.items():
        assert not np.array_equal(base, digits(epochs=4).curve(NETWORK.point({**GOOD, name: value}))), name


def test_a_diverged_network_guesses():
    problem = digits(epochs=8)
    wild = NETWORK.point({"learning_rate": 1.0, "momentum": 0.99, "weight_decay": 1.0, "hidden": 128, "batch": 32})
    curve = problem.curve(wild)
    assert np.isfinite(curve).all()
    assert curve[-1] < 0.3


def test_curves_are_kept_once_complete(tmp_path):
    calls = []

    def train(params):
        calls.append(params["rate"])
        score = 0.0
        while True:
            score += params["rate"]
            yield score

    problem = Training("steps", Space(rate=Float(0.0, 1.0)), 4, train, {"seed": 1}, tmp_path)
    beginning = problem.scores([0.1])
    assert [next(beginning), next(beginning)] == pytest.approx([0.1, 0.2])
    assert list(tmp_path.iterdir()) == []  # an unfinished run is not kept
    curve = problem.curve([0.1])
    assert problem.curve([0.1]).tolist() == curve.tolist()
    assert calls == [0.1, 0.1]
    assert len(list(tmp_path.iterdir())) == 1
    for changed in (replace(problem, identity={"seed": 2}), replace(problem, name="other")):
        changed.curve([0.1])
    problem.curve([0.2])
    assert len(calls) == 5
    assert len(list(tmp_path.iterdir())) == 4


def test_a_kept_curve_is_the_trained_one(tmp_path):
    x = NETWORK.point(GOOD)
    kept = digits(3, epochs=4, cache=tmp_path)
    assert kept.curve(x).tolist() == digits(3, epochs=4).curve(x).tolist() == kept.curve(x).tolist()
    (file,) = tmp_path.iterdir()
    assert len(json.loads(file.read_text())) == 4


def test_a_network_whose_weights_overflow_can_only_guess():
    train = digits(0, epochs=3).train
    assert list(islice(train({**GOOD, "learning_rate": 1e300, "weight_decay": 1e300}), 3)) == [0.1, 0.1, 0.1]


def test_logistic_regression_learns_and_regularization_holds_it_back(own_images):
    problem = logistic_mnist(images=1000, epochs=15)
    point = LOGISTIC.point({"batch": 20, "weight_decay": 1e-6, "learning_rate": 0.1})
    held = LOGISTIC.point({"batch": 20, "weight_decay": 1.0, "learning_rate": 0.1})
    slow = LOGISTIC.point({"batch": 500, "weight_decay": 1e-6, "learning_rate": 1e-3})
    curve = problem.curve(point)
    assert curve[-1] > 0.95
    assert problem.curve(slow)[0] < curve[-1]
    assert problem.curve(held)[-1] <= curve[-1]
    assert np.array_equal(curve, logistic_mnist(images=1000, epochs=15).curve(point))


def test_the_gradient_of_logistic_regression_is_that_of_the_loss(own_images):
    """One step with one batch of all images, against numerical differences of the regularized cross-entropy."""
    from surefoot_lab.networks import Images, _logistic

    rng = np.random.default_rng(1)
    X, y = rng.random((12, 5)).astype(np.float32), rng.integers(0, 10, 12)
    at = []

    class Probe(np.ndarray):
        """Remembers the weights it is multiplied with."""

        def __matmul__(self, W):
            at.append(np.array(W, dtype=np.float64))
            return np.asarray(self) @ W

    runs = _logistic(Images(X, y, X.view(Probe), y), 0)({"batch": 12, "weight_decay": 0.3, "learning_rate": 0.5})
    next(runs), next(runs)
    before, after = at  # weights after the first and the second epoch; offsets follow from the first step
    start = 0.5 * (np.bincount(y, minlength=10) / 12 - 0.1)

    def loss(W):
        Z = X.astype(np.float64) @ W + start
        return np.mean(np.log(np.exp(Z).sum(axis=1)) - Z[np.arange(12), y]) + 0.15 * (W**2).sum()

    slope = np.zeros_like(before)
    for i in np.ndindex(*before.shape):
        step = np.zeros_like(before)
        step[i] = 1e-5
        slope[i] = (loss(before + step) - loss(before - step)) / 2e-5
    assert np.allclose(after, before - 0.5 * slope, atol=1e-5)


def test_fashion_mnist_is_halved_and_split(own_images):
    problem = fashion_mnist(images=400, epochs=10)
    assert problem.curve(NETWORK.point(GOOD))[-1] > 0.8
    for bad in (0, 5001):
        with pytest.raises(ValueError, match="images"):
            fashion_mnist(images=bad)
        with pytest.raises(ValueError, match="images"):
            logistic_mnist(images=bad if bad == 0 else 12_001)


def test_missing_images_say_where_to_get_them(tmp_path, monkeypatch):
    monkeypatch.setenv("SUREFOOT_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for make in (fashion_mnist, logistic_mnist):
        with pytest.raises(MissingData, match="SUREFOOT_DATA"):
            make()


def test_early_stopping_on_a_real_network_spends_its_budget():
    problem = digits(4, epochs=12)
    policy = BOBOS(problem.domain, epochs=12, seed=1)
    runs, best = drive(policy, problem, 10 * 12, np.random.default_rng)
    assert best.shape == (120,)
    assert sum(run.end for run in runs) == 120
    assert policy.epochs_saved == sum(12 - run.end for run in runs if run.stopped)
    assert best[-1] > 0.9


# -- experiments


def small(id, repetitions, **settings):
    made = find(id)
    return replace(made, quick=Budget(repetitions, **{**made.quick.settings, **settings}))


def readable(made, settings):
    """Judge one repetition: every claim must read something."""
    results = Results.fresh(made, "quick")
    results.replicates = {0: dict(made.run(Replicate(0, settings={**made.quick.settings, **settings})))}
    for claim in results.judge():
        assert all(test["n"] >= 1 for test in claim["tests"]), claim
    return results.replicates[0]


def test_wrong_stops_are_counted_in_each_repetition():
    trace = {"BO-BOS": Trace(stopped=4, false_stops=1)}
    values = wrong_stops("BO-BOS").values([trace, {"BO-BOS": Trace(stopped=2, false_stops=0)}, {"other": Trace()}])
    assert values.tolist()[:2] == [0.25, 0.0]
    assert np.isnan(values[2])
    assert wrong_stops("BO-BOS").values([]).shape == (0,)


def test_the_published_pair_shares_its_belief_and_start():
    problem = CurveProblem("line", LOGISTIC, 10, lambda X: X[:, :1] / 500.0 * np.linspace(0.5, 1.0, 10), 1.0)
    stopping, whole = published(problem, 3, paths=1000, growth=0.89), plain(problem, 3)
    assert stopping.stopping.paths == 1000
    assert stopping.growth == 0.89
    assert stopping.initial == whole.initial == 6
    assert [q.x.tolist() for q in stopping.ask(6)] == [q.x.tolist() for q in whole.ask(6)]


def test_schedules_are_the_published_numbers():
    for name, row in lr_mnist.VALUES.items():
        trace = lr_mnist.schedule(lr_mnist.SCHEDULES[name])
        found = [float(trace[f"K1 at {t}"]) for t in lr_mnist.ITERATIONS]
        assert np.abs(np.array(found) - row).max() < 0.6
        assert found == pytest.approx([100.0 / lr_mnist.SCHEDULES[name] ** (t - 1) for t in lr_mnist.ITERATIONS])


def test_lr_mnist_reads_all_its_claims(own_images):
    settings = {"images": 400, "epochs": 10, "runs": 8, "paths": 500}
    traces = readable(find("bo-bos/lr-mnist"), settings)
    assert {"GP-UCB", "a", "b", "c", "d", "schedule a"} <= set(traces)
    assert traces["GP-UCB"]["simple_regret"].shape == (80,)


def test_stopped_curves_are_finished(own_images):
    made = find("bo-bos/lr-mnist-stopped-curves")
    trace = made.run(Replicate(0, settings={"images": 400, "epochs": 20, "runs": 12, "paths": 500}))["defaults"]
    assert float(trace["runs"]) >= 12
    assert float(trace["stopped"]) * 20 >= float(trace["saved"]) > 0
    assert 0 < float(trace["length as a share"]) < 1
    assert lr_mnist_stopped_curves.METHOD == "published"


@needs_lcbench
def test_lcbench_reads_all_its_claims():
    pytest.importorskip("onnxruntime")
    readable(find("bo-bos/lcbench"), {"runs": 10})


@needs_lcbench
@pytest.mark.slow
def test_lcbench_at_a_fraction_of_its_budget(tmp_path):
    pytest.importorskip("onnxruntime")
    data = run(small("bo-bos/lcbench", 3, runs=12), out=tmp_path, workers=0)
    assert data["failures"] == []
    assert len(data["claims"]) == 4


@needs_mnist
@pytest.mark.slow
def test_lr_mnist_on_the_real_images(tmp_path):
    data = run(small("bo-bos/lr-mnist", 2, images=1000, epochs=10, runs=8, paths=2000), out=tmp_path, workers=0)
    assert data["failures"] == []
    assert {c["code"]: c["verdict"] for c in data["claims"]}["C5"] == "holds"


@needs_fashion
def test_fashion_mnist_is_learned():
    curve = fashion_mnist(images=500, epochs=8).curve(NETWORK.point({**GOOD, "learning_rate": 0.1}))
    assert curve[-1] > 0.6
