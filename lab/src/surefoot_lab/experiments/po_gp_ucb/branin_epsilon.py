"""What privacy costs by ε, on the Branin function."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from surefoot.private.projection import omega
from surefoot_lab import Budget, Exact, Metric, Number, Replicate, Trace, Trend, experiment, rises
from surefoot_lab.experiments.po_gp_ucb._branin import DELTA, HORIZON, LOG, PLAIN, SIDE, table
from surefoot_lab.experiments.po_gp_ucb._outsourced import UCB, Race
from surefoot_lab.experiments.po_gp_ucb._thresholds import composition

R = 10
EXPONENTS = (2.3, 2.0, 1.8)
ADVANCED = {f"composition at e^{e}": (R, math.exp(e), DELTA) for e in (2.3, 2.0)}

S, smallest = Metric("simple_regret"), Metric("smallest")


def name(transform: str, method: str) -> str:
    """A method on one of the two transforms."""
    return f"{transform}, {method}"


def label(exponent: float) -> str:
    """What ε = e^x is called."""
    return f"ε = e^{exponent}"


claims = [
    Number(
        "excess over GP-UCB: 0.004 σ_y at e^2.3, 0.023 at e^2.0, 0.051 at e^1.8",
        {
            (S[name(t, label(e))] - S[name(t, UCB)]).named(f"excess of {t} at e^{e}"): value
            for t in (LOG, PLAIN)
            for e, value in zip(EXPONENTS, (0.004, 0.023, 0.051), strict=True)
        },
        repetitions=50,
        marks=("not-reproduced",),
    ),
    Trend(
        "regret grows as ε falls",
        [rises(*[S[name(t, label(e))] for e in EXPONENTS]) for t in (LOG, PLAIN)],
    ),
    Exact(
        "the smallest singular value lies in [173.7, 205.3), as the printed thresholds imply",
        [smallest[LOG] >= 173.7, smallest[LOG] < 205.3],
        marks=("reproduced", "card"),
        note="-log(Branin); smallest[-Branin] stands beside it",
    ),
    Exact(
        "advanced composition of the r columns stays within ε at e^2.3 and e^2.0",
        [Metric("composed")[key] <= Metric("epsilon")[key] for key in ADVANCED],
        marks=("contradicted",),
        note="11.47 > 9.97 and 7.46 > 7.39",
    ),
]


@experiment(
    "po-gp-ucb/branin-epsilon",
    source="Kharkovskii, Dai, Low 2020, appendix A, Fig. 3; Kharkovskii 2020 (thesis), Fig. 3.5",
    unit="run on the printed function",
    quick=Budget(50, horizon=HORIZON, side=SIDE),
    full=Budget(1000, minutes=30, horizon=HORIZON, side=SIDE),
)
def run(replicate: Replicate) -> Mapping[str, Trace]:
    """Regret by ε on the Branin function, published projection and Gaussian release."""
    traces = composition(ADVANCED)
    for transform in (LOG, PLAIN):
        race = Race(table(transform, replicate["side"]), DELTA, replicate["horizon"], replicate)
        found = race.baselines()
        for exponent in EXPONENTS:
            epsilon = math.exp(exponent)
            found[label(exponent)] = race.projection(R, epsilon)
            found[label(exponent)].metrics["lifted"] = np.asarray(float(race.table.smallest < omega(R, epsilon, DELTA)))
            found[f"Gaussian, {label(exponent)}"] = race.gaussian(epsilon)
        traces |= {name(transform, method): trace for method, trace in found.items()}
        traces[transform] = Trace(smallest=race.table.smallest)
    return traces
