"""CompactPosterior: what a Gaussian process knows after many measurements, in a bounded number of numbers.

A posterior given N measurements holds matrices of N² numbers. This one holds at most p²: up to p measurements it is
exact, and beyond that the measurements are summarized at p *inducing points* U among the measured ones,

    mean(x) = c + k(x, U) α,    var(x) = k(x, x) − ‖R k(U, x)‖²,

the same two formulas as the exact posterior, which has U = X and R = L⁻¹. The points are chosen greedily, each where
the others explain least (a pivoted Cholesky factorization), and no more of them are taken than the kernel needs: a
thousand measurements of a smooth function may be summarized by fifty without any loss. What the chosen points do not
explain of a measurement is added to its noise, so a summary that is too short errs towards caution (FITC).

>>> import numpy as np
>>> from surefoot.belief import GP, SE
>>> X = np.linspace(0.0, 1.0, 400)[:, None]
>>> gp = GP(SE(lengthscale=0.3), noise=0.01)
>>> short = CompactPosterior(gp, X, np.sin(6.0 * X[:, 0]), points=32)
>>> short.n < 32, bool(abs(short.mean(X) - gp.condition(X, np.sin(6.0 * X[:, 0])).mean(X)).max() < 1e-5)
(True, True)

References: Snelson & Ghahramani 2006, "Sparse Gaussian processes using pseudo-inputs"; Foster et al. 2009, "Stable and
efficient Gaussian process calculations", for the pivoted factorization.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg.lapack import dtrtri

from surefoot.belief.posterior import EXACT, Posterior, factorize, observations

if TYPE_CHECKING:
    from surefoot.belief.gp import GP

__all__ = ["CompactPosterior"]

Array = NDArray[np.float64]
EXPLAINED = 1e-8  # share of k(x, x) left unexplained at which further inducing points are not worth their room


class CompactPosterior(Posterior):
    """A Gaussian process given measurements, in at most ``points``² numbers; see the module's page.

    It predicts like any :class:`~surefoot.belief.posterior.Posterior` and draws from it, but takes no further
    measurements.

    Parameters
    ----------
    gp : GP
        Kernel, constant mean and the noise of measurements that do not bring their own.
    X, y : array of shape (N, e) and (N,)
        Points and values, at least one.
    noise : array of shape (N,), optional
        Noise variance of each measurement; NaN or None means ``gp.noise``.
    points : int, optional
        Measurements up to which it is exact, and inducing points beyond; None: always exact.

    Attributes
    ----------
    X : array of shape (n, e)
        The measured points, or the inducing points among them.
    exact : bool
        Whether nothing was left out.

    >>> from surefoot.belief import GP
    >>> CompactPosterior(GP(noise=1.0), [[0.0]], [3.0]).predict([[0.0]])[0]
    array([1.5])
    """

    def __init__(
        self, gp: GP, X: ArrayLike, y: ArrayLike, noise: ArrayLike | None = None, *, points: int | None = None
    ) -> None:
        if points is not None and points < 1:
            raise ValueError(f"points must be at least 1, got {points!r}")
        places, values, noises = observations(X, y, noise)
        if not len(values):
            raise ValueError("a compact posterior needs at least one measurement")
        variances = np.where(np.isnan(noises), gp.noise, noises)
        self.gp, self.exact = gp, points is None or len(values) <= points
        if self.exact:
            L, _ = factorize(gp.kernel(places), variances)
            self._X, self._inverse = places, dtrtri(L.T, lower=0)[0].T
            self.alpha = self._inverse.T @ (self._inverse @ (values - gp.mean))
        else:
            self._summarize(places, values - gp.mean, variances, points or 1)
        self.n = len(self._X)

    def _summarize(self, X: Array, r: Array, noise: Array, points: int) -> None:
        """Choose inducing points U, and condition on all measurements through them."""
        V, chosen, rest = _pivoted(self.gp, X, points)
        # With K(U, U) = L Lᵀ and V = L⁻¹ K(U, X): A = I + V Λ⁻¹ Vᵀ, α = L⁻ᵀ A⁻¹ V Λ⁻¹ r, RᵀR = L⁻ᵀ (I − A⁻¹) L⁻¹.
        weight = 1.0 / (np.maximum(noise, EXACT * self.gp.kernel.diag(X)) + rest)
        levels, Q = np.linalg.eigh(np.eye(len(V)) + (V * weight) @ V.T)
        levels = np.maximum(levels, 1.0)
        white = Q.T @ dtrtri(V[:, chosen], lower=0)[0].T  # Qᵀ L⁻¹, L = V[:, U]ᵀ
        self._X = X[chosen]
        self._inverse = np.sqrt(1.0 - 1.0 / levels)[:, None] * white
        self.alpha = white.T @ ((Q.T @ (V @ (weight * r))) / levels)

    def _no(self, what: str) -> NoReturn:
        raise TypeError(f"a compact posterior {what}; use GP.condition")

    @property
    def y(self) -> Array:
        self._no("does not keep the measured values")

    @property
    def noise(self) -> Array:
        self._no("does not keep the noise of the measurements")

    @property
    def chol(self) -> Array:
        self._no("has no Cholesky factor of all measurements")

    @property
    def information_gain(self) -> float:
        self._no("does not know the information gained")

    def solve(self, B: ArrayLike) -> Array:
        self._no("cannot solve with the covariance of all measurements")

    def append(self, x: ArrayLike, y: float, noise: float | None = None) -> None:
        self._no("takes no further measurements")

    def pop(self) -> None:
        self._no("forgets no measurement")


def _pivoted(gp: GP, X: Array, points: int) -> tuple[Array, NDArray[np.intp], Array]:
    """Partial Cholesky factorization K ≈ VᵀV with greedy pivots: V (p, N), the pivots (p,), diag(K − VᵀV) (N,)."""
    kernel, rest = gp.kernel, np.array(gp.kernel.diag(X))
    least = EXPLAINED * rest.max()
    V, chosen = np.empty((points, len(X))), np.empty(points, dtype=np.intp)
    count = 0
    while count < points:
        i = int(rest.argmax())
        if rest[i] <= least:
            break
        row = kernel(X[i : i + 1], X)[0] - V[:count, i] @ V[:count]
        V[count], chosen[count] = row / np.sqrt(rest[i]), i
        rest = np.maximum(rest - V[count] ** 2, 0.0)
        rest[i] = 0.0
        count += 1
    V, chosen = V[:count], chosen[:count]
    V[:, chosen] = np.triu(V[:, chosen])  # zero but for rounding
    return V, chosen, rest
