"""Parsimonious attack: which blocks of pixels go up and which go down, by local search.

The best perturbation in an L∞ ball is nearly always at a corner, so the question is which set of blocks is raised. Lazy
greedy insertion adds the block that gains most, lazy greedy deletion takes blocks out again; when neither helps, every
block is split into four.

Reference: Moon, An & Song 2019, Algorithms 1 and 2. Difference: upper bounds of gains are refreshed in batches.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from surefoot.attack.ball import NormBall
from surefoot.attack.method import Attack
from surefoot.attack.probe import Probe, Search
from surefoot.errors import NotSupported

__all__ = ["ParsimoniousAttack"]

Array = NDArray[np.float64]
Signs = NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class ParsimoniousAttack(Attack):
    """Local search over blocks of ±radius in an L∞ ball.

    Parameters
    ----------
    block : int
        Side of the first blocks.
    batch : int
        Gains that are asked for at once.

    >>> from surefoot.attack import NormBall, BlackBox
    >>> box = BlackBox(lambda images: np.tile([0.7, 0.3], (len(images), 1)))
    >>> ParsimoniousAttack(block=4).run(box, np.zeros((8, 8)), 1, label=0, ball=NormBall(0.1), budget=20).queries
    20
    """

    block: int = 4
    batch: int = 16

    def __post_init__(self) -> None:
        if self.block < 1 or self.batch < 1:
            raise ValueError(f"block and batch must be at least 1, got {self.block!r} and {self.batch!r}")

    def check(self, shape: tuple[int, ...], ball: NormBall) -> None:
        if ball.norm != "linf":
            raise NotSupported("the parsimonious attack works in L∞ balls")

    def search(self, probe: Probe) -> Search:
        c, H, W = probe.image.shape
        side, raised = self.block, np.zeros((c, H, W), dtype=np.bool_)
        value = float((yield from probe.query(_signed(raised, probe)[None]))[0])
        while True:
            for insert in (True, False):
                raised, value = yield from self._sweep(probe, raised, value, side, insert)
            side = max(1, side // 2)

    def _sweep(
        self, probe: Probe, raised: Signs, value: float, side: int, insert: bool
    ) -> Generator[Array, Array, tuple[Signs, float]]:
        """Lazy greedy: flip the block of highest known gain, after asking again, while a flip helps."""
        c, H, W = raised.shape
        rows, columns = np.meshgrid(np.arange(0, H, side), np.arange(0, W, side), indexing="ij")
        blocks = [(k, int(i), int(j)) for k in range(c) for i, j in zip(rows.ravel(), columns.ravel(), strict=True)]
        open_ = [b for b in blocks if bool(raised[b]) != insert]
        if not open_:
            return raised, value
        gains = np.empty(len(open_))
        for start in range(0, len(open_), self.batch):
            part = open_[start : start + self.batch]
            y = yield from probe.query(np.stack([_signed(_flipped(raised, b, side), probe) for b in part]))
            gains[start : start + len(part)] = y - value
        fresh = np.ones(len(open_), dtype=np.bool_)
        while (best := int(gains.argmax())) >= 0 and gains[best] > 0.0:
            if not fresh[best]:
                trial = _flipped(raised, open_[best], side)
                gains[best] = float((yield from probe.query(_signed(trial, probe)[None]))[0]) - value
                fresh[best] = True
                continue
            raised, value = _flipped(raised, open_[best], side), value + float(gains[best])
            gains[best], fresh[:] = -np.inf, False
        return raised, value


def _flipped(raised: Signs, block: tuple[int, int, int], side: int) -> Signs:
    k, i, j = block
    other = raised.copy()
    other[k, i : i + side, j : j + side] ^= True
    return other


def _signed(raised: Signs, probe: Probe) -> Array:
    return np.where(raised, probe.ball.radius, -probe.ball.radius)
