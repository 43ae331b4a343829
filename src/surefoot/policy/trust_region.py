"""TuRBO-1: Thompson sampling in a box around the best point, which grows with luck and shrinks without.

Question: where is the maximum of an expensive function of tens or hundreds of coordinates, or of one that may be
measured thousands of times? A belief about the whole domain explores its edges for ever; one about a region, from the
measurements of one run, is right where it matters.

Rule, the maximum of the run in the middle of a box with sides Lᵢ = λᵢ L / (Πⱼ λⱼ)^(1/d), in shares of the domain's:

* x_t = argmax f̃ over candidates in the box, f̃ a draw from the belief; a candidate moves each coordinate with
  probability min(1, 20/d), the others stay those of the middle;
* three batches in a row that improve on the best value double L; d measurements in a row without one halve it;
* a region smaller than L_min is given up: a new run begins with a design of its own and no memory.

Reference: Eriksson, Pearce, Gardner, Turner & Poloczek 2019, "Scalable global optimization via local Bayesian
optimization", section 2 and the supplement.

Guarantee: none; a local method with restarts. Authors' options: L from 0.8, between 2⁻⁷ and 1.6, τ_succ = 3, τ_fail =
⌈max(4, d)/q⌉ for batches of q, 2d design points, min(100 d, 5000) candidates, all of them the defaults. Differences:
draws are pathwise (Wilson et al. 2020) instead of exact joint ones; the priors of the hyper-parameters are those of the
automatic belief; an improvement counts when it exceeds a thousandth of the standard deviation of the run, not of the
best value, which would depend on where zero lies; with noise the middle is the highest posterior mean, and it is the
measured values that count.

Cost of one ask: one fit and one draw on the measurements of the run, O(n² + c (n + F)) for c candidates and F Fourier
features.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Unpack, cast

import numpy as np
from numpy.typing import NDArray

from surefoot.arguments import positive, whole
from surefoot.belief.gp import GP
from surefoot.belief.kernels import Kernel, Stationary
from surefoot.belief.paths import sample_path
from surefoot.belief.protocol import Belief
from surefoot.domain import Box, Domain
from surefoot.domain.design import unit_design
from surefoot.loop.trials import Trials
from surefoot.loop.types import Proposal, Recommendation
from surefoot.policy.base import ModelOptions, ModelPolicy
from surefoot.policy.search import first_free
from surefoot.policy.surrogate import Data, Rows, Surrogate
from surefoot.policy.thompson import check_drawable
from surefoot.policy.view import View

__all__ = ["LocalDraw", "LocalRegion", "TrustRegion"]

Array = NDArray[np.float64]

FEATURES = 1024  # of a draw
GAIN = 1e-3  # in standard deviations of the run: what counts as an improvement
COORDINATES = 20  # so many coordinates of a candidate move, on average


class LocalRegion:
    """The length of the box and the run it belongs to, which follow from the events.

    Parameters
    ----------
    trials : Trials
        What was asked and told. A query's note says its run, and the number at which its batch ends.
    length, shortest, longest : float
        L at the start of a run, L_min and L_max.
    successes, failures : int
        τ_succ, in batches, and τ_fail, in measurements.

    Attributes
    ----------
    run : int
        The number of the run, from 0.
    length : float
        L.
    owners : list of int
        The run to which each successful measurement belongs.
    answered : int
        Measurements of the run, failed ones included.
    since : int
        The number of its first query.
    runs : list of int
        The run once so many measurements had succeeded.

    >>> from surefoot import Box, RandomSearch
    >>> LocalRegion(RandomSearch(Box.unit(2)).trials, 0.8, 2.0**-7, 1.6, 3, 4).update().length
    0.8
    """

    def __init__(
        self, trials: Trials, length: float, shortest: float, longest: float, successes: int, failures: int
    ) -> None:
        self.trials, self.first, self.shortest, self.longest = trials, length, shortest, longest
        self.enough = (successes, failures)
        self.owners: list[int] = []
        self.runs = [0]
        self._scanned = self._told = self._asked = 0
        self._where: dict[int, tuple[int, int]] = {}  # run and batch of each query
        self._begin(0)

    def _begin(self, run: int) -> None:
        self.run, self.length = run, self.first
        self._counts = [0, 0]  # batches in a row that improved, measurements in a row that did not
        self.answered, self.since = 0, self._asked
        self._best, self._base, self._sum, self._squares, self._n = -math.inf, 0.0, 0.0, 0.0, 0
        self._open: dict[int, tuple[set[int], list[bool]]] = {}  # of each batch what is under way, and what came of it

    def update(self) -> LocalRegion:
        """Take in what was asked and told since the last call."""
        for event in self.trials.events[self._scanned :]:
            kind, id = event["event"], cast(int, event.get("id"))
            if kind == "asked":
                note = event.get("note", {})
                run, batch = note.get("run", 0), None if "initial" in note else note.get("batch")
                self._asked += 1
                self._where[id] = run, -1 if batch is None else batch
                if batch is not None and run == self.run:
                    self._open.setdefault(batch, (set(), []))[0].add(id)
            elif kind == "told":
                self._hear(event.get("id"), self._told)
                self._told += 1
            elif kind in ("cancelled", "expired"):
                self._close(id, None)
        self._scanned = len(self.trials.events)
        return self

    def _hear(self, id: int | None, place: int) -> None:
        observed = self.trials.observations[place]
        run = self.run if id is None else self._where[id][0]
        value, better = observed.outcome.value, False
        self.answered += run == self.run
        if not observed.failed and value is not None:
            self.owners.append(run)
            better = run == self.run and self._improves(value)
        if id is not None:
            self._close(id, better)
        if not observed.failed:
            self.runs.append(self.run)

    def _improves(self, value: float) -> bool:
        """Whether a value of the run exceeds the best one by more than GAIN standard deviations; it is one of them."""
        n = max(self._n, 1)
        spread = math.sqrt(max(0.0, self._squares / n - (self._sum / n) ** 2))
        better = value > self._best + GAIN * spread
        self._best, self._base = max(self._best, value), self._base if self._n else value
        self._n, away = self._n + 1, value - self._base
        self._sum, self._squares = self._sum + away, self._squares + away**2
        return better

    def _close(self, id: int, better: bool | None) -> None:
        """One query of a batch is answered (None: without an outcome); the last one judges the batch."""
        batch = self._where[id][1] if id in self._where else -1
        if self._where.get(id, (-1, -1))[0] != self.run or batch not in self._open:
            return
        waiting, found = self._open[batch]
        waiting.discard(id)
        if better is not None:
            found.append(better)
        if waiting:
            return
        del self._open[batch]
        if not found:
            return
        self._counts = [self._counts[0] + 1, 0] if any(found) else [0, self._counts[1] + len(found)]
        if self._counts[0] >= self.enough[0]:
            self.length, self._counts = min(2.0 * self.length, self.longest), [0, 0]
        elif self._counts[1] >= self.enough[1]:
            self.length, self._counts = 0.5 * self.length, [0, 0]
        if self.length < self.shortest:
            self._begin(self.run + 1)

    @property
    def members(self) -> NDArray[np.bool_]:
        """Which successful measurements belong to the run."""
        mine: NDArray[np.bool_] = np.array(self.owners, dtype=np.intp) == self.run
        return mine

    def sides(self, kernel: Kernel, widths: Array) -> Array:
        """Return the sides of the box (d,), in the domain's units, for a domain of these widths.

        >>> from surefoot import Matern, RandomSearch
        >>> region = LocalRegion(RandomSearch(Box.unit(2)).trials, 0.8, 2.0**-7, 1.6, 3, 4)
        >>> region.sides(Matern(2.5, lengthscale=[1.0, 4.0]), np.ones(2))
        array([0.4, 1.6])
        """
        real = widths > 0.0
        scales = np.ones(len(widths))
        if isinstance(kernel, Stationary) and real.any():
            scales[real] = np.broadcast_to(kernel.lengthscale, widths.shape)[real] / widths[real]
        logs = np.log(scales)
        shaped = np.exp(logs - (logs[real].mean() if real.any() else 0.0))  # λᵢ / (Πⱼ λⱼ)^(1/d)
        sides: Array = self.length * shaped * widths
        return sides


class LocalRows(Rows):
    """What the belief sees: the measurements of the run.

    Parameters
    ----------
    region : LocalRegion
        Says which they are.

    >>> from surefoot import Box
    >>> TrustRegion(Box.unit(2), seed=0).surrogate.rows.places().shape
    (0, 2)
    """

    def __init__(self, region: LocalRegion) -> None:
        super().__init__(region.trials)
        self.region = region

    def data(self) -> Data:
        mine = self.region.update().members
        X, y, given = self.trials.data()
        return self.encode(X[mine]), y[mine], None if np.isnan(given[mine]).all() else given[mine]

    def places(self) -> Array:
        X: Array = self.trials.data()[0][self.region.update().members]
        return X

    def span(self, runs: int) -> int:
        return int(self.region.update().members[:runs].sum())

    def fitted(self, at: int) -> Data:
        region = self.region.update()
        mine = np.flatnonzero(np.array(region.owners[:at], dtype=np.intp) == region.runs[at])
        X, y, given = self.trials.data()
        return self.encode(X[mine]), y[mine], None if np.isnan(given[mine]).all() else given[mine]

    def begin(self, at: int | None) -> tuple[tuple[int | None, int], int]:
        return (at, self.region.update().run), self.span(at or 0)


class LocalStart:
    """A design at the start of every run.

    Parameters
    ----------
    region : LocalRegion
        Says which run it is.
    initial : int
        Design points of each run; points told unasked count in the first.

    >>> TrustRegion(Box.unit(2), seed=0).start.initial
    4
    """

    def __init__(self, region: LocalRegion, initial: int) -> None:
        self.region, self.initial = region, initial

    def propose(self, view: View) -> Proposal | None:
        """Return the next point of the design that is free; None: the run has enough."""
        region, trials, step = self.region.update(), view.trials, view.step
        run = region.run
        under_way = sum(query.note.get("run", 0) == run for query in trials.pending.values())
        if region.answered + under_way >= self.initial and (region.members.any() or not self.initial):
            return None
        had = sum("initial" in query.note for query in trials.queries[region.since :])
        size = 64
        while size < had + self.initial:  # the sequence does not depend on how much of it is drawn
            size *= 2
        design = view.domain.design(size, view.stream("initial", run))
        found = first_free(view.domain, design[had:], view.blocked(sparing=True), lambda: view.stream("ties", step))
        return replace(found, note={"initial": True, "run": run})


class LocalDraw:
    """x_t = argmax f̃ over candidates in the box.

    Parameters
    ----------
    region : LocalRegion
        The box's length.
    candidates : int
        How many candidates.
    """

    def __init__(self, region: LocalRegion, candidates: int) -> None:
        self.region, self.candidates = region, candidates

    def propose(self, view: View) -> Proposal:
        """Draw a function from the belief and return where it is highest in the box."""
        region, belief, domain = self.region.update(), view.believe(), view.domain
        rng = view.stream("thompson", view.step)
        lower, upper = domain.lower, domain.upper
        d, middle = len(lower), self.middle(view, belief)
        if middle is None:
            middle = lower + 0.5 * (upper - lower)
            low, high = lower, upper
        else:
            half = 0.5 * region.sides(belief.gp.kernel, upper - lower)  # Lᵢ/2
            low, high = np.maximum(middle - half, lower), np.minimum(middle + half, upper)
        points = low + unit_design(self.candidates, d, rng) * (high - low)
        moves = rng.random(points.shape) < min(1.0, COORDINATES / d)
        moves[np.arange(len(moves)), rng.integers(d, size=len(moves))] = True  # one of them at least
        points = domain.decode(np.where(moves, points, middle))
        path = sample_path(belief, rng, FEATURES, dimension=d)  # f̃ ~ posterior
        ranked = points[np.argsort(-path(points), kind="stable")]
        note = {"run": region.run, "batch": view.step + view.left}
        found = first_free(domain, ranked, view.blocked(sparing=True), lambda: view.stream("ties", view.step))
        return replace(found, note=note)

    def middle(self, view: View, belief: Belief) -> Array | None:
        """Return the best point of the run; None before its first measurement."""
        X = view.surrogate.rows.places()
        if not len(X):
            return None
        y = view.surrogate.rows.data()[1] if view.surrogate.exact else belief.expected(X)
        best: Array = X[int(np.argmax(y))]
        return best


class TrustRegion(ModelPolicy):
    """Measure where a draw from a local belief is highest, in a box that follows the luck of the run.

    Parameters
    ----------
    domain : Box
        Where points may lie.
    length, shortest, longest : float
        L at the start of a run, L_min and L_max, in shares of the domain's widths.
    successes : int
        τ_succ: batches in a row that improve before L is doubled.
    failures : int, optional
        τ_fail: measurements in a row that do not before L is halved. None: max(4, d).
    candidates : int, optional
        Where a draw is looked at. None: min(100 d, 5000).
    **options
        ``gp``, ``initial`` (2 d by default, for every run), ``confidence``, ``seed``, ``repeats``, ``journal``.

    >>> policy = TrustRegion(Box.unit(6), seed=0)
    >>> for _ in range(16):
    ...     query = policy.ask()
    ...     policy.tell(query, -float(((query.x - 0.3) ** 2).sum()))
    >>> policy.length, policy.run
    (0.8, 0)
    """

    domains = (Box,)
    ignores_pending = True

    def __init__(
        self,
        domain: Domain,
        *,
        length: float = 0.8,
        shortest: float = 2.0**-7,
        longest: float = 1.6,
        successes: int = 3,
        failures: int | None = None,
        candidates: int | None = None,
        **options: Unpack[ModelOptions],
    ) -> None:
        super().__init__(domain, **options)
        d = domain.dimension
        if options.get("initial") is None and self.automatic:
            self.initial = 2 * d
        if not 0.0 < positive(shortest, "shortest") <= positive(length, "length") <= positive(longest, "longest"):
            raise ValueError(f"shortest ≤ length ≤ longest, got {shortest!r}, {length!r} and {longest!r}")
        self._region = LocalRegion(
            self.trials,
            float(length),
            float(shortest),
            float(longest),
            whole(successes, "successes", 1),
            max(4, d) if failures is None else whole(failures, "failures", 1),
        )
        self.candidates = min(100 * d, 5000) if candidates is None else whole(candidates, "candidates", 1)
        gp = self.gp
        check_drawable(gp, domain.encoded_dimension)
        if gp.large is not None:  # fits see a part of a long run, but follow no schedule: runs are short
            part, gp = gp, GP.automatic(domain)
            self.surrogate = Surrogate(self.trials, gp, self.stream, rows=LocalRows(self._region), fitter=part.fit)
        else:
            self.surrogate = Surrogate(self.trials, gp, self.stream, rows=LocalRows(self._region))
        self.start = LocalStart(self._region, self.initial)
        self.rule = LocalDraw(self._region, self.candidates)

    @property
    def length(self) -> float:
        """L, the base length of the box."""
        return self._region.update().length

    @property
    def run(self) -> int:
        """How many times the search began anew."""
        return self._region.update().run

    def _recommend(self) -> Recommendation:
        return self._best_measured()
