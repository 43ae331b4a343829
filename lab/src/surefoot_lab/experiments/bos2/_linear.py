"""A classifier whose weakness is known: two classes, told apart by one smooth weight per pixel.

The log-odds of the other class are w·x + b. Within an L∞ ball that no pixel's range cuts off, the best perturbation at
latent size h is the sign of gᵀ(w), and it raises the log-odds by radius · ‖gᵀ(w)‖₁ exactly.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

from surefoot.attack import Resize

__all__ = ["LinearToy", "linear_toy"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class LinearToy:
    """An image, the weights of the model, and how far away its decision is.

    >>> toy = linear_toy(np.random.default_rng(0))
    >>> toy.scores(toy.image[None]).shape
    (1, 2)
    """

    image: Array
    weights: Array
    bias: float
    radius: float

    def scores(self, images: Array) -> Array:
        """Return logits (k, 2); the class of the image is 0."""
        odds = np.tensordot(images, self.weights, 2) + self.bias
        return np.column_stack([np.zeros_like(odds), odds])

    def reach(self, size: int) -> float:
        """Return the highest log-odds within the ball at a latent size."""
        start = float(np.vdot(self.image, self.weights)) + self.bias
        return start + self.radius * float(np.abs(Resize(size, self.weights.shape).adjoint(self.weights)).sum())

    def attackable(self, sizes: tuple[int, ...]) -> bool:
        """Tell whether the best sign perturbation of some latent size succeeds."""
        return any(self.reach(size) > 0.0 for size in sizes)


def linear_toy(
    rng: np.random.Generator,
    side: int = 28,
    radius: float = 0.1,
    size: int = 6,
    strength: float = 8.0,
    distance: tuple[float, float] = (0.7, 1.4),
) -> LinearToy:
    """Draw a model and an image.

    Parameters
    ----------
    rng : numpy.random.Generator
        Draws weights of a random smoothness, the image, and the distance.
    side, radius, size, strength
        Pixels of a side; radius of the ball; the latent size whose best perturbation sets the scale, and the log-odds
        that it is worth.
    distance : tuple of float
        How far away the decision lies, in units of that: beyond 1 only larger sizes can reach it, or none.

    >>> toy = linear_toy(np.random.default_rng(1))
    >>> bool(toy.reach(6) > -3.3)
    True
    """
    weights = gaussian_filter(rng.standard_normal((side, side)), rng.uniform(1.0, 4.0), mode="reflect")
    weights *= strength / (radius * np.abs(Resize(size, (side, side)).adjoint(weights)).sum())
    image = rng.uniform(radius, 1.0 - radius, (side, side))
    bias = -float(np.vdot(image, weights)) - strength * rng.uniform(*distance)
    return LinearToy(image, weights, bias, radius)
