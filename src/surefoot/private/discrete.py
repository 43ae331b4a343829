"""Noise in shares: each party adds a little, and the sum has enough, though some leave or lie.

Party n adds whole numbers drawn from the discrete Gaussian of variance σ²/h, P(k) ∝ exp(−h k²/(2σ²)); the sum of the h
parties who did as they were told then has about the discrete Gaussian of variance σ². It is that nearly, and what
*nearly* costs is known: of a sum of sensitivity Δ (Euclidean norm, in whole steps) in d coordinates, with s = σ/√h,

    ε₁ = min( √(Δ²/σ² + τd/2),  Δ/σ + τ√d ),   τ = 10 Σ_{k=1}^{h−1} exp(−2π² s² k/(k+1))

bounds every Rényi divergence: ε(λ) ≤ λ ε₁²/2 (Kairouz, Liu & Steinke 2021, theorem 1). With s above 2 or so τ is
nothing, and the price that of Gaussian noise, but for the conversion.

>>> noise = NoiseShares(scale=100.0, honest=20)
>>> round(noise.each, 2), round(noise.epsilon(1e-5, sensitivity=25.0), 3), round(noise.exact(1e-5, 25), 3)
(22.36, 1.013, 0.926)

:meth:`NoiseShares.exact` is the second accountant: the distribution of the sum, convolved, and the least ε of one
number moved by whole steps. The first is what is charged: it holds for vectors.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from surefoot.arguments import positive, whole
from surefoot.errors import MissingExtra
from surefoot.private import renyi
from surefoot.private.accounting import GaussianEvent
from surefoot.private.noise import Noise

__all__ = ["NoiseShares", "discrete_gaussian"]

Array = NDArray[np.float64]
Whole = NDArray[np.int64]
WIDE = 2.0**14  # of simulated noise: wider than that a rounded normal is the same to the eye of any test
REACH = 12.0  # standard deviations of a table


def discrete_gaussian(size: int, scale: float, noise: Noise) -> Whole:
    """Return independent whole numbers k with P(k) ∝ exp(−k²/(2 scale²)); exact, by OpenDP, unless simulated.

    >>> from surefoot.private import ResearchNoise
    >>> draws = discrete_gaussian(10_000, 3.0, ResearchNoise(0))
    >>> draws.dtype, round(float(draws.std()), 1)
    (dtype('int64'), 3.0)
    """
    positive(scale, "scale")
    if not noise.simulated:
        drawn: Whole = np.array(_measurement(float(scale), whole(size, "size", 1))([0] * size), dtype=np.int64)
        return drawn
    normal = noise.normal(size)
    if scale > WIDE:
        return np.rint(scale * normal).astype(np.int64)
    k, masses = _masses(float(scale))
    return np.asarray(k[np.minimum(np.searchsorted(np.cumsum(masses), ndtr(normal), side="right"), len(k) - 1)])


def _masses(scale: float) -> tuple[Whole, Array]:
    """The numbers within reach, and their probabilities."""
    far = max(2, math.ceil(REACH * scale))
    k = np.arange(-far, far + 1)
    masses = np.exp(-0.5 * (k / scale) ** 2)
    return k, masses / masses.sum()


@lru_cache(maxsize=16)
def _measurement(scale: float, size: int) -> Any:
    """OpenDP's measurement that adds discrete Gaussian noise to so many whole numbers."""
    try:
        import opendp.prelude as dp
    except ImportError:
        raise MissingExtra("noise for real releases needs OpenDP: pip install 'surefoot[private]'") from None
    dp.enable_features("contrib")
    return (dp.vector_domain(dp.atom_domain(T="i64"), size=size), dp.l2_distance(T=float)) >> dp.m.then_gaussian(
        scale=scale
    )


@dataclass(frozen=True)
class NoiseShares:
    """Noise that a sum of parties adds up to.

    Parameters
    ----------
    scale : float
        σ, the standard deviation that the honest parties' sum must have, in whole steps.
    honest : int
        h, the least number of parties in the sum that add their share and keep it to themselves. What others add is
        not counted.

    >>> NoiseShares(scale=10.0, honest=4).each
    5.0
    """

    scale: float
    honest: int

    def __post_init__(self) -> None:
        positive(self.scale, "scale")
        whole(self.honest, "honest", 1)

    @property
    def each(self) -> float:
        """The standard deviation s of one party's share."""
        return self.scale / math.sqrt(self.honest)

    def draw(self, size: int, noise: Noise) -> Whole:
        """Return one party's share.

        >>> from surefoot.private import ResearchNoise
        >>> NoiseShares(scale=10.0, honest=4).draw(3, ResearchNoise(0)).shape
        (3,)
        """
        return discrete_gaussian(size, self.each, noise)

    def distance(self) -> float:
        """Return τ, how far the sum is from a discrete Gaussian."""
        k = np.arange(1.0, self.honest)
        return float(10.0 * np.exp(-2.0 * (math.pi * self.each) ** 2 * k / (k + 1.0)).sum())

    def concentrated(self, sensitivity: float, length: int = 1) -> float:
        """Return ε₁ for a sum of so many numbers of which a party moves the norm by the sensitivity, in steps.

        >>> NoiseShares(scale=100.0, honest=20).concentrated(25.0, length=1000)
        0.25
        """
        positive(sensitivity, "sensitivity")
        tau, d = self.distance(), whole(length, "length", 1)
        ratio = sensitivity / self.scale
        return min(math.sqrt(ratio**2 + tau * d / 2.0), ratio + tau * math.sqrt(d))

    def event(self, sensitivity: float, length: int = 1) -> GaussianEvent:
        """Return what a ledger is charged: Gaussian noise of the same Rényi divergences.

        The ledger must compose by ``method="rdp"``: that divergences are those of Gaussian noise does not mean that the
        distribution is, on which "pld" rests.

        >>> NoiseShares(scale=100.0, honest=20).event(25.0)
        GaussianEvent(noise_multiplier=4.0, sampling=1.0, count=1)
        """
        return GaussianEvent(1.0 / self.concentrated(sensitivity, length))

    def epsilon(self, delta: float, sensitivity: float, length: int = 1, *, count: int = 1) -> float:
        """Return ε at δ of so many sums, by Rényi divergences."""
        return renyi.epsilon(count * renyi.gaussian(self.event(sensitivity, length).noise_multiplier), delta)

    def exact(self, delta: float, moved: int) -> float:
        """Return the least ε at δ of one number that is moved by so many whole steps, from the sum's distribution.

        δ(ε) = Σ_k max(0, P(k) − e^ε P(k − moved))

        >>> round(NoiseShares(scale=4.0, honest=1).exact(1e-5, 1), 3)
        0.927
        """
        whole(moved, "moved", 1)
        p = _convolved(self.each, self.honest)
        one, two = np.concatenate([p, np.zeros(moved)]), np.concatenate([np.zeros(moved), p])

        def missing(value: float) -> float:
            return float(np.maximum(one - math.exp(value) * two, 0.0).sum())

        if missing(0.0) <= delta:
            return 0.0
        low, high = 0.0, 1.0
        while missing(high) > delta:
            high *= 2.0
            if high > 500.0:
                return math.inf
        for _ in range(60):
            middle = 0.5 * (low + high)
            low, high = (low, middle) if missing(middle) <= delta else (middle, high)
        return high


@lru_cache(maxsize=8)
def _convolved(scale: float, count: int) -> Array:
    """The distribution of the sum of so many discrete Gaussians, by repeated squaring."""
    result, power = np.ones(1), _masses(scale)[1]
    while count:
        if count % 2:
            result = _trimmed(np.convolve(result, power) if power.size < 400 else _fast(result, power))
        count //= 2
        if count:
            power = _trimmed(_fast(power, power))
    return result


def _fast(one: Array, two: Array) -> Array:
    from scipy.signal import fftconvolve

    return np.maximum(np.asarray(fftconvolve(one, two)), 0.0)


def _trimmed(masses: Array) -> Array:
    """Symmetric, as it is but for rounding, and without the ends that are rounding errors only."""
    masses = 0.5 * (masses + masses[::-1])
    start = int(np.argmax(masses > 1e-17))
    trimmed: Array = masses[start : masses.size - start]
    return trimmed
