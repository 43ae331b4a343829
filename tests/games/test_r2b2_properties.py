"""The properties P1-P14 of recursive reasoning: bounds, identities, consistency of simulated players."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from synthetic_payoffs import SE2, draw, general, grid, players

from surefoot import GP, Box, Candidates, widths
from surefoot.games import (
    EXP3,
    GPMW,
    Game,
    Hedge,
    JointActions,
    PayoffBelief,
    Player,
    Profile,
    RandomStrategy,
    Reasoner,
    Round,
    SamplerStrategy,
    play,
)
from surefoot.games.game import _measure

NOISE = 1e-2
WIDTH = widths.Finite(0.9)


def replayed(match, seat, noise, beta):
    """Standard deviation and width of each round, from a belief of our own."""
    joint = JointActions(match.game.spaces)
    belief = PayoffBelief(joint, GP(SE2, noise=noise), seat)
    seen = [*match.watched, *match.rounds]
    X = np.array([joint.encode(done.actions) for done in seen])
    y = np.array([done.payoffs[seat] for done in seen])
    tables = []
    for t in range(len(match.rounds)):
        n = len(match.watched) + t
        belief.given(X[:n], y[:n])
        mean, var = belief.everywhere()
        tables.append((mean.reshape(joint.shape).copy(), np.sqrt(var).reshape(joint.shape), beta(t + 1, joint)))
    return tables


def cells(match):
    return [
        tuple(space.index_of(a) for space, a in zip(match.game.spaces, done.actions, strict=True))
        for done in match.rounds
    ]


@pytest.fixture(scope="module")
def bounded():
    """Games of level 2 against level 1, payoffs from the model, the theorem's width over all joint actions."""
    made = []
    for seed in range(6):
        game = general((9, 8), seed, noise=NOISE)
        match = play(game, players(game, [2, 1], noise=NOISE, width=WIDTH, seed=seed), 30, seed=seed)
        made.append((match, replayed(match, 0, NOISE, lambda t, j: WIDTH(t, size=j.size))))
    return made


def test_p1_regret_of_a_round_is_at_most_two_widths(bounded):
    """r_t ≤ 2 β_t^(1/2) σ_{t−1}(x_t) for a player of level k ≥ 2 against level k − 1 (E.6)."""
    for match, tables in bounded:
        f = match.game.tables[0]
        for (i, j), (_, std, beta) in zip(cells(match), tables, strict=True):
            assert f[:, j].max() - f[i, j] <= 2.0 * beta * std[i, j] + 1e-9


def test_p3_widths_add_up_to_the_information_gain(bounded):
    """Σ 2 β^(1/2) σ ≤ √(C₁ T β_T γ_T), γ_T being the information of the rounds."""
    for match, tables in bounded:
        widest, total = tables[-1][2], 0.0
        for cell, (_, std, beta) in zip(cells(match), tables, strict=True):
            total += 2.0 * beta * std[cell]
        joint = JointActions(match.game.spaces)
        X = np.array([joint.encode(done.actions) for done in [*match.watched, *match.rounds]])
        gain = GP(SE2, noise=NOISE).condition(X, np.zeros(len(X))).information_gain
        constant = 8.0 / math.log(1.0 + 1.0 / NOISE)
        assert total <= math.sqrt(constant * len(tables) * widest**2 * gain)


def test_p4_bounds_cover_the_payoff_everywhere(bounded):
    misses = sum(
        bool((np.abs(match.game.tables[0] - mean) > beta * std + 1e-9).any())
        for match, tables in bounded
        for mean, std, beta in tables
    )
    assert misses == 0  # a tenth is allowed; the union bound is generous


def test_p2_expected_regret_of_level_1():
    """E r_t ≤ E 2 β^(1/2) σ_{t−1}(x¹, x₂) over the opponent's draw (E.4), exactly, for each round of some games."""
    for seed in range(4):
        game = general((8, 7), 50 + seed, noise=NOISE)
        match = play(game, players(game, [1, 0], noise=NOISE, width=WIDTH, seed=seed), 20, seed=seed)
        f, p = game.tables[0], np.full(7, 1 / 7)
        for (i, _), (_, std, beta) in zip(
            cells(match), replayed(match, 0, NOISE, lambda t, j: WIDTH(t, size=j.size)), strict=True
        ):
            expected = f @ p
            assert expected.max() - expected[i] <= 2.0 * beta * (std @ p)[i] + 1e-9


def thought(belief, trackers, width=1.0, samples=None, seed=0):
    return Reasoner(
        belief.joint, {belief.seat: belief}, trackers, width, lambda *key: np.random.default_rng(seed), samples
    )


def some_belief(seed, shape=(6, 5), seat=0):
    rng = np.random.default_rng(seed)
    joint = JointActions([grid(n) for n in shape])
    belief = PayoffBelief(joint, GP(SE2, noise=1e-3), seat)
    belief.given(joint.points[rng.choice(len(joint.points), 8)], rng.standard_normal(8))
    return belief


def point_mass(points, row):
    return SamplerStrategy(lambda rounds, count, rng: points[row])


@given(seed=st.integers(0, 10**6), row=st.integers(0, 4))
@settings(max_examples=25, deadline=None)
def test_p5_against_a_point_mass_every_level_1_is_the_best_response(seed, row):
    belief = some_belief(seed)
    other = belief.joint.spaces[1]
    best = belief.upper(1.0)[:, row].argmax()
    profile = Profile.read(0, 1, 2)
    for tracker in (point_mass(other.points, row).begin(other, 1), sharp(other, row)):
        for samples in (None, 1, 7):
            x = thought(belief, {1: tracker}, samples=samples).act(profile)
            assert x == belief.joint.spaces[0].points[best]


def sharp(space, row):
    """GP-MW that has made up its mind."""
    tracker = GPMW(eta=1e6).begin(space, 1)
    tracker.advance(Round([[0.0], [0.0]], [0.0, 0.0]), lambda X: (np.arange(len(X)) == row).astype(float))
    return tracker


@given(seed=st.integers(0, 10**6))
@settings(max_examples=20, deadline=None)
def test_p6_lite_is_one_sample_and_many_samples_are_the_expectation(seed):
    belief = some_belief(seed)
    space = belief.joint.spaces[1]
    trackers = {1: RandomStrategy().begin(space, 1)}
    drawn = space.index_of(trackers[1].draw(1, np.random.default_rng(seed))[0])
    lite = thought(belief, trackers, samples=1, seed=seed).values(0, trackers)
    np.testing.assert_array_equal(lite, belief.upper(1.0)[:, drawn])
    exact = thought(belief, trackers).values(0, trackers)
    many = thought(belief, trackers, samples=200_000, seed=seed).values(0, trackers)
    np.testing.assert_allclose(many, exact, atol=6.0 * belief.upper(1.0).std() / math.sqrt(200_000))


def test_p6_the_option_lite_is_one_sample():
    game = general((8, 8), 3)
    runs = []
    for options in ({"lite": True}, {"samples": 1}, {}):
        match = play(game, players(game, [1, 0], **options), 10)
        runs.append(cells(match))
    assert runs[0] == runs[1] != runs[2]


@pytest.mark.parametrize(
    "strategy", [GPMW(eta=0.5, payoff_range=None), RandomStrategy(), EXP3()], ids=lambda s: type(s).__name__
)
@pytest.mark.parametrize("levels", [(2, 1), (1, 2), (3, 2), (4, 3)], ids=str)
@pytest.mark.parametrize("options", [{}, {"samples": 5, "share_samples": True}], ids=["exact", "shared draws"])
def test_p7_the_simulated_action_is_the_one_played(strategy, levels, options):
    game = general((7, 6), 11)
    both = players(game, levels, strategies=strategy, **options)
    match = play(game, both, 15)
    higher = int(levels[1] > levels[0])
    lower = 1 - higher
    for query, done in zip(both[higher].queries, match.rounds, strict=True):
        assert query.note["assumed"][str(lower)] == done.actions[lower].tolist()


def test_p7_draws_of_ones_own_differ():
    """The honest setting: the simulated player does not see the draws of the real one."""
    game = general((9, 9), 11)
    both = players(game, [2, 1], samples=2)
    match = play(game, both, 15)
    same = [q.note["assumed"]["1"] == r.actions[1].tolist() for q, r in zip(both[0].queries, match.rounds, strict=True)]
    assert not all(same)


def test_p7_with_fitted_hyper_parameters_on_boxes():
    box = Box([(0.0, 1.0)])
    game = Game(lambda a: [math.sin(5 * a[0][0] + a[1][0]), math.cos(4 * a[1][0] - a[0][0])], [box, box])
    gp = GP(SE2, noise=1e-3).refit(every=3)
    both = players(game, [2, 1], gp=gp, samples=8, share_samples=True)
    match = play(game, both, 7, initial=3)
    for query, done in zip(both[0].queries, match.rounds, strict=True):
        assert query.note["assumed"]["1"] == done.actions[1].tolist()


def test_p8_common_payoffs_make_common_beliefs():
    rng = np.random.default_rng(0)
    game = Game.common_payoff(draw((7, 6), rng), [grid(7), grid(6)])
    both = players(game, [2, 1])
    play(game, both, 8)
    one, two = (both[0]._mind.belief(seat).upper(1.5) for seat in (0, 1))
    np.testing.assert_array_equal(one, two)


@given(seed=st.integers(0, 10**6), mean=st.floats(-1.0, 2.0))
@settings(max_examples=20, deadline=None)
def test_p9_constant_sums_mirror_beliefs(seed, mean):
    rng = np.random.default_rng(seed)
    joint = JointActions([grid(6), grid(5)])
    f = draw((6, 5), rng).ravel()
    rows = rng.choice(30, 9)
    held = []
    for seat, (m, y) in enumerate([(mean, f[rows]), (1.0 - mean, 1.0 - f[rows])]):
        belief = PayoffBelief(joint, GP(SE2, noise=1e-4, mean=m), seat)
        belief.given(joint.points[rows], y)
        held.append(belief.everywhere())
    np.testing.assert_allclose(held[1][0], 1.0 - held[0][0], atol=1e-9)
    np.testing.assert_allclose(held[1][1], held[0][1], atol=1e-12)


def test_p10_gpmw_without_uncertainty_is_hedge():
    game = general((6, 5), 4, noise=0.0)
    payoff = game.tables[0]
    hedge = Hedge(lambda X, actions: payoff[:, game.spaces[1].index_of(actions[1])], eta=0.7, payoff_range=(-3.0, 3.0))
    sure = GPMW(eta=0.7, payoff_range=(-3.0, 3.0))
    trackers = [s.begin(game.spaces[0], 0) for s in (hedge, sure)]
    joint = JointActions(game.spaces)
    belief = PayoffBelief(joint, GP(SE2, noise=0.0), 0)
    belief.given(joint.points, payoff.ravel())  # everything is known: σ = 0
    for j in (0, 3, 3, 4):
        done = Round([[0.0], game.spaces[1].points[j]], [0.0, 0.0])
        for tracker in trackers:
            tracker.advance(done, lambda X, j=j: belief.upper(2.0)[:, j])
        np.testing.assert_allclose(trackers[1].probabilities, trackers[0].probabilities, atol=2e-4)
    by_hand = np.exp(0.7 * np.clip(payoff[:, [0, 3, 3, 4]] + 3.0, 0.0, 6.0).sum(axis=1) / 6.0)
    np.testing.assert_allclose(trackers[0].probabilities, by_hand / by_hand.sum(), rtol=1e-9)


@given(shift=st.floats(-50.0, 50.0), seed=st.integers(0, 10**6))
@settings(max_examples=25, deadline=None)
def test_p10_weights_do_not_see_constants(shift, seed):
    u = np.random.default_rng(seed).standard_normal((4, 6))
    probabilities = []
    for added in (0.0, shift):
        tracker = GPMW(eta=0.3, payoff_range=None).begin(grid(6), 0)
        for row in u:
            tracker.advance(Round([[0.0], [0.0]], [0.0, 0.0]), lambda X, row=row, added=added: row + added)
        probabilities.append(tracker.probabilities)
    np.testing.assert_allclose(*probabilities, atol=1e-9)


def test_p11_more_players_contain_two():
    """A third player with one action, and the payoffs that do not depend on it, change nothing."""
    two = general((7, 6), 8)
    same = {"width": widths.Constant(1.5)}  # the practical one grows with the number of coordinates
    alone = Candidates([0.0])
    three = Game([*(t[:, :, None] for t in two.tables), np.zeros((7, 6, 1))], [*two.spaces, alone], two.noise[0])
    expected = cells(play(two, players(two, [2, 1], **same), 12))
    profiles = [[None, 1, 0], [0, None, 0], None]
    found = cells(play(three, players(three, [2, 1, 0], profiles=profiles, **same), 12))
    assert [cell[:2] for cell in found] == expected
    written = players(two, [2, 1], profiles=[[None, (1, [0, None])], None], **same)
    assert cells(play(two, written, 12)) == expected


@given(seed=st.integers(0, 10**6))
@settings(max_examples=25, deadline=None)
def test_p12_what_depends_on_the_others_only_changes_no_best_response(seed):
    rng = np.random.default_rng(seed)
    belief = some_belief(seed)
    space = belief.joint.spaces[1]
    tracker = RandomStrategy().begin(space, 1)
    plain = belief.upper(1.0)
    shifted = plain + 10.0 * rng.standard_normal(5)
    for others in ({1: tracker}, {1: space.points[2]}):
        chosen = []
        for alpha in (plain, shifted):
            belief.upper = lambda width, alpha=alpha, **_: alpha
            chosen.append(thought(belief, {1: tracker}).respond(0, others)[0])
        assert chosen[0] == chosen[1]


def test_p13_an_adversary_and_two_agents_share_one():
    f = draw((4, 4, 4), np.random.default_rng(2))
    f = (f - f.min()) / (f.max() - f.min())
    game = Game.constant_sum(f, [grid(4)] * 3)
    match = play(game, players(game, [1, 0, 0]), 12)
    adversary, *agents = (match.mean_regret(seat) for seat in range(3))
    for agent in agents:
        np.testing.assert_allclose(adversary + agent, 1.0, atol=1e-12)


def test_p14_more_draws_are_a_better_expectation():
    """What level 1 loses against the exact expectation shrinks with the number of draws."""
    losses = dict.fromkeys((1, 8, 64, 512), 0.0)
    for seed in range(40):
        belief = some_belief(seed, shape=(30, 30))
        trackers = {1: RandomStrategy().begin(belief.joint.spaces[1], 1)}
        exact = thought(belief, trackers).values(0, trackers)
        for samples in losses:
            x = thought(belief, trackers, samples=samples, seed=seed).act(Profile.read(0, 1, 2))
            losses[samples] += (exact.max() - exact[belief.joint.spaces[0].index_of(x)]) / 40
    ordered = list(losses.values())
    assert ordered == sorted(ordered, reverse=True)
    assert losses[512] < 0.1 * losses[1]


def test_three_players_by_hand():
    """Level 2 among three, one at level 1 and one at level 0, against sums written out (E.1), (E.3)."""
    shape = (4, 5, 6)
    rng = np.random.default_rng(9)
    joint = JointActions([grid(n) for n in shape])
    beliefs = {}
    for seat in (0, 1):
        beliefs[seat] = PayoffBelief(joint, GP(SE2, noise=1e-3), seat)
        beliefs[seat].given(joint.points[rng.choice(120, 9)], rng.standard_normal(9))
    trackers = {seat: RandomStrategy().begin(joint.spaces[seat], seat) for seat in range(3)}
    mind = Reasoner(joint, beliefs, trackers, 1.0, lambda *key: np.random.default_rng(0))
    x = mind.act(Profile.read(0, 2, 3, [None, 1, 0]))
    agent = beliefs[1].upper(1.0).mean(axis=(0, 2)).argmax()
    own = beliefs[0].upper(1.0)[:, agent, :].mean(axis=1).argmax()
    assert x == joint.spaces[0].points[own]
    drawn = Reasoner(joint, beliefs, trackers, 1.0, lambda *key: np.random.default_rng(5), samples=3)
    rows = [joint.spaces[j].indices_of(trackers[j].draw(3, np.random.default_rng(5))) for j in (1, 2)]
    values = np.mean([beliefs[0].upper(1.0)[:, a, b] for a, b in zip(*rows, strict=True)], axis=0)
    np.testing.assert_allclose(drawn.values(0, {1: trackers[1], 2: trackers[2]}), values)


def test_level_1_beats_level_0_and_level_2_beats_level_1():
    """On eight games, paired: external regret per round of player 1."""
    regret = {levels: [] for levels in ((0, 0), (1, 0), (2, 1))}
    for seed in range(8):
        game = general((20, 20), 200 + seed)
        for levels in regret:
            match = play(game, players(game, levels, strategies=GPMW(eta=0.5, payoff_range=(-3, 3)), seed=seed), 40)
            regret[levels].append(match.external_regret(0)[-1] / 40)
    r = {levels: np.array(values) for levels, values in regret.items()}
    for better, worse in (((1, 0), (0, 0)), ((2, 1), (0, 0))):
        gap = r[worse] - r[better]
        assert gap.mean() > 3.0 * gap.std(ddof=1) / math.sqrt(8)


def test_players_rebuilt_from_journals_go_on_alike(tmp_path):
    game = general((8, 7), 21)
    options = {"strategies": GPMW(eta=0.5, payoff_range=(-3.0, 3.0)), "gp": GP(SE2, noise=1e-3).refit(every=4)}
    expected = cells(play(game, players(game, [2, 1], **options), 14))
    live = players(game, [2, 1], **options)
    match = play(game, live, 9)
    twins = [Player.from_state(player.state()) for player in live]
    assert cells(match) == expected[:9]
    found = []
    for number in range(9, 14):
        queries = [twin.ask() for twin in twins]
        actions = [q.x for q in queries]
        seen, _ = _measure(game, actions, 0, number)
        for twin, query in zip(twins, queries, strict=True):
            twin.tell(query, seen)
        found.append(tuple(s.index_of(a) for s, a in zip(game.spaces, actions, strict=True)))
    assert found == expected[9:]
