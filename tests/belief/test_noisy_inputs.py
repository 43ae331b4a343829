"""The kernel of points with errors: its closed form, its gradients, and everything that is built on kernels."""

from __future__ import annotations

import numpy as np
import pytest

from surefoot import GP, GPUCB, SE, Candidates, Matern, Policy, ThompsonSampling
from surefoot.belief import GridPosterior, NoisyInputs
from surefoot.belief.algebra import kernel_from_dict
from surefoot.belief.noisy_inputs import WhiteNoise, smooth_and_white
from surefoot.belief.paths import sample_paths


@pytest.mark.parametrize("scale", [0.4, [0.4, 1.1]])
@pytest.mark.parametrize("lengthscale", [0.9, [0.9, 2.0]])
def test_it_is_the_average_over_both_errors(scale, lengthscale):
    """Gauss-Hermite quadrature of E SE(z + e, z' + e') over independent errors."""
    Z = np.random.default_rng(0).normal(size=(4, 2))
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    weights = weights / weights.sum()
    s, length = np.broadcast_to(scale, 2), np.broadcast_to(lengthscale, 2)
    expected = np.full((4, 4), 1.7)
    for k in range(2):  # the coordinates are independent of each other
        gap = Z[:, None, k] - Z[None, :, k]
        error = s[k] * (nodes[:, None] - nodes[None, :])
        values = np.exp(-0.5 * ((gap[..., None, None] + error) / length[k]) ** 2)
        expected *= np.einsum("abij,i,j->ab", values, weights, weights)
    K = NoisyInputs(scale, lengthscale, variance=1.7)(Z)
    off = ~np.eye(4, dtype=bool)
    np.testing.assert_allclose(K[off], expected[off], rtol=1e-9)
    np.testing.assert_allclose(np.diag(K), 1.7, rtol=1e-14)


def test_it_is_a_part_shared_and_a_part_of_its_own():
    Z = np.random.default_rng(0).normal(size=(30, 3))
    kernel = NoisyInputs(0.7, 1.2, variance=2.0)
    a = (1.2**2 / (1.2**2 + 2 * 0.7**2)) ** 1.5
    shared = SE(np.sqrt(1.2**2 + 2 * 0.7**2), variance=2.0 * a)
    np.testing.assert_allclose(kernel(Z), shared(Z) + 2.0 * (1 - a) * np.eye(30), rtol=1e-13)
    assert np.linalg.eigvalsh(kernel(Z)).min() >= 2.0 * (1 - a) - 1e-12
    np.testing.assert_allclose(kernel(Z[:5], Z), kernel(Z)[:5], rtol=1e-14)


def test_without_errors_it_is_the_squared_exponential():
    Z = np.random.default_rng(0).normal(size=(6, 2))
    np.testing.assert_allclose(NoisyInputs(0.0, [0.5, 2.0])(Z), SE([0.5, 2.0])(Z), rtol=1e-14)


@pytest.mark.parametrize("lengthscale", [0.8, [0.8, 1.5]])
def test_the_likelihood_has_the_right_gradient(lengthscale):
    rng = np.random.default_rng(1)
    Z = rng.normal(size=(12, 2))
    Z[5] = Z[3]  # the same record twice
    y = rng.normal(size=12)
    gp = GP(NoisyInputs([0.5, 0.3], lengthscale, variance=1.3), noise=0.2)
    _, slope = gp.log_likelihood(Z, y, gradient=True)
    for i in range(len(gp.theta)):
        step = np.zeros_like(gp.theta)
        step[i] = 1e-5
        up, down = (gp.with_theta(gp.theta + sign * step).log_likelihood(Z, y) for sign in (1, -1))
        assert slope[i] == pytest.approx((up - down) / 2e-5, rel=1e-5, abs=1e-7)


def test_a_fit_knows_of_the_errors():
    """Fitted with the errors it finds the length of the true function; without, errors look like measurement noise."""
    rng = np.random.default_rng(2)
    X = rng.uniform(0.0, 10.0, (250, 1))
    y = np.sin(X[:, 0])
    Z = X + 0.35 * rng.standard_normal(X.shape)
    aware = GP(NoisyInputs(0.35, 1.0), noise=1e-3).fit(Z, y)
    naive = GP(SE(1.0), noise=1e-3).fit(Z, y)
    assert aware.noise < 0.5 * naive.noise
    assert 0.5 < float(aware.kernel.lengthscale) < 3.0


def test_all_candidates_at_once_is_the_dense_posterior():
    rng = np.random.default_rng(3)
    Z, y, rows = rng.normal(size=(300, 2)), rng.normal(size=20), rng.integers(300, size=20)
    gp = GP(NoisyInputs(0.3, 0.8), noise=1e-3)
    grid = GridPosterior(gp, Z)
    before = grid.var.copy()
    for row, value in zip(rows, y, strict=True):
        grid.append(int(row), float(value))
        assert (grid.var <= before + 1e-12).all()  # a measurement never makes anything less certain
        before = grid.var.copy()
    dense = gp.condition(Z[rows], y)
    np.testing.assert_allclose(grid.mean, dense.mean(Z), atol=1e-8)
    np.testing.assert_allclose(grid.var, dense.var(Z), atol=1e-8)
    at_once = GridPosterior.condition(gp, Z, rows, y)
    np.testing.assert_allclose(grid.mean, at_once.mean, atol=1e-9)


def test_on_a_tensor_it_is_the_same():
    torch = pytest.importorskip("torch")
    Z = np.random.default_rng(0).normal(size=(50, 2))
    kernel = NoisyInputs(0.3, [0.8, 1.0])
    np.testing.assert_allclose(kernel(torch.asarray(Z), torch.asarray(Z[:7])).numpy(), kernel(Z, Z[:7]), rtol=1e-13)


def test_drawn_functions_have_the_moments_of_the_posterior():
    rng = np.random.default_rng(4)
    Z = rng.normal(size=(8, 1))
    posterior = GP(NoisyInputs(0.5, 1.0), noise=1e-4).condition(Z[:4], rng.normal(size=4))
    draws = np.stack([sample_paths(posterior, 1, np.random.default_rng(i), 256)[0](Z) for i in range(2000)])
    np.testing.assert_allclose(draws.mean(axis=0), posterior.mean(Z), atol=0.08)
    np.testing.assert_allclose(np.cov(draws.T), posterior.cov(Z, Z), atol=0.1)
    path = sample_paths(posterior, 1, rng)[0]
    np.testing.assert_allclose(path(Z)[2:5], path(Z[2:5]), rtol=1e-12)  # a function: the same point, the same value
    values, slopes = path.gradient(Z)
    np.testing.assert_allclose(values, path(Z), rtol=1e-12)
    assert np.isfinite(slopes).all()


def test_white_noise_is_independent_between_points_and_between_draws():
    X = np.random.default_rng(0).random((20_000, 1)).round(3)  # short decimals, the hard case
    values = WhiteNoise(1.0, 2, np.random.default_rng(1))(np.unique(X, axis=0))
    assert abs(np.corrcoef(values)[0, 1]) < 0.1
    assert abs(np.corrcoef(values[0, :-1], values[0, 1:])[0, 1]) < 0.1
    assert WhiteNoise(1.0, 1, np.random.default_rng(1))(np.array([[-0.0]])) == WhiteNoise(
        1.0, 1, np.random.default_rng(1)
    )(np.array([[0.0]]))


def test_it_can_be_stored():
    kernel = NoisyInputs([0.5, 0.1], [1.0, 2.0], variance=3.0)
    assert kernel_from_dict(kernel.to_dict()) == kernel
    Z = np.random.default_rng(0).normal(size=(40, 2))
    policy = GPUCB(Candidates(Z), gp=GP(kernel, noise=0.1).refit(every=2), seed=0)
    for i in range(5):
        policy.tell(policy.ask(), float(i))
    assert Policy.from_state(policy.state()).ask() == policy.ask()


def test_thompson_sampling_draws_it_on_many_candidates():
    Z = np.random.default_rng(0).normal(size=(2500, 2))
    policy = ThompsonSampling(Candidates(Z), gp=GP(NoisyInputs(0.5, 1.0), noise=0.1), seed=0)
    asked = {policy.ask().index for _ in range(3)}
    assert len(asked) == 3


def test_sums_keep_both_parts():
    smooth, own = smooth_and_white(SE(2.0) + NoisyInputs(1.0, 1.0), 1)
    assert own == pytest.approx(1 - 3**-0.5)
    assert float(smooth.diag(np.zeros((1, 1)))[0]) == pytest.approx(1 + 3**-0.5)


@pytest.mark.parametrize("scale", [-0.1, float("nan"), [[1.0]], []])
def test_bad_scales_are_refused(scale):
    with pytest.raises(ValueError, match="scale"):
        NoisyInputs(scale)


def test_other_kernels_have_no_closed_form():
    with pytest.raises(TypeError, match="Matern"):
        NoisyInputs.around(Matern(2.5), 0.1)
    with pytest.raises(ValueError, match="length-scales"):
        NoisyInputs([0.1, 0.2], [1.0, 2.0, 3.0])
