"""What the theory of anytime planning says, as properties: bounds hold at every node, and close."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot import GP, SE, MoveTable, Paths
from surefoot.policy.routes.anytime import AnytimePlanner
from surefoot.policy.routes.bellman import Shared, full_nodes, sampled
from surefoot.policy.routes.lipschitz import Constants, Reach, anytime_samples, anytime_split, failure
from surefoot.policy.routes.path_tree import PathTree

seeds = st.integers(0, 2**31)
inits = st.sampled_from(["mlo_jensen", "mlo", "lipschitz"])
kinds = st.sampled_from(["tight", "paper"])
rules = st.sampled_from(["upper", "lower", "gap"])


def scene(seed, horizon=3, samples=3, exploration=0.0):
    """A random walk over a few places: moves of two stops, one to three from each place, some noise, some data."""
    rng = np.random.default_rng(seed)
    points = rng.random((7, 2)) * 3.0
    table = {place: rng.integers(0, 7, size=(rng.integers(1, 4), 2)).tolist() for place in range(7)}
    paths = Paths(points, MoveTable(table), start=0)
    gp = GP(SE(rng.uniform(0.5, 2.0), variance=rng.uniform(0.5, 3.0)), mean=rng.normal(), noise=rng.uniform(1e-3, 0.5))
    belief = gp.condition(points[:2], rng.standard_normal(2))
    tree = PathTree.grow(belief, paths, 0, horizon, exploration=exploration)
    return paths, tree, Shared.draw(tree, samples, rng)


class Full:
    """The full tree of the same outcomes, node by node, straight from eq. (6)."""

    def __init__(self, tree, normals):
        self.tree, self.normals = tree, normals

    def reward(self, depth, path, xs):
        level = self.tree.levels[depth - 1]
        return self.tree.reward(depth)[path] + sum(level.weights[path, j] @ x for j, x in enumerate(xs))

    def collected(self, depth, path, xs):
        total = 0.0
        for d in range(depth, 0, -1):
            total += self.reward(d, path, xs[: d - 1])
            path = self.tree.levels[d - 1].parent[path]
        return total

    def move(self, depth, path, xs):
        """Q of the last move of a path."""
        reward = self.reward(depth, path, xs)
        if depth == self.tree.horizon:
            return reward
        later = [self.value(depth, path, [*xs, x]) for x in self.normals.tables[depth - 1]]
        return reward + self.normals.weights[depth - 1] @ later

    def children(self, depth, path):
        if depth == 0:
            return range(len(self.tree.levels[0].rows))
        level = self.tree.levels[depth - 1]
        return range(level.first[path], level.first[path] + level.count[path])

    def value(self, depth, path, xs):
        return max(self.move(depth + 1, child, xs) for child in self.children(depth, path))


def every(node):
    yield node
    for child in node.children.values():
        yield from every(child)


def check(planner, full, slack=1e-9):
    """Every bound of every stored node and every one of its outcomes against the full tree."""
    tables = planner.normals.tables
    for node in every(planner.root):
        xs = [tables[stage][outcome] for stage, outcome in enumerate(node.outcomes)]
        before = full.collected(node.depth, node.path, xs)
        for move, child in enumerate(full.children(node.depth, node.path)):
            exact = before + full.move(node.depth + 1, child, xs)
            assert node.lower[move] - slack <= exact <= node.upper[move] + slack
            if node.depth + 1 == planner.tree.horizon:
                continue
            so_far = before + full.reward(node.depth + 1, child, xs)
            for outcome, x in enumerate(tables[node.depth]):
                exact = so_far + full.value(node.depth + 1, child, [*xs, x])
                assert node.low[move, outcome] - slack <= exact <= node.up[move, outcome] + slack


@given(seeds, inits, kinds, rules, st.integers(2, 4), st.integers(0, 12))
@settings(max_examples=60, deadline=None)
def test_bounds_hold_at_every_node(seed, init, kind, rule, horizon, iterations):
    """G10: V̲ ≤ 𝒱 of the same samples ≤ V̄, wherever the search stands."""
    _, tree, normals = scene(seed, horizon, 2 if horizon == 4 else 3)
    planner = AnytimePlanner(tree, normals, init=init, constants=kind, action_rule=rule, prune=False)
    full = Full(tree, normals)
    check(planner, full)
    planner.run(iterations=iterations)
    check(planner, full)


@given(seeds, inits, kinds, st.integers(2, 3), st.booleans(), st.integers(1, 3))
@settings(max_examples=40, deadline=None)
def test_the_finished_search_is_the_full_tree(seed, init, kind, horizon, intersect, batch):
    """V̲ = V̄ = 𝒱 at the root once everything is expanded, and as many nodes as the full tree has."""
    _, tree, normals = scene(seed, horizon, exploration=0.3)
    planner = AnytimePlanner(
        tree, normals, init=init, constants=kind, prune=False, intersect=intersect, batch=batch, action_rule="gap"
    )
    plan = planner.run(iterations=10_000)
    alive = np.isfinite(plan.lower)
    exact = sampled(tree, normals)
    assert planner.finished
    assert planner.root.complete.all()
    assert plan.lower[alive] == pytest.approx(exact[alive])
    assert plan.upper[alive] == pytest.approx(exact[alive])
    assert plan.nodes == full_nodes(tree, normals.samples)


@given(seeds, inits, rules, st.integers(3, 4))
@settings(max_examples=40, deadline=None)
def test_the_certificate_never_grows(seed, init, rule, horizon):
    """ω and V̄ − Q̲(chosen) fall from one iteration to the next, and nothing is lost beyond them."""
    _, tree, normals = scene(seed, horizon, 6)
    planner = AnytimePlanner(tree, normals, init=init, action_rule=rule)
    exact = sampled(tree, normals)
    last = np.inf
    for _ in range(25):
        plan = planner.run(iterations=1)
        chosen = int(np.argmax(plan.values))
        assert plan.loss(chosen) <= last + 1e-12
        assert exact.max() - exact[chosen] <= plan.loss(chosen) + 1e-9
        last = plan.loss(chosen)
    assert (np.diff(planner.gaps) <= 1e-12).all()


@given(seeds, st.integers(3, 4))
@settings(max_examples=25, deadline=None)
def test_pruning_finds_the_best_move_with_fewer_nodes(seed, horizon):
    _, tree, normals = scene(seed, horizon, 4)
    planner = AnytimePlanner(tree, normals)
    plan = planner.run(iterations=3000)
    exact = sampled(tree, normals)
    assert planner.certificate <= planner.tiny
    assert exact[int(np.argmax(plan.values))] == pytest.approx(exact.max())
    assert plan.nodes <= full_nodes(tree, normals.samples)


@given(seeds, kinds, st.integers(2, 4))
@settings(max_examples=40, deadline=None)
def test_theta_bounds_what_the_most_likely_outcomes_ignore(seed, kind, horizon):
    """0 ≤ 𝒱 − 𝕍 ≤ θ on samples, against their mean; the paper's θ and steepness are never smaller than the tight."""
    _, tree, normals = scene(seed, horizon, 4)
    at_mean = Shared([table.mean(axis=0, keepdims=True) for table in normals.tables])
    reach = Reach.of(tree, kind, normals.tables)
    gain = sampled(tree, normals).max() - sampled(tree, at_mean).max()
    assert -1e-9 <= gain <= reach.worst + 1e-9
    tight = Reach.of(tree, "tight", normals.tables)
    assert all((t <= r + 1e-9).all() for t, r in zip(tight.theta, reach.theta, strict=True))
    expected = [Reach.of(tree, form).worst for form in ("tight", "paper")]
    assert expected[0] <= expected[1] + 1e-9


@given(seeds, st.integers(2, 3))
@settings(max_examples=20, deadline=None)
def test_expected_theta_bounds_many_samples(seed, horizon):
    """θ of the expectation is larger than that of an almost exact average."""
    _, tree, _ = scene(seed, horizon)
    normals = Shared.draw(tree, 2048, np.random.default_rng(seed), "sobol")
    bound = Reach.of(tree, "tight").worst
    assert Reach.of(tree, "tight", normals.tables).worst <= bound * 1.02 + 1e-9


@given(seeds, st.integers(2, 4), kinds)
@settings(max_examples=40, deadline=None)
def test_outcomes_differ_by_no_more_than_the_steepest_path(seed, horizon, kind):
    """Corollary 1: the value of one outcome bounds those of all others, in both directions."""
    _, tree, normals = scene(seed, horizon, 4)
    planner, full = AnytimePlanner(tree, normals, constants=kind), Full(tree, normals)
    for path in range(len(tree.levels[0].rows)):
        values = np.array([full.value(1, path, [x]) for x in normals.tables[0]])
        for outcome in range(4):
            fall, rise = planner.subtrees.spans(1, path, outcome)
            assert (values >= values[outcome] + fall - 1e-9).all()
            assert (values <= values[outcome] + rise + 1e-9).all()


@given(seeds, inits, kinds, st.integers(3, 4), st.integers(0, 30))
@settings(max_examples=40, deadline=None)
def test_bounds_carry_over_to_the_search_after_the_move(seed, init, kind, horizon, iterations):
    """What the last search knew holds for the next one, whatever was measured, and is at least as tight."""
    paths, tree, normals = scene(seed, horizon, 3)
    rng = np.random.default_rng(seed)
    planner = AnytimePlanner(tree, normals, init=init, constants=kind)
    planner.run(iterations=iterations)
    move = int(np.argmax(planner.plan.values))
    rows = paths.moves(0)[move]
    measured = tree.belief.mean(paths.points[rows]) + 2.0 * rng.standard_normal(2)
    carry = planner.carry(move, measured)
    if carry is None:
        assert planner.subtrees.settled(1)
        return
    belief = tree.belief.copy()
    for row, value in zip(rows, measured, strict=True):
        belief.append(paths.points[row], float(value))
    after = PathTree.grow(belief, paths, int(rows[-1]), horizon - 1)
    cold = AnytimePlanner(after, carry.normals, init=init, constants=kind)
    warm = AnytimePlanner(after, carry.normals, init=init, constants=kind, carry=carry)
    full = Full(after, carry.normals)
    check(warm, full, 1e-6)
    assert warm.certificate <= cold.certificate + 1e-6
    warm.run(iterations=3)
    check(warm, full, 1e-6)


@given(st.floats(1e-3, 10.0), st.floats(1e-2, 100.0), st.integers(2, 5))
def test_a_loss_is_spent_entirely(epsilon, theta, horizon):
    """G7: 2H (λ + δλ + 2δθ) = ε, and N samples keep the promise."""
    constants = Constants(horizon, 4, 0.0, theta / 2.0, np.full(4, theta))
    slack, doubt = anytime_split(constants, epsilon)
    if doubt < 1.0:
        assert 2 * horizon * (slack + doubt * slack + 2 * doubt * theta) == pytest.approx(epsilon)
    needed = anytime_samples(constants, epsilon)
    assert failure(constants, needed, slack) <= doubt


@pytest.mark.parametrize("horizon", [2, 3])
def test_promised_bounds_hold_for_the_exact_values(horizon):
    """G10 and G11 against quadrature: with ε, far fewer than a share δ of the searches are wrong."""
    _, tree, _ = scene(5, horizon)
    nodes, weights = np.polynomial.hermite_e.hermegauss(9)
    grid = np.stack(np.meshgrid(nodes, nodes), axis=-1).reshape(-1, 2)
    product = np.outer(weights, weights).ravel() / weights.sum() ** 2
    exact = sampled(tree, Shared([grid] * (horizon - 1), np.tile(product, (horizon - 1, 1))))
    wrong = 0
    for seed in range(30):
        normals = Shared.draw(tree, 40, np.random.default_rng(seed))
        planner = AnytimePlanner(tree, normals, epsilon=4.0 * horizon)
        plan = planner.run(iterations=5)
        assert plan.confidence < 1.0 - 1e-12
        alive = np.isfinite(exact)
        wrong += bool((plan.lower > exact + 1e-2)[alive].any() or (plan.upper < exact - 1e-2)[alive].any())
        assert exact.max() - exact[int(np.argmax(plan.values))] <= planner.certificate + 1e-2
    assert wrong == 0
