"""PinnedPosterior: a posterior over (x, z), seen as a function of x alone, at one z.

A belief may see more than the point that is chosen: how many epochs a run lasted, which of several tasks was measured.
Rules ask about the last epoch, or the task at hand, and need not know that there are others. Measurements at other
values of z go to :attr:`PinnedPosterior.posterior`.

>>> import numpy as np
>>> from surefoot.belief import GP, SE
>>> known = GP(SE(), noise=1e-4).condition([[0.0, 1.0], [0.0, 9.0]], [3.0, 5.0])
>>> PinnedPosterior(known, 1.0).predict(np.array([[0.0]]))[0].round(2)
array([3.])
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot.belief.gp import GP
from surefoot.belief.posterior import Posterior

__all__ = ["PinnedPosterior", "with_column"]

Array = NDArray[np.float64]


def with_column(E: ArrayLike, value: float) -> Array:
    """Return encoded points (m, e) with one more coordinate, the same for all, shape (m, e + 1).

    >>> with_column([[0.5], [0.7]], 1.0)
    array([[0.5, 1. ],
           [0.7, 1. ]])
    """
    points = np.asarray(E, dtype=np.float64)
    return np.column_stack([points, np.full(len(points), value)])


class PinnedPosterior:
    """A posterior whose last coordinate is held at one value.

    Parameters
    ----------
    posterior : Posterior
        What is believed over (x, z).
    value : float
        z.

    >>> PinnedPosterior(GP().condition(), 1.0).n
    0
    """

    def __init__(self, posterior: Posterior, value: float) -> None:
        self.posterior, self.value = posterior, value
        self.gp: GP = posterior.gp

    @property
    def n(self) -> int:
        """Number of measurements, hallucinated ones included."""
        return self.posterior.n

    @property
    def information_gain(self) -> float:
        """What the measurements tell about the function, in nats."""
        return self.posterior.information_gain

    @property
    def noise_level(self) -> float:
        """Noise variance of a measurement that does not bring its own."""
        return self.posterior.noise_level

    def prior_variance(self, E: Array) -> float:
        """Return the largest variance before any measurement among encoded points (m, e)."""
        return self.posterior.prior_variance(with_column(E, self.value))

    def expected(self, at: Array) -> Array:
        """Return the mean at encoded points (m, e), shape (m,)."""
        return self.posterior.mean(with_column(at, self.value))

    def predict(self, at: Array) -> tuple[Array, Array]:
        """Return mean and standard deviation at encoded points (m, e), shape (m,) each."""
        return self.posterior.predict(with_column(at, self.value))

    def gradient(self, at: Array) -> tuple[Array, Array, Array, Array]:
        """Return mean and standard deviation (m,), and their gradients in x, (m, e) each."""
        mean, std, mean_gradient, std_gradient = self.posterior.gradient(with_column(at, self.value))
        return mean, std, mean_gradient[:, :-1], std_gradient[:, :-1]

    def covariance(self, at: Array, others: Array) -> Array:
        """Return the covariance between m and k encoded points, shape (m, k)."""
        return self.posterior.cov(with_column(at, self.value), with_column(others, self.value))

    def draw(self, at: Array, count: int, rng: np.random.Generator) -> Array:
        """Return joint draws at encoded points (m, e), shape (count, m)."""
        return self.posterior.sample(with_column(at, self.value), count, rng)

    def append(self, at: Array, y: float, noise: float | None = None) -> None:
        """Add a measurement at the encoded point (e,)."""
        self.posterior.append(np.append(at, self.value), y, noise)

    def hallucinate(self, at: Array, noise: float | None = None) -> None:
        """Pretend that the encoded point (e,) was measured at its mean."""
        self.posterior.hallucinate(np.append(at, self.value), noise)

    def undo(self, count: int = 1) -> None:
        """Take back the last hallucinations."""
        self.posterior.undo(count)

    def copy(self) -> PinnedPosterior:
        """Return an independent copy."""
        return PinnedPosterior(self.posterior.copy(), self.value)
