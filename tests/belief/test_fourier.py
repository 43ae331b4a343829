"""Fourier features: the rate at which they find the kernel, and the exactness of what is built on them."""

import numpy as np
import pytest

from surefoot.belief.fourier import FourierFeatures, WeightPosterior
from surefoot.belief.kernels import SE, ConstantKernel, Linear, Matern, RationalQuadratic

KINDS = ["cos_sin", "cos_phase"]
STATIONARY = [
    SE([0.5, 1.5], variance=2.0),
    Matern(0.5, [0.5, 1.5], variance=2.0),
    Matern(1.5, 0.7),
    Matern(2.5, [0.5, 1.5], variance=2.0),
    RationalQuadratic(0.5, alpha=1.3),
]
COMPOSED = [
    SE(0.5) + Matern(2.5, 2.0, variance=3.0),
    SE(0.8, variance=2.0) * Matern(1.5, 1.0),
    SE(0.5).on([1]) + ConstantKernel(0.5),
    (SE(0.5).on([0]) + Matern(0.5).on([1])) * ConstantKernel(2.0),
]


def points(n=12, dimension=2, seed=7):
    return np.random.default_rng(seed).random((n, dimension))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("kernel", STATIONARY, ids=str)
def test_covariance_error_falls_like_the_square_root(kernel, kind):
    """The root mean square error over seeds, regressed on the number of features, has slope −½."""
    X, counts = points(), np.array([16, 64, 256, 1024])
    K, errors = kernel(X), []
    for count in counts:
        draws = (FourierFeatures(kernel, 2, int(count), np.random.default_rng(seed), kind)(X) for seed in range(60))
        errors.append(np.sqrt(np.mean([np.mean((phi @ phi.T - K) ** 2) for phi in draws])))
    slope = np.polyfit(np.log(counts), np.log(errors), 1)[0]
    assert slope == pytest.approx(-0.5, abs=0.06)
    assert errors[-1] < 2.5 * kernel.variance / np.sqrt(1024)  # the constant, not only the rate


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("kernel", COMPOSED, ids=str)
def test_composed_kernels_have_features_too(kernel, kind):
    X = points()
    phi = FourierFeatures(kernel, 2, 200_000, np.random.default_rng(0), kind)(X)
    np.testing.assert_allclose(phi @ phi.T, kernel(X), atol=0.01 * kernel.diag(X)[0] + 0.01)


def test_pairs_have_the_exact_variance():
    phi = FourierFeatures(Matern(2.5, variance=3.0), 2, 10, np.random.default_rng(0))(points())
    np.testing.assert_allclose((phi**2).sum(axis=1), 3.0)


@pytest.mark.filterwarnings("error")
def test_features_are_cosines_and_sines_to_the_last_digits():
    X = np.concatenate([np.linspace(-50, 50, 20_001), np.pi * np.arange(-9, 10) / 2])[:, None]
    pairs = FourierFeatures(SE(0.5), 1, 2, np.random.default_rng(0))
    pairs.frequencies[:] = 1.0
    np.testing.assert_allclose(pairs(X), np.hstack([np.cos(X), np.sin(X)]), atol=4e-15)
    phased = FourierFeatures(SE(0.5), 1, 2, np.random.default_rng(0), "cos_phase")
    expected = np.cos(X @ phased.frequencies.T + phased.phases)
    np.testing.assert_allclose(phased(X), expected, atol=1e-13)


@pytest.mark.parametrize("kind", KINDS)
def test_pull_is_the_gradient(kind):
    rng, step = np.random.default_rng(0), 1e-6
    features = FourierFeatures(SE(0.4), 3, 20, rng, kind)
    X, W = points(5, 3), rng.standard_normal((5, 20))
    phi, pull = features.pull_input(X)
    np.testing.assert_array_equal(phi, features(X))
    for weights in (W, W[0]):
        numeric = np.stack(
            [((features(X + step * e) - features(X - step * e)) * weights).sum(axis=1) / (2 * step) for e in np.eye(3)],
            axis=1,
        )
        np.testing.assert_allclose(pull(weights), numeric, atol=1e-6)
        np.testing.assert_array_equal(features.pull(X, weights), pull(weights))


def test_the_generator_decides():
    a, b, c = (FourierFeatures(SE(), 2, 8, np.random.default_rng(seed), "cos_phase") for seed in (1, 1, 2))
    np.testing.assert_array_equal(a(points()), b(points()))
    assert abs(a(points()) - c(points())).max() > 0.1


def test_what_has_no_features_is_refused():
    rng = np.random.default_rng(0)
    with pytest.raises(TypeError, match="no spectral density"):
        FourierFeatures(SE() + Linear(), 2, 8, rng)
    with pytest.raises(ValueError, match="3 length-scales"):
        FourierFeatures(SE([1.0, 1.0, 1.0]), 2, 8, rng)
    with pytest.raises(ValueError, match="even"):
        FourierFeatures(SE(), 2, 7, rng)
    with pytest.raises(ValueError, match="kind"):
        FourierFeatures(SE(), 2, 8, rng, kind="sin")
    with pytest.raises(ValueError, match="dimension"):
        FourierFeatures(SE(), 0, 8, rng)
    with pytest.raises(ValueError, match=r"\(n, 2\)"):
        FourierFeatures(SE(), 2, 8, rng)(np.zeros((3, 1)))


def regression(t, M, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((t, M)) / np.sqrt(M), rng.standard_normal(t), rng.uniform(0.05, 0.5, t)


def dense(Phi, y, noise):
    A = Phi.T @ (Phi / noise[:, None]) + np.eye(Phi.shape[1])
    return np.linalg.solve(A, Phi.T @ (y / noise)), np.linalg.inv(A)


# Fewer measurements than weights, as many, and more: both sides of the switch.
SIZES = [(0, 5), (1, 1), (1, 30), (7, 8), (8, 8), (9, 8), (40, 12), (12, 40)]


@pytest.mark.parametrize(("t", "M"), SIZES)
def test_weight_posterior_is_exact_in_both_regimes(t, M):
    Phi, y, noise = regression(t, M)
    mean, C = dense(Phi, y, noise)
    weights = WeightPosterior(Phi, y, noise)
    np.testing.assert_allclose(weights.mean, mean, atol=1e-10)
    at = np.random.default_rng(1).standard_normal((6, M))
    predicted, var = weights.predict(at)
    np.testing.assert_allclose(predicted, at @ mean, atol=1e-10)
    np.testing.assert_allclose(var, np.einsum("ij,jk,ik->i", at, C, at), atol=1e-10)


@pytest.mark.parametrize(("t", "M"), [(30, 6), (4, 6), (6, 6)])
def test_drawn_weights_have_the_posterior_moments(t, M):
    Phi, y, noise = regression(t, M)
    mean, C = dense(Phi, y, noise)
    draws = WeightPosterior(Phi, y, noise).draw(100_000, np.random.default_rng(2))
    assert draws.shape == (100_000, M)
    np.testing.assert_allclose(draws.mean(axis=0), mean, atol=0.015)
    np.testing.assert_allclose(np.cov(draws.T), C, atol=0.02)


@pytest.mark.parametrize("kind", KINDS)
def test_weight_space_is_function_space(kind):
    """The posterior of the weights is that of a GP with kernel φ(x)ᵀφ(z)."""
    rng = np.random.default_rng(0)
    features = FourierFeatures(Matern(2.5, 0.5), 2, 300, rng, kind)
    X, Z, y = points(20), points(9, seed=8), rng.standard_normal(20)
    K, k = features(X) @ features(X).T + 0.01 * np.eye(20), features(Z) @ features(X).T
    mean, var = features.posterior(X, y, 0.01).predict(features(Z))
    np.testing.assert_allclose(mean, k @ np.linalg.solve(K, y), atol=1e-9)
    prior = (features(Z) ** 2).sum(axis=1)
    np.testing.assert_allclose(var, prior - np.einsum("ij,ji->i", k, np.linalg.solve(K, k.T)), atol=1e-9)


@pytest.mark.parametrize(("t", "M"), [(200, 20), (20, 200)])
@pytest.mark.parametrize("scale", [1e-8, 1e8])
def test_weight_posterior_on_hard_data(t, M, scale):
    Phi, y, _ = regression(t, M)
    Phi[1] = Phi[0]
    weights = WeightPosterior(Phi, scale * y, 1e-12)
    assert np.isfinite(weights.mean).all()
    assert np.isfinite(weights.draw(3, np.random.default_rng(0))).all()
    if t < M:  # enough weights to pass through the values (the doubled row through their average)
        expected = y.copy()
        expected[:2] = y[:2].mean()
        np.testing.assert_allclose(Phi @ weights.mean, scale * expected, atol=1e-3 * scale)


def test_bad_measurements_are_refused():
    for y, noise in [([1.0], 0.1), ([1.0, np.nan], 0.1), ([1.0, 2.0], 0.0), ([1.0, 2.0], [0.1, 0.1, 0.1])]:
        with pytest.raises(ValueError, match="finite"):
            WeightPosterior(np.ones((2, 3)), np.array(y), noise)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("t", "M"), [(30, 10), (10, 30)])
def test_torch_agrees_with_numpy(kind, t, M):
    torch = pytest.importorskip("torch")
    features = FourierFeatures(Matern(1.5, [0.5, 1.0]), 2, M, np.random.default_rng(0), kind)
    X, y = points(t), np.random.default_rng(1).standard_normal(t)
    T = torch.from_numpy(X)
    assert isinstance(features(T), torch.Tensor)
    np.testing.assert_allclose(features(T).numpy(), features(X), atol=1e-10)
    W = np.random.default_rng(2).standard_normal((t, M))
    np.testing.assert_allclose(features.pull(T, torch.from_numpy(W)).numpy(), features.pull(X, W), atol=1e-10)
    a, b = features.posterior(X, y, 0.1), features.posterior(T, torch.from_numpy(y), 0.1)
    np.testing.assert_allclose(b.mean.numpy(), a.mean, atol=1e-10)
    left, right = (weights.draw(4, np.random.default_rng(3)) for weights in (a, b))
    np.testing.assert_allclose(right.numpy(), left, atol=1e-10)
    for left, right in zip(a.predict(features(X)), b.predict(features(T)), strict=True):
        np.testing.assert_allclose(right.numpy(), left, atol=1e-10)
