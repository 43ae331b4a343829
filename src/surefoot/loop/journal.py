"""The journal: the events of a policy, one JSON line each, on disk before the call that made them returns.

The first line is a header (policy, configuration, seed, direction). A line that was cut short by a crash is ignored on
reading and removed by the next writer. One process writes at a time; a second is refused. A file that is something else
is refused too, and stays as it is.

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
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from surefoot.arguments import one_of
from surefoot.errors import SurefootError

__all__ = ["SCHEMA", "Journal", "check_schema", "dumps", "loads", "write_atomically"]

SCHEMA = 1
"""Version of the state and journal formats this release writes; newer ones are refused."""

START = f'{{"schema":{SCHEMA},"direction":"'.encode()  # of every journal


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

    def refuse(name: str) -> Any:
        raise ValueError(f"{name} is not JSON")

    return json.loads(text, parse_constant=refuse)


def check_schema(data: Any, what: str) -> None:
    """Refuse a format newer than this release, or none at all.

    >>> check_schema({"schema": 99}, "journal")
    Traceback (most recent call last):
    ...
    ValueError: this journal has schema 99, newer than the 1 this release of surefoot reads; please upgrade surefoot
    """
    schema = data.get("schema") if isinstance(data, dict) else None
    if not isinstance(schema, int) or isinstance(schema, bool) or schema < 1:
        raise ValueError(f"this is not a surefoot {what}: it has no schema number")
    if schema > SCHEMA:
        raise ValueError(
            f"this {what} has schema {schema}, newer than the {SCHEMA} this release of surefoot reads; "
            "please upgrade surefoot"
        )


class Journal:
    """An append-only file of events with a header and one writer.

    Parameters
    ----------
    path : path
        The file; a lock file of the same name with ``.lock`` appended stands beside it.
    direction : {"maximize", "minimize"}
        What the numbers mean to the person who reads them. Policies always maximize; values in the journal are those
        the policy saw. The header records the direction so that a reader can undo the sign.

    >>> Journal("run.jsonl", direction="upwards")
    Traceback (most recent call last):
    ...
    ValueError: direction must be 'maximize' or 'minimize', got 'upwards'
    """

    def __init__(self, path: str | os.PathLike[str], *, direction: str = "maximize") -> None:
        one_of(direction, "direction", ("maximize", "minimize"))
        self.path = Path(path)
        self.direction = direction
        self._file: IO[bytes] | None = None
        self._lock: IO[bytes] | None = None

    def read(self) -> tuple[dict[str, Any] | None, list[dict[str, Any]]]:
        """Return the header and the events; (None, []) for a missing or empty file."""
        header, events, _ = self._scan()
        return header, events

    def _scan(self) -> tuple[dict[str, Any] | None, list[dict[str, Any]], int]:
        """Return header, events and the number of bytes up to the last whole line."""
        content = self.path.read_bytes() if self.path.exists() else b""
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
            if not START.startswith(torn[: len(START)]):  # not a header that was cut short: somebody else's file
                raise ValueError(f"{self.path} is not a journal; use another path (surefoot.load reads saved states)")
            return None, [], 0
        check_schema(records[0], "journal")
        return records[0], records[1:], sum(len(line) + 1 for line in lines)

    def open(self, header: dict[str, Any]) -> list[dict[str, Any]]:
        """Become the writer; return the events already there.

        A new file gets the header. An existing file must have the same one: a journal belongs to one policy, though
        not to one ``device``.
        """
        header = {"schema": SCHEMA, "direction": self.direction, **header}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._acquire()
        try:
            found, events, end = self._scan()
            before, now = _run(found or header), _run(header)
            if before != now:
                different = sorted(key for key in before.keys() | now.keys() if before.get(key) != now.get(key))
                raise ValueError(
                    f"{self.path} belongs to another run (its {', '.join(different)} differ); "
                    "use another path, or surefoot.load(path) to continue it as it was"
                )
            self._file = self.path.open("r+b" if self.path.exists() else "x+b")
            self._file.truncate(end)
            self._file.seek(end)
            if found is None:
                self.append(header)
                self._sync_directory()
        except BaseException:
            self.close()
            raise
        return events

    def append(self, *events: dict[str, Any]) -> None:
        """Write events and wait until they are on disk."""
        if self._file is None:
            raise SurefootError(f"{self.path} is not open for writing")
        position = self._file.tell()
        try:
            self._file.write("".join(dumps(event) + "\n" for event in events).encode())
            self._file.flush()
            os.fsync(self._file.fileno())
        except BaseException:
            # A half-written line must not become the prefix of the next one.
            self._file.seek(position)
            self._file.truncate(position)
            raise

    def close(self) -> None:
        """Stop writing and let others write."""
        for handle in (self._file, self._lock):
            if handle is not None:
                handle.close()
        self._file = self._lock = None

    def _acquire(self) -> None:
        lock = Path(f"{self.path}.lock").open("ab")  # noqa: SIM115 - held until close()
        try:
            _lock_exclusively(lock)
        except OSError:
            lock.close()
            raise SurefootError(f"{self.path} is being written by another process or policy") from None
        self._lock = lock

    def _sync_directory(self) -> None:
        """Make the new file's name durable too, where the system allows it."""
        if os.name == "posix":
            descriptor = os.open(self.path.parent, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _run(header: dict[str, Any]) -> dict[str, Any]:
    """What a header says of the run itself: not where its arrays lie."""
    config = header.get("config")
    if not isinstance(config, dict):
        return header
    return {**header, "config": {name: value for name, value in config.items() if name != "device"}}


def write_atomically(path: Path, text: str) -> None:
    """Write a file so that a reader, or a crash, sees the old or the new content, never a part.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "note.txt"
    >>> write_atomically(path, "whole")
    >>> path.read_text()
    'whole'
    """
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    with partial.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)


def _lock_exclusively(handle: IO[bytes]) -> None:
    """Take a lock that the system releases when the process dies, or raise OSError."""
    if os.name == "posix":
        import fcntl

        fcntl.flock(handle.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    else:  # pragma: no cover - Windows
        import msvcrt

        msvcrt.locking(handle.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined, unused-ignore]
