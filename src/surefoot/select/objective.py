"""What a subset is worth: set functions with incremental gains and losses.

A ground set has the elements 0, 1, ..., n − 1. A :class:`SetFunction` f is normalized (f(∅) = 0) and monotone: adding
an element never hurts. Selectors and adversaries never look inside; they hold a :class:`State`, a set S that grows by
:meth:`State.add` and shrinks by :meth:`State.remove`, and ask it for *all* gains f(v | S) = f(S ∪ v) − f(S) or all
losses f(S) − f(S \\ e) at once.

>>> from surefoot.select import Coverage
>>> f = Coverage([[1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 0, 1]])
>>> state = f.state()
>>> state.gains()
array([2., 2., 1.])
>>> state.add(0)
>>> state.gains(), state.value
(array([0., 1., 1.]), 2.0)

Gains and losses are NumPy ``float64`` arrays wherever the objective computes. What was asked of an objective is counted
in :attr:`SetFunction.evaluations`, one per set whose value was needed.

A new objective subclasses both: the function gives ``_value`` (slow, independent) and ``_empty`` (a state), the state
``value``, ``_gains``, ``_add``, ``_losses`` and ``_remove``, all with checked arguments. Whatever never changes belongs
to the function, since :meth:`State.copy` copies the arrays and the lists of a state.
"""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from operator import index as as_index
from typing import Any, Self

import numpy as np
from array_api_compat import array_namespace, is_torch_array
from numpy.typing import ArrayLike, NDArray

__all__ = ["Evaluations", "SetFunction", "State", "as_elements", "as_matrix", "to_host"]

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass
class Evaluations:
    """How often a set function was evaluated; the papers compare algorithms by these counts.

    Attributes
    ----------
    values : int
        Sets evaluated from scratch or by removal of one element.
    gains : int
        Sets evaluated by addition of one element.

    >>> Evaluations(values=2, gains=40).total
    42
    """

    values: int = 0
    gains: int = 0

    @property
    def total(self) -> int:
        """All evaluations together."""
        return self.values + self.gains


def as_elements(elements: ArrayLike | Iterable[int], n: int) -> Indices:
    """Return distinct elements of a ground set of size n as an array of integers, shape (len,), in the given order.

    >>> as_elements([2, 0], 3)
    array([2, 0])
    >>> as_elements([3], 3)
    Traceback (most recent call last):
    ...
    ValueError: element 3 is not in the ground set 0..2
    """
    found = np.asarray(elements if isinstance(elements, np.ndarray) else list(elements))  # type: ignore[arg-type]
    if found.size == 0:
        return np.zeros(0, dtype=np.int64)
    if found.ndim != 1 or found.dtype.kind not in "iu":
        raise TypeError(f"elements must be a sequence of integers, got {found.dtype} of shape {found.shape}")
    outside = found[(found < 0) | (found >= n)]
    if outside.size:
        raise ValueError(f"element {outside[0]} is not in the ground set 0..{n - 1}")
    if found.size > 1 and len(np.unique(found)) < len(found):
        raise ValueError(f"elements must be distinct, got {found.tolist()}")
    return found.astype(np.int64, copy=False)


def to_host(array: Any) -> NDArray[Any]:
    """Return a NumPy array, from whatever device.

    >>> to_host([1.0, 2.0])
    array([1., 2.])
    """
    return array.detach().cpu().numpy() if is_torch_array(array) else np.asarray(array)


def as_matrix(given: Any, name: str) -> Any:
    """Return a finite matrix of ``float64``: a NumPy array, or a torch tensor where it was.

    >>> as_matrix([[1, 2]], "X")
    array([[1., 2.]])
    >>> as_matrix([[1.0], [float("nan")]], "X")
    Traceback (most recent call last):
    ...
    ValueError: X must be finite, row 1 is not
    """
    array = given if is_torch_array(given) else np.asarray(given)
    if not is_torch_array(array) and array.dtype.kind not in "fiub":
        raise TypeError(f"{name} must be numbers, got {array.dtype}")
    if array.ndim != 2 or 0 in array.shape:
        raise ValueError(f"{name} must be a matrix with at least one row and one column, got {tuple(array.shape)}")
    xp = array_namespace(array)
    array = xp.astype(array, xp.float64, copy=False)
    finite = to_host(xp.all(xp.isfinite(array), axis=1))
    if not finite.all():
        raise ValueError(f"{name} must be finite, row {int(np.argmin(finite))} is not")
    return array


class SetFunction(ABC):
    """A normalized monotone set function on the elements 0, ..., n − 1.

    Parameters
    ----------
    n : int
        Size of the ground set.
    submodular : bool or None
        Whether gains can only shrink as the set grows; None: not known. Lazy evaluation is exact only if True.

    Attributes
    ----------
    evaluations : Evaluations
        Counters; assign a new :class:`Evaluations` to start again.

    >>> from surefoot.select import Custom
    >>> f = Custom(lambda S: min(len(S), 2), n=4)
    >>> f.value([0, 3]), f.singletons()
    (2.0, array([1., 1., 1., 1.]))
    >>> f.evaluations
    Evaluations(values=1, gains=4)
    """

    def __init__(self, n: int, *, submodular: bool | None) -> None:
        if n < 1:
            raise ValueError(f"the ground set must have at least one element, got n = {n!r}")
        self.n, self.submodular = int(n), submodular
        self.evaluations = Evaluations()
        self._alone: Array | None = None

    def value(self, S: ArrayLike | Iterable[int]) -> float:
        """Return f(S), computed from scratch.

        >>> from surefoot.select import Coverage
        >>> Coverage([[1, 1, 0], [0, 1, 1]]).value([0, 1])
        3.0
        """
        chosen = as_elements(S, self.n)
        self.evaluations.values += 1
        return self._value(chosen) if chosen.size else 0.0

    def singletons(self) -> Array:
        """Return f({v}) for every element, shape (n,); computed once, read-only.

        >>> from surefoot.select import Coverage
        >>> Coverage([[1, 1, 0], [0, 0, 1]]).singletons()
        array([2., 1.])
        """
        if self._alone is None:
            self.evaluations.gains += self.n
            self._alone = np.maximum(self._singletons(), 0.0)
            self._alone.flags.writeable = False
        return self._alone

    def state(self, S: ArrayLike | Iterable[int] = ()) -> State:
        """Return a new state that holds the set S, its elements added in the given order.

        >>> from surefoot.select import Coverage
        >>> Coverage([[1, 1, 0], [0, 1, 1]]).state([1]).gain(0)
        1.0
        """
        state = self._empty()
        for v in as_elements(S, self.n).tolist():
            state.add(v)
        return state

    def _singletons(self) -> Array:
        return self._empty()._gains(np.arange(self.n))

    @abstractmethod
    def _value(self, S: Indices) -> float:
        """Return f(S) for a non-empty set, by another way than the state's."""

    @abstractmethod
    def _empty(self) -> State:
        """Return the state of the empty set."""


class State(ABC):
    """A set S with f(S), its gains and its losses, kept up to date.

    Attributes
    ----------
    function : SetFunction
        The objective f.
    selected : list of int
        The elements of S in the order of their addition. Read-only by convention.
    chosen : array of shape (n,)
        Boolean: which elements are in S. Read-only by convention.

    >>> from surefoot.select import Coverage
    >>> state = Coverage([[1, 1, 0], [0, 1, 1]]).state([0, 1])
    >>> state.losses()
    array([1., 1.])
    >>> state.remove(0)
    >>> state.selected, state.value
    ([1], 2.0)
    """

    def __init__(self, function: SetFunction) -> None:
        self.function: Any = function
        self.selected: list[int] = []
        self.chosen: Mask = np.zeros(function.n, dtype=bool)

    @property
    @abstractmethod
    def value(self) -> float:
        """The value f(S)."""

    def gains(self, candidates: ArrayLike | Iterable[int] | None = None) -> Array:
        """Return f(v | S) for each candidate (default: all n), shape (len(candidates),); 0 for elements of S.

        >>> from surefoot.select import Coverage
        >>> Coverage([[1, 1, 0], [0, 1, 1]]).state([0]).gains([1])
        array([1.])
        """
        function: SetFunction = self.function
        wanted = np.arange(function.n) if candidates is None else as_elements(candidates, function.n)
        if not self.selected:
            return function.singletons()[wanted]  # a copy: the index is an array
        function.evaluations.gains += len(wanted)
        gains = np.maximum(self._gains(wanted), 0.0)  # cancellation leaves −1e-16 or so
        gains[self.chosen[wanted]] = 0.0
        return gains

    def gain(self, v: int) -> float:
        """Return f(v | S) for one element.

        >>> from surefoot.select import Coverage
        >>> Coverage([[1, 1, 0], [0, 1, 1]]).state().gain(1)
        2.0
        """
        return float(self.gains(np.array([as_index(v)]))[0])

    def best(self, allowed: ArrayLike | None = None) -> tuple[int, float]:
        """Return the element outside S with the largest gain, and the gain; the lowest index among equal ones.

        An objective for which gains are dear answers without computing all of them.

        Parameters
        ----------
        allowed : array of shape (n,), optional
            Boolean: which elements may be returned; default all.

        >>> from surefoot.select import Coverage
        >>> Coverage([[1, 1, 0], [0, 1, 1], [1, 0, 0]]).state().best([False, True, True])
        (1, 2.0)
        """
        open_to = self._open(allowed)
        gains = np.where(open_to, self.gains(), -math.inf)
        v = int(np.argmax(gains))
        return v, float(gains[v])

    def add(self, v: int) -> None:
        """Add one element to S.

        >>> from surefoot.select import Coverage
        >>> state = Coverage([[1, 1, 0], [0, 1, 1]]).state()
        >>> state.add(1)
        >>> state.value
        2.0
        """
        [v] = as_elements(np.array([as_index(v)]), self.function.n).tolist()
        if self.chosen[v]:
            raise ValueError(f"element {v} is already in the set")
        self._add(v)
        self.selected.append(v)
        self.chosen[v] = True

    def losses(self) -> Array:
        """Return f(S) − f(S \\ e) for each e in ``selected``, in that order, shape (len(S),).

        >>> from surefoot.select import Coverage
        >>> Coverage([[1, 1, 1], [0, 1, 1]]).state([1, 0]).losses()
        array([0., 1.])
        """
        if not self.selected:
            return np.zeros(0)
        self.function.evaluations.values += len(self.selected)
        return np.maximum(self._losses(), 0.0)

    def remove(self, e: int) -> None:
        """Take one element out of S.

        >>> from surefoot.select import Coverage
        >>> state = Coverage([[1, 1, 0], [0, 1, 1]]).state([0, 1])
        >>> state.remove(1)
        >>> state.value
        2.0
        """
        e = as_index(e)
        if e not in self.selected:
            raise ValueError(f"element {e} is not in the set")
        place = self.selected.index(e)
        self._remove(e, place)
        del self.selected[place]
        self.chosen[e] = False

    def copy(self) -> Self:
        """Return an independent state with the same set.

        >>> from surefoot.select import Coverage
        >>> state = Coverage([[1, 1, 0], [0, 1, 1]]).state()
        >>> other = state.copy()
        >>> other.add(0)
        >>> state.value, other.value
        (0.0, 2.0)
        """
        other = copy.copy(self)
        for name, part in vars(self).items():
            if isinstance(part, (np.ndarray, list)):
                setattr(other, name, part.copy())
            elif is_torch_array(part):
                setattr(other, name, part.clone())
        return other

    def _open(self, allowed: ArrayLike | None) -> Mask:
        """Return the elements that may still be added."""
        open_to = ~self.chosen
        if allowed is not None:
            mask = np.asarray(allowed)
            if mask.dtype != bool or mask.shape != open_to.shape:
                raise ValueError(f"allowed must be {len(open_to)} booleans, got {mask.dtype} of shape {mask.shape}")
            open_to &= mask
        if not open_to.any():
            raise ValueError("no element is left to choose from")
        return open_to

    @abstractmethod
    def _gains(self, candidates: Indices) -> Array:
        """Return f(v | S) in a new array; anything for elements of S."""

    @abstractmethod
    def _add(self, v: int) -> None:
        """Update everything but ``selected`` and ``chosen``."""

    @abstractmethod
    def _losses(self) -> Array:
        """Return the losses of a non-empty set in the order of ``selected``."""

    @abstractmethod
    def _remove(self, e: int, place: int) -> None:
        """Update everything but ``selected`` and ``chosen``; e is ``selected[place]``."""
