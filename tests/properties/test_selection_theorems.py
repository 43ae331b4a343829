"""Theorems on robust selection as properties, against optima found by trying all sets."""

import math
from functools import partial
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot.select import (
    Coverage,
    VarianceReduction,
    certify,
    exhaustive,
    greedy,
    iterative_factor,
    lazy_greedy,
    oblivious_greedy,
    oblivious_greedy_guarantee,
    osu,
    pro,
    pro_guarantee,
    pro_sizes,
    threshold_greedy,
)
from surefoot.select.ratios import exact_ratios

few = settings(max_examples=25, deadline=None)
seeds = st.integers(0, 2**32 - 1)


def coverage(seed, n):
    rng = np.random.default_rng(seed)
    items = int(rng.integers(4, 25))
    incidence = rng.random((n, items)) < rng.uniform(0.1, 0.5)
    return Coverage(incidence, rng.gamma(1.0, size=items) if seed % 2 else None)


def covariance(seed, n):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2)) * rng.uniform(0.3, 2.0)
    K = np.exp(-np.sqrt(((X[:, None] - X[None]) ** 2).sum(axis=-1) + 1e-12))
    return VarianceReduction(K, noise=float(rng.uniform(0.1, 2.0)), targets=rng.permutation(n)[: n // 2 + 1])


def values(objective):
    """The value of every set, by its bits: one table serves all brute force."""
    table = np.zeros(2**objective.n)
    for mask in range(1, len(table)):
        table[mask] = objective.value([v for v in range(objective.n) if mask >> v & 1])
    return table


def bits(S):
    return sum(1 << int(v) for v in S)


def left(table, S, tau):
    return min(table[bits(S) - bits(E)] for E in combinations(S, tau))


def best(table, k, n, without=0):
    return max(table[bits(S)] for S in combinations([v for v in range(n) if not without >> v & 1], k))


@few
@given(seed=seeds, case=st.sampled_from([(4, 1), (6, 1), (5, 2), (7, 2)]))
def test_pro_keeps_its_factor_of_the_best_robust_set(seed, case):
    """The general bound, for buckets as small as possible; and the stronger benchmark OPT(k − τ, V \\ E)."""
    k, tau = case
    objective = coverage(seed, 10)
    table = values(objective)
    made = pro(objective, k, tau)
    worst = exhaustive(objective, made.order, tau)
    assert worst.value == pytest.approx(left(table, made.order, tau))
    most = max(left(table, S, tau) for S in combinations(range(10), k))
    stronger = best(table, k - tau, 10, bits(worst.removed))
    assert stronger >= most - 1e-9  # Lemma 6.A.8
    assert worst.value >= pro_guarantee(k, tau) * stronger - 1e-9


@few
@given(seed=seeds, epsilon=st.floats(0.05, 0.5))
def test_pro_with_a_worse_subroutine(seed, epsilon):
    objective = coverage(seed, 10)
    table = values(objective)
    made = pro(objective, 6, 2, subroutine=partial(threshold_greedy, epsilon=epsilon))
    most = max(left(table, S, 2) for S in combinations(range(10), 6))
    found = certify(objective, made, 2)
    assert found.factor * most <= left(table, made.order, 2) + 1e-9
    assert found.ratio * most <= left(table, made.order, 2) + 1e-9


@few
@given(seed=seeds, case=st.sampled_from([(5, 1, 2.0), (6, 1, 3.0), (6, 2, 1.5), (7, 2, 2.0)]))
def test_oblivious_greedy_keeps_its_factor_without_submodularity(seed, case):
    """Equations (7.31) and (7.39), with the ratios of the instance by enumeration."""
    k, tau, beta = case
    objective = covariance(seed, 9)
    table, ratios = values(objective), exact_ratios(objective)
    made = oblivious_greedy(objective, k, tau, beta=beta)
    worst = exhaustive(objective, made.order, tau)
    benchmark = best(table, k - tau, 9, bits(worst.removed))
    common = {
        "gamma": ratios.submodularity.value,
        "theta": ratios.bipartite.value,
        "superadditivity": ratios.superadditivity.value,
    }
    for more in (
        {"inverse_curvature": ratios.inverse_curvature.value, "subadditivity": 0.0},
        {"subadditivity": ratios.subadditivity.value},
    ):
        factor = oblivious_greedy_guarantee(k, tau, beta, **common, **more)
        assert worst.value >= factor * benchmark - 1e-9


@few
@given(seed=seeds)
def test_greedy_reaches_its_share_without_submodularity(seed):
    """Lemma 7.2.1: 1 − exp(−γ l/k)."""
    objective = covariance(seed, 8)
    table, gamma = values(objective), exact_ratios(objective).submodularity.value
    order = greedy(objective, 6).order
    for k in (1, 2, 4):
        for steps in range(1, 7):
            share = 1.0 - math.exp(-gamma * steps / k)
            assert table[bits(order[:steps])] >= share * best(table, k, 8) - 1e-9


@few
@given(seed=seeds, epsilon=st.floats(0.05, 0.6))
def test_iterative_orders(seed, epsilon):
    """Lemma 6.2.1 and Proposition 6.2.2 with the factor of the very order."""
    objective = coverage(seed, 9)
    table = values(objective)
    for order in (greedy(objective, 5).order, threshold_greedy(objective, 5, epsilon=epsilon).order):
        beta = iterative_factor(objective, order)
        if math.isinf(beta):
            continue  # padded: the value was exhausted before the budget
        for k in (1, 2, 3):
            for steps in range(1, 6):
                assert table[bits(order[:steps])] >= (1.0 - math.exp(-steps / (beta * k))) * best(table, k, 9) - 1e-9
        gains = objective.state(order).gains()
        assert gains.max() <= beta * table[bits(order)] / len(order) + 1e-9


@few
@given(seed=seeds)
def test_an_earlier_bucket_makes_up_for_losses_in_a_later_one(seed):
    """Lemma 6.A.3: f(E | X) ≤ (|E|/|X|) f(X), and X ∪ (Y \\ E) keeps f(Y)/(1 + |E|/|X|), for X before Y."""
    objective = coverage(seed, 12)
    made = pro(objective, 12, 3)
    runs = [*made.buckets, made.rest]
    for i, X in enumerate(runs):
        for Y in runs[i + 1 :]:
            for size in range(len(Y) + 1):
                for E in combinations(Y, size):
                    share = len(E) / len(X)
                    both = objective.value([*X, *E])
                    assert both - objective.value(X) <= share * objective.value(X) + 1e-9
                    kept = objective.value([*X, *(v for v in Y if v not in E)])
                    assert kept >= objective.value(Y) / (1.0 + share) - 1e-9


@few
@given(seed=seeds, tau=st.integers(1, 3))
def test_what_is_left_has_three_lower_bounds(seed, tau):
    """Equation (6.9): the robust part that is left, the rest less what it lost, and the partitions together."""
    objective = coverage(seed, 14)
    made = pro(objective, 13, tau)
    lost = set(exhaustive(objective, made.order, tau).removed)
    after = objective.value([v for v in made.order if v not in lost])
    rest_lost = [v for v in made.rest if v in lost]
    kept = [v for v in made.order if v not in lost]
    assert after >= objective.value([v for v in made.robust if v not in lost]) - 1e-9
    loss = objective.value([*kept, *rest_lost]) - after
    assert after >= objective.value(made.rest) - loss - 1e-9
    for start, size in enumerate(pro_sizes(tau)):
        assert after >= objective.value([v for v in made.buckets[start] if v not in lost]) - 1e-9
        assert len(made.buckets[start]) == size


@few
@given(seed=seeds, factor=st.sampled_from([1e-9, 0.3, 1e6]))
def test_lazy_greedy_and_scale(seed, factor):
    objective = coverage(seed, 14)
    scaled = Coverage(objective.incidence, factor * objective.weights)
    assert lazy_greedy(objective, 9).order == greedy(objective, 9).order
    for select in (
        greedy,
        lambda f, k: pro(f, k, 2),
        lambda f, k: osu(f, k, 2),
        lambda f, k: oblivious_greedy(f, k, 2),
    ):
        assert select(scaled, 9).order == select(objective, 9).order
