"""Where TruVaR stands: epoch, target and sets, derived from the measurements and from the notes of the queries.

The bookkeeping of :mod:`surefoot.policy.levels.truvar`: lines 4 to 6 of Algorithms 3 and 5, with the updates of
Algorithms 4 and 6. What the sets M, H and L are depends on the goal, :class:`Maximum` or :class:`Threshold`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import NDArray

from surefoot.loop.widths import Width
from surefoot.policy.levels.sets import Ground, LevelSets, Memory
from surefoot.policy.surrogate import Surrogate

__all__ = ["FINEST", "Maximum", "Stage", "Stages", "Threshold"]

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

FINEST = 1e-6  # targets below this share of the prior standard deviation are not worth telling from zero
ROUNDED = 1.0 + 1e-9


@dataclass(frozen=True, eq=False)
class Stage:
    """Where the algorithm stands: epoch, its first round, β^(1/2), η, the points that matter and those it sums over.

    >>> mask = np.ones(3, dtype=bool)
    >>> Stage(1, 1, 2.0, 0.5, mask, mask, ~mask, ~mask).beta
    4.0
    """

    epoch: int
    start: int
    width: float
    eta: float
    potential: Mask
    summed: Mask
    above: Mask
    below: Mask

    @property
    def beta(self) -> float:
        """The squared width."""
        return self.width**2

    def worst(self, std: Array) -> float:
        """Return the largest β^(1/2) σ among the points summed over, ∞ where there are none."""
        return self.width * float(std[self.summed].max()) if self.summed.any() else math.inf


class Maximum:
    """Find the maximum: possible maximizers matter, and what is excluded counts as below."""

    def __init__(self, monotone: bool) -> None:
        self.monotone = monotone

    def sets(self, memory: Memory, lower: Array, upper: Array) -> tuple[Mask, Mask, Mask, Mask]:
        """Return M, the points to sum over, H and L, given what was decided before and bounds at all points."""
        among = ~memory.below if self.monotone else np.ones(lower.size, dtype=np.bool_)
        potential = among & (upper >= lower[among].max())  # (3.4), where ≤ is printed
        return potential, potential, np.zeros_like(potential), ~potential

    def keeps(self, mean: Any, half: Any) -> Any:
        """Tell which points would still matter, given their means and half-widths after a measurement."""
        return mean + half >= array_namespace(half).max(mean - half, axis=0)

    def interest(self, mean: Array, half: Array) -> Array:
        """Return how much points matter."""
        return mean + half

    def span(self, lower: Array, upper: Array) -> tuple[float, float]:
        """Return between which values points matter, given bounds at all points."""
        return float(lower.max()), math.inf


class Threshold:
    """Classify by a threshold, with the methods of :class:`Maximum`: undecided points matter."""

    def __init__(self, levels: LevelSets) -> None:
        self.levels, self.monotone, self.span = levels, levels.monotone, levels.span

    def sets(self, memory: Memory, lower: Array, upper: Array) -> tuple[Mask, Mask, Mask, Mask]:
        sets = self.levels.recalling(memory).updated(lower, upper)  # (3.6) to (3.8)
        summed = sets.undecided
        if self.levels.fraction is not None:  # the height of the maximum is part of the question (section 3.7.3)
            summed = summed | (upper >= lower.max())
        return sets.undecided, summed, sets.above, sets.below

    def keeps(self, mean: Any, half: Any) -> Any:
        return (mean + half >= self.levels.threshold) & (mean - half <= self.levels.threshold)

    def interest(self, mean: Array, half: Array) -> Array:
        return half - np.abs(mean - self.levels.estimate(mean))


@dataclass(eq=False)
class Stages:
    """The schedule of epochs; its options are those of :class:`~surefoot.policy.levels.truvar.TruVaR`."""

    surrogate: Surrogate
    ground: Ground
    goal: Maximum | Threshold
    scale: float
    width: Width | None
    target: float
    ratio: float
    slack: float

    def now(self) -> Stage:
        """Return where the algorithm stands after all measurements."""
        belief, memory, rounds = self.surrogate.believe(), self.ground.memory, self.surrogate.trials.successes
        mean, std = self.ground.predict(belief)
        prior = belief.gp.kernel.diag(self.surrogate.rows.encode(self.ground.points[:1]))
        first = self.target * math.sqrt(float(prior[0]))  # η_(1), in prior standard deviations
        epoch, start = memory.epoch, memory.start
        while True:  # one measurement can reach several targets, where a single "if" is printed
            if self.width is None:  # β_(i) = a log(|D| t_(i)²), of the first round of the epoch
                width = math.sqrt(self.scale * math.log(max(len(self.ground), 2) * start**2))
            else:
                width = self.ground.deviations(self.width, belief, rounds)
            eta = first * self.ratio ** (epoch - 1)  # η_(i) = r η_(i−1)
            half = width * std
            stage = Stage(epoch, start, width, eta, *self.goal.sets(memory, mean - half, mean + half))  # line 4, (3.3)
            if not (eta > FINEST * first and self.reached(stage, std)):
                return stage
            epoch, start = epoch + 1, rounds + 1  # line 6

    def reached(self, stage: Stage, std: Array) -> bool:
        """Tell whether the target of a stage is reached: line 5, max β_(i)^½ σ_t(x) ≤ (1 + δ̄) η_(i)."""
        return stage.worst(std) <= (1.0 + self.slack) * stage.eta * ROUNDED
