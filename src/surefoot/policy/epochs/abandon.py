"""Abandoning runs: BO-BOS's judgement of a run in progress, its conditions C1 and C2.

The second half of :mod:`surefoot.policy.epochs.bo_bos`, which explains the rule and its options.

Cost of a report: little, but about 0.1 s where a table is made.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot.loop.types import Advice, Query
from surefoot.policy.epochs.runs import Runs
from surefoot.policy.surrogate import Stream
from surefoot.stopping import OptimalStopping, Watch

__all__ = ["AbandonRuns", "growing_loss", "score_range"]

Array = NDArray[np.float64]


def growing_loss(k1: float, run: int, *, growth: float, stop_until: int | None = None) -> float:
    """Return K₁,ₜ = K₁/g^(t−1), the loss of stopping the winner in run t ≥ 1; infinite after run ``stop_until``.

    >>> [growing_loss(100.0, t, growth=0.5, stop_until=3) for t in (1, 2, 3, 4)]
    [100.0, 200.0, 400.0, inf]
    """
    if stop_until is not None and run > stop_until:
        return math.inf
    return float(k1 / growth ** (run - 1))  # K₁,ₜ = K₁,ₜ₋₁/g


class AbandonRuns:
    """Algorithm 4.1, lines 3 to 9: end a run at the first epoch at which C1 and C2 hold.

    Parameters
    ----------
    runs : Runs
        What is known of the runs.
    stream : callable
        The policy's keyed streams.
    stopping : OptimalStopping
        The stopping problem of a run.
    growth, stop_until, bounds, complete, offset, myopic
        As of :class:`~surefoot.policy.epochs.bo_bos.BOBOS`.

    >>> from surefoot import BOBOS, Box
    >>> BOBOS(Box([(0.0, 1.0)]), epochs=50, stop_until=0, seed=0).adviser.k1(0)
    inf
    """

    def __init__(
        self,
        runs: Runs,
        stream: Stream,
        stopping: OptimalStopping,
        *,
        growth: float,
        stop_until: int | None,
        bounds: tuple[float, float] | None,
        complete: int,
        offset: float | str,
        myopic: float | None,
    ) -> None:
        self.runs, self.stream, self.stopping = runs, stream, stopping
        self.growth, self.stop_until, self.bounds = growth, stop_until, bounds
        self.complete, self.offset, self.myopic = complete, offset, myopic
        self._ranges: dict[int, tuple[float, float]] = {}  # range of scores when a run had shown its first epochs
        self._watches: dict[int, tuple[float, Watch]] = {}
        self._verdicts: dict[int, tuple[int, str | None]] = {}  # last judged epoch, and why the run was stopped there

    def advise(self, query: Query, step: int, value: float | None) -> Advice:
        """Judge a run, and remember the verdict on its latest epoch."""
        advice = self._judge(query, step, value)
        if step == max(self.runs.trials.reports[query.id]):
            self._verdicts[query.id] = (step, advice.reason if advice.stop else None)
        return advice

    def _judge(self, query: Query, step: int, value: float | None) -> Advice:
        bar, first, epochs = self.runs.bar(query.id, step), self.stopping.initial, self.runs.epochs
        if value is None:
            return self.runs.advise(query, step, value)
        if step >= epochs:
            return Advice(False, "complete", None, 0.0)
        if query.id < self.complete:
            return Advice(False, f"the first {self.complete} runs are completed")
        if step <= first:  # line 3: N₀ epochs
            return Advice(False, f"the first {first} epochs are always run")
        if bar is None:
            return Advice(False, "there is no other run to compare with")
        k1 = self.k1(query.id)
        if math.isinf(k1):
            return Advice(False, "stopping is switched off")
        low, high = self._range(query.id)
        curve = (self.runs.scores(query, step) - low) / (high - low)
        if self.bounds is not None and (curve.min() < -1e-9 or curve.max() > 1.0 + 1e-9):
            return Advice(False, f"not judged: a score lies outside bounds={self.runs.trials.facing(self.bounds)}")
        offset = float(query.note.get("offset", 0.0 if self.offset == "theorem" else self.offset))
        threshold = (bar - offset - low) / (high - low)  # y*_{t−1} − ξ_t, of the events θ_t (section 4.3.2)
        # Line 5, solve (4.1), and line 9, C1: stopping, d₁, has the smallest expected loss.
        decision = self._watch(query.id, threshold, k1).report(np.clip(curve, 0.0, 1.0))
        stop, chance = decision.stop, decision.probability
        if self.myopic is not None:
            stop = chance is not None and chance < self.myopic and curve.max() <= threshold
        odds = "" if chance is None else f" (probability {chance:.2g})"
        if stop and step in query.note.get("unsure", ()):  # line 9, C2: σ_{t−1}([x_t, N]) ≤ κ σ_{t−1}([x_t, n])
            reason = f"looks hopeless{odds}, but the belief knows too little about the last epoch (C2)"
            return Advice(False, reason, chance, decision.saved)
        best = self.runs.trials.facing(bar - offset)
        if stop:
            return Advice(True, f"will not beat {best:.6g}{odds}", chance, float(epochs - step))
        return Advice(False, f"may still beat {best:.6g}{odds}", chance, decision.saved)

    def k1(self, id: int) -> float:
        """Return K₁,ₜ of a run, t its number among those that the rule chose."""
        t = max(1, sum("initial" not in query.note for query in self.runs.trials.queries[:id]) + 1)
        return growing_loss(self.stopping.k1, t, growth=self.growth, stop_until=self.stop_until)

    def _watch(self, id: int, threshold: float, k1: float) -> Watch:
        """The tables of one run; begun again when a run closed meanwhile raises the threshold."""
        known = self._watches.get(id)
        if known is None or known[0] != threshold:
            first = id * self.runs.epochs
            watch = self._learnt(id).watch(threshold, lambda n: self.stream("paths", first + n), k1=k1)
            for closed in [key for key in self._watches if key not in self.runs.trials.pending]:
                del self._watches[closed]
            self._watches[id] = known = (threshold, watch)
        return known[1]

    def _learnt(self, id: int) -> OptimalStopping:
        """The stopping problem of a run; its model knows what had been completed when the run had shown its start."""
        low, high = self._range(id)
        done = [run.id for run in self.runs.closed_before(id, self._first(id)) if run.id is not None]
        return self.stopping.learnt([(self.runs.scores(run) - low) / (high - low) for run in done])

    def _first(self, id: int) -> int:
        """The epoch at which a run had shown its first epochs."""
        return min(n for n in self.runs.trials.reports[id] if n >= self.stopping.initial)

    def _range(self, id: int) -> tuple[float, float]:
        """The range of scores in which a run is judged: as given, else as known when it had shown its first epochs."""
        if self.bounds is not None:
            return self.bounds
        if id not in self._ranges:
            trials = self.runs.trials
            events = trials.events[: self.runs.known_at(id, self._first(id))[0]]
            values = [e["value"] for e in events if e["event"] in ("told", "reported") and e["value"] is not None]
            self._ranges[id] = score_range(np.array([trials.facing(value) for value in values]), self.stopping.room)
        return self._ranges[id]

    @property
    def stopped(self) -> dict[int, str]:
        """Why each run that was advised to stop at its last report was, by query id; diverged runs included."""
        for id, reports in self.runs.trials.reports.items():
            last = max(reports)
            if last < self.runs.epochs and self._verdicts.get(id, (-1,))[0] != last:
                self.advise(self.runs.trials.queries[id], last, reports[last])  # a journal keeps reports, not advice
        return {id: reason for id, (_, reason) in sorted(self._verdicts.items()) if reason is not None}

    @property
    def saved(self) -> int:
        """Epochs that stopped runs did not need."""
        return sum(self.runs.epochs - self.runs.length(self.runs.trials.queries[id]) for id in self.stopped)

    def cache(self) -> dict[str, Any]:
        """Return the verdicts, JSON-able."""
        return {"verdicts": [[id, *verdict] for id, verdict in sorted(self._verdicts.items())]}

    def restore(self, cache: dict[str, Any]) -> None:
        """Take back what :meth:`cache` gave."""
        self._verdicts = {id: (step, reason) for id, step, reason in cache.get("verdicts", [])}


def score_range(scores: Array, room: float = 0.1) -> tuple[float, float]:
    """Return a range for scores without known bounds: far outliers below are cut off, with some room above the best.

    The cut is Tukey's outer fence; the losses of diverging runs lie far beyond it. ``room`` is in ranges of the scores.

    >>> score_range(np.array([-1e6, 0.1, 0.2, 0.3, 0.4, 0.5]))
    (-0.6..., 0.6...)
    """
    lower, upper = np.percentile(scores, [25, 75])
    low = max(float(scores.min()), float(lower - 3.0 * (upper - lower)))
    high = float(scores.max())
    if not high > low:
        low, high = high - 1.0, high
    return low, high + room * (high - low)
