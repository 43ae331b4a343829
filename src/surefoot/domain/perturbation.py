"""Perturbations: what an adversary may do to the choice that is made.

A robust choice is judged by the worst point an adversary can move it to. A perturbation says which points these are:

* :class:`Ball`, :class:`WeightedBox`: every design within some distance of the chosen one that the domain holds;
* :class:`~surefoot.domain.unknown.UnknownParameters`: the design is kept, parameters beside it are the adversary's;
  also several objectives;
* :class:`~surefoot.domain.unknown.AroundEstimate`: the same, with parameters near an estimate of them;
* :class:`~surefoot.domain.groups.Groups`: a whole group is chosen, its worst member counts.

In a :class:`~surefoot.domain.Space` numbers are moved in their own units, whatever a model sees of them; choices stay
as they are, except among the members of a group. Parameters are named: ``WeightedBox({"thickness": 0.1})``.

``perturbation.join(domain)`` is the domain that is measured, ``perturbation.on(domain)`` the sets on it.

>>> from surefoot import Candidates
>>> line = Candidates(np.linspace(0.0, 1.0, 5))
>>> Ball(0.25).on(line).minimum(np.array([4.0, 5.0, 6.0, 1.0, 7.0]))
array([4., 4., 1., 1., 1.])

Reference: Bogunovic, Scarlett, Jegelka & Cevher 2018, sections 2 and 4: one robust problem with a distance of one's
choice, and what it becomes with special ones. Distances are compared with a tolerance for rounding, so that multiples
of a grid's spacing count.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot.arguments import not_negative
from surefoot.domain.base import Domain
from surefoot.domain.box import Box
from surefoot.domain.candidates import Candidates
from surefoot.domain.mixed import Nearby
from surefoot.domain.neighbors import Distance, within, within_distance
from surefoot.domain.parameter import Choice
from surefoot.domain.sets import Around, Region, Sets
from surefoot.domain.space import Space
from surefoot.moved import renamed

__all__ = [
    "Ball",
    "InapplicablePerturbation",
    "Perturbation",
    "WeightedBox",
    "norm_order",
    "perturbation_from_dict",
]
__getattr__ = renamed(__name__, {"Meaningless": "InapplicablePerturbation"})

Array = NDArray[np.float64]


class InapplicablePerturbation(ValueError):
    """The perturbation has no meaning on this domain, or on one of its parameters.

    >>> Ball(0.1, lambda X, Z: abs(X - Z.T)).on(Box.unit(1))
    Traceback (most recent call last):
    ...
    surefoot.domain.perturbation.InapplicablePerturbation: Ball needs Candidates, not a Box
    """


class Perturbation(ABC):
    """Base of the perturbations; see the module's page.

    >>> perturbation_from_dict(Ball(0.5).to_dict())
    Ball(0.5, norm=2.0)
    """

    registry: ClassVar[dict[str, type[Perturbation]]] = {}

    def __init_subclass__(cls) -> None:
        Perturbation.registry[cls.__name__] = cls

    def join(self, domain: Domain) -> Domain:
        """Return the domain that is measured, given that of the designs: the same, unless parameters go beside it."""
        return domain

    @abstractmethod
    def on(self, domain: Domain) -> Sets | Region:
        """Return what an adversary reaches on the measured domain: sets of candidates, or a region of a box."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return a description in strict JSON that :func:`perturbation_from_dict` reads back."""

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Rebuild the perturbation from :meth:`to_dict`."""
        fields = {key: value for key, value in data.items() if key != "perturbation"}
        return cls(**fields)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Perturbation) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash(type(self).__name__)

    def _refuse(self, domain: Domain, needs: str) -> InapplicablePerturbation:
        return InapplicablePerturbation(f"{type(self).__name__} needs {needs}, not a {type(domain).__name__}")

    def _around(self, domain: Domain, reach: Array, norm: float) -> Sets | Region:
        """What is within ``reach`` (d,) of a center."""
        if isinstance(domain, Candidates):
            return within(domain.points, reach, norm)
        if isinstance(domain, Box):
            return Around(domain, reach, norm)
        if isinstance(domain, Space):
            for (name, parameter), r in zip(domain.parameters.items(), reach.tolist(), strict=True):
                if isinstance(parameter, Choice) and r > 0:
                    raise InapplicablePerturbation(
                        f"{name!r} is a choice, which has no distances: {type(self).__name__} moves numbers; "
                        f"Groups swaps values of a choice"
                    )
            return Nearby(domain, reach, norm)
        raise self._refuse(domain, "a Box, Candidates or a Space")


def perturbation_from_dict(data: Mapping[str, Any]) -> Perturbation:
    """Rebuild any perturbation from its ``to_dict()``.

    >>> perturbation_from_dict({"perturbation": "WeightedBox", "radii": [1.0, 2.0]})
    WeightedBox([1.0, 2.0])
    """
    name = data.get("perturbation")
    if name not in Perturbation.registry:
        raise ValueError(f"unknown perturbation {name!r}; known are {sorted(Perturbation.registry)}")
    return Perturbation.registry[name].from_dict(data)


class Ball(Perturbation):
    """Every design within a distance of the chosen one.

    Parameters
    ----------
    radius : float
        The distance, in the domain's units. 0: no perturbation at all.
    norm : float or callable
        1, 2, ∞ or any p ≥ 1; or a function of points X (n, d) and Z (m, d) that returns their distances (n, m). The
        latter works on candidates, need be neither symmetric nor a metric, and is stored by name only.
    over : sequence of str, optional
        The coordinates that are moved, by name (``x0``, ``x1``, … where they have none); None: all numbers.

    >>> from surefoot import Candidates
    >>> line = Candidates([0.0, 0.1, 0.2, 0.3])
    >>> Ball(0.1).on(line).members(1).tolist()
    [0, 1, 2]
    >>> Ball(-1.0)
    Traceback (most recent call last):
    ...
    ValueError: radius must be finite and not negative, got -1.0
    """

    def __init__(self, radius: float, norm: float | Distance = 2.0, *, over: Sequence[str] | None = None) -> None:
        self.radius = not_negative(radius, "radius")
        self.norm = norm if callable(norm) else norm_order(norm)
        self.over = None if over is None else _names(over)
        if self.over is not None and callable(self.norm):
            raise ValueError("a distance of one's own sees whole points: over= goes with norms only")

    def on(self, domain: Domain) -> Sets | Region:
        if callable(self.norm):
            if not isinstance(domain, Candidates):
                raise self._refuse(domain, "Candidates")
            return within_distance(domain.points, self.norm, self.radius)
        if self.over is not None:
            reach = _named(domain, dict.fromkeys(self.over, self.radius))
        elif isinstance(domain, Space):
            reach = np.array([0.0 if isinstance(p, Choice) else self.radius for p in domain.parameters.values()])
        else:
            reach = np.full(domain.dimension, self.radius)
        return self._around(domain, reach, self.norm)

    def to_dict(self) -> dict[str, Any]:
        code = {"$code": getattr(self.norm, "__qualname__", type(self.norm).__qualname__)}
        norm: Any = code if callable(self.norm) else "inf" if math.isinf(self.norm) else self.norm
        some = {} if self.over is None else {"over": self.over}
        return {"perturbation": "Ball", "radius": self.radius, "norm": norm, **some}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        if isinstance(data.get("norm"), Mapping):
            raise ValueError(f"{data['norm']['$code']!r} is code and was stored by name only")
        return cls(data["radius"], float(data.get("norm", 2.0)), over=data.get("over"))

    def __repr__(self) -> str:
        return f"Ball({self.radius}, norm={self.norm}{'' if self.over is None else f', over={self.over}'})"


class WeightedBox(Perturbation):
    """Every design whose coordinates are each within their own distance of the chosen one's: a region around it.

    Parameters
    ----------
    radii : array of shape (d,), or mapping of str to float
        Half-widths of the region, in the domain's units. 0, or not named: this coordinate is kept exactly.

    >>> from surefoot import Choice, Float, Space
    >>> space = Space(thickness=Float(1.0, 5.0), supplier=Choice(["A", "B"]))
    >>> WeightedBox({"thickness": 0.1}).on(space).reach
    array([0.1, 0. ])
    >>> from surefoot import Candidates
    >>> grid = Candidates([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    >>> WeightedBox([1.0, 0.0]).on(grid).minimum(np.array([1.0, 2.0, 3.0, 0.0]))
    array([1., 0., 1., 0.])
    """

    def __init__(self, radii: ArrayLike | Mapping[str, float]) -> None:
        self.named: list[str] | None = None
        if isinstance(radii, Mapping):
            self.named = _names(list(radii))
            radii = list(radii.values())
        array = np.atleast_1d(np.array(radii, dtype=np.float64))
        if array.ndim != 1 or array.size == 0:
            raise ValueError(f"radii are one half-width per coordinate, got {radii!r}")
        self.radii = np.array([not_negative(value, "radius") for value in array.tolist()])

    def on(self, domain: Domain) -> Sets | Region:
        if self.named is not None:
            return self._around(domain, _named(domain, self._described()), math.inf)
        if len(self.radii) != domain.dimension:
            raise ValueError(f"{len(self.radii)} radii for a domain of {domain.dimension} coordinates")
        return self._around(domain, self.radii, math.inf)

    def _described(self) -> Any:
        radii = self.radii.tolist()
        return radii if self.named is None else dict(zip(self.named, radii, strict=True))

    def to_dict(self) -> dict[str, Any]:
        return {"perturbation": "WeightedBox", "radii": self._described()}

    def __repr__(self) -> str:
        return f"WeightedBox({self._described()})"


def _names(names: Sequence[str]) -> list[str]:
    if isinstance(names, str) or not names or not all(isinstance(name, str) for name in names):
        raise ValueError(f"coordinates are given by one or more names, got {names!r}")
    if len(set(names)) < len(names):
        raise ValueError(f"a coordinate is named twice: {list(names)}")
    return list(names)


def _named(domain: Domain, reach: Mapping[str, float]) -> Array:
    """One reach per coordinate, 0 for those not named."""
    for name in reach:
        if name not in domain.names:
            raise ValueError(f"unknown parameter {name!r}; known are {domain.names}")
    return np.array([reach.get(name, 0.0) for name in domain.names])


def norm_order(value: float) -> float:
    """Return the order of a norm: a number from 1 on, or ∞.

    >>> norm_order(1)
    1.0
    """
    number = float(value)
    if not number >= 1.0:
        raise ValueError(f"norm must be a number from 1 on, ∞ or a function of two arrays, got {value!r}")
    return number
