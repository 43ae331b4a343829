"""Surrogate: the belief of a policy, kept in step with its trials.

When a refit is due (``gp.every``) the surrogate fits; between fits it appends measurements one by one. A fit is a pure
function of the data and the seed, and the count at which it was made follows from the events alone, so that a rebuilt
policy factorizes where the live one did.

What the belief sees of the trials is a part of its own (:class:`Rows`: one row for each measurement), and so is how it
is fitted (:class:`Fitter`): runs of many epochs bring other rows, earlier tasks lend another fit.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot.belief.average import averaged
from surefoot.belief.gp import GP
from surefoot.belief.grid import GridPosterior
from surefoot.belief.listed import ListedPosterior
from surefoot.belief.posterior import Posterior
from surefoot.belief.protocol import Belief
from surefoot.errors import NotSupported
from surefoot.loop.device import placer
from surefoot.loop.trials import Place, Trials

__all__ = ["Data", "Fitter", "Rows", "Stream", "Surrogate", "imagined"]

Array = NDArray[np.float64]
Data = tuple[Array, Array, Array | None]
Stream = Callable[[str, int], np.random.Generator]

# Noise variances, as shares of the signal's, up to which measurements count as exact. A given one is taken at its word,
# down to what factorizing may add by itself. A fitted one so small is no evidence of noise: the prior of the automatic
# belief alone says 1e-4, and data without noise take it further down.
GIVEN_EXACT, FITTED_EXACT = 1e-6, 1e-3


class Fitter(Protocol):
    """How hyper-parameters are found: from data, and a generator that belongs to this fit."""

    def __call__(self, X: Array, y: Array, noise: Array | None, /, *, rng: np.random.Generator) -> GP:
        """Return a GP to condition on the data."""


class Rows:
    """What a belief sees of the trials: one row for each measurement, or for each measured stop of a move.

    >>> from surefoot import Box, RandomSearch
    >>> policy = RandomSearch(Box([(0.0, 1.0)]), seed=0)
    >>> policy.tell([0.5], 2.0)
    >>> Rows(policy.trials).data()
    (array([[0.5]]), array([2.]), None)
    """

    listed: bool = True
    """Whether the rows lie on the candidates, so that the belief can be kept at all of them at once."""

    def __init__(self, trials: Trials) -> None:
        self.trials, self.domain = trials, trials.domain

    def encode(self, X: Array) -> Array:
        """Return what the belief sees of points (n, d) that could be measured."""
        return self.domain.encode(X)

    def facing(self, known: Any) -> Belief:
        """Return the belief that rules ask: over points that could be measured."""
        return cast(Belief, known)

    def data(self) -> Data:
        """Return all rows (n, e), their values (n,), and their noises or None."""
        X, y, given = self.trials.data()
        noise = self.noises(given)
        return self.encode(X), y, None if np.isnan(noise).all() else noise

    def noises(self, given: Array) -> Array:
        """Return the noise variances of all measurements (n,), from those they brought; NaN is the belief's."""
        return given

    def unknown_noises(self) -> Sequence[float | None] | None:
        """Return the noise variance of each of :attr:`Trials.unknown`, of which None is the belief's; None: all."""
        return None

    def noisiest(self, gp: GP) -> float:
        """Return the largest variance that measurements may have under a belief."""
        return gp.noise

    def signal(self, gp: GP) -> float:
        """Return the largest prior variance of a belief, at two corners of the domain."""
        corners = self.domain.decode(np.stack([self.domain.lower, self.domain.upper]))
        return float(gp.kernel.diag(self.encode(corners)).max())

    def span(self, runs: int) -> int:
        """Return how many rows the first successful measurements fill."""
        return self.trials.span(runs)

    @property
    def successes(self) -> int:
        """How many measurements succeeded, forgotten ones included."""
        return self.trials.successes

    def places(self) -> Array:
        """Return the points (n, d) that were measured successfully and are not forgotten."""
        return self.trials.data()[0]

    def candidates(self) -> NDArray[np.intp]:
        """Return their rows in a list of candidates."""
        return self.trials.rows

    def fitted(self, at: int) -> Data:
        """Return the rows that hyper-parameters are fitted to, once ``at`` measurements succeeded."""
        (X, y, noise), end = self.data(), self.span(at)
        return X[:end], y[:end], None if noise is None else noise[:end]

    def begin(self, at: int | None) -> tuple[Hashable, int]:
        """Return a key that changes when a belief must be made anew, and with how many of the rows it begins.

        ``at`` is the measurement count of the fit in use. The other rows are appended one by one.
        """
        return at, self.span(at or 0)

    def waiting(self) -> list[Any]:
        """Return the points whose value is not known, pending or failed, as a belief names them."""
        return self.named(self.trials.unknown)

    def told(self, values: ArrayLike) -> Array:
        """Return values as people see them, from values as the belief sees them."""
        return np.asarray(values, dtype=np.float64)

    def in_units(self, posterior: Posterior) -> Posterior:
        """Return a belief in the units in which values were told."""
        return posterior

    @property
    def outliers(self) -> list[int]:
        """Rows whose values the belief in use does not believe."""
        return []

    def unconfirmed(self) -> Array | None:
        """Return a point (d,) that would be the best one if its value were believed, and was measured once; or None."""
        return None

    def named(self, places: Sequence[Place]) -> list[Any]:
        """Return points, given with their rows where listed, as a belief names them."""
        rows = [None if row is None else np.array([row]) for _, row in places]
        return [self.domain.address(x[None], row)[0] for (x, _), row in zip(places, rows, strict=True)]


class Surrogate:
    """What a policy believes about its objective.

    Parameters
    ----------
    trials : Trials
        What was measured.
    gp : GP
        The prior; ``gp.every`` says when it is fitted.
    stream : callable
        The policy's keyed streams.
    rows : Rows, optional
        What the belief sees of the trials.
    fitter : Fitter, optional
        How it is fitted; None: by ``gp.fit``.
    device : str, optional
        Where a belief over a list is kept: a torch device such as ``"cuda"``; None is NumPy.
    reported : GP, optional
        The prior whose average over hyper-parameters is reported; None: what is believed is reported.

    >>> from surefoot import GPUCB, Box
    >>> policy = GPUCB(Box([(0.0, 1.0)]), seed=0)
    >>> policy.surrogate.believe().n
    0
    """

    def __init__(
        self,
        trials: Trials,
        gp: GP,
        stream: Stream,
        *,
        rows: Rows | None = None,
        fitter: Fitter | None = None,
        device: str | None = None,
        reported: GP | None = None,
    ) -> None:
        if device is not None and not trials.domain.listed:
            raise NotSupported(f"a device is of use on Candidates only, not on {type(trials.domain).__name__}")
        self.trials, self.domain, self.gp, self.stream = trials, trials.domain, gp, stream
        self.rows = Rows(trials) if rows is None else rows
        self.fitter = fitter
        self.device = device
        self.reported = reported
        self._averaged: tuple[int, Posterior] | None = None  # the number of events, and what was found then
        self._placed: Any = None
        self._fit_at: int | None = None  # number of measurements at the last fit that an ask made
        self._scanned = 0  # events already accounted for in _fit_at
        self._measured = 0
        self._fits: dict[int, GP] = {}
        self._known: Any = None  # the belief over what it sees of points, or over all candidates
        self._known_by: Hashable = None

    # -- fitting -----------------------------------------------------------------------------------------------------

    def due(self, n: int) -> int | None:
        """Return the measurement count of the fit to use now: n if one is due, else that of the last an ask made."""
        for event in self.trials.events[self._scanned :]:
            if event["event"] == "told" and event["value"] is not None:
                self._measured += 1
            by_rule = event["event"] == "asked" and "initial" not in event.get("note", {})
            if by_rule and self.gp.due(self._measured, self._fit_at):
                self._fit_at = self._measured
        self._scanned = len(self.trials.events)
        return n if n and self.gp.due(n, self._fit_at) else self._fit_at

    def fit(self, at: int | None) -> GP:
        """Return the hyper-parameters found from the first ``at`` measurements; None: those of the prior."""
        if at is None:
            return self.gp
        if at not in self._fits:
            fitter = self.gp.fit if self.fitter is None else self.fitter
            found = fitter(*self.rows.fitted(at), rng=self.stream("fit", at))
            self._fits = {**{key: gp for key, gp in self._fits.items() if key == self._fit_at}, at: found}
        return self._fits[at]

    def now(self) -> GP:
        """Return the hyper-parameters in use."""
        return self.fit(self.due(self.rows.successes))

    @property
    def exact(self) -> bool:
        """Whether measurements count as exact, so that a second one at a point tells nothing.

        They do where a given ``gp`` has a noise variance of 0 or at most a millionth of the signal's, which is
        rounding, and a fitted one at most a thousandth.
        """
        gp = self.now()
        members = gp.members or (gp,)
        noise = float(np.mean([self.rows.noisiest(member) for member in members]))
        share = GIVEN_EXACT if self.gp.every is None else FITTED_EXACT
        return noise <= share * float(np.mean([self.rows.signal(member) for member in members]))

    # -- believing ---------------------------------------------------------------------------------------------------

    def believe(self) -> Belief:
        """Return the belief in step with the trials: over the rows of a list, or over encoded points."""
        X, y, noise = self.rows.data()
        at = self.due(self.rows.successes)
        known, (key, start) = self._known, self.rows.begin(at)
        if known is None or self._known_by != key or known.n > len(y):
            gp = self.fit(at)
            first = None if noise is None else noise[:start]
            if self.whole(gp):
                known = GridPosterior.condition(gp, self._places(), self.rows.candidates()[:start], y[:start], first)
            else:
                known = gp.condition(X[:start], y[:start], first)
        if known.n < len(y):
            named = self.rows.candidates() if self.whole(known.gp) else X
            for i in range(known.n, len(y)):
                known.append(named[i], y[i], None if noise is None else noise[i])
        self._known, self._known_by = known, key
        return known if self.whole(known.gp) else self.facing(known)

    def facing(self, posterior: Posterior) -> Belief:
        """Return a posterior over what it sees of points as rules ask it: over points as the domain names them."""
        if self.domain.listed:
            return ListedPosterior(posterior, self.rows.encode(self.domain.enumerate()))
        return self.rows.facing(posterior)

    def history(self, count: int) -> Iterator[Belief]:
        """Yield what the prior believes after the first 0, 1, ..., ``count`` rows: one belief that grows."""
        (X, y, noise), whole = self.rows.data(), self.whole(self.gp)
        named = self.rows.candidates() if whole else X
        known: Any = GridPosterior(self.gp, self._places()) if whole else self.gp.condition()
        for n in range(count + 1):
            if n:
                known.append(named[n - 1], y[n - 1], None if noise is None else noise[n - 1])
            yield known if whole else self.facing(known)

    def posterior(self) -> Posterior:
        """Return the belief over what it sees of points, refitted if a refit is due; the caller's own."""
        if self.whole(self.gp):
            X, y, noise = self.rows.data()
            return self.now().condition(X, y, noise)
        self.believe()
        return cast(Posterior, self._known.copy())

    def averaged(self) -> Posterior:
        """Return the belief that is reported, over what it sees of points; do not change it.

        It is the average over the hyper-parameters that the measurements allow
        (:mod:`surefoot.belief.average`), worked out when it is asked for first; with a given ``gp``, where
        measurements are not rows of one automatic belief, and where they are many, it is :meth:`posterior`.
        """
        many = self.gp.large is not None and len(self.trials.observations) > self.gp.large
        if self.reported is None or many or not self.rows.successes:
            return self.posterior()
        known = len(self.trials.events)
        if self._averaged is None or self._averaged[0] != known:
            self._averaged = (known, averaged(self.reported, *self.rows.data()))
        return self._averaged[1]

    def whole(self, gp: GP) -> bool:
        """Whether the belief is kept at all candidates at once; a mixture has no such form."""
        return self.domain.listed and self.rows.listed and not (gp.members or gp.samples)

    def _places(self) -> Any:
        """All candidates, where the belief is kept: brought there when they are needed first."""
        if self._placed is None:
            self._placed = placer(self.device)(self.domain.enumerate())
        return self._placed

    @contextlib.contextmanager
    def hallucinated(self, noises: Sequence[float | None] | None = None) -> Iterator[Belief]:
        """The belief as if pending and failed points had been measured at their mean; undone bit for bit afterwards.

        Parameters
        ----------
        noises : sequence of float or None, optional
            Noise variance of each of :meth:`Rows.waiting`, of which None is the belief's; None: those that the rows
            know.
        """
        noises = self.rows.unknown_noises() if noises is None else noises
        with imagined(self.believe(), self.rows.waiting(), noises) as belief:
            yield belief

    # -- keeping -----------------------------------------------------------------------------------------------------

    def cache(self) -> dict[str, Any]:
        """Return the fit in use, JSON-able."""
        at = self.due(0)
        return {"fits": [[at, self._fits[at].to_dict()]]} if at is not None and at in self._fits else {}

    def restore(self, cache: dict[str, Any]) -> None:
        """Take back what :meth:`cache` gave."""
        self._fits = {int(at): GP.from_dict(data) for at, data in cache.get("fits", [])}


@contextlib.contextmanager
def imagined(belief: Belief, points: Sequence[Any], noises: Sequence[float | None] | None = None) -> Iterator[Belief]:
    """The belief as if points, as it names them, had been measured at their mean; undone bit for bit afterwards.

    >>> belief = GP(noise=0.1).condition([[0.0]], [1.0])
    >>> with imagined(belief, [np.array([1.0])]):
    ...     print(belief.n)
    2
    >>> belief.n
    1
    """
    done = 0
    try:
        for at, noise in zip(points, noises or [None] * len(points), strict=True):
            belief.hallucinate(at, noise)
            done += 1
        yield belief
    finally:
        belief.undo(done)
