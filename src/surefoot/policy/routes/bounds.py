"""Bounds of values after each path: how much they can differ between outcomes, and from the most likely one.

The value after a path is a maximum of affine functions of the innovations, one for each whole path that continues it
(:mod:`surefoot.policy.routes.path_tree`). So it is convex in the outcome of the last move, and cannot change faster
than the
steepest of them. :class:`Reach` holds what follows, path by path; :mod:`surefoot.policy.routes.path_constants` has the
largest over all paths, from which numbers of samples are computed.

The anytime planner spends a loss ε differently from ε-Macro-GPO: λ = 1/(4H/ε + 1/(2θ)), δ = ε/(8θH) (Theorem 7), so
that 2H (λ + δλ + 2δθ) = ε.

>>> constants = Constants(horizon=3, actions=4, lipschitz=0.0, K=1.0, theta=np.full(4, 2.0))
>>> slack, doubt = anytime_split(constants, 0.1)
>>> round(2 * 3 * (slack + doubt * slack + 2 * doubt * 2.0), 12)
0.1
>>> enough = anytime_samples(constants, 0.1)
>>> failure(constants, enough, slack) <= doubt < failure(constants, enough // 2, slack)
True

Reference: Kharkovskii, Ling & Low 2020, "Nonmyopic Gaussian process optimization with macro-actions".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from surefoot.arguments import positive
from surefoot.policy.routes.path_constants import Constants, influence
from surefoot.policy.routes.path_tree import PathTree

__all__ = [
    "Reach",
    "anytime_nodes",
    "anytime_samples",
    "anytime_split",
    "failure",
    "grouped",
    "leaves",
    "nearest",
    "norms",
]

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

CHUNK = 4_000_000  # numbers in one temporary array


@dataclass(frozen=True, eq=False)
class Reach:
    """How far the values after each path can reach; made by :meth:`of`.

    Attributes
    ----------
    kind : {"tight", "paper"}
        Whether it follows from the slopes of the paths themselves, or from the paper's Definition 1.
    steepness : tuple of array
        For paths of t = 1, ..., H − 1 moves, shape (P_t,): the largest change of the value per unit of the last
        move's innovations (tight) or measurements (paper).
    theta : tuple of array
        For paths of t = 0, ..., H − 1 moves, shape (P_t,): how far the value can be from that of the most likely
        observations.

    >>> from surefoot import GP, SE, Dives, Paths
    >>> grid = np.stack(np.meshgrid(np.arange(9.0), np.arange(9.0), indexing="ij"), axis=-1).reshape(-1, 2)
    >>> paths = Paths(grid, Dives((9, 9), 2), start=40)
    >>> tree = PathTree.grow(GP(SE(2.0), noise=1e-3).condition(grid[[40]], [1.0]), paths, 40, horizon=3)
    >>> Reach.of(tree, "tight").worst < Reach.of(tree, "paper").worst
    True
    """

    kind: str
    steepness: tuple[Array, ...]
    theta: tuple[Array, ...]

    @property
    def worst(self) -> float:
        """θ at the root."""
        return float(self.theta[0][0])

    @classmethod
    def of(
        cls,
        tree: PathTree,
        kind: str = "tight",
        tables: Sequence[Array] | None = None,
        weights: Array | None = None,
    ) -> Reach:
        """Return the bounds of a tree.

        Parameters
        ----------
        tree : PathTree
            The paths.
        kind : {"tight", "paper"}
            Which bounds.
        tables : sequence of H − 1 arrays of shape (N, k), optional
            The innovations of each stage: θ then bounds the sampled recursion on just these, against the value at
            their mean. Without, it bounds the expectation, against the most likely observations.
        weights : array of shape (H − 1, N), optional
            The weight of each, 1/N by default.
        """
        if kind not in ("tight", "paper"):
            raise ValueError(f"bounds are 'tight' or 'paper', got {kind!r}")
        centered = None
        if tables is not None:
            N = len(tables[0]) if len(tables) else 1
            weights = np.full((len(tables), N), 1.0 / N) if weights is None else weights
            centered = [X - w @ X for X, w in zip(tables, weights, strict=True)]
        steepness, reach = (_tight if kind == "tight" else _paper)(tree, centered, weights)
        theta = [np.zeros(1 if tree.horizon == 1 else len(tree.levels[tree.horizon - 2].rows))]
        for depth in range(tree.horizon - 1, 0, -1):  # θ_(H−1) = 0, θ_t = max (reach + θ_(t+1))
            theta.insert(0, tree.best_below(depth - 1, reach[depth - 1] + theta[0]))
        return cls(kind, tuple(steepness), tuple(theta))


def _tight(tree: PathTree, centered: Sequence[Array] | None, weights: Array | None) -> tuple[list[Array], list[Array]]:
    """‖g_p‖, and E max_p g_p·x, over the whole paths p that continue each path.

    Bounded by r min(E‖x‖, √(2 log #p)) with r the largest distance of a slope from their mean, which adds nothing on
    average; or averaged over the samples.
    """
    steepness, reach, slopes = [], [], tree.slopes()
    for depth in range(1, tree.horizon):
        starts, own = leaves(tree, depth)[:-1], slopes[:, depth - 1]
        steepness.append(np.sqrt(np.maximum.reduceat(np.square(own).sum(axis=1), starts)))
        if centered is None or weights is None:
            count = np.diff(starts, append=len(own))
            common = np.add.reduceat(own, starts, axis=0) / count[:, None]
            apart = np.square(own - np.repeat(common, count, axis=0)).sum(axis=1)
            radius = np.sqrt(np.maximum.reduceat(apart, starts))
            reach.append(radius * np.minimum(_mean_norm(tree.length), np.sqrt(2.0 * np.log(count))))
        else:
            reach.append(_support(own, centered[depth - 1], weights[depth - 1], leaves(tree, depth)))
    return steepness, reach


def _paper(tree: PathTree, centered: Sequence[Array] | None, weights: Array | None) -> tuple[list[Array], list[Array]]:
    """L_t = max √κ α + L_(t+1) √(1 + α²) (Definition 1), and L √κ √Tr Σ (proof of Theorem 2)."""
    steepness: list[Array] = []
    reach: list[Array] = []
    slope = np.zeros(len(tree.levels[-1].rows))
    for depth in range(tree.horizon - 1, 0, -1):
        a = influence(tree, depth + 1)
        slope = tree.best_below(depth, math.sqrt(tree.length) * a + slope * np.sqrt(1.0 + a**2))
        gram = _gram(tree, depth)
        if centered is None or weights is None:
            size = np.sqrt(tree.length * np.trace(gram, axis1=1, axis2=2))
        else:
            size = norms(gram, centered[depth - 1]) @ weights[depth - 1]
        steepness.insert(0, slope)
        reach.insert(0, slope * size)
    return steepness, reach


def leaves(tree: PathTree, depth: int) -> Indices:
    """Return where the whole paths that continue each path of ``depth`` moves begin, and where the last ones end.

    Shape (P + 1,): they stand side by side.

    >>> from surefoot import GP, MoveTable, Paths
    >>> line = Paths([0.0, 1.0, 2.0], MoveTable({0: [[1], [2]], 1: [[0], [2]], 2: [[0]]}), start=0)
    >>> leaves(PathTree.grow(GP().condition(), line, 0, horizon=2), 1)
    array([0, 2, 3])
    """
    end = len(tree.levels[-1].rows)
    if depth == 0:
        return np.array([0, end], dtype=np.intp)
    starts = np.arange(len(tree.levels[depth - 1].rows))
    for level in tree.levels[depth - 1 : -1]:
        starts = level.first[starts]
    return np.append(starts, end)


def grouped(extreme: np.ufunc, values: Array, cuts: Indices) -> Array:
    """Return the largest or the smallest of each group of neighboring rows, groups being cut at ``cuts``.

    >>> grouped(np.maximum, np.array([[1.0], [5.0], [2.0]]), np.array([0, 2, 3]))
    array([[5.],
           [2.]])
    """
    each = len(values) // (len(cuts) - 1)
    if (np.diff(cuts) == each).all():  # the common case, and much faster
        found: Array = extreme.reduce(values.reshape(len(cuts) - 1, each, -1), axis=1)
    else:
        found = extreme.reduceat(values, cuts[:-1], axis=0)
    return found


def norms(gram: Array, X: Array) -> Array:
    """Return ‖Ψ x‖ for each path's ΨᵀΨ (P, k, k) and each of the innovations (N, k), shape (P, N).

    >>> norms(4.0 * np.eye(2)[None], np.array([[3.0, 4.0]]))
    array([[10.]])
    """
    squares = gram.reshape(len(gram), -1) @ (X[:, :, None] * X[:, None, :]).reshape(len(X), -1).T
    return np.sqrt(np.maximum(squares, 0.0))


def nearest(tree: PathTree, depth: int, X: Array) -> Indices:
    """Return the sample nearest to the mean, by measured values, for each path of ``depth`` moves (line 9 of the box).

    >>> from surefoot import GP, MoveTable, Paths
    >>> loop = Paths([0.0, 1.0], MoveTable({0: [[1]], 1: [[0]]}), start=0)
    >>> nearest(PathTree.grow(GP().condition(), loop, 0, horizon=2), 1, np.array([[1.0], [-0.1], [2.0]]))
    array([1])
    """
    gram = _gram(tree, depth)
    step = max(1, CHUNK // len(X))
    return np.concatenate([norms(gram[i : i + step], X).argmin(axis=1) for i in range(0, len(gram), step)])


def _gram(tree: PathTree, depth: int) -> Array:
    psi = tree.levels[depth - 1].psi
    if psi is None:
        raise ValueError(f"the tree has no predictive covariances for paths of {depth} moves")
    gram: Array = np.swapaxes(psi, 1, 2) @ psi
    return gram


def _mean_norm(k: int) -> float:
    """E‖x‖ of k standard normal numbers."""
    return math.sqrt(2.0) * math.exp(float(gammaln(0.5 * (k + 1)) - gammaln(0.5 * k)))


def _support(slopes: Array, X: Array, weights: Array, cuts: Indices) -> Array:
    """Mean over the samples of max_p g_p·x over the whole paths of each group, shape (groups,)."""
    total = np.zeros(len(cuts) - 1)
    step = max(1, CHUNK // len(slopes))
    for low in range(0, len(X), step):
        part = slice(low, low + step)
        total += grouped(np.maximum, slopes @ X[part].T, cuts) @ weights[part]
    return total


# -- promises and sizes ----------------------------------------------------------------------------------------------


def anytime_split(constants: Constants, epsilon: float) -> tuple[float, float]:
    """Return λ = 1/(4H/ε + 1/(2θ)) and δ = ε/(8θH), lines 42–43: they add up to a loss of ε, besides 2ωH.

    >>> anytime_split(Constants(2, 4, 0.0, 1.0, np.zeros(4)), 0.8)  # nothing to adapt to: no doubt is needed
    (0.0, 1.0)
    """
    positive(epsilon, "epsilon")
    theta, H = constants.worst, constants.horizon
    if theta == 0.0:
        return 0.0, 1.0
    return 1.0 / (4.0 * H / epsilon + 0.5 / theta), min(1.0, epsilon / (8.0 * theta * H))


def failure(constants: Constants, samples: int, slack: float) -> float:
    """Return a bound of the probability that any average over N samples is off by more than λ, at most 1.

    2 (NA)^H exp(−Nλ²/(2K²)): Lemmas 2 and 3.

    >>> failure(Constants(2, 4, 0.0, 1.0, np.ones(4)), 100, 0.1)
    1.0
    """
    if constants.K == 0.0:
        return 0.0
    H, A = constants.horizon, constants.actions
    exponent = math.log(2.0) + H * math.log(samples * A) - 0.5 * samples * (slack / constants.K) ** 2
    return math.exp(min(0.0, exponent))


def anytime_samples(constants: Constants, epsilon: float) -> int:
    """Return the smallest N with which all bounds hold with probability 1 − δ.

    >>> anytime_samples(Constants(1, 4, 0.0, 0.0, np.zeros(4)), 0.1)  # one move ahead nothing is sampled
    1
    """
    slack, doubt = anytime_split(constants, epsilon)
    if constants.K == 0.0 or slack == 0.0:
        return 1
    # The bound first grows with N; beyond its maximum, N = 2HK²/λ², it falls.
    low = max(1, math.ceil(2.0 * constants.horizon * (constants.K / slack) ** 2))
    high = low
    while failure(constants, high, slack) > doubt:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if failure(constants, middle, slack) <= doubt else (middle, high)
    return high


def anytime_nodes(horizon: int, moves: int, iterations: int) -> int:
    """Return the nodes of an anytime tree whose every iteration expands a new outcome of the first move.

    c_1 = 1 + A, c_k = 1 + A c_(k−1) are the sizes of minimal sub-trees; the tree has c_H + I c_(H−1) nodes.

    >>> [anytime_nodes(H, 20, 1500) for H in (1, 2, 3, 4)]
    [21, 31921, 639921, 12799921]
    """
    sizes = [1]
    for _ in range(horizon):
        sizes.append(1 + moves * sizes[-1])
    return sizes[horizon] + (iterations * sizes[horizon - 1] if horizon > 1 else 0)
