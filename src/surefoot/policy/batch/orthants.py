"""Normal distribution functions of two and three variables, for many distributions at once.

* Φ₂ by Owen's T function: exact to rounding.
* Φ₃ by Plackett's identity: along R(θ) = [[1, θρ₁₂, θρ₁₃], [·, 1, ρ₂₃], [·, ·, 1]] the derivative in θ is a sum of two
  bivariate densities times a univariate distribution function, so Φ₃(R) is Φ₁ Φ₂ at θ = 0 plus a one-dimensional
  integral. The variables are ordered so that ρ₂₃, which Φ₂ takes exactly, is the largest correlation, and the
  substitution θρ = sin t takes away the singularity of the densities.

References: Owen 1956 (the T function); Plackett 1954; Genz 2004 (numerical computation of bivariate and trivariate
normal probabilities).

>>> round(float(bivariate(np.zeros(1), np.zeros(1), np.array([0.5]))[0]), 12)  # ¼ + asin(½)/2π
0.333333333333
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, owens_t

__all__ = ["bivariate", "trivariate"]

Array = NDArray[np.float64]

NODES, WEIGHTS = np.polynomial.legendre.leggauss(64)


def bivariate(h: Array, k: Array, rho: Array) -> Array:
    """Return P(X ≤ h, Y ≤ k) for standard normal X, Y with correlation ``rho``, arrays of one shape.

    Parameters
    ----------
    h, k : array
        Upper limits; infinite ones are allowed.
    rho : array
        Correlations in [−1, 1].

    >>> bivariate(np.array([0.3]), np.array([-0.2]), np.array([0.0])).round(12) == (ndtr(0.3) * ndtr(-0.2)).round(12)
    array([ True])
    """
    h, k, rho = np.broadcast_arrays(*(np.asarray(a, dtype=np.float64) for a in (h, k, rho)))
    edge = np.abs(rho) >= 1.0 - 1e-15
    root = np.sqrt(np.where(edge, 1.0, (1.0 - rho) * (1.0 + rho)))
    # Owen's formula divides by h and k; near zero their signs decide the quadrant, so zeros are moved off by nothing.
    a, b = (np.where(np.abs(z) < 1e-150, 1e-150, z) for z in (np.clip(h, -40.0, 40.0), np.clip(k, -40.0, 40.0)))
    inner = 0.5 * (ndtr(a) + ndtr(b)) - owens_t(a, (b / a - rho) / root) - owens_t(b, (a / b - rho) / root)
    inner -= np.where(a * b < 0.0, 0.5, 0.0)
    upper = np.minimum(ndtr(h), ndtr(k))  # ρ = 1
    lower = np.maximum(ndtr(h) + ndtr(k) - 1.0, 0.0)  # ρ = −1
    out: Array = np.clip(np.where(edge, np.where(rho > 0.0, upper, lower), inner), 0.0, upper)
    return out


def trivariate(b: Array, R: Array) -> Array:
    """Return P(X ≤ b) for standard normal X of three correlated components, for m distributions.

    Parameters
    ----------
    b : array of shape (m, 3)
        Upper limits.
    R : array of shape (m, 3, 3)
        Correlation matrices.

    >>> trivariate(np.zeros((1, 3)), np.eye(3)[None]).round(12)
    array([0.125])
    """
    # The pair with the largest correlation becomes (2, 3).
    pairs = np.array([[2, 0, 1], [1, 0, 2], [0, 1, 2]])  # orders in which (0, 1), (0, 2), (1, 2) come last
    sizes = np.abs(np.stack([R[:, 0, 1], R[:, 0, 2], R[:, 1, 2]], axis=1))
    order = pairs[sizes.argmax(axis=1)]
    rows = np.arange(len(b))[:, None]
    b = np.clip(b[rows, order], -40.0, 40.0)
    r12, r13, r23 = (R[rows[:, 0], order[:, i], order[:, j]] for i, j in ((0, 1), (0, 2), (1, 2)))
    start = ndtr(b[:, 0]) * bivariate(b[:, 1], b[:, 2], r23)
    out: Array = (
        start + _along(b[:, 0], b[:, 1], b[:, 2], r12, r13, r23) + _along(b[:, 0], b[:, 2], b[:, 1], r13, r12, r23)
    )
    return np.clip(out, 0.0, 1.0)


def _along(b1: Array, b2: Array, b3: Array, r12: Array, r13: Array, r23: Array) -> Array:
    """∫ φ₂(b₁, b₂; θρ₁₂) Φ((b₃ − E[X₃ | b₁, b₂])/sd) d(θρ₁₂) over θ in [0, 1], with θρ₁₂ = sin t."""
    top = np.arcsin(np.clip(r12, -1.0, 1.0))[:, None]
    t = 0.5 * top * (NODES + 1.0)
    sine, cosine2 = np.sin(t), np.maximum(np.cos(t) ** 2, 1e-300)
    b1, b2, b3, r12, r13, r23 = (a[:, None] for a in (b1, b2, b3, r12, r13, r23))
    density = np.exp(-0.5 * ((b1 - sine * b2) ** 2 / cosine2 + b2**2)) / (2.0 * np.pi)
    s13 = sine * np.divide(r13, r12, out=np.zeros_like(r13), where=np.abs(r12) > 1e-300)  # θρ₁₃
    # Regression of X₃ on (X₁, X₂) when their correlations are (s₁₃, ρ₂₃) and that between them is sin t.
    w1, w2 = (s13 - sine * r23) / cosine2, (r23 - sine * s13) / cosine2
    rest = np.maximum(1.0 - w1 * s13 - w2 * r23, 1e-300)
    inner = density * ndtr((b3 - w1 * b1 - w2 * b2) / np.sqrt(rest))
    integral: Array = 0.5 * top[:, 0] * (inner @ WEIGHTS)
    return integral
