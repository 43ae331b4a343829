"""ListedPosterior: any posterior, seen over a list of candidates.

A :class:`~surefoot.belief.grid.GridPosterior` keeps mean and variance at all candidates, which one set of
hyper-parameters allows. What has no such form (a mixture, a belief that sees more than the point) is asked when
it is needed; rules cannot tell the difference.

>>> import numpy as np
>>> from surefoot.belief import GP, SE, GridPosterior
>>> gp, points = GP(SE(), noise=0.1), np.array([[0.0], [1.0]])
>>> listed = ListedPosterior(gp.condition(points[:1], [1.0]), points)
>>> np.allclose(listed.predict(slice(None)), GridPosterior.condition(gp, points, [0], [1.0]).predict(slice(None)))
True
"""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot.belief.gp import GP
from surefoot.belief.posterior import Posterior

__all__ = ["ListedPosterior"]

Array = NDArray[np.float64]


class ListedPosterior:
    """A posterior whose points are named by their rows in a list.

    Parameters
    ----------
    posterior : Posterior
        What is believed.
    points : array of shape (M, e)
        What the model sees of the candidates.

    >>> ListedPosterior(GP().condition(), np.zeros((3, 1))).predict([0, 2])[1]
    array([1., 1.])
    """

    def __init__(self, posterior: Posterior, points: Array) -> None:
        self.posterior, self.points = posterior, points

    @property
    def gp(self) -> GP:
        """The prior."""
        return self.posterior.gp

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

    def prior_variance(self, E: ArrayLike) -> float:
        """Return the largest variance before any measurement among encoded points (m, e)."""
        return self.posterior.prior_variance(E)

    def expected(self, at: Any) -> Array:
        """Return the mean at some candidates, shape (m,)."""
        return self.posterior.mean(self.points[at])

    def predict(self, at: Any) -> tuple[Array, Array]:
        """Return mean and standard deviation at some candidates, shape (m,) each."""
        return self.posterior.predict(self.points[at])

    def gradient(self, at: Any) -> NoReturn:
        """Raise: there is nothing between the candidates."""
        raise TypeError("candidates have no gradients; score all of them")

    def covariance(self, at: Any, others: Any = slice(None)) -> Array:
        """Return the covariance of some candidates with others, shape (m, k)."""
        return self.posterior.cov(self.points[at], self.points[others])

    def draw(self, at: Any, count: int, rng: np.random.Generator) -> Array:
        """Return joint draws at some candidates, shape (count, m)."""
        return self.posterior.sample(self.points[at], count, rng)

    def append(self, at: int, y: float, noise: float | None = None) -> None:
        """Add a measurement of one candidate."""
        self.posterior.append(self.points[at], y, noise)

    def hallucinate(self, at: int, noise: float | None = None) -> None:
        """Pretend that one candidate was measured at its mean."""
        self.posterior.hallucinate(self.points[at], noise)

    def undo(self, count: int = 1) -> None:
        """Take back the last hallucinations."""
        self.posterior.undo(count)

    def copy(self) -> ListedPosterior:
        """Return an independent copy."""
        return ListedPosterior(self.posterior.copy(), self.points)
