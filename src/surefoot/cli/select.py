"""``surefoot select``: choose rows of a table, or its columns, that still serve when some of them are lost.

| objective | chooses | what is kept large |
|---|---|---|
| ``facility`` | rows | how near every row is to a chosen one (columns standardized, squared distances) |
| ``cosine`` | rows | how similar in direction every row is to a chosen one |
| ``coverage`` | rows | how many columns some chosen row has a nonzero entry in |
| ``variance`` | rows | how well a Gaussian process measured at the chosen rows is known at all rows |
| ``regression`` | columns | how much of a target column the chosen columns explain |

Values are shares: 1 is what all rows (columns) together would have.
"""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from surefoot.belief.kernels import Matern
from surefoot.cli.options import PATH, offer, out, picture
from surefoot.cli.records import csv_rows
from surefoot.cli.terminal import say
from surefoot.errors import MissingExtra
from surefoot.loop.durable import write_atomically
from surefoot.report.selection import draw
from surefoot.report.view import number
from surefoot.select import Coverage, FacilityLocation, RSquared, SetFunction, State, VarianceReduction
from surefoot.select.choice import Chosen, choose

__all__ = ["OBJECTIVES", "Sheet", "objective_of", "read", "select", "watched"]

Array = NDArray[np.float64]

OBJECTIVES = ("facility", "cosine", "coverage", "variance", "regression")
CLIENTS = 2000  # rows that are served, drawn at random from a larger table
DENSE = 5000  # rows up to which a covariance matrix is made


@dataclass(frozen=True, eq=False)
class Sheet:
    """A table of numbers as it was read.

    Attributes
    ----------
    header : list of str
        Names of all columns in the file.
    rows : list of list of str
        Its fields, as text.
    columns : list of str
        The columns that count.
    values : array of shape (rows, columns)
        Their numbers.
    weights, target : array of shape (rows,), optional
        The columns named for these purposes.
    lines : sequence of int
        On which line of the file each row begins; without them, one row follows the other below the header.

    >>> Sheet(["a"], [["1"], ["2"]], ["a"], np.array([[1.0], [2.0]])).values.shape
    (2, 1)
    """

    header: list[str]
    rows: list[list[str]]
    columns: list[str]
    values: Array
    weights: Array | None = None
    target: Array | None = None
    lines: Sequence[int] = ()

    def line(self, row: int) -> int:
        """Return the line of the file on which a row begins."""
        return self.lines[row] if self.lines else row + 2


def read(
    path: str | os.PathLike[str], *, ignore: Sequence[str] = (), weights: str | None = None, target: str | None = None
) -> Sheet:
    """Read a CSV file with a header; every column that is not ignored must hold finite numbers.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "t.csv"
    >>> _ = file.write_text("a,b\\n1,2\\n3,x\\n")
    >>> read(file)
    Traceback (most recent call last):
    ...
    ValueError: line 3: column 'b' holds 'x', which is no number; leave the column out with --ignore b
    """
    header, lines, rows = csv_rows(path)
    for name in (*ignore, *(name for name in (weights, target) if name is not None)):
        if name not in header:
            raise ValueError(f"there is no column {name!r}; the columns are {', '.join(header)}")
    columns = [name for name in header if name not in (*ignore, weights, target)]
    if not columns:
        raise ValueError("no column is left to go by")
    used = [name for name in header if name not in ignore or name in (weights, target)]
    numbers: dict[str | None, Array] = {name: _numbers(rows, lines, header, name) for name in used}
    values = np.stack([numbers[name] for name in columns], axis=1)
    return Sheet(header, rows, columns, values, numbers.get(weights), numbers.get(target), lines)


def _numbers(rows: Sequence[Sequence[str]], lines: Sequence[int], header: Sequence[str], name: str) -> Array:
    """One column as finite numbers."""
    place = header.index(name)
    texts = [row[place] for row in rows]
    try:
        column = np.array(texts, dtype=np.float64)
    except ValueError:
        column = np.full(len(texts), np.nan)
        for i, text in enumerate(texts):
            try:
                column[i] = float(text)
            except ValueError:
                if text.strip().lower() not in ("", "na", "null", "none"):
                    raise ValueError(
                        f"line {lines[i]}: column {name!r} holds {text!r}, which is no number; "
                        f"leave the column out with --ignore {name}"
                    ) from None
    bad = np.flatnonzero(~np.isfinite(column))
    if bad.size:
        more = f" ({bad.size} such lines)" if bad.size > 1 else ""
        raise ValueError(f"line {lines[bad[0]]}: column {name!r} has no finite number{more}; fill or remove them first")
    return column


def objective_of(sheet: Sheet, name: str, *, seed: int = 0) -> SetFunction:
    """Return what a choice is worth, by the name of the objective; values are shares.

    >>> sheet = Sheet(["a", "b"], [], ["a", "b"], np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]))
    >>> objective_of(sheet, "coverage").singletons()
    array([0.5, 0.5, 1. ])
    """
    if name not in OBJECTIVES:
        raise ValueError(f"the objective is one of {', '.join(OBJECTIVES)}, not {name!r}")
    X, weights = sheet.values, sheet.weights
    if weights is not None and (weights < 0).any():
        row = int(np.argmax(weights < 0))
        raise ValueError(f"line {sheet.line(row)}: the weight {weights[row]:g} is negative; weights are at least 0")
    if (sheet.target is None) != (name != "regression"):
        raise ValueError("regression needs --target COLUMN" if name == "regression" else f"{name} takes no --target")
    if weights is not None and name not in ("facility", "cosine"):
        raise ValueError(f"{name} takes no --weights")
    if name == "coverage":
        if (X < 0).any():
            row, column = (int(i) for i in np.argwhere(X < 0)[0])
            where = f"line {sheet.line(row)}: column {sheet.columns[column]!r}"
            raise ValueError(f"{where} is {X[row, column]:g}; coverage counts entries of at least 0")
        reached = (X > 0).any(axis=0)
        return Coverage(X, weights=np.where(reached, 1.0 / max(int(reached.sum()), 1), 0.0))
    varies = np.ptp(X, axis=0) > 0.0
    flat = [column for column, good in zip(sheet.columns, varies, strict=True) if not good]
    if flat:
        raise ValueError(
            f"column {flat[0]!r} has the same value in every row"
            f"{f' ({len(flat)} such columns)' if len(flat) > 1 else ''}; leave it out with --ignore {flat[0]}"
        )
    if name == "regression":
        return RSquared(X, sheet.target)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    if name == "variance":
        return _process(Z)
    sample = np.arange(len(Z))
    if len(Z) > CLIENTS:
        sample = np.sort(np.random.default_rng(seed).choice(len(Z), CLIENTS, replace=False))
    served = Z[sample]
    importance = np.ones(len(served)) if weights is None else weights[sample]
    if importance.sum() <= 0:
        raise ValueError("the weights are all 0")
    # The share of the squared distances to the mean that goes away; directions have at most similarity 1.
    most = float(importance @ np.sum(served**2, axis=1)) if name == "facility" else float(importance.sum())
    kind = "exemplar" if name == "facility" else "cosine"
    return FacilityLocation(Z, similarity=kind, clients=served, weights=importance / most, average=False)


def _process(Z: Array) -> SetFunction:
    """The variance of a Matérn-3/2 process of unit variance, the median distance its length-scale, with noise 0.1."""
    if len(Z) > DENSE:
        raise ValueError(f"variance takes up to {DENSE} rows, got {len(Z)}")
    few = Z[np.random.default_rng(0).permutation(len(Z))[:500]]
    apart = np.sqrt(np.maximum(np.sum((few[:, None] - few) ** 2, axis=2), 0.0))
    K = Matern(1.5, lengthscale=max(float(np.median(apart[apart > 0])), 1e-6))(Z, Z)
    K = (K + K.T) / 2.0
    return VarianceReduction(K, noise=0.1, targets=K / np.sqrt(len(Z)))  # a mean over the rows, not a sum


def watched(objective: SetFunction, tick: Callable[[], None]) -> SetFunction:
    """Return the same objective, whose new states call ``tick`` after each element that is added.

    >>> from surefoot.select import greedy
    >>> seen = []
    >>> _ = greedy(watched(Coverage([[1, 0], [0, 1], [1, 1]]), lambda: seen.append(1)), 2)
    >>> len(seen)
    2
    """
    objective.singletons()  # kept by both
    seen = copy(objective)

    class Heard(type(objective._empty())):  # type: ignore[misc]  # a class of its own: copies of a state are heard too
        def _add(self, v: int) -> None:
            super()._add(v)
            tick()

    def empty() -> State:
        state = type(objective)._empty(seen)
        state.__class__ = Heard
        return state

    seen._empty = empty
    return seen


@click.argument("path", type=PATH, metavar="FILE.csv", help="A table with a header.")
@click.option("--k", type=int, metavar="N", help="How many rows to choose.")
@click.option("--tau", type=int, metavar="N", help="How many of them may be lost.")
@click.option("--objective", metavar="NAME", help="What a choice is worth; see above.")
@click.option("--method", metavar="NAME", help="How to choose; auto takes the best of several.")
@click.option("--ignore", multiple=True, metavar="COLUMN", help="A column that does not count; repeatable.")
@click.option("--weights", metavar="COLUMN", help="A column that says how much each row matters.")
@click.option("--target", metavar="COLUMN", help="The column to explain, for regression.")
@click.option(
    "--seconds", type=click.FloatRange(0.1), metavar="S", help="Time limit of the search for the worst deletion."
)
@click.option("--seed", type=click.IntRange(0), metavar="N", help="Draws the sample of a large table.")
@out
@picture
@click.option("--quiet", "-q", is_flag=True, help="Print only the chosen lines, as JSON.")
def select(
    path: str | os.PathLike[str],
    *,
    k: int,
    tau: int = 0,
    objective: str = "facility",
    method: str = "auto",
    ignore: Sequence[str] = (),
    weights: str | None = None,
    target: str | None = None,
    seconds: float = 10.0,
    seed: int = 0,
    out: str | os.PathLike[str] = "surefoot-select",
    picture: bool = True,
    quiet: bool = False,
    console: Console | None = None,
) -> Chosen:
    """Choose, print what was found, write it, and return it; its arguments are the options.

    Columns that are ignored are written all the same. With ``regression`` columns are chosen, not rows.

    >>> import io, tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "t.csv").write_text("x,y\\n" + "".join(f"{i % 3},{i % 5}\\n" for i in range(15)))
    >>> found = select(folder / "t.csv", k=4, tau=1, out=folder, picture=False, console=Console(file=io.StringIO()))
    >>> len(found.selection.order), (folder / "selected.csv").read_text().count("\\n")
    (4, 5)
    """
    sheet = read(path, ignore=ignore, weights=weights, target=target)
    whole = "columns" if objective == "regression" else "rows"
    f = objective_of(sheet, objective, seed=seed)
    for name, value, least in (("k", k, 1), ("tau", tau, 0)):
        if value < least:
            raise ValueError(f"{name} must be at least {least}, got {value}")
    if k > f.n:
        raise ValueError(f"k = {k} {whole} cannot be chosen out of {f.n}")
    if tau >= k:
        raise ValueError(f"tau = {tau} deletions leave nothing of k = {k} {whole}; tau must be less than k")
    screen = console or Console()
    found = _chosen(f, k, tau, method, seconds, screen, quiet)
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    files = _write(sheet, found, objective, folder)
    if picture:
        try:
            files.append(draw(sheet.values, sheet.columns, found, folder / "selection.png", columns=whole == "columns"))
        except MissingExtra as error:
            if not quiet:
                say(screen, f"no picture: {error}")
    _tell(screen, sheet, found, whole, files, quiet)
    return found


def _chosen(f: SetFunction, k: int, tau: int, method: str, seconds: float, screen: Console, quiet: bool) -> Chosen:
    bar = Progress(
        TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed:.0f}/{task.total:.0f}"),
        TimeElapsedColumn(), console=screen, transient=True, disable=quiet or not screen.is_terminal,
    )  # fmt: skip
    with bar:
        task = bar.add_task("preparing", total=k)

        def begin(what: str) -> None:
            bar.reset(task, total=k, description=what.replace("_", "-"))

        return choose(watched(f, lambda: bar.advance(task)), k, tau, method=method, seconds=seconds, notify=begin)


def _names(sheet: Sheet, found: Chosen, whole: str, elements: Sequence[int]) -> list[Any]:
    """Line numbers of rows, or names of columns."""
    return [sheet.columns[i] if whole == "columns" else sheet.line(i) for i in elements]


def _write(sheet: Sheet, found: Chosen, objective: str, folder: Path) -> list[Path]:
    """Write the chosen rows (or columns) as they stood in the file, and what is known about them."""
    order, whole = found.selection.order, "columns" if objective == "regression" else "rows"
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    if whole == "rows":
        writer.writerow(sheet.header)
        writer.writerows(sheet.rows[i] for i in order)
    else:
        chosen = {sheet.columns[i] for i in order}
        places = [i for i, name in enumerate(sheet.header) if name in chosen or name not in sheet.columns]
        writer.writerows([row[i] for i in places] for row in [sheet.header, *sheet.rows])
    write_atomically(folder / "selected.csv", table.getvalue())
    proof = found.certificate
    facts = {
        "objective": objective,
        "method": found.selection.method,
        "chosen": _names(sheet, found, whole, order),
        "robust_part": _names(sheet, found, whole, found.selection.robust),
        "gains": list(found.selection.gains),
        "value": found.selection.value,
        "worst_case": {
            "value": found.worst.value,
            "lost": _names(sheet, found, whole, found.worst.removed),
            "status": found.worst.status,
            "bound": found.worst.bound,
        },
        "certificate": {"best_possible": proof.optimum, "ratio": proof.ratio, "factor": proof.factor},
        "tried": dict(found.tried),
    }
    write_atomically(folder / "selection.json", json.dumps(facts, indent=1, ensure_ascii=False) + "\n")
    return [folder / "selected.csv", folder / "selection.json"]


def _tell(screen: Console, sheet: Sheet, found: Chosen, whole: str, files: Sequence[Path], quiet: bool) -> None:
    names = _names(sheet, found, whole, found.selection.order)
    if quiet:
        say(screen, json.dumps(names, ensure_ascii=False))
        return
    made, worst, proof = found.selection, found.worst, found.certificate
    say(screen, f"{len(names)} of {len(sheet.columns if whole == 'columns' else sheet.rows)} {whole} by {made.method}")
    label = "lines" if whole == "rows" else "columns"
    say(screen, Text(f"{label} {', '.join(map(str, names))}", style="green"))
    say(screen, f"value {number(made.value)}")
    if worst.removed:
        lost = ", ".join(map(str, _names(sheet, found, whole, worst.removed)))
        known = "proved" if worst.proved else f"the worst found; at least {number(worst.bound)} is proved"
        say(screen, f"after the worst loss of {len(worst.removed)}: {number(worst.value)} ({known})")
        say(screen, f"that is {label} {lost}")
    say(screen, f"at least {100.0 * proof.ratio:.1f} % of the best possible, {number(proof.optimum)}")
    if len(found.tried) > 1:
        say(screen, "kept by " + ", ".join(f"{name} {number(value)}" for name, value in found.tried.items()))
    for file in files:
        say(screen, str(file))


command = offer(
    select,
    """Choose a few rows that stand for all, and still do when some of them are lost.

    Objectives: facility (near some chosen row), cosine (alike in direction), coverage (columns with an entry), variance
    (of a Gaussian process), and regression, which chooses columns that explain a target. Methods: auto, greedy, pro,
    pro_exact, osu, oblivious_greedy, oblivious. Writes the chosen rows, a file with all that is known about them, and a
    picture.

    \b
    Examples:
      surefoot select points.csv \\
        --k 20 --tau 3
      surefoot select skills.csv \\
        --k 10 --tau 2 \\
        --objective coverage \\
        --ignore name
      surefoot select houses.csv \\
        --k 8 --tau 2 \\
        --objective regression \\
        --target price
    """,
)
