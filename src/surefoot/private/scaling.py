"""Public preprocessing: bounds, center, scale and clipping that are declared, never read off the data.

A guarantee speaks of changes of one row by a certain length, so the unit of that length must be public. The scaling
maps a row x to u = (x − center)/scale and then, if need be, shrinks it onto the ball |u| ≤ radius:

>>> import numpy as np
>>> public = PublicScale.within([(0.0, 100.0), (20.0, 60.0)], radius=25.0)
>>> public.apply(np.array([[50.0, 40.0], [100.0, 60.0], [900.0, 40.0]])).round(3)
array([[ 0.   ,  0.   ],
       [17.678, 17.678],
       [17.678,  0.   ]])

Both steps, clipping to the bounds and shrinking onto the ball, are projections onto convex sets: they never move two
rows further apart, so a change of a row by at most Δ (in u) stays one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["PublicScale", "table"]

Array = NDArray[np.float64]
HUGE = 1e150  # its square is a number


def table(data: ArrayLike) -> Array:
    """Return private data as a checked array of shape (n, d); messages never show a value.

    >>> table([[1.0, float("nan")]])
    Traceback (most recent call last):
    ...
    ValueError: the data must be finite numbers: 1 of 1 rows are not
    """
    try:
        rows = np.array(data, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError("the data must be an array of numbers, one row for each record") from None
    if rows.ndim != 2 or 0 in rows.shape:
        raise ValueError(f"the data must have shape (n, d) with n, d >= 1, got shape {rows.shape}")
    bad = int((~np.isfinite(rows)).any(axis=1).sum())
    if bad:
        raise ValueError(f"the data must be finite numbers: {bad} of {len(rows)} rows are not")
    return rows


@dataclass(frozen=True, eq=False)
class PublicScale:
    """A declared affine map followed by clipping.

    Parameters
    ----------
    center, scale : float or array of shape (d,)
        u = (x − center)/scale.
    radius : float
        Largest norm of u; longer rows are shrunk.
    bounds : array of shape (d, 2), optional
        Limits of each feature in its own units, enforced first.

    >>> PublicScale(radius=1.0).apply(np.array([[3.0, 4.0]]))
    array([[0.6, 0.8]])
    """

    center: Any = 0.0
    scale: Any = 1.0
    radius: float = math.inf
    bounds: Array | None = None

    def __post_init__(self) -> None:
        for name in ("center", "scale"):
            array = np.array(getattr(self, name), dtype=np.float64)
            if array.ndim > 1 or not np.isfinite(array).all() or (name == "scale" and not (array > 0).all()):
                raise ValueError(
                    f"{name} must be finite{' and positive' if name == 'scale' else ''}, a number or one for each "
                    f"feature, got {getattr(self, name)!r}"
                )
            object.__setattr__(self, name, array)
        if not self.radius > 0:
            raise ValueError(f"radius must be positive, got {self.radius!r}")
        if self.bounds is not None:
            object.__setattr__(self, "bounds", _limits(self.bounds))

    @classmethod
    def within(cls, bounds: ArrayLike, radius: float) -> PublicScale:
        """Return the scaling under which the box of the bounds just fits into the ball.

        >>> PublicScale.within([(0.0, 2.0)], radius=5.0).scale
        array([0.2])
        """
        limits = _limits(bounds)
        if not 0 < radius < math.inf:
            raise ValueError(f"radius must be positive and finite, got {radius!r}")
        half = 0.5 * (limits[:, 1] - limits[:, 0])
        return cls(limits.mean(axis=1), half * math.sqrt(len(limits)) / radius, radius, limits)

    def apply(self, rows: Array) -> Array:
        """Return the scaled and clipped rows, shape (n, d)."""
        d = rows.shape[1]
        for name in ("center", "scale"):
            array = getattr(self, name)
            if array.ndim and array.size != d:
                raise ValueError(f"{name} has {array.size} entries but the data have {d} features")
        if self.bounds is not None and len(self.bounds) != d:
            raise ValueError(f"bounds has {len(self.bounds)} entries but the data have {d} features")
        inside = rows if self.bounds is None else np.clip(rows, self.bounds[:, 0], self.bounds[:, 1])
        with np.errstate(over="ignore"):
            scaled: Array = (inside - self.center) / self.scale
        if math.isfinite(self.radius):
            np.clip(scaled, -HUGE, HUGE, out=scaled)  # a projection, too: the norm of a wild record stays a number
            norms = np.linalg.norm(scaled, axis=1, keepdims=True)
            scaled *= self.radius / np.maximum(norms, self.radius)
        return scaled

    def clipped(self, rows: Array) -> Array:
        """Return the share of rows that clipping changes in each feature, shape (d,). It depends on the data.

        >>> PublicScale.within([(18.0, 60.0)], radius=25.0).clipped(np.array([[30.0], [50.0], [70.0], [85.0]]))
        array([0.5])
        """
        with np.errstate(over="ignore"):
            plain = (rows - self.center) / self.scale
        share: Array = (np.abs(plain - self.apply(rows)) > 1e-12 * (1.0 + np.abs(plain))).mean(axis=0)
        return share

    def sensitivity(self, neighbor: float) -> float:
        """Return the largest change of a scaled row: ``neighbor``, and never more than the ball is wide.

        >>> PublicScale(radius=25.0).sensitivity(float("inf"))
        50.0
        """
        return min(neighbor, 2.0 * self.radius)

    def original(self, neighbor: float, features: int) -> tuple[float, ...]:
        """Return a change of that length in the units of each feature, if only that feature changes."""
        return tuple((np.broadcast_to(self.scale, (features,)) * neighbor).tolist())

    def to_dict(self) -> dict[str, Any]:
        """Return the public parameters as strict JSON."""
        return {
            "center": self.center.tolist(),
            "scale": self.scale.tolist(),
            "radius": self.radius if math.isfinite(self.radius) else None,
            "bounds": None if self.bounds is None else self.bounds.tolist(),
        }


def _limits(bounds: ArrayLike) -> Array:
    """Checked limits of all features, shape (d, 2)."""
    limits = np.array(bounds, dtype=np.float64)
    if limits.ndim != 2 or limits.shape[1] != 2 or not np.isfinite(limits).all():
        raise ValueError(f"bounds must be finite (lower, upper) pairs, one for each feature, got {bounds!r}")
    if not (limits[:, 0] < limits[:, 1]).all():
        raise ValueError(f"each lower bound must be below its upper bound, got {limits.tolist()}")
    return limits
