"""Coverage: counts, directions, gains that stay right at the size of a network."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from surefoot.select import Coverage, DominatingSet


def test_dominating_set_counts_closed_neighborhoods() -> None:
    rng = np.random.default_rng(0)
    edges = rng.integers(30, size=(60, 2))
    f = DominatingSet(30, edges)
    for _ in range(20):
        S = rng.choice(30, size=4, replace=False)
        reached = set(S.tolist())
        for a, b in edges.tolist():
            reached |= {b} if a in S else set()
            reached |= {a} if b in S else set()
        assert f.value(S) == len(reached) == f.state(S).value


def test_directions() -> None:
    edges = [(0, 1), (0, 2), (3, 0)]
    np.testing.assert_array_equal(DominatingSet(4, edges, direction="out").singletons(), [3, 1, 1, 2])
    np.testing.assert_array_equal(DominatingSet(4, edges, direction="in").singletons(), [2, 2, 2, 1])
    np.testing.assert_array_equal(DominatingSet(4, edges).singletons(), [4, 2, 2, 2])
    np.testing.assert_array_equal(DominatingSet(3, []).singletons(), [1, 1, 1])


def test_loops_and_repetitions_change_nothing() -> None:
    plain, odd = DominatingSet(4, [(0, 1)]), DominatingSet(4, [(0, 1), (1, 0), (0, 1), (2, 2)])
    np.testing.assert_array_equal(plain.singletons(), odd.singletons())
    assert plain.value([0, 2]) == odd.value([0, 2]) == 3


def test_the_failure_of_greedy_selection() -> None:
    """s1 covers weight N, s3 N − 1 of the same, s2 a disjoint ε: greedy is left with ε, the best pair with N − 1."""
    N, small = 10.0, 0.5
    f = Coverage([[1, 1, 0], [0, 0, 1], [1, 0, 0]], weights=[N - 1.0, 1.0, small])
    state = f.state()
    for _ in range(2):
        state.add(state.best()[0])
    assert state.selected == [0, 1]
    assert state.value - state.losses().max() == pytest.approx(small)
    robust = f.state([0, 2])
    assert robust.value - robust.losses().max() == N - 1.0


@pytest.mark.parametrize("weights", [None, np.linspace(0.0, 1.0, 4000)])
def test_a_network_of_thousands(weights) -> None:
    """Incremental gains after many additions and removals equal those of a fresh state; integers exactly."""
    rng = np.random.default_rng(1)
    f = DominatingSet(4000, rng.integers(4000, size=(20_000, 2)), weights=weights)
    state = f.state()
    for step in range(60):
        state.add(state.best()[0])
        if step % 3 == 2:
            state.remove(int(rng.choice(state.selected)))
    fresh = f.state(state.selected)
    if weights is None:
        np.testing.assert_array_equal(state.gains(), fresh.gains())
        assert state.value == fresh.value == f.value(state.selected)
    np.testing.assert_allclose(state.gains(), fresh.gains(), atol=1e-9)
    np.testing.assert_allclose(state.losses(), fresh.losses(), atol=1e-9)


def test_sparse_and_dense_are_the_same() -> None:
    dense = np.random.default_rng(2).random((8, 15)) < 0.3
    for given in (sparse.csr_array(dense), sparse.coo_array(dense), sparse.csc_array(dense * 5.0), dense.astype(int)):
        np.testing.assert_array_equal(Coverage(given).singletons(), dense.sum(axis=1))
    np.testing.assert_array_equal(Coverage(dense).covers(3), np.flatnonzero(dense[3]))


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Coverage([[1, -1]]), ValueError, "at least 0, got -1"),
        (lambda: Coverage([[1.0, np.nan]]), ValueError, "got nan"),
        (lambda: Coverage([[1, 1]], weights=[1.0, -2.0]), ValueError, "weights .* got -2.0"),
        (lambda: Coverage([[1, 1]], weights=[1.0, np.inf]), ValueError, "weights .* got inf"),
        (lambda: Coverage([[1, 1]], weights=[1.0]), ValueError, r"shape \(2,\)"),
        (lambda: Coverage([1, 1]), ValueError, "matrix"),
        (lambda: Coverage([["a"]]), TypeError, "numbers"),
        (lambda: Coverage(np.zeros((3, 0))), ValueError, "at least one item"),
        (lambda: DominatingSet(3, [(0, 3)]), ValueError, "node 3"),
        (lambda: DominatingSet(3, [(0.5, 1)]), ValueError, "integers"),
        (lambda: DominatingSet(3, [(0, 1)], direction="up"), ValueError, "'up'"),
        (lambda: DominatingSet(0, []), ValueError, "at least one node"),
    ],
)
def test_bad_input(make, error, message) -> None:
    with pytest.raises(error, match=message):
        make()
