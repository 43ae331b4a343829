"""Pictures made of characters, for terminals.

>>> sparkline([1.0, 2.0, 4.0, 8.0])
'▁▂▄█'
>>> print("\\n".join(chart([0.0, 1.0, 1.0, 3.0], width=24, height=2)))
   3 ┤             █████
   0 ┤ ▁▁▁▁▅▅▅▅▅▅▅▅█████

The characters are Unicode blocks; ``ascii=True`` uses what every terminal can show.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from rich.console import Console
from rich.text import Text

from surefoot.report.view import number

__all__ = ["along", "chart", "say", "sparkline"]

Array = NDArray[np.float64]

_BLOCKS = "▁▂▃▄▅▆▇█"
_PLAIN = "_.-~=+*#"


def say(screen: Console, text: str | Text) -> None:
    """Print a line as it is: no markup, no colors of its own, not folded.

    >>> import io
    >>> screen = Console(file=io.StringIO(), width=10)
    >>> say(screen, "[a] longer than ten")
    >>> screen.file.getvalue()
    '[a] longer than ten\\n'
    """
    screen.print(Text(text) if isinstance(text, str) else text, highlight=False, soft_wrap=True)


def sparkline(values: ArrayLike, width: int | None = None, *, ascii: bool = False) -> str:
    """Return one character per value, its height between the lowest and the highest; a blank for NaN.

    Parameters
    ----------
    values : array, shape (n,)
        What to draw.
    width : int, optional
        Most characters; longer series are drawn at evenly spaced entries, the last included.
    ascii : bool
        Only characters that every terminal has.

    >>> sparkline([0.0, 0.5, float("nan"), 1.0])
    '▁▅ █'
    >>> sparkline(range(100), width=5)
    '▁▃▅▆█'
    """
    series = np.asarray(values, dtype=np.float64).ravel()
    if width is not None and len(series) > width:
        series = series[np.linspace(0, len(series) - 1, max(width, 1)).round().astype(int)]
    marks = _PLAIN if ascii else _BLOCKS
    heights = np.floor(_share(series) * (len(marks) - 1) + 0.5)
    return "".join(" " if np.isnan(h) else marks[int(h)] for h in heights)


def chart(values: ArrayLike, *, width: int = 72, height: int = 6, ascii: bool = False) -> list[str]:
    """Return the lines of a filled chart over the entries, with the highest and the lowest value beside it.

    >>> chart([1.0, 2.0], width=12, height=1, ascii=True)
    ['   2 | __###']
    """
    series = np.asarray(values, dtype=np.float64).ravel()
    finite = series[np.isfinite(series)]
    if not len(finite):
        return []
    labels = [number(float(finite.max())), number(float(finite.min()))]
    margin = max(4, *map(len, labels))
    columns = max(width - margin - 3, 1)
    # Each column shows the entry it falls on: few entries become broad steps, of many the last is kept.
    series = series[np.ceil(np.arange(1, columns + 1) * len(series) / columns).astype(int) - 1]
    marks = _PLAIN if ascii else _BLOCKS
    # At least one eighth everywhere a value is known, so that the lowest can be told from none.
    filled = np.where(np.isnan(series), 0.0, np.maximum(_share(series) * height * 8.0, 1.0))
    lines = []
    for row in range(height - 1, -1, -1):
        eighths = np.clip(filled - 8.0 * row, 0.0, 8.0).round().astype(int)
        body = "".join(" " if e == 0 else marks[e - 1] for e in eighths)
        label = labels[0] if row == height - 1 else labels[1] if row == 0 else ""
        lines.append(f"{label:>{margin}} {'|' if ascii else '┤'} {body}")
    return lines


def along(units: ArrayLike, values: ArrayLike, bins: int = 12, *, ascii: bool = False) -> str:
    """Return a sparkline of the best value in each part of an axis; a blank where nothing was measured.

    Parameters
    ----------
    units : array, shape (n,)
        Positions on the axis, from 0 to 1.
    values : array, shape (n,)
        What was measured there; higher is drawn higher.
    bins : int
        How many parts.

    >>> along([0.05, 0.1, 0.9], [1.0, 3.0, 2.0], bins=4)
    '█  ▁'
    """
    best = np.full(bins, np.nan)
    cells = np.minimum((np.asarray(units, dtype=np.float64) * bins).astype(int), bins - 1)
    np.fmax.at(best, cells, np.asarray(values, dtype=np.float64))
    return sparkline(best, ascii=ascii)


def _share(series: Array) -> Array:
    """Where each value lies between the lowest (0) and the highest (1); the middle where all are equal."""
    finite = series[np.isfinite(series)]
    if not len(finite):
        return np.full_like(series, np.nan)
    low, high = float(finite.min()), float(finite.max())
    if low == high:
        return np.full_like(series, 0.5) + 0.0 * series
    # In units of the largest, so that neither the largest doubles overflow nor the smallest vanish.
    unit = max(-low, high)
    low, high = low / unit, high / unit
    return np.asarray((series / unit - low) / (high - low))
