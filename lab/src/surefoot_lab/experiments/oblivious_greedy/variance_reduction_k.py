"""A batch of measurements of which fifty may fail: growing batches, points more and less alike."""

from __future__ import annotations

from collections.abc import Mapping

from surefoot_lab import Budget, Order, Replicate, Trace, experiment, highest
from surefoot_lab.experiments.oblivious_greedy._removal import GREEDY, HALF, OBLIVIOUS, OG, left, removed
from surefoot_lab.experiments.oblivious_greedy._variance import reduction
from surefoot_lab.readings import Comparison, Reading, derived

TAU = 50
KS, ALPHAS = (60, 80, 100), (0.1, 0.2, 0.3)
NAMES = (HALF, OG, GREEDY, OBLIVIOUS)


def mark(alpha: float, start: str = "stationary") -> str:
    """What the numbers of one design are marked with."""
    return f"_a{round(10 * alpha)}{'' if start == 'stationary' else '_zero'}"


def best(k: int, alpha: float) -> list[Comparison]:
    """OBLIVIOUS-GREEDY (β = 0.5) keeps more than the other two."""
    return highest(left(HALF, TAU, k, mark(alpha)), [left(n, TAU, k, mark(alpha)) for n in (GREEDY, OBLIVIOUS)])


def spread(alpha: float) -> Reading:
    """How far the three methods are apart, as a share of the best, averaged over the budgets."""

    def value(traces: Mapping[str, Trace]) -> float:
        rows = [[float(traces[n][f"left_{TAU}_{k}{mark(alpha)}"]) for n in (HALF, GREEDY, OBLIVIOUS)] for k in KS]
        return sum((max(row) - min(row)) / max(row) for row in rows) / len(rows)

    return derived(value, f"relative spread at α = {alpha}")


claims = [
    Order(
        "k = 60, just above τ: OBLIVIOUS-GREEDY above GREEDY and OBLIVIOUS for each α",
        [test for alpha in ALPHAS for test in best(60, alpha)],
        marks="reproduced",
    ),
    Order(
        "OBLIVIOUS-GREEDY above both for all k and α",
        [test for alpha in ALPHAS for k in KS for test in best(k, alpha)],
        marks="not-reproduced",
        note="GREEDY is at least as good from k = 80 (α = 0.1) and k = 100 (α = 0.2) on",
    ),
    Order(
        "α = 0.1: GREEDY above OBLIVIOUS for most k",
        [left(GREEDY, TAU, k, mark(0.1)) > left(OBLIVIOUS, TAU, k, mark(0.1)) for k in (80, 100)],
        marks="reproduced",
        note="not at k = 60",
    ),
    Order(
        "α = 0.2: OBLIVIOUS clearly above GREEDY",
        [left(OBLIVIOUS, TAU, k, mark(0.2)) > left(GREEDY, TAU, k, mark(0.2)) for k in KS],
        marks="not-reproduced",
        note="only at k = 60",
    ),
    Order(
        "larger α: the three methods come together",
        spread(0.3) < spread(0.1),
        marks="reproduced",
        note="relative spread at α = 0.3 below that at 0.1",
    ),
]


@experiment(
    "oblivious-greedy/variance-reduction-k",
    source="Bogunovic, Zhao and Cevher 2018; Bogunovic 2019 (thesis), Fig. 7.5a-c",
    unit="draw of points",
    quick=Budget(2, ks=KS, starts=("stationary",), points=600, restarts=10),
    full=Budget(
        20,
        minutes=90,
        ks=(55, 60, 65, 70, 80, 90, 100, 110, 120, 130, 150),
        starts=("stationary", "zero"),
        points=600,
        restarts=10,
    ),
)
def run(replicate: Replicate) -> Mapping[str, Trace]:
    """Measurements that inform about a process although 50 of them may fail."""
    made = {name: Trace() for name in NAMES}
    settings = [(TAU, k) for k in replicate["ks"]]
    for alpha in ALPHAS:
        for start in replicate["starts"]:
            f = reduction(replicate, alpha, replicate["points"], start)
            here = {"suffix": mark(alpha, start), "restarts": replicate["restarts"]}
            for name, trace in removed(f, NAMES, settings, replicate, **here).items():
                made[name].metrics |= trace.metrics
    return made
