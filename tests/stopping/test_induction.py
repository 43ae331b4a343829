"""Counting and backward induction, against enumeration and against the loops of the paper."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot.stopping import ACCEPT, CONTINUE, STOP, count, induce

LOSSES = {"k1": 100.0, "k2": 99.0, "cost": 1.0}


def wandering(seed, S=3000, H=6, step=0.06):
    """Paths that start anywhere and wander: many cells, wins that depend on them."""
    rng = np.random.default_rng(seed)
    paths = np.clip(rng.random((S, 1)) + step * rng.standard_normal((S, H)).cumsum(axis=1), 0.0, 1.0)
    return paths, paths[:, -1] < 0.4


def by_loops(paths, wins, cells, k1, k2, cost, minimum):
    """Algorithm A.1 of Dai et al. 2019, line by line."""
    S, H = paths.shape
    state = [[min(int(np.mean(path[: j + 1]) * cells), cells - 1) for j in range(H)] for path in paths]
    decisions, value = np.zeros((H, cells), dtype=int), np.full((H, cells), np.nan)
    for j in reversed(range(H)):
        for m in range(cells):
            here = [s for s in range(S) if state[s][j] == m]
            if not here:
                continue
            p = np.mean([wins[s] for s in here])
            stop, accept, go_on = k1 * p, k2 * (1 - p), math.inf
            if j < H - 1:
                go_on = cost + np.mean([value[j + 1, state[s][j + 1]] for s in here])
            value[j, m] = min(stop, accept, go_on)
            if len(here) > minimum and min(stop, accept) <= go_on * (1.0 + 1e-12) + 1e-12:
                decisions[j, m] = STOP if stop <= accept else ACCEPT
    return decisions, value


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    S=st.integers(1, 60),
    H=st.integers(1, 5),
    cells=st.integers(3, 9),
    k1=st.floats(1.0, 1e4),
    k2=st.floats(1.0, 200.0),
    cost=st.floats(0.0, 20.0),
    minimum=st.integers(0, 4),
)
def test_induction_equals_the_loops(seed, S, H, cells, k1, k2, cost, minimum):
    paths, wins = wandering(seed, S, H)
    found = induce(count(paths, wins, cells=cells), k1=k1, k2=k2, cost=cost, minimum=minimum)
    decisions, value = by_loops(paths, wins, cells, k1, k2, cost, minimum)
    np.testing.assert_allclose(found.value, value, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(found.decisions, decisions)


@pytest.mark.parametrize("seed", range(4))
def test_no_table_has_a_smaller_loss(seed):
    """Every one of the 3^(cells in use) tables is played on the chain of cells; none beats the root's value."""
    paths, wins = wandering(seed, S=40, H=3, step=0.3)
    counts = count(paths, wins, cells=3)
    solution = induce(counts, **LOSSES, minimum=0)
    p = counts.wins / np.maximum(counts.visits, 1)
    terminal = {STOP: LOSSES["k1"] * p, ACCEPT: LOSSES["k2"] * (1 - p)}
    used = list(zip(*np.nonzero(counts.visits[:-1]), strict=True))
    last = np.minimum(terminal[STOP][-1], terminal[ACCEPT][-1])
    first = counts.visits[0] / counts.visits[0].sum()
    losses = []
    for choice in itertools.product((CONTINUE, STOP, ACCEPT), repeat=len(used)):
        table = dict(zip(used, choice, strict=True))
        value = last
        for j in reversed(range(2)):
            go_on = LOSSES["cost"] + counts.moves[j] @ value / np.maximum(counts.visits[j], 1)
            value = np.array(
                [go_on[m] if table.get((j, m), 0) == CONTINUE else terminal[table[j, m]][j, m] for m in range(3)]
            )
        losses.append(LOSSES["cost"] + first @ value)
    root = p[0] @ first
    best = min(min(losses), LOSSES["k1"] * root, LOSSES["k2"] * (1 - root))
    assert solution.root.value == pytest.approx(best, abs=1e-10)


def test_counts_add_up():
    paths, wins = wandering(0)
    counts = count(paths, wins, cells=20)
    assert (counts.visits.sum(axis=1) == len(paths)).all()
    np.testing.assert_allclose(counts.wins.sum(axis=1), wins.sum())
    np.testing.assert_array_equal(counts.moves.sum(axis=2), counts.visits[:-1])
    np.testing.assert_array_equal(counts.moves.sum(axis=1), counts.visits[1:])


def test_layout_and_precision_do_not_matter():
    paths, wins = wandering(1)
    paths = paths.astype(np.float32)
    plain = count(np.ascontiguousarray(paths), wins)
    for same in (np.asfortranarray(paths), paths.astype(np.float64)):
        np.testing.assert_array_equal(count(same, wins).moves, plain.moves)


def test_labels_as_probabilities():
    """A sure label is the probability 0 or 1; beliefs may also change from epoch to epoch."""
    paths, wins = wandering(2, H=4)
    sure, as_number = count(paths, wins), count(paths, wins.astype(float))
    np.testing.assert_array_equal(sure.wins, as_number.wins)
    beliefs = np.repeat(wins[:, None].astype(float), 4, axis=1)
    np.testing.assert_array_equal(count(paths, beliefs).wins, sure.wins)
    beliefs[:, 0] = 0.5
    half = count(paths, beliefs)
    np.testing.assert_allclose(half.wins[0], 0.5 * half.visits[0])
    np.testing.assert_array_equal(half.wins[1:], sure.wins[1:])


def test_adaptive_cells_leave_the_rim_to_what_lies_beyond():
    paths, wins = wandering(3)
    paths = 0.4 + 0.02 * paths
    plain, fitted = count(paths, wins), count(paths, wins, adaptive=True)
    assert np.count_nonzero(fitted.visits) > 10 * np.count_nonzero(plain.visits)
    assert not fitted.visits[:, [0, -1]].any()
    assert fitted.visits[:, [1, -2]].all()
    assert (np.diff(fitted.edges, axis=1) > 0).all()


def test_an_average_that_begins_earlier():
    """With earlier errors in the average, cells are those of the whole mean."""
    counts = count(np.array([[0.5, 0.5]]), np.array([True]), cells=10, before=(2, 1.9))
    assert counts.visits.argmax(axis=1).tolist() == [8, 7]  # (1.9 + 0.5)/3 = 0.8, (1.9 + 1)/4 = 0.725


def test_sparse_cells_continue_but_keep_their_value():
    paths, wins = wandering(4, S=500)
    counts = count(paths, wins, cells=25)
    strict, loose = induce(counts, **LOSSES, minimum=30), induce(counts, **LOSSES, minimum=0)
    sparse = counts.visits <= 30
    assert 0 < sparse.sum() < sparse.size
    assert (strict.decisions[sparse] == CONTINUE).all()
    np.testing.assert_array_equal(strict.decisions[~sparse], loose.decisions[~sparse])
    np.testing.assert_array_equal(strict.value, loose.value)


def test_monotone_fills_what_lies_beyond_a_stop_cell_only():
    paths, wins = wandering(5, S=2000)
    paths = 0.3 + 0.3 * paths
    wins = paths[:, -1] < 0.4
    counts = count(paths, wins, cells=100)
    plain, filled = (induce(counts, **LOSSES, unvisited=rule) for rule in ("continue", "monotone"))
    changed = plain.decisions != filled.decisions
    assert changed.any()
    assert (counts.visits[changed] <= 30).all()
    assert (filled.decisions[changed] == STOP).all()
    for j, row in enumerate(plain.decisions):
        first = np.flatnonzero(row == STOP)
        if first.size:
            assert (np.flatnonzero(changed[j]) > first[0]).all()
            assert filled.decisions[j, -1] == STOP
    np.testing.assert_array_equal(plain.value, filled.value)


def test_expected_savings_are_those_of_playing_the_chain():
    paths, wins = wandering(6, H=5)
    counts = count(paths, wins, cells=20)
    solution = induce(counts, **LOSSES, minimum=0)
    # Walk many chains through the cells, independent of the recursion that computed the expectation.
    rng = np.random.default_rng(0)
    cell = rng.choice(20, size=20_000, p=counts.visits[0] / counts.visits[0].sum())
    saved, running = np.zeros(len(cell)), np.ones(len(cell), dtype=bool)
    for j in range(5):
        ends = running & (solution.decisions[j, cell] == STOP)
        saved[ends], running = 4 - j, running & ~ends
        if j < 4:
            ladder = np.cumsum(counts.moves[j] / np.maximum(counts.visits[j], 1)[:, None], axis=1)
            cell = (ladder[cell] < rng.random(len(cell))[:, None]).sum(axis=1).clip(max=19)
    assert solution.root.saved == pytest.approx(saved.mean(), abs=4 * saved.std() / math.sqrt(len(saved)))
    assert solution.root.saved > 0.5


@pytest.mark.parametrize(
    ("paths", "wins", "message"),
    [
        (np.empty((0, 3)), np.empty(0, dtype=bool), "non-empty"),
        (np.zeros(3), np.zeros(3, dtype=bool), "non-empty"),
        (np.zeros((4, 3)), np.zeros(3, dtype=bool), r"shape \(4,\) or \(4, 3\)"),
    ],
)
def test_bad_paths(paths, wins, message):
    with pytest.raises(ValueError, match=message):
        count(paths, wins)
