"""Where is φ(x)ᵀω highest, with another ω in each sub-region?

The function jumps at the borders of sub-regions, so each is searched within its own bounds: many spread points first,
since with a short length-scale it has on the order of (1/l)^d bumps, and then a climb from the best few of every
sub-region, all of them at once.

>>> from surefoot import Box
>>> features = SharedFeatures(1, 200, lengthscale=0.2, noise=1e-4, seed=0)
>>> peak = features(np.array([[0.3]]))[0]  # the weights of a function that is highest at 0.3
>>> x = best_point(features, peak[None], Regions((1,)), Box([(0.0, 10.0)]), rng=np.random.default_rng(0))
>>> x.round(3)
array([3.])

On candidates everything is one product of matrices: :func:`regional_values`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot.domain import Candidates, Domain
from surefoot.domain.design import unit_design
from surefoot.federated.features import SharedFeatures, to_unit
from surefoot.federated.regions import Regions
from surefoot.loop.climb import climb
from surefoot.loop.errors import Exhausted
from surefoot.loop.maximize import EXHAUSTIVE

__all__ = ["best_point", "regional_values", "spread_points"]

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

PER_CELL = 8  # spread points for each length-scale cell
FEWEST, MOST = 2**11, 2**16  # spread points in all
STARTS = 8  # points of each sub-region that climb, 32 in all at least
BLOCK = 2**14  # points evaluated at once


def regional_values(phi: Array, vectors: Array, index: Indices) -> Array:
    """Return φ(x)ᵀω⁽ⁱ⁾ for points with features phi (n, M) in the sub-regions index (n,), shape (n,).

    >>> regional_values(np.eye(2), np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([0, 1]))
    array([1., 4.])
    """
    values: Array = np.take_along_axis(phi @ vectors.T, np.asarray(index)[:, None], axis=1)[:, 0]
    return values


def spread_points(features: SharedFeatures, parts: int = 1) -> int:
    """Return how many points to try in each of ``parts`` sub-regions before climbing.

    >>> spread_points(SharedFeatures(2, 100, lengthscale=0.01, noise=1e-6, seed=0), 4)
    16384
    """
    cells = min((1.0 / features.lengthscale) ** features.dimension, float(MOST))
    wanted = min(max(PER_CELL * cells, FEWEST), MOST)
    return int(2 ** max(6, np.ceil(np.log2(wanted / parts))))


def best_point(
    features: SharedFeatures,
    vectors: Array,
    regions: Regions,
    domain: Domain,
    *,
    rng: np.random.Generator,
    seeds: ArrayLike | None = None,
    exclude: ArrayLike | None = None,
    iterations: int = 30,
) -> Array:
    """Return the point of a domain, shape (d,), with the highest φ(x)ᵀω^(i(x)).

    Parameters
    ----------
    features : SharedFeatures
        φ, over the unit cube of the domain.
    vectors : array of shape (P, M)
        One ω for each sub-region.
    regions : Regions
        The sub-regions.
    domain : Domain
        Where to search; small finite ones are searched exhaustively.
    rng : Generator
        Places the spread points.
    seeds, exclude : arrays of shape (k, d), optional
        Points to try as well, and points that must not be returned.
    iterations : int
        Gradient calls of the climb.

    >>> from surefoot import Int, Space
    >>> features = SharedFeatures(1, 100, lengthscale=0.2, noise=1e-4, seed=0)
    >>> peak = features(np.array([[0.5]]))
    >>> best_point(features, peak, Regions((1,)), Space(depth=Int(1, 5)), rng=np.random.default_rng(0))
    array([3.])
    """
    U, index = _spread(features, regions, domain, rng, seeds)
    values = np.concatenate(
        [
            regional_values(features(block), vectors, part)
            for block, part in zip(*(np.array_split(a, 1 + len(U) // BLOCK) for a in (U, index)), strict=True)
        ]
    )
    if domain.continuous.any():
        first = _starts(values, index, max(STARTS, 32 // regions.count))
        ends, heights = _climb(features, vectors, regions, domain, U[first], index[first], iterations)
        U, values = np.vstack([ends, U]), np.concatenate([heights, values])
    taken = np.empty((0, domain.dimension)) if exclude is None else np.atleast_2d(np.asarray(exclude))
    order = np.argsort(-values, kind="stable")
    for block in (order[:8], order[8:]):
        X = domain.decode(domain.lower + U[block] * domain.extent())
        free = np.flatnonzero(~Candidates(taken).contains(X)) if len(taken) else np.arange(len(X))
        if free.size:
            # Decoding rounds, and may carry a point across a border: what counts is the value where it came to lie.
            back = to_unit(domain, domain.encode(X[free]))
            best: Array = X[free[np.argmax(regional_values(features(back), vectors, regions.index(back)))]]
            return best
    raise Exhausted(f"no point was found besides the {len(taken)} excluded ones")


def _spread(
    features: SharedFeatures, regions: Regions, domain: Domain, rng: np.random.Generator, seeds: ArrayLike | None
) -> tuple[Array, Indices]:
    """Points of the unit cube (n, e) and their sub-regions (n,): all of a small finite domain, else as many in each."""
    if domain.size is not None and domain.size <= EXHAUSTIVE:
        U = to_unit(domain, domain.encode(domain.enumerate()))
        return U, regions.index(U)
    lower, upper = regions.boxes
    design = unit_design(spread_points(features, regions.count), features.dimension, rng)
    U = (lower[:, None] + design * (upper - lower)[:, None]).reshape(-1, features.dimension)
    if not domain.continuous.all():  # integers and choices: what is near, which may lie in another sub-region
        U = to_unit(domain, domain.project(domain.lower + U * domain.extent()))
    if seeds is not None and len(np.atleast_2d(np.asarray(seeds))):
        U = np.vstack([to_unit(domain, domain.encode(seeds)), U])
    U[:, domain.upper == domain.lower] = 0.0  # what cannot vary
    return U, regions.index(U)


def _starts(values: Array, index: Indices, count: int) -> Indices:
    """The rows of the highest values in each sub-region."""
    order = np.lexsort((-values, index))
    regions = index[order]
    rank = np.arange(len(order)) - np.searchsorted(regions, regions)
    return order[rank < count]


def _climb(
    features: SharedFeatures, vectors: Array, regions: Regions, domain: Domain, U: Array, index: Indices, calls: int
) -> tuple[Array, Array]:
    """Climb from the rows of U, each within its sub-region and in the coordinates that vary continuously."""
    columns = np.flatnonzero(domain.continuous & (domain.upper > domain.lower))
    lower, upper = (corner[index][:, columns] for corner in regions.boxes)
    width = upper - lower
    W = vectors[index]
    scale = float(np.abs(W).sum(axis=1).max()) / features.count**0.5 or 1.0

    def function(T: Array, rows: Indices) -> tuple[Array, Array]:
        points = U[rows]
        points[:, columns] = lower[rows] + T * width[rows]
        phi, pull = features.fourier.pull_input(points)
        values = np.vecdot(phi, W[rows])
        return values / scale, pull(W[rows])[:, columns] * (width[rows] / scale)

    T = np.clip((U[:, columns] - lower) / width, 0.0, 1.0)
    ends, heights = climb(function, T, iterations=calls, tolerance=1e-9)
    found = U.copy()
    found[:, columns] = lower + ends * width
    return found, heights * scale
