"""Six reactors run at the same time: six ways to choose six experiments together, and what three batches find.

python examples/batches.py [BATCHES]        # writes batches.png
"""

import sys

import numpy as np

from surefoot import DBGPUCB, GPUCB, GPUCBPE, QEI, Box, LocalPenalization, RobustBatch
from surefoot.report.theme import canvas, color, ramp

box = Box([(60.0, 140.0), (0.0, 5.0)])  # degrees, hours
SIZE, BATCHES = 6, int(sys.argv[1]) if len(sys.argv) > 1 else 3


def measure(degrees: float, hours: float) -> float:
    """Yield of a reaction: best at 118 degrees and 3.4 hours, with a smaller hill at 80 degrees."""
    heat, time = (degrees - 100.0) / 20.0, (hours - 2.5) / 1.5
    return np.exp(-((heat - 0.9) ** 2) - (time - 0.6) ** 2) + 0.5 * np.exp(-((heat + 1.0) ** 2) - (time + 0.5) ** 2)


policies = {
    "GP-UCB: under way counts as measured": GPUCB(box, seed=1),
    "DB-GP-UCB: what six teach together": DBGPUCB(box, seed=1),
    "GP-UCB-PE: one to win, five to learn": GPUCBPE(box, seed=1),
    "local penalization: kept apart": LocalPenalization(box, seed=1),
    "q-EI: the best of six": QEI(box, seed=1),
    "robust batch: two may be lost": RobustBatch(box, tau=2, seed=1),
}
degrees, hours = np.meshgrid(np.linspace(60, 140, 60), np.linspace(0, 5, 60))
with canvas(9.0, 5.6) as figure:
    for place, (name, policy) in enumerate(policies.items()):
        axes = figure.add_subplot(2, 3, place + 1)
        axes.contour(degrees, hours, measure(degrees, hours), 8, colors=color("line"), linewidths=0.6)
        for batch, shade in enumerate(ramp(BATCHES + 1)[1:]):
            queries = policy.ask(SIZE)  # all six before any is told
            for query in queries:
                policy.tell(query, float(measure(*query.x)))
            axes.scatter(*np.array([query.x for query in queries]).T, s=22, color=shade, label=f"batch {batch + 1}")
        best = max(run.value for run in policy.history)
        print(f"{name:38} best yield {best:.3f} after {BATCHES} batches of {SIZE}")
        axes.set(title=f"{name}\nbest {best:.2f}", xlabel="degrees", ylabel="hours", xlim=(58, 142), ylim=(-0.2, 5.2))
    axes.legend(loc="lower left")
    figure.savefig("batches.png", facecolor=color("paper"))
print("wrote batches.png: later batches are darker")
