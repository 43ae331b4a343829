"""Sets of points that are followed until they are decided: possible maximizers, or points near a threshold.

What :mod:`surefoot.policy.levels.truvar` and :mod:`surefoot.policy.levels.level_set` share:

* :class:`Ground`, the points that are followed: the candidates; on a finite space of at most 4,096 points all of them;
  on a box or a larger space ``points`` Sobol points that stand for it, the same ones for the whole run.
* :class:`Memory`. A set that may only shrink depends on all earlier beliefs, and so does a stage of an algorithm. What
  a query has decided is kept in its ``note``, as runs of indices, so that a policy rebuilt from its events knows the
  same without fitting anything again. Sets are brought up to date when a point is asked for; looking changes nothing.
* :class:`LevelSets`, which points lie above a threshold, which below.
* :class:`KnownNoise`: each point, or each fidelity, has its own variance, for measurements that do not bring one.

Cost: mean and variance at the ground, O(n) per measurement and candidate, O(n²) per Sobol point and ask.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from surefoot.arguments import not_negative, number, open_unit, whole
from surefoot.belief.gp import GP
from surefoot.belief.protocol import EVERY, Belief
from surefoot.domain import Candidates
from surefoot.domain.ranking import argmax
from surefoot.domain.search import EXHAUSTIVE
from surefoot.loop.trials import Trials
from surefoot.loop.types import LevelSet, Observation, Proposal, Query
from surefoot.loop.widths import Width
from surefoot.policy.levels.prices import Fidelity, Field, checked_field, numbers_at
from surefoot.policy.surrogate import Rows, Stream
from surefoot.policy.view import View

__all__ = ["Ground", "KnownNoise", "LevelSets", "Memory", "kept"]

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Memory:
    """What the queries so far have decided: which points are above, which below, and the stage.

    >>> memory = Memory.of(5).after({"above": [[0, 2]], "epoch": 3})
    >>> memory.above, memory.epoch
    (array([ True,  True, False, False, False]), 3)
    """

    above: Mask
    below: Mask
    epoch: int = 1
    start: int = 1

    @classmethod
    def of(cls, size: int) -> Memory:
        """Return the memory of nothing."""
        return cls(np.zeros(size, dtype=np.bool_), np.zeros(size, dtype=np.bool_))

    def after(self, note: Mapping[str, Any]) -> Memory:
        """Return the memory after one more query."""
        if not note.keys() & {"above", "below", "epoch"}:
            return self
        size = self.above.size
        return Memory(
            self.above | _filled(note.get("above", ()), size),
            self.below | _filled(note.get("below", ()), size),
            note.get("epoch", self.epoch),
            note.get("start", self.start),
        )

    def note(self, above: Mask, below: Mask) -> dict[str, Any]:
        """Return what is new in two sets, as runs [first, end) of indices.

        >>> Memory.of(4).note(np.array([True, True, False, True]), np.zeros(4, dtype=bool))
        {'above': [[0, 2], [3, 4]]}
        """
        new = {"above": _runs(above & ~self.above), "below": _runs(below & ~self.below)}
        return {name: runs for name, runs in new.items() if runs}


def _runs(mask: Mask) -> list[list[int]]:
    edges = np.flatnonzero(np.diff(np.concatenate([[0], mask.astype(np.int8), [0]])))
    runs: list[list[int]] = edges.reshape(-1, 2).tolist()
    return runs


def _filled(runs: Sequence[Sequence[int]], size: int) -> Mask:
    change = np.zeros(size + 1, dtype=np.int8)
    ends = np.array(runs, dtype=np.intp).reshape(-1, 2)
    change[ends[:, 0]], change[ends[:, 1]] = 1, -1  # runs do not touch
    return np.cumsum(change[:-1]).astype(np.bool_)


@dataclass(frozen=True, eq=False)
class LevelSets:
    """Which points lie above the threshold, which below, and which may lie on either side.

    Parameters
    ----------
    above, below : boolean array of shape (n,)
        What is decided so far.
    threshold : float, optional
        The threshold h; or else
    fraction : float, optional
        ω, for the implicit threshold h = ω · max f. Only bounds on h are known then: ω max lcb and ω max ucb.
    accuracy : float
        ε: an error up to this does not matter.
    monotone : bool
        Whether what is decided stays decided.

    >>> sets = LevelSets.over(3, threshold=1.0).updated(np.array([1.1, 0.5, 0.0]), np.array([2.0, 1.5, 0.9]))
    >>> sets.above, sets.undecided
    (array([ True, False, False]), array([False,  True, False]))
    """

    above: Mask
    below: Mask
    threshold: float | None = None
    fraction: float | None = None
    accuracy: float = 0.0
    monotone: bool = True

    def __post_init__(self) -> None:
        if (self.threshold is None) == (self.fraction is None):
            raise ValueError(f"give either threshold or fraction, got {self.threshold!r} and {self.fraction!r}")
        if self.threshold is not None and not math.isfinite(number(self.threshold)):
            raise ValueError(f"threshold must be finite, got {self.threshold!r}")
        if self.fraction is not None:
            open_unit(self.fraction, "fraction")
        not_negative(self.accuracy, "accuracy")

    @classmethod
    def over(cls, size: int, **options: Any) -> LevelSets:
        """Return the sets over ``size`` points of which nothing is known.

        >>> LevelSets.over(2, fraction=0.8).undecided
        array([ True,  True])
        """
        return cls(np.zeros(size, dtype=np.bool_), np.zeros(size, dtype=np.bool_), **options)

    def recalling(self, memory: Memory) -> LevelSets:
        """Return the sets of these options as the queries so far have decided them."""
        return replace(self, above=memory.above, below=memory.below)

    @property
    def undecided(self) -> Mask:
        """The points that may lie on either side."""
        return ~(self.above | self.below)

    def span(self, lower: Array, upper: Array) -> tuple[float, float]:
        """Return the lowest and the highest value the threshold may have, given bounds at all points.

        >>> LevelSets.over(2, fraction=0.5).span(np.array([0.0, 1.0]), np.array([3.0, 2.0]))
        (0.5, 1.5)
        """
        if self.fraction is None:
            return cast(float, self.threshold), cast(float, self.threshold)
        return self.fraction * float(lower.max()), self.fraction * float(upper.max())

    def estimate(self, mean: Array) -> float:
        """Return the threshold, or its best estimate given the means of all points."""
        return cast(float, self.fraction) * float(mean.max()) if self.threshold is None else self.threshold

    def updated(self, lower: Array, upper: Array) -> LevelSets:
        """Return the sets after new bounds at all points, each of shape (n,).

        >>> sets = LevelSets.over(1, threshold=0.0).updated(np.array([0.5]), np.array([1.0]))
        >>> sets.updated(np.array([-1.0]), np.array([1.0])).above  # decided stays decided
        array([ True])
        """
        low, high = self.span(lower, upper)
        above = lower + self.accuracy > high  # lcb(x) > h; with accuracy 0, (3.7)
        below = (upper - self.accuracy < low) & ~above  # ucb(x) < h: (3.8); what is neither is M, (3.6)
        if self.monotone:
            free = self.undecided
            above, below = self.above | (above & free), self.below | (below & free)
        return replace(self, above=above, below=below)

    def answer(self, points: Array, mean: Array, lower: Array, upper: Array) -> LevelSet:
        """Return the answer, with the best guess by posterior mean for all points.

        >>> mean = np.array([2.0, 3.0])
        >>> sets = LevelSets.over(2, threshold=9.0).updated(mean - 1.0, mean + 1.0)
        >>> sets.answer(np.zeros((2, 1)), mean, mean - 1.0, mean + 1.0).rule
        'confidence bounds; every point lies below the threshold 9'
        """
        middle = self.estimate(mean)
        rule = "confidence bounds"
        for side, known in (("above", self.above), ("below", self.below)):
            if known.all():
                rule += f"; every point lies {side} the threshold {middle:.6g}"
        return LevelSet(self.above, self.below, self.undecided, rule, points, middle, mean >= middle)


def kept(monotone: bool | None, gp: GP) -> bool:
    """Return whether what is decided stays decided; None: unless the belief is refitted.

    >>> kept(None, GP()), kept(None, GP().refit(1)), kept(True, GP().refit(1))
    (True, False, True)
    """
    if monotone not in (True, False, None):
        raise ValueError(f"monotone must be True, False or None, got {monotone!r}")
    return gp.every is None if monotone is None else monotone


class Ground:
    """The points that are followed, ``count`` of them on a box, and what the queries so far have decided of them."""

    def __init__(self, trials: Trials, count: int, stream: Stream) -> None:
        self.trials, self.domain, self.stream = trials, trials.domain, stream
        self.count = whole(count, "points", 2)
        self._read: tuple[int, Query | None, Memory | None] = (0, None, None)

    @cached_property
    def points(self) -> Array:
        """The points, shape (n, d), not to be written to."""
        domain = self.domain
        every = domain.size is not None and (domain.listed or domain.size <= EXHAUSTIVE)
        points = domain.enumerate() if every else domain.design(self.count, self.stream("ground", 0))
        points.setflags(write=False)  # answers show them
        return points

    def __len__(self) -> int:
        return len(self.points)

    @property
    def complete(self) -> bool:
        """Whether these are all points of the domain."""
        return self.domain.size == len(self)

    @cached_property
    def at(self) -> Any:
        """The points as a belief names them."""
        return EVERY if self.domain.listed else self.domain.encode(self.points)

    def predict(self, belief: Belief) -> tuple[Array, Array]:
        """Return mean and standard deviation at the points, shape (n,) each."""
        return belief.predict(self.at)

    def deviations(self, width: Width, belief: Belief, measured: int) -> float:
        """Return how many standard deviations a width reaches at the points after so many measurements."""
        return width(measured + 1, size=len(self), dimension=self.domain.dimension, gain=belief.information_gain)

    def taken(self, view: View, X: Array | None = None) -> Mask:
        """Return which of the points must not be asked now; or which of others, X (m, d), of a domain without rows."""
        blocked, X = self.domain.excluding(view.blocked()), self.points if X is None else X
        if self.domain.listed:
            return np.asarray(blocked)
        return Candidates(blocked).contains(X) if len(blocked) else np.zeros(len(X), dtype=np.bool_)

    def best(self, values: Array, view: View) -> Proposal:
        """Return the free point of the highest value."""
        row = argmax(values, rng=view.stream("ties", view.step), exclude=self.taken(view))
        return Proposal(index=row) if self.domain.listed else Proposal(self.points[row])

    @property
    def memory(self) -> Memory:
        """What the queries so far have decided, read from their notes."""
        queries = self.trials.queries
        read, last, memory = self._read
        if memory is None or read > len(queries) or (read and queries[read - 1] is not last):
            read, memory = 0, Memory.of(len(self))  # the first look, or an ask that was taken back
        for query in queries[read:]:
            memory = memory.after(query.note)
        self._read = (len(queries), queries[-1] if queries else None, memory)
        return memory


class KnownNoise(Rows):
    """Rows of measurements whose noise is known beforehand: by the point, or by the fidelity it was made at.

    What a measurement brings itself counts first, and what nobody knows is the belief's.

    >>> from surefoot import TruVaR
    >>> policy = TruVaR(Candidates([0.0, 1.0]), noise=[0.1, 0.2], seed=0)
    >>> policy.tell([1.0], 3.0)
    >>> policy.data()[2]
    array([0.2])
    """

    def __init__(
        self, trials: Trials, ground: Ground, noise: Field | None, levels: Sequence[Fidelity] | None = None
    ) -> None:
        super().__init__(trials)
        self.ground, self.levels = ground, levels
        self.noise = checked_field(noise, "noise", trials.domain, positive=False)

    def at(self, X: Array, rows: NDArray[np.intp] | None) -> Array | None:
        """Return the variances that a measurement at points (m, d) may have, (k, m) or (k,); None: the belief's."""
        if self.levels is not None:
            return np.array([level.noise for level in self.levels])
        if self.noise is None:
            return None
        return numbers_at(self.noise, "noise", X, rows, positive=False)[None]

    def noises(self, given: Array) -> Array:
        if not np.isnan(given).any():
            return given
        return np.where(np.isnan(given), self._of([o for o in self.trials.observations if not o.failed]), given)

    def unknown_noises(self) -> Sequence[float | None] | None:
        found: list[float | None] = self._of([*self.trials.pending.values(), *self.trials.failures]).tolist()
        return found

    def noisiest(self, gp: GP) -> float:
        found = self.at(self.ground.points, None)
        return super().noisiest(gp) if found is None else float(found.max())

    def _of(self, runs: Sequence[Query | Observation]) -> Array:
        """The noise that is known of each of some measurements, NaN where none is."""
        if self.levels is not None:
            made = [None if run.id is None else self.trials.queries[run.id].fidelity for run in runs]
            return np.array([np.nan if k is None else self.levels[k].noise for k in made], dtype=np.float64)
        if self.noise is None or not runs:
            return np.full(len(runs), np.nan)
        rows = np.array([run.index for run in runs]) if self.domain.listed else None
        return numbers_at(self.noise, "noise", np.array([run.x for run in runs]), rows, positive=False)
