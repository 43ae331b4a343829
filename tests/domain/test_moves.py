import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from surefoot.domain import Dives, GraphPaths, MoveTable, Paths, domain_from_dict


def lattice(rows, columns):
    return np.stack(np.meshgrid(np.arange(float(rows)), np.arange(float(columns)), indexing="ij"), -1).reshape(-1, 2)


@given(st.integers(1, 7), st.integers(1, 7), st.integers(1, 4))
@settings(deadline=None, max_examples=40)
def test_dives_are_the_straight_lines_that_stay_inside(rows, columns, length):
    points = lattice(rows, columns)
    where = {tuple(point): i for i, point in enumerate(points.tolist())}
    dives = Dives((rows, columns), length)
    table = dives.table(np.arange(len(points)))
    for place, point in enumerate(points.tolist()):
        wanted = []
        for step in ([0, 1], [0, -1], [1, 0], [-1, 0]):
            cells = [tuple(np.add(point, np.multiply(step, i))) for i in range(1, length + 1)]
            if all(cell in where for cell in cells):
                wanted.append([where[cell] for cell in cells])
        got = table[place]
        assert got[got[:, 0] >= 0].tolist() == wanted
        assert (got[len(wanted) :] == -1).all()


def test_dives_in_three_dimensions():
    assert Dives((3, 3, 3), 1).table(np.array([13]))[0].tolist() == [[14], [12], [16], [10], [22], [4]]


def brute(lists, place, length):
    """All self-avoiding paths, by recursion."""

    def walk(path):
        if len(path) > length:
            return [path[1:]]
        return [found for step in sorted(set(lists[path[-1]])) if step not in path for found in walk([*path, step])]

    return walk([place])


@given(st.integers(0, 10**6), st.integers(1, 4))
@settings(deadline=None, max_examples=30)
def test_graph_paths_are_all_that_avoid_themselves(seed, length):
    rng = np.random.default_rng(seed)
    matrix = rng.random((7, 7)) < 0.4
    lists = [np.flatnonzero(row).tolist() for row in matrix]
    for graph in (lists, matrix, csr_array(matrix.astype(float))):
        moves = GraphPaths(graph, length, most=None)
        for place in range(7):
            assert moves.every(place).tolist() == brute(lists, place, length)


def test_of_many_graph_paths_a_fixed_few_are_kept():
    complete = np.ones((8, 8)) - np.eye(8)
    moves, again, other = (GraphPaths(complete, 3, most=20, seed=seed) for seed in (5, 5, 6))
    every = {tuple(path) for path in moves.every(0).tolist()}
    kept = moves.table(np.array([3, 0]))[1]
    assert len(every) == 7 * 6 * 5
    assert len({tuple(path) for path in kept.tolist()} & every) == 20
    assert np.array_equal(kept, again.table(np.array([0]))[0])  # in whatever order places are looked up
    assert not np.array_equal(kept, other.table(np.array([0]))[0])
    counts = np.zeros(8)
    for seed in range(300):
        counts += np.bincount(GraphPaths(complete, 1, most=2, seed=seed).table(np.array([0]))[0].ravel(), minlength=8)
    assert counts[0] == 0
    assert (np.abs(counts[1:] - 600 / 7) < 40).all()  # none is preferred


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Paths(lattice(3, 3), Dives((3, 4), 1), start=0), "12 cells, but there are 9 points"),
        (lambda: Paths(lattice(3, 3), Dives((3, 3), 1), start=9), "the start is place 9, but there are 9"),
        (lambda: Paths(lattice(3, 3), Dives((3, 3), 1), start=[0.5, 0.0]), "the start is unknown"),
        (lambda: Paths(lattice(3, 3), Dives((3, 3), 5), start=4), "no move of 5 stops leads away from the start"),
        (lambda: Paths(lattice(3, 3), Dives((3, 3), 2), start=0, budget=1), "a budget of 1 stops does not allow"),
        (lambda: Paths(lattice(3, 3), Dives((3, 3), 2), start=0, budget=2.5), "budget must be a whole number"),
        (lambda: Paths(lattice(3, 3), Dives((3, 3), 2), start=0, cost=-1.0), "cost of a move"),
        (lambda: Paths([0.0, 1.0], MoveTable({0: [[1, 2]]}), start=0), r"\[1, 2\] from place 0 leaves the 2 points"),
        (lambda: Paths([0.0, 1.0], MoveTable({0: [[1]], 5: [[0]]}), start=0), "listed for place 5"),
        (lambda: Paths([0.0, 1.0], GraphPaths([[1], []], 1), start=1), "leads away from the start, place 1"),
        (lambda: Paths([0.0, 1.0], GraphPaths([[1]], 1), start=0), "an edge leads from node 0 to 1"),
        (lambda: Paths([0.0, 1.0], GraphPaths([[1], [0], []], 1), start=0), "3 nodes, but there are 2 points"),
        (lambda: MoveTable({0: [[1], [1, 2]]}), "same number of stops"),
        (lambda: MoveTable({}), "same number of stops"),
        (lambda: Dives((3, 3), 0), "length must be a whole number from 1 on, got 0"),
        (lambda: GraphPaths(np.ones((2, 3)), 1), "square"),
        (lambda: GraphPaths(np.ones((200, 200)), 6).every(0), "too many paths"),
        (lambda: Paths(lattice(3, 3), Dives((3, 3), 1), start=0).moves(9), "place 9 is not one of the 9"),
    ],
)
def test_what_makes_no_sense_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_moves_must_come_from_a_generator():
    with pytest.raises(TypeError, match="got dict"):
        Paths([0.0, 1.0], {0: [[1]]}, start=0)


@pytest.mark.parametrize(
    "moves", [Dives((3, 3), 2), GraphPaths(np.ones((9, 9)), 2, most=3, seed=4), MoveTable({4: [[0, 1], [2, 3]]})]
)
def test_a_description_says_everything(moves):
    paths = Paths(lattice(3, 3), moves, start=4 if isinstance(moves, MoveTable) else [0, 0], budget=7, cost=2.0)
    twin = domain_from_dict(json.loads(json.dumps(paths.to_dict(), allow_nan=False)))
    assert twin == paths
    assert twin.sha256 == paths.sha256
    assert np.array_equal(twin.moves(paths.start), paths.moves(paths.start))
    assert twin != Paths(lattice(3, 3), moves, start=paths.start, budget=8, cost=2.0)


def test_large_paths_and_code_are_passed_again():
    large = Paths(lattice(80, 80), Dives((80, 80), 2), start=0)
    assert "points" not in large.to_dict()
    with pytest.raises(ValueError, match="pass the domain again"):
        domain_from_dict(large.to_dict())
    priced = Paths(lattice(3, 3), Dives((3, 3), 1), start=0, cost=lambda place, stops: 1.0 + place)
    assert priced.price(2, np.array([1])) == 3.0
    with pytest.raises(ValueError, match="is code"):
        domain_from_dict(priced.to_dict())


def test_places_and_moves_are_points():
    paths = Paths(lattice(3, 3), Dives((3, 3), 2), start=4 - 4)
    assert paths.validate([1, 2]).tolist() == [1.0, 2.0]
    assert paths.validate([[0, 1], [0, 2]]).shape == (2, 2)
    for bad in ([0.5, 0.0], [[0, 1], [0, 7]], [[0.0, np.nan]], "ab", np.empty((0, 2)), [0.0]):
        with pytest.raises(ValueError):
            paths.validate(bad)
    assert paths.index_of([2.0, 1.0]) == 7
    assert paths.contains([[2.0, 2.0], [3.0, 0.0]]).tolist() == [True, False]
    assert paths.decode([[0.2, 1.9]]).tolist() == [[0.0, 2.0]]
    assert (paths.size, paths.dimension, len(paths.enumerate())) == (9, 2, 9)
    assert paths.contains(paths.design(4, np.random.default_rng(0))).all()
    assert paths.contains(paths.sample(4, np.random.default_rng(0))).all()
