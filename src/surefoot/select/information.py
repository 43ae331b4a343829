"""Mutual information: how much measuring the chosen points tells about a Gaussian process.

    f(S) = I(y_S; f) = ½ log det(1 + N⁻¹ᐟ² K_S N⁻¹ᐟ²),   N = diag(noise),

in nats. f is monotone and submodular; its largest value over k points is the information gain γ_k of the regret bounds.
With d the posterior variances plus noise and B = (K_S + N)⁻¹,

    gain(i) = ½ log(dᵢ/noiseᵢ),   loss(e) = −½ log(noiseₑ Bₑₑ).

Both come from the factorization of :mod:`surefoot.select.quadratic`.

References: Srinivas, Krause, Kakade & Seeger 2010, eq. (8); Krause, Singh & Guestrin 2008.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import ArrayLike

from surefoot.select.objective import Array, Indices, State
from surefoot.select.quadratic import FactoredState, OverCovariance

__all__ = ["MutualInformation"]


class MutualInformation(OverCovariance):
    """The information, in nats, that noisy measurements of the chosen points give about the process.

    Parameters
    ----------
    covariance : array of shape (n, n)
        Between the candidates; NumPy or torch.
    noise : float or array of shape (n,)
        Variance of a measurement (of each candidate), above 0.

    >>> f = MutualInformation(np.eye(3), noise=1.0)
    >>> f.value([0, 2]) == np.log(2.0)      # two independent measurements, ½ log 2 each
    np.True_
    """

    def __init__(self, covariance: Any, *, noise: ArrayLike) -> None:
        super().__init__(covariance, noise, submodular=True)
        xp = array_namespace(self._K)
        self._W = xp.zeros((0, self.n), dtype=xp.float64, device=self._K.device)
        self._per_noise = xp.asarray(1.0 / self.noise, device=self._K.device)

    def _empty(self) -> State:
        return _InformationState(self)

    def _value(self, S: Indices) -> float:
        scale = 1.0 / np.sqrt(self.noise[S])
        return float(0.5 * np.linalg.slogdet(self._block(S) * np.outer(scale, scale))[1])


class _InformationState(FactoredState):
    """Gains from the residual diagonal, losses from the diagonal of the inverse."""

    def _score(self, C: Any, d: Any, elements: Any) -> Any:
        return 0.5 * self._xp.log(d * self.function._per_noise[elements])

    def _cost(self, places: slice) -> Array:
        noise = self.function.noise[self.selected][places]
        costs: Array = -0.5 * np.log(noise * np.diag(self._inverse)[places])  # type: ignore[arg-type]
        return costs
