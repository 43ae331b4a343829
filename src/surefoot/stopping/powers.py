"""A curve model that learns from the curves that a study has completed: powers of the epoch, with a wandering exponent.

On doubly logarithmic axes an error curve is nearly straight, and bends. With n of N epochs seen, h = ⌊n/2⌋ and errors
e₁, ..., e_n, let

    F = log(e_n/e_h)/log(n/h)        the slope so far,
    R = log(e_N/e_n)/log(N/n)        the slope to come, which decides where the run ends.

The model is a Bayesian linear regression of one on the other, with one scale for everything unknown,

    R − μ = a + b (F − μ) + σ z,     z ~ N(0, 1),                                                                  (1)
    a ~ N(0, s_a² σ²),  b ~ N((n/N)^γ, s_b² σ²),  σ² ~ inverse gamma(α₀, α₀ s₀²):                                  (2)

a slope persists, the more so the more of the run has been seen, and falls back to its usual value μ otherwise. Each
completed curve of the study is one row (F, R) of the regression, and updates a, b and σ² in closed form. The forecast
of R is a Student t. Where a run ends follows from e_N = e_n (N/n)^R. The way there is Brownian motion in log epoch with
the slope a + b F as its drift, whose end is the z of (1):

    log e_m = log e_n + (μ + a + b (F − μ)) u L + σ L W(u),   u = log(m/n)/L,  L = log(N/n),  W(1) = z.             (3)

The constants were chosen on ten data sets of LCBench; ``benchmarks/forecasts.py`` says how often the quantiles hold on
24 others and on networks that were really trained.

Reference: for the regression, Gelman et al. 2013, section 14.2; the idea to learn a study's curves from its completed
ones, Swersky, Snoek & Adams 2014 and Domhan, Springenberg & Hutter 2015.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from surefoot.stopping.curves import EDGE, register

__all__ = ["Powers"]

Array = NDArray[np.float64]

USUAL = -0.134  # μ, the slope that curves usually have
PERSISTS = 0.6  # γ
SPREAD = (0.3, 1.0)  # s_a, s_b, in units of σ
SHAPE, SCALE = 1.5, 0.1  # α₀ and s₀


@register
@dataclass(frozen=True)
class Powers:
    """Curves that fall by a power of the epoch; how it changes on the way is learnt from completed curves.

    Parameters
    ----------
    completed : sequence of sequences of float
        Errors of whole runs of the same study, in [0, 1]. Policies fill this in themselves; see :meth:`learn`.

    >>> errors = 0.5 * np.arange(1, 11) ** -0.2
    >>> curves = Powers().sample(errors, 50, 4_000, np.random.default_rng(0))
    >>> curves.shape
    (4000, 40)
    >>> whole = 0.5 * np.arange(1, 51) ** -0.2
    >>> learnt = Powers().learn([whole, 0.8 * whole, 1.2 * whole]).sample(errors, 50, 4_000, np.random.default_rng(0))
    >>> bool(np.std(learnt[:, -1]) < 0.7 * np.std(curves[:, -1]))
    True
    """

    room: ClassVar[float] = 0.5
    completed: tuple[tuple[float, ...], ...] = ()

    def __post_init__(self) -> None:
        curves = tuple(tuple(float(error) for error in curve) for curve in self.completed)
        if any(not math.isfinite(error) for curve in curves for error in curve):
            raise ValueError("completed curves must be finite errors in [0, 1]")
        object.__setattr__(self, "completed", curves)

    def learn(self, completed: Sequence[Sequence[float] | Array], /) -> Self:
        """Return the model given the errors of completed runs."""
        return replace(self, completed=tuple(tuple(curve) for curve in completed))

    def sample(self, errors: Array, horizon: int, paths: int, rng: np.random.Generator) -> Array:
        """Return error curves of epochs n + 1 to ``horizon``; see :class:`~surefoot.stopping.CurveModel`."""
        n = len(errors)
        known = [curve for curve in self.completed if len(curve) >= horizon]
        rows = np.array([slopes(np.array(curve), n, horizon) for curve in known]).reshape(-1, 2)
        mean, spread, alpha, scale = self._posterior(rows, n / horizon)
        x = np.array([1.0, slope(errors, n) - USUAL])
        # a, b and σ² from their posterior, one of each for every path.
        sigma = np.sqrt(alpha * scale**2 / rng.gamma(alpha, 1.0, paths))
        drift = USUAL + float(mean @ x) + sigma * math.sqrt(float(x @ spread @ x)) * rng.standard_normal(paths)
        u = np.log(np.arange(n, horizon + 1) / n)
        L = u[-1]
        steps = np.sqrt(np.diff(u) / L)
        W = np.cumsum(rng.standard_normal((paths, horizon - n)) * steps, axis=1)
        curves: Array = max(float(errors[-1]), EDGE) * np.exp(drift[:, None] * u[1:] + (sigma * L)[:, None] * W)  # (3)
        return np.clip(curves, EDGE, 1.0 - EDGE)

    def _posterior(self, rows: Array, share: float) -> tuple[Array, Array, float, float]:
        """Mean (2,) and covariance (2, 2), in units of σ², of (a, b), and shape and scale of σ², given rows (F, R)."""
        before = np.array([0.0, share**PERSISTS])
        P0 = np.diag(1.0 / np.square(SPREAD))
        X = np.column_stack([np.ones(len(rows)), rows[:, 0] - USUAL])
        y = rows[:, 1] - USUAL
        P = P0 + X.T @ X
        mean = np.linalg.solve(P, P0 @ before + X.T @ y)
        alpha = SHAPE + 0.5 * len(rows)
        # 2 β = 2 α₀ s₀² + yᵀy + b₀ᵀP₀b₀ − bᵀPb, written as sums of squares
        left, moved = y - X @ mean, mean - before
        beta = SHAPE * SCALE**2 + 0.5 * float(left @ left + moved @ P0 @ moved)
        return mean, np.linalg.inv(P), alpha, math.sqrt(beta / alpha)


def slope(errors: Array, n: int) -> float:
    """Return F, the slope of the log error over the second half of the first n epochs; of one epoch, the usual one.

    >>> round(slope(np.arange(1, 9) ** -0.5, 8), 6)
    -0.5
    """
    h = n // 2
    if h < 1:
        return USUAL
    now, then = np.maximum([errors[n - 1], errors[h - 1]], EDGE)
    return math.log(now / then) / math.log(n / h)


def slopes(curve: Array, n: int, horizon: int) -> tuple[float, float]:
    """Return F and R of a completed curve.

    >>> [round(x, 6) for x in slopes(np.arange(1, 9) ** -0.5, 4, 8)]
    [-0.5, -0.5]
    """
    end, now = np.maximum([curve[horizon - 1], curve[n - 1]], EDGE)
    return slope(curve, n), math.log(end / now) / math.log(horizon / n)
