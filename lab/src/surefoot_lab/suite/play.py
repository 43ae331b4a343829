"""One method on one problem, each in its process, every measurement written down.

Processes start when they are first needed and serve one run after the other; one that fails or does not answer in time
is replaced.
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
import warnings
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import qmc

from surefoot_lab.suite import record
from surefoot_lab.suite.problems import OWN, Axis, instance, problem

__all__ = ["Helper", "design", "interpreter"]

WORKER = Path(__file__).with_name("worker.py")
ONE_THREAD = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL", "NUMEXPR")}
OURS = ("surefoot", "surefoot-0.1", "random")  # they need no environment of their own
PATIENCE = 600.0  # seconds for one answer
MOST_GIVEN = 20  # measurements made before


class Helper:
    """A process that answers JSON lines: ``worker.py`` with one role, in one environment."""

    def __init__(self, python: str, role: str, *, alone: bool = True, patience: float = PATIENCE) -> None:
        self.patience = patience
        environment = os.environ | ONE_THREAD
        if alone:  # nothing of ours is importable there
            environment.pop("PYTHONPATH", None)
        self.process = subprocess.Popen(
            [python, "-P", str(WORKER), role],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            encoding="utf-8",
            env=environment,
        )
        self.lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put(None)

    def say(self, **message: Any) -> dict[str, Any]:
        """Send one line and return the answer; an error, silence or the end of the process raises."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(message) + "\n")
            self.process.stdin.flush()
            line = self.lines.get(timeout=self.patience)
        except queue.Empty:
            raise RuntimeError(f"no answer within {self.patience:g} seconds") from None
        except (OSError, ValueError) as error:  # the pipe is broken, or closed
            raise RuntimeError(f"the process is gone: {error}") from None
        if line is None:
            raise RuntimeError("the process ended")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer

    def close(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.communicate()


def design(axes: list[Axis], name: str) -> list[list[float]]:
    """Return the measurements made before: max(3, d + 1) scrambled Sobol points, at most 20.

    >>> axes = [{"name": "x", "kind": "float", "low": 0.0, "high": 1.0}, {"name": "k", "kind": "choice", "size": 3}]
    >>> points = design(axes, "bbob/f1/d2/i1")
    >>> len(points), all(k in (0, 1, 2) for _, k in points)
    (3, True)
    """
    d = len(axes)
    size = min(max(3, d + 1), MOST_GIVEN)
    rng = np.random.default_rng([zlib.crc32(problem(name).encode()), instance(name)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # not a power of two
        unit = qmc.Sobol(d, rng=rng).random(size)
    return [[_place(axis, float(u)) for axis, u in zip(axes, row, strict=True)] for row in unit]


def _place(axis: Axis, u: float) -> float:
    if axis["kind"] == "choice":
        return min(int(u * axis["size"]), axis["size"] - 1)
    low, high = axis["low"], axis["high"]
    first, last = (low, high) if axis["kind"] == "float" else (low - 0.5, high + 0.5)
    if axis.get("log"):
        value = float(first * (last / first) ** u)
    else:
        value = first + u * (last - first)
    return min(max(value, low), high) if axis["kind"] == "float" else int(min(max(round(value), low), high))


def play(landscape: Helper, library: Helper, name: str, method: str, budget: int, folder: Path) -> None:
    """Run one method on one problem and write the lines of it."""
    with record.writing(folder, name, method) as file:

        def write(**line: Any) -> None:
            file.write(json.dumps(line) + "\n")
            file.flush()

        about = landscape.say(problem=name)
        X = design(about["axes"], name)[:budget]
        y = [landscape.say(x=x)["value"] for x in X]
        begun = library.say(method=method, axes=about["axes"], seed=instance(name), X=X, y=y)
        head = {"problem": name, "method": method, "version": begun["version"], "seed": instance(name)}
        write(**head, budget=budget, given=len(X), best=about["best"])
        for x, value in zip(X, y, strict=True):
            write(x=x, value=value, seconds=None)
        for _ in range(budget - len(X)):
            asked = library.say(ask=True)
            value = landscape.say(x=asked["x"])["value"]
            write(x=asked["x"], value=value, seconds=asked["seconds"])
            library.say(x=asked["x"], value=value)


def interpreter(environments: Path | None, name: str) -> str:
    """Return the interpreter of a method, or of the problems; our own where it needs no other.

    >>> interpreter(None, "random") == sys.executable
    True
    """
    made = environments / name / "bin" / "python" if environments else None
    if made and made.exists():
        return str(made)
    if name in OURS or environments is None:
        return sys.executable
    raise FileNotFoundError(f"no environment for {name}: `python benchmarks/suite.py install {environments} {name}`")


def play_all(
    names: Iterable[str],
    methods: Iterable[str],
    folder: Path,
    *,
    environments: Path | None = None,
    budget: int = 100,
    say: Callable[[str], None] = lambda text: None,
) -> int:
    """Run what is missing, method by method, and return how many runs were made."""
    names, made = list(names), 0
    helpers: dict[str, Helper] = {}

    def helper(key: str, role: str, alone: bool) -> Helper:
        if key not in helpers:
            python = sys.executable if key == "lab" else interpreter(environments, key)
            helpers[key] = Helper(python, role, alone=alone)
        return helpers[key]

    try:
        for method in methods:
            for name in names:
                if record.is_done(folder, name, method, budget):
                    continue
                where = "lab" if name.partition("/")[0] in OWN else "problems"
                try:
                    library = helper(method, "methods", method not in OURS)
                    play(helper(where, "problems", where != "lab"), library, name, method, budget, folder)
                    made += 1
                    say(f"{method} {name}")
                except (RuntimeError, ValueError) as error:
                    say(f"{method} {name} failed: {error}")
                    for key in (method, where):
                        if key in helpers:
                            helpers.pop(key).close()
            if method in helpers:
                helpers.pop(method).close()
    finally:
        for left in helpers.values():
            left.close()
    return made
