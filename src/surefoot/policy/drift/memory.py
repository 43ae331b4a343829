"""Memory: which measurements are remembered, when a function changes.

A policy with a clock believes some of its measurements: those since the last reset, the latest ones, all of them with
their times. :class:`TimedRows` says which; what follows from it is the same for all.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from surefoot.belief.gp import GP
from surefoot.errors import NotSupported
from surefoot.loop.clock import Clock, Measurement
from surefoot.policy.surrogate import Data, Rows

__all__ = ["TimedRows", "check_one_belief"]

Array = NDArray[np.float64]


def check_one_belief(gp: GP, who: str) -> None:
    """Refuse a mixture of hyper-parameters, which fading and forgetting know nothing of.

    >>> check_one_belief(GP(), "TVGPUCB")
    """
    if gp.samples or gp.members:
        raise NotSupported(f"{who} believes in one set of hyper-parameters: use GP(samples=0)")


class TimedRows(Rows):
    """What a belief sees of the measurements that are remembered: all of them, unless a subclass forgets.

    Parameters
    ----------
    clock : Clock
        When they were made.

    >>> from surefoot import TVGPUCB, Box
    >>> TimedRows(TVGPUCB(Box([(0.0, 1.0)]), seed=0).clock).places().shape
    (0, 1)
    """

    stamped = False
    """Whether the belief sees the time of a measurement, after its coordinates."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock.trials)
        self.clock = clock

    def remembered(self) -> Sequence[Measurement]:
        """Return the measurements that are believed now, in the order in which they were told."""
        return self.clock.measured

    def table(self, chosen: Sequence[Measurement]) -> Data:
        """Return what the belief sees of some measurements, their values, and their noises or None."""
        X = self.domain.encode(points(chosen, self.domain.dimension))
        if self.stamped:
            X = np.column_stack([X, np.array([m.time for m in chosen])])
        noise = np.array([m.noise for m in chosen])
        return X, np.array([m.value for m in chosen]), None if np.isnan(noise).all() else noise

    @property
    def successes(self) -> int:
        return len(self.clock.measured)

    def span(self, runs: int) -> int:
        return runs

    def data(self) -> Data:
        return self.table(self.remembered())

    def places(self) -> Array:
        return points(self.remembered(), self.domain.dimension)

    def candidates(self) -> NDArray[np.intp]:
        return np.array([m.row for m in self.remembered()], dtype=np.intp)


def points(chosen: Sequence[Measurement], dimension: int) -> Array:
    """Return where some measurements were made, shape (n, d).

    >>> points([Measurement(1.0, 0, np.zeros(2), None, 3.0, 0.1)], 2)
    array([[0., 0.]])
    """
    return np.array([m.x for m in chosen]).reshape(len(chosen), dimension)
