"""Controls of federated experiments: what would random queries have done, and what if all data were pooled?

A party that now and then follows the others gains by what they know, or merely by leaving its own path. So that the
two can be told apart, :class:`RandomQueries` (and :func:`random_functions`, for simulations) leaves its path as often,
at the same iterations, and goes anywhere. (The third control, a coordinator that broadcasts noise alone, is
``simulate(..., send=False)``.) :func:`pooled_thompson` is the other end: every party sees the measurements of all.

>>> from surefoot.federated import SharedFeatures, simulate, synthetic_family
>>> family = synthetic_family(runs=1, agents=4, size=60)
>>> alone = simulate(family, SharedFeatures(1, 16, lengthscale=0.1, noise=0.01, seed=0), rounds=5, initial=2, seed=3)
>>> pooled_thompson(alone, seed=3).regret.shape
(1, 4, 6)
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot.domain import Candidates, Domain
from surefoot.federated.agent import Agent, iteration, regional_start
from surefoot.federated.features import SharedFeatures, draw_weights
from surefoot.federated.regions import Regions
from surefoot.federated.schedules import Schedule
from surefoot.federated.simulation import GridFamily, Simulation, _factor, agent_seed
from surefoot.loop.streams import stream
from surefoot.loop.types import Proposal
from surefoot.policy.rule import Rule
from surefoot.policy.view import View

__all__ = ["RandomQueries", "Wander", "pooled_thompson", "random_functions"]

Array = NDArray[np.float64]


class RandomQueries(Agent):
    """An agent that measures at a uniformly random point where it would have followed the others.

    Takes the parameters of :class:`~surefoot.federated.agent.Agent`. Its coins are those of an agent with the same
    seed, and where it follows itself it draws what that agent would draw.

    >>> from surefoot import Box
    >>> from surefoot.federated import FixedProbability
    >>> features = SharedFeatures(1, 20, lengthscale=0.2, noise=0.01, seed=0)
    >>> policy = RandomQueries(Box.unit(1), features, schedule=FixedProbability(0.0), initial=1, seed=0)
    >>> for _ in range(2):
    ...     query = policy.ask()
    ...     policy.tell(query, 0.0)
    >>> dict(query.note)
    {'random': True}
    """

    def __init__(self, domain: Domain, features: SharedFeatures, **options: Any) -> None:
        super().__init__(domain, features, **options)
        self.rule = Wander(self.rule, self.schedule, features.dimension)


class Wander:
    """Go anywhere with probability 1 − p_t, else as another rule says.

    Parameters
    ----------
    rule : Rule
        What is left now and then.
    schedule : Schedule
        p_t.
    dimension : int
        Of the shared features.

    >>> from surefoot import Box
    >>> features = SharedFeatures(1, 20, lengthscale=0.2, noise=0.01, seed=0)
    >>> RandomQueries(Box.unit(1), features, seed=0).rule.whole
    Regions(parts=(1,))
    """

    def __init__(self, rule: Rule, schedule: Schedule, dimension: int) -> None:
        self.rule, self.schedule, self.whole = rule, schedule, Regions((1,) * dimension)

    def propose(self, view: View) -> Proposal:
        """Toss the coin of an agent with the same seed."""
        if view.stream("coin", view.step).random() <= self.schedule(iteration(view.trials)):
            return self.rule.propose(view)
        rng, taken = view.stream("random", view.step), [x for x, _ in view.blocked()]
        found = regional_start(view.domain, self.whole, 0, rng, taken)
        return self.rule.propose(view) if found is None else Proposal(found, note={"random": True})


def random_functions(family: GridFamily, features: SharedFeatures, count: int, *, seed: int = 0) -> Array:
    """Draw messages (runs, count, M) that know nothing: the ``pool`` of a simulation whose agents go anywhere.

    >>> from surefoot.federated import synthetic_family
    >>> family = synthetic_family(runs=2, agents=3, size=40)
    >>> random_functions(family, SharedFeatures(1, 10, lengthscale=0.1, noise=0.01, seed=0), 5).shape
    (2, 5, 10)
    """
    drawn: Array = stream(seed, "random functions").standard_normal((family.runs, count, features.count))
    return drawn


def pooled_thompson(alone: Simulation, *, seed: int = 0) -> Simulation:
    """Run Thompson sampling of parties that pool their measurements, beside a simulation of independent ones.

    Starts and errors are those of ``alone``, which had the same ``seed``. In every round each party draws its own
    function from one posterior, given the measurements of all, as if they were of one function.

    >>> from surefoot.federated import simulate, synthetic_family
    >>> family = synthetic_family(runs=1, agents=9, size=60)
    >>> features = SharedFeatures(1, 16, lengthscale=0.1, noise=0.01, seed=0)
    >>> alone = simulate(family, features, rounds=5, initial=2, seed=3)
    >>> bool(pooled_thompson(alone, seed=3).regret[..., -1].mean() <= alone.regret[..., -1].mean())
    True
    """
    family, initial = alone.family, alone.initial
    rounds = alone.followed.shape[2]
    L = _factor(family.gp.kernel, Candidates(family.points).points)
    queries = alone.queries.copy()
    for run in range(family.runs):
        seeds = [agent_seed(seed, run, n) for n in range(family.agents)]
        errors = np.array([stream(s, "measurement").standard_normal(initial + rounds) for s in seeds])
        truth, chosen = family.values[run], queries[run]
        for step in range(initial, initial + rounds):
            seen = chosen[:, :step]
            y = np.take_along_axis(truth, seen, axis=1) + float(family.noise) ** 0.5 * errors[:, :step]
            normals = np.array([stream(s, "thompson", step).standard_normal(L.shape[1]) for s in seeds])
            phi = L[seen.ravel()]
            weights = draw_weights(phi, y.ravel() - family.gp.mean, family.gp.noise, normals, route="cholesky")
            chosen[:, step] = np.argmax(weights @ L.T, axis=1)
    return replace(alone, queries=queries, followed=np.zeros_like(alone.followed), broadcasts=[], norms=None)
