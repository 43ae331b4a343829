"""Two shops set prices every day and see what both earned. Does it pay to think about how the other one thinks?

python examples/pricing_game.py        # writes pricing_game.png
"""

import numpy as np

from surefoot import Candidates
from surefoot.games import GPMW, Game, Player, play
from surefoot.report.theme import canvas, color

prices = Candidates(np.linspace(1.0, 3.0, 41))


def profits(own: float, other: float, loyal: float) -> float:
    """Sales fall with the own price and rise with the other one; some buyers come every day."""
    share = 1.0 / (1.0 + np.exp(3.0 * (own - other)))
    return (own - 0.8) * (loyal + share) * np.exp(-0.3 * (own - 1.0) ** 2)


own, other = np.meshgrid(prices.points[:, 0], prices.points[:, 0], indexing="ij")
corner, center = profits(own, other, 0.3), profits(other, own, 0.6)
scale = max(corner.max(), center.max())
game = Game([corner / scale, center / scale], [prices, prices], noise=1e-4)
DAYS = 40


def season(levels: tuple[int, int], seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return what both shops earn each day, and the corner shop's regret up to that day."""
    shops = [
        Player(prices, others=[prices], position=seat, level=level, strategies=GPMW(horizon=DAYS), initial=3, seed=seed)
        for seat, level in enumerate(levels)
    ]
    match = play(game, shops, DAYS, seed=seed)
    return match.payoffs, match.external_regret(0)


print("levels   corner shop   regret   center shop")
with canvas(6.0, 3.2) as figure:
    axes = figure.add_subplot()
    for levels, shade in (((0, 0), "muted"), ((1, 0), "accent"), ((2, 1), "belief")):
        seasons = [season(levels, seed) for seed in (0, 1)]
        payoffs, regret = (np.mean(part, axis=0) for part in zip(*seasons, strict=True))
        profit, rival = payoffs.mean(axis=0)
        print(f"{levels[0]} v {levels[1]}       {profit:.3f}      {regret[-1] / DAYS:.3f}       {rival:.3f}")
        axes.plot(np.arange(1, len(regret) + 1), regret, color=color(shade), label=f"level {levels[0]} v {levels[1]}")
    axes.set(xlabel="day", ylabel="regret of the corner shop, summed up")
    axes.legend()
    figure.savefig("pricing_game.png", facecolor=color("paper"))

shop = Player(prices, others=[prices], level=2, seed=0)
print("to reason at level 2 the corner shop must know:", shop.needs)
