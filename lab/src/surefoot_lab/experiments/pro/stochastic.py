"""A cheaper subroutine inside PRO: what stochastic greedy selection costs, and what it saves."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from surefoot.select import greedy_min, osu, pro, stochastic_greedy
from surefoot_lab import Budget, Data, Equal, Metric, Order, Replicate, Trace, Unit, experiment
from surefoot_lab.experiments.pro._images import exemplars
from surefoot_lab.experiments.pro._sweep import OSU
from surefoot_lab.readings import Series

K = 100
TAUS = (5, 10)
GREEDY, FINE, COARSE = "PRO-GREEDY", "PRO-STOCHASTIC, ε = 0.01", "PRO-STOCHASTIC, ε = 0.08"
EPSILON = {FINE: 0.01, COARSE: 0.08}


def _read(metric: str, name: str, tau: int) -> Series:
    return Metric(f"{metric}_{tau}")[name]


claims = [
    Order(
        "robust value: PRO-GREEDY above both stochastic versions, by at most 3 %",
        [
            test
            for tau in TAUS
            for name in EPSILON
            for test in (
                _read("left", GREEDY, tau) > _read("left", name, tau),
                0.97 * _read("left", GREEDY, tau) <= _read("left", name, tau),
            )
        ],
    ),
    Equal(
        "the gap between raw and robust value of the stochastic versions is not larger",
        [(_read("gap", name, tau), _read("gap", GREEDY, tau)) for tau in TAUS for name in EPSILON],
        relative=0.1,
        note="equal within a tenth of PRO-GREEDY's gap",
    ),
    Order(
        "stochastic versions compute fewer gains: ε = 0.08 below 0.01 below greedy",
        [
            test
            for tau in TAUS
            for test in (
                _read("gains", COARSE, tau) < _read("gains", FINE, tau),
                _read("gains", FINE, tau) < _read("gains", GREEDY, tau),
            )
        ],
        note="greedy selection that looks at every element; `lazy` counts what PRO-GREEDY really computed",
    ),
]


@experiment(
    "pro/stochastic",
    source="Bogunovic 2019 (thesis), Fig. 6.2i",
    data=Data("substitute", ("cifar10",), instead_of="Tiny-50k"),
    unit=Unit.single("collection of images"),
    quick=Budget(4, taus=TAUS, images=2000, clients=1000),
    full=Budget(5, minutes=60, taus=(2, 5, 8, 10, 12, 15), images=10_000, clients=2000),
    priority=2,
)
def run(replicate: Replicate) -> Mapping[str, Trace]:
    """PRO with greedy and with stochastic buckets, greedy adversary."""
    f = exemplars(replicate, replicate["images"], replicate["clients"])
    f.singletons()  # counted for nobody: every method starts from them
    made: dict[str, Trace] = {}
    for tau in replicate["taus"]:
        for name in (GREEDY, FINE, COARSE, OSU):
            if name in EPSILON:
                draws = replicate.rng(name, tau)
                bucket = partial(stochastic_greedy, epsilon=EPSILON[name], rng=draws)
                chosen = pro(f, K, tau, structure="compact", subroutine=bucket)
            elif name == GREEDY or tau**2 <= K:
                chosen = pro(f, K, tau, structure="compact") if name == GREEDY else osu(f, K, tau)
            else:
                continue
            left = greedy_min(f, chosen.order, tau).value
            # Each pick of plain greedy selection but the first of a bucket looks at everything not yet taken.
            starts = {sum(map(len, chosen.buckets[:i])) for i in range(len(chosen.buckets) + 1)}
            plain = sum(f.n - i for i in range(K) if i not in starts)
            counts = {"gains": chosen.evaluations} if name in EPSILON else {"gains": plain, "lazy": chosen.evaluations}
            row = {"raw": chosen.value, "left": left, "gap": chosen.value - left, **counts}
            made.setdefault(name, Trace()).metrics |= Trace(**{f"{m}_{tau}": v for m, v in row.items()}).metrics
    return made
