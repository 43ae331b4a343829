"""TV-GP-UCB: follow the maximum of a function that drifts.

Question: where is the maximum *now*, when old measurements say less and less? ``ask(time=t)`` gives the time (by
default one unit after the latest), ``recommend()`` answers for the latest time that was heard of.

Rule (Algorithm 9): x_t = argmax μ̃_{t−1}(x) + β_t^(1/2) σ̃_{t−1}(x) with the exact posterior of the drift model
(:mod:`surefoot.belief.drift`), in which a measurement fades by (1 − ε)^(1/2) per unit of time.

Reference: Bogunovic, Scarlett & Cevher 2016. Numbers of equations and algorithms are those of Bogunovic's thesis
(2019), chapter 5.

Guarantee: with the true ε, kernel and noise and the width of the theorem, with probability at least 1 − δ R_T ≤ √(C₁ T
β_T (T/Ñ + 1)(γ_Ñ + Ñ³ε/2σ²)) + 2 for every Ñ (Theorem 5.3.3, corrected). Regret is against the moving maximum; for
fixed ε > 0 no method has R_T/T → 0 (Theorem 5.3.1). On finite domains the width ``Finite(1 − δ)`` is enough.

Authors' options: β_t = 0.8 log 4t (``widths.LogTime(0.8, 4.0)``), true or maximum-likelihood ε. Differences: times may
be any numbers, given at ``ask``; ε and the other hyper-parameters may be learned while the policy runs; memory is
bounded. See docs/policies/tv-gp-ucb.md for corrections of the published text.

Cost of one ask on M candidates: O(M · min(n, M)), which stops growing with the number n of measurements; elsewhere as
GP-UCB with at most ``2 · memory`` measurements.
"""

from __future__ import annotations

from typing import Unpack

from surefoot.arguments import whole
from surefoot.belief.drift import LARGEST_DENSE
from surefoot.belief.forgetting import ForgettingEstimate, check_forgetting, drifting, estimate_forgetting, separate
from surefoot.domain import Box, Candidates, Domain, Space
from surefoot.errors import NoData
from surefoot.loop.clock import Clock
from surefoot.loop.types import Recommendation
from surefoot.loop.widths import Width, given_or, usual
from surefoot.policy.base import ModelOptions, ModelPolicy
from surefoot.policy.drift.fading import MEMORY, FadingGrid, FadingRows, FadingSurrogate, with_time
from surefoot.policy.drift.memory import check_one_belief
from surefoot.policy.ucb.gp_ucb import UpperConfidence

__all__ = ["TVGPUCB"]


class TVGPUCB(ModelPolicy):
    """Measure where the upper confidence bound of a drifting function is highest now.

    Parameters
    ----------
    domain : Box, Candidates or Space
        Where points may lie.
    forgetting : float, optional
        ε: how much of the function is new after one unit of time, from 0 (stands still: the queries are GP-UCB's) to 1
        (nothing is left). None: learned from the measurements while the policy runs.
    memory : int, optional
        Measurements that are kept at least; between this many and twice as many of the latest ones are believed, older
        ones forgotten. None: all on up to 4096 candidates, in bounded memory; elsewhere 500.
    width : width, optional
        Standard deviations above the mean, per round; see :mod:`surefoot.widths`. None: ``Finite(confidence)`` on
        finite domains, ``Constant(2.0)`` elsewhere.
    **options
        ``gp`` (of the function at any one time), ``initial``, ``confidence``, ``seed``, ``repeats``, ``journal``.

    >>> from surefoot import GP, SE, Candidates
    >>> policy = TVGPUCB(Candidates([0.0, 0.5, 1.0]), forgetting=0.1, gp=GP(SE(0.2), noise=0.01), seed=0)
    >>> for day in (1, 2, 3, 7):
    ...     query = policy.ask(time=day)
    ...     policy.tell(query, 1.0 - query.x[0])
    >>> policy.recommend().x, policy.time
    (array([0.]), 7.0)
    >>> policy.ask(time=5)
    Traceback (most recent call last):
    ...
    ValueError: time runs backwards: asked for time 5 after time 7.0
    """

    width: Width

    domains = (Box, Candidates, Space)
    context = ("time",)
    clock: Clock
    forecasts = True

    def __init__(
        self,
        domain: Domain,
        *,
        forgetting: float | None = None,
        memory: int | None = None,
        width: Width | None = None,
        **options: Unpack[ModelOptions],
    ) -> None:
        super().__init__(domain, **options)
        check_one_belief(self.gp, type(self).__name__)
        self._rate = None if forgetting is None else check_forgetting(forgetting)
        self.memory = None if memory is None else whole(memory, "memory", 1)
        self.width = given_or(width, usual(domain.size, self.confidence))
        self.clock = Clock(self.trials)
        self.rule = UpperConfidence(self.width)  # Algorithm 9, line 2: x_t = argmax μ̃_{t−1}(x) + β_t^(1/2) σ̃_{t−1}(x)
        self._fading: FadingSurrogate | None = None
        if self._rate == 0.0 and memory is None:
            return  # nothing fades: it is GP-UCB
        # Algorithm 9, line 4: μ̃ and σ̃ of (5.3) and (5.4), at the time of the ask.
        gp = with_time(self.gp, self._rate, domain.encoded_dimension)
        if domain.listed:
            kept = self.memory or (None if (domain.size or 0) <= LARGEST_DENSE else MEMORY)
            self._fading = FadingGrid(self.clock, gp, self.stream, kept)
        else:
            self._fading = FadingSurrogate(self.clock, gp, self.stream, self.memory or MEMORY)
        self.surrogate, self.trials.held = self._fading, self._fading.rows.held

    @property
    def forgetting(self) -> float:
        """ε in use: as given, or as learned from the measurements so far."""
        return separate(self.surrogate.now())[1] if self._rate is None else self._rate

    def estimate(self, *, confidence: float = 0.95) -> ForgettingEstimate:
        """Return the maximum-likelihood forgetting rate of the latest 200 measurements, with its interval.

        The other hyper-parameters are those in use.

        >>> from surefoot import GP, SE, Candidates
        >>> policy = TVGPUCB(Candidates([0.0]), forgetting=0.1, gp=GP(SE(), noise=0.01), seed=0)
        >>> for value in (1.0, 0.2, -0.9, -0.1, 1.2):
        ...     policy.tell(policy.ask(), value)
        >>> found = policy.estimate()
        >>> 0.1 < found.lower < found.forgetting
        True
        """
        clock = self.clock
        if len(clock.measured) < 2:
            raise NoData(f"{len(clock.measured)} measurements say nothing about drift")
        gp = self.gp if self._fading is None else separate(self._fading.now())[0]
        e, (X, y, noise) = self.domain.encoded_dimension, FadingRows(clock).fitted(len(clock.measured))
        return estimate_forgetting(lambda r: drifting(gp, r, e).log_likelihood(X, y, noise), confidence=confidence)

    def recommend(self, time: float | None = None) -> Recommendation:
        """Return what is best now, or at a later time: the point of the highest mean.

        Parameters
        ----------
        time : float, optional
            By default the latest time that was heard of.
        """
        self.clock.speak_of(time)
        return super().recommend()

    def _recommend(self) -> Recommendation:
        if self._fading is None:
            return super()._recommend()
        belief, rule = self._fading.believe(), "highest posterior mean now"
        X, at = self._fading.eligible()
        which = rule if self.domain.listed else f"{rule} among the latest measured points"
        return self._highest(X, *belief.predict(at), which)
