"""Entropy search and minimum regret search: exact values on tiny problems, and what the theory says about any."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from surefoot import GP, SE, Box, Candidates, EntropySearch, MinimumRegretSearch
from surefoot.policy.entropy.entropy_search import Fantasies, largest_line
from surefoot.policy.search import RandomSearch
from surefoot_lab import Replicate, compare
from surefoot_lab.problems import grid
from surefoot_lab.samples import gp_sample_grid


def fantasies(mean, cov, noise=1e-6, samples=4000, values=9, seed=0):
    """Every representer is also a trial point."""
    mean, cov = np.asarray(mean, dtype=float), np.asarray(cov, dtype=float)
    rng = np.random.default_rng(seed)
    return Fantasies(mean, cov, cov, np.diag(cov), noise, samples=samples, values=values, rng=rng)


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 6), st.integers(0, 10**6))
def test_the_largest_line_by_quadrature(count, seed):
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=count), rng.normal(size=(2, count))
    b[1, :] = b[1, rng.integers(count, size=count)]  # equal slopes
    z = np.linspace(-9, 9, 40001)
    for row, found in zip(b, largest_line(a, b), strict=True):
        density = stats.norm.pdf(z)
        direct = integrate.trapezoid((a[:, None] + row[:, None] * z).max(axis=0) * density, z) - a.max()
        assert np.exp(found) == pytest.approx(direct, abs=2e-6)


def test_the_largest_line_far_out_keeps_its_digits():
    """One line 40 standard deviations below: the gain underflows, its logarithm does not."""
    found = largest_line(np.array([0.0, -40.0]), np.array([[0.0, 1.0]]))
    assert found == pytest.approx(-808.298568, abs=1e-5)
    assert largest_line(np.zeros(3), np.ones((1, 3)))[0] == -np.inf


def test_two_independent_points_share_one_bit():
    """Measuring either of two equal normals leaves Φ(z) to be decided: H falls from log 2 to E H(Φ(Z))."""
    state = fantasies([0.0, 0.0], np.eye(2), samples=20000, values=25)
    p = stats.norm.cdf(state.outcomes)
    after = np.mean(-p * np.log(p) - (1 - p) * np.log(1 - p))
    assert state.entropy() == pytest.approx(np.full(2, np.log(2) - after), abs=0.01)


def test_knowing_the_winner_saves_all_the_regret():
    """With two points that sum to zero, one measurement tells everything: E max − E f(x*) = 0 afterwards."""
    cov = np.array([[1.0, -1.0], [-1.0, 1.0]])
    state = fantasies([0.0, 0.0], cov, samples=8000, values=41)
    assert state.entropy() == pytest.approx(np.log(2) * np.ones(2), abs=0.02)
    assert state.regret() == pytest.approx(np.sqrt(2 / np.pi) * np.ones(2), abs=0.03)
    assert np.exp(state.point_regret()) == pytest.approx(np.sqrt(2 / np.pi) * np.ones(2), rel=1e-5)


def test_draws_given_a_value_have_the_moments_of_the_conditional():
    """The shifted draws are the posterior after a measurement, whatever the measured value."""
    rng = np.random.default_rng(3)
    A = rng.normal(size=(4, 4))
    cov, mean, noise = A @ A.T, rng.normal(size=4), 0.3
    state = fantasies(mean, cov, noise=noise, samples=60000, values=3)
    for x in range(4):
        s = np.sqrt(cov[x, x] + noise)
        for z in state.outcomes:
            shifted = state.paths + (z - state.surprise[x])[:, None] * state.pull[x]
            assert shifted.mean(axis=0) == pytest.approx(mean + cov[x] / s * z, abs=0.05)
            assert np.cov(shifted.T) == pytest.approx(cov - np.outer(cov[x], cov[x]) / s**2, abs=0.12)


def test_point_and_distribution_agree_with_the_monte_carlo_of_the_definition():
    """ER(r) = E[max f − f(r)] before and after a measurement, by brute force."""
    cov, mean, noise = SE(0.3)(np.linspace(0, 1, 5)[:, None]), np.array([0.1, 0.0, 0.3, -0.2, 0.0]), 0.05
    state = fantasies(mean, cov, noise=noise, samples=20000, values=15)
    rng = np.random.default_rng(8)
    L = np.linalg.cholesky(cov + 1e-9 * np.eye(5))
    for x in (0, 2):
        s2 = cov[x, x] + noise
        inner = np.linalg.cholesky(cov - np.outer(cov[x], cov[x]) / s2 + 1e-9 * np.eye(5))
        point, spread = [], []
        for y in rng.normal(size=300):
            f = mean + cov[x] / np.sqrt(s2) * y + rng.normal(size=(1000, 5)) @ inner.T
            regret = f.max(axis=1).mean() - f.mean(axis=0)
            point.append(regret.min())
            spread.append(np.bincount(f.argmax(axis=1), minlength=5) / 1000 @ regret)
        f = mean + rng.normal(size=(200000, 5)) @ L.T
        regret = f.max(axis=1).mean() - f.mean(axis=0)
        p = np.bincount(f.argmax(axis=1), minlength=5) / len(f)
        assert np.exp(state.point_regret()[x]) == pytest.approx(regret.min() - np.mean(point), abs=0.04)
        assert state.regret()[x] == pytest.approx(p @ regret - np.mean(spread), abs=0.04)


def test_more_noise_never_tells_more():
    cov = SE(0.3)(np.linspace(0, 1, 8)[:, None])
    exact, noisy = (fantasies(np.zeros(8), cov, noise=n, samples=6000) for n in (1e-6, 4.0))
    assert (exact.entropy() > noisy.entropy() - 0.01).all()
    assert (exact.point_regret() > noisy.point_regret()).all()


@pytest.mark.parametrize("policy", [EntropySearch, MinimumRegretSearch])
def test_both_beat_random_search(policy):
    points, kernel = grid([(0.0, 1.0)] * 2, 12), SE(0.25)
    ends = {"search": [], "random": []}
    for r in range(6):
        replicate = Replicate(r)
        problem = gp_sample_grid(kernel, points, replicate.rng("function"), noise=1e-4)
        makers = {
            "search": lambda d, s: policy(d, gp=GP(kernel, noise=1e-4), samples=128, seed=s),
            "random": lambda d, s: RandomSearch(d, seed=s),
        }
        for name, trace in compare(makers, problem, 14, replicate).items():
            ends[name].append(trace["simple_regret"][-1])
    assert np.mean(ends["search"]) < 0.5 * np.mean(ends["random"])


def test_the_point_version_on_a_box_finds_the_top():
    policy = MinimumRegretSearch(Box([(0.0, 1.0), (0.0, 1.0)]), version="point", seed=1)
    for _ in range(14):
        query = policy.ask()
        policy.tell(query, -np.sum((query.x - [0.3, 0.7]) ** 2))
    assert np.abs(policy.recommend().x - [0.3, 0.7]).max() < 0.05


@pytest.mark.parametrize(
    "options", [{"representers": 1}, {"trials": 0}, {"samples": 1.5}, {"values": 0}, {"version": "both"}]
)
def test_bad_options_are_named(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        MinimumRegretSearch(Candidates([0.0, 1.0]), **options)
