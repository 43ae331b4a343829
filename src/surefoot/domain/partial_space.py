"""A part of a space: some of its parameters keep a value, the others vary. A model sees the whole space.

>>> part = PartialSpace(Space(rate=Float(0.0, 1.0), base=Choice(["a", "b"])), {"base": 1.0})
>>> part.enumerate() if part.size else part.sample(2, np.random.default_rng(0))[:, 1]
array([1., 1.])
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot.domain.base import Array, Found, readonly
from surefoot.domain.parameter import Choice, Float  # noqa: F401 (the examples)
from surefoot.domain.space import Space

__all__ = ["PartialSpace"]


class PartialSpace(Space):
    """The points of a space at which some coordinates have given values.

    Parameters
    ----------
    space : Space
        The whole.
    numbers : mapping of str to float
        The coordinates that are held, by the names of their parameters.

    >>> part = PartialSpace(Space(rate=Float(0.0, 1.0), heat=Float(0.0, 10.0)), {"heat": 5.0})
    >>> part.lower, part.upper
    (array([0. , 0.5]), array([1. , 0.5]))
    """

    def __init__(self, space: Space, numbers: Mapping[str, float]) -> None:
        super().__init__(space.parameters)
        self.held = {space.names.index(name): float(number) for name, number in numbers.items()}
        lower, upper = self._lower.copy(), self._upper.copy()
        for i, columns, p in self._axes:
            if i in self.held:
                lower[columns] = upper[columns] = p.encode(np.array([self.held[i]]))[0]
        self._lower, self._upper = readonly(lower), readonly(upper)

    @property
    def size(self) -> int | None:
        sizes = [1 if i in self.held else p.size for i, _, p in self._axes]
        return None if None in sizes else math.prod(size for size in sizes if size is not None)

    def _kept(self, X: Array) -> Array:
        for i, number in self.held.items():
            X[:, i] = number
        return X

    def contains(self, X: ArrayLike) -> NDArray[np.bool_]:
        rows = self._rows(X, self.dimension)
        same = [rows[:, i] == number for i, number in self.held.items()]
        return np.asarray(np.all([super().contains(rows), *same], axis=0))

    def decode(self, E: ArrayLike) -> Array:
        return self._kept(super().decode(E))

    def _spread(self, U: Array) -> Array:
        return self._kept(super()._spread(U))

    def neighbors(self, x: ArrayLike, rng: np.random.Generator | None = None) -> Array:
        X = super().neighbors(x, rng)
        return X[self.contains(X)] if len(X) else X

    def maximize(
        self, score: Any, *, rng: np.random.Generator, seeds: ArrayLike | None = None, exclude: Any = None
    ) -> Found:
        if seeds is not None:  # brought into the part
            seeds = self._kept(np.array(seeds, dtype=np.float64))
        return super().maximize(score, rng=rng, seeds=seeds, exclude=exclude)

    def enumerate(self) -> Array:
        if self.size is None:
            return super().enumerate()
        axes = [np.array([self.held[i]]) if i in self.held else p.numbers() for i, _, p in self._axes]
        return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, self.dimension)
