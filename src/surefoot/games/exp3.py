"""Bandit strategies: exponential weights on payoffs that were seen for the played action only.

* :class:`EXP3` is exponential weights for adversarial *linear* bandits on random features of the own action: the loss
  is taken to be linear in φ(x), and one played action says something about all of them.
* :class:`EXP3P` treats every action by itself, and is right with high probability, not only on average.

Question: how to act against anybody, when nothing is known but the own actions and payoffs? References: Lattimore &
Szepesvári 2020, chapter 27 (linear); Auer, Cesa-Bianchi, Freund & Schapire 2002, Bubeck & Cesa-Bianchi 2012, theorem
3.3 (EXP3.P).

Guarantee (EXP3, with ``horizon=`` and ``exploration="optimal"``): expected regret O(√(d' T log|X|)) for losses that are
linear in the d' features. Five features do not make a payoff linear: this is a strategy, not a model.

Options of the authors of R2-B2: five features of length-scale 0.1, η = γ = 0.1, exploration by uniform draws. Their
code draws frequencies 2π times too small for this length; ``frequencies="released"`` does so too.

The importance weights assume that the played action was drawn from the strategy. A reasoning player that keeps track of
a strategy nobody plays gets biased estimates; ``hypothetical=False`` leaves those rounds out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from surefoot.arguments import whole
from surefoot.belief.fourier import FourierFeatures
from surefoot.belief.kernels import SE
from surefoot.domain import Domain
from surefoot.games.hedge import Range, check_range, checked_rate
from surefoot.games.rounds import Round
from surefoot.games.strategies import Optimism, Strategy, Tracker, finite_actions
from surefoot.loop.state import storable
from surefoot.loop.streams import stream

__all__ = ["EXP3", "EXP3P", "optimal_design"]

Array = NDArray[np.float64]


def optimal_design(features: Array, iterations: int = 400) -> Array:
    """Return probabilities (n,) that make the largest φᵀ Q⁻¹ φ nearly as small as it gets: the rank of the features.

    Q = Σ π(a) φ(a) φ(a)ᵀ. Titterington's multiplicative algorithm; its limit is the G-optimal design (Kiefer &
    Wolfowitz 1960).

    >>> F = np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]])
    >>> optimal_design(F).round(3) + 0.0
    array([0.5, 0.5, 0. ])
    """
    pi = np.full(len(features), 1.0 / len(features))
    rank = int(np.linalg.matrix_rank(features))
    for _ in range(iterations):
        pi = pi * _leverage(features, pi) / rank
        pi /= pi.sum()
    return pi


def _leverage(features: Array, pi: Array) -> Array:
    """φᵀ Q(π)⁻¹ φ of every action, shape (n,)."""
    inverse = np.linalg.pinv((features * pi[:, None]).T @ features, hermitian=True)
    leverage: Array = np.einsum("ni,ij,nj->n", features, inverse, features)
    return leverage


@storable
@dataclass(frozen=True)
class EXP3(Strategy):
    """Exponential weights for linear losses of random features. Needs the own actions and payoffs.

    Parameters
    ----------
    features : int
        Number of random Fourier features d'.
    lengthscale : float
        Of the squared exponential kernel whose features they are.
    eta, gamma : float
        Learning rate, and probability of exploring.
    horizon : int, optional
        Replaces both by those of the theory, γ = η g(π), η = √(log n / ((2 g(π) + d') T)), g(π) = max φᵀ Q(π)⁻¹ φ.
    exploration : {"uniform", "optimal"}
        What is explored: every action alike, or the G-optimal design.
    frequencies : {"text", "released"}
        As the length-scale says, or 2π times smaller.
    payoff_range : pair of float, optional
        The loss is 1 minus the payoff scaled from this range to [0, 1]; None: minus the payoff.
    hypothetical : bool
        Whether to learn from rounds in which the player did not draw from this strategy; such estimates are biased.
    grid : int, optional
        Actions per axis on a box.
    seed : int
        Names the features, which everybody knows who reasons about this strategy.

    >>> from surefoot.domain import Candidates
    >>> tracker = EXP3(features=3).begin(Candidates([0.0, 0.5, 1.0]), 0)
    >>> tracker.advance(Round([[0.5], [0.0]], [1.0, 0.0]), optimism=lambda X: X[:, 0])
    >>> int(tracker.probabilities.argmax()), round(float(tracker.probabilities.sum()), 9)
    (1, 1.0)
    """

    features: int = 5
    lengthscale: float = 0.1
    eta: float = 0.1
    gamma: float = 0.1
    horizon: int | None = None
    exploration: str = "uniform"
    frequencies: str = "text"
    payoff_range: Range = None
    hypothetical: bool = True
    grid: int | None = None
    seed: int = 0

    payoffs = True

    def __post_init__(self) -> None:
        whole(self.features, "features", 1)
        for name in ("lengthscale", "eta", "horizon"):
            checked_rate(name, getattr(self, name))
        if not 0.0 <= self.gamma <= 1.0:
            raise ValueError(f"gamma is a probability, got {self.gamma!r}")
        for name, known in (("exploration", ("uniform", "optimal")), ("frequencies", ("text", "released"))):
            if getattr(self, name) not in known:
                raise ValueError(f"{name} must be one of {known}, got {getattr(self, name)!r}")
        object.__setattr__(self, "payoff_range", check_range(self.payoff_range))

    def begin(self, domain: Domain, seat: int) -> Tracker:
        return _Linear(self, finite_actions(domain, self.grid, "EXP3"), seat)


class _Linear(Tracker):
    def __init__(self, strategy: EXP3, points: Array, seat: int) -> None:
        self.points, self.strategy, self.seat = points, strategy, seat
        stretch = 2.0 * math.pi if strategy.frequencies == "released" else 1.0
        kernel = SE(lengthscale=stretch * strategy.lengthscale)
        rng = stream(strategy.seed, "features", seat)
        self._features = FourierFeatures(kernel, points.shape[1], strategy.features, rng, kind="cos_phase")
        self.phi: Array = self._features(points)
        self.pi = np.full(len(points), 1.0 / len(points))
        if strategy.exploration == "optimal":
            self.pi = optimal_design(self.phi)
        self.eta, self.gamma = strategy.eta, strategy.gamma
        if strategy.horizon is not None:
            g = float(_leverage(self.phi, self.pi).max())
            self.eta = math.sqrt(math.log(max(len(points), 2)) / ((2.0 * g + strategy.features) * strategy.horizon))
            self.gamma = min(1.0, self.eta * g)
        self.loss = np.zeros(len(points))

    @property
    def probabilities(self) -> Array:
        # P_t(a) = γ π(a) + (1 − γ) exp(−η L̂(a))/Σ
        chance: Array = self.gamma * self.pi + (1.0 - self.gamma) * softmax(-self.eta * self.loss)
        chance /= chance.sum()
        return chance

    def advance(self, done: Round, optimism: Optimism, *, hypothetical: bool = False) -> None:
        payoff = done.payoffs[self.seat]
        if payoff is None or (hypothetical and not self.strategy.hypothetical):
            return
        cost = -payoff
        if self.strategy.payoff_range is not None:
            low, high = self.strategy.payoff_range
            cost = 1.0 - (payoff - low) / (high - low)
        chance = self.probabilities
        inverse = np.linalg.pinv((self.phi * chance[:, None]).T @ self.phi, hermitian=True)  # Q_t⁻¹
        theta = inverse @ self._features(done.actions[self.seat][None])[0] * cost  # θ̂_t = Q_t⁻¹ φ(a_t) c_t
        self.loss = self.loss + self.phi @ theta  # L̂_t(a) = L̂_{t−1}(a) + φ(a)ᵀ θ̂_t


@storable
@dataclass(frozen=True)
class EXP3P(Strategy):
    """Exponential weights for each action by itself, with an optimistic correction. Needs own actions and payoffs.

    Parameters
    ----------
    horizon : int
        Number of rounds; sets β = √(log(n/δ)/(n T)), η = 0.95 √(log n/(n T)), γ = 1.05 √(n log n/T), at most 1.
    confidence : float
        1 − δ.
    payoff_range : pair of float
        Payoffs are cut to it and scaled to [0, 1].
    grid : int, optional
        Actions per axis on a box.

    >>> from surefoot.domain import Candidates
    >>> tracker = EXP3P(horizon=1000).begin(Candidates([0.0, 1.0]), 0)
    >>> tracker.advance(Round([[1.0], [0.0]], [1.0, 0.0]), optimism=lambda X: X[:, 0])
    >>> bool(tracker.probabilities[1] > 0.5)
    True
    """

    horizon: int = 1000
    confidence: float = 0.9
    payoff_range: Range = (0.0, 1.0)
    grid: int | None = None

    payoffs = True

    def __post_init__(self) -> None:
        checked_rate("horizon", self.horizon)
        if not 0.0 < self.confidence < 1.0:
            raise ValueError(f"confidence must lie strictly between 0 and 1, got {self.confidence!r}")
        if self.payoff_range is None:
            raise ValueError("EXP3P needs payoff_range: its bounds are for payoffs in [0, 1]")
        object.__setattr__(self, "payoff_range", check_range(self.payoff_range))

    def begin(self, domain: Domain, seat: int) -> Tracker:
        return _Separate(self, finite_actions(domain, self.grid, "EXP3P"), seat)


class _Separate(Tracker):
    def __init__(self, strategy: EXP3P, points: Array, seat: int) -> None:
        self.points, self.seat, self._all = points, seat, points
        self.low, self.high = check_range(strategy.payoff_range) or (0.0, 1.0)
        n, T = len(points), strategy.horizon
        self.beta = math.sqrt(math.log(n / (1.0 - strategy.confidence)) / (n * T))
        self.eta = 0.95 * math.sqrt(math.log(max(n, 2)) / (n * T))
        self.gamma = min(1.0, 1.05 * math.sqrt(n * math.log(max(n, 2)) / T))
        self.gain = np.zeros(n)

    @property
    def probabilities(self) -> Array:
        chance: Array = (1.0 - self.gamma) * softmax(self.eta * self.gain) + self.gamma / self.gain.size
        chance /= chance.sum()
        return chance

    def advance(self, done: Round, optimism: Optimism, *, hypothetical: bool = False) -> None:
        payoff = done.payoffs[self.seat]
        if payoff is None:
            return
        gain = (min(max(payoff, self.low), self.high) - self.low) / (self.high - self.low)
        played = (self._all == done.actions[self.seat]).all(axis=1)
        self.gain = self.gain + (gain * played + self.beta) / self.probabilities
