"""Fitting: summits against SciPy, invariances, purity, hard inputs, slice sampling."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize, rosen, rosen_der

from surefoot.belief import GP, SE, Fixed, Linear, LogNormal, Matern, MixturePosterior, TwoPiece
from surefoot.belief.fit import Evidence, climb, slice_sample
from surefoot.belief.priors import prior_from_dict
from surefoot.domain import Box


def data(n: int = 40, d: int = 3, noise: float = 0.0, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.random((n, d))
    return X, np.sin(6.0 * X[:, 0]) + X[:, 1] ** 2 + noise * rng.normal(size=n)


def rng() -> np.random.Generator:
    return np.random.default_rng(7)


class TestPriors:
    def test_the_bell_of_a_log_normal_is_the_density_of_the_value(self) -> None:
        from scipy.stats import lognorm

        center, std, _ = LogNormal(0.4, 1.3).bell
        theta = np.linspace(-4.0, 4.0, 9)
        density = lognorm(1.3, scale=math.exp(0.4)).logpdf(np.exp(theta))
        np.testing.assert_allclose(np.diff(density), np.diff(-0.5 * ((theta - center) / std) ** 2))

    @pytest.mark.parametrize("prior", [LogNormal(0.4, 1.3), TwoPiece(1.5, 0.4, 1.7)])
    def test_a_fit_sees_the_prior_as_its_bell(self, prior: LogNormal | TwoPiece) -> None:
        X, y = data(8)
        noise, center = np.full(8, np.nan), prior.bell[0]
        with_prior = Evidence(
            GP(SE(0.3), noise=0.1, mean=0.2, priors={"lengthscale": prior, "mean": Fixed()}), X, y, noise
        )
        without = Evidence(GP(SE(0.3), noise=0.1, mean=0.2, priors={"mean": Fixed()}), X, y, noise)
        for step, std in ((-0.7, prior.bell[1]), (2.0, prior.bell[2])):
            theta = np.array([0.0, center + step, math.log(0.1)])
            penalty = 0.5 * (step / std) ** 2
            assert without(theta)[0] - with_prior(theta)[0] == pytest.approx(penalty)
            slope = without(theta)[1] - with_prior(theta)[1]
            np.testing.assert_allclose(slope, [0.0, step / std**2, 0.0], atol=1e-9)
        assert math.exp(center) == pytest.approx(prior.mode)
        assert prior.scaled(3.0).mode == pytest.approx(3.0 * prior.mode)

    def test_serialization_and_bad_arguments(self) -> None:
        for prior in (LogNormal(1.0, 2.0), TwoPiece(1.0, 2.0, 3.0), Fixed(), Fixed(3.0)):
            assert prior_from_dict(prior.to_dict()) == prior
        for make in (
            lambda: LogNormal(0.0, 0.0),
            lambda: LogNormal(math.nan, 1.0),
            lambda: TwoPiece(1.0, 0.0, 1.0),
            lambda: Fixed(math.inf),
            lambda: prior_from_dict({"prior": "Cauchy"}),
        ):
            with pytest.raises(ValueError):
                make()


class TestClimb:
    def test_finds_the_summit_of_a_bent_ridge(self) -> None:
        top, height, _ = climb(
            lambda x: (-rosen(x), -rosen_der(x)), np.array([-1.0, 2.0, 0.5]), tolerance=1e-10, steps=200
        )
        np.testing.assert_allclose(top, 1.0, atol=1e-3)
        assert height == pytest.approx(0.0, abs=1e-6)

    def test_gives_up_below_a_rival_only(self) -> None:
        def run(rival: float) -> tuple[float, int]:
            calls = []

            def hill(x: np.ndarray) -> tuple[float, np.ndarray]:
                calls.append(x)
                return -rosen(x), -rosen_der(x)

            return climb(hill, np.array([-1.0, 2.0, 0.5]), tolerance=1e-10, steps=200, rival=rival)[1], len(calls)

        height, calls = run(-math.inf)
        assert run(-1e6) == (height, calls)  # a rival far below changes nothing
        assert run(1e6)[1] < calls / 2

    def test_survives_cliffs_and_plains(self) -> None:
        def cliff(x: np.ndarray) -> tuple[float, np.ndarray]:
            return (-math.inf, np.zeros(1)) if x[0] > 1.0 else (float(x[0]), np.ones(1))

        assert climb(cliff, np.array([0.0]))[0][0] <= 1.0
        np.testing.assert_array_equal(climb(lambda x: (0.0, np.zeros(2)), np.ones(2))[0], np.ones(2))


def automatic(d: int = 3) -> GP:
    return GP.automatic(Box.unit(d))


def density(gp: GP, X: np.ndarray, y: np.ndarray, fitted: GP) -> float:
    """The objective of a fit at its result."""
    z, scale = (y - y.mean()) / y.std(ddof=1), y.std(ddof=1)
    evidence = Evidence(gp, X, z, np.full(len(y), np.nan))
    theta = np.append(fitted.kernel.scaled(scale**-2).theta, math.log(fitted.noise / scale**2 - gp.floor))
    return evidence(theta[evidence.free], gradient=False)[0]


@pytest.mark.parametrize("noise", [0.0, 0.3])
@pytest.mark.parametrize("n", [6, 30, 300])
def test_reaches_the_best_of_many_scipy_climbs(n: int, noise: float) -> None:
    X, y = data(n, noise=noise)
    gp = automatic()
    evidence = Evidence(gp, X, (y - y.mean()) / y.std(ddof=1), np.full(n, np.nan))

    def down(x: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = evidence(x)
        return (1e10 if math.isinf(value) else -value), -slope

    generator = np.random.default_rng(1)
    center = evidence.center[evidence.free]
    starts = center + generator.normal(size=(3 if n == 300 else 10, len(center)))
    best = max(-minimize(down, start, jac=True, method="L-BFGS-B").fun for start in starts)
    assert density(gp, X, y, gp.fit(X, y, rng=rng())) > best - 0.2


def test_evidence_gradient_agrees_with_differences() -> None:
    X, y = data(20)
    gp = replace(automatic(), priors={**(automatic().priors or {}), "variance": TwoPiece(1.0, 0.3, 2.0)})
    evidence = Evidence(gp, X, y, np.where(np.arange(20) < 5, 0.1, np.nan))
    x = evidence.center[evidence.free] + 0.3
    _, slope = evidence(x)
    numeric = [(evidence(x + h)[0] - evidence(x - h)[0]) / 2e-6 for h in 1e-6 * np.eye(len(x))]
    np.testing.assert_allclose(slope, numeric, rtol=1e-5, atol=1e-5)


def test_the_mean_is_the_generalized_least_squares_one() -> None:
    X, y = data(15)
    gp = automatic().fit(X, y + 100.0)
    S = gp.kernel(X) + gp.noise * np.eye(15)
    one = np.ones(15)
    assert gp.mean == pytest.approx(one @ np.linalg.solve(S, y + 100.0) / (one @ np.linalg.solve(S, one)), rel=1e-9)


def test_a_fit_is_a_pure_function() -> None:
    X, y = data(25)
    gp = automatic()
    first = gp.fit(X, y, rng=rng())
    assert gp.fit(X, y, rng=rng()) == first
    other = gp.fit(X[:5], 3.0 * y[:5], rng=rng())
    # What an earlier fit found plays no part; only the last bits of the way back to standardized units differ.
    again = other.fit(X, y, rng=rng())
    np.testing.assert_allclose(again.theta, first.theta, rtol=1e-6)


@pytest.mark.parametrize("scale", [1e-8, 1e-3, 1e8])
def test_units_of_the_values_do_not_matter(scale: float) -> None:
    X, y = data(25)
    gp = automatic()
    one, other = gp.fit(X, y, rng=rng()), gp.fit(X, scale * (y - 5.0), rng=rng())
    np.testing.assert_allclose(other.kernel.scaled(scale**-2).theta, one.kernel.theta, atol=1e-4)
    assert other.noise / scale**2 == pytest.approx(one.noise, rel=1e-3)
    assert other.mean / scale + 5.0 == pytest.approx(one.mean, rel=1e-4)
    Z = data(9, seed=3)[0]
    mean, std = one.condition(X, y).predict(Z)
    np.testing.assert_allclose(other.condition(X, scale * (y - 5.0)).mean(Z) / scale + 5.0, mean, atol=1e-4)
    np.testing.assert_allclose(other.condition(X, scale * (y - 5.0)).std(Z) / scale, std, atol=1e-4)


@pytest.mark.parametrize("scale", [1e-320, 1e-160, 1e-155, 1e-152, 1e150])
def test_values_at_the_ends_of_the_doubles_can_be_fitted(scale: float) -> None:
    X, y = data(12)
    values = scale * y / np.abs(y).max()
    mean, std = automatic().fit(X, values, rng=rng()).condition(X, values).predict(X)
    assert np.isfinite(mean).all()
    assert np.isfinite(std).all()


def test_units_of_the_points_do_not_matter() -> None:
    X, y = data(25)
    width = np.array([1e-3, 1.0, 1e4])
    one = automatic().fit(X, y, rng=rng())
    other = GP.automatic(Box([(0.0, w) for w in width])).fit(X * width, y, rng=rng())
    np.testing.assert_allclose(other.kernel.lengthscale / width, one.kernel.lengthscale, rtol=1e-4)  # type: ignore[attr-defined]


def test_finds_what_matters_and_how_noisy_it_is() -> None:
    X, y = data(80, noise=0.3)
    gp = automatic().fit(X, y)
    assert 0.05 < gp.noise < 0.2
    lengths = gp.kernel.lengthscale  # type: ignore[attr-defined]
    assert lengths[0] < lengths[1] < lengths[2]
    X, y = data(80)
    exact = automatic().fit(X, y)
    assert exact.noise < 2e-4
    Z, truth = data(50, seed=5)
    assert np.abs(exact.condition(X, y).mean(Z) - truth).max() < 0.1


def test_maximum_likelihood_without_priors() -> None:
    X, y = data(60, 2, noise=0.1)
    gp = GP(SE(5.0) + Linear(1.0), noise=1.0)
    fitted = gp.fit(X, y)
    assert fitted.log_likelihood(X, y) > gp.log_likelihood(X, y) + 30.0
    assert 0.003 < fitted.noise < 0.03
    _, slope = fitted.log_likelihood(X, y, gradient=True)
    assert np.abs(slope[:3]).max() < 1.0


def test_fixed_parameters_stay() -> None:
    X, y = data(20)
    gp = GP(SE([0.3, 0.4, 0.5], variance=2.0), 0.02, mean=1.5, priors={"lengthscale": Fixed(), "noise": Fixed()})
    fitted = gp.fit(X, y)
    np.testing.assert_allclose(fitted.kernel.lengthscale, [0.3, 0.4, 0.5], rtol=1e-12)  # type: ignore[attr-defined]
    assert fitted.noise == pytest.approx(0.02)
    assert fitted.mean != 1.5
    everything = dict.fromkeys(("lengthscale", "variance", "noise", "mean"), Fixed())
    held = replace(gp, priors=everything, standardize=True).fit(X, y)
    np.testing.assert_allclose(held.theta, gp.theta, rtol=1e-9)
    assert held.mean == pytest.approx(1.5)
    pinned = replace(gp, priors={**everything, "noise": Fixed(0.3), "mean": Fixed(0.0)}, standardize=True).fit(X, y)
    assert pinned.noise == pytest.approx(0.3 * y.var(ddof=1))
    assert pinned.mean == pytest.approx(y.mean())
    exact = replace(gp, priors={**everything, "noise": Fixed(0.0), "mean": Fixed(-2.0)}).fit(X, y)
    assert exact.noise < 1e-200
    assert exact.mean == -2.0


def test_noise_that_is_known_is_not_fitted() -> None:
    X, y = data(80, noise=0.3)
    known = automatic().fit(X, y, np.full(80, 0.09))
    assert known.noise == pytest.approx(automatic().fit(X[:1], y[:1]).noise * y.var(ddof=1), rel=0.1)  # the prior's
    half = automatic().fit(X, y, np.where(np.arange(80) < 40, 0.09, np.nan))
    assert 0.04 < half.noise < 0.2


class TestHardInputs:
    @pytest.mark.parametrize("n", [1, 2, 3, 5])
    @pytest.mark.parametrize("d", [1, 6])
    def test_few_measurements(self, n: int, d: int) -> None:
        generator = np.random.default_rng(n)
        X, y = generator.random((n, d)), generator.normal(size=n)
        self.check(automatic(d), X, y)

    @pytest.mark.parametrize("value", [0.0, 5.0, -1e8, 1e-8])
    @pytest.mark.parametrize("n", [1, 2, 10])
    def test_constant_values(self, n: int, value: float) -> None:
        X, y = np.random.default_rng(0).random((n, 2)), np.full(n, value)
        gp = self.check(automatic(2), X, y)
        assert gp.mean == pytest.approx(value, rel=1e-9, abs=1e-12)

    @pytest.mark.parametrize("noise", [None, 1e-12])
    def test_duplicates(self, noise: float | None) -> None:
        X, y = data(10)
        X, y = np.repeat(X, 5, axis=0), np.repeat(y, 5)
        self.check(automatic(), X, y, None if noise is None else np.full(50, noise))
        y[::2] += 0.1  # now they contradict each other
        self.check(automatic(), X, y, None if noise is None else np.full(50, noise))

    def test_thirty_dimensions(self) -> None:
        self.check(automatic(30), *data(40, 30))

    def test_one_coordinate_never_varies(self) -> None:
        X, y = data(20)
        X[:, 2] = 4.0
        self.check(GP.automatic(Box([(0.0, 1.0), (0.0, 1.0), (4.0, 4.0)])), X, y)

    def test_an_outlier(self) -> None:
        X, y = data(20)
        y[3] = -1e12
        self.check(automatic(), X, y)

    def test_likelihood_without_noise(self) -> None:
        X, y = data(20)
        assert math.isfinite(GP(SE(0.3), noise=0.0).log_likelihood(X, y))

    def test_nothing(self) -> None:
        gp = automatic()
        assert gp.fit(np.empty((0, 3)), np.empty(0)) is gp

    @staticmethod
    def check(gp: GP, X: np.ndarray, y: np.ndarray, noise: np.ndarray | None = None) -> GP:
        fitted = gp.fit(X, y, noise)
        mean, std, dmean, dstd = fitted.condition(X, y, noise).gradient(
            np.random.default_rng(1).random((20, X.shape[1]))
        )
        assert all(np.isfinite(part).all() for part in (mean, std, dmean, dstd))
        spread = np.ptp(y) or max(1.0, abs(y[0]))
        assert (np.abs(mean - y.mean()) < 20.0 * spread).all()
        assert fitted.noise > 0
        return fitted


class TestSliceSampling:
    def test_without_information_the_draws_follow_the_prior(self) -> None:
        gp = GP(
            SE(1.0), priors={"lengthscale": LogNormal(1.0, 0.5), "variance": Fixed(), "noise": LogNormal(-2.0, 1.0)}
        )
        evidence = Evidence(replace(gp, floor=0.5), np.zeros((1, 1)), np.zeros(1), np.full(1, 0.1))
        draws = np.array(slice_sample(evidence, np.array([1.0, -2.0]), 600, rng()))
        np.testing.assert_allclose(draws.mean(axis=0), [1.0 - 0.25, -2.0 - 1.0], atol=0.15)  # the log of the modes
        np.testing.assert_allclose(draws.std(axis=0), [0.5, 1.0], rtol=0.2)

    def test_a_sampled_gp_conditions_to_a_mixture(self) -> None:
        X, y = data(12, 2)
        gp = GP.automatic(Box.unit(2), samples=6)
        fitted = gp.fit(X, y, rng=rng())
        assert gp.fit(X, y, rng=rng()) == fitted
        assert len(fitted.members) == 6
        assert len({member.noise for member in fitted.members}) == 6
        post = fitted.condition(X, y)
        assert isinstance(post, MixturePosterior)
        np.testing.assert_allclose(post.mean(X), y, atol=0.3)
        best = replace(fitted, members=())
        assert min(m.log_likelihood(X, y) for m in fitted.members) > best.log_likelihood(X, y) - 20.0

    def test_other_kernels(self) -> None:
        X, y = data(10, 2)
        assert len(GP.automatic(Box.unit(2), kernel=Matern(2.5), samples=2).fit(X, y).members) == 2
