"""Judging runs without a belief: the same as the Optuna pruner says, and what a host's scheduler relies on."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest

from surefoot.bridge.axes import Axes, Items, Lattice, Plain
from surefoot.bridge.judge import Judge
from surefoot.domain import Float
from surefoot.loop.streams import stream
from surefoot.stopping import OptimalStopping

NAN = math.nan


def curve(end, epochs=20, rate=0.6):
    return end * (1.0 - rate ** np.arange(1, epochs + 1))


def by_epoch(scores):
    return dict(enumerate(scores, start=1))


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
@pytest.mark.parametrize("bounds", [(0.0, 1.0), None])
def test_it_says_what_the_pruner_says(direction, bounds):
    """The same runs through an Optuna study and its pruner, epoch by epoch: equal advice, to the last bit."""
    optuna = pytest.importorskip("optuna", reason="Optuna is not installed")
    from surefoot.bridge.optuna import BosPruner

    sign = 1.0 if direction == "maximize" else -1.0
    offset = 0.0 if direction == "maximize" else 1.0  # an error, 1 − accuracy
    options = {"epochs": 20, "bounds": bounds, "complete": 2, "seed": 5}
    study, judge = optuna.create_study(direction=direction), Judge(**options)
    pruner = BosPruner(**options)
    rng = np.random.default_rng(0)
    ended, stops = [], 0
    for number, end in enumerate([0.7, 0.8, 0.3, 0.75, 0.95, 0.5]):
        values = offset + sign * (curve(end) + 0.01 * rng.standard_normal(20))
        trial = study.ask()
        for epoch, value in enumerate(values, start=1):
            trial.report(float(value), epoch)
            frozen = study.get_trials()[number]
            advice = judge.advise(number, by_epoch(sign * values[:epoch]), ended, sign=sign)
            assert advice == pruner.advise(study, frozen)
            if advice.stop:
                break
        stops += advice.stop
        state = optuna.trial.TrialState.PRUNED if advice.stop else optuna.trial.TrialState.COMPLETE
        study.tell(trial, None if advice.stop else float(value), state=state)
        ended.append(sign * values[:epoch])
    assert 1 <= stops <= 3


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_it_is_the_table_with_the_best_end_as_threshold_and_a_growing_loss(sign):
    rule = OptimalStopping(epochs=20, initial=4, paths=4_000, k1=50.0)
    bounds = (0.0, 2.0) if sign > 0 else (-2.0, 0.0)
    judge = Judge(epochs=20, stopping=rule, bounds=bounds, complete=2, growth=0.5, seed=5)
    ended = [curve(1.5), curve(1.2), curve(1.8)[:7]]  # the third one was stopped below the first
    ended[2][-1] = 1.3
    scores = curve(1.4, rate=0.8)
    bar = curve(1.5)[-1] / 2.0
    watch = rule.watch(bar, lambda n: stream(5, "paths", n, within=(4,)), k1=50.0 / 0.5**2)
    for n in range(5, 20):
        decision, advice = watch.report(scores[:n] / 2.0), judge.advise(4, by_epoch(scores[:n]), ended, sign=sign)
        assert (advice.stop, advice.probability) == (decision.stop, decision.probability)
        assert f"beat {sign * bar * 2.0:.6g}" in advice.reason


def test_what_it_says_follows_from_its_arguments():
    """Not from what it was asked before, or by which process."""
    ended = [curve(0.8), curve(0.9)]
    used, fresh = (Judge(epochs=20, bounds=(0.0, 1.0), complete=2, seed=1) for _ in range(2))
    scores = curve(0.6)
    step_by_step = [used.advise(7, by_epoch(scores[:n]), ended) for n in range(1, 12)]
    assert pickle.loads(pickle.dumps(used)).advise(7, by_epoch(scores[:11]), ended) == step_by_step[-1]
    assert fresh.advise(7, by_epoch(scores[:11]), ended) == step_by_step[-1]
    backwards = dict(reversed(by_epoch(scores[:11]).items()))
    assert fresh.advise(7, backwards, ended) == step_by_step[-1]


def test_more_runs_under_way_than_are_remembered():
    judge = Judge(epochs=20, stopping=OptimalStopping(epochs=20, initial=5, paths=50), complete=1, seed=0)
    ended = [curve(0.8)]
    said = [judge.advise(run, by_epoch(curve(0.5)[:6]), ended) for run in range(1, 67)]
    assert len(judge._watches) == 64
    assert judge.advise(1, by_epoch(curve(0.5)[:6]), ended) == said[0]  # worked out again


def test_runs_that_are_not_judged():
    judge = Judge(epochs=10, bounds=(0.0, 1.0), complete=1, stop_until=3, seed=0)
    ended = [curve(0.9, 10)]
    low = by_epoch(np.full(6, 0.1))
    assert judge.advise(0, {}, ended).reason == "nothing was reported yet"
    assert judge.advise(0, by_epoch(np.full(3, 0.1)), ended).reason == "the first 3 epochs are always run"
    assert judge.advise(0, by_epoch(np.full(10, 0.1)), ended).reason == "complete"
    assert judge.advise(0, low, []).reason == "the first 1 runs are completed"
    assert judge.advise(0, low, [[0.5, NAN]]).reason == "the first 1 runs are completed"  # it has diverged
    assert judge.advise(0, {**low, 6: 1.5}, ended).reason.startswith("not judged")
    assert judge.advise(0, {**low, 6: NAN}, ended).stop
    assert judge.advise(3, low, ended).stop
    assert judge.advise(4, low, ended).reason == "stopping is switched off"
    assert not judge.advise(0, {**low, 6: 0.95}, ended).stop  # above the best: never
    assert Judge(epochs=10, complete=1, seed=0).advise(1, low, ended).stop  # bounds from the runs


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epochs": 0}, "epochs must be a whole number from 1 on, got 0"),
        ({"epochs": 2.5}, "epochs must be a whole number from 1 on, got 2.5"),
        ({"epochs": 9, "complete": 0}, "complete must be"),
        ({"epochs": 9, "stop_until": -1}, "stop_until must be"),
        ({"epochs": 9, "growth": 0.0}, r"growth must lie in \(0, 1\], got 0.0"),
        ({"epochs": 9, "bounds": (1.0, 0.0)}, "bounds are two finite numbers"),
        ({"epochs": 9, "stopping": OptimalStopping(epochs=8)}, "for runs of 8 epochs, not 9"),
    ],
)
def test_bad_arguments(options, message):
    with pytest.raises(ValueError, match=message):
        Judge(**options)


def test_axes_name_what_is_wrong():
    axes = Axes({"rate": Plain(Float(0.0, 1.0)), "width": Lattice(2, 8, 16), "kind": Items(["a", [1], None])})
    good = {"rate": 0.5, "width": 32, "kind": [1], "other": 3}
    assert axes.point(good).tolist() == [0.5, 2.0, 1.0]
    assert axes.values(axes.point(good)) == {"rate": 0.5, "width": 32, "kind": [1]}
    for wrong, message in (
        ({"rate": 2.0}, "rate = 2.0 is outside"),
        ({"width": 30}, "width = 30 is not a multiple of 16"),
        ({"width": 144}, r"width = 144 is outside \[32, 128\]"),
        ({"width": "wide"}, "width = 'wide' is not a number"),
        ({"kind": True}, r"kind = True is not one of \['a', \[1\], None\]"),
        ({"kind": np.ones(2)}, "is not one of"),
    ):
        with pytest.raises(ValueError, match=message):
            axes.point({**good, **wrong})
    with pytest.raises(ValueError, match="'rate' is missing"):
        axes.point({"width": 32, "kind": "a"})


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"stopping": 5}, TypeError, "stopping must be an OptimalStopping, got 5"),
        ({"bounds": 3}, ValueError, "bounds are two finite numbers, the smaller one first, got 3"),
    ],
)
def test_options_of_another_kind(options, error, said):
    with pytest.raises(error, match=said):
        Judge(epochs=20, **options)
