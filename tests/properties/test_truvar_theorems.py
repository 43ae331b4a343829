"""What is proved of TruVaR, checked on random functions; numbers are those of the thesis's chapter 3."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot import GP, SE, Candidates, Matern, TruVaR, widths
from surefoot.belief import GridPosterior
from surefoot.belief.lookahead import Lookahead

LINE = Candidates(np.linspace(0.0, 1.0, 60))
seeds = st.integers(0, 10_000)


def prior(seed: int) -> GP:
    kernel = SE(0.15) if seed % 2 else Matern(2.5, 0.3)
    return GP(kernel, noise=10.0 ** -(2 + seed % 3))


def draw(gp: GP, seed: int) -> tuple[np.ndarray, np.random.Generator]:
    rng = np.random.default_rng(seed)
    return gp.condition().sample(LINE.points, 1, rng)[0], rng


def tell(policy: TruVaR, f: np.ndarray, rng: np.random.Generator) -> None:
    query = policy.ask()
    policy.tell(query, float(f[query.index] + math.sqrt(policy.gp.noise) * rng.standard_normal()))


@settings(max_examples=12, deadline=None)
@given(seeds, st.sampled_from([0.0, 0.2]), st.sampled_from([0.1, 0.5]), st.sampled_from(["maximize", "level"]))
def test_after_an_epoch_only_nearly_optimal_or_nearly_critical_points_are_left(seed, slack, ratio, goal):
    """Lemmas 3.1 and 3.2: within 4(1 + δ̄)η of the maximum, 2(1 + δ̄)η of the threshold; nothing is misclassified."""
    gp = prior(seed)
    f, rng = draw(gp, seed)
    level = {"goal": "level", "threshold": 0.2} if goal == "level" else {}
    policy = TruVaR(LINE, gp=gp, scale=2.0, ratio=ratio, slack=slack, seed=seed, **level)
    assert policy.monotone
    before = np.ones(LINE.size, dtype=bool)
    for _ in range(25):
        tell(policy, f, rng)
        stage = policy.stages.now()
        mean, std = policy.stages.ground.predict(policy.surrogate.believe())
        if (np.abs(f - mean) > stage.width * std).any():
            return  # the bounds failed: nothing is promised
        M, ended = stage.potential, stage.eta / ratio
        assert not (M & ~before).any()
        before = M
        if goal == "level":
            assert (f[stage.above] > 0.2).all()
            assert (f[stage.below] < 0.2).all()
            if stage.epoch > 1:
                assert (np.abs(f[M] - 0.2) <= 2 * (1 + slack) * ended + 1e-12).all()
        else:
            assert M[f.argmax()]
            if stage.epoch > 1:
                assert (f.max() - f[M] <= 4 * (1 + slack) * ended + 1e-12).all()


@settings(max_examples=25, deadline=None)
@given(seeds, st.floats(0.05, 4.0), st.booleans())
def test_some_possible_maximizer_is_always_left(seed, scale, monotone):
    gp = prior(seed)
    f, rng = draw(gp, seed)
    policy = TruVaR(LINE, gp=gp, scale=scale, monotone=monotone, seed=seed)
    for _ in range(12):
        tell(policy, f, rng)
        assert policy.potential.any()


def test_the_theory_s_width_keeps_the_maximizer():
    """P(some maximizer ever leaves M) ≤ δ; with δ = 0.2 and 40 functions, more than 15 would be a surprise of 1e-2."""
    lost = 0
    for seed in range(40):
        gp = prior(seed)
        f, rng = draw(gp, seed)
        policy = TruVaR(LINE, gp=gp, width=widths.Finite(0.8), seed=seed)
        for _ in range(12):
            tell(policy, f, rng)
        lost += not policy.potential[f.argmax()]
    assert lost <= 8


@settings(max_examples=20, deadline=None)
@given(seeds, st.integers(0, 12), st.floats(1e-4, 1.0))
def test_the_rank_one_variance_is_that_of_an_appended_measurement(seed, count, noise):
    gp, rng = prior(seed), np.random.default_rng(seed)
    grid = GridPosterior(gp, LINE.points)
    for i in rng.integers(LINE.size, size=count):
        grid.append(int(i), float(rng.standard_normal()))
    x = int(rng.integers(LINE.size))
    before = grid.var.copy()
    gain = Lookahead(grid, np.arange(LINE.size)).gains([x], [noise])[0, 0]
    grid.append(x, 0.0, noise)
    assert gain == pytest.approx((before - grid.var).sum(), abs=1e-9)


@settings(max_examples=15, deadline=None)
@given(seeds)
def test_the_excess_variance_falls_by_what_was_promised(seed):
    """Inequality before (3.31), for every kernel: g_{t+1,max} ≤ g_{t,max} − g_t({x_t}) within an epoch."""
    gp = prior(seed)
    f, rng = draw(gp, seed)
    policy = TruVaR(LINE, gp=gp, scale=2.0, seed=seed)
    previous = None
    for _ in range(15):
        belief = policy.surrogate.believe()
        stage = policy.stages.now()
        rows = np.flatnonzero(stage.summed)
        left = np.maximum(stage.beta * belief.var[rows] - stage.eta**2, 0.0).sum()
        if previous is not None and previous[0] == stage.epoch:
            assert left <= previous[1] - previous[2] + 1e-9
        gains = Lookahead(belief, rows).gains(scale=stage.beta, floor=stage.eta**2)[0]
        tell(policy, f, rng)
        previous = (stage.epoch, left, gains[policy.queries[-1].index])


@settings(max_examples=15, deadline=None)
@given(seeds, st.floats(1e-3, 1e3))
def test_scaling_all_costs_changes_nothing(seed, factor):
    gp = prior(seed)
    f, _ = draw(gp, seed)
    cost = 0.5 + np.random.default_rng(seed).random(LINE.size)
    asked = []
    for c in (cost, factor * cost):
        policy = TruVaR(LINE, gp=gp, cost=c, seed=seed)
        rng = np.random.default_rng(seed)
        for _ in range(8):
            tell(policy, f, rng)
        asked.append([query.index for query in policy.queries])
    assert asked[0] == asked[1]


@pytest.mark.parametrize("noise", [1e-4, 1e-2, 1.0, 10.0])
def test_greedy_measurements_shrink_the_largest_variance_as_fast_as_the_information_grows(noise):
    """max σ²_k ≤ C₁ γ_k/k with C₁ = 2/log(1 + σ⁻²); with the printed C₁ of half that, it fails at once."""
    right, printed = 2.0 / math.log1p(1.0 / noise), 1.0 / math.log1p(1.0 / noise)
    grid = GridPosterior(GP(SE(0.1), noise=noise), LINE.points)
    for k in range(1, 25):
        grid.append(int(grid.var.argmax()), 0.0)
        assert grid.var.max() <= right * math.e / (math.e - 1.0) * grid.information_gain / k + 1e-9
    # Two points that know nothing of each other: γ_1 = ½ log(1 + σ⁻²), and the other's variance is still 1.
    apart = GridPosterior(GP(SE(0.1), noise=noise), np.array([[0.0], [9.0]]))
    apart.append(0, 0.0)
    assert apart.var.max() == pytest.approx(right * apart.information_gain)
    assert apart.var.max() > 1.5 * printed * apart.information_gain
