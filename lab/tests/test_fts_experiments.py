"""The experiments on FTS at a fraction of their budgets, on made-up fields; and the baselines they stand on."""

from __future__ import annotations

import os

import numpy as np
import pytest

from surefoot import RGPE, SE, Box, ThompsonSampling
from surefoot.belief.gp import GP
from surefoot.errors import MissingData
from surefoot.federated import Agent, Decay, FixedProbability, SharedFeatures, simulate, synthetic_family
from surefoot.federated.controls import RandomQueries, pooled_thompson, random_functions
from surefoot.loop.state import pack, unpack
from surefoot.policy.transfer.models import slopes
from surefoot_lab import Replicate, datasets, find, landmine, names
from surefoot_lab.baselines.federated_transfer import FederatedTAF, WeightBelief, message_length
from surefoot_lab.experiments.fts import _landmine, _synthetic
from surefoot_lab.results import Results

GRID = {"size": 120, "starts": 2, "horizon": 40}
FIELDS = {"length": 4, "horizon": 50}
SMALL = {
    "synthetic-similar": GRID,
    "synthetic-heterogeneous": GRID,
    "landmine": {**FIELDS, "targets": 1, "counts": (50, 100, 150, 200)},
    "landmine-runtime": {**FIELDS, "horizon": 3},
    "landmine-other-targets": {**FIELDS, "horizon": 3, "fields": (1, 2)},
    "landmine-growing": {**FIELDS, "horizon": 4},
    "schedules": {**FIELDS, "horizon": 4, "targets": 1, "scales": (0.2,)},
}


@pytest.fixture
def fields(monkeypatch):
    """Five fields with smooth values instead of 29 trained machines, and no data."""
    centers = np.random.default_rng(0).uniform(0.3, 0.7, (5, 2))
    monkeypatch.setattr(landmine, "FIELDS", 5)
    monkeypatch.setattr(landmine, "values", lambda field, X: 0.8 - 0.3 * ((np.asarray(X) - centers[field]) ** 2).sum(1))
    _landmine.history.cache_clear()
    yield
    _landmine.history.cache_clear()


def one(id, index=0, **settings):
    made = find(f"fts/{id}")
    return made, dict(made.run(Replicate(index, settings={**made.quick.settings, **settings})))


def test_every_one_of_priority_one_is_registered():
    assert {f"fts/{id}" for id in SMALL} <= set(names())


@pytest.mark.parametrize("id", [id for id in SMALL if id != "landmine"])
def test_every_claim_reads_something(id, fields):
    made, traces = one(id, **SMALL[id])
    results = Results.fresh(made, "quick")
    results.replicates = dict.fromkeys(range(2), traces)
    for claim in results.judge():
        assert "no data" not in claim["note"], claim["name"]


def test_the_lengths_of_messages_and_the_uses_are_exact(fields):
    made, traces = one("landmine", length=3, horizon=2, targets=1, counts=(100,))
    assert {"FTS, M = 100", "RGPE, M = 100", "TAF, M = 100", "TS", "random"} < set(traces)
    results = Results.fresh(made, "quick")
    results.replicates = {0: traces}
    verdicts = [claim["verdict"] for claim in results.judge()]
    assert (verdicts[0], verdicts[5]) == ("holds", "holds")


@pytest.mark.parametrize("id", ["synthetic-heterogeneous", "schedules"])
def test_a_repetition_is_a_function_of_its_number(id, fields):
    plain = []
    for index in (3, 3, 4):
        _, traces = one(id, index, **SMALL[id])
        plain.append({name: trace["simple_regret"].tolist() for name, trace in traces.items()})
    assert plain[0] == plain[1] != plain[2]


def test_methods_of_the_synthetic_runs_share_function_start_and_measurements():
    replicate = Replicate(0, settings=GRID)
    near, far = (_synthetic.drawn(replicate, gap) for gap in (0.02, 1.2))
    assert np.array_equal(near[0].values, far[0].values)
    assert np.abs(near[1].values - near[0].values[:, :1]).max() == pytest.approx(0.02)
    target = _synthetic.Target(replicate, 0.02)
    never = target.helped(50, 40, FixedProbability(1.0))
    assert never["uses"] == 0
    assert np.array_equal(never["simple_regret"], target.alone()["simple_regret"])  # p_t = 1 is TS, bit for bit


def test_messages_help_and_random_functions_do_not():
    """Paired over functions: the claim of the figure, and the control, at t = 10."""
    gains, control = [], []
    for index in range(12):
        target = _synthetic.Target(Replicate(index, settings={"size": 300, "starts": 4, "horizon": 10}), 0.02)
        alone = target.alone()["simple_regret"][-1]
        gains.append(alone - target.helped(100, 100, Decay(0.5))["simple_regret"][-1])
        control.append(alone - target.misled(100, Decay(0.5))["simple_regret"][-1])
    assert np.mean(gains) > 2.0 * np.std(gains, ddof=1) / len(gains) ** 0.5
    assert np.mean(control) < np.mean(gains) - 0.02


# -- baselines -------------------------------------------------------------------------------------------------------


@pytest.fixture
def sent():
    rng = np.random.default_rng(1)
    features = SharedFeatures(2, 40, lengthscale=0.3, noise=0.01, seed=0)
    X = Box([(0.0, 4.0), (-1.0, 1.0)]).sample(12, rng)
    return (
        features,
        X,
        np.sin(X[:, 0]) + X[:, 1],
        WeightBelief.of(features, Box([(0.0, 4.0), (-1.0, 1.0)]), X, np.sin(X[:, 0]) + X[:, 1], incumbent=True),
    )


def test_a_belief_is_the_process_of_the_features(sent):
    """Weight space and kernel space agree: K̂ = ΦΦᵀ."""
    features, X, y, belief = sent
    unit = (X - [0.0, -1.0]) / [4.0, 2.0]
    Z = np.random.default_rng(2).random((7, 2))
    phi, at = features(unit), features(Z)
    A = np.linalg.inv(phi @ phi.T + features.noise * np.eye(len(X)))
    mean, std = belief.predict([0.0, -1.0] + Z * [4.0, 2.0])
    np.testing.assert_allclose(mean, at @ phi.T @ A @ y, atol=1e-8)
    np.testing.assert_allclose(std**2, 1.0 - np.einsum("ij,jk,ik->i", at @ phi.T, A, at @ phi.T), atol=1e-8)


def test_its_draws_and_gradients_fit_its_predictions(sent):
    _, _, _, belief = sent
    E = np.array([[1.0, 0.2], [3.0, -0.5]])
    mean, std = belief.predict(E)
    draws = belief.sample(E, 40_000, np.random.default_rng(0))
    np.testing.assert_allclose(draws.mean(axis=0), mean, atol=4 * std.max() / 200)
    np.testing.assert_allclose(draws.std(axis=0), std, rtol=0.02)

    class Blind:
        predict = staticmethod(belief.predict)

    for ours, numerical in zip(belief.gradient(E), slopes(Blind(), E, np.array([4.0, 2.0])), strict=True):
        np.testing.assert_allclose(ours, numerical, rtol=1e-4, atol=1e-6)


def test_a_message_to_rgpe_or_taf_has_the_published_length(sent):
    features, _, y, belief = sent
    assert belief.numbers == message_length("TAF", features.count) == 40 + 1600 + 1
    assert belief.incumbent == y.max()
    again = unpack(pack(belief))
    assert np.array_equal(again.inverse, belief.inverse)
    with pytest.raises(ValueError, match="expected ν"):
        WeightBelief(features, np.zeros(3), np.eye(40), np.zeros(2), np.ones(2))
    with pytest.raises(ValueError, match="not 'FedAvg'"):
        message_length("FedAvg", 3)


@pytest.mark.parametrize("kind", [RGPE, FederatedTAF])
def test_parties_that_know_the_function_lead_to_its_maximum(kind):
    features = SharedFeatures(1, 60, lengthscale=0.15, noise=1e-4, seed=0)
    x = np.linspace(0.0, 1.0, 30)[:, None]
    tasks = [WeightBelief.of(features, Box.unit(1), x, -((x[:, 0] - 0.62) ** 2), incumbent=True) for _ in range(3)]
    for task in tasks:
        task.incumbent = -0.05  # parties that have not measured where their beliefs are highest
    policy = kind(Box.unit(1), tasks=tasks, scaling=None, gp=GP(SE(0.2, variance=1e-4), noise=1e-6), seed=0)
    for point in ([0.1], [0.5], [0.9]):
        policy.tell(point, -((point[0] - 0.62) ** 2))
    assert policy.ask().x[0] == pytest.approx(0.62, abs=0.06)


def test_taf_wants_the_incumbent():
    features = SharedFeatures(1, 10, lengthscale=0.2, noise=0.01, seed=0)
    task = WeightBelief.of(features, Box.unit(1), [[0.5]], [1.0])
    with pytest.raises(TypeError, match="does not take a WeightBelief"):
        FederatedTAF(Box.unit(1), tasks=[task])


def test_random_queries_keep_the_coins_and_the_own_draws():
    """Where an agent without messages follows itself so does the control, with the same point."""
    features = SharedFeatures(1, 10, lengthscale=0.2, noise=0.01, seed=0)
    common = {"gp": GP(SE(0.2), noise=0.01), "initial": 2, "seed": 5}
    control = RandomQueries(Box.unit(1), features, schedule=Decay(0.5), **common)
    never = RandomQueries(Box.unit(1), features, schedule=FixedProbability(1.0), **common)
    plain = ThompsonSampling(Box.unit(1), **common)
    follower = Agent(Box.unit(1), features, agent=1, schedule=Decay(0.5), **common)
    for agent in range(2, 40):
        follower.receive(Agent(Box.unit(1), features, agent=agent, seed=agent).message(0))
    left = []
    for _ in range(20):
        queries = [policy.ask() for policy in (control, never, plain, follower)]
        assert queries[1].x == queries[2].x
        left.append((bool(queries[0].note.get("random")), "source" in queries[3].note))
        for policy, query in zip((control, never, plain, follower), queries, strict=True):
            policy.tell(query, float(np.sin(5 * query.x[0])))
    assert all(a == b for a, b in left)
    assert 3 < sum(a for a, _ in left) < 18


def test_pooled_data_are_the_other_end():
    family = synthetic_family(runs=2, agents=30, size=300, seed=1)
    features = SharedFeatures(1, 30, lengthscale=0.03, noise=0.01, seed=0)
    alone = simulate(family, features, rounds=8, initial=3, seed=4)
    pooled = pooled_thompson(alone, seed=4)
    assert np.array_equal(pooled.queries[:, :, :3], alone.queries[:, :, :3])
    assert pooled.regret[:, :, -1].mean() < 0.3 * alone.regret[:, :, -1].mean()
    assert random_functions(family, features, 6, seed=0).shape == (2, 6, 30)


# -- the landmine task -----------------------------------------------------------------------------------------------


def test_the_area_is_the_share_of_pairs_in_order():
    rng = np.random.default_rng(0)
    scores, truth = rng.integers(5, size=40).astype(float), rng.random(40) < 0.3
    pairs = scores[truth][:, None] - scores[~truth]
    assert landmine.curve(scores, truth) == pytest.approx(((pairs > 0) + 0.5 * (pairs == 0)).mean())


def test_a_field_is_trained_on_its_own_half(tmp_path, monkeypatch):
    pytest.importorskip("sklearn")
    rng = np.random.default_rng(0)
    X, task = rng.standard_normal((400, 9)), np.repeat(np.arange(2), 200)
    y = (X[:, 0] + 0.3 * rng.standard_normal(400) > 0.8).astype(np.uint8)
    y[task == 1] = rng.random(200) < 0.2  # nothing to learn in the second field
    train = np.tile([True, False], 200)
    position = np.concatenate([rng.permutation(100), rng.permutation(100)] * 2).reshape(4, 100)
    order = np.empty(400, dtype=np.int16)
    for field in range(2):
        for half, keep in enumerate((True, False)):
            order[(task == field) & (train == keep)] = position[2 * field + half]
    (tmp_path / "landmine").mkdir()
    np.savez(tmp_path / "landmine" / "landmine.npz", X=X, y=y, task=task, is_train=train, position_in_split=order)
    monkeypatch.setenv("SUREFOOT_DATA", str(tmp_path))
    for cached in (landmine.area, landmine._images, landmine._table):
        cached.cache_clear()
    good, bad = landmine.values(0, [[0.1, 0.005]])[0], landmine.values(1, [[0.1, 0.005]])[0]
    assert good > 0.9 > 0.75 > bad
    with pytest.raises(ValueError, match="fields are numbered 0 to 28, got 29"):
        landmine.values(29, [[0.5, 0.5]])
    for cached in (landmine.area, landmine._images, landmine._table):
        cached.cache_clear()


def test_without_data_it_says_where_to_get_them(tmp_path, monkeypatch):
    monkeypatch.setenv("SUREFOOT_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    landmine._table.cache_clear()
    landmine._images.cache_clear()
    with pytest.raises(MissingData, match=r"landmine\.npz"):
        landmine._images(0)


@pytest.mark.skipif("SUREFOOT_DATA" not in os.environ, reason="needs the landmine data: set SUREFOOT_DATA")
def test_the_published_fields():
    pytest.importorskip("sklearn")
    landmine._table.cache_clear()
    landmine._images.cache_clear()
    sizes = np.bincount(datasets.load("landmine")["task"])
    assert (sizes.size, sizes.min(), sizes.max()) == (29, 445, 690)
    assert 0.5 < landmine.values(0, [[0.2, 0.1]])[0] < 1.0
