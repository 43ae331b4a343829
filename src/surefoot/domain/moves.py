"""Moves: where a vehicle can go from each place, and what it measures on the way.

A move is a sequence of k stops, the same number from every place. A generator gives the moves of any places at once:

>>> Dives((5, 5), 2).table(np.array([12]))[0].tolist()  # a grid of 5 by 5 cells, from its middle
[[13, 14], [11, 10], [17, 22], [7, 2]]
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from surefoot.arguments import whole

__all__ = ["Dives", "GraphPaths", "MoveTable", "Moves"]

Indices = NDArray[np.intp]

MANY = 2_000_000  # stops of all paths from one place, beyond which a list of them is of no use


class Moves(ABC):
    """Where moves come from: for every place the sequences of stops that start there.

    Attributes
    ----------
    length : int
        Number of stops of every move.

    >>> Dives((3, 3), 1).length
    1
    """

    registry: ClassVar[dict[str, type[Moves]]] = {}
    length: int

    def __init_subclass__(cls) -> None:
        Moves.registry[cls.__name__] = cls

    @abstractmethod
    def check(self, size: int) -> None:
        """Raise a ValueError when these are not moves between ``size`` places."""

    @abstractmethod
    def table(self, places: Indices) -> Indices:
        """Return the moves from each of the places (m,), shape (m, A, k); rows of −1 fill up the shorter lists."""

    def travel(self, place: int, stops: Indices) -> float | None:
        """Return what the way of a move costs, None where nothing is known of that."""
        return None

    @property
    def uneven(self) -> bool:
        """Whether the ways of some moves cost more than those of others."""
        return False

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return a description in strict JSON."""


class Dives(Moves):
    """Straight lines of ``length`` cells on a regular grid, forwards and backwards along each axis.

    Moves that would leave the grid do not exist. The last axis comes first.

    Parameters
    ----------
    shape : sequence of int
        Cells along each axis; place number i is cell ``np.unravel_index(i, shape)``.
    length : int
        Cells of one dive.

    >>> Dives((1, 6), 3).table(np.array([0, 2])).tolist()
    [[[1, 2, 3], [-1, -1, -1], [-1, -1, -1], [-1, -1, -1]], [[3, 4, 5], [-1, -1, -1], [-1, -1, -1], [-1, -1, -1]]]
    """

    def __init__(self, shape: Sequence[int], length: int) -> None:
        self.shape = tuple(whole(side, "a side of the grid", 1) for side in shape)
        self.length = whole(length, "length", 1)
        if not self.shape:
            raise ValueError(f"a grid has at least one axis, got {shape!r}")

    def check(self, size: int) -> None:
        if (cells := int(np.prod(self.shape))) != size:
            raise ValueError(f"a grid of shape {self.shape} has {cells} cells, but there are {size} points")

    def table(self, places: Indices) -> Indices:
        cell = np.stack(np.unravel_index(places, self.shape), axis=-1)  # (m, axes)
        axes = len(self.shape)
        unit = np.repeat(np.eye(axes, dtype=np.intp)[::-1], 2, axis=0) * np.tile([1, -1], axes)[:, None]
        steps = unit[:, None, :] * np.arange(1, self.length + 1)[:, None]  # (A, k, axes)
        cells = cell[:, None, None, :] + steps
        inside = ((cells >= 0) & (cells < np.array(self.shape))).all(axis=(2, 3))
        rows = np.ravel_multi_index(tuple(np.moveaxis(cells, -1, 0)), self.shape, mode="clip")
        return _pushed(np.where(inside[:, :, None], rows, -1))

    def to_dict(self) -> dict[str, Any]:
        return {"moves": "Dives", "shape": list(self.shape), "length": self.length}


class GraphPaths(Moves):
    """Paths of ``length`` steps in a directed graph that visit no place twice, nor the one they start from.

    Of all paths from a place a random few are kept, always the same for the same ``seed``.

    Parameters
    ----------
    adjacency : sparse matrix, square array, or sequence of lists
        Entry (i, j) is not 0, or list i holds j, where a step leads from place i to place j. Entries other than 1 are
        travel costs: a move costs the sum of those along its way, unless ``Paths(cost=)`` says otherwise. Pass
        ``matrix != 0`` for steps that cost nothing.
    length : int
        Steps of one path.
    most : int, optional
        How many paths of each place are kept, drawn without replacement; None keeps all.
    seed : int
        Names the draw.
    weights : sequence of lists, optional
        The travel costs, where ``adjacency`` is lists: one number for each entry.

    >>> ring = GraphPaths([[1], [2], [3], [0]], 2)
    >>> ring.table(np.array([0])).tolist()
    [[[1, 2]]]
    >>> GraphPaths(np.array([[0.0, 2.5], [4.0, 0.0]]), 1).travel(1, np.array([0]))
    4.0
    """

    def __init__(self, adjacency: Any, length: int, most: int | None = 20, seed: int = 0, weights: Any = None) -> None:
        self.length = whole(length, "length", 1)
        self.most = None if most is None else whole(most, "most", 1)
        self.seed = whole(seed, "seed", 0)
        self._starts, self._ends, self._weights = _edges(adjacency, weights)
        self._known: dict[int, Indices] = {}

    def check(self, size: int) -> None:
        if (nodes := len(self._starts) - 1) != size:
            raise ValueError(f"the graph has {nodes} nodes, but there are {size} points")

    def every(self, place: int) -> Indices:
        """Return all paths from one place, shape (P, k), in lexical order of the edges.

        >>> GraphPaths([[1, 2], [2], [0]], 2, most=1).every(0).tolist()
        [[1, 2]]
        """
        found = np.array([[place]], dtype=np.intp)
        for _ in range(self.length):
            last = found[:, -1]
            degree = self._starts[last + 1] - self._starts[last]
            if int(degree.sum()) * self.length > MANY:
                raise ValueError(f"too many paths of {self.length} steps lead away from place {place}: shorten them")
            origin = np.repeat(np.arange(len(found)), degree)
            rank = np.arange(len(origin)) - np.repeat(np.cumsum(degree) - degree, degree)
            following = self._ends[self._starts[last][origin] + rank]
            fresh = (found[origin] != following[:, None]).all(axis=1)
            found = np.concatenate([found[origin[fresh]], following[fresh, None]], axis=1)
        return found[:, 1:]

    def _of(self, place: int) -> Indices:
        if place not in self._known:
            paths = self.every(place)
            if self.most is not None and len(paths) > self.most:
                rng = np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(place,)))
                paths = paths[np.sort(rng.choice(len(paths), self.most, replace=False))]
            self._known[place] = paths
        return self._known[place]

    def table(self, places: Indices) -> Indices:
        return _padded(places, self._of, self.length)

    def travel(self, place: int, stops: Indices) -> float | None:
        """Return the sum of the edges' weights on the way from a place over some stops; None without weights."""
        if self._weights is None:
            return None
        total, here = 0.0, place
        for following in stops:
            first, past = self._starts[here], self._starts[here + 1]
            edge = first + int(np.searchsorted(self._ends[first:past], following))
            if edge >= past or self._ends[edge] != following:
                raise ValueError(f"no step leads from place {here} to place {following}")
            total, here = total + float(self._weights[edge]), int(following)
        return total

    @property
    def uneven(self) -> bool:
        """Whether some edges have other weights than others."""
        return self._weights is not None and bool((self._weights != self._weights[0]).any())

    def to_dict(self) -> dict[str, Any]:
        lists = [part.tolist() for part in np.split(self._ends, self._starts[1:-1])]
        data = {"moves": "GraphPaths", "adjacency": lists, "length": self.length, "most": self.most, "seed": self.seed}
        if self._weights is not None:
            data["weights"] = [part.tolist() for part in np.split(self._weights, self._starts[1:-1])]
        return data


class MoveTable(Moves):
    """Moves that the user lists: for each place some sequences of stops, all of the same length.

    Parameters
    ----------
    moves : mapping of int to sequences of sequences of int
        Places that are not listed are dead ends.

    >>> MoveTable({0: [[1, 2], [2, 1]], 2: [[0, 1]]}).table(np.array([2, 1])).tolist()
    [[[0, 1]], [[-1, -1]]]
    """

    def __init__(self, moves: Mapping[int, Sequence[Sequence[int]]]) -> None:
        lengths = {len(stops) for listed in moves.values() for stops in listed}
        if len(lengths) != 1 or 0 in lengths:
            raise ValueError(f"all moves must have the same number of stops, at least one; got {sorted(lengths)}")
        self.length = lengths.pop()
        self._lists = {
            whole(int(place), "a place", 0): np.array(listed, dtype=np.intp).reshape(-1, self.length)
            for place, listed in moves.items()
        }

    def check(self, size: int) -> None:
        for place, stops in self._lists.items():
            if place >= size:
                raise ValueError(f"moves are listed for place {place}, but there are {size} points")
            if ((stops < 0) | (stops >= size)).any():
                row = stops[((stops < 0) | (stops >= size)).any(axis=1)][0]
                raise ValueError(f"the move {row.tolist()} from place {place} leaves the {size} points")

    def table(self, places: Indices) -> Indices:
        none = np.empty((0, self.length), dtype=np.intp)
        return _padded(places, lambda place: self._lists.get(place, none), self.length)

    def to_dict(self) -> dict[str, Any]:
        return {"moves": "MoveTable", "table": {str(place): rows.tolist() for place, rows in self._lists.items()}}


def _edges(adjacency: Any, weights: Any = None) -> tuple[Indices, Indices, NDArray[np.float64] | None]:
    """Edges in compressed rows: where each node's begin (n + 1,), where they lead (e,), sorted, and their weights (e,).

    Weights that are all 1 are none.
    """
    lists: list[Any]
    costs: list[Any] | None
    if hasattr(adjacency, "tocsr") or isinstance(adjacency, np.ndarray):
        from scipy.sparse import csr_array

        if weights is not None:
            raise ValueError("the entries of an adjacency matrix are its weights: give weights= with lists only")
        if len(adjacency.shape) != 2 or adjacency.shape[0] != adjacency.shape[1]:
            raise ValueError(f"an adjacency matrix is square, got shape {tuple(adjacency.shape)}")
        matrix = csr_array(adjacency).tocoo()
        kept = matrix.data != 0
        row, column, data = matrix.coords[0][kept], matrix.coords[1][kept], matrix.data[kept]
        order = np.lexsort((column, row))
        cuts = np.cumsum(np.bincount(row, minlength=adjacency.shape[0]))[:-1]
        lists, costs = np.split(column[order], cuts), np.split(np.asarray(data, dtype=np.float64)[order], cuts)
    else:
        lists, costs = list(adjacency), None if weights is None else list(weights)
        if costs is not None and [len(row) for row in costs] != [len(row) for row in lists]:
            raise ValueError("weights= needs one number for each edge, in lists as long as those of adjacency")
    found = [np.unique(np.array(row, dtype=np.intp), return_index=True) for row in lists]
    ends = [row for row, _ in found]
    for node, row in enumerate(ends):
        if row.size and (row[0] < 0 or row[-1] >= len(ends)):
            bad = row[0] if row[0] < 0 else row[-1]
            raise ValueError(
                f"an edge leads from node {node} to {bad}, which leaves the {len(ends)} nodes of the graph"
            )
    starts = np.concatenate([[0], np.cumsum([row.size for row in ends])]).astype(np.intp)
    flat = np.concatenate([*ends, np.empty(0, dtype=np.intp)]).astype(np.intp)
    if costs is None:
        return starts, flat, None
    charged = [np.asarray(cost, dtype=np.float64)[first] for cost, (_, first) in zip(costs, found, strict=True)]
    values = np.concatenate([*charged, np.empty(0)])
    if (bad_edges := np.flatnonzero(~(np.isfinite(values) & (values >= 0.0)))).size:
        node = int(np.searchsorted(starts, bad_edges[0], side="right")) - 1
        raise ValueError(
            f"the weight of the edge from node {node} to {flat[bad_edges[0]]} is {values[bad_edges[0]]}: weights are "
            "travel costs, finite and not negative; entries of 0 are no edges"
        )
    return starts, flat, None if (values == 1.0).all() else values


def _pushed(rows: Indices) -> Indices:
    """The same moves with the missing ones (−1) last."""
    order = np.argsort(rows[:, :, 0] < 0, axis=1, kind="stable")
    return np.take_along_axis(rows, order[:, :, None], axis=1)


def _padded(places: Indices, of: Callable[[int], Indices], length: int) -> Indices:
    """Lists of unequal length as one array; each different place is looked up once."""
    different, inverse = np.unique(places, return_inverse=True)
    lists = [of(int(place)) for place in different]
    table = np.full((len(lists), max((len(rows) for rows in lists), default=0) or 1, length), -1, dtype=np.intp)
    for row, moves in zip(table, lists, strict=True):
        row[: len(moves)] = moves
    return table[inverse.ravel()]
