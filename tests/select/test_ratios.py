"""Ratios: brute force, proved bounds, optimistic estimates, and the propositions that are false."""

from __future__ import annotations

from itertools import chain, combinations

import numpy as np
import pytest

from surefoot.belief import Matern
from surefoot.select import (
    Coverage,
    Custom,
    FacilityLocation,
    LogisticSupport,
    MutualInformation,
    RSquared,
    SetFunction,
    VarianceReduction,
    bound_ratios,
    estimate_ratios,
    exact_ratios,
)

WORSE_IF_SMALLER = ["submodularity", "supermodularity", "subadditivity", "superadditivity", "bipartite"]
WORSE_IF_LARGER = ["curvature", "inverse_curvature"]


def instance(kind: str, seed: int, n: int = 7) -> SetFunction:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    K = Matern(1.5, lengthscale=1.0)(X, X)
    if kind == "coverage":
        return Coverage(rng.random((n, 10)) < 0.35, weights=rng.random(10))
    if kind == "facility":
        return FacilityLocation(X)
    if kind == "information":
        return MutualInformation(K, noise=rng.uniform(0.2, 2.0, n))
    if kind == "variance":
        return VarianceReduction(K, noise=rng.uniform(0.2, 2.0, n), targets=[0, 3])
    if kind == "r-squared":
        return RSquared(rng.normal(size=(20, n)) + rng.normal(size=(20, 1)), rng.normal(size=20))
    if kind == "ridge":
        return RSquared(rng.normal(size=(5, n)), rng.normal(size=5), ridge=1.0)
    Z = rng.normal(size=(30, n))
    return LogisticSupport(Z, np.digitize(Z @ rng.normal(size=n), [0.0] if kind == "logistic" else [-1.0, 1.0]))


KINDS = ["coverage", "facility", "information", "variance", "r-squared", "ridge", "logistic", "softmax"]


def brute_force(f: SetFunction) -> dict[str, float]:
    """The definitions, written down with sets."""
    V = range(f.n)
    every = [frozenset(S) for S in chain.from_iterable(combinations(V, k) for k in range(f.n + 1))]
    value = {S: f.value(sorted(S)) for S in every}
    tiny = 1e-12 * value[frozenset(V)]

    def gain(T, S):
        return value[S | T] - value[S]

    found = dict.fromkeys(WORSE_IF_SMALLER, 1.0) | dict.fromkeys(WORSE_IF_LARGER, 0.0)

    def least(name, above, below):
        if below > tiny:
            found[name] = min(found[name], above / below)

    def most(name, above, below):
        if below > tiny:
            found[name] = max(found[name], 1.0 - above / below)

    for S in every:
        singles = sum(value[frozenset([i])] for i in S)
        least("subadditivity", singles, value[S])
        least("superadditivity", value[S], singles)
        for T in every:
            if S & T:
                continue
            apart = sum(gain(frozenset([i]), S) for i in T)
            least("submodularity", apart, gain(T, S))
            least("supermodularity", gain(T, S), apart)
            least("bipartite", value[S] + value[T], value[S | T])
            for i in set(V) - S - T:
                one = frozenset([i])
                most("curvature", gain(one, S | T), gain(one, S))
                most("inverse_curvature", gain(one, S), gain(one, S | T))
    return found


@pytest.mark.parametrize("kind", ["coverage", "variance", "r-squared"])
def test_enumeration_is_the_definition(kind: str) -> None:
    f = instance(kind, 0, n=5)
    found = exact_ratios(f).as_dict()
    for name, expected in brute_force(f).items():
        assert found[name].value == pytest.approx(min(max(expected, 0.0), 1.0), abs=1e-9), name
        assert found[name].how == "exact"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(4))
def test_bounds_are_below_and_estimates_above_the_truth(kind: str, seed: int) -> None:
    f = instance(kind, seed)
    exact, bound = exact_ratios(f).as_dict(), bound_ratios(f).as_dict()
    guess = estimate_ratios(f, np.random.default_rng(seed), chains=5, length=5).as_dict()
    slack = 1e-6 if kind in ("logistic", "softmax") else 1e-9
    for name in WORSE_IF_SMALLER:
        assert bound[name].value - slack <= exact[name].value <= guess[name].value + slack, name
    for name in WORSE_IF_LARGER:
        assert bound[name].value + slack >= exact[name].value >= guess[name].value - slack, name
    assert {ratio.how for ratio in guess.values()} == {"estimate"}
    for name, ratio in bound.items():
        if ratio.how == "exact":
            assert ratio.value == pytest.approx(exact[name].value, abs=1e-9), name


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_relations(kind: str, seed: int) -> None:
    """ν ≥ γ ≥ 1 − α̌, ν̌ ≥ γ̌ ≥ 1 − α, θ ≥ ν ν̌; submodular functions have γ = θ = 1, α̌ = 0."""
    f = instance(kind, seed)
    r = exact_ratios(f)
    assert r.subadditivity.value >= r.submodularity.value - 1e-9
    assert r.submodularity.value >= 1.0 - r.inverse_curvature.value - 1e-6
    assert r.superadditivity.value >= r.supermodularity.value - 1e-9
    assert r.supermodularity.value >= 1.0 - r.curvature.value - 1e-6
    assert r.bipartite.value >= r.subadditivity.value * r.superadditivity.value - 1e-9
    if f.submodular:
        assert r.submodularity.value == pytest.approx(1.0)
        assert r.bipartite.value == pytest.approx(1.0)
        assert r.inverse_curvature.value == pytest.approx(0.0, abs=1e-9)


def test_scale_changes_nothing() -> None:
    f = instance("variance", 1)
    scaled = Custom(lambda S: 1e4 * f.value(S), f.n)
    for name, ratio in exact_ratios(f).as_dict().items():
        assert exact_ratios(scaled).as_dict()[name].value == pytest.approx(ratio.value, abs=1e-9), name


def claimed(noise: float, largest: float = 1.0) -> float:
    """The published bound k_max/(σ² + k_max) on both curvatures of variance reduction."""
    return largest / (noise + largest)


def test_inverse_curvature_of_variance_reduction_reaches_one() -> None:
    """Against the published proposition, on the published kernel of three points: F({1}) = 0 < F({1} | {2})."""
    z, noise = 0.5, 0.3
    side = np.sqrt(1.0 - z**2)
    K = np.array([[1.0, side, 0.0], [side, 1.0, z**2], [0.0, z**2, 1.0]])
    f = VarianceReduction(K, noise=noise, targets=[2])
    found = exact_ratios(f).inverse_curvature.value
    assert found == pytest.approx(1.0, abs=1e-9)
    assert found > claimed(noise)
    assert bound_ratios(f).inverse_curvature.value == 1.0


def test_superadditivity_of_variance_reduction_vanishes() -> None:
    """Against the published ν̌ ≥ σ²/(σ² + k_max): n times the same point has (1 + σ²)/(n + σ²)."""
    f = VarianceReduction(np.ones((10, 10)), noise=1.0, targets=[0])
    found = exact_ratios(f)
    assert found.superadditivity.value == pytest.approx(2.0 / 11.0)
    assert found.superadditivity.value < 1.0 - claimed(1.0)
    assert bound_ratios(f).superadditivity.value == pytest.approx(2.0 / 11.0)  # this bound is tight


def test_curvature_of_variance_reduction_exceeds_the_claim_on_random_points() -> None:
    excess = []
    for seed in range(4):
        X = np.random.default_rng(seed).normal(size=(8, 1))
        f = VarianceReduction(Matern(1.5, lengthscale=1.0)(X, X), noise=1.0, targets=[0, 1])
        r = exact_ratios(f)
        excess.append(max(r.curvature.value, r.inverse_curvature.value) - claimed(1.0))
        assert r.submodularity.value >= 1.0 - claimed(1.0)  # this part of the proposition holds
        assert r.subadditivity.value >= 1.0 - claimed(1.0)
    assert min(excess) > 0.0


def test_the_printed_table_is_not_submodular_below_one() -> None:
    """f(s1) = N, f(s2) = ε, f(s3) = N − 1, pairs N + ε, N, N: f(s2 | s3) = 1 > f(s2) = ε unless ε ≥ 1."""

    def table(small: float, N: float = 5.0) -> Custom:
        values = {(): 0.0, (0,): N, (1,): small, (2,): N - 1.0, (0, 1): N + small, (0, 2): N, (1, 2): N}
        return Custom(lambda S: values.get(S, N + small), 3)

    assert exact_ratios(table(0.5)).submodularity.value < 1.0
    assert exact_ratios(table(1.0)).submodularity.value == 1.0


def test_unknown_functions_have_no_bound_and_large_ones_no_enumeration() -> None:
    f = Custom(lambda S: float(len(S)), 13)
    assert [ratio.value for ratio in bound_ratios(f).as_dict().values()] == [0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0]
    with pytest.raises(ValueError, match="n ≤ 12, got n = 13"):
        exact_ratios(f)
    with pytest.raises(ValueError, match="at least 1, got 0"):
        estimate_ratios(f, np.random.default_rng(0), chains=0)
    wide = RSquared(np.random.default_rng(0).normal(size=(3, 5001)), [0.0, 1.0, 3.0], ridge=0.1)
    with pytest.raises(ValueError, match="n ≤ 5000, got n = 5001"):
        bound_ratios(wide)


def test_estimates_along_an_order_of_selection() -> None:
    f = instance("r-squared", 0, n=12)
    everywhere = estimate_ratios(f, np.random.default_rng(0), chains=40, length=12)
    along = estimate_ratios(f, np.random.default_rng(0), chains=5, length=3, prefixes=[0, 1, 2])
    exact = exact_ratios(f)
    assert exact.submodularity.value <= everywhere.submodularity.value < 1.0
    assert exact.submodularity.value <= along.submodularity.value
