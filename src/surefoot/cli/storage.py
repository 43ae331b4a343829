"""Earlier studies: journals that a new study may learn from.

A storage is nothing but a folder of journals, one per study. What was measured there becomes tasks of the policies
that transfer (:class:`~surefoot.policy.transfer.rm_gp_ucb.RMGPUCB`, :class:`~surefoot.policy.epochs.rm_bo_bos.RMBOBOS`,
...).

>>> import tempfile
>>> from surefoot import Float, RandomSearch, Space
>>> folder, space = Path(tempfile.mkdtemp()), Space(rate=Float(0.0, 1.0))
>>> with RandomSearch(space, seed=0, journal=folder / "last-year.jsonl") as policy:
...     policy.tell(policy.ask(), 0.5)
>>> earlier_studies([folder], space).tasks
[Task(1 measurements, name='last-year')]
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from surefoot.cli.show import saved_state
from surefoot.domain import Domain
from surefoot.loop.journal import Journal
from surefoot.loop.policy import Policy
from surefoot.loop.state import unpack
from surefoot.policy.transfer.tasks import Task
from surefoot.report.view import number

__all__ = ["Earlier", "as_begun", "earlier_studies", "trust"]


class Earlier(NamedTuple):
    """What :func:`earlier_studies` found: tasks, and for each journal in a folder that does not serve, why.

    >>> Earlier([], ["old.jsonl: empty"]).tasks
    []
    """

    tasks: list[Task]
    skipped: list[str]


def earlier_studies(
    paths: Sequence[str | os.PathLike[str]],
    domain: Domain,
    *,
    direction: str = "maximize",
    besides: str | os.PathLike[str] | None = None,
) -> Earlier:
    """Read the tasks that earlier studies have left.

    Parameters
    ----------
    paths : sequence of paths
        Journals or saved states, or folders: of a folder, every ``*.jsonl`` in it that serves.
    domain : Domain
        Where the new study looks. Runs outside of it are left out; a study without any run inside does not serve.
    direction : {"maximize", "minimize"}
        Which way is better now; a study of the other direction does not serve.
    besides : path, optional
        A journal that is not meant: the new study's own.

    >>> earlier_studies(["nowhere"], Domain)
    Traceback (most recent call last):
    ...
    ValueError: there is no journal, saved state or folder nowhere
    """
    own = None if besides is None else Path(besides).resolve()
    tasks: dict[Path, Task] = {}
    skipped = []
    for path in map(Path, paths):
        if not path.exists():
            raise ValueError(f"there is no journal, saved state or folder {path}")
        for file in sorted(path.glob("*.jsonl")) if path.is_dir() else [path]:
            if file.resolve() == own or file.resolve() in tasks:
                continue
            try:
                tasks[file.resolve()] = _task(file, domain, direction)
            except ValueError as error:
                if not path.is_dir():
                    raise
                skipped.append(str(error))
    return Earlier(list(tasks.values()), skipped)


def _task(file: Path, domain: Domain, direction: str) -> Task:
    state = saved_state(file)
    wanted = state.get("direction") or state.get("config", {}).get("direction") or direction
    if wanted != direction:
        raise ValueError(f"{file}: that study wanted to {wanted}, this one to {direction}")
    try:
        return Task.from_state(state, file.stem).within(domain)
    except ValueError as error:
        raise ValueError(f"{file}: {error}") from None


def as_begun(journal: str | os.PathLike[str] | None, found: Sequence[Task]) -> list[Task]:
    """Return the tasks that a journal was begun with; a new journal begins with those just found.

    Studies that have grown, or were added, since a run began do not change it: what a run is resumed with must be what
    it was begun with.

    >>> as_begun("not-yet.jsonl", [Task([0.5], [1.0])])
    [Task(1 measurements)]
    """
    header: dict[str, Any] | None = None if journal is None else Journal(journal).read()[0]
    stored = None if header is None else header["config"].get("tasks")
    if not isinstance(stored, list):
        return list(found)
    begun = []
    turns = header is not None and (header["schema"], header["direction"]) == (1, "minimize")  # stored as of −f
    for entry in stored:
        value = entry["value"]
        if "sha256" not in value:
            task = unpack(entry)
            begun.append(task.negated() if turns else task)
            continue
        same = [task for task in found if (task.negated() if turns else task).sha256 == value["sha256"]]
        if not same:
            raise ValueError(
                f"{journal} was begun with the {value['measurements']} measurements of {value['name']!r}, which are "
                "not among the earlier studies any more"
            )
        begun.append(same[0] if same[0].name == value["name"] else _renamed(same[0], value["name"]))
    return begun


def _renamed(task: Task, name: str | None) -> Task:
    return Task(task.X, task.y, name, noise=task.noise, epochs=task.epochs)


def trust(policy: Policy) -> str:
    """Return in one line how much a policy relies on each earlier study by now, the most trusted first.

    >>> from surefoot import Box, RMGPUCB
    >>> policy = RMGPUCB(Box([(0.0, 1.0)]), tasks=[Task([0.2], [1.0], "a"), Task([0.3], [2.0], "b")], seed=0)
    >>> trust(policy)
    'a 0.50, b 0.50; influence 1'
    """
    tasks, weights = policy.tasks, policy.weights
    if weights is None or not len(tasks):
        return ""
    names = [getattr(task, "name", None) or f"task {i}" for i, task in enumerate(tasks)]
    order = np.argsort(-np.asarray(weights)[: len(names)], kind="stable")
    shown = [f"{names[i]} {weights[i]:.2f}" for i in order[:8]]
    shown += [f"{len(order) - 8} more"] if len(order) > 8 else []
    return ", ".join(shown) + ("" if policy.nu is None else f"; influence {number(float(policy.nu), 2)}")
