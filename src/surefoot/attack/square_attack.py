"""Square attack: random squares of ±radius, kept where they help.

Begins with vertical stripes; then sets every pixel of a random square to the border of the ball, one random sign per
channel, and keeps the change if the objective rises. The share of pixels that a square covers shrinks with the queries.

Reference: Andriushchenko, Croce, Flammarion & Hein 2020, Algorithms 1 and 2 (the L∞ version, which is the one here),
with their schedule: halved at 0.1, 0.5, 2, 5, 10, 20, 40, 60 and 80 % of the queries.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from surefoot.attack.ball import NormBall
from surefoot.attack.method import Attack
from surefoot.attack.probe import Probe, Search
from surefoot.errors import NotSupported

__all__ = ["SquareAttack"]

HALVED = (0.001, 0.005, 0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8)


@dataclass(frozen=True, kw_only=True)
class SquareAttack(Attack):
    """Random squares in an L∞ ball; ``share`` of the pixels are covered by the first ones.

    >>> from surefoot.attack import NormBall, BlackBox
    >>> box = BlackBox(lambda images: np.tile([0.7, 0.3], (len(images), 1)))
    >>> SquareAttack().run(box, np.zeros((8, 8)), 1, label=0, ball=NormBall(0.1), budget=20).queries
    20
    """

    share: float = 0.8

    def __post_init__(self) -> None:
        if not 0.0 < self.share <= 1.0:
            raise ValueError(f"share must lie in (0, 1], got {self.share!r}")

    def check(self, shape: tuple[int, ...], ball: NormBall) -> None:
        if ball.norm != "linf":
            raise NotSupported("this square attack works in L∞ balls")

    def search(self, probe: Probe) -> Search:
        (c, H, W), radius = probe.image.shape, probe.ball.radius
        delta = np.repeat(probe.stream("stripes").choice([-radius, radius], (c, 1, W)), H, axis=1)
        best = float((yield from probe.query(delta[None]))[0])
        while True:
            rng = probe.stream("square", probe.spent)
            share = self.share / 2 ** sum(probe.spent / probe.budget > limit for limit in HALVED)
            side = min(max(1, round(math.sqrt(share * H * W))), H, W)
            top, left = int(rng.integers(H - side + 1)), int(rng.integers(W - side + 1))
            window = np.s_[:, top : top + side, left : left + side]
            trial = delta.copy()
            for _ in range(10):  # a square that changes nothing is not worth a query
                trial[window] = rng.choice([-radius, radius], (c, 1, 1))
                if (trial != delta).any():
                    break
            value = float((yield from probe.query(trial[None]))[0])
            if value > best:
                best, delta = value, trial
