"""Where privacy noise comes from: the operating system for real releases, a seed for research.

:class:`SystemNoise` is the default everywhere. Additive noise is drawn by OpenDP, whose samplers work on integers:
noise drawn in floating point leaks the value beneath it in its low bits (Mironov 2012). Its coins, permutations and
projections come straight from the operating system's generator. It has no seed and no state, is the same after any
number of calls, and cannot be stored.

>>> noise = SystemNoise()
>>> noise.simulated, noise.gaussian([1.0, 2.0], 0.1).shape
(False, (2,))

:class:`ResearchNoise` is reproducible and therefore protects nothing: who knows the seed can subtract the noise. What
is made with it is marked ``simulated`` and may not cross to another party.

>>> bool((ResearchNoise(3).gaussian([1.0, 2.0], 0.1) == ResearchNoise(3).gaussian([1.0, 2.0], 0.1)).all())
True
"""

from __future__ import annotations

import math
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, NoReturn, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from surefoot.errors import MissingExtra

__all__ = ["Noise", "ResearchNoise", "SystemNoise"]

Array = NDArray[np.float64]
Shape = int | tuple[int, ...]

_FINE = 50  # binary digits of the sampler's grid below the scale of the noise
MARGIN = 1.0 + 1e-9  # what rounding to that grid may cost, for up to 10⁶ values and scales of 1000 sensitivities


@runtime_checkable
class Noise(Protocol):
    """A source of privacy noise.

    Attributes
    ----------
    simulated : bool
        Whether what it makes protects nobody.
    """

    simulated: bool

    def gaussian(self, values: ArrayLike, scale: ArrayLike) -> Array:
        """Return the values plus independent N(0, scale²), elementwise; 0 adds nothing."""
        ...

    def laplace(self, values: ArrayLike, scale: ArrayLike) -> Array:
        """Return the values plus independent Laplace noise of density exp(-|x| / scale) / (2 scale)."""
        ...

    def normal(self, shape: Shape) -> Array:
        """Return secret standard normal draws, for projections and messages; not for adding to data."""
        ...

    def bernoulli(self, probability: float, size: Shape) -> NDArray[np.bool_]:
        """Return secret independent coins."""
        ...

    def permutation(self, n: int) -> NDArray[np.intp]:
        """Return a secret uniform order of 0, ..., n - 1."""
        ...


class SystemNoise:
    """Noise for real releases: OpenDP's samplers and the operating system's generator.

    ``gaussian`` and ``laplace`` are OpenDP's, exact on a grid 2^50 times finer than the noise; the grid is part of what
    OpenDP certifies (and several times as fast as its finest one). One measurement is made per distinct
    scale. Everything else is computed from ``os.urandom``: normals are the inverse normal distribution function of
    53-bit uniforms (never beyond ±8.3), coins compare 53 bits with the probability rounded down, permutations order
    64-bit keys. NumPy's generators are not used: their output reveals their state.

    >>> SystemNoise()
    SystemNoise()
    >>> bool(SystemNoise().bernoulli(1.0, 3).all()), sorted(SystemNoise().permutation(4).tolist())
    (True, [0, 1, 2, 3])
    """

    __slots__ = ()
    simulated = False

    def gaussian(self, values: ArrayLike, scale: ArrayLike) -> Array:
        """Return the values plus floating-point-safe Gaussian noise."""
        return _blurred(values, scale, "gaussian")

    def laplace(self, values: ArrayLike, scale: ArrayLike) -> Array:
        """Return the values plus floating-point-safe Laplace noise."""
        return _blurred(values, scale, "laplace")

    def normal(self, shape: Shape) -> Array:
        """Return secret standard normal draws."""
        draws: Array = ndtri((_bits(shape) + 0.5) * 2.0**-53)
        return draws

    def bernoulli(self, probability: float, size: Shape) -> NDArray[np.bool_]:
        """Return secret coins; the true probability lies at most 2^-53 below the one given, never above."""
        # A power of two scales exactly.
        return _bits(size) < math.floor(_probability(probability) * 2.0**53)

    def permutation(self, n: int) -> NDArray[np.intp]:
        """Return a secret uniform order."""
        while True:
            keys = np.frombuffer(os.urandom(8 * _whole(n)), dtype=np.uint64)
            if np.unique(keys).size == n:  # ties would favor the order as it was; they are rarer than n² / 2^65
                return np.argsort(keys)

    @staticmethod
    def certified_scale(epsilon: float, delta: float, sensitivity: float = 1.0) -> float:
        """Return the scale at which OpenDP's own conversion certifies (ε, δ).

        OpenDP measures Gaussian noise by zero-concentrated differential privacy and converts that; the result is about
        a tenth larger than :func:`~surefoot.private.accounting.gaussian_scale`, which is exact for real numbers.

        >>> round(SystemNoise.certified_scale(1.0, 1e-5), 3)
        4.045
        """
        if not 0.0 < epsilon < math.inf:
            raise ValueError(f"epsilon must be positive and finite, got {epsilon}")
        if not 0.0 < delta < 1.0:
            raise ValueError(f"delta must lie strictly between 0 and 1, got {delta}")
        if not 0.0 < sensitivity < math.inf:
            raise ValueError(f"sensitivity must be positive and finite, got {sensitivity}")
        return float(sensitivity) * _certified(float(epsilon), float(delta)) * MARGIN

    def __repr__(self) -> str:
        return "SystemNoise()"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("SystemNoise cannot be stored or copied: noise for real releases is drawn where it is used")


class ResearchNoise:
    """Reproducible noise for experiments and tests; it protects nothing.

    Parameters
    ----------
    seed : int or sequence of int
        The seed; with the same one the same calls give the same noise.

    >>> noise = ResearchNoise(0)
    >>> noise.simulated, noise.permutation(3).shape
    (True, (3,))
    """

    simulated = True

    def __init__(self, seed: int | tuple[int, ...]) -> None:
        if seed is None:
            raise TypeError("ResearchNoise needs a seed; SystemNoise is the one without")
        self._rng = np.random.default_rng(seed)

    def gaussian(self, values: ArrayLike, scale: ArrayLike) -> Array:
        """Return the values plus NumPy's Gaussian noise."""
        data, spread = _finite(values, scale)
        return data + spread * self._rng.standard_normal(data.shape)

    def laplace(self, values: ArrayLike, scale: ArrayLike) -> Array:
        """Return the values plus NumPy's Laplace noise."""
        data, spread = _finite(values, scale)
        return data + spread * self._rng.laplace(size=data.shape)

    def normal(self, shape: Shape) -> Array:
        """Return standard normal draws."""
        return self._rng.standard_normal(shape)

    def bernoulli(self, probability: float, size: Shape) -> NDArray[np.bool_]:
        """Return coins."""
        return self._rng.random(size) < _probability(probability)

    def permutation(self, n: int) -> NDArray[np.intp]:
        """Return a uniform order."""
        return self._rng.permutation(_whole(n))


def _bits(shape: Shape) -> NDArray[np.uint64]:
    """Independent uniform integers of 53 bits."""
    size = math.prod(shape) if isinstance(shape, tuple) else shape
    return (np.frombuffer(os.urandom(8 * _whole(size)), dtype=np.uint64) >> np.uint64(11)).reshape(shape)


def _whole(n: int) -> int:
    if isinstance(n, bool) or not isinstance(n, int | np.integer):
        raise TypeError(f"expected a whole number, got {n!r}")
    if n < 0:
        raise ValueError(f"expected a number of at least 0, got {n}")
    return int(n)


def _probability(value: float) -> float:
    if not 0.0 <= value <= 1.0:
        raise ValueError(f"probability must be between 0 and 1, got {value}")
    return float(value)


def _finite(values: ArrayLike, scale: ArrayLike) -> tuple[Array, Array]:
    """Both as arrays, the scale broadcast; errors name places and scales, never a value of the data."""
    data, spread = np.asarray(values, dtype=np.float64), np.asarray(scale, dtype=np.float64)
    if not np.isfinite(data).all():
        raise ValueError(f"{int((~np.isfinite(data)).sum())} of the {data.size} values are not finite")
    if not (np.isfinite(spread).all() and (spread >= 0.0).all()):
        raise ValueError(f"scale must be finite and at least 0, got {scale!r}")
    try:
        return data, np.broadcast_to(spread, data.shape)
    except ValueError:
        raise ValueError(f"a scale of shape {spread.shape} does not fit values of shape {data.shape}") from None


def _blurred(values: ArrayLike, scale: ArrayLike, kind: str) -> Array:
    data, spread = _finite(values, scale)
    noisy = data.flatten()
    flat = spread.ravel()
    for width in np.unique(flat[flat > 0.0]):
        chosen = flat == width
        noisy[chosen] = _measurement(float(width), int(chosen.sum()), kind)(noisy[chosen].tolist())
    return noisy.reshape(data.shape)


@lru_cache(maxsize=64)
def _measurement(scale: float, size: int, kind: str) -> Any:
    """OpenDP's measurement that adds noise of this scale to a vector of this length."""
    dp = _opendp()
    # A zero of the other sign could be told apart; on a grid this fine it is never the data's.
    grid = math.frexp(scale)[1] - _FINE
    domain = dp.vector_domain(dp.atom_domain(T=float, nan=False), size=size)
    if kind == "laplace":
        return (domain, dp.l1_distance(T=float)) >> dp.m.then_laplace(scale=scale, k=grid)
    return (domain, dp.l2_distance(T=float)) >> dp.m.then_gaussian(scale=scale, k=grid)


@lru_cache(maxsize=256)
def _certified(epsilon: float, delta: float) -> float:
    """The scale for sensitivity 1."""
    dp = _opendp()
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.l2_distance(T=float)

    def make(scale: float) -> Any:
        return dp.c.make_fix_delta(dp.c.make_zCDP_to_approxDP(space >> dp.m.then_gaussian(scale=scale)), delta)

    try:
        with _uninterrupted():
            return float(dp.binary_search_param(make, d_in=1.0, d_out=(epsilon, delta)))
    except dp.OpenDPException:
        raise ValueError(f"no scale is certified for epsilon = {epsilon:g} and delta = {delta:g}") from None


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Keep Ctrl-C waiting for a moment: OpenDP's search calls back, and an exception in there ends the process."""
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGINT) is None:
        yield
        return
    heard = []
    before = signal.signal(signal.SIGINT, lambda *_: heard.append(True))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if heard:
            signal.raise_signal(signal.SIGINT)


@lru_cache(maxsize=1)
def _opendp() -> Any:
    try:
        import opendp.prelude as dp
    except ImportError:
        raise MissingExtra(
            "noise for real releases needs OpenDP: pip install 'surefoot[private]', "
            "or use ResearchNoise(seed), which protects nothing"
        ) from None
    dp.enable_features("contrib")
    return dp
