"""Learning which earlier tasks to trust, and how long: the gaps, weights and influence of RM-GP-UCB and its kin.

After every measurement of the target it is estimated how far each task may be from it; these gaps are the losses that
:class:`Learning` sums up. What was learned for a query is noted with it, so that everything follows from the notes.

Equations are those of :mod:`surefoot.policy.transfer.rm_gp_ucb`, where the rule and its options are explained.

Cost, M tasks of N measurements, n of the target: O(M N n²) for the gaps after a new measurement.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot.arguments import not_negative, one_of, open_unit
from surefoot.loop.trials import Trials
from surefoot.loop.widths import Width
from surefoot.policy.transfer.base import by_rule
from surefoot.policy.transfer.models import TaskModels, in_blocks
from surefoot.policy.transfer.tasks import Task
from surefoot.policy.view import View

__all__ = ["Learning", "entropic_weights", "gap_estimates", "next_influence"]

Array = NDArray[np.float64]


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
    # Lemma 7.1: max(|y − U|, |y − L|), with U and L = μ ± wσ of (7.2), is |y − μ| + wσ.
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
    """Return ν_t = ν_{t−1} min(r, gap^(−ε)) of the weighted gap (section 7.5.2); r where that is unknown (NaN).

    >>> next_influence(1.0, 0.5, decay=0.7, sensitivity=0.7)
    0.7
    >>> round(next_influence(1.0, 8.0, decay=0.7, sensitivity=0.7), 4)
    0.2333
    """
    return nu * min(decay, gap**-sensitivity) if gap > 1 else nu * decay  # below 1 the power exceeds any r


@dataclass(frozen=True)
class _Learned:
    """What the queries so far have taught about the tasks."""

    losses: Array  # summed, times the learning rate
    nu: float
    asks: int = 0
    measured: int = 0  # measurements of the target behind the last gaps
    gaps: Array | None = None


class Learning:
    """Gaps (7.2), weights (7.3, 7.4) and influence of earlier tasks.

    Parameters
    ----------
    trials : Trials
        Of the target; the notes of its queries hold what was learned.
    tasks : TaskModels
        The earlier tasks.
    width : width
        β_t^½, in the gaps.
    confidence : float
        1 − δ of the exact weight rule and of the noise correction.
    learning_rate, decay, sensitivity, influence, gap, weight_rule, include_noise_correction
        As of :class:`~surefoot.policy.transfer.rm_gp_ucb.RMGPUCB`.

    >>> from surefoot import RMGPUCB, Box
    >>> RMGPUCB(Box([(0.0, 1.0)]), tasks=[Task([0.1], [1.0]), Task([0.9], [2.0])], seed=0).learning.weights
    array([0.5, 0.5])
    """

    def __init__(
        self,
        trials: Trials,
        tasks: TaskModels,
        *,
        width: Width,
        confidence: float,
        learning_rate: float = 1.0,
        decay: float = 0.7,
        sensitivity: float = 0.7,
        influence: float = 1.0,
        gap: str = "mean",
        weight_rule: str = "simplified",
        include_noise_correction: bool = False,
    ) -> None:
        self.trials, self.tasks, self.width, self.confidence = trials, tasks, width, confidence
        if not not_negative(influence, "influence") <= 1.0:
            raise ValueError(f"influence must lie between 0 and 1, got {influence!r}")
        self.gap = one_of(gap, "gap", ("mean", "max"))
        self.weight_rule = one_of(weight_rule, "weight_rule", ("simplified", "exact"))
        self.learning_rate = not_negative(learning_rate, "learning_rate")
        self.decay, self.sensitivity = open_unit(decay, "decay"), not_negative(sensitivity, "sensitivity")
        self.influence, self.include_noise_correction = float(influence), include_noise_correction
        self._lengths = np.array([len(cast(Task, task)) for task in tasks.tasks])
        self._starts = np.concatenate([[0], np.cumsum(self._lengths)[:-1]])
        self._folded: tuple[Any, _Learned] | None = None
        self._places: Array | None = None

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
        for note in by_rule(self.trials):
            total = total + self._loss(note)
            rows.append(entropic_weights(total))
        return np.array(rows).reshape(-1, len(self.tasks))

    @property
    def nu_history(self) -> Array:
        """The influence ν of the tasks on every query that the rule chose, shape (queries,)."""
        return np.array([note["nu"] for note in by_rule(self.trials)])

    def _loss(self, note: Mapping[str, Any]) -> Array:
        """Losses, times the learning rate, of one query: 0 where no new measurement was there to learn from."""
        if "gaps" not in note:
            return np.zeros(len(self.tasks))
        gaps = np.array(note["gaps"])
        if self.weight_rule == "simplified":
            return self.learning_rate * gaps  # η N^(3/2) gap: (7.4), all N_i taken for N
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
            if last.id < len(self.trials.queries) and self.trials.queries[last.id] is last:
                learned, done = before, last.id + 1
        for query in self.trials.queries[done:]:
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
        if self.trials.queries:
            self._folded = (self.trials.queries[-1], learned)
        return learned

    def learn(self, view: View) -> tuple[float, Array, dict[str, Any]]:
        """Return influence and weights for the next query, and the note to remember them by."""
        before, note = self._fold(), {}
        measured = self.trials.successes
        if measured > before.measured:
            gaps, noise = self._estimate(view)
            note = {"n": measured, "gaps": gaps.tolist(), "noise": noise}
        else:
            gaps = np.full(len(self.tasks), np.nan) if before.gaps is None else before.gaps
        weights = entropic_weights(before.losses + self._loss(note))  # (7.3), solved by (7.4)
        nu = self.influence
        if before.asks:
            # ν_t; the gap of this round is not known before its measurement: the last one serves.
            nu = next_influence(before.nu, float(weights @ gaps), decay=self.decay, sensitivity=self.sensitivity)
        return nu, weights, {"nu": nu, **note}

    def _estimate(self, view: View) -> tuple[Array, float]:
        """Gaps of all tasks (M,), and the noise variance, in units of the scale."""
        posterior, tasks = view.surrogate.posterior(), self.tasks
        if self._places is None:
            self._places = np.vstack([tasks.inputs(i) for i in range(len(tasks))])
        mean, std = in_blocks(posterior, self._places)
        shift, factor = tasks.alignment(self.trials.data()[1])
        y = shift + factor * np.concatenate([tasks.values(cast(Task, task)) for task in tasks.tasks])
        width = view.deviations(self.width, posterior, -len(self.trials.pending))
        gaps = gap_estimates(mean, std, y, self._starts, width, aggregate=self.gap)  # (7.2), Lemma 7.1
        noise = posterior.gp.noise
        if self.include_noise_correction:
            # √(2σ² log(2 Σ N_i/δ')) (Lemma 7.1): the same for all tasks, so the weights do not see it.
            gaps = gaps + math.sqrt(2.0 * noise * math.log(2.0 * len(y) / (1.0 - self.confidence)))
        scale = 1.0 if tasks.scaling is None else tasks.level[1] * factor
        return gaps / scale, noise / scale**2
