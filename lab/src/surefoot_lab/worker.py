"""One process of the runner: repetitions in, traces out, one JSON line each.

The runner starts ``python -m surefoot_lab.worker`` with one BLAS thread. The first line says which experiment, every
further line is the number of a repetition. Prints of an experiment go to the error stream; only answers go to the
output. When the input closes because the runner is gone, the process ends at once, whatever it was computing.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import sys
import threading
import traceback
from pathlib import Path
from typing import Any

from surefoot.errors import MissingData, MissingExtra
from surefoot_lab.registry import Experiment, Replicate, find

__all__ = ["attempt"]


def attempt(experiment: Experiment, replicate: Replicate) -> dict[str, Any]:
    """Run one repetition and return its traces, or its error, as JSON-able data.

    >>> from surefoot_lab.registry import Budget, Data
    >>> broken = Experiment("example/broken", lambda replicate: 1 / 0, "", Data(), Budget(1), Budget(1))
    >>> attempt(broken, Replicate(7))["error"]
    'ZeroDivisionError: division by zero'
    """
    try:
        traces = experiment.run(replicate)
        if not traces:
            raise ValueError("the experiment returned no trace")
        return {"replicate": replicate.index, "traces": {name: trace.to_json() for name, trace in traces.items()}}
    except Exception as error:  # recorded and reported by the runner
        frames = traceback.extract_tb(error.__traceback__)[1:]
        where = [f"{Path(frame.filename).name}:{frame.lineno} in {frame.name}" for frame in frames]
        answer = {"replicate": replicate.index, "error": f"{type(error).__name__}: {error}", "where": where}
        if isinstance(error, MissingData | MissingExtra):  # every repetition would say the same
            answer["missing"] = [type(error).__name__, str(error)]
        return answer


def main() -> None:
    """Serve repetitions until the input closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the runner decides when to end
    answers = os.fdopen(os.dup(1), "w", buffering=1, encoding="utf-8")
    os.dup2(2, 1)
    task = json.loads(sys.stdin.readline())
    experiment = find(task["id"], task["module"])
    jobs: queue.SimpleQueue[int] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(jobs,), daemon=True).start()
    while True:
        answer = attempt(experiment, Replicate(jobs.get(), task["root"], task["settings"], task["out"]))
        answers.write(json.dumps(answer, allow_nan=False) + "\n")


def _listen(jobs: queue.SimpleQueue[int]) -> None:
    for line in sys.stdin:
        jobs.put(int(line))
    os._exit(0)


if __name__ == "__main__":
    main()
