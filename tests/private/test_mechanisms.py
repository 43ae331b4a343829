"""Mechanisms that protect: scaling, calibration, guarantees, and learnt public numbers."""

from __future__ import annotations

import json
import logging
import math

import numpy as np
import pytest
from scipy.stats import norm

from surefoot import GP, SE, BudgetSpent
from surefoot.errors import SurefootError
from surefoot.private import (
    FullLift,
    GaussianEvent,
    GaussianRelease,
    Guarantee,
    LaplaceRelease,
    Ledger,
    PublicScale,
    PublishedProjection,
    ResearchNoise,
    SystemNoise,
    gaussian_delta,
    gaussian_scale,
    learn_bounds,
    learn_hyperparameters,
)
from surefoot.private import (
    audit as attacks,
)
from surefoot.private.cases import AUDITS
from surefoot.private.guarantee import Failure

SECRET = 123.456789


@pytest.mark.parametrize(
    ("power", "delta", "scale"), [(0.0, 1e-5, 3.731), (1.1, 1e-5, 1.389), (2.3, 1e-3, 0.407), (2.8, 1e-4, 0.311)]
)
def test_the_analytic_scale_meets_its_condition_with_equality(power, delta, scale):
    epsilon = math.exp(power)
    mechanism = GaussianRelease(epsilon=epsilon, delta=delta, calibration="analytic").research(seed=0)
    s = mechanism.noise_scale
    assert s == pytest.approx(scale, abs=5e-4)
    assert norm.cdf(0.5 / s - epsilon * s) - math.exp(epsilon) * norm.cdf(-0.5 / s - epsilon * s) == pytest.approx(
        delta, rel=1e-6
    )
    certified = GaussianRelease(epsilon=epsilon, delta=delta)
    assert certified.noise_scale > s  # OpenDP's conversion is looser
    assert gaussian_delta(certified.noise_scale, epsilon) < delta
    assert certified.guarantee(10, 2).analytic < epsilon


def test_a_hockey_stick_estimate_stays_below_delta():
    """δ(ε) = E max(0, 1 − e^(ε − loss)) over releases of the first table, the loss against its neighbor."""
    epsilon, delta = 1.0, 0.05
    mechanism = GaussianRelease(epsilon=epsilon, delta=delta, calibration="analytic").research(seed=5)
    one = np.zeros((200_000, 2))
    Z = mechanism.transform(one)
    s, move = mechanism.noise_scale, np.array([1.0, 0.0])
    loss = (((Z - move) ** 2).sum(axis=1) - (Z**2).sum(axis=1)) / (2 * s**2)
    estimate = np.maximum(0.0, -np.expm1(epsilon - loss))
    error = estimate.std() / math.sqrt(len(estimate))
    assert abs(estimate.mean() - delta) < 4 * error


def test_noise_has_the_stated_size_and_comes_from_the_system():
    X = np.zeros((4000, 2))
    for mechanism, features in (
        (GaussianRelease(epsilon=1.0, delta=1e-5), 2),
        (LaplaceRelease(epsilon=1.0), 2),
        (FullLift(epsilon=3.0, delta=1e-5, dimension=2), 2),
    ):
        Z = mechanism.transform(X)
        assert Z.std() == pytest.approx(mechanism.spread(features), rel=0.05)
        assert not np.array_equal(Z, mechanism.transform(X))
        assert not mechanism.simulated


def test_clipping_never_moves_rows_apart():
    rng = np.random.default_rng(0)
    scale = PublicScale.within([(-1.0, 1.0), (0.0, 10.0), (5.0, 6.0)], radius=25.0)
    X, Y = rng.normal(0.0, 20.0, (2, 500, 3))
    before = np.linalg.norm((X - Y) / scale.scale, axis=1)
    assert (np.linalg.norm(scale.apply(X) - scale.apply(Y), axis=1) <= before + 1e-9).all()
    assert np.linalg.norm(scale.apply(X), axis=1).max() <= 25.0 + 1e-9
    ball = PublicScale([1.0, 2.0, 3.0], 0.5, radius=4.0)
    before = np.linalg.norm((X - Y) / 0.5, axis=1)
    assert (np.linalg.norm(ball.apply(X) - ball.apply(Y), axis=1) <= before + 1e-9).all()


def test_a_box_fits_the_ball_and_the_neighbor_has_original_units():
    mechanism = GaussianRelease(epsilon=1.0, delta=1e-5, bounds=[(0.0, 100.0), (0.0, 2.0)], radius=25.0, neighbor=1.0)
    corner = mechanism.preprocessing.apply(np.array([[100.0, 2.0]]))
    assert np.linalg.norm(corner) == pytest.approx(25.0)
    features = mechanism.guarantee(5, 2).features
    moved = mechanism.preprocessing.apply(np.array([[50.0, 1.0], [50.0 + features[0], 1.0], [50.0, 1.0 + features[1]]]))
    np.testing.assert_allclose(np.linalg.norm(moved[1:] - moved[0], axis=1), 1.0)


def test_a_replacement_costs_the_width_of_the_ball():
    mechanism = GaussianRelease(epsilon=1.0, delta=1e-5, radius=25.0, neighbor=math.inf)
    assert mechanism.sensitivity == 50.0
    assert mechanism.noise_scale == pytest.approx(50.0 * SystemNoise.certified_scale(1.0, 1e-5))
    guarantee = mechanism.guarantee(5, 2)
    assert guarantee.features == (math.inf, math.inf)
    assert Guarantee.from_dict(json.loads(json.dumps(guarantee.to_dict(), allow_nan=False))) == guarantee


def test_a_public_projection_does_not_raise_the_sensitivity():
    mechanism = GaussianRelease(epsilon=1.0, delta=1e-5, dimension=5)
    P = mechanism.projection(40)
    np.testing.assert_allclose(P.T @ P, np.eye(5), atol=1e-12)
    assert np.array_equal(P, GaussianRelease(epsilon=9.0, delta=1e-5, dimension=5).projection(40))  # public
    assert mechanism.transform(np.zeros((3, 40))).shape == (3, 5)
    assert mechanism.transform(np.zeros((3, 4))).shape == (3, 4)  # nothing to save
    assert mechanism.noise_scale == GaussianRelease(epsilon=1.0, delta=1e-5).noise_scale


def test_less_noise_than_certified_is_for_research_only():
    mechanism = GaussianRelease(epsilon=1.0, delta=1e-5, calibration="analytic")
    with pytest.raises(ValueError, match="research"):
        mechanism.transform(np.zeros((2, 2)))


def test_the_full_lift_is_proved_by_conditioning_on_the_projection():
    mechanism = FullLift(epsilon=3.0, delta=1e-5, dimension=10)
    assert mechanism.spread(2) == pytest.approx(309.0, abs=0.5)
    assert mechanism.guarantee(100, 2).analytic < 0.05
    assert mechanism.event(100, 2).delta < 1e-6
    rows = np.random.default_rng(0).normal(size=(4, 2))
    Z = mechanism.research(seed=0)._randomize(np.broadcast_to(rows, (20_000, 4, 2)))
    C = rows - rows.mean(axis=0)
    covariance = np.einsum("tnr,tmr->nm", Z, Z) / len(Z)
    expected = C @ C.T + mechanism.omega**2 * np.eye(4)
    np.testing.assert_allclose(covariance, expected, atol=0.02 * mechanism.omega**2)
    with pytest.raises(ValueError, match="GaussianRelease"):
        FullLift(epsilon=50.0, delta=1e-5, dimension=1, radius=1e4, neighbor=1e4)


def test_pure_privacy_has_no_delta():
    mechanism = LaplaceRelease(epsilon=2.0, neighbor=1.0)
    assert mechanism.scale_for(4) == 1.0
    assert mechanism.guarantee(3, 4).delta == 0.0
    assert mechanism.event(3, 4).epsilon == 2.0


@pytest.mark.parametrize("setting", [(0.5, 1e-3), (1.0, 1e-5), (3.0, 1e-3)])
@pytest.mark.parametrize("name", sorted(set(AUDITS) - {"published-projection"}))
def test_no_audit_refutes_a_claim(name, setting):
    case = AUDITS[name](*setting)
    found = attacks.audit(
        case.release, case.one, case.two, delta=case.delta, claim=case.epsilon, score=case.score, trials=100_000
    )
    assert found.claim is not None
    assert not found.refuted


def test_the_audit_tells_published_neighbors_apart():
    case = AUDITS["published-projection"](0.5, 1e-3)
    found = attacks.audit(case.release, case.one, case.two, delta=case.delta, score=case.score, trials=20_000)
    assert case.epsilon is None
    assert found.bound.epsilon > 7.0  # as much as so many trials can show


def test_a_guarantee_is_honest():
    with pytest.raises(ValueError, match="known failures"):
        Guarantee(mechanism="x", epsilon=1.0, delta=0.1, failures=(Failure("rank", "because"),))
    with pytest.raises(ValueError, match="together"):
        Guarantee(mechanism="x", epsilon=1.0)
    for wrong in (-1.0, math.inf, math.nan):
        with pytest.raises(ValueError, match="epsilon must be finite and not negative"):
            Guarantee(mechanism="x", epsilon=wrong, delta=0.1)
    for wrong in (-0.1, 1.0, math.nan):
        with pytest.raises(ValueError, match=r"delta must lie in \[0, 1\)"):
            Guarantee(mechanism="x", epsilon=1.0, delta=wrong)
    text = str(GaussianRelease(epsilon=1.0, delta=1e-5, scale=[2.0]).guarantee(10, 1))
    assert "(1, 1e-05)-differentially private" in text
    assert "exact accounting" in text
    assert "original units: 2" in text


@pytest.mark.parametrize(
    "options",
    [
        {"epsilon": 0.0},
        {"epsilon": 1e6},
        {"delta": 0.0},
        {"delta": 1.0},
        {"neighbor": 0.0},
        {"radius": math.inf},
        {"bounds": [(1.0, 0.0)]},
        {"scale": -1.0},
        {"bounds": [(0.0, 1.0)], "scale": 2.0},
        {"calibration": "some"},
        {"dimension": 0},
    ],
)
def test_bad_parameters_are_refused(options):
    with pytest.raises(ValueError):
        GaussianRelease(**{"epsilon": 1.0, "delta": 1e-5, **options})


@pytest.mark.parametrize("bad", [[[SECRET, math.nan]], [SECRET, 1.0], [["x", SECRET]], [[]]])
def test_messages_about_bad_data_show_no_value(bad):
    with pytest.raises((ValueError, TypeError)) as caught:
        GaussianRelease(epsilon=1.0, delta=1e-5).transform(bad)
    assert "123" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_nothing_is_logged(caplog):
    with caplog.at_level(logging.DEBUG):
        GaussianRelease(epsilon=1.0, delta=1e-5).transform([[SECRET]])
    assert "123" not in caplog.text


def test_research_noise_repeats_and_says_so():
    for mechanism in (
        GaussianRelease(epsilon=1.0, delta=1e-5),
        LaplaceRelease(epsilon=1.0),
        FullLift(epsilon=1.0, delta=1e-5, dimension=3),
        PublishedProjection(epsilon=1.0, delta=1e-5, dimension=3, accept_no_guarantee=True),
    ):
        X = np.random.default_rng(0).normal(size=(9, 2))
        one, two = (mechanism.research(seed=4).transform(X) for _ in range(2))
        np.testing.assert_array_equal(one, two)
        assert mechanism.research(seed=4).simulated
        assert "simulated" in repr(mechanism.research(seed=4))


# -- learnt public numbers --------------------------------------------------------------------------------------------


def test_learnt_bounds_hold_most_records_and_are_charged():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(50.0, 5.0, 20_000), rng.exponential(1.0, 20_000)])
    ledger = Ledger(epsilon=1.2, delta=1e-5)
    options = {"limits": [(0.0, 1000.0), (-100.0, 100.0)], "epsilon": 1.0, "delta": 1e-5, "bins": 100}
    learned = learn_bounds(X, ledger=ledger, **options)
    (low, high), (bottom, top) = learned.value
    assert 20.0 <= low <= 50.0 < high <= 80.0
    assert -4.0 <= bottom <= 0.0 < top <= 20.0
    assert 0.5 < ledger.spent() <= 1.0
    assert learned.guarantee.epsilon == 1.0
    assert learned.guarantee.neighbor == math.inf
    with pytest.raises(BudgetSpent):
        learn_bounds(X, ledger=ledger, **options)
    assert GaussianRelease(epsilon=1.0, delta=1e-5, bounds=learned.value).transform(X).shape == X.shape


def test_the_counts_change_by_the_stated_sensitivity():
    """Noise so small that it is not there: what is published of neighbors differs by √2 per feature, at most."""

    class Seen:
        simulated = False

        def gaussian(self, values, scale):
            self.values = np.array(values)
            return self.values

    X = np.random.default_rng(0).random((100, 3))
    Y = X.copy()
    Y[5] = [0.99, -7.0, 0.5]
    seen = []
    for data in (X, Y):
        noise = Seen()
        learn_bounds(data, limits=[(0.0, 1.0)] * 3, epsilon=1.0, delta=1e-5, noise=noise)
        seen.append(noise.values)
    assert np.linalg.norm(seen[0] - seen[1]) <= math.sqrt(6.0) + 1e-12
    assert seen[0].sum() == 300.0


def test_votes_find_the_right_length():
    rng = np.random.default_rng(0)
    X = rng.random((600, 1))
    y = GP(SE(0.2), noise=1e-6).condition().sample(X, 1, rng)[0]
    beliefs = [GP(SE(length), noise=1e-4) for length in (0.005, 0.05, 0.2, 5.0)]
    ledger = Ledger(epsilon=2.5, delta=1e-5)
    learned = learn_hyperparameters(X, y, beliefs, epsilon=2.0, delta=1e-5, blocks=40, ledger=ledger)
    assert learned.value is beliefs[2]
    assert len(ledger.entries) == 1
    with pytest.raises(SurefootError, match="simulated"):
        learn_hyperparameters(X, y, beliefs, epsilon=2.0, delta=1e-5, ledger=ledger, noise=ResearchNoise(0))
    assert learn_hyperparameters(X, y, beliefs, epsilon=9.0, delta=1e-5, noise=ResearchNoise(0)).simulated


def test_bad_requests_to_learn_are_refused():
    for bad in ({"trim": 0.7}, {"bins": 1}, {"limits": [(0.0, 1.0), (0.0, 1.0)]}):
        with pytest.raises(ValueError):
            learn_bounds(np.zeros((5, 1)), **{"limits": [(0.0, 1.0)], "epsilon": 1.0, "delta": 1e-5, **bad})
    for arguments in (([0.0], [GP()]), ([0.0] * 5, [])):
        with pytest.raises(ValueError):
            learn_hyperparameters(np.zeros((5, 1)), *arguments, epsilon=1.0, delta=1e-5, blocks=2)
    ledger = Ledger(epsilon=2.0, delta=1e-5)
    for blocks in (0, 6):
        with pytest.raises(ValueError, match=f"blocks must lie between 1 and the number of rows, 5, got {blocks}"):
            learn_hyperparameters(
                np.zeros((5, 1)), [0.0] * 5, [GP()], epsilon=1.0, delta=1e-5, blocks=blocks, ledger=ledger
            )
    assert ledger.entries == ()
    assert gaussian_scale(1.0, 1e-5) < SystemNoise.certified_scale(1.0, 1e-5)
    assert GaussianEvent(1.0).count == 1


def test_bounds_of_a_scale_may_be_a_list_and_are_checked():
    public = PublicScale(radius=1.0, bounds=[(0.0, 1.0), (0.0, 0.5)])
    assert public.apply(np.array([[-3.0, 9.0]])).tolist() == [[0.0, 0.5]]
    with pytest.raises(ValueError, match="bounds has 2 entries but the data have 1"):
        public.apply(np.zeros((1, 1)))
    with pytest.raises(ValueError, match="lower bound"):
        PublicScale(bounds=[(1.0, 0.0)])


@pytest.mark.parametrize("bounds", [[0.0, 1.0], [(0.0, 1.0, 2.0)], [(0.0, math.inf)], [(math.nan, 1.0)]])
def test_bounds_are_finite_pairs(bounds):
    for make in (lambda: PublicScale(bounds=bounds), lambda: PublicScale.within(bounds, radius=1.0)):
        with pytest.raises(ValueError, match=r"bounds must be finite \(lower, upper\) pairs"):
            make()


@pytest.mark.parametrize("radius", [0.0, -1.0, math.nan])
def test_a_ball_of_rows_has_a_positive_radius(radius):
    with pytest.raises(ValueError, match="radius must be positive, got"):
        PublicScale(radius=radius)
    with pytest.raises(ValueError, match="radius must be positive and finite, got"):
        PublicScale.within([(0.0, 1.0)], radius=radius)


@pytest.mark.parametrize("name", ["center", "scale"])
def test_a_scale_fits_the_features(name):
    public = PublicScale(**{name: [1.0, 2.0]})
    with pytest.raises(ValueError, match=f"{name} has 2 entries but the data have 3 features"):
        public.apply(np.zeros((1, 3)))


@pytest.mark.parametrize("size", [1e25, 1e160, 1e308])
def test_a_huge_row_is_shrunk_onto_the_ball(size):
    scaled = PublicScale(scale=1e-3, radius=2.0).apply(np.array([[size, 0.0], [0.0, -size], [1e-3, 0.0]]))
    np.testing.assert_allclose(scaled, [[2.0, 0.0], [0.0, -2.0], [1.0, 0.0]], rtol=1e-12)


def test_records_far_above_the_limits_count_in_the_last_bin():
    rows = np.full((4000, 1), 50.0)
    rows[:2000] = 1e300
    (low, high), *_ = learn_bounds(rows, limits=[(0.0, 100.0)], epsilon=8.0, delta=1e-5).value
    assert low >= 48.0
    assert high == 100.0


def test_values_that_are_no_numbers_are_refused_without_showing_them():
    with pytest.raises(TypeError, match="values must be numbers") as caught:
        learn_hyperparameters(np.zeros((2, 1)), ["HIV+", 1.0], [GP(SE(1.0))], epsilon=1.0, delta=1e-5, blocks=1)
    assert "HIV" not in str(caught.value)
    assert caught.value.__suppress_context__
