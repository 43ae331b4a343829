"""Which coordinates belong together: decompositions of an additive Gaussian process, judged by marginal likelihood.

:func:`learn` draws random decompositions, fits the hyper-parameters of all of them *together* and keeps the one with
the highest density; :func:`refine` fits those of one decomposition, beginning where they are. Outputs are standardized
inside and folded back, so that a fitted GP is in the user's units.

The densities of B decompositions are B independent functions, so the maximum of their sum is the maximum of each: one
quasi-Newton climb over all hyper-parameters fits all of them, with one array of shape (B, M, pairs of points) and one
batched Cholesky factorization per step.

>>> rng = np.random.default_rng(0)
>>> X = rng.uniform(-1.0, 1.0, (60, 4))
>>> y = np.sin(3.0 * X[:, 0] * X[:, 2]) + X[:, 1] * X[:, 3]
>>> sorted(learn(X, y, groups=2, candidates=20, rng=rng).kernel.groups)
[(0, 2), (1, 3)]

References: Kandasamy, Schneider & Póczos 2015, section 3.3; Ru, Cobb, Blaas & Gal 2020, whose 20 random decompositions,
and the previous one beside them, are the defaults.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg.lapack import dpotrf, dpotri

from surefoot.belief.additive import Additive, distances, profiles
from surefoot.belief.gp import GP
from surefoot.belief.posterior import observations

__all__ = ["Decompositions", "learn", "partition", "refine"]

Array = NDArray[np.float64]
Groups = tuple[tuple[int, ...], ...]

FLOOR = 1e-4  # smallest noise, as a share of the variance of the values
FINISH = 12  # quasi-Newton steps of the decomposition that is kept, on all measurements
# Bells around the logarithms of the parts' share of the variance, of the length (in widths of a part's box), and of the
# noise: wide enough to be overruled by a few measurements, narrow enough that 25 numbers can be fitted to 30.
VARIANCE, LENGTH, NOISE = (0.0, 1.0), (0.0, 1.0), (math.log(1e-3), 2.0)


def partition(dimension: int, groups: int, rng: np.random.Generator) -> Groups:
    """Draw a partition of the coordinates into groups whose sizes differ by at most one.

    With more groups than coordinates every coordinate is a group.

    >>> sizes = sorted(map(len, partition(7, 3, np.random.default_rng(0))))
    >>> sizes
    [2, 2, 3]
    """
    if dimension < 1 or groups < 1:
        raise ValueError(f"a partition has at least one group of one coordinate, got {groups} of {dimension}")
    pieces = np.array_split(rng.permutation(dimension), min(groups, dimension))
    return tuple(sorted(tuple(sorted(piece.tolist())) for piece in pieces))


class Decompositions:
    """Log densities of the hyper-parameters of several decompositions, and their gradients, all at once.

    The hyper-parameters of each are θ = (log variances, log length-scales, log excess noise), on the given values.

    Parameters
    ----------
    X, y : arrays of shape (n, d) and (n,)
        Points in units of distance, and standardized values.
    groups : sequence of B decompositions
        All with the same number M of groups.
    noise : array of shape (n,), optional
        Known noise variances, NaN where they are to be fitted.
    extent : float
        Width of the box in which the points lie, which scales the prior of the lengths.
    weight : float
        Weight of the priors; 0 is maximum likelihood.

    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.uniform(-1.0, 1.0, (9, 4)), rng.standard_normal(9)
    >>> evidence = Decompositions(X, y, [((0, 1), (2, 3)), ((0, 2), (1, 3))])
    >>> values, slopes = evidence(evidence.center)
    >>> values.shape, slopes.shape
    ((2,), (2, 5))
    """

    def __init__(
        self,
        X: Array,
        y: Array,
        groups: Sequence[Groups],
        noise: Array | None = None,
        *,
        extent: float = 2.0,
        weight: float = 1.0,
    ) -> None:
        B, M, n = len(groups), len(groups[0]), len(y)
        if any(len(each) != M for each in groups):
            raise ValueError(f"all decompositions need the same number of groups, got {[len(g) for g in groups]}")
        self.groups, self.y, self.shape = list(groups), y, (B, 2 * M + 1)
        self.unknown = np.ones(n) if noise is None else np.isnan(noise).astype(np.float64)
        self.given = np.full(n, FLOOR) if noise is None else np.where(np.isnan(noise), FLOOR, noise)
        self.low = np.tril_indices(n, -1)
        parts = [Additive(each) for each in groups]
        self.S = np.stack([distances(A, A)[:, *self.low] for A in (part.split(X) for part in parts)])
        sizes = np.stack([(part.index >= 0).sum(axis=1) for part in parts])
        self.center = np.concatenate(
            [
                np.full((B, M), VARIANCE[0] - math.log(M)),
                LENGTH[0] + np.log(extent * np.sqrt(sizes)),
                np.full((B, 1), NOISE[0]),
            ],
            axis=1,
        )
        self.spread = np.repeat([VARIANCE[1], LENGTH[1], NOISE[1]], [M, M, 1])
        self.weight = weight

    def __call__(self, theta: Array) -> tuple[Array, Array]:
        """Return the log densities (B,) and their gradients, of the shape (B, 2M + 1) of theta."""
        (B, p), n = self.shape, len(self.y)
        M = (p - 1) // 2
        values = np.exp(theta)
        variance, length, excess = values[:, :M], values[:, M : 2 * M], values[:, -1]
        P, D = profiles(self.S / length[:, :, None])
        i, j = self.low
        K = np.empty((B, n, n))
        K[:, i, j] = K[:, j, i] = np.matmul(variance[:, None], P)[:, 0]
        diagonal = variance.sum(axis=1)[:, None] + self.given + excess[:, None] * self.unknown
        K[:, np.arange(n), np.arange(n)] = diagonal
        inverse, logdet = _inverted(K)
        alpha = inverse @ self.y
        off = (theta - self.center) / self.spread
        density = -0.5 * (alpha @ self.y + logdet + n * math.log(2.0 * math.pi))
        density -= 0.5 * self.weight * (off * off).sum(axis=1)
        # ½ tr((ααᵀ − S⁻¹) ∂K): every pair counts twice, the diagonal once.
        pairs = alpha[:, i] * alpha[:, j] - inverse[:, i, j]
        own = alpha * alpha - np.diagonal(inverse, axis1=1, axis2=2)
        slope = np.empty(self.shape)
        slope[:, :M] = variance * (np.matmul(P, pairs[:, :, None])[:, :, 0] + 0.5 * own.sum(axis=1)[:, None])
        slope[:, M : 2 * M] = variance * np.matmul(D, pairs[:, :, None])[:, :, 0]
        slope[:, -1] = 0.5 * excess * (own @ self.unknown)
        slope -= self.weight * off / self.spread
        return density, slope

    def climb(self, start: Array, steps: int) -> tuple[Array, Array]:
        """Return hyper-parameters (B, 2M + 1) after so many quasi-Newton steps, and the densities there."""
        from scipy.optimize import Bounds, minimize  # slow to import, and seldom needed

        def negative(x: Array) -> tuple[float, Array]:
            values, slopes = self(x.reshape(self.shape))
            return -float(values.sum()), -slopes.ravel()

        reach = 4.0 * np.broadcast_to(self.spread, self.shape).ravel()
        middle = self.center.ravel()
        bounds = Bounds(middle - reach, middle + reach)
        x0 = np.clip(start.ravel(), bounds.lb, bounds.ub)
        found = minimize(
            negative,
            x0,
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
            options={"maxiter": steps, "maxfun": 3 * steps, "maxcor": 20},
        )
        theta = found.x.reshape(self.shape)
        return theta, self(theta)[0]


def _inverted(K: Array) -> tuple[Array, Array]:
    """Inverses (B, n, n) of positive definite matrices, in place, and the logarithms of their determinants (B,)."""
    logdet = np.empty(len(K))
    for b, matrix in enumerate(K):
        # The matrix is symmetric: its transpose is the same one in the order that LAPACK wants, and needs no copy.
        U, info = dpotrf(matrix.T, lower=0, clean=1, overwrite_a=1)
        if info:
            raise ValueError("the kernel matrix is not finite or not positive definite")
        logdet[b] = 2.0 * np.log(U.diagonal()).sum()
        dpotri(U, lower=0, overwrite_c=1)
        matrix += np.tril(matrix, -1).T
    return K, logdet


def learn(
    X: ArrayLike,
    y: ArrayLike,
    noise: ArrayLike | None = None,
    *,
    groups: int = 12,
    candidates: int = 20,
    previous: GP | None = None,
    rng: np.random.Generator,
    units: ArrayLike = 1.0,
    extent: float = 2.0,
    points: int | None = 100,
    steps: int = 6,
    fixed: Groups | None = None,
) -> GP:
    """Return an additive GP with the most likely of some random decompositions.

    A function of its arguments and of the draws of ``rng``.

    Parameters
    ----------
    X, y : arrays of shape (n, d) and (n,)
        Measurements, the newest last.
    noise : array of shape (n,), optional
        Noise variances, NaN where unknown.
    groups, candidates : int
        Groups of a decomposition, and random decompositions to try.
    previous : GP, optional
        Its decomposition is tried too, if it is of as many coordinates.
    rng : numpy.random.Generator
        Draws the decompositions.
    units, extent
        Units of distance (one, or one per coordinate), and the width of the box in these units.
    points : int, optional
        Decompositions are compared on so many measurements: the best ones and the newest ones. None: on all.
    steps : int
        Quasi-Newton steps of the comparison.
    fixed : decomposition, optional
        Only this one is fitted.

    >>> rng = np.random.default_rng(1)
    >>> X = rng.uniform(-1.0, 1.0, (20, 6))
    >>> gp = learn(X, X.sum(axis=1), groups=3, candidates=4, rng=rng)
    >>> len(gp.kernel.groups), gp.names[-1]
    (3, 'noise')
    """
    data, values, noises = observations(X, y, noise)
    scaled = data / np.asarray(units, dtype=np.float64)
    d = data.shape[1]
    tried = [fixed] if fixed is not None else [partition(d, groups, rng) for _ in range(candidates)]
    old = previous.kernel if previous is not None else None
    if fixed is None and isinstance(old, Additive) and len(old.groups) == len(tried[0]) and old.highest == d - 1:
        tried.append(old.groups)
    shift, scale = _standard(values)
    z, v = (values - shift) / scale, noises / scale**2
    chosen, start = tried[0], None
    if len(tried) > 1:
        rows = _subset(z, points)
        evidence = Decompositions(scaled[rows], z[rows], tried, v[rows], extent=extent)
        theta, density = evidence.climb(evidence.center, steps)
        best = int(density.argmax())
        chosen, start = tried[best], theta[best]
    evidence = Decompositions(scaled, z, [chosen, chosen], v, extent=extent)
    # Two explanations compete: what was found, or the prior's, and much noise.
    starts = evidence.center.copy()
    if start is not None:
        starts[0] = start
    starts[1, -1] = math.log(0.2)
    theta, density = evidence.climb(starts, FINISH)
    return _dressed(chosen, theta[int(density.argmax())], shift, scale, units)


def refine(
    gp: GP, X: ArrayLike, y: ArrayLike, noise: ArrayLike | None = None, *, extent: float = 2.0, steps: int = 5
) -> GP:
    """Return the same decomposition with hyper-parameters fitted again, from where they are.

    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1.0, 1.0, (20, 4))
    >>> gp = learn(X, X[:, 0], groups=2, candidates=2, rng=rng)
    >>> refine(gp, X, X[:, 0] + X[:, 3]).kernel.groups == gp.kernel.groups
    True
    """
    kernel = gp.kernel
    if not isinstance(kernel, Additive):
        raise TypeError(f"refine needs a GP with an Additive kernel, got {kernel!r}")
    data, values, noises = observations(X, y, noise)
    shift, scale = _standard(values)
    evidence = Decompositions(
        data / kernel.units, (values - shift) / scale, [kernel.groups], noises / scale**2, extent=extent
    )
    M = len(kernel.groups)
    start = kernel.theta.copy()
    start[:M] -= 2.0 * math.log(scale)
    excess = max(gp.noise / scale**2 - FLOOR, 1e-8)
    theta, _ = evidence.climb(np.append(start, math.log(excess))[None], steps)
    return _dressed(kernel.groups, theta[0], shift, scale, kernel.units)


def _standard(y: Array) -> tuple[float, float]:
    """Mean and standard deviation of the values; 1 where they hardly differ."""
    shift, scale = float(y.mean()), float(y.std())
    return shift, scale if scale > 1e-12 * max(abs(shift), 1e-300) else 1.0


def _subset(z: Array, points: int | None) -> NDArray[np.intp]:
    """Rows of the best and of the newest values, half of each."""
    n = len(z)
    if points is None or n <= points:
        return np.arange(n)
    newest = np.arange(n - points // 2, n)
    others = np.argsort(-z[: n - points // 2], kind="stable")[: points - points // 2]
    return np.concatenate([np.sort(others), newest])


def _dressed(groups: Groups, theta: Array, shift: float, scale: float, units: ArrayLike) -> GP:
    """The GP in the user's units."""
    variance, length = np.exp(theta[:-1]).reshape(2, -1)
    kernel = Additive(groups, length, variance=variance * scale**2, units=units)
    return GP(kernel, (FLOOR + math.exp(theta[-1])) * scale**2, mean=shift)
