"""Two shops set prices every day and see what both earned. Does it pay to think about how the other one thinks?

python examples/pricing_game.py
"""

import numpy as np

from surefoot import Candidates
from surefoot.games import GPMW, Game, Player, play

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


def season(levels: tuple[int, int], seed: int) -> tuple[float, float, float]:
    """Return the corner shop's profit per day, its regret per day, and the other shop's profit."""
    shops = [
        Player(prices, others=[prices], position=seat, level=level, strategies=GPMW(horizon=DAYS), initial=3, seed=seed)
        for seat, level in enumerate(levels)
    ]
    match = play(game, shops, DAYS, seed=seed)
    return match.payoffs[:, 0].mean(), match.external_regret(0)[-1] / DAYS, match.payoffs[:, 1].mean()


print("levels   corner shop   regret   center shop")
for levels in ((0, 0), (1, 0), (2, 1)):
    profit, regret, rival = np.mean([season(levels, seed) for seed in range(2)], axis=0)
    print(f"{levels[0]} v {levels[1]}       {profit:.3f}      {regret:.3f}       {rival:.3f}")

shop = Player(prices, others=[prices], level=2, seed=0)
print("to reason at level 2 the corner shop must know:", shop.needs)
