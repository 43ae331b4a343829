"""Images as exemplars: which few stand for all?

Every image is a vector of 3,072 numbers in [0, 1], shifted to mean zero. The objective is the fall of the mean squared
distance to the nearest chosen image when the choice joins a phantom at the origin, over a sample of the images.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from surefoot.select import FacilityLocation
from surefoot_lab import Replicate, datasets


@cache
def vectors() -> NDArray[np.float64]:
    """All stored images, shape (10000, 3072), each of mean zero."""
    images = datasets.load("cifar10")["X_train"]
    flat = images.reshape(len(images), -1) / 255.0
    centered: NDArray[np.float64] = flat - flat.mean(axis=1, keepdims=True)
    return centered


def exemplars(replicate: Replicate, count: int, clients: int) -> FacilityLocation:
    """The objective of a repetition: ``count`` random images as candidates, ``clients`` of them to stand for."""
    rows = vectors()
    chosen = replicate.rng("images").permutation(len(rows))[:count]
    served = replicate.rng("clients").permutation(chosen)[:clients]
    # g(s, u) = 2⟨s, u⟩ − ‖s‖², made once: the similarities are few compared with the numbers in the images.
    similarity = 2.0 * rows[chosen] @ rows[served].T - np.sum(rows[chosen] ** 2, axis=1)[:, None]
    return FacilityLocation(similarity, similarity="precomputed")
