"""FreeMean: a Gaussian process whose constant mean is not known.

:class:`~surefoot.belief.posterior.Posterior` takes the constant c for given. Here every c is equally likely beforehand,
and is integrated out (Rasmussen & Williams 2006, section 2.7, with one basis function): with u = S⁻¹1, S = K + Σ, and
s = 1ᵀu,

* ĉ = uᵀy / s, the constant by generalized least squares,
* mean  ĉ + k(Z) S⁻¹ (y − ĉ),
* covariance  k(Z, W) − k(Z) S⁻¹ k(W)ᵀ + h(Z) h(W)ᵀ / s  with  h(Z) = 1 − k(Z) u.

The last term is what not knowing the constant costs: nothing where there is data, 1/s far from it.

>>> import numpy as np
>>> from surefoot.belief.gp import GP
>>> gp, X, y = GP(noise=1.0), [[0.0]], [6.0]
>>> FreeMean(gp, X, y).predict([[0.0], [99.0]])[0]  # one measurement says where the level is, and no more
array([6., 6.])
>>> (FreeMean(gp, X, y).var([[99.0]]) - gp.condition(X, y).var([[99.0]])).round(9)
array([2.])
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot.belief.posterior import Posterior

__all__ = ["FreeMean"]

Array = NDArray[np.float64]


class FreeMean(Posterior):
    """A posterior that has integrated its constant mean out; see the module's page. Before any data it is the prior.

    >>> from surefoot.belief.gp import GP
    >>> FreeMean(GP(noise=1.0, mean=5.0), [[0.0], [50.0]], [1.0, 3.0]).offset
    2.0
    """

    def _solve_mean(self) -> None:
        self.ones, self.offset, self._share = np.empty(0), self.gp.mean, 0.0
        if self.n:
            self.ones = self.solve(np.ones(self.n))
            total = float(self.ones.sum())
            self.offset, self._share = float(self.ones @ self.y) / total, 1.0 / total
        self.alpha: Array = self.solve(self.y - self.offset)

    def _unknown(self, K: Array) -> Array:
        """h(Z), which times h(Z)ᵀ/s is the variance due to the constant."""
        h: Array = 1.0 - K @ self.ones
        return h

    def mean(self, Z: ArrayLike) -> Array:
        _, K = self._cross(Z)
        mean: Array = self.offset + K @ self.alpha
        return mean

    def predict(self, Z: ArrayLike) -> tuple[Array, Array]:
        points, K = self._cross(Z)
        variance = self._variance(points, self._whiten(K.T)) + self._share * self._unknown(K) ** 2
        return self.offset + K @ self.alpha, np.sqrt(variance)

    def smooth(self, Z: ArrayLike, values: ArrayLike) -> Array:
        """Return the means at the rows of Z if these values (n, k) had been measured, shape (m, k).

        >>> from surefoot.belief.gp import GP
        >>> FreeMean(GP(noise=1.0), [[0.0], [50.0]], [1.0, 3.0]).smooth([[0.0]], [[2.0], [2.0]])
        array([[2.]])
        """
        told = np.asarray(values, dtype=np.float64)
        offset = self._share * (self.ones @ told)
        means: Array = offset + self._cross(Z)[1] @ self.solve(told - offset)
        return means

    def var(self, Z: ArrayLike) -> Array:
        return self.predict(Z)[1] ** 2

    def cov(self, Z: ArrayLike, W: ArrayLike | None = None) -> Array:
        h = self._unknown(self._cross(Z)[1])
        g = h if W is None else self._unknown(self._cross(W)[1])
        cov: Array = super().cov(Z, W) + self._share * np.multiply.outer(h, g)
        return cov

    def gradient(self, Z: ArrayLike) -> tuple[Array, Array, Array, Array]:
        _, known, dmean, dknown = super().gradient(Z)
        mean, std = self.predict(Z)
        dvar = 2.0 * known[:, None] * dknown
        if self.n:
            points, K = self._cross(Z)
            _, pull = self.gp.kernel.pull_input(points, self.X)
            dvar = dvar - 2.0 * self._share * self._unknown(K)[:, None] * pull(np.broadcast_to(self.ones, K.shape))
        return mean, std, dmean, dvar / (2.0 * np.where(std > 0, std, 1.0))[:, None]
