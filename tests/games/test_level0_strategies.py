"""Level-0 strategies: weights by hand, importance weights without bias, designs, user's own methods."""

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from synthetic_payoffs import grid

from surefoot import GP, GPUCB, SE, Box, Candidates, NotSupported, Player, RandomSearch, ThompsonSampling
from surefoot.games import EXP3, EXP3P, GPMW, Hedge, PolicyStrategy, RandomStrategy, Round, SamplerStrategy
from surefoot.games.exp3 import _leverage, optimal_design
from surefoot.loop.state import pack, unpack

SPACE = grid(6)


def played(row, payoff, space=SPACE):
    return Round([space.points[row], [0.0]], [payoff, 0.0])


def nothing(X):
    raise AssertionError("this strategy has no use for beliefs")


@pytest.mark.parametrize(
    ("strategy", "rate"),
    [
        (GPMW(eta=0.3), lambda t: 0.3),
        (GPMW(horizon=50), lambda t: math.sqrt(8 * math.log(6) / 50)),
        (GPMW(), lambda t: math.sqrt(8 * math.log(6) / t)),
    ],
    ids=["given", "horizon", "anytime"],
)
def test_gpmw_by_hand(strategy, rate):
    tracker, total = strategy.begin(SPACE, 0), np.zeros(6)
    np.testing.assert_allclose(tracker.probabilities, 1 / 6)
    for t in range(1, 6):
        u = np.random.default_rng(t).normal(0.5, 1.0, 6)
        tracker.advance(played(0, 0.0), lambda X, u=u: u)
        total += np.clip(u, 0.0, 1.0)
        weights = np.exp(rate(t) * total)
        np.testing.assert_allclose(tracker.probabilities, weights / weights.sum(), rtol=1e-12)


def test_weights_survive_huge_credits():
    tracker = GPMW(eta=1.0, payoff_range=None).begin(SPACE, 0)
    for _ in range(3):
        tracker.advance(played(0, 0.0), lambda X: 1e6 * X[:, 0])
    assert tracker.probabilities[-1] == 1.0


def test_exp3_estimates_are_unbiased_and_follow_the_printed_update():
    """E[φ(a)ᵀ Q⁻¹ φ(A) c(A)] = c(a) for losses that are linear in the features."""
    space = grid(12)
    strategy = EXP3(features=4)
    tracker = strategy.begin(space, 0)
    phi, weights = tracker.phi, np.array([0.5, -1.0, 2.0, 0.3])
    cost = phi @ weights
    chance = tracker.probabilities
    expected = np.zeros(12)
    for row in range(12):
        one = strategy.begin(space, 0)
        one.advance(played(row, -cost[row], space), nothing)
        expected += chance[row] * one.loss
    np.testing.assert_allclose(expected, cost, atol=1e-8)
    tracker.advance(played(3, 0.7, space), nothing)
    Q = sum(chance[a] * np.outer(phi[a], phi[a]) for a in range(12))
    loss = phi @ np.linalg.solve(Q, phi[3]) * -0.7
    np.testing.assert_allclose(tracker.loss, loss, atol=1e-9)
    w = np.exp(-0.1 * loss)
    np.testing.assert_allclose(tracker.probabilities, 0.1 / 12 + 0.9 * w / w.sum(), rtol=1e-9)


def test_exp3_features_are_known_to_everybody_but_differ_by_seat():
    one, again, other = (EXP3().begin(SPACE, seat).phi for seat in (0, 0, 1))
    np.testing.assert_array_equal(one, again)
    assert not np.array_equal(one, other)


def test_exp3_released_frequencies_are_smaller():
    text, released = (EXP3(frequencies=f).begin(SPACE, 0)._features.frequencies for f in ("text", "released"))
    np.testing.assert_allclose(text, 2 * math.pi * released)


def test_exp3_may_leave_hypothetical_rounds_out():
    for learns in (True, False):
        tracker = EXP3(hypothetical=learns).begin(SPACE, 0)
        tracker.advance(played(1, 1.0), nothing, hypothetical=True)
        assert bool(tracker.loss.any()) == learns
        tracker.advance(played(1, 1.0), nothing)
        assert tracker.loss.any()


def test_exp3_theory():
    tracker = EXP3(horizon=400, exploration="optimal", features=3, lengthscale=0.5).begin(grid(20), 0)
    g = _leverage(tracker.phi, tracker.pi).max()
    assert g == pytest.approx(3.0, rel=0.02)  # Kiefer and Wolfowitz: the dimension
    assert tracker.eta == pytest.approx(math.sqrt(math.log(20) / ((2 * g + 3) * 400)))
    assert tracker.gamma == pytest.approx(tracker.eta * g)


@given(seed=st.integers(0, 10**6))
@settings(max_examples=15, deadline=None)
def test_optimal_designs(seed):
    F = np.random.default_rng(seed).standard_normal((25, 3))
    pi = optimal_design(F)
    assert pi.min() >= 0
    assert pi.sum() == pytest.approx(1.0)
    assert 3.0 - 1e-9 <= _leverage(F, pi).max() <= 3.2


def test_exp3p_by_hand():
    tracker = EXP3P(horizon=10_000, confidence=0.9).begin(SPACE, 0)
    n, T = 6, 10_000
    gamma, eta = 1.05 * math.sqrt(n * math.log(n) / T), 0.95 * math.sqrt(math.log(n) / (n * T))
    beta = math.sqrt(math.log(n / 0.1) / (n * T))
    np.testing.assert_allclose(tracker.probabilities, 1 / 6)
    tracker.advance(played(2, 0.8), nothing)
    gain = (0.8 * (np.arange(6) == 2) + beta) / (1 / 6)
    w = np.exp(eta * gain)
    np.testing.assert_allclose(tracker.probabilities, (1 - gamma) * w / w.sum() + gamma / n, rtol=1e-9)


@pytest.mark.parametrize("strategy", [EXP3P(horizon=2000), EXP3(lengthscale=0.4, eta=0.05)], ids=["EXP3P", "EXP3"])
def test_bandits_find_the_better_actions(strategy):
    rng = np.random.default_rng(0)
    payoff = np.array([0.1, 0.2, 0.9, 0.2, 0.1, 0.1])
    tracker = strategy.begin(SPACE, 0)
    for _ in range(2000):
        row = SPACE.index_of(tracker.draw(1, rng)[0])
        tracker.advance(played(row, payoff[row]), nothing)
    assert tracker.probabilities @ payoff > 1.5 * payoff.mean()


def test_draws_follow_the_probabilities():
    tracker = GPMW(eta=2.0).begin(SPACE, 0)
    tracker.advance(played(0, 0.0), lambda X: X[:, 0])
    rows = SPACE.indices_of(tracker.draw(60_000, np.random.default_rng(0)))
    np.testing.assert_allclose(np.bincount(rows, minlength=6) / 60_000, tracker.probabilities, atol=0.01)


def test_grids_on_boxes():
    box = Box([(0.0, 1.0), (-2.0, 2.0)])
    tracker = GPMW(grid=5).begin(box, 0)
    assert tracker.points.shape == (25, 2)
    assert box.contains(tracker.points).all()
    with pytest.raises(NotSupported, match="grid="):
        GPMW().begin(box, 0)
    with pytest.raises(ValueError, match="not usable"):
        GPMW(grid=100).begin(Box([(0.0, 1.0)] * 8), 0)


def test_gpmw_on_a_box_in_a_game():
    box = Box([(0.0, 1.0)])
    gp = GP(SE(lengthscale=0.3), noise=1e-3)
    player = Player(box, others=[box], level=0, gp=gp, strategies=GPMW(grid=9, eta=5.0, payoff_range=None), seed=0)
    for _ in range(6):
        query = player.ask()
        player.tell(query, Round([query.x, [0.5]], [float(query.x[0]), 0.0]))
    assert player.strategy(0).probabilities.argmax() > 4


def test_policies_as_strategies():
    gp = GP(SE(lengthscale=0.3), noise=1e-4)
    pure, mixed = PolicyStrategy(GPUCB(SPACE, gp=gp, seed=0)), PolicyStrategy(ThompsonSampling(SPACE, gp=gp), draws=8)
    twin = GPUCB(SPACE, gp=gp, seed=0)
    for strategy in (pure, mixed):
        tracker = strategy.begin(SPACE, 0)
        for row, value in ((0, 0.1), (5, 0.8)):
            tracker.advance(played(row, value), nothing)
            twin.tell(SPACE.points[row], value)
        X = tracker.draw(20, np.random.default_rng(0))
        assert X.shape == (20, 1)
        np.testing.assert_array_equal(X, tracker.draw(20, np.random.default_rng(0)))  # asking leaves no trace
        if strategy is pure:
            assert (twin.ask().x == X).all()
        else:
            assert len(np.unique(X)) > 1
    with pytest.raises(ValueError, match="the policy works on"):
        pure.begin(grid(3), 0)


def test_a_policy_strategy_needs_a_policy():
    with pytest.raises(TypeError, match="PolicyStrategy needs a policy, got 'random'"):
        PolicyStrategy("random")


def test_payoffs_are_scaled_to_costs_where_their_range_is_known():
    known, plain = EXP3(payoff_range=(0.0, 2.0)).begin(SPACE, 0), EXP3().begin(SPACE, 0)
    known.advance(played(2, 1.5), nothing)
    plain.advance(played(2, -0.25), nothing)
    np.testing.assert_allclose(known.probabilities, plain.probabilities, rtol=1e-12)


def test_a_round_without_the_own_payoff_teaches_nothing():
    for strategy in (EXP3(), EXP3P()):
        tracker = strategy.begin(SPACE, 0)
        before = tracker.probabilities
        tracker.advance(Round([SPACE.points[0], [0.0]], [None, 1.0]), nothing)
        np.testing.assert_array_equal(tracker.probabilities, before)


def test_samplers_are_checked():
    space = Box([(0.0, 1.0)])
    wrong = SamplerStrategy(lambda rounds, count, rng: rng.random((count + 1, 1))).begin(space, 0)
    outside = SamplerStrategy(lambda rounds, count, rng: [7.0]).begin(space, 0)
    for tracker in (wrong, outside):
        with pytest.raises(ValueError, match="sampler must give"):
            tracker.draw(3, np.random.default_rng(0))
    with pytest.raises(TypeError, match="function"):
        SamplerStrategy("random")


def own(rounds, count, rng):
    return rng.random((count, 1)).round()


def test_what_is_code_is_passed_again():
    strategies = [SamplerStrategy(own), RandomStrategy()]
    arms = Candidates([0.0, 1.0])
    player = Player(arms, others=[arms], level=0, strategies=strategies, gp=GP(), seed=1)
    state = json.loads(json.dumps(player.state()))
    with pytest.raises(ValueError, match="pass it again"):
        Player.from_state(state)
    assert Player.from_state(state, strategies=strategies).ask() == player.ask()


@pytest.mark.parametrize(
    "strategy",
    [
        RandomStrategy(),
        GPMW(eta=0.1, payoff_range=(0, 2)),
        EXP3(horizon=9),
        EXP3P(),
        PolicyStrategy(RandomSearch(SPACE, seed=1)),
    ],
    ids=lambda s: type(s).__name__,
)
def test_strategies_are_stored(strategy):
    stored = json.loads(json.dumps(pack(strategy)))
    assert pack(unpack(stored)) == stored


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: GPMW(eta=0.0), "eta must be positive"),
        (lambda: GPMW(horizon=-3), "horizon must be positive"),
        (lambda: GPMW(payoff_range=(1.0, 0.0)), "payoff_range"),
        (lambda: EXP3(gamma=1.5), "gamma is a probability"),
        (lambda: EXP3(features=0), "features must be a whole number"),
        (lambda: EXP3(exploration="greedy"), "exploration must be one of"),
        (lambda: EXP3(frequencies="low"), "frequencies must be one of"),
        (lambda: EXP3P(confidence=1.0), "confidence"),
        (lambda: EXP3P(payoff_range=None), "payoff_range"),
        (lambda: PolicyStrategy(RandomSearch(SPACE), draws=0), "draws"),
        (lambda: Hedge(lambda X, actions: X[:, 0], eta=-1.0), "eta must be positive"),
    ],
)
def test_bad_options(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_hedge_refuses_payoffs_of_the_wrong_shape():
    tracker = Hedge(lambda X, actions: [1.0, 2.0]).begin(SPACE, 0)
    with pytest.raises(ValueError, match="each of 6 actions"):
        tracker.advance(played(0, 0.0), nothing)
    with pytest.raises(TypeError, match="function"):
        Hedge(0.5)
