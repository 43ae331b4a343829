"""The methods of the comparisons, by name, and how each is set.

All believe in the same process, know the value at the start, and choose among the same moves. Settings are those of
the published comparisons where they are known: no exploration bonus (β = 0) in the planners, δ = 0.1 in the bounds, a
fifth of β_t in GP-BUCB, no relevant region in GP-UCB-PE, log(1 + exp EI) in local penalization. Two oddities of the
released code are not repeated here: GP-BUCB with the mean of a move's first stop, EI with a variance in place of the
standard deviation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from surefoot.domain.paths import Paths
from surefoot.loop.policy import Policy
from surefoot.policy.batch.gp_ucb_pe import GPUCBPE
from surefoot.policy.batch.penalization import LocalPenalization
from surefoot.policy.batch.qei import QEI
from surefoot.policy.routes.macro_gpo import MacroGPO
from surefoot.policy.ucb.gp_ucb import GPUCB
from surefoot_lab.baselines.recorded import recorded_width
from surefoot_lab.claims import Claim, Order, Trend, falls, rises
from surefoot_lab.readings import Metric, highest, lowest
from surefoot_lab.registry import Trace
from surefoot_lab.routes import Route, travel

DB, LIKELY = "DB-GP-UCB", "most likely, H = 4"
PE, BUCB, BATCH_EI, LP = "GP-UCB-PE", "GP-BUCB", "q-EI", "BBO-LP"
BATCHES = (PE, BUCB, BATCH_EI, LP)
H = {1: DB, 2: "H = 2", 3: "H = 3", 4: "H = 4"}
NINE = (H[4], H[3], H[2], DB, LIKELY, *BATCHES)

SOURCE = "Kharkovskii, Ling, Low 2020, "

O, S = Metric("output"), Metric("simple_regret")  # noqa: E741 - read as the tables have it

Maker = Callable[[Paths, int], Policy]
Table = Mapping[str, tuple[float, float]]


def planner(route: Route, horizon: int, **options: Any) -> Maker:
    """A planner with the belief of the route."""
    return lambda domain, seed: MacroGPO(domain, horizon=horizon, gp=route.gp, seed=seed, **options)


def baselines(route: Route, lipschitz: float | None = None) -> dict[str, Maker]:
    """The methods that choose one move at a time, and the one that takes the most likely values for granted.

    ``lipschitz`` is the constant of local penalization, estimated where it is not given.
    """
    gp = route.gp
    return {
        DB: planner(route, 1),
        LIKELY: planner(route, 4, planner="likely"),
        PE: lambda d, seed: GPUCBPE(d, region=False, confidence=0.9, gp=gp, seed=seed),
        BUCB: lambda d, seed: GPUCB(d, width=recorded_width, gp=gp, seed=seed),
        BATCH_EI: lambda d, seed: QEI(d, gp=gp, seed=seed),
        LP: lambda d, seed: LocalPenalization(d, lipschitz=lipschitz, transform="softplus", gp=gp, seed=seed),
    }


def race(
    route: Route, methods: Mapping[str, Maker], seed: int, *, stops: bool = False, **options: Any
) -> dict[str, Trace]:
    """Drive every method along the same route; where it went is kept only with ``stops``."""
    domain = route.domain()
    traces = {name: travel(make(domain, seed), route, **options) for name, make in methods.items()}
    for trace in traces.values():
        if not stops:
            del trace.metrics["stops"]
    return traces


def printed(values: Sequence[float], errors: Sequence[float]) -> Table:
    """A published column over the nine methods, with its standard errors."""
    return dict(zip(NINE, zip(values, errors, strict=True), strict=True))


def cells(metric: Metric, table: Table) -> dict[Any, tuple[float, float]]:
    """A published table as the cells of a claim."""
    return {metric[name]: numbers for name, numbers in table.items()}


def longer_is_better() -> list[Claim]:
    """The claims that planning further ahead pays: from H = 1 to 4, and H = 4 among all nine."""
    others = [name for name in NINE if name != H[4]]
    return [
        Trend(
            "output rises and simple regret falls over H = 1, 2, 3, 4",
            [rises(*(O[name] for name in H.values())), falls(*(S[name] for name in H.values()))],
        ),
        Order(
            "H = 4 is best of the nine in both",
            highest(O[H[4]], [O[n] for n in others]) + lowest(S[H[4]], [S[n] for n in others]),
        ),
    ]
