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
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self, Unpack

import numpy as np
from numpy.typing import NDArray

from surefoot.arguments import number, open_unit, whole
from surefoot.belief.gp import GP
from surefoot.belief.kernels import Matern
from surefoot.belief.priors import Fixed
from surefoot.domain import Box, Candidates, Domain, Space
from surefoot.loop.state import storable
from surefoot.loop.types import Advice, Proposal, Query, Recommendation
from surefoot.loop.widths import Logarithmic, Width, given_or, usual
from surefoot.policy.base import ModelOptions, ModelPolicy
from surefoot.policy.epochs.abandon import AbandonRuns
from surefoot.policy.epochs.runs import RunRows, Runs, automatic_over_epochs
from surefoot.policy.rule import Rule
from surefoot.policy.surrogate import Surrogate
from surefoot.policy.ucb.gp_ucb import UpperConfidence
from surefoot.policy.view import View
from surefoot.stopping import ExponentialDecay, OptimalStopping, Plateau

__all__ = ["BOBOS", "ChooseRun", "default_rule", "incumbent_offset"]

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
        return 0.0  # ξ_1
    return math.sqrt(2.0 * noise * math.log(math.pi**2 * run**2 * (run - 1) / (6.0 * (1.0 - confidence))))


class ChooseRun:
    """Algorithm 4.1, line 2: choose a configuration, and remember what line 9 will judge its run by.

    C2 and ξ_t need the belief before the run's own data: they are noted with the query.

    Parameters
    ----------
    choice : Rule
        How the configuration is chosen.
    rows : RunRows
        What the belief sees of runs.
    first : int
        N₀.
    kappa : float
        κ of C2.
    confidence : float, optional
        1 − δ of ξ_t; None: ξ_t is given.

    >>> from surefoot import Box
    >>> policy = BOBOS(Box([(0.0, 1.0)]), epochs=20, offset="theorem", initial=0, seed=0)
    >>> dict(policy.ask().note)["offset"]  # ξ_1
    0.0
    """

    def __init__(self, choice: Rule, rows: RunRows, *, first: int, kappa: float, confidence: float | None) -> None:
        self.choice, self.rows, self.first, self.kappa, self.confidence = choice, rows, first, kappa, confidence

    def propose(self, view: View) -> Proposal:
        """Return the configuration, with the epochs at which C2 does not hold and ξ_t in its note."""
        proposal = self.choice.propose(view)  # line 2: x_t = argmax μ_{t−1}([x, N]) + β_t^(1/2) σ_{t−1}([x, N])
        note, belief = dict(proposal.note), view.surrogate.posterior()
        if math.isfinite(self.kappa):
            x = view.domain.enumerate()[proposal.index] if proposal.x is None else proposal.x
            n = np.arange(1, self.rows.runs.epochs + 1)
            std = belief.std(self.rows.along(x))  # σ_{t−1}([x_t, n]) for n = 1, ..., N
            unsure = n[(std[-1] > self.kappa * std) & (n > self.first)]  # line 9, not C2: σ([x_t, N]) > κ σ([x_t, n])
            if unsure.size:
                note["unsure"] = unsure.tolist()
        if self.confidence is not None:
            # The luckiest is that of all scores, those of the initial design and unasked ones included.
            scores = view.step + sum(run.id is None for run in view.trials.observations)
            note["offset"] = incumbent_offset(scores + 1, belief.gp.noise, self.confidence)  # ξ_t, Lemma A.7
        return replace(proposal, note=note)


class BOBOS(ModelPolicy):
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

    width: Width

    domains = (Box, Candidates, Space)
    valued: ClassVar[tuple[str, ...]] = ("bounds",)
    epochs: int
    steps = True
    rule: ChooseRun

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
        super().__init__(domain, **options)
        self.runs = Runs(self.trials, epochs)
        self.epochs = self.runs.epochs
        self.rows = RunRows(self.runs, intermediate, scale)
        self.scale, self.intermediate = scale, self.rows.intermediate
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
        gp = self.gp if options.get("gp") is not None else automatic_over_epochs(domain)
        self.surrogate = Surrogate(self.trials, gp, self.stream, rows=self.rows)
        self.width = given_or(width, usual(domain.size, self.confidence))
        self.rule = ChooseRun(
            UpperConfidence(self.width),
            self.rows,
            first=self.stopping.initial,
            kappa=self.kappa,
            confidence=self.confidence if offset == "theorem" else None,
        )
        self.adviser = AbandonRuns(
            self.runs,
            self.stream,
            self.stopping,
            growth=self.growth,
            stop_until=self.stop_until,
            bounds=self.bounds,
            complete=self.complete,
            offset=self.offset,
            myopic=self.myopic,
        )

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

    # -- runs --------------------------------------------------------------------------------------------------------

    def _check_report(self, step: int) -> None:
        self.runs.check(step)

    def _advise(self, query: Query, step: int, value: float | None) -> Advice:
        return self.adviser.advise(query, step, value)

    def k1(self, query: Query | int) -> float:
        """Return K₁,ₜ of a run.

        >>> from surefoot import Box
        >>> policy = BOBOS(Box([(0.0, 1.0)]), epochs=50, growth=0.5, initial=0, complete=0, seed=0)
        >>> [policy.k1(query) for query in policy.ask(3)]
        [400.0, 800.0, 1600.0]
        """
        return self.adviser.k1(self._find(query).id)

    def coordinate(self, epoch: float | NDArray[Any]) -> Any:
        """Return how the belief sees an epoch, 1 for the last one."""
        return self.rows.coordinate(epoch)

    def scores(self, query: Query | int, until: int | None = None) -> Array:
        """Return the scores of epochs 1, ..., n of a run, n the last one reported (or ``until``), shape (n,).

        Epochs that were not reported are interpolated.
        """
        curve: Array = np.array([self.trials.facing(score) for score in self.runs.scores(query, until)])
        return curve

    def length(self, query: Query | int) -> int:
        """Return how many epochs a run has lasted so far; a run told without reports lasted to its end."""
        return self.runs.length(self._find(query))

    @property
    def epochs_used(self) -> int:
        """Epochs of all runs asked for so far, those under way included."""
        return self.runs.used

    @property
    def epochs_saved(self) -> int:
        """Epochs that stopped runs did not need."""
        return self.adviser.saved

    @property
    def stopped(self) -> dict[int, str]:
        """Why each run that was advised to stop at its last report was, by query id; diverged runs included."""
        return self.adviser.stopped

    # -- answering ---------------------------------------------------------------------------------------------------

    def _recommend(self) -> Recommendation:
        X, which = self.runs.comparable()
        return self._most_promising(X, f"highest posterior mean at the last epoch among {which} runs")

    def _cache(self) -> dict[str, Any]:
        return {**super()._cache(), **self.adviser.cache()}

    def _restore(self, cache: dict[str, Any]) -> None:
        super()._restore(cache)
        self.adviser.restore(cache)


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
