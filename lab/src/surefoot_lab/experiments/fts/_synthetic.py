"""A function on a grid, and 50 others that differ from it by ± d at every point.

f is a draw of a Gaussian process (squared exponential, length-scale 0.03) on 1,000 points, scaled to [0, 1]. The others
have each measured tₙ uniform points, with noise of variance 0.01, and send one message before the target begins. The
target knows kernel and noise and starts from one point; its starts on one function are averaged.

Unpublished, chosen here: 40 iterations, M ∈ {25, 50, 100, 200}, and shared features with the true length-scale and
noise. The control follows functions drawn from the prior at the same iterations.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from surefoot.federated import (
    GridFamily,
    Schedule,
    SharedFeatures,
    Simulation,
    random_messages,
    simulate,
    synthetic_family,
)
from surefoot.federated.controls import random_functions
from surefoot_lab.registry import Replicate, Trace

AGENTS = 50
SOURCE = "Dai 2021 (thesis), chapter 5 and appendix B.4; Dai, Low & Jaillet 2020, "
TS, RANDOM = "TS", "random functions"


def shared(count: int, replicate: Replicate) -> SharedFeatures:
    """The features of a repetition; more of them do not change the function or the measurements."""
    return SharedFeatures(1, count, lengthscale=0.03, noise=0.01, seed=replicate.integer)


def drawn(replicate: Replicate, gap: float) -> tuple[GridFamily, GridFamily]:
    """The target, once for each of its starts, and the others."""
    others = synthetic_family(runs=1, agents=AGENTS, size=replicate["size"], difference=gap, seed=replicate.integer)
    # The same base function, whatever the gap.
    base = synthetic_family(runs=1, agents=replicate["starts"], size=replicate["size"], difference=0.0,
                            seed=replicate.integer)  # fmt: skip
    return base, others


class Target:
    """The target's runs on one function."""

    def __init__(self, replicate: Replicate, gap: float) -> None:
        self.replicate = replicate
        self.family, self.others = drawn(replicate, gap)

    def alone(self) -> Trace:
        """Thompson sampling."""
        return self._trace(simulate(self.family, shared(2, self.replicate), **self._options()))

    def helped(self, count: int, observations: int, schedule: Schedule) -> Trace:
        """FTS with M = ``count`` and messages from so many measurements."""
        features = shared(count, self.replicate)
        pool = random_messages(self.others, features, observations, seed=self.replicate.integer)
        return self._trace(simulate(self.family, features, pool=pool, schedule=schedule, **self._options()))

    def misled(self, count: int, schedule: Schedule) -> Trace:
        """The control: functions that know nothing."""
        features = shared(count, self.replicate)
        pool = random_functions(self.family, features, AGENTS, seed=self.replicate.integer)
        return self._trace(simulate(self.family, features, pool=pool, schedule=schedule, **self._options()))

    def _options(self) -> Mapping[str, int]:
        return {"rounds": self.replicate["horizon"], "initial": 1, "seed": self.replicate.integer}

    @staticmethod
    def _trace(run: Simulation) -> Trace:
        return Trace(simple_regret=run.regret[0].mean(axis=0)[1:], uses=float(np.mean(run.followed.sum(axis=2))))
