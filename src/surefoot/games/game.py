"""A repeated game, and what its rounds were worth.

A :class:`Game` knows the payoffs: tables over finite actions, or a function of the joint action. :func:`play` lets
players meet in it, all of them choosing before anybody learns what the others did, and :class:`Match` accounts for it:

* *external regret* (8.1): what the best fixed action would have given more, against what the others did,
* *mean regret*: how far payoffs were, on average, from the highest payoff there is; an upper bound of the external
  regret per round, which need not go to zero.

Both are about payoffs without noise.

>>> import numpy as np
>>> from surefoot.domain import Candidates
>>> from surefoot.games import Player, RandomStrategy
>>> grid = Candidates(np.linspace(0.0, 1.0, 5))
>>> game = Game.common_payoff(-np.subtract.outer(grid.points[:, 0], grid.points[:, 0]) ** 2, [grid, grid])
>>> players = [Player(grid, others=[grid], position=i, level=1, strategies=RandomStrategy(), seed=i) for i in range(2)]
>>> match = play(game, players, rounds=6, seed=0)
>>> match.payoffs.shape
(6, 2)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot.domain import Domain
from surefoot.errors import NotSupported
from surefoot.experimental import experimental
from surefoot.games.mind import Pool
from surefoot.games.player import Player
from surefoot.games.rounds import Round
from surefoot.loop.state import pack
from surefoot.loop.streams import stream

__all__ = ["Game", "Match", "play"]

Array = NDArray[np.float64]
Payoffs = Callable[[Sequence[Array]], Sequence[float | None] | None]


class Game:
    """Payoffs of all players over their joint actions.

    Parameters
    ----------
    payoffs : sequence of arrays of shape (n_1, ..., n_M), or callable
        One table for each player over candidates, or ``payoffs(actions)``, which returns one number for each player.
        A round fails for everybody if one of them, or all that is returned, is None.
    spaces : sequence of Domain
        The actions of each player.
    noise : float or sequence of float
        Variance of the noise that is added to each player's payoff.
    highest : sequence of float, optional
        The highest payoff of each player, where a function gives them and it is known.

    >>> from surefoot.domain import Box
    >>> game = Game(lambda actions: [float(actions[0][0]), float(actions[1][0])], [Box([(0.0, 1.0)])] * 2)
    >>> game.payoffs([np.array([0.25]), np.array([0.5])])
    array([0.25, 0.5 ])
    """

    def __init__(
        self,
        payoffs: Sequence[ArrayLike] | Payoffs,
        spaces: Sequence[Domain],
        noise: float | Sequence[float] = 0.0,
        *,
        highest: Sequence[float] | None = None,
    ) -> None:
        self.spaces = tuple(spaces)
        players = len(self.spaces)
        if players < 2:
            raise ValueError(f"a game has at least two players, got {players} action spaces")
        variances = np.asarray(noise, dtype=np.float64)
        if variances.shape not in ((), (players,)):
            raise ValueError(f"noise is a variance, or one for each of {players} players, got {noise!r}")
        self.noise = np.broadcast_to(variances, (players,))
        if not (np.isfinite(self.noise).all() and (self.noise >= 0).all()):
            raise ValueError(f"noise is a variance, finite and not negative, got {noise!r}")
        self.function: Payoffs | None = payoffs if callable(payoffs) else None
        self.tables: tuple[Array, ...] = ()
        if not callable(payoffs):
            shape = tuple(space.size if space.listed else None for space in self.spaces)
            self.tables = tuple(np.array(table, dtype=np.float64) for table in payoffs)
            if len(self.tables) != players or any(table.shape != shape for table in self.tables):
                found = [table.shape for table in self.tables]
                raise ValueError(f"{players} tables of shape {shape} over candidates are needed, got shapes {found}")
            if not all(np.isfinite(table).all() for table in self.tables):
                raise ValueError("payoffs must be finite")
        known = highest if highest is not None else [table.max() for table in self.tables]
        if len(known) not in (0, players):
            raise ValueError(f"highest is one payoff for each of {players} players, got {highest!r}")
        self.highest = np.array([float(value) for value in known]) if len(known) else None

    @classmethod
    def common_payoff(cls, payoff: ArrayLike, spaces: Sequence[Domain], noise: float = 0.0) -> Game:
        """Return the game in which everybody gets the same.

        >>> from surefoot.domain import Candidates
        >>> arms = Candidates([0.0, 1.0])
        >>> Game.common_payoff([[0.0, 1.0], [2.0, 3.0]], [arms, arms]).highest
        array([3., 3.])
        """
        return cls([payoff] * len(spaces), spaces, noise)

    @classmethod
    def constant_sum(
        cls, payoff: ArrayLike, spaces: Sequence[Domain], noise: float = 0.0, *, total: float = 1.0
    ) -> Game:
        """Return the game in which the first player gets ``payoff`` and every other one ``total`` minus it.

        >>> from surefoot.domain import Candidates
        >>> arms = Candidates([0.0, 1.0])
        >>> Game.constant_sum([[0.0, 1.0], [0.5, 0.25]], [arms, arms]).tables[1]
        array([[1.  , 0.  ],
               [0.5 , 0.75]])
        """
        table = np.asarray(payoff, dtype=np.float64)
        return cls([table, *[total - table] * (len(spaces) - 1)], spaces, noise)

    @property
    def players(self) -> int:
        """Number of players."""
        return len(self.spaces)

    def payoffs(self, actions: Sequence[Array]) -> Array:
        """Return the payoffs without noise, shape (players,); NaN for everybody if the round failed."""
        if self.function is None:
            cell = tuple(space.row_of(action) for space, action in zip(self.spaces, actions, strict=True))
            return np.array([table[cell] for table in self.tables])
        given = self.function([np.array(action, dtype=np.float64) for action in actions])
        if given is None:
            return np.full(self.players, np.nan)
        try:
            values = np.array([np.nan if value is None else float(value) for value in given], dtype=np.float64)
        except (TypeError, ValueError):
            raise ValueError(f"payoffs must be {self.players} finite numbers, got {given!r}") from None
        if values.shape != (self.players,) or np.isinf(values).any():
            raise ValueError(f"payoffs must be {self.players} finite numbers, got {given!r}")
        return np.full(self.players, np.nan) if np.isnan(values).any() else values

    def draw(self, rng: np.random.Generator) -> list[Array]:
        """Return a joint action drawn uniformly."""
        return [space.sample(1, rng)[0] for space in self.spaces]

    def __repr__(self) -> str:
        kind = "tables" if self.function is None else "a function"
        return f"Game({self.players} players, payoffs by {kind})"


@dataclass(frozen=True)
class Match:
    """Rounds that were played in a game.

    Attributes
    ----------
    game : Game
    rounds : list of Round
        As the players saw them; the initial ones are not among them.
    payoffs : array of shape (T, players)
        Without noise; NaN in failed rounds.
    watched : list of Round
        The initial rounds, drawn at random.

    >>> from surefoot.domain import Candidates
    >>> arms = Candidates([0.0, 1.0])
    >>> game = Game.constant_sum([[0.0, 1.0], [1.0, 0.0]], [arms, arms])
    >>> done = [Round([[0.0], [0.0]], [0.0, 1.0])] * 4
    >>> match = Match(game, done, np.array([[0.0, 1.0]] * 4))
    >>> match.external_regret(0), match.external_regret(1)
    (array([1., 2., 3., 4.]), array([0., 0., 0., 0.]))
    """

    game: Game
    rounds: list[Round]
    payoffs: Array
    watched: list[Round] = field(default_factory=list)

    def mean_regret(self, seat: int) -> Array:
        """Return the highest payoff less the average payoff up to each round, shape (T,)."""
        if self.game.highest is None:
            raise NotSupported("mean regret needs the highest payoffs: give the game tables, or highest=")
        lost = self.game.highest[seat] - self.payoffs[:, seat]
        good = np.isfinite(lost)
        total: Array = np.cumsum(np.where(good, lost, 0.0)) / np.maximum(np.cumsum(good), 1)
        return total

    def external_regret(self, seat: int) -> Array:
        """Return the external regret up to each round, shape (T,); eq. (8.1)."""
        if not self.game.tables:
            raise NotSupported("external regret needs every payoff of every action: give the game tables")
        good = np.isfinite(self.payoffs[:, seat])
        table = np.moveaxis(self.game.tables[seat], seat, 0)
        cells: list[Any] = [slice(None)]
        for j, space in enumerate(self.game.spaces):
            if j != seat:
                played = np.array([done.actions[j] for done in self.rounds]).reshape(-1, space.dimension)
                cells.append(space.address(played))
        each = np.where(good, table[tuple(cells)], 0.0)  # (own actions, T)
        regret: Array = np.cumsum(each, axis=1).max(axis=0) - np.cumsum(np.where(good, self.payoffs[:, seat], 0.0))
        return regret


@experimental
def play(
    game: Game, players: Sequence[Player], rounds: int, *, initial: int = 1, seed: int = 0, watch: Any = None
) -> Match:
    """Let players meet: in each round all choose, then all learn what was done and what it gave.

    Parameters
    ----------
    game : Game
    players : sequence of Player
        One for each seat, in order.
    rounds : int
        How many rounds are played.
    initial : int
        Joint actions drawn at random and shown to everybody before the first round.
    seed : int
        Of the initial actions and the noise.
    watch : callable, optional
        Called with (round number, Round) after each round.

    >>> from surefoot.domain import Candidates
    >>> arms = Candidates([0.0, 1.0])
    >>> game = Game.constant_sum([[0.0, 1.0], [1.0, 0.0]], [arms, arms])
    >>> match = play(game, [Player(arms, others=[arms], position=i, level=0, seed=i) for i in range(2)], rounds=3)
    >>> len(match.rounds), len(match.watched)
    (3, 1)
    """
    if rounds < 0 or initial < 0:
        raise ValueError(f"rounds and initial must not be negative, got {rounds!r} and {initial!r}")
    if len(players) != game.players:
        raise ValueError(f"this game has {game.players} seats, got {len(players)} players")
    spaces = pack(list(game.spaces))
    pool: Pool = {}
    for seat, player in enumerate(players):
        if player.position != seat or pack(list(player.joint.spaces)) != spaces:
            raise ValueError(f"player {seat} was made for seat {player.position} of {player.joint.spaces!r}")
        player._join(pool)
    watched, done, payoffs = [], [], []
    for number in range(initial):
        seen, _ = _measure(game, game.draw(stream(seed, "initial", number)), seed, -1 - number)
        if seen is not None:
            watched.append(seen)
            for player in players:
                player.tell(seen)
    for number in range(rounds):
        queries = [player.ask() for player in players]
        actions = [query.x for query in queries]
        seen, true = _measure(game, actions, seed, number)
        for player, query in zip(players, queries, strict=True):
            player.tell(query, seen)
        done.append(seen if seen is not None else Round(actions, [None] * len(actions)))
        payoffs.append(true)
        if watch is not None:
            watch(number, done[-1])
    return Match(game, done, np.array(payoffs).reshape(rounds, game.players), watched)


def _measure(game: Game, actions: Sequence[Array], seed: int, number: int) -> tuple[Round | None, Array]:
    """The round as it is seen, None if it failed, and the payoffs without noise."""
    true = game.payoffs(actions)
    if np.isnan(true).any():
        return None, true
    purpose = "noise" if number >= 0 else "initial noise"
    errors = stream(seed, purpose, abs(number)).standard_normal(game.players)
    return Round(actions, (true + np.sqrt(game.noise) * errors).tolist()), true
