"""The greedy family: reductions to each other, their guarantees, and what they refuse."""

import math
from functools import partial

import numpy as np
import pytest
from planted_sets import best, coverage, variance_reduction

from surefoot.select import (
    Coverage,
    Custom,
    FacilityLocation,
    RSquared,
    Selection,
    cover,
    greedy,
    iterative_factor,
    lazy_greedy,
    matching_pursuit,
    oblivious,
    random_greedy,
    stochastic_greedy,
    threshold_greedy,
)

SEEDS = range(12)
FAMILY = [
    greedy,
    lazy_greedy,
    stochastic_greedy,
    partial(stochastic_greedy, epsilon=0.6),
    threshold_greedy,
    random_greedy,
    oblivious,
]


def by_hand(objective, k):
    """Greedy selection straight from values."""
    chosen = []
    for _ in range(k):
        now = objective.value(chosen)
        gains = [objective.value([*chosen, v]) - now if v not in chosen else -1.0 for v in range(objective.n)]
        chosen.append(int(np.argmax(np.array(gains) >= max(gains) - 1e-9)))
    return tuple(chosen)


@pytest.mark.parametrize("seed", SEEDS)
def test_greedy_takes_the_largest_gain(seed):
    for objective in (coverage(seed), coverage(seed, weighted=True), variance_reduction(seed)):
        made = greedy(objective, 5)
        assert made.order == by_hand(objective, 5)
        assert made.value == pytest.approx(objective.value(made.order), rel=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("batch", [1, 3, 16])
def test_lazy_is_greedy_with_fewer_evaluations(seed, batch):
    objective, other = (coverage(seed, n=60, items=80, density=0.08) for _ in range(2))
    plain, lazy = greedy(objective, 12), lazy_greedy(other, 12, batch=batch)
    assert lazy.order == plain.order
    assert lazy.values == plain.values
    assert lazy.evaluations < plain.evaluations


def test_lazy_is_greedy_on_facilities_that_answer_for_themselves():
    objective = FacilityLocation(np.random.default_rng(0).normal(size=(80, 3)))
    plain = [0, *[None] * 5]
    state = objective.state()
    for step in range(6):
        plain[step] = int(np.argmax(np.where(state.chosen, -np.inf, state.gains())))
        state.add(plain[step])
    assert list(greedy(objective, 6).order) == list(lazy_greedy(objective, 6).order) == plain


def test_lazy_refuses_what_is_not_submodular():
    with pytest.raises(ValueError, match="Custom is not submodular"):
        lazy_greedy(variance_reduction(0), 2)
    with pytest.raises(ValueError, match="not known to be submodular"):
        lazy_greedy(Custom(len, n=4), 2)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_best_sample_is_everything(seed):
    objective = coverage(seed, n=12)
    assert stochastic_greedy(objective, 3, epsilon=math.exp(-4.0), rng=seed).order == greedy(objective, 3).order


@pytest.mark.parametrize("seed", SEEDS)
def test_guarantees_hold(seed):
    for objective in (coverage(seed), coverage(seed, weighted=True)):
        for k in (1, 2, 4):
            most = best(objective, k)
            made = greedy(objective, k)
            assert made.value >= (1.0 - math.exp(-1.0)) * most - 1e-9
            for steps in range(k, 7):  # more steps than the optimum has elements
                assert greedy(objective, steps).value >= (1.0 - math.exp(-steps / k)) * most - 1e-9
            # After k steps no element is worth more than the average one chosen.
            gains = objective.state(made.order).gains()
            assert gains.max() <= made.value / k + 1e-9
            assert oblivious(objective, k).value >= most / k - 1e-9


@pytest.mark.parametrize("epsilon", [0.05, 0.3, 0.7])
@pytest.mark.parametrize("seed", SEEDS)
def test_thresholds_keep_every_gain_near_the_largest(seed, epsilon):
    objective = coverage(seed, n=20, items=60, density=0.1, weighted=True)
    made = threshold_greedy(objective, 6, epsilon=epsilon)
    assert iterative_factor(objective, made.order) <= 1.0 / (1.0 - epsilon) + 1e-6
    assert iterative_factor(objective, greedy(objective, 6).order) == 1.0


def test_thresholds_pad_with_the_largest_singletons():
    objective = Coverage([[1, 1, 0], [1, 1, 0], [1, 0, 0], [0, 0, 1]])
    assert threshold_greedy(objective, 4).order == (0, 3, 1, 2)


def test_threshold_greedy_is_the_textbook_loop():
    for seed in SEEDS:
        for objective in (coverage(seed, n=15, items=30), variance_reduction(seed)):
            singles = objective.singletons()
            chosen, w = [], singles.max()
            while w >= 0.2 * singles.max() / objective.n and len(chosen) < 6:
                for v in range(objective.n):
                    if v not in chosen and len(chosen) < 6 and objective.state(chosen).gain(v) >= w - 1e-9:
                        chosen.append(v)
                w *= 0.8
            assert list(threshold_greedy(objective, 6, epsilon=0.2).order)[: len(chosen)] == chosen


def test_random_greedy_draws_from_the_k_largest_gains():
    objective = coverage(3, n=12)
    seen = set()
    for seed in range(40):
        made = random_greedy(objective, 3, rng=seed)
        state = objective.state()
        for element in made.order:
            gains = np.where(state.chosen, -1.0, state.gains())
            assert gains[element] >= np.sort(gains)[-3]
            state.add(element)
        seen.add(made.order[0])
    assert len(seen) == 3


@pytest.mark.parametrize("select", FAMILY)
@pytest.mark.parametrize("seed", SEEDS)
def test_one_run_gives_the_whole_sweep_or_says_that_it_does_not(select, seed):
    objective = coverage(seed, n=14, items=30)
    largest = select(objective, 9)
    assert len(set(largest.order)) == 9
    assert largest.value == pytest.approx(sum(largest.gains))
    for k in range(1, 9):
        if largest.nested:
            own, part = select(objective, k), largest.prefix(k)
            assert (part.order, part.values) == (own.order, own.values)
        else:
            with pytest.raises(ValueError, match="no prefix"):
                largest.prefix(k)


@pytest.mark.parametrize("select", FAMILY)
def test_elements_to_choose_from(select):
    objective = coverage(5, n=20)
    assert set(select(objective, 4, among=[9, 3, 4, 17, 2]).order) <= {2, 3, 4, 9, 17}
    assert select(objective, 0).order == ()


@pytest.mark.parametrize("select", FAMILY)
def test_scale_and_names_do_not_matter(select):
    incidence = np.random.default_rng(0).random((16, 40)) < 0.15
    weights = np.random.default_rng(1).gamma(2.0, size=40)
    made = select(Coverage(incidence, weights), 5)
    assert select(Coverage(incidence, 1e-12 * weights), 5).order == made.order
    assert select(Coverage(incidence, 1e9 * weights), 5).order == made.order
    if select in (greedy, lazy_greedy, oblivious):  # the others look at elements in their order, or at random
        names = np.random.default_rng(2).permutation(16)
        assert [int(names[v]) for v in select(Coverage(incidence[names], weights), 5).order] == list(made.order)


@pytest.mark.parametrize("select", FAMILY)
@pytest.mark.parametrize("k", [-1, 2.0, True, "3", 10])
def test_bad_budgets(select, k):
    with pytest.raises(ValueError, match=r"10 elements cannot be chosen out of 9|whole number"):
        select(coverage(0), k)


def test_bad_options():
    objective = coverage(0)
    for select in (stochastic_greedy, threshold_greedy):
        with pytest.raises(ValueError, match="epsilon"):
            select(objective, 2, epsilon=1.0)
    with pytest.raises(ValueError, match="distinct"):
        greedy(objective, 2, among=[1, 1, 2])
    with pytest.raises(ValueError, match="not in the ground set"):
        greedy(objective, 2, among=[1, 99])
    with pytest.raises(ValueError, match="batch"):
        lazy_greedy(objective, 2, batch=0)


@pytest.mark.parametrize("seed", SEEDS)
def test_cover_reaches_its_level_with_few_elements(seed):
    objective = coverage(seed)
    everything = objective.value(range(objective.n))
    for level in (1.0, 0.5 * everything, everything):
        made = cover(objective, level)
        assert made.value >= level
        assert made.prefix(len(made.order) - 1).value < level
        fewest = next(k for k in range(1, objective.n + 1) if best(objective, k) >= level)
        assert len(made.order) <= (1.0 + math.log(objective.singletons().max())) * fewest
    with pytest.raises(ValueError, match="cannot be reached"):
        cover(objective, everything + 1.0)


def test_cover_prefers_what_is_cheap():
    objective = Coverage([[1, 1, 1, 1], [1, 1, 1, 0], [0, 0, 0, 1]])
    assert cover(objective, 4).order == (0,)
    assert set(cover(objective, 4, cost=[10.0, 1.0, 1.0]).order) == {1, 2}
    for cost in ([1.0, 0.0, 1.0], [1.0, 1.0], [1.0, np.nan, 1.0]):
        with pytest.raises(ValueError, match="positive numbers"):
            cover(objective, 4, cost=cost)


def test_an_order_that_wastes_a_step_has_no_factor():
    objective = Coverage([[1, 1, 0], [1, 0, 0], [0, 0, 1]])
    assert iterative_factor(objective, [0, 1, 2]) == math.inf


def test_a_prefix_keeps_the_robust_part():
    made = Selection((3, 1, 2), (1.0, 2.0, 3.0), buckets=((3,), (1,)))
    assert made.prefix(2).rest == ()
    with pytest.raises(ValueError, match="smaller than the robust part"):
        made.prefix(1)
    with pytest.raises(ValueError, match="only 3 elements"):
        made.prefix(4)


@pytest.mark.parametrize("seed", SEEDS)
def test_matching_pursuit_takes_the_column_nearest_to_the_residual(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, 12)) @ rng.normal(size=(12, 12))
    y = X[:, :3].sum(axis=1) + rng.normal(size=40)
    made = matching_pursuit(RSquared(X, y), 6)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    residual = y - y.mean()
    for step, element in enumerate(made.order):
        slopes = np.abs(Z.T @ residual)
        slopes[list(made.order[:step])] = -1.0
        assert element == int(np.argmax(slopes))
        chosen = Z[:, made.order[: step + 1]]
        residual = (y - y.mean()) - chosen @ np.linalg.lstsq(chosen, y - y.mean(), rcond=None)[0]
    assert made.value == pytest.approx(1.0 - residual @ residual / ((y - y.mean()) ** 2).sum())


def test_matching_pursuit_needs_a_loss():
    with pytest.raises(TypeError, match="Coverage has no slopes"):
        matching_pursuit(coverage(0), 2)


def test_a_level_that_is_no_number_is_refused():
    with pytest.raises(ValueError, match="level must be a number"):
        cover(Coverage(np.eye(3)), math.nan)
