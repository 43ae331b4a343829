"""The published curve model: its kernel, its hills, its forecasts, and the drawing of curves."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot.stopping import CurveModel, ExponentialDecay, OptimalStopping, PathModel, model_from_dict, register
from surefoot.stopping.curves import condition, decay, draw, model_to_dict, resample, within

N = np.arange(1, 9)
PLATEAU = 0.35 + 0.3 * np.exp(-0.2 * N)
DECAYING = 0.6 * np.exp(-0.05 * N)


def rng(seed=0):
    return np.random.default_rng(seed)


@settings(max_examples=40, deadline=None)
@given(alpha=st.floats(1e-3, 150.0), beta=st.floats(1e-3, 150.0))
def test_kernel_is_a_covariance(alpha, beta):
    K = decay(np.array([alpha]), np.array([beta]), 50)[0]
    np.testing.assert_array_equal(K, K.T)
    assert np.linalg.eigvalsh(K).min() > -1e-10
    assert (K <= 1).all()
    assert (np.diff(K, axis=1) <= 0).all()


def test_kernel_mixes_exponential_decays():
    """k(n, m) = E[exp(−λ(n + m))] with λ from the Gamma distribution."""
    rates = rng().gamma(2.0, 1 / 5.0, size=400_000)
    K = decay(np.array([2.0]), np.array([5.0]), 4)[0]
    n = np.arange(1, 5)
    simulated = np.exp(-rates[:, None, None] * (n[:, None] + n)).mean(axis=0)
    np.testing.assert_allclose(simulated, K, atol=3e-3)


@settings(max_examples=30, deadline=None)
@given(a=st.floats(-5.0, 4.0), b=st.floats(-4.0, 4.5), seed=st.integers(0, 99))
def test_gradient_of_the_likelihood(a, b, seed):
    errors = np.clip(DECAYING + 0.02 * rng(seed).standard_normal(8), 0.01, 0.99)
    model, theta, h = ExponentialDecay(), np.array([[a, b]]), 1e-5
    value, slope, information = model.log_likelihood(theta, errors)
    shifts = np.array([[h, 0], [-h, 0], [0, h], [0, -h]])
    ends = model.log_likelihood(theta + shifts, errors)[0]
    numeric = np.array([ends[0] - ends[1], ends[2] - ends[3]]) / (2 * h)
    np.testing.assert_allclose(slope[0], numeric, rtol=1e-4, atol=1e-4 * max(1.0, abs(value[0])))
    assert np.linalg.eigvalsh(information[0]).min() > -1e-8


def test_likelihood_is_that_of_a_gaussian():
    from scipy.stats import multivariate_normal

    K = decay(np.array([2.0]), np.array([7.0]), 8)[0] + 1e-3 * np.eye(8)
    expected = multivariate_normal(np.zeros(8), K).logpdf(DECAYING)
    found = ExponentialDecay().log_likelihood(np.log([[2.0, 7.0]]), DECAYING)[0][0]
    assert found == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize("seed", range(6))
def test_the_climb_finds_the_highest_hill(seed):
    """No point of a fine grid over the whole box is higher."""
    r = rng(seed)
    errors = r.uniform(0, 0.4) + r.uniform(0.1, 0.5) * np.exp(-r.uniform(0.02, 0.6) * N) + 0.01 * r.standard_normal(8)
    errors = np.clip(errors, 0.01, 0.99)
    model = ExponentialDecay()
    alpha, beta = model.parameters(errors)
    best = model.log_likelihood(np.log([[alpha[0], beta[0]]]), errors)[0][0]
    axis = np.linspace(*np.log(model.bounds), 60)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    assert best >= model.log_likelihood(grid, errors)[0].max() - 1e-3
    assert 1e-3 <= alpha[0] <= 150
    assert 1e-3 <= beta[0] <= 150


def test_a_plateau_is_forecast_to_go_on_falling():
    """Card value: 8 points of 0.35 + 0.3 exp(−0.2 n) forecast 0.058 ± 0.039 at epoch 50; the truth is 0.35."""
    model = ExponentialDecay()
    alpha, beta = model.parameters(PLATEAU)
    mean, root = condition(decay(alpha, beta, 50), PLATEAU, np.array([1e-3]), 10)
    assert mean[0, -1] == pytest.approx(0.058, abs=0.002)
    assert np.linalg.norm(root[0, -1]) == pytest.approx(0.039, abs=0.002)


def test_the_printed_conjugate_rule_is_unusable():
    """With errors around 0.2 it is certain of zero error at epoch 50, whatever was measured."""
    errors = np.full(8, 0.21)
    alpha, beta = ExponentialDecay(hyper="conjugate").parameters(errors)
    assert (alpha[0], beta[0]) == (8.0, pytest.approx(1.68))
    K = decay(alpha, beta, 50)[0]
    assert K[0, 0] == pytest.approx(2e-3, rel=0.3)
    assert K[-1, -1] < 1e-13
    last = ExponentialDecay(hyper="conjugate").sample(errors, 50, 2000, rng())[:, -1]
    assert last.max() < 1e-5


def test_falling_steps_are_favored_not_enforced():
    """Card values: 96 to 100 % of the steps fall for a decaying curve, about half for a flat one."""

    def share(errors):
        return np.mean(np.diff(ExponentialDecay().sample(errors, 50, 4000, rng()), axis=1) < 0)

    assert share(DECAYING) > 0.94
    assert 0.4 < share(np.full(8, 0.5)) < 0.7


def test_few_eigenvectors_are_enough():
    alpha, beta = ExponentialDecay().parameters(DECAYING)
    K = decay(alpha, beta, 50)
    mean, root = condition(K, DECAYING, np.array([1e-3]), 10)
    S = K[0, :8, :8] + 1e-3 * np.eye(8)
    A = np.linalg.solve(S, K[0, :8, 8:]).T
    np.testing.assert_allclose(mean[0], A @ DECAYING, atol=1e-12)
    np.testing.assert_allclose(root[0] @ root[0].T, K[0, 8:, 8:] - A @ K[0, :8, 8:], atol=1e-9)


def test_draws_have_the_mean_and_the_covariance():
    alpha, beta = ExponentialDecay().parameters(DECAYING)
    mean, root = condition(decay(alpha, beta, 30), DECAYING, np.array([1e-3]), 10)
    curves = draw(mean, root, 60_000, rng())
    assert curves.shape == (60_000, 22)
    np.testing.assert_allclose(curves.mean(axis=0), mean[0], atol=2e-3)
    np.testing.assert_allclose(np.cov(curves.T), root[0] @ root[0].T, atol=3e-4)


def test_draws_are_shared_out_equally():
    curves = draw(np.array([[0.0], [1.0], [2.0]]), np.zeros((3, 1, 1)), 7, rng())
    assert curves[:, 0].tolist() == [0, 0, 0, 1, 1, 1, 2]


def test_curves_stay_inside():
    curves = ExponentialDecay().sample(DECAYING, 50, 5000, rng())
    assert curves.min() > 0
    assert curves.max() < 1
    assert 4000 < len(curves) <= 5000


@pytest.mark.parametrize("errors", [np.zeros(8), np.ones(8), np.linspace(1.0, 0.0, 8)])
@pytest.mark.parametrize("hyper", ["ml", "grid", "conjugate"])
def test_extreme_curves(errors, hyper):
    curves = ExponentialDecay(hyper=hyper).sample(errors, 20, 2000, rng())
    assert np.isfinite(curves).all()
    assert curves.min() > 0
    assert curves.max() < 1
    assert len(curves) >= 200


def test_hardly_any_curve_inside_means_clipping():
    wild = np.where(np.arange(2000)[:, None] < 50, 0.5, -0.5) * np.ones(3)
    assert len(within(wild)) == 2000
    assert within(wild).min() > 0
    mild = np.where(np.arange(2000)[:, None] < 1000, 0.5, -0.5) * np.ones(3)
    assert len(within(mild)) == 1000


def test_grid_average_is_wider_than_one_hill():
    """Its forecasts cover what every likely pair (α, β) says; one summit does not."""
    one = ExponentialDecay().sample(PLATEAU, 50, 20_000, rng())[:, -1]
    many = ExponentialDecay(hyper="grid").sample(PLATEAU, 50, 20_000, rng())[:, -1]
    assert many.std() > 1.2 * one.std()


def test_resampling_is_even():
    weights = np.array([0.1, 0.2, 0.3, 0.4])
    chosen = np.bincount(resample(np.log(weights) - 700.0, 1000, rng()), minlength=4)
    assert (np.abs(chosen - 1000 * weights) <= 1).all()


def test_longer_prefixes_narrow_the_forecast():
    errors = 0.6 * np.exp(-0.05 * np.arange(1, 50))
    spread = [ExponentialDecay().sample(errors[:n], 50, 4000, rng())[:, -1].std() for n in (8, 25, 49)]
    assert spread[0] > spread[1] > spread[2]
    assert ExponentialDecay().sample(errors, 50, 100, rng()).shape[1] == 1


class TestOwnModels:
    def test_a_curve_model_is_anything_that_samples(self):
        class Repeats:
            def sample(self, errors, horizon, paths, rng):
                return np.full((paths, horizon - len(errors)), errors[-1])

        model: CurveModel = Repeats()
        table = OptimalStopping(epochs=10, initial=2, paths=100, model=model).fit([0.5, 0.6], 0.9, rng())
        assert table.forecast == 0.0
        assert table.decide(3, 0.4).action == "stop"

    def test_a_path_model_brings_its_labels(self):
        """The best of a stretch, not the last value, decides: as in attacks that keep the best query."""

        class Best:
            def simulate(self, errors, horizon, threshold, paths, rng):
                curves = rng.random((paths, horizon - len(errors)))
                return curves, curves.min(axis=1) < 1.0 - threshold

        model = Best()
        assert isinstance(model, PathModel)
        assert not isinstance(ExponentialDecay(), PathModel)
        table = OptimalStopping(epochs=12, initial=2, paths=5000, model=model).fit([0.5, 0.6], 0.9, rng())
        assert table.forecast == pytest.approx(1 - 0.9**10, abs=0.02)

    def test_wrong_shapes_are_refused(self):
        class Short:
            def sample(self, errors, horizon, paths, rng):
                return np.zeros((paths, 3))

        with pytest.raises(ValueError, match=r"Short must return paths of shape \(S, 8\)"):
            OptimalStopping(epochs=10, initial=2, paths=10, model=Short()).fit([0.5, 0.6], 0.9, rng())
        with pytest.raises(TypeError, match="sample or simulate"):
            OptimalStopping(epochs=10, model=object())

    def test_storing(self):
        @register
        @dataclass(frozen=True)
        class Shifted:
            shift: float = 0.0

            def sample(self, errors, horizon, paths, rng):
                return np.full((paths, horizon - len(errors)), errors[-1] + self.shift)

        assert model_from_dict(model_to_dict(Shifted(0.5))) == Shifted(0.5)

        class Unknown(Shifted):
            pass

        with pytest.raises(TypeError, match="register"):
            model_to_dict(Unknown())
        with pytest.raises(ValueError, match="unknown curve model 'Nothing'"):
            model_from_dict({"model": "Nothing"})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"hyper": "guess"}, "guess"),
        ({"noise": 0.0}, "variance"),
        ({"noise": math.nan}, "variance"),
        ({"rank": 0}, "rank"),
        ({"bounds": (1.0, 0.1)}, "bounds"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        ExponentialDecay(**options)
