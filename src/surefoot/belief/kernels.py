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

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from array_api_compat import array_namespace, is_numpy_array
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.distance import cdist

__all__ = ["SE", "Constant", "Kernel", "Linear", "Matern", "RationalQuadratic", "Stationary", "kernel_from_dict"]

Array = NDArray[np.float64]
Pull = Callable[[Array], Array]


class Kernel(ABC):
    """A positive semi-definite function of two points.

    Subclasses give the matrix, the diagonal, the logarithms of their hyper-parameters and the two pull-backs.

    >>> SE(lengthscale=2.0).names
    ['variance', 'lengthscale']
    """

    registry: ClassVar[dict[str, type[Kernel]]] = {}

    def __init_subclass__(cls) -> None:
        Kernel.registry[cls.__name__] = cls

    @abstractmethod
    def __call__(self, X: Any, Z: Any | None = None) -> Any:
        """Return the matrix of shape (n, m) between the rows of X (n, d) and of Z (m, d)."""

    @abstractmethod
    def diag(self, X: Any) -> Any:
        """Return k(x, x) for each row of X, shape (n,)."""

    @property
    @abstractmethod
    def theta(self) -> Array:
        """Logarithms of the hyper-parameters, shape (p,)."""

    @property
    @abstractmethod
    def names(self) -> list[str]:
        """One name per entry of ``theta``."""

    @abstractmethod
    def with_theta(self, theta: ArrayLike) -> Self:
        """Return the same kernel with other (log) hyper-parameters."""

    @abstractmethod
    def pull_theta(self, X: Array) -> tuple[Array, Pull]:
        """Return ``K = k(X, X)`` and the map W ↦ Σₐᵦ Wₐᵦ ∂Kₐᵦ/∂θ, shape (p,), for symmetric W."""

    @abstractmethod
    def pull_input(self, X: Array, Z: Array) -> tuple[Array, Pull]:
        """Return ``K = k(X, Z)`` and the map W ↦ Σⱼ Wᵢⱼ ∂k(xᵢ, zⱼ)/∂xᵢ, shape (n, d)."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-able description that :func:`kernel_from_dict` reads back."""

    @classmethod
    @abstractmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Rebuild the kernel from :meth:`to_dict`."""

    def on(self, dimensions: Sequence[int]) -> Kernel:
        """Return this kernel restricted to some coordinates.

        >>> SE().on([1])(np.array([[0.0, 1.0]]), np.array([[9.0, 1.0]]))
        array([[1.]])
        """
        return _Active(self, tuple(int(i) for i in dimensions))

    def __add__(self, other: Kernel) -> Kernel:
        return _Sum(self, other)

    def __mul__(self, other: Kernel) -> Kernel:
        return _Product(self, other)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Kernel) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash(repr(self.to_dict()))

    def __repr__(self) -> str:
        options = ", ".join(f"{key}={value}" for key, value in self.to_dict().items() if key != "kernel")
        return f"{type(self).__name__}({options})"


def kernel_from_dict(data: dict[str, Any]) -> Kernel:
    """Rebuild any kernel from its ``to_dict()``.

    >>> kernel_from_dict(Matern(2.5, lengthscale=[1.0, 2.0]).to_dict())
    Matern(nu=2.5, lengthscale=[1.0, 2.0], variance=1.0)
    """
    name = data.get("kernel")
    if name not in Kernel.registry:
        raise ValueError(f"unknown kernel {name!r}; known are {sorted(k for k in Kernel.registry if k[0] != '_')}")
    return Kernel.registry[name].from_dict({key: value for key, value in data.items() if key != "kernel"})


def _positive(value: ArrayLike, what: str) -> Array:
    array = np.array(value, dtype=np.float64)
    if array.ndim > 1 or array.size == 0 or not (np.isfinite(array).all() and (array > 0).all()):
        raise ValueError(f"{what} must be positive and finite (a number or a vector), got {value!r}")
    array.setflags(write=False)
    return array


def _squared_distance(X: Any, Z: Any) -> Any:
    """Σᵢ (xᵢ − zᵢ)², without the cancellation of the expanded square."""
    if is_numpy_array(X):
        return cdist(X, Z, "sqeuclidean")
    total = (X[:, None, 0] - Z[None, :, 0]) ** 2
    for i in range(1, X.shape[1]):
        total += (X[:, None, i] - Z[None, :, i]) ** 2
    return total


class Stationary(Kernel):
    """Base of the kernels that depend on the scaled squared distance only.

    Parameters
    ----------
    lengthscale : float or sequence of float
        One length for all coordinates, or one per coordinate (ARD).
    variance : float
        Signal variance, k(x, x).
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

    def _scaled(self, X: Any) -> Any:
        if self.lengthscale.ndim and self.lengthscale.size != X.shape[1]:
            raise ValueError(
                f"kernel has {self.lengthscale.size} length-scales but the points have {X.shape[1]} columns"
            )
        if is_numpy_array(X):
            return X / self.lengthscale
        return X / array_namespace(X).asarray(self.lengthscale, dtype=X.dtype, device=X.device)

    def _r2(self, X: Any, Z: Any | None) -> Any:
        A = self._scaled(X)
        return _squared_distance(A, A if Z is None else self._scaled(Z))

    def __call__(self, X: Any, Z: Any | None = None) -> Any:
        return self.variance * self.profile(self._r2(X, Z))

    def diag(self, X: Any) -> Any:
        xp = array_namespace(X)
        return xp.full(X.shape[0], self.variance, dtype=X.dtype, device=None if is_numpy_array(X) else X.device)

    @property
    def theta(self) -> Array:
        return np.log(np.concatenate([[self.variance], np.atleast_1d(self.lengthscale)]))

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

    def pull_theta(self, X: Array) -> tuple[Array, Pull]:
        A = self._scaled(X - X.mean(axis=0))
        r2 = _squared_distance(A, A)
        K = self.variance * self.profile(r2)
        slope = self.slope(r2)

        def pull(W: Array) -> Array:
            # ∂K/∂log ℓᵢ = −2 (xᵢ − zᵢ)²/ℓᵢ² · variance · slope; the square is expanded into matrix products.
            G = W * slope
            lengths = -4.0 * self.variance * (G.sum(axis=1) @ (A * A) - np.einsum("ai,ai->i", A, G @ A))
            if self.lengthscale.ndim == 0:
                lengths = lengths.sum(keepdims=True)
            return np.concatenate([[np.vdot(W, K)], lengths, self._pull_shape(W, r2)])

        return K, pull

    def _pull_shape(self, W: Array, r2: Array) -> Array:
        """Gradient in further parameters of the profile; none by default."""
        return np.empty(0)

    def pull_input(self, X: Array, Z: Array) -> tuple[Array, Pull]:
        A, B = self._scaled(X), self._scaled(Z)
        r2 = _squared_distance(A, B)
        slope = self.slope(r2)

        def pull(W: Array) -> Array:
            G = W * slope
            return 2.0 * self.variance * (G.sum(axis=1)[:, None] * A - G @ B) / self.lengthscale

        return self.variance * self.profile(r2), pull

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


class Constant(Kernel):
    """A constant: all values share one unknown offset of this variance.

    >>> Constant(4.0)(np.zeros((1, 1)), np.ones((1, 1)))
    array([[4.]])
    """

    def __init__(self, variance: float = 1.0) -> None:
        self.variance = float(_positive(variance, "variance"))

    def __call__(self, X: Any, Z: Any | None = None) -> Any:
        shape = (X.shape[0], (X if Z is None else Z).shape[0])
        device = None if is_numpy_array(X) else X.device
        return array_namespace(X).full(shape, self.variance, dtype=X.dtype, device=device)

    def diag(self, X: Any) -> Any:
        return self(X, X[:1, :])[:, 0]

    @property
    def theta(self) -> Array:
        return np.log(np.array([self.variance]))

    @property
    def names(self) -> list[str]:
        return ["variance"]

    def with_theta(self, theta: ArrayLike) -> Self:
        return type(self)(float(np.exp(np.asarray(theta)[0])))

    def pull_theta(self, X: Array) -> tuple[Array, Pull]:
        K = self(X)
        return K, lambda W: np.array([np.vdot(W, K)])

    def pull_input(self, X: Array, Z: Array) -> tuple[Array, Pull]:
        return self(X, Z), lambda W: np.zeros_like(X)

    def to_dict(self) -> dict[str, Any]:
        return {"kernel": type(self).__name__, "variance": self.variance}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        return cls(**data)


class Linear(Constant):
    """Linear: variance · xᵀz. Functions that are planes through the origin; add a :class:`Constant` for an offset.

    >>> Linear(2.0)(np.array([[1.0, 2.0]]), np.array([[3.0, 1.0]]))
    array([[10.]])
    """

    def __call__(self, X: Any, Z: Any | None = None) -> Any:
        return self.variance * (X @ (X if Z is None else Z).T)

    def diag(self, X: Any) -> Any:
        return self.variance * array_namespace(X).sum(X * X, axis=1)

    def pull_input(self, X: Array, Z: Array) -> tuple[Array, Pull]:
        return self(X, Z), lambda W: self.variance * (W @ Z)


class _Pair(Kernel):
    """Two kernels combined."""

    def __init__(self, left: Kernel, right: Kernel) -> None:
        self.left, self.right = left, right

    @property
    def theta(self) -> Array:
        return np.concatenate([self.left.theta, self.right.theta])

    @property
    def names(self) -> list[str]:
        return [f"left.{name}" for name in self.left.names] + [f"right.{name}" for name in self.right.names]

    def with_theta(self, theta: ArrayLike) -> Self:
        values, cut = np.asarray(theta), self.left.theta.size
        return type(self)(self.left.with_theta(values[:cut]), self.right.with_theta(values[cut:]))

    def to_dict(self) -> dict[str, Any]:
        return {"kernel": type(self).__name__, "left": self.left.to_dict(), "right": self.right.to_dict()}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        return cls(kernel_from_dict(data["left"]), kernel_from_dict(data["right"]))


class _Sum(_Pair):
    def __call__(self, X: Any, Z: Any | None = None) -> Any:
        return self.left(X, Z) + self.right(X, Z)

    def diag(self, X: Any) -> Any:
        return self.left.diag(X) + self.right.diag(X)

    def pull_theta(self, X: Array) -> tuple[Array, Pull]:
        (K, pull), (L, pull_right) = self.left.pull_theta(X), self.right.pull_theta(X)
        return K + L, lambda W: np.concatenate([pull(W), pull_right(W)])

    def pull_input(self, X: Array, Z: Array) -> tuple[Array, Pull]:
        (K, pull), (L, pull_right) = self.left.pull_input(X, Z), self.right.pull_input(X, Z)
        return K + L, lambda W: pull(W) + pull_right(W)


class _Product(_Pair):
    def __call__(self, X: Any, Z: Any | None = None) -> Any:
        return self.left(X, Z) * self.right(X, Z)

    def diag(self, X: Any) -> Any:
        return self.left.diag(X) * self.right.diag(X)

    def pull_theta(self, X: Array) -> tuple[Array, Pull]:
        (K, pull), (L, pull_right) = self.left.pull_theta(X), self.right.pull_theta(X)
        return K * L, lambda W: np.concatenate([pull(W * L), pull_right(W * K)])

    def pull_input(self, X: Array, Z: Array) -> tuple[Array, Pull]:
        (K, pull), (L, pull_right) = self.left.pull_input(X, Z), self.right.pull_input(X, Z)
        return K * L, lambda W: pull(W * L) + pull_right(W * K)


class _Active(Kernel):
    """A kernel that sees some coordinates only."""

    def __init__(self, inner: Kernel, dimensions: tuple[int, ...]) -> None:
        if not dimensions or len(set(dimensions)) != len(dimensions) or min(dimensions) < 0:
            raise ValueError(f"active dimensions must be distinct and non-negative, got {dimensions}")
        self.inner, self.dimensions = inner, dimensions

    def _take(self, X: Any) -> Any:
        if max(self.dimensions) >= X.shape[1]:
            raise ValueError(f"active dimension {max(self.dimensions)} but the points have {X.shape[1]} columns")
        return X[:, list(self.dimensions)]

    def __call__(self, X: Any, Z: Any | None = None) -> Any:
        return self.inner(self._take(X), None if Z is None else self._take(Z))

    def diag(self, X: Any) -> Any:
        return self.inner.diag(self._take(X))

    @property
    def theta(self) -> Array:
        return self.inner.theta

    @property
    def names(self) -> list[str]:
        return self.inner.names

    def with_theta(self, theta: ArrayLike) -> Self:
        return type(self)(self.inner.with_theta(theta), self.dimensions)

    def pull_theta(self, X: Array) -> tuple[Array, Pull]:
        return self.inner.pull_theta(self._take(X))

    def pull_input(self, X: Array, Z: Array) -> tuple[Array, Pull]:
        K, pull = self.inner.pull_input(self._take(X), self._take(Z))

        def spread(W: Array) -> Array:
            gradient = np.zeros_like(X)
            gradient[:, list(self.dimensions)] = pull(W)
            return gradient

        return K, spread

    def to_dict(self) -> dict[str, Any]:
        return {"kernel": type(self).__name__, "inner": self.inner.to_dict(), "dimensions": list(self.dimensions)}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        return cls(kernel_from_dict(data["inner"]), tuple(data["dimensions"]))
