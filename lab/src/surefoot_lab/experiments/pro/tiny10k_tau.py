"""Which images stand for all: a hundred of them, growing numbers of deletions."""

from __future__ import annotations

from collections.abc import Mapping

from surefoot_lab import Budget, Data, Order, Replicate, Trace, Unit, experiment
from surefoot_lab.experiments.pro._images import exemplars
from surefoot_lab.experiments.pro._sweep import GREEDY, OSU, PRO, above, over_tau

K = 100
TAUS = (3, 6, 9)

claims = [
    Order("after removal: GREEDY slightly above PRO", above(GREEDY, PRO, TAUS)),
    Order("after removal: PRO > OSU", above(PRO, OSU, TAUS)),
]


@experiment(
    "pro/tiny10k-tau",
    source="Bogunovic 2019 (thesis), Fig. 6.2f",
    data=Data("substitute", ("cifar10",), instead_of="Tiny-10k"),
    unit=Unit.single("collection of images"),
    quick=Budget(4, taus=TAUS, images=2000, clients=1000),
    full=Budget(10, minutes=90, taus=tuple(range(1, 11)), images=10_000, clients=2000),
)
def run(replicate: Replicate) -> Mapping[str, Trace]:
    """Exemplars of small images, growing numbers of deletions by the greedy adversary."""
    return over_tau(exemplars(replicate, replicate["images"], replicate["clients"]), K, replicate["taus"])
