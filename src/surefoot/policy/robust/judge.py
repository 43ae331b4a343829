"""Worst cases under a belief: what an adversary may leave of each choice.

On a finite domain a choice is a set of candidates, elsewhere a region around a center. :func:`judge_of` returns what
knows the worst cases of either, so that nobody else asks which it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from surefoot.belief.protocol import EVERY, Belief
from surefoot.domain.sets import Region, Sets
from surefoot.loop.trials import Trials
from surefoot.loop.types import Recommendation
from surefoot.policy.acquisition import BeliefScore
from surefoot.policy.base import ModelPolicy
from surefoot.policy.robust.worst_case import lowest, maximin
from surefoot.policy.ucb.gp_ucb import UpperBound
from surefoot.policy.view import View

__all__ = ["FINE", "Judged", "RegionJudge", "SetJudge", "WorstCases", "judge_of", "judged", "report", "robust_bounds"]

Array = NDArray[np.float64]
Bounds = tuple[Array, Array, Array]
FINE = {"count": 128, "keep": 8, "iterations": 40}  # of the search for the adversary's choice on a box


class WorstCases(Protocol):
    """What knows the worst cases of choices under a belief."""

    def bounds(self, belief: Belief, width: float, centers: Any, hints: Array | None = None) -> Bounds:
        """Return worst cases of the lower bound, the mean and the upper bound of some centers, shape (k,) each.

        ``hints`` are encoded points where bounds may dip sharply, such as the measured ones.
        """

    def highest(self, view: View, belief: Belief, width: float, hints: Array | None = None) -> float:
        """Return max_x min_δ of the upper bound."""

    def lowest(self, belief: Belief, width: float, center: Any, hints: Array | None = None) -> float:
        """Return min_δ of the lower bound at one center."""

    def measured(self, trials: Trials) -> list[Any]:
        """Return the centers of all measured points."""

    def answer(self, center: Any) -> dict[str, Any]:
        """Return a center as the fields of a recommendation."""


class SetJudge:
    """Worst cases over sets of candidates: exact."""

    def __init__(self, sets: Sets) -> None:
        self.sets = sets

    def bounds(self, belief: Belief, width: float, centers: Any, hints: Array | None = None) -> Bounds:
        mean, std = belief.predict(EVERY)
        lower, middle, upper = (
            self.sets.minimum(values)[centers] for values in (mean - width * std, mean, mean + width * std)
        )
        return lower, middle, upper

    def highest(self, view: View, belief: Belief, width: float, hints: Array | None = None) -> float:
        mean, std = belief.predict(EVERY)
        return float(self.sets.minimum(mean + width * std).max())

    def lowest(self, belief: Belief, width: float, center: Any, hints: Array | None = None) -> float:
        mean, std = belief.predict(EVERY)
        return float(self.sets.minimum(mean - width * std)[center])

    def measured(self, trials: Trials) -> list[Any]:
        found: list[Any] = self.sets.center_of(trials.rows).tolist()
        return found

    def answer(self, center: Any) -> dict[str, Any]:
        return self.sets.answer(int(center))


class RegionJudge:
    """Worst cases over a region around each center: searched for."""

    def __init__(self, region: Region) -> None:
        self.region = region

    def bounds(self, belief: Belief, width: float, centers: Any, hints: Array | None = None) -> Bounds:
        E = self.region.centers.encode(centers)
        lower, mean, upper = (
            lowest(BeliefScore(belief, UpperBound(sign * width)), self.region, E, hints=hints)[0]
            for sign in (-1.0, 0.0, 1.0)
        )
        return lower, mean, upper

    def least(self, belief: Belief, width: float, center: Array, hints: Array | None) -> tuple[float, Array]:
        """Return the worst case of mean + width · std around one center, looked for hard, and where it is."""
        E = self.region.centers.encode(center[None])
        values, Z = lowest(BeliefScore(belief, UpperBound(width)), self.region, E, hints=hints, **FINE)
        return float(values[0]), Z

    def best(
        self, view: View, belief: Belief, width: float, hints: Array | None, exclude: Array | None = None
    ) -> tuple[Array, float]:
        """Return argmax_x min_δ of the upper bound, and this bound; centers ``exclude`` (k, d) are left out."""
        known = view.incumbents(belief)
        seeds = [] if known is None else [self.region.center_of(known)]
        chosen = [query.note["center"] for query in view.trials.queries if "center" in query.note]
        if chosen:
            seeds.append(np.array(chosen[-3:]))
        x, value, _ = maximin(
            BeliefScore(belief, UpperBound(width)),
            self.region,
            rng=view.stream("maximize", view.step),
            seeds=np.vstack(seeds) if seeds else None,
            hints=hints,
            exclude=exclude,
        )
        return x, value

    def highest(self, view: View, belief: Belief, width: float, hints: Array | None = None) -> float:
        return self.best(view, belief, width, hints)[1]

    def lowest(self, belief: Belief, width: float, center: Any, hints: Array | None = None) -> float:
        return self.least(belief, -width, center, hints)[0]

    def measured(self, trials: Trials) -> list[Any]:
        found: list[Any] = self.region.center_of(trials.data()[0]).tolist()
        return found

    def answer(self, center: Any) -> dict[str, Any]:
        return {"x": center, "params": self.region.centers.params(center)}


def judge_of(reach: Sets | Region) -> SetJudge | RegionJudge:
    """Return what knows the worst cases over what an adversary reaches.

    >>> from surefoot import Ball, Candidates
    >>> judge_of(Ball(1.0).on(Candidates([0.0, 1.0, 2.0]))).sets.members(0)
    array([0, 1])
    """
    return SetJudge(reach) if isinstance(reach, Sets) else RegionJudge(reach)


def robust_bounds(policy: ModelPolicy, reach: Sets | Region, width: float, centers: Any) -> Bounds:
    """Return worst cases of the lower bound, the mean and the upper bound of some centers, shape (k,) each.

    Parameters
    ----------
    policy : ModelPolicy
        Whose belief is used, given all measurements.
    reach : Sets or Region
        What an adversary reaches on the policy's domain.
    width : float
        Standard deviations between mean and bound.
    centers : array of shape (k,) or (k, d)
        Centers: numbers on candidates, points elsewhere.

    >>> from surefoot import GP, SE, Ball, Candidates, GPUCB
    >>> line = Candidates([0.0, 1.0, 2.0])
    >>> policy = GPUCB(line, gp=GP(SE(0.1), noise=1e-6), seed=0)
    >>> for x, y in [(0.0, 1.0), (1.0, 5.0), (2.0, 4.0)]:
    ...     policy.tell([x], y)
    >>> robust_bounds(policy, Ball(1.0).on(line), 2.0, np.arange(3))[1].round(3)
    array([1., 1., 4.])
    """
    view = policy.view()
    return judge_of(reach).bounds(view.believe(), width, centers, view.hints())


class Judged(NamedTuple):
    """A center, and the lower bound, mean and upper bound of its worst case."""

    center: Any
    lower: float
    mean: float
    upper: float


def judged(
    judge: WorstCases,
    belief: Belief,
    width: float,
    centers: Sequence[Any],
    *,
    own: Array | None = None,
    show_own: bool = True,
    hints: Array | None = None,
) -> Judged:
    """Return the center whose worst case has the highest lower bound.

    Parameters
    ----------
    judge, belief, width
        Who knows the worst cases, under which belief, how many standard deviations from the mean.
    centers : list
        Centers that may be reported, in the order they were chosen; the first of the best wins.
    own : array of shape (k,), optional
        What they are judged by, instead of the lower bound now.
    show_own : bool
        Whether that is the lower bound shown too; a bound of an earlier fit says nothing about this one's mean.
    hints : array of shape (m, e), optional
        Encoded points where bounds may dip.

    >>> from surefoot import GP, SE, Ball, Candidates
    >>> from surefoot.belief import GridPosterior
    >>> line = Candidates([0.0, 1.0, 2.0])
    >>> belief = GridPosterior.condition(GP(SE(0.1), noise=1e-6), line.points, [0, 1, 2], [1.0, 5.0, 4.0])
    >>> print(judged(judge_of(Ball(1.0).on(line)), belief, 2.0, [0, 1, 2]).center)
    2
    """
    distinct = np.array(centers) if own is not None else np.array(list(dict.fromkeys(map(_hashable, centers))))
    lower, mean, upper = judge.bounds(belief, width, distinct, hints)
    marks = lower if own is None else own
    best = int(np.argmax(marks))
    shown = marks if show_own else lower
    return Judged(distinct[best], float(shown[best]), float(mean[best]), float(upper[best]))


def report(judge: WorstCases, found: Judged, rule: str) -> Recommendation:
    """Return a center and what is known of its worst case as a recommendation; ``rule`` says it in words.

    >>> from surefoot import Ball, Candidates
    >>> judge = judge_of(Ball(1.0).on(Candidates([0.0, 1.0, 2.0])))
    >>> report(judge, Judged(2, 3.9, 4.0, 4.1), "best worst case").x
    array([2.])
    """
    answer = judge.answer(found.center)
    return Recommendation(**answer, mean=found.mean, lower=found.lower, upper=found.upper, rule=rule)


def _hashable(center: Any) -> Any:
    return tuple(center) if isinstance(center, list) else center
