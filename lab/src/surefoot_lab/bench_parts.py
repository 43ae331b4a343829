"""The array-heavy parts of Surefoot, each as a problem that runs on NumPy, on torch, and on a CUDA device alike.

A :class:`Part` knows its problem sizes and makes a :class:`Case` at a place: ``work`` is what is timed, ``answer`` what
came of it, to be compared with NumPy's, and ``least`` a :class:`~surefoot_lab.bench_rates.Work` that cannot be done
without.

>>> from surefoot_lab.bench_rates import Place
>>> case = PARTS["grid"].make(Place(), candidates=50, measurements=5)
>>> case.work()
>>> case.answer().shape, case.least().bytes
((100,), 2000.0)
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from surefoot.belief.gp import GP
from surefoot.belief.grid import GridPosterior
from surefoot.belief.kernels import SE
from surefoot.belief.lookahead import Lookahead
from surefoot.domain import Dives, Paths
from surefoot.federated.features import SharedFeatures, stacked_draws
from surefoot.federated.schedules import Decay
from surefoot.federated.simulation import BLOCK, DEVICE_BLOCK, Simulation, simulate, synthetic_family
from surefoot.loop.types import Query
from surefoot.policy.routes.macro_gpo import MacroGPO
from surefoot.select.facility import FacilityLocation
from surefoot.select.greedy_family import greedy
from surefoot.select.objective import to_host
from surefoot_lab.bench_rates import Place, Work
from surefoot_lab.problems import grid

__all__ = ["PARTS", "Case", "Part", "clustered_points", "on_its_way"]

Array = NDArray[np.float64]
SAMPLE = 1000  # candidates at which long answers are compared


class Case(Protocol):
    """One part of one size at one place."""

    def work(self) -> None:
        """Do what is timed."""

    def answer(self) -> Array:
        """Return what the last work found, as NumPy; without any, the same found in a cheaper way."""

    def least(self) -> Work:
        """Return what the work cannot do without; asked after it."""


@dataclass(frozen=True)
class Part:
    """A computation that is measured.

    Parameters
    ----------
    title : str
        What it is called in the table.
    make : callable
        Given a :class:`~surefoot_lab.bench_rates.Place` and a size by keywords, makes a case.
    small, large : tuple of mappings
        The sizes, of which the large ones begin with one that is too small for a device; ``only="device"`` among the
        keywords leaves out the times of the processor, which would be too long.
    text : str
        How a size reads, a format string of its keywords.
    memory : callable
        How many bytes a case of a size takes.

    >>> PARTS["grid"].named({"candidates": 10**6, "measurements": 1000})
    '1,000,000 candidates, 1,000 measurements'
    """

    title: str
    make: Callable[..., Case]
    small: tuple[Mapping[str, Any], ...]
    large: tuple[Mapping[str, Any], ...]
    text: str
    memory: Callable[..., float] = field(default=lambda **size: 0.0)

    def named(self, size: Mapping[str, Any]) -> str:
        """Return how a size reads in the table."""
        return self.text.format(**size)


# -- problems ----------------------------------------------------------------------------------------------------------


def clustered_points(count: int, dimensions: int, *, clusters: int = 50) -> Array:
    """Return points in clusters of very different sizes, shape (count, dimensions).

    >>> clustered_points(5, 3).shape
    (5, 3)
    """
    rng = np.random.default_rng(0)
    centers = 3.0 * rng.normal(size=(clusters, dimensions))
    shares = rng.dirichlet(np.full(clusters, 0.5))
    return centers[rng.choice(clusters, size=count, p=shares)] + rng.normal(size=(count, dimensions))


def on_its_way(*, side: int = 50, moves: int = 8, **options: Any) -> MacroGPO:
    """Return a planner in the middle of its way over a grid of cells, with the measurements of some moves.

    The problem is that of Kharkovskii, Ling & Low 2020: a length-scale of 5 cells, four dives of 4 cells each.

    Parameters
    ----------
    side, moves : int
        Cells along each side, and moves that were made before.
    **options
        Of :class:`~surefoot.policy.routes.macro_gpo.MacroGPO`.

    >>> len(on_its_way(side=20, moves=1, horizon=2).history)
    5
    """
    cells = grid([(0.0, side - 1.0)] * 2, side)
    start = (side + 1) * side // 2
    paths = Paths(cells, Dives((side, side), 4), start=start)
    policy = MacroGPO(paths, **options, gp=GP(SE(5.0), noise=1e-5), seed=0)
    values = policy.gp.condition().sample(cells, 1, np.random.default_rng(0))[0]
    walker = MacroGPO(paths, horizon=1, gp=policy.gp, seed=0)  # measurements along a way, none of them a move
    for way in (policy, walker):
        way.tell(cells[start], values[start])
    for _ in range(moves):
        query = walker.ask()
        walker.tell(query, values[query.note["stops"]])
        for stop in query.note["stops"]:
            policy.tell(cells[stop], values[stop])
    return policy


def _measured(place: Place, points: Array, lengthscale: float, measurements: int) -> GridPosterior:
    """The belief at all points after some measurements, made at once."""
    rng = np.random.default_rng(1)
    indices, y = rng.integers(len(points), size=measurements), rng.standard_normal(measurements)
    return GridPosterior.condition(GP(SE(lengthscale), noise=1e-2), place.put(points), indices, y)


# -- cases -------------------------------------------------------------------------------------------------------------


class GridCase:
    """One measurement more at all candidates: ``GridPosterior.append``.

    >>> GridCase(Place(), candidates=9, measurements=3).least()
    Work(bytes=216.0, flops=0.0, flops32=0.0, pairs=0.0, pairs32=0.0)
    """

    def __init__(self, place: Place, candidates: int, measurements: int) -> None:
        self.size = candidates, measurements
        points = np.random.default_rng(0).random((candidates, 2))
        self.grid = _measured(place, points, 0.2, measurements)

    def work(self) -> None:
        """Append one measurement."""
        self.grid.append(len(self.grid.points) // 2, 1.0)

    def answer(self) -> Array:
        """Return means and variances."""
        return np.concatenate([to_host(self.grid.mean), to_host(self.grid.var)])

    def least(self) -> Work:
        """Read every stored row once."""
        return Work(bytes=8.0 * self.size[0] * self.size[1])


class LookaheadCase:
    """One step of TruVaR: what each candidate would teach about the points that matter.

    >>> LookaheadCase(Place(), side=3, rows=2, measurements=1).answer().shape
    (9,)
    """

    def __init__(self, place: Place, side: int, rows: int, measurements: int) -> None:
        n = side * side
        rng = np.random.default_rng(0)
        # Short length-scales leave something to learn everywhere.
        self.grid = _measured(place, grid([(0.0, 1.0)] * 2, side), 0.05, measurements)
        self.chosen = np.sort(rng.choice(n, size=min(rows, n), replace=False))
        self.sample = np.sort(rng.choice(n, size=min(SAMPLE, n), replace=False))
        self.gains: Array | None = None

    def work(self) -> None:
        """Score all candidates."""
        self.gains = Lookahead(self.grid, self.chosen).gains(scale=9.0, floor=0.01)[0]

    def answer(self) -> Array:
        """Return the scores of some candidates, per point that matters."""
        if self.gains is not None:
            found = self.gains[self.sample]
        else:
            found = Lookahead(self.grid, self.chosen).gains(self.sample, scale=9.0, floor=0.01)[0]
        return np.asarray(found / len(self.chosen))

    def least(self) -> Work:
        """Multiply matrices, 2 t m n operations, and read the t n numbers that this needs."""
        n, t = len(self.grid.points), self.grid.n
        return Work(bytes=8.0 * t * n, flops=2.0 * t * len(self.chosen) * n)


class _Counted(FacilityLocation):
    """Facility location that counts the similarities it computes, by the bytes of a number."""

    count: dict[int, int]

    def _tiles(self, candidates: Any, dtype: Any, lowered: Any = None) -> Iterator[tuple[slice, slice, Any]]:
        for down, across, tile in super()._tiles(candidates, dtype, lowered):
            counts = self.__dict__.setdefault("count", {4: 0, 8: 0})
            counts[tile.itemsize] += tile.shape[0] * tile.shape[1]
            yield down, across, tile


class FacilityCase:
    """Greedy choice of exemplars, from the points to the chosen set.

    >>> case = FacilityCase(Place(), points=60, chosen=3)
    >>> case.answer().shape
    (6,)
    """

    def __init__(self, place: Place, points: int, chosen: int, dimensions: int = 10) -> None:
        self.points, self.k, self.width = place.put(clustered_points(points, dimensions)), chosen, dimensions + 2
        self.found: tuple[Array, dict[int, int]] | None = None

    def work(self) -> None:
        """Choose."""
        f = _Counted(self.points, similarity="euclidean")
        selection = greedy(f, self.k)
        self.found = np.array([*selection.order, *selection.values]), f.__dict__.get("count", {4: 0, 8: 0})

    def answer(self) -> Array:
        """Return the chosen points in their order, and the value after each."""
        if self.found is None:
            self.work()
        return self.found[0]  # type: ignore[index]

    def least(self) -> Work:
        """Make every similarity that was looked at, and compare and add it."""
        count = {4: 0, 8: 0} if self.found is None else self.found[1]
        flops = 2.0 * self.width
        return Work(flops=flops * count[8], flops32=flops * count[4], pairs=count[8], pairs32=count[4])


class PlanningCase:
    """One stage of MacroGPO: the tree of paths, imagined outcomes, certificate, choice.

    >>> PlanningCase(Place(), horizon=1, samples=2, side=20).answer().shape
    (4,)
    """

    def __init__(self, place: Place, horizon: int, samples: int, side: int = 50) -> None:
        self.policy = on_its_way(side=side, horizon=horizon, samples=samples, device=place.device)
        self.query: Query | None = None

    def work(self) -> None:
        """Ask, and take it back."""
        self.query = self.policy.ask()
        self.policy.cancel(self.query)

    def answer(self) -> Array:
        """Return what each move is worth."""
        if self.query is None:
            self.work()
        return np.array(self.query.note["values"], dtype=np.float64)  # type: ignore[union-attr]

    def least(self) -> Work:
        """Add up and compare the value of every leaf."""
        nodes = 0 if self.query is None else self.query.note["nodes"]
        return Work(pairs=float(nodes))


class DrawsCase:
    """A draw from the posterior of every agent, and where it is highest: what a round of a federation computes.

    >>> DrawsCase(Place(), agents=3, measurements=4).answer().shape
    (3,)
    """

    def __init__(self, place: Place, agents: int, measurements: int, candidates: int = 1000) -> None:
        rng = np.random.default_rng(0)
        points = np.linspace(0.0, 1.0, candidates)[:, None]
        phi = SharedFeatures(1, 50, lengthscale=0.03, noise=0.01, seed=0)(points)
        self.place, self.table = place, place.put(phi)
        self.chosen = rng.integers(candidates, size=(agents, measurements))
        self.y = rng.standard_normal((agents, measurements))
        self.normals = rng.standard_normal((agents, phi.shape[1] + measurements))
        self.found: NDArray[Any] | None = None

    def work(self) -> None:
        """Draw for all agents."""
        block = BLOCK if self.place.host else DEVICE_BLOCK
        self.found = stacked_draws(
            self.table, self.chosen, self.y, 0.01, self.normals, place=self.place.put, block=block, peak=True
        )

    def answer(self) -> Array:
        """Return the peaks, as shares of the axis."""
        if self.found is None:
            self.work()
        return np.asarray(self.found, dtype=np.float64) / len(self.table)

    def least(self) -> Work:
        """Multiply ΦᵀΦ, factorize it, and evaluate the function everywhere."""
        (G, M), (agents, t) = self.table.shape, self.chosen.shape
        small = min(t, M)
        return Work(
            flops=float(agents) * (2.0 * t * M * small + small**3 / 3.0 + 2.0 * M * G), bytes=16.0 * agents * t * M
        )


class FederationCase:
    """A whole federation with distributed exploration and privacy in the batched simulator.

    >>> FederationCase(Place(), agents=4, rounds=1).answer().shape
    (8,)
    """

    OPTIONS: Mapping[str, Any] = {"regions": 2, "sampling": 0.25, "noise_multiplier": 1.0}
    INITIAL = 10

    def __init__(self, place: Place, agents: int, rounds: int) -> None:
        self.place, self.rounds = place, rounds
        self.family = synthetic_family(runs=1, agents=agents, seed=0)
        self.features = SharedFeatures(1, 50, lengthscale=0.03, noise=0.01, seed=0)
        self.run: Simulation | None = None

    def work(self) -> None:
        """Simulate."""
        with warnings.catch_warnings():  # the coordinator's, that this noise is for research
            warnings.simplefilter("ignore")
            self.run = simulate(
                self.family, self.features, rounds=self.rounds, initial=self.INITIAL, federation=self.OPTIONS,
                schedule=Decay(0.5, first=0.0), seed=0, device=self.place.device,
            )  # fmt: skip

    def answer(self) -> Array:
        """Return the regret of every agent after each round."""
        if self.run is None:
            self.work()
        return self.run.regret.ravel()  # type: ignore[union-attr]

    def least(self) -> Work:
        """Multiply and factorize for the message of every agent and round; own draws come on top."""
        M, t = self.features.count, self.INITIAL + np.arange(self.rounds)
        small = np.minimum(t, M)
        return Work(flops=float(self.family.agents * (2.0 * t * M * small + small**3 / 3.0).sum()))


PARTS: dict[str, Part] = {
    "grid": Part(
        "grid posterior, one append",
        GridCase,
        ({"candidates": 100_000, "measurements": 200},),
        (
            {"candidates": 10_000, "measurements": 100},
            {"candidates": 100_000, "measurements": 200},
            {"candidates": 1_000_000, "measurements": 1000},
        ),
        "{candidates:,} candidates, {measurements:,} measurements",
        lambda candidates, measurements: 11.0 * candidates * measurements,
    ),
    "truvar": Part(
        "TruVaR, one step",
        LookaheadCase,
        ({"side": 100, "rows": 1000, "measurements": 100},),
        (
            {"side": 30, "rows": 300, "measurements": 50},
            {"side": 100, "rows": 1000, "measurements": 100},
            {"side": 1000, "rows": 1000, "measurements": 200},
            {"side": 1000, "rows": 10_000, "measurements": 200, "only": "device"},
        ),
        "{side:,} × {side:,} candidates, {rows:,} that matter, {measurements} measurements",
        lambda side, rows, measurements: 12.0 * side * side * measurements,
    ),
    "facility": Part(
        "facility location, greedy",
        FacilityCase,
        ({"points": 5000, "chosen": 50},),
        ({"points": 2000, "chosen": 50}, {"points": 10_000, "chosen": 100}, {"points": 100_000, "chosen": 100}),
        "{chosen} of {points:,} points in 10 dimensions",
    ),
    "macro": Part(
        "macro planning, one stage",
        PlanningCase,
        ({"horizon": 3, "samples": 50},),
        ({"horizon": 3, "samples": 50}, {"horizon": 4, "samples": 50}, {"horizon": 4, "samples": 200}),
        "H = {horizon}, N = {samples}, four moves of four stops",
    ),
    "draws": Part(
        "federation, one round of draws",
        DrawsCase,
        ({"agents": 500, "measurements": 40},),
        (
            {"agents": 100, "measurements": 60},
            {"agents": 1000, "measurements": 60},
            {"agents": 20_000, "measurements": 60},
        ),
        "{agents:,} agents, {measurements} measurements each, 1,000 candidates",
        lambda agents, measurements: 16.0 * agents * (measurements + 50),
    ),
    "federated": Part(
        "federation, whole simulation",
        FederationCase,
        ({"agents": 100, "rounds": 10},),
        ({"agents": 100, "rounds": 20}, {"agents": 1000, "rounds": 50}),
        "{agents:,} agents, {rounds} rounds, DP-FTS-DE",
    ),
}
"""The parts by the names that ``surefoot bench --part`` knows."""
