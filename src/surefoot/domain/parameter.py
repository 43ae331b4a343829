"""Parameters: the axes of a space, and how a model sees each of them.

A parameter translates between three forms: the user's *value* (a number, a string), the *coordinate* of a point (a
double; the index of a choice), and the *encoded* columns a model sees, between 0 and 1.

>>> Choice(["rbf", "poly"]).number("poly"), Choice(["rbf", "poly"]).value(1.0)
(1.0, 'poly')
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot.domain.base import Array

__all__ = ["Choice", "Float", "Int", "Parameter", "parameter_from_dict"]

EPS = float(np.finfo(np.float64).eps)
LARGEST_INT = 2**40  # well inside what the unit interval can tell apart, on a logarithmic axis too


class Parameter(ABC):
    """One axis of a :class:`Space`: a column of numbers, and how a model sees it.

    >>> Int(0, 4).encode(np.array([1.0]))
    array([[0.25]])
    """

    @property
    @abstractmethod
    def size(self) -> int | None:
        """Number of values, None where they cannot be counted."""

    @property
    def width(self) -> int:
        """Number of encoded columns."""
        return 1

    @abstractmethod
    def number(self, value: Any) -> float:
        """Return the coordinate that stands for a value, or raise a ValueError."""

    @abstractmethod
    def value(self, number: float) -> Any:
        """Return the value a coordinate stands for."""

    @abstractmethod
    def numbers(self) -> Array:
        """Return all coordinates of an axis that has a ``size``, shape (size,)."""

    @abstractmethod
    def contains(self, column: Array) -> NDArray[np.bool_]:
        """Tell which coordinates are valid, shape (n,)."""

    @abstractmethod
    def encode(self, column: Array) -> Array:
        """Return the encoded columns of coordinates (n,), shape (n, width)."""

    @abstractmethod
    def decode(self, E: Array) -> Array:
        """Return the valid coordinates nearest to encoded columns (n, width), shape (n,)."""

    @abstractmethod
    def spread(self, u: Array) -> Array:
        """Map uniform numbers (n,) to coordinates of uniform distribution (on the encoded axis), shape (n,)."""

    @abstractmethod
    def steps(self, number: float, rng: np.random.Generator | None) -> list[float]:
        """Return the other coordinates that a local search tries from this one."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return a description in strict JSON."""


class _Interval(Parameter):
    """What real and integer axes share: bounds, and a straight or logarithmic scale."""

    low: float
    high: float
    log: bool

    def _check_bounds(self) -> None:
        if not isinstance(self.log, bool | np.bool_):
            raise ValueError(f"log must be True or False, got {self.log!r}")
        if not self.low <= self.high:
            raise ValueError(f"bounds are inverted: low={self.low!r}, high={self.high!r}")
        if self.log and self.low <= 0:
            raise ValueError(f"a logarithmic axis needs low > 0, got low={self.low!r}")

    def encode(self, column: Array) -> Array:
        if self.low == self.high:
            u = np.zeros_like(column)
        elif self.log:
            u = np.log(column / self.low) / math.log(self.high / self.low)
            u = np.where(column <= self.high, np.minimum(u, 1.0), u)  # rounding can lead beyond the end
        else:
            u = (column - self.low) / (self.high - self.low)
        return u[:, None]

    def _stretch(self, E: Array) -> Array:
        """The inverse of :meth:`encode`, before rounding to a valid value."""
        u = np.clip(E[:, 0], 0.0, 1.0)
        if self.log:
            return self.low * np.exp(u * math.log(self.high / self.low))
        return self.low + u * (self.high - self.low)

    def contains(self, column: Array) -> NDArray[np.bool_]:
        return (column >= self.low) & (column <= self.high)

    def _inside(self, value: Any) -> float:
        if not self.low <= value <= self.high:  # NaN too
            raise ValueError(f"is outside [{self.low}, {self.high}]")
        return float(value) + 0.0

    def _describe(self, kind: str) -> dict[str, Any]:
        return {"type": kind, "low": self.low, "high": self.high, "log": self.log}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.low}, {self.high}{', log=True' if self.log else ''})"


@dataclass(frozen=True, repr=False)
class Float(_Interval):
    """A real number between two bounds; ``log=True`` for one that varies over orders of magnitude.

    >>> Float(1e-4, 1.0, log=True).encode(np.array([1e-2]))
    array([[0.5]])
    """

    low: float
    high: float
    log: bool = False

    def __post_init__(self) -> None:
        for name in ("low", "high"):
            bound = getattr(self, name)
            if isinstance(bound, bool) or not isinstance(bound, Real) or not math.isfinite(bound):
                raise ValueError(f"{name} must be a finite number, got {bound!r}")
            object.__setattr__(self, name, float(bound) + 0.0)
        self._check_bounds()
        if math.isinf(self.high / self.low if self.log else self.high - self.low):
            raise ValueError(f"the range from {self.low!r} to {self.high!r} is too wide for a double")

    @property
    def size(self) -> int | None:
        return 1 if self.low == self.high else None

    def numbers(self) -> Array:
        return np.array([self.low])

    def number(self, value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, Real):
            raise ValueError("is not a number")
        return self._inside(value)

    def value(self, number: float) -> float:
        return float(number)

    def decode(self, E: Array) -> Array:
        # encode and _stretch lose a few units in the last place of the terms they add; a grid that is much coarser
        # makes decode ∘ encode the identity on its own values.
        values = self._stretch(E).tolist()
        if self.log:
            loss = 8 * EPS * max(1.0, math.log(self.high / self.low))
            digits = math.floor(-math.log10(2 * loss)) - 1
            gap = 10.0**-digits
            short = np.array([float(f"{v:.{digits}e}") for v in values])
            below, above = short <= self.low * (1 + gap), short >= self.high * (1 - gap)
        else:
            scale = max(abs(self.low), abs(self.high), self.high - self.low)
            places = 14 - math.ceil(math.log10(scale)) if scale > 0 else 0
            gap = 10.0**-places
            short = np.array([round(v, places) for v in values])
            below, above = short - self.low <= gap, self.high - short <= gap
        # The ends need not be short numbers themselves: they absorb what lies within a step of them.
        return np.where(below, self.low, np.where(above, self.high, short)) + 0.0

    def spread(self, u: Array) -> Array:
        return self.decode(u[:, None])

    def steps(self, number: float, rng: np.random.Generator | None) -> list[float]:
        return []

    def to_dict(self) -> dict[str, Any]:
        return self._describe("float")


@dataclass(frozen=True, repr=False)
class Int(_Interval):
    """An integer between two bounds, both included; ``log=True`` for one that varies over orders of magnitude.

    >>> Int(1, 100, log=True).decode(np.array([[0.5], [0.51]]))
    array([10., 10.])
    """

    low: int
    high: int
    log: bool = False

    def __post_init__(self) -> None:
        for name in ("low", "high"):
            bound = getattr(self, name)
            if isinstance(bound, bool) or not isinstance(bound, Integral):
                raise ValueError(f"{name} must be an integer, got {bound!r}")
            if not -LARGEST_INT <= int(bound) <= LARGEST_INT:
                raise ValueError(f"{name} must lie within ±2⁴⁰ (use Float beyond), got {bound!r}")
            object.__setattr__(self, name, int(bound))
        self._check_bounds()

    @property
    def size(self) -> int:
        return self.high - self.low + 1

    def numbers(self) -> Array:
        return np.arange(self.low, self.high + 1, dtype=np.float64)

    def number(self, value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, Real) or value != value // 1:
            raise ValueError("is not an integer")
        return self._inside(value)

    def value(self, number: float) -> int:
        return int(number)

    def contains(self, column: Array) -> NDArray[np.bool_]:
        return np.asarray(super().contains(column) & (column == np.floor(column)))

    def decode(self, E: Array) -> Array:
        return np.clip(np.rint(self._stretch(E)), self.low, self.high) + 0.0

    def spread(self, u: Array) -> Array:
        # Every value owns the unit interval around it, so that the two ends are as likely as the others.
        low, high = self.low - 0.5, self.high + 0.5
        values = low * (high / low) ** u if self.log else low + u * (high - low)
        return np.clip(np.rint(values), self.low, self.high) + 0.0

    def steps(self, number: float, rng: np.random.Generator | None) -> list[float]:
        near = [number - 1.0, number + 1.0]
        here = self.encode(np.array([number]))[0, 0]
        far = self.decode(here + np.array([[-0.2], [-0.05], [0.05], [0.2]]))
        any_ = [] if rng is None else self.spread(rng.random(2)).tolist()
        return sorted({v for v in [*near, *far.tolist(), *any_] if self.low <= v <= self.high} - {float(number)})

    def to_dict(self) -> dict[str, Any]:
        return self._describe("int")


Scalar = str | int | float | bool | None


@dataclass(frozen=True, repr=False)
class Choice(Parameter):
    """One of several values without an order: strings, numbers, booleans or None.

    >>> Choice(["rbf", "poly", "linear"]).encode(np.array([1.0]))
    array([[0., 1., 0.]])
    """

    values: tuple[Scalar, ...]

    def __init__(self, values: Sequence[Scalar]) -> None:
        if isinstance(values, str) or not isinstance(values, Sequence | np.ndarray) or len(values) == 0:
            raise ValueError(f"a choice has a list of one or more values, got {values!r}")
        plain = tuple(v.item() if isinstance(v, np.generic) else v for v in values)
        for i, v in enumerate(plain):
            if not isinstance(v, Scalar) or (isinstance(v, float) and not math.isfinite(v)):
                raise ValueError(f"values of a choice are strings, finite numbers, booleans or None, got {v!r}")
            if any(_same(v, other) for other in plain[:i]):
                raise ValueError(f"value {v!r} occurs twice in a choice")
        object.__setattr__(self, "values", plain)

    @property
    def size(self) -> int:
        return len(self.values)

    @property
    def width(self) -> int:
        return len(self.values)

    def numbers(self) -> Array:
        return np.arange(self.size, dtype=np.float64)

    def number(self, value: Any) -> float:
        for i, v in enumerate(self.values):
            if _same(v, value):
                return float(i)
        raise ValueError(f"is not one of {list(self.values)}")

    def value(self, number: float) -> Scalar:
        return self.values[int(number)]

    def contains(self, column: Array) -> NDArray[np.bool_]:
        return np.asarray((column >= 0) & (column < self.size) & (column == np.floor(column)))

    def encode(self, column: Array) -> Array:
        if self.size == 1:  # a constant says nothing, and is 0 like every other axis of one value
            return np.zeros((column.size, 1))
        return np.asarray(column[:, None] == np.arange(self.size), dtype=np.float64)

    def decode(self, E: Array) -> Array:
        return np.asarray(E.argmax(axis=1), dtype=np.float64)

    def spread(self, u: Array) -> Array:
        return np.minimum(np.floor(u * self.size), self.size - 1.0)

    def steps(self, number: float, rng: np.random.Generator | None) -> list[float]:
        return [float(i) for i in range(self.size) if i != number]

    def to_dict(self) -> dict[str, Any]:
        return {"type": "choice", "values": list(self.values)}

    def __repr__(self) -> str:
        return f"Choice({list(self.values)})"


def _same(a: Any, b: Any) -> bool:
    """Equality that tells True from 1."""
    boolean = bool | np.bool_
    return isinstance(a, boolean) == isinstance(b, boolean) and type(a == b) in (bool, np.bool_) and bool(a == b)


def parameter_from_dict(name: str, entry: Any) -> Parameter:
    """Rebuild the parameter of this name from its ``to_dict()``.

    >>> parameter_from_dict("rate", {"type": "float", "low": 0, "high": 1})
    Float(0.0, 1.0)
    """
    kinds: dict[str, type[Any]] = {"float": Float, "int": Int, "choice": Choice}
    options = dict(entry) if isinstance(entry, Mapping) else {}
    kind = options.pop("type", None)
    if not isinstance(kind, str) or kind not in kinds:
        raise ValueError(f"parameter {name!r} needs a type among {list(kinds)}, got {entry!r}")
    known = [field.name for field in fields(kinds[kind])]
    for key, value in options.items():
        if key not in known:
            raise ValueError(f"parameter {name!r}: unknown key {key!r} = {value!r}; a {kind} has {', '.join(known)}")
    for key in known:
        if key not in options and key != "log":
            raise ValueError(f"parameter {name!r}: a {kind} needs {key!r}, got {entry!r}")
    try:
        parameter: Parameter = kinds[kind](**options)
    except (TypeError, ValueError) as error:
        raise ValueError(f"parameter {name!r}: {error}") from None
    return parameter
