"""Values that an axis leaves out: marked at its edge and told in words, never drawn where they are not.

>>> beyond([-1e6, 0.2, 0.5, 7.0], 0.0, 1.0)
'1 value below the axis, lowest -1e6; 1 value above the axis, highest 7'
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot.report.theme import color
from surefoot.report.view import number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["beyond", "inside", "mark", "note", "say"]

Array = NDArray[np.float64]


def beyond(values: ArrayLike, low: float, high: float, axis: str = "the axis") -> str:
    """Return in words how many values lie outside a range, and how far out; an empty text where none does.

    >>> beyond([1.0, 2.0], 0.0, 3.0)
    ''
    """
    found = np.asarray(values, dtype=np.float64)
    words = []
    for outside, place, extreme in (
        (found[found < low], f"below {axis}, lowest", np.min),
        (found[found > high], f"above {axis}, highest", np.max),
    ):
        if outside.size:
            plural = "" if outside.size == 1 else "s"
            words.append(f"{outside.size} value{plural} {place} {number(float(extreme(outside)))}")
    return "; ".join(words)


def inside(values: Array, low: float, high: float) -> NDArray[np.bool_]:
    """Return which values lie in a range; NaN does not.

    >>> inside(np.array([0.0, np.nan, 2.0]), 0.0, 1.0)
    array([ True, False, False])
    """
    return np.asarray((values >= low) & (values <= high))


def mark(axes: Axes, places: ArrayLike, values: ArrayLike, low: float, high: float) -> None:
    """Draw a caret at the edge for each value outside a range; its height is the axis's end, not a value.

    >>> from surefoot.report.theme import canvas
    >>> with canvas(2.0, 2.0) as figure:
    ...     axes = figure.add_subplot()
    ...     mark(axes, [1, 2, 3], [-1e6, 0.5, 7.0], 0.0, 1.0)
    >>> [caret.get_offsets().tolist() for caret in axes.collections]
    [[[1.0, 0.0]], [[3.0, 1.0]]]
    """
    x, found = np.asarray(places, dtype=np.float64), np.asarray(values, dtype=np.float64)
    for outside, height, marker in ((found < low, 0.0, 7), (found > high, 1.0, 6)):  # carets, the tip at the edge
        if outside.any():
            axes.scatter(
                x[outside], np.full(outside.sum(), height), s=30, marker=marker, color=color("ink"), linewidth=0,
                transform=axes.get_xaxis_transform(), clip_on=False, zorder=5,
            )  # fmt: skip


def note(axes: Axes, values: ArrayLike, low: float, high: float, axis: str = "the axis") -> None:
    """Write above a picture which values it does not show.

    >>> from surefoot.report.theme import canvas
    >>> with canvas(2.0, 2.0) as figure:
    ...     axes = figure.add_subplot()
    ...     note(axes, [-1e6, 0.5], 0.0, 1.0)
    >>> axes.get_title(loc="left")
    '1 value below the axis, lowest -1e6'
    """
    say(axes, beyond(values, low, high, axis))


def say(axes: Axes, words: str) -> None:
    """Write a line above a picture, if there is something to say.

    >>> from surefoot.report.theme import canvas
    >>> with canvas(2.0, 2.0) as figure:
    ...     axes = figure.add_subplot()
    ...     say(axes, "")
    >>> axes.get_title(loc="left")
    ''
    """
    if words:
        axes.set_title(words, loc="left", fontsize=7, color=color("muted"), pad=4)
