"""Learning-curve prediction: stop a run whose extrapolated curve will not reach the best one.

Question: when to give a run up, if learning curves have one of a few known shapes?

Rule (Domhan, Springenberg & Hutter 2015): every other epoch the curve so far is extrapolated by an ensemble of
parametric shapes; when the probability that the last score exceeds the best one falls below 0.05, the run is stopped,
and the *predicted* last score is what GP-UCB is told.

Here a shape is y(n) = c − a φ(n; θ) + noise with φ falling from about 1 to 0: a power (1 + κn)^(−α), an exponential, a
Weibull, a Hill and an inverse-logarithmic curve. Given θ this is a linear regression, whose evidence and predictions
are known exactly under a normal-inverse-gamma prior; θ runs over a grid. Draws from the weighted ensemble that fall
with n, or end above the upper bound of the scores, are thrown away.

Guarantee: none; the belief is fed with guesses. Differences: coefficients and noise are integrated out instead of
sampled by a Markov chain, and shapes are averaged, not summed. Cost of a judged report: a few milliseconds.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import ClassVar, Unpack, cast

import numpy as np
from numpy.typing import NDArray

from surefoot.domain import Domain
from surefoot.loop.types import Advice, Query
from surefoot.loop.widths import Width, given_or, usual
from surefoot.policy.base import ModelOptions, ModelPolicy
from surefoot.policy.epochs.runs import RunPolicy, Runs
from surefoot.policy.surrogate import Data, Rows, Stream, Surrogate
from surefoot.policy.ucb.gp_ucb import UpperConfidence

__all__ = ["CurveExtrapolation", "Extrapolated", "ExtrapolatedRows", "forecast"]

Array = NDArray[np.float64]


@lru_cache(maxsize=4)
def _shapes(epochs: int) -> Array:
    """All shapes of the ensemble at epochs 1..N, shape (shapes, N); each family has the same number of them."""
    n = np.arange(1, epochs + 1, dtype=np.float64)
    rates = np.geomspace(0.3 / epochs, 1.5, 24)[:, None, None]
    bends = np.geomspace(0.5, 2.0, 6)[None, :, None]
    count = rates.size * bends.size
    families = [
        (1.0 + rates * n) ** -bends,
        np.exp(-np.geomspace(0.3 / epochs, 1.5, count)[:, None] * n),
        np.exp(-((rates * n) ** bends)),
        1.0 / (1.0 + (rates * n) ** (2.0 * bends)),
        1.0 / np.log(math.e + np.geomspace(0.05, 20.0, count)[:, None] * n),
    ]
    return np.concatenate([family.reshape(-1, epochs) for family in families])


def forecast(
    scores: Array, epochs: int, rng: np.random.Generator, *, draws: int = 2000, upper: float = math.inf
) -> Array:
    """Return draws of the last score of a run, given its first ones.

    Parameters
    ----------
    scores : array of shape (n,)
        Scores of epochs 1, ..., n, n ≥ 2.
    epochs : int
        N.
    rng : Generator
        Draws.
    draws : int
        How many; fewer come back where some are impossible, at least one.
    upper : float
        Scores are never above this.

    >>> curve = 0.8 - 0.5 * np.exp(-0.2 * np.arange(1, 21))
    >>> ends = forecast(curve, 50, np.random.default_rng(0))
    >>> bool(abs(ends.mean() - 0.8) < 0.02)
    True
    """
    y = np.asarray(scores, dtype=np.float64)
    count = len(y)
    if y.ndim != 1 or count < 2 or count > epochs or not np.isfinite(y).all():
        raise ValueError(f"scores are 2 to {epochs} finite numbers, got {scores!r}")
    phi = _shapes(epochs)
    scale = max(float(np.ptp(y)), 1e-6 * (1.0 + float(np.abs(y).max())))
    t = (y - y[-1]) / scale
    # Normal-inverse-gamma regression on (1, −φ), all shapes at once: prior w ~ N(m₀, σ² I/λ), σ² ~ IG(a₀, b₀).
    Phi = np.stack([np.ones((len(phi), count)), -phi[:, :count]], axis=2)
    precision, m0, a0, b0 = 1e-3, np.array([0.2, 1.0]), 2.0, 2.0 * 0.02**2
    L = precision * np.eye(2) + np.einsum("sni,snj->sij", Phi, Phi)
    right = precision * m0 + np.einsum("sni,n->si", Phi, t)
    mean = np.linalg.solve(L, right[:, :, None])[:, :, 0]
    a = a0 + 0.5 * count
    b = b0 + 0.5 * (t @ t + precision * m0 @ m0 - np.einsum("si,si->s", mean, right))
    b = np.maximum(b, 1e-12)
    evidence = -0.5 * np.linalg.slogdet(L)[1] - a * np.log(b)
    weight = np.exp(evidence - evidence.max())
    pick = rng.choice(len(phi), draws, p=weight / weight.sum())
    variance = b[pick] / rng.gamma(a, size=draws)
    half = np.linalg.cholesky(np.linalg.inv(L))[pick]
    w = mean[pick] + np.sqrt(variance)[:, None] * np.einsum("sij,sj->si", half, rng.standard_normal((draws, 2)))
    ends = y[-1] + scale * (w[:, 0] - w[:, 1] * phi[pick, -1])
    possible = ends[(w[:, 1] >= 0) & (ends <= upper)]
    return possible if possible.size else np.array([min(float(y.max()), upper)])


class Extrapolated:
    """Stop a run whose extrapolated curve will probably not reach the best one.

    Parameters
    ----------
    runs : Runs
        What is known of the runs.
    stream : callable
        The policy's keyed streams.
    threshold, every, first, complete, upper
        As of :class:`CurveExtrapolation`.
    """

    def __init__(
        self, runs: Runs, stream: Stream, *, threshold: float, every: int, first: int, complete: int, upper: float
    ) -> None:
        self.runs, self.stream, self.threshold, self.every = runs, stream, threshold, every
        self.first, self.complete, self.upper = first, complete, upper
        self._forecasts: dict[tuple[int, int], Array] = {}

    def forecast(self, id: int, step: int) -> Array:
        """Return draws of the last score of a run, given its scores up to an epoch."""
        if (id, step) not in self._forecasts:
            rng = self.stream("forecast", id * self.runs.epochs + step)
            self._forecasts[id, step] = forecast(self.runs.scores(id, step), self.runs.epochs, rng, upper=self.upper)
        return self._forecasts[id, step]

    def advise(self, query: Query, step: int, value: float | None) -> Advice:
        """Judge every other epoch by the probability of beating the best run."""
        runs, bar = self.runs, self.runs.bar(query.id, step)
        if value is None or step >= runs.epochs:
            return runs.advise(query, step, value)
        if query.id < self.complete or bar is None or step <= max(self.first, 1) or (step - self.first) % self.every:
            return Advice(False, "not judged at this epoch")
        chance = float((self.forecast(query.id, step) > bar).mean())
        if chance < self.threshold and runs.scores(query, step).max() <= bar:
            reason = f"will not beat {bar:.6g} (probability {chance:.2g})"
            return Advice(True, reason, chance, float(runs.epochs - step))
        return Advice(False, f"may still beat {bar:.6g} (probability {chance:.2g})", chance)


class ExtrapolatedRows(Rows):
    """Runs that ended early count with the score that was predicted for their last epoch."""

    def __init__(self, adviser: Extrapolated) -> None:
        super().__init__(adviser.runs.trials)
        self.adviser = adviser

    def data(self) -> Data:
        X, _, noise = super().data()
        runs, good = self.adviser.runs, [o for o in self.trials.observations if not o.failed]
        y = [
            cast(float, o.value)
            if o.id is None or not 2 <= len(runs.scores(o.id)) < runs.epochs
            else float(self.adviser.forecast(o.id, len(runs.scores(o.id))).mean())
            for o in good
        ]
        return X, np.array(y, dtype=np.float64), noise


class CurveExtrapolation(RunPolicy, ModelPolicy):
    """GP-UCB whose runs are stopped when their extrapolated curve will not reach the best one.

    Parameters
    ----------
    domain : Box, Candidates or Space
        Where configurations may lie.
    epochs : int
        N, the length of a complete run.
    threshold : float
        Stop below this probability of ending above the best run.
    every : int
        Epochs between two judgments.
    first : int, optional
        Epochs that every run gets; None: 16 % of N, at least 3.
    complete : int, optional
        Number of runs at the start that are never stopped; None: the ``initial`` ones.
    upper : float
        Scores are never above this; 1 for an accuracy.
    **options
        ``width``, ``gp``, ``initial``, ``confidence``, ``seed``, ``repeats``, ``journal``.

    >>> from surefoot import Box
    >>> policy = CurveExtrapolation(Box([(0.0, 1.0)]), epochs=30, complete=0, seed=0)
    >>> policy.tell([0.5], 0.9)
    >>> query = policy.ask()
    >>> [policy.report(query, n, 0.4 - 0.3 * 0.5**n).stop for n in range(1, 10)][-1]
    True
    """

    valued: ClassVar[tuple[str, ...]] = ("upper",)

    def __init__(
        self,
        domain: Domain,
        *,
        epochs: int,
        threshold: float = 0.05,
        every: int = 2,
        first: int | None = None,
        complete: int | None = None,
        upper: float = 1.0,
        width: Width | None = None,
        **options: Unpack[ModelOptions],
    ) -> None:
        super().__init__(domain, epochs=epochs, **options)
        if not 0.0 < threshold < 1.0:
            raise ValueError(f"threshold must lie strictly between 0 and 1, got {threshold!r}")
        self.first = max(3, round(0.16 * self.epochs)) if first is None else first
        for name, value in (("every", every), ("first", self.first)):
            if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < 1:
                raise ValueError(f"{name} must be a positive whole number, got {value!r}")
        self.threshold, self.every, self.upper = float(threshold), int(every), float(upper)
        self.complete = self.initial if complete is None else int(complete)
        self.width = given_or(width, usual(domain.size, self.confidence))
        judged = Extrapolated(
            self.runs,
            self.stream,
            threshold=self.threshold,
            every=self.every,
            first=int(self.first),
            complete=self.complete,
            upper=self.upper,
        )
        self.adviser = judged
        self.surrogate = Surrogate(self.trials, self.gp, self.stream, rows=ExtrapolatedRows(judged))
        self.rule = UpperConfidence(self.width)
