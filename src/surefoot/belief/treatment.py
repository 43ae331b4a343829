"""Treatment of values: on which scale they are seen, and which of them are not believed, chosen by evidence.

For every warp w that is tried (:func:`surefoot.belief.warp.bends`, and none at all) the evidence of the values is that
of z = w(y) with its outliers set aside, and the logarithm of the Jacobian,

    log p(y | w) = log mean_s p(z | setting s) + Σᵢ log w'(yᵢ),                                                      (1)

averaged over a few settings s of length-scale and noise, with mean and variance in closed form
(:mod:`surefoot.belief.outliers`). A bend must be worth :data:`WORTH` nats. No hyper-parameter is fitted for it: one
factorization for each setting serves all warps, so that this costs less than a fit. It is a function of the
measurements alone, and a rebuilt policy sees them as the live one did.

>>> from surefoot.belief.gp import GP
>>> from surefoot.domain import Box
>>> domain = Box([(-2.0, 2.0)])
>>> X = np.linspace(-2.0, 2.0, 15)[:, None]
>>> treat(GP.automatic(domain), X, -np.exp(4.0 * X[:, 0])).warp.power
0.0
>>> treat(GP.automatic(domain), X, np.sin(X[:, 0])).warp.straight
True
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from surefoot.belief.outliers import FAR, FAR_BEST, Setting, distances, pursue
from surefoot.belief.warp import IDENTITY, Warp, bends

if TYPE_CHECKING:
    from surefoot.belief.gp import GP

__all__ = ["PLAIN", "Treatment", "treat"]

Array = NDArray[np.float64]
Rows = NDArray[np.intp]

WORTH = 5.0  # nats that a bend must gain
LENGTHS, NOISES = (0.3, 1.0, 3.0), (1e-6, 1e-2, 0.25)  # settings: of the prior's length-scales, of the signal variance
FEWEST = 6  # measurements; fewer are taken as they are
BLOCK = 128  # measurements that are looked at together
BLOCKS = 4  # blocks that a warp is chosen by


@dataclass(frozen=True)
class Treatment:
    """How the values are seen.

    Attributes
    ----------
    warp : Warp
        The scale.
    outliers : mapping of int to float
        Rows that are not believed, with the noise variance they are given on that scale.

    >>> PLAIN.values(np.array([1.0, 2.0]), None)
    (array([1., 2.]), None)
    """

    warp: Warp = IDENTITY
    outliers: Mapping[int, float] = field(default_factory=dict)

    @property
    def plain(self) -> bool:
        """Whether values are taken as they are."""
        return self.warp.straight and not self.outliers

    def values(self, y: Array, noise: Array | None) -> tuple[Array, Array | None]:
        """Return the values on the scale, and their noise variances there: through the slope; None as before.

        >>> Treatment(outliers={1: 9.0}).values(np.array([1.0, 4.0]), None)[1]
        array([nan,  9.])
        """
        seen = self.warp.forward(y)
        if noise is not None and not self.warp.straight:
            noise = noise * self.warp.slope(y) ** 2
        if self.outliers:
            noise = np.full(len(y), np.nan) if noise is None else noise.copy()
            for row, variance in self.outliers.items():
                if row < len(y):
                    noise[row] = variance
        return seen, noise


PLAIN = Treatment()
"""Values as they are."""


def treat(gp: GP, X: Array, y: Array, noise: Array | None = None) -> Treatment:
    """Return how the values are best seen.

    Parameters
    ----------
    gp : GP
        Its kernel says which length-scales are usual.
    X, y : array of shape (n, e) and (n,)
        Measurements; higher values are better.
    noise : array of shape (n,), optional
        Their noise variances, where they brought any. They keep a measurement from being an outlier.
    """
    n = len(y)
    if n < FEWEST or not float(np.ptp(y)) > 1e-12 * float(np.abs(y).max()):
        return PLAIN
    seen = _Blocks(gp, X, y)
    treatment = seen.treatment(seen.bend(), noise)
    if treatment.outliers:  # what is bent so that outliers fit need not be bent without them, and the other way round
        rest = np.setdiff1d(np.arange(n), list(treatment.outliers))
        treatment = seen.treatment(_Blocks(gp, X[rest], y[rest]).bend(), noise)
    z = treatment.warp.forward(y)
    kept = {row: v for row, v in treatment.outliers.items() if not _confirmed(row, X, z, 0.5 * math.sqrt(v))}
    return Treatment(treatment.warp, kept)


def _confirmed(row: int, X: Array, z: Array, reach: float) -> bool:
    """Whether another measurement of the same point lies this near."""
    same = (X[row] == X).all(axis=1) & (np.abs(z - z[row]) <= reach)
    return bool(same.sum() > 1)


class _Blocks:
    """Measurements in blocks, each with its settings: what is looked at together."""

    def __init__(self, gp: GP, X: Array, y: Array) -> None:
        count = -(-len(y) // BLOCK)
        self.y, self.rows = y, [np.arange(first, len(y), count) for first in range(count)]
        self.settings = [_settings(gp, X[rows]) for rows in self.rows]

    def bend(self) -> Warp:
        """Return the warp of highest evidence, equation 1, all measurements believed."""
        best, highest = IDENTITY, -math.inf
        for warp in (IDENTITY, *bends(self.y)):
            height = -WORTH if not warp.straight else 0.0
            for rows, settings in list(zip(self.rows, self.settings, strict=True))[:BLOCKS]:
                y = self.y[rows]
                height += _averaged([setting.evidence(warp.forward(y)) for setting in settings], y, warp)
            if height > highest:
                best, highest = warp, height
        return best

    def treatment(self, bend: Warp, noise: Array | None) -> Treatment:
        """Return the better of this warp and none by equation 1, with outliers set aside."""
        best, highest = PLAIN, -math.inf
        for warp in (IDENTITY,) if bend.straight else (IDENTITY, bend):
            height, outliers = -WORTH if not warp.straight else 0.0, dict[int, float]()
            for rows, settings in zip(self.rows, self.settings, strict=True):
                y, own = self.y[rows], None if noise is None else noise[rows]
                paths = [pursue(setting, warp.forward(y)) for setting in settings]
                height += _averaged([height for height, _ in paths], y, warp)
                top = int(np.argmax([height for height, _ in paths]))
                outliers |= {int(rows[i]): v for i, v in _far(settings[top], y, own, warp, paths[top][1]).items()}
            if height > highest:
                best, highest = Treatment(warp, dict(sorted(outliers.items()))), height
        return best


def _settings(gp: GP, X: Array) -> list[Setting]:
    """The points under every length-scale and noise."""
    kernel, found = gp.kernel, []
    lengths = np.array(["lengthscale" in name for name in kernel.names])
    level = kernel.names.index("variance")
    for factor in LENGTHS:
        theta = kernel.theta + math.log(factor) * lengths
        theta[level] = 0.0
        K = kernel.with_theta(theta)(X)
        found += [Setting.of(K, noise) for noise in NOISES]
    return found


def _averaged(heights: list[float], y: Array, warp: Warp) -> float:
    """Equation 1 from the evidence of z under each setting."""
    return float(logsumexp(heights)) - math.log(len(heights)) + float(np.log(warp.slope(y)).sum())


def _far(setting: Setting, y: Array, noise: Array | None, warp: Warp, aside: Rows) -> dict[int, float]:
    """Those set aside that are far enough, with the noise variances that they get."""
    if not aside.size:
        return {}
    z = warp.forward(y)
    mean, std = distances(setting, z, aside)
    if noise is not None:
        std = np.sqrt(std**2 + np.nan_to_num(noise[aside]) * warp.slope(y[aside]) ** 2)
    e, spread = z[aside] - mean, float(np.delete(y, aside).std())
    far = (np.abs(e) > np.where(e > 0, FAR_BEST, FAR) * std) & (np.abs(y[aside] - warp.inverse(mean)) > spread)
    return {int(i): float(distance**2) for i, distance in zip(aside[far], e[far], strict=True)}
