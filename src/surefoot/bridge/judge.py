"""Whether to end a run, judged by its scores and those of other runs alone, for schedulers of other software.

It is the first of the two conditions of :class:`~surefoot.policy.epochs.bo_bos.BOBOS`: the table of
:mod:`surefoot.stopping`, with the best run that has ended as the one to beat and a loss K₁ that grows from run to run.
The second condition needs that policy's belief; a scheduler has none.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot.arguments import whole
from surefoot.loop.streams import stream
from surefoot.loop.types import Advice
from surefoot.policy.epochs.abandon import growing_loss, score_range
from surefoot.policy.epochs.bo_bos import default_rule
from surefoot.stopping import OptimalStopping, Watch

__all__ = ["Judge"]

Array = NDArray[np.float64]
_WATCHES = 64  # runs under way of which the tables are kept


class Judge:
    """Says whether a run should end, from the scores it has shown and the runs that have ended.

    Parameters
    ----------
    epochs : int
        Length of a complete run.
    stopping : OptimalStopping, optional
        Losses, curve model, and the number of first epochs that every run is given. None: the rule of ``BOBOS``.
    bounds : (float, float), optional
        Range of the values, in the host's direction. None: from the runs so far. A run that leaves given bounds is not
        judged.
    complete : int
        Nothing is stopped before so many runs have ended.
    growth : float
        g in K₁,ₜ = K₁/g^(t−1), 0 < g ≤ 1, where t counts the runs from then on.
    stop_until : int, optional
        T₀: from run T₀ + 1 on, so counted, nothing is stopped.
    seed : int
        Names the simulated curves.

    What it says follows from its arguments. Tables are kept while a run lasts, which only saves time.

    >>> judge = Judge(epochs=20, bounds=(0.0, 1.0), complete=1, seed=0)
    >>> good = np.linspace(0.5, 0.95, 20)
    >>> judge.advise(1, {n: 0.1 + 0.001 * n for n in range(1, 8)}, [good]).stop
    True
    >>> judge.advise(2, {n: 0.97 - 0.4 * 0.7**n for n in range(1, 8)}, [good]).reason
    'may still beat 0.95 (probability ...)'
    """

    def __init__(
        self,
        *,
        epochs: int,
        stopping: OptimalStopping | None = None,
        bounds: tuple[float, float] | None = None,
        complete: int = 5,
        growth: float = 0.95,
        stop_until: int | None = None,
        seed: int = 0,
    ) -> None:
        for name, number, lowest in (("epochs", epochs, 1), ("complete", complete, 1), ("stop_until", stop_until, 0)):
            if number is None and name == "stop_until":
                continue
            whole(number, name, lowest)
        if stopping is not None and not isinstance(stopping, OptimalStopping):
            raise TypeError(f"stopping must be an OptimalStopping, got {stopping!r}")
        if stopping is not None and stopping.epochs != epochs:
            raise ValueError(f"the stopping rule is for runs of {stopping.epochs} epochs, not {epochs}")
        if not 0.0 < growth <= 1.0:
            raise ValueError(f"growth must lie in (0, 1], got {growth!r}")
        if bounds is not None and not (np.shape(bounds) == (2,) and -math.inf < bounds[0] < bounds[1] < math.inf):
            raise ValueError(f"bounds are two finite numbers, the smaller one first, got {bounds!r}")
        self.epochs = int(epochs)
        self.stopping = default_rule(self.epochs) if stopping is None else stopping
        self.bounds, self.complete, self.growth, self.stop_until = bounds, complete, growth, stop_until
        self.seed = seed
        self._watches: dict[int, tuple[tuple[float, ...], Watch]] = {}

    def __getstate__(self) -> dict[str, object]:
        return {**vars(self), "_watches": {}}

    def advise(self, run: int, scores: Mapping[int, float], ended: Sequence[ArrayLike], *, sign: float = 1.0) -> Advice:
        """Return whether to end a run, why, the probability that it still wins, and the epochs it saves.

        Parameters
        ----------
        run : int
            Number of the run in the order of their beginnings, from 0.
        scores : mapping of int to float
            Its scores by epoch from 1, more is better; NaN where the run gave no finite number.
        ended : sequence of arrays
            The scores of each run that has ended, the last one last: the best of these is to be beaten.
        sign : float
            1 or −1: what turns the host's values into scores.
        """
        if not scores:
            return Advice(False, "nothing was reported yet")
        now = max(scores)
        if now >= self.epochs:
            return Advice(False, "complete", None, 0.0)
        if now <= self.stopping.initial:
            return Advice(False, f"the first {self.stopping.initial} epochs are always run")
        if math.isnan(scores[now]):
            return Advice(True, "diverged: the value is no finite number", 0.0, float(self.epochs - now))
        runs = [np.asarray(other, dtype=np.float64) for other in ended]
        ends = [float(other[-1]) for other in runs if other.size and math.isfinite(other[-1])]
        if len(ends) < self.complete:
            return Advice(False, f"the first {self.complete} runs are completed")
        k1 = self._k1(run)
        if math.isinf(k1):
            return Advice(False, "stopping is switched off")
        at, values = zip(*((n, scores[n]) for n in sorted(scores) if not math.isnan(scores[n])), strict=True)
        curve = np.interp(np.arange(1, now + 1), at, values)
        low, high = self._range(runs, curve, sign)
        unit = (curve - low) / (high - low)
        if self.bounds is not None and (unit.min() < -1e-9 or unit.max() > 1.0 + 1e-9):
            return Advice(False, f"not judged: a value lies outside bounds={self.bounds}")
        bar = max(ends)
        others = [(other - low) / (high - low) for other in runs if np.isfinite(other).all()]
        watch = self._watch(run, ((bar - low) / (high - low), k1, low, high), others)
        decision = watch.report(np.clip(unit, 0.0, 1.0))
        chance = decision.probability
        odds = f"{sign * bar:.6g}" + ("" if chance is None else f" (probability {chance:.2g})")
        if decision.stop:
            return Advice(True, f"will not beat {odds}", chance, float(self.epochs - now))
        return Advice(False, f"may still beat {odds}", chance, decision.saved)

    def _k1(self, run: int) -> float:
        t = max(1, run - self.complete + 1)
        return growing_loss(self.stopping.k1, t, growth=self.growth, stop_until=self.stop_until)

    def _range(self, runs: Sequence[Array], curve: Array, sign: float) -> tuple[float, float]:
        if self.bounds is not None:
            low, high = sorted(sign * bound for bound in self.bounds)
            return low, high
        known = np.concatenate([*runs, curve[: self.stopping.initial]])
        return score_range(known[np.isfinite(known)], self.stopping.room)

    def _watch(self, run: int, problem: tuple[float, ...], others: Sequence[Array]) -> Watch:
        """The tables of one run; begun again when a run that ended meanwhile has changed the problem."""
        known = self._watches.pop(run, None)
        if known is None or known[0] != problem:
            threshold, k1, *_ = problem
            draws = lambda n: stream(self.seed, "paths", n, within=(run,))  # noqa: E731
            known = (problem, self.stopping.learnt(others).watch(threshold, draws, k1=k1))
        self._watches[run] = known
        for old in list(self._watches)[:-_WATCHES]:
            del self._watches[old]
        return known[1]
