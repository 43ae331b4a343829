"""Factors against the numbers of the papers and against brute force; bounds and certificates of single instances."""

import math
from functools import partial

import numpy as np
import pytest
from planted_sets import best, coverage, robust_best, variance_reduction, worst

from surefoot.select import (
    Coverage,
    VarianceReduction,
    best_beta,
    certify,
    exhaustive,
    greedy,
    greedy_guarantee,
    heuristics,
    oblivious,
    oblivious_greedy,
    oblivious_greedy_guarantee,
    optimum_bound,
    osu,
    pro,
    pro_guarantee,
    robust_bound,
    stochastic_greedy,
)
from surefoot.select.ratios import bound_ratios, estimate_ratios, exact_ratios

SUBMODULAR = {"gamma": 1.0, "theta": 1.0, "inverse_curvature": 0.0}


def eta_of(k):
    return math.ceil(4.0 * (math.log2(k) + 1.0))


@pytest.mark.parametrize(
    ("k", "tau", "general", "printed"),
    [(10**4, 2, 0.372, 0.365), (10**5, 10, 0.353, 0.324), (10**6, 50, 0.348, 0.313)],
)
def test_factors_of_pro(k, tau, general, printed):
    eta = eta_of(k)
    assert pro_guarantee(k, tau, eta=eta) == pytest.approx(general, abs=5e-4)
    assert pro_guarantee(k, tau, eta=eta, printed=True) == pytest.approx(printed, abs=5e-4)


def test_the_factor_of_pro_tends_to_its_limit():
    limit = (1.0 - math.exp(-1.0)) / (2.0 - math.exp(-1.0))
    assert limit == pytest.approx(0.387300, abs=1e-6)
    factors = [pro_guarantee(10**e, 2, eta=10 ** (e // 2)) for e in (4, 8, 12)]
    assert factors == sorted(factors)
    assert factors[-1] == pytest.approx(limit, abs=1e-4)


def test_the_printed_theorem_needs_thousands_of_elements():
    """The smallest k at which the printed conditions allow two deletions."""

    def allowed(k):
        try:
            return pro_guarantee(k, 2, eta=eta_of(k), printed=True) > 0.0
        except ValueError:
            return False

    assert allowed(4495)
    assert not any(allowed(k) for k in range(4000, 4495, 9))
    assert not allowed(4494)


def test_the_general_factor_is_small_but_positive_for_practical_buckets():
    alpha = 3.0**3 - 1.0
    a = (1.0 - math.exp(-(100 - 32) / (100 - 8))) / (1.0 + 1.0 * (1.0 + alpha) + alpha)
    assert 2.0 * alpha + 1.0 == pytest.approx(53.0)
    assert pro_guarantee(100, 8) == pytest.approx(a / (1.0 + a))
    assert 0.0 < pro_guarantee(100, 8) < 0.02
    assert pro_guarantee(10, 0) == pytest.approx(1.0 - math.exp(-1.0))


def test_the_recursion_for_worse_subroutines():
    """β = 1.5, η = 4, five partitions: α = (1 + 2β/η)⁵ − 1 = 15.4, where the printed induction has 14.8."""
    alpha = 1.75**5 - 1.0
    assert alpha == pytest.approx(15.4, abs=0.05)
    k, tau, size = 2000, 32, 4 * 32 * 6
    q = 1.0 - math.exp(-(k - size) / (1.5 * (k - tau)))
    a = q / (1.0 + 1.5 / 4.0 * (1.0 + alpha) + alpha)
    assert pro_guarantee(k, tau, eta=4, beta=1.5) == pytest.approx(a / (1.0 + a))


def test_factors_of_oblivious_greedy():
    limit = 0.5 * (1.0 - math.exp(-0.5)) / (2.0 - math.exp(-0.5))
    assert limit == pytest.approx(0.1412, abs=5e-5)
    half = {"gamma": 0.5, "theta": 0.5, "superadditivity": 1.0, "inverse_curvature": 0.0}
    assert oblivious_greedy_guarantee(10**9, 3, 1e4, **half) == pytest.approx(limit, abs=1e-4)
    near = oblivious_greedy_guarantee(10**9, 3, 1e4, superadditivity=1.0, **SUBMODULAR)
    assert near == pytest.approx(0.387300, abs=1e-4)
    # The corollary's limit, where nothing is known of the inverse curvature.
    q, theta = 1.0 - math.exp(-0.7), 0.8
    found = oblivious_greedy_guarantee(10**9, 3, 1e5, gamma=0.7, theta=theta, superadditivity=1.0, subadditivity=0.9)
    assert found == pytest.approx(theta**2 * q / (1.0 + theta * q), abs=1e-3)
    assert oblivious_greedy_guarantee(20, 4, 1.0, superadditivity=1.0, **SUBMODULAR) == 0.0  # β > 1 is needed
    assert oblivious_greedy_guarantee(20, 0, 1.0, superadditivity=1.0, **SUBMODULAR) == greedy_guarantee(20)


@pytest.mark.parametrize("share", [0.001, 0.01, 0.1, 0.4])
def test_the_best_beta_beats_its_neighbors(share):
    ratios = {"gamma": 0.8, "theta": 0.9, "superadditivity": 0.5}
    beta, factor = best_beta(share, **ratios)
    assert 1.0 < beta < 1.0 / share
    k = 10**8
    for other in (0.9 * beta + 0.1, beta, 0.9 * beta + 0.1 / share):
        assert oblivious_greedy_guarantee(k, int(share * k), other, **ratios) <= factor + 1e-6
    assert oblivious_greedy_guarantee(k, int(share * k), beta, **ratios) == pytest.approx(factor, abs=1e-6)


@pytest.mark.parametrize("seed", range(8))
def test_bounds_on_the_optimum_hold(seed):
    for objective in (coverage(seed), coverage(seed, weighted=True)):
        for k, tau in ((2, 1), (4, 1), (4, 2), (6, 3)):
            assert optimum_bound(objective, k) >= best(objective, k) - 1e-9
            assert robust_bound(objective, k, tau) >= robust_best(objective, k, tau) - 1e-9
            assert robust_bound(objective, k, tau) <= optimum_bound(objective, k - tau) + 1e-9
    objective = variance_reduction(seed)
    gamma = exact_ratios(objective).submodularity.value
    for k in (2, 4):
        assert optimum_bound(objective, k, gamma=gamma) >= best(objective, k) - 1e-9
        assert optimum_bound(objective, k) == pytest.approx(objective.value(range(objective.n)))
        assert robust_bound(objective, k + 1, 1, gamma=gamma) >= robust_best(objective, k + 1, 1) - 1e-9


@pytest.mark.parametrize("seed", range(8))
def test_certificates_are_true(seed):
    """What is claimed of a selection holds against the best robust set found by trying all."""
    objective = coverage(seed, n=10, items=25, weighted=True)
    for tau, select in ((1, pro), (2, pro), (1, oblivious_greedy), (2, partial(oblivious_greedy, beta=2.0)), (2, osu)):
        made = select(objective, 6, tau)
        found = certify(objective, made, tau)
        truth = worst(objective, made.order, tau) / robust_best(objective, 6, tau)
        assert found.worst.value == pytest.approx(worst(objective, made.order, tau))
        assert found.factor <= found.ratio <= truth + 1e-9
        assert found.proved
        assert "of the best possible" in str(found)
    assert certify(objective, pro(objective, 6, 2), 2).factor == pytest.approx(pro_guarantee(6, 2))
    assert certify(objective, partial(oblivious_greedy, beta=2.0)(objective, 6, 2), 2).factor > 0.0


@pytest.mark.parametrize("seed", range(6))
def test_certificates_of_what_is_not_submodular(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(10, 2))
    K = np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=-1))
    objective = VarianceReduction(K, noise=0.5)
    made = oblivious_greedy(objective, 6, 1, beta=2.0)
    truth = worst(objective, made.order, 1) / robust_best(objective, 6, 1)
    for ratios in (None, bound_ratios(objective), exact_ratios(objective)):
        found = certify(objective, made, 1, ratios=ratios)
        assert found.proved
        assert 0.0 < found.factor <= found.ratio <= truth + 1e-9
    guessed = certify(objective, made, 1, ratios=estimate_ratios(objective, np.random.default_rng(0)))
    assert not guessed.proved
    assert "estimated ratios" in str(guessed)
    assert guessed.ratio <= truth + 1e-9  # an estimate proves nothing and is left out


def test_reasons():
    objective = coverage(0, n=20, items=50)
    cases = {
        "knows no deletions": (greedy(objective, 8), 2),
        "needs beta > 1": (oblivious_greedy(objective, 8, 2), 2),
        "not those that PRO needs": (pro(objective, 12, 2), 3),
        "limit of large k": (osu(objective, 20, 2, bucket="tau_log_k"), 2),
        "deletions that do not happen": (pro(objective, 12, 2), 0),
        "osu has none": (osu(objective, 12, 2), 2),
    }
    for reason, (made, tau) in cases.items():
        found = certify(objective, made, tau)
        assert reason in found.reason
        assert found.factor == 0.0
    lucky = partial(stochastic_greedy, epsilon=0.9, rng=1)
    found = certify(objective, oblivious_greedy(objective, 12, 2, beta=2.0, subroutine=lucky), 2)
    assert "not greedy" in found.reason
    plain = certify(objective, greedy(objective, 8), 0)
    assert plain.factor == pytest.approx(1.0 - math.exp(-1.0))
    assert plain.ratio >= plain.factor
    found = certify(variance_reduction(0), pro(variance_reduction(0), 6, 1), 1)
    assert "nothing is proved" in found.reason


def test_an_attack_can_be_given():
    objective = coverage(1, n=20, items=50)
    made = pro(objective, 12, 2)
    weak, strong = heuristics(objective, made.order, 2), exhaustive(objective, made.order, 2)
    assert certify(objective, made, 2, worst=weak).worst is weak
    assert certify(objective, made, 2, worst=weak).ratio <= certify(objective, made, 2, worst=strong).ratio
    with pytest.raises(ValueError, match="removes 2 elements, not tau = 1"):
        certify(objective, made, 1, worst=weak)


def test_bad_input():
    objective = Coverage(np.eye(5))
    with pytest.raises(ValueError, match="more than k = 10"):
        pro_guarantee(10, 3)
    with pytest.raises(ValueError, match="the printed theorem needs"):
        pro_guarantee(100, 2, printed=True)
    with pytest.raises(ValueError, match="leave nothing"):
        pro_guarantee(3, 3)
    with pytest.raises(ValueError, match="beta must be at least 1"):
        greedy_guarantee(3, beta=0.5)
    with pytest.raises(ValueError, match="gamma must lie between 0 and 1"):
        oblivious_greedy_guarantee(9, 2, 1.5, gamma=1.5, theta=1.0, superadditivity=1.0)
    with pytest.raises(ValueError, match="too few"):
        oblivious_greedy_guarantee(9, 2, 5.0, superadditivity=1.0, **SUBMODULAR)
    with pytest.raises(ValueError, match="share"):
        best_beta(1.0, gamma=1.0, superadditivity=1.0)
    with pytest.raises(ValueError, match="gamma"):
        optimum_bound(objective, 2, gamma=2.0)
    with pytest.raises(ValueError, match="leave nothing of 3"):
        certify(objective, greedy(objective, 3), 3)
    with pytest.raises(ValueError, match="leave nothing"):
        robust_bound(objective, 2, 2)


def test_without_deletions_an_order_that_wastes_an_element_has_no_theorem_but_a_certificate():
    objective = Coverage([[1, 1, 0], [1, 1, 0], [0, 0, 1]])
    found = certify(objective, oblivious(objective, 2), tau=0)
    assert found.factor == 0.0
    assert "without gain" in found.reason
    assert found.ratio == pytest.approx(2 / 3)
    assert "no theorem" in str(found)


def test_buckets_that_waste_an_element_have_no_theorem_but_a_certificate():
    rows = np.block([[np.ones((30, 30)), np.zeros((30, 40))], [np.zeros((40, 30)), np.eye(40)]])
    objective = Coverage(rows)
    found = certify(objective, pro(objective, 12, 2, subroutine=oblivious), 2)
    assert found.factor == 0.0
    assert "took an element without gain" in found.reason
    assert found.ratio == pytest.approx(0.75)
