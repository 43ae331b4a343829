"""What crosses between the two parties, and nothing else.

Four messages: a :class:`Release` once, then :class:`Ask` and :class:`Answer` in turn, and a :class:`Close`. Each is a
frozen class with exactly the fields listed, and a wire form in strict JSON that is read back field by field; an unknown
field, a missing one or one of the wrong type is refused. There is no message that could hold a private row, a
projection, a singular value, or the record behind an index.

>>> ask = Ask(run="k3", step=0, index=17)
>>> ask.to_wire()
{'schema': 1, 'message': 'ask', 'run': 'k3', 'step': 0, 'index': 17}
>>> read(ask.to_wire()) == ask
True

Rows travel as base64 of little-endian ``float64``, with their shape: bit for bit, at a third more than their size. (As
decimal numbers they would take more than twice as much.)
"""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot.arguments import whole
from surefoot.errors import SurefootError
from surefoot.loop.journal import check_schema, dumps
from surefoot.private.guarantee import Guarantee

__all__ = ["Answer", "Ask", "Close", "Message", "Release", "read"]

Array = NDArray[np.float64]
SCHEMA = 1  # of messages, which parties with different releases exchange
LONGEST = 128  # characters of a run's name


@dataclass(frozen=True, eq=False)
class Release:
    """The rows that the modeler may see, with everything public about them.

    Parameters
    ----------
    run : str
        Name of the run; all messages carry it.
    rows : array of shape (n, r)
        Released rows in secret random order; a record's place in it is its index.
    noise : float
        Standard deviation of the noise on each number of a row; 0 for none.
    asks : int
        How many asks will be answered.
    repeats : bool
        Whether a row may be asked for again.
    output_noise : float
        Variance of the noise that is added to answers; 0 if they are in the clear.
    parameters : mapping
        Public parameters of the mechanism.
    guarantee : Guarantee
        What is protected.
    simulated : bool
        Made with reproducible noise: it does not cross.

    >>> release = Release("k3", np.zeros((2, 1)), noise=1.0, asks=5, guarantee=Guarantee(mechanism="GaussianRelease"))
    >>> Release.from_wire(release.to_wire()).rows.shape
    (2, 1)
    """

    run: str
    rows: Array
    noise: float = 0.0
    asks: int = 1
    repeats: bool = True
    output_noise: float = 0.0
    parameters: Mapping[str, Any] = field(default_factory=dict)
    guarantee: Guarantee = field(default_factory=lambda: Guarantee(mechanism="none"))
    simulated: bool = False

    def __post_init__(self) -> None:
        _name(self.run)
        rows = np.array(self.rows, dtype=np.float64)
        if rows.ndim != 2 or 0 in rows.shape or not np.isfinite(rows).all():
            raise ValueError(f"released rows are finite, of shape (n, r) with n, r >= 1, got shape {rows.shape}")
        rows.setflags(write=False)
        object.__setattr__(self, "rows", rows)
        for name in ("noise", "output_noise"):
            if not 0 <= getattr(self, name) < math.inf:
                raise ValueError(f"{name} must be finite and not negative, got {getattr(self, name)!r}")
        whole(self.asks, "asks", 1)

    def to_wire(self) -> dict[str, Any]:
        """Return the release as strict JSON; refused if it was simulated."""
        if self.simulated:
            raise SurefootError(
                "this release was made with reproducible noise, which protects nothing: "
                "it does not cross to another party"
            )
        return {
            "schema": SCHEMA,
            "message": "release",
            "run": self.run,
            "shape": list(self.rows.shape),
            "rows": base64.b64encode(self.rows.astype("<f8").tobytes()).decode("ascii"),
            "noise": self.noise,
            "asks": self.asks,
            "repeats": self.repeats,
            "output_noise": self.output_noise,
            "parameters": dict(self.parameters),
            "guarantee": self.guarantee.to_dict(),
        }

    @classmethod
    def from_wire(cls, data: Mapping[str, Any]) -> Release:
        """Read a release, refusing everything that is not exactly one."""
        values = _fields(data, "release", _RELEASE)
        shape = values.pop("shape")
        if len(shape) != 2:
            raise ValueError(f"the rows of a release have two dimensions, got shape {shape}")
        n, r = (whole(size, "shape", 1) for size in shape)
        try:
            content = base64.b64decode(values["rows"], validate=True)
        except (binascii.Error, ValueError):
            raise ValueError("the rows of a release are not base64") from None
        if len(content) != 8 * n * r:
            raise ValueError(f"{n} rows of {r} numbers take {8 * n * r} bytes, got {len(content)}")
        values["rows"] = np.frombuffer(content, dtype="<f8").reshape(n, r)
        values["noise"], values["output_noise"] = float(values["noise"]), float(values["output_noise"])
        values["guarantee"] = Guarantee.from_dict(values["guarantee"])
        dumps(values["parameters"])  # strict JSON
        return cls(**values)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Release):
            return NotImplemented
        return vars(self).keys() == vars(other).keys() and all(
            np.array_equal(a, b) if isinstance(a, np.ndarray) else a == b
            for a, b in zip(vars(self).values(), vars(other).values(), strict=True)
        )

    def __hash__(self) -> int:
        return hash((self.run, self.rows.tobytes()))

    def __repr__(self) -> str:
        n, r = self.rows.shape
        return f"Release(run={self.run!r}, {n} rows of {r}, noise={self.noise:.4g}, asks={self.asks})"


@dataclass(frozen=True)
class Ask:
    """The modeler wants a row measured.

    >>> Ask("k3", 0, -1)
    Traceback (most recent call last):
    ...
    ValueError: index must be a whole number from 0 on, got -1
    """

    run: str
    step: int
    index: int

    def __post_init__(self) -> None:
        _name(self.run)
        object.__setattr__(self, "step", whole(self.step, "step"))
        object.__setattr__(self, "index", whole(self.index, "index"))

    def to_wire(self) -> dict[str, Any]:
        """Return the message as strict JSON."""
        return {"schema": SCHEMA, "message": "ask", "run": self.run, "step": self.step, "index": self.index}

    @classmethod
    def from_wire(cls, data: Mapping[str, Any]) -> Ask:
        """Read an ask, refusing everything that is not exactly one."""
        return cls(**_fields(data, "ask", {"run": str, "step": int, "index": int}))


@dataclass(frozen=True)
class Answer:
    """The curator's answer to an ask: a value, or None for a measurement that failed.

    >>> Answer("k3", 0, 0.5).to_wire()
    {'schema': 1, 'message': 'answer', 'run': 'k3', 'step': 0, 'value': 0.5}
    """

    run: str
    step: int
    value: float | None

    def __post_init__(self) -> None:
        _name(self.run)
        object.__setattr__(self, "step", whole(self.step, "step"))
        if self.value is not None:
            if not math.isfinite(self.value):
                raise ValueError("the value of an answer must be finite, or None for a measurement that failed")
            object.__setattr__(self, "value", float(self.value))

    def to_wire(self) -> dict[str, Any]:
        """Return the message as strict JSON."""
        return {"schema": SCHEMA, "message": "answer", "run": self.run, "step": self.step, "value": self.value}

    @classmethod
    def from_wire(cls, data: Mapping[str, Any]) -> Answer:
        """Read an answer, refusing everything that is not exactly one."""
        return cls(**_fields(data, "answer", {"run": str, "step": int, "value": (int, float, type(None))}))


@dataclass(frozen=True)
class Close:
    """The modeler is done and names the row to use; None if it has no answer.

    >>> Close("k3", 17).to_wire()
    {'schema': 1, 'message': 'close', 'run': 'k3', 'index': 17}
    """

    run: str
    index: int | None

    def __post_init__(self) -> None:
        _name(self.run)
        if self.index is not None:
            object.__setattr__(self, "index", whole(self.index, "index"))

    def to_wire(self) -> dict[str, Any]:
        """Return the message as strict JSON."""
        return {"schema": SCHEMA, "message": "close", "run": self.run, "index": self.index}

    @classmethod
    def from_wire(cls, data: Mapping[str, Any]) -> Close:
        """Read a close, refusing everything that is not exactly one."""
        return cls(**_fields(data, "close", {"run": str, "index": (int, type(None))}))


Message = Release | Ask | Answer | Close
_RELEASE: dict[str, Any] = {
    "run": str,
    "shape": list,
    "rows": str,
    "noise": (int, float),
    "asks": int,
    "repeats": bool,
    "output_noise": (int, float),
    "parameters": dict,
    "guarantee": dict,
}


def read(data: Mapping[str, Any]) -> Message:
    """Read any of the four messages from its wire form.

    >>> read({"schema": 1, "message": "rows", "run": "k3"})
    Traceback (most recent call last):
    ...
    ValueError: unknown message 'rows'; known are ['answer', 'ask', 'close', 'release']
    """
    readers: dict[str, Callable[[Mapping[str, Any]], Message]]
    readers = {"release": Release.from_wire, "ask": Ask.from_wire, "answer": Answer.from_wire, "close": Close.from_wire}
    kind = data.get("message") if isinstance(data, Mapping) else None
    if not isinstance(kind, str) or kind not in readers:
        raise ValueError(f"unknown message {kind!r}; known are {sorted(readers)}")
    return readers[kind](data)


def _fields(data: Mapping[str, Any], kind: str, types: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a message: exactly these, of these types."""
    check_schema(data, "message", SCHEMA)
    if data.get("message") != kind:
        raise ValueError(f"this is not a message {kind!r}, but {data.get('message')!r}")
    names, wanted = set(data) - {"schema", "message"}, set(types)
    if names != wanted:
        wrong = [*(f"unknown {name!r}" for name in sorted(names - wanted, key=str)), *map(repr, sorted(wanted - names))]
        raise ValueError(f"a message {kind!r} has the fields {sorted(wanted)}; {wrong[0]} is not as it should be")
    for name, allowed in types.items():
        value = data[name]
        if not isinstance(value, allowed) or (isinstance(value, bool) and allowed is not bool):
            raise ValueError(f"field {name!r} of a message {kind!r} has the wrong type {type(value).__name__}")
    return {name: data[name] for name in types}


def _name(run: Any) -> str:
    if not isinstance(run, str) or not 0 < len(run) <= LONGEST or not run.isprintable():
        raise ValueError(f"the name of a run is a printable text of up to {LONGEST} characters, got {run!r}")
    return run
