"""Warm starts: what people do with earlier tasks when they have no method for it.

Question: where is the maximum of a function, given measurements of related ones? Two answers without a guarantee:

* :class:`WarmStart` measures a small portfolio of points that were good in earlier tasks first, then goes on by
  expected improvement as if it had thought of these points itself;
* :func:`tell_all` tells a policy all measurements of all tasks, as if they were the target's own. A task at another
  level or of another shape is then simply a wrong measurement.

Reference for the portfolio: Feurer, Springenberg & Hutter 2015 ("Initializing Bayesian hyperparameter optimization via
meta-learning") start from the best points of the nearest tasks. Here there are no meta-features to tell near from far,
so that points are chosen greedily, each adding most to the mean, over tasks, of the best value in the portfolio.

Cost of one ask: as :mod:`surefoot.policy.improvement`; once, a fit per task.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar, Unpack

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from surefoot.arguments import not_negative
from surefoot.domain import Domain
from surefoot.loop.policy import Policy
from surefoot.policy.improvement import Improvement, LogImprovement
from surefoot.policy.start import SobolStart
from surefoot.policy.transfer.base import TransferOptions, TransferPolicy
from surefoot.policy.transfer.tasks import Task

__all__ = ["WarmStart", "tell_all"]

Array = NDArray[np.float64]
P = TypeVar("P", bound=Policy)


class WarmStart(TransferPolicy):
    """Measure what was good in earlier tasks first, then follow expected improvement.

    Parameters
    ----------
    domain : Box, Candidates or Space
        Where points may lie.
    tasks : sequence of Task
        Measurements of the other functions.
    initial : int, optional
        Size of the portfolio; by default one point per task, at most 10. Points told unasked count.
    **options
        ``gp``, ``margin``, ``confidence``, ``seed``, ``repeats``, ``journal``.

    >>> from surefoot import Box
    >>> x = np.linspace(0.0, 1.0, 11)
    >>> tasks = [Task(x[:, None], -((x - best) ** 2)) for best in (0.3, 0.3, 0.8)]
    >>> policy = WarmStart(Box([(0.0, 1.0)]), tasks=tasks, seed=0)
    >>> [round(float(policy.ask().x[0]), 6) for _ in range(2)]
    [0.3, 0.8]
    """

    def __init__(
        self, domain: Domain, *, tasks: Sequence[Task], margin: float = 0.0, **options: Unpack[TransferOptions]
    ) -> None:
        if options.get("initial") is None:
            options["initial"] = min(10, len(tasks))
        options["head_start"] = 0  # the portfolio is the head start
        super().__init__(domain, tasks=tasks, **options)
        self.margin = not_negative(margin, "margin")
        self.start = SobolStart(self.initial, self.portfolio)
        self.rule = Improvement(LogImprovement, self.margin)

    def portfolio(self) -> Array:
        """Return the points to start from, the most useful first, shape (k, d), k ≤ ``initial``."""
        pool = np.array(self.models.best_points(range(len(self.models))))
        if self.domain.listed:
            points = self.domain.enumerate()
            pool = points[cdist(pool, points).argmin(axis=1)]
        pool = pool[np.sort(np.unique(pool, axis=0, return_index=True)[1])]
        E = self.domain.encode(pool)
        values = np.stack([model.predict(E)[0] for model in self.models.models()])  # (tasks, pool)
        low = values.min(axis=1, keepdims=True)
        span = values.max(axis=1, keepdims=True) - low
        values = (values - low) / np.where(span > 0, span, 1.0)  # every task counts alike
        best = np.zeros(len(values))
        chosen: list[int] = []
        for _ in range(min(self.initial, len(pool))):
            gain = np.maximum(values, best[:, None]).sum(axis=0)
            gain[chosen] = -np.inf
            chosen.append(int(gain.argmax()))
            best = np.maximum(best, values[:, chosen[-1]])
        return pool[chosen]


def tell_all(policy: P, tasks: Sequence[Task]) -> P:
    """Tell a policy all measurements of all tasks as if they were its own, and return it.

    >>> from surefoot import Box, GPUCB
    >>> policy = tell_all(GPUCB(Box([(0.0, 1.0)]), seed=0), [Task([[0.1], [0.9]], [1.0, 2.0])])
    >>> len(policy.history)
    2
    """
    for task in tasks:
        for x, value in zip(task.points(policy.domain), task.y, strict=True):
            policy.tell(x, float(value))
    return policy
