"""Very many measurements: the panels hold the same posterior, and fits become fewer and cheaper."""

import json

import numpy as np
import pytest

from surefoot import Box, ExpectedImprovement, Policy
from surefoot.belief import GP, Matern
from surefoot.belief.fit import representatives
from surefoot.belief.panels import PanelPosterior


@pytest.fixture
def gp():
    return GP(Matern(2.5, lengthscale=[0.4, 0.6, 0.9]), noise=1e-4, mean=0.3)


def measured(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.random((n, 3))
    return X, np.sin(5.0 * X).sum(axis=1)


@pytest.mark.parametrize("n", [0, 1, 255, 256, 700])
def test_a_panel_posterior_says_what_the_posterior_says(gp, n):
    (X, y), (Z, _) = measured(n), measured(300, 1)
    plain, panels = (gp.condition(X, y), PanelPosterior(gp, X, y)) if n else (gp.condition(), PanelPosterior(gp))
    for one, other in zip(plain.gradient(Z), panels.gradient(Z), strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-7, atol=1e-8)
    for one, other in zip(plain.predict(Z), panels.predict(Z), strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(panels.cov(Z[:5], Z[:3]), plain.cov(Z[:5], Z[:3]), atol=1e-10)
    np.testing.assert_allclose(panels.chol, plain.chol, atol=1e-10)
    np.testing.assert_allclose(panels.inverse, plain.inverse, rtol=1e-8, atol=1e-8)
    assert panels.information_gain == pytest.approx(plain.information_gain, abs=1e-8)
    if n:
        np.testing.assert_allclose(panels.mean(X), plain.mean(X), atol=1e-9)  # the way without covariances
        np.testing.assert_allclose(panels.solve(y), plain.solve(y), rtol=1e-7, atol=1e-7)
        draws = [posterior.draw(Z[:4], 3, np.random.default_rng(0)) for posterior in (plain, panels)]
        np.testing.assert_allclose(draws[1], draws[0], atol=1e-8)


def test_panels_grow_measurement_by_measurement(gp):
    X, y = measured(600)
    noise = np.where(np.arange(600) % 3, np.nan, 0.01)
    grown = PanelPosterior(gp, X[:200], y[:200], noise[:200])
    for i in range(200, 600):
        grown.append(X[i], y[i], None if np.isnan(noise[i]) else noise[i])
    whole = PanelPosterior(gp, X, y, noise)
    np.testing.assert_allclose(grown.noise, whole.noise)
    for one, other in zip(whole.predict(X[::7] + 0.01), grown.predict(X[::7] + 0.01), strict=True):
        np.testing.assert_allclose(other, one, atol=1e-10)


def test_imagined_points_leave_no_trace_in_panels_nor_in_copies(gp):
    (X, y), (Z, _) = measured(250), measured(40, 1)
    posterior = PanelPosterior(gp, X, y)
    before = posterior.predict(Z)
    twin, plain = posterior.copy(), gp.condition(X, y)
    for z in Z[:20]:  # into the next panel
        posterior.hallucinate(z)
    np.testing.assert_allclose(posterior.mean(Z), before[0], atol=1e-8)
    for z in Z[:20]:
        twin.append(z, 7.0)
        plain.append(z, 7.0)
    posterior.undo(20)
    for one, other in zip(before, posterior.predict(Z), strict=True):
        np.testing.assert_array_equal(other, one)
    posterior.undo(5)  # rows that the copy still has
    posterior.append(Z[0], 1.0)
    np.testing.assert_allclose(twin.mean(Z), plain.mean(Z), atol=1e-7)
    assert (twin.n, posterior.n) == (270, 246)


def test_the_same_point_many_times_can_be_factorized(gp):
    exact = GP(gp.kernel, noise=0.0)
    posterior = PanelPosterior(exact, np.full((300, 3), 0.5), np.ones(300))
    mean, std = posterior.predict(np.full((1, 3), 0.5))
    assert mean == pytest.approx(1.0, abs=1e-3)
    assert std < 1e-3


def test_a_large_gp_is_stored_and_waits_longer_for_its_next_fit():
    gp = GP().refit(every=1, large=100)
    assert GP.from_dict(json.loads(json.dumps(gp.to_dict()))) == gp
    assert "large" not in GP().to_dict()  # what earlier releases stored, and read
    assert [gp.due(n, last) for n, last in ((100, 99), (132, 131), (133, 132), (134, 132))] == [True, True, False, True]
    assert GP().refit(every=3, large=100).due(1028, 1000) is False
    assert gp.negated().large == gp.with_theta(gp.theta).large == 100
    with pytest.raises(ValueError, match="large"):
        GP(large=0)


def test_a_fit_beyond_large_sees_a_part_that_keeps_the_best(gp):
    X, y = measured(300)
    rows = representatives(y, 64, np.random.default_rng(0))
    assert len(rows) == 64
    assert (np.diff(rows) > 0).all()
    assert set(np.argsort(-y)[:8]) <= set(rows)
    large = GP.automatic(Box.unit(3)).refit(every=1, large=128)
    part, whole = large.fit(X, y), GP.automatic(Box.unit(3)).fit(X, y)
    found, best = (fitted.log_likelihood(X, y) for fitted in (part, whole))
    assert found > best - 0.15 * abs(best)


def test_a_policy_with_very_many_measurements_resumes_bit_for_bit(monkeypatch):
    monkeypatch.setattr("surefoot.policy.base.LARGE", 40)
    domain = Box.unit(3)
    policy = ExpectedImprovement(domain, seed=0)
    for x, value in zip(*measured(300), strict=True):
        policy.tell(x, float(value))
    for _ in range(3):
        query = policy.ask()
        policy.tell(query, float(np.sin(5.0 * query.x).sum()))
    again = Policy.from_state(json.loads(json.dumps(policy.state())))
    assert isinstance(policy.surrogate.posterior(), PanelPosterior)
    assert again.ask() == policy.ask()
    best, known, X = policy.recommend(), policy.averaged(), policy.trials.data()[0]
    np.testing.assert_array_equal(best.x, X[np.argmax(known.mean(X))])
    assert best.mean == pytest.approx(known.mean(X).max(), rel=1e-9)
    assert best.upper == pytest.approx(known.quantile(best.x[None], 0.975)[0], rel=1e-9)
    assert again.surrogate.due(303) == 300  # nine new measurements are waited for


def test_version_1_fits_after_every_measurement():
    assert ExpectedImprovement(Box.unit(2), automatic=1, seed=0).gp.large is None
    assert ExpectedImprovement(Box.unit(2), gp=GP(), seed=0).gp.large is None
    assert ExpectedImprovement(Box.unit(2), automatic=2, seed=0).gp.large == 512
