"""Two predators and a prey learn linear controllers in a PettingZoo environment, the prey one level above them.

python examples/predator_prey.py          (needs: pip install 'surefoot[pettingzoo]')
"""

import importlib.util
import os
import sys

if importlib.util.find_spec("mpe2") is None:
    print("this example needs PettingZoo and its particle environments: pip install 'surefoot[pettingzoo]'")
    sys.exit(0)

os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
import numpy as np
from mpe2 import simple_tag_v3

from surefoot.bridge.pettingzoo import environment_game, pursuit_rewards
from surefoot.games import JointActions, Player, RandomStrategy, play

ROUNDS = 15


def hunt(levels: tuple[int, int, int]) -> np.ndarray:
    """Return the mean return of everybody; 55 numbers are chosen in every round."""
    env = simple_tag_v3.parallel_env(num_good=1, num_adversaries=2, max_cycles=25, continuous_actions=True)
    game = environment_game(env, episodes=3, rewards=pursuit_rewards, scale=(-25.0, 25.0), seed=1)
    gp = JointActions(game.spaces).automatic().refit(every=10)
    players = [
        Player(
            space,
            others=[other for j, other in enumerate(game.spaces) if j != seat],
            position=seat,
            level=levels[seat],
            profile=[None, 0, 1] if levels[seat] == 2 else None,
            strategies=RandomStrategy(),
            gp=gp,
            samples=64,
            seed=seat,
        )
        for seat, space in enumerate(game.spaces)
    ]
    return play(game, players, ROUNDS, initial=5, seed=1).payoffs.mean(axis=0)


for levels in ((0, 0, 0), (0, 0, 1), (2, 0, 1)):
    first, second, prey = hunt(levels)
    print(f"predators at {levels[0]} and {levels[1]}, prey at {levels[2]}: predators {first:.3f}, prey {prey:.3f}")
