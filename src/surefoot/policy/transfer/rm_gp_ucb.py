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
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, Unpack

import numpy as np
from numpy.typing import NDArray

from surefoot.arguments import one_of, whole
from surefoot.domain import Box, Candidates, Domain, Space
from surefoot.loop.types import Proposal
from surefoot.loop.widths import Constant, Finite, Logarithmic, Width, given_or
from surefoot.policy.acquisition import Acquisition
from surefoot.policy.base import ModelOptions, ModelPolicy
from surefoot.policy.transfer.base import (
    HeadStart,
    TargetSurrogate,
    TransferOptions,
    by_rule,
    checked_tasks,
    near_tasks,
)
from surefoot.policy.transfer.learning import Learning
from surefoot.policy.transfer.models import TaskModels, in_blocks
from surefoot.policy.transfer.tasks import Task
from surefoot.policy.ucb.gp_ucb import UpperBound, UpperConfidence
from surefoot.policy.view import View

__all__ = [
    "RMGPUCB",
    "RobustOptions",
    "RobustTransfer",
    "WeightedBound",
    "WeightedScore",
    "checked_schedule",
    "task_deviations",
]

Array = NDArray[np.float64]
NOTHING = 1e-12  # a task of less influence is not asked; when none has more, this is GP-UCB


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

    def __init__(self, parts: Sequence[tuple[float, Any, Acquisition]]) -> None:
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


class WeightedBound:
    """x_t = argmax ν_t Σᵢ ωᵢ [μ̄ᵢ(x) + τ^½ σ̄ᵢ(x)] + (1 − ν_t) [μ_{t−1}(x) + β_t^½ σ_{t−1}(x)]  (7.1).

    Parameters
    ----------
    tasks : TaskModels
        μ̄ᵢ, σ̄ᵢ.
    learning : Learning
        ω and ν.
    width, task_width : width
        β_t^½ and τ^½.

    >>> policy = RMGPUCB(Candidates([0.0, 0.5, 1.0]), tasks=[Task([0.1, 0.5], [1.0, 2.0])], seed=0)
    >>> policy.rule.bounds.shape
    (1, 3)
    """

    def __init__(self, tasks: TaskModels, learning: Learning, width: Width, task_width: Width) -> None:
        self.tasks, self.learning, self.task_width = tasks, learning, task_width
        self.target = UpperConfidence(width)
        self._bounds: Array | None = None

    @property
    def bound(self) -> UpperBound:
        """μ̄ + τ^½ σ̄."""
        domain = self.tasks.domain
        return UpperBound(self.task_width(1, size=domain.size, dimension=domain.dimension))

    @property
    def bounds(self) -> Array:
        """The bound of every task at every candidate, shape (M, size), made once."""
        if self._bounds is None:
            tasks, bound = self.tasks, self.bound
            rows = (in_blocks(tasks.model(i), tasks.domain.enumerate()) for i in range(len(tasks)))
            self._bounds = np.stack([bound.value(*row) for row in rows])
        return self._bounds

    def propose(self, view: View) -> Proposal:
        """Learn from the last measurement, and return the point of the highest weighted bound."""
        nu, weights, note = self.learning.learn(view)  # Algorithm 7.1, line 2: ω by (7.2) to (7.4), and ν
        if nu * weights.max() <= NOTHING:
            return replace(self.target.propose(view), note=note)
        factor = self.tasks.alignment(view.trials.data()[1])[1]  # the shift is the same everywhere
        with view.hallucinated() as belief:
            target = self.target.acquisition(view, belief)
            if view.domain.listed:
                values = nu * factor * (weights @ self.bounds)  # ζ_t of (7.1), at all candidates
                values += (1.0 - nu) * target.value(*view.everywhere(belief))
                return replace(view.highest(lambda at: values[at], belief), note=note)
            models, bound = self.tasks.models(), self.bound
            parts: list[tuple[float, Any, Acquisition]] = [
                (nu * factor * weights[i], models[i], bound) for i in np.flatnonzero(nu * weights > NOTHING)
            ]
            score = WeightedScore([*parts, (1.0 - nu, belief, target)])  # ζ_t of (7.1); line 3: its argmax
            return replace(near_tasks(view, self.tasks, score, belief, weights), note=note)


def task_deviations(schedule: str, domain: Domain, tasks: int, confidence: float) -> Width:
    """Return τ^½ as a schedule says: 1, or √(2 log(3 |X| M/δ)) of Theorem 7.1.

    >>> from surefoot import Box
    >>> task_deviations("practical", Box([(0.0, 1.0)]), 3, 0.95)
    Constant(value=1.0)
    """
    chance = 3.0 * (domain.size or 1) * tasks / (1.0 - confidence)
    return Constant(1.0 if schedule == "practical" else math.sqrt(2.0 * math.log(chance)))  # τ = 2 log(3 |X| M/δ)


def checked_schedule(schedule: str, domain: Domain) -> str:
    """Return a schedule of widths, or refuse one that a domain does not have.

    >>> checked_schedule("theory", Candidates([0.0, 1.0]))
    'theory'
    """
    if one_of(schedule, "schedule", ("practical", "theory")) == "theory" and domain.size is None:
        raise ValueError("schedule='theory' counts the points of a finite domain; use 'practical', or give width=")
    return schedule


class RobustOptions(TransferOptions, total=False):
    """Keyword arguments of :class:`RobustTransfer`, besides :class:`TransferOptions`; see :class:`RMGPUCB`."""

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


class RobustTransfer(ModelPolicy):
    """Base of :class:`RMGPUCB` and :class:`~surefoot.policy.transfer.rm_gp_ts.RMGPTS`: gaps, weights, influence.

    Attributes
    ----------
    models : TaskModels
        The earlier tasks and what they predict.
    learning : Learning
        What the queries so far have taught about them.
    """

    width: Width
    domains = (Box, Candidates, Space)
    valued: ClassVar[tuple[str, ...]] = ("tasks",)
    ignores_pending = True  # what earlier tasks say knows nothing of the points under way

    def __init__(
        self,
        domain: Domain,
        *,
        tasks: Sequence[Task],
        scaling: str | None = "pooled",
        head_start: int = 2,
        share_hyperparameters: bool = False,
        max_points: int | None = None,
        width: Width | None = None,
        schedule: str = "practical",
        learning_rate: float = 1.0,
        decay: float = 0.7,
        sensitivity: float = 0.7,
        influence: float = 1.0,
        gap: str = "mean",
        weight_rule: str = "simplified",
        include_noise_correction: bool = False,
        **options: Unpack[ModelOptions],
    ) -> None:
        super().__init__(domain, **options)
        self.tasks = checked_tasks(tasks, type(self).__name__)
        self.models = TaskModels(
            domain,
            self.tasks,
            self.gp,
            scaling=scaling,
            share_hyperparameters=share_hyperparameters,
            max_points=max_points,
        )
        self.scaling, self.max_points = self.models.scaling, self.models.max_points
        self.head_start, self.share_hyperparameters = whole(head_start, "head_start"), share_hyperparameters
        self.surrogate = TargetSurrogate(self.trials, self.gp, self.stream, self.models)
        self.start = HeadStart(self.head_start, self.start)
        self.schedule = checked_schedule(schedule, domain)
        # β_t = 2 log(|X| t² π²/2δ) is the usual one with δ/3 (Theorem 7.1).
        usual = Logarithmic(0.2) if schedule == "practical" else Finite(1.0 - (1.0 - self.confidence) / 3.0)
        self.width = given_or(width, usual)
        self.learning = Learning(
            self.trials,
            self.models,
            width=self.width,
            confidence=self.confidence,
            learning_rate=learning_rate,
            decay=decay,
            sensitivity=sensitivity,
            influence=influence,
            gap=gap,
            weight_rule=weight_rule,
            include_noise_correction=include_noise_correction,
        )
        learning = self.learning
        self.learning_rate, self.decay, self.sensitivity = learning.learning_rate, learning.decay, learning.sensitivity
        self.influence, self.gap, self.weight_rule = learning.influence, learning.gap, learning.weight_rule
        self.include_noise_correction = learning.include_noise_correction

    @property
    def weights(self) -> Array:
        """The weights ω of the tasks behind the latest query, shape (M,); uniform before the first."""
        return self.learning.weights

    @property
    def nu(self) -> float:
        """The influence ν of the tasks on the latest query, between 0 and 1."""
        return self.learning.nu

    @property
    def gaps(self) -> Array:
        """The estimated gaps behind the latest query, shape (M,), in units of the scale; NaN before the first."""
        return self.learning.gaps

    @property
    def weight_history(self) -> Array:
        """The weights behind every query that the rule chose, shape (queries, M)."""
        return self.learning.weight_history

    @property
    def nu_history(self) -> Array:
        """The influence ν of the tasks on every query that the rule chose, shape (queries,)."""
        return self.learning.nu_history

    def config(self) -> dict[str, Any]:
        """Return the constructor's arguments as strict JSON; many numbers of many tasks are stored by their hashes."""
        return self.models.stored(super().config(), self._arguments["tasks"])

    def _cache(self) -> dict[str, Any]:
        return {**super()._cache(), **(self.models.cache() if by_rule(self.trials) else {})}

    def _restore(self, cache: dict[str, Any]) -> None:
        super()._restore(cache)
        self.models.restore(cache)


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
        usual = task_deviations(self.schedule, domain, len(self.tasks), self.confidence)
        self.task_width = given_or(task_width, usual, "task_width")
        self.rule = WeightedBound(self.models, self.learning, self.width, self.task_width)
