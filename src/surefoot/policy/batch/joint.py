"""Choosing several points together: greedily, then by exchanges.

A rule that scores a *batch* cannot be asked for one point after the other: the first point depends on how many follow.
:class:`Together` plans the points of one ``ask(n)`` together. It adds them one by one, each the best given those
before, and then goes through the batch again: every point is taken out and replaced by the best one given all the
others, until nothing changes. Every step raises the score of the whole batch, so the plan is at least as good as the
greedy one, and no single exchange can improve it.

A subclass gives the score of one further point given the others of the batch, and knows what to make of the points that
are pending already. A batch is a set: a point is in it twice only where measurements are noisy and no other is left.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot.arguments import whole
from surefoot.belief.protocol import EVERY, Belief
from surefoot.loop.trials import Place
from surefoot.loop.types import Proposal
from surefoot.policy.moves import MoveBelief, best_move
from surefoot.policy.view import View

__all__ = ["Together"]

Array = NDArray[np.float64]
Part = Callable[[Any], Array]  # the score of a batch as a function of one of its points, the others being fixed
GAIN = 1e-9  # an exchange must raise the score by this share of the range of scores: ties do not go round in circles


class Together(ABC):
    """A rule that plans the points of one ``ask(n)`` together.

    Parameters
    ----------
    sweeps : int
        How many times every point of a batch is reconsidered given the others; 0 is the greedy batch.
    """

    def __init__(self, sweeps: int) -> None:
        self.sweeps = whole(sweeps, "sweeps")
        self._plan: dict[int, Proposal] = {}
        self._planned: tuple[int, int] | None = None  # events known when it was made, and where its ask ends

    @abstractmethod
    def part(self, view: View, others: Sequence[Place]) -> Part:
        """Return the score of one further point of a batch of ``view.left`` points, pending ones not counted.

        It is a function of points as a belief names them, with a gradient where these lie in between.
        """

    @abstractmethod
    def score_moves(self, view: View, moves: MoveBelief, belief: Belief) -> Array:
        """Return one score for each move (A,): its stops are a batch."""

    def level(self, moves: MoveBelief, belief: Belief) -> float | Array:
        """Return what the scores of all moves contain; nothing by default."""
        return 0.0

    def propose(self, view: View) -> Proposal:
        """Return the next point of the plan, or a move."""
        if view.domain.travels:
            with view.hallucinated() as belief:
                return best_move(view, belief, self)
        ask = (len(view.trials.events), view.step + view.left)
        if self._planned != ask or view.step not in self._plan:
            places, self._planned = self._together(view), ask
            note = {"batch": [view.step, view.step + view.left - 1]} if view.left > 1 else {}  # for who reads a journal
            plan = [Proposal(x) if row is None else Proposal(index=row) for x, row in places]
            self._plan = {view.step + i: replace(proposal, note=note) for i, proposal in enumerate(plan)}
        return self._plan[view.step]

    def _together(self, view: View) -> list[Place]:
        """Plan the points of all queries that are left: greedily, then by exchanges."""
        chosen: list[Place] = []
        for i in range(view.left):
            chosen.append(self._best(view, chosen, i)[0])
        for sweep in range(1, self.sweeps + 1) if view.left > 1 else ():
            changed = False
            for i in range(view.left):
                others = [*chosen[:i], *chosen[i + 1 :]]
                place, gain = self._best(view, others, sweep * view.left + i, chosen[i])
                if gain > 0.0:
                    chosen[i], changed = place, True
            if not changed:
                break
        return chosen

    def _best(
        self, view: View, others: Sequence[Place], attempt: int, present: Place | None = None
    ) -> tuple[Place, float]:
        """The best further point, and by how much (0 if hardly) it is better than the present one."""
        score, domain, blocked = self.part(view, others), view.domain, list(view.blocked())
        again = domain.size is not None and domain.count([*blocked, *others]) >= domain.size
        taken = blocked if again and not view.spares_pending else [*blocked, *others]
        seeds = None
        if not domain.listed:
            known = view.incumbents(view.believe())
            starts = [*([] if known is None else known), *([] if present is None else [present[0]])]
            seeds = np.array(starts) if starts else None
        rng = view.stream("batch", view.step * 4096 + attempt)
        found = domain.maximize(score, rng=rng, seeds=seeds, exclude=domain.excluding(taken))
        place = (found.x, found.row)
        if present is None:
            return place, 0.0
        x, row = present
        before = float(score(domain.address(x[None], None if row is None else np.array([row])))[0])
        return place, _gain(found.value - before, score(EVERY) if domain.listed else np.array([found.value, before]))


def _gain(difference: float, values: Array) -> float:
    """The difference where it is more than rounding, else 0."""
    finite = values[np.isfinite(values)]
    scale = float(finite.max() - finite.min()) + 1e-3 * float(np.abs(finite).max()) if finite.size else 1.0
    return float(difference) if difference > GAIN * scale else 0.0
