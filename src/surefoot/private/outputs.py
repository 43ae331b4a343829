"""Private answers: noise on the measured values, with its own budget. Off by default.

Without it values are answered in the clear, as published: a value depends on its record, so the transcript of a run is
then *not* differentially private, whatever was done to the rows. With it every value is clipped to public bounds and
gets Gaussian noise, and the whole budget of the run is charged before the first answer.

One record enters the answers to the asks for its row only. If rows are asked for at most once (``repeats=False``) that
is one answer, however many are given; otherwise it may be all T of them, which together are one Gaussian mechanism of
sensitivity √T (upper − lower).

>>> outputs = OutputRelease(bounds=(0.0, 1.0), epsilon=2.0, delta=1e-5)
>>> once, often = outputs.scale(asks=25, repeats=False), outputs.scale(asks=25, repeats=True)
>>> round(often / once, 6)
5.0

That a measurement failed is answered as it is and not protected. The variance of the noise is public; the modeler's
belief takes it into account.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from surefoot.private.accounting import GaussianEvent
from surefoot.private.noise import Noise, ResearchNoise, SystemNoise

__all__ = ["OutputRelease"]

Array = NDArray[np.float64]


class OutputRelease:
    """Answer clipped values with Gaussian noise.

    Parameters
    ----------
    bounds : pair of float
        Public limits of a value; values outside are clipped.
    epsilon, delta : float
        Guarantee for the value of one record, whatever it is within the bounds, over all answers of a run.
    noise : Noise, optional
        Where random numbers come from; by default the operating system.

    >>> OutputRelease(bounds=(0.0, 1.0), epsilon=100.0, delta=1e-5).research(seed=0).answer(7.0, 1e-9).__round__(3)
    1.0
    """

    def __init__(self, *, bounds: Sequence[float], epsilon: float, delta: float, noise: Noise | None = None) -> None:
        limits = tuple(float(value) for value in bounds)
        if len(limits) != 2 or not all(map(math.isfinite, limits)) or not limits[0] < limits[1]:
            raise ValueError(f"bounds must be a lower and a larger upper limit, got {bounds!r}")
        if not 0 < epsilon < math.inf:
            raise ValueError(f"epsilon must be positive and finite, got {epsilon!r}")
        if not 0 < delta < 1:
            raise ValueError(f"delta must lie strictly between 0 and 1, got {delta!r}")
        self.lower, self.upper = limits
        self.epsilon, self.delta = float(epsilon), float(delta)
        self._noise: Noise = SystemNoise() if noise is None else noise

    @property
    def simulated(self) -> bool:
        """Whether the noise is reproducible, and so no protection."""
        return self._noise.simulated

    def scale(self, *, asks: int, repeats: bool) -> float:
        """Return the standard deviation of the noise on every answer, certified for the sampler in use."""
        sensitivity = math.sqrt(asks if repeats else 1) * (self.upper - self.lower)
        return SystemNoise.certified_scale(self.epsilon, self.delta, sensitivity)

    def event(self, *, asks: int, repeats: bool) -> GaussianEvent:
        """Return what a ledger is charged for a run, up front.

        >>> OutputRelease(bounds=(0.0, 1.0), epsilon=2.0, delta=1e-5).event(asks=25, repeats=True).count
        25
        """
        multiplier = self.scale(asks=asks, repeats=repeats) / (self.upper - self.lower)
        return GaussianEvent(multiplier, count=asks if repeats else 1)

    def answer(self, value: float, scale: float) -> float:
        """Return what is answered instead of a measured value."""
        return float(self._blurred(np.array([value]), scale)[0])

    def _blurred(self, values: Array, scale: float) -> Array:
        return self._noise.gaussian(np.clip(values, self.lower, self.upper), scale)

    def public(self) -> dict[str, Any]:
        """Return the public parameters as strict JSON."""
        return {"bounds": [self.lower, self.upper], "epsilon": self.epsilon, "delta": self.delta}

    def research(self, seed: int) -> Self:
        """Return the same with reproducible noise; what it answers does not cross."""
        return self._using(ResearchNoise(seed))

    def _using(self, noise: Noise) -> Self:
        twin = copy.copy(self)
        twin._noise = noise
        return twin

    def __repr__(self) -> str:
        bounds = f"({self.lower:g}, {self.upper:g})"
        return f"OutputRelease(bounds={bounds}, epsilon={self.epsilon:.4g}, delta={self.delta:.4g})"
