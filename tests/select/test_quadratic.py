"""Quadratic reductions: values from refits and closed forms, dependent columns, long chains, torch."""

from __future__ import annotations

import numpy as np
import pytest

from surefoot.belief import Matern
from surefoot.select import MutualInformation, RSquared, VarianceReduction


def autoregressive(rng: np.random.Generator, rows: int, n: int, share: float = 0.5) -> np.ndarray:
    X = np.empty((rows, n))
    X[:, 0] = rng.normal(size=rows)
    for t in range(n - 1):
        X[:, t + 1] = np.sqrt(1.0 - share) * X[:, t] + np.sqrt(share) * rng.normal(size=rows)
    return X


def test_r_squared_is_that_of_a_regression_with_intercept() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 8)) * rng.uniform(0.1, 100.0, 8) + 50.0, rng.normal(size=60) + 7.0
    f = RSquared(X, y)
    S = [1, 5, 6]
    design = np.column_stack([np.ones(60), X[:, S]])
    residual = y - design @ np.linalg.lstsq(design, y, rcond=None)[0]
    assert f.state(S).value == pytest.approx(1.0 - residual @ residual / ((y - y.mean()) ** 2).sum(), abs=1e-10)


@pytest.mark.parametrize("ridge", [0.0, 0.5])
def test_a_long_chain_stays_exact(ridge: float) -> None:
    """200 correlated columns: 80 additions, then 60 removals, all gains and losses against direct solves."""
    rng = np.random.default_rng(1)
    X = autoregressive(rng, 300, 200)
    y = X[:, ::7] @ rng.normal(size=29) + rng.normal(size=300)
    f = RSquared(X, y, ridge=ridge)
    state = f.state()
    for _ in range(80):
        state.add(state.best()[0])
    S = state.selected
    assert state.value == pytest.approx(f.value(S), abs=1e-9)
    for v in range(0, 200, 23):
        if v not in S:
            assert state.gain(v) == pytest.approx(f.value([*S, v]) - f.value(S), abs=1e-9)
    for _ in range(60):
        losses = state.losses()
        state.remove(state.selected[int(np.argmax(losses))])
    S = state.selected
    assert state.value == pytest.approx(f.value(S), abs=1e-9)
    direct = [f.value(S) - f.value([v for v in S if v != e]) for e in S]
    np.testing.assert_allclose(state.losses(), direct, rtol=0, atol=1e-9)
    direct = [0.0 if v in S else f.value([*S, v]) - f.value(S) for v in range(200)]
    np.testing.assert_allclose(state.gains(), direct, rtol=0, atol=1e-9)


def test_dependent_columns_add_nothing() -> None:
    """A copy, a sum and more columns than rows: gains 0, losses of the replaceable ones 0."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(20, 4))
    X = np.column_stack([X, X[:, 0], X[:, 1] + X[:, 2]])
    f = RSquared(X, rng.normal(size=20), standardize=False)
    state = f.state([0, 1, 2])
    np.testing.assert_array_equal(state.gains([4, 5]), [0.0, 0.0])
    for v in (4, 5):
        state.add(v)
    losses = state.losses()
    np.testing.assert_allclose(losses, 0.0, atol=1e-9)  # each of the five can be replaced by others
    assert state.value == pytest.approx(f.value([0, 1, 2]), abs=1e-9)
    state.remove(0)
    assert state.value == pytest.approx(f.value([1, 2, 4]), abs=1e-9)
    assert state.gain(0) == 0.0
    state.remove(5)
    direct = [f.value([1, 2, 4]) - f.value([v for v in (1, 2, 4) if v != e]) for e in (1, 2, 4)]
    np.testing.assert_allclose(state.losses(), direct, atol=1e-9)
    wide = RSquared(rng.normal(size=(5, 9)), rng.normal(size=5))
    assert wide.state(range(9)).value == pytest.approx(1.0, abs=1e-9)


def test_the_kernel_of_three_points() -> None:
    """F({1}) = 0, F({2}) = z⁴/(1 + σ²), F({1} | {2}) = 0.0383592 for z = 0.5, σ² = 0.3: not submodular."""
    z, noise = 0.5, 0.3
    side = np.sqrt(1.0 - z**2)
    K = np.array([[1.0, side, 0.0], [side, 1.0, z**2], [0.0, z**2, 1.0]])
    f = VarianceReduction(K, noise=noise, targets=[2])
    assert f.value([0]) == pytest.approx(0.0, abs=1e-15)
    assert f.value([1]) == pytest.approx(z**4 / (1.0 + noise))
    assert f.value([0, 1]) == pytest.approx(z**4 * (1.0 + noise) / ((1.0 + noise) ** 2 - (1.0 - z**2)))
    assert f.state([1]).gain(0) == pytest.approx(0.0383592, abs=5e-8)


def test_the_same_point_many_times() -> None:
    f = VarianceReduction(np.ones((12, 12)), noise=0.7, targets=[0])
    for size in (1, 3, 12):
        assert f.state(range(size)).value == pytest.approx(size / (0.7 + size), rel=1e-12)


def test_no_more_variance_is_taken_than_there_is() -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(40, 3))
    K = Matern(1.5, lengthscale=1.0)(X, X)
    f = VarianceReduction(K, noise=1e-4, targets=np.arange(20, 40))
    assert f.value(range(20)) < f.state(range(40)).value < np.trace(K[20:, 20:])


def test_information_of_everything_is_the_determinant() -> None:
    rng = np.random.default_rng(4)
    X = rng.normal(size=(30, 2))
    K = Matern(2.5, lengthscale=0.8)(X, X)
    f = MutualInformation(K, noise=0.1)
    assert f.state(rng.permutation(30)).value == pytest.approx(0.5 * np.linalg.slogdet(np.eye(30) + K / 0.1)[1])


@pytest.mark.parametrize("kind", ["variance", "information", "r-squared"])
def test_torch_gives_the_same(kind: str) -> None:
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(5)
    X = rng.normal(size=(40, 25))
    K, y = Matern(1.5, lengthscale=1.0)(X.T, X.T), rng.normal(size=40)

    def make(place):
        if kind == "variance":
            return VarianceReduction(place(K), noise=np.linspace(0.1, 1.0, 25), targets=place(K[:5]))
        if kind == "information":
            return MutualInformation(place(K), noise=0.3)
        return RSquared(place(X), place(y))

    ours, theirs = make(np.asarray), make(torch.asarray)
    states = [f.state([3, 9, 20, 11]) for f in (ours, theirs)]
    for state in states:
        state.remove(9)
        state.add(1)
    np.testing.assert_allclose(states[0].gains(), states[1].gains(), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(states[0].losses(), states[1].losses(), rtol=1e-9, atol=1e-12)
    assert states[0].value == pytest.approx(states[1].value, rel=1e-12)
    assert ours.value([1, 2]) == pytest.approx(theirs.value([1, 2]), rel=1e-12)


X = np.random.default_rng(6).normal(size=(10, 3))


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: RSquared(np.column_stack([X, np.full(10, 7.0)]), X[:, 0]), ValueError, "column 3 of X is constant"),
        (lambda: RSquared(X * [[1.0, 0.0, 1.0]], X[:, 0], standardize=False), ValueError, "column 1"),
        (lambda: RSquared(np.where(np.arange(10)[:, None] == 4, np.nan, X), X[:, 0]), ValueError, "row 4"),
        (lambda: RSquared(X, np.ones(10)), ValueError, "y is constant"),
        (lambda: RSquared(X, np.full(10, np.nan)), ValueError, "y must be finite"),
        (lambda: RSquared(X, X[:9, 0]), ValueError, r"\(10,\)"),
        (lambda: RSquared(X, X[:, 0], ridge=-1.0), ValueError, "ridge .* -1.0"),
        (lambda: RSquared([["a"]], [1.0]), TypeError, "numbers"),
        (lambda: VarianceReduction(X, noise=1.0), ValueError, "square"),
        (lambda: VarianceReduction([[1.0, 2.0], [0.0, 1.0]], noise=1.0), ValueError, "symmetric"),
        (lambda: VarianceReduction(-np.eye(2), noise=1.0), ValueError, "variances, got -1.0"),
        (lambda: VarianceReduction(np.eye(2), noise=0.0), ValueError, "above 0, got 0.0"),
        (lambda: VarianceReduction(np.eye(2), noise=[1.0, 1.0, 1.0]), ValueError, r"\(2,\)"),
        (lambda: VarianceReduction(np.eye(2), noise=1.0, targets=[2]), ValueError, "between 0 and 1"),
        (lambda: VarianceReduction(np.eye(2), noise=1.0, targets=[0.5]), TypeError, "indices"),
        (lambda: VarianceReduction(np.eye(2), noise=1.0, targets=np.ones((1, 3))), ValueError, "2 columns"),
        (lambda: MutualInformation(np.eye(2), noise=-1.0), ValueError, "above 0, got -1.0"),
    ],
)
def test_bad_input(make, error, message) -> None:
    with pytest.raises(error, match=message):
        make()
