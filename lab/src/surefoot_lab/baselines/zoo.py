"""ZOO and AutoZOOM: gradient descent on gradients that are estimated by queries.

Both minimize const · max(0, −y) + ‖δ‖² by Adam, y being the objective of the attack. ZOO estimates the derivatives of
128 random pixels by symmetric differences, which is 256 queries per step; AutoZOOM that along random directions, at a
low resolution, which is two.

References: Chen, Zhang, Sharma, Yi & Hsieh 2017, Algorithm 2; Tu et al. 2019, Algorithm 1. Differences: perturbations
are kept in the ball during the search (the originals minimize a norm and are judged by the ball afterwards), the hinge
is on the log-odds of the target against all other classes together, and const stays 1 in so few queries.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from surefoot.attack.ball import NormBall
from surefoot.attack.method import Attack
from surefoot.attack.probe import Probe, Search
from surefoot.attack.resize import Resize

__all__ = ["ZOO", "AutoZOOM"]

Array = NDArray[np.float64]


class _Adam:
    """Adam with bias correction, over the coordinates that a gradient names."""

    def __init__(self, size: int, rate: float) -> None:
        self.rate, self.m, self.v, self.t = rate, np.zeros(size), np.zeros(size), np.zeros(size)

    def step(self, rows: NDArray[np.intp], gradient: Array) -> Array:
        self.t[rows] += 1.0
        self.m[rows] += 0.1 * (gradient - self.m[rows])
        self.v[rows] += 0.001 * (gradient**2 - self.v[rows])
        m, v = self.m[rows] / (1.0 - 0.9 ** self.t[rows]), self.v[rows] / (1.0 - 0.999 ** self.t[rows])
        change: Array = -self.rate * m / (np.sqrt(v) + 1e-8)
        return change


@dataclass(frozen=True, kw_only=True)
class ZOO(Attack):
    """Coordinate-wise estimates; one step costs twice ``coordinates`` queries.

    >>> from surefoot.attack import NormBall, BlackBox
    >>> box = BlackBox(lambda images: np.tile([0.7, 0.3], (len(images), 1)))
    >>> ZOO(coordinates=4).run(box, np.zeros((8, 8)), 1, label=0, ball=NormBall(0.1), budget=20).queries
    20
    """

    coordinates: int = 128
    difference: float = 1e-4
    rate: float = 1e-2
    constant: float = 1.0

    def search(self, probe: Probe) -> Search:
        size = probe.image.size
        delta, adam, step = np.zeros(size), _Adam(size, self.rate), 0
        count = min(self.coordinates, size)
        while True:
            rows = probe.stream("coordinates", step).choice(size, count, replace=False)
            trials = np.repeat(delta[None], 2 * count, axis=0)
            trials[np.arange(count), rows] += self.difference
            trials[np.arange(count, 2 * count), rows] -= self.difference
            y = yield from probe.query(trials.reshape(-1, *probe.image.shape))
            hinge = self.constant * np.maximum(0.0, -y)
            gradient = (hinge[:count] - hinge[count:]) / (2.0 * self.difference) + 2.0 * delta[rows]
            delta[rows] += adam.step(rows, gradient)
            delta = probe.ball.project(delta.reshape(1, *probe.image.shape)).ravel()
            step += 1


@dataclass(frozen=True, kw_only=True)
class AutoZOOM(Attack):
    """One random direction per step, at a low resolution; one step costs 1 + ``directions`` queries.

    >>> from surefoot.attack import NormBall, BlackBox
    >>> box = BlackBox(lambda images: np.tile([0.7, 0.3], (len(images), 1)))
    >>> AutoZOOM(size=4).run(box, np.zeros((8, 8)), 1, label=0, ball=NormBall(0.1), budget=20).queries
    20
    """

    size: int = 14
    directions: int = 1
    difference: float = 5e-2
    rate: float = 1e-2
    constant: float = 1.0

    def check(self, shape: tuple[int, ...], ball: NormBall) -> None:
        Resize(self.size, (shape[1], shape[2]))

    def search(self, probe: Probe) -> Search:
        c, H, W = probe.image.shape
        resize, d = Resize(self.size, (H, W)), c * self.size**2
        delta, adam, step = np.zeros(d), _Adam(d, self.rate), 0
        rows = np.arange(d)
        while True:
            draws = probe.stream("directions", step).standard_normal((self.directions, d))
            draws /= np.sqrt(np.vecdot(draws, draws))[:, None]
            trials = np.vstack([delta, delta + self.difference * draws])
            y = yield from probe.query(resize.up(trials.reshape(-1, c, self.size, self.size)))
            loss = self.constant * np.maximum(0.0, -y) + np.vecdot(trials, trials)
            gradient = (d / self.difference) * ((loss[1:] - loss[0]) @ draws) / self.directions
            delta = delta + adam.step(rows, gradient)
            delta = np.clip(delta, -probe.ball.radius, probe.ball.radius)
            step += 1
