"""How far an image may be moved: balls in the L∞ and the L2 norm.

>>> NormBall(0.3).norm, NormBall(2.0, norm="l2").norm
('linf', 'l2')
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from surefoot.moved import renamed

__all__ = ["NormBall"]
__getattr__ = renamed(__name__, {"Ball": "NormBall"})

Array = NDArray[np.float64]
ROUNDING = 1e-9  # share of the radius by which a sum of rounded numbers may exceed it


@dataclass(frozen=True)
class NormBall:
    """All perturbations of at most some norm.

    Parameters
    ----------
    radius : float
        In the units of the pixels; positive.
    norm : "linf" or "l2"
        Largest change of a pixel, or root of the sum of the squared changes.

    >>> NormBall(0.3).project(np.array([[0.5, -0.1]]))
    array([[ 0.3, -0.1]])
    >>> NormBall(1.0, norm="l2").project(np.array([[3.0, 4.0]]))
    array([[0.6, 0.8]])
    """

    radius: float
    norm: Literal["linf", "l2"] = "linf"

    def __post_init__(self) -> None:
        if isinstance(self.radius, bool) or not (math.isfinite(self.radius) and self.radius > 0):
            raise ValueError(f"the radius of a ball must be positive and finite, got {self.radius!r}")
        if self.norm not in ("linf", "l2"):
            raise ValueError(f"norm must be 'linf' or 'l2', got {self.norm!r}")
        object.__setattr__(self, "radius", float(self.radius))

    def size(self, D: Array) -> Array:
        """Return the norm of each perturbation of D (k, ...), shape (k,)."""
        flat = D.reshape(len(D), -1)
        sizes: Array = np.abs(flat).max(axis=1) if self.norm == "linf" else np.sqrt(np.vecdot(flat, flat))
        return sizes

    def contains(self, D: Array) -> NDArray[np.bool_]:
        """Tell which perturbations of D (k, ...) lie in the ball, up to rounding, shape (k,).

        >>> NormBall(0.1).contains(np.array([[0.1, -0.1], [0.2, 0.0]]))
        array([ True, False])
        """
        return np.asarray(self.size(D) <= self.radius * (1.0 + ROUNDING))

    def project(self, D: Array) -> Array:
        """Return the nearest perturbations in the ball, of the shape of D (k, ...)."""
        if self.norm == "linf":
            return np.clip(D, -self.radius, self.radius)
        return self._shrunk(D, np.minimum(1.0, self.radius / np.maximum(self.size(D), 1e-300)))

    def stretch(self, U: Array) -> Array:
        """Return perturbations from unit ones U (k, ...), whose entries lie in [−1, 1].

        In the L∞ ball a unit is the radius. In the L2 ball only the direction counts: the result lies on the sphere.

        >>> NormBall(0.3).stretch(np.array([[1.0, -0.5]]))
        array([[ 0.3 , -0.15]])
        >>> NormBall(5.0, norm="l2").stretch(np.array([[0.3, 0.4]]))
        array([[3., 4.]])
        """
        if self.norm == "linf":
            return np.clip(U, -1.0, 1.0) * self.radius
        return self._shrunk(U, self.radius / np.maximum(self.size(U), 1e-300))

    def _shrunk(self, D: Array, factors: Array) -> Array:
        shrunk: Array = D * factors.reshape(-1, *[1] * (D.ndim - 1))
        return shrunk
