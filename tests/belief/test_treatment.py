"""Treatment: which scale evidence prefers, and which measurements are not believed."""

import numpy as np
import pytest

from surefoot import GP, Box
from surefoot.belief.treatment import BLOCK, PLAIN, treat

Array = np.ndarray
DOMAIN = Box([(-2.0, 2.0), (-2.0, 2.0)])
GPS = GP.automatic(DOMAIN)


def _points(n: int, seed: int = 0) -> Array:
    return np.asarray(DOMAIN.design(n, np.random.default_rng(seed)))


def _smooth(X: Array) -> Array:
    return np.asarray(np.sin(2.0 * X[:, 0]) - 0.3 * X[:, 1] ** 2)


def _valley(X: Array) -> Array:
    return np.asarray(-(100.0 * (X[:, 1] - X[:, 0] ** 2) ** 2 + (1.0 - X[:, 0]) ** 2))


@pytest.mark.parametrize("n", [3, 8, 20, 60])
def test_smooth_values_are_taken_as_they_are(n: int) -> None:
    X = _points(n)
    assert treat(GPS, X, _smooth(X)).plain


@pytest.mark.parametrize("n", [20, 60, BLOCK + 40])
def test_a_steep_valley_is_bent(n: int) -> None:
    X = _points(n)
    treatment = treat(GPS, X, _valley(X))
    assert not treatment.warp.straight
    assert treatment.warp.knot == _valley(X).max()
    assert not treatment.outliers


def test_the_unit_and_the_origin_of_values_do_not_matter() -> None:
    X = _points(30)
    y = _valley(X)
    first, other = treat(GPS, X, y).warp, treat(GPS, X, 1e-3 * y + 5.0).warp
    assert other.power == first.power
    assert other.scale == pytest.approx(1e-3 * first.scale, rel=1e-6)


@pytest.mark.parametrize("value", [1e6, -1e6, 1e12])
@pytest.mark.parametrize("function", [_smooth, _valley])
def test_one_wild_value_among_many_is_found_and_nothing_else(value: float, function: object) -> None:
    X = _points(24)
    y = function(X)  # type: ignore[operator]
    y[7] = value
    treatment = treat(GPS, X, y)
    assert set(treatment.outliers) <= {7}
    if function is _smooth or value > 0:  # a bad value in a deep valley may be one of its walls
        assert set(treatment.outliers) == {7}
    z, noise = treatment.values(y, None)
    if noise is not None:
        assert noise[7] > 1e3 * np.var(np.delete(z, 7))
        assert np.ptp(z) < 3.0 * np.ptp(np.delete(z, 7))
        assert np.isnan(np.delete(noise, 7)).all()


def test_wild_values_are_found_in_every_block() -> None:
    X = _points(2 * BLOCK)
    y = _smooth(X)
    y[[5, 100, 250]] = 1e6
    assert set(treat(GPS, X, y).outliers) == {5, 100, 250}


def test_noise_that_was_told_explains_a_wild_value() -> None:
    X = _points(24)
    y, noise = _smooth(X), np.full(24, np.nan)
    y[7] = 50.0
    assert set(treat(GPS, X, y).outliers) == {7}
    noise[7] = 2500.0
    assert not treat(GPS, X, y, noise).outliers


def test_told_noise_follows_the_slope_of_the_scale() -> None:
    X = _points(40)
    treatment = treat(GPS, X, _valley(X))
    y, noise = np.array([treatment.warp.knot, treatment.warp.knot - treatment.warp.scale]), np.array([4.0, 4.0])
    assert treatment.values(y, noise)[1] == pytest.approx([4.0, 4.0 * 0.5 ** (2.0 - 2.0 * treatment.warp.power)])


@pytest.mark.parametrize("y", [np.zeros(12), np.full(12, 1e300), np.full(12, -7.0), np.arange(12) * 1e-300])
def test_values_without_a_spread_are_taken_as_they_are(y: Array) -> None:
    with np.errstate(all="raise", under="ignore"):
        assert treat(GPS, _points(12), y) == PLAIN


def test_a_value_that_is_confirmed_at_its_point_is_no_outlier() -> None:
    X = _points(24)
    y = _smooth(X)
    y[7] = 1e3
    X, y = np.vstack([X, X[7:8]]), np.append(y, 1e3 + 1.0)
    assert not treat(GPS, X, y).outliers


def test_bad_values_side_by_side_are_a_region() -> None:
    X = _points(24)
    y = _smooth(X)
    away = ((X - X[7]) ** 2).sum(axis=1)
    near = int(np.argsort(away)[1])
    y[[7, near]] = -1e4
    assert near not in treat(GPS, X, y).outliers
    y[near] = _smooth(X)[near]
    assert set(treat(GPS, X, y).outliers) == {7}
