"""Before a federation runs: what it will cost in privacy, and how much signal is left.

>>> made = FederationPlan(agents=200, rounds=40, regions=2, count=50, sampling=0.25, multiplier=1.0)
>>> round(made.loss("moments", sensitivity="published"), 2), round(made.loss("pld"), 2) < 7.1
(9.91, True)

Everything here is a function of public constants: nobody's data is looked at.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, field, replace
from typing import Any

from surefoot.federated.coordinator import Coordinator
from surefoot.federated.features import SharedFeatures
from surefoot.federated.regions import Weighting
from surefoot.moved import renamed
from surefoot.private.accounting import METHODS, noise_multiplier
from surefoot.private.noise import ResearchNoise

__all__ = ["ACCOUNTANTS", "SENSITIVITIES", "FederationPlan", "solve"]
__getattr__ = renamed(__name__, {"Plan": "FederationPlan"})

ACCOUNTANTS = {
    "pld": "privacy loss distribution",
    "rdp": "Rényi, fractional orders",
    "moments": "moments, whole orders (published)",
}
SENSITIVITIES = ("exact", "published")


@dataclass(frozen=True)
class FederationPlan:
    """The public constants of a private federation.

    Parameters
    ----------
    agents, rounds : int
        N and T.
    regions, count : int
        P and M.
    sampling, multiplier : float
        q and z.
    clip : float, optional
        S; 1.1 √(MP) by default.
    delta : float, optional
        δ; N^(−1.1) by default.
    weighting : Weighting
        The schedule of the weights.

    >>> FederationPlan(agents=29, rounds=60, regions=4, count=100, sampling=0.35, multiplier=1.0).signal(0) < 0.2
    True
    """

    agents: int
    rounds: int
    regions: int = 2
    count: int = 50
    sampling: float = 0.25
    multiplier: float = 1.0
    clip: float | None = None
    delta: float | None = None
    weighting: Weighting = field(default_factory=Weighting)

    def __post_init__(self) -> None:
        if not (math.isfinite(self.multiplier) and self.multiplier > 0):
            raise ValueError(f"the noise multiplier z must be positive and finite, got {self.multiplier!r}")
        if self.delta is not None and not 0.0 < self.delta < 1.0:
            raise ValueError(f"delta must lie strictly between 0 and 1, got {self.delta!r}")
        if self.delta is None and self.agents == 1:
            raise ValueError("one agent has no default delta: give one")
        self.coordinator()

    @property
    def at(self) -> float:
        """δ."""
        return float(self.agents) ** -1.1 if self.delta is None else self.delta

    def coordinator(self, sensitivity: str = "exact") -> Coordinator:
        """Return a coordinator with these constants; its releases would be simulated ones."""
        features = SharedFeatures(1, self.count, lengthscale=0.1, noise=0.01, seed=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the plan itself says how much signal there is
            return Coordinator(
                features, agents=self.agents, rounds=self.rounds, noise=ResearchNoise(0), sensitivity=sensitivity,
                **self.options(),
            )  # fmt: skip

    def options(self) -> dict[str, Any]:
        """Return the constants as options of a coordinator."""
        return {
            "regions": self.regions,
            "clip": self.clip,
            "noise_multiplier": self.multiplier,
            "sampling": self.sampling,
            "weighting": self.weighting,
        }

    def loss(self, method: str = "pld", *, sensitivity: str = "exact", delta: float | None = None) -> float:
        """Return ε at δ of all rounds by one of the accountants."""
        return self.coordinator(sensitivity).epsilon(self.at if delta is None else delta, method=method)

    def losses(self) -> dict[str, dict[str, float]]:
        """Return ε by every accountant, with both sensitivities."""
        return {name: {kind: self.loss(name, sensitivity=kind) for kind in SENSITIVITIES} for name in METHODS}

    def signal(self, round: int) -> float:
        """Return how large a function of order 1 is beside the noise of a round's broadcast."""
        return self.coordinator().signal_to_noise(round)

    def to_dict(self) -> dict[str, Any]:
        """Return everything that is known before the run, as strict JSON."""
        coordinator = self.coordinator()
        return {
            "agents": self.agents,
            "rounds": self.rounds,
            "regions": self.regions,
            "features": self.count,
            "sampling": self.sampling,
            "noise_multiplier": self.multiplier,
            "clip": coordinator.clip,
            "delta": self.at,
            "weighting": self.weighting.to_dict(),
            "epsilon": self.losses(),
            "signal_to_noise": {"first": self.signal(0), "last": self.signal(self.rounds - 1)},
        }


def solve(plan: FederationPlan, epsilon: float) -> FederationPlan:
    """Return the plan with the least noise multiplier whose loss, exact and by distribution, is at most ``epsilon``.

    >>> made = solve(FederationPlan(agents=200, rounds=10, regions=1, sampling=0.25), 4.0)
    >>> bool(3.9 < made.loss("pld") <= 4.0)
    True
    """
    if not (math.isfinite(epsilon) and epsilon > 0):
        raise ValueError(f"epsilon must be positive and finite, got {epsilon!r}")
    # Sub-regions can only help, by √P at most: the answer lies between these two.
    high = noise_multiplier(epsilon, plan.at, sampling=plan.sampling, count=plan.rounds)
    low = high / plan.regions**0.5
    if replace(plan, multiplier=low).loss() <= epsilon:
        return replace(plan, multiplier=low)
    if replace(plan, multiplier=high).loss() > epsilon:  # by rounding
        high *= 1.001
    while high - low > 1e-4 * high:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if replace(plan, multiplier=middle).loss() <= epsilon else (middle, high)
    return replace(plan, multiplier=high)
