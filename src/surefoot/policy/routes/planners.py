"""The planners of MacroGPO: what each first move is worth, with bounds of what it is really worth.

* :class:`MostLikely`: ℚ, eq. (8); every outcome is its expectation.
* :class:`FullTree`: 𝒬, eq. (6), over N imagined outcomes of every move; with the fall-back of eq. (9), ε-Macro-GPO.
* :class:`AnytimeSearches`: Algorithm 1, which explores the same outcomes only where bounds leave it open.

Reference: Kharkovskii, Ling & Low 2020, "Nonmyopic Gaussian process optimization with macro-actions".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, cast

import numpy as np
from numpy.typing import NDArray

from surefoot.belief.posterior import Posterior
from surefoot.domain import Paths
from surefoot.loop.journey import Journey
from surefoot.policy.routes.anytime import AnytimePlanner, Carry
from surefoot.policy.routes.bellman import RoutePlan, full_nodes, imagined, most_likely, sampled
from surefoot.policy.routes.lipschitz import Constants
from surefoot.policy.routes.path_tree import PathTree
from surefoot.policy.view import View

__all__ = ["AnytimeSearches", "FullTree", "Grow", "MostLikely", "Planner", "check_nodes", "trusted"]

Array = NDArray[np.float64]
Grow = Callable[[Posterior, Paths, int, int], PathTree]

MANY = 10**11  # nodes that no full tree is searched beyond


class Planner(Protocol):
    """Says what each first move is worth."""

    def plan(self, tree: PathTree, view: View, /) -> RoutePlan:
        """Return what is found about the first moves of a tree."""


@dataclass
class MostLikely:
    """Every outcome is what is expected: eq. (8), known as nonmyopic GP-UCB."""

    constants: str

    def plan(self, tree: PathTree, view: View) -> RoutePlan:
        """Return ℚ, and ℚ ≤ Q* ≤ ℚ + θ (Theorem 2)."""
        likely = most_likely(tree)
        nodes = 1 + sum(len(level.rows) for level in tree.levels)
        return RoutePlan(likely, *_jensen(likely, Constants.of(tree, self.constants)), 1.0, nodes)


@dataclass
class FullTree:
    """All imagined outcomes of all moves; ``falls_back`` says whether incredible values give way to the most likely."""

    samples: int
    sampling: str
    constants: str
    epsilon: float | None
    falls_back: bool
    device: str | None

    def plan(self, tree: PathTree, view: View) -> RoutePlan:
        """Return 𝒬, with what is certain of Q*, and with ``epsilon`` what is so with probability 1 − δ."""
        constants, likely = Constants.of(tree, self.constants), most_likely(tree)
        lower, upper = _jensen(likely, constants)
        N = self.samples if self.epsilon is None else constants.required_samples(self.epsilon)  # Theorem 1
        nodes = full_nodes(tree, N)
        asked = f"horizon={tree.horizon} with samples={N}"
        check_nodes(nodes, asked if self.epsilon is None else f"{asked}, which epsilon={self.epsilon} asks for,")
        rng = view.stream("outcomes", view.step)
        values = sampled(tree, imagined(tree, N, self.sampling, rng), device=self.device)  # eq. (6)
        loss = constants.implied_epsilon(N) if self.epsilon is None else self.epsilon
        lam, delta = constants.split(loss)
        error = lam * tree.horizon  # |𝒬 − Q*| ≤ λH for all values at once, with probability 1 − δ: Theorem 1
        confidence = 1.0
        if self.epsilon is not None:
            lower, upper, confidence = np.maximum(lower, values - error), np.minimum(upper, values + error), 1.0 - delta
        fallbacks: tuple[int, ...] = ()
        if self.falls_back:
            values, fallbacks = trusted(values, likely, error + constants.worst)  # eq. (9)
        return RoutePlan(values, lower, upper, confidence, nodes, fallbacks)


def _jensen(likely: Array, constants: Constants) -> tuple[Array, Array]:
    """ℚ and ℚ + θ, between which Q* lies: Jensen's inequality and Theorem 2."""
    return likely, likely + np.where(np.isfinite(likely), constants.theta, 0.0)


def check_nodes(nodes: float, asked: str) -> None:
    """Refuse a tree that would take hours.

    >>> check_nodes(1e4, "horizon=2")
    >>> check_nodes(1e13, "horizon=4")
    Traceback (most recent call last):
    ...
    ValueError: horizon=4 makes a tree of 1.0e+13 nodes, more than ...
    """
    if nodes > MANY:
        raise ValueError(
            f"{asked} makes a tree of {nodes:.1e} nodes, more than {MANY:.0e}: lower horizon or samples, keep fewer "
            "moves (GraphPaths(most=...)), or use planner='anytime' or 'likely'; horizon=None looks as far ahead as is "
            "affordable"
        )


def trusted(values: Array, likely: Array, threshold: float) -> tuple[Array, tuple[int, ...]]:
    """Return 𝒬 where |𝒬 − ℚ| ≤ threshold, else ℚ, and the moves that fell back: eq. (9).

    >>> trusted(np.array([1.0, 9.0]), np.array([0.5, 1.0]), 2.0)
    (array([1., 1.]), (1,))
    """
    alive = np.isfinite(likely)
    far = np.zeros(len(values), dtype=np.bool_)
    far[alive] = ~(np.abs(values[alive] - likely[alive]) <= threshold)
    return np.where(far, likely, values), tuple(np.flatnonzero(far).tolist())


@dataclass
class AnytimeSearches:
    """One anytime search for each ask; it goes on from the one before where that has looked as far.

    What a search found is not on record. Where the policy was rebuilt in between, the search before is made again, over
    the tree that ``grow`` returns. ``latest`` is the number of the last ask that was searched for, and the search.
    """

    grow: Grow
    samples: int
    sampling: str
    constants: str
    epsilon: float | None
    iterations: int
    seconds: float | None
    latest: tuple[int, AnytimePlanner] | None = None

    def plan(self, tree: PathTree, view: View) -> RoutePlan:
        """Return the plan of a search over a tree."""
        return self._search(tree, view, view.step).plan

    def _search(self, tree: PathTree, view: View, step: int) -> AnytimePlanner:
        """The search of ask number ``step``."""
        carry = self._carried(tree, view, step)
        rng = view.stream("outcomes", step)
        normals = imagined(tree, self.samples, self.sampling, rng) if carry is None else carry.normals
        search = AnytimePlanner(tree, normals, epsilon=self.epsilon, constants=self.constants, carry=carry)
        search.run(iterations=self.iterations, seconds=self.seconds)
        self.latest = step, search
        return search

    def _carried(self, tree: PathTree, view: View, step: int) -> Carry | None:
        """What the search before says about this one: if all values of its move, and nothing else, became known."""
        trials = view.trials
        outcome = trials.told.get(step - 1)
        if outcome is None or outcome.values is None or outcome.noise is not None:
            return None
        note = trials.queries[step - 1].note
        missed = any(value is None for o in trials.observations for _, value in o.stops())
        learnt = _known_at(view, step) - _known_at(view, step - 1)
        if view.surrogate.gp.every is not None or missed or learnt != len(outcome.values):
            return None
        if note.get("horizon") != tree.horizon + 1:
            return None
        if self.latest is None or self.latest[0] != step - 1:  # rebuilt by another process: search again
            self._search(self._tree_at(view, step - 1), view, step - 1)
        search = cast("tuple[int, AnytimePlanner]", self.latest)[1]
        moves = trials.journey.domain.moves(_place_at(view, step - 1)).tolist()
        return search.carry(moves.index(note["stops"]), cast("tuple[float, ...]", outcome.values))

    def _tree_at(self, view: View, step: int) -> PathTree:
        """The tree of an earlier ask; its belief learns the values one by one, as it did then."""
        X, y, noise = view.surrogate.rows.data()
        belief = view.surrogate.gp.condition(X[:0], y[:0])
        for i in range(_known_at(view, step)):
            belief.append(X[i], y[i], None if noise is None else noise[i])
        horizon = view.trials.queries[step].note["horizon"]
        return self.grow(belief, view.trials.journey.domain, _place_at(view, step), horizon)


def _known_at(view: View, step: int) -> int:
    """How many values were known at ask number ``step``."""
    count = 0
    for event in view.trials.events:
        if event["event"] == "asked" and event["id"] == step:
            break
        if event["event"] == "told":
            count += sum(value is not None for value in event.get("values", [event["value"]]))
    return count


def _place_at(view: View, step: int) -> int:
    """Where the vehicle stood at ask number ``step``."""
    trials = view.trials
    told = {id: outcome for id, outcome in trials.told.items() if id < step}
    return Journey.of(trials.journey.domain, trials.queries, told).place
