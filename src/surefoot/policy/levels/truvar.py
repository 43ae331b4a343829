"""TruVaR: take as much uncertainty as possible, per unit of cost, out of the points that still matter.

Question: where is the maximum (``goal="maximize"``), or which points exceed a threshold (``goal="level"``), when
measurements cost different amounts, are not equally noisy, or can be made at several prices?

Rule: M holds the points that still matter, possible maximizers or undecided points. In epoch i the algorithm wants
β^(1/2) σ ≤ η_i on all of M; with the truncated variances it measures

    x_t = argmax_x [ Σ_{x̄∈M} max(β σ²_{t−1}(x̄), η_i²) − Σ_{x̄∈M} max(β σ²_{t−1|x}(x̄), η_i²) ] / cost(x)

and goes on to η_{i+1} = r η_i when that is reached (Algorithms 3 and 5 of the thesis, equations 3.3 to 3.8).

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

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Unpack, cast

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import NDArray

from surefoot.arguments import not_negative, one_of, open_unit, positive
from surefoot.belief.gp import GP
from surefoot.belief.grid import GridPosterior
from surefoot.belief.lookahead import Lookahead
from surefoot.belief.posterior import Posterior
from surefoot.domain import Candidates, Domain
from surefoot.domain.ranking import argmax
from surefoot.domain.search import maximize
from surefoot.errors import NotSupported
from surefoot.loop.policy import Proposal
from surefoot.loop.widths import RKHS, Finite, Width, given_or
from surefoot.policy.legacy import Acquisition, PosteriorScore
from surefoot.policy.levels.level_set import LevelSets
from surefoot.policy.levels.prices import Fidelity, Field, Prices, numbers_at
from surefoot.policy.levels.sets import Memory, SetOptions, SetPolicy
from surefoot.policy.plausible import refitted
from surefoot.policy.ucb.gp_ucb import UpperBound

__all__ = ["Stage", "TruVaR"]

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

FINEST = 1e-6  # targets below this share of the prior standard deviation are not worth telling from zero
CENTERS, CLOUD = 8, 16  # of the refinement on a box: so many points, and so many around each
RADII = (0.1, 0.02, 0.004)  # in units of the domain's extent


@dataclass(frozen=True, eq=False)
class Stage:
    """Where the algorithm stands: epoch, its first round, β^(1/2), η, the points that matter and those it sums over.

    >>> mask = np.ones(3, dtype=bool)
    >>> Stage(1, 1, 2.0, 0.5, mask, mask, ~mask, ~mask).beta
    4.0
    """

    epoch: int
    start: int
    width: float
    eta: float
    potential: Mask
    summed: Mask
    above: Mask
    below: Mask

    @property
    def beta(self) -> float:
        """The squared width."""
        return self.width**2


class TruVaR(SetPolicy):
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
        **options: Unpack[SetOptions],
    ) -> None:
        super().__init__(domain, monotone=monotone, **options)
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
        if self.gp.members or self.gp.samples:
            raise NotSupported("TruVaR looks ahead in one Gaussian process, not in a mixture of hyper-parameters")
        self.threshold, self.fraction, self.anticipate = threshold, fraction, anticipate
        self.among = among if isinstance(among, str) else int(among)
        self.scale = (0.5 if goal == "maximize" else 1.0) if scale is None else positive(scale, "scale")
        self.width = given_or(width, None)
        self.target, self.slack = not_negative(target, "target"), not_negative(slack, "slack")
        self.ratio = open_unit(ratio, "ratio")
        self.accuracy = None if accuracy is None else positive(accuracy, "accuracy")
        if monotone is None:
            self.monotone &= self.scale >= 2.0 if width is None else isinstance(width, (Finite, RKHS))
        self._sets = None
        if goal == "level":
            self._sets = LevelSets.over(0, threshold=threshold, fraction=fraction, monotone=self.monotone)
        if fidelities is not None and self.noise is not None:
            raise ValueError("give either noise, one variance per point, or fidelities to choose from")
        self.prices = Prices(domain, cost=cost, fidelities=fidelities)
        self.levels = self.prices.levels
        self.fidelities = fidelities is not None  # type: ignore[misc]  # a host that has none may do with the others
        if self.prices.travels:
            self.parallel = False  # type: ignore[misc]  # the next cost depends on where the last measurement was made

    # -- the stage (lines 6 to 9 of Algorithm 3, 6 to 12 of Algorithm 5) -----------------------------------------------

    def _stage(self, belief: Posterior | GridPosterior) -> Stage:
        """Bounds, sets and epoch after all measurements; the belief must hold no hallucinations."""
        memory = self._memory()
        mean, std = self._at_ground(belief)
        epoch, start, rounds = memory.epoch, memory.start, self._successes()
        first = self.target * math.sqrt(float(belief.gp.kernel.diag(self._seen(self.ground[:1]))[0]))
        while True:
            width = self._width(start, belief)
            eta = first * self.ratio ** (epoch - 1)
            half = width * std
            stage = self._sorted(
                Stage(epoch, start, width, eta, *[np.empty(0, dtype=np.bool_)] * 4), memory, mean, half
            )
            worst = half[stage.summed].max() if stage.summed.any() else math.inf
            if not (eta > FINEST * first and worst <= (1.0 + self.slack) * eta * (1.0 + 1e-9)):
                return stage
            epoch, start = epoch + 1, rounds + 1  # a loop: one measurement can reach several targets

    def _width(self, start: int, belief: Posterior | GridPosterior) -> float:
        """β^(1/2): constant within an epoch, or what ``width`` says in this round."""
        size = len(self.ground)
        if self.width is None:
            return math.sqrt(self.scale * math.log(max(size, 2) * start**2))
        rounds = self._successes() + 1
        return self.width(rounds, size=size, dimension=self.domain.dimension, gain=belief.information_gain)

    def _sorted(self, stage: Stage, memory: Memory, mean: Array, half: Array) -> Stage:
        """The stage with its sets: M, what is above and below (for a maximum: excluded), and what to sum over."""
        lower, upper = mean - half, mean + half
        if self._sets is not None:
            sets = replace(self._sets, above=memory.above, below=memory.below).updated(lower, upper)
            potential = summed = sets.undecided
            if self.fraction is not None:  # the height of the maximum is part of the question
                summed = potential | (upper >= lower.max())
            return replace(stage, potential=potential, summed=summed, above=sets.above, below=sets.below)
        among = ~memory.below if self.monotone else np.ones(mean.size, dtype=np.bool_)
        potential = among & (upper >= lower[among].max())
        return replace(stage, potential=potential, summed=potential, above=np.zeros_like(potential), below=~potential)

    # -- the rule (lines 3 and 4) --------------------------------------------------------------------------------------

    def _acquisition(self, belief: Posterior | GridPosterior, step: int) -> Acquisition:
        raise NotSupported("TruVaR scores what a measurement teaches, not mean and standard deviation")

    def _choose(self, step: int, context: Mapping[str, Any]) -> Proposal:
        first = self._initial_choice(step)
        if first is None:
            return self._rule(step, context)
        x = cast(Array, first.x)
        rows = np.array([self.domain.index_of(x)]) if isinstance(self.domain, Candidates) else None
        # Before the scale of the values is known, the most precise.
        level = int(np.argmin([level.noise for level in self.levels])) if self.levels else 0
        return replace(self._proposal(level, x[None], rows), note=first.note)

    def _rule(self, step: int, context: Mapping[str, Any]) -> Proposal:
        stage = self._stage(self._believe())
        with self._hallucinated() as belief:
            if isinstance(belief, GridPosterior):
                proposal = self._best_row(belief, stage, step)
            else:
                proposal = self._refined(belief, stage, step)
        note = self._memory().note(stage.above, stage.below) if self.monotone else {}
        return replace(proposal, note={**note, "epoch": stage.epoch, "start": stage.start})

    def _best_row(self, belief: GridPosterior, stage: Stage, step: int) -> Proposal:
        mean, std = self._at_ground(belief)
        stage, rows = self._rows_to_sum(stage, std)
        taken = self._excluded_rows()
        columns = self._columns(stage, mean, std, taken)
        score = self._scores(Lookahead(belief, rows), stage, columns, self.ground, columns)
        level, place = divmod(
            argmax(score, rng=self.stream("ties", step), exclude=self._repeated(taken, columns)), len(columns)
        )
        return self._proposal(level, self.ground[columns[place]][None], columns[[place]])

    def _rows_to_sum(self, stage: Stage, std: Array) -> tuple[Stage, NDArray[np.intp]]:
        """The points to sum over, and the stage with the target lowered until one of them is above it.

        The stage itself always has one, unless all is decided: then everything counts. In a batch, virtual
        measurements may have exhausted the target (section 3.7.3, batches: η ← r η, M as it was).
        """
        rows = np.flatnonzero(stage.summed)
        if not rows.size:
            return replace(stage, eta=0.0, summed=np.ones_like(stage.summed)), np.arange(stage.summed.size)
        worst = stage.width * float(std[rows].max())
        eta = stage.eta
        while eta > 0 and worst <= (1.0 + self.slack) * eta * (1.0 + 1e-9):
            eta = eta * self.ratio if eta > FINEST * stage.eta else 0.0
        return replace(stage, eta=eta), rows

    def _columns(self, stage: Stage, mean: Array, std: Array, taken: Mask) -> NDArray[np.intp]:
        """Where to measure, by ``among``; everywhere if nothing of that is free."""
        free = ~taken
        if self.among == "potential":
            free = free & stage.potential
        elif isinstance(self.among, int):
            upper = np.where(free, mean + stage.width * std, -np.inf)
            free = np.zeros_like(free)
            free[np.argsort(-upper, kind="stable")[: self.among]] = True
        rows = np.flatnonzero(free & ~taken)
        return rows if rows.size and self.among != "all" else np.arange(taken.size)

    def _repeated(self, taken: Mask, columns: NDArray[np.intp]) -> Mask:
        return np.tile(taken[columns], 1 if self.levels is None else len(self.levels))

    def _scores(self, look: Lookahead, stage: Stage, at: Any, X: Array, rows: NDArray[np.intp] | None) -> Array:
        """The score of every fidelity and column, flat (k · c,); ``at`` is what the look-ahead calls the columns."""
        points = X if rows is None else X[rows]
        if self.levels is not None:
            noise: Any = [level.noise for level in self.levels]
        elif self.noise is not None:
            noise = numbers_at(self.noise, "noise", points, rows, positive=False)[None]
        else:
            noise = None
        if isinstance(look.belief, GridPosterior) and len(points) == len(self.ground):
            at = None  # all candidates: no copy
        if not self.anticipate:
            gains = look.gains(at, noise, scale=stage.beta, floor=stage.eta**2)
        else:
            gains = look.anticipated(self._keeps(), at, noise, scale=stage.beta, floor=stage.eta**2)
        return np.ravel(gains / self.prices.at(points, rows, self._previous()))

    def _keeps(self) -> Callable[[Any, Any], Any]:
        """Which points would still matter, given mean and half-width after a measurement (section 3.7.3)."""
        if self.goal == "level":
            return lambda mean, half: (mean + half >= self.threshold) & (mean - half <= self.threshold)
        return lambda mean, half: mean + half >= array_namespace(half).max(mean - half, axis=0)

    def _proposal(self, level: int, x: Array, rows: NDArray[np.intp] | None) -> Proposal:
        price = None if self.prices.unit else float(self.prices.at(x, rows, self._previous())[level, 0])
        return Proposal(
            x=x[0] if rows is None else None,
            index=None if rows is None else int(rows[0]),
            fidelity=None if self.levels is None else level,
            cost=price,
        )

    def _previous(self) -> Array | None:
        """Where the last measurement was made."""
        return self._observations[-1].x if self._observations else None

    # -- on a box ------------------------------------------------------------------------------------------------------

    def _refined(self, belief: Posterior, stage: Stage, step: int) -> Proposal:
        """The best of the ground, then of ever closer clouds around the best points so far."""
        rng, ground = self.stream("refine", step), self.ground
        E = self._seen(ground)
        mean, std = belief.predict(E)
        stage, rows = self._rows_to_sum(stage, std)
        finite = self.domain.size is not None and self.domain.size == len(ground)
        summed = E[rows] if finite else np.concatenate([E[rows], self._between(belief, stage, mean, std, rng)])
        look = Lookahead(belief, summed)
        taken = self._taken(ground)
        X = ground[self._columns(stage, mean, std, taken)]
        score = self._best_level(look, stage, X)
        for radius in () if finite else RADII:
            best = np.argsort(-score[1], kind="stable")[:CENTERS]
            near = self._cloud(self._seen(X[best]), radius * self.domain.extent(), rng)
            more = self._best_level(look, stage, near)
            X, score = np.concatenate([X[best], near]), np.concatenate([score[:, best], more], axis=1)
        row = argmax(score[1], rng=self.stream("ties", step), exclude=self._taken(X))
        return self._proposal(int(score[0, row]), X[[row]], None)

    def _best_level(self, look: Lookahead, stage: Stage, X: Array) -> Array:
        """For every point the fidelity of highest score, and that score, shape (2, c)."""
        score = self._scores(look, stage, self._seen(X), X, None).reshape(-1, len(X))
        best = score.argmax(axis=0)
        return np.stack([best, score[best, np.arange(len(X))]])

    def _cloud(self, centers: Array, radius: Array, rng: np.random.Generator) -> Array:
        """Valid points around encoded ones, shape (centers · CLOUD, d)."""
        noise = rng.standard_normal((len(centers), CLOUD, centers.shape[1])) * radius
        return self.domain.decode((centers[:, None] + noise).reshape(-1, centers.shape[1]))

    def _between(self, belief: Posterior, stage: Stage, mean: Array, std: Array, rng: np.random.Generator) -> Array:
        """Encoded points between those of the ground that matter too, so that the sum sees what lies in the gaps."""
        half = stage.width * std
        interest = mean + half if self._sets is None else half - np.abs(mean - self._middle(mean))
        best = np.argsort(-np.where(stage.summed, interest, -np.inf), kind="stable")[:CENTERS]
        spacing = len(mean) ** (-1.0 / self.domain.encoded_dimension) * self.domain.extent()
        E = self._seen(self._cloud(self._seen(self.ground[best]), spacing, rng))
        new, deviation = belief.predict(E)
        lower, upper = new - stage.width * deviation, new + stage.width * deviation
        low, high = float((mean - half).max()), math.inf
        if self._sets is not None:
            low, high = self._sets.span(mean - half, mean + half)
        chosen: Array = E[(upper >= low) & (lower <= high)]
        return chosen

    def _middle(self, mean: Array) -> float:
        return self.threshold if self.threshold is not None else cast(float, self.fraction) * float(mean.max())

    # -- looking -------------------------------------------------------------------------------------------------------

    @property
    def epoch(self) -> int:
        """The epoch i, from 1."""
        return self._stage(self._believe()).epoch

    @property
    def eta(self) -> float:
        """The target η of the epoch, in the units of the values."""
        return self._stage(self._believe()).eta

    @property
    def potential(self) -> Mask:
        """Which points of ``ground`` still matter, shape (n,): possible maximizers, or undecided points."""
        return self._stage(self._believe()).potential

    @property
    def finished(self) -> bool:
        """Whether ``accuracy`` is reached, or only one possible maximizer, or no undecided point, is left.

        Only with a belief that is given: it is then so whenever the bounds hold in all rounds. Never with one that is
        fitted (the default, or ``gp.refit(...)``), of which nothing of the kind is known: see docs/policies/truvar.md.
        """
        if refitted(self):
            return False
        belief = self._believe()
        stage = self._stage(belief)
        left = int(stage.potential.sum())
        if left == 0 or (left == 1 and self._sets is None and self.domain.size is not None):
            return True
        # With β^(1/2) σ ≤ w on M, a point of M is within 4 w of the maximum or 2 w of the threshold (section 3.3.1).
        worst = stage.width * float(self._at_ground(belief)[1][stage.summed].max())
        return self.accuracy is not None and 4.0 * worst <= self.accuracy

    @property
    def spent(self) -> float:
        """What all measurements have cost: as told, else as expected, else 1; unasked ones count as told."""
        total = 0.0
        for run in self._observations:
            expected = 0.0 if run.id is None else self._queries[run.id].cost
            total += run.outcome.cost if run.outcome.cost is not None else 1.0 if expected is None else expected
        return total

    def _data(self) -> tuple[Array, Array, Array]:
        X, y, given = super()._data()
        if self.levels is None:
            return X, y, given
        known = [run.id for run in self._observations if not run.failed]
        return X, y, np.where(np.isnan(given), np.array([self._noise_of(id) for id in known], dtype=np.float64), given)

    def _noise_of(self, id: int | None) -> float:
        """The noise of the fidelity that a query was made at; NaN where none is known."""
        level = None if id is None else self._queries[id].fidelity
        return math.nan if level is None or self.levels is None else self.levels[level].noise

    def _noisiest(self, gp: GP) -> float:
        return super()._noisiest(gp) if self.levels is None else max(level.noise for level in self.levels)

    def _unknown_noise(self) -> Sequence[float | None]:
        if self.levels is None:
            return super()._unknown_noise()
        ids = [*self._pending, *(run.id for run in self._observations if run.failed)]
        return [self._noise_of(id) for id in ids]

    def _recommend(self) -> Any:
        belief = self._believe()
        mean, std = self._at_ground(belief)
        if self._sets is None:
            return self._most_promising(self._best_estimate(belief, mean), "highest posterior mean")
        stage = self._stage(belief)
        sets = replace(self._sets, above=stage.above, below=stage.below)
        half = stage.width * std
        return sets.answer(self.ground, mean.copy(), mean - half, mean + half)

    def _best_estimate(self, belief: Posterior | GridPosterior, mean: Array) -> Array:
        """The point of highest posterior mean, shape (1, d)."""
        if isinstance(belief, GridPosterior):
            return self.ground[[int(np.argmax(mean))]]
        seeds = self._incumbents(belief)
        score = PosteriorScore(belief, UpperBound(0.0))
        x, _ = maximize(score, self.domain, rng=self.stream("answer", belief.n), seeds=seeds)
        return x[None]
