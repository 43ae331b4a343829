"""Mixtures of posteriors: moments by brute force, gradients, samples, appends."""

from __future__ import annotations

import numpy as np
import pytest

from surefoot.belief import GP, SE, MixturePosterior

MEMBERS = (GP(SE(0.2), 0.01), GP(SE(0.5, variance=2.0), 0.1, mean=1.0), GP(SE([0.3, 0.9]), 1e-4))


@pytest.fixture
def post() -> MixturePosterior:
    rng = np.random.default_rng(0)
    X = rng.random((12, 2))
    mixture = GP(members=MEMBERS).condition(X, np.sin(5.0 * X[:, 0]))
    assert isinstance(mixture, MixturePosterior)
    return mixture


@pytest.fixture
def Z() -> np.ndarray:
    return np.random.default_rng(1).random((6, 2))


def test_moments_of_the_mixture(post: MixturePosterior, Z: np.ndarray) -> None:
    parts = [gp.condition(post.X, post.y) for gp in MEMBERS]
    second = np.mean([part.cov(Z) + np.outer(part.mean(Z), part.mean(Z)) for part in parts], axis=0)
    mean = np.mean([part.mean(Z) for part in parts], axis=0)
    np.testing.assert_allclose(post.mean(Z), mean)
    np.testing.assert_allclose(post.cov(Z), second - np.outer(mean, mean), atol=1e-12)
    np.testing.assert_allclose(post.cov(Z[:2], Z[2:]), post.cov(Z)[:2, 2:], atol=1e-12)
    np.testing.assert_allclose(post.var(Z), np.diagonal(post.cov(Z)), atol=1e-12)
    np.testing.assert_allclose(post.predict(Z), [mean, post.std(Z)])
    assert post.information_gain == pytest.approx(np.mean([part.information_gain for part in parts]))


def test_one_member_is_itself(Z: np.ndarray) -> None:
    gp = MEMBERS[0]
    X, y = Z[:3], np.arange(3.0)
    np.testing.assert_allclose(GP(members=(gp,)).condition(X, y).gradient(Z)[3], gp.condition(X, y).gradient(Z)[3])


def test_gradients(post: MixturePosterior, Z: np.ndarray) -> None:
    mean, std, dmean, dstd = post.gradient(Z)
    np.testing.assert_allclose([mean, std], post.predict(Z))
    for i, h in enumerate(1e-6 * np.eye(2)):
        up, down = post.predict(Z + h), post.predict(Z - h)
        np.testing.assert_allclose(dmean[:, i], (up[0] - down[0]) / 2e-6, atol=1e-6)
        np.testing.assert_allclose(dstd[:, i], (up[1] - down[1]) / 2e-6, atol=1e-6)


def test_samples(post: MixturePosterior, Z: np.ndarray) -> None:
    draws = post.sample(Z, 30_000, np.random.default_rng(2))
    np.testing.assert_allclose(draws.mean(axis=0), post.mean(Z), atol=0.03)
    np.testing.assert_allclose(np.cov(draws.T), post.cov(Z), atol=0.03)


def test_append_pop_copy(post: MixturePosterior, Z: np.ndarray) -> None:
    before, other = post.predict(Z), post.copy()
    other.append(Z[0], 3.0)
    assert (post.n, other.n, len(other.X), len(other.noise)) == (12, 13, 13, 13)
    assert not np.array_equal(other.mean(Z), before[0])
    other.pop()
    np.testing.assert_array_equal(other.predict(Z), before)
    np.testing.assert_array_equal(post.predict(Z), before)


def test_what_a_mixture_does_not_have(post: MixturePosterior) -> None:
    for use in (lambda: post.chol, lambda: post.inverse, lambda: post.solve(post.y)):
        with pytest.raises(TypeError, match="mixture"):
            use()
    with pytest.raises(ValueError, match="at least one"):
        MixturePosterior(GP(), [])
