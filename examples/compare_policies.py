"""Eleven ways to choose the next point, on one rugged function: what each had found after how many measurements.

python examples/compare_policies.py [MEASUREMENTS]        # writes compare_policies.png and the page of the best run
"""

import sys

import numpy as np

import surefoot
from surefoot.report import best_so_far, page, runs
from surefoot.report.theme import canvas, color, ramp

box = surefoot.Box([(0.0, 1.0), (0.0, 1.0)])
BUDGET = int(sys.argv[1]) if len(sys.argv) > 1 else 14


def terrain(x: np.ndarray) -> float:
    """A steep hill near (0.7, 0.3), with ripples all over."""
    hill = np.exp(-20.0 * ((x[0] - 0.7) ** 2 + (x[1] - 0.3) ** 2))
    return float(hill + 0.1 * np.cos(9.0 * x[0]) * np.cos(7.0 * x[1]))


policies = {
    "at random": surefoot.RandomSearch(box, seed=2),
    "evenly (Sobol)": surefoot.SobolSearch(box, seed=2),
    "expected improvement": surefoot.ExpectedImprovement(box, seed=2),
    "probability of improvement": surefoot.ProbabilityOfImprovement(box, seed=2),
    "GP-UCB": surefoot.GPUCB(box, seed=2),
    "Add-GP-UCB": surefoot.AddGPUCB(box, groups=2, candidates=500, seed=2),
    "trust region": surefoot.TrustRegion(box, seed=2),
    "Thompson sampling": surefoot.ThompsonSampling(box, seed=2),
    "max-value entropy search": surefoot.MaxValueEntropySearch(box, seed=2),
    "entropy search": surefoot.EntropySearch(box, samples=64, seed=2),
    "minimum regret search": surefoot.MinimumRegretSearch(box, samples=64, seed=2),
}
for policy in policies.values():
    for _ in range(BUDGET):
        query = policy.ask()
        policy.tell(query, terrain(query.x))

reached = {name: best_so_far(runs(policy)) for name, policy in policies.items()}
order = sorted(reached, key=lambda name: reached[name][-1])
with canvas(7.5, 4.0) as figure:
    axes = figure.add_subplot()
    for name, shade in zip(order, ramp(len(order) + 3)[3:], strict=True):
        axes.step(range(1, BUDGET + 1), reached[name], where="post", color=shade, label=name)
        print(f"{name:27} {reached[name][-1]:.3f} after {BUDGET} measurements")
    axes.set(xlabel="measurements", ylabel="best value so far", xlim=(1, BUDGET))
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), reverse=True)
    figure.savefig("compare_policies.png", facecolor=color("paper"))
print("one run proves nothing: `surefoot reproduce` repeats. Pictures: compare_policies.png,", end=" ")
print(page(policies[order[-1]], "compare_policies.html", title=f"The best of this run: {order[-1]}"))
