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
from typing import Unpack, cast

import numpy as np
from numpy.typing import NDArray

from surefoot.arguments import whole
from surefoot.belief.forgetting import check_forgetting
from surefoot.belief.gp import GP
from surefoot.belief.grid import GridPosterior
from surefoot.belief.kernels import Kernel, Matern
from surefoot.belief.posterior import Posterior
from surefoot.domain import Candidates, Domain
from surefoot.loop.types import Observation, Recommendation
from surefoot.loop.widths import Width
from surefoot.policy.drift.clock import Measurement, Tracking
from surefoot.policy.legacy import ModelOptions

__all__ = ["RGPUCB", "block_length"]

Array = NDArray[np.float64]


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
        c = dimension * (dimension + 1) / (2.0 * kernel.nu + dimension * (dimension + 1))
        return math.ceil(min(horizon_, 24.0 * math.pow(rate, -1.0 / (4.0 - c))))
    return math.ceil(min(horizon_, 12.0 * math.pow(rate, -0.25)))


class RGPUCB(Tracking):
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
        super().__init__(domain, width=width, **options)
        if block is None:
            if forgetting is None:
                raise ValueError("give the length of a block (block=), or a forgetting rate to derive it from")
            block = block_length(forgetting, self.gp.kernel, domain.dimension, horizon)
        if isinstance(block, bool) or not isinstance(block, (int, float, np.integer, np.floating)) or not block > 0:
            raise ValueError(f"block must be a positive number, got {block!r}")
        self.block = float(block)
        self._belief_of: tuple[int, int | None] = (0, None)

    def _block_of(self, time: float) -> int:
        """The number of the block that a time lies in; the first begins with the first query or measurement."""
        if math.isinf(self.block):
            return 0
        first = self._queries[0].time if self._queries else None
        start = first if self._began is None else self._began if first is None else min(first, self._began)
        return 0 if start is None else int((time - start) // self.block)

    def _current(self) -> list[Measurement]:
        """The measurements since the last reset, in the order in which they were told."""
        block = self._block_of(self._now)
        return [m for m in self._log if self._block_of(m.time) == block]

    def _encoded(self) -> tuple[Array, Array, Array | None]:
        return self._arrays(self._current())

    def _fit(self, at: int | None) -> GP:
        if at is None:
            return self.gp
        if at not in self._fits:
            latest = self._block_of(self._between(at - 1, at)[0].time)
            rows = [m for m in self._between(0, at) if self._block_of(m.time) >= latest - 1]
            X, y, noise = self._arrays(rows)
            fitted = self.gp.fit(X, y, None if np.isnan(noise).all() else noise, rng=self.stream("fit", at))
            self._fits = {**{key: gp for key, gp in self._fits.items() if key == self._fit_at}, at: fitted}
        return self._fits[at]

    def _believe(self) -> Posterior | GridPosterior:
        block, at = self._block_of(self._now), self._due(self._count)
        gp, rows = self._fit(at), self._current()
        belief = self._belief
        if belief is None or self._belief_of != (block, at) or belief.n > len(rows):
            first = [m for m in rows if at is not None and m.number < at]
            X, y, noise = self._arrays(first)
            if isinstance(self.domain, Candidates):
                indices = np.array([m.row for m in first], dtype=np.intp)
                belief = GridPosterior.condition(gp, self.domain.points, indices, y, noise)
            else:
                belief = gp.condition(X, y, noise)
        for made in rows[belief.n :]:
            if isinstance(belief, GridPosterior):
                belief.append(cast(int, made.row), made.value, made.noise)
            else:
                belief.append(self._arrays([made])[0][0], made.value, made.noise)
        self._belief, self._belief_of = belief, (block, at)
        self._forget(block)
        return belief

    def _forget(self, block: int) -> None:
        """Let go of what lies before the previous block."""
        old = next((i for i, m in enumerate(self._log) if self._block_of(m.time) >= block - 1), len(self._log))
        self._let_go(self._gone + old)
        while self._lost and self._block_of(self._lost[0][0]) < block - 1:
            self._lost.popleft()

    def _failures(self) -> list[Observation]:
        """The failed runs of this and the previous block: a reset is no reason to repeat one at once."""
        block = self._block_of(self._now)
        return [observation for time, observation in self._lost if self._block_of(time) >= block - 1]

    def _unknown(self) -> list[tuple[Array, int | None]]:
        block = self._block_of(self._now)
        pending = [(q.x, q.index) for q in self._pending.values() if self._block_of(cast(float, q.time)) == block]
        return pending + [(o.x, o.index) for time, o in self._lost if self._block_of(time) == block]

    def _incumbents(self, belief: Posterior, count: int = 3) -> Array | None:
        return self._best_of(self._current(), belief, count)

    def posterior(self) -> Posterior:
        """Return the belief given the measurements of the latest block, over encoded points; the caller's own."""
        self._now = self._heard or 0.0
        return super().posterior()

    def _recommend(self) -> Recommendation:
        self._now = self._log[-1].time if self._log else 0.0
        X = np.array([m.x for m in self._current()])
        return self._most_promising(X, "highest posterior mean among points measured since the last reset")
