"""Choosing features, or rows, that still serve when some of them are lost.

As a transformer in a pipeline :class:`RobustSelector` chooses *columns*: sensors that may fail, features that may go
missing once a model is in use. A pipeline cannot drop rows, so that with ``of="rows"`` it chooses exemplars, and
``transform`` gives the distances of every row to them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, check_non_negative, validate_data

from surefoot.select import Coverage, FacilityLocation, LogisticSupport, RSquared, SetFunction, VarianceReduction
from surefoot.select.choice import METHODS, choose

__all__ = ["RobustSelector"]

Array = NDArray[np.float64]
Make = Callable[[Any, Any], SetFunction]

SUPERVISED = ("r2", "logistic")
PLAIN = ("facility", "variance", "coverage")


class RobustSelector(SelectorMixin, BaseEstimator):
    """Chooses k columns (or rows) whose worth stays large when any τ of them are lost.

    Parameters
    ----------
    objective : str or callable
        What a choice is worth. Of columns: "r2", the share of y that a linear regression explains; "logistic", the
        log-likelihood of a classifier with a ridge; "facility", how much of every column's correlation the most
        correlated chosen one has; "variance", how well the chosen columns predict all columns; "coverage", how many
        rows have a positive entry in a chosen column. Of rows: "facility", how near each row is to a chosen one;
        "variance", how well a Gaussian process measured there is known at all rows; "coverage", how many columns have a
        positive entry in a chosen row. Or a function of (X, y) that returns a :class:`~surefoot.select.SetFunction` of
        the columns (rows).
    k : int or float
        How many to choose; a float is a share of all, rounded up.
    tau : int or float
        How many of them may be lost, fewer than k; a float is a share of k, rounded down.
    method : str
        "auto", which tries several selectors and keeps the most robust choice; or "greedy", "pro", "pro_exact", "osu",
        "oblivious_greedy", "oblivious".
    of : {"columns", "rows"}
        What to choose.
    seconds : float
        Time limit of each search for a worst deletion.

    Attributes
    ----------
    selected_ : array of shape (k,)
        The chosen columns (rows), in the order of their choice.
    value_, worst_case_value_ : float
        What they are worth, and what is left after the worst loss of τ of them that was found.
    lost_ : array of shape (τ,)
        Those whose loss leaves that.
    certificate_ : Certificate
        What is proved: ``print(selector.certificate_)``.
    ranking_ : array of shape (columns,)
        1 for the first choice, 2 for the second, ...; k + 1 for all that were not chosen (or one per row).
    gains_ : array of shape (k,)
        What each added to those before it.
    method_ : str
        The selector that made the choice.
    exemplars_ : array of shape (k, columns)
        The chosen rows themselves; only with ``of="rows"``.

    Columns that do not vary are worth nothing to "r2", "logistic", "facility" and "variance", and are chosen last.

    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 6))
    >>> X[:, 3] = X[:, 0] + 0.1 * rng.normal(size=100)      # a spare for column 0
    >>> selector = RobustSelector("r2", k=2, tau=1).fit(X, 3.0 * X[:, 0] + X[:, 1])
    >>> selector.selected_, bool(selector.worst_case_value_ > 0.8)
    (array([0, 3]), True)
    >>> selector.transform(X).shape
    (100, 2)
    """

    _parameter_constraints: dict[str, list[Any]] = {  # noqa: RUF012 - as the base class has it
        "objective": [StrOptions({*SUPERVISED, *PLAIN}), callable],
        "k": [Interval(Integral, 1, None, closed="left"), Interval(Real, 0, 1, closed="right")],
        "tau": [Interval(Integral, 0, None, closed="left"), Interval(Real, 0, 1, closed="left")],
        "method": [StrOptions({"auto", *METHODS})],
        "of": [StrOptions({"columns", "rows"})],
        "seconds": [Interval(Real, 0, None, closed="neither")],
    }

    def __init__(
        self,
        objective: str | Make = "facility",
        k: float = 0.5,
        tau: float = 0.2,
        method: str = "auto",
        *,
        of: str = "columns",
        seconds: float = 10.0,
    ) -> None:
        self.objective = objective
        self.k = k
        self.tau = tau
        self.method = method
        self.of = of
        self.seconds = seconds

    def fit(self, X: Any, y: Any = None) -> RobustSelector:
        """Choose.

        Parameters
        ----------
        X : array of shape (rows, columns)
            The data.
        y : array of shape (rows,), optional
            What "r2" and "logistic" explain; passed on to a function.
        """
        self._validate_params()
        supervised = self.objective in SUPERVISED
        if supervised and y is None:
            raise ValueError(
                f"requires y to be passed, but the target y is None: the objective {self.objective!r} explains it"
            )
        if supervised and self.of == "rows":
            raise ValueError(f"the objective {self.objective!r} chooses columns, not rows")
        options = {"dtype": np.float64, "ensure_min_samples": 2, "ensure_min_features": 1}
        if y is None:
            X = validate_data(self, X, **options)
        else:
            # A label may be text; only a regression needs numbers.
            X, y = validate_data(self, X, y, y_numeric=self.objective == "r2", **options)
        if self.objective == "logistic":
            check_classification_targets(y)
        count = X.shape[1] if self.of == "columns" else X.shape[0]
        k, tau = self._sizes(count)
        self._choose(k, tau, count, *self._objective(X, y))
        if self.of == "rows":
            self.exemplars_ = X[self.selected_]
        return self

    def _sizes(self, count: int) -> tuple[int, int]:
        """How many to choose, and how many may be lost."""
        k = math.ceil(self.k * count) if isinstance(self.k, float) else int(self.k)
        if k > count:
            seen = "n_features" if self.of == "columns" else "n_samples"
            raise ValueError(f"k = {k} {self.of} cannot be chosen out of {seen} = {count}")
        tau = math.floor(self.tau * k) if isinstance(self.tau, float) else int(self.tau)
        if tau >= k:
            raise ValueError(f"tau = {tau} deletions leave nothing of k = {k} {self.of}; tau must be less than k")
        return k, tau

    def _objective(self, X: Array, y: Any) -> tuple[SetFunction, NDArray[np.intp]]:
        """The objective, and the columns (rows) that its elements stand for."""
        if callable(self.objective):
            made = self.objective(X, y)
            if not isinstance(made, SetFunction):
                raise TypeError(f"objective must return a SetFunction, got {type(made).__name__}")
            count = X.shape[1] if self.of == "columns" else X.shape[0]
            if made.n != count:
                raise ValueError(f"objective returned a function of {made.n} elements for {count} {self.of}")
            return made, np.arange(count)
        if self.objective == "coverage":
            check_non_negative(X, "RobustSelector with objective='coverage'")
            table = X.T if self.of == "columns" else X
            return Coverage(table), np.arange(len(table))
        spread = X.std(axis=0)
        varies = np.flatnonzero(spread > 1e-12 * np.maximum(np.abs(X).max(axis=0), 1e-300))
        if not varies.size:
            raise ValueError("every column has the same value in all rows: there is nothing to choose by")
        Z = (X[:, varies] - X[:, varies].mean(axis=0)) / spread[varies]
        if self.of == "rows":
            return self._of_rows(Z), np.arange(len(Z))
        if self.objective == "r2":
            return RSquared(Z, y), varies
        if self.objective == "logistic":
            return LogisticSupport(Z, y, refit=20), varies
        correlation = np.clip(Z.T @ Z / len(Z), -1.0, 1.0)
        if self.objective == "facility":
            return FacilityLocation(correlation**2, similarity="precomputed"), varies
        return VarianceReduction((correlation + correlation.T) / 2.0, noise=0.1), varies

    def _of_rows(self, Z: Array) -> SetFunction:
        if self.objective == "facility":
            return FacilityLocation(Z, similarity="exemplar")
        squares = euclidean_distances(Z, squared=True)
        typical = float(np.median(squares[squares > 0])) if (squares > 0).any() else 1.0
        return VarianceReduction(np.exp(-0.5 * (squares + squares.T) / (2.0 * typical)), noise=0.1)

    def _choose(self, k: int, tau: int, count: int, f: SetFunction, useful: NDArray[np.intp]) -> None:
        """Choose among the useful ones; those that are worth nothing come last."""
        wanted = min(k, useful.size)
        found = choose(f, wanted, min(tau, wanted - 1), method=self.method, seconds=self.seconds)
        chosen = useful[list(found.selection.order)]
        idle = np.setdiff1d(np.arange(count), useful)[: k - wanted]
        self.selected_ = np.concatenate([chosen, idle]).astype(np.int64)
        self.gains_ = np.concatenate([found.selection.gains, np.zeros(idle.size)])
        self.value_, self.worst_case_value_ = found.selection.value, found.worst.value
        self.lost_ = useful[list(found.worst.removed)].astype(np.int64)
        self.certificate_, self.method_ = found.certificate, found.selection.method
        self.ranking_ = np.full(count, k + 1, dtype=np.int64)
        self.ranking_[self.selected_] = np.arange(1, k + 1)

    def _get_support_mask(self) -> NDArray[np.bool_]:
        check_is_fitted(self)
        mask: NDArray[np.bool_] = self.ranking_ <= self.selected_.size
        return mask

    def transform(self, X: Any) -> Any:
        """Return the chosen columns of X; or, with ``of="rows"``, the distances of its rows to the chosen ones.

        Parameters
        ----------
        X : array of shape (rows, columns)
            Data with the columns that were seen by ``fit``.
        """
        check_is_fitted(self)
        if self.of == "columns":
            return super().transform(X)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        return euclidean_distances(X, self.exemplars_)

    def inverse_transform(self, X: Any) -> Any:
        """Return the chosen columns in their places, zeros elsewhere; not for rows."""
        if self.of == "rows":
            raise AttributeError("distances to rows cannot be turned back into columns")
        return super().inverse_transform(X)

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Return the names of the columns that ``transform`` gives."""
        check_is_fitted(self)
        if self.of == "columns":
            return super().get_feature_names_out(input_features)
        return np.array([f"distance_to_row{row}" for row in self.selected_], dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = self.objective == "coverage"
        return tags
