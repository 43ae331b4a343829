"""StableOpt in a space of named parameters: regions in the user's units, exact where they can be, refused where not."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import approx_fprime

from surefoot import (
    GP,
    GPUCB,
    SE,
    AroundEstimate,
    Ball,
    Box,
    Candidates,
    Choice,
    Float,
    Groups,
    Int,
    MaxiMinGPUCB,
    NotSupported,
    RobustReport,
    Space,
    StableOpt,
    UnknownParameters,
    WeightedBox,
    load,
    widths,
)
from surefoot.domain.mixed import Nearby
from surefoot.domain.perturbation import perturbation_from_dict
from surefoot.domain.sets import gauge
from surefoot.policy.acquisition import BeliefScore
from surefoot.policy.robust.worst_case import SoftMinimum, lowest, maximin
from surefoot.policy.ucb.gp_ucb import UpperBound

MIXED = Space(rate=Float(1e-3, 1.0, log=True), width=Float(-2.0, 3.0), depth=Int(1, 12), kind=Choice(["a", "b", "c"]))
WHOLE = Space(n=Int(1, 60, log=True), m=Int(-4, 5), kind=Choice(["a", "b"]))


def belief(space, count=14, seed=0, lengthscale=0.35):
    """A posterior that knows a rough function at some points of the space."""
    rng = np.random.default_rng(seed)
    E = space.encode(space.sample(count, rng))
    return GP(SE(lengthscale), noise=1e-4).condition(E, rng.standard_normal(count))


def distances(X, Z, reach, norm):
    """Of points Z from X, in units of the reach: what the user would compute."""
    return gauge(Z - X, reach, norm)


REACHES = [0.0, 0.9, 1.0, 1.5, 2.0, 3.7, 5.0]
norms = st.sampled_from([1.0, 2.0, 3.0, np.inf])


class TestRegions:
    @settings(max_examples=60, deadline=None)
    @given(
        st.integers(0, 10**6),
        norms,
        st.tuples(
            st.just(0.0) | st.floats(1e-5, 0.3),
            st.just(0.0) | st.floats(1e-5, 2.0),
            st.sampled_from([0.0, 0.7, 1.0, 2.5, 4.0]),
        ),
    )
    def test_what_is_reached_is_in_reach_and_in_the_space(self, seed, norm, radii):
        reach = np.array([*radii, 0.0])
        region, rng = Nearby(MIXED, reach, norm), np.random.default_rng(seed)
        X, far = MIXED.sample(3, rng), MIXED.sample(5, rng)
        E = MIXED.encode(X)
        hints = np.broadcast_to(MIXED.encode(far), (3, 5, E.shape[1]))
        for Z in (region.spread(E, 24), region.project(E, hints)):
            own = MIXED.decode(Z.reshape(-1, E.shape[1]))
            assert MIXED.contains(own).all()
            moved = own - np.repeat(X, Z.shape[1], axis=0)
            moved[np.abs(moved) < 1e-12] = 0.0  # short numbers: rounding is no move
            assert (gauge(moved, reach, norm) <= 1.0 + 1e-6).all()

    @settings(max_examples=40, deadline=None)
    @given(st.integers(0, 10**6), norms, st.sampled_from(REACHES), st.sampled_from(REACHES))
    def test_whole_numbers_are_all_reached(self, seed, norm, first, second):
        reach = np.array([first, second, 0.0])
        everything = WHOLE.enumerate()
        region, x = Nearby(WHOLE, reach, norm), WHOLE.sample(1, np.random.default_rng(seed))
        assert region.finite
        found = {tuple(z) for z in WHOLE.decode(region.spread(WHOLE.encode(x), 8)[0]).tolist()}
        inside = distances(x, everything, reach, norm) <= 1.0 + 1e-9
        assert found == {tuple(z) for z in everything[inside].tolist()}

    def test_units_are_the_users_on_a_logarithmic_axis(self):
        space = Space(rate=Float(0.01, 1.0, log=True))
        region = WeightedBox({"rate": 0.05}).on(space)
        for center, low, high in ((0.02, 0.01, 0.07), (0.5, 0.45, 0.55), (0.98, 0.93, 1.0)):
            Z = space.decode(region.spread(space.encode([[center]]), 64)[0])
            assert Z.min() == pytest.approx(low)
            assert Z.max() == pytest.approx(high)

    def test_a_wide_integer_axis_is_searched(self):
        space = Space(n=Int(0, 100_000), k=Int(0, 3))
        region = WeightedBox({"n": 5_000, "k": 1}).on(space)
        assert not region.finite
        assert region.layers == 3

        class Dip:
            def __call__(self, E):
                return self.gradient(E)[0]

            def gradient(self, E):
                gap = E[:, :1] - 0.4321
                return (gap[:, 0] ** 2) + 0.1 * E[:, 1], np.hstack([2 * gap, np.full_like(gap, 0.1)])

        values, Z = lowest(Dip(), region, space.encode([[45_000.0, 2.0]]), count=64, keep=8, iterations=40)
        [[n, k]] = space.decode(Z)
        assert (abs(n - 43_210) < 20, k) == (True, 1.0)
        assert values[0] == pytest.approx(0.1 / 3, abs=1e-5)

    @pytest.mark.parametrize("norm", [2.0, np.inf])
    def test_the_gradient_of_a_soft_minimum(self, norm):
        region = Nearby(MIXED, np.array([0.02, 0.3, 1.0, 0.0]), norm)
        soft = SoftMinimum(BeliefScore(belief(MIXED), UpperBound(1.5)), region, softness=0.05, count=8)
        e = MIXED.encode([[0.05, 0.4, 6.0, 1.0]])[0]
        _, gradient = soft.gradient(e[None])
        numbers = [0, 1, 2]  # a choice is not climbed

        def along(t):
            moved = e.copy()
            moved[numbers] = t
            return float(soft(moved[None])[0])

        np.testing.assert_allclose(gradient[0, numbers], approx_fprime(e[numbers], along, 1e-7), atol=1e-4)


class TestWorstCases:
    @pytest.mark.parametrize("norm", [1.0, 2.0, np.inf])
    def test_a_finite_space_is_solved_exactly(self, norm):
        reach = np.array([2.0, 1.0, 0.0])
        score = BeliefScore(belief(WHOLE), UpperBound(1.0))
        points = WHOLE.enumerate()
        values = score(WHOLE.encode(points))
        apart = distances(points[:, None], points[None], reach, norm)
        robust = np.where(apart <= 1.0 + 1e-9, values, np.inf).min(axis=1)
        x, value, z = maximin(score, Nearby(WHOLE, reach, norm), rng=np.random.default_rng(0))
        assert value == pytest.approx(robust.max(), abs=1e-12)
        assert robust[Candidates(points).index_of(x)] == pytest.approx(value)
        assert score(z[None])[0] == pytest.approx(value)

    @pytest.mark.parametrize("seed", range(3))
    @pytest.mark.parametrize("norm", [2.0, np.inf])
    def test_a_mixed_space_against_a_fine_grid(self, seed, norm):
        space = Space(rate=Float(0.01, 1.0, log=True), depth=Int(1, 6), kind=Choice(["a", "b"]))
        reach = np.array([0.06, 1.0, 0.0])
        score = BeliefScore(belief(space, seed=seed), UpperBound(1.0))
        rates = np.linspace(0.01, 1.0, 991)
        grid = np.stack(np.meshgrid(rates, np.arange(1.0, 7.0), [0.0, 1.0], indexing="ij"), axis=-1)
        points = grid.reshape(-1, 3)
        values = score(space.encode(points))
        robust = sets_of(points, reach, norm).minimum(values)
        _, value, _ = maximin(score, Nearby(space, reach, norm), rng=np.random.default_rng(seed))
        assert abs(value - robust.max()) < 0.01 * np.ptp(values)
        some = np.random.default_rng(seed).choice(len(points), 40, replace=False)
        inner, _ = lowest(score, Nearby(space, reach, norm), space.encode(points[some]), count=64)
        np.testing.assert_allclose(inner, robust[some], atol=0.01 * np.ptp(values))


def sets_of(points, reach, norm):
    """The sets of a fine grid: what candidates reach, which is tested against brute force elsewhere."""
    from surefoot.domain.neighbors import within

    return within(points, reach, norm)


def robust_ground(params):
    """A high ridge at depth 2 that is one step wide, a lower one of depths 6 to 8; the rate has to fit."""
    depth, rate = params["depth"], params["rate"]
    height = 2.0 if depth == 2 else 1.2 if 6 <= depth <= 8 else 0.0
    return height - 2.0 * np.log10(rate / 0.3) ** 2 + 0.6 * (params["kind"] == "b")


class TestPolicy:
    space = Space(rate=Float(0.01, 1.0, log=True), depth=Int(1, 10), kind=Choice(["a", "b"]))

    def run(self, policy, ground, budget):
        for _ in range(budget):
            query = policy.ask()
            policy.tell(query, ground(query.params))
        return policy.recommend()

    def test_it_finds_the_ridge_that_stays_good(self):
        options = {
            "gp": GP(SE([0.4, 0.12, 0.8, 0.8], variance=2.0), noise=1e-4),
            "initial": 8,
            "width": widths.Constant(2.0),
            "seed": 0,
        }
        robust = self.run(StableOpt(self.space, perturbation=WeightedBox({"depth": 1}), **options), robust_ground, 45)
        assert robust.params["depth"] == 7
        assert robust.params["kind"] == "b"
        assert abs(np.log10(robust.params["rate"] / 0.3)) < 0.1
        assert robust.lower <= 1.8 <= robust.upper + 0.05  # the true worst case
        plain = self.run(GPUCB(self.space, **options), robust_ground, 45)
        assert plain.params["depth"] == 2

    def test_a_choice_that_is_not_ones_own(self):
        """Whichever of A and B delivers, the speed must do; C would be best, and cannot be had."""
        space = Space(speed=Float(0.0, 1.0), supplier=Choice(["A", "B", "C"]))
        best = {"A": 0.2, "B": 0.6, "C": 0.9}

        def ground(params):
            return -((params["speed"] - best[params["supplier"]]) ** 2) - 0.3 * (params["supplier"] == "C")

        unknown = Groups({"supplier": {"ours": ["A", "B"]}})
        policy = StableOpt(space, perturbation=unknown, gp=GP(SE([0.4, 1.0, 1.0, 1.0]), noise=1e-5), initial=6, seed=1)
        found = self.run(policy, ground, 25)
        assert found.params["supplier"] in ("A", "B")
        assert found.params["speed"] == pytest.approx(0.4, abs=0.05)
        assert {q.params["supplier"] for q in policy.queries[6:]} <= {"A", "B", "C"}

    @pytest.mark.parametrize("nothing", [Ball(0.0), WeightedBox({"depth": 0.4}), Ball(0.5, over=["depth"])])
    def test_no_perturbation_is_gp_ucb_to_the_bit(self, nothing):
        policies = StableOpt(self.space, perturbation=nothing, seed=3), GPUCB(self.space, seed=3)
        for _ in range(7):
            one, other = (policy.ask() for policy in policies)
            np.testing.assert_array_equal(one.x, other.x)
            for policy, query in zip(policies, (one, other), strict=True):
                policy.tell(query, robust_ground(query.params))

    @pytest.mark.parametrize("kind", [StableOpt, MaxiMinGPUCB])
    def test_measurements_are_in_reach_of_the_choice_behind_them(self, kind):
        reach = np.array([0.1, 1.0, 0.0])
        policy = kind(self.space, perturbation=WeightedBox({"rate": 0.1, "depth": 1}), seed=2)
        for query in policy.ask(7):
            if "center" in query.note:
                assert distances(np.array(query.note["center"]), query.x, reach, np.inf) <= 1.0 + 1e-9

    def test_a_small_space_is_used_up_and_says_so(self):
        space = Space(n=Int(0, 2), kind=Choice(["a", "b"]))
        policy = StableOpt(space, perturbation=WeightedBox({"n": 1}), gp=GP(noise=1e-3), repeats=False, seed=0)
        asked = {tuple(policy.ask().x.tolist()) for _ in range(6)}
        assert len(asked) == 6
        from surefoot import Exhausted

        with pytest.raises(Exhausted):
            policy.ask()

    def test_the_certificate_and_the_state(self, tmp_path):
        policy = StableOpt(WHOLE, perturbation=Ball(1.0, over=["n", "m"]), gp=GP(SE(0.5), noise=1e-3), seed=0)
        for _ in range(6):
            query = policy.ask()
            policy.tell(query, float(np.cos(query.x[0] / 9.0)))
        assert 0.0 < policy.certificate < np.inf
        policy.save(tmp_path / "run.json")
        twin = load(tmp_path / "run.json")
        assert twin.recommend() == policy.recommend()
        assert twin.ask() == policy.ask()
        report = RobustReport(GPUCB(WHOLE, seed=0), Ball(1.0))
        self.run(report, lambda params: -abs(params["n"] - 9.0), 5)
        assert set(report.recommend().params) == {"n", "m", "kind"}


@pytest.mark.parametrize(
    "perturbation",
    [
        Ball(0.5, over=["a", "b"]),
        Ball(0.5, np.inf, over=["a"]),
        WeightedBox({"a": 0.5, "b": 0.0}),
        Groups({"kind": {"one": ["x", 3, None], "two": [True]}}),
    ],
)
def test_named_perturbations_survive_json(perturbation):
    twin = perturbation_from_dict(json.loads(json.dumps(perturbation.to_dict())))
    assert twin == perturbation
    assert repr(twin) == repr(perturbation)


def test_names_work_where_coordinates_have_none():
    values = np.array([3.0, 1.0, 2.0, 0.0])
    grid = Candidates([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    np.testing.assert_array_equal(WeightedBox({"x1": 1.0}).on(grid).minimum(values), [1.0, 1.0, 0.0, 0.0])
    np.testing.assert_array_equal(Ball(1.0, over=["x0"]).on(grid).minimum(values), [2.0, 0.0, 2.0, 0.0])
    assert Ball(0.2, over=["x1"]).on(Box.unit(2)).reach.tolist() == [0.0, 0.2]


@pytest.mark.parametrize(
    ("perturbation", "error", "words"),
    [
        (WeightedBox({"kind": 1.0}), NotSupported, "'kind' is a choice, which has no distances"),
        (WeightedBox([0.1, 0.1, 1.0, 1.0]), NotSupported, "'kind' is a choice"),
        (Ball(0.1, over=["rate", "kind"]), NotSupported, "'kind' is a choice"),
        (Ball(0.1, lambda X, Z: np.abs(X - Z.T)), NotSupported, "needs Candidates, not a Space"),
        (UnknownParameters([0.0, 1.0]), NotSupported, "one of the space's own: WeightedBox"),
        (AroundEstimate(0.5, 0.1, [0.4, 0.6]), NotSupported, "one of the space's own: WeightedBox"),
        (Groups(["a", "b"]), NotSupported, "needs groups of named choices"),
        (Groups({"depth": {"low": [1, 2]}}), NotSupported, "'depth' is a number"),
        (Groups({"kind": {"one": ["a", "z"]}}), ValueError, "kind = 'z' is not one of"),
        (Groups({"sort": {"one": ["a"]}}), ValueError, "unknown parameter 'sort'"),
        (WeightedBox({"dept": 1.0}), ValueError, "unknown parameter 'dept'"),
        (WeightedBox([1.0, 1.0]), ValueError, "2 radii for a domain of 4"),
    ],
)
def test_what_has_no_meaning_says_so(perturbation, error, words):
    with pytest.raises(error, match=words):
        StableOpt(MIXED, perturbation=perturbation)


def test_bad_names():
    for make, words in (
        (lambda: Ball(0.1, over="rate"), "one or more names"),
        (lambda: Ball(0.1, over=[]), "one or more names"),
        (lambda: Ball(0.1, over=["a", "a"]), "named twice"),
        (lambda: Ball(0.1, lambda X, Z: X, over=["a"]), "whole points"),
        (lambda: WeightedBox({}), "one or more names"),
        (lambda: WeightedBox({"a": -1.0}), "not negative"),
        (lambda: Groups({"kind": ["a", "b"]}), "needs groups by name"),
        (lambda: Groups({"kind": {"one": "ab"}}), "is a list of values"),
        (lambda: Groups({"kind": {"one": ["a"], "two": ["a"]}}), "in two groups"),
        (lambda: Groups({}), "one or more names"),
    ):
        with pytest.raises(ValueError, match=words):
            make()
    with pytest.raises(NotSupported, match="one label for each candidate, not a Box"):
        StableOpt(Box.unit(1), perturbation=Groups({"x0": {"a": [1]}}))
