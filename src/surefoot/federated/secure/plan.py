"""A private federation without a trusted middle: DP-FTS-DE as secure sums with distributed noise.

Line 10 and 11 of Algorithm 6.1 (Dai 2021) are a weighted sum and noise, and both can be done by the parties. With
q = 1, the vector ω̂ₙ of agent n clipped to c = S/√P, and h the honest parties who stay,

    vₙ = (φₙ⁽ⁱ⁾/φ_max⁽ⁱ⁾ ω̂ₙ)ᵢ,  ‖vₙ‖ ≤ c r,  r = max_n ‖(φₙ⁽ⁱ⁾/φ_max⁽ⁱ⁾)ᵢ‖       one vector of P M numbers
    kₙ = trunc(vₙ/step) + discrete Gaussian of variance (z c √P/step)²/h          what is masked
    ω⁽ⁱ⁾ = φ_max⁽ⁱ⁾ step (Σₙ kₙ)ᵢ                                                  what everybody computes from the sum

the noise of which is that of the coordinator's, z φ_max⁽ⁱ⁾ S, if h parties added theirs, and more if more did.

>>> features = SharedFeatures(1, 4, lengthscale=0.2, noise=0.01, seed=0)
>>> plan = SumPlan(features, agents=5, threshold=4, noise_multiplier=1.0, rounds=3)
>>> plan.honest, plan.session(0, [c * 64 for c in "12345"]).length
(4, 4)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot.arguments import not_negative, whole
from surefoot.errors import SurefootError
from surefoot.experimental import experimental
from surefoot.federated.features import SharedFeatures
from surefoot.federated.messages import Broadcast
from surefoot.federated.regions import Regions, Weighting
from surefoot.federated.secure.ring import Ring
from surefoot.federated.secure.session import Session, majority
from surefoot.private.accounting import GaussianEvent, epsilon
from surefoot.private.discrete import NoiseShares
from surefoot.private.ledger import Ledger
from surefoot.private.noise import Noise, SystemNoise

__all__ = ["SumPlan"]

Array = NDArray[np.float64]
Whole = NDArray[np.int64]


@experimental
@dataclass(frozen=True, eq=False)
class SumPlan:
    """The public constants of a federation whose server sees sums only; every party and the server has the same.

    What is protected is whether a party's vector is in a sum, or zero in its place.

    Parameters
    ----------
    features : SharedFeatures
        What all parties agreed on.
    agents : int
        N, the length of the public roster.
    regions : int
        P; the unit cube is cut evenly.
    noise_multiplier : float
        z; 0 adds no noise, and then whoever sees the sum is not kept from anything.
    clip : float, optional
        S; 1.1 √(MP) by default.
    weighting : Weighting
        How the weights of sub-regions fall.
    threshold : int, optional
        t, how many parties must stay; more than two thirds by default.
    dishonest : int
        How many of those who stay may have added no noise, or tell the server theirs. Noise is dealt out so that the
        other t − dishonest have enough; it is what the ledger is charged for.
    bits : int
        Of the ring.
    rounds : int
        T, how many sums there will be.

    >>> features = SharedFeatures(1, 50, lengthscale=0.1, noise=0.01, seed=0)
    >>> plan = SumPlan(features, agents=50, noise_multiplier=8.0, rounds=5, dishonest=5)
    >>> plan.threshold, plan.honest, round(plan.epsilon(1e-5), 2)
    (34, 29, 1.14)
    """

    features: SharedFeatures
    agents: int
    regions: int = 1
    noise_multiplier: float = 0.0
    clip: float | None = None
    weighting: Weighting = field(default_factory=Weighting)
    threshold: int | None = None
    dishonest: int = 0
    bits: int = 32
    rounds: int = 1

    def __post_init__(self) -> None:
        if not isinstance(self.features, SharedFeatures):
            raise TypeError(f"features must be SharedFeatures, got {type(self.features).__name__}")
        whole(self.agents, "agents", 3)
        whole(self.rounds, "rounds", 1)
        not_negative(self.noise_multiplier, "noise_multiplier")
        if self.threshold is None:
            object.__setattr__(self, "threshold", majority(self.agents))
        if self.clip is None:
            object.__setattr__(self, "clip", 1.1 * math.sqrt(self.features.count * self.regions))
        if whole(self.dishonest, "dishonest") >= self.stay:
            raise ValueError(f"of the {self.stay} parties that stay at least one is honest, got {self.dishonest}")
        for round in range(self.rounds):
            if self.noise_multiplier and self.shares(round).each < 2.0:
                raise ValueError(f"a ring of {self.bits} bits is too coarse for this noise: take more bits")

    @property
    def stay(self) -> int:
        """t."""
        return whole(self.threshold, "threshold", 2)

    @property
    def honest(self) -> int:
        """h, how many shares of the noise are counted on."""
        return self.stay - self.dishonest

    @property
    def limit(self) -> float:
        """c, the longest norm of a party's vector of weights."""
        return float(self.clip or 0.0) / math.sqrt(self.regions)

    @cached_property
    def parts(self) -> Regions:
        """The sub-regions."""
        return Regions.split(self.regions, self.features.dimension)

    def weights(self, round: int) -> Array:
        """Return the weights (P, N) of a round."""
        return self.weighting.weights(round, self.parts.assign(self.agents), self.regions)

    def _relative(self, round: int) -> Array:
        weights = self.weights(round)
        relative: Array = weights / weights.max(axis=1, keepdims=True)
        return relative

    def sensitivity(self, round: int) -> float:
        """Return c r, the longest norm of what one party adds."""
        return self.limit * float(np.linalg.norm(self._relative(round), axis=0).max())

    def spread(self) -> float:
        """Return the standard deviation z c √P of the noise, in the units of what is added."""
        return self.noise_multiplier * self.limit * math.sqrt(self.regions)

    def ring(self, round: int) -> Ring:
        """Return the ring of a round, with room for the noise of all parties."""
        noise = self.spread() * math.sqrt(self.agents / self.honest)
        return Ring(self.bits, self.sensitivity(round), self.agents, noise)

    def shares(self, round: int) -> NoiseShares:
        """Return the noise of a round, in whole steps."""
        return NoiseShares(self.spread() / self.ring(round).step, self.honest)

    def session(self, round: int, roster: Sequence[str]) -> Session:
        """Return what the parties agree on for a round's sum."""
        if len(roster) != self.agents:
            raise ValueError(f"the roster has {self.agents} parties, got {len(roster)}")
        length = self.regions * self.features.count
        return Session(self.features.hash, round, length, self.bits, self.stay, tuple(roster))

    def contribution(self, agent: int, vector: ArrayLike, round: int, noise: Noise | None = None) -> Whole:
        """Return what a party masks: its vector, clipped, weighted, in whole steps, with its share of the noise.

        >>> features = SharedFeatures(1, 4, lengthscale=0.2, noise=0.01, seed=0)
        >>> plan = SumPlan(features, agents=5, clip=1.0)
        >>> plan.contribution(0, [3.0, 4.0, 0.0, 0.0], 0) * plan.ring(0).step
        array([0.6, 0.8, 0. , 0. ])
        """
        if whole(agent, "agent") >= self.agents:
            raise ValueError(f"the public roster has agents 0 to {self.agents - 1}, got {agent}")
        given = np.asarray(vector, dtype=np.float64)
        if given.shape != (self.features.count,) or not np.isfinite(given).all():
            raise ValueError(f"{self.features.count} finite numbers are expected")
        peak = max(1.0, float(np.abs(given).max()))  # a square may overflow
        clipped = given / max(1.0, peak * float(np.linalg.norm(given / peak)) / self.limit)
        steps = self.ring(round).encode(np.outer(self._relative(round)[:, agent], clipped).ravel())
        if self.noise_multiplier:
            steps = steps + self.shares(round).draw(steps.size, SystemNoise() if noise is None else noise)
        return steps

    def broadcast(self, round: int, total: ArrayLike, *, simulated: bool = False) -> Broadcast:
        """Return what everybody is told, from the sum of the contributions."""
        vectors = self.ring(round).decode(np.asarray(total)).reshape(self.regions, -1)
        vectors = vectors * self.weights(round).max(axis=1, keepdims=True)
        return Broadcast(round, self.features.hash, self.parts.parts, vectors=vectors, simulated=simulated)

    def event(self, round: int) -> GaussianEvent:
        """Return what a round's sum is charged, towards whoever sees it, the server included."""
        if not self.noise_multiplier:
            raise ValueError("sums without noise have no finite epsilon")
        sensitivity = self.sensitivity(round) / self.ring(round).step
        return self.shares(round).event(sensitivity, self.regions * self.features.count)

    def charge(self, ledger: Ledger, round: int) -> None:
        """Charge a round's sum, before anybody opens it.

        >>> features = SharedFeatures(1, 4, lengthscale=0.2, noise=0.01, seed=0)
        >>> plan = SumPlan(features, agents=5, noise_multiplier=4.0)
        >>> plan.charge(Ledger(epsilon=2.0, delta=1e-5), 0)
        Traceback (most recent call last):
        ...
        surefoot.errors.SurefootError: distributed noise is accounted by Rényi divergences: Ledger(..., method="rdp")
        """
        if ledger.method != "rdp":
            raise SurefootError('distributed noise is accounted by Rényi divergences: Ledger(..., method="rdp")')
        ledger.charge(self.event(round), round=round)

    def epsilon(self, delta: float) -> float:
        """Return ε at δ of all rounds."""
        return epsilon([self.event(round) for round in range(self.rounds)], delta, method="rdp")
