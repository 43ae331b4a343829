"""The process a problem or a method lives in: JSON lines in, JSON lines out.

``python -P worker.py problems`` or ``python -P worker.py methods``, in an environment that need not know the
laboratory: the file beside this one is loaded by its path. What libraries print goes to the error stream.

========================================================  ==========================================================
a problem is told                                         and answers
========================================================  ==========================================================
``{"problem": name}``                                     ``{"axes": [...], "best": number, "version": text}``
``{"x": [...]}``                                          ``{"value": number}``
========================================================  ==========================================================

========================================================  ==========================================================
a method is told                                          and answers
========================================================  ==========================================================
``{"method", "axes", "seed", "X", "y"}``                  ``{"version": text}``
``{"ask": true}``                                         ``{"x": [...], "seconds": processor time since the tell}``
``{"x": [...], "value": number}``                         ``{}``
========================================================  ==========================================================

An error is answered with ``{"error": text}``. When the input closes, the process ends.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

__all__ = ["beside"]

Answer = Callable[[dict[str, Any]], dict[str, Any]]


def beside(name: str) -> ModuleType:
    """Load the file of that name beside this one, without the package around it.

    >>> beside("problems").floor("bbob/f1/d2/i1")
    1e-08
    """
    spec = importlib.util.spec_from_file_location(f"suite_{name}", Path(__file__).with_name(f"{name}.py"))
    if spec is None or spec.loader is None:
        raise ImportError(f"no file {name}.py beside {__file__}")
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def problems() -> Answer:
    """Return what answers for problems, one at a time."""
    module, state = beside("problems"), {}

    def answer(said: dict[str, Any]) -> dict[str, Any]:
        if "problem" in said:
            state["here"] = here = module.landscape(said["problem"])
            return {"axes": here.axes, "best": here.best}
        return {"value": state["here"].value(said["x"])}

    return answer


def methods() -> Answer:
    """Return what answers for methods, one run at a time."""
    module, state = beside("methods"), {}
    spent = 0.0

    def answer(said: dict[str, Any]) -> dict[str, Any]:
        nonlocal spent
        begin = time.process_time()
        if "method" in said:
            kind = module.METHODS[said["method"]]
            state["here"] = kind(said["axes"], said["seed"], said["X"], said["y"])
            spent = 0.0
            return {"version": kind.version()}
        if "ask" in said:
            x = state["here"].ask()
            return {"x": x, "seconds": round(spent + time.process_time() - begin, 4)}
        state["here"].tell(said["x"], said["value"])
        spent = time.process_time() - begin
        return {}

    return answer


def main() -> None:
    """Serve until the input closes."""
    answers = os.fdopen(os.dup(1), "w", buffering=1, encoding="utf-8")
    os.dup2(2, 1)
    respond = {"problems": problems, "methods": methods}[sys.argv[1]]()
    for line in sys.stdin:
        try:
            said = respond(json.loads(line))
        except Exception as error:  # the other side decides what to do
            traceback.print_exc()
            said = {"error": f"{type(error).__name__}: {error}"}
        answers.write(json.dumps(said) + "\n")


if __name__ == "__main__":
    main()
