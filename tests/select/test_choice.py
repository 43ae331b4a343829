"""Choosing in one call: the best of several selectors under the same adversary, and a certificate."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot.select import Coverage, FacilityLocation, RSquared, choose, exhaustive, greedy
from surefoot.select.choice import METHODS


def coverage(seed, n=9, items=16, density=0.25):
    rng = np.random.default_rng(seed)
    return Coverage(rng.random((n, items)) < density, weights=rng.random(items))


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10_000), k=st.integers(2, 6), tau=st.integers(0, 3))
def test_the_best_of_what_was_tried(seed, k, tau):
    """It keeps exactly what the proved worst deletion leaves, and no selector that was tried keeps more."""
    tau = min(tau, k - 1)
    f = coverage(seed)
    best = choose(f, k, tau)
    assert best.worst.value == pytest.approx(exhaustive(f, best.selection.order, tau).value)
    kept = {name: exhaustive(f, METHODS[name](f, k, tau).order, tau).value for name in best.tried}
    assert best.worst.value == pytest.approx(max(kept.values()))
    optimum = max(exhaustive(f, S, tau).value for S in combinations(range(f.n), k))
    assert best.certificate.ratio * optimum <= best.worst.value + 1e-9
    assert best.certificate.optimum >= optimum - 1e-9


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000), k=st.integers(2, 6), tau=st.integers(0, 2))
def test_the_quick_certificate_is_one(seed, k, tau):
    tau = min(tau, k - 1)
    f = coverage(seed)
    quick, thorough = (choose(f, k, tau, thorough=careful) for careful in (False, True))
    optimum = max(exhaustive(f, S, tau).value for S in combinations(range(f.n), k))
    assert quick.certificate.optimum >= optimum - 1e-9
    assert quick.selection.order == thorough.selection.order
    assert quick.certificate.factor == 0.0


def test_objectives_that_are_not_submodular():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 12))
    f = RSquared(X, X[:, 0] + 0.5 * X[:, 1] + rng.normal(size=60))
    best = choose(f, 5, 2)
    assert best.worst.value == pytest.approx(exhaustive(f, best.selection.order, 2).value)
    quick = choose(f, 5, 2, thorough=False).certificate
    assert quick.optimum == pytest.approx(f.value(range(12)))  # nothing better is known
    assert best.certificate.optimum <= quick.optimum + 1e-12


def test_no_deletions_means_greedy_selection():
    f = coverage(3)
    best = choose(f, 4)
    assert best.selection.order == greedy(f, 4).order
    assert list(best.tried) == ["greedy"]
    assert best.worst.removed == ()


def test_infeasible_selectors_are_left_out_unless_asked_for():
    f = coverage(5)
    assert "osu" not in choose(f, 5, 4).tried  # it needs 16 elements
    with pytest.raises(ValueError, match="robust part"):
        choose(f, 5, 4, method="osu")
    assert list(choose(f, 5, 1, method="oblivious").tried) == ["oblivious"]


def test_it_says_what_it_does():
    said = []
    choose(coverage(1), 4, 1, notify=said.append)
    assert said[:4] == ["greedy", "pro", "osu", "oblivious_greedy"]
    assert set(said[4:-1]) == {"attack"}
    assert said[-1] == "certificate"


def test_large_ground_sets_keep_to_their_time():
    """Branch and bound in place of all deletions, which would be 142,506; the status says whether it is proved."""
    rng = np.random.default_rng(0)
    f = FacilityLocation(rng.normal(size=(2500, 2)), clients=rng.normal(size=(50, 2)))
    best = choose(f, 30, 5, seconds=0.05)
    assert best.worst.status in ("optimal", "time limit")
    assert best.worst.method == "branch_and_bound"
    assert best.worst.bound <= best.worst.value


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"k": 10}, "10 elements cannot be chosen out of 9"),
        ({"k": 3, "tau": 3}, "tau = 3 deletions leave nothing of k = 3"),
        ({"k": 3, "tau": -1}, "tau must be a whole number from 0 on, got -1"),
        ({"k": 0}, "leave nothing"),
        ({"k": 3, "method": "luck"}, "method must be 'auto' or one of greedy"),
    ],
)
def test_bad_input(options, said):
    with pytest.raises(ValueError, match=said):
        choose(coverage(0), **options)
