"""The worst deletion from a coverage as an integer program, solved to a proof by HiGHS.

Question: which τ elements of S leave the least covered? Items covered by the same elements of S are merged into one of
their total weight, a *pattern* p with weight w_p. With z_s = 1 for elements that stay,

    min Σ_p w_p y_p   subject to   y_p ≥ z_s for every s in p,   Σ_s z_s = |S| − τ,   z binary,   0 ≤ y ≤ 1.

A pattern of one element needs no y: its weight is the price of that z. The y are whole by themselves.

Facility location is a coverage too: client u with similarities g(1) ≥ g(2) ≥ ... is one item per level, of weight
g(j) − g(j+1), covered by the j elements most similar to u. This makes up to |S| items per client, so it is offered up
to 20,000 of them.

>>> from surefoot.select import Coverage
>>> coverage_milp(Coverage([[1, 1, 1, 0], [0, 0, 0, 1], [1, 1, 0, 0]]), [0, 1, 2], tau=2).removed
(0, 2)

Cost: one binary per element, one row per element of a pattern. A proof is quick where a few elements carry the value;
where nothing stands out, as in a large robust selection, it may not come: then the time limit gives a bound.
"""

from __future__ import annotations

import math
import time

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, milp

from surefoot.select.adversary import Deletion, Elements, Status, greedy_min, local_search, problem
from surefoot.select.coverage import Coverage
from surefoot.select.facility import FacilityLocation
from surefoot.select.objective import SetFunction, to_host

__all__ = ["coverage_milp", "covers", "patterns"]

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
Indices = NDArray[np.int64]

LEVELS = 20_000  # items up to which a facility location is rewritten as a coverage
DIGITS = 20  # binary ones of the sum of all weights in the solver; powers of two scale exactly


def covers(objective: SetFunction, S: Indices) -> bool:
    """Return whether the objective is a coverage on S, small enough for an integer program.

    >>> from surefoot.select import Custom
    >>> covers(Coverage([[1, 0], [0, 1]]), np.array([0, 1])), covers(Custom(len, n=2), np.array([0, 1]))
    (True, False)
    """
    if isinstance(objective, FacilityLocation):
        return len(S) * objective.m <= LEVELS
    return isinstance(objective, Coverage)


def patterns(objective: SetFunction, S: Indices) -> tuple[Mask, Array]:
    """Return which elements of S cover each pattern, shape (|S|, p), and the patterns' weights, shape (p,).

    >>> patterns(Coverage([[1, 1, 1, 0], [0, 0, 0, 1], [1, 1, 0, 0]]), np.array([0, 2]))
    (array([[ True,  True],
           [False,  True]]), array([1., 2.]))
    """
    if isinstance(objective, Coverage):
        rows = objective.incidence[S]
        items = np.unique(rows.indices)
        covered, weights = rows[:, items].toarray() > 0, objective.weights[items]
    elif isinstance(objective, FacilityLocation):
        covered, weights = _levels(objective, S)
    else:
        raise TypeError(f"the integer program is for coverage and facility location, not {type(objective).__name__}")
    useful = weights > 0
    covered, weights = covered[:, useful], weights[useful]
    packed = np.ascontiguousarray(np.packbits(covered, axis=0).T)
    _, first, which = np.unique(packed, axis=0, return_index=True, return_inverse=True)
    return covered[:, first], np.bincount(which.ravel(), weights, minlength=len(first)).astype(np.float64)


def _levels(objective: FacilityLocation, S: Indices) -> tuple[Mask, Array]:
    """The items of a facility location: one per client and level."""
    similar = np.maximum(np.asarray(to_host(objective._rows(S))), 0.0)
    similar = similar * np.asarray(to_host(objective._weights[objective._xp.float64]))
    order = np.argsort(-similar, axis=0, kind="stable")
    rank = np.empty_like(order)
    np.put_along_axis(rank, order, np.arange(len(S))[:, None], axis=0)
    heights = np.take_along_axis(similar, order, axis=0)
    steps = heights - np.vstack([heights[1:], np.zeros((1, heights.shape[1]))])  # (level, client)
    covered = rank[:, None, :] <= np.arange(len(S))[None, :, None]  # (element, level, client)
    return covered.reshape(len(S), -1), steps.ravel()


def coverage_milp(objective: SetFunction, S: Elements, tau: int, *, seconds: float = 60.0) -> Deletion:
    """Return the worst deletion from a coverage, proved, or the best found and a bound when the time is over.

    Parameters
    ----------
    objective : Coverage, DominatingSet or FacilityLocation
        What the selection is worth.
    S : elements
        The selection.
    tau : int
        How many elements are lost.
    seconds : float
        Time limit of the solver.

    >>> coverage_milp(Coverage([[1, 1, 1, 0], [0, 0, 0, 1], [1, 1, 0, 0]]), [0, 2], tau=1).value
    2.0
    """
    start = time.perf_counter()
    if not seconds > 0:
        raise ValueError(f"seconds must be positive, got {seconds!r}")
    selected, deletions = problem(objective, S, tau)
    best = local_search(objective, selected, greedy_min(objective, selected, deletions))
    if best.proved:
        return Deletion(best.removed, best.value, "optimal", best.value, time.perf_counter() - start, "coverage_milp")
    covered, weights = patterns(objective, selected)
    k, sizes = selected.size, covered.sum(axis=0)
    single, many = sizes == 1, sizes > 1
    price = covered[:, single] @ weights[single]
    shared = sparse.csc_array(covered[:, many].astype(np.float64))
    p, links = shared.shape[1], shared.nnz
    # One row y_p − z_s ≥ 0 per element s of a pattern p, and the row that counts what stays.
    owner = np.repeat(np.arange(p), np.diff(shared.indptr))
    rows = sparse.coo_array(
        (
            np.concatenate([-np.ones(links), np.ones(links)]),
            (np.tile(np.arange(links), 2), np.concatenate([shared.indices, k + owner])),
        ),
        shape=(links, k + p),
    )
    count = sparse.coo_array((np.ones(k), (np.zeros(k, dtype=np.int64), np.arange(k))), shape=(1, k + p))
    constraints = [LinearConstraint(count.tocsr(), k - deletions, k - deletions)]
    if links:
        constraints.append(LinearConstraint(rows.tocsr(), 0.0, np.inf))
    # The solver's tolerances are absolute: weights are brought to a size at which they are small.
    unit = 2.0 ** max(round(math.log2(weights.sum())) - DIGITS, -1000) if weights.size else 1.0
    solution = milp(
        np.concatenate([price, weights[many]]) / unit,
        integrality=np.concatenate([np.ones(k), np.zeros(p)]),
        bounds=Bounds(0.0, 1.0),
        constraints=constraints,
        options={"time_limit": float(seconds), "mip_rel_gap": 0.0},
    )
    status: Status = "optimal" if solution.status == 0 else "time limit"
    removed, value = best.removed, best.value
    if solution.x is not None:
        gone = selected[np.argsort(solution.x[:k], kind="stable")[:deletions]]
        left = objective.value(np.setdiff1d(selected, gone))
        if left < value:
            removed, value = tuple(sorted(int(element) for element in gone)), left
    bound = value
    if status != "optimal":
        dual = getattr(solution, "mip_dual_bound", None)
        bound = min(max(best.bound, -np.inf if dual is None else unit * float(dual)), value)
    return Deletion(removed, value, status, bound, time.perf_counter() - start, "coverage_milp")
