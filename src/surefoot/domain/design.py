"""Designs: points spread evenly over the unit cube.

A scrambled Sobol sequence covers the cube more evenly than independent draws, and every beginning of it does too; a
Latin hypercube puts exactly one point into each of the n slices of every coordinate.

References: Owen, *Scrambling Sobol' and Niederreiter-Xing points*, Journal of Complexity 1998; McKay, Beckman &
Conover, *A comparison of three methods for selecting values of input variables*, Technometrics 1979.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from surefoot.arguments import one_of

__all__ = ["latin_hypercube", "sobol", "unit_design"]

Array = NDArray[np.float64]


def unit_design(n: int, dimension: int, rng: np.random.Generator, method: str = "sobol") -> Array:
    """Return n points of the unit cube by the named method, shape (n, dimension).

    >>> unit_design(8, 2, np.random.default_rng(0), "lhs").shape
    (8, 2)
    """
    if n < 0:
        raise ValueError(f"a design has n >= 0 points, got {n!r}")
    one_of(method, "method", ("sobol", "lhs"))
    return (sobol if method == "sobol" else latin_hypercube)(n, dimension, rng)


def sobol(n: int, dimension: int, rng: np.random.Generator) -> Array:
    """Return the first n points of a scrambled Sobol sequence, shape (n, dimension).

    >>> X = sobol(4, 2, np.random.default_rng(0))
    >>> [sorted((column * 4).astype(int).tolist()) for column in X.T]
    [[0, 1, 2, 3], [0, 1, 2, 3]]
    """
    from scipy.stats import qmc  # a third of a second to import, so only where it is used

    if n == 0:
        return np.empty((0, dimension))
    sampler = qmc.Sobol(dimension, scramble=True, rng=rng)
    # A whole power of two is drawn: SciPy warns otherwise, and the beginning is the same.
    points: Array = sampler.random_base2((n - 1).bit_length())
    return points[:n]


def latin_hypercube(n: int, dimension: int, rng: np.random.Generator) -> Array:
    """Return n points with exactly one in each of the n slices of every coordinate, shape (n, dimension).

    >>> X = latin_hypercube(5, 1, np.random.default_rng(0))
    >>> sorted((X[:, 0] * 5).astype(int).tolist())
    [0, 1, 2, 3, 4]
    """
    slices = rng.permuted(np.tile(np.arange(n, dtype=np.float64), (dimension, 1)), axis=1).T
    return (slices + rng.random((n, dimension))) / max(n, 1)
