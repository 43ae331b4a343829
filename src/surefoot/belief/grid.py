"""The posterior at *all* candidates at once, kept up to date one measurement at a time.

A policy on a finite set of M candidates wants the mean and the variance at every one of them, after every measurement.
With n measurements a fresh posterior costs O(M n²); :class:`GridPosterior` pays O(M n) per measurement by keeping the
whitened cross-covariances V = L⁻¹ k(X, ·), one row per measurement, where L Lᵀ = k(X, X) + noise. A measurement y of
candidate i adds one row, the posterior covariance of i with everything over its standard deviation:

    s² = var(i) + noise,   w = (k(xᵢ, ·) − V[:, i]ᵀ V)/s,   mean ← mean + w (y − mean(i))/s,   var ← var − w².

That is one product of a vector with the rows stored so far: a *single streaming pass* over V, whose bytes divided by
the memory bandwidth are the floor of the cost. Rows lie one after the other in one buffer that doubles when full.

>>> import numpy as np
>>> from surefoot.belief import GP, SE
>>> grid = GridPosterior(GP(SE(lengthscale=0.2), noise=1e-4), np.linspace(0.0, 1.0, 101)[:, None])
>>> grid.append(50, 1.0)
>>> bool(grid.mean.argmax() == 50), bool(grid.std[50] < 0.02), bool(grid.std[0] > 0.9)
(True, True, True)

The type of ``points`` decides where the work is done: a NumPy array, or a torch tensor on any device. The code is the
same, through ``array_api_compat``, and so are the numbers.

References: Rasmussen & Williams 2006, section 2.2; Desautels, Krause & Burdick 2014 for hallucinated measurements.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from operator import index as as_index
from typing import TYPE_CHECKING, Any, NoReturn, Self

import numpy as np
from array_api_compat import array_namespace, is_numpy_array, is_torch_array
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import solve_triangular

from surefoot.belief.posterior import factorize

if TYPE_CHECKING:
    from surefoot.belief.gp import GP

__all__ = ["GridPosterior"]

Array = NDArray[np.float64]

# Covariances held at once, in numbers: a processor likes its temporaries in cache (but each block costs a round of its
# threads), a device likes few large launches.
BLOCK, DEVICE_BLOCK = 2**16, 2**25
# Exact joint draws factorize an (M, M) matrix: 4096 candidates take 128 MB and about a second.
LARGEST_SAMPLE = 4096
# A variance below this fraction of the prior's is rounding error: no measurement is taken to be more exact.
EXACT = 1e-12


class GridPosterior:
    """Mean and variance of a Gaussian process at every candidate, updated in place.

    Parameters
    ----------
    gp : GP
        The prior: its ``kernel``, ``noise`` and ``mean`` are used as they are.
    points : array of shape (M, e)
        The candidates as the model sees them; a NumPy array or a torch tensor, in ``float64``.
    capacity : int
        Measurements to make room for at first; the room doubles when it is full.

    Attributes
    ----------
    mean, var : array of shape (M,)
        Of the latent function at each candidate. **Updated in place**: copy what must not change.
    indices : list of int
        The measured candidates in order, hallucinated ones last.

    Examples
    --------
    >>> from surefoot.belief import GP, Matern
    >>> grid = GridPosterior(GP(Matern(2.5), noise=0.01), np.array([[0.0], [1.0], [2.0]]))
    >>> for index, value in [(0, -1.0), (2, 1.0)]:
    ...     grid.append(index, value)
    >>> grid.mean.round(2) + 0.0
    array([-0.99,  0.  ,  0.99])
    """

    def __init__(self, gp: GP, points: Any, *, capacity: int = 64) -> None:
        if not is_torch_array(points):
            points = np.asarray(points, dtype=np.float64)
        xp = array_namespace(points)
        if points.ndim != 2 or 0 in points.shape:
            raise ValueError(f"points must have shape (M, e) with M, e ≥ 1, got {tuple(points.shape)}")
        if points.dtype != xp.float64:
            raise ValueError(f"points must be float64, got {points.dtype}")
        if not bool(xp.all(xp.isfinite(points))):
            raise ValueError("points must be finite")
        if capacity < 1:
            raise ValueError(f"capacity must be at least 1, got {capacity!r}")
        self.gp, self.points = gp, points
        self._xp, self._like = xp, {"dtype": points.dtype, "device": points.device}
        self.mean = xp.full(len(points), float(gp.mean), **self._like)
        self.var = xp.asarray(gp.kernel.diag(points), copy=True)
        self._scale = float(xp.max(self.var))
        self._floor = max(EXACT * self._scale, np.finfo(np.float64).tiny)
        self._V = xp.empty((capacity, len(points)), **self._like)
        self.indices: list[int] = []
        self._gains: list[float] = []  # information gained by each measurement
        self._shadows: list[Any] = []  # the variances before each hallucination

    @classmethod
    def condition(cls, gp: GP, points: Any, indices: ArrayLike, y: ArrayLike, noise: ArrayLike | None = None) -> Self:
        """Return the posterior after n measurements at once: the same as n appends, in matrix products.

        Parameters
        ----------
        gp, points
            As in the constructor.
        indices, y : array of shape (n,)
            Measured candidates, repetitions allowed, and their values.
        noise : float or array of shape (n,), optional
            Variance of each measurement; None or NaN means the noise of ``gp``.

        >>> from surefoot.belief import GP, SE
        >>> GridPosterior.condition(GP(SE(), noise=0.1), np.array([[0.0], [9.0]]), [0, 0], [1.0, 2.0]).mean.round(3)
        array([1.429, 0.   ])
        """
        count = np.size(_host(indices))
        self = cls(gp, points, capacity=max(64, count + count // 4))
        if count == 0:
            return self
        xp, chosen = self._xp, self._checked(indices)
        values = np.asarray(_host(y), dtype=np.float64)
        if values.shape != (count,) or not np.isfinite(values).all():
            raise ValueError(f"y must be {count} finite values, one per index, got {y!r}")
        variances = np.broadcast_to(self._noise(noise), (count,))
        # The (n, n) system is small and solved on the host; its inverse factor turns the pass into matrix products.
        X = np.ascontiguousarray(_host(self.points[chosen]))
        L, variances = factorize(gp.kernel(X), variances)
        whiten = solve_triangular(L, np.eye(count), lower=True)
        weights = self._move(whiten @ (values - gp.mean))
        X, whiten = self._move(X), self._move(whiten)
        for part in self._parts(count):
            W = whiten @ gp.kernel(X, self.points[part])
            self._V[:count, part] = W
            self.mean[part] += weights @ W
            self.var[part] = xp.maximum(self.var[part] - xp.sum(W * W, axis=0), 0.0)
        self.indices = chosen.tolist()
        self._gains = np.log(np.diag(L) / np.sqrt(variances)).tolist()
        return self

    @property
    def n(self) -> int:
        """Number of measurements, hallucinated ones included."""
        return len(self.indices)

    @property
    def hallucinated(self) -> int:
        """Number of hallucinated measurements that :meth:`release` can take back."""
        return len(self._shadows)

    @property
    def std(self) -> Any:
        """Standard deviation at each candidate, shape (M,), a new array."""
        return self._xp.sqrt(self.var)

    @property
    def information_gain(self) -> float:
        """Information the measurements carry about the function, ½ log det(I + Σ^(−½) K Σ^(−½)), in nats."""
        return math.fsum(self._gains)

    @property
    def noise_level(self) -> float:
        """Noise variance of a measurement that does not bring its own."""
        return self.gp.noise

    def prior_variance(self, E: ArrayLike) -> float:
        """Return the largest variance before any measurement among encoded points (m, e)."""
        return float(self.gp.kernel.diag(np.asarray(E, dtype=np.float64)).max())

    def expected(self, at: Any) -> Array:
        """Return the mean at some candidates, shape (m,); ``EVERY`` names all."""
        return np.asarray(_host(self.mean[at]))

    def predict(self, at: Any) -> tuple[Array, Array]:
        """Return mean and standard deviation at some candidates, shape (m,) each; ``EVERY`` names all.

        >>> from surefoot.belief import GP, SE
        >>> GridPosterior(GP(SE()), np.array([[0.0], [1.0]])).predict([1])
        (array([0.]), array([1.]))
        """
        return self.expected(at), np.asarray(_host(self._xp.sqrt(self.var[at])))

    def gradient(self, at: Any) -> NoReturn:
        """Raise: there is nothing between the candidates."""
        raise TypeError("candidates have no gradients; score all of them")

    def draw(self, at: Any, count: int, rng: np.random.Generator) -> Array:
        """Return joint draws at some candidates, shape (count, m)."""
        return np.asarray(_host(self.sample(count, rng)))[:, at]

    def append(self, index: int, y: float, noise: float | None = None) -> None:
        """Measure a candidate: update mean and variance everywhere, in one pass over the stored rows.

        Parameters
        ----------
        index : int
            The measured candidate.
        y : float
            The measured value.
        noise : float, optional
            Variance of this measurement; None or NaN means the noise of ``gp``.

        >>> from surefoot.belief import GP, SE
        >>> grid = GridPosterior(GP(SE(), noise=1.0), np.array([[0.0]]))
        >>> grid.append(0, 3.0)
        >>> grid.mean.round(6), grid.var.round(6)
        (array([1.5]), array([0.5]))
        """
        if not math.isfinite(y):
            raise ValueError(f"the value of a measurement must be finite, got {y!r}")
        if self._shadows:
            raise ValueError(f"release the {len(self._shadows)} hallucinated measurements before appending a real one")
        self._measure(index, float(y), noise)

    def hallucinate(self, index: int, noise: float | None = None) -> None:
        """Pretend a candidate was measured at its mean: the variance shrinks, the mean stays.

        >>> from surefoot.belief import GP, SE
        >>> grid = GridPosterior(GP(SE(), noise=1.0), np.array([[0.0]]))
        >>> grid.hallucinate(0)
        >>> grid.var.round(6)
        array([0.5])
        >>> grid.release()
        >>> grid.var
        array([1.])
        """
        before = self._xp.asarray(self.var, copy=True)
        self._measure(index, None, noise)
        self._shadows.append(before)

    def release(self, count: int = 1) -> None:
        """Take back the last hallucinations, leaving mean and variance bit for bit as they were before.

        Parameters
        ----------
        count : int
            How many; ``grid.release(grid.hallucinated)`` takes back all.

        >>> from surefoot.belief import GP, SE
        >>> grid = GridPosterior(GP(SE()), np.array([[0.0], [1.0]]))
        >>> for index in (0, 1, 1):
        ...     grid.hallucinate(index)
        >>> grid.release(2)
        >>> grid.hallucinated
        1
        """
        if not 0 <= count <= len(self._shadows):
            raise ValueError(f"cannot release {count!r} of {len(self._shadows)} hallucinated measurements")
        if count:
            self.var[...] = self._shadows[-count]
            del self._shadows[-count:], self.indices[-count:], self._gains[-count:]

    def undo(self, count: int = 1) -> None:
        """Return :meth:`release`, under the name that all beliefs share."""
        self.release(count)

    def covariance(self, indices: ArrayLike, others: Any = slice(None)) -> Any:
        """Return the posterior covariance of some candidates with all candidates, or with some ``others``.

        Parameters
        ----------
        indices : int or array of shape (b,)
            One candidate, giving shape (M,), or a block of them, giving shape (b, M).

        >>> from surefoot.belief import GP, SE
        >>> grid = GridPosterior(GP(SE()), np.array([[0.0], [1.0]]))
        >>> grid.covariance(0).round(3)
        array([1.   , 0.607])
        >>> grid.covariance([0, 1]).shape
        (2, 2)
        """
        chosen = self._checked(indices)
        out = self._xp.empty((chosen.size, len(self.points)), **self._like)
        for part, C in self._covariances(chosen):
            out[:, part] = C
        return out[0][others] if np.ndim(_host(indices)) == 0 else out[:, others]

    def lookahead(self, indices: ArrayLike, noise: ArrayLike | None = None) -> Any:
        """Return the variance everywhere if one candidate were measured, for a block of candidates.

        Parameters
        ----------
        indices : array of shape (b,)
            The candidates, each considered alone.
        noise : float or array of shape (b,), optional
            Variance of each measurement; None or NaN means the noise of ``gp``.

        Returns
        -------
        array of shape (b, M)
            Row j holds the variances after measuring candidate ``indices[j]``: var − cov²/(var + noise).

        >>> from surefoot.belief import GP, SE
        >>> grid = GridPosterior(GP(SE(), noise=1.0), np.array([[0.0], [9.0]]))
        >>> grid.lookahead([0, 1])
        array([[0.5, 1. ],
               [1. , 0.5]])
        """
        xp, chosen = self._xp, np.atleast_1d(self._checked(indices))
        variances = self._move(np.broadcast_to(self._noise(noise), chosen.shape).copy())
        pivots = (self.var[chosen] + variances)[:, None]
        out = xp.empty((chosen.size, len(self.points)), **self._like)
        for part, C in self._covariances(chosen):
            out[:, part] = xp.maximum(self.var[part] - C * C / pivots, 0.0)
        return out

    def sample(self, count: int, rng: np.random.Generator) -> Any:
        """Draw the values at all candidates jointly and exactly, shape (count, M).

        The cost is that of factorizing an (M, M) matrix; above 4096 candidates use
        :class:`~surefoot.belief.paths.PathSamples`. The normal variates come from ``rng`` whatever holds the points,
        so that NumPy and torch draw the same functions.

        >>> from surefoot.belief import GP, SE
        >>> grid = GridPosterior(GP(SE(), noise=1e-6), np.array([[0.0], [1.0]]))
        >>> grid.append(0, 5.0)
        >>> grid.sample(2, np.random.default_rng(0))[:, 0].round(2)
        array([5., 5.])
        """
        xp, size = self._xp, len(self.points)
        if size > LARGEST_SAMPLE:
            advice = "draw functions with surefoot.belief.paths.sample_paths instead"
            raise ValueError(
                f"{size} candidates are too many for exact joint draws (at most {LARGEST_SAMPLE}): {advice}"
            )
        normal = self._move(rng.standard_normal((count, size)))
        V = self._V[: self.n, :]
        C = self.gp.kernel(self.points) - V.T @ V
        jitter = 1e-13 * self._scale
        while True:  # a posterior covariance is singular to rounding wherever a measurement was precise
            try:
                return self.mean + normal @ xp.linalg.cholesky(C + jitter * xp.eye(size, **self._like)).T
            except (np.linalg.LinAlgError, RuntimeError):  # NumPy's and torch's way to say "not positive definite"
                if jitter > 1e-5 * self._scale:
                    raise
                jitter *= 10.0

    def copy(self) -> Self:
        """Return an independent copy that shares only the points and the prior.

        >>> from surefoot.belief import GP, SE
        >>> grid = GridPosterior(GP(SE(), noise=1.0), np.array([[0.0]]))
        >>> other = grid.copy()
        >>> other.append(0, 3.0)
        >>> grid.n, other.n
        (0, 1)
        """
        xp, twin = self._xp, object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        twin.mean, twin.var = xp.asarray(self.mean, copy=True), xp.asarray(self.var, copy=True)
        twin._V = xp.empty(self._V.shape, **self._like)
        twin._V[: self.n, :] = self._V[: self.n, :]
        twin.indices, twin._gains, twin._shadows = self.indices[:], self._gains[:], self._shadows[:]
        return twin

    def __repr__(self) -> str:
        return f"GridPosterior({len(self.points)} candidates, {self.n} measurements)"

    def _measure(self, index: int, y: float | None, noise: float | None) -> None:
        """Add one row; a value of None leaves the mean untouched."""
        chosen, variance = self._checked(as_index(index)), float(self._noise(noise))
        n, i = self.n, int(chosen[0])
        if n == len(self._V):
            self._grow()
        # Arrays of one number each: reading them here would make a device finish before it is given the real work.
        pivot = self.var[i : i + 1] + variance
        scale = 1.0 / self._xp.sqrt(pivot)
        step = None if y is None else (y - self.mean[i : i + 1]) * scale
        for part, C in self._covariances(chosen):
            w, mean, var = self._V[n, part], self.mean[part], self.var[part]  # views
            w[...] = C[0] * scale
            if step is not None:
                mean += step * w
            var -= w * w
            self._xp.clip(var, 0.0, None, out=var)
        self.indices.append(i)
        self._gains.append(0.5 * math.log(float(pivot[0]) / variance))

    def _covariances(self, chosen: NDArray[np.intp]) -> Iterator[tuple[slice, Any]]:
        """Posterior covariances (b, block) of the chosen with one block of candidates after the other: *the* pass."""
        V, n = self._V, self.n
        # One candidate is a matrix-vector product, several are a matrix-matrix product; copied, so that both are BLAS.
        # A slice spares the one candidate the way of its index to a device.
        first = slice(int(chosen[0]), int(chosen[0]) + 1)
        rows = first if chosen.size == 1 else chosen
        X, U = self.points[rows], self._xp.asarray(V[:n, rows].T, copy=True)
        for part in self._parts(chosen.size):
            known = (U[0] if chosen.size == 1 else U) @ V[:n, part]  # the long part: a device starts with it
            C = self.gp.kernel(X, self.points[part])
            C -= known
            yield part, C

    def _parts(self, rows: int) -> Iterator[slice]:
        """Slices of the candidates, so many that ``rows`` values for each fill one block."""
        budget = BLOCK if str(self.points.device) == "cpu" else DEVICE_BLOCK
        block = max(2048, budget // rows)
        return (slice(start, start + block) for start in range(0, len(self.points), block))

    def _grow(self) -> None:
        V = self._xp.empty((2 * len(self._V), len(self.points)), **self._like)
        V[: self.n, :] = self._V[: self.n, :]
        self._V = V

    def _move(self, array: Any) -> Any:
        """Bring a NumPy array to where the points are."""
        return array if is_numpy_array(self.points) else self._xp.asarray(array, device=self.points.device)

    def _checked(self, indices: ArrayLike) -> NDArray[np.intp]:
        chosen = np.atleast_1d(_host(indices))
        if chosen.ndim != 1 or chosen.size == 0 or chosen.dtype.kind not in "iu":
            raise ValueError(f"indices must be one or several whole numbers, got {indices!r}")
        if chosen.min() < 0 or chosen.max() >= len(self.points):
            raise ValueError(f"indices must lie between 0 and {len(self.points) - 1}, got {indices!r}")
        return chosen.astype(np.intp)

    def _noise(self, noise: ArrayLike | None) -> Array:
        given = np.asarray(np.nan if noise is None else _host(noise), dtype=np.float64)
        variances = np.where(np.isnan(given), self.gp.noise, given)
        if not (np.isfinite(variances).all() and (variances >= 0).all()):
            raise ValueError(f"noise is a variance, finite and at least 0, got {noise!r}")
        return np.maximum(variances, self._floor)


def _host(array: Any) -> Any:
    """Bring an array to NumPy, from whatever device."""
    return array.cpu().numpy() if is_torch_array(array) else np.asarray(array)
