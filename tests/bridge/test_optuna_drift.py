"""Policies of drifting functions under Optuna: the number of a trial is its time. And values no model can use."""

from __future__ import annotations

import sys

import optuna
import pytest
from optuna.distributions import FloatDistribution

from surefoot import RGPUCB, TVGPUCB, ExpectedImprovement
from surefoot.bridge.optuna import SurefootSampler

optuna.logging.set_verbosity(optuna.logging.WARNING)
X = {"x": FloatDistribution(0.0, 1.0)}
POLICIES = [(TVGPUCB, {"forgetting": 0.05}), (TVGPUCB, {}), (RGPUCB, {"block": 3})]


def bowl(trial):
    return (trial.suggest_float("x", 0.0, 1.0) - 0.3) ** 2


@pytest.mark.parametrize(("policy", "options"), POLICIES)
def test_a_new_sampler_for_each_trial_says_the_same(policy, options):
    kept, renewed = (optuna.create_study() for _ in range(2))
    kept.sampler = SurefootSampler(policy, seed=0, **options)
    kept.optimize(bowl, n_trials=7)
    for _ in range(7):
        renewed.sampler = SurefootSampler(policy, seed=0, **options)
        renewed.optimize(bowl, n_trials=1)
    assert [t.params for t in kept.trials] == [t.params for t in renewed.trials]
    assert [query.time for query in kept.sampler.policy(kept).queries] == [float(n) for n in range(7)]


@pytest.mark.parametrize(("policy", "options"), POLICIES)
def test_trials_that_end_in_any_order(policy, options):
    study = optuna.create_study(sampler=SurefootSampler(policy, seed=0, **options))
    study.tell(study.ask(X), 1.0)
    trials = [study.ask(X) for _ in range(4)]
    study.tell(trials[3], 0.5)
    study.tell(trials[0], state=optuna.trial.TrialState.FAIL)
    study.ask(X)
    made = study.sampler.policy(study)
    assert [query.time for query in made.queries] == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    assert [query.id for query in made.pending] == [2, 3, 5]
    study.optimize(bowl, n_trials=6, n_jobs=3)
    assert len(study.trials) == 12


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_the_largest_number_as_a_penalty_is_a_failed_run(direction):
    worst = sys.float_info.max if direction == "minimize" else -sys.float_info.max
    study = optuna.create_study(direction=direction, sampler=SurefootSampler(seed=0))
    study.optimize(lambda trial: worst if trial.number % 2 else bowl(trial), n_trials=2)
    study.optimize(lambda trial: worst if trial.suggest_float("x", 0.0, 1.0) > 0.5 else 1.0, n_trials=6)
    made = study.sampler.policy(study)
    assert isinstance(made, ExpectedImprovement)
    known = [trial for trial in study.trials if trial.params]
    assert [o.failed for o in made.history] == [trial.value == worst for trial in known]
    later = optuna.create_study(direction=direction, sampler=SurefootSampler(transfer_from=[study], seed=0))
    later.optimize(bowl, n_trials=2)
