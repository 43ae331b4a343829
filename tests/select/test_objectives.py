"""What every objective keeps: gains and losses are differences of values, whatever way the set came about."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot.belief import GP, Matern
from surefoot.select import (
    Coverage,
    Custom,
    DominatingSet,
    FacilityLocation,
    LogisticSupport,
    MutualInformation,
    RSquared,
    SetFunction,
    VarianceReduction,
)
from surefoot.select.objective import Evaluations


def covariance(rng: np.random.Generator, n: int) -> np.ndarray:
    X = rng.normal(size=(n, 2))
    return Matern(1.5, lengthscale=1.0)(X, X)


def make(kind: str, seed: int = 0, n: int = 12) -> SetFunction:
    rng = np.random.default_rng(seed)
    if kind == "coverage":
        return Coverage(rng.random((n, 30)) < 0.2, weights=rng.random(30))
    if kind == "dominating":
        return DominatingSet(n, rng.integers(n, size=(2 * n, 2)), direction=rng.choice(["both", "out", "in"]))
    if kind in ("exemplar", "euclidean", "cosine"):
        return FacilityLocation(rng.normal(size=(n, 3)), similarity=kind, clients=rng.normal(size=(25, 3)))
    if kind == "precomputed":
        return FacilityLocation(rng.normal(size=(n, 9)), similarity=kind, weights=rng.random(9), average=False)
    if kind == "r-squared":
        return RSquared(rng.normal(size=(40, n)) + rng.normal(size=(40, 1)), rng.normal(size=40))
    if kind == "ridge":
        return RSquared(rng.normal(size=(8, n)), rng.normal(size=8), ridge=0.3)
    if kind == "variance":
        return VarianceReduction(covariance(rng, n), noise=rng.uniform(0.1, 1.0, n), targets=np.arange(0, n, 2))
    if kind == "information":
        return MutualInformation(covariance(rng, n), noise=rng.uniform(0.1, 1.0, n))
    if kind in ("logistic", "softmax"):
        X = rng.normal(size=(60, n))
        scores = X @ rng.normal(size=n) + 0.1 * rng.normal(size=60)
        return LogisticSupport(X, scores > 0 if kind == "logistic" else np.digitize(scores, [-1.0, 1.0]))
    weights = rng.random(n)
    return Custom(lambda S: float(np.sqrt(weights[list(S)].sum())), n, submodular=True)


KINDS = ["coverage", "dominating", "exemplar", "euclidean", "cosine", "precomputed", "r-squared", "ridge"]
KINDS += ["variance", "information", "logistic", "softmax", "custom"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_gains_and_losses_are_differences_of_values(kind: str, seed: int) -> None:
    """To 1e-9 of the value of everything, along random additions and removals."""
    f, rng = make(kind, seed), np.random.default_rng(seed)
    scale = f.value(range(f.n))
    state = f.state()
    for _ in range(14):
        if state.selected and rng.random() < 0.35:
            state.remove(int(rng.choice(state.selected)))
        elif len(state.selected) < f.n:
            state.add(int(rng.choice(np.flatnonzero(~state.chosen))))
        S = list(state.selected)
        value = f.value(S)
        assert state.value == pytest.approx(value, abs=1e-9 * scale)
        gains = [0.0 if v in S else f.value([*S, v]) - value for v in range(f.n)]
        np.testing.assert_allclose(state.gains(), gains, rtol=0, atol=1e-9 * scale)
        some = rng.permutation(f.n)[:5]
        np.testing.assert_allclose(state.gains(some), np.array(gains)[some], rtol=0, atol=1e-9 * scale)
        losses = [value - f.value([v for v in S if v != e]) for e in S]
        np.testing.assert_allclose(state.losses(), losses, rtol=0, atol=1e-9 * scale)
        if len(S) < f.n:
            v, gain = state.best()
            assert v not in S
            assert gain == pytest.approx(max(np.delete(gains, S)), abs=1e-9 * scale)


@pytest.mark.parametrize("kind", KINDS)
def test_values_do_not_depend_on_the_order(kind: str) -> None:
    f = make(kind, 1)
    forwards, backwards = f.state([3, 7, 1, 5]), f.state([5, 1, 7, 3])
    assert forwards.value == pytest.approx(backwards.value, rel=1e-9)
    assert forwards.selected == [3, 7, 1, 5]
    np.testing.assert_allclose(forwards.gains(), backwards.gains(), atol=1e-9 * f.value(range(f.n)))
    np.testing.assert_allclose(f.singletons(), [f.value([v]) for v in range(f.n)], atol=1e-12 + 1e-9 * forwards.value)


@pytest.mark.parametrize("kind", KINDS)
def test_a_copy_is_independent(kind: str) -> None:
    f = make(kind, 2)
    state = f.state([0, 1])
    before = state.value, state.gains(), state.losses()
    other = state.copy()
    other.remove(0)
    other.add(4)
    other.best()
    assert state.selected == [0, 1]
    for one, two in zip(before, (state.value, state.gains(), state.losses()), strict=True):
        np.testing.assert_array_equal(one, two)
    assert other.value == pytest.approx(f.value([1, 4]), rel=1e-9)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if make(kind).submodular])
@settings(max_examples=15, deadline=None)
@given(st.data())
def test_declared_submodular_functions_are(kind: str, data: st.DataObject) -> None:
    f = make(kind, 3)
    order = data.draw(st.permutations(range(f.n)))
    small = data.draw(st.integers(0, f.n - 1))
    large = data.draw(st.integers(small, f.n - 1))
    rest = list(order[large:])
    early, late = f.state(order[:small]).gains(rest), f.state(order[:large]).gains(rest)
    assert (early >= late - 1e-9 * f.value(range(f.n))).all()


@pytest.mark.parametrize("kind", KINDS)
def test_every_objective_is_monotone_and_normalized(kind: str) -> None:
    f = make(kind, 4)
    assert f.value([]) == 0.0
    assert f.state().value == 0.0
    state = f.state()
    values = [0.0]
    for v in np.random.default_rng(0).permutation(f.n):
        state.add(int(v))
        values.append(state.value)
    assert (np.diff(values) >= -1e-9 * values[-1]).all()
    assert state.losses().min() >= 0.0


@pytest.mark.parametrize("kind", KINDS)
def test_best_breaks_ties_by_the_lowest_index_among_those_allowed(kind: str) -> None:
    f = make(kind, 5)
    state = f.state([2])
    allowed = np.ones(f.n, dtype=bool)
    seen = []
    while allowed.sum() > 1:
        v, gain = state.best(allowed)
        gains = state.gains()
        assert v == next(int(u) for u in np.flatnonzero(allowed & ~state.chosen) if gains[u] >= gain - 1e-12)
        seen.append(v)
        allowed[v] = False
    assert sorted(seen) == [v for v in range(f.n) if v != 2]
    with pytest.raises(ValueError, match="no element is left"):
        state.best(np.arange(f.n) == 2)
    with pytest.raises(ValueError, match="booleans"):
        state.best(np.ones(3, dtype=bool))


def test_evaluations_are_counted() -> None:
    f = make("coverage")
    state = f.state()
    f.evaluations = Evaluations()
    state.gains()
    f.singletons()
    assert f.evaluations == Evaluations(values=0, gains=0)  # the state has made the singletons, once
    state.add(0)
    state.gains()
    state.gain(3)
    f.value([1, 2])
    state.losses()
    assert f.evaluations == Evaluations(values=2, gains=f.n + 1)
    assert f.evaluations.total == f.n + 3


def test_the_function_is_called_once_per_set() -> None:
    calls: list[tuple[int, ...]] = []
    f = Custom(lambda S: calls.append(S) or float(len(S)), 5)
    state = f.state([3, 1])
    calls.clear()
    state.gains()
    assert sorted(calls) == [(0, 1, 3), (1, 2, 3), (1, 3, 4)]
    calls.clear()
    state.losses()
    assert sorted(calls) == [(1,), (3,)]


@pytest.mark.parametrize(
    ("act", "error", "message"),
    [
        (lambda f: f.value([12]), ValueError, "element 12 is not in the ground set 0..11"),
        (lambda f: f.value([-1]), ValueError, "element -1"),
        (lambda f: f.value([1, 1]), ValueError, "distinct"),
        (lambda f: f.value([0.5]), TypeError, "integers"),
        (lambda f: f.state([1]).add(1), ValueError, "already in the set"),
        (lambda f: f.state([1]).remove(2), ValueError, "2 is not in the set"),
        (lambda f: f.state().add(99), ValueError, "element 99"),
        (lambda f: f.state().add(1.5), TypeError, "integer"),
        (lambda f: f.state([1]).gains([0, 50]), ValueError, "element 50"),
    ],
)
def test_bad_elements_are_refused_and_change_nothing(act, error, message) -> None:
    with pytest.raises(error, match=message):
        act(make("coverage"))


def test_bad_callables_are_refused() -> None:
    with pytest.raises(TypeError, match="callable"):
        Custom(3, 4)
    with pytest.raises(ValueError, match="0 at the empty set"):
        Custom(lambda S: 1.0 + len(S), 4)
    with pytest.raises(ValueError, match="finite"):
        Custom(lambda S: float("nan") if S else 0.0, 4).value([0])
    with pytest.raises(ValueError, match="not monotone"):
        Custom(lambda S: -float(len(S)), 4).singletons()
    with pytest.raises(ValueError, match="at least one element"):
        Custom(len, 0)


def test_variance_reduction_of_a_posterior_is_what_conditioning_gives() -> None:
    """Measuring S for real lowers the variances by f(S), whatever the values turn out to be."""
    rng = np.random.default_rng(0)
    X, data, targets = rng.random((9, 2)), rng.random((4, 2)), rng.random((5, 2))
    gp = GP(Matern(2.5, lengthscale=0.4), noise=0.05)
    y = rng.normal(size=4)
    f = VarianceReduction.from_posterior(gp.condition(data, y), X, targets)
    S = [1, 4, 8]
    before = gp.condition(data, y).var(targets).sum()
    after = gp.condition(np.vstack([data, X[S]]), np.zeros(7)).var(targets).sum()
    assert f.value(S) == pytest.approx(before - after, rel=1e-8)
