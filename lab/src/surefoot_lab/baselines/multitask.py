"""MTBO: one Gaussian process over all tasks, and expected improvement on the target.

Question: where is the maximum of a function, given measurements of related ones? The joint model learns how strongly
each pair of tasks is tied, with either sign.

Rule: f(x, i) is one process with covariance B[i, j] k(x, z), B = L Lᵀ a free matrix between the M tasks and the target
(intrinsic coregionalization); EI at the target, over its highest posterior mean among measured points.

Reference: Swersky, Snoek & Adams 2013, "Multi-task Bayesian optimization", section 3. Guarantee: none.

Differences from the paper: hyper-parameters are the most probable ones under wide priors, not drawn by MCMC; no
entropy search and no queries of the other tasks; the outputs of all tasks are standardized by one affine map.

Cost of one ask: a fit of (M + 1)(M + 2)/2 + d + 1 hyper-parameters to all ΣNᵢ + t measurements, O((ΣNᵢ + t)³) for each
of its steps. This is why it is a baseline and not a policy to recommend: everything else here is linear in M.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self, Unpack, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot.belief.algebra import Evaluate, Kernel, Pulled
from surefoot.belief.gp import GP
from surefoot.belief.pinned import PinnedPosterior, with_column
from surefoot.belief.priors import Fixed, LogNormal, Prior
from surefoot.belief.protocol import Belief
from surefoot.domain import Domain
from surefoot.loop.trials import Trials
from surefoot.policy.acquisition import Acquisition
from surefoot.policy.improvement import LogImprovement
from surefoot.policy.rule import Pointwise
from surefoot.policy.surrogate import Data, Rows, Surrogate
from surefoot.policy.transfer.base import TransferOptions, TransferPolicy
from surefoot.policy.transfer.models import TaskModels
from surefoot.policy.transfer.tasks import Task
from surefoot.policy.view import View

__all__ = ["MTBO", "Coregionalization", "JointImprovement", "JointRows", "JointSurrogate"]

Array = NDArray[np.float64]


class Coregionalization(Kernel):
    """A free covariance between tasks: k(i, j) = B[i, j], B = L Lᵀ, on one column of task numbers.

    Parameters
    ----------
    factor : array of shape (m, m)
        L, lower triangular with a positive diagonal. ``theta`` holds its lower triangle by rows: logarithms on the
        diagonal, the numbers themselves below it, which may have either sign.

    >>> k = Coregionalization([[1.0, 0.0], [0.6, 0.8]])
    >>> k(np.array([[0.0], [1.0]]))
    array([[1. , 0.6],
           [0.6, 1. ]])
    """

    def __init__(self, factor: ArrayLike) -> None:
        L = np.array(factor, dtype=np.float64)
        if L.ndim != 2 or L.shape[0] != L.shape[1] or not np.isfinite(L).all() or not (L.diagonal() > 0).all():
            raise ValueError(f"the factor must be square with a positive diagonal, got {factor!r}")
        self.factor = np.tril(L)
        self.factor.setflags(write=False)

    @classmethod
    def start(cls, tasks: int, correlation: float = 0.5) -> Self:
        """Return the kernel in which all pairs of tasks have the same correlation."""
        B = correlation + (1.0 - correlation) * np.eye(tasks)
        return cls(np.linalg.cholesky(B))

    @property
    def covariance(self) -> Array:
        """B, shape (m, m)."""
        return self.factor @ self.factor.T

    def _rows(self, X: Array) -> NDArray[np.intp]:
        rows = X[:, 0].astype(np.intp)
        if X.shape[1] != 1 or (rows != X[:, 0]).any() or (rows < 0).any() or (rows >= len(self.factor)).any():
            raise ValueError(f"tasks are numbered 0..{len(self.factor) - 1} in one column, got {X!r}")
        return rows

    def __call__(self, X: Any, Z: Any | None = None) -> Any:
        rows = self._rows(X)
        return self.covariance[np.ix_(rows, rows if Z is None else self._rows(Z))]

    def diag(self, X: Any) -> Any:
        return self.covariance.diagonal()[self._rows(X)]

    @property
    def theta(self) -> Array:
        L = self.factor.copy()
        np.fill_diagonal(L, np.log(L.diagonal()))
        return L[np.tril_indices(len(L))]

    @property
    def names(self) -> list[str]:
        return [f"task[{i},{j}]" for i, j in zip(*np.tril_indices(len(self.factor)), strict=True)]

    def with_theta(self, theta: ArrayLike) -> Self:
        L = np.zeros_like(self.factor)
        L[np.tril_indices(len(L))] = theta
        np.fill_diagonal(L, np.exp(L.diagonal()))
        return type(self)(L)

    def scaled(self, factor: float) -> Self:
        return type(self)(np.sqrt(factor) * self.factor)

    def over(self, X: Array) -> Evaluate:
        rows, m = self._rows(X), len(self.factor)
        member = np.zeros((len(rows), m))
        member[np.arange(len(rows)), rows] = 1.0
        at = np.tril_indices(m)

        def evaluate(theta: Array) -> Pulled:
            kernel = self.with_theta(theta)
            L = kernel.factor

            def pull(W: Array) -> Array:
                G = member.T @ W @ member  # Σ Wₐᵦ over the pairs of each two tasks
                slope = (G + G.T) @ L  # ∂B = ∂L Lᵀ + L ∂Lᵀ
                slope[np.diag_indices(m)] *= L.diagonal()
                return slope[at]

            return kernel.covariance[np.ix_(rows, rows)], pull

        return evaluate

    def pull_input(self, X: Array, Z: Array) -> Pulled:
        return self(X, Z), lambda W: np.zeros_like(X)  # a task number does not move

    def to_dict(self) -> dict[str, Any]:
        return {"kernel": type(self).__name__, "factor": self.factor.tolist()}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        return cls(**data)


class JointRows(Rows):
    """What a belief over (point, task) sees: the tasks' measurements first, those of the target after them.

    Parameters
    ----------
    trials : Trials
        Of the target.
    tasks : TaskModels
        The others.
    """

    listed = False

    def __init__(self, trials: Trials, tasks: TaskModels) -> None:
        super().__init__(trials)
        self.target = float(len(tasks))
        self.others = np.vstack([with_column(tasks.inputs(i), i) for i in range(len(tasks))])
        self.known = np.concatenate([tasks.values(task) for task in cast(tuple[Task, ...], tasks.tasks)])

    def encode(self, X: Array) -> Array:
        return with_column(self.domain.encode(X), self.target)

    def facing(self, known: Any) -> Belief:
        return PinnedPosterior(known, self.target)

    def data(self) -> Data:
        X, y, noise = self.trials.data()
        own = None if np.isnan(noise).all() else np.concatenate([np.full(len(self.known), np.nan), noise])
        return np.vstack([self.others, self.encode(X)]), np.concatenate([self.known, y]), own

    def span(self, runs: int) -> int:
        return len(self.known) + runs


class JointSurrogate(Surrogate):
    """A belief that is fitted before the first measurement of the target: the tasks' measurements call for it."""

    def due(self, n: int) -> int | None:
        at = super().due(n)
        return 0 if at is None and self.gp.every is not None else at


class JointImprovement(Pointwise):
    """Expected improvement on the target, over its highest posterior mean among measured points."""

    def __init__(self, rows: JointRows) -> None:
        self.rows = rows

    def acquisition(self, view: View, belief: Belief, ahead: int = 0) -> Acquisition:
        X, _, _ = view.trials.data()
        # Before the first measurement: better than the best that the model expects where other tasks were measured.
        seen = self.rows.encode(X) if len(X) else with_column(self.rows.others[:, :-1], self.rows.target)
        best = float(cast(PinnedPosterior, belief).posterior.mean(seen).max())
        return LogImprovement(best, 1e-10 * float(self.rows.known.std() or 1.0))


class MTBO(TransferPolicy):
    """Expected improvement under one Gaussian process over the tasks and the target.

    Parameters
    ----------
    domain : Box, Candidates or Space
        Where points may lie.
    tasks : sequence of Task
        Measurements of the other functions, in the units of the domain.
    gp : GP, optional
        Its kernel is k(x, z) and its priors are those of k; ``gp.refit(every=5)`` fits less often. None: automatic.
    **options
        ``initial``, ``confidence``, ``seed``, ``repeats``, ``journal``. The scaling plays no part: B learns it.

    >>> from surefoot import Box
    >>> x = np.linspace(0.0, 1.0, 12)
    >>> other = Task(x[:, None], 3.0 - 10.0 * (x - 0.4) ** 2)
    >>> policy = MTBO(Box([(0.0, 1.0)]), tasks=[other], seed=0)
    >>> for _ in range(5):
    ...     query = policy.ask()
    ...     policy.tell(query, 1.0 - 5.0 * (query.x[0] - 0.45) ** 2)
    >>> abs(policy.recommend().x[0] - 0.45) < 0.05
    np.True_
    """

    def __init__(self, domain: Domain, *, tasks: Sequence[Task], **options: Unpack[TransferOptions]) -> None:
        if options.get("initial") is None:
            options["initial"] = 0  # the joint model needs no design of its own
        super().__init__(domain, tasks=tasks, **options)
        rows = JointRows(self.trials, self.models)
        self.surrogate = JointSurrogate(self.trials, self._coregionalized(self.gp), self.stream, rows=rows)
        self.rule = JointImprovement(rows)

    @property
    def covariance(self) -> Array:
        """The fitted covariance B between the tasks and, last, the target, shape (M + 1, M + 1)."""
        return self.surrogate.now().kernel.left.inner.covariance  # type: ignore[attr-defined]

    def _coregionalized(self, gp: GP) -> GP:
        """The process over (point, task)."""
        columns = list(range(self.domain.encoded_dimension))
        free = Coregionalization.start(len(self.tasks) + 1)
        # The numbers below the diagonal of L are their own "logarithm", see theta. The scale of k(x, z) is B's.
        priors: dict[str, Prior] = {
            f"left.{name}": LogNormal.around(math.exp(value), 1.0)
            for name, value in zip(free.names, free.theta, strict=True)
        }
        priors |= {name if name in ("noise", "mean") else f"right.{name}": p for name, p in (gp.priors or {}).items()}
        if "variance" in gp.kernel.names:
            priors["right.variance"] = Fixed(1.0)
        kernel = free.on([len(columns)]) * gp.kernel.on(columns)
        return replace(gp, kernel=kernel, priors=priors, samples=0, members=())
