"""BOS² on linear models, whose weakness is known in closed form.

Two classes told apart by one smooth weight per pixel; 28 × 28 pixels, an L∞ ball of 0.1. The best perturbation of every
latent size is a sign pattern, so it is known which instances can be attacked at all.
"""

from __future__ import annotations

from collections.abc import Mapping

from surefoot.attack import BOS2, BlackBox, NormBall
from surefoot.attack.latent_search import RandomLatentSearch
from surefoot_lab import Budget, Exact, Metric, Order, Replicate, Share, Trace, experiment
from surefoot_lab.experiments.bos2._linear import linear_toy

BOS, PLAIN, FIXED, CHANCE = "BOS²", "without stopping", "fixed size", "random"
SIZES = (6, 8, 10, 12, 14, 16, 18)
METHODS = {
    BOS: BOS2(sizes=SIZES),
    PLAIN: BOS2(sizes=SIZES, stopping=False),
    FIXED: BOS2(sizes=SIZES, dimension=10),
    CHANCE: RandomLatentSearch(sizes=SIZES),
}

queries = Metric("capped")

claims = [
    Share(
        "BOS² succeeds on at least 90 % of the instances that the best sign perturbation of some size solves",
        Metric("solved")[BOS] >= 0.9,
        marks="card",
    ),
    Order(
        "the median of its queries is below that of random latent search",
        queries[BOS] < queries[CHANCE],
        statistic="median",
        marks="card",
    ),
    Exact(
        "no perturbation exceeds the ball, the counter is the number of images asked about, the budget is kept",
        [Metric("honest")[name] >= 1 for name in METHODS],
        marks="card",
    ),
    Order(
        "the median of its queries is at most that without stopping",
        queries[BOS] <= queries[PLAIN],
        statistic="median",
        marks="card",
    ),
]


@experiment(
    "bos2/linear-toy",
    source="companion; Kharkovskii 2020 (thesis), chapter 5",
    unit="drawn model",
    quick=Budget(20, budget=200),
    full=Budget(200, minutes=60, budget=900),
)
def run(replicate: Replicate) -> Mapping[str, Trace]:
    """BOS² on linear models with known weakness."""
    toy, budget = linear_toy(replicate.rng("model")), replicate["budget"]
    ball, possible = NormBall(toy.radius), toy.attackable(SIZES)
    traces = {}
    for name, method in METHODS.items():
        box = BlackBox(toy.scores, logits=True)
        result = method.run(box, toy.image, 1, label=0, ball=ball, budget=budget, seed=replicate.integer)
        honest = (
            result.queries == box.queries == len(result.trace) <= budget
            and bool(ball.contains(result.perturbation[None])[0])
            and result.success == bool(toy.scores(result.adversarial[None])[0, 1] > 0.0)
        )
        traces[name] = Trace(
            capped=result.capped(budget),
            success=result.success,
            # What nothing can solve says nothing about a method.
            solved=float(result.success) if possible else float("nan"),
            honest=honest,
            rounds=len(result.rounds),
            given_up=sum(r.stopped for r in result.rounds),
        )
    return traces
