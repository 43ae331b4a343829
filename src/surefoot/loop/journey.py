"""A journey: where a vehicle stands, and what it may still do, as its told moves say.

>>> from surefoot.domain import MoveTable
>>> paths = Paths([0.0, 1.0, 2.0], MoveTable({0: [[1]], 1: [[2], [0]]}), start=0, budget=2)
>>> journey = Journey.of(paths, [], {})
>>> journey.place, journey.stages, journey.options().tolist()
(0, 2, [[1]])
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from surefoot.domain import Paths
from surefoot.errors import BudgetSpent, Exhausted
from surefoot.loop.types import Outcome, Query

__all__ = ["Journey"]


@dataclass(frozen=True)
class Journey:
    """The state of a vehicle on ``Paths``.

    Attributes
    ----------
    domain : Paths
        Where it moves.
    place : int
        Where it stands: the last stop of the latest move that was told, failed or not; else the start.
    spent : int
        Stops made so far, missed ones included.
    begun : bool
        Whether the start was measured on the policy's own request, or need not be.

    >>> from surefoot.domain import MoveTable
    >>> paths = Paths([0.0, 1.0], MoveTable({0: [[1]]}), start=0)
    >>> move = Query(0, paths.points[[1]], note={"stops": [1]})
    >>> Journey.of(paths, [move], {0: Outcome(values=[None])}).place
    1
    """

    domain: Paths
    place: int
    spent: int
    begun: bool

    @classmethod
    def of(cls, domain: Paths, queries: Sequence[Query], told: Mapping[int, Outcome]) -> Journey:
        """Return where the told ones of the queries have led."""
        made = [queries[id] for id in sorted(told)]
        moves = [query.note["stops"] for query in made if "start" not in query.note]
        place = moves[-1][-1] if moves else domain.start
        begun = not domain.include_start or bool(made)
        return cls(domain, place, sum(len(stops) for stops in moves), begun)

    @property
    def stages(self) -> int | None:
        """How many moves the budget still allows; None without a budget."""
        return None if self.domain.budget is None else (self.domain.budget - self.spent) // self.domain.length

    def options(self) -> NDArray[np.intp]:
        """Return the moves to choose from, shape (A, k).

        Raises
        ------
        BudgetSpent
            Too few stops are left for another move.
        Exhausted
            The vehicle stands at a dead end.

        >>> from surefoot.domain import MoveTable
        >>> Journey(Paths([0.0, 1.0], MoveTable({0: [[1]]}), start=0), 1, 1, True).options()
        Traceback (most recent call last):
        ...
        surefoot.errors.Exhausted: the vehicle stands at place 1, a dead end: no move leads away from it
        """
        if self.stages is not None and self.stages < 1:
            length, budget = self.domain.length, self.domain.budget
            raise BudgetSpent(f"{self.spent} of {budget} stops were made; another move takes {length}")
        moves = self.domain.moves(self.place)
        if not len(moves):
            raise Exhausted(f"the vehicle stands at place {self.place}, a dead end: no move leads away from it")
        return moves
