"""BO-BOS: Bayesian optimization that abandons runs which will not beat the best one.

Question: which configuration to run next, and when to give a run up, if a run takes many epochs and reports a score
after each of them?

Rule: x_t maximizes the upper confidence bound at the last epoch, μ_{t−1}([x, N]) + β_t^(1/2) σ_{t−1}([x, N]), under a
Gaussian process over [x, n]. Run t is given N₀ epochs; then a Bayesian optimal stopping problem with the threshold
h_t = y*_{t−1} − ξ_t is solved on simulated continuations of its curve (:mod:`surefoot.stopping`). It ends at the first
epoch n at which

* C1: the table says that stopping has the smallest expected loss, and
* C2: σ_{t−1}([x_t, N]) ≤ κ σ_{t−1}([x_t, n]), the belief is not much less sure about the end than about now;

else at N. What the belief learns is the last score, and on request a few on the way. The loss K₁ of stopping a run that
would have won grows from run to run, K₁,ₜ = K₁,₁/g^(t−1), and is infinite after the run ``stop_until``.

Reference: Dai, Yu, Low & Jaillet 2019, Algorithm 4.1 (as numbered in the thesis) and section 4.

Guarantee: with η_t = (K₂ + c)/K₁,ₜ, τ_T stopped runs, the width and ξ_t of the theorem, E[S_T] ≤ κ √(C₁ β_T γ_T/T) +
Σ η_t/T + τ_T N b √(log(da/δ'))/T (Theorem 4.1). The regret vanishes if K₁,₁ ≥ K₂ + c, K₁ grows, and stopping ends after
some finite run, ``stop_until`` (Theorem 4.2). A growing K₁ alone is not enough: a table whose simulated curves never
win stops at any finite K₁.

Authors' options: :meth:`BOBOS.published`. Differences: the standing defaults forecast plateaus, make a new table where
a curve leaves the simulated ones, take the range of scores from the runs, and see epochs on a logarithmic scale;
the docs page says why. C2 uses the standard deviation of the latent function. Several runs may be under way: pending
ones are hallucinated at their last epoch, and a run is judged by the best run closed before its report.

Cost of one ask: as :mod:`surefoot.policy.epochs.runs`. Cost of a report: little, but about 0.1 s where a table is made.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self, Unpack, cast

import numpy as np
from numpy.typing import NDArray

from surefoot.arguments import number, open_unit, whole
from surefoot.belief.gp import GP
from surefoot.belief.kernels import Matern
from surefoot.belief.posterior import Posterior
from surefoot.belief.priors import Fixed
from surefoot.domain import Domain
from surefoot.loop.policy import Proposal
from surefoot.loop.state import storable
from surefoot.loop.types import Advice, Query
from surefoot.loop.widths import Logarithmic, Width
from surefoot.policy.base import ModelOptions
from surefoot.policy.epochs.runs import EpochPolicy
from surefoot.stopping import ExponentialDecay, OptimalStopping, Plateau, Watch

__all__ = ["BOBOS", "default_rule", "growing_loss", "incumbent_offset", "score_range"]

Array = NDArray[np.float64]
storable(OptimalStopping)

COMPLETE = 3  # runs at the start that are never stopped: enough to know a range of scores, and something to beat


def incumbent_offset(run: int, noise: float, confidence: float = 0.9) -> float:
    """Return ξ_t = √(2σ² log(π² t² (t − 1)/6δ)): by how much the luckiest of t − 1 noisy scores may exceed the best.

    With probability at least ``confidence`` = 1 − δ, y*_{t−1} − ξ_t is at most the noise-free score of the best run,
    for all t at once (Lemma A.7). ``noise`` is the variance σ²; ξ_1 = 0.

    >>> [round(incumbent_offset(t, 1.0, 0.9), 2) for t in (1, 2, 10, 50)]
    [0.0, 2.89, 4.38, 5.39]
    """
    if run < 2:
        return 0.0
    return math.sqrt(2.0 * noise * math.log(math.pi**2 * run**2 * (run - 1) / (6.0 * (1.0 - confidence))))


def growing_loss(k1: float, run: int, *, growth: float, stop_until: int | None = None) -> float:
    """Return K₁,ₜ = K₁/g^(t−1), the loss of stopping the winner in run t ≥ 1; infinite after run ``stop_until``.

    >>> [growing_loss(100.0, t, growth=0.5, stop_until=3) for t in (1, 2, 3, 4)]
    [100.0, 200.0, 400.0, inf]
    """
    if stop_until is not None and run > stop_until:
        return math.inf
    return float(k1 / growth ** (run - 1))


class BOBOS(EpochPolicy):
    """Choose configurations by GP-UCB, and abandon runs that will not beat the best one.

    Parameters
    ----------
    domain : Box, Candidates or Space
        Where configurations may lie.
    epochs : int
        N, the length of a complete run.
    stopping : OptimalStopping, optional
        The stopping problem of a run: losses, curve model, first epochs N₀. None: a rule for runs of ``epochs`` epochs
        with N₀ = 16 % of them, curves that may level off, and a new table where a curve leaves the simulated ones.
    growth : float
        g in K₁,ₜ = K₁,₁/g^(t−1), 0 < g ≤ 1; 1 keeps K₁ fixed, which loses the guarantee.
    stop_until : int, optional
        T₀: from run T₀ + 1 on nothing is stopped.
    kappa : float
        κ ≥ 1 of C2; ``inf`` drops the condition.
    bounds : (float, float), optional
        Range of the scores, mapped to [0, 1] for the stopping problem. None: from the scores seen so far, which suits
        losses and any other unbounded score. A run with a score outside given bounds is not judged.
    complete : int, optional
        Number of runs at the start that are never stopped. None: three, or the ``initial`` ones where these are fewer.
    offset : float or "theorem"
        ξ_t, subtracted from the best score: a number in the score's units, or :func:`incumbent_offset` with the noise
        of the belief.
    myopic : float, optional
        Stop where the probability of winning is below this number, instead of by backward induction.
    intermediate, scale, gp, width
        As in :class:`~surefoot.policy.epochs.runs.EpochPolicy`.
    **options
        ``initial``, ``confidence``, ``seed``, ``repeats``, ``journal``.

    >>> from surefoot import Box
    >>> policy = BOBOS(Box([(0.0, 1.0)]), epochs=20, seed=0)
    >>> def run(query):
    ...     for epoch in range(1, 21):
    ...         if policy.report(query, epoch, (1.0 - query.x[0] ** 2) * (1.0 - 0.6**epoch)).stop:
    ...             break
    ...     policy.tell(query)
    >>> for _ in range(5):
    ...     run(policy.ask())
    >>> policy.epochs_used + policy.epochs_saved
    100
    """

    valued: ClassVar[tuple[str, ...]] = ("bounds",)

    def __init__(
        self,
        domain: Domain,
        *,
        epochs: int,
        stopping: OptimalStopping | None = None,
        growth: float = 0.95,
        stop_until: int | None = None,
        kappa: float = 2.0,
        bounds: tuple[float, float] | None = None,
        complete: int | None = None,
        offset: float | str = 0.0,
        myopic: float | None = None,
        intermediate: Sequence[int] | None = (),
        scale: str = "log",
        width: Width | None = None,
        **options: Unpack[ModelOptions],
    ) -> None:
        super().__init__(domain, epochs=epochs, intermediate=intermediate, scale=scale, width=width, **options)
        if not (stopping is None or isinstance(stopping, OptimalStopping)):
            raise TypeError(f"stopping must be an OptimalStopping rule, got {stopping!r}")
        self.stopping = default_rule(self.epochs) if stopping is None else stopping
        if self.stopping.epochs != self.epochs:
            raise ValueError(f"the stopping rule is for runs of {self.stopping.epochs} epochs, not {self.epochs}")
        if not 0.0 < number(growth) <= 1.0:
            raise ValueError(f"growth must lie in (0, 1], got {growth!r}")
        if not number(kappa) >= 1.0:
            raise ValueError(f"kappa must be at least 1, got {kappa!r}")
        ends = [number(end) for end in bounds] if isinstance(bounds, (Sequence, np.ndarray)) else []
        if bounds is not None and not (len(ends) == 2 and -math.inf < ends[0] < ends[1] < math.inf):
            raise ValueError(f"bounds are two finite numbers, the smaller one first, got {self._facing(bounds)!r}")
        if offset != "theorem" and not math.isfinite(number(offset)):
            raise ValueError(f"offset must be a finite number or 'theorem', got {offset!r}")
        self.growth, self.kappa = float(growth), float(kappa)
        self.stop_until = None if stop_until is None else whole(stop_until, "stop_until")
        self.bounds = None if bounds is None else (float(bounds[0]), float(bounds[1]))
        self.complete = min(COMPLETE, self.initial) if complete is None else whole(complete, "complete")
        self.offset, self.myopic = offset, None if myopic is None else open_unit(myopic, "myopic")
        self._ranges: dict[int, tuple[float, float]] = {}  # range of scores when a run had shown its first epochs
        self._watches: dict[int, tuple[float, Watch]] = {}
        self._verdicts: dict[int, tuple[int, str | None]] = {}  # last judged epoch, and why the run was stopped there

    @classmethod
    def published(cls, domain: Domain, *, epochs: int, **options: Any) -> Self:
        """Return BO-BOS with the options of its authors; any of them can be replaced.

        Curves decay to zero error and are fitted by maximum likelihood; 100,000 paths; K₁,ₜ = 100/0.95^(t−1), K₂ = 99,
        c = 1; N₀ = 8 for N = 50; cells without paths continue; scores in [0, 1]; epochs n/N; six complete initial runs;
        a zero-mean Matérn-5/2 process with one length-scale, fitted every ten runs; the weight of their code for the
        standard deviation, 0.2 (d + 1) log 2t.

        >>> from surefoot import Box
        >>> BOBOS.published(Box([(0.0, 1.0)]), epochs=50, seed=0).stopping.initial
        8
        """
        rule = OptimalStopping(epochs=epochs, initial=_first(epochs), model=ExponentialDecay())
        gp = GP(Matern(2.5, lengthscale=0.5), noise=1e-3, priors={"mean": Fixed(0.0)}).refit(every=10)
        chosen = {
            "stopping": rule,
            "intermediate": None,
            "scale": "linear",
            "bounds": (0.0, 1.0),
            "gp": gp,
            "initial": 6,
            "complete": options.get("initial", 6),
        }
        return cls(domain, epochs=epochs, **{**chosen, "width": Logarithmic(0.2, extra=1, root=False), **options})

    # -- choosing ----------------------------------------------------------------------------------------------------

    def _rule(self, step: int, context: Mapping[str, Any]) -> Proposal:
        """Remember with the query what C2 and ξ need of the belief before the run's own data."""
        proposal = super()._rule(step, context)
        belief, note = cast(Posterior, self._believe()), dict(proposal.note)
        if math.isfinite(self.kappa):
            x = self.domain.points[proposal.index] if proposal.x is None else proposal.x  # type: ignore[attr-defined]
            n = np.arange(1, self.epochs + 1)
            encoded = np.broadcast_to(self.domain.encode(x[None]), (self.epochs, self.domain.encoded_dimension))
            std = belief.std(np.column_stack([encoded, self.coordinate(n)]))
            unsure = n[(std[-1] > self.kappa * std) & (n > self.stopping.initial)]
            if unsure.size:
                note["unsure"] = unsure.tolist()
        if self.offset == "theorem":
            # The luckiest is that of all scores, those of the initial design and unasked ones included.
            scores = step + sum(run.id is None for run in self._observations)
            note["offset"] = incumbent_offset(scores + 1, belief.gp.noise, self.confidence)
        return replace(proposal, note=note)

    def _iteration(self, id: int) -> int:
        """Number t ≥ 1 of a run among those that the rule chose."""
        return max(1, sum("initial" not in query.note for query in self._queries[:id]) + 1)

    def k1(self, query: Query | int) -> float:
        """Return K₁,ₜ of a run.

        >>> from surefoot import Box
        >>> policy = BOBOS(Box([(0.0, 1.0)]), epochs=50, growth=0.5, initial=0, complete=0, seed=0)
        >>> [policy.k1(query) for query in policy.ask(3)]
        [400.0, 800.0, 1600.0]
        """
        run = self._iteration(self._find(query).id)
        return growing_loss(self.stopping.k1, run, growth=self.growth, stop_until=self.stop_until)

    # -- judging -----------------------------------------------------------------------------------------------------

    def _advise(self, query: Query, step: int, value: float | None) -> Advice:
        advice = self._judge(query, step, value)
        if step == max(self._reports[query.id]):
            self._verdicts[query.id] = (step, advice.reason if advice.stop else None)
        return advice

    def _judge(self, query: Query, step: int, value: float | None) -> Advice:
        bar, first = self._bar(query.id, step), self.stopping.initial
        if value is None:
            return super()._advise(query, step, value)
        if step >= self.epochs:
            return Advice(False, "complete", None, 0.0)
        if query.id < self.complete:
            return Advice(False, f"the first {self.complete} runs are completed")
        if step <= first:
            return Advice(False, f"the first {first} epochs are always run")
        if bar is None:
            return Advice(False, "there is no other run to compare with")
        k1 = self.k1(query)
        if math.isinf(k1):
            return Advice(False, "stopping is switched off")
        low, high = self._range(query.id)
        curve = (self._scores(query, step) - low) / (high - low)
        if self.bounds is not None and (curve.min() < -1e-9 or curve.max() > 1.0 + 1e-9):
            return Advice(False, f"not judged: a score lies outside bounds={self._facing(self.bounds)}")
        offset = float(query.note.get("offset", 0.0 if self.offset == "theorem" else self.offset))
        threshold = (bar - offset - low) / (high - low)
        decision = self._watch(query.id, threshold, k1).report(np.clip(curve, 0.0, 1.0))
        stop, chance = decision.stop, decision.probability
        if self.myopic is not None:
            stop = chance is not None and chance < self.myopic and curve.max() <= threshold
        odds = "" if chance is None else f" (probability {chance:.2g})"
        if stop and step in query.note.get("unsure", ()):
            reason = f"looks hopeless{odds}, but the belief knows too little about the last epoch (C2)"
            return Advice(False, reason, chance, decision.saved)
        best = self._facing(bar - offset)
        if stop:
            return Advice(True, f"will not beat {best:.6g}{odds}", chance, float(self.epochs - step))
        return Advice(False, f"may still beat {best:.6g}{odds}", chance, decision.saved)

    def _watch(self, id: int, threshold: float, k1: float) -> Watch:
        """The tables of one run; begun again when a run closed meanwhile raises the threshold."""
        known = self._watches.get(id)
        if known is None or known[0] != threshold:
            rule = self.stopping
            watch = rule.watch(threshold, lambda n: self.stream("paths", id * self.epochs + n), k1=k1)
            for closed in [key for key in self._watches if key not in self._pending]:
                del self._watches[closed]
            self._watches[id] = known = (threshold, watch)
        return known[1]

    def _range(self, id: int) -> tuple[float, float]:
        """The range of scores in which a run is judged: as given, else as known when it had shown its first epochs."""
        if self.bounds is not None:
            return self.bounds
        if id not in self._ranges:
            first = min(n for n in self._reports[id] if n >= self.stopping.initial)
            events = self._events[: self._known_at(id, first)[0]]
            values = [e["value"] for e in events if e["event"] in ("told", "reported") and e["value"] is not None]
            self._ranges[id] = score_range(np.array([self._facing(value) for value in values]))
        return self._ranges[id]

    # -- looking -----------------------------------------------------------------------------------------------------

    @property
    def stopped(self) -> dict[int, str]:
        """Why each run that was advised to stop at its last report was, by query id; diverged runs included."""
        for id, reports in self._reports.items():
            last = max(reports)
            if last < self.epochs and self._verdicts.get(id, (-1,))[0] != last:
                self._advise(self._queries[id], last, reports[last])  # a journal keeps reports, not advice
        return {id: reason for id, (_, reason) in sorted(self._verdicts.items()) if reason is not None}

    @property
    def epochs_saved(self) -> int:
        """Epochs that stopped runs did not need."""
        return sum(self.epochs - self.length(id) for id in self.stopped)

    def _cache(self) -> dict[str, Any]:
        return {**super()._cache(), "verdicts": [[id, *verdict] for id, verdict in sorted(self._verdicts.items())]}

    def _restore(self, cache: dict[str, Any]) -> None:
        super()._restore(cache)
        self._verdicts = {id: (step, reason) for id, step, reason in cache.get("verdicts", [])}


def default_rule(epochs: int) -> OptimalStopping:
    """Return the stopping rule that :class:`BOBOS` uses when none is given.

    K₁ begins at 400, not at 100 = K₂ + c as published: with that, too many runs were stopped whose curves picked up
    late and would have won (docs/policies/bo-bos.md has the numbers).

    >>> default_rule(50).initial, default_rule(10).initial
    (8, 3)
    """
    return OptimalStopping(
        epochs=epochs,
        initial=_first(epochs),
        k1=400.0,
        model=Plateau(),
        paths=20_000,
        unvisited="resimulate",
        adaptive=True,
        smoothing=True,
    )


def _first(epochs: int) -> int:
    """N₀: 8 of 50 epochs, in proportion, and enough to see a shape."""
    return max(3, round(0.16 * epochs))


def score_range(scores: Array) -> tuple[float, float]:
    """Return a range for scores without known bounds: far outliers below are cut off, with some room above the best.

    The cut is Tukey's outer fence; the losses of diverging runs lie far beyond it.

    >>> score_range(np.array([-1e6, 0.1, 0.2, 0.3, 0.4, 0.5]))
    (-0.6..., 0.6...)
    """
    lower, upper = np.percentile(scores, [25, 75])
    low = max(float(scores.min()), float(lower - 3.0 * (upper - lower)))
    high = float(scores.max())
    if not high > low:
        low, high = high - 1.0, high
    return low, high + 0.1 * (high - low)
