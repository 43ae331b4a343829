"""What the theory of drifting functions says, as properties."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from surefoot import GP, SE, TVGPUCB, Candidates, Matern, widths
from surefoot.belief.drift import DriftingGrid, simulate_drift
from surefoot_lab.baselines.drift import genie

rates = st.floats(0.0, 1.0)
seeds = st.integers(0, 2**31)


def run(gp, points, rate, steps, seed, *, unit=True):
    """Random measurements of a drifting belief: the grid, and variance and row of each measurement before it."""
    rng = np.random.default_rng(seed)
    grid, variances, rows = DriftingGrid(gp, points, rate), [], []
    for t in range(steps):
        grid.advance(float(t) if unit else (grid.time or 0.0) + rng.exponential())
        rows.append(int(rng.integers(len(points))))
        variances.append(grid.var[rows[-1]])
        grid.append(rows[-1], 3.0 * rng.standard_normal())
    return grid, np.array(variances), np.array(rows)


@given(rates, seeds)
@settings(max_examples=30, deadline=None)
def test_variance_lies_between_its_floor_and_the_prior(rate, seed):
    """ε k(x, x) ≤ σ̃²(x) ≤ k(x, x) one unit after any measurements."""
    gp = GP(Matern(2.5, 0.3, variance=2.0), noise=1e-4)
    grid, _, _ = run(gp, np.random.default_rng(seed).random((8, 2)), rate, 40, seed)
    grid.advance(40.0)
    assert (grid.var >= rate * 2.0 - 1e-12).all()
    assert (grid.var <= 2.0 + 1e-12).all()


@given(st.floats(1e-3, 1.0), st.floats(1e-3, 1.0))
@settings(max_examples=40, deadline=None)
def test_one_point_has_a_closed_form(rate, noise):
    grid = DriftingGrid(GP(SE(), noise=noise), [[0.0]], rate)
    for t in range(4000):
        before = grid.var[0]
        grid.append(0, 0.0, time=float(t))
        grid.advance(t + 1.0)
        if abs(grid.var[0] - before) < 1e-14:
            break
    p = 0.5 * (rate * (1 - noise) + math.sqrt(rate**2 * (1 - noise) ** 2 + 4 * rate * noise))
    assert grid.var[0] == pytest.approx(p, rel=1e-6)


@given(rates, seeds, st.floats(0.01, 1.0))
@settings(max_examples=30, deadline=None)
def test_chain_rule_and_sum_of_variances(rate, seed, noise):
    """(5.22), and Σ 4 β_t σ̃²_{t−1}(x_t) ≤ C₁ β_T · gain for non-decreasing widths."""
    points, T = np.random.default_rng(seed).random((10, 1)), 30
    gp = GP(SE(0.2), noise=noise)
    grid, variances, rows = run(gp, points, rate, T, seed)
    age = np.abs(np.subtract.outer(np.arange(T), np.arange(T)))
    K = gp.kernel(points)[np.ix_(rows, rows)] * np.where(age == 0, 1.0, (1.0 - rate) ** (age / 2))
    gain = 0.5 * np.linalg.slogdet(np.eye(T) + K / noise)[1]
    assert grid.information_gain == pytest.approx(gain, rel=1e-8)
    beta = np.array([widths.Finite(0.9)(t, size=10) ** 2 for t in range(1, T + 1)])
    constant = 8 / math.log1p(1 / noise)
    assert (4 * beta * variances).sum() <= constant * beta[-1] * gain * (1 + 1e-9)


@given(st.floats(0.0, 1.0), seeds, st.integers(2, 25))
@settings(max_examples=60, deadline=None)
def test_frobenius_bound(rate, seed, N):
    """‖K̃ − K‖_F ≤ N² ε for entries of K in [0, 1]; the sum in its proof is N²(N² − 1)/6."""
    X = np.random.default_rng(seed).random((N, 2))
    K, age = SE(0.4)(X), np.abs(np.subtract.outer(np.arange(N), np.arange(N)))
    kept = np.where(age == 0, 1.0, np.power(1.0 - rate, age / 2))
    assert np.linalg.norm(K * kept - K) <= N**2 * rate + 1e-12
    assert (age**2).sum() == N**2 * (N**2 - 1) // 6


@given(st.floats(0.0, 0.2), seeds, st.integers(2, 12), st.floats(1e-3, 0.4))
@settings(max_examples=60, deadline=None)
def test_gain_of_a_block_grows_by_at_most_the_corrected_allowance(rate, seed, N, noise):
    """γ̃_N ≤ γ_N + N³ε/(2σ²), design by design."""
    X = np.random.default_rng(seed).random((N, 1))
    K, age = SE(0.4)(X), np.abs(np.subtract.outer(np.arange(N), np.arange(N)))
    gains = [0.5 * np.linalg.slogdet(np.eye(N) + A / noise)[1] for A in (K, K * (1.0 - rate) ** (age / 2))]
    assert gains[1] <= gains[0] + N**3 * rate / (2 * noise) + 1e-9


def test_the_printed_allowance_is_too_small():
    """One repeated point, N = 2, σ² = ε = 10⁻³: the gain grows by 0.20, the printed N³ε allows 0.008."""
    K, noise, rate = np.ones((2, 2)), 1e-3, 1e-3
    drifted = K * np.array([[1.0, math.sqrt(1 - rate)], [math.sqrt(1 - rate), 1.0]])
    gains = [0.5 * np.linalg.slogdet(np.eye(2) + A / noise)[1] for A in (K, drifted)]
    assert gains[1] - gains[0] == pytest.approx(0.20, abs=0.01)
    assert gains[1] - gains[0] > 2**3 * rate
    assert gains[1] - gains[0] < 2**3 * rate / (2 * noise)


def test_simulated_drift_has_the_covariance_of_the_model():
    rng, rate = np.random.default_rng(0), 0.19
    K = SE(0.5)(np.array([[0.0], [0.4]]))
    factor = np.linalg.cholesky(K)
    draws = np.stack([simulate_drift(factor, 6, rate, rng) for _ in range(20000)])
    for lag in (0, 1, 4):
        found = np.einsum("ri,rj->ij", draws[:, 1], draws[:, 1 + lag]) / len(draws)
        np.testing.assert_allclose(found, (1 - rate) ** (lag / 2) * K, atol=0.03)
    np.testing.assert_allclose(draws.var(axis=0), 1.0, atol=0.04)


def test_calibration_with_the_true_rate():
    """|f_t − μ̃_{t−1}| ≤ z σ̃_{t−1} as often as the normal law says."""
    axis, gp, rate = np.linspace(0, 1, 20)[:, None], GP(SE(0.2), noise=0.05), 0.05
    factor, rng, inside = np.linalg.cholesky(gp.kernel(axis) + 1e-9 * np.eye(20)), np.random.default_rng(1), []
    for _ in range(60):
        values, grid = simulate_drift(factor, 40, rate, rng), DriftingGrid(gp, axis, rate)
        for t in range(40):
            grid.advance(float(t))
            inside.append(np.abs(values[t] - grid.mean) / grid.std)
            i = int(rng.integers(20))
            grid.append(i, values[t, i] + math.sqrt(0.05) * rng.standard_normal())
    for z in (0.7, 1.0, 1.96):
        assert np.mean(np.array(inside) <= z) == pytest.approx(2 * norm.cdf(z) - 1, abs=0.02)


def test_the_genie_is_a_floor():
    """Theorem 5.3.1: no policy has less mean regret than one who knows the previous function."""
    axis, gp, rate = np.linspace(0, 1, 25)[:, None], GP(SE(0.2), noise=0.01), 0.05
    factor, rng, regrets = np.linalg.cholesky(gp.kernel(axis) + 1e-9 * np.eye(25)), np.random.default_rng(2), []
    for seed in range(6):
        values = simulate_drift(factor, 60, rate, rng)
        policy = TVGPUCB(Candidates(axis), forgetting=rate, gp=gp, width=widths.LogTime(), seed=seed)
        chosen = []
        for t in range(60):
            query = policy.ask()
            chosen.append(query.index)
            policy.tell(query, values[t, query.index] + 0.1 * rng.standard_normal())
        pairs = [values.max(axis=1) - values[np.arange(60), rows] for rows in (genie(values), chosen)]
        regrets.append([pair[1:].mean() for pair in pairs])
    floor, regret = np.mean(regrets, axis=0)
    assert 0.0 < floor < 0.5 * regret


def test_the_regret_bound_holds():
    """R_T ≤ √(C₁ T β_T · gain) with the information really gained, in at least 1 − δ of the runs."""
    axis, gp, rate = np.linspace(0, 1, 15)[:, None], GP(SE(0.2), noise=0.05), 0.05
    factor, rng, held = np.linalg.cholesky(gp.kernel(axis) + 1e-9 * np.eye(15)), np.random.default_rng(3), []
    for seed in range(15):
        values = simulate_drift(factor, 40, rate, rng)
        policy = TVGPUCB(Candidates(axis), forgetting=rate, gp=gp, width=widths.Finite(0.9), seed=seed)
        total = 0.0
        for t in range(40):
            query = policy.ask()
            total += values[t].max() - values[t, query.index]
            policy.tell(query, values[t, query.index] + math.sqrt(0.05) * rng.standard_normal())
        beta = widths.Finite(0.9)(40, size=15) ** 2
        held.append(total <= math.sqrt(8 / math.log1p(20) * 40 * beta * policy.surrogate.believe().information_gain))
    assert np.mean(held) >= 0.9
