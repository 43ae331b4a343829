"""Functions of the published size: a draw of a Gaussian process on a 100 × 100 grid whose corners have norm 25.

The extent of the grid in length-scales is not printed. A side of six reproduces the published numbers; the printed
ℓ = 1.25 cannot be in the units of the norm.
"""

from __future__ import annotations

import math

import numpy as np

from surefoot.belief.gp import GP
from surefoot.belief.kernels import SE
from surefoot_lab.experiments.po_gp_ucb._outsourced import RADIUS, Owned, Race
from surefoot_lab.problems import grid
from surefoot_lab.registry import Replicate
from surefoot_lab.samples import gp_sample_lattice

DELTA, HORIZON = 1e-5, 50
NOISE = 1e-5
SIDE = 2.0 * RADIUS / math.sqrt(2.0)
RATIO = 6.0  # side over length-scale


def draw(replicate: Replicate, side: int = 100) -> Owned:
    """The function of one repetition on a grid of side × side points."""
    axis, kernel = np.linspace(-0.5 * SIDE, 0.5 * SIDE, side), SE(SIDE / RATIO)
    problem = gp_sample_lattice(kernel, [axis, axis], replicate.rng("function"))
    points = grid([(axis[0], axis[-1])] * 2, side)
    return Owned(points, problem(points), GP(kernel, noise=NOISE), error=math.sqrt(NOISE))


def race(replicate: Replicate) -> Race:
    """All methods on the function of one repetition."""
    return Race(draw(replicate, replicate["side"]), DELTA, replicate["horizon"], replicate)
