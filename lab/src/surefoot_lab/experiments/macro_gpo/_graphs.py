"""What the comparisons on roads and in corridors have in common: anytime planners, a sweep of β, all or few moves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from surefoot.policy.improvement import ExpectedImprovement
from surefoot_lab.experiments.macro_gpo._methods import H, Maker, baselines, planner, race
from surefoot_lab.registry import Replicate, Trace
from surefoot_lab.routes import Route

FEW, ALL, EI = "H = 2 (20)", "H = 2 (all)", "EI (all)"
FAR = "H = 4 (20)"


def anytime(route: Route, horizon: int, replicate: Replicate, **options: Any) -> Maker:
    """An anytime planner with the samples and iterations of the budget; four moves ahead has iterations of its own."""
    iterations = replicate["deepest"] if horizon == 4 else replicate["iterations"]
    return planner(route, horizon, planner="anytime", samples=replicate["samples"], iterations=iterations, **options)


def compared(route: Route, replicate: Replicate) -> dict[str, Trace]:
    """The nine methods on one route; H = 4 only where the budget gives it iterations."""
    methods = {H[h]: anytime(route, h, replicate) for h in (2, 3, 4) if h < 4 or replicate["deepest"]}
    return race(route, methods | baselines(route), replicate.integer)


def setting(horizon: int, beta: float) -> str:
    """What a planner with a bonus for information is called."""
    return f"H = {horizon}, β = {beta:g}"


def swept(route: Route, replicate: Replicate, betas: Iterable[float]) -> dict[str, Trace]:
    """Planners with a bonus for information, of several weights."""
    made = {
        setting(h, beta): anytime(route, h, replicate, exploration=beta)
        for h in replicate["horizons"]
        for beta in betas
    }
    return race(route, made, replicate.integer)


def thinned(few: Route, every: Route, steps: Route, replicate: Replicate) -> dict[str, Trace]:
    """The same field with 20 moves per place, with all, and in single steps."""
    methods = {FEW: anytime(few, 2, replicate)}
    if replicate["deepest"]:
        methods[FAR] = anytime(few, 4, replicate)
    traces = race(few, methods, replicate.integer)
    traces |= race(every, {ALL: anytime(every, 2, replicate)}, replicate.integer)
    step: Mapping[str, Maker] = {EI: lambda d, seed: ExpectedImprovement(d, gp=steps.gp, seed=seed)}
    return traces | race(steps, step, replicate.integer)
