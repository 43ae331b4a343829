"""Confidence widths: how many posterior standard deviations a bound reaches.

A width multiplies the standard deviation: it is the papers' β^(1/2), not β. It is called as ``width(step, size=,
dimension=, gain=)`` with the round t ≥ 1, the number of candidates, the dimension, and the realized information gain Γ
of the data so far, and returns a float. A plain function with this signature serves as well, but is stored by name
only.

>>> Constant(2.0)(step=5)
2.0
>>> round(Finite(0.9)(step=1, size=100), 3)
3.848
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Protocol, Self, TypeVar

from surefoot.arguments import not_negative, open_unit, positive

__all__ = [
    "RKHS",
    "Constant",
    "Continuous",
    "Finite",
    "LogTime",
    "Logarithmic",
    "Width",
    "given_or",
    "usual",
    "width_from_dict",
]


D = TypeVar("D")


class Width(Protocol):
    """Anything that turns the round into a multiple of the standard deviation."""

    def __call__(
        self, step: int, *, size: int | None = None, dimension: int | None = None, gain: float = 0.0
    ) -> float: ...


@dataclass(frozen=True)
class _Base:
    known: ClassVar[dict[str, type[_Base]]] = {}

    def __init_subclass__(cls) -> None:
        _Base.known[cls.__name__] = cls

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-able description that :func:`width_from_dict` reads back."""
        return {"width": type(self).__name__, **asdict(self)}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Rebuild the width from :meth:`to_dict`."""
        return cls(**{key: value for key, value in data.items() if key != "width"})


def width_from_dict(data: dict[str, Any]) -> Any:
    """Rebuild any width of this module from its ``to_dict()``.

    >>> width_from_dict(Finite(0.95).to_dict())
    Finite(confidence=0.95)
    """
    if data.get("width") not in _Base.known:
        raise ValueError(f"unknown width {data.get('width')!r}; known are {sorted(_Base.known)}")
    return _Base.known[data["width"]].from_dict(data)


def given_or(width: Width | None, default: D, name: str = "width") -> Width | D:
    """Return the width that was given as an option, or the default.

    >>> given_or(None, Constant(2.0))
    Constant(value=2.0)
    >>> given_or(3.0, Constant(2.0))
    Traceback (most recent call last):
    ...
    TypeError: width must be callable, for example widths.Constant(2.0); got 3.0
    """
    if width is None:
        return default
    if not callable(width):
        raise TypeError(f"{name} must be callable, for example widths.Constant(2.0); got {width!r}")
    return width


def usual(size: int | None, confidence: float) -> Width:
    """Return the theorem's width on a finite domain, and two standard deviations where its constants are unknown.

    >>> usual(100, 0.9), usual(None, 0.9)
    (Finite(confidence=0.9), Constant(value=2.0))
    """
    return Constant(2.0) if size is None else Finite(confidence)


@dataclass(frozen=True)
class Constant(_Base):
    """The same number of standard deviations in every round.

    >>> Constant(1.5)(step=100)
    1.5
    """

    value: float = 2.0

    def __post_init__(self) -> None:
        not_negative(self.value, "a width")

    def __call__(self, step: int, *, size: int | None = None, dimension: int | None = None, gain: float = 0.0) -> float:
        return self.value


@dataclass(frozen=True)
class Finite(_Base):
    """Bayesian width on a finite domain: β_t = 2 log(|D| t² π² / 6δ), δ = 1 − confidence.

    With probability at least ``confidence`` every value lies within its bounds in every round (Srinivas et al. 2010,
    Lemma 5.1), if the prior is right.

    >>> Finite(0.9)(step=1, size=1000) < Finite(0.9)(step=9, size=1000)
    True
    """

    confidence: float = 0.9

    def __post_init__(self) -> None:
        open_unit(self.confidence, "confidence")

    def __call__(self, step: int, *, size: int | None = None, dimension: int | None = None, gain: float = 0.0) -> float:
        if size is None:
            raise ValueError("the width Finite needs a finite domain; use Constant or Continuous on a box")
        return math.sqrt(2.0 * math.log(size * step**2 * math.pi**2 / (6.0 * (1.0 - self.confidence))))


@dataclass(frozen=True)
class Continuous(_Base):
    """Bayesian width on a box of dimension p: β_t = scale · p log(1 + t p / δ).

    The theory fixes the growth, p log(tp/δ), up to constants of the sample paths' smoothness, which nobody knows;
    ``scale`` stands for them.

    >>> Continuous(scale=0.2)(step=10, dimension=2)
    1.4...
    """

    confidence: float = 0.9
    scale: float = 0.2

    def __post_init__(self) -> None:
        open_unit(self.confidence, "confidence")
        positive(self.scale, "scale")

    def __call__(self, step: int, *, size: int | None = None, dimension: int | None = None, gain: float = 0.0) -> float:
        if dimension is None:
            raise ValueError("the width Continuous needs the dimension")
        return math.sqrt(self.scale * dimension * math.log(1.0 + step * dimension / (1.0 - self.confidence)))


@dataclass(frozen=True)
class Logarithmic(_Base):
    """The practical width of multi-fidelity and additive work: √(scale · p log 2t), p the dimension plus ``extra``.

    ``root=False`` leaves the root out, as in the code that came with BO-BOS. No guarantee goes with either.

    >>> round(Logarithmic(0.2)(step=10, dimension=2), 3)
    1.095
    """

    scale: float = 0.2
    extra: int = 0
    root: bool = True

    def __post_init__(self) -> None:
        positive(self.scale, "scale")

    def __call__(self, step: int, *, size: int | None = None, dimension: int | None = None, gain: float = 0.0) -> float:
        if dimension is None:
            raise ValueError("the width Logarithmic needs the dimension")
        value = self.scale * (dimension + self.extra) * math.log(2.0 * step)
        return math.sqrt(value) if self.root else value


@dataclass(frozen=True)
class LogTime(_Base):
    """The practical width of work on drifting functions: √(scale · log(rate · t)), 0 where the logarithm is negative.

    No guarantee goes with it.

    >>> round(LogTime(0.8, 4.0)(step=10), 3), LogTime(0.8, 0.4)(step=2)
    (1.718, 0.0)
    """

    scale: float = 0.8
    rate: float = 4.0

    def __post_init__(self) -> None:
        positive(self.scale, "scale")
        positive(self.rate, "rate")

    def __call__(self, step: int, *, size: int | None = None, dimension: int | None = None, gain: float = 0.0) -> float:
        return math.sqrt(max(0.0, self.scale * math.log(self.rate * step)))


@dataclass(frozen=True)
class RKHS(_Base):
    """Width for a fixed function of norm at most ``bound``: β_t^(1/2) = B + (R/√λ) √(2(Γ_{t−1} + log(1/δ))).

    Γ is the realized information gain ½ log det(I + K/λ) of the posterior in use, λ its noise variance, and R the
    sub-Gaussian constant of the noise. ``noise_ratio`` is R/√λ, which is 1 when the posterior uses the true variance.
    The printed form with σ in front (Chowdhury & Gopalan 2017 with λ ≈ 1) is too narrow for a posterior with λ = σ².

    >>> RKHS(bound=1.0, confidence=0.9)(step=3, gain=2.0)
    3.9...
    """

    bound: float = 1.0
    confidence: float = 0.9
    noise_ratio: float = 1.0

    def __post_init__(self) -> None:
        open_unit(self.confidence, "confidence")
        not_negative(self.bound, "bound")
        positive(self.noise_ratio, "noise_ratio")

    def __call__(self, step: int, *, size: int | None = None, dimension: int | None = None, gain: float = 0.0) -> float:
        return self.bound + self.noise_ratio * math.sqrt(2.0 * (gain + math.log(1.0 / (1.0 - self.confidence))))
