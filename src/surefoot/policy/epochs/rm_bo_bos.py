"""BO-BOS that remembers earlier tasks: RM-GP-UCB chooses the configurations, optimal stopping ends the runs.

Question: which configuration to run next, and when to give a run up, if runs take many epochs and similar models were
tuned before, some of them usefully similar and nobody knows which?

Rule: of :mod:`surefoot.policy.epochs.bo_bos` the belief over [x, n], the stopping rule and the conditions C1 and C2; of
:mod:`surefoot.policy.transfer.rm_gp_ucb` the gaps, the weights and the influence of the tasks. The next configuration
maximizes

    ν_t Σᵢ ωᵢ [μ̄ᵢ([x, N]) + τ^½ σ̄ᵢ([x, N])] + (1 − ν_t) [μ_{t−1}([x, N]) + β_t^½ σ_{t−1}([x, N])].

A task's own runs may have been stopped too (:attr:`Task.epochs <surefoot.policy.transfer.tasks.Task>` says after how
many
epochs): its belief is over [x, n] like the target's, and a gap compares the score of a run with what the target would
score *at that epoch*. The last score of an abandoned run is never mistaken for that of a complete one.

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
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from surefoot.belief.posterior import Posterior
from surefoot.domain import Domain
from surefoot.domain.search import Score
from surefoot.experimental import experimental
from surefoot.loop.policy import Proposal
from surefoot.policy.epochs.bo_bos import BOBOS
from surefoot.policy.epochs.runs import AtEpoch
from surefoot.policy.transfer.base import Surrogate
from surefoot.policy.transfer.rm_gp_ucb import RMGPUCB, WeightedScore
from surefoot.policy.transfer.tasks import Task

__all__ = ["RMBOBOS"]

Array = NDArray[np.float64]


@experimental
class RMBOBOS(BOBOS, RMGPUCB):
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

    def __init__(self, domain: Domain, *, epochs: int, tasks: Sequence[Task], **options: Any) -> None:
        super().__init__(domain, epochs=epochs, **{"tasks": tasks, **options})

    def _places_of(self, i: int) -> Array:
        """The measured points of a task, and the epochs its runs lasted; those beyond N count as complete."""
        lasted = cast(Task, self.tasks[i]).epochs
        encoded = self.domain.encode(cast(Array, self._points[i]))
        last = np.full(len(encoded), np.nan) if lasted is None else lasted
        return np.column_stack([encoded, self.coordinate(np.fmin(last, self.epochs))])

    def _model(self, i: int) -> Surrogate:
        return AtEpoch(cast(Posterior, super()._model(i)), 1.0)

    def _best_near_tasks(self, score: Score, belief: Posterior, step: int, weights: Array) -> Proposal:
        *tasks, (share, posterior, bound) = cast(WeightedScore, score).parts
        at_end = WeightedScore([*tasks, (share, cast(Posterior, AtEpoch(posterior, 1.0)), bound)])
        return super()._best_near_tasks(at_end, belief, step, weights)
