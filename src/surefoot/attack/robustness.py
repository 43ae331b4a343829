"""What attacks on a classifier say about its robustness: how many succeed, and after how many queries.

The mean of the queries over *successful* attacks, which is what the literature prints, cannot be compared between
methods that succeed differently often: giving up on the hard images makes it smaller. So there is also the *capped*
mean, in which a failure counts as the whole budget, and the curve of successes against queries.

>>> runs = [Attacked(True, 12), Attacked(True, 300), Attacked(False, 900)]
>>> summary = summarize(runs, budget=900)
>>> summary.successes, summary.mean, summary.capped_mean
(2, 156.0, 404.0)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from surefoot.intervals import bootstrap_interval, wilson
from surefoot.moved import renamed

__all__ = ["Attacked", "Attempt", "Summary", "summarize"]
__getattr__ = renamed(__name__, {"Outcome": "Attempt"})

Array = NDArray[np.float64]


class Attempt(Protocol):
    """What is needed of a result: an :class:`~surefoot.attack.AttackResult`, or an :class:`Attacked`."""

    @property
    def success(self) -> bool:
        """Whether the attack has succeeded."""

    @property
    def queries(self) -> int:
        """How many images were asked about."""


@dataclass(frozen=True)
class Attacked:
    """One attack: whether it succeeded, and what it cost.

    >>> Attacked(success=True, queries=12)
    Attacked(success=True, queries=12)
    """

    success: bool
    queries: int


@dataclass(frozen=True)
class Summary:
    """Success rate and queries of many attacks.

    Attributes
    ----------
    attacks, successes : int
        How many there were, and how many succeeded.
    rate : float
        Share of successes.
    interval : tuple of float
        95 % interval of the share, by Wilson.
    mean, median, most : float or None
        Queries of the successful attacks; None without any.
    capped_mean, capped_median : float
        Queries of all attacks, a failure counted as the whole budget.
    capped_interval : tuple of float
        95 % interval of the capped mean, by bootstrap; the ends are None for fewer than five attacks.
    budget : int
        Queries that were allowed.
    curve : list of (int, float)
        The share that had succeeded after so many queries, wherever it rises.

    >>> summarize([Attacked(True, 5), Attacked(False, 9)], budget=9).curve
    [(5, 0.5)]
    """

    attacks: int
    successes: int
    rate: float
    interval: tuple[float, float]
    mean: float | None
    median: float | None
    most: int | None
    capped_mean: float
    capped_median: float
    capped_interval: tuple[float | None, float | None]
    budget: int
    curve: list[tuple[int, float]]

    def to_dict(self) -> dict[str, Any]:
        """Return strict JSON.

        >>> summarize([Attacked(False, 9)], budget=9).to_dict()["mean"] is None
        True
        """
        return asdict(self)

    def at(self, queries: int) -> float:
        """Return the share that had succeeded after so many queries.

        >>> summarize([Attacked(True, 5), Attacked(False, 9)], budget=9).at(4)
        0.0
        """
        return max((share for count, share in self.curve if count <= queries), default=0.0)


def summarize(results: Sequence[Attempt], budget: int) -> Summary:
    """Summarize attacks that each had the same budget.

    >>> summarize([], budget=9)
    Traceback (most recent call last):
    ...
    ValueError: there was no attack to summarize
    """
    if not len(results):
        raise ValueError("there was no attack to summarize")
    won = np.array([bool(each.success) for each in results])
    queries = np.array([int(each.queries) for each in results])
    capped = np.where(won, np.minimum(queries, budget), budget).astype(np.float64)
    n, successes, good = len(won), int(won.sum()), np.sort(queries[won])
    _, low, high = bootstrap_interval(lambda pick: capped[pick].mean(axis=-1), n, 0.95)
    counts, ranks = np.unique(good, return_counts=True)
    shares = np.cumsum(ranks) / n
    return Summary(
        attacks=n,
        successes=successes,
        rate=successes / n,
        interval=wilson(successes, n),
        mean=float(good.mean()) if successes else None,
        median=float(np.median(good)) if successes else None,
        most=int(good[-1]) if successes else None,
        capped_mean=float(capped.mean()),
        capped_median=float(np.median(capped)),
        capped_interval=(low if math.isfinite(low) else None, high if math.isfinite(high) else None),
        budget=int(budget),
        curve=[(int(count), float(share)) for count, share in zip(counts, shares, strict=True)],
    )
