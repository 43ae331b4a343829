"""Where is φ(x)ᵀω highest, with another ω in each sub-region?

The function jumps at the borders of sub-regions, so each is searched within its own bounds: many spread points first,
since with a short length-scale it has on the order of (1/l)^d bumps, and then a climb from the best few of every
sub-region, all of them at once. The spread points are the same for all agents and rounds, so φ at them is computed once
and kept as long as the features are: a search is then one product of matrices and the climb.

>>> from surefoot import Box
>>> features = SharedFeatures(1, 200, lengthscale=0.2, noise=1e-4, seed=0)
>>> peak = features(np.array([[0.3]]))[0]  # the weights of a function that is highest at 0.3
>>> x = best_point(features, peak[None], Regions((1,)), Box([(0.0, 10.0)]), rng=np.random.default_rng(0))
>>> x.round(3)
array([3.])

On candidates, and on other small finite domains, everything is that product: :func:`regional_values`.
"""

from __future__ import annotations

from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot.domain import Candidates, Domain
from surefoot.domain.climb import climb
from surefoot.domain.design import unit_design
from surefoot.domain.search import exhaustive
from surefoot.errors import Exhausted
from surefoot.federated.features import SharedFeatures, to_unit
from surefoot.federated.regions import Regions
from surefoot.loop.streams import stream

__all__ = ["SpreadTable", "best_point", "regional_values", "spread_points", "spread_table"]

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

PER_CELL = 8  # spread points for each length-scale cell
FEWEST, MOST = 2**11, 2**16  # spread points in all
STARTS = 8  # points of each sub-region that climb, 32 in all at least
BLOCK = 2**14  # points evaluated at once
TABLE = 2**23  # numbers of φ that are kept, 64 MiB
TABLES = 4  # tables that are kept for the same features: the whole domain, and its sub-regions


class SpreadTable(NamedTuple):
    """Points of the unit cube (n, e), their sub-regions (n,), and φ at them (n, M) where it is small enough to keep.

    >>> SpreadTable(np.zeros((3, 1)), np.zeros(3, dtype=np.intp), None).points.shape
    (3, 1)
    """

    points: Array
    region: Indices
    phi: Array | None

    def values(self, features: SharedFeatures, vectors: Array) -> Array:
        """Return φ(x)ᵀω⁽ⁱ⁾ at all points, shape (n,)."""
        if self.phi is not None:
            return regional_values(self.phi, vectors, self.region)
        parts = (np.array_split(a, 1 + len(a) // BLOCK) for a in (self.points, self.region))
        return np.concatenate([regional_values(features(U), vectors, index) for U, index in zip(*parts, strict=True)])


_tables: WeakKeyDictionary[SharedFeatures, dict[tuple[Regions, Domain], SpreadTable]] = WeakKeyDictionary()


def spread_table(features: SharedFeatures, regions: Regions, domain: Domain) -> SpreadTable:
    """Return the points that a search begins with: all of a small finite domain or of candidates, else spread ones.

    They depend on nothing but what is public, and are made once.

    >>> from surefoot import Box, Candidates
    >>> features = SharedFeatures(1, 50, lengthscale=0.2, noise=1e-4, seed=0)
    >>> spread_table(features, Regions((2,)), Candidates([0.0, 3.0, 4.0])).region
    array([0, 1, 1])
    >>> table = spread_table(features, Regions((2,)), Box.unit(1))
    >>> table.phi.shape, spread_table(features, Regions((2,)), Box.unit(1)) is table
    ((2048, 50), True)
    """
    mine = _tables.setdefault(features, {})
    if (regions, domain) not in mine:
        if len(mine) >= TABLES:
            mine.pop(next(iter(mine)))
        mine[regions, domain] = _table(features, regions, domain, stream(features.seed, "spread points"))
    return mine[regions, domain]


def regional_values(phi: Array, vectors: Array, index: Indices) -> Array:
    """Return φ(x)ᵀω⁽ⁱ⁾ for points with features phi (n, M) in the sub-regions index (n,), shape (n,).

    >>> regional_values(np.eye(2), np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([0, 1]))
    array([1., 4.])
    """
    # What line 7 of Algorithm 6.2 maximizes; with one sub-region, line 6 of Algorithm 5.1 (Dai's thesis, 2021).
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
    rng: np.random.Generator | None = None,
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
    rng : Generator, optional
        Places the spread points anew. None takes those of :func:`spread_table`.
    seeds, exclude : arrays of shape (k, d), optional
        Points to try as well, and points that must not be returned.
    iterations : int
        Gradient calls of the climb.

    >>> from surefoot import Int, Space
    >>> features = SharedFeatures(1, 100, lengthscale=0.2, noise=1e-4, seed=0)
    >>> peak = features(np.array([[0.5]]))
    >>> best_point(features, peak, Regions((1,)), Space(depth=Int(1, 5)))
    array([3.])
    """
    table = spread_table(features, regions, domain) if rng is None else _table(features, regions, domain, rng)
    U, index, values = table.points, table.region, table.values(features, vectors)
    if seeds is not None and not exhaustive(domain) and len(np.atleast_2d(np.asarray(seeds))):
        more = _on_domain(domain, to_unit(domain, domain.encode(seeds)))
        inside = regions.index(more)
        U, index = np.vstack([more, U]), np.concatenate([inside, index])
        values = np.concatenate([regional_values(features(more), vectors, inside), values])
    if domain.continuous.any():
        first = _starts(values, index, max(STARTS, 32 // regions.count))
        ends, heights = _climb(features, vectors, regions, domain, U[first], index[first], iterations)
        U, values = np.vstack([ends, U]), np.concatenate([heights, values])
    taken = np.empty((0, domain.dimension)) if exclude is None else np.atleast_2d(np.asarray(exclude))
    for count in (8, len(values)):
        block = _top(values, count)
        X = domain.decode(domain.lower + U[block] * domain.extent())
        free = np.flatnonzero(~Candidates(taken).contains(X)) if len(taken) else np.arange(len(X))
        if free.size:
            # Decoding rounds, and may carry a point across a border: what counts is the value where it came to lie.
            back = to_unit(domain, domain.encode(X[free]))
            best: Array = X[free[np.argmax(regional_values(features(back), vectors, regions.index(back)))]]
            return best
    raise Exhausted(f"no point was found besides the {len(taken)} excluded ones")


def _table(features: SharedFeatures, regions: Regions, domain: Domain, rng: np.random.Generator) -> SpreadTable:
    if exhaustive(domain):
        U = to_unit(domain, domain.encode(domain.enumerate()))
        return SpreadTable(U, regions.index(U), features(U))
    lower, upper = regions.boxes
    design = unit_design(spread_points(features, regions.count), features.dimension, rng)
    U = (lower[:, None] + design * (upper - lower)[:, None]).reshape(-1, features.dimension)
    if not domain.continuous.all():  # integers and choices: what is near, which may lie in another sub-region
        U = to_unit(domain, domain.project(domain.lower + U * domain.extent()))
    U = _on_domain(domain, U)
    return SpreadTable(U, regions.index(U), features(U) if U.shape[0] * features.count <= TABLE else None)


def _on_domain(domain: Domain, U: Array) -> Array:
    """Points of the unit cube with 0 where the domain cannot vary."""
    U[:, domain.upper == domain.lower] = 0.0
    return U


def _starts(values: Array, index: Indices, count: int) -> Indices:
    """The rows of the highest values in each sub-region."""
    rows = [np.flatnonzero(index == i) for i in range(int(index.max()) + 1)]
    return np.concatenate([each[_top(values[each], count)] for each in rows])


def _top(values: Array, count: int) -> Indices:
    """The places of the highest values, the highest first, without sorting the rest."""
    rows = np.argpartition(-values, count - 1)[:count] if count < len(values) else np.arange(len(values))
    best: Indices = rows[np.argsort(-values[rows], kind="stable")]
    return best


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
