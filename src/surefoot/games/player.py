"""R2-B2: a player that models how the others choose, and answers one level higher.

Question: what to play in a repeated game with unknown, expensive, noisy payoffs, against others who learn as well?

Each payoff has a Gaussian process over the joint actions, and an upper confidence bound α (8.2). Level 0 draws from a
mixed strategy (random search, EXP3, GP-MW, or any method); level 1 maximizes the expectation of α over the level-0
strategies of the others (8.3); level k ≥ 2 simulates the others at level k − 1 and answers that (8.4)-(8.7). R2-B2-Lite
(``lite=True``) draws once where level 1 takes an expectation (8.8).

Reference: Dai, Chen, Low, Jaillet & Ho 2020, "R2-B2: recursive reasoning-based Bayesian optimization for no-regret
learning in games", Algorithm 1; numbers are those of chapter 8, Algorithm 8.1, and appendix E of Dai's thesis (2021).

Guarantee: with the width ``Finite(1 − δ)`` and the true prior, level k ≥ 2 against level k − 1 has external regret at
most √(C₁ T β_T γ_T) with probability 1 − δ (theorem 8.3), and level 1 against level 0 in expectation (theorem 8.2),
C₁ = 8/log(1 + σ⁻²). Both need the belief about the others to be right.

Authors' options: β_t = 0.5 d log 2t with d the joint dimension (:class:`~surefoot.loop.widths.Logarithmic`, also the
default here), exact expectations in synthetic games, 500 or 1000 draws elsewhere.

Differences: the printed width uses the number of own actions only (:class:`PublishedWidth`), which does not cover the
joint actions; ``Finite`` here counts all of them. Repeated joint actions are kept, not overwritten. Ties, searches and
fits are drawn from ``common``, which all players share, so that a simulated player does what the real one does; draws
from level-0 strategies are each player's own unless ``share_samples``.

Cost of one ask: O(n M) for each payoff in question on M joint actions (incremental); elsewhere a batched search over
the own actions with ``samples`` predictions for each.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self, Unpack

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from surefoot.arguments import whole
from surefoot.belief.gp import GP
from surefoot.domain import Box, Candidates, Domain, Space
from surefoot.errors import NotSupported
from surefoot.experimental import experimental
from surefoot.games.hedge import GPMW
from surefoot.games.mind import Log, Mind, Pool
from surefoot.games.payoffs import ExpectedScore, JointActions, PayoffBelief
from surefoot.games.reasoning import Profile
from surefoot.games.rounds import Round
from surefoot.games.strategies import RandomStrategy, Strategy, Tracker
from surefoot.loop.durable import uninterrupted
from surefoot.loop.options import Options, check_domain
from surefoot.loop.policy import OMITTED, Point, Policy, Proposal
from surefoot.loop.state import storable
from surefoot.loop.streams import stream
from surefoot.loop.types import Observation, Outcome, Query, Recommendation
from surefoot.loop.widths import Logarithmic, Width

__all__ = ["Player", "PublishedWidth"]

Array = NDArray[np.float64]


@storable
@dataclass(frozen=True)
class PublishedWidth:
    """The printed width of the theorems: β_t = 2 log(|X| t² π² / 3δ) with the number of *own* actions |X|.

    It covers the payoffs against what the others really do, not all joint actions.

    >>> round(PublishedWidth(100)(1), 3)
    4.025
    """

    actions: int
    confidence: float = 0.9

    def __post_init__(self) -> None:
        if not (self.actions >= 1 and 0.0 < self.confidence < 1.0):
            raise ValueError(f"need actions >= 1 and 0 < confidence < 1, got {self.actions!r}, {self.confidence!r}")

    def __call__(self, step: int, *, size: int | None = None, dimension: int | None = None, gain: float = 0.0) -> float:
        # β_t of Theorem 8.1
        return math.sqrt(2.0 * math.log(self.actions * step**2 * math.pi**2 / (3.0 * (1.0 - self.confidence))))

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-able description."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Rebuild the width from :meth:`to_dict`."""
        return cls(**data)


@experimental
class Player(Policy):
    """One player of a repeated game.

    ``ask()`` gives the own action; ``tell(query, Round(actions, payoffs))`` says what everybody did and got. A round
    that was only watched is told without a query: ``tell(round)``. It informs the beliefs and moves no strategy.

    Parameters
    ----------
    domain : Box, Candidates or Space
        The own actions.
    others : sequence of Domain
        The actions of the other players, in the order of their seats.
    position : int
        The own seat.
    level : int
        How far the player reasons; see the module's page.
    profile : sequence, optional
        The level each of the others is assumed to have, by seat, None for the own one; see
        :class:`~surefoot.games.Profile`. Needed from level 2 on among three or more players.
    strategies : Strategy or sequence of Strategy, optional
        The level-0 strategy of every seat, as this player believes them to be; its own is the one it draws from. None:
        GP-MW on candidates, else random.
    gp : GP or sequence of GP, optional
        Prior of each payoff over the joint actions, the encoded actions of all seats side by side. One for all, or one
        for each seat. None: fitted automatically.
    initial : int, optional
        Random own actions before reasoning begins; watched rounds count. 0 with a given ``gp``, else
        max(3, own dimension + 1).
    width : width, optional
        Standard deviations in the upper bounds; None: √(0.5 d log 2t).
    samples : int, optional
        Draws in the place of an expectation; None: exact where that is possible, else 500.
    lite : bool
        The same as ``samples=1``.
    share_samples : bool
        Take these draws from ``common``: everybody who reasons about a strategy sees the same.
    predictive : bool
        Bounds of a further noisy payoff, as in the authors' code, in the place of bounds of its mean.
    common : int
        Seed of what all players draw alike.
    confidence : float
        Of the bounds that :meth:`recommend` reports.
    **options
        ``seed``, ``journal``. Payoffs are gains: there is no ``direction="minimize"``.

    >>> from surefoot.games import Player, RandomStrategy, Round
    >>> prices = Candidates([1.0, 2.0, 3.0])
    >>> player = Player(prices, others=[prices], level=1, strategies=RandomStrategy(), seed=0)
    >>> for rival in (2.0, 3.0, 1.0, 2.0, 3.0):
    ...     query = player.ask()
    ...     profit = float(query.x[0] * (4.0 - query.x[0] + 0.5 * rival))
    ...     player.tell(query, Round([query.x, [rival]], [profit, None]))
    >>> player.recommend().x
    array([3.])
    """

    domains = (Box, Candidates, Space)
    parallel = False

    def __init__(
        self,
        domain: Domain,
        *,
        others: Sequence[Domain],
        position: int = 0,
        level: int = 1,
        profile: Sequence[Any] | None = None,
        strategies: Strategy | Sequence[Strategy] | None = None,
        gp: GP | Sequence[GP | None] | None = None,
        initial: int | None = None,
        width: Width | None = None,
        samples: int | None = None,
        lite: bool = False,
        share_samples: bool = False,
        predictive: bool = False,
        common: int = 0,
        confidence: float = 0.95,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(domain, **options)
        self.trials.held = self._held
        if self.direction == "minimize":
            raise NotSupported("payoffs are gains: to play for losses, tell a player the negated ones")
        if not self.repeats:
            raise NotSupported("a player may have to do the same again: repeats=False cannot be promised")
        if not isinstance(position, (int, np.integer)) or not 0 <= position <= len(others) or not len(others):
            raise ValueError(
                f"position must be a seat among {len(others) + 1} players (at least two), got {position!r}"
            )
        for other in others:
            check_domain(other, self.domains, type(self).__name__)
        for name, value, least in (("samples", samples, 1), ("initial", initial, 0), ("common", common, 0)):
            if value is not None or name == "common":
                whole(value, name, least)
        if lite and samples not in (None, 1):
            raise ValueError(f"lite means one sample, got samples={samples!r}")
        if not 0.0 < confidence < 1.0:
            raise ValueError(f"confidence must lie strictly between 0 and 1, got {confidence!r}")
        if width is not None and not callable(width):
            raise TypeError(f"width must be callable, for example widths.Constant(2.0); got {width!r}")
        spaces = [*others[:position], domain, *others[position:]]
        self.position, self.players = position, len(spaces)
        self.joint = JointActions(spaces)
        self.profile = Profile.read(position, level, self.players, profile)
        self.level = self.profile.level
        self.strategies = _each(strategies, self.players, Strategy, "strategies", _default_strategy(spaces))
        automatic = [self.joint.automatic()] * self.players
        self.gps = _each(gp, self.players, GP, "gp", automatic)
        self.initial = int(initial) if initial is not None else (0 if gp is not None else max(3, domain.dimension + 1))
        self.width: Width = Logarithmic(0.5) if width is None else width
        self.samples = 1 if lite else samples
        self.share_samples, self.predictive, self.common = share_samples, predictive, common
        self.confidence = confidence
        self._rounds: list[Round | None] = []  # one for each observation, None for a failed one
        self._log = Log(self.joint)
        self._pool: Pool = {}
        self._stored_fits: dict[int, dict[int, GP]] = {}
        self._needs = self._requirements()
        self._forget()

    # -- what it needs to know ---------------------------------------------------------------------------------------

    def _requirements(self) -> dict[int, str]:
        """Seats whose payoffs must be told, and why."""
        needs: dict[int, str] = {}
        for part in self.profile.walk():
            strategy, seat = self.strategies[part.seat], part.seat
            if part.level == 0 and strategy.payoffs:
                needs.setdefault(seat, f"for its level-0 strategy {type(strategy).__name__}")
            elif part.level > 0:
                needs.setdefault(seat, "to know what it wants")
        return needs

    @property
    def needs(self) -> dict[str, list[int]]:
        """Which seats' level-0 strategies, payoffs and beliefs this player must know.

        >>> from surefoot.games import Player, RandomStrategy
        >>> grid = Candidates([0.0, 1.0])
        >>> Player(grid, others=[grid], level=1, strategies=RandomStrategy()).needs
        {'strategies': [1], 'payoffs': [0], 'beliefs': [0]}
        >>> Player(grid, others=[grid], level=2).needs
        {'strategies': [0], 'payoffs': [0, 1], 'beliefs': [0, 1]}
        """
        mind = self._mind
        return {"strategies": mind.tracked, "payoffs": sorted(self._needs), "beliefs": mind.beliefs}

    # -- asking and telling ------------------------------------------------------------------------------------------

    def ask(self, n: int | None = None, **context: Any) -> Any:
        staged = self._catch_up().staged
        try:
            return super().ask(n, **context)
        except BaseException:
            if self._mind.staged != staged:
                self._forget()  # what an ask that was never made has learnt
            raise

    def tell(self, query: Query | int | Point | Round, value: Any = OMITTED, *, by: str | None = None) -> None:
        """Tell the round that was played: with its query, with an own action, or alone if it was only watched.

        None, NaN or ``FAILED`` in the place of a round, or a round without the own payoff, says that it failed.
        """
        if watched := isinstance(query, Round):
            if value is not OMITTED:
                raise TypeError("tell a watched round alone, or a query with its round")
            own = query.actions[self.position] if len(query.actions) == self.players else self.domain.lower
            query, value = own, query
        known = self._find(query) if isinstance(query, (Query, int, np.integer)) else None
        if known is None:
            x = self.domain.validate(query)
            known = self.trials.waiting_at(x) if not watched else None
        else:
            x = known.x
        if value is OMITTED:
            raise ValueError(f"{'a point' if known is None else f'query {known.id}'} needs a value: the Round played")
        done = self._checked(value, x)
        if known is not None and known.id in self._told:
            before = next(r for o, r in zip(self._observations, self._rounds, strict=True) if o.id == known.id)
            if before != done:
                raise ValueError(f"query {known.id} was already told {before}, not {done}")
            return
        event: dict[str, Any] = {"event": "told", **({"x": x.tolist()} if known is None else {"id": known.id})}
        event["value"] = None if done is None else done.payoffs[self.position]
        event.update({} if done is None else done.to_dict())
        event.update({} if by is None else {"by": by})
        with uninterrupted():
            self._commit(event)
            self._apply(event)

    def _checked(self, value: Any, x: Array) -> Round | None:
        """The round, None if it failed; refused before anything changes."""
        if value is None or (isinstance(value, Outcome) and value.failed):
            return None
        if isinstance(value, float) and math.isnan(value):
            return None
        if not isinstance(value, Round):
            raise TypeError(f"a player is told a Round(actions, payoffs), or None for a failed one; got {value!r}")
        if len(value.actions) != self.players:
            raise ValueError(f"this game has {self.players} players, the round {len(value.actions)}")
        for seat, (space, action) in enumerate(zip(self.joint.spaces, value.actions, strict=True)):
            if action.shape != (space.dimension,) or not space.contains(action[None])[0]:
                raise ValueError(f"the action of player {seat}, {action.tolist()}, does not belong to {space!r}")
        if not np.array_equal(value.actions[self.position], x):
            raise ValueError(f"the round says {value.actions[self.position].tolist()} for the own action {x.tolist()}")
        if value.payoffs[self.position] is None:
            return None
        for seat, why in self._needs.items():
            if value.payoffs[seat] is None:
                raise ValueError(
                    f"level {self.level} here needs the payoff of player {seat} ({why}), which this round lacks"
                )
        return value

    def _apply(self, event: Mapping[str, Any]) -> None:
        super()._apply(event)
        if event["event"] == "told":
            done = Round.from_dict(event) if event["value"] is not None else None
            self._rounds.append(done)
            if done is not None:
                id = event.get("id")
                self._log.add(done, played=id is not None and "initial" not in self._queries[id].note)

    def _held(self) -> list[Observation]:
        """Those since the last good round: a round that failed is nobody's fault for long."""
        trailing: list[Observation] = []
        for observation in reversed(self._observations):
            if not observation.failed:
                break
            trailing.append(observation)
        return trailing

    def _failed(self) -> Array:
        """The actions that must not be played now, shape (k, d)."""
        return np.array([x for x, _ in self._blocked()], dtype=np.float64).reshape(-1, self.domain.dimension)

    # -- choosing ----------------------------------------------------------------------------------------------------

    def _choose(self, step: int, context: Mapping[str, Any]) -> Proposal:
        known = len(self._observations) + len(self._pending)
        if known < self.initial or (self.initial > 0 and not self._log.rounds):
            return Proposal(self._fresh(self.domain.sample(64, self.stream("initial", step))), note={"initial": True})
        thought = self._mind.think(len(self._log.rounds), step)  # Algorithm 8.1, line 4, of the rounds so far
        if self.level == 0:  # line 2: x⁰ ~ P⁰
            return Proposal(self._drawn(step), note={"level": 0})
        others = thought.expected(self.profile)  # (8.5), (8.7)
        x = thought.respond(self.position, others, self._failed())  # line 2: (8.3), (8.4), (8.6) or (8.8)
        assumed = {str(j): other.tolist() for j, other in others.items() if not isinstance(other, Tracker)}
        return Proposal(x, note={"level": self.level, **({"assumed": assumed} if assumed else {})})

    def _drawn(self, step: int) -> Array:
        """A draw from the own level-0 strategy, not of an action that just failed where that can be helped."""
        tracker, rng = self._mind.trackers[self.position], self.stream("play", step)
        blocked = self._failed()
        if len(blocked) and tracker.points is not None and tracker.probabilities is not None:
            free = ~(tracker.points[:, None] == blocked).all(axis=2).any(axis=1)
            chance = tracker.probabilities * free
            if chance.sum() > 0:
                row = int(rng.choice(len(chance), p=chance / chance.sum()))
                return np.asarray(tracker.points[row])
        return self._fresh(tracker.draw(64 if len(blocked) else 1, rng))

    def _fresh(self, X: Array) -> Array:
        """The first of some actions that did not just fail, else the first."""
        blocked = self._failed()
        free = ~(X[:, None] == blocked).all(axis=2).any(axis=1)
        return np.asarray(X[int(free.argmax())])

    # -- believing ---------------------------------------------------------------------------------------------------

    def _forget(self) -> None:
        """Drop what is derived; it is derived again from the events."""
        self._scanned = self._told_good = 0
        self._mind = Mind(
            self._log,
            self.profile,
            self.strategies,
            self.gps,
            self.width,
            draws=self._draws,
            samples=self.samples,
            predictive=self.predictive,
            common=self.common,
            pool=self._pool,
        )

    def _draws(self, purpose: str, seat: int, n: int, step: int) -> np.random.Generator:
        """What everybody draws alike is named by the number of rounds, what is the player's own by its query."""
        if purpose == "samples" and not self.share_samples:
            return self.stream(f"samples {seat}", step)
        return stream(self.common, f"{purpose} {seat}", n)

    def _catch_up(self) -> Mind:
        """Go through the events since the last time: at every ask by reasoning, think as then."""
        for seat, fits in self._stored_fits.items():
            self._mind.belief(seat).fits.update(fits)
        self._stored_fits = {}
        for event in self._events[self._scanned :]:
            if event["event"] == "told":
                self._told_good += event["value"] is not None
            by_reasoning = event["event"] == "asked" and "initial" not in event.get("note", {})
            if by_reasoning and self._told_good != self._mind.staged:
                self._mind.replay(self._told_good, event["id"])
        self._scanned = len(self._events)
        return self._mind

    def strategy(self, seat: int) -> Tracker:
        """Return the level-0 strategy of a seat as it was at the last ask; only for those this player follows.

        >>> grid = Candidates([0.0, 1.0])
        >>> Player(grid, others=[grid], level=1, seed=0).strategy(1).probabilities
        array([0.5, 0.5])
        """
        trackers = self._catch_up().trackers
        if seat not in trackers:
            raise ValueError(f"level {self.level} follows the strategies of {sorted(trackers)}, not of {seat!r}")
        return trackers[seat]

    def _join(self, pool: Pool) -> None:
        """Share beliefs with the other players of a game: each is a function of the rounds, and checked to be so."""
        for key, belief in self._pool.items():
            pool.setdefault(key, belief)
        self._pool = self._mind.pool = pool

    # -- answering ---------------------------------------------------------------------------------------------------

    def _recommend(self) -> Recommendation:
        """The best fixed action against what the others did so far, by posterior mean: x* of eq. (8.1)."""
        mind, seat = self._catch_up(), self.position
        X, y = self._log.data(seat, len(self._log.rounds))
        columns, at = self.joint.columns[seat], mind.fit_due(seat, len(y))
        looking = PayoffBelief(self.joint, self.gps[seat], seat, self.common)  # a fit made here is not kept
        looking.fits.update(mind.belief(seat).fits)
        posterior = looking.fitted(X, y, at).condition(X, y)
        score = ExpectedScore(posterior, 0.0, columns, X, np.full(len(X), 1.0 / len(X)))
        mine = np.array([done.actions[seat] for done in self._log.rounds])
        among = self.domain.enumerate() if self.domain.listed else mine
        x = among[int(np.argmax(score(self.domain.encode(among))))]
        X[:, columns] = self.domain.encode(x[None])
        mean, std = posterior.predict(X)
        center, half = float(mean.mean()), float(ndtri(0.5 + 0.5 * self.confidence) * std.mean())
        rule = "best fixed action in hindsight by posterior mean"
        return self._recommendation(x, mean=center, lower=center - half, upper=center + half, rule=rule)

    def _cache(self) -> dict[str, Any]:
        mind = self._catch_up()
        fits = {str(seat): mind.fits(seat) for seat in mind.beliefs}
        return {"fits": {seat: [[at, gp.to_dict()] for at, gp in made.items()] for seat, made in fits.items() if made}}

    def _restore(self, cache: dict[str, Any]) -> None:
        self._stored_fits = {
            int(seat): {int(at): GP.from_dict(data) for at, data in made}
            for seat, made in cache.get("fits", {}).items()
        }


def _default_strategy(spaces: Sequence[Domain]) -> list[Strategy]:
    return [GPMW() if space.listed else RandomStrategy() for space in spaces]


def _each(given: Any, players: int, kind: type, name: str, default: Sequence[Any]) -> list[Any]:
    """One for each seat, from one for all, from one for each, or from the default."""
    entries = [given] * players if given is None or isinstance(given, kind) else list(given)
    if len(entries) != players:
        raise ValueError(f"{name} must be one, or one for each of {players} players, got {len(entries)}")
    for entry in entries:
        if entry is not None and not isinstance(entry, kind):
            raise TypeError(f"{name} must hold {kind.__name__} objects, got {entry!r}")
    return [default[i] if entry is None else entry for i, entry in enumerate(entries)]
