"""What is proved about TruVaR, measured on draws from the prior; and two printed statements that do not hold.

A repetition is one function on a grid, searched for its maximum and for a level set with the width for which the
theory is a theorem, β_t = 2 log(|D| t² π²/6δ).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot.belief.gp import GP
from surefoot.belief.grid import GridPosterior
from surefoot.belief.kernels import SE
from surefoot.domain import Candidates
from surefoot.loop.widths import RKHS, Finite
from surefoot.policy.levels.truvar import TruVaR
from surefoot_lab import Budget, Exact, Metric, Replicate, Share, Trace, experiment
from surefoot_lab.problems import grid
from surefoot_lab.samples import gp_sample_grid

Array = NDArray[np.float64]

DELTA, NOISE, RATIO, SLACK, LEVEL = 0.1, 0.01, 0.5, 0.1, 0.5
KERNEL = SE(lengthscale=0.25)
MAXIMUM, THRESHOLD = "maximize", "level"
GREEDY, PRINTED, GENERAL = "greedy variances", "printed RKHS width", "general RKHS width"
SIGMA, BOUND, XI, ROUNDS = 0.1, 0.05, 0.1, 30

failed, excess = Metric("failed"), Metric("excess")

claims = [
    Share(
        "with the theoretical width at most 10 % of the runs (δ = 0.1) ever lose a maximizer or misclassify a point",
        [failed[MAXIMUM] <= DELTA, failed[THRESHOLD] <= DELTA],
    ),
    Exact(
        "after epoch i: M within 4(1 + δ̄)η_i of the maximum, undecided points within 2(1 + δ̄)η_i of the threshold",
        [excess[MAXIMUM] <= 0, excess[THRESHOLD] <= 0],
        note="in the runs whose confidence bounds hold",
    ),
    Exact(
        "largest variance after k greedy measurements at most C₁ γ_k/k with C₁ = 1/log(1 + σ⁻²)",
        Metric("variance")[GREEDY] <= Metric("printed_bound")[GREEDY],
        marks=("contradicted",),
        note="1 against 0.5 for independent points; with C₁ = 2/log(1 + σ⁻²) it holds (bound[greedy variances])",
    ),
    Share(
        "the printed RKHS width covers f with probability 0.9 under the posterior regularized by σ²",
        Metric("covered")[PRINTED] >= 1.0 - XI,
        marks=("contradicted",),
        note="σ = 0.1, f = 0, B = 0.05, T = 30; covered[general RKHS width] is that of the general form",
    ),
]


def search(goal: str, replicate: Replicate, rounds: int, side: int) -> Trace:
    """One run of TruVaR with checks of its sets and of the bounds behind them after every round."""
    points, gp = grid([(0.0, 1.0)] * 2, side), GP(KERNEL, noise=NOISE)
    truth = gp_sample_grid(KERNEL, points, replicate.rng("function"))(points)
    given: dict[str, Any] = {} if goal == MAXIMUM else {"threshold": LEVEL}
    domain = Candidates(points)
    policy = TruVaR(
        domain,
        goal=goal,
        gp=gp,
        width=Finite(1.0 - DELTA),
        ratio=RATIO,
        slack=SLACK,
        seed=replicate.integer,
        **given,
    )
    belief, errors, width = GridPosterior(gp, points), replicate.rng("noise"), Finite(1.0 - DELTA)
    wrong, valid, worst, top = False, True, -math.inf, truth == truth.max()
    for t in range(1, rounds + 1):
        query = policy.ask()
        index = domain.index_of(query.x)
        value = float(truth[index] + math.sqrt(NOISE) * errors.standard_normal())
        policy.tell(query, value)
        belief.append(index, value)
        valid &= bool((np.abs(truth - belief.mean) <= width(t + 1, size=len(points)) * belief.std).all())
        inside, done = policy.potential, policy.eta / RATIO  # the target that the last finished epoch has reached
        if goal == MAXIMUM:
            wrong |= not bool(inside[top].all())
            gap = (truth.max() - truth[inside]).max() - 4.0 * (1.0 + SLACK) * done
        else:
            answer: Any = policy.recommend()  # a LevelSet
            wrong |= bool((truth[answer.above] <= LEVEL).any() or (truth[answer.below] >= LEVEL).any())
            gap = np.abs(truth[inside] - LEVEL).max(initial=0.0) - 2.0 * (1.0 + SLACK) * done
        if policy.epoch > 1:
            worst = max(worst, float(gap))
    return Trace(
        failed=wrong, valid=valid, excess=worst if valid and worst > -math.inf else math.nan, epoch=policy.epoch
    )


def greedy(replicate: Replicate) -> Trace:
    """Greedy measurements of independent points: the largest variance left, and both bounds on it."""
    rng = replicate.rng("greedy")
    noise, count = float(10.0 ** rng.uniform(-4.0, 1.0)), int(rng.integers(1, 6))
    belief = GridPosterior(GP(SE(lengthscale=1e-3), noise=noise), np.arange(count + 1.0)[:, None])
    for _ in range(count):
        belief.hallucinate(int(belief.var.argmax()))
    gamma = 0.5 * count * math.log1p(1.0 / noise)  # the largest gain: no two measurements share information
    printed = gamma / math.log1p(1.0 / noise) / count
    return Trace(variance=belief.var.max(), printed_bound=printed, bound=2.0 * printed)


def coverage(replicate: Replicate) -> dict[str, Trace]:
    """Whether the two widths cover f = 0 at all points in all rounds, when points are measured at random."""
    rng, points = replicate.rng("rkhs"), np.linspace(0.0, 1.0, 60)[:, None]
    belief = GridPosterior(GP(SE(lengthscale=0.1), noise=SIGMA**2), points)
    general = RKHS(bound=BOUND, confidence=1.0 - XI)
    covered = {PRINTED: True, GENERAL: True}
    for t in range(ROUNDS + 1):
        gain = belief.information_gain
        widths = {
            PRINTED: BOUND + SIGMA * math.sqrt(2.0 * (gain + math.log(math.e / XI))),  # Lemma 3.6.1 as printed
            GENERAL: general(t + 1, gain=gain),
        }
        for name, width in widths.items():
            covered[name] &= bool((np.abs(belief.mean) <= width * belief.std).all())
        belief.append(int(rng.integers(len(points))), SIGMA * float(rng.standard_normal()))
    return {name: Trace(covered=seen) for name, seen in covered.items()}


@experiment(
    "truvar/properties",
    source="companion; Bogunovic 2019 (thesis), sections 3.3 to 3.6: theorems behind Table 3.1 and Figs 3.1, 3.2",
    unit="drawn function",
    quick=Budget(100, side=10, horizon=40),
    full=Budget(2000, minutes=30, side=14, horizon=60),
)
def run(replicate: Replicate) -> Mapping[str, Trace]:
    """The guarantees of TruVaR on draws from the prior."""
    runs = {goal: search(goal, replicate, replicate["horizon"], replicate["side"]) for goal in (MAXIMUM, THRESHOLD)}
    return {**runs, GREEDY: greedy(replicate), **coverage(replicate)}
