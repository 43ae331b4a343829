"""Mechanisms: how rows are changed before another party may see them.

A mechanism turns private rows (n, d) into rows that are released, and says what that protects. Its parameters are
public and declared; nothing is derived from the data silently. :class:`GaussianRelease` is the default:

1. scale and clip by public numbers so that |u| ≤ R (:mod:`surefoot.private.scaling`),
2. neighbors differ in one row, by at most Δ (``neighbor``; infinite protects the replacement of a whole row),
3. release u + s·N(0, I), with s from (ε, δ) and the sensitivity min(Δ, 2R).

>>> import numpy as np
>>> mechanism = GaussianRelease(epsilon=1.0, delta=1e-5, bounds=[(0.0, 10.0), (0.0, 1.0)], radius=25.0)
>>> released = mechanism.transform(np.random.default_rng(0).random((100, 2)))
>>> released.shape, mechanism.noise_scale > 3.73
((100, 2), True)

The scale is the one for which the sampler in use (OpenDP, on floating-point-safe noise) certifies (ε, δ). That is a
little more than the analytic Gaussian mechanism needs; the ε of exact accounting is printed beside it. The modeler is
told s and uses a kernel that knows of it (:class:`~surefoot.belief.noisy_inputs.NoisyInputs`), without which most of
the use is lost.

For many features rows may be projected to fewer coordinates by a *public* matrix P with orthonormal columns: |uP| ≤
|u|, so the sensitivity does not grow, and noise is added to fewer numbers.

References: Balle & Wang 2018 (analytic Gaussian mechanism); Dwork & Roth 2014; Kenthapadi et al. 2013 (projection, then
noise); Kharkovskii, Dai & Low 2020 for the two-party setting.
"""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from typing import Any, Literal, Self, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot.private.accounting import GaussianEvent, StatedEvent, epsilon, gaussian_scale
from surefoot.private.guarantee import Guarantee
from surefoot.private.noise import Noise, ResearchNoise, SystemNoise
from surefoot.private.scaling import PublicScale, table

__all__ = ["GaussianRelease", "Mechanism", "PublicOptions"]

Array = NDArray[np.float64]
Event = GaussianEvent | StatedEvent
ONE_ROW = "one row of the table, the number of rows being public"


class PublicOptions(TypedDict, total=False):
    """Keyword arguments that every mechanism takes: the public scaling, the neighboring relation, the noise.

    ``bounds`` are limits of each feature in its own units, and map their box into the ball of ``radius``; or ``center``
    and ``scale`` are given, (x − center)/scale being clipped to ``radius``. ``neighbor`` is the largest protected
    change of one row after scaling. ``noise`` is where random numbers come from, by default the operating system.

    >>> options: PublicOptions = {"bounds": [(0.0, 1.0)], "radius": 25.0, "neighbor": 1.0}
    """

    bounds: ArrayLike | None
    center: ArrayLike
    scale: ArrayLike
    radius: float
    neighbor: float
    noise: Noise | None


class Mechanism(ABC):
    """Base of the mechanisms: public parameters, a source of noise, and what they protect.

    Parameters
    ----------
    epsilon, delta : float
        The wanted guarantee.
    bounds, center, scale, radius, neighbor, noise
        See :class:`PublicOptions`; the radius is 25 and the neighbor 1 by default.
    """

    def __init__(
        self,
        *,
        epsilon: float,
        delta: float,
        bounds: ArrayLike | None = None,
        center: ArrayLike = 0.0,
        scale: ArrayLike = 1.0,
        radius: float = 25.0,
        neighbor: float = 1.0,
        noise: Noise | None = None,
    ) -> None:
        if not 0 < epsilon < math.inf:
            raise ValueError(f"epsilon must be positive and finite, got {epsilon!r}")
        if not 0 <= delta < 1:
            raise ValueError(f"delta must be at least 0 and below 1, got {delta!r}")
        if not neighbor > 0:
            raise ValueError(f"neighbor must be positive (infinite: any replacement of a row), got {neighbor!r}")
        if not 0 < radius < math.inf:
            raise ValueError(f"radius must be positive and finite, got {radius!r}")
        if bounds is not None and (np.any(np.asarray(center) != 0.0) or np.any(np.asarray(scale) != 1.0)):
            raise ValueError("give bounds, or center and scale, not both")
        self.epsilon, self.delta, self.neighbor = float(epsilon), float(delta), float(neighbor)
        self.preprocessing = (
            PublicScale(center, scale, radius) if bounds is None else PublicScale.within(bounds, radius)
        )
        self._noise: Noise = SystemNoise() if noise is None else noise

    @property
    def name(self) -> str:
        """Name of the mechanism, as it is released."""
        return type(self).__name__

    @property
    def simulated(self) -> bool:
        """Whether the noise is reproducible: fine for research, no protection at all."""
        return self._noise.simulated

    @property
    def sensitivity(self) -> float:
        """Largest change of one scaled row."""
        return self.preprocessing.sensitivity(self.neighbor)

    def spread(self, features: int) -> float:
        """Return the standard deviation of the noise on each released number, public; 0 where there is none."""
        return 0.0

    def transform(self, data: ArrayLike) -> Array:
        """Return rows that may be released, in the order of the data. Every call draws fresh noise: a new release."""
        return self._randomize(self.preprocessing.apply(table(data)))

    @abstractmethod
    def _randomize(self, rows: Array) -> Array:
        """Return what is released of scaled rows (..., n, d); leading axes are independent releases."""

    @abstractmethod
    def guarantee(self, rows: int, features: int) -> Guarantee:
        """Return what a release of that many rows protects."""

    @abstractmethod
    def event(self, rows: int, features: int) -> Event | None:
        """Return what a ledger is charged for one release; None: nothing that a ledger could account for."""

    def public(self) -> dict[str, Any]:
        """Return the public parameters as strict JSON."""
        return {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "neighbor": self.neighbor if math.isfinite(self.neighbor) else None,
            **self.preprocessing.to_dict(),
        }

    def research(self, seed: int) -> Self:
        """Return the same mechanism with reproducible noise; what it releases is marked and refuses to cross a wire.

        >>> one, two = (GaussianRelease(epsilon=1.0, delta=1e-5).research(seed=3) for _ in range(2))
        >>> bool((one.transform([[0.0, 1.0]]) == two.transform([[0.0, 1.0]])).all()), one.simulated
        (True, True)
        """
        return self._using(ResearchNoise(seed))

    def _using(self, noise: Noise) -> Self:
        twin = copy.copy(self)
        twin._noise = noise
        return twin

    def _sound(self, features: int, **fields: Any) -> Guarantee:
        """A guarantee of this mechanism's (ε, δ)."""
        return Guarantee(
            mechanism=self.name,
            epsilon=self.epsilon,
            delta=self.delta,
            protects=ONE_ROW,
            neighbor=self.neighbor,
            features=self.preprocessing.original(self.neighbor, features),
            **fields,
        )

    def __repr__(self) -> str:
        kind = ", simulated" if self.simulated else ""
        return f"{self.name}(epsilon={self.epsilon:.4g}, delta={self.delta:.4g}, neighbor={self.neighbor:.4g}{kind})"


class GaussianRelease(Mechanism):
    """Release scaled rows with Gaussian noise: the default, with a proof that holds for all n and d.

    Parameters
    ----------
    epsilon, delta : float
        The guarantee.
    dimension : int, optional
        Project to so many coordinates first, by a public matrix with orthonormal columns.
    projection_seed : int
        Of that matrix. It is public; it protects nothing.
    calibration : {"certified", "analytic"}
        The noise for which OpenDP certifies (ε, δ), or the smallest that the analytic Gaussian mechanism allows. The
        second is for research only.
    **options
        ``bounds``, ``center``, ``scale``, ``radius``, ``neighbor``, ``noise``.

    >>> mechanism = GaussianRelease(epsilon=3.0, delta=1e-5, center=[10.0], scale=[2.0], radius=25.0)
    >>> guarantee = mechanism.guarantee(rows=100, features=1)
    >>> guarantee.epsilon, guarantee.features, guarantee.analytic < 3.0
    (3.0, (2.0,), True)
    """

    def __init__(
        self,
        *,
        epsilon: float,
        delta: float,
        dimension: int | None = None,
        projection_seed: int = 0,
        calibration: Literal["certified", "analytic"] = "certified",
        **options: Unpack[PublicOptions],
    ) -> None:
        super().__init__(epsilon=epsilon, delta=delta, **options)
        if calibration not in ("certified", "analytic"):
            raise ValueError(f"calibration must be 'certified' or 'analytic', got {calibration!r}")
        if dimension is not None and (not isinstance(dimension, (int, np.integer)) or dimension < 1):
            raise ValueError(f"dimension must be a positive whole number, got {dimension!r}")
        self.dimension = None if dimension is None else int(dimension)
        self.projection_seed, self.calibration = int(projection_seed), calibration
        find = SystemNoise.certified_scale if calibration == "certified" else gaussian_scale
        self._scale = float(find(self.epsilon, self.delta, self.sensitivity))

    @property
    def noise_scale(self) -> float:
        """Standard deviation of the noise on each released number."""
        if self.calibration == "analytic" and not self.simulated:
            raise ValueError(
                "calibration='analytic' is less noise than the sampler certifies; use it through research(seed=...)"
            )
        return self._scale

    def spread(self, features: int) -> float:
        return self.noise_scale

    def projection(self, features: int) -> Array | None:
        """Return the public matrix P (d, r) with orthonormal columns; None where rows keep all their features."""
        if self.dimension is None or self.dimension >= features:
            return None
        rng = np.random.default_rng([self.projection_seed, features])
        P: Array = np.linalg.qr(rng.standard_normal((features, self.dimension)))[0]
        return P

    def _randomize(self, rows: Array) -> Array:
        P = self.projection(rows.shape[-1])
        return self._noise.gaussian(rows if P is None else rows @ P, self.noise_scale)

    def event(self, rows: int, features: int) -> GaussianEvent:
        return GaussianEvent(self.noise_scale / self.sensitivity)

    def guarantee(self, rows: int, features: int) -> Guarantee:
        return self._sound(features, analytic=epsilon(self.event(rows, features), self.delta))

    def public(self) -> dict[str, Any]:
        return {**super().public(), "dimension": self.dimension, "projection_seed": self.projection_seed}
