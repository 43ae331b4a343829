"""Pictures of results: one file per metric that is a series, with the mean of each method and two standard errors.

Needs Matplotlib (the extra ``plot``); without it the runner writes the numbers and the table only.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from surefoot.report.theme import require_matplotlib
from surefoot_lab.results import Results

__all__ = ["draw"]

Array = NDArray[np.float64]


def draw(results: Results, folder: Path) -> list[Path]:
    """Write ``<metric>.png`` for each series and return the paths.

    >>> import tempfile
    >>> from surefoot_lab.registry import Trace, find
    >>> results = Results.fresh(find("gp-ucb/regret-bound"), "quick")
    >>> results.replicates = {i: {"GP-UCB": Trace(regret=[3.0, 2.0 + i, 1.0])} for i in range(3)}
    >>> [path.name for path in draw(results, Path(tempfile.mkdtemp()))]
    ['regret.png']
    """
    require_matplotlib()
    from matplotlib.figure import Figure

    paths = []
    for metric, methods in _series(results).items():
        figure = Figure(figsize=(7.0, 4.5), layout="constrained")
        axes = figure.add_subplot()
        for method, rows in methods.items():
            mean, error = _mean_and_error(rows)
            steps = np.arange(1, mean.size + 1)
            (line,) = axes.plot(steps, mean, label=f"{method} (n = {len(rows)})")
            axes.fill_between(steps, mean - 2 * error, mean + 2 * error, alpha=0.2, color=line.get_color(), linewidth=0)
        axes.set(xlabel="step", ylabel=metric.replace("_", " "), title=results.experiment.heading)
        axes.title.set_wrap(True)
        axes.grid(alpha=0.3)
        axes.legend(fontsize="small")
        paths.append(folder / f"{metric}.png")
        figure.savefig(paths[-1], dpi=120)
    return paths


def _series(results: Results) -> dict[str, dict[str, list[Array]]]:
    """metric → method → series of the repetitions, for metrics with more than one entry."""
    found: dict[str, dict[str, list[Array]]] = {}
    for index in sorted(results.replicates):
        for method, trace in results.replicates[index].items():
            for metric, values in trace.metrics.items():
                if values.ndim and values.size > 1:
                    found.setdefault(metric, {}).setdefault(method, []).append(values)
    return found


def _mean_and_error(rows: list[Array]) -> tuple[Array, Array]:
    """Mean and standard error per step over the rows that reach it; NaN entries do not count."""
    table = np.full((len(rows), max(row.size for row in rows)), np.nan)
    for i, row in enumerate(rows):
        table[i, : row.size] = row
    there = np.isfinite(table)
    count = there.sum(axis=0)
    mean = np.where(there, table, 0.0).sum(axis=0) / np.maximum(count, 1)
    squares = (np.where(there, table - mean, 0.0) ** 2).sum(axis=0)
    return np.where(count > 0, mean, np.nan), np.sqrt(squares / np.maximum(count - 1, 1) / np.maximum(count, 1))
