"""Outliers: the formulas against brute force, what is set aside and what is not."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from surefoot.belief.outliers import Setting, centered, distances, level, pursue

Array = np.ndarray


def _setting(n: int, seed: int = 0, noise: float = 1e-3) -> tuple[Array, Setting]:
    X = np.random.default_rng(seed).random((n, 2))
    squared = ((X[:, None] - X) ** 2).sum(axis=-1)
    return X, Setting.of(np.exp(-4.0 * squared), noise)


def test_the_evidence_is_the_likelihood_at_its_best_mean_and_variance() -> None:
    X, setting = _setting(8)
    z = np.sin(5.0 * X[:, 0])
    inverse = np.linalg.inv(setting.S)
    mean = float(inverse.sum(axis=0) @ z / inverse.sum())
    v = float((z - mean) @ inverse @ (z - mean)) / 8
    expected = multivariate_normal.logpdf(z, np.full(8, mean), v * setting.S)
    assert setting.evidence(z) == pytest.approx(expected, abs=1e-6)


def test_leaving_one_out_needs_no_other_factorization() -> None:
    X, setting = _setting(7)
    z = X[:, 0] - 2.0 * X[:, 1] ** 2
    P = centered(setting.inverse)
    a = P @ z
    for i in range(7):
        left = np.delete(np.arange(7), i)
        rest = Setting.of(setting.S[np.ix_(left, left)], 0.0)
        q, logdet = z @ a - a[i] ** 2 / P[i, i], setting.logdet + np.log(setting.inverse[i, i])
        assert float(level(6, q, logdet)) == pytest.approx(rest.evidence(z[left]), abs=1e-5)
        mean, _ = distances(setting, z, np.array([i]))
        assert z[i] - mean[0] == pytest.approx(a[i] / P[i, i], abs=1e-7)


@pytest.mark.parametrize("size", [8.0, 1e6, -1e6])
def test_outliers_that_hide_each_other_are_found(size: float) -> None:
    X, setting = _setting(40)
    z = np.sin(5.0 * X[:, 0]) + X[:, 1]
    z[[3, 17, 30]] += size
    aside = set(pursue(setting, z)[1].tolist())
    assert {3, 17, 30} <= aside
    assert len(aside) <= 4  # a neighbor may go with them; it is not far and comes back


def test_nothing_is_set_aside_where_nothing_stands_out() -> None:
    X, setting = _setting(30, noise=0.05)
    z = np.sin(5.0 * X[:, 0]) + 0.2 * np.random.default_rng(1).standard_normal(30)
    height, aside = pursue(setting, z)
    assert not aside.size
    assert height == pytest.approx(float(setting.evidence(z)))


def test_equal_values_and_repeated_points_are_no_trouble() -> None:
    setting = Setting.of(np.ones((9, 9)), 1e-6)
    for z in (np.zeros(9), np.full(9, 1e300)):
        assert np.isfinite(pursue(setting, z)[0])
