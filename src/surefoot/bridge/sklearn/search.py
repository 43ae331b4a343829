"""A search over an estimator's parameters that asks a Surefoot policy.

All candidates see the same folds. Runs go side by side, as many as keep all workers busy; when one ends, the policy is
told its mean score and asked for the next candidate. Without ``epochs`` a run has one step, a fit on each fold; with
them each step is an epoch, and a policy that follows runs may end it before the last one.
"""

from __future__ import annotations

import inspect
import math
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import clone, is_classifier
from sklearn.exceptions import FitFailedWarning
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.model_selection._search import BaseSearchCV
from sklearn.utils import check_random_state, indexable
from sklearn.utils.multiclass import unique_labels
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import _check_method_params

from surefoot.bridge.axes import Axes
from surefoot.bridge.sklearn.fold import Data, has_partial_fit, train, train_epoch
from surefoot.bridge.sklearn.space import axes_of
from surefoot.domain import Space
from surefoot.errors import Exhausted, NotSupported
from surefoot.loop.policy import Policy
from surefoot.loop.types import FAILED, LARGEST, Query
from surefoot.policy.epochs.bo_bos import BOBOS
from surefoot.policy.improvement import ExpectedImprovement

__all__ = ["SurefootSearchCV"]


class SurefootSearchCV(BaseSearchCV):
    """Searches the parameters of an estimator by cross-validation, each candidate where a policy says.

    A drop-in for ``RandomizedSearchCV``: same arguments, attributes and methods.

    Parameters
    ----------
    estimator : estimator
        What to tune.
    space : Space or dict
        A Surefoot space; or a dict from parameter names, such as ``clf__C``, to Surefoot parameters, distributions of
        SciPy (``uniform``, ``loguniform``, ``randint``) or lists of values.
    n_iter : int
        How many candidates to try.
    policy : policy class or callable, optional
        Called as ``policy(domain, seed=...)``; options go in by ``functools.partial``. None: ``ExpectedImprovement``,
        or ``BOBOS`` with ``epochs``. Candidates are not tried twice (``repeats=False``) unless you say so there.
    epochs : int, optional
        Train by ``partial_fit``, so many epochs at most, and let the policy end candidates that will not win. The
        estimator, or the last step of a pipeline, must have ``partial_fit``; each epoch sees the whole fold once.
    batch : int, optional
        How many candidates are tried side by side. None: as many as keep ``n_jobs`` workers busy, ``n_jobs`` / folds.
    scoring, n_jobs, refit, cv, verbose, pre_dispatch, random_state, error_score, return_train_score
        As in ``RandomizedSearchCV``. With several scorers the policy maximizes the one that ``refit`` names, else the
        first. A candidate whose mean score is no finite number, or beyond ±1e150, is remembered as failed. Splits are
        made once.

    Attributes
    ----------
    cv_results_, best_estimator_, best_score_, best_params_, best_index_, scorer_, n_splits_, refit_time_, multimetric_
        As in ``RandomizedSearchCV``. With ``epochs``, ``cv_results_`` also has how many ``epochs`` each candidate was
        given and whether it was ``stopped``, and ``best_estimator_`` is trained for as many as the best candidate.
    policy_ : Policy
        The policy after the search: its belief, its events, its recommendation.

    Callbacks of scikit-learn 1.9 are not called.

    >>> from sklearn.datasets import load_digits
    >>> from sklearn.linear_model import SGDClassifier
    >>> from surefoot import Float
    >>> X, y = load_digits(return_X_y=True)
    >>> model = SGDClassifier(learning_rate="constant", random_state=0)
    >>> search = SurefootSearchCV(model, {"eta0": Float(1e-6, 1.0, log=True)}, epochs=8, n_iter=6, cv=2, random_state=0)
    >>> search = search.fit(X[:400] / 16.0, y[:400])
    >>> search.cv_results_["epochs"].shape, sorted(search.best_params_)
    ((6,), ['eta0'])
    """

    _parameter_constraints: dict[str, list[Any]] = {  # noqa: RUF012 - as the base class has it
        **BaseSearchCV._parameter_constraints,
        "space": [Space, dict],
        "n_iter": [Integral],
        "policy": [callable, None],
        "epochs": [Integral, None],
        "batch": [Integral, None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        estimator: Any,
        space: Space | Mapping[str, Any],
        *,
        n_iter: int = 25,
        policy: type[Policy] | Callable[..., Policy] | None = None,
        epochs: int | None = None,
        batch: int | None = None,
        scoring: Any = None,
        n_jobs: int | None = None,
        refit: Any = True,
        cv: Any = None,
        verbose: int = 0,
        pre_dispatch: int | str = "2*n_jobs",
        random_state: Any = None,
        error_score: float | str = np.nan,
        return_train_score: bool = False,
    ) -> None:
        super().__init__(
            estimator=estimator,
            scoring=scoring,
            n_jobs=n_jobs,
            refit=refit,
            cv=cv,
            verbose=verbose,
            pre_dispatch=pre_dispatch,
            error_score=error_score,
            return_train_score=return_train_score,
        )
        self.space = space
        self.n_iter = n_iter
        self.policy = policy
        self.epochs = epochs
        self.batch = batch
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, **params: Any) -> SurefootSearchCV:
        """Search, and fit the estimator with the best parameters to all data.

        Parameters
        ----------
        X, y : array-like
            The data; y is None where nothing is to be predicted.
        **params
            For the estimator's ``fit`` (or ``partial_fit``), the scorer and the splitter, as in
            ``RandomizedSearchCV``.
        """
        self._check()
        axes = axes_of(self.space)
        policy = self._begin(axes)
        scorer = check_scoring(self.estimator, self.scoring, raise_exc=self.error_score == "raise")
        if isinstance(self.scoring, (list, tuple, set, dict)):
            self._check_refit_for_multimetric(list(self.scoring))
        X, y = indexable(X, y)
        routed = self._get_routed_params_for_fit(_check_method_params(X, params=params))
        labels = unique_labels(y) if self.epochs is not None and is_classifier(self.estimator) else None
        data = Data(X, y, routed.estimator.fit, routed.scorer.score, labels)
        cv = check_cv(self.cv, y, classifier=is_classifier(self.estimator))
        splits = list(cv.split(X, y, **routed.splitter.split))
        self.n_splits_ = len(splits)
        if not splits:
            raise ValueError("no fits were performed: the splitter yields no folds")
        runs = self._search(axes, policy, data, splits, scorer)
        self.policy_ = policy
        self._conclude(runs, scorer)
        if self.refit:
            self._refit(data)
        return self

    # -- beginning ---------------------------------------------------------------------------------------------------

    def _check(self) -> None:
        self._validate_params()
        for name in ("n_iter", "epochs", "batch"):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or value < 1):
                raise ValueError(f"{name} must be a positive whole number, got {value!r}")
        if self.epochs is not None and not has_partial_fit(self.estimator):
            raise TypeError(f"epochs={self.epochs} needs an estimator with partial_fit, got {self.estimator!r}")

    def _begin(self, axes: Axes) -> Policy:
        make: Callable[..., Policy] = self.policy or (ExpectedImprovement if self.epochs is None else BOBOS)
        known, given = inspect.signature(make).parameters, getattr(make, "keywords", {})
        options: dict[str, Any] = {"repeats": False, "epochs": self.epochs}
        options = {name: value for name, value in options.items() if name in known and name not in given}
        if options.get("epochs", 0) is None and known["epochs"].default is inspect.Parameter.empty:
            raise ValueError(f"{getattr(make, '__name__', make)} follows runs: give the search epochs=...")
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        policy = make(axes.domain, seed=seed, **options)
        if not isinstance(policy, Policy):
            raise TypeError(f"policy must return a policy, got {policy!r}")
        if policy.fidelities:
            raise NotSupported(f"{type(policy).__name__} chooses fidelities, which a search over folds cannot take")
        if policy.steps and policy.epochs not in (None, self.epochs):
            raise ValueError(f"the policy is for runs of {policy.epochs} epochs, not {self.epochs}")
        return policy

    # -- searching ---------------------------------------------------------------------------------------------------

    def _search(self, axes: Axes, policy: Policy, data: Data, splits: list[Any], scorer: Any) -> list[_Run]:
        """Try candidates, several side by side, each for a step at a time."""
        size = self.batch or math.ceil(effective_n_jobs(self.n_jobs) / len(splits))
        size = size if policy.parallel else 1
        base = clone(self.estimator)
        runs: list[_Run] = []
        active: list[_Run] = []
        options = {"scorer": scorer, "error_score": self.error_score, "train_score": self.return_train_score}
        with Parallel(n_jobs=self.n_jobs, pre_dispatch=self.pre_dispatch) as parallel:
            while True:
                while len(active) < size and len(runs) < self.n_iter:
                    try:
                        query = policy.ask()
                    except Exhausted:
                        break
                    run = _Run(query, axes.values(query.x))
                    # Values may be estimators themselves.
                    run.models = [clone(base).set_params(**clone(run.params, safe=False)) for _ in splits]
                    runs.append(run)
                    active.append(run)
                if not active:
                    break
                found = parallel(
                    delayed(train)(
                        model, data, at, test, epoch=None if self.epochs is None else run.epoch + 1, **options
                    )
                    for run in active
                    for model, (at, test) in zip(run.models, splits, strict=True)
                )
                for i, run in enumerate(active):
                    run.take(found[i * len(splits) : (i + 1) * len(splits)])
                    self._judge(policy, run)
                    if run.closed:
                        run.models = []
                        self._say(run, runs.index(run) + 1)
                active = [run for run in active if not run.closed]
        if len(runs) < self.n_iter:
            warnings.warn(
                f"the space has only {len(runs)} candidates that the policy would try, fewer than n_iter={self.n_iter}",
                UserWarning,
                stacklevel=3,
            )
        return runs

    def _judge(self, policy: Policy, run: _Run) -> None:
        """Tell or report what a step gave, and close the run where it ends."""
        value = run.mean(self.refit)
        score = value if abs(value) <= LARGEST else None
        last = run.failed or run.epoch == (self.epochs or 1)
        if policy.steps and not run.failed:
            advice = policy.report(run.query, run.epoch, score)
            run.stopped = advice.stop and not last
            last = last or advice.stop
            if last:
                policy.tell(run.query)
        elif last:
            policy.tell(run.query, FAILED if score is None else score)
        run.closed = last

    def _say(self, run: _Run, number: int) -> None:
        if self.verbose:
            ended = f" stopped after {run.epoch} of {self.epochs} epochs" if run.stopped else ""
            params = ", ".join(f"{name}={value}" for name, value in run.params.items())
            sys.stdout.write(f"[{number}/{self.n_iter}] score={run.mean(self.refit):.6g}{ended} {params}\n")

    # -- concluding --------------------------------------------------------------------------------------------------

    def _conclude(self, runs: list[_Run], scorer: Any) -> None:
        """Put the results where the base class and its users look for them."""
        folds = [fold for run in runs for fold in run.folds]
        self._complain(folds)
        names = next((list(f["test_scores"]) for f in folds if isinstance(f["test_scores"], dict)), None)
        self.multimetric_ = names is not None
        metric = "score"
        if names is not None:
            self._check_refit_for_multimetric(names)
            metric = self.refit
            for fold in folds:
                for side in {"test_scores", "train_scores"} & set(fold):
                    if not isinstance(fold[side], dict):  # the fit failed, and only now the names are known
                        fold[side] = dict.fromkeys(names, fold[side])
        more = {}
        if self.epochs is not None:
            more = {"epochs": [run.epoch for run in runs], "stopped": [run.stopped for run in runs]}
        out = [{key: value for key, value in fold.items() if key != "model"} for fold in folds]
        results = self._format_results([run.params for run in runs], self.n_splits_, out, more)
        self.cv_results_ = results
        several = isinstance(self.scoring, (list, tuple, set, dict))
        self.scorer_ = self._each_scorer() if several else scorer
        if self.refit or not self.multimetric_:
            self.best_index_ = self._select_best_index(self.refit, metric, results)
            if not callable(self.refit):
                self.best_score_ = results[f"mean_test_{metric}"][self.best_index_]
            self.best_params_ = results["params"][self.best_index_]

    def _each_scorer(self) -> dict[str, Any]:
        named = self.scoring if isinstance(self.scoring, dict) else {name: name for name in self.scoring}
        return {name: check_scoring(self.estimator, scoring) for name, scoring in named.items()}

    def _complain(self, folds: Sequence[Mapping[str, Any]]) -> None:
        errors = Counter(fold["fit_error"] for fold in folds if fold["fit_error"] is not None)
        if not errors:
            return
        failed = errors.total()
        details = "\n".join(f"{count} fits failed with\n{error}" for error, count in errors.items())
        if failed == len(folds):
            raise ValueError(f"all the {failed} fits failed; error_score='raise' shows where\n{details}")
        warnings.warn(
            f"{failed} of {len(folds)} fits failed, and count as {self.error_score}\n{details}",
            FitFailedWarning,
            stacklevel=4,
        )

    def _refit(self, data: Data) -> None:
        best = clone(self.estimator).set_params(**clone(self.best_params_, safe=False))
        start = time.perf_counter()
        if self.epochs is not None:
            for epoch in range(1, int(self.cv_results_["epochs"][self.best_index_]) + 1):
                train_epoch(best, data.X, data.y, first=epoch == 1, classes=data.classes, **data.fit_params)
        elif data.y is None:
            best.fit(data.X, **data.fit_params)
        else:
            best.fit(data.X, data.y, **data.fit_params)
        self.refit_time_ = time.perf_counter() - start
        self.best_estimator_ = best
        if hasattr(best, "feature_names_in_"):
            self.feature_names_in_ = best.feature_names_in_


@dataclass
class _Run:
    """One candidate on all folds."""

    query: Query
    params: dict[str, Any]
    models: list[Any] = field(default_factory=list)
    folds: list[dict[str, Any]] = field(default_factory=list)
    epoch: int = 0
    stopped: bool = False
    closed: bool = False

    def take(self, found: list[dict[str, Any]]) -> None:
        """Take in what a step gave on each fold; times add up."""
        for i, before in enumerate(self.folds):
            for key in ("fit_time", "score_time"):
                found[i][key] += before[key]
        # A model comes back from another process as another object.
        self.folds, self.models = found, [fold.pop("model") for fold in found]
        self.epoch += 1

    @property
    def failed(self) -> bool:
        """Whether a fit has raised."""
        return any(fold["fit_error"] is not None for fold in self.folds)

    def mean(self, refit: Any) -> float:
        """The mean over the folds of the score to be maximized."""
        scores = [fold["test_scores"] for fold in self.folds]
        names = next((list(score) for score in scores if isinstance(score, dict)), ())
        name = refit if refit in names else next(iter(names), None)
        return float(np.mean([score[name] if isinstance(score, dict) else score for score in scores]))
