"""Selection: what every selector returns, and the checks and tie rule they share.

A selection keeps the *order* in which elements were chosen, the value of every prefix of it and, for robust selectors,
the buckets it was built from. Where a run with a smaller budget would have chosen a prefix of the same order, one run
gives the whole sweep over the budget:

>>> from surefoot.select import Coverage, greedy
>>> objective = Coverage([[1, 1, 1, 0], [0, 0, 1, 1], [0, 0, 0, 1], [1, 0, 0, 0]])
>>> largest = greedy(objective, 3)
>>> [largest.prefix(k).value for k in (1, 2, 3)]
[3.0, 4.0, 4.0]

Ties within 1e-9 of the largest singleton value go to the lowest index, so that rounding decides nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot.arguments import whole
from surefoot.select.objective import SetFunction, State, as_elements

__all__ = ["Selection", "Selector", "first_best", "ground", "tolerance", "whole"]

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
TIES = 1e-9  # share of the largest singleton value within which two gains count as equal


@dataclass(frozen=True)
class Selection:
    """Chosen elements in order.

    Attributes
    ----------
    order : tuple of int
        The elements in the order they were chosen: first the buckets, then the rest.
    values : tuple of float
        The objective's value after each of them.
    buckets : tuple of tuples of int
        The robust part, bucket by bucket; empty for selectors that know no deletions.
    evaluations : int
        Values and gains of the objective that were computed.
    nested : bool
        Whether a run with a smaller budget would have chosen a prefix of this order.
    method : str
        The selector's name.

    >>> Selection((4, 1), (2.0, 3.0)).gains
    (2.0, 1.0)
    """

    order: tuple[int, ...]
    values: tuple[float, ...]
    buckets: tuple[tuple[int, ...], ...] = ()
    evaluations: int = 0
    nested: bool = True
    method: str = ""

    @property
    def value(self) -> float:
        """The objective's value of the whole selection, before any deletion."""
        return self.values[-1] if self.values else 0.0

    @property
    def gains(self) -> tuple[float, ...]:
        """What each element added to those before it."""
        return tuple(float(gain) for gain in np.diff(self.values, prepend=0.0))

    @property
    def robust(self) -> tuple[int, ...]:
        """The robust part S₀: all buckets together."""
        return tuple(element for bucket in self.buckets for element in bucket)

    @property
    def rest(self) -> tuple[int, ...]:
        """The part S₁ chosen after the buckets."""
        return self.order[sum(map(len, self.buckets)) :]

    def prefix(self, k: int) -> Selection:
        """Return the selection that the same run with a budget of k would have made.

        >>> Selection((4, 1, 0), (2.0, 3.0, 3.5), buckets=((4,),)).prefix(2).rest
        (1,)
        """
        size = whole(k, "k", 0)
        if size == len(self.order):
            return self
        if size > len(self.order):
            raise ValueError(f"k = {size}, but only {len(self.order)} elements were chosen")
        if not self.nested:
            raise ValueError(f"a run of {self.method or 'this selector'} with k = {size} is no prefix of this one")
        if size < len(self.robust):
            raise ValueError(f"k = {size} is smaller than the robust part, which takes {len(self.robust)} elements")
        return replace(self, order=self.order[:size], values=self.values[:size])


class Selector(Protocol):
    """A selector that chooses from part of the ground set; the greedy family has this form.

    >>> from surefoot.select import greedy
    >>> selector: Selector = greedy
    """

    def __call__(self, objective: SetFunction, k: int, /, *, among: ArrayLike | None = None) -> Selection:
        """Choose k elements of ``among``."""


def ground(objective: SetFunction, k: int, among: ArrayLike | None = None) -> tuple[int, Indices]:
    """Return the checked budget, and the elements to choose from in increasing order.

    >>> from surefoot.select import Coverage
    >>> ground(Coverage([[1, 0, 0], [0, 1, 0], [0, 0, 1]]), 4)
    Traceback (most recent call last):
    ...
    ValueError: 4 elements cannot be chosen out of 3
    """
    count = whole(k, "k", 0)
    elements = np.arange(objective.n) if among is None else as_elements(among, objective.n)
    if count > elements.size:
        raise ValueError(f"{count} elements cannot be chosen out of {elements.size}")
    return count, np.sort(elements)


def tolerance(objective: SetFunction) -> float:
    """Return the difference of gains that counts as none: 1e-9 of the largest singleton value.

    >>> from surefoot.select import Coverage
    >>> tolerance(Coverage([[1, 1], [0, 1]]))
    2e-09
    """
    singletons = objective.singletons()
    return TIES * max(float(np.max(singletons, initial=0.0)), 0.0)


def first_best(values: Array, slack: float) -> int:
    """Return the first position whose value is within ``slack`` of the largest.

    >>> first_best(np.array([1.0, 2.0, 2.0 + 1e-12]), 1e-9)
    1
    """
    return int(np.argmax(values >= values.max() - slack))


def gains_of(state: State, candidates: Indices, n: int) -> Array:
    """The gains of some elements; all gains at once where that is most of them, since arrays are not copied then."""
    if 2 * candidates.size > n:
        return np.asarray(state.gains(), dtype=np.float64)[candidates]
    return np.asarray(state.gains(candidates), dtype=np.float64)


def along(objective: SetFunction, order: Sequence[int]) -> tuple[float, ...]:
    """The values of all prefixes of an order."""
    state, values = objective.state(), []
    for element in order:
        state.add(element)
        values.append(float(state.value))
    return tuple(values)
