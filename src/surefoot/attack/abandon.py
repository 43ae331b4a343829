"""When to give up a perturbation loop: Bayesian optimal stopping on the scale of its errors.

The stopping solver wants an error in [0, 1] that falls towards 0. The objective y of a loop is an unbounded log-odds
that jumps up and down, and what matters (5.5) is whether its running maximum will pass y*, the best before the loop.
So, with mᵢ = max_{j≤i} y_j, the success level y_hi = 0 and y_lo the lowest objective seen so far,

    eᵢ = (y_hi − mᵢ)/(y_hi − y_lo),   clipped to [ε, 1 − ε],   and the loop wins if its last error is below e(y*).

The running maximum makes the curve monotone, and an error of 0 is success. None of this is published; it is one
resolution of what the source leaves open. A loop that has passed y* is never given up.

>>> rule = Abandon(paths=4_000)
>>> scores = [-11.0, -11.4, -10.9, -11.8, -11.2, -11.1, -11.6, -11.3, -11.2]
>>> rule.stops(scores, best=-3.0, lowest=-13.0, round=1, seed=0)
True
>>> rule.stops([*scores[:8], -2.9], best=-3.0, lowest=-13.0, round=1, seed=0)
False
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot.loop.streams import stream
from surefoot.stopping.solver import OptimalStopping, Watch

__all__ = ["Abandon"]

Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Abandon:
    """The stopping rule of perturbation loops.

    Parameters
    ----------
    length, initial : int
        Queries of a whole loop, i_max, and queries before it may be given up, i_0.
    k1, k2, cost : float
        Losses: of giving up a loop that would have won, of carrying one on that does not, and per query. ``k1`` grows
        with the rounds as k1/growth^(r−1).
    growth : float
        In (0, 1].
    paths : int
        Simulated loops; 20,000 decide like the published 100,000 at this length.
    margin : float
        ε, which keeps the errors away from 0 and 1.

    >>> Abandon().threshold(1), round(Abandon().threshold(11), 2)
    (100.0, 110.57)
    """

    length: int = 40
    initial: int = 8
    k1: float = 100.0
    k2: float = 99.0
    cost: float = 1.0
    growth: float = 0.99
    paths: int = 20_000
    margin: float = 1e-3
    rule: OptimalStopping = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not 0.0 < self.growth <= 1.0:
            raise ValueError(f"growth must lie in (0, 1], got {self.growth!r}")
        if not 0.0 < self.margin < 0.5:
            raise ValueError(f"margin must lie in (0, 0.5), got {self.margin!r}")
        rule = OptimalStopping(
            epochs=self.length, initial=self.initial, k1=self.k1, k2=self.k2, cost=self.cost, paths=self.paths
        )
        object.__setattr__(self, "rule", rule)

    def threshold(self, round: int) -> float:
        """Return K₁ of a round, counted from 1."""
        return self.k1 / self.growth ** (round - 1)  # K₁,ᵣ = K₁/g^(r−1), as in BO-BOS

    def errors(self, scores: ArrayLike, lowest: float) -> Array:
        """Return the errors of a loop's objectives, from its running best.

        >>> Abandon().errors([-8.0, -9.0, -4.0], lowest=-10.0)
        array([0.8, 0.8, 0.4])
        """
        running = np.maximum.accumulate(np.asarray(scores, dtype=np.float64))
        return np.clip(running / lowest, self.margin, 1.0 - self.margin)  # (y_hi − mᵢ)/(y_hi − y_lo), y_hi = 0

    def watch(self, *, best: float, lowest: float, round: int, seed: int) -> Watch | None:
        """Return the watch over one loop, fed with 1 − :meth:`errors`; None where there is no scale to judge it on."""
        if not (math.isfinite(best) and math.isfinite(lowest) and lowest < best < 0.0):
            return None
        return self.rule.watch(
            1.0 - best / lowest, lambda n: stream(seed, "abandon", 1000 * round + n), k1=self.threshold(round)
        )

    def stops(self, scores: Sequence[float], *, best: float, lowest: float, round: int, seed: int) -> bool:
        """Tell whether a loop with these objectives, one per query, is given up at its last one.

        Parameters
        ----------
        scores : sequence of float
            Objectives of the loop so far.
        best, lowest : float
            y*, the best before the loop, and y_lo, the lowest seen so far; both negative.
        round, seed : int
            Number of the loop, from 1, and the seed of the attack.
        """
        watch = self.watch(best=best, lowest=lowest, round=round, seed=seed)
        if watch is None or len(scores) <= self.initial or max(scores) > best:
            return False
        return watch.report(1.0 - self.errors(scores, lowest)).stop
