"""What the rule of docs/comparison.md makes of the runs: differences, ranks, profiles, each with its interval.

A table holds log10 regrets: ``table[problem][method][instance]``. Everything here is a function of runs alone.

>>> def run(method, last, which=1):
...     return Run(f"bbob/f1/d2/i{which}", method, "1.0", 1, np.array([1.0, last]), 0.0)
>>> found = table([run("surefoot", 0.1), run("cma", 0.01), run("surefoot", 0.01, 2), run("cma", 0.01, 2)])
>>> found["bbob/f1/d2"]["surefoot"]
{1: -1.0, 2: -2.0}
>>> difference(found, "bbob/f1/d2", "surefoot", "cma").mean, overall(found, "surefoot", "cma").count
(0.5, 1)
>>> common(found, ["surefoot", "cma"])
{'bbob/f1/d2': {'surefoot': -1.5, 'cma': -2.0}}
>>> behind(found, "surefoot", ["cma"])[:2]
(0, 0)
>>> profile([run("cma", 0.01)]).round(2).tolist()
[0.0, 0.33]
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from surefoot.intervals import bootstrap_interval, t_interval
from surefoot_lab.suite.problems import floor, instance, problem
from surefoot_lab.suite.record import Run

__all__ = ["Difference", "Table", "interval", "ranks"]

Table = dict[str, dict[str, dict[int, float]]]
CLEARLY = 0.5  # of log10 regret
TARGETS = 10.0 ** (-np.arange(1, 31) / 5.0)


@dataclass(frozen=True)
class Difference:
    """A mean of paired differences of log10 regret and its 95 % interval; infinite from one pair alone."""

    mean: float
    low: float
    high: float
    count: int


def table(runs: Iterable[Run]) -> Table:
    """Return the log10 of each run's last regret, bounded below as the rule says."""
    found: Table = {}
    for run in runs:
        value = math.log10(max(float(run.regrets[-1]), floor(run.name)))
        found.setdefault(problem(run.name), {}).setdefault(run.method, {})[instance(run.name)] = value
    return found


def interval(values: Sequence[float]) -> Difference:
    """Return the mean and Student's 95 % interval.

    >>> interval([1.0, 2.0, 3.0])
    Difference(mean=2.0, low=-0.48..., high=4.48..., count=3)
    """
    return Difference(*t_interval(np.array(values), 0.95), len(values))


def difference(found: Table, name: str, own: str, peer: str) -> Difference | None:
    """Return own less peer on one problem, over the instances that both have finished; None without any."""
    ours, theirs = (found[name].get(method, {}) for method in (own, peer))
    pairs = [ours[i] - theirs[i] for i in sorted(ours.keys() & theirs.keys())]
    return interval(pairs) if pairs else None


def overall(found: Table, own: str, peer: str) -> Difference | None:
    """Return the mean over problems of their mean differences, with its interval over problems."""
    each = [made.mean for name in sorted(found) if (made := difference(found, name, own, peer))]
    return interval(each) if each else None


def common(found: Table, methods: Sequence[str]) -> dict[str, dict[str, float]]:
    """Return the means of the problems that all these methods have finished, on the instances that all have."""
    means = {}
    for name in sorted(found):
        shared = set.intersection(*(set(found[name].get(method, {})) for method in methods))
        if shared:
            means[name] = {m: float(np.mean([found[name][m][i] for i in sorted(shared)])) for m in methods}
    return means


def behind(found: Table, own: str, peers: Sequence[str]) -> tuple[int, int, dict[str, tuple[str, Difference]]]:
    """Return on how many problems we are significantly and clearly behind the best peer, and the comparison on each."""
    against = {}
    for name, means in common(found, [own, *peers]).items():
        best = min(peers, key=lambda peer: (means[peer], peer))
        shared = set.intersection(*(set(found[name][method]) for method in (own, *peers)))
        pairs = [found[name][own][i] - found[name][best][i] for i in sorted(shared)]
        against[name] = best, interval(pairs)
    significantly = sum(made.low > 0 for _, made in against.values())
    return significantly, sum(made.mean > CLEARLY for _, made in against.values()), against


def ranks(means: Mapping[str, Mapping[str, float]]) -> dict[str, Difference]:
    """Return each method's mean rank over problems, ties shared, with a bootstrap interval over problems.

    >>> ranks({"a": {"x": 0.0, "y": 1.0}, "b": {"x": 0.0, "y": 0.0}})["y"].mean
    1.75
    """
    if not means:
        return {}
    methods = list(next(iter(means.values())))
    places = np.array([rankdata([row[method] for method in methods]) for row in means.values()])

    def mean_rank(column: NDArray[np.float64]) -> Difference:
        return Difference(*bootstrap_interval(lambda pick: column[pick].mean(axis=-1), len(column), 0.95), len(column))

    return {method: mean_rank(column) for method, column in zip(methods, places.T, strict=True)}


def profile(runs: Sequence[Run]) -> NDArray[np.float64]:
    """Return, for one method, the share of pairs of run and target reached after 1, 2, ... measurements.

    A target below the bound of the rule is the bound itself; a run whose shared points reach it has no targets.
    """
    reached = []
    for run in runs:
        start, bound = float(run.regrets[run.given - 1]), floor(run.name)
        if start > bound:
            targets = np.maximum(start * TARGETS, bound)
            reached.append((run.regrets[:, None] <= targets).mean(axis=1))
    return np.mean(reached, axis=0)
