"""What scikit-learn's users write as a space, as axes: parameters, distributions of SciPy, lists of any objects.

>>> from scipy.stats import loguniform, randint
>>> space = {"C": loguniform(1e-3, 1e3), "degree": randint(1, 6), "kernel": ["rbf", "poly"], "tol": [1e-4, 1e-3, 1e-2]}
>>> axes = axes_of(space)
>>> axes.domain
Space(C=Float(0.001, 1000.0, log=True), degree=Int(1, 5), kernel=Choice(['rbf', 'poly']), tol=Int(0, 2))
>>> axes.values([1.0, 2.0, 1.0, 0.0])
{'C': 1.0, 'degree': 2, 'kernel': 'poly', 'tol': 0.0001}
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise
from numbers import Real
from typing import Any

import numpy as np

from surefoot.bridge.axes import Axes, Axis, Items, Plain
from surefoot.domain import Float, Int, Space
from surefoot.domain.parameter import Parameter

__all__ = ["axes_of"]


def axes_of(space: Space | Mapping[str, Any]) -> Axes:
    """Return the axes of a space.

    Lists are choices, of any objects; three or more numbers in a list that only rises or only falls are seen in their
    order. Of SciPy's distributions ``uniform``, ``loguniform`` and ``randint`` have a place in a space.

    >>> from scipy.stats import norm
    >>> axes_of({"C": norm(0.0, 1.0)})
    Traceback (most recent call last):
    ...
    ValueError: C: a search needs bounds, which the distribution norm lacks: write surefoot.Float(low, high)
    """
    if isinstance(space, Space):
        return Axes.of(space)
    if not isinstance(space, Mapping):
        raise TypeError(f"a space is a surefoot.Space or a dict, got {space!r}")
    return Axes({name: _axis(name, values) for name, values in space.items()})


def _axis(name: str, values: Any) -> Axis:
    try:
        if isinstance(values, Parameter):
            return Plain(values)
        if hasattr(values, "rvs"):
            return Plain(_distribution(values))
        if isinstance(values, (str, bytes)) or not hasattr(values, "__iter__"):
            raise ValueError(f"must be a parameter, a distribution or a list of values, got {values!r}")
        items = list(values)
        return Items(items, ordered=_in_order(items))
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def _distribution(frozen: Any) -> Parameter:
    """The axis on which a frozen distribution of SciPy is even."""
    kind = getattr(getattr(frozen, "dist", None), "name", type(frozen).__name__)
    if kind not in ("uniform", "loguniform", "reciprocal", "randint"):
        raise ValueError(f"a search needs bounds, which the distribution {kind} lacks: write surefoot.Float(low, high)")
    low, high = (float(end) for end in frozen.support())
    if kind == "randint":
        return Int(int(low), int(high))
    if kind == "uniform":
        return Float(low, high)
    if not math.isclose(float(frozen.median()), math.sqrt(low * high), rel_tol=1e-9):
        raise ValueError("a shifted loguniform is even on no axis: write surefoot.Float(low, high, log=True)")
    return Float(low, high, log=True)


def _in_order(items: list[Any]) -> bool:
    """Whether these are numbers that only rise or only fall."""
    if len(items) < 3 or any(isinstance(v, (bool, np.bool_)) or not isinstance(v, Real) for v in items):
        return False
    steps = [b - a for a, b in pairwise(items)]
    return all(step > 0 for step in steps) or all(step < 0 for step in steps)
