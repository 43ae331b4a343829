"""PanelPosterior: the same posterior for thousands of measurements, in half the memory and half the arithmetic.

:class:`~surefoot.belief.posterior.Posterior` keeps the factor L of K + Σ *and* its inverse, in square buffers that
double: 3.2 GB for 10,000 measurements, and up to 12.8 GB when they have just grown. Here L is kept alone, in panels of
WIDTH rows that hold what is left of the diagonal and nothing else, 0.4 GB; of the inverse only the blocks on the
diagonal are kept. A triangular solve goes panel by panel,

    Vᵢ = Dᵢ⁻¹ (Bᵢ − Pᵢ V),    Pᵢ the rows of panel i left of its diagonal block Dᵢ, V the rows found so far,

so that nearly all work is in matrix products with n²m additions and multiplications for m columns; the product with an
inverse takes 2n²m. Factorizing is the same step with the kernel's rows for B, one panel after the other, and never
holds the matrix K. Panels that are full are shared by copies: a copy costs O(n).

>>> import numpy as np
>>> from surefoot.belief.gp import GP
>>> from surefoot.belief.kernels import SE
>>> gp, X = GP(SE(lengthscale=0.3), noise=1e-6), np.linspace(0.0, 1.0, 300)[:, None]
>>> post = PanelPosterior(gp, X, np.sin(6.0 * X[:, 0]))
>>> bool(abs(post.mean([[0.505]]) - np.sin(6.0 * 0.505)).max() < 1e-3)
True

References: Golub & Van Loan 2013, sections 3.1.4 (triangular systems by blocks) and 4.2.6 (block Cholesky).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg.lapack import dpotrf, dtrtri

from surefoot.belief.posterior import EXACT, Posterior, observations

if TYPE_CHECKING:
    from surefoot.belief.gp import GP

__all__ = ["PanelPosterior"]

Array = NDArray[np.float64]

WIDTH = 256  # rows of a panel
CHUNK = 256  # points of one prediction: bounds the memory that their covariances need


class PanelPosterior(Posterior):
    """A posterior of very many measurements; see the module's page. Made by :meth:`surefoot.belief.GP.condition`.

    Parameters
    ----------
    gp, X, y, noise
        As of :class:`~surefoot.belief.posterior.Posterior`.

    >>> from surefoot.belief.gp import GP
    >>> post = PanelPosterior(GP(noise=1.0))
    >>> post.append([0.0], 2.0)
    >>> post.mean([[0.0]])
    array([1.])
    """

    def __init__(
        self, gp: GP, X: ArrayLike | None = None, y: ArrayLike | None = None, noise: ArrayLike | None = None
    ) -> None:
        self.gp = gp
        points, values, noises = observations(X, y, noise)
        self._X, self._y, self._noise = points, values, np.where(np.isnan(noises), gp.noise, noises)
        self._white = np.zeros(len(values))  # L⁻¹ (y − c)
        self._pivots = np.ones(len(values))  # the diagonal of L
        self._panels: list[Array] = []  # rows of L up to the end of their diagonal block, (WIDTH, start + WIDTH)
        self._blocks: list[Array] = []  # inverses of the diagonal blocks, (WIDTH, WIDTH)
        self._shared = 0  # so many of the first panels may be a copy's as well
        self._alphas: dict[int, Array] = {}  # (K + Σ)⁻¹ (y − c) of the first so many measurements
        self.n = 0
        for start in range(0, len(values), WIDTH):
            self._extend(min(WIDTH, len(values) - start))

    # -- the factor --------------------------------------------------------------------------------------------------

    def _extend(self, count: int) -> None:
        """Add a panel with the next measurements, which are in their buffers already."""
        n, end = self.n, self.n + count
        kernel, X = self.gp.kernel, self._X[self.n : self.n + count]
        level = kernel.diag(X)
        noise = np.maximum(self._noise[n:end], EXACT * level)
        rows = self._whiten(kernel(X, self.X).T).T if n else np.empty((count, 0))
        K = kernel(X) - rows @ rows.T
        jitter = 0.0
        while True:  # as in `factorize`, where rounding breaks L²ᵢᵢ ≥ noiseᵢ: of this panel only
            S = K.copy()
            S.ravel()[:: count + 1] += noise
            U, info = dpotrf(S.T, lower=0, clean=1, overwrite_a=1)
            if info == 0 and (U.diagonal() ** 2 >= 0.5 * noise).all():
                break
            if not np.isfinite(level).all() or jitter > 1.0:
                raise ValueError("the kernel matrix is not finite or not positive semi-definite")
            jitter = max(10.0 * jitter, 10.0 * EXACT)
            noise = np.maximum(noise, jitter * level.max())
        self._noise[n:end] = noise
        panel, block = np.zeros((WIDTH, n + WIDTH)), np.zeros((WIDTH, WIDTH))
        panel[:count, :n], panel[:count, n:end] = rows, U.T
        block[:count, :count] = dtrtri(U, lower=0)[0].T
        self._panels.append(panel)
        self._blocks.append(block)
        self._pivots[n:end] = U.diagonal()
        self._white[n:end] = block[:count, :count] @ (self._y[n:end] - self.gp.mean - rows @ self._white[:n])
        self.n = end

    def _add(self, row: Array, pivot: float) -> None:
        at, r = divmod(self.n, WIDTH)
        start = self.n - r
        if at == len(self._panels):
            self._panels.append(np.zeros((WIDTH, start + WIDTH)))
            self._blocks.append(np.zeros((WIDTH, WIDTH)))
        if at < self._shared:
            self._panels[at], self._blocks[at], self._shared = self._panels[at].copy(), self._blocks[at].copy(), at
        block = self._blocks[at]
        self._panels[at][r, : self.n], self._panels[at][r, self.n] = row, pivot
        block[r, :r], block[r, r] = -(row[start:] @ block[:r, :r]) / pivot, 1.0 / pivot
        self._pivots[self.n] = pivot
        self._alphas = {n: alpha for n, alpha in self._alphas.items() if n <= self.n}

    def _widen(self, size: int) -> None:
        pivots = np.ones(size)
        pivots[: self.n] = self._pivots[: self.n]
        self._pivots = pivots

    def _solve_mean(self) -> None:
        """Nothing yet: the weights of the mean are found when they are asked for."""

    @property
    def alpha(self) -> Array:  # type: ignore[override]
        if self.n not in self._alphas:
            self._alphas[self.n] = self._weigh(self._white[: self.n, None])[0]
        return self._alphas[self.n]

    @property
    def chol(self) -> Array:
        """Lower Cholesky factor of K + Σ, put together when asked for."""
        L = np.zeros((self.n, self.n))
        for start, count, panel, _ in self._parts():
            L[start : start + count, : start + count] = panel
        return L

    @property
    def inverse(self) -> Array:
        """Inverse of :attr:`chol`, O(n³) when asked for."""
        return self._whiten(np.eye(self.n))

    def last(self, count: int) -> tuple[Array, Array]:
        first, unit = self.n - count, np.zeros((self.n, count))
        unit[np.arange(first, self.n), np.arange(count)] = 1.0
        rows = np.zeros((count, self.n))
        for start, size, panel, _ in self._parts():
            for i in range(max(start, first), start + size):
                rows[i - first, : start + size] = panel[i - start]
        return rows[:, first:], self._weigh(unit)

    @property
    def information_gain(self) -> float:
        return float(np.log(self._pivots[: self.n]).sum() - 0.5 * np.log(self.noise).sum())

    def _parts(self) -> list[tuple[int, int, Array, Array]]:
        """Of each panel where it starts, its number of rows, these, and the inverse of its diagonal block."""
        starts = range(0, self.n, WIDTH)
        counts = [min(WIDTH, self.n - start) for start in starts]
        panels, blocks = self._panels, self._blocks
        parts = zip(starts, counts, panels, blocks, strict=False)  # the last panels may be empty after `pop`
        return [(s, c, panel[:c, : s + c], block[:c, :c]) for s, c, panel, block in parts]

    # -- solving -----------------------------------------------------------------------------------------------------

    def _whiten(self, B: Array) -> Array:
        V = np.empty(B.shape)
        for start, count, panel, block in self._parts():
            end = start + count
            V[start:end] = block @ (B[start:end] - panel[:, :start] @ V[:start])
        return V

    def _weigh(self, V: Array) -> Array:
        W = V.copy()
        for start, count, panel, block in reversed(self._parts()):
            end = start + count
            W[start:end] = block.T @ W[start:end]
            W[:start] -= panel[:, :start].T @ W[start:end]
        return W.T

    def solve(self, B: ArrayLike) -> Array:
        right = np.asarray(B, dtype=np.float64)
        white = self._whiten(right.reshape(self.n, -1))
        return self._weigh(white).T.reshape(right.shape)

    # -- predicting --------------------------------------------------------------------------------------------------

    def mean(self, Z: ArrayLike) -> Array:
        points = np.asarray(Z, dtype=np.float64)
        k = len(points)
        if k and k <= self.n and np.array_equal(points[0], self._X[0]) and np.array_equal(points, self._X[:k]):
            at_measured: Array = self._y[:k] - self._noise[:k] * self.alpha[:k]  # K α = y − c − Σ α
            return at_measured
        return np.concatenate([super(PanelPosterior, self).mean(part) for part in _chunks(points)])

    def var(self, Z: ArrayLike) -> Array:
        return np.concatenate([super(PanelPosterior, self).var(part) for part in _chunks(Z)])

    def predict(self, Z: ArrayLike) -> tuple[Array, Array]:
        parts = [super(PanelPosterior, self).predict(part) for part in _chunks(Z)]
        return np.concatenate([mean for mean, _ in parts]), np.concatenate([std for _, std in parts])

    # -- keeping -----------------------------------------------------------------------------------------------------

    def pop(self) -> None:
        if not self.n:
            raise ValueError("there is no measurement to forget")
        self.n -= 1

    def copy(self) -> Self:
        other = object.__new__(type(self))
        vars(other).update(vars(self))
        for name in ("_X", "_y", "_noise", "_white", "_pivots"):
            setattr(other, name, getattr(self, name).copy())
        other._panels, other._blocks, other._alphas = list(self._panels), list(self._blocks), dict(self._alphas)
        self._shared = other._shared = len(self._panels)
        return other


def _chunks(Z: ArrayLike) -> list[Array]:
    points = np.asarray(Z, dtype=np.float64)
    return [points[i : i + CHUNK] for i in range(0, max(len(points), 1), CHUNK)]
