"""The other five targets: is FTS ever worse than Thompson sampling alone, and ever better?"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from surefoot.intervals import t_interval
from surefoot_lab import Budget, Data, Metric, Replicate, Share, Trace, Unit, experiment
from surefoot_lab.experiments.fts._landmine import SOURCE, TS, Target
from surefoot_lab.readings import Reading, Replicates, across

FIELDS = (1, 2, 3, 4, 5)

S = Metric("simple_regret")


def named(method: str, field: int) -> str:
    """What a method on a target is called."""
    return f"{method}, target {field + 1}"


def _significant(sign: int, label: str) -> Reading:
    """For each target, whether the 95 % interval of FTS less TS lies on one side."""

    def values(replicates: Replicates) -> np.ndarray:
        events = []
        for field in FIELDS:
            gap = S[named("FTS", field)].values(replicates) - S[named(TS, field)].values(replicates)
            gap = gap[np.isfinite(gap)]
            if gap.size > 1:
                low = t_interval(sign * gap, 0.95)[1]
                events.append(float(low > 0.0))
        return np.array(events)

    return across(values, label)


claims = [
    Share(
        "no target has FTS significantly worse than TS",
        _significant(1, "targets with FTS worse") < 0.5,
        note="five targets cannot show that none is: judged as fewer than half of all",
    ),
    Share(
        "at least one of the five has FTS significantly better",
        _significant(-1, "targets with FTS better") > 0.0,
        marks=("doubtful",),
    ),
]


@experiment(
    "fts/landmine-other-targets",
    source=SOURCE + "Fig. B.2",
    data=Data("published", "landmine"),
    unit=Unit.single("set of landmine fields"),
    quick=Budget(3, fields=(1, 2), horizon=20, length=10),
    full=Budget(50, minutes=60, fields=FIELDS, horizon=50),
)
def run(replicate: Replicate) -> Mapping[str, Trace]:
    """FTS with M = 100 and TS on targets 2 to 6."""
    traces: dict[str, Trace] = {}
    for field in replicate["fields"]:
        target = Target(replicate, field)
        traces |= {named(TS, field): target.alone(), named("FTS", field): target.helped()}
    return traces
