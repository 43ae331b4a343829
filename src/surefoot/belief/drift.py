"""A function that drifts: what is known of it now, when measurements fade with their age.

The model is f_1 = g_1 (5.1) and f_{t+1} = √(1 − ε) f_t + √ε g_{t+1} (5.2) with independent draws g from one Gaussian
process. Every f_t is a draw from that process, and cov(f_t(x), f_s(z)) = k(x, z) (1 − ε)^{|t−s|/2}: a product of the
kernel with an exponential kernel in time, so that times need not be whole numbers. ε is the *forgetting* per unit of
time: at 0 the function stands still, at 1 nothing of it is left after one unit.

With K̃ = K ∘ [(1 − ε)^{|i−j|/2}] over the measurements and k̃(x) = k(x) ∘ [(1 − ε)^{age/2}] the posterior is

    μ̃(x) = k̃(x)ᵀ (K̃ + σ²I)⁻¹ y (5.3),    σ̃²(x) = k(x, x) − k̃(x)ᵀ (K̃ + σ²I)⁻¹ k̃(x) (5.4).

Three forms of it, which agree:

* :class:`DriftingPosterior`, on any domain: as written, with times as one more coordinate. Measurements in any order.
* :class:`DriftingGrid`, at all candidates at once, measurements in the order of time. It keeps the *explained*
  covariance Q = K − P, which time only shrinks: Q ← (1 − ε)^Δ Q. While measurements are few Q is a sum of one row for
  each: the incremental Cholesky form. Since rows shrink alike none of them is touched.
* When there are many, the same grid sums the rows up in one matrix: the Kalman filter. Memory grows no further.

>>> import numpy as np
>>> from surefoot.belief import GP, SE
>>> grid = DriftingGrid(GP(SE(0.3), noise=0.01), np.linspace(0.0, 1.0, 5)[:, None], forgetting=0.1)
>>> grid.append(2, 1.0, time=1.0)
>>> grid.mean[2].round(3), grid.var[2].round(3)
(np.float64(0.99), np.float64(0.01))
>>> grid.advance(11.0)
>>> grid.mean[2].round(3), grid.var[2].round(3)
(np.float64(0.585), np.float64(0.655))

References: Bogunovic, Scarlett & Cevher 2016, section 3 and appendix A; Kalman 1960 for the recursion. Numbers of
equations are those of Bogunovic's thesis (2019).
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NoReturn, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot.belief.forgetting import check_forgetting, separate
from surefoot.belief.posterior import EXACT, Posterior, factorize

if TYPE_CHECKING:
    from surefoot.belief.gp import GP

__all__ = ["DriftingGrid", "DriftingPosterior", "drifted", "simulate_drift"]

Array = NDArray[np.float64]

LARGEST_DENSE = 4096  # candidates up to which the explained covariance is summed up in one matrix (128 MB)
ROWS = 64  # rows that are kept apart at least: a sum of many at once is one fast matrix product
NEGLIGIBLE = 1e-14  # share of its weight at which a row is dropped: less than rounding


def simulate_drift(factor: ArrayLike, steps: int, forgetting: float, rng: np.random.Generator) -> Array:
    """Return f_1, ..., f_T at M places, shape (T, M): f_{t+1} = √(1 − ε) f_t + √ε g_{t+1}, each g = factor · normal.

    Parameters
    ----------
    factor : array of shape (M, M)
        Any root of the covariance: L with L Lᵀ = K.
    steps : int
        T.
    forgetting : float
        ε between 0 and 1.
    rng : Generator

    >>> simulate_drift(np.eye(3), 4, 0.0, np.random.default_rng(0)).std(axis=0)
    array([0., 0., 0.])
    """
    rate, L = check_forgetting(forgetting), np.asarray(factor, dtype=np.float64)
    if steps < 1 or L.ndim != 2:
        raise ValueError(f"need one step and a square factor, got {steps!r} and shape {L.shape}")
    values: Array = rng.standard_normal((steps, L.shape[1])) @ L.T  # all g of (5.1) and (5.2), in one product
    return drifted(values, rate)


def drifted(innovations: Array, forgetting: float) -> Array:
    """Turn independent functions g_1, ..., g_T along the first axis into drifting ones, in place.

    >>> drifted(np.array([[1.0], [1.0]]), 0.36).round(6)
    array([[1. ],
           [1.4]])
    """
    stay, new = math.sqrt(1.0 - forgetting), math.sqrt(forgetting)
    for t in range(1, len(innovations)):
        innovations[t] *= new
        innovations[t] += stay * innovations[t - 1]  # (5.2)
    return innovations


class DriftingPosterior(Posterior):
    """What is known at one time of a function that drifts.

    A :class:`Posterior` whose measured points carry their time in the last column. Points to predict at, or to append,
    have one column less and are taken at ``time``; with as many columns they bring their own.

    Parameters
    ----------
    gp : GP
        As :func:`~surefoot.belief.forgetting.drifting` returns it.
    X, y, noise
        As in :class:`Posterior`, the time in the last column of X.
    time : float
        The time that is spoken of; it may be changed.

    >>> from surefoot.belief import GP, SE
    >>> from surefoot.belief.forgetting import drifting
    >>> gp = drifting(GP(SE(), noise=1e-6), 0.19, 1)
    >>> post = DriftingPosterior(gp, [[0.0, 5.0]], [1.0], time=6.0)
    >>> post.mean([[0.0]]).round(3), post.var([[0.0]]).round(3)
    (array([0.9]), array([0.19]))
    """

    def __init__(
        self,
        gp: GP,
        X: ArrayLike | None = None,
        y: ArrayLike | None = None,
        noise: ArrayLike | None = None,
        *,
        time: float = 0.0,
    ) -> None:
        separate(gp)
        super().__init__(gp, X, y, noise)
        self.time = float(time)
        self._columns: int = gp.kernel.left.dimensions[-1] + 1  # type: ignore[attr-defined]

    def _stamped(self, Z: ArrayLike) -> Array:
        points = np.asarray(Z, dtype=np.float64)
        if points.ndim != 2 or points.shape[1] not in (self._columns, self._columns + 1):
            raise ValueError(f"points must have shape (m, {self._columns}), got {points.shape}")
        if points.shape[1] > self._columns:
            return points
        return np.column_stack([points, np.full(len(points), self.time)])

    def _cross(self, Z: ArrayLike) -> tuple[Array, Array]:
        return super()._cross(self._stamped(Z))  # k̃(x) = k(x) ∘ [(1 − ε)^{age/2}]: all that (5.3) and (5.4) change

    def append(self, x: ArrayLike, y: float, noise: float | None = None) -> None:
        super().append(self._stamped(np.asarray(x, dtype=np.float64)[None])[0], y, noise)

    def prior_variance(self, E: ArrayLike) -> float:
        return super().prior_variance(self._stamped(E))

    def gradient(self, Z: ArrayLike) -> tuple[Array, Array, Array, Array]:
        mean, std, mean_slope, std_slope = super().gradient(self._stamped(Z))
        e = self._columns
        return mean, std, mean_slope[:, :e], std_slope[:, :e]

    def sample(self, Z: ArrayLike, count: int, rng: np.random.Generator) -> Array:
        return super().sample(self._stamped(Z), count, rng)


class DriftingGrid:
    """Mean and variance of a drifting function at every candidate, in memory that stays bounded.

    Parameters
    ----------
    gp : GP
        Kernel, noise and mean of the function at any one time.
    points : array of shape (M, e)
        The candidates as the model sees them.
    forgetting : float
        ε per unit of time, between 0 and 1.
    dense : bool, optional
        Whether many measurements are summed up in an (M, M) matrix. None: up to 4096 candidates. Otherwise rows are
        kept until less than rounding is left of them.

    Attributes
    ----------
    mean, var : array of shape (M,)
        Of the function at :attr:`time`. **Updated in place.**
    time : float or None
        The time that is spoken of; None before the first.
    n : int
        Number of measurements so far, also of those that have faded.
    log_likelihood : float
        Σ log N(y_t; mean, var + noise) of all measurements, each predicted from those before it.
    information_gain : float
        ½ Σ log(1 + var/noise), the information the measurements carry (5.22).

    >>> from surefoot.belief import GP, SE
    >>> grid = DriftingGrid(GP(SE(), noise=0.01), [[0.0]], forgetting=0.01)
    >>> for t in range(500):
    ...     grid.append(0, 0.0, time=t)
    >>> grid.advance(500)
    >>> grid.var.round(5)  # ½ [ε(1 − s) + √(ε²(1 − s)² + 4εs)] with ε = s = 0.01
    array([0.01611])
    """

    def __init__(self, gp: GP, points: ArrayLike, forgetting: float, *, dense: bool | None = None) -> None:
        self.points = np.asarray(points, dtype=np.float64)
        if self.points.ndim != 2 or 0 in self.points.shape or not np.isfinite(self.points).all():
            raise ValueError(f"points must be finite and of shape (M, e), got shape {self.points.shape}")
        size = len(self.points)
        self.gp, self.forgetting = gp, check_forgetting(forgetting)
        self._prior: Array = np.array(gp.kernel.diag(self.points))
        self.mean, self.var = np.full(size, gp.mean), self._prior.copy()
        self.time: float | None = None
        self.n, self.log_likelihood, self.information_gain = 0, 0.0, 0.0
        self._floor = max(EXACT * float(self._prior.max()), np.finfo(np.float64).tiny)
        self._block = max(ROWS, size // 8) if (size <= LARGEST_DENSE if dense is None else dense) else None
        self._V = np.empty((ROWS, size))
        self._times = np.empty(ROWS)  # when each row was measured
        self._rows = 0
        self._Q: Array | None = None  # the rows summed up so far,
        self._Q_time = 0.0  # as of this time
        self._marks: list[tuple[dict[str, Any], Array, Array]] = []

    @property
    def std(self) -> Array:
        """Standard deviation at each candidate, shape (M,)."""
        return np.sqrt(self.var)

    @property
    def nbytes(self) -> int:
        """Bytes held in arrays.

        >>> from surefoot.belief import GP, SE
        >>> DriftingGrid(GP(SE()), np.zeros((10, 1)), 0.1).nbytes
        5952
        """
        return sum(value.nbytes for value in vars(self).values() if isinstance(value, np.ndarray))

    def _share(self, ages: Any) -> Any:
        """(1 − ε)^age: the share of a covariance that is left. 0⁰ = 1."""
        return np.power(1.0 - self.forgetting, ages)

    def advance(self, time: float) -> None:
        """Speak of a later time: mean and variance drift back towards the prior.

        >>> from surefoot.belief import GP, SE
        >>> grid = DriftingGrid(GP(SE()), [[0.0]], 0.1)
        >>> grid.advance(3.0); grid.advance(2.0)
        Traceback (most recent call last):
        ...
        ValueError: time runs backwards: 2.0 comes after 3.0
        """
        if not math.isfinite(time):
            raise ValueError(f"a time must be finite, got {time!r}")
        if self.time is not None and time < self.time:
            raise ValueError(f"time runs backwards: {time} comes after {self.time}")
        share = 1.0 if self.time is None else float(self._share(time - self.time))
        self.time = float(time)
        if share < 1.0:  # (5.2) over a time Δ: f_{t+Δ} = (1 − ε)^{Δ/2} f_t + (1 − (1 − ε)^Δ)^{1/2} g
            self.mean -= self.gp.mean
            self.mean *= math.sqrt(share)
            self.mean += self.gp.mean
            self.var *= share
            self.var += (1.0 - share) * self._prior

    def append(self, index: int, y: float, noise: float | None = None, *, time: float | None = None) -> None:
        """Measure a candidate, at the time that is spoken of or at a later one.

        Parameters
        ----------
        index : int
            The measured candidate.
        y : float
            The measured value.
        noise : float, optional
            Variance of this measurement; by default that of ``gp``.
        time : float, optional
            When; by default now.
        """
        if not math.isfinite(y):
            raise ValueError(f"the value of a measurement must be finite, got {y!r}")
        variance, i = self._checked(index, noise)
        if self._marks:
            raise ValueError(f"undo the {len(self._marks)} provisional measurements before appending a real one")
        if time is not None:
            self.advance(time)
        self._tidy()
        self._measure(i, float(y), variance)
        self.n += 1

    def hallucinate(self, index: int, noise: float | None = None) -> None:
        """Pretend a candidate was measured at its mean, until :meth:`undo`.

        >>> from surefoot.belief import GP, SE
        >>> grid = DriftingGrid(GP(SE(), noise=1.0), [[0.0]], 0.1)
        >>> grid.hallucinate(0)
        >>> inside = grid.var[0]
        >>> grid.undo()
        >>> inside.round(9), grid.var[0]
        (np.float64(0.5), np.float64(1.0))
        """
        variance, i = self._checked(index, noise)
        self.mark()
        self._measure(i, None, variance)

    def provisionally(self, index: int, y: float, noise: float | None = None) -> None:
        """Measure a candidate now, until :meth:`undo`: for values that others may still precede.

        >>> from surefoot.belief import GP, SE
        >>> grid = DriftingGrid(GP(SE(), noise=1.0), [[0.0]], 0.1)
        >>> with grid.provisional():
        ...     grid.provisionally(0, 3.0)
        ...     inside = grid.mean[0]
        >>> inside.round(9), grid.mean[0], grid.n
        (np.float64(1.5), np.float64(0.0), 0)
        """
        variance, i = self._checked(index, noise)
        self.mark()
        self._measure(i, float(y), variance)

    def mark(self) -> None:
        """Remember how things stand, for :meth:`undo`: that a time is only spoken of for now, for example."""
        names = ("time", "_rows", "log_likelihood", "information_gain")
        self._marks.append(({name: getattr(self, name) for name in names}, self.mean.copy(), self.var.copy()))

    @property
    def marks(self) -> int:
        """How many marks there are; ``grid.undo(grid.marks)`` takes back all that is provisional."""
        return len(self._marks)

    def undo(self, count: int = 1) -> None:
        """Go back to the last mark but ``count − 1``, bit for bit: each hallucination made one."""
        if not 0 <= count <= len(self._marks):
            raise ValueError(f"cannot undo {count!r} of {len(self._marks)} marks")
        if count:
            before, mean, var = self._marks[-count]
            vars(self).update(before)
            self.mean[...], self.var[...] = mean, var
            del self._marks[-count:]

    @contextlib.contextmanager
    def provisional(self) -> Iterator[Self]:
        """Whatever happens inside is undone afterwards, bit for bit."""
        before = len(self._marks)
        self.mark()
        try:
            yield self
        finally:
            self.undo(len(self._marks) - before)

    # -- as every belief ---------------------------------------------------------------------------------------------

    @property
    def noise_level(self) -> float:
        """Noise variance of a measurement that does not bring its own."""
        return self.gp.noise

    def prior_variance(self, E: ArrayLike) -> float:
        """Return the largest variance before any measurement among encoded points (m, e)."""
        return float(self.gp.kernel.diag(np.asarray(E, dtype=np.float64)).max())

    def expected(self, at: Any) -> Array:
        """Return the mean at some candidates, shape (m,)."""
        mean: Array = self.mean[at]
        return mean

    def predict(self, at: Any) -> tuple[Array, Array]:
        """Return mean and standard deviation at some candidates, shape (m,) each."""
        return self.mean[at], np.sqrt(self.var[at])

    def gradient(self, at: Any) -> NoReturn:
        """Raise: there is nothing between the candidates."""
        raise TypeError("candidates have no gradients; score all of them")

    def covariance(self, at: Any, others: Any = slice(None)) -> Array:
        """Return the posterior covariance of one candidate (k,), or of several (m, k), with all or with others.

        >>> from surefoot.belief import GP, SE
        >>> DriftingGrid(GP(SE()), [[0.0], [1.0]], 0.1).covariance(0).round(3)
        array([1.   , 0.607])
        """
        rows = np.atleast_1d(np.arange(len(self.points))[at])
        prior: Array = self.gp.kernel(self.points[rows], self.points)
        cov: Array = (prior - np.array([self._explained(int(i)) for i in rows]))[:, others]
        return cov[0] if np.ndim(at) == 0 and not isinstance(at, slice) else cov

    def draw(self, at: Any, count: int, rng: np.random.Generator) -> Array:
        """Return joint draws at some candidates, shape (count, m)."""
        cov = self.covariance(at, at)
        draws: Array = (
            self.mean[at] + rng.standard_normal((count, len(cov))) @ factorize(cov, EXACT * self._prior[at])[0].T
        )
        return draws

    def copy(self) -> Self:
        """Return an independent copy that shares only the points and the prior."""
        twin = object.__new__(type(self))
        arrays = {key: value.copy() for key, value in vars(self).items() if isinstance(value, np.ndarray)}
        vars(twin).update({**vars(self), **arrays, "points": self.points, "_marks": self._marks[:]})
        return twin

    def _explained(self, i: int) -> Array:
        """Row i of Q = K − P, k̃ᵀ(K̃ + σ²I)⁻¹k̃ of (5.4): one weighted sum over stored rows, which stay as they are."""
        now, rows = self.time or 0.0, self._rows
        weights = self._V[:rows, i] * self._share(now - self._times[:rows])
        row: Array = weights @ self._V[:rows]
        if self._Q is not None:
            row += float(self._share(now - self._Q_time)) * self._Q[i]
        return row

    def _measure(self, i: int, y: float | None, variance: float) -> None:
        """The Kalman update; a value of None leaves the mean as it is."""
        covariance = self.gp.kernel(self.points[i : i + 1], self.points)[0] - self._explained(i)
        pivot = float(self.var[i]) + variance
        if self._rows == len(self._V):
            self._V = np.concatenate([self._V, np.empty_like(self._V)])
            self._times = np.concatenate([self._times, np.empty_like(self._times)])
        row = self._V[self._rows]
        np.multiply(covariance, 1.0 / math.sqrt(pivot), out=row)
        self.information_gain += 0.5 * math.log(pivot / variance)  # one more term of (5.22)
        if y is not None:
            surprise = (y - float(self.mean[i])) / math.sqrt(pivot)
            self.log_likelihood -= 0.5 * (surprise**2 + math.log(2.0 * math.pi * pivot))
            self.mean += surprise * row  # (5.3) with one measurement more
        self.var -= row * row  # (5.4) with one measurement more
        np.maximum(self.var, 0.0, out=self.var)
        self._times[self._rows] = self.time or 0.0
        self._rows += 1

    def _tidy(self) -> None:
        """Before a row is added: sum rows up where there are many, or drop those that have faded."""
        rows, now = self._rows, self.time or 0.0
        if self._block is not None:
            if rows < self._block or (self.forgetting == 0.0 and rows < len(self.points)):
                return
            V, shares = self._V[:rows], self._share(now - self._times[:rows])
            Q = V.T @ (shares[:, None] * V)
            if self._Q is not None:
                Q += float(self._share(now - self._Q_time)) * self._Q
            self._Q, self._Q_time, self._rows = Q, now, 0
        elif rows == len(self._V):
            faded = int(np.searchsorted(self._share(now - self._times[:rows]), NEGLIGIBLE))
            if faded >= rows // 4:
                self._V[: rows - faded] = self._V[faded:rows]
                self._times[: rows - faded] = self._times[faded:rows]
                self._rows = rows - faded

    def _checked(self, index: int, noise: float | None) -> tuple[float, int]:
        if not isinstance(index, (int, np.integer)) or not 0 <= index < len(self.points):
            raise ValueError(f"an index must lie between 0 and {len(self.points) - 1}, got {index!r}")
        variance = self.gp.noise if noise is None or math.isnan(noise) else float(noise)
        if not (math.isfinite(variance) and variance >= 0.0):
            raise ValueError(f"noise is a variance, finite and at least 0, got {noise!r}")
        return max(variance, self._floor), int(index)

    def __repr__(self) -> str:
        return f"DriftingGrid({len(self.points)} candidates, {self.n} measurements, forgetting={self.forgetting:g})"
