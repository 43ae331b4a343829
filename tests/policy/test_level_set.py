"""Level sets: the bookkeeping, the rules against their formulas, and the answers."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import surefoot
from surefoot import GP, GPLSE, SE, Box, Candidates, LevelSet, Policy, RandomLevelSet, Straddle, VarianceSampling
from surefoot.errors import NoData, NotSupported
from surefoot.policy.levels.sets import LevelSets, Memory

GRID = Candidates(np.linspace(0.0, 1.0, 80))
PRIOR = GP(SE(0.15), noise=1e-4)
RULES = [GPLSE, Straddle, VarianceSampling, RandomLevelSet]


def draw(seed: int) -> np.ndarray:
    return PRIOR.condition().sample(GRID.points, 1, np.random.default_rng(seed))[0]


def follow(policy: Policy, f: np.ndarray, steps: int) -> list[int]:
    asked = []
    for _ in range(steps):
        query = policy.ask()
        policy.tell(query, float(f[query.index]))
        asked.append(query.index)
    return asked


intervals = st.lists(st.tuples(st.floats(-3, 3), st.floats(0, 2)), min_size=1, max_size=30)


@given(intervals, st.floats(-2, 2), st.floats(0, 1), st.booleans())
def test_every_point_is_in_exactly_one_set(pairs, threshold, accuracy, monotone):
    lower = np.array([a for a, _ in pairs])
    upper = lower + np.array([b for _, b in pairs])
    sets = LevelSets.over(len(pairs), threshold=threshold, accuracy=accuracy, monotone=monotone)
    for low, high in ((lower, upper), (lower - 1.0, upper + 0.5)):
        before, sets = sets, sets.updated(low, high)
        assert (sets.above.astype(int) + sets.below + sets.undecided == 1).all()
        if monotone:
            assert not (before.above & ~sets.above).any()
            assert not (before.below & ~sets.below).any()
    plain = LevelSets.over(len(pairs), threshold=threshold, accuracy=accuracy).updated(lower, upper)
    assert np.array_equal(plain.above, lower + accuracy > threshold)
    assert np.array_equal(plain.below, (upper - accuracy < threshold) & ~plain.above)


@settings(deadline=None)
@given(intervals, st.floats(0.05, 0.95), st.randoms(use_true_random=False))
def test_an_implicit_threshold_misclassifies_nothing_that_the_bounds_hold(pairs, fraction, random):
    lower = np.array([a for a, _ in pairs])
    upper = lower + np.array([b for _, b in pairs])
    f = np.array([random.uniform(a, b) for a, b in zip(lower, upper, strict=True)])
    sets = LevelSets.over(len(pairs), fraction=fraction).updated(lower, upper)
    threshold = fraction * f.max()
    assert (f[sets.above] > threshold - 1e-12).all()
    assert (f[sets.below] < threshold + 1e-12).all()


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=40))
def test_memory_keeps_masks_as_runs(rows):
    above = np.array([a for a, _ in rows])
    below = np.array([b and not a for a, b in rows])
    half = np.arange(len(rows)) % 2 == 0
    memory = Memory.of(len(rows))
    for a, b in ((above & half, below & half), (above, below)):
        note = json.loads(json.dumps(memory.note(a, b)))
        memory = memory.after(note)
        assert np.array_equal(memory.above, a)
        assert np.array_equal(memory.below, b)
    assert memory.note(above, below) == {}


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "either threshold or fraction"),
        ({"threshold": math.inf}, "threshold must be finite"),
        ({"threshold": math.nan}, "threshold must be finite"),
        ({"threshold": "high"}, "threshold must be finite"),
        ({"fraction": 0.0}, "fraction must lie"),
        ({"threshold": 1.0, "accuracy": -1.0}, "accuracy must be"),
    ],
)
def test_bad_options(rule, options, message):
    with pytest.raises(ValueError, match=message):
        rule(GRID, **options)


def test_more_bad_options():
    with pytest.raises(TypeError, match="width must be callable"):
        GPLSE(GRID, threshold=1.0, width=3.0)
    with pytest.raises(ValueError, match="not refitted"):
        GPLSE(GRID, threshold=1.0, intersect=True)
    with pytest.raises(ValueError, match="reach must be"):
        Straddle(GRID, threshold=1.0, reach=0.0)


# -- the rules ---------------------------------------------------------------------------------------------------------


def test_gp_lse_measures_the_most_ambiguous_undecided_point():
    policy = GPLSE(GRID, threshold=0.3, gp=PRIOR, seed=0)
    follow(policy, draw(0), 7)
    mean, std = policy.posterior().predict(GRID.points)
    ambiguity = np.minimum(mean + 3 * std - 0.3, 0.3 - (mean - 3 * std))
    undecided = policy.recommend().undecided
    assert 0 < undecided.sum() < GRID.size
    ambiguity[~undecided] = -np.inf
    assert policy.ask().index in np.flatnonzero(ambiguity >= ambiguity.max() - 1e-9)


def test_straddle_and_variance_follow_their_formulas():
    f = draw(1)
    for rule, score in (
        (Straddle, lambda mean, std: 1.96 * std - np.abs(mean - 0.3)),
        (VarianceSampling, lambda mean, std: std),
    ):
        policy = rule(GRID, threshold=0.3, gp=PRIOR, seed=0)
        follow(policy, f, 6)
        values = score(*policy.posterior().predict(GRID.points))
        assert policy.ask().index in np.flatnonzero(values >= values.max() - 1e-7)


def test_with_an_implicit_threshold_gp_lse_measures_the_widest_interval_that_matters():
    policy = GPLSE(GRID, fraction=0.6, gp=PRIOR, seed=0)
    follow(policy, draw(2), 8)
    mean, std = policy.posterior().predict(GRID.points)
    matters = policy.recommend().undecided | (mean + 3 * std >= (mean - 3 * std).max())
    width = np.where(matters, std, -np.inf)
    assert policy.ask().index in np.flatnonzero(width >= width.max() - 1e-7)


@pytest.mark.parametrize("domain", [GRID, Box([(0.0, 1.0)])])
def test_intersected_intervals_are_those_of_all_beliefs_so_far(domain):
    f = draw(3)
    policy = GPLSE(domain, threshold=0.2, gp=PRIOR, intersect=True, points=50, seed=0)
    points = policy.ground
    lower, upper = np.full(len(points), -np.inf), np.full(len(points), np.inf)
    for step in range(6):
        mean, std = policy.posterior().predict(points)
        lower, upper = np.maximum(lower, mean - 3 * std), np.minimum(upper, mean + 3 * std)
        query = policy.ask()
        np.testing.assert_allclose(policy.classes.bounds(), (lower, upper), atol=1e-7)
        policy.tell(query, float(np.interp(query.x[0], GRID.points[:, 0], f)) + 0.1 * step)
    twin = Policy.from_state(policy.state())  # has to meet all of them again
    assert twin.ask() == policy.ask()
    assert np.array_equal(twin.classes.bounds(), policy.classes.bounds())


def test_the_rules_rank_as_they_should():
    """After ten measurements the rules that look for the threshold have decided more than those that do not."""
    decided = {}
    for rule in RULES:
        counts = []
        for seed in range(6):
            policy = rule(GRID, threshold=0.5, gp=PRIOR, seed=seed)
            follow(policy, draw(10 + seed), 10)
            counts.append(policy.undecided.sum())
        decided[rule] = np.mean(counts)
    assert decided[GPLSE] < decided[RandomLevelSet] - 5
    assert decided[Straddle] < decided[RandomLevelSet] - 5
    assert decided[GPLSE] <= decided[VarianceSampling] + 1


# -- answers -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", RULES)
def test_nothing_is_misclassified_and_everything_is_decided_at_last(rule):
    f = draw(4)
    policy = rule(GRID, threshold=0.1, gp=PRIOR, seed=0)
    with pytest.raises(NoData):
        policy.recommend()
    follow(policy, f, 30)
    answer = policy.recommend()
    assert isinstance(answer, LevelSet)
    assert (f[answer.above] > 0.1).all()
    assert (f[answer.below] < 0.1).all()
    assert np.array_equal(answer.points, GRID.points)
    assert answer.predicted.sum() == pytest.approx((f > 0.1).sum(), abs=2)
    if rule in (GPLSE, Straddle):
        assert policy.undecided.sum() <= 2
    twin = Policy.from_state(json.loads(json.dumps(policy.state())))
    assert twin.recommend() == answer


def test_accuracy_decides_sooner():
    f = draw(5)
    steps = []
    for accuracy in (0.0, 0.3):
        policy = GPLSE(GRID, threshold=0.0, gp=PRIOR, accuracy=accuracy, seed=0)
        while not policy.finished:
            follow(policy, f, 1)
            assert len(policy.history) < 80
        steps.append(len(policy.history))
        answer = policy.recommend()
        assert (f[answer.above] > -accuracy).all()
        assert (f[answer.below] < accuracy).all()
    assert steps[1] < steps[0]


@pytest.mark.parametrize("rule", RULES)
def test_a_box_is_classified_at_the_points_that_stand_for_it(rule):
    policy = rule(Box([(0.0, 2.0)]), threshold=0.5, gp=GP(SE(0.4), noise=1e-6), points=64, seed=0)
    for _ in range(14):
        query = policy.ask()
        policy.tell(query, float(np.sin(2.0 * query.x[0])))
    answer = policy.recommend()
    truth = np.sin(2.0 * answer.points[:, 0]) > 0.5
    assert answer.points.shape == (64, 1)
    assert np.mean(answer.predicted == truth) > 0.95


def test_a_level_set_turns_around():
    mask = np.array([True, False, False])
    none = np.zeros(3, dtype=bool)
    answer = LevelSet(mask, ~mask, none, "bounds", threshold=2.0, predicted=mask)
    turned = answer.negated()
    assert np.array_equal(turned.above, ~mask)
    assert np.array_equal(turned.predicted, ~mask)
    assert turned.threshold == -2.0
    assert turned.negated() == answer
    assert turned != answer
    assert len({answer, answer.negated().negated()}) == 1


def test_optimize_hands_the_level_set_on():
    f = draw(6)
    for direction in ("maximize", "minimize"):
        sign = 1.0 if direction == "maximize" else -1.0
        result = surefoot.optimize(
            lambda x, s=sign: s * float(f[GRID.index_of(x)]),
            GRID,
            20,
            policy=GPLSE,
            threshold=sign * 0.3,
            gp=PRIOR,
            direction=direction,
            seed=0,
        )
        assert result.recommendation.threshold == sign * 0.3
        known = result.recommendation.above if sign > 0 else result.recommendation.below
        assert (f[known] > 0.3).all()
        with pytest.raises(NotSupported, match="level set"):
            result.x  # noqa: B018


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 1000), st.floats(-1.0, 1.0))
def test_theorem_no_error_while_the_bounds_hold(seed, threshold):
    f = draw(seed)
    policy = GPLSE(GRID, threshold=threshold, gp=PRIOR, seed=seed)
    held = True
    for _ in range(8):
        mean, std = policy.posterior().predict(GRID.points)
        held &= bool((np.abs(f - mean) <= 3.0 * std + 1e-9).all())
        follow(policy, f, 1)
        answer = policy.recommend()
        mean, std = policy.posterior().predict(GRID.points)
        held &= bool((np.abs(f - mean) <= 3.0 * std + 1e-9).all())
        if held:
            assert (f[answer.above] > threshold - 1e-9).all()
            assert (f[answer.below] < threshold + 1e-9).all()


def test_an_answer_cannot_change_the_points_that_are_followed():
    policy = GPLSE(Box.unit(1), threshold=0.5, points=16, gp=PRIOR, seed=0)
    policy.tell([0.5], 1.0)
    before, answer = policy.ground.copy(), policy.recommend()
    with pytest.raises(ValueError, match="read-only"):
        answer.points[0] = 0.0
    assert np.array_equal(policy.ground, before)
