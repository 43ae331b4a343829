"""Games, matches and players: accounting, what a player needs to know, bad input."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from synthetic_payoffs import SE2, general, grid, players

from surefoot import GP, Box, Candidates, Choice, Float, NotSupported, Player, Space, widths
from surefoot.games import (
    GPMW,
    Game,
    JointActions,
    Match,
    PayoffBelief,
    Profile,
    PublishedWidth,
    RandomStrategy,
    Round,
    SamplerStrategy,
    Strategy,
    Tracker,
    play,
)
from surefoot.games.payoffs import ExpectedScore
from surefoot.loop.events import timeless


@given(seed=st.integers(0, 10**6), T=st.integers(1, 12))
@settings(max_examples=25, deadline=None)
def test_regrets_by_brute_force(seed, T):
    rng = np.random.default_rng(seed)
    shape = (3, 4, 2)
    game = Game([rng.standard_normal(shape) for _ in shape], [grid(n) for n in shape])
    rows = np.column_stack([rng.integers(n, size=T) for n in shape])
    rounds = [Round([grid(n).points[r] for n, r in zip(shape, row, strict=True)], [0.0] * 3) for row in rows]
    payoffs = np.array([game.payoffs(done.actions) for done in rounds])
    match = Match(game, rounds, payoffs)
    for seat in range(3):
        f = game.tables[seat]
        for t in range(1, T + 1):

            def other(x, row, seat=seat, f=f):
                cell = list(row)
                cell[seat] = x
                return f[tuple(cell)]

            best = max(sum(other(x, row) for row in rows[:t]) for x in range(shape[seat]))
            assert match.external_regret(seat)[t - 1] == pytest.approx(best - payoffs[:t, seat].sum())
            assert match.mean_regret(seat)[t - 1] == pytest.approx(f.max() - payoffs[:t, seat].mean())
        assert (match.external_regret(seat) / np.arange(1, T + 1) <= match.mean_regret(seat) + 1e-12).all()


def test_regret_is_about_payoffs_without_noise():
    game = general((5, 5), 0, noise=4.0)
    match = play(game, players(game, [0, 0]), 8, seed=3)
    noisy = np.array([done.payoffs for done in match.rounds])
    assert abs(noisy - match.payoffs).max() > 0.5
    assert match.payoffs[3].tolist() == game.payoffs(match.rounds[3].actions).tolist()


def test_a_match_is_a_function_of_the_seeds():
    game = general((6, 6), 1)
    one, two, other = (play(game, players(game, [1, 0], seed=s), 8, seed=t).rounds for s, t in ((0, 0), (0, 0), (1, 0)))
    assert one == two != other


def test_beliefs_are_shared_and_change_nothing():
    """Players that meet share beliefs; alone they would do the same."""
    game = general((7, 6), 2)
    together = play(game, players(game, [2, 1], strategies=GPMW(eta=1.0, payoff_range=(-3, 3))), 10)
    alone = players(game, [2, 1], strategies=GPMW(eta=1.0, payoff_range=(-3, 3)))
    for player in alone:
        for done in together.watched:
            player.tell(done)
    for done in together.rounds:
        queries = [player.ask() for player in alone]
        assert [q.x.tolist() for q in queries] == [a.tolist() for a in done.actions]
        for player, query in zip(alone, queries, strict=True):
            player.tell(query, done)
    assert alone[0]._pool is not alone[1]._pool


def test_watched_rounds_move_beliefs_and_no_strategy():
    game = general((5, 5), 3)
    first = players(game, [0, 0], strategies=GPMW(eta=3.0))[0]
    first.tell(Round([[0.0], [1.0]], [1.0, 0.0]))
    first.ask()
    np.testing.assert_allclose(first.strategy(0).probabilities, 0.2)
    assert first._mind.belief(0).everywhere()[0].any()


def test_failed_rounds():
    box = Box([(0.0, 1.0)])
    calls = []

    def payoffs(actions):
        calls.append(actions)
        return [None, None] if len(calls) % 3 == 0 else [1.0, 2.0]

    game = Game(payoffs, [box, box], highest=[1.0, 2.5])
    both = players(game, [0, 1], samples=4)
    match = play(game, both, 6, initial=0)
    assert np.isnan(match.payoffs[:, 0]).tolist() == [False, False, True] * 2
    assert [o.failed for o in both[1].history] == [False, False, True] * 2
    np.testing.assert_allclose(match.mean_regret(1), 0.5)
    with pytest.raises(NotSupported, match="tables"):
        match.external_regret(0)
    with pytest.raises(NotSupported, match="highest"):
        Match(Game(payoffs, [box, box]), match.rounds, match.payoffs).mean_regret(0)


@pytest.mark.parametrize("bad", [[1.0], [1.0, float("inf")], [1.0, 2.0, 3.0]], ids=str)
def test_payoff_functions_are_checked(bad):
    box = Box([(0.0, 1.0)])
    with pytest.raises(ValueError, match="2 finite numbers"):
        Game(lambda actions: bad, [box, box]).payoffs([np.array([0.1]), np.array([0.2])])


def test_a_payoff_that_raises_leaves_the_players_waiting():
    box = Box([(0.0, 1.0)])

    def payoffs(actions):
        raise RuntimeError("the simulator is down")

    both = players(Game(payoffs, [box, box]), [0, 0])
    with pytest.raises(RuntimeError, match="down"):
        play(Game(payoffs, [box, box]), both, 3, initial=0)
    assert [len(player.pending) for player in both] == [1, 1]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Game([np.zeros((2, 3))], [grid(2), grid(3)]), "2 tables"),
        (lambda: Game([np.zeros((3, 2))] * 2, [grid(2), grid(3)]), "2 tables"),
        (lambda: Game([np.full((2, 2), np.nan)] * 2, [grid(2)] * 2), "finite"),
        (lambda: Game([np.zeros((2, 2))] * 2, [grid(2)] * 2, noise=-1.0), "variance"),
        (lambda: Game([np.zeros(2)], [grid(2)]), "two players"),
        (lambda: Round([[0.0], [1.0]], [1.0]), "each of at least two"),
        (lambda: Round([[0.0], [np.nan]], [1.0, 1.0]), "finite vector"),
        (lambda: Round([[0.0], [0.0]], [1.0, float("inf")]), "finite"),
        (lambda: Player(grid(2), others=[]), "position"),
        (lambda: Player(grid(2), others=[grid(2)], position=2), "position"),
        (lambda: Player(grid(2), others=[grid(2)], level=-1), "level"),
        (lambda: Player(grid(2), others=[grid(2)], level=1.5), "level"),
        (lambda: Player(grid(2), others=[grid(2)] * 2, level=2), "needs profile"),
        (lambda: Player(grid(2), others=[grid(2)] * 2, level=3, profile=[None, 2, 0]), "needs profile"),
        (lambda: Player(grid(2), others=[grid(2)] * 2, level=1, profile=[None, 1, 0]), "lower levels"),
        (lambda: Player(grid(2), others=[grid(2)] * 2, level=2, profile=[None, 1]), "one entry for each"),
        (lambda: Player(grid(2), others=[grid(2)] * 2, level=2, profile=[None, (1,), 0]), "a level and a profile"),
        (lambda: Player(grid(2), others=[grid(2)], level=1).strategy(0), r"strategies of \[1\], not of 0"),
        (lambda: PayoffBelief(JointActions([grid(2)] * 2), GP(), 0).upper(1.0), "nothing was given yet"),
        (lambda: PayoffBelief(JointActions([grid(2)] * 2), GP(), 0).posterior(), "nothing was given yet"),
        (lambda: Player(grid(2), others=[grid(2)], samples=0), "samples"),
        (lambda: Player(grid(2), others=[grid(2)], samples=3, lite=True), "lite"),
        (lambda: Player(grid(2), others=[grid(2)], initial=-1), "initial"),
        (lambda: Player(grid(2), others=[grid(2)], confidence=1.0), "confidence"),
        (lambda: Player(grid(2), others=[grid(2)], gp=[GP()] * 3), "gp must be one"),
        (lambda: PublishedWidth(0), "actions"),
        (lambda: JointActions([grid(2)]), "two players"),
    ],
)
def test_bad_arguments(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_wrong_types():
    with pytest.raises(TypeError, match="Strategy"):
        Player(grid(2), others=[grid(2)], strategies=["random", "random"])
    with pytest.raises(TypeError, match="domain"):
        Player(grid(2), others=["prices"])
    with pytest.raises(TypeError, match="rows exist on candidates only"):
        JointActions([grid(2), Box([(0.0, 1.0)])]).index(1, np.array([0.5]))
    with pytest.raises(TypeError, match="callable"):
        Player(grid(2), others=[grid(2)], width=2.0)


def test_seats_are_checked():
    game = general((4, 4), 0)
    both = players(game, [0, 0])
    with pytest.raises(ValueError, match="seats"):
        play(game, both[:1], 2)
    with pytest.raises(ValueError, match="seat"):
        play(game, both[::-1], 2)
    with pytest.raises(ValueError, match="negative"):
        play(game, both, -1)


@pytest.mark.parametrize(
    ("level", "strategy", "payoffs", "beliefs"),
    [
        (0, RandomStrategy(), [], []),
        (0, GPMW(), [0], [0]),
        (1, RandomStrategy(), [0], [0]),
        (1, GPMW(), [0, 1], [0, 1]),
        (2, RandomStrategy(), [0, 1], [0, 1]),
        (3, RandomStrategy(), [0, 1], [0, 1]),
    ],
)
def test_what_each_level_needs_to_know(level, strategy, payoffs, beliefs):
    player = Player(grid(4), others=[grid(4)], level=level, strategies=strategy, gp=GP(SE2), seed=0)
    assert player.needs == {"strategies": [level % 2], "payoffs": payoffs, "beliefs": beliefs}
    query = player.ask()
    if 1 in payoffs:
        with pytest.raises(ValueError, match="needs the payoff of player 1"):
            player.tell(query, Round([query.x, [0.0]], [1.0, None]))
    else:
        player.tell(query, Round([query.x, [0.0]], [1.0, None]))


def test_nested_profiles():
    profile = Profile.read(0, 3, 3, [None, (2, [1, None, 0]), 1])
    assert str(profile) == "3(2(1(0, 0), 0), 1(0, 0))"
    game = general((4, 3, 3), 5)
    three = players(game, [3, 2, 1], profiles=[[None, (2, [0, None, 1]), 1], [0, None, 1], None])
    match = play(game, three, 6)
    for query, done in zip(three[0].queries, match.rounds, strict=True):
        assert query.note["assumed"] == {"1": done.actions[1].tolist(), "2": done.actions[2].tolist()}


def test_tables_and_searches_agree():
    """The same game on candidates, with and without the table."""
    game = general((9, 8), 6)
    options = {"width": widths.Constant(1.0)}
    expected = play(game, players(game, [2, 1], **options), 8)
    both = players(game, [2, 1], **options)
    for player in both:
        player.joint.table = False
    found = play(game, both, 8)
    assert found.rounds == expected.rounds


def test_the_gradient_of_an_expected_score():
    rng = np.random.default_rng(0)
    posterior = GP(SE2, noise=1e-3).condition(rng.random((12, 3)), rng.standard_normal(12))
    for extra in (0.0, 0.3):
        score = ExpectedScore(posterior, 1.3, slice(1, 3), rng.random((7, 3)), np.full(7, 1 / 7), extra)
        E = rng.random((5, 2))
        value, slope = score.gradient(E)
        np.testing.assert_allclose(value, score(E), rtol=1e-10)
        for k in range(2):
            step = np.zeros(2)
            step[k] = 1e-6
            np.testing.assert_allclose(slope[:, k], (score(E + step) - score(E - step)) / 2e-6, rtol=1e-4, atol=1e-6)


def test_mixed_spaces_and_policies_that_fit_themselves():
    space = Space(rate=Float(0.1, 10.0, log=True), side=Choice(["left", "right"]))

    def payoffs(actions):
        own = space.params(actions[0])
        return [float((own["side"] == "left") - abs(np.log10(own["rate"])) + actions[1][0]), float(actions[1][0])]

    game = Game(payoffs, [space, Box([(0.0, 1.0)])])
    first = Player(space, others=[game.spaces[1]], level=2, seed=0, samples=4)
    second = Player(game.spaces[1], others=[space], position=1, level=1, seed=1, samples=4)
    match = play(game, [first, second], 10, initial=3)
    assert match.payoffs[-3:, 0].mean() > match.payoffs[:3, 0].mean()
    assert first.recommend().params["side"] == "left"


def test_the_recommended_action_is_the_best_in_hindsight():
    game = general((12, 12), 7, noise=1e-6)
    both = players(game, [2, 0], noise=1e-6)
    match = play(game, both, 40)
    f = game.tables[0]
    against = game.spaces[1].indices_of(np.array([done.actions[1] for done in match.rounds + match.watched]))
    totals = f[:, against].mean(axis=1)
    answer = both[0].recommend()
    assert totals[answer.index] > totals.max() - 0.15
    assert answer.lower <= answer.mean <= answer.upper
    assert "hindsight" in answer.rule


def test_the_published_width():
    assert PublishedWidth(100, 0.9)(3) == pytest.approx(np.sqrt(2 * np.log(100 * 9 * np.pi**2 / 0.3)))
    arms = Candidates([0.0, 1.0])
    player = Player(arms, others=[arms], width=PublishedWidth(2), gp=GP(), seed=0)
    assert Player.from_state(player.state()).ask() == player.ask()


def test_predictive_bounds_contain_the_noise():
    arms = Candidates([0.0, 1.0])
    player = Player(arms, others=[arms], gp=GP(noise=1.0), seed=0, predictive=True, strategies=RandomStrategy())
    player.ask()
    np.testing.assert_allclose(player._mind.belief(0).upper(1.0, predictive=True), np.sqrt(2.0))


def test_only_strategies_that_remember_beliefs_pay_for_them_again(monkeypatch):
    """A player rebuilt from its journal alone makes the last fit again, or all of them where a strategy needs them."""
    game, fits = general((6, 5), 9), []
    gp = GP(SE2, noise=1e-3).refit(every=2)
    real = GP.fit
    monkeypatch.setattr(GP, "fit", lambda *args, **kw: fits.append(1) or real(*args, **kw))
    for strategy, expected in ((RandomStrategy(), 2), (GPMW(payoff_range=(-3.0, 3.0)), 2 * 5)):
        live = players(game, [2, 1], gp=gp, strategies=strategy)
        play(game, live, 8, initial=1)
        twin = Player.from_state({**live[0].state(), "cache": {}})
        fits.clear()
        query = twin.ask()
        assert len(fits) == expected
        fits.clear()
        again = Player.from_state(live[0].state())
        assert again.ask() == query == live[0].ask()


def test_strategies_must_say_that_they_need_beliefs():
    class Greedy(RandomStrategy):
        def begin(self, domain, seat):
            tracker = super().begin(domain, seat)
            tracker.advance = lambda done, optimism, hypothetical=False: optimism(domain.points)
            return tracker

    arms = Candidates([0.0, 1.0])
    player = Player(arms, others=[arms], level=1, gp=GP(), strategies=Greedy(), seed=0)
    query = player.ask()
    player.tell(query, Round([query.x, [0.0]], [1.0, 0.0]))
    with pytest.raises(TypeError, match="beliefs = True"):
        player.ask()
    assert not player.pending


def test_strategies_without_probabilities_must_draw():
    class Silent(Strategy):
        def begin(self, domain, seat):
            return Tracker()

    for level in (0, 1):
        player = Player(grid(2), others=[grid(2)], level=level, gp=GP(), strategies=Silent(), seed=0)
        with pytest.raises(TypeError, match="a strategy without probabilities draws by itself"):
            player.ask()
        assert not player.pending


def test_an_ask_that_fails_leaves_no_trace():
    broken = []

    def corner(rounds, count, rng):
        return [9.0] if broken else [1.0]

    def made():
        strategies = [RandomStrategy(), SamplerStrategy(corner)]
        player = Player(grid(4), others=[grid(4)], level=1, gp=GP(SE2), strategies=strategies, seed=0)
        query = player.ask()
        player.tell(query, Round([query.x, [1.0]], [0.5, 0.0]))
        return player

    player, other = made(), made()
    before = player.state()
    broken.append(True)
    with pytest.raises(ValueError, match="the sampler must give"):
        player.ask()
    assert player.state() == before
    broken.clear()
    assert player.ask() == other.ask()
    assert timeless(player.events) == timeless(other.events)


@pytest.mark.parametrize("given", [1.0, ["a", "b"], [1.0], [1.0, 2.0, 3.0], [1.0, np.inf]])
def test_a_payoff_function_that_answers_wrongly_is_named(given):
    with pytest.raises(ValueError, match="payoffs must be 2 finite numbers"):
        Game(lambda actions: given, [grid(3), grid(3)]).payoffs([np.zeros(1), np.zeros(1)])


@pytest.mark.parametrize("given", [None, [None, None], [1.0, None]])
def test_a_round_without_payoffs_has_failed_for_everybody(given):
    game = Game(lambda actions: given, [grid(3), grid(3)])
    assert np.isnan(game.payoffs([np.zeros(1), np.zeros(1)])).all()
    match = play(game, players(game, [1, 0]), 2)
    assert np.isnan(match.payoffs).all()
    assert match.watched == []


def test_numbers_that_do_not_fit_the_players_are_refused():
    with pytest.raises(ValueError, match="highest is one payoff for each of 2"):
        Game(lambda actions: [0.0, 0.0], [grid(3), grid(3)], highest=[1.0])
    with pytest.raises(ValueError, match="noise is a variance, or one for each of 2"):
        Game(lambda actions: [0.0, 0.0], [grid(3), grid(3)], noise=[0.1, 0.1, 0.1])


def test_a_match_of_no_rounds_has_no_regret():
    game = Game.common_payoff(np.eye(3), [grid(3), grid(3)])
    match = Match(game, [], np.empty((0, 2)))
    assert match.external_regret(0).shape == match.mean_regret(0).shape == (0,)


def test_a_game_keeps_its_payoffs_when_the_table_changes():
    table = np.eye(3)
    game = Game.common_payoff(table, [grid(3), grid(3)])
    table[:] = 9.0
    assert game.payoffs([np.zeros(1), np.zeros(1)]).tolist() == [1.0, 1.0]
