"""The published transformation of PO-GP-UCB: a secret random projection, which does NOT protect as claimed.

Curator's algorithm (Kharkovskii, Dai & Low 2020, Algorithm 1; lines are those of Algorithm 2 of Kharkovskii's thesis
2020), with rows scaled to norm at most 25:

* line 2, center: X ← X − mean; line 3, draw M (d × r) of standard normals; line 4, thin SVD X = U Σ Vᵀ,
* line 5, ω = 16 √(r ln(2/δ)) ln(16 r/δ)/ε,
* lines 6 and 7, if σ_min(X) ≥ ω: Z = X M/√r,
* lines 9 and 10, else lift: Z = U √(Σ² + ω² I) Vᵀ M/√r.

>>> round(omega(10, math.exp(1.1), 1e-5), 1)
976.1

**Why there is no guarantee.** Every column of Z lies in the column space of the centered data, of dimension at most d.
If n > d + 1 another table generically has another column space, so two neighbors have output distributions on different
subspaces: they are told apart with certainty, at every ε. Whoever knows d + 1 rows and their places solves one linear
system and has *all* rows (:func:`surefoot.private.audit.reconstruct`). The lift does not help: with n > d it acts
inside the same subspace. Where the claim could hold (n ≤ d + 1) the composition over the r columns, the data-dependent
branch and the data-dependent choices before it remain. :meth:`PublishedProjection.guarantee` lists what applies.

The mechanism is here to reproduce the published results. It refuses n > d + 1 unless ``accept_no_guarantee=True``.

The paper prints ω with the root over r only; the proof, and the statements about which r satisfy the condition, need
the root over r *and* the logarithm, as in the thesis.
"""

from __future__ import annotations

import math
from typing import Any, Literal, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot.errors import SurefootError
from surefoot.private.guarantee import Failure, Guarantee
from surefoot.private.mechanisms import ONE_ROW, Mechanism, PublicOptions
from surefoot.private.scaling import table

__all__ = [
    "PublishedProjection",
    "composed_epsilon",
    "largest_dimension",
    "lifted",
    "omega",
    "singular_values",
    "threshold_epsilon",
]

Array = NDArray[np.float64]
Lift = Literal["threshold", "never", "always"]
Lifting = Literal["root", "sum"]
COLLINEAR = 1e-10  # singular values below this share of the largest are rounding


def omega(dimension: int, epsilon: float, delta: float) -> float:
    """Return the threshold ω = 16 √(r ln(2/δ)) ln(16 r/δ)/ε that the smallest singular value must reach.

    >>> [round(omega(r, math.exp(e), 1e-5), 1) for r, e in ((15, 1.1), (10, 0.9), (15, 1.3), (20, 1.3))]
    [1224.7, 1192.2, 1002.7, 1177.4]
    """
    _check(dimension, epsilon, delta)
    # Line 5
    return 16.0 * math.sqrt(dimension * math.log(2.0 / delta)) * math.log(16.0 * dimension / delta) / epsilon


def threshold_epsilon(dimension: int, delta: float, smallest: float) -> float:
    """Return ε*, above which the release does not depend on ε at all: ω(ε*) = σ_min.

    >>> round(math.log(threshold_epsilon(10, 1e-5, 1030.88)), 2)
    1.05
    """
    if not smallest > 0:
        raise ValueError(f"the smallest singular value must be positive, got {smallest!r}")
    return omega(dimension, 1.0, delta) / smallest


def largest_dimension(smallest: float, epsilon: float, delta: float) -> int:
    """Return the largest r with ω(r) ≤ σ_min, the authors' choice; 0 if there is none.

    σ_min is a property of the data: choosing r by it is one more thing that no guarantee covers.

    >>> [largest_dimension(1030.88, math.exp(e), 1e-5) for e in (1.1, 1.3, 1.5)]
    [11, 15, 22]
    """
    _check(1, epsilon, delta)
    if not 0.0 <= smallest < math.inf:
        raise ValueError(f"the smallest singular value must be finite and not negative, got {smallest!r}")
    if omega(1, epsilon, delta) > smallest:
        return 0
    low, high = 1, 2
    while omega(high, epsilon, delta) <= smallest:  # ω grows with r
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if omega(middle, epsilon, delta) <= smallest else (low, middle)
    return low


def composed_epsilon(dimension: int, epsilon: float, delta: float) -> float:
    """Return what advanced composition gives for r columns of ε₀ = ε/√(4 r ln(2/δ)): ε/√2 + r ε₀ (e^ε₀ − 1).

    The proof needs this to be at most ε. It is not for several of the published settings.

    >>> round(composed_epsilon(10, math.exp(1.1), 1e-5), 2), round(composed_epsilon(15, math.exp(2.9), 1e-5), 1)
    (2.32, 22.5)
    """
    _check(dimension, epsilon, delta)
    each = epsilon / math.sqrt(4.0 * dimension * math.log(2.0 / delta))
    return epsilon / math.sqrt(2.0) + dimension * each * math.expm1(each)


def singular_values(rows: ArrayLike) -> Array:
    """Return the min(n, d) singular values of the centered rows, the largest first.

    >>> singular_values([[0.0, 0.0], [2.0, 0.0], [0.0, 1.0], [2.0, 1.0]])
    array([2., 1.])
    """
    X = np.asarray(rows, dtype=np.float64)
    values: Array = np.linalg.svd(X - X.mean(axis=0), compute_uv=False)
    return values


def lifted(centered: ArrayLike, threshold: float, *, lifting: Lifting = "root") -> Array:
    """Return U √(Σ² + ω²) Vᵀ: the same singular vectors, every singular value raised.

    ``lifting="sum"`` is Σ + ω, which the authors' released code computes.

    >>> lifted([[3.0], [-3.0]], 4.0).round(3)
    array([[ 4.123],
           [-4.123]])
    """
    X = np.asarray(centered, dtype=np.float64)
    U, sigma, Vt = np.linalg.svd(X, full_matrices=False)  # line 4
    n, d = X.shape
    if n > d + 1 and sigma[-1] <= COLLINEAR * sigma[0]:
        raise ValueError(
            "some features are constant or linear combinations of others: lifting would blow rounding errors up; "
            "leave those features out"
        )
    raised = np.hypot(sigma, threshold) if lifting == "root" else sigma + threshold
    result: Array = (U * raised) @ Vt  # line 9
    return result


class PublishedProjection(Mechanism):
    """The published random projection, for reproduction: it has no privacy guarantee.

    Parameters
    ----------
    epsilon, delta : float
        What the authors' threshold is computed from.
    dimension : int
        r, columns of the release.
    lift : {"threshold", "never", "always"}
        Lift below the threshold as published, or never, or always.
    lifting : {"root", "sum"}
        √(σ² + ω²) as published, or σ + ω as in the authors' code.
    normalize : bool
        Center and scale by the data's own mean and largest norm, to ``radius``, as in the published experiments; this
        depends on the data.
    accept_no_guarantee : bool
        Say that you know; without it more than d + 1 rows are refused.
    **options
        ``bounds``, ``center``, ``scale``, ``radius``, ``neighbor``, ``noise``.

    >>> mechanism = PublishedProjection(epsilon=3.0, delta=1e-5, dimension=10)
    >>> mechanism.transform(np.eye(5, 2))
    Traceback (most recent call last):
    ...
    surefoot.errors.SurefootError: PublishedProjection protects nothing for 5 rows of 2 features (more than d + 1):
    ...
    """

    def __init__(
        self,
        *,
        epsilon: float,
        delta: float,
        dimension: int,
        lift: Lift = "threshold",
        lifting: Lifting = "root",
        normalize: bool = False,
        accept_no_guarantee: bool = False,
        **options: Unpack[PublicOptions],
    ) -> None:
        super().__init__(epsilon=epsilon, delta=delta, **options)
        if lift not in ("threshold", "never", "always"):
            raise ValueError(f"lift must be 'threshold', 'never' or 'always', got {lift!r}")
        if lifting not in ("root", "sum"):
            raise ValueError(f"lifting must be 'root' or 'sum', got {lifting!r}")
        self.omega = omega(dimension, epsilon, delta)
        self.dimension = int(dimension)
        self.lift, self.lifting = lift, lifting
        self.normalize, self.accept_no_guarantee = normalize, accept_no_guarantee

    def project(self, rows: ArrayLike, M: ArrayLike) -> Array:
        """Return Z for scaled rows (n, d) and a given projection M (d, r): lines 2 to 10 but for the draw.

        Several projections (..., d, r) give as many releases at once.

        >>> PublishedProjection(epsilon=1e9, delta=0.1, dimension=1).project([[0.0], [2.0]], [[3.0]])
        array([[-3.],
               [ 3.]])
        """
        X = np.asarray(rows, dtype=np.float64)
        if self.normalize:
            X = X - X.mean(axis=0)
            largest = float(np.linalg.norm(X, axis=1).max())
            if not largest > 0.0:
                raise ValueError("all rows are equal: there is nothing to scale by their largest norm")
            X = X * (self.preprocessing.radius / largest)
        X = X - X.mean(axis=0)  # line 2
        lift = self.lift == "always" or (self.lift == "threshold" and singular_values(X)[-1] < self.omega)  # line 6
        if lift:
            X = lifted(X, self.omega, lifting=self.lifting)
        Z: Array = X @ np.asarray(M, dtype=np.float64) / math.sqrt(self.dimension)  # lines 7 and 10
        return Z

    def transform(self, data: ArrayLike) -> Array:
        if self.normalize:
            return self._randomize((table(data) - self.preprocessing.center) / self.preprocessing.scale)
        return super().transform(data)

    def _randomize(self, rows: Array) -> Array:
        n, d = rows.shape
        if n > d + 1 and not self.accept_no_guarantee:
            raise SurefootError(
                f"{self.name} protects nothing for {n} rows of {d} features (more than d + 1): anyone who knows "
                f"{d + 1} rows recovers all of them; use GaussianRelease, or say accept_no_guarantee=True to reproduce "
                "published results"
            )
        return self.project(rows, self._noise.normal((d, self.dimension)))  # line 3: M

    def event(self, rows: int, features: int) -> None:
        return None

    def guarantee(self, rows: int, features: int) -> Guarantee:
        failures = []
        if rows > features + 1:
            failures.append(
                Failure(
                    "rank",
                    f"with n = {rows} > d + 1 = {features + 1} the release spans the columns of the centered data: "
                    f"neighbors are told apart with certainty, and {features + 1} known rows reveal all others",
                )
            )
        else:
            failures.append(
                Failure(
                    "unproved", "the published proof treats the case n <= d + 1, but its last steps are not verified"
                )
            )
        composed = composed_epsilon(self.dimension, self.epsilon, self.delta)
        if composed > self.epsilon:
            failures.append(
                Failure(
                    "composition", f"advanced composition over the columns gives epsilon = {composed:.4g}, not less"
                )
            )
        if self.lift == "threshold":
            failures.append(
                Failure("branch", "whether rows are lifted depends on the data, and neighbors may fall on either side")
            )
        elif self.lift == "never":
            failures.append(
                Failure("lift", "rows are never lifted, which the published proof needs below the threshold")
            )
        if self.lifting == "sum":
            failures.append(Failure("lifting", "singular values are raised by a sum, which no proof covers"))
        if self.normalize:
            failures.append(Failure("scale", "center and scale are taken from the data and not accounted for"))
        return Guarantee(
            mechanism=self.name,
            protects=f"nothing; meant was {ONE_ROW}",
            neighbor=self.neighbor,
            features=() if self.normalize else self.preprocessing.original(self.neighbor, features),
            claimed=(self.epsilon, self.delta),
            failures=tuple(failures),
        )

    def public(self) -> dict[str, Any]:
        # ω is a function of r, ε and δ; the singular values and the branch that was taken are not public.
        data = {**super().public(), "dimension": self.dimension, "lift": self.lift, "lifting": self.lifting}
        return {**data, "normalize": self.normalize}


def _check(dimension: int, epsilon: float, delta: float) -> None:
    if not isinstance(dimension, (int, np.integer)) or isinstance(dimension, bool) or dimension < 1:
        raise ValueError(f"dimension must be a positive whole number, got {dimension!r}")
    if not 0 < epsilon < math.inf:
        raise ValueError(f"epsilon must be positive and finite, got {epsilon!r}")
    if not 0 < delta < 1:
        raise ValueError(f"delta must lie strictly between 0 and 1, got {delta!r}")
