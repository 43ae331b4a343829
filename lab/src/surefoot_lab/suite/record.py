"""Raw lines, one file per run, and the curves that are kept of them.

The first line of a file says what was run, every further line is one measurement. While a run lasts its file ends in
``.part``; one that was interrupted is begun anew. A run that failed leaves a file ``.failed`` with the reason.

>>> import tempfile
>>> folder = Path(tempfile.mkdtemp())
>>> with writing(folder, "bbob/f1/d2/i1", "cma") as file:
...     head = {"problem": "bbob/f1/d2/i1", "method": "cma", "version": "4.5", "budget": 2, "given": 1, "best": 1.0}
...     for line in (head, {"x": [0.5], "value": 3.0, "seconds": None}, {"x": [0.25], "value": 1.5, "seconds": 0.01}):
...         _ = file.write(json.dumps(line) + "\\n")
>>> is_done(folder, "bbob/f1/d2/i1", "cma", 2)
True
>>> save(stored(folder), folder / "curves.jsonl")
>>> load(folder / "curves.jsonl")[0].regrets.tolist()
[2.0, 0.5]
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

__all__ = ["Run", "path_of"]


@dataclass(frozen=True)
class Run:
    """One method on one instance of a problem: the regret of the best point after each measurement."""

    name: str  # of problem and instance
    method: str
    version: str
    given: int  # measurements made before, the same for all methods
    regrets: NDArray[np.float64]
    seconds: float  # processor time per ask, mean


def path_of(folder: Path, name: str, method: str) -> Path:
    """Return where the lines of a run are.

    >>> path_of(Path("runs"), "bbob/f1/d2/i1", "cma").as_posix()
    'runs/cma/bbob-f1-d2-i1.jsonl'
    """
    return folder / method / (name.replace("/", "-") + ".jsonl")


def is_done(folder: Path, name: str, method: str, budget: int) -> bool:
    """Whether the run is there, with that many measurements."""
    path = path_of(folder, name, method)
    if not path.exists():
        return False
    with path.open(encoding="utf-8") as file:
        return json.loads(next(file))["budget"] == budget and sum(1 for _ in file) == budget


@contextmanager
def writing(folder: Path, name: str, method: str) -> Iterator[TextIO]:
    """Open the file of a run; it gets its name when the run is whole, and a reason beside it when it failed."""
    path = path_of(folder, name, method)
    path.parent.mkdir(parents=True, exist_ok=True)
    part, failed = path.with_suffix(".part"), path.with_suffix(".failed")
    try:
        with part.open("w", encoding="utf-8") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
    except Exception as error:
        failed.write_text(f"{type(error).__name__}: {error}\n", encoding="utf-8")
        raise
    part.replace(path)
    failed.unlink(missing_ok=True)


def failures(folder: Path) -> dict[str, str]:
    """Return the reasons of the runs that failed, by method and problem."""
    return {
        f"{path.parent.name}/{path.stem}": path.read_text(encoding="utf-8").strip()
        for path in sorted(folder.glob("*/*.failed"))
    }


def read(path: Path) -> Run:
    """Return one run from its raw lines."""
    with path.open(encoding="utf-8") as file:
        head = json.loads(next(file))
        rows = [json.loads(line) for line in file]
    regrets = np.minimum.accumulate([row["value"] for row in rows]) - head["best"]
    seconds = [row["seconds"] for row in rows if row["seconds"] is not None]
    mean = float(np.mean(seconds)) if seconds else 0.0
    return Run(head["problem"], head["method"], head["version"], head["given"], np.maximum(regrets, 0.0), mean)


def stored(folder: Path) -> list[Run]:
    """Return all runs that are whole."""
    return [read(path) for path in sorted(folder.glob("*/*.jsonl"))]


def save(runs: Iterable[Run], path: Path) -> None:
    """Keep the curves: one line per run, and in it only the measurements that were better than all before."""
    lines = []
    for run in sorted(runs, key=lambda run: (run.method, run.name)):
        regrets = run.regrets
        steps = [k for k in range(len(regrets)) if k == 0 or regrets[k] < regrets[k - 1]]
        kept: dict[str, Any] = {
            "problem": run.name,
            "method": run.method,
            "version": run.version,
            "given": run.given,
            "measurements": len(regrets),
            "seconds": round(run.seconds, 4),
            "better": [[k + 1, float(f"{regrets[k]:.4g}")] for k in steps],
        }
        lines.append(json.dumps(kept, separators=(",", ":")))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def load(path: Path) -> list[Run]:
    """Return the runs of a file that :func:`save` wrote."""
    runs = []
    for line in path.read_text(encoding="utf-8").splitlines():
        kept = json.loads(line)
        steps = np.array(kept["better"])
        ends = np.append(steps[1:, 0], kept["measurements"] + 1)
        regrets = np.repeat(steps[:, 1], (ends - steps[:, 0]).astype(int))
        run = Run(kept["problem"], kept["method"], kept["version"], kept["given"], regrets, kept["seconds"])
        runs.append(run)
    return runs
