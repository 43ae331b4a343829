"""Earlier tasks, one of which misleads: four ways to use them, and whom each trusts.

python examples/earlier_tasks.py [MEASUREMENTS]        # writes earlier_tasks.png and weights_*.png
"""

import sys

import numpy as np

from surefoot import GPUCB, RGPE, RMGPTS, RMGPUCB, TAF, Box, Task
from surefoot.report import best_so_far, runs, task_weights
from surefoot.report.theme import canvas, color, ramp

box = Box([(0.0, 1.0), (0.0, 1.0)])
rng = np.random.default_rng(3)
BUDGET = int(sys.argv[1]) if len(sys.argv) > 1 else 12


def lens(x: np.ndarray, focus: tuple[float, float], sign: float = 1.0) -> np.ndarray:
    """Sharpness of one camera; a task differs from another in where it is sharpest."""
    return sign * np.exp(-8.0 * ((np.asarray(x) - focus) ** 2).sum(axis=-1))


def earlier(name: str, focus: tuple[float, float], sign: float = 1.0) -> Task:
    X = box.sample(25, rng)
    return Task(X, lens(X, focus, sign), name=name)


tasks = [earlier("alike", (0.72, 0.28)), earlier("nearly", (0.6, 0.4)), earlier("upside down", (0.7, 0.3), -1.0)]
policies = {
    "no earlier tasks": GPUCB(box, seed=5),
    "RM-GP-UCB": RMGPUCB(box, tasks=tasks, seed=5),
    "RM-GP-TS": RMGPTS(box, tasks=tasks, features=128, seed=5),
    "RGPE": RGPE(box, tasks=tasks, samples=64, seed=5),
    "TAF": TAF(box, tasks=tasks, seed=5),
}
with canvas(6.5, 3.4) as figure:
    axes = figure.add_subplot()
    for (name, policy), shade in zip(policies.items(), ramp(len(policies) + 2)[2:], strict=True):
        for _ in range(BUDGET):
            query = policy.ask()
            policy.tell(query, float(lens(query.x, (0.7, 0.3))))
        best = best_so_far(runs(policy))
        axes.step(range(1, BUDGET + 1), best, where="post", color=shade, label=name)
        print(f"{name:17} {best[2]:.3f} after 3 measurements, {best[-1]:.3f} after {BUDGET}")
    axes.set(xlabel="measurements", ylabel="best sharpness so far", xlim=(1, BUDGET))
    axes.legend(loc="lower right")
    figure.savefig("earlier_tasks.png", facecolor=color("paper"))
for name in ("RM-GP-UCB", "RGPE"):
    task_weights(policies[name]).savefig(f"weights_{name.lower()}.png", facecolor=color("paper"))
print("wrote earlier_tasks.png, and whom RM-GP-UCB and RGPE trusted in weights_*.png")
