"""Small random set functions, and answers to everything by trying all sets."""

from itertools import combinations

import numpy as np

from surefoot.select import Coverage, Custom


def coverage(seed, n=9, items=14, density=0.3, weighted=False):
    """A random coverage in which every element covers something."""
    rng = np.random.default_rng(seed)
    incidence = rng.random((n, items)) < density
    incidence[np.arange(n), rng.integers(items, size=n)] = True
    return Coverage(incidence, rng.gamma(2.0, size=items) if weighted else None)


def variance_reduction(seed, n=8, targets=5, noise=0.3):
    """The fall of the variance at some points of a random process: monotone, not submodular."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n + targets, 2))
    K = np.exp(-0.5 * ((X[:, None] - X[None]) ** 2).sum(axis=-1))

    def value(S):
        if not S:
            return 0.0
        cross = K[n:, list(S)]
        return float(np.trace(cross @ np.linalg.solve(K[np.ix_(S, S)] + noise * np.eye(len(S)), cross.T)))

    return Custom(value, n, submodular=False)


def best(objective, k, among=None):
    """The largest value of k elements."""
    elements = range(objective.n) if among is None else among
    return max(objective.value(S) for S in combinations(elements, k))


def worst(objective, S, tau):
    """The smallest value after tau deletions."""
    return min(objective.value([e for e in S if e not in E]) for E in combinations(S, tau))


def robust_best(objective, k, tau):
    """The largest value that k elements keep after any tau deletions."""
    return max(worst(objective, S, tau) for S in combinations(range(objective.n), k))
