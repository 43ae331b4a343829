"""Colors that have a name, and figures that change with the reader's theme.

A figure is drawn in the light theme's colors. :func:`svg` turns it into SVG in which every one of these colors is a CSS
variable, so that the page it stands on can be light or dark without drawing twice.

>>> variables("dark").startswith("--paper:#")
True
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["LEVELS", "STYLE", "canvas", "color", "ramp", "require_matplotlib", "svg", "variables"]

LEVELS = 12
"""Steps from the lowest value to the highest."""


def _between(stops: list[str], count: int) -> list[str]:
    """Colors at equal steps along a line through several colors."""
    rgb = [[int(stop[i : i + 2], 16) for i in (1, 3, 5)] for stop in stops]
    colors = []
    for k in range(count):
        place = k * (len(stops) - 1) / (count - 1)
        i = min(int(place), len(stops) - 2)
        mixed = [a + (place - i) * (b - a) for a, b in zip(rgb[i], rgb[i + 1], strict=True)]
        colors.append("#" + "".join(f"{round(c):02x}" for c in mixed))
    return colors


def _theme(roles: dict[str, str], stops: list[str]) -> dict[str, str]:
    return roles | {f"level{i}": value for i, value in enumerate(_between(stops, LEVELS))}


_THEMES = {
    "light": _theme(
        {
            "paper": "#fbfaf7",
            "card": "#ffffff",
            "ink": "#1c2430",
            "muted": "#5d6875",
            "line": "#d9dde1",
            "accent": "#c2570c",
            "belief": "#0f7a5a",
            "bad": "#b3261e",
        },
        ["#e8eeea", "#a8cfc0", "#4fa184", "#0a5a42"],
    ),
    "dark": _theme(
        {
            "paper": "#12161b",
            "card": "#1a2027",
            "ink": "#e7eaed",
            "muted": "#9aa5b1",
            "line": "#343d47",
            "accent": "#ff9a4d",
            "belief": "#5fd0a8",
            "bad": "#ff7a70",
        },
        ["#242c33", "#2f5a50", "#4fa88a", "#b5f5d9"],
    ),
}


def color(role: str) -> str:
    """Return the color a role is drawn in.

    >>> color("paper")
    '#fbfaf7'
    """
    return _THEMES["light"][role]


def ramp(count: int = LEVELS) -> list[str]:
    """Return ``count`` of the colors from low to high.

    >>> len(ramp(5))
    5
    """
    return [color(f"level{round(i * (LEVELS - 1) / max(count - 1, 1))}") for i in range(count)]


def variables(theme: str) -> str:
    """Return a theme as CSS declarations.

    >>> "--ink:#1c2430;" in variables("light")
    True
    """
    return "".join(f"--{role}:{value};" for role, value in _THEMES[theme].items())


STYLE: dict[str, Any] = {
    "axes.edgecolor": color("muted"),
    "axes.facecolor": "none",
    "axes.grid": False,
    "axes.labelcolor": color("ink"),
    "axes.labelsize": 8,
    "axes.linewidth": 0.7,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlecolor": color("ink"),
    "axes.titlesize": 8.5,
    "figure.dpi": 150,
    "figure.facecolor": "none",
    "font.family": ["DejaVu Sans"],
    "font.size": 8,
    "grid.color": color("line"),
    "grid.linewidth": 0.6,
    "hatch.color": color("line"),
    "legend.fontsize": 7.5,
    "legend.frameon": False,
    "legend.labelcolor": color("ink"),
    "lines.linewidth": 1.6,
    "savefig.facecolor": "none",
    "text.color": color("ink"),
    "text.parse_math": False,  # names of parameters are text, whatever signs they contain
    "xtick.color": color("muted"),
    "xtick.labelcolor": color("ink"),
    "xtick.labelsize": 7.5,
    "ytick.color": color("muted"),
    "ytick.labelcolor": color("ink"),
    "ytick.labelsize": 7.5,
}
"""Matplotlib settings of all figures."""


def require_matplotlib() -> Any:
    """Import Matplotlib, or say how to install it.

    >>> require_matplotlib().__name__
    'matplotlib'
    """
    try:
        import matplotlib as module
    except ImportError:
        from surefoot.errors import MissingExtra

        raise MissingExtra("pictures need matplotlib: pip install 'surefoot[plot]'") from None
    return module


@contextmanager
def canvas(wide: float, high: float) -> Iterator[Figure]:
    """Yield a figure of this size, in inches, in the house style and without the state of pyplot.

    >>> with canvas(4.0, 3.0) as figure:
    ...     axes = figure.add_subplot()
    >>> axes.spines["top"].get_visible()
    False
    """
    with require_matplotlib().rc_context(STYLE):
        from matplotlib.figure import Figure

        yield Figure(figsize=(wide, high), layout="constrained")


def svg(figure: Figure, *, name: str, description: str = "") -> str:
    """Return a figure as an SVG element to stand inside an HTML page.

    Parameters
    ----------
    figure : Figure
        Drawn with :data:`STYLE`.
    name : str
        Prefix of the identifiers inside, so that several figures can share a page.
    description : str
        What a reader who does not see the picture is told.

    >>> from matplotlib.figure import Figure
    >>> svg(Figure(), name="empty").startswith('<svg role="img"')
    True
    """
    buffer = io.StringIO()
    settings = STYLE | {"svg.fonttype": "none", "svg.hashsalt": name, "svg.image_inline": True}
    with require_matplotlib().rc_context(settings), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph")  # the reader's browser has the fonts that this machine lacks
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    text = buffer.getvalue()
    box = re.search(r'viewBox="([^"]*)"', text)
    text = re.sub(r"<!--.*?-->|<metadata>.*?</metadata>|<style.*?</style>", "", text, flags=re.DOTALL)
    body = text[text.index(">", text.index("<svg")) + 1 :]
    body = re.sub(r"<[^>]+>", lambda tag: _themed(tag.group(), name), body)  # tags only: text belongs to the user
    head = f'<svg role="img" aria-label="{escape(description)}" viewBox="{box.group(1) if box else "0 0 1 1"}">'
    return head + body.strip()


def _themed(tag: str, name: str) -> str:
    """Turn the colors of a tag into variables, make its identifiers the figure's own, and shorten its numbers."""
    tag = re.sub(r"\d+\.\d{3,}", lambda digits: f"{float(digits.group()):.2f}".rstrip("0").rstrip("."), tag)
    tag = re.sub(r'(\bid="|\bhref="#|url\(#)', rf"\g<1>{name}-", tag.replace("xlink:href", "href"))
    for role, value in _THEMES["light"].items():
        tag = tag.replace(value, f"var(--{role})")
    return tag
