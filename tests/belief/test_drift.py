"""The belief in a drifting function: three forms of one posterior, bounded memory, learning the rate."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from surefoot.belief import GP, SE, GridPosterior, Matern
from surefoot.belief.drift import DriftingGrid, DriftingPosterior, drifted, simulate_drift
from surefoot.belief.forgetting import Forgetting, Panel, drifting, estimate_forgetting, separate

GPS = [GP(SE(0.3), noise=0.01), GP(Matern(2.5, 0.4, variance=4.0), noise=0.1, mean=1.5)]
POINTS = np.random.default_rng(3).random((12, 2))


def panel(count, seed=0, *, gaps=True):
    """Measurements of random candidates at increasing times."""
    rng = np.random.default_rng(seed)
    times = np.cumsum(rng.choice([0.0, 0.4, 1.0, 3.5], count) if gaps else np.ones(count))
    return times, rng.integers(len(POINTS), size=count), rng.standard_normal(count)


def direct(gp, rate, times, rows, y, at):
    """Mean and variance at all candidates by the printed formulas (5.3) and (5.4)."""
    K, noise = gp.kernel(POINTS), gp.noise
    age = np.abs(np.subtract.outer(times, times))
    D = np.where(age == 0, 1.0, np.power(1.0 - rate, age / 2))
    d = np.where(at == times, 1.0, np.power(1.0 - rate, (at - times) / 2))
    A = K[np.ix_(rows, rows)] * D + noise * np.eye(len(y))
    k = K[:, rows] * d
    mean = gp.mean + k @ np.linalg.solve(A, y - gp.mean)
    var = np.diag(K) - np.einsum("ij,ji->i", k, np.linalg.solve(A, k.T))
    return mean, var, multivariate_normal(np.full(len(y), gp.mean), A).logpdf(y)


@pytest.mark.parametrize("gp", GPS)
@pytest.mark.parametrize("rate", [0.0, 0.001, 0.03, 0.5, 1.0])
@pytest.mark.parametrize("dense", [False, True])
def test_kalman_cholesky_and_direct_agree(gp, rate, dense):
    times, rows, y = panel(200)
    grid = DriftingGrid(gp, POINTS, rate, dense=dense)
    for t, i, value in zip(times, rows, y, strict=True):
        grid.append(i, value, time=t)
    assert (grid._Q is not None) == dense  # the two forms were really used
    post = DriftingPosterior(drifting(gp, rate, 2), np.column_stack([POINTS[rows], times]), y)
    for later in (0.0, 1.0, 7.3):
        grid.advance(times[-1] + later)
        post.time = grid.time
        mean, var, density = direct(gp, rate, times, rows, y, grid.time)
        np.testing.assert_allclose(grid.mean, mean, atol=1e-10)
        np.testing.assert_allclose(grid.var, var, atol=1e-10)
        np.testing.assert_allclose(post.mean(POINTS), mean, atol=1e-10)
        np.testing.assert_allclose(post.var(POINTS), var, atol=1e-10)
    assert grid.log_likelihood == pytest.approx(density, abs=1e-8)
    assert drifting(gp, rate, 2).log_likelihood(post.X, y) == pytest.approx(density, abs=1e-6)


def test_covariance_is_that_of_the_direct_form():
    times, rows, y = panel(150)
    grid = DriftingGrid(GPS[0], POINTS, 0.05)
    for t, i, value in zip(times, rows, y, strict=True):
        grid.append(i, value, time=t)
    grid.advance(times[-1] + 2.0)
    post = DriftingPosterior(drifting(GPS[0], 0.05, 2), np.column_stack([POINTS[rows], times]), y, time=grid.time)
    np.testing.assert_allclose(grid.covariance(4), post.cov(POINTS)[4], atol=1e-10)


def test_without_forgetting_it_is_the_static_posterior():
    _, rows, y = panel(11)
    grid, static = DriftingGrid(GPS[1], POINTS, 0.0), GridPosterior(GPS[1], POINTS)
    for t, (i, value) in enumerate(zip(rows, y, strict=True)):
        grid.append(i, value, time=float(t))
        static.append(i, value)
    np.testing.assert_allclose(grid.mean, static.mean, atol=1e-13)
    np.testing.assert_allclose(grid.var, static.var, atol=1e-13)
    assert grid.information_gain == pytest.approx(static.information_gain)


def test_forgetting_one_forgets_everything():
    grid = DriftingGrid(GPS[1], POINTS, 1.0)
    for t in range(100):
        grid.append(t % 12, 5.0, time=float(t))
    assert grid.mean.max() > 4.0  # at the very moment of a measurement it is known
    grid.advance(100.0)
    np.testing.assert_array_equal(grid.mean, np.full(12, 1.5))
    np.testing.assert_array_equal(grid.var, np.full(12, 4.0))


@pytest.mark.parametrize("dense", [False, True])
def test_memory_is_bounded(dense):
    gp, rng = GP(SE(0.2), noise=0.1), np.random.default_rng(0)
    grid, sizes = DriftingGrid(gp, rng.random((40, 1)), 0.1, dense=dense), []
    for t in range(4000):
        grid.append(int(rng.integers(40)), float(rng.standard_normal()), time=float(t))
        if t % 1000 == 999:
            sizes.append(grid.nbytes)
    assert len(set(sizes[1:])) == 1
    assert sizes[-1] < 600_000  # 4000 rows of 40 candidates would be 1.3 MB


def test_dropped_rows_were_negligible():
    rng = np.random.default_rng(0)
    kept, dropping = DriftingGrid(GPS[0], POINTS, 0.2, dense=True), DriftingGrid(GPS[0], POINTS, 0.2, dense=False)
    for t in range(1000):
        i, value = int(rng.integers(12)), float(rng.standard_normal())
        for grid in (kept, dropping):
            grid.append(i, value, time=float(t))
    assert dropping._rows < 400
    np.testing.assert_allclose(dropping.mean, kept.mean, atol=1e-12)
    np.testing.assert_allclose(dropping.var, kept.var, atol=1e-12)


def test_provisional_work_leaves_no_trace():
    times, rows, y = panel(130)
    one, two = (DriftingGrid(GPS[0], POINTS, 0.05) for _ in range(2))
    for n, (t, i, value) in enumerate(zip(times, rows, y, strict=True)):
        if n % 7 == 0:
            with one.provisional():
                for _ in range(80):  # more than there is room for
                    one.hallucinate(3)
                one.advance(t + 9.0)
                one.provisionally(5, 2.0)
        for grid in (one, two):
            grid.append(i, value, time=t)
    assert one.mean.tobytes() == two.mean.tobytes()
    assert one.var.tobytes() == two.var.tobytes()
    assert one.log_likelihood == two.log_likelihood


def test_a_grid_is_a_belief_like_any_other():
    """Asked as rules ask, it agrees with the direct form; hallucinations are taken back one by one."""
    times, rows, y = panel(20)
    grid = DriftingGrid(GPS[0], POINTS, 0.05)
    for t, i, value in zip(times, rows, y, strict=True):
        grid.append(i, value, time=t)
    grid.advance(times[-1] + 2.0)
    X = np.column_stack([POINTS[rows], times])
    direct = DriftingPosterior(drifting(GPS[0], 0.05, POINTS.shape[1]), X, y, time=times[-1] + 2.0)
    some = [1, 4, 4, 7]
    for found, known in zip(grid.predict(some), direct.predict(POINTS[some]), strict=True):
        np.testing.assert_allclose(found, known, atol=1e-8)
    np.testing.assert_allclose(grid.covariance(some, [0, 2]), direct.cov(POINTS[some], POINTS[[0, 2]]), atol=1e-8)
    assert grid.prior_variance(POINTS) == pytest.approx(direct.prior_variance(POINTS))
    draws = grid.draw([1, 4], 4000, np.random.default_rng(0))
    np.testing.assert_allclose(np.cov(draws.T), grid.covariance([1, 4], [1, 4]), atol=0.1 * grid.var.max())
    twin, before = grid.copy(), grid.var.copy()
    grid.hallucinate(1)
    between = grid.var.copy()
    grid.hallucinate(4)
    direct.hallucinate(POINTS[1])
    direct.hallucinate(POINTS[4])
    np.testing.assert_allclose(grid.predict(some)[1], direct.predict(POINTS[some])[1], atol=1e-8)
    with pytest.raises(ValueError, match="undo the 2"):
        grid.append(0, 1.0)
    grid.undo()
    assert grid.var.tobytes() == between.tobytes()
    grid.undo()
    assert grid.var.tobytes() == before.tobytes() == twin.var.tobytes()
    with pytest.raises(ValueError, match="cannot undo 1 of 0"):
        grid.undo()


def test_bad_input_says_so_and_changes_nothing():
    grid = DriftingGrid(GPS[0], POINTS, 0.1)
    grid.append(0, 1.0, time=5.0)
    before = grid.mean.tobytes(), grid.var.tobytes(), grid.time, grid.n
    for call, words in [
        (lambda: grid.append(0, 1.0, time=4.0), "backwards"),
        (lambda: grid.advance(np.nan), "finite"),
        (lambda: grid.append(12, 1.0), "between 0 and 11"),
        (lambda: grid.append(0, np.inf, time=6.0), "finite"),
        (lambda: grid.append(0, 1.0, -1.0, time=6.0), "variance"),
    ]:
        with pytest.raises(ValueError, match=words):
            call()
    assert before == (grid.mean.tobytes(), grid.var.tobytes(), grid.time, grid.n)
    for rate, kind in ((-0.1, ValueError), (1.1, ValueError), (np.nan, ValueError), ("fast", TypeError)):
        with pytest.raises(kind, match="forgetting"):
            DriftingGrid(GPS[0], POINTS, rate)
    with pytest.raises(ValueError, match="not a product"):
        separate(GPS[0])


def test_gradients_of_the_posterior():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.random((9, 2)), np.sort(10 * rng.random(9))])
    post = DriftingPosterior(drifting(GPS[1], 0.1, 2), X, rng.standard_normal(9), time=11.0)
    Z, h = rng.random((4, 2)), 1e-6
    _, _, dmean, dstd = post.gradient(Z)
    for j, step in enumerate(h * np.eye(2)):
        (mean, std), (mean_, std_) = post.predict(Z + step), post.predict(Z - step)
        np.testing.assert_allclose(dmean[:, j], (mean - mean_) / (2 * h), atol=1e-6)
        np.testing.assert_allclose(dstd[:, j], (std - std_) / (2 * h), atol=1e-6)
    assert post.sample(Z, 3, rng).shape == (3, 4)
    np.testing.assert_allclose(post.mean(np.column_stack([Z, np.full(4, 11.0)])), post.mean(Z))


def test_the_likelihoods_slope_in_the_decay():
    times, rows, y = panel(25)
    X = np.column_stack([POINTS[rows], times])
    gp = drifting(GPS[0], 0.07, 2)
    _, slope = gp.log_likelihood(X, y, gradient=True)
    for i, step in enumerate(1e-6 * np.eye(len(gp.theta))):
        up, down = (gp.with_theta(gp.theta + s).log_likelihood(X, y) for s in (step, -step))
        assert slope[i] == pytest.approx((up - down) / 2e-6, rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("rate", [0.0, 0.02, 0.6, 1.0])
def test_the_three_likelihoods_of_a_panel_agree(rate):
    rng, gp = np.random.default_rng(1), GP(Matern(1.5, 0.5), noise=0.05)
    points, times = rng.random((5, 2)), np.cumsum(rng.uniform(0.5, 2.0, 12))
    values = rng.standard_normal((12, 5))
    eigen = Panel(values, gp.kernel(points), gp.noise, times=times).log_likelihood(rate)
    grid = DriftingGrid(gp, points, rate)
    for t, row in zip(times, values, strict=True):
        for i, value in enumerate(row):
            grid.append(i, value, time=t)
    X = np.array([[*points[i], t] for t, i in itertools.product(times, range(5))])
    assert grid.log_likelihood == pytest.approx(eigen, abs=1e-8)
    assert drifting(gp, rate, 2).log_likelihood(X, values.ravel()) == pytest.approx(eigen, abs=1e-6)


@pytest.mark.parametrize("rate", [0.001, 0.01, 0.03, 0.1])
def test_maximum_likelihood_finds_the_rate(rate):
    rng = np.random.default_rng(5)
    K = SE(0.3)(np.linspace(0, 1, 15)[:, None])
    factor = np.linalg.cholesky(K + 1e-9 * np.eye(15))
    covered = 0
    for _ in range(8):
        values = simulate_drift(factor, 80, rate, rng)
        found = estimate_forgetting(
            Panel(values + 0.1 * rng.standard_normal(values.shape), K, noise=0.01).log_likelihood
        )
        assert found.lower <= found.forgetting <= found.upper
        covered += found.covers(rate)
    assert covered >= 6
    assert found.upper / found.lower < 3.0


def test_estimates_at_the_ends():
    K, rng = np.eye(6), np.random.default_rng(0)
    still = estimate_forgetting(Panel(np.tile(rng.standard_normal(6), (30, 1)), K, 0.01).log_likelihood)
    assert (still.forgetting, still.lower) == (0.0, 0.0)
    assert still.upper < 1e-3
    new = estimate_forgetting(Panel(rng.standard_normal((60, 6)), K, 0.01).log_likelihood)
    assert new.upper == 1.0
    assert new.lower > 0.5


def test_independent_days_add_up():
    rng, K = np.random.default_rng(2), np.eye(4)
    days = [Panel(simulate_drift(K, 40, 0.05, rng) + 0.1 * rng.standard_normal((40, 4)), K, 0.01) for _ in range(6)]
    one = estimate_forgetting(days[0].log_likelihood)
    all_ = estimate_forgetting(lambda e: sum(day.log_likelihood(e) for day in days))
    assert all_.covers(0.05)
    assert all_.upper - all_.lower < 0.6 * (one.upper - one.lower)


def test_everything_can_be_learned_at_once():
    """A fit over points and times finds the length-scale, the noise and the rate together."""
    rng = np.random.default_rng(0)
    axis = np.linspace(0, 1, 30)[:, None]
    values = simulate_drift(np.linalg.cholesky(SE(0.15)(axis) + 1e-9 * np.eye(30)), 60, 0.1, rng)
    rows, steps = rng.integers(30, size=240), np.repeat(np.arange(60), 4)
    X = np.column_stack([axis[rows], steps])
    y = values[steps, rows] + 0.1 * rng.standard_normal(240)
    fitted, rate = separate(drifting(GP(SE(0.5), noise=0.1), 0.5, 1).fit(X, y))
    assert 0.05 < rate < 0.2
    assert 0.1 < fitted.kernel.lengthscale < 0.22
    assert 0.003 < fitted.noise < 0.03


def test_kernel_of_time():
    k = Forgetting(0.3)
    assert Forgetting.from_dict({"forgetting": 0.3}) == k
    assert k.with_theta(k.theta).forgetting == pytest.approx(0.3, abs=1e-15)
    assert drifted(np.ones((3, 1)), 0.0).tolist() == [[1.0], [1.0], [1.0]]
    with pytest.raises(ValueError, match="time only"):
        k(np.zeros((2, 2)))
    with pytest.raises(ValueError, match="no variance"):
        k.scaled(2.0)


def test_kernel_of_time_on_torch():
    torch = pytest.importorskip("torch")
    t = np.array([[0.0], [1.0], [4.5]])
    for rate in (0.0, 0.2, 1.0):
        k = Forgetting(rate)
        np.testing.assert_allclose(k(torch.asarray(t)).numpy(), k(t))
        np.testing.assert_allclose(k.diag(torch.asarray(t)).numpy(), 1.0)


def test_bad_panels():
    for values, K, noise in (
        ([1.0], [[1.0]], 0.1),
        ([[1.0, 2.0]], [[1.0]], 0.1),
        ([[np.nan]], [[1.0]], 0.1),
        ([[1.0]], [[1.0]], 0.0),
    ):
        with pytest.raises(ValueError):
            Panel(values, K, noise)
    with pytest.raises(ValueError, match="times"):
        Panel([[1.0]], [[1.0]], 0.1, times=[1.0, 2.0])
