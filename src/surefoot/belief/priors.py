"""Priors: what is believed about a hyper-parameter before any data.

All positive hyper-parameters are handled through their logarithm θ. :class:`LogNormal` says that θ is normal;
:class:`Fixed` takes the parameter out of the fit. A parameter without a prior is fitted by maximum likelihood alone.

>>> LogNormal(0.0, 1.0).median
1.0

The density that a fit maximizes, and that slice sampling draws from, is that of the *value* exp θ, seen as a function of
θ: a bell around the logarithm of the mode, exp(mean − std²). This is the convention of the libraries that made the
dimension-scaled length-scale prior popular.

References: Hvarfner, Hellsten & Nardi 2024, "Vanilla Bayesian optimization performs great in high dimensions".
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["Fixed", "LogNormal", "Prior", "prior_from_dict"]


@dataclass(frozen=True)
class LogNormal:
    """The logarithm of the value is normal.

    Parameters
    ----------
    mean, std : float
        Of the logarithm.

    >>> prior = LogNormal(mean=0.0, std=1.0)
    >>> round(prior.mode, 6)  # exp(mean − std²)
    0.367879
    """

    mean: float
    std: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.mean) and 0 < self.std < math.inf):
            raise ValueError(f"a log-normal prior needs a finite mean and a positive std, got {self.mean}, {self.std}")

    @property
    def median(self) -> float:
        """The value exp(mean)."""
        return math.exp(self.mean)

    @property
    def mode(self) -> float:
        """The value of highest density, exp(mean − std²)."""
        return math.exp(self.mean - self.std**2)

    def log_density(self, theta: float) -> float:
        """Return the log density of the value exp(theta).

        >>> round(LogNormal(0.0, 1.0).log_density(0.0), 6)
        -0.918939
        """
        z = (theta - self.mean) / self.std
        return -0.5 * z * z - theta - math.log(self.std) - 0.5 * math.log(2.0 * math.pi)

    def gradient(self, theta: float) -> float:
        """Return the derivative of :meth:`log_density` in theta; zero at the mode."""
        return -(theta - self.mean) / self.std**2 - 1.0

    @classmethod
    def around(cls, mode: float, std: float) -> LogNormal:
        """Return the prior with this mode.

        >>> round(LogNormal.around(0.2, 1.0).mode, 6)
        0.2
        """
        return cls(math.log(mode) + std**2, std)

    def sample(self, rng: np.random.Generator) -> float:
        """Draw a value.

        >>> LogNormal(0.0, 1.0).sample(np.random.default_rng(0)) > 0
        True
        """
        return math.exp(rng.normal(self.mean, self.std))

    def scaled(self, factor: float) -> LogNormal:
        """Return the prior of the value times a positive number.

        >>> round(LogNormal(0.0, 1.0).scaled(5.0).median, 6)
        5.0
        """
        return LogNormal(self.mean + math.log(factor), self.std)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-able description that :func:`prior_from_dict` reads back."""
        return {"prior": "LogNormal", "mean": self.mean, "std": self.std}


@dataclass(frozen=True)
class Fixed:
    """The parameter is not fitted.

    Parameters
    ----------
    value : float, optional
        What it is held at (on standardized outputs, where the fit standardizes); None: what it is.

    >>> Fixed(1.0).to_dict()
    {'prior': 'Fixed', 'value': 1.0}
    """

    value: float | None = None

    def __post_init__(self) -> None:
        if self.value is not None and not math.isfinite(self.value):
            raise ValueError(f"a fixed parameter needs a finite value, got {self.value}")

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-able description that :func:`prior_from_dict` reads back."""
        return {"prior": "Fixed", "value": self.value}


Prior = LogNormal | Fixed


def prior_from_dict(data: dict[str, Any]) -> Prior:
    """Rebuild a prior from its ``to_dict()``.

    >>> prior_from_dict({"prior": "LogNormal", "mean": 1.0, "std": 2.0})
    LogNormal(mean=1.0, std=2.0)
    """
    kinds: dict[str, type[LogNormal] | type[Fixed]] = {"LogNormal": LogNormal, "Fixed": Fixed}
    options = {key: value for key, value in data.items() if key != "prior"}
    kind = kinds.get(str(data.get("prior")))
    if kind is None:
        raise ValueError(f"unknown prior {data.get('prior')!r}; known are {sorted(kinds)}")
    return kind(**options)
