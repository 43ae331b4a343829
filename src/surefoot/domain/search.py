"""Where is the score highest? The search behind every policy that scores points.

On a finite list of candidates the answer is exact (:func:`argmax`). Elsewhere :func:`maximize` scores a few hundred
spread points in one call, picks the best and most different ones, and climbs from all of them at once:

* **Starts.** Sobol points, the seeds (points already known to be good) and Gaussian clouds of several radii around
  the seeds; late in an optimization the score often peaks so close to a seed that no Sobol point falls on the peak.
* **Climbing** is a projected BFGS method in which all starts share each call of the score's gradient; see
  :mod:`surefoot.domain.climb`.
* **Mixed spaces.** Integers are first climbed as if they were real and rounded; then moves to discrete neighbors and
  climbs of the real coordinates alternate until neither helps. Small finite spaces are searched exhaustively.

>>> import numpy as np
>>> from surefoot.domain import Box
>>> class Hill:
...     def __call__(self, E):
...         return -((E - 0.3) ** 2).sum(axis=1)
...     def gradient(self, E):
...         return self(E), -2.0 * (E - 0.3)
>>> x, value = maximize(Hill(), Box.unit(2), rng=np.random.default_rng(0))
>>> x.round(6), round(value, 9)
(array([0.3, 0.3]), -0.0)

References: Rodriguez & Laio 2014 (the distance to the nearest better point tells peaks apart).
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.distance import cdist

from surefoot.domain.base import Domain
from surefoot.domain.candidates import Candidates
from surefoot.domain.climb import climb
from surefoot.domain.design import unit_design
from surefoot.domain.ranking import argmax, finite
from surefoot.errors import Exhausted

__all__ = ["Score", "maximize"]

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

EXHAUSTIVE = 4096  # finite domains up to this size are scored point by point
RADII = (0.2, 0.04, 0.008, 0.0016, 0.0003)  # of the clouds around seeds, in units of the domain's extent
CLOUD = 10  # points per seed and radius
NEARLY = 1e-8  # a climb has arrived when its next step promises less, in shares of the spread of scores
ROUNDS = 8  # of discrete moves and climbs in a mixed space


def exhaustive(domain: Domain) -> bool:
    """Tell whether a search looks at every point of the domain.

    >>> from surefoot.domain import Box, Candidates
    >>> exhaustive(Candidates([0.0, 1.0])), exhaustive(Box.unit(1))
    (True, False)
    """
    return domain.listed or (domain.size is not None and domain.size <= EXHAUSTIVE)


class Score(Protocol):
    """What is maximized: a function of encoded points with its gradient.

    >>> class Plane:
    ...     def __call__(self, E):
    ...         return E.sum(axis=1)
    ...     def gradient(self, E):
    ...         return E.sum(axis=1), np.ones_like(E)
    >>> from surefoot.domain import Box
    >>> maximize(Plane(), Box.unit(2), rng=np.random.default_rng(0))
    (array([1., 1.]), 2.0)
    """

    def __call__(self, E: Array, /) -> Array:
        """Return the scores of encoded points (m, e), shape (m,)."""

    def gradient(self, E: Array, /) -> tuple[Array, Array]:
        """Return the scores (m,) and their gradients (m, e)."""


def maximize(
    score: Score,
    domain: Domain,
    *,
    rng: np.random.Generator,
    seeds: ArrayLike | None = None,
    starts: int = 16,
    raw: int = 512,
    iterations: int = 50,
    exclude: ArrayLike | None = None,
) -> tuple[Array, float]:
    """Return the best point found, shape (d,), and its score.

    Parameters
    ----------
    score : Score
        Function of encoded points; a value that is not finite counts as −∞.
    domain : Domain
        Where to search.
    rng : Generator
        Places the raw points, and breaks ties.
    seeds : array of shape (k, d), optional
        Points worth starting near, such as the best measured ones.
    starts, raw, iterations : int
        How many points climb, from how many that are tried, for how many gradient calls.
    exclude : array of shape (k, d), optional
        Points that must not be returned. :class:`~surefoot.errors.Exhausted` when a finite domain has no other.

    >>> from surefoot.domain import Candidates
    >>> class Plane:
    ...     def __call__(self, E):
    ...         return E[:, 0]
    >>> maximize(Plane(), Candidates([1.0, 4.0, 2.0]), rng=np.random.default_rng(0), exclude=[[4.0]])
    (array([2.]), 2.0)
    """
    if starts < 1 or raw < 1 or iterations < 0:
        raise ValueError(f"starts, raw >= 1 and iterations >= 0, got {starts!r}, {raw!r} and {iterations!r}")
    taken = np.empty((0, domain.dimension)) if exclude is None else np.atleast_2d(np.asarray(exclude, dtype=np.float64))
    if exhaustive(domain):
        return _exhaust(score, domain, rng, taken)

    known = np.empty((0, domain.dimension)) if seeds is None else np.atleast_2d(np.asarray(seeds, dtype=np.float64))
    E, groups = _raw_points(domain, known, raw, rng)
    values = finite(score(E))
    first = _pick(E, values, groups, starts, domain.extent())
    scale = _spread(values)
    ends, heights = _refine(score, domain, E[first], iterations, scale, rng)

    # The best few are decoded first, since excluded points are few.
    E, values = np.vstack([ends, E]), np.concatenate([heights, values])
    order = np.argsort(-values, kind="stable")
    for block in (order[:8], order[8:]):
        X = domain.decode(E[block])
        free = np.flatnonzero(~_among(X, taken))
        if free.size:
            x = X[free[0]]
            return x, float(finite(score(domain.encode(x[None, :])))[0])
    return _anything(score, domain, rng, taken)


def _spread(values: Array) -> float:
    """Difference between the best and a middling value: what counts as a change of the score."""
    finite = values[np.isfinite(values)]
    return float(finite.max() - np.median(finite)) or 1.0 if finite.size else 1.0


def _among(X: Array, taken: Array) -> Mask:
    """Which rows of X (n, d) are equal to a row of taken (k, d), shape (n,)."""
    return Candidates(taken).contains(X) if len(taken) else np.zeros(len(X), dtype=np.bool_)


def _exhaust(score: Score, domain: Domain, rng: np.random.Generator, taken: Array) -> tuple[Array, float]:
    """Score every point of a finite domain."""
    points = domain.enumerate()
    blocks = np.array_split(points, 1 + len(points) // 16384)  # bounds the memory that a score needs
    values = finite(np.concatenate([score(domain.encode(block)) for block in blocks]))
    best = argmax(values, rng=rng, exclude=_among(points, taken))
    return points[best].copy(), float(values[best])


def _anything(score: Score, domain: Domain, rng: np.random.Generator, taken: Array) -> tuple[Array, float]:
    """Any point that is left, when the whole search found excluded points only."""
    for _ in range(16):
        X = domain.sample(1024, rng)
        X = X[~_among(X, taken)]
        if len(X):
            values = finite(score(domain.encode(X)))
            best = argmax(values, rng=rng)
            return X[best], float(values[best])
    if domain.size is not None and domain.size <= 10**6:
        return _exhaust(score, domain, rng, taken)
    raise Exhausted(f"no point was found besides the {len(taken)} excluded ones")


def _raw_points(domain: Domain, seeds: Array, raw: int, rng: np.random.Generator) -> tuple[Array, NDArray[np.intp]]:
    """Encoded points to try (m, e), and the seed each belongs to (m,); −1 for the Sobol points."""
    lower, upper = domain.lower, domain.upper
    spread = domain.project(lower + unit_design(raw, lower.size, rng) * (upper - lower))
    if not len(seeds):
        return spread, np.full(raw, -1, dtype=np.intp)
    centers = domain.encode(seeds)
    radii = np.repeat(RADII, CLOUD)[:, None] * domain.extent()
    noise = rng.standard_normal((len(seeds), len(radii), lower.size)) * radii
    if lower.size > 4:  # every other point moves in a few coordinates only: peaks are seldom narrow in all of them
        noise[:, ::2] *= rng.random((len(seeds), len(radii[::2]), lower.size)) < 4.0 / lower.size
    cloud = domain.project((centers[:, None, :] + noise).reshape(-1, lower.size))
    groups = np.concatenate([np.full(raw, -1), np.arange(len(seeds)), np.repeat(np.arange(len(seeds)), len(radii))])
    return np.vstack([spread, centers, cloud]), groups.astype(np.intp)


def _pick(E: Array, values: Array, groups: NDArray[np.intp], starts: int, extent: Array) -> NDArray[np.intp]:
    """Rows to climb from: the best, the best around each seed, then by turns peaks and simply the next best."""
    around = [members[values[members].argmax()] for g in range(groups.max() + 1) for members in np.nonzero(groups == g)]
    order = np.argsort(-values, kind="stable")[: max(10 * starts, 64)]
    # A peak is far from every better point.
    P = E[order] / extent
    distance = cdist(P, P)
    distance[np.triu_indices(len(P))] = np.inf
    isolation = distance.min(axis=1)
    peaks = order[np.argsort(-isolation, kind="stable")]
    turns = np.column_stack([peaks, order]).ravel()
    first = dict.fromkeys([int(order[0]), *map(int, around), *turns.tolist()])  # distinct, in order
    return np.array(list(first)[:starts], dtype=np.intp)


def _refine(
    score: Score, domain: Domain, E: Array, iterations: int, scale: float, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Climb from every row of E; return where the climbs end and how high."""
    real = domain.continuous
    if real.all():
        return _climb(score, domain, E, real, iterations, scale)
    relaxed, _ = _climb(score, domain, E, domain.ordered, iterations, scale)
    E = np.vstack([E, domain.project(relaxed)])  # rounding may lose what the climb won: keep the starts too
    values = finite(score(E))
    count = len(E) // 2
    for _ in range(ROUNDS):
        best = np.argsort(-values, kind="stable")[:count]
        E, values = E[best], values[best]
        if real.any():
            E, values = _climb(score, domain, E, real, iterations // 2, scale)
        climbed = values
        E, values = _step(score, domain, E, values, rng)
        if not (values > climbed).any():
            break
        count = max(4, count // 2)
    return E, values


def _step(score: Score, domain: Domain, E: Array, values: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    """Move every row of E to its best discrete neighbor, while that helps."""
    E, values = E.copy(), values.copy()
    moving = np.arange(len(E))
    for _ in range(ROUNDS):
        near = [domain.neighbors(x, rng) for x in domain.decode(E[moving])]
        if not sum(map(len, near)):
            break
        F = domain.encode(np.vstack(near))
        heights = finite(score(F))
        ends = np.cumsum([len(X) for X in near])
        best = np.array(
            [end - len(X) + heights[end - len(X) : end].argmax() for end, X in zip(ends, near, strict=True)]
        )
        better = heights[best] > values[moving]
        moving, best = moving[better], best[better]
        if not moving.size:
            break
        E[moving], values[moving] = F[best], heights[best]
    return E, values


def _climb(score: Score, domain: Domain, E: Array, columns: Mask, iterations: int, scale: float) -> tuple[Array, Array]:
    """Climb in some encoded columns from all rows of E at once; return the ends and their scores."""
    lower, width = domain.lower, domain.upper - domain.lower
    cols = np.flatnonzero(columns & (width > 0))
    E = E.copy()
    if not cols.size:
        return E, finite(score(E))
    lower, width = lower[cols], width[cols]

    def function(T: Array, rows: NDArray[np.intp]) -> tuple[Array, Array]:
        F = E[rows]
        F[:, cols] = lower + T * width
        values, gradients = score.gradient(F)
        values, G = values / scale, gradients[:, cols] * (width / scale)
        bad = ~(np.isfinite(values) & np.isfinite(G).all(axis=1))
        if bad.any():
            values, G = np.where(bad, -np.inf, values), np.where(bad[:, None], 0.0, G)
        return values, G

    T = np.clip((E[:, cols] - lower) / width, 0.0, 1.0)
    ends, heights = climb(function, T, iterations=iterations, tolerance=NEARLY)
    E[:, cols] = lower + ends * width
    return E, heights * scale
