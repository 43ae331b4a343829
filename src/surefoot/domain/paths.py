"""Paths: places that a vehicle can only measure one move after the other.

A vehicle stands at one of finitely many places. From there it makes one of a few *moves* (macro-actions), each a fixed
sequence of k stops; all of them are measured before the next move is chosen, and the move ends at its last stop. The
place it stands at is not a stop. Where moves come from is the business of a generator:

* :class:`~surefoot.domain.Dives`: straight lines on a regular grid, along its axes;
* :class:`~surefoot.domain.GraphPaths`: paths of a directed graph that visit no place twice, of each place a fixed few;
* :class:`~surefoot.domain.MoveTable`: whatever the user lists.

>>> from surefoot.domain import Dives
>>> grid = np.stack(np.meshgrid(np.arange(5.0), np.arange(5.0), indexing="ij"), axis=-1).reshape(-1, 2)
>>> paths = Paths(grid, Dives((5, 5), 2), start=12, budget=8)
>>> paths.moves(12).tolist()
[[13, 14], [11, 10], [17, 22], [7, 2]]
>>> paths.moves(0).tolist()  # what would leave the grid is not a move
[[1, 2], [5, 10]]
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot.arguments import whole
from surefoot.domain.base import Array, Domain, readonly
from surefoot.domain.candidates import INLINE, Candidates
from surefoot.domain.moves import Indices, Moves

__all__ = ["Paths"]

Cost = float | Callable[[int, Indices], float]


class Paths(Domain):
    """Places, the moves between them, and where the vehicle starts.

    Parameters
    ----------
    points : array of shape (n, d)
        The places.
    moves : Dives, GraphPaths or MoveTable
        How the vehicle may move.
    start : int or array of shape (d,)
        Where it stands at first: a row of ``points``, or the point itself.
    budget : int, optional
        How many stops it may make in all; a move that misses values costs as much as any other.
    cost : float or function of (place, stops), optional
        The cost of a move; None: the weights of ``GraphPaths`` along its way, if there are any. It is told with the
        query. ``MacroGPO(toll=)`` weighs it against what is measured; policies that do not weigh it warn of that.
    include_start : bool
        Whether the first query measures the start, alone; it is not charged to the budget. Without it, tell what is
        known about the start, if anything, before the first ask.

    A policy asks for whole moves: ``query.x`` has shape (k, d), ``query.note["stops"]`` lists the places, and
    ``tell`` takes k values, NaN or None for a missed one. The vehicle then stands at the last stop, whether the
    measurements succeeded or not; a cancelled move was not made. Points told unasked do not move it.

    >>> from surefoot.domain import MoveTable
    >>> line = Paths(np.arange(4.0)[:, None], MoveTable({0: [[1]], 1: [[2], [0]]}), start=0)
    >>> line.size, line.length, line.start
    (4, 1, 0)
    """

    travels = True

    def __init__(
        self,
        points: ArrayLike,
        moves: Moves,
        *,
        start: int | ArrayLike,
        budget: int | None = None,
        cost: Cost | None = None,
        include_start: bool = False,
    ) -> None:
        if not isinstance(moves, Moves):
            raise TypeError(f"moves must be Dives, GraphPaths or a MoveTable, got {type(moves).__name__}")
        self.sites = Candidates(points)
        self.generator = moves
        moves.check(self.sites.size)
        self.start = self._place(start)
        if not len(self.moves(self.start)):
            raise ValueError(f"no move of {self.length} stops leads away from the start, place {self.start}")
        self.budget = None if budget is None else whole(budget, "budget", 1)
        if self.budget is not None and self.budget < self.length:
            raise ValueError(f"a budget of {budget} stops does not allow one move of {self.length}")
        if cost is not None and not callable(cost) and not (np.isfinite(cost) and cost >= 0):
            raise ValueError(f"the cost of a move must be finite and not negative, got {cost!r}")
        self.cost = cost
        self.include_start = bool(include_start)

    def _place(self, start: Any) -> int:
        array = np.asarray(start)
        if array.ndim == 0 and array.dtype.kind in "iu":
            place = int(array)
            if not 0 <= place < self.sites.size:
                raise ValueError(f"the start is place {place}, but there are {self.sites.size} points")
            return place
        try:
            return self.sites.index_of(np.atleast_1d(array))
        except ValueError as error:
            raise ValueError(f"the start is unknown: {error}") from None

    @property
    def points(self) -> Array:
        """The places, shape (n, d)."""
        return self.sites.points

    @property
    def length(self) -> int:
        """Number of stops of every move."""
        return self.generator.length

    def moves(self, place: int) -> Indices:
        """Return the moves that start at a place, shape (A, k); none at a dead end.

        >>> from surefoot.domain import MoveTable
        >>> Paths([0.0, 1.0, 2.0], MoveTable({0: [[1, 2]]}), start=0).moves(2).shape
        (0, 2)
        """
        if not 0 <= place < self.sites.size:
            raise ValueError(f"place {place!r} is not one of the {self.sites.size} points")
        rows = self.generator.table(np.array([place], dtype=np.intp))[0]
        found: Indices = rows[rows[:, 0] >= 0]
        return found

    @property
    def uneven(self) -> bool:
        """Whether moves may differ in what they cost, so that a route could be chosen by it."""
        return callable(self.cost) or (self.cost is None and self.generator.uneven)

    def price(self, place: int, stops: Indices) -> float | None:
        """Return the cost of a move, None where no cost was given."""
        if self.cost is None:
            return self.generator.travel(place, stops)
        return float(self.cost(place, stops) if callable(self.cost) else self.cost)

    def index_of(self, x: ArrayLike) -> int:
        """Return the place with these coordinates, or raise a ValueError."""
        return self.sites.index_of(x)

    def row_of(self, x: Array) -> int:
        return self.index_of(x)

    def validate(self, x: Any) -> Array:
        """Return a place (d,), or the stops of a move (k, d), as a read-only array."""
        try:
            array = np.array(x, dtype=np.float64)
        except (TypeError, ValueError):
            raise ValueError(f"a place is {self.dimension} numbers, got {x!r}") from None
        if array.ndim != 2:
            return self.sites.validate(x)
        if not len(array):
            raise ValueError("a move needs at least one stop")
        return readonly(np.stack([self.sites.validate(row) for row in array]))

    @property
    def lower(self) -> Array:
        return self.sites.lower

    @property
    def upper(self) -> Array:
        return self.sites.upper

    @property
    def size(self) -> int:
        return self.sites.size

    @property
    def continuous(self) -> NDArray[np.bool_]:
        return self.sites.continuous

    def encode(self, X: ArrayLike) -> Array:
        return self.sites.encode(X)

    def decode(self, E: ArrayLike) -> Array:
        return self.sites.decode(E)

    def contains(self, X: ArrayLike) -> NDArray[np.bool_]:
        return self.sites.contains(X)

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        return self.sites.sample(n, rng)

    def design(self, n: int, rng: np.random.Generator, method: str = "sobol") -> Array:
        return self.sites.design(n, rng, method)

    def enumerate(self) -> Array:
        return self.points

    def _check(self, x: Array) -> None:
        self.sites.index_of(x)

    def description(self) -> dict[str, Any]:
        code = getattr(self.cost, "__qualname__", type(self.cost).__qualname__)
        return {
            "domain": "Paths",
            "points": self.points.tolist(),
            "moves": self.generator.to_dict(),
            "start": self.start,
            "budget": self.budget,
            "cost": {"$code": code} if callable(self.cost) else self.cost,
            "include_start": self.include_start,
        }

    @cached_property
    def sha256(self) -> str:
        """Hash of the whole description.

        >>> from surefoot.domain import MoveTable
        >>> len(Paths([0.0, 1.0], MoveTable({0: [[1]]}), start=0).sha256)
        64
        """
        return hashlib.sha256(json.dumps(self.description(), sort_keys=True).encode()).hexdigest()

    def to_dict(self) -> dict[str, Any]:
        data = self.description()
        if _numbers(data) <= INLINE:
            return data
        return {"domain": "Paths", "sha256": self.sha256, "shape": [self.size, self.dimension]}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Rebuild the domain; a large one, or one whose cost is code, must be passed again instead.

        >>> from surefoot.domain import MoveTable
        >>> paths = Paths([0.0, 1.0], MoveTable({0: [[1]]}), start=0, budget=3)
        >>> Paths.from_dict(paths.to_dict()) == paths
        True
        """
        fields = cls._fields(data, "points", "moves", "start", "budget", "cost", "include_start", "sha256", "shape")
        if "points" not in fields:
            raise ValueError(
                f"these {fields['shape'][0]} places are described by their hash only: pass the domain again"
            )
        cost = fields.get("cost")
        if isinstance(cost, dict):
            raise ValueError(f"the cost {cost['$code']!r} is code and was stored by name only: pass the domain again")
        moves = dict(fields["moves"])
        kind = moves.pop("moves")
        if kind == "MoveTable":
            moves = {"moves": {int(place): rows for place, rows in moves["table"].items()}}
        if kind not in Moves.registry:
            raise ValueError(f"unknown moves {kind!r}; known are {sorted(Moves.registry)}")
        options = {key: fields[key] for key in ("start", "budget", "cost", "include_start") if key in fields}
        return cls(fields["points"], Moves.registry[kind](**moves), **options)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Paths) and self.description() == other.description()

    __hash__ = Domain.__hash__

    def __repr__(self) -> str:
        return f"Paths({self.size} places of dimension {self.dimension}, moves of {self.length})"


def _numbers(data: Any) -> int:
    """How many values a description holds."""
    if isinstance(data, dict):
        return sum(_numbers(value) for value in data.values())
    return sum(_numbers(value) for value in data) if isinstance(data, list) else 1
