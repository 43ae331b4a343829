"""GenAttack: a genetic algorithm over perturbations at full resolution.

A population of six. Each step the best is kept; the others are children of two parents drawn by a softmax of their
objectives, pixel by pixel from either, then mutated. The mutation rate and its range shrink on plateaus.

Reference: Alzantot, Sharma, Chakraborty, Zhang, Hsieh & Srivastava 2019, Algorithm 1, with the settings of their code:
temperature 0.1, rate max(0.005, 0.5 · 0.9^plateaus) (1 in the first ten steps), range max(0.2, 0.4 · 0.9^plateaus), a
plateau every 300 steps without progress (100 once the objective exceeds −0.4).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import softmax

from surefoot.attack.method import Attack
from surefoot.attack.probe import Probe, Search

__all__ = ["GenAttack"]


@dataclass(frozen=True, kw_only=True)
class GenAttack(Attack):
    """The genetic attack; one step costs ``population`` − 1 queries.

    >>> from surefoot.attack import NormBall, BlackBox
    >>> box = BlackBox(lambda images: np.tile([0.7, 0.3], (len(images), 1)))
    >>> GenAttack().run(box, np.zeros((8, 8)), 1, label=0, ball=NormBall(0.1), budget=20).queries
    20
    """

    population: int = 6
    temperature: float = 0.1

    def __post_init__(self) -> None:
        if self.population < 2:
            raise ValueError(f"a population has at least two members, got {self.population!r}")

    def search(self, probe: Probe) -> Search:
        shape, scale = (self.population, *probe.image.shape), _scale(probe)
        rng = probe.stream("genetic")
        members = np.zeros(shape)
        members[1:] += rng.uniform(-scale, scale, members[1:].shape)
        fitness = yield from probe.query(members)
        best, since, plateaus, step = -np.inf, 0, 0, 0
        while True:
            rng = probe.stream("genetic", step + 1)
            since = 0 if fitness.max() > best + 1e-9 else since + 1
            best = max(best, float(fitness.max()))
            if since and since % (100 if best > -0.4 else 300) == 0:
                plateaus += 1
            rate = 1.0 if step < 10 else max(0.005, 0.5 * 0.9**plateaus)
            reach = scale * max(0.2, 0.4 * 0.9**plateaus)
            chance = softmax(fitness / self.temperature)
            first, second = rng.choice(self.population, size=(2, self.population - 1), p=chance)
            share = chance[first] / np.maximum(chance[first] + chance[second], 1e-300)
            pick = rng.random((len(first), *probe.image.shape)) < share[:, None, None, None]
            children = np.where(pick, members[first], members[second])
            mutate = rng.random(children.shape) < rate
            children = probe.ball.project(children + mutate * rng.uniform(-reach, reach, children.shape))
            values = yield from probe.query(children)
            elite = int(fitness.argmax())
            members = np.concatenate([members[elite : elite + 1], children])
            fitness = np.append(fitness[elite], values)
            step += 1


def _scale(probe: Probe) -> float:
    """A change of every pixel that just reaches the border of the ball."""
    return probe.ball.radius if probe.ball.norm == "linf" else probe.ball.radius / float(np.sqrt(probe.image.size))
