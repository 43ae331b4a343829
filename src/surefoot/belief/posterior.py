"""Posterior: what a Gaussian process knows after some measurements.

With n points X, values y and noise variances Σ, and k(Z) the (m, n) matrix between new points Z and X,

* mean  μ(Z) = c + k(Z) (K + Σ)⁻¹ (y − c),
* covariance  k(Z, W) − k(Z) (K + Σ)⁻¹ k(W)ᵀ.

Both speak of the latent function f, not of a further noisy measurement of it. The lower Cholesky factor L of K + Σ and
its inverse are kept in buffers that double, so :meth:`Posterior.append` and :meth:`Posterior.pop` cost O(n²), and every
prediction is a plain matrix product. With very many measurements :mod:`surefoot.belief.panels` keeps the factor only.

>>> import numpy as np
>>> from surefoot.belief.gp import GP
>>> from surefoot.belief.kernels import SE
>>> post = GP(SE(lengthscale=0.3), noise=1e-6).condition([[0.2], [0.7]], [1.0, -1.0])
>>> post.mean([[0.2], [0.7]]).round(3)
array([ 1., -1.])
>>> post.append([0.4], 0.0)
>>> post.n
3

References: Rasmussen & Williams 2006, Algorithm 2.1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg.lapack import dpotrf, dtrtri
from scipy.special import ndtri

if TYPE_CHECKING:
    from surefoot.belief.gp import GP

__all__ = ["Posterior", "factorize", "observations"]

Array = NDArray[np.float64]

# Below these shares of k(x, x) a variance is rounding error: measurements are never taken to be more exact than EXACT,
# predicted variances never fall below NOTHING.
EXACT = 1e-12
NOTHING = 1e-14


def observations(X: ArrayLike | None, y: ArrayLike | None, noise: ArrayLike | None) -> tuple[Array, Array, Array]:
    """Return points (n, e), values (n,) and noise variances (n,) as checked arrays; an unknown noise is NaN.

    >>> observations([[0.0], [1.0]], [2.0, 3.0], None)[2]
    array([nan, nan])
    """
    if X is None or y is None:
        if X is not None or y is not None or noise is not None:
            raise ValueError("points and values come together: give both X and y, or neither")
        return np.empty((0, 0)), np.empty(0), np.empty(0)
    points, values = np.array(X, dtype=np.float64), np.array(y, dtype=np.float64)
    if points.ndim != 2 or values.shape != points.shape[:1]:
        raise ValueError(f"X must be (n, e) and y (n,), got shapes {points.shape} and {values.shape}")
    if not (np.isfinite(points).all() and np.isfinite(values).all()):
        raise ValueError("points and values must be finite")
    noises = np.full(values.shape, np.nan)
    if noise is not None:
        given = np.asarray(noise, dtype=np.float64)
        if given.shape not in ((), (1,), values.shape):
            raise ValueError(f"noise is one variance, or one for each of the {len(values)} values, got {noise!r}")
        noises[...] = given
        if (noises < 0).any() or np.isinf(noises).any():
            raise ValueError(f"noise is a variance, finite and not negative, got {noise!r}")
    return points, values, noises


def factorize(K: Array, noise: Array) -> tuple[Array, Array]:
    """Return the lower factor L of K + diag(noise), and the noise that was really used.

    In exact arithmetic L²ᵢᵢ ≥ noiseᵢ. Where rounding breaks this (or the factorization), the noise of every point is
    raised, tenfold each time, until it holds again.

    >>> L, noise = factorize(np.ones((2, 2)), np.full(2, 1e-30))
    >>> bool(abs(L @ L.T - 1).max() < 1e-8)
    True
    """
    n = len(K)
    level = K.diagonal()
    noise = np.maximum(noise, EXACT * level)
    jitter = 0.0
    while True:
        S = K.copy()
        S.ravel()[:: n + 1] += noise
        # S is symmetric and in C order; its transpose is what LAPACK wants, without a copy: S = UᵀU, L = Uᵀ.
        U, info = dpotrf(S.T, lower=0, clean=1, overwrite_a=1)
        if info == 0 and (U.diagonal() ** 2 >= 0.5 * noise).all():
            return U.T, noise
        if not np.isfinite(level).all() or jitter > 1.0:
            raise ValueError("the kernel matrix is not finite or not positive semi-definite")
        jitter = max(10.0 * jitter, 10.0 * EXACT)
        noise = np.maximum(noise, jitter * level.max())


class Posterior:
    """A Gaussian process given measurements; see the module's page. Made by :meth:`surefoot.belief.GP.condition`.

    Parameters
    ----------
    gp : GP
        Kernel, constant mean and the noise of measurements that do not bring their own.
    X, y : array of shape (n, e) and (n,), optional
        Points and values. None: the prior.
    noise : float or array of shape (n,), optional
        Noise variance of each measurement; NaN or None means ``gp.noise``.

    Attributes
    ----------
    n : int
        Number of measurements.
    alpha : array of shape (n,)
        (K + Σ)⁻¹ (y − c).

    >>> from surefoot.belief.gp import GP
    >>> prior = GP(noise=0.1).condition()
    >>> prior.predict([[0.0, 0.0]])
    (array([0.]), array([1.]))
    """

    def __init__(
        self, gp: GP, X: ArrayLike | None = None, y: ArrayLike | None = None, noise: ArrayLike | None = None
    ) -> None:
        self.gp = gp
        points, values, noises = observations(X, y, noise)
        self.n = n = len(values)
        self._X, self._y, self._noise = points, values, np.where(np.isnan(noises), gp.noise, noises)
        self._chol = self._inverse = np.empty((0, 0))
        self._white = np.empty(0)  # L⁻¹ (y − c)
        if n:
            self._chol, self._noise = factorize(gp.kernel(points), self._noise)
            self._inverse = dtrtri(self._chol.T, lower=0)[0].T
            self._white = self._inverse @ (values - gp.mean)
        self._solve_mean()

    @property
    def X(self) -> Array:
        """Measured points, shape (n, e)."""
        return self._X[: self.n]

    @property
    def y(self) -> Array:
        """Measured values, shape (n,)."""
        return self._y[: self.n]

    @property
    def noise(self) -> Array:
        """Noise variances in use, shape (n,)."""
        return self._noise[: self.n]

    @property
    def chol(self) -> Array:
        """Lower Cholesky factor of K + Σ, a view of shape (n, n)."""
        return self._chol[: self.n, : self.n]

    @property
    def inverse(self) -> Array:
        """Inverse of :attr:`chol`, a view of shape (n, n)."""
        return self._inverse[: self.n, : self.n]

    def last(self, count: int) -> tuple[Array, Array]:
        """Return the last ``count`` rows of :attr:`chol`, of their own columns only, and of :attr:`inverse`.

        >>> from surefoot.belief.gp import GP
        >>> [rows.shape for rows in GP(noise=1.0).condition([[0.0], [1.0]], [5.0, 6.0]).last(1)]
        [(1, 1), (1, 2)]
        """
        first = self.n - count
        return self.chol[first:, first:], self.inverse[first:]

    @property
    def information_gain(self) -> float:
        """Mutual information between the measurements and f: ½ log det(I + Σ^(−½) K Σ^(−½)).

        >>> from surefoot.belief.gp import GP
        >>> float(np.round(GP(noise=1.0).condition([[0.0]], [5.0]).information_gain, 6))  # ½ log 2
        0.346574
        """
        return float(np.log(self.chol.diagonal()).sum() - 0.5 * np.log(self.noise).sum())

    @property
    def noise_level(self) -> float:
        """Noise variance of a measurement that does not bring its own."""
        return self.gp.noise

    def prior_variance(self, E: ArrayLike) -> float:
        """Return the largest variance before any measurement among encoded points (m, e)."""
        return float(self.gp.kernel.diag(_points(E)).max())

    def _solve_mean(self) -> None:
        self.alpha: Array = self.inverse.T @ self._white[: self.n]

    def _whiten(self, B: Array) -> Array:
        """L⁻¹ B for B of shape (n, m)."""
        white: Array = self.inverse @ B
        return white

    def _weigh(self, V: Array) -> Array:
        """Vᵀ L⁻¹ for V of shape (n, m): the weights of the measurements in a prediction."""
        weights: Array = V.T @ self.inverse
        return weights

    def solve(self, B: ArrayLike) -> Array:
        """Return (K + Σ)⁻¹ B for B of shape (n,) or (n, m)."""
        solution: Array = self.inverse.T @ (self.inverse @ np.asarray(B, dtype=np.float64))
        return solution

    def _cross(self, Z: ArrayLike) -> tuple[Array, Array]:
        """Points as an array, and their covariance (m, n) with the measured ones."""
        points = _points(Z)
        return points, self.gp.kernel(points, self.X) if self.n else np.empty((len(points), 0))

    def mean(self, Z: ArrayLike) -> Array:
        """Return the mean of f at the rows of Z, shape (m,)."""
        _, K = self._cross(Z)
        mean: Array = self.gp.mean + K @ self.alpha
        return mean

    def _variance(self, Z: Array, V: Array) -> Array:
        level = self.gp.kernel.diag(Z)
        variance: Array = np.maximum(level - np.einsum("nm,nm->m", V, V), NOTHING * level)
        return variance

    def var(self, Z: ArrayLike) -> Array:
        """Return the variance of f at the rows of Z, shape (m,); never negative."""
        points, K = self._cross(Z)
        return self._variance(points, self._whiten(K.T))

    def std(self, Z: ArrayLike) -> Array:
        """Return the standard deviation of f at the rows of Z, shape (m,)."""
        return np.sqrt(self.var(Z))

    def predict(self, Z: ArrayLike) -> tuple[Array, Array]:
        """Return mean and standard deviation of f at the rows of Z, each of shape (m,)."""
        points, K = self._cross(Z)
        return self.gp.mean + K @ self.alpha, np.sqrt(self._variance(points, self._whiten(K.T)))

    def quantile(self, Z: ArrayLike, level: float, *, noise: float | None = None) -> Array:
        """Return the quantile of f at the rows of Z, or of a noisy measurement there, shape (m,).

        Parameters
        ----------
        Z : array of shape (m, e)
        level : float
            Between 0 and 1.
        noise : float, optional
            Variance added to that of f; NaN: ``gp.noise``.

        >>> from surefoot.belief.gp import GP
        >>> GP(mean=1.0).condition().quantile([[0.0]], 0.975).round(2)
        array([2.96])
        """
        mean, std = self.predict(Z)
        extra = 0.0 if noise is None else self.gp.noise if np.isnan(noise) else noise
        found: Array = mean + ndtri(level) * np.sqrt(std**2 + extra)
        return found

    def optimism(self, Z: ArrayLike) -> float:
        """Return by how much the highest mean among the rows of Z is too high: 0 for a belief that is given.

        See :mod:`surefoot.belief.optimism` for one that is averaged over what suits the measurements.

        >>> from surefoot.belief.gp import GP
        >>> GP().condition().optimism([[0.0]])
        0.0
        """
        return 0.0

    def cov(self, Z: ArrayLike, W: ArrayLike | None = None) -> Array:
        """Return the covariance of f between the rows of Z and of W (default Z), shape (m, k)."""
        points, K = self._cross(Z)
        V = self._whiten(K.T)
        if W is None:
            cov: Array = self.gp.kernel(points) - V.T @ V
        else:
            others, K = self._cross(W)
            cov = self.gp.kernel(points, others) - V.T @ self._whiten(K.T)
        return cov

    def gradient(self, Z: ArrayLike) -> tuple[Array, Array, Array, Array]:
        """Return mean and standard deviation (m,), and their gradients in the point, (m, e) each.

        Where the standard deviation vanishes its gradient is a large but finite number.

        >>> from surefoot.belief.gp import GP
        >>> mean, std, dmean, dstd = GP(noise=1e-4).condition([[0.0]], [1.0]).gradient([[0.5]])
        >>> bool(dmean[0, 0] < 0 < dstd[0, 0])  # away from the only measurement
        True
        """
        points, kernel = _points(Z), self.gp.kernel
        if not self.n:
            mean, std = self.predict(points)
            dmean, dvar = np.zeros_like(points), kernel.diag_gradient(points)
        else:
            K, pull = kernel.pull_input(points, self.X)
            V = self._whiten(K.T)
            mean, std = self.gp.mean + K @ self.alpha, np.sqrt(self._variance(points, V))
            dmean = pull(np.broadcast_to(self.alpha, K.shape))
            dvar = kernel.diag_gradient(points) - 2.0 * pull(self._weigh(V))
        safe = np.where(std > 0, std, 1.0)  # only a kernel with k(x, x) = 0 gets here with 0
        return mean, std, dmean, dvar / (2.0 * safe)[:, None]

    def sample(self, Z: ArrayLike, count: int, rng: np.random.Generator) -> Array:
        """Return joint draws of f at the rows of Z, shape (count, m).

        >>> from surefoot.belief.gp import GP
        >>> GP().condition().sample([[0.0], [0.0]], 5, np.random.default_rng(0)).shape
        (5, 2)
        """
        points = _points(Z)
        cov = self.cov(points)
        # Against rounding only: the floor is relative to the prior, as rounding is.
        L, _ = factorize(cov, EXACT * self.gp.kernel.diag(points))
        draws: Array = self.mean(points) + rng.standard_normal((count, len(points))) @ L.T
        return draws

    def append(self, x: ArrayLike, y: float, noise: float | None = None) -> None:
        """Add one measurement at x (e,) in O(n²).

        Parameters
        ----------
        x : array of shape (e,)
        y : float
        noise : float, optional
            Its noise variance; by default ``gp.noise``.
        """
        X, value, given = observations(np.asarray(x, dtype=np.float64)[None], [y], noise)
        n, kernel = self.n, self.gp.kernel
        if n and X.shape[1] != self._X.shape[1]:
            raise ValueError(f"the point has {X.shape[1]} coordinates, the others have {self._X.shape[1]}")
        level = float(kernel.diag(X)[0])
        variance = max(self.gp.noise if np.isnan(given[0]) else float(given[0]), EXACT * level)
        row = self._whiten(kernel(self.X, X)[:, 0]) if n else np.empty(0)
        # The Schur complement is at least the noise; rounding must not take it below.
        pivot = float(np.sqrt(max(level + variance - float(row @ row), variance)))
        self._reserve(n + 1, X.shape[1])
        self._X[n], self._y[n], self._noise[n] = X[0], value[0], variance
        self._add(row, pivot)
        self._white[n] = (value[0] - self.gp.mean - row @ self._white[:n]) / pivot
        self.n = n + 1
        self._solve_mean()

    def _add(self, row: Array, pivot: float) -> None:
        """Add a row to the factor."""
        n = self.n
        self._chol[n, :n], self._chol[n, n] = row, pivot
        self._inverse[n, :n], self._inverse[n, n] = -(row @ self.inverse) / pivot, 1.0 / pivot

    def expected(self, at: ArrayLike) -> Array:
        """Return :meth:`mean`, under the name that all beliefs share."""
        return self.mean(at)

    def covariance(self, at: ArrayLike, others: ArrayLike) -> Array:
        """Return :meth:`cov`, under the name that all beliefs share."""
        return self.cov(at, others)

    def draw(self, at: ArrayLike, count: int, rng: np.random.Generator) -> Array:
        """Return :meth:`sample`, under the name that all beliefs share."""
        return self.sample(at, count, rng)

    def hallucinate(self, at: ArrayLike, noise: float | None = None) -> None:
        """Pretend that the point at (e,) was measured at its mean: the uncertainty shrinks, the mean stays.

        >>> from surefoot.belief.gp import GP
        >>> post = GP(noise=1.0).condition()
        >>> post.hallucinate([0.0])
        >>> post.predict([[0.0]])[1].round(4)
        array([0.7071])
        >>> post.undo()
        >>> post.n
        0
        """
        x = np.asarray(at, dtype=np.float64)
        self.append(x, float(self.mean(x[None])[0]), noise)

    def undo(self, count: int = 1) -> None:
        """Forget the last measurements, exactly: what :meth:`hallucinate` added."""
        for _ in range(count):
            self.pop()

    def pop(self) -> None:
        """Forget the last measurement, exactly.

        >>> from surefoot.belief.gp import GP
        >>> post = GP().condition([[0.0]], [1.0])
        >>> post.append([1.0], 3.0); post.pop()
        >>> post.X
        array([[0.]])
        """
        if not self.n:
            raise ValueError("there is no measurement to forget")
        self.n -= 1
        self._solve_mean()

    def copy(self) -> Posterior:
        """Return an independent posterior with the same measurements."""
        other = object.__new__(type(self))
        other.__dict__.update({key: _copied(value) for key, value in self.__dict__.items()})
        return other

    def _reserve(self, rows: int, columns: int) -> None:
        """Make room for more measurements, doubling the buffers."""
        if rows <= len(self._y):
            return
        n, size = self.n, max(8, 2 * self.n)
        self._X = _grown(self.X if n else np.empty((0, columns)), size, columns)
        self._y, self._noise = _grown(self.y, size), _grown(self.noise, size)
        self._white = _grown(self._white[:n], size)
        self._widen(size)

    def _widen(self, size: int) -> None:
        """Make room in the factor for so many measurements."""
        self._chol, self._inverse = _grown(self.chol, size, size), _grown(self.inverse, size, size)


def _points(Z: ArrayLike) -> Array:
    points = np.asarray(Z, dtype=np.float64)
    if points.ndim != 2:
        raise ValueError(f"points must be an array of shape (m, e), got shape {points.shape}")
    return points


def _grown(old: Array, *shape: int) -> Array:
    new = np.zeros(shape)
    new[tuple(slice(length) for length in old.shape)] = old
    return new


def _copied(value: Any) -> Any:
    return value.copy() if isinstance(value, np.ndarray) else value
