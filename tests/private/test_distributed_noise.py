"""Noise in shares: two accountants agree, an attack stays below the claim, and too little of it is found."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from surefoot.private import GaussianEvent, ResearchNoise, SystemNoise, epsilon
from surefoot.private.audit import audit
from surefoot.private.cases import AUDITS
from surefoot.private.discrete import NoiseShares, _convolved, discrete_gaussian

SETTINGS = [(0.5, 1e-3), (1.0, 1e-3), (3.0, 1e-2)]


def masses(scale, k):
    far = np.arange(-2000, 2001)
    return np.exp(-0.5 * (k / scale) ** 2) / np.exp(-0.5 * (far / scale) ** 2).sum()


@pytest.mark.parametrize("noise", [SystemNoise(), ResearchNoise(0)], ids=["system", "research"])
@pytest.mark.parametrize("scale", [0.5, 3.0, 40.0])
def test_draws_have_the_distribution(scale, noise):
    drawn = discrete_gaussian(4000, scale, noise)
    edge = max(1, round(2.5 * scale))
    inner = np.arange(-edge, edge + 1)
    wanted = masses(scale, inner)
    wanted = np.concatenate([[0.5 * (1.0 - wanted.sum())], wanted, [0.5 * (1.0 - wanted.sum())]])
    seen = np.bincount(np.clip(drawn, -edge - 1, edge + 1) + edge + 1, minlength=2 * edge + 3)
    kept = wanted * 4000 > 2.0
    assert stats.chisquare(seen[kept], wanted[kept] / wanted[kept].sum() * seen[kept].sum()).pvalue > 1e-5


def test_wide_noise_and_none():
    drawn = discrete_gaussian(5000, 1e6, ResearchNoise(1))
    assert stats.kstest(drawn / 1e6, stats.norm.cdf).pvalue > 1e-3
    for wrong in ({"scale": 0.0}, {"scale": math.nan}):
        with pytest.raises(ValueError, match="scale"):
            NoiseShares(**{"scale": 1.0, "honest": 2, **wrong})
    with pytest.raises(ValueError, match="honest"):
        NoiseShares(1.0, 0)


@pytest.mark.parametrize("honest", [1, 2, 5, 40])
def test_the_sum_of_shares_is_what_the_accountant_convolves(honest):
    shares = NoiseShares(scale=9.0, honest=honest)
    p = _convolved(shares.each, honest)
    k = np.arange(p.size) - p.size // 2
    assert p.sum() == pytest.approx(1.0, abs=1e-12)
    assert math.sqrt((p * k**2).sum()) == pytest.approx(9.0, rel=1e-6)
    rng = ResearchNoise(2)
    total = sum(shares.draw(3000, rng) for _ in range(honest))
    grid = np.concatenate([[0.0], np.cumsum(p)])
    ranks = (
        grid[np.clip(total + p.size // 2, 0, p.size - 1)]
        + np.random.default_rng(0).random(3000) * p[np.clip(total + p.size // 2, 0, p.size - 1)]
    )
    assert stats.kstest(ranks, stats.uniform.cdf).pvalue > 1e-3


@pytest.mark.parametrize("sensitivity", [5, 25, 100])
@pytest.mark.parametrize("honest", [1, 4, 30])
def test_two_accountants_agree(honest, sensitivity):
    """Rényi divergences are above the exact distribution by their conversion, a tenth or so; dp-accounting's discrete
    Gaussian, and the continuous one, are where the exact distribution is."""
    shares = NoiseShares(scale=60.0, honest=honest)
    stated, exact = shares.epsilon(1e-5, sensitivity), shares.exact(1e-5, sensitivity)
    assert exact < stated < 1.25 * exact
    assert exact == pytest.approx(epsilon(GaussianEvent(60.0 / sensitivity), 1e-5), rel=5e-3)
    pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    peer = pld.from_discrete_gaussian_mechanism(60.0, sensitivity=sensitivity).get_epsilon_for_delta(1e-5)
    assert exact == pytest.approx(peer, rel=5e-3)


def test_coarse_shares_cost_more_and_the_bound_knows():
    fine, coarse = NoiseShares(scale=8.0, honest=4), NoiseShares(scale=8.0, honest=100)  # shares of 4 and of 0.8
    assert fine.distance() < 1e-12 < coarse.distance()
    assert coarse.concentrated(4.0, 100) > 1.3 * fine.concentrated(4.0, 100)
    for shares in (fine, coarse, NoiseShares(scale=2.0, honest=6)):
        assert shares.exact(1e-4, 3) <= shares.epsilon(1e-4, 3.0)


# ---------------------------------------------------------------------------------------------------------------- audit


@pytest.mark.parametrize("setting", SETTINGS)
def test_distributed_noise_survives_its_audit_and_too_little_does_not(setting):
    """With 100,000 trials, at three settings: all honest; half of the noise missing, beyond what was planned for."""
    claim, slack = setting
    case = AUDITS["distributed-noise"](claim, slack)
    found = audit(case.release, case.one, case.two, delta=slack, claim=claim, trials=100_000, score=case.score)
    assert not found.refuted
    assert found.bound.epsilon > 0.4 * claim
    loud = audit(
        lambda data, noise, trials: case.release((data[0], 2), noise, trials),
        case.one, case.two, delta=slack, claim=claim, trials=100_000, score=case.score,
    )  # fmt: skip
    assert loud.refuted


def test_masks_are_no_noise():
    """Secure sums without noise protect nobody from who reads the sum."""
    found = audit(lambda data, noise, trials: np.full(trials, float(data)), 0, 5, delta=1e-3, claim=3.0, trials=2000)
    assert found.refuted
