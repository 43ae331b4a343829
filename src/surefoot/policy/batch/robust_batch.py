"""RobustBatch: ask for k points of which any τ may be lost, and still learn where the maximum is.

Question: which k measurements, started together, tell most about the points that may be the maximum, *whichever τ of
them never come back*? Machines fail, samples spoil, volunteers do not answer.

Rule: with M the points whose upper confidence bound reaches the best lower one, the value of a set S of measurements is
the variance it takes off M,

    f(S) = Σ_{x ∈ M} (σ²(x) − σ²(x | S))                                            (eq. 7.17),

with the belief given the data so far. The batch is a robust selection under f (:mod:`surefoot.select`): by default
Oblivious-Greedy, whose first ⌈βτ⌉ points are the most informative ones *each on its own*, near each other as they may
be, and whose further points are chosen greedily as if the first did not exist. What one part loses, the other still
holds.

**One ask.** Selections are nested, so a batch can be asked for at once or one by one: ``ask(k)`` gives the points of k
calls of ``ask()``. A single ``ask()`` means: *the next point of the batch under way*, that is, of the queries pending
now. When some of them are told or cancelled their places are free again, and the next asks fill these first. A batch of
at most τ points survives nothing in particular. (``method="auto"`` plans a batch for the number of points asked for
when it begins; there ``ask(k)`` and k single asks differ.)

References: Bogunovic, Zhao & Cevher 2018, Algorithm 1 and section 5 (Oblivious-Greedy, variance reduction); Bogunovic,
Mitrović, Scarlett & Cevher 2017, Algorithm 1 (PRO).

Guarantee: of the selection, not of the regret. For β > 1 the reduction that is left is at least
:func:`~surefoot.select.oblivious_greedy_guarantee` times the best possible one, with the ratios that
:func:`~surefoot.select.bound_ratios` proves for the covariance at hand; the published bounds on the curvature of f are
false. :meth:`RobustBatch.exposure` computes what the pending batch keeps in the worst case.

Authors' options: β = 0.5, Matérn-3/2. Differences: they fix M and the covariance by hand and measure no function; here
both follow from the belief. On a box, a space or a long list the batch is chosen from a pool of points.

Cost of one ask: with p points in the pool and m of them in M, O(p²n) once per batch for the covariance, then O(pm) for
each point of the bucket being filled.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, Unpack

import numpy as np
from numpy.typing import NDArray

from surefoot.arguments import not_negative, one_of, whole
from surefoot.belief.protocol import EVERY, Belief
from surefoot.domain import Box, Candidates, Domain, Space
from surefoot.errors import NoData
from surefoot.experimental import experimental
from surefoot.loop.types import Proposal, Query
from surefoot.loop.widths import Width, given_or, usual
from surefoot.policy.base import ModelOptions, ModelPolicy
from surefoot.policy.ucb.gp_ucb import UpperBound, UpperConfidence
from surefoot.policy.view import View
from surefoot.select.adversary import Deletion, attack, greedy_min, local_search
from surefoot.select.quadratic import VarianceReduction
from surefoot.select.robust import buckets, pro_sizes
from surefoot.select.selection import first_best, tolerance

__all__ = ["RobustBatch", "SurvivingPoints"]

Array = NDArray[np.float64]
Indices = NDArray[np.intp]
Ground = tuple[Candidates, Indices | None, VarianceReduction]  # points, their candidate rows, what measuring them tells

RADII = (0.2, 0.05, 0.01, 0.002)  # of the clouds around the best measured points, in units of the domain's extent
CLOUD = 12  # points per cloud
NOISE = 1e-9  # share of the largest variance below which the noise is not taken: sets of points stay independent


class SurvivingPoints:
    """The next point of a robust selection under f (eq. 7.17).

    Parameters
    ----------
    tau, method, beta, eta, interest, pool, width
        As of :class:`RobustBatch`.
    """

    def __init__(self, tau: int, *, method: str, beta: float, eta: int, interest: str, pool: int, width: Width) -> None:
        self.tau, self.method, self.eta, self.interest, self.pool = tau, method, eta, interest, pool
        self.width, self.fallback = width, UpperConfidence(width)
        # A bucket of one point takes the one that is most informative on its own.
        self.buckets = pro_sizes(tau, eta) if method == "pro" else [1] * math.ceil(beta * tau - 1e-9)
        self._ground: tuple[object, Ground] | None = None

    def propose(self, view: View) -> Proposal:
        """Return the best point of the first bucket that has a place."""
        ground, index, objective = self.selection(view)
        pending = list(view.trials.pending.values())
        free = np.ones(ground.size, dtype=bool)
        # A batch is a set: what is under way is worth nothing a second time, however noisy.
        free[_places(ground, [*(x for x, _ in view.blocked()), *(query.x for query in pending)])] = False
        sizes = self._plan(view, objective, np.flatnonzero(free))
        taken = [query.note["bucket"] for query in pending if "bucket" in query.note]
        filled = np.bincount(taken, minlength=len(sizes) + 1)
        bucket = next((i for i, size in enumerate(sizes) if filled[i] < size), len(sizes))  # the rest comes last
        note = {"bucket": bucket} if self.method != "auto" else {"bucket": bucket, "buckets": sizes}
        if not free.any():  # a small finite space, nearly all of it taken: the upper bound finds what may be asked
            return replace(self.fallback.propose(view), note=note)
        # Gains count from the points of the same bucket only: the others shrink the ground set and nothing else.
        # Points of no bucket (the initial design) are there whatever is lost; what failed is not worth trying around.
        mine = [query.x for query in pending if query.note.get("bucket", bucket) == bucket]
        known = dict.fromkeys(_places(ground, [*(o.x for o in view.trials.failures), *mine]).tolist())
        left = np.flatnonzero(free)
        best = int(left[first_best(objective.state(list(known)).gains(left), tolerance(objective))])
        if index is None:
            return Proposal(ground.points[best], note=note)
        return Proposal(index=int(index[best]), note=note)

    def _plan(self, view: View, objective: VarianceReduction, free: Indices) -> list[int]:
        """The sizes of the buckets of this batch; ``"auto"`` decides when it begins, for so many points.

        Every plan is carried out and attacked: the largest loss again and again, then swaps.
        """
        if self.method != "auto":
            return self.buckets
        begun = [query.note["buckets"] for query in view.trials.pending.values() if "buckets" in query.note]
        if begun:
            return list(begun[0])
        if not self.tau < view.left <= free.size:
            return self.buckets
        plans = [
            self.buckets,
            [],
            [1] * self.tau,
            pro_sizes(self.tau, self.eta, "compact"),
            pro_sizes(self.tau, self.eta),
        ]
        kept = [-math.inf] * len(plans)
        for i, sizes in enumerate(plans):
            if sum(sizes) <= view.left:
                order = buckets(objective, sizes, view.left, among=free).order
                kept[i] = local_search(objective, order, greedy_min(objective, order, self.tau)).value
        return plans[first_best(np.array(kept), tolerance(objective))]

    def selection(self, view: View) -> Ground:
        """Return the points to choose from, their candidate rows, and what measuring them is worth.

        They follow from the measurements alone, so that a batch is chosen from one ground set; pending and failed
        points that are not in the pool join it.
        """
        trials, domain = view.trials, view.domain
        key = (len(trials.observations), view.surrogate.due(trials.successes))
        under_way = np.array([x for x, _ in trials.unknown]).reshape(-1, domain.dimension)
        if self._ground is None or self._ground[0] != key or not self._ground[1][0].contains(under_way).all():
            X = np.vstack([self._pool_points(view), under_way])
            X = X[np.sort(np.unique(X, axis=0, return_index=True)[1])]
            index = domain.address(X) if domain.listed else None
            self._ground = (key, (Candidates(X), index, self._objective(view, X)))
        return self._ground[1]

    def _objective(self, view: View, X: Array) -> VarianceReduction:
        """f (eq. 7.17) with the belief given the data so far."""
        posterior, E = view.surrogate.posterior(), view.surrogate.rows.encode(X)
        K = posterior.cov(E)
        K = 0.5 * (K + K.T)
        K.ravel()[:: len(K) + 1] = np.maximum(K.diagonal(), 0.0)
        scale = float(K.diagonal().max()) or 1.0
        targets = np.arange(len(X))
        if self.interest == "potential":  # M
            mean, std = posterior.mean(E), np.sqrt(K.diagonal())
            half = self._width(view, posterior) * std
            targets = np.flatnonzero(mean + half >= (mean - half).max())
        return VarianceReduction(K, noise=max(posterior.noise_level, NOISE * scale), targets=targets)

    def _width(self, view: View, belief: Belief) -> float:
        """The width of the bounds; it counts what was measured, not what is pending: a batch has one set M."""
        return view.deviations(self.width, belief, -len(view.trials.pending))

    def _pool_points(self, view: View) -> Array:
        """The points of highest upper bound, from the highest on: of all candidates, or of a design and clouds."""
        belief, domain = view.believe(), view.domain
        if domain.size is not None and domain.size <= self.pool:
            return domain.enumerate()
        X = domain.enumerate() if domain.listed else self._spread(view, belief)
        mean, std = belief.predict(EVERY if domain.listed else domain.encode(X))
        score = UpperBound(self._width(view, belief)).value(mean, std)
        return X[np.argsort(-score, kind="stable")[: self.pool]]

    def _spread(self, view: View, belief: Belief) -> Array:
        """Points of a design, and clouds of several radii around the best measured points."""
        domain, rng = view.domain, view.stream("pool", len(view.trials.observations))
        X = domain.design(2 * self.pool, rng)
        best = view.incumbents(belief, 4)
        if best is None:
            return X
        E = domain.encode(best)
        radii = np.repeat(RADII, CLOUD)[:, None] * domain.extent()
        near = E[:, None, :] + rng.standard_normal((len(E), len(radii), E.shape[1])) * radii
        cloud = domain.decode(domain.project(near.reshape(-1, E.shape[1])))
        return np.vstack([X, best, cloud])

    def batch(self, view: View) -> tuple[VarianceReduction, dict[int, Query]]:
        """Return the objective, and the pending queries by their row in it; of several at one point, the last."""
        pending = list(view.trials.pending.values())
        if not pending:
            raise NoData("no query is pending; ask for a batch first")
        ground, _, objective = self.selection(view)
        return objective, dict(zip(_places(ground, [query.x for query in pending]).tolist(), pending, strict=True))


def _places(ground: Candidates, points: Sequence[Array]) -> Indices:
    """The rows of some points in the ground set; those that are not in it are left out."""
    found = ground.indices_of(np.array(points, dtype=np.float64).reshape(-1, ground.dimension))
    return found[found >= 0]


@experimental
class RobustBatch(ModelPolicy):
    """Ask for points that tell most about the possible maxima when any ``tau`` of them are lost.

    Parameters
    ----------
    domain : Box, Candidates or Space
        Where points may lie.
    tau : int
        How many of the points under way may be lost; 0 plans for no loss.
    method : {"oblivious-greedy", "pro", "auto"}
        How the robust part is built: ⌈βτ⌉ points each on its own, or PRO's buckets that double in size (more points:
        11 for τ = 3). ``"auto"`` tries both, and none, when a batch begins, and takes what keeps most under attack.
    beta : float
        Size of Oblivious-Greedy's robust part in units of τ.
    eta : int
        Size of PRO's smallest buckets.
    interest : {"potential", "all"}
        Whose variance counts: that of possible maxima, or of all points.
    pool : int
        From how many points a batch is chosen; a longer list of candidates, and the points tried on a box, are cut to
        those of highest upper bound.
    width : width, optional
        Standard deviations of the bounds that say which points may be maxima, as in :class:`GPUCB`.
    **options
        ``gp``, ``initial``, ``confidence``, ``seed``, ``repeats``, ``journal``.

    >>> from surefoot import GP, SE, Candidates
    >>> candidates = Candidates(np.linspace(0.0, 1.0, 41))
    >>> policy = RobustBatch(candidates, tau=2, gp=GP(SE(lengthscale=0.2), noise=0.01), seed=0)
    >>> batch = policy.ask(6)
    >>> lost = policy.exposure()  # the worst loss of two of the six
    >>> len(lost.removed), lost.status, bool(lost.value > 0.7 * policy.reduction())
    (2, 'optimal', True)
    """

    width: Width

    domains = (Box, Candidates, Space)
    rule: SurvivingPoints

    def __init__(
        self,
        domain: Domain,
        *,
        tau: int,
        method: Literal["oblivious-greedy", "pro", "auto"] = "oblivious-greedy",
        beta: float = 0.5,
        eta: int = 1,
        interest: Literal["potential", "all"] = "potential",
        pool: int = 400,
        width: Width | None = None,
        **options: Unpack[ModelOptions],
    ) -> None:
        super().__init__(domain, **options)
        self.width = given_or(width, usual(domain.size, self.confidence))
        self.tau, self.eta, self.pool = whole(tau, "tau"), whole(eta, "eta", 1), whole(pool, "pool", 2)
        self.method = one_of(method, "method", ("oblivious-greedy", "pro", "auto"))
        self.interest = one_of(interest, "interest", ("potential", "all"))
        self.beta = not_negative(beta, "beta")
        self.rule = SurvivingPoints(
            self.tau,
            method=self.method,
            beta=self.beta,
            eta=self.eta,
            interest=self.interest,
            pool=self.pool,
            width=self.width,
        )
        self.buckets = self.rule.buckets

    # -- looking -----------------------------------------------------------------------------------------------------

    def reduction(self) -> float:
        """Return the variance that all pending queries together would take off the points of interest.

        >>> from surefoot import GP, Candidates
        >>> policy = RobustBatch(Candidates([0.0, 9.0]), tau=1, gp=GP(noise=1.0), seed=0)
        >>> _ = policy.ask(2)
        >>> round(policy.reduction(), 6)  # both variances fall from 1 to ½
        1.0
        """
        objective, rows = self.rule.batch(self.view())
        return objective.value(list(rows))

    def exposure(self, *, seconds: float = 10.0) -> Deletion:
        """Return the worst loss of ``tau`` of the pending queries: their ids, and the reduction of variance left.

        Parameters
        ----------
        seconds : float
            Time limit of the search, where there are too many ways to lose queries to try all.

        >>> from surefoot import GP, Candidates
        >>> policy = RobustBatch(Candidates([0.0, 9.0]), tau=1, gp=GP(noise=1.0), seed=0)
        >>> _ = policy.ask(2)
        >>> round(policy.exposure().value, 6)
        0.5
        """
        objective, rows = self.rule.batch(self.view())
        found = attack(objective, list(rows), min(self.tau, len(rows)), seconds=seconds)
        return replace(found, removed=tuple(sorted(rows[row].id for row in found.removed)))
