"""The search of φ(x)ᵀω against brute force."""

import numpy as np
import pytest

from surefoot import Box, Candidates, Choice, Float, Int, Space
from surefoot.errors import Exhausted
from surefoot.federated import (
    Agent,
    Broadcast,
    Decay,
    Regions,
    SharedFeatures,
    argmax,
    best_point,
    regional_values,
    spread_points,
    spread_table,
    to_unit,
)


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


def test_candidates_have_the_same_answer_as_one_by_one():
    """The table of features, shared by all agents, gives each the candidate that evaluating every one gives."""
    rng = np.random.default_rng(0)
    domain, shared = Candidates(rng.random((200, 2)) * [4.0, 0.1]), features(2, 0.05)
    regions = Regions.of(domain, 4)
    for round in range(3):
        vectors = rng.standard_normal((4, 60))
        heights = [height(shared, vectors, regions, domain, x[None])[0] for x in domain.points]
        agents = [
            Agent(domain, shared, agent=i, regions=regions, schedule=Decay(1.0, first=0.0), initial=0, seed=i)
            for i in range(2)
        ]
        for agent in agents:
            agent.receive(Broadcast(round, shared.hash, regions.parts, vectors, coin=True))
            assert agent.ask().index == int(np.argmax(heights))
    assert spread_table(shared, regions, domain) is spread_table(features(2, 0.05), regions, Candidates(domain.points))


@pytest.mark.parametrize(("dimension", "lengthscale"), [(2, 0.05), (2, 0.01), (4, 0.3)])
def test_points_that_are_kept_find_as_high_ones_as_new_points(dimension, lengthscale):
    """Paired: the same functions searched from the table's points and from points drawn anew."""
    domain, shared = Box.unit(dimension), features(dimension, lengthscale)
    regions, rng = Regions.of(domain, 2), np.random.default_rng(1)
    kept, anew = [], []
    for seed in range(12):
        vectors = rng.standard_normal((2, 60))
        for found, draw in ((kept, None), (anew, np.random.default_rng(seed))):
            x = best_point(shared, vectors, regions, domain, rng=draw)
            found.append(height(shared, vectors, regions, domain, x[None])[0])
    difference = (np.array(kept) - anew) / np.std(anew)
    assert difference.mean() > -0.05
    assert abs(np.median(difference)) < 0.02


def test_tables_go_with_their_features_and_are_few():
    shared = features(1)
    for parts in range(1, 9):
        table = spread_table(shared, Regions((parts,)), Box.unit(1))
        assert np.array_equal(table.region, Regions((parts,)).index(table.points))
    assert len(argmax._tables[shared]) == argmax.TABLES
    before = len(argmax._tables)
    del shared, table
    assert len(argmax._tables) == before - 1


def test_tables_too_large_to_keep_give_the_same_values(monkeypatch):
    shared, vectors = features(2, 0.05), np.random.default_rng(0).standard_normal((1, 60))
    whole = Regions((1, 1))
    small = spread_table(shared, whole, Box.unit(2))
    monkeypatch.setattr(argmax, "TABLE", 0)
    large = spread_table(shared, whole, Box([(0.0, 1.0), (0.0, 2.0)]))
    assert small.phi is not None
    assert large.phi is None
    assert np.allclose(large.values(shared, vectors), small.values(shared, vectors), rtol=1e-12, atol=1e-12)
