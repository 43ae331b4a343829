"""Learning from earlier studies: from the first trial on, only where it makes sense, and with a word about the rest."""

from __future__ import annotations

import math
import warnings

import numpy as np
import optuna
import pytest

from surefoot import RGPE, RMGPUCB, TAF, ExpectedImprovement
from surefoot.bridge.optuna import SurefootSampler
from surefoot.bridge.optuna.space import Group
from surefoot.bridge.optuna.transfer import Transfer

optuna.logging.set_verbosity(optuna.logging.WARNING)


def objective(shift):
    def loss(trial):
        rate = math.log10(trial.suggest_float("rate", 1e-4, 1.0, log=True))
        width = trial.suggest_int("width", 8, 64, step=8)
        return 0.2 * (rate + 2.0 + shift) ** 2 + ((width - 40) / 30 + shift) ** 2

    return loss


def earlier(shift, n=25, seed=0, **kwargs):
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=seed), **kwargs)
    study.optimize(objective(shift), n_trials=n)
    return study


def tune(sampler, n, loss=None):
    study = optuna.create_study(sampler=sampler)
    study.optimize(loss or objective(0.0), n_trials=n)
    return study


def test_the_first_trial_already_knows():
    study = tune(SurefootSampler(transfer_from=[earlier(0.05)], seed=0), 1)
    assert study.best_value < 0.2
    # Chance is worse by far.
    chance = [tune(SurefootSampler(seed=s), 1).best_value for s in range(10)]
    assert study.best_value < 0.5 * np.median(chance)


def test_it_beats_starting_from_nothing_and_misleading_studies_do_little_harm():
    good, bad = [earlier(0.05), earlier(-0.05, seed=1)], [earlier(3.0), earlier(-2.5, seed=1)]

    def early(tasks, seed):
        values = [t.value for t in tune(SurefootSampler(transfer_from=tasks, seed=seed), 6).trials]
        return min(values[:4])

    helped = np.array([early(good, s) for s in range(3)])
    alone = np.array([early(None, s) for s in range(3)])
    assert helped.mean() < 0.7 * alone.mean()
    study = tune(SurefootSampler(transfer_from=bad, seed=0), 14)
    assert study.best_value < 0.1


def test_weights_tell_the_useful_study_from_the_other():
    alike, unlike = earlier(0.02, study_name="alike"), earlier(2.5, study_name="unlike")
    study = tune(SurefootSampler(transfer_from=[unlike, alike], seed=0), 8)
    policy = study.sampler.policy(study)
    assert isinstance(policy, RMGPUCB)
    assert [task.name for task in policy.tasks] == ["unlike", "alike"]
    assert policy.weights[1] > 0.8
    assert policy.nu < 0.2


def test_a_sampler_per_trial_says_the_same():
    """What is learnt on the way (weights, influence) is in the storage, not in the sampler."""
    tasks = [earlier(0.1), earlier(2.0, seed=1)]
    kept = tune(SurefootSampler(transfer_from=tasks, seed=3), 6)
    fresh = optuna.create_study()
    for _ in range(6):
        fresh.sampler = SurefootSampler(transfer_from=tasks, seed=3)
        fresh.optimize(objective(0.0), n_trials=1)
    assert [t.params for t in kept.trials] == [t.params for t in fresh.trials]


@pytest.mark.parametrize("policy", [RGPE, TAF])
def test_other_policies_that_take_tasks(policy):
    study = tune(SurefootSampler(policy, transfer_from=[earlier(0.05, n=12)], seed=0), 4)
    assert isinstance(study.sampler.policy(study), policy)
    assert study.best_value < 0.5


class TestSkipped:
    def study_without_width(self):
        study = optuna.create_study(study_name="narrow", sampler=optuna.samplers.RandomSampler(seed=0))
        study.optimize(lambda trial: trial.suggest_float("rate", 1e-4, 1.0, log=True), n_trials=4)
        return study

    def test_what_cannot_be_used_is_named(self):
        space = earlier(0.0, n=2).trials[0].distributions
        empty = optuna.create_study(study_name="empty")
        other_way = optuna.create_study(
            study_name="accuracy", direction="maximize", sampler=optuna.samplers.RandomSampler()
        )
        other_way.optimize(objective(0.0), n_trials=2)
        transfer = Transfer([self.study_without_width(), empty, other_way, earlier(0.0, n=3, study_name="usable")])
        with pytest.warns(UserWarning, match="is not used") as caught:
            tasks = transfer.tasks(Group(space), sign=-1.0)
        assert [task.name for task in tasks] == ["usable"]
        assert [str(w.message) for w in caught] == [
            "study 'narrow' is not used: it has no parameter width",
            "study 'empty' is not used: it has no results",
            "study 'accuracy' is not used: it goes the other way",
        ]
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # said once
            assert transfer.tasks(Group(space), sign=-1.0) is tasks

    def test_values_are_as_they_were_told_in_the_present_ranges(self):
        study = earlier(0.0, n=10)
        group = Group(study.trials[0].distributions)
        narrow = Group({**study.trials[0].distributions, "width": optuna.distributions.IntDistribution(32, 64, step=8)})
        [task] = Transfer([study]).tasks(group, sign=-1.0)
        np.testing.assert_array_equal(task.y, [t.value for t in study.trials])
        assert group.values(task.X[3]) == study.trials[3].params
        [inside] = Transfer([study]).tasks(narrow, sign=-1.0)
        assert len(inside) == sum(t.params["width"] >= 32 for t in study.trials) < 10

    def test_infinite_values_are_left_out(self):
        study = earlier(0.0, n=3)
        study.add_trial(
            optuna.create_trial(
                value=math.inf, params=study.trials[0].params, distributions=study.trials[0].distributions
            )
        )
        assert len(Transfer([study]).tasks(Group(study.trials[0].distributions), -1.0)[0]) == 3
        assert Transfer(None).tasks(Group(study.trials[0].distributions), -1.0) == []

    def test_nothing_usable_falls_back(self):
        with pytest.warns(UserWarning, match="is not used"):
            study = tune(SurefootSampler(transfer_from=[self.study_without_width()], seed=0), 4)
        assert isinstance(study.sampler.policy(study), ExpectedImprovement)

    @pytest.mark.filterwarnings("ignore:study .* is not used")
    def test_a_study_of_other_ranges_and_kinds_does_not_break_the_first_trial(self):
        old = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))

        def before(trial):
            a, b = trial.suggest_float("a", 5.0, 9.0), trial.suggest_categorical("b", ["u", "v"])
            return a + (b == "u") + trial.suggest_int("c", 0, 3)

        def now(trial):
            a, b = trial.suggest_float("a", 0.0, 1.0), trial.suggest_categorical("b", ["u", "w", "v"])
            return a + (b == "u") + trial.suggest_float("c", 0.0, 3.0)

        old.optimize(before, n_trials=6)
        study = tune(SurefootSampler(transfer_from=[old], seed=0), 4, now)
        assert len(study.trials) == 4
