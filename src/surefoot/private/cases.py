"""The mechanisms of this room as cases of the audit: two neighboring tables, and the score that tells them apart best.

>>> from surefoot.private.audit import AUDITS, audit
>>> case = AUDITS["gaussian"](1.0, 1e-3)
>>> found = audit(case.release, case.one, case.two, delta=case.delta, claim=case.epsilon, trials=2000)
>>> found.refuted
False

Importing this module enters them into :data:`~surefoot.private.audit.AUDITS`.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from surefoot.private.accounting import gaussian_scale
from surefoot.private.audit import AUDITS, AuditCase
from surefoot.private.discrete import NoiseShares
from surefoot.private.full_lift import FullLift
from surefoot.private.laplace import LaplaceRelease
from surefoot.private.learn import publish_counts
from surefoot.private.mechanisms import GaussianRelease, Mechanism
from surefoot.private.noise import Noise
from surefoot.private.outputs import OutputRelease
from surefoot.private.projection import PublishedProjection
from surefoot.private.search import Repeats, selection_multiplier

__all__ = ["neighbors", "register"]

Array = NDArray[np.float64]
ASKS, BINS = 8, 4


def neighbors(rows: int = 6, features: int = 2, change: float = 1.0) -> tuple[Array, Array]:
    """Return two scaled tables that differ in one row, by ``change``.

    >>> one, two = neighbors(change=0.5)
    >>> float(np.linalg.norm(one - two).round(9))
    0.5
    """
    one = np.random.default_rng(0).uniform(-5.0, 5.0, (rows, features))
    two = one.copy()
    two[0] += change / math.sqrt(features)
    return one, two


def register(name: str) -> Callable[[Callable[[float, float], AuditCase]], Callable[[float, float], AuditCase]]:
    """Enter the function that builds a case into the table.

    >>> "gaussian" in AUDITS
    True
    """

    def enter(build: Callable[[float, float], AuditCase]) -> Callable[[float, float], AuditCase]:
        AUDITS[name] = build
        return build

    return enter


def _releases(mechanism: Mechanism) -> Callable[[Array, Noise, int], Array]:
    """Many independent releases of scaled rows at once."""

    def release(rows: Array, noise: Noise, trials: int) -> Array:
        return mechanism._using(noise)._randomize(np.broadcast_to(rows, (trials, *rows.shape)))

    return release


def _matrices(mechanism: Mechanism) -> Callable[[Noise], tuple[Array, Array]]:
    rows = np.random.default_rng(1).uniform(-10.0, 10.0, (400, 3))
    return lambda noise: (mechanism._using(noise)._randomize(rows), rows)


def _shifted(name: str, mechanism: GaussianRelease, one: Array, two: Array, note: str) -> AuditCase:
    """Gaussian noise tells two tables apart best along their difference."""

    def score(Z: Array) -> Array:
        along: Array = (Z * (two - one)).sum(axis=(-2, -1))
        return along

    claim = mechanism.epsilon, mechanism.delta
    return AuditCase(
        name, _releases(mechanism), one, two, *claim, score=score, matrices=_matrices(mechanism), note=note
    )


@register("gaussian")
def _gaussian(epsilon: float, delta: float) -> AuditCase:
    mechanism = GaussianRelease(epsilon=epsilon, delta=delta)
    return _shifted("GaussianRelease", mechanism, *neighbors(), "one row moves by the neighbor's radius")


@register("gaussian-replace")
def _replacement(epsilon: float, delta: float) -> AuditCase:
    mechanism = GaussianRelease(epsilon=epsilon, delta=delta, radius=5.0, neighbor=math.inf)
    one, two = np.zeros((4, 2)), np.zeros((4, 2))
    one[0, 0], two[0, 0] = -5.0, 5.0
    return _shifted("GaussianRelease, replacement", mechanism, one, two, "one row moves across the whole ball")


@register("laplace")
def _laplace(epsilon: float, delta: float) -> AuditCase:
    mechanism = LaplaceRelease(epsilon=epsilon)
    one, two = neighbors()
    scale = mechanism.scale_for(2)

    def score(Z: Array) -> Array:
        ratio: Array = (np.abs(Z - one) - np.abs(Z - two)).sum(axis=(-2, -1)) / scale
        # Most ratios are exactly ±ε but for rounding, and how simulated noise was rounded does tell the tables apart
        # (Mironov 2012). Real releases do not draw in floating point, so that is not what is audited here.
        return ratio.round(9)

    return AuditCase(
        "LaplaceRelease",
        _releases(mechanism),
        one,
        two,
        epsilon,
        0.0,
        score=score,
        matrices=_matrices(mechanism),
        note="pure: delta is 0",
    )


@register("full-lift")
def _full_lift(epsilon: float, delta: float) -> AuditCase:
    mechanism = FullLift(epsilon=epsilon, delta=delta, dimension=4)
    one, two = neighbors()

    def precision(rows: Array) -> Array:
        centered = rows - rows.mean(axis=0)
        covariance = centered @ centered.T + mechanism.omega**2 * np.eye(len(rows))
        inverse: Array = np.linalg.inv(covariance / mechanism.dimension)
        return inverse

    change = precision(one) - precision(two)  # the log-likelihood ratio, but for a constant and a half
    return AuditCase(
        "FullLift",
        _releases(mechanism),
        one,
        two,
        epsilon,
        delta,
        score=lambda Z: np.einsum("tnr,nm,tmr->t", Z, change, Z),
        matrices=_matrices(FullLift(epsilon=epsilon, delta=delta, dimension=10)),
        note="one row moves by the neighbor's radius",
    )


@register("published-projection")
def _published(epsilon: float, delta: float) -> AuditCase:
    mechanism = PublishedProjection(epsilon=epsilon, delta=delta, dimension=10, accept_no_guarantee=True)
    one, two = neighbors()
    U = np.linalg.svd(one - one.mean(axis=0), full_matrices=False)[0]

    def release(rows: Array, noise: Noise, trials: int) -> Array:
        return mechanism.project(rows, noise.normal((trials, rows.shape[1], mechanism.dimension)))

    def score(Z: Array) -> Array:
        outside = Z - U @ (U.T @ Z)  # what does not lie in the column space of the first table
        residual: Array = np.linalg.norm(outside, axis=(-2, -1)) / np.linalg.norm(Z, axis=(-2, -1))
        return residual

    return AuditCase(
        "PublishedProjection",
        release,
        one,
        two,
        None,
        delta,
        score=score,
        matrices=_matrices(mechanism),
        note="claims nothing: neighbors lie in different subspaces",
    )


@register("outputs")
def _outputs(epsilon: float, delta: float) -> AuditCase:
    outputs = OutputRelease(bounds=(0.0, 1.0), epsilon=epsilon, delta=delta)
    scale = outputs.scale(asks=ASKS, repeats=True)

    def release(value: float, noise: Noise, trials: int) -> Array:
        return outputs._using(noise)._blurred(np.full((trials, ASKS), value), scale)

    return AuditCase(
        "OutputRelease",
        release,
        0.0,
        1.0,
        epsilon,
        delta,
        score=lambda Y: Y.sum(axis=1),
        note=f"one row is asked for {ASKS} times and its value moves across the bounds",
    )


@register("learned-counts")
def _counts(epsilon: float, delta: float) -> AuditCase:
    one, two = np.full(BINS, 5.0), np.full(BINS, 5.0)
    one[0], two[1] = 6.0, 6.0

    def release(counts: Array, noise: Noise, trials: int) -> Array:
        many = np.broadcast_to(counts, (trials, BINS))
        return publish_counts("audit", many, math.sqrt(2.0), epsilon, delta, None, noise)[0]

    return AuditCase(
        "learn_bounds, learn_hyperparameters",
        release,
        one,
        two,
        epsilon,
        delta,
        score=lambda counts: counts @ (two - one),
        note="one record moves from one bin to another",
    )


@register("private-selection")
def _selection(epsilon: float, delta: float) -> AuditCase:
    repeats = Repeats(10.0)
    z = selection_multiplier(epsilon, delta, repeats)

    def release(value: float, noise: Noise, trials: int) -> Array:
        runs = repeats.draw(noise, trials)
        values = noise.gaussian(np.full(int(runs.sum()), value), z)
        return np.asarray(np.maximum.reduceat(values, np.cumsum(runs) - runs))

    return AuditCase(
        "private_search",
        release,
        0.0,
        1.0,
        epsilon,
        delta,
        score=lambda values: values,
        note="one record moves the value of every run by the sensitivity",
    )


@register("distributed-noise")
def _shares(epsilon: float, delta: float) -> AuditCase:
    moved, honest = 20, 5
    # The scale that makes the exact distribution meet the claim: no slack for the attack to miss.
    scale = moved * gaussian_scale(epsilon, delta)
    shares = NoiseShares(scale, honest)

    def release(data: tuple[int, int], noise: Noise, trials: int) -> Array:
        value, count = data
        total = sum(shares.draw(trials, noise) for _ in range(count))
        return np.asarray(value + total, dtype=np.float64)

    return AuditCase(
        "NoiseShares",
        release,
        (0, honest),
        (moved, honest),
        epsilon,
        delta,
        score=lambda sums: sums,
        note=f"the sum of {honest} parties moves by one party's sensitivity",
    )
