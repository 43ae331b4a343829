"""Data sets: where they are looked for, how they are read, and where to get them.

Data are not shipped with the package (many may not be redistributed). :func:`load` looks in
``$SUREFOOT_DATA/<name>/`` and then in the user's cache (``$XDG_CACHE_HOME/surefoot`` or ``~/.cache/surefoot``), and
otherwise says exactly which file is missing, where it comes from and where to put it.

>>> sorted(DATASETS)[:3]
['baltic_chlorophyll', 'cifar10', 'cnn_meta_tasks']
>>> DATASETS["svm_grid"].kind
'original'

What a loaded data set holds depends on its files: the arrays of an ``.npz``, the columns of a table (numbers as
float64, anything else as text), the content of a ``.json`` under the name of the file, and the path of any other file
under its full name. Nothing is unpickled.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from surefoot.errors import MissingData
from surefoot_lab._sources import ROWS

__all__ = ["DATASETS", "Dataset", "load", "locate", "verify"]


@dataclass(frozen=True)
class Dataset:
    """One row of the table of data sets.

    Parameters
    ----------
    name : str
        Folder name.
    files : mapping of file name to SHA-256
        What must be there; the sum is of the file the experiments were developed on.
    holds : str
        Names and shapes of what is inside.
    kind : str
        "original" (the very data of a publication) or "substitute" (of the same kind).
    source, licence : str
        Where it comes from and under which terms.

    >>> list(DATASETS["svm_grid"].files)
    ['svm_on_grid.csv.gz']
    """

    name: str
    files: dict[str, str]
    holds: str
    kind: str
    source: str
    licence: str


DATASETS: dict[str, Dataset] = {row[0]: Dataset(*row) for row in ROWS}


def _folders() -> list[Path]:
    """Where data are looked for, in this order."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "surefoot"
    given = os.environ.get("SUREFOOT_DATA")
    return [Path(given), cache] if given else [cache]


def locate(name: str) -> dict[str, Path]:
    """Return the path of each file of a data set.

    Raises
    ------
    MissingData
        A file is not on this machine; the message says where to get it and where to put it.

    >>> locate("no_such_data")
    Traceback (most recent call last):
    ...
    ValueError: unknown data set 'no_such_data'; known are baltic_chlorophyll, cifar10, ...
    """
    if name not in DATASETS:
        raise ValueError(f"unknown data set {name!r}; known are {', '.join(sorted(DATASETS))}")
    dataset, folders = DATASETS[name], _folders()
    found = {}
    for file in dataset.files:
        paths = [folder / name / file for folder in folders]
        path = next((path for path in paths if path.is_file()), None)
        if path is None:
            unset = "" if len(folders) > 1 else " ($SUREFOOT_DATA is not set)"
            raise MissingData(
                f"data set {name!r}: {file} is not at {' or '.join(map(str, paths))}{unset}. "
                f"It holds {dataset.holds}. Source: {dataset.source}. Terms: {dataset.licence}. "
                f"Store it there, or set $SUREFOOT_DATA to the folder that contains {name}/{file}."
            )
        found[file] = path
    return found


def verify(name: str) -> bool:
    """Return whether the files are byte for byte those the experiments were developed on.

    A file converted again from its source may differ in bytes and hold the same numbers.

    >>> verify("no_such_data")
    Traceback (most recent call last):
    ...
    ValueError: unknown data set 'no_such_data'; known are ...
    """
    paths = locate(name)
    return all(
        not sha256 or hashlib.sha256(paths[file].read_bytes()).hexdigest() == sha256
        for file, sha256 in DATASETS[name].files.items()
    )


def load(name: str) -> dict[str, Any]:
    """Return the content of a data set by name.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> (folder / "svm_grid").mkdir()
    >>> with gzip.open(folder / "svm_grid" / "svm_on_grid.csv.gz", "wt") as file:
    ...     _ = file.write("C,alpha\\n0.1,2\\n100,3\\n")
    >>> before = os.environ.get("SUREFOOT_DATA")
    >>> os.environ["SUREFOOT_DATA"] = str(folder)
    >>> load("svm_grid")["C"]
    array([  0.1, 100. ])
    >>> _ = os.environ.pop("SUREFOOT_DATA") if before is None else os.environ.update(SUREFOOT_DATA=before)
    """
    content: dict[str, Any] = {}
    for path in locate(name).values():
        content.update(_read(path))
    return content


def _read(path: Path) -> dict[str, Any]:
    if path.suffix == ".npz":
        with np.load(path, allow_pickle=False) as arrays:
            return {key: arrays[key] for key in arrays.files}
    if path.name.endswith(".csv.gz"):
        with gzip.open(path, "rt", newline="", encoding="utf-8") as file:
            return _columns(file, ",")
    if path.suffix in (".inter", ".item", ".user"):  # tab-separated, header "name:type"
        with open(path, newline="", encoding="utf-8") as file:
            return {f"{path.suffix[1:]}_{key.split(':')[0]}": column for key, column in _columns(file, "\t").items()}
    if path.suffix == ".json":
        return {path.stem: json.loads(path.read_text(encoding="utf-8"))}
    return {path.name: path}


def _columns(file: io.TextIOBase | Any, delimiter: str) -> dict[str, Any]:
    rows = csv.reader(file, delimiter=delimiter)
    header = next(rows)
    body = list(rows)
    for line, row in enumerate(body, start=2):
        if len(row) != len(header):
            raise ValueError(f"line {line} has {len(row)} fields, the header has {len(header)}")
    return {key: _column([row[i] for row in body]) for i, key in enumerate(header)}


def _column(texts: list[str]) -> np.ndarray[Any, Any]:
    """Numbers where every field is one (empty or NA is NaN), else text."""
    try:
        return np.array([np.nan if text in ("", "NA") else float(text) for text in texts], dtype=np.float64)
    except ValueError:
        return np.array(texts, dtype=np.str_)
