"""Attacker and defender of an image: the rules of a round, and what reasoning is worth in it."""

from __future__ import annotations

import numpy as np
import pytest

from surefoot.domain import Box
from surefoot.games import Player, RandomStrategy, play
from surefoot_lab.adversarial_game import ImageGame, ordinary_image
from surefoot_lab.experiments.r2b2._parsimonious import ContextualDefender, rounds_of

SIDE = 6


class Halves:
    """A plane of images: the brightness of the left and of the right half."""

    dimension = 2

    def encode(self, images):
        left, right = images[..., : SIDE // 2].mean(axis=(1, 2)), images[..., SIDE // 2 :].mean(axis=(1, 2))
        return 4.0 * (np.stack([left, right], axis=1) - 0.5)

    def decode(self, Z):
        halves = np.clip(0.5 + Z / 4.0, 0.0, 1.0)
        return np.repeat(np.repeat(halves[:, None, :], SIDE // 2, axis=2), SIDE, axis=1)


def scores(images):
    """Class 0: the left half is brighter. Class 1: the right one. Class 2: both are dark."""
    Z = Halves().encode(images)
    z = np.stack([3.0 * (Z[:, 0] - Z[:, 1]), 3.0 * (Z[:, 1] - Z[:, 0]), -2.0 - 2.0 * Z.sum(axis=1)], axis=1)
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def duel(**options):
    image = np.full((SIDE, SIDE), 0.4)
    image[:, : SIDE // 2] = 0.55
    return ImageGame(scores, Halves(), image, 0, **{"radius": 0.15, "grid": 7, **options})


def test_a_round_by_hand():
    made = duel()
    A, D = np.array([[2.0, -1.0], [-2.0, 2.0]]), np.array([[0.0, 0.0], [2.0, -2.0]])
    z = Halves().encode(made.image[None])
    first = np.clip(Halves().decode(z + A), made.image - 0.15, made.image + 0.15)
    np.testing.assert_allclose(made.attacked(A), first)
    second = np.clip(Halves().decode(Halves().encode(first) + D), first - 0.15, first + 0.15)
    p = scores(second)
    score, won = made.scores(A, D)
    np.testing.assert_allclose(score, p[:, 1:].max(axis=1))
    np.testing.assert_array_equal(won, p[:, 1:].max(axis=1) > p[:, 0])
    alone, beaten = made.scores(A, None)
    np.testing.assert_allclose(alone, scores(first)[:, 1:].max(axis=1))
    assert beaten.tolist() == [False, True]  # dark left, bright right
    assert won.tolist() == [False, False]  # and the defender turns it back


def test_nobody_leaves_the_balls_or_the_range_of_the_pixels():
    made, rng = duel(radius=0.3), np.random.default_rng(0)
    A, D = rng.uniform(-2, 2, (2, 200, 2))
    first = made.attacked(A)
    assert np.abs(first - made.image).max() <= 0.3 + 1e-12
    second = made.defended(first, D)
    assert np.abs(second - first).max() <= 0.3 + 1e-12
    assert second.min() >= 0.0
    assert second.max() <= 1.0


def test_the_payoffs_add_up_to_one_and_batches_agree_with_rounds():
    made = duel()
    players = [
        Player(made.actions, others=[made.actions], position=i, level=i, strategies=RandomStrategy(), seed=i)
        for i in range(2)
    ]
    match = play(made.game, players, 12, initial=3)
    np.testing.assert_allclose(match.payoffs.sum(axis=1), 1.0)
    A, D = (np.array([done.actions[i] for done in match.rounds]) for i in range(2))
    score, won = made.scores(A, D)
    np.testing.assert_allclose(match.payoffs[:, 0], score)
    np.testing.assert_array_equal(made.successes(match), won)


def test_a_box_instead_of_a_grid():
    made = duel(grid=None)
    assert isinstance(made.actions, Box)
    players = [Player(made.actions, others=[made.actions], position=i, level=0, seed=i) for i in range(2)]
    assert made.successes(play(made.game, players, 3)).shape == (3,)


@pytest.mark.parametrize(
    ("one", "other", "seat"),
    [((1, 0), (0, 0), 0), pytest.param((0, 1), (0, 0), 1, marks=pytest.mark.slow), ((1, 2), (1, 0), 1)],
)
def test_reasoning_one_level_higher_pays(one, other, seat):
    """Paired over seeds: the mean payoff of the one who goes up, in 30 rounds."""

    def payoff(levels, seed):
        made = duel()
        players = [
            Player(
                made.actions, others=[made.actions], position=i, level=level, strategies=RandomStrategy(),
                seed=10 * seed + i,
            )
            for i, level in enumerate(levels)
        ]  # fmt: skip
        return play(made.game, players, 30, initial=5, seed=seed).payoffs[:, seat].mean()

    gains = np.array([payoff(one, seed) - payoff(other, seed) for seed in range(4)])
    assert gains.mean() > 3.0 * gains.std(ddof=1) / 2.0
    assert gains.mean() > 0.05


def test_an_ordinary_image():
    rates_wanted = {0: 0.0, 1: 0.3, 2: 0.9}

    class Fixed:
        def __init__(self, i):
            self.i, self.actions = i, Box([(0.0, 1.0)])

        def scores(self, A, D):
            return A[:, 0], np.arange(len(A)) < rates_wanted[self.i] * len(A)

    best, rates = ordinary_image(Fixed, [0, 1, 2], np.random.default_rng(0), share=0.25, draws=50)
    assert best == 1
    assert rates == pytest.approx(rates_wanted)


def test_idle():
    idle = duel().idle
    assert idle["image"] == pytest.approx(scores(duel().image[None])[0, 1:].max())
    assert idle["still"] == pytest.approx(idle["image"])  # this autoencoder reproduces the image


@pytest.mark.parametrize("options", [{"radius": 0.0}, {"reach": -1.0}, {"grid": 1}])
def test_bad_input(options):
    with pytest.raises(ValueError):
        duel(**options)
    with pytest.raises(ValueError, match="pixels lie in"):
        ImageGame(scores, Halves(), np.full((SIDE, SIDE), 2.0), 0, radius=0.1)


def test_the_parsimonious_attack_round_by_round():
    made = duel()
    alone = list(rounds_of(made, 0.15, 40, 0, None, until_success=True))
    assert alone[-1][1]
    assert not any(won for _, won in alone[:-1])
    on = list(rounds_of(made, 0.15, 40, 0, None, until_success=False))
    assert len(on) == 40
    assert on[: len(alone)] == alone
    still = list(rounds_of(made, 0.15, 40, 0, np.zeros((40, 2)), until_success=False))
    assert len(still) == 40


def test_a_defender_that_learns_holds_out_longer():
    """After its first random answers it does better than answering at random all along."""
    made = duel(radius=0.2)
    rng = np.random.default_rng(0)
    chance = np.array([made.actions.points[i] for i in rng.integers(49, size=60)])
    learnt = list(rounds_of(made, 0.2, 60, 1, ContextualDefender(made, 1), until_success=False))
    guessed = list(rounds_of(made, 0.2, 60, 1, chance, until_success=False))
    assert np.mean([s for s, _ in learnt[10:]]) < np.mean([s for s, _ in guessed[10:]]) - 0.02
    again = list(rounds_of(made, 0.2, 60, 1, ContextualDefender(made, 1), until_success=False))
    assert again == learnt


def test_a_defender_with_context_chooses_from_a_grid():
    with pytest.raises(TypeError, match="from a grid of actions, got Box"):
        ContextualDefender(duel(grid=None), 0)
