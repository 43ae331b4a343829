"""An Optuna study on private data: it reports what was paid for, and nothing else.

>>> from surefoot.private import GaussianEvent, Ledger
>>> study = PrivateStudy(event=GaussianEvent(20.0), sensitivity=0.01, ledger=Ledger(epsilon=1.0, delta=1e-5))
>>> study.optimize(lambda trial: trial.suggest_float("x", 0.0, 1.0), n_trials=100)
>>> 10 < len(study.trials) < 30, study.ledger.spent() <= 1.0  # then the budget was spent
(True, True)

Two ways to pay, as in :mod:`surefoot.private.search`. Without ``repeats`` every trial is charged before it runs, any
sampler may look at all values, and everything in the study may be shown. With ``repeats`` trials are independent, their
number is secret, the best is all that comes out, and the whole search is charged before it begins.
"""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np
import optuna
from optuna.samplers import BaseSampler, RandomSampler
from optuna.trial import TrialState

from surefoot.arguments import one_of, positive, whole
from surefoot.errors import BudgetSpent, NoData, NotSupported, SurefootError
from surefoot.private.accounting import GaussianEvent, StatedEvent
from surefoot.private.ledger import Ledger
from surefoot.private.noise import Noise, SystemNoise
from surefoot.private.search import Repeats, selection_epsilon

__all__ = ["PrivateStudy", "PrivateTrial"]

SUGGESTS = ("suggest_float", "suggest_int", "suggest_categorical")


class PrivateTrial:
    """What an objective sees of a trial: it may suggest, and report nothing on the side.

    >>> trial = PrivateTrial(optuna.trial.FixedTrial({"x": 0.5}))
    >>> trial.suggest_float("x", 0.0, 1.0)
    0.5
    >>> trial.report(0.3, step=1)
    Traceback (most recent call last):
    ...
    surefoot.errors.NotSupported: nobody paid for trial.report: a private trial offers suggest_float, suggest_int, ...
    """

    def __init__(self, trial: Any) -> None:
        self._trial = trial

    def __getattr__(self, name: str) -> Any:
        if name in SUGGESTS:
            return getattr(self._trial, name)
        raise NotSupported(f"nobody paid for trial.{name}: a private trial offers {', '.join(SUGGESTS)}")


class PrivateStudy:
    """A study that charges a ledger and refuses to report a value it has no budget for.

    Parameters
    ----------
    event : GaussianEvent or StatedEvent
        What one trial costs: of the objective itself, or of the noise that is added here.
    ledger : Ledger
        The budget.
    sensitivity : float, optional
        For an objective that returns an exact number which one record changes by at most so much: Gaussian noise of the
        event's multiplier is added to it. None: the objective is private already, at the price of ``event``.
    repeats : Repeats, optional
        Pay for the best trial only, among a secret number of independent ones.
    delta : float, optional
        δ that a search with ``repeats`` takes from the ledger; half of the ledger's by default.
    direction : {"minimize", "maximize"}
        As in Optuna.
    sampler : optuna sampler, optional
        Any without ``repeats``; with it trials must be independent, and only random ones are.
    noise : Noise, optional
        Where secrets come from; by default the operating system.

    >>> from surefoot.private import Repeats
    >>> ledger = Ledger(epsilon=3.0, delta=1e-5)
    >>> study = PrivateStudy(event=GaussianEvent(8.0), sensitivity=0.01, ledger=ledger, repeats=Repeats(20.0))
    >>> study.optimize(lambda trial: (trial.suggest_float("x", 0.0, 1.0) - 0.3) ** 2)
    >>> sorted(study.best_params), round(ledger.spent(), 2)
    (['x'], 1.18)
    >>> study.trials
    Traceback (most recent call last):
    ...
    surefoot.errors.NotSupported: the budget pays for the best trial only: this study shows best_params and best_value
    """

    def __init__(
        self,
        *,
        event: GaussianEvent | StatedEvent,
        ledger: Ledger,
        sensitivity: float | None = None,
        repeats: Repeats | None = None,
        delta: float | None = None,
        direction: Literal["minimize", "maximize"] = "minimize",
        sampler: BaseSampler | None = None,
        noise: Noise | None = None,
    ) -> None:
        one_of(direction, "direction", ("minimize", "maximize"))
        if not isinstance(ledger, Ledger):
            raise TypeError(f"a private study needs a Ledger, got {type(ledger).__name__}")
        self.ledger, self.direction = ledger, direction
        self._event, self._repeats, self._delta = event, repeats, ledger.delta / 2.0 if delta is None else delta
        self._noise: Noise = SystemNoise() if noise is None else noise
        if self._noise.simulated:
            raise SurefootError("simulated noise protects nothing: a ledger is for real releases")
        self._scale: float | None = None
        if sensitivity is not None:
            if not isinstance(event, GaussianEvent) or event.sampling != 1.0 or event.count != 1:
                raise ValueError("noise is added for one GaussianEvent without sampling")
            self._scale = positive(sensitivity, "sensitivity") * event.noise_multiplier
        if repeats is not None and sampler is not None:
            raise NotSupported("with repeats trials are independent and random: a sampler that looks at values is not")
        self._sampler = sampler
        self._study = self._new()
        self._best: tuple[dict[str, Any], float] | None = None
        self._searched = False

    def _new(self) -> optuna.Study:
        sampler = RandomSampler() if self._repeats is not None else self._sampler
        return optuna.create_study(direction=self.direction, sampler=sampler)

    def optimize(self, objective: Any, n_trials: int | None = None) -> None:
        """Run trials: so many, or until the budget is spent; with ``repeats`` a secret number, once.

        An exception of the objective counts as a failed trial, and its text is not kept.
        """
        if self._repeats is not None:
            if n_trials is not None:
                raise ValueError("with repeats the number of trials is secret: n_trials cannot be given")
            self._select(objective, self._repeats)
            return
        for _ in range(whole(n_trials, "n_trials", 1)):
            try:
                self.ledger.charge(self._event, what="trial")
            except BudgetSpent:
                return
            trial = self._study.ask()
            value = self._value(objective, trial)
            if math.isnan(value):
                self._study.tell(trial, state=TrialState.FAIL)
            else:
                self._study.tell(trial, value)

    def _select(self, objective: Any, repeats: Repeats) -> None:
        if self._searched:
            raise NotSupported("this study was searched: a second search is another study")
        price = selection_epsilon(self._event, repeats, self._delta)
        self.ledger.charge(StatedEvent(price, self._delta), what="search")
        self._searched = True
        sign = 1.0 if self.direction == "maximize" else -1.0
        best = -math.inf
        for _ in range(repeats.draw(self._noise)):
            trial = self._study.ask()
            value = self._value(objective, trial)
            if sign * value > best:
                best, self._best = sign * value, (dict(trial.params), value)
            self._study.tell(trial, state=TrialState.FAIL)  # no value is kept
        self._study = self._new()  # nor how many there were

    def _value(self, objective: Any, trial: Any) -> float:
        try:
            value = float(objective(PrivateTrial(trial)))
        except NotSupported:
            raise
        except Exception:  # its text may quote data
            value = math.nan
        if self._scale is None:
            return value
        if not np.isfinite(value):
            raise ValueError("an exact objective must return a finite number: that it failed is not protected")
        return float(self._noise.gaussian([value], self._scale)[0])

    @property
    def best_params(self) -> dict[str, Any]:
        """The parameters of the best trial."""
        return self._found()[0]

    @property
    def best_value(self) -> float:
        """Its value, with the noise that was added."""
        return self._found()[1]

    def _found(self) -> tuple[dict[str, Any], float]:
        if self._repeats is None:
            return dict(self._study.best_params), float(self._study.best_value)
        if self._best is None:
            raise NoData("there is no best trial")
        return dict(self._best[0]), self._best[1]

    @property
    def study(self) -> optuna.Study:
        """The study inside, all of which was paid for; refused with ``repeats``."""
        if self._repeats is not None:
            raise NotSupported("the budget pays for the best trial only: this study shows best_params and best_value")
        return self._study

    @property
    def trials(self) -> list[Any]:
        """All trials; refused with ``repeats``."""
        return list(self.study.trials)
