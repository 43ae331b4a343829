"""Level sets: where does the function exceed a threshold?

Question: which points have f(x) > h and which f(x) < h, for a known threshold h, or for h = ω · max f?

:class:`LevelSets` is the bookkeeping: a point is *above* once its lower bound exceeds h, *below* once its upper bound
falls short of h, and undecided until then. The rules differ in where they measure:

* :class:`GPLSE`: the undecided point of largest ambiguity min(ucb(x) − h, h − lcb(x)). With an implicit threshold, the
  widest interval among the undecided points and the possible maximizers, since shrinking the uncertainty of max f is
  part of the task;
* :class:`Straddle`: the largest 1.96 σ(x) − |μ(x) − h|;
* :class:`VarianceSampling`: the largest σ(x); :class:`RandomLevelSet`: anywhere. Both are here to be compared with.

References: Gotovos, Casati, Hitz & Krause 2013 (GP-LSE); Bryan et al. 2005 (straddle). Guarantee of GP-LSE: with a
width that holds at all points in all rounds, no point is misclassified by more than the accuracy, and after O(β γ/ε²)
measurements none is undecided. Bounds of a belief that is fitted, the default, promise no such thing, and ``finished``
is never true with one. Authors' options: β^(1/2) = 3 in the experiments here, intersected intervals and an
accuracy in the original; both are options. Differences: see docs/policies/level-sets.md.

Cost of one ask: as :mod:`surefoot.policy.ucb.gp_ucb`. The answer is a :class:`~surefoot.loop.types.LevelSet`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Unpack, cast

import numpy as np
from numpy.typing import NDArray

from surefoot.arguments import not_negative, number, open_unit, positive
from surefoot.belief.grid import GridPosterior
from surefoot.belief.posterior import Posterior
from surefoot.domain import Candidates, Domain
from surefoot.domain.search import argmax
from surefoot.errors import NotSupported
from surefoot.loop.policy import Proposal
from surefoot.loop.types import LevelSet
from surefoot.loop.widths import Constant, Width, given_or
from surefoot.policy.base import Acquisition, PosteriorScore
from surefoot.policy.levels.sets import SetOptions, SetPolicy
from surefoot.policy.plausible import refitted

__all__ = ["GPLSE", "Ambiguity", "LevelPolicy", "LevelSets", "RandomLevelSet", "Straddle", "VarianceSampling"]

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


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

    def updated(self, lower: Array, upper: Array) -> LevelSets:
        """Return the sets after new bounds at all points, each of shape (n,).

        >>> sets = LevelSets.over(1, threshold=0.0).updated(np.array([0.5]), np.array([1.0]))
        >>> sets.updated(np.array([-1.0]), np.array([1.0])).above  # decided stays decided
        array([ True])
        """
        low, high = self.span(lower, upper)
        above = lower + self.accuracy > high
        below = (upper - self.accuracy < low) & ~above
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
        middle = self.span(lower, upper)[0] if self.fraction is None else self.fraction * float(mean.max())
        rule = "confidence bounds"
        for side, known in (("above", self.above), ("below", self.below)):
            if known.all():
                rule += f"; every point lies {side} the threshold {middle:.6g}"
        return LevelSet(self.above, self.below, self.undecided, rule, points, middle, mean >= middle)


class Ambiguity:
    """width · standard deviation − |mean − threshold|: how far the nearer bound is on the wrong side.

    >>> Ambiguity(1.0, 2.0).value(np.array([0.5]), np.array([0.5]))
    array([0.5])
    """

    def __init__(self, threshold: float, width: float) -> None:
        self.threshold, self.width = threshold, width

    def value(self, mean: Array, std: Array) -> Array:
        """Return the ambiguities, shape (m,)."""
        return self.width * std - np.abs(mean - self.threshold)

    def slopes(self, mean: Array, std: Array) -> tuple[Array, Array, Array]:
        """Return the ambiguities and their derivatives in mean and standard deviation."""
        return self.value(mean, std), -np.sign(mean - self.threshold), np.full_like(std, self.width)


class _Spread:
    """The standard deviation itself."""

    def value(self, mean: Array, std: Array) -> Array:
        return std

    def slopes(self, mean: Array, std: Array) -> tuple[Array, Array, Array]:
        return std, np.zeros_like(mean), np.ones_like(std)


class LevelPolicy(SetPolicy):
    """Base of the policies whose answer is a level set; see the module's page for the rules.

    Parameters
    ----------
    domain : Box, Candidates or Space
        Where points may lie. Points of a box are classified at ``policy.ground``.
    threshold : float, optional
        The threshold; or else
    fraction : float, optional
        The share of the unknown maximum that is the threshold, between 0 and 1; of the minimum for who minimizes.
    width : width
        Standard deviations of the bounds that classify; ``widths.Constant(3.0)`` by default.
    accuracy : float
        An error up to this does not matter.
    monotone : bool, optional
        Whether what is decided stays decided; None: unless the belief is refitted.
    **options
        ``noise``, ``points``, ``device``, ``gp``, ``initial``, ``confidence``, ``seed``, ``repeats``, ``journal``.
    """

    valued: ClassVar[tuple[str, ...]] = ("threshold",)

    def __init__(
        self,
        domain: Domain,
        *,
        threshold: float | None = None,
        fraction: float | None = None,
        width: Width | None = None,
        accuracy: float = 0.0,
        monotone: bool | None = None,
        **options: Unpack[SetOptions],
    ) -> None:
        super().__init__(domain, monotone=monotone, **options)
        self.width = given_or(width, Constant(3.0))
        self._empty = LevelSets.over(
            0, threshold=threshold, fraction=fraction, accuracy=accuracy, monotone=self.monotone
        )
        self.threshold, self.fraction, self.accuracy = threshold, fraction, accuracy

    def _reach(self, belief: Posterior | GridPosterior) -> float:
        """The width after what is measured now."""
        size = len(self.ground)
        return self.width(
            self._successes() + 1, size=size, dimension=self.domain.dimension, gain=belief.information_gain
        )

    def _bounds(self, belief: Posterior | GridPosterior) -> tuple[Array, Array]:
        """Lower and upper bound at the ground."""
        mean, std = self._at_ground(belief)
        half = self._reach(belief) * std
        return mean - half, mean + half

    def _decided(self) -> LevelSets:
        """The sets given all measurements."""
        memory = self._memory()
        return replace(self._empty, above=memory.above, below=memory.below).updated(*self._bounds(self._believe()))

    @property
    def undecided(self) -> Mask:
        """Which points of ``ground`` may lie on either side of the threshold, shape (n,)."""
        return self._decided().undecided

    @property
    def finished(self) -> bool:
        """Whether every point is decided, by a belief that is given.

        No point is then misclassified by more than ``accuracy`` whenever the bounds hold in all rounds. Never with a
        belief that is fitted (the default, or ``gp.refit(...)``), of which nothing of the kind is known: see
        docs/policies/level-sets.md. What it has not decided is still in :attr:`undecided`.
        """
        return not (refitted(self) or self.undecided.any())

    def _level(self, belief: Posterior | GridPosterior) -> float:
        """The threshold, or its best estimate."""
        if self.threshold is not None:
            return self.threshold
        return cast(float, self.fraction) * float(self._at_ground(belief)[0].max())

    def _rule(self, step: int, context: Mapping[str, Any]) -> Proposal:
        sets = self._decided() if self.monotone else None
        proposal = self._point(sets, step, context)
        return proposal if sets is None else replace(proposal, note=self._memory().note(sets.above, sets.below))

    def _point(self, sets: LevelSets | None, step: int, context: Mapping[str, Any]) -> Proposal:
        """Where the rule measures."""
        return super()._rule(step, context)

    def _best_of_ground(self, values: Array, step: int) -> Proposal:
        row = argmax(values, rng=self.stream("ties", step), exclude=self._taken(self.ground))
        return Proposal(index=row) if isinstance(self.domain, Candidates) else Proposal(self.ground[row])

    def _recommend(self) -> Any:
        belief = self._believe()
        mean, _ = self._at_ground(belief)
        return self._decided().answer(self.ground, mean.copy(), *self._bounds(belief))


class GPLSE(LevelPolicy):
    """Measure the undecided point whose bounds reach furthest across the threshold.

    Parameters are those of :class:`LevelPolicy`, and

    Parameters
    ----------
    intersect : bool
        Bound each value by all of its intervals so far, as in the original, and not by the latest. Needs a ``gp`` that
        is not refitted.

    >>> from surefoot import GP, SE, Candidates
    >>> line = Candidates(np.linspace(0.0, 1.0, 101))
    >>> policy = GPLSE(line, threshold=0.5, gp=GP(SE(0.2), noise=1e-6), seed=0)
    >>> for _ in range(12):
    ...     query = policy.ask()
    ...     policy.tell(query, float(np.sin(3.0 * query.x[0])))
    >>> policy.finished, policy.recommend().counts()["above"]
    (True, 70)
    """

    def __init__(
        self,
        domain: Domain,
        *,
        threshold: float | None = None,
        fraction: float | None = None,
        intersect: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(domain, threshold=threshold, fraction=fraction, **options)
        if intersect and self.gp.every is not None:
            raise ValueError(
                "intersect needs a gp that is not refitted: intervals of two beliefs have nothing in common"
            )
        self.intersect = intersect
        self._met: tuple[int, Array, Array] | None = None

    def _acquisition(self, belief: Posterior | GridPosterior, step: int) -> Acquisition:
        return Ambiguity(self._level(belief), self._reach(belief))

    def _bounds(self, belief: Posterior | GridPosterior) -> tuple[Array, Array]:
        if not self.intersect:
            return super()._bounds(belief)
        count = self._successes()
        if self._met is None or not count - 1 <= self._met[0] <= count:
            self._met = self._meet_again(count - 1)
        if self._met[0] < count:
            lower, upper = super()._bounds(belief)
            self._met = (count, np.maximum(self._met[1], lower), np.minimum(self._met[2], upper))
        return self._met[1], self._met[2]

    def _meet_again(self, count: int) -> tuple[int, Array, Array]:
        """The intersected bounds after ``count`` measurements, and before them: they follow from the data."""
        X, y, noise = self._encoded()
        size = len(self.ground)
        lower, upper = np.full(size, -np.inf), np.full(size, np.inf)
        grid = self._over_all_candidates(self.gp)
        belief: Any = GridPosterior(self.gp, self._everything()) if grid else self.gp.condition()
        for i in range(count + 1):
            if i:
                own = None if noise is None else noise[i - 1]
                belief.append(self._rows()[i - 1] if grid else X[i - 1], y[i - 1], own)
            mean, std = self._at_ground(belief)
            half = std * self.width(i + 1, size=size, dimension=self.domain.dimension, gain=belief.information_gain)
            lower, upper = np.maximum(lower, mean - half), np.minimum(upper, mean + half)
        return count, lower, upper

    def _point(self, sets: LevelSets | None, step: int, context: Mapping[str, Any]) -> Proposal:
        sets = self._decided() if sets is None else sets
        real = self._bounds(self._believe()) if self.intersect else None
        with self._hallucinated() as belief:
            if real is None and self.fraction is None and not isinstance(self.domain, Candidates):
                posterior = cast(Posterior, belief)
                return self._best_point(PosteriorScore(posterior, self._acquisition(belief, step)), posterior, step)
            mean, std = self._at_ground(belief)
            half = self._reach(belief) * std
        lower, upper = mean - half, mean + half
        if real is not None:
            lower, upper = np.maximum(lower, real[0]), np.minimum(upper, real[1])
        low, high = sets.span(lower, upper)
        if self.fraction is None:
            values, among = np.minimum(upper - low, high - lower), sets.undecided
        else:
            values, among = upper - lower, sets.undecided | (upper >= lower.max())
        if (among & ~self._taken(self.ground)).any():  # otherwise all is decided: any point is as good
            values = np.where(among, values, -np.inf)
        return self._best_of_ground(values, step)


class Straddle(LevelPolicy):
    """Measure where 1.96 standard deviations reach furthest across the threshold.

    Parameters are those of :class:`LevelPolicy`, and

    Parameters
    ----------
    reach : float
        The standard deviations of the rule; ``width`` is that of the bounds that classify.

    >>> from surefoot import Box
    >>> Straddle(Box([(0.0, 1.0)]), threshold=0.5, seed=0).reach
    1.96
    """

    def __init__(
        self,
        domain: Domain,
        *,
        threshold: float | None = None,
        fraction: float | None = None,
        reach: float = 1.96,
        **options: Any,
    ) -> None:
        super().__init__(domain, threshold=threshold, fraction=fraction, **options)
        self.reach = positive(reach, "reach")

    def _acquisition(self, belief: Posterior | GridPosterior, step: int) -> Acquisition:
        return Ambiguity(self._level(belief), self.reach)


class VarianceSampling(LevelPolicy):
    """Measure where the standard deviation is largest; parameters as in :class:`LevelPolicy`.

    >>> from surefoot import Candidates
    >>> VarianceSampling(Candidates([0.0, 0.5, 1.0]), threshold=0.5, seed=0).ask().index in range(3)
    True
    """

    def _acquisition(self, belief: Posterior | GridPosterior, step: int) -> Acquisition:
        return _Spread()


class RandomLevelSet(LevelPolicy):
    """Measure anywhere; parameters as in :class:`LevelPolicy`.

    >>> from surefoot import Candidates
    >>> RandomLevelSet(Candidates([0.0, 0.5, 1.0]), threshold=0.5, seed=0).ask().index in range(3)
    True
    """

    def _acquisition(self, belief: Posterior | GridPosterior, step: int) -> Acquisition:
        raise NotSupported("RandomLevelSet scores nothing")

    def _blocked(self, *, sparing: bool = False) -> list[tuple[Array, int | None]]:
        return super()._blocked(sparing=True)  # nothing is scored: other points are as good as those under way

    def _point(self, sets: LevelSets | None, step: int, context: Mapping[str, Any]) -> Proposal:
        if not isinstance(self.domain, Candidates):
            X = self.domain.sample(64, self.stream("sample", step))
            free = X[~self._taken(X)]
            if len(free):
                return Proposal(free[0])
        return self._best_of_ground(np.zeros(len(self.ground)), step)
