"""What the theory of batches says, as properties."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr
from scipy.stats import norm

from surefoot import DBGPUCB, GP, GPUCBPE, QEI, SE, Candidates, Dives, Matern, Paths, widths
from surefoot.policy.batch.orthants import bivariate, trivariate
from surefoot.policy.batch.qei import improvement_of_batches, sampled_improvement
from surefoot.policy.moves import MoveBelief, best_moves

seeds = st.integers(0, 2**31)
sizes = st.integers(1, 5)
noises = st.sampled_from([1e-6, 1e-3, 0.1, 2.0])


def belief(seed, noise, count=5):
    """A posterior over the plane, and a generator for more."""
    rng = np.random.default_rng(seed)
    gp = GP(Matern(2.5, 0.4, variance=1.7), noise=noise)
    return gp.condition(rng.random((count, 2)), rng.standard_normal(count)), rng


def joint(posterior, X):
    return MoveBelief.of(posterior, X, np.arange(len(X))[None])


# -- information -------------------------------------------------------------------------------------------------------


@given(seeds, sizes, noises)
@settings(max_examples=40, deadline=None)
def test_the_bonus_covers_the_deviations_given_the_points_before(seed, size, noise):
    """w Σ_j σ_j(given 1..j−1) ≤ √(α I(S)) with the theorem's α and c = 1, whatever the batch."""
    posterior, rng = belief(seed, noise)
    X = rng.random((size, 2))
    policy = DBGPUCB(Candidates(X), gp=posterior.gp, width=widths.Constant(1.4), seed=0)
    moves = joint(posterior, X)
    assert 1.4 * moves.prefix_std.sum() <= math.sqrt(policy.weight(size) * moves.information[0]) * (1.0 + 1e-9)


@given(seeds, sizes, noises)
@settings(max_examples=40, deadline=None)
def test_with_the_shrinkage_the_bonus_covers_all_upper_bounds(seed, size, noise):
    """With c ≥ max σ_j²/σ_j²(given 1..j−1) the score of a batch is at least the sum of its upper confidence bounds."""
    posterior, rng = belief(seed, noise)
    X = rng.random((size, 2))
    moves = joint(posterior, X)
    c = max(1.0, float(np.max(moves.std**2 / moves.prefix_std**2)))
    policy = DBGPUCB(Candidates(X), gp=posterior.gp, width=widths.Constant(1.4), shrinkage=c, seed=0)
    assert 1.4 * moves.std.sum() <= math.sqrt(policy.weight(size) * moves.information[0]) * (1.0 + 1e-6)


@given(seeds, sizes, noises)
@settings(max_examples=40, deadline=None)
def test_information_does_not_depend_on_the_order(seed, size, noise):
    """The chain rule: in any order the information of the stops is ½ log|I + Σ/σ²|; more points, more of it."""
    posterior, rng = belief(seed, noise)
    X = rng.random((size, 2))
    gain = joint(posterior, X).information[0]
    assert math.isclose(gain, joint(posterior, X[::-1]).information[0], rel_tol=1e-6, abs_tol=1e-9)
    direct = 0.5 * np.linalg.slogdet(np.eye(size) + posterior.cov(X) / noise)[1]
    assert math.isclose(gain, direct, rel_tol=1e-5, abs_tol=1e-8)
    assert joint(posterior, X[: max(1, size - 1)]).information[0] <= gain + 1e-9


@given(seeds)
@settings(max_examples=20, deadline=None)
def test_the_relevant_region_holds_the_maximum_when_the_bounds_do(seed):
    """Wherever all bounds are right, the maximizer is relevant (Contal et al., Lemma 1)."""
    posterior, rng = belief(seed, 0.01)
    X = rng.random((40, 2))
    f = posterior.sample(X, 1, rng)[0]
    mean, std = posterior.predict(X)
    width = float(np.max(np.abs(f - mean) / std))
    relevant = mean + 2.0 * width * std >= (mean - width * std).max()
    assert relevant[f.argmax()]
    policy = GPUCBPE(Candidates(X), gp=posterior.gp, width=widths.Constant(width), seed=0)
    for x, y in zip(posterior.X, posterior.y, strict=True):
        near = X[np.argmin(((X - x) ** 2).sum(axis=1))]
        policy.tell(near, float(y))
    assert [query.note["explore"] for query in policy.ask(3)] == [False, True, True]


# -- improvement -------------------------------------------------------------------------------------------------------


@given(seeds, st.integers(1, 3), st.floats(-2.0, 2.0))
@settings(max_examples=60, deadline=None)
def test_improvement_of_a_batch_lies_between_the_best_and_the_sum(seed, size, target):
    """max_j EI_j ≤ qEI ≤ Σ_j EI_j, whatever the correlations."""
    posterior, rng = belief(seed, 0.01)
    moves = joint(posterior, rng.random((size, 2)))
    z = (moves.mean[0] - target) / moves.std[0]
    single = moves.std[0] * (norm.pdf(z) + z * ndtr(z))
    value = improvement_of_batches(moves.mean, moves.cov, target)[0]
    assert single.max() - 1e-5 <= value <= single.sum() + 1e-5


@given(seeds, st.integers(2, 3), st.floats(-2.0, 2.0))
@settings(max_examples=40, deadline=None)
def test_improvement_is_symmetric_and_grows(seed, size, target):
    """The order of the points does not matter, and a further point never hurts."""
    posterior, rng = belief(seed, 0.01)
    X = rng.random((size, 2))
    moves, back, fewer = joint(posterior, X), joint(posterior, X[::-1]), joint(posterior, X[:-1])
    value = improvement_of_batches(moves.mean, moves.cov, target)[0]
    assert math.isclose(value, improvement_of_batches(back.mean, back.cov, target)[0], rel_tol=1e-5, abs_tol=1e-6)
    assert improvement_of_batches(fewer.mean, fewer.cov, target)[0] <= value + 1e-5


@given(seeds, sizes, st.floats(-1.0, 1.0), st.floats(0.1, 10.0))
@settings(max_examples=30, deadline=None)
def test_improvement_scales_and_shifts(seed, size, shift, scale):
    """Values c·y + s and target c·T + s give c times the improvement, draw by draw."""
    posterior, rng = belief(seed, 0.01)
    moves, normal = joint(posterior, rng.random((size, 2))), rng.standard_normal((64, size - 1))
    value = sampled_improvement(moves.mean, moves.cov, 0.3, normal)
    other = sampled_improvement(scale * moves.mean + shift, scale**2 * moves.cov, scale * 0.3 + shift, normal)
    np.testing.assert_allclose(other, scale * value, rtol=1e-6, atol=1e-9)


@given(st.floats(-3.0, 3.0), st.floats(-3.0, 3.0), st.floats(-1.0, 1.0))
@settings(max_examples=60, deadline=None)
def test_bivariate_distribution_functions(h, k, rho):
    """Fréchet's bounds, the complement in one variable, and Φ₃ with an independent third variable."""
    one = (np.array([v]) for v in (h, k, rho))
    value = bivariate(*one)[0]
    assert max(ndtr(h) + ndtr(k) - 1.0, 0.0) - 1e-12 <= value <= min(ndtr(h), ndtr(k)) + 1e-12
    assert math.isclose(value + bivariate(np.array([h]), np.array([-k]), np.array([-rho]))[0], ndtr(h), abs_tol=1e-10)
    R = np.eye(3)
    R[0, 2] = R[2, 0] = rho
    assert math.isclose(trivariate(np.array([[h, 0.7, k]]), R[None])[0], value * ndtr(0.7), abs_tol=1e-9)


@given(seeds)
@settings(max_examples=30, deadline=None)
def test_trivariate_orthants(seed):
    """Sheppard's formula: P(X ≤ 0) = ⅛ + (asin ρ₁₂ + asin ρ₁₃ + asin ρ₂₃)/4π; and no order of variables is special."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((5, 3, 3))
    S = A @ A.transpose(0, 2, 1)
    d = np.sqrt(S.diagonal(axis1=1, axis2=2))
    R = S / d[:, :, None] / d[:, None, :]
    angles = sum(np.arcsin(np.clip(R[:, i, j], -1.0, 1.0)) for i, j in ((0, 1), (0, 2), (1, 2)))
    np.testing.assert_allclose(trivariate(np.zeros((5, 3)), R), 0.125 + angles / (4.0 * np.pi), atol=1e-7)
    b, turn = rng.standard_normal((5, 3)), [2, 0, 1]
    np.testing.assert_allclose(trivariate(b, R), trivariate(b[:, turn], R[:, turn][:, :, turn]), atol=1e-6)


# -- moves -------------------------------------------------------------------------------------------------------------


@given(seeds, st.integers(1, 8), st.integers(1, 4))
@settings(max_examples=40, deadline=None)
def test_the_best_moves_win_lexically(seed, count, length):
    """Without ties the trie search is the lexical maximum of the scores; shifts and positive factors change nothing."""
    scores = np.random.default_rng(seed).standard_normal((count, length)).round(1)
    best = best_moves(scores)
    rows = [tuple(row) for row in scores]
    assert {rows[i] for i in np.flatnonzero(best)} == {max(rows)}
    assert np.array_equal(best_moves(2.5 * scores + 1.0), best)


@given(seeds, st.floats(-5.0, 5.0))
@settings(max_examples=15, deadline=None)
def test_joint_rules_do_not_care_for_a_constant(seed, shift):
    """A constant added to the prior mean and to all values leaves the chosen move alone."""
    points = np.stack(np.meshgrid(np.arange(7.0), np.arange(7.0), indexing="ij"), axis=-1).reshape(-1, 2)
    domain = Paths(points, Dives((7, 7), 2), start=24)
    for kind in (DBGPUCB, GPUCBPE, QEI):
        chosen = []
        for constant in (0.0, shift):
            rng = np.random.default_rng(seed)
            policy = kind(domain, gp=GP(SE(1.7), noise=0.05, mean=constant), seed=0)
            for place in rng.choice(49, 4, replace=False):
                policy.tell(points[place], constant + float(rng.standard_normal()))
            chosen.append(policy.ask().note["stops"])
        assert chosen[0] == chosen[1]
