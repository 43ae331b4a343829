"""The page of a run: one HTML file with its answer, pictures, runs, settings and environment.

The file stands alone: no scripts, no fonts, nothing from the network. It follows the reader's light or dark theme,
fits a phone, and every text that came from outside is escaped.

>>> import pathlib, tempfile, surefoot
>>> result = surefoot.optimize(lambda x: -((x[0] - 0.3) ** 2), surefoot.Box([(0.0, 1.0)]), 6, seed=0)
>>> path = page(result.policy, pathlib.Path(tempfile.mkdtemp()) / "run.html", title="A parabola")
>>> "<svg" in path.read_text(encoding="utf-8")
True
"""

from __future__ import annotations

import json
import os
import platform
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from importlib.metadata import version
from importlib.resources import files
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import surefoot
from surefoot.domain import Candidates, Domain
from surefoot.loop.errors import NoData
from surefoot.loop.journal import write_atomically
from surefoot.loop.policy import Policy
from surefoot.loop.types import Recommendation
from surefoot.report import plots
from surefoot.report.runs import Run, best_so_far, direction_of, runs
from surefoot.report.theme import svg, variables
from surefoot.report.view import coordinates, number, short

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["environment", "page", "settings"]

_PANELS = 12  # slices on a page
_LONGEST = 2000  # characters of one setting


def page(
    policy: Policy,
    path: str | os.PathLike[str],
    *,
    title: str = "A Surefoot run",
    direction: str | None = None,
    label: str = "value",
    summary: str = "",
    facts: Mapping[str, object] | None = None,
) -> Path:
    """Write the page of a run and return its path.

    Parameters
    ----------
    policy : Policy
        Any policy, at any moment; pending and failed runs are shown as such.
    path : path
        The HTML file; missing directories are made.
    title : str
        Heading of the page.
    direction : {"maximize", "minimize"}, optional
        Which way is better; by default what the journal says.
    label : str
        Name of the measured value.
    summary : str
        What the reader should know first; an empty line starts a new paragraph.
    facts : mapping, optional
        More short facts for the head of the page.

    >>> import pathlib, tempfile
    >>> from surefoot import Box, RandomSearch
    >>> path = page(RandomSearch(Box.unit(2), seed=0), pathlib.Path(tempfile.mkdtemp()) / "empty.html")
    >>> "Nothing was measured yet" in path.read_text(encoding="utf-8")
    True
    """
    direction = direction_of(policy, direction)
    rows = runs(policy, direction=direction)
    try:
        answer = policy.recommend() if direction == "maximize" else policy.recommend().negated()
    except NoData:
        answer = None
    sections = [
        _head(policy, rows, answer, direction, label, title, summary, facts or {}),
        _answer(policy.domain, answer, label),
        _section("Pictures", _pictures(policy, rows, direction, label)),
        _section("Runs", _table_of_runs(policy.domain, rows, direction, label)),
        _section("Settings", _definitions(settings(policy, direction=direction))),
        _section("Environment", _definitions(environment())),
    ]
    css = files("surefoot.report").joinpath("page.css").read_text(encoding="utf-8")
    html = _DOCUMENT.format(
        title=escape(title),
        light=variables("light"),
        dark=variables("dark"),
        css=css,
        body="\n".join(sections),
        written=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        version=escape(surefoot.__version__),
    )
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(target, html)
    return target


def settings(policy: Policy, *, direction: str | None = None) -> dict[str, str]:
    """Return everything that determines the run, as short texts.

    >>> from surefoot import Box, RandomSearch
    >>> settings(RandomSearch(Box.unit(1), seed=7))["seed"]
    '7'
    """
    config = {key: value for key, value in policy.config().items() if key != "domain"}
    stored = {key: value if isinstance(value, str) else json.dumps(value) for key, value in config.items()}
    return {
        "policy": type(policy).__name__,
        "domain": short(repr(policy.domain), _LONGEST),
        "direction": direction_of(policy, direction),
        "seed": str(policy.seed),
        **{key: short("default" if text == "null" else text, _LONGEST) for key, text in stored.items()},
    }


def environment() -> dict[str, str]:
    """Return the versions a run depends on.

    >>> sorted(environment())
    ['numpy', 'python', 'scipy', 'surefoot', 'system']
    """
    return {
        "surefoot": surefoot.__version__,
        "python": platform.python_version(),
        "numpy": version("numpy"),
        "scipy": version("scipy"),
        "system": f"{platform.system()} {platform.machine()}",
    }


# -- sections --------------------------------------------------------------------------------------------------------

_DOCUMENT = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
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


def _section(title: str, content: str) -> str:
    return f"<section>\n<h2>{escape(title)}</h2>\n{content}\n</section>"


def _head(
    policy: Policy,
    rows: Sequence[Run],
    answer: Recommendation | None,
    direction: str,
    label: str,
    title: str,
    summary: str,
    facts: Mapping[str, object],
) -> str:
    total = {status: sum(row.status == status for row in rows) for status in ("measured", "failed", "pending")}
    shown: dict[str, object] = {}
    if answer is not None:
        best = best_so_far(rows, direction=direction)[-1]
        shown[f"best measured {label}"] = number(float(best))
    shown |= {**facts, "runs": total["measured"] + total["failed"]}
    shown |= {status: total[status] for status in ("failed", "pending") if total[status]}
    shown["policy"] = type(policy).__name__
    tiles = "".join(
        f'<div class="card{" main" if i == 0 and answer is not None else ""}">'
        f"<dt>{escape(key)}</dt><dd>{_breakable(str(value))}</dd></div>"
        for i, (key, value) in enumerate(shown.items())
    )
    paragraphs = "".join(f"<p>{escape(text.strip())}</p>" for text in summary.split("\n\n") if text.strip())
    return f'<header>\n<h1>{escape(title)}</h1>\n{paragraphs}\n<dl class="facts">{tiles}</dl>\n</header>'


def _answer(domain: Domain, answer: Recommendation | None, label: str) -> str:
    if answer is None:
        return "<p>Nothing was measured yet, so there is nothing to recommend.</p>"
    named = domain.params(answer.x) or dict(zip(domain.names, answer.x.tolist(), strict=True))
    cells = [(name, _value(value)) for name, value in named.items()]
    if answer.index is not None:
        cells.insert(0, ("candidate", str(answer.index)))
    note = f"Rule: {answer.rule}."
    if answer.mean is not None:
        note = f"Expected {label}: {number(answer.mean)}" + (
            f", between {number(answer.lower)} and {number(answer.upper)}. "
            if answer.lower is not None and answer.upper is not None
            else ". "
        )
        note += f"Rule: {answer.rule}."
    table = _table([name for name, _ in cells], [("", [value for _, value in cells])])
    return _section("Recommended", f'<div class="card scroll">{table}</div>\n<p class="muted">{escape(note)}</p>')


def _pictures(policy: Policy, rows: Sequence[Run], direction: str, label: str) -> str:
    if not any(row.status == "measured" for row in rows):
        return "<p>There will be pictures after the first measurement.</p>"
    options: dict[str, Any] = {"direction": direction, "label": label}
    numbered = count()

    def card(figure: Figure, caption: str, description: str = "", kind: str = "") -> str:
        image = svg(figure, name=f"f{next(numbered)}", description=description or caption)
        text = f"<figcaption>{escape(caption)}</figcaption>" if caption else ""
        return f'<figure class="card {kind}"><div class="scroll">{image}</div>{text}</figure>'

    names, axes = policy.domain.names, coordinates(policy.domain)
    believes, ranked = hasattr(policy, "posterior"), plots.influence(policy)
    first = [card(plots.trace(policy, **options), "Every run, and the best value so far.")]
    if len(pair := sorted([i for i in ranked if not axes[i].labels and axes[i].low < axes[i].high][:2])) == 2:
        where = f"{names[pair[0]]} and {names[pair[1]]}{', the others held' if len(ranked) > 2 else ''}."
        titles = {"mean": f"Expected {label}" if believes else "Runs"}
        if believes and len(ranked) == 2:
            titles["std"] = "What is still unknown"
        for what, title in titles.items():
            figure = plots.map2d(policy, coordinates=(pair[0], pair[1]), what=what, **options)
            first.append(card(figure, f"{title} over {where}"))
    slices = [
        card(plots.slices(policy, coordinates=[i], **options), "", f"{label} along {names[i]}")
        for i in ranked[:_PANELS]
    ]
    lines = plots.parallel(policy, **options)
    caption = "Each line is a run, the stronger its color the better. Orange: the best."
    first, last = (
        ([*first, card(lines, caption)], "") if len(ranked) < 3 else (first, card(lines, caption, kind="wide"))
    )
    return (
        f'<div class="pictures">\n{"".join(first)}\n</div>\n'
        f'<p class="muted">{escape(_about_slices(len(ranked), believes, label))}</p>\n'
        f'<div class="pictures small">\n{"".join(slices)}\n</div>\n{last}'
    )


def _about_slices(many: int, believes: bool, label: str) -> str:
    text = "Dots are all runs; the dashed line marks the recommended value."
    if believes:
        held = ", the others held at the recommended values" if many > 1 else ""
        text = f"Expected {label} along each parameter{held}, with its band. " + text
        text += " What matters most comes first." if many > 1 else ""
    return text + (f" {many - _PANELS} parameters are not drawn." if many > _PANELS else "")


def _table_of_runs(domain: Domain, rows: Sequence[Run], direction: str, label: str) -> str:
    if not rows:
        return "<p>No runs yet.</p>"
    values = [row.value for row in rows if row.value is not None]
    best = (max if direction == "maximize" else min)(values) if values else None
    body = []
    for row in rows:
        state = "best" if best is not None and row.value == best else row.status
        cells = ["told" if row.id is None else str(row.id), "" if row.value is None else number(row.value), row.status]
        cells += [str(row.index)] if isinstance(domain, Candidates) else []
        body.append((state, [*cells, *(_value(value) for value in row.params.values())]))
    heads = ["run", label, "status", *(["candidate"] if isinstance(domain, Candidates) else []), *domain.names]
    return f'<div class="card scroll runs">{_table(heads, body)}</div>'


def _definitions(entries: Mapping[str, str]) -> str:
    rows = "".join(
        f'<tr><th scope="row">{escape(key)}</th><td><pre>{escape(value)}</pre></td></tr>'
        for key, value in entries.items()
    )
    return f'<div class="card scroll"><table><tbody>{rows}</tbody></table></div>'


def _table(heads: Iterable[str], rows: Iterable[tuple[str, list[str]]]) -> str:
    head = "".join(f'<th scope="col">{escape(short(text, 60))}</th>' for text in heads)
    body = "".join(
        f'<tr class="{state}">' + "".join(f"<td>{escape(short(cell, 200))}</td>" for cell in cells) + "</tr>"
        for state, cells in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _breakable(text: str) -> str:
    """Escaped text whose CamelCase words may be broken between their parts."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "<wbr>", escape(text))


def _value(value: Any) -> str:
    return number(value) if isinstance(value, float) else str(value)
