"""Expected improvement and probability of improvement, in logarithms.

Question: where is the maximum of an expensive, possibly noisy function? Expected improvement is the default of
``surefoot.optimize``: no width to choose, and the strongest of the classical rules on smooth problems.

Rules, with z = (μ(x) − best − margin)/σ(x), φ and Φ the normal density and distribution:

* EI(x) = σ h(z), h(z) = φ(z) + z Φ(z); maximized as log σ + log h(z), which has a useful gradient even where EI itself
  underflows to zero (Ament et al. 2023);
* PI(x) = Φ(z), maximized as log Φ(z).

``best`` is the highest posterior mean among measured points, not the luckiest measurement; from version 2 of what is
automatic on among points under way as well, which are hallucinated at their mean ("kriging believer", Ginsbourger et
al. 2010). Without that, a point that promises to be the best draws all others of its batch to its side, each of which
improves on what is *measured* as much.

References: Močkus 1975; Jones, Schonlau & Welch 1998; Kushner 1964. Guarantee: with a fixed prior and noise-free values
EI converges at the near-optimal rate (Bull 2011); none is known for fitted hyper-parameters.

Cost of one ask: as :mod:`surefoot.policy.ucb.gp_ucb`.
"""

from __future__ import annotations

import math
from typing import Unpack

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfcx, log_ndtr

from surefoot.arguments import not_negative
from surefoot.belief.protocol import Belief
from surefoot.domain import Box, Candidates, Domain, Paths, Space
from surefoot.policy.acquisition import Acquisition
from surefoot.policy.base import ModelOptions, ModelPolicy
from surefoot.policy.rule import Pointwise
from surefoot.policy.surrogate import Rows
from surefoot.policy.view import View

__all__ = [
    "ExpectedImprovement",
    "Improvement",
    "LogImprovement",
    "LogProbability",
    "ProbabilityOfImprovement",
    "log_h",
]

Array = NDArray[np.float64]
_LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)
FAR = -1e4  # standard deviations below which differences of logarithms lose their digits


def log_h(z: Array) -> Array:
    """Return log(φ(z) + z Φ(z)) without underflow, accurate to about 1e-12 relative for any finite z.

    >>> log_h(np.array([0.0, -40.0])).round(6)
    array([  -0.918939, -808.298568])
    """
    z = np.asarray(z, dtype=np.float64)
    out = np.empty_like(z)
    near = z > -1.0
    if near.any():
        u = z[near]
        density = np.exp(-0.5 * u * u - _LOG_SQRT_2PI)
        out[near] = np.log(density + u * np.exp(log_ndtr(u)))
    u = -z[~near]
    # h = φ(u) (1 − u m(u)) with the Mills ratio m(u) = √(π/2) erfcx(u/√2). Far out the bracket cancels and its
    # asymptotic series 1/u² − 3/u⁴ + 15/u⁶ − … takes over.
    v = 1.0 / np.maximum(u, 1.0) ** 2
    series = v * (1.0 - v * (3.0 - v * (15.0 - v * (105.0 - v * 945.0))))
    bracket = np.where(u > 100.0, series, 1.0 - u * math.sqrt(0.5 * math.pi) * erfcx(u / math.sqrt(2.0)))
    out[~near] = -0.5 * u * u - _LOG_SQRT_2PI + np.log(bracket)
    return out


class _Standardized:
    """z = (mean − target)/std with the standard deviation kept away from zero."""

    def __init__(self, target: float, floor: float) -> None:
        self.target, self.floor = target, floor

    def z(self, mean: Array, std: Array) -> tuple[Array, Array]:
        std = np.maximum(std, self.floor)
        return (mean - self.target) / std, std


class LogImprovement(_Standardized):
    """Logarithm of the expected improvement over a target.

    >>> LogImprovement(0.0, floor=1e-12).value(np.array([0.0]), np.array([1.0])).round(4)
    array([-0.9189])
    """

    def value(self, mean: Array, std: Array) -> Array:
        """Return log EI, shape (m,)."""
        z, std = self.z(mean, std)
        return np.log(std) + log_h(z)

    def slopes(self, mean: Array, std: Array) -> tuple[Array, Array, Array]:
        """Return log EI and its derivatives in mean and standard deviation."""
        z, std = self.z(mean, std)
        log = log_h(z)
        far = z < FAR
        # Φ/h, the derivative of log h; far out both logarithms are huge, and the ratio tends to −z − 2/z.
        ratio = np.where(far, -z - 2.0 / np.where(far, z, FAR), np.exp(np.where(far, 0.0, log_ndtr(z) - log)))
        return np.log(std) + log, ratio / std, (1.0 - z * ratio) / std


class LogProbability(_Standardized):
    """Logarithm of the probability of exceeding a target.

    >>> LogProbability(0.0, floor=1e-12).value(np.array([0.0]), np.array([1.0])).round(4)
    array([-0.6931])
    """

    def value(self, mean: Array, std: Array) -> Array:
        """Return log PI, shape (m,)."""
        return np.asarray(log_ndtr(self.z(mean, std)[0]))

    def slopes(self, mean: Array, std: Array) -> tuple[Array, Array, Array]:
        """Return log PI and its derivatives in mean and standard deviation."""
        z, std = self.z(mean, std)
        log = np.asarray(log_ndtr(z))
        far = z < FAR
        # φ/Φ; far out it tends to −z − 1/z.
        ratio = np.exp(np.where(far, 0.0, -0.5 * z * z - _LOG_SQRT_2PI - log))
        ratio = np.where(far, -z - 1.0 / np.where(far, z, FAR), ratio)
        return log, ratio / std, -z * ratio / std


class Improvement(Pointwise):
    """Maximize a score of how far the best estimate is exceeded.

    Parameters
    ----------
    score : type
        :class:`LogImprovement` or :class:`LogProbability`.
    margin : float
        How much better than the best estimate a value must be to count.
    pending : bool
        Whether the best estimate may be that of a point under way.

    >>> Improvement(LogImprovement, 0.1).margin
    0.1
    """

    def __init__(self, score: type[LogImprovement | LogProbability], margin: float, *, pending: bool = False) -> None:
        self.score, self.margin, self.pending = score, margin, pending

    def acquisition(self, view: View, belief: Belief, ahead: int = 0) -> Acquisition:
        return self.score(*self.target(view, belief))

    def target(self, view: View, belief: Belief) -> tuple[float, float]:
        """Return the value to beat, and the smallest standard deviation worth telling from zero."""
        at = view.measured  # hallucinated points are no values to beat, unless they are meant to
        best = float(belief.expected(at).max()) if len(at) else belief.gp.mean
        if self.pending and not view.domain.travels and (queries := view.trials.pending.values()):
            rows = np.array([query.index for query in queries]) if view.domain.listed else None
            under_way = view.domain.address(np.array([query.x for query in queries]), rows)
            best = max(best, float(belief.expected(under_way).max()))
        return best + self.margin, 1e-10 * view.prior_std(belief.gp)


class ExpectedImprovement(ModelPolicy):
    """Measure where the expected improvement over the best estimate is largest.

    Parameters
    ----------
    domain : Box, Candidates, Space or Paths
        Where points may lie. On ``Paths`` moves are chosen stop by stop.
    margin : float
        How much better than the best estimate a value must be to count, in the objective's units.
    **options
        ``gp``, ``initial``, ``confidence``, ``seed``, ``repeats``, ``journal``.

    >>> from surefoot import Box
    >>> policy = ExpectedImprovement(Box([(0.0, 1.0)]), seed=0)
    >>> for _ in range(8):
    ...     query = policy.ask()
    ...     policy.tell(query, -(query.x[0] - 0.3) ** 2)
    >>> abs(policy.recommend().x[0] - 0.3) < 0.05
    np.True_
    """

    domains = (Box, Candidates, Space, Paths)
    doubts = True
    treats = True

    def __init__(self, domain: Domain, *, margin: float = 0.0, **options: Unpack[ModelOptions]) -> None:
        super().__init__(domain, **options)
        self.margin = not_negative(margin, "margin")
        if self.margin:  # it is in the units of the values
            self.surrogate.rows = Rows(self.trials)
        self.rule = Improvement(LogImprovement, self.margin, pending=self.automatic >= 2)


class ProbabilityOfImprovement(ModelPolicy):
    """Measure where an improvement over the best estimate is most probable.

    Greedy with ``margin=0``; a margin of the size of the improvement one hopes for makes it explore.

    Parameters
    ----------
    domain : Box, Candidates, Space or Paths
        Where points may lie. On ``Paths`` moves are chosen stop by stop.
    margin : float
        How much better than the best estimate a value must be to count, in the objective's units.
    **options
        ``gp``, ``initial``, ``confidence``, ``seed``, ``repeats``, ``journal``.

    >>> from surefoot import Candidates
    >>> policy = ProbabilityOfImprovement(Candidates(np.linspace(0, 1, 11)), margin=0.01, seed=0)
    >>> policy.ask().index in range(11)
    True
    """

    domains = (Box, Candidates, Space, Paths)
    doubts = True
    treats = True

    def __init__(self, domain: Domain, *, margin: float = 0.0, **options: Unpack[ModelOptions]) -> None:
        super().__init__(domain, **options)
        self.margin = not_negative(margin, "margin")
        if self.margin:  # it is in the units of the values
            self.surrogate.rows = Rows(self.trials)
        self.rule = Improvement(LogProbability, self.margin, pending=self.automatic >= 2)
