"""Policies that follow a set of points until it is decided: possible maximizers, or points near a threshold.

:class:`SetPolicy` is what :mod:`surefoot.policy.levels.truvar` and :mod:`surefoot.policy.levels.level_set` share:

* **Ground.** The points that are followed: the candidates; on a finite space of at most 4,096 points all of them; on
  a box or a larger space ``points`` Sobol points that stand for it, the same ones for the whole run.
* **Memory.** A set that may only shrink depends on all earlier beliefs, and so does a stage of an algorithm. What a
  query has decided is kept in its ``note``, as runs of indices, so that a policy rebuilt from its events knows the
  same without fitting anything again. Sets are brought up to date when a point is asked for; looking changes nothing.
* **Noise.** ``noise`` gives each point its own variance, for measurements that do not bring one.

Cost: mean and variance at the ground, O(n) per measurement and candidate, O(n²) per Sobol point and ask.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from surefoot.arguments import whole
from surefoot.belief.gp import GP
from surefoot.belief.grid import GridPosterior
from surefoot.belief.posterior import Posterior
from surefoot.domain import Candidates, Domain
from surefoot.domain.search import EXHAUSTIVE
from surefoot.errors import NotSupported
from surefoot.loop.device import placer
from surefoot.loop.types import Query
from surefoot.policy.legacy import ModelOptions, ModelPolicy
from surefoot.policy.levels.prices import Field, checked_field, numbers_at

__all__ = ["Memory", "SetOptions", "SetPolicy"]

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


class SetOptions(ModelOptions, total=False):
    """Keyword arguments of every policy that follows a set, besides :class:`ModelOptions`.

    ``noise`` is an array over the candidates, or a function of points (m, d), of the variances of measurements;
    ``points`` how many Sobol points stand for a box; ``device`` where the belief about candidates is kept: None for
    NumPy, or the name of a torch device such as ``"cuda"``.

    >>> options: SetOptions = {"points": 512}
    """

    noise: Field | None
    points: int
    device: str | None


@dataclass(frozen=True)
class Memory:
    """What the queries so far have decided: which points are above, which below, and the stage.

    >>> memory = Memory.of(5).after({"above": [[0, 2]], "epoch": 3})
    >>> memory.above, memory.epoch
    (array([ True,  True, False, False, False]), 3)
    """

    above: Mask
    below: Mask
    epoch: int = 1
    start: int = 1

    @classmethod
    def of(cls, size: int) -> Memory:
        """Return the memory of nothing."""
        return cls(np.zeros(size, dtype=np.bool_), np.zeros(size, dtype=np.bool_))

    def after(self, note: Mapping[str, Any]) -> Memory:
        """Return the memory after one more query."""
        if not note.keys() & {"above", "below", "epoch"}:
            return self
        size = self.above.size
        return Memory(
            self.above | _filled(note.get("above", ()), size),
            self.below | _filled(note.get("below", ()), size),
            note.get("epoch", self.epoch),
            note.get("start", self.start),
        )

    def note(self, above: Mask, below: Mask) -> dict[str, Any]:
        """Return what is new in two sets, as runs [first, end) of indices.

        >>> Memory.of(4).note(np.array([True, True, False, True]), np.zeros(4, dtype=bool))
        {'above': [[0, 2], [3, 4]]}
        """
        new = {"above": _runs(above & ~self.above), "below": _runs(below & ~self.below)}
        return {name: runs for name, runs in new.items() if runs}


def _runs(mask: Mask) -> list[list[int]]:
    edges = np.flatnonzero(np.diff(np.concatenate([[0], mask.astype(np.int8), [0]])))
    runs: list[list[int]] = edges.reshape(-1, 2).tolist()
    return runs


def _filled(runs: Sequence[Sequence[int]], size: int) -> Mask:
    change = np.zeros(size + 1, dtype=np.int8)
    ends = np.array(runs, dtype=np.intp).reshape(-1, 2)
    change[ends[:, 0]], change[ends[:, 1]] = 1, -1  # runs do not touch
    return np.cumsum(change[:-1]).astype(np.bool_)


class SetPolicy(ModelPolicy):
    """Base of the policies that follow a set of points; see the module's page.

    Parameters
    ----------
    domain : Box, Candidates or Space
        Where points may lie.
    monotone : bool, optional
        Whether what is decided stays decided; None: unless the belief is refitted.
    **options
        Those of :class:`SetOptions`.

    >>> from surefoot import GPLSE, Box
    >>> policy = GPLSE(Box([(0.0, 1.0)]), threshold=0.5, points=64, seed=0)
    >>> isinstance(policy, SetPolicy), policy.ground.shape
    (True, (64, 1))
    """

    def __init__(
        self,
        domain: Domain,
        *,
        monotone: bool | None = None,
        noise: Field | None = None,
        points: int = 1024,
        device: str | None = None,
        **options: Unpack[ModelOptions],
    ) -> None:
        super().__init__(domain, **options)
        if monotone not in (True, False, None):
            raise ValueError(f"monotone must be True, False or None, got {monotone!r}")
        if device is not None and not isinstance(domain, Candidates):
            raise NotSupported(f"a device is of use on Candidates only, not on {type(domain).__name__}")
        self.points, self.device = whole(points, "points", 2), device
        self.monotone = self.gp.every is None if monotone is None else monotone
        self.noise = checked_field(noise, "noise", domain, positive=False)
        self._known: tuple[int, Query | None, Memory | None] = (0, None, None)

    # -- the ground --------------------------------------------------------------------------------------------------

    @cached_property
    def ground(self) -> Array:
        """The points that are followed, shape (n, d), not to be written to."""
        domain = self.domain
        every = isinstance(domain, Candidates) or (domain.size is not None and domain.size <= EXHAUSTIVE)
        points = domain.enumerate() if every else domain.design(self.points, self.stream("ground"))
        points.setflags(write=False)  # answers show them
        return points

    def _everything(self) -> Any:
        if self.device is None:
            return super()._everything()
        if self._tensor is None:
            self._tensor = placer(self.device)(super()._everything())
        return self._tensor

    _tensor: Any = None

    def _at_ground(self, belief: Posterior | GridPosterior) -> tuple[Array, Array]:
        """Mean and standard deviation at the ground, NumPy."""
        if not isinstance(belief, GridPosterior):
            return belief.predict(self._seen(self.ground))
        mean, std = belief.mean, belief.std
        return (mean, std) if self.device is None else (mean.cpu().numpy(), std.cpu().numpy())

    def _everywhere(self, belief: Posterior | GridPosterior) -> tuple[Array, Array]:
        return self._at_ground(belief)

    def _taken(self, X: Array) -> Mask:
        """Which rows of X (m, d) must not be asked now; on candidates X is all of them."""
        if isinstance(self.domain, Candidates):
            return self._excluded_rows()
        blocked = self._excluded_points()
        return Candidates(blocked).contains(X) if len(blocked) else np.zeros(len(X), dtype=np.bool_)

    # -- memory ------------------------------------------------------------------------------------------------------

    def _memory(self) -> Memory:
        """What the queries so far have decided, read from their notes."""
        read, last, memory = self._known
        if memory is None or read > len(self._queries) or (read and self._queries[read - 1] is not last):
            read, memory = 0, Memory.of(len(self.ground))  # the first look, or an ask that was taken back
        for query in self._queries[read:]:
            memory = memory.after(query.note)
        self._known = (len(self._queries), self._queries[-1] if self._queries else None, memory)
        return memory

    # -- noise -------------------------------------------------------------------------------------------------------

    def _data(self) -> tuple[Array, Array, Array]:
        X, y, given = super()._data()
        if self.noise is None or not np.isnan(given).any():
            return X, y, given
        rows = self._rows() if isinstance(self.domain, Candidates) else None
        return X, y, np.where(np.isnan(given), numbers_at(self.noise, "noise", X, rows, positive=False), given)

    def _noisiest(self, gp: GP) -> float:
        if self.noise is None:
            return super()._noisiest(gp)
        rows = np.arange(len(self.ground)) if isinstance(self.domain, Candidates) else None
        return float(numbers_at(self.noise, "noise", self.ground, rows, positive=False).max())

    def _unknown_noise(self) -> Sequence[float | None]:
        unknown = self._unknown()
        if self.noise is None or not unknown:
            return super()._unknown_noise()
        X = np.array([x for x, _ in unknown])
        rows = np.array([index for _, index in unknown]) if isinstance(self.domain, Candidates) else None
        found: list[float | None] = numbers_at(self.noise, "noise", X, rows, positive=False).tolist()
        return found
