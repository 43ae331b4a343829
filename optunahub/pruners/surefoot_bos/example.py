"""Give up runs that will not beat the best one, under Optuna's own sampler."""

from pathlib import Path

import optuna
import optunahub

REGISTRY = str(Path(__file__).resolve().parents[2])  # load_module("pruners/surefoot_bos") takes the published one
EPOCHS = 20


def objective(trial: optuna.Trial) -> float:
    end = trial.suggest_float("end", 0.0, 1.0)
    for epoch in range(1, EPOCHS + 1):
        loss = end + 0.5 ** (epoch / 2)
        trial.report(loss, epoch)
        if trial.should_prune():
            raise optuna.TrialPruned
    return loss


if __name__ == "__main__":
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    module = optunahub.load_local_module("pruners/surefoot_bos", registry_root=REGISTRY)
    pruner = module.BosPruner(epochs=EPOCHS, seed=0)
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=0), pruner=pruner)
    study.optimize(objective, n_trials=20)
    saved = sum(EPOCHS - len(trial.intermediate_values) for trial in study.trials)
    print(f"best {study.best_value:.3f}, {saved} of {EPOCHS * len(study.trials)} epochs saved")
