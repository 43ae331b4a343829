"""The coordinator: from the agents' vectors to one function for each sub-region, with or without privacy.

One code path for a family of algorithms (Dai, Low & Jaillet 2020 and 2021; lines are those of Algorithm 6.1 of Dai's
thesis, 2021):

===========  ==============  ===================================================================
FTS          regions=1       the weighted mean of all vectors (FTS of 2020 needs no coordinator: see the agent)
FTS-DE       regions > 1     one mean for each sub-region, weighted towards those who know it
DP-FTS       regions=1       clipping, secret sampling and noise: noise_multiplier > 0
DP-FTS-DE    regions > 1     both
===========  ==============  ===================================================================

In round t, with the newest vector ωₙ of every agent,

    each agent is sampled with probability q; its vector is clipped, ω̂ₙ = ωₙ / max(1, ‖ωₙ‖ √P/S)      (lines 6, 9)
    ω⁽ⁱ⁾ = (1/q) Σ_{sampled n} φₙ⁽ⁱ⁾ ω̂ₙ + N(0, (z φ_max⁽ⁱ⁾ S/q)² I)   for i = 1..P                     (lines 10, 11)

Guarantee: what it broadcasts, over all rounds, is (ε, δ)-differentially private for each agent as a whole, added or
removed; ε by :mod:`surefoot.private.accounting`. It protects an agent from those who read broadcasts, not from the
coordinator, which sees every vector. What the guarantee rests on is kept here: weights and the number of agents are
public constants; the sample is secret and never stored; an empty sample releases pure noise; the divisor is the fixed
q; an absent agent counts as zero and a late one with its last vector; a broadcast that serves no query is not made; a
release is charged to the ledger before it is computed, and after the budget is spent agents go on alone.

Authors' options: S = 11, P = 2, M = 50 and S = 22, P = 4, M = 100, both S ≈ 1.1 √(MP), which is the rule here since it
looks at nobody's data. What differs: φ_max is that of the round and the sub-region; the ledger charges the exact
multiplier of the round (``sensitivity="published"`` charges z); equal vectors are averaged once the weights are
uniform, which divides their noise by √P at no cost; an empty sample is not replaced by a random vector.

Cost of one release: O(N M P).
"""

from __future__ import annotations

import logging
import os
import warnings
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from surefoot.arguments import whole
from surefoot.errors import BudgetSpent, SurefootError
from surefoot.experimental import experimental
from surefoot.federated.aggregate import aggregate
from surefoot.federated.features import SharedFeatures
from surefoot.federated.messages import Broadcast, Message
from surefoot.federated.regions import Regions, Weighting, effective_multiplier
from surefoot.federated.schedules import Decay, Schedule
from surefoot.loop.durable import uninterrupted
from surefoot.loop.journal import Journal
from surefoot.loop.state import pack
from surefoot.private.accounting import GaussianEvent
from surefoot.private.accounting import epsilon as composed
from surefoot.private.ledger import Ledger
from surefoot.private.noise import Noise, SystemNoise

__all__ = ["Coordinator"]

Array = NDArray[np.float64]
Path = str | os.PathLike[str]
_log = logging.getLogger("surefoot.federated")

FAINT = 0.5  # signal over noise below which a broadcast-driven query is close to a random one
HUGE = 1e3  # norms above this many √M are no posterior draws
GRID = 1.0 + 1e-9  # what the sampler's grid may cost in privacy, paid in noise


@experimental
class Coordinator:
    """Collects messages and releases broadcasts; see the module's page.

    Parameters
    ----------
    features : SharedFeatures
        What all parties agreed on.
    agents : int
        N, the length of the public roster, whoever takes part.
    regions : int or Regions
        P; a number cuts the unit cube evenly. For a domain with choices pass ``Regions.of(domain, P)``.
    clip : float, optional
        S; vectors are clipped to S/√P. None is 1.1 √(MP) with noise and no clipping without.
    noise_multiplier : float
        z; 0 adds no noise and gives no privacy.
    sampling : float
        q, the probability with which each agent's vector enters a round.
    weighting : Weighting
        How the weights of sub-regions fall; with P = 1 all agents weigh alike.
    rounds : int, optional
        T, the number of queries each agent makes after its initial ones. Releases are made for rounds 0 .. T − 1; after
        that silence. None never ends.
    ledger : Ledger, optional
        Where releases are charged before they are made.
    schedule : Schedule
        p_t, used for the public coin only.
    public_coin : bool
        Whether one coin per round decides for all agents; rounds in which all follow themselves release nothing, and
        cost nothing.
    average_uniform : bool
        Whether the P vectors are averaged once the weights are uniform: they then carry one signal and P noises.
    sensitivity : {"exact", "published"}
        What the ledger is charged: z_eff of the round, or z.
    noise : Noise, optional
        Where sampling and noise come from; None is the operating system.
    journal : path, optional
        Where broadcasts are durable before they are returned; with it a restarted coordinator continues.
    vectors : path, optional
        Where the agents' vectors are durable. They are private: choose a place that only the coordinator reads. Without
        it a restarted coordinator waits for agents to send again.

    >>> features = SharedFeatures(1, 4, lengthscale=0.2, noise=0.01, seed=0)
    >>> coordinator = Coordinator(features, agents=2)
    >>> for agent, vector in enumerate(([1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 3.0])):
    ...     coordinator.collect(Message(agent, 0, features.hash, vector))
    True
    True
    >>> coordinator.release(0).vectors
    array([[0.5, 0. , 0. , 1.5]])
    """

    def __init__(
        self,
        features: SharedFeatures,
        *,
        agents: int,
        regions: int | Regions = 1,
        clip: float | None = None,
        noise_multiplier: float = 0.0,
        sampling: float = 1.0,
        weighting: Weighting | None = None,
        rounds: int | None = None,
        ledger: Ledger | None = None,
        schedule: Schedule | None = None,
        public_coin: bool = False,
        average_uniform: bool = True,
        sensitivity: str = "exact",
        noise: Noise | None = None,
        journal: Path | None = None,
        vectors: Path | None = None,
    ) -> None:
        if not isinstance(features, SharedFeatures):
            raise TypeError(f"features must be SharedFeatures, got {type(features).__name__}")
        self.features, self.agents = features, whole(agents, "agents", 1)
        self.regions = regions if isinstance(regions, Regions) else Regions.split(regions, features.dimension)
        if self.regions.dimension != features.dimension:
            raise ValueError(f"regions cut {self.regions.dimension} coordinates, features have {features.dimension}")
        if not (np.isfinite(noise_multiplier) and noise_multiplier >= 0):
            raise ValueError(f"noise_multiplier must be finite and not negative, got {noise_multiplier!r}")
        if not 0.0 < sampling <= 1.0:
            raise ValueError(f"sampling is a probability above 0, got {sampling!r}")
        for name, given, kind in (("weighting", weighting, Weighting), ("ledger", ledger, Ledger)):
            if given is not None and not isinstance(given, kind):
                raise TypeError(f"{name} must be a {kind.__name__}, got {given!r}")
        if sensitivity not in ("exact", "published"):
            raise ValueError(f"sensitivity must be 'exact' or 'published', got {sensitivity!r}")
        self.noise_multiplier, self.sampling = float(noise_multiplier), float(sampling)
        if clip is None:
            clip = 1.1 * np.sqrt(features.count * self.regions.count) if self.noise_multiplier else np.inf
        if not clip > 0:
            raise ValueError(f"clip must be positive, got {clip!r}")
        if self.noise_multiplier and not np.isfinite(clip):
            raise ValueError("noise protects only what is clipped: give a finite clip, or none for the rule")
        if ledger is not None and not self.noise_multiplier:
            raise ValueError("a release without noise has no finite epsilon: a ledger needs noise_multiplier > 0")
        self.clip = float(clip)
        self.rounds = None if rounds is None else whole(rounds, "rounds", 1)
        self.weighting = Weighting() if weighting is None else weighting
        self.schedule: Schedule = Decay() if schedule is None else schedule
        self.public_coin, self.average_uniform, self.sensitivity = public_coin, average_uniform, sensitivity
        self.ledger, self.noise = ledger, SystemNoise() if noise is None else noise
        self.assigned = self.regions.assign(self.agents)
        self._newest, self._vectors = np.full(self.agents, -1), np.zeros((self.agents, features.count))
        self._released: dict[int, Broadcast] = {}
        self._warn()
        self._journal, self._private = (None if path is None else Journal(path) for path in (journal, vectors))
        try:
            self._open()
        except BaseException:  # the first file is not kept because of the second
            self.close()
            raise

    # -- state --------------------------------------------------------------------------------------------------------

    def config(self) -> dict[str, Any]:
        """Return the public constants as strict JSON: what agents may ask for, and what a journal starts with."""
        names = ["agents", "regions", "clip", "noise_multiplier", "sampling", "weighting", "rounds", "schedule"]
        names += ["public_coin", "average_uniform", "sensitivity"]
        return {"features": self.features.hash, **{name: pack(getattr(self, name)) for name in names}}

    def _open(self) -> None:
        try:
            for journal, kind in ((self._journal, "released"), (self._private, "collected")):
                if journal is not None:
                    self._replay(journal, kind)
            self._check_charged()
        except BaseException:
            self.close()  # others may write them
            raise

    def _replay(self, journal: Journal, kind: str) -> None:
        for event in journal.open({"coordinator": self.config()}):
            if event.pop("event") != kind:
                raise ValueError(f"{journal.path} has no events {kind!r}: are journal and vectors exchanged?")
            if kind == "released":
                self._released[event["round"]] = Broadcast(**event)
            else:
                self._newest[event["agent"]], self._vectors[event["agent"]] = event["round"], event["vector"]
        if kind == "collected" and os.name == "posix":
            journal.path.chmod(0o600)

    def _check_charged(self) -> None:
        """Refuse a ledger that does not know of a release: a fresh one would spend the budget again."""
        if self.ledger is None:
            return
        charged = {entry.note.get("round") for entry in self.ledger.entries}
        for round, broadcast in self._released.items():
            if broadcast.silence is None and round not in charged:
                raise SurefootError(
                    f"round {round} was released, and this ledger has no charge for it: it is another one, or it was "
                    "deleted or replaced by an older copy; put the ledger of the federation back"
                )

    def close(self) -> None:
        """Release the files, if there are any."""
        for journal in filter(None, (self._journal, self._private)):
            journal.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def round(self) -> int:
        """The next round to release."""
        return max(self._released, default=-1) + 1

    @property
    def broadcasts(self) -> list[Broadcast]:
        """Everything released so far, in order."""
        return [self._released[round] for round in sorted(self._released)]

    @property
    def newest(self) -> NDArray[np.intp]:
        """The round of each agent's newest vector (N,); −1 for one that has sent nothing yet."""
        return self._newest.copy()

    # -- collecting ---------------------------------------------------------------------------------------------------

    def collect(self, message: Message) -> bool:
        """Take one agent's message (line 4); return whether it is newer than what was known of the agent.

        A message that is late replaces nothing newer. One that is malformed is refused with a ``ValueError`` and
        changes nothing: the agent counts with its last good vector.
        """
        if not isinstance(message, Message):
            raise TypeError(f"expected a Message, got {type(message).__name__}")
        who = f"message of agent {message.agent} for round {message.round}"
        if message.features != self.features.hash:
            raise ValueError(
                f"{who}: made with the features {message.features[:12]}, this federation uses {self.features.hash[:12]}"
            )
        if message.agent >= self.agents:
            raise ValueError(f"{who}: the public roster has agents 0 to {self.agents - 1}")
        self._check_vector(who, message.vector)
        known = self._newest[message.agent]
        if message.round == known and not np.array_equal(message.vector, self._vectors[message.agent]):
            raise ValueError(f"{who}: another vector was sent for this round before")
        if message.round <= known:
            return False
        with uninterrupted():
            if self._private is not None:
                self._private.append({"event": "collected", **message.to_fields()})
            self._newest[message.agent], self._vectors[message.agent] = message.round, message.vector
        return True

    def collect_all(self, round: int, vectors: Array) -> None:
        """Take the vectors (N, M) of all agents at once, as a simulation does; all of them or, on an error, none.

        >>> features = SharedFeatures(1, 4, lengthscale=0.2, noise=0.01, seed=0)
        >>> coordinator = Coordinator(features, agents=3)
        >>> coordinator.collect_all(0, np.eye(3, 4))
        >>> coordinator.newest
        array([0, 0, 0])
        """
        round = whole(round, "round", 0)
        if vectors.shape != self._vectors.shape:
            raise ValueError(f"vectors must have shape {self._vectors.shape}, got {vectors.shape}")
        with np.errstate(over="ignore"):
            wrong = ~(np.linalg.norm(vectors, axis=1) <= HUGE * self.features.count**0.5)
        if wrong.any():
            self._check_vector(f"vector of agent {int(np.flatnonzero(wrong)[0])}", vectors[wrong][0])
        with uninterrupted():
            if self._private is not None:
                rows = [{"agent": n, "round": round, "vector": row.tolist()} for n, row in enumerate(vectors)]
                self._private.append(*({"event": "collected", **row} for row in rows))
            self._newest[:], self._vectors[:] = round, vectors

    def _check_vector(self, who: str, vector: Array) -> None:
        if vector.shape != (self.features.count,):
            raise ValueError(f"{who}: {self.features.count} numbers are expected, got {vector.size}")
        if not np.isfinite(vector).all():
            raise ValueError(f"{who}: its vector is not finite")
        limit = HUGE * self.features.count**0.5
        if np.abs(vector).max() > limit or np.linalg.norm(vector) > limit:  # in this order: a square may overflow
            raise ValueError(f"{who}: its vector is longer than {limit:.4g}, which no draw is")

    # -- releasing ----------------------------------------------------------------------------------------------------

    def release(self, round: int | None = None) -> Broadcast:
        """Return the broadcast of a round (line 12), the next one by default; the same whenever it is asked for again.

        Messages are not waited for: it is made of what has been collected.
        """
        round = self.round if round is None else whole(round, "round", 0)
        if round in self._released:
            return self._released[round]
        if round < self.round:
            raise ValueError(f"round {round} was passed over; the next one is {self.round}")
        broadcast = self._make(round)
        with uninterrupted():
            if self._journal is not None:
                self._journal.append({"event": "released", **broadcast.to_fields()})
            self._released[round] = broadcast
        return broadcast

    def _make(self, round: int) -> Broadcast:
        about: dict[str, Any] = {"round": round, "features": self.features.hash, "parts": self.regions.parts}
        if self.rounds is not None and round >= self.rounds:
            return Broadcast(**about, silence="last")
        if any(broadcast.silence == "budget" for broadcast in self._released.values()):
            return Broadcast(**about, silence="budget")
        if self.public_coin and not self.noise.bernoulli(1.0 - self.schedule(round + 1), 1)[0]:
            return Broadcast(**about, silence="coin", coin=False)
        weights = self.weights(round)
        if self.ledger is not None:
            try:
                self.ledger.charge(self._event(weights), round=round)
            except BudgetSpent:
                _log.info("round %d: the privacy budget is spent; agents go on alone", round)
                return Broadcast(**about, silence="budget")
        vectors = self._aggregate(round, weights)
        secret = bool(self.noise_multiplier) or self.sampling < 1.0
        return Broadcast(
            **about, vectors=vectors, coin=True if self.public_coin else None, simulated=secret and self.noise.simulated
        )

    def _aggregate(self, round: int, weights: Array) -> Array:
        """Lines 5 to 11 of Algorithm 6.1, shape (P, M)."""
        return aggregate(
            self._vectors,
            weights,
            limit=self.clip / self.regions.count**0.5,
            noise=self.noise,
            deviations=self.deviations(round) * GRID,
            sampling=self.sampling,
            average=self.average_uniform and self._uniform(round),
        )

    def _uniform(self, round: int) -> bool:
        return self.weighting(round) == 0.0

    # -- what is public -----------------------------------------------------------------------------------------------

    def weights(self, round: int) -> Array:
        """Return the weights (P, N) of a round."""
        return self.weighting.weights(round, self.assigned, self.regions.count)

    def deviations(self, round: int) -> Array:
        """Return the standard deviation of the noise in each sub-region's vector, z φ_max⁽ⁱ⁾ S/q, shape (P,)."""
        if not self.noise_multiplier:
            return np.zeros(self.regions.count)
        # Line 11: z φ_max S/q
        deviations: Array = self.noise_multiplier * self.weights(round).max(axis=1) * self.clip / self.sampling
        return deviations

    def _event(self, weights: Array) -> GaussianEvent:
        z = self.noise_multiplier
        return GaussianEvent(effective_multiplier(z, weights) if self.sensitivity == "exact" else z, self.sampling)

    def plan(self, rounds: int | None = None) -> list[GaussianEvent]:
        """Return what so many releases will be charged, each; all of them by default."""
        count = self.rounds if rounds is None else whole(rounds, "rounds")
        if count is None:
            raise ValueError("this federation has no last round: say how many releases are planned")
        if not self.noise_multiplier:
            raise ValueError("releases without noise have no finite epsilon")
        return [self._event(self.weights(round)) for round in range(count)]

    def epsilon(self, delta: float | None = None, *, rounds: int | None = None, method: str = "pld") -> float:
        """Return ε at δ (N^(−1.1), the authors' choice, by default) of so many releases.

        >>> features = SharedFeatures(1, 50, lengthscale=0.03, noise=0.01, seed=0)
        >>> with warnings.catch_warnings(action="ignore"):
        ...     private = Coordinator(features, agents=200, noise_multiplier=1.0, sampling=0.25, rounds=40)
        >>> round(private.epsilon(method="moments"), 2)
        9.91
        """
        return composed(self.plan(rounds), self.agents**-1.1 if delta is None else delta, method=method)

    def signal_to_noise(self, round: int) -> float:
        """Return how large a function of order 1 is beside the noise of a broadcast, at the noisiest sub-region."""
        worst = float(self.deviations(round).max())
        if self._uniform(round) and self.average_uniform:
            worst /= self.regions.count**0.5
        return np.inf if worst == 0.0 else 1.0 / worst

    def _warn(self) -> None:
        first = self.signal_to_noise(0)
        if first < FAINT:
            end = self.weighting.hold + (self.weighting.fall or 0)
            warnings.warn(
                f"the broadcast of round 0 has a signal-to-noise ratio of {first:.2g} (of round {end}: "
                f"{self.signal_to_noise(end):.2g}): queries that follow it are close to random ones. More agents, a "
                "larger sampling probability, fewer sub-regions or a smaller noise multiplier raise it",
                stacklevel=3,
            )

    def __repr__(self) -> str:
        private = f"z={self.noise_multiplier:g}, q={self.sampling:g}" if self.noise_multiplier else "no noise"
        return f"Coordinator(agents={self.agents}, regions={self.regions.count}, {private}, round={self.round})"
