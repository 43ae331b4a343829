"""``surefoot reproduce``: run registered experiments and print their verdicts.

The command line parses the words; everything it does is :func:`reproduce`.
"""

from __future__ import annotations

import builtins
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Column, Table
from rich.text import Text

from surefoot.errors import MissingData, MissingExtra
from surefoot_lab import datasets
from surefoot_lab.registry import Experiment, find, names
from surefoot_lab.results import claim_rows
from surefoot_lab.runner import run

__all__ = ["reproduce", "select"]

_COLORS = {"holds": "green", "fails": "red", "undecided": "yellow"}


def select(ids: Sequence[str]) -> list[Experiment]:
    """Return the experiments of the given ids; the name of a family stands for all of it.

    >>> "gp-ucb/regret-bound" in [experiment.id for experiment in select(["gp-ucb"])]
    True
    """
    every = names()
    chosen: dict[str, Experiment] = {}
    for id in ids:
        family = [name for name in every if name.startswith(f"{id.rstrip('/')}/")]
        for name in family or [id]:
            chosen[name] = find(name)
    return list(chosen.values())


def reproduce(
    ids: Sequence[str] = (),
    *,
    all: bool = False,
    list: bool = False,
    full: bool = False,
    minutes: float | None = None,
    workers: int | None = None,
    resume: bool = False,
    out: str | os.PathLike[str] = "results",
    console: Console | None = None,
) -> Sequence[dict[str, Any]]:
    """Run experiments, write their results below ``out``, print their verdicts, and return the contents of the files.

    Parameters
    ----------
    ids : sequence of str
        Experiments or families.
    all : bool
        Every experiment; those that cannot be run here are left out and named at the end, with the reason.
    list : bool
        Only list what there is (also when nothing is chosen).
    full : bool
        The published budget instead of the quick one.
    minutes : float, optional
        Time limit of each experiment, instead of its budget's.
    workers : int, optional
        Processes; by default one per core.
    resume : bool
        Add repetitions to stored results.
    out : path
        Folder of the results.
    console : rich.console.Console, optional
        Where to print.

    Raises
    ------
    ValueError
        An id is unknown or stands beside ``all``, or stored results were made with other settings.
    MissingData, MissingExtra
        An experiment asked for by name needs data that are not on this machine, or none of those asked for can be run.

    >>> import io
    >>> reproduce(list=True, console=Console(file=io.StringIO()))
    []
    """
    screen = console or Console()
    if list or not (ids or all):
        _listing([find(name) for name in names()], screen)
        return []
    if all and ids:
        raise ValueError(f"--all is every experiment: leave it out, or {', '.join(ids)}")
    experiments = select(names() if all else ids)
    if not all:
        for experiment in experiments:
            for name in experiment.data.names:
                datasets.locate(name)
    options = {"mode": "full" if full else "quick", "minutes": minutes, "workers": workers, "resume": resume}
    outcomes: builtins.list[dict[str, Any]] = []
    left: dict[str, Exception] = {}
    try:
        for experiment in experiments:
            try:
                data = _run(experiment, screen, out=out, **options)
            except (MissingData, MissingExtra, ValueError) as error:
                if isinstance(error, ValueError) and not (all and resume):  # else: stored with other settings
                    raise
                left[experiment.id] = error
                continue
            outcomes.append(data)
            _show(data, Path(out) / experiment.id, screen)
    finally:  # what was done is said after Ctrl-C too
        if len(outcomes) + len(left) > 1:
            _summary(outcomes, left, screen)
    if left and not outcomes:
        raise next(iter(left.values()))
    return outcomes


def _run(experiment: Experiment, screen: Console, **options: Any) -> dict[str, Any]:
    if not screen.is_terminal:
        return run(experiment, **options)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=screen, transient=True) as bars:
        task = bars.add_task(experiment.id, total=None)
        return run(experiment, progress=lambda done, goal: bars.update(task, completed=done, total=goal), **options)


def _listing(experiments: Sequence[Experiment], screen: Console) -> None:
    """One short paragraph per experiment: reads well at any width, and its first lines can be searched."""
    for e in experiments:
        missing = any(not _here(name) for name in e.data.names)
        quick, full = (f"{b.repetitions} in {b.minutes:g} min" for b in (e.quick, e.full))
        facts = [e.data.label, f"{len(e.claims)} claims", f"quick {quick}", f"full {full}", f"priority {e.priority}"]
        screen.print(Text(e.id, style="bold"), no_wrap=True, soft_wrap=True)
        screen.print(Padding(Text(e.title), (0, 0, 0, 2), expand=False))
        note = Text(", ".join(facts), style="dim").append(" (not on this machine)" if missing else "", style="yellow")
        screen.print(Padding(note, (0, 0, 0, 2), expand=False))


def _here(name: str) -> bool:
    """Whether a data set is on this machine."""
    try:
        datasets.locate(name)
    except MissingData:
        return False
    return True


def _show(data: dict[str, Any], folder: Path, screen: Console) -> None:
    settings = data["settings"]
    done = f"{data['repetitions']} of {settings['planned']} repetitions ({settings['budget']}; {settings['stopped']})"
    screen.print(f"\n[bold]{data['id']}[/]: {escape(settings['title'])}\n{escape(done)}", highlight=False)
    failed: dict[str, builtins.list[str]] = {}
    for failure in data["failures"]:
        failed.setdefault(failure["error"], []).append(str(failure["replicate"]))
    for error, which in failed.items():
        words = f"repetition {which[0]}" if len(which) == 1 else f"{len(which)} repetitions ({', '.join(which[:5])}"
        words += "" if len(which) == 1 else ", …)" if len(which) > 5 else ")"
        screen.print(f"[red]{words} failed:[/] {escape(error)}", highlight=False)
    table = Table("", "claim", "published", "ours", "n", "verdict")
    for *cells, verdict in claim_rows(data, most=6):
        color = _COLORS.get(verdict.split(" ")[0])
        table.add_row(*map(escape, cells), f"[{color}]{verdict}[/]" if color else verdict)
    screen.print(table)
    screen.print(f"results in {escape(str(folder))}", highlight=False, soft_wrap=True)


def _summary(outcomes: Sequence[dict[str, Any]], left: Mapping[str, Exception], screen: Console) -> None:
    """One row per experiment, then those without a repetition and those that were not run, with the reason."""
    words = ("holds", "fails", "undecided", "not judged", "failures")
    table = Table(Column("id", no_wrap=True), "repetitions", *words)
    for data in outcomes:
        verdicts = [claim["verdict"] or "not judged" for claim in data["claims"]]
        counts = [verdicts.count(word) for word in words[:-1]]
        table.add_row(data["id"], str(data["repetitions"]), *map(str, [*counts, len(data["failures"])]))
    if outcomes:
        screen.print(table)
    late = [d["id"] for d in outcomes if not d["repetitions"] and d["settings"]["stopped"] == "time limit"]
    if late:
        screen.print(f"[yellow]no repetition finished in time:[/] {', '.join(late)}", highlight=False)
    for id, error in left.items():
        screen.print(f"[yellow]{id} left out:[/] {escape(str(error))}", highlight=False, soft_wrap=True)
