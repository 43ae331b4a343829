"""Logistic support selection: which variables a classifier needs.

With the log-likelihood l of a logistic (two classes) or softmax (more) model without intercept and a ridge λ,

    f(S) = max_{w supported on S} [l(w) − (λ/2)‖w‖²] − l(0).

An element is one variable, with one coefficient (two classes) or one per class. f is monotone, not submodular in
general; l is λ-strongly concave with the ridge, which bounds the ratios of :mod:`surefoot.select.ratios`. The ridge is
also *necessary*: a few dozen variables often separate the classes, and the maximum without a ridge is then at infinity.

>>> rng = np.random.default_rng(0)
>>> X = rng.normal(size=(80, 5))
>>> f = LogisticSupport(X, X[:, 2] - X[:, 4] > 0)
>>> state = f.state()
>>> for _ in range(2):
...     state.add(state.best()[0])
>>> sorted(state.selected)
[2, 4]

All gains are computed at once. From the optimum w on S, candidate i starts with the profile Newton step: with the
gradient gᵢ and the curvature hᵢ = H_ii − H_iS H_SS⁻¹ H_Si it is worth about gᵢᵀhᵢ⁻¹gᵢ/2. Further steps keep H (the
chord method), so that one iteration for *all* candidates is a few matrix products and one solve; those that have not
converged after some iterations are refitted one by one by Newton's method. ``refit=T`` stops after the first step for
all but the T best.

References: Elenberg, Khanna, Dimakis & Negahban 2018; Bogunovic, Zhao & Cevher 2018, section 5.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import cho_factor, cho_solve

from surefoot.select.objective import Array, Indices, SetFunction, State, as_elements, as_matrix

__all__ = ["LogisticSupport"]

# Relative accuracy of a maximum: the decrement of a step, which bounds what is left, over the scale −l(0).
ACCURACY = 1e-13
# Chord steps before a candidate is refitted by Newton's method, and Newton steps before giving up.
CHORDS, STEPS = 40, 100
# Logits held at once, in numbers.
CHUNK = 2**21


class LogisticSupport(SetFunction):
    """The log-likelihood that a ridge-penalized logistic or softmax model gains from the chosen columns.

    Parameters
    ----------
    X : array of shape (rows, n)
        One column per variable, used as they are: scale them first. Constant columns are refused.
    y : array of shape (rows,)
        Labels: any values, at least two different ones.
    ridge : float
        λ > 0, on the summed log-likelihood.
    refit : int, optional
        Compute only this many gains exactly, those with the best first Newton steps; the others are returned as these
        estimates, no larger than the smallest exact one. Default: all exactly.

    Attributes
    ----------
    classes : array of shape (c,)
        The different labels, in order.

    >>> f = LogisticSupport(np.array([[-1.0], [1.0], [2.0]]), ["no", "yes", "yes"])
    >>> bool(0.0 < f.value([0]) < 3.0 * np.log(2.0))
    True
    """

    def __init__(self, X: ArrayLike, y: ArrayLike, *, ridge: float = 1.0, refit: int | None = None) -> None:
        self.X: Array = as_matrix(np.asarray(X), "X")
        labels = np.asarray(y)
        if labels.shape != (len(self.X),):
            raise ValueError(f"y must have shape ({len(self.X)},), got {labels.shape}")
        if labels.dtype.kind == "f" and not np.isfinite(labels).all():
            raise ValueError("y must be finite")
        self.classes, codes = np.unique(labels, return_inverse=True)
        if len(self.classes) < 2:
            raise ValueError(f"y must have at least two classes, got only {self.classes[0]!r}")
        if not (math.isfinite(ridge) and ridge > 0):
            raise ValueError(f"ridge must be finite and above 0 (the classes may be separable), got {ridge!r}")
        if refit is not None and refit < 1:
            raise ValueError(f"refit must be at least 1, got {refit!r}")
        flat = np.flatnonzero(np.ptp(self.X, axis=0) == 0)
        if flat.size:
            raise ValueError(f"column {flat[0]} of X is constant ({flat.size} such): leave it out")
        super().__init__(self.X.shape[1], submodular=None)
        self.ridge, self.refit = float(ridge), refit
        binary = len(self.classes) == 2
        self.logits = 1 if binary else len(self.classes)  # coefficients per variable
        self._Y = codes[:, None].astype(np.float64) if binary else np.eye(self.logits)[codes]
        self._zero = len(self.X) * math.log(len(self.classes))  # −l(0)

    def _likelihood(self, Z: Array) -> tuple[Array, Array]:
        """Return l and the probabilities for logits of shape (rows, logits, ...)."""
        Y = self._Y.reshape(self._Y.shape + (1,) * (Z.ndim - 2))
        if self.logits == 1:
            P = 0.5 * (1.0 + np.tanh(0.5 * Z))
            return (Y * Z - np.logaddexp(0.0, Z)).sum(axis=(0, 1)), P
        top = Z.max(axis=1, keepdims=True)
        P = np.exp(Z - top)
        total = P.sum(axis=1, keepdims=True)
        return (Y * Z).sum(axis=(0, 1)) - (top + np.log(total)).sum(axis=(0, 1)), P / total

    def _curvature(self, P: Array, left: Array, right: Array) -> Array:
        """Return −∂²l between the coefficients of two groups of columns, shape (a, logits, b, logits)."""
        c = self.logits
        made = np.empty((left.shape[1], c, right.shape[1], c))
        for i in range(c):  # pairs of classes, not of candidates
            for j in range(c):
                weight = P[:, i] * ((i == j) - P[:, j])
                made[:, i, :, j] = (left * weight[:, None]).T @ right
        return made

    def _fit(self, S: Indices, start: Array) -> tuple[Array, float]:
        """Maximize over the coefficients of S, shape (|S|, logits), by Newton's method with step halving."""
        X, w, lam = self.X[:, S], start.copy(), self.ridge

        def height(w: Array) -> tuple[float, Array]:
            likelihood, P = self._likelihood(X @ w)
            return float(likelihood) - 0.5 * lam * float((w * w).sum()), P

        best, P = height(w)
        for _ in range(STEPS):
            gradient = X.T @ (self._Y - P) - lam * w
            H = self._curvature(P, X, X).reshape(w.size, w.size)
            step = cho_solve(cho_factor(H + lam * np.eye(w.size)), gradient.ravel()).reshape(w.shape)
            decrement = float((gradient * step).sum())
            if decrement <= ACCURACY * self._zero:
                break
            size = 1.0
            value, P = height(w + step)
            while value < best + 0.25 * size * decrement and size > 1e-10:
                size *= 0.5
                value, P = height(w + size * step)
            w, best = w + size * step, max(best, value)
        return w, best + self._zero

    def coefficients(self, S: ArrayLike | Iterable[int]) -> Array:
        """Return the coefficients of the model on the columns S, shape (len(S), 1), or (len(S), c) for c > 2 classes.

        >>> f = LogisticSupport(np.array([[-1.0], [1.0], [2.0]]), ["no", "yes", "yes"])
        >>> f.coefficients([0]).shape
        (1, 1)
        """
        chosen = as_elements(S, self.n)
        return self._fit(chosen, np.zeros((len(chosen), self.logits)))[0]

    def _value(self, S: Indices) -> float:
        return self._fit(S, np.zeros((len(S), self.logits)))[1]

    def _empty(self) -> State:
        return _LogisticState(self)


class _LogisticState(State):
    """The optimum on S and, per candidate, the optimum on S and the candidate."""

    def __init__(self, function: LogisticSupport) -> None:
        super().__init__(function)
        self._w = np.zeros((0, function.logits))
        self._now = 0.0

    @property
    def value(self) -> float:
        return self._now

    def _gains(self, candidates: Indices) -> Array:
        function: LogisticSupport = self.function
        refit, count = function.refit, len(candidates)
        if refit is None or refit >= count:
            return self._chord(candidates, CHORDS)
        gains = self._chord(candidates, 0)
        exact = np.argpartition(-gains, refit)[:refit]
        exact_gains = self._chord(candidates[exact], CHORDS)
        gains = np.asarray(np.minimum(gains, exact_gains.min()))
        gains[exact] = exact_gains
        return gains

    def _curved(self) -> tuple[Array, Array, Array]:
        """Return the columns of S, the probabilities at its optimum, and H_SS there with the ridge."""
        function: LogisticSupport = self.function
        XS = function.X[:, self.selected]
        _, P = function._likelihood(XS @ self._w)
        H = function._curvature(P, XS, XS).reshape(self._w.size, self._w.size)
        return XS, P, H + function.ridge * np.eye(self._w.size)

    def _chord(self, candidates: Indices, iterations: int) -> Array:
        """Return all gains by chord steps; with no iterations, the estimates of the first step."""
        function: LogisticSupport = self.function
        XS, P, H = self._curved()
        factor = cho_factor(H) if len(H) else None
        gains = np.empty(len(candidates))
        step = max(1, CHUNK // (len(XS) * function.logits))
        for first in range(0, len(candidates), step):
            part = candidates[first : first + step]
            gains[first : first + step] = self._chord_some(part, XS, P, factor, iterations)
        return gains

    def _chord_some(self, part: Indices, XS: Array, P: Array, factor: Any, iterations: int) -> Array:
        function: LogisticSupport = self.function
        Xc, c, size, p = function.X[:, part], function.logits, self._w.size, len(part)
        cross = function._curvature(P, XS, Xc).reshape(size, p * c)
        back = (cho_solve(factor, cross) if size else cross).reshape(size, p, c)  # H_SS⁻¹ H_Sc
        own = np.stack([[(P[:, i] * ((i == j) - P[:, j])) @ (Xc * Xc) for j in range(c)] for i in range(c)])
        schur = own.transpose(2, 0, 1) - np.einsum("kpi,kpj->pij", cross.reshape(size, p, c), back)
        schur += function.ridge * np.eye(c)

        def logits(w: Array) -> Array:
            shared = np.tensordot(XS, w[:size].reshape(-1, c, p), axes=1)
            return np.asarray(shared + Xc[:, None, :] * w[None, size:, :])

        def slopes(residual: Array) -> Array:
            shared = np.tensordot(XS.T, residual, axes=1).reshape(size, p)
            return np.concatenate([shared, np.einsum("np,ncp->cp", Xc, residual)])

        def step(g: Array) -> Array:
            reduced = g[size:].T - np.einsum("kpi,kp->pi", back, g[:size])
            mine = np.linalg.solve(schur, reduced[:, :, None])[:, :, 0]
            shared = (cho_solve(factor, g[:size]) if size else g[:size]) - np.einsum("kpi,pi->kp", back, mine)
            return np.concatenate([shared, mine.T])

        start = np.concatenate([np.repeat(self._w.reshape(size, 1), p, axis=1), np.zeros((c, p))])
        if iterations == 0:
            g = slopes(function._Y[:, :, None] - np.repeat(P[:, :, None], p, axis=2)) - function.ridge * start
            return np.asarray(0.5 * (g * step(g)).sum(axis=0))
        heights, unfinished = self._ascend(start, logits, slopes, step, iterations)
        gains = heights - self._now
        for place in np.flatnonzero(unfinished & ~self.chosen[part]):
            S = np.array([*self.selected, part[place]], dtype=np.int64)
            gains[place] = function._fit(S, np.vstack([self._w, np.zeros((1, c))]))[1] - self._now
        return gains

    def _ascend(
        self,
        w: Array,
        logits: Callable[[Array], Array],
        slopes: Callable[[Array], Array],
        step: Callable[[Array], Array],
        iterations: int,
    ) -> tuple[Array, NDArray[np.bool_]]:
        """Maximize p problems at once, the columns of w, by steps of fixed curvature; say which are unfinished."""
        function: LogisticSupport = self.function
        heights = np.full(w.shape[1], -math.inf)
        unfinished = np.ones(w.shape[1], dtype=bool)
        for _ in range(iterations):
            likelihood, P = function._likelihood(logits(w))
            value = likelihood - 0.5 * function.ridge * (w * w).sum(axis=0) + function._zero
            if (value < heights - 1e-9 * function._zero).any():
                break  # the curvature is larger elsewhere: Newton's method will do it
            heights = np.maximum(heights, value)
            g = slopes(function._Y[:, :, None] - P) - function.ridge * w
            change = step(g)
            unfinished = (g * change).sum(axis=0) > ACCURACY * function._zero
            if not unfinished.any():
                break
            w = w + change
        return heights, unfinished

    def _add(self, v: int) -> None:
        S = np.array([*self.selected, v], dtype=np.int64)
        self._w, self._now = self.function._fit(S, np.vstack([self._w, np.zeros((1, self.function.logits))]))

    def _losses(self) -> Array:
        """Climb from the optimum on S to that without e, for all e at once, by steps that keep e's coefficients 0."""
        function: LogisticSupport = self.function
        XS, _, H = self._curved()
        count, c, size = len(self.selected), function.logits, self._w.size
        B = cho_solve(cho_factor(H), np.eye(size))
        places = np.arange(count)
        own = B.reshape(count, c, count, c)[places, :, places, :]  # B_ee, (count, c, c)
        blocks = B.reshape(size, count, c)  # B_·e

        def keep_out(change: Array) -> Array:
            """Move along B_·e until the coefficients of e are 0: the best way to be rid of them."""
            gone = change.reshape(count, c, count)[places, :, places]  # (count, c)
            return np.asarray(change - np.einsum("kei,ei->ke", blocks, np.linalg.solve(own, gone[:, :, None])[:, :, 0]))

        def logits(w: Array) -> Array:
            return np.tensordot(XS, w.reshape(count, c, count), axes=1)

        def slopes(residual: Array) -> Array:
            return np.tensordot(XS.T, residual, axes=1).reshape(size, count)

        start = keep_out(np.repeat(self._w.reshape(size, 1), count, axis=1))
        heights, unfinished = self._ascend(start, logits, slopes, lambda g: keep_out(B @ g), CHORDS)
        S = np.array(self.selected, dtype=np.int64)
        for e in np.flatnonzero(unfinished):
            heights[e] = function._fit(np.delete(S, e), np.delete(self._w, e, axis=0))[1] if count > 1 else 0.0
        return self._now - heights

    def _remove(self, e: int, place: int) -> None:
        S, start = np.delete(np.array(self.selected), place), np.delete(self._w, place, axis=0)
        self._w, self._now = self.function._fit(S, start) if S.size else (start, 0.0)
