"""RM-GP-UCB: upper confidence bounds that learn which earlier tasks to trust, and how long.

Question: where is the maximum of an expensive function, when other functions on the same domain were optimized before,
some of which are like this one, and nobody knows which? Helpful tasks should save the first queries; misleading ones
must do no lasting harm.

Rule (Algorithm 7.1). With one posterior (μ̄ᵢ, σ̄ᵢ) per task, conditioned once, and the target's (μ_{t−1}, σ_{t−1}),

    x_t = argmax  ν_t Σᵢ ωᵢ [μ̄ᵢ(x) + τ^½ σ̄ᵢ(x)] + (1 − ν_t) [μ_{t−1}(x) + β_t^½ σ_{t−1}(x)].              (7.1)

* **Gaps** (7.2, Lemma 7.1). How far task i may be from the target, seen from the target's own measurements: the mean
  over the task's measurements (``gap="max"``: the largest) of |y_ij − μ(x_ij)| + β^½ σ(x_ij). The two-sided maximum of
  the lemma is exactly this sum.
* **Weights** (7.3, 7.4). Follow the regularized leader with entropy: ωᵢ ∝ exp(−η Σ_s gap_{i,s}); uniform at first.
* **Influence.** ν₁ = 1, then ν_t = ν_{t−1} · min(r, (Σᵢ ωᵢ gapᵢ)^(−ε)): large gaps end the influence of the tasks
  sooner, and it always ends.

Reference: Dai, Chen, Yu, Low & Jaillet 2022; numbers are those of the thesis of Dai 2021, chapter 7 and appendix D.

Guarantee (Theorem 7.1): with fixed weights, the true prior and the widths of ``schedule="theory"``, with probability at
least 1 − δ: R_T ≤ 2(α + τ^½) Σ_t ν_t + √(C₁ T (1 − ν_T)² β_T γ_T), C₁ = 8/log(1 + σ⁻²). Since ν_t → 0 there is no
regret in the limit, whatever the tasks. With learned weights the bound is heuristic.

Authors' options, the defaults here: η N^(3/2) = 1 (``learning_rate``), r = ε = 0.7 (``decay``, ``sensitivity``), mean
gaps, the simplified weight rule, τ = 1, β_t = 0.2 d log 2t (``schedule="practical"``).

Differences from the paper: gaps are measured in units of the standard deviation of all the tasks' values
(``scaling="pooled"``; the authors' ``None`` makes the learning rate depend on the units of the objective). The index of
the gap in the ν update is the last one that can be known. Queries asked while others are pending decay ν, and update
the weights only once per new measurement. With an automatic belief, the first two queries follow the tasks and then a
few Sobol points are measured: they teach the weights, and are what GP-UCB would have started from if no task is any
good. See ``docs/policies/rm-gp-ucb.md``.

Cost of one ask, M tasks of N measurements, n of the target: O(M N n²) for the gaps; on candidates O(M) each; on a box
about 60 batched predictions of every task that still matters, O(M min(N, max_points)²) each.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Unpack, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot.arguments import not_negative, one_of, open_unit
from surefoot.belief.grid import GridPosterior
from surefoot.belief.posterior import Posterior
from surefoot.domain import Candidates, Domain
from surefoot.loop.policy import Proposal
from surefoot.loop.widths import Constant, Finite, Logarithmic, Width, given_or
from surefoot.policy.base import Acquisition
from surefoot.policy.transfer.base import TransferOptions, TransferPolicy, in_blocks
from surefoot.policy.transfer.tasks import Task
from surefoot.policy.ucb.gp_ucb import UpperBound

__all__ = [
    "RMGPUCB",
    "RobustOptions",
    "RobustTransfer",
    "Task",
    "WeightedScore",
    "entropic_weights",
    "gap_estimates",
    "next_influence",
]

Array = NDArray[np.float64]
NOTHING = 1e-12  # a task of less influence is not asked; when none has more, this is GP-UCB


def gap_estimates(
    mean: ArrayLike, std: ArrayLike, y: ArrayLike, starts: ArrayLike, width: float, *, aggregate: str = "mean"
) -> Array:
    """Return how far each task may be from the target, shape (M,) (Lemma 7.1 without its noise term).

    Parameters
    ----------
    mean, std : array of shape (S,)
        The target's posterior at the measured points of all tasks, one task after the other.
    y : array of shape (S,)
        The values measured there in the tasks.
    starts : array of shape (M,)
        Where each task begins.
    width : float
        β^½, standard deviations of the target.
    aggregate : {"mean", "max"}
        Over the measurements of a task.

    >>> gap_estimates([0.0, 0.0, 1.0], [0.0, 0.1, 0.1], [1.0, -2.0, 1.0], [0, 2], 2.0)
    array([1.6, 0.2])
    >>> gap_estimates([0.0, 0.0, 1.0], [0.0, 0.1, 0.1], [1.0, -2.0, 1.0], [0, 2], 2.0, aggregate="max")
    array([2.2, 0.2])
    """
    # max(|y − U|, |y − L|) with U, L = μ ± wσ is |y − μ| + wσ.
    gaps = np.abs(np.asarray(y) - np.asarray(mean)) + width * np.asarray(std)
    begin = np.asarray(starts, dtype=np.intp)
    if aggregate == "max":
        largest: Array = np.maximum.reduceat(gaps, begin)
        return largest
    means: Array = np.add.reduceat(gaps, begin) / np.diff([*begin.tolist(), len(gaps)])
    return means


def entropic_weights(losses: ArrayLike) -> Array:
    """Return the weights of tasks with these total losses, times the learning rate: ωᵢ ∝ exp(−lossᵢ) (7.4).

    >>> entropic_weights([0.0, 0.0, 2000.0])
    array([0.5, 0.5, 0. ])
    """
    exponent = -np.asarray(losses, dtype=np.float64)
    raw = np.exp(exponent - exponent.max())
    weights: Array = raw / raw.sum()
    return weights


def next_influence(nu: float, gap: float, *, decay: float, sensitivity: float) -> float:
    """Return ν_t from ν_{t−1} and the weighted gap: ν · min(r, gap^(−ε)); r where the gap is unknown (NaN).

    >>> next_influence(1.0, 0.5, decay=0.7, sensitivity=0.7)
    0.7
    >>> round(next_influence(1.0, 8.0, decay=0.7, sensitivity=0.7), 4)
    0.2333
    """
    return nu * min(decay, gap**-sensitivity) if gap > 1 else nu * decay  # below 1 the power exceeds any r


class WeightedScore:
    """A weighted sum of acquisitions, each of its own model, with its gradient.

    Parameters
    ----------
    parts : sequence of (weight, model, acquisition)
        A model predicts and differentiates like a :class:`~surefoot.belief.posterior.Posterior`.

    >>> from surefoot.belief import GP
    >>> near, far = (GP().condition(np.array([[x]]), np.ones(1)) for x in (0.0, 9.0))
    >>> score = WeightedScore([(0.5, near, UpperBound(0.0)), (0.5, far, UpperBound(0.0))])
    >>> score(np.array([[0.0], [9.0]])).round(3)
    array([0.5, 0.5])
    """

    def __init__(self, parts: Sequence[tuple[float, Posterior, Acquisition]]) -> None:
        self.parts = list(parts)

    def __call__(self, E: Array) -> Array:
        total: Array = np.zeros(len(E))
        for weight, model, acquisition in self.parts:
            total += weight * acquisition.value(*model.predict(E))
        return total

    def gradient(self, E: Array) -> tuple[Array, Array]:
        """Return scores (m,) and gradients (m, e)."""
        total, slope = np.zeros(len(E)), np.zeros_like(E)
        for weight, model, acquisition in self.parts:
            mean, std, mean_gradient, std_gradient = model.gradient(E)
            value, by_mean, by_std = acquisition.slopes(mean, std)
            total += weight * value
            slope += (weight * by_mean)[:, None] * mean_gradient + (weight * by_std)[:, None] * std_gradient
        return total, slope


class RobustOptions(TransferOptions, total=False):
    """Keyword arguments of :class:`RobustTransfer`, besides :class:`TransferOptions`; see :class:`RMGPUCB`.

    >>> options: RobustOptions = {"learning_rate": 2.0, "gap": "max"}
    """

    scaling: str | None
    width: Width | None
    schedule: str
    learning_rate: float
    decay: float
    sensitivity: float
    influence: float
    gap: str
    weight_rule: str
    include_noise_correction: bool


@dataclass(frozen=True)
class _Learned:
    """What the queries so far have taught about the tasks."""

    losses: Array  # summed, times the learning rate
    nu: float
    asks: int = 0
    measured: int = 0  # measurements of the target behind the last gaps
    gaps: Array | None = None


class RobustTransfer(TransferPolicy):
    """Base of :class:`RMGPUCB` and :class:`~surefoot.policy.transfer.rm_gp_ts.RMGPTS`: gaps, weights, influence."""

    def __init__(
        self,
        domain: Domain,
        *,
        tasks: Sequence[Task],
        scaling: str | None = "pooled",
        width: Width | None = None,
        schedule: str = "practical",
        learning_rate: float = 1.0,
        decay: float = 0.7,
        sensitivity: float = 0.7,
        influence: float = 1.0,
        gap: str = "mean",
        weight_rule: str = "simplified",
        include_noise_correction: bool = False,
        **options: Unpack[TransferOptions],
    ) -> None:
        super().__init__(domain, tasks=tasks, scaling=scaling, **options)
        self.schedule = one_of(schedule, "schedule", ("practical", "theory"))
        if schedule == "theory" and domain.size is None:
            raise ValueError("schedule='theory' counts the points of a finite domain; use 'practical', or give width=")
        if not not_negative(influence, "influence") <= 1.0:
            raise ValueError(f"influence must lie between 0 and 1, got {influence!r}")
        self.gap = one_of(gap, "gap", ("mean", "max"))
        self.weight_rule = one_of(weight_rule, "weight_rule", ("simplified", "exact"))
        self.learning_rate = not_negative(learning_rate, "learning_rate")
        self.decay, self.sensitivity = open_unit(decay, "decay"), not_negative(sensitivity, "sensitivity")
        self.influence, self.include_noise_correction = float(influence), include_noise_correction
        # β_t = 2 log(|X| t² π²/2δ) is the usual one with δ/3 (Theorem 7.1).
        usual = Logarithmic(0.2) if schedule == "practical" else Finite(1.0 - (1.0 - self.confidence) / 3.0)
        self.width = given_or(width, usual)
        self._lengths = np.array([len(task) for task in tasks])
        self._starts = np.concatenate([[0], np.cumsum(self._lengths)[:-1]])
        self._folded: tuple[Any, _Learned] | None = None
        self._places: Array | None = None

    # -- what is known about the tasks -------------------------------------------------------------------------------

    @property
    def weights(self) -> Array:
        """The weights ω of the tasks behind the latest query, shape (M,); uniform before the first."""
        return entropic_weights(self._fold().losses)

    @property
    def nu(self) -> float:
        """The influence ν of the tasks on the latest query, between 0 and 1."""
        return self._fold().nu

    @property
    def gaps(self) -> Array:
        """The estimated gaps behind the latest query, shape (M,), in units of the scale; NaN before the first."""
        gaps = self._fold().gaps
        return np.full(len(self.tasks), np.nan) if gaps is None else gaps.copy()

    @property
    def weight_history(self) -> Array:
        """The weights behind every query that the rule chose, shape (queries, M)."""
        rows, total = [], np.zeros(len(self.tasks))
        for note in self._by_rule():
            total = total + self._loss(note)
            rows.append(entropic_weights(total))
        return np.array(rows).reshape(-1, len(self.tasks))

    @property
    def nu_history(self) -> Array:
        """The influence ν of the tasks on every query that the rule chose, shape (queries,)."""
        return np.array([note["nu"] for note in self._by_rule()])

    def _loss(self, note: Mapping[str, Any]) -> Array:
        """Losses, times the learning rate, of one query: 0 where no new measurement was there to learn from."""
        if "gaps" not in note:
            return np.zeros(len(self.tasks))
        gaps = np.array(note["gaps"])
        if self.weight_rule == "simplified":
            return self.learning_rate * gaps
        # l_i = 2 N_i^(3/2) √(2σ² log(6 N_i/δ)) + gap_i N_i^(3/2) (Prop. 7.1), with η = learning_rate/N^(3/2).
        noisy = 2.0 * np.sqrt(2.0 * note["noise"] * np.log(6.0 * self._lengths / (1.0 - self.confidence)))
        losses: Array = self.learning_rate * (self._lengths / self._lengths.max()) ** 1.5 * (noisy + gaps)
        return losses

    def _fold(self) -> _Learned:
        """What follows from the notes of all queries; only those since the last call are looked at."""
        learned = _Learned(np.zeros(len(self.tasks)), self.influence)
        done = 0
        if self._folded is not None:
            last, before = self._folded
            # An ask that failed half-way takes its queries back: go on only behind the very same query.
            if last.id < len(self._queries) and self._queries[last.id] is last:
                learned, done = before, last.id + 1
        for query in self._queries[done:]:
            note = query.note
            if "nu" not in note:  # a design point teaches through the next gaps; the influence decays all the same
                nu = next_influence(learned.nu, math.nan, decay=self.decay, sensitivity=self.sensitivity)
                learned = replace(learned, nu=nu) if learned.asks else learned
                continue
            fresh = "gaps" in note
            learned = _Learned(
                learned.losses + self._loss(note),
                note["nu"],
                learned.asks + 1,
                note["n"] if fresh else learned.measured,
                np.array(note["gaps"]) if fresh else learned.gaps,
            )
        if self._queries:
            self._folded = (self._queries[-1], learned)
        return learned

    def _learn(self) -> tuple[float, Array, dict[str, Any]]:
        """Influence and weights for the next query, and the note to remember them by."""
        before, note = self._fold(), {}
        measured = len(self._data()[1])
        if measured > before.measured:
            gaps, noise = self._estimate()
            note = {"n": measured, "gaps": gaps.tolist(), "noise": noise}
        else:
            gaps = np.full(len(self.tasks), np.nan) if before.gaps is None else before.gaps
        weights = entropic_weights(before.losses + self._loss(note))
        nu = self.influence
        if before.asks:
            # The gap of this round is not known before its measurement: the last one serves.
            nu = next_influence(before.nu, float(weights @ gaps), decay=self.decay, sensitivity=self.sensitivity)
        return nu, weights, {"nu": nu, **note}

    def _estimate(self) -> tuple[Array, float]:
        """Gaps of all tasks (M,), and the noise variance, in units of the scale."""
        posterior = self.posterior()
        if self._places is None:
            self._places = np.vstack([self._places_of(i) for i in range(len(self.tasks))])
        mean, std = in_blocks(posterior, self._places)
        shift, factor = self._alignment()
        y = shift + factor * np.concatenate([self._values(cast(Task, task)) for task in self.tasks])
        width = self._deviations(self.width, len(self._observations) + 1, posterior)
        gaps = gap_estimates(mean, std, y, self._starts, width, aggregate=self.gap)
        noise = posterior.gp.noise
        if self.include_noise_correction:
            # √(2σ² log(2 Σ N_i/δ')) (Lemma 7.1): the same for all tasks, so the weights do not see it.
            gaps = gaps + math.sqrt(2.0 * noise * math.log(2.0 * len(y) / (1.0 - self.confidence)))
        scale = 1.0 if self.scaling is None else self._pool[1] * factor
        return gaps / scale, noise / scale**2


class RMGPUCB(RobustTransfer):
    """Upper confidence bounds of the target and of earlier tasks, with weights learned on the way.

    Parameters
    ----------
    domain : Box, Candidates or Space
        Where points may lie.
    tasks : sequence of Task
        What was measured before, in the units of this objective.
    width : width, optional
        β_t^½, standard deviations of the target; None: as ``schedule`` says.
    task_width : width, optional
        τ^½, standard deviations of the tasks, the same in every round; None: as ``schedule`` says.
    schedule : {"practical", "theory"}
        β_t = 0.2 d log 2t and τ = 1, or the theorem's for a finite domain at ``confidence``.
    learning_rate : float
        η N^(3/2). 0 keeps the weights uniform.
    decay, sensitivity : float
        r and ε of the decay of the tasks' influence.
    influence : float
        ν₁, the influence of the tasks on the first query; 0 is GP-UCB.
    gap : {"mean", "max"}
        Aggregation of the gaps over the measurements of a task; only "max" bounds them (Lemma 7.1).
    weight_rule : {"simplified", "exact"}
        Whether tasks of different length count alike, or by the regret bound, which suppresses long ones.
    include_noise_correction : bool
        Whether gaps contain the lemma's noise term; the weights do not depend on it, the influence does.
    **options
        ``scaling``, ``head_start``, ``share_hyperparameters``, ``max_points`` (see
        :mod:`surefoot.policy.transfer.base`), ``gp``, ``initial``, ``confidence``, ``seed``, ``repeats``, ``journal``.

    >>> from surefoot import Box
    >>> x = np.linspace(0.0, 1.0, 12)[:, None]
    >>> tasks = [Task(x, -((x[:, 0] - 0.32) ** 2)), Task(x, x[:, 0])]
    >>> policy = RMGPUCB(Box([(0.0, 1.0)]), tasks=tasks, seed=0)
    >>> for _ in range(8):
    ...     query = policy.ask()
    ...     policy.tell(query, -((query.x[0] - 0.3) ** 2))
    >>> abs(policy.recommend().x[0] - 0.3) < 0.05, policy.weights[0] > 0.6, policy.nu < 0.2
    (np.True_, np.True_, True)
    """

    def __init__(
        self,
        domain: Domain,
        *,
        tasks: Sequence[Task],
        task_width: Width | None = None,
        **options: Unpack[RobustOptions],
    ) -> None:
        super().__init__(domain, tasks=tasks, **options)
        chance = 3.0 * (domain.size or 1) * len(tasks) / (1.0 - self.confidence)
        usual = Constant(1.0 if self.schedule == "practical" else math.sqrt(2.0 * math.log(chance)))
        self.task_width = given_or(task_width, usual, "task_width")
        self._bounds: Array | None = None

    def _acquisition(self, belief: Posterior | GridPosterior, step: int) -> Acquisition:
        return UpperBound(self._deviations(self.width, self._round(), belief))

    def _task_bound(self) -> UpperBound:
        return UpperBound(self.task_width(1, size=self.domain.size, dimension=self.domain.dimension))

    def _rule(self, step: int, context: Mapping[str, Any]) -> Proposal:
        nu, weights, note = self._learn()
        if nu * weights.max() <= NOTHING:
            return replace(super()._rule(step, context), note=note)
        factor = self._alignment()[1]  # the shift is the same everywhere
        with self._hallucinated() as belief:
            target, bound = self._acquisition(belief, step), self._task_bound()
            if isinstance(self.domain, Candidates):
                if self._bounds is None:  # mean + width · std of every task at every candidate, made once
                    rows = (in_blocks(self._model(i), self.domain.points) for i in range(len(self.tasks)))
                    self._bounds = np.stack([bound.value(*row) for row in rows])
                values = nu * factor * (weights @ self._bounds)
                values += (1.0 - nu) * target.value(*self._everywhere(belief))
                return replace(self._best_candidate(values, step), note=note)
            posterior, models = cast(Posterior, belief), cast(list[Posterior], self._surrogates())
            parts = [(nu * factor * weights[i], models[i], bound) for i in np.flatnonzero(nu * weights > NOTHING)]
            score = WeightedScore([*parts, (1.0 - nu, posterior, target)])  # (7.1)
            return replace(self._best_near_tasks(score, posterior, step, weights), note=note)
