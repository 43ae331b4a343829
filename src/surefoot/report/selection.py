"""A picture of a robust selection: where the chosen rows lie, and how the value grows and falls."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from surefoot.report.theme import canvas, color
from surefoot.report.view import short
from surefoot.select.choice import Chosen

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw", "plane"]

Array = NDArray[np.float64]
_DOTS = 4000  # of a larger table an even sample of the rows is drawn


def draw(values: Array, names: Sequence[str], found: Chosen, path: Path, *, columns: bool = False) -> Path:
    """Draw a selection into a file and return its path.

    Parameters
    ----------
    values : array of shape (rows, columns)
        The table.
    names : sequence of str
        Of its columns.
    found : Chosen
        What was chosen out of it.
    path : path
        Where to; the ending says the format.
    columns : bool
        Whether columns were chosen, not rows.

    >>> import tempfile
    >>> from surefoot.select import FacilityLocation, choose
    >>> X = np.random.default_rng(0).normal(size=(40, 3))
    >>> found = choose(FacilityLocation(X), 5, tau=1)
    >>> draw(X, ["a", "b", "c"], found, Path(tempfile.mkdtemp()) / "selection.png").stat().st_size > 10_000
    True
    """
    with canvas(8.6, 3.6) as figure:
        first, second = figure.subplots(1, 2)
        if columns:
            _bars(first, names, found)
        else:
            _map(first, values, names, found)
        _growth(second, found, "columns" if columns else "rows")
        figure.savefig(path, facecolor=color("paper"))
    return path


def plane(values: Array, names: Sequence[str]) -> tuple[Array, tuple[str, str]]:
    """Return every row as a point in the plane, shape (rows, 2), and the names of the two axes.

    Two columns are drawn as they are; more of them along the two directions in which they vary most, once standardized.

    >>> points, axes = plane(np.random.default_rng(0).normal(size=(20, 5)), list("abcde"))
    >>> points.shape, axes
    ((20, 2), ('first principal direction', 'second principal direction'))
    """
    if values.shape[1] == 1:
        return np.column_stack([values[:, 0], np.zeros(len(values))]), (names[0], "")
    if values.shape[1] == 2:
        return values, (names[0], names[1])
    spread = values.std(axis=0)
    scaled = (values - values.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)
    directions = np.linalg.eigh(scaled.T @ scaled)[1][:, ::-1][:, :2]
    directions = directions * np.sign(directions[np.abs(directions).argmax(axis=0), [0, 1]])
    return scaled @ directions, ("first principal direction", "second principal direction")


def _map(axes: Axes, values: Array, names: Sequence[str], found: Chosen) -> None:
    points, labels = plane(values, names)
    shown = np.linspace(0, len(points) - 1, min(len(points), _DOTS)).round().astype(int)
    axes.scatter(points[shown, 0], points[shown, 1], s=6, color=color("level3"), linewidth=0, label="rows")
    parts = (
        (found.selection.robust, "accent", "chosen, robust part"),
        (found.selection.rest, "belief", "chosen"),
    )
    for elements, role, label in parts:
        if elements:
            x, y = points[list(elements)].T
            axes.scatter(x, y, s=34, color=color(role), edgecolor=color("paper"), linewidth=0.6, label=label)
    if found.worst.removed:
        x, y = points[list(found.worst.removed)].T
        axes.scatter(x, y, s=70, marker="x", color=color("bad"), linewidth=1.2, label="lost in the worst case")
    axes.set(xlabel=short(labels[0], 40), ylabel=short(labels[1], 40))
    axes.legend(loc="best", fontsize=6.5)


def _bars(axes: Axes, names: Sequence[str], found: Chosen) -> None:
    """What each chosen column explains in addition to those before it."""
    order = found.selection.order[:24]
    roles = ["accent" if i < len(found.selection.robust) else "belief" for i in range(len(order))]
    places = np.arange(len(order))[::-1]
    axes.barh(places, found.selection.gains[: len(order)], color=[color(role) for role in roles])
    marks = [" ×" if element in found.worst.removed else "" for element in order]
    axes.set_yticks(places, [short(names[i], 20) + mark for i, mark in zip(order, marks, strict=True)])
    axes.set(xlabel="added by the column (× lost in the worst case)")


def _growth(axes: Axes, found: Chosen, what: str) -> None:
    values = np.array(found.selection.values)
    steps = np.arange(1, values.size + 1)
    robust = len(found.selection.robust)
    if robust:
        axes.axvspan(0.5, robust + 0.5, color=color("level1"), linewidth=0, label="robust part")
    axes.plot(steps, values, color=color("belief"), marker="o", markersize=2.5, label="value")
    if found.worst.removed:
        label = f"left after the worst loss of {len(found.worst.removed)}"
        axes.axhline(found.worst.value, color=color("bad"), linestyle="--", linewidth=1.2, label=label)
    axes.set(xlabel=f"{what} chosen", ylabel="value", xlim=(0.5, values.size + 0.5))
    if min(values.min(), found.worst.value) >= 0.0:
        axes.set_ylim(0.0, None)
    axes.locator_params(axis="x", integer=True)
    axes.grid(axis="y")
    axes.legend(loc="lower right", fontsize=6.5)
