"""Minimal sub-trees of imagined outcomes, as arrays: the part of anytime planning that computes.

The value of a node is counted with the rewards collected on the way to it. It is then the best, over whole paths p
that continue the node, of C_p + Σ_j g_pj · x_j, averaged over the innovations x_j that are still to come: C_p is the
expected return of the path, g_pj its slopes (:meth:`~surefoot.policy.routes.path_tree.PathTree.slopes`). Whole paths
that continue the same path stand side by side, so all bounds of all outcomes of all moves are a matrix product over
(whole paths, samples) and a maximum over neighboring rows.

A minimal sub-tree has, of every move, the one outcome nearest to its mean; each path occurs in it exactly once. Its
nodes are never objects: :meth:`Subtrees.below` returns bounds of the outcomes of its first moves and forgets the rest.

Reference: Kharkovskii, Ling & Low 2020, Algorithm 1; numbers in parentheses are lines of its box.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from surefoot.policy.routes.bellman import Shared
from surefoot.policy.routes.lipschitz import Reach, grouped, nearest
from surefoot.policy.routes.path_tree import PathTree

__all__ = ["Node", "Subtrees"]

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]
Indices = NDArray[np.intp]

CHUNK = 1 << 18  # numbers in one temporary array: they should stay in the processor's cache


@dataclass(eq=False)
class Node:
    """A node that the walk has reached: a path, and one imagined outcome of each of its moves.

    Attributes
    ----------
    depth, path : int
        How many moves lead to it, and which path of that many moves it is.
    outcomes : array of shape (depth,)
        The sample of each stage.
    low, up : array of shape (A, N)
        Bounds of the value after each move and each of its outcomes.
    expanded, complete : array of shape (A, N)
        Where a sub-tree stands, and where a whole one does.
    lower, upper : array of shape (A,)
        Q̲ and Q̄, bounds of the value of each move. All values include what was collected on the way to the node.
    children : dict
        The nodes below that the walk has reached too, by move and outcome.
    """

    depth: int
    path: int
    outcomes: Indices
    low: Array
    up: Array
    expanded: Flags
    complete: Flags
    lower: Array
    upper: Array
    children: dict[tuple[int, int], Node] = field(default_factory=dict)

    @property
    def value(self) -> tuple[float, float]:
        """V̲ and V̄ (lines 15 and 16)."""
        return float(self.lower.max()), float(self.upper.max())


class Subtrees:
    """Bounds of the values in a tree of imagined outcomes.

    Parameters
    ----------
    tree : PathTree
        The paths.
    normals : Shared
        The innovations imagined at each stage but the last, with their weights.
    reach : Reach
        How far values can differ.
    init : {"mlo_jensen", "mlo", "lipschitz"}
        Bounds of an outcome of which nothing is known: the value 𝕍 of the later outcomes' means and 𝕍 + θ; 𝕍 ± θ; none.
    slack : float
        λ, by which averages over samples are widened.
    exact : bool
        Whether the bounds are about the exact values, and not about the recursion on these samples.
    intersect : bool
        Whether a new bound replaces a tighter one.

    Attributes
    ----------
    horizon, samples : int
        H and N.
    likely : array of shape (P_1,)
        ℚ, the value of each first move if every outcome is its mean.
    sizes : list of array
        Nodes of the minimal sub-tree of each path of 0, 1, ..., H moves, itself included.

    >>> from surefoot import GP, SE, Dives, Paths
    >>> grid = np.stack(np.meshgrid(np.arange(9.0), np.arange(9.0), indexing="ij"), axis=-1).reshape(-1, 2)
    >>> belief = GP(SE(2.0), noise=1e-3).condition(grid[[40]], [1.0])
    >>> tree = PathTree.grow(belief, Paths(grid, Dives((9, 9), 2), start=40), 40, horizon=3)
    >>> normals = Shared.draw(tree, 30, np.random.default_rng(0))
    >>> low, up = Subtrees(tree, normals, Reach.of(tree, "tight", normals.tables)).below(0, 0, np.empty(0, int))
    >>> low.shape, bool((low <= up).all())
    ((4, 30), True)
    """

    def __init__(
        self,
        tree: PathTree,
        normals: Shared,
        reach: Reach,
        *,
        init: str = "mlo_jensen",
        slack: float = 0.0,
        exact: bool = False,
        intersect: bool = True,
    ) -> None:
        self.tree, self.normals, self.reach = tree, normals, reach
        self.init, self.slack, self.intersect = init, slack, intersect
        self.horizon, self.samples = tree.horizon, normals.samples
        self.slopes = tree.slopes()
        paths = tree.ancestors(self.horizon)
        self.returns: Array = np.sum([tree.reward(d + 1)[paths[d]] for d in range(self.horizon)], axis=0)
        self.starts = [tree.leaves(depth) for depth in range(self.horizon + 1)]
        # Outcomes to come are taken at their mean: 0, or that of the samples where the recursion on them is meant, for
        # which alone Jensen's inequality holds without an error.
        self.tails = [np.zeros(len(self.returns)) for _ in range(self.horizon)]
        for depth in range(self.horizon - 2, -1, -1) if not exact else ():
            center = normals.weights[depth] @ normals.tables[depth]
            self.tails[depth] = self.tails[depth + 1] + self.slopes[:, depth] @ center
        self.likely: Array = np.maximum.reduceat(self.returns, self.starts[1][:-1])
        self.middle = [nearest(tree, depth, X) for depth, X in enumerate(normals.tables, start=1)]  # (9)
        self.sizes = self._counted()

    def _counted(self) -> list[NDArray[np.int64]]:
        sizes = [np.ones(len(self.tree.levels[-1].rows), dtype=np.int64)]
        for depth in range(self.horizon - 1, -1, -1):
            starts = np.zeros(1, dtype=np.intp) if depth == 0 else self.tree.levels[depth - 1].first
            sizes.insert(0, 1 + np.add.reduceat(sizes[0], starts))
            if 0 < depth == self.horizon - 1 and self.init != "lipschitz":
                sizes[0] = sizes[0] * self.samples  # all outcomes are evaluated there
        return sizes

    # -- where paths lie ---------------------------------------------------------------------------------------------

    def moves(self, depth: int, path: int) -> tuple[int, int]:
        """Return the paths that continue a path of ``depth`` moves by one: from, to."""
        if depth == 0:
            return 0, len(self.tree.levels[0].rows)
        level = self.tree.levels[depth - 1]
        return int(level.first[path]), int(level.first[path] + level.count[path])

    def at(self, depth: int, path: int, outcomes: Indices) -> Array:
        """Return the expected returns of the whole paths that continue a node, later innovations being 0."""
        rows = slice(*self.starts[depth][path : path + 2])
        returns = self.returns[rows].copy()
        for stage, outcome in enumerate(outcomes):
            returns += self.slopes[rows, stage] @ self.normals.tables[stage][outcome]
        return returns

    def settled(self, depth: int) -> bool:
        """Return whether a node of ``depth`` moves is complete as soon as it is expanded."""
        return depth == self.horizon - 1 or (depth == self.horizon - 2 and self.init != "lipschitz")

    def standing(self, depth: int, first: int, past: int) -> tuple[Flags, Flags]:
        """Return which outcomes of the moves ``first`` to ``past`` a minimal sub-tree has, and which are complete."""
        shape = (past - first, self.samples)
        if depth == self.horizon - 2 and self.init != "lipschitz":  # values just before the end are exact
            return np.ones(shape, dtype=np.bool_), np.ones(shape, dtype=np.bool_)
        expanded = np.zeros(shape, dtype=np.bool_)
        expanded[np.arange(past - first), self.middle[depth][first:past]] = True
        return expanded, expanded & self.settled(depth + 1)

    # -- bounds ------------------------------------------------------------------------------------------------------

    def average(self, depth: int, low: Array, up: Array) -> tuple[Array, Array]:
        """Return Q̲ and Q̄ of moves from bounds of their outcomes (..., N) at stage ``depth`` + 1 (lines 12–14)."""
        weights = self.normals.weights[depth]
        return low @ weights - self.slack, up @ weights + self.slack

    def value(self, depth: int, path: int, outcomes: Indices) -> tuple[float, float]:
        """Return V̲ and V̄ of a node that is complete when it is expanded."""
        if depth == self.horizon - 1:
            best = float(self.at(depth, path, outcomes).max())
            return best, best
        lower, upper = self.average(depth, *self.below(depth, path, outcomes))
        return float(lower.max()), float(upper.max())

    def below(self, depth: int, path: int, outcomes: Indices) -> tuple[Array, Array]:
        """EXPAND (lines 1–17): return bounds of all outcomes of all moves after a node, (A, N) each."""
        return self.grown(depth, *self.moves(depth, path), self.at(depth, path, outcomes))

    def grown(self, depth: int, first: int, past: int, returns: Array) -> tuple[Array, Array]:
        """Return the same for the moves ``first`` to ``past``, given the returns of the whole paths below them."""
        below, size = depth + 1, past - first
        cuts = self.starts[below][first : past + 1] - self.starts[below][first]
        if size > 1 and len(returns) * self.samples > CHUNK:
            half = size // 2
            one = self.grown(depth, first, first + half, returns[: cuts[half]])
            two = self.grown(depth, first + half, past, returns[cuts[half] :])
            return np.concatenate([one[0], two[0]]), np.concatenate([one[1], two[1]])
        rows = slice(self.starts[below][first], self.starts[below][past])
        slopes, X = self.slopes[rows, depth], self.normals.tables[depth]
        if self.init != "lipschitz" and below == self.horizon - 1:  # exact: the best mean of each outcome
            values = np.column_stack([slopes, returns]) @ np.column_stack([X, np.ones(len(X))]).T
            best = grouped(np.maximum, values, cuts)
            return best, best.copy()
        products = slopes @ X.T if self.init != "lipschitz" or self.reach.kind == "tight" else np.empty((0, 0))
        if self.init == "lipschitz":
            low, up = np.full((size, len(X)), -np.inf), np.full((size, len(X)), np.inf)
        else:  # (6-8)
            value = grouped(np.maximum, products + (returns + self.tails[below][rows])[:, None], cuts)
            theta = self.reach.theta[below][first:past, None]
            low, up = value - theta if self.init == "mlo" else value, value + theta
        chosen, moves = self.middle[depth][first:past], np.arange(size)
        returns = returns + np.einsum("pk,pk->p", slopes, np.repeat(X[chosen], np.diff(cuts), axis=0))
        v_low, v_up = self._through(below, first, past, returns, cuts)  # (10)
        if self.intersect:
            v_low, v_up = np.maximum(v_low, low[moves, chosen]), np.minimum(v_up, up[moves, chosen])
        low[moves, chosen], up[moves, chosen] = v_low, v_up
        if self.reach.kind == "tight":  # (11)
            products -= products[np.arange(len(products)), np.repeat(chosen, np.diff(cuts))][:, None]
            fall, rise = grouped(np.minimum, products, cuts), grouped(np.maximum, products, cuts)
        else:
            rise = self._distances(below, np.arange(first, past), chosen)
            fall = -rise
        return np.maximum(low, v_low[:, None] + fall), np.minimum(up, v_up[:, None] + rise)

    def _through(self, depth: int, first: int, past: int, returns: Array, cuts: Indices) -> tuple[Array, Array]:
        """V̲ and V̄ of one node for each path of ``depth`` moves from ``first`` to ``past``."""
        if depth == self.horizon - 1:  # the best mean: nothing is sampled at the last stage
            best = np.maximum.reduceat(returns, cuts[:-1])
            return best, best
        level = self.tree.levels[depth - 1]
        start, stop = int(level.first[first]), int(level.first[past - 1] + level.count[past - 1])
        lower, upper = self.average(depth, *self.grown(depth, start, stop, returns))
        groups = level.first[first:past] - start
        return np.maximum.reduceat(lower, groups), np.maximum.reduceat(upper, groups)

    def spans(self, depth: int, path: int, outcome: int) -> tuple[Array, Array]:
        """Return how much less, and how much more, the value of each outcome can be than that of one, (N,) each.

        Of the last of ``depth`` moves of a path: the smallest and the largest change along any whole path, or
        ± L ‖z_i − z_j‖ (line 20).
        """
        if self.reach.kind == "paper":
            rise = self._distances(depth, np.array([path]), np.array([outcome]))[0]
            return -rise, rise
        return self.shifts(depth, path, self.normals.tables[depth - 1] - self.normals.tables[depth - 1][outcome])

    def shifts(self, depth: int, path: int, change: Array) -> tuple[Array, Array]:
        """Return the smallest and the largest change of the value with innovations (m, k) of stage ``depth``."""
        fall, rise = self.ranges(depth, self.starts[depth][path : path + 2], change)
        return fall[0], rise[0]

    def ranges(self, stage: int, groups: Indices, change: Array) -> tuple[Array, Array]:
        """Return the same by group of whole paths, which begin and end at ``groups``; shape (groups, m)."""
        products = self.slopes[groups[0] : groups[-1], stage - 1] @ change.T
        cuts = groups - groups[0]
        return grouped(np.minimum, products, cuts), grouped(np.maximum, products, cuts)

    def _distances(self, depth: int, paths: Indices, outcomes: Indices) -> Array:
        """L ‖Ψ (x_i − x_j)‖ for one outcome j of each path, shape (paths, N)."""
        X, psi = self.normals.tables[depth - 1], self.tree.levels[depth - 1].psi
        if psi is None:
            raise ValueError(f"the tree has no predictive covariances for paths of {depth} moves")
        apart = (X[None] - X[outcomes][:, None]) @ np.swapaxes(psi[paths], 1, 2)
        scaled: Array = self.reach.steepness[depth - 1][paths, None] * np.sqrt(np.square(apart).sum(axis=2))
        return scaled
