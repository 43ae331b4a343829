"""Preflight: what a release would be good for, for the curator's eyes only, before anything is released.

>>> import numpy as np
>>> from surefoot.private import GaussianRelease
>>> table = np.random.default_rng(0).random((300, 2))
>>> mechanism = GaussianRelease(epsilon=3.0, delta=1e-5, bounds=[(0.0, 1.0)] * 2)
>>> found = preflight(table, mechanism, lengthscale=6.0, asks=10, runs=2)
>>> found.clipped, sorted(found.loss)
(0.0, ['original rows', 'random rows', 'released rows'])

Everything here depends on the data and is covered by no guarantee. A :class:`Preflight` has no wire form and refuses to
be pickled; changing the mechanism because of what it says is a decision that depends on the data, too. (Changing ε, δ
or the clipping radius by what is *known* of the data is not.)

It simulates with reproducible noise that is never used for a release: functions are drawn from a Gaussian process over
the scaled rows, and GP-UCB looks for their maximum on the original rows and on a simulated release.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass
from typing import NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot.belief.gp import GP
from surefoot.belief.kernels import SE
from surefoot.domain import Candidates
from surefoot.errors import Exhausted
from surefoot.policy.ucb.gp_ucb import GPUCB
from surefoot.private.mechanisms import Mechanism
from surefoot.private.messages import Answer, Ask, Release
from surefoot.private.modeler import Modeler
from surefoot.private.projection import PublishedProjection, largest_dimension, singular_values
from surefoot.private.scaling import table

__all__ = ["Preflight", "preflight"]

Array = NDArray[np.float64]
PAIRS = 20_000  # pairs of rows whose distances are compared


@dataclass(frozen=True, eq=False)
class Preflight:
    """What a curator learns about its own data and mechanism. It does not cross.

    Parameters
    ----------
    rows, features : int
        Size of the table.
    clipped : float
        Share of rows that the public bounds or the radius change.
    singular_values : array of shape (min(n, d),)
        Of the centered, scaled rows.
    noise : float
        Standard deviation of the noise on each released number.
    distortion : tuple of float
        Released over original distances: their 5 %, 50 % and 95 % quantiles over pairs of rows.
    loss : dict
        Expected simple regret in standard deviations of the function, on original, released and random rows.
    omega, branch, largest : float, str, int, optional
        For the published projection: the threshold, ``"plain"`` or ``"lifted"``, and the largest r below the threshold.

    >>> found = Preflight(5, 1, 0.0, np.array([2.0]), 1.0, (0.9, 1.0, 1.1), {"random rows": 0.3})
    >>> print(found)
    5 rows of 1 features, 0.0 % clipped, smallest singular value 2
    noise 1 on each number; distances released/original 0.90, 1.00, 1.10 (5, 50, 95 %)
    expected loss: random rows 0.300
    """

    rows: int
    features: int
    clipped: float
    singular_values: Array
    noise: float
    distortion: tuple[float, float, float]
    loss: dict[str, float]
    omega: float | None = None
    branch: str | None = None
    largest: int | None = None

    def __str__(self) -> str:
        lines = [
            f"{self.rows} rows of {self.features} features, {100.0 * self.clipped:.1f} % clipped, "
            f"smallest singular value {self.singular_values[-1]:.4g}",
            f"noise {self.noise:.4g} on each number; distances released/original "
            + ", ".join(f"{x:.2f}" for x in self.distortion)
            + " (5, 50, 95 %)",
        ]
        if self.omega is not None:
            lines.append(f"threshold {self.omega:.4g}: {self.branch}; largest dimension below it {self.largest}")
        lines.append("expected loss: " + ", ".join(f"{name} {value:.3f}" for name, value in self.loss.items()))
        return "\n".join(lines)

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("a preflight depends on private data and is not stored or sent")


def preflight(
    data: ArrayLike,
    mechanism: Mechanism,
    *,
    lengthscale: float,
    asks: int = 50,
    runs: int = 8,
    rows: int = 500,
    noise: float = 1e-4,
    seed: int = 0,
) -> Preflight:
    """Look at what a mechanism would do to these data.

    Parameters
    ----------
    data : array of shape (n, d)
        The private rows.
    mechanism : Mechanism
        As it would be used; its own noise is not touched.
    lengthscale : float
        Of the functions to expect, in scaled units.
    asks : int
        Measurements of a run.
    runs : int
        Simulated runs; each draws a function, a release and ``rows`` of the rows.
    rows : int
        Rows of a simulated run, at most.
    noise : float
        Variance of a measurement, the function having variance 1.
    seed : int
        Of the simulation.

    >>> from surefoot.private import LaplaceRelease
    >>> preflight(np.eye(4), LaplaceRelease(epsilon=1.0), lengthscale=1.0, asks=2, runs=1).rows
    4
    """
    if not (0 < lengthscale < math.inf and asks >= 1 and runs >= 1 and rows >= 2):
        raise ValueError(
            "lengthscale, asks and runs must be positive and rows at least 2, "
            f"got {lengthscale!r}, {asks!r}, {runs!r}, {rows!r}"
        )
    private = table(data)
    scale = mechanism.preprocessing
    plain = (private - scale.center) / scale.scale
    scaled = scale.apply(private)
    n, d = scaled.shape
    sigma = singular_values(scaled)
    losses = {"original rows": 0.0, "released rows": 0.0, "random rows": 0.0}
    distances: list[Array] = []
    for run in range(runs):
        rng = np.random.default_rng([seed, run])
        released = mechanism.research(seed=int(rng.integers(2**31))).transform(private)
        pairs = rng.integers(n, size=(2, PAIRS // runs + 1))
        original = np.linalg.norm(scaled[pairs[0]] - scaled[pairs[1]], axis=1)
        moved = np.linalg.norm(released[pairs[0]] - released[pairs[1]], axis=1)
        distances.append(moved[original > 0] / original[original > 0])
        for name, regret in _simulated(scaled, released, mechanism, lengthscale, asks, rows, noise, rng).items():
            losses[name] += regret / runs
    ratios = np.concatenate(distances)
    quantiles = np.quantile(ratios, [0.05, 0.5, 0.95]) if ratios.size else np.full(3, math.nan)
    projection = mechanism if isinstance(mechanism, PublishedProjection) else None
    return Preflight(
        rows=n,
        features=d,
        clipped=float((np.abs(plain - scaled) > 1e-12 * (1.0 + np.abs(plain))).any(axis=1).mean()),
        singular_values=sigma,
        noise=mechanism.spread(d),
        distortion=(float(quantiles[0]), float(quantiles[1]), float(quantiles[2])),
        loss=losses,
        omega=None if projection is None else projection.omega,
        branch=None if projection is None else ("plain" if sigma[-1] >= projection.omega else "lifted"),
        largest=None
        if projection is None
        else largest_dimension(float(sigma[-1]), projection.epsilon, projection.delta),
    )


def _simulated(
    scaled: Array,
    released: Array,
    mechanism: Mechanism,
    lengthscale: float,
    asks: int,
    rows: int,
    noise: float,
    rng: np.random.Generator,
) -> dict[str, float]:
    """Simple regrets of one drawn function."""
    chosen = rng.permutation(len(scaled))[:rows]
    X, Z = scaled[chosen], released[chosen]
    gp = GP(SE(lengthscale), noise=noise)
    f = gp.condition().sample(X, 1, rng)[0]
    y = f + math.sqrt(noise) * rng.standard_normal(len(f))
    count, seed = min(asks, len(f)), int(rng.integers(2**31))
    policy = GPUCB(Candidates(X), gp=gp, seed=seed, repeats=False)
    with suppress(Exhausted):  # equal rows may count as one: there may be fewer of them than asks
        for _ in range(count):
            query = policy.ask()
            policy.tell(query, float(y[query.index]))
    release = Release(
        "preflight", Z, noise=mechanism.spread(scaled.shape[1]), asks=count, repeats=False, simulated=True
    )
    modeler = Modeler(release, gp=gp, seed=seed)

    def answer(ask: Ask) -> Answer:
        return Answer(ask.run, ask.step, float(y[ask.index]))

    modeler.run(answer)
    regret = f.max() - f
    return {
        "original rows": float(regret[[o.index for o in policy.history]].min()),
        "released rows": float(regret[[o.index for o in modeler.policy.history]].min()),
        "random rows": float(regret[rng.permutation(len(f))[:count]].min()),
    }
