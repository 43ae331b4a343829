"""Theorems about private releases, as properties: invariances, bounds, and laws."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import pdist
from scipy.stats import ks_2samp

from surefoot import SE
from surefoot.belief import NoisyInputs
from surefoot.private import PublishedProjection, ResearchNoise, omega
from surefoot.private.projection import composed_epsilon, largest_dimension, lifted, singular_values

seeds = st.integers(0, 10_000)
common = settings(max_examples=40, deadline=None)


def rows(seed, n=25, d=3):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) @ np.diag(rng.uniform(0.3, 20.0, d))


def published(epsilon, dimension, lift="threshold"):
    return PublishedProjection(epsilon=epsilon, delta=1e-4, dimension=dimension, lift=lift, accept_no_guarantee=True)


@common
@given(st.integers(1, 200), st.floats(0.05, 50.0), st.floats(1e-9, 0.5), st.floats(1.01, 3.0))
def test_the_threshold_is_monotone(r, epsilon, delta, factor):
    assert omega(r + 1, epsilon, delta) > omega(r, epsilon, delta)
    assert omega(r, epsilon * factor, delta) < omega(r, epsilon, delta)
    assert omega(r, epsilon, min(delta * factor, 0.9)) < omega(r, epsilon, delta)
    assert composed_epsilon(r, epsilon, delta) > epsilon / math.sqrt(2.0)


@common
@given(st.floats(0.1, 1e5), st.floats(0.1, 30.0), st.floats(1e-8, 1e-2))
def test_the_largest_dimension_is_the_largest(smallest, epsilon, delta):
    r = largest_dimension(smallest, epsilon, delta)
    assert omega(r + 1, epsilon, delta) > smallest
    assert r == 0 or omega(r, epsilon, delta) <= smallest


@common
@given(seeds, st.sampled_from([0.5, 50.0, 5000.0]), st.integers(1, 8))
def test_translation_and_order(seed, epsilon, r):
    """Moving all rows changes nothing; permuting them permutes the release."""
    X, M = rows(seed), ResearchNoise(seed).normal((3, r))
    mechanism = published(epsilon, r)
    Z = mechanism.project(X, M)
    scale = np.abs(Z).max()
    np.testing.assert_allclose(mechanism.project(X + np.array([5.0, -3.0, 100.0]), M), Z, atol=1e-9 * scale)
    order = np.random.default_rng(seed).permutation(len(X))
    np.testing.assert_allclose(mechanism.project(X[order], M), Z[order], atol=1e-9 * scale)


def test_rotations_leave_the_law_unchanged():
    X = rows(0)
    Q = np.linalg.qr(np.random.default_rng(1).normal(size=(3, 3)))[0]
    mechanism = published(1.0, 4)
    one = mechanism.project(X, ResearchNoise(1).normal((3000, 3, 4)))
    two = mechanism.project(X @ Q, ResearchNoise(2).normal((3000, 3, 4)))
    for statistic in (lambda Z: Z[:, 0, 0], lambda Z: np.linalg.norm(Z[:, 3] - Z[:, 7], axis=1)):
        assert ks_2samp(statistic(one), statistic(two)).pvalue > 0.01


@common
@given(seeds, st.floats(0.0, 500.0))
def test_the_lift_keeps_distances_within_its_bounds(seed, level):
    """|x − x'| ≤ |x̃ − x̃'| ≤ √(1 + ω²/σ_min²) |x − x'| for all pairs."""
    X = rows(seed)
    X = X - X.mean(axis=0)
    before, after = pdist(X), pdist(lifted(X, level))
    assert (after >= before * (1 - 1e-9)).all()
    limit = math.sqrt(1.0 + (level / singular_values(X)[-1]) ** 2)
    assert (after <= before * limit * (1 + 1e-9)).all()


@common
@given(seeds, st.floats(0.0, 1.0))
def test_the_smallest_singular_value_moves_by_at_most_the_change(seed, size):
    """Weyl: neighbors' singular values differ by at most the norm of the change."""
    X = rows(seed)
    rng = np.random.default_rng(seed)
    change = rng.normal(size=3)
    Y = X.copy()
    Y[rng.integers(len(X))] += size * change / np.linalg.norm(change)
    assert (np.abs(singular_values(X) - singular_values(Y)) <= size + 1e-9).all()


@common
@given(seeds, st.integers(20, 400))
def test_covariances_change_by_at_most_the_distortion(seed, r):
    """|k_z − k_x| ≤ ν D² k_x whenever the realized distortion ν of squared distances is at most 2/D²."""
    X = rows(seed, n=15, d=2)
    length = pdist(X).max()  # D = diam/ℓ = 1
    Z = published(1.0, r, "never").project(X, ResearchNoise(seed).normal((2, r)))
    nu = float(np.abs(pdist(Z, "sqeuclidean") / pdist(X, "sqeuclidean") - 1.0).max())
    assume(nu <= 1.0)
    kernel = SE(length)
    assert (np.abs(kernel(Z) - kernel(X)) <= nu * kernel(X) + 1e-12).all()


@common
@given(seeds)
def test_the_release_lies_in_the_columns_of_the_data(seed):
    """Why there is no guarantee: the true table explains a release exactly, a neighbor does not."""
    X, M = rows(seed), ResearchNoise(seed).normal((3, 6))
    Y = X.copy()
    Y[0] += [1.0, 0.0, 0.0]
    for epsilon in (0.1, 1e5):
        Z = published(epsilon, 6).project(X, M)
        for table, explains in ((X, True), (Y, False)):
            U = np.linalg.svd(table - table.mean(axis=0), full_matrices=False)[0]
            residual = np.linalg.norm(Z - U @ (U.T @ Z)) / np.linalg.norm(Z)
            assert bool(residual < 1e-10) is explains


@common
@given(seeds, st.floats(0.0, 3.0), st.floats(0.2, 5.0))
def test_the_noise_aware_kernel_is_positive_and_below_the_plain_one(seed, scale, length):
    Z = rows(seed, n=12)
    K = NoisyInputs(scale, length)(Z)
    assert np.linalg.eigvalsh(K).min() > -1e-10
    np.testing.assert_allclose(np.diag(K), 1.0)
    shared, own = NoisyInputs(scale, length).parts(3)
    assert 0.0 <= own < 1.0
    assert shared.variance <= 1.0
