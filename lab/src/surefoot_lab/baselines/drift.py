"""What a policy on a drifting function is compared with.

* :func:`genie`: knows the previous function and plays its maximum. No policy has less regret on average in the proof of
  the lower bound (Bogunovic's thesis, Theorem 5.3.1), so that its regret is a floor.
* :class:`SlidingWindowGPUCB`: GP-UCB that believes the latest W measurements only.
* :class:`LastValue`: plays the candidate whose last value is highest, after one round of all.
* :class:`RExp3`: Exp3 for adversarial bandits, restarted after every batch (Besbes, Gur & Zeevi 2014); it knows nothing
  of neighborhoods.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from typing import Any, ClassVar, Unpack, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot.arguments import whole
from surefoot.domain import Box, Candidates, Domain, Space
from surefoot.domain.ranking import argmax
from surefoot.loop.clock import Clock, Measurement
from surefoot.loop.options import Options
from surefoot.loop.policy import Policy, Proposal
from surefoot.loop.types import Outcome, Recommendation
from surefoot.loop.widths import Width, given_or, usual
from surefoot.policy.base import ModelOptions, ModelPolicy
from surefoot.policy.drift.memory import TimedRows, check_one_belief
from surefoot.policy.surrogate import Data, Surrogate
from surefoot.policy.ucb.gp_ucb import UpperConfidence

__all__ = ["LastValue", "RExp3", "SlidingWindowGPUCB", "genie"]

Array = NDArray[np.float64]


def genie(values: ArrayLike) -> NDArray[np.intp]:
    """Return the choices, shape (T,), of one who knows every function but the current one.

    The first function has no predecessor; the choice there is right, so that the floor stays a floor.

    Parameters
    ----------
    values : array of shape (T, M)
        The functions f_1, ..., f_T at all candidates.

    >>> genie([[0.0, 1.0], [3.0, 2.0], [0.0, 1.0]])
    array([1, 1, 0])
    """
    table = np.asarray(values, dtype=np.float64)
    return np.concatenate([table[:1], table[:-1]]).argmax(axis=1)


class WindowRows(TimedRows):
    """The latest measurements.

    >>> policy = SlidingWindowGPUCB(Candidates([0.0]), window=2, seed=0)
    >>> for value in (1.0, 2.0, 3.0):
    ...     policy.tell([0.0], value)
    >>> [m.value for m in policy.surrogate.rows.remembered()]
    [2.0, 3.0]
    """

    def __init__(self, clock: Clock, window: int) -> None:
        super().__init__(clock)
        self.window = window

    def remembered(self) -> list[Measurement]:
        return self.clock.between(self.successes - self.window, self.successes)

    def fitted(self, at: int) -> Data:
        return self.table(self.clock.between(at - self.window, at))

    def begin(self, at: int | None) -> tuple[Hashable, int]:
        return (at, self.successes), len(self.remembered())


class SlidingWindowGPUCB(ModelPolicy):
    """GP-UCB that believes the latest measurements only.

    Parameters
    ----------
    domain : Box, Candidates or Space
        Where points may lie.
    window : int
        W, the number of measurements that are believed.
    width : width, optional
        As in :class:`~surefoot.policy.ucb.gp_ucb.GPUCB`.
    **options
        ``gp``, ``initial``, ``confidence``, ``seed``, ``repeats``, ``journal``.

    >>> from surefoot import GP, SE, Candidates
    >>> policy = SlidingWindowGPUCB(Candidates([0.0, 0.5, 1.0]), window=2, gp=GP(SE(0.2), noise=0.01), seed=0)
    >>> for value in (1.0, 2.0, 3.0):
    ...     policy.tell(policy.ask(), value)
    >>> policy.posterior().n
    2
    """

    domains = (Box, Candidates, Space)
    context = ("time",)

    def __init__(
        self, domain: Domain, *, window: int, width: Width | None = None, **options: Unpack[ModelOptions]
    ) -> None:
        super().__init__(domain, **options)
        check_one_belief(self.gp, type(self).__name__)
        self.window = whole(window, "window", 1)
        self.width = given_or(width, usual(domain.size, self.confidence))
        self.clock = Clock(self.trials)
        self.rows = WindowRows(self.clock, self.window)
        self.surrogate = Surrogate(self.trials, self.gp, self.stream, rows=self.rows)
        self.rule = UpperConfidence(self.width)

    def _recommend(self) -> Recommendation:
        return self._most_promising(self.rows.places(), "highest posterior mean among the points in the window")


class LastValue(Policy):
    """Play the candidate whose last value is highest; each of them once at first, in random order.

    Parameters
    ----------
    domain : Candidates
        Where points may lie.
    **options
        ``seed``, ``repeats``, ``journal``.

    >>> policy = LastValue(Candidates([0.0, 1.0]), seed=0)
    >>> for _ in range(6):
    ...     query = policy.ask()
    ...     policy.tell(query, query.x[0])
    >>> policy.ask().x
    array([1.])
    """

    domains = (Candidates,)
    context = ("time",)

    def __init__(self, domain: Domain, **options: Unpack[Options]) -> None:
        super().__init__(domain, **options)
        self._last = np.full(domain.size or 0, np.inf)  # what was never measured is worth a look

    def _apply_told(self, id: int | None, x: Array, index: int | None, outcome: Outcome) -> None:
        super()._apply_told(id, x, index, outcome)
        made = self._observations[-1]
        if made.index is not None and made.value is not None:
            self._last[made.index] = made.value

    def _choose(self, step: int, context: Mapping[str, Any]) -> Proposal:
        # Finite, so that unmeasured candidates tie with each other and beat the rest.
        known = self._last[np.isfinite(self._last)]
        top = known.max() + 1.0 if known.size else 1.0
        values = np.where(np.isfinite(self._last), self._last, top)
        return Proposal(
            index=argmax(values, rng=self.stream("ties", step), exclude=self.domain.excluding(self._blocked()))
        )

    def _recommend(self) -> Recommendation:
        values = np.where(np.isfinite(self._last), self._last, -np.inf)
        best = int(np.argmax(values))
        x = cast(Candidates, self.domain).points[best]
        return self._recommendation(x, mean=float(values[best]), rule="highest last value")


class RExp3(Policy):
    """Exp3, restarted after every batch of rounds.

    Parameters
    ----------
    domain : Candidates
        Where points may lie; their coordinates do not matter.
    bounds : (float, float)
        Values are mapped from here to [0, 1] and cut off beyond.
    horizon : int
        T, the number of rounds.
    variation : float
        V_T, a bound on the sum over rounds of the largest change of any candidate, in shares of the bounds.
    **options
        ``seed``, ``repeats``, ``journal``.

    >>> policy = RExp3(Candidates(np.arange(4.0)), bounds=(0.0, 3.0), horizon=1000, variation=5.0, seed=0)
    >>> policy.batch, round(policy.exploration, 3)
    (61, 0.23)

    References: Besbes, Gur & Zeevi 2014, "Stochastic multi-armed-bandit problem with non-stationary rewards",
    Theorem 2: batches of ⌈(K log K)^(1/3) (T/V_T)^(2/3)⌉ rounds, γ = min(1, √(K log K/((e − 1) batch))).
    """

    domains = (Candidates,)
    context = ("time",)
    valued: ClassVar[tuple[str, ...]] = ("bounds",)

    def __init__(
        self,
        domain: Domain,
        *,
        bounds: tuple[float, float],
        horizon: int,
        variation: float,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(domain, **options)
        low, high = (float(b) for b in bounds)
        if not (math.isfinite(low) and low < high < math.inf):
            raise ValueError(f"bounds must be two finite numbers in order, got {bounds!r}")
        if not (horizon >= 1 and variation > 0):
            raise ValueError(f"horizon and variation must be positive, got {horizon!r} and {variation!r}")
        arms = domain.size or 1
        size = max(arms * math.log(arms), 1e-12)
        self.bounds = (low, high)
        self.batch = min(int(horizon), max(1, math.ceil(size ** (1 / 3) * (horizon / variation) ** (2 / 3))))
        self.exploration = min(1.0, math.sqrt(size / ((math.e - 1.0) * self.batch)))
        self._logs = np.zeros(arms)  # logarithms of the weights
        self._batch_of_logs = 0

    def _apply_told(self, id: int | None, x: Array, index: int | None, outcome: Outcome) -> None:
        super()._apply_told(id, x, index, outcome)
        made = self._observations[-1]
        if id is None or made.value is None or made.index is None:
            return  # what was not drawn by the rule has no probability to divide by
        batch = id // self.batch
        if batch > self._batch_of_logs:
            self._logs[:], self._batch_of_logs = 0.0, batch
        if batch == self._batch_of_logs:
            low, high = self.bounds
            gain = min(max((made.value - low) / (high - low), 0.0), 1.0)
            probability = float(self._queries[id].note["probability"])
            self._logs[made.index] += self.exploration * gain / (probability * len(self._logs))

    def _probabilities(self, step: int) -> Array:
        arms = len(self._logs)
        if step // self.batch != self._batch_of_logs:
            return np.full(arms, 1.0 / arms)
        weights = np.exp(self._logs - self._logs.max())
        return (1.0 - self.exploration) * weights / weights.sum() + self.exploration / arms

    def _choose(self, step: int, context: Mapping[str, Any]) -> Proposal:
        p = np.where(self.domain.excluding(self._blocked()), 0.0, self._probabilities(step))
        index = int(self.stream("arm", step).choice(len(p), p=p / p.sum()))
        return Proposal(index=index, note={"probability": float(p[index] / p.sum())})

    def _recommend(self) -> Recommendation:
        return self._best_measured()
