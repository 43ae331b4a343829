"""Robust selectors: k elements whose value stays large after the loss of any τ of them.

Question: which S with |S| = k has the largest min f(S \\ E) over all E ⊆ S with |E| = τ, for a monotone f (7.1)?

The first three algorithms build a robust part S₀ in buckets and fill up with a greedy part S₁. Every bucket, and S₁, is
chosen *from the empty set* out of the elements not yet taken: earlier picks shrink the ground set and never enter the
gains. They differ in the list of bucket sizes alone (:func:`buckets`):

| function | buckets | meant for |
|---|---|---|
| :func:`pro` | ⌈τ/2ⁱ⌉ of size 2ⁱη, for i = 0, ..., ⌈log₂ τ⌉ | submodular f, τ = o(k) |
| :func:`osu` | τ of size τ (or τ log₂ k) | submodular f, τ = o(√k) |
| :func:`oblivious_greedy` | ⌈βτ⌉ of size 1: the largest singletons | any monotone f, τ up to a share of k |

:func:`saturate` searches for the largest value that can be kept; its cost grows like kᵗ with t = τ.

Greedy selection takes the two elements below that have most together; the loss of the first leaves 1. The robust pair
leaves 2:

>>> from surefoot.select import Coverage, exhaustive, greedy
>>> objective = Coverage([[1, 1, 1, 0], [0, 0, 0, 1], [1, 1, 0, 0]])
>>> exhaustive(objective, greedy(objective, 2).order, tau=1).value
1.0
>>> exhaustive(objective, pro(objective, 2, tau=1).order, tau=1).value
2.0

Guarantees are in :mod:`surefoot.select.certificate`. With τ = 0 the first three are plain greedy selection.

References: Bogunovic, Mitrović, Scarlett & Cevher 2017, Algorithm 1 (PRO); Orlin, Schulz & Udwani 2016 (OSU);
Bogunovic, Zhao & Cevher 2018, Algorithm 1 (Oblivious-Greedy); Krause, McMahan, Guestrin & Gupta 2008 (SATURATE). Lines
are those of Algorithm 10 (PRO) and Algorithm 11 (Oblivious-Greedy) of Bogunovic's thesis (2019).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot.arguments import not_negative, one_of, whole
from surefoot.select.greedy_family import greedy, lazy_greedy
from surefoot.select.objective import SetFunction, State
from surefoot.select.selection import TIES, Selection, Selector, along, first_best, ground

__all__ = ["buckets", "oblivious_greedy", "osu", "osu_sizes", "pro", "pro_sizes", "saturate"]

Array = NDArray[np.float64]
Infeasible = Literal["raise", "truncate"]


def buckets(
    objective: SetFunction,
    sizes: Sequence[int],
    k: int,
    *,
    subroutine: Selector | None = None,
    among: ArrayLike | None = None,
    infeasible: Infeasible = "raise",
    method: str = "buckets",
) -> Selection:
    """Return buckets of the given sizes and a rest, k elements in all, each chosen as if there were no others.

    Parameters
    ----------
    objective : SetFunction
        What to maximize.
    sizes : sequence of int
        The sizes of the buckets, in order.
    k : int
        How many elements in all.
    subroutine : Selector, optional
        Chooses a bucket; by default greedy selection, evaluated lazily where the objective is submodular. Options are
        bound with ``functools.partial``.
    among : array of int, optional
        The elements to choose from; by default all.
    infeasible : {"raise", "truncate"}
        What to do when the buckets need more than k elements: raise a ValueError, or keep the first k.
    method : str
        The name that the selection carries.

    >>> from surefoot.select import Coverage
    >>> buckets(Coverage([[1, 1, 0], [1, 1, 0], [0, 1, 1], [0, 0, 1]]), [1, 2], 4).buckets
    ((0,), (1, 2))
    """
    count, rest = ground(objective, k, among)
    choose = subroutine or (lazy_greedy if objective.submodular is True else greedy)
    wanted = [whole(size, "the size of a bucket", 1) for size in sizes]
    one_of(infeasible, "infeasible", ("raise", "truncate"))
    if sum(wanted) > count and infeasible == "raise":
        raise ValueError(
            f"{method} needs {sum(wanted)} elements for its robust part, more than k = {count}; "
            "lower tau, raise k, or pass infeasible='truncate'"
        )
    before, nested = objective.evaluations.total, True
    made: list[tuple[int, ...]] = []
    left = count
    for number in range(len(wanted) + 1):
        size = min(wanted[number], left) if number < len(wanted) else left
        if size:
            # PRO, line 4: B_j ← A(2ⁱη, V∖S₀), from the empty set; when all are made, line 6: S₁ ← A(k − |S₀|, V∖S₀)
            chosen = choose(objective, size, among=rest)
            made.append(chosen.order)  # line 5: S₀ ← S₀ ∪ B_j
            nested = nested and chosen.nested
            rest = np.setdiff1d(rest, chosen.order, assume_unique=True)
            left -= size
    robust = tuple(made[: len(wanted)])
    order = tuple(element for bucket in made for element in bucket)  # line 7: S ← S₀ ∪ S₁
    values = along(objective, order)
    return Selection(order, values, robust, objective.evaluations.total - before, nested, method)


def pro_sizes(tau: int, eta: int = 1, structure: Literal["exact", "compact"] = "exact") -> list[int]:
    """Return the bucket sizes of PRO: partition i has ⌈τ/2ⁱ⌉ buckets of size 2ⁱη, i = 0, ..., ⌈log₂ τ⌉.

    ``"compact"`` keeps only the first max(τ, ⌈τ log₂ τ⌉) elements of this list, cutting the last bucket: the size that
    the authors' experiments state, for which their algorithm as printed needs more.

    >>> pro_sizes(3), sum(pro_sizes(3)), sum(pro_sizes(3, structure="compact"))
    ([1, 1, 1, 2, 2, 4], 11, 5)
    """
    deletions, unit = whole(tau, "tau", 0), whole(eta, "eta", 1)
    one_of(structure, "structure", ("exact", "compact"))
    if deletions == 0:
        return []
    last = (deletions - 1).bit_length()  # ⌈log₂ τ⌉
    sizes = [2**i * unit for i in range(last + 1) for _ in range(-(-deletions // 2**i))]  # lines 2 and 3
    if structure == "exact":
        return sizes
    cap = max(deletions, math.ceil(deletions * math.log2(deletions)))
    kept = np.minimum(sizes, np.maximum(cap - np.cumsum([0, *sizes[:-1]]), 0))
    return [int(size) for size in kept if size]


def pro(
    objective: SetFunction,
    k: int,
    tau: int,
    *,
    eta: int = 1,
    structure: Literal["exact", "compact"] = "exact",
    subroutine: Selector | None = None,
    infeasible: Infeasible = "raise",
) -> Selection:
    """Return k elements by PRO: buckets that double in size, so that in each partition one survives nearly whole.

    Parameters
    ----------
    objective, k, subroutine, infeasible
        As in :func:`buckets`.
    tau : int
        How many elements may be lost; less than k.
    eta : int
        The size of the smallest buckets. The theorem wants 4(log₂ k + 1); the authors used 1.
    structure : {"exact", "compact"}
        See :func:`pro_sizes`.

    >>> from surefoot.select import Coverage
    >>> pro(Coverage([[1, 1, 1, 0], [0, 0, 0, 1], [1, 1, 0, 0]]), 2, tau=1).order
    (0, 2)
    """
    _check(objective, k, tau)
    sizes = pro_sizes(tau, eta, structure)
    return buckets(objective, sizes, k, subroutine=subroutine, infeasible=infeasible, method="pro")


def osu_sizes(k: int, tau: int, bucket: int | Literal["tau", "tau_log_k"] = "tau") -> list[int]:
    """Return the bucket sizes of OSU: τ buckets of size τ, of size ⌈τ log₂ k⌉, or of a given size.

    >>> osu_sizes(20, 3), osu_sizes(20, 2, "tau_log_k")
    ([3, 3, 3], [9, 9])
    """
    deletions, count = whole(tau, "tau", 0), whole(k, "k", 1)
    if bucket == "tau":
        size = deletions
    elif bucket == "tau_log_k":
        size = math.ceil(deletions * math.log2(count))
    elif isinstance(bucket, str):
        raise ValueError(f"bucket must be 'tau', 'tau_log_k' or a size, got {bucket!r}")
    else:
        size = whole(bucket, "bucket", 1)
    return [max(size, 1)] * deletions


def osu(
    objective: SetFunction,
    k: int,
    tau: int,
    *,
    bucket: int | Literal["tau", "tau_log_k"] = "tau",
    subroutine: Selector | None = None,
    infeasible: Infeasible = "raise",
) -> Selection:
    """Return k elements by OSU: τ buckets of the same size, then the rest.

    Parameters
    ----------
    objective, k, tau, subroutine, infeasible
        As in :func:`pro`.
    bucket : {"tau", "tau_log_k"} or int
        The size of a bucket: that of the experiments (k ≥ τ² needed), that of the theorem, or a number.

    >>> from surefoot.select import Coverage
    >>> objective = Coverage([[1, 1, 1, 0], [0, 0, 0, 1], [1, 1, 0, 0]])
    >>> osu(objective, 2, tau=1).order == pro(objective, 2, tau=1).order
    True
    """
    _check(objective, k, tau)
    made = buckets(objective, osu_sizes(k, tau, bucket), k, subroutine=subroutine, infeasible=infeasible, method="osu")
    if bucket != "tau_log_k" or tau == 0:
        return made
    return Selection(made.order, made.values, made.buckets, made.evaluations, False, "osu")


def oblivious_greedy(
    objective: SetFunction, k: int, tau: int, *, beta: float = 1.0, subroutine: Selector | None = None
) -> Selection:
    """Return k elements by Oblivious-Greedy: the ⌈βτ⌉ largest singletons, then a greedy rest.

    Parameters
    ----------
    objective, k, tau, subroutine
        As in :func:`pro`.
    beta : float
        Size of the robust part in units of τ. The theorem wants more than 1; the authors used 0.5 and 1.

    >>> from surefoot.select import Coverage
    >>> made = oblivious_greedy(Coverage([[1, 1, 1, 0], [0, 0, 0, 1], [1, 1, 0, 0]]), 2, tau=1)
    >>> made.robust, made.rest
    ((0,), (2,))
    """
    _check(objective, k, tau)
    not_negative(beta, "beta")
    # Rounding must not make ⌈0.1 · 30⌉ a 4. A bucket of one element takes the largest singleton left.
    size = math.ceil(beta * tau - 1e-9)
    if size > k:
        raise ValueError(
            f"oblivious_greedy needs {size} elements for its robust part, more than k = {k}; lower tau or beta, or "
            "raise k"
        )
    # Algorithm 11, lines 2 to 4: the ⌈βτ⌉ largest f({v}); line 5: S₁ ← GREEDY(k − |S₀|, V∖S₀)
    return buckets(objective, [1] * size, k, subroutine=subroutine, method="oblivious_greedy")


def _check(objective: SetFunction, k: int, tau: int) -> None:
    count, deletions = ground(objective, k)[0], whole(tau, "tau", 0)
    if deletions and deletions >= count:
        raise ValueError(f"tau = {deletions} deletions leave nothing of k = {count} elements; tau must be less than k")


def saturate(objective: SetFunction, k: int, tau: int, *, excess: float = 1.0, accuracy: float = 1e-3) -> Selection:
    """Return a set by SATURATE: the largest level c that a greedy cover of the truncated values reaches.

    The average over all deletions E of min(f(S \\ E), c) is submodular and equals c where every deletion leaves c.
    Bisection over c; each level is covered greedily with at most ``excess`` · k elements.

    Parameters
    ----------
    objective : SetFunction
        A submodular objective.
    k : int
        Budget.
    tau : int
        1 or 2 deletions: one state is kept for each set of them.
    excess : float
        Budget of a cover in units of k. 1 is a heuristic with k elements; 1 + ln max_v Σ_E f_E({v}) makes the result at
        least as good as the best k elements, for integer f.
    accuracy : float
        Relative accuracy of the level.

    A cover smaller than k is filled up by greedy gains.

    >>> from surefoot.select import Coverage
    >>> saturate(Coverage([[1, 1, 1, 0], [0, 0, 0, 1], [1, 1, 0, 0]]), 2, tau=1).order
    (0, 2)
    """
    _check(objective, k, tau)
    if objective.submodular is not True:
        raise ValueError(f"saturate needs a submodular objective; {type(objective).__name__} is not known to be one")
    if tau not in (1, 2):
        raise ValueError(f"saturate keeps a state for every set of deletions: tau is 1 or 2, got {tau!r}")
    if not excess >= 1.0 or not 0.0 < accuracy < 1.0:
        raise ValueError(f"excess is at least 1 and accuracy between 0 and 1, got {excess!r} and {accuracy!r}")
    before, budget = objective.evaluations.total, min(int(excess * k), objective.n)
    best: list[int] = []
    low, high = 0.0, objective.value(np.arange(objective.n))
    while high - low > accuracy * high:  # bisection over c
        level = 0.5 * (low + high)
        found = _truncated_cover(objective, tau, level, budget)
        if found is None:
            high = level
        else:
            best, low = found, level
    state = objective.state(best)
    while len(best) < k:
        gains = np.where(state.chosen, -np.inf, state.gains())
        best.append(first_best(gains, TIES * float(objective.singletons().max())))
        state.add(best[-1])
    order = tuple(best)
    return Selection(order, along(objective, order), (), objective.evaluations.total - before, False, "saturate")


def _truncated_cover(objective: SetFunction, tau: int, level: float, budget: int) -> list[int] | None:
    """Cover the level greedily under every deletion of τ elements of the ground set; None where that takes too many.

    A deletion matters only by its share T in S, so there is a state S \\ T for each T ⊆ S with |T| ≤ τ, weighted by the
    share of the deletions of the ground set that meet S in exactly T.
    """
    n = objective.n
    chosen: list[int] = []
    states: dict[frozenset[int], State] = {frozenset(): objective.state()}
    slack = TIES * float(objective.singletons().max())
    while len(chosen) <= budget:
        outside = n - len(chosen)
        if all(state.value >= level - slack for T, state in states.items() if math.comb(outside, tau - len(T))):
            return chosen
        if len(chosen) == budget:
            return None
        score = np.zeros(n)
        for T, state in states.items():
            # With u added: T alone may be lost, or T together with u.
            alone = math.comb(outside - 1, tau - len(T))
            with_u = math.comb(outside - 1, tau - len(T) - 1) if len(T) < tau else 0
            if alone:
                score += alone * np.minimum(state.value + state.gains(), level)  # min(f(S \ E), c)
            score += with_u * min(state.value, level)
        score[chosen] = -np.inf
        u = first_best(score, slack)
        lost = {T | {u}: state.copy() for T, state in states.items() if len(T) < tau}
        for state in states.values():
            state.add(u)
        states.update(lost)
        chosen.append(u)
    return None
