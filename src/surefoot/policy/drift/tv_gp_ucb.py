"""TV-GP-UCB: follow the maximum of a function that drifts.

Question: where is the maximum *now*, when old measurements say less and less? ``ask(time=t)`` gives the time (by
default one unit after the latest), ``recommend()`` answers for the latest time that was heard of.

Rule (Algorithm 9): x_t = argmax μ̃_{t−1}(x) + β_t^(1/2) σ̃_{t−1}(x) with the exact posterior of the drift model
(:mod:`surefoot.belief.drift`), in which a measurement fades by (1 − ε)^(1/2) per unit of time.

Reference: Bogunovic, Scarlett & Cevher 2016. Numbers of equations and algorithms are those of Bogunovic's thesis
(2019), chapter 5.

Guarantee: with the true ε, kernel and noise and the width of the theorem, with probability at least 1 − δ R_T ≤ √(C₁ T
β_T (T/Ñ + 1)(γ_Ñ + Ñ³ε/2σ²)) + 2 for every Ñ (Theorem 5.3.3, corrected). Regret is against the moving maximum; for
fixed ε > 0 no method has R_T/T → 0 (Theorem 5.3.1). On finite domains the width ``Finite(1 − δ)`` is enough.

Authors' options: β_t = 0.8 log 4t (``widths.LogTime(0.8, 4.0)``), true or maximum-likelihood ε. Differences: times may
be any numbers, given at ``ask``; ε and the other hyper-parameters may be learned while the policy runs; memory is
bounded. See docs/policies/tv-gp-ucb.md for corrections of the published text.

Cost of one ask on M candidates: O(M · min(n, M)), which stops growing with the number n of measurements; elsewhere as
GP-UCB with at most ``2 · memory`` measurements.
"""

from __future__ import annotations

import contextlib
import math
from bisect import insort
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Unpack, cast

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from surefoot.arguments import whole
from surefoot.belief.drift import LARGEST_DENSE, DriftingGrid, DriftingPosterior
from surefoot.belief.forgetting import (
    ForgettingEstimate,
    check_forgetting,
    drifting,
    estimate_forgetting,
    separate,
)
from surefoot.belief.gp import GP
from surefoot.belief.posterior import Posterior
from surefoot.belief.priors import Fixed, LogNormal, Prior
from surefoot.domain import Candidates, Domain
from surefoot.errors import NoData
from surefoot.loop.policy import Proposal
from surefoot.loop.types import Recommendation
from surefoot.loop.widths import Width
from surefoot.policy.drift.clock import Measurement, Tracking
from surefoot.policy.legacy import ModelOptions, PosteriorScore

__all__ = ["TVGPUCB"]

Array = NDArray[np.float64]

START = 0.01  # the forgetting rate that is believed in before there are data to learn it from
RELEARN = 10  # measurements between two estimates of the forgetting rate alone
FITTED = 200  # measurements that hyper-parameters are fitted to: the latest ones
MEMORY = 500  # measurements kept where memory must be bounded and nothing was said
FAILURES = 64  # failed runs that are held against their points: the latest ones


class TVGPUCB(Tracking):
    """Measure where the upper confidence bound of a drifting function is highest now.

    Parameters
    ----------
    domain : Box, Candidates or Space
        Where points may lie.
    forgetting : float, optional
        ε: how much of the function is new after one unit of time, from 0 (stands still: the queries are GP-UCB's) to 1
        (nothing is left). None: learned from the measurements while the policy runs.
    memory : int, optional
        Measurements that are kept at least; between this many and twice as many of the latest ones are believed, older
        ones forgotten. None: all on up to 4096 candidates, in bounded memory; elsewhere 500.
    width : width, optional
        Standard deviations above the mean, per round; see :mod:`surefoot.widths`. None: ``Finite(confidence)`` on
        finite domains, ``Constant(2.0)`` elsewhere.
    **options
        ``gp`` (of the function at any one time), ``initial``, ``confidence``, ``seed``, ``repeats``, ``journal``.

    >>> from surefoot import GP, SE, Candidates
    >>> policy = TVGPUCB(Candidates([0.0, 0.5, 1.0]), forgetting=0.1, gp=GP(SE(0.2), noise=0.01), seed=0)
    >>> for day in (1, 2, 3, 7):
    ...     query = policy.ask(time=day)
    ...     policy.tell(query, 1.0 - query.x[0])
    >>> policy.recommend().x, policy.time
    (array([0.]), 7.0)
    >>> policy.ask(time=5)
    Traceback (most recent call last):
    ...
    ValueError: time runs backwards: asked for time 5 after time 7.0
    """

    def __init__(
        self,
        domain: Domain,
        *,
        forgetting: float | None = None,
        memory: int | None = None,
        width: Width | None = None,
        **options: Unpack[ModelOptions],
    ) -> None:
        super().__init__(domain, width=width, **options)
        self._given = None if forgetting is None else check_forgetting(forgetting)
        self.memory = None if memory is None else whole(memory, "memory", 1)
        self._still = self._given == 0.0 and memory is None  # then it is GP-UCB, and nothing below is used
        small = isinstance(domain, Candidates) and domain.size <= LARGEST_DENSE
        self._kept = self.memory if self.memory or small else MEMORY
        self._sorted: list[Measurement] = []  # in the order of time
        self._sorted_gone = 0
        self._grid: DriftingGrid | None = None
        self._first = self._next = 0  # measurements in the order of time that the grid holds: first, ..., next − 1
        self._post: DriftingPosterior | None = None
        self._post_from: tuple[int | None, int] = (None, 0)
        if not self._still:
            self._lost = deque(maxlen=FAILURES)
            self.gp = self._with_time(self.gp)

    def _with_time(self, gp: GP) -> GP:
        """The belief over points and times, and what of it is to be learned."""
        made = drifting(gp, START if self._given is None else self._given, self.domain.lower.size)
        fixed: dict[str, Prior] = {"decay": Fixed()}
        if self._given is None:  # learned, alone where the rest of the belief is to be used as it is
            names = [*(f"left.{name}" for name in gp.kernel.names), "noise", "mean"] if gp.every is None else []
            fixed = {name: Fixed() for name in names}
        return replace(made, priors={**(gp.priors or {}), **fixed}, every=self._every(gp))

    def _signal(self, gp: GP) -> float:
        return super()._signal(gp if self._still else separate(gp)[0])

    def _every(self, gp: GP) -> int | None:
        return RELEARN if gp.every is None and self._given is None else gp.every

    @property
    def forgetting(self) -> float:
        """ε in use: as given, or as learned from the measurements so far."""
        if self._given is not None:
            return self._given
        return separate(self._fit(self._due(self._count)))[1]

    def estimate(self, *, confidence: float = 0.95) -> ForgettingEstimate:
        """Return the maximum-likelihood forgetting rate of the latest 200 measurements, with its interval.

        The other hyper-parameters are those in use.

        >>> from surefoot import GP, SE, Candidates
        >>> policy = TVGPUCB(Candidates([0.0]), forgetting=0.1, gp=GP(SE(), noise=0.01), seed=0)
        >>> for value in (1.0, 0.2, -0.9, -0.1, 1.2):
        ...     policy.tell(policy.ask(), value)
        >>> found = policy.estimate()
        >>> 0.1 < found.lower < found.forgetting
        True
        """
        if self._count < 2:
            raise NoData(f"{self._count} measurements say nothing about drift")
        gp = self.gp if self._still else separate(self._fit(self._due(self._count)))[0]
        e = self.domain.lower.size
        X, y, noise = self._arrays(self._between(self._count - FITTED, self._count), times=True)
        return estimate_forgetting(lambda r: drifting(gp, r, e).log_likelihood(X, y, noise), confidence=confidence)

    # -- believing ---------------------------------------------------------------------------------------------------

    def _remember(self, made: Measurement) -> None:
        super()._remember(made)
        if not self._still:
            insort(self._sorted, made, key=lambda m: m.place)

    def _fit(self, at: int | None) -> GP:
        """The hyper-parameters learned from the latest of the first ``at`` measurements."""
        if self._still or at is None:
            return super()._fit(at)
        if at not in self._fits:
            X, y, noise = self._arrays(self._between(at - FITTED, at), times=True)
            priors: dict[str, Prior] = dict(self.gp.priors or {})
            if self._given is None:
                # Time has no unit of its own: the prior is about the typical gap between two measurements.
                gaps = np.diff(np.unique(X[:, -1]))
                decay = 0.5 * START / float(np.median(gaps)) if gaps.size else 0.5 * START
                priors.setdefault("decay", LogNormal.around(decay, 1.5))
            fitted = replace(self.gp, priors=priors).fit(X, y, noise, rng=self.stream("fit", at))
            self._fits = {**{key: gp for key, gp in self._fits.items() if key == self._fit_at}, at: fitted}
        return self._fits[at]

    @contextlib.contextmanager
    def _drifted(self, *, imagine: bool) -> Iterator[DriftingGrid | DriftingPosterior]:
        """The belief about now; with ``imagine`` as if pending and failed points had been measured at their mean."""
        at = self._due(self._count)
        pending = list(self._pending.values()) if imagine else []
        if isinstance(self.domain, Candidates):
            grid = self._settled(at)
            waiting = [(*m.place, m.row, m.value, m.noise) for m in self._sorted[self._next - self._sorted_gone :]]
            waiting += [(cast(float, q.time), self._count + q.id, q.index, math.nan, math.nan) for q in pending]
            with grid.provisional():
                for time, _, index, value, noise in sorted(waiting, key=lambda w: w[:2]):
                    grid.advance(time)
                    if math.isnan(value):
                        grid.hallucinate(cast(int, index))
                    else:
                        grid.provisionally(cast(int, index), value, noise)
                grid.advance(self._now)
                for failed in self._failures() if imagine else []:
                    grid.hallucinate(cast(int, failed.index))
                yield grid
        else:
            belief = self._up_to_date(at)
            belief.time, before = self._now, belief.n
            unknown = [(q.x, cast(float, q.time)) for q in pending]
            unknown += [(o.x, self._now) for o in self._failures()] if imagine else []
            try:
                for x, time in unknown:
                    point = np.append(self.domain.encode(x[None])[0], time)
                    belief.append(point, float(belief.mean(point[None])[0]))
                yield belief
            finally:
                while belief.n > before:
                    belief.pop()

    def _settled(self, at: int | None) -> DriftingGrid:
        """The grid after all measurements that none still under way can precede, in the order of time."""
        if self._grid is None or self._belief_at != at:
            self._restart(at, 0 if at is None else max(0, at - (self._kept or MEMORY)))
            self._belief_at = at
        earliest = min((cast(float, q.time) for q in self._pending.values()), default=math.inf)
        while self._next < self._count:
            made = self._sorted[self._next - self._sorted_gone]
            if made.time > earliest:
                break
            if self._kept is not None and self._next - self._first >= 2 * self._kept:
                last = self._next
                self._restart(at, last - self._kept)
                while self._next < last:
                    self._take(self._sorted[self._next - self._sorted_gone])
            self._take(made)
        held = self._next if at is None and self._kept is None else self._first
        learned = self._count if at is None else at
        first = min(held, learned - max(self._kept or MEMORY, FITTED))
        if first - self._sorted_gone > max(64, len(self._sorted) // 2):
            del self._sorted[: first - self._sorted_gone]
            self._sorted_gone = first
        self._let_go(learned - max(self._kept or MEMORY, FITTED))
        return cast(DriftingGrid, self._grid)

    def _restart(self, at: int | None, first: int) -> None:
        gp, rate = separate(self._fit(at))
        self._grid = DriftingGrid(gp, cast(Candidates, self.domain).points, rate)
        self._first = self._next = first

    def _take(self, made: Measurement) -> None:
        cast(DriftingGrid, self._grid).append(cast(int, made.row), made.value, made.noise, time=made.time)
        self._next += 1

    def _up_to_date(self, at: int | None) -> DriftingPosterior:
        """The direct posterior of the latest ``memory`` to twice as many measurements."""
        kept = cast(int, self._kept)
        base = 0 if at is None else max(0, at - kept)
        first = base + kept * max(0, math.ceil((self._count - base) / kept) - 2)
        if self._post is None or self._post_from != (at, first):
            # Where a live policy factorized follows from the count alone: a rebuilt one does the same arithmetic.
            last = (at or 0) if first == base else first + kept
            rows = self._between(first, last)
            data = self._arrays(rows, times=True) if rows else (None, None, None)
            self._post, self._post_from = DriftingPosterior(self._fit(at), *data), (at, first)
        for made in self._between(first + self._post.n, self._count):
            X, _, _ = self._arrays([made], times=True)
            self._post.append(X[0], made.value, made.noise)
        self._let_go(min(first, (self._count if at is None else at) - max(FITTED, kept)))
        return self._post

    def posterior(self) -> Posterior:
        """Return the belief about the latest time, over encoded points; the caller's own.

        It is the direct form, of the latest ``memory`` measurements, or of 500 where all are believed.
        """
        if self._still:
            return super().posterior()
        self._now = self.time or 0.0
        at = self._due(self._count)
        if isinstance(self.domain, Candidates):
            rows = self._between(self._count - (self._kept or MEMORY), self._count)
            data = self._arrays(rows, times=True) if rows else (None, None, None)
            return DriftingPosterior(self._fit(at), *data, time=self._now)
        found = self._up_to_date(at).copy()
        cast(DriftingPosterior, found).time = self._now
        return found

    # -- choosing and answering --------------------------------------------------------------------------------------

    def _rule(self, step: int, context: Mapping[str, Any]) -> Proposal:
        if self._still:
            return super()._rule(step, context)
        with self._drifted(imagine=True) as belief:
            acquisition = self._acquisition(cast(Posterior, belief), step)
            if isinstance(belief, DriftingGrid):
                return self._best_candidate(acquisition.value(belief.mean, belief.std), step)  # Algorithm 9, line 3
            return self._best_point(PosteriorScore(belief, acquisition), belief, step)

    def _incumbents(self, belief: Posterior, count: int = 3) -> Array | None:
        if self._still:
            return super()._incumbents(belief, count)
        return self._best_of(self._between(self._count - FITTED, self._count), belief, count)

    def recommend(self, time: float | None = None) -> Recommendation:
        """Return what is best now, or at a later time: the point of the highest mean.

        Parameters
        ----------
        time : float, optional
            By default the latest time that was heard of.
        """
        latest = self.time
        self._now = self._clock({"time": latest if time is None else time})
        return super().recommend()

    def _recommend(self) -> Recommendation:
        if self._still:
            return super()._recommend()
        with self._drifted(imagine=False) as belief:
            if isinstance(belief, DriftingGrid):
                X, mean, std = cast(Candidates, self.domain).points, belief.mean, belief.std
                rule = "highest posterior mean now"
            else:
                X = np.array([m.x for m in self._between(max(self._post_from[1], self._count - FITTED), self._count)])
                mean, std = belief.predict(self.domain.encode(X))
                rule = "highest posterior mean now among the latest measured points"
            best = int(np.argmax(mean))
            middle, half = float(mean[best]), float(ndtri(0.5 + 0.5 * self.confidence) * std[best])
        return self._recommendation(X[best], mean=middle, lower=middle - half, upper=middle + half, rule=rule)
