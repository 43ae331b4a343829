"""Any function of a set as an objective.

For objectives without a structure of their own, or before one has a class: one call per set.

>>> f = Custom(lambda S: len({v % 3 for v in S}), n=9, submodular=True)
>>> f.singletons().sum()
np.float64(9.0)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import numpy as np

from surefoot.select.objective import Array, Indices, SetFunction, State

__all__ = ["Custom"]

# A callable may lose this fraction of its value to rounding before it counts as not monotone.
ROUNDING = 1e-9


class Custom(SetFunction):
    """Any normalized monotone function of a tuple of elements.

    It is called once per set: n calls for all gains. An objective with a structure is worth a class of its own.

    Parameters
    ----------
    function : callable
        Takes a tuple of distinct elements in increasing order, returns a number; 0 for the empty tuple.
    n : int
        Size of the ground set.
    submodular : bool, optional
        Say so if it is: lazy evaluation then saves most calls.

    >>> f = Custom(lambda S: len({v % 3 for v in S}), n=9, submodular=True)
    >>> f.state([0]).gains()
    array([0., 1., 1., 0., 1., 1., 0., 1., 1.])

    A gain below zero is an error, since nothing here holds for functions that are not monotone:

    >>> Custom(lambda S: len(S) * (3 - len(S)), n=3).state([0, 1]).gains()
    Traceback (most recent call last):
    ...
    ValueError: the function is not monotone: it falls by 2 when 2 is added to (0, 1)
    """

    def __init__(self, function: Callable[[tuple[int, ...]], float], n: int, *, submodular: bool | None = None) -> None:
        if not callable(function):
            raise TypeError(f"function must be callable, got {function!r}")
        super().__init__(n, submodular=submodular)
        self.function = function
        if abs(start := self._at(())) > ROUNDING:
            raise ValueError(f"the function must be 0 at the empty set, got {start!r}")

    def _at(self, S: Iterable[int]) -> float:
        value = float(self.function(tuple(sorted(S))))
        if not math.isfinite(value):
            raise ValueError(f"the function must be finite, got {value!r} at {tuple(sorted(S))}")
        return value

    def _value(self, S: Indices) -> float:
        return self._at(S.tolist())

    def _empty(self) -> State:
        return _CustomState(self)

    def _singletons(self) -> Array:
        alone = np.array([self._at((v,)) for v in range(self.n)])
        if (alone < -ROUNDING * np.abs(alone).max()).any():
            v = int(np.argmin(alone))
            raise ValueError(f"the function is not monotone: it is {alone[v]:g} at ({v},)")
        return alone


class _CustomState(State):
    """The set and its value; every gain is a call."""

    def __init__(self, function: Custom) -> None:
        super().__init__(function)
        self._now = 0.0

    @property
    def value(self) -> float:
        return self._now

    def _gains(self, candidates: Indices) -> Array:
        function: Custom = self.function
        gains = np.zeros(len(candidates))
        for place in np.flatnonzero(~self.chosen[candidates]):
            v = int(candidates[place])
            gains[place] = function._at([*self.selected, v]) - self._now
            if gains[place] < -ROUNDING * max(1.0, abs(self._now)):
                raise ValueError(
                    f"the function is not monotone: it falls by {-gains[place]:g} when {v} is added to "
                    f"{tuple(sorted(self.selected))}"
                )
        return gains

    def _add(self, v: int) -> None:
        self._now = self.function._at([*self.selected, v])

    def _losses(self) -> Array:
        rest = [self.selected[:place] + self.selected[place + 1 :] for place in range(len(self.selected))]
        return self._now - np.array([self.function._at(S) for S in rest])

    def _remove(self, e: int, place: int) -> None:
        self._now = self.function._at(self.selected[:place] + self.selected[place + 1 :])
