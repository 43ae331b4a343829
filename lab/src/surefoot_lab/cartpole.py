"""Cart-pole: balance a pole on a cart by pushing left or right, simulated for many controllers and episodes at once.

A controller is linear, a 4 × 2 matrix W given as 8 numbers: in state s = (position, speed, angle, angular speed) it
pushes right when the second entry of Wᵀs is the larger one, else left. The score of a controller is the mean length of
an episode, as a share of the longest one.

>>> import numpy as np
>>> task = CartPole(start=(0.0, 0.0, 0.02, 0.0))
>>> push_where_it_falls = np.array([0.0, 0.0, 0.0, 0.0, -1.0, 1.0, -0.5, 0.5])
>>> good, bad = (task.score(sign * push_where_it_falls, np.random.default_rng(0)) for sign in (1, -1))
>>> good > bad
True

Physics, constants and limits are those of Barto, Sutton & Anderson 1983, integrated by Euler steps of 20 ms: an episode
ends when the cart is more than 2.4 from the middle or the pole more than 12 degrees from upright, and after 200 steps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot.domain import Box

__all__ = ["CartPole"]

Array = NDArray[np.float64]

GRAVITY, CART, POLE, HALF_LENGTH, FORCE, STEP = 9.8, 1.0, 0.1, 0.5, 10.0, 0.02
TRACK, TILT = 2.4, math.radians(12.0)


@dataclass(frozen=True)
class CartPole:
    """A balancing task: episodes begin near one state.

    Parameters
    ----------
    start : four numbers
        Position, speed, angle and angular speed that episodes begin around.
    spread : float
        Each coordinate of the beginning is uniform within this distance of ``start``.
    steps : int
        Length of the longest episode.

    >>> CartPole().domain.dimension
    8
    """

    start: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0)
    spread: float = 0.05
    steps: int = 200

    def __post_init__(self) -> None:
        start = tuple(float(value) for value in self.start)
        if len(start) != 4 or not all(math.isfinite(value) for value in start):
            raise ValueError(f"a state is four finite numbers, got {self.start!r}")
        if not self.spread >= 0 or self.steps < 1:
            raise ValueError(f"need spread ≥ 0 and at least one step, got {self.spread!r} and {self.steps!r}")
        object.__setattr__(self, "start", start)

    @property
    def domain(self) -> Box:
        """Controllers: the box [−1, 1]⁸, rows of W one after the other."""
        return Box([(-1.0, 1.0)] * 8)

    def beginnings(self, episodes: int, rng: np.random.Generator) -> Array:
        """Draw where episodes begin, shape (episodes, 4)."""
        return np.array(self.start) + rng.uniform(-self.spread, self.spread, (episodes, 4))

    def lengths(self, controllers: ArrayLike, beginnings: ArrayLike) -> Array:
        """Return the lengths of the episodes, shape (n, episodes), of n controllers from given beginnings.

        >>> CartPole(steps=50).lengths(np.zeros((1, 8)), [[0.0, 0.0, 0.0, 0.0], [3.0, 0.0, 0.0, 0.0]])
        array([[9., 0.]])
        """
        W = np.atleast_2d(np.asarray(controllers, dtype=np.float64)).reshape(-1, 4, 2)
        push = W[:, :, 1] - W[:, :, 0]  # right where push · s > 0
        begin = np.atleast_2d(np.asarray(beginnings, dtype=np.float64))
        state = np.broadcast_to(begin.T[:, None, :], (4, len(push), len(begin))).copy()
        lengths = np.zeros(state.shape[1:])
        for _ in range(self.steps):
            up = (np.abs(state[0]) <= TRACK) & (np.abs(state[2]) <= TILT)
            if not up.any():
                break
            lengths += up
            # What has fallen stays where it fell, so that no number runs away.
            state += np.where(up, STEP * _motion(state, np.einsum("nk,kne->ne", push, state) > 0), 0.0)
        return lengths

    def score(self, controller: ArrayLike, rng: np.random.Generator, episodes: int = 10) -> float:
        """Return the mean share of the longest episode, in [0, 1], over random episodes.

        >>> 0.0 < CartPole().score(np.ones(8), np.random.default_rng(0)) < 0.2
        True
        """
        return float(self.scores(controller, self.beginnings(episodes, rng))[0])

    def scores(self, controllers: ArrayLike, beginnings: ArrayLike) -> Array:
        """Return the mean share of the longest episode, shape (n,), over given beginnings."""
        return self.lengths(controllers, beginnings).mean(axis=1) / self.steps


def _motion(state: Array, right: NDArray[np.bool_]) -> Array:
    """The time derivative of states (4, ...) under a push to the right or to the left."""
    _, speed, angle, turn = state
    sin, cos = np.sin(angle), np.cos(angle)
    total = CART + POLE
    drive = (np.where(right, FORCE, -FORCE) + POLE * HALF_LENGTH * turn**2 * sin) / total
    turning = (GRAVITY * sin - cos * drive) / (HALF_LENGTH * (4.0 / 3.0 - POLE * cos**2 / total))
    return np.stack([speed, drive - POLE * HALF_LENGTH * turning * cos / total, turn, turning])
