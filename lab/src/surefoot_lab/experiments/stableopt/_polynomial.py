"""The polynomial of Bertsimas, Nohadani and Teo 2010: its global maximum is narrow, a lower one is broad.

On the grid of 100 by 100 points with its borders, and perturbations that end on grid points, the published constants
come out: maximum 20.82, robust maximum −4.33, robust value at the maximizer −22.35 (printed as −22.34).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot.belief.gp import GP
from surefoot.belief.kernels import SE
from surefoot_lab.problems import grid

Array = NDArray[np.float64]

BOUNDS = [(-0.95, 3.2), (-0.45, 4.4)]
SIDE, RADIUS, NOISE = 100, 0.5, 0.01  # noise is a variance: standard deviation 0.1


def polynomial(X: ArrayLike) -> Array:
    """Return the values (n,) at the rows of X (n, 2)."""
    x, y = np.asarray(X, dtype=np.float64).T
    in_x = -2.0 * x**6 + 12.2 * x**5 - 21.2 * x**4 + 6.4 * x**3 + 4.7 * x**2 - 6.2 * x
    in_y = -(y**6) + 11.0 * y**5 - 43.3 * y**4 + 74.8 * y**3 - 56.9 * y**2 + 10.0 * y
    both = 4.1 * x * y + 0.1 * y**2 * x**2 - 0.4 * y**2 * x - 0.4 * x**2 * y
    value: Array = in_x + in_y + both
    return value


def points(side: int = SIDE) -> Array:
    """The grid, borders included."""
    return grid(BOUNDS, side)


def belief() -> GP:
    """The squared exponential of a short maximum likelihood fit to 500 random grid points above −15.

    The likelihood of a polynomial has no maximum worth the name: it grows while the length-scales do, up to variances
    of 10⁹ for which a covariance matrix has lost all its digits. The fit is that after few steps, whatever the points.
    """
    return GP(SE(lengthscale=[0.97, 1.09], variance=206.0**2), noise=NOISE)
