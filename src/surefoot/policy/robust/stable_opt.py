"""StableOpt: the choice whose worst case is best.

Question: which x has the highest value after an adversary has moved it within reach, max over x of min over δ in Δ(x)
of f(x + δ)? Measurements are made exactly where they are asked for; only the choice is perturbed. What an adversary
reaches is a :mod:`perturbation <surefoot.domain.perturbation>`: a ball or box around the design, unknown parameters
beside it, several objectives, a group that is chosen as a whole.

Rule (Algorithm 7), with ucb and lcb = μ_{t−1} ± β_t^(1/2) σ_{t−1} (4.7):

* line 2, x̃_t = argmax over x of min over δ in Δ(x) of ucb(x + δ) (4.8): optimism decides where,
* line 3, δ_t = argmin over δ in Δ(x̃_t) of lcb(x̃_t + δ): pessimism decides what an adversary would do there,
* line 4, measure x̃_t + δ_t.

Reported is one of the x̃: ``report="current"``, that of the highest min lcb under the bounds now (the authors'
experiments); ``"own_time"``, each judged by the bounds of its own round (the theorem); ``"last"``, x̃_t.

Reference: Bogunovic, Scarlett, Jegelka & Cevher 2018, "Adversarially robust optimization with Gaussian processes".
Numbers are those of Bogunovic's thesis (2019), chapter 4.

Guarantee (Theorem 4.2.1): if T/(β_T γ_T) ≥ C₁/η², C₁ = 8/log(1 + σ⁻²), then with probability at least 1 − δ the
``own_time`` report is within η of the robust optimum, for any kernel with k(x, x) ≤ 1 and any perturbation. While
running, whenever the bounds hold, ``certificate`` bounds the regret of the report. All this is about a belief that is
given; what is promised with one that is fitted, the default, is said at ``certificate``.

Authors' options: β_t^(1/2) = 2, ten random points first, report "current". Differences: the default width is
GP-UCB's here; with points under way the choice uses hallucinated bounds and the certificate the honest ones. On a
box, and in a space with real numbers, the two searches are numerical, and so is the certificate.

Cost of one ask: on M candidates O(n M) plus one minimum filter, O(M r) for a ball of r points across in the plane and
O(M) for a box or groups; on a box some 400 evaluations and up to 8 · 90 gradients of about 30 points each, in a space
of as many points as there are whole-numbered moves, if that is more.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, Literal, Unpack, cast

import numpy as np
from numpy.typing import NDArray

from surefoot.arguments import one_of, positive
from surefoot.belief.protocol import EVERY, Belief
from surefoot.domain import Box, Candidates, Domain, Space
from surefoot.domain.perturbation import InapplicablePerturbation, Perturbation
from surefoot.domain.ranking import argmax
from surefoot.domain.sets import Region, Sets
from surefoot.errors import NotSupported
from surefoot.loop.options import check_domain
from surefoot.loop.types import Proposal, Query, Recommendation
from surefoot.loop.widths import Width, given_or, usual
from surefoot.policy.acquisition import BeliefScore
from surefoot.policy.base import ModelOptions, ModelPolicy
from surefoot.policy.plausible import WIDTH, plausible, refitted
from surefoot.policy.robust.judge import FINE, Judged, RegionJudge, SetJudge, judge_of, judged, report
from surefoot.policy.ucb.gp_ucb import UpperBound
from surefoot.policy.view import View

__all__ = ["AmongSets", "InRegion", "StableOpt"]

Array = NDArray[np.float64]
REPORTS = ("current", "own_time", "last")
Report = Literal["current", "own_time", "last"]
LOWER, UPPER = -1.0, 1.0  # which bound says what an adversary does: StableOpt's lcb, or MaxiMin-GP-UCB's ucb


class AmongSets:
    """Algorithm 7 where a choice is one of finitely many sets of candidates.

    Parameters
    ----------
    judge : SetJudge
        What an adversary may do.
    width : width
        β_t^(1/2).
    side : {LOWER, UPPER}
        The bound of line 3. With ``UPPER`` a choice that can be measured itself is.
    """

    def __init__(self, judge: SetJudge, width: Width, side: float) -> None:
        self.sets, self.judge, self.width, self.side = judge.sets, judge, width, side

    def propose(self, view: View) -> Proposal:
        """Return the point to measure; its note says for which choice, and what that promises."""
        sets = self.sets
        with view.hallucinated() as belief:
            width = view.deviations(self.width, belief)
            mean, std = belief.predict(EVERY)
            upper, lower = mean + width * std, mean - width * std  # (4.7)
        robust, blocked = sets.minimum(upper), view.domain.excluding(view.blocked())
        exclude = np.zeros(sets.count, dtype=np.bool_) if sets.repeated is None else sets.repeated
        if blocked.any():
            whole = self.side == LOWER or sets.itself(0) is None  # a choice is out when all of its members are
            exclude = exclude | (sets.minimum(blocked.astype(np.float64)) > 0.0 if whole else blocked)
        center = argmax(robust, rng=view.stream("ties", view.step), exclude=exclude)  # line 2: x̃_t
        members = sets.members(center)
        itself = sets.itself(center) if self.side == UPPER else None
        if itself is None:  # line 3: δ_t
            free, bound = members[~blocked[members]], lower if self.side == LOWER else upper
            itself = int(free[argmax(-bound[free], rng=view.stream("adversary", view.step))])
        if view.trials.unknown:  # hallucinated bounds are too narrow to promise anything
            mean, std = view.believe().predict(EVERY)
            robust, lower = sets.minimum(mean + width * std), mean - width * std
        promise = {"center": center, "upper": float(robust.max()), "lower": float(lower[members].min())}
        return Proposal(index=itself, note=promise)  # line 4: measure x̃_t + δ_t


class InRegion:
    """Algorithm 7 where a choice is a point of a box or a space, with a region around it; both lines are searches.

    Parameters
    ----------
    judge : RegionJudge
        What an adversary may do.
    width, side
        As of :class:`AmongSets`.
    """

    def __init__(self, judge: RegionJudge, width: Width, side: float) -> None:
        self.region, self.judge, self.width, self.side = judge.region, judge, width, side

    def propose(self, view: View) -> Proposal:
        """Return the point to measure; its note says for which choice, and what that promises."""
        with view.hallucinated() as belief:
            width, hints = view.deviations(self.width, belief), view.hints(imagined=True)
            x, center, upper = self._search(view, belief, width, hints)
            lower = self.judge.least(belief, -width, center, hints)[0]
        if view.trials.unknown:  # hallucinated bounds are too narrow to promise anything
            honest, hints = view.believe(), view.hints()
            upper = self.judge.best(view, honest, width, hints)[1]
            lower = self.judge.least(honest, -width, center, hints)[0]
        return Proposal(x, note={"center": center.tolist(), "upper": upper, "lower": lower})  # line 4

    def _search(self, view: View, belief: Belief, width: float, hints: Array | None) -> tuple[Array, Array, float]:
        """The point to measure, its center, and the center's robust upper bound."""
        region, domain = self.region, view.domain
        itself = region.centers.dimension == domain.dimension
        if region.trivial and itself:  # GP-UCB, to the bit
            score = BeliefScore(belief, UpperBound(width))
            x = cast(Array, view.highest(score, belief).x)
            return x, x, float(score(domain.encode(x[None]))[0])
        blocked = domain.excluding(view.blocked())
        excluded = np.empty((0, region.centers.dimension))
        while True:
            center, value = self.judge.best(view, belief, width, hints, excluded)  # line 2: x̃_t
            if itself and self.side == UPPER:
                X = domain.decode(region.centers.encode(center[None]))
            else:
                X = domain.decode(self._preferred(belief, self.side * width, center, hints))  # line 3: x̃_t + δ_t
            free = ~(X[:, None, :] == blocked).all(axis=-1).any(axis=1)
            if free.any():
                return X[free][0], center, value
            excluded = np.vstack([excluded, center])

    def _preferred(self, belief: Belief, width: float, center: Array, hints: Array | None) -> Array:
        """Encoded points around a center, that of the lowest bound first."""
        found = self.judge.least(belief, width, center, hints)[1]
        others = self.region.spread(self.region.centers.encode(center[None]), FINE["count"])[0]
        values = BeliefScore(belief, UpperBound(width))(others)
        return np.vstack([found, others[np.argsort(values, kind="stable")]])


class StableOpt(ModelPolicy):
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

    width: Width

    domains = (Box, Candidates, Space)
    side: ClassVar[float] = LOWER

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
        check_domain(domain, self.domains, type(self).__name__)
        try:
            joined = perturbation.join(domain)
            reach = perturbation.on(joined)
        except InapplicablePerturbation as error:
            raise NotSupported(str(error)) from None
        super().__init__(joined, **options)
        self.perturbation, self.report_rule = perturbation, one_of(report, "report", REPORTS)
        self.accuracy = None if accuracy is None else positive(accuracy, "accuracy")
        self.width = given_or(width, usual(joined.size, self.confidence))
        self.judge = judge_of(reach)
        self.rule = worst_case_rule(reach, self.width, self.side)
        self._certified: tuple[int, float] | None = None  # the number of events, and what was found then

    # -- answering ---------------------------------------------------------------------------------------------------

    def _chosen(self) -> list[Query]:
        """Queries that the rule chose, in order."""
        return [query for query in self.trials.queries if "center" in query.note]

    def _recommend(self) -> Recommendation:
        return report(self.judge, self._judged(), self._reportable()[2])

    def _judged(self) -> Judged:
        """The best of the choices, by the belief now."""
        view, (centers, own, _) = self.view(), self._reportable()
        width = view.deviations(self.width, view.believe())
        return judged(
            self.judge, view.believe(), width, centers, own=own, show_own=not refitted(self), hints=view.hints()
        )

    def _reportable(self) -> tuple[list[Any], Array | None, str]:
        """The centers that may be reported, what they are judged by (None: the bounds now), and the rule in words."""
        chosen = self._chosen()
        if not chosen:
            measured = self.judge.measured(self.trials)
            return measured, None, "best worst-case lower bound now, among measured points"
        centers = [query.note["center"] for query in chosen]
        if self.report_rule == "last":
            return centers[-1:], None, "the last choice"
        if self.report_rule == "own_time":
            own = np.array([query.note["lower"] for query in chosen])
            return centers, own, "best worst-case lower bound of its own round, among the choices"
        return centers, None, "best worst-case lower bound now, among the choices"

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
        fewer than two measurements for every hyper-parameter. It may rise. How often it holds is measured, not proved:
        see docs/policies/stable-opt.md.

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
        if self.report_rule == "last" or not self.trials.successes:
            return float(highest - chosen[-1].note["lower"])
        return float(highest - self._recommend().lower)

    def _plausible_regret(self, limit: float = math.inf) -> float:
        """The largest regret that a plausible belief thinks possible; given up beyond the limit."""
        known = len(self.trials.events)
        if self._certified is not None and self._certified[0] == known:
            return self._certified[1]
        worst, center = -math.inf, None
        for posterior in plausible(self):
            if center is None:
                center = self._judged()[0]
            worst = max(worst, self._possible_regret(self.surrogate.facing(posterior), center))
            if worst > limit:
                return worst
        found = math.inf if center is None else max(worst, 0.0)
        self._certified = (known, found)
        return found

    def _possible_regret(self, belief: Belief, center: Any) -> float:
        """The robust optimum less the worst case of a center, at most, under a belief."""
        view = self.view()
        high = self.judge.highest(view, belief, WIDTH, view.hints())
        return high - self.judge.lowest(belief, WIDTH, center, view.hints())

    @property
    def finished(self) -> bool:
        """Whether the certificate has reached the ``accuracy``; never without one.

        It promises what :attr:`certificate` does, under the same belief.
        """
        if self.accuracy is None or not self._chosen():
            return False
        regret = self._plausible_regret(self.accuracy) if refitted(self) else self.certificate
        return regret <= self.accuracy


def worst_case_rule(reach: Sets | Region, width: Width, side: float) -> AmongSets | InRegion:
    """Return Algorithm 7 over what an adversary reaches; ``side`` is the bound of line 3."""
    judge = judge_of(reach)
    return AmongSets(judge, width, side) if isinstance(judge, SetJudge) else InRegion(judge, width, side)
