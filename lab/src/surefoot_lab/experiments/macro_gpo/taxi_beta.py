"""Does a bonus for information help a taxi that plans two or three cruises ahead? Seven weights of the bonus."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from surefoot_lab import Budget, Data, Number, Order, Replicate, Trace, experiment
from surefoot_lab.experiments.macro_gpo._graphs import setting, swept
from surefoot_lab.experiments.macro_gpo._methods import SOURCE, O
from surefoot_lab.roads import taxi

BETAS = (0.0, 0.2, 0.5, 1.0, 2.0, 4.0, 10.0)
PRINTED = {
    2: (0.2357, 0.2550, 0.1364, 0.1429, 0.1174, 0.0957, 0.0944),
    3: (0.2574, 0.2069, 0.1174, 0.0911, 0.0330, 0.0403, -0.0046),
}
ERRORS = {
    2: (0.1109, 0.1032, 0.0967, 0.0967, 0.0843, 0.0841, 0.0768),
    3: (0.1019, 0.0987, 0.0893, 0.0772, 0.0755, 0.0765, 0.0756),
}


def _row(horizon: int) -> dict[Any, tuple[float, float]]:
    table = zip(BETAS, PRINTED[horizon], ERRORS[horizon], strict=True)
    return {O[setting(horizon, beta)]: (number, error) for beta, number, error in table}


claims = [
    Number("output at H = 2, Table X", _row(2)),
    Number("output at H = 3, Table X", _row(3)),
    Order("H = 2: β = 0.2 above β = 0 (+0.022 σ)", O[setting(2, 0.2)] > O[setting(2, 0)], marks=("doubtful",)),
    Order("H = 3: β = 0 is best", [O[setting(3, b)] < O[setting(3, 0)] for b in BETAS[1:]], marks=("doubtful",)),
    Order("every β from 0.5 on below β = 0", [O[setting(h, b)] < O[setting(h, 0)] for h in (2, 3) for b in BETAS[2:]]),
]


@experiment(
    "macro-gpo/taxi-beta",
    source=SOURCE + "Table X, Fig. 7c-d; thesis Table B.4",
    data=Data("published", "taxi"),
    unit="start in the published field",
    quick=Budget(6, samples=100, iterations=200, horizons=(2, 3), betas=BETAS),
    full=Budget(35, minutes=110, samples=300, iterations=1500, horizons=(2, 3), betas=BETAS),
    priority=2,
)
def run(replicate: Replicate) -> Mapping[str, Trace]:
    """A taxi that plans with a bonus for information."""
    return swept(taxi(replicate.rng("route")), replicate, replicate["betas"])
