"""An agent: Thompson sampling that now and then follows what the others have drawn.

Question: where is the maximum of my objective, when others look for the maxima of theirs and nobody shows data?

Rule (FTS, Dai, Low & Jaillet 2020, Algorithm 1; DP-FTS-DE, Dai, Low & Jaillet 2021, Algorithm 2; numbers of lines and
equations are those of Dai's thesis (2021), Algorithms 5.1 and 6.2). At iteration t,

    with probability p_t        x_t = argmax of a draw from the own posterior: Thompson sampling
    with probability 1 − p_t    x_t = argmax φ(x)ᵀω, ω another agent's message (FTS), or of the broadcast: the vector of
                                the sub-region of x (FTS-DE and the private ones)

and a message is one draw ω ~ N(ν, σ²Σ⁻¹) (5.1) of the weights of the shared features φ given the own measurements. That
is all that leaves the agent: M numbers a round.

Guarantee: no regret in the limit whatever the others send, if 1 − p_t falls fast enough: then Σ (1 − p_t) bounds what
they can cost. Thompson sampling alone is p_t = 1, and bit for bit the same queries. Messages without noise protect
nobody: with a small σ² the function φ(x)ᵀω goes through the agent's measured values.

Authors' options: outputs as they are (``outputs="none"``), l = 0.01 and σ² = 1e-6 in the shared features, 1 − p_t =
1/t² on real data; 10 initial points in the agent's sub-region. Here outputs are standardized and 1 − p_t = 1/√t.

What differs: a measured point may be asked again (``repeats=False`` takes the best other one; the authors' code takes
a random one). The width β_t of the theory is 1, as in all their experiments.

Cost of one ask: that of :class:`~surefoot.policy.thompson.ThompsonSampling`, or one search of φ(x)ᵀω, O(C M) for C
points tried, whose features are computed once for all agents of a process. Cost of a message: O(t² (t + M)) for t < M
measurements, else O(M² (t + M)).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from surefoot.arguments import whole
from surefoot.domain import Domain
from surefoot.experimental import experimental
from surefoot.federated.argmax import best_point, spread_table
from surefoot.federated.features import SharedFeatures, draw_weights, to_unit, transform_outputs
from surefoot.federated.messages import Broadcast, Message
from surefoot.federated.regions import Regions
from surefoot.federated.schedules import Decay, Schedule
from surefoot.loop.durable import uninterrupted
from surefoot.loop.trials import Trials
from surefoot.loop.types import Proposal
from surefoot.policy.base import ModelOptions, ModelPolicy
from surefoot.policy.rule import Rule
from surefoot.policy.start import enough
from surefoot.policy.thompson import PosteriorDraw, check_drawable, jointly
from surefoot.policy.view import View

__all__ = ["Agent", "FollowOthers", "Inbox", "RegionStart", "iteration", "regional_start"]

Array = NDArray[np.float64]

OUTPUTS = ("standardize", "none", "rank")
TRIES = 64  # blocks of points drawn before a sub-region counts as empty


class Inbox:
    """What others have sent: the newest broadcast, and the newest message of every other agent.

    >>> Inbox().broadcast is None
    True
    """

    def __init__(self) -> None:
        self.messages: dict[int, Message] = {}
        self.broadcast: Broadcast | None = None

    def newest(self, like: Broadcast | Message) -> Broadcast | Message | None:
        """Return the newest of the same sender and kind."""
        return self.messages.get(like.agent) if isinstance(like, Message) else self.broadcast

    def take(self, sent: Broadcast | Message) -> None:
        """Replace the one before it."""
        if isinstance(sent, Message):
            self.messages[sent.agent] = sent
        else:
            self.broadcast = sent

    def fresh(self, trials: Trials, once: bool) -> tuple[Broadcast | None, list[Message]]:
        """Return the newest broadcast unless it is silent, and the messages by agent; ``once``: what has not served."""
        notes = [query.note for query in trials.queries if once and "source" in query.note]
        served = {(note.get("agent", "broadcast"), note["round"]) for note in notes}
        newest = self.broadcast
        if newest is not None and (newest.vectors is None or ("broadcast", newest.round) in served):
            newest = None
        return newest, [m for _, m in sorted(self.messages.items()) if (m.agent, m.round) not in served]


def iteration(trials: Trials) -> int:
    """Return the number t of the next query that follows the rule, from 1: initial ones do not count.

    >>> from surefoot import Box, RandomSearch
    >>> iteration(RandomSearch(Box([(0.0, 1.0)])).trials)
    1
    """
    return 1 + sum("initial" not in query.note for query in trials.queries)


class FollowOthers:
    """Algorithm 5.1 (FTS) and Algorithm 6.2 (DP-FTS-DE): the own belief with probability p_t, else what others sent.

    Parameters
    ----------
    own : Rule
        Thompson sampling.
    inbox : Inbox
        What others have sent.
    features, regions, schedule
        φ, the sub-regions, p_t.
    once : bool
        Whether what was sent serves one query only.

    >>> from surefoot import Box
    >>> features = SharedFeatures(1, 50, lengthscale=0.2, noise=0.01, seed=0)
    >>> Agent(Box.unit(1), features, reuse="always", seed=1).rule.once
    False
    """

    def __init__(
        self,
        own: Rule,
        inbox: Inbox,
        features: SharedFeatures,
        regions: Regions,
        schedule: Schedule,
        *,
        once: bool,
    ) -> None:
        self.own, self.inbox, self.features, self.regions = own, inbox, features, regions
        self.schedule, self.once = schedule, once

    def propose(self, view: View) -> Proposal:
        """Toss the coin, and return the maximum of a draw or of the function that is followed."""
        broadcast, messages = self.inbox.fresh(view.trials, self.once)
        if broadcast is None and not messages:
            return self.own.propose(view)
        coin = None if broadcast is None else broadcast.coin
        if coin is None:  # 5.1, lines 2 and 3: r ~ U(0, 1), and whether r ≤ p_t
            coin = not view.stream("coin", view.step).random() <= self.schedule(iteration(view.trials))
        if not coin:  # 5.1, line 4, and 6.2, line 5: x_t = argmax of a draw from the own posterior
            return self.own.propose(view)
        if broadcast is not None and broadcast.vectors is not None:  # 6.2, line 7: x_t = argmax φ(x)ᵀω⁽ⁱ⁾, i that of x
            note = {"source": "broadcast", "round": broadcast.round}
            return replace(self.highest(view, broadcast.vectors, self.regions), note=note)
        # 5.1, line 6: an agent n ~ P_N, alike for all that are left, and x_t = argmax φ(x)ᵀωₙ
        chosen = messages[view.stream("agent", view.step).integers(len(messages))]
        note = {"source": "agent", "agent": chosen.agent, "round": chosen.round}
        everywhere = Regions((1,) * self.features.dimension)
        return replace(self.highest(view, chosen.vector[None], everywhere), note=note)

    def highest(self, view: View, vectors: Array, regions: Regions) -> Proposal:
        """Return the point of the highest φ(x)ᵀω; what others sent knows nothing of the points under way here."""
        taken = view.domain.excluding(view.blocked(sparing=True))
        if view.domain.listed:
            values = spread_table(self.features, regions, view.domain).values(self.features, vectors)
            rng = view.stream("ties", view.step)
            return Proposal(index=view.domain.maximize(lambda at: values[at], rng=rng, exclude=taken).row)
        X, y, _ = view.trials.data()
        best = X[np.argsort(-y, kind="stable")[:3]] if len(y) else None
        return Proposal(best_point(self.features, vectors, regions, view.domain, seeds=best, exclude=taken))


class RegionStart:
    """Algorithm 6.2, line 2: points drawn uniformly in one sub-region, while there are too few measurements.

    >>> RegionStart(10, Regions((2,)), 1).region
    1
    """

    def __init__(self, initial: int, regions: Regions, region: int) -> None:
        self.initial, self.regions, self.region = initial, regions, region

    def propose(self, view: View) -> Proposal | None:
        """Return the next of them; None where no free one was found."""
        if enough(view.trials, self.initial):
            return None
        rng = view.stream("initial", view.step)
        found = regional_start(view.domain, self.regions, self.region, rng, [x for x, _ in view.blocked(sparing=True)])
        return None if found is None else Proposal(found, note={"initial": True})


@experimental
class Agent(ModelPolicy):
    """One party of a federation; see the module's page.

    Parameters
    ----------
    domain : Box, Candidates or Space
        Where points may lie; the same for all parties. Shared features see its unit cube.
    features : SharedFeatures
        What all parties agreed on.
    agent : int
        This party's number on the public roster, from 0.
    schedule : Schedule
        p_t, the probability of following the own belief.
    regions : int or Regions
        The sub-regions of distributed exploration; a number cuts the domain evenly.
    region : int, optional
        The sub-region of the initial points, drawn uniformly in it (10 unless ``initial`` says otherwise). None is the
        usual design of the whole domain.
    outputs : {"standardize", "none", "rank"}
        How own values are brought to the scale of the shared model before a draw.
    reuse : {"once", "always"}
        Whether a message or broadcast serves one query, or any number of them until it is replaced.
    draw_features : int
        Random Fourier features of a draw from the own belief, where that is not exact.
    **options
        ``gp``, ``initial``, ``confidence``, ``seed``, ``repeats``, ``journal``.

    >>> from surefoot import Box
    >>> features = SharedFeatures(1, 50, lengthscale=0.2, noise=0.01, seed=0)
    >>> here = Agent(Box.unit(1), features, agent=0, schedule=Decay(1.0, first=0.0), initial=2, seed=1)
    >>> there = Agent(Box.unit(1), features, agent=1, initial=2, seed=2)
    >>> for x in (0.1, 0.5, 0.7, 0.9):
    ...     there.tell([x], -((x - 0.7) ** 2))
    >>> here.receive(there.message(0))
    True
    >>> for x in (0.2, 0.3):
    ...     here.tell([x], -((x - 0.7) ** 2))
    >>> query = here.ask()  # p₁ = 0: follows the message of agent 1
    >>> dict(query.note)
    {'source': 'agent', 'agent': 1, 'round': 0}
    """

    doubts = True

    def __init__(
        self,
        domain: Domain,
        features: SharedFeatures,
        *,
        agent: int = 0,
        schedule: Schedule | None = None,
        regions: int | Regions = 1,
        region: int | None = None,
        outputs: str = "standardize",
        reuse: str = "once",
        draw_features: int = 1024,
        **options: Unpack[ModelOptions],
    ) -> None:
        if region is not None and options.get("initial") is None:
            options["initial"] = 10
        super().__init__(domain, **options)
        own = PosteriorDraw(draw_features)
        if not jointly(domain):
            check_drawable(self.gp, domain.encoded_dimension)
        if not isinstance(features, SharedFeatures):
            raise TypeError(f"features must be SharedFeatures, got {type(features).__name__}")
        if features.dimension != domain.encoded_dimension:
            raise ValueError(
                f"the shared features are for {features.dimension} coordinates, this domain has "
                f"{domain.encoded_dimension}"
            )
        whole(agent, "agent")
        if outputs not in OUTPUTS:
            raise ValueError(f"outputs must be one of {', '.join(OUTPUTS)}, got {outputs!r}")
        if reuse not in ("once", "always"):
            raise ValueError(f"reuse must be 'once' or 'always', got {reuse!r}")
        if schedule is not None and not callable(schedule):
            raise TypeError(f"schedule must be a function of the iteration, such as Decay(), got {schedule!r}")
        self.shared, self.agent = features, int(agent)
        self.schedule: Schedule = Decay() if schedule is None else schedule
        self.regions = regions if isinstance(regions, Regions) else Regions.of(domain, regions)
        if self.regions.dimension != features.dimension:
            raise ValueError(f"regions cut {self.regions.dimension} coordinates, features have {features.dimension}")
        if region is not None and not 0 <= whole(region, "region") < self.regions.count:
            raise ValueError(f"region must lie in 0 .. {self.regions.count - 1}, got {region!r}")
        if (
            region is not None
            and domain.listed
            and not (self.regions.index(to_unit(domain, domain.enumerate())) == region).any()
        ):
            raise ValueError(f"none of the {domain.size} candidates lies in sub-region {region}")
        self.region, self.outputs, self.reuse = region, outputs, reuse
        self.features = own.features
        self._sent: dict[int, int] = {}  # measurements behind the message of each round
        self.inbox = Inbox()
        self.surrogate.rows.listed = jointly(domain)
        self.rule: Rule = FollowOthers(own, self.inbox, features, self.regions, self.schedule, once=reuse == "once")
        if region is not None:
            self.start = RegionStart(self.initial, self.regions, region)

    # -- what leaves --------------------------------------------------------------------------------------------------

    def message(self, round: int) -> Message:
        """Return this agent's message for a round (Algorithm 6.2, line 9): a draw of the weights given its data.

        Asked again for the same round it is the same draw of the same measurements, in another process too: two
        different draws for one round would tell more than one.
        """
        whole(round, "round")
        if round not in self._sent:
            count = self.trials.successes
            with uninterrupted():
                self._commit({"event": "sent", "round": int(round), "measured": count})
                self._sent[int(round)] = count
        return Message(self.agent, int(round), self.shared.hash, self._draw_message(int(round)))

    def _draw_message(self, round: int) -> Array:
        count, rng = self._sent[round], self.stream("message", round)
        X, y, _ = self.trials.data()
        phi = self.shared(to_unit(self.domain, self.domain.encode(X[:count])))
        values = transform_outputs(y[:count], self.outputs)
        prior, errors = rng.standard_normal(self.shared.count), rng.standard_normal(count)
        drawn: Array = draw_weights(phi, values, self.shared.noise, prior, errors)  # ω ~ N(ν, σ²Σ⁻¹): (5.1)
        return drawn

    # -- what comes in ------------------------------------------------------------------------------------------------

    def receive(self, sent: Broadcast | Message) -> bool:
        """Take a broadcast of the coordinator, or a message of another agent; return whether it is news.

        What was made with other features, or for other sub-regions, is refused and changes nothing.
        """
        if not isinstance(sent, (Broadcast, Message)):
            raise TypeError(f"expected a Broadcast or a Message, got {type(sent).__name__}")
        if sent.features != self.shared.hash:
            raise ValueError(
                f"this {sent.kind} was made with the features {sent.features[:12]}, "
                f"this agent uses {self.shared.hash[:12]}"
            )
        if isinstance(sent, Message):
            if sent.agent == self.agent:
                raise ValueError(f"agent {self.agent} was sent a message of its own")
            self._check_vectors(sent, sent.vector[None])
        else:
            if sent.parts != self.regions.parts:
                raise ValueError(f"this broadcast is for the sub-regions {sent.parts}, not {self.regions.parts}")
            if sent.vectors is not None:
                self._check_vectors(sent, sent.vectors)
        known = self.inbox.newest(sent)
        if known is not None and sent.round <= known.round:
            if sent.round == known.round and sent != known:
                raise ValueError(f"another {sent.kind} was received for round {sent.round} before")
            return False
        with uninterrupted():
            self._commit({"event": "received", "kind": sent.kind, **sent.to_fields()})
            self.inbox.take(sent)
        return True

    def _check_vectors(self, sent: Broadcast | Message, vectors: Array) -> None:
        if vectors.shape[1] != self.shared.count or not np.isfinite(vectors).all():
            raise ValueError(f"a {sent.kind} is {self.shared.count} finite numbers for each vector")

    def _apply(self, event: Mapping[str, Any]) -> None:
        if event.get("event") == "sent":
            self._sent[event["round"]] = event["measured"]
        elif event.get("event") == "received":
            content = {key: value for key, value in event.items() if key not in ("event", "kind", "at")}
            self.inbox.take(Message(**content) if event["kind"] == Message.kind else Broadcast(**content))
        else:
            super()._apply(event)

    @property
    def iteration(self) -> int:
        """The number t of the next query that follows the rule, from 1: initial ones do not count."""
        return iteration(self.trials)


def regional_start(
    domain: Domain, regions: Regions, region: int, rng: np.random.Generator, blocked: list[Array] | None = None
) -> Array | None:
    """Draw a point uniformly from one sub-region of a domain, shape (d,); None where no free one was found.

    >>> from surefoot import Box
    >>> bool(regional_start(Box([(0.0, 8.0)]), Regions((4,)), 1, np.random.default_rng(0))[0] // 2 == 1)
    True
    """
    taken = {x.tobytes() for x in blocked or []}
    for _ in range(TRIES):
        X = domain.sample(16 * regions.count, rng)
        inside = regions.index(to_unit(domain, domain.encode(X))) == region
        for x in X[inside]:
            if x.tobytes() not in taken:
                return np.asarray(x)
    return None
