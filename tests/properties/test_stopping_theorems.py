"""What is proved about optimal stopping, for whatever paths, losses and options.

Dai, Yu, Low and Jaillet 2019: Lemma A.8 (the stop-cell bound), the terminal rule, bounds and monotonicity of the value,
the limits of K₁ and c, and the equivalence of two ways to book the cost.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot.stopping import ACCEPT, CONTINUE, STOP, ExponentialDecay, OptimalStopping, Plateau, count, induce

N = np.arange(1, 51)
PREFIXES = {
    "slow": 0.1 + 0.6 * np.exp(-0.03 * N),
    "decaying": 0.6 * np.exp(-0.05 * N),
    "plateau": 0.35 + 0.3 * np.exp(-0.2 * N),
    "flat": np.full(50, 0.5),
}

losses = st.fixed_dictionaries({"k1": st.floats(1.0, 1e5), "k2": st.floats(0.5, 500.0), "cost": st.floats(0.0, 50.0)})
options = st.fixed_dictionaries(
    {
        "minimum": st.integers(0, 40),
        "unvisited": st.sampled_from(["continue", "monotone", "resimulate"]),
        "smoothing": st.booleans(),
    }
)


@st.composite
def counted(draw):
    """Counts of paths of many kinds: any number of paths, epochs and cells; smooth, jumpy, and hardly winning."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    S, H = draw(st.integers(1, 400)), draw(st.integers(1, 7))
    step = draw(st.sampled_from([0.0, 0.02, 0.2, 1.0]))
    paths = np.clip(rng.random((S, 1)) + step * rng.standard_normal((S, H)).cumsum(axis=1), 0.0, 1.0)
    wins = paths[:, -1] < draw(st.floats(0.0, 1.0))
    return count(paths, wins, cells=draw(st.integers(3, 30)), adaptive=draw(st.booleans()))


@settings(max_examples=150, deadline=None)
@given(counts=counted(), loss=losses, option=options)
def test_stop_cell_bound(counts, loss, option):
    """Lemma A.8: before the last epoch, stopping means p ≤ (K₂ + c)/K₁."""
    found = induce(counts, **loss, **option)
    stops = (found.decisions[:-1] == STOP) & (counts.visits[:-1] > 0)
    bound = (loss["k2"] + loss["cost"]) / loss["k1"]
    assert (found.probability[:-1][stops] <= bound * (1 + 1e-12)).all()
    if found.root.decision == STOP:
        assert found.root.probability <= bound * (1 + 1e-12)


@settings(max_examples=100, deadline=None)
@given(counts=counted(), loss=losses)
def test_terminal_rule(counts, loss):
    """In the last epoch: stop if and only if p ≤ K₂/(K₁ + K₂), else accept."""
    found = induce(counts, **loss, minimum=0)
    seen = counts.visits[-1] > 0
    p, border = found.probability[-1][seen], loss["k2"] / (loss["k1"] + loss["k2"])
    clear = np.abs(p - border) > 1e-9
    np.testing.assert_array_equal((found.decisions[-1][seen] == STOP)[clear], (p <= border)[clear])
    assert (found.decisions[-1][seen] != CONTINUE).all()


@settings(max_examples=100, deadline=None)
@given(counts=counted(), loss=losses, smoothing=st.booleans())
def test_value_bounds(counts, loss, smoothing):
    """0 ≤ V ≤ K₁K₂/(K₁ + K₂): the worst case of the two terminal losses."""
    found = induce(counts, **loss, smoothing=smoothing)
    V = found.value[counts.visits > 0]
    top = loss["k1"] * loss["k2"] / (loss["k1"] + loss["k2"])
    assert (V >= 0).all()
    assert (top * (1 + 1e-12) >= V).all()
    assert 0 <= found.root.value <= top * (1 + 1e-12)


@settings(max_examples=100, deadline=None)
@given(counts=counted(), loss=losses, name=st.sampled_from(["k1", "k2", "cost"]), factor=st.floats(1.0, 10.0))
def test_value_grows_with_every_loss(counts, loss, name, factor):
    seen = counts.visits > 0
    less = induce(counts, **loss).value[seen]
    more = induce(counts, **{**loss, name: loss[name] * factor + factor - 1}).value[seen]
    assert (more >= less * (1 - 1e-12) - 1e-12).all()


@settings(max_examples=50, deadline=None)
@given(counts=counted(), loss=losses, option=options)
def test_infinite_losses_switch_their_decision_off(counts, loss, option):
    never_stop = induce(counts, **{**loss, "k1": math.inf}, **option)
    assert not (never_stop.decisions == STOP).any()
    assert never_stop.root.saved == 0.0
    never_accept = induce(counts, **{**loss, "k2": math.inf}, **option)
    assert not (never_accept.decisions == ACCEPT).any()
    neither = induce(counts, **{**loss, "k1": math.inf, "k2": math.inf}, **option)
    assert (neither.decisions == CONTINUE).all()


@settings(max_examples=50, deadline=None)
@given(counts=counted(), loss=losses)
def test_a_dear_epoch_is_never_run(counts, loss):
    """c → ∞: no visited cell continues."""
    found = induce(counts, **{**loss, "cost": 1e9}, minimum=0)
    assert (found.decisions[counts.visits > 0] != CONTINUE).all()


@pytest.mark.parametrize("name", PREFIXES)
def test_a_free_epoch_never_hurts(name):
    """c = 0: information has no negative value, up to Monte Carlo error of the cells."""
    rule = OptimalStopping(epochs=50, paths=20_000, cost=0.0)
    table = rule.fit(1 - PREFIXES[name][:8], 0.85, np.random.default_rng(0))
    p, V, visits = table.probability[:-1], table.value[:-1], table.visits[:-1]
    terminal = np.minimum(rule.k1 * p, rule.k2 * (1 - p))
    moves, following = table.counts.moves, np.nan_to_num(table.value[1:])
    go_on = np.einsum("jmk,jk->jm", moves, following) / np.maximum(visits, 1)
    well = visits > 300
    assert (go_on[well] <= terminal[well] + 4.0).all()  # of losses up to 50
    assert np.mean(go_on[well] <= terminal[well] + 1e-9) > 0.6
    assert (V[well] <= terminal[well]).all()


@settings(max_examples=60, deadline=None)
@given(counts=counted(), loss=losses)
def test_shift_equivalence(counts, loss):
    """Booking the cost so far in the terminal losses is the same recursion, shifted by c per epoch."""
    found = induce(counts, **loss, minimum=0)
    H, M = counts.visits.shape
    c, seen = loss["cost"], counts.visits > 0
    p = np.where(seen, counts.wins / np.maximum(counts.visits, 1), 0.0)
    shifted = np.zeros((H, M))
    for j in reversed(range(H)):
        paid = c * (j + 1)
        shifted[j] = np.minimum(loss["k1"] * p[j] + paid, loss["k2"] * (1 - p[j]) + paid)
        if j < H - 1:
            shifted[j] = np.minimum(shifted[j], counts.moves[j] @ shifted[j + 1] / np.maximum(counts.visits[j], 1))
    shift = c * np.arange(1, H + 1)[:, None]
    np.testing.assert_allclose(np.where(seen, shifted - shift, 0), np.where(seen, found.value, 0), atol=1e-7)


@pytest.mark.parametrize("model", [ExponentialDecay(), ExponentialDecay(hyper="grid"), Plateau()])
def test_tables_are_functions_of_the_seed_and_not_of_the_order_of_paths(model):
    rule = OptimalStopping(epochs=50, paths=4_000, model=model)
    one, two, other = (rule.fit(1 - PREFIXES["slow"][:8], 0.9, np.random.default_rng(seed)) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one.decisions, two.decisions)
    np.testing.assert_array_equal(one.value, two.value)
    assert (one.visits != other.visits).any()
    paths = model.sample(PREFIXES["slow"][:8], 50, 4_000, np.random.default_rng(0))
    wins = paths[:, -1] < 0.1
    mixed = np.random.default_rng(5).permutation(len(paths))
    counts, shuffled = count(paths, wins), count(paths[mixed], wins[mixed])
    np.testing.assert_array_equal(counts.moves, shuffled.moves)
    np.testing.assert_array_equal(counts.wins, shuffled.wins)


def test_calibration_on_fresh_paths():
    """Played on new curves of the same model, false stops fall with K₁, and the mean stopping epoch rises."""
    errors, threshold = PREFIXES["slow"][:8], 0.9
    rule = OptimalStopping(epochs=50, paths=40_000)
    fresh = rule.model.sample(errors, 50, 40_000, np.random.default_rng(99))
    wins = fresh[:, -1] < 1 - threshold
    false_stops, epochs = [], []
    for k1 in (100.0, 200.0, 1000.0, 1e5):
        table = rule.fit(1 - errors, threshold, np.random.default_rng(0), k1=k1)
        epoch, stopped = table.play(fresh)
        false_stops.append(np.mean(stopped & wins))
        epochs.append(epoch.mean())
        # The average over stop cells obeys the lemma as well: with Monte Carlo room of three standard errors.
        share = np.mean(wins[stopped])
        assert share <= (rule.k2 + rule.cost) / k1 + 3 * math.sqrt(max(share, 1e-4) / stopped.sum())
    assert np.all(np.diff(false_stops) <= 0)
    assert np.all(np.diff(epochs) > 1.0)
    assert false_stops[0] > 0.01
    assert false_stops[-1] < 0.002


def test_cell_probabilities_are_calibrated_on_fresh_paths():
    """In well-visited cells the estimated probability of winning agrees with the share among new curves."""
    errors, threshold = PREFIXES["slow"][:8], 0.88
    rule = OptimalStopping(epochs=50, paths=40_000)
    table = rule.fit(1 - errors, threshold, np.random.default_rng(0))
    fresh = rule.model.sample(errors, 50, 40_000, np.random.default_rng(7))
    counts = count(fresh, fresh[:, -1] < 1 - threshold)
    well = (table.visits > 400) & (counts.visits > 400)
    p, q = table.probability[well], (counts.wins / np.maximum(counts.visits, 1))[well]
    spread = np.sqrt(np.maximum(p * (1 - p), 1e-3) * (1 / table.visits[well] + 1 / counts.visits[well]))
    assert np.mean(np.abs(p - q) <= 2 * spread) > 0.9
    assert np.abs(p - q).max() < 0.1
    assert table.forecast == pytest.approx(np.mean(fresh[:, -1] < 1 - threshold), abs=0.01)


def test_growing_k1_alone_does_not_switch_stopping_off():
    """Where no simulated path wins, K₁ p is 0 for every finite K₁; smoothed estimates end it."""
    errors = PREFIXES["slow"][:8]
    plain, smooth = (OptimalStopping(epochs=50, paths=20_000, smoothing=s) for s in (False, True))
    stops = [
        np.count_nonzero(rule.fit(1 - errors, 0.9, np.random.default_rng(0), k1=k1).decisions[:-1] == STOP)
        for rule in (plain, smooth)
        for k1 in (1e5, 1e9)
    ]
    assert stops[0] > 50
    assert stops[1] > 50
    assert stops[3] == 0
