"""Runs that last many epochs: a Gaussian process over [x, epoch], and GP-UCB at the last epoch.

A run of a configuration x emits a score after each of up to N epochs. :class:`EpochPolicy` believes in one Gaussian
process over z = [encode(x), s(n)], where s maps the epoch to [0, 1]: s(n) = n/N, or log n / log N. It measures where
the upper confidence bound *at the last epoch* is highest, and learns from a closed run its last value, at the epoch
where the run ended, and a few values on the way there.

These are the parts that policies share which abandon runs (:mod:`surefoot.policy.epochs.bo_bos`) or choose their
length: :class:`Runs` tells what was known at each epoch, :class:`RunRows` what the belief sees of the runs, an
:class:`Adviser` when to stop. :class:`EpochPolicy` puts the first two together; on its own it never stops a run.

Cost of one ask: as :mod:`surefoot.policy.ucb.gp_ucb` with all rows of all runs, up to six per run; on candidates O(n²
M), since the rows do not lie on the candidates.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, Protocol, Unpack, cast

import numpy as np
from numpy.typing import NDArray

from surefoot.arguments import one_of, whole
from surefoot.belief.gp import GP
from surefoot.belief.kernels import Stationary, kernel_from_dict
from surefoot.belief.pinned import PinnedPosterior, with_column
from surefoot.belief.priors import LogNormal
from surefoot.belief.protocol import Belief
from surefoot.domain import Box, Candidates, Domain, Space
from surefoot.loop.policy import Policy
from surefoot.loop.trials import Trials
from surefoot.loop.types import Advice, Observation, Query, Recommendation
from surefoot.loop.widths import Width, given_or, usual
from surefoot.policy.base import ModelOptions, ModelPolicy
from surefoot.policy.surrogate import Data, Rows, Surrogate
from surefoot.policy.ucb.gp_ucb import UpperConfidence

__all__ = [
    "Adviser",
    "EpochPolicy",
    "RunPolicy",
    "RunRows",
    "Runs",
    "automatic_over_epochs",
    "intermediate_epochs",
]

Array = NDArray[np.float64]


def automatic_over_epochs(domain: Domain, *, kernel: Stationary | None = None) -> GP:
    """Return ``GP.automatic(domain)`` with one more coordinate, the epoch in [0, 1].

    The length-scale of the epoch is expected to be of the order of the whole run: a score says much about the scores
    soon after it.

    >>> from surefoot import Box
    >>> automatic_over_epochs(Box([(0.0, 5.0)])).kernel.lengthscale.shape
    (2,)
    """
    gp = GP.automatic(domain, kernel=kernel)
    length = LogNormal.around(1.0, 0.7)
    data = gp.kernel.to_dict()
    longer = kernel_from_dict({**data, "lengthscale": [*data["lengthscale"], length.mode]})
    name = f"lengthscale[{len(data['lengthscale'])}]"
    return replace(gp, kernel=longer, priors={**(gp.priors or {}), name: length})


def intermediate_epochs(epochs: int, count: int = 5) -> tuple[int, ...]:
    """Return the epochs on the way of a run that a belief learns from: the first, then evenly spaced ones.

    For 50 and 100 epochs these are the published ones (Dai et al. 2019, appendix).

    >>> intermediate_epochs(50), intermediate_epochs(100)
    ((1, 10, 20, 30, 40), (1, 20, 40, 60, 80))
    """
    spaced = [round(i * epochs / count) for i in range(1, count)]
    return tuple(dict.fromkeys(n for n in (1, *spaced) if 1 <= n < epochs))


class Adviser(Protocol):
    """When to stop a run."""

    def advise(self, query: Query, step: int, value: float | None, /) -> Advice:
        """Judge a run by its score after epoch ``step``; None: it has diverged."""


class Runs:
    """What is known of runs that report a score after each epoch.

    Everything here is derived from the events, and says what was known *when an epoch was reported*, so that advice
    does not depend on when, or by which process, it is asked for.

    Parameters
    ----------
    trials : Trials
        What was asked, reported and told.
    epochs : int
        N, the length of a complete run. Epochs are counted from 1; a report of step 0 is kept and not used.

    >>> from surefoot import Box, RandomSearch
    >>> policy = RandomSearch(Box([(0.0, 1.0)]), seed=0)
    >>> query, runs = policy.ask(), Runs(policy.trials, 10)
    >>> policy.tell(query, 0.5)
    >>> runs.length(query), runs.used
    (10, 10)
    """

    def __init__(self, trials: Trials, epochs: int) -> None:
        self.trials, self.epochs = trials, whole(epochs, "epochs", 1)
        self._read = self._closed = 0  # events that _when was derived from, and those among them that closed a run
        self._when: dict[tuple[int, int], tuple[int, int]] = {}

    def check(self, step: int) -> None:
        """Refuse an epoch after the last one."""
        if step > self.epochs:
            raise ValueError(f"step {step} lies beyond the last epoch, {self.epochs}")

    def advise(self, query: Query, step: int, value: float | None) -> Advice:
        """Let a run go on to the epoch it was asked for, unless it has diverged."""
        if value is None:
            return Advice(True, "diverged: the score is not a number", 0.0, float(self.epochs - step))
        if query.fidelity is not None and self.epochs > step >= query.fidelity:
            return Advice(True, f"the run was asked for {query.fidelity} epochs", None, float(self.epochs - step))
        return Advice(False, "the run goes on to the epoch it was asked for", None, 0.0)

    def scores(self, query: Query | int, until: int | None = None) -> Array:
        """Return the scores of epochs 1, ..., n of a run, n the last one reported (or ``until``), shape (n,).

        Epochs that were not reported are interpolated.
        """
        reports = self.trials.reports.get(query.id if isinstance(query, Query) else query, {})
        known = [(n, v) for n, v in reports.items() if v is not None and n >= 1 and (until is None or n <= until)]
        if not known:
            return np.empty(0)
        at, values = np.array(sorted(known)).T
        curve: Array = np.interp(np.arange(1, int(at[-1]) + 1), at, values)
        return curve

    def length(self, query: Query) -> int:
        """Return how many epochs a run has lasted so far; a run told without reports lasted to its end."""
        reports = self.trials.reports.get(query.id)
        if reports:
            return max(reports)
        return (query.fidelity or self.epochs) if query.id in self.trials.told else 0

    def length_of(self, run: Observation) -> int:
        """Return how many epochs a closed run has lasted; one that was not asked for lasted to its end."""
        return self.epochs if run.id is None else self.length(self.trials.queries[run.id])

    @property
    def used(self) -> int:
        """Epochs of all runs asked for so far, those under way included; a resumed run pays for its own epochs only."""
        queries = self.trials.queries
        lengths = [self.length(query) for query in queries]
        resumed = [int(query.note["resume"]) for query in queries if "resume" in query.note and lengths[query.id]]
        return sum(lengths) - sum(lengths[id] for id in resumed)

    def known_at(self, id: int, step: int) -> tuple[int, int]:
        """Return how many events there were when an epoch was reported, and how many runs had been closed."""
        events = self.trials.events
        for number in range(self._read, len(events)):
            event = events[number]
            self._closed += event["event"] == "told"
            if event["event"] == "reported":
                self._when[event["id"], event["step"]] = (number + 1, self._closed)
        self._read = len(events)
        return self._when[id, step]

    def closed_before(self, id: int, step: int) -> list[Observation]:
        """Return the successful runs that had been closed when an epoch of another was reported."""
        return [o for o in self.trials.observations[: self.known_at(id, step)[1]] if not o.failed]

    def bar(self, id: int, step: int) -> float | None:
        """Return the best score of a run closed before an epoch of another was reported, y*."""
        return max((cast(float, o.value) for o in self.closed_before(id, step)), default=None)

    def comparable(self) -> tuple[Array, str]:
        """Return the points of completed runs, or of all where there is none: of others the last score is a guess."""
        good = [o for o in self.trials.observations if not o.failed]
        complete = [o for o in good if self.length_of(o) >= self.epochs]
        return np.array([o.x for o in complete or good]), "completed" if complete else "measured"


class RunRows(Rows):
    """What a belief over [encode(x), epoch] sees of the runs: the last score of each, and a few on the way.

    Parameters
    ----------
    runs : Runs
        The runs.
    intermediate : sequence of int, optional
        Epochs whose scores enter the belief beside the last one; None: about five, see :func:`intermediate_epochs`.
    scale : {"linear", "log"}
        How the belief sees epoch n: as n/N, or as log n / log N.

    >>> from surefoot import Box, RandomSearch
    >>> trials = RandomSearch(Box([(0.0, 1.0)]), seed=0).trials
    >>> RunRows(Runs(trials, 50), (), "linear").encode(np.array([[0.5]]))
    array([[0.5, 1. ]])
    """

    listed = False  # the rows of the data lie at other epochs than the candidates

    def __init__(self, runs: Runs, intermediate: Sequence[int] | None, scale: str) -> None:
        super().__init__(runs.trials)
        self.runs, self.scale = runs, one_of(scale, "scale", ("linear", "log"))
        if intermediate is not None and not isinstance(intermediate, (Sequence, np.ndarray)):
            raise TypeError(f"intermediate must be a sequence of epochs, got {intermediate!r}")
        wanted = intermediate_epochs(runs.epochs) if intermediate is None else tuple(intermediate)
        self.intermediate = tuple(sorted({whole(n, "an intermediate epoch", 1) for n in wanted if n != runs.epochs}))
        if self.intermediate and self.intermediate[-1] > runs.epochs:
            raise ValueError(f"intermediate epochs lie in 1..{runs.epochs}, got {self.intermediate[-1]}")
        self._points: list[Array] = []  # one row per score the belief knows
        self._values: list[float] = []
        self._noises: list[float] = []
        self._ends = [0]  # rows of the first 0, 1, 2, ... successful runs
        self._collected = 0

    def coordinate(self, epoch: float | NDArray[Any]) -> Any:
        """Return how the belief sees an epoch, 1 for the last one."""
        if self.scale == "log" and self.runs.epochs > 1:
            return np.log(np.maximum(epoch, 1.0)) / math.log(self.runs.epochs)
        return epoch / self.runs.epochs

    def along(self, x: Array) -> Array:
        """Return what the belief sees of one configuration (d,) at epochs 1, ..., N, shape (N, e + 1)."""
        encoded = np.broadcast_to(self.domain.encode(x[None]), (self.runs.epochs, self.domain.encoded_dimension))
        return np.column_stack([encoded, self.coordinate(np.arange(1, self.runs.epochs + 1))])

    def encode(self, X: Array) -> Array:
        return with_column(self.domain.encode(X), 1.0)

    def facing(self, known: Any) -> Belief:
        return PinnedPosterior(known, 1.0)

    def span(self, runs: int) -> int:
        self._collect()
        return self._ends[runs]

    def data(self) -> Data:
        self._collect()
        noise = np.array(self._noises)
        X = np.array(self._points).reshape(-1, self.domain.encoded_dimension + 1)
        return X, np.array(self._values), None if np.isnan(noise).all() else noise

    def _collect(self) -> None:
        """Append the rows of the runs that were closed since the last call."""
        observations = self.trials.observations
        for observation in observations[self._collected :]:
            if not observation.failed:
                self._append(observation)
                self._ends.append(len(self._values))
        self._collected = len(observations)

    def _append(self, run: Observation) -> None:
        reports = {} if run.id is None else self.trials.reports.get(run.id, {})
        last = max(1, self.runs.length_of(run))
        # Algorithm 4.1, lines 10 and 11: z_t = [x_t, n_t] and y_t; on request some epochs on the way too.
        known = [(n, reports[n]) for n in self.intermediate if n < last and reports.get(n) is not None]
        encoded = self.domain.encode(run.x[None])[0]
        for epoch, value in [*known, (last, run.value)]:
            self._points.append(np.append(encoded, self.coordinate(epoch)))
            self._values.append(cast(float, value))
            self._noises.append(np.nan if run.outcome.noise is None else run.outcome.noise)


class RunPolicy(Policy):
    """A policy whose runs report a score after each epoch: put it before the class that chooses.

    Parameters
    ----------
    domain : Domain
        Where configurations may lie.
    epochs : int
        N, the length of a complete run.

    Attributes
    ----------
    runs : Runs
        What is known of them.
    adviser : Adviser
        When they are stopped; by default where they were asked to end.

    >>> from surefoot import Box, RandomSearch
    >>> class Patient(RunPolicy, RandomSearch):
    ...     "Random search that looks at every epoch and never stops."
    >>> policy = Patient(Box([(0.0, 1.0)]), epochs=3, seed=0)
    >>> policy.report(policy.ask(), 1, 0.5).stop
    False
    """

    domains: ClassVar[tuple[type[Domain], ...]] = (Box, Candidates, Space)
    steps = True
    epochs: int

    def __init__(self, domain: Domain, *, epochs: int, **options: Any) -> None:
        super().__init__(domain, **options)
        self.runs = Runs(self.trials, epochs)
        self.epochs = self.runs.epochs
        self.adviser: Adviser = self.runs

    def _check_report(self, step: int) -> None:
        self.runs.check(step)

    def _advise(self, query: Query, step: int, value: float | None) -> Advice:
        return self.adviser.advise(query, step, value)

    def scores(self, query: Query | int, until: int | None = None) -> Array:
        """Return the scores of epochs 1, ..., n of a run, n the last one reported (or ``until``), shape (n,).

        Epochs that were not reported are interpolated.

        >>> from surefoot import Box
        >>> policy = EpochPolicy(Box([(0.0, 1.0)]), epochs=10, seed=0)
        >>> query = policy.ask()
        >>> _ = policy.report(query, 2, 0.4), policy.report(query, 4, 0.6)
        >>> policy.scores(query)
        array([0.4, 0.4, 0.5, 0.6])
        """
        curve: Array = np.array([self.trials.facing(score) for score in self.runs.scores(query, until)])
        return curve

    def length(self, query: Query | int) -> int:
        """Return how many epochs a run has lasted so far; a run told without reports lasted to its end.

        >>> from surefoot import Box
        >>> policy = EpochPolicy(Box([(0.0, 1.0)]), epochs=10, seed=0)
        >>> query = policy.ask()
        >>> policy.length(query)
        0
        """
        return self.runs.length(self._find(query))

    @property
    def epochs_used(self) -> int:
        """Epochs of all runs asked for so far, those under way included; a resumed run pays for its own epochs only."""
        return self.runs.used


class EpochPolicy(RunPolicy, ModelPolicy):
    """GP-UCB for runs that report a score after each epoch; every run goes on to its last epoch.

    Parameters
    ----------
    domain : Box, Candidates or Space
        Where configurations may lie.
    epochs : int
        N, the length of a complete run.
    intermediate : sequence of int, optional
        Epochs whose scores enter the belief beside the last one; None: about five, see :func:`intermediate_epochs`.
    scale : {"linear", "log"}
        How the belief sees epoch n: as n/N, or as log n / log N, under which curves look alike all along.
    gp : GP, optional
        The belief over [encode(x), scaled epoch], one coordinate more than the domain; None fits one automatically.
    **options
        ``width``, ``initial``, ``confidence``, ``seed``, ``repeats``, ``journal``.

    >>> from surefoot import Box
    >>> policy = EpochPolicy(Box([(0.0, 1.0)]), epochs=4, seed=0)
    >>> query = policy.ask()
    >>> for epoch in range(1, 5):
    ...     advice = policy.report(query, epoch, 1.0 - query.x[0] / epoch)
    >>> policy.tell(query)
    >>> policy.posterior().n  # epochs 1, 2, 3 and 4
    4
    """

    width: Width

    def __init__(
        self,
        domain: Domain,
        *,
        epochs: int,
        intermediate: Sequence[int] | None = None,
        scale: str = "linear",
        width: Width | None = None,
        **options: Unpack[ModelOptions],
    ) -> None:
        super().__init__(domain, epochs=epochs, **options)
        self.rows = RunRows(self.runs, intermediate, scale)
        self.scale, self.intermediate = scale, self.rows.intermediate
        gp = self.gp if options.get("gp") is not None else automatic_over_epochs(domain)
        self.surrogate = Surrogate(self.trials, gp, self.stream, rows=self.rows)
        self.width = given_or(width, usual(domain.size, self.confidence))
        self.rule = UpperConfidence(self.width)

    def coordinate(self, epoch: float | NDArray[Any]) -> Any:
        """Return how the belief sees an epoch, 1 for the last one.

        >>> from surefoot import Box
        >>> EpochPolicy(Box([(0.0, 1.0)]), epochs=50, seed=0).coordinate(10)
        0.2
        """
        return self.rows.coordinate(epoch)

    def _recommend(self) -> Recommendation:
        X, which = self.runs.comparable()
        return self._most_promising(X, f"highest posterior mean at the last epoch among {which} runs")
