"""Accounting: published losses, closed forms, an independent accountant, and what must grow when something grows."""

from __future__ import annotations

import math

import dp_accounting
import numpy as np
import pytest
from dp_accounting import pld, rdp
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from scipy.integrate import quad

from surefoot.errors import MissingExtra
from surefoot.private import accounting, renyi
from surefoot.private.accounting import (
    METHODS,
    GaussianEvent,
    StatedEvent,
    delta,
    epsilon,
    gaussian_delta,
    gaussian_scale,
    noise_multiplier,
)

SYNTHETIC = [(0.15, 1.0, 5.93), (0.25, 1.0, 9.91), (0.5, 1.0, 20.12), (0.25, 1.2, 7.39), (0.25, 1.5, 5.22)]
LANDMINE = [
    (0.35, 1.0, 15.17), (0.35, 1.6, 7.12), (0.35, 2.0, 5.14), (0.35, 3.0, 3.05), (0.35, 4.0, 2.16),
    (0.1, 1.0, 3.75), (0.15, 1.0, 5.98), (0.2, 1.0, 7.69), (0.25, 1.0, 9.82),
]  # fmt: skip
PUBLISHED = [(200, 40, *row) for row in SYNTHETIC] + [(29, 60, *row) for row in LANDMINE]
rates = st.floats(0.01, 0.9)
multipliers = st.floats(0.6, 5.0)
counts = st.integers(1, 60)
slacks = st.sampled_from([1e-6, 1e-4, 1e-2])


@pytest.mark.parametrize(("agents", "rounds", "q", "z", "published"), PUBLISHED)
def test_the_moments_accountant_gives_the_published_losses(agents, rounds, q, z, published):
    found = epsilon(GaussianEvent(z, q, rounds), agents**-1.1, method="moments")
    assert round(found, 2) == published


@pytest.mark.parametrize(
    ("q", "z", "expected"),
    [(0.15, 1.0, 4.850), (0.25, 1.0, 8.362), (0.5, 1.0, 17.906), (0.25, 1.2, 6.110), (0.25, 1.5, 4.262)],
)
def test_fractional_orders_with_the_improved_conversion(q, z, expected):
    """Never above the values of a coarser set of orders, and not far below."""
    found = epsilon(GaussianEvent(z, q, 40), 200**-1.1, method="rdp")
    assert expected - 0.03 < found < expected + 5e-4


def test_the_closed_form_at_the_first_moment():
    """With λ = 1: T log(1 + q²(e^(1/z²) - 1)) + log(1/δ); δ = 0.9 makes λ small the best order."""
    q, z, rounds = 0.35, 1.0, 400
    closed = rounds * math.log1p(q * q * math.expm1(1.0 / z**2)) + math.log(1.0 / 0.9)
    assert epsilon(GaussianEvent(z, q, rounds), 0.9, method="moments") == pytest.approx(closed, rel=1e-12)


@pytest.mark.parametrize("z", [0.3, 1.0, 7.0])
def test_without_sampling_it_is_the_plain_gaussian(z):
    assert renyi.gaussian(z, 1.0) == pytest.approx(renyi.ORDERS / (2.0 * z * z), rel=1e-15)
    assert renyi.gaussian(z, 1.0 - 1e-12) == pytest.approx(renyi.ORDERS / (2.0 * z * z), rel=1e-6)


@pytest.mark.parametrize(("q", "z", "alpha"), [(0.3, 0.5, 1.34), (0.05, 2.0, 4.3), (0.7, 1.0, 2.5), (0.01, 0.4, 7.7)])
def test_fractional_moments_against_quadrature(q, z, alpha):
    def integrand(x):
        ratio = np.logaddexp(math.log1p(-q), math.log(q) + (2.0 * x - 1.0) / (2.0 * z * z))
        return math.exp(-x * x / (2.0 * z * z) + alpha * ratio - math.log(z * math.sqrt(2.0 * math.pi)))

    direct = sum(
        quad(integrand, *ends, epsabs=0.0, epsrel=1e-12)[0]
        for ends in [(-12 * z, 0.5), (0.5, 3.0), (3.0, alpha + 12 * z)]
    )
    found = renyi.gaussian(z, q, np.array([alpha]))[0]
    assert found == pytest.approx(math.log(direct) / (alpha - 1.0), rel=1e-8)


@settings(max_examples=8, deadline=None, derandomize=True, phases=[Phase.generate])
@given(q=rates, z=st.floats(0.6, 40.0), rounds=counts, slack=slacks)
def test_agrees_with_the_accountants_of_dp_accounting(q, z, rounds, slack):
    """Ours is an upper bound on their finer grid, and close: a percent, or one step where ε is next to nothing."""
    event = dp_accounting.PoissonSampledDpEvent(q, dp_accounting.GaussianDpEvent(z))
    fine = (
        pld.PLDAccountant(value_discretization_interval=1e-4 if q / z > 0.01 else 1e-5)
        .compose(event, rounds)
        .get_epsilon(slack)
    )
    theirs = rdp.RdpAccountant(orders=np.arange(2, 65)).compose(event, rounds).get_epsilon(slack)
    ours = GaussianEvent(z, q, rounds)
    assert fine - 1e-6 <= epsilon(ours, slack) <= fine * 1.01 + 0.25 * q / z
    assert epsilon(ours, slack, method="rdp") <= theirs + 1e-9
    assert epsilon(ours, slack, method="rdp") >= fine - 1e-6


@settings(max_examples=15, deadline=None, derandomize=True, phases=[Phase.generate])
@given(q=rates, z=multipliers, rounds=counts, slack=slacks)
def test_the_privacy_loss_distribution_is_never_above_renyi(q, z, rounds, slack):
    """Already before the smaller of the two is taken."""
    event = GaussianEvent(z, q, rounds)
    alone = accounting._distribution([event]).get_epsilon_for_delta(slack)
    assert alone <= epsilon(event, slack, method="rdp") + 1e-3
    assert (
        epsilon(event, slack) <= epsilon(event, slack, method="rdp") <= epsilon(event, slack, method="moments") + 1e-9
    )


@settings(max_examples=15, deadline=None, derandomize=True, phases=[Phase.generate])
@given(q=rates, z=multipliers, rounds=counts, slack=slacks, method=st.sampled_from(METHODS))
def test_more_of_anything_costs_more(q, z, rounds, slack, method):
    cost = epsilon(GaussianEvent(z, q, rounds), slack, method=method)
    loose = 1e-9 + 1e-9 * cost
    assert epsilon(GaussianEvent(z, q, rounds + 1), slack, method=method) >= cost - loose
    assert epsilon(GaussianEvent(z, min(1.0, 1.1 * q), rounds), slack, method=method) >= cost - loose
    assert epsilon(GaussianEvent(1.1 * z, q, rounds), slack, method=method) <= cost + loose
    assert epsilon(GaussianEvent(z, q, rounds), 1.5 * slack, method=method) <= cost + loose


@settings(max_examples=15, deadline=None, derandomize=True, phases=[Phase.generate])
@given(q=rates, z=multipliers, rounds=counts, slack=slacks, method=st.sampled_from(METHODS))
def test_delta_and_epsilon_undo_each_other(q, z, rounds, slack, method):
    event = GaussianEvent(z, q, rounds)
    cost = epsilon(event, slack, method=method)
    if cost > 0.0:
        assert delta(event, cost, method=method) == pytest.approx(slack, rel=2e-2)


@pytest.mark.parametrize("method", METHODS)
def test_rounds_that_differ(method):
    """Equal rounds in pieces are the same; a quieter round among loud ones lies between."""
    whole = epsilon(GaussianEvent(1.5, 0.2, 10), 1e-4, method=method)
    pieces = [GaussianEvent(1.5, 0.2, 3), GaussianEvent(1.5, 0.2), GaussianEvent(1.5, 0.2, 6)]
    assert epsilon(pieces, 1e-4, method=method) == whole
    mixed = [GaussianEvent(1.5, 0.2, 5), GaussianEvent(3.0, 0.2, 5), GaussianEvent(9.0)]
    least, most = (epsilon(GaussianEvent(z, 0.2, 10), 1e-4, method=method) for z in (3.0, 1.5))
    assert least < epsilon(mixed, 1e-4, method=method) < most
    assert epsilon(mixed[::-1], 1e-4, method=method) == pytest.approx(epsilon(mixed, 1e-4, method=method), rel=1e-9)


def test_rounding_errors_of_a_schedule_do_not_make_rounds_differ():
    rounds = [GaussianEvent(2.0 * (1.0 + k * 1e-13), 0.3) for k in range(30)]
    assert len(accounting._merged(rounds, "pld")) == 1
    assert epsilon(rounds, 1e-4) == epsilon(GaussianEvent(2.0, 0.3, 30), 1e-4)
    assert len(accounting._merged([GaussianEvent(2.0 + k * 1e-4, 0.3) for k in range(5)], "pld")) == 5


def test_the_exact_sensitivity_accounting_of_a_schedule():
    """The landmine schedule at q = 0.35, z = 1: z_eff = 2z while the weights are concentrated, 9.12 in all."""
    a = np.concatenate([np.full(10, 16.0), np.linspace(16.0, 1.0, 30), np.ones(20)])
    region = np.arange(29) % 4
    events = []
    for value in a:
        weights = np.where(region == np.arange(4)[:, None], math.exp(value - 1.0), 1.0)
        weights /= weights.sum(axis=1, keepdims=True)
        share = np.sqrt(((weights / weights.max(axis=1, keepdims=True)) ** 2).sum(axis=0)).max()
        events.append(GaussianEvent(2.0 / share, 0.35))
    assert epsilon(events, 29**-1.1, method="moments") == pytest.approx(9.12, abs=0.005)
    assert epsilon(events, 29**-1.1) < epsilon(events, 29**-1.1, method="rdp") < 9.12


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("q", "rounds"), [(1.0, 1), (1.0, 7), (0.2, 30)])
def test_the_noise_multiplier_is_enough_and_hardly_more(method, q, rounds):
    z = noise_multiplier(2.0, 1e-5, sampling=q, count=rounds, method=method)
    assert epsilon(GaussianEvent(z, q, rounds), 1e-5, method=method) <= 2.0 + 1e-12
    assert epsilon(GaussianEvent(z * (1 - 1e-4), q, rounds), 1e-5, method=method) > 2.0


@pytest.mark.parametrize(
    ("power", "slack", "expected"),
    [(0.0, 1e-5, 3.731), (1.1, 1e-5, 1.389), (2.3, 1e-3, 0.407), (2.8, 1e-4, 0.311), (2.9, 1e-5, 0.312)],
)
def test_the_analytic_gaussian_mechanism(power, slack, expected):
    scale = gaussian_scale(math.exp(power), slack)
    assert round(scale, 3) == expected
    assert gaussian_delta(scale, math.exp(power)) <= slack
    assert gaussian_delta(scale, math.exp(power)) == pytest.approx(slack, rel=1e-9)
    assert gaussian_scale(math.exp(power), slack, 2.5) == pytest.approx(2.5 * scale)
    assert noise_multiplier(math.exp(power), slack) == scale


def test_the_analytic_mechanism_against_the_integral():
    """δ = ∫ max(0, p(x) - e^ε p(x - 1)) dx, by brute force."""
    x = np.linspace(-30.0, 30.0, 2_000_001)
    for scale, cost in ((0.5, 4.0), (1.5, 0.3), (4.0, 1.0)):
        log_p, log_q = -(x**2) / (2 * scale**2), -((x - 1.0) ** 2) / (2 * scale**2)
        gap = np.maximum(0.0, np.exp(log_p) - np.exp(cost + log_q)) / (scale * math.sqrt(2 * math.pi))
        assert gaussian_delta(scale, cost) == pytest.approx(np.trapezoid(gap, x), rel=1e-6)


@pytest.mark.parametrize("method", METHODS)
def test_stated_guarantees_compose(method):
    """One is itself, many are less than their sum, a δ of their own is used up."""
    assert epsilon(StatedEvent(0.5), 1e-9, method=method) >= 0.5 - 1e-6 or method != "pld"
    assert epsilon(StatedEvent(0.5), 1e-9, method="pld") == pytest.approx(0.5, abs=2e-3)
    assert epsilon(StatedEvent(0.05, count=400), 1e-5, method=method) < 0.5 * 400 * 0.05
    assert epsilon(StatedEvent(0.05, 1e-6, count=10), 9e-6, method=method) == math.inf
    mixed = [StatedEvent(0.3, 1e-7), GaussianEvent(2.0, 0.3, 4)]
    assert epsilon(mixed, 1e-5, method=method) > epsilon(mixed[1], 1e-5, method=method)


def test_nothing_and_everything():
    assert epsilon([], 1e-5) == epsilon(GaussianEvent(1.0, 0.0), 1e-5) == delta([], 1.0) == 0.0
    assert epsilon(GaussianEvent(0.0, 0.5), 1e-5) == math.inf
    assert delta([GaussianEvent(3.0), GaussianEvent(0.0)], 1.0) == 1.0
    assert epsilon(GaussianEvent(1e6), 1e-5) == 0.0
    assert 1e3 < epsilon(GaussianEvent(0.02, 0.5, 10), 1e-5) < math.inf


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: GaussianEvent(-1.0), "noise_multiplier must be"),
        (lambda: GaussianEvent(math.nan), "noise_multiplier must be"),
        (lambda: GaussianEvent(1.0, 1.1), "sampling must be"),
        (lambda: GaussianEvent(1.0, count=0), "count must be at least 1, got 0"),
        (lambda: StatedEvent(math.inf), "epsilon must be"),
        (lambda: StatedEvent(1.0, 1.0), "delta must be"),
        (lambda: epsilon(GaussianEvent(1.0), 0.0), "delta must lie strictly between 0 and 1, got 0.0"),
        (
            lambda: epsilon(GaussianEvent(1.0), 1e-5, method="basic"),
            "method must be one of pld, rdp, moments, got 'basic'",
        ),
        (lambda: delta(GaussianEvent(1.0), -1.0), "epsilon must be"),
        (lambda: noise_multiplier(0.0, 1e-5), "epsilon must be positive"),
        (lambda: noise_multiplier(1.0, 1e-5, sampling=2.0), "sampling must be"),
        (lambda: gaussian_scale(1.0, 1e-5, -1.0), "sensitivity must be positive"),
        (lambda: gaussian_delta(0.0, 1.0), "scale must be positive"),
        (lambda: gaussian_delta(1.0, -0.1), "epsilon must be a finite number of at least 0, got -0.1"),
        (lambda: gaussian_delta(1.0, math.nan), "epsilon must be a finite number of at least 0, got nan"),
        (lambda: gaussian_scale(0.0, 1e-5), "epsilon must be positive and finite, got 0.0"),
        (lambda: gaussian_scale(math.inf, 1e-5), "epsilon must be positive and finite, got inf"),
    ],
)
def test_bad_values_are_named(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_wrong_kinds_are_named():
    with pytest.raises(TypeError, match=r"count must be a whole number, got 2\.5"):
        GaussianEvent(1.0, count=2.5)
    with pytest.raises(TypeError, match=r"expected a GaussianEvent or a StatedEvent, got 1\.0"):
        epsilon([1.0], 1e-5)


def test_without_dp_accounting_the_error_says_what_to_install(monkeypatch):
    import sys

    accounting._one_distribution.cache_clear()
    monkeypatch.setitem(sys.modules, "dp_accounting.pld", None)
    with pytest.raises(MissingExtra, match=r"pip install 'surefoot\[private\]'"):
        epsilon(GaussianEvent(1.0, 0.3), 1e-5)
    assert epsilon(GaussianEvent(1.0), 1e-5) > 0.0  # a closed form needs nothing
    assert epsilon(GaussianEvent(1.0, 0.3), 1e-5, method="rdp") > 0.0


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("sampling", [0.3, 1.0])
def test_noise_too_small_to_square_is_no_privacy_and_noise_too_large_is_no_cost(method, sampling):
    assert epsilon(GaussianEvent(1e-200, sampling), 1e-5, method=method) == math.inf
    assert delta(GaussianEvent(1e-200, sampling), 1.0, method=method) == 1.0
    loud = epsilon(GaussianEvent(1e200, sampling), 1e-5, method=method)
    assert loud == epsilon(GaussianEvent(1e10, sampling), 1e-5, method=method) < 0.4
