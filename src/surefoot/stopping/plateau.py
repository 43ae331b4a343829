"""A curve model that knows about plateaus, slow starts and noise.

The published model decays towards zero error, so it forecasts that a run which has levelled off will go on improving.
Here a curve is, given a *shape* g that falls from 1 to 0,

    measured error = limit + drop · g(n) + wander(n) + noise,

* limit and drop: independent Gaussians, in units of the largest error seen, so that a curve from 0.02 to 0.005 is as
  good as one from 0.9 to 0.2;
* g: a stretched exponential exp(−(n/τ)^γ), which starts late for γ > 1 and trails off for γ < 1, or a power law
  (1 + n/τ)^(−p);
* wander: Brownian motion in log n, what neither shape explains, so that intervals do not shrink to nothing;
* noise: independent from epoch to epoch.

Given (γ, τ, p), the size of the wander and of the noise, everything is Gaussian. These five, and the choice of the
shape, have flat priors (in logs) and are averaged over: a population drawn by the likelihood is moved by a differential
evolution Markov chain, and each member of it draws an equal share of the curves. Curves whose noise-free part leaves
(0, 1) are dropped, which is the prior cut off there. What is returned is the *measured* error, noise included, because
the score to beat was measured too.

References: Domhan, Springenberg & Hutter 2015 (shapes of learning curves); Swersky, Snoek & Adams 2014 (the Gaussian
prior on the limit); ter Braak 2006 (differential evolution Markov chains).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from surefoot.arguments import whole
from surefoot.stopping.curves import EDGE, FEWEST, condition, draw, register, resample

__all__ = ["Plateau"]

Array = NDArray[np.float64]

PROPOSALS = 2048  # draws from the prior of the shape
POPULATION = 256  # of these, drawn by likelihood and moved
MOVES = 6
STRIDES = np.array([0.3, 0.7, 1.0])  # of a move, in differences between two other members
TREMBLE = 0.02  # added to each move, so that a population that has collapsed can spread again
STRETCH, POWER, SOON, LATE = (0.35, 4.0), (0.3, 3.0), 0.7, 1.5  # ranges of γ, p and τ; the last in units of the horizon


@register
@dataclass(frozen=True)
class Plateau:
    """Curves that level off somewhere: limit, drop, shape, wander and noise are all inferred.

    Parameters
    ----------
    limit, drop : (float, float)
        Mean and standard deviation of the limit and of the drop, in units of the largest error seen.
    wander, noise : (float, float)
        Range of the standard deviations of the wander (per factor e in the epoch) and of the noise, in the same units.
    members : int
        Shapes that share the curves.
    rank : int
        Leading eigenvectors that the noise-free curves are drawn from.

    >>> errors = 0.35 + 0.3 * np.exp(-0.2 * np.arange(1, 17))     # will level off at 0.35
    >>> rng = np.random.default_rng(0)
    >>> low, high = np.quantile(Plateau().sample(errors, 50, 4_000, rng)[:, -1], [0.05, 0.95])
    >>> bool(low < 0.35 < high < low + 0.1)
    True
    >>> from surefoot.stopping import ExponentialDecay
    >>> bool(np.quantile(ExponentialDecay().sample(errors[:8], 50, 4_000, rng)[:, -1], 0.95) < 0.2)
    True
    """

    limit: tuple[float, float] = (0.3, 0.3)
    drop: tuple[float, float] = (0.5, 0.35)
    wander: tuple[float, float] = (3e-3, 0.1)
    noise: tuple[float, float] = (3e-4, 0.1)
    members: int = 128
    rank: int = 12

    def __post_init__(self) -> None:
        for name in ("limit", "drop", "wander", "noise"):
            if np.shape(pair := getattr(self, name)) != (2,):
                raise ValueError(f"{name} must be a pair of numbers, got {pair!r}")
            first, second = (float(value) for value in pair)
            if not (math.isfinite(first) and 0 < second < math.inf):
                raise ValueError(f"{name} must be a pair of finite numbers, the second positive, got {(first, second)}")
            if name in ("wander", "noise") and not 0 < first < second:
                raise ValueError(f"{name} must be a positive, increasing range, got {(first, second)}")
            object.__setattr__(self, name, (first, second))
        if whole(self.members, "members", 1) > POPULATION:
            raise ValueError(f"members must be between 1 and {POPULATION}, got {self.members!r}")
        whole(self.rank, "rank", 1)

    def sample(self, errors: Array, horizon: int, paths: int, rng: np.random.Generator) -> Array:
        """Return measured errors of epochs n + 1 to ``horizon``; see :class:`~surefoot.stopping.CurveModel`."""
        n = len(errors)
        unit = max(float(errors.max()), EDGE)
        g, wander, noise = self._shapes(self._population(errors / unit, horizon, rng), horizon)
        mean, root = condition(self._kernel(g, wander), self._residual(errors / unit, g), noise**2, self.rank)
        mean += self.limit[0] + self.drop[0] * g[:, n:]
        curves = draw(mean * unit, root * unit, paths, rng)
        latent = curves.T
        inside = (latent.min(axis=0) > 0.0) & (latent.max(axis=0) < 1.0)
        each = -(-paths // len(g))
        spread = np.repeat(noise * unit, each)[:paths].astype(np.float32)
        if np.count_nonzero(inside) >= min(FEWEST, paths / 10):
            latent, spread = np.compress(inside, latent, axis=1), spread[inside]
        measured = rng.standard_normal(latent.shape, dtype=np.float32)
        measured *= spread
        measured += latent
        np.clip(measured, EDGE, 1.0 - EDGE, out=measured)
        return measured.T  # type: ignore[return-value]

    def _shapes(self, u: Array, horizon: int) -> tuple[Array, Array, Array]:
        """Shapes (B, horizon) and standard deviations (B,) of wander and noise, for points (B, 6) of the unit cube."""
        low, high = np.log([STRETCH, (SOON, max(LATE * horizon, 2 * SOON)), POWER, self.wander, self.noise]).T
        gamma, tau, power, wander, noise = np.exp(low + u[:, :5] * (high - low)).T
        ratio = np.arange(1, horizon + 1) / tau[:, None]
        stretched = np.exp(-(ratio ** gamma[:, None]))
        g = np.where(u[:, 5:] < 0.5, stretched, (1.0 + ratio) ** -power[:, None])
        return g, wander, noise

    def _kernel(self, g: Array, wander: Array) -> Array:
        """Prior covariance (B, m, m) of the noise-free errors."""
        time = np.log(np.arange(1, g.shape[1] + 1))
        K = np.minimum(time[:, None], time) * (wander**2)[:, None, None]
        K += self.limit[1] ** 2
        K += self.drop[1] ** 2 * (g[:, :, None] * g[:, None, :])
        return K

    def _residual(self, errors: Array, g: Array) -> Array:
        """Errors less their prior mean, (B, n)."""
        residual: Array = errors - self.limit[0] - self.drop[0] * g[:, : len(errors)]
        return residual

    def _evidence(self, u: Array, errors: Array, horizon: int) -> Array:
        """Log marginal likelihood (B,), up to a constant."""
        n = len(errors)
        g, wander, noise = self._shapes(u, horizon)
        g = g[:, :n]
        L = np.linalg.cholesky(self._kernel(g, wander) + (noise**2)[:, None, None] * np.eye(n))
        white = np.linalg.solve(L, self._residual(errors, g)[:, :, None])[:, :, 0]
        value: Array = -0.5 * (white**2).sum(axis=1) - np.log(np.diagonal(L, axis1=1, axis2=2)).sum(axis=1)
        return value

    def _population(self, errors: Array, horizon: int, rng: np.random.Generator) -> Array:
        """Points (members, 6) of the unit cube, drawn from the posterior of the shape."""
        u = rng.random((PROPOSALS, 6))
        value = self._evidence(u, errors, horizon)
        chosen = resample(value, POPULATION, rng)
        u, value = u[chosen], value[chosen]
        for _ in range(MOVES):
            one, other = u[rng.permutation(POPULATION)], u[rng.permutation(POPULATION)]
            trial = u + rng.choice(STRIDES, (POPULATION, 1)) * (one - other)
            trial += TREMBLE * rng.standard_normal(u.shape)
            trial[:, 5] = np.where(rng.random(POPULATION) < 0.2, 1.0 - u[:, 5], u[:, 5])  # the other shape
            trial = np.abs((trial + 1.0) % 2.0 - 1.0)  # reflected at the walls, which keeps moves symmetric
            new = self._evidence(trial, errors, horizon)
            accept = np.log(rng.random(POPULATION)) < new - value
            u, value = np.where(accept[:, None], trial, u), np.where(accept, new, value)
        return u[rng.permutation(POPULATION)[: self.members]]
