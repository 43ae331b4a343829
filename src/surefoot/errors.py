"""The errors Surefoot raises on purpose.

Bad arguments are plain ``ValueError`` or ``TypeError``. The classes here are for states a caller may want to handle.
"""

from __future__ import annotations

from typing import Any

__all__ = [
    "BudgetSpent",
    "Exhausted",
    "Interrupted",
    "MissingData",
    "MissingExtra",
    "NoData",
    "NotSupported",
    "PendingQuery",
    "SurefootError",
]


class SurefootError(Exception):
    """Base of all errors that Surefoot raises on purpose.

    >>> raise SurefootError("something a caller can handle")
    Traceback (most recent call last):
    ...
    surefoot.errors.SurefootError: something a caller can handle
    """


class NotSupported(SurefootError):
    """The policy does not declare this ability; the message names what it does support.

    >>> raise NotSupported("ThompsonSampling does not take steps")
    Traceback (most recent call last):
    ...
    surefoot.errors.NotSupported: ThompsonSampling does not take steps
    """


class PendingQuery(SurefootError):
    """A sequential policy was asked again before the last query was told or cancelled.

    >>> raise PendingQuery("tell or cancel query 3 first")
    Traceback (most recent call last):
    ...
    surefoot.errors.PendingQuery: tell or cancel query 3 first
    """


class Exhausted(SurefootError):
    """No admissible point is left: all are pending, or all were measured and ``repeats=False``.

    >>> raise Exhausted("all 5 candidates are pending")
    Traceback (most recent call last):
    ...
    surefoot.errors.Exhausted: all 5 candidates are pending
    """


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during ``optimize``; ``result`` is what was found until then, None where nothing was.

    >>> Interrupted("interrupted after 3 trials").result is None
    True
    """

    result: Any = None


class NoData(SurefootError):
    """The question has no answer before the first successful measurement.

    >>> raise NoData("nothing was told yet")
    Traceback (most recent call last):
    ...
    surefoot.errors.NoData: nothing was told yet
    """


class BudgetSpent(SurefootError):
    """A declared budget (queries, cost, privacy) does not allow another step.

    >>> raise BudgetSpent("20 of 20 queries used")
    Traceback (most recent call last):
    ...
    surefoot.errors.BudgetSpent: 20 of 20 queries used
    """


class MissingData(SurefootError):
    """A data set is not on this machine; the message says where to get it and where to put it.

    >>> raise MissingData("svm_grid: put svm_on_grid.csv.gz into $SUREFOOT_DATA/svm_grid")
    Traceback (most recent call last):
    ...
    surefoot.errors.MissingData: svm_grid: put svm_on_grid.csv.gz into $SUREFOOT_DATA/svm_grid
    """


class MissingExtra(SurefootError):
    """An optional dependency is not installed; the message says what to install.

    >>> raise MissingExtra("plots need matplotlib: pip install 'surefoot[plot]'")
    Traceback (most recent call last):
    ...
    surefoot.errors.MissingExtra: plots need matplotlib: pip install 'surefoot[plot]'
    """
