"""A batch of a hundred measurements of which more and more may fail."""

from __future__ import annotations

from collections.abc import Mapping

from surefoot_lab import Budget, Equal, Replicate, Trace, Trend, experiment, falls
from surefoot_lab.experiments.oblivious_greedy._removal import GREEDY, HALF, OBLIVIOUS, OG, left, removed
from surefoot_lab.experiments.oblivious_greedy._variance import reduction

K, ALPHA = 100, 0.2
TAUS = (5, 20, 40, 60)
NAMES = (HALF, OG, GREEDY, OBLIVIOUS)

claims = [
    Equal("small τ: OBLIVIOUS-GREEDY equals GREEDY", (left(HALF, 5, K), left(GREEDY, 5, K)), relative=0.02),
    Trend(
        "GREEDY falls faster as τ grows",
        falls(*[left(GREEDY, tau, K) / left(HALF, tau, K) for tau in TAUS]),
        note="what GREEDY keeps as a share of what OBLIVIOUS-GREEDY keeps",
    ),
]


@experiment(
    "oblivious-greedy/variance-reduction-tau",
    source="Bogunovic, Zhao and Cevher 2018; Bogunovic 2019 (thesis), Fig. 7.5d",
    unit="draw of points",
    quick=Budget(2, taus=TAUS, points=600, restarts=10),
    full=Budget(20, minutes=30, taus=tuple(range(5, 61, 5)), points=600, restarts=10),
)
def run(replicate: Replicate) -> Mapping[str, Trace]:
    """Measurements that inform about a process, growing numbers of failures."""
    f = reduction(replicate, ALPHA, replicate["points"])
    settings = [(tau, K) for tau in replicate["taus"]]
    return removed(f, NAMES, settings, replicate, restarts=replicate["restarts"])
