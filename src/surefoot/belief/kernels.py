"""Kernels: how strongly the values at two points are tied together.

A kernel is an immutable value. Calling it gives a matrix, ``k(X, Z)`` of shape (n, m); ``k(X)`` is ``k(X, X)`` and
``k.diag(X)`` its diagonal. Kernels add, multiply, and can be restricted to some coordinates with ``k.on([0, 2])``.

>>> import numpy as np
>>> k = SE(lengthscale=0.5) + Matern(1.5, lengthscale=2.0).on([0])
>>> k(np.zeros((1, 2)), np.zeros((3, 2))).shape
(1, 3)

Stationary kernels are functions of the scaled squared distance r² = Σᵢ (xᵢ − zᵢ)²/ℓᵢ². A scalar ``lengthscale`` is
shared by all coordinates, a vector gives each its own (ARD).

Gradients are *pulled back*, never materialized: with a matrix of weights W the caller gets Σ W ∘ ∂K in one
matrix product per call, in O(n m d) instead of n m d numbers held in memory.

* :meth:`Kernel.pull_theta` differentiates in the log hyper-parameters (used by marginal likelihoods),
* :meth:`Kernel.pull_input` differentiates in the first argument (used by acquisition maximizers).

Everything that evaluates a kernel works on NumPy arrays and on torch tensors alike; gradients are NumPy only.

References: Rasmussen & Williams 2006, chapter 4; the Matérn formula with its exponent ν on the middle factor.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Self

import numpy as np
from array_api_compat import array_namespace, is_numpy_array
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.distance import cdist

from surefoot.belief.algebra import Evaluate, Kernel, Pulled, kernel_from_dict
from surefoot.moved import renamed

__all__ = ["SE", "ConstantKernel", "Kernel", "Linear", "Matern", "RationalQuadratic", "Stationary", "kernel_from_dict"]
__getattr__ = renamed(__name__, {"Constant": "ConstantKernel"})

Array = NDArray[np.float64]


def _positive(value: ArrayLike, what: str) -> Array:
    array = np.array(value, dtype=np.float64)
    if array.ndim > 1 or array.size == 0 or not (np.isfinite(array).all() and (array > 0).all()):
        raise ValueError(f"{what} must be positive and finite (a number or a vector), got {value!r}")
    array.setflags(write=False)
    return array


def _squared_distance(X: Any, Z: Any, lengths: list[float]) -> Any:
    """Σᵢ (xᵢ − zᵢ)²/ℓᵢ² of tensors, without the cancellation of the expanded square.

    One coordinate after the other, by Python numbers: a device is sent no array and asked for none, so it never waits.
    """
    total: Any = 0.0
    for i, length in enumerate(lengths):
        difference = X[:, None, i] - Z[None, :, i]
        difference /= length
        difference *= difference
        total = total + difference if i else difference
    return total


def _full(X: Any, shape: tuple[int, ...], value: float) -> Any:
    """A constant array of the kind of X."""
    if is_numpy_array(X):
        return np.full(shape, value)
    return array_namespace(X).full(shape, value, dtype=X.dtype, device=X.device)


class Stationary(Kernel):
    """Base of the kernels that depend on the scaled squared distance only.

    Parameters
    ----------
    lengthscale : float or sequence of float
        One length for all coordinates, or one per coordinate (ARD).
    variance : float
        Signal variance, k(x, x).

    >>> SE(lengthscale=2.0, variance=3.0).diag(np.zeros((1, 1)))
    array([3.])
    """

    def __init__(self, lengthscale: ArrayLike = 1.0, *, variance: float = 1.0) -> None:
        self.lengthscale = _positive(lengthscale, "lengthscale")
        self.variance = float(_positive(variance, "variance"))

    @abstractmethod
    def profile(self, r2: Any) -> Any:
        """Correlation as a function of r²."""

    @abstractmethod
    def slope(self, r2: Array) -> Array:
        """Derivative of :meth:`profile` in r²."""

    @abstractmethod
    def frequencies(self, count: int, dimension: int, rng: np.random.Generator) -> Array:
        """Draw from the spectral density, shape (count, dimension): E cos ωᵀ(x − z) = k(x, z)/variance."""

    def _check(self, X: Any) -> None:
        if self.lengthscale.ndim and self.lengthscale.size != X.shape[1]:
            raise ValueError(
                f"kernel has {self.lengthscale.size} length-scales but the points have {X.shape[1]} columns"
            )

    def _scaled(self, X: Array) -> Array:
        self._check(X)
        return X / self.lengthscale

    def _r2(self, X: Any, Z: Any | None) -> Any:
        if is_numpy_array(X):
            A = self._scaled(X)
            return cdist(A, A if Z is None else self._scaled(Z), "sqeuclidean")
        self._check(X)
        return _squared_distance(X, X if Z is None else Z, np.broadcast_to(self.lengthscale, X.shape[1]).tolist())

    def __call__(self, X: Any, Z: Any | None = None) -> Any:
        K = self.profile(self._r2(X, Z))
        K *= self.variance
        return K

    def diag(self, X: Any) -> Any:
        return _full(X, (X.shape[0],), self.variance)

    @property
    def theta(self) -> Array:
        theta: Array = np.log(np.concatenate([[self.variance], np.atleast_1d(self.lengthscale)]))
        return theta

    @property
    def names(self) -> list[str]:
        n = self.lengthscale.size
        return [
            "variance",
            *(["lengthscale"] if self.lengthscale.ndim == 0 else [f"lengthscale[{i}]" for i in range(n)]),
        ]

    def _arguments(self, theta: ArrayLike) -> dict[str, Any]:
        values = np.exp(np.asarray(theta, dtype=np.float64))
        scale = values[1 : 1 + self.lengthscale.size]
        return {"lengthscale": scale if self.lengthscale.ndim else scale[0], "variance": values[0]}

    def with_theta(self, theta: ArrayLike) -> Self:
        return type(self)(**self._arguments(theta))

    def _at(self, theta: Array) -> Self:
        """The same as :meth:`with_theta`, unchecked: a fit calls often."""
        twin = object.__new__(type(self))
        twin.__dict__.update(self._arguments(theta))
        return twin

    def scaled(self, factor: float) -> Self:
        data = self.to_dict()
        del data["kernel"]
        return self.from_dict({**data, "variance": factor * self.variance})

    def over(self, X: Array) -> Evaluate:
        self._check(X)
        centered = X - X.mean(axis=0)
        # A fit calls often: fresh memory would cost more than the arithmetic.
        r2, K, slope, G = np.empty((4, len(X), len(X)))

        def evaluate(theta: Array) -> Pulled:
            kernel = self._at(theta)
            A = centered / kernel.lengthscale
            cdist(A, A, "sqeuclidean", out=r2)
            kernel._fill(r2, K, slope)
            np.multiply(K, kernel.variance, out=K)

            def pull(W: Array) -> Array:
                # ∂K/∂log ℓᵢ = −2 (xᵢ − zᵢ)²/ℓᵢ² · variance · slope; the square is expanded into matrix products.
                np.multiply(W, slope, out=G)
                total = (G.sum(axis=0) + G.sum(axis=1)) @ (A * A)
                lengths = -2.0 * kernel.variance * (total - 2.0 * np.einsum("ai,ai->i", A, G @ A))
                if kernel.lengthscale.ndim == 0:
                    lengths = lengths.sum(keepdims=True)
                return np.concatenate([[np.vdot(W, K)], lengths, kernel._pull_shape(W, r2)])

            return K, pull

        return evaluate

    def _fill(self, r2: Array, profile: Array, slope: Array) -> None:
        """Write :meth:`profile` and :meth:`slope` of r² into arrays; a subclass may share work between the two."""
        profile[...] = self.profile(r2)
        slope[...] = self.slope(r2)

    def _pull_shape(self, W: Array, r2: Array) -> Array:
        """Gradient in further parameters of the profile; none by default."""
        return np.empty(0)

    def pull_input(self, X: Array, Z: Array) -> Pulled:
        A, B = self._scaled(X), self._scaled(Z)
        r2 = cdist(A, B, "sqeuclidean")
        K, slope = np.empty((2, *r2.shape))
        self._fill(r2, K, slope)
        K *= self.variance

        def pull(W: Array) -> Array:
            G = W * slope
            gradient: Array = (G.sum(axis=1)[:, None] * A - G @ B) * (2.0 * self.variance / self.lengthscale)
            return gradient

        return K, pull

    def to_dict(self) -> dict[str, Any]:
        return {"kernel": type(self).__name__, "lengthscale": self.lengthscale.tolist(), "variance": self.variance}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        return cls(**data)


class SE(Stationary):
    """Squared exponential: variance · exp(−r²/2). Infinitely smooth functions.

    >>> float(SE(lengthscale=1.0)(np.array([[0.0]]), np.array([[1.0]]))[0, 0])
    0.606530659...
    """

    def profile(self, r2: Any) -> Any:
        return array_namespace(r2).exp(-0.5 * r2)

    def slope(self, r2: Array) -> Array:
        return -0.5 * np.exp(-0.5 * r2)

    def _fill(self, r2: Array, profile: Array, slope: Array) -> None:
        np.multiply(r2, -0.5, out=profile)
        np.exp(profile, out=profile)
        np.multiply(profile, -0.5, out=slope)

    def frequencies(self, count: int, dimension: int, rng: np.random.Generator) -> Array:
        return rng.standard_normal((count, dimension)) / self.lengthscale


class Matern(Stationary):
    """Matérn kernel with smoothness ν = 1/2, 3/2 or 5/2: functions with ν − 1/2 derivatives.

    Parameters
    ----------
    nu : float
        0.5, 1.5 or 2.5.
    lengthscale, variance
        As in :class:`Stationary`.

    >>> k = Matern(2.5, lengthscale=[1.0, 3.0])
    >>> float(k(np.array([[0.0, 0.0]]), np.array([[1.0, 0.0]]))[0, 0])
    0.523994108...
    """

    def __init__(self, nu: float = 2.5, lengthscale: ArrayLike = 1.0, *, variance: float = 1.0) -> None:
        super().__init__(lengthscale, variance=variance)
        if nu not in (0.5, 1.5, 2.5):
            raise ValueError(f"nu must be 0.5, 1.5 or 2.5, got {nu!r}")
        self.nu = float(nu)

    def profile(self, r2: Any) -> Any:
        xp = array_namespace(r2)
        s = xp.sqrt(2.0 * self.nu * r2)
        if self.nu == 0.5:
            return xp.exp(-s)
        if self.nu == 1.5:
            return (1.0 + s) * xp.exp(-s)
        return (1.0 + s + s * s / 3.0) * xp.exp(-s)

    def slope(self, r2: Array) -> Array:
        s = np.sqrt(2.0 * self.nu * r2)
        if self.nu == 0.5:  # not differentiable at r = 0; the subgradient 0 is as good as any
            return np.where(s > 0, -0.5 * np.exp(-s) / np.where(s > 0, s, 1.0), 0.0)
        if self.nu == 1.5:
            return -1.5 * np.exp(-s)
        return (-5.0 / 6.0) * (1.0 + s) * np.exp(-s)

    def _fill(self, r2: Array, profile: Array, slope: Array) -> None:
        if self.nu == 0.5:
            return super()._fill(r2, profile, slope)
        s, e = (profile, slope) if self.nu == 1.5 else (slope, profile)  # the arrays double as work space
        np.sqrt(np.multiply(r2, 2.0 * self.nu, out=s), out=s)
        np.exp(np.negative(s, out=e), out=e)
        s += 1.0
        s *= e
        if self.nu == 1.5:  # s is now (1 + s) e⁻ˢ, the profile
            slope *= -1.5
        else:  # here the slope but for a factor; the profile has (s²/3) e⁻ˢ more
            profile *= r2
            profile *= 5.0 / 3.0
            profile += slope
            slope *= -5.0 / 6.0
        return None

    def frequencies(self, count: int, dimension: int, rng: np.random.Generator) -> Array:
        # The spectral density is a multivariate Student t with 2ν degrees of freedom.
        normal = rng.standard_normal((count, dimension))
        chi2 = rng.chisquare(2.0 * self.nu, size=(count, 1))
        return normal * np.sqrt(2.0 * self.nu / chi2) / self.lengthscale

    def _arguments(self, theta: ArrayLike) -> dict[str, Any]:
        return {"nu": self.nu, **super()._arguments(theta)}

    def to_dict(self) -> dict[str, Any]:
        data = super().to_dict()
        return {"kernel": data.pop("kernel"), "nu": self.nu, **data}


class RationalQuadratic(Stationary):
    """Rational quadratic: variance · (1 + r²/2α)^(−α). A mixture of SE kernels of many length-scales.

    >>> float(RationalQuadratic(alpha=1.0)(np.array([[0.0]]), np.array([[1.0]]))[0, 0])
    0.666666666...
    """

    def __init__(self, lengthscale: ArrayLike = 1.0, *, alpha: float = 1.0, variance: float = 1.0) -> None:
        super().__init__(lengthscale, variance=variance)
        self.alpha = float(_positive(alpha, "alpha"))

    def profile(self, r2: Any) -> Any:
        return (1.0 + r2 / (2.0 * self.alpha)) ** (-self.alpha)

    def slope(self, r2: Array) -> Array:
        return -0.5 * (1.0 + r2 / (2.0 * self.alpha)) ** (-self.alpha - 1.0)

    def frequencies(self, count: int, dimension: int, rng: np.random.Generator) -> Array:
        # The kernel is SE with a Gamma(α, α) distributed precision.
        precision = rng.gamma(self.alpha, 1.0 / self.alpha, size=(count, 1))
        return rng.standard_normal((count, dimension)) * np.sqrt(precision) / self.lengthscale

    @property
    def theta(self) -> Array:
        return np.append(super().theta, np.log(self.alpha))

    @property
    def names(self) -> list[str]:
        return [*super().names, "alpha"]

    def _arguments(self, theta: ArrayLike) -> dict[str, Any]:
        return {**super()._arguments(theta), "alpha": float(np.exp(np.asarray(theta)[-1]))}

    def _pull_shape(self, W: Array, r2: Array) -> Array:
        u = r2 / (2.0 * self.alpha)
        slope = self.variance * self.alpha * self.profile(r2) * (u / (1.0 + u) - np.log1p(u))
        return np.array([np.vdot(W, slope)])

    def to_dict(self) -> dict[str, Any]:
        return {**super().to_dict(), "alpha": self.alpha}


class ConstantKernel(Kernel):
    """A constant: all values share one unknown offset of this variance.

    >>> ConstantKernel(4.0)(np.zeros((1, 1)), np.ones((1, 1)))
    array([[4.]])
    """

    def __init__(self, variance: float = 1.0) -> None:
        self.variance = float(_positive(variance, "variance"))

    def __call__(self, X: Any, Z: Any | None = None) -> Any:
        return _full(X, (X.shape[0], (X if Z is None else Z).shape[0]), self.variance)

    def diag(self, X: Any) -> Any:
        return _full(X, (X.shape[0],), self.variance)

    @property
    def theta(self) -> Array:
        theta: Array = np.log(np.array([self.variance]))
        return theta

    @property
    def names(self) -> list[str]:
        return ["variance"]

    def with_theta(self, theta: ArrayLike) -> Self:
        return type(self)(float(np.exp(np.asarray(theta)[0])))

    def scaled(self, factor: float) -> Self:
        return type(self)(factor * self.variance)

    def over(self, X: Array) -> Evaluate:
        shape = type(self)(1.0)(X)

        def evaluate(theta: Array) -> Pulled:
            K = np.exp(theta[0]) * shape
            return K, lambda W: np.array([np.vdot(W, K)])

        return evaluate

    def pull_input(self, X: Array, Z: Array) -> Pulled:
        return self(X, Z), lambda W: np.zeros_like(X)

    def to_dict(self) -> dict[str, Any]:
        name = "Constant" if type(self) is ConstantKernel else type(self).__name__  # as it was stored before
        return {"kernel": name, "variance": self.variance}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        return cls(**data)


Kernel.registry["Constant"] = ConstantKernel


class Linear(ConstantKernel):
    """Linear: variance · xᵀz. Functions that are planes through the origin; a :class:`ConstantKernel` adds an offset.

    >>> Linear(2.0)(np.array([[1.0, 2.0]]), np.array([[3.0, 1.0]]))
    array([[10.]])
    """

    def __call__(self, X: Any, Z: Any | None = None) -> Any:
        return self.variance * (X @ (X if Z is None else Z).T)

    def diag(self, X: Any) -> Any:
        return self.variance * array_namespace(X).sum(X * X, axis=1)

    def diag_gradient(self, X: Array) -> Array:
        return 2.0 * self.variance * X

    def pull_input(self, X: Array, Z: Array) -> Pulled:
        return self(X, Z), lambda W: self.variance * (W @ Z)
