"""Cells of a table: what their text means for a parameter, and a first space for the columns of a table.

>>> value_in(Float(0.0, 50.0), " 28.6 "), value_in(Int(1, 9), "3.0"), value_in(Choice(["a", 2]), "2")
(28.6, 3, 2)
>>> missing(""), missing("n/a"), missing(0.0)
(True, True, False)
"""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Mapping, Sequence
from numbers import Real
from pathlib import Path
from typing import Any, NamedTuple

from surefoot.domain.parameter import Choice, Float, Int, Parameter

__all__ = ["Cells", "Guess", "first_space", "missing", "number_in", "read_cells", "value_in"]

_NOTHING = frozenset({"", "-", "?", "na", "n/a", "nan", "none", "null", "<na>", "nat"})
_RESULTS = ("yield", "value", "result", "score", "target", "objective", "accuracy", "loss", "error", "y")
_COUNTERS = ("id", "nr", "no", "no.", "run", "#", "number", "index", "row", "trial", "experiment", "sample")
DECADES = 100.0  # a positive column that spans a factor of this much is first searched on a logarithmic scale
MANY = 12  # different words that are still taken for the values of a choice


class Cells(NamedTuple):
    """A table of text: its columns, its rows, and the line of the file on which each row begins.

    >>> Cells(["rate"], [{"rate": "0.5"}], [2]).lines
    [2]
    """

    columns: list[str]
    rows: list[dict[str, str]]
    lines: list[int]


def read_cells(path: str | os.PathLike[str]) -> Cells:
    """Read a CSV file with a header line: commas, semicolons or tabs between the cells, in UTF-8.

    Empty lines are left out. With semicolons or tabs a decimal comma is understood, as spreadsheets write it in many
    countries.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "past.csv"
    >>> _ = file.write_text("temperature;yield\\n20,5;0,61\\n")
    >>> read_cells(file).rows
    [{'temperature': '20.5', 'yield': '0.61'}]
    """
    file = Path(path)
    if not file.is_file():
        raise ValueError(f"there is no file {file}")
    found: list[tuple[int, list[str]]] = []
    try:
        with file.open(newline="", encoding="utf-8-sig") as stream:
            first = stream.readline()
            stream.seek(0)
            mark = max(",;\t", key=first.count) if any(mark in first for mark in ",;\t") else ","
            reader, begins = csv.reader(stream, delimiter=mark), 1
            for row in reader:
                cells = [cell.strip() for cell in row]
                found += [(begins, cells)] if any(cells) else []
                begins = reader.line_num + 1
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"{file} is not a CSV file in UTF-8 ({error})") from None
    if not found:
        raise ValueError(f"{file} is empty; its first line must name the columns")
    (_, header), body = found[0], found[1:]
    while header and not header[-1]:  # spreadsheets write separators behind the last column
        header = header[:-1]
    for name in header:
        if not name or header.count(name) > 1:
            raise ValueError(f"{file}: {'a column has no name' if not name else f'two columns are called {name!r}'}")
    rows = []
    for line, cells in body:
        if len(cells) < len(header) or any(cells[len(header) :]):
            raise ValueError(f"{file}: line {line} has {len(cells)} cells, the header has {len(header)}")
        texts = [_with_point(cell) if mark != "," else cell for cell in cells]
        rows.append(dict(zip(header, texts, strict=False)))
    return Cells(header, rows, [line for line, _ in body])


def _with_point(text: str) -> str:
    """A number with a decimal comma as one with a point; anything else as it is."""
    other = text.replace(",", ".", 1)
    return other if text.count(",") == 1 and "." not in text and number_in(other) is not None else text


def missing(cell: Any) -> bool:
    """Tell whether a cell is empty: None, NaN, or a word for that.

    >>> missing(float("nan")), missing("unknown")
    (True, False)
    """
    if cell is None or type(cell).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(cell, str):
        return cell.strip().lower() in _NOTHING
    return isinstance(cell, Real) and bool(cell != cell)


def number_in(cell: Any) -> float | None:
    """Return the finite number in a cell, as a number or as text; None where there is none.

    >>> number_in("1e-3"), number_in("hot"), number_in(True)
    (0.001, None, None)
    """
    try:
        number = float(cell) if isinstance(cell, str) or (isinstance(cell, Real) and not _boolean(cell)) else math.nan
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _boolean(cell: Any) -> bool:
    return type(cell).__name__ in ("bool", "bool_")


def value_in(parameter: Parameter | None, cell: Any) -> Any:
    """Return the value of a parameter that a cell holds; None for the parameter: any number.

    >>> value_in(Choice([True, False]), "true")
    True
    >>> value_in(Float(0.0, 1.0), "warm")
    Traceback (most recent call last):
    ...
    ValueError: is not a number
    """
    if isinstance(parameter, Choice):
        text = str(cell).strip()
        number = number_in(cell)
        for value in parameter.values:
            same = cell == value and _boolean(cell) == _boolean(value)
            if same or (number is not None and number_in(value) == number) or text == str(value):
                return value
        for value in parameter.values:  # capital letters last: two values may differ in nothing else
            if text.lower() == str(value).lower() or (value is None and missing(cell)):
                return value
        raise ValueError(f"is not one of {list(parameter.values)}")
    number = number_in(cell)
    if number is None:
        raise ValueError("is missing" if missing(cell) else "is not a number")
    if isinstance(parameter, Int):
        if number != math.floor(number):
            raise ValueError("is not an integer")
        return int(number)
    return number


class Guess(NamedTuple):
    """What :func:`first_space` made of a table: parameters, the column of results, and what to say about the columns.

    >>> Guess({}, "yield", []).target
    'yield'
    """

    parameters: dict[str, Parameter]
    target: str | None
    notes: list[str]


def first_space(columns: Sequence[str], rows: Sequence[Mapping[str, Any]], target: str | None = None) -> Guess:
    """Return a parameter for each column that varies, with bounds read off the table; they are yours to correct.

    Whole numbers become an ``Int``, other numbers a ``Float`` (logarithmic where a positive column spans a factor of
    100), words a ``Choice``. Left out are the column of results, columns that never change or have empty cells,
    counters, and texts that differ in every row.

    >>> rows = [{"run": i, "rate": 10.0**-i, "base": "AB"[i % 2], "yield": i * 0.1} for i in range(1, 5)]
    >>> guess = first_space(["run", "rate", "base", "yield"], rows)
    >>> guess.parameters, guess.target
    ({'rate': Float(0.0001, 0.1, log=True), 'base': Choice(['B', 'A'])}, 'yield')
    >>> guess.notes
    ['run: left out, it counts the rows', 'yield: taken as the result']
    """
    notes: list[str] = []
    if target is not None and target not in columns:
        raise ValueError(f"there is no column {target!r}; the columns are {', '.join(columns)}")
    chosen = target if target is not None else _result_among(columns, rows)
    found: dict[str, Parameter] = {}
    for name in columns:
        cells = [row[name] for row in rows if not missing(row.get(name))]
        if name == chosen:
            notes += [] if target is not None else [f"{name}: taken as the result"]
            continue
        made = _axis(name, cells) if len(cells) == len(rows) or not cells else "some of its cells are empty"
        if isinstance(made, str):
            notes.append(f"{name}: left out, {made}")
        else:
            found[name] = made
    if not found:
        raise ValueError(f"no column could be a parameter ({'; '.join(notes) or 'the table has no rows'})")
    return Guess(found, chosen, notes)


def _result_among(columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> str | None:
    named = [name for name in columns if name.lower() in _RESULTS]
    if named:
        return named[-1]
    numbers = [name for name in columns if any(number_in(row.get(name)) is not None for row in rows)]
    return numbers[-1] if len(numbers) > 1 else None


def _axis(name: str, cells: list[Any]) -> Parameter | str:
    """The parameter for a column, or why there is none."""
    if not cells:
        return "it is empty"
    distinct = list(dict.fromkeys(cells))
    numbers = [number for cell in cells if (number := number_in(cell)) is not None]
    if (len(set(numbers)) == 1 and len(numbers) == len(cells)) or len(distinct) == 1:
        return f"it is always {distinct[0]}"
    if len(numbers) < len(cells):
        if len(distinct) > MANY or (len(distinct) == len(cells) and len(cells) > 4):
            return f"it holds {len(distinct)} different texts"
        return Choice([cell if isinstance(cell, str | int | float | bool) else str(cell) for cell in distinct])
    low, high = min(numbers), max(numbers)
    if name.lower() in _COUNTERS and len(set(numbers)) == len(numbers):
        return "it counts the rows"
    log = low > 0 and high / low >= DECADES
    if all(number == math.floor(number) for number in numbers) and not any(_has_point(cell) for cell in cells):
        return Int(int(low), int(high), log=log)
    return Float(low, high, log=log)


def _has_point(cell: Any) -> bool:
    """Whether a cell is written as a number that need not be whole."""
    return isinstance(cell, float) or (isinstance(cell, str) and any(mark in cell for mark in ".eE"))
