"""Kernels: values against closed forms and scikit-learn, gradients against finite differences, algebra, torch."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import gamma, kv
from sklearn.gaussian_process import kernels as peer

from surefoot.belief.kernels import SE, ConstantKernel, Kernel, Linear, Matern, RationalQuadratic, kernel_from_dict

ARD = [0.4, 0.9, 2.0]
KERNELS = [
    SE(lengthscale=0.7, variance=1.3),
    SE(lengthscale=ARD),
    Matern(0.5, lengthscale=0.8),
    Matern(1.5, lengthscale=ARD, variance=0.5),
    Matern(2.5, lengthscale=ARD),
    RationalQuadratic(lengthscale=ARD, alpha=0.7, variance=2.0),
    RationalQuadratic(lengthscale=1.1, alpha=3.0),
    ConstantKernel(1.7),
    Linear(0.6),
    SE(lengthscale=0.5).on([1]),
    SE(lengthscale=ARD) + Linear(0.5),
    SE(lengthscale=0.6) * Matern(2.5, lengthscale=[1.0, 2.0]).on([0, 2]) + ConstantKernel(0.2),
    Linear(0.7) * (SE() + Linear(0.3).on([2])),
    2.5 * (SE() + ConstantKernel(0.1)),
]
IDS = [str(i) + type(k).__name__ for i, k in enumerate(KERNELS)]


@pytest.fixture
def X() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(7, 3))


@pytest.fixture
def Z() -> np.ndarray:
    return np.random.default_rng(1).normal(size=(5, 3))


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (SE(lengthscale=ARD, variance=2.0), 2.0 * peer.RBF(ARD)),
        (Matern(0.5, lengthscale=ARD), peer.Matern(ARD, nu=0.5)),
        (Matern(1.5, lengthscale=0.3), peer.Matern(0.3, nu=1.5)),
        (Matern(2.5, lengthscale=ARD), peer.Matern(ARD, nu=2.5)),
        (RationalQuadratic(lengthscale=0.8, alpha=0.6), peer.RationalQuadratic(0.8, 0.6)),
        (Linear(1.0) + ConstantKernel(4.0), peer.DotProduct(sigma_0=2.0)),
    ],
)
def test_values_agree_with_scikit_learn(ours: Kernel, theirs: peer.Kernel, X: np.ndarray, Z: np.ndarray) -> None:
    np.testing.assert_allclose(ours(X, Z), theirs(X, Z), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5])
def test_matern_closed_form_is_the_bessel_form(nu: float) -> None:
    r = np.linspace(0.1, 4.0, 30)
    rho = np.sqrt(2 * nu) * r / 0.7
    bessel = 2 ** (1 - nu) / gamma(nu) * rho**nu * kv(nu, rho)
    np.testing.assert_allclose(Matern(nu, lengthscale=0.7)(np.zeros((1, 1)), r[:, None])[0], bessel, rtol=1e-12)


@pytest.mark.parametrize("kernel", KERNELS, ids=IDS)
class TestEveryKernel:
    def test_diagonal_and_symmetry(self, kernel: Kernel, X: np.ndarray) -> None:
        K = kernel(X)
        np.testing.assert_allclose(kernel.diag(X), np.diagonal(K), rtol=1e-13)
        np.testing.assert_array_equal(K, K.T)
        np.testing.assert_allclose(K, kernel(X, X), rtol=1e-13)
        assert np.linalg.eigvalsh(K).min() > -1e-12

    def test_theta_round_trip(self, kernel: Kernel) -> None:
        assert len(kernel.names) == kernel.theta.size
        again = kernel.with_theta(kernel.theta)
        np.testing.assert_allclose(again.theta, kernel.theta, atol=1e-15)
        moved = kernel.with_theta(kernel.theta + 0.1)
        np.testing.assert_allclose(moved.theta, kernel.theta + 0.1, atol=1e-12)

    def test_theta_gradient(self, kernel: Kernel, X: np.ndarray) -> None:
        W = np.random.default_rng(2).normal(size=(len(X), len(X)))  # not symmetric
        K, pull = kernel.pull_theta(X)
        np.testing.assert_allclose(K, kernel(X), rtol=1e-13)
        steps = 1e-6 * np.eye(kernel.theta.size)
        numeric = [
            np.vdot(W, kernel.with_theta(kernel.theta + h)(X) - kernel.with_theta(kernel.theta - h)(X)) / 2e-6
            for h in steps
        ]
        np.testing.assert_allclose(pull(W), numeric, rtol=1e-6, atol=1e-7)
        np.testing.assert_allclose(pull(2.0 * W), 2.0 * pull(W), rtol=1e-12)  # may be called again

    def test_input_gradient(self, kernel: Kernel, X: np.ndarray, Z: np.ndarray) -> None:
        W = np.random.default_rng(3).normal(size=(len(X), len(Z)))
        K, pull = kernel.pull_input(X, Z)
        np.testing.assert_allclose(K, kernel(X, Z), rtol=1e-13)
        numeric = np.stack(
            [(W * (kernel(X + h, Z) - kernel(X - h, Z))).sum(axis=1) / 2e-6 for h in 1e-6 * np.eye(3)], 1
        )
        np.testing.assert_allclose(pull(W), numeric, rtol=1e-6, atol=1e-7)

    def test_diagonal_gradient(self, kernel: Kernel, X: np.ndarray) -> None:
        numeric = np.stack([(kernel.diag(X + h) - kernel.diag(X - h)) / 2e-6 for h in 1e-6 * np.eye(3)], axis=1)
        np.testing.assert_allclose(kernel.diag_gradient(X), numeric, rtol=1e-6, atol=1e-7)

    def test_scaled(self, kernel: Kernel, X: np.ndarray) -> None:
        np.testing.assert_allclose(kernel.scaled(3.0)(X), 3.0 * kernel(X), rtol=1e-12)

    def test_serialization(self, kernel: Kernel) -> None:
        again = kernel_from_dict(json.loads(json.dumps(kernel.to_dict())))
        assert again == kernel
        assert hash(again) == hash(kernel)
        assert repr(again) == repr(kernel)

    def test_torch_equals_numpy(self, kernel: Kernel, X: np.ndarray, Z: np.ndarray) -> None:
        torch = pytest.importorskip("torch")
        A, B = torch.asarray(X), torch.asarray(Z)
        np.testing.assert_allclose(kernel(A, B).numpy(), kernel(X, Z), rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(kernel(A).numpy(), kernel(X), rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(kernel.diag(A).numpy(), kernel.diag(X), rtol=1e-14)

    def test_evaluating_at_many_theta(self, kernel: Kernel, X: np.ndarray) -> None:
        evaluate, rng = kernel.over(X), np.random.default_rng(4)
        for _ in range(3):
            theta = kernel.theta + rng.normal(size=kernel.theta.size)
            np.testing.assert_allclose(evaluate(theta)[0], kernel.with_theta(theta)(X), rtol=1e-12)

    def test_empty(self, kernel: Kernel, X: np.ndarray) -> None:
        assert kernel(X, X[:0]).shape == (7, 0)
        assert kernel.diag(X[:0]).shape == (0,)


@pytest.mark.parametrize(
    "kernel", [SE(ARD), Matern(0.5, ARD), Matern(1.5, 0.7), Matern(2.5, ARD), RationalQuadratic(ARD)]
)
def test_frequencies_reproduce_the_kernel(kernel: SE) -> None:
    omega = kernel.frequencies(40_000, 3, np.random.default_rng(5))
    gap = np.array([[0.3, -0.5, 0.4], [1.0, 0.2, -1.0]])
    estimate = np.cos(omega @ gap.T).mean(axis=0)
    np.testing.assert_allclose(estimate, kernel(np.zeros((1, 3)), gap)[0], atol=4 / np.sqrt(2 * 40_000))


@given(st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=2), st.floats(0.01, 100.0))
@settings(max_examples=50, deadline=None)
def test_stationary_kernels_ignore_shifts(shift: list[float], length: float) -> None:
    X = np.random.default_rng(6).normal(size=(6, 2))
    for kernel in (SE(length), Matern(0.5, length), RationalQuadratic(length)):
        np.testing.assert_allclose(kernel(X + shift), kernel(X), atol=1e-7)


def test_scalar_multiples_are_the_same_from_both_sides() -> None:
    assert 2.0 * SE() == SE() * 2.0 == SE(variance=2.0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SE(lengthscale=0.0), "lengthscale"),
        (lambda: SE(lengthscale=[1.0, np.nan]), "lengthscale"),
        (lambda: SE(lengthscale=[]), "lengthscale"),
        (lambda: SE(variance=-1.0), "variance"),
        (lambda: Matern(2.0), "nu"),
        (lambda: RationalQuadratic(alpha=np.inf), "alpha"),
        (lambda: SE().on([]), "dimensions"),
        (lambda: SE().on([0, 0]), "dimensions"),
        (lambda: SE().on([4])(np.zeros((1, 2))), "active dimension 4"),
        (lambda: SE([1.0, 2.0])(np.zeros((1, 3))), "length-scales"),
        (lambda: SE() * -1.0, "variance"),
        (lambda: kernel_from_dict({"kernel": "Unheard"}), "unknown kernel 'Unheard'"),
    ],
)
def test_bad_arguments(make: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()  # type: ignore[operator]


def test_kernels_are_immutable_values() -> None:
    lengths = np.array([1.0, 2.0])
    kernel = SE(lengths)
    lengths[0] = 9.0
    assert kernel.lengthscale[0] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        kernel.lengthscale[0] = 3.0


def test_a_constant_is_stored_under_its_name_of_0_1():
    kernel = ConstantKernel(2.0)
    assert kernel.to_dict() == {"kernel": "Constant", "variance": 2.0}
    assert kernel_from_dict({"kernel": "Constant", "variance": 2.0}) == kernel
    assert Linear(2.0).to_dict()["kernel"] == "Linear"
