"""One image under attack: what may be asked about it, what was answered, and what came of it.

An attack is a generator that yields images and is sent their scores, so that many attacks can share each call of the
model. It asks through its :class:`Probe`, which keeps every perturbation in the ball and every pixel in its range,
counts the queries, and ends the attack with its first success or its last query.

The objective to maximize, with the class probabilities F(x): against a target t

    y = log F_t − log Σ_{c≠t} F_c,            (5.2)

and without one, against the true class l, y = max_{c≠l} log F_c − log F_l. A positive y is a success. The converse
holds only for the second, so that success is always read off the largest score.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from surefoot.attack.ball import NormBall
from surefoot.loop.streams import stream
from surefoot.moved import renamed

__all__ = ["AttackResult", "Finished", "PerturbationLoop", "Probe", "Search", "log_odds"]
__getattr__ = renamed(__name__, {"Round": "PerturbationLoop"})

Array = NDArray[np.float64]
Search = Generator[Array, Array, None]
FLOOR = -30.0  # of the objective: a probability that float32 has rounded to nothing says no more than this


class Finished(Exception):
    """The attack on an image is over: it has succeeded, or its queries are spent."""


def log_odds(logs: Array, label: int, target: int | None) -> tuple[Array, NDArray[np.bool_]]:
    """Return the objective (k,) and whether the attack has succeeded (k,) from log-probabilities (k, classes).

    >>> logs = np.log([[0.6, 0.3, 0.1], [0.3, 0.4, 0.3]])
    >>> log_odds(logs, 0, 1)[0].round(3)
    array([-0.847, -0.405])
    >>> log_odds(logs, 0, 1)[1], log_odds(logs, 0, None)[0].round(3)
    (array([False,  True]), array([-0.693,  0.288]))
    """
    winner = logs.argmax(axis=1)
    if target is None:
        others = np.delete(logs, label, axis=1)
        return others.max(axis=1) - logs[:, label], winner != label
    others = np.delete(logs, target, axis=1)
    return logs[:, target] - np.asarray(logsumexp(others, axis=1)), winner == target


@dataclass(frozen=True)
class PerturbationLoop:
    """One perturbation loop: its latent size, its queries, its best objective, and whether it was given up.

    >>> PerturbationLoop(size=14, start=30, queries=9, best=-4.2, stopped=True).size
    14
    """

    size: int
    start: int
    queries: int
    best: float
    stopped: bool


@dataclass(frozen=True, eq=False)
class AttackResult:
    """What came of an attack.

    Attributes
    ----------
    adversarial, image : array
        The image that was found, in the layout of the one that was given, and that one; without success, the nearest
        miss.
    success : bool
        Whether the model answers the target (or, without one, anything but the true class) for it.
    queries : int
        Images that the model was asked about, with the initial design and the look at the given image, where it took
        one.
    trace : array of shape (queries,)
        The objective of every query, in order.
    rounds : tuple of PerturbationLoop
        The perturbation loops, for attacks that have them.
    label, target : int, int or None
        True class, and the class to reach.
    initial : int
        Queries that were spent before the search began.
    seed : int
        Seed of this image's attack: the attack alone, with this seed, is the same.

    >>> result = AttackResult(np.ones((2, 2)), np.zeros((2, 2)), True, 3, np.array([-2.0, -3.0, 1.0]))
    >>> result.best
    array([-2., -2.,  1.])
    """

    adversarial: Array
    image: Array
    success: bool
    queries: int
    trace: Array
    rounds: tuple[PerturbationLoop, ...] = ()
    label: int | None = None
    target: int | None = None
    initial: int = 0
    seed: int = 0

    @property
    def best(self) -> Array:
        """The highest objective so far after every query, shape (queries,)."""
        return np.maximum.accumulate(self.trace) if len(self.trace) else self.trace

    @property
    def perturbation(self) -> Array:
        """What was added to the image."""
        change: Array = self.adversarial - self.image
        return change

    def capped(self, budget: int) -> int:
        """Return the queries of a success, and the whole budget of a failure.

        >>> AttackResult(np.ones(1), np.zeros(1), False, 3, np.array([-2.0, -3.0, -1.0])).capped(900)
        900
        """
        return min(self.queries, budget) if self.success else budget

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the images, as strict JSON."""
        return {
            "success": self.success,
            "queries": self.queries,
            "label": self.label,
            "target": self.target,
            "initial": self.initial,
            "seed": self.seed,
            "trace": self.trace.tolist(),
            "rounds": [vars(each) for each in self.rounds],
        }


@dataclass
class Probe:
    """The state of one attack; attacks ask through :meth:`query`.

    Attributes
    ----------
    image : array of shape (c, H, W)
        The image, channels first.
    ball : NormBall
        How far it may be moved.
    clip : tuple of float
        Range of the pixels.
    budget : int
        Queries that are allowed in all.
    label, target : int or None
        True class (None until it was asked for), and class to reach.
    seed : int
        Names the random draws.
    floor : float
        Lowest objective that an attack is told; the trace keeps the true ones. Logits need none.

    >>> probe = Probe(np.zeros((1, 4, 4)), NormBall(0.1), (0.0, 1.0), budget=5, label=0, target=1, seed=0)
    >>> asking = probe.query(np.full((1, 1, 4, 4), 9.0))
    >>> float(next(asking).max())        # the image that would be asked about
    0.1
    """

    image: Array
    ball: NormBall
    clip: tuple[float, float]
    budget: int
    label: int | None
    target: int | None
    seed: int
    spent: int = 0
    initial: int = 0
    success: bool = False
    trace: list[float] = field(default_factory=list)
    rounds: list[PerturbationLoop] = field(default_factory=list)
    best: float = -np.inf
    found: Array | None = None
    floor: float = FLOOR

    @property
    def left(self) -> int:
        """Queries that are left."""
        return self.budget - self.spent

    def stream(self, purpose: str, step: int = 0) -> np.random.Generator:
        """Return the generator of one purpose at one step."""
        return stream(self.seed, purpose, step)

    def candidates(self, perturbations: Array) -> Array:
        """Return the images (k, c, H, W) that perturbations lead to: in the ball, and in the range of the pixels."""
        moved = self.image + self.ball.project(perturbations)
        if self.ball.norm == "linf":
            moved = np.clip(moved, self.image - self.ball.radius, self.image + self.ball.radius)
        return np.clip(moved, *self.clip)

    def query(self, perturbations: Array) -> Generator[Array, Array, Array]:
        """Ask about perturbations (k, c, H, W) and return their objectives (k,), not below :attr:`floor`.

        Where fewer than k queries are left only the first are asked about. Ends the attack by :class:`Finished` when
        one of them succeeds, or the last query is spent.
        """
        if self.left < 1:
            raise Finished
        images = self.candidates(perturbations[: self.left])
        y = yield from self._ask(images)
        if self.left < 1:
            raise Finished
        return np.maximum(y, self.floor)

    def _ask(self, images: Array) -> Generator[Array, Array, Array]:
        logs = yield images
        self.spent += len(images)
        y, wins = log_odds(logs, self.label or 0, self.target)
        self.trace += y.tolist()
        if wins.any():  # the first success ends the attack, whatever a later one of the same batch scores
            self.success, self.found = True, images[int(wins.argmax())]
            self.best = float(y[int(wins.argmax())])
            raise Finished
        if y.max() > self.best:
            self.best, self.found = float(y.max()), images[int(y.argmax())]
        return y

    def result(self, restore: Any) -> AttackResult:
        """Return the result; ``restore`` brings an image (c, H, W) into the layout it was given in."""
        found = self.image if self.found is None else self.found
        return AttackResult(
            adversarial=restore(found),
            image=restore(self.image),
            success=self.success,
            queries=self.spent,
            trace=np.array(self.trace),
            rounds=tuple(self.rounds),
            label=self.label,
            target=self.target,
            initial=min(self.initial, self.spent),  # one that was prepared may never have been asked about
            seed=self.seed,
        )
