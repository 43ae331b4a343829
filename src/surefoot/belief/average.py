"""Average: a belief that knows what the measurements do not determine.

One fit takes its hyper-parameters for known, and of fifteen measurements it may take half the noise for signal: bounds
are then far too narrow. :func:`averaged` keeps all explanations that the measurements allow, each with its weight:

1. find the best hyper-parameters as a fit does (:mod:`surefoot.belief.fit`);
2. from there walk along ν, the logarithm of the noise variance on standardized outputs, in both directions, and climb
   in all others at each node, from where the neighbour ended, until the density has fallen by ``DEPTH`` nats or ν has
   reached the end of its range; then halve the steps that hold much of the mass;
3. at each node that counts take the curvature Λ in the other hyper-parameters φ, so that with θ̂ the top at the node

       log w(ν) = log p(y | θ̂, ν) + log p(θ̂) + log p(ν) − ½ log det Λ   (Laplace; Rue, Martino & Chopin 2009, eq. 3),

   times the length of the step, the trapezoid's rule;
4. spread each node over points θ̂ ± √p Λ^(−½) eᵢ, weighted by their density over that of the normal distribution (up
   to ``AXES`` hyper-parameters and ``FEW`` measurements; beyond, where it would cost most, a node is its top alone and
   det Λ is taken to be the same at all of them);
5. condition on the data at each point, with the constant mean integrated out
   (:class:`~surefoot.belief.free_mean.FreeMean`), and mix.

Where all noises are told there is no ν and one node. Everything follows from the data: there are no random numbers but
those of the first fit, whose generator is fixed.

>>> import numpy as np
>>> from surefoot.belief.gp import GP
>>> from surefoot.domain import Box
>>> X = np.linspace(0.0, 1.0, 8)[:, None]
>>> gp = GP.automatic(Box([(0.0, 1.0)]), version=2)
>>> belief = averaged(gp, X, X[:, 0] + 0.3 * np.array([0, 1, -1, 1, -1, 1, -1, 0]))
>>> noises = [member.gp.noise for member in belief.members]
>>> bool(min(noises) < 0.05 < 0.2 < max(noises))  # eight values do not say how large the noise is
True
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot.belief.fit import Evidence, climb, inside
from surefoot.belief.free_mean import FreeMean
from surefoot.belief.mixture import MixturePosterior
from surefoot.belief.optimism import optimism
from surefoot.belief.posterior import observations
from surefoot.belief.priors import Fixed

if TYPE_CHECKING:
    from surefoot.belief.gp import GP

__all__ = ["Averaged", "averaged"]

Array = NDArray[np.float64]

LOWEST, HIGHEST = -16.0, 1.0  # of ν
STEP = 2.0  # between nodes, at most
DEPTH = 7.0  # nats below the highest node at which the walk along ν ends
MASS = 0.25  # share of the mass beyond which a step is halved
NODES = 20  # at most
COUNTS = 1e-3  # smallest weight of a node, or of a member, that is kept
DIFFERENCE = 0.1  # in a log hyper-parameter, for the curvature
STEEPEST = 0.25  # smallest curvature in any direction, that of a prior of standard deviation 2
AXES, FEW = 8, 100  # hyper-parameters, and measurements, up to which each node is spread out: it costs 2p members
CROWD = 300  # measurements above which they determine the hyper-parameters


@dataclass
class _Height:
    """A value of ν, the best other hyper-parameters there, the log density, and an inverse curvature from climbing."""

    nu: float
    top: Array
    value: float
    turned: Array


class Averaged(MixturePosterior):
    """A mixture over hyper-parameters, made by :func:`averaged`; it knows how optimistic its best estimate is.

    >>> from surefoot.belief.gp import GP
    >>> Averaged(GP(), [FreeMean(GP(noise=1.0), [[0.0]], [1.0])]).optimism([[0.0]])  # no choice, no luck
    0.0
    """

    def optimism(self, Z: ArrayLike) -> float:
        return optimism(self, Z)


def averaged(gp: GP, X: ArrayLike, y: ArrayLike, noise: ArrayLike | None = None) -> Averaged:
    """Return the belief averaged over the hyper-parameters that the measurements allow; see the module's page.

    Parameters
    ----------
    gp : GP
        The prior and its priors, such as ``GP.automatic(domain, version=2)``.
    X, y : array of shape (n, e) and (n,)
        At least one measurement.
    noise : float or array of shape (n,), optional
        Noise variances that are known; NaN or None where they are not.

    >>> from surefoot.belief.gp import GP
    >>> from surefoot.domain import Box
    >>> gp = GP.automatic(Box([(0.0, 1.0)]), version=2)
    >>> exact = averaged(gp, [[0.0], [0.4], [1.0]], [1.0, 3.0, 2.0], 0.0)
    >>> exact.predict([[0.4]])[0].round(6)
    array([3.])
    """
    points, values, noises = observations(X, y, noise)
    if not len(values):
        raise ValueError("there is nothing to average over: no measurements")
    known, shift, scale = inside(gp, values)
    z, own = (values - shift) / scale, noises / scale**2
    unknown = bool(np.isnan(own).any()) and not isinstance(gp.prior("noise"), Fixed)
    found = _explained(gp, known, points, z, own, unknown)
    usual = float(np.mean(own[~np.isnan(own)])) if not unknown and not np.isnan(own).any() else None
    members, weights = [], []
    for theta, weight in found:
        level = known.floor + math.exp(theta[-1]) if usual is None else usual
        kernel = gp.kernel.with_theta(theta[:-1]).scaled(scale**2)
        member = replace(
            gp, kernel=kernel, noise=level * scale**2, mean=shift, priors=None, samples=0, members=(), every=None
        )
        members.append(FreeMean(member, points, values, noises))
        weights.append(weight)
    return Averaged(gp, members, weights)


def _explained(gp: GP, known: GP, points: Array, z: Array, own: Array, unknown: bool) -> list[tuple[Array, float]]:
    """Hyper-parameters (all of θ, on standardized outputs) and their weights."""
    priors = dict(gp.priors or {})
    if not unknown and "noise" not in priors:
        priors["noise"] = Fixed()
    if not unknown:
        known = replace(known, priors={**priors, "noise": Fixed(max(known.noise, 1e-12))})
    fitted = replace(known, standardize=False, samples=0).fit(points, z, own, rng=np.random.default_rng(0))
    theta = fitted.theta
    theta[-1] = math.log(max(fitted.noise - known.floor, 1e-12)) if unknown else theta[-1]
    if len(z) > CROWD:
        return [(theta, 1.0)]
    profile = _Profile(known, points, z, own, unknown)
    nodes = profile.walk(theta) if unknown else [profile.node(theta[-1], theta, None)]
    return profile.spread(nodes)


class _Profile:
    """The log density along ν, with all other hyper-parameters at their best."""

    def __init__(self, gp: GP, points: Array, z: Array, own: Array, unknown: bool) -> None:
        # The evidence of θ for a value of ν is that of a GP whose noise is fixed; what is added is the prior of ν.
        self.evidence = Evidence(replace(gp, priors={**(gp.priors or {}), "noise": Fixed(1.0)}), points, z, own)
        self.evidence.floor = gp.floor if unknown else 0.0
        self.evidence.given = np.where(np.isnan(own), self.evidence.floor, own)
        prior = gp.prior("noise")
        bell = (0.0, math.inf, math.inf) if prior is None or isinstance(prior, Fixed) else prior.bell
        self.center, self.below, self.above = bell

    def prior(self, nu: float) -> float:
        width = self.below if nu < self.center else self.above
        return -0.5 * ((nu - self.center) / width) ** 2

    def at(self, nu: float) -> Evidence:
        self.evidence.frame[-1] = nu
        return self.evidence

    def node(self, nu: float, theta: Array, turned: Array | None) -> _Height:
        """Climb at a value of ν from some θ."""
        evidence = self.at(nu)
        start = theta[evidence.free]
        if turned is None:
            weight = evidence.weights.max(axis=0)[evidence.free]
            turned = np.diag(1.0 / (weight + 0.1 * len(evidence.y)))
        if start.size:
            start, value, turned = climb(evidence, start, turned, tolerance=0.02, steps=25)
        else:
            value, _ = evidence(start, gradient=False)
        return _Height(nu, evidence.full(start), value + self.prior(nu), turned)

    def walk(self, theta: Array) -> list[_Height]:
        """Nodes along ν in order, until the density is low, with halved steps where it is high."""
        start = self.node(float(np.clip(theta[-1], LOWEST, HIGHEST)), theta, None)
        nodes = [start]
        for side in (-1.0, 1.0):
            last = start
            while LOWEST < last.nu < HIGHEST or (last is start and (side < 0) == (last.nu > LOWEST)):
                nu = float(np.clip(last.nu + side * STEP, LOWEST, HIGHEST))
                last = self.node(nu, last.top, last.turned)
                nodes.insert(0 if side < 0 else len(nodes), last)
                if last.value < max(node.value for node in nodes) - DEPTH:
                    break
        while len(nodes) < NODES:
            heights = np.array([node.value for node in nodes])
            height = np.exp(heights - heights.max())
            mass = 0.5 * (height[1:] + height[:-1]) * np.diff([node.nu for node in nodes])
            widest = int(np.argmax(mass))
            left, right = nodes[widest], nodes[widest + 1]
            if mass[widest] <= MASS * mass.sum() or right.nu - left.nu < 0.2:
                break
            near = left if left.value > right.value else right
            nodes.insert(widest + 1, self.node(0.5 * (left.nu + right.nu), near.top, near.turned))
        return nodes

    def curvature(self, node: _Height) -> Array:
        """Λ at a node, by differences of the gradient; at least :data:`STEEPEST` in every direction."""
        evidence = self.at(node.nu)
        top = node.top[evidence.free]
        steps = DIFFERENCE * np.eye(len(top))
        slopes = [(evidence(top - step)[1] - evidence(top + step)[1]) / (2.0 * DIFFERENCE) for step in steps]
        hessian = np.array(slopes)
        values, vectors = np.linalg.eigh(0.5 * (hessian + hessian.T))
        curvature: Array = (vectors * np.maximum(values, STEEPEST)) @ vectors.T
        return curvature

    def spread(self, nodes: list[_Height]) -> list[tuple[Array, float]]:
        """Members and their weights from the nodes."""
        nu = np.array([node.nu for node in nodes])
        lengths = np.ones(1) if len(nodes) == 1 else np.gradient(nu) if len(nodes) == 2 else _trapezoid(nu)
        logs = np.array([node.value for node in nodes]) + np.log(lengths)
        kept = np.flatnonzero(logs > logs.max() + math.log(COUNTS))
        found: list[tuple[Array, float]] = []
        for i in kept:
            found += self.members(nodes[i], logs[i] - logs.max())
        best = max(weight for _, weight in found)
        return [(theta, weight) for theta, weight in found if weight > COUNTS * best]

    def members(self, node: _Height, log_weight: float) -> list[tuple[Array, float]]:
        evidence = self.at(node.nu)
        p = int(evidence.free.sum())
        if not 0 < p <= AXES or len(evidence.y) > FEW:
            return [(node.top, math.exp(log_weight))]
        values, vectors = np.linalg.eigh(self.curvature(node))
        log_weight -= 0.5 * float(np.log(values).sum())
        axes = math.sqrt(p) * vectors / np.sqrt(values)
        height = node.value - self.prior(node.nu)
        found = []
        for axis in axes.T:
            for sign in (-1.0, 1.0):
                x = node.top[evidence.free] + sign * axis
                # density at the point over that of the normal distribution there, relative to the top
                excess = evidence(x, gradient=False)[0] - height + 0.5 * p
                found.append((evidence.full(x), math.exp(log_weight + min(excess, 2.0)) / (2 * p)))
        return found


def _trapezoid(nu: Array) -> Array:
    steps = np.diff(nu)
    return 0.5 * (np.append(steps, 0.0) + np.insert(steps, 0, 0.0))
