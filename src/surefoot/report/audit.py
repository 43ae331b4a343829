"""The picture of an audit: how much of each claim was found to be true at least, and the events that show it.

>>> from surefoot.private.audit import audit
>>> found = audit(lambda x, noise, n: noise.gaussian(np.full(n, x), 2.0), 0.0, 1.0, delta=1e-3, claim=2.0, trials=5000)
>>> len(audits({"gaussian": found}).axes)
2
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

import numpy as np

from surefoot.private.audit import Audit
from surefoot.report.theme import canvas, color
from surefoot.report.view import short

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["audits"]


def audits(found: Mapping[str, Audit]) -> Figure:
    """Draw what was found for each mechanism.

    Left, one bar for each mechanism: the lower bound on ε, with a tick at the claim; a bar beyond its tick is a claim
    refuted. Right, for the mechanism that used up most of its claim: the probability that its score lies beyond a
    threshold under both inputs, and the line exp(ε) p + δ that a claim keeps it under.

    >>> audits({})
    Traceback (most recent call last):
    ...
    ValueError: nothing was audited
    """
    if not found:
        raise ValueError("nothing was audited")
    with canvas(8.6, 1.6 + 0.28 * max(len(found), 6)) as figure:
        left, right = figure.subplots(1, 2, width_ratios=[3, 2])
        _bars(left, found)
        claimed = {name: each for name, each in found.items() if each.claim is not None} or dict(found)
        name = max(claimed, key=lambda each: claimed[each].bound.epsilon / (claimed[each].claim or 1.0))
        _curve(right, name, claimed[name])
    return figure


def _bars(axes: Axes, found: Mapping[str, Audit]) -> None:
    places = np.arange(len(found))[::-1]
    bounds = [each.bound.epsilon for each in found.values()]
    looks = [color("bad" if each.refuted else "muted" if each.claim is None else "belief") for each in found.values()]
    axes.barh(places, bounds, height=0.6, color=looks)
    for place, each in zip(places, found.values(), strict=True):
        if each.claim is not None:
            axes.plot([each.claim] * 2, [place - 0.42, place + 0.42], color=color("ink"), linewidth=1.6)
        else:
            axes.annotate(
                "no claim", (each.bound.epsilon, place), (4, 0), textcoords="offset points", va="center", fontsize=7
            )
    axes.set_yticks(places, [short(name, 26) for name in found])
    most = max([*bounds, *(each.claim or 0.0 for each in found.values())])
    axes.set(xlabel="ε is at least (bar), and is claimed to be (tick)", xlim=(0.0, 1.18 * most if most > 0 else 1.0))
    axes.grid(axis="x")
    axes.set_axisbelow(True)


def _curve(axes: Axes, name: str, each: Audit) -> None:
    one, two = (np.sort(scores) for scores in each.scores)
    if each.bound.likelier == "one":
        one, two = two, one
    thresholds = np.quantile(np.concatenate([one, two]), np.linspace(0.0, 1.0, 400))
    side: Literal["left", "right"] = "left" if each.bound.above else "right"
    rates = [np.searchsorted(scores, thresholds, side=side) / scores.size for scores in (one, two)]
    if each.bound.above:
        rates = [1.0 - rate for rate in rates]
    least = 10.0 / one.size
    shown = (rates[0] >= least) & (rates[1] >= least)
    axes.loglog(rates[0][shown], rates[1][shown], color=color("bad" if each.refuted else "belief"), label="measured")
    p = np.geomspace(least, 1.0, 200)
    if each.claim is not None:
        limit = np.minimum(1.0, np.exp(each.claim) * p + each.delta)
        axes.loglog(p, limit, color=color("ink"), linewidth=1.0, linestyle="--", label="most that the claim allows")
    axes.loglog(p, p, color=color("line"), linewidth=1.0)
    axes.set(xlabel="probability of an event, one input", ylabel="the other input", title=short(name, 30))
    axes.legend(loc="lower right")
