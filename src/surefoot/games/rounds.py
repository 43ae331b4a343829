"""One round of a game: what everybody did, and what it was worth to each.

>>> done = Round(actions=([0.2], [0.7]), payoffs=(1.0, None))
>>> done.actions[1], done.payoffs
(array([0.7]), (1.0, None))
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["Round"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False, init=False)
class Round:
    """The actions of all players, by seat, and the payoffs that were seen; None or NaN for one that was not.

    Parameters
    ----------
    actions : sequence of arrays of shape (d_i,)
        What each player did, in its own units.
    payoffs : sequence of float or None
        What each player got, as it was measured.

    >>> Round([[0.0], [1.0]], [0.5, float("nan")]).payoffs
    (0.5, None)
    """

    actions: tuple[Array, ...]
    payoffs: tuple[float | None, ...]

    def __init__(self, actions: Sequence[ArrayLike], payoffs: Sequence[float | None]) -> None:
        vectors = tuple(np.array(action, dtype=np.float64, ndmin=1) + 0.0 for action in actions)
        numbers = tuple(_payoff(value) for value in payoffs)
        if len(vectors) != len(numbers) or len(vectors) < 2:
            raise ValueError(
                f"a round has an action and a payoff for each of at least two players, got {len(vectors)} actions and "
                f"{len(numbers)} payoffs"
            )
        for seat, vector in enumerate(vectors):
            if vector.ndim != 1 or not np.isfinite(vector).all():
                raise ValueError(f"the action of player {seat} must be a finite vector, got {actions[seat]!r}")
            vector.setflags(write=False)
        object.__setattr__(self, "actions", vectors)
        object.__setattr__(self, "payoffs", numbers)

    def to_dict(self) -> dict[str, Any]:
        """Return plain lists.

        >>> Round([[0.0], [1.0]], [0.5, None]).to_dict()
        {'actions': [[0.0], [1.0]], 'payoffs': [0.5, None]}
        """
        return {"actions": [action.tolist() for action in self.actions], "payoffs": list(self.payoffs)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Round:
        """Rebuild a round from :meth:`to_dict`; other entries are left alone."""
        return cls(data["actions"], data["payoffs"])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Round) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((tuple(action.tobytes() for action in self.actions), self.payoffs))


def _payoff(value: float | None) -> float | None:
    number = None if value is None else float(value)
    if number is None or math.isnan(number):
        return None
    if math.isinf(number):
        raise ValueError(f"a payoff must be finite, got {value!r} (use None for one that was not seen)")
    return number
