"""Rényi differential privacy of the sampled Gaussian mechanism, at integer and fractional orders.

One round is described by the Rényi divergence D_α between its outputs on neighboring inputs at several orders α > 1.
Over rounds divergences add; at the end the best order is converted to (ε, δ).

>>> round(epsilon(40 * gaussian(1.0, 0.25), 200**-1.1), 2)
8.36

References: Mironov, Talwar & Zhang 2019; Canonne, Kamath & Steinke 2020; Wang, Balle & Kasiviswanathan 2019.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, logsumexp

__all__ = ["ORDERS", "delta", "epsilon", "gaussian", "pure"]

Array = NDArray[np.float64]

ORDERS: Array = np.unique(
    np.concatenate(
        [np.arange(102, 300, 2) / 100.0, np.arange(30, 120) / 10.0, np.arange(12.0, 65.0), 2.0 ** np.arange(7, 13)]
    )
)
"""Orders that are looked at: every 0.02 up to 3 (large δ, heavy sampling), every 0.1 up to 12, then whole numbers."""


def gaussian(z: float, q: float = 1.0, orders: Array = ORDERS) -> Array:
    """Return the divergence of one round with noise multiplier z and sampling probability q at all orders.

    >>> bool(np.allclose(gaussian(2.0), ORDERS / 8.0))
    True
    >>> gaussian(1.0, 0.5, np.array([2.0])).round(6)  # log(1 + q² (e^(1/z²) - 1))
    array([0.357374])
    """
    if q == 1.0:
        return np.asarray(orders / (2.0 * z * z))
    return np.array(_sampled(float(z), float(q), tuple(orders.tolist())))


@lru_cache(maxsize=1024)
def _sampled(z: float, q: float, orders: tuple[float, ...]) -> tuple[float, ...]:
    """log A(α) / (α - 1) with A(α) = E_{x ~ N(0, z²)} [(1 - q + q e^u)^α] and u = (2x - 1) / 2z².

    That this direction is the larger of the two is Mironov, Talwar & Zhang 2019, theorem 5.
    """
    alpha = np.array(orders)
    whole = alpha == np.round(alpha)
    logs = np.full(alpha.size, np.inf)
    logs[whole] = [_binomial(order, z, q) for order in alpha[whole]]
    if z >= 0.1 and not whole.all():  # with less noise, whole orders are bound enough
        # The integrand is analytic within πz² of the real line: with this step the trapezoidal rule is exact to 1e-15.
        step = min(z / 20.0, z * z / 2.0)
        x = np.arange(-10.0 * z, alpha[~whole].max() + 10.0 * z + step, step)
        log_ratio = np.logaddexp(math.log1p(-q), math.log(q) + (2.0 * x - 1.0) / (2.0 * z * z))
        log_weight = -(x * x) / (2.0 * z * z) + math.log(step / (z * math.sqrt(2.0 * math.pi)))
        logs[~whole] = logsumexp(log_weight + alpha[~whole, None] * log_ratio, axis=1)
    return tuple((np.maximum(logs, 0.0) / (alpha - 1.0)).tolist())


def _binomial(order: float, z: float, q: float) -> float:
    """log Σ_k C(α, k) (1 - q)^(α - k) q^k exp(k(k - 1) / 2z²), the moment of a whole order α."""
    k = np.arange(order + 1.0)
    logs = gammaln(order + 1.0) - gammaln(k + 1.0) - gammaln(order - k + 1.0)
    return float(logsumexp(logs + (order - k) * math.log1p(-q) + k * math.log(q) + k * (k - 1.0) / (2.0 * z * z)))


def pure(stated: float, orders: Array = ORDERS) -> Array:
    """Return the divergence of randomized response, than which no ε-private mechanism has more.

    >>> bool((pure(0.5) <= 0.5).all())
    True
    """
    logs = np.logaddexp(orders * stated, (1.0 - orders) * stated) - np.logaddexp(0.0, stated)
    return np.asarray(np.maximum(logs, 0.0) / (orders - 1.0))


def epsilon(divergence: Array, delta: float) -> float:
    """Return ε at δ of divergences at :data:`ORDERS`, by the best order: Canonne, Kamath & Steinke 2020, proposition
    12.

    ε = D_α + log(1 - 1/α) - (log δ + log α) / (α - 1)

    >>> round(epsilon(gaussian(3.731), 1e-5), 3)
    1.092
    """
    values = divergence + np.log1p(-1.0 / ORDERS) - (math.log(delta) + np.log(ORDERS)) / (ORDERS - 1.0)
    return max(0.0, float(values.min()))


def delta(divergence: Array, epsilon: float) -> float:
    """Return δ at ε of divergences at :data:`ORDERS`: log δ = (α - 1)(D_α - ε + log(1 - 1/α)) - log α.

    >>> f"{delta(gaussian(3.731), 1.092):.2e}"
    '1.01e-05'
    """
    logs = (ORDERS - 1.0) * (divergence - epsilon + np.log1p(-1.0 / ORDERS)) - np.log(ORDERS)
    return math.exp(min(0.0, float(logs.min())))
