"""Multiplicative weights: Hedge, which sees every payoff, and GP-MW, which believes in the optimistic ones.

After each round every own action is credited with what it would have given against what the others did, and its
probability grows exponentially with the credit,

    P_{t+1}(x) ∝ exp(η Σ_{s ≤ t} u_s(x)).

Hedge knows u_s(x) = f(x, x_{others,s}). GP-MW puts the upper confidence bound in its place, cut to the payoff range.
Weights are kept as logarithms; they do not change when a constant is added to a credit.

Question: how to act against anybody, without knowing how the others choose? Reference: Sessa, Bogunovic, Kamgarpour &
Krause 2019 (GP-MW); Freund & Schapire 1997 (Hedge).

Guarantee (GP-MW, theorem 8.1): with probability 1 − δ the external regret is O(√(T log|X|) + √(T log(2/δ)) +
√(T β_T γ_T)), for payoffs in [0, 1] and η = √(8 log|X| / T).

Options of the authors of R2-B2: η = 0.1 and bounds that are not cut. Here they are cut to ``payoff_range``, and η is
the theorem's where the horizon is known and √(8 log|X| / t) where it is not.

>>> from surefoot.domain import Candidates
>>> tracker = GPMW(eta=1.0).begin(Candidates([0.0, 1.0]), 0)
>>> tracker.advance(Round([[0.0], [0.0]], [0.0, 0.0]), optimism=lambda X: X[:, 0])
>>> tracker.probabilities.round(3)
array([0.269, 0.731])
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax

from surefoot.domain import Domain
from surefoot.games.rounds import Round
from surefoot.games.strategies import Optimism, Strategy, Tracker, finite_actions
from surefoot.loop.state import pack, storable, unpack

__all__ = ["GPMW", "Hedge", "check_range", "checked_rate"]

Array = NDArray[np.float64]
Range = Sequence[float] | None


def check_range(payoff_range: Range) -> tuple[float, float] | None:
    """Return a payoff range as two numbers, the lower one first; None: payoffs are not cut.

    >>> check_range([0, 1])
    (0.0, 1.0)
    """
    if payoff_range is None:
        return None
    low, high = (float(end) for end in payoff_range)
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise ValueError(f"payoff_range must be two finite numbers, the lower one first, got {payoff_range!r}")
    return low, high


def checked_rate(name: str, value: float | None) -> None:
    """Refuse a rate or a horizon that is not positive.

    >>> checked_rate("eta", -1.0)
    Traceback (most recent call last):
    ...
    ValueError: eta must be positive and finite, got -1.0
    """
    if value is not None and not (math.isfinite(value) and value > 0):
        raise ValueError(f"{name} must be positive and finite, got {value!r}")


@storable
@dataclass(frozen=True)
class GPMW(Strategy):
    """Multiplicative weights on optimistic payoffs. Needs the own payoffs and all actions.

    Parameters
    ----------
    eta : float, optional
        Learning rate; None: √(8 log n / horizon), or √(8 log n / t) without a horizon.
    horizon : int, optional
        Number of rounds, where it is known.
    payoff_range : pair of float, optional
        Bounds are cut to it and scaled to [0, 1]; None: taken as they are.
    grid : int, optional
        Actions per axis on a box.

    >>> GPMW(eta=0.1, payoff_range=None).to_dict()
    {'eta': 0.1, 'horizon': None, 'payoff_range': None, 'grid': None}
    """

    eta: float | None = None
    horizon: int | None = None
    payoff_range: Range = (0.0, 1.0)
    grid: int | None = None

    beliefs = True
    payoffs = True

    def __post_init__(self) -> None:
        checked_rate("eta", self.eta)
        checked_rate("horizon", self.horizon)
        object.__setattr__(self, "payoff_range", check_range(self.payoff_range))

    def begin(self, domain: Domain, seat: int) -> Tracker:
        points = finite_actions(domain, self.grid, "GPMW")
        return _Weights(points, self.eta, self.horizon, check_range(self.payoff_range))


@storable
class Hedge(Strategy):
    """Multiplicative weights with full information: a reference that nobody can play who does not know the payoff.

    Parameters
    ----------
    payoff : callable
        ``payoff(X, actions)``: the own payoffs (n,) of own actions X (n, d), the others doing what they did in a round
        with these ``actions``. It is code: a saved player must be given it again.
    eta, horizon, payoff_range, grid
        As for :class:`GPMW`.

    >>> from surefoot.domain import Candidates
    >>> matching = Hedge(lambda X, actions: (X[:, 0] == actions[1][0]).astype(float), eta=1.0)
    >>> tracker = matching.begin(Candidates([0.0, 1.0]), 0)
    >>> tracker.advance(Round([[0.0], [1.0]], [0.0, 0.0]), optimism=lambda X: X[:, 0])
    >>> tracker.probabilities.round(3)
    array([0.269, 0.731])
    """

    def __init__(
        self,
        payoff: Callable[[Array, Sequence[Array]], ArrayLike],
        eta: float | None = None,
        horizon: int | None = None,
        payoff_range: Range = (0.0, 1.0),
        grid: int | None = None,
    ) -> None:
        if not callable(payoff):
            raise TypeError(f"Hedge needs the payoff as a function of (X, actions), got {payoff!r}")
        checked_rate("eta", eta)
        checked_rate("horizon", horizon)
        self.payoff, self.eta, self.horizon, self.grid = payoff, eta, horizon, grid
        self.payoff_range = check_range(payoff_range)

    def begin(self, domain: Domain, seat: int) -> Tracker:
        points = finite_actions(domain, self.grid, "Hedge")
        return _Weights(points, self.eta, self.horizon, self.payoff_range, self.payoff)

    def to_dict(self) -> dict[str, Any]:
        plain = {name: pack(getattr(self, name)) for name in ("eta", "horizon", "payoff_range", "grid")}
        return {"payoff": pack(self.payoff), **plain}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        return cls(**{**data, "payoff": unpack(data["payoff"])})


class _Weights(Tracker):
    """Credits of the actions so far; probabilities follow from them and the rate."""

    def __init__(
        self,
        points: Array,
        eta: float | None,
        horizon: int | None,
        payoff_range: tuple[float, float] | None,
        payoff: Callable[[Array, Sequence[Array]], ArrayLike] | None = None,
    ) -> None:
        self.points, self.eta, self.horizon, self.payoff_range, self.payoff = points, eta, horizon, payoff_range, payoff
        self.credit, self.rounds = np.zeros(len(points)), 0
        self._all = points

    @property
    def probabilities(self) -> Array:
        chance: Array = softmax(self._rate() * self.credit)  # P_{t+1}(x) ∝ exp(η Σ u_s(x))
        return chance

    def advance(self, done: Round, optimism: Optimism, *, hypothetical: bool = False) -> None:
        # u_t(x): the bound (8.2) at (x, x_{others,t}), or, of Hedge, the payoff
        told = optimism(self._all) if self.payoff is None else self.payoff(self._all, done.actions)
        u = np.asarray(told, dtype=np.float64)
        if u.shape != self.credit.shape or not np.isfinite(u).all():
            raise ValueError(f"a payoff is needed for each of {self.credit.size} actions, got shape {u.shape}: {u!r}")
        if self.payoff_range is not None:
            low, high = self.payoff_range
            u = (np.clip(u, low, high) - low) / (high - low)
        self.credit, self.rounds = self.credit + u, self.rounds + 1

    def _rate(self) -> float:
        if self.eta is not None:
            return self.eta
        # η = √(8 log|X|/T)
        return math.sqrt(8.0 * math.log(max(self.credit.size, 2)) / (self.horizon or max(self.rounds, 1)))
