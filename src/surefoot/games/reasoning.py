"""Recursive reasoning: what a player of a level does, given what it believes about the others.

    act(i, 0) is drawn from the level-0 strategy of i,
    act(i, 1) = argmax over x_i of the expectation of α_i(x_i, ·) over the level-0 strategies of the others,  (8.3)
    act(i, k) = argmax over x_i of α_i(x_i, act(j, k − 1)),                                                   (8.4)

with α_i the upper confidence bound of the payoff of i. With more than two players a level-2 player must know the level
of every other one, those at level 0 staying random in the expectation (E.3); above that it must also know what they
believe: a :class:`Profile` says it. R2-B2-Lite puts one draw in the place of the expectation (8.8).

Reference: Dai, Chen, Low, Jaillet & Ho 2020, "R2-B2: recursive reasoning-based Bayesian optimization for no-regret
learning in games". Numbers are those of Dai's thesis (2021), chapter 8 and appendix E.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot.domain.ranking import argmax
from surefoot.domain.search import maximize
from surefoot.games.payoffs import ExpectedScore, JointActions, PayoffBelief
from surefoot.games.strategies import Tracker

__all__ = ["Profile", "Reasoner"]

Array = NDArray[np.float64]

ENUMERATED = 512  # an expectation over so many joint actions of the others is a sum, not an average of draws


@dataclass(frozen=True)
class Profile:
    """The level of a player, and what it believes about the others.

    Parameters
    ----------
    seat, level : int
        Who, and how far it reasons.
    others : mapping from seat to Profile
        What it believes about each of the others; empty at level 0.

    >>> print(Profile.read(0, 2, 2))
    2(1(0))
    >>> print(Profile.read(0, 2, 3, [None, 1, 0]))
    2(1(0, 0), 0)
    """

    seat: int
    level: int
    others: Mapping[int, Profile] = field(default_factory=dict)

    @classmethod
    def read(cls, seat: int, level: int, players: int, assumed: Sequence[Any] | None = None) -> Profile:
        """Return the profile that a level and a list of assumed levels mean.

        ``assumed`` has one entry for each seat, that of the player itself being None: a level, or a pair of a level and
        the list that this player assumes in turn. Without a list, a level-1 player believes all others to be at level
        0, and of two players the other to be one level lower.
        """
        if not isinstance(level, (int, np.integer)) or isinstance(level, bool) or level < 0:
            raise ValueError(f"a level is a whole number from 0 on, got {level!r}")
        rest = [j for j in range(players) if j != seat]
        if level == 0:
            return cls(seat, 0)
        if assumed is None:
            if level > 1 and players > 2:
                raise ValueError(
                    f"level {level} among {players} players needs profile=: the level that each of the others is "
                    "assumed to have, for example [None, 1, 0]"
                )
            return cls(seat, int(level), {j: cls.read(j, level - 1, players) for j in rest})
        if len(assumed) != players or assumed[seat] is not None:
            raise ValueError(
                f"a profile has one entry for each of {players} players, None for player {seat}; got {assumed!r}"
            )
        others = {}
        for j in rest:
            given = assumed[j]
            nested = isinstance(given, (list, tuple))
            if nested and len(given) != 2:
                raise ValueError(f"an entry of a profile is a level, or a level and a profile; got {given!r}")
            others[j] = cls.read(j, *([given[0], players, given[1]] if nested else [given, players]))
            if others[j].level >= level:
                raise ValueError(f"a player of level {level} answers lower levels only, not {others[j].level}")
        return cls(seat, int(level), others)

    def walk(self) -> Iterator[Profile]:
        """Return this profile and all inside it."""
        yield self
        for other in self.others.values():
            yield from other.walk()

    def __str__(self) -> str:
        inside = f"({', '.join(map(str, self.others.values()))})" if self.others else ""
        return f"{self.level}{inside}"


@dataclass
class Reasoner:
    """The beliefs and strategies of one moment, and the actions that follow from them.

    Parameters
    ----------
    joint : JointActions
        All action spaces.
    beliefs : mapping from seat to PayoffBelief
        Up to date.
    trackers : mapping from seat to Tracker
        The level-0 strategies as they are now.
    width : float
        Standard deviations in the upper bounds.
    samples : int, optional
        Draws in the place of an expectation; None: exact on tables and for few joint actions, else 500 draws.
    draws : callable
        ``draws(purpose, seat)`` gives a generator.
    predictive : bool
        Whether bounds are those of a further noisy payoff.
    played : mapping from seat to array of shape (n, d)
        Actions so far: where a search for the best response also starts.

    >>> from surefoot.belief.gp import GP
    >>> from surefoot.domain import Candidates
    >>> from surefoot.games import RandomStrategy
    >>> spaces = [Candidates([0.0, 0.5, 1.0]), Candidates([0.0, 1.0])]
    >>> joint = JointActions(spaces)
    >>> belief = PayoffBelief(joint, GP(noise=1e-4), 0)
    >>> _ = belief.given(np.array([[0.0, 0.0], [0.5, 1.0]]), [-1.0, 1.0])
    >>> trackers = {1: RandomStrategy().begin(spaces[1], 1)}
    >>> thought = Reasoner(joint, {0: belief}, trackers, 0.0, lambda purpose, seat: np.random.default_rng(0))
    >>> thought.act(Profile.read(0, 1, 2))
    array([1.])
    """

    joint: JointActions
    beliefs: Mapping[int, PayoffBelief]
    trackers: Mapping[int, Tracker]
    width: float
    draws: Callable[[str, int], np.random.Generator]
    samples: int | None = None
    predictive: bool = False
    played: Mapping[int, Array] = field(default_factory=dict)

    def act(self, profile: Profile, exclude: Array | None = None) -> Array:
        """Return the action of a player of level 1 or higher, shape (d,); ``exclude`` (k, d) is not to be played."""
        return self.respond(profile.seat, self.expected(profile), exclude)

    def expected(self, profile: Profile) -> dict[int, Array | Tracker]:
        """Return what the others are expected to do: an action, or a strategy where they are at level 0."""
        return {
            j: self.trackers[j] if other.level == 0 else self.act(other)  # (8.5)-(8.7): simulate whoever reasons
            for j, other in profile.others.items()
        }

    def respond(self, seat: int, others: Mapping[int, Array | Tracker], exclude: Array | None = None) -> Array:
        """Return the action that is best on average against what the others do."""
        space = self.joint.spaces[seat]
        taken = np.empty((0, space.dimension)) if exclude is None else exclude
        if self.joint.table:
            mask = np.zeros(self.joint.shape[seat], dtype=bool)
            mask[space.address(taken) if len(taken) else []] = True
            free = None if mask.all() else mask
            row = argmax(self.values(seat, others), rng=self.draws("ties", seat), exclude=free)  # (8.3), (8.4), (8.6)
            return np.asarray(space.enumerate()[row])
        score = self.score(seat, others)
        seeds = self.played.get(seat)
        if seeds is not None and len(seeds):
            seeds = seeds[np.argsort(-score(space.encode(seeds)), kind="stable")[:3]]
        x, _ = maximize(score, space, rng=self.draws("maximize", seat), seeds=seeds, exclude=taken)
        return x

    def values(self, seat: int, others: Mapping[int, Array | Tracker]) -> Array:
        """Return the expected upper bound of every own action on a table, shape (n,)."""
        alpha = self.beliefs[seat].upper(self.width, predictive=self.predictive)  # (8.2)
        mixed = {j: other for j, other in others.items() if isinstance(other, Tracker)}
        sampled = mixed if self.samples is not None or any(t.probabilities is None for t in mixed.values()) else {}
        rows = {j: self._rows(j, tracker) for j, tracker in sampled.items()}
        for j in sorted(set(others) - set(rows), reverse=True):  # the last axes first: the others keep their places
            other = others[j]
            if isinstance(other, Tracker):
                alpha = np.tensordot(alpha, self._chances(j, other), axes=(j, 0))  # E over x_j ~ P⁰_j: (8.3)
            else:
                alpha = np.take(alpha, self.joint.index(j, other), axis=j)  # x_j = act(j, k − 1): (8.4), (8.6)
            seat, rows = seat - (j < seat), {i - (j < i): chosen for i, chosen in rows.items()}
        alpha = np.moveaxis(alpha, seat, 0)
        if not rows:
            return alpha
        # One draw of everybody at a time: independent players, the same draws for all own actions (8.3), (E.1).
        cells: tuple[Any, ...] = (slice(None), *(rows[i] for i in sorted(rows)))
        averages: Array = alpha[cells].mean(axis=1)
        return averages

    def score(self, seat: int, others: Mapping[int, Array | Tracker]) -> ExpectedScore:
        """Return the expected upper bound as a function of own actions that are not in a table."""
        points, weights = self._support(others)
        Z = np.zeros((len(weights), self.joint.dimension))
        for j, X in points.items():
            Z[:, self.joint.columns[j]] = self.joint.spaces[j].encode(X)
        posterior = self.beliefs[seat].posterior()
        extra = posterior.gp.noise if self.predictive else 0.0
        return ExpectedScore(posterior, self.width, self.joint.columns[seat], Z, weights, extra)

    def _support(self, others: Mapping[int, Array | Tracker]) -> tuple[dict[int, Array], Array]:
        """Joint actions of the others, by seat (s, d_j), and their probabilities (s,)."""
        mixed = {j: other for j, other in others.items() if isinstance(other, Tracker)}
        fixed = {j: other[None] for j, other in others.items() if not isinstance(other, Tracker)}
        if not mixed:
            return fixed, np.ones(1)
        lists = {j: (t.points, t.probabilities) for j, t in mixed.items()}
        known = {j: (X, p) for j, (X, p) in lists.items() if X is not None and p is not None}
        few = len(known) == len(mixed) and math.prod(len(p) for _, p in known.values()) <= ENUMERATED
        if self.samples is None and few:
            cells = np.indices([len(p) for _, p in known.values()]).reshape(len(known), -1)
            points = {j: X[cells[i]] for i, (j, (X, _)) in enumerate(known.items())}
            weights = np.ones(cells.shape[1])
            for i, (_, p) in enumerate(known.values()):
                weights = weights * p[cells[i]]
        else:
            count = 500 if self.samples is None else self.samples  # with 1, (8.8)
            points = {j: tracker.draw(count, self.draws("samples", j)) for j, tracker in mixed.items()}
            weights = np.full(count, 1.0 / count)
        return {**points, **fixed}, weights  # one row of what is fixed stands for all

    def _rows(self, seat: int, tracker: Tracker) -> NDArray[np.intp]:
        drawn = tracker.draw(500 if self.samples is None else self.samples, self.draws("samples", seat))
        rows: NDArray[np.intp] = self.joint.spaces[seat].address(drawn)
        return rows

    def _chances(self, seat: int, tracker: Tracker) -> Array:
        """Probabilities of all actions of a seat, in the order of its candidates."""
        probabilities = tracker.probabilities
        if probabilities is None:
            raise TypeError("this strategy has no probabilities")
        return probabilities
