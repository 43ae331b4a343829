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

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Unpack, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot.arguments import one_of, positive
from surefoot.belief.posterior import Posterior
from surefoot.domain import Candidates, Domain
from surefoot.loop.policy import Proposal
from surefoot.policy.base import Acquisition
from surefoot.policy.improvement import ExpectedImprovement
from surefoot.policy.transfer.base import Surrogate, TransferOptions, TransferPolicy, slopes
from surefoot.policy.transfer.tasks import Task

__all__ = ["TAF", "Transferred", "epanechnikov", "rank_distance"]

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
    own : tuple of (Posterior, Acquisition), optional
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
        parts: Sequence[tuple[float, float, float, Surrogate]],
        own: tuple[Posterior, Acquisition] | None,
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


class TAF(TransferPolicy, ExpectedImprovement):
    """Expected improvement on the target plus the improvements predicted by earlier tasks that rank alike.

    Parameters
    ----------
    domain : Box, Candidates or Space
        Where points may lie.
    tasks : sequence of Task or Surrogate
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

    def __init__(
        self,
        domain: Domain,
        *,
        tasks: Sequence[Task | Surrogate],
        distance: str = "discordant",
        bandwidth: float = 0.5,
        scaling: str | None = "task",
        **options: Unpack[TransferOptions],
    ) -> None:
        super().__init__(domain, tasks=tasks, scaling=scaling, **options)
        self.distance = one_of(distance, "distance", ("discordant", "scaled_l2"))
        self.bandwidth = positive(bandwidth, "bandwidth")

    def _takes(self, task: Any) -> bool:
        return callable(getattr(task, "predict", None))

    @property
    def weights(self) -> Array:
        """The weights of the tasks behind the latest query, shape (M,); 0.75 for all before the first."""
        notes = self._by_rule()
        return np.array(notes[-1]["weights"]) if notes else np.full(len(self.tasks), OWN)

    @property
    def weight_history(self) -> Array:
        """The weights behind every query that the rule chose, shape (queries, M)."""
        return np.array([note["weights"] for note in self._by_rule()]).reshape(-1, len(self.tasks))

    def _rule(self, step: int, context: Mapping[str, Any]) -> Proposal:
        X, y, _ = self._data()
        means = self._means_at(X)  # (M, n)
        weights = epanechnikov(rank_distance(means, y, distance=self.distance) / self.bandwidth)
        note = {"weights": weights.tolist()}
        best = self._best(means)
        aligned = self._alignment()[1]
        factors = np.array([aligned if isinstance(task, Task) else 1.0 for task in self.tasks])
        with self._hallucinated() as belief:
            own = self._acquisition(belief, step)
            if isinstance(self.domain, Candidates):
                table = self._tables()[0]
                gains = (weights * factors) @ (np.maximum(table - best[:, None], 0.0) if len(y) else table)
                if len(y):
                    gains = _together(own.value(*self._everywhere(belief)), gains, OWN + float(weights.sum()))
                return replace(self._best_candidate(gains, step), note=note)
            posterior, models = cast(Posterior, belief), self._surrogates()
            parts = [
                (float(weights[i]), float(factors[i]), float(best[i]), models[i]) for i in np.flatnonzero(weights > 0)
            ]
            score = Transferred(parts, (posterior, own) if len(y) else None, self.domain.extent())
            return replace(self._best_near_tasks(score, posterior, step, weights), note=note)

    def _best(self, means: Array) -> Array:
        """What the improvements of each task are counted from, shape (M,)."""
        return means.max(axis=1) if means.size else np.full(len(self.tasks), -np.inf)

    def _means_at(self, X: Array) -> Array:
        """Means of all tasks at measured points, shape (M, n)."""
        if not len(X):
            return np.empty((len(self.tasks), 0))
        if isinstance(self.domain, Candidates):
            return self._tables()[0][:, self._rows()]
        E = self.domain.encode(X)
        return np.array([model.predict(E)[0] for model in self._surrogates()])
