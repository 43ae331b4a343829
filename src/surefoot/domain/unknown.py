"""Perturbations that leave the design alone: the parameters beside it are the adversary's.

>>> from surefoot import Candidates
>>> several = UnknownParameters.objectives(2)
>>> several.join(Candidates([5.0])).points.tolist()
[[5.0, 1.0, 0.0], [5.0, 0.0, 1.0]]

Reference: Bogunovic, Scarlett, Jegelka & Cevher 2018, section 4.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot.arguments import not_negative
from surefoot.domain.base import Domain
from surefoot.domain.box import Box
from surefoot.domain.candidates import Candidates
from surefoot.domain.neighbors import rounding
from surefoot.domain.perturbation import InapplicablePerturbation, Perturbation, norm_order
from surefoot.domain.product import join
from surefoot.domain.sets import ListedSets, ParameterRegion, Region, Sets, gauge
from surefoot.domain.space import Space

__all__ = ["AroundEstimate", "UnknownParameters"]

Array = NDArray[np.float64]


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
            raise InapplicablePerturbation(
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
        return self._region(Box(domain.bounds[:d]))

    def _allowed(self, theta: Array) -> NDArray[np.bool_]:
        """Which parameters (n, q) the adversary may choose."""
        return np.ones(len(theta), dtype=np.bool_)

    def _listed(self, points: Array, d: int) -> ListedSets:
        if self.values is None:
            raise ValueError("parameters beside a finite list of designs are a finite list too: give values=")
        _, first, belongs = np.unique(points[:, :d], axis=0, return_index=True, return_inverse=True)
        rank = np.argsort(np.argsort(first))  # designs in the order of their first appearance
        belongs = rank[belongs.ravel()]
        reached = np.flatnonzero(self._allowed(points[:, d:]) & Candidates(self.values).contains(points[:, d:]))
        members = reached[np.argsort(belongs[reached], kind="stable")]
        sizes = np.bincount(belongs[reached], minlength=len(first))
        return ListedSets(points[np.sort(first), :d], members, np.cumsum(sizes) - sizes, belongs=belongs)

    def _region(self, centers: Box) -> ParameterRegion:
        return ParameterRegion(centers, values=self.values, box=self.box)

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
        self.radius = np.array(
            [not_negative(value, "radius") for value in np.broadcast_to(given, (self.dimension,)).tolist()]
        )
        self.norm = norm_order(norm)
        if self.values is not None and not self._allowed(self.values).any():
            raise ValueError(f"none of the {len(self.values)} values is within {radius!r} of {estimate!r}")
        if self.box is not None and not self.box.contains(self.estimate[None])[0]:
            raise ValueError(f"the estimate {self.estimate.tolist()} lies outside {self.box!r}")

    def _allowed(self, theta: Array) -> NDArray[np.bool_]:
        slack = rounding(np.vstack([theta, self.estimate]), self.radius)
        return np.asarray(gauge(theta - self.estimate, self.radius, self.norm) <= 1.0 + slack)

    def _region(self, centers: Box) -> ParameterRegion:
        if self.values is not None:
            return ParameterRegion(centers, values=self.values[self._allowed(self.values)])
        return ParameterRegion(centers, box=self.box, estimate=self.estimate, reach=self.radius, norm=self.norm)

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
