"""Landmine detection: 29 fields, each of which tunes a classifier on its own radar images.

Each field (two kinds of terrain) has 445 to 690 images of nine features, of which 3 to 9 % show a mine. A field trains
a support vector machine with a radial kernel on half of its images, and the value of (C, γ) is the area under the
receiver operating characteristic on the other half. Points lie in the unit square; both parameters are linear in it.

Every value is computed when it is asked for, some milliseconds, and remembered in this process.

Data: :mod:`surefoot_lab.datasets`, ``landmine``. Needs scikit-learn (``pip install 'surefoot[sklearn]'``).

>>> parameters([[0.0, 1.0]])
array([[1.e-04, 1.e+01]])

Reference: Xue, Liao, Carin & Krishnapuram 2007 (the data); Dai, Low & Jaillet 2020 (the task).
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata

from surefoot.domain import Box
from surefoot.errors import MissingExtra
from surefoot_lab import datasets

__all__ = ["BOUNDS", "FIELDS", "curve", "domain", "parameters", "values"]

Array = NDArray[np.float64]

FIELDS = 29
BOUNDS = ((1e-4, 10.0), (0.01, 10.0))
"""Of the penalty C and of γ of the kernel."""


def domain() -> Box:
    """Return the unit square.

    >>> domain().dimension
    2
    """
    return Box.unit(2)


def parameters(points: ArrayLike) -> Array:
    """Return (C, γ) at points (n, 2) of the unit square.

    >>> parameters([[0.5, 0.0]]).round(3)
    array([[5.  , 0.01]])
    """
    low, high = np.array(BOUNDS).T
    scaled: Array = low + np.asarray(points, dtype=np.float64) * (high - low)
    return scaled


def values(field: int, points: ArrayLike) -> Array:
    """Return the area under the curve of one field at points (n, 2) of the unit square, shape (n,).

    >>> values(29, [[0.5, 0.5]])
    Traceback (most recent call last):
    ...
    ValueError: fields are numbered 0 to 28, got 29
    """
    if not 0 <= field < FIELDS:
        raise ValueError(f"fields are numbered 0 to {FIELDS - 1}, got {field!r}")
    return np.array([area(int(field), float(C), float(gamma)) for C, gamma in parameters(points)])


@lru_cache(maxsize=1 << 20)
def area(field: int, C: float, gamma: float) -> float:
    """Return the area under the curve of one field's machine on its validation images."""
    try:
        from sklearn.svm import SVC
    except ImportError as error:
        raise MissingExtra("the landmine task trains with scikit-learn: pip install 'surefoot[sklearn]'") from error
    X, y, held, truth = _images(field)
    machine = SVC(C=C, gamma=gamma, kernel="rbf", cache_size=20).fit(X, y)
    return curve(machine.decision_function(held), truth)


def curve(scores: ArrayLike, truth: ArrayLike) -> float:
    """Return the area under the receiver operating characteristic: how often a positive is scored above a negative.

    >>> curve([0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1])
    0.75
    """
    positive = np.asarray(truth, dtype=bool)
    ranks = rankdata(np.asarray(scores))
    P, N = int(positive.sum()), int((~positive).sum())
    return float((ranks[positive].sum() - P * (P + 1) / 2) / (P * N))


@cache
def _images(field: int) -> tuple[Array, NDArray[np.bool_], Array, NDArray[np.bool_]]:
    """Training images and labels, validation images and labels, in the authors' order of their split."""
    table: dict[str, Any] = dict(_table())
    parts: list[Any] = []
    for train in (True, False):
        rows = np.flatnonzero((table["task"] == field) & (table["is_train"] == train))
        rows = rows[np.argsort(table["position_in_split"][rows])]
        parts += [table["X"][rows], table["y"][rows] > 0]
    return parts[0], parts[1], parts[2], parts[3]


@cache
def _table() -> dict[str, NDArray[np.generic]]:
    return datasets.load("landmine")
