"""One Optuna study that begins where an earlier one ended, and gives up runs that will not win.

python examples/combined_transfer_and_stopping.py        (needs: pip install 'surefoot[optuna]')
"""

import math

import optuna

from surefoot import RMBOBOS
from surefoot.bridge.optuna import BosPruner, PolicyPruner, SurefootSampler

EPOCHS = 20


def training(best_rate: float):
    """Stands for training: the loss after each epoch, for a data set on which ``best_rate`` is best."""

    def run(trial: optuna.Trial) -> float:
        rate = trial.suggest_float("rate", 1e-5, 1.0, log=True)
        layers = trial.suggest_int("layers", 1, 8)
        end = 0.1 + 0.15 * math.log10(rate / best_rate) ** 2 + 0.02 * abs(layers - 4)
        for epoch in range(1, EPOCHS + 1):
            loss = end + (1.5 - min(end, 1.0)) * math.exp(-0.3 * epoch)
            trial.report(loss, epoch)
            if trial.should_prune():
                raise optuna.TrialPruned
        return loss

    return run


def tune(best_rate: float, trials: int, sampler: SurefootSampler, pruner) -> optuna.Study:
    study = optuna.create_study(sampler=sampler, pruner=pruner)
    study.optimize(training(best_rate), n_trials=trials)
    used = sum(len(trial.intermediate_values) for trial in study.trials)
    print(f"loss {study.best_value:.3f} with {study.best_params}: {used} of {trials * EPOCHS} epochs")
    return study


optuna.logging.set_verbosity(optuna.logging.WARNING)
last_year = tune(0.01, 20, SurefootSampler(seed=0), BosPruner(epochs=EPOCHS, seed=0))
# The policy hears of every epoch, weighs what it knows from last year by how well that fits, and ends runs itself.
now = tune(0.02, 12, SurefootSampler(RMBOBOS, epochs=EPOCHS, transfer_from=[last_year], seed=0), PolicyPruner())
pruned = [trial for trial in now.trials if trial.state == optuna.trial.TrialState.PRUNED]
policy = now.sampler.policy(now)
print(f"the first trial was already at {now.trials[0].value:.3f}; {len(pruned)} runs were given up")
print(f"last year still counts for {policy.nu:.2f}")
