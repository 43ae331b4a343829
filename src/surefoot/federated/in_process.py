"""A federation of real agents in one process: each objective is measured when its agent asks.

:func:`~surefoot.federated.simulation.simulate` moves thousands of agents at once over a list of candidates, with a
belief that is fixed. Here agents are those of a deployment, with beliefs that are fitted as they go, on any domain.

>>> from surefoot import Box
>>> from surefoot.federated import SharedFeatures
>>> features = SharedFeatures(1, 20, lengthscale=0.2, noise=0.01, seed=0)
>>> objectives = [lambda x, c=c: -((x[0] - c) ** 2) for c in (0.3, 0.31, 0.32)]
>>> run = federate(objectives, Box.unit(1), features, rounds=2, initial=3, federation={"regions": 1}, seed=0)
>>> run.values.shape, run.best.shape
((3, 5), (3, 3))
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot.belief.gp import GP
from surefoot.domain import Domain
from surefoot.federated.agent import Agent
from surefoot.federated.controls import RandomQueries
from surefoot.federated.coordinator import Coordinator
from surefoot.federated.features import SharedFeatures
from surefoot.federated.regions import Regions
from surefoot.federated.schedules import Decay, FixedProbability, Schedule
from surefoot.federated.simulation import agent_seed
from surefoot.private.noise import Noise, ResearchNoise

__all__ = ["Federation", "federate"]

Array = NDArray[np.float64]
Objective = Callable[[Array], float]


@dataclass(frozen=True, eq=False)
class Federation:
    """What happened.

    Parameters
    ----------
    values : array of shape (agents, initial + rounds)
        What each agent measured, in order.
    initial : int
        How many came first.
    norms : array of shape (agents, rounds)
        Lengths of the messages; NaN where none was sent.
    seconds : mapping
        Time of all agents (``"ask"``, ``"message"``) and of the coordinator (``"release"``); measuring does not count.

    >>> Federation(np.array([[1.0, 3.0, 2.0]]), 1, np.full((1, 2), np.nan), {}).best
    array([[1., 3., 3.]])
    """

    values: Array
    initial: int
    norms: Array
    seconds: Mapping[str, float]

    @property
    def best(self) -> Array:
        """The best value so far (agents, rounds + 1): after the initial points, and after each round."""
        best: Array = np.maximum.accumulate(self.values, axis=1)[:, self.initial - 1 :]
        return best


def federate(
    objectives: Sequence[Objective],
    domain: Domain,
    features: SharedFeatures,
    *,
    rounds: int,
    initial: int = 10,
    federation: Mapping[str, Any] | None = None,
    schedule: Schedule | None = None,
    outputs: str = "none",
    gp: GP | None = None,
    send: bool = True,
    wander: bool = False,
    seed: int = 0,
    noise: Noise | None = None,
    progress: Callable[[], None] | None = None,
) -> Federation:
    """Run one agent for each objective, with a coordinator or without.

    Parameters
    ----------
    objectives : sequence of functions
        From a point (d,) to a value, without noise.
    domain, features
        What the agents have in common.
    rounds, initial : int
        Queries of each agent by the rule, and before it: uniformly in its sub-region.
    federation : mapping, optional
        Options of the :class:`~surefoot.federated.coordinator.Coordinator`; None is independent Thompson sampling.
    schedule, outputs, gp
        As of an :class:`~surefoot.federated.agent.Agent`; the belief is fitted after every fifth measurement by
        default. Measured points are not asked for again: there is no noise.
    send : bool
        Whether agents send; if not, broadcasts are noise alone.
    wander : bool
        Random queries where an agent would follow the others; no coordinator.
    seed : int
        Of everything; agents with the same number have the same seeds, whatever the method.
    noise : Noise, optional
        Of the coordinator; ``ResearchNoise`` of the seed by default.
    progress : callable, optional
        Called after every round.

    >>> from surefoot import Box
    >>> features = SharedFeatures(1, 20, lengthscale=0.2, noise=0.01, seed=0)
    >>> alone = federate([lambda x: -x[0], lambda x: x[0]], Box.unit(1), features, rounds=1, initial=2)
    >>> alone.values.shape, bool(np.isnan(alone.norms).all())
    ((2, 3), True)
    """
    if rounds < 1 or initial < 1:
        raise ValueError(f"rounds and initial must be at least 1, got {rounds!r} and {initial!r}")
    if federation is not None and wander:
        raise ValueError("agents that wander have no coordinator")
    N, alone = len(objectives), federation is None and not wander
    pace: Schedule = FixedProbability(1.0) if alone else schedule or Decay()
    belief = GP.automatic(domain).refit(every=5) if gp is None else gp
    count = (federation or {}).get("regions", 1)
    regions = count if isinstance(count, Regions) else Regions.of(domain, count)
    kind = RandomQueries if wander else Agent
    agents = [
        kind(
            domain, features, agent=n, regions=regions, region=int(region), schedule=pace, outputs=outputs, gp=belief,
            initial=initial, repeats=False, seed=agent_seed(seed, 0, n),
        )
        for n, region in enumerate(regions.assign(N))
    ]  # fmt: skip
    coordinator = _coordinator(features, N, rounds, pace, regions, federation, noise or ResearchNoise((seed, 0)))
    values, norms = np.empty((N, initial + rounds)), np.full((N, rounds), np.nan)
    clock = dict.fromkeys(("ask", "message", "release"), 0.0)
    for step in range(initial + rounds):
        if coordinator is not None and step >= initial:
            norms[:, step - initial] = _round(coordinator, agents, step - initial, send, clock)
        start = time.perf_counter()
        queries = [agent.ask() for agent in agents]
        clock["ask"] += time.perf_counter() - start
        for n, query in enumerate(queries):
            values[n, step] = objectives[n](query.x)
            agents[n].tell(query, float(values[n, step]))
        if progress is not None and step >= initial:
            progress()
    return Federation(values, initial, norms, clock)


def _coordinator(
    features: SharedFeatures,
    agents: int,
    rounds: int,
    schedule: Schedule,
    regions: Regions,
    options: Mapping[str, Any] | None,
    noise: Noise,
) -> Coordinator | None:
    if options is None:
        return None
    given = {"schedule": schedule, **options, "regions": regions}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # experiments ask for little signal on purpose; the command says it itself
        return Coordinator(features, agents=agents, rounds=rounds, noise=noise, **given)


def _round(coordinator: Coordinator, agents: Sequence[Agent], round: int, send: bool, clock: dict[str, float]) -> Array:
    """Collect, release, and let everybody receive; return the lengths of the messages."""
    norms = np.full(len(agents), np.nan)
    start = time.perf_counter()
    messages = [agent.message(round) for agent in agents] if send else []
    middle = time.perf_counter()
    for message in messages:
        coordinator.collect(message)
        norms[message.agent] = np.linalg.norm(message.vector)
    broadcast = coordinator.release(round)
    end = time.perf_counter()
    for agent in agents:
        agent.receive(broadcast)
    clock["message"] += middle - start
    clock["release"] += end - middle
    return norms
