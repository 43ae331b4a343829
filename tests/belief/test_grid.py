"""The posterior on a grid, against the textbook formula."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot.belief.grid import BLOCK, LARGEST_SAMPLE, GridPosterior
from surefoot.belief.kernels import SE, ConstantKernel, Linear, Matern, RationalQuadratic

KERNELS = [
    SE(0.3, variance=2.0),
    Matern(0.5, 0.5),
    Matern(1.5, [0.3, 0.9]),
    Matern(2.5, 0.4, variance=0.1),
    RationalQuadratic(0.4) + ConstantKernel(0.5),
    SE(0.5).on([0]) * Matern(2.5, 0.5).on([1]) + Linear(0.2),
]


def prior(kernel=None, noise=0.01, mean=0.7):
    return SimpleNamespace(kernel=kernel or SE(0.3), noise=noise, mean=mean)


def data(M=300, n=40, seed=0):
    rng = np.random.default_rng(seed)
    return rng.random((M, 2)), rng.integers(0, M, n), rng.standard_normal(n)


def dense(gp, points, indices, y, noise=None):
    """Mean and full covariance by the formula, one dense solve."""
    X = points[indices]
    K = gp.kernel(X) + np.diag(np.broadcast_to(gp.noise if noise is None else noise, len(y)))
    k = gp.kernel(X, points)
    return gp.mean + k.T @ np.linalg.solve(K, y - gp.mean), gp.kernel(points) - k.T @ np.linalg.solve(K, k)


def appended(gp, points, indices, y, noise=None, **options):
    grid = GridPosterior(gp, points, **options)
    for j, (i, value) in enumerate(zip(indices, y, strict=True)):
        grid.append(i, value, None if noise is None else noise[j])
    return grid


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_appends_agree_with_the_formula(kernel):
    gp, (points, indices, y) = prior(kernel), data()
    mean, C = dense(gp, points, indices, y)
    grid = appended(gp, points, indices, y, capacity=3)  # a small buffer, so that it grows several times
    np.testing.assert_allclose(grid.mean, mean, atol=1e-8)
    np.testing.assert_allclose(grid.var, np.diag(C), atol=1e-8)
    np.testing.assert_allclose(grid.std**2, grid.var)
    assert grid.indices == indices.tolist()
    assert grid.n == 40


def test_each_measurement_may_have_its_own_noise():
    gp, (points, indices, y) = prior(), data()
    noise = np.random.default_rng(1).uniform(1e-4, 1.0, len(y))
    noise[::5] = gp.noise
    mean, C = dense(gp, points, indices, y, noise)
    noise[::5] = np.nan  # unknown: the noise of the prior
    for grid in (
        appended(gp, points, indices, y, noise),
        GridPosterior.condition(gp, points, indices, y, noise),
    ):
        np.testing.assert_allclose(grid.mean, mean, atol=1e-8)
        np.testing.assert_allclose(grid.var, np.diag(C), atol=1e-8)


def test_blocks_of_candidates_meet_without_a_seam():
    rng = np.random.default_rng(0)
    gp, points = prior(), rng.random((BLOCK + 77, 2))
    grid = appended(gp, points, [5, BLOCK + 3], [1.0, -1.0])
    few = np.array([0, 5, BLOCK - 1, BLOCK, BLOCK + 3, BLOCK + 76])
    small = appended(gp, points[few], [1, 4], [1.0, -1.0])
    np.testing.assert_allclose(grid.mean[few], small.mean, atol=1e-12)
    np.testing.assert_allclose(grid.var[few], small.var, atol=1e-12)
    np.testing.assert_allclose(grid.covariance([0, 7])[:, few], grid.covariance(few)[:, [0, 7]].T, atol=1e-12)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_condition_equals_appends(kernel):
    gp, (points, indices, y) = prior(kernel), data(n=150)
    one, many = appended(gp, points, indices, y), GridPosterior.condition(gp, points, indices, y)
    np.testing.assert_allclose(many.mean, one.mean, atol=1e-8)
    np.testing.assert_allclose(many.var, one.var, atol=1e-8)
    assert many.information_gain == pytest.approx(one.information_gain, rel=1e-9)
    for grid in (one, many):  # and goes on alike
        grid.append(7, 3.0)
    np.testing.assert_allclose(many.mean, one.mean, atol=1e-8)


def test_condition_on_nothing_is_the_prior():
    grid = GridPosterior.condition(prior(), np.zeros((3, 1)), [], [])
    np.testing.assert_array_equal(grid.mean, np.full(3, 0.7))
    np.testing.assert_array_equal(grid.var, np.ones(3))
    assert grid.n == 0
    assert grid.information_gain == 0.0


def test_information_gain_is_half_the_log_determinant():
    gp, (points, indices, y) = prior(noise=0.1), data()
    grid = appended(gp, points, indices, y)
    K = gp.kernel(points[indices])
    assert grid.information_gain == pytest.approx(0.5 * np.linalg.slogdet(np.eye(len(y)) + K / 0.1)[1])


def test_covariance_of_one_and_of_several():
    gp, (points, indices, y) = prior(), data()
    _, C = dense(gp, points, indices, y)
    grid = appended(gp, points, indices, y)
    assert grid.covariance(7).shape == (300,)
    np.testing.assert_allclose(grid.covariance(7), C[7], atol=1e-10)
    np.testing.assert_allclose(grid.covariance([7]), C[[7]], atol=1e-10)
    np.testing.assert_allclose(grid.covariance(np.array([7, 0, 7, 299])), C[[7, 0, 7, 299]], atol=1e-10)


@pytest.mark.parametrize("noise", [None, 0.5, [0.1, 0.2, 0.3]])
def test_lookahead_is_what_hallucinating_does(noise):
    gp, (points, indices, y) = prior(), data()
    grid, block = appended(gp, points, indices, y), [3, 200, int(indices[0])]
    ahead = grid.lookahead(block, noise)
    for row, index, variance in zip(
        ahead, block, np.broadcast_to(gp.noise if noise is None else noise, 3), strict=True
    ):
        grid.hallucinate(index, float(variance))
        np.testing.assert_allclose(row, grid.var, atol=1e-12)
        grid.release()


def test_hallucination_keeps_the_mean_and_is_taken_back_bit_for_bit():
    gp, (points, indices, y) = prior(), data()
    grid = appended(gp, points, indices, y)
    mean, var, gain = grid.mean.copy(), grid.var.copy(), grid.information_gain
    grid.hallucinate(11)
    between = grid.var.copy()
    for index in (12, 11, 100):
        grid.hallucinate(index)
    assert grid.hallucinated == 4
    assert grid.indices[-4:] == [11, 12, 11, 100]
    np.testing.assert_array_equal(grid.mean, mean)
    assert (grid.var <= between).all()
    assert grid.var[100] < 0.5 * between[100] or between[100] < 0.02
    grid.release(3)
    np.testing.assert_array_equal(grid.var, between)
    grid.release()
    np.testing.assert_array_equal(grid.var, var)
    np.testing.assert_array_equal(grid.mean, mean)
    assert (grid.n, grid.hallucinated, grid.information_gain) == (40, 0, gain)
    grid.append(11, 0.5)
    expected = appended(gp, points, [*indices, 11], [*y, 0.5])
    np.testing.assert_array_equal(grid.mean, expected.mean)
    np.testing.assert_array_equal(grid.var, expected.var)


def test_real_measurements_wait_for_the_release():
    grid = GridPosterior(prior(), np.zeros((2, 1)))
    grid.hallucinate(0)
    with pytest.raises(ValueError, match="release the 1 "):
        grid.append(0, 1.0)
    with pytest.raises(ValueError, match="cannot release 2 of 1"):
        grid.release(2)


def test_copies_are_independent():
    gp, (points, indices, y) = prior(), data()
    grid = appended(gp, points, indices, y)
    grid.hallucinate(1)
    mean, twin = grid.mean.copy(), grid.copy()
    twin.release()
    twin.append(0, 5.0)
    twin.append(1, 5.0)
    np.testing.assert_array_equal(grid.mean, mean)
    assert (grid.n, twin.n, grid.hallucinated, twin.hallucinated) == (41, 42, 1, 0)
    grid.release()
    grid.append(0, 5.0)
    grid.append(1, 5.0)
    np.testing.assert_array_equal(grid.mean, twin.mean)


def test_joint_draws_have_the_posterior_moments():
    gp, (points, indices, y) = prior(Matern(2.5, 0.4)), data(M=30, n=6)
    mean, C = dense(gp, points, indices, y)
    draws = appended(gp, points, indices, y).sample(40_000, np.random.default_rng(3))
    assert draws.shape == (40_000, 30)
    np.testing.assert_allclose(draws.mean(axis=0), mean, atol=0.03)
    np.testing.assert_allclose(np.cov(draws.T), C, atol=0.03)


def test_too_many_candidates_for_joint_draws():
    grid = GridPosterior(prior(), np.zeros((LARGEST_SAMPLE + 1, 1)))
    with pytest.raises(ValueError, match="sample_paths"):
        grid.sample(1, np.random.default_rng(0))


@pytest.mark.parametrize("noise", [0.0, 1e-12])
def test_duplicates_and_hardly_any_noise(noise):
    points = np.vstack([np.linspace(0, 1, 50), np.linspace(0, 1, 50)]).reshape(-1, 1)  # each candidate twice
    f = np.sin(6 * points[:, 0])
    indices = [0, 50, 10, 10, 60, 25, 75, 49, 40, 40, 40]
    for grid in (
        appended(prior(noise=noise), points, indices, f[indices]),
        GridPosterior.condition(prior(noise=noise), points, indices, f[indices]),
    ):
        assert np.isfinite(grid.mean).all()
        assert (grid.var >= 0).all()
        np.testing.assert_allclose(grid.mean[indices], f[indices], atol=1e-4)
        assert np.isfinite(grid.sample(2, np.random.default_rng(0))).all()
        assert np.isfinite(grid.lookahead(indices)).all()


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 12),
    scale=st.sampled_from([1e-8, 1.0, 1e8]),
    noise=st.sampled_from([1e-6, 1e-2, 10.0]),
)
def test_measuring_never_adds_variance(seed, n, scale, noise):
    rng = np.random.default_rng(seed)
    gp = prior(Matern(1.5, 0.5, variance=scale**2), noise=noise * scale**2, mean=scale)
    grid = GridPosterior(gp, rng.random((20, 3)))
    for _ in range(n):
        before = grid.var.copy()
        grid.append(int(rng.integers(20)), float(scale * rng.standard_normal()))
        assert (grid.var <= before).all()
        assert (grid.var >= 0).all()
    _, C = dense(gp, grid.points, grid.indices, np.zeros(n))
    np.testing.assert_allclose(grid.var, np.diag(C), atol=1e-8 * scale**2)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_torch_agrees_with_numpy(kernel):
    torch = pytest.importorskip("torch")
    gp, (points, indices, y) = prior(kernel), data()
    a, b = appended(gp, points, indices, y), appended(gp, torch.from_numpy(points), indices, y, capacity=5)
    c = GridPosterior.condition(gp, torch.from_numpy(points), torch.from_numpy(indices), torch.from_numpy(y))
    for grid in (a, b, c):
        grid.hallucinate(17)
    for other in (b, c):
        assert isinstance(other.mean, torch.Tensor)
        assert isinstance(other.std, torch.Tensor)
        for left, right in [
            (a.mean, other.mean),
            (a.var, other.var),
            (a.covariance(4), other.covariance(4)),
            (a.covariance([4, 9]), other.covariance(torch.tensor([4, 9]))),
            (a.lookahead([4, 9], [0.1, 0.2]), other.lookahead([4, 9], [0.1, 0.2])),
        ]:
            np.testing.assert_allclose(right.numpy(), left, atol=1e-10)
        other.release()
    a.release()
    np.testing.assert_allclose(b.copy().mean.numpy(), a.mean, atol=1e-10)
    assert b.information_gain == pytest.approx(a.information_gain)


def test_torch_draws_the_same_functions():
    torch = pytest.importorskip("torch")
    gp, (points, indices, y) = prior(Matern(0.5)), data(M=50, n=5)
    a = appended(gp, points, indices, y).sample(3, np.random.default_rng(0))
    b = appended(gp, torch.from_numpy(points), indices, y).sample(3, np.random.default_rng(0))
    np.testing.assert_allclose(b.numpy(), a, atol=1e-8)


@pytest.mark.parametrize(
    ("points", "message"),
    [
        (np.zeros(3), r"\(M, e\)"),
        (np.zeros((0, 2)), r"\(M, e\)"),
        (np.array([[0.0], [np.nan]]), "finite"),
    ],
)
def test_bad_points_are_refused(points, message):
    with pytest.raises(ValueError, match=message):
        GridPosterior(prior(), points)


def test_single_precision_tensors_are_refused():
    torch = pytest.importorskip("torch")
    with pytest.raises(ValueError, match="float64"):
        GridPosterior(prior(), torch.zeros((3, 1)))


def test_bad_measurements_are_refused_and_change_nothing():
    grid = appended(prior(), np.linspace(0, 1, 5)[:, None], [0], [1.0])
    mean, var = grid.mean.copy(), grid.var.copy()
    for arguments, message in [
        ((5, 1.0), "between 0 and 4"),
        ((-1, 1.0), "between 0 and 4"),
        ((0, float("nan")), "finite"),
        ((0, float("inf")), "finite"),
        ((0, 1.0, -1.0), "variance"),
    ]:
        with pytest.raises(ValueError, match=message):
            grid.append(*arguments)
    with pytest.raises(TypeError):
        grid.append(1.5, 1.0)
    for indices in ([0, 9], [], [[0]], [0.5]):
        with pytest.raises(ValueError, match="indices"):
            grid.covariance(indices)
    with pytest.raises(ValueError, match="one per index"):
        GridPosterior.condition(prior(), grid.points, [0, 1], [1.0])
    np.testing.assert_array_equal(grid.mean, mean)
    np.testing.assert_array_equal(grid.var, var)
    assert grid.n == 1
