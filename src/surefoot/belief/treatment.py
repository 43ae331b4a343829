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

from surefoot.belief.outliers import FAR, FAR_BEST, Setting, apart, distances, pursue
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
    outliers : mapping of int to pair of float
        Rows that are not believed: what the others predict there, which takes their value's place, and the variance of
        the noise they are given, both on that scale.

    >>> PLAIN.values(np.array([1.0, 2.0]), None)
    (array([1., 2.]), None)
    """

    warp: Warp = IDENTITY
    outliers: Mapping[int, tuple[float, float]] = field(default_factory=dict)

    @property
    def plain(self) -> bool:
        """Whether values are taken as they are."""
        return self.warp.straight and not self.outliers

    def values(self, y: Array, noise: Array | None) -> tuple[Array, Array | None]:
        """Return the values on the scale, and their noise variances there: through the slope; None as before.

        >>> Treatment(outliers={1: (2.0, 9.0)}).values(np.array([1.0, 5.0]), None)
        (array([1., 2.]), array([nan,  9.]))
        """
        seen = self.warp.forward(y)
        if noise is not None and not self.warp.straight:
            noise = noise * self.warp.slope(y) ** 2
        if self.outliers:
            seen, noise = seen.copy(), np.full(len(y), np.nan) if noise is None else noise.copy()
            for row, (value, variance) in self.outliers.items():
                seen[row], noise[row] = value, variance
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

    >>> from surefoot.belief.gp import GP
    >>> from surefoot.domain import Box
    >>> y = np.arange(12.0)
    >>> y[5] = 1e6
    >>> list(treat(GP.automatic(Box([(0.0, 1.0)])), np.linspace(0.0, 1.0, 12)[:, None], y).outliers)
    [5]
    """
    n = len(y)
    if n < FEWEST or not float(np.ptp(y)) > 1e-12 * float(np.abs(y).max()):
        return PLAIN
    seen = _Blocks(gp, X, y)
    if not apart(y):
        return Treatment(seen.bend())
    treatment = seen.treatment(seen.bend(), noise)
    if treatment.outliers:  # what is bent so that outliers fit need not be bent without them, and the other way round
        rest = np.setdiff1d(np.arange(n), list(treatment.outliers))
        treatment = seen.treatment(_Blocks(gp, X[rest], y[rest]).bend(), noise)
    z = treatment.warp.forward(y)
    wild = [row for row, (value, _) in treatment.outliers.items() if z[row] < value]
    kept = {
        row: (value, variance)
        for row, (value, variance) in treatment.outliers.items()
        if not _confirmed(row, X, z, 0.5 * math.sqrt(variance)) and not (z[row] < value and _walled(gp, row, X, wild))
    }
    return Treatment(treatment.warp, kept)


def _confirmed(row: int, X: Array, z: Array, reach: float) -> bool:
    """Whether another measurement of the same point lies this near."""
    same = (X[row] == X).all(axis=1) & (np.abs(z - z[row]) <= reach)
    return bool(same.sum() > 1)


def _walled(gp: GP, row: int, X: Array, bad: list[int]) -> bool:
    """Whether the nearest other point is as bad: a region where runs go wrong, and not a single run that did."""
    lengths = np.exp([t for t, name in zip(gp.kernel.theta, gp.kernel.names, strict=True) if "lengthscale" in name])
    away = (((X - X[row]) / lengths) ** 2).sum(axis=1)
    away[row] = np.inf
    return int(np.argmin(away)) in bad


class _Blocks:
    """Measurements in blocks, each with its settings: what is looked at together."""

    def __init__(self, gp: GP, X: Array, y: Array) -> None:
        count = -(-len(y) // BLOCK)
        self.y, self.rows = y, [np.arange(first, len(y), count) for first in range(count)]
        self.settings = [_settings(gp, X[rows]) for rows in self.rows]

    def bend(self) -> Warp:
        """Return the warp of highest evidence, equation 1, all measurements believed."""
        warps = [IDENTITY, *bends(self.y)]
        heights = np.array([0.0 if warp.straight else -WORTH for warp in warps])
        for rows, settings in list(zip(self.rows, self.settings, strict=True))[:BLOCKS]:
            z = np.stack([warp.forward(self.y[rows]) for warp in warps])
            heights += logsumexp([setting.evidence(z) for setting in settings], axis=0)
            heights += [float(np.log(warp.slope(self.y[rows])).sum()) for warp in warps]
        return warps[int(np.argmax(heights))]

    def treatment(self, bend: Warp, noise: Array | None) -> Treatment:
        """Return the better of this warp and none by equation 1, with outliers set aside."""
        best, highest = PLAIN, -math.inf
        for warp in (IDENTITY,) if bend.straight else (IDENTITY, bend):
            height, outliers = -WORTH if not warp.straight else 0.0, dict[int, tuple[float, float]]()
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


def _far(setting: Setting, y: Array, noise: Array | None, warp: Warp, aside: Rows) -> dict[int, tuple[float, float]]:
    """Those set aside that are far enough, with what takes the place of their values and noise variances."""
    if not aside.size:
        return {}
    z = warp.forward(y)
    mean, std = distances(setting, z, aside)
    if noise is not None:
        std = np.sqrt(std**2 + np.nan_to_num(noise[aside]) * warp.slope(y[aside]) ** 2)
    rest = np.delete(y, aside)
    spread = float(rest.std())
    if not spread > 0.0:  # two levels, one of them rare
        return {}
    e = z[aside] - mean
    far = np.abs(e) > np.where(e > 0, FAR_BEST, FAR) * std
    far &= (y[aside] > rest.max() + spread) | (y[aside] < rest.min() - spread)
    return {int(i): (float(m), float(d**2)) for i, m, d in zip(aside[far], mean[far], e[far], strict=True)}
