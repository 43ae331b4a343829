"""The published projection: its numbers, its algebra, and why it does not protect."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import chi2, kstest

from surefoot import GP, GPUCB, SE, Candidates, widths
from surefoot.errors import SurefootError
from surefoot.private import (
    Answer,
    GaussianRelease,
    Modeler,
    PublishedProjection,
    Release,
    ResearchNoise,
    composed_epsilon,
    largest_dimension,
    omega,
    reconstruct,
    threshold_epsilon,
)
from surefoot.private.projection import lifted, singular_values


def grid(side=100, radius=25.0):
    axis = np.linspace(-1.0, 1.0, side)
    X = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    return X * (radius / np.linalg.norm(X, axis=1).max())


def published(**options):
    return PublishedProjection(
        **{"epsilon": math.exp(1.1), "delta": 1e-5, "dimension": 10, "accept_no_guarantee": True, **options}
    )


@pytest.mark.parametrize(
    ("r", "power", "value"),
    [
        (10, 1.1, 976.1),
        (15, 1.1, 1224.7),
        (10, 0.9, 1192.2),
        (15, 1.3, 1002.7),
        (20, 1.3, 1177.4),
        (20, 1.5, 964.0),
        (30, 1.5, 1208.3),
    ],
)
def test_thresholds(r, power, value):
    assert omega(r, math.exp(power), 1e-5) == pytest.approx(value, abs=0.05)


def test_the_published_grid_and_the_statements_about_it():
    sigma = singular_values(grid())
    np.testing.assert_allclose(sigma, 1030.88, atol=0.005)
    for power, largest, ok in ((1.1, 11, 10), (1.3, 15, 15), (1.5, 22, 20)):
        assert largest_dimension(float(sigma[-1]), math.exp(power), 1e-5) == largest
        assert omega(ok, math.exp(power), 1e-5) <= sigma[-1]
    assert omega(15, math.exp(1.1), 1e-5) > sigma[-1]
    assert largest_dimension(1.0, 1.0, 1e-5) == 0


@pytest.mark.parametrize(
    ("r", "power", "delta", "value", "ok"),
    [
        (10, 1.1, 1e-5, 2.32, True),
        (20, 1.5, 1e-5, 3.61, True),
        (15, 2.0, 1e-5, 6.51, True),
        (15, 2.9, 1e-5, 22.5, False),
        (15, 2.8, 1e-4, 21.4, False),
        (10, 1.8, 1e-3, 5.72, True),
        (10, 2.0, 1e-3, 7.46, False),
        (10, 2.3, 1e-3, 11.5, False),
    ],
)
def test_composition_of_the_published_settings(r, power, delta, value, ok):
    found = composed_epsilon(r, math.exp(power), delta)
    assert found == pytest.approx(value, abs=0.05 if value > 10 else 0.005)
    assert (found <= math.exp(power)) is ok
    codes = {f.code for f in published(epsilon=math.exp(power), delta=delta, dimension=r).guarantee(900, 2).failures}
    assert ("composition" in codes) is not ok


def test_above_the_threshold_it_is_a_plain_projection():
    X, M = grid(), ResearchNoise(0).normal((2, 10))
    Z = published().project(X, M)
    np.testing.assert_array_equal(Z, (X - X.mean(axis=0)) @ M / math.sqrt(10))


def test_below_the_threshold_singular_values_are_lifted_and_vectors_kept():
    X = np.random.default_rng(0).normal(size=(200, 3)) * [1.0, 2.0, 5.0]
    X -= X.mean(axis=0)
    level = omega(10, math.exp(1.1), 1e-5)
    L = lifted(X, level)
    U, sigma, Vt = np.linalg.svd(X, full_matrices=False)
    np.testing.assert_allclose(np.linalg.svd(L, compute_uv=False), np.sort(np.hypot(sigma, level))[::-1], rtol=1e-12)
    np.testing.assert_allclose(U.T @ L @ Vt.T, np.diag(np.hypot(sigma, level)), atol=1e-8)
    M = ResearchNoise(0).normal((3, 10))
    np.testing.assert_allclose(published().project(X, M), L @ M / math.sqrt(10), rtol=1e-10)
    np.testing.assert_allclose(published(lift="never").project(X, M), X @ M / math.sqrt(10), atol=1e-12)
    np.testing.assert_allclose(
        published(lifting="sum").project(X, M), (U * (sigma + level)) @ Vt @ M / math.sqrt(10), rtol=1e-9
    )


def test_a_forced_lift_differs_above_the_threshold_only():
    X, M = grid(), ResearchNoise(0).normal((2, 10))
    factor = math.sqrt(1.0 + (published().omega / singular_values(X)[-1]) ** 2)
    np.testing.assert_allclose(published(lift="always").project(X, M), factor * published().project(X, M), atol=1e-9)


def test_the_release_does_not_depend_on_epsilon_above_its_threshold():
    X, M = grid(), ResearchNoise(0).normal((2, 10))
    start = threshold_epsilon(10, 1e-5, float(singular_values(X)[-1]))
    first = published(epsilon=1.0001 * start).project(X, M)
    for factor in (2.0, 100.0):
        np.testing.assert_array_equal(published(epsilon=factor * start).project(X, M), first)
    assert not np.allclose(published(epsilon=0.999 * start).project(X, M), first)


def test_squared_distances_follow_their_law():
    """r |z − z'|²/|x̃ − x̃'|² is χ² with r degrees of freedom, in both branches."""
    X = np.random.default_rng(1).normal(size=(40, 3))
    for mechanism in (published(dimension=6), published(dimension=6, lift="never")):
        Z = mechanism.project(X, ResearchNoise(2).normal((4000, 3, 6)))
        C = X - X.mean(axis=0)
        L = lifted(C, mechanism.omega) if mechanism.lift == "threshold" else C
        ratio = 6 * ((Z[:, 0] - Z[:, 1]) ** 2).sum(axis=1) / ((L[0] - L[1]) ** 2).sum()
        assert kstest(ratio, chi2(6).cdf).pvalue > 0.01


def sequence(Z, y, gp, steps=15):
    policy = GPUCB(Candidates(Z), gp=gp, width=widths.Finite(0.975), seed=0, repeats=False)
    for _ in range(steps):
        query = policy.ask()
        policy.tell(query, float(y[query.index]))
    return [o.index for o in policy.history]


def problem(seed=0, n=300):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-15.0, 15.0, (n, 2))
    return X, GP(SE(6.0), noise=1e-8).condition().sample(X, 1, rng)[0], GP(SE(6.0), noise=1e-5)


def test_an_isometry_gives_the_sequence_of_the_original_rows():
    X, y, gp = problem()
    Q = np.linalg.qr(np.random.default_rng(1).normal(size=(7, 2)))[0].T  # Q Qᵀ = I
    mechanism = published(dimension=7, lift="never")
    Z = mechanism.project(X, math.sqrt(7) * Q)
    assert sequence(Z, y, gp) == sequence(X, y, gp)


def test_many_columns_come_close_to_an_isometry():
    X, _, gp = problem(n=60)
    errors = []
    for r in (10, 1000, 40_000):
        Z = published(dimension=r, lift="never").project(X, ResearchNoise(0).normal((2, r)))
        errors.append(np.abs(gp.kernel(Z) - gp.kernel(X)).max())
    assert errors[0] > 3 * errors[1] > 9 * errors[2]
    assert errors[2] < 0.02


def test_a_lift_of_equal_singular_values_is_a_change_of_length():
    rng = np.random.default_rng(0)
    X = np.linalg.qr(rng.normal(size=(300, 2)) - 0.0)[0]
    X -= X.mean(axis=0)
    U, _, Vt = np.linalg.svd(X, full_matrices=False)
    X = 100.0 * U @ Vt  # all singular values are 100
    y = GP(SE(6.0), noise=1e-8).condition().sample(X, 1, rng)[0]
    M = ResearchNoise(3).normal((2, 10))
    low, plain = published(epsilon=5.0), published(lift="never")
    factor = math.sqrt(1.0 + (low.omega / 100.0) ** 2)
    lifted_rows, rows = low.project(X, M), plain.project(X, M)
    assert sequence(lifted_rows, y, GP(SE(6.0 * factor), noise=1e-5)) == sequence(rows, y, GP(SE(6.0), noise=1e-5))


@pytest.mark.parametrize(("n", "d"), [(2000, 3), (500, 20)])
@pytest.mark.parametrize("epsilon", [0.1, 3.0, 1000.0])
def test_a_few_known_rows_reveal_all_others(n, d, epsilon):
    X = np.random.default_rng(0).uniform(-10.0, 10.0, (n, d))
    X *= 25.0 / np.linalg.norm(X, axis=1).max()
    mechanism = published(epsilon=epsilon, dimension=30).research(seed=1)
    found = reconstruct(mechanism.transform(X), X[: d + 1], range(d + 1))
    assert np.linalg.norm(found.rows - X) < 1e-9 * np.linalg.norm(X)


def test_the_gaussian_release_withstands_the_attack():
    X = np.random.default_rng(0).uniform(-10.0, 10.0, (2000, 3))
    mechanism = GaussianRelease(epsilon=3.0, delta=1e-5).research(seed=1)
    found = reconstruct(mechanism.transform(X), X[:40], range(40))
    assert not found.works
    error = np.sqrt(((found.rows - X)[40:] ** 2).mean())
    assert error > 0.5 * mechanism.noise_scale  # of the order of the noise


def test_it_refuses_to_be_taken_for_a_protection():
    X = np.random.default_rng(0).normal(size=(50, 3))
    mechanism = PublishedProjection(epsilon=1.0, delta=1e-5, dimension=5)
    with pytest.raises(SurefootError, match="GaussianRelease"):
        mechanism.transform(X)
    guarantee = mechanism.guarantee(50, 3)
    assert guarantee.epsilon is None
    assert guarantee.claimed == (1.0, 1e-5)
    assert {failure.code for failure in guarantee.failures} == {"rank", "branch"}
    assert "NO privacy guarantee" in str(guarantee)
    assert mechanism.event(50, 3) is None
    few = mechanism.guarantee(4, 3)
    assert few.epsilon is None
    assert {failure.code for failure in few.failures} == {"unproved", "branch"}
    assert mechanism.transform(X[:4]).shape == (4, 5)  # n ≤ d + 1


def test_options_are_named_in_the_failures():
    found = published(lift="never", lifting="sum", normalize=True).guarantee(50, 3)
    assert {"lift", "lifting", "scale", "rank"} <= {failure.code for failure in found.failures}
    assert found.features == ()


def test_normalized_rows_have_the_published_norm():
    X = np.random.default_rng(0).normal(size=(50, 3)) + 100.0
    Z = published(normalize=True, lift="never", dimension=3, radius=25.0).project(X, math.sqrt(3) * np.eye(3))
    assert np.linalg.norm(Z, axis=1).max() == pytest.approx(25.0)


def test_collinear_features_are_refused():
    X = np.random.default_rng(0).normal(size=(50, 1)) @ [[1.0, 2.0]]
    with pytest.raises(ValueError, match="linear combinations"):
        published().research(seed=0).transform(X)


@pytest.mark.parametrize(
    "option", [{"dimension": 0}, {"dimension": 2.5}, {"delta": 0.0}, {"epsilon": -1.0}, {"lift": "x"}, {"lifting": "x"}]
)
def test_bad_options_are_refused(option):
    with pytest.raises(ValueError, match=f"{next(iter(option))} must"):
        published(**option)


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.inf, math.nan])
def test_a_threshold_needs_an_epsilon(epsilon):
    for call in (omega, composed_epsilon):
        with pytest.raises(ValueError, match="epsilon must be positive and finite"):
            call(3, epsilon, 1e-5)


@pytest.mark.parametrize("smallest", [0.0, -1.0, math.nan])
def test_a_threshold_needs_a_singular_value(smallest):
    with pytest.raises(ValueError, match="the smallest singular value must be positive"):
        threshold_epsilon(3, 1e-5, smallest)


def test_a_modeler_runs_on_it():
    X, y, gp = problem()
    mechanism = published(epsilon=1e4).research(seed=1)
    release = Release("k", mechanism.transform(X), asks=12, repeats=False, simulated=True)
    modeler = Modeler(release, gp=gp, width=widths.Finite(0.975), seed=0)
    modeler.run(lambda ask: Answer("k", ask.step, float(y[ask.index])))
    assert y[[o.index for o in modeler.policy.history]].max() > np.quantile(y, 0.95)


def test_rows_that_are_all_equal_cannot_be_normalized():
    mechanism = PublishedProjection(epsilon=1.0, delta=0.1, dimension=2, normalize=True, accept_no_guarantee=True)
    with pytest.raises(ValueError, match="all rows are equal"):
        mechanism.transform(np.ones((5, 2)))


@pytest.mark.parametrize("smallest", [math.nan, math.inf, -1.0])
def test_the_largest_dimension_needs_a_singular_value(smallest):
    with pytest.raises(ValueError, match="smallest singular value"):
        largest_dimension(smallest, 1.0, 0.1)
