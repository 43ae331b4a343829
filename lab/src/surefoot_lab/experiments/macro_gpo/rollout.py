"""Macro-GPO against Rollout, one step at a time: both look four steps ahead, one for sums, the other for improvement.

Rollout follows expected improvement after its first step, with three quadrature nodes per step; the code released with
the published comparison has one node, the mean. Both are run.
"""

from __future__ import annotations

from collections.abc import Mapping

from surefoot.policy.improvement import ExpectedImprovement
from surefoot_lab import Budget, Number, Order, Replicate, Trace, experiment
from surefoot_lab.baselines.rollout import Rollout
from surefoot_lab.experiments.macro_gpo._methods import SOURCE, Maker, O, S, planner, race
from surefoot_lab.routes import Route, plankton

MACRO, THREE, ONE, EI = "H = 4", "Rollout", "Rollout, one node", "EI"

claims = [
    Number("Macro-GPO, Table XV", {O[MACRO]: (0.9501, 0.0659), S[MACRO]: (1.066, 0.0783)}),
    Number(
        "Rollout, Table XV",
        {O[ONE]: (0.8071, 0.0637), S[ONE]: (1.2389, 0.0808)},
        marks=("doubtful",),
        note="with one node, as in the released code",
    ),
    Order("output: Macro-GPO above Rollout (published +0.143)", O[MACRO] > O[THREE]),
    Order("simple regret: Macro-GPO below Rollout (published −0.173)", S[MACRO] < S[THREE], marks=("doubtful",)),
    Order(
        "Rollout with three nodes is no worse than with one",
        [O[THREE] >= O[ONE], S[THREE] <= S[ONE]],
        marks=("card",),
        note="tells whether the published baseline was weakened",
    ),
]


def _rollout(route: Route, nodes: int) -> Maker:
    return lambda domain, seed: Rollout(domain, horizon=4, nodes=nodes, gp=route.gp, seed=seed)


@experiment(
    "macro-gpo/rollout",
    source=SOURCE + "Table XV, Fig. 13; thesis Fig. 4.11",
    unit="drawn field",
    quick=Budget(10, samples=20),
    full=Budget(400, minutes=100, samples=20),
)
def run(replicate: Replicate) -> Mapping[str, Trace]:
    """Single steps planned four ahead, against Rollout."""
    route = plankton(replicate.rng("field"), length=1)
    methods: dict[str, Maker] = {
        MACRO: planner(route, 4, samples=replicate["samples"]),
        THREE: _rollout(route, 3),
        ONE: _rollout(route, 1),
        EI: lambda domain, seed: ExpectedImprovement(domain, gp=route.gp, seed=seed),
    }
    return race(route, methods, replicate.integer)
