"""What the page of a study draws, as numbers: trials, best so far, slices and map of the belief, parallel coordinates.

>>> import surefoot
>>> policy = surefoot.GPUCB(surefoot.Box([(0.0, 1.0), (0.0, 1.0)]), direction="minimize", seed=0)
>>> for value in (3.0, 1.0, 2.0):
...     policy.tell(policy.ask(), value)
>>> shown = view(policy)
>>> shown["best"]["value"], len(shown["slices"]), shown["map"]["axes"]
([3.0, 1.0, 1.0], 2, [0, 1])
"""

from __future__ import annotations

from typing import Any

import numpy as np

from surefoot.loop.policy import Policy
from surefoot.report.plots import influence
from surefoot.report.run import Run, best_so_far
from surefoot.report.view import Coordinate, RunView, few
from surefoot.serve.wire import answer_out, plain

__all__ = ["view"]

_SLICES, _GRID, _MAP, _LINES, _POINTS = 12, 61, 33, 300, 2000


def view(policy: Policy, *, trials: int = 500) -> dict[str, Any]:
    """Return what can be drawn of a policy; the newest ``trials`` of its runs.

    >>> from surefoot import Box, RandomSearch
    >>> view(RandomSearch(Box([(0.0, 1.0)]), seed=0))["recommendation"] is None
    True
    """
    seen = RunView(policy)
    told = [row for row in seen.rows if row.status in ("measured", "failed")]
    best = best_so_far(told, direction=seen.direction)
    shown = np.unique(np.linspace(0, len(told) - 1, min(len(told), _POINTS)).astype(int)).tolist() if told else []
    drawn = {
        "direction": seen.direction,
        "axes": [_axis(coordinate) for coordinate in seen.coordinates],
        "trials": [_trial(number, row) for number, row in list(enumerate(seen.rows))[-trials:]],
        "total": len(seen.rows),
        "best": {
            "trial": shown,
            "value": [best[i] for i in shown],
            "measured": [told[i].value for i in shown],
        },
        "slices": _slices(seen),
        "map": _map(seen),
        "parallel": _parallel(seen),
        "recommendation": None if seen.answer is None else answer_out(seen.answer),
        "confidence": float(policy.confidence),
    }
    answer: dict[str, Any] = plain(drawn)
    return answer


def _axis(coordinate: Coordinate) -> dict[str, Any]:
    names = ("index", "name", "low", "high", "log", "whole")
    return {**{name: getattr(coordinate, name) for name in names}, "labels": list(coordinate.labels)}


def _trial(number: int, row: Run) -> dict[str, Any]:
    return {
        "number": number,
        "id": row.id,
        "x": row.x,
        "params": row.params,
        "value": row.value,
        "state": row.status,
        "index": row.index,
        "initial": row.initial,
        "steps": [[step, value] for step, value in sorted(row.curve.items())],
        "stopped": row.stopped,
    }


def _band(seen: RunView, points: Any) -> dict[str, Any]:
    """Mean, lower and upper bound at points."""
    mean, std = seen.predict(points)
    return {"mean": mean, "lower": mean - seen.half * std, "upper": mean + seen.half * std}


def _slices(seen: RunView) -> list[dict[str, Any]]:
    """The belief along each axis, the others held at the recommended point."""
    if seen.posterior is None or not len(seen.y):
        return []
    chosen = [c for c in seen.coordinates if c.index in influence(seen)[:_SLICES]]
    grids = [coordinate.grid(_GRID) for coordinate in chosen]
    band = _band(seen, np.concatenate([seen.along(c, grid) for c, grid in zip(chosen, grids, strict=True)]))
    cuts = np.cumsum([len(grid) for grid in grids])[:-1]
    parts = {name: np.split(values, cuts) for name, values in band.items()}
    return [
        {
            "axis": c.index,
            "name": c.name,
            "grid": grid,
            "at": seen.reference[c.index],
            **{name: parts[name][i] for name in band},
        }
        for i, (c, grid) in enumerate(zip(chosen, grids, strict=True))
    ]


def _map(seen: RunView) -> dict[str, Any] | None:
    """The belief over the two axes that matter most, the others held at the recommended point; rows go up."""
    if seen.posterior is None or not len(seen.y):
        return None
    ranked = [i for i in influence(seen) if not seen.coordinate(i).labels]
    if len(ranked) < 2:
        return None
    across, up = (seen.coordinate(i) for i in sorted(ranked[:2]))
    u, v = across.grid(_MAP), up.grid(_MAP)
    points = np.repeat(seen.reference[None], len(u) * len(v), axis=0)
    points[:, across.index], points[:, up.index] = np.tile(u, len(v)), np.repeat(v, len(u))
    band = _band(seen, points)
    shape = (len(v), len(u))
    surfaces = {name: values.reshape(shape) for name, values in band.items()}
    return {"axes": [across.index, up.index], "names": [across.name, up.name], "u": u, "v": v, **surfaces}


def _parallel(seen: RunView) -> dict[str, Any]:
    """Each run as a line over all axes, positions from 0 to 1: the best runs, and an even sample of the others."""
    rows = few(seen.quality, _LINES)
    positions = np.stack([c.unit(seen.X[rows, c.index]) for c in seen.coordinates], axis=1)
    axes = [{**_axis(c), "marks": [[place, text] for place, text in c.ends()]} for c in seen.coordinates]
    return {"axes": axes, "lines": positions, "values": seen.y[rows]}
