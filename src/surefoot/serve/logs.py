"""Logs as JSON lines: what happened and how long it took, never a value of anybody's data.

>>> record = logging.LogRecord("surefoot.serve", logging.INFO, "", 0, "request", (), None)
>>> record.fields = {"status": 200}
>>> json.loads(JsonLines().format(record))["status"]
200
"""

from __future__ import annotations

import json
import logging
import sys
import traceback
from datetime import UTC, datetime

__all__ = ["JsonLines", "configure", "frames"]


class JsonLines(logging.Formatter):
    """One JSON object for each record; of an exception only its type and the places it came through."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info and record.exc_info[1] is not None:
            line.update(frames(record.exc_info[1]))
        return json.dumps(line, default=str)


def frames(error: BaseException) -> dict[str, object]:
    """Return the type of an exception and its places in the code, without its message, which may quote data.

    >>> try:
    ...     raise KeyError("a secret")
    ... except KeyError as error:
    ...     frames(error)["exception"]
    'KeyError'
    """
    places = [f"{place.filename}:{place.lineno} {place.name}" for place in traceback.extract_tb(error.__traceback__)]
    return {"exception": type(error).__name__, "places": places[-20:]}


def configure(level: str = "info") -> None:
    """Send the logs of the service and of uvicorn to standard error, as JSON lines.

    >>> configure("loud")
    Traceback (most recent call last):
    ...
    ValueError: the level of the log is one of debug, info, warning, error; got 'loud'
    """
    if level not in ("debug", "info", "warning", "error"):
        raise ValueError(f"the level of the log is one of debug, info, warning, error; got {level!r}")
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    for name in ("surefoot", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level.upper())
