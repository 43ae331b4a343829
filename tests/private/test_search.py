"""Private selection: the bill is that of the theorems, an attack stays below it, a selection that peeks is found."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from surefoot import BudgetSpent, Float, Space
from surefoot.errors import SurefootError
from surefoot.private import (
    GaussianEvent,
    Ledger,
    Repeats,
    ResearchNoise,
    StatedEvent,
    epsilon,
    private_search,
    renyi,
    selection_epsilon,
    selection_multiplier,
)
from surefoot.private.audit import audit
from surefoot.private.cases import AUDITS

SHAPES = [1.0, 0.5, 0.0, -0.5, 3.0, math.inf]
SPACE = Space(rate=Float(0.0, 1.0))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("mean", [1.5, 10.0, 100.0])
def test_the_number_of_runs_has_its_mean_and_its_distribution(mean, shape):
    repeats = Repeats(mean, shape=shape)
    k = np.arange(0, 1_500_000)
    masses = repeats.probability(k)
    assert masses.sum() == pytest.approx(1.0, abs=1e-8)
    assert (masses * k).sum() == pytest.approx(mean, rel=1e-6)
    if not math.isinf(shape) and shape:  # the ratio of neighbors, as published
        one, two = repeats.probability(np.array([3, 4]))
        assert two / one == pytest.approx((1.0 - repeats.gamma) * (3 + shape) / 4)
    drawn = repeats.draw(ResearchNoise(0), 20_000)
    edges = np.unique(np.quantile(drawn, np.linspace(0.0, 1.0, 9)[1:-1]).astype(int))
    groups = np.searchsorted(edges, drawn)
    wanted = np.diff(np.concatenate([[0.0], np.cumsum(masses)[edges], [1.0]]))
    seen = np.bincount(groups, minlength=len(wanted))[: len(wanted)]
    assert stats.chisquare(seen, wanted / wanted.sum() * seen.sum()).pvalue > 1e-4


@pytest.mark.parametrize("shape", [1.0, 0.5, 0.0, math.inf])
@pytest.mark.parametrize(
    "event", [GaussianEvent(4.0), GaussianEvent(1.0, 0.01, 1000), GaussianEvent(20.0, count=3)], ids=str
)
def test_the_published_bounds_to_three_digits(event, shape):
    """dp-accounting computes the same theorems; at the same orders it gives the same, and at more of them no less."""
    accounting = pytest.importorskip("dp_accounting.dp_event")
    from dp_accounting.rdp import RdpAccountant

    repeats = Repeats(25.0, shape=shape)
    orders = renyi.ORDERS.tolist()
    peer = RdpAccountant(orders=orders)
    one = accounting.GaussianDpEvent(event.noise_multiplier)
    if event.sampling < 1.0:
        one = accounting.PoissonSampledDpEvent(event.sampling, one)
    one = accounting.SelfComposedDpEvent(one, event.count)
    peer.compose(accounting.RepeatAndSelectDpEvent(one, 25.0, shape))
    assert selection_epsilon(event, repeats, 1e-6) == pytest.approx(peer.get_epsilon(1e-6), rel=1e-3)


@pytest.mark.parametrize("shape", [1.0, 0.0, 0.5])
def test_the_closed_form_of_concentrated_runs(shape):
    """Corollary 4: for ρ-zCDP runs ε'(λ) = ρλ + (1 + η)(2 √(ρ log(1/γ)) − ρ) + log(E K)/(λ − 1)."""
    rho, repeats = 0.02, Repeats(30.0, shape=shape)
    base = renyi.gaussian(math.sqrt(1.0 / (2.0 * rho)))
    orders = renyi.ORDERS
    closed = (
        rho * orders
        + (1.0 + shape) * (2.0 * math.sqrt(rho * -math.log(repeats.gamma)) - rho)
        + math.log(30.0) / (orders - 1.0)
    )
    wanted = np.minimum.accumulate(closed[::-1])[::-1]
    assert repeats.divergence(base) == pytest.approx(wanted, rel=1e-3)


def test_pure_runs_cost_two_plus_shape_times():
    """Liu and Talwar's 3ε for the geometric number, and less for the logarithmic one, whatever the mean."""
    for shape, factor in ((1.0, 3.0), (0.0, 2.0), (0.5, 2.5)):
        found = selection_epsilon(StatedEvent(0.3), Repeats(1e4, shape=shape), 1e-9)
        assert found <= factor * 0.3
        assert found == pytest.approx(factor * 0.3, rel=0.02)
    # Randomized response shows that these are the right size: the geometric search has about 3ε.
    gap, repeats = 0.1, Repeats(1e5)
    low = 1.0 / (1.0 + math.exp(gap))
    k = np.arange(1, 2_000_000)
    masses = repeats.probability(k)
    none = [float((masses * np.exp(k * np.log1p(-p))).sum()) for p in (low / 1e3, math.exp(gap) * low / 1e3)]
    assert none[0] / none[1] < math.exp(3.0 * gap)


@pytest.mark.parametrize("shape", [1.0, 0.0, math.inf])
def test_the_exact_divergence_of_the_best_of_many_stays_below(shape):
    """The density of the best of K Gaussian runs is known; its Rényi divergence is below the bound at every order."""
    z, repeats = 2.0, Repeats(8.0, shape=shape)
    v = np.linspace(-60.0, 60.0, 40_001)
    k = np.arange(1, 3000)
    weights = repeats.probability(k) * k

    def density(center):
        below = stats.norm.logcdf(v, center, z)
        total = np.zeros_like(v)
        for one, weight in zip(k[:400], weights[:400], strict=True):
            total += weight * np.exp((one - 1) * below)
        return total * stats.norm.pdf(v, center, z)

    one, two = density(0.0), density(1.0)
    bound = repeats.divergence(renyi.gaussian(z))
    step = v[1] - v[0]
    nothing = float(repeats.probability(0)) if math.isinf(shape) else 0.0
    for order in (1.5, 2.0, 5.0, 20.0):
        for p, q in ((one, two), (two, one)):
            kept = (p > 1e-250) & (q > 1e-250)
            logs = order * np.log(p[kept]) + (1.0 - order) * np.log(q[kept])
            moment = np.exp(logs).sum() * step + nothing
            place = int(np.argmin(np.abs(renyi.ORDERS - order)))
            assert math.log(moment) / (order - 1.0) <= bound[place] + 1e-9


def test_a_search_costs_more_than_a_run_and_less_than_all_runs():
    one = GaussianEvent(4.0)
    for shape in (1.0, 0.0, math.inf):
        found = selection_epsilon(one, Repeats(30.0, shape=shape), 1e-5)
        assert epsilon(one, 1e-5) < found < epsilon(GaussianEvent(4.0, count=30), 1e-5)
    assert selection_epsilon(one, Repeats(1.0), 1e-5) == pytest.approx(epsilon(one, 1e-5, method="rdp"))
    z = selection_multiplier(3.0, 1e-5, Repeats(30.0), sampling=0.1, count=50)
    assert 2.99 < selection_epsilon(GaussianEvent(z, 0.1, 50), Repeats(30.0), 1e-5) <= 3.0


# ---------------------------------------------------------------------------------------------------------------- audit


def peeking(claim, delta, trials):
    """Many runs, the best by its exact value, published with noise that is charged once."""
    z = selection_multiplier(claim, delta, Repeats(10.0))

    def release(scores, noise, count):
        best = int(np.argmax(scores))
        values = noise.gaussian(np.full(count, scores[best]), z)
        return np.stack([np.full(count, float(best)), values], axis=1)

    two = np.array([1.0, 0.5])
    return audit(release, np.array([0.0, 0.5]), two, delta=delta, claim=claim, trials=trials)


def all_shown(claim, delta, trials):
    """Ten runs, all of them looked at, the best published at the price of one."""
    from surefoot.private import noise_multiplier

    z = noise_multiplier(claim, delta)
    return audit(
        lambda value, noise, count: noise.gaussian(np.full((count, 10), value), z),
        0.0, 1.0, delta=delta, claim=claim, trials=trials, score=lambda runs: runs.mean(axis=1),
    )  # fmt: skip


@pytest.mark.parametrize("setting", [(0.5, 1e-3), (1.0, 1e-3), (3.0, 1e-2)])
def test_a_search_survives_its_audit_and_one_that_peeks_does_not(setting):
    """With 100,000 trials, at three settings."""
    claim, slack = setting
    case = AUDITS["private-selection"](claim, slack)
    found = audit(case.release, case.one, case.two, delta=slack, claim=claim, trials=100_000, score=case.score)
    assert not found.refuted
    assert found.bound.epsilon > 0.02 * claim
    assert peeking(claim, slack, 100_000).refuted
    assert all_shown(claim, slack, 100_000).refuted


# --------------------------------------------------------------------------------------------------------------- search


def test_a_search_charges_first_and_tells_the_best_only():
    ledger = Ledger(epsilon=2.0, delta=1e-5)
    seen = []

    def run(params):
        assert len(ledger.entries) == 1
        seen.append(params["rate"])
        return -abs(params["rate"] - 0.3), {"model": params["rate"]}

    found = private_search(run, SPACE, event=GaussianEvent(6.0), repeats=Repeats(20.0), delta=5e-6, ledger=ledger)
    assert found.params["rate"] == found.output["model"] == min(seen, key=lambda rate: abs(rate - 0.3))
    assert not hasattr(found, "runs")
    assert found.guarantee.epsilon == pytest.approx(ledger.entries[0].event.epsilon)
    assert ledger.entries[0].note == {"what": "private_search"}
    with pytest.raises(BudgetSpent):
        private_search(run, SPACE, event=GaussianEvent(6.0), repeats=Repeats(20.0), delta=4e-6, ledger=ledger)


def test_runs_that_fail_count_as_the_worst_and_say_nothing(capsys):
    def run(params):
        if params["rate"] > 0.5:
            raise RuntimeError("patient 17")
        return math.nan if params["rate"] > 0.4 else params["rate"]

    options = {"event": GaussianEvent(6.0), "repeats": Repeats(40.0), "delta": 1e-5, "noise": ResearchNoise(3)}
    found = private_search(run, SPACE, **options)
    assert found.params["rate"] <= 0.4
    assert found.simulated
    assert "17" not in capsys.readouterr().err
    nothing = private_search(lambda params: math.nan, SPACE, **options)
    assert nothing.params is None
    with pytest.raises(ValueError, match="must return a finite number"):
        private_search(run, SPACE, sensitivity=0.1, **options)


def test_exact_values_get_the_noise_that_was_stated():
    values = [
        private_search(
            lambda params: (0.0, "secret"), SPACE, event=GaussianEvent(5.0), repeats=Repeats(1.0), delta=1e-5,
            sensitivity=0.1, noise=ResearchNoise(seed),
        )
        for seed in range(300)
    ]  # fmt: skip
    assert stats.kstest([one.value for one in values], stats.norm(0.0, 0.5).cdf).pvalue > 1e-3
    assert {one.output for one in values} == {None}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"event": GaussianEvent(0.0)}, "no finite epsilon"),
        ({"event": StatedEvent(1.0, 1e-6)}, "say their noise"),
        ({"event": GaussianEvent(1.0, 0.5), "sensitivity": 1.0}, "without sampling"),
        ({"delta": 0.0}, "delta"),
        ({"sensitivity": -1.0}, "sensitivity"),
    ],
)
def test_bad_input_is_refused_before_anything_is_charged(change, words):
    ledger = Ledger(epsilon=50.0, delta=1e-3)
    options = {"event": GaussianEvent(5.0), "repeats": Repeats(5.0), "delta": 1e-5, "ledger": ledger, **change}
    with pytest.raises(ValueError, match=words):
        private_search(lambda params: 0.0, SPACE, **options)
    assert not ledger.entries
    with pytest.raises(SurefootError, match="simulated"):
        private_search(
            lambda params: 0.0, SPACE, event=GaussianEvent(5.0), repeats=Repeats(5.0), delta=1e-5, ledger=ledger,
            noise=ResearchNoise(0),
        )  # fmt: skip
    for wrong in ({"mean": 0.5}, {"mean": math.nan}, {"mean": 3.0, "shape": -1.0}):
        with pytest.raises(ValueError, match=r"mean|shape"):
            Repeats(**wrong)
