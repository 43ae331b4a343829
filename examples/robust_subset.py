"""Rent masts so that a town stays connected when some of them are lost; saves a picture.

python examples/robust_subset.py        (needs: pip install 'surefoot[plot]')
"""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Circle

from surefoot.select import Coverage, attack, choose, greedy

# 800 houses in six quarters; 120 masts for rent, of which few reach far.
rng = np.random.default_rng(4)
quarters = np.array([[0.15, 0.2], [0.5, 0.25], [0.85, 0.2], [0.2, 0.75], [0.55, 0.7], [0.9, 0.8]])
houses = np.concatenate([rng.normal(center, 0.08, (130, 2)) for center in quarters] + [rng.random((20, 2))])
masts = np.concatenate([quarters, rng.normal(np.repeat(quarters, 19, axis=0), 0.06)])
reach = np.concatenate([np.full(6, 0.22), rng.choice([0.05, 0.08, 0.12], 114)])
near = np.linalg.norm(masts[:, None] - houses, axis=2) <= reach[:, None]
town = Coverage(near)  # worth of some masts: the houses that at least one of them reaches

MASTS, LOST = 14, 3
robust = choose(town, MASTS, LOST)  # the most robust of several choices
choices = {"greedy": greedy(town, MASTS), "robust": robust.selection}
figure = Figure(figsize=(9.6, 5.2), layout="constrained")
for axes, (name, selection) in zip(figure.subplots(1, 2), choices.items(), strict=True):
    worst = attack(town, selection.order, LOST)  # which three hurt most?
    kept = np.setdiff1d(selection.order, worst.removed)
    print(
        f"{name:7s} ({selection.method}): {selection.value:.0f} of {len(houses)} houses, "
        f"{worst.value:.0f} after the worst loss of {LOST} ({worst.status})"
    )
    reached = near[kept].any(axis=0)
    axes.scatter(*houses[reached].T, s=5, color="#4fa184", label="connected")
    axes.scatter(*houses[~reached].T, s=5, color="#b3261e", label="cut off")
    for mast in kept:
        axes.add_patch(Circle(masts[mast], reach[mast], fill=False, color="#0a5a42", linewidth=0.8))
    axes.scatter(*masts[kept].T, s=30, marker="^", color="#0a5a42", label="mast")
    axes.scatter(*masts[list(worst.removed)].T, s=50, marker="x", color="#1c2430", label="lost mast")
    axes.set(title=f"{name}: {worst.value:.0f} of {len(houses)} houses after the worst loss", aspect="equal")
    axes.set(xlim=(-0.15, 1.2), ylim=(-0.3, 1.15))
    axes.legend(fontsize="small", loc="lower center", ncols=4)
print(robust.certificate)
figure.savefig("robust_subset.png", dpi=130)
print(Path("robust_subset.png").resolve())
