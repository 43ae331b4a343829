"""Search spaces of other software as a :class:`~surefoot.Space`: what its values are as coordinates.

A host may count in multiples of 0.25, or choose among estimators. An axis says how a policy sees such values, and
:class:`Axes` is a space of named ones.

>>> from surefoot import Float
>>> axes = Axes({"dropout": Lattice(0, 3, 0.25), "loss": Items([max, min]), "rate": Plain(Float(1e-4, 1.0, log=True))})
>>> axes.domain
Space(dropout=Int(0, 3), loss=Choice([0, 1]), rate=Float(0.0001, 1.0, log=True))
>>> axes.values([3.0, 1.0, 0.01])
{'dropout': 0.75, 'loss': <built-in function min>, 'rate': 0.01}
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from surefoot.domain import Choice, Int, Space
from surefoot.domain.parameter import Parameter

__all__ = ["Axes", "Axis", "Items", "Lattice", "Plain"]

Array = NDArray[np.float64]


class Axis(Protocol):
    """What :class:`Axes` needs to know of a parameter.

    >>> axis: Axis = Plain(Int(1, 9))
    >>> axis.value(axis.number(3))
    3
    """

    @property
    def parameter(self) -> Parameter:
        """What a policy sees."""

    def number(self, value: Any) -> float:
        """Return the coordinate of a value; a ValueError says why it has none."""

    def value(self, number: float) -> Any:
        """Return the value at a coordinate, as the host sees it."""


@dataclass(frozen=True)
class Plain:
    """A parameter whose values are the host's.

    >>> Plain(Choice(["relu", "tanh"])).value(1.0)
    'tanh'
    """

    parameter: Parameter

    def number(self, value: Any) -> float:
        """Return the coordinate of a value."""
        return self.parameter.number(value.item() if isinstance(value, np.generic) else value)

    def value(self, number: float) -> Any:
        """Return the value at a coordinate."""
        return self.parameter.value(number)


@dataclass(frozen=True)
class Lattice:
    """The multiples of a step, from ``low`` to ``high`` times the step; the multiple is the coordinate.

    >>> Lattice(1, 4, 0.1).value(3.0), Lattice(2, 8, 16, log=True).parameter
    (0.3, Int(2, 8, log=True))
    """

    low: int
    high: int
    step: float
    log: bool = False

    @cached_property
    def parameter(self) -> Parameter:
        """What a policy sees: equal steps."""
        return Int(self.low, self.high, log=self.log)

    def number(self, value: Any) -> float:
        """Return which multiple a value is."""
        multiple = value / self.step
        if abs(multiple - round(multiple)) > 1e-6:
            raise ValueError(f"is not a multiple of {self.step}")
        if not self.low <= round(multiple) <= self.high:
            raise ValueError(f"is outside [{self.value(self.low)}, {self.value(self.high)}]")
        return float(round(multiple))

    def value(self, number: float) -> int | float:
        """Return a multiple of the step, in decimal as the step was written: 0.3 and not 0.30000000000000004."""
        if isinstance(self.step, int):
            return round(number) * self.step
        return float(round(number) * Decimal(str(self.step)))


class Items:
    """One of several objects of any kind; ``ordered`` ones are seen in their order, with equal steps.

    >>> Items([(8,), (8, 8), (16, 16)]).number((8, 8)), Items([0.1, 1.0, 10.0], ordered=True).parameter
    (1.0, Int(0, 2))
    """

    def __init__(self, values: Iterable[Any], *, ordered: bool = False) -> None:
        self.values = [v.item() if isinstance(v, np.generic) else v for v in values]
        self.ordered = ordered
        if not self.values:
            raise ValueError("has no values to choose from")

    @cached_property
    def parameter(self) -> Parameter:
        """What a policy sees: the values themselves where they are plain and differ, else their numbers."""
        if self.ordered:
            return Int(0, len(self.values) - 1)
        try:
            return Choice(self.values)
        except ValueError:
            return Choice(range(len(self.values)))

    def number(self, value: Any) -> float:
        """Return where an object stands."""
        for i, known in enumerate(self.values):
            if known is value or (isinstance(known, bool) == isinstance(value, bool) and _equal(known, value)):
                return float(i)
        raise ValueError(f"is not one of {self.values}")

    def value(self, number: float) -> Any:
        """Return the object itself."""
        return self.values[int(number)]


class Axes:
    """Named axes, and the domain they make.

    >>> axes = Axes({"depth": Lattice(1, 4, 2)})
    >>> axes.point({"depth": 6}), axes.values([3.0])
    (array([3.]), {'depth': 6})
    >>> axes.point({"depth": 7})
    Traceback (most recent call last):
    ...
    ValueError: depth = 7 is not a multiple of 2
    """

    def __init__(self, axes: Mapping[str, Axis]) -> None:
        self.axes = dict(axes)
        self.domain = Space({name: axis.parameter for name, axis in self.axes.items()})

    @classmethod
    def of(cls, space: Space) -> Axes:
        """Return the axes of a space whose values are the host's.

        >>> Axes.of(Space(depth=Int(1, 9))).values([3.0])
        {'depth': 3}
        """
        return cls({name: Plain(parameter) for name, parameter in space.parameters.items()})

    def point(self, values: Mapping[str, Any]) -> Array:
        """Return the point with these values, or raise a ValueError that names the wrong one."""
        x = np.empty(len(self.axes))
        for i, (name, axis) in enumerate(self.axes.items()):
            if name not in values:
                raise ValueError(f"parameter {name!r} is missing")
            try:
                x[i] = axis.number(values[name])
            except ValueError as error:
                raise ValueError(f"{name} = {values[name]!r} {error}") from None
            except TypeError:
                raise ValueError(f"{name} = {values[name]!r} is not a number") from None
        return x

    def values(self, x: Sequence[float] | Array) -> dict[str, Any]:
        """Return the values at a point."""
        return {name: axis.value(float(v)) for (name, axis), v in zip(self.axes.items(), x, strict=True)}


def _equal(a: Any, b: Any) -> bool:
    """Equality of any two objects; arrays and other things without one answer are not equal."""
    try:
        return bool(a == b)
    except (TypeError, ValueError):
        return False
