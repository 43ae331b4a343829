"""Adversaries: which τ elements of a selection hurt most when they are lost?

Question: min f(S \\ E) over E ⊆ S with |E| = τ (6.6), for a monotone f. NP-hard even to approximate well, so there are
exact methods for what is small, and heuristics whose minimum is an *upper* bound on the worst case:

| function | rule | answer |
|---|---|---|
| :func:`exhaustive` | every E | optimal; C(k, τ) sets |
| :func:`branch_and_bound` | remove or keep one element after the other | optimal, or a bound at the time limit |
| :func:`~surefoot.select.milp.coverage_milp` | integer program | optimal, or a bound at the time limit; coverage |
| :func:`greedy_min` | remove the largest loss | heuristic |
| :func:`greedy_max` | remove what greedy selection would take first | heuristic |
| :func:`random_min` | remove one of the τ largest losses, at random | heuristic, best of some restarts |
| :func:`stochastic_min` | remove the largest loss in a random sample | heuristic, best of some restarts |
| :func:`local_search` | swap one lost element for another while that hurts | improves any of them |
| :func:`heuristics` | all of these, then swaps | heuristic |
| :func:`attack` | the strongest that the size allows | says which |

Every answer is a :class:`Deletion`, with the set, the value left, whether it is proved to be the minimum, and a lower
bound on the minimum.

>>> from surefoot.select import Coverage
>>> objective = Coverage([[1, 1, 1, 0], [0, 0, 0, 1], [1, 1, 0, 0]])
>>> found = attack(objective, [0, 1, 2], tau=1)
>>> found.removed, found.value, found.status
((0,), 3.0, 'optimal')

References: Bogunovic, Mitrović, Scarlett & Cevher 2017 and Bogunovic, Zhao & Cevher 2018 (the adversaries of their
experiments); (6.6) is that of Bogunovic's thesis (2019). The bounds of the search tree are this library's own and stand
beside the code.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot.arguments import open_unit, whole
from surefoot.moved import renamed
from surefoot.select.greedy_family import Random, greedy
from surefoot.select.objective import SetFunction, State, as_elements
from surefoot.select.selection import TIES, first_best

__all__ = [
    "Deletion",
    "attack",
    "branch_and_bound",
    "exhaustive",
    "greedy_max",
    "greedy_min",
    "heuristics",
    "local_search",
    "random_min",
    "stochastic_min",
]
__getattr__ = renamed(__name__, {"Attack": "Deletion"})

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
Elements = ArrayLike | Iterable[int]
Status = Literal["optimal", "time limit", "heuristic"]

EXHAUSTIVE = 200_000  # sets up to which trying all of them is the quickest proof
LARGEST = 50_000_000  # sets above which trying all of them is refused


@dataclass(frozen=True)
class Deletion:
    """A deletion and what it leaves.

    Attributes
    ----------
    removed : tuple of int
        The deleted elements, in increasing order.
    value : float
        What is left of the objective.
    status : {"optimal", "time limit", "heuristic"}
        Whether ``value`` is proved to be the minimum; if not, why.
    bound : float
        No deletion of this size leaves less than this.
    seconds : float
        Time it took; no part of a comparison of two attacks.
    method : str
        The adversary's name.

    >>> Deletion((3,), 8.0, "heuristic", bound=6.0).gap
    0.25
    """

    removed: tuple[int, ...]
    value: float
    status: Status
    bound: float
    seconds: float = field(default=0.0, compare=False)
    method: str = ""

    @property
    def proved(self) -> bool:
        """Whether no deletion leaves less."""
        return self.status == "optimal"

    @property
    def gap(self) -> float:
        """By which share of ``value`` the true minimum may be lower."""
        return max(self.value - self.bound, 0.0) / self.value if self.value > 0.0 else 0.0


def problem(objective: SetFunction, S: Elements, tau: int) -> tuple[Indices, int]:
    """The checked selection and number of deletions."""
    selected, deletions = as_elements(S, objective.n), whole(tau, "tau", 0)
    if deletions > selected.size:
        raise ValueError(f"tau = {deletions} elements cannot be removed from a selection of {selected.size}")
    return selected, deletions


def root_bound(objective: SetFunction, S: Indices, tau: int) -> float:
    """No deletion of τ elements leaves less: one of the τ + 1 largest singletons survives; see also b3 below."""
    singles = np.sort(objective.singletons()[S])[::-1]
    bound = float(singles[tau]) if tau < S.size else 0.0
    if objective.submodular is True:
        bound = max(bound, objective.value(S) - float(singles[:tau].sum()))
    return bound


def finish(objective: SetFunction, S: Indices, tau: int, removed: Iterable[int], start: float, method: str) -> Deletion:
    """The attack of a heuristic; its value is evaluated from scratch."""
    gone = tuple(sorted(int(element) for element in removed))
    value = objective.value(np.setdiff1d(S, gone))
    bound = min(root_bound(objective, S, tau), value)
    proved: Status = "optimal" if tau in (0, S.size) else "heuristic"
    return Deletion(gone, value, proved, value if proved == "optimal" else bound, time.perf_counter() - start, method)


def exhaustive(objective: SetFunction, S: Elements, tau: int) -> Deletion:
    """Return the worst deletion by trying every one, the last element of each by all losses at once.

    Parameters
    ----------
    objective : SetFunction
        What the selection is worth.
    S : elements
        The selection.
    tau : int
        How many elements are lost.

    >>> from surefoot.select import Coverage
    >>> exhaustive(Coverage([[1, 1, 1, 0], [0, 0, 0, 1], [1, 1, 0, 0]]), [0, 2], tau=1).value
    2.0
    """
    start = time.perf_counter()
    selected, deletions = problem(objective, S, tau)
    if math.comb(selected.size, deletions) > LARGEST:
        raise ValueError(
            f"{math.comb(selected.size, deletions)} deletions are too many to try; use branch_and_bound or attack"
        )
    if deletions in (0, selected.size):
        return finish(objective, selected, deletions, selected[:deletions], start, "exhaustive")
    best: tuple[float, tuple[int, ...]] = (math.inf, ())
    stack: list[tuple[State, int, tuple[int, ...]]] = [(objective.state(selected), 0, ())]
    while stack:
        state, first, removed = stack.pop()
        if len(removed) == deletions - 1:
            # Elements before ``first`` were decided to stay, and those from it on are the last ones of the list.
            left = state.value - state.losses()[first:]
            place = int(np.argmin(left))
            if left[place] < best[0]:
                best = float(left[place]), (*removed, state.selected[first + place])
            continue
        last = len(state.selected) - (deletions - 1 - len(removed))
        for place in range(last - 1, first - 1, -1):
            smaller = state.copy()
            smaller.remove(state.selected[place])
            stack.append((smaller, place, (*removed, state.selected[place])))
    removed = tuple(sorted(best[1]))
    value = objective.value(np.setdiff1d(selected, removed))
    return Deletion(removed, value, "optimal", value, time.perf_counter() - start, "exhaustive")


def greedy_min(objective: SetFunction, S: Elements, tau: int) -> Deletion:
    """Return the deletion that removes the element of largest loss, τ times.

    >>> from surefoot.select import Coverage
    >>> greedy_min(Coverage([[1, 1, 1, 0], [0, 0, 0, 1], [1, 1, 0, 0]]), [0, 1, 2], tau=2).removed
    (0, 2)
    """
    start = time.perf_counter()
    selected, deletions = problem(objective, S, tau)
    state = objective.state(np.sort(selected))
    slack = TIES * float(objective.singletons().max())
    removed = []
    for _ in range(deletions):
        removed.append(state.selected[first_best(state.losses(), slack)])  # argmin f(S \ (E ∪ e))
        state.remove(removed[-1])
    return finish(objective, selected, deletions, removed, start, "greedy_min")


def greedy_max(objective: SetFunction, S: Elements, tau: int) -> Deletion:
    """Return the deletion of the τ elements that greedy selection takes first out of S.

    >>> from surefoot.select import Coverage
    >>> greedy_max(Coverage([[1, 1, 1, 0], [0, 0, 0, 1], [1, 1, 0, 0]]), [0, 1, 2], tau=2).removed
    (0, 1)
    """
    start = time.perf_counter()
    selected, deletions = problem(objective, S, tau)
    removed = greedy(objective, deletions, among=selected).order  # argmax f(E ∪ e), τ times
    return finish(objective, selected, deletions, removed, start, "greedy_max")


def random_min(objective: SetFunction, S: Elements, tau: int, *, restarts: int = 10, rng: Random = 0) -> Deletion:
    """Return the best of some deletions that each remove, τ times, one of the τ largest losses at random.

    >>> from surefoot.select import Coverage
    >>> random_min(Coverage([[1, 1, 1, 0], [0, 0, 0, 1], [1, 1, 0, 0]]), [0, 1, 2], tau=1).removed
    (0,)
    """
    draws = np.random.default_rng(rng)

    def pick(losses: Array, deletions: int) -> int:
        top = np.argsort(-losses, kind="stable")[:deletions]
        return int(top[draws.integers(top.size)])

    return _restarted(objective, S, tau, restarts, pick, "random_min")


def stochastic_min(
    objective: SetFunction, S: Elements, tau: int, *, epsilon: float = 0.1, restarts: int = 10, rng: Random = 0
) -> Deletion:
    """Return the best of some deletions that each remove, τ times, the largest loss in a random sample of what is left.

    A sample has ⌈(|S|/τ) ln(1/ε)⌉ elements of the current set.

    >>> from surefoot.select import Coverage
    >>> stochastic_min(Coverage([[1, 1, 1, 0], [0, 0, 0, 1], [1, 1, 0, 0]]), [0, 1, 2], tau=1).removed
    (0,)
    """
    open_unit(epsilon, "epsilon")
    draws = np.random.default_rng(rng)

    def pick(losses: Array, deletions: int) -> int:
        size = min(losses.size, math.ceil(losses.size / deletions * math.log(1.0 / epsilon)))  # (|S|/τ) ln(1/ε)
        sample = np.sort(draws.choice(losses.size, size, replace=False))
        return int(sample[np.argmax(losses[sample])])

    return _restarted(objective, S, tau, restarts, pick, "stochastic_min")


def _restarted(
    objective: SetFunction, S: Elements, tau: int, restarts: int, pick: Callable[[Array, int], int], method: str
) -> Deletion:
    start = time.perf_counter()
    selected, deletions = problem(objective, S, tau)
    whole(restarts, "restarts", 1)
    whole_state = objective.state(np.sort(selected))
    best: tuple[float, list[int]] = (math.inf, [])
    for _ in range(restarts):
        state, removed = whole_state.copy(), []
        for _ in range(deletions):
            removed.append(state.selected[pick(state.losses(), deletions)])
            state.remove(removed[-1])
        if state.value < best[0]:
            best = float(state.value), removed
    return finish(objective, selected, deletions, best[1], start, method)


def local_search(objective: SetFunction, S: Elements, found: Deletion) -> Deletion:
    """Return an attack improved by swaps: one lost element comes back and another one goes, while that hurts more.

    >>> from surefoot.select import Coverage
    >>> objective = Coverage([[1, 1, 1, 0], [0, 0, 0, 1], [1, 1, 0, 0]])
    >>> local_search(objective, [0, 1, 2], Deletion((2,), 4.0, "heuristic", bound=0.0)).removed
    (0,)
    """
    start = time.perf_counter()
    selected, _ = problem(objective, S, len(found.removed))
    if found.proved or not found.removed:
        return found
    slack = TIES * float(objective.singletons().max())
    removed, value = list(found.removed), found.value
    state = objective.state(np.setdiff1d(selected, removed))
    improved = True
    while improved:
        improved = False
        for back in list(removed):
            trial = state.copy()
            trial.add(back)
            left = trial.value - trial.losses()
            place = int(np.argmin(left))
            if left[place] < value - slack:
                gone, value, improved = trial.selected[place], float(left[place]), True
                trial.remove(gone)
                state, removed = trial, [gone, *(element for element in removed if element != back)]
    if set(removed) == set(found.removed):
        return found
    better = finish(objective, selected, len(removed), removed, start, found.method)
    return replace(better, seconds=found.seconds + better.seconds)


def heuristics(objective: SetFunction, S: Elements, tau: int, *, restarts: int = 10, rng: Random = 0) -> Deletion:
    """Return the worst of all heuristic deletions, improved by swaps.

    >>> from surefoot.select import Coverage
    >>> heuristics(Coverage([[1, 1, 1, 0], [0, 0, 0, 1], [1, 1, 0, 0]]), [0, 1, 2], tau=2).value
    1.0
    """
    start, draws = time.perf_counter(), np.random.default_rng(rng)
    S = as_elements(S, objective.n)
    made = [
        greedy_min(objective, S, tau),
        greedy_max(objective, S, tau),
        random_min(objective, S, tau, restarts=restarts, rng=draws),
        stochastic_min(objective, S, tau, restarts=restarts, rng=draws),
    ]
    worst = min(made, key=lambda one: one.value)
    return replace(local_search(objective, S, worst), seconds=time.perf_counter() - start, method="heuristics")


def branch_and_bound(
    objective: SetFunction, S: Elements, tau: int, *, seconds: float = 60.0, integral: bool = False
) -> Deletion:
    """Return the worst deletion by branch and bound, or the best found and a bound when the time is over.

    Parameters
    ----------
    objective, S, tau
        As in :func:`exhaustive`. An objective that is not submodular has only weak bounds: expect the time limit.
    seconds : float
        Time limit.
    integral : bool
        Whether the objective has whole values only, which prunes more.

    A node has removed R, keeps P and is undecided about C; r = τ − |R|, A = P ∪ C. A completion removes T ⊆ C, |T| = r,
    and leaves f(A \\ T), which is at least

    * b1 = f(P);
    * b2 = f(P) + the (r + 1)-th largest f(e | P) in C, since one of these elements survives;
    * b3 = f(A) − the sum of the r largest f(e | P) in C, for submodular f: f(T | A \\ T) ≤ Σ f(e | P).

    It branches on the undecided element of largest loss, removing it first.

    >>> from surefoot.select import Coverage
    >>> branch_and_bound(Coverage([[1, 1, 1, 0], [0, 0, 0, 1], [1, 1, 0, 0]]), [0, 1, 2], tau=2).removed
    (0, 2)
    """
    start = time.perf_counter()
    if not seconds > 0:
        raise ValueError(f"seconds must be positive, got {seconds!r}")
    selected, deletions = problem(objective, S, tau)
    best = heuristics(objective, selected, deletions, restarts=1)
    if best.proved:
        return replace(best, method="branch_and_bound")
    slack = 1e-12 * float(objective.value(selected))
    value, removed = best.value, best.removed
    # (lower bound, removed, undecided, state of what is kept, state of what is not removed)
    stack: list[tuple[float, tuple[int, ...], Indices, State, State]] = [
        (best.bound, (), selected, objective.state(), objective.state(selected))
    ]
    status: Status = "optimal"
    while stack:
        if time.perf_counter() - start > seconds:
            status = "time limit"
            break
        bound, gone, open_, kept, present = stack.pop()
        if bound >= value - slack:
            continue
        r = deletions - len(gone)
        if r == 0 or open_.size == r:  # a leaf: nothing more goes, or all that is undecided goes
            left = present.value if r == 0 else kept.value
            if left < value - slack:
                value, removed = float(left), gone if r == 0 else (*gone, *open_.tolist())
            continue
        gains = np.sort(kept.gains(open_))[::-1]
        bound = max(bound, kept.value + float(gains[r]))  # b2, which is never below b1
        if objective.submodular is True:
            bound = max(bound, present.value - float(gains[:r].sum()))  # b3
        if integral:
            bound = math.ceil(bound - 1e-6)
        if bound >= value - slack:
            continue
        losses = dict(zip(present.selected, present.losses(), strict=True))
        place = int(np.argmax([losses[int(element)] for element in open_]))
        element, others = int(open_[place]), np.delete(open_, place)
        with_it, without = kept.copy(), present.copy()
        with_it.add(element)
        without.remove(element)
        stack.append((bound, gone, others, with_it, present))
        stack.append((bound, (*gone, element), others, kept, without))
    lowest = min([value, *(node[0] for node in stack)]) if status == "time limit" else value
    exact = objective.value(np.setdiff1d(selected, removed))
    return Deletion(
        tuple(sorted(int(element) for element in removed)),
        exact,
        status,
        exact if status == "optimal" else min(lowest, exact),
        time.perf_counter() - start,
        "branch_and_bound",
    )


def attack(objective: SetFunction, S: Elements, tau: int, *, seconds: float = 60.0, rng: Random = 0) -> Deletion:
    """Return the strongest deletion that size and time allow.

    All sets where there are at most 200,000 of them; else the integer program for coverage, branch and bound for other
    submodular objectives, and the heuristics for the rest.

    Parameters
    ----------
    objective, S, tau
        As in :func:`exhaustive`.
    seconds : float
        Time limit of the integer program and of branch and bound.
    rng : Generator or int
        For the heuristics.

    >>> from surefoot.select import RSquared
    >>> X = np.random.default_rng(0).normal(size=(60, 40))
    >>> attack(RSquared(X, X[:, 0] + X[:, 1]), range(40), tau=8).status
    'heuristic'
    """
    from surefoot.select.milp import coverage_milp, covers

    selected, deletions = problem(objective, S, tau)
    if math.comb(selected.size, deletions) <= EXHAUSTIVE:
        return exhaustive(objective, selected, deletions)
    if covers(objective, selected):
        return coverage_milp(objective, selected, deletions, seconds=seconds)
    if objective.submodular is True:
        return branch_and_bound(objective, selected, deletions, seconds=seconds)
    return heuristics(objective, selected, deletions, rng=rng)
