"""The form in which messages cross between parties: strict JSON, both ways, and nothing beside the fields.

>>> from surefoot.federated.messages import Broadcast
>>> Broadcast.from_wire({"schema": 1, "kind": "message"})
Traceback (most recent call last):
...
ValueError: this is not a broadcast but 'message'
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, ClassVar, Self

import numpy as np

from surefoot.loop.journal import check_schema

__all__ = ["SCHEMA", "Wire"]

SCHEMA = 1  # of messages, which parties with different releases exchange


class Wire:
    """Base of what crosses: a frozen data class whose fields are strict JSON, and its ``kind``."""

    kind: ClassVar[str]

    def to_fields(self) -> dict[str, Any]:
        """Return the fields as strict JSON, for a journal of the same party."""
        pairs = {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
        return {key: value.tolist() if isinstance(value, np.ndarray) else value for key, value in pairs.items()}

    def to_wire(self) -> dict[str, Any]:
        """Return what is sent: the fields as strict JSON, with the kind and the version of the format."""
        return {"schema": SCHEMA, "kind": self.kind, **self.to_fields()}

    @classmethod
    def from_wire(cls, data: Mapping[str, Any]) -> Self:
        """Read what was sent; anything missing, unknown or malformed is a ``ValueError``."""
        if not isinstance(data, Mapping):
            raise ValueError(f"a {cls.kind} on the wire is a mapping, got {type(data).__name__}")
        check_schema(dict(data), cls.kind, SCHEMA)
        if data.get("kind") != cls.kind:
            raise ValueError(f"this is not a {cls.kind} but {data.get('kind')!r}")
        content = {key: value for key, value in data.items() if key not in ("schema", "kind")}
        names = {field.name for field in fields(cls)}  # type: ignore[arg-type]
        if wrong := sorted(set(content) ^ names):
            raise ValueError(f"a {cls.kind} has the fields {', '.join(sorted(names))}; {wrong[0]!r} is amiss")
        return cls(**content)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.to_fields() == other.to_fields()

    def __hash__(self) -> int:
        return hash((self.kind, getattr(self, "round")))  # noqa: B009 - a field of the subclasses
