"""Roads and corridors: fields on a graph that a vehicle explores path by path.

* :func:`taxi`: a taxi cruises through 2,506 regions of a city along its roads, and counts passengers (data set
  ``taxi``);
* :func:`corridor`: a robot drives through the corridors of a laboratory and measures temperatures (``intel_lab``: the
  published graph; the temperatures are not published, so that a field drawn with the published hyper-parameters stands
  for them).

>>> ring = GraphPaths([[1], [2], [0]], 2)
>>> lasting(ring, 3).table(np.array([1])).tolist()
[[[2, 0]]]
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from surefoot.belief.gp import GP
from surefoot.belief.kernels import SE
from surefoot.domain.moves import GraphPaths, Moves, MoveTable
from surefoot_lab import datasets
from surefoot_lab.routes import BUDGET, Route
from surefoot_lab.samples import gp_sample_grid

__all__ = ["corridor", "lasting", "published_graph", "taxi"]

Array = NDArray[np.float64]
Indices = NDArray[np.intp]
Leads = tuple[tuple[int, ...], ...]  # where a step may lead from each place

LABORATORY = GP(SE([4.0058, 11.3811], variance=0.5964), mean=17.8513, noise=0.0597)  # meters, °C


@cache
def _city() -> tuple[Array, Array, Leads, GP]:
    """Regions with a road (row and column of their cell), their values, where roads lead from each, and the belief."""
    data = datasets.load("taxi")
    open_ = data["accessible"].astype(bool)
    number = np.cumsum(open_) - 1
    points = np.stack([data["row"], data["col"]], axis=1)[open_].astype(np.float64)
    stored = data["hyperparameters"]["slot18"]
    kernel = SE([stored["lengthscale_row"], stored["lengthscale_col"]], variance=stored["signal_variance"])
    gp = GP(kernel, mean=stored["mean"], noise=stored["noise_variance"])
    return points, data["value_slot18"][open_], _roads(number[data["edges"].astype(np.intp)], len(points)), gp


def _roads(edges: Indices, size: int) -> Leads:
    """Where edges (e, 2) lead from each place."""
    order = np.argsort(edges[:, 0], kind="stable")
    ends = np.split(edges[order, 1], np.cumsum(np.bincount(edges[:, 0], minlength=size))[:-1])
    return tuple(tuple(int(end) for end in row) for row in ends)


def lasting(graph: Moves, size: int) -> MoveTable:
    """Return the moves after which another move is always possible, for every place.

    A road may lead to a region with no way on; a move that ends there is left out, and so on, until none does.

    >>> way = GraphPaths([[1, 2], [0], [3], []], 1)  # 3 is a dead end, and so is 2, behind which is nothing else
    >>> lasting(way, 4).table(np.array([0, 1, 2])).tolist()
    [[[1]], [[0]], [[-1]]]
    """
    return MoveTable({place: rows.tolist() for place, rows in _lasting(graph, size).items()})


def _lasting(graph: Moves, size: int) -> dict[int, Indices]:
    """The same as arrays (A, k), without the places that have none."""
    lists = {place: graph.table(np.array([place], dtype=np.intp))[0] for place in range(size)}
    lists = {place: rows[rows[:, 0] >= 0] for place, rows in lists.items()}
    while True:
        alive = np.array([len(lists[place]) > 0 for place in range(size)])
        kept = {place: rows[alive[rows[:, -1]]] for place, rows in lists.items()}
        if all(len(kept[place]) == len(lists[place]) for place in range(size)):
            return {place: rows for place, rows in kept.items() if len(rows)}
        lists = kept


def _check_length(length: int) -> None:
    if length not in range(1, BUDGET + 1):
        raise ValueError(f"a run makes {BUDGET} measurements; a move has 1 to {BUDGET} of them, not {length!r}")


def _route(
    name: str,
    points: Array,
    values: Array,
    leads: Leads,
    gp: GP,
    rng: np.random.Generator,
    length: int,
    most: int | None,
) -> Route:
    """A route with random paths along a graph, from a random place that has one."""
    paths = GraphPaths(leads, length, most=most, seed=int(rng.integers(2**31)))
    kept = _lasting(paths, len(points))
    start = int(rng.choice(np.array(sorted(kept))))
    moves = MoveTable({place: rows.tolist() for place, rows in kept.items()})
    return Route(name, points, values, moves, start, gp, BUDGET)


def taxi(rng: np.random.Generator, *, most: int | None = 20, length: int = 5) -> Route:
    """Return the demand for taxis in a city, from a random region, with random paths along its roads.

    Coordinates are rows and columns of the grid of regions, values logarithms of pick-ups. Each region keeps ``most``
    of its paths, drawn once; moves into one of the few regions with no way on are left out.

    Raises
    ------
    MissingData
        The data set ``taxi`` is not on this machine.

    >>> taxi(np.random.default_rng(0), length=21)
    Traceback (most recent call last):
    ...
    ValueError: a run makes 20 measurements; a move has 1 to 20 of them, not 21
    """
    _check_length(length)
    points, values, roads, gp = _city()
    return _route("taxi demand", points, values, roads, gp, rng, length, most)


@cache
def _laboratory() -> tuple[Array, Leads]:
    """Places of the corridor graph, and where its edges lead from each."""
    data = datasets.load("intel_lab")
    edges = data["graph_edges"].astype(np.intp)
    both = np.concatenate([edges, edges[:, ::-1]])
    return data["graph_coordinates"].astype(np.float64), _roads(both, len(data["graph_coordinates"]))


def corridor(
    rng: np.random.Generator, *, field: np.random.Generator | None = None, most: int | None = 20, length: int = 5
) -> Route:
    """Return simulated temperatures in the corridors of a laboratory, from a random place.

    The graph is the published one: 54 sensors and the 91 midpoints between neighbors, coordinates in meters. The field
    is a draw from the process with the published hyper-parameters, noise included.

    Parameters
    ----------
    rng : Generator
        Draws the moves that are kept, and the start.
    field : Generator, optional
        Draws the field; by default ``rng`` does, first.
    most : int, optional
        How many paths of each place are kept; None keeps all.
    length : int
        Places of one move.

    Raises
    ------
    MissingData
        The data set ``intel_lab`` is not on this machine.

    >>> corridor(np.random.default_rng(0), length=0)
    Traceback (most recent call last):
    ...
    ValueError: a run makes 20 measurements; a move has 1 to 20 of them, not 0
    """
    _check_length(length)
    points, doors = _laboratory()
    drawing = rng if field is None else field
    drawn = gp_sample_grid(LABORATORY.kernel, points, drawing, mean=LABORATORY.mean)(points)
    values = drawn + np.sqrt(LABORATORY.noise) * drawing.standard_normal(len(points))
    return _route("laboratory", points, values, doors, LABORATORY, rng, length, most)


def published_graph(route: str) -> dict[str, float]:
    """Return facts about a published graph, "taxi" or "corridor".

    Places, directed edges, the largest out-degree, and how many paths of five steps lead away from a place: mean, most,
    fewest, and how many places have none. Of the taxi demand also its mean and maximum.

    >>> published_graph("subway")
    Traceback (most recent call last):
    ...
    ValueError: the published graphs are 'taxi' and 'corridor', not 'subway'
    """
    if route not in ("taxi", "corridor"):
        raise ValueError(f"the published graphs are 'taxi' and 'corridor', not {route!r}")
    leads = _city()[2] if route == "taxi" else _laboratory()[1]
    walks = GraphPaths(leads, 5, most=None)
    degrees = np.array([len(row) for row in leads])
    paths = np.array([len(walks.every(place)) for place in range(len(leads))])
    facts = {
        "places": len(leads),
        "edges": degrees.sum(),
        "degree": degrees.max(),
        "mean_paths": paths.mean(),
        "most_paths": paths.max(),
        "fewest_paths": paths.min(),
        "without_paths": (paths == 0).sum(),
    }
    if route == "taxi":
        facts |= {"mean": _city()[1].mean(), "maximum": _city()[1].max()}
    return {name: float(fact) for name, fact in facts.items()}
