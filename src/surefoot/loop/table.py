"""Tables: a policy is told the rows of a table, and gives its trials back as one.

A table is a list of dicts, a data frame of pandas or polars, a table of Arrow, or a dict of columns; none of these
packages is imported. Text is understood where a number is meant. Columns that are neither a parameter nor the result
are ignored. A row without a result is not measured yet: it becomes a pending trial. A row whose result says ``failed``
is a failed run. A point may stand in several rows: these are repeated measurements.

>>> from surefoot import ExpectedImprovement, Float, Space
>>> policy = ExpectedImprovement(Space(heat=Float(20.0, 90.0)), seed=0)
>>> policy.tell([{"heat": "30", "yield": "0.61"}, {"heat": "55", "yield": "failed"}, {"heat": "80", "yield": ""}])
>>> [(row["heat"], row["status"]) for row in policy.to_rows()]
[(30.0, 'measured'), (55.0, 'failed'), (80.0, 'pending')]
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from surefoot.domain import Domain
from surefoot.domain.cells import missing, number_in, value_in
from surefoot.errors import MissingExtra, NotSupported
from surefoot.loop.durable import uninterrupted
from surefoot.loop.events import as_outcome, asked
from surefoot.loop.types import FAILED, Observation, Outcome, Proposal, Query

if TYPE_CHECKING:
    from surefoot.loop.policy import Policy

__all__ = ["Line", "expect", "is_table", "points_of", "read_lines", "rows_of", "tell_table", "to_frame", "to_rows"]

Array = NDArray[np.float64]

_FAILED = frozenset({"failed", "fail", "failure", "error", "crash", "crashed", "aborted", "invalid"})
_STATUS = frozenset({"measured", "failed", "pending", "cancelled"})


@dataclass(frozen=True, eq=False)
class Line:
    """One row of a table: where it stands, its point, and its outcome; None: not measured yet.

    ``trial`` is the number of the query it answers, where a column ``trial`` says so.

    >>> Line("row 1", np.array([0.5]), None).trial is None
    True
    """

    where: str
    x: Array
    outcome: Outcome | None
    trial: int | None = None


def is_table(value: Any) -> bool:
    """Tell whether a value looks like a table, not like a point.

    >>> is_table([{"rate": 0.1}]), is_table({"rate": 0.1}), is_table([0.1, 0.2])
    (True, False, False)
    """
    if isinstance(value, list | tuple):
        return bool(value) and all(isinstance(row, Mapping) for row in value)
    return not isinstance(value, np.ndarray) and any(hasattr(value, name) for name in ("to_dicts", "to_pylist", "iloc"))


def rows_of(table: Any) -> list[dict[str, Any]]:
    """Return the rows of a table as dicts.

    >>> rows_of({"rate": [0.1, 0.2]})
    [{'rate': 0.1}, {'rate': 0.2}]
    """
    if isinstance(table, Mapping):
        columns = {str(name): list(cells) for name, cells in table.items()}
        if len({len(cells) for cells in columns.values()}) > 1:
            raise ValueError("the columns of this table differ in length")
        return [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]
    if hasattr(table, "to_dicts"):  # polars
        return [dict(row) for row in table.to_dicts()]
    if hasattr(table, "to_pylist"):  # Arrow
        return [dict(row) for row in table.to_pylist()]
    if hasattr(table, "iloc"):  # pandas
        return [{str(name): cell for name, cell in row.items()} for row in table.to_dict("records")]
    if isinstance(table, Iterable):
        rows = list(table)
        if all(isinstance(row, Mapping) for row in rows):
            return [dict(row) for row in rows]
    raise TypeError(f"a table is a list of dicts, a data frame or a dict of columns, got {type(table).__name__}")


def result_column(domain: Domain, rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the column of results of rows that do not say which: ``value``, or the only one that is no parameter.

    >>> from surefoot.domain import Box
    >>> result_column(Box.unit(1), [{"x0": 0.5, "yield": 3.0}])
    'yield'
    """
    columns = list(dict.fromkeys(name for row in rows for name in row))
    others = [name for name in columns if name not in domain.names and name not in ("trial", "status")]
    if "value" in others:
        return "value"
    if len(others) != 1:
        among = f": one of {', '.join(map(repr, others))}" if others else "; the table has only parameters"
        raise ValueError(f"say which column holds the results, target=...{among}")
    return others[0]


def points_of(domain: Domain, rows: Sequence[Any], labels: Sequence[str] | None = None) -> Array:
    """Return the points (n, d) of rows: dicts that hold a value for each parameter and maybe more, or vectors.

    >>> from surefoot.domain import Int, Space
    >>> points_of(Space(depth=Int(1, 9)), [{"depth": "3", "note": "x"}])
    array([[3.]])
    """
    where = labels or [f"row {i}" for i in range(1, len(rows) + 1)]
    found = [_point(domain, row, at) for row, at in zip(rows, where, strict=True)]
    return np.array(found, dtype=np.float64).reshape(len(found), domain.dimension)


def _point(domain: Domain, row: Any, where: str) -> Array:
    if not isinstance(row, Mapping):
        return domain.validate(row)
    values: dict[str, Any] = {}
    for name in domain.names:
        if name not in row:
            raise ValueError(f"{where}: column {name!r} is not there; the columns are {', '.join(map(str, row))}")
        try:
            values[name] = value_in(domain.parameters.get(name), row[name])
        except ValueError as error:
            raise ValueError(f"{where}, column {name!r}: {row[name]!r} {error}") from None
    try:
        return domain.validate(values if domain.parameters else list(values.values()))
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None


def read_lines(
    domain: Domain, rows: Sequence[Mapping[str, Any]], target: str | None = None, labels: Sequence[str] | None = None
) -> list[Line]:
    """Return what rows say, or raise a ValueError that names the row and the column.

    Parameters
    ----------
    domain : Domain
        Where points lie; its parameters are columns.
    rows : sequence of dict
        The table.
    target : str, optional
        The column of results; see :func:`result_column`.
    labels : sequence of str, optional
        What to call each row in an error, such as the line of a file.

    >>> from surefoot.domain import Float, Space
    >>> read_lines(Space(heat=Float(20.0, 90.0)), [{"heat": "warm", "yield": "0.6"}])
    Traceback (most recent call last):
    ...
    ValueError: row 1, column 'heat': 'warm' is not a number
    """
    if domain.travels:
        raise NotSupported("a move of several stops has no row in a table: tell it with its query")
    if not rows:
        return []
    column = result_column(domain, rows) if target is None else target
    if column in domain.names:
        raise ValueError(f"column {column!r} is a parameter, it cannot be the result too")
    if not any(column in row for row in rows):
        raise ValueError(f"there is no column {column!r}; the columns are {', '.join(map(str, rows[0]))}")
    where = list(labels or [f"row {i}" for i in range(1, len(rows) + 1)])
    points = points_of(domain, rows, where)
    lines = []
    for row, at, x in zip(rows, where, points, strict=True):
        status = str(row.get("status", "")).strip().lower() if "status" not in domain.names else ""
        if status == "cancelled":
            continue
        cell, outcome = row.get(column), None
        if status == "failed" or (isinstance(cell, str) and cell.strip().lower() in _FAILED):
            outcome = FAILED
        elif not missing(cell):
            number = number_in(cell)
            if number is None:
                raise ValueError(
                    f"{at}, column {column!r}: {cell!r} is not a number (an empty cell is a result that is still to "
                    "come, and failed is a failed run)"
                )
            outcome = Outcome(number)
        trial = row.get("trial") if "trial" not in domain.names else None
        known = None if trial is None or missing(trial) else number_in(trial)
        lines.append(Line(at, domain.validate(x), outcome, None if known is None else int(known)))
    return lines


def tell_table(
    policy: Policy,
    table: Any,
    *,
    target: str | None = None,
    labels: Sequence[str] | None = None,
    grown: bool = False,
) -> int:
    """Tell a policy the rows of a table; returns how many results were new. An error names the row; nothing is told.

    Parameters
    ----------
    policy : Policy
        Who is told.
    table : list of dict, data frame or dict of columns
        A column for each parameter and one of results; other columns are ignored. A column ``trial`` says which query
        a row answers, a column ``status`` which rows have ``failed``.
    target : str, optional
        The column of results: by default ``value``, or the only column that is no parameter.
    labels : sequence of str, optional
        What to call each row in an error.
    grown : bool
        Whether this is a table that was told before and has grown: rows that are known already are passed over.
        Otherwise every row is a measurement of its own.

    >>> from surefoot import ExpectedImprovement, Float, Space
    >>> policy = ExpectedImprovement(Space(heat=Float(20.0, 90.0)), seed=0)
    >>> rows = [{"heat": 30, "yield": 0.61}]
    >>> policy.tell_table(rows, target="yield"), policy.tell_table(rows + rows, target="yield", grown=True)
    (1, 1)
    """
    lines = read_lines(policy.domain, rows_of(table), target, labels)
    _check_trials(policy, lines)
    if grown:
        lines = _unknown(policy, lines)
    for line in lines:
        if line.outcome is not None and (error := _refusal(policy, line)) is not None:
            raise ValueError(f"{line.where}: {error}") from error
    told = 0
    for line in lines:
        if line.outcome is None:
            if line.trial is None:
                policy.expect(line.x)
            continue
        told += 1
        policy.tell(line.x if line.trial is None else line.trial, line.outcome)
    return told


def expect(policy: Policy, point: Any) -> Query:
    """Return the query of a point that somebody chose and will measure: pending from now on, as if asked for.

    >>> from surefoot import Box, RandomSearch
    >>> policy = RandomSearch(Box([(0.0, 1.0)]), seed=0)
    >>> policy.expect([0.25])
    Query(0, x=[0.25])
    """
    query = policy.trials.query_of(Proposal(policy.domain.validate(point), note={"given": True}), {})
    with uninterrupted():
        policy._commit(asked(query))
        policy.trials.queries.append(query)
        policy.trials.pending[query.id] = query
    return query


def _check_trials(policy: Policy, lines: Sequence[Line]) -> None:
    queries = policy.queries
    told = {o.id: o.outcome for o in policy.history if o.id is not None}
    for line in lines:
        if line.trial is None:
            continue
        if not 0 <= line.trial < len(queries):
            raise ValueError(f"{line.where}: there is no trial {line.trial}, {len(queries)} were asked for")
        if not np.array_equal(queries[line.trial].x, line.x):
            asked = policy.domain.params(queries[line.trial].x) or queries[line.trial].x.tolist()
            raise ValueError(f"{line.where}: trial {line.trial} was asked for at {asked}, not here")
        if line.outcome is not None and told.get(line.trial, line.outcome) != line.outcome:
            raise ValueError(
                f"{line.where}: trial {line.trial} was told {told[line.trial].value} before, not {line.outcome.value}"
            )


def _unknown(policy: Policy, lines: Sequence[Line]) -> list[Line]:
    """The rows that a policy does not know yet; a point and value that stand there twice are two measurements."""
    told = Counter((o.x.tobytes(), o.value) for o in policy.history)
    waiting = Counter(query.x.tobytes() for query in policy.pending)
    new = []
    for line in lines:
        key = (line.x.tobytes(), None if line.outcome is None else line.outcome.value)
        if line.outcome is None and waiting[key[0]]:
            waiting[key[0]] -= 1
        elif line.outcome is not None and told[key]:
            told[key] -= 1
        else:
            new.append(line)
    return new


def _refusal(policy: Policy, line: Line) -> Exception | None:
    """Why a policy would not take an outcome, found without telling it."""
    try:
        policy._check_outcome(None, as_outcome(line.outcome))
    except (TypeError, ValueError) as error:
        return error
    return None


def to_rows(policy: Policy) -> list[dict[str, Any]]:
    """Return the trials of a policy as rows: those told, in their order, then the pending ones.

    A row has the number of the trial (None: told unasked), the parameters by name, the value, and the status:
    ``measured``, ``failed`` or ``pending``.

    >>> from surefoot import Box, RandomSearch
    >>> policy = RandomSearch(Box([(0.0, 1.0)]), seed=0)
    >>> policy.tell([0.5], 2.0)
    >>> policy.to_rows()
    [{'trial': None, 'x0': 0.5, 'value': 2.0, 'status': 'measured'}]
    """
    if policy.domain.travels:
        raise NotSupported("moves of several stops have no rows: look at policy.history")

    def named(x: Array) -> dict[str, Any]:
        params = policy.domain.params(x)
        return dict(zip(policy.domain.names, x.tolist(), strict=True)) if params is None else params

    def row(o: Observation) -> dict[str, Any]:
        status = "failed" if o.failed else "measured"
        return {"trial": o.id, **named(o.x), "value": o.value, "status": status}

    waiting = [{"trial": q.id, **named(q.x), "value": None, "status": "pending"} for q in policy.pending]
    return [row(o) for o in policy.history] + waiting


def to_frame(policy: Policy) -> Any:
    """Return :func:`to_rows` as a data frame of pandas, or of polars where only that is installed.

    ``policy.tell(policy.to_frame())`` tells another policy the same.

    >>> from surefoot import Float, RandomSearch, Space
    >>> policy = RandomSearch(Space(heat=Float(20.0, 90.0)), seed=0)
    >>> policy.tell({"heat": 30.0}, 0.5)
    >>> from importlib.util import find_spec
    >>> installed = any(find_spec(name) for name in ("pandas", "polars"))
    >>> len(policy.to_frame()) if installed else 1
    1
    """
    rows = policy.to_rows()
    columns = ["trial", *policy.domain.names, "value", "status"]
    with contextlib.suppress(ImportError):
        frame = import_module("pandas").DataFrame(rows, columns=columns)
        return frame.astype({"trial": "Int64", "value": "float64"})
    with contextlib.suppress(ImportError):
        return import_module("polars").DataFrame(rows, schema=columns, infer_schema_length=None)
    raise MissingExtra("to_frame() needs pandas or polars; to_rows() gives a list of dicts")
