"""A table whose best row is searched for on what its owner releases.

Every method is GP-UCB over *some* copy of the rows: the rows themselves, a release of the published projection, or one
with Gaussian noise; all know the same hyper-parameters and begin with the same row. What counts is the value of the
best row that was measured, in standard deviations of the signal.

For r ≥ d the projection Z = X B M/√r has the distances of X B L/√r with L Lᵀ = M Mᵀ, which has d columns: that is what
is searched, whatever r is. One belief over all rows is updated in place. That this measures what
:class:`surefoot.private.Modeler` would, ties included, is tested.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot.belief.gp import GP
from surefoot.belief.grid import GridPosterior
from surefoot.belief.kernels import SE
from surefoot.belief.noisy_inputs import NoisyInputs
from surefoot.belief.priors import Fixed, LogNormal, Prior
from surefoot.domain.ranking import argmax
from surefoot.loop.streams import stream
from surefoot.loop.widths import Finite
from surefoot.private.mechanisms import GaussianRelease
from surefoot.private.projection import Lifting, PublishedProjection, singular_values
from surefoot_lab.registry import Replicate, Trace

Array = NDArray[np.float64]

RADIUS = 25.0  # largest norm of a row
WIDTH = Finite(0.975)  # δ' = δ_ucb/2 = 0.025
COLUMNS = 50  # largest r of any table
REFIT = 10  # measurements between two fits, where the length-scale is fitted
UCB, RANDOM = "GP-UCB", "random"


def to_norm(rows: ArrayLike, radius: float = RADIUS) -> tuple[Array, float]:
    """Return the rows centered and scaled so that the longest has this norm, and the factor.

    >>> to_norm([[0.0], [2.0]])[0].ravel(), to_norm([[0.0], [2.0]])[1]
    (array([-25.,  25.]), 25.0)
    """
    X = np.asarray(rows, dtype=np.float64)
    X = X - X.mean(axis=0)
    factor = radius / float(np.linalg.norm(X, axis=1).max())
    return X * factor, factor


@dataclass(frozen=True, eq=False)
class Owned:
    """A table as its owner has it: scaled rows (n, d), a value for each in units of σ_y, and the belief about them.

    ``error`` is the standard deviation of a measurement around the value; 0 where the value *is* the measurement.
    ``unit`` is σ_y in the units of the output.
    """

    rows: Array
    values: Array
    gp: GP
    error: float = 0.0
    unit: float = 1.0

    @cached_property
    def smallest(self) -> float:
        """σ_min of the rows."""
        return float(singular_values(self.rows)[-1])


class Race:
    """All methods of one repetition on one table: the same first row, the same errors, the same draws."""

    def __init__(self, table: Owned, delta: float, horizon: int, replicate: Replicate) -> None:
        self.table, self.delta, self.horizon = table, delta, min(horizon, len(table.rows) - 1)
        rng = replicate.rng("start")
        self.order = rng.permutation(len(table.rows))  # the first is where everybody begins, all are random search
        self.errors = table.error * replicate.rng("noise").standard_normal(self.horizon + 1)
        self.normals = replicate.rng("projection").standard_normal((table.rows.shape[1], COLUMNS))
        self.seed = int(replicate.rng("release").integers(2**31))
        self.ties = replicate.integer  # far from all measurements of a smooth function rows tie

    def baselines(self) -> dict[str, Trace]:
        """GP-UCB on the rows themselves, and rows at random."""
        return {UCB: self.search(self.table.rows, self.table.gp), RANDOM: self._trace(self.order[: self.horizon + 1])}

    def projection(
        self, dimension: int, epsilon: float, *, lifting: Lifting = "root", refit: bool = False, code: bool = False
    ) -> Trace:
        """GP-UCB on the published projection, as printed or as in the released code.

        The released code adds ω to the singular values and weighs the variance instead of the standard deviation.
        """
        rule = PublishedProjection(
            epsilon=epsilon, delta=self.delta, dimension=dimension, lifting="sum" if code else lifting
        )
        points = rule.project(self.table.rows, self.isometric(dimension))
        return self.search(points, self.table.gp, squared=code, refit=refit)

    def isometric(self, dimension: int) -> Array:
        """Return a matrix (d, d) that gives the distances of the first r columns of this repetition's projection."""
        M = self.normals[:, :dimension]
        if dimension < len(M):
            return M
        root: Array = np.asarray(np.linalg.cholesky(M @ M.T), dtype=np.float64)
        return root

    def gaussian(self, epsilon: float, *, aware: bool = True, certified: bool = False, refit: bool = False) -> Trace:
        """GP-UCB on rows with Gaussian noise; ``aware`` of it, or believing that there is none."""
        mechanism = GaussianRelease(
            epsilon=epsilon,
            delta=self.delta,
            radius=RADIUS * (1.0 + 1e-9),  # the longest row is not to be clipped by rounding
            calibration="certified" if certified else "analytic",
        ).research(self.seed)
        gp, scale = self.table.gp, mechanism.noise_scale
        known = replace(gp, kernel=NoisyInputs.around(gp.kernel, scale)) if aware else gp
        trace = self.search(mechanism.transform(self.table.rows), known, refit=refit)
        trace.metrics["noise"] = np.asarray(scale)
        return trace

    def search(self, points: Array, gp: GP, *, squared: bool = False, refit: bool = False) -> Trace:
        """Run GP-UCB over the points, each row measured at most once; ties are broken as policies break them."""
        belief = GridPosterior(gp, points, capacity=self.horizon + 1)
        fitted = _fitted(gp)
        chosen, told = [int(self.order[0])], [self.table.values[self.order[0]] + self.errors[0]]
        measured = np.zeros(len(points), dtype=np.bool_)
        measured[chosen[0]] = True
        belief.append(chosen[0], told[0])
        for t in range(1, self.horizon + 1):
            if refit and t % REFIT == 0:
                gp = fitted.fit(points[chosen], told)
                belief = GridPosterior.condition(gp, points, chosen, told)
            score = belief.mean + WIDTH(t, size=len(points)) * (belief.var if squared else belief.std)
            chosen.append(argmax(score, rng=stream(self.ties, "ties", t - 1), exclude=measured))
            measured[chosen[-1]] = True
            told.append(self.table.values[chosen[-1]] + self.errors[t])
            belief.append(chosen[-1], told[-1])
        return self._trace(chosen)

    def _trace(self, chosen: Sequence[int] | NDArray[np.intp]) -> Trace:
        regret = self.table.values.max() - np.maximum.accumulate(self.table.values[np.asarray(chosen)])
        trace = Trace(simple_regret=regret[1:])  # entry t: after the first row and t more
        if self.table.unit != 1.0:
            trace.metrics["output_regret"] = np.asarray(self.table.unit * regret[-1])
        return trace


def _fitted(gp: GP) -> GP:
    """The belief with a length-scale to be fitted, everything else as it is."""
    length = float(np.asarray(gp.kernel.lengthscale)) if isinstance(gp.kernel, SE | NoisyInputs) else 1.0
    priors: dict[str, Prior] = {
        "mean": Fixed(),
        "variance": Fixed(),
        "noise": Fixed(),
        "lengthscale": LogNormal.around(length, 1.0),
    }
    return replace(gp, priors=priors)
