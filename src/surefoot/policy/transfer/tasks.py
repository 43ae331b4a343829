"""Earlier tasks: what was measured on other, perhaps related functions.

A :class:`Task` is a list of points and values of an earlier run, in the domain's own units. What is better is what is
better for the policy that takes it: higher values, lower ones with ``direction="minimize"``.

>>> Task([[0.1], [0.5]], [1.0, 2.0], name="last year")
Task(2 measurements, name='last year')

It comes from arrays, from the journal or the saved state of an earlier policy (:meth:`Task.from_journal`), or, for
parameters with names, from a list of mappings. A failed run is no measurement and is left out.

In the state of a policy, tasks of up to 10,000 numbers together are written down; more are described by their hashes
and passed again: ``surefoot.load(path, tasks=...)``.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot.domain import Domain
from surefoot.domain.candidates import INLINE
from surefoot.loop.journal import Journal, check_schema, dumps, loads
from surefoot.loop.state import storable, unpack

__all__ = ["Task"]

Array = NDArray[np.float64]


@storable
class Task:
    """What was measured in one earlier task.

    Parameters
    ----------
    X : array of shape (n, d) or (n,), or sequence of n mappings
        Points in the domain's own units, or named parameters on a ``Space``.
    y : array of shape (n,)
        Values, in the units and in the direction of the target's.
    name : str, optional
        For people.
    noise : float or array of shape (n,), optional
        Noise variances, where they are known.
    epochs : array of shape (n,), optional
        How many epochs each run lasted whose score is given; NaN: to its end. For policies that follow runs.

    >>> task = Task([{"rate": 0.1, "depth": 3}, {"rate": 0.01, "depth": 5}], [0.8, 0.9])
    >>> len(task), task.X[0]
    (2, {'rate': 0.1, 'depth': 3})
    """

    def __init__(
        self,
        X: ArrayLike | Sequence[Mapping[str, Any]],
        y: ArrayLike,
        name: str | None = None,
        *,
        noise: Any = None,
        epochs: ArrayLike | None = None,
    ) -> None:
        self.y = _column(y, "values")
        self.name = None if name is None else str(name)
        self.X: Array | tuple[dict[str, Any], ...]
        if isinstance(X, Sequence) and any(isinstance(row, Mapping) for row in X):
            if not all(isinstance(row, Mapping) for row in X):
                raise ValueError("the points of a task are either all mappings or all numbers, got both")
            self.X = tuple(dict(row) for row in cast(Sequence[Mapping[str, Any]], X))
        else:
            array = _numbers(X, "points") + 0.0
            self.X = array[:, None] if array.ndim == 1 else array
            if self.X.ndim != 2 or not np.isfinite(self.X).all():
                raise ValueError(f"the points of a task are finite numbers of shape (n, d), got shape {array.shape}")
            self.X.setflags(write=False)
        if not len(self.y) or len(self.X) != len(self.y):
            raise ValueError(f"a task has as many points as values, at least one; got {len(self.X)} and {len(self.y)}")
        self.noise = None if noise is None else _column(_for_each(noise, self.y.shape), "noise variances")
        if self.noise is not None and (self.noise < 0).any():
            raise ValueError(f"noise is a variance, not negative, got {noise!r}")
        self.epochs = None if epochs is None else _column(_for_each(epochs, self.y.shape), "epochs")
        if self.epochs is not None and (self.epochs < 1).any():
            raise ValueError(f"epochs are counted from 1, got {epochs!r}")

    @classmethod
    def from_journal(cls, path: str | os.PathLike[str], name: str | None = None) -> Self:
        """Read the measurements of an earlier policy from its journal, or from a file it was saved to.

        >>> import tempfile
        >>> from surefoot import Box, RandomSearch
        >>> path = Path(tempfile.mkdtemp()) / "run.jsonl"
        >>> with RandomSearch(Box([(0.0, 1.0)]), seed=0, journal=path) as policy:
        ...     for value in (1.0, None, 2.0):
        ...         policy.tell(policy.ask(), value)
        >>> Task.from_journal(path)
        Task(2 measurements, name='run')
        """
        where = Path(path)
        first, *_ = where.read_text(encoding="utf-8").split("\n", 1)
        head: Any = loads(first) if first.strip() else None
        check_schema(head, "file")
        if "events" not in head:
            head, events = Journal(where).read()
            head = {**(head or {}), "events": events}
        return cls.from_state(head, where.stem if name is None else name)

    @classmethod
    def from_state(cls, state: Mapping[str, Any], name: str | None = None) -> Self:
        """Take the measurements of an earlier policy from its ``state()``.

        >>> from surefoot import Float, RandomSearch, Space
        >>> policy = RandomSearch(Space(rate=Float(1e-3, 1.0, log=True)), seed=0)
        >>> policy.tell({"rate": 0.1}, 3.0)
        >>> Task.from_state(policy.state()).X
        ({'rate': 0.1},)
        """
        check_schema(state, "state")
        if not {"events", "config"} <= state.keys():
            raise ValueError("this is not the state of a policy: it has no events, or no config")
        asked = {event["id"]: event["x"] for event in state["events"] if event["event"] == "asked"}
        told: list[Any] = []
        X: list[Any] = []
        for event in state["events"]:
            if event["event"] == "told" and event["value"] is not None:
                x = event["x"] if "x" in event else asked[event["id"]]
                # A move has one value for each of its stops, null where one was missed.
                stops = zip(x, event["values"], strict=True) if "values" in event else [(x, event["value"])]
                for point, value in stops:
                    if value is not None:
                        told.append({**event, "value": value})
                        X.append(point)
        if not told:
            raise ValueError("nothing was measured successfully in this run: it is no task")
        stored = state["config"]["domain"]
        if stored.get("$type") == "Space":  # names outlive the order of parameters and of choices
            space = unpack(stored)
            X = [space.params(np.asarray(x)) for x in X]
        noise = [event.get("noise", math.nan) for event in told]
        lasted: dict[int, float] = {}
        for event in state["events"]:
            if event["event"] == "reported" and event["step"] >= 1:
                lasted[event["id"]] = max(float(event["step"]), lasted.get(event["id"], 1.0))
        return cls(
            X,
            [event["value"] for event in told],
            name,
            noise=None if np.isnan(noise).all() else noise,
            epochs=[lasted.get(event.get("id"), math.nan) for event in told] if lasted else None,
        )

    def points(self, domain: Domain) -> Array:
        """Return the points as the domain's own, shape (n, d), or raise a ValueError that names the first bad one.

        On ``Candidates`` a task may have been measured anywhere, not only at candidates.

        >>> from surefoot import Box
        >>> Task([[0.5], [1.5]], [1.0, 2.0], name="old").points(Box([(0.0, 1.0)]))
        Traceback (most recent call last):
        ...
        ValueError: task 'old', measurement 1: x0 = 1.5 is outside [0.0, 1.0]
        """
        if not (isinstance(self.X, np.ndarray) or domain.parameters):
            raise ValueError(f"{self._label()} has named parameters; {type(domain).__name__} has none")
        if isinstance(self.X, np.ndarray) and self.X.shape[1] != domain.dimension:
            raise ValueError(
                f"{self._label()} has points of {self.X.shape[1]} numbers, the domain of {domain.dimension}"
            )
        inside = self._inside(domain)
        if not inside.all():
            row = int(np.flatnonzero(~inside)[0])
            try:
                domain.validate(self.X[row])
            except ValueError as error:
                raise ValueError(f"{self._label()}, measurement {row}: {error}") from None
        if isinstance(self.X, np.ndarray):
            return self.X
        return np.array([domain.validate(row) for row in self.X])

    def within(self, domain: Domain) -> Task:
        """Return the task with the points that lie in the domain, for a study whose ranges have changed.

        >>> from surefoot import Box
        >>> Task([[0.5], [1.5]], [1.0, 2.0]).within(Box([(0.0, 1.0)])).y
        array([1.])
        """
        inside = self._inside(domain)
        if not inside.any():
            raise ValueError(f"no measurement of {self._label()} lies in {domain!r}")
        rows = np.flatnonzero(inside)
        X = self.X[rows] if isinstance(self.X, np.ndarray) else [self.X[i] for i in rows]
        noise, epochs = (None if part is None else part[rows] for part in (self.noise, self.epochs))
        return type(self)(X, self.y[rows], self.name, noise=noise, epochs=epochs)

    def negated(self) -> Task:
        """Return the task of −f.

        >>> Task([[0.5]], [1.0]).negated().y
        array([-1.])
        """
        return type(self)(self.X, -self.y, self.name, noise=self.noise, epochs=self.epochs)

    def _inside(self, domain: Domain) -> NDArray[np.bool_]:
        if domain.listed:
            return np.ones(len(self), dtype=np.bool_)
        if isinstance(self.X, np.ndarray):
            return domain.contains(self.X)
        return np.array([_valid(domain, row) for row in self.X], dtype=np.bool_)

    def _label(self) -> str:
        return "a task" if self.name is None else f"task {self.name!r}"

    @property
    def numbers(self) -> int:
        """How many numbers it takes to write the task down."""
        width = self.X.shape[1] if isinstance(self.X, np.ndarray) else len(self.X[0])
        return len(self) * (width + 1 + (self.noise is not None) + (self.epochs is not None))

    @property
    def sha256(self) -> str:
        """Hash of the measurements; the name plays no part."""
        digest = hashlib.sha256()
        parts = [self.X, self.y, np.empty(0) if self.noise is None else self.noise]
        for part in parts if self.epochs is None else [*parts, self.epochs]:
            if isinstance(part, np.ndarray):
                digest.update(f"{part.shape};".encode() + part.astype("<f8", copy=False).tobytes())
            else:
                digest.update(dumps(part).encode())
        return digest.hexdigest()

    def to_dict(self, *, inline: bool | None = None) -> dict[str, Any]:
        """Return a description in strict JSON; more than 10,000 numbers are described by their hash."""
        if not (self.numbers <= INLINE if inline is None else inline):
            return {"name": self.name, "sha256": self.sha256, "measurements": len(self)}
        X = self.X.tolist() if isinstance(self.X, np.ndarray) else [dict(row) for row in self.X]
        stored = {"name": self.name, "X": X, "y": self.y.tolist(), "noise": _gaps_as_null(self.noise)}
        return stored if self.epochs is None else {**stored, "epochs": _gaps_as_null(self.epochs)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Rebuild the task from :meth:`to_dict`; one described by its hash must be passed again.

        >>> task = Task([[0.1], [0.5]], [1.0, 2.0])
        >>> Task.from_dict(task.to_dict()) == task
        True
        """
        if "sha256" in data:
            raise ValueError(f"a task of {data['measurements']} measurements was stored by its hash only")
        noise, epochs = (
            None if data.get(key) is None else [math.nan if v is None else v for v in data[key]]
            for key in ("noise", "epochs")
        )
        return cls(data["X"], data["y"], data.get("name"), noise=noise, epochs=epochs)

    def __len__(self) -> int:
        return len(self.y)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Task) and self.name == other.name and self.sha256 == other.sha256

    def __hash__(self) -> int:
        return hash((self.name, self.y.tobytes()))

    def __repr__(self) -> str:
        return f"Task({len(self)} measurements{'' if self.name is None else f', name={self.name!r}'})"


def _numbers(values: Any, what: str) -> Array:
    try:
        return np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"the {what} of a task are numbers, got {values!r}") from None


def _for_each(values: Any, shape: tuple[int, ...]) -> Array:
    """One number for all measurements, or one for each."""
    array = np.asarray(values)
    if array.shape not in ((), shape):
        raise ValueError(f"give one number for all of {shape[0]} measurements, or one for each; got {values!r}")
    return np.broadcast_to(array, shape)


def _column(values: ArrayLike, what: str) -> Array:
    array = _numbers(values, what)
    if array.ndim != 1 or not (np.isfinite(array) | (np.isnan(array) & (what != "values"))).all():
        raise ValueError(f"the {what} of a task are finite numbers of shape (n,), got {values!r}")
    array.setflags(write=False)
    return array


def _gaps_as_null(column: Array | None) -> list[float | None] | None:
    return None if column is None else [None if math.isnan(v) else v for v in column.tolist()]


def _valid(domain: Domain, row: Any) -> bool:
    try:
        domain.validate(row)
    except ValueError:
        return False
    return True
