"""Earlier studies as tasks to learn from.

>>> import optuna
>>> optuna.logging.set_verbosity(optuna.logging.WARNING)
>>> earlier = optuna.create_study(study_name="last week")
>>> earlier.optimize(lambda trial: trial.suggest_float("x", 0.0, 1.0) ** 2, n_trials=5)
>>> transfer = Transfer([earlier])
>>> [task.X.shape for task in transfer.tasks(Group(transfer.groups()[0]), sign=-1.0)]
[(5, 1)]
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Sequence

import numpy as np
from optuna.distributions import BaseDistribution
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from surefoot.bridge.optuna.history import sign_of
from surefoot.bridge.optuna.space import Group, decompose
from surefoot.loop.types import LARGEST
from surefoot.policy.transfer.tasks import Task

__all__ = ["Transfer"]

_log = logging.getLogger("surefoot.bridge.optuna")


class Transfer:
    """The completed trials of earlier studies, read once, as tasks on any group of parameters.

    >>> bool(Transfer(None)), Transfer(None).groups()
    (False, [])
    """

    def __init__(self, studies: Sequence[Study] | None) -> None:
        if studies is not None and (isinstance(studies, (str, Study)) or not isinstance(studies, Sequence)):
            raise TypeError(f"transfer_from must be a list of studies, got {studies!r}")
        for study in studies or ():
            if not isinstance(study, Study):
                raise TypeError(f"transfer_from must be a list of studies, got {study!r} in it")
            sign_of(study)
        self._studies = tuple(studies or ())
        self._trials: list[list[FrozenTrial]] | None = None
        self._tasks: dict[tuple[str, float], list[Task]] = {}
        self._warned: set[str] = set()

    def __bool__(self) -> bool:
        return bool(self._studies)

    def _read(self) -> list[list[FrozenTrial]]:
        if self._trials is None:
            found = [study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,)) for study in self._studies]
            self._trials = [[t for t in trials if abs(t.values[0]) <= LARGEST] for trials in found]
        return self._trials

    def groups(self) -> list[dict[str, BaseDistribution]]:
        """Return the groups of the last study that has completed trials: what the next one will probably look like."""
        for trials in reversed(self._read()):
            if trials:
                return decompose(trial.distributions for trial in trials)
        return []

    def tasks(self, group: Group, sign: float) -> list[Task]:
        """Return one task per earlier study that goes the same way (1: up) and knows this group's domain."""
        if not self._studies:
            return []
        key = (group.key, sign)
        if key not in self._tasks:
            found = [self._task(i, group, sign) for i in range(len(self._studies))]
            self._tasks[key] = [task for task in found if task is not None]
        return self._tasks[key]

    def _task(self, i: int, group: Group, sign: float) -> Task | None:
        study, trials = self._studies[i], self._read()[i]
        have = {name for trial in trials for name in trial.params}
        missing = [name for name in group.names if name not in have]
        usable = [(x, t.values[0]) for t in trials if (x := group.find(t.params)) is not None]
        reason = None
        if sign_of(study) != sign:
            reason = "it goes the other way"
        elif not trials:
            reason = "it has no results"
        elif missing:
            reason = f"it has no parameter {', '.join(missing)}"
        elif not usable:
            reason = f"its trials lie outside the present ranges of {', '.join(group.names)}"
        if reason is not None:
            self._warn(f"study {study.study_name!r} is not used: {reason}")
            return None
        if len(usable) < len(trials):
            left_out = len(trials) - len(usable)
            _log.info("study %r: %d of %d trials lie outside", study.study_name, left_out, len(trials))
        X, y = zip(*usable, strict=True)
        return Task(np.array(X), np.array(y), name=study.study_name)

    def _warn(self, message: str) -> None:
        if message not in self._warned:
            self._warned.add(message)
            warnings.warn(message, UserWarning, stacklevel=2)
