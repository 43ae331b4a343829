"""Attacks on the coordinator's mechanism: does the claimed loss survive, and what if the sample were seen?"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from surefoot.federated import Weighting, effective_multiplier
from surefoot.federated.aggregate import aggregate
from surefoot.private.accounting import GaussianEvent, epsilon
from surefoot.private.audit import lower_bound
from surefoot.private.noise import ResearchNoise
from surefoot_lab import Budget, Exact, Metric, Order, Replicate, Trace, experiment

Array = NDArray[np.float64]

AGENTS, LENGTH, P, Q, Z, CLIP = 8, 4, 2, 0.1, 0.5, 1.0
DELTA = 0.01
WEIGHTS = Weighting(high=1.0).weights(0, np.arange(AGENTS) % P, P)
DEVIATIONS = Z * WEIGHTS.max(axis=1) * CLIP * P**0.5 / Q
SHIFT = WEIGHTS[:, 0] * CLIP / Q  # what agent 0 adds to the first coordinate of each sub-region's vector
BLOCK = 50_000

bound, claim, value = Metric("bound"), Metric("claim"), Metric("value")
DIRECTIONS = ("first sub-region", "joint")

claims = [
    Order(
        "the empirical lower bound on ε (95 %) stays below the accountant's value, along both directions",
        [bound[name] < claim[name] for name in DIRECTIONS],
        marks=("card",),
        exact=True,
    ),
    Order(
        "with an exposed sample the bound exceeds the accountant's value: the amplification is lost",
        bound["exposed sample"] > claim["exposed sample"],
        marks=("card",),
        exact=True,
    ),
    Exact(
        "an empty sample releases noise with the usual law: spread over the stated one",
        {value["empty sample"]: 1.0},
        tolerance=0.01,
        marks=("card",),
    ),
]


@experiment(
    "dp-fts-de/audit",
    source="companion",
    unit="audit",
    quick=Budget(1, draws=20_000, rounds=1),
    full=Budget(4, minutes=60, draws=1_000_000, rounds=5),
)
def run(replicate: Replicate) -> Mapping[str, Trace]:
    """One agent is there or not: what broadcasts tell, with the sample secret, exposed, and empty."""
    rounds, noise = replicate["rounds"], ResearchNoise((replicate.integer, 0))
    stated = epsilon(GaussianEvent(effective_multiplier(Z, WEIGHTS), sampling=Q, count=rounds), DELTA)
    traces = {}
    for name, which in (("first sub-region", [0]), ("joint", [0, 1])):
        out, there = (_scores(there, which, Q, replicate, noise) for there in (False, True))
        traces[name] = Trace(bound=lower_bound(out, there, DELTA, 0.95).epsilon, claim=stated)
    # Who sees the sample looks only at rounds in which agent 0 would be in it: there it is always counted.
    out, there = (_scores(there, [0, 1], 1.0, replicate, noise) for there in (False, True))
    traces["exposed sample"] = Trace(bound=lower_bound(out, there, DELTA, 0.95).epsilon, claim=stated)
    empty = _releases(np.zeros((AGENTS, LENGTH)), Q, BLOCK, noise) / DEVIATIONS[:, None]
    traces["empty sample"] = Trace(value=float(empty.std()))
    return traces


def _releases(vectors: Array, q: float, trials: int, noise: ResearchNoise) -> Array:
    """Broadcasts (trials, P, LENGTH); q = 1 counts everybody but keeps the scale of the sampled mechanism."""
    scaled = vectors if q < 1.0 else vectors / Q
    limit = CLIP if q < 1.0 else CLIP / Q
    return aggregate(
        scaled, WEIGHTS, limit=limit, noise=noise, deviations=DEVIATIONS, sampling=q, trials=trials
    )  # fmt: skip


def _scores(there: bool, which: list[int], q: float, replicate: Replicate, noise: ResearchNoise) -> Array:
    """The log-likelihood ratio of so many runs, from the vectors of some sub-regions."""
    vectors = np.zeros((AGENTS, LENGTH))
    vectors[0, 0] = CLIP * there
    total = np.zeros(replicate["draws"])
    for start in range(0, total.size, BLOCK):
        rows = slice(start, min(start + BLOCK, total.size))
        for _ in range(replicate["rounds"]):
            seen = _releases(vectors, q, rows.stop - rows.start, noise)[:, which, 0]
            shift, deviation = SHIFT[which], DEVIATIONS[which]
            ratio = ((seen - 0.5 * shift) * shift / deviation**2).sum(axis=1)
            total[rows] += ratio if q == 1.0 else np.logaddexp(np.log1p(-Q), np.log(Q) + ratio)
    return total
