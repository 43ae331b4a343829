"""Choosing several points together: greedily, then by exchanges.

A rule that scores a *batch* cannot be asked for one point after the other: the first point depends on how many follow.
:class:`JointRule` plans the points of one ``ask(n)`` together. It adds them one by one, each the best given those
before, and then goes through the batch again: every point is taken out and replaced by the best one given all the
others, until nothing changes. Every step raises the score of the whole batch, so the plan is at least as good as the
greedy one, and no single exchange can improve it.

A subclass gives the score of one further point given the others of the batch, and knows what to make of the points that
are pending already. A batch is a set: a point is in it twice only where measurements are noisy and no other is left.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from surefoot.arguments import whole
from surefoot.domain import Candidates, Domain
from surefoot.domain.search import Score, argmax, maximize
from surefoot.loop.policy import Proposal
from surefoot.policy.routes.moves import MoveRule

__all__ = ["JointRule", "Listed", "Place"]

Array = NDArray[np.float64]
GAIN = 1e-9  # an exchange must raise the score by this share of the range of scores: ties do not go round in circles


@dataclass(frozen=True)
class Place:
    """A point of a batch: where it lies, and which candidate it is.

    >>> Place(np.array([0.5])).index is None
    True
    """

    x: Array
    index: int | None = None


@dataclass(frozen=True, eq=False)
class Listed:
    """The scores of all candidates, shape (M,).

    >>> Listed(np.array([0.5, 2.0])).values.argmax()
    np.int64(1)
    """

    values: Array


# The score of a batch as a function of one of its points, the others being fixed.
Part = Listed | Score


class JointRule(MoveRule):
    """Base of the rules that plan the points of one ``ask(n)`` together.

    Parameters
    ----------
    domain : Domain
        Where points may lie.
    sweeps : int
        How many times every point of a batch is reconsidered given the others; 0 is the greedy batch.
    **options
        As in :class:`~surefoot.policy.base.ModelPolicy`.
    """

    def __init__(self, domain: Domain, *, sweeps: int = 2, **options: Any) -> None:
        super().__init__(domain, **options)
        self.sweeps = whole(sweeps, "sweeps")
        self._until = 0  # the number of queries when the present ask is done
        self._plan: dict[int, Proposal] = {}

    @abstractmethod
    def _part(self, others: Sequence[Place], size: int, step: int) -> Part:
        """Return the score of one further point of a batch of ``size`` points, pending ones not counted."""

    def _blocked(self, *, sparing: bool = False) -> list[tuple[Array, int | None]]:
        return super()._blocked(sparing=True)

    def _begin(self, count: int) -> None:
        self._until, self._plan = len(self._queries) + count, {}

    def _rule(self, step: int, context: Mapping[str, Any]) -> Proposal:
        if step not in self._plan:
            places = self._together(max(1, self._until - step), step)
            self._plan = {
                step + i: Proposal(place.x) if place.index is None else Proposal(index=place.index)
                for i, place in enumerate(places)
            }
            if len(places) > 1:  # the ids of a batch, for whoever reads the journal
                last = step + len(places) - 1
                self._plan = {i: replace(proposal, note={"batch": [step, last]}) for i, proposal in self._plan.items()}
        return self._plan[step]

    def _together(self, size: int, step: int) -> list[Place]:
        """Plan the points of queries ``step``, ``step`` + 1, …: greedily, then by exchanges."""
        chosen: list[Place] = []
        for i in range(size):
            chosen.append(self._best(chosen, size, step, i)[0])
        for sweep in range(1, self.sweeps + 1) if size > 1 else ():
            changed = False
            for i in range(size):
                others = [*chosen[:i], *chosen[i + 1 :]]
                place, gain = self._best(others, size, step, sweep * size + i, chosen[i])
                if gain > 0.0:
                    chosen[i], changed = place, True
            if not changed:
                break
        return chosen

    def _best(
        self, others: Sequence[Place], size: int, step: int, attempt: int, present: Place | None = None
    ) -> tuple[Place, float]:
        """The best further point, and by how much (0 if hardly) it is better than the present one."""
        part = self._part(others, size, step)
        rng = self.stream("batch", step * 4096 + attempt)
        if isinstance(self.domain, Candidates):
            values = cast(Listed, part).values
            taken = self._excluded_rows()
            apart = taken.copy()
            apart[self.domain.copies_of([cast(int, place.index) for place in others])] = True
            full = bool(apart.all()) and not self.spares_pending
            index = argmax(values, rng=rng, exclude=taken if full else apart)
            if present is None:
                return Place(self.domain.points[index], index), 0.0
            gain = _gain(values[index] - values[present.index], values)
            return Place(self.domain.points[index], index), gain
        score = cast(Score, part)
        known = self._incumbents(self.posterior())
        seeds = [*([] if known is None else known), *([] if present is None else [present.x])]
        blocked = self._excluded_points()
        joined = np.vstack([blocked, *(place.x[None] for place in others)])
        again = self.domain.size is not None and len(np.unique(joined, axis=0)) >= self.domain.size
        x, value = maximize(
            score,
            self.domain,
            rng=rng,
            seeds=np.array(seeds) if seeds else None,
            exclude=blocked if again and not self.spares_pending else joined,
        )
        if present is None:
            return Place(x), 0.0
        before = float(score(self.domain.encode(present.x[None]))[0])
        return Place(x), _gain(value - before, np.array([value, before]))


def _gain(difference: float, values: Array) -> float:
    """The difference where it is more than rounding, else 0."""
    finite = values[np.isfinite(values)]
    scale = float(finite.max() - finite.min()) + 1e-3 * float(np.abs(finite).max()) if finite.size else 1.0
    return float(difference) if difference > GAIN * scale else 0.0
