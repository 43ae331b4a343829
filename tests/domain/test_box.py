"""Boxes: bounds, validation, designs, descriptions."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot.domain import Box, Domain, domain_from_dict

finite = st.floats(-1e6, 1e6, allow_nan=False)
boxes = st.lists(st.tuples(finite, finite).map(sorted), min_size=1, max_size=4).map(Box)


@given(boxes, st.integers(0, 2**32), st.sampled_from(["sobol", "lhs"]))
@settings(max_examples=60, deadline=None)
def test_designs_and_samples_lie_inside_and_follow_the_generator(box: Box, seed: int, method: str) -> None:
    X = box.design(7, np.random.default_rng(seed), method)
    S = box.sample(7, np.random.default_rng(seed))
    assert X.shape == S.shape == (7, box.dimension)
    assert box.contains(X).all()
    assert box.contains(S).all()
    np.testing.assert_array_equal(X, box.design(7, np.random.default_rng(seed), method))
    np.testing.assert_array_equal(box.decode(box.encode(X)), X)
    for x in X:
        np.testing.assert_array_equal(box.validate(x), x)


@given(boxes)
@settings(max_examples=60, deadline=None)
def test_description_survives_json(box: Box) -> None:
    again = domain_from_dict(json.loads(json.dumps(box.to_dict(), allow_nan=False)))
    assert again == box
    assert hash(again) == hash(box)
    assert (box.extent() > 0).all()


@pytest.mark.parametrize(
    "bounds",
    [[], [1.0, 2.0], [(2.0, 1.0)], [(0.0, np.nan)], [(0.0, np.inf)], [(-1e308, 1e308)], [(0.0, 1.0, 2.0)]],
)
def test_bad_bounds_are_refused(bounds: object) -> None:
    with pytest.raises(ValueError, match="bounds"):
        Box(bounds)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("x", "message"),
    [
        ([0.5, 11.0], r"x1 = 11\.0 is outside \[-5\.0, 10\.0\]"),
        ([np.nan, 0.0], "x0 = nan is not finite"),
        ([0.0, -np.inf], "x1 = -inf is not finite"),
        ([0.5], r"shape \(2,\)"),
        ([[0.5, 0.0]], r"shape \(2,\)"),
        ("ab", "2 numbers"),
        ({"x0": 1.0}, "2 numbers"),
        (None, r"shape \(2,\)"),
    ],
)
def test_bad_points_are_named(x: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Box([(0.0, 1.0), (-5.0, 10.0)]).validate(x)


def test_a_valid_point_is_a_locked_copy() -> None:
    given_ = np.array([0.25, -0.0])
    x = Box.unit(2).validate(given_)
    given_[0] = 9.0
    assert x.tolist() == [0.25, 0.0]
    assert not np.signbit(x).any()
    with pytest.raises(ValueError, match="read-only"):
        x[0] = 1.0


def test_fixed_coordinates() -> None:
    box = Box([(2.0, 2.0), (0.0, 1.0)])
    assert (box.design(5, np.random.default_rng(0))[:, 0] == 2.0).all()
    assert box.extent().tolist() == [1.0, 1.0]
    assert box.size is None
    point = Box([(2.0, 2.0)])
    assert point.size == 1
    assert point.enumerate().tolist() == [[2.0]]


def test_shapes_are_checked() -> None:
    with pytest.raises(ValueError, match=r"\(n, 2\)"):
        Box.unit(2).encode([0.0, 1.0])
    with pytest.raises(ValueError, match="sobol"):
        Box.unit(2).design(4, np.random.default_rng(0), "halton")
    with pytest.raises(ValueError, match="-1"):
        Box.unit(2).design(-1, np.random.default_rng(0))


def test_descriptions_are_strict() -> None:
    with pytest.raises(ValueError, match="unknown domain 'Sphere'"):
        domain_from_dict({"domain": "Sphere"})
    with pytest.raises(ValueError, match="unknown key 'bound'"):
        Box.from_dict({"domain": "Box", "bounds": [[0, 1]], "bound": 1})
    with pytest.raises(ValueError, match="Candidates, not a Box"):
        Box.from_dict({"domain": "Candidates", "points": [[0.0]]})
    assert {"Box", "Candidates", "Space"} <= set(Domain.registry)


@pytest.mark.parametrize("method", ["sobol", "lhs"])
def test_designs_cover_every_slice_of_every_coordinate(method: str) -> None:
    X = Box.unit(3).design(16, np.random.default_rng(3), method)
    for column in X.T:
        assert sorted((column * 16).astype(int)) == list(range(16))


def test_the_beginning_of_a_sobol_design_is_a_sobol_design() -> None:
    longer = Box.unit(2).design(8, np.random.default_rng(1))
    np.testing.assert_array_equal(Box.unit(2).design(5, np.random.default_rng(1)), longer[:5])
