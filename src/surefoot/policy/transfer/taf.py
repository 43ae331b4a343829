"""TAF: expected improvement on the target, plus the improvements that earlier tasks predict.

Question: as :mod:`surefoot.policy.transfer.rgpe`; instead of the models, their *acquisitions* are combined, so that
tasks cannot make the target's own model overconfident.

Rule, with ρ the bandwidth and K(t) = ¾ (1 − t²) for t ≤ 1, else 0 (Epanechnikov):

    a(x) = [¾ EI(x) + Σᵢ wᵢ Iᵢ(x)] / (¾ + Σᵢ wᵢ),   wᵢ = K(dᵢ/ρ),   Iᵢ(x) = max(μᵢ(x) − bestᵢ, 0),

bestᵢ the largest mean of task i at the measured points of the target. Two distances dᵢ are in circulation:

* ``"discordant"``: the share of pairs of measured points that μᵢ ranks otherwise than the target's values (the authors'
  reference implementation); tasks that disagree on half of the pairs are filtered out at ρ = ½.
* ``"scaled_l2"``: the Euclidean distance between the vectors of pair indicators, each divided by n(n − 1) (the code
  behind the published comparisons with RM-GP-UCB). It is at most 1/√(n(n − 1)), below ½ from the third measurement on,
  so that no task is ever filtered out and every weight tends to ¾.

Reference: Wistuba, Schilling & Schmidt-Thieme 2018, "Scalable Gaussian process-based transfer surrogates for
hyperparameter optimization" (TAF-R). Guarantee: none. Authors' options: ρ is tuned; ½ in the comparisons.

Differences: maximized in logarithms (same argmax), so that it still guides the search where every improvement is
nearly 0. Before the first measurement it is Σᵢ wᵢ μᵢ. Every task is moved to the mean and the spread of the target's
values (``scaling="task"``), where the authors map all to [0, 1]. The tasks may be any surrogate with ``predict``.

Cost of one ask: that of :mod:`surefoot.policy.improvement` plus the predictions of every task that is not filtered out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot.arguments import not_negative, one_of, positive
from surefoot.belief.protocol import Belief
from surefoot.domain import Domain
from surefoot.loop.types import Proposal
from surefoot.policy.acquisition import Acquisition
from surefoot.policy.improvement import Improvement, LogImprovement
from surefoot.policy.transfer.base import (
    TransferOptions,
    TransferPolicy,
    by_rule,
    near_tasks,
    predicts,
)
from surefoot.policy.transfer.models import Predictor, TaskModels, slopes
from surefoot.policy.transfer.tasks import Task
from surefoot.policy.view import View

__all__ = ["TAF", "Transferred", "TransferredImprovement", "epanechnikov", "rank_distance"]

Array = NDArray[np.float64]
OWN = 0.75  # weight of the target, the kernel's value at distance 0


def epanechnikov(t: ArrayLike) -> Array:
    """Return ¾ (1 − t²) where |t| ≤ 1, else 0.

    >>> epanechnikov([0.0, 0.5, 2.0])
    array([0.75  , 0.5625, 0.    ])
    """
    values: Array = np.maximum(OWN * (1.0 - np.asarray(t, dtype=np.float64) ** 2), 0.0)
    return values


def rank_distance(means: ArrayLike, y: ArrayLike, *, distance: str = "discordant") -> Array:
    """Return how differently models rank the measured points from the values, shape (M,).

    Parameters
    ----------
    means : array of shape (M, n)
        Means of each model at the measured points.
    y : array of shape (n,)
    distance : {"discordant", "scaled_l2"}

    >>> rank_distance([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0], [1.0, 3.0, 2.0]], [1.0, 2.0, 3.0]).round(3)
    array([0.   , 1.   , 0.333])
    >>> rank_distance([[3.0, 2.0, 1.0]], [1.0, 2.0, 3.0], distance="scaled_l2").round(3)  # 1/√6
    array([0.408])
    """
    f, values = np.asarray(means, dtype=np.float64), np.asarray(y, dtype=np.float64)
    n = len(values)
    if n < 2:
        return np.zeros(len(f))
    wrong = (f[:, None, :] > f[:, :, None]) ^ (values[None, :] > values[:, None])
    pairs = np.count_nonzero(wrong, axis=(1, 2))
    return np.asarray(pairs if distance == "discordant" else np.sqrt(pairs), dtype=np.float64) / (n * (n - 1))


class Transferred:
    """Logarithm of the transfer acquisition over encoded points, with its gradient.

    Parameters
    ----------
    parts : sequence of (weight, factor, best, model)
        Of each task; ``factor`` brings its improvements to the target's scale, a ``best`` of −∞ counts the mean itself.
    own : tuple of (Belief, Acquisition), optional
        The target's belief and its log expected improvement; None before the first measurement.
    extent : array of shape (e,)
        Width of each encoded coordinate, for models that have no gradient of their own.

    >>> from surefoot.belief import GP
    >>> from surefoot.policy.improvement import LogImprovement
    >>> prior = GP().condition()
    >>> score = Transferred([], (prior, LogImprovement(0.0, 1e-12)), np.ones(1))
    >>> score(np.zeros((1, 1))).round(4)  # log EI alone
    array([-0.9189])
    """

    def __init__(
        self,
        parts: Sequence[tuple[float, float, float, Predictor]],
        own: tuple[Belief, Acquisition] | None,
        extent: Array,
    ) -> None:
        self.parts, self.own, self.extent = list(parts), own, extent
        self.total = sum(part[0] for part in parts) + (OWN if own else 0.0)

    def __call__(self, E: Array) -> Array:
        gains = np.zeros(len(E))
        for weight, factor, best, model in self.parts:
            gains += weight * factor * _gain(model.predict(E)[0], best)
        if self.own is None:
            return gains / self.total
        posterior, acquisition = self.own
        return _together(acquisition.value(*posterior.predict(E)), gains, self.total)

    def gradient(self, E: Array) -> tuple[Array, Array]:
        """Return scores (m,) and gradients (m, e)."""
        gains, slope = np.zeros(len(E)), np.zeros_like(E)
        for weight, factor, best, model in self.parts:
            mean, _, mean_gradient, _ = slopes(model, E, self.extent)
            gains += weight * factor * _gain(mean, best)
            slope += (weight * factor * (mean > best))[:, None] * mean_gradient
        if self.own is None:
            return gains / self.total, slope / self.total
        posterior, acquisition = self.own
        mean, std, mean_gradient, std_gradient = posterior.gradient(E)
        log, by_mean, by_std = acquisition.slopes(mean, std)
        value = _together(log, gains, self.total)
        # d log(¾ e^log + g) = share of the first · d log + dg/(¾ e^log + g)
        share = np.exp(np.log(OWN) + log - np.log(self.total) - value)
        inner = by_mean[:, None] * mean_gradient + by_std[:, None] * std_gradient
        return value, share[:, None] * inner + _small(slope, value, self.total)


def _gain(mean: Array, best: float) -> Array:
    """Improvements over the best value; without one, the mean itself."""
    return mean if best == -np.inf else np.maximum(mean - best, 0.0)


def _together(log: Array, gains: Array, total: float) -> Array:
    """log[(¾ e^log + gains)/total] without underflow."""
    with np.errstate(divide="ignore"):
        value: Array = np.logaddexp(np.log(OWN) + log, np.log(gains)) - np.log(total)
    return value


def _small(slope: Array, value: Array, total: float) -> Array:
    """Slope over the value behind its logarithm; where no task improves both vanish and the slope is 0."""
    moving = (slope != 0).any(axis=1)
    out = np.zeros_like(slope)
    out[moving] = slope[moving] * np.exp(-value[moving] - np.log(total))[:, None]
    return out


class TransferredImprovement:
    """x_t = argmax [¾ EI(x) + Σᵢ wᵢ Iᵢ(x)] / (¾ + Σᵢ wᵢ), with wᵢ = K(dᵢ/ρ) and Iᵢ(x) = max(μᵢ(x) − bestᵢ, 0).

    Parameters
    ----------
    tasks : TaskModels
        μᵢ.
    margin, distance, bandwidth
        As of :class:`TAF`.
    incumbents : array of shape (M,), optional
        bestᵢ; None: the largest mean of each task at the measured points of the target.

    >>> from surefoot import Box
    >>> policy = TAF(Box([(0.0, 1.0)]), tasks=[Task([0.1, 0.5], [1.0, 2.0])], seed=0)
    >>> policy.rule.best(np.array([[1.0, 3.0]]))
    array([3.])
    """

    def __init__(
        self,
        tasks: TaskModels,
        *,
        margin: float = 0.0,
        distance: str = "discordant",
        bandwidth: float = 0.5,
        incumbents: Array | None = None,
    ) -> None:
        self.tasks, self.incumbents = tasks, incumbents
        self.distance = one_of(distance, "distance", ("discordant", "scaled_l2"))
        self.bandwidth = positive(bandwidth, "bandwidth")
        self.own = Improvement(LogImprovement, not_negative(margin, "margin"))

    def propose(self, view: View) -> Proposal:
        """Return the point of the highest transfer acquisition, and remember the weights."""
        y, tasks, means = view.trials.data()[1], self.tasks, self.means(view)
        weights = epanechnikov(rank_distance(means, y, distance=self.distance) / self.bandwidth)  # wᵢ = K(dᵢ/ρ)
        note = {"weights": weights.tolist()}
        best = self.best(means)
        factors = np.where(tasks.ours, tasks.alignment(y)[1], 1.0)
        with view.hallucinated() as belief:
            own = self.own.acquisition(view, belief)
            if view.domain.listed:
                table = tasks.tables()[0]
                # Σᵢ wᵢ Iᵢ(x)
                gains = (weights * factors) @ (np.maximum(table - best[:, None], 0.0) if len(y) else table)
                if len(y):
                    gains = _together(own.value(*view.everywhere(belief)), gains, OWN + float(weights.sum()))
                return replace(view.highest(lambda at: gains[at], belief), note=note)
            models = tasks.models()
            parts = [
                (float(weights[i]), float(factors[i]), float(best[i]), models[i]) for i in np.flatnonzero(weights > 0)
            ]
            score = Transferred(parts, (belief, own) if len(y) else None, view.domain.extent())
            return replace(near_tasks(view, tasks, score, belief, weights), note=note)

    def best(self, means: Array) -> Array:
        """Return bestᵢ, given the means at the measured points (M, n), shape (M,)."""
        if not means.size:
            return np.full(len(self.tasks), -np.inf)
        return means.max(axis=1) if self.incumbents is None else self.incumbents

    def means(self, view: View) -> Array:
        """Return the means of all tasks at the measured points, shape (M, n)."""
        X = view.trials.data()[0]
        if not len(X):
            return np.empty((len(self.tasks), 0))
        if view.domain.listed:
            return self.tasks.tables()[0][:, view.trials.rows]
        E = view.domain.encode(X)
        return np.array([model.predict(E)[0] for model in self.tasks.models()])


class TAF(TransferPolicy):
    """Expected improvement on the target plus the improvements predicted by earlier tasks that rank alike.

    Parameters
    ----------
    domain : Box, Candidates or Space
        Where points may lie.
    tasks : sequence of Task or Predictor
        What was measured before, or models of it.
    distance : {"discordant", "scaled_l2"}
        How unlike a task is; the second filters nothing, see the module's page.
    bandwidth : float
        ρ, the distance from which a task is left out.
    scaling : {"task", "pooled", None}
        "task" moves every task to the mean and spread of the target's values; the other two leave them as they are.
    **options
        ``margin``, ``head_start``, ``share_hyperparameters``, ``max_points`` (see
        :mod:`surefoot.policy.transfer.base`), ``gp``, ``initial``, ``confidence``, ``seed``, ``repeats``, ``journal``.

    >>> from surefoot import Box
    >>> x = np.linspace(0.0, 1.0, 12)[:, None]
    >>> tasks = [Task(x, 7.0 - 50.0 * (x[:, 0] - 0.32) ** 2), Task(x, (x[:, 0] - 0.3) ** 2)]
    >>> policy = TAF(Box([(0.0, 1.0)]), tasks=tasks, seed=0)
    >>> for _ in range(8):
    ...     query = policy.ask()
    ...     policy.tell(query, -((query.x[0] - 0.3) ** 2))
    >>> abs(policy.recommend().x[0] - 0.3) < 0.05, policy.weights[0] > policy.weights[1]
    (np.True_, np.True_)
    """

    takes = staticmethod(predicts)

    def __init__(
        self,
        domain: Domain,
        *,
        tasks: Sequence[Task | Predictor],
        distance: str = "discordant",
        bandwidth: float = 0.5,
        scaling: str | None = "task",
        margin: float = 0.0,
        **options: Unpack[TransferOptions],
    ) -> None:
        super().__init__(domain, tasks=tasks, scaling=scaling, **options)
        self.rule = TransferredImprovement(self.models, margin=margin, distance=distance, bandwidth=bandwidth)
        self.margin, self.distance, self.bandwidth = float(margin), distance, self.rule.bandwidth

    @property
    def weights(self) -> Array:
        """The weights of the tasks behind the latest query, shape (M,); 0.75 for all before the first."""
        notes = by_rule(self.trials)
        return np.array(notes[-1]["weights"]) if notes else np.full(len(self.tasks), OWN)

    @property
    def weight_history(self) -> Array:
        """The weights behind every query that the rule chose, shape (queries, M)."""
        return np.array([note["weights"] for note in by_rule(self.trials)]).reshape(-1, len(self.tasks))
