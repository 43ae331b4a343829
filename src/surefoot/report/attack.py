"""Pictures of attacks on a classifier: how many succeed within how many queries, and what the images look like.

>>> len(success_curves({"BOS²": [(40, 0.5), (90, 0.75)]}, budget=100).axes)
1
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from surefoot.report.html import definitions, document, grid, section, table, tiles
from surefoot.report.theme import canvas, color, svg
from surefoot.report.view import short

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["image_grid", "robustness_page", "success_curves"]

Array = NDArray[np.float64]
_COLORS = ("belief", "accent", "ink", "bad", "muted")
_STYLES = ("-", "--", ":")


def success_curves(curves: Mapping[str, Sequence[tuple[int, float]]], budget: int) -> Figure:
    """Draw the share of attacks that had succeeded against the queries, one line for each method.

    Parameters
    ----------
    curves : mapping from name to list of (queries, share)
        Where each curve rises, and to what.
    budget : int
        Queries that were allowed.

    >>> success_curves({}, budget=10)
    Traceback (most recent call last):
    ...
    ValueError: there is no curve to draw
    """
    if not curves:
        raise ValueError("there is no curve to draw")
    with canvas(5.2, 3.1) as figure:
        axes = figure.add_subplot()
        for number, (name, points) in enumerate(curves.items()):
            x = [0, *(count for count, _ in points), budget]
            y = [0.0, *(share for _, share in points), points[-1][1] if points else 0.0]
            line = _STYLES[number // len(_COLORS) % len(_STYLES)]
            axes.step(x, y, where="post", color=color(_COLORS[number % len(_COLORS)]), linestyle=line, label=name)
        axes.set(xlabel="queries", ylabel="share of attacks that succeeded", xlim=(0, budget), ylim=(0.0, 1.03))
        axes.grid(axis="y")
        axes.set_axisbelow(True)
        if len(curves) > 1:
            axes.legend(loc="best")
    return figure


def image_grid(
    pairs: Sequence[tuple[Array, Array]], titles: Sequence[str], *, clip: tuple[float, float] = (0.0, 1.0)
) -> Figure:
    """Draw images in rows of three: as they were, what was added (enlarged), and what the model was shown.

    Parameters
    ----------
    pairs : sequence of (image, adversarial)
        Of shape (H, W) or (H, W, c) each.
    titles : sequence of str
        One for each row.
    clip : tuple of float
        Range of the pixels.

    >>> figure = image_grid([(np.zeros((4, 4)), np.full((4, 4), 0.1))], ["a 3 for an 8"])
    >>> len(figure.axes)
    3
    """
    if not pairs or len(pairs) != len(titles):
        raise ValueError(f"there must be a title for each of some pairs, got {len(pairs)} pairs, {len(titles)} titles")
    low, high = clip
    columns = 2 if len(pairs) > 4 else 1
    rows = -(-len(pairs) // columns)
    with canvas(3.3 * columns, 1.22 * rows + 0.15) as figure:
        axes = figure.subplots(rows, 3 * columns, squeeze=False)
        for cell in axes.flat:
            cell.set_axis_off()
        for number, ((image, adversarial), title) in enumerate(zip(pairs, titles, strict=True)):
            row, start = divmod(number, columns)
            change = adversarial - image
            largest = float(np.abs(change).max()) or 1.0
            shown = [(image - low) / (high - low), 0.5 + 0.5 * change / largest, (adversarial - low) / (high - low)]
            for cell, picture in zip(axes[row, 3 * start : 3 * start + 3], shown, strict=True):
                cell.imshow(np.clip(picture, 0.0, 1.0), cmap="gray", vmin=0.0, vmax=1.0, interpolation="nearest")
            axes[row, 3 * start + 1].set_title(short(title, 44), fontsize=7)
    return figure


def robustness_page(
    *,
    title: str,
    purpose: str,
    facts: Mapping[str, object],
    settings: Mapping[str, str],
    rows: Sequence[Mapping[str, object]],
    figures: Sequence[tuple[Figure, str]] = (),
) -> str:
    """Return the page of a robustness report: one HTML file with everything in it.

    Parameters
    ----------
    title, purpose : str
        Heading, and what it is for.
    facts : mapping
        Short facts, the most important one first.
    settings : mapping
        How it was made.
    rows : sequence of mapping
        One for each attack, with the same keys; rows without ``success`` are muted.
    figures : sequence of (Figure, caption)
        Pictures.

    >>> html = robustness_page(title="A <net>", purpose="Mine.", facts={"success rate": "50 %"}, settings={}, rows=[])
    >>> "A &lt;net&gt;" in html, html.count("<section>")
    (True, 2)
    """
    head = f"<header>\n<h1>{escape(title)}</h1>\n<p>{escape(purpose)}</p>\n{tiles(facts, True)}\n</header>"
    cards = [
        f'<figure class="card"><div class="scroll">{svg(figure, name=f"a{number}", description=caption)}</div>'
        f"<figcaption>{escape(caption)}</figcaption></figure>"
        for number, (figure, caption) in enumerate(figures)
    ]
    pictures = [section("Pictures", grid(cards))] if cards else []
    heads = list(rows[0]) if rows else ["attack"]
    body = [("" if row.get("success", True) else "pending", [_cell(value) for value in row.values()]) for row in rows]
    attacks = f'<div class="card scroll runs">{table(heads, body)}</div>'
    return document(title, [head, *pictures, section("Attacks", attacks), section("Settings", definitions(settings))])


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)
