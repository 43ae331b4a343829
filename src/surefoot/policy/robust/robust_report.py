"""RobustReport: any policy's measurements, StableOpt's answer.

Question: that of :mod:`surefoot.policy.robust.stable_opt`; but another policy decides where to measure.

Rule: among the measured points x₁, …, x_t, report that of the highest min over δ in Δ(x) of lcb_t(x + δ), the bounds
being those of one belief given all measurements. ``RobustReport(GPUCB(domain), Ball(0.5))`` is Stable-GP-UCB,
``RobustReport(RandomSearch(domain), Ball(0.5), gp=gp)`` is Stable-GP-random.

Reference: Bogunovic, Scarlett, Jegelka & Cevher 2018, section 5. Guarantee: that of the bounds, the recommendation's
``lower`` is below its worst case whenever they hold; none on how soon a robust point is measured.

Authors' options: β^(1/2) = 2. Difference: a group is reported through any measured member of it, a design through any
parameters it was measured with.

Cost: that of the policy, and one minimum filter per recommendation.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from surefoot.belief.gp import GP
from surefoot.belief.grid import GridPosterior
from surefoot.belief.posterior import Posterior
from surefoot.domain import Box, Candidates, Space
from surefoot.domain.perturbation import Meaningless, Perturbation
from surefoot.domain.sets import Sets
from surefoot.errors import NotSupported
from surefoot.loop.journal import Journal
from surefoot.loop.policy import Policy, Proposal
from surefoot.loop.types import Advice, Outcome, Query, Recommendation
from surefoot.loop.widths import Width, given_or, usual
from surefoot.policy.legacy import Acquisition, ModelPolicy
from surefoot.policy.robust.stable_opt import report
from surefoot.policy.ucb.gp_ucb import GPUCB, UpperBound

__all__ = ["RobustReport"]

Array = NDArray[np.float64]
SHARED = ("_events", "_queries", "_pending", "_told", "_reports", "_observations")


class _Listener(ModelPolicy):
    """A belief that follows the measurements of others."""

    def _acquisition(self, belief: Posterior | GridPosterior, step: int) -> Acquisition:
        return UpperBound(0.0)


class RobustReport(Policy):
    """Measure as another policy does, and report the measured point whose worst case is best.

    Parameters
    ----------
    policy : Policy
        A fresh policy on a ``Box``, on ``Candidates`` or in a ``Space``; over unknown parameters, on
        ``perturbation.join(domain)``. Not one for functions that drift: the answer knows no time.
    perturbation : Perturbation
        What an adversary does to the reported point.
    gp : GP, optional
        The belief that judges; None: that of the policy, or ``GP.automatic`` where it has none.
    width : width, optional
        Standard deviations between mean and bounds; None: that of the policy, else ``Finite(0.95)`` on candidates and
        ``Constant(2.0)`` on a box.
    seed, journal
        As for every policy; by default the seed is that of ``policy``.

    >>> from surefoot import Ball, Candidates, RandomSearch
    >>> x = np.linspace(0.0, 1.0, 41)
    >>> f = 2.0 * np.exp(-(((x - 0.2) / 0.03) ** 2)) + np.exp(-(((x - 0.7) / 0.2) ** 2))
    >>> policy = RobustReport(RandomSearch(Candidates(x), seed=0), Ball(0.1))
    >>> for _ in range(30):
    ...     query = policy.ask()
    ...     policy.tell(query, f[query.index])
    >>> abs(policy.recommend().x[0] - 0.7) < 0.1
    np.True_
    """

    domains = (Box, Candidates, Space)

    def __init__(
        self,
        policy: Policy,
        perturbation: Perturbation,
        *,
        gp: GP | None = None,
        width: Width | None = None,
        seed: int | None = None,
        journal: str | os.PathLike[str] | Journal | None = None,
    ) -> None:
        if not isinstance(policy, Policy):
            raise TypeError(f"policy must be a policy, for example GPUCB(domain); got {policy!r}")
        if policy.events:
            raise ValueError(f"RobustReport needs a fresh policy; this one has {len(policy.events)} events")
        if policy.journal is not None:
            raise ValueError("the journal belongs to RobustReport(..., journal=), not to the policy inside")
        if policy.context:
            raise NotSupported(
                f"RobustReport judges by a belief that does not know of {', '.join(policy.context)}; "
                f"{type(policy).__name__} is asked with it"
            )
        if not isinstance(perturbation, Perturbation):
            raise TypeError(f"perturbation must be one, for example Ball(0.5); got {perturbation!r}")
        super().__init__(
            policy.domain, seed=policy.seed if seed is None else seed, repeats=policy.repeats, journal=journal
        )
        # The policy that was given stays as it is: a copy of this one is made with it again.
        self.policy = type(policy)(**policy._arguments, seed=policy.seed)
        self.perturbation = perturbation
        try:
            self._reach = perturbation.on(policy.domain)
        except Meaningless as error:
            raise NotSupported(str(error)) from None
        for ability in ("parallel", "steps", "fidelities"):
            setattr(self, ability, getattr(policy, ability))
        # A belief that sees more than the point (an epoch beside it) cannot be asked about points alone.
        own = isinstance(self.policy, ModelPolicy) and type(self.policy)._seen is ModelPolicy._seen
        self.believer = (
            cast(ModelPolicy, self.policy) if own and gp is None else _Listener(policy.domain, gp=gp, seed=self.seed)
        )
        inherited = self.policy.width if isinstance(self.policy, GPUCB) else None
        self.width = given_or(width, inherited or usual(policy.domain.size, 0.95))
        # One record of events, read by all three.
        for reader in (self.policy, self.believer):
            for name in SHARED:
                setattr(reader, name, getattr(self, name))

    def _begin(self, count: int) -> None:
        self.policy._begin(count)

    def _choose(self, step: int, context: Mapping[str, Any]) -> Proposal:
        return self.policy._choose(step, context)

    def _check_report(self, step: int) -> None:
        self.policy._check_report(step)

    def _advise(self, query: Query, step: int, value: float | None) -> Advice:
        return self.policy._advise(query, step, value)

    def _final(self, query: Query) -> Outcome:
        return self.policy._final(query)

    def posterior(self) -> Posterior:
        """Return the belief given all measurements, over encoded points."""
        return self.believer.posterior()

    def _recommend(self) -> Recommendation:
        reach, believer = self._reach, self.believer
        width = believer._deviations(self.width, believer._round(), believer._believe())
        if isinstance(reach, Sets):
            centers: list[Any] = reach.center_of(believer._rows()).tolist()
        else:
            centers = reach.center_of(self.data()[0]).tolist()
        return report(believer, reach, width, centers, None, "best worst-case lower bound now, among measured points")

    def _cache(self) -> dict[str, Any]:
        cache = {"policy": self.policy._cache()}
        return cache if self.believer is self.policy else {**cache, "belief": self.believer._cache()}

    def _restore(self, cache: dict[str, Any]) -> None:
        self.policy._restore(dict(cache.get("policy", {})))
        if self.believer is not self.policy:
            self.believer._restore(dict(cache.get("belief", {})))

    def __repr__(self) -> str:
        return f"RobustReport({self.policy!r}, {self.perturbation!r})"
