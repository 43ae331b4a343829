"""Hyperband and ASHA: many short runs, of which the best are continued.

Question: which of many configurations is best, if a short run says something about a long one? No model.

Successive halving runs n configurations to r epochs each, keeps the best 1/η of them, runs these to η r epochs, and so
on to R. **Hyperband** (Li et al. 2017, Algorithm 1) goes through *brackets* that start with many short or few long
runs: s = s_max, ..., 0 with s_max = ⌊log_η R⌋, n = ⌈(s_max + 1) η^s/(s + 1)⌉ and r = R η^(−s), and begins again after
the last. **ASHA** (Li et al. 2020, Algorithm 2) promotes a configuration as soon as it is among the best 1/η of its
rung, so that no worker ever waits.

A query's ``fidelity`` is the epoch to run to, its note names the bracket and rung, and ``resume`` the query whose run
it continues: whoever keeps checkpoints pays for the further epochs only, as the papers count them; whoever does not may
start again. Reports get the advice to stop at the fidelity.

Guarantee: Hyperband finds a good configuration with at most a logarithmic factor more epochs than the best successive
halving with a known rate of convergence. Differences: r is rounded to whole epochs, at least one; with several runs
under way a bracket that waits for its last runs lets the next one begin.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Unpack

import numpy as np

from surefoot.arguments import whole
from surefoot.domain import Domain
from surefoot.loop.options import Options
from surefoot.loop.types import Proposal, Query, Recommendation
from surefoot.policy.epochs.runs import RunPolicy
from surefoot.policy.search import first_free

__all__ = ["ASHA", "Hyperband", "brackets"]


def brackets(epochs: int, eta: int = 3) -> list[list[tuple[int, float]]]:
    """Return the rungs (configurations, epochs) of every bracket, in the order they are run.

    >>> [[(n, round(r, 2)) for n, r in bracket][0] for bracket in brackets(80)]
    [(27, 2.96), (12, 8.89), (6, 26.67), (4, 80.0)]
    """
    top = _top(epochs, eta)
    plan = []
    for s in range(top, -1, -1):
        n = math.ceil((top + 1) * eta**s / (s + 1))
        plan.append([(n // eta**i, epochs * float(eta) ** (i - s)) for i in range(s + 1)])
    return plan


def _top(epochs: int, eta: int) -> int:
    """⌊log_η R⌋, without the rounding of logarithms."""
    top = 0
    while eta ** (top + 1) <= epochs:
        top += 1
    return top


class _Halving(RunPolicy):
    """Shared by both: fresh and continued runs, and the answer."""

    fidelities = True

    def __init__(self, domain: Domain, *, epochs: int, eta: int = 3, **options: Unpack[Options]) -> None:
        super().__init__(domain, epochs=epochs, **options)
        whole(eta, "eta", 2)
        self.eta = int(eta)

    def _new(self, step: int, epochs: float, note: Mapping[str, Any]) -> Proposal:
        """A fresh random configuration."""
        points = self.domain.sample(16, self.stream("sample", step))
        found = first_free(self.domain, points, self._blocked(), lambda: self.stream("ties", step))
        return Proposal(found.x, found.index, fidelity=_whole(epochs), note=note)

    def _promote(self, id: int, epochs: float, note: Mapping[str, Any]) -> Proposal:
        """The same configuration, further."""
        query = self._queries[id]
        return Proposal(query.x, fidelity=_whole(epochs), note={**note, "resume": id})

    def _open(self) -> list[Query]:
        """All queries but the cancelled ones."""
        return [query for query in self._queries if query.id in self._pending or query.id in self._told]

    def _ranked(self, closed: list[int]) -> list[int]:
        """Closed runs, the best first, failed ones last."""
        scores = {id: self._told[id].value for id in closed}
        return sorted(closed, key=lambda id: (math.inf if (score := scores[id]) is None else -score, id))

    def _promotable(self, id: int) -> bool:
        busy = {query.x.tobytes() for query in self._pending.values()}
        failed = self._told[id].failed
        return self.repeats and not failed and self._queries[id].x.tobytes() not in busy

    def _recommend(self) -> Recommendation:
        """The best value among the longest runs: shorter ones are not comparable."""
        good = [o for o in self._observations if not o.failed]
        length = {o: self.runs.length_of(o) for o in good}
        longest = max(length.values())
        best = max((o for o in length if length[o] == longest), key=lambda o: o.value or -math.inf)
        return self._recommendation(best.x, mean=best.value, rule="best value among the longest runs")


class Hyperband(_Halving):
    """Brackets of successive halving, from many short to few long runs, over and over.

    Parameters
    ----------
    domain : Box, Candidates or Space
        Where configurations may lie.
    epochs : int
        R, the longest run.
    eta : int
        η: one in so many is continued.
    **options
        ``seed``, ``repeats`` (False: nothing is continued), ``journal``.

    >>> from surefoot import Box
    >>> policy = Hyperband(Box([(0.0, 1.0)]), epochs=9, seed=0)
    >>> for _ in range(10):
    ...     query = policy.ask()
    ...     policy.tell(query, -abs(query.x[0] - 0.3))
    >>> query.fidelity, "resume" in query.note  # nine runs of one epoch; the best three go on
    (3, True)
    """

    def _choose(self, step: int, context: Mapping[str, Any]) -> Proposal:
        plan = brackets(self.epochs, self.eta)
        members: dict[tuple[int, int], list[int]] = {}
        for query in self._open():
            members.setdefault((query.note["bracket"], query.note["rung"]), []).append(query.id)
        number = 0
        while True:
            rungs = plan[number % len(plan)]
            proposal = self._next(step, number, rungs, members)
            if proposal is not None:
                return proposal
            number += 1

    def _next(
        self, step: int, number: int, rungs: list[tuple[int, float]], members: dict[tuple[int, int], list[int]]
    ) -> Proposal | None:
        """What is to be run next in one bracket; None if it is complete, or waits for runs under way."""
        here = members.get((number, 0), [])
        if len(here) < rungs[0][0]:
            return self._new(step, rungs[0][1], {"bracket": number, "rung": 0})
        for rung in range(1, len(rungs)):
            if any(id not in self._told for id in here):
                return None
            above = members.get((number, rung), [])
            taken = {self._queries[id].note["resume"] for id in above}
            for id in self._ranked(here)[: rungs[rung][0]]:
                if id not in taken and self._promotable(id):
                    return self._promote(id, rungs[rung][1], {"bracket": number, "rung": rung})
            here = above
        return None


class ASHA(_Halving):
    """Asynchronous successive halving: continue whatever is among the best of its rung, else start something new.

    Parameters
    ----------
    domain : Box, Candidates or Space
        Where configurations may lie.
    epochs : int
        R, the longest run.
    eta : int
        η: one in so many is continued.
    shortest : int
        r, epochs of the lowest rung.
    **options
        ``seed``, ``repeats`` (False: nothing is continued), ``journal``.

    >>> from surefoot import Box
    >>> policy = ASHA(Box([(0.0, 1.0)]), epochs=9, seed=0)
    >>> for _ in range(4):
    ...     query = policy.ask()
    ...     policy.tell(query, -abs(query.x[0] - 0.3))
    >>> [query.fidelity for query in policy.queries]
    [1, 1, 1, 3]
    """

    def __init__(
        self, domain: Domain, *, epochs: int, eta: int = 3, shortest: int = 1, **options: Unpack[Options]
    ) -> None:
        super().__init__(domain, epochs=epochs, eta=eta, **options)
        if not isinstance(shortest, (int, np.integer)) or not 1 <= shortest <= self.epochs:
            raise ValueError(f"shortest must be a whole number in 1..{self.epochs}, got {shortest!r}")
        self.shortest = int(shortest)

    def _choose(self, step: int, context: Mapping[str, Any]) -> Proposal:
        top = _top(self.epochs // self.shortest, self.eta)
        rungs: list[list[int]] = [[] for _ in range(top + 1)]
        promoted = set()
        for query in self._open():
            rungs[query.note["rung"]].append(query.id)
            promoted.add(query.note.get("resume"))
        for rung in range(top - 1, -1, -1):  # Algorithm 2, get_job: the highest rung first
            closed = [id for id in rungs[rung] if id in self._told]
            for id in self._ranked(closed)[: len(closed) // self.eta]:
                if id not in promoted and self._promotable(id):
                    return self._promote(id, self._epochs(rung + 1, top), {"rung": rung + 1})
        return self._new(step, self._epochs(0, top), {"rung": 0})

    def _epochs(self, rung: int, top: int) -> float:
        """Epochs of a rung: r η^k, the top one as long as a complete run."""
        return self.epochs if rung == top else self.shortest * self.eta**rung


def _whole(epochs: float) -> int:
    return max(1, round(epochs))
