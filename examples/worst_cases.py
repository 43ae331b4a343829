"""A dose that a nurse may misread by a tenth: four ways to look for one that is good even then.

python examples/worst_cases.py [TRIALS]        # writes worst_cases.png
"""

import sys

import numpy as np

from surefoot import GP, GPUCB, SE, Ball, Candidates, MaxiMinGPUCB, RobustReport, StableOpt, widths
from surefoot.report.theme import canvas, color

doses = Candidates(np.linspace(0.0, 1.0, 101))
slip = Ball(0.1)
TRIALS = int(sys.argv[1]) if len(sys.argv) > 1 else 25


def effect(x: np.ndarray) -> np.ndarray:
    """A high and narrow peak at 0.25, a broad and lower one at 0.7."""
    return 1.3 * np.exp(-(((x - 0.25) / 0.05) ** 2)) + np.exp(-(((x - 0.7) / 0.18) ** 2))


options = {"gp": GP(SE(0.08, variance=0.5), noise=1e-4), "width": widths.Constant(2.0), "seed": 0}
policies = {
    "GP-UCB": GPUCB(doses, **options),
    "GP-UCB, robust answer": RobustReport(GPUCB(doses, **options), slip),
    "MaxiMin-GP-UCB": MaxiMinGPUCB(doses, perturbation=slip, **options),
    "StableOpt": StableOpt(doses, perturbation=slip, **options),
}
x = doses.points[:, 0]
f = effect(x)
near = np.abs(x[:, None] - x) <= 0.1 + 1e-9
worst = np.where(near, f, np.inf).min(axis=1)
with canvas(9.0, 4.6) as figure:
    for place, (name, policy) in enumerate(policies.items()):
        for _ in range(TRIALS):
            query = policy.ask()
            policy.tell(query, float(effect(query.x[0])))
        best = policy.recommend()
        print(f"{name:22} dose {best.x[0]:.2f}: {f[best.index]:.2f} as prescribed, {worst[best.index]:.2f} at worst")
        axes = figure.add_subplot(2, 2, place + 1)
        axes.plot(x, f, color=color("muted"), label="effect")
        axes.plot(x, worst, color=color("belief"), label="worst effect within a slip")
        axes.scatter(
            [run.x[0] for run in policy.history], [run.value for run in policy.history], s=9, color=color("ink")
        )
        axes.axvspan(best.x[0] - 0.1, best.x[0] + 0.1, color=color("accent"), alpha=0.25)
        axes.set(title=f"{name}: {worst[best.index]:.2f} at worst", xlabel="dose", xlim=(0, 1))
    axes.legend(loc="upper left")
    figure.savefig("worst_cases.png", facecolor=color("paper"))
print(f"the best worst case is {worst.max():.2f}, at dose {x[worst.argmax()]:.2f}; wrote worst_cases.png")
