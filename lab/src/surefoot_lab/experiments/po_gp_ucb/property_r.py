"""Which house is the cheapest for its size? How many columns the published projection should have.

ε is where this table's threshold falls at r = 10, 15 and 20, as it did in the published tables.
"""

from __future__ import annotations

from collections.abc import Mapping

from surefoot_lab import Budget, Data, Order, Replicate, Trace, Unit, experiment
from surefoot_lab.experiments.po_gp_ucb._outsourced import Race
from surefoot_lab.experiments.po_gp_ucb._records import houses
from surefoot_lab.experiments.po_gp_ucb._sweeps import S, sweeps, tables
from surefoot_lab.experiments.po_gp_ucb._thresholds import at_threshold
from surefoot_lab.experiments.po_gp_ucb.property_epsilon import DELTA, HORIZON
from surefoot_lab.readings import highest

SWEEPS = sweeps(
    [f"ε*({r})" for r in (10, 15, 20)],
    [
        (0.682, 0.516, 0.495, 0.485, 0.485, 0.493),
        (0.567, 0.553, 0.479, 0.453, 0.493, 0.52),
        (0.591, 0.523, 0.486, 0.482, 0.489, 0.488),
    ],
)
one, two, three = SWEEPS
ORIGINAL = ("needs-original",)

claims = [
    one.number("Table 7: S_100 at e^2.6 for r = 3, 6, 8, 10, 15, 20", marks=ORIGINAL),
    two.number("Table 8: S_100 at e^2.8 for r = 3, 9, 12, 15, 20, 30", marks=ORIGINAL),
    three.number("Table 9: S_100 at e^3.0 for r = 5, 10, 15, 20, 30, 50", marks=ORIGINAL),
    Order(
        "the last r without lift is the best of its table",
        [test for sweep in SWEEPS for test in sweep.best()],
        marks=("doubtful",),
    ),
    Order(
        "the first r with lift is worse than the last without",
        [sweep.worse(sweep.lifted) for sweep in SWEEPS],
        marks=("contradicted",),
        note="Table 7 prints 0.485 at r = 10 and at r = 15",
    ),
    Order(
        "the smallest r is the worst of its table",
        [
            test
            for sweep in SWEEPS
            for test in highest(S[sweep.method(sweep.columns[0])], [S[sweep.method(r)] for r in sweep.columns[1:]])
        ],
    ),
]


@experiment(
    "po-gp-ucb/property-r",
    source="Kharkovskii, Dai, Low 2020, Tables 7-9; Kharkovskii 2020 (thesis), Tables 3.7-3.9",
    data=Data("substitute", ("king_county_houses",), instead_of="2,004 sales in Singapore"),
    priority=2,
    unit=Unit.single("table of houses"),
    quick=Budget(10, horizon=HORIZON),
    full=Budget(200, minutes=45, horizon=HORIZON),
)
def run(replicate: Replicate) -> Mapping[str, Trace]:
    """The cheapest house, by the number of columns."""
    race = Race(houses(), DELTA, replicate["horizon"], replicate)
    return tables(race, at_threshold(race, SWEEPS))
