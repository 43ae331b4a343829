"""Anytime planning: the best move so far, and how much a better one could still gain.

**Question.** Which move is best when several more are planned, and the full tree of imagined outcomes is too large to
search?

**Rule.** A tree of imagined outcomes grows where it matters. Every node has a lower and an upper bound of its value.
Each iteration walks down to the most uncertain outcome, grows a *minimal sub-tree* there (of every move the one outcome
nearest to its mean), and carries the bounds over to the neighboring outcomes, which cannot be much better or worse, and
up to the root. It can be stopped at any time; the certificate says what the chosen move may lose.

**Reference.** Kharkovskii, Ling & Low, *Nonmyopic Gaussian process optimization with macro-actions*, AISTATS 2020,
Algorithm 1; numbers in parentheses in the code are lines of its box.

**Guarantee.** With ``epsilon``, all bounds hold for the Bayes-optimal values with probability ``plan.confidence``
(Theorem 5; :func:`~surefoot.policy.routes.lipschitz.anytime_samples` says how many samples make it 1 − δ), and the
move chosen loses at most ``certificate`` = V̄ − Q̲(chosen). Without, the bounds hold always, for the full tree of the
same samples; about the exact values they promise nothing, so ``plan.confidence`` is 0. All values are those under the
belief that grew the tree; whether it is right about the field is not its question.

**The authors' options.** 300 samples, 1500 iterations, horizon 2, 3 and 4, β = 0.

**What differs** (the printed version in parentheses):

* the walk follows the largest *upper* bound (``action_rule="lower"``: it keeps to one move for ever, and the gap at the
  root stays open);
* bounds are intersected, so that they never loosen (``intersect=False``: overwritten);
* the last stage is exact, nothing is sampled there; λ widens only averages over samples;
* an outcome starts between the value of its most likely continuation, a lower bound by Jensen's inequality, and that
  plus θ (``init="mlo"``: plus or minus θ; ``"lipschitz"``: unknown until a neighbor is known);
* neighbors differ by at most the steepest path in the direction from one to the other (``constants="paper"``:
  Definition 1 times their distance);
* sub-trees that are known exactly are never entered again, and moves that cannot be the best any more are left alone
  (``prune=False``: searched like the others);
* λ is 0 without ``epsilon``, and the fall-back to the most likely observations (lines 47-50) belongs to it;
* the certificate is V̄ − Q̲(chosen): Theorem 6 uses the gap at the root for all moves, but only the chosen one has it;
* all nodes of a stage share their samples: Theorem 1 needs no independence between nodes.

**Cost of one iteration.** O(N k P), for N samples of moves of k stops and the P whole paths that continue the first
move it follows; memory O(A N) for each node that was expanded by an iteration, beside the tree of paths.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot.arguments import one_of, whole
from surefoot.errors import NotSupported
from surefoot.policy.routes.bellman import Normals, RoutePlan, Shared
from surefoot.policy.routes.lipschitz import Constants, Reach, anytime_split, failure
from surefoot.policy.routes.minimal_subtrees import Node, Subtrees
from surefoot.policy.routes.path_tree import PathTree

__all__ = ["AnytimePlanner", "Carry"]

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]
Indices = NDArray[np.intp]

ROUNDING = 1e-12  # of the largest return: bounds closer than this are equal

_CHOICES = {
    "constants": ("tight", "paper"),
    "action_rule": ("upper", "lower", "gap"),
    "init": ("mlo_jensen", "mlo", "lipschitz"),
}
_NOWHERE: Indices = np.empty(0, dtype=np.intp)


@dataclass(frozen=True, eq=False)
class Carry:
    """What the search before a move says about the one after it; made by :meth:`AnytimePlanner.carry`.

    Attributes
    ----------
    low, up : array of shape (A, N)
        Bounds of the value after each of the new first moves and each of its outcomes.
    lower, upper : array of shape (A,)
        Bounds of the values of these moves.
    normals : Shared
        The outcomes that the bounds are about: the next search must imagine the same.
    """

    low: Array
    up: Array
    lower: Array
    upper: Array
    normals: Shared


class AnytimePlanner:
    """A search that can be stopped at any time: :meth:`run` it, and choose by the plan.

    Parameters
    ----------
    tree : PathTree
        All paths of H moves.
    normals : Shared
        The outcomes imagined at each stage but the last.
    epsilon : float, optional
        The loss to stay below, apart from the gap that is left: it sets λ. A move whose lower bound is incredibly far
        from the value of its most likely outcomes then takes the latter (lines 47-50).
    constants : {"tight", "paper"}
        What the bounds follow from.
    action_rule : {"upper", "lower", "gap"}
        Which move the walk follows: that of the largest upper bound, largest lower bound, or largest difference.
    init : {"mlo_jensen", "mlo", "lipschitz"}
        Bounds of outcomes that were not expanded.
    intersect : bool
        Whether new bounds are intersected with old ones.
    prune : bool
        Whether to leave alone what cannot change the choice any more.
    batch : int
        How many outcomes of one move each iteration expands.
    carry : Carry, optional
        What is known from the search before the last move.

    Attributes
    ----------
    root : Node
        The tree.
    nodes : int
        Nodes explored: decisions expanded, and the moves of the last stage.
    iterations : int
        Iterations done; the first expansion of the root is none.
    expansions : list of int
        Nodes that iterations expanded, by depth.
    gaps : list of float
        The certificate after the root's expansion, and after each iteration.
    interrupted : bool
        Whether the last run was ended from the keyboard.

    >>> from surefoot import GP, SE, Dives, Paths
    >>> grid = np.stack(np.meshgrid(np.arange(9.0), np.arange(9.0), indexing="ij"), axis=-1).reshape(-1, 2)
    >>> paths = Paths(grid, Dives((9, 9), 2), start=40)
    >>> belief = GP(SE(2.0), noise=1e-3).condition(grid[[40, 41]], [0.0, 1.0])
    >>> tree = PathTree.grow(belief, paths, 40, horizon=4)
    >>> planner = AnytimePlanner(tree, Shared.draw(tree, 20, np.random.default_rng(0)))
    >>> plan = planner.run(iterations=20)
    >>> int(plan.values.argmax()), planner.gaps[-1] < planner.gaps[0]  # move 0 follows the slope seen so far
    (0, True)
    """

    def __init__(
        self,
        tree: PathTree,
        normals: Normals,
        *,
        epsilon: float | None = None,
        constants: str = "tight",
        action_rule: str = "upper",
        init: str = "mlo_jensen",
        intersect: bool = True,
        prune: bool = True,
        batch: int = 1,
        carry: Carry | None = None,
    ) -> None:
        for name, word in zip(_CHOICES, (constants, action_rule, init), strict=True):
            one_of(word, name, _CHOICES[name])
        whole(batch, "batch", 1)
        self.tree, self.normals = tree, _checked(tree, normals)
        self.slack, self.confidence = 0.0, 0.0 if tree.horizon > 1 else 1.0
        if epsilon is not None and tree.horizon > 1:
            largest = Constants.of(tree, constants)
            self.slack, _ = anytime_split(largest, epsilon)
            self.confidence = 1.0 - failure(largest, self.normals.samples, self.slack)
        tables = self.normals.tables if epsilon is None else None
        self.reach = Reach.of(tree, constants, tables, self.normals.weights if epsilon is None else None)
        self.subtrees = Subtrees(
            tree,
            self.normals,
            self.reach,
            init=init,
            slack=self.slack,
            exact=epsilon is not None,
            intersect=intersect,
        )
        self.action_rule, self.intersect, self.prune, self.batch = action_rule, intersect, prune, int(batch)
        self._certified = epsilon is not None
        self.nodes, self.iterations, self.interrupted = 1, 0, False
        self.expansions = [0] * tree.horizon
        self.gaps: list[float] = []
        self.tiny = ROUNDING * max(1.0, float(np.abs(self.subtrees.returns).max()))
        stops = np.searchsorted(tree.places, tree.levels[0].rows)
        self._expected = tree.belief.mean(tree.points[stops].reshape(stops.size, -1)).reshape(stops.shape)
        self._waiting = list(range(len(stops)))  # first moves that are still to be expanded
        self.root = self._planted(carry)

    # -- the answer --------------------------------------------------------------------------------------------------

    @property
    def plan(self) -> RoutePlan:
        """What is known about the first moves by now."""
        values, far = self._values()
        table, root = self.tree.at_root, self.root
        fallbacks = tuple(self.tree.levels[0].action[far].tolist())
        return RoutePlan(table(values), table(root.lower), table(root.upper), self.confidence, self.nodes, fallbacks)

    def _values(self) -> tuple[Array, Flags]:
        """Q of the first moves, by which one is chosen, and which of them fell back (lines 46-50)."""
        lower, likely = self.root.lower, self.subtrees.likely
        if not np.isfinite(lower).all():  # not all were expanded: the most likely outcomes compare them
            return likely, np.ones(len(likely), dtype=np.bool_)
        if not self._certified:
            return lower, np.zeros(len(likely), dtype=np.bool_)
        low, up = self.root.value
        far = ~(np.abs(lower - likely) <= 2.0 * self.slack + (up - low) + self.reach.worst)
        return np.where(far, likely, lower), far

    @property
    def certificate(self) -> float:
        """What the chosen move can lose against the best one, V̄ − Q̲(chosen)."""
        chosen = int(np.argmax(self._values()[0]))
        return max(0.0, float(self.root.upper.max() - self.root.lower[chosen]))

    @property
    def finished(self) -> bool:
        """Whether no iteration would change anything."""
        done = bool(self.root.complete.all()) or (self.prune and self.certificate <= self.tiny)
        return not self._waiting and done

    # -- the search --------------------------------------------------------------------------------------------------

    def run(self, iterations: int | None = None, seconds: float | None = None) -> RoutePlan:
        """Search on until a limit, the end of the tree, or an interrupt from the keyboard, and return the plan.

        Parameters
        ----------
        iterations : int, optional
            How many more; 0 only expands the root.
        seconds : float, optional
            How long; after 0 seconds the plan is that of the most likely outcomes.
        """
        if iterations is None and seconds is None:
            raise ValueError("give a limit: iterations, seconds, or both")
        if iterations is not None:
            whole(iterations, "iterations")
        if seconds is not None and not seconds >= 0.0:
            raise ValueError(f"seconds must not be negative, got {seconds!r}")
        end = np.inf if seconds is None else time.monotonic() + seconds
        last = np.inf if iterations is None else self.iterations + iterations
        self.interrupted = False
        try:
            while self._waiting and time.monotonic() < end:
                self._expand_root()
            while not self._waiting and not self.finished and self.iterations < last and time.monotonic() < end:
                self._construct()
                self.iterations += 1
                self.gaps.append(self.certificate)
        except KeyboardInterrupt:  # whatever was done so far holds: bounds are changed one by one, each for a valid one
            self.interrupted = True
        return self.plan

    def _construct(self) -> None:
        """CONSTRUCT (lines 24-38): from the root down to an outcome that was not expanded, and back."""
        node, way = self.root, []
        while (choice := self._uncertain(node)) is not None:
            way.append((node, *choice))
            if not node.expanded[choice]:
                break
            node = self._child(node, *choice)
        else:
            node.complete[:] = True  # nothing below is left to learn, but for rounding
        for node, move, outcome in reversed(way):
            if node.expanded[move, outcome]:
                below = node.children[move, outcome]
                self._replace(node, move, outcome, *below.value)
                node.complete[move, outcome] = below.complete.all()
                self._refine(node, move, [outcome])
            else:
                self._refine(node, move, self._expand(node, move, outcome))

    def _uncertain(self, node: Node) -> tuple[int, int] | None:
        """The move to follow and its most uncertain outcome (lines 26-28); None where nothing is left to learn."""
        with np.errstate(invalid="ignore"):
            gaps = np.where(node.complete, -np.inf, node.up - node.low)
        useful = ~node.complete.all(axis=1)
        if self.prune:
            gaps[gaps <= self.tiny] = -np.inf
            useful = (gaps.max(axis=1) > -np.inf) & (node.upper >= node.lower.max())
        if not useful.any():
            return None
        score = {"upper": node.upper, "lower": node.lower, "gap": node.upper - node.lower}[self.action_rule]
        moves = np.flatnonzero(useful)
        move = int(moves[np.argmax(score[moves])])
        return move, int(np.argmax(gaps[move]))

    def _refine(self, node: Node, move: int, outcomes: list[int]) -> None:
        """REFINE (lines 18-23) from some outcomes to the others, and the bounds of their move (lines 31-33)."""
        path = self.subtrees.moves(node.depth, node.path)[0] + move
        for outcome in outcomes:
            fall, rise = self.subtrees.spans(node.depth + 1, path, outcome)
            node.low[move] = np.maximum(node.low[move], node.low[move, outcome] + fall)
            node.up[move] = np.minimum(node.up[move], node.up[move, outcome] + rise)
        lower, upper = self.subtrees.average(node.depth, node.low[move], node.up[move])
        node.lower[move] = max(node.lower[move], lower) if self.intersect else lower
        node.upper[move] = min(node.upper[move], upper) if self.intersect else upper

    def _replace(self, node: Node, move: int, outcome: int, low: float, up: float) -> None:
        node.low[move, outcome] = max(node.low[move, outcome], low) if self.intersect else low
        node.up[move, outcome] = min(node.up[move, outcome], up) if self.intersect else up

    # -- growing -----------------------------------------------------------------------------------------------------

    def _expand(self, node: Node, move: int, outcome: int) -> list[int]:
        """EXPAND the outcome, and as many of the next most uncertain ones as fit into a batch; return which."""
        free = ~node.expanded[move] & ~node.complete[move]
        with np.errstate(invalid="ignore"):
            gaps = np.where(free, node.up[move] - node.low[move], -np.inf)
        gaps[outcome] = np.inf
        chosen: list[int] = np.argsort(-gaps, kind="stable")[: min(self.batch, int(free.sum()))].tolist()
        depth, path = node.depth + 1, self.subtrees.moves(node.depth, node.path)[0] + move
        for one in chosen:
            if settled := self.subtrees.settled(depth):
                low, up = self.subtrees.value(depth, path, np.append(node.outcomes, one))
            else:
                node.children[move, one] = child = self._grow(depth, path, np.append(node.outcomes, one))
                low, up = child.value
            self._replace(node, move, one, low, up)
            node.expanded[move, one], node.complete[move, one] = True, settled
            self.nodes += int(self.subtrees.sizes[depth][path])
            self.expansions[depth] += 1
        return chosen

    def _child(self, node: Node, move: int, outcome: int) -> Node:
        """The node below; made, if so far it was only a row in the minimal sub-tree of its parent."""
        if (move, outcome) not in node.children:
            path = self.subtrees.moves(node.depth, node.path)[0] + move
            node.children[move, outcome] = self._grow(node.depth + 1, path, np.append(node.outcomes, outcome))
        return node.children[move, outcome]

    def _grow(self, depth: int, path: int, outcomes: Indices) -> Node:
        low, up = self.subtrees.below(depth, path, outcomes)
        flags = self.subtrees.standing(depth, *self.subtrees.moves(depth, path))
        return Node(depth, path, outcomes, low, up, *flags, *self.subtrees.average(depth, low, up))

    def _planted(self, carry: Carry | None) -> Node:
        """The root before it is expanded, with bounds as any other outcome has them."""
        trees, moves = self.subtrees, len(self._waiting)
        if trees.horizon == 1:  # R is exact
            self._waiting, self.nodes = [], int(trees.sizes[0][0])
            low = trees.likely[:, None].copy()
            flags = np.ones(low.shape, dtype=np.bool_)
            return Node(0, 0, _NOWHERE, low, low.copy(), flags, flags.copy(), trees.likely.copy(), trees.likely.copy())
        low, up = np.full((moves, trees.samples), -np.inf), np.full((moves, trees.samples), np.inf)
        lower, upper = np.full(moves, -np.inf), np.full(moves, np.inf)
        if trees.init != "lipschitz":
            middle = np.maximum.reduceat(trees.returns + trees.tails[0], trees.starts[1][:-1])
            lower, upper = middle - (self.reach.worst if trees.init == "mlo" else 0.0), middle + self.reach.worst
        if carry is not None:
            if carry.low.shape != low.shape or not _same(carry.normals, self.normals):
                raise ValueError("what is carried over is about other moves or other outcomes")
            low, up = np.maximum(low, carry.low), np.minimum(up, carry.up)
            lower, upper = np.maximum(lower, carry.lower), np.minimum(upper, carry.upper)
        flags = np.zeros((2, *low.shape), dtype=np.bool_)
        return Node(0, 0, _NOWHERE, low, up, flags[0], flags[1], lower, upper)

    def _expand_root(self) -> None:
        """Expand the root for one more of the first moves: with many, time may be up before the last."""
        move, trees, root = self._waiting[0], self.subtrees, self.root
        low, up = trees.grown(0, move, move + 1, trees.returns[slice(*trees.starts[1][move : move + 2])])
        root.low[move], root.up[move] = np.maximum(root.low[move], low[0]), np.minimum(root.up[move], up[0])
        lower, upper = trees.average(0, root.low[move], root.up[move])
        root.lower[move], root.upper[move] = max(root.lower[move], lower), min(root.upper[move], upper)
        expanded, complete = trees.standing(0, move, move + 1)
        root.expanded[move], root.complete[move] = expanded[0], complete[0]
        self.nodes += int(trees.sizes[1][move])
        self._waiting.pop(0)
        if not self._waiting:
            self.gaps.append(self.certificate)

    # -- after the move ----------------------------------------------------------------------------------------------

    def carry(self, move: int, values: ArrayLike) -> Carry | None:
        """Return what the search says about the next one, once a move was made and its values were measured.

        The real outcome is none of the imagined ones, but a neighbor of all of them: from every node that was expanded
        after the move, bounds carry over to it. They are about one move less: they serve a search whose horizon is
        shorter by one (as it is when the budget ends), over the belief that has learnt the values.

        Parameters
        ----------
        move : int
            The move made, as in the plan's tables.
        values : array of shape (k,)
            What was measured, all of it.

        Returns
        -------
        Carry or None
            None if nothing was learnt that the next search would not know anyway.
        """
        measured = np.asarray(values, dtype=np.float64)
        if measured.shape != (self.tree.length,) or not np.isfinite(measured).all():
            raise ValueError(f"a move has {self.tree.length} values, got {values!r}")
        found = np.flatnonzero(self.tree.levels[0].action == move)
        if not found.size:
            raise ValueError(f"move {move!r} was not planned")
        trees, path, psi = self.subtrees, int(found[0]), self.tree.levels[0].psi
        if trees.horizon == 1 or psi is None or trees.settled(1) or path in self._waiting:
            return None
        self._child(self.root, path, int(trees.middle[0][path]))
        after = [(outcome, node) for (first, outcome), node in self.root.children.items() if first == path]
        innovations = np.linalg.solve(psi[path], measured - self._expected[path])
        change = innovations - self.normals.tables[0][[outcome for outcome, _ in after]]
        first, past = trees.moves(1, path)
        fall, rise = (shift.T for shift in trees.ranges(1, trees.starts[2][first : past + 1], change))  # (nodes, A)
        collected = float(self.tree.reward(1)[path])
        later = Shared(self.normals.tables[1:], self.normals.weights[1:])
        return Carry(
            np.max([node.low for _, node in after] + fall[:, :, None], axis=0) - collected,
            np.min([node.up for _, node in after] + rise[:, :, None], axis=0) - collected,
            np.max([node.lower for _, node in after] + fall, axis=0) - collected,
            np.min([node.upper for _, node in after] + rise, axis=0) - collected,
            later,
        )


def _checked(tree: PathTree, normals: Normals) -> Shared:
    if not isinstance(normals, Shared):
        raise NotSupported("anytime planning shares outcomes between nodes: use sampling='shared' or 'sobol'")
    if len(normals.tables) != tree.horizon - 1:
        raise ValueError(f"a horizon of {tree.horizon} needs {tree.horizon - 1} tables, got {len(normals.tables)}")
    for table, weights in zip(normals.tables, normals.weights, strict=True):
        if table.shape != (normals.samples, tree.length) or not np.isfinite(table).all():
            raise ValueError(f"outcomes are tables of shape ({normals.samples}, {tree.length}), got {table.shape}")
        if not (weights > 0.0).all() or abs(weights.sum() - 1.0) > 1e-9:
            raise ValueError("the weights of outcomes must be positive and add up to 1")
    return normals


def _same(one: Shared, two: Shared) -> bool:
    pairs = zip(one.tables, two.tables, strict=False)
    return len(one.tables) == len(two.tables) and all(np.array_equal(a, b) for a, b in pairs)
