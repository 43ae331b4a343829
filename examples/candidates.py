"""Choose among a fixed list, several at a time, some of which fail: three reactors and 400 recipes.

python examples/candidates.py
"""

import numpy as np

from surefoot import FAILED, GP, GPUCB, Candidates, Matern, widths

rng = np.random.default_rng(0)
recipes = rng.uniform(0.0, 1.0, (400, 3))  # one row per recipe: any descriptors will do


def react(recipe: np.ndarray) -> float | None:
    """Return the noisy yield of one recipe; the hottest mixtures boil over and give nothing."""
    if recipe[0] + recipe[1] > 1.8:
        return None
    return float(np.exp(-8.0 * np.sum((recipe - [0.6, 0.3, 0.8]) ** 2)) + 0.05 * rng.standard_normal())


# A prior you know is used as it is: your units, no refits. `noise` is a variance, a width counts standard deviations.
policy = GPUCB(
    Candidates(recipes),
    gp=GP(Matern(2.5, lengthscale=0.4, variance=0.25), noise=0.05**2),
    width=widths.Constant(2.0),
    seed=0,
)

for _round in range(12):
    queries = policy.ask(3)  # pending points are taken into account, so the three differ
    for query in queries:
        result = react(query.x)
        policy.tell(query, FAILED if result is None else result)

best = policy.recommend()
print(f"{len(policy.history)} reactions, {sum(run.failed for run in policy.history)} failed")
print(
    f"use recipe {best.index} {best.x.round(2).tolist()}: yield {best.mean:.2f} ({best.lower:.2f} to {best.upper:.2f})"
)
