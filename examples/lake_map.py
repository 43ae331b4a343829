"""Map where algae exceed a limit, from a boat: moving along the lake costs more than lowering the probe.

python examples/lake_map.py          # writes lake_map.png
"""

import numpy as np

import surefoot
from surefoot.report.theme import canvas, color
from surefoot_lab.fields import f1_score, transect

lake = transect(np.random.default_rng(5), side=30)  # 1,400 m along, 20 m deep
domain = surefoot.Candidates(lake.points)
BUDGET = 2500.0


def boat(previous: np.ndarray | None, points: np.ndarray) -> np.ndarray:
    """Price of measuring at each point: the way along the lake, and the depth."""
    way = 0.0 if previous is None else 0.25 * np.abs(points[:, 0] - previous[0])
    return way + 4.0 * (np.abs(points[:, 1]) + 1.0)


def survey(policy: surefoot.Policy) -> tuple[float, float, surefoot.LevelSet]:
    """Measure until the money is spent; return what was spent, and how good the map is."""
    spent, previous = 0.0, None
    while True:
        query = policy.ask()
        price = float(boat(previous, query.x[None])[0])
        if spent + price > BUDGET:
            answer = policy.recommend()
            return spent, f1_score(lake.above, answer.predicted), answer
        policy.tell(query, surefoot.Outcome(lake.values[query.index], cost=price))
        spent, previous = spent + price, query.x


options = {"threshold": lake.threshold, "gp": lake.gp, "seed": 0}
policies = {
    "TruVaR, knows the costs": surefoot.TruVaR(domain, goal="level", cost=boat, among="potential", **options),
    "GP-LSE, does not": surefoot.GPLSE(domain, **options),
}
with canvas(8.0, 3.2) as figure:
    for place, (name, policy) in enumerate(policies.items()):
        spent, score, answer = survey(policy)
        print(f"{name}: {len(policy.history)} samples for {spent:.0f}, F1 {score:.2f}; {answer}")
        axes = figure.add_subplot(1, 2, place + 1)
        for mask, paint in ((answer.above, "belief"), (answer.below, "line"), (answer.undecided, "accent")):
            axes.scatter(*lake.points[mask].T, s=28, marker="s", linewidth=0, color=color(paint))
        route = np.array([run.x for run in policy.history])
        axes.plot(*route.T, color=color("ink"), linewidth=0.8, marker="o", markersize=2.5)
        axes.set(title=f"{name}: F1 {score:.2f}", xlabel="along the lake, m", ylabel="depth, m", ylim=(20.5, -0.5))
    figure.savefig("lake_map.png", dpi=150, facecolor=color("paper"))
print("lake_map.png: green is above the limit, gray below, orange undecided; the line is the boat's way")
