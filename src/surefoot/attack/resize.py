"""Bilinear resizing as a linear map between small and large images.

The map up, g: ℝ^(h×h) → ℝ^(H×W), is A_H u A_Wᵀ for every channel; the rows of A are convex weights, so a box around
zero is mapped into itself: ‖g(u)‖∞ ≤ ‖u‖∞. Corners are kept in place ("align corners") and nothing is smoothed, in
either direction. ``down(up(u))`` is u exactly when (H − 1)/(h − 1) and (W − 1)/(h − 1) are whole numbers, and is near
it otherwise.

>>> r = Resize(2, (3, 3))
>>> r.up(np.array([[[[0.0, 1.0], [2.0, 3.0]]]]))[0, 0]
array([[0. , 0.5, 1. ],
       [1. , 1.5, 2. ],
       [2. , 2.5, 3. ]])
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

__all__ = ["Resize", "bilinear"]

Array = NDArray[np.float64]


@cache
def bilinear(source: int, target: int) -> Array:
    """Return the matrix (target, source) that resizes a row of pixels; its rows are convex weights.

    >>> bilinear(2, 3)
    array([[1. , 0. ],
           [0.5, 0.5],
           [0. , 1. ]])
    """
    if source < 1 or target < 1:
        raise ValueError(f"an image has at least one pixel, got {source} and {target}")
    place = np.arange(target) * ((source - 1) / (target - 1)) if target > 1 else np.zeros(1)
    left = np.minimum(np.floor(place + 1e-12).astype(np.intp), max(source - 2, 0))
    share = np.clip(place - left, 0.0, 1.0)
    matrix = np.zeros((target, source))
    matrix[np.arange(target), left] = 1.0 - share
    matrix[np.arange(target), np.minimum(left + 1, source - 1)] += share
    matrix.setflags(write=False)
    return matrix


class Resize:
    """Between latent images of h × h pixels and images of H × W; all channels alike.

    Parameters
    ----------
    size : int
        Side h of a latent image.
    shape : tuple of int
        Height and width of an image.

    >>> Resize(10, (28, 28)).up(np.ones((5, 3, 10, 10))).shape
    (5, 3, 28, 28)
    """

    def __init__(self, size: int, shape: tuple[int, int]) -> None:
        if not 1 <= size <= min(shape):
            raise ValueError(f"a latent image is at most as large as the image ({shape[0]} x {shape[1]}), got {size}")
        self.size, self.shape = size, shape
        self._up = bilinear(size, shape[0]), bilinear(size, shape[1])
        self._down = bilinear(shape[0], size), bilinear(shape[1], size)

    def up(self, U: Array) -> Array:
        """Return images (..., H, W) from latent ones (..., h, h)."""
        up: Array = self._up[0] @ U @ self._up[1].T
        return up

    def down(self, D: Array) -> Array:
        """Return latent images (..., h, h) from images (..., H, W)."""
        down: Array = self._down[0] @ D @ self._down[1].T
        return down

    def adjoint(self, D: Array) -> Array:
        """Return gᵀ(D), latent (..., h, h), with ⟨g(u), D⟩ = ⟨u, gᵀ(D)⟩: how a score per pixel reads per latent pixel.

        >>> Resize(2, (3, 3)).adjoint(np.ones((3, 3)))
        array([[2.25, 2.25],
               [2.25, 2.25]])
        """
        back: Array = self._up[0].T @ D @ self._up[1]
        return back
