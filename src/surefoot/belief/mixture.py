"""MixturePosterior: the average over several hyper-parameters.

Each member is a posterior given the same measurements under its own hyper-parameters, all equally likely. Mean and
covariance are those of the mixture (moments matched), so the spread *between* the members widens the standard
deviation; :meth:`MixturePosterior.sample` draws from the mixture itself.

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
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot.belief.posterior import Posterior

if TYPE_CHECKING:
    from surefoot.belief.gp import GP

__all__ = ["MixturePosterior", "members_of"]

Array = NDArray[np.float64]


class MixturePosterior(Posterior):
    """An equal mixture of posteriors, with the interface of one; see the module's page.

    Parameters
    ----------
    gp : GP
        The GP that carries the ensemble.
    members : sequence of Posterior
        Posteriors given the same measurements.

    >>> from surefoot.belief.gp import GP
    >>> post = MixturePosterior(GP(), [GP(mean=0.0).condition(), GP(mean=2.0).condition()])
    >>> post.predict([[0.0]])  # variance: 1 within, 1 between
    (array([1.]), array([1.41421356]))
    """

    def __init__(self, gp: GP, members: Sequence[Posterior]) -> None:
        if not members:
            raise ValueError("a mixture needs at least one member")
        self.gp, self.members = gp, list(members)

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
        noise: Array = np.mean([member.noise for member in self.members], axis=0)
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
        return float(np.mean([member.information_gain for member in self.members]))

    @property
    def noise_level(self) -> float:
        """Noise variance of a measurement that does not bring its own, averaged over the members."""
        return float(np.mean([member.gp.noise for member in self.members]))

    def prior_variance(self, E: ArrayLike) -> float:
        return float(np.mean([member.prior_variance(E) for member in self.members]))

    def solve(self, B: ArrayLike) -> Array:
        raise TypeError("a mixture has no single covariance matrix; use its members")

    def mean(self, Z: ArrayLike) -> Array:
        mean: Array = np.mean([member.mean(Z) for member in self.members], axis=0)
        return mean

    def predict(self, Z: ArrayLike) -> tuple[Array, Array]:
        means, stds = np.array([member.predict(Z) for member in self.members]).swapaxes(0, 1)
        return means.mean(axis=0), np.sqrt((stds**2).mean(axis=0) + means.var(axis=0))

    def var(self, Z: ArrayLike) -> Array:
        return self.predict(Z)[1] ** 2

    def cov(self, Z: ArrayLike, W: ArrayLike | None = None) -> Array:
        within = np.mean([member.cov(Z, W) for member in self.members], axis=0)
        left = np.array([member.mean(Z) for member in self.members])
        right = left if W is None else np.array([member.mean(W) for member in self.members])
        between = (left - left.mean(axis=0)).T @ (right - right.mean(axis=0)) / len(self.members)
        cov: Array = within + between
        return cov

    def gradient(self, Z: ArrayLike) -> tuple[Array, Array, Array, Array]:
        parts = [member.gradient(Z) for member in self.members]
        means, stds, dmeans, dstds = (np.array([part[i] for part in parts]) for i in range(4))
        mean, dmean = means.mean(axis=0), dmeans.mean(axis=0)
        std = np.sqrt((stds**2).mean(axis=0) + means.var(axis=0))
        dvar = 2.0 * (stds[..., None] * dstds + (means - mean)[..., None] * (dmeans - dmean)).mean(axis=0)
        return mean, std, dmean, dvar / (2.0 * np.where(std > 0, std, 1.0))[:, None]

    def sample(self, Z: ArrayLike, count: int, rng: np.random.Generator) -> Array:
        draws: Array = np.empty((count, len(np.asarray(Z))))
        owner = rng.integers(len(self.members), size=count)
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
        return MixturePosterior(self.gp, [member.copy() for member in self.members])


def members_of(posterior: Posterior) -> list[Posterior]:
    """Return the members of a mixture; anything else is its own only member.

    >>> from surefoot.belief.gp import GP
    >>> len(members_of(GP().condition()))
    1
    """
    if not isinstance(posterior, Posterior):
        raise TypeError(f"a posterior is needed, such as gp.condition(X, y); got {posterior!r}")
    return posterior.members if isinstance(posterior, MixturePosterior) else [posterior]
