"""Tune a classifier with Optuna, let Surefoot choose and prune, and use what was learnt for the next data set.

python examples/optuna_sampler.py        (needs: pip install 'surefoot[optuna,demo]')
"""

import optuna
from sklearn.datasets import load_digits
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import train_test_split

from surefoot.bridge.optuna import BosPruner, SurefootSampler

EPOCHS = 15
STORAGE = "sqlite:///digits.db"  # any storage of Optuna's; several processes may work on it
X, y = load_digits(return_X_y=True)


def objective(rows):
    """Validation error of a linear classifier, epoch by epoch, on some rows of the data."""
    train_X, test_X, train_y, test_y = train_test_split(X[rows] / 16.0, y[rows], test_size=0.3, random_state=0)

    def run(trial):
        model = SGDClassifier(
            loss=trial.suggest_categorical("loss", ["hinge", "log_loss"]),
            alpha=trial.suggest_float("alpha", 1e-6, 1e-1, log=True),
            learning_rate="constant",
            eta0=trial.suggest_float("rate", 1e-4, 1.0, log=True),
            random_state=0,
        )
        for epoch in range(1, EPOCHS + 1):
            model.partial_fit(train_X, train_y, classes=range(10))
            error = 1.0 - model.score(test_X, test_y)
            trial.report(error, epoch)
            if trial.should_prune():
                raise optuna.TrialPruned
        return error

    return run


def tune(name, rows, earlier, trials):
    sampler = SurefootSampler(transfer_from=earlier, seed=0)
    pruner = BosPruner(epochs=EPOCHS, bounds=(0.0, 1.0), seed=0)
    study = optuna.create_study(storage=STORAGE, study_name=name, load_if_exists=True, sampler=sampler, pruner=pruner)
    study.optimize(objective(rows), n_trials=trials)
    used = sum(len(trial.intermediate_values) for trial in study.trials)
    print(f"{name}: error {study.best_value:.3f} with {study.best_params}, {used} of {trials * EPOCHS} epochs")
    return study


optuna.logging.set_verbosity(optuna.logging.WARNING)
first = tune("first half", slice(0, 900), None, trials=16)
second = tune("second half", slice(900, None), [first], trials=8)
print(f"the first trial of the second half was already at {second.trials[0].value:.3f}")
