"""Precision for sale: three noise levels at three prices, and a rule that may mix them.

A repetition is a function drawn from the prior whose maximum exceeds the threshold, and a random first point. F1 is
read along a common axis of money.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from surefoot.belief.gp import GP
from surefoot.belief.kernels import SE
from surefoot.domain import Candidates
from surefoot.loop.types import Query
from surefoot.policy.levels.level_set import GPLSE
from surefoot.policy.levels.prices import Fidelity
from surefoot.policy.levels.truvar import TruVaR
from surefoot_lab import Budget, Equal, Metric, Order, Replicate, Trace, Trend, experiment, falls, highest
from surefoot_lab.experiments.truvar._levels import GCHK, TRUVAR, Survey, survey
from surefoot_lab.problems import Problem, grid
from surefoot_lab.readings import Series
from surefoot_lab.samples import gp_sample_lattice

KERNEL, THRESHOLD = SE(lengthscale=0.1), 2.25
NOISES, PRICES = (1e-6, 1e-3, 0.05), (15.0, 10.0, 2.0)
LEVELS = [f"{GCHK}, noise {noise:g}" for noise in NOISES]
CURVE = 40

area, f1, level = Metric("area"), Metric("f1"), Metric("log_noise")


def _quarter(k: int) -> Series:
    """Mean of log10 noise over the k-th quarter of a run."""

    def part(series: np.ndarray) -> float:
        found = np.array_split(series, 4)[k - 1]
        return float(found.mean()) if found.size else np.nan

    return level[TRUVAR].reduced(part, f"in quarter {k}")


claims = [
    Order(
        "area under F1 against cost: TruVaR above the best single-noise GP-LSE",
        highest(area[TRUVAR], [area[name] for name in LEVELS]),
    ),
    Order(
        "TruVaR above all three at every quarter of the cost axis",
        [f1[TRUVAR].part(q) > f1[name].part(q) for q in (0.25, 0.5, 0.75, 1.0) for name in LEVELS],
        marks=("doubtful",),
    ),
    Equal(
        "TruVaR spends between 20 % and 47 % on each noise level",
        [(Metric(f"share_{k}")[TRUVAR], 0.335) for k in range(3)],
        margin=0.135,
        note='"roughly equal"',
    ),
    Trend("the chosen noise level falls over a run", falls(*[_quarter(k) for k in (1, 2, 3, 4)])),
    Order(
        "GP-LSE with noise 1e-6 is good early, with 0.05 good late",
        [f1[LEVELS[0]].part(0.25) > f1[LEVELS[2]].part(0.25), f1[LEVELS[2]].part(1.0) > f1[LEVELS[0]].part(1.0)],
        marks=("contradicted",),
        note="the costs, and the sentence before it, say the reverse",
    ),
]


def draw(replicate: Replicate, side: int) -> Problem:
    """The first draw from the prior, by attempt, whose maximum exceeds the threshold."""
    axis, attempt = np.linspace(0.0, 1.0, side), 0
    while True:
        problem = gp_sample_lattice(KERNEL, [axis, axis], replicate.rng("function", attempt))
        if problem.optimum > THRESHOLD:
            return problem
        attempt += 1


def _trace(done: Survey, noises: tuple[float, ...], prices: tuple[float, ...], budget: float) -> Trace:
    curve = done.along(np.linspace(0.0, budget, CURVE + 1)[1:])
    chosen = np.array(done.fidelity, dtype=np.intp)
    spent = np.bincount(chosen, weights=np.array(prices)[chosen], minlength=len(prices))
    shares = {f"share_{k}": part for k, part in enumerate(spent / spent.sum())}
    half = curve[: CURVE // 2].mean()
    return Trace(f1=curve, area=curve.mean(), area_of_half=half, log_noise=np.log10(np.array(noises)[chosen]), **shares)


@experiment(
    "truvar/noise-levels",
    source="Bogunovic 2019 (thesis), Figs 3.3c and 3.4; Bogunovic, Scarlett, Krause, Cevher 2016",
    unit="drawn function",
    quick=Budget(9, side=40, budget=800.0),
    full=Budget(200, minutes=80, side=50, budget=1000.0),
)
def run(replicate: Replicate) -> Mapping[str, Trace]:
    """A level set mapped with precision that can be bought."""
    problem, budget, seed = draw(replicate, replicate["side"]), replicate["budget"], replicate.integer
    points = grid([(0.0, 1.0)] * 2, replicate["side"])
    domain, values = Candidates(points), problem(points)
    start = int(replicate.rng("start").integers(len(points)))
    rounds = int(budget / min(PRICES)) + 1

    def drive(policy: TruVaR | GPLSE, noises: tuple[float, ...], prices: tuple[float, ...]) -> Trace:
        def price(previous: int, query: Query) -> float:
            return prices[query.fidelity or 0]

        gp, errors = GP(KERNEL, noise=noises[0]), replicate.rng("noise")
        limits = {"rounds": rounds, "budget": budget, "price": price}
        return _trace(
            survey(policy, gp, values, THRESHOLD, start, noises=noises, errors=errors, **limits),
            noises,
            prices,
            budget,
        )

    offered = tuple(Fidelity(noise, price) for noise, price in zip(NOISES, PRICES, strict=True))
    mixing = TruVaR(
        domain,
        goal="level",
        threshold=THRESHOLD,
        fidelities=offered,
        gp=GP(KERNEL, noise=NOISES[0]),
        among="potential",
        seed=seed,
    )
    traces = {TRUVAR: drive(mixing, NOISES, PRICES)}
    for name, noise, price in zip(LEVELS, NOISES, PRICES, strict=True):
        policy = GPLSE(domain, threshold=THRESHOLD, gp=GP(KERNEL, noise=noise), seed=seed)
        traces[name] = drive(policy, (noise,), (price,))
    return traces
