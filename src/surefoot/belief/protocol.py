"""Belief: what every posterior can do, so that no rule asks which one it has.

A belief knows a function over a set of points. Where these are listed (``Candidates``) they are named by their rows,
and ``EVERY`` names all of them; elsewhere they are named by what the model sees of them, an array of shape (m, e).
:meth:`Domain.address <surefoot.domain.base.Domain.address>` gives the name that a belief over the domain expects.

>>> import numpy as np
>>> from surefoot.belief import GP, SE, GridPosterior
>>> anywhere: Belief = GP(SE(), noise=0.1).condition([[0.0]], [1.0])
>>> listed: Belief = GridPosterior.condition(anywhere.gp, np.array([[0.0], [1.0]]), [0], [1.0])
>>> np.allclose(anywhere.predict(np.array([[0.0], [1.0]])), listed.predict(EVERY))
True
"""

from __future__ import annotations

from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from surefoot.belief.gp import GP

__all__ = ["EVERY", "Belief"]

Array = NDArray[np.float64]

EVERY = slice(None)
"""All points of a list."""


class Belief(Protocol):
    """What is known of a function, over the points that ``at`` can name.

    Attributes
    ----------
    gp : GP
        The prior behind it; of a mixture, the one that carries its members.
    n : int
        Measurements, hallucinated ones included.
    """

    @property
    def gp(self) -> GP: ...
    @property
    def n(self) -> int: ...

    @property
    def information_gain(self) -> float:
        """What the measurements tell about the function, in nats."""

    @property
    def noise_level(self) -> float:
        """Noise variance of a measurement that does not bring its own; of a mixture, the average."""

    def prior_variance(self, E: Array, /) -> float:
        """Return the largest variance before any measurement among encoded points (m, e); of a mixture, the average."""

    def expected(self, at: Any, /) -> Array:
        """Return the mean at m points, shape (m,)."""

    def predict(self, at: Any, /) -> tuple[Array, Array]:
        """Return mean and standard deviation at m points, shape (m,) each."""

    def gradient(self, at: Any, /) -> tuple[Array, Array, Array, Array]:
        """Return mean and standard deviation (m,), and their gradients in the point (m, e)."""

    def covariance(self, at: Any, others: Any, /) -> Array:
        """Return the covariance between m and k points, shape (m, k)."""

    def draw(self, at: Any, count: int, rng: np.random.Generator, /) -> Array:
        """Return joint draws of the function at m points, shape (count, m)."""

    def append(self, at: Any, y: float, noise: float | None = None, /) -> None:
        """Add a measurement at one point."""

    def hallucinate(self, at: Any, noise: float | None = None, /) -> None:
        """Pretend that one point was measured at its mean."""

    def undo(self, count: int = 1, /) -> None:
        """Take back the last hallucinations, bit for bit."""

    def copy(self) -> Self:
        """Return an independent copy."""
