"""The runner: pairing, processes, budget, resume, progress and verdicts.

Repetition r of an experiment draws everything from ``SeedSequence(root, spawn_key=(r,))``: the same results whatever
the number of processes, and more repetitions can be added at any time. Each process has one BLAS thread (two are
slower below about 400 observations, and several processes would fight for the cores).

Results are saved while the experiment runs; ending the runner at any moment leaves a readable ``results.json``. At
the time limit, running repetitions are abandoned (a later ``resume`` takes them up again), and no repetition is
started that would not finish at the median pace so far, so that few are. A repetition that raises is recorded under
``failures``, reported, and tried again by the next ``resume``. If the first ones raise because data or an extra are
missing, no more are started, and the runner raises the same.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import queue
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

from surefoot.errors import MissingData, MissingExtra
from surefoot.loop.journal import write_atomically
from surefoot_lab import datasets
from surefoot_lab.plots import draw
from surefoot_lab.registry import Experiment, Replicate, Trace
from surefoot_lab.results import FILE, Failure, Results, markdown
from surefoot_lab.worker import attempt

__all__ = ["default_workers", "run"]

_LOG = logging.getLogger("surefoot_lab.runner")
Progress = Callable[[int, int], None]
_ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"), "1"
)


def default_workers() -> int:
    """Return the number of cores this process may use.

    >>> default_workers() >= 1
    True
    """
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run(
    experiment: Experiment,
    *,
    mode: str = "quick",
    out: str | os.PathLike[str] = "results",
    minutes: float | None = None,
    workers: int | None = None,
    resume: bool = False,
    root: int = 0,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Run an experiment within its budget, judge its claims, and write ``out/id/results.json``, a table and plots.

    Parameters
    ----------
    experiment : Experiment
        What to run.
    mode : str
        "quick" or "full".
    out : path
        Folder of all results; those of this experiment go to ``out/<id>``.
    minutes : float, optional
        Time limit instead of the budget's own.
    workers : int, optional
        Processes; by default one per core. 0 runs in this process, without isolation and with the time limit checked
        between repetitions only.
    resume : bool
        Add to stored results: up to the planned number of repetitions or, when these are done, as many again. Otherwise
        older results are kept as ``results.previous.json``.
    root : int
        Seed of all repetitions.
    progress : callable, optional
        Called with (repetitions done, goal).

    Returns
    -------
    dict
        The content of ``results.json``.

    Raises
    ------
    MissingData, MissingExtra
        The experiment cannot be run here; the message says what to fetch or to install.

    >>> from surefoot_lab.registry import Budget, Data
    >>> def toss(replicate):
    ...     return {"coin": Trace(heads=replicate.rng("coin").integers(2))}
    >>> coin = Experiment("example/coin", toss, "folklore", Data(), Budget(9), Budget(99), own_claims=())
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     [run(coin, out=folder, workers=0, resume=more)["repetitions"] for more in (False, True)]
    [9, 18]
    """
    budget = experiment.budget(mode)
    limit = budget.minutes if minutes is None else float(minutes)
    if not limit > 0:
        raise ValueError(f"minutes must be positive, got {minutes!r}")
    count = default_workers() if workers is None else int(workers)
    if count < 0:
        raise ValueError(f"workers must be 0 or more, got {workers!r}")
    for name in experiment.data.names:
        datasets.locate(name)
    folder = Path(out) / experiment.id
    results = _open(experiment, mode, folder, resume, root)
    tried = len(results.replicates) + len(results.failures)
    goal = budget.repetitions * (tried // budget.repetitions + 1)
    if experiment.limit is not None:
        goal = min(goal, experiment.limit)
    if experiment.data.kind == "unobtainable":
        goal = 0
    results.settings |= {"budget": mode, "planned": goal, "minutes": limit, "stopped": "killed while running"}
    missing = _Session(results, Path(out), goal, min(count, goal), 60 * limit, progress).work()
    data = results.save(folder, workers=count)
    if missing is not None:
        raise missing
    write_atomically(folder / "table.md", markdown(data))
    try:
        draw(results, folder)
    except MissingExtra as error:
        _LOG.info("%s: no plots, %s", experiment.id, error)
    return data


def _open(experiment: Experiment, mode: str, folder: Path, resume: bool, root: int) -> Results:
    stored = folder / FILE
    if stored.exists() and resume:
        results = Results.load(folder, experiment)
        results.check(experiment.budget(mode), root)
        return results
    if stored.exists():
        stored.replace(folder / "results.previous.json")
    return Results.fresh(experiment, mode, root)


class _Session:
    """One call of the runner: hands out repetitions, collects answers, saves now and then."""

    def __init__(
        self, results: Results, out: Path, goal: int, workers: int, seconds: float, progress: Progress | None
    ) -> None:
        self.results, self.goal, self.workers, self.progress = results, goal, workers, progress
        self.out, self.folder = str(out), out / results.experiment.id
        self.todo = deque(index for index in range(goal) if index not in results.replicates)
        self.began = self.next_save = time.monotonic()
        self.deadline = self.began + seconds
        self.paces: list[float] = []
        self.spent = results.seconds
        self.missing: MissingData | MissingExtra | None = None

    def work(self) -> MissingData | MissingExtra | None:
        """Run what is to be run, and return what is missing if nothing can be."""
        self.results.save(self.folder, workers=self.workers)
        if self.progress is not None:
            self.progress(len(self.results.replicates), self.goal)
        try:
            stopped = self._in_processes() if self.workers else self._in_this_process()
        except KeyboardInterrupt:
            self._finish("interrupted")
            self.results.save(self.folder, workers=self.workers)
            raise
        if self.results.replicates or not self.missing:
            self.missing = None
            self._finish(stopped if self.goal else "the data cannot be obtained")
        else:
            self._finish(str(self.missing))
        return self.missing

    def _finish(self, stopped: str) -> None:
        self.results.settings["stopped"] = stopped
        self.results.seconds = self.spent + time.monotonic() - self.began

    def _next(self) -> int | None:
        """The next repetition, unless it would not finish in time."""
        pace = statistics.median(self.paces) if self.paces else 0.0
        if not self.todo or time.monotonic() + pace >= self.deadline:
            return None
        return self.todo.popleft()

    def _in_this_process(self) -> str:
        results = self.results
        while (index := self._next()) is not None:
            start = time.monotonic()
            replicate = Replicate(index, results.settings["seed"], results.settings["parameters"], self.out)
            self._take(attempt(results.experiment, replicate), time.monotonic() - start)
        return "complete" if not self.todo else "time limit"

    def _in_processes(self) -> str:
        answers: queue.SimpleQueue[tuple[_Worker, str]] = queue.SimpleQueue()
        busy: set[_Worker] = set()
        abandoned = 0
        try:
            while True:
                while len(busy) < self.workers and (index := self._next()) is not None:
                    busy.add(_Worker(self.results, self.out, answers, index))
                if not busy:
                    break
                try:
                    worker, line = answers.get(timeout=max(0.0, self.deadline - time.monotonic()))
                except queue.Empty:
                    abandoned = len(busy)
                    break
                if worker not in busy:  # its output closed because we ended it
                    continue
                alive = line.endswith("\n")
                answer = json.loads(line) if alive else {"replicate": worker.index, "error": worker.obituary()}
                self._take(answer, time.monotonic() - worker.since)
                following = self._next() if alive else None
                if following is None:
                    worker.end()
                    busy.discard(worker)
                else:
                    worker.start(following)
        finally:
            for worker in busy:
                worker.end()
        return "complete" if not self.todo and not abandoned else "time limit"

    def _take(self, answer: dict[str, Any], seconds: float) -> None:
        index, results = answer["replicate"], self.results
        self.paces.append(seconds)
        if "missing" in answer and not results.replicates:
            kind, words = answer["missing"]
            self.missing = MissingData(words) if kind == "MissingData" else MissingExtra(words)
            self.todo.clear()
        elif "error" in answer:
            results.failures[index] = Failure(answer["error"], tuple(answer.get("where", ())))
        else:
            results.replicates[index] = {name: Trace.from_json(trace) for name, trace in answer["traces"].items()}
            results.failures.pop(index, None)
        if self.progress is not None:
            self.progress(len(results.replicates), self.goal)
        start = time.monotonic()
        if start >= self.next_save:
            results.seconds = self.spent + start - self.began
            results.save(self.folder, workers=self.workers)
            # Judging and writing take at most a tenth of the time.
            self.next_save = time.monotonic() + max(1.0, 10 * (time.monotonic() - start))


class _Worker:
    """A process, the repetition it is busy with, and a thread that passes its answers on."""

    def __init__(self, results: Results, out: str, answers: queue.SimpleQueue[tuple[_Worker, str]], index: int) -> None:
        module = results.experiment.run.__module__
        if module == "__main__":
            raise ValueError(
                f"{results.experiment.id} is defined in a script; run it with workers=0, or move it to a module"
            )
        self.errors = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process
        self.process = subprocess.Popen(
            [sys.executable, "-m", "surefoot_lab.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            env={**os.environ, **_ONE_THREAD, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            text=True,
            encoding="utf-8",
            bufsize=1,
        )
        task = {"id": results.experiment.id, "module": module, "out": out}
        task |= {"root": results.settings["seed"], "settings": results.settings["parameters"]}
        self._send(json.dumps(task))
        self.start(index)
        threading.Thread(target=self._listen, args=(answers,), daemon=True).start()

    def start(self, index: int) -> None:
        self.index, self.since = index, time.monotonic()
        self._send(str(index))

    def _send(self, line: str) -> None:
        with contextlib.suppress(BrokenPipeError):  # it died: the listener tells
            self.process.stdin.write(line + "\n")  # type: ignore[union-attr]

    def _listen(self, answers: queue.SimpleQueue[tuple[_Worker, str]]) -> None:
        for line in self.process.stdout:  # type: ignore[union-attr]
            answers.put((self, line))
        answers.put((self, ""))

    def obituary(self) -> str:
        """How the process ended and its last words."""
        status = self.process.wait()
        self.errors.seek(0)
        words = self.errors.read().decode(errors="replace").strip().splitlines()
        return f"the process ended with status {status}" + (f": {words[-1]}" if words else "")

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.errors):
            with contextlib.suppress(BrokenPipeError):
                pipe.close()  # type: ignore[union-attr]
