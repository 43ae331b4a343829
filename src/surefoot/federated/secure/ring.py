"""Vectors as whole numbers modulo 2^bits, so that masks can hide them perfectly and sums are exact.

    k = trunc(v̂/h),   v̂ = v / max(1, ‖v‖/c),   h a power of 2

Truncation moves every coordinate towards zero, so that ‖k‖ ≤ c/h holds for whole numbers, exactly, and is checked
before anything is masked. h is the finest step with which N such vectors, and noise of a stated size, do not wrap
around.

>>> ring = Ring(bits=32, limit=1.0, parties=10)
>>> whole = ring.encode([0.25, -0.5])
>>> ring.decode(ring.lift(ring.lower(whole) + ring.lower(whole)))
array([ 0.5, -1. ])
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot.arguments import not_negative, positive, whole

__all__ = ["BITS", "Ring"]

Array = NDArray[np.float64]
Whole = NDArray[np.int64]
Words = NDArray[np.uint64]

BITS = (16, 24, 32, 40, 48, 56)
TAIL = 12.0  # standard deviations of noise for which there is room


@dataclass(frozen=True)
class Ring:
    """The whole numbers modulo 2^bits, and how vectors are written in them.

    Parameters
    ----------
    bits : int
        16, 24, ..., 56.
    limit : float
        c, the longest Euclidean norm of one party's vector.
    parties : int
        N, how many may be added.
    noise : float
        Standard deviation of the noise in the sum of all parties, in the units of the vectors; 0 for none.

    >>> Ring(bits=16, limit=11.0, parties=200).step, Ring(bits=32, limit=11.0, parties=200).step
    (0.125, 1.9073486328125e-06)
    """

    bits: int = 32
    limit: float = 1.0
    parties: int = 2
    noise: float = 0.0

    def __post_init__(self) -> None:
        if self.bits not in BITS or isinstance(self.bits, bool):
            raise ValueError(f"bits must be one of {', '.join(map(str, BITS))}, got {self.bits!r}")
        positive(self.limit, "limit")
        whole(self.parties, "parties", 1)
        not_negative(self.noise, "noise")

    @property
    def step(self) -> float:
        """The finest step h, a power of 2, with which the sum does not wrap around."""
        return 2.0 ** math.ceil(math.log2((self.parties * self.limit + TAIL * self.noise) / (2 ** (self.bits - 1) - 1)))

    @property
    def largest(self) -> int:
        """The largest squared norm of a vector of whole numbers, ⌊(c/h)²⌋, exactly."""
        return math.floor((Fraction(self.limit) / Fraction(self.step)) ** 2)

    def encode(self, vector: ArrayLike) -> Whole:
        """Return a vector clipped to the limit, in whole steps; its norm is proved not to exceed the limit.

        >>> Ring(bits=16, limit=1.0, parties=2).encode([3.0, 4.0]) * Ring(bits=16, limit=1.0, parties=2).step
        array([0.59997559, 0.79992676])
        >>> Ring().encode([float("nan")])
        Traceback (most recent call last):
        ...
        ValueError: 1 of the 1 numbers to be added are not finite
        """
        given = np.asarray(vector, dtype=np.float64)
        if given.ndim != 1 or not given.size:
            raise ValueError(f"a vector has one axis, got shape {given.shape}")
        if not np.isfinite(given).all():
            raise ValueError(
                f"{int((~np.isfinite(given)).sum())} of the {given.size} numbers to be added are not finite"
            )
        peak = float(np.abs(given).max())
        norm = peak * float(np.linalg.norm(given / peak)) if peak > 0.0 else 0.0  # a square may overflow
        shrink = 1.0 if norm <= self.limit else self.limit / norm
        for _ in range(8):
            found = np.trunc(given * shrink / self.step).astype(np.int64)
            if self.proves(found):
                return found
            shrink *= 1.0 - 1e-12  # rounding had made it too long
        raise AssertionError("a clipped vector is longer than its limit")  # pragma: no cover

    def proves(self, steps: Whole) -> bool:
        """Return whether whole numbers are no longer than the limit, in exact arithmetic.

        >>> ring = Ring(bits=16, limit=1.0, parties=2)
        >>> ring.proves(np.array([0, 2**14])), ring.proves(np.array([1, 2**14]))
        (False, False)
        """
        return sum(int(k) ** 2 for k in steps) <= self.largest

    def lower(self, steps: Whole) -> Words:
        """Return whole numbers modulo 2^bits."""
        return np.asarray(steps, dtype=np.int64).astype(np.uint64) & self.mask

    def lift(self, words: Words) -> Whole:
        """Return the whole numbers in [−2^(bits−1), 2^(bits−1)) that are these modulo 2^bits.

        >>> ring = Ring(bits=16)
        >>> ring.lift(ring.lower(np.array([-1, 5])))
        array([-1,  5])
        """
        kept = (np.asarray(words, dtype=np.uint64) & self.mask).astype(np.int64)
        return np.where(kept >= 2 ** (self.bits - 1), kept - 2**self.bits, kept)

    def decode(self, steps: Whole) -> Array:
        """Return whole steps as numbers."""
        numbers: Array = np.asarray(steps, dtype=np.float64) * self.step
        return numbers

    @property
    def mask(self) -> np.uint64:
        """2^bits − 1."""
        return np.uint64(2**self.bits - 1)
