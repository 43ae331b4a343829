"""RobustReport: any policy's measurements, StableOpt's answer.

Question: that of :mod:`surefoot.policy.robust.stable_opt`; but another policy decides where to measure.

Rule: among the measured points x₁, …, x_t, report that of the highest min over δ in Δ(x) of lcb_t(x + δ), the bounds
being those of one belief given all measurements. ``RobustReport(GPUCB(domain), Ball(0.5))`` is Stable-GP-UCB,
``RobustReport(RandomSearch(domain), Ball(0.5), gp=gp)`` is Stable-GP-random.

Reference: Bogunovic, Scarlett, Jegelka & Cevher 2018, section 5. Guarantee: that of the bounds, the recommendation's
``lower`` is below its worst case whenever they hold; none on how soon a robust point is measured.

The policy inside chooses as it does alone, to the bit: it is asked and told itself, and what it did is put on record
here; a resumed one replays the record. Any policy that keeps the contract works inside. One with a clock is asked with
the time, and judged by its own belief about the time that is spoken of; a ``gp`` of your own ignores time.

Authors' options: β^(1/2) = 2. Difference: a group is reported through any measured member of it, a design through any
parameters it was measured with.

Cost: that of the policy, and one minimum filter per recommendation.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from surefoot.belief.gp import GP
from surefoot.belief.posterior import Posterior
from surefoot.domain import Box, Candidates, Space
from surefoot.domain.perturbation import InapplicablePerturbation, Perturbation
from surefoot.errors import NotSupported
from surefoot.loop.journal import Journal
from surefoot.loop.policy import OMITTED, Point, Policy, Proposal
from surefoot.loop.types import Advice, Query, Recommendation
from surefoot.loop.widths import Width, given_or, usual
from surefoot.policy.base import ModelPolicy
from surefoot.policy.robust.judge import judge_of, judged, report

__all__ = ["RobustReport"]

Array = NDArray[np.float64]
T = TypeVar("T")
F = TypeVar("F", bound=Policy)


class _Listener(ModelPolicy):
    """A belief that follows the measurements of others; it is never asked."""

    def _choose(self, step: int, context: Mapping[str, Any]) -> Proposal:
        raise NotSupported("a listener is not asked")


class RobustReport(Policy):
    """Measure as another policy does, and report the measured point whose worst case is best.

    Parameters
    ----------
    policy : Policy
        A fresh policy on a ``Box``, on ``Candidates`` or in a ``Space``; over unknown parameters, on
        ``perturbation.join(domain)``. It may have a clock: then ``ask(time=...)`` and ``recommend(time=...)`` take it.
    perturbation : Perturbation
        What an adversary does to the reported point.
    gp : GP, optional
        The belief that judges; None: that of the policy, or ``GP.automatic`` where it has none, or one that sees more
        than the point (such as an epoch beside it). A belief other than the policy's own ignores time.
    width : width, optional
        Standard deviations between mean and bounds; None: that of the policy, else ``Finite(0.95)`` on candidates and
        ``Constant(2.0)`` on a box.
    direction, seed, journal
        As for every policy; by default direction and seed are those of ``policy``, and no other direction is taken.

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
    valued: ClassVar[tuple[str, ...]] = ("gp",)

    def __init__(
        self,
        policy: Policy,
        perturbation: Perturbation,
        *,
        gp: GP | None = None,
        width: Width | None = None,
        direction: str | None = None,
        seed: int | None = None,
        journal: str | os.PathLike[str] | Journal | None = None,
    ) -> None:
        if not isinstance(policy, Policy):
            raise TypeError(f"policy must be a policy, for example GPUCB(domain); got {policy!r}")
        if policy.events:
            raise ValueError(f"RobustReport needs a fresh policy; this one has {len(policy.events)} events")
        if policy.journal is not None:
            raise ValueError("the journal belongs to RobustReport(..., journal=), not to the policy inside")
        if direction not in (None, policy.direction):
            raise ValueError(f"direction must be that of the policy inside, {policy.direction!r}, got {direction!r}")
        if not isinstance(perturbation, Perturbation):
            raise TypeError(f"perturbation must be one, for example Ball(0.5); got {perturbation!r}")
        # Events are in the user's sign: everybody who reads them has the same direction.
        shared: dict[str, Any] = {"repeats": policy.repeats, "direction": policy.direction}
        super().__init__(policy.domain, seed=policy.seed if seed is None else seed, journal=journal, **shared)
        self._template = policy  # it stays as it is: a policy of the same configuration and seed is made inside
        self._inside: Policy | None = None
        self.perturbation = perturbation
        try:
            self.judge = judge_of(perturbation.on(policy.domain))
        except InapplicablePerturbation as error:
            raise NotSupported(str(error)) from None
        # It can do what the policy inside can.
        vars(self).update(parallel=policy.parallel, context=policy.context, steps=policy.steps)
        vars(self).update(fidelities=policy.fidelities)
        self.epochs = policy.epochs  # hosts end a run there
        # A belief that sees more than the point (an epoch beside it) cannot be asked about points alone.
        seen = policy.inputs(policy.domain.decode(policy.domain.lower[None])).shape[1]
        own = isinstance(policy, ModelPolicy) and seen == policy.domain.encoded_dimension and gp is None
        self._listener = None if own else _Listener(policy.domain, gp=gp, seed=self.seed, **shared)
        inherited = policy.width if isinstance(policy, ModelPolicy) else None
        self.width = given_or(width, inherited or usual(policy.domain.size, 0.95))

    @classmethod
    def _as_seen(cls, arguments: Mapping[str, Any]) -> dict[str, Any]:
        return {}  # the policies inside turn what they are given

    # -- the policy inside -------------------------------------------------------------------------------------------

    @property
    def policy(self) -> Policy:
        """The policy inside, which has heard every event; to be looked at, not to be asked or told."""
        if self._inside is None:
            self._inside = self._template.fresh()
        return self._heard(self._inside)

    def _heard(self, follower: F) -> F:
        """A policy that follows the record, once it has heard what it has not."""
        known = len(follower.trials.events)
        if known > len(self._events):
            raise ValueError(
                "the policy inside was asked or told by itself; ask and tell RobustReport, which hears both"
            )
        follower.replay(self._events[known:])
        return follower

    def _through(self, act: Callable[[Policy], T]) -> T:
        """Let the policy inside act, and put on record what it did."""
        inside, known = self.policy, len(self._events)
        try:
            result = act(inside)
            events = [dict(event) for event in inside.trials.events[known:]]
            if events:
                self._commit(*events)
        except BaseException:
            if len(inside.trials.events) != known:
                self._inside = None  # it knows of what is not on record: it is made again
            raise
        for event in events:
            self._apply(event)
        return result

    def replay(self, events: Sequence[Mapping[str, Any]], cache: Mapping[str, Any] | None = None) -> None:
        super().replay(events, cache)
        self._heard(self.policy)  # what does not fit it is refused now

    def ask(self, n: int | None = None, **context: Any) -> Any:
        """Return the next query of the policy inside, or a list of ``n`` of them."""
        known = len(self._queries)
        self._through(lambda inside: inside.ask(n, **context))
        return self._queries[known] if n is None else self._queries[known:]

    def tell(self, query: Query | int | Point, value: Any = OMITTED, *, by: str | None = None) -> None:
        """Tell the policy inside the outcome of a query or of any point."""
        self._through(lambda inside: inside.tell(query, value, by=by))

    def cancel(self, query: Query | int) -> None:
        """Forget a pending query whose worker is gone; nothing is learnt from it."""
        self._through(lambda inside: inside.cancel(query))

    def report(self, query: Query | int, step: int, value: float | None) -> Advice:
        """Report an intermediate value of a run and get the advice of the policy inside."""
        return self._through(lambda inside: inside.report(query, step, value))

    def _choose(self, step: int, context: Mapping[str, Any]) -> Proposal:
        raise NotSupported("the policy inside is asked itself")

    @property
    def spares_pending(self) -> bool:
        """As the policy inside."""
        return self.policy.spares_pending

    @property
    def time(self) -> float | None:
        """The latest time that a policy with a clock has heard of; None without a clock."""
        return self.policy.time

    # -- answering ---------------------------------------------------------------------------------------------------

    def posterior(self) -> Posterior:
        """Return the belief that judges, given all measurements, over encoded points."""
        return self._believer().posterior()

    def _believer(self) -> ModelPolicy:
        return cast(ModelPolicy, self.policy if self._listener is None else self._heard(self._listener))

    def recommend(self, time: float | None = None) -> Recommendation:
        """Return the measured point whose worst case is best.

        Parameters
        ----------
        time : float, optional
            For a policy that follows a drifting function: when; by default the latest time that was heard of.
        """
        if time is not None and not (self._listener is None and self._template.forecasts):
            raise NotSupported("only the belief of a policy that follows a drifting function, TVGPUCB, can be asked so")
        self._at = time
        return super().recommend()

    _at: float | None = None  # the time that is spoken of

    def _recommend(self) -> Recommendation:
        believer = self._believer()
        view, surrogate = believer.view(), believer.surrogate
        if believer.clock is None:
            belief = view.believe()
        else:
            belief = surrogate.facing(believer.posterior() if self._at is None else believer.posterior(time=self._at))
        width, centers = view.deviations(self.width, belief), self.judge.measured(self.trials)
        found = judged(self.judge, belief, width, centers, hints=view.hints())
        return report(self.judge, found, "best worst-case lower bound now, among measured points")

    def _cache(self) -> dict[str, Any]:
        cache = {"policy": self.policy._cache()}
        return cache if self._listener is None else {**cache, "belief": self._believer()._cache()}

    def _restore(self, cache: dict[str, Any]) -> None:
        self.policy._restore(dict(cache.get("policy", {})))
        if self._listener is not None:
            self._believer()._restore(dict(cache.get("belief", {})))

    def __repr__(self) -> str:
        return f"RobustReport({self.policy!r}, {self.perturbation!r})"
