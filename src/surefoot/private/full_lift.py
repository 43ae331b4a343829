"""The full lift: what the published proof really analyzes, as a mechanism of its own.

Z = (X_c M + ω G)/√r with M (d × r) and G (n × r) of standard normals: the columns are N(0, X_c X_cᵀ + ω² I_n)/r, of
full rank whatever n and d are, and there is no branch. ω is that of :func:`surefoot.private.projection.omega`.

**Guarantee.** Not the published one, which leaves its last steps to others. Condition on M, which does not depend on
the data: then Z is X_c M with Gaussian noise, and neighbors differ by a matrix of norm at most |Mᵀv|, |v| ≤ Δ, where
|Mᵀv|² is Δ² times a χ² variable with r degrees of freedom, at most. With probability 1 − δ/2 it is below its quantile
q, and if the noise ω gives (ε, δ/2) at sensitivity Δ √q, the release is (ε, δ)-differentially private. (M may even be
known.)

>>> mechanism = FullLift(epsilon=3.0, delta=1e-5, dimension=10)
>>> guarantee = mechanism.guarantee(rows=1000, features=2)
>>> guarantee.epsilon, guarantee.analytic < 0.05
(3.0, True)

The second number says how conservative ω is. The noise on each released number is ω/√r, about 300 at ε = 3 beside rows
of norm 25, which leaves nothing to optimize: a reference, not a tool.
"""

from __future__ import annotations

import math
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2

from surefoot.private.accounting import GaussianEvent, StatedEvent, epsilon
from surefoot.private.guarantee import Guarantee
from surefoot.private.mechanisms import Mechanism, PublicOptions
from surefoot.private.noise import SystemNoise
from surefoot.private.projection import omega

__all__ = ["FullLift"]

Array = NDArray[np.float64]


class FullLift(Mechanism):
    """Project, and add noise of the size of the published lift in all n directions.

    Parameters
    ----------
    epsilon, delta : float
        The guarantee.
    dimension : int
        r, columns of the release.
    **options
        ``bounds``, ``center``, ``scale``, ``radius``, ``neighbor``, ``noise``.

    >>> FullLift(epsilon=3.0, delta=1e-5, dimension=4).transform(np.eye(6, 2)).shape
    (6, 4)
    """

    def __init__(self, *, epsilon: float, delta: float, dimension: int, **options: Unpack[PublicOptions]) -> None:
        super().__init__(epsilon=epsilon, delta=delta, **options)
        self.omega, self.dimension = omega(dimension, epsilon, delta), int(dimension)
        needed = SystemNoise.certified_scale(self.epsilon, 0.5 * self.delta, self._reach(self.delta))
        if needed > self.omega:
            raise ValueError(
                f"the published threshold {self.omega:.4g} is too little noise for a change of {self.sensitivity:.4g}: "
                f"a proof needs {needed:.4g}; use GaussianRelease"
            )

    def _reach(self, delta: float) -> float:
        """A bound on the change of X_c M that holds with probability 1 − δ/2."""
        return self.sensitivity * math.sqrt(float(chi2.isf(0.5 * delta, self.dimension)))

    def _tight(self, delta: float) -> float:
        """The ε of exact accounting at δ."""
        return epsilon(GaussianEvent(self.omega / self._reach(delta)), 0.5 * delta)

    def spread(self, features: int) -> float:
        return self.omega / math.sqrt(self.dimension)

    def _randomize(self, rows: Array) -> Array:
        M = self._noise.normal((*rows.shape[:-2], rows.shape[-1], self.dimension))
        noisy = self._noise.gaussian((rows - rows.mean(axis=-2, keepdims=True)) @ M, self.omega)
        return noisy / math.sqrt(self.dimension)  # (X_c M + ω G)/√r

    def event(self, rows: int, features: int) -> StatedEvent:
        share = 0.01 * self.delta  # so that other releases find room under the same δ
        return StatedEvent(self._tight(share), share)

    def guarantee(self, rows: int, features: int) -> Guarantee:
        return self._sound(features, analytic=self._tight(self.delta))

    def public(self) -> dict[str, Any]:
        return {**super().public(), "dimension": self.dimension}
