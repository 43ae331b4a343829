"""Policies that believe in a Gaussian process.

:class:`ModelPolicy` keeps the belief in step with the data: when ``ask`` is due for a refit (``gp.every``) it fits, and
between fits it appends observations one by one. A fit is a pure function of the data and the seed, and the count at
which it was made follows from the events alone, so a rebuilt policy factorizes where the live one did.

Points that are pending, and points that failed, are *hallucinated* while a point is chosen: measured at their posterior
mean, which shrinks the uncertainty around them and leaves the mean alone. They never enter the belief itself. Where the
belief says that measurements are noisy, that is all: a rule may choose a pending point again. Where it says that they
are exact (:attr:`ModelPolicy.spares_pending`), pending points are left out.

A subclass gives an :class:`Acquisition`, a function of posterior mean and standard deviation, or overrides
:meth:`ModelPolicy._rule`.
"""

from __future__ import annotations

import contextlib
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, ClassVar, Protocol, Unpack, cast

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from surefoot.arguments import not_negative, open_unit, whole
from surefoot.belief.gp import GP
from surefoot.belief.grid import GridPosterior
from surefoot.belief.posterior import Posterior
from surefoot.domain import Candidates, Domain, Paths
from surefoot.domain.ranking import argmax
from surefoot.domain.search import Score, maximize
from surefoot.errors import NotSupported
from surefoot.loop.policy import Options, Policy, Proposal
from surefoot.loop.types import Recommendation
from surefoot.loop.widths import Width

__all__ = ["Acquisition", "ModelOptions", "ModelPolicy", "PosteriorScore"]

Array = NDArray[np.float64]

# Noise variances, as shares of the signal's, up to which measurements count as exact. A given one is taken at its word,
# down to what factorizing may add by itself. A fitted one so small is no evidence of noise: the prior of the automatic
# belief alone says 1e-4, and data without noise take it further down.
GIVEN_EXACT, FITTED_EXACT = 1e-6, 1e-3


class ModelOptions(Options, total=False):
    """Keyword arguments that every model-based policy takes, besides :class:`Options`.

    ``gp`` is used as it is (your units, no refit unless it says so); None means ``GP.automatic(domain)``. ``initial``
    is the number of Sobol points before the rule takes over: 0 with a given ``gp``, else max(3, d + 1); points told
    unasked count. ``confidence`` is that of the reported bounds, and of the policy's width where it has one.

    >>> options: ModelOptions = {"initial": 5, "confidence": 0.9}
    """

    gp: GP | None
    initial: int | None
    confidence: float


class Acquisition(Protocol):
    """A score of a point that depends on its posterior mean and standard deviation only.

    >>> from surefoot.policy.ucb.gp_ucb import UpperBound
    >>> score: Acquisition = UpperBound(2.0)
    >>> score.value(np.array([1.0]), np.array([0.5]))
    array([2.])
    """

    def value(self, mean: Array, std: Array) -> Array:
        """Return the scores, shape (m,)."""

    def slopes(self, mean: Array, std: Array) -> tuple[Array, Array, Array]:
        """Return the scores and their derivatives in mean and standard deviation."""


class PosteriorScore:
    """An acquisition over encoded points, with its gradient.

    >>> from surefoot.policy.ucb.gp_ucb import UpperBound
    >>> score = PosteriorScore(GP().condition(np.zeros((1, 1)), np.ones(1)), UpperBound(2.0))
    >>> score(np.array([[0.0], [50.0]])).round(3)
    array([1.002, 2.   ])
    """

    def __init__(self, posterior: Posterior, acquisition: Acquisition) -> None:
        self.posterior, self.acquisition = posterior, acquisition

    def __call__(self, E: Array) -> Array:
        return self.acquisition.value(*self.posterior.predict(E))

    def gradient(self, E: Array) -> tuple[Array, Array]:
        """Return scores (m,) and gradients (m, e)."""
        mean, std, mean_gradient, std_gradient = self.posterior.gradient(E)
        value, by_mean, by_std = self.acquisition.slopes(mean, std)
        return value, by_mean[:, None] * mean_gradient + by_std[:, None] * std_gradient


class ModelPolicy(Policy):
    """Base of the policies that choose by a Gaussian process.

    Parameters
    ----------
    domain : Domain
        Where points may lie.
    gp : GP, optional
        The belief; None fits one automatically.
    initial : int, optional
        Sobol points before the rule takes over.
    confidence : float
        Confidence of the recommendation's bounds.

    >>> from surefoot import Box
    >>> from surefoot.policy.ucb.gp_ucb import UpperBound
    >>> class Mean(ModelPolicy):
    ...     "Measures where the mean is highest: a rule too greedy for anything but an example."
    ...     def _acquisition(self, belief, step):
    ...         return UpperBound(0.0)
    >>> policy = Mean(Box([(0.0, 1.0)]), seed=0)
    >>> policy.initial
    3
    """

    valued: ClassVar[tuple[str, ...]] = ("gp",)

    def __init__(
        self,
        domain: Domain,
        *,
        gp: GP | None = None,
        initial: int | None = None,
        confidence: float = 0.95,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(domain, **options)
        if gp is not None and not isinstance(gp, GP):
            raise TypeError(f"gp must be a GP, for example GP(SE(0.2), noise=1e-4); got {gp!r}")
        few = max(3, domain.dimension + 1) if gp is None else 0
        self.initial = few if initial is None else whole(initial, "initial")
        self.confidence = open_unit(confidence, "confidence")
        self.gp = GP.automatic(domain) if gp is None else gp
        self._fit_at: int | None = None  # number of observations at the last fit that an ask made
        self._scanned = 0  # events already accounted for in _fit_at
        self._measured = 0
        self._fits: dict[int, GP] = {}
        self._belief: Posterior | GridPosterior | None = None
        self._belief_at: int | None = None
        self._design: Array | None = None

    # -- choosing ----------------------------------------------------------------------------------------------------

    @abstractmethod
    def _acquisition(self, belief: Posterior | GridPosterior, step: int) -> Acquisition:
        """Return the score to maximize, given the belief with pending points hallucinated."""

    def _round(self) -> int:
        """The number t ≥ 1 of the next measurement, pending ones counted."""
        return len(self._observations) + len(self._pending) + 1

    def _prior_std(self, gp: GP) -> float:
        """The standard deviation of the prior, at a corner of the domain."""
        std: float = float(gp.kernel.diag(self.domain.lower[None])[0]) ** 0.5
        return std

    def _deviations(self, width: Width, count: int, belief: Posterior | GridPosterior) -> float:
        """How many standard deviations a width reaches in round ``count``, given what the belief knows."""
        value = width(count, size=self.domain.size, dimension=self.domain.dimension, gain=belief.information_gain)
        return not_negative(value, f"the width in round {count}")

    def _choose(self, step: int, context: Mapping[str, Any]) -> Proposal:
        if isinstance(self.domain, Paths):
            return self._next_move(step)
        return self._initial_choice(step) or self._rule(step, context)

    def _next_move(self, step: int) -> Proposal:
        """The start, if it is to be measured; a random move while too little is known; else the rule's."""
        journey = self.journey
        if not journey.begun:
            return Proposal(stops=[journey.place], note={"start": True, "initial": True})
        moves = journey.options()
        values = [value for o in self._observations for _, value in o.stops()]
        if len(values) < self.initial or (self.initial > 0 and all(value is None for value in values)):
            rank = int(self.stream("initial", step).integers(len(moves)))
            return Proposal(stops=moves[rank], note={"initial": True})
        return self._move(moves, step)

    def _move(self, moves: NDArray[np.intp], step: int) -> Proposal:
        """Choose one of the moves (A, k) from where the vehicle stands; a policy that declares ``Paths`` has a rule."""
        raise NotSupported(f"{type(self).__name__} has no rule for moves")

    def _rule(self, step: int, context: Mapping[str, Any]) -> Proposal:
        with self._hallucinated() as belief:
            acquisition = self._acquisition(belief, step)
            if isinstance(self.domain, Candidates):
                return self._best_candidate(acquisition.value(*self._everywhere(belief)), step)
            posterior = cast(Posterior, belief)
            return self._best_point(PosteriorScore(posterior, acquisition), posterior, step)

    def _everywhere(self, belief: Posterior | GridPosterior) -> tuple[Array, Array]:
        """Mean and standard deviation at all candidates."""
        if isinstance(belief, GridPosterior):
            return belief.mean, belief.std
        return belief.predict(self._seen(self.domain.points))  # type: ignore[attr-defined]

    def _best_candidate(self, values: Array, step: int) -> Proposal:
        return Proposal(index=argmax(values, rng=self.stream("ties", step), exclude=self._excluded_rows()))

    def _best_point(self, score: Score, belief: Posterior, step: int) -> Proposal:
        x, _ = maximize(
            score,
            self.domain,
            rng=self.stream("maximize", step),
            seeds=self._incumbents(belief),
            exclude=self._excluded_points(),
        )
        return Proposal(x)

    def _incumbents(self, belief: Posterior, count: int = 3) -> Array | None:
        """The measured points of highest posterior mean: good places to start a search."""
        X, _, _ = self._data()
        if not len(X):
            return None
        return X[np.argsort(-belief.mean(self._seen(X)), kind="stable")[:count]]

    def _initial_choice(self, step: int) -> Proposal | None:
        """A design point while there are too few measurements, or none that succeeded."""
        known = len(self._observations) + len(self._pending)
        nothing = self.initial > 0 and all(o.failed for o in self._observations)
        if known >= self.initial and not nothing:
            return None
        # As much of the design as is needed now: a longer one begins in the same way.
        wanted = min(max(self.initial, 16), max(1024, 2 << step.bit_length()))
        if self._design is None or len(self._design) < wanted:
            self._design = self.domain.design(wanted, self.stream("initial"))
        blocked = {x.tobytes() for x, _ in self._blocked(sparing=True)}
        later = self.domain.sample(64, self.stream("initial", step + 1))
        for x in [*self._design[step:], *later]:
            if x.tobytes() not in blocked:
                return Proposal(x, note={"initial": True})
        return None  # a tiny domain, nearly all of it taken: the rule finds what is left

    # -- believing ---------------------------------------------------------------------------------------------------

    @property
    def spares_pending(self) -> bool:
        """Whether a point that is pending is not asked for a second time while another is left.

        It is with ``repeats=False``, and where the belief takes measurements to be exact: a given ``gp`` whose noise
        variance is 0 or at most a millionth of the signal's, which is rounding, and a fitted one at a thousandth.

        >>> from surefoot import GPUCB, Candidates
        >>> [GPUCB(Candidates([0.0, 1.0]), gp=GP(noise=noise)).spares_pending for noise in (0.0, 0.01)]
        [True, False]
        """
        if not self.repeats:
            return True
        gp = self._fit(self._due(self._successes()))
        members = gp.members or (gp,)
        noise = float(np.mean([self._noisiest(member) for member in members]))
        share = GIVEN_EXACT if self.gp.every is None else FITTED_EXACT
        return noise <= share * float(np.mean([self._signal(member) for member in members]))

    def _noisiest(self, gp: GP) -> float:
        """The largest variance that measurements may have under a belief."""
        return gp.noise

    def _signal(self, gp: GP) -> float:
        """The largest prior variance of a belief, at two corners of the domain."""
        corners = self.domain.decode(np.stack([self.domain.lower, self.domain.upper]))
        return float(gp.kernel.diag(self._seen(corners)).max())

    def posterior(self) -> Posterior:
        """Return the belief given all measurements, over encoded points; refitted if a refit is due.

        It is about what the rule maximizes: −f for a policy that minimizes. It is the caller's own: appending to it
        does not change what the policy believes.
        """
        if self._over_all_candidates(self.gp):
            X, y, noise = self._encoded()
            return self._fit(self._due(self._successes())).condition(X, y, noise)
        return cast(Posterior, self._believe()).copy()

    @property
    def surrogate(self) -> Any:
        """What :mod:`surefoot.policy.plausible` reads of a belief."""
        return SimpleNamespace(rows=SimpleNamespace(data=self._encoded))

    def _over_all_candidates(self, gp: GP) -> bool:
        """Whether the belief is kept at all candidates at once; a mixture of hyper-parameters has no such form."""
        return isinstance(self.domain, Candidates) and not (gp.members or gp.samples)

    def _seen(self, X: Array) -> Array:
        """What the belief sees of points (n, d) that could be measured."""
        return self.domain.encode(X)

    def _span(self, runs: int) -> int:
        """How many rows of :meth:`_encoded` the first successful measurements fill: one each, or one for each stop."""
        if not isinstance(self.domain, Paths):
            return runs
        good = [o for o in self._observations if not o.failed][:runs]
        return sum(value is not None for o in good for _, value in o.stops())

    def _successes(self) -> int:
        return sum(not o.failed for o in self._observations)

    def _encoded(self) -> tuple[Array, Array, Array | None]:
        X, y, noise = self._data()
        return self.domain.encode(X), y, None if np.isnan(noise).all() else noise

    def _due(self, n: int) -> int | None:
        """The observation count of the fit to use now: n if one is due, else that of the last fit an ask made."""
        for event in self._events[self._scanned :]:
            if event["event"] == "told" and event["value"] is not None:
                self._measured += 1
            by_rule = event["event"] == "asked" and "initial" not in event.get("note", {})
            if by_rule and self.gp.due(self._measured, self._fit_at):
                self._fit_at = self._measured
        self._scanned = len(self._events)
        return n if n and self.gp.due(n, self._fit_at) else self._fit_at

    def _fit(self, at: int | None) -> GP:
        if at is None:
            return self.gp
        if at not in self._fits:
            X, y, noise = self._encoded()
            end = self._span(at)
            fitted = self.gp.fit(X[:end], y[:end], None if noise is None else noise[:end], rng=self.stream("fit", at))
            self._fits = {**{key: gp for key, gp in self._fits.items() if key == self._fit_at}, at: fitted}
        return self._fits[at]

    def _believe(self) -> Posterior | GridPosterior:
        """Return the belief over encoded points (all candidates at once on ``Candidates``), in step with the data."""
        X, y, noise = self._encoded()
        at = self._due(self._successes())
        belief, start = self._belief, self._span(at or 0)
        if belief is None or self._belief_at != at or belief.n > len(y):
            gp = self._fit(at)
            first = None if noise is None else noise[:start]
            if self._over_all_candidates(gp):
                belief = GridPosterior.condition(gp, self._everything(), self._rows()[:start], y[:start], first)
            else:
                belief = gp.condition(X[:start], y[:start], first)
        for i in range(belief.n, len(y)):
            own = None if noise is None else noise[i]
            if isinstance(belief, GridPosterior):
                belief.append(self._rows()[i], y[i], own)
            else:
                belief.append(X[i], y[i], own)
        self._belief, self._belief_at = belief, at
        return belief

    def _everything(self) -> Any:
        """All candidates as the belief keeps them: a NumPy array, or a tensor for a policy that works on a device."""
        return cast(Candidates, self.domain).points

    def _rows(self) -> NDArray[np.intp]:
        return np.array([o.index for o in self._observations if not o.failed], dtype=np.intp)

    def _unknown(self) -> list[tuple[Array, int | None]]:
        """Points, with their candidate index, that were asked for and whose value is not known: pending or failed."""
        if isinstance(self.domain, Paths):
            stops = [x for query in self._pending.values() for x in query.x]
            stops += [x for o in self._observations for x, value in o.stops() if value is None]
            return [(x, None) for x in stops]
        failed = [(o.x, o.index) for o in self._failures()]
        return [(query.x, query.index) for query in self._pending.values()] + failed

    def _unknown_noise(self) -> Sequence[float | None]:
        """The noise variance of each of :meth:`_unknown`; None is that of the belief."""
        return [None] * len(self._unknown())

    @contextlib.contextmanager
    def _hallucinated(self) -> Iterator[Posterior | GridPosterior]:
        """The belief as if pending and failed points had been measured at their mean; undone bit for bit afterwards."""
        belief = self._believe()
        done = 0
        try:
            for (x, index), noise in zip(self._unknown(), self._unknown_noise(), strict=True):
                if isinstance(belief, GridPosterior):
                    belief.hallucinate(cast(int, index), noise)
                else:
                    point = self._seen(x[None])
                    belief.append(point[0], float(belief.mean(point)[0]), noise)
                done += 1
            yield belief
        finally:
            for _ in range(done):
                belief.release() if isinstance(belief, GridPosterior) else belief.pop()

    # -- answering ---------------------------------------------------------------------------------------------------

    def _recommend(self) -> Recommendation:
        return self._most_promising(self._data()[0], "highest posterior mean among measured points")

    def _most_promising(self, X: Array, rule: str) -> Recommendation:
        """The point of X (n, d) with the highest posterior mean."""
        mean, std = self.posterior().predict(self._seen(X))
        best = int(np.argmax(mean))
        half = float(ndtri(0.5 + 0.5 * self.confidence) * std[best])
        return self._recommendation(
            X[best],
            mean=float(mean[best]),
            lower=float(mean[best]) - half,
            upper=float(mean[best]) + half,
            rule=rule,
        )

    def _cache(self) -> dict[str, Any]:
        at = self._due(0)
        return {"fits": [[at, self._fits[at].to_dict()]]} if at is not None and at in self._fits else {}

    def _restore(self, cache: dict[str, Any]) -> None:
        self._fits = {int(at): GP.from_dict(data) for at, data in cache.get("fits", [])}
