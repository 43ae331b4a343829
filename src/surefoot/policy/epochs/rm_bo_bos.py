"""BO-BOS that remembers earlier tasks: RM-GP-UCB chooses the configurations, optimal stopping ends the runs.

Question: which configuration to run next, and when to give a run up, if runs take many epochs and similar models were
tuned before, some of them usefully similar and nobody knows which?

Rule: of :mod:`surefoot.policy.epochs.bo_bos` the belief over [x, n], the stopping rule and the conditions C1 and C2; of
:mod:`surefoot.policy.transfer.rm_gp_ucb` the gaps, the weights and the influence of the tasks. The next configuration
maximizes

    ν_t Σᵢ ωᵢ [μ̄ᵢ([x, N]) + τ^½ σ̄ᵢ([x, N])] + (1 − ν_t) [μ_{t−1}([x, N]) + β_t^½ σ_{t−1}([x, N])].

A task's own runs may have been stopped too (:attr:`Task.epochs <surefoot.policy.transfer.tasks.Task>` says after how
many epochs): its belief is over [x, n] like the target's, and a gap compares the score of a run with what the target
would score *at that epoch*. The last score of an abandoned run is never mistaken for that of a complete one.

Reference: Dai, Yu, Low & Jaillet 2019 and Dai, Chen, Yu, Low & Jaillet 2022; their combination is this library's.

Guarantee: none is published for the combination. Its parts bound each other: the influence ν_t of the tasks ends
whatever they are, and what remains is BO-BOS. With the same belief and no initial design, ``influence=0`` makes it
BO-BOS, and ``stop_until=0`` RM-GP-UCB, exactly.

Authors' options: those of the two parts. As in RM-GP-UCB the tasks choose the first ``head_start`` queries, then what
is missing of an initial design follows, and until the target has scores of its own the tasks lend it their scale.

Cost of one ask: as :mod:`surefoot.policy.transfer.rm_gp_ucb`, with all rows of all runs. Cost of a report: as BO-BOS.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from surefoot.arguments import whole
from surefoot.domain import Domain
from surefoot.experimental import experimental
from surefoot.loop.widths import Width, given_or
from surefoot.policy.epochs.bo_bos import BOBOS
from surefoot.policy.transfer.base import HeadStart, TargetSurrogate, by_rule, checked_tasks
from surefoot.policy.transfer.learning import Learning
from surefoot.policy.transfer.models import TaskModels
from surefoot.policy.transfer.rm_gp_ucb import WeightedBound, checked_schedule, task_deviations
from surefoot.policy.transfer.tasks import Task

__all__ = ["RMBOBOS"]

Array = NDArray[np.float64]


@experimental
class RMBOBOS(BOBOS):
    """Choose configurations by RM-GP-UCB over earlier tasks, and abandon runs that will not beat the best one.

    Parameters
    ----------
    domain : Box, Candidates or Space
        Where configurations may lie.
    epochs : int
        N, the length of a complete run.
    tasks : sequence of Task
        What was measured before, in the units of this objective; the journals of earlier policies serve.
    **options
        All those of :class:`~surefoot.policy.epochs.bo_bos.BOBOS` and of
        :class:`~surefoot.policy.transfer.rm_gp_ucb.RMGPUCB`; ``width`` is that of BO-BOS.

    >>> from surefoot import Box
    >>> x = np.linspace(0.0, 1.0, 9)
    >>> policy = RMBOBOS(Box([(0.0, 1.0)]), epochs=12, tasks=[Task(x, 1.0 - (x - 0.4) ** 2), Task(x, x)], seed=0)
    >>> for _ in range(4):
    ...     query = policy.ask()
    ...     for epoch in range(1, 13):
    ...         if policy.report(query, epoch, (1.0 - (query.x[0] - 0.4) ** 2) * (1.0 - 0.5**epoch)).stop:
    ...             break
    ...     policy.tell(query)
    >>> policy.weights[0] > 0.5, policy.epochs_used + policy.epochs_saved
    (np.True_, 48)
    """

    valued: ClassVar[tuple[str, ...]] = ("tasks",)
    ignores_pending = True  # what earlier tasks say knows nothing of the points under way

    def __init__(
        self,
        domain: Domain,
        *,
        epochs: int,
        tasks: Sequence[Task],
        task_width: Width | None = None,
        scaling: str | None = "pooled",
        head_start: int = 2,
        share_hyperparameters: bool = False,
        max_points: int | None = None,
        schedule: str = "practical",
        learning_rate: float = 1.0,
        decay: float = 0.7,
        sensitivity: float = 0.7,
        influence: float = 1.0,
        gap: str = "mean",
        weight_rule: str = "simplified",
        include_noise_correction: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(domain, epochs=epochs, **options)
        self.tasks = checked_tasks(tasks, type(self).__name__)
        # Tasks, like the target, are believed over [x, n], and asked about the last epoch.
        self.models = TaskModels(
            domain,
            self.tasks,
            self.gp,
            scaling=scaling,
            share_hyperparameters=share_hyperparameters,
            max_points=max_points,
            inputs=self._runs_of,
            facing=self.rows.facing,
        )
        self.surrogate = TargetSurrogate(self.trials, self.gp, self.stream, self.models, self.rows)
        self.start = HeadStart(whole(head_start, "head_start"), self.start)
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
        self.schedule = checked_schedule(schedule, domain)
        usual = task_deviations(schedule, domain, len(self.tasks), self.confidence)
        self.task_width = given_or(task_width, usual, "task_width")
        self.rule.choice = WeightedBound(self.models, self.learning, self.width, self.task_width)
        known, learning = self.models, self.learning
        self.scaling, self.max_points, self.head_start = known.scaling, known.max_points, int(head_start)
        self.share_hyperparameters = share_hyperparameters
        self.learning_rate, self.decay, self.sensitivity = learning.learning_rate, learning.decay, learning.sensitivity
        self.influence, self.gap, self.weight_rule = learning.influence, learning.gap, learning.weight_rule
        self.include_noise_correction = learning.include_noise_correction

    def _runs_of(self, task: Task, points: Array) -> Array:
        """The measured points of a task, and the epochs its runs lasted; those beyond N count as complete."""
        encoded = self.domain.encode(points)
        last = np.full(len(encoded), np.nan) if task.epochs is None else task.epochs
        return np.column_stack([encoded, self.rows.coordinate(np.fmin(last, self.epochs))])

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
