"""The greedy family: selectors that add one element after the other.

Question: which k elements have a large value together? (No deletions: :mod:`surefoot.select.robust` builds on these.)

| function | rule of one step | guarantee for monotone f |
|---|---|---|
| :func:`greedy` | the largest gain | 1 − e^(−γ) of the best k elements (γ = 1: submodular) |
| :func:`lazy_greedy` | the same, evaluating few gains | the same; submodular f only |
| :func:`stochastic_greedy` | the largest gain in a random sample | 1 − 1/e − ε in expectation, submodular f |
| :func:`threshold_greedy` | the first gain above a falling threshold | every gain within 1 − ε of the largest |
| :func:`random_greedy` | one of the k largest gains, at random | 1 − 1/e in expectation, submodular f |
| :func:`oblivious` | the largest singleton value | γ/k |
| :func:`matching_pursuit` | the largest slope of a refitted loss | support selection only |
| :func:`cover` | the largest gain per cost, until a level is reached | 1 + ln max f({v}) times the fewest, f integer |

>>> from surefoot.select import Coverage
>>> objective = Coverage([[1, 1, 1, 0, 0], [0, 0, 1, 1, 0], [0, 0, 0, 1, 1], [1, 0, 0, 0, 0]])
>>> greedy(objective, 2).order, lazy_greedy(objective, 2).value
((0, 2), 5.0)

All start from the empty set, whose gains are the singleton values: an objective computes these once.

References: Nemhauser, Wolsey & Fisher 1978 (greedy); Minoux 1978 (lazy); Mirzasoleiman et al. 2015 (stochastic);
Badanidiyuru & Vondrák 2014 (threshold); Buchbinder et al. 2014 (random); Das & Kempe 2011 (γ); Wolsey 1982 (cover);
Pati, Rezaiifar & Krishnaprasad 1993 (matching pursuit); Bogunovic's thesis (2019), whose Definition 6.2.1 is (6.3).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot.arguments import open_unit
from surefoot.select.objective import SetFunction, State, as_elements
from surefoot.select.selection import Indices, Selection, first_best, gains_of, ground, tolerance

__all__ = [
    "cover",
    "greedy",
    "iterative_factor",
    "lazy_greedy",
    "matching_pursuit",
    "oblivious",
    "random_greedy",
    "stochastic_greedy",
    "threshold_greedy",
]

Array = NDArray[np.float64]
Random = np.random.Generator | int | None


def _grow(
    objective: SetFunction,
    k: int,
    among: ArrayLike | None,
    pick: Callable[[State, Indices, int], int],
    method: str,
    nested: bool = True,
) -> Selection:
    """Add k elements; ``pick`` gives the position of the next one among those left."""
    count, rest = ground(objective, k, among)
    before, state = objective.evaluations.total, objective.state()
    values: list[float] = []
    for step in range(count):
        position = pick(state, rest, step)
        state.add(int(rest[position]))
        values.append(float(state.value))
        rest = np.delete(rest, position)
    return Selection(tuple(state.selected), tuple(values), (), objective.evaluations.total - before, nested, method)


def _answers(state: State) -> bool:
    """Whether a state finds the largest gain by a way of its own, without computing all gains."""
    return type(state).best is not State.best


def _own_best(state: State, rest: Indices) -> int:
    allowed = np.zeros(state.function.n, dtype=bool)
    allowed[rest] = True
    return int(np.searchsorted(rest, state.best(allowed)[0]))


def greedy(objective: SetFunction, k: int, *, among: ArrayLike | None = None) -> Selection:
    """Return k elements, each with the largest gain given those before it.

    Parameters
    ----------
    objective : SetFunction
        What to maximize.
    k : int
        How many elements.
    among : array of int, optional
        The elements to choose from; by default all.

    Cost: k evaluations of all gains. Any monotone objective.

    >>> from surefoot.select import Coverage
    >>> greedy(Coverage([[1, 1, 0, 0], [0, 1, 1, 1], [1, 0, 0, 0]]), 2)
    Selection(order=(1, 0), values=(3.0, 4.0), ...)
    """

    def pick(state: State, rest: Indices, step: int) -> int:
        if _answers(state):
            return _own_best(state, rest)
        return first_best(gains_of(state, rest, objective.n), tolerance(objective))  # v ← argmax f(v | S)

    return _grow(objective, k, among, pick, "greedy")


def lazy_greedy(objective: SetFunction, k: int, *, among: ArrayLike | None = None, batch: int = 16) -> Selection:
    """Return the same elements as :func:`greedy`, evaluating only gains that might be the largest.

    A gain computed earlier bounds the gain now, *if* the objective is submodular; any other objective is refused. Stale
    bounds are refreshed from the largest on, ``batch`` at a time and doubling, until the best fresh gain beats every
    stale bound.

    >>> from surefoot.select import Coverage
    >>> objective = Coverage([[1, 1, 0, 0], [0, 1, 1, 1], [1, 0, 0, 0], [0, 0, 0, 1]])
    >>> lazy_greedy(objective, 3).order == greedy(objective, 3).order
    True
    """
    if objective.submodular is not True:
        known = "is not submodular" if objective.submodular is False else "is not known to be submodular"
        raise ValueError(f"lazy evaluation needs a submodular objective, and {type(objective).__name__} {known}")
    if batch < 1:
        raise ValueError(f"batch must be at least 1, got {batch!r}")
    bounds = np.full(objective.n, np.inf)  # on the gains of all elements, by index

    def pick(state: State, rest: Indices, step: int) -> int:
        if _answers(state):
            return _own_best(state, rest)
        if step == 0:
            bounds[:] = objective.singletons()
        slack, size, mine = tolerance(objective), batch, bounds[rest]
        fresh = np.full(rest.size, step == 0)
        while True:
            near = mine >= mine.max() - slack
            if fresh[near].all():
                bounds[rest] = mine
                return int(np.argmax(near))
            stale = np.flatnonzero(~fresh)
            if stale.size > size:
                stale = np.sort(stale[np.argpartition(-mine[stale], size)[:size]])
            mine[stale] = state.gains(rest[stale])
            fresh[stale] = True
            size *= 2

    return _grow(objective, k, among, pick, "lazy_greedy")


def stochastic_greedy(
    objective: SetFunction, k: int, *, epsilon: float = 0.1, rng: Random = 0, among: ArrayLike | None = None
) -> Selection:
    """Return k elements, each with the largest gain in a fresh random sample of those left.

    Parameters
    ----------
    objective, k, among
        As in :func:`greedy`.
    epsilon : float
        The sample has ⌈(n/k) ln(1/ε)⌉ elements, so that all samples together have about n ln(1/ε).
    rng : Generator or int
        Draws the samples.

    >>> from surefoot.select import Coverage
    >>> objective = Coverage([[1, 1, 0, 0], [0, 1, 1, 1], [1, 0, 0, 0]])
    >>> stochastic_greedy(objective, 2, epsilon=0.01).order  # the sample is everything: the same as greedy
    (1, 0)
    """
    open_unit(epsilon, "epsilon")
    count, elements = ground(objective, k, among)
    size = math.ceil(elements.size / max(count, 1) * math.log(1.0 / epsilon))  # ⌈(n/k) ln(1/ε)⌉
    slack, draws = tolerance(objective), np.random.default_rng(rng)

    def pick(state: State, rest: Indices, step: int) -> int:
        sample = np.arange(rest.size)
        if size < rest.size:
            sample = np.sort(draws.choice(rest.size, size, replace=False))
        return int(sample[first_best(gains_of(state, rest[sample], objective.n), slack)])

    return _grow(objective, count, elements, pick, "stochastic_greedy", nested=False)


def threshold_greedy(
    objective: SetFunction, k: int, *, epsilon: float = 0.1, among: ArrayLike | None = None
) -> Selection:
    """Return k elements, each the first one found whose gain reaches a threshold that falls by 1 − ε per pass.

    Where the threshold falls below ε/n of the largest singleton value, the elements still missing are those of largest
    singleton value. Up to there each gain is at least 1 − ε of the largest one (:func:`iterative_factor`).

    >>> from surefoot.select import Coverage
    >>> threshold_greedy(Coverage([[1, 1, 0, 0, 0], [0, 1, 1, 1, 0], [0, 0, 0, 0, 1]]), 3).order
    (1, 0, 2)
    """
    open_unit(epsilon, "epsilon")
    count, elements = ground(objective, k, among)
    singles = np.asarray(objective.singletons(), dtype=np.float64)
    largest = float(singles[elements].max(initial=0.0))
    lowest, slack = epsilon * largest / max(elements.size, 1), tolerance(objective)
    threshold, last = largest, -1  # within a pass only elements after the last one are looked at

    def pick(state: State, rest: Indices, step: int) -> int:
        nonlocal threshold, last
        gains = gains_of(state, rest, objective.n)
        while threshold >= lowest and threshold > 0.0:
            found = np.flatnonzero((gains >= threshold - slack) & (rest > last))
            if found.size:
                last = int(rest[found[0]])
                return int(found[0])
            threshold, last = (1.0 - epsilon) * threshold, -1
        return first_best(singles[rest], slack)

    return _grow(objective, count, elements, pick, "threshold_greedy")


def random_greedy(objective: SetFunction, k: int, *, rng: Random = 0, among: ArrayLike | None = None) -> Selection:
    """Return k elements, each drawn at random from the k of largest gain.

    >>> from surefoot.select import Coverage
    >>> sorted(random_greedy(Coverage([[1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 0, 1]]), 3).order)
    [0, 1, 2]
    """
    count, elements = ground(objective, k, among)
    draws = np.random.default_rng(rng)

    def pick(state: State, rest: Indices, step: int) -> int:
        top = np.argsort(-gains_of(state, rest, objective.n), kind="stable")[:count]
        return int(top[draws.integers(top.size)])

    return _grow(objective, count, elements, pick, "random_greedy", nested=False)


def oblivious(objective: SetFunction, k: int, *, among: ArrayLike | None = None) -> Selection:
    """Return the k elements of largest singleton value, whatever they have in common.

    >>> from surefoot.select import Coverage
    >>> oblivious(Coverage([[1, 1, 0, 0], [1, 1, 1, 0], [0, 0, 0, 1]]), 2).order
    (1, 0)
    """
    singles, slack = np.asarray(objective.singletons(), dtype=np.float64), tolerance(objective)
    return _grow(objective, k, among, lambda state, rest, step: first_best(singles[rest], slack), "oblivious")


def matching_pursuit(objective: SetFunction, k: int, *, among: ArrayLike | None = None) -> Selection:
    """Return k elements by orthogonal matching pursuit: the steepest slope of the loss, refitted after each.

    Only objectives whose states have ``slopes()``, the absolute slopes |∂l/∂wᵢ| of the loss at its optimum on the
    elements chosen so far: support selection.

    >>> from surefoot.select import RSquared
    >>> X = np.array([[1.0, 0.6, 0.0], [0.0, 0.8, 0.0], [0.0, 0.0, 1.0]])
    >>> matching_pursuit(RSquared(X, [2.0, 0.1, 1.0], standardize=False), 2).order
    (0, 2)
    """
    slack = 0.0

    def pick(state: State, rest: Indices, step: int) -> int:
        nonlocal slack
        if not hasattr(state, "slopes"):
            raise TypeError(f"matching pursuit selects the support of a loss; {type(objective).__name__} has no slopes")
        slopes = np.asarray(state.slopes(), dtype=np.float64)[rest]
        slack = slack or 1e-9 * float(slopes.max())
        return first_best(slopes, slack)

    return _grow(objective, k, among, pick, "matching_pursuit")


def cover(
    objective: SetFunction, level: float, *, cost: ArrayLike | None = None, among: ArrayLike | None = None
) -> Selection:
    """Return elements, each with the largest gain per cost, until the objective reaches a level.

    Parameters
    ----------
    objective, among
        As in :func:`greedy`.
    level : float
        The value to reach, up to rounding; a ValueError where all elements together do not.
    cost : array of shape (n,), optional
        The positive price of each element; by default all cost the same.

    A gain counts only up to what the level still lacks.

    >>> from surefoot.select import Coverage
    >>> cover(Coverage([[1, 1, 0, 0, 0], [0, 1, 1, 1, 0], [0, 0, 0, 0, 1]]), 5).order
    (1, 0, 2)
    """
    if math.isnan(level):
        raise ValueError(f"level must be a number, got {level!r}")
    elements = ground(objective, 0, among)[1]
    prices = np.ones(objective.n) if cost is None else np.asarray(cost, dtype=np.float64)
    if prices.shape != (objective.n,) or not (np.isfinite(prices).all() and (prices > 0).all()):
        raise ValueError(f"cost must be {objective.n} positive numbers, one per element, got {cost!r}")
    slack, before = tolerance(objective), objective.evaluations.total
    ratio = slack / float(prices.min())
    state, rest = objective.state(), elements
    values: list[float] = []
    while state.value < level - slack:
        if not rest.size:
            raise ValueError(f"the level {level!r} cannot be reached: all elements together have {state.value!r}")
        gains = np.minimum(gains_of(state, rest, objective.n), level - state.value)
        best = first_best(gains / prices[rest], ratio)
        state.add(int(rest[best]))
        values.append(float(state.value))
        rest = np.delete(rest, best)
    order = tuple(int(element) for element in state.selected)
    return Selection(order, tuple(values), (), objective.evaluations.total - before, cost is None, "cover")


def iterative_factor(objective: SetFunction, order: Sequence[int], *, among: ArrayLike | None = None) -> float:
    """Return the smallest β ≥ 1 for which an order is β-iterative (6.3): every gain is at least 1/β of the largest one.

    1 for :func:`greedy`, at most 1/(1 − ε) for :func:`threshold_greedy`; infinite where an element without gain was
    chosen although another had one.

    >>> from surefoot.select import Coverage
    >>> iterative_factor(Coverage([[1, 1, 0, 0], [0, 1, 1, 1], [1, 0, 0, 0]]), [0, 1])
    1.5
    """
    elements, slack = ground(objective, 0, among)[1], tolerance(objective)
    state, factor = objective.state(), 1.0
    for element in as_elements(order, objective.n).tolist():
        gains = np.asarray(state.gains(), dtype=np.float64)
        best, own = float(gains[np.union1d(elements, element)].max()), float(gains[element])
        if best > slack:
            factor = max(factor, best / own if own > 0.0 else math.inf)  # f(v | S) ≥ (1/β) max f(u | S)
        state.add(int(element))
    return factor
