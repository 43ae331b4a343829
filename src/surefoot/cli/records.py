"""A private table in a file: records to measure, and the columns of them that may be released under public bounds.

Bounds are declared, never read off the data, and no message of an error shows a value.
"""

from __future__ import annotations

import csv
import math
import os
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Records", "bounds_from", "csv_rows", "read"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Records:
    """A private table as it was read.

    Attributes
    ----------
    rows : list of dict
        What the objective sees: every field by its column, numbers as numbers.
    columns : list of str
        The columns that are released.
    values : array of shape (rows, columns)
        Their numbers.
    lines : list of int
        Where each row ends in the file, the first line being 1.

    >>> Records([{"age": 40.0}], ["age"], np.array([[40.0]]), [2])
    Records(1 rows, 1 columns to release)
    """

    rows: list[dict[str, Any]]
    columns: list[str]
    values: Array
    lines: list[int]

    def __repr__(self) -> str:
        return f"Records({len(self.rows)} rows, {len(self.columns)} columns to release)"


def bounds_from(words: Sequence[str]) -> dict[str, tuple[float, float]]:
    """Return the public limits of columns from words ``COLUMN=LOWER:UPPER`` and files of ``column = [lower, upper]``.

    >>> bounds_from(["age=18:90", "income=0:2e5"])
    {'age': (18.0, 90.0), 'income': (0.0, 200000.0)}
    >>> bounds_from(["age"])
    Traceback (most recent call last):
    ...
    ValueError: bounds are written COLUMN=LOWER:UPPER, or are a TOML file that exists, got 'age'
    """
    found: dict[str, tuple[float, float]] = {}
    for word in words:
        if Path(word).is_file():
            try:
                pairs = tomllib.loads(Path(word).read_text(encoding="utf-8"))
            except ValueError as error:
                raise ValueError(f"{word}: {error}") from None
        else:
            column, equals, limits = word.rpartition("=")
            if not equals or not column or limits.count(":") != 1:
                raise ValueError(f"bounds are written COLUMN=LOWER:UPPER, or are a TOML file that exists, got {word!r}")
            pairs = {column: limits.split(":")}
        for column, pair in pairs.items():
            if column in found:
                raise ValueError(f"column {column!r} has two pairs of bounds")
            found[column] = _limits(column, pair)
    return found


def _limits(column: str, pair: Any) -> tuple[float, float]:
    try:
        low, high = (float(x) for x in pair)
    except (TypeError, ValueError):
        raise ValueError(f"the bounds of {column!r} must be two numbers, got {pair!r}") from None
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise ValueError(f"the bounds of {column!r} must be a lower and a larger upper limit, got {pair!r}")
    return low, high


def csv_rows(path: str | os.PathLike[str]) -> tuple[list[str], list[int], list[list[str]]]:
    """Return the header of a CSV file, and its other rows after the lines on which they begin.

    Empty lines are left out, and a quoted field may hold several lines. No message shows a value.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "people.csv"
    >>> _ = file.write_text('name,age\\n\\n"Ada\\nLovelace",36\\nAlan,41\\n')
    >>> csv_rows(file)
    (['name', 'age'], [3, 5], [['Ada\\nLovelace', '36'], ['Alan', '41']])
    """
    file = Path(path)
    if not file.is_file():
        raise ValueError(f"there is no file {file}")
    found: list[tuple[int, list[str]]] = []
    try:
        with file.open(newline="", encoding="utf-8-sig") as stream:
            reader, begins = csv.reader(stream), 1
            for row in reader:
                found += [(begins, row)] if row else []
                begins = reader.line_num + 1
    except (UnicodeDecodeError, csv.Error):
        raise ValueError(f"{file} is not a CSV file in UTF-8") from None
    if len(found) < 2:
        raise ValueError(f"{file} has no rows below its header")
    (_, header), lines, rows = found[0], [line for line, _ in found[1:]], [row for _, row in found[1:]]
    if len(set(header)) < len(header):
        raise ValueError(f"{file}: two columns have the same name")
    for line, row in zip(lines, rows, strict=True):
        if len(row) != len(header):
            raise ValueError(f"line {line} has {len(row)} fields, the header has {len(header)}")
    return header, lines, rows


def read(path: str | os.PathLike[str], columns: Sequence[str]) -> Records:
    """Read a CSV file with a header; the named columns must hold finite numbers. No message shows a value.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "people.csv"
    >>> _ = file.write_text("name,age\\nAda,36\\nAlan,x\\n")
    >>> read(file, ["age"])
    Traceback (most recent call last):
    ...
    ValueError: line 3: column 'age' does not hold a finite number
    """
    header, lines, body = csv_rows(path)
    for name in columns:
        if name not in header:
            raise ValueError(f"there is no column {name!r}; the columns are {', '.join(header)}")
    if not columns:
        raise ValueError(
            "public bounds are needed for every column to release, --bounds COLUMN=LOWER:UPPER; they are never read "
            f"off the data; the columns are {', '.join(header)}"
        )
    rows = [{name: _field(text) for name, text in zip(header, row, strict=True)} for row in body]
    values = np.array([[x if isinstance(x := row[name], float) else np.nan for name in columns] for row in rows])
    for i, k in np.argwhere(~np.isfinite(values))[:1]:
        raise ValueError(f"line {lines[i]}: column {columns[k]!r} does not hold a finite number")
    return Records(rows, list(columns), values, lines)


def _field(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text
