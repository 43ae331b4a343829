"""The asymptote-aware curve model: calibration over families of curves, scale, and its ingredients."""

from __future__ import annotations

import math

import numpy as np
import pytest

from surefoot.stopping import ExponentialDecay, OptimalStopping, Plateau

N = np.arange(1, 51)


def exponential(r):
    return r.uniform(0.02, 0.4) + r.uniform(0.2, 0.55) * np.exp(-N * 10 ** r.uniform(-1.7, -0.3)), 0.005


def power_law(r):
    return r.uniform(0.02, 0.3) + r.uniform(0.2, 0.6) * N ** -r.uniform(0.2, 1.2), 0.005


def plateau(r):
    return r.uniform(0.2, 0.6) + r.uniform(0.1, 0.35) * np.exp(-N * r.uniform(0.2, 0.6)), 0.005


def noisy(r):
    return r.uniform(0.05, 0.4) + r.uniform(0.2, 0.5) * np.exp(-N * 10 ** r.uniform(-1.7, -0.3)), 0.03


def slow_start(r):
    return r.uniform(0.05, 0.3) + 0.6 / (1 + np.exp((N - r.uniform(5, 30)) / r.uniform(2, 6))), 0.01


FAMILIES = [exponential, power_law, plateau, noisy, slow_start]


def forecasts(model, family, n, size, paths=1280, seed=0):
    """Ranks of the final error among the forecasts (size,), and (p, won) for thresholds around a good final score."""
    r = np.random.default_rng(seed)
    curves = []
    for _ in range(size):
        curve, noise = family(r)
        curves.append(np.clip(curve + noise * r.standard_normal(50), 0.001, 0.999))
    bars = np.quantile([curve[-1] for curve in curves], [0.03, 0.1, 0.25, 0.5])
    ranks, p, won = [], [], []
    for i, curve in enumerate(curves):
        last = model.sample(curve[:n], 50, paths, np.random.default_rng(i))[:, -1]
        ranks.append(np.mean(last < curve[-1]))
        bar = np.minimum(bars, curve[:n].min())  # a run already above the threshold is never stopped
        p.append((last[:, None] < bar).mean(axis=0))
        won.append(curve[-1] < bar)
    return np.array(ranks), np.array(p), np.array(won)


def log_loss(p, won):
    p = np.clip(p, 0.002, 0.998)
    return -np.mean(np.where(won, np.log(p), np.log(1 - p)))


@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f.__name__)
def test_it_is_better_than_decay_to_zero(family):
    """Paired over the same curves, from 20 of 50 epochs: the log loss of P(final > threshold) is clearly smaller."""
    mine, theirs = (forecasts(model, family, 20, 25) for model in (Plateau(), ExponentialDecay()))
    assert log_loss(*mine[1:]) < log_loss(*theirs[1:]) - 0.02
    assert log_loss(*mine[1:]) < 0.6


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES[:4], ids=lambda f: f.__name__)
def test_intervals_cover(family):
    """From 20 epochs, in every family: 90 % intervals cover most final errors, and what looks lost is lost."""
    ranks, p, won = forecasts(Plateau(), family, 20, 80)
    assert np.mean(np.abs(ranks - 0.5) < 0.45) >= 0.80
    assert (p < 0.02).mean() > 0.3
    assert won[p < 0.02].mean() < 0.03


@pytest.mark.slow
@pytest.mark.parametrize("n", [8, 20])
def test_probabilities_are_calibrated_over_the_families(n):
    """Pooled over the families: one alone is a stronger assumption than any prior over shapes can meet."""
    parts = [forecasts(Plateau(), family, n, 60) for family in FAMILIES[:4]]
    p, won = (np.concatenate([part[i].ravel() for part in parts]) for i in (1, 2))
    assert (p < 0.02).mean() > 0.2
    assert won[p < 0.02].mean() < 0.03
    for low, high, room in ((0.0, 0.1, 0.03), (0.1, 0.3, 0.15), (0.3, 0.7, 0.2), (0.7, 1.0, 0.3)):
        cell = (p >= low) & (p < high)
        assert cell.sum() > 15
        assert won[cell].mean() == pytest.approx(p[cell].mean(), abs=room)


def test_a_plateau_is_recognized():
    """From 16 epochs of 0.35 + 0.3 exp(−0.2 n) the limit is known within 0.05."""
    errors = 0.35 + 0.3 * np.exp(-0.2 * N)
    last = Plateau().sample(errors[:16], 50, 4000, np.random.default_rng(0))[:, -1]
    assert np.quantile(last, 0.05) > 0.30
    assert np.quantile(last, 0.95) < 0.40
    assert np.median(last) == pytest.approx(0.35, abs=0.02)


def test_a_flat_start_may_still_fall():
    """Errors that have not moved yet leave room for a late drop, unlike a plateau after a fall."""
    flat = np.clip(0.88 + 0.005 * np.random.default_rng(1).standard_normal(8), 0, 1)
    fallen = np.array([0.9, 0.6, 0.47, 0.42, 0.41, 0.405, 0.4, 0.402])
    late = Plateau().sample(flat, 50, 8000, np.random.default_rng(0))[:, -1]
    level = Plateau().sample(fallen, 50, 8000, np.random.default_rng(0))[:, -1]
    assert np.mean(late < 0.5 * flat[-1]) > 0.05
    assert np.mean(level < 0.5 * fallen[-1]) < 0.02


def test_noise_is_inferred_and_part_of_the_forecast():
    r = np.random.default_rng(3)
    curve = 0.3 + 0.3 * np.exp(-0.3 * N[:30])
    spreads = []
    for noise in (0.002, 0.03):
        errors = curve + noise * r.standard_normal(30)
        paths = Plateau().sample(errors, 50, 4000, np.random.default_rng(0))
        spreads.append(np.median(np.abs(np.diff(paths, axis=1))) / (0.6745 * math.sqrt(2)))
    assert spreads[0] < 0.008
    assert 0.015 < spreads[1] < 0.06


def test_scale_does_not_matter():
    """A curve a hundredth as high gets a forecast a hundredth as high."""
    errors = 0.5 * (0.3 + 0.7 * np.exp(-0.2 * N[:10]))
    large, small = (Plateau().sample(c * errors, 50, 4000, np.random.default_rng(0)) for c in (1.0, 0.01))
    np.testing.assert_allclose(
        np.quantile(small, [0.1, 0.5, 0.9]), 0.01 * np.quantile(large, [0.1, 0.5, 0.9]), rtol=0.05
    )


@pytest.mark.parametrize("errors", [np.zeros(5), np.ones(5), np.array([0.5]), np.linspace(0.0, 1.0, 5)])
def test_extreme_curves(errors):
    paths = Plateau().sample(errors, 12, 1000, np.random.default_rng(0))
    assert paths.shape[1] == 12 - len(errors)
    assert np.isfinite(paths).all()
    assert paths.min() > 0
    assert paths.max() < 1


def test_it_stops_a_plateau_that_the_published_model_runs_to_the_end():
    """Same losses, same threshold; the run levels off at a score of 0.65 and 0.85 is to beat."""
    scores = 1 - (0.35 + 0.3 * np.exp(-0.2 * N)) + 0.003 * np.random.default_rng(0).standard_normal(50)
    ends = []
    for model in (ExponentialDecay(), Plateau()):
        rule = OptimalStopping(epochs=50, paths=4000, model=model)
        watch = rule.watch(0.85, np.random.default_rng)
        ends.append(next((n for n in range(1, 51) if watch.report(scores[:n]).stop), 50))
    assert ends[0] == 50
    assert ends[1] <= 12


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"limit": (0.3, 0.0)}, "limit"),
        ({"drop": (math.nan, 0.1)}, "drop"),
        ({"wander": (0.1, 0.01)}, "wander"),
        ({"noise": (0.0, 0.1)}, "noise"),
        ({"members": 0}, "members"),
        ({"members": 1.5}, "members"),
        ({"members": 1_000_000}, "members must be between 1 and .*, got 1000000"),
        ({"rank": 0}, "rank"),
        ({"rank": 2.5}, "rank"),
        ({"limit": 0.3}, "limit must be a pair"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        Plateau(**options)
