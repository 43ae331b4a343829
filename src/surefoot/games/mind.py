"""What a player derives from the rounds of a game: beliefs about payoffs, and where the level-0 strategies stand.

All of it follows from the configuration and the events. :class:`Mind` is brought up to date at every ask by reasoning,
and a rebuilt player goes through the same asks again, so that its beliefs are factorized where those of the live one
were, and its strategies have seen the same bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from surefoot.belief.gp import GP
from surefoot.games.payoffs import JointActions, PayoffBelief
from surefoot.games.reasoning import Profile, Reasoner
from surefoot.games.rounds import Round
from surefoot.games.strategies import Strategy, Tracker
from surefoot.loop.widths import Width

__all__ = ["Log", "Mind", "Pool"]

Array = NDArray[np.float64]
Pool = dict[tuple[int, int, str], PayoffBelief]
Draws = Callable[[str, int, int, int], np.random.Generator]

RECENT = 64  # played actions among which a search for the best response looks for places to start


@dataclass
class Log:
    """The rounds that were seen whole.

    Attributes
    ----------
    rounds : list of Round
    played : list of bool
        Whether the player chose its action in it, rather than watching or exploring at the start.

    >>> from surefoot.domain import Candidates
    >>> log = Log(JointActions([Candidates([0.0, 1.0]), Candidates([0.0, 1.0])]))
    >>> log.add(Round([[0.0], [1.0]], [0.5, None]), played=True)
    >>> log.data(0, 1), log.data(1, 1)[1]
    ((array([[0., 1.]]), array([0.5])), array([], dtype=float64))
    """

    joint: JointActions
    rounds: list[Round] = field(default_factory=list)
    played: list[bool] = field(default_factory=list)
    points: list[Array] = field(default_factory=list)

    def add(self, done: Round, *, played: bool) -> None:
        """Remember a round."""
        self.rounds.append(done)
        self.played.append(played)
        self.points.append(self.joint.encode(done.actions))

    def data(self, seat: int, n: int) -> tuple[Array, Array]:
        """Return joint points (m, e) and payoffs (m,) of a seat, where they were seen among the first n rounds."""
        payoffs = [done.payoffs[seat] for done in self.rounds[:n]]
        known = [i for i, payoff in enumerate(payoffs) if payoff is not None]
        X = np.array([self.points[i] for i in known]).reshape(len(known), self.joint.dimension)
        return X, np.array([payoffs[i] for i in known], dtype=np.float64)


class Mind:
    """Beliefs and strategies of one player, up to some round.

    Parameters
    ----------
    log : Log
        The rounds; read only.
    profile : Profile
        The player's level, and what it believes about the others.
    strategies, gps : sequence
        Of every seat.
    width : Width
        Standard deviations in the upper bounds.
    samples, predictive
        As for :class:`~surefoot.games.reasoning.Reasoner`.
    common : int
        Seed of the fits.
    pool : dict
        Beliefs that may be shared with other players.
    draws : callable
        ``draws(purpose, seat, n, step)`` gives a generator.

    >>> from surefoot import Candidates, widths
    >>> from surefoot.games import GPMW
    >>> grid = Candidates([0.0, 1.0])
    >>> mind = Mind(Log(JointActions([grid, grid])), Profile.read(0, 1, 2), [GPMW()] * 2, [GP()] * 2,
    ...             widths.Constant(1.0), draws=lambda *key: np.random.default_rng(0))
    >>> mind.beliefs, mind.tracked
    ([0, 1], [1])
    """

    def __init__(
        self,
        log: Log,
        profile: Profile,
        strategies: Sequence[Strategy],
        gps: Sequence[GP],
        width: Width,
        *,
        draws: Draws,
        samples: int | None = None,
        predictive: bool = False,
        common: int = 0,
        pool: Pool | None = None,
    ) -> None:
        self.log, self.profile, self.gps, self.width, self.common = log, profile, gps, width, common
        self.draws, self.samples, self.predictive = draws, samples, predictive
        self.pool: Pool = {} if pool is None else pool
        parts = list(profile.walk())
        self.tracked = sorted({part.seat for part in parts if part.level == 0})
        believed = {part.seat for part in parts if part.level > 0}
        self.beliefs = sorted(believed | {seat for seat in self.tracked if strategies[seat].beliefs})
        self.remembering = {seat: strategies[seat].beliefs for seat in self.tracked}
        # Strategies of players who are believed to reason are followed as if they were played; see EXP3.
        levels = {profile.seat: profile.level} | {seat: other.level for seat, other in profile.others.items()}
        self.hypothetical = {seat: levels.get(seat, 0) != 0 for seat in self.tracked}
        spaces = log.joint.spaces
        self.trackers: dict[int, Tracker] = {seat: strategies[seat].begin(spaces[seat], seat) for seat in self.tracked}
        self.fit_at: dict[int, int | None] = dict.fromkeys(self.beliefs)
        self.seen = 0  # rounds that beliefs and strategies know
        self.staged = -1  # rounds at the last ask

    def belief(self, seat: int) -> PayoffBelief:
        """Return the belief about the payoff of a seat."""
        key = (seat, self.common, str(self.gps[seat].to_dict()))
        if key not in self.pool:
            self.pool[key] = PayoffBelief(self.log.joint, self.gps[seat], seat, self.common)
        return self.pool[key]

    def fit_due(self, seat: int, count: int) -> int | None:
        """Return the number of payoffs of the fit to use when so many are known."""
        last = self.fit_at.get(seat)
        return count if self.gps[seat].due(count, last) else last

    def think(self, n: int, step: int) -> Reasoner:
        """Bring beliefs, and then strategies, up to the first n rounds; twice for the same n changes nothing."""
        held: dict[int, PayoffBelief] = {}
        for seat in self.beliefs:
            X, y = self.log.data(seat, n)
            self.fit_at[seat] = self.fit_due(seat, len(y))
            held[seat] = self.belief(seat)
            held[seat].given(X, y, self.fit_at[seat])
        thought = self._reasoner(held, n, step)
        self._advance(n, thought)
        return thought

    def replay(self, n: int, step: int) -> None:
        """Think as at an ask that was made before; only strategies that remember beliefs need them again."""
        if any(self.remembering.values()):
            self.think(n, step)
            return
        for seat in self.beliefs:
            self.fit_at[seat] = self.fit_due(seat, len(self.log.data(seat, n)[1]))
        self._advance(n, None)

    def fits(self, seat: int) -> dict[int, GP]:
        """Return the fits that a rebuilt player would have to make again, by the number of payoffs."""
        made = self.belief(seat).fits
        return (
            made if any(self.remembering.values()) else {at: gp for at, gp in made.items() if at == self.fit_at[seat]}
        )

    def _advance(self, n: int, thought: Reasoner | None) -> None:
        for number in range(self.seen, n):
            if self.log.played[number]:  # every strategy moves, whoever plays it: (8.3) and (8.5) refer to it
                done = self.log.rounds[number]
                for seat, tracker in self.trackers.items():
                    asked = thought if self.remembering[seat] else None
                    tracker.advance(done, _optimism(asked, seat, done), hypothetical=self.hypothetical[seat])
        self.seen = self.staged = n

    def _reasoner(self, held: Mapping[int, PayoffBelief], n: int, step: int) -> Reasoner:
        joint = self.log.joint
        width = self.width(sum(self.log.played[:n]) + 1, size=joint.size, dimension=joint.dimension)
        recent = self.log.rounds[max(0, n - RECENT) : n]
        return Reasoner(
            joint,
            held,
            self.trackers,
            width,
            lambda purpose, seat: self.draws(purpose, seat, n, step),
            self.samples,
            predictive=self.predictive,
            played={seat: np.array([done.actions[seat] for done in recent]) for seat in self.beliefs if recent},
        )


def _optimism(thought: Reasoner | None, seat: int, done: Round) -> Callable[[Array], Array]:
    """Upper bounds of the payoff of a seat at its actions, the others doing what they did."""

    def bounds(X: Array) -> Array:
        if thought is None:
            raise TypeError("a strategy that asks for bounds must declare it: beliefs = True")
        others = {j: action for j, action in enumerate(done.actions) if j != seat}
        if thought.joint.table:
            return thought.values(seat, others)
        return thought.score(seat, others)(thought.joint.spaces[seat].encode(X))

    return bounds
