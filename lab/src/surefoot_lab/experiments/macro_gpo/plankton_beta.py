"""Does a bonus for information help a planner that looks two or three dives ahead? Eight weights of the bonus.

The bonus is about the field; the published runs counted the noise of the measurements twice (``bonus="noisy"``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from surefoot_lab import Budget, Equal, Number, Order, Replicate, Trace, Trend, experiment, falls
from surefoot_lab.experiments.macro_gpo._methods import SOURCE, O, planner, race
from surefoot_lab.experiments.macro_gpo.plankton import OUTPUT
from surefoot_lab.routes import plankton

BETAS = (0.0, 0.1, 0.3, 0.6, 1.0, 2.0, 4.0, 10.0)
PRINTED = {
    2: (0.5563, 0.6207, 0.5357, 0.4226, 0.3746, 0.2843, 0.1919, 0.0402),
    3: (0.5935, 0.5842, 0.5240, 0.5016, 0.4052, 0.3566, 0.2026, 0.0569),
}
ERRORS = {
    2: (0.0446, 0.0458, 0.0459, 0.0471, 0.0460, 0.0478, 0.0498, 0.0468),
    3: (0.0461, 0.0438, 0.0446, 0.0470, 0.0489, 0.0491, 0.0441, 0.0453),
}


def name(horizon: int, beta: float) -> str:
    """What a setting is called."""
    return f"H = {horizon}, β = {beta:g}"


def _row(horizon: int) -> dict[Any, tuple[float, float]]:
    table = zip(BETAS, PRINTED[horizon], ERRORS[horizon], strict=True)
    return {O[name(horizon, beta)]: (number, error) for beta, number, error in table}


claims = [
    Number("output at H = 2, Table VIII", _row(2)),
    Number("output at H = 3, Table VIII", _row(3)),
    Order("H = 2: β = 0.1 above β = 0 (published +0.064)", O[name(2, 0.1)] > O[name(2, 0)], marks=("doubtful",)),
    Order(
        "H = 3: no β > 0 above β = 0 (published lead over 0.1: 0.009)",
        [O[name(3, beta)] < O[name(3, 0)] for beta in BETAS[1:]],
        marks=("doubtful",),
    ),
    Order("β = 10 below β = 0 for both H", [O[name(h, 10)] < O[name(h, 0)] for h in (2, 3)]),
    Trend("output falls from β = 0.1 on", [falls(*(O[name(h, beta)] for beta in BETAS[1:])) for h in (2, 3)]),
    Equal(
        "β = 0 gives the output of Table VII within two of its standard errors",
        [(O[name(h, 0)], OUTPUT[f"H = {h}"][0]) for h in (2, 3)],
        margin=2 * OUTPUT["H = 2"][1],
        marks=("reproduced",),
    ),
]


@experiment(
    "macro-gpo/plankton-beta",
    source=SOURCE + "Table VIII, Fig. 5c-d; thesis Table B.2",
    unit="drawn field",
    quick=Budget(20, samples=100, betas=BETAS, bonus="latent"),
    full=Budget(500, minutes=60, samples=100, betas=BETAS, bonus="latent"),
)
def run(replicate: Replicate) -> Mapping[str, Trace]:
    """Dives planned with a bonus for information."""
    route = plankton(replicate.rng("field"))
    common = {"samples": replicate["samples"], "bonus": replicate["bonus"]}
    methods = {
        name(h, beta): planner(route, h, exploration=beta, **common) for h in (2, 3) for beta in replicate["betas"]
    }
    return race(route, methods, replicate.integer)
