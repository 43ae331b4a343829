"""WarpedPosterior: a belief about values on another scale, told in the units of the values.

The belief itself is about z = w(y) (:mod:`surefoot.belief.warp`). What it says of y is read off its quantiles, which an
increasing w maps exactly: the mean that is told is the median w⁻¹(μ), the standard deviation half the distance of the
quantiles one standard deviation below and above,

    s(x) = ½ (w⁻¹(μ + σ) − w⁻¹(μ − σ)).                                                                              (1)

>>> from surefoot.belief.gp import GP
>>> from surefoot.belief.warp import Warp
>>> warp = Warp(power=0.0)
>>> known = GP(noise=1e-6).condition([[0.0]], warp.forward([-100.0]))
>>> WarpedPosterior(known, warp).mean([[0.0]]).round(1)
array([-100.])
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot.belief.posterior import Posterior
from surefoot.belief.warp import Warp

__all__ = ["WarpedPosterior"]

Array = NDArray[np.float64]


class WarpedPosterior(Posterior):
    """A posterior in the units of the values; see the module's page.

    Parameters
    ----------
    known : Posterior
        What is believed of the values on the scale of the warp; it is kept, not copied.
    warp : Warp
        The scale.

    Attributes
    ----------
    gp : GP
        The prior on that scale.

    >>> from surefoot.belief.gp import GP
    >>> from surefoot.belief.warp import Warp
    >>> WarpedPosterior(GP().condition(), Warp(power=0.0)).quantile([[0.0]], 0.5)
    array([0.])
    """

    def __init__(self, known: Posterior, warp: Warp) -> None:
        self.gp, self.known, self.warp = known.gp, known, warp

    @property
    def n(self) -> int:  # type: ignore[override]
        """Number of measurements."""
        return self.known.n

    @property
    def X(self) -> Array:
        return self.known.X

    @property
    def y(self) -> Array:
        """Measured values, shape (n,); outliers are where the others predict them."""
        return self.warp.inverse(self.known.y)

    @property
    def noise(self) -> Array:
        """Noise variances in use, near the measured values, shape (n,)."""
        noise: Array = self.known.noise / self.warp.slope(self.y) ** 2
        return noise

    @property
    def chol(self) -> Array:
        raise TypeError("a belief on another scale has its Cholesky factor there; use `known`")

    @property
    def inverse(self) -> Array:
        raise TypeError("a belief on another scale has its Cholesky factor there; use `known`")

    @property
    def information_gain(self) -> float:
        """Mutual information between the measurements and f, whatever the scale."""
        return self.known.information_gain

    @property
    def noise_level(self) -> float:
        """Noise variance of a measurement that does not bring its own, near the best values."""
        return self.known.noise_level

    def prior_variance(self, E: ArrayLike) -> float:
        return self.known.prior_variance(E)

    def solve(self, B: ArrayLike) -> Array:
        raise TypeError("a belief on another scale has its covariance matrix there; use `known`")

    def quantile(self, Z: ArrayLike, level: float, *, noise: float | None = None) -> Array:
        """Return the quantile of f at the rows of Z, or of a noisy measurement there, shape (m,)."""
        return self.warp.inverse(self.known.quantile(Z, level, noise=noise))

    def mean(self, Z: ArrayLike) -> Array:
        """Return the median of f at the rows of Z, shape (m,)."""
        return self.warp.inverse(self.known.mean(Z))

    def predict(self, Z: ArrayLike) -> tuple[Array, Array]:
        """Return median and standard deviation of f at the rows of Z, equation 1."""
        mean, std = self.known.predict(Z)
        spread: Array = 0.5 * (self.warp.inverse(mean + std) - self.warp.inverse(mean - std))
        return self.warp.inverse(mean), spread

    def var(self, Z: ArrayLike) -> Array:
        return self.predict(Z)[1] ** 2

    def cov(self, Z: ArrayLike, W: ArrayLike | None = None) -> Array:
        """Return the correlation of z, times the standard deviations of equation 1."""
        cov = self.known.cov(Z, W)
        left = self._stretch(Z)
        right = left if W is None else self._stretch(W)
        scaled: Array = left[:, None] * cov * right
        return scaled

    def _stretch(self, Z: ArrayLike) -> Array:
        """How much wider the standard deviation is than on the scale of the warp."""
        stretch: Array = self.predict(Z)[1] / np.maximum(self.known.std(Z), 1e-300)
        return stretch

    def gradient(self, Z: ArrayLike) -> tuple[Array, Array, Array, Array]:
        mean, std, dmean, dstd = self.known.gradient(Z)
        middle, low, high = (self.warp.inverse(mean + k * std) for k in (0.0, -1.0, 1.0))
        by_middle, by_low, by_high = (1.0 / self.warp.slope(y)[:, None] for y in (middle, low, high))
        spread = 0.5 * (by_high * (dmean + dstd) - by_low * (dmean - dstd))
        return middle, 0.5 * (high - low), by_middle * dmean, spread

    def sample(self, Z: ArrayLike, count: int, rng: np.random.Generator) -> Array:
        return self.warp.inverse(self.known.sample(Z, count, rng))

    def append(self, x: ArrayLike, y: float, noise: float | None = None) -> None:
        slope = float(self.warp.slope(y))
        self.known.append(x, float(self.warp.forward(y)), None if noise is None else noise * slope**2)

    def pop(self) -> None:
        self.known.pop()

    def copy(self) -> WarpedPosterior:
        return WarpedPosterior(self.known.copy(), self.warp)
