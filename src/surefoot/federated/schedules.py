"""How often an agent listens to the others: the probability p_t of following its own belief at iteration t.

p_t grows to 1, so that whatever the others send, the agent ends as plain Thompson sampling: that is where the
guarantee comes from. How fast is a matter of trust. ``Decay(power)`` is 1 − p_t = t^(−power):

========  ==========================  =======================================
power     uses in 50 iterations       who
========  ==========================  =======================================
0.5       about 12                    the authors' synthetic runs; the default
1         about 4                     the authors' private runs on real data
2         0.9                         the authors' FTS on real data: a third of such runs never listens
3         0.3                         what the regret bound of DP-FTS-DE needs
========  ==========================  =======================================

At t = 1 the formula says p = 0. The default takes p₁ = p₂ (FTS); ``first=0.0`` is what the authors of DP-FTS-DE run:
the first query of every agent follows the broadcast.

>>> Decay(0.5)(1) == Decay(0.5)(2), Decay(1.0, first=0.0)(1)
(True, 0.0)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Protocol, Self

import numpy as np

from surefoot.loop.state import storable
from surefoot.moved import renamed

__all__ = ["Decay", "FixedProbability", "Schedule", "expected_uses"]
__getattr__ = renamed(__name__, {"Fixed": "FixedProbability"})


class Schedule(Protocol):
    """A function of the iteration t = 1, 2, ...: the probability of following one's own belief."""

    def __call__(self, t: int, /) -> float:
        """Return p_t."""


@storable
@dataclass(frozen=True)
class Decay:
    """1 − p_t = t^(−power) for t ≥ 2.

    Parameters
    ----------
    power : float
        Positive. Larger listens less.
    first : float, optional
        p₁; None is p₂.

    >>> round(Decay(0.5)(1), 4)
    0.2929
    """

    power: float = 0.5
    first: float | None = None

    def __post_init__(self) -> None:
        if not (np.isfinite(self.power) and self.power > 0):
            raise ValueError(f"power must be positive and finite, got {self.power!r}")
        if self.first is not None and not 0.0 <= self.first <= 1.0:
            raise ValueError(f"first is a probability, got {self.first!r}")

    def __call__(self, t: int) -> float:
        if t < 1:
            raise ValueError(f"iterations are counted from 1, got {t!r}")
        if t == 1 and self.first is not None:
            return float(self.first)
        return 1.0 - float(float(max(t, 2)) ** -self.power)  # p₁ = p₂

    def to_dict(self) -> dict[str, Any]:
        """Return the schedule as strict JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Rebuild the schedule."""
        return cls(**data)


@storable
@dataclass(frozen=True)
class FixedProbability:
    """The same p at every iteration; 1 never listens and is Thompson sampling alone.

    >>> FixedProbability(1.0)(17)
    1.0
    """

    probability: float = 1.0
    stored_as: ClassVar[str] = "Fixed"

    def __post_init__(self) -> None:
        if not 0.0 <= self.probability <= 1.0:
            raise ValueError(f"probability must lie in [0, 1], got {self.probability!r}")

    def __call__(self, t: int) -> float:
        return float(self.probability)

    def to_dict(self) -> dict[str, Any]:
        """Return the schedule as strict JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Rebuild the schedule."""
        return cls(**data)


def expected_uses(schedule: Schedule, iterations: int) -> tuple[float, float]:
    """Return the expected number of iterations that listen, and the probability that none does.

    >>> uses, never = expected_uses(Decay(2.0), 50)
    >>> round(uses, 3), round(never, 4)
    (0.875, 0.3825)
    """
    p = np.array([schedule(t) for t in range(1, iterations + 1)])
    return float((1.0 - p).sum()), float(p.prod())
