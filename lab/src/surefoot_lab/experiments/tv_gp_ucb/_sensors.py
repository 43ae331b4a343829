"""Sensors as candidates: a belief from training days, and policies that activate one sensor per step.

The kernel is the empirical covariance K of the training readings. Candidates are the rows of a root of K and the kernel
is linear, so that k(i, j) = K_ij exactly. A process has one constant mean, sensors have their own: policies are told
readings less the ``shift`` of their sensor, and add it back to the bounds before they choose. Two treatments:

* ``"sensor"``: the shift is the training mean of each sensor, K the covariance around it;
* ``"global"``: the shift is the mean of all readings, K the second moment around it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot.belief.forgetting import ForgettingEstimate, Panel, estimate_forgetting
from surefoot.belief.gp import GP
from surefoot.belief.kernels import Linear
from surefoot.domain import Candidates
from surefoot.loop.policy import Policy, Proposal
from surefoot.loop.widths import Width
from surefoot.policy.acquisition import BeliefScore
from surefoot.policy.base import ModelPolicy
from surefoot.policy.drift.r_gp_ucb import RGPUCB
from surefoot.policy.drift.tv_gp_ucb import TVGPUCB
from surefoot.policy.ucb.gp_ucb import GPUCB, UpperConfidence
from surefoot.policy.view import View
from surefoot_lab import Trace

Array = NDArray[np.float64]
P = TypeVar("P", bound=ModelPolicy)


class ShiftedBound(UpperConfidence):
    """GP-UCB's rule, with what was subtracted from the readings added back to the bounds of the candidates."""

    def __init__(self, width: Width, shift: Array) -> None:
        super().__init__(width)
        self.shift = shift

    def propose(self, view: View) -> Proposal:
        with view.hallucinated() as belief:
            bound = BeliefScore(belief, self.acquisition(view, belief))
            return view.highest(lambda at: bound(at) + self.shift[at], belief)


@dataclass(frozen=True)
class Sensors:
    """What the training days say: candidates, belief, shift of each sensor, forgetting rate."""

    domain: Candidates
    gp: GP
    shift: Array
    rate: ForgettingEstimate
    width: Width

    @classmethod
    def trained(cls, days: list[Array], noise: float, width: Width, treatment: str = "sensor") -> Sensors:
        """Learn from independent days, each of shape (steps, sensors)."""
        readings = np.concatenate(days)
        count = readings.shape[1]
        shift = readings.mean(axis=0) if treatment == "sensor" else np.full(count, readings.mean())
        around = readings - shift
        K = around.T @ around / len(readings)
        levels, vectors = np.linalg.eigh(K)
        root = vectors * np.sqrt(np.maximum(levels, 1e-8 * levels.max()))
        panels = [Panel(day - shift, root @ root.T, noise) for day in days]
        rate = estimate_forgetting(lambda e: sum(panel.log_likelihood(e) for panel in panels))
        return cls(Candidates(root), GP(Linear(), noise=noise), shift, rate, width)

    def _shifted(self, policy: P) -> P:
        policy.rule = ShiftedBound(self.width, self.shift)
        return policy

    def tracking(self, seed: int) -> TVGPUCB:
        """TV-GP-UCB with the rate of the training days."""
        rate = self.rate.forgetting
        return self._shifted(TVGPUCB(self.domain, forgetting=rate, gp=self.gp, width=self.width, seed=seed))

    def resetting(self, block: int, seed: int) -> RGPUCB:
        """R-GP-UCB."""
        return self._shifted(RGPUCB(self.domain, block=block, gp=self.gp, width=self.width, seed=seed))

    def static(self, seed: int) -> GPUCB:
        """GP-UCB."""
        return self._shifted(GPUCB(self.domain, gp=self.gp, width=self.width, seed=seed))

    def follow(
        self, policy: Policy, values: Array, noise: Array, first: int | None = None, *, shift: ArrayLike | None = None
    ) -> Trace:
        """Activate one sensor per step of values (T, S); return the regret.

        ``first`` is the sensor of step 1. Policies are told readings less the shift, that of the sensors by default.
        """
        level = np.broadcast_to(self.shift if shift is None else np.asarray(shift), values.shape[1:])
        chosen = np.empty(len(values), dtype=np.intp)
        for t, (row, error) in enumerate(zip(values, noise, strict=True)):
            if t == 0 and first is not None:
                chosen[0] = first
                policy.tell(self.domain.points[first], float(row[first] + error - level[first]))
                continue
            query = policy.ask()
            index: Any = query.index  # every point is a candidate
            chosen[t] = index
            policy.tell(query, float(row[index] + error - level[index]))
        return regrets(values, chosen)


def regrets(values: Array, chosen: NDArray[np.intp]) -> Trace:
    """Regret of each step, summed and averaged."""
    regret = values.max(axis=1) - values[np.arange(len(values)), chosen]
    total = np.cumsum(regret)
    return Trace(regret=regret, cumulative_regret=total, average_regret=total / np.arange(1, len(regret) + 1))


def best_block(sensors: Sensors, days: list[Array], blocks: tuple[int, ...]) -> int:
    """The block length with the least regret on the training days, measured with noise."""
    rng = np.random.default_rng(0)
    noises = [np.sqrt(sensors.gp.noise) * rng.standard_normal(len(day)) for day in days]

    def cost(block: int) -> float:
        pairs = zip(days, noises, strict=True)
        traces = [sensors.follow(sensors.resetting(block, 0), day, noise) for day, noise in pairs]
        return float(sum(trace["cumulative_regret"][-1] for trace in traces))

    return min(blocks, key=cost)
