"""What an option may be, in the same words everywhere.

Each function but the last returns the value, made a plain number, or raises a ValueError that names the option and
what was given.

>>> whole(0, "epochs", 1)
Traceback (most recent call last):
...
ValueError: epochs must be a whole number from 1 on, got 0
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

__all__ = ["not_negative", "number", "one_of", "open_unit", "positive", "whole"]

T = TypeVar("T")


def whole(value: Any, name: str, least: int = 0) -> int:
    """Return a whole number that is large enough; ``True`` is none.

    >>> whole(np.int64(3), "batch", 1)
    3
    """
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name} must be a whole number from {least} on, got {value!r}")
    return int(value)


def not_negative(value: Any, name: str) -> float:
    """Return a finite number of at least 0.

    >>> not_negative(float("inf"), "margin")
    Traceback (most recent call last):
    ...
    ValueError: margin must be finite and not negative, got inf
    """
    found = number(value)
    if not 0.0 <= found < math.inf:
        raise ValueError(f"{name} must be finite and not negative, got {value!r}")
    return found


def positive(value: Any, name: str) -> float:
    """Return a finite number above 0.

    >>> positive("1", "bandwidth")
    Traceback (most recent call last):
    ...
    ValueError: bandwidth must be positive and finite, got '1'
    """
    found = number(value)
    if not 0.0 < found < math.inf:
        raise ValueError(f"{name} must be positive and finite, got {value!r}")
    return found


def open_unit(value: Any, name: str) -> float:
    """Return a number strictly between 0 and 1.

    >>> open_unit(1.0, "confidence")
    Traceback (most recent call last):
    ...
    ValueError: confidence must lie strictly between 0 and 1, got 1.0
    """
    found = number(value)
    if not 0.0 < found < 1.0:
        raise ValueError(f"{name} must lie strictly between 0 and 1, got {value!r}")
    return found


def one_of(value: T, name: str, choices: Sequence[Any]) -> T:
    """Return a word, or None, that is one of the choices.

    >>> one_of("best", "goal", ["maximize", "level", None])
    Traceback (most recent call last):
    ...
    ValueError: goal must be 'maximize', 'level' or None, got 'best'
    """
    if not (value is None or isinstance(value, str)) or value not in choices:
        *others, last = map(repr, choices)
        raise ValueError(f"{name} must be {', '.join(others)} or {last}, got {value!r}")
    return value


def number(value: Any) -> float:
    """Return a number as a float, and NaN, which no condition admits, for anything else; ``True`` is none.

    >>> number(np.int64(3)), number("3")
    (3.0, nan)
    """
    array = np.asarray(value)
    return float(array) if array.ndim == 0 and array.dtype.kind in "iuf" else math.nan
