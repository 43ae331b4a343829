"""What every domain can do.

A domain is an immutable set of points. A point ``x`` is a vector of ``dimension`` numbers in the user's units. What a
model sees is ``encode(x)``, a vector of ``encoded_dimension`` numbers: the same vector on :class:`Box` and
:class:`Candidates`, a point of the unit cube on :class:`Space`. ``decode`` leads back, to the nearest valid point.

>>> import numpy as np
>>> from surefoot.domain import Choice, Float, Space
>>> space = Space(rate=Float(1e-4, 1e-2, log=True), kernel=Choice(["rbf", "poly"]))
>>> x = space.validate({"rate": 1e-3, "kernel": "poly"})
>>> E = space.encode(x[None, :])
>>> E.round(6)
array([[0.5, 0. , 1. ]])
>>> space.params(space.decode(E)[0])
{'rate': 0.001, 'kernel': 'poly'}
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from surefoot.domain.parameter import Parameter

__all__ = ["Domain", "Found", "domain_from_dict"]

Array = NDArray[np.float64]


class Found(NamedTuple):
    """Where a search ended.

    >>> Found(np.zeros(1), None, 2.5).value
    2.5
    """

    x: Array
    row: int | None
    value: float


class Domain(ABC):
    """A set of points among which to choose.

    >>> from surefoot.domain import Box
    >>> domain = Box([(0.0, 1.0), (-5.0, 10.0)])
    >>> domain.dimension, domain.names, domain.size
    (2, ['x0', 'x1'], None)
    """

    registry: ClassVar[dict[str, type[Domain]]] = {}
    listed: ClassVar[bool] = False
    """Whether its points are rows of a list, by which a belief names them."""
    travels: ClassVar[bool] = False
    """Whether a vehicle moves over it, which measures several points on its way."""
    parameters: Mapping[str, Parameter] = MappingProxyType({})
    """Its parameters by name; none where a point is plain numbers."""

    def __init_subclass__(cls) -> None:
        Domain.registry[cls.__name__] = cls

    @property
    @abstractmethod
    def lower(self) -> Array:
        """Smallest value of each encoded coordinate, shape (e,)."""

    @property
    @abstractmethod
    def upper(self) -> Array:
        """Largest value of each encoded coordinate, shape (e,)."""

    @abstractmethod
    def encode(self, X: ArrayLike) -> Array:
        """Return what a model sees of the points X (n, d), shape (n, e)."""

    @abstractmethod
    def decode(self, E: ArrayLike) -> Array:
        """Return the valid points nearest to the encoded ones E (n, e), shape (n, d)."""

    @abstractmethod
    def contains(self, X: ArrayLike) -> NDArray[np.bool_]:
        """Tell for each row of X (n, d) whether it belongs to the domain, shape (n,)."""

    @abstractmethod
    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """Draw n points uniformly, shape (n, d)."""

    @abstractmethod
    def design(self, n: int, rng: np.random.Generator, method: str = "sobol") -> Array:
        """Return n points spread evenly: ``method`` is ``"sobol"`` (scrambled) or ``"lhs"``; shape (n, d)."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return a description in strict JSON that :func:`domain_from_dict` reads back."""

    def description(self) -> dict[str, Any]:
        """Return the whole domain as strict JSON; :meth:`to_dict` describes one of many points by its hash."""
        return self.to_dict()

    @classmethod
    @abstractmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Rebuild the domain from :meth:`to_dict`."""

    @property
    def dimension(self) -> int:
        """Number of coordinates of a point."""
        return self.encoded_dimension

    @property
    def encoded_dimension(self) -> int:
        """Number of coordinates of an encoded point."""
        return self.lower.size

    @property
    def names(self) -> list[str]:
        """One name per coordinate of a point."""
        return [f"x{i}" for i in range(self.dimension)]

    @property
    def size(self) -> int | None:
        """Number of points where they can be counted, else None."""
        return None

    @property
    def continuous(self) -> NDArray[np.bool_]:
        """Which encoded coordinates vary continuously, shape (e,)."""
        return np.ones(self.encoded_dimension, dtype=np.bool_)

    @property
    def ordered(self) -> NDArray[np.bool_]:
        """Which encoded coordinates have an order (real or integer), shape (e,)."""
        return self.continuous

    def extent(self) -> Array:
        """Return the width of each encoded coordinate, shape (e,); one that cannot vary counts as 1.

        >>> from surefoot.domain import Box
        >>> Box([(0.0, 5.0), (2.0, 2.0)]).extent()
        array([5., 1.])
        """
        width = self.upper - self.lower
        return np.where(width > 0, width, 1.0)

    def project(self, E: ArrayLike) -> Array:
        """Return the nearest encodings of valid points, shape (n, e)."""
        return self.encode(self.decode(E))

    def validate(self, x: Any) -> Array:
        """Return the point as a read-only vector, or raise a ValueError that names what is wrong.

        >>> from surefoot.domain import Box
        >>> Box.unit(2).validate([0.5, 1.5])
        Traceback (most recent call last):
        ...
        ValueError: x1 = 1.5 is outside [0.0, 1.0]
        """
        try:
            point = np.array(x, dtype=np.float64)
        except (TypeError, ValueError):
            raise ValueError(f"a point of this domain is {self.dimension} numbers, got {x!r}") from None
        if point.shape != (self.dimension,):
            raise ValueError(f"a point has shape ({self.dimension},), got shape {point.shape}: {x!r}")
        for name, value in zip(self.names, point.tolist(), strict=True):
            if not np.isfinite(value):
                raise ValueError(f"{name} = {value} is not finite")
        point += 0.0  # no negative zero: equal points have equal bytes
        self._check(point)
        point.setflags(write=False)
        return point

    @abstractmethod
    def _check(self, x: Array) -> None:
        """Raise a ValueError when the finite vector x is not in the domain."""

    def params(self, x: ArrayLike) -> dict[str, Any] | None:
        """Return the point as named parameters where the domain has them, else None.

        >>> from surefoot.domain import Box, Int, Space
        >>> Space(depth=Int(1, 9)).params([3.0]), Box.unit(1).params([0.3])
        ({'depth': 3}, None)
        """
        return None

    def neighbors(self, x: ArrayLike, rng: np.random.Generator | None = None) -> Array:
        """Return the points one discrete step away from x, shape (k, d); none where all is continuous.

        >>> from surefoot.domain import Box
        >>> Box.unit(3).neighbors([0.0, 0.0, 0.0]).shape
        (0, 3)
        """
        return np.empty((0, self.dimension))

    def enumerate(self) -> Array:
        """Return all points of a domain that has a ``size``, shape (size, d).

        >>> from surefoot.domain import Choice, Int, Space
        >>> Space(a=Int(3, 4), b=Choice(["u", "v"])).enumerate().tolist()
        [[3.0, 0.0], [3.0, 1.0], [4.0, 0.0], [4.0, 1.0]]
        """
        raise ValueError("the points of a continuous domain cannot be listed")

    @property
    def uneven(self) -> bool:
        """Whether moves may differ in what they cost, so that a route could be chosen by it."""
        return False

    def row_of(self, x: Array) -> int | None:
        """Return the row of a point where points are listed, else None."""
        return None

    def address(self, X: Array, rows: NDArray[np.intp] | None = None) -> Any:
        """Return the names by which a belief over this domain knows points: encoded, or the rows of a list.

        >>> from surefoot.domain import Box, Candidates
        >>> Box.unit(1).address(np.array([[0.5]])), Candidates([0.0, 0.5]).address(np.array([[0.5]]))
        (array([[0.5]]), array([1]))
        """
        return self.encode(X)

    def count(self, points: Sequence[tuple[Array, int | None]]) -> int:
        """Return how much of a finite domain these points take, given with their rows where listed."""
        return len({x.tobytes() for x, _ in points})

    def excluding(self, points: Sequence[tuple[Array, int | None]]) -> Any:
        """Return what :meth:`maximize` takes as ``exclude``: these points, given with their rows where listed."""
        return np.array([x for x, _ in points], dtype=np.float64).reshape(-1, self.dimension)

    def maximize(
        self, score: Any, *, rng: np.random.Generator, seeds: ArrayLike | None = None, exclude: Any = None
    ) -> Found:
        """Return the point where a score is highest; see :func:`surefoot.domain.search.maximize`.

        Parameters
        ----------
        score : Score
            A function of addressed points: of encoded ones, with its gradient, or of the rows of a list.
        rng : Generator
            Places the points that are tried, and breaks ties.
        seeds : array of shape (k, d), optional
            Points worth starting near.
        exclude : optional
            Points that must not be returned, from :meth:`excluding`.
        """
        raise TypeError(f"a {type(self).__name__} does not search for the best point")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Domain) and type(self) is type(other) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((type(self).__name__, self.lower.tobytes(), self.upper.tobytes()))

    def _rows(self, X: ArrayLike, columns: int) -> Array:
        array = np.asarray(X, dtype=np.float64)
        if array.ndim != 2 or array.shape[1] != columns:
            raise ValueError(f"expected an array of shape (n, {columns}), got shape {array.shape}")
        return array

    @classmethod
    def _fields(cls, data: Mapping[str, Any], *names: str) -> dict[str, Any]:
        """Check the name and the keys of a description."""
        fields = dict(data)
        if (name := fields.pop("domain", cls.__name__)) != cls.__name__:
            raise ValueError(f"this describes a {name}, not a {cls.__name__}")
        if unknown := sorted(set(fields) - set(names)):
            raise ValueError(f"unknown key {unknown[0]!r} in the description of a {cls.__name__}")
        return fields


def domain_from_dict(data: Mapping[str, Any], **given: Any) -> Domain:
    """Rebuild any domain from its ``to_dict()``; large ``Candidates`` are given again as ``points=``.

    >>> from surefoot.domain import Box
    >>> domain_from_dict(Box.unit(2).to_dict())
    Box([(0.0, 1.0), (0.0, 1.0)])
    """
    name = data.get("domain")
    if name not in Domain.registry:
        raise ValueError(f"unknown domain {name!r}; known are {sorted(Domain.registry)}")
    return Domain.registry[name].from_dict(data, **given)


def readonly(array: Array) -> Array:
    """Return the array after locking it."""
    array.setflags(write=False)
    return array
