"""Intervals and the trend test behind the verdicts.

All are deterministic: bootstraps resample with a fixed seed, so that the same results always get the same verdict.

>>> t_interval(np.array([1.0, 2.0, 3.0]), 0.95)
(2.0, -0.48413..., 4.48413...)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, stdtrit

__all__ = ["FEWEST", "bootstrap_interval", "page", "resamples", "t_interval", "wilson"]

Array = NDArray[np.float64]
Interval = tuple[float, float, float]

FEWEST = 5  # repetitions below which a bootstrap interval is not worth printing
_BOOTSTRAPS = 2000


def t_interval(values: Array, level: float, *, exact: bool = False) -> Interval:
    """Return the mean of the values (n,) and its Student t interval, unbounded for a single value.

    With ``exact`` the values have no sampling error, and the interval is the mean itself.

    >>> t_interval(np.array([2.0]), 0.95)
    (2.0, -inf, inf)
    """
    n, mean = values.size, float(values.mean())
    if exact or n < 2:
        return (mean, mean, mean) if exact else (mean, -math.inf, math.inf)
    half = float(stdtrit(n - 1, (1 + level) / 2) * values.std(ddof=1) / math.sqrt(n))
    return mean, mean - half, mean + half


def resamples(n: int) -> NDArray[np.intp]:
    """Return bootstrap indices, shape (2000, n), always the same.

    >>> resamples(3).shape
    (2000, 3)
    """
    return np.random.default_rng(0).integers(n, size=(_BOOTSTRAPS, n))


def bootstrap_interval(
    estimate: Callable[[NDArray[np.intp]], Any], n: int, level: float, *, exact: bool = False
) -> Interval:
    """Return an estimate over n repetitions and its percentile interval, unbounded for fewer than five.

    ``estimate`` maps the indices of repetitions, shape (..., n), to numbers of shape (...).

    >>> values = np.arange(100.0)
    >>> centre, low, high = bootstrap_interval(lambda pick: np.median(values[pick], axis=-1), 100, 0.95)
    >>> low < centre == 49.5 < high
    True
    """
    centre = float(estimate(np.arange(n)))
    if exact or n < FEWEST:
        return (centre, centre, centre) if exact else (centre, -math.inf, math.inf)
    low, high = np.quantile(estimate(resamples(n)), [(1 - level) / 2, (1 + level) / 2])
    return centre, float(low), float(high)


def wilson(successes: float, trials: int, level: float = 0.95) -> tuple[float, float]:
    """Return Wilson's interval of a share; a trial may succeed in part.

    >>> tuple(round(x, 4) for x in wilson(95, 100))
    (0.8882, 0.9785)
    """
    if not 0 <= successes <= trials or trials == 0:
        raise ValueError(f"need 0 <= successes <= trials > 0, got {successes} of {trials}")
    z = float(ndtri((1 + level) / 2))
    share, z2 = successes / trials, z * z / trials
    centre = (share + z2 / 2) / (1 + z2)
    half = z * math.sqrt(share * (1 - share) / trials + z2 / (4 * trials)) / (1 + z2)
    return 0.0 if successes == 0 else centre - half, 1.0 if successes == trials else centre + half


def page(table: Array) -> float:
    """Return Page's statistic L over the columns of a table (n, k), standardized: large when the rows rise.

    Normal approximation, with the variance that ties leave (Page: Journal of the American Statistical Association 58,
    1963).

    >>> page(np.tile([1.0, 2.0, 3.0], (8, 1)))
    4.0
    """
    from scipy.stats import rankdata  # slow to import, and seldom needed

    position = np.arange(table.shape[1]) - (table.shape[1] - 1) / 2
    ranks = rankdata(table, axis=1)
    ranks = ranks - ranks.mean(axis=1, keepdims=True)
    # Var Σⱼ aⱼ b_π(j) = Σa² Σb²/(k − 1) over random permutations π, for centred a and b: exact under ties.
    variance = (position**2).sum() * (ranks**2).sum() / (table.shape[1] - 1)
    return float((ranks @ position).sum() / math.sqrt(variance)) if variance > 0 else 0.0
