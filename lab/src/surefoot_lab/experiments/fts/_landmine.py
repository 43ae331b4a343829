"""Landmine fields as parties: one is the target, the others have each finished a run of Thompson sampling.

Each of the 28 others holds 50 measurements (three random points, then Thompson sampling) and sends what a method asks
for before the target begins. The target starts from three random points. Beliefs about the own objective are Gaussian
processes fitted after every fifth measurement; shared features have the authors' length-scale 0.01 and noise 1e-6, on
raw values, unless a method says otherwise. Repeats are not asked for: there is no noise.

The others' runs are the same in all repetitions; starts, features and messages are drawn anew.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from surefoot.belief.gp import GP
from surefoot.federated import Agent, Decay, Schedule, SharedFeatures, agent_seed
from surefoot.federated.controls import RandomQueries
from surefoot.loop.policy import Policy
from surefoot.policy.search import RandomSearch
from surefoot.policy.thompson import ThompsonSampling
from surefoot.policy.transfer.rgpe import RGPE
from surefoot_lab import landmine
from surefoot_lab.baselines.federated_transfer import FederatedTAF, WeightBelief
from surefoot_lab.registry import Replicate, Trace

Array = NDArray[np.float64]
Before = Callable[[int, Policy], None]

SOURCE = "Dai 2021 (thesis), chapter 5 and appendix B.4; Dai, Low & Jaillet 2020, "
TS, RANDOM = "TS", "random"
LENGTH = 50  # measurements of each other field
START = 3
DRAWS = 100  # behind RGPE's weights, as in the authors' code


def belief() -> GP:
    """Of every method about its own objective."""
    return GP.automatic(landmine.domain()).refit(every=5)


class History:
    """A run of Thompson sampling on one field, continued as far as it is asked for."""

    def __init__(self, root: int, field: int) -> None:
        self.field = field
        self.policy = ThompsonSampling(
            landmine.domain(), gp=belief(), initial=START, repeats=False, seed=agent_seed(root, 0, field)
        )

    def upto(self, count: int) -> tuple[Array, Array]:
        """The first measurements, points (count, 2) and values (count,)."""
        while len(self.policy.data()[1]) < count:
            query = self.policy.ask()
            self.policy.tell(query, float(landmine.values(self.field, query.x[None])[0]))
        X, y, _ = self.policy.data()
        return X[:count], y[:count]


@cache
def history(root: int, field: int) -> History:
    """The run of one field, the same for all repetitions of an experiment."""
    return History(root, field)


def shared(replicate: Replicate, count: int, lengthscale: float = 0.01) -> SharedFeatures:
    """The features of a repetition."""
    return SharedFeatures(2, count, lengthscale=lengthscale, noise=1e-6, seed=replicate.integer)


class Others:
    """The fields that are not the target."""

    def __init__(self, replicate: Replicate, target: int, count: int = landmine.FIELDS - 1) -> None:
        self.replicate, self.target = replicate, target
        self.fields = [field for field in range(landmine.FIELDS) if field != target][:count]
        self.length = int(replicate.settings.get("length", LENGTH))

    def measured(self, field: int, more: int = 0) -> tuple[Array, Array]:
        """What a field has measured, and what it measures in so many rounds more."""
        return history(self.replicate.root, field).upto(self.length + more)

    def agents(self, features: SharedFeatures, outputs: str = "none") -> list[Agent]:
        """Agents that know the measurements of their field."""
        made = []
        for field in self.fields:
            agent = Agent(
                landmine.domain(), features, agent=field, outputs=outputs, gp=belief(),
                seed=agent_seed(self.replicate.integer, 0, field),
            )  # fmt: skip
            for x, value in zip(*self.measured(field), strict=True):
                agent.tell(x, float(value))
            made.append(agent)
        return made

    def beliefs(self, features: SharedFeatures) -> list[WeightBelief]:
        """What they send to RGPE and TAF."""
        return [
            WeightBelief.of(features, landmine.domain(), *self.measured(field), incumbent=True) for field in self.fields
        ]


class Target:
    """Methods on one target field in one repetition."""

    def __init__(self, replicate: Replicate, field: int, agents: int = landmine.FIELDS - 1) -> None:
        self.replicate, self.field, self.others = replicate, field, Others(replicate, field, agents)
        self.domain, self.seed = landmine.domain(), agent_seed(replicate.integer, 1, field)
        self.start = self.domain.sample(START, replicate.rng("start", field))

    def alone(self) -> Trace:
        """Thompson sampling."""
        return self.tuned(ThompsonSampling(self.domain, gp=belief(), repeats=False, seed=self.seed))

    def uniform(self) -> Trace:
        """Random search."""
        return self.tuned(RandomSearch(self.domain, seed=self.seed))

    def agent(self, features: SharedFeatures, schedule: Schedule | None = None, *, kind: type[Agent] = Agent) -> Agent:
        """The target as an agent."""
        return kind(
            self.domain, features, agent=self.field, schedule=schedule or Decay(2.0), outputs="none", gp=belief(),
            repeats=False, seed=self.seed,
        )  # fmt: skip

    def helped(
        self,
        count: int = 100,
        schedule: Schedule | None = None,
        *,
        lengthscale: float = 0.01,
        outputs: str = "none",
        growing: bool = False,
    ) -> Trace:
        """FTS; with ``growing``, the others measure once more and send again before every iteration."""
        features = shared(self.replicate, count, lengthscale)
        policy, others = self.agent(features, schedule), self.others.agents(features, outputs)

        def send(step: int, target: Policy) -> None:
            if step and not growing:
                return
            for other in others:
                if step:
                    X, y = self.others.measured(other.agent, step)
                    other.tell(X[-1], float(y[-1]))
                policy.receive(other.message(step))

        return self.tuned(policy, send)

    def wandering(self, schedule: Schedule) -> Trace:
        """The control: random queries where FTS would follow a message."""
        return self.tuned(self.agent(shared(self.replicate, 2), schedule, kind=RandomQueries))

    def ranked(self, count: int = 100) -> Trace:
        """RGPE."""
        tasks = self.others.beliefs(shared(self.replicate, count))
        return self.tuned(
            RGPE(self.domain, tasks=tasks, gp=belief(), samples=DRAWS, scaling=None, repeats=False, seed=self.seed)
        )

    def transferred(self, count: int = 100) -> Trace:
        """TAF with the distance of the authors' code."""
        tasks = self.others.beliefs(shared(self.replicate, count))
        return self.tuned(
            FederatedTAF(
                self.domain, tasks=tasks, gp=belief(), distance="scaled_l2", scaling=None, repeats=False, seed=self.seed
            )
        )

    def tuned(self, policy: Policy, before: Before | None = None) -> Trace:
        """Run a policy: 1 − AUC of the best point so far, and the seconds it took to decide, after each iteration."""
        found = landmine.values(self.field, self.start)
        for x, value in zip(self.start, found, strict=True):
            policy.tell(x, float(value))
        best, spent, series, seconds = float(found.max()), 0.0, [], []
        for step in range(self.replicate["horizon"]):
            if before is not None:
                before(step, policy)
            begin = time.perf_counter()
            query = policy.ask()
            spent += time.perf_counter() - begin
            value = float(landmine.values(self.field, query.x[None])[0])
            policy.tell(query, value)
            best = max(best, value)
            series.append(1.0 - best)
            seconds.append(spent)
        return Trace(simple_regret=series, seconds=seconds, start=1.0 - float(found.max()))


def averaged(traces: Sequence[Mapping[str, Trace]]) -> dict[str, Trace]:
    """The mean over targets of every method's series."""
    names = traces[0].keys()
    return {
        name: Trace(**{
            metric: np.mean([each[name][metric] for each in traces], axis=0) for metric in traces[0][name].metrics
        })
        for name in names
    }  # fmt: skip
