"""Regressions with many variables of which few matter, and neighbors that look alike.

The rows of the design are autoregressive processes: variable t + 1 is √(1 − α²) times variable t plus α times fresh
noise, so that all variables have unit variance and near ones are correlated, the more so the smaller α is.

>>> X = autoregressive(4000, 3, 0.6, np.random.default_rng(0))
>>> np.corrcoef(X.T)[0].round(1)      # 1, √(1 − α²) and its square
array([1. , 0.8, 0.6])

References: Bogunovic, Zhao & Cevher 2018, section 5 (design, weights and noise of the experiments).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.signal import lfilter

__all__ = ["Regression", "autoregressive", "classification", "linear"]

Array = NDArray[np.float64]


def autoregressive(
    rows: int, columns: int, alpha: float, rng: np.random.Generator, *, start: str = "stationary"
) -> Array:
    """Return independent rows of an autoregressive process, shape (rows, columns).

    Parameters
    ----------
    rows, columns : int
        How many processes, and how long.
    alpha : float
        Standard deviation of the noise in each step, between 0 and 1.
    rng : numpy.random.Generator
        Draws the noise.
    start : {"stationary", "zero"}
        The first variable has unit variance; or it is α times noise, as after a zero.

    >>> autoregressive(2, 3, 1.0, np.random.default_rng(0)).shape
    (2, 3)
    """
    if not 0.0 < alpha <= 1.0:
        raise ValueError(f"alpha must lie in (0, 1], got {alpha!r}")
    if start not in ("stationary", "zero"):
        raise ValueError(f"start must be 'stationary' or 'zero', got {start!r}")
    noise = alpha * rng.standard_normal((rows, columns))
    if start == "stationary":
        noise[:, 0] /= alpha
    made: Array = lfilter([1.0], [1.0, -np.sqrt(1.0 - alpha**2)], noise, axis=1)
    return made


@dataclass(frozen=True, eq=False)
class Regression:
    """Data to select variables on, and data to test the selection on.

    Attributes
    ----------
    X, test_X : array of shape (rows, n)
        The variables.
    y, test_y : array of shape (rows,)
        What they explain.

    >>> data = linear(np.random.default_rng(0), rows=30, test_rows=10, columns=8, nonzero=2)
    >>> data.X.shape, data.test_y.shape
    ((30, 8), (10,))
    """

    X: Array
    y: Array
    test_X: Array
    test_y: Array


def linear(
    rng: np.random.Generator,
    *,
    rows: int = 800,
    test_rows: int = 2400,
    columns: int = 1000,
    nonzero: int = 100,
    alpha: float = 0.5**0.5,
    noise: float = 5.0,
) -> Regression:
    """Return a linear regression: y = Xω + z with variance ``noise`` and some nonzero weights of random signs.

    A weight is ±(5 √(ln p/n) + δ) with δ standard normal, p columns and n rows.

    >>> data = linear(np.random.default_rng(1), rows=40, test_rows=5, columns=20, nonzero=3, noise=0.0)
    >>> bool(np.linalg.lstsq(data.X, data.y)[1] < 1e-20)
    True
    """
    X = autoregressive(rows + test_rows, columns, alpha, rng)
    weights = np.zeros(columns)
    size = 5.0 * np.sqrt(np.log(columns) / rows) + rng.standard_normal(nonzero)
    weights[rng.choice(columns, nonzero, replace=False)] = rng.choice([-1.0, 1.0], nonzero) * size
    y = X @ weights + np.sqrt(noise) * rng.standard_normal(len(X))
    return Regression(X[:rows], y[:rows], X[rows:], y[rows:])


def classification(
    rng: np.random.Generator,
    *,
    rows: int = 600,
    test_rows: int = 1800,
    columns: int = 200,
    nonzero: int = 100,
    alpha: float = 0.3,
) -> Regression:
    """Return two classes divided by a hyperplane, whose weights are uniform in [−1, 1] where they are not zero.

    >>> data = classification(np.random.default_rng(0), rows=20, test_rows=4, columns=6, nonzero=2)
    >>> sorted(set(data.y.tolist()))
    [0.0, 1.0]
    """
    X = autoregressive(rows + test_rows, columns, alpha, rng)
    weights = np.zeros(columns)
    weights[rng.choice(columns, nonzero, replace=False)] = rng.uniform(-1.0, 1.0, nonzero)
    y = (X @ weights < 0.0).astype(np.float64)
    return Regression(X[:rows], y[:rows], X[rows:], y[rows:])
