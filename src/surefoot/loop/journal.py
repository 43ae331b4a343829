"""The journal: the events of a policy, one JSON line each, on disk before the call that made them returns.

The first line is a header (policy, configuration, seed, direction). A line that was cut short by a crash is ignored on
reading and removed by the next writer. One process writes at a time; a second is refused. A file that is something else
is refused too, and stays as it is. An event that could not be written, on a full disk for one, is refused, and does not
come back; a file that is deleted or replaced during a run is noticed at the next event. How this is kept is
:mod:`surefoot.loop.durable`'s business.

>>> import tempfile, pathlib
>>> path = pathlib.Path(tempfile.mkdtemp()) / "run.jsonl"
>>> with Journal(path) as journal:
...     events = journal.open({"policy": "RandomSearch"})
...     journal.append({"event": "told", "x": [0.5], "value": 1.0})
>>> Journal(path).read()[1]
[{'event': 'told', 'x': [0.5], 'value': 1.0}]
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from surefoot.arguments import one_of
from surefoot.loop.direction import DIRECTIONS, turned_event
from surefoot.loop.durable import Appended, write_atomically

__all__ = ["SCHEMA", "Journal", "check_schema", "dumps", "loads", "same_settings", "write_atomically"]

SCHEMA = 2
"""Version of the state and journal formats this release writes; newer ones are refused.

Since schema 2 an event says when it was written, and holds values as they were told. Schema 1 had no times; a journal
of a run that minimized held values, and options that are values, with the opposite sign.
"""

STARTS = [f'{{"schema":{schema},"direction":"'.encode() for schema in (1, SCHEMA)]  # one of them begins every journal


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


_STRICT = json.JSONDecoder(parse_constant=_refuse)


def dumps(value: Any) -> str:
    """Write strict JSON: NaN and infinities are refused, floats round-trip exactly.

    >>> dumps({"value": 0.1})
    '{"value":0.1}'
    """
    return json.dumps(value, allow_nan=False, separators=(",", ":"))


def loads(text: str) -> Any:
    """Read strict JSON; NaN and Infinity are refused.

    >>> loads("NaN")
    Traceback (most recent call last):
    ...
    ValueError: NaN is not JSON
    """
    try:
        return _STRICT.decode(text)
    except RecursionError:
        raise ValueError("this is nested too deeply") from None


def check_schema(data: Any, what: str, newest: int = SCHEMA) -> None:
    """Refuse a format newer than this release, or none at all; ``newest`` is that of what is read.

    >>> check_schema({"schema": 99}, "journal")
    Traceback (most recent call last):
    ...
    ValueError: this journal has schema 99, newer than the 2 this release of surefoot reads; please upgrade surefoot
    """
    schema = data.get("schema") if isinstance(data, dict) else None
    if not isinstance(schema, int) or isinstance(schema, bool) or schema < 1:
        raise ValueError(f"this is not a surefoot {what}: it has no schema number")
    if schema > newest:
        raise ValueError(
            f"this {what} has schema {schema}, newer than the {newest} this release of surefoot reads; "
            "please upgrade surefoot"
        )


class Journal:
    """An append-only file of events with a header and one writer.

    Parameters
    ----------
    path : path
        The file; it is locked while it is written, and can be read meanwhile.
    direction : {"maximize", "minimize"}, optional
        Which way is better. By default that of the policy that writes the journal; another one is refused.

    A file of schema 1 is read, and continued, as it is: its values change their sign here where it says ``minimize``.

    >>> Journal("run.jsonl", direction="upwards")
    Traceback (most recent call last):
    ...
    ValueError: direction must be 'maximize' or 'minimize', got 'upwards'
    """

    def __init__(self, path: str | os.PathLike[str], *, direction: str | None = None) -> None:
        if direction is not None:
            one_of(direction, "direction", DIRECTIONS)
        self.path = Path(path)
        self.direction = direction
        self._turns = False  # whether the file holds values of the opposite sign
        self._file = Appended(self.path)

    def read(self) -> tuple[dict[str, Any] | None, list[dict[str, Any]]]:
        """Return the header and the events; (None, []) for a missing or empty file."""
        header, events, _ = self._scan(self.path.read_bytes() if self.path.exists() else b"")
        return header, events

    def configured(self) -> dict[str, Any] | None:
        """Return the configuration in the first line; None where there is none that can be read."""
        try:
            with self.path.open("rb") as file:
                header = loads(file.readline().decode())
        except (OSError, ValueError):
            return None  # who opens the journal to write it says what is wrong
        config = header.get("config") if isinstance(header, dict) else None
        return config if isinstance(config, dict) else None

    def _told(self, event: dict[str, Any]) -> dict[str, Any]:
        """An event of the file as it was told, or the other way round."""
        return turned_event(event) if self._turns else event

    def _scan(self, content: bytes) -> tuple[dict[str, Any] | None, list[dict[str, Any]], int]:
        """Return header, events and the number of bytes up to the last whole line."""
        *lines, torn = content.split(b"\n")
        records = []
        for number, line in enumerate(lines, start=1):
            try:
                record = loads(line.decode())
            except ValueError:
                record = None
            if not isinstance(record, dict):
                raise ValueError(f"{self.path}: line {number} is damaged; the lines before it are intact")
            records.append(record)
        if not records:
            # What is not a header that was cut short is somebody else's file.
            if not any(start.startswith(torn[: len(start)]) for start in STARTS):
                raise ValueError(f"{self.path} is not a journal; use another path (surefoot.load reads saved states)")
            return None, [], 0
        check_schema(records[0], "journal")
        self._turns = records[0]["schema"] == 1 and records[0].get("direction") == "minimize"
        events = [self._told(event) for event in records[1:]]
        return records[0], events, sum(len(line) + 1 for line in lines)

    def open(
        self, header: dict[str, Any], first: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    ) -> list[dict[str, Any]]:
        """Become the writer; return the events already there.

        A new file gets the header. An existing file must have the same one: a journal belongs to one policy, though
        not to one ``device``. ``first`` says, of a header of schema 1, how it would say the same.
        """
        faces = header.get("direction", self.direction or DIRECTIONS[0])
        if self.direction not in (None, faces):
            raise ValueError(
                f"this journal is of a run that wants to {self.direction}, and the policy would {faces}: "
                f"give direction={self.direction!r} to the policy, and tell it values as they are"
            )
        self.direction = faces
        header = {"schema": SCHEMA, "direction": faces, **header}
        content = self._file.open()
        try:
            found, events, end = self._scan(content)
            if found is not None and found["schema"] == 1 and first is not None:
                header = {**header, **first(found)}
            before, now = _run(found or header), _run(header)
            if before != now:
                different = _changes(before, now)
                more = f", and {len(different) - 3} more" if len(different) > 3 else ""
                raise ValueError(
                    f"{self.path} belongs to another run ({', '.join(different[:3])}{more}); "
                    "use another path, or surefoot.load(path) to continue it as it was"
                )
            self._file.cut(end)
            if found is None:
                self.append(header)
        except BaseException:
            self.close()
            raise
        return events

    def append(self, *events: dict[str, Any]) -> None:
        """Write events and wait until they are on disk; all of them or, on a failure, none."""
        self._file.append("".join(dumps(self._told(event)) + "\n" for event in events).encode())

    def close(self) -> None:
        """Stop writing and let others write."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _run(header: dict[str, Any]) -> dict[str, Any]:
    """What a header says of the run itself: not in which format, nor where its arrays lie."""
    run = {name: value for name, value in header.items() if name != "schema"}
    config = header.get("config")
    if not isinstance(config, dict):
        return run
    return {**run, "config": _said({name: value for name, value in config.items() if name != "device"})}


def _said(stored: Any) -> Any:
    """A stored configuration without what says no more than its absence, as before schema 2."""
    if isinstance(stored, list):
        return [_said(item) for item in stored]
    if not isinstance(stored, dict):
        return stored
    return {
        name: _said(value)
        for name, value in stored.items()
        if not (name == "direction" and value in ("maximize", None)) and not (name == "automatic" and value == 1)
    }


def same_settings(config: Any, stored: Any) -> bool:
    """Tell whether a configuration is a stored one; those of schema 1 do not say ``direction``.

    >>> same_settings({"margin": 0.1, "direction": "maximize"}, {"margin": 0.1})
    True
    """
    return bool(_said(loads(dumps(config))) == _said(stored))


def _changes(before: Any, now: Any, name: str = "") -> list[str]:
    """What differs between two headers, each with its place and both values.

    >>> _changes({"config": {"width": 2.0}, "seed": 1}, {"config": {"width": 3.0}, "seed": 1})
    ['width was 2.0 and is 3.0']
    """
    if before == now:
        return []
    if isinstance(before, dict) and isinstance(now, dict):
        keys = sorted(before.keys() | now.keys())
        inside = {key: name if key in _LAYERS else f"{name}.{key}".strip(".") for key in keys}
        return [text for key in keys for text in _changes(before.get(key), now.get(key), inside[key])]
    was, is_ = (text if len(text := repr(value)) <= 40 else "another" for value in (before, now))
    return [f"{name} was {was} and is {is_}"]


_LAYERS = ("config", "value", "parameters")
"""Keys of a header that a user never wrote."""
