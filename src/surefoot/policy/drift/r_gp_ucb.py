"""R-GP-UCB: forget everything now and then.

Question: where is the maximum of a function that drifts, when nothing better than a fresh start is at hand?

Rule (Algorithm 8): GP-UCB that throws all measurements away after every N units of time. Time comes with
``ask(time=t)`` or counts the queries; the first block begins with the first query or measurement, so that with one
measurement per unit a reset falls on every round with (t − 1) mod N = 0. The width goes on with the round t, it is not
reset.

Reference: Bogunovic, Scarlett & Cevher 2016. Numbers are those of Bogunovic's thesis (2019), chapter 5.

Guarantee: Theorem 5.3.2, R_T = O*(max(√T, T ε^(1/8))) for the squared exponential with N = Θ(min(T, ε^(−1/4))): weaker
than that of TV-GP-UCB, and regret has a saw-tooth, since after a reset the first query is as good as a random one.

Authors' options: N = ⌈12 ε^(−1/4)⌉ for the squared exponential, ⌈24 ε^(−1/(4−c))⌉ for Matérn kernels, by
cross-validation on real data; β_t = 0.8 log 4t. Differences: (t − 1) mod N = 0 instead of t mod N = 1, which never
resets for N = 1; times may be any numbers.

Cost of one ask: that of GP-UCB with the measurements of one block.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Hashable
from typing import Any, Unpack, cast

import numpy as np

from surefoot.arguments import whole
from surefoot.belief.forgetting import check_forgetting
from surefoot.belief.kernels import Kernel, Matern
from surefoot.belief.posterior import Posterior
from surefoot.domain import Box, Candidates, Domain, Space
from surefoot.loop.clock import Clock, Measurement
from surefoot.loop.types import Observation, Recommendation
from surefoot.loop.widths import Width, given_or, usual
from surefoot.policy.base import ModelOptions, ModelPolicy
from surefoot.policy.drift.memory import TimedRows, check_one_belief
from surefoot.policy.surrogate import Data, Surrogate
from surefoot.policy.ucb.gp_ucb import UpperConfidence

__all__ = ["RGPUCB", "BlockRows", "block_length"]


def block_length(forgetting: float, kernel: Kernel, dimension: int, horizon: int | None = None) -> float:
    """Return N of R-GP-UCB: ⌈min(T, 12 ε^(−1/4))⌉, and ⌈min(T, 24 ε^(−1/(4−c)))⌉ for a Matérn kernel.

    c = p(p + 1)/(2ν + p(p + 1)) in dimension p. The exponents are those of the bound (Corollary 5.3.1), the constants
    those of the authors' experiments; see the page of the algorithm for why a longer block is often better.

    >>> from surefoot import SE, Matern
    >>> [block_length(e, SE(0.2), 2) for e in (0.001, 0.01, 0.03)]
    [68, 38, 29]
    >>> [block_length(e, Matern(2.5, 0.2), 2) for e in (0.001, 0.01, 0.03)]
    [178, 92, 67]
    """
    rate, horizon_ = check_forgetting(forgetting), math.inf if horizon is None else whole(horizon, "horizon", 1)
    if rate == 0.0:
        return horizon_
    if isinstance(kernel, Matern):
        c = dimension * (dimension + 1) / (2.0 * kernel.nu + dimension * (dimension + 1))  # Corollary 5.3.1
        return math.ceil(min(horizon_, 24.0 * math.pow(rate, -1.0 / (4.0 - c))))
    return math.ceil(min(horizon_, 12.0 * math.pow(rate, -0.25)))


class BlockRows(TimedRows):
    """Algorithm 8, lines 2 and 3: at the beginning of a block all measurements are thrown away.

    Parameters
    ----------
    clock : Clock
        When they were made, and the time that is spoken of.
    block : float
        N, the length of a block; the first begins with the first query or measurement.

    >>> policy = RGPUCB(Candidates([0.0]), block=2, seed=0)
    >>> policy.tell(policy.ask(time=1.0), 3.0)
    >>> [policy.surrogate.rows.number(time) for time in (1.0, 2.9, 3.0)]
    [0, 0, 1]
    """

    def __init__(self, clock: Clock, block: float) -> None:
        super().__init__(clock)
        self.block = block

    def number(self, time: float | None) -> int:
        """Return the number of the block that a time lies in."""
        start = self.clock.began
        return 0 if math.isinf(self.block) or math.isinf(start) else int((cast(float, time) - start) // self.block)

    def within(self, first: int, last: float) -> list[Measurement]:
        """Return the measurements of some blocks, in the order in which they were told."""
        in_time = self.clock.in_time
        start = bisect_left(in_time, first, key=lambda m: self.number(m.time))
        end = bisect_right(in_time, last, lo=start, key=lambda m: self.number(m.time))
        return sorted(in_time[start:end], key=lambda m: m.number)

    def remembered(self) -> list[Measurement]:
        now = self.number(self.clock.now)
        return self.within(now, now)

    def fitted(self, at: int) -> Data:
        latest = self.number(self.clock.measured[at - 1].time)
        return self.table([m for m in self.within(latest - 1, math.inf) if m.number < at])

    def begin(self, at: int | None) -> tuple[Hashable, int]:
        return (self.number(self.clock.now), at), sum(m.number < (at or 0) for m in self.remembered())

    def held(self) -> list[Observation]:
        """Return the failed runs of this and the previous block: a reset is no reason to repeat one at once."""
        now = self.number(self.clock.now)
        return [made for time, made in self.clock.failed if self.number(time) >= now - 1]

    def waiting(self) -> list[Any]:
        now = self.number(self.clock.now)
        unknown = [(q.x, q.index) for q in self.trials.pending.values() if self.number(q.time) == now]
        unknown += [(made.x, made.index) for time, made in self.clock.failed if self.number(time) == now]
        return self.named(unknown)


class RGPUCB(ModelPolicy):
    """GP-UCB that throws its measurements away after every block of time.

    Parameters
    ----------
    domain : Box, Candidates or Space
        Where points may lie.
    block : float, optional
        N, the length of a block in units of time; ``inf`` is GP-UCB. None: :func:`block_length` of ``forgetting``.
    forgetting : float, optional
        ε, how much of the function is new after one unit of time; for the length of a block only.
    horizon : int, optional
        T, a bound on the length of a block.
    width : width, optional
        As in :class:`~surefoot.policy.ucb.gp_ucb.GPUCB`; the round counts on through resets.
    **options
        ``gp``, ``initial``, ``confidence``, ``seed``, ``repeats``, ``journal``. A belief that is fitted is fitted to
        the current and the previous block: a reset forgets the function, not how functions look.

    >>> from surefoot import GP, SE, Candidates
    >>> policy = RGPUCB(Candidates([0.0, 0.5, 1.0]), block=3, gp=GP(SE(0.2), noise=0.01), seed=0)
    >>> for _ in range(4):
    ...     policy.tell(policy.ask(), 1.0)
    >>> policy.posterior().n  # the fourth began a new block
    1
    """

    width: Width

    domains = (Box, Candidates, Space)
    context = ("time",)
    clock: Clock

    def __init__(
        self,
        domain: Domain,
        *,
        block: float | None = None,
        forgetting: float | None = None,
        horizon: int | None = None,
        width: Width | None = None,
        **options: Unpack[ModelOptions],
    ) -> None:
        super().__init__(domain, **options)
        check_one_belief(self.gp, type(self).__name__)
        if block is None:
            if forgetting is None:
                raise ValueError("give the length of a block (block=), or a forgetting rate to derive it from")
            block = block_length(forgetting, self.gp.kernel, domain.dimension, horizon)
        if isinstance(block, bool) or not isinstance(block, (int, float, np.integer, np.floating)) or not block > 0:
            raise ValueError(f"block must be a positive number, got {block!r}")
        self.block = float(block)
        self.width = given_or(width, usual(domain.size, self.confidence))
        self.clock = Clock(self.trials)
        self.rows = BlockRows(self.clock, self.block)  # Algorithm 8, lines 2 and 3: reset μ and σ
        self.rule = UpperConfidence(self.width)  # line 4: x_t = argmax μ_{t−1}(x) + β_t^(1/2) σ_{t−1}(x)
        # Line 6: μ_t and σ_t, of the samples since the last reset alone.
        self.surrogate = Surrogate(self.trials, self.gp, self.stream, rows=self.rows)
        self.trials.held = self.rows.held

    def posterior(self, *, time: float | None = None) -> Posterior:
        """Return the belief given the measurements of the latest block, over encoded points; the caller's own."""
        if time is not None:
            return super().posterior(time=time)  # which refuses
        self.clock.now = self.clock.heard or 0.0
        return self.surrogate.posterior()

    def _recommend(self) -> Recommendation:
        self.clock.now = self.clock.measured[-1].time
        return self._most_promising(
            self.rows.places(), "highest posterior mean among points measured since the last reset"
        )
