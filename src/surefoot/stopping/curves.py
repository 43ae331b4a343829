"""Curve models: how an error curve may go on, given its first epochs.

A *curve model* draws error curves; whether one wins is then a matter of its last value. A *path model* also says which
of its paths win, for hypotheses other than "the last score is above the threshold". Both are protocols: any object with
the method serves, and a class that is to be stored with a policy is registered with :func:`register`.

:class:`ExponentialDecay` is the published model, a Gaussian process over the epoch with the kernel

    k(n, m) = ∫ e^(−λn) e^(−λm) Gamma(λ; α, rate β) dλ = (β/(n + m + β))^α            (A.1),

a mixture of exponential decays towards 0. :class:`~surefoot.stopping.plateau.Plateau` adds the level at which a curve
flattens out.

References: Swersky, Snoek & Adams 2014 (the kernel); Dai, Yu, Low & Jaillet 2019, appendix A, numbered as in Dai's
thesis (2021).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from surefoot.arguments import whole

__all__ = [
    "CurveModel",
    "ExponentialDecay",
    "LearningModel",
    "PathModel",
    "condition",
    "decay",
    "draw",
    "model_from_dict",
    "model_to_dict",
    "register",
    "resample",
    "within",
]

Array = NDArray[np.float64]
T = TypeVar("T", bound=type[Any])

FEWEST = 1000  # curves inside (0, 1) that must be left over; otherwise all are kept and clipped
EDGE = 1e-6  # curves are clipped this far inside (0, 1)


class CurveModel(Protocol):
    """Draws error curves that go on from given errors.

    >>> class Repeats:
    ...     "The last error, for ever."
    ...     def sample(self, errors, horizon, paths, rng):
    ...         return np.full((paths, horizon - len(errors)), errors[-1])
    >>> model: CurveModel = Repeats()
    >>> model.sample(np.array([0.5, 0.4]), 5, 2, np.random.default_rng(0))
    array([[0.4, 0.4, 0.4],
           [0.4, 0.4, 0.4]])
    """

    def sample(self, errors: Array, horizon: int, paths: int, rng: np.random.Generator) -> Array:
        """Return error curves (S, horizon − n) of epochs n + 1 to ``horizon``, S at most ``paths``; errors are (n,)."""
        ...


@runtime_checkable
class PathModel(Protocol):
    """Draws paths and says which of them win.

    ``wins`` has shape (S,), truth or probability per path, or (S, horizon − n), the probability that each path has of
    winning after each of its epochs (the posterior beliefs of Müller et al. 2007).

    >>> class Coin:
    ...     "Flat curves, and a fair coin for each."
    ...     def simulate(self, errors, horizon, threshold, paths, rng):
    ...         return np.full((paths, horizon - len(errors)), errors[-1]), rng.random(paths) < 0.5
    >>> isinstance(Coin(), PathModel)
    True
    """

    def simulate(
        self, errors: Array, horizon: int, threshold: float, paths: int, rng: np.random.Generator
    ) -> tuple[Array, NDArray[Any]]:
        """Return paths (S, horizon − n) and their wins; ``threshold`` is the score to beat, errors are (n,)."""
        ...


@runtime_checkable
class LearningModel(Protocol):
    """A curve model that learns from the runs that its study has completed.

    Attributes
    ----------
    room : float
        Scores without known bounds become errors by their distance to a ceiling: how far above the best one it lies,
        in ranges of the scores.

    >>> from surefoot.stopping import Plateau, Powers
    >>> isinstance(Powers(), LearningModel), isinstance(Plateau(), LearningModel)
    (True, False)
    """

    room: float

    def learn(self, completed: Sequence[Array], /) -> CurveModel:
        """Return the model given the errors of completed runs, in the units of the errors it will be asked about."""
        ...


_models: dict[str, type[Any]] = {}


def register(cls: T) -> T:
    """Register a model class, so that a rule that uses it can be stored.

    It is a dataclass, or has ``to_dict`` and ``from_dict``.

    >>> from surefoot.stopping import OptimalStopping
    >>> @register
    ... @dataclass(frozen=True)
    ... class Repeats:
    ...     shift: float = 0.0
    ...     def sample(self, errors, horizon, paths, rng):
    ...         return np.full((paths, horizon - len(errors)), errors[-1] + self.shift)
    >>> OptimalStopping.from_dict(OptimalStopping(epochs=9, model=Repeats(0.1)).to_dict()).model
    Repeats(shift=0.1)
    """
    _models[cls.__name__] = cls
    return cls


def model_to_dict(model: Any) -> dict[str, Any]:
    """Return a JSON-able description of a registered model.

    >>> model_to_dict(ExponentialDecay())["model"]
    'ExponentialDecay'
    """
    name = type(model).__name__
    if _models.get(name) is not type(model):
        raise TypeError(f"cannot store a {name}; decorate its class with surefoot.stopping.register")
    fields = model.to_dict() if hasattr(model, "to_dict") else asdict(model)
    # As JSON reads them back: a description must equal itself after a journal.
    return {"model": name, **{key: list(value) if isinstance(value, tuple) else value for key, value in fields.items()}}


def model_from_dict(data: dict[str, Any]) -> Any:
    """Rebuild a registered model from :func:`model_to_dict`.

    >>> model_from_dict({"model": "ExponentialDecay", "hyper": "grid"}).hyper
    'grid'
    """
    rest = {key: value for key, value in data.items() if key != "model"}
    if data.get("model") in ("Plateau", "Powers"):
        import surefoot.stopping.plateau
        import surefoot.stopping.powers  # noqa: F401  (registers them)
    if data.get("model") not in _models:
        raise ValueError(f"unknown curve model {data.get('model')!r}; known are {sorted(_models)}")
    cls = _models[data["model"]]
    return cls.from_dict(rest) if hasattr(cls, "from_dict") else cls(**rest)


# -- Gaussian processes over the epoch, many hyper-parameters at once --------------------------------------------------


def decay(alpha: Array, beta: Array, horizon: int) -> Array:
    """Return the exponential-decay kernel of epochs 1 to ``horizon`` for B pairs (α, β), shape (B, horizon, horizon).

    >>> K = decay(np.array([1.0]), np.array([2.0]), 3)
    >>> float(K[0, 0, 1])          # 2/(1 + 2 + 2)
    0.4
    """
    n = np.arange(1, horizon + 1)
    a, b = alpha[:, None, None], beta[:, None, None]
    K: Array = np.exp(a * (np.log(b) - np.log((n[:, None] + n) + b)))  # (A.1)
    return K


def condition(K: Array, errors: Array, noise: Array, rank: int) -> tuple[Array, Array]:
    """Return means (B, H) and roots (B, H, rank) of B processes at the epochs after those of the errors.

    Parameters
    ----------
    K : array of shape (B, n + H, n + H)
        Kernel of all epochs.
    errors : array of shape (n,) or (B, n)
        What was measured, less the prior mean.
    noise : array of shape (B,)
        Variance of the measurements.
    rank : int
        Leading eigenvectors to keep. The covariances are of low rank: with exponential decays the eigenvalues fall by
        ten orders of magnitude within ten terms, and what is left is rounding error.

    >>> K = decay(np.array([1.0]), np.array([2.0]), 5)
    >>> mean, root = condition(K, np.array([0.4, 0.3]), np.array([1e-3]), 2)
    >>> mean.shape, root.shape
    ((1, 3), (1, 3, 2))
    """
    n = errors.shape[-1]
    S = K[:, :n, :n] + noise[:, None, None] * np.eye(n)
    A = np.linalg.solve(S, K[:, :n, n:]).mT
    mean = np.matmul(A, np.broadcast_to(errors, S.shape[:2])[:, :, None])[:, :, 0]  # A e, A = K(m, n) (K(n, n) + s²I)⁻¹
    V = K[:, n:, n:] - A @ K[:, :n, n:]  # K(m, m) − A K(n, m)
    values, vectors = np.linalg.eigh(0.5 * (V + V.mT))
    rank = min(rank, V.shape[-1])
    root = vectors[:, :, -rank:] * np.sqrt(np.maximum(values[:, None, -rank:], 0.0))
    return mean, root


def draw(mean: Array, root: Array, paths: int, rng: np.random.Generator) -> Array:
    """Draw curves (paths, H), equally many from each of B means (B, H) and roots (B, H, r).

    They are single precision, and epochs are the slow axis in memory, as :func:`~surefoot.stopping.count` likes it.

    >>> draw(np.zeros((1, 3)), np.ones((1, 3, 1)), 2, np.random.default_rng(0)).shape
    (2, 3)
    """
    B, H, r = root.shape
    each = -(-paths // B)
    curves = np.matmul(root.astype(np.float32), rng.standard_normal((B, r, each), dtype=np.float32))
    curves += mean.astype(np.float32)[:, :, None]
    flat: Array = curves.transpose(1, 0, 2).reshape(H, B * each)[:, :paths].T
    return flat


def within(curves: Array) -> Array:
    """Keep the curves (S, H) that stay inside (0, 1); where hardly any does, keep all and clip them.

    >>> within(np.array([[0.5, 0.4], [0.5, -0.1]]))
    array([[0.5, 0.4]])
    """
    E = curves.T
    inside = (E.min(axis=0) > 0.0) & (E.max(axis=0) < 1.0)
    kept = np.count_nonzero(inside)
    if kept == len(curves):
        return curves
    if kept >= min(FEWEST, len(curves) / 10):
        return np.compress(inside, E, axis=1).T
    return np.clip(curves, EDGE, 1.0 - EDGE)


def resample(log_weights: Array, size: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Draw ``size`` indices in proportion to the weights, as evenly as possible (systematic resampling).

    >>> resample(np.log([0.5, 0.25, 0.25]), 4, np.random.default_rng(0))
    array([0, 0, 1, 2])
    """
    weights = np.exp(log_weights - log_weights.max())
    ladder = np.cumsum(weights)
    chosen: NDArray[np.intp] = np.searchsorted(ladder, (rng.random() + np.arange(size)) * (ladder[-1] / size), "right")
    return np.minimum(chosen, len(ladder) - 1)  # against rounding on the last rung


# -- the published model -----------------------------------------------------------------------------------------------

STARTS = np.array([(0.0, 0.0), (-2.0, 2.0), (1.0, 1.0), (2.0, 5.0)])  # log α, log β: one per hill that occurs
GRID = 24  # points per axis of the grid of log α, log β
MEMBERS = 64  # draws of hyper-parameters that share the paths


@register
@dataclass(frozen=True)
class ExponentialDecay:
    """A Gaussian process that mixes exponential decays towards zero error; the published curve model.

    Parameters
    ----------
    hyper : "ml", "grid" or "conjugate"
        How (α, β) come from the errors. The largest marginal likelihood, climbed from several starts, since it has
        several hills whose forecasts differ; or an average over a grid, each point weighed by its likelihood; or the
        printed conjugate update α = n, β = Σ errors, which forecasts zero error for every curve and is kept for the
        record only.
    noise : float
        Variance of a measured error. A generous one keeps the simulated curves diverse.
    rank : int
        Leading eigenvectors that curves are drawn from.
    bounds : (float, float)
        Range of α and of β.

    Curves that leave (0, 1) are dropped; where hardly any stays inside, all are clipped instead.

    >>> model = ExponentialDecay()
    >>> errors = 0.6 * np.exp(-0.05 * np.arange(1, 9))
    >>> curves = model.sample(errors, 50, 10_000, np.random.default_rng(0))
    >>> curves.shape[1]
    42
    >>> bool(abs(np.median(curves[:, 20]) - 0.6 * np.exp(-0.05 * 29)) < 0.03)
    True
    """

    hyper: Literal["ml", "grid", "conjugate"] = "ml"
    noise: float = 1e-3
    rank: int = 10
    bounds: tuple[float, float] = (1e-3, 150.0)

    def __post_init__(self) -> None:
        if self.hyper not in ("ml", "grid", "conjugate"):
            raise ValueError(f"hyper must be one of ml, grid, conjugate, got {self.hyper!r}")
        if not (math.isfinite(self.noise) and self.noise > 0):
            raise ValueError(f"noise is a variance, positive and finite, got {self.noise!r}")
        whole(self.rank, "rank", 1)
        low, high = self.bounds
        if not 0 < low < high < math.inf:
            raise ValueError(f"bounds must be positive, finite and increasing, got {self.bounds!r}")
        object.__setattr__(self, "bounds", (float(low), float(high)))

    def sample(self, errors: Array, horizon: int, paths: int, rng: np.random.Generator) -> Array:
        """Return curves of epochs n + 1 to ``horizon``, at most ``paths`` of them; see :class:`CurveModel`."""
        alpha, beta = self.parameters(errors, rng)
        K = decay(alpha, beta, horizon)
        mean, root = condition(K, errors, np.full(len(K), self.noise), self.rank)
        return within(draw(mean, root, paths, rng))

    def parameters(self, errors: Array, rng: np.random.Generator | None = None) -> tuple[Array, Array]:
        """Return the α and β in use, (1,) each; for the grid average (64,), drawn by their likelihood.

        >>> errors = 0.6 * np.exp(-0.05 * np.arange(1, 9))
        >>> alpha, beta = ExponentialDecay().parameters(errors)
        >>> ExponentialDecay(hyper="conjugate").parameters(errors)[0]
        array([8.])
        """
        if self.hyper == "conjugate":
            return np.array([float(len(errors))]), np.array([max(float(errors.sum()), 1e-12)])
        if self.hyper == "grid":
            axis = np.linspace(math.log(self.bounds[0]), math.log(self.bounds[1]), GRID)
            theta = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
            chosen = resample(self.log_likelihood(theta, errors)[0], MEMBERS, rng or np.random.default_rng(0))
            theta = theta[chosen]
        else:
            theta = self._climb(errors)[None]
        return np.exp(theta[:, 0]), np.exp(theta[:, 1])

    def log_likelihood(self, theta: Array, errors: Array) -> tuple[Array, Array, Array]:
        """Return log p(errors | α, β) at B points (log α, log β), its gradient and the Fisher information.

        The shapes are (B,), (B, 2) and (B, 2, 2).

        >>> errors = 0.6 * np.exp(-0.05 * np.arange(1, 9))
        >>> value, slope, information = ExponentialDecay().log_likelihood(np.zeros((1, 2)), errors)
        >>> slope.shape, information.shape
        ((1, 2), (1, 2, 2))
        """
        n = len(errors)
        alpha, beta = np.exp(theta).T
        K = decay(alpha, beta, n)
        epochs = np.arange(1, n + 1)
        total, a, b = epochs[:, None] + epochs, alpha[:, None, None], beta[:, None, None]
        # In logs: ∂k/∂log α = k α log(β/(n + m + β)), ∂k/∂log β = k α (n + m)/(n + m + β).
        D = np.stack([K * a * np.log(b / (total + b)), K * a * total / (total + b)], axis=1)
        L = np.linalg.cholesky(K + self.noise * np.eye(n))
        inverse = np.linalg.inv(L)
        white = inverse @ errors
        value = -0.5 * (white**2).sum(axis=1) - np.log(np.diagonal(L, axis1=1, axis2=2)).sum(axis=1)
        C = inverse[:, None] @ D @ inverse.mT[:, None]  # L⁻¹ ∂K L⁻ᵀ
        flat = C.reshape(len(theta), 2, n * n)
        slope = 0.5 * (np.einsum("bi,bkij,bj->bk", white, C, white) - np.trace(C, axis1=2, axis2=3))
        return value - 0.5 * n * math.log(2.0 * math.pi), slope, 0.5 * flat @ flat.mT

    def _climb(self, errors: Array) -> Array:
        """The best (log α, log β): damped Fisher scoring inside the box, all starts at once."""
        low, high = np.log(self.bounds)
        theta = np.clip(STARTS, low, high)
        value, slope, information = self.log_likelihood(theta, errors)
        damping = np.full(len(theta), 1e-2)
        for _ in range(100):
            # A coordinate at a bound whose slope points outwards rests.
            rests = ((theta <= low) & (slope < 0)) | ((theta >= high) & (slope > 0))
            g = np.where(rests, 0.0, slope)
            F = np.where(rests[:, :, None] | rests[:, None, :], 0.0, information)
            scale = np.einsum("bii->bi", F)
            scale += np.where(rests, 1.0, damping[:, None] * scale + 1e-8)  # a view: this changes F
            step = np.clip(np.linalg.solve(F, g[:, :, None])[:, :, 0], -2.0, 2.0)
            if np.vecdot(step, g).max() < 1e-9:
                break
            trial = np.clip(theta + step, low, high)
            new = self.log_likelihood(trial, errors)
            better = new[0] > value
            theta, value = np.where(better[:, None], trial, theta), np.where(better, new[0], value)
            slope = np.where(better[:, None], new[1], slope)
            information = np.where(better[:, None, None], new[2], information)
            damping = np.clip(np.where(better, damping / 5.0, damping * 5.0), 1e-6, 1e12)
        best: Array = theta[value.argmax()]
        return best
