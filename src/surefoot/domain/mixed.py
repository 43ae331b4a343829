"""What an adversary reaches in a space of named parameters: numbers are moved in their own units, choices are swapped.

A model sees a space as the unit cube, with logarithmic axes straightened, so a region of the user's units is not a
region of one shape there. Regions here take and give *encoded* points, and move them in the user's units:

* :class:`Nearby`: real numbers by any offset, integers by whole ones; choices, and parameters without a reach, stay;
* :class:`Swapped`: the value of a choice becomes another one of its group; everything else stays.

>>> space = Space(rate=Float(0.01, 1.0, log=True), depth=Int(1, 9), kind=Choice(["a", "b"]))
>>> region = Nearby(space, np.array([0.0, 1.0, 0.0]), 2.0)
>>> space.decode(region.spread(space.encode([[0.1, 4.0, 1.0]]), 8)[0]).tolist()
[[0.1, 3.0, 1.0], [0.1, 4.0, 1.0], [0.1, 5.0, 1.0]]
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from surefoot.domain.parameter import Choice, Float, Int
from surefoot.domain.sets import Region, gauge, into, unit_ball
from surefoot.domain.space import Space

__all__ = ["Nearby", "Swapped"]

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

LATTICE = 128  # moves of integers that are listed one by one; where there are more, wide axes are searched instead
TINY = 1e-11  # share of an axis's largest number that the digits of its values hardly tell apart
ROUNDING = 1e-9  # share of an offset that is rounding: a whole number lies just below itself at times


class Nearby(Region):
    """A ball or a box around the center in the user's units, cut off at the borders of the space.

    Moves of integers are listed, all of them, and the real numbers share what each leaves of the reach. Where a list
    would be longer than 128, the widest integer axes are searched like real ones, and rounded towards the center.

    Parameters
    ----------
    space : Space
        Where centers lie and measurements are made.
    reach : array of shape (d,)
        How far each parameter can be moved, in its own units; 0 for choices.
    norm : float
        The region holds the offsets whose ``norm`` in units of ``reach`` is at most 1.

    >>> region = Nearby(Space(n=Int(1, 1000, log=True)), np.array([2.0]), 2.0)
    >>> region.centers.decode(region.spread(region.centers.encode([[2.0]]), 9)[0])[:, 0]
    array([1., 1., 2., 3., 4.])
    """

    def __init__(self, space: Space, reach: Array, norm: float) -> None:
        self.centers, self.reach, self.norm = space, reach, norm
        moved = [(columns.start, p, float(reach[i])) for i, columns, p in space._axes if p.size != 1]
        numbers = [
            (column, p, r)
            for column, p, r in moved
            # A reach below the digits of a short number is none.
            if (isinstance(p, Float) and r > TINY * max(abs(p.low), abs(p.high)))
            or (isinstance(p, Int) and math.floor(r * (1 + ROUNDING)) >= 1)
        ]
        self._columns = [column for column, _, _ in numbers]
        self._axes = [p for _, p, _ in numbers]
        self._reach = np.array([r for _, _, r in numbers])
        self._low = np.array([float(p.low) for p in self._axes])
        self._high = np.array([float(p.high) for p in self._axes])
        self._whole = np.array([isinstance(p, Int) for p in self._axes], dtype=np.bool_)
        self._listed = self._choose_listed()
        self._steps = self._list_steps()
        self.trivial = not numbers
        self.finite = bool(self._listed.all())
        self.layers = len(self._steps)

    def _farthest(self) -> Indices:
        """The largest whole offset of each axis that stays inside the space."""
        farthest: Indices = np.floor(np.minimum(self._reach * (1 + ROUNDING), self._high - self._low)).astype(np.intp)
        return farthest

    def _choose_listed(self) -> NDArray[np.bool_]:
        farthest = self._farthest()
        order = np.argsort(np.where(self._whole, farthest, np.iinfo(np.intp).max), kind="stable")
        counts = np.cumprod(np.where(self._whole, 2.0 * farthest + 1.0, np.inf)[order])
        listed = np.zeros(len(order), dtype=np.bool_)
        listed[order[counts <= LATTICE]] = True
        return listed

    def _list_steps(self) -> Array:
        """All offsets (k, axes) of the listed axes that are in reach; 0 along the other axes."""
        ends = np.where(self._listed, self._farthest(), 0).tolist()
        if not ends:
            return np.zeros((1, 0))
        grid = np.stack(np.meshgrid(*(np.arange(-n, n + 1.0) for n in ends), indexing="ij"), axis=-1)
        steps = grid.reshape(-1, len(ends))
        return steps[gauge(steps, self._reach, self.norm) <= 1.0 + ROUNDING]

    def _left(self, steps: Array) -> Array:
        """What whole offsets (…, axes) leave of the reach to the other axes, between 0 and 1."""
        if math.isinf(self.norm):
            return np.ones(steps.shape[:-1])
        used = np.minimum(gauge(steps, self._reach, self.norm), 1.0)
        return np.asarray((1.0 - used**self.norm) ** (1.0 / self.norm))

    @property
    def scale(self) -> Array:
        """How far points move along each encoded axis, from its middle; 0 where all moves are listed."""
        scale = np.zeros(self.centers.encoded_dimension)
        for column, p, r, listed in zip(self._columns, self._axes, self._reach, self._listed, strict=True):
            if not listed:
                middle = p._stretch(np.array([[0.5]]))
                scale[column] = min(1.0, float((p.encode(middle + r) - 0.5)[0, 0]))
        return scale

    def spread(self, X: Array, count: int) -> Array:
        offsets = self._steps[:, None, :]
        if not self.finite:
            ball = unit_ball(max(count // self.layers, 1), int((~self._listed).sum()), self.norm)
            offsets = np.repeat(offsets, len(ball), axis=1)
            offsets[..., ~self._listed] = self._left(self._steps)[:, None, None] * ball * self._reach[~self._listed]
        offsets = self._rounded(offsets).reshape(offsets.shape[0] * offsets.shape[1], len(self._axes))
        return self._encoded(X, self._own(X)[:, None, :] + offsets)

    def project(self, X: Array, Z: Array) -> Array:
        base = self._own(X)[:, None, :]
        offsets = self._own(Z) - base
        steps = into(np.where(self._listed, np.rint(offsets), 0.0), self._reach, self.norm)
        steps = np.where(self._listed, np.trunc(steps * (1 + ROUNDING)), 0.0)
        # Listed axes first: what is left is for the others, so that a descent along them keeps the whole offsets.
        rest = into(np.where(self._listed, 0.0, offsets), self._left(steps)[..., None] * self._reach, self.norm)
        return self._encoded(X, base + self._rounded(steps + rest))

    def pull(self, X: Array, Z: Array, G: Array) -> Array:
        base, moved = self._own(X)[:, None, :], self._own(Z)
        held = ((moved <= self._low) | (moved >= self._high)) & (moved != base)
        pulled = G.copy()
        for i, (column, p) in enumerate(zip(self._columns, self._axes, strict=True)):
            # An offset in the user's units: along a logarithm, d log z / d log x = x / z.
            rate = base[..., i] / moved[..., i] if p.log else 1.0
            pulled[..., column] *= np.where(held[..., i], 0.0, rate)
        return pulled

    def _rounded(self, offsets: Array) -> Array:
        return np.where(self._whole, np.trunc(offsets * (1 + ROUNDING)), offsets)

    def _own(self, E: Array) -> Array:
        """The moved parameters of encoded points (…, e) in the user's units, shape (…, axes)."""
        values = np.empty((*E.shape[:-1], len(self._axes)))
        for i, (column, p) in enumerate(zip(self._columns, self._axes, strict=True)):
            values[..., i] = p._stretch(E[..., column].reshape(-1, 1)).reshape(E.shape[:-1])
        return values

    def _encoded(self, X: Array, values: Array) -> Array:
        """Encoded points: the centers X (m, e) with other values (m, q, axes) of what is moved."""
        inside = np.clip(values, self._low, self._high)
        Z = np.repeat(X[:, None, :], values.shape[1], axis=1)
        for i, (column, p) in enumerate(zip(self._columns, self._axes, strict=True)):
            Z[..., column] = p.encode(inside[..., i].ravel()).reshape(inside.shape[:-1])
        return Z


class Swapped(Region):
    """Choices whose value an adversary replaces by another one of the same group.

    Parameters
    ----------
    space : Space
        Where centers lie and measurements are made.
    groups : mapping of str to sequence of sequences
        For each choice the groups of its values; a value in no group stays as it is.

    >>> space = Space(x=Float(0.0, 1.0), supplier=Choice(["A", "B", "C"]))
    >>> region = Swapped(space, {"supplier": [["A", "C"]]})
    >>> space.decode(region.spread(space.encode([[0.5, 0.0], [0.5, 1.0]]), 9).reshape(-1, 4))[:, 1].tolist()
    [0.0, 2.0, 1.0, 1.0]
    """

    finite = True

    def __init__(self, space: Space, groups: Mapping[str, Sequence[Sequence[Any]]]) -> None:
        self.centers = space
        self._tables: list[tuple[slice, Choice, Indices]] = []
        for _, columns, name in [(i, columns, space.names[i]) for i, columns, _ in space._axes]:
            if name in groups:
                choice = cast(Choice, space.parameters[name])
                self._tables.append((columns, choice, _partners(choice, groups[name])))
        self.layers = math.prod(table.shape[1] for _, _, table in self._tables)
        self.trivial = self.layers == 1

    @property
    def scale(self) -> Array:
        return np.zeros(self.centers.encoded_dimension)

    def spread(self, X: Array, count: int) -> Array:
        Z = X[:, None, :]
        for columns, choice, table in self._tables:
            others = table[choice.decode(X[:, columns]).astype(np.intp)]  # (m, s)
            codes = choice.encode(others.ravel().astype(np.float64)).reshape(*others.shape, -1)
            m, q, s = len(X), Z.shape[1], others.shape[1]
            Z = np.repeat(Z, s, axis=1)
            Z[..., columns] = np.broadcast_to(codes[:, None], (m, q, s, choice.width)).reshape(m, q * s, -1)
        return Z

    def project(self, X: Array, Z: Array) -> Array:
        there = np.repeat(X[:, None, :], Z.shape[1], axis=1)
        for columns, choice, table in self._tables:
            own = choice.decode(X[:, columns]).astype(np.intp)
            wanted = choice.decode(Z[..., columns].reshape(-1, choice.width)).reshape(Z.shape[:2])
            allowed = (table[own][:, None, :] == wanted[..., None]).any(axis=-1)
            value = np.where(allowed, wanted, own[:, None]).ravel().astype(np.float64)
            there[..., columns] = choice.encode(value).reshape(*Z.shape[:2], -1)
        return there

    def pull(self, X: Array, Z: Array, G: Array) -> Array:
        return G


def _partners(choice: Choice, groups: Sequence[Sequence[Any]]) -> Indices:
    """For each value of a choice the members of its group, by index; the value itself fills what is left."""
    table = np.repeat(np.arange(choice.size)[:, None], max(len(group) for group in groups), axis=1)
    for group in groups:
        members = np.array([choice.number(value) for value in group], dtype=np.intp)
        table[members, : len(members)] = members
    return table
