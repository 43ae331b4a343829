"""The rules themselves: formulas, gradients, reductions, and the hard inputs every user meets."""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from surefoot import (
    GP,
    GPUCB,
    SE,
    Box,
    Candidates,
    Choice,
    Exhausted,
    ExpectedImprovement,
    Int,
    Linear,
    Matern,
    MaxValueEntropySearch,
    NotSupported,
    ProbabilityOfImprovement,
    RandomSearch,
    SobolSearch,
    Space,
    ThompsonSampling,
    widths,
)
from surefoot.policy.entropy.max_value_entropy import MaxValueEntropy, max_value_draws
from surefoot.policy.improvement import LogImprovement, LogProbability, log_h
from surefoot.policy.ucb.gp_ucb import UpperBound

MODEL_POLICIES = [GPUCB, ExpectedImprovement, ProbabilityOfImprovement, ThompsonSampling, MaxValueEntropySearch]
GRID = np.stack(np.meshgrid(np.linspace(0, 1, 15), np.linspace(0, 1, 15)), axis=-1).reshape(-1, 2)


def hill(x):
    return float(np.sin(3 * x[0]) + x[1] * (1 - x[1]))


def run(policy, steps, f=hill):
    for _ in range(steps):
        query = policy.ask()
        policy.tell(query, f(query.x))
    return policy


# -- formulas


def test_log_h_is_accurate_everywhere():
    mpmath = pytest.importorskip("mpmath")
    mpmath.mp.dps = 60
    z = np.concatenate([np.linspace(-12, 8, 81), [-99.0, -101.0, -1e3, -1e5, -1e7, 50.0]])
    exact = [mpmath.log(mpmath.npdf(v) + v * mpmath.ncdf(v)) for v in map(mpmath.mpf, z)]
    assert np.allclose(log_h(z), [float(v) for v in exact], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("z", [-9.9e3, -1.1e4, -1e6, -1e9, -1e12])
def test_slopes_far_below_the_target(z):
    """d log h/dz = Φ/h ≈ −z − 2/z and d log Φ/dz = φ/Φ ≈ −z − 1/z."""
    mean, std = np.array([z]), np.ones(1)
    for score, last in ((LogImprovement(0.0, 1e-12), 2.0), (LogProbability(0.0, 1e-12), 1.0)):
        _, by_mean, by_std = score.slopes(mean, std)
        assert by_mean == pytest.approx([-z - last / z], rel=1e-7)
        assert by_std == pytest.approx([z * z], rel=1e-6)


def test_expected_improvement_is_the_integral():
    mean, std, target = 0.3, 0.7, 0.5
    integral, _ = quad(lambda y: max(y - target, 0.0) * norm.pdf(y, mean, std), target, 10)
    assert LogImprovement(target, 1e-12).value(np.array([mean]), np.array([std]))[0] == pytest.approx(
        math.log(integral)
    )
    probability = LogProbability(target, 1e-12).value(np.array([mean]), np.array([std]))[0]
    assert probability == pytest.approx(norm.logsf(target, mean, std))


@pytest.mark.parametrize("rule", MODEL_POLICIES)
@pytest.mark.parametrize(("scale", "shift"), [(2.0**-44, 0.0), (2.0**40, 0.0), (1.0, 1024.0)])
def test_the_units_of_the_values_do_not_matter(rule, scale, shift):
    """An automatic belief standardizes, and no rule has a unit of its own."""
    plain, other = (run(rule(Candidates(GRID), seed=0), 8, f) for f in (hill, lambda x: shift + scale * hill(x)))
    assert [query.index for query in other.queries] == [query.index for query in plain.queries]


def test_max_value_entropy_is_the_entropy_of_a_truncated_normal():
    mean, std, top = 0.2, 0.8, 1.1
    mass = norm.cdf(top, mean, std)

    def integrand(y):
        p = norm.pdf(y, mean, std) / mass
        return -p * math.log(p)

    truncated, _ = quad(integrand, mean - 8 * std, top)
    gain = norm.entropy(mean, std) - truncated
    assert MaxValueEntropy(np.array([top])).value(np.array([mean]), np.array([std]))[0] == pytest.approx(float(gain))


@pytest.mark.parametrize(
    "score",
    [
        UpperBound(1.7),
        LogImprovement(0.4, 1e-12),
        LogImprovement(25.0, 1e-12),
        LogProbability(0.4, 1e-12),
        LogProbability(25.0, 1e-12),
        MaxValueEntropy(np.array([0.9, 1.5, 4.0])),
    ],
)
def test_slopes_are_derivatives(score):
    rng = np.random.default_rng(0)
    mean, std = rng.normal(size=20), rng.uniform(0.2, 1.0, 20)
    value, by_mean, by_std = score.slopes(mean, std)
    step = 1e-6
    assert np.allclose(value, score.value(mean, std))
    up, down = score.value(mean + step, std), score.value(mean - step, std)
    assert np.allclose(by_mean, (up - down) / (2 * step), rtol=1e-5, atol=1e-8)
    up, down = score.value(mean, std + step), score.value(mean, std - step)
    assert np.allclose(by_std, (up - down) / (2 * step), rtol=1e-5, atol=1e-8)


def test_draws_of_the_maximum_have_its_distribution():
    rng = np.random.default_rng(0)
    mean, std = rng.normal(size=200), rng.uniform(0.1, 1.0, 200)
    draws = max_value_draws(mean, std, -np.inf, 4000, rng)
    true = (mean + std * rng.standard_normal((4000, 200))).max(axis=1)
    assert np.quantile(draws, 0.5) == pytest.approx(np.quantile(true, 0.5), abs=0.03)
    assert np.quantile(draws, 0.9) == pytest.approx(np.quantile(true, 0.9), abs=0.1)
    assert (max_value_draws(mean, std, 3.7, 100, rng) >= 3.7).all()


# -- reductions


def test_gp_ucb_on_candidates_is_the_textbook_loop():
    """Against a loop that forms the posterior from scratch with plain linear algebra in every round."""
    kernel, noise = SE(lengthscale=0.3), 0.01
    policy = GPUCB(Candidates(GRID), gp=GP(kernel, noise=noise), width=widths.Finite(0.9), seed=0)
    values, rng = np.array([hill(x) for x in GRID]), np.random.default_rng(0)
    rows, y = [], []
    for t in range(1, 16):
        query = policy.ask()
        if rows:
            K = kernel(GRID[rows]) + noise * np.eye(len(rows))
            k = kernel(GRID, GRID[rows])
            mean = k @ np.linalg.solve(K, y)
            std = np.sqrt(1.0 - np.einsum("ij,ji->i", k, np.linalg.solve(K, k.T)))
            bound = mean + widths.Finite(0.9)(t, size=len(GRID)) * std
            assert query.index == int(np.argmax(bound))
        measured = values[query.index] + 0.1 * rng.standard_normal()
        rows.append(query.index)
        y.append(measured)
        policy.tell(query, measured)


def test_ask_n_is_gp_bucb():
    """Inside a batch the mean stays, and the standard deviation shrinks as if pending points had been measured."""
    kernel, noise = SE(lengthscale=0.3), 0.01
    make = lambda: run(GPUCB(Candidates(GRID), gp=GP(kernel, noise=noise), width=widths.Constant(2.0), seed=0), 4)  # noqa: E731
    policy = make()
    rows = [o.index for o in policy.history]
    y = np.array([o.value for o in policy.history])
    k = kernel(GRID, GRID[rows])
    mean = k @ np.linalg.solve(kernel(GRID[rows]) + noise * np.eye(4), y)
    batch = policy.ask(4)
    one_by_one = make()
    assert [one_by_one.ask().index for _ in range(4)] == [query.index for query in batch]
    for query in batch:
        K = kernel(GRID[rows]) + noise * np.eye(len(rows))
        k = kernel(GRID, GRID[rows])
        var = 1.0 - np.einsum("ij,ji->i", k, np.linalg.solve(K, k.T))
        score = mean + 2.0 * np.sqrt(np.maximum(var, 0.0))
        score[[q.index for q in batch if q.id < query.id]] = -np.inf
        assert query.index == int(np.argmax(score))
        rows.append(query.index)


def test_box_and_dense_candidates_agree():
    gp = GP(Matern(2.5, lengthscale=0.4), noise=1e-4)
    line = np.linspace(0, 1, 4001)
    f = lambda x: float(np.sin(9 * x[0]))  # noqa: E731
    start = [0.1, 0.5, 0.8]
    asked = []
    for domain in (Box([(0.0, 1.0)]), Candidates(line)):
        policy = GPUCB(domain, gp=gp, width=widths.Constant(2.0), seed=0)
        for x in start:
            policy.tell([x], f([x]))
        asked.append(policy.ask().x[0])
    assert asked[0] == pytest.approx(asked[1], abs=1e-3)


def test_a_given_gp_is_used_as_it_is():
    gp = GP(SE(lengthscale=0.2), noise=0.1, mean=3.0)
    policy = run(GPUCB(Box([(0.0, 1.0), (0.0, 1.0)]), gp=gp, seed=0), 6)
    assert policy.posterior().gp == gp
    assert policy.initial == 0
    assert "fits" not in policy.state()["cache"]


def test_refits_follow_the_schedule():
    gp = GP(SE(lengthscale=[0.2, 0.2]), noise=0.1).refit(every=4)
    policy = GPUCB(Box([(0.0, 1.0), (0.0, 1.0)]), gp=gp, seed=0)
    fits = []
    for _ in range(11):
        query = policy.ask()
        fits.append(policy.surrogate.due(0))
        policy.tell(query, hill(query.x))
    assert fits == [None, 1, 1, 1, 1, 5, 5, 5, 5, 9, 9]


def test_tell_never_fits(monkeypatch):
    policy = run(ExpectedImprovement(Box([(0.0, 1.0), (0.0, 1.0)]), seed=0), 5)
    fits, fit = [], GP.fit
    monkeypatch.setattr(GP, "fit", lambda *a, **k: fits.append(1) or fit(*a, **k))
    policy.tell([0.1, 0.2], 3.0)
    assert not fits
    policy.ask()
    assert fits


@pytest.mark.parametrize("domain", [Box([(0.0, 1.0)]), Candidates(np.linspace(0, 1, 101))], ids=["box", "candidates"])
def test_only_measured_points_are_values_to_beat(domain):
    """A pending point is hallucinated at its mean, which may lie above everything measured: no improvement yet."""
    policy = ExpectedImprovement(domain, gp=GP(SE(lengthscale=0.3), noise=1e-6, mean=5.0), seed=0)
    policy.tell([0.0], 1.0)
    policy.tell([1.0], 2.0)
    policy.ask(2)
    with policy.view().hallucinated() as belief:
        assert policy.rule.target(policy.view(), belief)[0] == pytest.approx(2.0, abs=1e-3)


@pytest.mark.parametrize("domain", [Box([(0.0, 1.0)]), Candidates(np.linspace(0, 1, 30))], ids=["box", "candidates"])
def test_the_posterior_is_the_callers_own(domain):
    policies = [run(GPUCB(domain, seed=0), 5, lambda x: float(x[0])) for _ in range(2)]
    policies[0].posterior().append([0.5], 100.0)
    assert policies[0].ask() == policies[1].ask()


@pytest.mark.parametrize("policy", [*MODEL_POLICIES, SobolSearch])
def test_a_journal_without_a_seed_keeps_the_one_it_drew(policy, tmp_path):
    with policy(Box.unit(2), journal=tmp_path / "run.jsonl") as first:
        seed = first.seed
    with policy(Box.unit(2), journal=tmp_path / "run.jsonl") as second:
        assert second.seed == seed


def test_own_noise_is_heard():
    policy = GPUCB(Candidates(GRID), gp=GP(SE(lengthscale=0.1), noise=1e-6), seed=0)
    from surefoot import Outcome

    policy.tell(GRID[0], Outcome(5.0, noise=100.0))
    policy.tell(GRID[-1], 1.0)
    assert policy.recommend().index == len(GRID) - 1


def test_recommend_prefers_the_best_estimate_to_the_luckiest_measurement():
    policy = GPUCB(Candidates([0.0, 10.0]), gp=GP(SE(lengthscale=1.0), noise=1.0), seed=0)
    policy.tell([0.0], 2.5)
    for value in (2.0, 2.1, 1.9, 2.0, 2.2, 2.1):
        policy.tell([10.0], value)
    best = policy.recommend()
    assert best.index == 1
    assert best.lower < best.mean < best.upper


# -- hard inputs


@pytest.mark.parametrize("policy", MODEL_POLICIES)
def test_thirty_dimensions(policy):
    chooser = run(policy(Box.unit(30), seed=0, initial=4), 7, lambda x: -float(np.sum((x - 0.5) ** 2)))
    assert chooser.recommend().x.shape == (30,)


@pytest.mark.parametrize("policy", MODEL_POLICIES)
def test_a_single_valued_dimension(policy):
    chooser = run(policy(Box([(0.0, 1.0), (2.0, 2.0)]), seed=0), 7, lambda x: -((x[0] - 0.5) ** 2))
    assert all(o.x[1] == 2.0 for o in chooser.history)


@pytest.mark.parametrize("policy", MODEL_POLICIES)
@pytest.mark.parametrize("domain", [Box([(0.0, 1.0)]), Candidates(np.linspace(0, 1, 30))], ids=["box", "candidates"])
def test_noise_free_repeats(policy, domain):
    chooser = policy(domain, gp=GP(SE(lengthscale=0.3), noise=1e-12), seed=0)
    for x in (0.0, 1.0, 0.0, 1.0, 1.0):
        chooser.tell([x], x)
    run(chooser, 6, lambda x: float(x[0]))
    assert chooser.recommend().x[0] > 0.9


@pytest.mark.parametrize("policy", [RandomSearch, SobolSearch])
@pytest.mark.parametrize(
    "domain", [Candidates(GRID[:60]), Space(a=Int(1, 12), b=Choice(list("uvwxy")))], ids=["list", "space"]
)
def test_searches_find_the_last_point_that_is_left(policy, domain):
    chooser = run(policy(domain, seed=0, repeats=False), 60, lambda x: 1.0)
    assert len({o.x.tobytes() for o in chooser.history}) == 60
    with pytest.raises(Exhausted):
        chooser.ask()


@pytest.mark.parametrize("policy", [*MODEL_POLICIES, SobolSearch])
def test_a_finite_space_can_be_exhausted(policy):
    space = Space(depth=Int(1, 3), kind=Choice(["a", "b"]))
    chooser = run(policy(space, seed=0, repeats=False), 6, lambda x: float(x[0] + x[1]))
    assert len({o.x.tobytes() for o in chooser.history}) == 6
    assert chooser.recommend().params == {"depth": 3, "kind": "b"}


def test_thompson_needs_a_spectral_density_only_where_it_draws_paths():
    gp = GP(Linear() + SE(), noise=0.01)
    run(ThompsonSampling(Candidates(GRID), gp=gp, seed=0), 3)
    run(ThompsonSampling(Box.unit(2), gp=GP(SE() + Matern(1.5).on([0]), noise=0.01), features=64, seed=0), 3)
    with pytest.raises(NotSupported, match="spectral density"):
        ThompsonSampling(Box([(0.0, 1.0)]), gp=gp)


def test_thompson_on_many_candidates_uses_paths():
    domain = Candidates(np.linspace(0, 1, 6000))
    chooser = run(
        ThompsonSampling(domain, gp=GP(SE(lengthscale=0.2), noise=1e-4), seed=0), 12, lambda x: -((x[0] - 0.3) ** 2)
    )
    assert abs(chooser.recommend().x[0] - 0.3) < 0.1


def test_slice_sampled_hyperparameters_work_in_a_policy():
    box = Box([(0.0, 1.0), (0.0, 1.0)])
    for domain in (box, Candidates(GRID)):
        policy = run(GPUCB(domain, gp=GP.automatic(domain, samples=4), initial=4, seed=0), 7)
        assert policy.recommend().rule


@pytest.mark.parametrize("bad", [{"initial": -1}, {"confidence": 1.5}, {"margin": -1.0}, {"initial": 2.5}])
def test_options_are_checked(bad):
    with pytest.raises(ValueError):
        ExpectedImprovement(Box([(0.0, 1.0)]), **bad)
