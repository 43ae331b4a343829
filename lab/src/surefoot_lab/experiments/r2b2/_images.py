"""Attacker against defender on MNIST: networks, images and seatings shared by the image experiments.

Both move an image through the plane of an autoencoder (:mod:`surefoot_lab.adversarial_game`), each pixel by at most
0.2. Actions are a grid of 19 × 19 points of [−2, 2]², where the study has the square itself and a global search in it;
beliefs over the 130,321 joint actions are then tables. Hyper-parameters are fitted every ten rounds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot.games import GPMW, Match, Player, RandomStrategy, Strategy, play
from surefoot.games.payoffs import JointActions
from surefoot.loop.streams import stream
from surefoot_lab import Replicate, Trace
from surefoot_lab.adversarial_game import ImageGame, ordinary_image
from surefoot_lab.classifiers import Classifier, image_classifier
from surefoot_lab.datasets import load
from surefoot_lab.vae import Autoencoder, image_autoencoder

Array = NDArray[np.float64]

RADIUS = 0.2
INITIAL = 5  # joint actions drawn at random before the first round
SHARE = 0.2  # successes of random play on the image that is shown alone
BRIEF = 3, 10  # epochs of both networks in quick runs: half a minute instead of two

SEATINGS = {  # attacker, defender, and whether level 1 is Lite
    "0v0": (0, 0, False),
    "1v0": (1, 0, False),
    "1v0 Lite": (1, 0, True),
    "0v1": (0, 1, False),
    "0v1 Lite": (0, 1, True),
    "2v1": (2, 1, False),
    "1v2": (1, 2, False),
}
LEVEL0: dict[str, type[Strategy]] = {"random": RandomStrategy, "GP-MW": GPMW}


def named(seating: str, level0: str) -> str:
    """Name of a seating with a level-0 strategy, as a method."""
    return f"{seating}, {level0}"


@cache
def networks(architecture: str) -> tuple[Classifier, Autoencoder, Array, NDArray[Any]]:
    """The classifier, the autoencoder, and unseen images that are classified correctly, with their classes."""
    classifier_epochs, autoencoder_epochs = BRIEF if architecture == "small" else (None, 50)
    classifier = image_classifier("mnist", architecture=architecture, epochs=classifier_epochs)  # type: ignore[arg-type]
    vae = image_autoencoder("mnist", epochs=autoencoder_epochs)
    stored = load("mnist")
    images = np.asarray(stored["X_test"] / np.float32(255.0), dtype=np.float64)
    good = np.flatnonzero(classifier.logits(images).argmax(axis=1) == stored["y_test"])
    order = stream(0, "images", 0).permutation(good)
    return classifier, vae, images[order], stored["y_test"][order].astype(int)


def duel_on(image: int, architecture: str) -> ImageGame:
    """The game on one image."""
    classifier, vae, images, labels = networks(architecture)
    number = image % len(images)
    return ImageGame(classifier.probabilities, vae, images[number], int(labels[number]), radius=RADIUS)


@cache
def ordinary(architecture: str, *, defended: bool = True) -> ImageGame:
    """The game on an image on which random play succeeds in about one round of five."""
    image, _ = ordinary_image(
        lambda i: duel_on(i, architecture),
        range(min(100, len(networks(architecture)[2]))),
        stream(0, "ordinary", 0),
        share=SHARE,
        draws=200,
        defended=defended,
    )
    return duel_on(image, architecture)


def seat(
    duel: ImageGame, position: int, level: int, strategies: Strategy | Sequence[Strategy], replicate: Replicate,
    *, lite: bool = False, samples: int | None = None, shared: bool = False,
) -> Player:  # fmt: skip
    """A player of the game; ``lite`` takes one draw where level 1 takes an expectation."""
    return Player(
        duel.actions,
        others=[duel.actions],
        position=position,
        level=level,
        strategies=strategies,
        gp=JointActions(duel.game.spaces).automatic().refit(every=10),
        samples=None if lite else samples,
        lite=lite,
        share_samples=shared,
        seed=int(replicate.rng("player", position).integers(2**53)),
    )


def contest(
    duel: ImageGame, seating: str, level0: str, replicate: Replicate, *, samples: int | None = None,
    shared: bool = False,
) -> Match:  # fmt: skip
    """Play one seating; all start from the same joint actions."""
    attacker, defender, lite = SEATINGS[seating]
    # The rate of GP-MW is that of its theorem, which knows the horizon.
    strategy: Strategy = RandomStrategy() if level0 == "random" else GPMW(horizon=replicate["horizon"])
    players = [
        seat(duel, i, level, strategy, replicate, lite=lite, samples=samples, shared=shared)
        for i, level in enumerate((attacker, defender))
    ]
    return play(duel.game, players, replicate["horizon"], initial=INITIAL, seed=replicate.integer)


def trace_of(duel: ImageGame, match: Match) -> Trace:
    """The mean attack score so far, round by round, and how many rounds the attack has won."""
    score = match.payoffs[:, 0]
    rounds = np.arange(1, len(score) + 1)
    won = duel.successes(match)
    return Trace(score=np.cumsum(score) / rounds, successes=float(won.sum()), wins=np.cumsum(won))


def all_seatings(
    duel: ImageGame, replicate: Replicate, level0: Sequence[str], seatings: Sequence[str] = tuple(SEATINGS)
) -> Mapping[str, Trace]:
    """Play all seatings with some level-0 strategies."""
    return {
        named(seating, how): trace_of(duel, contest(duel, seating, how, replicate, samples=replicate["samples"]))
        for how in level0
        for seating in seatings
    }
