"""Mapping the same field with a boat: travel costs, and so does depth.

The cost of the next measurement is 0.25 per metre along the transect plus 4 (1 + depth). A run ends when F1 reaches 0.9
or the money is spent; a run that never gets there counts with the whole budget.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from surefoot.domain import Candidates
from surefoot.loop.policy import Policy
from surefoot.loop.types import Query
from surefoot.policy.levels.level_set import GPLSE
from surefoot.policy.levels.truvar import TruVaR
from surefoot_lab import Budget, Data, Metric, Order, Replicate, Trace, Unit, experiment
from surefoot_lab.experiments.truvar._levels import GCHK, TRUVAR, Survey, survey
from surefoot_lab.fields import baltic

Array = NDArray[np.float64]

BLIND = "TruVaR, ignoring cost"
GOAL, CURVE = 0.9, 40

cost, travel = Metric("cost_to_goal"), Metric("travel")

claims = [
    Order(
        "cost to reach F1 = 0.9: TruVaR at most half of GP-LSE",
        [cost[TRUVAR] < cost[GCHK], 2.0 * cost[TRUVAR] <= cost[GCHK]],
        note="the second test is the factor of 2",
    ),
    Order("mean travel per sample: TruVaR below GP-LSE", travel[TRUVAR] < travel[GCHK]),
    Order("TruVaR with cost below TruVaR ignoring cost", cost[TRUVAR] < cost[BLIND], marks=("card",)),
]


def boat(previous: Array | None, X: Array) -> Array:
    """Cost of going to each point X (n, 2) from the previous one: 0.25 per metre of travel and 4 (1 + depth)."""
    along = np.zeros(len(X)) if previous is None else np.abs(X[:, 0] - previous[0])
    return np.asarray(0.25 * along + 4.0 * (np.abs(X[:, 1]) + 1.0))


@experiment(
    "truvar/lake-travel-cost",
    source="Bogunovic 2019 (thesis), Fig. 3.3b, e, f; Bogunovic, Scarlett, Krause, Cevher 2016",
    data=Data("substitute", "baltic_chlorophyll", instead_of="the Lake Zurich transect"),
    unit=Unit.single("lake"),
    quick=Budget(5, budget=12000.0, horizon=250),
    full=Budget(100, minutes=60, budget=20000.0, horizon=400),
)
def run(replicate: Replicate) -> Mapping[str, Trace]:
    """A boat that maps chlorophyll, with and without regard to the cost of travel."""
    field, seed, budget = baltic(), replicate.integer, replicate["budget"]
    domain, h, gp = Candidates(field.points), field.threshold, field.gp
    start = int(replicate.rng("start").integers(len(field.points)))

    def price(previous: int, query: Query) -> float:
        return float(boat(field.points[previous], query.x[None])[0])

    level = {"goal": "level", "threshold": h, "gp": gp, "among": "potential", "seed": seed}
    makers: dict[str, Callable[[], Policy]] = {
        TRUVAR: lambda: TruVaR(domain, cost=boat, **level),
        BLIND: lambda: TruVaR(domain, **level),
        GCHK: lambda: GPLSE(domain, threshold=h, gp=gp, seed=seed),
    }
    limits = {"rounds": replicate["horizon"], "budget": budget, "goal": GOAL}
    return {
        name: _trace(survey(make(), gp, field.values, h, start, price=price, **limits), field.points, start, budget)
        for name, make in makers.items()
    }


def _trace(done: Survey, points: Array, start: int, budget: float) -> Trace:
    route = points[[start, *done.visited], 0]
    return Trace(
        f1=done.along(np.linspace(0.0, budget, CURVE + 1)[1:]),
        cost_to_goal=done.cost_of(GOAL, budget),
        travel=np.abs(np.diff(route)).mean(),
        samples=len(done.visited),
        reached=max(done.f1) >= GOAL,
    )
