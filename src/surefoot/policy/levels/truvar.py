"""TruVaR: take as much uncertainty as possible, per unit of cost, out of the points that still matter.

Question: where is the maximum (``goal="maximize"``), or which points exceed a threshold (``goal="level"``), when
measurements cost different amounts, are not equally noisy, or can be made at several prices?

Rule: M holds the points that still matter, possible maximizers or undecided points. In epoch i the algorithm wants
β^(1/2) σ ≤ η_i on all of M; with the truncated variances it measures

    x_t = argmax_x [ Σ_{x̄∈M} max(β σ²_{t−1}(x̄), η_i²) − Σ_{x̄∈M} max(β σ²_{t−1|x}(x̄), η_i²) ] / cost(x)

and goes on to η_{i+1} = r η_i when that is reached (Algorithms 3 and 5 of the thesis, equations 3.3 to 3.8). Sets and
epochs are kept by :mod:`surefoot.policy.levels.stages`.

Reference: Bogunovic, Scarlett, Krause & Cevher 2016; thesis of Bogunovic 2019, chapter 3.

Guarantee: if the bounds hold, all maximizers stay in M, and after epoch i all points of M are within 4(1 + δ̄) η_i of
the maximum, or within 2(1 + δ̄) η_i of the threshold. The cost to get there is that of the best set of measurements up
to a logarithm, if variance reduction is submodular.

Authors' options: β_i = a log(|D| t_i²) with a = 0.5 (maximize) and 1 (level), t_i the round in which epoch i begins;
η_1 = 1, r = 0.1, δ̄ = 0. Theory asks for a = 2.

Differences: the truncation level is η² (η is printed, and stalls); potential maximizers have ucb ≥ max lcb (≤ is
printed); epochs advance in a loop, not one a round; M may grow back unless a ≥ 2, since smaller bounds lose the
maximizer in one run of five; η_1 is in units of the prior standard deviation. See docs/policies/truvar.md.

Cost of one ask after t measurements: with m points of M above the target and n candidates, one matrix product of
2 t m n operations and one fused pass over m n covariances (:mod:`surefoot.belief.lookahead`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, Unpack, cast

import numpy as np
from numpy.typing import NDArray

from surefoot.arguments import not_negative, one_of, open_unit, positive
from surefoot.belief.lookahead import Lookahead
from surefoot.belief.protocol import Belief
from surefoot.domain import Domain
from surefoot.domain.ranking import argmax
from surefoot.errors import NotSupported
from surefoot.loop.trials import Trials
from surefoot.loop.types import Proposal
from surefoot.loop.widths import RKHS, Finite, Width, given_or
from surefoot.policy.acquisition import BeliefScore
from surefoot.policy.base import ModelOptions, ModelPolicy
from surefoot.policy.levels.prices import Fidelity, Field, Prices, last_point
from surefoot.policy.levels.sets import Ground, KnownNoise, LevelSets, kept
from surefoot.policy.levels.stages import FINEST, Maximum, Stage, Stages, Threshold
from surefoot.policy.plausible import refitted
from surefoot.policy.start import InitialDesign
from surefoot.policy.surrogate import Surrogate
from surefoot.policy.ucb.gp_ucb import UpperBound
from surefoot.policy.view import View

__all__ = ["Purchased", "TruVaR", "TruncatedVariance"]

Array = NDArray[np.float64]
Indices = NDArray[np.intp]
Mask = NDArray[np.bool_]

CENTERS, CLOUD = 8, 16  # of the refinement on a box: so many points, and so many around each
RADII = (0.1, 0.02, 0.004)  # in units of the domain's extent


class TruncatedVariance:
    """Measure what takes most truncated variance, per unit of cost, out of the points that matter."""

    def __init__(self, stages: Stages, noise: KnownNoise, prices: Prices, among: str | int, anticipate: bool) -> None:
        self.stages, self.noise, self.prices, self.among, self.anticipate = stages, noise, prices, among, anticipate
        self.ground = stages.ground

    def propose(self, view: View) -> Proposal:
        """Return the point, and the fidelity, of line 3 of Algorithms 3 and 5."""
        stage = self.stages.now()  # lines 4 to 6, after the last measurement
        with view.hallucinated() as belief:  # a batch is chosen greedily, with M as it was (section 3.7.3)
            mean, std = self.ground.predict(belief)
            lowered, taken = self.lowered(stage, std), self.ground.taken(view)
            columns = self.columns(lowered, mean, std, taken)
            search = self._listed if view.domain.listed else self._refined
            proposal = search(view, belief, lowered, taken, columns)
        note = self.ground.memory.note(stage.above, stage.below) if self.stages.goal.monotone else {}
        return replace(proposal, note={**note, "epoch": stage.epoch, "start": stage.start})

    def scores(self, trials: Trials, look: Lookahead, stage: Stage, X: Array, rows: Indices | None) -> Array:
        """Return (3.5) for every fidelity and point of X (c, d), given with its rows where listed, shape (k, c).

        [Σ_{x̄∈M} max(β σ²(x̄), η²) − Σ_{x̄∈M} max(β σ²_{|x}(x̄), η²)] / cost(x), where η is printed for η², with
        σ²_{|x}(x̄) = σ²(x̄) − Cov(x̄, x)²/(σ²(x) + noise(x)), by (3.39) with the Cov of (3.41).
        """
        at = trials.domain.encode(X) if rows is None else None if len(rows) == len(self.ground) else rows
        noise, truncated = self.noise.at(X, rows), {"scale": stage.beta, "floor": stage.eta**2}
        if self.anticipate:  # the sum after the measurement is over M_{t−1|x} (section 3.7.3)
            gains = look.anticipated(self.stages.goal.keeps, at, noise, **truncated)
        else:
            gains = look.gains(at, noise, **truncated)
        return gains / self.prices.at(X, rows, last_point(trials))

    def lowered(self, stage: Stage, std: Array) -> Stage:
        """Return the stage with the target lowered until a point that is summed over is above it.

        There always is one, unless all is decided: then everything counts. In a batch, virtual measurements may have
        exhausted the target (section 3.7.3, batches: η ← r η, M as it was).
        """
        if not stage.summed.any():
            return replace(stage, eta=0.0, summed=np.ones_like(stage.summed))
        whole = stage.eta
        while stage.eta > 0 and self.stages.reached(stage, std):
            stage = replace(stage, eta=stage.eta * self.stages.ratio if stage.eta > FINEST * whole else 0.0)
        return stage

    def columns(self, stage: Stage, mean: Array, std: Array, taken: Mask) -> Indices:
        """Return where to measure, by ``among`` (section 3.7.3); everywhere if nothing of that is free."""
        free = ~taken
        if self.among == "potential":
            free = free & stage.potential
        elif isinstance(self.among, int):
            upper = np.where(free, mean + stage.width * std, -np.inf)
            free = np.zeros_like(free)
            free[np.argsort(-upper, kind="stable")[: self.among]] = True
        rows = np.flatnonzero(free & ~taken)
        return rows if rows.size and self.among != "all" else np.arange(taken.size)

    def _listed(self, view: View, belief: Belief, stage: Stage, taken: Mask, columns: Indices) -> Proposal:
        """The best candidate."""
        look, points = Lookahead(cast(Any, belief), np.flatnonzero(stage.summed)), self.ground.points
        score = self.scores(view.trials, look, stage, points[columns], columns)
        exclude = np.tile(taken[columns], len(score))
        best = argmax(np.ravel(score), rng=view.stream("ties", view.step), exclude=exclude)
        level, place = divmod(best, len(columns))
        row = int(columns[place])
        return self.prices.proposal(level, points[row], row, last_point(view.trials))

    def _refined(self, view: View, belief: Belief, stage: Stage, taken: Mask, columns: Indices) -> Proposal:
        """The best of the ground, then of ever closer clouds around the best points so far."""
        rng, domain, summed = view.stream("refine", view.step), view.domain, self.ground.at[stage.summed]
        if not self.ground.complete:
            summed = np.concatenate([summed, self._between(domain, belief, stage, rng)])
        look = Lookahead(cast(Any, belief), summed)
        X = self.ground.points[columns]
        score = self._best_level(view.trials, look, stage, X)
        for radius in () if self.ground.complete else RADII:
            best = np.argsort(-score[1], kind="stable")[:CENTERS]
            near = _cloud(domain, domain.encode(X[best]), radius * domain.extent(), rng)
            more = self._best_level(view.trials, look, stage, near)
            X, score = np.concatenate([X[best], near]), np.concatenate([score[:, best], more], axis=1)
        row = argmax(score[1], rng=view.stream("ties", view.step), exclude=self.ground.taken(view, X))
        return self.prices.proposal(int(score[0, row]), X[row], None, last_point(view.trials))

    def _best_level(self, trials: Trials, look: Lookahead, stage: Stage, X: Array) -> Array:
        """For every point the fidelity of highest score, and that score, shape (2, c)."""
        score = self.scores(trials, look, stage, X, None)
        best = score.argmax(axis=0)
        return np.stack([best, score[best, np.arange(len(X))]])

    def _between(self, domain: Domain, belief: Belief, stage: Stage, rng: np.random.Generator) -> Array:
        """Encoded points between those of the ground that matter too, so that the sum sees what lies in the gaps."""
        goal, (mean, std) = self.stages.goal, self.ground.predict(belief)
        half = stage.width * std
        interest = np.where(stage.summed, goal.interest(mean, half), -np.inf)
        best = np.argsort(-interest, kind="stable")[:CENTERS]
        spacing = len(mean) ** (-1.0 / domain.encoded_dimension) * domain.extent()
        E = domain.encode(_cloud(domain, self.ground.at[best], spacing, rng))
        new, deviation = belief.predict(E)
        low, high = goal.span(mean - half, mean + half)
        chosen: Array = E[(new + stage.width * deviation >= low) & (new - stage.width * deviation <= high)]
        return chosen


def _cloud(domain: Domain, centers: Array, radius: Array, rng: np.random.Generator) -> Array:
    """Valid points around encoded ones, shape (centers · CLOUD, d)."""
    noise = rng.standard_normal((len(centers), CLOUD, centers.shape[1])) * radius
    return domain.decode((centers[:, None] + noise).reshape(-1, centers.shape[1]))


class Purchased:
    """A start whose measurements have a price: before the scale of the values is known, the most precise fidelity."""

    def __init__(self, start: InitialDesign, prices: Prices) -> None:
        self.start, self.prices = start, prices

    def propose(self, view: View) -> Proposal | None:
        """Return what the start proposes, at a fidelity and a price."""
        first = self.start.propose(view)
        if first is None:
            return None
        x, levels = cast(Array, first.x), self.prices.levels
        level = int(np.argmin([level.noise for level in levels])) if levels else 0
        bought = self.prices.proposal(level, x, view.domain.row_of(x), last_point(view.trials))
        return replace(bought, note=first.note)


class TruVaR(ModelPolicy):
    """Take as much uncertainty as possible, per unit of cost, out of the points that still matter.

    Parameters
    ----------
    domain : Box, Candidates or Space
        Where points may lie. On a box, sets are followed at ``policy.ground``, and queries refined around the best of
        it.
    goal : {"maximize", "level"}
        Find the maximum, or classify points by a threshold.
    threshold, fraction : float, optional
        For ``"level"``: the threshold, or the share of the unknown maximum (for who minimizes, minimum) that is it.
    cost : array or callable, optional
        Of each candidate; or ``cost(X)``; or ``cost(previous, X)`` with the last measured point, None at first: such an
        instance asks for one point at a time.
    fidelities : sequence of Fidelity, optional
        Ways to measure to choose from; their prices add to ``cost``. ``query.fidelity`` is the index of the chosen one.
    scale : float, optional
        a in β = a log(|D| t²); 0.5 for ``"maximize"`` and 1 for ``"level"`` by default. Or
    width : width, optional
        β^(1/2) by hand, evaluated in every round: ``widths.Finite(0.95)`` is the theory's, ``widths.RKHS(...)`` that
        for a fixed function of bounded norm.
    target : float
        η_1 in prior standard deviations; 0 is pure variance reduction.
    ratio, slack : float
        r and δ̄.
    monotone : bool, optional
        Whether what was excluded stays out; None: if scale ≥ 2 or the width is the theory's, and nothing is refitted.
    among : {"all", "potential"} or int
        Where to measure: anywhere, at points that matter, or at so many points of highest upper bound.
    anticipate : bool
        Sum over the points that would still matter after the measurement.
    accuracy : float, optional
        When ``finished`` becomes true: all points that matter are within it of the maximum (half of it, of the
        threshold), if the bounds hold. Never with a belief that is fitted.
    **options
        ``noise``, ``points``, ``device``, ``gp``, ``initial``, ``confidence``, ``seed``, ``repeats``, ``journal``.

    >>> from surefoot import GP, SE, Candidates
    >>> x = np.linspace(0.0, 1.0, 101)
    >>> policy = TruVaR(Candidates(x), goal="level", threshold=0.5, gp=GP(SE(0.2), noise=1e-6), cost=1.0 + x, seed=0)
    >>> for _ in range(12):
    ...     query = policy.ask()
    ...     policy.tell(query, float(np.sin(3.0 * query.x[0])))
    >>> policy.finished, policy.recommend().counts()["above"], policy.spent < 24.0
    (True, 70, True)
    """

    fidelities = True
    valued: ClassVar[tuple[str, ...]] = ("threshold",)

    def __init__(
        self,
        domain: Domain,
        *,
        goal: str = "maximize",
        threshold: float | None = None,
        fraction: float | None = None,
        cost: Field | None = None,
        fidelities: Sequence[Fidelity] | None = None,
        scale: float | None = None,
        width: Width | None = None,
        target: float = 1.0,
        ratio: float = 0.1,
        slack: float = 0.0,
        monotone: bool | None = None,
        among: str | int = "all",
        anticipate: bool = False,
        accuracy: float | None = None,
        noise: Field | None = None,
        points: int = 1024,
        device: str | None = None,
        **options: Unpack[ModelOptions],
    ) -> None:
        super().__init__(domain, **options)
        self.goal = one_of(goal, "goal", ("maximize", "level"))
        if goal == "maximize" and (threshold is not None or fraction is not None):
            raise ValueError("threshold and fraction belong to goal='level'")
        if scale is not None and width is not None:
            raise ValueError("give either scale or width")
        if among not in ("all", "potential") and not (
            isinstance(among, (int, np.integer)) and not isinstance(among, bool) and among > 0
        ):
            raise ValueError(f"among must be 'all', 'potential' or a positive whole number, got {among!r}")
        if anticipate and fraction is not None:
            raise ValueError(
                "anticipate needs a known threshold: what a measurement does to an unknown one is not known"
            )
        if fidelities is not None and noise is not None:
            raise ValueError("give either noise, one variance per point, or fidelities to choose from")
        if self.gp.members or self.gp.samples:
            raise NotSupported("TruVaR looks ahead in one Gaussian process, not in a mixture of hyper-parameters")
        self.threshold, self.fraction, self.anticipate = threshold, fraction, anticipate
        self.among = among if isinstance(among, str) else int(among)
        self.scale = (0.5 if goal == "maximize" else 1.0) if scale is None else positive(scale, "scale")
        self.width = given_or(width, None)
        self.target, self.slack = not_negative(target, "target"), not_negative(slack, "slack")
        self.ratio = open_unit(ratio, "ratio")
        self.accuracy = None if accuracy is None else positive(accuracy, "accuracy")
        self.monotone = kept(monotone, self.gp)
        if monotone is None:
            self.monotone &= self.scale >= 2.0 if width is None else isinstance(width, (Finite, RKHS))
        self.prices = Prices(domain, cost=cost, fidelities=fidelities)
        self.levels = self.prices.levels
        self.fidelities = fidelities is not None  # type: ignore[misc]  # a host that has none may do with the others
        if self.prices.travels:
            self.parallel = False  # type: ignore[misc]  # the next cost depends on where the last measurement was made
        followed = Ground(self.trials, points, self.stream)
        rows = KnownNoise(self.trials, followed, noise, self.levels)
        self.points, self.device, self.noise = followed.count, device, rows.noise
        self.surrogate = Surrogate(self.trials, self.gp, self.stream, rows=rows, device=device)
        self._sets = None
        if goal == "level":
            self._sets = LevelSets.over(0, threshold=threshold, fraction=fraction, monotone=self.monotone)
        matters = Maximum(self.monotone) if self._sets is None else Threshold(self._sets)
        schedule = (self.scale, self.width, self.target, self.ratio, self.slack)
        self.stages = Stages(self.surrogate, followed, matters, *schedule)
        self.start = Purchased(self.start, self.prices)
        self.rule = TruncatedVariance(self.stages, rows, self.prices, self.among, self.anticipate)

    @property
    def ground(self) -> Array:
        """The points that are followed, shape (n, d), not to be written to."""
        return self.stages.ground.points

    @property
    def epoch(self) -> int:
        """The epoch i, from 1."""
        return self.stages.now().epoch

    @property
    def eta(self) -> float:
        """The target η of the epoch, in the units of the values."""
        return self.stages.now().eta

    @property
    def potential(self) -> Mask:
        """Which points of ``ground`` still matter, shape (n,): possible maximizers, or undecided points."""
        return self.stages.now().potential

    @property
    def finished(self) -> bool:
        """Whether ``accuracy`` is reached, or only one possible maximizer, or no undecided point, is left.

        Only with a belief that is given: it is then so whenever the bounds hold in all rounds. Never with one that is
        fitted (the default, or ``gp.refit(...)``), of which nothing of the kind is known: see docs/policies/truvar.md.
        """
        if refitted(self):
            return False
        stage = self.stages.now()
        left = int(stage.potential.sum())
        if left == 0 or (left == 1 and self._sets is None and self.domain.size is not None):
            return True
        # With β^(1/2) σ ≤ w on M, a point of M is within 4 w of the maximum or 2 w of the threshold (section 3.3.1).
        std = self.stages.ground.predict(self.surrogate.believe())[1]
        return self.accuracy is not None and 4.0 * stage.worst(std) <= self.accuracy

    @property
    def spent(self) -> float:
        """What all measurements have cost: as told, else as expected, else 1; unasked ones count as told."""
        total = 0.0
        for run in self.trials.observations:
            expected = 0.0 if run.id is None else self.trials.queries[run.id].cost
            total += run.outcome.cost if run.outcome.cost is not None else 1.0 if expected is None else expected
        return total

    def _recommend(self) -> Any:
        belief = self.surrogate.believe()
        mean, std = self.stages.ground.predict(belief)
        if self._sets is None:
            return self._most_promising(self._best_estimate(belief, mean), "highest posterior mean")
        stage = self.stages.now()
        half, sets = stage.width * std, replace(self._sets, above=stage.above, below=stage.below)
        return sets.answer(self.ground, mean.copy(), mean - half, mean + half)

    def _best_estimate(self, belief: Belief, mean: Array) -> Array:
        """The point of highest posterior mean, shape (1, d)."""
        if self.domain.listed:
            return self.ground[[int(np.argmax(mean))]]
        seeds = self.view().incumbents(belief)
        score = BeliefScore(belief, UpperBound(0.0))
        return self.domain.maximize(score, rng=self.stream("answer", belief.n), seeds=seeds).x[None]
