"""Which images stand for all when any seven are deleted: growing budgets."""

from __future__ import annotations

from collections.abc import Mapping

from surefoot_lab import Budget, Data, Order, Replicate, Trace, Unit, experiment
from surefoot_lab.experiments.pro._images import exemplars
from surefoot_lab.experiments.pro._sweep import GREEDY, OSU, PRO, above, over_k, raw

TAU = 7
KS = (50, 100)

claims = [
    Order(
        "raw value: GREEDY highest",
        [raw(GREEDY, k) > raw(name, k) for k in KS for name in (PRO, OSU)],
    ),
    Order("after removal: GREEDY slightly above PRO", above(GREEDY, PRO, KS), note="the value is evenly spread"),
    Order("after removal: PRO > OSU", above(PRO, OSU, KS)),
]


@experiment(
    "pro/tiny10k-k",
    source="Bogunovic 2019 (thesis), Fig. 6.2e",
    data=Data("substitute", ("cifar10",), instead_of="Tiny-10k"),
    unit=Unit.single("collection of images"),
    quick=Budget(4, ks=KS, images=2000, clients=1000),
    full=Budget(10, minutes=90, ks=tuple(range(50, 101, 10)), images=10_000, clients=2000),
)
def run(replicate: Replicate) -> Mapping[str, Trace]:
    """Exemplars of small images, seven deletions by the greedy adversary, growing budgets."""
    return over_k(exemplars(replicate, replicate["images"], replicate["clients"]), replicate["ks"], TAU)
