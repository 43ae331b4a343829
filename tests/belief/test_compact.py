"""A posterior in bounded room: exact while it fits, the textbook sparse formula beyond."""

import numpy as np
import pytest

from surefoot.belief import GP, SE, Matern
from surefoot.belief.compact import CompactPosterior

RNG = np.random.default_rng(0)
X = RNG.random((60, 2))
Y = np.sin(5.0 * X[:, 0]) + X[:, 1]
Z = RNG.random((15, 2))
GPS = [GP(SE(lengthscale=[0.3, 0.6]), noise=0.02, mean=0.5), GP(Matern(2.5, lengthscale=0.4), noise=1e-4)]


@pytest.mark.parametrize("gp", GPS)
@pytest.mark.parametrize("points", [None, 60, 100])
def test_short_histories_are_exact(gp, points):
    compact, exact = CompactPosterior(gp, X, Y, points=points), gp.condition(X, Y)
    assert compact.exact
    for ours, theirs in zip(compact.predict(Z), exact.predict(Z), strict=True):
        assert np.allclose(ours, theirs, rtol=1e-9, atol=1e-9)
    assert np.allclose(compact.cov(Z), exact.cov(Z), atol=1e-9)


def test_inducing_points_give_the_fitc_formula():
    """Against dense algebra with the same inducing points (Snelson & Ghahramani 2006, equations 6 to 8)."""
    gp, noise = GPS[0], RNG.uniform(0.01, 0.1, len(X))
    compact = CompactPosterior(gp, X, Y, noise, points=12)
    U, k = compact.X, gp.kernel
    assert not compact.exact
    assert len(U) == 12
    assert {tuple(row) for row in U} <= {tuple(row) for row in X}
    Kuu, Kuf, Kuz = k(U), k(U, X), k(U, Z)
    Q = Kuf.T @ np.linalg.solve(Kuu, Kuf)
    inverse = np.diag(1.0 / (noise + np.diag(k(X) - Q)))
    S = np.linalg.inv(Kuu + Kuf @ inverse @ Kuf.T)
    mean = gp.mean + Kuz.T @ S @ Kuf @ inverse @ (Y - gp.mean)
    var = k.diag(Z) - np.einsum("uz,uv,vz->z", Kuz, np.linalg.inv(Kuu) - S, Kuz)
    assert np.allclose(compact.mean(Z), mean, atol=1e-7)
    assert np.allclose(compact.var(Z), var, atol=1e-7)


def test_smooth_functions_need_few_points():
    """The greedy choice stops by itself, and nothing is lost."""
    line = np.linspace(0.0, 1.0, 500)[:, None]
    gp = GP(SE(lengthscale=0.5), noise=1e-3)
    compact, exact = CompactPosterior(gp, line, np.cos(4.0 * line[:, 0]), points=200), None
    exact = gp.condition(line, np.cos(4.0 * line[:, 0]))
    assert compact.n < 30
    assert np.allclose(compact.mean(line), exact.mean(line), atol=1e-5)
    assert np.allclose(compact.std(line), exact.std(line), atol=1e-4)


def test_a_short_summary_errs_towards_caution():
    """Where it differs from the exact posterior it is less certain."""
    gp = GP(Matern(1.5, lengthscale=0.1), noise=1e-4)
    compact, exact = CompactPosterior(gp, X, Y, points=15), gp.condition(X, Y)
    assert (compact.std(Z) > exact.std(Z) - 1e-9).all()
    far = np.full((1, 2), 50.0)
    assert compact.std(far) == pytest.approx(1.0)


@pytest.mark.parametrize("points", [None, 10])
def test_gradients(points):
    compact, step = CompactPosterior(GPS[1], X, Y, points=points), 1e-6
    mean, std, dmean, dstd = compact.gradient(Z)
    assert np.allclose(mean, compact.mean(Z))
    assert np.allclose(std, compact.std(Z))
    for i in range(2):
        h = np.eye(2)[i] * step
        up, down = compact.predict(Z + h), compact.predict(Z - h)
        assert np.allclose(dmean[:, i], (up[0] - down[0]) / (2 * step), rtol=1e-4, atol=1e-5)
        assert np.allclose(dstd[:, i], (up[1] - down[1]) / (2 * step), rtol=1e-3, atol=1e-4)


def test_draws_have_the_moments_of_the_posterior():
    compact = CompactPosterior(GPS[0], X, Y, points=10)
    draws = compact.sample(Z[:4], 20_000, np.random.default_rng(1))
    assert np.allclose(draws.mean(axis=0), compact.mean(Z[:4]), atol=0.02)
    assert np.allclose(np.cov(draws.T), compact.cov(Z[:4]), atol=0.02)


def test_duplicates_and_exact_values():
    twice = np.repeat(X[:20], 3, axis=0)
    compact = CompactPosterior(GP(SE(lengthscale=0.3), noise=0.0), twice, np.repeat(Y[:20], 3), points=30)
    assert compact.n <= 20
    assert np.allclose(compact.mean(X[:20]), Y[:20], atol=1e-3)


def test_what_a_summary_cannot_do():
    compact = CompactPosterior(GPS[0], X, Y, points=5)
    for call in (lambda: compact.append(X[0], 1.0), compact.pop, lambda: compact.y, lambda: compact.noise):
        with pytest.raises(TypeError, match="use GP"):
            call()
    for call in (lambda: compact.chol, lambda: compact.information_gain, lambda: compact.solve(Y)):
        with pytest.raises(TypeError, match="compact"):
            call()
    with pytest.raises(ValueError, match="at least one"):
        CompactPosterior(GPS[0], np.empty((0, 2)), np.empty(0))
    with pytest.raises(ValueError, match="points"):
        CompactPosterior(GPS[0], X, Y, points=0)
