"""What the experiments of this family share: the selectors, the sweeps over k and τ, and the adversary.

Every method is judged by the same adversary: the proved worst deletion where the integer program finishes for *all*
methods within its time, else the greedy deletion for all of them. Selection is deterministic, so repetitions differ by
their data: the first one has the network as it is, the others 90 % of its nodes in a random order.

A trace has the series ``raw`` and ``left`` over the sweep, and the same numbers by name, such as ``left_50``; NaN where
a method needs more than k elements.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from surefoot.select import Deletion, Selection, SetFunction, coverage_milp, greedy_min, lazy_greedy, osu, pro
from surefoot_lab import Metric, Replicate, Trace
from surefoot_lab.graphs import Graph
from surefoot_lab.readings import Comparison, Reading

GREEDY, OSU, PRO, EXACT = "GREEDY", "OSU", "PRO", "PRO, exact part"
METHODS = (GREEDY, OSU, PRO, EXACT)

Choose = Callable[[SetFunction, int, int], Selection]

SELECTORS: dict[str, Choose] = {
    GREEDY: lambda f, k, tau: lazy_greedy(f, k),
    OSU: osu,
    PRO: lambda f, k, tau: pro(f, k, tau, structure="compact"),  # the part τ log τ of the published experiments
    EXACT: pro,  # the part that Algorithm 1 builds, which is larger
}


def graph_of(whole: Graph, replicate: Replicate) -> Graph:
    """The network of a repetition."""
    return whole if replicate.index == 0 else whole.sample(replicate.rng("graph"))


def over_k(
    f: SetFunction, ks: Sequence[int], tau: int, seconds: float = 0.0, selectors: Mapping[str, Choose] = SELECTORS
) -> dict[str, Trace]:
    """Sweep the budget: one run of each method, of which a smaller budget is a prefix."""
    runs = {name: _feasible(choose, f, max(ks), tau) for name, choose in selectors.items()}

    def cut(name: str, k: int) -> Selection | None:
        made = runs[name]
        return None if made is None or len(made.robust) > k else made.prefix(k)

    return _sweep({k: {name: cut(name, k) for name in runs} for k in ks}, f, dict.fromkeys(ks, tau), seconds)


def over_tau(
    f: SetFunction, k: int, taus: Sequence[int], seconds: float = 0.0, selectors: Mapping[str, Choose] = SELECTORS
) -> dict[str, Trace]:
    """Sweep the number of deletions."""
    chosen = {tau: {name: _feasible(choose, f, k, tau) for name, choose in selectors.items()} for tau in taus}
    return _sweep(chosen, f, {tau: tau for tau in taus}, seconds)


def _feasible(choose: Choose, f: SetFunction, k: int, tau: int) -> Selection | None:
    """The selection, or None where its robust part needs more than k elements."""
    try:
        return choose(f, k, tau)
    except ValueError as error:
        if "robust part" not in str(error):
            raise
        return None


def _sweep(
    chosen: Mapping[int, Mapping[str, Selection | None]], f: SetFunction, taus: Mapping[int, int], seconds: float
) -> dict[str, Trace]:
    columns: dict[str, dict[str, list[float]]] = {}
    for at, selections in chosen.items():
        found = {name: made for name, made in selections.items() if made is not None}
        greedy = {name: greedy_min(f, made.order, taus[at]) for name, made in found.items()}
        exact = proved(f, found, taus[at], seconds) if seconds else {}
        final = exact if len(exact) == len(found) else greedy
        for name in selections:
            made = found.get(name)
            row = {
                "raw": made.value if made else math.nan,
                "left": final[name].value if made else math.nan,
                "greedy_left": greedy[name].value if made else math.nan,
                "loss": 1.0 - final[name].value / made.value if made else math.nan,
                "proved": float(final is exact) if made else math.nan,
                "excess": greedy[name].value / exact[name].value - 1.0 if name in exact else math.nan,
            }
            for metric, value in row.items():
                columns.setdefault(name, {}).setdefault(metric, []).append(value)
    traces = {}
    for name, series in columns.items():
        named = {
            f"{metric}_{at}": value
            for metric in ("raw", "left", "loss")
            for at, value in zip(chosen, series[metric], strict=True)
        }
        known = [value for value in series.pop("excess") if not math.isnan(value)]
        traces[name] = Trace(**series, **named, excess=max(known, default=math.nan))
    return traces


def proved(f: SetFunction, found: Mapping[str, Selection], tau: int, seconds: float) -> dict[str, Deletion]:
    """The worst deletions that the integer program proves; it stops at the first one that it cannot."""
    made: dict[str, Deletion] = {}
    for name, selection in found.items():
        attack = coverage_milp(f, selection.order, tau, seconds=seconds)
        if not attack.proved:
            break
        made[name] = attack
    return made


def left(name: str, at: int) -> Reading:
    """What a method keeps after removal, at one entry of the sweep."""
    return Metric(f"left_{at}")[name]


def raw(name: str, at: int) -> Reading:
    """What a method has before removal, at one entry of the sweep."""
    return Metric(f"raw_{at}")[name]


def above(one: str, other: str, ats: Sequence[int]) -> list[Comparison]:
    """One method keeps more than another, at several entries of the sweep."""
    return [left(one, at) > left(other, at) for at in ats]
