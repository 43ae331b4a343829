"""Which candidates lie within a distance of each other: what an adversary reaches on a finite domain."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from surefoot.domain.minfilter import RegularGrid
from surefoot.domain.sets import Filtered, ListedSets, Sets, gauge

__all__ = ["rounding", "within", "within_distance"]

Array = NDArray[np.float64]
Distance = Callable[[Array, Array], Array]
ROUNDING = 1e-12  # share of a radius by which a distance may exceed it
BLOCK = 2**22  # distances held at once


def within(points: Array, scale: Array, norm: float) -> Sets:
    """Return, for each candidate, those whose offset has a norm of at most 1 in units of ``scale`` (d,).

    >>> within(np.array([[0.0], [1.0], [3.0]]), np.array([1.5]), 2.0).members(1).tolist()
    [0, 1]
    """
    count = len(points)
    # A reach below the rounding of the coordinates is none: it would tell equal coordinates apart, or none at all.
    scale = np.where(scale > 4.0 * np.finfo(np.float64).eps * np.abs(points).max(), scale, 0.0)
    if (scale == 0).all():
        return ListedSets(points, np.arange(count), np.arange(count))
    slack = rounding(points, scale)
    if (grid := RegularGrid.find(points)) is not None:
        return Filtered(points, grid, scale, norm, slack)
    if (scale > 0).all():
        near = cKDTree(points / scale).query_pairs(1.0 + slack, p=norm, output_type="ndarray")
        itself = np.arange(count)
        centers = np.concatenate([near[:, 0], near[:, 1], itself])
        members = np.concatenate([near[:, 1], near[:, 0], itself])
        order = np.lexsort((members, centers))
        starts = np.searchsorted(centers[order], itself)
        return ListedSets(points, members[order].astype(np.intp), starts)
    return within_distance(points, lambda X, Z: gauge(X[:, None] - Z, scale, norm), 1.0, slack)


def within_distance(points: Array, distance: Distance, radius: float, slack: float = ROUNDING) -> ListedSets:
    """Return, for each candidate X, the candidates Z with distance(X, Z) ≤ radius.

    >>> points = np.array([[0.0], [1.0], [3.0]])
    >>> within_distance(points, lambda X, Z: np.abs(X - Z.T), 1.5).members(2).tolist()
    [2]
    """
    found, sizes = [], []
    for block in _blocks(points):
        apart = np.asarray(distance(block, points), dtype=np.float64)
        if apart.shape != (len(block), len(points)):
            raise ValueError(
                f"a distance of {len(block)} and {len(points)} points has shape {(len(block), len(points))}, "
                f"got {apart.shape}"
            )
        inside = apart <= radius * (1.0 + slack)
        found.append(np.nonzero(inside)[1])
        sizes.append(inside.sum(axis=1))
    counts = np.concatenate(sizes)
    return ListedSets(points, np.concatenate(found).astype(np.intp), np.cumsum(counts) - counts, compare=True)


def _blocks(points: Array) -> Iterator[Array]:
    rows = max(1, BLOCK // (points.size))
    return (points[start : start + rows] for start in range(0, len(points), rows))


def rounding(points: Array, scale: Array) -> float:
    """Return how much a distance in units of ``scale`` may exceed 1: rounding of it and of the coordinates.

    >>> bool(rounding(np.ones((1, 1)), np.ones(1)) < 1e-11)
    True
    """
    positive = scale[scale > 0]
    largest = float(np.abs(points).max())
    return ROUNDING + (4.0 * np.finfo(np.float64).eps * largest / float(positive.min()) if positive.size else 0.0)
