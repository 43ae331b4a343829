"""Preflight: what the curator learns before a release, and that it stays with the curator."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from surefoot.private import GaussianRelease, LaplaceRelease, PublishedProjection, preflight


def grid(side=20):
    axis = np.linspace(-1.0, 1.0, side)
    X = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    return X * (25.0 / np.linalg.norm(X, axis=1).max())


def test_the_published_projection_is_described():
    mechanism = PublishedProjection(epsilon=3.0, delta=1e-5, dimension=10, accept_no_guarantee=True)
    found = preflight(grid(), mechanism, lengthscale=6.0, asks=5, runs=2)
    assert found.branch == "lifted"
    assert found.omega == mechanism.omega
    assert found.largest == 0
    assert found.singular_values[-1] < mechanism.omega
    assert found.distortion[1] > 3.0  # the lift stretches distances
    assert found.noise == 0.0
    easy = PublishedProjection(epsilon=300.0, delta=1e-5, dimension=200, accept_no_guarantee=True)
    found = preflight(grid(), easy, lengthscale=6.0, asks=5, runs=2)
    assert found.branch == "plain"
    assert found.largest >= 200
    assert found.distortion == pytest.approx((1.0, 1.0, 1.0), abs=0.2)


def test_less_noise_distorts_less_and_loses_less():
    options = {"lengthscale": 6.0, "asks": 25, "runs": 6, "seed": 1}
    strict, lax = (
        preflight(grid(), GaussianRelease(epsilon=epsilon, delta=1e-5), **options) for epsilon in (0.2, 1000.0)
    )
    assert strict.noise > 10 * lax.noise
    assert strict.distortion[1] > 1.3 > lax.distortion[1]
    assert lax.loss["released rows"] < strict.loss["released rows"]
    assert lax.loss["released rows"] == pytest.approx(lax.loss["original rows"], abs=0.15)
    assert lax.branch is None
    assert preflight(grid(), GaussianRelease(epsilon=0.2, delta=1e-5), **options).loss == strict.loss  # reproducible


def test_clipping_is_counted():
    X = np.zeros((100, 2))
    X[:25] = 100.0
    mechanism = GaussianRelease(epsilon=1.0, delta=1e-5, bounds=[(-1.0, 1.0)] * 2)
    assert preflight(X, mechanism, lengthscale=5.0, asks=2, runs=1).clipped == 0.25


def test_it_does_not_leave_the_curator():
    found = preflight(grid(), LaplaceRelease(epsilon=1.0), lengthscale=6.0, asks=3, runs=1)
    for copier in (pickle.dumps, copy.copy):
        with pytest.raises(TypeError, match="private data"):
            copier(found)
    assert not any(name.startswith(("to_", "save")) for name in dir(found))
    assert "expected loss" in str(found)


@pytest.mark.parametrize("options", [{"lengthscale": 0.0}, {"asks": 0}, {"runs": 0}, {"rows": 1}])
def test_bad_arguments_are_refused(options):
    with pytest.raises(ValueError, match="positive"):
        preflight(grid(), LaplaceRelease(epsilon=1.0), **{"lengthscale": 1.0, **options})


def test_records_that_are_equal_do_not_end_a_preflight():
    rows = np.repeat([[0.0, 1.0], [1.0, 0.0]], 20, axis=0)  # two different rows, forty records
    for mechanism in (
        GaussianRelease(epsilon=3.0, delta=1e-5, bounds=[(0.0, 1.0)] * 2),
        PublishedProjection(epsilon=3.0, delta=1e-5, dimension=2, lift="never", accept_no_guarantee=True),
    ):
        found = preflight(rows, mechanism, lengthscale=6.0, asks=10, runs=1)
        assert all(np.isfinite(loss) for loss in found.loss.values())
