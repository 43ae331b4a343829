"""Fitting: hyper-parameters from data.

:func:`fit` maximizes the posterior density of the log hyper-parameters θ,

    log p(y | X, θ) + Σᵢ log p(θᵢ),   log p(y | X, θ) = −½ rᵀ S⁻¹ r − ½ log det S − ½ n log 2π,

with S = K + Σ and r = y − c. The best constant c is known in closed form for every θ (generalized least squares), so it
is not a variable of the search, and by the envelope theorem the gradient in θ is the one at fixed c:
½ (S⁻¹r rᵀS⁻¹ − S⁻¹) pulled back through the kernel.

The surface has several hills. A fit looks at the mode of the prior and at draws from it, half of them with much noise;
climbs from the best of either half, the second time with the curvature that the first climb has learned; and keeps the
higher summit. With many measurements the climbs are made on a random part of them first, and only the higher one is
finished on all; the curvature is carried over, so that the finish is short. Beyond ``gp.large`` measurements the whole
fit sees a part of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg.blas import dsyr
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs

from surefoot.belief.posterior import EXACT, observations
from surefoot.belief.priors import Fixed

if TYPE_CHECKING:
    from surefoot.belief.gp import GP

__all__ = ["fit", "log_likelihood"]

Array = NDArray[np.float64]

DRAWS = 10  # starts beside the modes of the priors; an even number
PART = 64  # measurements that a climb begins with
NEARLY = 2e-2  # a summit is reached when the next step promises less, in nats
BURN = 10  # sweeps that slice sampling throws away
REACH = 100.0  # a hyper-parameter beyond exp(±REACH) is nowhere
JITTER = (EXACT, 1e-10, 1e-8, 1e-6)  # least noise, as a share of k(x, x), raised where rounding asks for it


class Evidence:
    """Log posterior density of the free entries of θ = (kernel.theta, log excess noise), and its gradient.

    The noise is ``floor + exp(θ_noise)`` where the measurement does not bring its own.

    Parameters
    ----------
    gp : GP
        Kernel, priors and noise floor; its values are used for what is fixed.
    X, y, noise : arrays of shape (n, e), (n,), (n,)
        Measurements, NaN where the noise is to be fitted.
    priors : bool
        Without them this is the likelihood, all of θ is free, and the mean is the one of ``gp``.
    """

    def __init__(self, gp: GP, X: Array, y: Array, noise: Array, *, priors: bool = True) -> None:
        found = [gp.prior(name) if priors else None for name in gp.names]
        self.frame = gp.theta
        self.free = np.array([not isinstance(prior, Fixed) for prior in found])
        for i, prior in enumerate(found):
            if isinstance(prior, Fixed) and prior.value is not None:
                self.frame[i] = math.log(max(prior.value, 1e-300))
        # Every prior is a bell of θ; a missing one is infinitely wide.
        bells = [(0.0, math.inf, math.inf) if p is None or isinstance(p, Fixed) else p.bell for p in found]
        self.center, self.below, self.above = np.array(bells).T
        self.weights = np.stack([self.below, self.above]) ** -2.0
        pinned = (gp.priors or {}).get("mean") if priors else Fixed()
        self.mean = gp.mean if not isinstance(pinned, Fixed) or pinned.value is None else pinned.value
        self.free_mean = not isinstance(pinned, Fixed)
        self.unknown = np.isnan(noise)
        self.floor = gp.floor if self.free[-1] and priors else 0.0
        self.given = np.where(self.unknown, self.floor, noise)
        self.kernel, self.y = gp.kernel.over(X), y
        self.right = np.stack([y, np.ones_like(y)])  # LAPACK reads the rows as columns
        self.S = np.empty((len(y), len(y)))

    def full(self, x: Array) -> Array:
        """Return all of θ from its free entries."""
        theta = self.frame.copy()
        theta[self.free] = x
        return theta

    def __call__(self, x: Array, gradient: bool = True) -> tuple[float, Array]:
        """Return the log density (up to a constant) and its gradient (empty unless asked for); keeps the best mean."""
        theta = self.full(x)
        if not (abs(theta[:-1]).max() < REACH and theta[-1] < REACH):
            return -math.inf, np.zeros_like(x)
        K, pull = self.kernel(theta[:-1])
        S, n, excess = self.S, len(K), math.exp(theta[-1])
        diagonal, noise = S.reshape(-1)[:: n + 1], self.given + excess * self.unknown
        for level in JITTER:
            np.copyto(S, K)
            diagonal += np.maximum(noise, level * diagonal)
            U, info = dpotrf(S.T, lower=0, clean=1, overwrite_a=1)  # in place: S becomes the lower factor
            if info == 0:
                break
        else:
            return -math.inf, np.zeros_like(x)
        (a, b), distance = dpotrs(U, self.right.T)[0].T, theta - self.center
        weight = np.where(distance < 0, *self.weights)
        if self.free_mean:
            self.mean = float(a.sum() / b.sum())
        alpha = a - self.mean * b
        value = (
            -0.5 * float(alpha @ (self.y - self.mean))
            - float(np.log(diagonal).sum())
            - 0.5 * n * math.log(2.0 * math.pi)
            - 0.5 * float(weight @ (distance * distance))
        )
        if not gradient:
            return value, np.empty(0)
        dpotri(U, lower=0, overwrite_c=1)
        trace = diagonal.copy()
        dsyr(-1.0, alpha, lower=0, a=S.T, overwrite_a=1)  # S⁻¹ − S⁻¹r rᵀS⁻¹, its lower triangle; zeros above
        diagonal *= 0.5  # ∂K is symmetric: a triangle with half its diagonal weighs it as half the matrix would
        slope = np.empty_like(theta)
        slope[:-1] = -pull(S)
        slope[-1] = 0.5 * excess * float((alpha * alpha - trace) @ self.unknown)
        slope -= weight * distance
        return value, slope[self.free]


def log_likelihood(gp: GP, X: ArrayLike, y: ArrayLike, noise: ArrayLike | None = None) -> tuple[float, Array]:
    """Return the log marginal likelihood and its gradient in ``gp.theta``; see :meth:`GP.log_likelihood`.

    >>> from surefoot.belief.gp import GP
    >>> value, slope = log_likelihood(GP(noise=1.0), [[0.0]], [0.0])
    >>> slope[[0, 2]].round(3)  # variance and noise share the blame
    array([-0.25, -0.25])
    """
    return Evidence(gp, *observations(X, y, noise), priors=False)(gp.theta)


def climb(
    density: Callable[[Array], tuple[float, Array]],
    start: Array,
    curvature: Array | None = None,
    *,
    tolerance: float = NEARLY,
    steps: int = 60,
    rival: float = -math.inf,
) -> tuple[Array, float, Array]:
    """Maximize by BFGS; return the summit, its height and the inverse curvature there.

    Stops when the quadratic model promises less than ``tolerance``, or after a few steps if even ten times its promise
    would leave the climb below ``rival``, a height that is reached elsewhere. A step is at most 2 long in any
    coordinate, a factor of e² in a hyper-parameter: the model is not to be trusted further.

    >>> top, height, _ = climb(lambda x: (-(x @ x), -2.0 * x), np.array([3.0, -1.0]), tolerance=1e-12)
    >>> bool(abs(top).max() < 1e-5)
    True
    """
    x, (value, slope) = start, density(start)
    H = curvature
    for count in range(steps):
        step = slope / max(1.0, np.abs(slope).max()) if H is None else H @ slope
        step *= min(1.0, 2.0 / max(np.abs(step).max(), 1e-300))
        gain = float(slope @ step)
        if not gain > tolerance or (count >= 4 and value + 10.0 * gain < rival):
            break
        length = 1.0
        for _ in range(12):
            new_value, new_slope = density(x + length * step)
            if new_value >= value + 1e-4 * length * gain:
                break
            # The parabola through both heights and the slope, kept away from its ends.
            fall = value + length * gain - new_value
            length *= min(0.5, max(0.1, 0.5 * length * gain / fall)) if math.isfinite(fall) else 0.1
        else:
            break
        s, g = length * step, slope - new_slope
        x, value, slope = x + s, new_value, new_slope
        H = _update(H, s, g)
    return x, value, np.eye(len(x)) if H is None else H


def _update(H: Array | None, s: Array, g: Array) -> Array | None:
    """One BFGS update of the inverse of the negative Hessian; unchanged where the surface is not concave."""
    turn = float(s @ g)
    if not turn > 1e-8 * float(np.sqrt((s @ s) * (g @ g))):
        return H
    if H is None:
        H = np.eye(len(s)) * (turn / float(g @ g))
    Hg = H @ g
    mixed = np.multiply.outer(Hg, s)
    updated: Array = H + (1.0 + float(g @ Hg) / turn) / turn * np.multiply.outer(s, s) - (mixed + mixed.T) / turn
    return updated


def fit(gp: GP, X: ArrayLike, y: ArrayLike, noise: ArrayLike | None, rng: np.random.Generator) -> GP:
    """Return the GP with the most probable hyper-parameters; see :meth:`GP.fit`.

    >>> from surefoot.belief.gp import GP
    >>> gp = fit(GP(noise=0.1), [[0.0]], [7.0], None, np.random.default_rng(0))
    >>> round(gp.mean, 6)
    7.0
    """
    points, values, noises = observations(X, y, noise)
    n = len(values)
    if not n:
        return gp
    within, shift, scale = inside(gp, values)
    z, own = (values - shift) / scale, noises / scale**2
    if gp.large is not None and n > gp.large:
        rows = representatives(z, gp.large, rng)
        points, z, own, n = points[rows], z[rows], own[rows], gp.large
    evidence = Evidence(within, points, z, own)
    best = evidence.frame[evidence.free]
    if best.size:
        part = evidence
        if n > 1.5 * PART:
            rows = np.sort(rng.choice(n, PART, replace=False))
            part = Evidence(within, points[rows], z[rows], own[rows])
        starts = _starts(evidence, rng)
        heights = np.array([part(start, gradient=False)[0] for start in starts])
        order = [2 * int(np.argmax(heights[::2])), 2 * int(np.argmax(heights[1::2])) + 1]
        better, other = sorted(order, key=lambda i: -heights[i])
        first = climb(part, starts[better], _curvature(part))
        tops = [first, climb(part, starts[other], first[2], rival=first[1])]
        if part is not evidence:  # what a part took for the best hill need not be the best of all
            tops = [(x, evidence(x, gradient=False)[0], H) for x, _, H in tops]
        best, _, H = max(tops, key=lambda top: top[1])
        if part is not evidence:
            best, _, _ = climb(evidence, best, H * (PART / n))

    def dressed(x: Array) -> GP:
        evidence(x, gradient=False)  # leaves the best mean behind
        theta = evidence.full(x)
        return replace(
            gp,
            kernel=gp.kernel.with_theta(theta[:-1]).scaled(scale**2),
            noise=(evidence.floor + math.exp(theta[-1])) * scale**2,
            mean=shift + scale * evidence.mean,
            members=(),
        )

    fitted = dressed(best)
    if not (gp.samples and best.size):
        return fitted
    draws = slice_sample(evidence, best, gp.samples, rng)
    return replace(fitted, members=tuple(replace(dressed(x), priors=None, samples=0) for x in draws))


def representatives(y: Array, count: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Return the rows that hyper-parameters are fitted to, in order: an eighth the best, the others at random.

    Where measurements crowd, so does a random part: it knows their noise and their finest lengths. Points far from each
    other, which look like the better choice, know neither (``docs/decisions/017-size.md``).

    >>> representatives(np.arange(100.0), 8, np.random.default_rng(0))[-1]
    np.int64(99)
    """
    order = np.argsort(-y, kind="stable")
    best = count // 8
    return np.sort(np.concatenate([order[:best], rng.choice(order[best:], count - best, replace=False)]))


def inside(gp: GP, y: Array) -> tuple[GP, float, float]:
    """Return the GP about (y − shift)/scale, with shift and scale: 0 and 1 where it does not standardize.

    >>> from surefoot.belief.gp import GP
    >>> inside(GP(noise=4.0, standardize=True), np.array([1.0, 5.0]))[1:]
    (3.0, 2.8284271247461903)
    """
    shift, scale = _standard(y) if gp.standardize else (0.0, 1.0)
    kernel, noise, mean = gp.kernel.scaled(scale**-2), gp.noise / scale**2, (gp.mean - shift) / scale
    return replace(gp, kernel=kernel, noise=noise, mean=mean), shift, scale


def _standard(y: Array) -> tuple[float, float]:
    """Mean and scale of the values; those that differ by rounding only, or have no spread to square, have scale 1."""
    shift = float(y.mean())
    scale = float(y.std(ddof=1)) if len(y) > 1 else 0.0
    return shift, scale if scale > max(1e-12 * abs(shift), 1e-153) else 1.0


def _starts(evidence: Evidence, rng: np.random.Generator) -> Array:
    """Modes of the priors (the current value where there is none) and draws around them, shape (2 + DRAWS, p).

    Two explanations of the data compete, each with a hill of its own: all is signal, or much is noise. The noise of
    every second start is a fair share of the variance of the data.
    """
    free = evidence.free
    known = np.isfinite(evidence.above[free])
    center = np.where(known, evidence.center[free], evidence.frame[free])
    z = np.vstack([np.zeros((2, len(center))), rng.standard_normal((DRAWS, len(center)))])
    std = np.where(known, np.where(z < 0, evidence.below[free], evidence.above[free]), 2.0)
    starts: Array = center + std * z
    spread = float(evidence.y.var())
    if free[-1] and spread > 0:
        starts[1::2, -1] = math.log(0.2 * spread)
    return starts


def _curvature(evidence: Evidence) -> Array:
    """A first guess of the inverse curvature: that of the priors, and a tenth of a nat for every measurement."""
    prior = evidence.weights.max(axis=0)[evidence.free]
    return np.diag(1.0 / (prior + 0.1 * len(evidence.y)))


def slice_sample(evidence: Evidence, start: Array, count: int, rng: np.random.Generator) -> list[Array]:
    """Draw from the posterior of the free log hyper-parameters by slice sampling, one coordinate at a time.

    Starts at the summit; the first sweeps are thrown away and of the others every second is kept.

    >>> from surefoot.belief import GP, LogNormal
    >>> X, y = np.linspace(0.0, 1.0, 8)[:, None], np.arange(8.0)
    >>> evidence = Evidence(GP(priors={"lengthscale": LogNormal(0.0, 1.0)}), X, y, np.full(8, np.nan))
    >>> len(slice_sample(evidence, np.zeros(3), 4, np.random.default_rng(0)))
    4

    References: Neal 2003, "Slice sampling", figures 3 and 5.
    """

    def height(x: Array) -> float:  # a draw must not wander off where neither data nor prior speak
        return evidence(x, gradient=False)[0] if np.abs(x - start).max() < 10.0 else -math.inf

    x, value, draws = start.copy(), height(start), []
    for sweep in range(BURN + 2 * count):
        for i in range(len(x)):
            level = value - rng.standard_exponential()
            low = x[i] - rng.random()
            bounds = [low, low + 1.0]
            for side, step in ((0, -1.0), (1, 1.0)):
                for _ in range(10):
                    if height(_moved(x, i, bounds[side])) <= level:
                        break
                    bounds[side] += step
            while True:
                candidate = _moved(x, i, rng.uniform(*bounds))
                value = height(candidate)
                if value > level or bounds[1] - bounds[0] < 1e-9:
                    break
                bounds[int(candidate[i] > x[i])] = candidate[i]
            x = candidate
        if sweep >= BURN and (sweep - BURN) % 2:
            draws.append(x)
    return draws


def _moved(x: Array, i: int, value: float) -> Array:
    moved = x.copy()
    moved[i] = value
    return moved
