"""q-EI: measure the q points whose best value is expected to improve most.

Question: where is the maximum of an expensive, possibly noisy function, when q measurements are made at a time?

Rule: the batch that maximizes qEI = E[(max_j Y_j − T)₊], Y ~ N(μ, Σ) the joint belief at its q points and T the best
estimate so far. Points that are pending are part of the batch, with their places fixed.

* One point: the closed form of expected improvement.
* Two or three points among finitely many: the closed form of Chevalier & Ginsbourger (:func:`improvement_of_batches`).
* Otherwise the expectation over all points but one is a quasi-Monte Carlo average with common random numbers, and that
  over the last point is in closed form (:func:`sampled_improvement`). The last point may lie anywhere: on a box this
  average has a gradient, and the batch is built greedily and improved by exchanges
  (:class:`~surefoot.policy.batch.joint.Together`).

References: Ginsbourger, Le Riche & Carraro 2010; Chevalier & Ginsbourger 2013, Proposition 2 (closed form).

Guarantee: greedy batches keep at least 1 − 1/e of the best qEI when the target is below every value (qEI is then
monotone and submodular); none on the regret.

Authors' options: exact to q ≈ 10 by Genz's numerical orthant probabilities, which are random themselves. Differences:
T is the highest posterior mean among measured points, not the luckiest measurement; Y is the latent function.

Cost of one ask(n): n (1 + sweeps) searches as in :mod:`surefoot.policy.improvement`, each ``samples`` times as dear.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp, ndtr, ndtri

from surefoot.arguments import not_negative, whole
from surefoot.belief.mixture import members_of
from surefoot.belief.posterior import Posterior
from surefoot.belief.protocol import EVERY, Belief
from surefoot.domain import Box, Candidates, Domain, Paths, Space
from surefoot.domain.design import unit_design
from surefoot.loop.trials import Place
from surefoot.policy.base import ModelOptions, ModelPolicy
from surefoot.policy.batch.joint import Part, Together
from surefoot.policy.batch.orthants import bivariate, trivariate
from surefoot.policy.improvement import Improvement, LogImprovement, log_h
from surefoot.policy.moves import MoveBelief, factors
from surefoot.policy.view import View

__all__ = ["QEI", "BatchImprovement", "improvement_of_batches", "sampled_improvement"]

Array = NDArray[np.float64]

SMALL = 3  # the largest batch in closed form
JITTER = 1e-12  # share of the largest variance that keeps equal points apart
BLOCK = 2**20  # numbers held at once: candidates times draws


def improvement_of_batches(mean: ArrayLike, cov: ArrayLike, target: float) -> Array:
    """Return E[(max_j Y_j − T)₊] of m batches of one, two or three points, in closed form.

    Parameters
    ----------
    mean : array of shape (m, q)
        Means of the points of each batch, q ≤ 3.
    cov : array of shape (m, q, q)
        Their covariances.
    target : float
        The value T to beat.

    >>> (improvement_of_batches(np.zeros((1, 2)), np.eye(2)[None], -9.0) - 9.0).round(6)  # E max of two is 1/√π
    array([0.56419])
    """
    mu, S = np.asarray(mean, dtype=np.float64), np.asarray(cov, dtype=np.float64)
    if mu.ndim != 2 or not 1 <= mu.shape[1] <= SMALL or S.shape != (*mu.shape, mu.shape[1]):
        raise ValueError(f"the closed form takes means (m, q ≤ {SMALL}) and covariances, got {mu.shape} and {S.shape}")
    q = mu.shape[1]
    level = np.maximum(S.diagonal(axis1=1, axis2=2).max(axis=1), 1e-300)
    S = S + (JITTER * level)[:, None, None] * np.eye(q)
    total = np.zeros(len(mu))
    for k in range(q):
        # Z = D Y: the differences Y_j − Y_k, and −Y_k itself; Y_k is the best and beats T where Z ≤ b.
        D = np.eye(q) - np.outer(np.ones(q), np.eye(q)[k])
        D[k] = -np.eye(q)[k]
        b = np.where(np.arange(q) == k, -target, 0.0) - mu @ D.T
        C = D @ S @ D.T
        # Differences of nearly known values cancel: rounding must not make their variance negative.
        C[:, range(q), range(q)] = np.maximum(C.diagonal(axis1=1, axis2=2), (JITTER * level)[:, None])
        total += (mu[:, k] - target) * _below(b, C)
        for i in range(q):
            rest = np.delete(np.arange(q), i)
            v = C[:, i, i]
            density = np.exp(-0.5 * b[:, i] ** 2 / v) / np.sqrt(2.0 * np.pi * v)
            c = b[:, rest] - b[:, i, None] * C[:, rest, i] / v[:, None]
            schur = C[:, rest[:, None], rest] - C[:, rest, i, None] * C[:, None, i, rest] / v[:, None, None]
            each = range(q - 1)
            schur[:, each, each] = np.maximum(schur.diagonal(axis1=1, axis2=2), (JITTER * level)[:, None])
            total += C[:, i, k] * density * _below(c, schur)
    return np.maximum(total, 0.0)


def _below(b: Array, C: Array) -> Array:
    """P(Z ≤ b) for centered normal Z of up to three components; b (m, r), covariances C (m, r, r)."""
    if b.shape[1] == 0:
        return np.ones(len(b))
    std = np.sqrt(np.maximum(C.diagonal(axis1=1, axis2=2), 1e-300))
    z = b / std
    if b.shape[1] == 1:
        return ndtr(z[:, 0])
    R = np.clip(C / (std[:, :, None] * std[:, None, :]), -1.0, 1.0)
    return bivariate(z[:, 0], z[:, 1], R[:, 0, 1]) if b.shape[1] == 2 else trivariate(z, R)


def sampled_improvement(
    mean: ArrayLike, cov: ArrayLike, target: float, normal: ArrayLike, scale: float | None = None
) -> Array:
    """Return estimates of E[(max_j Y_j − T)₊] of m batches of q points with common random numbers.

    All points but the last are drawn; the expectation over the last one is in closed form.

    Parameters
    ----------
    mean, cov : array of shape (m, q) and (m, q, q)
        Joint beliefs.
    target : float
        The value T to beat.
    normal : array of shape (s, q − 1)
        Standard normal draws, used for every batch.
    scale : float, optional
        The prior variance; as in :func:`~surefoot.policy.moves.factors`.

    >>> sampled_improvement(np.zeros((1, 1)), np.ones((1, 1, 1)), 0.0, np.empty((1, 0))).round(6)  # φ(0)
    array([0.398942])
    """
    mu, S, draws = (np.asarray(a, dtype=np.float64) for a in (mean, cov, normal))
    if mu.ndim != 2 or S.shape != (*mu.shape, mu.shape[1]) or draws.ndim != 2 or draws.shape[1] != mu.shape[1] - 1:
        raise ValueError(f"means (m, q), covariances and draws (s, q − 1), got {mu.shape}, {S.shape}, {draws.shape}")
    out = np.empty(len(mu))
    L = factors(S, 0.0, scale)
    for part in _parts(len(mu), len(draws) * mu.shape[1]):
        # Rows of L times the draws are the whole batch; its last row adds σ x with x integrated out.
        Y = mu[part, None, :] + np.einsum("aij,sj->asi", L[part][:, :, :-1], draws)
        best = np.maximum(Y[:, :, :-1].max(axis=2, initial=-np.inf), target)
        std = np.maximum(L[part][:, -1, -1], 1e-150)[:, None]
        gain = std * np.exp(log_h((Y[:, :, -1] - best) / std))
        out[part] = (best - target + gain).mean(axis=1)
    return out


def _parts(count: int, each: int) -> list[slice]:
    """Slices of ``count`` rows, so many that ``each`` numbers per row fill one block."""
    block = max(1, BLOCK // max(1, each))
    return [slice(start, start + block) for start in range(0, count, block)]


class _Fantasies:
    """log of the mean expected improvement of one more point over drawn values of the others, with its gradient.

    Each member of ``beliefs`` knows the others as its last ``count`` measurements, exact and at their mean. In whitened
    form a draw of them is a standard normal ε, and shifts the mean at x by v(x)ᵀε with v the last entries of
    L⁻¹ k(X, x): no draw needs a solve of its own.
    """

    def __init__(self, beliefs: Sequence[Posterior], count: int, draws: Array, target: float, floor: float) -> None:
        self.beliefs, self.count, self.draws = beliefs, count, draws
        self.score = LogImprovement(0.0, floor)
        lasts = [belief.last(count) for belief in beliefs]
        self.last = [inverse for _, inverse in lasts]
        self.best = [self._best(belief, chol, target) for belief, (chol, _) in zip(beliefs, lasts, strict=True)]

    def _best(self, belief: Posterior, chol: Array, target: float) -> Array:
        """What each draw has to beat, shape (s,)."""
        values = belief.mean(belief.X[belief.n - self.count :]) + self.draws @ chol.T
        best: Array = np.maximum(values.max(axis=1, initial=-np.inf), target)
        return best

    def __call__(self, E: Array, /) -> Array:
        logs = np.empty((len(self.beliefs), len(E)))
        for log, belief, last, best in zip(logs, self.beliefs, self.last, self.best, strict=True):
            for part in _parts(len(E), len(self.draws)):
                mean, std = belief.predict(E[part])
                V = belief.gp.kernel(E[part], belief.X) @ last.T
                shifted = mean[:, None] + V @ self.draws.T - best
                log[part] = logsumexp(self.score.value(shifted, std[:, None]), axis=1)
        mean_log: Array = logsumexp(logs, axis=0) - np.log(len(self.beliefs) * len(self.draws))
        return mean_log

    def gradient(self, E: Array, /) -> tuple[Array, Array]:
        logs = np.empty((len(self.beliefs), len(E)))
        slopes = np.empty((len(self.beliefs), *E.shape))
        for i, (belief, last, best) in enumerate(zip(self.beliefs, self.last, self.best, strict=True)):
            mean, std, mean_gradient, std_gradient = belief.gradient(E)
            K, pull = belief.gp.kernel.pull_input(E, belief.X)
            shifted = mean[:, None] + (K @ last.T) @ self.draws.T - best
            value, by_mean, by_std = self.score.slopes(shifted, np.broadcast_to(std[:, None], shifted.shape))
            logs[i] = logsumexp(value, axis=1)
            share = np.exp(value - logs[i][:, None])  # of each draw in the mean
            weight = share * by_mean
            slopes[i] = (
                weight.sum(axis=1)[:, None] * mean_gradient
                + pull((weight @ self.draws) @ last)
                + (share * by_std).sum(axis=1)[:, None] * std_gradient
            )
        total = cast(Array, logsumexp(logs, axis=0))
        gradient: Array = (np.exp(logs - total)[:, :, None] * slopes).sum(axis=0)
        return total - np.log(len(self.beliefs) * len(self.draws)), gradient


class BatchImprovement(Together):
    """Maximize qEI over batches that hold the points under way.

    Parameters
    ----------
    samples, margin, sweeps
        As of :class:`QEI`.
    """

    def __init__(self, samples: int, margin: float, sweeps: int) -> None:
        super().__init__(sweeps)
        self.samples, self.improvement = samples, Improvement(LogImprovement, margin)

    def part(self, view: View, others: Sequence[Place]) -> Part:
        domain, surrogate = view.domain, view.surrogate
        fixed = [(query.x, query.index) for query in view.trials.pending.values()] + list(others)
        failed = [(o.x, o.index) for o in view.trials.failures]  # measured at their mean
        draws = self._draws(view, len(fixed))
        target, floor = self.improvement.target(view, view.believe())
        if surrogate.whole(surrogate.now()):
            belief = view.believe().copy()
            for _, row in failed:
                belief.hallucinate(row)
            rows = np.array([row for _, row in fixed], dtype=np.intp)
            values = self._listed(view, belief, rows, draws, target, floor)
            return lambda at: values[at]
        posterior, encode = surrogate.posterior(), surrogate.rows.encode
        for x, _ in failed:
            posterior.hallucinate(encode(x[None])[0])
        beliefs = members_of(posterior)
        for x, _ in fixed:
            e = encode(x[None])
            for member in beliefs:
                member.append(e[0], float(member.mean(e)[0]), 0.0)
        part = _Fantasies(beliefs, len(fixed), draws, target, floor)
        if not domain.listed:
            return part
        values = part(encode(domain.enumerate()))
        return lambda at: values[at]

    def _draws(self, view: View, count: int) -> Array:
        """Standard normal draws (s, count) of the other points; one empty draw where there are none."""
        if not count:
            return np.empty((1, 0))
        unit = unit_design(self.samples, count, view.stream("fantasies", view.step))
        return ndtri(np.clip(unit, 1e-12, 1.0 - 1e-12))

    def _listed(
        self, view: View, belief: Belief, rows: NDArray[np.intp], draws: Array, target: float, floor: float
    ) -> Array:
        """Scores of all candidates as the further point beside ``rows``; log EI or, in closed form, qEI."""
        score, (mean, std) = LogImprovement(0.0, floor), belief.predict(EVERY)
        if not rows.size:
            return score.value(mean - target, std)
        C, var, scale = belief.covariance(rows, EVERY), std**2, view.prior_std(belief.gp)  # C is (b, M)
        if rows.size < SMALL:
            exact = self._exact(mean, var, rows, C, target)
            if exact.max() > 1e-12 * max(scale, abs(target)):  # else all is far below the target: logarithms rank it
                return exact
        L = factors(C[None, :, rows], 0.0, scale**2)[0]
        B = np.linalg.solve(L, C)
        std = np.sqrt(np.maximum(var - (B * B).sum(axis=0), 0.0))
        best = np.maximum((mean[rows] + draws @ L.T).max(axis=1), target)
        out = np.empty(len(mean))
        for part in _parts(len(out), len(draws)):
            shifted = mean[part, None] + B[:, part].T @ draws.T - best
            out[part] = logsumexp(score.value(shifted, std[part, None]), axis=1)
        return out

    def _exact(self, mean: Array, var: Array, rows: NDArray[np.intp], C: Array, target: float) -> Array:
        q, count = rows.size + 1, len(mean)
        mu, cov = np.empty((count, q)), np.empty((count, q, q))
        mu[:, :-1], mu[:, -1] = mean[rows], mean
        cov[:, :-1, :-1], cov[:, -1, -1] = C[:, rows], var
        cov[:, :-1, -1] = cov[:, -1, :-1] = C.T
        return improvement_of_batches(mu, cov, target)

    def score_moves(self, view: View, moves: MoveBelief, belief: Belief) -> Array:
        target, _ = self.improvement.target(view, belief)
        q = moves.mean.shape[1]
        if q <= SMALL:
            return improvement_of_batches(moves.mean, moves.cov, target)
        return sampled_improvement(moves.mean, moves.cov, target, self._draws(view, q - 1), moves.scale)


class QEI(ModelPolicy):
    """Measure the points whose best value is expected to improve most, chosen together.

    Parameters
    ----------
    domain : Box, Candidates, Space or Paths
        Where points may lie. On ``Paths`` every move is one batch.
    samples : int
        Quasi-random draws of the other points of a batch, where no closed form is used.
    margin : float
        How much better than the best estimate a value must be to count, in the objective's units.
    sweeps : int
        How many times every point is reconsidered given the others.
    **options
        ``gp``, ``initial``, ``confidence``, ``seed``, ``repeats``, ``journal``.

    >>> from surefoot import GP, SE, Candidates
    >>> policy = QEI(Candidates(np.linspace(0, 1, 21)), gp=GP(SE(lengthscale=0.2), noise=1e-4), seed=0)
    >>> policy.tell([0.5], 1.0)
    >>> a, b = policy.ask(2)
    >>> (a.x[0] - 0.5) * (b.x[0] - 0.5) < 0  # one on each side
    np.True_
    """

    domains = (Box, Candidates, Space, Paths)
    ignores_pending = True

    def __init__(
        self,
        domain: Domain,
        *,
        samples: int = 128,
        margin: float = 0.0,
        sweeps: int = 2,
        **options: Unpack[ModelOptions],
    ) -> None:
        super().__init__(domain, **options)
        self.samples, self.margin = whole(samples, "samples", 1), not_negative(margin, "margin")
        self.rule = BatchImprovement(self.samples, self.margin, sweeps)
        self.sweeps = self.rule.sweeps
