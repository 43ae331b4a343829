"""Where is the worst case best? The search behind robust policies on boxes and spaces.

The problem is nested: max over centers x of the minimum of a score over what an adversary reaches from x, a
:class:`~surefoot.domain.sets.Region`. Both levels use gradients, and work on all their points at once.

* **Inside** (:func:`lowest`): points spread over the region of every center, then projected descent from the lowest.
* **Outside** (:func:`maximin`): the minimum of a smooth score has kinks, and its maximum usually sits on one. A soft
  minimum over spread points, −τ log mean exp(−score/τ), has none; its gradient in the center is a mean of the score's
  gradients, weighted towards the lowest. :func:`~surefoot.domain.search.maximize` climbs that. Clouds of shrinking
  radius then correct for the softness, judged by the inner search; the winner is judged once more by a finer one,
  because what an inner search misses makes a center look better than it is.

In a small finite space, where an adversary reaches finitely many points, both levels are exact.

>>> import numpy as np
>>> from surefoot.domain import Box
>>> from surefoot.domain.sets import Around
>>> class Peaks:  # a narrow peak of height 2 at 0.2, a broad one of height 1 at 0.7
...     def __call__(self, E):
...         return self.gradient(E)[0]
...     def gradient(self, E):
...         a, b = E - 0.2, E - 0.7
...         narrow, broad = 2.0 * np.exp(-((a / 0.02) ** 2)), np.exp(-((b / 0.2) ** 2))
...         return (narrow + broad)[:, 0], -2.0 * (narrow * a / 0.02**2 + broad * b / 0.2**2)
>>> x, value, _ = maximin(Peaks(), Around(Box.unit(1), np.array([0.1]), 2.0), rng=np.random.default_rng(0))
>>> bool(abs(x[0] - 0.7) < 0.01), bool(abs(value - np.exp(-0.25)) < 0.01)
(True, True)

Reference: Danskin 1967 for the gradient of a minimum.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot.domain import Candidates
from surefoot.domain.ranking import argmax
from surefoot.domain.search import EXHAUSTIVE, Score, maximize
from surefoot.domain.sets import Region

__all__ = ["SoftMinimum", "lowest", "maximin"]

Array = NDArray[np.float64]

BLOCK = 2**14  # points scored in one call
SOFTNESS = 0.02  # of the soft minimum, in shares of the spread of worst cases
HARDER = 0.2  # what is left of it for a second climb
RADII = (0.05, 0.02, 0.008, 0.003, 0.001, 0.0003)  # of the clouds that correct for softness, in shares of the extent
CLOUD = 24  # points of each


def spread_count(region: Region) -> int:
    """Return how many points stand for a region in a first look.

    >>> from surefoot.domain import Box
    >>> from surefoot.domain.sets import Around
    >>> spread_count(Around(Box.unit(2), np.array([0.1, 0.1]), 2.0))
    32
    """
    return min(16 + 8 * int((region.scale > 0).sum()), 96)


def lowest(
    score: Score,
    region: Region,
    X: Array,
    *,
    hints: Array | None = None,
    count: int | None = None,
    keep: int = 4,
    iterations: int = 20,
) -> tuple[Array, Array]:
    """Return the lowest scores (m,) that an adversary reaches from the encoded centers X (m, d), and where, (m, D).

    Parameters
    ----------
    score : Score
        Function of encoded points (n, D) of the measured domain, with its gradient.
    region : Region
        What an adversary reaches.
    X : array of shape (m, d)
        Centers.
    hints : array of shape (k, D), optional
        Points where the score may dip, such as the measured ones, at which an upper bound does; what each region
        reaches of them is tried too.
    count, keep, iterations : int
        Points that are tried in each region, how many of them descend, and for how many steps.

    >>> from surefoot.domain import Box
    >>> from surefoot.domain.sets import Around
    >>> class Bowl:
    ...     def __call__(self, E):
    ...         return ((E - 0.3) ** 2).sum(axis=1)
    ...     def gradient(self, E):
    ...         return self(E), 2.0 * (E - 0.3)
    >>> values, Z = lowest(Bowl(), Around(Box.unit(2), np.array([0.2, 0.2]), 2.0), np.array([[0.6, 0.3], [0.4, 0.4]]))
    >>> values.round(4).tolist(), Z.round(2).tolist()
    ([0.01, 0.0], [[0.4, 0.3], [0.3, 0.3]])
    """
    count = spread_count(region) if count is None else count
    rows = max(1, BLOCK // (max(count + 1, 4 * region.layers) + (0 if hints is None else len(hints))))
    if len(X) > rows:
        settings = {"count": count, "keep": keep, "iterations": iterations}
        parts = [
            lowest(score, region, X[start : start + rows], hints=hints, **settings) for start in range(0, len(X), rows)
        ]
        return np.concatenate([values for values, _ in parts]), np.concatenate([Z for _, Z in parts])
    Z, values = _tried(score, region, X, count, hints)
    first = np.argsort(values, axis=1, kind="stable")[:, : 1 if region.finite else keep]
    Z, values = np.take_along_axis(Z, first[..., None], axis=1), np.take_along_axis(values, first, axis=1)
    if not (region.finite or region.trivial):
        Z, values = _descend(score, region, X, Z, iterations)
    best = values.argmin(axis=1)
    return values[np.arange(len(X)), best], Z[np.arange(len(X)), best]


def _tried(score: Score, region: Region, X: Array, count: int, hints: Array | None = None) -> tuple[Array, Array]:
    """Points of every region (m, q, D), and their scores (m, q)."""
    Z = region.spread(X, count)
    if hints is not None and len(hints) and not (region.finite or region.trivial):
        near = region.project(X, np.broadcast_to(hints, (len(X), *hints.shape)))
        Z = np.concatenate([Z, near], axis=1)
    return Z, score(Z.reshape(-1, Z.shape[-1])).reshape(Z.shape[:2])


def _descend(score: Score, region: Region, X: Array, Z: Array, iterations: int) -> tuple[Array, Array]:
    """Projected descent from all points Z (m, k, D) at once; every point has its own step."""
    flat, shape = (-1, Z.shape[-1]), Z.shape[:2]
    scale = region.scale
    values, G = score.gradient(Z.reshape(flat))
    values, G = values.reshape(shape), G.reshape(Z.shape)
    step = np.full(shape, 0.25)  # in units of the region's reach
    for _ in range(iterations):
        slope = G * scale
        size = np.sqrt((slope * slope).sum(axis=-1))
        move = -slope * scale * (step / np.where(size > 0, size, 1.0))[..., None]
        trial = region.project(X, Z + move)
        new, NG = score.gradient(trial.reshape(flat))
        new, NG = new.reshape(shape), NG.reshape(Z.shape)
        better = new < values
        Z, G = np.where(better[..., None], trial, Z), np.where(better[..., None], NG, G)
        values = np.where(better, new, values)
        step *= np.where(better, 1.5, 0.35)
        if (step < 1e-7).all():
            break
    return Z, values


class SoftMinimum:
    """The soft minimum of a score over the region of each center, with its gradient.

    >>> from surefoot.domain import Box
    >>> from surefoot.domain.sets import Around
    >>> class Line:
    ...     def __call__(self, E):
    ...         return E[:, 0]
    ...     def gradient(self, E):
    ...         return E[:, 0], np.ones_like(E)
    >>> soft = SoftMinimum(Line(), Around(Box.unit(1), np.array([0.1]), 2.0), softness=1e-4)
    >>> soft(np.array([[0.5]])).round(2)
    array([0.4])
    """

    def __init__(self, score: Score, region: Region, softness: float, count: int | None = None) -> None:
        self.score, self.region, self.softness = score, region, softness
        self.count = spread_count(region) if count is None else count

    def _weights(self, values: Array) -> tuple[Array, Array]:
        low = values.min(axis=1)
        weights = np.exp((low[:, None] - values) / self.softness)
        total = weights.sum(axis=1)
        return low - self.softness * np.log(total / values.shape[1]), weights / total[:, None]

    def __call__(self, E: Array) -> Array:
        rows = max(1, BLOCK // max(self.count + 1, 4 * self.region.layers))
        parts = [
            self._weights(_tried(self.score, self.region, E[start : start + rows], self.count)[1])[0]
            for start in range(0, len(E), rows)
        ]
        return np.concatenate(parts)

    def gradient(self, E: Array) -> tuple[Array, Array]:
        """Return the soft minima (m,) and their gradients in the centers (m, d)."""
        Z = self.region.spread(E, self.count)
        values, G = self.score.gradient(Z.reshape(-1, Z.shape[-1]))
        soft, weights = self._weights(values.reshape(Z.shape[:2]))
        return soft, np.einsum("mq,mqd->md", weights, self.region.pull(E, Z, G.reshape(Z.shape)))


def maximin(
    score: Score,
    region: Region,
    *,
    rng: np.random.Generator,
    seeds: ArrayLike | None = None,
    hints: Array | None = None,
    exclude: ArrayLike | None = None,
) -> tuple[Array, float, Array]:
    """Return the center whose lowest score is highest (d,), that score, and where an adversary finds it (D,), encoded.

    Parameters
    ----------
    score : Score
        Function of points of the measured domain.
    region : Region
        What an adversary reaches.
    rng : Generator
        Places the points the search starts from.
    seeds : array of shape (k, d), optional
        Centers worth starting near.
    hints : array of shape (k, D), optional
        Encoded points where the score may dip.
    exclude : array of shape (k, d), optional
        Centers that must not be returned.

    >>> from surefoot.domain import Box
    >>> from surefoot.domain.sets import ParameterRegion
    >>> class Two:  # f(x, θ) = −(x − θ)²: the middle is best when θ may be 0 or 1
    ...     def __call__(self, E):
    ...         return self.gradient(E)[0]
    ...     def gradient(self, E):
    ...         gap = E[:, :1] - E[:, 1:]
    ...         return -(gap**2)[:, 0], np.hstack([-2.0 * gap, 2.0 * gap])
    >>> region = ParameterRegion(Box.unit(1), values=np.array([[0.0], [1.0]]))
    >>> x, value, _ = maximin(Two(), region, rng=np.random.default_rng(0))
    >>> bool(abs(x[0] - 0.5) < 0.01), round(value, 2)
    (True, -0.25)
    """
    centers, count = region.centers, spread_count(region)
    if region.finite and centers.size is not None and centers.size <= EXHAUSTIVE:
        return _exhaust(score, region, rng, exclude)
    probe = centers.encode(centers.design(32, rng))
    worst = _tried(score, region, probe, count)[1].min(axis=1)
    softness = SOFTNESS * (float(worst.max() - np.median(worst)) or 1.0)
    soft = SoftMinimum(score, region, softness)
    x, _ = maximize(soft, centers, rng=rng, seeds=seeds, starts=8, raw=256, iterations=30, exclude=exclude)
    if not region.trivial:
        firm = SoftMinimum(score, region, HARDER * softness)
        again, _ = maximize(firm, centers, rng=rng, seeds=x[None], starts=6, raw=128, iterations=20, exclude=exclude)
        x = _corrected(score, region, np.vstack([x, again]), rng, hints, exclude)
    values, Z = lowest(score, region, centers.encode(x[None]), hints=hints, count=4 * count, keep=8, iterations=40)
    return x, float(values[0]), Z[0]


def _exhaust(
    score: Score, region: Region, rng: np.random.Generator, exclude: ArrayLike | None
) -> tuple[Array, float, Array]:
    """Every center of a small finite space, and every point it reaches."""
    X = region.centers.enumerate()
    values, Z = lowest(score, region, region.centers.encode(X))
    taken = None if exclude is None or not len(np.atleast_2d(exclude)) else Candidates(exclude).contains(X)
    best = argmax(values, rng=rng, exclude=taken)
    return X[best].copy(), float(values[best]), Z[best]


def _corrected(
    score: Score,
    region: Region,
    X: Array,
    rng: np.random.Generator,
    hints: Array | None,
    exclude: ArrayLike | None,
) -> Array:
    """Clouds of shrinking radius around the best of some centers X, judged by the inner search."""
    centers = region.centers
    width = centers.upper - centers.lower
    taken = np.empty((0, X.shape[1])) if exclude is None else np.atleast_2d(np.asarray(exclude, dtype=np.float64))
    values, _ = lowest(score, region, centers.encode(X), hints=hints)
    x, best = X[values.argmax()], float(values.max())
    for radius in RADII:
        noise = rng.standard_normal((CLOUD, len(width))) * (radius * width)
        X = np.vstack([centers.decode(centers.encode(x[None]) + noise), centers.neighbors(x)])
        values, _ = lowest(score, region, centers.encode(X), hints=hints)
        values[(X[:, None, :] == taken).all(axis=-1).any(axis=1)] = -np.inf
        top = int(values.argmax())
        if values[top] > best:
            x, best = X[top], float(values[top])
    return np.asarray(x)
