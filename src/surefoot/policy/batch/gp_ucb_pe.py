"""Batch rules of the upper-confidence family: DB-GP-UCB and GP-UCB-PE.

Question: which n points shall be measured at the same time to find the maximum of an expensive, noisy function? GP-UCB
answers it one point after the other (``GPUCB.ask(n)`` is GP-BUCB). These two choose differently.

**DB-GP-UCB** scores the batch S as a whole: 1ᵀμ(S) + √(α_t I(S)), with I(S) = ½ log|I + σ⁻² Σ(S)| the information that
the batch carries about the function (Daxberger & Low 2017, eq. 3). With ``bonus="linear"`` the score is 1ᵀμ + β I, the
one-stage reward of Macro-GPO. The default is the α_t of the theorem, from a width w_t (the papers' β_t^(1/2)),

    α_t = c |S| w_t² · 2 s²/log(1 + s²/σ²),   s² the prior variance, c = exp(2C),

for which √(α_t I(S)) ≥ w_t Σ_j σ_j whenever c bounds the shrinkage σ_j²/σ_j²(given the points before) of the variances
within the batch; c = 1 bounds the sum of deviations *given the points before* and is the practical choice.

**GP-UCB-PE** (Contal et al. 2013) takes the first point by the upper confidence bound and the others by pure
exploration: the largest standard deviation, given the points under way, in the relevant region

    {x : μ(x) + 2 β_{t+1}^(1/2) σ(x) ≥ max_x' μ(x') − β_t^(1/2) σ(x')}.

The batch under way is the one whose first point is still pending; t counts batches.

Guarantees: with the true prior and ``Finite(1 − δ)``, with probability 1 − δ, the sum over T batches of n points of the
smallest regret in each is O(√(T/n · γ_{nT} log T)) for GP-UCB-PE; DB-GP-UCB has a bound of the same growth, with the
factor c (Theorem 1 of each paper), for batches of the highest score. The Markov approximation that lets it be solved in
a distributed way is not needed here: batches are built greedily and improved by exchanges, or, on ``Paths``, listed.

Authors' options: α_t as above with C from an initial design; GP-UCB-PE with δ = 0.1. On ``Paths`` the authors of
Macro-GPO ran DB-GP-UCB with ``exploration=0`` and GP-UCB-PE with ``region=False``.

Cost of one ask(n): DB-GP-UCB n (1 + sweeps) searches as in :mod:`surefoot.policy.ucb.gp_ucb`; GP-UCB-PE n searches.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, Unpack

import numpy as np
from numpy.typing import NDArray

from surefoot.arguments import not_negative, one_of, positive
from surefoot.belief.posterior import EXACT
from surefoot.belief.protocol import EVERY, Belief
from surefoot.domain import Box, Candidates, Domain, Paths, Space
from surefoot.domain.search import maximize
from surefoot.loop.trials import Place
from surefoot.loop.types import Proposal
from surefoot.loop.widths import Width, given_or, usual
from surefoot.policy.acquisition import BeliefScore
from surefoot.policy.base import ModelOptions, ModelPolicy
from surefoot.policy.batch.joint import Part, Together
from surefoot.policy.moves import MoveBelief, best_move
from surefoot.policy.surrogate import imagined
from surefoot.policy.ucb.gp_ucb import UpperBound
from surefoot.policy.view import View

__all__ = ["DBGPUCB", "GPUCBPE", "InformationBonus"]

Array = NDArray[np.float64]


class InformationBonus:
    """mean + √(α I) or mean + β I, as a function of one point whose batch already carries ``known`` nats.

    >>> InformationBonus(2.0, noise=1.0, known=0.0, root=False).value(np.array([1.0]), np.array([1.0])).round(4)
    array([1.6931])
    """

    def __init__(self, weight: float, *, noise: float, known: float, root: bool) -> None:
        self.weight, self.noise, self.known, self.root = weight, noise, known, root

    def _information(self, std: Array) -> Array:
        return self.known + 0.5 * np.log1p(std * std / self.noise)

    def of(self, information: Array) -> Array:
        """Return the bonus of so many nats."""
        return np.sqrt(self.weight * information) if self.root else self.weight * information

    def value(self, mean: Array, std: Array) -> Array:
        """Return the scores, shape (m,)."""
        return mean + self.of(self._information(std))  # eq. 3, point by point

    def slopes(self, mean: Array, std: Array) -> tuple[Array, Array, Array]:
        """Return the scores and their derivatives in mean and standard deviation."""
        bonus = self.of(self._information(std))
        rate = self.weight * std / (self.noise + std * std)  # of the linear bonus
        if self.root:
            # Without noise worth speaking of and without information the root is steep: a large but finite number.
            rate = np.divide(0.5 * rate, bonus, out=np.full_like(rate, 0.5 * math.sqrt(self.weight)), where=bonus > 0)
        return mean + bonus, np.ones_like(mean), rate


class BatchBound(Together):
    """DB-GP-UCB, eq. 3: the batch S with the highest 1ᵀμ(S) + √(α_t I(S)), or 1ᵀμ(S) + β I(S).

    Parameters
    ----------
    bonus, exploration, width, shrinkage, sweeps
        As of :class:`DBGPUCB`.
    """

    def __init__(self, *, bonus: str, exploration: float | None, width: Width, shrinkage: float, sweeps: int) -> None:
        super().__init__(sweeps)
        self.root, self.exploration, self.width, self.shrinkage = bonus == "sqrt", exploration, width, shrinkage

    def weight(self, view: View, belief: Belief, size: int) -> float:
        """Return α_t = c |S| w_t² · 2 s²/log(1 + s²/σ²), or what was given in its place."""
        if self.exploration is not None:
            return self.exploration
        width = view.deviations(self.width, belief)
        level, noise = self._levels(view, belief)
        return self.shrinkage * size * width**2 * 2.0 * level / math.log1p(level / noise)  # α_t of the theorem

    def _levels(self, view: View, belief: Belief) -> tuple[float, float]:
        """The prior variance s² and the noise variance σ²; averages where the belief is a mixture."""
        level = belief.prior_variance(np.stack([view.domain.lower, view.domain.upper]))
        return level, max(belief.noise_level, EXACT * level, 1e-300)

    def part(self, view: View, others: Sequence[Place]) -> Part:
        with view.hallucinated() as belief:
            weight, before = self.weight(view, belief, view.left), belief.information_gain
            with imagined(belief, view.surrogate.rows.named(others)):
                known = max(0.0, belief.information_gain - before)  # I of the others
                noise = self._levels(view, belief)[1]
                score = InformationBonus(weight, noise=noise, known=known, root=self.root)
                if view.domain.listed:
                    values = score.value(*belief.predict(EVERY))
                    return lambda at: values[at]
                return BeliefScore(belief.copy(), score)

    def level(self, moves: MoveBelief, belief: Belief) -> float:
        return float(moves.mean.shape[1] * belief.gp.mean)

    def score_moves(self, view: View, moves: MoveBelief, belief: Belief) -> Array:
        weight = self.weight(view, belief, moves.mean.shape[1])
        score = InformationBonus(weight, noise=moves.noise, known=0.0, root=self.root)
        total: Array = moves.mean.sum(axis=1) + score.of(moves.information)
        return total


class DBGPUCB(ModelPolicy):
    """Measure the batch with the largest sum of means plus a bonus for its information.

    Parameters
    ----------
    domain : Box, Candidates, Space or Paths
        Where points may lie. On ``Paths`` every move is one batch.
    bonus : {"sqrt", "linear"}
        √(α I) as published, or β I as in Macro-GPO.
    exploration : float, optional
        α or β, the same in all rounds; 0 only sums means. None: the theorem's α_t; needed with ``bonus="linear"``.
    width : width, optional
        w_t of the theorem's α_t. None: ``Finite(confidence)`` on finite domains, ``Constant(2.0)`` elsewhere.
    shrinkage : float
        c = exp(2C) of the theorem's α_t.
    sweeps : int
        How many times every point is reconsidered given the others.
    **options
        ``gp``, ``initial``, ``confidence``, ``seed``, ``repeats``, ``journal``.

    >>> from surefoot import GP, SE, Candidates
    >>> policy = DBGPUCB(Candidates(np.linspace(0, 1, 21)), gp=GP(SE(lengthscale=0.2), noise=0.01), seed=0)
    >>> a, b = policy.ask(2)  # nothing is known: far apart
    >>> abs(a.x[0] - b.x[0]) > 0.5
    np.True_
    """

    width: Width

    domains = (Box, Candidates, Space, Paths)
    ignores_pending = True
    rule: BatchBound

    def __init__(
        self,
        domain: Domain,
        *,
        bonus: Literal["sqrt", "linear"] = "sqrt",
        exploration: float | None = None,
        width: Width | None = None,
        shrinkage: float = 1.0,
        sweeps: int = 2,
        **options: Unpack[ModelOptions],
    ) -> None:
        super().__init__(domain, **options)
        self.bonus = one_of(bonus, "bonus", ("sqrt", "linear"))
        if exploration is None and bonus == "linear":
            raise ValueError("bonus='linear' needs exploration=, the weight of a nat of information")
        if not positive(shrinkage, "shrinkage") >= 1.0:
            raise ValueError(f"shrinkage must be finite and at least 1, got {shrinkage!r}")
        self.shrinkage = float(shrinkage)
        self.exploration = None if exploration is None else not_negative(exploration, "exploration")
        self.width = given_or(width, usual(domain.size, self.confidence))
        self.rule = BatchBound(
            bonus=self.bonus,
            exploration=self.exploration,
            width=self.width,
            shrinkage=self.shrinkage,
            sweeps=sweeps,
        )
        self.sweeps = self.rule.sweeps

    def weight(self, size: int) -> float:
        """Return α_t (or β) of a batch of ``size`` points that would be chosen now.

        >>> from surefoot import GP, SE, Candidates, widths
        >>> policy = DBGPUCB(Candidates([0.0, 1.0]), gp=GP(SE(), noise=1.0), width=widths.Constant(1.0))
        >>> round(policy.weight(1), 4)  # 2/log 2
        2.8854
        """
        return self.rule.weight(self.view(), self.surrogate.believe(), size)


class BoundThenExplore:
    """GP-UCB-PE, Algorithm 1: one point by the upper confidence bound, then pure exploration where it matters.

    Parameters
    ----------
    width : width
        β_t^(1/2), with t the number of the batch.
    region : bool
        Whether exploration keeps to the relevant region.
    """

    def __init__(self, width: Width, region: bool) -> None:
        self.width, self.region = width, region

    def propose(self, view: View) -> Proposal:
        """Return the first point of a batch, or a further one while the first is pending."""
        if view.domain.travels:
            with view.hallucinated() as belief:
                return best_move(view, belief, self)
        if any(query.note.get("explore") is False for query in view.trials.pending.values()):
            return _noted(self._explore(view), True)
        with view.hallucinated() as belief:  # x⁰_t = argmax μ + β_t^(1/2) σ
            return _noted(view.best(belief, UpperBound(self._bound(view, belief, self._batches(view) + 1))), False)

    def _batches(self, view: View) -> int:
        """How many batches were begun."""
        return sum(query.note.get("explore") is False for query in view.trials.queries)

    def _bound(self, view: View, belief: Belief, batch: int) -> float:
        """β_t^(1/2), t the number of the batch."""
        return view.deviations(self.width, belief, batch - view.round)

    def _explore(self, view: View) -> Proposal:
        """The largest standard deviation, given the points under way, in the relevant region of the last real data."""
        belief, t = view.believe(), self._batches(view)
        now, wide = self._bound(view, belief, t), 2.0 * self._bound(view, belief, t + 1)
        if view.domain.listed:
            mean, std = belief.predict(EVERY)
            # The relevant region: μ + 2 β_{t+1}^(1/2) σ ≥ max μ − β_t^(1/2) σ
            relevant = mean + wide * std >= (mean - now * std).max() if self.region else np.ones(len(mean), dtype=bool)
            with view.hallucinated() as halved:
                spread = halved.predict(EVERY)[1]
            # Where nothing relevant is left to ask for, the rest is ranked in the same way.
            values = np.where(relevant, spread, spread - 2.0 * std.max())
            return view.highest(lambda at: values[at], belief)
        base, floor = belief.copy(), -math.inf
        if self.region:
            lower, rng = BeliefScore(base, UpperBound(-now)), view.stream("lower", view.step)
            _, floor = maximize(lower, view.domain, rng=rng, seeds=view.incumbents(base), starts=4)
        with view.hallucinated() as halved:
            return view.highest(_Exploration(halved, base, wide, floor), base)

    def level(self, moves: MoveBelief, belief: Belief) -> Array:
        """Return what the scores of all moves contain: the first is a bound, the others are standard deviations."""
        level = np.zeros(moves.mean.shape[1])
        level[0] = belief.gp.mean
        return level

    def score_moves(self, view: View, moves: MoveBelief, belief: Belief) -> Array:
        """Return the scores of each move's stops given those before, shape (A, k)."""
        t = view.trials.journey.spent // view.trials.journey.domain.length + 1
        now, wide = self._bound(view, belief, t), 2.0 * self._bound(view, belief, t + 1)
        scores = moves.prefix_std.copy()
        if self.region:
            mean, std = belief.predict(view.domain.encode(view.domain.enumerate()))
            outside = moves.mean + wide * moves.std < (mean - now * std).max()
            scores[outside] -= 2.0 * std.max()
        scores[:, 0] = moves.mean[:, 0] + now * moves.prefix_std[:, 0]
        return scores


def _noted(proposal: Proposal, explore: bool) -> Proposal:
    return Proposal(proposal.x, proposal.index, note={"explore": explore})


class GPUCBPE(ModelPolicy):
    """First the highest upper confidence bound, then the most uncertain points that may be the maximum.

    Parameters
    ----------
    domain : Box, Candidates, Space or Paths
        Where points may lie. On ``Paths`` moves are chosen stop by stop.
    region : bool
        Whether exploration keeps to the relevant region, as published.
    width : width, optional
        β_t^(1/2), with t the number of the batch. None: ``Finite(confidence)`` on finite domains, ``Constant(2.0)``
        elsewhere.
    **options
        ``gp``, ``initial``, ``confidence``, ``seed``, ``repeats``, ``journal``.

    >>> from surefoot import GP, SE, Candidates
    >>> policy = GPUCBPE(Candidates(np.linspace(0, 1, 21)), gp=GP(SE(lengthscale=0.2), noise=0.01), seed=0)
    >>> policy.tell([0.4], 1.0)
    >>> [query.note["explore"] for query in policy.ask(3)]
    [False, True, True]
    """

    width: Width

    domains = (Box, Candidates, Space, Paths)

    def __init__(
        self, domain: Domain, *, region: bool = True, width: Width | None = None, **options: Unpack[ModelOptions]
    ) -> None:
        super().__init__(domain, **options)
        self.region, self.width = bool(region), given_or(width, usual(domain.size, self.confidence))
        self.rule = BoundThenExplore(self.width, self.region)


class _Exploration:
    """The standard deviation where the bound reaches ``floor``; elsewhere by how much it misses it, below zero."""

    def __init__(self, belief: Belief, base: Belief, width: float, floor: float) -> None:
        self.belief, self.base, self.width, self.floor = belief, base, width, floor

    def __call__(self, E: Array, /) -> Array:
        mean, std = self.base.predict(E)
        slack = np.minimum(mean + self.width * std - self.floor, 0.0)
        return np.where(slack < 0.0, slack, self.belief.predict(E)[1])

    def gradient(self, E: Array, /) -> tuple[Array, Array]:
        mean, std, mean_gradient, std_gradient = self.base.gradient(E)
        slack = np.minimum(mean + self.width * std - self.floor, 0.0)
        _, spread, _, spread_gradient = self.belief.gradient(E)
        outside = slack < 0.0
        gradient = np.where(outside[:, None], mean_gradient + self.width * std_gradient, spread_gradient)
        return np.where(outside, slack, spread), gradient
