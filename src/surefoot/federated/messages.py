"""What crosses between an agent and the coordinator, and nothing else.

An agent sends a :class:`Message`: one drawn vector of weights. The coordinator answers everybody with the same
:class:`Broadcast`: one vector for each sub-region, or silence. Neither can hold a measured point or value. Both have a
wire form of strict JSON, and reading it back refuses what is not exactly that form.

>>> message = Message(agent=2, round=0, features="ab" * 32, vector=[0.5, -1.0])
>>> sorted(message.to_wire())
['agent', 'features', 'kind', 'round', 'schema', 'vector']
>>> Message.from_wire(message.to_wire()) == message
True
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from surefoot.arguments import whole
from surefoot.errors import SurefootError
from surefoot.federated.wire import Wire

__all__ = ["SILENCES", "Broadcast", "Message"]

Array = NDArray[np.float64]

LATEST = 2**53  # of a round: receivers keep it as a number of fixed size
SILENCES = ("coin", "budget", "last")
"""Why a broadcast may hold no vectors: the public coin, a spent privacy budget, or no query left to serve."""


@dataclass(frozen=True, eq=False)
class Message(Wire):
    """One agent's draw of the weights of the shared features, for one round.

    Parameters
    ----------
    agent : int
        Number of the agent on the public roster, from 0.
    round : int
        The round it was drawn for.
    features : str
        Hash of the shared features.
    vector : array of shape (M,)
        ω. Nothing is checked beyond its form: the receiver checks length, numbers and norm.

    >>> Message(agent=-1, round=0, features="ab" * 32, vector=[0.5])
    Traceback (most recent call last):
    ...
    ValueError: agent must be a whole number from 0 on, got -1
    """

    kind: ClassVar[str] = "message"

    agent: int
    round: int
    features: str
    vector: Array

    def __post_init__(self) -> None:
        _set(self, "agent", whole(self.agent, "agent"))
        if whole(self.round, "round") > LATEST:
            raise ValueError(f"no federation has {LATEST} rounds: this message is for round {self.round!r}")
        _set(self, "round", whole(self.round, "round"))
        _check_hash(self.features)
        _set(self, "vector", _numbers("vector", self.vector, 1))

    def __repr__(self) -> str:
        # The vector nearly reveals what was measured: a log must not show it.
        return f"Message(agent={self.agent}, round={self.round}, features={self.features[:12]!r})"


@dataclass(frozen=True, eq=False)
class Broadcast(Wire):
    """What the coordinator tells everybody after a round: a function for each sub-region, or silence.

    Parameters
    ----------
    round : int
        The round whose messages it is made of; it serves the queries of round + 1.
    features : str
        Hash of the shared features.
    parts : sequence of int
        The sub-regions: into how many equal parts each coordinate of the unit cube is cut.
    vectors : array of shape (P, M), optional
        One vector for each sub-region; None is silence.
    silence : {"coin", "budget", "last"}, optional
        Why there are no vectors.
    coin : bool, optional
        The public coin: whether all agents follow this broadcast. None leaves it to the coin of each agent.
    simulated : bool
        Whether its privacy noise came from a seed. Such a broadcast protects nobody, and does not go on a wire.

    >>> Broadcast(round=3, features="ab" * 32, parts=[1], silence="budget").vectors is None
    True
    >>> Broadcast(round=3, features="ab" * 32, parts=[1], vectors=[[0.0]], simulated=True).to_wire()
    Traceback (most recent call last):
    ...
    surefoot.errors.SurefootError: the noise of this broadcast came from a seed: it protects nobody and is not sent
    """

    kind: ClassVar[str] = "broadcast"

    round: int
    features: str
    parts: tuple[int, ...]
    vectors: Array | None = None
    silence: str | None = None
    coin: bool | None = None
    simulated: bool = False

    def __post_init__(self) -> None:
        _set(self, "round", whole(self.round, "round"))
        _check_hash(self.features)
        if not isinstance(self.parts, (list, tuple)) or not self.parts:
            raise ValueError(f"parts is a list of whole numbers, one for each coordinate, got {self.parts!r}")
        _set(self, "parts", tuple(whole(part, "parts", 1) for part in self.parts))
        for name in ("coin", "simulated"):
            if not isinstance(getattr(self, name), bool) and not (name == "coin" and self.coin is None):
                raise ValueError(f"{name} must be true or false, got {getattr(self, name)!r}")
        if (self.vectors is None) != (self.silence is not None):
            raise ValueError("a broadcast has vectors, or a reason for its silence, not both and not neither")
        if self.silence is not None and self.silence not in SILENCES:
            raise ValueError(f"silence must be one of {', '.join(SILENCES)}, got {self.silence!r}")
        if self.vectors is not None:
            vectors = _numbers("vectors", self.vectors, 2)
            if len(vectors) != np.prod(self.parts):
                raise ValueError(f"{np.prod(self.parts)} sub-regions need as many vectors, got {len(vectors)}")
            if not np.isfinite(vectors).all():
                raise ValueError("the vectors of a broadcast must be finite")
            _set(self, "vectors", vectors)

    def to_fields(self) -> dict[str, Any]:
        return {**super().to_fields(), "parts": list(self.parts)}

    def to_wire(self) -> dict[str, Any]:
        if self.simulated:
            raise SurefootError("the noise of this broadcast came from a seed: it protects nobody and is not sent")
        return super().to_wire()


def _set(owner: object, name: str, value: Any) -> None:
    object.__setattr__(owner, name, value)


def _check_hash(value: Any) -> None:
    if not isinstance(value, str) or len(value) != 64 or set(value) - set("0123456789abcdef"):
        raise ValueError(f"features is the hash of the shared features, 64 hexadecimal digits, got {value!r}")


def _numbers(name: str, value: Any, ndim: int) -> Array:
    """A read-only array of so many axes; numbers only, though perhaps not finite."""
    try:
        array = np.array(value)
        if array.size and array.dtype.kind not in "fiu":  # a text that reads as a number is none
            raise TypeError
        array = array.astype(np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be an array of numbers with {ndim} axes") from None
    if array.ndim != ndim:
        raise ValueError(f"{name} must be an array of numbers with {ndim} axes, got {array.ndim}")
    array.setflags(write=False)
    return array
