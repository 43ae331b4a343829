"""What stopping, and learning the dimension, are worth to BOS² on MNIST."""

from __future__ import annotations

from collections.abc import Mapping

from surefoot_lab import Budget, Metric, Number, Order, Replicate, Trace, experiment
from surefoot_lab.experiments.bos2._images import BAYES, BOS, CHANCE_SIZE, IMAGE, PLAIN, attacks
from surefoot_lab.experiments.bos2._images import over_successes as over
from surefoot_lab.experiments.bos2.mnist import RADIUS
from surefoot_lab.registry import Data

success, queries, capped = Metric("success"), Metric("queries"), Metric("capped")

claims = [
    Number(
        "without stopping: 99 %, and 895, 133.34 and 88 queries (max, mean and median)",
        {success[PLAIN]: 0.99, over(PLAIN, "max"): 895, queries[PLAIN]: 133.34, over(PLAIN, "median"): 88},
        repetitions=450,
        marks="doubtful",
    ),
    Order(
        "the median of the queries is lower with stopping, where both succeed and with failures as the whole budget",
        [queries[BOS] < queries[PLAIN], capped[BOS] < capped[PLAIN]],
        statistic="median",
    ),
    Order(
        "the mean of the queries is lower with stopping, where both succeed and with failures as the whole budget",
        [queries[BOS] < queries[PLAIN], capped[BOS] < capped[PLAIN]],
    ),
    Order(
        "without stopping it still succeeds more often than BayesOpt", success[PLAIN] > success[BAYES], marks="doubtful"
    ),
]


@experiment(
    "bos2/mnist-ablation",
    source="Kharkovskii 2020 (thesis), section 5.3.1, Table 5.2",
    data=Data("published", "mnist"),
    unit=IMAGE,
    quick=Budget(4, pixels="clipped", budget=200, targets=2, architecture="small", epochs=4),
    full=Budget(450, minutes=60, pixels="pressed", budget=900, targets=9, architecture="published"),
    priority=3,
)
def run(replicate: Replicate) -> Mapping[str, Trace]:
    """BOS² with and without stopping, and with random latent sizes, on MNIST."""
    return attacks(replicate, "mnist", RADIUS, (BOS, PLAIN, BAYES, CHANCE_SIZE))
