"""Training and scoring an estimator on one fold, all at once or an epoch at a time.

>>> import numpy as np
>>> from sklearn.linear_model import SGDClassifier
>>> from sklearn.metrics import check_scoring
>>> data = Data(np.linspace(-1.0, 1.0, 40)[:, None], np.arange(40) >= 20, classes=[False, True])
>>> model = SGDClassifier(random_state=0)
>>> for epoch in range(1, 6):
...     found = train(model, data, np.arange(0, 40, 2), np.arange(1, 40, 2), scorer=check_scoring(model), epoch=epoch)
>>> found["fit_error"], found["test_scores"] > 0.8
(None, True)
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from traceback import format_exc
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.metaestimators import _safe_split
from sklearn.utils.validation import _check_method_params

__all__ = ["Data", "has_partial_fit", "train", "train_epoch"]


@dataclass(frozen=True)
class Data:
    """What a search was given to fit, with the parameters that go to ``fit`` and to the scorer.

    ``classes`` are all labels, which a first ``partial_fit`` must be told: a fold may lack some.

    >>> Data([[0.0], [1.0]], ["a", "b"], classes=["a", "b"]).fit_params
    {}
    """

    X: Any
    y: Any = None
    fit_params: Mapping[str, Any] = field(default_factory=dict)
    score_params: Mapping[str, Any] = field(default_factory=dict)
    classes: Any = None


def has_partial_fit(estimator: Any) -> bool:
    """Whether an estimator can be trained an epoch at a time; of a pipeline the last step must.

    >>> from sklearn.linear_model import SGDClassifier
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> has_partial_fit(make_pipeline(StandardScaler(), SGDClassifier())), has_partial_fit(StandardScaler())
    (True, True)
    """
    return hasattr(estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator, "partial_fit")


def train_epoch(estimator: Any, X: Any, y: Any, *, first: bool, classes: Any = None, **fit_params: Any) -> None:
    """Train an estimator for one more epoch. The transformers of a pipeline are fitted in the first one.

    >>> from sklearn.linear_model import SGDRegressor
    >>> model = SGDRegressor(random_state=0)
    >>> for epoch in range(5):
    ...     train_epoch(model, [[0.0], [1.0]], [0.0, 1.0], first=epoch == 0)
    >>> model.t_
    11.0
    """
    last = estimator
    if isinstance(estimator, Pipeline):
        name, last = estimator.steps[-1]
        fit_params = {key.removeprefix(f"{name}__"): value for key, value in fit_params.items()}
        if len(estimator.steps) > 1:
            head = estimator[:-1]
            X = head.fit_transform(X, y) if first else head.transform(X)
            estimator.steps[:-1] = head.steps  # with a memory these are copies
    if first and classes is not None and "classes" in inspect.signature(last.partial_fit).parameters:
        fit_params["classes"] = classes
    last.partial_fit(X, y, **fit_params)


def train(
    model: Any,
    data: Data,
    at: Any,
    test: Any,
    *,
    scorer: Any,
    epoch: int | None = None,
    error_score: float | str = np.nan,
    train_score: bool = False,
) -> dict[str, Any]:
    """Fit a model to the rows ``at``, or train it for one more epoch, and score it on the rows ``test``.

    Returns
    -------
    dict
        ``model``, ``fit_error`` (a traceback or None), ``fit_time``, ``score_time``, ``test_scores``, and with
        ``train_score`` ``train_scores``; scores are a number, or a dict of them where the scorer has several.

    >>> from sklearn.dummy import DummyClassifier
    >>> model = DummyClassifier()
    >>> train(model, Data([[0.0], [1.0], [2.0]], ["a", "a", "b"]), [0, 1], [2], scorer=type(model).score)["test_scores"]
    0.0
    """
    X_train, y_train = _safe_split(model, data.X, data.y, at)
    X_test, y_test = _safe_split(model, data.X, data.y, test, at)
    fit_params = _check_method_params(data.X, params=dict(data.fit_params), indices=at)
    start, error = time.perf_counter(), None
    try:
        if epoch is not None:
            train_epoch(model, X_train, y_train, first=epoch == 1, classes=data.classes, **fit_params)
        elif y_train is None:
            model.fit(X_train, **fit_params)
        else:
            model.fit(X_train, y_train, **fit_params)
    except Exception:
        if error_score == "raise":
            raise
        error = format_exc()
    fitted = time.perf_counter()
    found = {"model": model, "fit_error": error, "fit_time": fitted - start, "score_time": 0.0}
    sides = {"test_scores": (X_test, y_test, test)}
    if train_score:
        sides["train_scores"] = (X_train, y_train, at)
    for side, (X, y, rows) in sides.items():
        params = _check_method_params(data.X, params=dict(data.score_params), indices=rows)
        found[side] = error_score if error is not None else _score(model, X, y, scorer, params, error_score)
        if side == "test_scores":
            found["score_time"] = time.perf_counter() - fitted
    return found


def _score(model: Any, X: Any, y: Any, scorer: Any, params: Mapping[str, Any], error_score: float | str) -> Any:
    """The score, or scores, of a model; ``error_score`` where a scorer raised."""
    try:
        scores = scorer(model, X, **params) if y is None else scorer(model, X, y, **params)
    except Exception:
        if error_score == "raise":
            raise
        return error_score
    if not isinstance(scores, dict):
        return _number(scores)
    # Of several scorers one that raised has left its traceback in place of a number.
    return {name: error_score if isinstance(value, str) else _number(value) for name, value in scores.items()}


def _number(value: Any) -> float:
    try:
        return float(value.item() if hasattr(value, "item") else value)
    except (TypeError, ValueError):
        raise ValueError(f"scoring must return a number, got {value!r}") from None
