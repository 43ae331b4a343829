"""Facility location and exemplar clustering: how well a few chosen points stand for all points.

Every client u is served by the chosen point most similar to it, or by nobody at all, which is worth 0:

    f(S) = Σᵤ wᵤ max(0, max_{s ∈ S} g(s, u)).

f is monotone and submodular. With mᵤ the value u has now, gain(s) = Σᵤ wᵤ max(0, g(s, u) − mᵤ); with the best and the
second best chosen point of each client, the loss of e is Σ (best − second) over the clients that e serves.

Similarities come as a matrix, or from the points:

- ``"exemplar"``: g(s, u) = 2⟨s, u⟩ − ‖s‖², which makes f the fall of Σᵤ wᵤ min_{s} ‖s − u‖² when S joins a phantom
  exemplar at the origin: exemplar clustering. Shift the points first if the origin means nothing.
- ``"euclidean"``: g(s, u) = D − ‖s − u‖² with D the largest of these squared distances.
- ``"cosine"``: g(s, u) = ⟨s, u⟩/(‖s‖ ‖u‖).

>>> import numpy as np
>>> X = np.array([[0.0, 1.0], [0.0, 1.1], [2.0, 0.0], [2.1, 0.0]])
>>> f = FacilityLocation(X, similarity="euclidean")
>>> state = f.state()
>>> for _ in range(2):
...     v, gain = state.best()
...     state.add(v)
>>> state.selected
[2, 0]

Points are held, similarities never: they are made in tiles that fit a cache, one matrix product each, and 10⁵ points
take no more memory than their coordinates. :meth:`~surefoot.select.State.best` is lazy. An old gain bounds the new one
from above, so few gains are computed; where many are stale at once they are *screened* in ``float32``, and only those
that come within its error of the best, measured on the way, are computed in ``float64``. What is returned, and what is
added up, is always ``float64``.

References: Gomes & Krause 2010 (exemplar clustering); Minoux 1978 (lazy evaluation).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from array_api_compat import array_namespace, is_torch_array
from numpy.typing import ArrayLike

from surefoot.select.objective import Array, Indices, SetFunction, State, as_matrix, to_host

__all__ = ["FacilityLocation"]

# Similarities held at once, in numbers, and the fewest of one candidate: a processor wants them in its cache (and no
# power of two, whose rows would fall on the same lines of it), a device wants few large launches.
TILE, DEVICE_TILE, WIDTH = 1_000_000, 2**27, 10_000
# Lazy evaluation screens this many gains at first and twice as many in each round, and computes FEW of them exactly.
FIRST, FEW = 32, 8
# The error of screening is taken to be at most this many times the largest one seen.
CAUTION = 4.0


class FacilityLocation(SetFunction):
    """How well the chosen points serve all clients.

    Parameters
    ----------
    points : array of shape (n, d)
        The candidates; NumPy, or a torch tensor on any device. With ``similarity="precomputed"`` the similarities of
        shape (n, m) themselves, one row per candidate, one column per client.
    similarity : {"exemplar", "euclidean", "cosine", "precomputed"}
        See the module.
    clients : array of shape (m, d), optional
        Whom to serve; default the points themselves. A random sample of them makes everything faster.
    weights : array of shape (m,), optional
        Of the clients, at least 0; default 1.
    average : bool
        Divide by the sum of the weights.

    Attributes
    ----------
    offset : float
        The largest squared distance D of ``"euclidean"``, else 0.

    >>> f = FacilityLocation([[3.0, 0.0], [1.0, 2.0]], similarity="precomputed", average=False)
    >>> f.singletons(), f.value([0, 1])
    (array([3., 3.]), 5.0)
    """

    def __init__(
        self,
        points: Any,
        *,
        similarity: str = "exemplar",
        clients: Any = None,
        weights: ArrayLike | None = None,
        average: bool = True,
    ) -> None:
        if similarity not in (*KINDS, "precomputed"):
            raise ValueError(f"similarity must be one of {', '.join(KINDS)} or precomputed, got {similarity!r}")
        rows = as_matrix(points, "points")
        if similarity == "precomputed":
            if clients is not None:
                raise ValueError("precomputed similarities have their clients as columns: leave clients out")
            self.m = int(rows.shape[1])
        else:
            others = rows if clients is None else as_matrix(clients, "clients")
            if is_torch_array(rows) != is_torch_array(others) or rows.shape[1] != others.shape[1]:
                raise ValueError(
                    f"clients must be like the points, of shape (m, {rows.shape[1]}), got {tuple(others.shape)}"
                )
            self.m = int(others.shape[0])
        super().__init__(int(rows.shape[0]), submodular=True)
        self._xp, self._device = array_namespace(rows), rows.device
        total = np.ones(self.m) if weights is None else np.asarray(to_host(weights), dtype=np.float64)
        if total.shape != (self.m,):
            raise ValueError(f"weights must have shape ({self.m},), got {total.shape}")
        if not np.isfinite(total).all() or (total < 0).any():
            worst = total[np.argmax(~(total >= 0) | np.isinf(total))]
            raise ValueError(f"weights must be finite and at least 0, got {worst}")
        if total.sum() == 0:
            raise ValueError("the weights of the clients are all 0")
        self.similarity, self.offset = similarity, 0.0
        wide, narrow = self._xp.float64, self._xp.float32
        self._weights = {wide: self._on_device(total / total.sum() if average else total)}
        self._weights[narrow] = self._xp.astype(self._weights[wide], narrow)
        left, right = (rows, None) if similarity == "precomputed" else KINDS[similarity](self._xp, rows, others)
        # A matrix of similarities has no second factor and is not copied: it may fill the memory.
        self._left, self._right = {wide: left}, {} if right is None else {wide: right}
        if right is not None:
            self._left[narrow], self._right[narrow] = (self._xp.astype(part, narrow) for part in (left, right))
        if similarity == "euclidean":
            self._measure_diameter(symmetric=clients is None)

    def _on_device(self, array: Any) -> Any:
        return self._xp.asarray(array, device=self._device)

    def _shape(self, rows: int, columns: int) -> tuple[int, int]:
        """Return the height and the width of tiles."""
        size = TILE if not is_torch_array(self._left[self._xp.float64]) or self._device.type == "cpu" else DEVICE_TILE
        width = min(columns, max(WIDTH, size // max(rows, 1)))
        return max(1, size // width), width

    def _tiles(self, candidates: Indices | None, dtype: Any, lowered: Any = None) -> Iterator[tuple[slice, slice, Any]]:
        """Yield places among the candidates, clients, and the tile of similarities between them, to be overwritten."""
        source = self._left.get(dtype, self._left[self._xp.float64])
        right = self._right.get(dtype) if lowered is None else lowered
        count = self.n if candidates is None else len(candidates)
        height, width = self._shape(count, self.m)
        index = None if candidates is None else self._on_device(candidates)
        # New pages for every tile would cost more than the product.
        room = None if is_torch_array(source) else np.empty(height * width, dtype=dtype)
        for start in range(0, count, height):
            down = slice(start, min(start + height, count))
            rows = source[down] if index is None else source[index[down]]
            for first in range(0, self.m, width):
                across = slice(first, min(first + width, self.m))
                if right is None:
                    yield down, across, self._xp.astype(rows[:, across], dtype, copy=True)
                elif room is None:
                    yield down, across, rows @ right[:, across]
                else:
                    shape = rows.shape[0], across.stop - across.start
                    tile = room[: shape[0] * shape[1]].reshape(shape)
                    yield down, across, np.matmul(rows, right[:, across], out=tile)

    def _measure_diameter(self, symmetric: bool) -> None:
        """Find D = max ‖s − u‖² among the pairs that can have it, in float32, then in float64; put it into g.

        Distances from the center bound those between points, ‖s − u‖ ≤ ‖s‖ + ‖u‖: in few dimensions few are left.
        """
        xp, wide, narrow = self._xp, self._xp.float64, self._xp.float32
        left, right = self._left[wide], self._right[wide]
        own, others = xp.sqrt(-left[:, -2]), xp.sqrt(-right[-1, :])
        far = -float(xp.min(left[int(xp.argmax(own)), :] @ right))  # no less than half the truth
        reach = math.sqrt(max(far, 0.0)) * (1.0 - 1e-9)
        rows = np.flatnonzero(to_host(own + xp.max(others) >= reach))
        columns = self._on_device(np.flatnonzero(to_host(others + xp.max(own) >= reach)))
        L, R = self._left[narrow][self._on_device(rows)], self._right[narrow][:, columns]
        height, width = self._shape(len(rows), int(R.shape[1]))
        farthest = np.zeros(len(rows))
        for start in range(0, len(rows), height):
            down = slice(start, start + height)
            for first in range(start if symmetric else 0, int(R.shape[1]), width):  # every pair once
                tile = L[down] @ R[:, first : first + width]
                farthest[down] = np.maximum(farthest[down], -to_host(xp.min(tile, axis=1)))
        # A squared distance is off by a few float32 units of its terms, of which the largest is no less than half.
        close = rows[farthest >= farthest.max() * (1.0 - 1e-4)]
        self.offset = max(far, 0.0, *(-float(xp.min(tile)) for _, _, tile in self._tiles(close, wide)))
        for factor in self._right.values():
            factor[-1, :] += self.offset

    def _sums(self, candidates: Indices | None, now: Any, dtype: Any, lowered: Any = None) -> Array:
        """Return Σᵤ wᵤ max(0, g(s, u) − mᵤ) for each candidate.

        ``now`` holds m, or is None for 0; or ``lowered`` is the right factor of g − m, which saves a pass.
        """
        weights = self._weights[dtype]
        level = None if now is None or lowered is not None else self._xp.astype(now, dtype)
        sums = np.zeros(self.n if candidates is None else len(candidates))
        zeros = np.zeros(self.m, dtype=dtype) if not is_torch_array(weights) else None
        for down, across, tile in self._tiles(candidates, dtype, lowered):
            if level is not None:
                tile -= level[across]
            # NumPy is faster with a row of zeros than with one zero.
            positive = tile.clamp_(min=0) if zeros is None else np.maximum(tile, zeros[across], out=tile)
            sums[down] += to_host(positive @ weights[across])
        return sums

    def _rows(self, elements: Indices, clients: Any = slice(None)) -> Any:
        """Return g between a few elements and (some) clients, shape (len(elements), m), in float64."""
        rows, right = self._left[self._xp.float64][self._on_device(elements)], self._right.get(self._xp.float64)
        return rows[:, clients] if right is None else rows @ right[:, clients]

    def _singletons(self) -> Array:
        if self.similarity == "euclidean":  # no similarity is below 0: the sum goes through the product
            wide = self._xp.float64
            return to_host(self._left[wide] @ (self._right[wide] @ self._weights[wide])).astype(np.float64)
        return self._sums(None, None, self._xp.float64)

    def _value(self, S: Indices) -> float:
        xp = self._xp
        step, total = max(1, TILE // len(S)), 0.0
        for first in range(0, self.m, step):
            served = xp.max(self._rows(S, slice(first, first + step)), axis=0)
            served = xp.maximum(served, self._on_device(np.float64(0)))
            total += float(served @ self._weights[xp.float64][first : first + step])
        return total

    def _empty(self) -> State:
        return _FacilityState(self)


class _FacilityState(State):
    """Best and second best value of each client and who serves it; upper bounds on all gains."""

    def __init__(self, function: FacilityLocation) -> None:
        super().__init__(function)
        xp, device = function._xp, function._device
        self._first = xp.zeros(function.m, dtype=xp.float64, device=device)
        self._second = xp.zeros(function.m, dtype=xp.float64, device=device)
        self._server = xp.full(function.m, -1, dtype=xp.int64, device=device)
        self._bounds: Array | None = None  # upper bounds on gains; exact ones where they are fresh
        self._fresh = np.zeros(function.n, dtype=bool)
        self._tight = np.zeros(function.n, dtype=bool)  # screened since the last addition
        self._lowered: Any = None
        self._error = 0.0  # the largest error of a screened gain seen so far

    @property
    def value(self) -> float:
        function: FacilityLocation = self.function
        return float(self._first @ function._weights[function._xp.float64])

    def _gains(self, candidates: Indices) -> Array:
        function: FacilityLocation = self.function
        everything = len(candidates) == function.n
        order = None if everything and (candidates == np.arange(function.n)).all() else candidates
        return function._sums(order, self._first if self.selected else None, function._xp.float64)

    def best(self, allowed: ArrayLike | None = None) -> tuple[int, float]:
        open_to, function = self._open(allowed), self.function
        if self._bounds is None:  # singletons bound every gain from above
            self._bounds = function.singletons().copy()
            self._fresh[:] = not self.selected
        known = self._bounds[open_to & self._fresh]
        top, width = float(known.max()) if known.size else -math.inf, FIRST
        while True:
            heights = self._bounds + np.where(self._tight, CAUTION * self._error, 0.0)
            stale = np.flatnonzero(open_to & ~self._fresh & (heights >= top))
            if not stale.size:
                break
            loose = stale[~self._tight[stale]]
            if loose.size and heights[loose].max() >= heights[stale].max():
                self._screen(_largest(loose, heights, width))
                width *= 2
            else:
                top = max(top, self._compute(_largest(stale[self._tight[stale]], heights, FEW)))
        contenders = np.flatnonzero(open_to & self._fresh & (self._bounds >= top))
        return int(contenders[0]), top

    def _screen(self, candidates: Indices) -> None:
        """Lower the bounds of many candidates to what float32 says."""
        function: FacilityLocation = self.function
        function.evaluations.gains += len(candidates)
        order, narrow = None if len(candidates) == function.n else candidates, function._xp.float32
        if self._lowered is None and narrow in function._right:
            self._lowered = function._xp.asarray(function._right[narrow], copy=True)
            self._lower()
        sums = function._sums(order, self._first, narrow, self._lowered)
        self._bounds[candidates] = sums  # type: ignore[index]
        self._tight[candidates] = True

    def _lower(self) -> None:
        """Keep the right factor of g − m: all factors end with a row that is added to every similarity."""
        function: FacilityLocation = self.function
        if self._lowered is not None:
            level = function._right[function._xp.float64][-1, :] - self._first
            self._lowered[-1, :] = function._xp.astype(level, function._xp.float32)

    def _compute(self, candidates: Indices) -> float:
        """Compute a few gains in float64, learn how far off the screened ones were, return the largest."""
        function: FacilityLocation = self.function
        exact = function._sums(candidates, self._first, function._xp.float64)
        off = np.abs(self._bounds[candidates] - exact)  # type: ignore[index]
        self._error = max(self._error, float(off.max()))
        self._bounds[candidates] = exact  # type: ignore[index]
        self._fresh[candidates], self._tight[candidates] = True, False
        return float(exact.max())

    def _add(self, v: int) -> None:
        function: FacilityLocation = self.function
        xp = function._xp
        row = function._rows(np.array([v]))[0, :]
        better = row > self._first
        self._second = xp.where(better, self._first, xp.maximum(self._second, xp.minimum(row, self._first)))
        self._first = xp.where(better, row, self._first)
        self._server[better] = v
        self._lower()
        if self._bounds is not None:  # a screened bound stays one when its error is added
            self._bounds += np.where(self._tight, CAUTION * self._error, 0.0)
        self._fresh[:] = self._tight[:] = False

    def _losses(self) -> Array:
        function: FacilityLocation = self.function
        spread = to_host((self._first - self._second) * function._weights[function._xp.float64])
        server = to_host(self._server)
        lost = np.bincount(server[server >= 0], spread[server >= 0], minlength=function.n)
        return lost.astype(np.float64)[self.selected]

    def _remove(self, e: int, place: int) -> None:
        function: FacilityLocation = self.function
        xp = function._xp
        row = function._rows(np.array([e]))[0, :]
        # Clients whose best or second best value came from e, with room for rounding; others keep theirs.
        touched = (self._server == e) | (row >= self._second - 1e-9 * float(xp.max(self._first)))
        clients = xp.nonzero(touched)[0]
        rest = np.array(self.selected[:place] + self.selected[place + 1 :], dtype=np.int64)
        step = max(1, TILE // max(len(rest), 1))
        for first in range(0, int(clients.shape[0]), step):
            part = clients[first : first + step]
            none = xp.zeros((2, part.shape[0]), dtype=xp.float64, device=function._device)
            values = xp.concat([function._rows(rest, part), none], axis=0)
            self._first[part] = xp.max(values, axis=0)
            who = xp.argmax(values, axis=0)
            values[who, xp.arange(part.shape[0], device=function._device)] = -math.inf
            self._second[part] = xp.max(values, axis=0)
            owners = function._on_device(np.concatenate([rest, [-1, -1]]))
            self._server[part] = owners[who]
        self._lower()
        self._bounds = None  # gains grow when the set shrinks
        self._fresh[:] = self._tight[:] = False


def _largest(elements: Indices, heights: Array, count: int) -> Indices:
    """Return the elements with the largest heights, in increasing order."""
    if len(elements) <= count:
        return elements
    return np.sort(elements[np.argpartition(-heights[elements], count)[:count]])


def _exemplar(xp: Any, rows: Any, others: Any) -> tuple[Any, Any]:
    """Return factors of 2⟨s, u⟩ − ‖s‖²."""
    squares, one = xp.sum(rows * rows, axis=1)[:, None], xp.ones_like(others[:, :1])
    left = xp.concat([2.0 * rows, -squares, xp.ones_like(squares)], axis=1)
    return left, xp.concat([others, one, 0.0 * one], axis=1).T


def _euclidean(xp: Any, rows: Any, others: Any) -> tuple[Any, Any]:
    """Return factors of −‖s − u‖²; centered, as the difference of large numbers is inexact. The last row takes D."""
    center = xp.mean(others, axis=0)
    rows, others = rows - center, others - center
    squares, norms = xp.sum(rows * rows, axis=1)[:, None], xp.sum(others * others, axis=1)[:, None]
    left = xp.concat([2.0 * rows, -squares, xp.ones_like(squares)], axis=1)
    return left, xp.concat([others, xp.ones_like(norms), -norms], axis=1).T


def _cosine(xp: Any, rows: Any, others: Any) -> tuple[Any, Any]:
    """Return unit vectors."""
    scaled = []
    for points in (rows, others):
        norms = xp.sqrt(xp.sum(points * points, axis=1))
        if not bool(xp.all(norms > 0)):
            raise ValueError(f"cosine similarity needs points other than 0, row {int(xp.argmin(norms))} is 0")
        scaled.append(points / norms[:, None])
    units, others = scaled
    left = xp.concat([units, xp.ones_like(units[:, :1])], axis=1)
    return left, xp.concat([others, xp.zeros_like(others[:, :1])], axis=1).T


KINDS: dict[str, Callable[[Any, Any, Any], tuple[Any, Any]]] = {
    "exemplar": _exemplar,
    "euclidean": _euclidean,
    "cosine": _cosine,
}
