"""The tables of verdicts on the hand-written page of each family: written again from the records.

A page has a section for each experiment, headed ``### `name`, ...``, or one table of verdicts with a row for each. Only
these headings, the tables right below them and these rows are written; all other words stay. An experiment that has no
record gets its reason in place of a table of nothing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from surefoot_lab.evidence import Evidence
from surefoot_lab.results import table_lines

__all__ = ["ended", "escaped", "family_pages", "units_of"]

_SECTION = re.compile(r"^### `([a-z0-9-]+)`, .*\n(?:\n(?:\|.*\n)+|\nNot run.*\n)", re.MULTILINE)
_ROW = re.compile(r"^\| `([a-z0-9-]+)` \| [^|]*\|(?: [^|]*\|)? (?:C\d+ [^|]*) \|$", re.MULTILINE)
_SHARED = {"pro": "selection", "oblivious-greedy": "selection"}  # families that share a page
_ENDINGS = {"time limit": "cut at its time limit", "killed while running": "killed"}
_MARKS = ("doubtful", "not-reproduced", "contradicted", "needs-original")  # of what was not expected to hold
_SHOWN = 6  # tests of a claim


def family_pages(kept: Evidence, docs: str | os.PathLike[str]) -> dict[Path, str]:
    """Return the text of every page of a family, with its verdicts as the records have them.

    >>> family_pages(Evidence({}, {}, {}), "nowhere")
    {}
    """
    pages = {}
    for file in sorted((Path(docs) / "evidence").glob("*.md")):
        ids = {id.split("/")[1]: id for id in (*kept.records, *kept.not_run) if _page(id) == file.stem}

        def section(found: re.Match[str], ids: Mapping[str, str] = ids) -> str:
            return _section(kept, ids[found[1]]) if found[1] in ids else found[0]

        def row(found: re.Match[str], ids: Mapping[str, str] = ids) -> str:
            return _row(kept.records[ids[found[1]]]) if ids.get(found[1]) in kept.records else found[0]

        pages[file] = _ROW.sub(row, _SECTION.sub(section, file.read_text(encoding="utf-8")))
    return pages


def ended(entry: Mapping[str, Any]) -> str:
    """Return how a run ended that did not come to its end, to follow its number of repetitions.

    >>> ended({"settings": {"stopped": "killed while running"}})
    ' (killed)'
    """
    stopped = entry["settings"]["stopped"]
    return "" if stopped == "complete" else f" ({_ENDINGS.get(stopped, stopped)})"


def units_of(entry: Mapping[str, Any]) -> str:
    """Return how many independent units a run had, and what one of them is.

    >>> units_of({"settings": {"units": None, "unit": "lake"}})
    'not counted (lake)'
    """
    settings = entry["settings"]
    return f"{'not counted' if settings['units'] is None else settings['units']} ({settings['unit']})"


def escaped(words: str) -> str:
    """Return words as Markdown shows them: what would be a mark of emphasis or a tag is escaped.

    >>> print(escaped("y* of a_b"))
    y\\* of a\\_b
    """
    for sign in "*_<":
        words = words.replace(sign, f"\\{sign}")
    return words


def _page(id: str) -> str:
    family = id.split("/")[0]
    return _SHARED.get(family, family)


def _section(kept: Evidence, id: str) -> str:
    name, entry = id.split("/")[1], kept.records.get(id)
    if entry is None:
        return f"### `{name}`, not run\n\nNot run: {kept.not_run[id]}\n"
    rows = []
    for claim in entry["claims"]:
        marks = ", ".join(mark for mark in claim["marks"] if mark in _MARKS)
        words = escaped(claim["name"]) + (f" *({marks})*" if marks else "")
        # An interval over repetitions that are not independent says nothing.
        spans = entry["settings"]["units"] is not None or claim["form"] == "EXACT"
        rows.append([words, claim["verdict"] or "not judged", _tests(claim["tests"], spans)])
    count = f"{entry['repetitions']} repetition{'' if entry['repetitions'] == 1 else 's'}{ended(entry)}"
    head = f"### `{name}`, {count}, independent units: {units_of(entry)}"
    return "\n".join([head, "", *table_lines(["claim", "verdict", "ours, with interval"], rows)]) + "\n"


def _row(entry: Mapping[str, Any]) -> str:
    verdicts = ", ".join(f"{claim['code']} {claim['verdict'] or 'not judged'}" for claim in entry["claims"])
    name = entry["id"].split("/")[1]
    return f"| `{name}` | {entry['repetitions']}{ended(entry)} | {units_of(entry)} | {verdicts} |"


def _tests(tests: list[Mapping[str, Any]], spans: bool) -> str:
    shown = []
    for test in tests[:_SHOWN]:
        low, high = test["interval"]
        span = "" if not spans or low is None or low == high else f" [{_number(low)}, {_number(high)}]"
        shown.append(f"{_number(test['estimate'])}{span}")
    return "; ".join(shown) + (f" … ({len(tests)} tests)" if len(tests) > _SHOWN else "")


def _number(value: float | None) -> str:
    if value is None:
        return "–"
    size = abs(value)
    return f"{value:,.0f}" if size >= 1000 else f"{value:.1e}" if 0 < size < 1e-3 else f"{value:.3g}"
