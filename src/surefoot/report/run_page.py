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

import os
from collections.abc import Mapping
from html import escape
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from surefoot.loop.journal import write_atomically
from surefoot.loop.policy import Policy
from surefoot.loop.types import LevelSet, Recommendation
from surefoot.optimizer import Result
from surefoot.report import levels, plots
from surefoot.report.html import definitions, document, grid, section, table, tiles
from surefoot.report.learning_curves import curves, lengths, steps_of, task_weights, weights_of
from surefoot.report.run import best_so_far
from surefoot.report.settings import environment, settings
from surefoot.report.theme import svg
from surefoot.report.view import RunView, number, short

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["page"]

_PANELS = 12  # slices on a page


def page(
    policy: Policy | Result,
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
    policy : Policy or Result
        Any policy, or what ``optimize`` returned, at any moment; pending and failed runs are shown as such.
    path : path
        The HTML file; missing directories are made.
    title : str
        Heading of the page.
    direction : {"maximize", "minimize"}, optional
        Which way is better; by default that of the policy. With the other one all values change their sign.
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
    view = RunView.of(policy, direction)
    sections = [
        _head(view, label, title, summary, facts or {}),
        _answer(view, label),
        *_Pictures(view, label).sections(),
        section("Runs", _table_of_runs(view, label)),
        section("Settings", definitions(settings(view.policy, direction=view.direction))),
        section("Environment", definitions(environment())),
    ]
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(target, document(title, sections))
    return target


# -- the head --------------------------------------------------------------------------------------------------------


def _head(view: RunView, label: str, title: str, summary: str, facts: Mapping[str, object]) -> str:
    total = {status: sum(row.status == status for row in view.rows) for status in ("measured", "failed", "pending")}
    shown: dict[str, object] = {}
    if len(view.y):
        best = best_so_far(view.rows, direction=view.direction)[-1]
        shown[f"best measured {label}"] = number(float(best), view.digits())
    shown |= {**facts, "runs": total["measured"] + total["failed"]}
    shown |= {status: total[status] for status in ("failed", "pending") if total[status]}
    if stopped := sum(row.stopped is not None and row.status != "pending" for row in view.rows):
        shown["stopped early"] = stopped
    shown["policy"] = type(view.policy).__name__
    paragraphs = "".join(f"<p>{escape(text.strip())}</p>" for text in summary.split("\n\n") if text.strip())
    return f"<header>\n<h1>{escape(title)}</h1>\n{paragraphs}\n{tiles(shown, bool(len(view.y)))}\n</header>"


def _answer(view: RunView, label: str) -> str:
    answer, domain = view.answer, view.policy.domain
    if answer is None:
        return "<p>Nothing was measured yet, so there is nothing to recommend.</p>"
    if isinstance(answer, LevelSet):
        known = {} if answer.threshold is None else {"threshold": number(answer.threshold, view.digits())}
        counts = tiles({**answer.counts(), **known}, False)
        return section(
            "Above and below the threshold", f'{counts}\n<p class="muted">{escape(f"By {answer.rule}.")}</p>'
        )
    if view.recommended is None:  # an answer of another shape: a set, a group, fewer coordinates
        return section("Recommended", f'<div class="card pad"><pre>{escape(short(repr(answer), 2000))}</pre></div>')
    named = domain.params(answer.x) or dict(zip(domain.names, answer.x.tolist(), strict=True))
    chosen = {} if answer.index is None else {"candidate": answer.index}
    note = f"Rule: {answer.rule}."
    if answer.mean is not None:
        digits = view.digits()
        note = f"Expected {label}: {number(answer.mean, digits)}" + (
            f", between {number(answer.lower, digits)} and {number(answer.upper, digits)}{_sure(answer, digits)}. "
            if answer.lower is not None and answer.upper is not None
            else ". "
        )
        note += f"Rule: {answer.rule}."
    point = tiles({**chosen, **{name: _value(value) for name, value in named.items()}}, False)
    return section("Recommended", f'{point}\n<p class="muted">{escape(note)}</p>')


def _sure(answer: Recommendation, digits: int) -> str:
    """What the bounds of an answer are: their level, and those of the next measurement where they are known."""
    if answer.confidence is None:
        return ""
    level = f" without noise ({100 * answer.confidence:g} %)"
    if answer.next_lower is None or answer.next_upper is None:
        return level
    low, high = number(answer.next_lower, digits), number(answer.next_upper, digits)
    return f"{level}; the next measurement between {low} and {high}"


# -- pictures --------------------------------------------------------------------------------------------------------


class _Pictures:
    """All pictures of one view, in sections."""

    def __init__(self, view: RunView, label: str) -> None:
        self.view, self.label = view, label
        self.options: dict[str, Any] = {"label": label}
        self.ranked = plots.influence(view) if len(view.y) else []
        self.sampled = " Of many runs, the best and an even sample of the others are drawn." * plots.sampled(view)
        self._numbered = count()

    def sections(self) -> list[str]:
        """The sections that this policy gives pictures for."""
        if not len(self.view.y) and not steps_of(self.view):
            return [section("Pictures", "<p>There will be pictures after the first measurement.</p>")]
        made = [self.progress(), self.steps(), self.slices(), self.lines(), self.tasks()]
        return [part for part in made if part]

    def card(self, figure: Figure, caption: str, description: str = "", kind: str = "") -> str:
        image = svg(figure, name=f"f{next(self._numbered)}", description=description or caption)
        text = f"<figcaption>{escape(caption)}</figcaption>" if caption else ""
        if kind == "wide":  # on a narrow screen it is scrolled, so that its letters stay readable
            image = f'<div style="min-width:{86 * figure.get_figwidth():.0f}px">{image}</div>'
        return f'<figure class="card {kind}"><div class="scroll">{image}</div>{text}</figure>'

    def progress(self) -> str:
        """Best so far, and a map of the two coordinates that matter most."""
        if not len(self.view.y):
            return ""
        view, names = self.view, self.view.policy.domain.names
        cards = [self.card(plots.trace(view, **self.options), f"The runs, and the best value so far.{self.sampled}")]
        axes = [view.coordinate(i) for i in self.ranked]
        usable = [axis.index for axis in axes if not axis.labels and axis.low < axis.high]
        if len(pair := sorted(usable[:2])) == 2:
            where = f"{names[pair[0]]} and {names[pair[1]]}{', the others held' if len(self.ranked) > 2 else ''}."
            titles = {"mean": f"Expected {self.label}" if view.posterior is not None else "Runs"}
            if view.posterior is not None and len(self.ranked) == 2:
                titles["std"] = "What is still unknown"
            for what, title in titles.items():
                figure = plots.map2d(view, coordinates=(pair[0], pair[1]), what=what, **self.options)
                cards.append(self.card(figure, f"{title} over {where}"))
        if levels.drawable(view):
            cards.append(self.card(levels.level_set(view, **self.options), "What is known of each point."))
        if len(self.ranked) < 3:
            cards.append(self.parallel())
        return section("Progress", grid(cards))

    def steps(self) -> str:
        """Learning curves, where runs were followed step by step."""
        rows = steps_of(self.view)
        if not rows:
            return ""
        stopped = [row for row in rows if row.stopped is not None and row.status != "pending"]
        longest = self.view.policy.epochs or max(max(row.curve) for row in rows)
        made = sum(len(row.curve) for row in rows)
        text = f"{len(rows)} runs were followed step by step, {made} steps in all."
        if stopped:
            saved = sum(longest - max(row.curve) for row in stopped)
            text = (
                f"{len(stopped)} of {len(rows)} runs were stopped early, which saved {saved} of {saved + made} steps. "
                "The table of runs says why."
            )
        cards = [
            self.card(curves(self.view, **self.options), "Each line is a run; a cross is where it was stopped."),
            self.card(lengths(self.view), "How long each run was followed."),
        ]
        return section("Learning curves", f'<p class="muted">{escape(text)}</p>\n{grid(cards)}')

    def slices(self) -> str:
        """The belief along each coordinate."""
        if not self.ranked:
            return ""
        names, many, believes = self.view.policy.domain.names, len(self.ranked), self.view.posterior is not None
        cards = [
            self.card(plots.slices(self.view, coordinates=[i], **self.options), "", f"{self.label} along {names[i]}")
            for i in self.ranked[:_PANELS]
        ]
        marks = {"failed": "crosses failed ones", "pending": "triangles pending ones"}
        extra = [mark for status, mark in marks.items() if any(row.status == status for row in self.view.rows)]
        text = ", ".join(["Dots are runs", *extra])
        marked = "" if self.view.recommended is None else "; the dashed line marks the recommended value"
        text = f"{text}{marked}.{self.sampled}"
        if believes:
            held = ", the others held at the recommended values" if many > 1 else ""
            text = f"Expected {self.label} along each parameter{held}, with its band. " + text
            text += " What matters most comes first." if many > 1 else ""
        text += f" {many - _PANELS} parameters are not drawn." if many > _PANELS else ""
        title = "Along each parameter" if many > 1 else "Along the parameter"
        return section(title, f'<p class="muted">{escape(text)}</p>\n{grid(cards, "small")}')

    def parallel(self, kind: str = "") -> str:
        caption = f"Each line is a run, the stronger its color the better. Orange: the best.{self.sampled}"
        return self.card(plots.parallel(self.view, **self.options), caption, kind=kind)

    def lines(self) -> str:
        """All runs at once; with one or two coordinates this stands beside the map."""
        return "" if len(self.ranked) < 3 else section("All parameters at once", self.parallel("wide"))

    def tasks(self) -> str:
        """The weights of previous tasks."""
        if weights_of(self.view) is None:
            return ""
        caption = "How much each previous task counted, ask after ask."
        return section("Previous tasks", grid([self.card(task_weights(self.view), caption)]))


# -- tables ----------------------------------------------------------------------------------------------------------


def _table_of_runs(view: RunView, label: str) -> str:
    rows, domain = view.rows, view.policy.domain
    if not rows:
        return "<p>No runs yet.</p>"
    best = view.y[view.quality.argmax()] if len(view.y) else None
    listed, followed = domain.listed, any(row.curve for row in rows)
    digits, body = view.digits(), []
    for row in rows:
        state = "best" if best is not None and row.value == best else row.status
        cells = ["told" if row.id is None else str(row.id), "" if row.value is None else number(row.value, digits)]
        cells += ["stopped" if row.stopped is not None and row.status == "measured" else row.status]
        cells += [str(max(row.curve)) if row.curve else ""] if followed else []
        cells += [str(row.index)] if listed else []
        cells += [_value(value) for value in row.params.values()]
        body.append((state, cells + ([row.stopped or ""] if followed else [])))
    heads = ["run", label, "status", *(["steps"] if followed else []), *(["candidate"] if listed else [])]
    heads += [*domain.names, *(["why stopped"] if followed else [])]
    return f'<div class="card scroll runs">{table(heads, body, "why" if followed else "")}</div>'


def _value(value: Any) -> str:
    return number(value) if isinstance(value, float) else str(value)
