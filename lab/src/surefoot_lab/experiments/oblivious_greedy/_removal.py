"""What the experiments of this family share: the selectors, and the worst of the heuristic adversaries.

A trace has numbers named by the setting, such as ``left_10_60``: what is left of k = 60 elements after the worst found
loss of τ = 10. Every method is judged by the worst of greedy min, greedy max, random and stochastic greedy min, with
some restarts (ten where the objective is not dear), improved by swaps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from surefoot.select import (
    Deletion,
    Selection,
    SetFunction,
    greedy,
    greedy_max,
    greedy_min,
    heuristics,
    matching_pursuit,
    oblivious,
    oblivious_greedy,
    osu,
    pro,
    random_greedy,
    stochastic_greedy,
)
from surefoot_lab import Metric, Replicate, Trace
from surefoot_lab.readings import Reading

OG, HALF, OBLIVIOUS, GREEDY = "OBLIVIOUS-GREEDY", "OBLIVIOUS-GREEDY, β = 0.5", "OBLIVIOUS", "GREEDY"
PRO, OSU, STOCHASTIC, RANDOM, OMP = "PRO", "OSU", "STOCHASTIC-GREEDY", "RANDOM-GREEDY", "OMP"

Setting = tuple[int, int]  # deletions and budget
Extra = Callable[[Sequence[int]], Mapping[str, float]]


class Runs:
    """Selections of one objective, each method run once for every budget that a prefix of a longer run cannot serve."""

    def __init__(self, f: SetFunction, largest: int, replicate: Replicate) -> None:
        self.f, self.largest, self.replicate = f, largest, replicate
        self._whole: dict[tuple[str, int], Selection] = {}

    def select(self, name: str, tau: int, k: int) -> Selection | None:
        """The selection of a method; None where its robust part needs more than k elements."""
        if name in (STOCHASTIC, RANDOM):  # neither is a prefix of a longer run
            how = {STOCHASTIC: stochastic_greedy, RANDOM: random_greedy}[name]
            return how(self.f, k, rng=self.replicate.rng(name, k))
        knows = {
            OG: partial(oblivious_greedy, beta=1.0),
            HALF: partial(oblivious_greedy, beta=0.5),
            PRO: pro,
            OSU: osu,
        }
        plain = {GREEDY: greedy, OBLIVIOUS: oblivious, OMP: matching_pursuit}
        key = (name, tau if name in knows else 0)
        if key not in self._whole:
            try:
                made = knows[name](self.f, self.largest, tau) if name in knows else plain[name](self.f, self.largest)
            except ValueError as error:
                if "robust part" not in str(error):
                    raise
                return None
            self._whole[key] = made
        made = self._whole[key]
        return made.prefix(k) if len(made.robust) <= k else None


def removed(
    f: SetFunction,
    names: Sequence[str],
    settings: Sequence[Setting],
    replicate: Replicate,
    extra: Extra | None = None,
    suffix: str = "",
    restarts: int = 10,
) -> dict[str, Trace]:
    """Select by every method in every setting, remove, and record what is left (and what ``extra`` makes of it).

    Where a refit is dear there are fewer ``restarts``; with none the worse of greedy min and greedy max counts.
    """
    runs = Runs(f, max(k for _, k in settings), replicate)
    traces: dict[str, Trace] = {name: Trace() for name in names}
    for tau, k in settings:
        for name in names:
            made = runs.select(name, tau, k)
            if made is None:
                continue
            found = worst(f, made.order, tau, restarts, replicate)
            row: dict[str, float] = {"raw": made.value, "left": found.value}
            if extra is not None:
                row |= extra(np.setdiff1d(made.order, found.removed).tolist())
            numbers = {f"{metric}_{tau}_{k}{suffix}": value for metric, value in row.items()}
            traces[name].metrics |= Trace(**numbers).metrics
    return traces


def worst(f: SetFunction, order: Sequence[int], tau: int, restarts: int, replicate: Replicate) -> Deletion:
    """The worst deletion found."""
    if restarts:
        return heuristics(f, order, tau, restarts=restarts, rng=replicate.rng("adversary", tau))
    return min(greedy_min(f, order, tau), greedy_max(f, order, tau), key=lambda found: found.value)


def left(name: str, tau: int, k: int, suffix: str = "", *, metric: str = "left") -> Reading:
    """What a method keeps after removal in one setting."""
    return Metric(f"{metric}_{tau}_{k}{suffix}")[name]
