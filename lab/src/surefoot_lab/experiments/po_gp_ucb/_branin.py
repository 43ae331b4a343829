"""Branin-Hoo on a 31 × 31 grid, negated, in two transforms.

How the published outputs were transformed is not fully said: both −log(Branin) and −Branin are run. Outputs are
standardized, the signal variance is 1, and length-scales and noise (10⁻⁵ at least) are fitted to all 961 points by
maximum likelihood: with a free variance the likelihood of −Branin, a polynomial of low degree, prefers ever longer
length-scales.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from surefoot.belief.gp import GP
from surefoot.belief.kernels import SE
from surefoot.belief.priors import Fixed
from surefoot_lab.experiments.po_gp_ucb._outsourced import Owned
from surefoot_lab.experiments.po_gp_ucb._records import owned
from surefoot_lab.problems import branin, grid

LOG, PLAIN = "-log(Branin)", "-Branin"
DELTA, HORIZON, SIDE = 1e-3, 50, 31


@cache
def table(transform: str, side: int = SIDE) -> Owned:
    """Return the grid with values under one of the two transforms."""
    points = grid([(-5.0, 10.0), (0.0, 15.0)], side)
    values = branin()(points)  # −Branin
    values = values if transform == PLAIN else -np.log(-values)
    unit = float(values.std())
    values = (values - values.mean()) / unit
    start = GP(SE([2.0, 4.0]), noise=1e-3, priors={"mean": Fixed(), "variance": Fixed()}, floor=1e-5)
    return owned(points, values, start.fit(points, values), unit=unit)
