"""Where is the ground polluted? Five ways to survey it, with the same number of drillings.

python examples/level_sets.py [DRILLINGS]        # writes level_sets.png, and the map of one of them
"""

import sys

import numpy as np

import surefoot
from surefoot import GP, Box, Candidates, Matern, widths
from surefoot.report import level_set
from surefoot.report.theme import canvas, color

LIMIT, DRILLINGS = 0.55, int(sys.argv[1]) if len(sys.argv) > 1 else 30
side = np.linspace(0.0, 1.0, 24)
points = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
site = Candidates(points)
noise = np.random.default_rng(0).normal(0.0, 0.03, len(points))


def pollution(x: np.ndarray) -> np.ndarray:
    """Two plumes that nearly touch."""
    return np.exp(-14.0 * ((x - [0.3, 0.65]) ** 2).sum(axis=-1)) + np.exp(-10.0 * ((x - [0.75, 0.3]) ** 2).sum(axis=-1))


truth = pollution(points) > LIMIT
belief = GP(Matern(2.5, lengthscale=0.25, variance=0.1), noise=1e-3, mean=0.3)
options = {"threshold": LIMIT, "gp": belief, "width": widths.Constant(2.0), "seed": 0}
policies = {
    "GP-LSE": surefoot.GPLSE(site, **options),
    "TruVaR": surefoot.TruVaR(site, goal="level", **options),
    "straddle": surefoot.Straddle(site, **options),
    "most uncertain": surefoot.VarianceSampling(site, **options),
    "at random": surefoot.RandomLevelSet(site, **options),
}
with canvas(10.0, 2.6) as figure:
    for place, (name, policy) in enumerate(policies.items()):
        for _ in range(DRILLINGS):
            query = policy.ask()
            policy.tell(query, float(pollution(query.x) + noise[query.index]))
        answer = policy.recommend()
        wrong = (answer.predicted != truth).mean()
        print(f"{name:15} {answer.undecided.mean():4.0%} undecided, {wrong:5.1%} on the wrong side of the limit")
        axes = figure.add_subplot(1, 5, place + 1)
        for mask, paint in ((answer.above, "belief"), (answer.below, "line"), (answer.undecided, "accent")):
            axes.scatter(*points[mask].T, s=9, marker="s", linewidth=0, color=color(paint))
        axes.scatter(*np.array([run.x for run in policy.history]).T, s=4, color=color("ink"))
        axes.set(title=f"{name}: {wrong:.1%} wrong", xticks=[], yticks=[], aspect="equal")
    figure.savefig("level_sets.png", facecolor=color("paper"))

# On a box nobody has to choose the places: the survey is drawn by the library itself.
field = surefoot.GPLSE(Box([(0.0, 1.0), (0.0, 1.0)]), points=400, **options)
for _ in range(DRILLINGS):
    query = field.ask()
    field.tell(query, float(pollution(query.x)))
level_set(field, label="pollution").savefig("level_set_of_a_box.png", facecolor=color("paper"))
print("wrote level_sets.png (green above, gray below, orange undecided) and level_set_of_a_box.png")
