"""Additive Gaussian processes: kernel, parts, decompositions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot.belief.additive import Additive, Parts
from surefoot.belief.decomposition import FLOOR, Decompositions, learn, partition, refine
from surefoot.belief.gp import GP
from surefoot.belief.kernels import Matern, kernel_from_dict

GROUPS = [(0, 3), (1, 2, 6), (4, 5)]
UNITS = [1.0, 2.0, 1.0, 0.5, 1.0, 1.0, 3.0]


def rng(seed=0):
    return np.random.default_rng(seed)


def kernel():
    return Additive(GROUPS, [0.5, 0.7, 0.9], variance=[1.0, 2.0, 0.5], units=UNITS)


def slopes(f, x, h=1e-5):
    """Central differences."""
    return np.array([(f(x + h * e) - f(x - h * e)) / (2.0 * h) for e in np.eye(len(x))])


def test_it_is_the_sum_of_matern_kernels_of_the_groups():
    X, Z, units = rng().normal(size=(6, 7)), rng(1).normal(size=(4, 7)), np.array(UNITS)
    parts = [
        Matern(2.5, units[list(g)] * ell, variance=v).on(g)(X, Z)
        for g, ell, v in zip(GROUPS, (0.5, 0.7, 0.9), (1.0, 2.0, 0.5), strict=True)
    ]
    np.testing.assert_allclose(kernel()(X, Z), sum(parts), rtol=1e-12)
    np.testing.assert_allclose(kernel().parts(X, Z), parts, rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(kernel().diag(X), 3.5)
    np.testing.assert_allclose(np.diag(kernel()(X)), 3.5, rtol=1e-12)


def test_tensors_get_the_same_numbers():
    torch = pytest.importorskip("torch")
    X = rng().normal(size=(5, 7))
    np.testing.assert_allclose(kernel()(torch.asarray(X)).numpy(), kernel()(X), rtol=1e-12)


def test_one_group_is_the_plain_process():
    X, y, Z = rng().uniform(size=(9, 3)), rng(1).normal(size=9), rng(2).uniform(size=(5, 3))
    plain = GP(Matern(2.5, 0.4, variance=2.0), noise=0.01).condition(X, y)
    one = GP(Additive([(0, 1, 2)], 0.4, variance=2.0), noise=0.01).condition(X, y)
    np.testing.assert_allclose(one.predict(Z), plain.predict(Z), rtol=1e-9)
    parts = Parts(one)
    np.testing.assert_allclose(np.concatenate(parts.predict(parts.split(Z))), plain.predict(Z), rtol=1e-9)


def test_gradients_in_hyper_parameters_and_points():
    X, y = rng().uniform(-1, 1, (12, 7)), rng(1).normal(size=12)
    gp = GP(kernel(), noise=0.1)
    _, gradient = gp.log_likelihood(X, y, gradient=True)
    numeric = slopes(lambda t: gp.with_theta(t).log_likelihood(X, y), gp.theta)
    np.testing.assert_allclose(gradient, numeric, rtol=1e-5, atol=1e-6)
    belief, z = gp.condition(X, y), rng(2).uniform(-1, 1, 7)
    _, _, dmean, dstd = belief.gradient(z[None])
    np.testing.assert_allclose(dmean[0], slopes(lambda x: belief.mean(x[None])[0], z), rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(dstd[0], slopes(lambda x: belief.std(x[None])[0], z), rtol=1e-5, atol=1e-7)
    parts = Parts(belief)
    np.testing.assert_allclose(
        parts.bound(z, 1.5)[1], slopes(lambda x: parts.bound(x, 1.5)[0], z), rtol=1e-5, atol=1e-7
    )


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 9), st.integers(1, 6), st.integers(0, 2**32 - 1))
def test_the_parts_add_up(d, M, seed):
    draw = rng(seed)
    groups = partition(d, M, draw)
    assert sorted(i for g in groups for i in g) == list(range(d))
    assert max(map(len, groups)) - min(map(len, groups)) <= 1
    k = Additive(groups, draw.uniform(0.3, 2.0, len(groups)), variance=draw.uniform(0.3, 2.0, len(groups)))
    belief = GP(k, noise=0.01, mean=0.7).condition(draw.uniform(size=(8, d)), draw.normal(size=8))
    Z = draw.uniform(size=(5, d))
    parts = Parts(belief)
    mean, std = parts.predict(parts.split(Z))
    np.testing.assert_allclose(mean.sum(axis=0) + 0.7, belief.mean(Z), atol=1e-9)
    assert (std.sum(axis=0) >= belief.std(Z) - 1e-9).all()
    np.testing.assert_allclose(k.join(k.split(Z), d), Z, rtol=1e-14)
    value, _ = parts.bound(Z[0], 2.0)
    np.testing.assert_allclose(value, (mean + 2.0 * std)[:, 0].sum(), rtol=1e-9)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.5, 3.0]), st.sampled_from([3, 40, 200]))
def test_points_that_are_sifted_out_could_not_have_won(seed, width, count):
    draw = rng(seed)
    k = Additive(partition(6, 3, draw), draw.uniform(0.2, 1.0, 3), variance=draw.uniform(0.5, 2.0, 3))
    parts = Parts(GP(k, noise=0.01).condition(draw.uniform(size=(15, 6)), draw.normal(size=15)))
    U = parts.split(draw.uniform(size=(count, 6)))
    mean, std = parts.predict(U)
    rows, values = parts.best(U, width)
    np.testing.assert_array_equal(rows, (mean + width * std).argmax(axis=1))
    np.testing.assert_allclose(values, (mean + width * std).max(axis=1), rtol=1e-9)


def test_description_and_bad_arguments():
    assert kernel_from_dict(kernel().to_dict()) == kernel()
    assert kernel().scaled(2.0).diag(np.zeros((1, 7)))[0] == 7.0
    for bad in ([], [()], [(0, 1), (1, 2)], [(-1,)]):
        with pytest.raises(ValueError, match="groups"):
            Additive(bad)
    with pytest.raises(ValueError, match="one for each of the 3 groups"):
        Additive(GROUPS, [1.0, 2.0])
    with pytest.raises(ValueError, match="coordinates"):
        kernel()(np.zeros((2, 3)))
    with pytest.raises(TypeError, match="Additive"):
        Parts(GP().condition([[0.0]], [1.0]))


def test_likelihoods_of_many_decompositions_are_those_of_each_alone():
    X, z = rng().uniform(-1, 1, (15, 7)), rng(1).normal(size=15)
    groups = [tuple(map(tuple, GROUPS)), ((0, 1), (2, 3, 4), (5, 6))]
    noise = np.where(np.arange(15) < 4, 0.3, np.nan)
    evidence = Decompositions(X, z, groups, noise, weight=0.0)
    theta = evidence.center + 0.3 * rng(2).normal(size=evidence.shape)
    values, _ = evidence(theta)
    for g, t, value in zip(groups, theta, values, strict=True):
        gp = GP(Additive(g, np.exp(t[3:6]), variance=np.exp(t[:3])), FLOOR + np.exp(t[-1]))
        np.testing.assert_allclose(value, gp.log_likelihood(X, z, noise), rtol=1e-9)
    full = Decompositions(X, z, groups, noise)
    numeric = slopes(lambda t: full(t.reshape(full.shape))[0].sum(), theta.ravel())
    np.testing.assert_allclose(full(theta)[1].ravel(), numeric, rtol=1e-4, atol=1e-4)


def test_a_climb_of_the_sum_climbs_each():
    X, z = rng().uniform(-1, 1, (20, 4)), rng(1).normal(size=20)
    groups = [((0, 1), (2, 3)), ((0, 2), (1, 3))]
    both = Decompositions(X, z, groups)
    together = both.climb(both.center, 60)[1]
    alone = [(e := Decompositions(X, z, [g])).climb(e.center, 60)[1][0] for g in groups]
    np.testing.assert_allclose(together, alone, atol=0.02)


@pytest.mark.parametrize("seed", range(3))
def test_the_true_decomposition_is_found(seed):
    draw = rng(seed)
    X = draw.uniform(-1, 1, (60, 4))
    y = np.sin(3.0 * X[:, 0] * X[:, 2]) + X[:, 1] * X[:, 3]
    gp = learn(X, y, groups=2, candidates=20, rng=draw)
    assert gp.kernel.groups == ((0, 2), (1, 3))


def test_a_learned_belief_is_in_the_users_units():
    draw = rng()
    X = draw.uniform([0.0, 100.0, -5.0, 0.0], [1.0, 900.0, 5.0, 1e-3], (50, 4))
    unit = (X - [0.0, 100.0, -5.0, 0.0]) / [1.0, 800.0, 10.0, 1e-3]
    y = 500.0 + 30.0 * (np.sin(4.0 * unit[:, 0]) + unit[:, 1] + unit[:, 2] ** 2 + unit[:, 3])
    options = {"groups": 2, "candidates": 5, "units": [1.0, 800.0, 10.0, 1e-3], "extent": 1.0}
    gp = learn(X[:40], y[:40], rng=rng(1), **options)
    error = gp.condition(X[:40], y[:40]).mean(X[40:]) - y[40:]
    assert np.abs(error).max() < 0.15 * y.std()
    again = refine(gp, X, y, extent=1.0)
    assert again.kernel.groups == gp.kernel.groups
    np.testing.assert_allclose(again.kernel.units, gp.kernel.units)
    same = learn(X[:40], y[:40], rng=rng(1), **options)
    assert same == gp


def test_the_previous_decomposition_competes():
    draw = rng()
    X = draw.uniform(-1, 1, (60, 8))
    y = np.sin(3.0 * X[:, 0] * X[:, 2]) + X[:, 1] * X[:, 3] + X[:, 4] * X[:, 7] - X[:, 5] * X[:, 6]
    truth = GP(Additive([(0, 2), (1, 3), (4, 7), (5, 6)]))
    gp = learn(X, y, groups=4, candidates=2, rng=draw, previous=truth)
    assert set(gp.kernel.groups) == {(0, 2), (1, 3), (4, 7), (5, 6)}


@pytest.mark.parametrize("y", [np.zeros(6), np.full(6, 1e9), np.array([0.0, 0, 0, 0, 0, 1e-13])])
def test_values_that_hardly_differ(y):
    gp = learn(rng().uniform(size=(6, 4)), y, groups=2, candidates=2, rng=rng())
    assert np.isfinite(gp.theta).all()


def test_bad_partitions():
    assert partition(2, 5, rng()) == ((0,), (1,))
    with pytest.raises(ValueError, match="at least one group"):
        partition(3, 0, rng())
    with pytest.raises(ValueError, match="same number of groups"):
        Decompositions(np.zeros((2, 2)), np.zeros(2), [((0, 1),), ((0,), (1,))])
