"""A kernel for points that are known with an error: what is left of the squared exponential after the blur.

Somebody publishes z = x + ε, ε ~ N(0, s² I), instead of x (for privacy: :mod:`surefoot.private`), and s is known. With
a flat prior x given z is N(z, s² I), so the covariance of the values at two *different* records is an average over both
errors, and that of a record with itself is untouched:

    k̃(zᵢ, zⱼ) = v · Πₖ ℓₖ/Lₖ · exp(−½ Σₖ (zᵢₖ − zⱼₖ)²/Lₖ²),   Lₖ² = ℓₖ² + 2sₖ²,   i ≠ j,      k̃(zᵢ, zᵢ) = v.

With a = Πₖ ℓₖ/Lₖ this is a · SE(L) + (1 − a) · I: a smoother function that neighbors share, and a part of its own for
every record. That part belongs to the value itself, not to the noise of measuring: a record that was measured is known,
its neighbors remain uncertain. Two rows are the same record if all their coordinates are equal.

>>> import numpy as np
>>> kernel = NoisyInputs(0.5, lengthscale=1.0)
>>> kernel(np.array([[0.0], [1.0]])).round(3)
array([[1.   , 0.585],
       [0.585, 1.   ]])

Everything that works with a kernel works with this one, on all candidates at once too. Other kernels than the squared
exponential have no such closed form.

References: Girard 2004, "Approximate methods for propagation of uncertainty with Gaussian process models", chapter 3.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from array_api_compat import array_namespace, is_numpy_array
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.distance import cdist
from scipy.special import ndtri

from surefoot.belief.algebra import Evaluate, Kernel, Pulled, Sum, Wrapping
from surefoot.belief.kernels import SE

__all__ = ["NoisyInputs", "WhiteNoise", "smooth_and_white"]

Array = NDArray[np.float64]
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


class NoisyInputs(Wrapping):
    """Squared exponential of points that carry Gaussian errors of a known size.

    Parameters
    ----------
    scale : float or sequence of float
        Standard deviation s of the error, of every coordinate or of each; 0 gives the squared exponential.
    lengthscale : float or sequence of float
        Of the function of the true points; one for all coordinates, or one for each.
    variance : float
        Signal variance v.

    >>> NoisyInputs(0.0, 2.0)(np.zeros((1, 1)), np.ones((1, 1))) == SE(2.0)(np.zeros((1, 1)), np.ones((1, 1)))
    array([[ True]])
    >>> NoisyInputs(0.3, [1.0, 2.0]).names
    ['variance', 'lengthscale[0]', 'lengthscale[1]']
    """

    def __init__(self, scale: ArrayLike, lengthscale: ArrayLike = 1.0, *, variance: float = 1.0) -> None:
        self.inner: SE = SE(lengthscale, variance=variance)
        self.scale = np.array(scale, dtype=np.float64)
        if self.scale.ndim > 1 or self.scale.size == 0 or not (np.isfinite(self.scale) & (self.scale >= 0)).all():
            raise ValueError(f"scale must be finite and not negative (a number or a vector), got {scale!r}")
        sizes = {int(a.size) for a in (self.scale, self.inner.lengthscale) if a.ndim}
        if len(sizes) > 1:
            raise ValueError(f"{self.scale.size} scales do not fit {self.inner.lengthscale.size} length-scales")
        self.scale.setflags(write=False)

    @classmethod
    def around(cls, kernel: Kernel, scale: ArrayLike) -> Self:
        """Return what a kernel of the true points becomes when points carry errors.

        >>> NoisyInputs.around(SE(0.5, variance=2.0), 0.1).variance
        2.0
        """
        if type(kernel) is not SE:
            raise TypeError(f"only the squared exponential (SE) has a closed form under noisy inputs, got {kernel!r}")
        return cls(scale, kernel.lengthscale, variance=kernel.variance)

    @property
    def lengthscale(self) -> Array:
        """Length-scales ℓ of the function of the true points."""
        return self.inner.lengthscale

    @property
    def variance(self) -> float:
        """Signal variance v."""
        return self.inner.variance

    def parts(self, dimension: int) -> tuple[SE, float]:
        """Return what neighbors share, v·a·SE(L), and the variance v·(1 − a) of what every record has for itself.

        >>> shared, own = NoisyInputs(1.0, 1.0).parts(2)
        >>> shared.variance + own
        1.0
        """
        widened = np.hypot(self.lengthscale, np.sqrt(2.0) * self.scale)  # L
        ratios = np.broadcast_to(np.log(self.lengthscale / widened), (dimension,))
        share = float(np.exp(ratios.sum()))  # a
        return SE(widened, variance=self.variance * share), self.variance * (1.0 - share)

    def __call__(self, X: Any, Z: Any | None = None) -> Any:
        shared, own = self.parts(X.shape[1])
        r2 = shared._r2(X, Z)
        same = r2 == 0.0
        K = shared.profile(r2)
        K *= shared.variance
        # Where two rows are equal the matrix holds v itself, not the rounded sum of its parts.
        if is_numpy_array(K):
            K[same] = shared.variance + own
            return K
        return array_namespace(K).where(same, shared.variance + own, K)

    def diag(self, X: Any) -> Any:
        return self.inner.diag(X)

    def with_theta(self, theta: ArrayLike) -> Self:
        return type(self).around(self.inner.with_theta(theta), self.scale)

    def scaled(self, factor: float) -> Self:
        return type(self).around(self.inner.scaled(factor), self.scale)

    def over(self, X: Array) -> Evaluate:
        self.inner._check(X)
        centered, dimension = X - X.mean(axis=0), X.shape[1]
        same = cdist(X, X, "sqeuclidean") == 0.0
        noise = 2.0 * np.broadcast_to(self.scale, (dimension,)) ** 2
        common = self.lengthscale.ndim == 0

        def evaluate(theta: Array) -> Pulled:
            variance = float(np.exp(theta[0]))
            squares = np.broadcast_to(np.exp(2.0 * theta[1:]), (dimension,))  # ℓ²
            widened = squares + noise  # L²
            share = float(np.sqrt(np.prod(squares / widened)))
            A = centered / np.sqrt(widened)
            E = np.exp(-0.5 * cdist(A, A, "sqeuclidean"))
            K = variance * share * E
            K[same] = variance

            def pull(W: Array) -> Array:
                # ∂a/∂log ℓₖ = a (1 − ℓₖ²/Lₖ²), and ∂E/∂log ℓₖ = E (zₖ − z'ₖ)² ℓₖ²/Lₖ⁴.
                G = W * E
                G[same] = 0.0  # the diagonal does not depend on the lengths
                total = (G.sum(axis=0) + G.sum(axis=1)) @ (A * A) - 2.0 * np.einsum("ai,ai->i", A, G @ A)
                ratio = squares / widened
                lengths = variance * share * ((1.0 - ratio) * G.sum() + ratio * total)
                if common:
                    lengths = lengths.sum(keepdims=True)
                return np.concatenate([[np.vdot(W, K)], lengths])

            return K, pull

        return evaluate

    def pull_input(self, X: Array, Z: Array) -> Pulled:
        shared, _ = self.parts(X.shape[1])
        return self(X, Z), shared.pull_input(X, Z)[1]

    def to_dict(self) -> dict[str, Any]:
        return {**self.inner.to_dict(), "kernel": type(self).__name__, "scale": self.scale.tolist()}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        return cls(**data)


def smooth_and_white(kernel: Kernel, dimension: int) -> tuple[Kernel, float]:
    """Split a kernel into one of smooth functions and the variance of what every point has for itself.

    >>> smooth_and_white(SE() + NoisyInputs(1.0), 1)[1].__round__(3)
    0.423
    """
    if isinstance(kernel, NoisyInputs):
        return kernel.parts(dimension)
    if isinstance(kernel, Sum):
        (left, own), (right, other) = (smooth_and_white(part, dimension) for part in (kernel.left, kernel.right))
        return left + right, own + other
    return kernel, 0.0


class WhiteNoise:
    """Draws of a function whose values at different points are independent: functions of the bits of a point.

    The same row has the same value whenever it is asked for, which a stream of random numbers would not give.

    Parameters
    ----------
    variance : float
        Of every value.
    count : int
        How many functions.
    rng : numpy.random.Generator
        Draws one key for each of them.

    >>> draw = WhiteNoise(4.0, 3, np.random.default_rng(0))
    >>> X = np.random.default_rng(1).random((10_000, 2))
    >>> draw(X).std(axis=1).round(1), bool((draw(X[:5]) == draw(X)[:, :5]).all())
    (array([2., 2., 2.]), True)
    """

    def __init__(self, variance: float, count: int, rng: np.random.Generator) -> None:
        self.std = float(np.sqrt(variance))
        self.keys = rng.integers(2**63, size=count, dtype=np.uint64)

    def __call__(self, X: Array, which: slice = slice(None)) -> Array:
        """Return the values of the functions at the rows of X (n, e), shape (count, n)."""
        keys = self.keys[which]
        if not self.std or not len(X):
            return np.zeros((len(keys), len(X)))
        words = np.ascontiguousarray(X + 0.0).view(np.uint64)  # no negative zero: equal rows have equal bits
        hashed = np.zeros(len(X), dtype=np.uint64)
        for column in words.T:
            hashed = _mixed(hashed ^ column)
        bits = _mixed(hashed[None, :] ^ keys[:, None])
        uniform = ((bits >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
        values: Array = self.std * ndtri(uniform)
        return values


def _mixed(word: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """One step of SplitMix64 (Steele, Lea & Flood 2014): every bit of the input moves every bit of the output."""
    word = word + _GOLDEN
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))
