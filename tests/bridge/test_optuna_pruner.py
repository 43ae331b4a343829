"""BosPruner: what Optuna expects of a pruner, what the stopping rule promises, and nothing remembered."""

from __future__ import annotations

import math
import pickle
from dataclasses import replace

import numpy as np
import optuna
import pytest
from optuna.distributions import FloatDistribution
from optuna.trial import TrialState, create_trial

from surefoot import BOBOS, RMBOBOS, NotSupported
from surefoot.bridge.optuna import BosPruner, SurefootSampler
from surefoot.policy.epochs.bo_bos import default_rule
from surefoot.stopping import OptimalStopping

optuna.logging.set_verbosity(optuna.logging.WARNING)
EPOCHS = 30
RULE = OptimalStopping(epochs=EPOCHS, initial=5, paths=2_000)


def curve(end, rate=0.25, start=1.0):
    """A loss that decays from about ``start`` to ``end``."""
    return end + (start - end) * np.exp(-rate * np.arange(1, EPOCHS + 1))


def study_with(ends, direction="minimize", first=1, interval=1, sign=1.0):
    """A study with completed runs that ended at these losses."""
    study = optuna.create_study(direction=direction)
    for end in ends:
        values = sign * curve(end)
        steps = {first + interval * i: float(v) for i, v in enumerate(values)}
        study.add_trial(create_trial(value=float(values[-1]), intermediate_values=steps))
    return study


def decisions(pruner, study, values, first=1, interval=1, sign=1.0):
    """The advice after each epoch of a new run, until it is stopped."""
    trial = study.ask()
    said = []
    for i, value in enumerate(values):
        trial.report(sign * value, first + interval * i)
        said.append(pruner.advise(study, study.trials[-1]))
        assert pruner.prune(study, study.trials[-1]) == said[-1].stop
        if said[-1].stop:
            break
    study.tell(trial, state=TrialState.PRUNED if said[-1].stop else TrialState.FAIL)
    return said


GOOD = [0.1, 0.2, 0.3, 0.4, 0.25]


class TestExpectations:
    """What Optuna's own tests ask of every pruner."""

    def test_nothing_reported(self):
        study = study_with(GOOD)
        study.ask()
        assert BosPruner(epochs=EPOCHS).prune(study, study.trials[-1]) is False

    def test_no_other_trials(self):
        study = optuna.create_study()
        assert not any(advice.stop for advice in decisions(BosPruner(epochs=EPOCHS), study, curve(0.9)))

    def test_the_first_trials_are_completed(self):
        said = decisions(BosPruner(epochs=EPOCHS, complete=6), study_with(GOOD), curve(0.9))
        assert len(said) == EPOCHS
        assert said[10].reason == "the first 6 runs are completed"

    def test_the_first_epochs_are_run(self):
        said = decisions(BosPruner(epochs=EPOCHS, stopping=RULE, seed=0), study_with(GOOD), curve(0.9))
        assert RULE.initial < len(said) < EPOCHS
        assert [advice.stop for advice in said[: RULE.initial]] == [False] * RULE.initial

    def test_the_last_report_is_never_pruned(self):
        study = study_with(GOOD)
        trial = study.ask()
        trial.report(5.0, EPOCHS)
        assert BosPruner(epochs=EPOCHS, first=1).advise(study, study.trials[-1]).reason == "complete"

    def test_nan(self):
        study = study_with(GOOD)
        early = decisions(BosPruner(epochs=EPOCHS, stopping=RULE), study, [math.nan] * RULE.initial)
        assert not any(advice.stop for advice in early)
        late = decisions(BosPruner(epochs=EPOCHS, stopping=RULE), study, [*curve(0.1)[:8], math.nan])
        assert [advice.stop for advice in late] == [False] * 8 + [True]
        assert late[-1].reason.startswith("diverged")
        never = decisions(BosPruner(epochs=EPOCHS, stopping=RULE), study, [math.nan] * EPOCHS)
        assert len(never) == RULE.initial + 1

    def test_infinite_values_of_other_runs_are_left_out(self):
        study = study_with(GOOD)
        study.add_trial(create_trial(value=0.5, intermediate_values={1: math.inf, 2: math.nan, 3: 0.5}))
        study.add_trial(create_trial(value=math.inf))
        assert decisions(BosPruner(epochs=EPOCHS, stopping=RULE, seed=0), study, curve(0.9))[-1].stop

    def test_several_objectives(self):
        study = optuna.create_study(directions=["minimize", "minimize"])
        with pytest.raises(ValueError, match="one objective"):
            BosPruner(epochs=9).prune(study, create_trial(state=TrialState.RUNNING))

    def test_bad_arguments(self):
        for wrong in (
            {"epochs": 0},
            {"epochs": 2.5},
            {"complete": 0},
            {"growth": 0.0},
            {"growth": 1.1},
            {"bounds": (1.0, 0.0)},
            {"bounds": (0.0, math.inf)},
            {"interval": 0},
            {"first": -1},
            {"seed": -1},
            {"stop_until": True},
            {"stopping": RULE, "epochs": 20},
        ):
            with pytest.raises(ValueError):
                BosPruner(**{"epochs": EPOCHS, **wrong})


class TestDecisions:
    def test_hopeless_runs_end_and_promising_ones_go_on(self):
        pruner = BosPruner(epochs=EPOCHS, seed=0)
        bad = decisions(pruner, study_with(GOOD), curve(0.8))
        assert bad[-1].stop
        assert len(bad) < EPOCHS // 2
        assert bad[-1].saved == EPOCHS - len(bad)
        assert bad[-1].probability < 0.5
        assert bad[-1].reason.startswith("will not beat 0.1")
        best = decisions(pruner, study_with(GOOD), curve(0.02))
        assert not any(advice.stop for advice in best)

    @pytest.mark.parametrize("bounds", [None, (0.0, 1.0)])
    def test_maximizing_is_the_mirror_image(self, bounds):
        mirrored = None if bounds is None else (-1.0, 0.0)
        down = BosPruner(epochs=EPOCHS, stopping=RULE, bounds=bounds, seed=1)
        up = BosPruner(epochs=EPOCHS, stopping=RULE, bounds=mirrored, seed=1)
        for end in (0.05, 0.15, 0.3, 0.8):
            one = decisions(down, study_with(GOOD), curve(end))
            two = decisions(up, study_with(GOOD, "maximize", sign=-1.0), curve(end), sign=-1.0)
            assert [a.stop for a in one] == [a.stop for a in two]
            assert [a.probability for a in one] == [a.probability for a in two]

    @pytest.mark.parametrize(("first", "interval"), [(0, 1), (10, 10), (0, 500)])
    def test_steps_may_be_counted_in_any_way(self, first, interval):
        pruner = BosPruner(epochs=EPOCHS, stopping=RULE, interval=interval, seed=1)
        plain = decisions(BosPruner(epochs=EPOCHS, stopping=RULE, seed=1), study_with(GOOD), curve(0.5))
        other = decisions(pruner, study_with(GOOD, first=first, interval=interval), curve(0.5), first, interval)
        assert plain == other

    def test_missing_reports_are_interpolated(self):
        study = study_with(GOOD)
        trial = study.ask()
        pruner = BosPruner(epochs=EPOCHS, stopping=RULE, seed=0)
        stopped = None
        for epoch in (3, 6, 9, 12, 15):
            trial.report(float(curve(0.8)[epoch - 1]), epoch)
            if pruner.prune(study, study.trials[-1]):
                stopped = epoch
                break
        assert stopped is not None

    def test_scale_does_not_matter_without_bounds(self):
        plain = decisions(BosPruner(epochs=EPOCHS, stopping=RULE, seed=1), study_with(GOOD), curve(0.5))
        large = decisions(
            BosPruner(epochs=EPOCHS, stopping=RULE, seed=1), study_with(GOOD, sign=1000.0), curve(0.5), sign=1000.0
        )
        assert [a.stop for a in plain] == [a.stop for a in large]

    def test_a_run_outside_given_bounds_is_not_judged(self):
        said = decisions(BosPruner(epochs=EPOCHS, stopping=RULE, bounds=(0.0, 0.5)), study_with(GOOD), curve(0.9))
        assert len(said) == EPOCHS
        assert "outside bounds=(0.0, 0.5)" in said[10].reason

    def test_a_larger_loss_of_wrong_stops_stops_later(self):
        study = study_with(GOOD)

        def epochs(k1):
            pruner = BosPruner(epochs=EPOCHS, stopping=replace(default_rule(EPOCHS), k1=k1, paths=4_000), seed=0)
            return sum(len(decisions(pruner, study, curve(end))) for end in (0.12, 0.15, 0.2, 0.3))

        lengths = [epochs(k1) for k1 in (100.0, 1e4, math.inf)]
        assert lengths == sorted(lengths)
        assert lengths[0] < 0.8 * lengths[1]
        assert lengths[-1] == 4 * EPOCHS

    def test_nothing_is_pruned_after_the_last_trial_that_may_be(self):
        for until, switched_off in ((1, True), (2, False)):
            pruner = BosPruner(epochs=EPOCHS, stopping=RULE, complete=4, stop_until=until, seed=0)
            said = decisions(pruner, study_with(GOOD), curve(0.9))  # the second trial after the first four
            assert (said[-1].reason == "complete") is switched_off
            assert said[RULE.initial].reason.startswith("stopping is switched off") is switched_off

    def test_a_better_run_that_ends_meanwhile_raises_the_bar(self):
        study = study_with([0.6] * 5)
        pruner = BosPruner(epochs=EPOCHS, stopping=RULE, seed=0)
        trial = study.ask()
        values = curve(0.5)
        for epoch in range(1, 11):
            trial.report(float(values[epoch - 1]), epoch)
            assert not pruner.prune(study, study.trials[trial.number])
        study.add_trial(create_trial(value=0.01, intermediate_values={EPOCHS: 0.01}))
        trial.report(float(values[10]), 11)
        assert pruner.advise(study, study.trials[trial.number]).reason.split(" (")[0] == "will not beat 0.01"


class TestNothingIsRemembered:
    def test_a_new_pruner_for_every_report_says_the_same(self):
        class Fresh:
            def advise(self, study, trial):
                return BosPruner(epochs=EPOCHS, stopping=RULE, seed=3).advise(study, trial)

            def prune(self, study, trial):
                return self.advise(study, trial).stop

        kept = decisions(BosPruner(epochs=EPOCHS, stopping=RULE, seed=3), study_with(GOOD), curve(0.35))
        assert kept == decisions(Fresh(), study_with(GOOD), curve(0.35))

    def test_processes_agree_without_a_seed(self):
        study = study_with(GOOD)
        trial = study.ask()
        for epoch in range(1, 12):
            trial.report(float(curve(0.4)[epoch - 1]), epoch)
        one, two = (BosPruner(epochs=EPOCHS, stopping=RULE).advise(study, study.trials[-1]) for _ in range(2))
        assert one == two

    def test_pruners_can_be_pickled(self):
        pruner = BosPruner(epochs=EPOCHS, stopping=RULE, seed=0)
        decisions(pruner, study_with(GOOD), curve(0.5))
        assert pickle.loads(pickle.dumps(pruner))._judges == {}


def test_the_sampler_says_why_a_run_is_not_judged():
    study = optuna.create_study(sampler=SurefootSampler(BOBOS, epochs=EPOCHS, seed=0))
    study.optimize(lambda trial: trial.suggest_float("x", 0.0, 1.0), n_trials=1)
    study.ask({"x": FloatDistribution(0.0, 1.0)})
    assert study.sampler.advise(study, study.trials[-1]).reason == "nothing was reported yet"
    with pytest.raises(NotSupported, match="ExpectedImprovement does not follow runs: take BOBOS"):
        SurefootSampler(seed=0).advise(study, study.trials[-1])
    alone = SurefootSampler(RMBOBOS, epochs=EPOCHS, transfer_from=[optuna.create_study()], seed=0)
    with pytest.warns(UserWarning, match="it has no results"):
        advice = alone.advise(study, study.trials[-1])
    assert (advice.stop, advice.reason) == (False, "ExpectedImprovement does not follow runs")


def tune(sampler, pruner, seed, total=26):
    """Tune runs that level off at a loss which depends on their parameters; count epochs, stops and wrong stops."""

    def objective(trial):
        x, y = trial.suggest_float("x", 0.0, 1.0), trial.suggest_float("y", 0.0, 1.0)
        values = curve(0.1 + (x - 0.7) ** 2 + (y - 0.2) ** 2, rate=0.1 + 0.3 * y, start=1.5)
        values = values + 0.005 * np.random.default_rng((seed, trial.number)).standard_normal(EPOCHS)
        trial.set_user_attr("end", float(values[-1]))
        for epoch, value in enumerate(values):
            trial.report(float(value), epoch)
            if trial.should_prune():
                raise optuna.TrialPruned
        return float(values[-1])

    study = optuna.create_study(sampler=sampler, pruner=pruner)
    study.optimize(objective, n_trials=total)
    stopped = [t for t in study.trials if t.state == TrialState.PRUNED]
    done = [t for t in study.trials if t.state == TrialState.COMPLETE]
    wrong = [t for t in stopped if t.user_attrs["end"] < min(d.value for d in done if d.number < t.number)]
    used = sum(len(t.intermediate_values) for t in study.trials) / (total * EPOCHS)
    return used, len(stopped), len(wrong), study.best_value


@pytest.mark.parametrize("sampler", [optuna.samplers.RandomSampler, optuna.samplers.TPESampler])
def test_epochs_are_saved_and_winners_are_not_stopped(sampler):
    """With any sampler; a stopped run is judged by where it would have ended. The median rule stops the winners too."""
    whole, ours, median = (
        np.array([tune(sampler(seed=s), make(s), s) for s in range(2)])
        for make in (
            lambda s: optuna.pruners.NopPruner(),
            lambda s: BosPruner(epochs=EPOCHS, seed=s),
            lambda s: optuna.pruners.MedianPruner(),
        )
    )
    used, stopped, wrong, best = ours.T
    assert used.mean() < 0.85
    assert stopped.sum() >= 20
    assert wrong.sum() <= 0.05 * stopped.sum()
    # Random draws do not depend on what was pruned; a sampler that learns goes other ways, but not to a worse end.
    np.testing.assert_allclose(best, whole[:, 3], atol=0.0 if sampler is optuna.samplers.RandomSampler else 0.02)
    assert median[:, 2].sum() > wrong.sum()
