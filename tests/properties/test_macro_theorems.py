"""What the theory of planning ahead promises, checked against solvers that share no code with the planner."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr

from surefoot import GP, SE, Dives, Matern, MoveTable, Paths
from surefoot.policy.routes.bellman import Fresh, Shared, full_nodes, most_likely, sampled
from surefoot.policy.routes.lipschitz import Constants
from surefoot.policy.routes.path_tree import PathTree
from surefoot.policy.routes.planners import trusted


def square(side):
    return np.stack(np.meshgrid(np.arange(float(side)), np.arange(float(side)), indexing="ij"), axis=-1).reshape(-1, 2)


def case(seed, *, side=7, k=1, kernel=None, noise=0.05, known=3, mean=0.3):
    """A grid, its dives, and a belief given a few measurements; the vehicle is in the middle."""
    rng = np.random.default_rng(seed)
    points = square(side)
    rows = [points.shape[0] // 2, *rng.choice(len(points), known - 1, replace=False)]
    gp = GP(kernel or SE(1.5), noise=noise, mean=mean)
    return gp, points, Paths(points, Dives((side, side), k), start=rows[0]), rows, rng.normal(mean, 1.0, known)


def tree_of(gp, points, paths, rows, z, horizon, **options):
    return PathTree.grow(gp.condition(points[rows], z), paths, paths.start, horizon, **options)


def reward(gp, points, rows, z, stops, beta):
    """R by its definition: eq. (4)."""
    post = gp.condition(points[rows], z)
    own = post.cov(points[stops])
    return post.mean(points[stops]).sum() + 0.5 * beta * np.linalg.slogdet(np.eye(len(stops)) + own / gp.noise)[1]


def naive(gp, points, paths, rows, z, place, horizon, outcomes, beta=0.0):
    """Q of all moves, node by node: condition, predict, draw, condition again. ``outcomes(depth)`` are (x, weight)."""
    found = []
    for stops in paths.moves(place).tolist():
        value = reward(gp, points, rows, z, stops, beta)
        if horizon > 1:
            post = gp.condition(points[rows], z)
            factor = np.linalg.cholesky(post.cov(points[stops]) + gp.noise * np.eye(len(stops)))
            for x, weight in outcomes():
                seen = post.mean(points[stops]) + factor @ x
                later = naive(gp, points, paths, [*rows, *stops], [*z, *seen], stops[-1], horizon - 1, outcomes, beta)
                value += weight * max(later)
        found.append(value)
    return np.array(found)


def hermite(order, k):
    """Nodes (order^k, k) and weights of a tensor rule for the standard normal."""
    x, w = np.polynomial.hermite_e.hermegauss(order)
    nodes = np.array(list(itertools.product(x, repeat=k)))
    return nodes, np.array([math.prod(c) for c in itertools.product(w / w.sum(), repeat=k)])


def exact(tree, order=40):
    """Q* by quadrature: the recursion with the nodes and weights of a rule in place of draws."""
    nodes, weights = hermite(order, tree.length)
    return sampled(tree, Shared([nodes] * (tree.horizon - 1), np.tile(weights, (tree.horizon - 1, 1))))


def envelope(c, b):
    """E max_a (c_a + b_a x) for a standard normal x, exactly: the upper envelope of lines."""
    order = np.lexsort((c, b))
    c, b = c[order], b[order]
    keep, cuts = [], []
    for i in range(len(c)):
        if keep and b[i] == b[keep[-1]]:  # the later one of equal slopes is the higher
            keep.pop()
            if cuts:
                cuts.pop()
        while keep:
            cut = (c[keep[-1]] - c[i]) / (b[i] - b[keep[-1]])
            if cuts and cut <= cuts[-1]:
                keep.pop()
                cuts.pop()
            else:
                cuts.append(cut)
                break
        keep.append(i)
    edges = np.array([-np.inf, *cuts, np.inf])
    pdf = np.exp(-0.5 * edges**2) / math.sqrt(2 * math.pi)
    return float((c[keep] * np.diff(ndtr(edges)) - b[keep] * np.diff(pdf)).sum())


# -- G1, G2: one move ahead ----------------------------------------------------------------------------------------


@given(st.integers(0, 10**6), st.integers(1, 3), st.sampled_from([0.0, 0.7]))
@settings(max_examples=25, deadline=None)
def test_one_move_ahead_all_planners_are_the_reward(seed, k, beta):
    parts = case(seed, k=k)
    tree = tree_of(*parts, 1, exploration=beta)
    gp, points, paths, rows, z = parts
    wanted = [reward(gp, points, rows, z, stops, beta) for stops in paths.moves(paths.start).tolist()]
    assert most_likely(tree) == pytest.approx(wanted, abs=1e-9)
    assert sampled(tree, Fresh(1, 1, np.random.default_rng(0))) == pytest.approx(wanted, abs=1e-9)
    if not beta:
        mean = gp.condition(points[rows], z).mean(points)
        assert wanted == pytest.approx(mean[paths.moves(paths.start)].sum(axis=1))


# -- exact small cases, G3, G16 --------------------------------------------------------------------------------------


@given(st.integers(0, 10**6), st.integers(1, 2), st.integers(2, 3), st.sampled_from([0.0, 0.7]))
@settings(max_examples=10, deadline=None)
def test_the_whitened_tree_is_the_recursion_node_by_node(seed, k, horizon, beta):
    parts = case(seed, k=k, side=5)
    X = np.random.default_rng(seed).standard_normal((3, k))
    tree = tree_of(*parts, horizon, exploration=beta)
    gp, points, paths, rows, z = parts
    shared = Shared([X] * (horizon - 1))
    wanted = naive(gp, points, paths, list(rows), list(z), paths.start, horizon, lambda: [(x, 1 / 3) for x in X], beta)
    assert sampled(tree, shared) == pytest.approx(wanted, abs=1e-8)
    likely = naive(gp, points, paths, list(rows), list(z), paths.start, horizon, lambda: [(np.zeros(k), 1.0)], beta)
    assert most_likely(tree) == pytest.approx(likely, abs=1e-8)


class Kept(Fresh):
    """Fresh outcomes that remember themselves."""

    def __init__(self, *args):
        super().__init__(*args)
        self.drawn = {}

    def stage(self, depth, paths, first):
        x = super().stage(depth, paths, first)
        ids = range(*paths.indices(10**9)) if isinstance(paths, slice) else paths
        for path, own in zip(ids, x, strict=True):
            for i, part in zip(range(first.start, first.stop), own, strict=True):
                self.drawn[depth, int(path), i] = part
        return x


def test_fresh_outcomes_batched_and_one_by_one(monkeypatch):
    """Blocks of any size use each outcome where it belongs."""
    monkeypatch.setattr("surefoot.policy.routes.bellman.BLOCK", 7)
    tree = tree_of(*case(3, k=2), 3)
    N = 3
    kept = Kept(3, N, np.random.default_rng(0))
    got = sampled(tree, kept)
    first, second, third = tree.levels

    def leaf(p, q, i, j):
        x1, x2 = kept.drawn[1, p, i], kept.drawn[2, q, i][j]
        rows = range(second.first[q], second.first[q] + second.count[q])
        return max(third.constant[r] + third.weights[r, 0] @ x1 + third.weights[r, 1] @ x2 for r in rows)

    for p in range(len(first.rows)):
        total = 0.0
        for i in range(N):
            options = []
            for q in range(first.first[p], first.first[p] + first.count[p]):
                now = second.constant[q] + second.weights[q, 0] @ kept.drawn[1, p, i]
                options.append(now + np.mean([leaf(p, q, i, j) for j in range(N)]))
            total += max(options) / N
        assert got[p] == pytest.approx(first.constant[p] + total)


@given(st.integers(0, 10**6))
@settings(max_examples=30, deadline=None)
def test_two_moves_of_one_stop_against_the_upper_envelope(seed):
    tree = tree_of(*case(seed, kernel=Matern(2.5, lengthscale=1.3)), 2)
    first, second = tree.levels
    wanted = []
    for p in range(len(first.rows)):
        rows = slice(first.first[p], first.first[p] + first.count[p])
        wanted.append(first.constant[p] + envelope(second.constant[rows], second.weights[rows, 0, 0]))
    draws = [sampled(tree, Shared.draw(tree, 512, np.random.default_rng(i), "sobol")) for i in range(8)]
    assert np.mean(draws, axis=0) == pytest.approx(wanted, abs=2e-3)
    assert (most_likely(tree) <= np.array(wanted) + 1e-9).all()  # Jensen
    assert (np.array(wanted) <= most_likely(tree) + Constants.of(tree).theta + 1e-9).all()


def test_two_continuations_against_the_closed_form():
    """E max(c₁ + b₁·x, c₂ + b₂·x) = c₁ Φ(d) + c₂ Φ(−d) + s φ(d), with three stops to a move."""
    points = np.random.default_rng(0).uniform(0, 3, (12, 2))
    paths = Paths(points, MoveTable({0: [[1, 2, 3], [4, 5, 3]], 3: [[6, 7, 8], [9, 10, 11]]}), start=0)
    tree = PathTree.grow(GP(SE(1.0), noise=0.01).condition(points[:1], [0.4]), paths, 0, 2)
    level = tree.levels[1]
    (c1, c2), (d1, d2) = level.constant.reshape(2, 2).T, level.weights[:, 0].reshape(2, 2, 3).swapaxes(0, 1)
    s = np.linalg.norm(d1 - d2, axis=1)
    delta = (c1 - c2) / s
    wanted = c1 * ndtr(delta) + c2 * ndtr(-delta) + s * np.exp(-0.5 * delta**2) / math.sqrt(2 * math.pi)
    got = np.mean([sampled(tree, Shared.draw(tree, 4096, np.random.default_rng(i), "sobol")) for i in range(4)], axis=0)
    assert got == pytest.approx(tree.levels[0].constant + wanted, abs=2e-3)


@given(st.integers(0, 10**6), st.sampled_from(["tight", "paper"]))
@settings(max_examples=15, deadline=None)
def test_the_most_likely_plan_is_a_lower_bound_and_theta_an_upper_one(seed, kind):
    tree = tree_of(*case(seed), 3)
    best, likely = exact(tree), most_likely(tree)
    assert (likely <= best + 1e-6).all()
    assert (best <= likely + Constants.of(tree, kind).theta + 1e-6).all()


# -- G4, G5: sampling ----------------------------------------------------------------------------------------------


def test_two_moves_are_estimated_without_bias_three_with_an_upward_one():
    """A maximum of averages is too high on average; it shows where the moves are alike."""
    parts = case(11, known=1, noise=1e-3)
    for horizon, samples in ((2, 3), (3, 2)):
        tree = tree_of(*parts, horizon)
        best = exact(tree, 60)
        runs = np.array([sampled(tree, Fresh(horizon, samples, np.random.default_rng(i))) for i in range(3000)])
        error = runs.std(axis=0) / math.sqrt(len(runs))
        gap = runs.mean(axis=0) - best
        if horizon == 2:
            assert (np.abs(gap) < 4 * error + 1e-3).all()
        else:
            assert (gap > 3 * error).all()


@pytest.mark.parametrize("sampling", ["shared", "iid"])
def test_enough_samples_are_close_enough_as_often_as_promised(sampling):
    tree = tree_of(*case(5, kernel=SE(0.6)), 2)
    constants, best = Constants.of(tree), exact(tree, 60)
    epsilon = 8.0 * constants.K
    lam, delta = constants.split(epsilon)
    N = constants.required_samples(epsilon)
    assert N < 500
    wrong = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        normals = Shared.draw(tree, N, rng) if sampling == "shared" else Fresh(2, N, rng)
        wrong += bool((np.abs(sampled(tree, normals) - best) > lam * 2).any())
    assert wrong <= max(delta * 200, 1)


# -- G6: Lipschitz -------------------------------------------------------------------------------------------------


@given(st.integers(0, 10**6), st.integers(1, 3))
@settings(max_examples=20, deadline=None)
def test_values_are_lipschitz_in_what_was_measured(seed, k):
    gp, points, paths, rows, z = case(seed, k=k)
    other = z + np.random.default_rng(seed + 1).normal(0.0, 2.0, len(z))
    trees = [tree_of(gp, points, paths, rows, values, 3) for values in (z, other)]
    tight, paper = (Constants.of(trees[0], kind) for kind in ("tight", "paper"))
    shared = Shared.draw(trees[0], 6, np.random.default_rng(seed))
    distance = np.linalg.norm(z - other)
    for plan in (most_likely, lambda tree: sampled(tree, shared)):
        change = abs(plan(trees[0]).max() - plan(trees[1]).max())
        assert change <= tight.lipschitz * distance + 1e-9
    assert 0.0 <= tight.lipschitz <= paper.lipschitz + 1e-9
    assert 0.0 <= tight.K <= paper.K + 1e-9
    one = tree_of(gp, points, paths, rows, z, 1)  # Lemma 1: |R − R'| ≤ √k α ‖z − z'‖
    assert Constants.of(one, "paper").lipschitz >= Constants.of(one).lipschitz - 1e-9
    assert Constants.of(one).K == 0.0


def test_published_magnitudes_of_the_constants():
    """The numbers that the paper's formulas give for its plankton setting."""
    points = square(50)
    belief = GP(SE(5.0), noise=1e-5).condition(points[[1275]], [0.0])
    paths = Paths(points, Dives((50, 50), 4), start=1275)
    wanted = {2: (1.5e2, 7.3e1, 1.5e2, 3.6e8, 3.5), 3: (6.5e3, 3.2e3, 6.5e3, 3.3e12, 6.7)}
    for horizon, (L, K, theta, N, tight) in wanted.items():
        tree = PathTree.grow(belief, paths, 1275, horizon)
        paper = Constants.of(tree, "paper")
        assert [paper.lipschitz, paper.K, paper.worst] == pytest.approx([L, K, theta], rel=0.04)
        assert paper.required_samples(0.4 * horizon) == pytest.approx(N, rel=0.04)
        assert pytest.approx(tight, rel=0.02) == Constants.of(tree).K


# -- G7, G8, G9: the loss ------------------------------------------------------------------------------------------


@given(st.floats(1e-3, 1e2), st.floats(1e-2, 1e3), st.integers(1, 6))
def test_the_parts_of_epsilon_add_up(epsilon, theta, horizon):
    constants = Constants(horizon, 4, 0.0, 1.0, np.array([theta, 0.5 * theta]))
    lam, delta = constants.split(epsilon)
    if delta < 1.0:
        assert 2 * horizon * (lam * horizon + 2 * delta * theta) == pytest.approx(epsilon)
    N = constants.required_samples(epsilon)
    needed = 2 / lam**2 * (horizon * math.log(N) + horizon * math.log(4) + math.log(2 / delta))
    assert needed * (1 - 1e-12) <= N


def test_the_expected_loss_is_below_epsilon():
    """Two moves ahead the second is exact, so that the value of the policy is Q* of its first move."""
    tree = tree_of(*case(2, kernel=SE(0.7)), 2)
    constants, best, likely = Constants.of(tree), exact(tree, 60), most_likely(tree)
    epsilon = 6.0 * constants.K
    lam, _ = constants.split(epsilon)
    N = constants.required_samples(epsilon)
    losses = []
    for seed in range(100):
        values, _ = trusted(sampled(tree, Fresh(2, N, np.random.default_rng(seed))), likely, lam * 2 + constants.worst)
        losses.append(best.max() - best[values.argmax()])
    assert 0.0 <= np.mean(losses) <= epsilon


@given(st.integers(0, 10**6), st.floats(-1e3, 1e3))
@settings(max_examples=20, deadline=None)
def test_a_corrupted_value_falls_back(seed, error):
    tree = tree_of(*case(seed), 2)
    constants, best, likely = Constants.of(tree), exact(tree, 30), most_likely(tree)
    lam_H = 0.1
    broken = best.copy()
    broken[1] += error
    values, fallbacks = trusted(broken, likely, lam_H + constants.worst)
    assert (np.abs(values - best) <= lam_H + 2 * constants.worst + 1e-6).all()
    if abs(broken[1] - likely[1]) > lam_H + constants.worst:
        assert fallbacks == (1,)
        assert values[1] == likely[1]


# -- G12, G13: identities ------------------------------------------------------------------------------------------


@given(st.integers(0, 10**6))
@settings(max_examples=20, deadline=None)
def test_information_adds_up_however_a_path_is_split(seed):
    rng = np.random.default_rng(seed)
    points = rng.uniform(0, 3, (13, 2))
    gp = GP(SE(1.0), noise=0.02)
    belief = gp.condition(points[[0]], [1.0])
    whole = None
    for k in (12, 6, 4, 3, 2, 1):
        table = {int(p): [[int(p) + i + 1 for i in range(k)]] for p in range(0, 12, k)}
        tree = PathTree.grow(belief, Paths(points, MoveTable(table), start=0), 0, 12 // k, exploration=1.0)
        total = sum(level.information[0] for level in tree.levels)
        whole = total if whole is None else whole
        assert total == pytest.approx(whole)
    own = belief.cov(points[1:])
    assert whole == pytest.approx(0.5 * np.linalg.slogdet(np.eye(12) + own / gp.noise)[1])


@given(st.integers(0, 10**6), st.floats(-50.0, 50.0), st.floats(0.1, 10.0))
@settings(max_examples=15, deadline=None)
def test_shifts_and_scales_change_no_decision(seed, shift, scale):
    gp, points, paths, rows, z = case(seed, k=2)
    tree = tree_of(gp, points, paths, rows, z, 3, exploration=0.4)
    shared = Shared.draw(tree, 4, np.random.default_rng(seed))
    moved = tree_of(
        GP(SE(1.5), noise=gp.noise, mean=gp.mean + shift), points, paths, rows, z + shift, 3, exploration=0.4
    )
    larger = GP(SE(1.5, variance=scale**2), noise=gp.noise * scale**2, mean=gp.mean * scale)
    scaled = tree_of(larger, points, paths, rows, z * scale, 3, exploration=0.4 * scale)
    for plan in (most_likely, lambda tree: sampled(tree, shared)):
        values = plan(tree)
        assert plan(moved) == pytest.approx(values + 6 * shift, abs=1e-7)
        assert plan(scaled) == pytest.approx(scale * values, rel=1e-6, abs=1e-7)
    assert all(np.array_equal(a.weights, b.weights) for a, b in zip(tree.levels, moved.levels, strict=True))


def test_the_order_of_moves_and_the_symmetry_of_the_grid():
    points = square(9)
    dives = Dives((9, 9), 2)
    belief = GP(SE(2.0), noise=1e-4).condition(points[[40]], [1.0])
    tree = PathTree.grow(belief, Paths(points, dives, start=40), 40, 3)
    table = {p: Paths(points, dives, start=40).moves(p)[::-1].tolist() for p in range(81)}
    turned = PathTree.grow(belief, Paths(points, MoveTable(table), start=40), 40, 3)
    shared = Shared.draw(tree, 5, np.random.default_rng(0))
    for plan in (most_likely, lambda tree: sampled(tree, shared)):
        assert plan(turned) == pytest.approx(plan(tree)[::-1])
        assert np.ptp(plan(tree)) < 1e-8  # one measurement in the middle: no direction is better


# -- G14, G15: how much it takes -----------------------------------------------------------------------------------


def test_node_counts_of_the_published_table():
    """A = 4, N = 100, five stages, horizon min(H, stages left): Table I."""
    points = square(60)
    paths = Paths(points, Dives((60, 60), 1), start=30 * 60 + 30)
    belief = GP().condition()
    counts = []
    for H in (1, 2, 3, 4):
        trees = {h: PathTree.grow(belief, paths, paths.start, h) for h in range(1, H + 1)}
        counts.append(sum(full_nodes(trees[min(H, 5 - stage)], 100) for stage in range(5)))
    assert counts == [25, 8_009, 2_403_209, 641_123_209]


def test_samples_grow_polynomially_with_the_length_of_a_move():
    """At most like k^(2H), where a grid of outcomes would grow exponentially."""
    points = square(70)
    belief = GP(SE(0.5), noise=0.01).condition(points[[35 * 70 + 35]], [0.0])
    needed = []
    for k in (2, 4, 8, 16):
        paths = Paths(points, Dives((70, 70), k), start=35 * 70 + 35)
        needed.append(Constants.of(PathTree.grow(belief, paths, paths.start, 2), "paper").required_samples(1.0))
    growth = np.diff(np.log2(needed))
    assert (growth <= 2 * 2 + 1.0).all()  # the logarithm takes the rest
