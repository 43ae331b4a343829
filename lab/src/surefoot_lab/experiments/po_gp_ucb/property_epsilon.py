"""Which house is the cheapest for its size? What privacy costs by ε."""

from __future__ import annotations

import math
from collections.abc import Mapping

from surefoot_lab import Budget, Data, Equal, Exact, Metric, Number, Replicate, Trace, Trend, Unit, experiment, rises
from surefoot_lab.experiments.po_gp_ucb._outsourced import UCB, Race
from surefoot_lab.experiments.po_gp_ucb._records import houses
from surefoot_lab.experiments.po_gp_ucb._thresholds import TABLE, below_threshold, composition, label

R, DELTA, HORIZON = 15, 1e-4, 100
STEPS = (0.0, 1.8, 2.3)  # published: e^2.8, e^1.0, e^0.5
ADVANCED = {"composition at e^2.8": (R, math.exp(2.8), DELTA)}

S = Metric("simple_regret")
excess = {step: (S[label(step)] - S[UCB]).named(f"excess at {label(step)}") for step in STEPS}
(first,) = ADVANCED

claims = [
    Number(
        "excess over GP-UCB: 0.051 σ_y at e^2.8, 0.017 at e^1.0, 0.082 at e^0.5",
        {excess[step]: value for step, value in zip(STEPS, (0.051, 0.017, 0.082), strict=True)},
        repetitions=50,
        marks=("needs-original",),
    ),
    Trend(
        "regret grows as ε falls",
        rises(*[S[label(step)] for step in STEPS]),
        marks=("contradicted",),
        note="the published numbers have e^1.0 (0.017) better than e^2.8 (0.051)",
    ),
    Equal("at the threshold within 0.1 σ_y of GP-UCB", (S[label(0.0)], S[UCB]), margin=0.1),
    Exact(
        "the smallest singular value lies in [174.2, 205.1)",
        [Metric("smallest")[TABLE] >= 174.2, Metric("smallest")[TABLE] < 205.1],
        marks=("needs-original",),
        note="implied by the printed thresholds for the original sales",
    ),
    Exact(
        "advanced composition of the r columns stays within ε at e^2.8",
        Metric("composed")[first] <= Metric("epsilon")[first],
        marks=("contradicted",),
        note="21.38 > 16.44",
    ),
]


@experiment(
    "po-gp-ucb/property-epsilon",
    source="Kharkovskii, Dai, Low 2020, section 4, Fig. 2c; Kharkovskii 2020 (thesis), Fig. 3.4",
    data=Data("substitute", ("king_county_houses",), instead_of="2,004 sales in Singapore"),
    unit=Unit.single("table of houses"),
    quick=Budget(20, horizon=HORIZON),
    full=Budget(500, minutes=30, horizon=HORIZON),
)
def run(replicate: Replicate) -> Mapping[str, Trace]:
    """The cheapest house, by ε."""
    race = Race(houses(), DELTA, replicate["horizon"], replicate)
    return {**below_threshold(race, R, STEPS), **composition(ADVANCED)}
