"""Functions drawn from a Gaussian process: problems for which the prior is exactly right.

* :func:`gp_sample_grid` draws the values at any finite set of points, exactly; O(M³) once per kernel and set of points.
* :func:`gp_sample_lattice` draws on a regular grid with a squared exponential kernel, which factors over the axes:
  exact too, and fast for a million points.
* :func:`gp_sample_continuous` draws a function on a box by random Fourier features, and finds its maximum.

>>> from surefoot.belief.kernels import SE
>>> problem = gp_sample_grid(SE(0.2), np.linspace(0, 1, 50)[:, None], np.random.default_rng(0))
>>> problem.regret(problem.optimizers)
array([0.])
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot.belief.gp import GP
from surefoot.belief.kernels import SE, Kernel
from surefoot.belief.paths import sample_paths
from surefoot.belief.posterior import factorize
from surefoot.domain import Box
from surefoot.domain.search import maximize
from surefoot_lab.problems import Problem, tabulated

__all__ = ["gp_sample_continuous", "gp_sample_grid", "gp_sample_lattice"]

Array = NDArray[np.float64]


@lru_cache(maxsize=1)  # the repetitions of an experiment share the kernel and the points
def _factor(kernel: Kernel, points: bytes, columns: int) -> Array:
    X = np.frombuffer(points, dtype=np.float64).reshape(-1, columns)
    return factorize(kernel(X), np.zeros(X.shape[0]))[0]


def gp_sample_grid(
    kernel: Kernel, points: ArrayLike, rng: np.random.Generator, *, mean: float = 0.0, noise: float = 0.0
) -> Problem:
    """Return a problem on the points (M, d) whose values are one exact draw from the process.

    >>> from surefoot.belief.kernels import Matern
    >>> gp_sample_grid(Matern(2.5), [[0.0], [1.0]], np.random.default_rng(0)).domain.size
    2
    """
    X = np.ascontiguousarray(points, dtype=np.float64)
    X = X[:, None] if X.ndim == 1 else X
    values = mean + _factor(kernel, X.tobytes(), X.shape[1]) @ rng.standard_normal(X.shape[0])
    return tabulated("GP sample", X, values, noise)


def gp_sample_lattice(
    kernel: SE, axes: Sequence[ArrayLike], rng: np.random.Generator, *, mean: float = 0.0, noise: float = 0.0
) -> Problem:
    """Return a problem on the product of the axes whose values are one exact draw from the process.

    The squared exponential of a sum is the product of squared exponentials, so that the covariance is the Kronecker
    product of one small matrix per axis. Points are in the order of :func:`surefoot_lab.problems.grid`.

    >>> from surefoot.belief.kernels import SE
    >>> axis = np.linspace(0.0, 1.0, 100)
    >>> gp_sample_lattice(SE(0.1), [axis, axis], np.random.default_rng(0)).domain.size
    10000
    """
    if type(kernel) is not SE:
        raise TypeError(f"only the squared exponential factors over the axes, not {kernel!r}; use gp_sample_grid")
    lines = [np.asarray(axis, dtype=np.float64).reshape(-1, 1) for axis in axes]
    scales = np.broadcast_to(kernel.lengthscale, (len(lines),))
    field = rng.standard_normal([len(line) for line in lines]) * np.sqrt(kernel.variance)
    for i, (line, scale) in enumerate(zip(lines, scales, strict=True)):
        field = np.moveaxis(np.tensordot(_root(SE(float(scale))(line)), field, axes=(1, i)), 0, i)
    points = np.stack([axis.ravel() for axis in np.meshgrid(*(line[:, 0] for line in lines), indexing="ij")], axis=1)
    return tabulated("GP sample", points, mean + field.ravel(), noise)


def _root(K: Array) -> Array:
    """The symmetric square root; rounding makes the smallest eigenvalues of a smooth kernel slightly negative."""
    values, vectors = np.linalg.eigh(K)
    root: Array = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    return root


def gp_sample_continuous(
    kernel: Kernel,
    box: Box,
    rng: np.random.Generator,
    *,
    features: int = 2048,
    mean: float = 0.0,
    noise: float = 0.0,
    raw: int = 4096,
) -> Problem:
    """Return a problem on a box whose function is one draw from the process, by random Fourier features.

    The maximum is searched from the best of ``raw`` Sobol points; on a box of many length-scales give it more of them.

    >>> from surefoot.belief.kernels import SE
    >>> problem = gp_sample_continuous(SE(0.3), Box([(0.0, 1.0)]), np.random.default_rng(0), features=256, raw=256)
    >>> bool((problem.regret(np.linspace(0, 1, 1001)[:, None]) > -1e-9).all())
    True
    """
    path = sample_paths(GP(kernel, mean=mean).condition(), 1, rng, features, dimension=box.dimension)[0]
    x, value = maximize(path, box, rng=rng, raw=raw, starts=min(32, raw), iterations=200)
    return replace(Problem("GP sample", box, path, value, x[None]), noise=noise)
