"""One set of hyper-parameters for several functions."""

import math

import numpy as np
import pytest

from surefoot.belief import GP, SE, LogNormal
from surefoot.belief.joint import fit_jointly
from surefoot.belief.posterior import factorize
from surefoot.domain import Box


def draws(count, n, lengthscale=0.2, noise=0.01, seed=0):
    rng, found = np.random.default_rng(seed), []
    for _ in range(count):
        X = rng.random((n, 1))
        L, _ = factorize(SE(lengthscale)(X), np.full(n, noise))
        found.append((X, 3.0 + L @ rng.standard_normal(n), None))
    return found


def test_the_fit_maximizes_the_summed_likelihood():
    """No neighbor of the fit explains all functions together better; each alone would prefer another."""
    data = draws(4, 15)
    gp = fit_jointly(GP(SE(1.0), noise=0.1), data, np.random.default_rng(0))

    def total(candidate):
        return sum(candidate.log_likelihood(X, y) for X, y, _ in data)

    best = total(gp)
    for i in range(3):
        for step in (-0.3, 0.3):
            theta = gp.theta.copy()
            theta[i] += step
            assert total(gp.with_theta(theta)) < best + 0.02
    assert gp.mean == pytest.approx(np.concatenate([y for _, y, _ in data]).mean())


def test_many_short_functions_reveal_what_one_cannot():
    found = [fit_jointly(GP(SE(1.0), noise=0.1), draws(12, 10, seed=s), np.random.default_rng(0)) for s in range(5)]
    lengths = np.array([float(gp.kernel.lengthscale) for gp in found])
    assert np.abs(np.log(lengths / 0.2)).max() < math.log(1.6)


def test_priors_count_once():
    """With one function the joint fit is the density that GP.fit climbs, the mean being the average of the values."""
    data = draws(1, 12)
    prior = GP(SE(1.0), noise=0.1, priors={"lengthscale": LogNormal.around(0.3, 0.1)})
    many = [fit_jointly(prior, data * m, np.random.default_rng(0)).kernel.lengthscale for m in (1, 30)]
    free = fit_jointly(GP(SE(1.0), noise=0.1), data, np.random.default_rng(0)).kernel.lengthscale
    # A hundred copies of the data outvote a prior that is counted once.
    assert abs(many[1] - free) < abs(many[0] - free)


def test_standardized_by_all_values_together():
    data = draws(3, 12)
    base = fit_jointly(GP.automatic(Box([(0.0, 1.0)])), data, np.random.default_rng(0))
    far = [(X, 1e6 + 1e4 * y, None) for X, y, _ in data]
    moved = fit_jointly(GP.automatic(Box([(0.0, 1.0)])), far, np.random.default_rng(0))
    assert np.allclose(moved.kernel.lengthscale, base.kernel.lengthscale, rtol=1e-4)
    assert moved.kernel.variance == pytest.approx(1e8 * base.kernel.variance, rel=1e-3)
    assert moved.mean == pytest.approx(1e6 + 1e4 * base.mean)


def test_nothing_to_fit():
    gp = GP(SE(0.3), noise=0.1)
    assert fit_jointly(gp, [], np.random.default_rng(0)) is gp
    constant = [(np.array([[0.0], [1.0]]), np.ones(2), None)] * 2
    assert math.isfinite(fit_jointly(GP.automatic(Box([(0.0, 1.0)])), constant, np.random.default_rng(0)).noise)
