"""Ax's search spaces as axes of a :class:`~surefoot.Space`.

>>> from ax.core.parameter import ParameterType
>>> space = SearchSpace([
...     RangeParameter("rate", ParameterType.FLOAT, 1e-4, 1.0, log_scale=True),
...     ChoiceParameter("loss", ParameterType.STRING, ["l1", "l2"], is_ordered=False, sort_values=False),
...     FixedParameter("data", ParameterType.STRING, "digits"),
... ])
>>> found = AxSpace(space)
>>> found.domain
Space(rate=Float(0.0001, 1.0, log=True), loss=Choice(['l1', 'l2']))
>>> found.parameters([0.01, 1.0])
{'rate': 0.01, 'loss': 'l2', 'data': 'digits'}
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from ax.core.parameter import (
    ChoiceParameter,
    DerivedParameter,
    FixedParameter,
    Parameter,
    ParameterType,
    RangeParameter,
)
from ax.core.search_space import SearchSpace
from numpy.typing import NDArray

from surefoot.bridge.axes import Axes, Axis, Items, Plain
from surefoot.domain import Box, Domain, Float, Int, Space
from surefoot.errors import NotSupported

__all__ = ["AxSpace", "Logit", "axis_of"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Logit:
    """A share between 0 and 1, even on the logistic scale: the coordinate of p is log(p/(1 − p)).

    >>> axis = Logit(0.1, 0.9)
    >>> axis.number(0.5), round(axis.value(axis.number(0.2)), 12)
    (0.0, 0.2)
    """

    low: float
    high: float

    @cached_property
    def parameter(self) -> Float:
        """What a policy sees."""
        return Float(self._logit(self.low), self._logit(self.high))

    @staticmethod
    def _logit(share: float) -> float:
        return math.log(share / (1.0 - share))

    def number(self, value: Any) -> float:
        """Return the coordinate of a share."""
        if not self.low <= value <= self.high:
            raise ValueError(f"is outside [{self.low}, {self.high}]")
        return self.parameter.number(min(max(self._logit(value), self.parameter.low), self.parameter.high))

    def value(self, number: float) -> float:
        """Return the share at a coordinate."""
        return min(max(1.0 / (1.0 + math.exp(-number)), self.low), self.high)


def axis_of(parameter: Parameter) -> Axis:
    """Return the axis of one of Ax's parameters; NotSupported says which kind has none.

    >>> axis_of(ChoiceParameter("width", ParameterType.INT, [8, 16, 64], is_ordered=True, sort_values=True)).parameter
    Int(0, 2)
    """
    if parameter.is_fidelity or getattr(parameter, "is_task", False):
        raise NotSupported(f"{parameter.name}: policies know no fidelity or task parameters; fix its value")
    if parameter.is_hierarchical:
        raise NotSupported(f"{parameter.name}: policies know no parameters that depend on others' values")
    if isinstance(parameter, ChoiceParameter):
        # Two values have no order worth the name; Ax calls every pair ordered.
        return Items(parameter.values, ordered=bool(parameter.is_ordered) and len(parameter.values) > 2)
    if isinstance(parameter, RangeParameter):
        if parameter.logit_scale:
            return Logit(float(parameter.lower), float(parameter.upper))
        if parameter.parameter_type == ParameterType.INT:
            return Plain(Int(int(parameter.lower), int(parameter.upper), log=parameter.log_scale))
        return Plain(Float(float(parameter.lower), float(parameter.upper), log=parameter.log_scale))
    raise NotSupported(f"{parameter.name}: no axis stands for a {type(parameter).__name__}")


class AxSpace:
    """A search space of Ax as a domain; parameters that are fixed or derived from others are filled in.

    >>> from ax.core.parameter import ParameterType
    >>> found = AxSpace(SearchSpace([RangeParameter("x", ParameterType.INT, 1, 9)]))
    >>> found.point({"x": 3}), found.parameters([3.0])
    (array([3.]), {'x': 3})
    """

    def __init__(self, space: SearchSpace) -> None:
        if space.parameter_constraints:
            rules = ", ".join(str(rule) for rule in space.parameter_constraints)
            raise NotSupported(f"policies search boxes; constraints on parameters ({rules}) have no place there")
        self.space = space
        searched = {
            name: parameter
            for name, parameter in space.parameters.items()
            if not isinstance(parameter, (DerivedParameter, FixedParameter))
        }
        hierarchical = [
            p.name for p in space.parameters.values() if isinstance(p, FixedParameter) and p.is_hierarchical
        ]
        if hierarchical:
            raise NotSupported(f"{hierarchical[0]}: policies know no parameters that depend on others' values")
        if not searched:
            raise ValueError("there is nothing to search: all parameters are fixed or derived")
        self.axes = Axes({name: axis_of(parameter) for name, parameter in searched.items()})
        # A policy for boxes measures distances, which only plain floats on a linear scale have.
        axes = list(self.axes.axes.values())
        linear = [axis.parameter for axis in axes if isinstance(axis, Plain)]
        floats = [axis for axis in linear if isinstance(axis, Float) and not axis.log]
        self.box = Box([(axis.low, axis.high) for axis in floats]) if len(floats) == len(axes) else None

    @property
    def domain(self) -> Space:
        """The domain of all searched parameters."""
        return self.axes.domain

    def domain_for(self, kinds: Sequence[type[Domain]]) -> Domain:
        """Return the domain as a policy of these kinds takes it: a space, or a box where all parameters allow it."""
        if Space in kinds or self.box is None:
            return self.domain
        return self.box

    def point(self, parameters: Mapping[str, Any]) -> Array:
        """Return the point of an arm's parameters; a ValueError says which of them lies outside."""
        return self.axes.point(parameters)

    def same(self, x: Sequence[float] | Array, z: Sequence[float] | Array) -> bool:
        """Tell whether two points are one; Ax keeps fourteen digits of a number."""
        a, b = self.domain.encode(np.array([x, z], dtype=np.float64))
        return bool(np.abs(a - b).max() < 1e-9)

    def parameters(self, x: Sequence[float] | Array) -> dict[str, Any]:
        """Return an arm's parameters at a point, of the types that Ax wants, in the order of the search space."""
        chosen = self.axes.values(x)
        values: dict[str, Any] = {}
        for name, parameter in self.space.parameters.items():
            if isinstance(parameter, FixedParameter):
                values[name] = parameter.value
            elif not isinstance(parameter, DerivedParameter):
                values[name] = parameter.cast(chosen[name])
        for name, parameter in self.space.parameters.items():
            if isinstance(parameter, DerivedParameter):
                values[name] = parameter.compute(values)
        return {name: values[name] for name in self.space.parameters}
