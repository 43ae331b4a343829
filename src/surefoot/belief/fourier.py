"""Random Fourier features: a stationary Gaussian process as a linear model with finitely many weights.

The kernel of a stationary process is the average of cos ωᵀ(x − z) over its spectral density (Bochner's theorem).
With M features φ(x) made of frequencies drawn from that density, φ(x)ᵀφ(z) ≈ k(x, z) with an error of order M^(−½),
and f(x) = φ(x)ᵀw with w ~ N(0, I) is nearly a draw of the process: a function to store, to send, to evaluate anywhere.

>>> import numpy as np
>>> from surefoot.belief import SE
>>> rng = np.random.default_rng(0)
>>> features = FourierFeatures(SE(lengthscale=0.5), dimension=2, count=2000, rng=rng)
>>> X = rng.random((5, 2))
>>> bool(abs(features(X) @ features(X).T - SE(lengthscale=0.5)(X)).max() < 0.05)
True

Two kinds of features are in use:

* ``"cos_sin"``: M/2 frequencies, φ = √(2v/M) [cos ωᵀx, sin ωᵀx]; here φ(x)ᵀφ(x) is exactly the signal variance v,
* ``"cos_phase"``: M frequencies and phases b uniform on [0, 2π], φ = √(2v/M) cos(ωᵀx + b).

``normalize`` scales φ(x) to length √v at every x, so that the prior variance is exact for the second kind too.

Sums and products of stationary kernels, constants and active coordinates have spectral densities too: a sum mixes the
frequencies of its parts, a product adds them.

References: Rahimi & Recht 2007; Sutherland & Schneider 2015 (the two kinds compared).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from array_api_compat import array_namespace, is_numpy_array
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from surefoot.arguments import one_of
from surefoot.belief.algebra import Active, Product, Sum
from surefoot.belief.kernels import ConstantKernel, Kernel, Linear, Stationary

__all__ = ["FourierFeatures", "WeightPosterior"]

Array = NDArray[np.float64]


class FourierFeatures:
    """Random features of a kernel that has a spectral density.

    Parameters
    ----------
    kernel : Kernel
        A stationary kernel, a constant, or sums, products and restrictions of these.
    dimension : int
        Columns of the points.
    count : int
        Number of features M; even for ``"cos_sin"``.
    rng : numpy.random.Generator
        Draws the frequencies and phases.
    kind : {"cos_sin", "cos_phase"}
        Pairs of cosine and sine, or cosines with random phases; see the module's page.
    normalize : bool
        Whether φ(x) is scaled to φ(x)ᵀφ(x) = k(x, x) at every x.

    Attributes
    ----------
    frequencies : array of shape (M/2, dimension) or (M, dimension)
    phases : array of shape (M,), or None for ``"cos_sin"``

    Examples
    --------
    >>> from surefoot.belief import Matern
    >>> features = FourierFeatures(Matern(2.5), 3, 64, np.random.default_rng(0), kind="cos_phase")
    >>> features(np.zeros((5, 3))).shape
    (5, 64)

    Points may be NumPy arrays or torch tensors; the features are of the same type, on the same device.
    """

    def __init__(
        self,
        kernel: Kernel,
        dimension: int,
        count: int,
        rng: np.random.Generator,
        kind: str = "cos_sin",
        *,
        normalize: bool = False,
    ) -> None:
        one_of(kind, "kind", ("cos_sin", "cos_phase"))
        if dimension < 1:
            raise ValueError(f"dimension must be at least 1, got {dimension!r}")
        if count < 1 or (kind == "cos_sin" and count % 2):
            raise ValueError(f"count must be positive, and even for 'cos_sin', got {count!r}")
        self.kernel, self.dimension, self.count, self.kind = kernel, dimension, count, kind
        self.normalize = normalize
        draws = count // 2 if kind == "cos_sin" else count
        self.frequencies, self.variance = _spectrum(kernel, draws, dimension, rng)
        self.phases = rng.uniform(0.0, 2.0 * np.pi, count) if kind == "cos_phase" else None

    def __call__(self, X: Any) -> Any:
        """Return the features φ of the rows of X (n, dimension), shape (n, M)."""
        phi = self._join(*self._waves(X))
        return phi * self._stretch(phi) if self.normalize else phi

    def pull_input(self, X: Any) -> tuple[Any, Callable[[Any], Any]]:
        """Return φ(X) and the map W ↦ Σⱼ Wᵢⱼ ∂φⱼ(xᵢ)/∂xᵢ, shape (n, dimension), for W of shape (n, M) or (M,).

        >>> from surefoot.belief import SE
        >>> features = FourierFeatures(SE(), 1, 100, np.random.default_rng(0))
        >>> phi, pull = features.pull_input(np.zeros((4, 1)))
        >>> phi.shape, pull(np.ones(100)).shape
        ((4, 100), (4, 1))
        """
        cos, sin = self._waves(X)
        frequencies, half = _beside(self.frequencies, X), self.count // 2

        def pull(W: Any) -> Any:
            if self.phases is None:
                return (cos * W[..., half:] - sin * W[..., :half]) @ frequencies
            return (sin * W) @ -frequencies

        raw = self._join(cos, sin)
        if not self.normalize:
            return raw, pull
        xp, stretch = array_namespace(raw), self._stretch(raw)
        phi = raw * stretch

        def pull_normalized(W: Any) -> Any:
            # The quotient rule: the part of W along φ moves the length, which is fixed.
            along = xp.sum(phi * W, axis=-1, keepdims=True) / self.variance
            return pull(stretch * (W - along * phi))

        return phi, pull_normalized

    def pull(self, X: Any, W: Any) -> Any:
        """Return Σⱼ Wᵢⱼ ∂φⱼ(xᵢ)/∂xᵢ, shape (n, dimension): the gradient at each point of the function with weights W.

        >>> from surefoot.belief import SE
        >>> features = FourierFeatures(SE(), 2, 100, np.random.default_rng(0))
        >>> features.pull(np.zeros((4, 2)), np.ones(100)).shape
        (4, 2)
        """
        return self.pull_input(X)[1](W)

    def posterior(self, X: Any, y: Any, noise: Any) -> WeightPosterior:
        """Return the exact posterior of the weights after measurements y = φ(X) w + ε.

        Parameters
        ----------
        X : array of shape (t, dimension)
        y : array of shape (t,)
            Values, less the constant mean of the process.
        noise : float or array of shape (t,)
            Variances of the measurements, positive.

        >>> from surefoot.belief import SE
        >>> features = FourierFeatures(SE(), 1, 100, np.random.default_rng(0))
        >>> weights = features.posterior(np.array([[0.0], [1.0]]), np.array([1.0, -1.0]), noise=1e-6)
        >>> (features(np.array([[0.0], [1.0]])) @ weights.mean).round(3)
        array([ 1., -1.])
        """
        return WeightPosterior(self(X), y, noise)

    def __repr__(self) -> str:
        return f"FourierFeatures({self.kernel}, dimension={self.dimension}, count={self.count}, kind={self.kind!r})"

    def _waves(self, X: Any) -> tuple[Any, Any]:
        """Cosines and sines of ωᵀx (+ b), times √(2v/M): the parts of φ(x)."""
        if X.ndim != 2 or X.shape[1] != self.dimension:
            raise ValueError(f"points must have shape (n, {self.dimension}), got {tuple(X.shape)}")
        angles = X @ _beside(self.frequencies, X).T
        if self.phases is not None:
            angles += _beside(self.phases, X)
        return _cos_sin(angles, (2.0 * self.variance / self.count) ** 0.5)

    def _stretch(self, phi: Any) -> Any:
        """What brings each row of φ (n, M) to length √v, shape (n, 1)."""
        xp = array_namespace(phi)
        return (self.variance / xp.sum(phi * phi, axis=1, keepdims=True)) ** 0.5

    def _join(self, cos: Any, sin: Any) -> Any:
        return cos if self.phases is not None else array_namespace(cos).concat([cos, sin], axis=1)


class WeightPosterior:
    """Posterior N(mean, A⁻¹), A = ΦᵀΣ⁻¹Φ + I, of the weights of a linear model with standard normal prior.

    With M weights and t measurements, whichever is fewer decides the size of the system that is factorized: A itself,
    or the (t, t) matrix G = ΦΦᵀ + Σ, where mean = ΦᵀG⁻¹y and draws are corrected prior draws (Matheron's rule). Both
    are exact.

    Parameters
    ----------
    features : array of shape (t, M)
        Φ, one row per measurement; a NumPy array or a torch tensor.
    y : array of shape (t,)
        Measured values.
    noise : float or array of shape (t,)
        Variances of the measurements, positive.

    Examples
    --------
    >>> weights = WeightPosterior(np.eye(2), np.array([1.0, 3.0]), noise=1.0)
    >>> weights.mean
    array([0.5, 1.5])
    >>> weights.draw(1000, np.random.default_rng(0)).std(axis=0).round(1)
    array([0.7, 0.7])
    """

    def __init__(self, features: Any, y: Any, noise: Any) -> None:
        xp = array_namespace(features)
        if features.ndim != 2 or features.shape[1] == 0:
            raise ValueError(f"features must have shape (t, M), got {tuple(features.shape)}")
        t, M = features.shape
        values, variances = _beside(y, features), _beside(noise, features)
        if tuple(values.shape) != (t,) or not bool(xp.all(xp.isfinite(values))):
            raise ValueError(f"y must be {t} finite values, one per row of features, got {y!r}")
        if tuple(variances.shape) not in ((), (t,)) or not bool(xp.all((variances > 0) & xp.isfinite(variances))):
            raise ValueError(f"noise is a variance, positive and finite, got {noise!r}")
        self._xp, self._wide = xp, t < M
        self._features, self._y, self._noise = features, values, variances + xp.zeros_like(values)
        # The smaller of the two systems, scaled to I + B Bᵀ so that its eigenvalues are at least 1 at any noise.
        self._white = features / xp.sqrt(self._noise)[:, None]
        B = self._white if self._wide else self._white.T
        size = min(t, M)
        self._factor = xp.linalg.cholesky(_beside(np.eye(size), features) + B @ B.T) if size else B @ B.T

    @cached_property
    def mean(self) -> Any:
        """Mean of the weights, shape (M,)."""
        target = (self._y / self._xp.sqrt(self._noise))[:, None]
        if self._wide:
            return (self._white.T @ self._solve(target))[:, 0]
        return self._solve(self._white.T @ target)[:, 0]

    def draw(self, count: int, rng: np.random.Generator) -> Any:
        """Draw weights, shape (count, M); the normal variates come from ``rng`` on any device.

        >>> WeightPosterior(np.ones((1, 50)), np.array([2.0]), noise=0.1).draw(3, np.random.default_rng(0)).shape
        (3, 50)
        """
        t, M = self._features.shape
        prior = _beside(rng.standard_normal((count, M)), self._features)
        if not self._wide:  # A = L Lᵀ: L⁻ᵀ turns standard normals into draws of covariance A⁻¹
            return self.mean + _solve_lower(self._factor, prior.T, transpose=True).T
        noise = _beside(rng.standard_normal((count, t)), self._features)
        # Matheron's rule: a prior draw w, corrected by ΦᵀG⁻¹(y − Φw − ε)
        residual = self._y / self._xp.sqrt(self._noise) - prior @ self._white.T - noise
        return prior + self._solve(residual.T).T @ self._white

    def predict(self, features: Any) -> tuple[Any, Any]:
        """Return mean and variance of φᵀw for each row φ of features (m, M), each of shape (m,).

        >>> mean, var = WeightPosterior(np.eye(2), np.array([1.0, 3.0]), noise=1.0).predict(np.array([[1.0, 1.0]]))
        >>> mean.round(6), var.round(6)
        (array([2.]), array([1.]))
        """
        xp = self._xp
        if self._wide:
            shrunk = _solve_lower(self._factor, self._white @ features.T)
            var = xp.sum(features * features, axis=1) - xp.sum(shrunk * shrunk, axis=0)
        else:
            shrunk = _solve_lower(self._factor, features.T)
            var = xp.sum(shrunk * shrunk, axis=0)
        return features @ self.mean, xp.maximum(var, 0.0)

    def _solve(self, B: Any) -> Any:
        return _solve_lower(self._factor, _solve_lower(self._factor, B), transpose=True)


def _spectrum(kernel: Kernel, count: int, dimension: int, rng: np.random.Generator) -> tuple[Array, float]:
    """Frequencies (count, dimension) from the kernel's normalized spectral density, and its value k(x, x)."""
    if isinstance(kernel, Stationary):
        if kernel.lengthscale.ndim and kernel.lengthscale.size != dimension:
            raise ValueError(
                f"kernel has {kernel.lengthscale.size} length-scales but the points have {dimension} columns"
            )
        return kernel.frequencies(count, dimension, rng), kernel.variance
    if isinstance(kernel, ConstantKernel) and not isinstance(kernel, Linear):
        return np.zeros((count, dimension)), kernel.variance
    if isinstance(kernel, Active):
        frequencies = np.zeros((count, dimension))
        inner, variance = _spectrum(kernel.inner, count, len(kernel.dimensions), rng)
        frequencies[:, list(kernel.dimensions)] = inner
        return frequencies, variance
    if isinstance(kernel, Sum | Product):
        left, v = _spectrum(kernel.left, count, dimension, rng)
        right, w = _spectrum(kernel.right, count, dimension, rng)
        if isinstance(kernel, Product):
            return left + right, v * w
        return np.where(rng.random((count, 1)) < v / (v + w), left, right), v + w
    raise TypeError(f"{kernel} has no spectral density: Fourier features are for stationary kernels")


def _cos_sin(angles: Any, scale: float) -> tuple[Any, Any]:
    """Cosine and sine times ``scale``; the angles are overwritten.

    NumPy has a vectorized tangent but calls the C library for these two, ten times slower: hence the half angle.
    """
    if not is_numpy_array(angles):
        xp = array_namespace(angles)
        return scale * xp.cos(angles), scale * xp.sin(angles)
    angles *= 0.5
    half = np.tan(angles, out=angles)
    cos = half * half
    weight = scale / (1.0 + cos)
    np.subtract(1.0, cos, out=cos)
    cos *= weight  # (1 − τ²)/(1 + τ²)
    half *= weight
    half += half  # 2τ/(1 + τ²)
    return cos, half


def _beside(array: Any, other: Any) -> Any:
    """Bring an array of numbers to the type, precision and device of another."""
    if is_numpy_array(other):
        return np.asarray(array, dtype=other.dtype)
    return array_namespace(other).asarray(array, dtype=other.dtype, device=other.device)


def _solve_lower(L: Any, B: Any, *, transpose: bool = False) -> Any:
    """L⁻¹ B or L⁻ᵀ B for a lower triangular L; the one solver the array standard lacks."""
    if is_numpy_array(L):
        return solve_triangular(L, B, lower=True, trans=1 if transpose else 0, check_finite=False) if L.size else B
    A = L.T if transpose else L
    return array_namespace(L).linalg.solve_triangular(A, B, upper=transpose)
