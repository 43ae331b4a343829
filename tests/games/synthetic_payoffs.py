"""Small games whose payoffs are draws of the players' own prior."""

import numpy as np

from surefoot import GP, SE, Candidates
from surefoot.games import Game, Player, RandomStrategy

SE2 = SE(lengthscale=0.25)


def grid(n):
    return Candidates(np.linspace(0.0, 1.0, n))


def draw(shape, rng, kernel=SE2):
    """A draw of the process on a product grid, mode by mode."""
    f = rng.standard_normal(shape)
    for axis, n in enumerate(shape):
        values, vectors = np.linalg.eigh(kernel(np.linspace(0.0, 1.0, n)[:, None]))
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        f = np.moveaxis(np.tensordot(root, f, axes=(1, axis)), 0, axis)
    return f


def general(shape, seed, noise=1e-4):
    rng = np.random.default_rng(seed)
    return Game([draw(shape, rng) for _ in shape], [grid(n) for n in shape], noise)


def players(game, levels, *, noise=1e-4, profiles=None, strategies=None, seed=0, **options):
    given = {"gp": GP(SE2, noise=noise), "strategies": strategies or RandomStrategy(), **options}
    return [
        Player(
            game.spaces[i],
            others=[s for j, s in enumerate(game.spaces) if j != i],
            position=i,
            level=level,
            profile=None if profiles is None else profiles[i],
            seed=100 * seed + i,
            **given,
        )
        for i, level in enumerate(levels)
    ]
