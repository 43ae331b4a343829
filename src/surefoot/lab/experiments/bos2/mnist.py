"""BOS² against a network on MNIST, beside the published table.

An L∞ ball of 0.3, 900 queries, every image against all nine other classes. The network is trained here on 10,000
images, so that only orders and rough sizes can agree with the published numbers.
"""

from __future__ import annotations

from collections.abc import Mapping

from surefoot.lab import Budget, Metric, Number, Order, Replicate, Trace, experiment
from surefoot.lab.experiment import Data
from surefoot.lab.experiments.bos2._images import AUTO, BAYES, BOS, GEN, PLAIN, RANDOM, SQUARE, ZOO_, attacks
from surefoot.lab.experiments.bos2._images import over_successes as over

RADIUS = 0.3
QUICK = (BOS, BAYES, GEN, SQUARE, ZOO_, AUTO, RANDOM)
ALL = (BOS, PLAIN, BAYES, GEN, SQUARE, ZOO_, AUTO, RANDOM)

success, queries, capped = Metric("success"), Metric("queries"), Metric("capped")

claims = [
    Number(
        "success rate: BOS² 99 %, GenAttack 64 %, ZOO 1 %, AutoZOOM 1 %, BayesOpt 98 %",
        {success[BOS]: 0.99, success[GEN]: 0.64, success[ZOO_]: 0.01, success[AUTO]: 0.01, success[BAYES]: 0.98},
        repetitions=450,
    ),
    Number(
        "max, mean and median of the queries of successful attacks",
        {
            over(BOS, "max"): 897,
            queries[BOS]: 108.75,
            over(BOS, "median"): 63,
            over(GEN, "max"): 881,
            queries[GEN]: 428.66,
            over(GEN, "median"): 396,
            over(BAYES, "max"): 817,
            queries[BAYES]: 116.99,
            over(BAYES, "median"): 79,
        },
        repetitions=450,
        marks="doubtful",
        note="over successful attacks only; a maximum and a median have no interval here",
    ),
    Order("BOS² succeeds more often than BayesOpt", success[BOS] > success[BAYES], marks="doubtful"),
    Order(
        "the median of BOS²'s queries is below BayesOpt's, where both succeed and with failures as the whole budget",
        [queries[BOS] < queries[BAYES], capped[BOS] < capped[BAYES]],
        statistic="median",
    ),
    Order(
        "the mean of BOS²'s queries is below BayesOpt's, where both succeed",
        queries[BOS] < queries[BAYES],
        marks="doubtful",
    ),
    Order(
        "BOS² succeeds more often than GenAttack, ZOO and AutoZOOM",
        [success[BOS] > success[name] for name in (GEN, ZOO_, AUTO)],
    ),
    Number(
        "max, mean and median of the queries of ZOO and AutoZOOM",
        {
            over(ZOO_, "max"): 95,
            queries[ZOO_]: 65.88,
            over(ZOO_, "median"): 67,
            over(AUTO, "max"): 77,
            queries[AUTO]: 72.5,
            over(AUTO, "median"): 72.5,
        },
        repetitions=450,
        marks="contradicted",
        note="one step of ZOO is 256 queries: the printed numbers look like steps",
    ),
]


@experiment(
    "bos2/mnist",
    source="Kharkovskii 2020 (thesis), section 5.3.1, Table 5.1",
    data=Data("published", "mnist"),
    quick=Budget(6, budget=200, targets=2, architecture="small"),
    full=Budget(450, minutes=60, budget=900, targets=9, architecture="published"),
    priority=3,
)
def run(replicate: Replicate) -> Mapping[str, Trace]:
    """BOS² and its rivals against a network on MNIST."""
    return attacks(replicate, "mnist", RADIUS, ALL if replicate["targets"] == 9 else QUICK)
