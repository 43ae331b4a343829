"""What stopping is worth to BOS² on CIFAR-10."""

from __future__ import annotations

from collections.abc import Mapping

from surefoot_lab import Budget, Equal, Metric, Number, Order, Replicate, Trace, experiment
from surefoot_lab.experiments.bos2._images import BAYES, BOS, IMAGE, PLAIN, attacks
from surefoot_lab.experiments.bos2._images import over_successes as over
from surefoot_lab.experiments.bos2.cifar10 import RADIUS
from surefoot_lab.registry import Data

success, queries = Metric("success"), Metric("queries")

claims = [
    Number(
        "without stopping: 83 %, and 896, 248.03 and 181 queries (max, mean and median)",
        {success[PLAIN]: 0.83, over(PLAIN, "max"): 896, queries[PLAIN]: 248.03, over(PLAIN, "median"): 181},
        repetitions=180,
        marks="doubtful",
    ),
    Order(
        "the median of the queries is lower with stopping, where both succeed",
        queries[BOS] < queries[PLAIN],
        statistic="median",
        marks="doubtful",
    ),
    Equal(
        "the means of the queries agree within 5 %, where both succeed", (queries[BOS], queries[PLAIN]), relative=0.05
    ),
    Order(
        "without stopping it still succeeds more often than BayesOpt", success[PLAIN] > success[BAYES], marks="doubtful"
    ),
]


@experiment(
    "bos2/cifar10-ablation",
    source="Kharkovskii 2020 (thesis), section 5.3.2, Table 5.4",
    data=Data("published", "cifar10"),
    unit=IMAGE,
    quick=Budget(4, pixels="clipped", budget=100, targets=2, architecture="small", epochs=2),
    full=Budget(180, minutes=60, pixels="pressed", budget=900, targets=9, architecture="small"),
    priority=3,
)
def run(replicate: Replicate) -> Mapping[str, Trace]:
    """BOS² with and without stopping on CIFAR-10."""
    return attacks(replicate, "cifar10", RADIUS, (BOS, PLAIN, BAYES))
