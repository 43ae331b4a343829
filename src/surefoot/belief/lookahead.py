"""What one more measurement would teach: the variance everywhere after it, summed over the points that matter.

The variance of a Gaussian process does not depend on the values, so the effect of measuring x is known beforehand:

    var(x̄ | x) = var(x̄) − cov(x̄, x)²/(var(x) + noise(x))                                  (3.39).

:class:`Lookahead` holds some points x̄, the *rows*, and adds up over them what each of many x, the *columns*, would
achieve. Covariances are the prior's less a product of whitened ones, so a pass over r rows and c columns after n
measurements is one matrix product of 2 n r c operations, one evaluation of the kernel, and a few element-wise
operations, block after block: no array of r × c numbers is ever held. Several noise levels share the covariances.

>>> import numpy as np
>>> from surefoot.belief import GP, SE, GridPosterior
>>> grid = GridPosterior(GP(SE(), noise=1.0), np.array([[0.0], [9.0]]))
>>> Lookahead(grid, [0, 1]).gains()  # each measurement halves the variance at one of the two
array([[0.5, 0.5]])

Numbers of equations are those of Bogunovic's thesis (2019), chapter 3.

The arrays of a :class:`~surefoot.belief.grid.GridPosterior` may lie on a device; what comes back is NumPy. On a CUDA
device a pass over very many covariances is worth compiling: everything after the product then becomes one kernel.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, cast

import numpy as np
from array_api_compat import array_namespace, is_numpy_array, is_torch_array
from numpy.typing import ArrayLike, NDArray

from surefoot.belief.grid import EXACT, GridPosterior
from surefoot.belief.kernels import SE, Matern, Stationary, kernel_from_dict
from surefoot.belief.posterior import Posterior

__all__ = ["Lookahead"]

Array = NDArray[np.float64]

# Covariances held at once, in numbers: what a processor's cache holds, and what keeps a device busy.
BLOCK, DEVICE_BLOCK = 2**16, 2**25
TALL = 256  # rows of a block on a processor
# Where no more than this share of the prior variance is left, a measurement teaches nothing: cov² is rounding error.
NOTHING = 1e-10
# From so many covariances on, a pass on a CUDA device is compiled, which takes seconds once; in blocks of FUSED_BLOCK.
COMPILED, FUSED_BLOCK = 2**31, 2**26


class Lookahead:
    """Sums, over some points, of what one measurement elsewhere would do to their variances.

    Parameters
    ----------
    belief : GridPosterior or Posterior
        What is known. It must not change while the look-ahead is in use.
    rows : array
        The points summed over: indices of candidates (r,) for a ``GridPosterior``, encoded points (r, e) for a
        ``Posterior``.
    fused : bool, optional
        Whether :meth:`gains` compiles its pass, for the kernels SE and Matérn on a CUDA device; None: if it is long.

    Attributes
    ----------
    mean, var : array of shape (r,)
        Mean and variance at the rows, NumPy.

    >>> from surefoot.belief import GP
    >>> look = Lookahead(GP(noise=1.0).condition(), np.zeros((1, 1)))
    >>> look.var, look.gains(np.zeros((1, 1)))
    (array([1.]), array([[0.5]]))
    """

    def __init__(self, belief: GridPosterior | Posterior, rows: ArrayLike, *, fused: bool | None = None) -> None:
        self.belief, self.fused = belief, fused
        self._points, white, mean, var = self._side(rows)
        xp = array_namespace(white)
        self._white = xp.asarray(white.T, copy=True)  # rows lie one after the other, so that blocks of them do
        self.mean, self.var = _host(mean), _host(var)

    def gains(
        self,
        columns: ArrayLike | None = None,
        noise: ArrayLike | None = None,
        *,
        scale: float = 1.0,
        floor: float = 0.0,
    ) -> Array:
        """Return how much of Σ max(scale · var, floor) over the rows each measurement takes away, shape (k, c).

        The numerator of (3.5), in its saturating form Σ min(scale · cov²/(var + noise), scale · var − floor): rows at
        or below the floor are left out.

        Parameters
        ----------
        columns : array, optional
            Where to measure, as ``rows``; None means all candidates.
        noise : array of shape (k,) or (k, c), optional
            Variances of the measurement, k of them to choose from; None means that of the belief.
        scale : float
            Multiplies all variances (a squared width).
        floor : float
            The truncation level; variances below it do not count.

        >>> from surefoot.belief import GP, SE
        >>> grid = GridPosterior(GP(SE(), noise=1.0), np.array([[0.0], [9.0]]))
        >>> Lookahead(grid, [0, 1]).gains([1], noise=[1.0, 3.0], scale=4.0, floor=3.5)
        array([[0.5],
               [0.5]])
        """
        caps = scale * self.var - floor
        Z, V, weights, out = self._columns(columns, noise, scale)
        high = np.flatnonzero(caps > 0)
        if not high.size:
            return np.zeros(out.shape)
        chosen = slice(None) if high.size == caps.size else self._place(high)
        limits = self._place(caps[high])[:, None]
        if self._fuses(high.size * len(Z)):
            return _host(self._compiled(self._points[chosen], self._white[chosen], Z, V, weights, limits))
        xp = array_namespace(V)
        for row, column, C in self._blocks(self._points[chosen], self._white[chosen], Z, V):
            C *= C
            for k in range(len(weights)):
                last = k == len(weights) - 1
                T = C if last else C * weights[k, column]
                if last:
                    T *= weights[k, column]
                xp.minimum(T, limits[row], out=T)
                out[k, column] += xp.sum(T, axis=0)
        return _host(out)

    def anticipated(
        self,
        keep: Callable[[Any, Any], Any],
        columns: ArrayLike | None = None,
        noise: ArrayLike | None = None,
        *,
        scale: float = 1.0,
        floor: float = 0.0,
    ) -> Array:
        """Return the same where rows may drop out of the sum after the measurement, shape (k, c).

        That is Σ max(scale · var, floor) over all rows, less the same after measuring x over the rows that x leaves:
        those for which ``keep(mean, half)``, called with arrays (r, 1) and (r, b), is true; half is √(scale · var).

        >>> from surefoot.belief import GP, SE
        >>> grid = GridPosterior(GP(SE(), noise=1.0), np.array([[0.0], [9.0]]))
        >>> Lookahead(grid, [0, 1]).anticipated(lambda mean, half: half > 0.8, noise=[1.0])
        array([[1., 1.]])
        """
        Z, V, weights, out = self._columns(columns, noise, scale)
        xp = array_namespace(V)
        mean, before = self._place(self.mean)[:, None], self._place(scale * self.var)[:, None]
        whole = float(np.maximum(scale * self.var, floor).sum())
        for _, column, C in self._blocks(self._points, self._white, Z, V, whole=True):
            C *= C
            for k in range(len(weights)):
                after = xp.clip(before - C * weights[k, column], 0.0, None)
                kept = keep(mean, xp.sqrt(after))
                after = xp.where(kept, xp.clip(after, floor, None), 0.0 * after)
                out[k, column] = whole - xp.sum(after, axis=0)
        return _host(out)

    # -- the pass ----------------------------------------------------------------------------------------------------

    def _blocks(self, X: Any, U: Any, Z: Any, V: Any, whole: bool = False) -> Iterator[tuple[slice, slice, Any]]:
        """Posterior covariances of rows with columns, block after block; ``whole``: all rows at once."""
        kernel, rows, columns = self.belief.gp.kernel, len(X), len(Z)
        device = str(Z.device) != "cpu"
        budget = DEVICE_BLOCK if device else BLOCK
        tall = rows if whole else min(rows, 16 * TALL if device else TALL)
        wide = max(64, budget // tall)
        for c in range(0, columns, wide):
            column = slice(c, c + wide)
            for r in range(0, rows, tall):
                row = slice(r, r + tall)
                known = U[row] @ V[:, column]
                C = kernel(X[row], Z[column])
                C -= known  # Cov of (3.41)
                yield row, column, C

    def _fuses(self, size: int) -> bool:
        """Whether a pass over so many covariances is compiled."""
        able = is_torch_array(self._points) and self._points.is_cuda and type(self.belief.gp.kernel) in (SE, Matern)
        return able and (size >= COMPILED if self.fused is None else self.fused)

    def _compiled(self, X: Any, U: Any, Z: Any, V: Any, weights: Any, limits: Any) -> Any:
        """The gains by one product and one compiled kernel for each block of columns."""
        import torch

        kernel = cast(Stationary, self.belief.gp.kernel)
        scale = torch.asarray(np.broadcast_to(kernel.lengthscale, X.shape[1]).copy(), device=X.device)
        unit = json.dumps({**kernel.to_dict(), "lengthscale": 1.0, "variance": 1.0})
        # The variance moves into what is compared, so that new hyper-parameters need no new kernel.
        X, Z, weights = X / scale, Z / scale, weights * kernel.variance**2
        U = U / kernel.variance
        out, wide = torch.zeros_like(weights), max(64, FUSED_BLOCK // len(X))
        with warnings.catch_warnings():  # the compiler's, about itself
            warnings.simplefilter("ignore")
            for start in range(0, len(Z), wide):
                column = slice(start, start + wide)
                out[:, column] = _tail(unit)(U @ V[:, column], X, Z[column], weights[:, column], limits)
        return out

    def _columns(self, columns: ArrayLike | None, noise: ArrayLike | None, scale: float) -> tuple[Any, Any, Any, Any]:
        """Points, whitened covariances, scale/(var + noise) of shape (k, c), and room for the answer."""
        Z, V, _, var = self._side(columns)
        levels = np.asarray([self.belief.gp.noise] if noise is None else noise, dtype=np.float64)
        levels = np.broadcast_to(levels.reshape(len(levels), -1), (len(levels), len(Z)))
        if not (np.isfinite(levels).all() and (levels >= 0).all()):
            raise ValueError(f"noise is a variance, finite and at least 0, got {noise!r}")
        xp, prior = array_namespace(V), self.belief.gp.kernel.diag(Z)
        weights = scale / (var + xp.clip(self._place(levels), EXACT * float(xp.max(prior)), None))
        return Z, V, xp.where(var > NOTHING * prior, weights, 0.0 * weights), 0.0 * weights

    def _side(self, chosen: ArrayLike | None) -> tuple[Any, Any, Any, Any]:
        """Points (m, e), whitened covariances with the measurements (n, m), mean and variance (m,)."""
        belief = self.belief
        if isinstance(belief, GridPosterior):
            V = belief._V[: belief.n, :]
            if chosen is None:
                return belief.points, V, belief.mean, belief.var
            indices = belief._checked(chosen)
            return belief.points[indices], V[:, indices], belief.mean[indices], belief.var[indices]
        if chosen is None:
            raise ValueError("columns are needed: a Posterior has no candidates of its own")
        points, K = belief._cross(chosen)
        white = belief.inverse @ K.T
        return points, white, belief.gp.mean + K @ belief.alpha, belief._variance(points, white)

    def _place(self, array: NDArray[Any]) -> Any:
        """Bring a NumPy array to where the rows are."""
        points = self._points
        if is_numpy_array(points):
            return array
        return array_namespace(points).asarray(np.ascontiguousarray(array), device=points.device)


@cache
def _tail(unit: str) -> Callable[..., Any]:
    """What follows the product, compiled: (correlation − known)², weighted, capped, and summed over the rows."""
    import torch

    kernel = cast(Stationary, kernel_from_dict(json.loads(unit)))

    def tail(known: Any, X: Any, Z: Any, weights: Any, limits: Any) -> Any:
        # Coordinate by coordinate and level by level: sums of three axes would not become one kernel.
        r2 = (X[:, None, 0] - Z[None, :, 0]) ** 2
        for i in range(1, X.shape[1]):
            r2 = r2 + (X[:, None, i] - Z[None, :, i]) ** 2
        C = kernel.profile(r2) - known
        C = C * C
        return torch.stack([torch.minimum(C * weights[k], limits).sum(0) for k in range(len(weights))])

    compiled: Callable[..., Any] = torch.compile(tail, dynamic=True)
    return compiled


def _host(array: Any) -> Array:
    """Bring an array to NumPy, from whatever device."""
    return array.cpu().numpy() if is_torch_array(array) else np.asarray(array)
