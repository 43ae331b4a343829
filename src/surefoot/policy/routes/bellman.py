"""The Bellman recursions of planning: what each first move is worth, when later ones answer to what was measured.

With R the reward of a move, V the value of the best continuation, and V = 0 after the last move,

* :func:`most_likely`  Q(a) = R(a) + V(z = μ): every outcome is what is expected; a search over fixed sequences;
* :func:`sampled`  Q(a) = R(a) + (1/N) Σ V(z = z_i), with N imagined outcomes of each move, and so on down the tree.

An imagined outcome is the standard normals x behind it (:mod:`surefoot.policy.routes.path_tree`), so the value of a
leaf is c + Σ_j w_j · x_j: sums of a few small tables, one for each stage. They are added by broadcasting, maximized
over moves and averaged over outcomes, block by block, in one pass for each outcome of the first stage: time grows as
(A N)^(H−1), memory does not. Blocks are NumPy arrays, or torch tensors on a device.

References: Kharkovskii, Ling & Low 2020, eqs. (6) and (8).

>>> from surefoot import GP, SE, Dives, Paths
>>> grid = np.stack(np.meshgrid(np.arange(9.0), np.arange(9.0), indexing="ij"), axis=-1).reshape(-1, 2)
>>> belief = GP(SE(2.0), noise=1e-4).condition(grid[[40]], [1.0])
>>> tree = PathTree.grow(belief, Paths(grid, Dives((9, 9), 2), start=40), 40, horizon=2)
>>> most_likely(tree).round(3)
array([3.371, 3.371, 3.371, 3.371])
>>> sampled(tree, Shared.draw(tree, 64, np.random.default_rng(0))).round(1)  # adapting to outcomes is worth more
array([3.5, 3.5, 3.5, 3.5])
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from surefoot.domain.design import sobol
from surefoot.loop.device import torch_device
from surefoot.policy.routes.path_tree import PathTree

__all__ = ["Fresh", "Normals", "RoutePlan", "Shared", "full_nodes", "imagined", "most_likely", "nodes_of", "sampled"]

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

BLOCK = 1 << 17  # numbers in a block: a processor wants it to stay in its cache
DEVICE_BLOCK = 1 << 26  # a device wants few large launches


@dataclass(frozen=True, eq=False)
class RoutePlan:
    """What a planner found out about the first moves.

    Attributes
    ----------
    values : array of shape (A,)
        What to choose by: an estimate of what each move is worth, −inf where it leads into a dead end too soon.
    lower, upper : array of shape (A,)
        Bounds of what each is really worth, all of them at once with probability ``confidence``.
    confidence : float
        1.0 where the bounds are certain.
    nodes : int
        Nodes of the tree that was searched, the root included.
    fallbacks : tuple of int
        Moves whose sampled value was too far from the most likely one to be trusted.

    >>> plan = RoutePlan(np.array([1.0, 2.0]), np.array([0.5, 1.0]), np.array([1.5, 3.0]), 1.0, 9)
    >>> plan.loss(1), plan.loss(0)
    (2.0, 2.5)
    """

    values: Array
    lower: Array
    upper: Array
    confidence: float
    nodes: int
    fallbacks: tuple[int, ...] = ()

    def loss(self, move: int) -> float:
        """Return how much less than the best one a move can be worth, at most."""
        return float(self.upper.max() - self.lower[move])


def most_likely(tree: PathTree) -> Array:
    """Return what each first move is worth if every outcome is its expectation, shape (A,); −inf for a dead end.

    Expected outcomes change no expectation, so this is the best sum of rewards over the paths that begin with the
    move: eq. (8). By Jensen's inequality it is never more than the move is really worth.

    >>> from surefoot import GP, MoveTable, Paths
    >>> ring = Paths([0.0, 9.0], MoveTable({0: [[1], [0]], 1: [[1]]}), start=0)
    >>> tree = PathTree.grow(GP(noise=0.01).condition([[0.0], [9.0]], [1.01, 2.02]), ring, 0, horizon=2)
    >>> most_likely(tree).round(6)  # twice the second place, or the first and then the second
    array([4., 3.])
    """
    values = tree.reward(tree.horizon)
    for depth in range(tree.horizon - 1, 0, -1):
        values = tree.reward(depth) + tree.best_below(depth, values)  # ℚ = R + max ℚ
    return tree.at_root(values)


def full_nodes(tree: PathTree, samples: int) -> int:
    """Return how many nodes the tree of all imagined outcomes has, the root included.

    >>> from surefoot import GP, MoveTable, Paths
    >>> loop = Paths([0.0, 1.0], MoveTable({0: [[1]] * 4, 1: [[0]] * 4}), start=0)
    >>> [full_nodes(PathTree.grow(GP().condition(), loop, 0, h), 100) for h in (1, 2, 3)]
    [5, 2001, 800401]
    """
    return int(nodes_of([len(level.rows) for level in tree.levels], samples))


def nodes_of(paths: Sequence[float], samples: int) -> float:
    """Return the same from the numbers of paths of 1, 2, ... moves.

    >>> nodes_of([4, 16], 100)
    2001
    """
    inner = sum(size * samples**depth for depth, size in enumerate(paths[:-1], start=1))
    total: float = 1 + inner + paths[-1] * samples ** (len(paths) - 1)
    return total


class Normals(Protocol):
    """Where the standard normals of imagined outcomes come from.

    ``samples`` is N, ``weights`` (H − 1, N) the weight of each outcome by stage, 1/N if they are drawn.
    """

    samples: int
    weights: Array

    def begin(self, tree: PathTree, first: slice) -> None:
        """Prepare the outcomes below some of the first stage's samples."""

    def stage(self, depth: int, paths: slice | Indices, first: slice) -> Array:
        """Return the normals of a stage: (N, k) if all its nodes share them, else (P, n, N, ..., N, k).

        ``paths`` are beginnings of ``depth`` moves, ``first`` the samples of the first stage; depth − 1 axes of N
        outcomes follow for the later stages.
        """


class Shared:
    """One table of outcomes for each stage, shared by all its nodes: comparisons of moves see the same luck.

    Parameters
    ----------
    tables : sequence of arrays of shape (N, k)
        The normals of stages 1 to H − 1.
    weights : array of shape (H − 1, N), optional
        The weight of each outcome, 1/N by default; those of a quadrature rule make the recursion exact.

    >>> Shared([np.zeros((4, 2))]).weights
    array([[0.25, 0.25, 0.25, 0.25]])
    """

    def __init__(self, tables: Sequence[Array], weights: Array | None = None) -> None:
        self.tables = [np.asarray(table, dtype=np.float64) for table in tables]
        self.samples = len(self.tables[0]) if self.tables else 1
        even = np.full((len(self.tables), self.samples), 1.0 / self.samples)
        self.weights = even if weights is None else np.asarray(weights, dtype=np.float64)

    @classmethod
    def draw(cls, tree: PathTree, samples: int, rng: np.random.Generator, method: str = "random") -> Shared:
        """Draw the tables of a tree: independent normals, or a scrambled Sobol sequence for each stage."""
        stages, k = tree.horizon - 1, tree.length
        if method == "random":
            return cls(list(rng.standard_normal((stages, samples, k))))
        tiny = 2.0**-53
        return cls([ndtri(np.clip(sobol(samples, k, rng), tiny, 1.0 - tiny)) for _ in range(stages)])

    def begin(self, tree: PathTree, first: slice) -> None:
        """Nothing to prepare."""

    def stage(self, depth: int, paths: slice | Indices, first: slice) -> Array:
        """Return the stage's table."""
        return self.tables[depth - 1][first] if depth == 1 else self.tables[depth - 1]


class Fresh:
    """Independent outcomes for each node and each move, as in the paper; drawn block by block, in a fixed order.

    Parameters
    ----------
    horizon : int
        H of the tree.
    samples : int
        N, outcomes of each node and move.
    rng : numpy.random.Generator
        Draws them.
    """

    def __init__(self, horizon: int, samples: int, rng: np.random.Generator) -> None:
        self.samples = samples
        self.weights = np.full((horizon - 1, samples), 1.0 / samples)
        self._rng = rng
        self._normals: list[Array] = []

    def begin(self, tree: PathTree, first: slice) -> None:
        """Draw all stages but the last, whose outcomes are used once and drawn then."""
        self._last, self._k = tree.horizon - 1, tree.length
        width = first.stop - first.start
        self._normals = [
            self._rng.standard_normal((len(level.rows), width, *(self.samples,) * depth, self._k))
            for depth, level in enumerate(tree.levels[: max(tree.horizon - 2, 0)])
        ]

    def stage(self, depth: int, paths: slice | Indices, first: slice) -> Array:
        """Return kept normals, or draw those of the last stage."""
        if depth < self._last:
            return self._normals[depth - 1][paths]
        count = paths.stop - paths.start if isinstance(paths, slice) else len(paths)
        width = first.stop - first.start
        return self._rng.standard_normal((count, width, *(self.samples,) * (depth - 1), self._k))


def imagined(tree: PathTree, samples: int, sampling: str, rng: np.random.Generator) -> Normals:
    """Return outcomes as the policy's ``sampling`` says: ``"shared"``, ``"sobol"`` (shared too), or ``"iid"``.

    >>> from surefoot import GP, MoveTable, Paths
    >>> ring = Paths([0.0, 9.0], MoveTable({0: [[1], [0]], 1: [[1]]}), start=0)
    >>> tree = PathTree.grow(GP(noise=0.01).condition([[0.0], [9.0]], [1.01, 2.02]), ring, 0, horizon=2)
    >>> imagined(tree, 8, "sobol", np.random.default_rng(0)).tables[0].shape
    (8, 1)
    """
    if sampling == "iid":
        return Fresh(tree.horizon, samples, rng)
    return Shared.draw(tree, samples, rng, "random" if sampling == "shared" else "sobol")


def sampled(tree: PathTree, normals: Normals, *, device: str | None = None) -> Array:
    """Return what each first move is worth by imagined outcomes, shape (A,); −inf for a dead end. Eq. (6).

    Parameters
    ----------
    tree : PathTree
        The paths.
    normals : Normals
        The outcomes.
    device : str, optional
        None for NumPy, or a torch device such as ``"cuda"``.

    >>> from surefoot import GP, MoveTable, Paths
    >>> ring = Paths([0.0, 9.0], MoveTable({0: [[1], [0]], 1: [[1]]}), start=0)
    >>> tree = PathTree.grow(GP(noise=0.01).condition([[0.0], [9.0]], [1.01, 2.02]), ring, 0, horizon=2)
    >>> sampled(tree, Shared([np.array([[-1.0], [1.0]])])).round(6)  # a good and a bad outcome of the first move
    array([4., 3.])
    """
    return tree.at_root(tree.reward(1) + _Recursion(tree, normals, device).values())  # 𝒬 = R + (1/N) Σ 𝒱


class _Recursion:
    """The backward recursion over blocks of paths and outcomes."""

    def __init__(self, tree: PathTree, normals: Normals, device: str | None) -> None:
        self.tree, self.normals = tree, normals
        self.xp, self.like = _backend(device)
        # Fresh outcomes are drawn block by block: the same blocks on every device give the same outcomes.
        self.limit = BLOCK if device in (None, "cpu") or isinstance(normals, Fresh) else DEVICE_BLOCK
        self.rewards = [self.put(tree.reward(depth)) for depth in range(1, tree.horizon + 1)]
        self.tables = [self.put(level.weights) for level in tree.levels]
        self.weights = self.put(normals.weights)
        self.above = [tree.ancestors(depth) for depth in range(1, tree.horizon + 1)]

    def put(self, array: Array) -> Any:
        return array if not self.like else self.xp.asarray(array, **self.like)

    def values(self) -> Array:
        """What is to come after each first move, on average; shape (P₁,)."""
        H, N = self.tree.horizon, self.normals.samples
        total = self.put(np.zeros(len(self.tree.levels[0].rows)))
        if H == 1:
            return np.zeros(len(self.tree.levels[0].rows))
        wide = len(self.tree.levels[H - 2].rows) * N ** max(H - 3, 0)  # kept between two levels
        step = int(np.clip(self.limit // wide, 1, N))
        for start in range(0, N, step):
            first = slice(start, min(start + step, N))
            self.normals.begin(self.tree, first)
            later = None
            for depth in range(H - 1, 0, -1):
                later = self.average(depth, first, later)
            total += later
        return total if not self.like else np.asarray(total.cpu().numpy(), dtype=np.float64)

    def average(self, depth: int, first: slice, later: Any) -> Any:
        """The mean over the outcomes of stage ``depth`` of the best continuation, for all paths of that length."""
        level, N, n = self.tree.levels[depth - 1], self.normals.samples, first.stop - first.start
        shape = (n, *(N,) * (depth - 1))
        weights = self.weights[depth - 1, first] if depth == 1 else self.weights[depth - 1]
        each = max(1, self.limit // int(np.prod(shape)))
        out = self.put(np.empty((len(level.rows), *shape[:-1])))
        for start in range(0, len(level.rows), each):
            block = slice(start, min(start + each, len(level.rows)))
            out[block] = self.best(depth, block, shape, first, later) @ weights  # (1/N) Σ_i max_a 𝒬(a | z_i)
        return out

    def best(self, depth: int, block: slice, shape: tuple[int, ...], first: slice, later: Any) -> Any:
        """The value of the best next move, by path of the block and by outcome; one move after the other."""
        level = self.tree.levels[depth - 1]
        normals = self.outcomes(depth, block, first)
        start, count = level.first[block], level.count[block]
        best = scores = None
        for rank in range(int(count.max())):
            # Where a path has fewer moves its first one stands in: it changes no maximum.
            rows = start + np.where(rank < count, rank, 0)
            reward, weights = self.rewards[depth][rows], self.tables[depth][rows]
            scores = self.scores(reward, weights, normals, shape, scores if best is not None else None)
            if later is not None:
                scores += later[rows]
            if best is None:
                best, scores = scores, None
            else:
                self.xp.maximum(best, scores, out=best)
        return best

    def outcomes(self, depth: int, block: slice, first: slice) -> list[Any]:
        """The normals of stages 1 to depth for the paths of a block."""
        paths = self.above[depth - 1]
        chosen: list[slice | Indices] = [paths[j][block] for j in range(depth - 1)]
        return [self.put(self.normals.stage(j + 1, c, first)) for j, c in enumerate([*chosen, block])]

    def scores(self, reward: Any, weights: Any, normals: list[Any], shape: tuple[int, ...], out: Any) -> Any:
        """c + β I + Σ_j w_j · x_j, shape (P, n, N, ..., N); stage j varies along axis j."""
        made = reward
        for j, x in enumerate(normals):
            if x.ndim == 2:  # shared: (N, k) -> (P, 1, ..., 1, N)
                change = (weights[:, j] @ x.T).reshape(len(reward), *(1,) * j, len(x))
            else:
                change = (x.reshape(len(reward), -1, x.shape[-1]) @ weights[:, j, :, None]).reshape(x.shape[:-1])
            last = j == len(normals) - 1
            if last and out is not None:
                made = self.xp.add(made[..., None], change, out=out)
            else:
                made = made[..., None] + change
        return made


def _backend(device: str | None) -> tuple[Any, dict[str, Any]]:
    """NumPy, or torch and where its tensors live."""
    if device is None:
        return np, {}
    torch, where = torch_device(device)
    return torch, {"device": where, "dtype": torch.float64}
