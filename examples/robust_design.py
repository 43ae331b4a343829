"""Design a lens mount that still works when it is not built exactly: a sharp optimum is worth less than a broad one.

python examples/robust_design.py            # writes robust_design.png
"""

import matplotlib as mpl
import numpy as np

from surefoot import GP, GPUCB, SE, Box, StableOpt, WeightedBox, widths

mpl.use("Agg")
import matplotlib.pyplot as plt

box = Box([(0.0, 10.0), (0.0, 4.0)])  # wall thickness and fillet radius, mm
error = WeightedBox([0.8, 0.3])  # what the workshop may be off by


def stiffness(x: np.ndarray) -> np.ndarray:
    """A narrow ridge where two resonances happen to cancel, and a broad hill that owes nothing to chance."""
    a, b = np.moveaxis(np.asarray(x, dtype=float), -1, 0)
    ridge = 5.0 * np.exp(-(((a - 2.5) / 0.7) ** 2) - ((b - 3.0) / 0.5) ** 2)
    return ridge + 3.5 * np.exp(-(((a - 6.8) / 3.0) ** 2) - ((b - 1.5) / 1.3) ** 2)


belief = GP(SE([1.0, 0.6], variance=4.0), noise=1e-4)
policies = {
    "GP-UCB": GPUCB(box, gp=belief, width=widths.Constant(2.0), seed=3),
    "StableOpt": StableOpt(box, perturbation=error, gp=belief, width=widths.Constant(2.0), seed=3),
}
for policy in policies.values():
    for x in box.design(10, np.random.default_rng(0)):  # the same first prototypes for both
        policy.tell(x, float(stiffness(x)))
    for _ in range(40):
        query = policy.ask()  # StableOpt builds the worst prototype the workshop could make of its choice
        policy.tell(query, float(stiffness(query.x)))

# Ten thousand parts of each design, as the workshop builds them.
shifts = np.random.default_rng(1).uniform(-1.0, 1.0, (10_000, 2)) * error.radii
a, b = np.meshgrid(np.linspace(0, 10, 201), np.linspace(0, 4, 121))
figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
left.contourf(a, b, stiffness(np.stack([a, b], axis=-1)), 20, cmap="Greys")
for (name, policy), color in zip(policies.items(), ("tab:blue", "tab:orange"), strict=True):
    best = policy.recommend()
    built = stiffness(np.clip(best.x + shifts, box.lower, box.upper))
    print(f"{name:9} {best.x.round(2).tolist()}: {stiffness(best.x):.2f} as drawn, {built.min():.2f} at worst as built")
    corner, size = best.x - error.radii, 2.0 * error.radii
    left.add_patch(plt.Rectangle(corner, *size, fill=False, color=color, linewidth=2, label=name))
    left.plot(*np.array([run.x for run in policy.history]).T, ".", color=color, markersize=4)
    right.hist(built, bins=60, range=(0.0, 5.0), color=color, alpha=0.7, label=name)
left.set(xlabel="wall thickness, mm", ylabel="fillet radius, mm", title="prototypes, and what each design may become")
right.set(xlabel="stiffness of a part", yticks=[], title="10,000 parts of each design")
left.legend()
right.legend()
figure.savefig("robust_design.png", dpi=120)
