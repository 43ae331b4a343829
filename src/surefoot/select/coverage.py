"""Coverage and dominating sets: how much of a universe the chosen elements reach together.

Element v covers a set N[v] of items; item u has a weight wᵤ > 0, usually 1:

    f(S) = Σ of wᵤ over the items u covered by some element of S.

f is monotone and submodular. All gains are kept up to date: when an item becomes covered, it is taken off the gain of
every element that covers it. One greedy run costs O(number of incidences) plus one scan of n gains per step. The loss
of e is the weight of the items that only e covers.

>>> f = DominatingSet(5, [(0, 1), (0, 2), (0, 3), (3, 4)])   # a small star with a tail
>>> f.singletons()
array([4., 2., 2., 3., 2.])
>>> state = f.state([0])
>>> state.gains()
array([0., 0., 0., 1., 1.])

References: Nemhauser, Wolsey & Fisher 1978; Bogunovic, Mitrović, Scarlett & Cevher 2017 (networks).
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from surefoot.arguments import one_of
from surefoot.select.objective import Array, Indices, SetFunction, State

__all__ = ["Coverage", "DominatingSet"]


class Coverage(SetFunction):
    """The weight of the items that at least one chosen element covers.

    Parameters
    ----------
    incidence : array or sparse array of shape (n, m)
        Nonzero where element (row) covers item (column); 0/1 or boolean, not negative.
    weights : array of shape (m,), optional
        Of the items, at least 0; default 1.

    Attributes
    ----------
    incidence : scipy.sparse.csr_array of shape (n, m)
        The cover pattern, its entries all 1.
    weights : array of shape (m,)
        As given.

    >>> f = Coverage([[1, 0, 1], [0, 1, 1]], weights=[1.0, 5.0, 2.0])
    >>> f.singletons(), f.value([0, 1])
    (array([3., 7.]), 8.0)
    """

    def __init__(self, incidence: Any, weights: ArrayLike | None = None) -> None:
        if sparse.issparse(incidence):
            rows = sparse.csr_array(cast(Any, incidence))
        else:
            dense = np.asarray(incidence)
            if dense.ndim != 2:
                raise ValueError(f"incidence must be a matrix (elements x items), got shape {dense.shape}")
            if dense.dtype.kind not in "fiub":
                raise TypeError(f"incidence must be numbers or booleans, got {dense.dtype}")
            rows = sparse.csr_array(dense)
        if rows.shape[1] < 1:
            raise ValueError("incidence must have at least one item (column)")
        data = rows.data.astype(np.float64)
        if not np.isfinite(data).all() or (data < 0).any():
            worst = data[np.argmax(~(data >= 0) | np.isinf(data))]
            raise ValueError(f"incidence must be finite and at least 0, got {worst}; weights belong to the items")
        super().__init__(rows.shape[0], submodular=True)
        self.m = int(rows.shape[1])
        self.weights = np.ones(self.m) if weights is None else np.array(weights, dtype=np.float64)
        if self.weights.shape != (self.m,):
            raise ValueError(f"weights must have shape ({self.m},), got {self.weights.shape}")
        bad = ~(self.weights >= 0) | np.isinf(self.weights)
        if bad.any():
            raise ValueError(f"weights must be finite and at least 0, got {self.weights[bad][0]}")
        rows = sparse.csr_array((data, rows.indices, rows.indptr), shape=rows.shape)
        rows.sum_duplicates()
        rows.eliminate_zeros()
        rows.data[:] = 1.0
        self.incidence = rows
        self._by_item = rows.T.tocsr()

    def covers(self, v: int) -> Indices:
        """Return the items that element v covers, in increasing order.

        >>> Coverage([[1, 0, 1], [0, 1, 1]]).covers(0)
        array([0, 2])
        """
        start, stop = self.incidence.indptr[v], self.incidence.indptr[v + 1]
        return np.sort(self.incidence.indices[start:stop]).astype(np.int64)

    def _items(self, v: int) -> Any:
        return self.incidence.indices[self.incidence.indptr[v] : self.incidence.indptr[v + 1]]

    def _singletons(self) -> Array:
        return np.asarray(self.incidence @ self.weights, dtype=np.float64)

    def _value(self, S: Indices) -> float:
        reached: set[int] = set().union(*(self._items(v).tolist() for v in S.tolist()))
        return float(self.weights[sorted(reached)].sum())

    def _empty(self) -> State:
        return _CoverageState(self)


class DominatingSet(Coverage):
    """The number of nodes of a graph that are chosen or next to a chosen one, f(S) = |S ∪ N(S)|.

    Parameters
    ----------
    n : int
        Number of nodes.
    edges : array of shape (e, 2)
        Pairs of nodes; loops and repetitions change nothing.
    direction : {"both", "out", "in"}
        Whom a node reaches: both ends of an edge (an undirected graph), or, along directed edges (a, b), a reaches b
        ("out"), or b reaches a ("in").
    weights : array of shape (n,), optional
        Of the nodes, at least 0; default 1.

    >>> DominatingSet(4, [(0, 1), (1, 2)], direction="out").singletons()
    array([2., 2., 1., 1.])
    """

    def __init__(self, n: int, edges: ArrayLike, *, direction: str = "both", weights: ArrayLike | None = None) -> None:
        one_of(direction, "direction", ("both", "out", "in"))
        if n < 1:
            raise ValueError(f"a graph must have at least one node, got n = {n!r}")
        pairs = np.asarray(edges)
        if pairs.size == 0:
            pairs = np.zeros((0, 2), dtype=np.int64)
        if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
            raise ValueError(f"edges must be pairs of integers, got {pairs.dtype} of shape {pairs.shape}")
        outside = pairs[(pairs < 0) | (pairs >= n)]
        if outside.size:
            raise ValueError(f"edge with node {outside[0]}, but the nodes are 0..{n - 1}")
        tail, head = pairs.T
        if direction == "in":
            tail, head = head, tail
        elif direction == "both":
            tail, head = np.concatenate([tail, head]), np.concatenate([head, tail])
        own = np.arange(n)
        tail, head = np.concatenate([own, tail]), np.concatenate([own, head])
        super().__init__(sparse.coo_array((np.ones(len(tail)), (tail, head)), shape=(n, n)), weights)


class _CoverageState(State):
    """How many chosen elements cover each item, and every gain."""

    def __init__(self, function: Coverage) -> None:
        super().__init__(function)
        self._times = np.zeros(function.m, dtype=np.int64)
        self._fresh = function.singletons().copy()  # the weight each element would add
        self._total = 0.0

    @property
    def value(self) -> float:
        return self._total

    def _shift(self, items: Any, sign: float) -> None:
        """Items that became covered (−1) or uncovered (+1): change the gains of all elements that cover them."""
        if not len(items):
            return
        function: Coverage = self.function
        pointers = function._by_item.indptr
        starts, counts = pointers[items], pointers[items + 1] - pointers[items]
        # Concatenated ranges starts[i] : starts[i] + counts[i], without a loop.
        offsets = np.repeat(starts - np.concatenate([[0], np.cumsum(counts)[:-1]]), counts)
        elements = function._by_item.indices[offsets + np.arange(counts.sum())]
        weights = np.repeat(sign * function.weights[items], counts)
        if len(elements) * 8 < function.n:
            np.add.at(self._fresh, elements, weights)
        else:
            self._fresh += np.bincount(elements, weights, minlength=function.n)
        self._total -= sign * float(function.weights[items].sum())

    def _gains(self, candidates: Indices) -> Array:
        return self._fresh[candidates]

    def _add(self, v: int) -> None:
        items = self.function._items(v)
        new = items[self._times[items] == 0]
        self._times[items] += 1
        self._shift(new, -1.0)

    def _losses(self) -> Array:
        function: Coverage = self.function
        alone = np.where(self._times == 1, function.weights, 0.0)
        return np.asarray(function.incidence[self.selected] @ alone, dtype=np.float64)

    def _remove(self, e: int, place: int) -> None:
        items = self.function._items(e)
        self._times[items] -= 1
        self._shift(items[self._times[items] == 0], 1.0)
