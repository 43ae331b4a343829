"""The theorems behind StableOpt, as properties, and its authors' comparison in small."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot import (
    GP,
    GPUCB,
    SE,
    Ball,
    Candidates,
    Groups,
    MaxiMinGPUCB,
    RandomSearch,
    RobustReport,
    StableOpt,
    UnknownParameters,
    WeightedBox,
    widths,
)
from surefoot.belief.grid import GridPosterior
from surefoot.belief.posterior import factorize
from surefoot.belief.protocol import EVERY
from surefoot_lab.experiments.stableopt._polynomial import points as grid_points
from surefoot_lab.experiments.stableopt._polynomial import polynomial

AXIS = np.linspace(0.0, 1.0, 9)
GRID = np.stack(np.meshgrid(AXIS, AXIS, indexing="ij"), axis=-1).reshape(-1, 2)
NOISE = 0.1**2
BELIEF = GP(SE([0.25, 0.35]), noise=NOISE)
ROOT, _ = factorize(BELIEF.kernel(GRID), np.full(len(GRID), 1e-10))
DOMAIN = Candidates(GRID)
SETS = {
    "ball": Ball(0.2),
    "box": WeightedBox([0.3, 0.13]),
    "one-sided": Ball(0.25, lambda X, Z: np.where((X[:, None] <= Z).all(axis=-1), np.abs(X[:, None] - Z).sum(-1), 9.0)),
    "groups": Groups(np.arange(81) // 6),
    "parameters": UnknownParameters(AXIS),
}
problems = given(st.integers(0, 2**31), st.sampled_from(list(SETS)))
quick = settings(max_examples=25, deadline=None)


def make(kind, **options):
    """A policy on the grid; the last coordinate of it is the parameter where there is one."""
    domain = Candidates(AXIS) if kind == "parameters" else DOMAIN
    return StableOpt(domain, perturbation=SETS[kind], **{"gp": BELIEF, "seed": 1, **options})


def truth(seed):
    return ROOT @ np.random.default_rng(seed).standard_normal(len(GRID))


def rounds(policy, f, seed, steps, noise=0.1):
    """Yield mean and deviation everywhere before each round, and its query."""
    rng = np.random.default_rng([seed, 1])
    for _ in range(steps):
        mean, std = (np.array(a) for a in policy.surrogate.believe().predict(EVERY))
        query = policy.ask()
        yield mean, std, query
        policy.tell(query, f[query.index] + noise * rng.standard_normal())


@quick
@problems
def test_the_regret_of_a_round_is_at_most_twice_its_width(seed, kind):
    """r(x̃_t) ≤ 2 β^(1/2) σ_{t−1}(x̃_t + δ_t) whenever the bounds hold (inequalities before Theorem 1)."""
    f, policy = truth(seed), make(kind, width=widths.Constant(4.0))
    sets = SETS[kind].on(DOMAIN)
    worst = sets.minimum(f)
    for mean, std, query in rounds(policy, f, seed, 10):
        if (np.abs(f - mean) <= 4.0 * std + 1e-9).all():
            regret = worst.max() - worst[query.note["center"]]
            assert regret <= 2.0 * 4.0 * std[query.index] + 1e-6


@quick
@problems
def test_the_certificate_bounds_the_regret_of_the_report(seed, kind):
    """Never below the true regret while the bounds hold, under each rule; and under the theorem's it never rises."""
    f = truth(seed)
    worst = SETS[kind].on(DOMAIN).minimum(f)
    for rule in ("own_time", "current", "last"):
        policy, before = make(kind, width=widths.Constant(5.0), report=rule), math.inf
        for mean, std, _ in rounds(policy, f, seed, 8):
            if not (np.abs(f - mean) <= 5.0 * std + 1e-9).all():
                break
            if policy.history and policy.queries:
                best = policy.recommend()
                center = SETS[kind].names.index(best.params["group"]) if kind == "groups" else best.index
                assert worst.max() - worst[center] <= policy.certificate + 1e-7
                if rule == "own_time":
                    assert policy.certificate <= before
                    before = policy.certificate


@quick
@problems
def test_the_widths_of_all_rounds_are_bounded_by_the_information(seed, kind):
    """2 Σ σ_{t−1}(x̃_t + δ_t) ≤ √(C₁ T Γ_T), C₁ = 8/log(1 + σ⁻²): for k(x, x) ≤ 1 it needs no luck."""
    policy, total, steps = make(kind, width=widths.Constant(2.0)), 0.0, 15
    for _, std, query in rounds(policy, truth(seed), seed, steps):
        total += std[query.index]
    gain = policy.surrogate.believe().information_gain
    assert 2.0 * total <= math.sqrt(8.0 / math.log(1.0 + 1.0 / NOISE) * steps * gain) + 1e-9


@quick
@problems
def test_samples_lie_in_reach_of_the_choice(seed, kind):
    policy = make(kind)
    sets = SETS[kind].on(DOMAIN)
    for _, _, query in rounds(policy, truth(seed), seed, 6):
        assert query.index in sets.members(query.note["center"])
        assert query.note["lower"] <= query.note["upper"]


@quick
@given(st.integers(0, 2**31), st.floats(0.0, 0.5), st.floats(0.0, 0.5))
def test_a_larger_perturbation_leaves_less(seed, one, other):
    f = truth(seed)
    small, large = (Ball(r).on(DOMAIN).minimum(f) for r in sorted((one, other)))
    assert (large <= small).all()
    assert (small <= f).all()


def trace(policy, f, start, steps=8):
    for i in start:
        policy.tell(policy.domain.points[i], float(f[i]))
    asked = []
    for _ in range(steps):
        query = policy.ask()
        policy.tell(query, float(f[query.index]))
        asked.append(query.x.tolist())
    return asked


@quick
@given(st.integers(0, 2**31))
def test_the_names_of_points_and_the_units_of_values_do_not_matter(seed):
    f, rng = truth(seed), np.random.default_rng(seed)
    start, order, labels = rng.choice(81, 4, replace=False), rng.permutation(81), np.arange(81) // 6
    options = {"width": widths.Constant(2.0), "seed": 0}
    # Balls that share their worst point tie, and names break ties; groups share nothing.
    expected = trace(StableOpt(DOMAIN, gp=BELIEF, perturbation=Groups(labels), **options), f, start)
    renamed = StableOpt(Candidates(GRID[order]), gp=BELIEF, perturbation=Groups(labels[order]), **options)
    assert trace(renamed, f[order], np.argsort(order)[start]) == expected

    options["perturbation"] = Ball(0.2)
    expected = trace(StableOpt(DOMAIN, gp=BELIEF, **options), f, start)
    shifted = GP(BELIEF.kernel, noise=NOISE, mean=3.0)
    assert trace(StableOpt(DOMAIN, gp=shifted, **options), f + 3.0, start) == expected

    scaled = GP(SE([0.25, 0.35], variance=4.0), noise=4.0 * NOISE)
    assert trace(StableOpt(DOMAIN, gp=scaled, **options), 2.0 * f, start) == expected


def test_the_finite_width_holds_as_often_as_it_says():
    """With Finite(0.9) the bounds hold in all rounds, and so the certificate is right, in at least 90 % of runs."""
    runs, held = 60, 0
    worst_of = SETS["ball"].on(DOMAIN)
    for seed in range(runs):
        f, policy = truth(seed), make("ball", width=widths.Finite(0.9), report="own_time", seed=seed)
        for _ in rounds(policy, f, seed, 10):
            pass
        worst = worst_of.minimum(f)
        held += worst.max() - worst[policy.recommend().index] <= policy.certificate
    assert held / runs >= 0.9


def test_regret_falls_with_the_theorems_report():
    """Mean robust regret after 40 rounds is small beside that after 5 (20 functions of the prior)."""
    family, early, late = SETS["ball"].on(DOMAIN), [], []
    for seed in range(20):
        f, policy = truth(seed), make("ball", width=widths.Constant(2.0), report="own_time", seed=seed)
        worst = family.minimum(f)
        for number, _ in enumerate(rounds(policy, f, seed, 40), start=1):
            if number == 6:  # five are told
                early.append(worst.max() - worst[policy.recommend().index])
        late.append(worst.max() - worst[policy.recommend().index])
    assert np.mean(late) < 0.25 * np.mean(early)
    assert np.median(late) < 0.05


def test_the_realized_gain_is_that_of_the_samples():
    """The belief is given what was measured, not what was chosen."""
    policy, f = make("ball"), truth(0)
    rows = [query.index for _, _, query in rounds(policy, f, 0, 8)]
    grid = GridPosterior(BELIEF, GRID)
    for row, run in zip(rows, policy.history, strict=True):
        grid.append(row, run.value)
    assert policy.surrogate.believe().information_gain == pytest.approx(grid.information_gain)


@pytest.mark.slow
def test_the_order_of_the_authors_comparison():
    """The polynomial of their first experiment, 20 paired runs: mean robust regret after 25, 50 and 100 rounds.

    A run of this comparison by other code gave 7.1, 0, 0 for StableOpt; at the end 1.8 for Stable-GP-random, 8.0 for
    Stable-GP-UCB, 8.8 for MaxiMin-GP-UCB and 17.8 for GP-UCB.
    """
    points = grid_points(100)
    f = polynomial(points)
    domain, ball = Candidates(points), Ball(0.5)
    worst = ball.on(domain).minimum(f)
    options = {"gp": GP(SE([0.97, 1.09], variance=206.0**2), noise=0.01), "width": widths.Constant(2.0)}
    methods = {
        "StableOpt": lambda seed: StableOpt(domain, perturbation=ball, seed=seed, **options),
        "Stable-GP-random": lambda seed: RobustReport(RandomSearch(domain, seed=seed), ball, **options),
        "Stable-GP-UCB": lambda seed: RobustReport(GPUCB(domain, seed=seed, **options), ball),
        "MaxiMin-GP-UCB": lambda seed: MaxiMinGPUCB(domain, perturbation=ball, seed=seed, **options),
        "GP-UCB": lambda seed: GPUCB(domain, seed=seed, **options),
    }
    regret = {name: [] for name in methods}
    for seed in range(20):
        rng = np.random.default_rng(seed)
        start, noise = rng.choice(len(points), 10, replace=False), 0.1 * rng.standard_normal(110)
        for name, method in methods.items():
            policy = method(seed)
            for i, z in zip(start, noise[:10], strict=True):
                policy.tell(points[i], f[i] + z)
            row = []
            for number, z in enumerate(noise[10:], start=1):
                query = policy.ask()
                policy.tell(query, f[query.index] + z)
                if number in (25, 50, 100):
                    # GP-UCB reports the point it measures.
                    index = query.index if name == "GP-UCB" else policy.recommend().index
                    row.append(worst.max() - worst[index])
            regret[name].append(row)
    mean = {name: np.mean(rows, axis=0) for name, rows in regret.items()}
    print({name: row.round(2).tolist() for name, row in mean.items()})
    final = {name: np.array(rows)[:, -1] for name, rows in regret.items()}
    assert np.sum(final["StableOpt"] <= 0.1) >= 19
    assert mean["StableOpt"][1] < 0.5
    assert all(mean["StableOpt"][-1] < mean[name][-1] - 0.5 for name in methods if name != "StableOpt")
    assert mean["Stable-GP-random"][-1] < mean["Stable-GP-UCB"][-1] < mean["GP-UCB"][-1]
    assert mean["MaxiMin-GP-UCB"][-1] < mean["GP-UCB"][-1]
    assert mean["GP-UCB"][-1] > 15.0
