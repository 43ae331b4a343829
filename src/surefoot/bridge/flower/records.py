"""Messages and broadcasts as Flower's records: arrays as arrays, the rest as one table of plain values.

What is read back is a wire form of :mod:`surefoot.federated.messages`, which refuses everything it does not know. A
record beside the expected ones is refused here: nothing rides along.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, RecordDict

from surefoot.federated.messages import Broadcast, Message

__all__ = [
    "WORDS",
    "message_from_records",
    "message_to_records",
    "request_from_records",
    "request_to_records",
    "word_to_records",
]

WORDS = ("done", "failed", "features")
"""What an agent may say instead: the last query is made, something went wrong on the node, its features differ."""

_NUMBERS = ("vector", "vectors")
_OPTIONAL = {"vectors": None, "silence": None, "coin": None}  # absent on the wire: Flower has no empty value


def message_to_records(message: Message) -> RecordDict:
    """Return what an agent sends.

    >>> records = message_to_records(Message(agent=2, round=0, features="ab" * 32, vector=[0.5, -1.0]))
    >>> sorted(records), sorted(records["message"])
    (['message', 'message.arrays'], ['agent', 'features', 'kind', 'round', 'schema'])
    >>> message_from_records(records)
    Message(agent=2, round=0, features='abababababab')
    """
    return RecordDict(_records("message", message.to_wire()))


def word_to_records(word: str) -> RecordDict:
    """Return one of the words.

    >>> message_from_records(word_to_records("done"))
    'done'
    """
    return RecordDict({"word": ConfigRecord({"word": word})})


def message_from_records(content: RecordDict) -> Message | str:
    """Read what an agent sent; anything but exactly a message, or one of the words, is a ``ValueError``.

    >>> message_from_records(RecordDict({"message": ConfigRecord({"agent": 2}), "extra": ConfigRecord({"y": 0.3})}))
    Traceback (most recent call last):
    ...
    ValueError: these records are not a message: extra, message
    """
    if set(content) == {"word"}:
        word = dict(content.config_records.get("word", {}))
        if set(word) != {"word"} or word["word"] not in WORDS:
            raise ValueError(f"the words of an agent are {', '.join(WORDS)}")
        return str(word["word"])
    if set(content) != {"message", "message.arrays"}:
        raise ValueError(f"these records are not a message: {', '.join(sorted(content))}")
    return Message.from_wire(_wire("message", content))


def request_to_records(round: int, features: str, broadcast: Broadcast | None, *, last: bool = False) -> RecordDict:
    """Return what the server asks of an agent: a round's query and message, with the broadcast of the round before.

    >>> records = request_to_records(3, "ab" * 32, None)
    >>> dict(records["request"])["round"], request_from_records(records)[2:]
    (3, (None, False))
    """
    records: dict[str, Any] = {"request": ConfigRecord({"round": round, "features": features, "last": last})}
    if broadcast is not None:
        records |= _records("broadcast", broadcast.to_wire())
    return RecordDict(records)


def request_from_records(content: RecordDict) -> tuple[int, str, Broadcast | None, bool]:
    """Read a request: its round, the server's hash of the features, the broadcast, and whether it is the last.

    >>> request_from_records(RecordDict({"other": ConfigRecord({})}))
    Traceback (most recent call last):
    ...
    ValueError: these records are not a request: other
    """
    if "request" not in content or set(content) - {"request", "broadcast", "broadcast.arrays"}:
        raise ValueError(f"these records are not a request: {', '.join(sorted(content))}")
    request = dict(content.config_records["request"])
    if set(request) != {"round", "features", "last"} or not isinstance(request["round"], int):
        raise ValueError(f"a request has a round, a hash of the features and whether it is the last, got {request!r}")
    broadcast = Broadcast.from_wire(_OPTIONAL | _wire("broadcast", content)) if "broadcast" in content else None
    return request["round"], str(request["features"]), broadcast, bool(request["last"])


def _records(name: str, wire: Mapping[str, Any]) -> dict[str, Any]:
    arrays = {key: Array(np.asarray(wire[key])) for key in _NUMBERS if wire.get(key) is not None}
    plain = {key: value for key, value in wire.items() if key not in _NUMBERS and value is not None}
    return {name: ConfigRecord(plain)} | ({f"{name}.arrays": ArrayRecord(arrays)} if arrays else {})


def _wire(name: str, content: RecordDict) -> dict[str, Any]:
    try:
        plain: dict[str, Any] = dict(content.config_records[name])
        arrays = {key: array.numpy() for key, array in content.array_records.get(f"{name}.arrays", {}).items()}
    except (KeyError, ValueError, TypeError, EOFError, OSError):
        raise ValueError(f"the arrays of this {name} cannot be read") from None
    if wrong := [array.dtype for array in arrays.values() if array.dtype != np.float64]:
        raise ValueError(f"the arrays of a {name} hold 64-bit floats, got {wrong[0]}")
    if overwritten := sorted(plain.keys() & arrays.keys()):
        raise ValueError(f"this {name} has {overwritten[0]!r} twice")
    return plain | arrays
