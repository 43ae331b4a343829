"""Entropy search and minimum regret search: what would a measurement tell about *where* the maximum is?

Question: where is the maximum, when a measurement is worth what it teaches about the maximizer x* (entropy search), or
the regret it saves at the point one would report (minimum regret search)?

Rules. The belief about the maximizer lives on m *representer points*: p(r) = P(r has the largest value among them).

* Entropy search: maximize H[p] − E_y H[p | x, y].
* Minimum regret search, with ER(r) = E[max f − f(r)] over the representers: maximize the fall of ER under x* ~ p
  ("distribution"), or of its minimum ("point"). The expectation of max f is the same before and after a measurement,
  hence the two are E_y Σ p(r | x, y) μ(r | x, y) − Σ p(r) μ(r) and E_y max μ(r | x, y) − max μ(r); the second is the
  knowledge gradient of the representers, and exact here: an expectation of the largest of m lines in a normal variable.

How. The first two are Monte Carlo over joint draws f_R of the representers and over a few values y, all of them shared
by all trial points. Conditioning a draw is one rank-one shift (Matheron's rule): if (f_R, y') is a joint draw, then
f_R + c (y − y')/s², with c = cov(R, x) and s² = var(x) + noise, is a draw given the value y. No draw is repeated, no
matrix factorized again.

References: Hennig & Schuler 2012 (entropy search; they used expectation propagation); Metzen 2016 (minimum regret
search); Frazier, Powell & Dayanik 2009, Algorithm 1 (the largest of several lines). Guarantee: none is known.

Differences from the papers: representers are drawn without replacement in proportion to the expected improvement, and
the score is maximized over finitely many trial points (all candidates where they are few), not by a local search, so
that a noisy estimate is compared at the same draws everywhere.

Cost of one ask: O(trials · values · samples · m) for the Monte Carlo, O(trials · m²) for the exact rule, and on M
candidates O(m n M) for the covariances.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Unpack

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.special import logsumexp, ndtri

from surefoot.arguments import one_of, whole
from surefoot.belief.posterior import factorize
from surefoot.belief.protocol import Belief
from surefoot.domain import Candidates, Domain
from surefoot.domain.ranking import argmax
from surefoot.loop.types import Proposal
from surefoot.policy.base import ModelOptions, ModelPolicy
from surefoot.policy.improvement import LogImprovement, log_h
from surefoot.policy.view import View

__all__ = ["EntropySearch", "Fantasies", "MinimumRegretSearch", "largest_line"]

Array = NDArray[np.float64]
Rows = NDArray[np.intp]

POOL = 1024  # Sobol points among which representers and trial points of a box are drawn
RADII = (0.1, 0.03, 0.01, 0.003, 0.001)  # of the clouds around the best points, in units of the domain's extent
CLOUD = 40  # points per radius and best point
BLOCK = 2**21  # numbers held at once by the Monte Carlo


def largest_line(heights: Array, slopes: Array) -> Array:
    """Return log(E max_r (a_r + b_r Z) − max_r a_r) for a standard normal Z, shape (q,).

    Parameters
    ----------
    heights : array of shape (m,) or (q, m)
        The heights a of the lines at 0.
    slopes : array of shape (q, m)
        Their slopes b; each row is a problem of its own. Rows of equal slopes gain nothing: −∞.

    The upper envelope is walked from left to right, all problems at once. With its breakpoints z_k and the slopes on
    either side, the gain is Σ (b_{k+1} − b_k) h(−|z_k|), h(z) = φ(z) + z Φ(z) (Frazier et al. 2009, equation 14).

    >>> largest_line(np.zeros(2), np.array([[-1.0, 1.0]])).round(6)  # E|Z| = √(2/π)
    array([-0.225791])
    """
    b = np.atleast_2d(np.asarray(slopes, dtype=np.float64))
    a = np.broadcast_to(np.asarray(heights, dtype=np.float64), b.shape)
    rows = np.arange(len(b))
    # Leftmost: the smallest slope, among equal ones the highest line.
    current = np.lexsort((-a, b), axis=1)[:, 0]
    terms = [np.full(len(b), -np.inf)]
    for _ in range(b.shape[1] - 1):
        rise = b - b[rows, current][:, None]
        drop = a[rows, current][:, None] - a
        with np.errstate(divide="ignore", invalid="ignore"):
            cross = np.where(rise > 0, drop / rise, np.inf)
        z = cross.min(axis=1)
        going = np.isfinite(z)
        if not going.any():
            break
        # Of the lines that meet here the steepest goes on.
        following = np.where(cross <= z[:, None], rise, -1.0).argmax(axis=1)
        step = np.where(going, rise[rows, following], 1.0)
        gain = np.log(step) + log_h(-np.abs(np.where(going, z, 0.0)))
        terms.append(np.where(going, gain, -np.inf))
        current = np.where(going, following, current)
    table = np.stack(terms)
    known = np.isfinite(table).any(axis=0)
    total = np.full(len(b), -np.inf)
    total[known] = logsumexp(table[:, known], axis=0)
    return total


class Fantasies:
    """The belief at the representers now, and after a measurement at each of several trial points.

    Parameters
    ----------
    mean : array of shape (m,)
        Posterior means of the representers.
    cov : array of shape (m, m)
        Their posterior covariance.
    cross : array of shape (q, m)
        Posterior covariance of each trial point with the representers.
    var : array of shape (q,)
        Posterior variance of the trial points.
    noise : float
        Variance of a measurement.
    samples, values : int
        Joint draws of the representers, and values of a measurement, to average over.
    rng : Generator
        Makes the draws.

    >>> state = Fantasies(
    ...     np.zeros(2), np.eye(2), np.eye(2), np.ones(2), 1e-6, samples=400, values=5, rng=np.random.default_rng(0)
    ... )
    >>> state.entropy().shape, bool(abs(state.probability - 0.5).max() < 0.1)
    ((2,), True)
    """

    def __init__(
        self,
        mean: Array,
        cov: Array,
        cross: Array,
        var: Array,
        noise: float,
        *,
        samples: int,
        values: int,
        rng: np.random.Generator,
    ) -> None:
        self.mean, m = mean, len(mean)
        level = np.maximum(np.diag(cov), np.finfo(np.float64).tiny)
        factor, _ = factorize(cov, 1e-9 * level)
        white = rng.standard_normal((samples, m))
        self.paths: Array = mean + white @ factor.T  # (S, m)
        scale = np.sqrt(np.maximum(var + noise, 1e-300))
        self.pull: Array = cross / scale[:, None]  # how far the mean moves per standard deviation of y, (q, m)
        # The part of y' that the representers explain, plus an independent rest: jointly a draw of (f_R, y').
        known = solve_triangular(factor, self.pull.T, lower=True).T  # (q, m)
        rest = np.sqrt(np.maximum(1.0 - (known * known).sum(axis=1), 0.0))
        self.surprise: Array = known @ white.T + rest[:, None] * rng.standard_normal(samples)  # (q, S), standardized y'
        # Midpoints of equally probable slices, scaled to unit variance: few values that a mean can be taken over.
        z = np.asarray(ndtri((np.arange(values) + 0.5) / values))
        self.outcomes: Array = z / z.std() if values > 1 else z
        self.probability: Array = np.bincount(self.paths.argmax(axis=1), minlength=m) / samples

    def _after(self, trials: slice) -> tuple[Array, Array]:
        """Probabilities and means of the representers after each outcome at some trials, (q', J, m) each."""
        pull, surprise = self.pull[trials], self.surprise[trials]
        shift = self.outcomes[None, :, None] - surprise[:, None, :]  # (q', J, S)
        # Matheron's rule: f_R + c (y − y')/s² is a draw given y
        winners = (self.paths + shift[..., None] * pull[:, None, None, :]).argmax(axis=-1)
        q, J, S = winners.shape
        m = len(self.mean)
        labels = winners + m * np.arange(q * J).reshape(q, J, 1)
        counts = np.bincount(labels.ravel(), minlength=q * J * m).reshape(q, J, m)
        return counts / S, self.mean + self.outcomes[:, None] * pull[:, None, :]

    def _blocks(self) -> list[slice]:
        size = max(1, BLOCK // (len(self.outcomes) * self.paths.size))
        return [slice(start, start + size) for start in range(0, len(self.pull), size)]

    def entropy(self) -> Array:
        """Return H[p] − E_y H[p | x, y] for each trial point x, shape (q,)."""
        parts = [_entropy(self._after(block)[0]).mean(axis=1) for block in self._blocks()]
        return np.asarray(_entropy(self.probability) - np.concatenate(parts))  # H[p] − E_y H[p | x, y]

    def regret(self) -> Array:
        """Return the fall of the expected regret of x* ~ p for each trial point, shape (q,)."""
        parts = []
        for block in self._blocks():
            p, mean = self._after(block)
            parts.append((p * mean).sum(axis=2).mean(axis=1))
        return np.asarray(np.concatenate(parts) - self.probability @ self.mean)  # E_y Σ p μ (after) − Σ p μ

    def point_regret(self) -> Array:
        """Return the logarithm of the fall of the smallest expected regret for each trial point, shape (q,)."""
        return largest_line(self.mean, self.pull)


def _entropy(p: Array) -> Array:
    """Entropy over the last axis, in nats."""
    return np.asarray(-(p * np.log(np.where(p > 0, p, 1.0))).sum(axis=-1))


class Representers:
    """Draw representers and trial points, and measure the trial point of largest ``worth``."""

    def __init__(
        self, worth: Callable[[Fantasies], Array], representers: int, trials: int, samples: int, values: int
    ) -> None:
        self.worth, self.samples, self.values = worth, whole(samples, "samples", 2), whole(values, "values", 1)
        self.representers, self.trials = whole(representers, "representers", 2), whole(trials, "trials", 2)

    def propose(self, view: View) -> Proposal:
        """Return the trial point of largest worth, given the points under way."""
        listed = view.domain.listed
        with view.hallucinated() as belief:
            X = view.domain.enumerate() if listed else self.pool(view, belief)
            at = view.domain.address(X, np.arange(len(X)))
            mean, std = belief.predict(at)
            taken = self.taken(view, X)
            chosen, trial = self.drawn(view, mean, std, view.prior_std(belief.gp), taken)
            joint = belief.covariance(at[chosen], np.concatenate([at[chosen], at[trial]]))  # one pass over a list
            cov, cross = joint[:, : len(chosen)], joint[:, len(chosen) :].T
            state = Fantasies(
                np.asarray(mean[chosen], dtype=np.float64),
                0.5 * (cov + cov.T),
                cross,
                np.asarray(std[trial]) ** 2,
                belief.gp.noise,
                samples=self.samples,
                values=self.values,
                rng=view.stream("draws", view.step),
            )
        best = int(trial[argmax(self.worth(state), rng=view.stream("ties", view.step), exclude=taken[trial])])
        return Proposal(index=best) if listed else Proposal(X[best])

    def taken(self, view: View, X: Array) -> NDArray[np.bool_]:
        """Return which rows of X (n, d) must not be asked now."""
        blocked = view.domain.excluding(view.blocked())
        if view.domain.listed:
            return np.asarray(blocked, dtype=np.bool_)
        return Candidates(blocked).contains(X) if len(blocked) else np.zeros(len(X), dtype=np.bool_)

    def pool(self, view: View, belief: Belief) -> Array:
        """Return points of a box or a space among which to choose: spread ones, and clouds around the best measured."""
        domain, rng = view.domain, view.stream("pool", view.step)
        spread = domain.design(POOL, rng)
        best = view.incumbents(belief)
        if best is None:
            return spread
        centers = domain.encode(best)
        radii = np.repeat(RADII, CLOUD)[:, None] * domain.extent()
        cloud = centers[:, None, :] + rng.standard_normal((len(centers), len(radii), centers.shape[1])) * radii
        near = domain.decode(domain.project(cloud.reshape(-1, centers.shape[1])))
        return np.unique(np.concatenate([spread, best, near]), axis=0)

    def drawn(self, view: View, mean: Array, std: Array, scale: float, taken: NDArray[np.bool_]) -> tuple[Rows, Rows]:
        """Return the rows of the representers and of the trial points.

        Both are drawn in proportion to the expected improvement over the best mean; a quarter of the trials is drawn
        evenly, and the point of highest mean always represents.
        """
        rng = view.stream("representers", view.step)
        weight = LogImprovement(float(np.max(mean)), 1e-10 * scale).value(mean, std)
        # The largest of log weight + Gumbel noise are draws without replacement in proportion to the weights.
        noisy = weight + rng.gumbel(size=len(weight))
        noisy[int(np.argmax(mean))] = np.inf
        order = np.argsort(-noisy, kind="stable")
        chosen = np.sort(order[: self.representers])
        free = np.flatnonzero(~taken)
        if len(free) <= self.trials:
            return chosen, free
        order = order[~taken[order]]
        promising = order[: self.trials - self.trials // 4]
        even = rng.permutation(np.setdiff1d(free, promising))[: self.trials // 4]
        return chosen, np.sort(np.concatenate([promising, even]))


class EntropySearch(ModelPolicy):
    """Measure what tells most about where the maximum is.

    Parameters
    ----------
    domain : Box, Candidates or Space
        Where points may lie.
    representers : int
        Points that stand for the domain: the belief about the maximizer is a distribution over them.
    trials : int
        Points whose information is computed.
    samples, values : int
        Joint draws of the representers, and values of a measurement, to average over.
    **options
        ``gp``, ``initial``, ``confidence``, ``seed``, ``repeats``, ``journal``.

    >>> from surefoot import Candidates
    >>> policy = EntropySearch(Candidates(np.linspace(0.0, 1.0, 21)), seed=0)
    >>> for _ in range(10):
    ...     query = policy.ask()
    ...     policy.tell(query, -(query.x[0] - 0.3) ** 2)
    >>> abs(policy.recommend().x[0] - 0.3) < 0.11
    np.True_
    """

    def __init__(
        self,
        domain: Domain,
        *,
        representers: int = 40,
        trials: int = 120,
        samples: int = 256,
        values: int = 5,
        **options: Unpack[ModelOptions],
    ) -> None:
        super().__init__(domain, **options)
        self.rule = Representers(Fantasies.entropy, representers, trials, samples, values)
        self.representers, self.tried = self.rule.representers, self.rule.trials
        self.samples, self.values = self.rule.samples, self.rule.values


class MinimumRegretSearch(ModelPolicy):
    """Measure what saves most of the regret expected at the end.

    Parameters
    ----------
    domain : Box, Candidates or Space
        Where points may lie.
    version : str
        "distribution": the regret of a maximizer drawn from the belief; "point": that of the best point to report,
        computed exactly (the knowledge gradient of the representers).
    representers, trials, samples, values
        As in :class:`EntropySearch`; the last two only matter for "distribution".
    **options
        ``gp``, ``initial``, ``confidence``, ``seed``, ``repeats``, ``journal``.

    >>> from surefoot import Candidates
    >>> policy = MinimumRegretSearch(Candidates(np.linspace(0.0, 1.0, 21)), version="point", seed=0)
    >>> for _ in range(10):
    ...     query = policy.ask()
    ...     policy.tell(query, -(query.x[0] - 0.3) ** 2)
    >>> abs(policy.recommend().x[0] - 0.3) < 0.11
    np.True_
    """

    def __init__(
        self,
        domain: Domain,
        *,
        version: str = "distribution",
        representers: int = 40,
        trials: int = 120,
        samples: int = 256,
        values: int = 5,
        **options: Unpack[ModelOptions],
    ) -> None:
        super().__init__(domain, **options)
        self.version = one_of(version, "version", ("distribution", "point"))
        worth = Fantasies.regret if version == "distribution" else Fantasies.point_regret
        self.rule = Representers(worth, representers, trials, samples, values)
        self.representers, self.tried = self.rule.representers, self.rule.trials
        self.samples, self.values = self.rule.samples, self.rule.values
