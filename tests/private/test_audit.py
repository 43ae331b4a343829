"""Audits: bounds that cover, claims that are refuted when they are false, rows that are found when they can be."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from surefoot.private import (
    GaussianEvent,
    LaplaceRelease,
    ResearchNoise,
    SystemNoise,
    epsilon,
    gaussian_scale,
    lower_bound,
    reconstruct,
)
from surefoot.private.audit import Audit, audit
from surefoot.private.cases import neighbors
from surefoot.private.noise import MARGIN, _measurement

SETTINGS = [(0.5, 1e-3), (1.0, 1e-2), (3.0, 1e-3)]
TRIALS = 100_000


def blur(scale):
    return lambda data, noise, trials: noise.gaussian(np.broadcast_to(data, (trials, *np.shape(data))), scale)


# ------------------------------------------------------------------------------------------------------ lower bounds


@pytest.mark.parametrize(("cost", "slack"), SETTINGS)
def test_a_right_mechanism_survives_and_half_the_noise_does_not(cost, slack):
    """Rows of which one moves by 1; the score is learnt, not given."""
    one = np.array([[0.0, 3.0], [2.0, -1.0], [5.0, 5.0]])
    two = one + np.array([[0.0, 0.0], [0.6, 0.8], [0.0, 0.0]])
    scale = gaussian_scale(cost, slack)
    right = audit(blur(scale), one, two, delta=slack, claim=cost, trials=TRIALS)
    assert not right.refuted
    assert right.bound.epsilon > 0.4 * cost  # and is no empty bound
    wrong = audit(blur(scale / 2.0), one, two, delta=slack, claim=cost, trials=TRIALS)
    assert wrong.refuted
    assert wrong.bound.epsilon <= epsilon(GaussianEvent(gaussian_scale(cost, slack) / 2.0), slack)


@pytest.mark.parametrize(("cost", "slack"), SETTINGS)
def test_sub_sampled_releases(cost, slack):
    """A participant who tosses a coin; forgetting the coin's amplification is safe, claiming too much is found."""
    from surefoot.private import noise_multiplier

    def release(present, noise, trials, z):
        took_part = noise.bernoulli(0.3, trials) & present
        return noise.gaussian(took_part.astype(float), z)

    z = noise_multiplier(cost, slack, sampling=0.3)
    for factor, refuted in ((1.0, False), (0.4, True)):
        found = audit(
            lambda present, noise, trials, z=z * factor: release(present, noise, trials, z),
            False,
            True,
            delta=slack,
            claim=cost,
            trials=TRIALS,
        )
        assert found.refuted is refuted


def test_the_bound_covers():
    """In 120 audits at 90 % confidence the bound is above the truth in fewer than 10 %, and close to it in all."""
    z, slack = 1.0, 0.01
    truth = epsilon(GaussianEvent(z), slack)
    rng = np.random.default_rng(7)
    bounds = np.array(
        [lower_bound(rng.normal(0, z, 6000), rng.normal(1, z, 6000), slack, confidence=0.9).epsilon for _ in range(120)]
    )
    assert stats.binomtest(int((bounds > truth).sum()), 120, 0.1, alternative="greater").pvalue > 1e-4
    assert 0.6 * truth < np.median(bounds) < truth


def test_the_bound_covers_where_it_is_tight():
    """Randomized response: the telling event is known, so only the two intervals keep the bound below the truth."""
    truth = 1.0
    p = math.exp(truth) / (1.0 + math.exp(truth))
    rng = np.random.default_rng(3)
    bounds = np.array(
        [lower_bound(rng.random(1500) > p, rng.random(1500) < p, 0.0, confidence=0.8).epsilon for _ in range(400)]
    )
    above = int((bounds > truth).sum())
    assert stats.binomtest(above, 400, 0.2, alternative="greater").pvalue > 1e-4
    assert above > 0  # so that the confidence means something
    assert np.median(bounds) > 0.85 * truth


@settings(max_examples=30, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10**6), shift=st.floats(0.0, 4.0))
def test_only_the_order_of_scores_matters(seed, shift):
    """Any increasing function of the scores, and exchanging the inputs, gives the same bound."""
    rng = np.random.default_rng(seed)
    one, two = rng.normal(0.0, 1.0, 900), rng.normal(shift, 1.0, 900)
    bound = lower_bound(one, two, 1e-3).epsilon
    assert lower_bound(two, one, 1e-3).epsilon == pytest.approx(bound)
    assert lower_bound(-one, -two, 1e-3).epsilon == pytest.approx(bound, abs=0.35)  # ties at thresholds fall otherwise
    assert lower_bound(3.0 * one + 1.0, 3.0 * two + 1.0, 1e-3).epsilon == pytest.approx(bound, rel=1e-6)


def test_equal_inputs_and_opposite_ones():
    rng = np.random.default_rng(0)
    assert lower_bound(rng.normal(size=2000), rng.normal(size=2000), 0.0).epsilon < 0.2
    certain = lower_bound(np.zeros(9000), np.ones(9000), 1e-5)
    size = 6000  # that judge
    low = 0.0005 ** (1.0 / size)
    assert certain.epsilon == pytest.approx(math.log((low - 1e-5) / (1.0 - low)), rel=1e-6)
    assert certain.rates in ((0.0, 1.0), (1.0, 0.0))


def test_the_direction_of_the_likelier_input_is_said():
    rng = np.random.default_rng(0)
    quiet, loud = rng.normal(0.0, 0.1, 5000), rng.normal(0.0, 1.0, 5000)
    found = lower_bound(quiet, loud, 0.0)
    assert found.likelier == "two"
    assert found.rates[1] > found.rates[0]
    assert lower_bound(loud, quiet, 0.0).likelier == "one"


def test_mechanisms_that_release_one_at_a_time():
    together = audit(blur(0.5), [0.0, 0.0], [1.0, 0.0], delta=1e-3, trials=900)
    alone = audit(
        lambda data, noise: noise.gaussian(data, 0.5), [0.0, 0.0], [1.0, 0.0], delta=1e-3, trials=900, batched=False
    )
    assert alone.scores[0].shape == together.scores[0].shape == (900,)
    assert alone.bound.epsilon == pytest.approx(together.bound.epsilon, abs=1.0)


def test_an_audit_can_be_repeated():
    first, second = (audit(blur(1.0), 0.0, 1.0, delta=1e-3, trials=500, noise=ResearchNoise(4)) for _ in range(2))
    assert (first.scores[1] == second.scores[1]).all()
    assert first.bound == second.bound
    assert not Audit(first.bound, None, 1e-3, 500, first.scores).refuted


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: lower_bound(np.zeros(50), np.zeros(500), 0.1), r"trials_one must be .* got shape \(50,\)"),
        (lambda: lower_bound(np.zeros(500), np.full(500, np.nan), 0.1), "500 scores that are not a number"),
        (lambda: lower_bound(np.zeros(500), np.zeros(500), 1.0), "delta must be"),
        (lambda: lower_bound(np.zeros(500), np.zeros(500), 0.1, 1.0), "confidence must"),
        (lambda: audit(blur(1.0), 0.0, 1.0, delta=0.1, trials=5), "trials must be .* got 5"),
        (lambda: audit(lambda x, noise, n: np.zeros(3), 0.0, 1.0, delta=0.1, trials=500), "along the first axis"),
        (lambda: audit(blur(1.0), 0.0, 1.0, delta=0.1, trials=500, score=lambda z: z[:, None]), "one number for each"),
    ],
)
def test_bad_audits_are_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call()


# ---------------------------------------------------------------------------------------------------- reconstruction


def projected(X, r, omega, rng):
    """Center, lift the singular values, project: the published transformation."""
    U, s, Vt = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)
    return (U * np.hypot(s, omega)) @ Vt @ rng.normal(size=(X.shape[1], r)) / math.sqrt(r)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    d=st.integers(1, 8), extra=st.integers(0, 10), omega=st.sampled_from([0.0, 1.0, 1e3]), seed=st.integers(0, 10**6)
)
def test_known_rows_reveal_all_rows_of_a_projection(d, extra, omega, seed):
    """Whatever the matrix, the number of columns r ≥ d, and the lift."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, d)) * 5.0 + 2.0
    Z = projected(X, d + extra + 2, omega, rng)
    known = rng.choice(60, size=d + 3, replace=False)
    found = reconstruct(Z, X[known], known)
    assert found.works
    assert np.abs(found.rows - X).max() < 1e-7 * np.abs(X).max()
    least = reconstruct(Z, X[known[: d + 1]], known[: d + 1])
    assert least.works is None or d + extra + 2 > d  # r > d: the rank alone gives it away
    assert np.abs(least.rows - X).max() < 1e-6 * np.abs(X).max()


@pytest.mark.parametrize(("n", "d", "r"), [(2000, 3, 10), (500, 20, 30)])
@pytest.mark.parametrize("omega", [0.0, 1e3])
def test_the_settings_in_which_the_attack_was_first_seen(n, d, r, omega):
    rng = np.random.default_rng(n + d)
    X = rng.normal(size=(n, d))
    X *= 25.0 / np.linalg.norm(X - X.mean(axis=0), axis=1).max()
    found = reconstruct(projected(X, r, omega, rng), X[: d + 1], range(d + 1))
    assert np.abs(found.rows - X).max() < 1e-9 * 25.0
    assert found.tail < 1e-12


@pytest.mark.parametrize("r", [3, 10])
def test_noise_stops_it_and_the_attacker_can_tell(r):
    rng = np.random.default_rng(1)
    X = 10.0 * rng.normal(size=(400, 3))
    image = X if r == 3 else X @ rng.normal(size=(3, r)) / math.sqrt(r)
    scale = gaussian_scale(3.0, 1e-5)
    found = reconstruct(image + scale * rng.normal(size=image.shape), X[:6], range(6))
    assert found.works is False
    assert np.abs(found.rows - X)[6:].max() > scale


def test_with_no_row_to_spare_nothing_is_certain():
    X = np.random.default_rng(0).normal(size=(30, 2))
    found = reconstruct(X @ [[2.0, 1.0], [0.0, 1.0]], X[:3], range(3))
    assert found.works is None
    assert math.isnan(found.residual)
    assert np.allclose(found.rows, X)


@pytest.mark.parametrize(
    ("released", "rows", "positions", "words"),
    [
        (np.eye(5), np.eye(5)[:3], [0, 1, 2], "6 known rows are needed for 5 columns, got 3"),
        (np.ones((5, 1)), np.ones((4, 2)), [0, 1, 2, 3], "1 columns does not determine rows of 2"),
        (np.eye(5), np.ones((3, 1)), [0, 1, 1], "as many different positions"),
        (np.eye(5), np.ones((3, 1)), [0, 1, 9], "positions must lie between 0 and 4"),
        (np.full((5, 2), np.nan), np.ones((3, 1)), [0, 1, 2], "finite matrices"),
    ],
)
def test_bad_reconstructions_are_refused(released, rows, positions, words):
    with pytest.raises(ValueError, match=words):
        reconstruct(released, rows, positions)


@pytest.mark.slow
@pytest.mark.parametrize(("noise", "refuted"), [(ResearchNoise(0), True), (SystemNoise(), False)])
def test_low_bits_give_away_numpys_laplace_noise_and_not_ours(noise, refuted):
    """Unrounded scores: seen were bounds of 1.95 and 0.20 on a claim of 0.25."""
    mechanism, (one, two) = LaplaceRelease(epsilon=0.25), (table[:1] for table in neighbors())

    def release(rows, source, trials):
        return mechanism._using(source)._randomize(np.broadcast_to(rows, (trials, *rows.shape)))

    def ratio(Z):
        return (np.abs(Z - one) - np.abs(Z - two)).sum(axis=(-2, -1)) / mechanism.scale_for(2)

    found = audit(release, one, two, delta=0.0, claim=0.25, trials=200_000, score=ratio, noise=noise)
    assert found.refuted is refuted
    assert found.bound.epsilon > (1.0 if refuted else 0.15)  # what is there is seen


@pytest.mark.parametrize("features", [1, 2, 7])
@pytest.mark.parametrize("cost", [0.1, 1.0, 3.0])
def test_what_opendp_certifies_of_laplace_noise_is_not_more_than_stated(cost, features):
    mechanism = LaplaceRelease(epsilon=cost)
    measurement = _measurement(mechanism.scale_for(features) * MARGIN, features, "laplace")
    assert 0.999 * cost < measurement.map(math.sqrt(features) * mechanism.sensitivity) <= cost
