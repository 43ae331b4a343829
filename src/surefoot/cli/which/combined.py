"""Entries for special things that go together, though no single class declares both.

>>> [(entry.name, sorted(entry.special)) for entry in COMBINED]
[('Modeler', ['private']), ('PolicyPruner', ['conditional', 'epochs'])]
"""

from __future__ import annotations

from surefoot.cli.which.entry import Entry

__all__ = ["COMBINED"]

_PRIVATE_MAP = """\
import numpy as np
from surefoot import TruVaR
from surefoot.private import Curator, GaussianRelease, Modeler

rng = np.random.default_rng(0)
table = rng.uniform(0.0, 1.0, (300, 2))


def measure(row):  # private and expensive
    return float(np.exp(-8.0 * ((row - [0.3, 0.7]) ** 2).sum()))


mechanism = GaussianRelease(
    epsilon=4.0,
    delta=1e-5,
    bounds=[(0.0, 1.0)] * 2,  # public limits of each column
    radius=0.4,  # what the limits are scaled to
    neighbor=0.05,  # the protected change of one row, after scaling
)
curator = Curator(table, measure, mechanism, asks=12)
release = curator.release()  # all that the other party sees of the table
print(release.guarantee)

modeler = Modeler(release, TruVaR, goal="level", threshold=0.5, seed=0)
curator.close(modeler.run(curator.answer))
print(modeler.recommend())  # rows in the secret order of the release
"""

_CONDITIONAL_EPOCHS = """\
import optuna
from surefoot import BOBOS
from surefoot.bridge.optuna import PolicyPruner, SurefootSampler

optuna.logging.set_verbosity(optuna.logging.WARNING)


def objective(trial):  # your training; higher is better
    if trial.suggest_categorical("model", ["linear", "deep"]) == "linear":
        best = 1.0 - abs(trial.suggest_float("penalty", 0.0, 1.0) - 0.3)
    else:
        best = 1.1 - abs(trial.suggest_int("layers", 1, 8) - 5) / 8
    for epoch in range(1, 11):
        score = best * (1.0 - 0.7**epoch)
        trial.report(score, epoch)
        if trial.should_prune():
            raise optuna.TrialPruned
    return score


sampler = SurefootSampler(BOBOS, epochs=10, seed=0)
study = optuna.create_study(
    direction="maximize", sampler=sampler, pruner=PolicyPruner()
)
study.optimize(objective, n_trials=12)
print(study.best_params)
"""

COMBINED = (
    Entry(
        "surefoot.private.Modeler",
        "release-map",
        "which rows of a private table exceed a limit",
        "The owner (Curator) releases a differentially private copy of the rows once; the optimizer (Modeler) maps them"
        " with TruVaR. The answer stays with the optimizer, in the secret order of the release.",
        "docs/combinations.md",
        goal="region",
        special=frozenset({"private"}),
        snippet=_PRIVATE_MAP,
        needs=(
            "a finite table of rows with public limits for every column",
            "a privacy budget: epsilon, delta, and the change of a row that is protected",
        ),
        extra="private",
        instead=("surefoot.GPLSE: the owner of the data can run it, and nothing has to leave",),
        holds=("points=candidates",),
    ),
    Entry(
        "surefoot.bridge.optuna.PolicyPruner",
        "groups-epochs",
        "parameters that exist only with others, and runs that can be given up",
        "In an Optuna study BO-BOS chooses each group of parameters that occur together, and the pruner lets it end the"
        " runs that it chose.",
        "docs/bridges/optuna.md",
        special=frozenset({"conditional", "epochs"}),
        snippet=_CONDITIONAL_EPOCHS,
        needs=("an Optuna study", "a score after each epoch, in trial.report(score, epoch)"),
        extra="optuna",
        instead=("Optuna's TPESampler with HyperbandPruner: deep trees of conditions and hundreds of trials",),
        holds=("points=space",),
    ),
)
