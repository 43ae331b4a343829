"""Points to measure so that a Gaussian process is known elsewhere: the objective of two experiments.

600 points in 20 dimensions, rows of an autoregressive process, under a Matérn-3/2 kernel of length-scale 1 and unit
variance with noise variance 1. A random half are candidates, the other half is where the process should be known. The
objective depends on the points alone.
"""

from __future__ import annotations

import numpy as np

from surefoot.belief.kernels import Matern
from surefoot.select import VarianceReduction
from surefoot_lab import Replicate
from surefoot_lab.regression import autoregressive


def reduction(replicate: Replicate, alpha: float, points: int, start: str = "stationary") -> VarianceReduction:
    """The objective of a repetition."""
    X = autoregressive(points, 20, alpha, replicate.rng("points"), start=start)
    order = replicate.rng("halves").permutation(points)
    candidates, targets = X[order[: points // 2]], X[order[points // 2 :]]
    kernel = Matern(1.5, lengthscale=1.0)
    K = kernel(candidates, candidates)
    return VarianceReduction((K + K.T) / 2.0, noise=1.0, targets=np.asarray(kernel(targets, candidates)))
