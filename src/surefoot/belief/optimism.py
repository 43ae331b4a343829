"""Optimism: how far the best estimate is too high because it was chosen for being the highest.

The point of the highest posterior mean owes its place partly to luck: of several points that are nearly as good, the
one with the friendliest errors wins. A prior that were right would have accounted for it; one that was fitted to the
same measurements has not. :func:`optimism` repeats the choice under each member of a mixture (a parametric bootstrap):
errors ε are drawn from the member's noise and smoothed as the measurements were, and the excess at the point that is
then chosen is averaged,

    E[(Aε)ᵢ],  i = argmax over j of (μ + Aε)ⱼ,

with μ the means at the points and A what turns measured values into means. It is never negative, vanishes with the
noise, and where one point is far better than all others. The draws are fixed, so that an answer follows from the data.

>>> import numpy as np
>>> from surefoot.belief.gp import GP
>>> X = np.arange(10.0)[:, None]  # so far apart that nothing is shared: the best of ten errors
>>> belief = MixturePosterior(GP(), [FreeMean(GP(noise=1.0), 9.0 * X, np.zeros(10))])
>>> bool(0.6 < optimism(belief, 9.0 * X) < 0.8)  # half of 1.54 standard deviations
True

Reference: Smith & Winkler 2006, "The optimizer's curse".
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot.belief.free_mean import FreeMean
from surefoot.belief.mixture import MixturePosterior

__all__ = ["optimism"]

Array = NDArray[np.float64]

DRAWS = 64  # of the errors of all measurements, and as many with the other sign
MEMBERS = 8  # the heaviest of the mixture


def optimism(belief: MixturePosterior, Z: ArrayLike) -> float:
    """Return by how much the highest mean among the rows of Z is too high, on average.

    Parameters
    ----------
    belief : MixturePosterior
        What :func:`~surefoot.belief.average.averaged` returns.
    Z : array of shape (m, e)
        The points that the best one is chosen from.

    >>> from surefoot.belief.gp import GP
    >>> belief = MixturePosterior(GP(), [FreeMean(GP(noise=0.0), [[0.0], [1.0]], [1.0, 2.0])])
    >>> round(optimism(belief, [[0.0], [1.0]]), 4)
    0.0
    """
    points = np.asarray(Z, dtype=np.float64)
    shares = np.full(len(belief.members), 1.0) if belief.weights is None else belief.weights
    heavy = np.argsort(-shares, kind="stable")[:MEMBERS]
    half = np.random.default_rng(0).standard_normal((belief.n, DRAWS))
    errors, total = np.hstack([half, -half]), 0.0
    for i in heavy:
        member = belief.members[i]
        if not isinstance(member, FreeMean):
            raise TypeError(f"optimism is that of an average over hyper-parameters, got a mixture of {member!r}")
        excess = member.smooth(points, errors * np.sqrt(member.noise)[:, None])
        chosen = np.argmax(member.mean(points)[:, None] + excess, axis=0)
        total += float(shares[i]) * float(excess[chosen, np.arange(len(chosen))].mean())
    return max(0.0, total / float(shares[heavy].sum()))
