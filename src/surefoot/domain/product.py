"""Products: a design beside parameters that somebody else will choose.

A robust choice over unknown parameters measures pairs (x, θ): all of them are candidates, or a larger box, or a box
whose last coordinates take finitely many values.

>>> join(Box.unit(1), values=np.array([[0.0], [1.0]]))
WithValues([(0.0, 1.0), (0.0, 1.0)], 2 values in the last 1)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot.domain.base import Array, Domain
from surefoot.domain.box import Box
from surefoot.domain.candidates import Candidates

__all__ = ["WithValues", "join"]


def join(design: Domain, *, values: Array | None = None, box: Box | None = None) -> Domain:
    """Return the domain of pairs (x, θ), θ one of ``values`` (m, q) or a point of ``box``.

    >>> join(Candidates([5.0, 6.0]), values=np.array([[0.0], [1.0]])).points.tolist()
    [[5.0, 0.0], [5.0, 1.0], [6.0, 0.0], [6.0, 1.0]]
    """
    if isinstance(design, Candidates):
        if values is None:
            raise ValueError("parameters beside a finite list of designs are a finite list too: give values=")
        left, right = np.repeat(design.points, len(values), axis=0), np.tile(values, (design.size, 1))
        return Candidates(np.hstack([left, right]))
    if not isinstance(design, Box):
        raise ValueError(f"unknown parameters go beside a Box or Candidates, not beside a {type(design).__name__}")
    if values is not None:
        return WithValues(design.bounds, values)
    return Box(np.vstack([design.bounds, (box or design).bounds]))


class WithValues(Box):
    """A box whose last coordinates together take one of finitely many values.

    Parameters
    ----------
    bounds : array of shape (d, 2)
        Bounds of the free coordinates.
    values : array of shape (m, q)
        What the last coordinates may be.

    >>> pairs = WithValues([(0.0, 1.0)], [[3.0], [4.0]])
    >>> pairs.decode([[0.2, 3.7]])
    array([[0.2, 4. ]])
    >>> pairs.validate([0.2, 3.5])
    Traceback (most recent call last):
    ...
    ValueError: the last 1 coordinates are one of 2 values, not [3.5]
    """

    def __init__(self, bounds: ArrayLike, values: ArrayLike) -> None:
        self.free, self.values = Box(bounds), Candidates(values)
        sides = np.stack([self.values.lower, self.values.upper], axis=1)
        super().__init__(np.vstack([self.free.bounds, sides]))

    def _split(self, X: ArrayLike) -> tuple[Array, Array]:
        rows = self._rows(X, self.dimension)
        return rows[:, : self.free.dimension], rows[:, self.free.dimension :]

    @property
    def size(self) -> int | None:
        return self.values.size if self.free.size else None

    @property
    def continuous(self) -> NDArray[np.bool_]:
        return np.arange(self.dimension) < self.free.dimension

    def decode(self, E: ArrayLike) -> Array:
        left, right = self._split(E)
        return np.hstack([self.free.decode(left), self.values.decode(right)])

    def contains(self, X: ArrayLike) -> NDArray[np.bool_]:
        left, right = self._split(X)
        return self.free.contains(left) & self.values.contains(right)

    def _check(self, x: Array) -> None:
        self.free._check(x[: self.free.dimension])
        rest = x[self.free.dimension :]
        if not self.values.contains(rest[None])[0]:
            raise ValueError(
                f"the last {rest.size} coordinates are one of {self.values.size} values, not {rest.tolist()}"
            )

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        return np.hstack([self.free.sample(n, rng), self.values.sample(n, rng)])

    def design(self, n: int, rng: np.random.Generator, method: str = "sobol") -> Array:
        # The values by turns: every one of them is measured early, whatever their coordinates.
        turns = np.concatenate([rng.permutation(self.values.size) for _ in range(1 + n // self.values.size)])
        return np.hstack([self.free.design(n, rng, method), self.values.points[turns[:n]]])

    def neighbors(self, x: ArrayLike, rng: np.random.Generator | None = None) -> Array:
        point = np.asarray(x, dtype=np.float64)
        others = self.values.points[~(self.values.points == point[self.free.dimension :]).all(axis=1)]
        return np.hstack([np.tile(point[: self.free.dimension], (len(others), 1)), others])

    def enumerate(self) -> Array:
        if not self.free.size:
            return super().enumerate()
        return np.hstack([np.repeat(self.free.enumerate(), self.values.size, axis=0), self.values.points])

    def to_dict(self) -> dict[str, Any]:
        return {
            "domain": "WithValues",
            "bounds": self.free.bounds.tolist(),
            "values": self.values.points.tolist(),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        return cls(**cls._fields(data, "bounds", "values"))

    def __repr__(self) -> str:
        last = f"{self.values.size} values in the last {self.values.dimension}"
        return f"WithValues{super().__repr__().removeprefix('Box')[:-1]}, {last})"
