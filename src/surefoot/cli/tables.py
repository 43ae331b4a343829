"""Tables on the command line: files of measurements, and the next points as a table.

>>> from surefoot import Float
>>> space_text({"heat": Float(20.0, 90.0)})
'[heat]\\ntype = "float"\\nlow = 20.0\\nhigh = 90.0\\nlog = false\\n'
"""

from __future__ import annotations

import csv
import json
import os
import re
from collections.abc import Mapping, Sequence
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console

from surefoot.cli.show import shown
from surefoot.cli.terminal import say
from surefoot.domain import Choice, Domain, Parameter, Space
from surefoot.domain.cells import first_space, missing, read_cells, value_in
from surefoot.errors import NoData, NotSupported
from surefoot.loop.durable import write_atomically
from surefoot.loop.policy import Policy
from surefoot.loop.types import Prediction, Query
from surefoot.report.view import number

__all__ = ["Past", "batch_table", "fixed_from", "past_from", "predicted", "print_batch", "space_text", "write_table"]

_PLAIN_KEY = re.compile(r"[A-Za-z0-9_-]+")
PREDICTED = ("predicted", "lower", "upper")
"""Columns beside a suggestion; a table that has them is read all the same."""


class Past(NamedTuple):
    """Rows of one or several files, where each stands, and the columns in their order.

    >>> Past([{"heat": "30"}], ["past.csv, line 2"], ["heat"]).columns
    ['heat']
    """

    rows: list[dict[str, str]]
    labels: list[str]
    columns: list[str]

    def result(self, domain: Domain, target: str | None) -> str:
        """Return the column of results, or raise a ValueError that lists the candidates."""
        if target is not None and target not in self.columns:
            raise ValueError(f"there is no column {target!r}; the columns are {', '.join(self.columns)}")
        if target is not None:
            return target
        known = (*domain.names, *PREDICTED, "trial", "status")
        others = [name for name in self.columns if name not in known]
        if len(others) != 1:
            raise ValueError(f"say which column holds the results: --target {'|'.join(others) or 'COLUMN'}")
        return others[0]

    def inside(self, domain: Domain) -> tuple[Past, list[str]]:
        """Return the rows whose parameters lie in a domain, and the places of the others."""
        kept: list[tuple[dict[str, str], str]] = []
        out: list[tuple[dict[str, str], str]] = []
        for row, label in zip(self.rows, self.labels, strict=True):
            (kept if _lies_in(domain, row) else out).append((row, label))
        return Past([row for row, _ in kept], [label for _, label in kept], self.columns), [label for _, label in out]


def _lies_in(domain: Domain, row: Mapping[str, str]) -> bool:
    """Whether all its numbers are in the domain; what cannot be read is left to whoever says why."""
    try:
        values = {name: value_in(domain.parameters.get(name), row[name]) for name in domain.names}
    except (KeyError, ValueError):
        choices = [name for name, p in domain.parameters.items() if isinstance(p, Choice)]
        return not any(name in row and not missing(row[name]) and _foreign(domain, name, row) for name in choices)
    try:
        domain.validate(values if domain.parameters else list(values.values()))
    except ValueError:
        return False
    return True


def _foreign(domain: Domain, name: str, row: Mapping[str, str]) -> bool:
    try:
        value_in(domain.parameters[name], row[name])
    except ValueError:
        return True
    return False


def past_from(paths: Sequence[str | os.PathLike[str]]) -> Past:
    """Read tables one after the other, as if they were one.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "past.csv"
    >>> _ = file.write_text("heat,yield\\n30,0.61\\n")
    >>> past_from([file]).rows
    [{'heat': '30', 'yield': '0.61'}]
    """
    rows, labels, columns = [], [], dict[str, None]()
    for path in paths:
        found = read_cells(path)
        rows += found.rows
        labels += [f"{Path(path).name}, line {line}" for line in found.lines]
        columns.update(dict.fromkeys(found.columns))
    return Past(rows, labels, list(columns))


def fixed_from(words: Sequence[str]) -> dict[str, str]:
    """Return ``parameter=value`` words as a dict.

    >>> fixed_from(["solvent=water"])
    {'solvent': 'water'}
    """
    found = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name.strip():
            raise ValueError(f"a fixed parameter is written NAME=VALUE, got {word!r}")
        found[name.strip()] = value.strip()
    return found


def space_text(parameters: Mapping[str, Parameter], notes: Sequence[str] = ()) -> str:
    """Return parameters as the text of a TOML file, with notes as comments above.

    >>> print(space_text({"base": Choice(["a"])}, ["yield: taken as the result"]))
    # yield: taken as the result
    <BLANKLINE>
    [base]
    type = "choice"
    values = ["a"]
    <BLANKLINE>
    """
    parts = ["".join(f"# {line}\n" for line in notes)] if notes else []
    for name, parameter in parameters.items():
        key = name if _PLAIN_KEY.fullmatch(name) else json.dumps(name, ensure_ascii=False)
        fields = "".join(f"{key} = {_toml(value)}\n" for key, value in parameter.to_dict().items())
        parts.append(f"[{key}]\n{fields}")
    return "\n".join(parts)


def _toml(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str | bool) else repr(value)


def guessed_space(past: Past, target: str | None) -> tuple[Space, str | None, list[str]]:
    """Return a first space for a table, its column of results, and notes on the columns."""
    columns = [name for name in past.columns if name not in (*PREDICTED, "trial", "status")]
    guess = first_space(columns, past.rows, target)
    return Space(guess.parameters), guess.target, guess.notes


def predicted(policy: Policy, queries: Sequence[Query]) -> list[Prediction | None]:
    """Return what is predicted for each query; None for a policy without a model, or without data.

    >>> from surefoot import Box, RandomSearch
    >>> policy = RandomSearch(Box.unit(1), seed=0)
    >>> predicted(policy, [policy.ask()])
    [None]
    """
    try:
        return list(policy.predict([query.x for query in queries]))
    except (NoData, NotSupported):
        return [None] * len(queries)


def batch_table(
    policy: Policy, queries: Sequence[Query], *, target: str = "value", numbered: bool = False
) -> list[dict[str, Any]]:
    """Return queries as rows: the parameters, an empty cell for the result, and what is predicted.

    >>> from surefoot import Box, RandomSearch
    >>> policy = RandomSearch(Box.unit(1), seed=0)
    >>> batch_table(policy, policy.ask(1), numbered=True)
    [{'trial': 0, 'x0': ..., 'value': None, 'predicted': None, 'lower': None, 'upper': None}]
    """
    rows = []
    for query, found in zip(queries, predicted(policy, queries), strict=True):
        point = query.params or dict(zip(policy.domain.names, query.x.tolist(), strict=True))
        values = [None] * 3 if found is None else [found.mean, found.lower, found.upper]
        trial = {"trial": query.id} if numbered else {}
        rows.append({**trial, **point, target: None, **dict(zip(PREDICTED, values, strict=True))})
    return rows


def write_table(rows: Sequence[Mapping[str, Any]], path: str | os.PathLike[str]) -> None:
    """Write rows as a CSV file; predictions with six digits, an empty cell for None.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "next.csv"
    >>> write_table([{"heat": 30.5, "yield": None, "predicted": 0.123456789}], file)
    >>> file.read_text()
    'heat,yield,predicted\\n30.5,,0.123457\\n'
    """
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(rows[0])
    for row in rows:
        writer.writerow([_cell(name, value) for name, value in row.items()])
    write_atomically(Path(path), text.getvalue())


def _cell(name: str, value: Any) -> Any:
    return "" if value is None else f"{value:.6g}" if name in PREDICTED else value


def print_batch(rows: Sequence[Mapping[str, Any]], screen: Console, target: str) -> None:
    """Print the next points, one line each where they fit, and what to expect of each.

    >>> from rich.console import Console
    >>> print_batch([{"trial": 4, "heat": 30.0, "predicted": None}], Console(), "yield")
    Next point
      4  heat=30
    """
    say(screen, f"Next {'point' if len(rows) == 1 else f'{len(rows)} points'}")
    for i, row in enumerate(rows, 1):
        point = "  ".join(
            f"{name}={shown(value)}"
            for name, value in row.items()
            if name not in (*PREDICTED, target, "trial") and value is not None
        )
        label = row.get("trial", i)
        expected = ""
        if row["predicted"] is not None:
            mean, low, high = (number(row[name]) for name in PREDICTED)
            expected = f"\n     expect {target} {mean}, between {low} and {high}"
        say(screen, f"{label:>3}  {point}{expected}")
