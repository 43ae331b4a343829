"""A whole federation on one machine: all agents of all runs move together, as arrays.

Every agent holds the same number of measurements at any time, so their systems are one stack of matrices, their draws
from the own belief one product, their messages another. The belief is fixed: a Gaussian process on a common list of
candidates, factorized once, K = LLᵀ with as many columns as K has rank, so that a draw from an agent's posterior is a
draw of weights of the features L, exactly like a message is one of the shared features.

>>> problem = synthetic_family(runs=2, agents=5, size=50, seed=0)
>>> features = SharedFeatures(1, 20, lengthscale=0.03, noise=0.01, seed=1)
>>> run = simulate(problem, features, rounds=4, initial=3, federation={"regions": 2}, seed=2)
>>> run.regret.shape
(2, 5, 5)

Coins, messages and starts of simulated agents are those of :class:`~surefoot.federated.agent.Agent` with the same seed
(:func:`agent_seed`); their own draws have the same law but another route. The coordinator is the real one, with noise
from a seed. A box is simulated on a spread list of its points.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot.belief.gp import GP
from surefoot.belief.kernels import SE, Kernel
from surefoot.domain import Candidates
from surefoot.federated.agent import regional_start
from surefoot.federated.argmax import regional_values
from surefoot.federated.coordinator import Coordinator
from surefoot.federated.features import SharedFeatures, draw_weights, stacked_draws, to_unit, transform_outputs
from surefoot.federated.messages import Broadcast
from surefoot.federated.regions import Regions
from surefoot.federated.schedules import Decay, Schedule
from surefoot.loop.device import placer
from surefoot.loop.streams import as_integer, stream
from surefoot.private.noise import ResearchNoise

__all__ = ["GridFamily", "Simulation", "agent_seed", "random_messages", "simulate", "synthetic_family"]

Array = NDArray[np.float64]
Indices = NDArray[np.intp]
RANK = 1e-14  # eigenvalues of K below this share of the largest are rounding
# Agents in one stack: a processor wants its products in cache, a device wants few large launches.
BLOCK, DEVICE_BLOCK = 512, 8192


@dataclass(frozen=True)
class GridFamily:
    """Objectives of all agents of all runs on one list of candidates.

    Parameters
    ----------
    points : array of shape (G, d)
        The candidates.
    values : array of shape (runs, agents, G)
        The objective of each agent at each of them.
    gp : GP
        What every agent believes of its own objective, fixed; its noise is that of the model.
    noise : float
        Variance of the measurements.

    >>> GridFamily(np.array([[0.0], [1.0]]), np.zeros((1, 3, 2)), GP(SE(0.1), noise=0.01), 0.01).agents
    3
    """

    points: Array
    values: Array
    gp: GP
    noise: float

    def __post_init__(self) -> None:
        if self.points.ndim != 2 or self.values.ndim != 3 or self.values.shape[2] != len(self.points):
            raise ValueError(
                f"points (G, d) and values (runs, agents, G) do not fit: {self.points.shape}, {self.values.shape}"
            )
        if not (np.isfinite(self.values).all() and np.isfinite(self.noise) and self.noise >= 0):
            raise ValueError(f"values must be finite, and noise a variance, got noise {self.noise!r}")

    @property
    def runs(self) -> int:
        """How many federations."""
        return int(self.values.shape[0])

    @property
    def agents(self) -> int:
        """How many agents each has."""
        return int(self.values.shape[1])


def synthetic_family(
    *,
    runs: int,
    agents: int,
    size: int = 1000,
    lengthscale: float = 0.03,
    difference: float = 0.02,
    noise: float = 0.01,
    seed: int = 0,
) -> GridFamily:
    """Make the authors' synthetic objectives: a draw of a Gaussian process on a grid, and its neighbors.

    The base function of a run is scaled to [0, 1]; each agent's is the base plus or minus ``difference``, the sign
    drawn anew at every point.

    >>> family = synthetic_family(runs=1, agents=2, size=100, seed=3)
    >>> abs(family.values[0, 0] - family.values[0, 1]).max().round(3)
    np.float64(0.04)
    """
    points = np.linspace(0.0, 1.0, size)[:, None]
    L = _factor(SE(lengthscale), points)
    base = stream(seed, "base functions").standard_normal((runs, L.shape[1])) @ L.T
    low, high = base.min(axis=1, keepdims=True), base.max(axis=1, keepdims=True)
    signs = stream(seed, "neighbors").integers(2, size=(runs, agents, size)) * 2 - 1
    values = ((base - low) / (high - low))[:, None] + difference * signs
    return GridFamily(points, values, GP(SE(lengthscale), noise=noise), noise)


@dataclass(frozen=True)
class Simulation:
    """What happened.

    Parameters
    ----------
    family : GridFamily
        The objectives.
    queries : array of shape (runs, agents, initial + rounds)
        The candidates that were measured, in order.
    followed : boolean array of shape (runs, agents, rounds)
        Which queries followed the others.
    initial : int
        How many came first.
    broadcasts : list for each run
        What the coordinators released.
    norms : array of shape (runs, agents, rounds), optional
        Lengths of the messages, before clipping.

    >>> family = synthetic_family(runs=1, agents=3, size=40)
    >>> run = simulate(family, SharedFeatures(1, 10, lengthscale=0.1, noise=0.01, seed=0), rounds=2, initial=1)
    >>> run.followed.any(), run.regret.shape
    (np.False_, (1, 3, 3))
    """

    family: GridFamily
    queries: Indices
    followed: NDArray[np.bool_]
    initial: int
    broadcasts: list[list[Broadcast]] = field(default_factory=list)
    norms: Array | None = None

    @cached_property
    def regret(self) -> Array:
        """Simple regret (runs, agents, rounds + 1): after the initial points, and after each round."""
        seen = np.take_along_axis(self.family.values, self.queries, axis=2)
        best = np.maximum.accumulate(seen, axis=2)[:, :, self.initial - 1 :]
        gap: Array = self.family.values.max(axis=2, keepdims=True) - best
        return gap


def agent_seed(seed: int, run: int, agent: int) -> int:
    """Return the seed of one simulated agent; an ``Agent`` with it tosses the same coins and draws the same messages.

    >>> agent_seed(0, 0, 1) != agent_seed(0, 1, 0)
    True
    """
    return as_integer(np.random.SeedSequence(seed, spawn_key=(run, agent)))


def random_messages(family: GridFamily, features: SharedFeatures, observations: int, *, seed: int = 0) -> Array:
    """Draw one message of every agent from so many uniformly placed measurements, shape (runs, agents, M).

    These are the others of one-shot FTS: they have measured before and send once.

    >>> family = synthetic_family(runs=2, agents=3, size=40)
    >>> random_messages(family, SharedFeatures(1, 10, lengthscale=0.1, noise=0.01, seed=0), 5).shape
    (2, 3, 10)
    """
    rng = stream(seed, "random messages")
    shape = (family.runs, family.agents, observations)
    index = rng.integers(len(family.points), size=shape)
    y = np.take_along_axis(family.values, index, axis=2) + family.noise**0.5 * rng.standard_normal(shape)
    phi = features(to_unit(domain := Candidates(family.points), domain.points))
    prior = rng.standard_normal((*shape[:2], features.count))
    errors = rng.standard_normal(shape)
    drawn: Array = draw_weights(phi[index], y, features.noise, prior, errors)
    return drawn


def simulate(
    family: GridFamily,
    features: SharedFeatures,
    *,
    rounds: int,
    initial: int = 10,
    federation: Mapping[str, Any] | None = None,
    pool: Array | None = None,
    schedule: Schedule | None = None,
    outputs: str = "none",
    local: bool = True,
    send: bool = True,
    seed: int = 0,
    device: str | None = None,
    block: int | None = None,
) -> Simulation:
    """Run all federations of a family.

    Parameters
    ----------
    family : GridFamily
        The objectives and the belief.
    features : SharedFeatures
        What the parties share.
    rounds, initial : int
        Queries of each agent by the rule, and before it.
    federation : mapping, optional
        Options of the :class:`~surefoot.federated.coordinator.Coordinator` but ``agents``, ``rounds`` and ``noise``.
        None has no coordinator: independent Thompson sampling, or FTS with a ``pool``.
    pool : array of shape (runs, K, M), optional
        Messages of K others; every agent of the run uses each at most once.
    schedule, outputs
        As of an :class:`~surefoot.federated.agent.Agent`.
    local : bool
        Whether agents start in their sub-regions, or anywhere.
    send : bool
        Whether agents send; if not, broadcasts are noise alone: the control that tells noise from knowledge.
    seed : int
        Of everything, the coordinators' noise included.
    device : str, optional
        A torch device for the stacked algebra, such as ``"cuda"``; None is NumPy.
    block : int
        Agents in one stack; bounds the memory, block · (initial + rounds) · M numbers. By default 512, on a device
        other than the processor 8192.

    >>> family = synthetic_family(runs=1, agents=4, size=60)
    >>> features = SharedFeatures(1, 16, lengthscale=0.1, noise=0.01, seed=0)
    >>> private = {"regions": 2, "noise_multiplier": 0.1, "sampling": 0.5}
    >>> run = simulate(family, features, rounds=3, initial=2, federation=private, schedule=Decay(1.0, first=0.0))
    >>> run.followed[0, :, 0].all(), run.broadcasts[0][0].simulated, len(run.broadcasts[0])
    (np.True_, True, 3)
    """
    if rounds < 1 or initial < 1:
        raise ValueError(f"rounds and initial must be at least 1, got {rounds!r} and {initial!r}")
    if block is not None and block < 1:
        raise ValueError(f"block must be at least 1, got {block!r}")
    if federation is not None and pool is not None:
        raise ValueError("agents follow a coordinator's broadcast or the messages of a pool, not both")
    return _Run(family, features, federation, pool, schedule or Decay(), outputs, seed, device, block).go(
        rounds, initial, local=local, send=send
    )


class _Run:
    """The state of a simulation: agents of all runs in one row, B = runs · agents."""

    def __init__(
        self,
        family: GridFamily,
        features: SharedFeatures,
        federation: Mapping[str, Any] | None,
        pool: Array | None,
        schedule: Schedule,
        outputs: str,
        seed: int,
        device: str | None,
        block: int | None,
    ) -> None:
        self.family, self.features, self.schedule, self.outputs = family, features, schedule, outputs
        self.seed, self.federation = seed, federation
        self.block = (BLOCK if device in (None, "cpu") else DEVICE_BLOCK) if block is None else block
        self.R, self.N = family.runs, family.agents
        self.seeds = [agent_seed(seed, run, n) for run in range(self.R) for n in range(self.N)]
        self.domain = Candidates(family.points)
        self.unit = to_unit(self.domain, self.domain.points)
        self.phi = features(self.unit)
        self.truth = family.values.reshape(self.R * self.N, -1)
        self.place = placer(device)
        self.own = self.place(_factor(family.gp.kernel, self.domain.points))
        self.shared = self.place(self.phi)
        count = federation.get("regions", 1) if federation else 1
        self.regions = count if isinstance(count, Regions) else Regions.of(self.domain, count)
        self.region_of = self.regions.index(self.unit)
        self.pool_best = None if pool is None else np.argmax(np.matmul(pool, self.phi.T), axis=2)
        self.unused = None if pool is None else np.ones((self.R * self.N, pool.shape[1]), dtype=bool)

    def go(self, rounds: int, initial: int, *, local: bool, send: bool) -> Simulation:
        B, total = self.R * self.N, initial + rounds
        errors = np.array([stream(s, "measurement").standard_normal(total) for s in self.seeds])
        chosen, y = np.empty((B, total), dtype=np.intp), np.empty((B, total))
        followed, norms = np.zeros((B, rounds), dtype=bool), np.zeros((self.R, self.N, rounds))
        chosen[:, :initial] = self._start(initial, local)
        rows = np.arange(B)
        y[:, :initial] = self.truth[rows[:, None], chosen[:, :initial]] + self._blur(errors[:, :initial])
        coordinators = self._coordinators(rounds)
        for t in range(1, rounds + 1):
            step = initial + t - 1
            if coordinators and send:
                vectors = self._messages(chosen[:, :step], y[:, :step], t - 1).reshape(self.R, self.N, -1)
                norms[:, :, t - 1] = np.linalg.norm(vectors, axis=2)
                for coordinator, own in zip(coordinators, vectors, strict=True):
                    coordinator.collect_all(t - 1, own)  # Algorithm 6.1, lines 3 and 4
            # Algorithm 6.1, lines 5 to 12, and Algorithm 6.2, line 7 for those who follow, line 5 for the others
            target, follow = self._others([c.release(t - 1) for c in coordinators], step, t)
            alone = np.flatnonzero(~follow)
            chosen[:, step] = target
            chosen[alone, step] = self._thompson(alone, chosen[alone, :step], y[alone, :step], step)
            y[:, step] = self.truth[rows, chosen[:, step]] + self._blur(errors[:, step])  # line 8
            followed[:, t - 1] = follow
        shape = (self.R, self.N, -1)
        broadcasts = [coordinator.broadcasts for coordinator in coordinators]
        sent = norms if coordinators and send else None
        return Simulation(self.family, chosen.reshape(shape), followed.reshape(shape), initial, broadcasts, sent)

    def _blur(self, errors: Array) -> Array:
        blur: Array = float(self.family.noise) ** 0.5 * errors
        return blur

    def _coordinators(self, rounds: int) -> list[Coordinator]:
        if self.federation is None:
            return []
        options = {"schedule": self.schedule, **self.federation, "regions": self.regions}
        noises = [ResearchNoise((self.seed, run)) for run in range(self.R)]
        return [Coordinator(self.features, agents=self.N, rounds=rounds, noise=noise, **options) for noise in noises]

    def _start(self, initial: int, local: bool) -> Indices:
        """The candidates (B, initial) that agents measure first, each in its sub-region."""
        regions = self.regions if local else Regions.of(self.domain, 1)
        if len(np.unique(regions.index(self.unit))) < regions.count:
            raise ValueError(f"some of the {regions.count} sub-regions hold no candidate")
        assigned = np.tile(regions.assign(self.N), self.R)
        points = [
            regional_start(self.domain, regions, int(region), stream(seed, "initial", step))
            for seed, region in zip(self.seeds, assigned, strict=True)
            for step in range(initial)
        ]
        return self.domain.indices_of(np.array(points)).reshape(-1, initial)

    def _messages(self, chosen: Indices, y: Array, round: int) -> Array:
        """One message of every agent, shape (B, M)."""
        t, M = y.shape[1], self.features.count
        normals = np.array([stream(s, "message", round).standard_normal(M + t) for s in self.seeds])
        values = transform_outputs(y, self.outputs)
        return self._draw(self.shared, chosen, values, self.features.noise, normals)

    def _thompson(self, agents: Indices, chosen: Indices, y: Array, step: int) -> Indices:
        """Where a draw from each agent's posterior is highest."""
        gp = self.family.gp
        r, t = self.own.shape[1], y.shape[1]
        if not len(agents):
            return np.empty(0, dtype=np.intp)
        normals = np.array([stream(self.seeds[n], "thompson", step).standard_normal(r + t) for n in agents])
        return self._draw(self.own, chosen, y - gp.mean, gp.noise, normals, peak=True).astype(np.intp)

    def _draw(
        self, table: Any, chosen: Indices, y: Array, noise: float, normals: Array, *, peak: bool = False
    ) -> NDArray[Any]:
        return stacked_draws(table, chosen, y, noise, normals, place=self.place, block=self.block, peak=peak)

    def _others(self, broadcasts: list[Broadcast], step: int, t: int) -> tuple[Indices, NDArray[np.bool_]]:
        """Where following the others leads each agent, and which agents follow."""
        B = self.R * self.N
        target, follow = np.zeros(B, dtype=np.intp), np.zeros(B, dtype=bool)
        if not broadcasts and self.unused is None:
            return target, follow
        coins = np.array([stream(s, "coin", step).random() for s in self.seeds]) > self.schedule(t)
        if self.unused is not None and self.pool_best is not None:
            follow = coins & self.unused.any(axis=1)
            for n in np.flatnonzero(follow):
                left = np.flatnonzero(self.unused[n])
                k = left[stream(self.seeds[n], "agent", step).integers(len(left))]
                self.unused[n, k] = False
                target[n] = self.pool_best[n // self.N, k]
            return target, follow
        for run, broadcast in enumerate(broadcasts):
            own = slice(run * self.N, (run + 1) * self.N)
            if broadcast.vectors is not None:
                # All that follow a broadcast have the same maximizer.
                target[own] = np.argmax(regional_values(self.phi, broadcast.vectors, self.region_of))
                follow[own] = coins[own] if broadcast.coin is None else broadcast.coin
        return target, follow


def _factor(kernel: Kernel, points: Array) -> Array:
    """L (G, r) with LLᵀ = K, r the numerical rank."""
    return _root(kernel, points.tobytes(), points.shape[1])


@lru_cache(maxsize=2)  # all methods and runs of an experiment share the kernel and the candidates
def _root(kernel: Kernel, points: bytes, columns: int) -> Array:
    values, vectors = np.linalg.eigh(kernel(np.frombuffer(points).reshape(-1, columns)))
    kept = values > RANK * values[-1]
    factor: Array = vectors[:, kept] * np.sqrt(values[kept])
    return factor
