"""Level sets: where does the function exceed a threshold?

Question: which points have f(x) > h and which f(x) < h, for a known threshold h, or for h = ω · max f?

:class:`~surefoot.policy.levels.sets.LevelSets` is the bookkeeping: a point is *above* once its lower bound exceeds h,
*below* once its upper bound falls short of h, and undecided until then. The rules differ in where they measure:

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

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar, Unpack, cast

import numpy as np
from numpy.typing import NDArray

from surefoot.arguments import positive
from surefoot.belief.protocol import Belief
from surefoot.domain import Domain
from surefoot.loop.types import Proposal
from surefoot.loop.widths import Constant, Width, given_or
from surefoot.policy.acquisition import Acquisition
from surefoot.policy.base import ModelOptions, ModelPolicy
from surefoot.policy.levels.prices import Field
from surefoot.policy.levels.sets import Ground, KnownNoise, LevelSets, kept
from surefoot.policy.plausible import refitted
from surefoot.policy.surrogate import Surrogate
from surefoot.policy.view import View

__all__ = ["GPLSE", "Ambiguity", "Classes", "LevelPolicy", "RandomLevelSet", "Straddle", "VarianceSampling"]

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


class Ambiguity:
    """width · standard deviation − |mean − threshold|: how far the nearer bound is on the wrong side.

    >>> Ambiguity(1.0, 2.0).value(np.array([0.5]), np.array([0.5]))
    array([0.5])
    """

    def __init__(self, threshold: float, width: float) -> None:
        self.threshold, self.width = threshold, width

    def value(self, mean: Array, std: Array) -> Array:
        """Return the ambiguities, shape (m,)."""
        return self.width * std - np.abs(mean - self.threshold)  # min(ucb(x) − h, h − lcb(x))

    def slopes(self, mean: Array, std: Array) -> tuple[Array, Array, Array]:
        """Return the ambiguities and their derivatives in mean and standard deviation."""
        return self.value(mean, std), -np.sign(mean - self.threshold), np.full_like(std, self.width)


class Spread:
    """The standard deviation itself."""

    def value(self, mean: Array, std: Array) -> Array:
        return std

    def slopes(self, mean: Array, std: Array) -> tuple[Array, Array, Array]:
        return std, np.zeros_like(mean), np.ones_like(std)


class Classes:
    """What is known of each point of the ground, given the measurements and the notes of the queries.

    ``sets`` holds the options of the classification, ``width`` gives the bounds that classify.
    """

    def __init__(self, sets: LevelSets, surrogate: Surrogate, ground: Ground, width: Width) -> None:
        self.sets, self.surrogate, self.ground, self.width = sets, surrogate, ground, width

    def reach(self, belief: Belief) -> float:
        """Return how many standard deviations the bounds reach."""
        return self.ground.deviations(self.width, belief, self.surrogate.trials.successes)

    def latest(self, belief: Belief) -> tuple[Array, Array]:
        """Return the bounds of one belief: mean ± width · standard deviation."""
        mean, std = self.ground.predict(belief)
        half = self.reach(belief) * std
        return mean - half, mean + half

    def bounds(self) -> tuple[Array, Array]:
        """Return the bounds given all measurements."""
        return self.latest(self.surrogate.believe())

    def decided(self) -> LevelSets:
        """Return the sets given all measurements."""
        return self.sets.recalling(self.ground.memory).updated(*self.bounds())

    def threshold(self, belief: Belief) -> float:
        """Return the threshold, or its best estimate."""
        known = self.sets.threshold
        return self.sets.estimate(self.ground.predict(belief)[0]) if known is None else known


class Intersected(Classes):
    """The same by bounds intersected over all beliefs so far, C_t = C_{t−1} ∩ [μ ± β^(1/2) σ], which the data give."""

    _met: tuple[int, Array, Array] | None = None

    def bounds(self) -> tuple[Array, Array]:
        count = self.surrogate.trials.successes
        if self._met is None or not count - 1 <= self._met[0] <= count:
            self._met = (count - 1, np.full(len(self.ground), -np.inf), np.full(len(self.ground), np.inf))
            for measured, belief in enumerate(self.surrogate.history(count - 1)):
                self._meet(measured, belief)
        if self._met[0] < count:
            self._meet(count, self.surrogate.believe())
        return self._met[1:]

    def _meet(self, count: int, belief: Belief) -> None:
        """Narrow the bounds by those of the belief after ``count`` measurements."""
        (mean, std), (_, lower, upper) = self.ground.predict(belief), cast(tuple[int, Array, Array], self._met)
        half = self.ground.deviations(self.width, belief, count) * std
        self._met = (count, np.maximum(lower, mean - half), np.minimum(upper, mean + half))


class LevelRule(ABC):
    """A rule that classifies before it chooses, and notes what is decided where that is to last."""

    def __init__(self, classes: Classes) -> None:
        self.classes = classes

    def propose(self, view: View) -> Proposal:
        """Return where to measure, with what is newly decided in its note."""
        sets = self.classes.decided()
        proposal = self.point(view, sets)
        if not sets.monotone:
            return proposal
        return replace(proposal, note=self.classes.ground.memory.note(sets.above, sets.below))

    @abstractmethod
    def point(self, view: View, sets: LevelSets) -> Proposal:
        """Return where to measure."""


class Scored(LevelRule):
    """Measure where an acquisition is highest, which a belief and the classes give."""

    def __init__(self, classes: Classes, acquisition: Callable[[Belief], Acquisition]) -> None:
        super().__init__(classes)
        self.acquisition = acquisition

    def point(self, view: View, sets: LevelSets) -> Proposal:
        with view.hallucinated() as belief:
            return view.best(belief, self.acquisition(belief))


class MostAmbiguous(LevelRule):
    """GP-LSE: the undecided point whose bounds reach furthest across the threshold; of intersected bounds, or not."""

    def __init__(self, classes: Classes, intersect: bool) -> None:
        super().__init__(classes)
        self.intersect = intersect

    def point(self, view: View, sets: LevelSets) -> Proposal:
        ground, met = self.classes.ground, self.classes.bounds() if self.intersect else None
        with view.hallucinated() as belief:
            if not (self.intersect or sets.threshold is None or view.domain.listed):
                return view.best(belief, Ambiguity(sets.threshold, self.classes.reach(belief)))
            lower, upper = self.classes.latest(belief)
        if met is not None:
            lower, upper = np.maximum(lower, met[0]), np.minimum(upper, met[1])
        low, high = sets.span(lower, upper)
        if sets.fraction is None:  # x_t = argmax min(ucb_t(x) − h, h − lcb_t(x)) over the undecided x
            values, among = np.minimum(upper - low, high - lower), sets.undecided
        else:  # h is not known: the widest interval, of possible maximizers too
            values, among = upper - lower, sets.undecided | (upper >= lower.max())
        if (among & ~ground.taken(view)).any():  # otherwise all is decided: any point is as good
            values = np.where(among, values, -np.inf)
        return ground.best(values, view)


class Anywhere(LevelRule):
    """Measure at random."""

    def point(self, view: View, sets: LevelSets) -> Proposal:
        ground = self.classes.ground
        if not view.domain.listed:
            X = view.domain.sample(64, view.stream("sample", view.step))
            free = X[~ground.taken(view, X)]
            if len(free):
                return Proposal(free[0])
        return ground.best(np.zeros(len(ground)), view)


class LevelPolicy(ModelPolicy):
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

    width: Width

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
        noise: Field | None = None,
        points: int = 1024,
        device: str | None = None,
        **options: Unpack[ModelOptions],
    ) -> None:
        super().__init__(domain, **options)
        self.monotone = kept(monotone, self.gp)
        followed = Ground(self.trials, points, self.stream)
        rows = KnownNoise(self.trials, followed, noise)
        self.surrogate = Surrogate(self.trials, self.gp, self.stream, rows=rows, device=device)
        self.points, self.device, self.noise = followed.count, device, rows.noise
        self.width = given_or(width, Constant(3.0))
        sets = LevelSets.over(0, threshold=threshold, fraction=fraction, accuracy=accuracy, monotone=self.monotone)
        self.threshold, self.fraction, self.accuracy = threshold, fraction, accuracy
        self.classes = Classes(sets, self.surrogate, followed, self.width)

    @property
    def ground(self) -> Array:
        """The points that are followed, shape (n, d), not to be written to."""
        return self.classes.ground.points

    @property
    def undecided(self) -> Mask:
        """Which points of ``ground`` may lie on either side of the threshold, shape (n,)."""
        return self.classes.decided().undecided

    @property
    def finished(self) -> bool:
        """Whether every point is decided, by a belief that is given.

        No point is then misclassified by more than ``accuracy`` whenever the bounds hold in all rounds. Never with a
        belief that is fitted (the default, or ``gp.refit(...)``), of which nothing of the kind is known: see
        docs/policies/level-sets.md. What it has not decided is still in :attr:`undecided`.
        """
        return not (refitted(self) or self.undecided.any())

    def _recommend(self) -> Any:
        mean, _ = self.classes.ground.predict(self.surrogate.believe())
        return self.classes.decided().answer(self.ground, mean.copy(), *self.classes.bounds())


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
        if intersect and refitted(self):
            raise ValueError(
                "intersect needs a gp that is not refitted: intervals of two beliefs have nothing in common"
            )
        self.intersect = intersect
        if intersect:
            self.classes = Intersected(self.classes.sets, self.surrogate, self.classes.ground, self.width)
        self.rule = MostAmbiguous(self.classes, intersect)


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
        self.rule = Scored(self.classes, lambda belief: Ambiguity(self.classes.threshold(belief), self.reach))


class VarianceSampling(LevelPolicy):
    """Measure where the standard deviation is largest; parameters as in :class:`LevelPolicy`.

    >>> from surefoot import Candidates
    >>> VarianceSampling(Candidates([0.0, 0.5, 1.0]), threshold=0.5, seed=0).ask().index in range(3)
    True
    """

    def __init__(self, domain: Domain, **options: Any) -> None:
        super().__init__(domain, **options)
        self.rule = Scored(self.classes, lambda belief: Spread())


class RandomLevelSet(LevelPolicy):
    """Measure anywhere; parameters as in :class:`LevelPolicy`.

    >>> from surefoot import Candidates
    >>> RandomLevelSet(Candidates([0.0, 0.5, 1.0]), threshold=0.5, seed=0).ask().index in range(3)
    True
    """

    ignores_pending = True  # nothing is scored: other points are as good as those under way

    def __init__(self, domain: Domain, **options: Any) -> None:
        super().__init__(domain, **options)
        self.rule = Anywhere(self.classes)
