"""What a fitted belief leaves open: hyper-parameters that the measurements do not rule out.

Bounds of one fit take its hyper-parameters for known. Where a promise is made under a belief that is fitted to the very
measurements it judges, it is made under several: the belief in use, and draws of hyper-parameters given the
measurements (slice sampling under the priors). What holds under all of them does not hang on one lucky fit.

Early fits say little: a few values that happen to lie close together look like a function that is flat everywhere. So
nothing is promised before :data:`ENOUGH` measurements for every hyper-parameter.

How often this holds was measured, not proved: ``benchmarks/certificates.py``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from surefoot.belief.posterior import Posterior
from surefoot.policy.base import ModelPolicy

__all__ = ["DRAWS", "ENOUGH", "WIDTH", "plausible", "refitted"]

DRAWS = 8  # of the hyper-parameters, beside the belief in use
WIDTH = 2.0  # standard deviations between the mean and a bound, under each of them
ENOUGH = 2  # measurements for every hyper-parameter


def refitted(policy: ModelPolicy) -> bool:
    """Whether a policy fits its belief to the measurements that the belief is to judge.

    >>> from surefoot import GP, GPUCB, Candidates
    >>> line = Candidates([0.0, 1.0])
    >>> refitted(GPUCB(line)), refitted(GPUCB(line, gp=GP()))
    (True, False)
    """
    return policy.gp.every is not None


def plausible(policy: ModelPolicy) -> Iterator[Posterior]:
    """Yield the belief in use and then others, all given all measurements; none while there are too few.

    Which ones follows from the policy's seed and the number of measurements. They are drawn only when they are asked
    for: who needs the worst of them may stop at one that is bad enough.

    >>> from surefoot import GPUCB, Box
    >>> policy = GPUCB(Box([(0.0, 1.0)]), seed=0)
    >>> for x in (0.1, 0.3, 0.8, 0.9, 1.0):
    ...     policy.tell([x], x)
    >>> len(list(plausible(policy)))
    0
    >>> policy.tell([0.5], 0.5)  # twice a variance, a length-scale and the noise
    >>> len(list(plausible(policy)))
    9
    """
    X, y, noise = policy.surrogate.rows.data()
    if len(y) < ENOUGH * len(policy.gp.names):
        return
    yield policy.posterior()
    drawn = replace(policy.gp, samples=DRAWS, members=()).fit(X, y, noise, rng=policy.stream("plausible", len(y)))
    for member in drawn.members:
        yield member.condition(X, y, noise)
