"""Events as JSON: what a journal line says, and the objects it stands for.

>>> outcome_fields(Outcome(1.5, cost=2.0))
{'value': 1.5, 'cost': 2.0}
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot.domain import Domain
from surefoot.loop.types import Outcome, Query

__all__ = ["as_outcome", "asked", "outcome_fields", "outcome_from", "query_from", "stops_of", "timeless"]


def as_outcome(value: Any, stops: int | None = None) -> Outcome:
    """Return what a caller told as an outcome: a number, an outcome, or None / NaN for a failed run.

    For a move of ``stops`` stops it is a sequence of so many numbers, None or NaN for a missed one.

    >>> as_outcome(np.float32(0.5)).value, as_outcome(None).failed
    (0.5, True)
    >>> as_outcome([1.0, float("nan")], stops=2).values
    (1.0, None)
    """
    if stops is not None:
        return _of_move(value, stops)
    if isinstance(value, Outcome):
        if value.values is not None:
            raise TypeError(f"{len(value.values)} values were told for one point")
        return value
    if value is None:
        return Outcome(None)
    array = np.asarray(value)
    if array.size != 1 or array.dtype.kind not in "fiub":
        raise TypeError(f"a value must be a number, an Outcome, or None for a failed run; got {value!r}")
    return Outcome(float(array.reshape(())))


def stops_of(x: NDArray[np.float64]) -> int | None:
    """Return how many values are told for a point or a move: None for the one of a point.

    >>> stops_of(np.zeros(2)), stops_of(np.zeros((3, 2)))
    (None, 3)
    """
    return len(x) if x.ndim == 2 else None


def _of_move(value: Any, stops: int) -> Outcome:
    """The outcome of a move; one that failed as a whole missed all its stops."""
    given = value if isinstance(value, Outcome) else Outcome()
    told: Any = value
    if isinstance(value, Outcome):
        told = value.value if value.values is None else value.values
    if told is None or (isinstance(told, (float, np.floating)) and np.isnan(told)):
        told = [None] * stops
    elif np.ndim(told) == 0 and not isinstance(told, str):
        told = [told]
    if isinstance(told, str) or np.ndim(told) != 1 or any(isinstance(one, str) for one in told):
        raise TypeError(f"a move of {stops} stops is told {stops} numbers, None for a missed one; got {value!r}")
    if len(told) != stops:
        raise ValueError(f"a move of {stops} stops is told {stops} values, got {len(told)}: {value!r}")
    return replace(given, value=None, values=list(told))


def outcome_fields(outcome: Outcome, by: str | None = None) -> dict[str, Any]:
    """Return the fields of a told event, with who measured it where that is known.

    >>> outcome_fields(Outcome(None))
    {'value': None}
    """
    values = None if outcome.values is None else list(outcome.values)
    optional = {"values": values, "noise": outcome.noise, "cost": outcome.cost, "time": outcome.time, "by": by}
    return {"value": outcome.value, **{key: value for key, value in optional.items() if value is not None}}


def outcome_from(event: Mapping[str, Any]) -> Outcome:
    """Return the outcome of a told event.

    >>> outcome_from({"event": "told", "id": 0, "value": 1.0, "values": [1.0, None]}).values
    (1.0, None)
    """
    values = event.get("values")
    single = event["value"] if values is None else None
    return Outcome(single, event.get("noise"), event.get("cost"), event.get("time"), values)


def asked(query: Query) -> dict[str, Any]:
    """Return the event of a query.

    >>> asked(Query(0, np.array([0.5]), note={"initial": True}))
    {'event': 'asked', 'id': 0, 'x': [0.5], 'note': {'initial': True}}
    """
    optional = {"index": query.index, "fidelity": query.fidelity, "time": query.time, "cost": query.cost}
    event = {"event": "asked", "id": query.id, "x": query.x.tolist()}
    event.update({key: value for key, value in optional.items() if value is not None})
    return {**event, "note": dict(query.note)} if query.note else event


def query_from(event: Mapping[str, Any], domain: Domain) -> Query:
    """Return the query of an asked event.

    >>> from surefoot.domain import Box
    >>> query_from({"event": "asked", "id": 4, "x": [0.5]}, Box([(0.0, 1.0)])).id
    4
    """
    index = event.get("index")
    x = domain.validate(event["x"]) if index is None else domain.points[index]  # type: ignore[attr-defined]
    return Query(
        id=event["id"],
        x=x,
        index=index,
        params=domain.params(x),
        fidelity=event.get("fidelity"),
        time=event.get("time"),
        cost=event.get("cost"),
        note=event.get("note", {}),
    )


def timeless(events: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return events without the times at which they were written: what equal runs have in common.

    >>> timeless([{"event": "cancelled", "id": 0, "at": 1794916800.0}])
    [{'event': 'cancelled', 'id': 0}]
    """
    return [{key: value for key, value in event.items() if key != "at"} for event in events]
