"""Whoever knows d + 1 rows of a table knows all of it, if the published projection was released.

Neighboring tables are told apart with certainty: the columns of a release span those of the table. Neither is so for
rows with Gaussian noise.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from surefoot.errors import MissingData
from surefoot.private.accounting import gaussian_scale
from surefoot.private.audit import reconstruct
from surefoot.private.mechanisms import GaussianRelease
from surefoot.private.projection import PublishedProjection, singular_values
from surefoot_lab import Budget, Exact, Metric, Order, Replicate, Trace, experiment
from surefoot_lab.experiments.po_gp_ucb import _records
from surefoot_lab.experiments.po_gp_ucb._outsourced import RADIUS, to_norm

Array = NDArray[np.float64]

R, DELTA = 30, 1e-5
EPSILONS = (0.1, 3.0, 1000.0)
SIZES = {"2000 x 3": (2000, 3), "500 x 20": (500, 20)}
RECORDS = {"loans": _records.loans, "houses": _records.houses}  # shown where the data are there
SCALES = {(1.0, 1e-5): 3.731, (math.exp(1.1), 1e-5): 1.389, (math.exp(2.3), 1e-3): 0.407}
SCALES |= {(math.exp(2.8), 1e-4): 0.311, (math.exp(2.9), 1e-5): 0.312}

projected = {(name, e): f"projection of {name}, ε = {e:g}" for name in (*SIZES, *RECORDS) for e in EPSILONS}
noisy = {name: f"Gaussian release of {name}" for name in (*SIZES, *RECORDS)}
synthetic = [method for (name, _), method in projected.items() if name in SIZES]
analytic = {pair: f"scale at ε = {pair[0]:.3g}, δ = {pair[1]:g}" for pair in SCALES}

error, inside, outside = Metric("error"), Metric("residual"), Metric("neighbor_residual")

claims = [
    Exact(
        "the release is (ε, δ)-differentially private: d + 1 known rows do not reveal the others to nine digits",
        [error[method] > 1e-9 for method in synthetic],
        marks=("contradicted",),
        note="largest error of any number of any row over the largest number, lifted and not, at ε = 0.1, 3 and 1000",
    ),
    Exact(
        "the release lies in the column space of its own table (1e-12), and not in that of a neighbor (1e-4)",
        [test for method in synthetic for test in (inside[method] < 1e-12, outside[method] > 1e-4)],
        marks=("reproduced", "card"),
    ),
    Order(
        "the same attack on a Gaussian release errs by a quarter of its noise at least",
        [Metric("error_over_noise")[noisy[name]] > 0.25 for name in SIZES],
        marks=("card",),
        exact=True,
    ),
    Exact(
        "analytic Gaussian scales of unit sensitivity: 3.731, 1.389, 0.407, 0.311, 0.312",
        {Metric("scale")[analytic[pair]]: value for pair, value in SCALES.items()},
        tolerance=5e-4,
        marks=("reproduced", "card"),
    ),
]


@experiment(
    "po-gp-ucb/reconstruction",
    source="companion: tests the privacy theorem of Kharkovskii, Dai, Low 2020 (Theorem 1)",
    unit="drawn table and release",
    quick=Budget(5),
    full=Budget(100, minutes=10),
)
def run(replicate: Replicate) -> Mapping[str, Trace]:
    """Reconstruction of a table from d + 1 known rows and its release."""
    rng = replicate.rng("rows")
    found = {name: to_norm(rng.standard_normal(size))[0] for name, size in SIZES.items()}
    for name, records in RECORDS.items():
        try:
            found[name] = records().rows
        except MissingData:
            continue
    traces = {}
    for name, rows in found.items():
        known = replicate.rng(f"known {name}").choice(len(rows), rows.shape[1] + 1, replace=False)
        for epsilon in EPSILONS:
            traces[projected[name, epsilon]] = attack(rows, known, epsilon, replicate)
        mechanism = GaussianRelease(epsilon=3.0, delta=DELTA, radius=RADIUS * (1.0 + 1e-9), calibration="analytic")
        blurred = mechanism.research(replicate.index)
        guess = reconstruct(blurred.transform(rows), rows[known], known).rows
        off = float(np.sqrt(np.mean(np.square(guess - rows)))) / blurred.noise_scale
        traces[noisy[name]] = Trace(error=_relative(guess, rows), error_over_noise=off)
    if replicate.index == 0:
        for pair, method in analytic.items():
            traces[method] = Trace(scale=gaussian_scale(*pair))
    return traces


def attack(rows: Array, known: NDArray[np.intp], epsilon: float, replicate: Replicate) -> Trace:
    """Release the rows, reconstruct them, and look which column space the release lies in."""
    mechanism = PublishedProjection(epsilon=epsilon, delta=DELTA, dimension=R)
    released = mechanism.project(rows, replicate.rng("projection").standard_normal((rows.shape[1], R)))
    rng, neighbor = replicate.rng("neighbor"), rows.copy()
    step = rng.standard_normal(rows.shape[1])
    neighbor[int(rng.integers(len(rows)))] += step / np.linalg.norm(step)
    return Trace(
        error=_relative(reconstruct(released, rows[known], known).rows, rows),
        lifted=singular_values(rows)[-1] < mechanism.omega,
        residual=_outside(released, rows),
        neighbor_residual=_outside(released, neighbor),
    )


def _relative(guess: Array, rows: Array) -> float:
    return float(np.abs(guess - rows).max() / np.abs(rows).max())


def _outside(released: Array, rows: Array) -> float:
    """The share of a release outside the column space of the centered rows."""
    Q = np.linalg.qr(rows - rows.mean(axis=0))[0]
    return float(np.linalg.norm(released - Q @ (Q.T @ released)) / np.linalg.norm(released))
