"""Distributed exploration: sub-regions of the domain, and whose word counts in which.

Each agent starts with points of one sub-region. The coordinator makes one vector for each sub-region i, in which the
agents that started there weigh more,

    φₙ⁽ⁱ⁾ = exp(a_t)/Zᵢ  if agent n belongs to i,  else exp(b)/Zᵢ,      Σₙ φₙ⁽ⁱ⁾ = 1,

and lets the difference a_t − b fall to zero: at the end everybody counts alike.

>>> regions = Regions.split(4, dimension=3)
>>> regions.parts
(2, 2, 1)
>>> regions.index(np.array([[0.1, 0.9, 0.3], [1.0, 1.0, 1.0]]))
array([1, 3])

Weights, sub-regions and the number of agents are public constants. Were they computed from who takes part, one agent's
absence would move everybody's weight, and the sensitivity of the sum would be another.

Reference: Dai, Low & Jaillet 2021, "Differentially private federated Bayesian optimization with distributed
exploration", sections 3 and 5; section 6.3.2 of Dai's thesis (2021).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import ArrayLike, NDArray

from surefoot.domain import Domain
from surefoot.loop.state import storable

__all__ = ["Regions", "Weighting", "effective_multiplier"]

Array = NDArray[np.float64]
MARGIN = 1e-9  # wider than the rounding of points that are decoded and encoded again


@storable
@dataclass(frozen=True)
class Regions:
    """Equal boxes that cover the unit cube; a point on an inner border belongs to the upper one.

    Parameters
    ----------
    parts : sequence of int
        Into how many equal parts each coordinate is cut.

    >>> Regions((3,)).index(np.array([[0.0], [1 / 3], [1.0]]))
    array([0, 1, 2])
    """

    parts: tuple[int, ...]

    def __post_init__(self) -> None:
        valid = isinstance(self.parts, (list, tuple)) and len(self.parts) > 0
        if not valid or any(not isinstance(part, (int, np.integer)) or part < 1 for part in self.parts):
            raise ValueError(f"parts is a list of whole numbers from 1 on, one for each coordinate, got {self.parts!r}")
        object.__setattr__(self, "parts", tuple(int(part) for part in self.parts))

    @classmethod
    def split(cls, count: int, dimension: int, axes: Sequence[int] | None = None) -> Self:
        """Cut the cube into ``count`` boxes: the largest prime factor along the axis cut least so far, and so on.

        ``axes`` are the coordinates that may be cut, all by default. Two and three cut the first coordinate, four
        halves the first two.

        >>> Regions.split(6, 2).parts, Regions.split(4, 1).parts
        ((3, 2), (4,))
        """
        if not isinstance(count, (int, np.integer)) or isinstance(count, bool) or count < 1:
            raise ValueError(f"the number of sub-regions must be a whole number from 1 on, got {count!r}")
        parts = np.ones(dimension, dtype=int)
        free = np.arange(dimension) if axes is None else np.asarray(axes, dtype=int)
        if count > 1 and not free.size:
            raise ValueError(f"no coordinate can be cut into {count} sub-regions")
        for factor in sorted(_primes(int(count)), reverse=True):
            parts[free[np.argmin(parts[free])]] *= factor
        return cls(tuple(parts.tolist()))

    @classmethod
    def of(cls, domain: Domain, count: int) -> Self:
        """Cut a domain; coordinates of a choice, which has no order, stay whole.

        >>> from surefoot import Box, Choice, Float, Space
        >>> Regions.of(Space(kind=Choice(["a", "b", "c"]), rate=Float(0.0, 1.0)), 2).parts
        (1, 1, 1, 2)
        """
        varies = domain.upper > domain.lower
        ordered = domain.ordered if domain.ordered.any() else np.ones_like(varies)
        return cls.split(count, domain.encoded_dimension, np.flatnonzero(ordered & varies).tolist())

    @property
    def count(self) -> int:
        """Number of sub-regions P."""
        return int(np.prod(self.parts))

    @property
    def dimension(self) -> int:
        """Number of coordinates."""
        return len(self.parts)

    def index(self, U: Any) -> Any:
        """Return the sub-region of each row of U (n, dimension) in the unit cube, shape (n,)."""
        xp = array_namespace(U)
        if U.ndim != 2 or U.shape[1] != self.dimension:
            raise ValueError(f"points must have shape (n, {self.dimension}), got {tuple(U.shape)}")
        total = xp.zeros(U.shape[0], dtype=xp.int64)
        for axis, part in enumerate(self.parts):
            # Compared with the borders themselves: floor(u · part) would round some of them down.
            place = xp.zeros(U.shape[0], dtype=xp.int64)
            for border in self._borders[axis][1:-1]:
                place = place + xp.astype(U[:, axis] >= border, xp.int64)
            total = total * part + place
        return total

    @cached_property
    def _borders(self) -> list[list[float]]:
        return [[k / part for k in range(part + 1)] for part in self.parts]

    @cached_property
    def boxes(self) -> tuple[Array, Array]:
        """Lower and upper corners of all sub-regions, each (P, dimension), for a search.

        They keep a little distance from inner borders, so that a point stays on its side when it is rounded.
        """
        places = np.stack(np.unravel_index(np.arange(self.count), self.parts), axis=1)
        lower, upper = np.empty(places.shape), np.empty(places.shape)
        for axis, borders in enumerate(self._borders):
            low, high = np.array(borders[:-1]), np.array(borders[1:])
            low[1:] += MARGIN
            high[:-1] -= MARGIN
            lower[:, axis], upper[:, axis] = low[places[:, axis]], high[places[:, axis]]
        return lower, upper

    def assign(self, agents: int) -> NDArray[np.intp]:
        """Return the sub-region of each of so many agents: they take turns."""
        return np.arange(agents, dtype=np.intp) % self.count

    def to_dict(self) -> dict[str, Any]:
        """Return the cuts as strict JSON."""
        return {"parts": list(self.parts)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Rebuild the sub-regions."""
        return cls(tuple(data["parts"]))


def _primes(count: int) -> list[int]:
    factors, divisor = [], 2
    while count > 1:
        while count % divisor == 0:
            factors.append(divisor)
            count //= divisor
        divisor += 1
    return factors


@storable
@dataclass(frozen=True)
class Weighting:
    """How much more the agents of a sub-region weigh in it, round by round: a_t − b of the module's page.

    Parameters
    ----------
    high : float
        a − b at the start; the authors' 16 − 1. Practically only the sub-region's own agents count.
    hold : int
        Rounds before it falls: 5 in the authors' synthetic runs, 10 on real data.
    fall : int, optional
        Rounds in which it falls evenly to zero, both ends included: 5, or 30. None never falls: the fixed weights of
        the authors' ablation.

    >>> weighting = Weighting(hold=5, fall=5)
    >>> [float(weighting(t)) for t in (0, 4, 5, 6, 9, 30)]
    [15.0, 15.0, 15.0, 11.25, 0.0, 0.0]
    """

    high: float = 15.0
    hold: int = 5
    fall: int | None = 5

    def __post_init__(self) -> None:
        if not (np.isfinite(self.high) and self.high >= 0):
            raise ValueError(f"high is a difference a − b, not negative and finite, got {self.high!r}")
        for name, value in (("hold", self.hold), ("fall", self.fall)):
            if value is not None and (not isinstance(value, (int, np.integer)) or value < 0):
                raise ValueError(f"{name} is a number of rounds, got {value!r}")

    def __call__(self, round: int) -> float:
        if self.fall is None or round < self.hold:
            return self.high
        if round >= self.hold + self.fall:
            return 0.0
        return float(np.linspace(self.high, 0.0, self.fall)[round - self.hold])

    def weights(self, round: int, assigned: ArrayLike, count: int) -> Array:
        """Return the weights (P, N) of all agents in all sub-regions; each row sums to 1.

        >>> Weighting(high=np.log(3.0)).weights(0, [0, 1], 2).round(3)
        array([[0.75, 0.25],
               [0.25, 0.75]])
        """
        own = np.arange(count)[:, None] == np.asarray(assigned)
        nobody = ~own.any(axis=1, keepdims=True)  # a sub-region without agents: everybody counts alike
        raw = np.where(own | nobody, 1.0, np.exp(-self(round)))  # exp(a − b) itself may overflow
        weights: Array = raw / raw.sum(axis=1, keepdims=True)  # φₙ⁽ⁱ⁾
        return weights

    def to_dict(self) -> dict[str, Any]:
        """Return the schedule as strict JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Rebuild the schedule."""
        return cls(**data)


def effective_multiplier(noise_multiplier: float, weights: Array) -> float:
    """Return the noise multiplier z_eff that one round really has, given its weights (P, N).

    The published analysis lets one agent weigh φ_max in all P sub-regions at once. Its true whitened contribution has
    the squared norm Σᵢ (φₙ⁽ⁱ⁾/φ_max⁽ⁱ⁾)²/(z²P), so that

        z_eff = z √P / max_n √(Σᵢ (φₙ⁽ⁱ⁾/φ_max⁽ⁱ⁾)²),

    between z, when everybody counts alike, and z √P, when each agent counts in one sub-region only.

    >>> effective_multiplier(1.0, np.full((4, 10), 0.1)), effective_multiplier(1.0, np.eye(4))
    (1.0, 2.0)
    """
    shares = weights / weights.max(axis=1, keepdims=True)
    return float(noise_multiplier * np.sqrt(len(weights)) / np.sqrt((shares**2).sum(axis=0)).max())
