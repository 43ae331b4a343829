"""Boxes: every coordinate lies between two numbers.

>>> Box([(0.0, 1.0), (-5.0, 10.0)]).validate([0.5, 0.0])
array([0.5, 0. ])
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot.domain.base import Array, Domain, Found, readonly
from surefoot.domain.design import unit_design
from surefoot.domain.search import maximize

__all__ = ["Box"]


class Box(Domain):
    """All points between lower and upper bounds. A model sees them as they are.

    Parameters
    ----------
    bounds : array of shape (d, 2)
        One pair (low, high) per coordinate; ``low == high`` fixes a coordinate.

    >>> box = Box([(0.0, 1.0), (-5.0, 10.0)])
    >>> box.upper
    array([ 1., 10.])
    >>> box.decode([[2.0, 3.0]])
    array([[1., 3.]])
    """

    def __init__(self, bounds: ArrayLike) -> None:
        array = np.array(bounds, dtype=np.float64) + 0.0
        if array.ndim != 2 or array.shape[1] != 2 or array.shape[0] == 0:
            raise ValueError(f"bounds are one or more pairs (low, high), got {bounds!r}")
        for i, (low, high) in enumerate(array.tolist()):
            if not np.isfinite([low, high]).all() or high - low == np.inf:
                raise ValueError(f"bounds of x{i} must be finite, got ({low}, {high})")
            if low > high:
                raise ValueError(f"bounds of x{i} are inverted: ({low}, {high})")
        self.bounds = readonly(array)

    @classmethod
    def unit(cls, dimension: int) -> Self:
        """Return the unit cube.

        >>> Box.unit(2)
        Box([(0.0, 1.0), (0.0, 1.0)])
        """
        return cls([(0.0, 1.0)] * dimension)

    @property
    def lower(self) -> Array:
        return self.bounds[:, 0]

    @property
    def upper(self) -> Array:
        return self.bounds[:, 1]

    @property
    def size(self) -> int | None:
        return 1 if bool((self.lower == self.upper).all()) else None

    def encode(self, X: ArrayLike) -> Array:
        return self._rows(X, self.dimension)

    def decode(self, E: ArrayLike) -> Array:
        return np.clip(self._rows(E, self.dimension), self.lower, self.upper) + 0.0

    def project(self, E: ArrayLike) -> Array:
        return self.decode(E)

    def contains(self, X: ArrayLike) -> NDArray[np.bool_]:
        rows = self._rows(X, self.dimension)
        return np.asarray(((rows >= self.lower) & (rows <= self.upper)).all(axis=1))

    def _check(self, x: Array) -> None:
        for name, value, (low, high) in zip(self.names, x.tolist(), self.bounds.tolist(), strict=True):
            if not low <= value <= high:
                raise ValueError(f"{name} = {value} is outside [{low}, {high}]")

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        return self._spread(rng.random((n, self.dimension)))

    def design(self, n: int, rng: np.random.Generator, method: str = "sobol") -> Array:
        return self._spread(unit_design(n, self.dimension, rng, method))

    def _spread(self, U: Array) -> Array:
        return self.decode(self.lower + U * (self.upper - self.lower))  # clipped: the sum may round upwards

    def maximize(
        self, score: Any, *, rng: np.random.Generator, seeds: ArrayLike | None = None, exclude: Any = None
    ) -> Found:
        x, value = maximize(score, self, rng=rng, seeds=seeds, exclude=exclude)
        return Found(x, None, value)

    def enumerate(self) -> Array:
        return self.lower[None, :].copy() if self.size else super().enumerate()

    def to_dict(self) -> dict[str, Any]:
        return {"domain": "Box", "bounds": self.bounds.tolist()}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        return cls(cls._fields(data, "bounds")["bounds"])

    def __repr__(self) -> str:
        return f"Box([{', '.join(f'({low}, {high})' for low, high in self.bounds.tolist())}])"
