"""Warps: values seen on a scale on which they are easier to believe about.

A valley whose walls are a thousand times higher than anything that matters at its bottom is no draw of a Gaussian
process; the logarithm of the height may well be one. A :class:`Warp` is a strictly increasing function of the value y,
bent below a knot at the best value so far, where r = (knot − y)/scale is how much worse a value is:

    z = knot − scale · b(r) for r > 0, and z = y for r ≤ 0;    b(r) = ((1 + r)^p − 1)/p, at p = 0 log(1 + r).       (1)

That is a logarithm (p = 0) or a root with a shift, one half of Yeo and Johnson's transformation. Better values than any
before are on a straight line of the same slope, so that a warp maps all numbers onto all numbers: the unknown maximum
has a place, and quantiles map back exactly. Bad values come closer to the others; what is near the best one stays as it
is. Tails of *good* values are not bent: that made the search for the maximum less precise (decision 016).

>>> warp = Warp(knot=0.0, scale=1.0, power=0.0)
>>> warp.forward([1.0 - np.exp(3.0), 0.0, 5.0]).round(6)
array([-3.,  0.,  5.])
>>> warp.inverse(warp.forward([-1e6, 2.0])).round(3)
array([-1.e+06,  2.e+00])

References: Yeo & Johnson 2000, equation 2.1, for the bend.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["IDENTITY", "Warp", "bends"]

Array = NDArray[np.float64]

FARTHEST = 600.0  # logarithm of the largest ratio that is mapped back: e^710 is no number any more


@dataclass(frozen=True)
class Warp:
    """A strictly increasing function of the value, equation 1.

    Parameters
    ----------
    knot : float
        Values below it are bent.
    scale : float
        How far below it the bend is felt, in the units of the values.
    power : float
        0 is the logarithm, 1 a straight line.

    >>> Warp(power=0.5).forward([-3.0, 1.0])
    array([-2.,  1.])
    """

    knot: float = 0.0
    scale: float = 1.0
    power: float = 1.0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.knot) and 0.0 < self.scale < math.inf and 0.0 <= self.power <= 1.0):
            raise ValueError(f"a warp needs a finite knot, a positive scale and a power from 0 to 1, got {self}")

    @property
    def straight(self) -> bool:
        """Whether nothing is bent."""
        return self.power == 1.0

    def forward(self, y: ArrayLike) -> Array:
        """Return z, equation 1."""
        values = np.asarray(y, dtype=np.float64)
        if self.straight:
            return values
        r = np.maximum((self.knot - values) / self.scale, 0.0)
        bent = np.log1p(r) if self.power == 0 else np.expm1(self.power * np.log1p(r)) / self.power
        return np.where(r > 0, self.knot - self.scale * bent, values)

    def inverse(self, z: ArrayLike) -> Array:
        """Return y.

        >>> Warp(power=0.5).inverse([-2.0, 1.0])
        array([-3.,  1.])
        """
        warped = np.asarray(z, dtype=np.float64)
        if self.straight:
            return warped
        b = np.maximum((self.knot - warped) / self.scale, 0.0)
        if self.power == 0:
            r = np.expm1(np.minimum(b, FARTHEST))
        else:
            r = np.expm1(np.minimum(np.log1p(self.power * b) / self.power, FARTHEST))
        return np.where(b > 0, self.knot - self.scale * r, warped)

    def slope(self, y: ArrayLike) -> Array:
        """Return dz/dy, above 0 and at most 1.

        >>> Warp(power=0.0).slope([-1.0, 1.0])
        array([0.5, 1. ])
        """
        r = np.maximum((self.knot - np.asarray(y, dtype=np.float64)) / self.scale, 0.0)
        slope: Array = (1.0 + r) ** (self.power - 1.0)
        return slope


IDENTITY = Warp()
"""The warp that changes nothing."""


def bends(y: Array) -> Iterator[Warp]:
    """Yield the warps worth trying for these values: logarithms over a short, a middle and a long way, and a root.

    >>> [round(warp.scale, 6) for warp in bends(np.arange(11.0))]
    [1.9, 5.5, 9.1, 5.5]
    >>> list(bends(np.ones(5)))
    []
    """
    best = float(y.max())
    worse = best - y
    worse = worse[worse > 1e-12 * max(abs(best), float(worse.max()))]
    if worse.size:
        near, middle, far = np.quantile(worse, [0.1, 0.5, 0.9])
        for scale, power in ((near, 0.0), (middle, 0.0), (far, 0.0), (middle, 0.5)):
            if 0.0 < scale < math.inf:
                yield Warp(best, float(scale), power)
