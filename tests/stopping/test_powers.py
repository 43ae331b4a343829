"""The curve model that learns from completed curves: its update, its forecasts, and what policies tell it."""

import math

import numpy as np
import pytest
from scipy import stats

from surefoot import BOBOS, Box
from surefoot.bridge.judge import Judge
from surefoot.stopping import OptimalStopping, Powers
from surefoot.stopping.powers import PERSISTS, SCALE, SHAPE, SPREAD, USUAL, slope, slopes

N = 20


def curves(count, seed, *, n, horizon=N):
    """Whole error curves drawn from the model's own prior, by its equations (1) to (3)."""
    rng = np.random.default_rng(seed)
    drawn = []
    for _ in range(count):
        sigma = math.sqrt(1.0 / rng.gamma(SHAPE, 1.0 / (SHAPE * SCALE**2)))
        a, b = rng.normal(0.0, SPREAD[0] * sigma), rng.normal((n / horizon) ** PERSISTS, SPREAD[1] * sigma)
        start = 0.5 * np.arange(1, n + 1) ** rng.normal(USUAL, 0.1)
        R = USUAL + a + b * (slope(start, n) - USUAL) + sigma * rng.standard_normal()
        rest = start[-1] * (np.arange(n + 1, horizon + 1) / n) ** R
        drawn.append(np.concatenate([start, rest]))
    return drawn


def test_the_update_is_that_of_the_regression():
    rows = np.array([slopes(curve, 5, N) for curve in curves(3, 0, n=5)])
    mean, spread, alpha, scale = Powers()._posterior(rows, 5 / N)
    # The same posterior by brute force: weights of prior draws by the likelihood of the rows.
    rng = np.random.default_rng(1)
    sigma = np.sqrt(SHAPE * SCALE**2 / rng.gamma(SHAPE, 1.0, 300_000))
    a = SPREAD[0] * sigma * rng.standard_normal(len(sigma))
    b = (5 / N) ** PERSISTS + SPREAD[1] * sigma * rng.standard_normal(len(sigma))
    left = rows[:, 1:] - USUAL - a - b * (rows[:, :1] - USUAL)
    weight = np.exp(stats.norm.logpdf(left, scale=sigma).sum(axis=0))
    weight /= weight.sum()
    assert weight @ a == pytest.approx(mean[0], abs=5e-3)
    assert weight @ b == pytest.approx(mean[1], abs=0.01)
    variance = alpha * scale**2 / (alpha - 1.0)  # E σ²
    assert weight @ sigma**2 == pytest.approx(variance, rel=0.03)
    assert weight @ (a - weight @ a) ** 2 == pytest.approx(spread[0, 0] * variance, rel=0.05)


@pytest.mark.parametrize("known", [0, 4])
def test_ends_have_the_student_t_of_the_regression(known):
    model = Powers().learn(curves(known, 2, n=5))
    curve = curves(1, 3, n=5)[0][:5]
    ends = model.sample(curve, N, 40_000, np.random.default_rng(0))[:, -1]
    rows = np.array([slopes(np.array(whole), 5, N) for whole in model.completed]).reshape(-1, 2)
    mean, spread, alpha, scale = model._posterior(rows, 5 / N)
    x = np.array([1.0, slope(curve, 5) - USUAL])
    t = stats.t(2.0 * alpha, USUAL + mean @ x, scale * math.sqrt(1.0 + x @ spread @ x))
    for level in (0.05, 0.25, 0.5, 0.75, 0.95):
        expected = curve[-1] * (N / 5) ** t.ppf(level)
        assert np.quantile(ends, level) == pytest.approx(expected, rel=0.02)


def test_quantiles_hold_on_curves_of_its_own_prior():
    ends, rng = [], np.random.default_rng(4)
    for curve in curves(400, 5, n=5):
        paths = Powers().sample(curve[:5], N, 500, rng)[:, -1]
        ends.append((paths < min(curve[-1], 1.0 - 1e-6)).mean())
    for level in (0.1, 0.5, 0.95):
        assert np.mean(np.array(ends) < level) == pytest.approx(level, abs=3.5 * math.sqrt(level * (1 - level) / 400))


@pytest.mark.parametrize("errors", [[0.0], [1.0, 1.0, 1.0], [0.5, 0.0], [0.0, 0.5, 1.0], [0.3] * 19])
def test_odd_curves_give_errors(errors):
    paths = Powers().sample(np.array(errors), N, 50, np.random.default_rng(0))
    assert paths.shape == (50, N - len(errors))
    assert ((paths > 0.0) & (paths < 1.0)).all()


def test_only_whole_curves_count():
    short, whole = np.full(N - 1, 0.5), np.full(N, 0.5)
    draws = [
        Powers().learn(known).sample(whole[:5], N, 50, np.random.default_rng(0))
        for known in ([], [short], [whole], [whole, short])
    ]
    assert np.array_equal(draws[0], draws[1])
    assert np.array_equal(draws[2], draws[3])
    assert not np.array_equal(draws[0], draws[2])


def test_what_is_no_curve_is_refused():
    with pytest.raises(ValueError, match="finite"):
        Powers(completed=[[0.5, math.nan]])


def problem():
    return OptimalStopping(epochs=N, initial=4, model=Powers(), paths=2_000, adaptive=True, smoothing=True)


def test_a_rule_with_it_can_be_stored():
    rule = problem().learnt([np.linspace(0.1, 0.9, N)])
    assert OptimalStopping.from_dict(rule.to_dict()) == rule
    assert rule.model.completed[0][-1] == pytest.approx(0.1)


def play(policy, runs, journal=None):
    """Advice on runs that level off at different heights."""
    said = []
    for _ in range(runs):
        query = policy.ask()
        for epoch in range(1, N + 1):
            score = (1.0 - (query.x[0] - 0.3) ** 2) * (1.0 - 0.5 * epoch**-0.5)
            advice = policy.report(query, epoch, score)
            said.append((query.id, epoch, advice.stop, advice.probability))
            if advice.stop:
                break
        policy.tell(query)
    return said


def test_a_study_with_it_resumes_bit_for_bit(tmp_path):
    path = tmp_path / "study.jsonl"
    make = lambda **options: BOBOS(Box([(0.0, 1.0)]), epochs=N, stopping=problem(), complete=3, seed=1, **options)  # noqa: E731
    whole, parts = play(make(), 9), []
    assert any(stop for *_, stop, _ in whole)
    for runs in (5, 4):
        with make(journal=path) as policy:
            parts += play(policy, runs)
    assert parts == whole


def test_a_scheduler_learns_too():
    judge = Judge(epochs=N, stopping=problem(), complete=3, seed=0)
    good = 1.0 - 0.5 * np.arange(1, N + 1) ** -0.5
    poor = dict(enumerate(0.5 * good, start=1))
    advice = [judge.advise(5, {n: poor[n] for n in range(1, m)}, [good, 0.9 * good, 0.95 * good]) for m in range(6, N)]
    assert any(said.stop for said in advice)
    assert advice[0].probability is not None
