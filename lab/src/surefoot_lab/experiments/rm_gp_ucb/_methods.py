"""The methods that the experiments of this family compare, each with the options its authors used.

All of them believe in the same kind of Gaussian process, fitted again after every fifth measurement, and share the
initial points that are told to each. GP-UCB and RM-GP-UCB have the same width, β_t = 0.2 d log 2t.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot.belief.gp import GP
from surefoot.domain import Domain
from surefoot.loop.policy import Policy
from surefoot.loop.widths import Logarithmic
from surefoot.policy.search import RandomSearch
from surefoot.policy.transfer.rgpe import RGPE
from surefoot.policy.transfer.rm_gp_ucb import RMGPUCB
from surefoot.policy.transfer.taf import TAF
from surefoot.policy.transfer.tasks import Task
from surefoot.policy.ucb.gp_ucb import GPUCB
from surefoot_lab.baselines.multitask import MTBO
from surefoot_lab.problems import Problem

Make = Callable[[Domain, int], Policy]

RM, UCB, ONE, RANDOM = "RM-GP-UCB", "GP-UCB", "MTBO", "random"
RANKED, DISCORDANT, SCALED = "RGPE", "TAF", "TAF, scaled L2"
POOLED = "RM-GP-UCB, common scale"


def belief(domain: Domain, every: int = 5) -> GP:
    """The belief of every method, fitted again after so many measurements."""
    return GP.automatic(domain).refit(every=every)


def methods(tasks: Sequence[Task], names: Sequence[str], *, every: int = 5, repeats: bool = True) -> dict[str, Make]:
    """Policies by name; a policy that knows no tasks starts from what it is told."""
    common: dict[str, Any] = {"repeats": repeats}

    def gp(domain: Domain) -> GP:
        return belief(domain, every)

    known: dict[str, Make] = {
        UCB: lambda d, seed: GPUCB(d, gp=gp(d), initial=0, width=Logarithmic(0.2), seed=seed, **common),
        RM: lambda d, seed: RMGPUCB(d, tasks=tasks, gp=gp(d), scaling=None, seed=seed, **common),
        POOLED: lambda d, seed: RMGPUCB(d, tasks=tasks, gp=gp(d), seed=seed, **common),
        RANKED: lambda d, seed: RGPE(d, tasks=tasks, gp=gp(d), seed=seed, **common),
        DISCORDANT: lambda d, seed: TAF(d, tasks=tasks, gp=gp(d), seed=seed, **common),
        SCALED: lambda d, seed: TAF(d, tasks=tasks, gp=gp(d), distance="scaled_l2", seed=seed, **common),
        ONE: lambda d, seed: MTBO(d, tasks=tasks, gp=gp(d), seed=seed, **common),
        RANDOM: lambda d, seed: RandomSearch(d, seed=seed, **common),
    }
    return {name: known[name] for name in names}


def weights(policy: Policy) -> Mapping[str, float]:
    """The weight of each named task behind the latest query, for ``compare(..., watch=weights)``."""
    found = policy.weights
    if found is None:
        return {}
    tasks = policy.tasks
    return {f"weight_{task.name}": float(weight) for task, weight in zip(tasks, found, strict=True)}


def ask_seconds(policy: Policy, points: ArrayLike, values: ArrayLike) -> NDArray[np.float64]:
    """Time of each ask after the points were told, when the answers come from a list and no objective is evaluated."""
    first, answers = np.asarray(points), np.asarray(values)
    for x, value in zip(first, answers[: len(first)], strict=True):
        policy.tell(x, float(value))
    times = []
    for value in answers[len(first) :]:
        start = time.perf_counter()
        query = policy.ask()
        times.append(time.perf_counter() - start)
        policy.tell(query, float(value))
    return np.array(times)


def history(problem: Problem, count: int, *, seed: int, initial: int = 5) -> Task:
    """What a run of GP-UCB leaves behind: design points first, then its own."""
    noise = np.random.default_rng(seed)
    policy = GPUCB(problem.domain, gp=belief(problem.domain), initial=initial, width=Logarithmic(0.2), seed=seed)
    for _ in range(count):
        query = policy.ask()
        policy.tell(query, problem.measure(query.x, noise))
    X, y, _ = policy.data()
    return Task(X, y, name=problem.name)
