"""What an option may be, in the same words everywhere.

Each function but the last returns the value, made a plain number, or raises a ValueError that names the option and
what was given.

>>> whole(0, "epochs", 1)
Traceback (most recent call last):
...
ValueError: epochs must be a whole number from 1 on, got 0
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

__all__ = ["near", "not_negative", "number", "one_of", "open_unit", "positive", "whole"]

T = TypeVar("T")


SAME = {
    "acquisition": "policy",
    "bounds": "domain",
    "func": "objective",
    "max_evals": "budget",
    "max_trials": "budget",
    "n_calls": "budget",
    "n_iter": "budget",
    "n_jobs": "workers",
    "n_trials": "budget",
    "n_workers": "workers",
    "num_trials": "budget",
    "random_seed": "seed",
    "random_state": "seed",
    "sampler": "policy",
    "space": "domain",
    "storage": "journal",
    "timeout_seconds": "timeout",
    "trials": "budget",
}
"""What other libraries call the same thing."""


def near(name: str, known: Sequence[str]) -> str:
    """Return a hint at the known name that is meant, to be put behind a sentence; empty where there is none.

    >>> near("n_jobs", ["seed", "workers"]), near("sede", ["seed"]), near("x", ["seed"])
    ("; did you mean 'workers'?", "; did you mean 'seed'?", '')
    """
    same = [SAME[name]] if SAME.get(name) in known else difflib.get_close_matches(name, known, n=1)
    return f"; did you mean {same[0]!r}?" if same else ""


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
