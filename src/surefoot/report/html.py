"""The page around a report, and the pieces it is made of; every text that came from outside is escaped.

>>> document("A page", [section("Runs", tiles({"measured": 3}, True))]).startswith("<!doctype html>")
True
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from html import escape
from importlib.resources import files

import surefoot
from surefoot.report.theme import variables
from surefoot.report.view import short

__all__ = ["definitions", "document", "grid", "section", "table", "tiles"]


def document(title: str, sections: Iterable[str]) -> str:
    """Return a whole page from its sections of HTML.

    >>> document("A & B", ["<p>Hello.</p>"]).count("A &amp; B")
    1
    """
    return _DOCUMENT.format(
        title=escape(title),
        light=variables("light"),
        dark=variables("dark"),
        css=files("surefoot.report").joinpath("page.css").read_text(encoding="utf-8"),
        body="\n".join(sections),
        written=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        version=escape(surefoot.__version__),
    )


_DOCUMENT = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="surefoot {version}">
<title>{title}</title>
<style>
:root {{ {light} }}
@media (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}
{css}</style>
</head>
<body>
<main>
{body}
<footer class="muted">Written {written} by surefoot {version}.</footer>
</main>
</body>
</html>
"""


def tiles(shown: Mapping[str, object], stressed: bool) -> str:
    """Return named values in boxes, the first one larger where it is ``stressed``.

    >>> tiles({"runs": 3}, False)
    '<dl class="facts"><div class="card"><dt>runs</dt><dd>3</dd></div></dl>'
    """
    boxes = "".join(
        f'<div class="card{" main" if i == 0 and stressed else ""}">'
        f"<dt>{escape(short(str(key), 60))}</dt><dd>{_breakable(short(str(value), 200))}</dd></div>"
        for i, (key, value) in enumerate(shown.items())
    )
    return f'<dl class="facts">{boxes}</dl>'


def grid(cards: Iterable[str], kind: str = "") -> str:
    """Return pictures side by side.

    >>> grid(["<figure></figure>"]).count("<figure>")
    1
    """
    return f'<div class="pictures {kind}">\n{"".join(cards)}\n</div>'


def section(title: str, content: str) -> str:
    """Return a part of the page under its title.

    >>> "<h2>A &amp; B</h2>" in section("A & B", "")
    True
    """
    return f"<section>\n<h2>{escape(title)}</h2>\n{content}\n</section>"


def definitions(entries: Mapping[str, str]) -> str:
    """Return a table of names and what they stand for.

    >>> "<pre>1</pre>" in definitions({"seed": "1"})
    True
    """
    rows = "".join(
        f'<tr><th scope="row">{escape(key)}</th><td><pre>{escape(value)}</pre></td></tr>'
        for key, value in entries.items()
    )
    return f'<div class="card scroll"><table class="definitions"><tbody>{rows}</tbody></table></div>'


def table(heads: Iterable[str], rows: Iterable[tuple[str, list[str]]], kind: str = "") -> str:
    """Return a table; each row is its class and its cells.

    >>> table(["run"], [("best", ["0"])]).count("<td>")
    1
    """
    head = "".join(f'<th scope="col">{escape(short(text, 60))}</th>' for text in heads)
    body = "".join(
        f'<tr class="{state}">' + "".join(f"<td>{escape(short(cell, 200))}</td>" for cell in cells) + "</tr>"
        for state, cells in rows
    )
    return f'<table class="{kind}"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'


def _breakable(text: str) -> str:
    """Escaped text whose CamelCase words may be broken between their parts."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "<wbr>", escape(text))
