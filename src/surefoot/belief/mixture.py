"""MixturePosterior: the average over several hyper-parameters.

Each member is a posterior given the same measurements under its own hyper-parameters, all equally likely unless they
have weights. Mean and covariance are those of the mixture (moments matched), so the spread *between* the members widens
the standard deviation; :meth:`MixturePosterior.quantile` and :meth:`MixturePosterior.sample` are of the mixture itself.

>>> import numpy as np
>>> from surefoot.belief.gp import GP
>>> from surefoot.belief.kernels import SE
>>> members = (GP(SE(lengthscale=0.2)), GP(SE(lengthscale=0.8)))
>>> post = GP(members=members).condition([[0.0], [1.0]], [1.0, 2.0])
>>> bool(post.var([[0.5]])[0] >= np.mean([m.condition(post.X, post.y).var([[0.5]])[0] for m in members]))
True
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, ndtri

from surefoot.belief.posterior import Posterior

if TYPE_CHECKING:
    from surefoot.belief.gp import GP

__all__ = ["MixturePosterior", "members_of"]

Array = NDArray[np.float64]
HALVINGS = 60  # of the range in which a quantile lies


class MixturePosterior(Posterior):
    """A mixture of posteriors, with the interface of one; see the module's page.

    Parameters
    ----------
    gp : GP
        The GP that carries the ensemble.
    members : sequence of Posterior
        Posteriors given the same measurements.
    weights : array of shape (k,), optional
        How likely each of them is, up to a factor; None: all equally.

    >>> from surefoot.belief.gp import GP
    >>> post = MixturePosterior(GP(), [GP(mean=0.0).condition(), GP(mean=2.0).condition()])
    >>> post.predict([[0.0]])  # variance: 1 within, 1 between
    (array([1.]), array([1.41421356]))
    """

    def __init__(self, gp: GP, members: Sequence[Posterior], weights: ArrayLike | None = None) -> None:
        if not members:
            raise ValueError("a mixture needs at least one member")
        self.gp, self.members, self.weights = gp, list(members), None
        if weights is not None:
            shares = np.array(weights, dtype=np.float64)
            if shares.shape != (len(members),) or not (np.isfinite(shares).all() and (shares >= 0).all()):
                raise ValueError(f"weights must be finite, not negative and one for each member, got {weights!r}")
            if not shares.sum() > 0:
                raise ValueError("some member of a mixture must have a weight above zero")
            self.weights = shares / shares.sum()

    weights: Array | None

    def _average(self, values: Any) -> Any:
        """The average over the members, which are the first axis of the values."""
        return np.mean(values, axis=0) if self.weights is None else np.tensordot(self.weights, values, axes=1)

    @property
    def n(self) -> int:  # type: ignore[override]
        """Number of measurements."""
        return self.members[0].n

    @property
    def X(self) -> Array:
        return self.members[0].X

    @property
    def y(self) -> Array:
        return self.members[0].y

    @property
    def noise(self) -> Array:
        """Noise variances, averaged over the members, shape (n,)."""
        noise: Array = self._average([member.noise for member in self.members])
        return noise

    @property
    def chol(self) -> Array:
        raise TypeError("a mixture has no single Cholesky factor; use its members")

    @property
    def inverse(self) -> Array:
        raise TypeError("a mixture has no single Cholesky factor; use its members")

    @property
    def information_gain(self) -> float:
        """Mutual information, averaged over the members."""
        return float(self._average([member.information_gain for member in self.members]))

    @property
    def noise_level(self) -> float:
        """Noise variance of a measurement that does not bring its own, averaged over the members."""
        return float(self._average([member.gp.noise for member in self.members]))

    def prior_variance(self, E: ArrayLike) -> float:
        return float(self._average([member.prior_variance(E) for member in self.members]))

    def solve(self, B: ArrayLike) -> Array:
        raise TypeError("a mixture has no single covariance matrix; use its members")

    def mean(self, Z: ArrayLike) -> Array:
        mean: Array = self._average([member.mean(Z) for member in self.members])
        return mean

    def predict(self, Z: ArrayLike) -> tuple[Array, Array]:
        means, stds = self._predicted(Z)
        mean = self._average(means)
        return mean, np.sqrt(self._average(stds**2) + self._average((means - mean) ** 2))

    def _predicted(self, Z: ArrayLike) -> tuple[Array, Array]:
        """Means and standard deviations of all members, shape (k, m) each."""
        means, stds = np.array([member.predict(Z) for member in self.members]).swapaxes(0, 1)
        return means, stds

    def quantile(self, Z: ArrayLike, level: float, *, noise: float | None = None) -> Array:
        """Return the quantile of f at the rows of Z, or of a noisy measurement there, shape (m,).

        It is that of the mixture, not of the normal distribution with its moments: a few members that think otherwise
        move the tails further than they move the variance.

        Parameters
        ----------
        Z : array of shape (m, e)
        level : float
            Between 0 and 1.
        noise : float, optional
            Variance added to that of f; NaN: each member's own noise.

        >>> from surefoot.belief.gp import GP
        >>> members = [GP(mean=0.0).condition(), GP(mean=9.0).condition()]
        >>> MixturePosterior(GP(), members, [3.0, 1.0]).quantile([[0.0]], 0.75).round(1)
        array([4.6])
        """
        means, stds = self._predicted(Z)
        if noise is not None:
            extra = [member.gp.noise if np.isnan(noise) else noise for member in self.members]
            stds = np.sqrt(stds**2 + np.array(extra)[:, None])
        ends = means + ndtri(level) * stds
        low, high = ends.min(axis=0), ends.max(axis=0)  # the quantile lies between those of the members
        stds = np.maximum(stds, 1e-300)
        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            below = self._average(ndtr((middle - means) / stds)) < level
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        found: Array = 0.5 * (low + high)
        return found

    def var(self, Z: ArrayLike) -> Array:
        return self.predict(Z)[1] ** 2

    def cov(self, Z: ArrayLike, W: ArrayLike | None = None) -> Array:
        within = self._average([member.cov(Z, W) for member in self.members])
        left = np.array([member.mean(Z) for member in self.members])
        right = left if W is None else np.array([member.mean(W) for member in self.members])
        right = right - self._average(right)
        left = left - self._average(left)
        if self.weights is None:
            between = left.T @ right / len(self.members)
        else:
            between = (left * self.weights[:, None]).T @ right
        cov: Array = within + between
        return cov

    def gradient(self, Z: ArrayLike) -> tuple[Array, Array, Array, Array]:
        parts = [member.gradient(Z) for member in self.members]
        means, stds, dmeans, dstds = (np.array([part[i] for part in parts]) for i in range(4))
        mean, dmean = self._average(means), self._average(dmeans)
        std = np.sqrt(self._average(stds**2) + self._average((means - mean) ** 2))
        dvar = 2.0 * self._average(stds[..., None] * dstds + (means - mean)[..., None] * (dmeans - dmean))
        return mean, std, dmean, dvar / (2.0 * np.where(std > 0, std, 1.0))[:, None]

    def sample(self, Z: ArrayLike, count: int, rng: np.random.Generator) -> Array:
        draws: Array = np.empty((count, len(np.asarray(Z))))
        if self.weights is None:
            owner = rng.integers(len(self.members), size=count)
        else:
            owner = rng.choice(len(self.members), size=count, p=self.weights)
        for i in np.unique(owner):
            mine = owner == i
            draws[mine] = self.members[i].sample(Z, int(mine.sum()), rng)
        return draws

    def append(self, x: ArrayLike, y: float, noise: float | None = None) -> None:
        for member in self.members:
            member.append(x, y, noise)

    def pop(self) -> None:
        for member in self.members:
            member.pop()

    def copy(self) -> MixturePosterior:
        return type(self)(self.gp, [member.copy() for member in self.members], self.weights)


def members_of(posterior: Posterior) -> list[Posterior]:
    """Return the members of a mixture; anything else is its own only member.

    >>> from surefoot.belief.gp import GP
    >>> len(members_of(GP().condition()))
    1
    """
    if not isinstance(posterior, Posterior):
        raise TypeError(f"a posterior is needed, such as gp.condition(X, y); got {posterior!r}")
    return posterior.members if isinstance(posterior, MixturePosterior) else [posterior]
