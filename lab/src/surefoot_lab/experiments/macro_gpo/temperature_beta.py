"""Does a bonus for information help a robot that plans two or three drives ahead? Five weights of the bonus."""

from __future__ import annotations

from collections.abc import Mapping

from surefoot_lab import Budget, Number, Order, Replicate, Trace, Unit, experiment
from surefoot_lab.experiments.macro_gpo._graphs import setting, swept
from surefoot_lab.experiments.macro_gpo._methods import SOURCE, O
from surefoot_lab.experiments.macro_gpo.temperature import DATA, STARTS, laboratory

BETAS = (0.0, 1.0, 2.0, 3.0, 4.0)
PRINTED = {2: (0.5450, 0.6160, 0.5565, 0.3755, 0.1859), 3: (0.6137, 0.6047, 0.5787, 0.4468, 0.2294)}

claims = [
    Number(
        "output, Table XIII",
        {O[setting(h, b)]: n for h, row in PRINTED.items() for b, n in zip(BETAS, row, strict=True)},
        marks=("needs-original",),
    ),
    Order("H = 2: β = 1 above β = 0 (published +0.092 σ)", O[setting(2, 1)] > O[setting(2, 0)], marks=("doubtful",)),
    Order("H = 3: β = 0 is best", [O[setting(3, b)] < O[setting(3, 0)] for b in BETAS[1:]], marks=("doubtful",)),
    Order("β = 3 and 4 below β = 0", [O[setting(h, b)] < O[setting(h, 0)] for h in (2, 3) for b in (3, 4)]),
]


@experiment(
    "macro-gpo/temperature-beta",
    source=SOURCE + "Table XIII, Fig. 10c-d; thesis Table B.7",
    data=DATA,
    unit=Unit("drawn field", lambda index, settings: index // STARTS),
    quick=Budget(20, samples=100, iterations=200, horizons=(2, 3), betas=BETAS),
    full=Budget(5 * STARTS, minutes=90, samples=300, iterations=1500, horizons=(2, 3), betas=BETAS),
    priority=2,
)
def run(replicate: Replicate) -> Mapping[str, Trace]:
    """A robot that plans with a bonus for information."""
    return swept(laboratory(replicate), replicate, replicate["betas"])
