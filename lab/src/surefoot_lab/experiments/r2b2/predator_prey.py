"""Predator and prey in a particle environment: 55 parameters of three linear controllers.

Two predators, one prey, two obstacles, 50 steps; everybody chooses a controller of rank one, and what it is worth is
the mean return of five runs. The study prints no formula for its rewards; those used here are
:func:`surefoot.bridge.pettingzoo.pursuit_rewards`. Returns are scaled from [−50, 50], one point per step, to [0, 1].
"""

from __future__ import annotations

import os
from collections.abc import Mapping

import numpy as np

from surefoot.errors import MissingExtra
from surefoot.games.game import play
from surefoot.games.payoffs import JointActions
from surefoot.games.player import Player
from surefoot.games.strategies import RandomStrategy
from surefoot_lab import Budget, Equal, Metric, Order, Replicate, Trace, ascending, experiment

SEATINGS = {"000": (0, 0, 0), "001": (0, 0, 1), "201": (2, 0, 1), "221": (2, 2, 1)}  # predators, prey
STEPS, RUNS = 50, 5

prey, hunt = Metric("prey"), Metric("predator")

claims = [
    Order("the prey gains by reasoning at level 1", prey["001"] > prey["000"]),
    Order(
        "the predators gain from a prey that stays inside, and from reasoning at level 2, one and both of them",
        ascending(*[hunt[name] for name in SEATINGS]),
        marks=("doubtful",),
    ),
    Equal(
        "the prey keeps what it won when predators reason",
        [(prey[name], prey["001"]) for name in ("201", "221")],
        margin=0.05,
        marks=("doubtful",),
    ),
]


@experiment(
    "r2b2/predator-prey",
    source="Dai 2021 (thesis), section 8.4.3, Fig. 8.5, appendix E.6.3",
    unit="run of the simulator",
    quick=Budget(1, horizon=20, samples=64),
    full=Budget(8, minutes=115, horizon=100, samples=500),
    priority=2,
)
def run(replicate: Replicate) -> Mapping[str, Trace]:
    """Policy search by three players with random play as level 0."""
    os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
    try:
        from mpe2 import simple_tag_v3

        from surefoot.bridge.pettingzoo import environment_game, pursuit_rewards
    except ImportError as error:
        raise MissingExtra("predator-prey needs PettingZoo and mpe2: pip install 'surefoot[pettingzoo]'") from error

    traces = {}
    for name, levels in SEATINGS.items():
        env = simple_tag_v3.parallel_env(
            num_good=1, num_adversaries=2, num_obstacles=2, max_cycles=STEPS, continuous_actions=True
        )
        game = environment_game(
            env, episodes=RUNS, rewards=pursuit_rewards, scale=(-float(STEPS), float(STEPS)), seed=replicate.integer
        )
        gp = JointActions(game.spaces).automatic().refit(every=10)
        profiles = [[None, 0, 1], [0, None, 1], None]
        players = [
            Player(
                space,
                others=[other for j, other in enumerate(game.spaces) if j != seat],
                position=seat,
                level=levels[seat],
                profile=profiles[seat] if levels[seat] == 2 else None,
                strategies=RandomStrategy(),
                gp=gp,
                samples=replicate["samples"],
                seed=int(replicate.rng("player", seat).integers(2**53)),
            )
            for seat, space in enumerate(game.spaces)
        ]
        done = play(game, players, replicate["horizon"], initial=5, seed=replicate.integer)
        rounds = np.arange(1, len(done.payoffs) + 1)
        means = np.cumsum(done.payoffs, axis=0) / rounds[:, None]
        traces[name] = Trace(predator=means[:, :2].mean(axis=1), prey=means[:, 2])
    return traces
