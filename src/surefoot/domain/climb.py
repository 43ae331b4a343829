"""Climbing from many starts at once: a batched projected BFGS method on the unit cube.

Every start has its own inverse Hessian, and all of them share each call of the function. A call evaluates one trial
point per start. A start whose trial is good moves there and updates its Hessian; a start whose trial is bad shortens
its step and tries again with the next call; none waits for another. So k calls are k steps or step cuts of every start,
whatever their number.

Bounds are handled by projection: a coordinate at a bound whose derivative points outwards rests, the others move by
their block of the inverse Hessian, and what would leave the cube is clipped.

References: Nocedal & Wright 2006, sections 3.5 (step cuts) and 6.1 (BFGS); Kelley 1999, section 5.5 (bounds).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

__all__ = ["climb"]

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
Function = Callable[[Array, NDArray[np.intp]], tuple[Array, Array]]

ARMIJO = 1e-4  # share of the linear prediction that a step must achieve
FIRST = 0.1  # longest coordinate of the first step, which knows a direction but no length
LONGEST = 0.5  # longest coordinate of any other step
SHORTEST = 1e-10  # a step cut below this has reached rounding error


def climb(function: Function, T: Array, *, iterations: int, tolerance: float = 1e-9) -> tuple[Array, Array]:
    """Return where the climbs end (m, k) and the values there (m,).

    Parameters
    ----------
    function : callable
        ``function(T, rows)`` returns values (r,) and gradients (r, k) at the points T (r, k) of the starts ``rows``;
        −∞ marks a point to keep away from. Values should vary by about 1 over the cube.
    T : array of shape (m, k)
        Starts in the unit cube.
    iterations : int
        Calls of the function. After a sixth of them a start is given up when even ten times its predicted gain leaves
        it below the best; after all of them those that still contend for the best go on, at most three times as long.
    tolerance : float
        A start has arrived when its next step promises less than this.

    >>> def hill(T, rows):
    ...     return -((T - 0.3) ** 2).sum(axis=1), -2.0 * (T - 0.3)
    >>> ends, values = climb(hill, np.array([[0.9, 0.9], [0.0, 1.0]]), iterations=20)
    >>> ends.round(6)
    array([[0.3, 0.3],
           [0.3, 0.3]])
    """
    m, k = T.shape
    rows = np.arange(m)
    values, G = function(T, rows)
    ends, heights = T.copy(), values.copy()
    H = np.tile(np.eye(k), (m, 1, 1))  # inverse Hessians of −function
    length = np.ones(m)  # of the next step, in units of the full one
    fresh = np.ones(m, dtype=np.bool_)  # the Hessian knows nothing yet
    for call in range(3 * iterations):
        rests, Gf, P = _direction(T, G, H)
        promise = np.where(fresh, np.abs(Gf).max(axis=1), np.vecdot(P, Gf))
        reach = np.abs(P).max(axis=1)
        done = (promise <= tolerance) | (length * np.where(fresh, FIRST, reach) < SHORTEST) | ~np.isfinite(values)
        if call >= iterations // 6:
            hope = 10.0 if call < iterations else 1.0
            done |= values + hope * promise < max(heights.max(), values.max())
        if done.any():
            ends[rows[done]], heights[rows[done]] = T[done], values[done]
            if done.all():
                return ends, heights
            kept = (a[~done] for a in (rows, T, values, G, H, length, fresh, rests, Gf, P, reach))
            rows, T, values, G, H, length, fresh, rests, Gf, P, reach = kept
        P *= (length * np.where(fresh, FIRST, np.minimum(reach, LONGEST)) / reach)[:, None]

        N = np.clip(T + P, 0.0, 1.0)
        new, NG = function(N, rows)
        S = N - T
        rise, gain = np.vecdot(S, Gf), new - values
        good = (rise > 0.0) & (gain >= ARMIJO * rise)
        length = np.where(good, 1.0, length if good.all() else length * _cut(T, P, rise, gain))
        S[~good] = 0.0  # a start that stays leaves its Hessian as it is
        bends = _update(H, S, np.where(rests, 0.0, G - NG), rise, fresh)
        fresh &= ~bends
        length[good & fresh] = 2.0
        T, G, values = np.where(good[:, None], N, T), np.where(good[:, None], NG, G), np.where(good, new, values)
    ends[rows], heights[rows] = T, values
    return ends, heights


def _direction(T: Array, G: Array, H: Array) -> tuple[Mask, Array, Array]:
    """Return which coordinates rest (m, k), the gradient in the others, and the direction H g in which they move."""
    rests = np.where(G < 0.0, T <= 0.0, T >= 1.0)
    Gf = np.where(rests, 0.0, G)
    P = np.where(rests, 0.0, np.matmul(H, Gf[:, :, None])[:, :, 0])
    out = ((P < 0.0) & (T <= 0.0)) | ((P > 0.0) & (T >= 1.0))
    if out.any():  # correlations push these out although their own derivative points inwards: they rest as well
        rests |= out
        Gf[out] = 0.0
        P = np.where(rests, 0.0, np.matmul(H, Gf[:, :, None])[:, :, 0])
    return rests, Gf, P


def _cut(T: Array, P: Array, rise: Array, gain: Array) -> Array:
    """Factors (m,) for steps P that were too long: to the top of the parabola through value, slope and trial.

    At the latest a step ends where its first coordinate meets a bound: a path that bends there need not ascend.
    """
    ratio = 0.5 * rise / np.maximum(rise - gain, 1e-300)
    moves = P != 0.0
    with np.errstate(over="ignore"):  # a step that hardly moves has endless room
        room = np.where(moves, np.where(P < 0.0, -T, 1.0 - T) / np.where(moves, P, 1.0), 1.0).min(axis=1)
    return np.minimum(np.clip(ratio, 0.1, 0.5), np.where(room > 1e-3, room, 1.0))


def _update(H: Array, S: Array, Y: Array, rise: Array, fresh: Mask) -> Mask:
    """Update the inverse Hessians H (m, k, k) in place, for steps S and falls of the gradient Y (m, k).

    Where the function bends downwards along the step this is the BFGS formula, with ρ = 1/sᵀy,

        H ← (I − ρ s yᵀ) H (I − ρ y sᵀ) + ρ s sᵀ = H − s uᵀ − u sᵀ,  u = ρ H y − ½ (ρ + ρ² yᵀH y) s,

    after H has been brought to the right size if it is fresh. Elsewhere the formula would break H; there H becomes four
    times as long in the direction of the step, sᵀg being the ``rise``. Returns where the function bends, shape (m,).
    """
    sy, yy = np.vecdot(S, Y), np.vecdot(Y, Y)
    bends: Mask = sy > 1e-8 * np.sqrt(np.vecdot(S, S) * yy)
    if (first := bends & fresh).any():
        H[first] *= (sy[first] / yy[first])[:, None, None]
    rho = np.where(bends, 1.0, 0.0) / np.where(bends, sy, 1.0)
    U = np.matmul(H, Y[:, :, None])[:, :, 0] * rho[:, None]
    weight = rho * (1.0 + np.vecdot(Y, U))
    if (straight := ~(bends | fresh) & (rise > 0.0)).any():
        weight[straight] = 3.0 / rise[straight]
    cross = S[:, :, None] * (U - (0.5 * weight)[:, None] * S)[:, None, :]
    H -= cross
    H -= cross.transpose(0, 2, 1)
    return bends
