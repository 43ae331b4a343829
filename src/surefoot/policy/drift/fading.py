"""The belief of TV-GP-UCB, kept in step with its trials: measurements fade, and the oldest are forgotten.

:class:`FadingSurrogate` keeps the direct form, over the latest ``memory`` to twice as many measurements;
:class:`FadingGrid` that of all candidates at once, which costs no more when measurements go on. Both speak of the time
of the policy's clock; any rule may ask them.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from surefoot.belief.drift import DriftingGrid, DriftingPosterior
from surefoot.belief.forgetting import drifting, separate
from surefoot.belief.gp import GP
from surefoot.belief.posterior import Posterior
from surefoot.belief.priors import Fixed, LogNormal, Prior
from surefoot.belief.protocol import EVERY, Belief
from surefoot.loop.clock import Clock, Measurement
from surefoot.loop.types import Observation
from surefoot.policy.drift.memory import TimedRows, points
from surefoot.policy.surrogate import Data, Stream, Surrogate

__all__ = ["FadingGrid", "FadingRows", "FadingSurrogate", "LearnForgetting", "with_time"]

Array = NDArray[np.float64]

START = 0.01  # the forgetting rate that is believed in before there are data to learn it from
RELEARN = 10  # measurements between two estimates of the forgetting rate alone
FITTED = 200  # measurements that hyper-parameters are fitted to: the latest ones
MEMORY = 500  # measurements kept where memory must be bounded and nothing was said
FAILURES = 64  # failed runs that are held against their points: the latest ones


def with_time(gp: GP, forgetting: float | None, dimension: int) -> GP:
    """Return the belief over points and times, and what of it is to be learned; a rate of None is.

    >>> with_time(GP(), None, 1).every  # the rate alone, now and then
    10
    """
    made = drifting(gp, START if forgetting is None else forgetting, dimension)
    fixed: dict[str, Prior] = {"decay": Fixed()}
    if forgetting is None:  # learned, alone where the rest of the belief is to be used as it is
        names = [*(f"left.{name}" for name in gp.kernel.names), "noise", "mean"] if gp.every is None else []
        fixed = {name: Fixed() for name in names}
    every = RELEARN if gp.every is None and forgetting is None else gp.every
    return replace(made, priors={**(gp.priors or {}), **fixed}, every=every)


class LearnForgetting:
    """Fit a belief over points and times; the prior of the rate is about the typical gap between measurements.

    >>> LearnForgetting(with_time(GP(), None, 1)).gp.every
    10
    """

    def __init__(self, gp: GP) -> None:
        self.gp = gp

    def __call__(self, X: Array, y: Array, noise: Array | None, /, *, rng: np.random.Generator) -> GP:
        gaps = np.diff(np.unique(X[:, -1]))  # time has no unit of its own
        decay = 0.5 * START / float(np.median(gaps)) if gaps.size else 0.5 * START
        priors: dict[str, Prior] = dict(self.gp.priors or {})
        priors.setdefault("decay", LogNormal.around(decay, 1.5))
        return replace(self.gp, priors=priors).fit(X, y, noise, rng=rng)


class FadingRows(TimedRows):
    """Measurements with their times; hyper-parameters are fitted to the latest ones.

    >>> from surefoot import TVGPUCB, Box
    >>> FadingRows(TVGPUCB(Box([(0.0, 1.0)]), seed=0).clock).held()
    []
    """

    stamped = True

    def remembered(self) -> Sequence[Measurement]:
        return self.latest(FITTED)

    def latest(self, count: int) -> list[Measurement]:
        """Return the latest measurements."""
        return self.clock.between(self.successes - count, self.successes)

    def fitted(self, at: int) -> Data:
        return self.table(self.clock.between(at - FITTED, at))

    def signal(self, gp: GP) -> float:
        return super().signal(separate(gp)[0])

    def held(self) -> list[Observation]:
        """Return the latest failed runs: they fade too."""
        return [made for _, made in self.clock.failed[-FAILURES:]]

    def waiting(self) -> list[Array]:
        """Return pending points with their times, and failed ones as of now."""
        made = [(query.x, cast(float, query.time)) for query in self.trials.pending.values()]
        made += [(run.x, self.clock.now) for run in self.trials.failures]
        return [np.append(self.domain.encode(x[None])[0], time) for x, time in made]


class FadingSurrogate(Surrogate):
    """What is believed now, directly, of the latest ``memory`` to twice as many measurements.

    Parameters
    ----------
    clock : Clock
        When things took place, and the time that is spoken of.
    gp : GP
        From :func:`with_time`.
    stream : callable
        The policy's keyed streams.
    memory : int, optional
        Measurements that are kept at least; None: all, where the form allows it.

    >>> from surefoot import TVGPUCB, Box
    >>> TVGPUCB(Box([(0.0, 1.0)]), seed=0).surrogate.memory
    500
    """

    rows: FadingRows

    def __init__(self, clock: Clock, gp: GP, stream: Stream, memory: int | None) -> None:
        super().__init__(clock.trials, gp, stream, rows=FadingRows(clock), fitter=LearnForgetting(gp))
        self.clock, self.memory = clock, memory
        self._first = 0  # the first measurement that is believed

    def believe(self) -> Belief:
        at, count, memory = self.due(self.rows.successes), self.rows.successes, cast(int, self.memory)
        base = 0 if at is None else max(0, at - memory)
        first = base + memory * max(0, math.ceil((count - base) / memory) - 2)
        if self._known is None or self._known_by != (at, first):
            # Where a live policy factorized follows from the count alone: a rebuilt one does the same arithmetic.
            last = (at or 0) if first == base else first + memory
            # μ̃ and σ̃ of (5.3) and (5.4)
            self._known = DriftingPosterior(self.fit(at), *self.rows.table(self.clock.between(first, last)))
            self._known_by = (at, first)
        X, y, noise = self.rows.table(self.clock.between(first + self._known.n, count))
        for i in range(len(y)):
            self._known.append(X[i], y[i], None if noise is None else noise[i])
        self._known.time = self.clock.now
        self._first = first
        return cast(Belief, self._known)

    def eligible(self) -> tuple[Array, Any]:
        """Return the points that may be the answer, and how the belief names them."""
        count = self.rows.successes
        X = points(self.clock.between(max(self._first, count - FITTED), count), self.domain.dimension)
        return X, self.domain.encode(X)


class FadingGrid(FadingSurrogate):
    """What is believed now at all candidates at once, one belief at a time.

    The grid takes measurements in the order of time, up to the first that a query under way may still precede. What
    comes after is laid upon it for the moment: the next call takes it away again.

    >>> from surefoot import TVGPUCB, Candidates
    >>> TVGPUCB(Candidates([0.0, 1.0]), seed=0).surrogate.believe().expected([0, 1])
    array([0., 0.])
    """

    _known: DriftingGrid
    _next = 0  # the grid holds measurements first, ..., next − 1 in the order of time

    def believe(self) -> Belief:
        return self._speak(imagine=False)

    @contextlib.contextmanager
    def hallucinated(self, noises: Sequence[float | None] | None = None) -> Iterator[Belief]:
        belief = self._speak(imagine=True)
        try:
            yield belief
        finally:
            self._known.undo(self._known.marks)

    def _speak(self, *, imagine: bool) -> Belief:
        """The belief about now; with ``imagine`` as if pending and failed points had been measured at their mean."""
        grid, count = self._settled(), self.rows.successes
        later = [(*m.place, m.row, m.value, m.noise) for m in self.clock.in_time[self._next :]]
        if imagine:
            pending = self.trials.pending.values()
            later += [(cast(float, q.time), count + q.id, q.index, math.nan, math.nan) for q in pending]
        grid.mark()
        for time, _, row, value, noise in sorted(later, key=lambda w: w[:2]):
            grid.advance(time)
            if math.isnan(value):
                grid.hallucinate(cast(int, row))
            else:
                grid.provisionally(cast(int, row), value, noise)
        grid.advance(self.clock.now)
        for failed in self.trials.failures if imagine else []:
            grid.hallucinate(cast(int, failed.index))
        return grid

    def _settled(self) -> DriftingGrid:
        """The grid with all measurements that none still under way can precede."""
        at, memory, in_time = self.due(self.rows.successes), self.memory, self.clock.in_time
        if self._known is None or self._known_by != at:
            self._begin(at, 0 if at is None else max(0, at - (memory or MEMORY)))
        self._known.undo(self._known.marks)
        earliest = min((cast(float, query.time) for query in self.trials.pending.values()), default=math.inf)
        while self._next < len(in_time) and in_time[self._next].time <= earliest:
            if memory is not None and self._next - self._first >= 2 * memory:  # forget the older half
                last = self._next
                self._begin(at, last - memory)
                self._take(in_time[last - memory : last])
            self._take([in_time[self._next]])
        return self._known

    def _begin(self, at: int | None, first: int) -> None:
        gp, rate = separate(self.fit(at))
        self._known, self._known_by = DriftingGrid(gp, self.domain.enumerate(), rate), at
        self._first = self._next = first

    def _take(self, chosen: Sequence[Measurement]) -> None:
        for made in chosen:
            self._known.append(cast(int, made.row), made.value, made.noise, time=made.time)
            self._next += 1

    def posterior(self) -> Posterior:
        latest = self.rows.latest(self.memory or MEMORY)
        return DriftingPosterior(self.now(), *self.rows.table(latest), time=self.clock.now)

    def eligible(self) -> tuple[Array, Any]:
        return self.domain.enumerate(), EVERY
