"""RGPE: an ensemble of the target's model and those of earlier tasks, weighted by how well each ranks the target.

Question: where is the maximum of an expensive function, when other functions on the same domain were optimized before
and may have the same *shape*, at whatever level and scale?

Rule. The ensemble has mean Σᵢ wᵢ μᵢ and variance Σᵢ wᵢ² σᵢ², over the M tasks and the target. For each model, and each
of S draws from it at the n measured points of the target, the loss is the number of ordered pairs (j, k) with
[y_j < y_k] ⊕ [f(x_j) < f(x_k)]; the target's own model is judged by leave-one-out draws. wᵢ is the share of draws in
which model i has the smallest loss, and ties that the target is part of go to the target. Against dilution by many bad
tasks, a task whose median loss exceeds the 95th percentile of the target's is left out. Then expected improvement, or
an upper bound.

Reference: Feurer, Letham & Bakshy 2018, "Scalable meta-learning for Bayesian optimization using ranking-weighted
Gaussian process ensembles" (RGPE, section 4). Guarantee: none.

Authors' options: S = 500 here as in the comparisons of RM-GP-UCB; every task standardized by itself
(``scaling="task"``).

Differences: below three measurements of the target all models weigh the same. The leave-one-out draws keep the fitted
hyper-parameters and come from one factorization of all measurements. Draws of a model are joint; code in circulation
draws the points of a pair independently (``joint=False``). The tasks may be any surrogate with ``predict``.

Cost of one ask: S draws from every model, O(M (N n + n³ + S n²)), and the search of
:mod:`surefoot.policy.improvement` over the models with a weight.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot.arguments import one_of, whole
from surefoot.belief.mixture import members_of
from surefoot.belief.posterior import EXACT, Posterior, factorize
from surefoot.belief.protocol import Belief
from surefoot.domain import Domain
from surefoot.loop.types import Proposal
from surefoot.loop.widths import Constant, Width, given_or
from surefoot.policy.acquisition import Acquisition, BeliefScore
from surefoot.policy.improvement import LogImprovement
from surefoot.policy.transfer.base import (
    TransferOptions,
    TransferPolicy,
    by_rule,
    near_tasks,
    predicts,
)
from surefoot.policy.transfer.models import Predictor, TaskModels, slopes
from surefoot.policy.transfer.tasks import Task
from surefoot.policy.ucb.gp_ucb import UpperBound
from surefoot.policy.view import View

__all__ = ["RGPE", "Ensemble", "RankingEnsemble", "leave_one_out", "misranked", "ranking_weights"]

Array = NDArray[np.float64]
FEWEST = 3  # measurements of the target from which a ranking says something
BLOCK = 2**22  # pairs compared at once
QUANTILE = 0.95  # of the target's loss, beyond which a task's median loss leaves it out


def misranked(differences: ArrayLike, y: ArrayLike) -> NDArray[np.intp]:
    """Count the ordered pairs (j, k) that draws rank otherwise than the values, shape (S,).

    Parameters
    ----------
    differences : array of shape (S, n, n)
        f(x_k) − f(x_j) at [s, j, k].
    y : array of shape (n,)

    >>> f = np.array([[1.0, 2.0, 3.0], [1.0, 3.0, 2.0]])
    >>> misranked(f[:, None, :] - f[:, :, None], [10.0, 20.0, 30.0])
    array([0, 2])
    """
    values = np.asarray(y, dtype=np.float64)
    wrong = (np.asarray(differences) > 0) ^ (values[None, :] > values[:, None])  # [f(x_j) < f(x_k)] ⊕ [y_j < y_k]
    counts: NDArray[np.intp] = np.count_nonzero(wrong, axis=(1, 2))
    return counts


def leave_one_out(posterior: Posterior, samples: int, rng: np.random.Generator) -> Array:
    """Draw f_{−j}(x_k) − f_{−j}(x_j), f_{−j} the function given all measurements but the j-th; shape (S, n, n).

    With A = (K + Σ)⁻¹, α = A(y − c) and q_j = K A e_j, leaving j out moves the mean at the measured points by
    −q_j α_j/A_jj and adds q_j q_jᵀ/A_jj to their covariance. So the draws of all j are those of the full posterior, and
    one more normal number for each j.

    >>> from surefoot.belief import GP, SE
    >>> posterior = GP(SE(), noise=0.01).condition([[0.0], [5.0]], [0.0, 9.0])
    >>> draws = leave_one_out(posterior, 4000, np.random.default_rng(0))
    >>> abs(draws[:, 1, 0].mean()) < 0.1  # without the second value nothing is known about it
    np.True_
    """
    n, X = posterior.n, posterior.X
    A = posterior.inverse.T @ posterior.inverse
    Q, scale = posterior.gp.kernel(X) @ A, A.diagonal()
    L, _ = factorize(posterior.cov(X), EXACT * posterior.gp.kernel.diag(X))
    full = posterior.mean(X) + rng.standard_normal((samples, n)) @ L.T
    step = posterior.alpha / scale - rng.standard_normal((samples, n)) / np.sqrt(scale)
    differences: Array = full[:, None, :] - full[:, :, None]
    differences -= step[:, :, None] * (Q.T - Q.diagonal()[:, None])
    return differences


def ranking_weights(losses: ArrayLike, *, guard: bool = True) -> Array:
    """Return how often each model ranks best, shape (M + 1,); the target is the last.

    Parameters
    ----------
    losses : array of shape (M + 1, S)
        Misranked pairs of each model in each draw.
    guard : bool
        Whether to leave out tasks whose median loss exceeds the 95th percentile of the target's.

    >>> ranking_weights([[0, 2, 0, 1], [9, 9, 9, 9], [2, 2, 2, 2]])  # a tie with the target goes to the target
    array([0.75, 0.  , 0.25])
    """
    loss = np.array(losses, dtype=np.float64)
    if guard:  # against dilution: a median loss beyond the 95th percentile of the target's
        loss[:-1][np.median(loss[:-1], axis=1) > np.quantile(loss[-1], QUANTILE)] = np.inf
    best = loss == loss.min(axis=0)
    best[:-1, best[-1]] = False  # ties that the target is part of go to the target
    weights: Array = (best / best.sum(axis=0)).mean(axis=1)
    return weights


class Ensemble:
    """Models combined to one with mean Σ wᵢ (aᵢ + bᵢ μᵢ) and variance Σ (wᵢ bᵢ σᵢ)².

    Parameters
    ----------
    parts : sequence of (weight, shift, factor, model)
    extent : array of shape (e,)
        Width of each encoded coordinate, for models that have no gradient of their own.

    >>> from surefoot.belief import GP
    >>> prior = GP(mean=2.0).condition()
    >>> Ensemble([(0.5, 0.0, 1.0, prior), (0.5, 1.0, 1.0, prior)], np.ones(1)).predict(np.zeros((1, 1)))
    (array([2.5]), array([0.70710678]))
    """

    def __init__(self, parts: Sequence[tuple[float, float, float, Predictor]], extent: Array) -> None:
        self.parts, self.extent = list(parts), extent

    def predict(self, E: Array) -> tuple[Array, Array]:
        """Return mean and standard deviation, each of shape (m,)."""
        total, variance = np.zeros(len(E)), np.zeros(len(E))
        for weight, shift, factor, model in self.parts:
            mean, std = model.predict(E)
            total += weight * (shift + factor * mean)  # Σ wᵢ μᵢ
            variance += (weight * factor * std) ** 2  # Σ wᵢ² σᵢ²
        return total, np.sqrt(variance)

    def gradient(self, E: Array) -> tuple[Array, Array, Array, Array]:
        """Return mean and standard deviation (m,), and their gradients (m, e)."""
        total, variance, dmean, dvariance = np.zeros(len(E)), np.zeros(len(E)), np.zeros_like(E), np.zeros_like(E)
        for weight, shift, factor, model in self.parts:
            mean, std, slope, std_slope = slopes(model, E, self.extent)
            total += weight * (shift + factor * mean)
            dmean += (weight * factor) * slope
            variance += (weight * factor * std) ** 2
            dvariance += (2.0 * (weight * factor) ** 2 * std)[:, None] * std_slope
        std = np.sqrt(variance)
        return total, std, dmean, dvariance / (2.0 * np.where(std > 0, std, 1.0))[:, None]


class RankingEnsemble:
    """Weigh the models by how well each ranks the target, and maximize an acquisition of their ensemble.

    Parameters
    ----------
    tasks : TaskModels
        The earlier tasks.
    width : width, optional
        Of an upper bound; None: expected improvement.
    samples, guard, joint
        As of :class:`RGPE`.

    >>> from surefoot import Box
    >>> RGPE(Box([(0.0, 1.0)]), tasks=[Task([0.1], [1.0])], seed=0).rule.equal()
    array([0.5, 0.5])
    """

    def __init__(self, tasks: TaskModels, width: Width | None, *, samples: int, guard: bool, joint: bool) -> None:
        self.tasks, self.width, self.samples, self.guard, self.joint = tasks, width, samples, guard, joint

    def equal(self) -> Array:
        """Return the weights before anything was ranked, shape (M + 1,)."""
        return np.full(len(self.tasks) + 1, 1.0 / (len(self.tasks) + 1))

    def weigh(self, view: View) -> Array:
        """Return wᵢ, how often each model ranks the target best, shape (M + 1,)."""
        X, y, _ = view.trials.data()
        if len(y) < FEWEST:
            return self.equal()
        rng, E = view.stream("ranking", view.step), view.domain.encode(X)
        losses = np.zeros((len(self.tasks) + 1, self.samples), dtype=np.intp)
        size = max(1, BLOCK // len(y) ** 2)
        blocks = [slice(start, min(start + size, self.samples)) for start in range(0, self.samples, size)]
        for i, model in enumerate(self.tasks.models()):
            f = self.draws(model, E, rng)
            for part in blocks:
                losses[i, part] = misranked(f[part, None, :] - f[part, :, None], y)
        own = members_of(view.surrogate.posterior())[0]
        for part in blocks:
            losses[-1, part] = misranked(leave_one_out(own, part.stop - part.start, rng), y)
        return ranking_weights(losses, guard=self.guard)

    def draws(self, model: Predictor, E: Array, rng: np.random.Generator) -> Array:
        """Return draws of a model at the measured points, shape (samples, n); joint where the model can."""
        sample = getattr(model, "sample", None)
        if self.joint and sample is not None:
            return np.asarray(sample(E, self.samples, rng))
        mean, std = model.predict(E)
        return mean + std * rng.standard_normal((self.samples, len(E)))

    def propose(self, view: View) -> Proposal:
        """Return the point of the highest acquisition of the ensemble, and remember the weights."""
        weights = self.weigh(view)
        note = {"weights": weights.tolist()}
        with view.hallucinated() as belief:
            if view.domain.listed:
                mean, std = self.everywhere(view, belief, weights)
                rows = view.trials.rows
                best = mean[rows].max() if len(rows) else mean.max()
                values = self.over(view, belief, float(best)).value(mean, std)
                return replace(view.highest(lambda at: values[at], belief), note=note)
            tasks, (shift, factor) = self.tasks, self.tasks.alignment(view.trials.data()[1])
            parts = [
                (float(w), *((shift, factor) if ours else (0.0, 1.0)), model)
                for w, ours, model in zip(weights, tasks.ours, tasks.models(), strict=False)
                if w > 0
            ]
            ensemble: Any = Ensemble([*parts, (float(weights[-1]), 0.0, 1.0, belief)], view.domain.extent())
            best = ensemble.predict(self.to_beat(view))[0].max()
            score = BeliefScore(ensemble, self.over(view, belief, float(best)))
            return replace(near_tasks(view, tasks, score, belief, weights[:-1]), note=note)

    def everywhere(self, view: View, belief: Belief, weights: Array) -> tuple[Array, Array]:
        """Return mean and standard deviation of the ensemble at all candidates."""
        means, stds = self.tasks.tables()
        shift, factor = self.tasks.alignment(view.trials.data()[1])
        shifts, factors = np.where(self.tasks.ours, shift, 0.0), np.where(self.tasks.ours, factor, 1.0)
        mean, std = view.everywhere(belief)
        w = weights[:-1]
        total = weights[-1] * mean + w @ shifts + (w * factors) @ means
        others = np.einsum("i,ij,ij->j", (w * factors) ** 2, stds, stds)
        return total, np.sqrt((weights[-1] * std) ** 2 + others)

    def over(self, view: View, belief: Belief, best: float) -> Acquisition:
        """Return the upper bound, or the improvement over a value."""
        if self.width is not None:
            return UpperBound(view.deviations(self.width, belief))
        return LogImprovement(best, 1e-10 * view.prior_std(belief.gp))

    def to_beat(self, view: View) -> Array:
        """Return where the value to beat is looked for, encoded: measured points, before any the tasks' best ones."""
        X = view.trials.data()[0]
        if not len(X):
            best = self.tasks.best_points(range(len(self.tasks)))
            X = np.array(best) if best else view.domain.design(16, view.stream("initial", 0))
        return view.domain.encode(X)


class RGPE(TransferPolicy):
    """Expected improvement of a ranking-weighted ensemble of the target's model and those of earlier tasks.

    Parameters
    ----------
    domain : Box, Candidates or Space
        Where points may lie.
    tasks : sequence of Task or Predictor
        What was measured before, or models of it.
    scaling : {"task", "pooled", None}
        "task" moves every task to the mean and spread of the target's values; the other two leave them as they are.
    acquisition : {"improvement", "bound"}
        What is maximized.
    width : width, optional
        Standard deviations of the bound; by default ``Constant(2.0)``.
    samples : int
        Draws behind the weights.
    guard : bool
        Whether tasks that rank much worse than the target's own model are left out.
    joint : bool
        Whether a draw is joint over the measured points.
    **options
        ``head_start``, ``share_hyperparameters``, ``max_points`` (see :mod:`surefoot.policy.transfer.base`), ``gp``,
        ``initial``, ``confidence``, ``seed``, ``repeats``, ``journal``.

    >>> from surefoot import Box
    >>> x = np.linspace(0.0, 1.0, 12)[:, None]
    >>> tasks = [Task(x, 7.0 - 50.0 * (x[:, 0] - 0.32) ** 2), Task(x, x[:, 0])]
    >>> policy = RGPE(Box([(0.0, 1.0)]), tasks=tasks, samples=100, seed=0)
    >>> for _ in range(8):
    ...     query = policy.ask()
    ...     policy.tell(query, -((query.x[0] - 0.3) ** 2))
    >>> abs(policy.recommend().x[0] - 0.3) < 0.05, policy.weights.shape
    (np.True_, (2,))
    """

    takes = staticmethod(predicts)

    def __init__(
        self,
        domain: Domain,
        *,
        tasks: Sequence[Task | Predictor],
        scaling: str | None = "task",
        acquisition: str = "improvement",
        width: Width | None = None,
        samples: int = 500,
        guard: bool = True,
        joint: bool = True,
        **options: Unpack[TransferOptions],
    ) -> None:
        super().__init__(domain, tasks=tasks, scaling=scaling, **options)
        self.acquisition = one_of(acquisition, "acquisition", ("improvement", "bound"))
        self.width, self.samples = given_or(width, Constant(2.0)), whole(samples, "samples", 1)
        self.guard, self.joint = guard, joint
        self.rule: RankingEnsemble = RankingEnsemble(
            self.models,
            self.width if acquisition == "bound" else None,
            samples=self.samples,
            guard=guard,
            joint=joint,
        )

    @property
    def weights(self) -> Array:
        """The weights of the tasks behind the latest query, shape (M,)."""
        return self._latest()[:-1]

    @property
    def target_weight(self) -> float:
        """The weight of the target's own model behind the latest query."""
        return float(self._latest()[-1])

    @property
    def weight_history(self) -> Array:
        """The weights behind every query that the rule chose, the target's last, shape (queries, M + 1)."""
        notes = by_rule(self.trials)
        return np.array([note["weights"] for note in notes]).reshape(-1, len(self.tasks) + 1)

    def _latest(self) -> Array:
        notes = by_rule(self.trials)
        return np.array(notes[-1]["weights"]) if notes else self.rule.equal()
