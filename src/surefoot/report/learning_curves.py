"""Pictures of what some policies do besides: runs followed step by step, and previous tasks weighed.

>>> from surefoot import Box, RandomSearch
>>> policy = RandomSearch(Box([(0.0, 1.0)]), seed=0)
>>> curves(policy)
Traceback (most recent call last):
...
ValueError: RandomSearch has no run that was reported step by step

A policy shows here what it offers: ``policy.reports()`` (every policy with ``steps``), ``policy.stopped`` (a mapping of
query ids to the reason why that run was stopped) and ``policy.weight_history`` (the weights of previous tasks after
each ask, shape (asks, tasks), the policy's own task last if it has a weight).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from surefoot.loop.policy import Policy
from surefoot.optimizer import Result
from surefoot.report import edge
from surefoot.report.run import Run
from surefoot.report.theme import LEVELS, canvas, color, ramp
from surefoot.report.view import RunView, few, short, window

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["curves", "lengths", "steps_of", "task_weights", "weights_of"]

Array = NDArray[np.float64]
_LINES = 200  # of more runs, the best and an even sample of the others are drawn
_TASKS = 6  # tasks whose lines are named


def curves(policy: Policy | Result | RunView, *, direction: str | None = None, label: str = "value") -> Figure:
    """Draw the learning curve of every run that was reported step by step, and where runs were stopped.

    Parameters are as in :func:`~surefoot.report.trace`. The runs that were trained to their end are green, the better
    the stronger; stopped ones are gray and end in a cross.

    >>> from surefoot import Advice, Box, RandomSearch
    >>> class Followed(RandomSearch):
    ...     "Random search that listens."
    ...     steps = True
    >>> policy = Followed(Box([(0.0, 1.0)]), seed=0)
    >>> query = policy.ask()
    >>> for step in (1, 2, 3):
    ...     advice = policy.report(query, step, 1.0 - 0.5**step)
    >>> curves(policy).axes[0].lines[0].get_ydata()
    array([0.5  , 0.75 , 0.875])
    """
    view = RunView.of(policy, direction)
    rows = steps_of(view)
    if not rows:
        raise ValueError(f"{type(view.policy).__name__} has no run that was reported step by step")
    last = np.array([-np.inf if row.value is None else view.sign * row.value for row in rows])
    rows = [rows[i] for i in few(last, _LINES)]
    lines = [_line(row) for row in rows]
    known = np.concatenate([values[~np.isnan(values)] for _, values in lines])
    low, high = window(known, view.direction)
    with canvas(4.1, 2.9) as figure:
        axes = figure.add_subplot()
        for row, (steps, values), look in zip(rows, lines, _looks(view, rows), strict=True):
            axes.plot(
                steps, values, marker="." if len(steps) == 1 else "", **look
            )  # cut by the axis where it leaves it
            if row.stopped is not None:
                axes.plot(steps[-1:], values[-1:], "x", color=color("bad"), markersize=4, zorder=4)
        axes.set(xlabel="step", ylabel=short(label, 32))
        margin = 0.06 * (high - low)
        axes.set_ylim(low - margin, high + margin)
        ends = np.array([(steps[-1], values[-1]) for steps, values in lines])  # a curve that only passes is seen to
        edge.mark(axes, ends[:, 0], ends[:, 1], low - margin, high + margin)
        edge.note(axes, known, low - margin, high + margin)
        axes.locator_params(axis="x", integer=True)
        axes.grid(axis="y")
        _explain(figure, rows)
    return figure


def lengths(policy: Policy | Result | RunView) -> Figure:
    """Draw for how many steps each run was followed: stopped runs in gray, those that went on in green.

    Parameters
    ----------
    policy : Policy, Result or RunView
        A policy whose runs were reported step by step.

    >>> from surefoot import Box, RandomSearch
    >>> class Followed(RandomSearch):
    ...     "Random search that listens."
    ...     steps = True
    >>> policy = Followed(Box([(0.0, 1.0)]), seed=0)
    >>> advice = policy.report(policy.ask(), 4, 0.5)
    >>> lengths(policy).axes[0].get_ylabel()
    'steps'
    """
    view = RunView.of(policy)
    rows = steps_of(view)
    if not rows:
        raise ValueError(f"{type(view.policy).__name__} has no run that was reported step by step")
    ids = np.array([row.id for row in rows])
    steps = np.array([max(row.curve) for row in rows])
    stopped = np.array([row.stopped is not None for row in rows])
    running = np.array([row.status == "pending" for row in rows])
    kinds = {"finished": (~stopped & ~running, "belief"), "stopped": (stopped, "muted"), "running": (running, "accent")}
    with canvas(4.1, 2.9) as figure:
        axes = figure.add_subplot()
        for name, (mask, role) in kinds.items():
            if mask.any():
                axes.vlines(
                    ids[mask], 0, steps[mask], color=color(role), linewidth=float(np.clip(150 / len(rows), 0.4, 6.0)),
                    alpha=0.9, label=name,
                )  # fmt: skip
        axes.set(xlabel="run", ylabel="steps", ylim=(0, 1.06 * float(steps.max()) or 1.0))
        axes.locator_params(axis="x", integer=True)
        axes.locator_params(axis="y", integer=True)
        axes.grid(axis="y")
        figure.legend(loc="outside upper left", ncols=3, columnspacing=1.2, borderaxespad=0.2, handletextpad=0.4)
    return figure


def task_weights(policy: Policy | Result | RunView) -> Figure:
    """Draw how much a policy trusted each previous task, ask after ask.

    Parameters
    ----------
    policy : Policy, Result or RunView
        A policy with a ``weight_history``.

    >>> from surefoot import Box, RandomSearch
    >>> class Weighing(RandomSearch):
    ...     "Random search that trusts the first of two tasks more and more."
    ...     weight_history = np.array([[0.5, 0.5], [0.7, 0.3], [0.9, 0.1]])
    >>> policy = Weighing(Box([(0.0, 1.0)]), seed=0)
    >>> [text.get_text() for text in task_weights(policy).axes[0].texts]
    ['task 0', 'task 1']
    """
    view = RunView.of(policy)
    weights = weights_of(view)
    if weights is None:
        raise ValueError(f"{type(view.policy).__name__} has no history of task weights")
    names = _names(view.policy, weights.shape[1])
    order = np.argsort(-weights[-1], kind="stable")
    shades = ramp()[::-1]
    asks = np.arange(1, len(weights) + 1)
    with canvas(4.1, 2.6) as figure:
        axes = figure.add_subplot()
        for rank, task in reversed(list(enumerate(order))):
            named = rank < _TASKS
            paint = color("accent") if rank == 0 else shades[min(2 * (rank - 1), LEVELS - 4)]
            axes.plot(
                asks, weights[:, task], color=paint if named else color("line"),
                linewidth=1.6 if named else 0.8, marker="." if len(asks) == 1 else "",
            )  # fmt: skip
        top = max(float(weights.max()), 1e-12)
        heights = _apart(weights[-1, order[:_TASKS]], 0.075 * top)
        for height, task in zip(heights, order[:_TASKS], strict=True):
            axes.annotate(
                short(names[task], 18), (1.0, height), xycoords=("axes fraction", "data"), xytext=(4, 0),
                textcoords="offset points", fontsize=7, va="center", color=color("ink"), annotation_clip=False,
            )  # fmt: skip
        axes.set(xlabel="ask", ylabel="weight", ylim=(-0.04 * top, 1.06 * top))
        axes.set_xlim(1, max(len(asks), 2))
        axes.locator_params(axis="x", integer=True)
        axes.grid(axis="y")
    return figure


def steps_of(view: RunView) -> list[Run]:
    """Return the runs that were reported step by step, at least once with a value.

    >>> from surefoot import Box, RandomSearch
    >>> steps_of(RunView(RandomSearch(Box([(0.0, 1.0)]), seed=0)))
    []
    """
    return [row for row in view.rows if any(value is not None for value in row.curve.values())]


def weights_of(view: RunView) -> Array | None:
    """Return the weights of previous tasks, shape (asks, tasks), or None where there are none.

    >>> from surefoot import Box, RandomSearch
    >>> weights_of(RunView(RandomSearch(Box([(0.0, 1.0)]), seed=0))) is None
    True
    """
    found = view.policy.weight_history
    weights = np.empty((0, 0)) if found is None else np.asarray(found, dtype=np.float64)
    return weights if weights.ndim == 2 and weights.size else None


# -- drawing ---------------------------------------------------------------------------------------------------------


def _line(row: Run) -> tuple[Array, Array]:
    steps = np.array(sorted(row.curve), dtype=np.float64)
    values = [row.curve[int(step)] for step in steps]
    return steps, np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def _looks(view: RunView, rows: Sequence[Run]) -> list[dict[str, Any]]:
    """How each curve is drawn: by its standing, finished ones by their rank as well."""
    finished = [i for i, row in enumerate(rows) if row.status == "measured" and row.stopped is None]
    finished.sort(key=lambda i: view.sign * (rows[i].value or 0.0))
    shades, looks = ramp(), [{"color": color("muted"), "linewidth": 0.8, "alpha": 0.7, "zorder": 2} for _ in rows]
    for rank, i in enumerate(finished):
        level = 3 + int((LEVELS - 4) * (rank + 1) / len(finished))
        looks[i] = {"color": shades[level], "linewidth": 1.1, "zorder": 3}
    if finished:
        looks[finished[-1]] = {"color": color("accent"), "linewidth": 2.0, "zorder": 5}
    for i, row in enumerate(rows):
        if row.status == "pending":
            looks[i] = {"color": color("accent"), "linewidth": 1.2, "linestyle": (0, (3, 2)), "zorder": 5}
    return looks


def _explain(figure: Figure, rows: Sequence[Run]) -> None:
    from matplotlib.lines import Line2D

    finished = any(row.status == "measured" and row.stopped is None for row in rows)
    kinds: dict[str, tuple[bool, dict[str, Any]]] = {
        "best finished": (finished, {"color": color("accent"), "linewidth": 2.0}),
        "finished": (finished, {"color": color("belief"), "linewidth": 1.1}),
        "stopped": (
            any(row.stopped is not None for row in rows),
            {
                "color": color("muted"),
                "linewidth": 0.8,
                "marker": "x",
                "markeredgecolor": color("bad"),
                "markersize": 4,
            },
        ),
        "still running": (
            any(row.status == "pending" for row in rows),
            {"color": color("accent"), "linewidth": 1.2, "linestyle": (0, (3, 2))},
        ),
    }
    shown = {name: Line2D([], [], **look) for name, (there, look) in kinds.items() if there}
    if shown:
        figure.legend(
            list(shown.values()), list(shown), loc="outside upper left", ncols=4, columnspacing=1.2, borderaxespad=0.2,
            handletextpad=0.4,
        )  # fmt: skip


def _names(policy: Policy, count: int) -> list[str]:
    """The tasks by their own names, else by number; a weight beyond them is the policy's own."""
    tasks = policy.tasks
    names = [getattr(task, "name", None) or f"task {i}" for i, task in enumerate(tasks)]
    names += ["this task"] if tasks and count == len(tasks) + 1 else []
    return names + [f"task {i}" for i in range(len(names), count)]


def _apart(heights: Array, gap: float) -> Array:
    """Heights in falling order, moved where two would be closer than the gap: down, but never below zero."""
    placed = heights.copy()
    for i in range(1, len(placed)):
        placed[i] = min(placed[i], placed[i - 1] - gap)
    placed[-1] = max(placed[-1], 0.0)
    for i in range(len(placed) - 2, -1, -1):
        placed[i] = max(placed[i], placed[i + 1] + gap)
    return placed
