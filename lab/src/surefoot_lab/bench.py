"""``surefoot bench``: how long Surefoot takes to answer an ask, alone.

A policy is told n measurements of a test function in d dimensions, and one ask is timed, fits included. What other
libraries take in the same run is the business of ``benchmarks/``.

>>> from surefoot import SobolSearch
>>> seconds = ask_seconds(lambda domain, seed: SobolSearch(domain, seed=seed), n=5, d=2, repeats=2)
>>> seconds.shape
(2,)
"""

from __future__ import annotations

import json
import os
import time
import tracemalloc
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from rich.text import Text

from surefoot.domain import Domain
from surefoot.loop.journal import write_atomically
from surefoot.loop.policy import Policy
from surefoot.loop.streams import stream
from surefoot.policy.improvement import ExpectedImprovement
from surefoot.report.settings import environment
from surefoot_lab.problems import levy

__all__ = ["ask_bytes", "ask_seconds", "bench"]

Make = Callable[[Domain, int], Policy]
FULL = ((20, 50, 100, 200, 400, 1000), (2, 6, 10, 20), 5)
QUICK = ((20, 50, 100), (2, 6), 3)


def default(domain: Domain, seed: int) -> Policy:
    """The default policy, by its rule from the first ask on."""
    return ExpectedImprovement(domain, seed=seed, initial=0)


def _told(make: Make, n: int, d: int, repeat: int) -> Policy:
    """A policy that knows n measurements; telling fits nothing."""
    problem = levy(d)
    points = problem.domain.sample(n, stream(repeat, "bench", n))
    policy = make(problem.domain, repeat)
    for x, value in zip(points, problem(points), strict=True):
        policy.tell(x, value)
    return policy


def ask_seconds(make: Make, n: int, d: int, repeats: int = 5) -> NDArray[np.float64]:
    """Return the seconds of one ask, fits included, after n measurements in d dimensions; shape (repeats,).

    Parameters
    ----------
    make : callable
        Returns a policy, given a domain and a seed.
    n, d : int
        Measurements of Levy's function at random points, and its dimension.
    repeats : int
        How many times, each with other points; one more comes before them and is not counted.

    >>> bool((ask_seconds(default, n=10, d=2, repeats=1) > 0).all())
    True
    """
    seconds = []
    for repeat in range(repeats + 1):
        policy = _told(make, n, d, repeat)
        start = time.perf_counter()
        policy.ask()
        seconds.append(time.perf_counter() - start)
    return np.array(seconds[1:])


def ask_bytes(make: Make, n: int, d: int) -> int:
    """Return the most memory that one ask holds at a time, beyond what was held before it.

    >>> ask_bytes(default, n=10, d=2) > 10_000
    True
    """
    policy = _told(make, n, d, 0)
    tracemalloc.start()
    try:
        policy.ask()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def bench(
    *, quick: bool = False, json_file: str | os.PathLike[str] | None = None, console: Console | None = None
) -> list[dict[str, Any]]:
    """Time the default policy over a grid of sizes, print two tables, and return the cells.

    Parameters
    ----------
    quick : bool
        A small grid, a few seconds.
    json_file : path, optional
        Where to write all timings, with the environment.
    console : rich.console.Console, optional
        Where to print.

    >>> import io
    >>> from unittest.mock import patch
    >>> with patch("surefoot_lab.bench.QUICK", ((5, 8), (2,), 1)):
    ...     cells = bench(quick=True, console=Console(file=io.StringIO()))
    >>> [(cell["n"], cell["d"]) for cell in cells]
    [(5, 2), (8, 2)]
    """
    screen = console or Console()
    sizes, dimensions, repeats = QUICK if quick else FULL
    target = None if json_file is None else Path(json_file)
    if target is not None and not target.parent.is_dir():
        raise ValueError(f"there is no folder {target.parent} to write {target.name} in")
    cells = []
    with screen.status("") as status:
        for n in sizes:
            for d in dimensions:
                status.update(f"n = {n}, d = {d}")
                seconds = ask_seconds(default, n, d, repeats)
                cells.append({"n": n, "d": d, "seconds": seconds.tolist(), "bytes": ask_bytes(default, n, d)})
    threads = os.environ.get("OMP_NUM_THREADS", "as many as there are cores")
    screen.print(f"One ask of ExpectedImprovement, fit included; median of {repeats}. BLAS threads: {threads}.\n")
    medians = {(cell["n"], cell["d"]): f"{np.median(cell['seconds']):.3f}" for cell in cells}
    screen.print(_grid("seconds", sizes, dimensions, medians), "", sep="\n")
    peaks = {(cell["n"], cell["d"]): f"{cell['bytes'] / 2**20:.1f}" for cell in cells}
    screen.print(_grid("peak memory, MiB", sizes, dimensions, peaks))
    if target is not None:
        made = {
            "policy": "ExpectedImprovement",
            "date": datetime.now(UTC).strftime("%Y-%m-%d"),
            "threads": threads,
            "cores": os.cpu_count(),
            "environment": environment(),
            "cells": cells,
        }
        write_atomically(target, json.dumps(made, indent=1) + "\n")
        screen.print(Text(f"\nwritten to {target}"), highlight=False, soft_wrap=True)
    return cells


def _grid(title: str, sizes: tuple[int, ...], dimensions: tuple[int, ...], texts: dict[tuple[int, int], str]) -> Table:
    table = Table(title=title, title_justify="left", padding=(0, 0), collapse_padding=True)
    for name in ["n", *(f"d = {d}" for d in dimensions)]:
        table.add_column(name, justify="right")
    for n in sizes:
        table.add_row(str(n), *(texts[n, d] for d in dimensions))
    return table
