"""Add-GP-UCB beside its definition."""

from __future__ import annotations

import numpy as np
import pytest

from surefoot import GP, GPUCB, AddGPUCB, Box, Matern, NotSupported, Space, widths
from surefoot.belief.additive import Additive, Parts
from surefoot.domain import Float
from surefoot.policy.ucb.add_gp_ucb import maximize_parts


def test_the_optimum_of_the_sum_is_the_concatenation_of_the_optima():
    """On a grid: the best of all combinations is what the parts choose each on its own."""
    draw = np.random.default_rng(3)
    belief = GP(Additive([(0,), (1,)], [0.2, 0.3]), noise=0.01).condition(
        draw.uniform(size=(12, 2)), draw.normal(size=12)
    )
    parts, axis = Parts(belief), np.linspace(0.0, 1.0, 201)
    every = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    mean, std = parts.predict(parts.split(every))
    x, value = maximize_parts(parts, np.zeros(2), np.ones(2), width=2.0, rng=draw, candidates=400)
    brute = (mean + 2.0 * std).sum(axis=0)
    assert value >= brute.max() - 1e-9
    np.testing.assert_allclose(x, every[brute.argmax()], atol=0.01)


def test_with_one_group_it_is_gp_ucb():
    box, draw = Box.unit(2), np.random.default_rng(0)
    X = draw.uniform(size=(8, 2))
    y = np.sin(5.0 * X).sum(axis=1)
    one = AddGPUCB(box, gp=GP(Additive([(0, 1)], 0.3), noise=1e-4), width=widths.Constant(2.0), seed=0)
    plain = GPUCB(box, gp=GP(Matern(2.5, 0.3), noise=1e-4), width=widths.Constant(2.0), seed=0)
    for policy in (one, plain):
        for x, value in zip(X, y, strict=True):
            policy.tell(x, value)
    np.testing.assert_allclose(one.ask().x, plain.ask().x, atol=1e-3)


def test_a_sum_of_many_coordinates_is_climbed_faster_than_by_chance():
    d = 16

    def f(x):
        return -float(((x - 0.7) ** 2).sum())

    best = []
    for seed in range(
        5
    ):  # one run in five ends little above chance: the decomposition is learned from few measurements
        policy = AddGPUCB(Box.unit(d), groups=8, decompositions=5, candidates=200, initial=10, seed=seed)
        for _ in range(50):
            query = policy.ask()
            policy.tell(query, f(query.x))
        best.append(max(o.outcome.value for o in policy.history))
        assert sorted(i for g in policy.groups for i in g) == list(range(d))
    chance = max(f(x) for x in np.random.default_rng(0).uniform(size=(2000, d)))
    assert np.median(best) > 0.5 * chance


def test_given_groups_are_kept_and_checked():
    policy = AddGPUCB(Box.unit(4), groups=[(0, 3), (1, 2)], candidates=100, initial=2, seed=0)
    for _ in range(8):
        query = policy.ask()
        policy.tell(query, float(query.x.sum()))
    assert policy.groups == ((0, 3), (1, 2))
    with pytest.raises(ValueError, match="each of the 4 coordinates once"):
        AddGPUCB(Box.unit(4), groups=[(0, 3), (1,)])
    with pytest.raises(ValueError, match="groups must be a whole number from 1 on, got 0"):
        AddGPUCB(Box.unit(4), groups=0)
    for wrong in ("abcd", 1.5):
        with pytest.raises(TypeError, match="groups must be"):
            AddGPUCB(Box.unit(4), groups=wrong)
    with pytest.raises(TypeError, match="Additive"):
        AddGPUCB(Box.unit(2), gp=GP())
    with pytest.raises(TypeError, match="callable"):
        AddGPUCB(Box.unit(2), width=2.0)
    with pytest.raises(ValueError, match="candidates"):
        AddGPUCB(Box.unit(2), candidates=0)
    with pytest.raises(NotSupported):
        AddGPUCB(Space(x=Float(0.0, 1.0)))
