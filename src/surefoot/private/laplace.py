"""Laplace noise on the rows: pure ε-differential privacy, for comparison.

A change of a row by at most Δ in the Euclidean norm changes it by at most √d Δ in the sum of absolute values, so
independent Laplace noise of scale b = √d Δ/ε on every number gives ε-differential privacy with δ = 0.

>>> mechanism = LaplaceRelease(epsilon=3.0, radius=25.0)
>>> guarantee = mechanism.guarantee(rows=10, features=4)
>>> guarantee.epsilon, guarantee.delta
(3.0, 0.0)

The noise is larger than Gaussian noise of any δ that one would use, and heavier-tailed. The modeler's kernel treats it
as Gaussian of the same variance, which is an approximation.

References: Dwork, McSherry, Nissim & Smith 2006.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Unpack

import numpy as np
from numpy.typing import NDArray

from surefoot.private.accounting import StatedEvent
from surefoot.private.guarantee import Guarantee
from surefoot.private.mechanisms import Mechanism, PublicOptions
from surefoot.private.noise import MARGIN

__all__ = ["LaplaceRelease"]

Array = NDArray[np.float64]


class LaplaceRelease(Mechanism):
    """Release scaled rows with Laplace noise.

    Parameters
    ----------
    epsilon : float
        The guarantee; δ is 0.
    **options
        ``bounds``, ``center``, ``scale``, ``radius``, ``neighbor``, ``noise``.

    >>> import numpy as np
    >>> LaplaceRelease(epsilon=1.0).transform(np.zeros((3, 2))).shape
    (3, 2)
    """

    def __init__(self, *, epsilon: float, **options: Unpack[PublicOptions]) -> None:
        super().__init__(epsilon=epsilon, delta=0.0, **options)

    def scale_for(self, features: int) -> float:
        """Return b, the scale of the noise.

        >>> LaplaceRelease(epsilon=2.0).scale_for(features=4)
        1.0
        """
        return math.sqrt(features) * self.sensitivity / self.epsilon  # b = √d Δ/ε

    def spread(self, features: int) -> float:
        return math.sqrt(2.0) * self.scale_for(features)

    def _randomize(self, rows: Array) -> Array:
        # On OpenDP's grid values may lie a little further apart, and what it certifies must not exceed ε.
        return self._noise.laplace(rows, self.scale_for(rows.shape[-1]) * MARGIN)

    def event(self, rows: int, features: int) -> StatedEvent:
        return StatedEvent(self.epsilon, 0.0)

    def guarantee(self, rows: int, features: int) -> Guarantee:
        return replace(self._sound(features), analytic=self.epsilon)
