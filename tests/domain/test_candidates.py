"""Candidates: look-ups by value, designs without repetition, descriptions by hash."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from surefoot.domain import Box, Candidates, candidates, domain_from_dict

few = st.sampled_from([0.0, -0.0, 1.0, 2.0, 0.1, -3.5])  # few values, so that rows repeat
tables = st.tuples(st.integers(1, 30), st.integers(1, 3)).flatmap(lambda shape: arrays(np.float64, shape, elements=few))


@given(tables, tables)
@settings(max_examples=100, deadline=None)
def test_look_up_agrees_with_a_scan(points: np.ndarray, wanted: np.ndarray) -> None:
    domain = Candidates(points)
    rows = np.resize(wanted, (wanted.shape[0], domain.dimension))
    scan = [next((i for i, p in enumerate(points) if (p == row).all()), -1) for row in rows]
    assert domain.indices_of(rows).tolist() == scan
    assert domain.contains(rows).tolist() == [i >= 0 for i in scan]
    some = np.arange(0, len(points), 3)
    copies = [i for i, p in enumerate(points) if (points[some] == p).all(axis=1).any()]
    assert domain.copies_of(some).tolist() == copies
    np.testing.assert_array_equal(domain.decode(domain.encode(points)), points)


def test_look_up_survives_colliding_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(candidates, "_hash_rows", lambda rows: np.zeros(rows.shape[0], dtype=np.uint64))
    domain = Candidates([[3.0], [1.0], [2.0], [1.0]])
    assert domain.indices_of([[2.0], [1.0], [9.0]]).tolist() == [2, 1, -1]
    assert domain.copies_of([3]).tolist() == [1, 3]
    assert domain.copies_of([]).size == 0


def test_hashes_of_a_large_grid_are_distinct() -> None:
    axis = np.linspace(0.0, 1.0, 100)
    points = np.stack(np.meshgrid(axis, axis, axis), axis=-1).reshape(-1, 3)
    assert np.unique(candidates._hash_rows(points)).size == 10**6


@given(tables, st.integers(0, 12), st.sampled_from(["sobol", "lhs"]))
@settings(max_examples=100, deadline=None)
def test_a_design_repeats_nothing_before_it_must(points: np.ndarray, n: int, method: str) -> None:
    domain = Candidates(points)
    X = domain.design(n, np.random.default_rng(5), method)
    distinct = np.unique(domain.points, axis=0).shape[0]
    assert X.shape == (n, domain.dimension)
    assert domain.contains(X).all()
    assert np.unique(X, axis=0).shape[0] == min(n, distinct)
    np.testing.assert_array_equal(X, domain.design(n, np.random.default_rng(5), method))


@pytest.mark.parametrize("points", [[], [[]], 3.0, [[np.nan]], [[1.0, np.inf]], np.zeros((2, 2, 2))])
def test_bad_candidates_are_refused(points: object) -> None:
    with pytest.raises(ValueError, match="candidate"):
        Candidates(points)  # type: ignore[arg-type]


def test_only_exact_rows_are_valid() -> None:
    domain = Candidates([[0.1, 0.2], [0.3, -0.0]])
    assert domain.validate([0.3, 0.0]).tolist() == [0.3, 0.0]
    assert domain.index_of([0.3, -0.0]) == 1
    for x in ([0.1, 0.2000001], [0.1], [np.nan, 0.2]):
        with pytest.raises(ValueError):
            domain.validate(x)
    with pytest.raises(ValueError, match="not one of the 2 candidates"):
        domain.index_of([0.0, 0.0])
    with pytest.raises(ValueError, match="read-only"):
        domain.points[0, 0] = 5.0


def test_decode_gives_the_nearest_row_in_units_of_the_extent() -> None:
    domain = Candidates([[0.0, 0.0], [1.0, 1000.0]])
    assert domain.decode([[0.2, 600.0], [0.4, 200.0]]).tolist() == [[0.0, 0.0], [0.0, 0.0]]
    assert domain.decode([[0.6, 600.0]]).tolist() == [[1.0, 1000.0]]


def test_bounds_and_sampling() -> None:
    domain = Candidates([3.0, 1.0, 2.0])
    assert (domain.lower.tolist(), domain.upper.tolist(), domain.extent().tolist()) == ([1.0], [3.0], [2.0])
    assert not domain.continuous.any()
    draws = domain.sample(3000, np.random.default_rng(0))[:, 0]
    assert [abs((draws == v).mean() - 1 / 3) < 0.04 for v in (1.0, 2.0, 3.0)] == [True] * 3


def test_small_descriptions_hold_the_points_and_large_ones_their_hash() -> None:
    small = Candidates(np.arange(10.0).reshape(5, 2))
    assert domain_from_dict(json.loads(json.dumps(small.to_dict()))) == small
    assert domain_from_dict(small.to_dict(), points=small.points) == small

    points = np.random.default_rng(0).random((4000, 3))
    large = Candidates(points)
    data = json.loads(json.dumps(large.to_dict()))
    assert set(data) == {"domain", "sha256", "shape"}
    assert domain_from_dict(data, points=points) == large
    with pytest.raises(ValueError, match="pass points="):
        domain_from_dict(data)
    with pytest.raises(ValueError, match="not those of the description"):
        domain_from_dict(data, points=points[::-1])
    with pytest.raises(ValueError, match="not those of the description"):
        domain_from_dict(small.to_dict(), points=points)


def test_equality_is_by_type_and_values() -> None:
    assert Candidates([[0.0], [1.0]]) == Candidates([0.0, 1.0])
    assert Candidates([0.0, 1.0]) != Candidates([1.0, 0.0])
    assert Candidates([0.0, 1.0]) != Box.unit(1)
