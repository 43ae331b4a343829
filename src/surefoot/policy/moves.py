"""Scoring moves: how rules for single points choose among the moves of a vehicle.

On ``Paths`` a query is a whole move, a batch of k stops in a fixed order. Rules differ in how they score it:

* *joint* rules give every move one score, from the joint belief at its stops;
* *greedy* rules choose one stop after the other, as they would in a batch of points. Since only a few sequences are
  possible, this is a search in the trie of moves: keep the moves whose first stop is best, among these the ones whose
  second stop is best given their first, and so on (:func:`best_moves`). The mean stays that of the last real
  measurement, the standard deviation knows the stops before.

What is left after the last stop is tied, and one is drawn at random.

References: Kharkovskii, Ling & Low 2020, section V (the trie search of the batch methods compared there); Desautels,
Krause & Burdick 2014 (hallucinated stops).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot.belief.posterior import EXACT
from surefoot.belief.protocol import Belief
from surefoot.loop.types import Proposal
from surefoot.policy.view import View

__all__ = ["MoveBelief", "MoveScores", "best_move", "best_moves", "drawn", "factors"]

Array = NDArray[np.float64]
Indices = NDArray[np.intp]
Mask = NDArray[np.bool_]

TIES = 1e-8  # share of the largest score within which two moves count as equal
# A covariance may miss being semi-definite by these shares of its own largest variance and of the prior's: more is no
# rounding.
UNSURE, ROUNDING = 1e-3, 1e-6


def factors(cov: ArrayLike, noise: ArrayLike, scale: float | None = None) -> Array:
    """Return the lower Cholesky factors of m covariances plus noise on the diagonal, shape (m, q, q).

    Where rounding has made a covariance slightly indefinite, a little more is added to that one alone.

    Parameters
    ----------
    cov : array of shape (m, q, q)
        Covariances, without noise.
    noise : float or array of shape (m,)
        Variance of a measurement.
    scale : float, optional
        The prior variance that the covariances are a rest of, which their rounding errors are a share of; None: the
        largest variance among them.

    >>> factors(np.ones((1, 2, 2)), 1.0)[0, 1].round(4)
    array([0.7071, 1.2247])
    >>> factors([[[1.0, 2.0], [2.0, 1.0]]], 1e-6)
    Traceback (most recent call last):
    ...
    ValueError: a covariance is not finite or not positive semi-definite
    """
    S = np.asarray(cov, dtype=np.float64)
    if S.ndim != 3 or S.shape[1] != S.shape[2]:
        raise ValueError(f"covariances have the shape (m, q, q), got {S.shape}")
    eye = np.eye(S.shape[-1])
    level = np.maximum(S.diagonal(axis1=1, axis2=2).max(axis=1, initial=0.0), 1e-300)
    added = np.maximum(np.broadcast_to(np.asarray(noise, dtype=np.float64), level.shape), EXACT * level)
    whole = float(level.max(initial=0.0)) if scale is None else scale
    most, more = np.maximum(UNSURE * level, ROUNDING * whole), 0.0
    while np.isfinite(S).all():
        try:
            return np.asarray(np.linalg.cholesky(S + added[:, None, None] * eye), dtype=np.float64)
        except np.linalg.LinAlgError:
            lowest = np.linalg.eigvalsh(S + added[:, None, None] * eye)[:, 0]
            more = max(10.0 * more, EXACT * whole)
            share = lowest / (level + added)
            weak = share <= max(1e-14, share.min())  # all that can have failed, the weakest at least
            if (weak & (np.maximum(more, -lowest) > most)).any():
                break
            added = added + np.where(weak, more, 0.0)
    raise ValueError("a covariance is not finite or not positive semi-definite")


def best_moves(scores: ArrayLike, level: ArrayLike = 0.0) -> Mask:
    """Return which moves are best, stop by stop, shape (A,).

    Parameters
    ----------
    scores : array of shape (A,) or (A, k)
        One score of each move, or one of each stop given the stops before it.
    level : float or array of shape (k,)
        What all scores contain, such as the prior mean: scores are equal if they differ by less than 1e-8 of the
        largest difference from it.

    >>> best_moves([[1.0, 0.0], [1.0, 2.0], [0.0, 9.0]])
    array([False,  True, False])
    """
    table = np.asarray(scores, dtype=np.float64)
    table = table[:, None] if table.ndim == 1 else table
    if table.ndim != 2 or not len(table) or np.isnan(table).any():
        raise ValueError(f"scores are numbers of shape (A,) or (A, k) with A ≥ 1, got {scores!r}")
    alive = np.ones(len(table), dtype=np.bool_)
    for column in (table - np.asarray(level, dtype=np.float64)).T:
        best = column[alive].max()
        finite = np.abs(column[alive & np.isfinite(column)])
        alive &= column >= best - TIES * finite.max(initial=0.0)
    return alive


@dataclass(frozen=True, eq=False)
class MoveBelief:
    """The joint belief at the stops of each of A moves.

    Attributes
    ----------
    points : array of shape (A, k, e)
        The stops as the model sees them.
    mean, cov : array of shape (A, k) and (A, k, k)
        Of the latent function at the stops.
    noise : float
        Variance of a measurement.
    scale : float, optional
        The largest prior variance of a stop.

    >>> from surefoot import GP
    >>> moves = MoveBelief.of(GP(noise=1.0).condition(), np.array([[0.0], [0.0]]), np.array([[0, 1]]))
    >>> moves.prefix_std.round(4), moves.information.round(4)  # the second stop is the first again: ½ log 2 + ½ log 3/2
    (array([[1.    , 0.7071]]), array([0.5493]))
    """

    points: Array
    mean: Array
    cov: Array
    noise: float
    scale: float | None = None

    @classmethod
    def of(cls, belief: Belief, points: Array, rows: Indices) -> MoveBelief:
        """Return the belief at moves ``rows`` (A, k) of the encoded points (n, e)."""
        places, inverse = np.unique(rows, return_inverse=True)
        at = inverse.reshape(rows.shape)
        E = points[places]
        mean, cov = belief.expected(E), belief.covariance(E, E)
        noise, level = belief.noise_level, belief.prior_variance(E)
        return cls(E[at], mean[at], cov[at[:, :, None], at[:, None, :]], max(noise, EXACT * level), level)

    @cached_property
    def _pivots(self) -> Array:
        return np.asarray(factors(self.cov, self.noise, self.scale).diagonal(axis1=1, axis2=2), dtype=np.float64)

    @cached_property
    def std(self) -> Array:
        """Standard deviation of the latent function at each stop, shape (A, k)."""
        return np.sqrt(np.maximum(self.cov.diagonal(axis1=1, axis2=2), 0.0))

    @cached_property
    def prefix_std(self) -> Array:
        """The same once the stops before it are measured, shape (A, k)."""
        return np.sqrt(np.maximum(self._pivots**2 - self.noise, 0.0))

    @cached_property
    def information(self) -> Array:
        """What measuring all stops tells about the function, ½ log|I + Σ/σ²| in nats, shape (A,)."""
        gain: Array = np.maximum(np.log(self._pivots) - 0.5 * np.log(self.noise), 0.0).sum(axis=1)
        return gain


class MoveScores(Protocol):
    """What a rule says about moves; see :class:`~surefoot.policy.rule.Pointwise`."""

    def score_moves(self, view: View, moves: MoveBelief, belief: Belief, /) -> Array: ...
    def level(self, moves: MoveBelief, belief: Belief, /) -> float | Array: ...


def best_move(view: View, belief: Belief, rule: MoveScores) -> Proposal:
    """Return the move that a rule scores highest, from where the vehicle stands.

    >>> from surefoot import GP, GPUCB, MoveTable, Paths
    >>> ring = Paths([0.0, 9.0], MoveTable({0: [[1], [0]], 1: [[1]]}), start=0)
    >>> policy = GPUCB(ring, gp=GP(noise=0.01), seed=0)
    >>> policy.tell([0.0], 1.0)  # what is high and what is unknown: the other place is
    >>> view = policy.view()
    >>> best_move(view, view.believe(), policy.rule).stops
    array([1])
    """
    moves = view.trials.journey.options()
    known = MoveBelief.of(belief, view.domain.encode(view.domain.enumerate()), moves)
    best = best_moves(rule.score_moves(view, known, belief), rule.level(known, belief))
    return Proposal(stops=moves[drawn(view, best)])


def drawn(view: View, best: Mask) -> int:
    """Return the rank of one of the best moves, drawn at random if there are several.

    >>> from surefoot import Box, GPUCB
    >>> drawn(GPUCB(Box([(0.0, 1.0)]), seed=0).view(), np.array([False, True, False]))
    1
    """
    ranks = np.flatnonzero(best)
    return int(ranks[0 if ranks.size == 1 else int(view.stream("ties", view.step).integers(ranks.size))])
