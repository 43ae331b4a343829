"""Quadratic reductions: how much of something is explained by a few chosen variables.

Two objectives have one shape. With a symmetric positive (semi-)definite matrix A over the n elements and a matrix W of
m rows,

    f(S) = trace(W_S A_S⁻¹ W_Sᵀ),   W_S the columns and A_S the rows and columns of S.

- :class:`RSquared`: A = XᵀX + ridge, W = yᵀX; f is the fall of the residual sum of squares when y is regressed on the
  columns S of X.
- :class:`VarianceReduction`: A = K + noise, W = K(M, ·); f is the fall of a Gaussian process's posterior variance,
  summed over target points M, when the points S are measured.

Such an f is monotone, in general not submodular: two measurements can be worth more together than apart.

>>> X = np.array([[1.0, 1.0], [0.0, 0.1], [0.0, 0.0]])
>>> f = RSquared(X, [0.0, 1.0, 0.0], standardize=False)
>>> f.singletons().round(3), round(f.value([0, 1]), 3)
(array([0.   , 0.01]), 1.0)

Forwards, S is held as the rows ℓ of a pivoted Cholesky factorization. With the residuals C = W − Σ uℓᵀ and d =
diag(A) − Σ ℓ²,

    gain(i) = Σₓ Cₓᵢ²/dᵢ,   adding j: ℓ = (A_j − Σ ℓ_t ℓ_t[j])/√d_j, u = C_j/√d_j, C ← C − uℓᵀ, d ← d − ℓ²,

O(n (m + |S|)) for all n gains. Backwards, with B = A_S⁻¹ and H = W_S B,

    loss(e) = Σₓ Hₓₑ²/Bₑₑ,   removing e: B ← B − B_e B_eᵀ/Bₑₑ, H ← H − H_e B_eᵀ/Bₑₑ, without row and column e.

The type of the matrices, NumPy or torch, decides where gains are computed; losses concern few elements, and are
computed by NumPy.

References: Das & Kempe 2011 (subset selection by R²); Bogunovic, Zhao & Cevher 2018, eqs. (7.17) and (7.43) of the
thesis (variance reduction).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import ArrayLike
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from surefoot.select.objective import Array, Indices, SetFunction, State, as_matrix, to_host

if TYPE_CHECKING:
    from surefoot.belief.posterior import Posterior

__all__ = ["RSquared", "VarianceReduction"]

# A variable with less than this fraction of its own square left is a combination of the chosen ones: gain 0.
DEPENDENT = 1e-10
# A downdated inverse is made anew after this many removals.
REFRESH = 25


class Factored(SetFunction):
    """A set function of the blocks A_S of a positive definite matrix.

    Subclasses set ``_diag``, the diagonal of A, and ``_W`` of shape (m, n).
    """

    _W: Any
    _diag: Any

    @abstractmethod
    def _column(self, j: int) -> Any:
        """Return A[:, j] in a new array."""

    @abstractmethod
    def _block(self, S: Indices) -> Array:
        """Return A_S, on the host."""

    def _targets(self, S: Indices) -> Array:
        """Return W_S, on the host."""
        return to_host(self._W[:, S.tolist()])

    def _empty(self) -> State:
        return _QuadraticState(self)

    def _value(self, S: Indices) -> float:
        A, W = self._block(S), self._targets(S)
        scale = np.sqrt(np.diag(A))
        values, vectors = np.linalg.eigh(A / np.outer(scale, scale))
        kept = values > DEPENDENT * values[-1]
        return float((((W / scale) @ vectors[:, kept]) ** 2 / values[kept]).sum())


class OverCovariance(Factored):
    """A set function of the blocks of A = covariance + noise."""

    def __init__(self, covariance: Any, noise: ArrayLike, *, submodular: bool | None) -> None:
        K = as_matrix(covariance, "covariance")
        xp, n = array_namespace(K), int(K.shape[0])
        if K.shape[1] != n:
            raise ValueError(f"covariance must be square, got {tuple(K.shape)}")
        if float(xp.max(xp.abs(K - K.T))) > 1e-8 * float(xp.max(xp.abs(K))):
            raise ValueError("covariance must be symmetric")
        diagonal = to_host(xp.linalg.diagonal(K))
        if (diagonal < 0).any():
            raise ValueError(f"covariance must have a diagonal of variances, got {diagonal.min()}")
        given = np.asarray(to_host(noise), dtype=np.float64)
        if given.shape not in ((), (n,)):
            raise ValueError(f"noise must be a number or have shape ({n},), got {given.shape}")
        variances = np.broadcast_to(given, (n,)).copy()
        if not (np.isfinite(variances).all() and (variances > 0).all()):
            raise ValueError(f"noise is a variance, finite and above 0, got {variances.min()}")
        super().__init__(n, submodular=submodular)
        self.noise, self._K = variances, K
        self._diag = xp.asarray(diagonal + variances, device=K.device)

    def _column(self, j: int) -> Any:
        column = array_namespace(self._K).asarray(self._K[:, j], copy=True)
        column[j] += float(self.noise[j])
        return column

    def _block(self, S: Indices) -> Array:
        index = S.tolist()
        return np.asarray(to_host(self._K[index][:, index]) + np.diag(self.noise[S]))


class FactoredState(State):
    """Rows of the factorization forwards, the inverse of a block backwards; each made when first needed.

    Subclasses turn residuals into gains, and inverses into losses.
    """

    def __init__(self, function: Factored) -> None:
        super().__init__(function)
        self._now = 0.0
        self._xp = array_namespace(function._diag)
        self._L: Any = self._xp.empty((16, function.n), dtype=self._xp.float64, device=function._diag.device)
        self._rank: int | None = 0  # rows of L in use; None: removals have spoiled them
        self._C: Any = self._xp.asarray(function._W, copy=True)
        self._d: Any = self._xp.asarray(function._diag, copy=True)
        self._inverse: Array | None = None
        self._H: Array | None = None
        self._age = 0

    @property
    def value(self) -> float:
        return self._now

    @abstractmethod
    def _score(self, C: Any, d: Any, elements: Any) -> Any:
        """Return the gains of some elements from their residuals."""

    @abstractmethod
    def _cost(self, places: slice) -> Array:
        """Return the losses from the inverse."""

    def _forward(self, elements: list[int]) -> None:
        """Take elements into the factorization, one row each."""
        function: Factored = self.function
        if self._rank is None:
            self._C, self._d = (self._xp.asarray(part, copy=True) for part in (function._W, function._diag))
            self._rank, elements = 0, [*self.selected, *elements]
        for j in elements:
            left, rank = float(self._d[j]), self._rank
            if left <= DEPENDENT * float(function._diag[j]):
                continue  # a combination of those in the set: it adds nothing
            row = function._column(j)
            row -= self._L[:rank, j] @ self._L[:rank, :]
            row /= math.sqrt(left)
            self._C -= (self._C[:, j] / math.sqrt(left))[:, None] * row[None, :]
            self._d -= row * row
            if rank == len(self._L):  # the room doubles when it is full
                self._L = self._xp.concat([self._L, self._xp.empty_like(self._L)], axis=0)
            self._L[rank, :] = row
            self._rank = rank + 1

    def _gains(self, candidates: Indices) -> Array:
        self._forward([])
        every = len(candidates) == self.function.n  # usual, and spares a copy of C
        part: Any = slice(None) if every else candidates.tolist()
        d, own = self._d[part], self.function._diag[part]
        dependent = d <= DEPENDENT * own
        scores = self._score(self._C[:, part], self._xp.where(dependent, own, d), part)
        gains = to_host(self._xp.where(dependent, self._xp.zeros_like(d), scores)).astype(np.float64)
        return gains[candidates] if every else gains

    def _add(self, v: int) -> None:
        self._now += max(float(self._gains(np.array([v]))[0]), 0.0)
        self._forward([v])
        self._inverse = self._H = None

    def _backward(self) -> bool:
        """Have the inverse of A_S, unless it is singular; say whether it is there."""
        if self._inverse is not None and self._age < REFRESH:
            return True
        S = np.array(self.selected, dtype=np.int64)
        A = self.function._block(S)
        try:
            factor = cho_factor(A, lower=True)
        except LinAlgError:
            return False
        if (np.diag(factor[0]) ** 2 <= DEPENDENT * np.diag(A)).any():
            return False
        self._inverse = cho_solve(factor, np.eye(len(S)))
        self._H = self.function._targets(S) @ self._inverse
        self._age = 0
        return True

    def _losses(self) -> Array:
        if self._backward():
            return self._cost(slice(None))
        # Dependent variables: each of these sets on its own, through its eigenvalues.
        S = np.array(self.selected, dtype=np.int64)
        rest = [np.delete(S, place) for place in range(len(S))]
        kept = np.array([self.function._value(part) if part.size else 0.0 for part in rest])
        return np.asarray(self.function._value(S) - kept)

    def _remove(self, e: int, place: int) -> None:
        if self._backward():
            self._now -= float(self._cost(slice(place, place + 1))[0])
            B, H = self._inverse, self._H
            keep = np.arange(len(self.selected)) != place
            ratio = B[place, keep] / B[place, place]  # type: ignore[index]
            self._inverse = B[np.ix_(keep, keep)] - np.outer(B[keep, place], ratio)  # type: ignore[index]
            self._H = H[:, keep] - np.outer(H[:, place], ratio)  # type: ignore[index]
            self._age += 1
        else:
            rest = np.array(self.selected[:place] + self.selected[place + 1 :], dtype=np.int64)
            self._now, self._inverse = self.function._value(rest) if rest.size else 0.0, None
        self._rank = None


class _QuadraticState(FactoredState):
    """Gains Σ C²/d and losses Σ H²/B."""

    def _score(self, C: Any, d: Any, elements: Any) -> Any:
        return self._xp.sum(C * C, axis=0) / d  # Σₓ Cₓᵢ²/dᵢ: (7.43) for one element

    def _cost(self, places: slice) -> Array:
        H, B = self._H, self._inverse
        # Σₓ Hₓₑ²/Bₑₑ
        costs: Array = (H[:, places] ** 2).sum(axis=0) / np.diag(B)[places]  # type: ignore[index, arg-type]
        return costs

    def _remove(self, e: int, place: int) -> None:
        super()._remove(e, place)
        if self._inverse is not None and self._H is not None:  # a sum of products instead of a difference of values
            rest = np.array(self.selected[:place] + self.selected[place + 1 :], dtype=np.int64)
            self._now = float((self._H * self.function._targets(rest)).sum()) if rest.size else 0.0


class _SupportState(_QuadraticState):
    """Also knows the slopes of the regression it stands for."""

    def slopes(self) -> Array:
        """Return |xᵢᵀ residual| for every column, shape (n,): what orthogonal matching pursuit goes by."""
        self._forward([])
        slopes: Array = np.abs(to_host(self._C[0, :]))
        return slopes


class RSquared(Factored):
    """The share of the variation of y that a regression on the chosen columns explains.

    f(S) = (‖y‖² − min_w ‖y − X_S w‖² − ridge ‖w‖²)/‖y‖², with y and the columns centered: the usual R².

    Parameters
    ----------
    X : array of shape (rows, n)
        One column per variable; NumPy or torch.
    y : array of shape (rows,)
        What to explain.
    ridge : float
        Penalty on the squared coefficients of the (standardized) columns, at least 0.
    standardize : bool
        Center y and the columns, and scale the columns to ‖x‖² = rows. False: use the numbers as they are.

    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(50, 4))
    >>> f = RSquared(X, X[:, 1] - 2.0 * X[:, 3])
    >>> f.state().best()[0], round(f.value([1, 3]), 6)
    (3, 1.0)
    """

    def __init__(self, X: Any, y: Any, *, ridge: float = 0.0, standardize: bool = True) -> None:
        X = as_matrix(X, "X")
        xp = array_namespace(X)
        target = xp.astype(xp.asarray(y, device=X.device), xp.float64)
        if target.shape != (X.shape[0],):
            raise ValueError(f"y must have shape ({X.shape[0]},), got {tuple(target.shape)}")
        if not bool(xp.all(xp.isfinite(target))):
            raise ValueError("y must be finite")
        if not (math.isfinite(ridge) and ridge >= 0):
            raise ValueError(f"ridge must be finite and at least 0, got {ridge!r}")
        super().__init__(int(X.shape[1]), submodular=None)
        size = to_host(xp.max(xp.abs(X), axis=0))
        if standardize:
            X, target = X - xp.mean(X, axis=0), target - xp.mean(target)
        norms = xp.sum(X * X, axis=0)
        flat = np.flatnonzero(to_host(norms) <= (1e-14 * size) ** 2 * X.shape[0])
        if flat.size:
            raise ValueError(f"column {flat[0]} of X is constant ({flat.size} such): leave it out")
        if standardize:
            X = X * xp.sqrt(X.shape[0] / norms)
        total = float(xp.sum(target * target))
        if total <= 0:
            raise ValueError("y is constant: there is nothing to explain")
        self.ridge, self._X = float(ridge), X
        self._diag = xp.sum(X * X, axis=0) + self.ridge
        self._W = (target / math.sqrt(total))[None, :] @ X
        self._y = target / math.sqrt(total)

    def _column(self, j: int) -> Any:
        column = self._X.T @ self._X[:, j]
        column[j] += self.ridge
        return column

    def _block(self, S: Indices) -> Array:
        chosen = to_host(self._X[:, S.tolist()])
        return np.asarray(chosen.T @ chosen + self.ridge * np.eye(len(S)))

    def _empty(self) -> State:
        return _SupportState(self)

    def _value(self, S: Indices) -> float:
        """Regress, by the singular values of the columns themselves: the ridge is one row more for each."""
        chosen, target = to_host(self._X[:, S.tolist()]), to_host(self._y)
        if self.ridge:
            chosen = np.vstack([chosen, math.sqrt(self.ridge) * np.eye(len(S))])
            target = np.concatenate([target, np.zeros(len(S))])
        weights = np.linalg.lstsq(chosen, target, rcond=math.sqrt(DEPENDENT))[0]
        residual = target - chosen @ weights
        return float(target @ target - residual @ residual)


class VarianceReduction(OverCovariance):
    """How much measuring the chosen points lowers a Gaussian process's variance at target points.

    f(S) = Σ_{x ∈ M} (k(x, x) − σ²(x | S)), eq. (7.17).

    Parameters
    ----------
    covariance : array of shape (n, n)
        Between the candidates, before these measurements; NumPy or torch.
    noise : float or array of shape (n,)
        Variance of a measurement (of each candidate), above 0.
    targets : array of int, or array of shape (m, n), optional
        Which candidates are the targets M, or the covariance of other target points with the candidates. Default: all.

    >>> f = VarianceReduction(np.ones((5, 5)), noise=1.0, targets=[0])   # five times the same point
    >>> [round(f.value(range(k)), 3) for k in (1, 2, 5)]
    [0.5, 0.667, 0.833]
    """

    def __init__(self, covariance: Any, *, noise: ArrayLike, targets: Any = None) -> None:
        super().__init__(covariance, noise, submodular=None)
        K, n = self._K, self.n
        if targets is None:
            self._W = K
        elif getattr(targets, "ndim", 1) == 2:
            self._W = as_matrix(targets, "targets")
            if self._W.shape[1] != n:
                raise ValueError(f"targets must have {n} columns, one per candidate, got {tuple(self._W.shape)}")
        else:
            index = np.asarray(targets)
            if index.ndim != 1 or index.dtype.kind not in "iu" or index.size == 0:
                raise TypeError(f"targets must be indices or a matrix, got {targets!r}")
            if index.min() < 0 or index.max() >= n:
                raise ValueError(f"targets must lie between 0 and {n - 1}, got {index.min()} to {index.max()}")
            self._W = K[index.tolist()]

    @classmethod
    def from_posterior(
        cls, posterior: Posterior, candidates: ArrayLike, targets: ArrayLike | None = None, noise: ArrayLike = np.nan
    ) -> Self:
        """Build it from a posterior and points: what further measurements would tell.

        Parameters
        ----------
        posterior : Posterior
            Of the process given the data so far.
        candidates, targets : array of shape (n, d) and (m, d)
            Where to measure and where to know; targets default to the candidates.
        noise : float or array of shape (n,)
            Variance of a measurement; NaN: that of the process.

        >>> from surefoot.belief import GP, SE
        >>> posterior = GP(SE(lengthscale=0.5), noise=0.1).condition([[0.0]], [1.0])
        >>> VarianceReduction.from_posterior(posterior, [[0.0], [2.0]]).state().best()[0]
        1
        """
        X = np.asarray(candidates, dtype=np.float64)
        given = np.asarray(noise, dtype=np.float64)
        variances = np.where(np.isnan(given), posterior.gp.noise, given)
        K = posterior.cov(X, X)
        other = None if targets is None else posterior.cov(np.asarray(targets, dtype=np.float64), X)
        return cls((K + K.T) / 2.0, noise=variances, targets=other)
