"""Surefoot inside Optuna: any policy as a sampler, optimal stopping as a pruner.

>>> import optuna
>>> from surefoot.bridge.optuna import SurefootSampler
>>> optuna.logging.set_verbosity(optuna.logging.WARNING)
>>> study = optuna.create_study(sampler=SurefootSampler(seed=0))
>>> study.optimize(lambda trial: (trial.suggest_float("x", 0.0, 1.0) - 0.3) ** 2, n_trials=10)
>>> abs(study.best_params["x"] - 0.3) < 0.05
True

:class:`SurefootSampler` takes any policy and any storage; :class:`BosPruner` ends runs that will not win and goes with
any sampler; :class:`PolicyPruner` asks the policy that chose a run. None of them needs memory of its own: what they say
follows from the trials in the study's storage, so that any number of processes may share a study, and one that dies
takes nothing with it.
"""

from __future__ import annotations

import importlib.util

if importlib.util.find_spec("optuna") is None:
    from surefoot.errors import MissingExtra

    raise MissingExtra("the Optuna bridge needs Optuna 5: pip install 'surefoot[optuna]'")

from surefoot.bridge.optuna.policy_pruner import PolicyPruner
from surefoot.bridge.optuna.private import PrivateStudy
from surefoot.bridge.optuna.pruner import BosPruner
from surefoot.bridge.optuna.sampler import SurefootSampler

__all__ = ["BosPruner", "PolicyPruner", "PrivateStudy", "SurefootSampler"]
