"""Regret by ε where the threshold depends on the table: ε*, and the published steps below it.

>>> [label(step) for step in (0.0, 0.9)]
['ε*', 'ε* e^-0.9']
"""

from __future__ import annotations

import math

import numpy as np

from surefoot.private.projection import composed_epsilon, threshold_epsilon
from surefoot_lab.experiments.po_gp_ucb._outsourced import Race
from surefoot_lab.experiments.po_gp_ucb._sweeps import Sweep
from surefoot_lab.registry import Trace

TABLE = "table"  # the method that facts about the table are filed under
_ABOVE = 1.0 + 1e-9  # at ε* itself rounding would decide


def label(step: float) -> str:
    """What ε*·e^−step is called."""
    return f"ε* e^-{step:.1f}" if step else "ε*"


def below_threshold(race: Race, dimension: int, steps: tuple[float, ...]) -> dict[str, Trace]:
    """Run the projection with r columns at ε* of the table and below it, the Gaussian release beside, and baselines."""
    least = threshold_epsilon(dimension, race.delta, race.table.smallest) * _ABOVE
    traces = race.baselines()
    for step in steps:
        epsilon = least * math.exp(-step)
        traces[label(step)] = race.projection(dimension, epsilon)
        traces[label(step)].metrics["log_epsilon"] = np.asarray(math.log(epsilon))
        traces[f"Gaussian, {label(step)}"] = race.gaussian(epsilon)
    traces[TABLE] = Trace(smallest=race.table.smallest, threshold=math.log(least))
    return traces


def at_threshold(race: Race, sweeps: tuple[Sweep, ...]) -> dict[Sweep, float]:
    """Return for each table of r the ε at which its last r without lift is just not lifted."""
    return {sweep: threshold_epsilon(sweep.last, race.delta, race.table.smallest) * _ABOVE for sweep in sweeps}


def composition(settings: dict[str, tuple[int, float, float]]) -> dict[str, Trace]:
    """Return what advanced composition gives for (r, ε, δ), and ε itself, by name."""
    return {name: Trace(composed=composed_epsilon(*given), epsilon=given[1]) for name, given in settings.items()}
