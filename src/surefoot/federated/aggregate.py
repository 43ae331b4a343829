"""The private sum: clip each agent's vector, sample agents in secret, weight, add noise.

    ω⁽ⁱ⁾ = (1/q) Σ_{sampled n} φₙ⁽ⁱ⁾ ω̂ₙ + N(0, σᵢ² I),   ω̂ₙ = ωₙ / max(1, ‖ωₙ‖/c),   i = 1..P

All P vectors come from one sample, so they are one release of a subsampled Gaussian mechanism: an agent that takes part
moves them by (φₙ⁽ⁱ⁾ ω̂ₙ/q)ᵢ together. Its length in units of the noise is at most 1/z_eff
(:func:`~surefoot.federated.regions.effective_multiplier`) when σᵢ = z φ_max⁽ⁱ⁾ c √P/q.

>>> from surefoot.private import ResearchNoise
>>> aggregate(np.array([[3.0, 4.0], [1.0, 0.0]]), np.array([[0.5, 0.5]]), limit=1.0, noise=ResearchNoise(0))
array([[0.8, 0.4]])

Reference: Dai, Low & Jaillet 2021; lines 5 to 11 of Algorithm 6.1, and (6.1), of Dai's thesis (2021); McMahan et al.
2018 (the fixed denominator).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot.federated.regions import Weighting, effective_multiplier
from surefoot.private.accounting import noise_multiplier
from surefoot.private.audit import AUDITS, AuditCase
from surefoot.private.noise import Noise

__all__ = ["aggregate", "audit_case", "clip_norms"]

Array = NDArray[np.float64]


def clip_norms(vectors: Array, limit: float) -> Array:
    """Scale rows of (N, M) longer than ``limit`` down to it (line 9); the others stay as they are, bit for bit.

    >>> clip_norms(np.array([[3.0, 4.0], [0.3, 0.4]]), 1.0)
    array([[0.6, 0.8],
           [0.3, 0.4]])
    """
    clipped: Array = vectors / np.maximum(1.0, np.linalg.norm(vectors, axis=1, keepdims=True) / limit)
    return clipped


def aggregate(
    vectors: Array,
    weights: Array,
    *,
    limit: float,
    noise: Noise,
    deviations: ArrayLike = 0.0,
    sampling: float = 1.0,
    average: bool = False,
    trials: int | None = None,
) -> Array:
    """Return one vector for each sub-region, shape (P, M).

    Parameters
    ----------
    vectors : array of shape (N, M)
        The agents' vectors; zero for one that is absent.
    weights : array of shape (P, N)
        Public weights, each row summing to 1 over the whole roster.
    limit : float
        Longest norm c a vector may have; infinite for no clipping.
    noise : Noise
        Draws the sample and the noise.
    deviations : array of shape (P,)
        Standard deviations σᵢ of the noise; 0 adds none.
    sampling : float
        q.
    average : bool
        Whether the P vectors are replaced by their mean: for weights that are the same in all sub-regions.
    trials : int, optional
        Repeat independently so many times, shape (trials, P, M): for audits.

    >>> from surefoot.private import ResearchNoise
    >>> vectors, weights = np.ones((4, 2)), np.full((1, 4), 0.25)
    >>> made = aggregate(vectors, weights, limit=9.0, noise=ResearchNoise(0), sampling=0.5, trials=2000)
    >>> made.mean(axis=0).round(1)  # unbiased
    array([[1., 1.]])
    """
    N, P = len(vectors), len(weights)
    shape = () if trials is None else (trials,)
    if sampling < 1.0:  # line 6: every agent with probability q, the same ones for all sub-regions
        weights = weights * noise.bernoulli(sampling, (*shape, 1, N))
    # Lines 9 and 10: ω⁽ⁱ⁾ = (1/q) Σ φₙ⁽ⁱ⁾ ω̂ₙ, (6.1)
    total = np.broadcast_to(weights @ clip_norms(vectors, limit) / sampling, (*shape, P, vectors.shape[1]))
    scale = np.broadcast_to(np.asarray(deviations, dtype=np.float64), (P,))[:, None]
    if scale.any():  # line 11
        total = noise.gaussian(total, np.broadcast_to(scale, total.shape))
    if average and P > 1:
        total = np.broadcast_to(total.mean(axis=-2, keepdims=True), total.shape)
    return np.array(total)


def audit_case(epsilon: float, delta: float) -> AuditCase:
    """Return one round of DP-FTS-DE calibrated to (ε, δ), with and without one agent, for ``surefoot audit``.

    The score is the log-likelihood ratio of the whole release, over both sub-regions at once.

    >>> from surefoot.private import ResearchNoise
    >>> audit_case(2.0, 1e-3).release(np.zeros((8, 4)), ResearchNoise(0), 5).shape
    (5, 2, 4)
    """
    q, limit, agents, P = 0.25, 1.0, 8, 2
    weights = Weighting(high=1.0).weights(0, np.arange(agents) % P, P)
    # The multiplier that makes the *exact* sensitivity meet the claim: no slack for the attack to miss.
    z = noise_multiplier(epsilon, delta, sampling=q) / effective_multiplier(1.0, weights)
    deviations = z * weights.max(axis=1) * limit * P**0.5 / q
    absent, present = np.zeros((agents, 4)), np.zeros((agents, 4))
    present[0, 0] = limit
    shift = weights[:, 0] * limit / q

    def release(vectors: Array, noise: Noise, trials: int) -> Array:
        return aggregate(vectors, weights, limit=limit, noise=noise, deviations=deviations, sampling=q, trials=trials)

    def score(releases: Array) -> Array:
        likelihood: Array = ((releases[:, :, 0] - 0.5 * shift) * (shift / deviations**2)).sum(axis=1)
        return likelihood

    return AuditCase(
        "DP-FTS-DE", release, absent, present, epsilon, delta, score, note="whether an agent takes part in a round"
    )


AUDITS["DP-FTS-DE"] = audit_case
