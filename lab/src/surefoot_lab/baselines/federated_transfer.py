"""RGPE and TAF where parties may not show their measurements: they send the belief over shared features instead.

FTS sends one draw ω of the weights, M numbers. To take part in RGPE or TAF a party has to send the whole distribution
N(ν, σ²Σ⁻¹) that ω is drawn from, M + M² numbers, and for TAF the best value it has found too. The receiver treats what
it gets as the model of an earlier task: :class:`~surefoot.policy.transfer.rgpe.RGPE` takes :class:`WeightBelief` as it
is, and :class:`FederatedTAF` counts improvements from the sender's own best value.

>>> from surefoot import Box
>>> features = SharedFeatures(1, 50, lengthscale=0.1, noise=1e-4, seed=0)
>>> sent = WeightBelief.of(features, Box.unit(1), [[0.2], [0.7]], [0.5, 0.9], incumbent=True)
>>> sent.numbers, sent.predict(np.array([[0.7]]))[0].round(2)
(2551, array([0.9]))

Reference: Dai, Low & Jaillet 2020, section 4.2 (the lengths of messages); the methods' own pages. Difference: the
authors' TAF adds max(0, f − best) for *one draw* f of a party's function at each x, which with their short
length-scale is mostly noise; here it is the improvement of the mean, as in TAF itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot.domain import Domain
from surefoot.federated.features import SharedFeatures, to_unit
from surefoot.loop.state import storable
from surefoot.policy.transfer.taf import TAF

__all__ = ["FederatedTAF", "WeightBelief", "message_length"]

Array = NDArray[np.float64]


def message_length(method: str, count: int) -> int:
    """Return how many numbers a party sends with M = ``count`` features.

    >>> [message_length(method, 100) for method in ("FTS", "RGPE", "TAF")]
    [100, 10100, 10101]
    """
    lengths = {"FTS": count, "RGPE": count + count**2, "TAF": count + count**2 + 1}
    if method not in lengths:
        raise ValueError(f"the method is one of {', '.join(lengths)}, not {method!r}")
    return lengths[method]


@storable
class WeightBelief:
    """A party's belief over the weights of the shared features, as a model of its objective.

    Parameters
    ----------
    features : SharedFeatures
        φ, over the unit cube.
    mean : array of shape (M,)
        ν.
    inverse : array of shape (M, M)
        Σ⁻¹.
    lower, extent : array of shape (e,)
        Of the encoded domain, to bring points to the unit cube.
    incumbent : float, optional
        The best value that was found.

    >>> features = SharedFeatures(1, 2, lengthscale=0.1, noise=0.01, seed=0)
    >>> WeightBelief(features, np.zeros(2), np.eye(2), np.zeros(1), np.ones(1)).numbers
    6
    """

    def __init__(
        self,
        features: SharedFeatures,
        mean: ArrayLike,
        inverse: ArrayLike,
        lower: ArrayLike,
        extent: ArrayLike,
        incumbent: float | None = None,
    ) -> None:
        self.features, self.incumbent = features, incumbent
        self.mean, self.inverse, self.lower, self.extent = (
            np.asarray(array, dtype=np.float64) for array in (mean, inverse, lower, extent)
        )
        M = features.count
        if self.mean.shape != (M,) or self.inverse.shape != (M, M):
            raise ValueError(f"expected ν ({M},) and Σ⁻¹ ({M}, {M}), got {self.mean.shape} and {self.inverse.shape}")

    @classmethod
    def of(
        cls, features: SharedFeatures, domain: Domain, X: ArrayLike, y: ArrayLike, *, incumbent: bool = False
    ) -> Self:
        """Return what a party sends that has measured values y (t,) at points X (t, d)."""
        phi = features(to_unit(domain, domain.encode(X)))
        values = np.asarray(y, dtype=np.float64)
        inverse = np.linalg.inv(phi.T @ phi + features.noise * np.eye(features.count))
        inverse = (inverse + inverse.T) / 2.0
        best = float(values.max()) if incumbent else None
        return cls(features, inverse @ (phi.T @ values), inverse, domain.lower, domain.extent(), best)

    @property
    def numbers(self) -> int:
        """How many numbers were sent."""
        return self.mean.size + self.inverse.size + (self.incumbent is not None)

    def predict(self, E: Array) -> tuple[Array, Array]:
        """Return mean and standard deviation at encoded points (m, e), each of shape (m,)."""
        phi = _features_at(self.features, (E - self.lower) / self.extent)
        variance = self.features.noise * np.einsum("ij,ij->i", phi @ self.inverse, phi)
        return phi @ self.mean, np.sqrt(np.maximum(variance, 0.0))

    def gradient(self, E: Array) -> tuple[Array, Array, Array, Array]:
        """Return mean and standard deviation (m,), and their gradients (m, e)."""
        phi, pull = self.features.fourier.pull_input((E - self.lower) / self.extent)
        turned = self.features.noise * (phi @ self.inverse)
        std = np.sqrt(np.maximum(np.einsum("ij,ij->i", turned, phi), 1e-24))
        return phi @ self.mean, std, pull(self.mean) / self.extent, pull(turned) / std[:, None] / self.extent

    def sample(self, E: Array, count: int, rng: np.random.Generator) -> Array:
        """Draw functions jointly at encoded points, shape (count, m)."""
        weights = self.mean + rng.standard_normal((count, self.mean.size)) @ self._root.T
        draws: Array = weights @ _features_at(self.features, (E - self.lower) / self.extent).T
        return draws

    @cached_property
    def _root(self) -> Array:
        """R with RRᵀ = σ²Σ⁻¹."""
        values, vectors = np.linalg.eigh(self.features.noise * self.inverse)
        return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))

    def to_dict(self) -> dict[str, Any]:
        """Return everything as strict JSON."""
        arrays = {name: getattr(self, name).tolist() for name in ("mean", "inverse", "lower", "extent")}
        return {"features": self.features.to_dict(), **arrays, "incumbent": self.incumbent}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Rebuild a belief."""
        return cls(**{**data, "features": SharedFeatures.from_dict(data["features"])})


_latest: dict[str, tuple[bytes, Array]] = {}


def _features_at(features: SharedFeatures, U: Array) -> Array:
    """φ at the rows of U; all parties' models are asked about the same points one after the other."""
    key = U.tobytes()
    known = _latest.get(features.hash)
    if known is None or known[0] != key:
        _latest.clear()
        _latest[features.hash] = known = (key, features(U))
    return known[1]


class FederatedTAF(TAF):
    """TAF whose tasks are parties' beliefs with their best values.

    Takes the parameters of :class:`~surefoot.policy.transfer.taf.TAF`; ``tasks`` are :class:`WeightBelief` with an
    incumbent.

    >>> from surefoot import Box
    >>> features = SharedFeatures(1, 50, lengthscale=0.1, noise=1e-4, seed=0)
    >>> sent = WeightBelief.of(features, Box.unit(1), [[0.2], [0.7]], [0.5, 0.9], incumbent=True)
    >>> policy = FederatedTAF(Box.unit(1), tasks=[sent], seed=0)
    >>> policy._best(np.zeros((1, 3)))
    array([0.9])
    """

    def _takes(self, task: Any) -> bool:
        return isinstance(task, WeightBelief) and task.incumbent is not None

    def _best(self, means: Array) -> Array:
        if not means.size:
            return super()._best(means)
        return np.array([task.incumbent for task in self.tasks])
