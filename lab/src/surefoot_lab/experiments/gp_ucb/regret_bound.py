"""The guarantee of GP-UCB, measured.

Srinivas, Krause, Kakade and Seeger 2010, Theorem 1: on a finite domain, with the true prior and
β_t = 2 log(|D| t² π²/6δ), with probability at least 1 − δ for all T

    R_T ≤ √(C₁ T β_T γ_T),   C₁ = 8/log(1 + σ⁻²),   γ_T the largest information gain of T measurements.

γ_T is bounded from above by what greedy selection gains, divided by 1 − 1/e (submodularity). The proof goes through the
information that the measurements really carried, which gives a sharper bound (C2), and through confidence bands that
cover the whole function in every round (C3).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from surefoot.belief.gp import GP
from surefoot.belief.grid import GridPosterior
from surefoot.belief.kernels import SE
from surefoot.domain import Candidates
from surefoot.loop.widths import Finite
from surefoot.policy.ucb.gp_ucb import GPUCB
from surefoot_lab import Budget, Exact, Metric, Replicate, Share, Trace, Trend, experiment, falls
from surefoot_lab.problems import grid
from surefoot_lab.samples import gp_sample_grid

CONFIDENCE = 0.9
KERNEL, NOISE = SE(lengthscale=0.2), 0.01
_E = 1 - 1 / np.e

U = "GP-UCB"
claims = [
    Share("R_t ≤ √(C₁ t β_t γ_t) for all t in at least 90 % of the runs", Metric("bounded")[U] >= CONFIDENCE),
    Share("the same with the information really gained", Metric("bounded_by_gain")[U] >= CONFIDENCE),
    Share("μ ± β^(1/2) σ covers f everywhere in every round", Metric("covered")[U] >= CONFIDENCE),
    Exact("4 Σ σ_t²(x_t) ≤ C₁ I(y; f) in every run", Metric("variance_sum")[U] <= Metric("gain_bound")[U]),
    Trend("the average regret falls", falls(*[Metric("average_regret")[U].part(q / 5) for q in range(1, 6)])),
]


def largest_gain(gp: GP, points: np.ndarray, horizon: int) -> np.ndarray:
    """Upper bounds on γ_1, ..., γ_T: the gain of greedy variance reduction over 1 − 1/e."""
    belief = GridPosterior(gp, points)
    gains = []
    for _ in range(horizon):
        belief.hallucinate(int(belief.var.argmax()))
        gains.append(belief.information_gain)
    return np.array(gains) / _E


@experiment(
    "gp-ucb/regret-bound",
    source="Srinivas, Krause, Kakade, Seeger: Gaussian process optimization in the bandit setting (2010), Theorem 1",
    unit="drawn function",
    quick=Budget(60, side=15, horizon=60),
    full=Budget(1000, minutes=60, side=25, horizon=200),
)
def run(replicate: Replicate) -> Mapping[str, Trace]:
    """GP-UCB's regret bound holds on draws from the prior."""
    horizon, gp = replicate["horizon"], GP(KERNEL, noise=NOISE)
    points = grid([(0.0, 1.0)] * 2, replicate["side"])
    problem = gp_sample_grid(KERNEL, points, replicate.rng("function"), noise=NOISE)
    domain, truth = Candidates(points), problem(points)
    policy = GPUCB(domain, gp=gp, width=Finite(CONFIDENCE), seed=replicate.integer)
    belief, noise = GridPosterior(gp, points, capacity=horizon), replicate.rng("noise")
    regret, widths, variances, gains, covered = [], [], [], [], True
    for t in range(1, horizon + 1):
        query = policy.ask()
        width = policy.width(t, size=len(points))
        covered &= bool((np.abs(truth - belief.mean) <= width * belief.std).all())
        i: Any = query.index  # every point is a candidate
        variances.append(belief.var[i])
        value = problem.measure(query.x, noise)
        policy.tell(query, value)
        belief.append(i, value)
        regret.append(problem.optimum - truth[i])
        widths.append(width)
        gains.append(belief.information_gain)
    total, steps = np.cumsum(regret), np.arange(1, horizon + 1)
    constant = 8 / np.log1p(1 / NOISE)
    scale = constant * steps * np.square(widths)
    bound, sharp = np.sqrt(scale * largest_gain(gp, points, horizon)), np.sqrt(scale * np.array(gains))
    return {
        U: Trace(
            cumulative_regret=total,
            average_regret=total / steps,
            bounded=(total <= bound).all(),
            bounded_by_gain=(total <= sharp).all(),
            covered=covered,
            variance_sum=4 * np.sum(variances),
            gain_bound=constant * gains[-1],
        ),
        "bound": Trace(cumulative_regret=bound, average_regret=bound / steps),
        "bound from the gain": Trace(cumulative_regret=sharp, average_regret=sharp / steps),
    }
