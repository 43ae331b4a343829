"""Additive kernels: a function of many coordinates as a sum of functions of a few.

With disjoint groups of coordinates x⁽¹⁾, ..., x⁽ᴹ⁾ the kernel is k(x, z) = Σⱼ k⁽ʲ⁾(x⁽ʲ⁾, z⁽ʲ⁾), each part a Matérn-5/2
kernel with a variance and a length-scale of its own. A :class:`~surefoot.belief.gp.GP` with this kernel is an additive
Gaussian process; its posterior is that of any other kernel, with one Cholesky factor, and :class:`Parts` takes it
apart:

* mean of a part  μ⁽ʲ⁾(u) = k⁽ʲ⁾(u, X) (K + Σ)⁻¹ (y − c),
* its variance  k⁽ʲ⁾(u, u) − k⁽ʲ⁾(u, X) (K + Σ)⁻¹ k⁽ʲ⁾(X, u).

The means of the parts add up to the posterior mean (less the constant c); their standard deviations add up to *at
least* the posterior standard deviation.

>>> from surefoot.belief.gp import GP
>>> kernel = Additive([(0, 2), (1,)], lengthscale=[0.5, 1.0], variance=[1.0, 2.0])
>>> belief = GP(kernel, noise=1e-4).condition([[0.1, 0.2, 0.3], [0.9, 0.5, 0.1]], [1.0, -1.0])
>>> parts = Parts(belief)
>>> mean, std = parts.predict(parts.split([[0.1, 0.2, 0.3]]))
>>> bool(np.isclose(mean.sum(), belief.mean([[0.1, 0.2, 0.3]])[0]))
True

References: Duvenaud, Nickisch & Rasmussen 2011; Kandasamy, Schneider & Póczos 2015, section 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from array_api_compat import is_numpy_array
from numpy.typing import ArrayLike, NDArray

from surefoot.belief.algebra import Evaluate, Kernel, Pulled
from surefoot.belief.kernels import Matern, _full, _positive
from surefoot.belief.posterior import NOTHING, Posterior

__all__ = ["Additive", "Parts", "distances", "group_index", "profiles"]

Array = NDArray[np.float64]
Indices = NDArray[np.intp]
FEW = 32  # candidates of each part whose deviation is found before the others are sifted


def group_index(groups: Sequence[Sequence[int]]) -> Indices:
    """Return the coordinates of each group, shape (M, w), filled up with −1.

    >>> group_index([(0, 2), (1,)])
    array([[ 0,  2],
           [ 1, -1]])
    """
    width = max(map(len, groups))
    return np.array([[*group, *[-1] * (width - len(group))] for group in groups], dtype=np.intp)


def profiles(S: Array, slope: bool = True) -> tuple[Array, Array]:
    """Return the Matérn-5/2 correlation at s = √5 r, and on request its derivative in −log r (else it is empty).

    The correlation is (1 + s + s²/3) e⁻ˢ, the derivative (s²/3) (1 + s) e⁻ˢ; both have the shape of S.

    >>> profiles(np.array([0.0, 1.0]))[0].round(4)
    array([1.    , 0.8584])
    """
    E = np.exp(-S)
    Q = S * S
    Q /= 3.0
    P = S + 1.0
    D = P * Q if slope else np.empty(0)
    P += Q
    P *= E
    if slope:
        D *= E
    return P, D


def distances(A: Array, B: Array) -> Array:
    """√5 times the distances between the rows of A (M, n, w) and of B (M, m, w), shape (M, n, m).

    The expanded square loses half of the digits of a small distance; the profile is flat there, and loses none.

    >>> distances(np.zeros((1, 1, 2)), np.array([[[0.6, 0.8]]])).round(3)
    array([[[2.236]]])
    """
    R: Array = np.matmul(A, B.swapaxes(-1, -2))
    R *= -2.0
    R += np.vecdot(A, A)[..., :, None]
    R += np.vecdot(B, B)[..., None, :]
    np.maximum(R, 0.0, out=R)
    R *= 5.0
    np.sqrt(R, out=R)
    return R


class Additive(Kernel):
    """A sum of Matérn-5/2 kernels over disjoint groups of coordinates.

    Parameters
    ----------
    groups : sequence of sequences of int
        The coordinates of each part; no coordinate twice.
    lengthscale, variance : float or sequence of float
        Of all parts, or one for each.
    units : float or sequence of float
        Distances are measured in these units: one for all coordinates, or one for each.

    >>> k = Additive([(0, 1), (2,)], lengthscale=0.5)
    >>> k.names
    ['variance[0]', 'variance[1]', 'lengthscale[0]', 'lengthscale[1]']
    >>> k(np.zeros((1, 3)))
    array([[2.]])
    """

    def __init__(
        self,
        groups: Sequence[Sequence[int]],
        lengthscale: ArrayLike = 1.0,
        *,
        variance: ArrayLike = 1.0,
        units: ArrayLike = 1.0,
    ) -> None:
        self.groups = tuple(tuple(int(i) for i in group) for group in groups)
        every = [i for group in self.groups for i in group]
        if not all(self.groups) or not every or len(set(every)) != len(every) or min(every) < 0:
            raise ValueError(f"groups are disjoint, not empty, and hold indices from 0 on, got {groups!r}")
        M = len(self.groups)
        for name, value in (("lengthscale", lengthscale), ("variance", variance)):
            checked = _positive(value, name)
            if checked.ndim and len(checked) != M:
                raise ValueError(f"{name} is one number or one for each of the {M} groups, got {value!r}")
            setattr(self, name, np.broadcast_to(checked, (M,)).copy())
        self.lengthscale: Array
        self.variance: Array
        self.units = _positive(units, "units")
        self.index, self.highest = group_index(self.groups), max(every)

    def split(self, X: ArrayLike) -> Array:
        """Return what each part sees of the rows of X (n, d), in units of distance: shape (M, n, w), 0 where unused.

        >>> Additive([(0, 2), (1,)]).split([[3.0, 4.0, 5.0]])
        array([[[3., 5.]],
               [[4., 0.]]])
        """
        points = np.asarray(X, dtype=np.float64)
        if points.ndim != 2 or points.shape[1] <= self.highest:
            raise ValueError(f"the groups need {self.highest + 1} coordinates, got points of shape {points.shape}")
        if self.units.ndim and len(self.units) != points.shape[1]:
            raise ValueError(f"kernel has {len(self.units)} units but the points have {points.shape[1]} columns")
        padded = np.concatenate([points / self.units, np.zeros((len(points), 1))], axis=1)
        return np.ascontiguousarray(padded[:, self.index].swapaxes(0, 1))

    def join(self, U: Array, d: int) -> Array:
        """Return points (n, d) from what each part sees, the inverse of :meth:`split`; 0 in coordinates of no part.

        >>> k = Additive([(0, 2), (1,)])
        >>> k.join(k.split([[3.0, 4.0, 5.0]]), 3)
        array([[3., 4., 5.]])
        """
        points = np.zeros((U.shape[1], d + 1))
        points[:, self.index] = U.swapaxes(0, 1)
        joined: Array = points[:, :d] * self.units
        return joined

    def parts(self, X: Any, Z: Any | None = None) -> Array:
        """Return the matrices of the parts, shape (M, n, m); NumPy only."""
        A = self.split(X)
        return self.cross(A, A if Z is None else self.split(Z))

    def cross(self, A: Array, B: Array) -> Array:
        """Return the matrices of the parts from what they see, (M, n, w) and (M, m, w): shape (M, n, m)."""
        scale = self.lengthscale[:, None, None]
        K, _ = profiles(distances(A / scale, B / scale), slope=False)
        K *= self.variance[:, None, None]
        return K

    def __call__(self, X: Any, Z: Any | None = None) -> Any:
        if is_numpy_array(X):
            return self.parts(X, Z).sum(axis=0)
        kernels = [
            Matern(2.5, np.broadcast_to(self.units, X.shape[1])[list(g)] * ell, variance=v).on(g)
            for g, ell, v in zip(self.groups, self.lengthscale, self.variance, strict=True)
        ]
        return sum(kernel(X, Z) for kernel in kernels)

    def diag(self, X: Any) -> Any:
        return _full(X, (X.shape[0],), float(self.variance.sum()))

    @property
    def theta(self) -> Array:
        theta: Array = np.log(np.concatenate([self.variance, self.lengthscale]))
        return theta

    @property
    def names(self) -> list[str]:
        M = len(self.groups)
        return [f"variance[{j}]" for j in range(M)] + [f"lengthscale[{j}]" for j in range(M)]

    def with_theta(self, theta: ArrayLike) -> Self:
        variance, lengthscale = np.exp(np.asarray(theta, dtype=np.float64)).reshape(2, -1)
        return type(self)(self.groups, lengthscale, variance=variance, units=self.units)

    def scaled(self, factor: float) -> Self:
        return type(self)(self.groups, self.lengthscale, variance=factor * self.variance, units=self.units)

    def over(self, X: Array) -> Evaluate:
        n, M = len(X), len(self.groups)
        A = self.split(X)
        i, j = np.tril_indices(n, -1)  # each pair once: the exponentials are what costs
        S = distances(A, A)[:, i, j]

        def evaluate(theta: Array) -> Pulled:
            variance, lengthscale = np.exp(theta).reshape(2, M)
            P, D = profiles(S / lengthscale[:, None])
            K = np.empty((n, n))
            K[i, j] = K[j, i] = variance @ P
            np.fill_diagonal(K, variance.sum())

            def pull(W: Array) -> Array:
                # ∂K/∂log ℓⱼ is vⱼ times the derivative of the profile in −log r: r is in units of ℓ.
                w = W[i, j] + W[j, i]
                return np.concatenate([variance * (P @ w + np.trace(W)), variance * (D @ w)])

            return K, pull

        return evaluate

    def pull_input(self, X: Array, Z: Array) -> Pulled:
        A, B = self.split(X), self.split(Z)
        scale = self.lengthscale[:, None, None]
        S = distances(A / scale, B / scale)
        P, _ = profiles(S, slope=False)
        K = np.tensordot(self.variance, P, 1)

        def pull(W: Array) -> Array:
            return self.join(self._pulled(W * _slopes(S), A, B), X.shape[1]) / self.units**2

        return K, pull

    def _pulled(self, G: Array, A: Array, B: Array) -> Array:
        """Σ_m G (aₙ − bₘ) · 2v/ℓ², shape (M, n, w), for G (M, n, m): weights times the profile's slope in r²."""
        factor = (2.0 * self.variance / self.lengthscale**2)[:, None, None]
        pulled: Array = factor * (G.sum(axis=-1)[..., None] * A - np.matmul(G, B))
        return pulled

    def to_dict(self) -> dict[str, Any]:
        return {
            "kernel": type(self).__name__,
            "groups": [list(group) for group in self.groups],
            "lengthscale": self.lengthscale.tolist(),
            "variance": self.variance.tolist(),
            "units": self.units.tolist(),
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        return cls(**data)


def _slopes(S: Array) -> Array:
    """Derivative of the Matérn-5/2 profile in r² at s = √5 r."""
    slopes: Array = (-5.0 / 6.0) * (1.0 + S) * np.exp(-S)
    return slopes


class Parts:
    """What each part of an additive Gaussian process contributes to a posterior.

    Points of the parts are given as :meth:`split` returns them, in the kernel's units of distance.

    Parameters
    ----------
    posterior : Posterior
        Of a GP whose kernel is :class:`Additive`.

    >>> from surefoot.belief.gp import GP
    >>> parts = Parts(GP(Additive([(0,), (1,)]), noise=0.1).condition([[0.0, 0.0]], [1.0]))
    >>> mean, std = parts.predict(np.zeros((2, 5, 1)))
    >>> mean.shape, std.shape
    ((2, 5), (2, 5))
    """

    def __init__(self, posterior: Posterior) -> None:
        kernel = posterior.gp.kernel
        if not isinstance(kernel, Additive):
            raise TypeError(f"only a posterior of an Additive kernel has parts, got {kernel!r}")
        self.kernel, self.posterior = kernel, posterior
        self.measured = kernel.split(posterior.X) if posterior.n else np.empty((*kernel.index.shape[:1], 0, 0))

    def split(self, X: ArrayLike) -> Array:
        """Return what each part sees of points (n, d), shape (M, n, w)."""
        return self.kernel.split(X)

    def predict(self, U: Array) -> tuple[Array, Array]:
        """Return mean and standard deviation of every part at its own points U (M, C, w), shape (M, C) each."""
        K, mean = self._mean(U)
        M, C = mean.shape
        part = np.repeat(np.arange(M), C)
        return mean, self._std(K.reshape(M * C, -1), part).reshape(M, C)

    def _mean(self, U: Array) -> tuple[Array, Array]:
        if not self.posterior.n:
            return np.empty((*U.shape[:2], 0)), np.zeros(U.shape[:2])
        K = self.kernel.cross(U, self.measured)
        return K, K @ self.posterior.alpha  # μ⁽ʲ⁾ = k⁽ʲ⁾(u, X) (K + Σ)⁻¹ (y − c)

    def _std(self, K: Array, part: Indices) -> Array:
        """Standard deviations from covariances K (R, n) with the measurements, of the parts ``part`` (R,)."""
        level = self.kernel.variance[part]
        V = K @ self.posterior.inverse.T  # k⁽ʲ⁾(u, u) − k⁽ʲ⁾(u, X) (K + Σ)⁻¹ k⁽ʲ⁾(X, u)
        std: Array = np.sqrt(np.maximum(level - np.vecdot(V, V), NOTHING * level))
        return std

    def best(self, U: Array, width: float) -> tuple[Indices, Array]:
        """Return which of its points U (M, C, w) has the highest bound μ + width · σ in every part, and that bound.

        A deviation is at most that of the prior, so a point whose mean is too low need not have its own computed.

        >>> from surefoot.belief.gp import GP
        >>> parts = Parts(GP(Additive([(0,), (1,)]), noise=0.1).condition([[0.0, 0.0]], [1.0]))
        >>> U = np.linspace(-9.0, 9.0, 7).reshape(1, 7, 1).repeat(2, axis=0)
        >>> mean, std = parts.predict(U)
        >>> rows, values = parts.best(U, 2.0)
        >>> bool((rows == (mean + 2.0 * std).argmax(axis=1)).all())
        True
        """
        K, mean = self._mean(U)
        M, C = mean.shape
        bound = mean + width * np.sqrt(self.kernel.variance)[:, None]
        few = np.argpartition(-mean, min(FEW, C) - 1, axis=1)[:, :FEW]
        known = np.zeros((M, C), dtype=np.bool_)
        np.put_along_axis(known, few, True, axis=1)
        part, row = np.nonzero(known)
        bound[known] = mean[known] + width * self._std(K[part, row], part)
        reached = np.where(known, bound, -np.inf).max(axis=1)
        part, row = np.nonzero(~known & (bound > reached[:, None]))
        bound[part, row] = mean[part, row] + width * self._std(K[part, row], part)
        rows: Indices = bound.argmax(axis=1)
        return rows, bound[np.arange(M), rows]

    def bound(self, x: Array, width: float) -> tuple[float, Array]:
        """Return Σⱼ μ⁽ʲ⁾ + width · σ⁽ʲ⁾ at one point x (d,), and its gradient (d,)."""
        kernel, post = self.kernel, self.posterior
        A = kernel.split(x[None])
        if not post.n:
            return float(width * np.sqrt(kernel.variance).sum()), np.zeros_like(x)
        scale = kernel.lengthscale[:, None, None]
        S = distances(A / scale, self.measured / scale)
        P, _ = profiles(S, slope=False)
        K = kernel.variance[:, None] * P[:, 0]
        V = K @ post.inverse.T
        std = np.sqrt(np.maximum(kernel.variance - np.vecdot(V, V), NOTHING * kernel.variance))
        # ∂(μ + wσ) = Σₙ (αₙ − (w/σ) [(K + Σ)⁻¹k]ₙ) ∂kₙ
        W = post.alpha - (width / std)[:, None] * (V @ post.inverse)
        pulled = kernel._pulled((W * _slopes(S[:, 0]))[:, None], A, self.measured)
        gradient: Array = kernel.join(pulled, x.size)[0] / kernel.units**2
        return float((K @ post.alpha).sum() + width * std.sum()), gradient
