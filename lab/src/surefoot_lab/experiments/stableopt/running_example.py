"""One narrow high peak, one broad lower one, perturbations of 0.06: where do GP-UCB and StableOpt end up?

The published picture does not give its function; this one is 2 exp(−((x − 0.25)/0.04)²) + 1.2 exp(−((x − 0.7)/0.12)²),
whose robust maximizer is on the broad peak.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from surefoot.belief.gp import GP
from surefoot.belief.kernels import SE
from surefoot.domain import Candidates
from surefoot.domain.perturbation import Ball
from surefoot.loop.policy import Policy
from surefoot.policy.robust.stable_opt import StableOpt
from surefoot.policy.ucb.gp_ucb import GPUCB
from surefoot_lab import Budget, Metric, Order, Replicate, Share, Trace, experiment
from surefoot_lab.experiments.stableopt._robust import STABLE, UCB, WIDTH, race, reach

X = np.linspace(0.0, 1.0, 201)
VALUES = 2.0 * np.exp(-(((X - 0.25) / 0.04) ** 2)) + 1.2 * np.exp(-(((X - 0.7) / 0.12) ** 2))
EPSILON, NOISE = 0.06, 1e-4
NARROW = (0.25 - 0.06, 0.25 + 0.06)
PRIOR = GP(SE(lengthscale=0.07), noise=NOISE)

R, near = Metric("robust_regret"), Metric("near_narrow_peak")

claims = [
    Share(
        "StableOpt's choice is the robust maximizer within 15 rounds in most runs",
        Metric("found_by_15")[STABLE] >= 0.5,
        marks=("card",),
        note="within 5 % of the range of the robust optimum",
    ),
    Order(
        "GP-UCB's samples cluster at the narrow peak by t = 20, and its robust regret stays above StableOpt's",
        [near[UCB].over(16, 20) > 0.5, R[UCB].at(20) > R[STABLE].at(20)],
    ),
]


@experiment(
    "stableopt/running-example",
    source="Bogunovic 2019 (thesis), Figs 1.2, 4.1, 4.2 (own function: the published one is not given)",
    unit="run on the given function",
    quick=Budget(20, horizon=20),
    full=Budget(1000, minutes=10, horizon=20),
    priority=2,
)
def run(replicate: Replicate) -> Mapping[str, Trace]:
    """A narrow and a broad peak on a line."""
    line, ball, seed = Candidates(X), Ball(EPSILON), replicate.integer
    policies: dict[str, Policy] = {
        STABLE: StableOpt(line, perturbation=ball, gp=PRIOR, width=WIDTH, seed=seed),
        UCB: GPUCB(line, gp=PRIOR, width=WIDTH, seed=seed),
    }
    traces = race(policies, VALUES, reach(line, ball), replicate["horizon"], replicate, initial=2, noise=NOISE)
    for name, policy in policies.items():
        measured = np.array([query.x[0] for query in policy.queries])
        traces[name].metrics["near_narrow_peak"] = ((measured > NARROW[0]) & (measured < NARROW[1])).astype(np.float64)
        early = traces[name]["robust_regret"][:15]
        traces[name].metrics["found_by_15"] = np.asarray(early.min() <= 0.05 * np.ptp(VALUES), dtype=np.float64)
    return traces
