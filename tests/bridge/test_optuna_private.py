"""A private Optuna study reports what was paid for and nothing else."""

from __future__ import annotations

import math

import optuna
import pytest

from surefoot import NotSupported
from surefoot.bridge.optuna import PrivateStudy, SurefootSampler
from surefoot.errors import NoData, SurefootError
from surefoot.private import GaussianEvent, Ledger, Repeats, ResearchNoise, StatedEvent

optuna.logging.set_verbosity(optuna.logging.WARNING)


def bowl(trial):
    return (trial.suggest_float("x", 0.0, 1.0) - 0.3) ** 2


def study(**options):
    budget = Ledger(epsilon=2.0, delta=1e-5)
    return PrivateStudy(**{"event": GaussianEvent(8.0), "sensitivity": 1e-3, "ledger": budget, **options})


def test_every_trial_is_charged_before_it_runs_and_none_beyond_the_budget():
    made = study(sampler=SurefootSampler(seed=0))
    charged = []

    def objective(trial):
        charged.append(len(made.ledger.entries))
        return bowl(trial)

    made.optimize(objective, n_trials=100)
    count = len(made.trials)
    assert charged == list(range(1, count + 1))
    assert made.ledger.spent() <= 2.0 < made.ledger.spent() + 0.3
    assert made.ledger.would_exceed(GaussianEvent(8.0))
    made.optimize(objective, n_trials=5)
    assert len(made.trials) == count
    assert all(trial.value != (trial.params["x"] - 0.3) ** 2 for trial in made.trials)  # noise was added
    assert made.best_value == min(trial.value for trial in made.trials)


def test_a_selection_shows_its_best_and_refuses_the_rest():
    made = study(repeats=Repeats(20.0), direction="maximize")
    with pytest.raises(NoData):
        _ = made.best_value
    seen = []
    made.optimize(lambda trial: seen.append(1) or bowl(trial))
    assert made.best_value == pytest.approx((made.best_params["x"] - 0.3) ** 2, abs=0.06)
    (entry,) = made.ledger.entries
    assert isinstance(entry.event, StatedEvent)
    for name in ("trials", "study"):
        with pytest.raises(NotSupported, match="best trial only"):
            getattr(made, name)
    with pytest.raises(NotSupported, match="another study"):
        made.optimize(bowl)
    with pytest.raises(ValueError, match="secret"):
        study(repeats=Repeats(3.0)).optimize(bowl, n_trials=3)
    assert not made._study.trials  # how many there were is not even kept


def test_a_selection_that_cannot_be_paid_runs_nothing():
    made = study(event=GaussianEvent(1.0), repeats=Repeats(20.0))
    with pytest.raises(SurefootError, match="budget"):
        made.optimize(lambda trial: pytest.fail("it ran"))


@pytest.mark.parametrize("name", ["report", "set_user_attr", "params", "number", "should_prune"])
def test_nothing_is_reported_on_the_side(name):
    made = study(repeats=Repeats(5.0))
    with pytest.raises(NotSupported, match="nobody paid"):
        made.optimize(lambda trial: getattr(trial, name))


def test_failures_say_nothing():
    def objective(trial):
        if bowl(trial) > 0.05:
            raise RuntimeError("patient 17")
        return 0.0

    made = study(event=GaussianEvent(20.0), sensitivity=None)
    made.optimize(objective, n_trials=20)
    states = {trial.state.name for trial in made.trials}
    assert states == {"COMPLETE", "FAIL"}
    assert not any("patient" in str(trial.system_attrs) for trial in made.trials)
    with pytest.raises(ValueError, match="finite number"):
        study().optimize(lambda trial: math.nan, n_trials=1)


def test_bad_input():
    for change, kind in (
        ({"sampler": SurefootSampler(), "repeats": Repeats(3.0)}, NotSupported),
        ({"noise": ResearchNoise(0)}, SurefootError),
        ({"ledger": None}, TypeError),
        ({"direction": "up"}, ValueError),
        ({"event": GaussianEvent(1.0, 0.5)}, ValueError),
    ):
        with pytest.raises(kind):
            study(**change)
    with pytest.raises(ValueError, match="n_trials"):
        study().optimize(bowl)
