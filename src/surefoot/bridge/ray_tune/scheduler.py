"""Bayesian optimal stopping as a scheduler of Ray Tune, for any searcher.

After its first epochs a trial is forecast, and it is stopped once going on costs more than it promises
(:class:`surefoot.bridge.judge.Judge`). With a :class:`~surefoot.bridge.ray_tune.SurefootSearch` whose policy follows
runs, the policy's own advice can be followed instead, which also asks how sure its belief is.

Ray does not save schedulers. When an experiment is restored Ray adds its trials again, and the scheduler reads their
results, which Ray keeps beside them.
"""

from __future__ import annotations

import json
import logging
import math
import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

import numpy as np
from ray.tune.experiment import Trial
from ray.tune.result import DEFAULT_METRIC, EXPR_RESULT_FILE, TRAINING_ITERATION
from ray.tune.schedulers import FIFOScheduler, TrialScheduler
from ray.tune.utils.util import flatten_dict

from surefoot.bridge.judge import Judge
from surefoot.bridge.ray_tune.searcher import SurefootSearch, check_target, score
from surefoot.loop.streams import fresh_seed
from surefoot.loop.types import Advice
from surefoot.stopping import OptimalStopping

if TYPE_CHECKING:
    from ray.tune.execution.tune_controller import TuneController

__all__ = ["SurefootStopping"]

_log = logging.getLogger("surefoot.bridge.ray_tune")


class SurefootStopping(FIFOScheduler):
    """Stops a trial when going on costs more than it promises.

    Parameters
    ----------
    epochs : int, optional
        Length of a complete run; a trial that gets there is stopped too. None: follow the advice of the searcher's
        policy, which must be one that follows runs, such as ``BOBOS``; the options below are then its own.
    metric, mode : str, optional
        What to compare, and "min" or "max", if the tuner does not say.
    stopping : OptimalStopping, optional
        Losses, curve model, and the number of first epochs that every trial is given. None: the rule of ``BOBOS``.
    bounds : (float, float), optional
        Range of the metric, such as (0, 1) for an accuracy or an error. None: from the results so far. A trial that
        leaves given bounds is not judged.
    complete : int
        Nothing is stopped before so many trials have ended.
    growth : float
        g in K₁,ₜ = K₁/g^(t−1), 0 < g ≤ 1, where t counts the trials from then on.
    stop_until : int, optional
        T₀: from trial T₀ + 1 on, so counted, nothing is stopped.
    time_attr : str
        The entry of a result that counts its epochs from 1.
    seed : int, optional
        Names the simulated curves.

    A trial whose newest value is no finite number has diverged and is stopped, unless it is still in its first epochs.

    >>> scheduler = SurefootStopping(epochs=50, metric="loss", mode="min", seed=0)
    >>> scheduler.debug_string()
    'Bayesian optimal stopping: 0 trials stopped, 0 epochs saved'
    """

    _supports_buffered_results = False  # a trial must not run ahead of what was decided about it

    def __init__(
        self,
        *,
        epochs: int | None = None,
        metric: str | None = None,
        mode: str | None = None,
        stopping: OptimalStopping | None = None,
        bounds: tuple[float, float] | None = None,
        complete: int = 5,
        growth: float = 0.95,
        stop_until: int | None = None,
        time_attr: str = TRAINING_ITERATION,
        seed: int | None = None,
    ) -> None:
        super().__init__()
        check_target(metric, mode)
        if epochs is None and (stopping is not None or bounds is not None or stop_until is not None):
            raise ValueError("without epochs the searcher's policy decides, and takes stopping, bounds and stop_until")
        if seed is not None and (not isinstance(seed, (int, np.integer)) or isinstance(seed, bool) or seed < 0):
            raise ValueError(f"seed must be a non-negative integer or None, got {seed!r}")
        self._metric, self._mode, self._time_attr = metric, mode, time_attr
        self._judge = None
        if epochs is not None:
            self._judge = Judge(
                epochs=epochs,
                stopping=stopping,
                bounds=bounds,
                complete=complete,
                growth=growth,
                stop_until=stop_until,
                seed=fresh_seed() if seed is None else int(seed),
            )
        self._curves: dict[str, dict[int, float]] = {}  # scores by trial and epoch, NaN where there was no number
        self._ended: set[str] = set()
        self._verdicts: dict[str, Advice] = {}

    @property
    def stopped(self) -> dict[str, str]:
        """Why each trial that was stopped was, by its id; an experiment that was restored counts from then on."""
        return {trial: advice.reason for trial, advice in self._verdicts.items()}

    def debug_string(self) -> str:
        """Return a line about what was stopped."""
        saved = sum(advice.saved or 0.0 for advice in self._verdicts.values())
        return f"Bayesian optimal stopping: {len(self._verdicts)} trials stopped, {saved:.0f} epochs saved"

    def set_search_properties(self, metric: str | None, mode: str | None, **spec: Any) -> bool:
        """Take the metric and the mode of the tuner; False where the scheduler has its own."""
        if (self._metric and metric) or (self._mode and mode):
            return False
        check_target(metric, mode)
        self._metric, self._mode = metric or self._metric, mode or self._mode
        return True

    @property
    def _target(self) -> tuple[str, float]:
        if self._mode is None:
            raise ValueError("the scheduler does not know what is better: give metric and mode to it, or to the tuner")
        return self._metric or DEFAULT_METRIC, 1.0 if self._mode == "max" else -1.0

    # -- what Ray calls ----------------------------------------------------------------------------------------------

    def on_trial_add(self, tune_controller: TuneController, trial: Trial) -> None:
        """Take in a new trial, or one of an experiment that was restored."""
        _ = self._target
        if self._judge is None:
            _policy_searcher(tune_controller)
        elif trial.trial_id not in self._curves:
            curve = self._curves[trial.trial_id] = {}
            for result in _results(trial, self._time_attr):
                self._note(curve, result)
            if trial.status == Trial.TERMINATED:
                self._ended.add(trial.trial_id)

    def on_trial_result(self, tune_controller: TuneController, trial: Trial, result: Mapping[str, Any]) -> str:
        """Decide about a trial after a result."""
        if self._judge is None:
            searcher = _policy_searcher(tune_controller)
            advice, epochs = searcher.advise(trial.trial_id, result), searcher.policy.epochs or math.inf
        else:
            curve = self._curves.setdefault(trial.trial_id, {})
            if not self._note(curve, result):
                return TrialScheduler.CONTINUE
            others = [list(self._curves[known].values()) for known in sorted(self._ended - {trial.trial_id})]
            advice = self._judge.advise(_number(trial), curve, others, sign=self._target[1])
            epochs = self._judge.epochs
        if advice.stop:
            self._verdicts[trial.trial_id] = advice
            _log.info("trial %s is stopped: %s", trial.trial_id, advice.reason)
        ends = advice.stop or _epoch(result, self._time_attr) >= epochs
        return TrialScheduler.STOP if ends else TrialScheduler.CONTINUE

    def on_trial_complete(self, tune_controller: TuneController, trial: Trial, result: Mapping[str, Any]) -> None:
        """Remember how a trial ended."""
        if self._judge is not None:
            self._note(self._curves.setdefault(trial.trial_id, {}), result)
            self._ended.add(trial.trial_id)

    # -- remembering -------------------------------------------------------------------------------------------------

    def _note(self, curve: dict[int, float], result: Mapping[str, Any]) -> bool:
        """Put a result on a curve; whether it was one that counts."""
        epoch, (metric, sign) = _epoch(result, self._time_attr), self._target
        if epoch < 1 or metric not in result:
            return False
        value = score(result, metric, sign)
        for later in [known for known in curve if known >= epoch]:
            del curve[later]  # the trial was restored to an earlier epoch
        curve[epoch] = math.nan if value is None else value
        return True


def _policy_searcher(tune_controller: TuneController) -> SurefootSearch:
    """The experiment's searcher, if its policy follows runs."""
    searcher: Any = tune_controller.search_alg
    while not isinstance(searcher, SurefootSearch):
        searcher = getattr(searcher, "searcher", None)
        if searcher is None:
            break
    if searcher is None or not searcher.policy.steps:
        raise ValueError(
            "SurefootStopping needs the epochs of a run, or a SurefootSearch whose policy follows runs, such as BOBOS"
        )
    return searcher


def _epoch(result: Mapping[str, Any], time_attr: str) -> int:
    """The epoch of a result, 0 where it has none."""
    epoch = result.get(time_attr)
    return int(epoch) if isinstance(epoch, (int, float, np.number)) and math.isfinite(epoch) else 0


def _number(trial: Trial) -> int:
    """The number of a trial from 0: Ray's tags begin with it, and it survives a restoration, unlike the order."""
    found = re.match(r"\d+", trial.experiment_tag or "")
    return max(0, int(found.group()) - 1) if found else 0


def _results(trial: Trial, time_attr: str) -> list[Mapping[str, Any]]:
    """The results of a trial up to the one that the experiment knows; only that one where the others were not kept."""
    last: Mapping[str, Any] = flatten_dict(trial.last_result or {})
    if not last.get(time_attr):
        return []
    lines: list[str] = []
    if trial.storage is not None:
        path = PurePosixPath(trial.storage.trial_fs_path, EXPR_RESULT_FILE).as_posix()
        try:
            with trial.storage.storage_filesystem.open_input_stream(path) as file:
                lines = file.readall().decode("utf-8").splitlines()
        except OSError:
            _log.warning("trial %s: only its last result is known, %s cannot be read", trial.trial_id, path)
    results: list[Mapping[str, Any]] = []
    for line in lines:
        try:
            results.append(flatten_dict(json.loads(line)))
        except ValueError:  # a torn line
            continue
    known = [result for result in results if _epoch(result, time_attr) <= _epoch(last, time_attr)]
    return [*known, last]
