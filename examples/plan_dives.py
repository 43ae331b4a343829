"""Plan a boat's dives over a field of plankton, and draw its way: does it pay to look four dives ahead?

python examples/plan_dives.py          # writes plan_dives.png and plan_dives.gif
"""

import numpy as np
from matplotlib.animation import FuncAnimation, PillowWriter

import surefoot
from surefoot.report.theme import canvas, color, ramp
from surefoot_lab.routes import plankton

sea = plankton(np.random.default_rng(5))  # 50 by 50 cells, 0.1 km apart; a dive measures four cells in a row
domain = surefoot.Paths(sea.points, sea.moves, start=sea.start, budget=20)
side = int(np.sqrt(sea.size))


def dive(policy: surefoot.MacroGPO) -> tuple[np.ndarray, list[np.ndarray]]:
    """Dive until the budget is spent; return the stops, and what is expected everywhere before each dive."""
    policy.tell(sea.points[sea.start], sea.values[sea.start])
    stops, maps = [sea.start], []
    for _ in range(sea.stages):
        query = policy.ask()
        X, y, _ = policy.data()
        maps.append(sea.gp.condition(X, y).mean(sea.points).reshape(side, side))
        stops += query.note["stops"]
        policy.tell(query, sea.values[query.note["stops"]])  # four values at once
    return np.array(stops), maps


options = {"gp": sea.gp, "samples": 30, "seed": 0}
runs = {f"H = {h}": dive(surefoot.MacroGPO(domain, horizon=h, **options)) for h in (1, 4)}
for name, (stops, _) in runs.items():
    found = sea.values[stops]
    print(f"{name}: mean {found.mean():.2f}, best {found.max():.2f} of {sea.optimum:.2f}")

axis = sea.points[:side, 1]  # the same along both sides
levels = {"levels": np.linspace(sea.values.min(), sea.values.max(), 13), "colors": ramp(), "extend": "both"}
with canvas(8.0, 3.6) as figure:
    panels = figure.subplots(1, 2, sharey=True)

    def draw(dives: int) -> None:
        """The way after some dives: over the field itself at the end, before that over what is expected of it."""
        for axes, (name, (stops, maps)) in zip(panels, runs.items(), strict=True):
            made = stops[: 1 + 4 * dives]
            known = sea.values.reshape(side, side) if dives == sea.stages else maps[dives]
            axes.clear()
            axes.contourf(axis, axis, known, **levels)
            axes.plot(sea.points[made, 1], sea.points[made, 0], ".-", color=color("ink"), linewidth=1.2, markersize=5)
            axes.plot(*sea.points[sea.values.argmax()][::-1], "*", color=color("accent"), markersize=10, clip_on=False)
            axes.set(title=f"{name}: mean {sea.values[made].mean():.2f}", xlabel="km", aspect="equal")

    film = FuncAnimation(figure, draw, frames=sea.stages + 1, interval=900)
    film.save("plan_dives.gif", writer=PillowWriter(fps=1), dpi=80, savefig_kwargs={"facecolor": color("paper")})
    draw(sea.stages)
    figure.savefig("plan_dives.png", dpi=150, facecolor=color("paper"))
print(
    "plan_dives.png: the field, both ways, the best cell (star); plan_dives.gif: what was expected. One field of many!"
)
