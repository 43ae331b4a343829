"""Routes: what moves cost changes them or is said not to, and a tree that cannot be searched is refused at once.

Finding 20 of the review of 0.1.0.
"""

import itertools
import json
import warnings

import numpy as np
import pytest
from scipy.sparse import csr_array

from surefoot import GP, GPUCB, SE, Dives, GraphPaths, MacroGPO, MoveTable, Paths, Policy
from surefoot.domain import domain_from_dict
from surefoot.policy.routes.bellman import full_nodes, most_likely, nodes_of
from surefoot.policy.routes.path_tree import PathTree, path_counts

PLACES = np.random.default_rng(0).uniform(0.0, 10.0, (30, 2))
APART = np.linalg.norm(PLACES[:, None] - PLACES, axis=2)
METRES = np.where(APART < 4.0, APART, 0.0)
FIELD = np.exp(-((PLACES - [7.0, 7.0]) ** 2).sum(axis=1) / 8.0)
BELIEF = GP(SE(2.0), noise=1e-4)
SQUARE = np.array([[0.0, 1.5, 4.0], [2.0, 0.0, 0.5], [3.0, 1.0, 0.0]])


def routes(**options):
    return Paths(PLACES, GraphPaths(METRES, 2), start=0, budget=12, **options)


def drive(policy):
    policy.tell(PLACES[0], FIELD[0])
    while policy.journey.stages:
        query = policy.ask()
        policy.tell(query, FIELD[query.note["stops"]])
    return sum(query.cost for query in policy.queries), [query.note["stops"] for query in policy.queries]


def length(place, stops):
    return float(sum(APART[a, b] for a, b in itertools.pairwise([place, *stops])))


def test_finding_20_weights_of_edges_are_travel_costs():
    for matrix in (SQUARE, csr_array(SQUARE)):
        moves = GraphPaths(matrix, 2)
        assert moves.travel(0, np.array([1, 2])) == 2.0
        assert moves.travel(2, np.array([0, 1])) == 4.5
    paths = Paths([0.0, 1.0, 2.0], GraphPaths(SQUARE, 2), start=0)
    assert paths.price(1, np.array([0, 2])) == 6.0
    assert Paths([0.0, 1.0, 2.0], GraphPaths(SQUARE, 2), start=0, cost=9.0).price(0, np.array([1, 2])) == 9.0
    with pytest.warns(UserWarning, match="does not weigh"):
        query = MacroGPO(paths, gp=BELIEF, seed=0).ask()
    assert query.cost == paths.price(0, query.note["stops"])
    with pytest.raises(ValueError, match="no step leads from place 1 to place 1"):
        GraphPaths(SQUARE, 2).travel(0, np.array([1, 1]))


def test_weights_are_kept_and_plain_graphs_have_none():
    weighted, plain = GraphPaths(METRES, 2), GraphPaths((METRES > 0).astype(float), 2)
    assert weighted.to_dict() != plain.to_dict()
    assert "weights" not in plain.to_dict()  # stored as it always was
    assert GraphPaths(METRES > 0, 2).to_dict() == plain.to_dict()
    assert plain.travel(0, np.array([1])) is None
    assert not plain.uneven
    assert not GraphPaths(2.0 * (METRES > 0), 2).uneven
    again = domain_from_dict(json.loads(json.dumps(routes().to_dict())))
    assert again == routes()
    assert again.price(0, again.moves(0)[0]) == routes().price(0, routes().moves(0)[0])


def test_weights_of_lists():
    moves = GraphPaths([[2, 1], [0], [0]], 1, weights=[[3.0, 4.0], [5.0], [1.0]])  # not in order
    assert [moves.travel(0, np.array([stop])) for stop in (1, 2)] == [4.0, 3.0]
    assert GraphPaths(**{k: v for k, v in moves.to_dict().items() if k != "moves"}).to_dict() == moves.to_dict()
    with pytest.raises(ValueError, match="one number for each edge"):
        GraphPaths([[1], [0]], 1, weights=[[1.0], []])
    with pytest.raises(ValueError, match="with lists only"):
        GraphPaths(SQUARE, 1, weights=[[1.0]])


@pytest.mark.parametrize("bad", [-1.0, np.inf, np.nan])
def test_weights_that_are_no_costs(bad):
    matrix = SQUARE.copy()
    matrix[1, 2] = bad
    with pytest.raises(ValueError, match=r"the edge from node 1 to 2 is .*: weights are travel costs"):
        GraphPaths(matrix, 2)


@pytest.mark.parametrize("given", [None, length])
def test_finding_20_a_toll_changes_the_route(given):
    domain = routes(cost=given)
    runs = [drive(MacroGPO(domain, horizon=2, samples=20, toll=toll, gp=BELIEF, seed=0)) for toll in (0.0, 0.05, 10.0)]
    metres = [cost for cost, _ in runs]
    assert metres[0] > metres[1] > metres[2]
    assert runs[0][1] != runs[1][1]
    least = min(length(0, stops) for stops in domain.moves(0))
    assert length(0, runs[2][1][0]) < least + 1.0  # a high toll leaves little but the way to think of


def test_finding_20_costs_that_are_not_weighed_are_not_ignored_in_silence():
    for kind in (MacroGPO, GPUCB):
        for domain in (routes(), routes(cost=length)):
            with pytest.warns(UserWarning, match=f"{kind.__name__} does not weigh what moves cost"):
                kind(domain, gp=BELIEF)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for domain in (routes(cost=0.0), routes(cost=3.0), Paths(PLACES, GraphPaths(METRES > 0, 2), start=0)):
            MacroGPO(domain, gp=BELIEF)  # the same for every move
        MacroGPO(routes(), toll=0.0, gp=BELIEF)


@pytest.mark.parametrize("planner", ["epsilon", "likely", "anytime"])
def test_a_toll_is_taken_off_the_reward(planner):
    domain = routes()
    policy = MacroGPO(domain, horizon=1, toll=0.3, planner=planner, gp=BELIEF, seed=0)
    policy.tell(PLACES[0], FIELD[0])
    moves = domain.moves(0)
    mean = policy.posterior().mean(PLACES)
    by_hand = mean[moves].sum(axis=1) - 0.3 * np.array([length(0, stops) for stops in moves])
    query = policy.ask()
    assert policy.values == pytest.approx(by_hand)
    assert query.note["stops"] == moves[by_hand.argmax()].tolist()


def test_two_moves_by_brute_force():
    domain, belief = routes(), BELIEF.condition(PLACES[[0]], FIELD[[0]])
    tree = PathTree.grow(belief, domain, 0, 2, toll=0.2)
    mean = belief.mean(PLACES)
    worth = [
        max(
            mean[first].sum() + mean[second].sum() - 0.2 * (length(0, first) + length(first[-1], second))
            for second in domain.moves(int(first[-1]))
        )
        for first in domain.moves(0)
    ]
    assert most_likely(tree) == pytest.approx(np.array(worth))


def test_a_toll_survives_in_the_state():
    policy = MacroGPO(routes(), horizon=2, samples=5, toll=0.1, gp=BELIEF, seed=0)
    policy.tell(PLACES[0], FIELD[0])
    policy.tell(policy.ask(), [1.0, 2.0])
    twin = Policy.from_state(json.loads(json.dumps(policy.state())))
    assert twin.ask() == policy.ask()
    for bad in (-1.0, np.inf):
        with pytest.raises(ValueError, match="toll"):
            MacroGPO(routes(), toll=bad)
    with pytest.raises(ValueError, match="the cost of the move"):
        MacroGPO(routes(cost=lambda place, stops: -1.0), toll=1.0, horizon=1, gp=BELIEF, seed=0).ask()


def test_finding_20_the_defaults_work_on_a_graph_at_the_first_ask():
    dense = Paths(PLACES, GraphPaths(METRES > 0, 3), start=0, budget=30)
    policy = MacroGPO(dense, gp=BELIEF, samples=20, seed=0)
    policy.tell(PLACES[0], FIELD[0])
    query = policy.ask()
    assert query.note["nodes"] <= 5e9
    assert query.note["horizon"] == 4  # with a hundred samples: 3
    usual = MacroGPO(dense, gp=BELIEF, seed=0)
    assert usual.rule.ahead(usual.journey) == 3
    grid = np.stack(np.meshgrid(np.arange(9.0), np.arange(9.0), indexing="ij"), axis=-1).reshape(-1, 2)
    ever = MacroGPO(Paths(grid, Dives((9, 9), 2), start=40), gp=BELIEF)
    assert ever.rule.ahead(ever.journey) == 4


def test_finding_20_a_tree_that_cannot_be_searched_is_refused_when_the_policy_is_made():
    dense = Paths(PLACES, GraphPaths(METRES > 0, 3), start=0, budget=30)
    with pytest.raises(ValueError, match=r"horizon=4 with samples=100 .* lower horizon or samples, .*GraphPaths\(most"):
        MacroGPO(dense, horizon=4, gp=BELIEF)
    for planner in ("likely", "anytime"):
        MacroGPO(dense, horizon=4, planner=planner, gp=BELIEF)
    MacroGPO(dense, horizon=3, gp=BELIEF)
    short = Paths(PLACES, GraphPaths(METRES > 0, 3), start=0, budget=6)
    MacroGPO(short, horizon=4, gp=BELIEF)  # only two moves will be planned


def test_the_estimate_is_the_size_of_the_tree():
    ends = MoveTable({0: [[1], [2]], 1: [[0], [3]], 2: [[3]], 4: [[0]]})  # 3 is a dead end
    some = Paths(np.arange(5.0)[:, None], ends, start=0)
    for domain, place in ((routes(), 0), (routes(), 6), (some, 0), (some, 4), (some, 2)):
        for horizon in (1, 2, 3):
            tree = PathTree.grow(BELIEF.condition(), domain, place, horizon)
            counts = path_counts(domain, place, horizon)
            assert counts == [len(level.rows) for level in tree.levels]
            assert nodes_of(counts, 7) == full_nodes(tree, 7)
