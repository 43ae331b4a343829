"""Problems: functions whose maximum is known.

Every problem is **maximized**. The classical test functions are stated as minimizations in the literature; here each is
negated, so that ``branin()`` has the maximum −0.397887.

>>> problem = branin()
>>> round(problem.optimum, 6)
-0.397887
>>> problem(problem.optimizers).round(6)
array([-0.397887, -0.397887, -0.397887])
>>> problem.noisy(0.01).measure([0.0, 0.0], np.random.default_rng(0))
-55.5895...

References: Surjanovic & Bingham, Virtual Library of Simulation Experiments; Picheny et al. 2013 (Branin,
Goldstein-Price).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot.domain import Box, Candidates, Domain

__all__ = [
    "Problem",
    "ackley",
    "beale",
    "branin",
    "dixon_price",
    "forrester",
    "goldstein_price",
    "grid",
    "griewank",
    "hartmann3",
    "hartmann6",
    "levy",
    "michalewicz",
    "rastrigin",
    "rosenbrock",
    "shekel",
    "six_hump_camel",
    "sphere",
    "styblinski_tang",
    "tabulated",
]

Array = NDArray[np.float64]
Function = Callable[[Array], Array]


@dataclass(frozen=True)
class Problem:
    """A function to maximize, with its domain, its maximum and its noise.

    Parameters
    ----------
    name : str
        What plots call it.
    domain : Domain
        Where it is defined; points are raw.
    function : callable
        Noise-free values (n,) of points (n, d).
    optimum : float
        The maximum.
    optimizers : array
        Points that reach it, shape (k, d).
    noise : float or callable
        Variance of a measurement: a number, or variances (n,) of points (n, d).

    >>> square = Problem("square", Box([(-1.0, 1.0)]), lambda X: -(X[:, 0] ** 2), 0.0, np.zeros((1, 1)))
    >>> square.regret([[0.5], [0.0]])
    array([0.25, 0.  ])
    """

    name: str
    domain: Domain
    function: Function
    optimum: float
    optimizers: Array
    noise: float | Function = 0.0

    def __call__(self, X: ArrayLike) -> Array:
        """Return the noise-free values (n,) at the rows of X (n, d)."""
        return self.function(np.atleast_2d(np.asarray(X, dtype=np.float64)))

    def regret(self, X: ArrayLike) -> Array:
        """Return how far the values at the rows of X (n, d) are below the maximum, shape (n,)."""
        return self.optimum - self(X)

    def measure(self, x: ArrayLike, rng: np.random.Generator) -> float:
        """Return one measurement at a point; draws one normal number whatever the noise, so that noise is paired."""
        X = np.atleast_2d(np.asarray(x, dtype=np.float64))
        variance = self.noise(X)[0] if callable(self.noise) else self.noise
        return float(self.function(X)[0] + np.sqrt(variance) * rng.standard_normal())

    def noisy(self, noise: float | Function) -> Problem:
        """Return the same problem with another noise variance: a number, or a function of the points (n, d)."""
        if not callable(noise) and not noise >= 0:
            raise ValueError(f"noise is a variance, got {noise!r}")
        return replace(self, noise=noise)

    def on_grid(self, counts: int | Sequence[int]) -> Problem:
        """Return the problem on a regular grid of a box; the maximum is the one over the grid."""
        if not isinstance(self.domain, Box):
            raise TypeError(f"only a problem on a Box can be put on a grid, not on {self.domain!r}")
        points = grid(self.domain.bounds, counts)
        return replace(tabulated(self.name, points, self(points)), noise=self.noise)


def grid(bounds: ArrayLike, counts: int | Sequence[int]) -> Array:
    """Return the points of a regular grid with its borders, shape (∏ counts, d), last coordinate fastest.

    >>> grid([(0.0, 1.0), (0.0, 2.0)], (2, 3)).tolist()
    [[0.0, 0.0], [0.0, 1.0], [0.0, 2.0], [1.0, 0.0], [1.0, 1.0], [1.0, 2.0]]
    """
    box = np.atleast_2d(np.asarray(bounds, dtype=np.float64))
    sizes = [counts] * len(box) if isinstance(counts, int) else list(counts)
    if len(sizes) != len(box) or min(sizes) < 1:
        raise ValueError(f"need one count of at least 1 per coordinate, got {counts!r} for {len(box)}")
    axes = [np.linspace(low, high, n) for (low, high), n in zip(box, sizes, strict=True)]
    return np.stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")], axis=1)


def tabulated(name: str, points: ArrayLike, values: ArrayLike, noise: float | Function = 0.0) -> Problem:
    """Return a problem on a finite set of points with known values.

    >>> tabulated("steps", [[1.0], [2.0], [3.0]], [0.5, 0.9, 0.2]).optimizers
    array([[2.]])
    """
    domain = Candidates(points)
    table = np.array(values, dtype=np.float64)
    if table.shape != (domain.points.shape[0],) or not np.isfinite(table).all():
        raise ValueError(f"need one finite value for each of the {domain.points.shape[0]} points, got {table.shape}")
    best = np.flatnonzero(table == table.max())
    return Problem(name, domain, lambda X: table[domain.indices_of(X)], float(table.max()), domain.points[best], noise)


def _problem(name: str, bounds: ArrayLike, function: Function, optimizers: ArrayLike) -> Problem:
    points = np.atleast_2d(np.asarray(optimizers, dtype=np.float64))
    return Problem(name, Box(bounds), function, float(function(points).max()), points)


def _dimension(d: int, least: int = 1) -> int:
    if d < least:
        raise ValueError(f"this function needs at least {least} dimensions, got {d}")
    return d


def branin() -> Problem:
    """Branin (Branin-Hoo) on [−5, 10] × [0, 15]: three equal maxima of −0.397887.

    >>> len(branin().optimizers)
    3
    """

    def f(X: Array) -> Array:
        x, y = X.T
        valley = y - 5.1 / (4 * np.pi**2) * x**2 + 5 / np.pi * x - 6
        return -(valley**2 + 10 * (1 - 1 / (8 * np.pi)) * np.cos(x) + 10)

    return _problem("Branin", [(-5, 10), (0, 15)], f, [(-np.pi, 12.275), (np.pi, 2.275), (3 * np.pi, 2.475)])


_HARTMANN_WEIGHTS = np.array([1.0, 1.2, 3.0, 3.2])


def _hartmann(A: Array, P: Array) -> Function:
    return lambda X: np.exp(-np.einsum("kj,nkj->nk", A, (X[:, None, :] - P) ** 2)) @ _HARTMANN_WEIGHTS


def hartmann3() -> Problem:
    """Hartmann in 3 dimensions on the unit cube: maximum 3.86278.

    >>> round(hartmann3().optimum, 5)
    3.86278
    """
    A = np.array([[3, 10, 30], [0.1, 10, 35], [3, 10, 30], [0.1, 10, 35]])
    P = np.array([[3689, 1170, 2673], [4699, 4387, 7470], [1091, 8732, 5547], [381, 5743, 8828]]) * 1e-4
    return _problem("Hartmann-3", [(0, 1)] * 3, _hartmann(A, P), (0.114588871, 0.555648896, 0.852546984))


def hartmann6() -> Problem:
    """Hartmann in 6 dimensions on the unit cube: maximum 3.32237, and a local one of 3.2032.

    >>> round(hartmann6().optimum, 5)
    3.32237
    """
    A = np.array(
        [[10, 3, 17, 3.5, 1.7, 8], [0.05, 10, 17, 0.1, 8, 14], [3, 3.5, 1.7, 10, 17, 8], [17, 8, 0.05, 10, 0.1, 14]]
    )
    P = 1e-4 * np.array(
        [
            [1312, 1696, 5569, 124, 8283, 5886],
            [2329, 4135, 8307, 3736, 1004, 9991],
            [2348, 1451, 3522, 2883, 3047, 6650],
            [4047, 8828, 8732, 5743, 1091, 381],
        ]
    )
    best = (0.20168952, 0.15001069, 0.47687398, 0.27533243, 0.31165162, 0.65730054)
    return _problem("Hartmann-6", [(0, 1)] * 6, _hartmann(A, P), best)


def ackley(d: int = 2) -> Problem:
    """Ackley on [−32.768, 32.768]^d: a needle of height 0 in an almost flat, rippled plain.

    >>> abs(ackley(5).optimum) < 1e-12
    True
    """

    def f(X: Array) -> Array:
        far = np.exp(-0.2 * np.sqrt((X**2).mean(axis=1)))
        return 20 * far + np.exp(np.cos(2 * np.pi * X).mean(axis=1)) - 20 - np.e

    return _problem(f"Ackley-{d}", [(-32.768, 32.768)] * _dimension(d), f, np.zeros(d))


def levy(d: int = 4) -> Problem:
    """Levy on [−10, 10]^d: maximum 0 at (1, ..., 1).

    >>> abs(levy(4).optimum) < 1e-12
    True
    """

    def f(X: Array) -> Array:
        w = 1 + (X - 1) / 4
        middle = ((w[:, :-1] - 1) ** 2 * (1 + 10 * np.sin(np.pi * w[:, :-1] + 1) ** 2)).sum(axis=1)
        last = (w[:, -1] - 1) ** 2 * (1 + np.sin(2 * np.pi * w[:, -1]) ** 2)
        return -(np.sin(np.pi * w[:, 0]) ** 2 + middle + last)

    return _problem(f"Levy-{d}", [(-10, 10)] * _dimension(d), f, np.ones(d))


def rosenbrock(d: int = 2) -> Problem:
    """Rosenbrock on [−5, 10]^d: maximum 0 at (1, ..., 1), along a curved ridge.

    >>> rosenbrock(3).optimum == 0
    True
    """

    def f(X: Array) -> Array:
        return -(100 * (X[:, 1:] - X[:, :-1] ** 2) ** 2 + (X[:, :-1] - 1) ** 2).sum(axis=1)

    return _problem(f"Rosenbrock-{d}", [(-5, 10)] * _dimension(d, 2), f, np.ones(d))


def griewank(d: int = 2) -> Problem:
    """Griewank on [−600, 600]^d: maximum 0 at the origin, among thousands of ripples.

    >>> griewank(5).optimum == 0
    True
    """

    def f(X: Array) -> Array:
        return np.cos(X / np.sqrt(np.arange(1, d + 1))).prod(axis=1) - (X**2).sum(axis=1) / 4000 - 1

    return _problem(f"Griewank-{d}", [(-600, 600)] * _dimension(d), f, np.zeros(d))


def michalewicz(d: int = 2) -> Problem:
    """Michalewicz (steepness 10) on [0, π]^d: maximum 1.8013 (d = 2), 4.6877 (5), 9.6602 (10).

    It is a sum over coordinates, so that the maximum is found one coordinate at a time.

    >>> [round(michalewicz(d).optimum, 4) for d in (2, 5, 10)]
    [1.8013, 4.6877, 9.6602]
    """

    def f(X: Array) -> Array:
        return (np.sin(X) * np.sin(np.arange(1, d + 1) * X**2 / np.pi) ** 20).sum(axis=1)

    best = [_michalewicz_axis(i) for i in range(1, _dimension(d) + 1)]
    return _problem(f"Michalewicz-{d}", [(0, np.pi)] * d, f, best)


@cache
def _michalewicz_axis(i: int) -> float:
    from scipy.optimize import minimize_scalar  # slow to import, and only needed here

    def f(x: Array) -> Array:
        return np.sin(x) * np.sin(i * x**2 / np.pi) ** 20

    x = np.linspace(0, np.pi, 20001)
    near = x[f(x).argmax()]
    found = minimize_scalar(
        lambda v: -float(f(v)), bounds=(near - 2e-4, near + 2e-4), method="bounded", options={"xatol": 1e-12}
    )
    return float(found.x)


def goldstein_price() -> Problem:
    """Goldstein-Price on [−2, 2]²: maximum −3 at (0, −1); values range over six orders of magnitude.

    >>> round(goldstein_price().optimum, 9)
    -3.0
    """

    def f(X: Array) -> Array:
        x, y = X.T
        a = 1 + (x + y + 1) ** 2 * (19 - 14 * x + 3 * x**2 - 14 * y + 6 * x * y + 3 * y**2)
        b = 30 + (2 * x - 3 * y) ** 2 * (18 - 32 * x + 12 * x**2 + 48 * y - 36 * x * y + 27 * y**2)
        return -a * b

    return _problem("Goldstein-Price", [(-2, 2)] * 2, f, (0, -1))


def six_hump_camel() -> Problem:
    """Six-hump camel on [−3, 3] × [−2, 2]: two equal maxima of 1.031628.

    >>> round(six_hump_camel().optimum, 6)
    1.031628
    """

    def f(X: Array) -> Array:
        x, y = X.T
        return -((4 - 2.1 * x**2 + x**4 / 3) * x**2 + x * y + (4 * y**2 - 4) * y**2)

    best = (0.08984201, -0.71265640)
    return _problem("Six-hump camel", [(-3, 3), (-2, 2)], f, [best, (-best[0], -best[1])])


def styblinski_tang(d: int = 2) -> Problem:
    """Styblinski-Tang on [−5, 5]^d: maximum 39.16617 d.

    >>> round(styblinski_tang(2).optimum, 4)
    78.3323
    """

    def f(X: Array) -> Array:
        return -0.5 * (X**4 - 16 * X**2 + 5 * X).sum(axis=1)

    return _problem(f"Styblinski-Tang-{d}", [(-5, 5)] * _dimension(d), f, np.full(d, -2.903534027771178))


def rastrigin(d: int = 2) -> Problem:
    """Rastrigin on [−5.12, 5.12]^d: maximum 0 at the origin, on a lattice of local maxima.

    >>> rastrigin(3).optimum == 0
    True
    """

    def f(X: Array) -> Array:
        return -(10 + X**2 - 10 * np.cos(2 * np.pi * X)).sum(axis=1)

    return _problem(f"Rastrigin-{d}", [(-5.12, 5.12)] * _dimension(d), f, np.zeros(d))


def sphere(d: int = 2) -> Problem:
    """The negated squared norm on [−5.12, 5.12]^d.

    >>> sphere(2)([[3.0, 4.0]])
    array([-25.])
    """
    return _problem(f"Sphere-{d}", [(-5.12, 5.12)] * _dimension(d), lambda X: -(X**2).sum(axis=1), np.zeros(d))


def dixon_price(d: int = 4) -> Problem:
    """Dixon-Price on [−10, 10]^d: maximum 0 at xᵢ = 2^(−(2^i − 2)/2^i).

    >>> abs(dixon_price(6).optimum) < 1e-12
    True
    """
    i = np.arange(1, _dimension(d, 2) + 1)

    def f(X: Array) -> Array:
        return -((X[:, 0] - 1) ** 2 + (i[1:] * (2 * X[:, 1:] ** 2 - X[:, :-1]) ** 2).sum(axis=1))

    return _problem(f"Dixon-Price-{d}", [(-10, 10)] * d, f, 2.0 ** (2.0 ** (1 - i) - 1))


def beale() -> Problem:
    """Beale on [−4.5, 4.5]²: maximum 0 at (3, 0.5), with sharp corners.

    >>> beale().optimum == 0
    True
    """

    def f(X: Array) -> Array:
        x, y = X.T
        return -((1.5 - x + x * y) ** 2 + (2.25 - x + x * y**2) ** 2 + (2.625 - x + x * y**3) ** 2)

    return _problem("Beale", [(-4.5, 4.5)] * 2, f, (3, 0.5))


def shekel() -> Problem:
    """Shekel with ten peaks on [0, 10]⁴: maximum 10.5364 near (4, 4, 4, 4).

    >>> round(shekel().optimum, 4)
    10.5364
    """
    odd = [4, 1, 8, 6, 3, 2, 5, 8, 6, 7]
    even = [4, 1, 8, 6, 7, 9, 3, 1, 2, 3.6]
    centers = np.array([odd, even, odd, even]).T
    width = 0.1 * np.array([1, 2, 2, 4, 4, 6, 3, 7, 5, 5])

    def f(X: Array) -> Array:
        return (1 / (width + ((X[:, None, :] - centers) ** 2).sum(axis=2))).sum(axis=1)

    return _problem("Shekel-10", [(0, 10)] * 4, f, (4.000746869, 3.99950948, 4.000746869, 3.99950948))


def forrester() -> Problem:
    """Forrester et al. on [0, 1]: maximum 6.02074 at 0.757249.

    >>> round(forrester().optimum, 5)
    6.02074
    """

    def f(X: Array) -> Array:
        return -((6 * X[:, 0] - 2) ** 2) * np.sin(12 * X[:, 0] - 4)

    return _problem("Forrester", [(0, 1)], f, 0.757248758)
