"""The picture of a level set: which points lie above the threshold, which below, and which are not decided.

>>> import numpy as np
>>> import surefoot
>>> line = surefoot.Candidates(np.linspace(0.0, 1.0, 30))
>>> policy = surefoot.GPLSE(line, threshold=0.5, seed=0)
>>> for _ in range(5):
...     query = policy.ask()
...     policy.tell(query, float(query.x[0]))
>>> level_set(policy).axes[0].get_xlabel()
'x0'
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from surefoot.loop.policy import Policy
from surefoot.loop.types import LevelSet
from surefoot.optimizer import Result
from surefoot.report.plots import _HIGH, _WIDE, _legend, _scatter_runs
from surefoot.report.theme import canvas, color
from surefoot.report.view import RunView, short

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["drawable", "level_set"]

_MOST = 20_000  # points in a picture; of more, an even sample
_PAINTS = {"above": "belief", "below": "line", "undecided": "accent"}


def drawable(policy: Policy | Result | RunView) -> bool:
    """Whether the answer is a level set over one or two coordinates that are numbers.

    >>> from surefoot import Box, RandomSearch
    >>> drawable(RandomSearch(Box.unit(1), seed=0))
    False
    """
    view = RunView.of(policy)
    answer = view.answer
    few = len(view.coordinates) <= 2 and not any(c.labels for c in view.coordinates)
    return isinstance(answer, LevelSet) and answer.points is not None and few


def level_set(policy: Policy | Result | RunView, *, direction: str | None = None, label: str = "value") -> Figure:
    """Draw what is known of each point: above the threshold, below, or undecided.

    Over one coordinate the points stand at their expected value, with the threshold as a line; over two they are a map
    with the runs on top.

    Parameters
    ----------
    policy : Policy, Result or RunView
        One whose answer is a :class:`~surefoot.loop.types.LevelSet`, over one or two coordinates.
    direction : {"maximize", "minimize"}, optional
        Which way is better; by default that of the policy.
    label : str
        Name of the measured value.

    >>> from surefoot import Box, RandomSearch
    >>> level_set(RandomSearch(Box.unit(1), seed=0))
    Traceback (most recent call last):
    ...
    ValueError: this picture needs a level set over one or two coordinates that are numbers
    """
    view = RunView.of(policy, direction)
    if not drawable(view):
        raise ValueError("this picture needs a level set over one or two coordinates that are numbers")
    answer = view.answer
    rows = np.unique(np.linspace(0, len(answer.points) - 1, _MOST).astype(np.intp))
    across, *up = view.coordinates
    with canvas(_WIDE, _HIGH) as figure:
        axes = figure.add_subplot()
        heights = answer.points[:, up[0].index] if up else view.predict(answer.points)[0]
        size = float(np.clip(9e4 / len(rows), 4.0, 60.0)) if up else 9.0
        for name, paint in _PAINTS.items():
            chosen = rows[getattr(answer, name)[rows]]
            if chosen.size:
                axes.scatter(
                    answer.points[chosen, across.index], heights[chosen], s=size, marker="s" if up else "o",
                    color=color(paint), linewidth=0, label=name, zorder=1 + (name == "undecided"),
                )  # fmt: skip
        if up:
            _scatter_runs(axes, view, across.index, up[0].index)
            up[0].prepare(axes, "y")
        else:
            axes.scatter(view.X[:, across.index], view.y, s=17, color=color("ink"), label="measured", zorder=3)
            axes.axhline(answer.threshold, color=color("accent"), linewidth=1.2, linestyle=(0, (4, 3)))
        across.prepare(axes, "x")
        axes.set(xlabel=short(across.name, 40), ylabel=short(up[0].name if up else label, 32))
        _legend(figure, axes)
    return figure
