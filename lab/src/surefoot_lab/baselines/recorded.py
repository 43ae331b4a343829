"""Batch rules on moves as they were run for the published tables of Macro-GPO.

The authors' released code departs from the methods it names. These classes repeat that, for comparison with their
recorded runs, and for nothing else:

* **GP-BUCB**: the mean of the *first* stop stands for that of every stop; the standard deviation is that of a noisy
  measurement; the width is √(0.2 β_t), t the number of the stop, δ = 0.1.
* **Local penalization**: the variance of a noisy measurement stands where expected improvement has the standard
  deviation; what underflows to a value ≤ 0 becomes log(1 + e^EI) ≈ 0.69, more than most improvements; L is 10; values
  are compared, not their logarithms.
* **GP-UCB-PE**: ``GPUCBPE(..., region=False, width=widths.Finite(0.9))``.
* **DB-GP-UCB**: ``DBGPUCB(..., exploration=0.0)``, the sum of posterior means.
"""

from __future__ import annotations

import math
from typing import Unpack

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from surefoot.belief.protocol import Belief
from surefoot.domain import Paths
from surefoot.loop.policy import Policy
from surefoot.loop.types import Proposal
from surefoot.loop.widths import Finite
from surefoot.policy.base import ModelOptions, ModelPolicy
from surefoot.policy.batch.gp_ucb_pe import DBGPUCB, GPUCBPE
from surefoot.policy.moves import MoveBelief, best_move
from surefoot.policy.ucb.gp_ucb import UpperConfidence
from surefoot.policy.view import View

__all__ = ["RecordedGPBUCB", "RecordedLocalPenalization", "recorded_rule", "recorded_width"]

Array = NDArray[np.float64]

STEEP = 10.0  # L


def recorded_width(step: int, *, size: int | None = None, dimension: int | None = None, gain: float = 0.0) -> float:
    """Return √(0.2 β_t) with β_t = 2 log(|S| t² π²/6δ), δ = 0.1.

    >>> round(recorded_width(5, size=2500), 4)
    2.3531
    """
    return math.sqrt(0.2) * Finite(0.9)(step, size=size)


class _RecordedBUCB(UpperConfidence):
    """The mean of the first stop, and noisy standard deviations."""

    def score_moves(self, view: View, moves: MoveBelief, belief: Belief) -> Array:
        reach = [self.width(view.round + stop, size=view.domain.size) for stop in range(moves.mean.shape[1])]
        scores: Array = moves.mean[:, :1] + np.array(reach) * np.sqrt(moves.prefix_std**2 + moves.noise)
        return scores


class RecordedGPBUCB(ModelPolicy):
    """GP-BUCB on moves with the mean of the first stop and noisy standard deviations.

    Parameters
    ----------
    domain : Paths
        Where the vehicle moves.
    **options
        ``gp``, ``initial``, ``confidence``, ``seed``, ``journal``.

    >>> from surefoot import GP, Dives
    >>> line = Paths(np.arange(9.0)[:, None], Dives((9,), 2), start=4)
    >>> RecordedGPBUCB(line, gp=GP(noise=0.01), seed=0).ask().note["stops"] in ([5, 6], [3, 2])
    True
    """

    domains = (Paths,)

    def __init__(self, domain: Paths, **options: Unpack[ModelOptions]) -> None:
        super().__init__(domain, **options)
        self.width = recorded_width
        self.rule = _RecordedBUCB(recorded_width)


class _RecordedPenalization:
    """The scores of whole moves, as they were compared."""

    def propose(self, view: View) -> Proposal:
        with view.hallucinated() as belief:
            return best_move(view, belief, self)

    def level(self, moves: MoveBelief, belief: Belief) -> float:
        return 0.0

    def score_moves(self, view: View, moves: MoveBelief, belief: Belief) -> Array:
        values = view.trials.data()[1]
        best = float(values.max()) if values.size else belief.gp.mean
        variance = moves.std**2 + moves.noise
        z = (moves.mean - best) / variance
        density = np.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)
        improvement = (moves.mean - best) * ndtr(z) + variance * density
        improvement = np.where(improvement <= 0.0, np.logaddexp(0.0, improvement), improvement)
        distance = np.linalg.norm(moves.points[:, :, None, :] - moves.points[:, None, :, :], axis=3)
        inside = (STEEP * distance + (moves.mean - best)[:, None, :]) / np.sqrt(variance)[:, None, :]
        penalty = np.where(np.tri(moves.mean.shape[1], k=-1, dtype=bool), ndtr(inside), 1.0)
        # Values within 1e-8 of each other, not of their size, counted as equal.
        scores: Array = 1.0 + improvement * penalty.prod(axis=2)
        return scores


class RecordedLocalPenalization(ModelPolicy):
    """Local penalization on moves with the variance in the place of the standard deviation, and L = 10.

    Parameters
    ----------
    domain : Paths
        Where the vehicle moves.
    **options
        ``gp``, ``initial``, ``confidence``, ``seed``, ``journal``.

    >>> from surefoot import GP, Dives
    >>> line = Paths(np.arange(9.0)[:, None], Dives((9,), 2), start=4)
    >>> RecordedLocalPenalization(line, gp=GP(noise=0.01), seed=0).lipschitz
    10.0
    """

    domains = (Paths,)

    def __init__(self, domain: Paths, **options: Unpack[ModelOptions]) -> None:
        super().__init__(domain, **options)
        self.lipschitz = STEEP
        self.rule = _RecordedPenalization()


def recorded_rule(method: str, domain: Paths, **options: Unpack[ModelOptions]) -> Policy:
    """Return the policy behind a recorded run, by the name it is recorded under: h1, bucb, pe or lp.

    >>> from surefoot import GP, Dives
    >>> line = Paths(np.arange(9.0)[:, None], Dives((9,), 2), start=4)
    >>> recorded_rule("h1", line, gp=GP(), seed=0).exploration
    0.0
    """
    if method == "h1":
        return DBGPUCB(domain, exploration=0.0, **options)
    if method == "bucb":
        return RecordedGPBUCB(domain, **options)
    if method == "pe":
        return GPUCBPE(domain, region=False, width=Finite(0.9), **options)
    if method == "lp":
        return RecordedLocalPenalization(domain, **options)
    raise ValueError(f"unknown recorded method {method!r}; known are h1, bucb, pe and lp")
