"""Acquisitions: scores of a point that depend on its posterior mean and standard deviation only."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from surefoot.belief.protocol import Belief

__all__ = ["Acquisition", "BeliefScore", "UpperBound"]

Array = NDArray[np.float64]


class Acquisition(Protocol):
    """A score of a point that depends on its posterior mean and standard deviation only."""

    def value(self, mean: Array, std: Array) -> Array:
        """Return the scores, shape (m,)."""

    def slopes(self, mean: Array, std: Array) -> tuple[Array, Array, Array]:
        """Return the scores and their derivatives in mean and standard deviation."""


class BeliefScore:
    """An acquisition as a function of points, with its gradient.

    >>> from surefoot.belief import GP
    >>> score = BeliefScore(GP().condition(np.zeros((1, 1)), np.ones(1)), UpperBound(2.0))
    >>> score(np.array([[0.0], [50.0]])).round(3)
    array([1.002, 2.   ])
    """

    def __init__(self, belief: Belief, acquisition: Acquisition) -> None:
        self.belief, self.acquisition = belief, acquisition

    def __call__(self, at: Any) -> Array:
        return self.acquisition.value(*self.belief.predict(at))

    def gradient(self, at: Any) -> tuple[Array, Array]:
        """Return scores (m,) and gradients (m, e)."""
        mean, std, mean_gradient, std_gradient = self.belief.gradient(at)
        value, by_mean, by_std = self.acquisition.slopes(mean, std)
        return value, by_mean[:, None] * mean_gradient + by_std[:, None] * std_gradient


class UpperBound:
    """mean + width · standard deviation.

    >>> UpperBound(2.0).value(np.array([1.0]), np.array([0.5]))
    array([2.])
    """

    def __init__(self, width: float) -> None:
        self.width = width

    def value(self, mean: Array, std: Array) -> Array:
        """Return the bounds, shape (m,)."""
        return mean + self.width * std

    def slopes(self, mean: Array, std: Array) -> tuple[Array, Array, Array]:
        """Return the bounds and their derivatives in mean and standard deviation."""
        return self.value(mean, std), np.ones_like(mean), np.full_like(std, self.width)
