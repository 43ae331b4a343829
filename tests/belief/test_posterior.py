"""Posterior: against scikit-learn and brute force, appends and pops, gradients, samples, hard inputs."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as peer

from surefoot.belief import GP, SE, ConstantKernel, Kernel, Linear, Matern, Posterior


def data(n: int = 40, d: int = 3, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.random((n, d))
    return X, np.sin(5.0 * X[:, 0]) + X.sum(axis=1) + 0.1 * rng.normal(size=n), rng.random((15, d))


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (SE([0.3, 0.5, 1.0], variance=2.0), 2.0 * peer.RBF([0.3, 0.5, 1.0])),
        (Matern(0.5, 0.6), peer.Matern(0.6, nu=0.5)),
        (Matern(1.5, [0.3, 0.5, 1.0]), peer.Matern([0.3, 0.5, 1.0], nu=1.5)),
        (Matern(2.5, 0.4) + Linear(1.0) + ConstantKernel(1.0), peer.Matern(0.4, nu=2.5) + peer.DotProduct(1.0)),
    ],
)
@pytest.mark.parametrize("noise", [1e-4, 0.2, None])
def test_agrees_with_scikit_learn(ours: Kernel, theirs: peer.Kernel, noise: float | None) -> None:
    X, y, Z = data()
    own = np.linspace(0.01, 0.5, len(y)) if noise is None else np.full(len(y), noise)
    model = GaussianProcessRegressor(theirs, alpha=own, optimizer=None).fit(X, y)
    mean, cov = model.predict(Z, return_cov=True)
    if noise is None:
        post = GP(ours, noise=9.0).condition(X, y, own)
    else:
        post = GP(ours, noise=noise).condition(X, y)
    np.testing.assert_allclose(post.mean(Z), mean, atol=1e-8)
    np.testing.assert_allclose(post.cov(Z), cov, atol=1e-8)
    np.testing.assert_allclose(post.var(Z), np.diagonal(cov), atol=1e-8)
    np.testing.assert_allclose(post.cov(Z[:4], Z[4:]), cov[:4, 4:], atol=1e-8)
    np.testing.assert_allclose(post.std(Z), post.predict(Z)[1])
    np.testing.assert_allclose(post.predict(Z)[0], mean, atol=1e-8)


def test_constant_mean_shifts_everything() -> None:
    X, y, Z = data()
    np.testing.assert_allclose(
        GP(SE(0.4), 0.1, mean=3.0).condition(X, y + 3.0).mean(Z), 3.0 + GP(SE(0.4), 0.1).condition(X, y).mean(Z)
    )


def test_information_gain_is_the_log_determinant() -> None:
    X, y, _ = data(12)
    noise = np.linspace(0.1, 1.0, 12)
    K = SE(0.4)(X)
    expected = 0.5 * np.linalg.slogdet(np.eye(12) + K / np.sqrt(np.outer(noise, noise)))[1]
    assert GP(SE(0.4)).condition(X, y, noise).information_gain == pytest.approx(expected, abs=1e-10)


def test_solve_and_factor() -> None:
    X, y, _ = data(20)
    post = GP(SE(0.4), 0.01).condition(X, y)
    S = SE(0.4)(X) + 0.01 * np.eye(20)
    np.testing.assert_allclose(post.chol @ post.chol.T, S, atol=1e-12)
    np.testing.assert_allclose(S @ post.solve(np.eye(20)), np.eye(20), atol=1e-9)
    np.testing.assert_allclose(post.solve(y), post.alpha, atol=1e-9)


@pytest.mark.parametrize("kernel", [SE([0.3, 0.4, 0.9]), Matern(2.5, 0.5), SE(0.5) * Linear(0.8) + Matern(1.5, 0.7)])
def test_gradients_agree_with_differences(kernel: Kernel) -> None:
    X, y, Z = data()
    for post in (GP(kernel, 0.01, mean=1.0).condition(X, y), GP(kernel, 0.01, mean=1.0).condition()):
        mean, std, dmean, dstd = post.gradient(Z)
        np.testing.assert_allclose(mean, post.mean(Z))
        np.testing.assert_allclose(std, post.std(Z))
        for i, h in enumerate(1e-6 * np.eye(3)):
            up, down = post.predict(Z + h), post.predict(Z - h)
            np.testing.assert_allclose(dmean[:, i], (up[0] - down[0]) / 2e-6, atol=1e-6)
            np.testing.assert_allclose(dstd[:, i], (up[1] - down[1]) / 2e-6, atol=1e-6)


def test_gradient_is_finite_at_measured_points() -> None:
    X, y, _ = data(10)
    for kernel in (SE(0.3), Matern(0.5, 0.3), Linear(1.0)):
        post = GP(kernel, noise=0.0).condition(X, y)
        for part in post.gradient(np.vstack([X, np.zeros((1, 3))])):
            assert np.isfinite(part).all()
        assert (post.var(X) >= 0).all()


def test_500_appends_agree_with_one_factorization() -> None:
    X, y, Z = data(500, 4)
    noise = np.random.default_rng(2).uniform(1e-4, 1e-2, 500)
    gp = GP(SE(0.5), 1e-3, mean=0.5)
    whole, grown = gp.condition(X, y, noise), gp.condition()
    for x, value, own in zip(X, y, noise, strict=True):
        grown.append(x, value, own)
    assert grown.n == 500
    np.testing.assert_allclose(grown.mean(Z), whole.mean(Z), atol=1e-8)
    np.testing.assert_allclose(grown.cov(Z), whole.cov(Z), atol=1e-8)
    np.testing.assert_allclose(grown.chol, whole.chol, atol=1e-8)
    assert grown.information_gain == pytest.approx(whole.information_gain, abs=1e-8)


@pytest.mark.parametrize("start", [0, 1, 7, 8, 30])
def test_pop_undoes_append_exactly(start: int) -> None:
    X, y, Z = data(40)
    post = GP(SE(0.4), 0.01).condition(X[:start], y[:start]) if start else GP(SE(0.4), 0.01).condition()
    before = post.predict(Z), post.X.copy(), post.y.copy(), post.noise.copy(), post.information_gain
    for x, value in zip(X[30:], y[30:], strict=True):
        post.append(x, value, 0.5)
    for _ in range(10):
        post.pop()
    after = post.predict(Z), post.X, post.y, post.noise, post.information_gain
    assert post.n == start
    np.testing.assert_array_equal(before[0], after[0])
    assert all(np.array_equal(a, b) for a, b in zip(before[2:], after[2:], strict=True))
    if start:
        np.testing.assert_array_equal(before[1], after[1])


def test_appending_the_mean_leaves_the_mean() -> None:
    X, y, Z = data()
    post = GP(SE(0.4), 0.01).condition(X, y)
    mean, var = post.mean(Z), post.var(Z)
    post.append(Z[0], float(post.mean(Z[:1])[0]))
    np.testing.assert_allclose(post.mean(Z), mean, atol=1e-10)
    assert (post.var(Z) <= var + 1e-12).all()
    assert post.var(Z)[0] < 0.6 * var[0]


def test_copy_is_independent() -> None:
    X, y, Z = data()
    post = GP(SE(0.4), 0.01).condition(X[:20], y[:20])
    post.append(X[20], y[20])
    other, before = post.copy(), post.predict(Z)
    other.append(X[21], 9.0)
    other.pop()
    other.append(X[22], -9.0)
    np.testing.assert_array_equal(post.predict(Z), before)
    assert (post.n, other.n) == (21, 22)


def test_samples_have_the_posterior_moments() -> None:
    X, y, Z = data(6)
    post = GP(SE(0.5), 0.1, mean=2.0).condition(X, y)
    draws = post.sample(Z, 40_000, np.random.default_rng(0))
    assert draws.shape == (40_000, len(Z))
    np.testing.assert_allclose(draws.mean(axis=0), post.mean(Z), atol=0.03)
    np.testing.assert_allclose(np.cov(draws.T), post.cov(Z), atol=0.04)


def test_samples_at_measured_and_repeated_points() -> None:
    X, y, _ = data(6)
    post = GP(SE(0.5), 1e-12).condition(X, y)
    draws = post.sample(np.vstack([X, X]), 5, np.random.default_rng(0))
    np.testing.assert_allclose(draws, np.tile(np.tile(y, 2), (5, 1)), atol=1e-4)


class TestHardInputs:
    def test_one_measurement(self) -> None:
        post = GP(noise=1e-12).condition([[0.3]], [2.0])
        np.testing.assert_allclose(post.predict([[0.3]]), [[2.0], [0.0]], atol=2e-6)

    @pytest.mark.parametrize("noise", [0.0, 1e-300, 1e-18, 1e-12, 1e-6])
    def test_duplicates(self, noise: float) -> None:
        X = np.repeat(np.random.default_rng(0).random((5, 2)), 20, axis=0)
        y = np.repeat(np.arange(5.0), 20)
        post = GP(SE(0.5), noise).condition(X, y)
        np.testing.assert_allclose(post.mean(X), y, atol=1e-3)
        for x in X:
            post.append(x, 1.0)
        assert np.isfinite(post.predict(X)).all()

    @pytest.mark.parametrize("scale", [1e-8, 1e8])
    def test_units_do_not_matter(self, scale: float) -> None:
        X, y, Z = data()
        one = GP(SE(0.4), 1e-4).condition(X, y).predict(Z)
        other = GP(SE(0.4, variance=scale**2), 1e-4 * scale**2).condition(X, y * scale).predict(Z)
        np.testing.assert_allclose(np.array(other) / scale, one, rtol=1e-6)

    def test_thirty_dimensions(self) -> None:
        X, y, Z = data(100, 30)
        assert np.isfinite(GP(SE([3.0] * 30), 1e-6).condition(X, y).gradient(Z)[3]).all()

    def test_nearly_flat_kernel(self) -> None:
        X, y, Z = data(200)
        post = GP(SE(1e4), 1e-14).condition(X, y)
        assert np.isfinite(post.predict(Z)).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda p: p.condition([[0.0]], None), "both X and y"),
        (lambda p: p.condition([[0.0]], [1.0, 2.0]), "shapes"),
        (lambda p: p.condition([0.0], [1.0]), "shapes"),
        (lambda p: p.condition([[np.nan]], [1.0]), "finite"),
        (lambda p: p.condition([[0.0]], [np.inf]), "finite"),
        (lambda p: p.condition([[0.0]], [1.0], [-1.0]), "not negative"),
        (lambda p: p.condition([[0.0]], [1.0]).mean([0.0]), "shape"),
        (lambda p: p.condition([[0.0]], [1.0]).append([0.0, 1.0], 1.0), "coordinates"),
        (lambda p: p.condition([[0.0]], [1.0]).append([np.inf], 1.0), "finite"),
        (lambda p: p.condition().pop(), "no measurement"),
    ],
)
def test_bad_arguments(call: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call(GP())  # type: ignore[operator]


def test_failed_append_changes_nothing() -> None:
    X, y, Z = data()
    post: Posterior = GP(SE(0.4), 0.01).condition(X, y)
    before = post.predict(Z)
    with pytest.raises(ValueError, match="finite"):
        post.append(X[0], np.nan)
    np.testing.assert_array_equal(post.predict(Z), before)


@pytest.mark.slow
def test_agrees_with_gpytorch() -> None:
    gpytorch, torch = pytest.importorskip("gpytorch"), pytest.importorskip("torch")
    X, y, Z = data()

    class Model(gpytorch.models.ExactGP):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__(torch.asarray(X), torch.asarray(y), gpytorch.likelihoods.GaussianLikelihood())
            self.mean_module = gpytorch.means.ConstantMean()
            self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.MaternKernel(nu=2.5, ard_num_dims=3))

        def forward(self, points: object) -> object:
            return gpytorch.distributions.MultivariateNormal(self.mean_module(points), self.covar_module(points))

    model = Model().double().eval()
    model.covar_module.base_kernel.lengthscale, model.covar_module.outputscale = [0.3, 0.5, 1.0], 1.7
    model.likelihood.noise, model.mean_module.constant = 0.05, 0.4
    with torch.no_grad(), gpytorch.settings.fast_computations(False, False, False):
        belief = model(torch.asarray(Z))
    post = GP(Matern(2.5, [0.3, 0.5, 1.0], variance=1.7), 0.05, mean=0.4).condition(X, y)
    np.testing.assert_allclose(post.mean(Z), belief.mean.numpy(), atol=1e-8)
    np.testing.assert_allclose(post.cov(Z), belief.covariance_matrix.numpy(), atol=1e-8)
