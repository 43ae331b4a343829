"""Candidates: a finite list of points, given as an array.

Rows are found by their exact values: the whole list is hashed once, when the first look-up needs it, and a look-up is
a binary search among the hashes.

>>> grid = Candidates([[0.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
>>> grid.index_of([1.0, 1.0])
2
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist

from surefoot.domain.base import Array, Domain, Found, readonly
from surefoot.domain.design import unit_design
from surefoot.domain.ranking import argmax

__all__ = ["Candidates"]

INLINE = 10_000  # numbers written into a description; a larger list is described by its hash
Indices = NDArray[np.intp]


class Candidates(Domain):
    """A finite list of points. A model sees them as they are.

    Parameters
    ----------
    points : array of shape (n, d) or (n,)
        At least one row, all finite.

    >>> arms = Candidates([0.1, 0.2, 0.4])
    >>> arms.size, arms.dimension
    (3, 1)
    >>> arms.decode([[0.29]])
    array([[0.2]])
    """

    listed = True

    def __init__(self, points: ArrayLike) -> None:
        array = np.array(points, dtype=np.float64, order="C") + 0.0  # no negative zero: equal rows have equal bytes
        array = array[:, None] if array.ndim == 1 else array
        if array.ndim != 2 or 0 in array.shape:
            raise ValueError(f"candidates are an array of shape (n, d) with n, d >= 1, got shape {array.shape}")
        if not np.isfinite(array).all():
            row = int(np.flatnonzero(~np.isfinite(array).all(axis=1))[0])
            raise ValueError(f"candidate {row} is not finite: {array[row].tolist()}")
        self.points = readonly(array)

    @cached_property
    def lower(self) -> Array:
        return readonly(self.points.min(axis=0))

    @cached_property
    def upper(self) -> Array:
        return readonly(self.points.max(axis=0))

    @property
    def dimension(self) -> int:
        return int(self.points.shape[1])

    @property
    def size(self) -> int:
        return int(self.points.shape[0])

    @property
    def continuous(self) -> NDArray[np.bool_]:
        return np.zeros(self.dimension, dtype=np.bool_)

    @cached_property
    def _table(self) -> tuple[NDArray[np.uint64], Indices]:
        """The sorted hashes of all rows, and the rows they belong to; equal rows stay in order."""
        keys = _hash_rows(self.points)
        order = np.argsort(keys, kind="stable")
        return keys[order], order

    def indices_of(self, X: ArrayLike) -> Indices:
        """Return the first row equal to each row of X (m, d), shape (m,); −1 where there is none.

        >>> Candidates([[1.0], [2.0], [2.0]]).indices_of([[2.0], [3.0]]).tolist()
        [1, -1]
        """
        rows = self._rows(X, self.dimension) + 0.0
        keys, order = self._table
        wanted = _hash_rows(np.ascontiguousarray(rows))
        place = np.searchsorted(keys, wanted)
        found = np.full(rows.shape[0], -1, dtype=np.intp)
        open_ = np.flatnonzero(place < self.size)
        while open_.size:  # one pass, unless different rows share a hash
            open_ = open_[keys[place[open_]] == wanted[open_]]
            row = order[place[open_]]
            equal = (self.points[row] == rows[open_]).all(axis=1)
            found[open_[equal]] = row[equal]
            open_ = open_[~equal]
            place[open_] += 1
            open_ = open_[place[open_] < self.size]
        return found

    def index_of(self, x: ArrayLike) -> int:
        """Return the first row equal to x, or raise a ValueError.

        >>> Candidates([[1.0], [2.0]]).index_of([1.5])
        Traceback (most recent call last):
        ...
        ValueError: [1.5] is not one of the 2 candidates
        """
        point = np.asarray(x, dtype=np.float64)
        if point.shape != (self.dimension,):
            raise ValueError(f"a candidate has shape ({self.dimension},), got shape {point.shape}")
        index = int(self.indices_of(point[None, :])[0])
        if index < 0:
            raise ValueError(f"{point.tolist()} is not one of the {self.size} candidates")
        return index

    def copies_of(self, rows: ArrayLike) -> Indices:
        """Return these rows and all that are equal to one of them, in order, shape (k,).

        >>> Candidates([[1.0], [2.0], [1.0]]).copies_of([2]).tolist()
        [0, 2]
        """
        given = np.unique(np.asarray(rows, dtype=np.intp))
        if not given.size:
            return given
        keys, order = self._table
        wanted = _hash_rows(self.points[given])
        first, end = np.searchsorted(keys, wanted), np.searchsorted(keys, wanted, side="right")
        several = np.flatnonzero(end - first > 1)
        found = [given]
        for i in several.tolist():
            near = order[first[i] : end[i]]
            found.append(near[(self.points[near] == self.points[given[i]]).all(axis=1)])
        return np.unique(np.concatenate(found))

    def _check(self, x: Array) -> None:
        self.index_of(x)

    def contains(self, X: ArrayLike) -> NDArray[np.bool_]:
        return self.indices_of(X) >= 0

    def encode(self, X: ArrayLike) -> Array:
        return self._rows(X, self.dimension)

    @cached_property
    def _tree(self) -> cKDTree:
        return cKDTree((self.points - self.lower) / self.extent())

    def decode(self, E: ArrayLike) -> Array:
        rows = self._rows(E, self.dimension)
        index = self.indices_of(rows)
        if (missing := index < 0).any():  # nearest in coordinates scaled by the extent
            index[missing] = self._tree.query((rows[missing] - self.lower) / self.extent())[1]
        return self.points[index]

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        return self.points[rng.integers(self.size, size=n)]

    def design(self, n: int, rng: np.random.Generator, method: str = "sobol") -> Array:
        """Return the candidates nearest to a design of the bounding box, each point once while others are left."""
        scaled = (self.points - self.lower) / self.extent()
        free = np.ones(self.size, dtype=np.bool_)
        chosen = np.empty(n, dtype=np.intp)
        for i, u in enumerate(unit_design(n, self.dimension, rng, method)):
            if not free.any():
                free[:] = True
            distance = cdist(scaled, u[None, :], "sqeuclidean")[:, 0]
            distance[~free] = np.inf
            chosen[i] = best = int(distance.argmin())
            near = np.flatnonzero(distance == distance[best])
            free[near[(self.points[near] == self.points[best]).all(axis=1)]] = False  # with its copies
        return self.points[chosen]

    def row_of(self, x: Array) -> int:
        return self.index_of(x)

    def address(self, X: Array, rows: Indices | None = None) -> Any:
        return self.indices_of(X) if rows is None else rows

    def count(self, points: Sequence[tuple[Array, int | None]]) -> int:
        return len(self.copies_of([row for _, row in points if row is not None]))  # each with its copies

    def excluding(self, points: Sequence[tuple[Array, int | None]]) -> Any:
        """Return a mask of shape (size,) over these candidates and their copies."""
        mask = np.zeros(self.size, dtype=np.bool_)
        mask[self.copies_of([row for _, row in points if row is not None])] = True
        return mask

    def maximize(
        self, score: Any, *, rng: np.random.Generator, seeds: ArrayLike | None = None, exclude: Any = None
    ) -> Found:
        values = score(slice(None))
        row = argmax(values, rng=rng, exclude=exclude)
        return Found(self.points[row], row, float(values[row]))

    def enumerate(self) -> Array:
        return self.points

    @cached_property
    def sha256(self) -> str:
        """Hash of the shape and the values.

        >>> len(Candidates([1.0, 2.0]).sha256)
        64
        """
        digest = hashlib.sha256(f"{self.size},{self.dimension};".encode())
        digest.update(self.points.astype("<f8", copy=False).tobytes())
        return digest.hexdigest()

    def description(self) -> dict[str, Any]:
        return {"domain": "Candidates", "points": self.points.tolist()}

    def to_dict(self) -> dict[str, Any]:
        if self.points.size <= INLINE:
            return self.description()
        return {"domain": "Candidates", "sha256": self.sha256, "shape": [self.size, self.dimension]}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], points: ArrayLike | None = None) -> Self:
        """Rebuild the candidates; a list described by its hash must be given again.

        >>> large = Candidates(np.arange(20_000.0))
        >>> Candidates.from_dict(large.to_dict())
        Traceback (most recent call last):
        ...
        ValueError: these 20000 candidates are described by their hash only: pass points=
        >>> Candidates.from_dict(large.to_dict(), points=np.arange(20_000.0)) == large
        True
        """
        fields = cls._fields(data, "points", "sha256", "shape")
        if points is None and "points" not in fields:
            raise ValueError(f"these {fields['shape'][0]} candidates are described by their hash only: pass points=")
        domain = cls(fields["points"] if points is None else points)
        if "points" in fields:
            same = domain == cls(fields["points"])
        else:
            same = domain.sha256 == fields["sha256"]
        if not same:
            raise ValueError("the points given are not those of the description")
        return domain

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Candidates) and np.array_equal(self.points, other.points)

    __hash__ = Domain.__hash__

    def __repr__(self) -> str:
        return f"Candidates({self.size} points of dimension {self.dimension})"


def _hash_rows(rows: Array) -> NDArray[np.uint64]:
    """One 64-bit number per row: equal rows have equal numbers, other rows almost surely different ones."""
    words = rows.view(np.uint64)
    words = words ^ (words >> np.uint64(32))  # short decimals differ in their high bits only
    factors = np.random.default_rng(0x5EED).integers(2**63, size=rows.shape[1], dtype=np.uint64) * 2 + 1
    mixed: NDArray[np.uint64] = (words * factors).sum(axis=1, dtype=np.uint64)
    return mixed
