"""Minima over a neighborhood of every point of a regular grid, all at once.

Two decompositions make the cost nearly independent of the size of the neighborhood:

* A **window** of 2w + 1 points along an axis is the union of two smaller ones, shifted apart, so that windows double:
  the minimum over any window takes O(log w) passes. A rectangle is one window per axis.
* A **convex footprint**, such as a ball, is a stack of windows along one axis, of few different widths: every width is
  reached from the last one, and each layer of the stack costs one shifted minimum. A ball of radius r in the plane is
  O(r) passes instead of the O(r²) of looking at every point of it.

Neighborhoods are cut off at the border: points outside the grid do not count, and nothing wraps or reflects.

>>> window_minimum(np.array([3.0, 1.0, 4.0, 1.0, 5.0, 9.0]), 1)
array([1., 1., 1., 1., 1., 5.])
>>> footprint_minimum(np.arange(9.0).reshape(3, 3), np.array([0, 1, 0])).tolist()
[[0.0, 0.0, 1.0], [0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["RegularGrid", "box_minimum", "footprint_minimum", "window_minimum"]

Array = NDArray[np.float64]
Indices = NDArray[np.intp]
UNEVEN = 1e-9  # of the extent: spacings that differ by less count as equal


def window_minimum(values: Array, half: int, axis: int = -1, *, known: int = 0) -> Array:
    """Return the minimum over the window from i − half to i + half along one axis.

    Parameters
    ----------
    values : array of any shape
        Values on the grid, or, with ``known``, their minima over smaller windows.
    half : int
        Half-width of the window in points, at least ``known``.
    axis : int
        The axis the window lies along.
    known : int
        Half-width of the windows that ``values`` are already minima over.

    >>> window_minimum(np.array([[2.0, 0.0, 1.0]]), 2).tolist()
    [[0.0, 0.0, 0.0]]
    """
    length = values.shape[axis]
    half, width = min(half, length - 1), known
    while width < half:
        # Windows of half-width w at i − s, i and i + s cover one of half-width w + s as long as s ≤ max(w, 1). Where
        # i − s lies outside, what is left of its window lies inside that at i.
        step = min(max(width, 1), half - width)
        near, far = _along(values, axis, slice(None, -step)), _along(values, axis, slice(step, None))
        new = values.copy()
        low, high = _along(new, axis, slice(None, -step)), _along(new, axis, slice(step, None))
        np.minimum(low, far, out=low)
        np.minimum(high, near, out=high)
        values, width = new, width + step
    return values


def box_minimum(values: Array, halves: ArrayLike) -> Array:
    """Return the minimum over a rectangle around every point: ``halves`` holds its half-width along each axis.

    >>> box_minimum(np.arange(9.0).reshape(3, 3), [1, 0]).tolist()
    [[0.0, 1.0, 2.0], [0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    """
    for axis, half in enumerate(np.asarray(halves).tolist()):
        values = window_minimum(values, half, axis)
    return values


def footprint_minimum(values: Array, halves: NDArray[np.integer]) -> Array:
    """Return the minimum over a footprint around every point.

    Parameters
    ----------
    values : array of shape (s₁, …, s_d)
    halves : integer array of shape (2k₁ + 1, …, 2k_{d−1} + 1)
        The footprint as windows along the last axis: half-width of the window for each offset along the other axes,
        −1 where there is none.

    >>> footprint_minimum(np.array([[5.0, 1.0], [2.0, 3.0]]), np.array([0, -1, 0])).tolist()
    [[2.0, 3.0], [5.0, 1.0]]
    """
    out = np.full_like(values, np.inf)
    middle = np.array(halves.shape) // 2
    widths = sorted(set(halves.ravel().tolist()) - {-1})
    window = values
    for known, width in pairwise([0, *widths]):
        window = window_minimum(window, width, known=known)
        for offset in (np.argwhere(halves == width) - middle).tolist():
            to = tuple(slice(max(-o, 0), s - max(o, 0)) for o, s in zip(offset, values.shape, strict=False))
            source = tuple(slice(max(o, 0), s - max(-o, 0)) for o, s in zip(offset, values.shape, strict=False))
            part = out[to]
            np.minimum(part, window[source], out=part)
    return out


def _along(values: Array, axis: int, part: slice) -> Array:
    index = [slice(None)] * values.ndim
    index[axis] = part
    view: Array = values[tuple(index)]
    return view


@dataclass(frozen=True)
class RegularGrid:
    """A list of points that is an evenly spaced grid, in whatever order.

    Parameters
    ----------
    shape : tuple of int
        Points along each axis.
    spacing : array of shape (d,)
        Distance of neighbors along each axis; 1 where there is only one point.
    cells : array of shape (n,), optional
        The place of each point in row-major order; None where that is the order of the list.

    >>> grid = RegularGrid.find(np.array([[0.0, 5.0], [0.5, 5.0], [0.0, 6.0], [0.5, 6.0], [0.0, 7.0], [0.5, 7.0]]))
    >>> grid.shape, grid.spacing
    ((2, 3), array([0.5, 1. ]))
    """

    shape: tuple[int, ...]
    spacing: Array
    cells: Indices | None = None

    @classmethod
    def find(cls, points: Array) -> Self | None:
        """Return the grid that the points (n, d) make, or None where they make none.

        >>> RegularGrid.find(np.array([[0.0], [1.0], [3.0]])) is None
        True
        """
        places, shape, spacing = [], [], []
        for column in points.T:
            axis, place = np.unique(column, return_inverse=True)
            gaps = np.diff(axis)
            if gaps.size and np.ptp(gaps) > UNEVEN * (axis[-1] - axis[0]):
                return None
            places.append(place.ravel())
            shape.append(axis.size)
            spacing.append(float(gaps.mean()) if gaps.size else 1.0)
        if np.prod(np.array(shape, dtype=np.float64)) != len(points):
            return None
        cells = np.ravel_multi_index(tuple(places), tuple(shape))
        if not np.array_equal(np.bincount(cells, minlength=len(points)), np.ones(len(points))):
            return None
        ordered = np.array_equal(cells, np.arange(len(points)))
        return cls(tuple(shape), np.array(spacing), None if ordered else cells)

    def spread(self, values: Array) -> Array:
        """Lay values of the points (n,) out on the grid."""
        if self.cells is None:
            return values.reshape(self.shape)
        laid = np.empty(len(values))
        laid[self.cells] = values
        return laid.reshape(self.shape)

    def collect(self, laid: Array) -> Array:
        """Return values on the grid in the order of the points, shape (n,)."""
        flat = laid.reshape(-1)
        return flat if self.cells is None else flat[self.cells]

    def around(self, index: int, offsets: Indices) -> Indices:
        """Return the points at some offsets (k, d) from a point that lie on the grid, in the order of the list."""
        place = index if self.cells is None else int(self.cells[index])
        found = np.array(np.unravel_index(place, self.shape)) + offsets
        found = found[((found >= 0) & (found < self.shape)).all(axis=1)]
        cells = np.ravel_multi_index(tuple(found.T), self.shape)
        return np.sort(cells if self.cells is None else self._points[cells])

    @property
    def _points(self) -> Indices:
        order = np.empty(len(self.cells), dtype=np.intp)  # type: ignore[arg-type]
        order[self.cells] = np.arange(len(order))
        return order
