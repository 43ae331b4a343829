"""Adversaries beside brute force; bounds, limits and bad input."""

import math

import numpy as np
import pytest
from planted_sets import coverage, variance_reduction, worst

from surefoot.select import (
    Coverage,
    Deletion,
    FacilityLocation,
    attack,
    branch_and_bound,
    coverage_milp,
    exhaustive,
    greedy,
    greedy_max,
    greedy_min,
    heuristics,
    local_search,
    oblivious,
    random_min,
    stochastic_min,
)

EXACT = [exhaustive, branch_and_bound]
HEURISTICS = [greedy_min, greedy_max, random_min, stochastic_min, heuristics]


def instances(count, kinds):
    """Random objectives with a random selection and number of deletions."""
    rng = np.random.default_rng(20260)
    for number in range(count):
        n = int(rng.integers(4, 15))
        kind = kinds[number % len(kinds)]
        if kind == "facility":
            objective = FacilityLocation(rng.normal(size=(n, 2)), weights=rng.random(n))
        elif kind == "variance":
            objective = variance_reduction(number, n=n)
        else:
            objective = coverage(number, n=n, items=int(rng.integers(5, 40)), weighted=kind == "weighted")
        S = rng.permutation(n)[: int(rng.integers(2, n + 1))]
        yield objective, S, int(rng.integers(0, min(len(S), 5) + 1))


@pytest.mark.parametrize("kind", ["plain", "weighted", "facility", "variance"])
def test_all_adversaries_agree_with_brute_force(kind):
    """120 random instances with n ≤ 14: exact ones equal the minimum, the others are bracketed by it."""
    for objective, S, tau in instances(30, [kind]):
        truth = worst(objective, S.tolist(), tau)
        exact = [*EXACT, coverage_milp] if kind != "variance" else EXACT
        for adversary in exact:
            found = adversary(objective, S, tau)
            assert found.value == pytest.approx(truth, rel=1e-9, abs=1e-12), adversary
            assert found.status == "optimal"
            assert (found.bound, found.gap) == (found.value, 0.0)
        found = attack(objective, S, tau)
        assert found.value == pytest.approx(truth, rel=1e-9, abs=1e-12)
        assert found.proved
        for adversary in HEURISTICS:
            found = adversary(objective, S, tau)
            assert found.bound - 1e-9 <= truth <= found.value + 1e-9, adversary
            assert len(set(found.removed)) == tau
            assert set(found.removed) <= set(S.tolist())
            assert found.value == pytest.approx(objective.value([v for v in S if v not in found.removed]))


def test_swaps_and_restarts_come_close():
    """The minimum over the heuristics misses the true minimum seldom, and by little."""
    gaps = []
    for objective, S, tau in instances(60, ["plain", "weighted", "variance"]):
        truth = exhaustive(objective, S, tau).value
        gaps.append(heuristics(objective, S, tau).value / max(truth, 1e-12) - 1.0 if truth > 0 else 0.0)
    assert np.mean(np.array(gaps) > 1e-9) < 0.1
    assert np.max(gaps) < 0.3


def test_more_deletions_hurt_more():
    objective = coverage(7, n=14, items=60)
    values = [attack(objective, range(12), tau).value for tau in range(7)]
    assert values == sorted(values, reverse=True)
    assert values[0] == objective.value(range(12))


def test_removing_one_by_one_is_removing_at_once():
    objective = coverage(2, n=14, items=60, weighted=True)
    state = objective.state(range(10))
    for element in (3, 7, 1):
        state.remove(element)
    assert state.value == pytest.approx(objective.value([0, 2, 4, 5, 6, 8, 9]))


def test_greedy_max_finds_the_first_greedy_elements():
    objective = coverage(4, n=30, items=90)
    made = greedy(objective, 12)
    assert greedy_max(objective, made.order, 4).removed == tuple(sorted(made.order[:4]))


def test_searches_on_sets_too_many_to_try():
    """Three ways to a proof agree where C(24, 8) = 735,471 deletions are left to the bounds."""
    objective = coverage(11, n=60, items=150, density=0.05)
    S = greedy(objective, 24).order
    by_program, by_tree = coverage_milp(objective, S, 8), branch_and_bound(objective, S, 8, integral=True, seconds=2)
    assert by_program.proved
    assert attack(objective, S, 8).method == "coverage_milp"
    assert by_tree.value >= by_program.value - 1e-9
    assert by_tree.bound <= by_program.value + 1e-9
    assert by_program.value <= heuristics(objective, S, 8).value


def test_whole_values_prune():
    objective = coverage(5, n=14, items=60)
    truth = exhaustive(objective, range(14), 4)
    found = branch_and_bound(objective, range(14), 4, integral=True)
    assert (found.value, found.status) == (truth.value, "optimal")


def test_the_time_limit_gives_a_bound():
    objective = variance_reduction(3, n=16)
    found = branch_and_bound(objective, range(16), 7, seconds=1e-4)
    assert found.status == "time limit"
    truth = exhaustive(objective, range(16), 3).value  # with fewer deletions more is left
    assert 0.0 <= found.bound <= found.value <= truth
    assert 0.0 < found.gap <= 1.0
    program = coverage_milp(coverage(0, n=60, items=400, density=0.1), range(60), 20, seconds=1e-3)
    assert program.status in ("time limit", "optimal")
    assert program.bound <= program.value


def test_attack_chooses_by_size():
    rng = np.random.default_rng(0)
    small, large = coverage(0, n=12), coverage(0, n=40, items=50)
    assert attack(small, range(12), 3).method == "exhaustive"
    assert attack(large, range(40), 8).method == "coverage_milp"
    wide = FacilityLocation(rng.normal(size=(900, 2)))
    assert attack(wide, range(30), 8, seconds=0.3).method == "branch_and_bound"
    assert attack(variance_reduction(0, n=24), range(24), 9).method == "heuristics"


def test_swaps_keep_what_cannot_be_improved():
    objective = coverage(1, n=10)
    found = exhaustive(objective, range(10), 3)
    assert local_search(objective, range(10), found) is found
    poor = Deletion(
        tuple(sorted(oblivious(objective, 10).order[-3:])),
        objective.value(oblivious(objective, 7).order),
        "heuristic",
        0.0,
    )
    better = local_search(objective, range(10), poor)
    assert found.value <= better.value < poor.value


@pytest.mark.parametrize("scale", [1e-9, 1e-300, 1e12])
def test_the_integer_program_does_not_depend_on_the_unit(scale):
    """The solver's tolerances are absolute: tiny weights were called optimal anywhere."""
    rng = np.random.default_rng(0)
    for _ in range(4):
        covers, weights = rng.random((12, 60)) < 0.2, rng.random(60)
        found = coverage_milp(Coverage(covers, weights=weights * scale), range(12), 4)
        assert found.value == pytest.approx(scale * worst(Coverage(covers, weights=weights), range(12), 4), rel=1e-9)
        assert found.proved


@pytest.mark.parametrize("adversary", [*EXACT, *HEURISTICS, coverage_milp, attack])
def test_nothing_and_everything(adversary):
    objective = coverage(0)
    none, everything = adversary(objective, range(5), 0), adversary(objective, range(5), 5)
    assert (none.removed, none.value, none.status) == ((), objective.value(range(5)), "optimal")
    assert (everything.removed, everything.value, everything.gap) == ((0, 1, 2, 3, 4), 0.0, 0.0)


@pytest.mark.parametrize("adversary", [*EXACT, *HEURISTICS, coverage_milp, attack])
def test_bad_input(adversary):
    objective = coverage(0)
    with pytest.raises(ValueError, match="tau = 6 elements cannot be removed from a selection of 5"):
        adversary(objective, range(5), 6)
    with pytest.raises(ValueError, match="whole number"):
        adversary(objective, range(5), -1)
    with pytest.raises(ValueError, match="distinct"):
        adversary(objective, [1, 1], 1)
    with pytest.raises(ValueError, match="not in the ground set"):
        adversary(objective, [1, 99], 1)


def test_bad_options():
    objective = coverage(0)
    with pytest.raises(TypeError, match="for coverage and facility location, not Custom"):
        coverage_milp(variance_reduction(0), range(5), 2)
    for adversary in (coverage_milp, branch_and_bound):
        with pytest.raises(ValueError, match="seconds"):
            adversary(objective, range(5), 2, seconds=0.0)
    with pytest.raises(ValueError, match="restarts"):
        random_min(objective, range(5), 2, restarts=0)
    with pytest.raises(ValueError, match="epsilon"):
        stochastic_min(objective, range(5), 2, epsilon=0.0)
    with pytest.raises(ValueError, match=f"{math.comb(60, 12)} deletions are too many"):
        exhaustive(Coverage(np.eye(60)), range(60), 12)
