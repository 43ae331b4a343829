"""Bayesian optimal stopping as an Optuna pruner, for any sampler.

After its first epochs a run is forecast, and it is pruned once going on costs more than it promises: the
:class:`~surefoot.bridge.judge.Judge` of the bridges, with the runs in the study's storage. Everything follows from
these; tables are kept while a run lasts, which saves time and changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from optuna.pruners import BasePruner
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from surefoot.arguments import whole
from surefoot.bridge.judge import Judge
from surefoot.bridge.optuna.history import epochs, first_step, sign_of, study_seed
from surefoot.loop.types import Advice
from surefoot.stopping import OptimalStopping

__all__ = ["BosPruner"]


class BosPruner(BasePruner):
    """Prunes a run when going on costs more than it promises.

    Parameters
    ----------
    epochs : int
        Length of a complete run, in reports.
    stopping : OptimalStopping, optional
        Losses, curve model, and the number of first epochs that every run is given. None: the rule of ``BOBOS``.
    bounds : (float, float), optional
        Range of the reported values, such as (0, 1) for an accuracy or an error. None: from the runs so far. A run that
        leaves given bounds is not judged.
    complete : int
        Nothing is pruned before so many trials have ended without failing.
    growth : float
        g in K₁,ₜ = K₁/g^(t−1), 0 < g ≤ 1, where t counts the trials from there on.
    stop_until : int, optional
        T₀: from trial T₀ + 1 on, so counted, nothing is pruned.
    first, interval : int
        The step of a run's first report, and the steps between two reports: report n comes at step ``first`` +
        (n − 1) ``interval``. ``first=None``: the lowest step in the study. Reports that are missing are interpolated.
    seed : int, optional
        Names the simulated curves. None: derived from the study, the same in all of its processes.

    A run whose newest value is no finite number has diverged and is pruned, unless it is still in its first epochs.

    >>> import optuna
    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> study = optuna.create_study(sampler=optuna.samplers.RandomSampler(0), pruner=BosPruner(epochs=20, seed=0))
    >>> def objective(trial):
    ...     end = trial.suggest_float("end", 0.0, 1.0)
    ...     for epoch in range(1, 21):
    ...         loss = end + 0.5 ** (epoch / 2)
    ...         trial.report(loss, epoch)
    ...         if trial.should_prune():
    ...             raise optuna.TrialPruned
    ...     return loss
    >>> study.optimize(objective, n_trials=12)
    >>> {trial.state.name for trial in study.trials} == {"COMPLETE", "PRUNED"}
    True
    """

    def __init__(
        self,
        *,
        epochs: int,
        stopping: OptimalStopping | None = None,
        bounds: tuple[float, float] | None = None,
        complete: int = 5,
        growth: float = 0.95,
        stop_until: int | None = None,
        first: int | None = None,
        interval: int = 1,
        seed: int | None = None,
    ) -> None:
        for name, number, lowest in (("first", first, 0), ("interval", interval, 1), ("seed", seed, 0)):
            if number is None and name != "interval":
                continue
            whole(number, name, lowest)
        self._options: dict[str, Any] = {
            "epochs": epochs,
            "stopping": stopping,
            "bounds": bounds,
            "complete": complete,
            "growth": growth,
            "stop_until": stop_until,
        }
        Judge(**self._options)  # refuses bad options now, not in the middle of a study
        self._first, self._interval, self._seed = first, interval, seed
        self._judges: dict[tuple[str, int], Judge] = {}

    def __getstate__(self) -> dict[str, object]:
        return {**vars(self), "_judges": {}}

    def prune(self, study: Study, trial: FrozenTrial) -> bool:
        """Tell Optuna whether to end a run."""
        return self.advise(study, trial).stop

    def advise(self, study: Study, trial: FrozenTrial) -> Advice:
        """Return whether to end a run, why, the probability that it still wins, and the epochs it saves.

        >>> import optuna
        >>> trial = optuna.create_trial(state=optuna.trial.TrialState.RUNNING)
        >>> BosPruner(epochs=20).advise(optuna.create_study(), trial).reason
        'nothing was reported yet'
        """
        sign = sign_of(study)
        trials = study.get_trials(deepcopy=False)
        first = first_step([*trials, trial]) if self._first is None else self._first
        scores = epochs(trial, sign=sign, first=first, interval=self._interval)
        ended = [
            self._run(other, sign, first)
            for other in trials
            if other.state in (TrialState.COMPLETE, TrialState.PRUNED) and other.number != trial.number
        ]
        return self._judge(study, trials).advise(trial.number, scores, ended, sign=sign)

    def _run(self, trial: FrozenTrial, sign: float, first: int) -> list[float]:
        """The scores of a finished run, the last one last; its value where it reported none."""
        found = list(epochs(trial, sign=sign, first=first, interval=self._interval).values())
        return found if found or not trial.values else [sign * trial.values[0]]

    def _judge(self, study: Study, trials: Sequence[FrozenTrial]) -> Judge:
        seed = study_seed(study, trials) if self._seed is None else self._seed
        return self._judges.setdefault((study.study_name, seed), Judge(**self._options, seed=seed))
