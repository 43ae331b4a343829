"""Four fields and what nine methods did there, as published with the code: do ours make the same choices?

A policy is led along the recorded way: it is asked for a move, and agrees when it takes the recorded one. Equal scores
are decided by lot, as those of all four directions are at first, so that another move is cancelled and the policy asked
again a few times. GP-BUCB and local penalization depart from their papers here as the released code does
(:mod:`surefoot_lab.baselines.recorded`). The choices of sampled planners are random; what they collect is compared with
what many of our runs collect.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot.domain.paths import Paths
from surefoot.loop.policy import Policy
from surefoot.loop.types import Query
from surefoot.policy.batch.qei import QEI
from surefoot.policy.routes.macro_gpo import MacroGPO
from surefoot_lab import Budget, Data, Exact, Metric, Replicate, Share, Trace, derived, experiment
from surefoot_lab.baselines.recorded import recorded_rule
from surefoot_lab.readings import Reading
from surefoot_lab.routes import Recording, Route, recorded, travel

TRIES = 40  # in which each of four equal moves is drawn, but for one case in 100,000
SAMPLED = {"h2": 2, "h3": 3}
ANYTIME = "anytime_h4"

Array = NDArray[np.float64]
agree, gap = Metric("share"), Metric("gap")


def _stages(method: str) -> Reading:
    """The share of each field's stages that agree."""
    return derived(lambda traces: float(np.mean(traces[method]["agree"])), f"stages of {method} that agree")


def _same(name: str, methods: tuple[str, ...]) -> Exact:
    cells = {agree[m]: 1.0 for m in methods} | {gap[m]: 0.0 for m in methods}
    return Exact(name, cells, marks=("card",), note="equal scores count as agreement")


claims = [
    _same("DB-GP-UCB (H = 1) and the most likely plan of H = 4 make the recorded moves", ("h1", "mle_h4")),
    _same("GP-BUCB and GP-UCB-PE make the recorded moves", ("bucb", "pe")),
    Share(
        "q-EI and local penalization agree in at least 90 % of the stages",
        [_stages(method) >= 0.9 for method in ("qEI", "lp")],
        marks=("card",),
        note="four fields, whose five stages each are not independent of each other",
    ),
    Exact(
        "recorded sums of H = 2, H = 3 and the anytime planner lie in the 95 % range of our runs",
        [
            test
            for method in (*SAMPLED, ANYTIME)
            for test in (
                Metric("low")[method] <= Metric("recorded")[method],
                Metric("recorded")[method] <= Metric("high")[method],
            )
        ],
        marks=("card",),
        note="50 runs each, anytime 10 in quick; by chance alone one of twelve ranges misses half the time",
    ),
]


Maker = Callable[[Paths, int], Policy]


def makers(route: Route) -> dict[str, Maker]:
    """The methods whose choices are not random, by their recorded names."""
    gp = route.gp
    rules = {
        name: lambda d, seed, name=name: recorded_rule(name, d, gp=gp, seed=seed) for name in ("h1", "bucb", "pe", "lp")
    }
    return rules | {
        "mle_h4": lambda d, seed: MacroGPO(d, horizon=4, planner="likely", gp=gp, seed=seed),
        "qEI": lambda d, seed: QEI(d, samples=512, gp=gp, seed=seed),
    }


def follow(route: Route, record: Recording, make: Maker) -> Trace:
    """Lead a policy along the recorded way; where it would go elsewhere, another one goes on from the next stage."""
    length = route.moves.length
    way, same = np.concatenate([[route.start], record.stops]), []
    policy: Policy | None = None
    for stage, move in enumerate(record.stops.reshape(-1, length)):
        if policy is None:
            known = way[: 1 + stage * length]
            left = route.budget - stage * length
            policy = make(Paths(route.points, route.moves, start=int(known[-1]), budget=left), 0)
            for place in known:
                policy.tell(route.points[place], float(route.values[place]))
        query = _asked(policy, move)
        same.append(query is not None)
        if query is None:
            policy = None
        else:
            policy.tell(query, route.values[move])
    sums = route.values[record.stops].reshape(-1, length).sum(axis=1).cumsum()
    return Trace(agree=same, share=np.mean(same), gap=np.abs(sums - record.reward).max())


def _asked(policy: Policy, move: NDArray[np.intp]) -> Query | None:
    """The query for this move, if the policy would make it."""
    for _ in range(TRIES):
        query = policy.ask()
        if np.array_equal(query.note["stops"], move):
            return query
        policy.cancel(query)
    return None


def spread(route: Route, record: Recording, runs: list[Policy]) -> Trace:
    """The 95 % range of what some runs collect, beside what was recorded."""
    sums = []
    for policy in runs:
        stops = travel(policy, route)["stops"].astype(np.intp)
        sums.append(math.fsum(route.values[stops]))
    low, high = np.quantile(sums, [0.025, 0.975])
    # Recorded values have seven digits.
    return Trace(low=round(low, 6), high=round(high, 6), recorded=round(float(record.reward[-1]), 6))


@experiment(
    "macro-gpo/recorded-runs",
    source="runs published with the code of Kharkovskii, Ling, Low 2020",
    data=Data("published", "macro_gpo_plankton"),
    unit="recorded field",
    quick=Budget(4, draws=50, anytime=10, iterations=1500),
    full=Budget(4, minutes=60, draws=50, anytime=50, iterations=1500),
    limit=4,
)
def run(replicate: Replicate) -> Mapping[str, Trace]:
    """The choices of recorded runs, made again."""
    route, records = recorded(replicate.index)
    traces = {name: follow(route, records[name], make) for name, make in makers(route).items()}

    def runs(count: int, horizon: int, **options: Any) -> list[Policy]:
        first = replicate.integer
        return [MacroGPO(route.domain(), horizon=horizon, gp=route.gp, seed=first + i, **options) for i in range(count)]

    for name, horizon in SAMPLED.items():
        policies = runs(replicate["draws"], horizon, samples=100, sampling="iid")
        traces[name] = spread(route, records[name], policies)
    if replicate["anytime"]:
        policies = runs(replicate["anytime"], 4, samples=300, planner="anytime", iterations=replicate["iterations"])
        traces[ANYTIME] = spread(route, records[ANYTIME], policies)
    return traces
