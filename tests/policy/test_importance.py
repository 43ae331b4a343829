"""Importance: Sobol indices that are known, and what has none."""

from __future__ import annotations

import math

import numpy as np
import pytest

from surefoot import Box, Candidates, ExpectedImprovement, Float, Int, NoData, NotSupported, RandomSearch, Space
from surefoot.policy.importance import _indices, _samples


def ishigami(X):
    x = math.pi * (2.0 * X - 1.0)
    return np.sin(x[:, 0]) + 7.0 * np.sin(x[:, 1]) ** 2 + 0.1 * x[:, 2] ** 4 * np.sin(x[:, 0])


def g_function(X):
    a = np.array([0.0, 1.0, 4.5, 9.0])
    return np.prod((np.abs(4.0 * X - 2.0) + a) / (1.0 + a), axis=1)


def g_indices():
    partial = 1.0 / (3.0 * (1.0 + np.array([0.0, 1.0, 4.5, 9.0])) ** 2)
    whole = np.prod(1.0 + partial) - 1.0
    return partial / whole, partial * (whole + 1.0) / (1.0 + partial) / whole


V = [0.5 * (1.0 + 0.1 * math.pi**4 / 5.0) ** 2, 49.0 / 8.0, 0.1**2 * math.pi**8 * (1.0 / 18.0 - 1.0 / 50.0)]
KNOWN = {  # function of the unit cube, dimension, first-order and total indices
    "linear": (lambda X: X @ [3.0, 2.0, 1.0], 3, np.array([9, 4, 1]) / 14, np.array([9, 4, 1]) / 14),
    "product": (lambda X: (X[:, 0] - 0.5) * (X[:, 1] - 0.5), 2, np.zeros(2), np.ones(2)),
    "square": (lambda X: X[:, 0] + X[:, 1] ** 2, 2, np.array([15, 16]) / 31, np.array([15, 16]) / 31),
    "ishigami": (
        ishigami,
        3,
        np.array([V[0], V[1], 0.0]) / sum(V),
        np.array([V[0] + V[2], V[1], V[2]]) / sum(V),
    ),
    "g": (g_function, 4, *g_indices()),
}


@pytest.mark.parametrize("name", KNOWN)
def test_estimators_agree_with_known_indices(name):
    f, d, first, total = KNOWN[name]
    samples = _samples(Box.unit(d), 8192, np.random.default_rng(0), np.random.default_rng(1))
    found = _indices(lambda X: f(X)[None], samples)
    np.testing.assert_allclose(found[0][0], total, atol=0.03)
    np.testing.assert_allclose(found[1][0], first, atol=0.03)


@pytest.mark.parametrize("name", KNOWN)
def test_the_indices_of_a_belief_agree_with_those_of_the_function(name):
    f, d, first, total = KNOWN[name]
    count = {"ishigami": 250, "g": 100}.get(name, 30)
    policy = ExpectedImprovement(Box.unit(d), seed=0)
    X = policy.domain.design(count, np.random.default_rng(2))
    for x, y in zip(X, f(X), strict=True):
        policy.tell(x, float(y))
    found = {one.name: one for one in policy.importance()}
    for i, x in enumerate(policy.domain.names):
        assert abs(found[x].total - total[i]) < 0.1
        assert abs(found[x].first - first[i]) < 0.1
        assert found[x].total_interval[0] <= found[x].total_interval[1]
        assert found[x].total_interval[0] - 0.1 < total[i] < found[x].total_interval[1] + 0.1


def test_named_parameters_with_a_logarithm_and_the_same_again():
    space = Space(rate=Float(1e-4, 1.0, log=True), depth=Int(1, 9))
    policy = ExpectedImprovement(space, direction="minimize", seed=0)
    for x in space.design(20, np.random.default_rng(0)):
        policy.tell(x, float(np.log10(x[0]) + 0.01 * x[1]))
    found = policy.importance(points=256, draws=16)
    assert [one.name for one in found] == ["rate", "depth"]
    assert found[0].total > 0.9
    assert found == policy.importance(points=256, draws=16)


def test_what_has_no_importance():
    with pytest.raises(NotSupported, match="RandomSearch has no model"):
        RandomSearch(Box.unit(1), seed=0).importance()
    with pytest.raises(NotSupported, match="do not vary one by one"):
        ExpectedImprovement(Candidates([0.0, 1.0]), seed=0).importance()
    with pytest.raises(NoData):
        ExpectedImprovement(Box.unit(1), seed=0).importance()
