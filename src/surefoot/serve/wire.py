"""Queries, outcomes and answers as JSON; and back.

>>> outcome_in({"value": 2.0, "cost": 1.0})
Outcome(value=2.0, noise=None, cost=1.0, time=None, values=None)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from surefoot.loop.types import Advice, LevelSet, Outcome, Query, Recommendation

__all__ = [
    "advice_out",
    "answer_in",
    "answer_out",
    "oriented",
    "outcome_in",
    "plain",
    "query_in",
    "query_out",
]


def query_out(query: Query) -> dict[str, Any]:
    """Return a query as JSON.

    >>> query_out(Query(0, np.array([0.5])))["x"]
    [0.5]
    """
    return {
        "id": query.id,
        "x": query.x.tolist(),
        "index": query.index,
        "params": query.params,
        "fidelity": query.fidelity,
        "time": query.time,
        "cost": query.cost,
        "note": dict(query.note),
    }


def query_in(data: Mapping[str, Any]) -> Query:
    """Return the query again.

    >>> query_in(query_out(Query(0, np.array([0.5]), note={"initial": True}))).note["initial"]
    True
    """
    return Query(**{**data, "x": np.array(data["x"], dtype=np.float64)})


def oriented(value: float | None, direction: str) -> float | None:
    """Return a value as the list of studies keeps the best one, higher is better; or the other way round.

    >>> oriented(2.0, "minimize"), oriented(None, "minimize")
    (-2.0, None)
    """
    return value if value is None or direction == "maximize" else 0.0 - value  # no negative zero


def outcome_in(told: Mapping[str, Any]) -> Outcome:
    """Return the outcome of a told value, which may be null for a failed run, or a list for the stops of a move.

    >>> outcome_in({"value": [1.0, None]}).values
    (1.0, None)
    """
    value = None if told.get("failed") else told.get("value")
    rest = {name: told.get(name) for name in ("noise", "cost", "time")}
    return Outcome(values=value, **rest) if isinstance(value, list) else Outcome(value, **rest)


def answer_out(answer: Recommendation | LevelSet) -> dict[str, Any]:
    """Return a recommendation, or a level set, as JSON.

    >>> answer_out(Recommendation(np.array([0.5]), mean=1.0, rule="best"))["mean"]
    1.0
    """
    kind = "level set" if isinstance(answer, LevelSet) else "point"
    fields = {name: getattr(answer, name) for name in answer.__dataclass_fields__}
    return {"kind": kind, **{name: plain(value) for name, value in fields.items()}}


def answer_in(data: Mapping[str, Any]) -> Recommendation | LevelSet:
    """Return the recommendation, or the level set, again.

    >>> answer_in(answer_out(Recommendation(np.array([0.5]), mean=1.0))).mean
    1.0
    """
    fields = {name: value for name, value in data.items() if name != "kind"}
    if data["kind"] == "point":
        return Recommendation(**{**fields, "x": np.array(fields["x"], dtype=np.float64)})
    for name, kind in (("above", bool), ("below", bool), ("undecided", bool), ("predicted", bool), ("points", float)):
        fields[name] = None if fields[name] is None else np.array(fields[name], dtype=kind)
    return LevelSet(**fields)


def advice_out(advice: Advice) -> dict[str, Any]:
    """Return advice as JSON.

    >>> advice_out(Advice(stop=True, reason="hopeless"))["stop"]
    True
    """
    return {name: plain(value) for name, value in asdict(advice).items()}


def plain(value: Any) -> Any:
    """Return arrays as lists, NumPy's numbers as Python's, and null for what strict JSON does not have.

    >>> plain({"mean": np.array([1.0, np.nan])})
    {'mean': [1.0, None]}
    """
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value
