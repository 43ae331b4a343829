"""The one thing all parties share: random Fourier features from a public seed.

With the same M features φ at every party, what a party believes about its objective is a Gaussian over M weights, and
one draw of the weights is a function that everybody can evaluate: φ(x)ᵀω. Features are normalized, ‖φ(x)‖ = 1 at every
x, so that the prior variance is exact. They act on the unit cube: :func:`to_unit` takes encoded points there.

>>> features = SharedFeatures(2, 100, lengthscale=0.2, noise=0.01, seed=7)
>>> phi = features(np.random.default_rng(0).random((5, 2)))
>>> phi.shape, bool(np.allclose((phi**2).sum(axis=1), 1.0, rtol=1e-12))
((5, 100), True)

Whoever regenerates features from a seed depends on the version of a numerical library. So the arrays themselves are
published (:meth:`SharedFeatures.to_dict`), and their hash names them in every message.

References: Dai, Low & Jaillet 2020, "Federated Bayesian optimization via Thompson sampling", appendix A; Rahimi & Recht
2007. Numbers of equations are those of Dai's thesis (2021), chapter 5.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, Self

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import ArrayLike, NDArray

from surefoot.belief.fourier import FourierFeatures
from surefoot.belief.kernels import SE, Matern, Stationary
from surefoot.domain import Domain
from surefoot.loop.state import storable
from surefoot.loop.streams import stream

__all__ = ["KERNELS", "SharedFeatures", "draw_weights", "stacked_draws", "to_unit", "transform_outputs"]

Array = NDArray[np.float64]

KERNELS = ("SE", "Matern32", "Matern52")
"""Kernels that features can have: the spectral densities are a normal and two multivariate t."""


def to_unit(domain: Domain, E: Array) -> Array:
    """Return encoded points (n, e) as points of the unit cube, where shared features act.

    >>> from surefoot import Box
    >>> to_unit(Box([(0.0, 4.0)]), np.array([[1.0]]))
    array([[0.25]])
    """
    unit: Array = (E - domain.lower) / domain.extent()
    return unit


@storable
class SharedFeatures:
    """Random Fourier features that all parties of a federation agree on.

    Parameters
    ----------
    dimension : int
        Columns of a point of the unit cube, ``domain.encoded_dimension``.
    count : int
        Number of features M, the length of a message.
    lengthscale : float
        Of the kernel, in units of the cube. The authors use 0.01: their messages then carry little more than where an
        agent has measured good values. Public, and chosen without looking at anybody's data.
    noise : float
        Variance of the measurements in the shared model, on the scale of the outputs that agents feed it.
    seed : int
        Public; draws the frequencies and phases.
    normalize : bool
        Whether ‖φ(x)‖ = 1 at every x.
    kernel : {"SE", "Matern32", "Matern52"}
        Whose spectral density the frequencies are drawn from; its variance is 1.

    >>> here, there = (SharedFeatures(1, 50, lengthscale=0.1, noise=0.01, seed=3) for _ in range(2))
    >>> here == there, here == SharedFeatures(1, 50, lengthscale=0.1, noise=0.01, seed=4)
    (True, False)
    """

    def __init__(
        self,
        dimension: int,
        count: int = 100,
        *,
        lengthscale: float,
        noise: float,
        seed: int,
        normalize: bool = True,
        kernel: str = "SE",
    ) -> None:
        for name, value, least in (("dimension", dimension, 1), ("count", count, 2), ("seed", seed, 0)):
            if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < least:
                raise ValueError(f"{name} must be a whole number from {least} on, got {value!r}")
        for name, size in (("lengthscale", lengthscale), ("noise", noise)):
            if not (np.ndim(size) == 0 and np.isfinite(size) and size > 0):
                raise ValueError(f"{name} must be positive and finite, got {size!r}")
        if kernel not in KERNELS:
            raise ValueError(f"kernel must be one of {', '.join(KERNELS)}, got {kernel!r}")
        self.dimension, self.count, self.seed = int(dimension), int(count), int(seed)
        self.lengthscale, self.noise = float(lengthscale), float(noise)
        self.normalize, self.kernel = bool(normalize), kernel
        rng = stream(self.seed, "shared features")
        self.fourier = FourierFeatures(
            self._stationary(), self.dimension, self.count, rng, kind="cos_phase", normalize=self.normalize
        )

    def _stationary(self) -> Stationary:
        if self.kernel == "SE":
            return SE(self.lengthscale)
        return Matern(1.5 if self.kernel == "Matern32" else 2.5, self.lengthscale)

    def __call__(self, U: Any) -> Any:
        """Return φ at the rows of U (n, dimension) in the unit cube, shape (n, M); NumPy arrays or torch tensors."""
        return self.fourier(U)

    @cached_property
    def hash(self) -> str:
        """SHA-256 of everything that decides φ and the posterior of its weights.

        >>> len(SharedFeatures(1, 50, lengthscale=0.1, noise=0.01, seed=3).hash)
        64
        """
        head = (self.dimension, self.count, self.kernel, self.lengthscale, self.noise, self.normalize)
        digest = hashlib.sha256(repr(head).encode())
        for array in (self.fourier.frequencies, self.fourier.phases):
            digest.update(np.ascontiguousarray(array, dtype="<f8").tobytes())
        return digest.hexdigest()

    def to_dict(self) -> dict[str, Any]:
        """Return what is published: the constants, the arrays and the hash, as strict JSON."""
        phases = self.fourier.phases
        return {
            "dimension": self.dimension,
            "count": self.count,
            "lengthscale": self.lengthscale,
            "noise": self.noise,
            "seed": self.seed,
            "normalize": self.normalize,
            "kernel": self.kernel,
            "frequencies": self.fourier.frequencies.tolist(),
            "phases": None if phases is None else phases.tolist(),
            "hash": self.hash,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Rebuild published features from their arrays, and check them against their hash.

        >>> features = SharedFeatures(1, 50, lengthscale=0.1, noise=0.01, seed=3)
        >>> SharedFeatures.from_dict({**features.to_dict(), "noise": 0.02})
        Traceback (most recent call last):
        ...
        ValueError: these features are not what their hash says: they were changed, or cut, on the way
        """
        given = dict(data)
        frequencies, phases, known = given.pop("frequencies"), given.pop("phases"), given.pop("hash")
        made = cls(**given)
        made.fourier.frequencies = np.asarray(frequencies, dtype=np.float64)
        made.fourier.phases = np.asarray(phases, dtype=np.float64)
        shapes = made.fourier.frequencies.shape, made.fourier.phases.shape
        if shapes != ((made.count, made.dimension), (made.count,)) or made.hash != known:
            raise ValueError("these features are not what their hash says: they were changed, or cut, on the way")
        return made

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SharedFeatures) and self.hash == other.hash

    def __hash__(self) -> int:
        return hash(self.hash)

    def __repr__(self) -> str:
        sizes = f"lengthscale={self.lengthscale}, noise={self.noise}, seed={self.seed}"
        return f"SharedFeatures({self.dimension}, {self.count}, {sizes}, hash={self.hash[:12]})"


def draw_weights(
    phi: Any, y: Any, noise: float, prior: Any, errors: Any = None, *, route: str | None = None, gram: Any = None
) -> Any:
    """Turn standard normals into exact draws ω ~ N(ν, σ²Σ⁻¹) (5.1), Σ = ΦᵀΦ + σ²I, ν = Σ⁻¹Φᵀy (5.2), of many agents.

    Parameters
    ----------
    phi : array of shape (..., t, M)
        Φ, the features of each agent's measured points; NumPy arrays or torch tensors.
    y : array of shape (..., t)
        Measured values.
    noise : float
        σ².
    prior : array of shape (..., M)
        Standard normals.
    errors : array of shape (..., t), optional
        Standard normals; not needed by the route ``"cholesky"``.
    route : {"cholesky", "pathwise", "map"}, optional
        By Σ = LLᵀ, ω = ν + σL⁻ᵀe; by a prior draw corrected with the (t, t) system (Matheron's rule); by the maximum
        a posteriori of randomly shifted data. All have the same law. None takes the smaller system: pathwise where
        t < M, else Cholesky.
    gram : array of shape (..., t, t), optional
        ΦΦᵀ, where it is known already.

    >>> phi, y = np.eye(2), np.array([1.0, 3.0])
    >>> draw_weights(phi, y, 1e-12, np.zeros(2), np.zeros(2)).round(6)
    array([1., 3.])
    """
    xp = array_namespace(phi)
    t, M = phi.shape[-2:]
    route = ("pathwise" if t < M else "cholesky") if route is None else route
    if route not in ("cholesky", "pathwise", "map"):
        raise ValueError(f"route must be 'cholesky', 'pathwise' or 'map', got {route!r}")
    if t == 0:
        return prior
    turned, sigma = xp.matrix_transpose(phi), noise**0.5
    identity = xp.eye(t if route == "pathwise" else M, dtype=phi.dtype, device=phi.device)
    if route == "pathwise":
        G = phi @ turned if gram is None else gram
        residual = y - _times(phi, prior) - sigma * errors  # ω₀ + Φᵀ(ΦΦᵀ + σ²I)⁻¹(y − Φω₀ − e)
        return prior + _times(turned, _solve(xp, G + noise * identity, residual))
    Sigma = turned @ phi + noise * identity  # (5.2)
    if route == "map":  # Σ⁻¹(Φᵀ(y + e) + σ²ω₀)
        return _solve(xp, Sigma, _times(turned, y + sigma * errors) + noise * prior)
    L = xp.linalg.cholesky(Sigma)
    white = _solve(xp, L, _times(turned, y))  # Lᵀν, as Σ = LLᵀ
    return _solve(xp, xp.matrix_transpose(L), white + sigma * prior)


def stacked_draws(
    table: Any,
    chosen: NDArray[np.intp],
    y: Array,
    noise: float,
    normals: Array,
    *,
    place: Callable[[Any], Any],
    block: int,
    peak: bool = False,
) -> NDArray[Any]:
    """Draw functions from the posteriors of many agents that have measured equally often, stack after stack.

    Parameters
    ----------
    table : array of shape (G, F)
        Features of the candidates, where the work is done.
    chosen, y : array of shape (B, t)
        The measured candidates of each agent and their values.
    noise : float
        Variance of a measurement.
    normals : array of shape (B, F + t)
        Standard normals: F for the prior, t for the measurements.
    place : callable
        Brings a NumPy array to where ``table`` is: :func:`surefoot.loop.device.placer`.
    block : int
        Agents in one stack.
    peak : bool
        Return the candidate where each function is highest, shape (B,), in place of its weights, shape (B, F).

    >>> chosen, y = np.array([[0, 1], [1, 0]]), np.array([[1.0, 2.0], [3.0, 4.0]])
    >>> stacked_draws(np.eye(2), chosen, y, 1e-12, np.zeros((2, 4)), place=np.asarray, block=1, peak=True)
    array([1, 0])
    """
    width, parts = table.shape[1], []
    for start in range(0, len(y), block):
        rows = slice(start, start + block)
        z, e = place(normals[rows, :width]), place(normals[rows, width:])
        w = draw_weights(table[place(chosen[rows])], place(y[rows]), noise, z, e)
        found = (w @ table.T).argmax(1) if peak else w
        parts.append(found if isinstance(found, np.ndarray) else found.cpu().numpy())
    return np.concatenate(parts)


def _times(A: Any, v: Any) -> Any:
    """The product of each matrix (..., a, b) with its vector (..., b)."""
    return (A @ v[..., None])[..., 0]


def _solve(xp: Any, A: Any, b: Any) -> Any:
    """The solution of each system (..., a, a) for its vector (..., a)."""
    return xp.linalg.solve(A, b[..., None])[..., 0]


def transform_outputs(y: ArrayLike, how: str) -> Array:
    """Bring each agent's own values, along the last axis, to the scale that the shared model presumes.

    ``"standardize"`` gives mean 0 and variance 1, ``"rank"`` the normal quantiles of the ranks (ties share a rank),
    ``"none"`` leaves them. Nothing is communicated: each agent uses its own values only.

    >>> transform_outputs([10.0, 20.0, 30.0], "standardize").round(3)
    array([-1.225,  0.   ,  1.225])
    >>> transform_outputs([1.0, 9.0, 1e6], "rank").round(3)
    array([-0.674,  0.   ,  0.674])
    """
    values = np.asarray(y, dtype=np.float64)
    if how == "none" or values.shape[-1] == 0:
        return values
    if how == "standardize":
        centered = values - values.mean(axis=-1, keepdims=True)
        spread = centered.std(axis=-1, keepdims=True)
        flat = spread <= 1e-12 * np.abs(values).max(axis=-1, keepdims=True)
        return np.where(flat, 0.0, centered / np.where(flat, 1.0, spread))
    if how == "rank":
        from scipy.special import ndtri
        from scipy.stats import rankdata  # slow to import, and seldom needed

        ranks = rankdata(values, axis=-1)
        quantiles: Array = ndtri(ranks / (values.shape[-1] + 1.0))
        return quantiles
    raise ValueError(f"outputs must be 'standardize', 'none' or 'rank', got {how!r}")
