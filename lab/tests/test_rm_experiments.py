"""The experiments around earlier tasks, at a fraction of their budgets and on made-up data; and what they stand on."""

from __future__ import annotations

import gzip
import math
import os

import numpy as np
import pytest

from surefoot import GPUCB, Box, RandomSearch
from surefoot.errors import MissingData
from surefoot_lab import Budget, Equal, Metric, Replicate, Trace, compare, find, one_standard_error
from surefoot_lab.cartpole import CartPole
from surefoot_lab.experiments.rm_gp_ucb import _cartpole, _diabetes, _methods, _surrogate, _svm, _synthetic
from surefoot_lab.lcbench import EPOCHS, TASKS, lcbench, space
from surefoot_lab.problems import branin
from surefoot_lab.results import Results
from surefoot_lab.runner import run

FAMILY = "rm-gp-ucb/"


@pytest.fixture
def data(tmp_path, monkeypatch):
    """Data sets of the right form and of no meaning, small enough to run on."""
    rng = np.random.default_rng(0)
    for name in ("svm_meta", "cnn_meta_tasks", "pima_diabetes"):
        (tmp_path / name).mkdir()
    points = rng.random((40, 3))
    accuracy = np.array([0.9 - ((points - best) ** 2).sum(axis=1) / 4 for best in rng.random((6, 3))])
    names = np.array([f"set {i}" for i in range(6)])
    np.savez(tmp_path / "svm_meta" / "tst_svm.npz", hyperparameters=points, accuracy=accuracy, names=names)
    X = rng.random((4, 12, 3))
    y = 0.9 - ((X - 0.4) ** 2).sum(axis=2) / 3 - 0.1 * np.arange(4)[:, None]
    np.savez(
        tmp_path / "cnn_meta_tasks" / "meta_obs_images.npz",
        X=X,
        validation_accuracy=y,
        task=np.array(_surrogate.TARGETS),
    )
    features = rng.standard_normal((768, 3))
    outcome = (features.sum(axis=1) + rng.standard_normal(768) > 0).astype(int)
    rows = "\n".join(f"{a},{b},{c},{o}" for (a, b, c), o in zip(features, outcome, strict=True))
    with gzip.open(tmp_path / "pima_diabetes" / "pima_diabetes.csv.gz", "wt") as file:
        file.write("one,two,three,Outcome\n" + rows)
    monkeypatch.setenv("SUREFOOT_DATA", str(tmp_path))
    monkeypatch.setattr(_svm, "LENGTH", 10)
    monkeypatch.setattr(_diabetes, "LENGTH", 6)
    monkeypatch.setattr(_diabetes, "EPOCHS", 2)
    cached = (_svm.table, _surrogate.tasks, _surrogate.problem, _diabetes._patients, _diabetes.tasks)
    for function in cached:
        function.cache_clear()
    yield tmp_path
    for function in cached:
        function.cache_clear()


def small(id, **settings):
    """One repetition of an experiment."""
    made = find(FAMILY + id)
    return made, dict(made.run(Replicate(0, settings={**made.quick.settings, **settings})))


SMALL = {
    "synthetic": {"horizon": 20},
    "synthetic-eta": {"horizon": 10},
    "synthetic-dissimilar": {"horizon": 40},
    "cartpole": {"horizon": 10, "tasks": 4, "length": 8},
    "cartpole-large": {"horizon": 2, "tasks": 6, "length": 8},
    "svm": {"horizon": 8, "targets": 1},
    "cnn-surrogate": {"horizon": 10, "multitask": False},
    "diabetes": {"horizon": 2},
    "diabetes-runtime": {"horizon": 2},
    "gap-aggregation": {"horizon": 2, "trained": 1},
}


@pytest.mark.parametrize("id", SMALL)
def test_every_claim_reads_something(id, data):
    """A claim whose methods or metrics are misspelt would be undecided for ever."""
    made, traces = small(id, **SMALL[id])
    results = Results.fresh(made, "quick")
    results.replicates = {0: traces, 1: traces}  # two: one has no standard error
    for claim in results.judge():
        assert "cannot be judged" not in claim["note"], claim
        assert "no data" not in claim["note"], claim
        assert claim["tests"]
        assert all(math.isfinite(value) for test in claim["tests"] for value in [test["estimate"]])


@pytest.mark.parametrize("id", ["synthetic", "svm", "cartpole"])
def test_a_repetition_is_a_function_of_its_number(id, data):
    (_, one), (_, two) = (small(id, **{**SMALL[id], "horizon": 2}) for _ in range(2))
    assert {k: t.to_json() for k, t in one.items()} == {k: t.to_json() for k, t in two.items()}


def test_synthetic_claims_hold(tmp_path):
    """The published order and the card's numbers, with fewer functions than the quick run."""
    from dataclasses import replace

    made = replace(find(FAMILY + "synthetic"), quick=Budget(24, horizon=20))
    claims = run(made, out=tmp_path, workers=0)["claims"]
    assert claims[1]["verdict"] == claims[3]["verdict"] == "holds"
    assert "fails" not in {claim["verdict"] for claim in claims}


def test_overall_reads_what_the_others_stored(data, tmp_path):
    from dataclasses import replace

    overall = find(FAMILY + "overall")
    with pytest.raises(MissingData, match="surefoot reproduce"):
        overall.run(Replicate(0, out=str(tmp_path / "empty")))
    made = replace(find(FAMILY + "svm"), quick=Budget(2, targets=1, horizon=4))
    run(made, out=tmp_path, workers=0)
    stored = Results.load(tmp_path / made.id, made).replicates[1]["GP-UCB"]["simple_regret"]
    traces = overall.run(Replicate(1, out=str(tmp_path)))
    assert traces["svm: GP-UCB"]["end"] == stored[-1]
    assert traces["svm: GP-UCB"]["quarter"] == stored[0]


def test_gaps_of_the_synthetic_tasks():
    """Values of a task are within its gap of f, up to noise of variance 0.01."""
    problem, tasks = _synthetic.draw(Replicate(3))
    for task, gap in zip(tasks, _synthetic.GAPS, strict=True):
        off = np.abs(task.y - problem(task.X))
        assert off.max() < gap + 0.5
        assert off.max() > 0.5 * gap


def test_svm_tasks_leave_the_target_out(data):
    problem, tasks = _svm.case(2, Replicate(0))
    assert len(tasks) == 5
    assert "set 2" not in {task.name for task in tasks}
    assert all(len(task) == 10 for task in tasks)
    assert problem.optimum == _svm.table()["accuracy"][2].max()


def test_fitted_accuracies_stay_accuracies(data):
    problem = _surrogate.problem("MNIST")
    values = problem(problem.domain.sample(500, np.random.default_rng(0)))
    assert 0 <= values.min() < values.max() <= problem.optimum + 1e-9 <= 1.0


def test_histories_are_runs_of_gp_ucb():
    task = _methods.history(branin(), 8, seed=3, initial=5)
    policy = GPUCB(branin().domain, gp=_methods.belief(branin().domain), initial=5, seed=3)
    np.testing.assert_array_equal(task.X[:5], [policy.ask().x for _ in range(5)])
    np.testing.assert_allclose(task.y, branin()(task.X))


# -- cart-pole --------------------------------------------------------------------------------------------------------


def balance(weights, state, steps):
    """One episode, written down step by step with the textbook's equations."""
    W, (x, speed, angle, turn) = np.reshape(weights, (4, 2)), state
    for step in range(steps):
        if abs(x) > 2.4 or abs(angle) > math.radians(12):
            return step
        left, right = np.array([x, speed, angle, turn]) @ W
        force = 10.0 if right > left else -10.0
        temp = (force + 0.1 * 0.5 * turn**2 * math.sin(angle)) / 1.1
        turning = (9.8 * math.sin(angle) - math.cos(angle) * temp) / (0.5 * (4 / 3 - 0.1 * math.cos(angle) ** 2 / 1.1))
        pushing = temp - 0.1 * 0.5 * turning * math.cos(angle) / 1.1
        x, speed, angle, turn = x + 0.02 * speed, speed + 0.02 * pushing, angle + 0.02 * turn, turn + 0.02 * turning
    return steps


def test_cart_pole_against_one_episode_at_a_time():
    rng = np.random.default_rng(5)
    task = CartPole(start=(0.3, -0.2, 0.05, 0.4), steps=120)
    controllers, begin = rng.uniform(-1, 1, (12, 8)), task.beginnings(4, rng)
    expected = [[balance(w, state, 120) for state in begin] for w in controllers]
    np.testing.assert_array_equal(task.lengths(controllers, begin), expected)
    assert len(np.unique(expected)) > 5


def test_cart_pole_scores():
    task = CartPole()
    good = np.array([-0.1, 0.1, -0.3, 0.3, -1.0, 1.0, -0.8, 0.8])
    assert task.score(good, np.random.default_rng(0)) == 1.0
    assert task.score(-good, np.random.default_rng(0)) < 0.2
    begin = task.beginnings(50, np.random.default_rng(1))
    assert np.abs(begin).max() <= 0.05
    with pytest.raises(ValueError, match="four finite numbers"):
        CartPole(start=(0.0, 0.0, 0.0))
    with pytest.raises(ValueError, match="at least one step"):
        CartPole(steps=0)


def test_similar_tasks_begin_near_the_target():
    target, *others = (np.array(task.start) for task in _cartpole.beginnings(8, Replicate(2)))
    distances = [np.abs((start - target) / _cartpole.NEAR).max() for start in others]
    assert max(distances[: _cartpole.SIMILAR]) <= 1.0 < min(distances[_cartpole.SIMILAR :])


# -- LCBench ----------------------------------------------------------------------------------------------------------


def test_unknown_lcbench_tasks_are_refused():
    with pytest.raises(ValueError, match="unknown LCBench task"):
        lcbench("7")
    assert len(TASKS) == len(set(TASKS)) == 34


def test_lcbench_curves():
    """The values that came with the model."""
    pytest.importorskip("onnxruntime")
    if not os.path.exists(os.path.join(os.environ.get("SUREFOOT_DATA", ""), "lcbench", "model.onnx")):
        pytest.skip("the data set lcbench is not here")
    problem = lcbench(3945)
    x = space().point(
        {
            "batch_size": 64,
            "learning_rate": 0.01,
            "momentum": 0.9,
            "weight_decay": 0.001,
            "num_layers": 3,
            "max_units": 256,
            "max_dropout": 0.2,
        }
    )
    curve = problem.curve(x)
    np.testing.assert_allclose(curve[[0, 9, 51]], [0.4041, 0.8869, 0.9065], atol=1e-4)
    assert curve.shape == (EPOCHS,)
    assert problem.final(x)[0] == curve[-1]
    assert problem.best >= problem.final(problem.domain.sample(2000, np.random.default_rng(3))).max()


# -- what was added to the lab ----------------------------------------------------------------------------------------


def test_watching_a_policy():
    make = {"random": lambda d, seed: RandomSearch(d, seed=seed), "GP-UCB": lambda d, seed: GPUCB(d, seed=seed)}
    watch = lambda policy: {"told": len(policy.history)} if isinstance(policy, GPUCB) else {}  # noqa: E731
    traces = compare(make, branin(), 4, Replicate(0), initial=2, watch=watch)
    np.testing.assert_array_equal(traces["GP-UCB"]["told"], [3, 4, 5, 6])
    assert "told" not in traces["random"].metrics


def test_one_repetition_has_no_standard_error():
    claim = Equal("a is b", (Metric("x")["a"], Metric("x")["b"]), margin=one_standard_error)
    entry = claim.judge([{"a": Trace(x=1.0), "b": Trace(x=2.0)}])
    assert entry["verdict"] == "undecided"
    assert entry["published"] is None  # NaN is no JSON


def test_domains_of_the_problems():
    assert CartPole().domain == Box([(-1.0, 1.0)] * 8)
    assert space().dimension == 7
    assert _diabetes.space().dimension == 3
