"""Level 0: how a player acts that does not reason about the others.

A level-0 strategy is a probability distribution over the own actions that changes from round to round: a *mixed*
strategy. It must be mixed: against an adversary a deterministic rule has a regret that grows like the number of rounds.
Reasoning players need the distribution itself, or draws from it, also of players who do not play it.

A :class:`Strategy` is configuration. :meth:`Strategy.begin` gives a :class:`Tracker`, which follows the rounds of a
game and knows the distribution after each of them. Here are the simple ones; multiplicative weights are in
:mod:`surefoot.games.hedge`, bandits in :mod:`surefoot.games.exp3`.

>>> from surefoot.domain import Candidates
>>> tracker = RandomStrategy().begin(Candidates([0.0, 0.5, 1.0]), 0)
>>> tracker.probabilities.round(3)
array([0.333, 0.333, 0.333])

References: Dai et al. 2020 (R2-B2), section 3.1; section 8.3.1.1 of Dai's thesis (2021).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot.domain import Box, Domain
from surefoot.errors import NotSupported
from surefoot.games.rounds import Round
from surefoot.loop.policy import Policy
from surefoot.loop.state import pack, storable, unpack
from surefoot.loop.streams import as_integer

__all__ = ["PolicyStrategy", "RandomStrategy", "SamplerStrategy", "Strategy", "Tracker", "finite_actions"]

Array = NDArray[np.float64]
Optimism = Callable[[Array], Array]


def finite_actions(domain: Domain, grid: int | None, who: str) -> Array:
    """Return the actions among which a strategy mixes: the candidates, or a grid over a box, shape (n, d).

    >>> finite_actions(Box([(0.0, 1.0)]), 3, "GPMW")
    array([[0. ],
           [0.5],
           [1. ]])
    """
    if domain.listed:
        return domain.enumerate()
    if isinstance(domain, Box) and grid is not None:
        if grid < 2 or grid**domain.dimension > 10**6:
            raise ValueError(f"a grid of {grid!r} per axis in {domain.dimension} dimensions is not usable")
        axes = [np.linspace(low, high, grid) for low, high in domain.bounds]
        return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, domain.dimension)
    raise NotSupported(f"{who} mixes over finitely many actions: Candidates, or a Box with grid=, not {domain!r}")


class Tracker:
    """A level-0 strategy in the course of a game.

    Attributes
    ----------
    points : array of shape (n, d), or None
        The actions of a finite strategy.

    >>> from surefoot.domain import Box
    >>> RandomStrategy().begin(Box([(0.0, 1.0)]), 0).draw(2, np.random.default_rng(0)).shape
    (2, 1)
    """

    points: Array | None = None

    @property
    def probabilities(self) -> Array | None:
        """Probability of each of :attr:`points`, shape (n,); None where there is only a sampler."""
        return None

    def advance(self, done: Round, optimism: Optimism, *, hypothetical: bool = False) -> None:
        """Learn from a round.

        Parameters
        ----------
        done : Round
            What was played.
        optimism : callable
            Upper bounds of the own payoff at own actions (n, d), the others doing what they did; shape (n,).
        hypothetical : bool
            The player is not believed to have drawn its action from this strategy.
        """

    def draw(self, count: int, rng: np.random.Generator) -> Array:
        """Return independent actions, shape (count, d)."""
        points, probabilities = self.points, self.probabilities
        if points is None or probabilities is None:
            raise TypeError("a strategy without probabilities draws by itself")
        return points[rng.choice(len(points), size=count, p=probabilities)]


class Strategy(ABC):
    """Configuration of a level-0 strategy.

    Attributes
    ----------
    beliefs : bool
        Whether it needs the belief about the own payoff.
    payoffs : bool
        Whether it needs the own payoffs.

    >>> RandomStrategy.beliefs, RandomStrategy.payoffs
    (False, False)
    """

    beliefs: ClassVar[bool] = False
    payoffs: ClassVar[bool] = False

    @abstractmethod
    def begin(self, domain: Domain, seat: int) -> Tracker:
        """Return the strategy at the start of a game, for the player at a seat with these actions."""

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-able description."""
        return {name: pack(value) for name, value in asdict(cast(Any, self)).items()}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Rebuild the strategy from :meth:`to_dict`."""
        return cls(**data)


@storable
@dataclass(frozen=True)
class RandomStrategy(Strategy):
    """Every action with the same probability, in every round. Needs to know nothing.

    >>> from surefoot.domain import Candidates
    >>> RandomStrategy().begin(Candidates([1.0, 2.0]), 0).probabilities
    array([0.5, 0.5])
    """

    def begin(self, domain: Domain, seat: int) -> Tracker:
        return _Uniform(domain)


class _Uniform(Tracker):
    def __init__(self, domain: Domain) -> None:
        self.domain = domain
        self.points = domain.enumerate() if domain.listed else None

    @property
    def probabilities(self) -> Array | None:
        return None if self.points is None else np.full(len(self.points), 1.0 / len(self.points))

    def draw(self, count: int, rng: np.random.Generator) -> Array:
        return self.domain.sample(count, rng)


@storable
class SamplerStrategy(Strategy):
    """Whatever a function draws: an existing method, a guess about a person, a pure strategy.

    Parameters
    ----------
    function : callable
        ``function(rounds, count, rng)`` returns actions (count, d), given the rounds so far. A single action, shape
        (d,), is a pure strategy. It is code: a saved player must be given it again.

    >>> from surefoot.domain import Box
    >>> copycat = SamplerStrategy(lambda rounds, count, rng: rounds[-1].actions[1] if rounds else [0.5])
    >>> tracker = copycat.begin(Box([(0.0, 1.0)]), 0)
    >>> tracker.advance(Round([[0.1], [0.9]], [0.0, 0.0]), lambda X: X[:, 0])
    >>> tracker.draw(2, np.random.default_rng(0))
    array([[0.9],
           [0.9]])
    """

    def __init__(self, function: Callable[[Sequence[Round], int, np.random.Generator], ArrayLike]) -> None:
        if not callable(function):
            raise TypeError(f"a sampler is a function of (rounds, count, rng), got {function!r}")
        self.function = function

    def begin(self, domain: Domain, seat: int) -> Tracker:
        return _Sampler(self.function, domain)

    def to_dict(self) -> dict[str, Any]:
        return {"function": pack(self.function)}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        return cls(unpack(data["function"]))


class _Sampler(Tracker):
    def __init__(self, function: Callable[..., ArrayLike], domain: Domain) -> None:
        self.function, self.domain = function, domain
        self.rounds: list[Round] = []

    def advance(self, done: Round, optimism: Optimism, *, hypothetical: bool = False) -> None:
        self.rounds.append(done)

    def draw(self, count: int, rng: np.random.Generator) -> Array:
        X = np.asarray(self.function(tuple(self.rounds), count, rng), dtype=np.float64)
        if X.ndim == 1:
            X = np.tile(X, (count, 1))
        if X.shape != (count, self.domain.dimension) or not self.domain.contains(X).all():
            raise ValueError(
                f"the sampler must give {count} actions of {self.domain!r}, got an array of shape {X.shape}: {X[:3]}"
            )
        return X


@storable
class PolicyStrategy(Strategy):
    """A policy of its own that optimizes the own payoff and does not know that there are others.

    Parameters
    ----------
    policy : Policy
        Its domain must be the player's; only its configuration is used. After each round it is told the own action and
        payoff.
    draws : int
        How many times it is asked, with seeds of their own, where a distribution is wanted; 1 for a rule that draws
        nothing.

    >>> from surefoot import Box, RandomSearch
    >>> box = Box([(0.0, 1.0)])
    >>> PolicyStrategy(RandomSearch(box, seed=0), draws=3).begin(box, 0).draw(5, np.random.default_rng(0)).shape
    (5, 1)
    """

    payoffs = True

    def __init__(self, policy: Policy, draws: int = 1) -> None:
        if not isinstance(policy, Policy):
            raise TypeError(f"PolicyStrategy needs a policy, got {policy!r}")
        if draws < 1:
            raise ValueError(f"draws must be at least 1, got {draws!r}")
        self.policy, self.draws = policy, int(draws)

    def begin(self, domain: Domain, seat: int) -> Tracker:
        if pack(self.policy.domain) != pack(domain):
            raise ValueError(f"the policy works on {self.policy.domain!r}, the player on {domain!r}")
        return _Asked(self, seat)

    def to_dict(self) -> dict[str, Any]:
        return {"policy": pack(self.policy), "draws": self.draws}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        return cls(unpack(data["policy"]), data["draws"])


class _Asked(Tracker):
    def __init__(self, strategy: PolicyStrategy, seat: int) -> None:
        self.policy, self.draws, self.seat = strategy.policy, strategy.draws, seat
        self.told: list[tuple[Array, float]] = []

    def advance(self, done: Round, optimism: Optimism, *, hypothetical: bool = False) -> None:
        payoff = done.payoffs[self.seat]
        if payoff is not None:
            self.told.append((done.actions[self.seat], payoff))

    def draw(self, count: int, rng: np.random.Generator) -> Array:
        # A fresh policy each time: what it is asked here must leave no trace.
        different = min(count, self.draws)
        asked = []
        for seed in np.random.SeedSequence(rng.integers(2**53)).spawn(different):
            twin = self.policy.fresh(seed=as_integer(seed))
            for x, payoff in self.told:
                twin.tell(x, payoff)
            asked.append(twin.ask().x)
        X = np.array(asked)
        return X if different == count else X[rng.integers(different, size=count)]
