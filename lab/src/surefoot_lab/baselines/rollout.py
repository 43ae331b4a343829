"""Rollout: look ahead by following a simple rule after the next step.

Question: where to measure next, if the improvements of the next few steps count?

Rule: the value of a first step a is EI(a) + γ E_y[H_{h−1}], with y the value measured there and H_i what the base
policy goes on to gain in the i steps that remain:

* while i > 1 it takes the step of largest expected improvement: H_i = EI + γ E_y[H_{i−1}];
* with i = 1 it takes the step of highest mean, and H_1 is its expected improvement, in closed form.

Only the first step is maximized over. Expectations over y are Gauss–Hermite sums of ``nodes`` terms, so a first step
costs nodes^(h−1) imagined futures. Improvement is over the best value measured, imagined ones included; with one step
left the rule is expected improvement.

Reference: Lam, Willcox & Wolpert 2016 ("Bayesian optimization with a finite budget"), Algorithm 1 and eqs. 10-14.

Authors' options: h = 4, γ = 1.0 ("Rollout-4-10"), 3 nodes. The comparison published with Macro-GPO seems to have used a
single node, the mean: ``nodes=1``. Works on ``Paths`` with moves of one stop.

Cost of one ask: A · nodes^(h−1) futures at once, each a rank-one update over the u places within h steps:
O(A · nodes^(h−1) · h u).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Unpack

import numpy as np
from numpy.typing import NDArray

from surefoot.arguments import whole
from surefoot.belief.posterior import EXACT
from surefoot.belief.protocol import Belief
from surefoot.domain import Paths
from surefoot.errors import NotSupported
from surefoot.loop.types import Proposal
from surefoot.policy.base import ModelOptions, ModelPolicy
from surefoot.policy.improvement import log_h
from surefoot.policy.moves import best_moves, drawn
from surefoot.policy.view import View

__all__ = ["Futures", "Rollout"]

Array = NDArray[np.float64]
Indices = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Futures:
    """S imagined futures side by side: where each stands, and what it believes about the u places in reach.

    Attributes
    ----------
    at : array of shape (S,)
        Where each future stands, as a row of the places in reach.
    mean, var : array of shape (S, u)
        Of the latent function.
    rows : array of shape (S, t, u)
        Whitened covariances with the t values imagined so far: the belief's covariance less their squares.
    best : array of shape (S,)
        The best value of each, imagined ones included.

    >>> one = Futures(np.zeros(1, int), np.zeros((1, 2)), np.ones((1, 2)), np.empty((1, 0, 2)), np.zeros(1))
    >>> after = one.measured(np.array([1]), np.array([[2.0]]), np.ones((2, 2)), noise=1.0)
    >>> after.mean, after.var, after.best
    (array([[1., 1.]]), array([[0.5, 0.5]]), array([2.]))
    """

    at: Indices
    mean: Array
    var: Array
    rows: Array
    best: Array

    def improvement(self, steps: Indices, noise: float) -> Array:
        """Return the expected improvement of a measurement at the places (S, b) of each future; 0 where it is −1."""
        mean = np.take_along_axis(self.mean, steps, axis=1)
        std = np.sqrt(np.take_along_axis(self.var, steps, axis=1) + noise)
        gain: Array = np.where(steps >= 0, std * np.exp(log_h((mean - self.best[:, None]) / std)), 0.0)
        return gain

    def measured(self, steps: Indices, values: Array, cov: Array, *, noise: float) -> Futures:
        """Return the futures after measuring ``values`` (S, n) at one place each (S,): n times as many."""
        count = values.shape[1]
        every = np.arange(len(steps))
        pivot = np.sqrt(self.var[every, steps] + noise)
        known = np.einsum("st,stu->su", self.rows[every, :, steps], self.rows)
        new = (cov[steps] - known) / pivot[:, None]
        surprise = (values - self.mean[every, steps][:, None]) / pivot[:, None]  # (S, n)
        mean = self.mean[:, None, :] + surprise[:, :, None] * new[:, None, :]
        var = np.maximum(self.var - new * new, 0.0)
        rows = np.concatenate([self.rows, new[:, None, :]], axis=1)
        return Futures(
            np.repeat(steps, count),
            mean.reshape(-1, mean.shape[-1]),
            np.repeat(var, count, axis=0),
            np.repeat(rows, count, axis=0),
            np.maximum(self.best[:, None], values).ravel(),
        )


@dataclass
class LookAhead:
    """Take the step of the largest value (A,), with the base policy after it."""

    horizon: int
    discount: float
    nodes: int
    values: Array = field(default_factory=lambda: np.empty(0))  # of the steps of the last proposal

    def propose(self, view: View) -> Proposal:
        """Return the step; the horizon shrinks with what is left of the budget."""
        journey = view.trials.journey
        moves, stages = journey.options(), journey.stages
        horizon = self.horizon if stages is None else min(self.horizon, stages)
        with view.hallucinated() as belief:  # stops that were missed
            measured = view.trials.data()[1]
            best = float(measured.max()) if measured.size else float(belief.gp.mean)
            self.values = self.look_ahead(journey.domain, belief, moves[:, 0], horizon, best)
        return Proposal(stops=moves[drawn(view, best_moves(self.values))])

    def look_ahead(self, domain: Paths, belief: Belief, first: Indices, horizon: int, best: float) -> Array:
        """Return the value of each first step (A,), given the best value measured."""
        places, table = _in_reach(domain, first, horizon)
        E = domain.encode(domain.points[places])
        mean, cov = belief.expected(E), belief.covariance(E, E)
        noise = max(belief.gp.noise, EXACT * float(cov.diagonal().max()), 1e-300)
        count = len(first)
        now = Futures(
            np.zeros(count, dtype=np.intp),
            np.tile(mean, (count, 1)),
            np.tile(np.maximum(cov.diagonal(), 0.0), (count, 1)),
            np.empty((count, 0, len(places))),
            np.full(count, best),
        )
        steps = np.searchsorted(places, first)
        z, weights = np.polynomial.hermite_e.hermegauss(self.nodes)
        weights = weights / math.sqrt(2.0 * math.pi)
        total = np.zeros(count)
        share = np.ones(1)  # probabilities of the futures of one first step
        for left in range(horizon, 0, -1):
            if left < horizon:
                options = table[now.at]
                gains = now.improvement(options, noise)
                liking = gains if left > 1 else np.take_along_axis(now.mean, options, axis=1)
                rank = np.where(options >= 0, liking, -np.inf).argmax(axis=1)[:, None]
                steps = np.take_along_axis(options, rank, axis=1)[:, 0]
                gain = np.take_along_axis(gains, rank, axis=1)[:, 0]  # 0 at a dead end
            else:
                gain = now.improvement(steps[:, None], noise)[:, 0]
            total += self.discount ** (horizon - left) * (gain.reshape(count, -1) @ share)
            if left > 1:
                steps = np.where(steps >= 0, steps, now.at)  # who cannot go on stays, and gains nothing more
                every = np.arange(len(steps))
                std = np.sqrt(now.var[every, steps] + noise)
                values = now.mean[every, steps][:, None] + std[:, None] * z
                now = now.measured(steps, values, cov, noise=noise)
                share = (share[:, None] * weights).ravel()
        return total


class Rollout(ModelPolicy):
    """Take the step whose improvement, and that of a simple rule after it, is expected to be largest.

    Parameters
    ----------
    domain : Paths
        Where the vehicle moves; moves of one stop.
    horizon : int
        Steps to look ahead, the next one included; fewer where the budget ends sooner.
    discount : float
        γ, by which an improvement counts less with every step that it is away.
    nodes : int
        Terms of the Gauss–Hermite sums.
    **options
        ``gp``, ``initial``, ``confidence``, ``seed``, ``journal``.

    >>> from surefoot import GP, SE, Dives
    >>> line = Paths(np.arange(9.0)[:, None], Dives((9,), 1), start=4, budget=4)
    >>> policy = Rollout(line, gp=GP(SE(2.0), noise=1e-4), seed=0)
    >>> for place, value in ((4.0, 0.0), (1.0, 1.0), (7.0, -1.0)):
    ...     policy.tell([place], value)
    >>> policy.ask().note["stops"]
    [3]
    """

    domains = (Paths,)
    parallel = False
    rule: LookAhead

    def __init__(
        self,
        domain: Paths,
        *,
        horizon: int = 4,
        discount: float = 1.0,
        nodes: int = 3,
        **options: Unpack[ModelOptions],
    ) -> None:
        super().__init__(domain, **options)
        self.horizon, self.nodes = whole(horizon, "horizon", 1), whole(nodes, "nodes", 1)
        if not 0.0 <= discount <= 1.0:
            raise ValueError(f"discount must lie between 0 and 1, got {discount!r}")
        if domain.length != 1:
            raise NotSupported(f"Rollout takes one step at a time; these moves have {domain.length} stops")
        self.discount = float(discount)
        self.rule = LookAhead(self.horizon, self.discount, self.nodes)

    @property
    def values(self) -> Array:
        """The value of each step at the last ask, shape (A,)."""
        return self.rule.values


def _in_reach(domain: Paths, first: Indices, horizon: int) -> tuple[Indices, Indices]:
    """The places within ``horizon`` steps, sorted, and the steps from each as rows of them, −1 where there is none."""
    places = np.unique(first)
    for _ in range(horizon - 1):
        table = domain.generator.table(places)
        wider = np.union1d(places, table[table >= 0])
        if wider.size == places.size:
            break
        places = wider
    table = domain.generator.table(places)[:, :, 0]
    rows = np.searchsorted(places, table)
    # Steps that leave what is in reach start where no future ever stands with steps left.
    inside = (table >= 0) & (places[np.minimum(rows, len(places) - 1)] == table)
    return places, np.where(inside, rows, -1)
