"""The interface of a kernel, and the algebra of kernels: sums, products, multiples, restrictions to some coordinates.

>>> import numpy as np
>>> from surefoot.belief.kernels import SE, Linear
>>> 2.0 * SE(lengthscale=0.5) + Linear().on([1])
(SE(lengthscale=0.5, variance=2.0) + Linear(variance=1.0).on([1]))

The hyper-parameters of a combination are those of its parts, one after the other; so are their gradients.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from inspect import isabstract
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["Active", "Kernel", "Product", "Sum", "Wrapping", "kernel_from_dict"]

Array = NDArray[np.float64]
Pull = Callable[[Array], Array]
Pulled = tuple[Array, Pull]
Evaluate = Callable[[Array], Pulled]


class Kernel(ABC):
    """A positive semi-definite function of two points.

    Subclasses give the matrix, the diagonal, the logarithms of their hyper-parameters and the two pull-backs.

    >>> from surefoot.belief.kernels import SE
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
    def over(self, X: Array) -> Evaluate:
        """Return the map from θ to what :meth:`pull_theta` gives for fixed points X.

        It is made for being called many times: the arrays it hands out are its own, and only valid until the next call.
        """

    def pull_theta(self, X: Array) -> Pulled:
        """Return ``K = k(X, X)`` and the map W ↦ Σₐᵦ Wₐᵦ ∂Kₐᵦ/∂θ, shape (p,), for W of shape (n, n)."""
        return self.over(X)(self.theta)

    @abstractmethod
    def pull_input(self, X: Array, Z: Array) -> Pulled:
        """Return ``K = k(X, Z)`` and the map W ↦ Σⱼ Wᵢⱼ ∂k(xᵢ, zⱼ)/∂xᵢ, shape (n, d)."""

    @abstractmethod
    def scaled(self, factor: float) -> Self:
        """Return the kernel times a positive number, as a kernel of the same shape.

        >>> from surefoot.belief.kernels import SE
        >>> (SE(variance=2.0) * SE(lengthscale=3.0)).scaled(4.0).diag(np.zeros((1, 2)))
        array([8.])
        """

    def diag_gradient(self, X: Array) -> Array:
        """Return the gradient of k(x, x) in x for each row of X, shape (n, d); zero for stationary kernels."""
        return np.zeros_like(X)

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-able description that :func:`kernel_from_dict` reads back."""

    @classmethod
    @abstractmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Rebuild the kernel from :meth:`to_dict`."""

    def on(self, dimensions: Sequence[int]) -> Kernel:
        """Return this kernel restricted to some coordinates.

        >>> from surefoot.belief.kernels import SE
        >>> SE().on([1])(np.array([[0.0, 1.0]]), np.array([[9.0, 1.0]]))
        array([[1.]])
        """
        return Active(self, tuple(int(i) for i in dimensions))

    def __add__(self, other: Kernel) -> Kernel:
        return Sum(self, other)

    def __mul__(self, other: Kernel | float) -> Kernel:
        return Product(self, other) if isinstance(other, Kernel) else self.scaled(float(other))

    __rmul__ = __mul__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Kernel) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash(repr(self.to_dict()))

    def __repr__(self) -> str:
        options = ", ".join(f"{key}={value}" for key, value in self.to_dict().items() if key != "kernel")
        return f"{type(self).__name__}({options})"


def kernel_from_dict(data: dict[str, Any]) -> Kernel:
    """Rebuild any kernel from its ``to_dict()``.

    >>> from surefoot.belief.kernels import Matern
    >>> kernel_from_dict(Matern(2.5, lengthscale=[1.0, 2.0]).to_dict())
    Matern(nu=2.5, lengthscale=[1.0, 2.0], variance=1.0)
    """
    name = data.get("kernel")
    if name not in Kernel.registry:
        known = sorted(key for key, kind in Kernel.registry.items() if key[0] != "_" and not isabstract(kind))
        raise ValueError(f"unknown kernel {name!r}; known are {known}")
    return Kernel.registry[name].from_dict({key: value for key, value in data.items() if key != "kernel"})


class _Pair(Kernel):
    """Two kernels combined."""

    def __init__(self, left: Kernel, right: Kernel) -> None:
        self.left, self.right = left, right

    @abstractmethod
    def _combine(self, left: Pulled, right: Pulled, join: Callable[[Array, Array], Array]) -> Pulled:
        """Combine the matrices and the pull-backs of the parts; ``join`` puts two gradients together."""

    @property
    def theta(self) -> Array:
        return np.concatenate([self.left.theta, self.right.theta])

    @property
    def names(self) -> list[str]:
        return [f"left.{name}" for name in self.left.names] + [f"right.{name}" for name in self.right.names]

    def with_theta(self, theta: ArrayLike) -> Self:
        values, cut = np.asarray(theta), self.left.theta.size
        return type(self)(self.left.with_theta(values[:cut]), self.right.with_theta(values[cut:]))

    def over(self, X: Array) -> Evaluate:
        left, right, cut = self.left.over(X), self.right.over(X), self.left.theta.size
        return lambda theta: self._combine(left(theta[:cut]), right(theta[cut:]), lambda a, b: np.concatenate([a, b]))

    def pull_input(self, X: Array, Z: Array) -> Pulled:
        return self._combine(self.left.pull_input(X, Z), self.right.pull_input(X, Z), np.add)

    def to_dict(self) -> dict[str, Any]:
        return {"kernel": type(self).__name__, "left": self.left.to_dict(), "right": self.right.to_dict()}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        return cls(kernel_from_dict(data["left"]), kernel_from_dict(data["right"]))


class Sum(_Pair):
    """The sum of two kernels, written ``a + b``.

    >>> from surefoot.belief.kernels import SE, ConstantKernel
    >>> (SE() + ConstantKernel(2.0)).diag(np.zeros((1, 1)))
    array([3.])
    """

    def __repr__(self) -> str:
        return f"({self.left} + {self.right})"

    def __call__(self, X: Any, Z: Any | None = None) -> Any:
        return self.left(X, Z) + self.right(X, Z)

    def diag(self, X: Any) -> Any:
        return self.left.diag(X) + self.right.diag(X)

    def diag_gradient(self, X: Array) -> Array:
        return self.left.diag_gradient(X) + self.right.diag_gradient(X)

    def scaled(self, factor: float) -> Self:
        return type(self)(self.left.scaled(factor), self.right.scaled(factor))

    def _combine(self, left: Pulled, right: Pulled, join: Callable[[Array, Array], Array]) -> Pulled:
        (K, pull), (L, pull_right) = left, right
        return K + L, lambda W: join(pull(W), pull_right(W))


class Product(_Pair):
    """The product of two kernels, written ``a * b``.

    >>> from surefoot.belief.kernels import SE, ConstantKernel
    >>> (SE() * ConstantKernel(2.0)).diag(np.zeros((1, 1)))
    array([2.])
    """

    def __repr__(self) -> str:
        return f"{self.left} * {self.right}"

    def __call__(self, X: Any, Z: Any | None = None) -> Any:
        return self.left(X, Z) * self.right(X, Z)

    def diag(self, X: Any) -> Any:
        return self.left.diag(X) * self.right.diag(X)

    def diag_gradient(self, X: Array) -> Array:
        left, right = self.left, self.right
        gradient: Array = left.diag(X)[:, None] * right.diag_gradient(X)
        gradient += right.diag(X)[:, None] * left.diag_gradient(X)
        return gradient

    def scaled(self, factor: float) -> Self:
        return type(self)(self.left.scaled(factor), self.right)

    def _combine(self, left: Pulled, right: Pulled, join: Callable[[Array, Array], Array]) -> Pulled:
        (K, pull), (L, pull_right) = left, right
        return K * L, lambda W: join(pull(W * L), pull_right(W * K))


class Wrapping(Kernel):
    """Base of the kernels made of one other kernel, whose hyper-parameters are theirs.

    >>> from surefoot.belief.kernels import SE
    >>> SE(2.0).on([0]).names
    ['variance', 'lengthscale']
    """

    inner: Kernel

    @property
    def theta(self) -> Array:
        return self.inner.theta

    @property
    def names(self) -> list[str]:
        return self.inner.names


class Active(Wrapping):
    """A kernel that sees some coordinates only, written ``k.on([0, 2])``.

    >>> from surefoot.belief.kernels import SE
    >>> SE().on([0, 2]).dimensions
    (0, 2)
    """

    def __init__(self, inner: Kernel, dimensions: tuple[int, ...]) -> None:
        if not dimensions or len(set(dimensions)) != len(dimensions) or min(dimensions) < 0:
            raise ValueError(f"active dimensions must be distinct and non-negative, got {dimensions}")
        self.inner, self.dimensions = inner, dimensions

    def __repr__(self) -> str:
        return f"{self.inner}.on({list(self.dimensions)})"

    def _take(self, X: Any) -> Any:
        if max(self.dimensions) >= X.shape[1]:
            raise ValueError(f"active dimension {max(self.dimensions)} but the points have {X.shape[1]} columns")
        return X[:, list(self.dimensions)]

    def __call__(self, X: Any, Z: Any | None = None) -> Any:
        return self.inner(self._take(X), None if Z is None else self._take(Z))

    def diag(self, X: Any) -> Any:
        return self.inner.diag(self._take(X))

    def with_theta(self, theta: ArrayLike) -> Self:
        return type(self)(self.inner.with_theta(theta), self.dimensions)

    def scaled(self, factor: float) -> Self:
        return type(self)(self.inner.scaled(factor), self.dimensions)

    def _spread(self, gradient: Array, columns: int) -> Array:
        full = np.zeros((len(gradient), columns))
        full[:, list(self.dimensions)] = gradient
        return full

    def diag_gradient(self, X: Array) -> Array:
        return self._spread(self.inner.diag_gradient(self._take(X)), X.shape[1])

    def over(self, X: Array) -> Evaluate:
        return self.inner.over(self._take(X))

    def pull_input(self, X: Array, Z: Array) -> Pulled:
        K, pull = self.inner.pull_input(self._take(X), self._take(Z))
        return K, lambda W: self._spread(pull(W), X.shape[1])

    def to_dict(self) -> dict[str, Any]:
        return {"kernel": type(self).__name__, "inner": self.inner.to_dict(), "dimensions": list(self.dimensions)}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        return cls(kernel_from_dict(data["inner"]), tuple(data["dimensions"]))
