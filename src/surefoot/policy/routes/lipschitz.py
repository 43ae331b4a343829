"""How far values can differ: Lipschitz constants, the errors that they bound, and the samples that these ask for.

Rewards are affine in what was measured. The value after a path is a maximum of affine functions of the innovations, one
for each whole path that continues it (:mod:`surefoot.policy.routes.path_tree`): so it is convex in the outcome of the
last move, and cannot change faster than the steepest of them. Two errors follow:

* θ: how much the most-likely plan ignores, 0 ≤ Q*(a) − ℚ(a) ≤ θ(a) (Theorem 2; that it is never too high is Jensen's);
* λ: how far N sampled outcomes are off, |𝒬 − Q*| ≤ λ H with probability 1 − δ (Theorem 1), where N ≥ (2K²/λ²)
  (H log N + H log A + log 2/δ).

With λ = ε/(4H²) and δ = ε/(8θH) the expected loss of ε-Macro-GPO is at most ε (Theorem 3). The anytime planner spends ε
differently: λ = 1/(4H/ε + 1/(2θ)), δ = ε/(8θH) (Theorem 7), so that 2H (λ + δλ + 2δθ) = ε.

:class:`Constants` holds the largest over all paths, from which numbers of samples are computed, :class:`Reach` what
follows path by path. ``"tight"`` ones are ours: the gain of a whole path is affine in the innovations x of a stage,
with slope G (``PathTree.slopes``), so K = max ‖G‖, and θ adds E max G·x ≤ max ‖G − Ḡ‖ min(√k, √(2 log paths)) over
the stages, with Ḡ the mean slope of the paths that begin alike. ``"paper"`` are those of Definition 1 and eq. (27),
larger by orders of magnitude; see the table on the policy's page.

Reference: Kharkovskii, Ling & Low 2020, "Nonmyopic Gaussian process optimization with macro-actions".

>>> from surefoot import GP, SE, Dives, Paths
>>> grid = np.stack(np.meshgrid(np.arange(50.0), np.arange(50.0), indexing="ij"), axis=-1).reshape(-1, 2)
>>> belief = GP(SE(5.0), noise=1e-5).condition(grid[[1275]], [0.0])
>>> tree = PathTree.grow(belief, Paths(grid, Dives((50, 50), 4), start=1275), 1275, horizon=2)
>>> tight, paper = (Constants.of(tree, kind) for kind in ("tight", "paper"))
>>> round(tight.K, 1), round(paper.K)
(3.5, 73)
>>> f"{tight.required_samples(0.8):.1e}, {paper.required_samples(0.8):.1e}"
'5.1e+05, 3.6e+08'
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from surefoot.arguments import positive
from surefoot.policy.routes.path_tree import PathTree

__all__ = [
    "Constants",
    "Reach",
    "anytime_samples",
    "anytime_split",
    "failure",
    "grouped",
    "influence",
    "nearest",
    "norms",
]

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

BLOCK = 4_000_000  # numbers in one temporary array


@dataclass(frozen=True, eq=False)
class Constants:
    """Constants of one tree.

    Attributes
    ----------
    horizon, actions : int
        H, and A, the most moves that any place of the tree has.
    lipschitz : float
        L, of the value at the root in the values measured so far.
    K : float
        Of the value after a move in its outcome, in standard deviations.
    theta : array of shape (moves,)
        θ of each first move; −inf where it leads into a dead end.
    """

    horizon: int
    actions: int
    lipschitz: float
    K: float
    theta: Array

    @classmethod
    def of(cls, tree: PathTree, kind: str = "tight") -> Constants:
        """Return the ``"tight"`` or the ``"paper"`` constants of a tree."""
        if kind not in ("tight", "paper"):
            raise ValueError(f"constants are 'tight' or 'paper', got {kind!r}")
        if kind == "tight":
            lipschitz = _root_slope(tree)
            steepness, reach = _tight(tree, math.sqrt(tree.length))
            K = max((float(slope.max()) for slope in steepness), default=0.0)
        else:
            root, *steepness = _printed(tree)
            lipschitz = float(root.max())
            factors = [cast(Array, level.psi) for level in tree.levels[:-1]]
            spread = [np.sqrt(np.einsum("pab,pab->p", psi, psi)) for psi in factors]  # √Tr Σ
            deviations = [slope * size for slope, size in zip(steepness, spread, strict=True)]
            K = max((float(change.max()) for change in deviations), default=0.0)
            reach = [change * math.sqrt(tree.length) for change in deviations]  # eq. (27)
        theta = reach[0] + _accumulated(tree, reach)[1] if reach else np.zeros(len(tree.levels[0].rows))
        actions = max(tree.moves, *(int(level.count.max()) for level in tree.levels))
        return cls(tree.horizon, actions, lipschitz, K, tree.at_root(theta))

    @property
    def worst(self) -> float:
        """θ, the largest over the first moves."""
        return max(0.0, float(self.theta.max(initial=0.0)))

    def split(self, epsilon: float) -> tuple[float, float]:
        """Return λ = ε/(4H²) and δ = ε/(8θH), which add up to a loss of ε: 2H (λH + 2δθ) = ε (proof of Theorem 3).

        >>> Constants(2, 4, 0.0, 1.0, np.ones(4)).split(1.6)
        (0.1, 0.1)
        """
        rate = 8.0 * self.worst * self.horizon
        return epsilon / (4.0 * self.horizon**2), min(1.0, epsilon / rate) if rate > 0 else 1.0

    def required_samples(self, epsilon: float) -> int:
        """Return how many outcomes N of each move make the expected loss at most ε (Theorems 1 and 3).

        >>> Constants(2, 4, 0.0, 1.0, np.ones(4)).required_samples(1.6)
        6856
        """
        positive(epsilon, "epsilon")
        if self.K == 0.0:
            return 1
        lam, delta = self.split(epsilon)
        ratio, H, A = 2.0 * (self.K / lam) ** 2, self.horizon, self.actions
        bracket = H * math.log(2.0 * ratio * H * A / math.e) + math.log(2.0 / delta)
        N = max(1, math.ceil(2.0 * ratio * bracket))
        while ratio * (H * math.log(N * A) + math.log(2.0 / delta)) > N:  # only where the bracket was clamped
            N *= 2
        return N

    def implied_epsilon(self, samples: int) -> float:
        """Return the smallest loss ε that N outcomes of each move can promise; inf where it is beyond all bounds.

        >>> constants = Constants(2, 4, 0.0, 1.0, np.ones(4))
        >>> constants.required_samples(constants.implied_epsilon(500)) <= 500
        True
        """
        if self.K == 0.0:
            return 0.0
        low, high = 1e-12 * self.K, self.K
        while self.required_samples(high) > samples:
            high *= 2.0
            if high > 1e12 * self.K:
                return math.inf
        for _ in range(80):
            middle = math.sqrt(low * high)
            low, high = (low, middle) if self.required_samples(middle) <= samples else (middle, high)
        return high


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
        if kind == "tight":
            steepness, reach = _tight(tree, _mean_norm(tree.length), centered, weights)
        else:
            steepness, reach = _printed(tree)[1:], []
            for depth, slope in enumerate(steepness, start=1):
                gram = _gram(tree, depth)
                if centered is None or weights is None:  # L √κ √Tr Σ: proof of Theorem 2
                    size = np.sqrt(tree.length * np.trace(gram, axis1=1, axis2=2))
                else:
                    size = norms(gram, centered[depth - 1]) @ weights[depth - 1]
                reach.append(slope * size)
        return cls(kind, tuple(steepness), tuple(_accumulated(tree, reach)))


def _tight(
    tree: PathTree, length: float, centered: Sequence[Array] | None = None, weights: Array | None = None
) -> tuple[list[Array], list[Array]]:
    """‖g_p‖, and E max_p g_p·x, over the whole paths p that continue each path.

    Bounded by r min(E‖x‖, √(2 log #p)), given a bound of E‖x‖, with r the largest distance of a slope from their mean,
    which adds nothing on average; or averaged over the samples.
    """
    steepness, reach, slopes = [], [], tree.slopes()
    for depth in range(1, tree.horizon):
        starts, own = tree.leaves(depth)[:-1], slopes[:, depth - 1]
        steepness.append(np.sqrt(np.maximum.reduceat(np.square(own).sum(axis=1), starts)))
        if centered is None or weights is None:
            count = np.diff(starts, append=len(own))
            common = np.add.reduceat(own, starts, axis=0) / count[:, None]
            apart = np.square(own - np.repeat(common, count, axis=0)).sum(axis=1)
            radius = np.sqrt(np.maximum.reduceat(apart, starts))
            reach.append(radius * np.minimum(length, np.sqrt(2.0 * np.log(count))))
        else:
            reach.append(_support(own, centered[depth - 1], weights[depth - 1], tree.leaves(depth)))
    return steepness, reach


def _printed(tree: PathTree) -> list[Array]:
    """L_t of the paths of t = 0, ..., H − 1 moves by Definition 1: L_t = max √κ α + L_(t+1) √(1 + α²)."""
    found = [np.zeros(len(tree.levels[-1].rows))]
    for depth in range(tree.horizon, 0, -1):
        a = influence(tree, depth)
        found.insert(0, tree.best_below(depth - 1, math.sqrt(tree.length) * a + found[0] * np.sqrt(1.0 + a**2)))
    return found[:-1]


def _accumulated(tree: PathTree, reach: Sequence[Array]) -> list[Array]:
    """θ of the paths of t = 0, ..., H − 1 moves: θ_(H−1) = 0, θ_t = max (reach + θ_(t+1)) (proof of Theorem 2)."""
    theta = [np.zeros(1 if tree.horizon == 1 else len(tree.levels[-2].rows))]
    for depth in range(tree.horizon - 1, 0, -1):
        theta.insert(0, tree.best_below(depth - 1, reach[depth - 1] + theta[0]))
    return theta


def _root_slope(tree: PathTree) -> float:
    """The largest norm of g_p = (K + σ²)⁻¹ K(S, p) 1, the gradient of a path's reward in the measured values."""
    belief = tree.belief
    if not belief.n:
        return 0.0
    cross = belief.solve(belief.gp.kernel(belief.X, tree.points))  # (n, u)
    total = np.zeros((len(tree.levels[-1].rows), belief.n))
    for level, chosen in zip(tree.levels, tree.ancestors(tree.horizon), strict=True):
        local = np.searchsorted(tree.places, level.rows)
        total += cross[:, local].sum(axis=2).T[chosen]
    return float(np.linalg.norm(total, axis=1).max())


def influence(tree: PathTree, depth: int) -> Array:
    """Return α = ‖W‖ of the regression weights W = K(s, S) (K(S, S) + σ²)⁻¹ of the last move on all that precedes it.

    Definition 1.

    >>> from surefoot import GP, MoveTable, Paths
    >>> ring = Paths([0.0, 9.0], MoveTable({0: [[1], [0]], 1: [[1]]}), start=0)
    >>> tree = PathTree.grow(GP(noise=0.01).condition([[0.0], [9.0]], [1.01, 2.02]), ring, 0, horizon=2)
    >>> influence(tree, 1).round(2)  # each place was measured, and is far from the other
    array([0.99, 0.99])
    """
    belief, kernel = tree.belief, tree.belief.gp.kernel
    prior = kernel(tree.points)
    above = tree.ancestors(depth)
    local = [np.searchsorted(tree.places, tree.levels[j].rows[above[j]]) for j in range(depth)]
    now, n, k = local[-1], belief.n, tree.length
    size = n + (depth - 1) * k
    norms = np.zeros(len(now))
    cross = kernel(belief.X, tree.points) if n else np.empty((0, len(tree.places)))
    step = BLOCK // max(size, 1) ** 2 + 1
    for start in range(0, len(now) if size else 0, step):
        block = slice(start, start + step)
        # What precedes a move is the same for all its siblings: one inverse serves them.
        _, first, sibling = np.unique(tree.levels[depth - 1].parent[block], return_index=True, return_inverse=True)
        S, C = np.zeros((len(first), size, size)), np.zeros((len(sibling), size, k))
        S[:, :n, :n] = belief.chol @ belief.chol.T
        C[:, :n] = np.moveaxis(cross[:, now[block]], 0, 1)
        if depth > 1:
            path = np.concatenate(local[:-1], axis=1)[block]
            C[:, n:] = prior[path[:, :, None], now[block][:, None, :]]
            path = path[first]
            S[:, n:, n:] = prior[path[:, :, None], path[:, None, :]] + tree.noise * np.eye(path.shape[1])
            S[:, :n, n:] = np.moveaxis(cross[:, path], 0, 1)
            S[:, n:, :n] = np.swapaxes(S[:, :n, n:], 1, 2)
        weights = np.linalg.inv(S)[sibling] @ C
        norms[block] = np.sqrt(np.einsum("psk,psk->p", weights, weights))
    return norms


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

    >>> norms(np.eye(2)[None], np.array([[3.0, 4.0], [0.0, 1.0]]))
    array([[5., 1.]])
    """
    squares = gram.reshape(len(gram), -1) @ (X[:, :, None] * X[:, None, :]).reshape(len(X), -1).T
    return np.sqrt(np.maximum(squares, 0.0))


def nearest(tree: PathTree, depth: int, X: Array) -> Indices:
    """Return the sample nearest to the mean, by measured values, for each path of ``depth`` moves (Algorithm 1, 9).

    >>> from surefoot import GP, MoveTable, Paths
    >>> ring = Paths([0.0, 9.0], MoveTable({0: [[1], [0]], 1: [[1]]}), start=0)
    >>> tree = PathTree.grow(GP(noise=0.01).condition([[0.0], [9.0]], [1.01, 2.02]), ring, 0, horizon=2)
    >>> nearest(tree, 1, np.array([[-2.0], [0.5], [1.0]]))
    array([1, 1])
    """
    gram = _gram(tree, depth)
    step = max(1, BLOCK // len(X))
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
    step = max(1, BLOCK // len(slopes))
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
