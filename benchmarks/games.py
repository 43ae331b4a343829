"""How long a grid game takes, and what incremental beliefs save.

    OMP_NUM_THREADS=1 python benchmarks/games.py                 # 100 x 100 actions, 150 rounds, each pair of levels
    OMP_NUM_THREADS=1 python benchmarks/games.py --side 40 --players 3

The peer is the same game with the beliefs about both payoffs computed afresh in every round, as research code does that
hands all data to a Gaussian process library; its time per round is the mean over some rounds of the game.
"""

from __future__ import annotations

import argparse
import statistics
import time

import numpy as np

from surefoot.belief.gp import GP
from surefoot.belief.kernels import SE
from surefoot.games import GPMW, Game, JointActions, Player, play
from surefoot_lab.experiments.r2b2._games import Payoff, Seating, axis

COLUMNS = ["levels", "joint actions", "rounds", "seconds (median)", "ms per round", "afresh, ms per round", "ratio"]


def game_of(side: int, players: int, seed: int) -> tuple[Game, list[GP]]:
    rng = np.random.default_rng(seed)
    payoffs = [Payoff.drawn(side, players, rng) for _ in range(players)]
    return Game([p.table for p in payoffs], [axis(side)] * players), [p.prior("P") for p in payoffs]


def seconds(game: Game, gps: list[GP], seating: Seating, rounds: int, seed: int) -> float:
    spaces = list(game.spaces)
    seats = [
        Player(
            spaces[i],
            others=spaces[1:],
            position=i,
            level=level,
            profile=seating.profiles[i],
            strategies=GPMW(eta=0.1),
            gp=gps,
            seed=i,
        )
        for i, level in enumerate(seating.levels)
    ]
    start = time.perf_counter()
    play(game, seats, rounds, seed=seed)
    return time.perf_counter() - start


def afresh(game: Game, rounds: int) -> float:
    """Mean seconds per round of conditioning every payoff's belief on all data and predicting at all joint actions."""
    joint = JointActions(game.spaces)
    rng = np.random.default_rng(0)
    X = joint.points[rng.choice(len(joint.points), rounds)]
    gp, y = GP(SE(lengthscale=0.1), noise=1e-3), rng.standard_normal(rounds)
    times = []
    for n in np.linspace(1, rounds, 8).astype(int):
        start = time.perf_counter()
        for _ in range(game.players):
            gp.condition(X[:n], y[:n]).predict(joint.points)
        times.append(time.perf_counter() - start)
    return statistics.mean(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--side", type=int, default=100)
    parser.add_argument("--players", type=int, default=2, choices=(2, 3))
    parser.add_argument("--rounds", type=int, default=150)
    parser.add_argument("--repetitions", type=int, default=5)
    options = parser.parse_args()
    names = ["0v0", "1v0", "2v1", "3v2"] if options.players == 2 else ["000", "100", "210", "211"]
    game, gps = game_of(options.side, options.players, 0)
    slow = 1e3 * afresh(game, options.rounds)
    print(f"| {' | '.join(COLUMNS)} |\n" + "|---" * len(COLUMNS) + "|")
    for name in names:
        times = [seconds(game, gps, Seating.read(name), options.rounds, seed) for seed in range(options.repetitions)]
        middle = statistics.median(times)
        each = 1e3 * middle / options.rounds
        size = f"{options.side}^{options.players}"
        print(f"| {name} | {size} | {options.rounds} | {middle:.2f} | {each:.2f} | {slow:.1f} | {slow / each:.1f} |")


if __name__ == "__main__":
    main()
