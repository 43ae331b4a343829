"""What a measurement costs: by point, by the way from the last point, by the precision that is bought.

>>> import numpy as np
>>> from surefoot.domain import Candidates
>>> line = Candidates([0.0, 1.0, 3.0])
>>> travel = Prices(line, cost=lambda previous, X: 1.0 + (0.0 if previous is None else abs(X - previous)[:, 0]))
>>> travel.travels, travel.at(line.points, np.arange(3), line.points[2])
(True, array([[4., 3., 1.]]))
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot.arguments import not_negative, positive
from surefoot.domain import Candidates, Domain
from surefoot.loop.state import storable
from surefoot.loop.trials import Trials
from surefoot.loop.types import Proposal

__all__ = ["Fidelity", "Field", "Prices", "checked_field", "last_point", "numbers_at"]

Array = NDArray[np.float64]
Field = ArrayLike | Callable[..., Any]
"""A number for each point: an array over the candidates, or a function of points (m, d)."""


@storable
@dataclass(frozen=True)
class Fidelity:
    """One way to measure: its noise variance, and its price.

    >>> Fidelity(noise=0.05, cost=2.0).cost
    2.0
    """

    noise: float
    cost: float = 1.0

    def __post_init__(self) -> None:
        not_negative(self.noise, "the noise of a fidelity, a variance,")
        positive(self.cost, "the cost of a fidelity")

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-able description."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Fidelity:
        """Rebuild the fidelity from :meth:`to_dict`."""
        return cls(**data)


def checked_field(field: Field | None, name: str, domain: Domain, *, positive: bool) -> Field | None:
    """Return an array over the candidates after checking it; a function is checked when it is called.

    >>> checked_field([1.0, 0.0], "cost", Candidates([0.1, 0.2]), positive=True)
    Traceback (most recent call last):
    ...
    ValueError: cost must be positive and finite, got 0.0 at [0.2]
    """
    if field is None or callable(field):
        return field
    if not isinstance(domain, Candidates):
        raise ValueError(f"{name} as an array needs Candidates; on {type(domain).__name__} pass a function of points")
    try:
        array = np.asarray(field, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be an array over the candidates or a function, got {field!r}") from None
    if array.shape != (domain.size,):
        raise ValueError(f"{name} must have one number for each of {domain.size} candidates, got shape {array.shape}")
    return numbers_at(array, name, domain.points, None, positive=positive)


def numbers_at(field: Field, name: str, X: Array, rows: NDArray[np.intp] | None, *before: Any, positive: bool) -> Array:
    """Return one number per point from an array over the candidates or a function of points, checked.

    Parameters
    ----------
    field : array or callable
        Indexed by ``rows``, or called with ``before`` and X (m, d).
    name : str
        What it is, for the message.
    X, rows
        The points, and which candidates they are.
    positive : bool
        Whether 0 is refused too.

    >>> numbers_at(lambda X: X[:, 0] - 1.0, "cost", np.array([[1.0]]), None, positive=True)
    Traceback (most recent call last):
    ...
    ValueError: cost must be positive and finite, got 0.0 at [1.0]
    """
    if callable(field):
        returned = field(*before, X)
        try:
            found = np.asarray(returned, dtype=np.float64)
        except (TypeError, ValueError):
            raise ValueError(f"{name} must return one number for each point, got {returned!r}") from None
        if found.shape not in ((), (len(X),)):
            raise ValueError(f"{name} must return one number for each of {len(X)} points, got shape {found.shape}")
        found = np.broadcast_to(found, (len(X),))
    else:
        found = np.asarray(field, dtype=np.float64)[slice(None) if rows is None else rows]
    bad = ~np.isfinite(found) | (found <= 0 if positive else found < 0)
    if bad.any():
        i = int(np.flatnonzero(bad)[0])
        wanted = "positive and finite" if positive else "finite and not negative"
        raise ValueError(f"{name} must be {wanted}, got {found[i]} at {X[i].tolist()}")
    return found


class Prices:
    """What each measurement costs; see the module's page.

    Parameters
    ----------
    domain : Domain
        Where points lie.
    cost : array or callable, optional
        Of each candidate; or ``cost(X)``; or ``cost(previous, X)`` with the last measured point, None at first.
    fidelities : sequence of Fidelity, optional
        Ways to measure; their prices add to ``cost``.

    Attributes
    ----------
    travels : bool
        Whether the cost depends on the last measured point.
    levels : tuple of Fidelity, or None
        The ways to measure.

    >>> prices = Prices(Candidates([0.0, 1.0]), fidelities=[Fidelity(1e-6, 15.0), Fidelity(0.05, 2.0)])
    >>> prices.at(np.zeros((1, 1)), None)
    array([[15.],
           [ 2.]])
    """

    def __init__(
        self, domain: Domain, *, cost: Field | None = None, fidelities: Sequence[Fidelity] | None = None
    ) -> None:
        self.cost = checked_field(cost, "cost", domain, positive=True)
        self.travels = callable(cost) and _arguments(cost) == 2
        self.levels = None if fidelities is None else tuple(fidelities) if isinstance(fidelities, Iterable) else ()
        if self.levels is not None and not (self.levels and all(isinstance(k, Fidelity) for k in self.levels)):
            raise TypeError(f"fidelities must be a sequence of Fidelity(noise, cost), got {fidelities!r}")

    @property
    def unit(self) -> bool:
        """Whether every measurement costs the same."""
        return self.cost is None and self.levels is None

    def at(self, X: Array, rows: NDArray[np.intp] | None, previous: Array | None = None) -> Array:
        """Return what every fidelity costs at every point, shape (k, m).

        Parameters
        ----------
        X, rows
            The points (m, d), and on candidates their rows.
        previous : array of shape (d,), optional
            The last measured point.
        """
        total = np.full((1, len(X)), 1.0 if self.unit else 0.0)
        if self.cost is not None:
            before = (previous,) if self.travels else ()
            total = total + numbers_at(self.cost, "cost", X, rows, *before, positive=True)
        if self.levels is not None:
            total = total + np.array([[level.cost] for level in self.levels])
        return total

    def proposal(self, level: int, x: Array, row: int | None, previous: Array | None) -> Proposal:
        """Return the proposal to measure a point (d,) at one of the fidelities, with its price where there is one."""
        rows = None if row is None else np.array([row])
        return Proposal(
            x=x if row is None else None,
            index=row,
            fidelity=None if self.levels is None else level,
            cost=None if self.unit else float(self.at(x[None], rows, previous)[level, 0]),
        )


def last_point(trials: Trials) -> Array | None:
    """Return where the last measurement was made, None before the first.

    >>> from surefoot import Box, RandomSearch
    >>> policy = RandomSearch(Box([(0.0, 1.0)]), seed=0)
    >>> policy.tell([0.5], 2.0)
    >>> last_point(policy.trials)
    array([0.5])
    """
    return trials.observations[-1].x if trials.observations else None


def _arguments(function: Callable[..., Any]) -> int:
    """How many positional arguments a cost function takes: 1, or 2 with the previous point."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # a built-in without a signature
        return 1
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    needed = [p for p in parameters if p.kind in kinds and p.default is p.empty]
    if not 1 <= len(needed) <= 2:
        raise TypeError(f"cost must take the points, or the previous point and the points, got {function!r}")
    return len(needed)
