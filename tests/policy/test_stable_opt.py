"""StableOpt: its reductions, its reports, its certificate, and what users hand it."""

import json
import math

import numpy as np
import pytest

from surefoot import (
    BOBOS,
    GP,
    GPUCB,
    SE,
    AroundEstimate,
    Ball,
    Box,
    Candidates,
    ExpectedImprovement,
    Groups,
    Matern,
    MaxiMinGPUCB,
    NotSupported,
    Policy,
    RandomSearch,
    RobustReport,
    Space,
    StableOpt,
    UnknownParameters,
    WeightedBox,
    load,
    widths,
)
from surefoot.domain import Float
from surefoot.policy.robust.worst_case import lowest, maximin

AXIS = np.linspace(0.0, 1.0, 15)
GRID = np.stack(np.meshgrid(AXIS, AXIS, indexing="ij"), axis=-1).reshape(-1, 2)
BELIEF = GP(SE([0.2, 0.3]), noise=1e-4)
WIDTH = widths.Constant(2.0)


def hills(x):
    """A narrow peak at (0.2, 0.2), higher than a broad one at (0.7, 0.7)."""
    x = np.atleast_2d(x)
    narrow = 2.0 * np.exp(-(((x - 0.2) / 0.08) ** 2).sum(axis=1))
    return narrow + np.exp(-(((x - 0.7) / 0.35) ** 2).sum(axis=1))


def play(policy, steps, f=hills, start=None):
    """Measure some points, then follow the policy; return the points it asked for."""
    for x in () if start is None else start:
        policy.tell(x, float(np.squeeze(f(x))))
    asked = []
    for _ in range(steps):
        query = policy.ask()
        policy.tell(query, float(np.squeeze(f(query.x))))
        asked.append(query.x.tolist())
    return asked


class TestReductions:
    @pytest.mark.parametrize("belief", [BELIEF, None])
    def test_no_perturbation_is_gp_ucb_on_candidates(self, belief):
        options = {"gp": belief, "seed": 5, "automatic": 1}  # from version 2 on GP-UCB takes a second look
        expected = play(GPUCB(Candidates(GRID), **options), 12)
        for none in (Ball(0.0), Ball(0.0, np.inf), WeightedBox([0.0, 0.0]), Groups(range(225)), Ball(0.01)):
            assert play(StableOpt(Candidates(GRID), perturbation=none, **options), 12) == expected
        assert play(MaxiMinGPUCB(Candidates(GRID), perturbation=Ball(0.0), **options), 12) == expected

    def test_no_perturbation_is_gp_ucb_on_a_box(self):
        box = Box([(0.0, 1.0), (0.0, 1.0)])
        options = {"gp": BELIEF, "seed": 5}
        expected = play(GPUCB(box, **options), 8)
        policy = StableOpt(box, perturbation=Ball(0.0), **options)
        assert play(policy, 8) == expected
        assert [query.note["center"] for query in policy.queries] == expected

    def test_no_perturbation_in_batches_is_gp_bucb(self):
        plain, stable = GPUCB(Candidates(GRID), gp=BELIEF, seed=2), None
        stable = StableOpt(Candidates(GRID), perturbation=Ball(0.0), gp=BELIEF, seed=2)
        for policy in (plain, stable):
            policy.tell(GRID[100], 1.0)
        assert [q.index for q in plain.ask(6)] == [q.index for q in stable.ask(6)]

    def test_one_value_of_the_parameter_is_gp_ucb(self):
        """A parameter that cannot vary: the kernel sees it, and it changes nothing."""
        plain = GPUCB(Candidates(AXIS), gp=GP(SE([0.2]), noise=1e-4), seed=3)
        pairs = StableOpt(
            Candidates(AXIS), perturbation=UnknownParameters([0.5]), gp=GP(SE([0.2, 1.0]), noise=1e-4), seed=3
        )
        expected = play(plain, 12, lambda x: np.sin(7.0 * x[0]))
        asked = play(pairs, 12, lambda x: np.sin(7.0 * x[0]))
        assert [x[:1] for x in asked] == expected
        assert {x[1] for x in asked} == {0.5}

    def test_one_group_is_a_search_for_the_minimum(self):
        policy = StableOpt(Candidates(GRID), perturbation=Groups(["all"] * 225), gp=BELIEF, width=WIDTH, seed=0)
        asked = play(policy, 30)
        worst = hills(GRID).min()
        assert min(float(hills(x)[0]) for x in asked) < worst + 0.01
        assert policy.recommend().x.shape == (225, 2)

    def test_three_formulations_of_one_problem(self):
        """Parameters, groups and a distance: the same sets, so the same measurements to the bit."""
        theta = np.array([0.0, 0.4, 1.0])
        unknown = UnknownParameters(theta)
        pairs = unknown.join(Candidates(AXIS))
        groups = Groups(np.repeat(np.arange(15), 3))
        distance = Ball(0.0, lambda X, Z: np.where(X[:, :1] == Z[:, 0], 0.0, 1.0))
        options = {"gp": BELIEF, "seed": 9, "report": "current"}
        policies = [
            StableOpt(Candidates(AXIS), perturbation=unknown, **options),
            StableOpt(pairs, perturbation=groups, **options),
            StableOpt(pairs, perturbation=distance, **options),
        ]
        traces = [play(policy, 20, lambda x: np.sin(5.0 * x[0]) - (x[0] - x[1]) ** 2) for policy in policies]
        assert traces[0] == traces[1] == traces[2]
        bounds = [[(q.note["upper"], q.note["lower"]) for q in policy.queries] for policy in policies]
        assert bounds[0] == bounds[1] == bounds[2]
        best = [policy.recommend() for policy in policies]
        assert best[0].lower == best[1].lower == best[2].lower
        assert best[0].x.tolist() == [best[1].x[0, 0]] == [best[2].x[0]]
        assert best[1].params == {"group": best[0].index}

    def test_an_estimate_known_to_be_anywhere_is_an_unknown_parameter(self):
        theta = np.linspace(0.0, 1.0, 4)
        options = {"gp": BELIEF, "seed": 4}
        first = StableOpt(Candidates(AXIS), perturbation=UnknownParameters(theta), **options)
        second = StableOpt(Candidates(AXIS), perturbation=AroundEstimate(0.5, 9.0, theta), **options)
        third = StableOpt(Candidates(AXIS), perturbation=AroundEstimate(theta[1], 0.0, theta), **options)
        assert play(first, 10) == play(second, 10)
        assert {x[1] for x in play(third, 10)} == {theta[1]}


class TestRule:
    def test_the_three_lines_of_the_algorithm(self):
        """Against a brute-force reading of them, with a belief computed anew."""
        sets = [np.flatnonzero(np.linalg.norm(GRID - x, axis=1) <= 0.15 + 1e-9) for x in GRID]
        policy = StableOpt(Candidates(GRID), perturbation=Ball(0.15), gp=BELIEF, width=WIDTH, seed=0)
        play(policy, 1)
        for _ in range(12):
            X, y, _ = policy.data()
            mean, std = BELIEF.condition(X, y).predict(GRID)
            query = policy.ask()
            robust = np.array([(mean + 2 * std)[s].min() for s in sets])
            center = query.note["center"]
            assert robust[center] == pytest.approx(robust.max(), abs=1e-6)
            assert query.index in sets[center]
            assert (mean - 2 * std)[query.index] == pytest.approx((mean - 2 * std)[sets[center]].min(), abs=1e-6)
            assert query.note["upper"] == pytest.approx(robust.max(), abs=1e-6)
            assert query.note["lower"] == pytest.approx((mean - 2 * std)[sets[center]].min(), abs=1e-6)
            policy.tell(query, float(hills(query.x)[0]))

    def test_it_prefers_the_broad_peak_and_gp_ucb_does_not(self):
        domain, ball = Candidates(GRID), Ball(0.15)
        worst = ball.on(domain).minimum(hills(GRID))
        stable = StableOpt(domain, perturbation=ball, gp=BELIEF, width=WIDTH, seed=1)
        plain = GPUCB(domain, gp=BELIEF, width=WIDTH, seed=1)
        for policy in (stable, plain):
            play(policy, 40, start=GRID[[48]])  # both know of the narrow peak
        assert worst[stable.recommend().index] > worst.max() - 0.02
        assert worst[plain.recommend().index] < worst.max() - 0.2

    def test_maximin_measures_its_choice(self):
        policy = MaxiMinGPUCB(Candidates(GRID), perturbation=Ball(0.15), gp=BELIEF, seed=0)
        play(policy, 8)
        assert all(query.index == query.note["center"] for query in policy.queries)
        assert policy.recommend().index == policy.queries[-1].index

    def test_maximin_and_stableopt_differ_in_the_bound_they_sample_by(self):
        labels = np.arange(225) // 15
        stable = StableOpt(Candidates(GRID), perturbation=Groups(labels), gp=BELIEF, width=WIDTH, seed=0)
        greedy = MaxiMinGPUCB(Candidates(GRID), perturbation=Groups(labels), gp=BELIEF, width=WIDTH, seed=0)
        for policy in (stable, greedy):
            play(policy, 0, start=GRID[::40])
        mean, std = stable.posterior().predict(GRID)
        first, second = stable.ask(), greedy.ask()
        assert first.note["center"] == second.note["center"]
        members = np.flatnonzero(labels == first.note["center"])
        assert first.index == members[(mean - 2 * std)[members].argmin()]
        assert second.index == members[(mean + 2 * std)[members].argmin()]

    def test_a_failed_member_sends_it_to_another(self):
        policy = StableOpt(Candidates(AXIS), perturbation=Groups([0] * 5 + [1] * 10), gp=GP(SE(0.2)), seed=0)
        seen = set()
        for _ in range(15):
            query = policy.ask()
            policy.tell(query, None)
            seen.add(query.index)
        assert seen == set(range(15))


class TestReports:
    def made(self, rule):
        policy = StableOpt(Candidates(GRID), perturbation=Ball(0.15), gp=BELIEF, width=WIDTH, report=rule, seed=7)
        play(policy, 15, start=GRID[[3, 110, 200]])
        return policy

    def test_current(self):
        policy = self.made("current")
        mean, std = policy.posterior().predict(GRID)
        worst = policy.perturbation.on(policy.domain).minimum(mean - 2 * std)
        chosen = {query.note["center"] for query in policy.queries}
        best = policy.recommend()
        assert best.index in chosen
        assert best.lower == pytest.approx(max(worst[c] for c in chosen), abs=1e-6)
        assert best.lower <= best.mean <= best.upper
        assert policy.certificate == pytest.approx(min(q.note["upper"] for q in policy.queries) - best.lower)

    def test_own_time(self):
        policy = self.made("own_time")
        top = max(policy.queries, key=lambda query: query.note["lower"])
        best = policy.recommend()
        assert (best.index, best.lower) == (top.note["center"], top.note["lower"])
        assert policy.certificate == min(q.note["upper"] for q in policy.queries) - top.note["lower"]

    def test_last(self):
        policy = self.made("last")
        assert policy.recommend().index == policy.queries[-1].note["center"]

    def test_the_rules_ask_alike(self):
        asked = [[q.index for q in self.made(rule).queries] for rule in ("current", "own_time", "last")]
        assert asked[0] == asked[1] == asked[2]

    def test_without_a_choice_measured_points_are_reported(self):
        policy = StableOpt(Candidates(GRID), perturbation=Ball(0.15), gp=BELIEF, seed=0)
        play(policy, 0, start=GRID[[112, 160]])
        assert policy.recommend().index in (112, 160)
        assert "measured" in policy.recommend().rule
        assert policy.certificate == math.inf

    def test_it_can_stop(self):
        policy = StableOpt(
            Candidates(AXIS), perturbation=Ball(0.1), gp=GP(SE(0.3), noise=1e-6), width=WIDTH, accuracy=0.05, seed=0
        )
        assert not policy.finished
        steps = 0
        while not policy.finished:
            play(policy, 1, lambda x: np.sin(4.0 * x[0]))
            steps += 1
        assert 3 <= steps < 40
        worst = policy.perturbation.on(policy.domain).minimum(np.sin(4.0 * AXIS))
        assert worst.max() - worst[policy.recommend().index] <= 0.05
        assert not StableOpt(Candidates(AXIS), perturbation=Ball(0.1), seed=0).finished

    def test_pending_points_do_not_make_the_certificate_too_good(self):
        """Hallucinated bounds are narrower than what is known; what is promised is not."""
        policy = StableOpt(Candidates(GRID), perturbation=Ball(0.15), gp=BELIEF, width=WIDTH, report="own_time", seed=0)
        play(policy, 4)
        mean, std = policy.posterior().predict(GRID)
        honest = policy.perturbation.on(policy.domain).minimum(mean + 2 * std).max()
        for query in policy.ask(5):
            assert query.note["upper"] == pytest.approx(honest, abs=1e-6)

    def test_the_same_on_a_box(self):
        policy = StableOpt(Box.unit(1), perturbation=Ball(0.1), gp=GP(SE(0.2), noise=1e-4), width=WIDTH, seed=0)
        play(policy, 3, lambda x: np.sin(7.0 * x[0]))
        before = min(query.note["upper"] for query in policy.queries)
        mean, std = policy.posterior().predict(np.linspace(0, 1, 201)[:, None])
        robust = Ball(0.1).on(Candidates(np.linspace(0, 1, 201))).minimum(mean + 2 * std).max()
        for query in policy.ask(3):
            assert query.note["upper"] == pytest.approx(robust, abs=0.02)
        assert min(query.note["upper"] for query in policy.queries) >= min(before, robust - 0.02)


class TestBoxes:
    def test_the_nested_search_finds_what_a_fine_grid_finds(self):
        rng = np.random.default_rng(0)
        fine = np.stack(np.meshgrid(*[np.linspace(0, 1, 101)] * 2, indexing="ij"), axis=-1).reshape(-1, 2)
        for norm in (2.0, np.inf):
            X = rng.random((12, 2))
            score = _Bound(GP(SE(0.25), noise=1e-4).condition(X, rng.standard_normal(12)))
            region = Ball(0.12, norm).on(Box.unit(2))
            grid = Ball(0.12, norm).on(Candidates(fine)).minimum(score(fine))
            x, value, z = maximin(score, region, rng=rng)
            assert value == pytest.approx(float(grid.max()), abs=0.03)
            assert value >= lowest(score, region, x[None], count=500)[0][0] - 1e-9
            assert np.linalg.norm(z - x, ord=norm) <= 0.12 + 1e-9
            assert score(z[None])[0] == pytest.approx(value)

    def test_a_broad_peak_in_a_box(self):
        policy = StableOpt(Box.unit(2), perturbation=Ball(0.15), gp=BELIEF, width=WIDTH, seed=0)
        play(policy, 30)
        region = Ball(0.15).on(Box.unit(2))
        assert policy.recommend().x == pytest.approx([0.7, 0.7], abs=0.06)
        for query in policy.queries:
            assert np.linalg.norm(query.x - query.note["center"]) <= 0.15 * (1 + 1e-9)
        assert region.centers.contains(policy.recommend().x[None]).all()

    def test_several_objectives(self):
        """max over x of min over i of −(x − cᵢ)²: the middle of the interval that holds all the cᵢ."""
        c = np.array([0.2, 0.5, 0.9])
        policy = StableOpt(
            Box.unit(1),
            perturbation=UnknownParameters.objectives(3),
            gp=GP(SE([0.4, 1.0, 1.0, 1.0]), noise=1e-6),
            width=WIDTH,
            seed=0,
        )
        play(policy, 15, lambda z: -((z[0] - c @ z[1:]) ** 2))
        assert policy.recommend().x == pytest.approx([0.55], abs=0.05)
        assert all(query.x[1:].sum() == 1.0 and set(query.x[1:]) == {0.0, 1.0} for query in policy.queries)

    def test_a_parameter_in_a_box(self):
        """f(x, θ) = −(x − θ)², θ between 0.4 and 1: the middle, 0.7."""
        policy = StableOpt(
            Box.unit(1),
            perturbation=UnknownParameters(box=[(0.4, 1.0)]),
            gp=GP(SE([0.5, 0.5]), noise=1e-6),
            width=WIDTH,
            seed=0,
        )
        play(policy, 15, lambda z: -((z[0] - z[1]) ** 2))
        assert policy.recommend().x == pytest.approx([0.7], abs=0.05)

    def test_initial_points_are_measured_with_values_there_are(self):
        policy = StableOpt(Box.unit(1), perturbation=UnknownParameters([2.0, 5.0]), seed=0)
        assert {query.x[1] for query in policy.ask(3)} == {2.0, 5.0}
        with pytest.raises(ValueError, match="one of 2 values"):
            policy.tell([0.5, 3.0], 1.0)


class _Bound:
    """Two standard deviations above the mean."""

    def __init__(self, posterior):
        self.posterior = posterior

    def __call__(self, E):
        mean, std = self.posterior.predict(E)
        return mean + 2.0 * std

    def gradient(self, E):
        mean, std, by_mean, by_std = self.posterior.gradient(E)
        return mean + 2.0 * std, by_mean + 2.0 * by_std


class TestRobustReport:
    def test_it_measures_as_the_policy_does(self):
        for make in (GPUCB, ExpectedImprovement):
            expected = play(make(Candidates(GRID), seed=3), 10)
            assert play(RobustReport(make(Candidates(GRID), seed=3), Ball(0.15)), 10) == expected

    def test_it_reports_by_the_worst_case(self):
        policy = RobustReport(GPUCB(Candidates(GRID), gp=BELIEF, width=WIDTH, seed=1), Ball(0.15))
        play(policy, 40)
        mean, std = policy.posterior().predict(GRID)
        worst = Ball(0.15).on(policy.domain).minimum(mean - 2.0 * std)
        measured = [run.index for run in policy.history]
        assert policy.recommend().lower == pytest.approx(max(worst[measured]), abs=1e-6)
        assert policy.recommend().index in measured

    def test_a_policy_without_a_belief_gets_one(self):
        policy = RobustReport(RandomSearch(Candidates(GRID), seed=1), Ball(0.15), gp=BELIEF, width=WIDTH)
        play(policy, 40)
        worst = Ball(0.15).on(policy.domain).minimum(hills(GRID))
        assert worst[policy.recommend().index] > worst.max() - 0.15
        twin = Policy.from_state(json.loads(json.dumps(policy.state())))
        assert twin.recommend() == policy.recommend()
        assert twin.ask() == policy.ask()

    def test_over_parameters_and_in_a_box(self):
        unknown = UnknownParameters([0.0, 1.0])
        pairs = RobustReport(GPUCB(unknown.join(Candidates(AXIS)), gp=BELIEF, seed=0), unknown)
        play(pairs, 20, lambda z: -((z[0] - z[1]) ** 2))
        assert pairs.recommend().x.shape == (1,)
        box = RobustReport(GPUCB(unknown.join(Box.unit(1)), gp=BELIEF, seed=0), unknown)
        play(box, 12, lambda z: -((z[0] - z[1]) ** 2))
        assert box.recommend().x.shape == (1,)
        for policy in (pairs, box):
            twin = Policy.from_state(json.loads(json.dumps(policy.state())))
            assert twin.recommend() == policy.recommend()
            assert twin.ask() == policy.ask()

    def test_refusals(self):
        used = GPUCB(Candidates(AXIS), seed=0)
        used.ask()
        with pytest.raises(ValueError, match="fresh policy"):
            RobustReport(used, Ball(0.1))
        with pytest.raises(TypeError, match="policy must be"):
            RobustReport(Candidates(AXIS), Ball(0.1))
        with pytest.raises(TypeError, match="perturbation must be"):
            RobustReport(GPUCB(Candidates(AXIS)), 0.1)
        with pytest.raises(NotSupported, match="needs groups of named choices, not a Space"):
            RobustReport(GPUCB(Space(x=Float(0.0, 1.0))), Groups(["a"]))

    def test_reports_end_with_the_run(self):
        policy = RobustReport(BOBOS(Box.unit(1), epochs=4, seed=0), Ball(0.1))
        query = policy.ask()
        with pytest.raises(ValueError, match="beyond the last epoch, 4"):
            policy.report(query, 5, 0.5)
        assert not policy.reports()


class TestState:
    @pytest.mark.parametrize(
        "perturbation",
        [
            Ball(0.2, np.inf),
            WeightedBox([0.1]),
            UnknownParameters([0.0, 1.0]),
            AroundEstimate(0.0, 0.5, [0.0, 0.5, 1.0]),
            Groups(["a"] * 7 + ["b"] * 8),
        ],
        ids=repr,
    )
    def test_resumed_with_any_perturbation(self, perturbation):
        policy = StableOpt(Candidates(AXIS), perturbation=perturbation, gp=GP(Matern(2.5, 0.3), noise=1e-4), seed=0)
        play(policy, 5, lambda x: x[0] * (1.0 - x[0]))
        twin = Policy.from_state(json.loads(json.dumps(policy.state())))
        assert twin.perturbation == perturbation
        assert twin.certificate == policy.certificate
        assert twin.recommend() == policy.recommend()
        assert twin.ask() == policy.ask()

    def test_a_distance_is_passed_again(self):
        def apart(X, Z):
            return np.abs(X - Z.T)

        policy = StableOpt(Candidates(AXIS), perturbation=Ball(0.1, apart), gp=GP(SE(0.2)), seed=0)
        play(policy, 3, lambda x: x[0])
        with pytest.raises(ValueError, match="pass it again: perturbation="):
            Policy.from_state(policy.state())
        twin = Policy.from_state(policy.state(), perturbation=Ball(0.1, apart))
        assert twin.ask() == policy.ask()
        with pytest.raises(ValueError, match="differs"):
            Policy.from_state(policy.state(), perturbation=Ball(0.2, apart))

    def test_many_candidates_inside_a_wrapped_policy_are_passed_again(self, tmp_path):
        domain = Candidates(np.linspace(0.0, 1.0, 10_001))
        policy = RobustReport(GPUCB(domain, gp=GP(SE(0.2)), seed=0), Ball(0.1))
        play(policy, 2, lambda x: x[0])
        policy.save(tmp_path / "run.json")
        with pytest.raises(ValueError, match="pass"):
            load(tmp_path / "run.json")
        twin = load(tmp_path / "run.json", policy=GPUCB(domain, gp=GP(SE(0.2)), seed=0))
        assert twin.ask() == policy.ask()


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"perturbation": 0.5}, TypeError, "perturbation must be one"),
        ({"perturbation": Ball(0.1), "report": "best"}, ValueError, "report must be 'current'"),
        ({"perturbation": Ball(0.1), "accuracy": 0.0}, ValueError, "accuracy must be positive and finite"),
        ({"perturbation": Ball(0.1), "width": 2.0}, TypeError, "width must be callable"),
        ({"perturbation": Groups(["a"])}, ValueError, "1 labels for 15 candidates"),
        ({"perturbation": WeightedBox([0.1, 0.1])}, ValueError, "2 radii"),
    ],
)
def test_bad_options(options, error, words):
    with pytest.raises(error, match=words):
        StableOpt(Candidates(AXIS), **options)
