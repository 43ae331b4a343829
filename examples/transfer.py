"""Tune the oven of a new bakery with what three others learnt, one of which bakes something else entirely.

python examples/transfer.py
"""

import tempfile
from pathlib import Path

import numpy as np

from surefoot import GPUCB, RMGPUCB, Float, Int, Space, Task, widths

space = Space(temperature=Float(150.0, 260.0), minutes=Int(10, 60), steam=Float(0.01, 1.0, log=True))
folder, rng = Path(tempfile.mkdtemp()), np.random.default_rng(0)


def bakery(heat: float, time: float, steam: float):
    """Return the taste of a loaf in one oven, which has its own best settings."""

    def taste(temperature: float, minutes: int, **other: float) -> float:
        off = (temperature - heat) / 30.0, (minutes - time) / 12.0, np.log10(other["steam"] / steam)
        return float(10.0 - np.sum(np.square(off)) + 0.1 * rng.standard_normal())

    return taste


def bake(policy, taste, loaves: int) -> list[float]:
    for _ in range(loaves):
        query = policy.ask()
        policy.tell(query, taste(**query.params))
    return [run.value for run in policy.history]


# What the others measured is in their journals, or in a spreadsheet.
journals = []
for name, oven in {"north": bakery(222, 33, 0.12), "harbor": bakery(216, 37, 0.08)}.items():
    journals.append(folder / f"{name}.jsonl")
    with GPUCB(space, seed=1, journal=journals[-1]) as policy:
        bake(policy, oven, 25)
biscuits = bakery(175, 14, 0.02)
rows = [space.params(x) for x in space.design(25, rng)]
tasks = [*map(Task.from_journal, journals), Task(rows, [biscuits(**row) for row in rows], name="biscuits")]

new = bakery(220, 35, 0.1)
alone = bake(GPUCB(space, width=widths.Logarithmic(0.2), seed=7), new, 12)
policy = RMGPUCB(space, tasks=tasks, seed=7)
helped = bake(policy, new, 12)
for count in (1, 2, 4, 8, 12):
    print(f"best of {count:2} loaves: {max(alone[:count]):5.2f} alone, {max(helped[:count]):5.2f} with earlier tasks")
for task, weight in zip(policy.tasks, policy.weights, strict=True):
    print(f"{task.name:9} weighs {weight:.2f}")
print("bake", policy.recommend().params)
