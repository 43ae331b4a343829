"""Which way is better: the other sign of whatever holds values of the objective.

Rules only maximize. A policy with ``direction="minimize"`` maximizes −f: what it is told changes its sign where it
comes in, options that hold values (a threshold, a prior mean, earlier tasks) when the policy is made, and its answer on
the way out. Events, the journal, ``history`` and ``recommend()`` speak of f itself.

>>> turned(2.0), turned((0.0, 1.0)), turned(None)
(-2.0, (-1.0, -0.0), None)
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

__all__ = ["DIRECTIONS", "turned", "turned_event", "turned_words"]

DIRECTIONS = ("maximize", "minimize")
"""The two directions; the first is that of every policy that says nothing else."""

_OPPOSITES = {
    one: other
    for pair in (("highest", "lowest"), ("above", "below"), ("lower", "upper"), ("maximum", "minimum"))
    for one, other in (pair, pair[::-1])
}


def turned(value: Any) -> Any:
    """Return a value, or what holds values, as it is of −f; twice gives the first again.

    Numbers change their sign, a range of two numbers its ends, a sequence each of its items; anything else has
    ``negated()``, or no value to turn.

    >>> from surefoot import GP, Outcome
    >>> turned(GP(mean=2.0)).mean, turned(Outcome(1.0)).value, turned("prior")
    (-2.0, -1.0, 'prior')
    """
    if isinstance(value, (bool, str)):
        return value
    if isinstance(value, (int, float, np.integer, np.floating)):
        return -value
    if hasattr(value, "negated"):
        return value.negated()
    if isinstance(value, (list, tuple, np.ndarray)):
        items = [turned(item) for item in value]
        span = len(items) == 2 and all(isinstance(item, (int, float, np.floating)) for item in items)
        return tuple(items[::-1] if span else items)
    return value


def turned_event(event: Mapping[str, Any]) -> dict[str, Any]:
    """Return an event as that of the same run on −f: the values that were told or reported change their sign.

    >>> turned_event({"event": "told", "id": 0, "value": -2.0, "noise": 0.1})
    {'event': 'told', 'id': 0, 'value': 2.0, 'noise': 0.1}
    """
    if event.get("event") not in ("told", "reported"):
        return dict(event)
    changed: dict[str, Any] = {"value": turned(event["value"])}
    if "values" in event:
        changed["values"] = [turned(value) for value in event["values"]]
    return {**event, **changed}


def turned_words(rule: str) -> str:
    """Return a rule in the words of someone who minimizes.

    >>> turned_words("highest posterior mean among measured points")
    'lowest posterior mean among measured points'
    """
    return re.sub(rf"\b({'|'.join(_OPPOSITES)})\b", lambda word: _OPPOSITES[word[0]], rule)
