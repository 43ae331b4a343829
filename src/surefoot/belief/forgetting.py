"""How fast does a function drift? The forgetting rate by maximum likelihood, with an interval.

The likelihood of the model of :mod:`surefoot.belief.drift` has three forms that agree:

* of any measurements, directly: ``drifting(gp, ε, d).log_likelihood(X, y)`` with the time in the last column of X,
* of any measurements of candidates, on the way: ``DriftingGrid.log_likelihood``,
* of a full panel, every place at every time, by two eigen-decompositions: :class:`Panel`.

:func:`estimate_forgetting` maximizes any of them over ε alone. Everything at once, with the length-scales and the
noise, is ``drifting(gp, ε, d).fit(X, y)``.

>>> import numpy as np
>>> from surefoot.belief.drift import simulate_drift
>>> rng, K = np.random.default_rng(0), np.eye(8)
>>> values = simulate_drift(np.eye(8), 60, 0.1, rng)
>>> panel = Panel(values + 0.1 * rng.standard_normal(values.shape), K, noise=0.01)
>>> found = estimate_forgetting(panel.log_likelihood)
>>> found.lower < 0.1 < found.upper
True

References: Bogunovic, Scarlett & Cevher 2016, appendix B (5.20); Wilks 1938 for the interval.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import ArrayLike, NDArray
from scipy.special import chdtri

from surefoot.arguments import open_unit
from surefoot.belief.algebra import Active, Evaluate, Kernel, Product, Pulled

if TYPE_CHECKING:
    from surefoot.belief.gp import GP

__all__ = [
    "Forgetting",
    "ForgettingEstimate",
    "Panel",
    "check_forgetting",
    "drifting",
    "estimate_forgetting",
    "separate",
]

Array = NDArray[np.float64]

SLOWEST, FASTEST = 1e-30, 350.0  # decay rates beyond which a function stands still, or is new every time
LEAST, MOST = 1e-7, 1.0 - 1e-9  # rates between 0 and 1 that are told apart from them
STARTS = 17  # rates that are tried first: the likelihood may have two hills, one of them "all is noise"


def check_forgetting(value: float) -> float:
    """Return a forgetting rate as a float, or say what is wrong with it.

    >>> check_forgetting(0.03)
    0.03
    """
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise TypeError(f"forgetting must be a number between 0 and 1, got {value!r}")
    if not 0.0 <= value <= 1.0:
        raise ValueError(f"forgetting must lie between 0 (nothing) and 1 (everything), got {value!r}")
    return float(value)


class Forgetting(Kernel):
    """How much of a function is left: (1 − ε)^{|t − s|/2}, a kernel of one coordinate, the time.

    Its only hyper-parameter is the decay rate τ = −½ log(1 − ε), so that the kernel is exp(−τ |t − s|).

    >>> Forgetting(0.19)(np.array([[0.0]]), np.array([[0.0], [1.0], [2.0]])).round(6)
    array([[1.  , 0.9 , 0.81]])
    """

    def __init__(self, forgetting: float) -> None:
        self.forgetting = check_forgetting(forgetting)

    @property
    def decay(self) -> float:
        """τ = −½ log(1 − ε); infinite where everything is forgotten."""
        return -0.5 * math.log1p(-self.forgetting) if self.forgetting < 1.0 else math.inf

    def _share(self, distance: Any) -> Any:
        if self.forgetting == 1.0:
            return 1.0 * (distance == 0.0)
        return array_namespace(distance).exp(-self.decay * distance)

    def __call__(self, X: Any, Z: Any | None = None) -> Any:
        self._check(X)
        other = X if Z is None else Z
        return self._share(abs(X[:, :1] - other[:, 0][None, :]))  # D of (5.3) and (5.4)

    @staticmethod
    def _check(X: Any) -> None:
        if X.shape[1] != 1:
            raise ValueError(f"Forgetting sees the time only, got points of {X.shape[1]} columns; use .on([column])")

    def diag(self, X: Any) -> Any:
        return X[:, 0] * 0.0 + 1.0

    @property
    def theta(self) -> Array:
        return np.array([math.log(min(max(self.decay, SLOWEST), FASTEST))])

    @property
    def names(self) -> list[str]:
        return ["decay"]

    def with_theta(self, theta: ArrayLike) -> Self:
        return type(self)(-math.expm1(-2.0 * math.exp(float(np.asarray(theta)[0]))))

    def scaled(self, factor: float) -> Self:
        raise ValueError("Forgetting has no variance to scale; multiply the kernel of the points instead")

    def over(self, X: Array) -> Evaluate:
        self._check(X)
        distance = np.abs(X - X[:, 0])

        def evaluate(theta: Array) -> Pulled:
            rate = math.exp(theta[0])
            K = np.exp(-rate * distance)
            return K, lambda W: np.array([-rate * np.vdot(W, distance * K)])

        return evaluate

    def pull_input(self, X: Array, Z: Array) -> Pulled:
        K = self(X, Z)
        sign = np.sign(X - Z[:, 0])
        rate = min(self.decay, FASTEST)
        return K, lambda W: -rate * (W * sign * K).sum(axis=1, keepdims=True)

    def to_dict(self) -> dict[str, Any]:
        return {"kernel": type(self).__name__, "forgetting": self.forgetting}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        return cls(**data)


def drifting(gp: GP, forgetting: float, dimension: int) -> GP:
    """Return the process over points of ``dimension`` coordinates and, after them, the time.

    ``fit`` learns the forgetting along with everything else; a prior for it goes by the name ``"decay"``.

    >>> from surefoot.belief import GP, SE
    >>> drifting(GP(SE(0.2), noise=0.01), 0.03, 2).names
    ['left.variance', 'left.lengthscale', 'right.decay', 'noise']
    """
    kernel = gp.kernel.on(range(dimension)) * Forgetting(forgetting).on([dimension])  # K̃ = K ∘ D of (5.3) and (5.4)
    return replace(gp, kernel=kernel)


def separate(gp: GP) -> tuple[GP, float]:
    """Return the process of the points alone and the forgetting rate: what :func:`drifting` put together.

    >>> from surefoot.belief import GP, SE
    >>> separate(drifting(GP(SE(0.2), noise=0.01), 0.03, 2))[1]
    0.03
    """
    kernel = gp.kernel
    if isinstance(kernel, Product) and isinstance(kernel.left, Active) and isinstance(kernel.right, Active):
        time = kernel.right.inner
        if isinstance(time, Forgetting):
            return replace(gp, kernel=kernel.left.inner, priors=None, every=None), time.forgetting
    raise ValueError(f"{kernel!r} is not a product of a kernel and Forgetting, as drifting() makes")


class Panel:
    """The likelihood of a full panel: S places measured at each of T times.

    The covariance of all values is D ⊗ K + noise, D of the times and K of the places, so that eigenvectors of both turn
    it into a sum over T · S numbers: O(S³) once and O(T³) for each rate that is tried.

    Parameters
    ----------
    values : array of shape (T, S)
        The measurements, one row per time.
    covariance : array of shape (S, S)
        Of the places at one time.
    noise : float
        Variance of a measurement.
    times : array of shape (T,), optional
        When each row was measured; by default 1, 2, ..., T.
    mean : float or array of shape (S,)
        What the values are expected to be.

    >>> panel = Panel([[0.5, -0.2]], np.eye(2), noise=1.0)
    >>> round(panel.log_likelihood(0.3), 6)  # two values of N(0, 2)
    -2.603524
    """

    def __init__(
        self,
        values: ArrayLike,
        covariance: ArrayLike,
        noise: float,
        *,
        times: ArrayLike | None = None,
        mean: ArrayLike = 0.0,
    ) -> None:
        Y, K = np.asarray(values, dtype=np.float64), np.asarray(covariance, dtype=np.float64)
        if Y.ndim != 2 or 0 in Y.shape or K.shape != (Y.shape[1],) * 2:
            raise ValueError(f"values must be (T, S) and the covariance (S, S), got {Y.shape} and {K.shape}")
        if not (np.isfinite(Y).all() and np.isfinite(K).all()):
            raise ValueError("a panel must be full: values and covariance must be finite")
        if not (math.isfinite(noise) and noise > 0.0):
            raise ValueError(f"noise is a variance and must be positive, got {noise!r}")
        self.times = np.arange(1.0, len(Y) + 1.0) if times is None else np.asarray(times, dtype=np.float64)
        if self.times.shape != (len(Y),) or not np.isfinite(self.times).all():
            raise ValueError(f"times must be {len(Y)} finite numbers, got {times!r}")
        levels, vectors = np.linalg.eigh(K)
        self._levels = np.maximum(levels, 0.0)
        self._rotated: Array = (Y - np.asarray(mean, dtype=np.float64)) @ vectors
        self.noise = float(noise)

    def log_likelihood(self, forgetting: float) -> float:
        """Return log p(values | ε).

        >>> panel = Panel([[1.0], [1.0]], [[1.0]], 0.1)
        >>> panel.log_likelihood(0.0) > panel.log_likelihood(1.0)
        True
        """
        D = Forgetting(forgetting)(self.times[:, None])
        levels, vectors = np.linalg.eigh(D)
        variances = np.multiply.outer(np.maximum(levels, 0.0), self._levels) + self.noise
        rotated = vectors.T @ self._rotated
        total = (rotated**2 / variances + np.log(variances)).sum() + rotated.size * math.log(2.0 * math.pi)
        return -0.5 * float(total)  # (5.20), of D ⊗ K + noise


@dataclass(frozen=True)
class ForgettingEstimate:
    """A forgetting rate with its interval.

    ``lower`` and ``upper`` are where twice the log-likelihood has fallen by the quantile of χ² with one degree of
    freedom; 0 and 1 where it does not fall that far.

    >>> ForgettingEstimate(0.02, 0.01, 0.04, -12.0, 0.95).covers(0.03)
    True
    """

    forgetting: float
    lower: float
    upper: float
    log_likelihood: float
    confidence: float

    def covers(self, forgetting: float) -> bool:
        """Tell whether a rate lies in the interval."""
        return self.lower <= forgetting <= self.upper


def estimate_forgetting(log_likelihood: Callable[[float], float], *, confidence: float = 0.95) -> ForgettingEstimate:
    """Return the rate of the highest likelihood, with its likelihood-ratio interval.

    Independent stretches (days, machines) are added up: ``lambda e: sum(p.log_likelihood(e) for p in panels)``.

    Parameters
    ----------
    log_likelihood : callable
        Of the forgetting rate, 0 and 1 included.
    confidence : float
        Of the interval.

    >>> found = estimate_forgetting(lambda e: -1e4 * (e - 0.2) ** 2)
    >>> round(found.forgetting, 3), round(found.lower, 3), round(found.upper, 3)
    (0.2, 0.186, 0.214)
    """
    from scipy.optimize import minimize_scalar  # slow to import, and seldom needed

    open_unit(confidence, "confidence")

    # The search is over the logarithm of the decay rate, which is smooth at both ends.
    def rate(z: float) -> float:
        return -math.expm1(-2.0 * math.exp(z))

    def height(z: float) -> float:
        return float(log_likelihood(rate(z)))

    low, high = (math.log(-0.5 * math.log1p(-e)) for e in (LEAST, MOST))
    z = np.linspace(low, high, STARTS)
    values = np.array([height(v) for v in z])
    best = int(np.argmax(values))
    around = (float(z[max(best - 1, 0)]), float(z[min(best + 1, STARTS - 1)]))
    found = minimize_scalar(lambda v: -height(v), bounds=around, method="bounded", options={"xatol": 1e-4})
    top, at = max((-float(found.fun), float(found.x)), (float(values[best]), float(z[best])))
    still, new = float(log_likelihood(0.0)), float(log_likelihood(1.0))
    level = max(top, still, new) - 0.5 * float(chdtri(1, 1.0 - confidence))
    estimate = 0.0 if still >= max(top, new) else 1.0 if new >= top else rate(at)
    return ForgettingEstimate(
        forgetting=estimate,
        lower=0.0 if still >= level else _crossing(height, level, z, values, at, -1, rate),
        upper=1.0 if new >= level else _crossing(height, level, z, values, at, 1, rate),
        log_likelihood=max(top, still, new),
        confidence=confidence,
    )


def _crossing(
    height: Callable[[float], float],
    level: float,
    z: Array,
    values: Array,
    top: float,
    side: int,
    rate: Callable[[float], float],
) -> float:
    """The rate furthest out on one side at which the likelihood still reaches the level."""
    from scipy.optimize import brentq

    outer = z[0] if side < 0 else z[-1]
    reached = z[values >= level]
    edge = float(min(top, *reached) if side < 0 else max(top, *reached)) if reached.size else top
    beyond = z[z < edge][-1:] if side < 0 else z[z > edge][:1]
    if not beyond.size or height(edge) < level:  # as far out as rates are told apart
        return rate(float(outer)) if not beyond.size else rate(edge)
    left, right = sorted((edge, float(beyond[0])))
    return rate(float(brentq(lambda v: height(v) - level, left, right, xtol=1e-6)))
