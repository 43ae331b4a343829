"""The best of a list: exact, with ties broken by a keyed stream."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot.errors import Exhausted

__all__ = ["argmax", "finite"]

Array = NDArray[np.float64]

TIES = 1e-9  # share of the range of scores within which two of them count as equal


def argmax(values: ArrayLike, *, rng: np.random.Generator, exclude: ArrayLike | None = None) -> int:
    """Return the index of the largest value; ties within 1e-9 of the range are broken by ``rng``.

    Parameters
    ----------
    values : array of shape (n,)
        What is not finite is worse than everything else.
    rng : Generator
        Used for ties only.
    exclude : boolean array of shape (n,), optional
        Indices that must not be returned; :class:`~surefoot.errors.Exhausted` if that leaves none.

    >>> argmax([1.0, 3.0, 2.0], rng=np.random.default_rng(0), exclude=[False, True, False])
    2
    """
    scores = finite(np.array(values, dtype=np.float64))
    if scores.ndim != 1:
        raise ValueError(f"values must have shape (n,), got {scores.shape}")
    free = np.ones(scores.size, dtype=np.bool_) if exclude is None else ~np.asarray(exclude, dtype=np.bool_)
    if free.shape != scores.shape:
        raise ValueError(f"exclude must have shape {scores.shape}, got {free.shape}")
    if not free.any():
        raise Exhausted(f"none of the {scores.size} candidates is left")
    scores[~free] = -np.inf
    best, worst = scores.max(), scores.min(where=np.isfinite(scores), initial=np.inf)
    if best == -np.inf:
        ties = np.flatnonzero(free)
    else:
        ties = np.flatnonzero(scores >= best - TIES * (best - worst))
    return int(ties[0] if ties.size == 1 else ties[rng.integers(ties.size)])


def finite(values: Array) -> Array:
    """Return the values, −∞ where they are not finite.

    >>> finite(np.array([1.0, np.nan]))
    array([  1., -inf])
    """
    return np.where(np.isfinite(values), values, -np.inf)
