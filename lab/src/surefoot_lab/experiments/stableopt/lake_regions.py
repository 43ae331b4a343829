"""Which rectangle of a lake is rich in chlorophyll throughout? It reaches 1 m of depth and 100 m along either way."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from surefoot.domain import Candidates
from surefoot.domain.perturbation import WeightedBox
from surefoot_lab import Budget, Data, Equal, Exact, Metric, Order, Replicate, Trace, Unit, experiment, lowest
from surefoot_lab.experiments.stableopt._robust import BASELINES, STABLE, STABLE_UCB, methods, race, reach
from surefoot_lab.fields import baltic

HALVES = (100.0, 1.0)  # along the transect and in depth, metres
R, share = Metric("robust_regret"), Metric("share_of_range")

claims = [
    Order("robust regret at the end: StableOpt below the four baselines", lowest(R[STABLE], [R[n] for n in BASELINES])),
    Equal(
        "StableOpt ends within 5 % of the field's range of the robust optimum",
        (share[STABLE], 0.0),
        margin=0.05,
        note="the others are said not to; share_of_range has all five",
    ),
    Order(
        "Stable-GP-UCB best in the first 20 rounds",
        lowest(R[STABLE_UCB].over(1, 20), [R[n].over(1, 20) for n in (STABLE, *BASELINES) if n != STABLE_UCB]),
        marks=("doubtful",),
    ),
    Exact("the robust maximizer differs from the maximizer of the field", Metric("apart")["field"] > 0),
]


@experiment(
    "stableopt/lake-regions",
    source="Bogunovic 2019 (thesis), Fig. 4.4; Bogunovic, Scarlett, Jegelka, Cevher 2018",
    data=Data("substitute", "baltic_chlorophyll", instead_of="the Lake Zurich transect"),
    unit=Unit.single("lake"),
    quick=Budget(4, horizon=120),
    full=Budget(100, minutes=50, horizon=120),
)
def run(replicate: Replicate) -> Mapping[str, Trace]:
    """A rectangle that is rich in chlorophyll throughout."""
    field = baltic()
    designs, region = Candidates(field.points), WeightedBox(HALVES)
    sets = reach(designs, region)
    policies = methods(designs, region, field.gp, replicate.integer)
    traces = race(policies, field.values, sets, replicate["horizon"], replicate)
    for trace in traces.values():
        trace.metrics["share_of_range"] = trace["robust_regret"] / np.ptp(field.values)
    if replicate.index == 0:
        worst = sets.minimum(field.values)
        apart = np.linalg.norm(field.points[worst.argmax()] - field.points[field.values.argmax()])
        traces["field"] = Trace(apart=apart, robust_maximum=worst.max(), maximum=field.values.max())
    return traces
