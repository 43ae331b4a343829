"""The search of φ(x)ᵀω against brute force."""

import numpy as np
import pytest

from surefoot import Box, Choice, Float, Int, Space
from surefoot.federated import Regions, SharedFeatures, best_point, regional_values, spread_points, to_unit
from surefoot.loop.errors import Exhausted


def features(dimension, lengthscale=0.15, count=60):
    return SharedFeatures(dimension, count, lengthscale=lengthscale, noise=0.01, seed=dimension)


def height(shared, vectors, regions, domain, X):
    U = to_unit(domain, domain.encode(X))
    return regional_values(shared(U), vectors, regions.index(U))


@pytest.mark.parametrize("count", [1, 3, 4])
@pytest.mark.parametrize("lengthscale", [0.15, 0.02])
def test_a_box_against_a_fine_grid(count, lengthscale):
    domain, shared = Box([(-1.0, 3.0), (0.0, 10.0)]), features(2, lengthscale)
    regions = Regions.of(domain, count)
    grid = np.stack(np.meshgrid(np.linspace(-1, 3, 301), np.linspace(0, 10, 301)), axis=-1).reshape(-1, 2)
    for seed in range(3):
        rng = np.random.default_rng(seed)
        vectors = rng.standard_normal((count, 60))
        x = best_point(shared, vectors, regions, domain, rng=rng)
        found = height(shared, vectors, regions, domain, x[None])[0]
        assert domain.contains(x[None]).all()
        assert found >= height(shared, vectors, regions, domain, grid).max() - 1e-6


def test_the_better_side_of_a_border_wins():
    """Each sub-region has its own function: the highest point may lie right at a border."""
    domain, shared = Box.unit(1), features(1, 0.3)
    peak = shared(np.array([[0.5]]))[0]
    x = best_point(shared, np.stack([peak, -peak]), Regions((2,)), domain, rng=np.random.default_rng(0))
    assert 0.499 < x[0] < 0.5
    x = best_point(shared, np.stack([-peak, peak]), Regions((2,)), domain, rng=np.random.default_rng(0))
    assert 0.5 <= x[0] < 0.501


def test_a_mixed_space_against_enumeration():
    domain = Space(rate=Float(1e-3, 1.0, log=True), depth=Int(1, 5), kind=Choice(["a", "b", "c"]))
    shared, regions = features(5, 0.5), Regions.of(domain, 4)
    rates = np.geomspace(1e-3, 1.0, 400)
    X = np.stack(np.meshgrid(rates, np.arange(1.0, 6.0), np.arange(3.0)), axis=-1).reshape(-1, 3)
    for seed in range(3):
        rng = np.random.default_rng(seed)
        vectors = rng.standard_normal((4, 60))
        x = best_point(shared, vectors, regions, domain, rng=rng)
        assert (
            height(shared, vectors, regions, domain, x[None])[0]
            >= height(shared, vectors, regions, domain, X).max() - 1e-3
        )


def test_finite_spaces_are_searched_exhaustively_and_exclusions_kept():
    domain = Space(depth=Int(1, 4), kind=Choice(["a", "b"]))
    shared, regions = features(3), Regions.of(domain, 2)
    vectors, rng = np.random.default_rng(0).standard_normal((2, 60)), np.random.default_rng(1)
    taken, X = np.empty((0, 2)), domain.enumerate()
    order = np.argsort(-height(shared, vectors, regions, domain, X))
    for place in order:
        x = best_point(shared, vectors, regions, domain, rng=rng, exclude=taken)
        assert np.array_equal(x, X[place])
        taken = np.vstack([taken, x])
    with pytest.raises(Exhausted):
        best_point(shared, vectors, regions, domain, rng=rng, exclude=taken)


def test_more_bumps_take_more_points():
    assert spread_points(features(2, 0.01)) == 2**16
    assert spread_points(features(1, 0.2)) == 2**11
    assert spread_points(features(1, 0.2), 4) == 2**9
