"""Pathwise draws against the posterior they come from."""

import numpy as np
import pytest

from surefoot.belief.gp import GP
from surefoot.belief.kernels import SE, Linear, Matern
from surefoot.belief.mixture import MixturePosterior
from surefoot.belief.paths import sample_paths


def posterior(kernel=None, n=12, noise=0.01, dimension=2):
    rng = np.random.default_rng(0)
    X, y = rng.random((n, dimension)), 3.0 + rng.standard_normal(n)
    return GP(kernel or Matern(2.5, 0.5), noise=noise, mean=3.0).condition(X, y)


@pytest.mark.parametrize(
    "kernel", [SE([0.3, 0.6], variance=2.0), Matern(1.5, 0.5), SE(0.3).on([0]) + Matern(2.5, 0.7)], ids=str
)
@pytest.mark.parametrize("n", [1, 12])
def test_moments_are_those_of_the_posterior(kernel, n):
    known = posterior(kernel, n)
    Z = np.random.default_rng(1).random((8, 2))
    # Many small bundles: the error of the features, shared within a bundle, averages out too.
    draws = np.concatenate([sample_paths(known, 500, np.random.default_rng(seed), 256)(Z) for seed in range(40)])
    sd = np.sqrt(kernel.diag(Z)[0])
    np.testing.assert_allclose(draws.mean(axis=0), known.mean(Z), atol=0.03 * sd)
    np.testing.assert_allclose(np.cov(draws.T), known.cov(Z), atol=0.05 * sd**2)


def test_before_any_measurement_the_paths_are_prior_draws():
    known, Z = GP(SE(0.5), mean=-2.0).condition(), np.random.default_rng(1).random((6, 3))
    draws = np.concatenate(
        [sample_paths(known, 500, np.random.default_rng(seed), 256, dimension=3)(Z) for seed in range(20)]
    )
    np.testing.assert_allclose(draws.mean(axis=0), -2.0, atol=0.04)
    np.testing.assert_allclose(np.cov(draws.T), SE(0.5)(Z), atol=0.05)
    with pytest.raises(ValueError, match="dimension"):
        sample_paths(known, 1, np.random.default_rng(0))


def test_paths_pass_through_precise_measurements():
    known = posterior(SE(0.2), noise=1e-10)
    values = sample_paths(known, 20, np.random.default_rng(0))(known.X)
    np.testing.assert_allclose(values, np.broadcast_to(known.y, values.shape), atol=1e-3)


def test_each_measurement_keeps_its_noise():
    X, noise = np.array([[0.0], [5.0]]), np.array([1e-6, 1.0])
    known = GP(SE(0.5)).condition(X, [1.0, 1.0], noise)
    spread = sample_paths(known, 4000, np.random.default_rng(0), 2048)(X).std(axis=0)
    np.testing.assert_allclose(spread, [1e-3, np.sqrt(0.5)], rtol=0.1)


@pytest.mark.parametrize("kernel", [SE([0.3, 0.6]), Matern(2.5, 0.4) * SE(2.0)], ids=str)
@pytest.mark.parametrize("n", [0, 12])
def test_gradients_are_those_of_the_functions(kernel, n):
    known = posterior(kernel, n) if n else GP(kernel).condition()
    paths, step = sample_paths(known, 3, np.random.default_rng(0), 64, dimension=2), 1e-6
    Z = np.random.default_rng(1).random((5, 2))
    values, slopes = paths.gradient(Z)
    np.testing.assert_allclose(values, paths(Z), atol=1e-12)
    numeric = np.stack([(paths(Z + step * e) - paths(Z - step * e)) / (2 * step) for e in np.eye(2)], axis=-1)
    np.testing.assert_allclose(slopes, numeric, atol=1e-5)
    for i, path in enumerate(paths):
        np.testing.assert_allclose(path(Z), values[i], atol=1e-12)
        one, slope = path.gradient(Z)
        np.testing.assert_allclose(one, values[i], atol=1e-12)
        np.testing.assert_allclose(slope, slopes[i], atol=1e-12)


def test_paths_are_kept_when_the_posterior_moves_on():
    known, Z = posterior(), np.random.default_rng(1).random((5, 2))
    paths = sample_paths(known, 2, np.random.default_rng(0))
    before = paths(Z)
    known.append([0.5, 0.5], 100.0)
    np.testing.assert_array_equal(paths(Z), before)


def test_the_generator_decides():
    Z = np.random.default_rng(1).random((5, 2))
    a, b, c = (sample_paths(posterior(), 2, np.random.default_rng(seed))(Z) for seed in (0, 0, 1))
    np.testing.assert_array_equal(a, b)
    assert abs(a - c).max() > 1e-3


def test_each_path_of_a_mixture_follows_one_member():
    members = [GP(SE(), mean=mean, noise=1e-6).condition([[0.0]], [mean]) for mean in (-100.0, 0.0, 100.0)]
    paths = sample_paths(MixturePosterior(GP(), members), 300, np.random.default_rng(0), 64)
    Z = np.array([[0.0], [1.0]])
    values, slopes = paths.gradient(Z)
    assert (values.shape, slopes.shape) == ((300, 2), (300, 2, 1))
    nearest = np.round(values / 100.0)
    np.testing.assert_array_equal(nearest[:, 0], nearest[:, 1])
    shares = [np.mean(nearest[:, 0] == member) for member in (-1, 0, 1)]
    np.testing.assert_allclose(shares, 1 / 3, atol=0.1)
    assert len(set(nearest[:10, 0])) > 1  # in random order, so that the first is a fair draw
    np.testing.assert_allclose(np.stack([path(Z) for path in paths]), values)


def test_indexing():
    paths = sample_paths(posterior(), 3, np.random.default_rng(0), 16)
    assert len(paths) == len(list(paths)) == 3
    assert paths[-1] is paths[2]
    with pytest.raises(IndexError, match="3 functions"):
        paths[3]


def test_bad_arguments_are_refused():
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="count"):
        sample_paths(posterior(), 0, rng)
    with pytest.raises(ValueError, match="2 columns"):
        sample_paths(posterior(), 1, rng, dimension=3)
    with pytest.raises(TypeError, match="spectral density"):
        sample_paths(posterior(Linear()), 1, rng)
