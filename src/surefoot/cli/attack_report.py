"""The report of ``surefoot attack``: what was made of every attack, in JSON, as a page, and on the screen."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from rich.text import Text

from surefoot.attack.robustness import Summary, summarize
from surefoot.cli.attack_images import Pictures
from surefoot.errors import MissingExtra
from surefoot.loop.journal import write_atomically
from surefoot.report.attack import image_grid, robustness_page, success_curves
from surefoot.report.settings import environment

__all__ = ["PURPOSE", "AttackRecord", "write_report"]

PURPOSE = (
    "A test of robustness, for models that one is entitled to test: one's own, or one whose owner has asked for it. "
    "The model was asked for its scores and for nothing else, within the budget below."
)
SHOWN = 12  # pairs of images in the report


@dataclass(frozen=True)
class AttackRecord:
    """One attack that was made.

    >>> AttackRecord(0, "a.png", 7, 8, True, 12, 0, 5, 0.3, 1.5).success
    True
    """

    number: int
    name: str
    label: int
    target: int | None
    success: bool
    queries: int
    image: int
    seed: int
    distance: float
    best: float | None

    def to_json(self) -> str:
        """Return one line of strict JSON."""
        return json.dumps(vars(self), ensure_ascii=False, allow_nan=False)

    @classmethod
    def from_json(cls, line: str) -> AttackRecord:
        """Rebuild a record from :meth:`to_json`."""
        return cls(**json.loads(line))


def write_report(
    folder: Path, settings: Mapping[str, Any], pictures: Pictures, answers: NDArray[np.intp],
    planned: int, done: Mapping[int, AttackRecord], queries: int, picture: bool, quiet: bool, screen: Console,
) -> Summary | None:  # fmt: skip
    """Write ``report.json`` and ``report.html`` about the attacks that are done, tell what is in them, and sum it up.

    Parameters
    ----------
    folder : Path
        Where to; the images that were found are in its ``adversarial``.
    settings : mapping
        How the attacks were made.
    pictures, answers
        The images, and the model's answers for them as they are (n,).
    planned : int
        Attacks that are to be made in all.
    done : mapping from number to AttackRecord
        Those that were.
    queries : int
        Images that the model was asked about in all, also by attacks that were cut short.
    picture, quiet, screen
        Whether to draw, whether to print nothing but JSON, and where to print.

    >>> import io, tempfile
    >>> pictures = Pictures(np.zeros((1, 4, 4)), ["0"], None)
    >>> done = {0: AttackRecord(0, "0", 1, None, False, 9, 0, 5, 0.1, -2.0)}
    >>> settings = {"model": "m:f", "method": "square", "budget": 9}
    >>> summary = write_report(Path(tempfile.mkdtemp()), settings, pictures, np.array([1]), 1, done, 10, False, True,
    ...                        Console(file=io.StringIO()))
    >>> summary.successes, summary.capped_mean
    (0, 9.0)
    """
    records = [done[number] for number in sorted(done)]
    summary = summarize(records, settings["budget"]) if records else None
    facts = {
        "purpose": PURPOSE,
        "settings": dict(settings),
        "images": len(pictures.images),
        "accuracy": None if pictures.labels is None else float(np.mean(answers == pictures.labels)),
        "planned": planned,
        "made": len(records),
        "queries": queries,
        "summary": None if summary is None else summary.to_dict(),
        "attacks": [json.loads(record.to_json()) for record in records],
        "environment": environment(),
    }
    write_atomically(folder / "report.json", json.dumps(facts, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    files = [folder / "report.json"]
    page = _page(folder, facts, summary, pictures, records, picture, screen, quiet)
    write_atomically(folder / "report.html", page)
    files.append(folder / "report.html")
    if quiet:
        brief = {key: value for key, value in facts.items() if key not in ("attacks", "environment")}
        screen.print(Text(json.dumps(brief, ensure_ascii=False)), soft_wrap=True)
    else:
        _tell(screen, facts, summary, files)
    return summary


def _page(
    folder: Path, facts: Mapping[str, Any], summary: Summary | None, pictures: Pictures,
    records: Sequence[AttackRecord], picture: bool, screen: Console, quiet: bool,
) -> str:  # fmt: skip
    figures = []
    if picture and summary is not None:
        try:
            name = facts["settings"]["method"]
            caption = "Share of the attacks that had succeeded after so many queries."
            figures.append((success_curves({name: summary.curve}, summary.budget), caption))
            figures.append(_gallery(folder, pictures, records))
        except MissingExtra as error:
            if not quiet:
                screen.print(Text(f"no pictures: {error}"), soft_wrap=True)
    rows = [
        {
            "image": record.name,
            "class": record.label,
            "target": "any" if record.target is None else record.target,
            "success": record.success,
            "queries": record.queries,
            "moved by": record.distance,
        }
        for record in records
    ]
    shown = {key: str(value) for key, value in {**facts["settings"], **facts["environment"]}.items()}
    return robustness_page(
        title=f"Robustness of {facts['settings']['model']}",
        purpose=PURPOSE,
        facts=dict(_lines(facts, summary)),
        settings=shown,
        rows=rows,
        figures=figures,
    )


def _gallery(folder: Path, pictures: Pictures, records: Sequence[AttackRecord]) -> tuple[Any, str]:
    """Some attacks, successes first, evenly over all of them."""
    ranked = sorted(records, key=lambda record: (not record.success, record.number))
    part = [record for record in ranked if record.success] or ranked
    picked = [part[i] for i in np.unique(np.linspace(0, len(part) - 1, min(SHOWN, len(part))).astype(int))]
    pairs = []
    for record in picked:
        found = np.load(folder / "adversarial" / f"{record.number:05d}.npy", allow_pickle=False)
        pairs.append((pictures.shown(pictures.images[record.image]), pictures.shown(found)))
    titles = [
        f"{record.label} for {'any' if record.target is None else record.target}: "
        f"{record.queries} queries{'' if record.success else ', failed'}"
        for record in picked
    ]
    caption = "The image, what was added (scaled to the whole range), and what the model was shown."
    return image_grid(pairs, titles), caption


def _lines(facts: Mapping[str, Any], summary: Summary | None) -> list[tuple[str, str]]:
    lines: list[tuple[str, str]] = []
    if summary is not None:
        low, high = summary.interval
        lines.append(("attacks that succeeded", f"{100 * summary.rate:.1f} %"))
        lines.append(("95 % interval", f"{100 * low:.1f} to {100 * high:.1f} %"))
        if summary.mean is not None:
            lines.append(("queries of a success: mean", f"{summary.mean:.1f}"))
            lines.append(("median", f"{summary.median:.6g}"))
            lines.append(("most", f"{summary.most}"))
        lines.append((f"capped mean (failure = {summary.budget})", f"{summary.capped_mean:.1f}"))
    if facts["accuracy"] is not None:
        lines.append(("accuracy on the images as they are", f"{100 * facts['accuracy']:.1f} %"))
    lines.append(("attacks", f"{facts['made']} of {facts['planned']}"))
    lines.append(("queries in all", f"{facts['queries']}"))
    return lines


def _tell(screen: Console, facts: Mapping[str, Any], summary: Summary | None, files: Sequence[Path]) -> None:
    screen.print(Text(PURPOSE), soft_wrap=True)
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(overflow="fold")
    table.add_column(justify="right")
    for name, value in _lines(facts, summary):
        table.add_row(Text(name), Text(value))
    screen.print(table)
    if facts["made"] < facts["planned"]:
        screen.print(Text("interrupted: --resume goes on with the rest"), soft_wrap=True)
    for file in files:
        screen.print(Text(str(file)), soft_wrap=True)
