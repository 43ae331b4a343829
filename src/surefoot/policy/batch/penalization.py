"""Local penalization: expected improvement that keeps away from the points under way.

Question: where is the maximum of an expensive function, when several measurements are made at a time?

Rule: EI(x) Π_j φ(x; x_j) over the points x_j under way, with the local penalizer

    φ(x; x_j) = ½ erfc(−ζ),   ζ = (L ‖x − x_j‖ − M + μ(x_j))/√(2 σ²(x_j)),

the probability that x lies outside the ball around x_j in which, by the Lipschitz constant L, the maximum M cannot be
(González, Dai, Hennig & Lawrence 2016, eq. 7). Unlike ``ExpectedImprovement.ask(n)`` the belief itself is not touched:
pending points are not hallucinated.

L is the largest norm of the gradient of the posterior mean, over spread points and the measured ones; 10 where the mean
is flat. M is the highest posterior mean among measured points. Distances and gradients are those that the model sees:
the domain's own units, on ``Space`` the unit cube.

Guarantee: none. Authors' options: EI as it is, ``transform="softplus"`` for scores that may be negative. Differences:
the product is maximized as a sum of logarithms; M is an estimate, not the luckiest measurement.

Cost of one ask: as :mod:`surefoot.policy.improvement`, plus O(points under way) per score, plus one gradient of the
mean at some 500 points.
"""

from __future__ import annotations

import math
from typing import Literal, Unpack

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_ndtr

from surefoot.arguments import not_negative, one_of, positive
from surefoot.belief.protocol import EVERY, Belief
from surefoot.domain import Box, Candidates, Domain, Paths, Space
from surefoot.loop.types import Proposal
from surefoot.policy.acquisition import Acquisition, BeliefScore
from surefoot.policy.base import ModelOptions, ModelPolicy
from surefoot.policy.improvement import Improvement, LogImprovement
from surefoot.policy.moves import MoveBelief, best_move
from surefoot.policy.view import View

__all__ = ["LocalPenalization", "Penalized", "Penalizer"]

Array = NDArray[np.float64]

FLAT = 1e-7  # a mean of this slope, per prior standard deviation and extent, says nothing about L
FALLBACK = 10.0
SPREAD = 512  # points at which the gradient of the mean is looked at
_LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)


class Penalizer:
    """Σ_j log φ(x; x_j), the logarithm of the product of local penalizers.

    Parameters
    ----------
    centers : array of shape (b, e)
        The points x_j.
    mean, std : array of shape (b,)
        The belief there.
    lipschitz, best : float
        L and M.

    >>> penalty = Penalizer(np.zeros((1, 1)), np.zeros(1), np.ones(1), 1.0, 0.0)
    >>> penalty(np.array([[0.0], [100.0]])).round(4)  # log ½ at the point, nothing far away
    array([-0.6931,  0.    ])
    """

    def __init__(self, centers: Array, mean: Array, std: Array, lipschitz: float, best: float) -> None:
        self.centers, self.lipschitz = centers, lipschitz
        self.std = np.maximum(std, 1e-150)
        self.shift = mean - best

    def _terms(self, E: Array) -> tuple[Array, Array, Array]:
        """Differences (m, b, e), distances (m, b) and √2 ζ (m, b)."""
        difference = E[:, None, :] - self.centers
        distance = np.linalg.norm(difference, axis=2)
        return difference, distance, (self.lipschitz * distance + self.shift) / self.std  # ζ of eq. 7

    def __call__(self, E: Array) -> Array:
        total: Array = log_ndtr(self._terms(E)[2]).sum(axis=1)  # ½ erfc(−ζ) = Φ(√2 ζ)
        return total

    def gradient(self, E: Array) -> tuple[Array, Array]:
        """Return the sums (m,) and their gradients (m, e)."""
        difference, distance, z = self._terms(E)
        log = log_ndtr(z)
        ratio = np.exp(-0.5 * z * z - _LOG_SQRT_2PI - log) * self.lipschitz / self.std
        slope = ratio / np.where(distance > 0.0, distance, 1.0)
        return log.sum(axis=1), np.einsum("mb,mbe->me", slope, difference)


class _Softplus:
    """log softplus(EI), from log EI."""

    def __init__(self, inner: LogImprovement) -> None:
        self.inner = inner

    def value(self, mean: Array, std: Array) -> Array:
        return np.log(np.logaddexp(0.0, np.exp(self.inner.value(mean, std))))

    def slopes(self, mean: Array, std: Array) -> tuple[Array, Array, Array]:
        log, by_mean, by_std = self.inner.slopes(mean, std)
        improvement = np.exp(log)
        soft = np.logaddexp(0.0, improvement)
        rate = expit(improvement) / soft * improvement
        return np.log(soft), rate * by_mean, rate * by_std


class _PenalizedScore:
    """An acquisition and the penalizers, summed."""

    def __init__(self, score: BeliefScore, penalty: Penalizer) -> None:
        self.score, self.penalty = score, penalty

    def __call__(self, E: Array, /) -> Array:
        return self.score(E) + self.penalty(E)

    def gradient(self, E: Array, /) -> tuple[Array, Array]:
        value, slope = self.score.gradient(E)
        penalty, by_point = self.penalty.gradient(E)
        return value + penalty, slope + by_point


class Penalized(Improvement):
    """Maximize log EI(x) + Σ_j log φ(x; x_j) over the points x_j under way.

    Parameters
    ----------
    margin, lipschitz, transform
        As of :class:`LocalPenalization`.
    """

    def __init__(self, margin: float, *, lipschitz: float | None, transform: str) -> None:
        super().__init__(LogImprovement, margin)
        self.lipschitz, self.transform = lipschitz, transform

    def acquisition(self, view: View, belief: Belief, ahead: int = 0) -> Acquisition:
        score = LogImprovement(*self.target(view, belief))
        return score if self.transform == "none" else _Softplus(score)

    def propose(self, view: View) -> Proposal:
        """Return where the penalized improvement is highest; the belief knows nothing of the points under way."""
        if view.domain.travels:
            with view.hallucinated() as belief:  # stops that were missed
                return best_move(view, belief, self)
        belief = view.believe()
        score, penalty = self.acquisition(view, belief), self._penalty(view, belief)
        if view.domain.listed:
            E = view.surrogate.rows.encode(view.domain.enumerate())
            values = score.value(*belief.predict(EVERY)) + penalty(E)
            return view.highest(lambda at: values[at], belief)
        return view.highest(_PenalizedScore(BeliefScore(belief, score), penalty), belief)

    def _penalty(self, view: View, belief: Belief) -> Penalizer:
        under_way = view.trials.unknown  # and what failed
        X = np.array([x for x, _ in under_way]).reshape(-1, view.domain.dimension)
        mean, std = np.empty(0), np.empty(0)
        if len(X):
            rows = np.array([row for _, row in under_way], dtype=np.intp) if view.domain.listed else None
            mean, std = belief.predict(view.domain.address(X, rows))
        best = self.target(view, belief)[0] - self.margin  # M
        slope = self.slope(view) if len(X) else 1.0
        return Penalizer(view.surrogate.rows.encode(X), mean, std, slope, best)

    def slope(self, view: View) -> float:
        """Return L: as given, or max ‖∇μ‖, the steepest the posterior mean is found to be."""
        if self.lipschitz is not None:
            return self.lipschitz
        posterior, domain = view.surrogate.posterior(), view.domain
        rng = view.stream("slope", len(view.trials.observations))
        finite = domain.size is not None and domain.size <= SPREAD
        X = np.vstack([domain.enumerate() if finite else domain.sample(SPREAD, rng), view.trials.data()[0]])
        steepest = float(np.linalg.norm(posterior.gradient(view.surrogate.rows.encode(X))[2], axis=1).max())
        scale = view.prior_std(posterior.gp) / float(domain.extent().max())
        return steepest if steepest > FLAT * scale else FALLBACK

    def score_moves(self, view: View, moves: MoveBelief, belief: Belief) -> Array:
        values = self.acquisition(view, belief).value(moves.mean, moves.std)
        length = self.slope(view) if moves.mean.shape[1] > 1 else 1.0
        best = self.target(view, belief)[0] - self.margin
        # Stop j is penalized by the stops before it: one table (A, k, k) of distances, its lower triangle summed.
        distance = np.linalg.norm(moves.points[:, :, None, :] - moves.points[:, None, :, :], axis=3)
        shift, std = moves.mean - best, np.maximum(moves.std, 1e-150)
        penalty = log_ndtr((length * distance + shift[:, None, :]) / std[:, None, :])
        scores: Array = values + np.tril(penalty, -1).sum(axis=2)
        return scores


class LocalPenalization(ModelPolicy):
    """Measure where the expected improvement is largest, away from the points under way.

    Parameters
    ----------
    domain : Box, Candidates, Space or Paths
        Where points may lie. On ``Paths`` moves are chosen stop by stop.
    lipschitz : float, optional
        L, in units of the objective per unit of distance. None: estimated from the posterior mean.
    transform : {"none", "softplus"}
        What is made of the expected improvement before it is penalized.
    margin : float
        How much better than the best estimate a value must be to count, in the objective's units.
    **options
        ``gp``, ``initial``, ``confidence``, ``seed``, ``repeats``, ``journal``.

    >>> from surefoot import GP, SE, Candidates
    >>> policy = LocalPenalization(Candidates(np.linspace(0, 1, 21)), gp=GP(SE(lengthscale=0.2), noise=1e-4), seed=0)
    >>> policy.tell([0.5], 1.0)
    >>> a, b = policy.ask(2)
    >>> abs(a.x[0] - b.x[0]) > 0.2
    np.True_
    """

    domains = (Box, Candidates, Space, Paths)

    def __init__(
        self,
        domain: Domain,
        *,
        lipschitz: float | None = None,
        transform: Literal["none", "softplus"] = "none",
        margin: float = 0.0,
        **options: Unpack[ModelOptions],
    ) -> None:
        super().__init__(domain, **options)
        self.margin = not_negative(margin, "margin")
        self.lipschitz = None if lipschitz is None else positive(lipschitz, "lipschitz")
        self.transform = one_of(transform, "transform", ("none", "softplus"))
        self.rule = Penalized(self.margin, lipschitz=self.lipschitz, transform=self.transform)
