"""Pictures of a run: how it went, which parameters it tried, and what the policy believes.

Each function takes a policy and returns a Matplotlib figure, to be shown in a notebook or saved with
``figure.savefig``. They read the policy's runs and, where it has one, its posterior; they never change what it asks.

>>> import surefoot
>>> result = surefoot.optimize(lambda x: -((x[0] - 0.3) ** 2), surefoot.Box([(0.0, 1.0)]), 8, seed=0)
>>> figure = slices(result.policy)
>>> [axes.get_xlabel() for axes in figure.axes]
['x0']

Values are those of the objective, whichever way is better. Bands are those of the policy's
``confidence``, for the noise-free value.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from surefoot.loop.policy import Policy
from surefoot.optimizer import Result
from surefoot.report import edge
from surefoot.report.edge import inside
from surefoot.report.run import best_so_far
from surefoot.report.theme import LEVELS, canvas, color, ramp
from surefoot.report.view import Coordinate, RunView, few, number, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["influence", "map2d", "parallel", "sampled", "slices", "trace"]

Array = NDArray[np.float64]
_WIDE, _HIGH = 4.1, 2.9  # inches; small, so that the letters stay readable on a phone
_DOTS, _LINES = 600, 300  # of thousands of runs a picture draws the best and an even sample of the others


# -- the figures -----------------------------------------------------------------------------------------------------


def trace(policy: Policy | Result | RunView, *, direction: str | None = None, label: str = "value") -> Figure:
    """Draw every measured value and the best so far.

    Parameters
    ----------
    policy : Policy, Result or RunView
        Any policy, or a view of it that several pictures share.
    direction : {"maximize", "minimize"}, optional
        Which way is better; by default that of the policy.
    label : str
        Name of the measured value.

    >>> from surefoot import Box, RandomSearch
    >>> policy = RandomSearch(Box([(0.0, 1.0)]), seed=0)
    >>> policy.tell([0.25], 3.0)
    >>> trace(policy).axes[0].get_ylabel()
    'value'
    """
    view = RunView.of(policy, direction)
    with canvas(_WIDE, _HIGH) as figure:
        axes = figure.add_subplot()
        rows = [row for row in view.rows if row.status in ("measured", "failed")]
        count = np.arange(1, len(rows) + 1)
        values = np.array([np.nan if row.value is None else row.value for row in rows])
        low, high = _padded(*view.window())
        first = np.array([row.initial for row in rows], dtype=bool)
        stopped = np.array([row.stopped is not None for row in rows], dtype=bool)
        drawn = np.isin(count - 1, few(np.nan_to_num(view.sign * values, nan=-np.inf), 3 * _DOTS))
        kinds = (
            (first, "none", "o", "initial design"),
            (~first & ~stopped, color("belief"), "o", "measured"),
            (~first & stopped, "none", "v", "stopped early"),
        )
        shown = inside(values, low, high)
        for mask, face, marker, name in kinds:
            chosen = mask & drawn & shown
            if chosen.any():
                axes.scatter(
                    count[chosen], values[chosen], s=15 if len(rows) < 300 else 5, marker=marker,
                    facecolor=face, edgecolor=color("belief"), linewidth=0.9 if len(rows) < 300 else 0.4, label=name,
                )  # fmt: skip
        best = best_so_far(rows, direction=view.direction)
        axes.step(count, best, where="post", color=color("accent"), label="best so far")
        edge.mark(axes, count[drawn], values[drawn], low, high)
        failed = np.array([row.status == "failed" for row in rows], dtype=bool)
        if failed.any():
            axes.scatter(
                count[failed], np.full(failed.sum(), _worse_end(view)), s=18, linewidth=1.2, marker="x",
                color=color("bad"), label="failed", transform=axes.get_xaxis_transform(),
            )  # fmt: skip
        axes.set(xlabel="run", ylabel=short(label, 32))
        axes.set_ylim(low, high)
        axes.locator_params(axis="x", integer=True)
        axes.grid(axis="y")
        if rows:
            _legend(figure, axes)
        edge.note(axes, values, low, high)
    return figure


def parallel(policy: Policy | Result | RunView, *, direction: str | None = None, label: str = "value") -> Figure:
    """Draw every measured run as a line through its parameters to its value, the better ones darker.

    Parameters are as in :func:`trace`. Coordinates that cannot vary are left out; of many, the first 24 are drawn, and
    of many runs the best 150 and an even sample of the others.

    >>> from surefoot import Box, RandomSearch
    >>> policy = RandomSearch(Box([(0.0, 1.0), (5.0, 6.0)]), seed=0)
    >>> policy.tell([0.25, 5.5], 3.0)
    >>> [tick.get_text() for tick in parallel(policy).axes[0].get_xticklabels()]
    ['x0', 'x1', 'value']
    """
    view = RunView.of(policy, direction)
    axes_ = view.coordinates[:24]
    wide = _WIDE if len(axes_) < 3 else max(8.6, 1.15 * (len(axes_) + 1))
    with canvas(wide, _HIGH) as figure:
        axes = figure.add_subplot()
        low, high = view.window()
        # A value beyond the axis has no height on it: an arrow leaves for the end of the picture, outside the scale.
        heights = np.where(inside(view.y, low, high), (view.y - low) / (high - low), np.nan)
        lines = np.column_stack([*(c.unit(view.X[:, c.index]) for c in axes_), heights])
        order = few(view.quality, _LINES)
        order = order[np.argsort(view.quality[order], kind="stable")]
        shades = ramp()
        for rank, i in enumerate(order):
            level = int((LEVELS - 1) * (rank + 1) / max(len(order), 1))
            axes.plot(lines[i], color=shades[level], linewidth=1.1, alpha=0.9)
        if len(order):
            axes.plot(lines[order[-1]], color=color("accent"), linewidth=2.0)
        for i in order[np.isnan(heights[order])]:
            axes.annotate(
                "", (len(axes_), 0.0 if view.y[i] < low else 1.0), (len(axes_) - 1, lines[i, -2]),
                xycoords=("data", "axes fraction"), textcoords="data", annotation_clip=False,
                arrowprops={"arrowstyle": "-|>", "color": color("muted"), "linewidth": 0.8},
            )  # fmt: skip
        edge.note(axes, view.y, low, high, short(label, 16))
        ends = [c.ends() for c in axes_] + [[(0.0, number(low)), (1.0, number(high))]]
        for place, marks in enumerate(ends):
            axes.axvline(place, color=color("muted"), linewidth=0.7, zorder=0)
            for height, text in marks:
                axes.annotate(
                    short(text, 14), (place, height), xytext=(3, 0), textcoords="offset points", fontsize=7,
                    va="center", color=color("ink"), bbox={"facecolor": color("card"), "edgecolor": "none", "pad": 0.6},
                )  # fmt: skip
        axes.set_xticks(range(len(ends)), [*(short(c.name, 16) for c in axes_), short(label, 16)])
        axes.set_xlim(-0.1, len(ends) - 0.55)
        axes.set_ylim(-0.06, 1.06)
        axes.yaxis.set_visible(False)
        axes.spines[:].set_visible(False)
        axes.tick_params(axis="x", length=0)
    return figure


def slices(
    policy: Policy | Result | RunView,
    *,
    coordinates: Sequence[int] | None = None,
    direction: str | None = None,
    label: str = "value",
) -> Figure:
    """Draw the belief along each coordinate, the others held at the recommended point.

    Policies without a posterior get the measured values only.

    Parameters
    ----------
    policy, direction, label
        As in :func:`trace`.
    coordinates : sequence of int, optional
        Which coordinates; by default all that vary.

    >>> from surefoot import Box, RandomSearch
    >>> policy = RandomSearch(Box([(0.0, 1.0), (5.0, 6.0)]), seed=0)
    >>> policy.tell([0.25, 5.5], 3.0)
    >>> len(slices(policy, coordinates=[1]).axes)
    1
    """
    view = RunView.of(policy, direction)
    chosen = view.coordinates if coordinates is None else [view.coordinate(i) for i in coordinates]
    columns = 1 if len(chosen) == 1 else 2 if len(chosen) < 5 else 3
    rows = math.ceil(len(chosen) / columns)
    wide, high = (3.3, 2.2) if columns == 1 else (3.2 * columns, 2.3 * rows)
    with canvas(wide, high) as figure:
        for place, coordinate in enumerate(chosen):
            axes = figure.add_subplot(rows, columns, place + 1)
            _slice(axes, view, coordinate)
            axes.set_xlabel(short(coordinate.name, 40))
            if place % columns == 0:
                axes.set_ylabel(short(label, 24))
    return figure


def map2d(
    policy: Policy | Result | RunView,
    *,
    coordinates: tuple[int, int] | None = None,
    what: str = "mean",
    direction: str | None = None,
    label: str = "value",
) -> Figure:
    """Draw the belief over two coordinates, the others held at the recommended point, with the runs on top.

    On ``Paths`` the way of the vehicle is drawn too.

    Parameters
    ----------
    policy, direction, label
        As in :func:`trace`.
    coordinates : pair of int, optional
        Which two; by default those with the largest :func:`influence`.
    what : {"mean", "std"}
        The expected value, or the standard deviation.

    >>> import surefoot
    >>> box = surefoot.Box([(0.0, 1.0), (0.0, 1.0)])
    >>> result = surefoot.optimize(lambda x: -((x[0] - 0.3) ** 2) - x[1], box, 6, seed=0)
    >>> map2d(result.policy).axes[0].get_ylabel()
    'x1'
    """
    if what not in ("mean", "std"):
        raise ValueError(f"what must be 'mean' or 'std', got {what!r}")
    view = RunView.of(policy, direction)
    if coordinates is None:
        ranked = [i for i in influence(view) if not view.coordinate(i).labels]
        if len(ranked) < 2:
            raise ValueError("a map needs two coordinates that are numbers and vary")
        coordinates = (min(ranked[:2]), max(ranked[:2]))
    across, up = (view.coordinate(i) for i in coordinates)
    with canvas(_WIDE, _HIGH) as figure:
        axes = figure.add_subplot()
        u, v = across.grid(49), up.grid(49)
        if view.posterior is not None and len(u) > 1 and len(v) > 1:
            points = np.repeat(view.reference[None], len(u) * len(v), axis=0)
            points[:, across.index], points[:, up.index] = (g.ravel() for g in np.meshgrid(u, v))
            mean, std = view.predict(points)
            surface = (mean if what == "mean" else std).reshape(len(v), len(u))
            name = label if what == "mean" else f"standard deviation of {label}"
            shades, bounds = ramp(), (-np.inf, np.inf)
            if what == "mean":  # the stronger the better, whatever the direction
                bounds = view.window()
                shades = shades[:: int(view.sign)]
            _filled(figure, axes, u, v, surface, shades, short(name, 36), bounds)
        _draw_way(axes, view, across.index, up.index)
        _scatter_runs(axes, view, across.index, up.index)
        across.prepare(axes, "x")
        up.prepare(axes, "y")
        axes.set(xlabel=short(across.name, 40), ylabel=short(up.name, 32))
        axes.spines[:].set_visible(True)
        _legend(figure, axes)
    return figure


def sampled(view: RunView) -> bool:
    """Whether there are so many runs that the pictures draw the best and an even sample of the others.

    >>> from surefoot import Box, RandomSearch
    >>> sampled(RunView(RandomSearch(Box([(0.0, 1.0)]), seed=0)))
    False
    """
    return len(view.y) > _LINES


def influence(policy: Policy | Result | RunView) -> list[int]:
    """Return the coordinates that vary, those along which the belief about the value varies most first.

    Without a posterior the order is the domain's.

    >>> import surefoot
    >>> box = surefoot.Box([(0.0, 1.0), (0.0, 1.0)])
    >>> influence(surefoot.optimize(lambda x: -5 * (x[1] - 0.3) ** 2, box, 9, seed=0).policy)
    [1, 0]
    """
    view = RunView.of(policy)
    if view.posterior is None:
        return [c.index for c in view.coordinates]
    grids = [c.grid(33) for c in view.coordinates]
    mean, _ = view.predict(np.concatenate([view.along(c, g) for c, g in zip(view.coordinates, grids, strict=True)]))
    parts = np.split(mean, np.cumsum([len(grid) for grid in grids])[:-1])
    spans = {c.index: float(np.ptp(part)) for c, part in zip(view.coordinates, parts, strict=True)}
    return sorted(spans, key=lambda i: -spans[i])


# -- drawing ---------------------------------------------------------------------------------------------------------


def _slice(axes: Axes, view: RunView, coordinate: Coordinate) -> None:
    low, high = _padded(*view.hopes(*view.window()))  # the same in all slices, so that they can be compared
    drawn = few(view.quality, _DOTS)
    column, values = view.X[drawn, coordinate.index], view.y[drawn]
    shown = inside(values, low, high)
    size = 11 if len(drawn) < _DOTS else 5
    edge.mark(axes, column, values, low, high)
    edge.note(axes, view.y, low, high)
    axes.scatter(column[shown], values[shown], s=size, color=color("muted"), alpha=0.55, linewidth=0, clip_on=False)
    if view.posterior is not None:
        grid = coordinate.grid(121)
        mean, std = view.predict(view.along(coordinate, grid))
        half = view.half * std
        if coordinate.labels:
            edge.mark(axes, grid, mean, low, high)
            axes.errorbar(grid, mean, half, fmt="o", color=color("belief"), markersize=4.5, capsize=3)
        else:
            axes.fill_between(grid, mean - half, mean + half, color=color("belief"), alpha=0.2, linewidth=0)
            axes.plot(grid, mean, color=color("belief"), marker="." if len(grid) < 20 else "")
    if view.recommended is not None:
        axes.axvline(view.recommended[coordinate.index], color=color("accent"), linewidth=1.2, linestyle=(0, (4, 3)))
    for status, marker, paint in (("failed", "x", "bad"), ("pending", "^", "accent")):
        places = np.array([row.x[coordinate.index] for row in view.rows if row.status == status])
        axes.scatter(
            places, np.full(len(places), _worse_end(view)), s=16, marker=marker, linewidth=1.1, color=color(paint),
            transform=axes.get_xaxis_transform(), clip_on=False, zorder=4,
        )  # fmt: skip
    coordinate.prepare(axes, "x")
    axes.set_ylim(low, high)
    axes.grid(axis="y")


def _filled(
    figure: Figure,
    axes: Axes,
    u: Array,
    v: Array,
    surface: Array,
    shades: list[str],
    name: str,
    bounds: tuple[float, float],
) -> None:
    """Fill the surface by levels; what lies beyond the bounds has one shade, and the color bar ends in an arrow."""
    from matplotlib.ticker import MaxNLocator

    kept = np.clip(surface, *bounds)
    low, high = _padded(float(kept.min()), float(kept.max()), 1e-9)
    under, over = bool(surface.min() < low), bool(surface.max() > high)
    filled = axes.contourf(
        u, v, surface, levels=np.linspace(low, high, LEVELS + 1),
        colors=[*shades[:1] * under, *shades, *shades[-1:] * over],
        extend=("both" if over else "min") if under else "max" if over else "neither",
    )  # fmt: skip
    reach = [f"down to {number(float(surface.min()))} below the scale"] * under
    edge.say(axes, "; ".join(reach + [f"up to {number(float(surface.max()))} above the scale"] * over))
    filled.set_edgecolor("face")  # no hairlines between neighboring levels
    filled.set_linewidth(0.4)
    ticks = [tick for tick in MaxNLocator(6).tick_values(low, high) if low <= tick <= high]
    bar = figure.colorbar(filled, ax=axes, label=name, ticks=ticks, format=lambda value, _: number(value))
    bar.outline.set_visible(False)


def _draw_way(axes: Axes, view: RunView, across: int, up: int) -> None:
    """From the start through the stops of all moves that were made."""
    if not view.policy.domain.travels:
        return
    domain = view.policy.trials.journey.domain
    told = {o.id for o in view.policy.history}
    stops = [stop for query in view.policy.queries if query.id in told for stop in query.note["stops"]]
    way = domain.points[[domain.start, *stops]]
    axes.plot(way[:, across], way[:, up], color=color("ink"), linewidth=1.1, label="way", clip_on=False, zorder=2)
    axes.scatter(
        way[0, across], way[0, up], marker="s", s=26, color=color("ink"), label="start", clip_on=False, zorder=3
    )


def _scatter_runs(axes: Axes, view: RunView, across: int, up: int) -> None:
    shapes: dict[str, dict[str, Any]] = {
        "measured": {"marker": "o", "facecolor": color("ink"), "edgecolor": color("paper"), "s": 17, "linewidth": 0.7},
        "pending": {"marker": "o", "facecolor": "none", "edgecolor": color("accent"), "s": 24, "linewidth": 1.3},
        "failed": {"marker": "x", "color": color("bad"), "s": 24, "linewidth": 1.4},
    }
    for status, shape in shapes.items():
        points = np.array([row.x for row in view.rows if row.status == status])
        if status == "measured":
            points = view.X[few(view.quality, _DOTS)]
        if len(points):
            axes.scatter(points[:, across], points[:, up], label=status, clip_on=False, zorder=3, **shape)
    if view.recommended is not None:
        axes.scatter(
            view.recommended[across], view.recommended[up], marker="*", s=120, facecolor=color("accent"),
            edgecolor=color("paper"), linewidth=0.8, label="recommended", clip_on=False, zorder=4,
        )  # fmt: skip


def _legend(figure: Figure, axes: Axes) -> None:
    """A legend above the picture, in as many lines as its names need."""
    names = axes.get_legend_handles_labels()[1]
    fits = max(1, min(len(names), 4 if sum(map(len, names)) < 42 else 3))
    figure.legend(loc="outside upper left", ncols=fits, columnspacing=1.2, handletextpad=0.4, borderaxespad=0.2)


def _worse_end(view: RunView) -> float:
    """The end of the vertical axis where runs without a value are marked, as a share of its height."""
    return 0.97 if view.direction == "minimize" else 0.03


def _padded(low: float, high: float, share: float = 0.06) -> tuple[float, float]:
    margin = share * (high - low) or share * abs(high) or share
    return low - margin, high + margin
