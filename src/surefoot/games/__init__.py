"""Several self-interested players: repeated games with unknown payoffs, and players that reason about each other.

Each player wants a high payoff, which depends on what everybody does, is expensive to see and noisy. A
:class:`Player` learns the payoffs by Gaussian processes and reasons recursively: level 0 draws from a mixed strategy,
level 1 answers the level-0 strategies of the others, level k answers level k − 1 (R2-B2).

>>> import numpy as np
>>> from surefoot import GP, SE, Candidates
>>> from surefoot.games import Game, Player, play
>>> grid = Candidates(np.linspace(0.0, 1.0, 8))
>>> payoff = np.cos(3.0 * np.add.outer(grid.points[:, 0], -2.0 * grid.points[:, 0]))
>>> game = Game.constant_sum(payoff, [grid, grid], total=0.0)
>>> prior = GP(SE(lengthscale=0.3), noise=1e-4)
>>> players = [Player(grid, others=[grid], position=i, level=2 - i, gp=prior, seed=i) for i in range(2)]
>>> match = play(game, players, rounds=10)
>>> bool(match.payoffs[:, 0].mean() > match.payoffs[:, 1].mean())  # level 2 against level 1
True

References: Dai, Chen, Low, Jaillet & Ho 2020 (R2-B2); Sessa, Bogunovic, Kamgarpour & Krause 2019 (GP-MW).
"""

from __future__ import annotations

from surefoot import lazy

__getattr__, __dir__, __all__ = lazy.names(
    __name__,
    {
        "rounds": ["Round"],
        "payoffs": ["JointActions", "PayoffBelief"],
        "strategies": ["PolicyStrategy", "RandomStrategy", "SamplerStrategy", "Strategy", "Tracker"],
        "hedge": ["GPMW", "Hedge"],
        "exp3": ["EXP3", "EXP3P"],
        "reasoning": ["Profile", "Reasoner"],
        "player": ["Player", "PublishedWidth"],
        "game": ["Game", "Match", "play"],
    },
)
