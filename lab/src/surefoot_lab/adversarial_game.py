"""Attacker against defender of an image classifier, both moving an image through the latent space of an autoencoder.

One round, for an image x with its true class (Dai 2021, section 8.4.2 and appendix E.6.2):

    x′ = decode(encode(x) + a₁), each pixel cut to [x − ε, x + ε]          the attacker's action a₁ ∈ [−2, 2]^d
    x″ = decode(encode(x′) + a₂), each pixel cut to [x′ − ε, x′ + ε]       the defender's action a₂ ∈ [−2, 2]^d

x″ is classified. The attacker gets the *attack score*, the highest probability of a wrong class, the defender one minus
it. The attack succeeds in the round if that probability exceeds the one of the true class. Even the action 0 changes an
image, since the autoencoder does not reproduce it exactly: :attr:`ImageGame.idle` tells what that alone does.

Actions are a grid of ``grid`` values per coordinate, so that beliefs over joint actions are tables; with ``grid=None``
they are a box.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot.domain import Box, Candidates, Domain
from surefoot.games import Game, Match

__all__ = ["ImageGame", "Latent", "ordinary_image"]

Array = NDArray[np.float64]


class Latent(Protocol):
    """What is needed of an autoencoder: :class:`surefoot_lab.vae.Autoencoder`, or anything like it.

    >>> class Corner:
    ...     dimension = 1
    ...     def encode(self, images):
    ...         return images[:, 0, :1]
    ...     def decode(self, Z):
    ...         return np.tile(Z[:, :, None], (1, 2, 2))
    >>> Corner().decode(np.ones((1, 1))).shape
    (1, 2, 2)
    """

    @property
    def dimension(self) -> int:
        """How many numbers stand for an image."""

    def encode(self, images: Array) -> Array:
        """Return latent points (k, dimension) of images (k, ...)."""
        ...

    def decode(self, Z: Array) -> Array:
        """Return images (k, ...) of latent points (k, dimension)."""
        ...


class ImageGame:
    """The payoffs of attacker and defender on one image.

    Parameters
    ----------
    probabilities : callable
        From images (k, ...) to class probabilities (k, classes).
    latent : Latent
        The autoencoder that both use.
    image : array
        Pixels in [0, 1].
    label : int
        Its true class.
    radius : float
        Most that each of them may change a pixel, ε.
    reach : float
        Largest change of a latent coordinate.
    grid : int, optional
        Values of each coordinate of an action; None: a box.

    >>> from surefoot.games import Player, play
    >>> class Corner:
    ...     dimension = 1
    ...     def encode(self, images):
    ...         return images[:, 0, :1]
    ...     def decode(self, Z):
    ...         return np.clip(np.tile(Z[:, :, None], (1, 2, 2)), 0.0, 1.0)
    >>> def bright(images):
    ...     p = images.mean(axis=(1, 2))
    ...     return np.column_stack([1.0 - p, p])
    >>> duel = ImageGame(bright, Corner(), np.full((2, 2), 0.4), 0, radius=0.2, grid=5)
    >>> score, won = duel.scores(np.array([[2.0], [2.0]]), np.array([[0.0], [-2.0]]))
    >>> score.round(3), won
    (array([0.6, 0.4]), array([ True, False]))
    >>> players = [Player(duel.actions, others=[duel.actions], position=i, level=i, seed=i) for i in range(2)]
    >>> match = play(duel.game, players, rounds=3)
    >>> duel.successes(match).shape
    (3,)
    """

    def __init__(
        self,
        probabilities: Callable[[Array], Array],
        latent: Latent,
        image: ArrayLike,
        label: int,
        *,
        radius: float,
        reach: float = 2.0,
        grid: int | None = 19,
    ) -> None:
        if not radius > 0 or not reach > 0:
            raise ValueError(f"radius and reach must be positive, got {radius!r} and {reach!r}")
        if grid is not None and grid < 2:
            raise ValueError(f"grid must be at least 2, got {grid!r}")
        self.probabilities, self.latent, self.radius = probabilities, latent, float(radius)
        self.image, self.label = np.asarray(image, dtype=np.float64), int(label)
        if self.image.min() < 0.0 or self.image.max() > 1.0:
            raise ValueError(f"pixels lie in [0, 1], got {self.image.min():g} to {self.image.max():g}")
        self._latent_point = latent.encode(self.image[None])
        box = Box([(-reach, reach)] * latent.dimension)
        self.actions: Domain = box if grid is None else Candidates(_grid(box, grid))
        self._known: dict[bytes, tuple[float, bool]] = {}
        self.game = Game(self._payoffs, [self.actions, self.actions])

    def attacked(self, A: Array) -> Array:
        """Return the attacker's images x′ (k, ...) for actions A (k, d)."""
        moved = self.latent.decode(self._latent_point + A)
        return np.clip(moved, self.image - self.radius, self.image + self.radius)

    def defended(self, images: Array, A: Array) -> Array:
        """Return the defender's images x″ (k, ...) for received images (k, ...) and actions A (k, d)."""
        moved = self.latent.decode(self.latent.encode(images) + A)
        return np.clip(moved, images - self.radius, images + self.radius)

    def judged(self, images: Array) -> tuple[Array, NDArray[np.bool_]]:
        """Return the attack scores (k,) of images as they are classified, and whether the attack has succeeded (k,)."""
        p = np.asarray(self.probabilities(images), dtype=np.float64)
        wrong = np.delete(p, self.label, axis=1).max(axis=1)
        return wrong, np.asarray(wrong > p[:, self.label])

    def scores(self, A: Array, D: Array | None) -> tuple[Array, NDArray[np.bool_]]:
        """Return scores (k,) and successes (k,) of attacks A (k, d) against defenses D (k, d); None: no defender."""
        images = self.attacked(A)
        return self.judged(images if D is None else self.defended(images, D))

    @property
    def idle(self) -> dict[str, float]:
        """The attack score of the image itself, and after nobody has moved: the autoencoder's own doing."""
        still = np.zeros((1, self.latent.dimension))
        return {"image": float(self.judged(self.image[None])[0][0]), "still": float(self.scores(still, still)[0][0])}

    def successes(self, match: Match) -> NDArray[np.bool_]:
        """Return in which rounds of a match the attack succeeded, shape (T,)."""
        return np.array([self._round(done.actions)[1] for done in match.rounds], dtype=np.bool_)

    def _round(self, actions: Sequence[Array]) -> tuple[float, bool]:
        key = b"".join(np.asarray(action, dtype=np.float64).tobytes() for action in actions)
        if key not in self._known:
            score, won = self.scores(actions[0][None], actions[1][None])
            self._known[key] = float(score[0]), bool(won[0])
        return self._known[key]

    def _payoffs(self, actions: Sequence[Array]) -> list[float]:
        score = self._round(actions)[0]
        return [score, 1.0 - score]


def _grid(box: Box, grid: int) -> Array:
    axes = [np.linspace(low, high, grid) for low, high in box.bounds]
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, box.dimension)


def ordinary_image(
    make: Callable[[int], ImageGame],
    candidates: Sequence[int],
    rng: np.random.Generator,
    *,
    share: float,
    draws: int,
    defended: bool = True,
) -> tuple[int, dict[int, float]]:
    """Return the image on which random play succeeds about as often as wanted, and how often it does on each.

    The study shows one image "on which attack and defense are about equally hard" (footnote 8); this is a rule for it.

    Parameters
    ----------
    make : callable
        From the number of an image to its game.
    candidates : sequence of int
        The images to choose from.
    rng : numpy.random.Generator
        Draws the joint actions, the same for every image.
    share : float
        Successes of random play that come nearest to what is wanted.
    draws : int
        Joint actions per image.
    defended : bool
        Whether there is a defender.

    >>> ordinary_image(lambda i: None, [], np.random.default_rng(0), share=0.1, draws=5)
    Traceback (most recent call last):
    ...
    ValueError: there is no image to choose from
    """
    if not len(candidates):
        raise ValueError("there is no image to choose from")
    rates: dict[int, float] = {}
    joint: Any = None
    for i in candidates:
        duel = make(i)
        if joint is None:
            joint = [duel.actions.sample(draws, rng) for _ in range(2)]
        rates[int(i)] = float(duel.scores(joint[0], joint[1] if defended else None)[1].mean())
    return min(rates, key=lambda i: abs(rates[i] - share)), rates
