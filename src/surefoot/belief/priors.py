"""Priors: what is believed about a hyper-parameter before any data.

All positive hyper-parameters are handled through their logarithm θ. :class:`LogNormal` says that θ is normal,
:class:`TwoPiece` lets it spread further on one side than on the other, and :class:`Fixed` takes the parameter out of
the fit. A parameter without a prior is fitted by maximum likelihood alone.

>>> round(LogNormal.around(0.5, 1.0).mode, 6)
0.5

The density that a fit maximizes, and that slice sampling draws from, is that of the *value* exp θ seen as a function of
θ: for a log-normal, a bell around the logarithm of the mode exp(mean − std²), not around the mean. This is the
convention of the libraries that made log-normal length-scale priors popular.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

__all__ = ["Fixed", "LogNormal", "Prior", "TwoPiece", "prior_from_dict"]


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
    def mode(self) -> float:
        """The value of highest density, exp(mean − std²)."""
        return math.exp(self.mean - self.std**2)

    @property
    def bell(self) -> tuple[float, float, float]:
        """Logarithm of the mode, and the standard deviation of the logarithm, twice; see :class:`TwoPiece`."""
        return self.mean - self.std**2, self.std, self.std

    @classmethod
    def around(cls, mode: float, std: float) -> LogNormal:
        """Return the prior with this mode.

        >>> round(LogNormal.around(0.2, 1.0).mode, 6)
        0.2
        """
        return cls(math.log(mode) + std**2, std)

    def scaled(self, factor: float) -> LogNormal:
        """Return the prior of the value times a positive number.

        >>> round(LogNormal.around(2.0, 1.0).scaled(5.0).mode, 6)
        10.0
        """
        return LogNormal(self.mean + math.log(factor), self.std)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-able description that :func:`prior_from_dict` reads back."""
        return {"prior": "LogNormal", "mean": self.mean, "std": self.std}


@dataclass(frozen=True)
class TwoPiece:
    """The logarithm of the value has a bell for a density that is wider on one side of the mode than on the other.

    Parameters
    ----------
    mode : float
        The most probable value.
    below, above : float
        Standard deviations of the two halves, of the logarithm.

    >>> TwoPiece(mode=1.0, below=0.5, above=2.0).bell
    (0.0, 0.5, 2.0)
    """

    mode: float
    below: float
    above: float

    def __post_init__(self) -> None:
        if not all(0 < value < math.inf for value in (self.mode, self.below, self.above)):
            raise ValueError(f"mode, below and above must be positive, got {self.mode}, {self.below}, {self.above}")

    @property
    def bell(self) -> tuple[float, float, float]:
        """Logarithm of the mode, and the standard deviations below and above it."""
        return math.log(self.mode), self.below, self.above

    def scaled(self, factor: float) -> TwoPiece:
        """Return the prior of the value times a positive number.

        >>> TwoPiece(1.0, 0.5, 2.0).scaled(5.0).mode
        5.0
        """
        return TwoPiece(self.mode * factor, self.below, self.above)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-able description that :func:`prior_from_dict` reads back."""
        return {"prior": "TwoPiece", "mode": self.mode, "below": self.below, "above": self.above}


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


Prior = LogNormal | TwoPiece | Fixed


def prior_from_dict(data: dict[str, Any]) -> Prior:
    """Rebuild a prior from its ``to_dict()``.

    >>> prior_from_dict({"prior": "LogNormal", "mean": 1.0, "std": 2.0})
    LogNormal(mean=1.0, std=2.0)
    """
    kinds: dict[str, type[LogNormal] | type[TwoPiece] | type[Fixed]]
    kinds = {"LogNormal": LogNormal, "TwoPiece": TwoPiece, "Fixed": Fixed}
    kind = kinds.get(str(data.get("prior")))
    if kind is None:
        raise ValueError(f"unknown prior {data.get('prior')!r}; known are {sorted(kinds)}")
    return kind(**{key: value for key, value in data.items() if key != "prior"})
