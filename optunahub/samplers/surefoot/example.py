"""Tune two numbers and a choice with Surefoot's default policy, then with another one."""

from pathlib import Path

import optuna
import optunahub

from surefoot import ThompsonSampling

REGISTRY = str(Path(__file__).resolve().parents[2])  # load_module("samplers/surefoot") takes the published one


def objective(trial: optuna.Trial) -> float:
    rate = trial.suggest_float("rate", 1e-4, 1.0, log=True)
    depth = trial.suggest_int("depth", 1, 10)
    kernel = trial.suggest_categorical("kernel", ["rbf", "poly"])
    return (depth - 4) ** 2 + abs(rate - 0.01) + (kernel == "poly")


if __name__ == "__main__":
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    module = optunahub.load_local_module("samplers/surefoot", registry_root=REGISTRY)
    for sampler in (module.SurefootSampler(seed=0), module.SurefootSampler(ThompsonSampling, seed=0)):
        study = optuna.create_study(sampler=sampler)
        study.optimize(objective, n_trials=15)
        print(study.best_params, round(study.best_value, 3))
