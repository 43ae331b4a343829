"""Warps: increasing, invertible, their slopes; what is tried."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surefoot.belief.warp import FARTHEST, IDENTITY, Warp, bends

WARPS = [
    Warp(knot, scale, power) for knot, scale in ((0.0, 1.0), (-3.0, 1e-3), (1e3, 1e4)) for power in (0.0, 0.3, 0.5, 1.0)
]


@pytest.mark.parametrize("warp", WARPS)
def test_a_warp_increases_and_is_undone(warp: Warp) -> None:
    away = np.logspace(-9, 9, 200) * warp.scale
    y = warp.knot + np.concatenate([-away[::-1], [0.0], away])
    z = warp.forward(y)
    assert (np.diff(z) >= 0).all()
    assert (np.diff(z)[np.diff(y) > 1e-9 * np.abs(y[1:])] > 0).all()
    rounding = 1e-15 * (np.abs(warp.knot) + np.abs(y) + np.abs(z)) / warp.slope(y)  # what z leaves of y
    assert (np.abs(warp.inverse(z) - y) <= 10.0 * rounding + 1e-12 * np.abs(y - warp.knot)).all()


@pytest.mark.parametrize("warp", WARPS)
def test_the_slope_is_that_of_the_warp(warp: Warp) -> None:
    y = warp.knot - warp.scale * np.array([0.1, 1.0, 30.0, -2.0])
    step = 1e-4 * warp.scale
    numeric = (warp.forward(y + step) - warp.forward(y - step)) / (2.0 * step)
    assert np.allclose(warp.slope(y), numeric, rtol=1e-3)
    assert ((warp.slope(y) > 0) & (warp.slope(y) <= 1.0)).all()


@given(st.floats(-1e300, 1e300))
def test_every_number_has_a_place_and_comes_from_one(y: float) -> None:
    warp = Warp(0.0, 1.0, 0.0)
    assert np.isfinite(warp.forward(y))
    assert np.isfinite(warp.inverse(y))


def test_better_values_than_the_knot_stay_as_they_are() -> None:
    warp = Warp(2.0, 1.0, 0.0)
    assert warp.forward([2.0, 7.5]).tolist() == [2.0, 7.5]
    assert warp.inverse([2.0, 7.5]).tolist() == [2.0, 7.5]
    assert warp.inverse(-1e9) == pytest.approx(-np.exp(FARTHEST), rel=1e-6)


def test_the_identity_changes_no_bit() -> None:
    y = np.random.default_rng(0).standard_normal(9) * 1e7
    assert IDENTITY.straight
    assert (IDENTITY.forward(y) == y).all()
    assert (IDENTITY.inverse(y) == y).all()


def test_what_is_tried_bends_below_the_best_value() -> None:
    y = np.array([3.0, -1.0, -1e6, 2.0])
    assert {warp.knot for warp in bends(y)} == {3.0}
    assert not any(warp.straight for warp in bends(y))
    assert list(bends(np.full(4, 1e300))) == []


@pytest.mark.parametrize("bad", [{"knot": np.nan}, {"scale": 0.0}, {"scale": np.inf}, {"power": 1.5}])
def test_what_is_no_warp_is_refused(bad: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="a warp needs"):
        Warp(**bad)
