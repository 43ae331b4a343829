"""Exploration: a second look where a fitted belief is sure that nothing is left to find.

A rule that maximizes follows its belief. Hyper-parameters that were fitted to the points which the rule itself chose
can be sure of what they have not seen: without noise the expected improvement is then negligible everywhere, and with
noise it is largest where measurements are repeated. Both go on for ever, and a higher peak elsewhere is missed.

:class:`SecondLook` stands behind any rule. With EI = σ h(z) at the point that the rule proposes, which is the expected
improvement of :mod:`surefoot.policy.improvement`, s the standard deviation of all values and τ² the noise variance,

1. the rule stalls where EI < max(1e-5 s, 0.2 τ): it expects less than one measurement could tell from noise;
2. every second stalled ask goes elsewhere, to argmax μ'(x) + 4 σ'(x). The belief (μ', σ') is the same with all
   length-scales 0.35 times as long, at most 0.1 √d of the domain's extent, and the mean that suits these best: one
   that does not trust smoothness. Every other time the mean is left out, argmax σ'(x): where values rise on one side
   of the domain, 4 σ' can be too little to go to the other.

How often the rule stalled is in the note of each stalled query, and so in the events: a policy that is loaded again
goes on with the same count.

Cost: one prediction; for every second stalled ask one belief, O(n³), and one search. Of more than 1,024 measurements it
takes those that are most spread, and of more than 20,000 candidates a random part.
"""

from __future__ import annotations

import math
import re
from contextlib import AbstractContextManager
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr

from surefoot.belief.gp import GP
from surefoot.belief.protocol import Belief
from surefoot.loop.trials import Trials
from surefoot.loop.types import Proposal
from surefoot.policy.acquisition import UpperBound
from surefoot.policy.rule import Rule
from surefoot.policy.surrogate import imagined
from surefoot.policy.view import View

__all__ = ["SecondLook", "shorter"]

Array = NDArray[np.float64]

NOTE = "stalls"
BLIND = 1e6  # a width at which the mean does not matter
MEASURED = 1024  # measurements that a second look takes into account: the most spread ones
MANY = 20_000  # candidates that it looks at, of a longer list


class SecondLook:
    """Ask elsewhere when a rule has stalled.

    Parameters
    ----------
    every : int
        Which of the stalled asks go elsewhere.
    negligible : float
        Expected improvement that counts as none, in standard deviations of the values.
    lost : float
        The same in standard deviations of the noise.
    shrink : float
        How long the length-scales of the second look are, in shares of the fitted ones.
    longest : float
        How long they are at most, in shares of the domain's extent times the root of its dimension.
    width : float
        How many standard deviations above the mean it looks.

    >>> SecondLook().every
    2
    """

    def __init__(
        self,
        *,
        every: int = 2,
        negligible: float = 1e-5,
        lost: float = 0.2,
        shrink: float = 0.35,
        longest: float = 0.1,
        width: float = 4.0,
    ) -> None:
        self.every, self.negligible, self.lost = every, negligible, lost
        self.shrink, self.longest, self.width = shrink, longest, width

    def propose(self, view: View, rule: Rule) -> Proposal:
        """Return what a rule proposes, or, where that is not worth a measurement, a point elsewhere."""
        usual = rule.propose(view)
        if not view.surrogate.rows.successes or not self.stalled(view, usual):
            return usual
        stalls = stalled_before(view.trials) + 1
        looks, left = divmod(stalls, self.every)
        chosen = usual if left else self.elsewhere(view, self.width if looks % 2 else BLIND)
        return replace(chosen, note={**(chosen.note or {}), NOTE: stalls})

    def stalled(self, view: View, proposal: Proposal) -> bool:
        """Tell whether a proposal promises less than is worth a measurement."""
        _, y, given = view.surrogate.rows.data()
        with view.hallucinated() as belief:
            mean, std = (float(a[0]) for a in belief.predict(view.named(proposal)))
            best, noise = float(belief.expected(view.measured).max()), belief.noise_level
        z = (mean - best) / std if std > 0.0 else -math.inf
        promise = std * (math.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi) + (z * float(ndtr(z)) if std > 0.0 else 0.0))
        if given is not None:
            noise = float(np.median(np.where(np.isnan(given), noise, given)))
        return promise < max(self.negligible * float(np.std(y)), self.lost * math.sqrt(noise))

    def elsewhere(self, view: View, width: float) -> Proposal:
        """Return where a belief with shorter length-scales could be highest."""
        size, bound = view.domain.size or 0, UpperBound(width)
        with self.doubting(view) as belief:
            if not view.domain.listed or size <= MANY:
                return view.best(belief, bound, purpose="explore")
            some = np.sort(view.stream("explore", view.step).choice(size, MANY, replace=False))
            scores = np.full(size, -np.inf)
            scores[some] = bound.value(*belief.predict(some))
            return view.highest(lambda at: scores[at], belief, purpose="explore")

    def doubting(self, view: View) -> AbstractContextManager[Belief]:
        """The belief with shorter length-scales, points under way put in at their mean."""
        rows, extent = view.surrogate.rows, view.domain.extent()
        X, y, noise = rows.data()
        if len(y) > MEASURED:
            kept = spread(X / extent, MEASURED)
            X, y, noise = X[kept], y[kept], None if noise is None else noise[kept]
        gp = shorter(view.surrogate.now(), self.shrink, self.longest * math.sqrt(len(extent)) * extent)
        weights = gp.condition(X, y, noise).solve(np.ones(len(y)))
        # The mean by generalized least squares: 1ᵀS⁻¹y / 1ᵀS⁻¹1.
        gp = replace(gp, mean=float(weights @ y / weights.sum()))
        return imagined(view.surrogate.facing(gp.condition(X, y, noise)), rows.waiting(), rows.unknown_noises())


def shorter(gp: GP, factor: float, limits: ArrayLike = np.inf) -> GP:
    """Return a GP with all length-scales multiplied, each at most its limit.

    >>> from surefoot.belief import SE
    >>> shorter(GP(SE(lengthscale=[2.0, 8.0])), 0.5, [9.0, 3.0]).kernel.lengthscale.round(6)
    array([1., 3.])
    """
    bounds, theta = np.log(np.atleast_1d(np.asarray(limits, dtype=np.float64))), gp.theta
    for i, name in enumerate(gp.names):
        if (found := re.search(r"lengthscale(?:\[(\d+)\])?$", name)) is not None:
            limit = float(bounds[int(found[1])] if found[1] and len(bounds) > 1 else bounds.max())
            theta[i] = min(theta[i] + math.log(factor), limit)
    return gp.with_theta(theta)


def spread(X: Array, count: int) -> NDArray[np.intp]:
    """Return the rows of X (n, e) that are farthest from one another, chosen one by one from the first on.

    >>> spread(np.array([[0.0], [0.1], [1.0], [0.4]]), 3)
    array([0, 2, 3])
    """
    chosen, distance = [0], ((X - X[0]) ** 2).sum(axis=1)
    while len(chosen) < count:
        chosen.append(int(distance.argmax()))
        distance = np.minimum(distance, ((X - X[chosen[-1]]) ** 2).sum(axis=1))
    return np.array(sorted(chosen), dtype=np.intp)


def stalled_before(trials: Trials) -> int:
    """Return how often the rule has stalled so far.

    >>> from surefoot import Box, RandomSearch
    >>> stalled_before(RandomSearch(Box([(0.0, 1.0)])).trials)
    0
    """
    return next((int(query.note[NOTE]) for query in reversed(trials.queries) if NOTE in query.note), 0)
