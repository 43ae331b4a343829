"""How far a plan can be from the best one: Lipschitz constants, sampling errors, and the samples they ask for.

Rewards are affine in what was measured, so the value of a plan is Lipschitz in it. Its constants bound two errors:

* θ: how much the most-likely plan ignores, 0 ≤ Q*(a) − ℚ(a) ≤ θ(a) (Theorem 2; that it is never too high is Jensen's);
* λ: how far N sampled outcomes are off, |𝒬 − Q*| ≤ λ H with probability 1 − δ (Theorem 1), where N ≥ (2K²/λ²)
  (H log N + H log A + log 2/δ).

With λ = ε/(4H²) and δ = ε/(8θH) the expected loss of ε-Macro-GPO is at most ε (Theorem 3). ``"tight"`` constants are
ours: the gain of a whole path is affine in the innovations x of a stage, with slope G (``PathTree.slopes``), and the
value is convex in them, so K = max ‖G‖, and θ adds E max G·x ≤ max ‖G − Ḡ‖ min(√k, √(2 log paths)) over the stages,
with Ḡ the mean slope of the paths that begin alike.
``"paper"`` are those of the paper's Definition 1 and eq. (27), larger by orders of magnitude; see the table
on the policy's page.

References: Kharkovskii, Ling & Low 2020, Definition 1, Theorems 1-4, eq. (27).

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
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from surefoot.arguments import positive
from surefoot.policy.routes.path_tree import PathTree

__all__ = ["Constants", "influence"]

Array = NDArray[np.float64]

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

    >>> Constants(horizon=1, actions=4, lipschitz=0.0, K=0.0, theta=np.zeros(4)).required_samples(0.1)
    1
    """

    horizon: int
    actions: int
    lipschitz: float
    K: float
    theta: Array

    @classmethod
    def of(cls, tree: PathTree, kind: str = "tight") -> Constants:
        """Return the ``"tight"`` or the ``"paper"`` constants of a tree.

        >>> Constants.of(None, "loose")
        Traceback (most recent call last):
        ...
        ValueError: constants are 'tight' or 'paper', got 'loose'
        """
        if kind not in ("tight", "paper"):
            raise ValueError(f"constants are 'tight' or 'paper', got {kind!r}")
        actions = max(tree.moves, *(int(level.count.max()) for level in tree.levels))
        lipschitz, K, theta = _tight(tree) if kind == "tight" else _paper(tree)
        return cls(tree.horizon, actions, lipschitz, K, tree.at_root(theta))

    @property
    def worst(self) -> float:
        """θ, the largest over the first moves."""
        return max(0.0, float(self.theta.max(initial=0.0)))

    def split(self, epsilon: float) -> tuple[float, float]:
        """Return λ = ε/(4H²) and δ = ε/(8θH), which add up to a loss of ε: 2H (λH + 2δθ) = ε.

        >>> Constants(2, 4, 0.0, 1.0, np.ones(4)).split(1.6)
        (0.1, 0.1)
        """
        rate = 8.0 * self.worst * self.horizon
        return epsilon / (4.0 * self.horizon**2), min(1.0, epsilon / rate) if rate > 0 else 1.0

    def required_samples(self, epsilon: float) -> int:
        """Return how many outcomes N of each move make the expected loss at most ε.

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


def _tight(tree: PathTree) -> tuple[float, float, Array]:
    """L = max ‖g_p‖, K = max ‖G‖, and θ by the recursion over moves, from the last to the first."""
    whole, k, H, slopes = tree.ancestors(tree.horizon), tree.length, tree.horizon, tree.slopes()
    theta = np.zeros(len(tree.levels[-1].rows))
    below = np.ones(len(theta))  # whole paths below each path; they lie side by side
    for depth in range(H - 1, 0, -1):
        theta = tree.best_below(depth, theta)
        below = np.add.reduceat(below, tree.levels[depth - 1].first)
        starts = np.concatenate([[0], np.cumsum(below)[:-1]]).astype(np.intp)
        # A part that all continuations share has no expectation: only what tells them apart counts.
        G = slopes[:, depth - 1]
        common = np.add.reduceat(G, starts, axis=0) / below[:, None]
        apart = np.maximum.reduceat(np.linalg.norm(G - common[whole[depth - 1]], axis=1), starts)
        theta = theta + apart * np.minimum(math.sqrt(k), np.sqrt(2.0 * np.log(below)))
    steepest = float(np.linalg.norm(slopes, axis=2).max(initial=0.0))
    return _root_slope(tree), steepest, theta


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


def _paper(tree: PathTree) -> tuple[float, float, Array]:
    """α, L, K and θ of Definition 1 and eq. (27), from the last move to the first."""
    H, k = tree.horizon, tree.length
    lipschitz, theta = np.zeros(len(tree.levels[-1].rows)), np.zeros(len(tree.levels[-1].rows))
    K = 0.0
    for depth in range(H, 0, -1):
        level = tree.levels[depth - 1]
        if depth < H:
            spread = np.sqrt(np.einsum("pab,pab->p", cast(Array, level.psi), cast(Array, level.psi)))  # √Tr Σ
            lipschitz, theta = tree.best_below(depth, lipschitz), tree.best_below(depth, theta)
            K = max(K, float((lipschitz * spread).max()))
            theta = theta + lipschitz * spread * math.sqrt(k)
        alpha = influence(tree, depth)
        lipschitz = math.sqrt(k) * alpha + lipschitz * np.sqrt(1.0 + alpha**2)
    return float(lipschitz.max()), K, theta


def influence(tree: PathTree, depth: int) -> Array:
    """Return α = ‖W‖ of the regression weights W = K(s, S) (K(S, S) + σ²)⁻¹ of the last move on all that precedes it.

    >>> from surefoot import GP, MoveTable, Paths
    >>> line = Paths([0.0, 1.0], MoveTable({0: [[1]], 1: [[0]]}), start=0)
    >>> belief = GP(noise=1.0).condition([[0.0]], [1.0])
    >>> influence(PathTree.grow(belief, line, 0, horizon=1), 1).round(4)  # k(0, 1) / (k(0, 0) + σ²)
    array([0.3033])
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
