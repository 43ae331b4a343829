"""Functions drawn from a posterior, to be evaluated anywhere and maximized continuously.

A joint draw at m points costs O(m³) and says nothing between them. Matheron's rule draws the *function*: take a prior
draw g, cheap with random Fourier features, and correct it so that it agrees with the measurements,

    f(x) = c + g(x) + k(x, X) (K + Σ)⁻¹ (y − c − g(X) − ε),    g = φ(·)ᵀw,  w ~ N(0, I),  ε ~ N(0, Σ).

The correction uses the exact kernel, so the features only have to describe the prior: far fewer are needed than in
weight space, and certainty near the measurements is not lost.

>>> import numpy as np
>>> from surefoot.belief import GP, SE
>>> posterior = GP(SE(lengthscale=0.3), noise=1e-6).condition([[0.2], [0.7]], [1.0, -1.0])
>>> paths = sample_paths(posterior, count=3, rng=np.random.default_rng(0))
>>> paths(np.array([[0.2], [0.7]])).round(1)
array([[ 1., -1.],
       [ 1., -1.],
       [ 1., -1.]])

References: Wilson, Borovitskiy, Terenin, Mostowsky & Deisenroth 2020, section 3 (Matheron's rule, decoupled bases).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot.belief.fourier import FourierFeatures
from surefoot.belief.listed import ListedPosterior
from surefoot.belief.mixture import members_of
from surefoot.belief.noisy_inputs import WhiteNoise, smooth_and_white

if TYPE_CHECKING:
    from surefoot.belief.posterior import Posterior
    from surefoot.belief.protocol import Belief

__all__ = ["Path", "PathSamples", "sample_path", "sample_paths"]

Array = NDArray[np.float64]


def sample_paths(
    posterior: Posterior,
    count: int,
    rng: np.random.Generator,
    features: int = 1024,
    *,
    dimension: int | None = None,
) -> PathSamples:
    """Draw functions from a posterior.

    Parameters
    ----------
    posterior : Posterior
        What is known; its kernel must have a spectral density. From a mixture each function follows one member.
    count : int
        How many functions.
    rng : numpy.random.Generator
        Draws the features, the weights and the noise.
    features : int
        Number of Fourier features behind the prior draws, even.
    dimension : int, optional
        Columns of a point; only needed before the first measurement.

    Returns
    -------
    PathSamples
        The functions. They stay as they are when the posterior changes.

    >>> from surefoot.belief import GP
    >>> sample_paths(GP().condition(), 4, np.random.default_rng(0), dimension=2)(np.zeros((7, 2))).shape
    (4, 7)
    """
    if count < 1:
        raise ValueError(f"count must be at least 1, got {count!r}")
    if dimension is None and posterior.n == 0:
        raise ValueError("before the first measurement the posterior does not know the dimension: give dimension=")
    if posterior.n and dimension not in (None, posterior.X.shape[1]):
        raise ValueError(f"dimension is {dimension!r} but the measured points have {posterior.X.shape[1]} columns")
    columns = dimension or posterior.X.shape[1]
    members = members_of(posterior)
    owner = rng.integers(len(members), size=count) if len(members) > 1 else np.zeros(count, dtype=np.intp)
    parts = []
    for i in np.unique(owner):
        mine = np.flatnonzero(owner == i)
        parts.append((mine, _Draws(members[i], mine.size, rng, features, columns)))
    return PathSamples(parts)


def sample_path(
    belief: Belief, rng: np.random.Generator, features: int = 1024, *, dimension: int | None = None
) -> Callable[[Any], Array]:
    """Draw one function from a belief that is not kept at all candidates, over the points that it names.

    >>> from surefoot.belief import GP
    >>> listed = ListedPosterior(GP().condition(), np.zeros((5, 1)))
    >>> sample_path(listed, np.random.default_rng(0), dimension=1)([0, 3]).shape
    (2,)
    """
    if isinstance(belief, ListedPosterior):
        path, points = sample_paths(belief.posterior, 1, rng, features, dimension=dimension)[0], belief.points
        return lambda at: path(points[at])
    return sample_paths(cast("Posterior", belief), 1, rng, features, dimension=dimension)[0]


class PathSamples:
    """Functions drawn independently from a posterior; made by :func:`sample_paths`.

    Calling it evaluates all functions at the rows of a matrix; ``paths[i]`` is one function, a :class:`Path`.

    >>> from surefoot.belief import GP, Matern
    >>> posterior = GP(Matern(2.5), noise=0.01).condition([[0.0, 0.0]], [1.0])
    >>> paths = sample_paths(posterior, 4, np.random.default_rng(0))
    >>> values, slopes = paths.gradient(np.zeros((7, 2)))
    >>> len(paths), values.shape, slopes.shape
    (4, (4, 7), (4, 7, 2))
    """

    def __init__(self, parts: list[tuple[NDArray[np.intp], _Draws]]) -> None:
        self._parts = parts
        self._paths = {int(i): Path(draws, column) for mine, draws in parts for column, i in enumerate(mine)}

    def __len__(self) -> int:
        return len(self._paths)

    def __getitem__(self, index: int) -> Path:
        if not -len(self) <= index < len(self):
            raise IndexError(f"there are {len(self)} functions, got index {index!r}")
        return self._paths[index % len(self)]

    def __iter__(self) -> Iterator[Path]:
        return (self._paths[i] for i in range(len(self)))

    def __call__(self, Z: ArrayLike) -> Array:
        """Return the values of all functions at the rows of Z (m, e), shape (count, m)."""
        points = np.asarray(Z, dtype=np.float64)
        values = np.empty((len(self), len(points)))
        for mine, draws in self._parts:
            values[mine] = draws(points)
        return values

    def gradient(self, Z: ArrayLike) -> tuple[Array, Array]:
        """Return the values (count, m) of all functions at the rows of Z, and their gradients (count, m, e)."""
        points = np.asarray(Z, dtype=np.float64)
        values, slopes = np.empty((len(self), len(points))), np.empty((len(self), *points.shape))
        for mine, draws in self._parts:
            values[mine], slopes[mine] = draws.gradient(points)
        return values, slopes


class Path:
    """One drawn function, with what a maximizer asks for: values at many points, and gradients.

    >>> from surefoot.belief import GP, SE
    >>> posterior = GP(SE(), noise=1e-6).condition([[0.0]], [2.0])
    >>> path = sample_paths(posterior, 1, np.random.default_rng(0))[0]
    >>> path([[0.0]]).round(1)
    array([2.])
    >>> values, slopes = path.gradient([[0.0], [1.0]])
    >>> values.shape, slopes.shape
    ((2,), (2, 1))
    """

    def __init__(self, draws: _Draws, column: int) -> None:
        self._draws, self._column = draws, slice(column, column + 1)

    def __call__(self, Z: ArrayLike) -> Array:
        """Return the values at the rows of Z (m, e), shape (m,)."""
        values: Array = self._draws(np.asarray(Z, dtype=np.float64), self._column)[0]
        return values

    def gradient(self, Z: ArrayLike) -> tuple[Array, Array]:
        """Return the values (m,) at the rows of Z and the gradients (m, e)."""
        values, slopes = self._draws.gradient(np.asarray(Z, dtype=np.float64), self._column)
        return values[0], slopes[0]


class _Draws:
    """Functions drawn from one Gaussian posterior; they share the features and differ in weights and correction."""

    def __init__(
        self, posterior: Posterior, count: int, rng: np.random.Generator, features: int, dimension: int
    ) -> None:
        gp, n = posterior.gp, posterior.n
        self.kernel, self.mean = gp.kernel, gp.mean
        self.X = posterior.X.copy() if n else np.empty((0, dimension))
        smooth, own = smooth_and_white(gp.kernel, dimension)
        self.features = FourierFeatures(smooth, dimension, features, rng)
        self.weights = rng.standard_normal((count, features))
        noise = rng.standard_normal((count, n)) * np.sqrt(posterior.noise)
        self.white = WhiteNoise(own, count, rng) if own else None
        residual = posterior.y - gp.mean - self.weights @ self.features(self.X).T - noise
        if self.white is not None:
            residual -= self.white(self.X)
        self.update: Array = posterior.solve(residual.T).T if n else residual

    def __call__(self, Z: Array, which: slice = slice(None)) -> Array:
        values: Array = self.mean + self.weights[which] @ self.features(Z).T
        values += self.update[which] @ self.kernel(self.X, Z)
        if self.white is not None:
            values += self.white(Z, which)
        return values

    def gradient(self, Z: Array, which: slice = slice(None)) -> tuple[Array, Array]:
        weights, update = self.weights[which], self.update[which]
        phi, pull = self.features.pull_input(Z)
        K, pull_kernel = self.kernel.pull_input(Z, self.X)  # evaluated once for all functions
        slopes: Array = pull(weights[:, None, :])
        slopes += np.stack([pull_kernel(np.broadcast_to(row, K.shape)) for row in update])
        values: Array = self.mean + weights @ phi.T + update @ K.T
        if self.white is not None:
            values += self.white(Z, which)  # flat almost everywhere: it has no slope
        return values, slopes
