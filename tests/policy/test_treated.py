"""Badly scaled and wild values: the answer of an automatic belief stays sane, and outliers are told."""

import json
import warnings

import numpy as np
import pytest

from surefoot import GP, GPUCB, Box, ExpectedImprovement, Policy, ThompsonSampling, optimize

Array = np.ndarray
BOX = Box([(0.0, 1.0), (0.0, 1.0)])
TOP = np.array([0.3, 0.6])
RULES = [ExpectedImprovement, GPUCB]


def smooth(x: Array) -> float:
    """A hill of height 1 at TOP, 0 to −1 at the edges."""
    return float(1.0 - 4.0 * ((x - TOP) ** 2).sum())


def _told(rule: type[Policy], y: Array, direction: str = "maximize", **options: object) -> tuple[Policy, Array]:
    policy = rule(BOX, seed=0, direction=direction, **options)
    X = BOX.design(len(y), np.random.default_rng(3))
    for x, value in zip(X, y, strict=True):
        policy.tell(x, value)
    return policy, X


def _design(n: int) -> Array:
    return np.array([smooth(x) for x in BOX.design(n, np.random.default_rng(3))])


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("direction", ["maximize", "minimize"])
@pytest.mark.parametrize("wild", [1e6, -1e6])
def test_one_wild_value_among_ten_does_not_decide(rule: type[Policy], direction: str, wild: float) -> None:
    """Sane: the nine decide. The same point is recommended as without it, for a value in their range, within bounds no
    wider than five times that range; one warning names the trial; the next ask and the answer after eight are good."""
    sign = 1.0 if direction == "maximize" else -1.0
    clean = sign * _design(10)
    worst = int(np.argmin(sign * clean))
    y = clean.copy()
    y[worst] = wild
    policy, X = _told(rule, y, direction)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        answer = policy.recommend()
        for _ in range(8):
            query = policy.ask()
            policy.tell(query, sign * smooth(query.x))
        later = policy.recommend()
    assert [f"measurement {worst + 1} left out" in str(w.message) for w in said] == [True]
    assert np.array_equal(answer.x, X[int(np.argmax(sign * clean))])
    assert clean.min() - 0.2 <= answer.mean <= clean.max() + 0.2
    assert answer.upper - answer.lower < 5.0 * np.ptp(clean)
    assert "left out as an outlier" in answer.rule
    assert smooth(later.x) > 0.9


def test_which_measurements_are_left_out_is_told_in_the_users_units() -> None:
    y = -_design(12)
    y[4] = 1e6
    policy, X = _told(GPUCB, y, "minimize")
    (left_out,) = policy.outliers
    assert left_out.value == 1e6
    assert np.array_equal(left_out.x, X[4])
    assert np.allclose(policy.data()[1], y)  # nothing of what was told is changed


def test_a_second_measurement_like_it_is_believed() -> None:
    y = _design(12)
    y[4] = 1e3
    policy, X = _told(ExpectedImprovement, y)
    assert len(policy.outliers) == 1
    policy.tell(X[4], 1e3 + 0.5)
    assert policy.outliers == []
    assert np.array_equal(policy.recommend().x, X[4])


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("real", [True, False])
def test_an_outlier_that_would_be_the_best_is_measured_once_more(rule: type[Policy], real: bool) -> None:
    y = _design(12)
    y[0] = 50.0
    policy, X = _told(rule, y)
    with pytest.warns(UserWarning, match="measurement 1 left out as an outlier"):
        first, second = policy.ask(2)
    assert np.array_equal(first.x, X[0])
    assert not np.array_equal(second.x, X[0])
    policy.tell(first, 50.0 if real else smooth(X[0]))
    assert np.array_equal(policy.recommend().x, X[0]) == real
    assert not np.array_equal(policy.ask().x, X[0])


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("size", [5.0, -5.0])
def test_a_tenth_of_outliers_is_survived(rule: type[Policy], size: float) -> None:
    """Sane: after 40 measurements with noise 0.05, of which each is wrong by ±5 with probability 0.1, the recommended
    point lies on the upper fifth of the hill, and what is expected there is no more than 1.5 (its height is 1)."""
    rng = np.random.default_rng(8)

    def measured(x: Array) -> float:
        return smooth(x) + 0.05 * float(rng.standard_normal()) + (size if rng.random() < 0.1 else 0.0)

    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        result = optimize(measured, BOX, 40, policy=rule, seed=1)
    assert smooth(result.x) > 0.6
    assert result.value < 1.5
    assert len(said) <= 10


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("rule", [*RULES, ThompsonSampling])
@pytest.mark.parametrize("value", [0.0, 7.0, -1e12, 1e-12])
def test_constant_values_are_answered_with_that_constant(rule: type[Policy], value: float) -> None:
    """Sane: no warning, all points differ, the constant is expected and lies within the bounds."""
    result = optimize(lambda _: value, BOX, 12, policy=rule, seed=0)
    answer = result.recommendation
    points = np.array([o.x for o in result.policy.history])
    assert len(np.unique(points, axis=0)) == 12
    assert result.value == pytest.approx(value, rel=1e-9, abs=1e-12)
    assert answer.lower - 1e-9 * abs(value) <= value <= answer.upper + 1e-9 * abs(value)


def deep(x: Array) -> float:
    """From 1e6 at the corner to 1e-6 at TOP."""
    return float(10.0 ** (12.0 * min(1.0, np.linalg.norm(x - TOP) / 0.9) - 6.0))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("rule", RULES)
def test_twelve_orders_of_magnitude_are_climbed_down(rule: type[Policy]) -> None:
    """Sane: no warning, no outlier, at least six of the twelve orders gained in 40, finite bounds in order."""
    result = optimize(deep, BOX, 40, policy=rule, direction="minimize", seed=0)
    assert deep(result.x) < 1.0
    answer = result.recommendation
    assert -1e6 < answer.lower <= answer.mean <= answer.upper < 1e6
    assert result.policy.outliers == []


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("rule", RULES)
def test_a_step_is_found_and_its_edge_is_no_outlier(rule: type[Policy]) -> None:
    """Sane: no warning, the recommended point is on the higher level, and the value expected there is that level's."""
    result = optimize(lambda x: 1.0 if x[0] + 0.3 * x[1] > 0.8 else 0.0, BOX, 30, policy=rule, seed=0)
    assert result.x[0] + 0.3 * result.x[1] > 0.8
    assert result.value == pytest.approx(1.0, abs=0.2)
    assert result.policy.outliers == []


@pytest.mark.parametrize("rule", [*RULES, ThompsonSampling])
def test_a_treated_study_is_resumed_bit_for_bit(rule: type[Policy]) -> None:
    policy = rule(BOX, seed=2, direction="minimize")
    for _ in range(14):
        query = policy.ask()
        policy.tell(query, deep(query.x))
    other = type(policy).from_state(json.loads(json.dumps({**policy.state(), "cache": {}})))
    assert not other.surrogate.rows.now.plain
    assert other.recommend() == policy.recommend()
    assert np.array_equal(other.ask().x, policy.ask().x)


def test_a_given_belief_the_first_version_and_a_margin_are_not_treated() -> None:
    y = _design(12)
    y[4] = 1e6
    for options in ({"gp": GP(noise=1e-4)}, {"automatic": 1}, {"margin": 0.1}):
        policy, X = _told(ExpectedImprovement, y, **options)
        assert policy.outliers == []
        assert np.array_equal(policy.recommend().x, X[4])


def test_the_belief_is_told_in_the_units_of_the_values() -> None:
    X = BOX.design(30, np.random.default_rng(0))
    policy = GPUCB(BOX, direction="minimize", seed=0)
    for x in X:
        policy.tell(x, deep(x))
    belief = policy.posterior()  # about −f
    assert not policy.surrogate.rows.now.warp.straight
    assert np.allclose(belief.y, [-deep(x) for x in X], rtol=1e-6, atol=1e-9)
    assert np.allclose(belief.mean(X), belief.y, rtol=0.5, atol=1.0)
    Z = BOX.sample(5, np.random.default_rng(1))
    low, middle, high = (belief.quantile(Z, level) for level in (0.05, 0.5, 0.95))
    assert ((low < middle) & (middle < high)).all()
    assert np.array_equal(middle, belief.mean(Z))
    draws = belief.sample(Z, 4000, np.random.default_rng(2))
    assert (np.abs((draws < low).mean(axis=0) - 0.05) < 0.02).all()
    mean, std, dmean, dstd = belief.gradient(Z)
    assert np.allclose((mean, std), belief.predict(Z))
    assert np.allclose(belief.cov(Z).diagonal(), std**2)
    for axis in range(2):
        step = 1e-6 * np.eye(2)[axis]
        after, before = belief.predict(Z + step), belief.predict(Z - step)
        assert np.allclose(dmean[:, axis], (after[0] - before[0]) / 2e-6, rtol=1e-3, atol=1e-3 * np.abs(dmean).max())
        assert np.allclose(dstd[:, axis], (after[1] - before[1]) / 2e-6, rtol=1e-3, atol=1e-3 * np.abs(dstd).max())
    copy = belief.copy()
    copy.append(Z[0], -1.0)
    assert (copy.n, belief.n) == (31, 30)
