"""Backward induction over simulated paths: what stopping, accepting and going on are worth in every cell.

Each path is an error curve over H further epochs with a label: will it win? Its *state* after an epoch is the average
error so far, put into one of M cells. The simulated paths enter the induction only through three counts,

* visits (H, M): paths in a cell,
* wins (H, M): of these, how many win (or the sum of their probabilities of winning),
* moves (H − 1, M, M): paths that go from one cell to another in one epoch,

so that :func:`count` reads the paths once, one ``bincount`` per epoch, and :func:`induce` never sees them. The same
counts serve any losses K₁, K₂ and cost c.

With p = wins/visits, the expected losses in a cell are

    stop, d₁:      L₁ = K₁ p            it would have won          (4.3)
    accept, d₂:    L₂ = K₂ (1 − p)      it would not have won      (4.3)
    continue, d₀:  L₀ = c + E[V(next cell)]

and V = min(L₀, L₁, L₂) (4.1); in the last epoch there is no L₀.

Reference: Dai, Yu, Low & Jaillet 2019, Algorithm A.1. Lines are those of this box (printed as Algorithm 1.1), equations
those of chapter 4, in Dai's thesis (2021).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["ACCEPT", "CONTINUE", "STOP", "Counts", "Root", "Solution", "count", "induce"]

Array = NDArray[np.float64]
Codes = NDArray[np.int8]

CONTINUE, STOP, ACCEPT = 0, 1, 2
"""The decisions as they stand in a table: d₀, d₁ and d₂ of the paper."""


@dataclass(frozen=True, eq=False)
class Counts:
    """How often simulated paths visit each cell, win from there, and move on; made by :func:`count`.

    Attributes
    ----------
    edges : array of shape (H, M + 1)
        Borders of the cells of the average error, per epoch.
    visits, wins : arrays of shape (H, M)
    moves : array of shape (H − 1, M, M)

    >>> counts = count(np.array([[0.6, 0.2], [0.6, 0.8]]), np.array([True, False]), cells=2)
    >>> counts.visits
    array([[0., 2.],
           [1., 1.]])
    """

    edges: Array
    visits: Array
    wins: Array
    moves: Array


def count(
    paths: ArrayLike,
    wins: ArrayLike,
    *,
    cells: int = 100,
    before: tuple[int, float] = (0, 0.0),
    adaptive: bool = False,
) -> Counts:
    """Count visits, wins and moves of the paths over the cells of their average error.

    Parameters
    ----------
    paths : array of shape (S, H)
        Errors after each further epoch; fastest when the epochs of one path are not neighbors in memory (the transpose
        of a C-ordered (H, S) array).
    wins : array of shape (S,) or (S, H)
        Whether the path wins, or the posterior probability that it does given its first 1, ..., H epochs.
    cells : int
        M. The cells divide [0, 1] equally.
    before : (int, float)
        Number and sum of earlier errors that enter the average.
    adaptive : bool
        Fit the cells of each epoch to the simulated averages instead; the outermost two stay empty and stand for
        everything beyond.

    >>> rng = np.random.default_rng(0)
    >>> counts = count(rng.random((50, 3)), rng.random(50) < 0.5, cells=4)
    >>> bool((counts.moves.sum(axis=2) == counts.visits[:-1]).all())
    True
    """
    E, label = np.asarray(paths).T, np.asarray(wins)
    if E.ndim != 2 or not E.size:
        raise ValueError(f"paths must be a non-empty (S, H) array, got shape {np.shape(paths)}")
    H, S = E.shape
    if label.shape not in ((S,), (S, H)):
        raise ValueError(f"wins must have shape ({S},) or ({S}, {H}), got {label.shape}")
    sure = label.ndim == 1 and label.dtype == np.bool_
    edges = np.empty((H, cells + 1))
    visits, won, moves = np.empty((H, cells)), np.empty((H, cells)), np.empty((H - 1, cells, cells))
    n, total = before[0], np.full(S, float(before[1]))
    previous = np.empty(0, dtype=np.intp)
    for j in range(H):
        total += E[j]
        low, high = _range(total, n + j + 1, cells) if adaptive else (0.0, 1.0)
        edges[j] = np.linspace(low, high, cells + 1)
        scale = cells / (high - low)
        place = total * (scale / (n + j + 1))
        if low:
            place -= low * scale
        cell = np.clip(place, 0, cells - 1).astype(np.intp)  # floor, since nothing negative is left
        visits[j] = np.bincount(cell, minlength=cells)
        weights = None if sure else np.asarray(label if label.ndim == 1 else label[:, j], dtype=np.float64)
        won[j] = np.bincount(cell[label] if sure else cell, weights, minlength=cells)
        if j:
            moves[j - 1] = np.bincount(previous * cells + cell, minlength=cells * cells).reshape(cells, cells)
        previous = cell  # lines 6 and 12: which paths pass through which interval
    return Counts(edges, visits, won, moves)


def _range(total: Array, n: int, cells: int) -> tuple[float, float]:
    """Range of the averages, widened by one cell on either side."""
    low, high = float(total.min()) / n, float(total.max()) / n
    width = max((high - low) / (cells - 2), 1e-9) * (1.0 + 1e-6)  # a hair more, against rounding at the rim
    return low - width, high + width


class Root(NamedTuple):
    """What :func:`induce` finds before the first simulated epoch, where all paths are still together.

    >>> Root(STOP, probability=0.0, value=0.0, saved=12.0).decision
    1
    """

    decision: int
    probability: float
    value: float
    saved: float


@dataclass(frozen=True, eq=False)
class Solution:
    """What :func:`induce` finds in each cell; all arrays have shape (H, M), NaN where no path came.

    Attributes
    ----------
    decisions : array of int8
        CONTINUE, STOP or ACCEPT.
    probability : array
        Probability of winning.
    value : array
        Expected loss V of the best decisions from here on.
    saved : array
        Epochs that stopping here saves, or that following the table is expected to save.
    root : Root
        The same at the epoch before the first row, which the paths start from.

    >>> counts = count(np.array([[0.6, 0.2], [0.6, 0.8]]), np.array([True, False]), cells=2)
    >>> induce(counts, k1=100.0, k2=99.0, cost=1.0, minimum=0).value[0]
    array([nan,  1.])
    """

    decisions: Codes
    probability: Array
    value: Array
    saved: Array
    root: Root


def induce(
    counts: Counts,
    *,
    k1: float,
    k2: float,
    cost: float,
    minimum: int = 30,
    unvisited: str = "continue",
    smoothing: bool = False,
) -> Solution:
    """Sweep the epochs backwards and return the best decision in every cell.

    Ties go to the terminal decisions. Cells with at most ``minimum`` visits are told to continue; their value enters
    the cells before them as it was computed. The other options are those of
    :class:`~surefoot.stopping.OptimalStopping`.

    >>> rng = np.random.default_rng(0)
    >>> start = rng.random((4000, 1))
    >>> paths = np.clip(start + 0.05 * rng.standard_normal((4000, 4)).cumsum(axis=1), 0.0, 1.0)
    >>> counts = count(paths, paths[:, -1] < 0.5, cells=10)
    >>> induce(counts, k1=100.0, k2=99.0, cost=1.0).decisions[0]     # accept, wait around the threshold, stop
    array([2, 2, 2, 2, 0, 0, 1, 1, 1, 1], dtype=int8)
    """
    # One more row on top: the root, a single cell that holds every path and moves to the cells of the first epoch.
    H, M = counts.visits.shape
    root = np.zeros((1, M))
    root[0, 0] = 1.0
    visits = np.vstack([root * counts.visits[0].sum(), counts.visits])
    wins = np.vstack([root * counts.wins[0].sum(), counts.wins])
    moves = [root.T * counts.visits[0], *counts.moves]

    seen, trusted = visits > 0, visits > minimum
    weight = np.where(seen, visits, 1.0)
    half = 0.5 if smoothing else 0.0
    p = np.where(seen, (wins + half) / (weight + 2.0 * half), np.nan)  # lines 7 and 13: P(θ_t = θ_{t,2} | y_{t,n})
    # Lines 8 and 14: losses of d₁ and d₂ by (4.3). K = ∞ switches its decision off: a branch, since ∞·0 is no number.
    never = np.full_like(p, math.inf)
    L1 = np.where(seen, k1 * p, math.inf) if math.isfinite(k1) else never
    L2 = np.where(seen, k2 * (1.0 - p), math.inf) if math.isfinite(k2) else never
    last = np.minimum(L1, L2)  # line 9, the value in epoch N
    decisions = np.full(p.shape, CONTINUE, dtype=np.int8)
    value, saved = last.copy(), np.zeros_like(p)
    for j in reversed(range(H + 1)):  # line 10: n = N, N − 1, ...
        own = np.where(L1[j] <= L2[j], STOP, ACCEPT)
        if j < H:
            next_value = np.where(seen[j + 1], value[j + 1], 0.0)
            if math.isfinite(k1) or math.isfinite(k2):
                L0 = cost + moves[j] @ next_value / weight[j]  # lines 15 to 19: c + the average over the paths
                # Ties end the run, also those that rounding hides.
                own = np.where(last[j] <= L0 * (1.0 + 1e-12) + 1e-12, own, CONTINUE)
                value[j] = np.minimum(L0, last[j])  # line 20: ρ_{t,n} of (4.1)
            saved[j] = moves[j] @ np.where(seen[j + 1], saved[j + 1], 0.0) / weight[j]
        own = np.where(seen[j] & np.isfinite(last[j]), own, CONTINUE)
        decisions[j] = np.where(trusted[j], own, CONTINUE)
        if unvisited == "monotone":
            worse = np.maximum.accumulate(decisions[j] == STOP)  # a smaller average error is already hopeless
            decisions[j, worse & ~trusted[j] & (~seen[j] | (own == STOP))] = STOP
        saved[j] = np.where(decisions[j] == STOP, H - j, np.where(seen[j], saved[j], np.nan))
    value = np.where(seen, value, np.nan)
    top = Root(int(decisions[0, 0]), float(p[0, 0]), float(value[0, 0]), float(saved[0, 0]))
    return Solution(decisions[1:], p[1:], value[1:], saved[1:], top)
