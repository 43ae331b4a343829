"""PEM-BO: a Gaussian process prior estimated from the tasks, without a kernel.

Question: where is the maximum of a function on a finite set, when many functions from the same prior were measured
there? Each task is taken for an independent draw from one prior, and mean and covariance are estimated from the draws.

Rule: with the table Y of all tasks at all candidates, μ̂ the mean of its M rows and k̂ their covariance (1/(M − 1)),
after t measurements

    μ̂_t(x) = μ̂(x) + k̂(x, X) k̂(X, X)⁻¹ (y − μ̂(X)),
    k̂_t(x, x) = (M − 1)/(M − t − 1) · (k̂(x, x) − k̂(x, X) k̂(X, X)⁻¹ k̂(X, x)),   x_t = argmax μ̂_t + width · k̂_t^(1/2).

The factor in front makes the estimated posterior variance unbiased.

Reference: Wang, Kim & Kaelbling 2018, "Regret bounds for meta Bayesian optimization with an unknown Gaussian process
prior", sections 3 and 4. Guarantee: near-zero regret when the tasks really are draws from the target's prior, every
task was measured everywhere, and M is much larger than t (they use 5,000 measurements and more). Misleading tasks are
not noticed.

Differences from the paper: the width is a separate object (their ζ_t is undefined once t approaches M); the tasks were
not measured everywhere, so that Y holds the posterior means of a Gaussian process fitted to each of them, where the
paper completes the table by low-rank factors; k̂(X, X) gets a small nugget; and since nothing can be estimated from M
tasks once t exceeds M − 3, only the newest M − 3 points are conditioned on.

Cost of one ask: O(C M t) on C candidates; once, a fit per task.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.special import ndtri

from surefoot.belief.posterior import factorize
from surefoot.domain import Candidates, Domain
from surefoot.loop.trials import Trials
from surefoot.loop.types import Proposal, Recommendation
from surefoot.loop.widths import Constant, Width
from surefoot.policy.transfer.base import TransferOptions, TransferPolicy
from surefoot.policy.transfer.models import TaskModels
from surefoot.policy.transfer.tasks import Task
from surefoot.policy.view import View

__all__ = ["PEMBO", "EstimatedPrior"]

Array = NDArray[np.float64]
FEWEST = 4  # tasks from which anything can be estimated and conditioned


class EstimatedPrior:
    """x_t = argmax μ̂_t + width · k̂_t^(1/2).

    Parameters
    ----------
    tasks : TaskModels
        The earlier tasks.
    trials : Trials
        Of the target.
    width, nugget
        As of :class:`PEMBO`.
    """

    def __init__(self, tasks: TaskModels, trials: Trials, width: Width, nugget: float) -> None:
        self.tasks, self.trials, self.width, self.nugget = tasks, trials, width, nugget

    @property
    def table(self) -> Array:
        """Y: every task at every candidate, shape (M, size)."""
        shift, factor = self.tasks.alignment(self.trials.data()[1])
        return shift + factor * self.tasks.tables()[0]

    def posterior(self, rows: NDArray[np.intp], values: Array) -> tuple[Array, Array]:
        """Return μ̂_t and k̂_t(x, x)^(1/2) at all candidates after measurements of some of them."""
        Y = self.table
        tasks, mean = len(Y), Y.mean(axis=0)
        A = (Y - mean) / np.sqrt(tasks - 1.0)  # k̂ = AᵀA
        level = np.einsum("mc,mc->c", A, A)
        # One row per distinct candidate, the newest ones: its mean value, a nugget over the number of repeats.
        distinct, last = np.unique(rows[::-1], return_index=True)
        keep = distinct[np.argsort(last)][: tasks - 3]
        if not keep.size:
            return mean, np.sqrt(level)
        counts = (rows[:, None] == keep).sum(axis=0)
        y = np.where(rows[:, None] == keep, values[:, None], 0.0).sum(axis=0) / counts
        C = A[:, keep]
        L, _ = factorize(C.T @ C, self.nugget * level.mean() / counts)
        V = solve_triangular(L, C.T @ A, lower=True)  # (t, C)
        shrunk = np.maximum(level - np.einsum("tc,tc->c", V, V), 0.0)
        return (
            mean + solve_triangular(L, y - mean[keep], lower=True) @ V,
            np.sqrt(shrunk * (tasks - 1.0) / (tasks - keep.size - 1.0)),
        )

    def propose(self, view: View) -> Proposal:
        """Return the candidate of the highest bound."""
        rows, values = view.trials.rows, view.trials.data()[1]
        mean, std = self.posterior(rows, values)
        more = np.array([row for _, row in view.trials.unknown], dtype=np.intp)
        if more.size:  # pending and failed points, at their mean
            mean, std = self.posterior(np.concatenate([rows, more]), np.concatenate([values, mean[more]]))
        width = self.width(view.round, size=view.domain.size, dimension=view.domain.dimension)
        bound = mean + width * std
        return Proposal(index=view.search(lambda at: bound[at]).row)


class PEMBO(TransferPolicy):
    """Upper confidence bounds under a prior estimated from the tasks.

    Parameters
    ----------
    domain : Candidates
        Where points may lie.
    tasks : sequence of Task
        At least four.
    width : width, optional
        Standard deviations above the mean; by default ``Constant(2.0)``.
    nugget : float
        Added to the diagonal of k̂(X, X), as a share of the mean of k̂(x, x).
    **options
        ``gp`` (of the tasks), ``scaling``, ``initial``, ``confidence``, ``seed``, ``repeats``, ``journal``.

    >>> points = np.linspace(0.0, 1.0, 21)[:, None]
    >>> tasks = [Task(points, -((points[:, 0] - shift) ** 2)) for shift in (0.2, 0.3, 0.4, 0.5, 0.6)]
    >>> policy = PEMBO(Candidates(points), tasks=tasks, seed=0)
    >>> for _ in range(4):
    ...     query = policy.ask()
    ...     policy.tell(query, -((query.x[0] - 0.45) ** 2))
    >>> policy.recommend().x
    array([0.45])
    """

    domains = (Candidates,)

    def __init__(
        self,
        domain: Domain,
        *,
        tasks: Sequence[Task],
        width: Width | None = None,
        nugget: float = 1e-4,
        **options: Unpack[TransferOptions],
    ) -> None:
        if options.get("initial") is None:
            options["initial"] = 0  # the estimated prior needs no design
        super().__init__(domain, tasks=tasks, **options)
        if len(tasks) < FEWEST:
            raise ValueError(f"a prior is estimated from {FEWEST} tasks or more, got {len(tasks)}")
        if not nugget > 0:
            raise ValueError(f"nugget must be positive, got {nugget!r}")
        self.width: Width = Constant(2.0) if width is None else width
        self.nugget = float(nugget)
        self.rule: EstimatedPrior = EstimatedPrior(self.models, self.trials, self.width, self.nugget)

    @property
    def table(self) -> Array:
        """Y: every task at every candidate, shape (M, size)."""
        return self.rule.table

    def _recommend(self) -> Recommendation:
        rows = self.trials.rows
        mean, std = self.rule.posterior(rows, self.trials.data()[1])
        best = int(rows[np.argmax(mean[rows])])
        half = float(ndtri(0.5 + 0.5 * self.confidence) * std[best])
        return self._recommendation(
            self.domain.enumerate()[best],
            mean=float(mean[best]),
            lower=float(mean[best] - half),
            upper=float(mean[best] + half),
            rule="highest estimated posterior mean among measured points",
        )
