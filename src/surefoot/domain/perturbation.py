"""Perturbations: what an adversary may do to the choice that is made.

A robust choice is judged by the worst point an adversary can move it to. A perturbation says which points these are:

* :class:`Ball`, :class:`WeightedBox`: every design within some distance of the chosen one that the domain holds;
* :class:`UnknownParameters`: the design is kept, parameters beside it are the adversary's; also several objectives;
* :class:`AroundEstimate`: the same, with parameters near an estimate of them;
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
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial import cKDTree

from surefoot.domain.base import Domain
from surefoot.domain.box import Box
from surefoot.domain.candidates import Candidates
from surefoot.domain.minfilter import RegularGrid
from surefoot.domain.mixed import Nearby
from surefoot.domain.parameter import Choice
from surefoot.domain.product import join
from surefoot.domain.sets import Around, Beside, Filtered, Listed, Region, Sets, gauge
from surefoot.domain.space import Space

__all__ = [
    "AroundEstimate",
    "Ball",
    "Meaningless",
    "Perturbation",
    "UnknownParameters",
    "WeightedBox",
    "perturbation_from_dict",
]

Array = NDArray[np.float64]
Indices = NDArray[np.intp]
Distance = Callable[[Array, Array], Array]
ROUNDING = 1e-12  # share of a radius by which a distance may exceed it
BLOCK = 2**22  # distances held at once


class Meaningless(ValueError):
    """The perturbation has no meaning on this domain, or on one of its parameters.

    >>> Ball(0.1, lambda X, Z: abs(X - Z.T)).on(Box.unit(1))
    Traceback (most recent call last):
    ...
    surefoot.domain.perturbation.Meaningless: Ball needs Candidates, not a Box
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

    def _refuse(self, domain: Domain, needs: str) -> Meaningless:
        return Meaningless(f"{type(self).__name__} needs {needs}, not a {type(domain).__name__}")

    def _around(self, domain: Domain, reach: Array, norm: float) -> Sets | Region:
        """What is within ``reach`` (d,) of a center."""
        if isinstance(domain, Candidates):
            return _near(domain.points, reach, norm)
        if isinstance(domain, Box):
            return Around(domain, reach, norm)
        if isinstance(domain, Space):
            for (name, parameter), r in zip(domain.parameters.items(), reach.tolist(), strict=True):
                if isinstance(parameter, Choice) and r > 0:
                    raise Meaningless(
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
        self.radius = _radius(radius)
        self.norm = norm if callable(norm) else _norm(norm)
        self.over = None if over is None else _names(over)
        if self.over is not None and callable(self.norm):
            raise ValueError("a distance of one's own sees whole points: over= goes with norms only")

    def on(self, domain: Domain) -> Sets | Region:
        if callable(self.norm):
            if not isinstance(domain, Candidates):
                raise self._refuse(domain, "Candidates")
            return _by_distance(domain.points, self.norm, self.radius)
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
        self.radii = np.array([_radius(value) for value in array.tolist()])

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


class UnknownParameters(Perturbation):
    """The design is chosen, the parameters beside it are not: max over x of min over θ of f(x, θ).

    Measurements are made at pairs (x, θ); the recommendation is an x.

    Parameters
    ----------
    values : array of shape (m, q) or (m,), optional
        The parameters an adversary may choose among.
    box : Box or array of shape (q, 2), optional
        Or the box it chooses from; for designs in a box.

    >>> from surefoot import Candidates
    >>> unknown = UnknownParameters([0.0, 1.0])
    >>> pairs = unknown.join(Candidates([5.0, 6.0]))
    >>> pairs.points.tolist()
    [[5.0, 0.0], [5.0, 1.0], [6.0, 0.0], [6.0, 1.0]]
    >>> unknown.on(pairs).minimum(np.array([1.0, 9.0, 4.0, 3.0]))
    array([1., 3.])
    """

    def __init__(self, values: ArrayLike | None = None, *, box: Box | ArrayLike | None = None) -> None:
        if (values is None) == (box is None):
            raise ValueError("unknown parameters are either a list of values or a box: give one of the two")
        self.values = None if values is None else _parameters(values)
        self.box = None if box is None else box if isinstance(box, Box) else Box(box)

    @classmethod
    def objectives(cls, count: int) -> Self:
        """Return the choice among ``count`` objectives: max over x of min over i of f_i(x).

        Objective i is the i-th unit vector beside x: all pairs of objectives are equally far apart.

        >>> UnknownParameters.objectives(2).values.tolist()
        [[1.0, 0.0], [0.0, 1.0]]
        """
        if not isinstance(count, (int, np.integer)) or isinstance(count, bool) or count < 1:
            raise ValueError(f"there are 1 or more objectives, got {count!r}")
        return cls(np.eye(int(count)))

    @property
    def dimension(self) -> int:
        """Number of parameters beside a design."""
        return int(self.values.shape[1]) if self.values is not None else self._box.dimension

    @property
    def _box(self) -> Box:
        if self.box is None:
            raise TypeError("these parameters are a list of values")
        return self.box

    def join(self, domain: Domain) -> Domain:
        if isinstance(domain, Space):
            raise Meaningless(
                f"{type(self).__name__} goes beside a Box or Candidates; in a Space the unknown parameter is "
                "one of the space's own: WeightedBox({name: its whole range}) gives a number to the adversary, "
                "Groups({name: {'any': [...]}}) a choice"
            )
        return join(domain, values=self.values, box=self.box)

    def on(self, domain: Domain) -> Sets | Region:
        d = domain.dimension - self.dimension
        if d < 1 or not isinstance(domain, (Box, Candidates)):
            raise self._refuse(domain, f"a domain of pairs (x, θ) with {self.dimension} parameters; join() makes it")
        if isinstance(domain, Candidates):
            return self._listed(domain.points, d)
        return self._beside(Box(domain.bounds[:d]))

    def _allowed(self, theta: Array) -> NDArray[np.bool_]:
        """Which parameters (n, q) the adversary may choose."""
        return np.ones(len(theta), dtype=np.bool_)

    def _listed(self, points: Array, d: int) -> Listed:
        if self.values is None:
            raise ValueError("parameters beside a finite list of designs are a finite list too: give values=")
        _, first, belongs = np.unique(points[:, :d], axis=0, return_index=True, return_inverse=True)
        rank = np.argsort(np.argsort(first))  # designs in the order of their first appearance
        belongs = rank[belongs.ravel()]
        reached = np.flatnonzero(self._allowed(points[:, d:]) & Candidates(self.values).contains(points[:, d:]))
        members = reached[np.argsort(belongs[reached], kind="stable")]
        sizes = np.bincount(belongs[reached], minlength=len(first))
        return Listed(points[np.sort(first), :d], members, np.cumsum(sizes) - sizes, belongs=belongs)

    def _beside(self, centers: Box) -> Beside:
        return Beside(centers, values=self.values, box=self.box)

    def to_dict(self) -> dict[str, Any]:
        if self.values is not None:
            return {"perturbation": type(self).__name__, "values": self.values.tolist()}
        return {"perturbation": type(self).__name__, "box": self._box.bounds.tolist()}

    def __repr__(self) -> str:
        what = f"{len(self.values)} values" if self.values is not None else repr(self.box)
        return f"{type(self).__name__}({what})"


class AroundEstimate(UnknownParameters):
    """Parameters that were estimated: max over x of min over θ near the estimate of f(x, θ).

    Parameters
    ----------
    estimate : array of shape (q,) or float
        The estimate of the parameters.
    radius : float or array of shape (q,)
        How far from it they may be.
    values, box
        The parameters there are, as in :class:`UnknownParameters`.
    norm : float
        The norm of the distance.

    >>> from surefoot import Candidates
    >>> near = AroundEstimate(1.0, 0.6, [0.0, 0.5, 1.0, 1.5, 2.0])
    >>> near.on(near.join(Candidates([7.0]))).members(0).tolist()
    [1, 2, 3]
    """

    def __init__(
        self,
        estimate: ArrayLike,
        radius: ArrayLike,
        values: ArrayLike | None = None,
        *,
        box: Box | ArrayLike | None = None,
        norm: float = 2.0,
    ) -> None:
        super().__init__(values, box=box)
        self.estimate = np.atleast_1d(np.array(estimate, dtype=np.float64))
        if self.estimate.shape != (self.dimension,) or not np.isfinite(self.estimate).all():
            raise ValueError(f"the estimate is {self.dimension} finite numbers, got {estimate!r}")
        given = np.atleast_1d(np.array(radius, dtype=np.float64))
        if given.shape not in ((1,), (self.dimension,)):
            raise ValueError(f"radius is one number or {self.dimension}, got {radius!r}")
        self.radius = np.array([_radius(value) for value in np.broadcast_to(given, (self.dimension,)).tolist()])
        self.norm = _norm(norm)
        if self.values is not None and not self._allowed(self.values).any():
            raise ValueError(f"none of the {len(self.values)} values is within {radius!r} of {estimate!r}")
        if self.box is not None and not self.box.contains(self.estimate[None])[0]:
            raise ValueError(f"the estimate {self.estimate.tolist()} lies outside {self.box!r}")

    def _allowed(self, theta: Array) -> NDArray[np.bool_]:
        slack = _slack(np.vstack([theta, self.estimate]), self.radius)
        return np.asarray(gauge(theta - self.estimate, self.radius, self.norm) <= 1.0 + slack)

    def _beside(self, centers: Box) -> Beside:
        if self.values is not None:
            return Beside(centers, values=self.values[self._allowed(self.values)])
        return Beside(centers, box=self.box, estimate=self.estimate, reach=self.radius, norm=self.norm)

    def to_dict(self) -> dict[str, Any]:
        norm = "inf" if math.isinf(self.norm) else self.norm
        return {
            **super().to_dict(),
            "estimate": self.estimate.tolist(),
            "radius": self.radius.tolist(),
            "norm": norm,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        fields = {key: value for key, value in data.items() if key != "perturbation"}
        return cls(**{**fields, "norm": float(fields["norm"])})


def _near(points: Array, scale: Array, norm: float) -> Sets:
    """The candidates whose offset has a norm of at most 1 in units of ``scale``."""
    count = len(points)
    # A reach below the rounding of the coordinates is none: it would tell equal coordinates apart, or none at all.
    scale = np.where(scale > 4.0 * np.finfo(np.float64).eps * np.abs(points).max(), scale, 0.0)
    if (scale == 0).all():
        return Listed(points, np.arange(count), np.arange(count))
    slack = _slack(points, scale)
    if (grid := RegularGrid.find(points)) is not None:
        return Filtered(points, grid, scale, norm, slack)
    if (scale > 0).all():
        near = cKDTree(points / scale).query_pairs(1.0 + slack, p=norm, output_type="ndarray")
        itself = np.arange(count)
        centers = np.concatenate([near[:, 0], near[:, 1], itself])
        members = np.concatenate([near[:, 1], near[:, 0], itself])
        order = np.lexsort((members, centers))
        starts = np.searchsorted(centers[order], itself)
        return Listed(points, members[order].astype(np.intp), starts)
    return _by_distance(points, lambda X, Z: gauge(X[:, None] - Z, scale, norm), 1.0, slack)


def _by_distance(points: Array, distance: Distance, radius: float, slack: float = ROUNDING) -> Listed:
    """The candidates Z with distance(X, Z) ≤ radius from each candidate X."""
    found, sizes = [], []
    for block in _blocks(points):
        apart = np.asarray(distance(block, points), dtype=np.float64)
        if apart.shape != (len(block), len(points)):
            raise ValueError(
                f"a distance of {len(block)} and {len(points)} points has shape {(len(block), len(points))}, "
                f"got {apart.shape}"
            )
        inside = apart <= radius * (1.0 + slack)
        found.append(np.nonzero(inside)[1])
        sizes.append(inside.sum(axis=1))
    counts = np.concatenate(sizes)
    return Listed(points, np.concatenate(found).astype(np.intp), np.cumsum(counts) - counts, compare=True)


def _blocks(points: Array) -> Iterator[Array]:
    rows = max(1, BLOCK // (points.size))
    return (points[start : start + rows] for start in range(0, len(points), rows))


def _slack(points: Array, scale: Array) -> float:
    """How much a distance in units of ``scale`` may exceed 1: rounding of the distance and of the coordinates."""
    positive = scale[scale > 0]
    largest = float(np.abs(points).max())
    return ROUNDING + (4.0 * np.finfo(np.float64).eps * largest / float(positive.min()) if positive.size else 0.0)


def _radius(value: float) -> float:
    number = float(value)
    if not (math.isfinite(number) and number >= 0):
        raise ValueError(f"radius must be finite and not negative, got {value!r}")
    return number


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


def _norm(value: float) -> float:
    number = float(value)
    if not number >= 1.0:
        raise ValueError(f"norm must be a number from 1 on, ∞ or a function of two arrays, got {value!r}")
    return number


def _parameters(values: ArrayLike) -> Array:
    array = np.array(values, dtype=np.float64) + 0.0
    array = array[:, None] if array.ndim == 1 else array
    if array.ndim != 2 or 0 in array.shape:
        raise ValueError(f"the set of parameters is empty or not a list of points: {values!r}")
    if not np.isfinite(array).all():
        raise ValueError(f"parameters must be finite, got {values!r}")
    if len(np.unique(array, axis=0)) < len(array):
        raise ValueError("the same parameters are listed twice")
    return array
