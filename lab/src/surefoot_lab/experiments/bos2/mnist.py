"""BOS² against a network on MNIST, beside the published table.

An L∞ ball of 0.3, 900 queries, every image against all nine other classes. The network is trained here on 10,000
images, so that only orders and rough sizes can agree with the published numbers.
"""

from __future__ import annotations

from collections.abc import Mapping

from surefoot_lab import Budget, Order, Replicate, Trace, experiment
from surefoot_lab.experiments.bos2._images import AUTO, BAYES, BOS, GEN, IMAGE, PLAIN, RANDOM, SQUARE, ZOO_, attacks
from surefoot_lab.experiments.bos2._table import Row, beside, queries
from surefoot_lab.registry import Data

RADIUS = 0.3
QUICK = (BOS, BAYES, GEN, SQUARE, ZOO_, AUTO, RANDOM)
ALL = (BOS, PLAIN, BAYES, GEN, SQUARE, ZOO_, AUTO, RANDOM)

TABLE = {
    BOS: Row(0.99, 897, 108.75, 63),
    GEN: Row(0.64, 881, 428.66, 396),
    ZOO_: Row(0.01, 95, 65.88, 67),
    AUTO: Row(0.01, 77, 72.5, 72.5),
    BAYES: Row(0.98, 817, 116.99, 79),
}

claims = beside(
    TABLE,
    450,
    mean=Order(
        "the mean of BOS²'s queries is below BayesOpt's, where both succeed",
        queries[BOS] < queries[BAYES],
        marks="doubtful",
    ),
)


@experiment(
    "bos2/mnist",
    source="Kharkovskii 2020 (thesis), section 5.3.1, Table 5.1",
    data=Data("published", "mnist"),
    unit=IMAGE,
    quick=Budget(6, pixels="clipped", budget=200, targets=2, architecture="small", epochs=4),
    full=Budget(450, minutes=60, pixels="pressed", budget=900, targets=9, architecture="published"),
    priority=3,
)
def run(replicate: Replicate) -> Mapping[str, Trace]:
    """BOS² and its rivals against a network on MNIST."""
    return attacks(replicate, "mnist", RADIUS, ALL if replicate["targets"] == 9 else QUICK)
