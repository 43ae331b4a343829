"""A pruner that asks the policy which chose the run.

:class:`~surefoot.bridge.optuna.pruner.BosPruner` goes with any sampler and judges runs by their curves alone. A policy
that follows runs knows more: its belief, over parameters and epochs, says whether what was seen of a run tells enough
about its end. Where runs are given up before that, such a policy may stay curious about them and choose them again.
"""

from __future__ import annotations

from optuna.pruners import BasePruner
from optuna.study import Study
from optuna.trial import FrozenTrial

from surefoot.bridge.optuna.sampler import SurefootSampler
from surefoot.errors import NotSupported
from surefoot.loop.types import Advice

__all__ = ["PolicyPruner"]


class PolicyPruner(BasePruner):
    """Ends a run when the sampler's policy advises it; for ``SurefootSampler(BOBOS, epochs=N)`` and ``RMBOBOS``.

    Options of the rule are the policy's. Runs report after every epoch; the first trial is always completed. Where a
    trial has several groups of conditional parameters, no single policy knows the run, and it is completed too.

    >>> import optuna
    >>> from surefoot import BOBOS
    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> study = optuna.create_study(sampler=SurefootSampler(BOBOS, epochs=10, seed=0), pruner=PolicyPruner())
    >>> def objective(trial):
    ...     end = trial.suggest_float("end", 0.0, 1.0)
    ...     for epoch in range(1, 11):
    ...         trial.report(end + 0.5**epoch, epoch)
    ...         if trial.should_prune():
    ...             raise optuna.TrialPruned
    ...     return end + 0.5**epoch
    >>> study.optimize(objective, n_trials=4)
    >>> len(study.trials)
    4
    """

    def prune(self, study: Study, trial: FrozenTrial) -> bool:
        """Tell Optuna whether to end a run."""
        return self.advise(study, trial).stop

    def advise(self, study: Study, trial: FrozenTrial) -> Advice:
        """Return whether to end a run, why, the probability that it still wins, and the epochs it saves.

        >>> import optuna
        >>> trial = optuna.create_trial(state=optuna.trial.TrialState.RUNNING)
        >>> PolicyPruner().advise(optuna.create_study(), trial)  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ...
        surefoot.errors.NotSupported: PolicyPruner asks the policy of a SurefootSampler, and this study has TPE...
        """
        if not isinstance(study.sampler, SurefootSampler):
            raise NotSupported(
                f"PolicyPruner asks the policy of a SurefootSampler, and this study has {type(study.sampler).__name__}"
            )
        return study.sampler.advise(study, trial)
