"""When are perturbation loops given up? The stopping rule of BOS² on made-up loops whose end is known.

Objectives of 40 queries with noise 0.7: stagnating at −11; improving slowly, which beats −9.5 in the end; improving
fast, which beats −5. Each is judged against a best y* before the loop; the lowest objective seen is −13.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from surefoot.attack import Abandon
from surefoot_lab import Budget, Metric, Order, Replicate, Share, Trace, experiment

LENGTH, LOWEST = 40, -13.0
STEPS = np.arange(1, LENGTH + 1)
SHAPES = {
    "stagnating": np.full(LENGTH, -11.0),
    "slow": -11.0 + 0.07 * STEPS,
    "fast": -11.0 + 8.0 * (1.0 - np.exp(-STEPS / 15.0)),
}
FACED = {"stagnating": (-9.5, -8.0, -5.0, -2.0), "slow": (-9.5,), "fast": (-9.5, -8.0, -5.0)}
LATER = "fast, y* = -5, 16 first queries"


def case(shape: str, best: float) -> str:
    """Name of a loop of some shape that faces some best objective."""
    return f"{shape}, y* = {best:g}"


stopped = Metric("stopped")

claims = [
    Share(
        "loops stagnating at -11 against y* of -8, -5 and -2 are given up in at least 90 %",
        [stopped[case("stagnating", best)] >= 0.9 for best in (-8.0, -5.0, -2.0)],
        marks="card",
    ),
    Share(
        "slowly improving loops that beat y* = -9.5 are given up in at most 10 %",
        stopped[case("slow", -9.5)] <= 0.1,
        marks="card",
    ),
    Share(
        "fast improving loops against y* of -9.5 and -8 are given up in at most 10 %",
        [stopped[case("fast", best)] <= 0.1 for best in (-9.5, -8.0)],
        marks="card",
    ),
    Order(
        "false stops against y* = -5 become rarer with 16 instead of 8 first queries",
        stopped[LATER] <= stopped[case("fast", -5.0)],
        marks="card",
    ),
]


@experiment(
    "bos2/stopping-behaviour",
    source="companion; Kharkovskii 2020 (thesis), section 5.2",
    unit="drawn loop",
    quick=Budget(40, paths=20_000),
    full=Budget(200, minutes=20, paths=100_000),
)
def run(replicate: Replicate) -> Mapping[str, Trace]:
    """Which loops the stopping rule of BOS² gives up, and when."""
    noise = 0.7 * replicate.rng("noise").standard_normal(LENGTH)
    rule = Abandon(length=LENGTH, initial=8, paths=replicate["paths"])
    traces = {
        case(shape, best): follow(rule, SHAPES[shape] + noise, best, replicate.integer)
        for shape, faced in FACED.items()
        for best in faced
    }
    later = Abandon(length=LENGTH, initial=16, paths=replicate["paths"])
    traces[LATER] = follow(later, SHAPES["fast"] + noise, -5.0, replicate.integer)
    return traces


def follow(rule: Abandon, scores: np.ndarray, best: float, seed: int) -> Trace:
    """Report a loop query by query, and return whether and after how many it is given up, and whether it would win."""
    watch = rule.watch(best=best, lowest=LOWEST, round=1, seed=seed)
    end, given_up = LENGTH, False
    for i in range(rule.initial, LENGTH):
        if watch is None or scores[:i].max() > best:
            break
        if watch.report(1.0 - rule.errors(scores[:i], LOWEST)).stop:
            end, given_up = i, True
            break
    return Trace(stopped=given_up, queries=end, wins=scores.max() > best)
