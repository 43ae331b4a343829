"""Routes: fields that a vehicle explores move by move, and what a run of a policy is worth there.

A :class:`Route` is a field with the moves of its vehicle and the belief that its policies start from; :func:`travel`
drives a policy along it. Here is the sea: :func:`plankton`, an underwater vehicle that dives along the axes of a grid
of 50 by 50 cells, over a simulated density of plankton, and :func:`recorded`, four such fields with what nine methods
did there (data set ``macro_gpo_plankton``). Roads and corridors are in :mod:`surefoot_lab.roads`.

A field is measured as it is: what noise there is was added once, so that the same place always gives the same value.

>>> route = plankton(np.random.default_rng(0), side=20)
>>> route.size, route.start, route.domain().moves(route.start).shape
(400, 210, (4, 4))
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot.belief.gp import GP
from surefoot.belief.kernels import SE
from surefoot.domain.moves import Dives, Moves
from surefoot.domain.paths import Paths
from surefoot.loop.policy import Policy
from surefoot_lab import datasets
from surefoot_lab.registry import Trace
from surefoot_lab.samples import gp_sample_lattice

__all__ = ["Recording", "Route", "plankton", "recorded", "travel"]

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

BUDGET = 20  # measurements of a run
SIDE, STEP = 50, 0.1  # cells along an axis, km
PLANKTON = GP(SE(0.5), noise=1e-5)  # 0.5 km are five cells


@dataclass(frozen=True)
class Route:
    """A field, the moves of a vehicle in it, where it starts, and the belief of its policies.

    Parameters
    ----------
    name : str
        What plots call it.
    points : array of shape (n, d)
        The places.
    values : array of shape (n,)
        What a measurement gives there.
    moves : Moves
        How the vehicle moves.
    start : int
        The place it stands at first, whose value is known.
    gp : GP
        The hyper-parameters that policies are given.
    budget : int
        How many measurements a run makes, beside the one at the start.

    >>> route = plankton(np.random.default_rng(0), side=12, length=2)
    >>> route.begin(0).domain().moves(0).tolist()
    [[1, 2], [12, 24]]
    """

    name: str
    points: Array
    values: Array
    moves: Moves
    start: int
    gp: GP
    budget: int = BUDGET

    @property
    def size(self) -> int:
        """Number of places."""
        return len(self.values)

    @property
    def optimum(self) -> float:
        """The highest value of the field."""
        return float(self.values.max())

    @property
    def stages(self) -> int:
        """Number of moves of a run."""
        return self.budget // self.moves.length

    def domain(self) -> Paths:
        """Return the domain of the policies."""
        return Paths(self.points, self.moves, start=self.start, budget=self.budget)

    def begin(self, start: int) -> Route:
        """Return the same field with another start."""
        return replace(self, start=start)

    def center(self, normalize: str = "empirical") -> float:
        """Return what is subtracted from measurements before they are averaged.

        Parameters
        ----------
        normalize : str
            "empirical": the mean of the field, as in the published evaluations; "prior": the prior mean, as in the text
            about them; "none": zero.

        >>> plankton(np.random.default_rng(0), side=10).center("prior")
        0.0
        """
        centers = {"empirical": float(self.values.mean()), "prior": float(self.gp.mean), "none": 0.0}
        if normalize not in centers:
            raise ValueError(f"normalize is one of {', '.join(centers)}, got {normalize!r}")
        return centers[normalize]

    def score(self, stops: ArrayLike, *, normalize: str = "empirical", include_start: bool = True) -> Trace:
        """Return what the places visited after the start are worth: one entry after each measurement.

        Parameters
        ----------
        stops : array of shape (T,)
            Places in the order of their visit.
        normalize : str
            See :meth:`center`.
        include_start : bool
            Whether the start counts as measured, in the mean and among the best.

        Returns
        -------
        Trace
            ``output``, the mean measurement so far less the center, and ``simple_regret``, the maximum of the field
            less the best measurement so far.

        >>> route = plankton(np.random.default_rng(0), side=10)
        >>> route.score([int(route.values.argmax())])["simple_regret"]
        array([0.])
        """
        places = np.asarray(stops, dtype=np.intp)
        measured = self.values[np.concatenate([[self.start], places])]
        first = 0 if include_start else 1
        mean = np.cumsum(measured[first:]) / np.arange(1, measured.size + 1 - first)
        best = np.maximum.accumulate(measured[first:])
        return Trace(
            output=mean[1 - first :] - self.center(normalize),
            simple_regret=self.optimum - best[1 - first :],
        )


def travel(
    policy: Policy,
    route: Route,
    *,
    normalize: str = "empirical",
    include_start: bool = True,
    prior: ArrayLike = (),
) -> Trace:
    """Drive a policy until its budget is spent, and score what it measured.

    Parameters
    ----------
    policy : Policy
        A fresh policy on ``route.domain()``.
    route : Route
        The field.
    normalize : str
        See :meth:`Route.center`.
    include_start : bool
        Whether the measurement at the start counts; the policy knows it in any case.
    prior : array of shape (p,)
        Further places whose values the policy is told before.

    Returns
    -------
    Trace
        What :meth:`Route.score` gives; ``stops``, the places in order; ``seconds`` of each move's choice; and, of
        policies that plan, ``nodes`` of each move's tree.

    >>> from surefoot.policy.routes.macro_gpo import MacroGPO
    >>> route = plankton(np.random.default_rng(0), side=20)
    >>> travel(MacroGPO(route.domain(), horizon=1, gp=route.gp, seed=0), route)["stops"].size
    20
    """
    for place in (*np.asarray(prior, dtype=np.intp).tolist(), route.start):
        policy.tell(route.points[place], float(route.values[place]))
    stops: list[int] = []
    seconds, nodes = [], []
    for _ in range(route.stages):
        begun = time.perf_counter()
        query = policy.ask()
        seconds.append(time.perf_counter() - begun)
        visited = [int(stop) for stop in query.note["stops"]]
        policy.tell(query, route.values[visited])
        stops += visited
        nodes += [query.note["nodes"]] if "nodes" in query.note else []
    trace = route.score(stops, normalize=normalize, include_start=include_start)
    trace.metrics |= Trace(stops=stops, seconds=seconds, **({"nodes": nodes} if nodes else {})).metrics
    return trace


def plankton(rng: np.random.Generator, *, length: int = 4, side: int = SIDE, budget: int = BUDGET) -> Route:
    """Return a simulated field of plankton: a draw from the process that its policies believe in.

    Cells are 0.1 km apart, the length-scale is five cells, the vehicle starts in the middle and dives ``length`` cells
    at a time. With 20 measurements it cannot leave 50 by 50 cells.

    >>> plankton(np.random.default_rng(3), side=11).start
    60
    """
    if side < 2 * length + 1:
        raise ValueError(f"dives of {length} cells need a grid of at least {2 * length + 1} cells a side, got {side!r}")
    axis = STEP * np.arange(side)
    field = gp_sample_lattice(SE(0.5), [axis, axis], rng)
    points: Array = field.domain.enumerate()
    values = field(points) + np.sqrt(PLANKTON.noise) * rng.standard_normal(len(points))
    start = (side // 2) * side + side // 2
    return Route("plankton", points, values, Dives((side, side), length), start, PLANKTON, budget)


@dataclass(frozen=True)
class Recording:
    """What one method did on a recorded field: 20 places after the start, the sums of its measurements, its nodes.

    >>> Recording("h1", np.array([1, 2]), np.array([0.5])).method
    'h1'
    """

    method: str
    stops: Indices
    reward: Array


@cache
def recorded(index: int) -> tuple[Route, dict[str, Recording]]:
    """Return one of four published fields, and what nine methods did there.

    Units are those of the record: cells 0.05 apart, length-scale 0.25.

    Raises
    ------
    MissingData
        The data set ``macro_gpo_plankton`` is not on this machine.

    >>> recorded(4)
    Traceback (most recent call last):
    ...
    ValueError: there are four recorded fields, 0 to 3, not 4
    """
    if index not in range(4):
        raise ValueError(f"there are four recorded fields, 0 to 3, not {index!r}")
    data = datasets.load("macro_gpo_plankton")
    grid, stored = data["grid"], data["hyperparameters"]
    points = np.stack(np.meshgrid(grid, grid, indexing="ij"), axis=-1).reshape(-1, 2)
    cells = np.rint((data["location"][index] - grid[0]) / stored["grid_step"]).astype(np.intp)
    places = np.ravel_multi_index((cells[..., 0], cells[..., 1]), (len(grid), len(grid)))
    kernel = SE(stored["lengthscale"], variance=stored["signal_variance"])
    gp = GP(kernel, mean=stored["mean"], noise=stored["noise_variance"])
    moves = Dives((len(grid), len(grid)), stored["macro_action_length"])
    name = f"plankton, seed {int(data['seed'][index])}"
    budget = stored["stages"] * stored["macro_action_length"]
    route = Route(name, points, data["field"][index].ravel(), moves, int(places[0, 0]), gp, budget)
    rows = zip(data["method"], places, data["reward"][index], strict=True)
    return route, {str(method): Recording(str(method), stops[1:], reward) for method, stops, reward in rows}
