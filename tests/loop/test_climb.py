"""The batched projected BFGS method, on functions whose maxima are known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from surefoot.domain.climb import climb


class Quadratic:
    """−½ (t − center)ᵀ A (t − center), with A of a given condition."""

    def __init__(self, dimension: int, center: float | np.ndarray, condition: float, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        Q, _ = np.linalg.qr(rng.standard_normal((dimension, dimension)))
        self.A = Q @ np.diag(np.logspace(0, np.log10(condition), dimension)) @ Q.T
        self.center, self.calls = center, 0

    def __call__(self, T: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        self.calls += 1
        D = T - self.center
        return -0.5 * np.einsum("mi,ij,mj->m", D, self.A, D), -D @ self.A


@pytest.mark.parametrize(("dimension", "condition"), [(1, 1.0), (2, 100.0), (6, 1000.0), (30, 100.0)])
def test_finds_the_top_of_a_quadratic_from_every_start(dimension: int, condition: float) -> None:
    hill = Quadratic(dimension, 0.4, condition)
    T = np.random.default_rng(1).random((5, dimension))
    for start in T:  # one at a time: in company a start may be given up for a better one
        ends, values = climb(hill, start[None, :], iterations=150)
        np.testing.assert_allclose(ends, 0.4, atol=1e-4)
        assert -1e-8 < values[0] <= 0.0


@pytest.mark.parametrize("seed", range(8))
def test_agrees_with_a_bounded_solver_when_the_top_is_outside(seed: int) -> None:
    rng = np.random.default_rng(seed)
    hill = Quadratic(5, rng.uniform(-0.5, 1.5, 5), 50.0, seed)

    def negative(t: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = hill(t[None, :], np.zeros(1, dtype=int))
        return -value[0], -gradient[0]

    start = rng.random((1, 5))
    reference = minimize(negative, start[0], jac=True, method="L-BFGS-B", bounds=[(0, 1)] * 5, tol=1e-14)
    ends, values = climb(hill, start, iterations=80, tolerance=1e-12)
    assert values[0] == pytest.approx(-reference.fun, abs=1e-8)
    np.testing.assert_allclose(ends[0], reference.x, atol=1e-4)


def test_all_starts_share_each_call() -> None:
    hill = Quadratic(4, 0.5, 10.0)
    climb(hill, np.random.default_rng(0).random((40, 4)), iterations=30)
    assert hill.calls <= 1 + 30


def test_rosenbrock_valley() -> None:
    def valley(T: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        x, y = T[:, 0] * 4 - 2, T[:, 1] * 4 - 2
        gradient = np.column_stack([-400 * x * (y - x * x) - 2 * (1 - x), 200 * (y - x * x)]) * 4
        return -(100 * (y - x * x) ** 2 + (1 - x) ** 2) / 100, -gradient / 100

    ends, values = climb(valley, np.array([[0.1, 0.9], [0.2, 0.2], [0.9, 0.1]]), iterations=60, tolerance=1e-14)
    np.testing.assert_allclose(ends[values.argmax()], 0.75, atol=1e-4)


def test_flat_and_forbidden_places_end_at_once() -> None:
    calls = []

    def plateau(T: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        calls.append(len(T))
        return np.where(T[:, 0] < 0.5, -np.inf, 1.0), np.zeros_like(T)

    T = np.array([[0.2, 0.2], [0.7, 0.7]])
    ends, values = climb(plateau, T, iterations=20)
    np.testing.assert_array_equal(ends, T)
    assert values.tolist() == [-np.inf, 1.0]
    assert calls == [2]


def test_keeps_away_from_a_forbidden_region() -> None:
    def cliff(T: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        inside = T[:, 0] <= 0.6
        return np.where(inside, T[:, 0], -np.inf), np.where(inside[:, None], 1.0, 0.0)

    ends, _ = climb(cliff, np.array([[0.1]]), iterations=40)
    assert 0.599 < ends[0, 0] <= 0.6


def test_never_leaves_the_cube_and_never_goes_down() -> None:
    rng = np.random.default_rng(3)
    W, b = rng.standard_normal((3, 20)) * 6, rng.random(20) * 6

    def waves(T: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        assert ((T >= 0) & (T <= 1)).all()
        return np.cos(T @ W + b).sum(axis=1) / 5, -np.sin(T @ W + b) @ W.T / 5

    T = rng.random((20, 3))
    first, _ = waves(T, np.arange(20))
    ends, values = climb(waves, T, iterations=50)
    assert (values >= first).all()
    np.testing.assert_allclose(waves(ends, np.arange(20))[0], values)
    best = ends[values.argmax()]
    gradient = waves(best[None, :], np.zeros(1, dtype=int))[1][0]
    assert np.abs(np.clip(best + gradient, 0, 1) - best).max() < 1e-3


def test_no_iterations_means_no_move() -> None:
    T = np.array([[0.1, 0.2]])
    np.testing.assert_array_equal(climb(Quadratic(2, 0.5, 1.0), T, iterations=0)[0], T)
