"""How many columns the published projection should have, on the Branin function.

Claims are about −Branin, whose regrets in its own units are nearest to the published ones; −log(Branin) stands beside
it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from surefoot_lab import Budget, Exact, Metric, Order, Replicate, Trace, experiment
from surefoot_lab.experiments.po_gp_ucb._branin import DELTA, HORIZON, LOG, PLAIN, SIDE, table
from surefoot_lab.experiments.po_gp_ucb._outsourced import Race
from surefoot_lab.experiments.po_gp_ucb._sweeps import last, sweeps, tables

EXPONENTS = (2.3, 2.5, 2.7)
SWEEPS = sweeps(
    [f"ε = e^{e}" for e in EXPONENTS],
    [
        (0.53, 0.184, 0.038, 0.0, 0.005, 0.024),
        (0.259, 0.001, 0.0, 0.0, 0.014, 0.026),
        (0.152, 0.0, 0.0, 0.0, 0.005, 0.073),
    ],
)
EPSILONS = {sweep: math.exp(e) for sweep, e in zip(SWEEPS, EXPONENTS, strict=True)}
one, two, three = SWEEPS
DOUBTFUL = ("doubtful",)
OUTPUT = Metric("output_regret")
UNITS = "in units of the Branin function; the published unit is not said"

claims = [
    one.number("Table 10: S_50 at e^2.3 for r = 3, 6, 8, 10, 15, 20", metric=OUTPUT, marks=DOUBTFUL, note=UNITS),
    two.number("Table 11: S_50 at e^2.5 for r = 3, 9, 12, 15, 20, 30", metric=OUTPUT, marks=DOUBTFUL, note=UNITS),
    three.number("Table 12: S_50 at e^2.7 for r = 5, 10, 15, 20, 30, 50", metric=OUTPUT, marks=DOUBTFUL, note=UNITS),
    Order(
        "the smallest r is worse than the last r without lift",
        [sweep.worse(sweep.columns[0]) for sweep in SWEEPS],
        marks=("reproduced",),
    ),
    Order("the largest r is worse than the last r without lift", [sweep.worse(sweep.columns[-1]) for sweep in SWEEPS]),
    Exact(
        "the largest tested r without lift is 10, 15, 20",
        {Metric("largest_tested")[sweep.label]: sweep.last for sweep in SWEEPS},
        marks=DOUBTFUL,
    ),
]


@experiment(
    "po-gp-ucb/branin-r",
    source="Kharkovskii, Dai, Low 2020, Tables 10-12; Kharkovskii 2020 (thesis), Tables 3.10-3.12",
    unit="run on the printed function",
    quick=Budget(30, horizon=HORIZON, side=SIDE),
    full=Budget(1000, minutes=60, horizon=HORIZON, side=SIDE),
)
def run(replicate: Replicate) -> Mapping[str, Trace]:
    """Regret by the number of columns on the Branin function."""
    plain, log = (
        Race(table(transform, replicate["side"]), DELTA, replicate["horizon"], replicate) for transform in (PLAIN, LOG)
    )
    traces = tables(plain, EPSILONS)
    traces |= {f"{LOG}, {method}": last(trace) for method, trace in tables(log, EPSILONS).items()}
    if replicate.index == 0:
        for sweep, epsilon in EPSILONS.items():
            traces[sweep.label] = sweep.largest(plain.table.smallest, epsilon, DELTA)
    return traces
