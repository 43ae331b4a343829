"""Outliers: measurements that the others do not support.

One at a time, the measurement is set aside whose loss the others mind least, and the number k that is set aside in the
end is the one of highest evidence. With A the measurements that are left, S = K + Σ their covariance up to the factor
v, P = S⁻¹ − S⁻¹11ᵀS⁻¹/1ᵀS⁻¹1, which profiles the mean out, and q = zᵀPz, the evidence of A is

    L(A) = −½ |A| (log 2πv + 1) − ½ log det S,   v = q/|A|.                                                         (1)

What leaving out one more measurement i does is known without another factorization: with a = Pz,

    eᵢ = aᵢ/Pᵢᵢ,   q − aᵢ²/Pᵢᵢ,   log det S + log (S⁻¹)ᵢᵢ                                                            (2)

are its distance from what the others predict, and the new q and determinant. Set aside it is a draw of a normal
distribution of its own, as wide as it is far away (at least as wide as they predict), which costs

    ½ (log 2πeᵢ² + 1) + PENALTY                                                                                     (3)

nats: outliers are rare. A path of single steps is followed for a while even where it costs, because two outliers hide
each other. What is set aside must also be far from the prediction, :data:`FAR` standard deviations if it is bad,
:data:`FAR_BEST` if it is good (a narrow peak is what an optimizer looks for), and out of the range of the other values
by their standard deviation. A value that a second measurement of the same point confirms is no outlier, and two bad
ones side by side are none either: they are a region where runs go wrong.

In the belief an outlier keeps its row, with what the others predict as its value and the noise variance eᵢ²: that it
was measured is known, what it said is not believed.

References: Ament et al. 2024, "Robust Gaussian processes via relevance pursuit", for a noise variance of its own and
the path (their algorithm 1, from the other end); the costs are ours.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Setting", "apart", "distances", "pursue"]

Array = NDArray[np.float64]
Rows = NDArray[np.intp]

PENALTY = 6.0  # nats for each outlier: one measurement in 400
FAR, FAR_BEST = 10.0, 20.0  # standard deviations
FEWEST = 10  # measurements; among fewer, a wall of a deep valley looks like an outlier
SHARE = 6  # at most every so manieth measurement is an outlier
PATIENCE = 3  # steps of the path without a gain, and one more for every sixteen measurements


@dataclass(frozen=True)
class Setting:
    """Some measured points under one length-scale and one noise: what equations 1 and 2 need.

    Attributes
    ----------
    S, inverse, P : array of shape (n, n)
        Covariance of the measurements up to a factor, its inverse, and that with the mean profiled out.
    logdet : float
        log det S.

    >>> round(Setting.of(np.eye(3), 0.5).logdet, 6)  # 3 log 1.5
    1.216395
    """

    S: Array
    inverse: Array
    P: Array
    logdet: float

    @classmethod
    def of(cls, K: Array, noise: float) -> Setting:
        """Return the setting of a kernel matrix with ones on its diagonal and a noise variance."""
        S = K + noise * np.eye(len(K))
        L = np.linalg.cholesky(S)
        white = np.linalg.inv(L)
        inverse = white.T @ white
        return cls(S, inverse, centered(inverse), 2.0 * float(np.log(L.diagonal()).sum()))

    def evidence(self, z: Array) -> Array:
        """Return equation 1 with all measurements, for values of shape (..., n)."""
        return level(z.shape[-1], ((z @ self.P) * z).sum(axis=-1), self.logdet)


def apart(y: Array) -> bool:
    """Tell whether values at an end are so far from all others that they could be outliers.

    >>> apart(np.arange(20.0)), apart(np.append(np.arange(20.0), 60.0))
    (False, True)
    """
    ordered, most = np.sort(y), len(y) // SHARE
    if len(y) < FEWEST:
        return False
    steps = np.diff(ordered)
    # Without a third of them, those at the ends, a normal sample is 0.6 times as wide.
    return bool(max(steps[:most].max(), steps[-most:].max()) > 1.3 * ordered[most:-most].std())


def level(n: int, q: Array | float, logdet: Array | float) -> Array:
    """Return equation 1."""
    return np.asarray(-0.5 * n * (np.log(2.0 * np.pi * np.maximum(q, 1e-300) / n) + 1.0) - 0.5 * logdet)


def centered(inverse: Array) -> Array:
    """Return P: the inverse with the constant taken out."""
    one = inverse.sum(axis=0)
    total = one.sum()
    return inverse - np.multiply.outer(one, one) / total if total > 0 else inverse


def pursue(setting: Setting, z: Array) -> tuple[float, Rows]:
    """Return the highest evidence on the path, and which measurements are set aside there.

    >>> points = np.linspace(0.0, 1.0, 12)
    >>> setting = Setting.of(np.exp(-8.0 * (points[:, None] - points) ** 2), 1e-4)
    >>> values = np.sin(4.0 * points)
    >>> values[5] = 50.0
    >>> pursue(setting, values)[1]
    array([5])
    """
    n, patience = len(z), PATIENCE + len(z) // 16
    left, inverse, logdet = np.ones(n, dtype=bool), setting.inverse.copy(), setting.logdet
    path: list[int] = []
    z, spent = z - np.median(z), 0.0
    best, count = float(setting.evidence(z)), 0
    while len(path) < n // SHARE and len(path) - count < patience:
        P = centered(inverse) if path else setting.P
        a, size = P @ z, int(left.sum())
        d = np.where(left, P.diagonal(), 1.0)
        own = np.where(left, inverse.diagonal(), 1.0)
        q = float(z @ a)
        rest = np.maximum(q - a * a / d, 1e-12 * q)
        after = level(size - 1, rest, logdet + np.log(own))  # (2)
        wide = np.maximum((a / d) ** 2, rest / (size - 1) / d)
        cost = 0.5 * (np.log(2.0 * np.pi * np.maximum(wide, 1e-300)) + 1.0) + PENALTY  # (3)
        gains = np.where(left, after - cost, -np.inf)
        i = int(np.argmax(gains))
        if not math.isfinite(gains[i]):
            break
        path.append(i)
        spent += float(cost[i])
        height = float(after[i]) - spent
        left[i] = False
        logdet += math.log(own[i])
        column = inverse[:, i].copy()
        inverse -= np.multiply.outer(column, column) / column[i]
        inverse[i], inverse[:, i], z = 0.0, 0.0, np.where(left, z, 0.0)
        if height > best:
            best, count = height, len(path)
    return best, np.array(sorted(path[:count]), dtype=np.intp)


def distances(setting: Setting, z: Array, aside: Rows) -> tuple[Array, Array]:
    """Return what the other measurements predict where some are set aside, and its standard deviation, noise included.

    >>> mean, std = distances(Setting.of(np.eye(3), 0.0), np.array([1.0, 3.0, 9.0]), np.array([2]))
    >>> mean.round(6), std.round(3)
    (array([2.]), array([1.225]))
    """
    left = np.setdiff1d(np.arange(len(z)), aside)
    inverse = np.linalg.inv(setting.S[np.ix_(left, left)])
    one = inverse.sum(axis=0)
    mean = float(one @ z[left]) / float(one.sum())
    rest = z[left] - mean
    v = float(rest @ inverse @ rest) / len(left)
    cross = setting.S[np.ix_(aside, left)]
    share = setting.S[aside, aside] - np.einsum("ij,jk,ik->i", cross, inverse, cross)
    share = share + (1.0 - cross @ one) ** 2 / one.sum()  # the mean is estimated
    return mean + cross @ inverse @ rest, np.sqrt(v * np.maximum(share, 1e-12))
