"""Optuna's distributions as parameters of a :class:`~surefoot.Space`, and the groups in which they occur.

An :class:`OptunaAxis` translates between Optuna's values and coordinates. A distribution with a ``step`` is a lattice:
its coordinate is the number of the lattice point. A model sees equal steps, and every answer lies on the lattice.

>>> axis = OptunaAxis(FloatDistribution(0.0, 1.0, step=0.1))
>>> axis.parameter, axis.value(3.0), axis.number(0.3)
(Int(0, 10), 0.3, 3.0)

A :class:`Group` is a set of parameters that occur in the same trials. Conditional parameters are in groups of their
own: what is chosen for one group does not depend on the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution

from surefoot.bridge.axes import Axes
from surefoot.domain import Choice, Float, Int
from surefoot.domain.parameter import Parameter
from surefoot.loop.streams import as_integer

__all__ = ["Group", "OptunaAxis", "decompose"]

Array = NDArray[np.float64]
Distributions = Mapping[str, BaseDistribution]


@dataclass(frozen=True)
class OptunaAxis:
    """One distribution as a parameter, and its values as coordinates.

    >>> axis = OptunaAxis(CategoricalDistribution(("relu", "tanh")))
    >>> axis.parameter, axis.number("tanh"), axis.value(0.0)
    (Choice(['relu', 'tanh']), 1.0, 'relu')
    """

    distribution: BaseDistribution

    def __post_init__(self) -> None:
        if not isinstance(self.distribution, (CategoricalDistribution, FloatDistribution, IntDistribution)):
            raise TypeError(f"no parameter stands for {self.distribution!r}")

    @cached_property
    def parameter(self) -> Parameter:
        """What a policy sees."""
        d: Any = self.distribution
        if isinstance(d, CategoricalDistribution):
            try:
                return Choice(d.choices)
            except ValueError:  # Optuna lets choices be any objects, also equal ones
                return Choice(range(len(d.choices)))
        try:
            if self._stepped:
                return Int(0, round((d.high - d.low) / d.step))
            if isinstance(d, IntDistribution):
                return Int(d.low, d.high, log=d.log)
        except ValueError:  # too many points to count exactly; values are rounded to the lattice
            pass
        return Float(d.low, d.high, log=d.log)

    @cached_property
    def _stepped(self) -> bool:
        step = getattr(self.distribution, "step", None)
        return step is not None and not (isinstance(self.distribution, IntDistribution) and step == 1)

    def number(self, value: Any) -> float:
        """Return the coordinate of a value; a ValueError says that the value lies outside the distribution."""
        d: Any = self.distribution
        if isinstance(d, CategoricalDistribution):
            return float(d.to_internal_repr(value))
        number = d.to_internal_repr(value)
        if self._stepped and isinstance(self.parameter, Int):
            number = (number - d.low) / d.step
            if abs(number - round(number)) > 1e-6:
                raise ValueError(f"{value!r} is not a multiple of {d.step} above {d.low}")
            number = float(round(number))
        return self.parameter.number(number)

    def value(self, number: float) -> Any:
        """Return the value at a coordinate, as the objective sees it."""
        d: Any = self.distribution
        if isinstance(d, CategoricalDistribution):
            return d.choices[int(number)]
        if self._stepped:
            k = round(number if isinstance(self.parameter, Int) else (number - d.low) / d.step)
            if isinstance(d, IntDistribution):
                return min(max(d.low + k * d.step, d.low), d.high)
            # In decimal, as the user wrote the step: 0.3 and not 0.30000000000000004.
            exact = float(Decimal(str(d.low)) + k * Decimal(str(d.step)))
            return min(max(exact, d.low), d.high)
        return min(max(round(number), d.low), d.high) if isinstance(d, IntDistribution) else float(number)


class Group(Axes):
    """Parameters that are chosen together, as a domain; in the order of their names, whichever was found first.

    >>> group = Group({"rate": FloatDistribution(1e-4, 1.0, log=True), "depth": IntDistribution(2, 8, step=2)})
    >>> group.domain
    Space(depth=Int(0, 3), rate=Float(0.0001, 1.0, log=True))
    >>> group.values([2.0, 0.01])
    {'depth': 6, 'rate': 0.01}
    >>> group.find({"rate": 0.01, "depth": 6, "other": 1}), group.find({"rate": 0.01})
    (array([2.  , 0.01]), None)
    """

    def __init__(self, distributions: Distributions) -> None:
        self.distributions = {name: distributions[name] for name in sorted(distributions)}
        super().__init__({name: OptunaAxis(distribution) for name, distribution in self.distributions.items()})

    @property
    def names(self) -> list[str]:
        """The parameters' names."""
        return list(self.axes)

    @property
    def key(self) -> str:
        """The group in one line. Distributions cannot be keys themselves: choices may be lists."""
        return "; ".join(f"{name}: {distribution!r}" for name, distribution in self.distributions.items())

    def find(self, params: Mapping[str, Any]) -> Array | None:
        """Return the point of a trial's parameters, or None where one is missing or lies outside the domain now."""
        try:
            return self.point(params)
        except ValueError:  # the trial has not come so far, or the range has changed since
            return None

    def seed(self, seed: int) -> int:
        """Return the seed of this group's policy: groups must not mirror each other."""
        key = crc32("\0".join(self.names).encode())
        return as_integer(np.random.SeedSequence(seed, spawn_key=(key,)))


def decompose(trials: Iterable[Distributions]) -> list[dict[str, BaseDistribution]]:
    """Return the groups of parameters that occur in exactly the same trials, with their latest distributions.

    Parameters of a single value are left out.

    >>> x, y, z = (FloatDistribution(0.0, high) for high in (1.0, 2.0, 3.0))
    >>> [list(group) for group in decompose([{"x": x, "y": y}, {"x": x, "z": z}, {"x": x, "y": y}])]
    [['x'], ['y'], ['z']]
    >>> [list(group) for group in decompose([{"x": x, "y": y}, {"x": x, "y": y, "z": z}])]
    [['x', 'y'], ['z']]
    """
    latest: dict[str, BaseDistribution] = {}
    occurs: dict[str, list[int]] = {}
    for i, distributions in enumerate(trials):
        for name, distribution in distributions.items():
            latest[name] = distribution
            occurs.setdefault(name, []).append(i)
    groups: dict[tuple[int, ...], dict[str, BaseDistribution]] = {}
    for name in sorted(latest):
        if not latest[name].single():
            groups.setdefault(tuple(occurs[name]), {})[name] = latest[name]
    return sorted(groups.values(), key=list)
