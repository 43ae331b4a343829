"""Runs that last many epochs: a Gaussian process over [x, epoch], and GP-UCB at the last epoch.

A run of a configuration x emits a score after each of up to N epochs. :class:`EpochPolicy` believes in one Gaussian
process over z = [encode(x), s(n)], where s maps the epoch to [0, 1]: s(n) = n/N, or log n / log N. It measures where
the upper confidence bound *at the last epoch* is highest, and learns from a closed run its last value, at the epoch
where the run ended, and a few values on the way there.

This is what the policies share that abandon runs (:mod:`surefoot.policy.epochs.bo_bos`) or choose their length. On its
own it never stops a run. :class:`Runs` is the part that does without a belief.

Cost of one ask: as :mod:`surefoot.policy.ucb.gp_ucb` with all rows of all runs, up to six per run; on candidates O(n²
M), since the rows do not lie on the candidates.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, Unpack, cast

import numpy as np
from numpy.typing import NDArray

from surefoot.arguments import one_of, whole
from surefoot.belief.gp import GP
from surefoot.belief.kernels import Stationary, kernel_from_dict
from surefoot.belief.posterior import Posterior
from surefoot.belief.priors import LogNormal
from surefoot.domain import Box, Candidates, Domain, Space
from surefoot.domain.search import Score
from surefoot.loop.policy import Policy, Proposal
from surefoot.loop.types import Advice, Observation, Query, Recommendation
from surefoot.loop.widths import Width
from surefoot.policy.base import ModelOptions, PosteriorScore
from surefoot.policy.ucb.gp_ucb import GPUCB

__all__ = ["AtEpoch", "EpochPolicy", "Runs", "automatic_over_epochs", "intermediate_epochs"]

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


class AtEpoch:
    """A posterior over [x, epoch] seen as a function of x alone, at one epoch.

    >>> from surefoot.belief.kernels import SE
    >>> posterior = GP(SE(), noise=1e-4).condition([[0.0, 1.0]], [3.0])
    >>> AtEpoch(posterior, 1.0).predict(np.array([[0.0]]))[0].round(2)
    array([3.])
    """

    def __init__(self, posterior: Posterior, epoch: float) -> None:
        self.posterior, self.epoch = posterior, epoch

    def predict(self, E: Array) -> tuple[Array, Array]:
        """Return mean and standard deviation at encoded points E (m, e)."""
        return self.posterior.predict(_with_epoch(E, self.epoch))

    def gradient(self, E: Array) -> tuple[Array, Array, Array, Array]:
        """Return mean and standard deviation (m,), and their gradients in x, (m, e) each."""
        mean, std, mean_gradient, std_gradient = self.posterior.gradient(_with_epoch(E, self.epoch))
        return mean, std, mean_gradient[:, :-1], std_gradient[:, :-1]


class Runs(Policy):
    """Policies whose runs report a score after each epoch: put it before the class that chooses.

    Everything here is derived from the events, and says what was known *when an epoch was reported*, so that advice
    does not depend on when, or by which process, it is asked for.

    Parameters
    ----------
    domain : Domain
        Where configurations may lie.
    epochs : int
        N, the length of a complete run. Epochs are counted from 1; a report of step 0 is kept and not used.

    >>> from surefoot import Box, RandomSearch
    >>> class Patient(Runs, RandomSearch):
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
        self.epochs = whole(epochs, "epochs", 1)
        self._read = self._closed = 0  # events that _when was derived from, and those among them that closed a run
        self._when: dict[tuple[int, int], tuple[int, int]] = {}

    def report(self, query: Query | int, step: int, value: float | None) -> Advice:
        """Report the score after epoch ``step`` of a run and get advice; None or NaN: the run has diverged."""
        self._check_step(step)
        return super().report(query, step, value)

    def _check_step(self, step: int) -> None:
        if isinstance(step, (int, np.integer)) and step > self.epochs:
            raise ValueError(f"step {step} lies beyond the last epoch, {self.epochs}")

    def _advise(self, query: Query, step: int, value: float | None) -> Advice:
        if value is None:
            return Advice(True, "diverged: the score is not a number", 0.0, float(self.epochs - step))
        if query.fidelity is not None and self.epochs > step >= query.fidelity:
            return Advice(True, f"the run was asked for {query.fidelity} epochs", None, float(self.epochs - step))
        return Advice(False, "the run goes on to the epoch it was asked for", None, 0.0)

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
        curve: Array = np.array([self._facing(score) for score in self._scores(query, until)])
        return curve

    def _scores(self, query: Query | int, until: int | None = None) -> Array:
        """The same as the rule sees it."""
        reports = self._reports.get(query.id if isinstance(query, Query) else query, {})
        known = [(n, v) for n, v in reports.items() if v is not None and n >= 1 and (until is None or n <= until)]
        if not known:
            return np.empty(0)
        at, values = np.array(sorted(known)).T
        curve: Array = np.interp(np.arange(1, int(at[-1]) + 1), at, values)
        return curve

    def length(self, query: Query | int) -> int:
        """Return how many epochs a run has lasted so far; a run told without reports lasted to its end.

        >>> from surefoot import Box
        >>> policy = EpochPolicy(Box([(0.0, 1.0)]), epochs=10, seed=0)
        >>> query = policy.ask()
        >>> policy.length(query)
        0
        """
        known = self._find(query)
        reports = self._reports.get(known.id)
        if reports:
            return max(reports)
        return (known.fidelity or self.epochs) if known.id in self._told else 0

    @property
    def epochs_used(self) -> int:
        """Epochs of all runs asked for so far, those under way included; a resumed run pays for its own epochs only."""
        lengths = [self.length(query) for query in self._queries]
        resumed = [int(query.note["resume"]) for query in self._queries if "resume" in query.note and lengths[query.id]]
        return sum(lengths) - sum(lengths[id] for id in resumed)

    def _known_at(self, id: int, step: int) -> tuple[int, int]:
        """How many events there were when an epoch was reported, and how many runs had been closed."""
        for number in range(self._read, len(self._events)):
            event = self._events[number]
            self._closed += event["event"] == "told"
            if event["event"] == "reported":
                self._when[event["id"], event["step"]] = (number + 1, self._closed)
        self._read = len(self._events)
        return self._when[id, step]

    def _closed_before(self, id: int, step: int) -> list[Observation]:
        """Return the successful runs that had been closed when an epoch of another was reported."""
        return [o for o in self._observations[: self._known_at(id, step)[1]] if not o.failed]

    def _bar(self, id: int, step: int) -> float | None:
        """The best score of a run closed before an epoch of another was reported."""
        return max((cast(float, o.value) for o in self._closed_before(id, step)), default=None)


class EpochPolicy(Runs, GPUCB):
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
        super().__init__(domain, epochs=epochs, width=width, **options)
        if options.get("gp") is None:
            self.gp = automatic_over_epochs(domain)
        self.scale = one_of(scale, "scale", ("linear", "log"))
        if intermediate is not None and not isinstance(intermediate, (Sequence, np.ndarray)):
            raise TypeError(f"intermediate must be a sequence of epochs, got {intermediate!r}")
        wanted = intermediate_epochs(self.epochs) if intermediate is None else tuple(intermediate)
        self.intermediate = tuple(sorted({whole(n, "an intermediate epoch", 1) for n in wanted if n != self.epochs}))
        if self.intermediate and self.intermediate[-1] > self.epochs:
            raise ValueError(f"intermediate epochs lie in 1..{self.epochs}, got {self.intermediate[-1]}")
        self._run_points: list[Array] = []  # one row per score the belief knows
        self._run_values: list[float] = []
        self._run_noises: list[float] = []
        self._ends = [0]  # rows of the first 0, 1, 2, ... successful runs
        self._collected = 0

    # -- believing ---------------------------------------------------------------------------------------------------

    def coordinate(self, epoch: float | NDArray[Any]) -> Any:
        """Return how the belief sees an epoch, 1 for the last one.

        >>> from surefoot import Box
        >>> EpochPolicy(Box([(0.0, 1.0)]), epochs=50, seed=0).coordinate(10)
        0.2
        """
        if self.scale == "log" and self.epochs > 1:
            return np.log(np.maximum(epoch, 1.0)) / math.log(self.epochs)
        return epoch / self.epochs

    def _seen(self, X: Array) -> Array:
        return _with_epoch(self.domain.encode(X), 1.0)

    def _over_all_candidates(self, gp: GP) -> bool:
        return False  # the rows of the data lie at other epochs than the candidates

    def _span(self, runs: int) -> int:
        self._collect()
        return self._ends[runs]

    def _encoded(self) -> tuple[Array, Array, Array | None]:
        self._collect()
        noise = np.array(self._run_noises)
        X = np.array(self._run_points).reshape(-1, self.domain.encoded_dimension + 1)
        return X, np.array(self._run_values), None if np.isnan(noise).all() else noise

    def _collect(self) -> None:
        """Append the rows of the runs that were closed since the last call."""
        for observation in self._observations[self._collected :]:
            if not observation.failed:
                self._append_rows(observation)
                self._ends.append(len(self._run_values))
        self._collected = len(self._observations)

    def _append_rows(self, run: Observation) -> None:
        reports = {} if run.id is None else self._reports.get(run.id, {})
        last = self.epochs if run.id is None else max(1, self.length(run.id))
        known = [(n, reports[n]) for n in self.intermediate if n < last and reports.get(n) is not None]
        encoded = self.domain.encode(run.x[None])[0]
        noise = np.nan if run.outcome.noise is None else run.outcome.noise
        for epoch, value in [*known, (last, self._value_of(run, last))]:
            self._run_points.append(np.append(encoded, self.coordinate(epoch)))
            self._run_values.append(cast(float, value))
            self._run_noises.append(noise)

    def _value_of(self, run: Observation, last: int) -> float:
        """What a closed run says about its last epoch."""
        return cast(float, run.value)

    # -- choosing and answering --------------------------------------------------------------------------------------

    def _best_point(self, score: Score, belief: Posterior, step: int) -> Proposal:
        at_end = cast(Posterior, AtEpoch(belief, 1.0))
        return super()._best_point(PosteriorScore(at_end, cast(PosteriorScore, score).acquisition), belief, step)

    def _recommend(self) -> Recommendation:
        """Prefer completed runs: of the others the last score is a guess."""
        good = [o for o in self._observations if not o.failed]
        complete = [o for o in good if o.id is None or self.length(o.id) >= self.epochs]
        which = "completed" if complete else "measured"
        X = np.array([o.x for o in complete or good])
        return self._most_promising(X, f"highest posterior mean at the last epoch among {which} runs")


def _with_epoch(E: Array, epoch: float) -> Array:
    return np.column_stack([E, np.full(len(E), epoch)])
