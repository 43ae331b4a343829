"""StableOpt: the choice whose worst case is best.

Question: which x has the highest value after an adversary has moved it within reach, max over x of min over δ in Δ(x)
of f(x + δ)? Measurements are made exactly where they are asked for; only the choice is perturbed. What an adversary
reaches is a :mod:`perturbation <surefoot.domain.perturbation>`: a ball or box around the design, unknown parameters
beside it, several objectives, a group that is chosen as a whole.

Rule (Algorithm 1), with ucb and lcb = μ_{t−1} ± β_t^(1/2) σ_{t−1}:

1. x̃_t = argmax over x of min over δ in Δ(x) of ucb(x + δ): optimism decides where,
2. δ_t = argmin over δ in Δ(x̃_t) of lcb(x̃_t + δ): pessimism decides what an adversary would do there,
3. measure x̃_t + δ_t.

Reported is one of the x̃: ``report="current"``, that of the highest min lcb under the bounds now (the authors'
experiments); ``"own_time"``, each judged by the bounds of its own round (the theorem); ``"last"``, x̃_t.

Reference: Bogunovic, Scarlett, Jegelka & Cevher 2018, "Adversarially robust optimization with Gaussian processes".

Guarantee: if T/(β_T γ_T) ≥ C₁/η², C₁ = 8/log(1 + σ⁻²), then with probability at least 1 − δ the ``own_time`` report is
within η of the robust optimum, for any kernel with k(x, x) ≤ 1 and any perturbation. While running, whenever the
bounds hold, ``certificate`` bounds the regret of the report. All this is about a belief that is given; what is promised
with one that is fitted, the default, is said at ``certificate``.

Authors' options: β_t^(1/2) = 2, ten random points first, report "current". Differences: the default width is
GP-UCB's here; with points under way the choice uses hallucinated bounds and the certificate the honest ones. On a
box, and in a space with real numbers, the two searches are numerical, and so is the certificate.

Cost of one ask: on M candidates O(n M) plus one minimum filter, O(M r) for a ball of r points across in the plane and
O(M) for a box or groups; on a box some 400 evaluations and up to 8 · 90 gradients of about 30 points each, in a space
of as many points as there are whole-numbered moves, if that is more.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal, Unpack, cast

import numpy as np
from numpy.typing import NDArray

from surefoot.arguments import one_of, positive
from surefoot.belief.grid import GridPosterior
from surefoot.belief.posterior import Posterior
from surefoot.domain import Box, Candidates, Domain, Space
from surefoot.domain.perturbation import Meaningless, Perturbation
from surefoot.domain.search import argmax
from surefoot.domain.sets import Region, Sets
from surefoot.errors import NotSupported
from surefoot.loop.policy import Proposal, _check_domain
from surefoot.loop.types import Query, Recommendation
from surefoot.loop.widths import Width
from surefoot.policy.base import ModelOptions, ModelPolicy, PosteriorScore
from surefoot.policy.plausible import WIDTH, plausible, refitted
from surefoot.policy.robust.worst_case import lowest, maximin
from surefoot.policy.ucb.gp_ucb import GPUCB, UpperBound

__all__ = ["StableOpt", "WorstCasePolicy", "report", "robust_bounds"]

Array = NDArray[np.float64]
Rows = NDArray[np.intp]
REPORTS = ("current", "own_time", "last")
FINE = {"count": 128, "keep": 8, "iterations": 40}  # of the search for the adversary's choice on a box
Report = Literal["current", "own_time", "last"]


def _measured(posterior: Posterior, columns: int | None = None) -> Array | None:
    """Where bounds dip or peak sharply: at measured points, of which a drifting belief knows the time too."""
    return posterior.X[:, :columns] if posterior.n else None


def robust_bounds(
    policy: ModelPolicy, reach: Sets | Region, width: float, centers: Rows | Array
) -> tuple[Array, Array, Array]:
    """Return worst cases of the lower bound, the mean and the upper bound of some centers, shape (k,) each.

    Parameters
    ----------
    policy : ModelPolicy
        Whose belief is used, given all measurements.
    reach : Sets or Region
        What an adversary reaches on the policy's domain.
    width : float
        Standard deviations between mean and bound.
    centers : array of shape (k,) or (k, d)
        Centers: numbers on candidates, points elsewhere.

    >>> from surefoot import GP, SE, Ball, Candidates
    >>> line = Candidates([0.0, 1.0, 2.0])
    >>> policy = GPUCB(line, gp=GP(SE(0.1), noise=1e-6), seed=0)
    >>> for x, y in [(0.0, 1.0), (1.0, 5.0), (2.0, 4.0)]:
    ...     policy.tell([x], y)
    >>> robust_bounds(policy, Ball(1.0).on(line), 2.0, np.arange(3))[1].round(3)
    array([1., 1., 4.])
    """
    bounds = []
    if isinstance(reach, Sets):
        mean, std = policy._everywhere(policy._believe())
        for values in (mean - width * std, mean, mean + width * std):
            bounds.append(reach.minimum(values)[centers])
    else:
        posterior, E = policy.posterior(), reach.centers.encode(centers)
        for sign in (-1.0, 0.0, 1.0):
            score = PosteriorScore(posterior, UpperBound(sign * width))
            bounds.append(lowest(score, reach, E, hints=_measured(posterior, policy.domain.lower.size))[0])
    return bounds[0], bounds[1], bounds[2]


class WorstCasePolicy(GPUCB):
    """Base of the policies that choose by a worst case: what is chosen, remembered, reported and certified.

    A subclass says which point of the chosen set is measured.
    """

    domains = (Box, Candidates, Space)

    def __init__(
        self,
        domain: Domain,
        *,
        perturbation: Perturbation,
        report: Report = "current",
        accuracy: float | None = None,
        width: Width | None = None,
        **options: Unpack[ModelOptions],
    ) -> None:
        if not isinstance(perturbation, Perturbation):
            raise TypeError(f"perturbation must be one, for example Ball(0.5); got {perturbation!r}")
        _check_domain(domain, self.domains, type(self).__name__)
        try:
            joined = perturbation.join(domain)
            self._reach = perturbation.on(joined)
        except Meaningless as error:
            raise NotSupported(str(error)) from None
        super().__init__(joined, width=width, **options)
        self.perturbation, self.report_rule = perturbation, one_of(report, "report", REPORTS)
        self.accuracy = None if accuracy is None else positive(accuracy, "accuracy")

    # -- choosing ----------------------------------------------------------------------------------------------------

    def _rule(self, step: int, context: Mapping[str, Any]) -> Proposal:
        return self._among_sets(self._reach, step) if isinstance(self._reach, Sets) else self._in_box(step)

    def _among_sets(self, sets: Sets, step: int) -> Proposal:
        with self._hallucinated() as belief:
            width = cast(UpperBound, self._acquisition(belief, step)).width
            mean, std = self._everywhere(belief)
            upper, lower = mean + width * std, mean - width * std
        robust, blocked = sets.minimum(upper), self._excluded_rows()
        exclude = np.zeros(sets.count, dtype=np.bool_) if sets.repeated is None else sets.repeated
        if blocked.any():
            exclude = exclude | self._shut(sets, blocked)
        center = argmax(robust, rng=self.stream("ties", step), exclude=exclude)
        members = sets.members(center)
        index = self._sampled(sets, center, members[~blocked[members]], lower, upper, step)
        if self._unknown():  # hallucinated bounds are too narrow to promise anything
            mean, std = self._everywhere(self._believe())
            robust, lower = sets.minimum(mean + width * std), mean - width * std
        return self._proposal(Proposal(index=index), center, float(robust.max()), float(lower[members].min()))

    def _shut(self, sets: Sets, blocked: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Centers of which no member may be measured now."""
        return sets.minimum(blocked.astype(np.float64)) > 0.0

    def _sampled(self, sets: Sets, center: int, free: Rows, lower: Array, upper: Array, step: int) -> int:
        """Line 2 of the algorithm: the member of lowest lcb."""
        return int(free[argmax(-lower[free], rng=self.stream("adversary", step))])

    def _in_box(self, step: int) -> Proposal:
        region = cast(Region, self._reach)
        with self._hallucinated() as belief:
            posterior = cast(Posterior, belief)
            width = cast(UpperBound, self._acquisition(belief, step)).width
            proposal, center, value = self._search(region, posterior, width, step)
        if self._unknown():
            honest = cast(Posterior, self._believe())
            value = self._best_center(region, honest, width, step)[1]
        else:
            honest = posterior
        E = region.centers.encode(center[None])
        low = lowest(self._bound(honest, -width), region, E, hints=_measured(honest), **FINE)[0]
        return self._proposal(proposal, center.tolist(), value, float(low[0]))

    def _search(self, region: Region, posterior: Posterior, width: float, step: int) -> tuple[Proposal, Array, float]:
        """The point to measure, its center, and the center's robust upper bound."""
        blocked = self._excluded_points()
        if region.trivial and self._same_domain(region):
            proposal = self._best_point(self._bound(posterior, width), posterior, step)  # GP-UCB, to the bit
            x = cast(Array, proposal.x)
            return proposal, x, float(self._bound(posterior, width)(self.domain.encode(x[None]))[0])
        shut = np.empty((0, region.centers.dimension))
        while True:
            center, value = self._best_center(region, posterior, width, step, shut)
            X = self.domain.decode(self._preferred(region, posterior, width, center))
            free = ~(X[:, None, :] == blocked).all(axis=-1).any(axis=1)
            if free.any():
                return Proposal(X[free][0]), center, value
            shut = np.vstack([shut, center])

    def _same_domain(self, region: Region) -> bool:
        return region.centers.dimension == self.domain.dimension

    def _best_center(
        self, region: Region, posterior: Posterior, width: float, step: int, shut: Array | None = None
    ) -> tuple[Array, float]:
        """Line 1 of the algorithm on a box or a space."""
        measured = self._incumbents(posterior)
        seeds = [] if measured is None else [region.center_of(measured)]
        chosen = [query.note["center"] for query in self._chosen()[-3:]]
        if chosen:
            seeds.append(np.array(chosen))
        x, value, _ = maximin(
            self._bound(posterior, width),
            region,
            rng=self.stream("maximize", step),
            seeds=np.vstack(seeds) if seeds else None,
            hints=_measured(posterior),
            exclude=shut,
        )
        return x, value

    def _preferred(self, region: Region, posterior: Posterior, width: float, center: Array) -> Array:
        """Encoded points of the region around the center in the order of preference: line 2 of the algorithm."""
        return self._lowest_points(region, self._bound(posterior, -width), center)

    @staticmethod
    def _lowest_points(region: Region, bound: PosteriorScore, center: Array) -> Array:
        """Encoded points around a center, the lowest first."""
        E = region.centers.encode(center[None])
        found = lowest(bound, region, E, hints=_measured(bound.posterior), **FINE)[1]
        others = region.spread(E, FINE["count"])[0]
        return np.vstack([found, others[np.argsort(bound(others), kind="stable")]])

    @staticmethod
    def _bound(posterior: Posterior, width: float) -> PosteriorScore:
        return PosteriorScore(posterior, UpperBound(width))

    @staticmethod
    def _proposal(proposal: Proposal, center: int | list[float], upper: float, lower: float) -> Proposal:
        note = {"center": center, "upper": upper, "lower": lower}
        return Proposal(proposal.x, proposal.index, note=note)

    # -- answering ---------------------------------------------------------------------------------------------------

    def _chosen(self) -> list[Query]:
        """Queries that the rule chose, in order."""
        return [query for query in self._queries if "center" in query.note]

    def _width_now(self) -> float:
        belief: Posterior | GridPosterior = self._believe()
        return cast(UpperBound, self._acquisition(belief, len(self._queries))).width

    def _recommend(self) -> Recommendation:
        return report(self, self._reach, self._width_now(), *self._candidates())

    def _candidates(self) -> tuple[list[Any], Array | None, str]:
        """The centers that may be reported, what they are judged by (None: the bounds now), and the rule in words."""
        chosen = self._chosen()
        if not chosen:
            return self._measured_centers(), None, "best worst-case lower bound now, among measured points"
        centers = [query.note["center"] for query in chosen]
        if self.report_rule == "last":
            return centers[-1:], None, "the last choice"
        if self.report_rule == "own_time":
            own = np.array([query.note["lower"] for query in chosen])
            return centers, own, "best worst-case lower bound of its own round, among the choices"
        return centers, None, "best worst-case lower bound now, among the choices"

    def _measured_centers(self) -> list[Any]:
        if isinstance(self._reach, Sets):
            found: list[Any] = self._reach.center_of(self._rows()).tolist()
        else:
            found = self._reach.center_of(self._data()[0]).tolist()
        return found

    @property
    def certificate(self) -> float:
        """A bound on the robust regret of the recommendation; ∞ before the rule has chosen anything.

        *With a belief that is given*, valid whenever its bounds hold in all rounds: the lowest robust upper bound of
        all rounds, min_s max_x min_δ ucb_{s−1}(x + δ), less the lower bound by which the report was judged. With
        ``report="own_time"`` it never rises.

        *With a belief that is fitted* (the default, or ``gp.refit(...)``) bounds of different rounds are those of
        different beliefs, and no theorem speaks about any of them. It is then the largest of
        max_x min_δ ucb(x + δ) − min_δ lcb(x̂ + δ), two standard deviations wide, under the belief now and under draws
        of hyper-parameters that suit the measurements as well (:mod:`surefoot.policy.plausible`); ∞ while there are
        fewer
        than two measurements for every hyper-parameter. It may rise. How often it holds is measured, not proved: see
        docs/policies/stable-opt.md.

        >>> from surefoot import Ball, Candidates, StableOpt
        >>> policy = StableOpt(Candidates([0.0, 1.0]), perturbation=Ball(0.5), initial=0, seed=0)
        >>> policy.certificate
        inf
        """
        chosen = self._chosen()
        if not chosen:
            return math.inf
        if refitted(self):
            return self._plausible_regret()
        highest = min(query.note["upper"] for query in chosen)
        if self.report_rule == "own_time":
            return float(highest - max(query.note["lower"] for query in chosen))
        if self.report_rule == "last" or not self._successes():
            return float(highest - chosen[-1].note["lower"])
        return float(highest - cast(float, self._recommend().lower))

    def _plausible_regret(self, limit: float = math.inf) -> float:
        """The largest regret that a plausible belief thinks possible; given up beyond the limit."""
        if self._certified is not None and self._certified[0] == len(self._events):
            return self._certified[1]
        worst, center = -math.inf, None
        for belief in plausible(self):
            if center is None:
                center = _judged(self, self._reach, self._width_now(), *self._candidates()[:2])[0]
            worst = max(worst, self._possible_regret(belief, center))
            if worst > limit:
                return worst
        found = math.inf if center is None else max(worst, 0.0)
        self._certified = (len(self._events), found)
        return found

    _certified: tuple[int, float] | None = None  # the number of events, and what was found then

    def _possible_regret(self, belief: Posterior, center: Any) -> float:
        """The robust optimum less the worst case of a center, at most, under a belief."""
        reach = self._reach
        if isinstance(reach, Sets):
            mean, std = belief.predict(self._seen(cast(Candidates, self.domain).points))
            upper, lower = mean + WIDTH * std, mean - WIDTH * std
            return float(reach.minimum(upper).max() - reach.minimum(lower)[center])
        high = self._best_center(reach, belief, WIDTH, len(self._queries))[1]
        E = reach.centers.encode(center[None])
        return high - float(lowest(self._bound(belief, -WIDTH), reach, E, hints=_measured(belief), **FINE)[0][0])

    @property
    def finished(self) -> bool:
        """Whether the certificate has reached the ``accuracy``; never without one.

        It promises what :attr:`certificate` does, under the same belief.
        """
        if self.accuracy is None or not self._chosen():
            return False
        regret = self._plausible_regret(self.accuracy) if refitted(self) else self.certificate
        return regret <= self.accuracy


def report(
    policy: ModelPolicy, reach: Sets | Region, width: float, centers: list[Any], own: Array | None, rule: str
) -> Recommendation:
    """Return the center whose worst case has the highest lower bound, as a recommendation.

    Parameters
    ----------
    policy, reach, width
        As in :func:`robust_bounds`.
    centers : list
        Centers that may be reported, in the order they were chosen; the first of the best wins.
    own : array of shape (k,), optional
        What they are judged by, instead of the lower bound now. It is also the lower bound that is shown, unless the
        belief is fitted: then that is the one now.
    rule : str
        The rule in words.

    >>> from surefoot import GP, SE, Ball, Candidates
    >>> line = Candidates([0.0, 1.0, 2.0])
    >>> policy = GPUCB(line, gp=GP(SE(0.1), noise=1e-6), seed=0)
    >>> for x, y in [(0.0, 1.0), (1.0, 5.0), (2.0, 4.0)]:
    ...     policy.tell([x], y)
    >>> report(policy, Ball(1.0).on(line), 2.0, [1, 2], None, "an example").x
    array([2.])
    """
    best, lower, mean, upper = _judged(policy, reach, width, centers, own)
    if isinstance(reach, Sets):
        answer = reach.answer(int(best))
    else:
        answer = {"x": best, "params": reach.centers.params(best)}
    return Recommendation(**answer, mean=mean, lower=lower, upper=upper, rule=rule)


def _judged(
    policy: ModelPolicy, reach: Sets | Region, width: float, centers: list[Any], own: Array | None
) -> tuple[Any, float, float, float]:
    """The best of the centers, and the lower bound, mean and upper bound of its worst case."""
    distinct = np.array(centers) if own is not None else np.array(list(dict.fromkeys(map(_hashable, centers))))
    lower, mean, upper = robust_bounds(policy, reach, width, distinct)
    judged = lower if own is None else own
    best = int(np.argmax(judged))
    shown = lower if refitted(policy) else judged  # a bound of an earlier fit says nothing about this one's mean
    return distinct[best], float(shown[best]), float(mean[best]), float(upper[best])


def _hashable(center: Any) -> Any:
    return tuple(center) if isinstance(center, list) else center


class StableOpt(WorstCasePolicy):
    """The choice whose worst case is best; see the module's page.

    Parameters
    ----------
    domain : Box, Candidates or Space
        Where designs may lie.
    perturbation : Perturbation
        What an adversary does to the chosen design: ``Ball``, ``WeightedBox``, ``UnknownParameters``,
        ``AroundEstimate``, ``Groups``. Over parameters, measurements are made at pairs (x, θ) and ``policy.domain`` is
        the domain of pairs. In a space numbers are moved in their own units, and choices swapped within ``Groups``.
    report : {"current", "own_time", "last"}
        Which of the choices is recommended. ``"own_time"`` compares bounds of different rounds, which is the theorem's
        rule for a belief that is given; with one that is fitted they are those of different fits.
    accuracy : float, optional
        ``finished`` becomes true when ``certificate`` is at most this.
    width : width, optional
        Standard deviations between mean and bounds; as in :class:`~surefoot.policy.ucb.gp_ucb.GPUCB`.
    **options
        ``gp``, ``initial``, ``confidence``, ``seed``, ``repeats``, ``journal``.

    >>> from surefoot import Ball, Candidates
    >>> x = np.linspace(0.0, 1.0, 41)
    >>> f = 2.0 * np.exp(-(((x - 0.2) / 0.03) ** 2)) + np.exp(-(((x - 0.7) / 0.2) ** 2))  # a narrow peak, a broad one
    >>> policy = StableOpt(Candidates(x), perturbation=Ball(0.1), seed=0)
    >>> for _ in range(20):
    ...     query = policy.ask()
    ...     policy.tell(query, f[query.index])
    >>> abs(policy.recommend().x[0] - 0.7) < 0.06
    np.True_
    """
