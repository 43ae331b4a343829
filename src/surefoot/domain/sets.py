"""What an adversary may reach from each choice: a perturbation, bound to a domain.

On a finite domain that is a family of sets of candidates, one for each *center* (a choice that may be answered), with
the minimum of any values over each of them: :class:`ListedSets` in general, :class:`Filtered` on regular grids. On a
box or a space (:mod:`surefoot.domain.mixed`) it is a :class:`Region` that moves with the center.

>>> family = ListedSets.of([[0, 1], [2]], np.array([[0.0], [1.0], [2.0]]))
>>> family.minimum(np.array([5.0, 3.0, 7.0]))
array([3., 7.])
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cache
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot.domain.base import Domain
from surefoot.domain.box import Box
from surefoot.domain.design import unit_design
from surefoot.domain.minfilter import RegularGrid, box_minimum, footprint_minimum
from surefoot.moved import renamed

__all__ = ["Around", "Filtered", "ListedSets", "ParameterRegion", "Region", "Sets", "gauge", "into", "unit_ball"]
__getattr__ = renamed(__name__, {"Beside": "ParameterRegion", "Listed": "ListedSets"})

Array = NDArray[np.float64]
Indices = NDArray[np.intp]


class Sets(ABC):
    """A family of sets of candidates, one per center.

    Attributes
    ----------
    points : array of shape (C, d)
        The centers.

    >>> ListedSets.of([[0], [1]], np.array([[0.0], [1.0]])).count
    2
    """

    points: Array

    @property
    def count(self) -> int:
        """Number of centers."""
        return len(self.points)

    @abstractmethod
    def minimum(self, values: Array) -> Array:
        """Return the minimum over each set of values at all candidates (n,), shape (C,)."""

    @abstractmethod
    def members(self, center: int) -> Indices:
        """Return the candidates of one set, in ascending order."""

    @property
    def repeated(self) -> NDArray[np.bool_] | None:
        """Which centers have the set of an earlier one, shape (C,); None where nobody looked."""
        return None

    def center_of(self, rows: Indices) -> Indices:
        """Return the center that each measured candidate stands for."""
        return rows

    def itself(self, center: int) -> int | None:
        """Return the candidate that is the center, where centers are candidates."""
        return center

    def answer(self, center: int) -> dict[str, Any]:
        """Return what to use when a center is recommended: ``x``, ``index``, ``params``."""
        return {"x": self.points[center], "index": center, "params": None}


class ListedSets(Sets):
    """Sets kept as lists, one after the other.

    Parameters
    ----------
    points : array of shape (C, d)
        The centers.
    members, starts : arrays of shape (Σ sizes,) and (C,)
        The candidates of all sets in a row, and where each set begins. No set is empty.
    belongs : array of shape (n,), optional
        The center each candidate stands for; None: centers are the candidates themselves.
    labels : sequence, optional
        Names of the centers, where a center is a group.
    compare : bool
        Whether to look for centers with equal sets: an arbitrary distance often makes groups of them.

    >>> family = ListedSets.of([[0, 2], [1]], np.array([[0.0], [1.0]]), belongs=[0, 1, 0])
    >>> family.members(0).tolist(), family.center_of(np.array([2])).tolist()
    ([0, 2], [0])
    """

    def __init__(
        self,
        points: Array,
        members: Indices,
        starts: Indices,
        *,
        belongs: ArrayLike | None = None,
        labels: Sequence[Any] | None = None,
        compare: bool = False,
    ) -> None:
        self.points, self._members, self._starts = points, members, starts
        self._ends = np.append(starts[1:], len(members))
        if (self._ends <= starts).any():
            empty = int(np.flatnonzero(self._ends <= starts)[0])
            raise ValueError(f"the perturbation set of {points[empty].tolist()} is empty: no candidate is in reach")
        self._in_order = np.array_equal(members, np.arange(len(members)))
        self._belongs = None if belongs is None else np.asarray(belongs, dtype=np.intp)
        self.labels = labels
        self._repeated = self._find_repeated() if compare else None

    def _find_repeated(self) -> NDArray[np.bool_]:
        """Equal sets have equal sums of random numbers, other sets almost surely different ones."""
        words = np.random.default_rng(0x5EED).integers(2**63, size=int(self._members.max()) + 1, dtype=np.uint64)
        sums = np.add.reduceat(words[self._members], self._starts)
        repeated = np.ones(len(self._starts), dtype=np.bool_)
        repeated[np.unique(sums, return_index=True)[1]] = False
        return repeated

    @property
    def repeated(self) -> NDArray[np.bool_] | None:
        return self._repeated

    @classmethod
    def of(cls, sets: Sequence[Sequence[int]], points: Array, *, belongs: ArrayLike | None = None) -> Self:
        """Return the family of some lists of candidates."""
        sizes = [len(one) for one in sets]
        members = np.array([row for one in sets for row in one], dtype=np.intp)
        return cls(points, members, np.cumsum([0, *sizes[:-1]]), belongs=belongs)

    def minimum(self, values: Array) -> Array:
        chosen = values[: len(self._members)] if self._in_order else values[self._members]
        lowest: Array = np.minimum.reduceat(chosen, self._starts)
        return lowest

    def members(self, center: int) -> Indices:
        return np.sort(self._members[self._starts[center] : self._ends[center]])

    def center_of(self, rows: Indices) -> Indices:
        return rows if self._belongs is None else self._belongs[rows]

    def itself(self, center: int) -> int | None:
        return center if self._belongs is None else None

    def answer(self, center: int) -> dict[str, Any]:
        if self.labels is None:
            return super().answer(center)
        return {"x": self.points[self.members(center)], "index": None, "params": {"group": self.labels[center]}}

    @property
    def count(self) -> int:
        return len(self._starts)


class Filtered(Sets):
    """Sets that are one footprint, moved over a regular grid; see :mod:`surefoot.domain.minfilter`.

    Parameters
    ----------
    points : array of shape (n, d)
        The candidates.
    grid : RegularGrid
        The grid they make.
    scale : array of shape (d,)
        How far the footprint reaches along each axis.
    norm : float
        The footprint holds the offsets whose ``norm`` in units of ``scale`` is at most 1.
    slack : float
        What the norm may exceed 1 by: rounding of the coordinates.

    >>> points = np.arange(4.0)[:, None]
    >>> family = Filtered(points, RegularGrid.find(points), np.array([1.0]), 2.0, 1e-12)
    >>> family.minimum(np.array([4.0, 3.0, 9.0, 8.0])).tolist(), family.members(0).tolist()
    ([3.0, 3.0, 3.0, 8.0], [0, 1])
    """

    def __init__(self, points: Array, grid: RegularGrid, scale: Array, norm: float, slack: float) -> None:
        self.points, self._grid = points, grid
        reach = np.floor((1.0 + slack) * scale / grid.spacing).astype(np.intp)
        self._halves = np.minimum(reach, np.array(grid.shape) - 1)
        steps = np.stack(np.meshgrid(*(np.arange(-k, k + 1) for k in self._halves), indexing="ij"), axis=-1)
        inside = gauge(steps * grid.spacing, scale, norm) <= 1.0 + slack
        self.offsets: Indices = steps[inside]
        self._run = int(np.argmax(self._halves))  # windows lie along the widest axis: the fewest layers
        layers = np.moveaxis(inside, self._run, -1).sum(axis=-1)
        self._layers: Indices = np.where(layers > 0, layers // 2, -1)
        self._box = bool(inside.all())

    def minimum(self, values: Array) -> Array:
        laid = self._grid.spread(values)
        if self._box:
            return self._grid.collect(box_minimum(laid, self._halves))
        turned = np.ascontiguousarray(np.moveaxis(laid, self._run, -1))
        return self._grid.collect(np.moveaxis(footprint_minimum(turned, self._layers), -1, self._run))

    def members(self, center: int) -> Indices:
        return self._grid.around(center, self.offsets)


def gauge(offsets: Array, scale: Array, norm: float) -> Array:
    """Return the norm of offsets (…, d) in units of ``scale`` (d,): at most 1 inside; ∞ along an axis of scale 0.

    >>> gauge(np.array([[0.3, 0.4], [0.0, 1.0]]), np.array([1.0, 0.5]), np.inf)
    array([0.8, 2. ])
    """
    size = np.abs(offsets)
    ratio = np.divide(size, scale, out=np.where(size > 0, np.inf, 0.0), where=scale > 0)
    if math.isinf(norm):
        largest: Array = ratio.max(axis=-1)
        return largest
    if norm == 2.0:  # exact for squares that are exact
        return np.asarray(np.sqrt(np.sum(ratio * ratio, axis=-1)))
    return np.asarray(np.sum(ratio**norm, axis=-1) ** (1.0 / norm))


class Region(ABC):
    """What can be reached from a center in a box or a space: encoded points of the measured domain, shape (…, D).

    Attributes
    ----------
    centers : Domain
        Where centers lie; they are given encoded too.
    finite : bool
        Whether a center reaches finitely many points only.
    trivial : bool
        Whether a center reaches itself only.
    layers : int
        How many discrete moves there are, beside which points are spread.

    >>> region = Around(Box.unit(1), np.array([0.1]), 2.0)
    >>> region.project(np.array([[0.5]]), np.array([[[0.9]]])).round(6).tolist()
    [[[0.6]]]
    """

    centers: Domain
    finite = False
    trivial = False
    layers = 1

    @abstractmethod
    def spread(self, X: Array, count: int) -> Array:
        """Return about ``count`` points that each of the centers X (m, d) reaches, shape (m, q, D)."""

    @abstractmethod
    def project(self, X: Array, Z: Array) -> Array:
        """Return near points (m, q, D) that the centers X (m, d) reach."""

    @abstractmethod
    def pull(self, X: Array, Z: Array, G: Array) -> Array:
        """Return how values with gradients G at Z (m, q, D) change as their centers move, shape (m, q, d)."""

    @property
    @abstractmethod
    def scale(self) -> Array:
        """How far points can move along each axis, shape (D,)."""

    def center_of(self, Z: Array) -> Array:
        """Return the centers that measured points (n, D) stand for, shape (n, d); both as they are, not encoded."""
        return Z[:, : self.centers.dimension]


class Around(Region):
    """A ball or a box around the center, cut off at the border.

    Parameters
    ----------
    box : Box
        Where centers lie and measurements are made.
    reach : array of shape (d,)
        How far the region reaches along each axis.
    norm : float
        The region holds the offsets whose ``norm`` in units of ``reach`` is at most 1.

    >>> Around(Box.unit(2), np.array([0.1, 0.2]), np.inf).spread(np.array([[0.0, 0.5]]), 8).min(axis=1).round(3)
    array([[0. , 0.3]])
    """

    def __init__(self, box: Box, reach: Array, norm: float) -> None:
        self.centers, self.reach, self.norm = box, reach, norm
        self.trivial = bool((reach == 0).all())

    @property
    def scale(self) -> Array:
        return self.reach

    def spread(self, X: Array, count: int) -> Array:
        offsets = unit_ball(max(count, 1), len(self.reach), self.norm) * self.reach
        return np.clip(X[:, None, :] + offsets, self.centers.lower, self.centers.upper)

    def project(self, X: Array, Z: Array) -> Array:
        # Cutting off at the border shortens every offset: what was in reach stays in reach.
        base = X[:, None, :]
        return np.clip(base + into(Z - base, self.reach, self.norm), self.centers.lower, self.centers.upper)

    def pull(self, X: Array, Z: Array, G: Array) -> Array:
        at_border = (self.centers.lower >= Z) | (self.centers.upper <= Z)
        held = at_border & (X[:, None, :] != Z)  # cut off there: such a coordinate stays when the center moves
        return np.where(held, 0.0, G)


class ParameterRegion(Region):
    """Parameters beside the center: finitely many values, or a box, or the part of a box near an estimate.

    Parameters
    ----------
    centers : Box
        Where centers lie.
    values : array of shape (m, q), optional
        The parameters an adversary may choose among.
    box : Box, optional
        Or the box it may choose from.
    estimate, reach : array of shape (q,), optional
        Restricts it to parameters near an estimate, in units of ``reach``.
    norm : float
        The norm that is at most 1 there.

    >>> region = ParameterRegion(Box.unit(1), values=np.array([[3.0], [4.0]]))
    >>> region.spread(np.array([[0.5]]), 9).tolist()
    [[[0.5, 3.0], [0.5, 4.0]]]
    """

    def __init__(
        self,
        centers: Box,
        *,
        values: Array | None = None,
        box: Box | None = None,
        estimate: Array | None = None,
        reach: Array | None = None,
        norm: float = 2.0,
    ) -> None:
        self.centers, self.values, self.norm = centers, values, norm
        self.finite = values is not None
        self.trivial = values is not None and len(values) == 1
        if box is not None:
            half = 0.5 * (box.upper - box.lower)
            self._middle = 0.5 * (box.lower + box.upper) if estimate is None else estimate
            self._reach = half if reach is None else reach
            self._lower, self._upper = box.lower, box.upper
            self.norm = norm if estimate is not None else math.inf

    @property
    def scale(self) -> Array:
        reach = np.zeros(self.values.shape[1]) if self.values is not None else self._reach
        return np.concatenate([np.zeros(self.centers.dimension), reach])

    def spread(self, X: Array, count: int) -> Array:
        if self.values is not None:
            theta = self.values
        else:
            offsets = unit_ball(max(count, 1), len(self._reach), self.norm) * self._reach
            theta = np.clip(self._middle + offsets, self._lower, self._upper)
        shape = (len(X), len(theta))
        left = np.broadcast_to(X[:, None, :], (*shape, X.shape[1]))
        return np.concatenate([left, np.broadcast_to(theta, (*shape, theta.shape[1]))], axis=-1)

    def project(self, X: Array, Z: Array) -> Array:
        d = self.centers.dimension
        theta = Z[..., d:]
        if self.values is not None:
            nearest = ((theta[..., None, :] - self.values) ** 2).sum(axis=-1).argmin(axis=-1)
            theta = self.values[nearest]
        else:
            moved = into(theta - self._middle, self._reach, self.norm)
            theta = np.clip(self._middle + moved, self._lower, self._upper)
        return np.concatenate([np.broadcast_to(X[:, None, :], (*Z.shape[:2], d)), theta], axis=-1)

    def pull(self, X: Array, Z: Array, G: Array) -> Array:
        return G[..., : self.centers.dimension]


@cache
def unit_ball(count: int, dimension: int, norm: float) -> Array:
    """Return points of a unit ball: the middle, its poles, and ``count`` others, every second one on the surface.

    >>> unit_ball(2, 1, 2.0)[:3].tolist()
    [[0.0], [1.0], [-1.0]]
    """
    poles = np.vstack([np.eye(dimension), -np.eye(dimension)])
    cube = 2.0 * unit_design(count, dimension, np.random.default_rng(0)) - 1.0
    largest = np.maximum(np.abs(cube).max(axis=1, keepdims=True), 1e-12)
    cube[::2] /= largest[::2]  # onto the surface of the cube, whose rays the ball shares
    size = gauge(cube, np.ones(dimension), norm)[:, None]
    ball = cube * np.abs(cube).max(axis=1, keepdims=True) / np.maximum(size, 1e-12)
    points = np.vstack([np.zeros((1, dimension)), poles, ball])
    points.setflags(write=False)
    return points


def into(offsets: Array, reach: Array, norm: float) -> Array:
    """Return the nearest offsets in reach: coordinate by coordinate in a box, along the ray in a ball.

    >>> into(np.array([3.0, 4.0]), np.array([1.0, 1.0]), 2.0).round(6)
    array([0.6, 0.8])
    """
    if math.isinf(norm):
        return np.clip(offsets, -reach, reach)
    offsets = np.where(reach > 0, offsets, 0.0)
    shorter: Array = offsets / np.maximum(gauge(offsets, reach, norm), 1.0)[..., None]
    return shorter
